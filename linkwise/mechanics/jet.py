"""Automatic differentiation of mechanics code: jets have the first two derivatives along a path, duals the first along
several directions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .scalar import Scalar, atan2, cos, is_zero, select, sin, sqrt


class Jet:
    """A number with its first and second derivative; each part is a constant or a traced value.

    All code on scalars runs on jets.  A result whose derivatives are structural zeros becomes its plain value, so
    constants cost nothing.  Jets do not nest: derivatives along two paths would be confused.
    """

    __slots__ = ("value", "first", "second")

    def __init__(self, value: Scalar, first: Scalar, second: Scalar = 0.0):
        if isinstance(value, Jet) or isinstance(first, Jet):
            raise TypeError("jets do not nest: this code differentiates itself already, run it on plain numbers")
        self.value = value
        self.first = first
        self.second = second

    def __add__(self, other: Any) -> Any:
        value, first, second = parts(other)
        return jet(self.value + value, self.first + first, self.second + second)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        value, first, second = parts(other)
        return jet(self.value - value, self.first - first, self.second - second)

    def __rsub__(self, other: Any) -> Any:
        value, first, second = parts(other)
        return jet(value - self.value, first - self.first, second - self.second)

    def __neg__(self) -> Any:
        return jet(-self.value, -self.first, -self.second)

    def __mul__(self, other: Any) -> Any:
        value, first, second = parts(other)
        cross = self.first * first
        return jet(
            self.value * value,
            self.first * value + self.value * first,
            self.second * value + (cross + cross) + self.value * second,
        )

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        value, first, second = parts(other)
        ratio = self.value / value
        slope = (self.first - ratio * first) / value
        turning = slope * first
        return jet(ratio, slope, (self.second - (turning + turning) - ratio * second) / value)

    def __rtruediv__(self, other: Any) -> Any:
        return Jet(other, 0.0) / self

    def __pow__(self, exponent: int) -> Any:
        if not isinstance(exponent, int):
            return NotImplemented
        if exponent < 0:
            return 1.0 / self**-exponent
        return 1.0 if exponent == 0 else self * self ** (exponent - 1)

    def __lt__(self, other: Any) -> Any:
        return _condition(self.value < parts(other)[0])

    def __gt__(self, other: Any) -> Any:
        return _condition(self.value > parts(other)[0])

    # Implementations of linkwise.extend.scalar.

    def _through(self, value: Scalar, slope: Scalar, curvature: Scalar) -> Any:
        """f(self) from f, f' and f'' at the value."""
        return jet(value, slope * self.first, slope * self.second + curvature * (self.first * self.first))

    def sin(self) -> Any:
        s, c = sin(self.value), cos(self.value)
        return self._through(s, c, -s)

    def cos(self) -> Any:
        s, c = sin(self.value), cos(self.value)
        return self._through(c, -s, -c)

    def sqrt(self) -> Any:
        root = sqrt(self.value)
        slope = 0.5 / root
        return self._through(root, slope, -(0.5 * slope / self.value))

    def atan2(self, x: Any) -> Any:
        """The angle of (x, self). Its rate is (x dy - y dx) / (x^2 + y^2), a jet itself."""
        y0, y1, y2 = parts(self)
        x0, x1, x2 = parts(x)
        square = x0 * x0 + y0 * y0
        rate = (x0 * y1 - y0 * x1) / square
        growth = x0 * x1 + y0 * y1
        return jet(atan2(y0, x0), rate, (x0 * y2 - y0 * x2 - 2.0 * (growth * rate)) / square)

    def ratan2(self, y: Any) -> Any:
        return Jet(y, 0.0).atan2(self)


class _JetCondition:
    """A traced comparison that chooses between jets part by part."""

    def __init__(self, condition: Scalar):
        self.condition = condition

    def select(self, then: Any, otherwise: Any) -> Any:
        return jet(*(select(self.condition, a, b) for a, b in zip(parts(then), parts(otherwise), strict=True)))


def _condition(compared: Any) -> Any:
    return compared if isinstance(compared, bool) else _JetCondition(compared)


def jet(value: Scalar, first: Scalar, second: Scalar = 0.0) -> Any:
    """A jet, or the plain value if both derivatives are zero."""
    return value if is_zero(first) and is_zero(second) else Jet(value, first, second)


def parts(x: Any) -> tuple[Scalar, Scalar, Scalar]:
    """Value and derivatives of a jet or of a plain number."""
    return (x.value, x.first, x.second) if isinstance(x, Jet) else (x, 0.0, 0.0)


class Dual:
    """A number with its derivatives along several directions; each part is a constant or a traced value.

    All code on scalars runs on duals, including jets: the parts of a jet may be duals, the parts of a dual are plain.
    """

    __slots__ = ("value", "slopes")
    __array_ufunc__ = None  # numpy scalars on the left defer to __radd__ and friends

    def __init__(self, value: Scalar, slopes: Sequence[Scalar]):
        self.value = value
        self.slopes = slopes

    def _with(self, other: Any, value: Scalar, slope: Callable[[Scalar, Scalar], Scalar]) -> Any:
        """The result of a binary operation, from its slopes by both operands."""
        return dual(value, [slope(a, b) for a, b in zip(self.slopes, slopes_of(other, len(self.slopes)), strict=True)])

    def __add__(self, other: Any) -> Any:
        if isinstance(other, Jet):
            return NotImplemented
        return self._with(other, self.value + value_of(other), lambda a, b: a + b)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        if isinstance(other, Jet):
            return NotImplemented
        return self._with(other, self.value - value_of(other), lambda a, b: a - b)

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __neg__(self) -> Any:
        return Dual(-self.value, [-slope for slope in self.slopes])

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, Jet):
            return NotImplemented
        x, y = self.value, value_of(other)
        return self._with(other, x * y, lambda a, b: a * y + x * b)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        if isinstance(other, Jet):
            return NotImplemented
        divisor = value_of(other)
        ratio = self.value / divisor
        return self._with(other, ratio, lambda a, b: (a - ratio * b) / divisor)

    def __rtruediv__(self, other: Any) -> Any:
        ratio = other / self.value
        return self._through(ratio, -(ratio / self.value))

    def __pow__(self, exponent: int) -> Any:
        if not isinstance(exponent, int):
            return NotImplemented
        if exponent < 0:
            return 1.0 / self**-exponent
        return 1.0 if exponent == 0 else self * self ** (exponent - 1)

    def __lt__(self, other: Any) -> Any:
        return NotImplemented if isinstance(other, Jet) else _dual_condition(self.value < value_of(other))

    def __gt__(self, other: Any) -> Any:
        return NotImplemented if isinstance(other, Jet) else _dual_condition(self.value > value_of(other))

    # Implementations of linkwise.extend.scalar.

    def _through(self, value: Scalar, slope: Scalar) -> Any:
        """f(self) from f and f' at the value."""
        return dual(value, [slope * partial for partial in self.slopes])

    def sin(self) -> Any:
        return self._through(sin(self.value), cos(self.value))

    def cos(self) -> Any:
        return self._through(cos(self.value), -sin(self.value))

    def sqrt(self) -> Any:
        root = sqrt(self.value)
        return self._through(root, 0.5 / root)

    def atan2(self, x: Any) -> Any:
        if isinstance(x, Jet):
            return x.ratan2(self)
        y0, x0 = self.value, value_of(x)
        square = x0 * x0 + y0 * y0
        return self._with(x, atan2(y0, x0), lambda dy, dx: (x0 * dy - y0 * dx) / square)

    def ratan2(self, y: Any) -> Any:
        return Dual(y, [0.0] * len(self.slopes)).atan2(self)


class _DualCondition:
    """A traced comparison that chooses between duals part by part."""

    def __init__(self, condition: Scalar):
        self.condition = condition

    def select(self, then: Any, otherwise: Any) -> Any:
        count = max(len(x.slopes) for x in (then, otherwise, Dual(0.0, [])) if isinstance(x, Dual))
        pairs = zip(slopes_of(then, count), slopes_of(otherwise, count), strict=True)
        value = select(self.condition, value_of(then), value_of(otherwise))
        return dual(value, [select(self.condition, a, b) for a, b in pairs])


def _dual_condition(compared: Any) -> Any:
    return compared if isinstance(compared, bool) else _DualCondition(compared)


def dual(value: Scalar, slopes: Sequence[Scalar]) -> Any:
    """A dual, or the plain value if all slopes are zero."""
    return value if all(map(is_zero, slopes)) else Dual(value, slopes)


def value_of(x: Any) -> Scalar:
    """The value of a dual or of a plain number."""
    return x.value if isinstance(x, Dual) else x


def slopes_of(x: Any, count: int) -> Sequence[Scalar]:
    """The derivatives of a dual or of a plain number along ``count`` directions."""
    return x.slopes if isinstance(x, Dual) else [0.0] * count
