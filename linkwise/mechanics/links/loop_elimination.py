"""Elimination of the coordinates that loops determine: a = K y + k solves G a + bias = 0 for every y.

Constraints and coordinates are eliminated in fronts (the multifrontal method of sparse direct solvers).  A front takes
its own constraints and its children's remainders, eliminates coordinates that no later constraint contains, and leaves
the rest to its parent.  Fronts and their numbers of pivots are chosen beforehand; *which* entries are the pivots
depends on their sizes, for every state of a batch anew.  Variable choices exchange entries by ``select``, so the code
has no branches.

Constraints that remain at the end are implied by the others, up to the closure errors of the loops. Their remainders
are spread over all constraints in the least-squares sense: the choice of remaining constraints then changes the result
only by the square of the errors, and accelerations are smooth for integrators.

Pivots are compared, and least squares computed, in dimensionless constraints and coordinates (``ConstraintUnits``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

from ..scalar import Scalar, dot, is_constant, is_zero, select
from .constraint_units import ConstraintUnits, Gauge, scaled

# Sufficient size of pivots relative to the largest.  Pivots that are the largest of all entries lose no more digits
# than the problem does; fixed ones were large when fronts were chosen, and if small, errors grow from front to front.
RELIABLE = 1.0  # least status of valid results, see ``Solution.reliability``
SUFFICIENT = 1e-5
SUFFICIENT_IF_FIXED = 0.02
VANISHING = 1e-10
SMALL = 8  # maximum coordinates of a cluster: code for singular positions of larger ones would be long
BIAS = -1  # column of the bias in a row; smaller indices are columns of the constraints combined in it


@dataclass(frozen=True)
class Front:
    """Constraints and coordinates that are eliminated together.

    rows       constraints that enter here
    columns    coordinates that may be eliminated here: no constraint outside this front and its children contains them
    pivots     number of eliminated coordinates
    children   indices of previous fronts that leave their remaining constraints and coordinates to it
    spare      number of last pivots that may vanish in singular positions, leaving their coordinates free
    implied    bound of the remainders of implied constraints, relative to the largest pivot
    by_rank    any pivot may vanish: the state decides the rank, and constraints are met in the least-squares sense
    """

    rows: tuple[int, ...]
    columns: tuple[int, ...]
    pivots: int
    children: tuple[int, ...] = ()
    spare: int = 0
    implied: float = 1e-6
    by_rank: bool = False


@dataclass(frozen=True)
class SweepOrder:
    """The order in which one cluster is eliminated in accelerations of links and multipliers (``ConstraintSweep``).

    steps   links, whose joints are eliminated, and tuples of numbers that are eliminated together: r for the
            multiplier of constraint r, -1 - c for the acceleration of coordinate c
    shared  coordinates whose accelerations are among these numbers
    """

    steps: tuple[int | tuple[int, ...], ...]
    shared: tuple[int, ...] = ()

    @property
    def rows(self) -> tuple[int, ...]:
        """Constraints whose multipliers it eliminates."""
        return tuple(y for step in self.steps if isinstance(step, tuple) for y in step if y >= 0)


@dataclass(frozen=True)
class Fronts:
    """The elimination of a mechanism's loops.

    clusters   the fronts of every cluster, in their order
    units      of constraints and coordinates; mechanisms that differ only in units share code
    sweeps     by cluster, the order of a sweep over links and multipliers if that costs less than elimination of
               coordinates, else None; empty if there is none
    """

    clusters: tuple[tuple[Front, ...], ...]
    units: ConstraintUnits = field(default=ConstraintUnits(), compare=False)
    sweeps: tuple[SweepOrder | None, ...] = ()

    def sweep(self, number: int) -> SweepOrder | None:
        """The sweep of a cluster, by its number."""
        return self.sweeps[number] if self.sweeps else None

    @property
    def pivots(self) -> int:
        """The number of constraints that are independent away from singular positions."""
        return sum(front.pivots for cluster_fronts in self.clusters for front in cluster_fronts)

    def by_rank(self, coordinates: Sequence[Sequence[int]]) -> Fronts | None:
        """Fronts of these constraints for singular positions, with the ``coordinates`` of every cluster: one front for
        each small cluster, with the rank decided by the state. None without small clusters."""
        merged = tuple(
            (_merged(cluster_fronts, columns),) if cluster_fronts and len(columns) <= SMALL else cluster_fronts
            for cluster_fronts, columns in zip(self.clusters, coordinates, strict=True)
        )
        return None if merged == self.clusters else replace(self, clusters=merged)


def _merged(fronts: Sequence[Front], columns: Sequence[int]) -> Front:
    rows = tuple(row for front in fronts for row in front.rows)
    implied = max(front.implied for front in fronts)
    return Front(rows, tuple(columns), sum(front.pivots for front in fronts), implied=implied, by_rank=True)


class Row:
    """One constraint: sum of coefficients times accelerations, plus bias, is zero."""

    def __init__(self, coefficients: Mapping[int, Scalar], bias: Scalar):
        self.numbers: dict[int, Scalar] = {**coefficients, BIAS: bias}

    def at(self, column: int) -> Scalar:
        return self.numbers.get(column, 0.0)

    def scaled(self, factor: float, columns: Mapping[int, float]) -> Row:
        """The row times a factor, for coordinates in units of ``columns``."""
        numbers = {c: scaled(x, factor * columns.get(c, 1.0)) for c, x in self.numbers.items()}
        return Row(numbers, numbers[BIAS])

    def subtract(self, factor: Scalar, other: Row, without: int | None = None) -> None:
        """The row minus ``factor`` times another."""
        for c, x in other.numbers.items():
            if c != without and not is_zero(x):
                self.numbers[c] = self.at(c) - factor * x

    def times(self, numbers: Mapping[int, Scalar] | Sequence[Scalar], without: int | None = None) -> Scalar:
        """The row times a vector over coordinates."""
        entries = ((c, x) for c, x in self.numbers.items() if c >= 0 and c != without and not is_zero(x))
        return sum((x * numbers[c] for c, x in entries if not is_zero(numbers[c])), 0.0)

    def exchange(self, condition: Scalar, a: int, b: int) -> None:
        """Exchange columns a and b where the condition holds."""
        x, y = self.at(a), self.at(b)
        if not (is_zero(x) and is_zero(y)):
            self.numbers[a], self.numbers[b] = select(condition, y, x), select(condition, x, y)

    def beside_coordinates(self) -> Row:
        """The row without its coefficients: its bias, and the constraints combined in it."""
        row = Row({}, 0.0)
        row.numbers = {c: x for c, x in self.numbers.items() if c < 0}
        return row

    def combination(self) -> list[Scalar]:
        """The constraints combined in it."""
        return [x for c, x in sorted(self.numbers.items()) if c < BIAS]


Exchange = tuple[int, int, Scalar]  # two slots, and the condition


@dataclass(frozen=True, eq=False)
class RowStep:
    """A step on rows: subtract ``factor`` times ``source`` from ``row``; or, with a ``condition`` in place of the
    factor, exchange the two if it holds."""

    row: Row
    source: Row
    factor: Scalar = None
    condition: Scalar = None

    def apply(self, numbers: dict[Row, Scalar]) -> None:
        """Apply the recorded elimination to one number per row."""
        a, b = numbers.get(self.row, 0.0), numbers.get(self.source, 0.0)
        if self.condition is None:
            numbers[self.row] = a - self.factor * b
        elif not (is_zero(a) and is_zero(b)):
            numbers[self.row], numbers[self.source] = select(self.condition, b, a), select(self.condition, a, b)

    def apply_adjoint(self, multipliers: dict[Row, Scalar]) -> None:
        """Multipliers of the original rows, from multipliers of the resulting rows."""
        if self.condition is not None:
            self.apply(multipliers)  # exchanges are their own adjoints
        else:
            before, after = multipliers.get(self.source, 0.0), multipliers.get(self.row, 0.0)
            multipliers[self.source] = before - self.factor * after


@dataclass
class _Pivot:
    """Row and slot of a pivot, its reciprocal, 1 if it vanishes and its coordinate is free, and the previous exchanges
    of slots."""

    row: Row
    slot: int
    reciprocal: Scalar
    indicator: Scalar
    exchanges: list[Exchange]


@dataclass(frozen=True)
class Solution:
    """K by rows and k, for every coordinate.  The first ``free`` columns of K always belong to independent coordinates;
    the others if their indicator is 1, otherwise they are zero.

    reliability    above 1 if all pivots are large enough: the smallest square of a pivot relative to the largest of its
                   front, and to the sufficient size there
    margin         positive if pivots are large enough; computed without a division
    firm           positive if no pivot vanishes that must not
    remaining      positive if implied constraints have no remainders, as for closed loops
    extremes       squares of the smallest and largest pivots of last fronts: far apart near singular positions
    rows, steps, pivots   the elimination: the resulting constraints, the steps on rows in order, the pivots
    gauge          the units in which pivots were compared
    plain_basis, plain_offset   K and k of dimensionless coordinates, up to a common factor
    """

    basis: Mapping[int, list[Scalar]]
    offset: Mapping[int, Scalar]
    free: int
    indicators: tuple[Scalar, ...]
    reliability: Scalar
    margin: Scalar
    firm: Scalar
    remaining: Scalar
    extremes: tuple[tuple[Scalar, Scalar], ...]
    rows: Mapping[int, Row]
    steps: Sequence[RowStep]
    pivots: Sequence[_Pivot]
    gauge: Gauge
    plain_basis: Mapping[int, list[Scalar]]
    plain_offset: Mapping[int, Scalar]

    def closing(self, rates: Mapping[int, Scalar]) -> dict[int, Scalar]:
        """L x by coordinate: the change that gives constraints the ``rates`` x, with the independent coordinates at
        rest."""
        numbers = {row: scaled(-rates[r], self.gauge.rows[r]) for r, row in self.rows.items()}
        for step in self.steps:
            step.apply(numbers)
        changes: dict[int, Scalar] = dict.fromkeys(self.basis, 0.0)
        for pivot in reversed(self.pivots):
            constant = numbers.get(pivot.row, 0.0)
            changes[pivot.slot] = -((constant + pivot.row.times(changes, without=pivot.slot)) * pivot.reciprocal)
            for first, other, condition in reversed(pivot.exchanges):
                (changes[first],), (changes[other],) = _choose(condition, [changes[first]], [changes[other]])
        return self.gauge.coordinates(changes)

    def multipliers(self, forces: Mapping[int, Scalar]) -> dict[int, Scalar]:
        """L* f by constraint: the multipliers with G* lambda = f, for forces on coordinates that do no work along K."""
        left = self.gauge.coordinates(forces)
        multipliers: dict[Row, Scalar] = {}
        for pivot in self.pivots:
            for first, other, condition in pivot.exchanges:
                (left[first],), (left[other],) = _choose(condition, [left[first]], [left[other]])
            multipliers[pivot.row] = multiplier = left[pivot.slot] * pivot.reciprocal
            for c, x in pivot.row.numbers.items():
                if c >= 0 and c != pivot.slot and not is_zero(x):
                    left[c] = left[c] - multiplier * x
        for step in reversed(self.steps):
            step.apply_adjoint(multipliers)
        return {r: scaled(multipliers.get(row, 0.0), self.gauge.rows[r]) for r, row in self.rows.items()}


class _Progress:
    """Elimination of one front. Slots are named by the coordinate that they hold before exchanges."""

    def __init__(
        self,
        rows: Sequence[Row],
        slots: list[int],
        front: Front,
        is_root: bool,
        threshold: float,
        vanishing: float,
        scales: list[Scalar],
        steps: list[RowStep],
    ):
        self.rows = [row for row in rows if any(not is_zero(x) for c, x in row.numbers.items() if c >= 0)]
        self.slots = slots
        self.threshold, self.vanishing = threshold, vanishing
        self.steps = steps
        self.pivots: list[_Pivot] = []
        self.remaining: list[Scalar] = []  # squares of remainders: of implied constraints, of negligible coefficients
        self.implied, self.by_rank = front.implied, front.by_rank
        self.smallest: Scalar = None
        self.smallest_firm: Scalar = None  # squares of pivots that must not vanish
        self.largest: Scalar = reduce(_greatest, scales) if scales else None
        every = front.pivots == len(slots) and not front.spare and not front.by_rank
        self.sufficient = SUFFICIENT if is_root and not every else SUFFICIENT_IF_FIXED
        for step in range(front.pivots):
            if self.by_rank and all(is_zero(self._largest_square(row)) for row in self.rows):
                break  # exact zeros
            self._eliminate(every, spare=front.by_rank or step >= front.pivots - front.spare)

    def _eliminate(self, every: bool, spare: bool) -> None:
        exchanges: list[Exchange] = []
        if every:  # all of these coordinates are eliminated, so their order is free: the best row for the next one
            slot = min(self.slots, key=lambda c: sum(not is_zero(row.at(c)) for row in self.rows))
            row = self._best_row([row.at(slot) * row.at(slot) for row in self.rows])
        else:  # the largest entry of all
            row = self._best_row([self._largest_square(row) for row in self.rows])
            slot = self._best_slot(row, exchanges)
        value = row.at(slot)
        reciprocal, indicator = self._reciprocal(value, spare)
        for other in self.rows:
            factor = other.numbers.pop(slot, 0.0)
            if not is_zero(factor):
                self._subtract(other, factor * reciprocal, row, without=slot)
        self.slots = [c for c in self.slots if c != slot]
        self.pivots.append(_Pivot(row, slot, reciprocal, indicator, exchanges))

    def _subtract(self, row: Row, factor: Scalar, source: Row, without: int | None = None) -> None:
        row.subtract(factor, source, without)
        self.steps.append(RowStep(row, source, factor))

    def _exchange(self, condition: Scalar, a: Row, b: Row) -> None:
        """The contents of two rows, exchanged if the condition holds."""
        for c in list(dict.fromkeys((*a.numbers, *b.numbers))):
            x, y = a.at(c), b.at(c)
            a.numbers[c], b.numbers[c] = select(condition, y, x), select(condition, x, y)
        self.steps.append(RowStep(a, b, condition=condition))

    def _reciprocal(self, value: Scalar, spare: bool) -> tuple[Scalar, Scalar]:
        """(1 / pivot, 0); or (0, 1) for a ``spare`` pivot that vanishes. Records the extremes of pivots."""
        square = value * value
        self.smallest = square if self.smallest is None else _least(self.smallest, square)
        if not spare:
            self.smallest_firm = self.smallest
        if self.largest is None or not spare:
            self.largest = square if self.largest is None else _greatest(self.largest, square)
        if is_constant(value) and not self.by_rank:
            return 1.0 / value, 0.0
        if not spare:  # a zero pivot needs no warning: the reliability reports it
            return 1.0 / select(0.0 < square, value, 1.0), 0.0
        kept = self.threshold**2 * self.largest < square
        return select(kept, 1.0 / select(kept, value, 1.0), 0.0), select(kept, 0.0, 1.0)

    def reliability(self) -> list[Scalar]:
        """Each above 1 if pivots are large, and constraints that they should imply have no remainders."""
        if self.by_rank:
            ratios = []
        elif self.smallest is self.largest:  # no other reference than the size of the loop
            ratios = [self.smallest * (1.0 / self.vanishing**2)]
        else:
            ratios = [self.smallest / (self.sufficient**2 * self.largest)]
        limit = self.implied**2 * self.largest
        return [*ratios, *(select(x < limit, 2.0, 0.0) for x in self.remaining if not is_zero(x))]

    def margin(self) -> Scalar:
        """Positive if pivots are large."""
        if self.by_rank:
            return 1.0
        alone = self.smallest is self.largest
        return self.smallest - (self.vanishing**2 if alone else self.largest * self.sufficient**2)

    def firm(self) -> list[Scalar]:
        """Positive if no pivot vanishes that must not."""
        if self.smallest_firm is None:
            return []
        alone = self.smallest_firm is self.largest
        return [self.smallest_firm - (self.vanishing**2 if alone else self.largest * self.threshold**2)]

    def margins_of_implied(self) -> list[Scalar]:
        """One number for each remainder of constraints that the pivots should imply: positive if it is negligible."""
        limit = self.implied**2 * self.largest
        return [limit - x for x in self.remaining if not is_zero(x)]

    def _largest_square(self, row: Row) -> Scalar:
        squares = [row.at(c) * row.at(c) for c in self.slots if not is_zero(row.at(c))]
        return reduce(_greatest, squares) if squares else 0.0

    def _best_row(self, keys: list[Scalar]) -> Row:
        """Remove and return the row with the largest key, by successive exchanges."""
        known = [i for i, key in enumerate(keys) if not is_zero(key)]
        if not known:
            raise ZeroDivisionError("no pivot is left: the constraints depend on each other for all states")
        if all(is_constant(keys[i]) for i in known):
            return self.rows.pop(max(known, key=lambda i: keys[i]))
        first = known[0]
        key = keys[first]
        for i in known[1:]:
            better = key < keys[i]
            key = select(better, keys[i], key)
            self._exchange(better, self.rows[first], self.rows[i])
        return self.rows.pop(first)

    def _best_slot(self, row: Row, exchanges: list[Exchange]) -> int:
        """Bring the largest entry of the pivot row to one slot, in all rows; returns the slot."""
        known = [c for c in self.slots if not is_zero(row.at(c))]
        if all(is_constant(row.at(c)) for c in known):
            return max(known, key=lambda c: abs(row.at(c)))
        first = known[0]
        key = row.at(first) * row.at(first)
        for c in known[1:]:
            square = row.at(c) * row.at(c)
            better = key < square
            key = select(better, square, key)
            exchanges.append((first, c, better))
            for candidate in (row, *self.rows):
                candidate.exchange(better, first, c)
        return first

    # -- constraints that are implied ---------------------------------------------------------------------

    def spread_remainders(self) -> None:
        """Spread remainders of implied constraints over the eliminated ones: with N the combinations of constraints
        that vanish, G - N (N* N)^-1 N* G replaces G."""
        for k, exchanges in enumerate([pivot.exchanges for pivot in self.pivots]):
            for before in self.pivots[:k]:  # all rows in the final order of slots
                for first, other, condition in exchanges:
                    before.row.exchange(condition, first, other)
        for pivot in self.pivots[1:]:
            self.pivots[0].exchanges.extend(pivot.exchanges)
            pivot.exchanges = []
        for pivot in self.pivots if self.by_rank else ():
            others = (*(other_pivot.row for other_pivot in self.pivots if other_pivot is not pivot), *self.rows)
            self._spread(pivot.row.beside_coordinates(), pivot.row, others, pivot.indicator)
        for k, rest in enumerate(self.rows):
            self.remaining.append(self._largest_square(rest))
            self._spread(rest, rest, (*(pivot.row for pivot in self.pivots), *self.rows[k + 1 :]))
        self.rows = []

    def _spread(self, rest: Row, source: Row, rows: Iterable[Row], share: Scalar = 1.0) -> None:
        """Subtract a ``share`` of the vanishing combination of constraints from rows."""
        combination = rest.combination()
        size = dot(combination, combination)
        for row in rows:
            factor = dot(row.combination(), combination) / size * share
            row.subtract(factor, rest)
            self.steps.append(RowStep(row, source, factor))


def _least(a: Scalar, b: Scalar) -> Scalar:
    return select(b < a, b, a)


def _least_of(values: Iterable[Scalar], most: float) -> Scalar:
    """The least of the numbers that depend on the state."""
    return reduce(_least, (x for x in values if not is_constant(x)), most)


def _greatest(a: Scalar, b: Scalar) -> Scalar:
    return select(a < b, b, a)


def eliminate(
    rows: Mapping[int, Row],
    columns: Sequence[int],
    fronts: Sequence[Front],
    units: ConstraintUnits | None = None,
    threshold: float = 1e-8,
    vanishing: float = VANISHING,
) -> Solution:
    """Solve the constraints for the coordinates ``columns``. Pivots are chosen in ``units``. ``threshold`` is for
    vanishing pivots, relative to the largest of the front; ``vanishing`` for a front's only pivot."""
    entering = {r: rows[r] for front in fronts for r in front.rows}
    gauge = Gauge(units or ConstraintUnits(), {r: row.numbers for r, row in entering.items()}, columns)
    entered = {r: row.scaled(gauge.rows[r], gauge.columns) for r, row in entering.items()}
    steps: list[RowStep] = []
    progress = _progress(entered, fronts, threshold, vanishing * gauge.pivot, steps)
    pivots = [pivot for block in progress for pivot in block.pivots]
    free = [c for c in columns if c not in {pivot.slot for pivot in pivots}]
    spares = [pivot for pivot in pivots if not is_zero(pivot.indicator)]
    size = len(free) + len(spares)
    basis: dict[int, list[Scalar]] = {c: [float(i == k) for i in range(size)] for k, c in enumerate(free)}
    offset: dict[int, Scalar] = dict.fromkeys(free, 0.0)
    for pivot in reversed(pivots):
        coefficients, constant = _substituted(pivot, basis, offset, size)
        if pivot in spares:
            coefficients[len(free) + spares.index(pivot)] = pivot.indicator
        basis[pivot.slot], offset[pivot.slot] = coefficients, constant
        for first, other, condition in reversed(pivot.exchanges):
            basis[first], basis[other] = _choose(condition, basis[first], basis[other])
            (offset[first],), (offset[other],) = _choose(condition, [offset[first]], [offset[other]])
    inner = {child for front in fronts for child in front.children}
    made = [block for block in progress if block.pivots]
    last = [block for k, block in enumerate(progress) if block.pivots and k not in inner]
    return Solution(
        {c: [scaled(x, gauge.columns[c]) for x in row] for c, row in basis.items()},
        gauge.coordinates(offset),
        len(free),
        tuple(pivot.indicator for pivot in spares),
        _least_of((x for block in made for x in block.reliability()), 2.0),
        _least_of((block.margin() for block in made), 1.0),
        _least_of((x for block in made for x in block.firm()), 1.0),
        _least_of((x for block in made for x in block.margins_of_implied()), 1.0),
        tuple((block.smallest, block.largest) for block in last if block.smallest is not block.largest),
        entered,
        steps,
        pivots,
        gauge,
        basis,
        offset,
    )


def _progress(
    rows: Mapping[int, Row], fronts: Sequence[Front], threshold: float, vanishing: float, steps: list[RowStep]
) -> list[_Progress]:
    """All fronts, eliminated; ``rows`` change, and ``steps`` records how."""
    progress: list[_Progress] = []
    inner = {child for front in fronts for child in front.children}
    tracked, gone = _implied(fronts), set[int]()
    for number, front in enumerate(fronts):
        children = [progress[child] for child in front.children]
        front_rows = [rows[r] for r in front.rows]
        for r, row in zip(front.rows, front_rows, strict=True):
            if r in tracked:
                row.numbers.update({BIAS - 1 - k: float(k == tracked[r]) for k in range(len(tracked))})
        entering = [*front_rows, *(row for child in children for row in child.rows)]
        slots = [*front.columns, *(slot for child in children for slot in child.slots)]
        # Constraints contain no coordinates of previous fronts except those left to this one, but for round-off.
        unknown = gone.difference(slots)
        negligible = [row.numbers.pop(c) for row in entering for c in sorted(unknown & row.numbers.keys())]
        gone.update(front.columns)
        scales = [child.largest for child in children if child.pivots]
        progress.append(_Progress(entering, slots, front, number not in inner, threshold, vanishing, scales, steps))
        progress[-1].remaining += (x * x for x in negligible if not is_zero(x))
        if number not in inner and (progress[-1].rows or front.by_rank):
            progress[-1].spread_remainders()
    return progress


def _implied(fronts: Sequence[Front]) -> dict[int, int]:
    """Constraints that may be partly implied by the others, numbered: those of fronts with fewer pivots than rows."""
    numbers: dict[int, int] = {}
    inner = {child for front in fronts for child in front.children}
    for number, front in enumerate(fronts):
        if number in inner:
            continue
        below, pending = [], [front]
        while pending:
            below.append(pending.pop())
            pending += (fronts[child] for child in below[-1].children)
        rows = [row for part in below for row in part.rows]
        if front.by_rank or len(rows) > sum(part.pivots for part in below):
            numbers.update({row: len(numbers) + k for k, row in enumerate(rows)})
    return numbers


def _substituted(
    pivot: _Pivot, basis: Mapping[int, Sequence[Scalar]], offset: Mapping[int, Scalar], size: int
) -> tuple[list[Scalar], Scalar]:
    """The pivot's coordinate in terms of the independent ones, and its constant part."""
    coefficients: list[Scalar] = [0.0] * size
    constant: Scalar = -(pivot.row.at(BIAS) * pivot.reciprocal)
    for c, x in pivot.row.numbers.items():
        if c >= 0 and c != pivot.slot and not is_zero(x):
            factor = x * pivot.reciprocal
            coefficients = [a - factor * b for a, b in zip(coefficients, basis[c], strict=True)]
            constant = constant - factor * offset[c]
    return coefficients, constant


def _choose(condition: Scalar, a: Iterable[Scalar], b: Iterable[Scalar]) -> tuple[list[Scalar], list[Scalar]]:
    """(b, a) if the condition holds, else (a, b)."""
    pairs = list(zip(a, b, strict=True))
    return [select(condition, y, x) for x, y in pairs], [select(condition, x, y) for x, y in pairs]
