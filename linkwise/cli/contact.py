"""Contact as the command line tells it: which shapes touch what, with what numbers, and a floor that is asked for."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from typing import Any

import linkwise as lw


def contact_facts(mech: lw.Mechanism) -> list[dict[str, Any]]:
    """Every pair of shapes that touch, with its law; infinite numbers are None."""
    return [
        {
            "shapes": list(pair.shapes),
            "acts": mech.forces.acts("contact", pair.name),
            "step": _finite(pair.step),
            **{name: _finite(value) for name, value in dataclasses.asdict(pair.law).items()},
        }
        for pair in mech.contact_pairs
    ]


def contact_lines(mech: lw.Mechanism) -> Iterator[str]:
    """One line for each shape that others touch."""
    for touched in dict.fromkeys(pair.shape_b for pair in mech.contact_pairs):
        pairs = [pair for pair in mech.contact_pairs if pair.shape_b == touched]
        idle = sum(not mech.forces.acts("contact", pair.name) for pair in pairs)
        shape, parts = mech.contact.shape(touched), sum(pair.shape_b == touched for pair in mech.contact.parts)
        line = (
            f"{touched} ({shape.kind} on {shape.link}): {_counted(len(pairs), 'shape')} in {_counted(parts, 'point')}"
        )
        line += f", friction {_spread(pair.law.friction for pair in pairs)}"
        line += f", stiffness {_spread(pair.law.stiffness for pair in pairs)} N/m"
        line += f", explicit steps up to {min(pair.step for pair in pairs):g} s"
        yield line + (f"; {idle} switched off" if idle else "")


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' * (count != 1)}"


def _spread(values: Iterator[float]) -> str:
    ordered = sorted(values)
    low, high = f"{ordered[0]:.3g}", f"{ordered[-1]:.3g}"
    return low if low == high else f"{low} to {high}"


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
