"""Scalar functions that work alike on floats and on traced values: the only place that distinguishes them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import Any

__all__ = ["atan2", "cos", "select", "sin", "sqrt"]  # for the user's functions that are compiled
__dir__ = __all__.copy

Scalar = Any  # a float (constant) or a traced value
Matrix = list[list[Scalar]]


def is_constant(x: Scalar) -> bool:
    """True for a number known while tracing."""
    return isinstance(x, (int, float))


def is_zero(x: Scalar) -> bool:
    """True for a structural zero: a constant 0."""
    return is_constant(x) and x == 0.0


def sin(x: Scalar) -> Scalar:
    """The sine of an angle in radians."""
    return math.sin(x) if is_constant(x) else x.sin()


def cos(x: Scalar) -> Scalar:
    """The cosine of an angle in radians."""
    return math.cos(x) if is_constant(x) else x.cos()


def sqrt(x: Scalar) -> Scalar:
    """The square root."""
    return math.sqrt(x) if is_constant(x) else x.sqrt()


def atan2(y: Scalar, x: Scalar) -> Scalar:
    """The angle of the point (x, y), in radians, between -pi and pi."""
    if is_constant(y):
        return math.atan2(y, x) if is_constant(x) else x.ratan2(y)
    return y.atan2(x)


def select(condition: Scalar, then: Scalar, otherwise: Scalar) -> Scalar:
    """``then`` where ``condition`` holds, else ``otherwise``; both are evaluated."""
    return (then if condition else otherwise) if isinstance(condition, bool) else condition.select(then, otherwise)


Function = Callable[[list[Scalar]], list[Scalar]]


def each(items: Sequence[list[Scalar]], *functions: Function, alike: bool = False) -> list[list[Scalar]]:
    """Apply functions in turn to each item, a list of numbers. With many items each function may become one loop: over
    items with equal constants, or, if ``alike``, over all of them.
    """
    traced = next((x for item in items for x in item if hasattr(x, "each")), None)
    if traced is not None:
        return traced.each(items, functions, alike)
    return [reduce(lambda numbers, function: function(numbers), functions, item) for item in items]


def folded(
    start: Sequence[Scalar], rows: Any, step: Callable[[list[Scalar], list[Scalar]], list[Scalar]]
) -> list[Scalar] | None:
    """``start`` after ``step(numbers, row)`` for all ``rows`` (an array) in turn, as one loop of the traced program;
    None if no loop is wanted. ``step`` must have no side effects.
    """
    traced = next((x for x in start if hasattr(x, "folded")), None)
    return None if traced is None else traced.folded(start, rows, step)


def dot(a: Iterable[Scalar], b: Iterable[Scalar], start: Scalar = 0.0) -> Scalar:
    """``start`` plus the sum of products, added one after the other."""
    for x, y in zip(a, b, strict=True):
        start = start + x * y
    return start


def transposed(matrix: Iterable[Iterable[Scalar]]) -> Matrix:
    """Rows for columns."""
    return [list(column) for column in zip(*matrix, strict=True)]
