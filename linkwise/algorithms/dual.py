"""Dual numbers over scalars: exact derivatives of anything written on scalars, traced or not."""

from __future__ import annotations

from typing import Any

from ..scalar import Scalar, cos, is_constant, is_zero, sin, sqrt


class Dual:
    """value + slope e with e^2 = 0.  A result that is constant and has no slope comes back as a plain number."""

    __slots__ = ("value", "slope")

    def __init__(self, value: Scalar, slope: Scalar):
        self.value = value
        self.slope = slope

    def __float__(self) -> float:
        raise TypeError(
            "dual numbers do not mix with parameters of the mechanism that are inputs: compile without parameters="
        )

    def __add__(self, other: Any) -> Any:
        value, slope = _parts(other)
        return _dual(self.value + value, self.slope + slope)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        value, slope = _parts(other)
        return _dual(self.value - value, self.slope - slope)

    def __rsub__(self, other: Any) -> Any:
        return -(self - other)

    def __neg__(self) -> Any:
        return _dual(-self.value, -self.slope)

    def __mul__(self, other: Any) -> Any:
        value, slope = _parts(other)
        return _dual(self.value * value, self.slope * value + self.value * slope)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        value, slope = _parts(other)
        ratio = self.value / value
        return _dual(ratio, (self.slope - ratio * slope) / value)

    def __rtruediv__(self, other: Any) -> Any:
        return Dual(other, 0.0) / self

    # The functions behind linkwise.scalar.

    def sin(self) -> Any:
        return _dual(sin(self.value), cos(self.value) * self.slope)

    def cos(self) -> Any:
        return _dual(cos(self.value), -(sin(self.value) * self.slope))

    def sqrt(self) -> Any:
        root = sqrt(self.value)
        return _dual(root, self.slope / (root + root))


def _parts(x: Any) -> tuple[Scalar, Scalar]:
    return (x.value, x.slope) if isinstance(x, Dual) else (x, 0.0)


def _dual(value: Scalar, slope: Scalar) -> Any:
    return value if is_zero(slope) and is_constant(value) else Dual(value, slope)


def slope_of(x: Any) -> Scalar:
    """The derivative part of a result."""
    return x.slope if isinstance(x, Dual) else 0.0
