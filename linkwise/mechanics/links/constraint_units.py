"""Units of constraints and coordinates: constants that make them dimensionless, so that lengths and angles can be
compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..scalar import Scalar, dot, is_constant, is_zero


@dataclass(frozen=True)
class ConstraintUnits:
    """Units that make constraints and coordinates dimensionless: ``rows[r] * g``, ``rows[r] * G * columns[c]``, ``v /
    columns[c]``; empty if they are dimensionless already.

    rows      by constraint: 1 over a length for lengths
    columns   by coordinate: a length for lengths
    multipliers   by constraint, as ``rows``, but with one length for all: multipliers over these are compared
    forces    by coordinate, as ``columns``, but with one length for all: joint forces times these are compared
    rate      per second: rate of a fall through the mechanism's size, the reference for slow motions; 0 without gravity
    """

    rows: tuple[float, ...] = ()
    columns: tuple[float, ...] = ()
    multipliers: tuple[float, ...] = ()
    forces: tuple[float, ...] = ()
    rate: float = 0.0

    def row(self, r: int) -> float:
        return self.rows[r] if self.rows else 1.0

    def column(self, c: int) -> float:
        return self.columns[c] if self.columns else 1.0

    def force(self, c: int) -> float:
        return self.forces[c] if self.forces else 1.0

    def multiplier(self, r: int) -> float:
        return self.multipliers[r] if self.multipliers else 1.0

    def square_of_constraints(self, values: Sequence[Scalar]) -> tuple[Scalar, float]:
        """The sum of squares of numbers of all constraints, and a factor: the sum is ``factor`` squared times the
        dimensionless sum."""
        return _sum_of_squares(values, [self.row(r) for r in range(len(values))])

    def square_of_velocities(self, values: Mapping[int, Scalar]) -> tuple[Scalar, float]:
        """Sum of squares of numbers by coordinate, such as velocities, in their units."""
        return _sum_of_squares(list(values.values()), [1.0 / self.column(c) for c in values])


def _sum_of_squares(values: Sequence[Scalar], units: Sequence[float]) -> tuple[Scalar, float]:
    """The sum of squares of units times values, with the most common unit factored out, and the reciprocal of that
    unit.
    """
    present = [unit for x, unit in zip(values, units, strict=True) if not is_zero(x)]
    usual = most_common(present)
    total: Scalar = 0.0
    for unit in dict.fromkeys(present):
        alike = [x for x, other in zip(values, units, strict=True) if other == unit]
        square = dot(alike, alike)
        total = total + scaled(square, (unit / usual) ** 2)
    return total, 1.0 / usual


class Gauge:
    """Scale factors that make constraints and coordinates dimensionless up to a common factor, with the fewest
    multiplications.

    rows, columns   the factors; for columns by coordinate
    pivot           of all entries: pivots are ``pivot`` times dimensionless ones
    """

    def __init__(self, units: ConstraintUnits, rows: Mapping[int, Mapping[int, Scalar]], columns: Sequence[int]):
        """``rows`` have entries by coordinate; negative indices are not coordinates."""
        entries = [(r, c) for r, row in rows.items() for c, x in row.items() if c >= 0 and not is_constant(x)]
        common = most_common(units.row(r) for r, _ in entries)
        usual = most_common(units.column(c) for _, c in entries)
        self.rows = {r: units.row(r) / common for r in rows}
        self.columns = {c: units.column(c) / usual for c in columns}
        self.pivot = 1.0 / (common * usual)

    def coordinates(self, numbers: Mapping[int, Scalar]) -> dict[int, Scalar]:
        """Numbers by coordinate, as accelerations are."""
        return {c: scaled(x, self.columns[c]) for c, x in numbers.items()}

    def dimensionless(self, numbers: Mapping[int, Scalar]) -> dict[int, Scalar]:
        """The inverse of ``coordinates``."""
        return {c: scaled(x, 1.0 / self.columns[c]) for c, x in numbers.items()}


def most_common(units: Iterable[float]) -> float:
    """The most frequent unit; 1 if empty."""
    counts = Counter(units)
    return max(counts, key=lambda unit: counts[unit], default=1.0)


def scaled(x: Scalar, factor: float) -> Scalar:
    """A number times a constant; without an operation if the constant is 1."""
    return x if factor == 1.0 or is_zero(x) else x * factor
