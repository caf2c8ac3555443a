"""All that a contact supplies: what ``LoopKind`` asks for."""

from __future__ import annotations

import math
from typing import Any

from ..joints.protocol import LoopKind

#: Every kind of contact there is, by ``LoopKind.kind_name``.
CONTACTS: dict[str, type[Contact]] = {}


class Contact(LoopKind):
    """Two links that touch, by themselves or with a rod between: of surfaces, A's is the plane z = 0 of ``pose_a``.  It
    moves no link of a tree, and closes loops only."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        CONTACTS[cls.kind_name()] = cls


def positive_length(label: str, length: float) -> float:
    """``length`` as a positive float; raises ValueError otherwise."""
    try:
        value = float(length)
    except (TypeError, ValueError):
        raise ValueError(f"{label} must be a number of metres, got {length!r}") from None
    if not (math.isfinite(value) and value > 0.0):
        raise ValueError(f"{label} must be positive and finite, got {value:g}")
    return value
