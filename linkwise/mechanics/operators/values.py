"""Arithmetic of values at a link: forces, motions, lists of joint numbers or scalars; None is an exact zero."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..recursions.neighbours import plus
from ..scalar import Scalar, dot
from ..spatial import Force, Vector3

__all__ = ["halves", "inner", "minus", "plus", "times"]


def minus(a: Any, b: Any) -> Any:
    return a if b is None else plus(a, times(b, -1.0))


def times(value: Any, factor: Scalar) -> Any:
    return [x * factor for x in value] if isinstance(value, list) else value * factor


def inner(x: Any, y: Any) -> Scalar:
    """The scalar product of a force and a motion, or of two lists."""
    if isinstance(x, Force):
        return x.dot(y)
    if isinstance(y, Force):
        return y.dot(x)
    return dot(x, y)


def halves(six: Sequence[Scalar]) -> tuple[Vector3, Vector3]:
    """Six numbers as the two vectors of a motion or a force."""
    return Vector3(*six[:3]), Vector3(*six[3:])
