"""Numbers at several states at once. Mechanics code runs on them as on symbols, which determines its pivots and cost
before compilation."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[np.float64]]


class TooLong(Exception):
    """More operations than a ``Tally`` allows."""


class Tally:
    """Counts operations, and stops a computation that needs more than ``most``."""

    def __init__(self, most: float = np.inf):
        self.operations, self.most = 0, most

    def samples(self, values: Any) -> list[Samples]:
        """(..., n): n numbers per state, each as ``Samples`` over all states."""
        columns = np.asarray(values, dtype=float)
        return [Samples(columns[..., k].ravel(), self) for k in range(columns.shape[-1])]


class Samples:
    """One number at several states. Constants fold as in a trace: structural zeros cost nothing."""

    __slots__ = ("values", "tally")
    __array_ufunc__ = None

    def __init__(self, values: Array, tally: Tally):
        self.values, self.tally = values, tally

    def _of(self, values: Any) -> Samples:
        self.tally.operations += 1
        if self.tally.operations > self.tally.most:
            raise TooLong
        return Samples(values, self.tally)

    def __add__(self, other: Any) -> Any:
        if type(other) is Samples:
            return self._of(self.values + other.values)
        if not isinstance(other, (int, float)):
            return NotImplemented
        return self if other == 0.0 else self._of(self.values + other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        if type(other) is Samples:
            return 0.0 if other is self else self._of(self.values - other.values)
        if not isinstance(other, (int, float)):
            return NotImplemented
        return self if other == 0.0 else self._of(self.values - other)

    def __rsub__(self, other: Any) -> Any:
        return self._of(other - self.values) if other != 0.0 else -self

    def __mul__(self, other: Any) -> Any:
        if type(other) is Samples:
            return self._of(self.values * other.values)
        if not isinstance(other, (int, float)):
            return NotImplemented
        if other == 0.0:
            return 0.0
        return self if other == 1.0 else -self if other == -1.0 else self._of(self.values * other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        if type(other) is Samples:
            return self._of(self.values / other.values)
        if not isinstance(other, (int, float)):
            return NotImplemented
        return self if other == 1.0 else self._of(self.values / other)

    def __rtruediv__(self, other: Any) -> Any:
        return 0.0 if other == 0.0 else self._of(other / self.values)

    def __neg__(self) -> Samples:  # usually part of the next operation
        return Samples(-self.values, self.tally)

    def __pow__(self, exponent: Any) -> Any:
        return self._of(self.values**exponent)

    def __lt__(self, other: Any) -> Any:
        return self._of(self.values < _values(other))

    def __gt__(self, other: Any) -> Any:
        return self._of(self.values > _values(other))

    def sqrt(self) -> Samples:
        return self._of(np.sqrt(self.values))

    def sin(self) -> Samples:
        return self._of(np.sin(self.values))

    def cos(self) -> Samples:
        return self._of(np.cos(self.values))

    def atan2(self, x: Any) -> Samples:
        return self._of(np.arctan2(self.values, _values(x)))

    def ratan2(self, y: Any) -> Samples:
        return self._of(np.arctan2(_values(y), self.values))

    def select(self, then: Any, otherwise: Any) -> Any:
        if then is otherwise:
            return then
        return self._of(np.where(self.values, _values(then), _values(otherwise)))


def _values(x: Any) -> Any:
    return x.values if isinstance(x, Samples) else x


def values_of(x: Any) -> Any:
    """The array of ``Samples``; a constant unchanged."""
    return _values(x)
