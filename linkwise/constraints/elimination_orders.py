"""Elimination orders of loops, decided once per mechanism from its constraints at sample configurations.

The coordinates of a constraint, the number of independent constraints and the safely large pivots are properties of the
mechanism.  Compiled dynamics use them, and choose other pivots by the state.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ..compiler.store import float64_function, stored
from ..dynamics import trees as tree
from ..dynamics.states import Float64Array
from ..mechanics.links.constraint_units import ConstraintUnits
from ..mechanics.links.loop_elimination import SMALL, Front, Fronts, SweepOrder
from ..mechanism import Mechanism
from ..mechanism.clusters import Cluster, clusters
from .assembly import AssemblyError, assemble
from .decomposition import DECOMPOSED, damped_solve, times
from .redundancy import Redundancy, redundancy
from .sizes import sizes, units_of_pivots
from .sweep_orders import cheapest_order, costs_more
from .tolerances import LOOPS

SAMPLES = 16
ITERATIONS = 25  # Gauss-Newton iterations to close loops at sample configurations, at most
SETTLED = 1e-13  # rad, sizes of loops: steps that are smaller are round-off
SPREAD = 0.4  # rad, sizes of loops: distance of sample configurations from an assembled one
NEGLIGIBLE = 1e-10  # of the largest entry: entries that are smaller at all samples are round-off
SAFE = 0.1  # of the largest entry of a front: pivots that are larger at all samples need no alternative
ROUNDING = 30.0  # times the errors of closed loops: an upper bound of singular values by rounding
IMPLIED = 1e-6  # of the largest pivot: largest remainder of redundant constraints
WORTH_IT = 1.3  # ratio of operations: a sweep is chosen if elimination costs more, which is more robust


def fronts(mech: Mechanism) -> Fronts:
    """The fronts of every cluster, kept with the mechanism."""
    return stored(
        mech.constraints.structure,
        fronts,
        lambda: _fronts(
            mech.constraints.structure, _start(mech.constraints.structure), redundancy(mech.constraints.structure)
        ),
    )


def _start(mech: Mechanism) -> Float64Array:
    """(nq,): a configuration with generic ranks, see ``Redundancy.around``."""
    return np.array(redundancy(mech).around or mech.initial, dtype=float)


def fronts_around(mech: Mechanism, q: Float64Array) -> Fronts:
    """The fronts for configurations around q (nq,), on a component of the configuration space with another number of
    independent constraints."""
    return _fronts(mech, q, redundancy(mech, q))


def independent_places(mech: Mechanism, around: Float64Array | None = None) -> tuple[int, ...] | None:
    """Indices of independent velocities that determine the others well at all configurations around ``around``, by
    default the initial one: pivots of K with the largest product over these.  None without constraints."""
    if not mech.loops:
        return None
    if around is not None:
        return _independent_places(mech, around, fronts_around(mech, around))
    return stored(
        mech.constraints.structure,
        independent_places,
        lambda: _independent_places(mech.constraints.structure, _start(mech.constraints.structure), fronts(mech)),
    )


def _independent_places(mech: Mechanism, start: Float64Array, order: Fronts) -> tuple[int, ...]:
    jacobian = _closed_jacobians(mech, start)
    return _pivots(np.swapaxes(np.linalg.svd(jacobian)[2][:, order.pivots :], -1, -2))


def independent_rows(mech: Mechanism) -> tuple[int, ...]:
    """Indices of constraints that determine the dependent velocities well, see ``independent_places``."""
    free = independent_places(mech) or ()
    return _pivots(np.delete(_closed_jacobians(mech, mech.initial), free, axis=-1))


def _closed_jacobians(mech: Mechanism, start: Float64Array) -> Float64Array:
    """(k, m, nv): dimensionless G at sample configurations around a start: the assembled ones, or all if none is."""
    guesses, q, errors = _samples(mech, start, ROUNDING * redundancy(mech).rounding)
    is_closed = np.abs(errors).max(axis=-1) < LOOPS.open_in_derivatives
    return _dimensionless(mech, q[is_closed] if is_closed.any() else guesses)[1]


def _pivots(matrices: Float64Array) -> tuple[int, ...]:
    """Indices of p rows that span the rows of matrices (samples, n, p) well at all samples: one by one the row with the
    largest product of sizes over the samples."""
    left, pivots = matrices, list[int]()
    for _ in range(matrices.shape[-1]):
        lengths = np.sqrt(np.sum(left**2, axis=-1))
        pivots.append(int(np.argmax(np.log(lengths + LOOPS.rank).sum(axis=0))))
        direction = left[:, pivots[-1]] / np.maximum(lengths[:, pivots[-1], None], LOOPS.rank)
        left = left - (left @ direction[..., None]) * direction[:, None]
    return tuple(sorted(pivots))


def _samples(mech: Mechanism, start: Float64Array, rounding: float) -> tuple[Float64Array, Float64Array, Float64Array]:
    """``_configurations`` around a start, or around an assembled configuration near it."""
    least = max(LOOPS.rank, rounding)
    guesses, q, errors = _configurations(mech, start, least)
    gap = max(LOOPS.open_in_derivatives, rounding)
    if not (np.abs(errors).max(axis=-1) < gap).any():  # the start may be far from assembled configurations
        with contextlib.suppress(AssemblyError):
            return _configurations(mech, assemble(mech, start), least)
    return guesses, q, errors


def _fronts(mech: Mechanism, start: Float64Array, known: Redundancy) -> Fronts:
    tied = clusters(mech)
    if not mech.loops:
        return Fronts(((),) * len(tied))
    rounding = ROUNDING * known.rounding
    gap = max(LOOPS.open_in_derivatives, rounding)
    guesses, q, errors = _samples(mech, start, rounding)
    opened, samples = (_dimensionless(mech, x)[1] for x in (guesses, q))
    fronts: list[tuple[Front, ...]] = []
    sweeps: list[SweepOrder | None] = []
    units = units_of_pivots(mech)
    for cluster, rank in zip(tied, known.cluster_ranks, strict=True):
        is_closed = np.abs(errors[:, cluster.rows]).max(axis=-1, initial=0.0) < gap
        there, around = (x[:, cluster.rows][:, :, cluster.coordinates] for x in (samples, opened))
        closed = there[is_closed] if is_closed.any() else around
        order = _Order(mech, cluster, np.concatenate([closed, around]), len(closed), rank, rounding)
        fronts.append(tuple(order.fronts))
        sweeps.append(_sweep(mech, cluster, rank, fronts[-1], units, np.concatenate([q[is_closed], guesses])))
    return Fronts(tuple(fronts), units, tuple(sweeps) if any(sweeps) else ())


def _sweep(
    mech: Mechanism, cluster: Cluster, rank: int, fronts: tuple[Front, ...], units: ConstraintUnits, q: Float64Array
) -> SweepOrder | None:
    """The order of a sweep over links and multipliers if it costs less than ``own``, the elimination of coordinates.

    None for small clusters, massless links and redundant constraints, which elimination handles.
    """
    rows = [r for r in cluster.rows if sizes(mech).structural[r]]
    if len(cluster.coordinates) <= SMALL or not rows or rank != len(rows) or mech.parameters.singular_joints:
        return None
    if any(block.rows[0] in cluster.rows for block in redundancy(mech).blocks):
        return None
    order = cheapest_order(mech, cluster, q, rows, units)
    if order is None or not costs_more(mech, cluster, fronts, units, q, WORTH_IT * order[1]):
        return None
    return order[0]


def _dimensionless(mech: Mechanism, q: Float64Array) -> tuple[Float64Array, Float64Array]:
    """(k, m), (k, m, nv): the errors and G at configurations, lengths in units of the loops' sizes."""
    error, jacobian = (float64_function(mech, name)(q) for name in ("position_error", "constraint_jacobian"))
    return sizes(mech).rows * error, sizes(mech).dimensionless(jacobian)


def _configurations(
    mech: Mechanism, start: Float64Array, least: float
) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Configurations around ``start``; these with loops closed cluster by cluster if possible; and the remaining
    dimensionless errors.  Singular values of G below ``least`` count as zero."""
    columns, structural = sizes(mech).columns, sizes(mech).structural
    changes = SPREAD * np.random.default_rng(0).uniform(-1.0, 1.0, (SAMPLES, mech.nv)) * columns
    guesses = tree.integrate(mech, start, np.concatenate([np.zeros((1, mech.nv)), changes]), 1.0)
    q = guesses.copy()
    moving = np.arange(len(q))
    for _ in range(ITERATIONS):
        error, jacobian = _dimensionless(mech, q[moving])
        step = np.zeros((len(moving), mech.nv))
        for cluster in clusters(mech):
            rows = [r for r in cluster.rows if structural[r]]
            if rows:
                block = jacobian[:, rows][:, :, cluster.coordinates]
                step[:, cluster.coordinates] = -_least_change(block, error[:, rows], least)
        step *= np.minimum(1.0, SPREAD / np.maximum(np.abs(step).max(axis=-1, keepdims=True), 1e-300))
        q[moving] = tree.integrate(mech, q[moving], step * columns, 1.0)
        moving = moving[np.abs(step).max(axis=-1, initial=0.0) > SETTLED]
        if not len(moving):
            break
    return guesses, q, _dimensionless(mech, q)[0]


def _least_change(jacobian: Float64Array, error: Float64Array, least: float) -> Float64Array:
    """(k, n): the least solution of G (k, m, n) x = error (k, m).  Singular values below ``least`` count as zero; with
    many constraints, all are damped by the error."""
    if jacobian.shape[1] <= DECOMPOSED:
        return times(np.linalg.pinv(jacobian, rcond=least), error)
    return damped_solve(jacobian, error, (least * np.linalg.norm(error, axis=-1)) ** 2)


@dataclass(eq=False)
class _Group:
    """Constraints that are eliminated together, at every sample: rows over all coordinates of the cluster."""

    rows: list[int]  # rows that are not in a front yet
    matrices: list[Float64Array]
    waiting: list[int]  # coordinates left to the parent
    children: tuple[int, ...] = ()

    def columns(self, negligible: float) -> set[int]:
        """Coordinates that the constraints depend on."""
        if self._columns is None:
            self._columns = set()
            if self.matrices[0].size:
                largest = np.max([np.abs(matrix) for matrix in self.matrices], axis=(0, 1))
                self._columns = {*np.flatnonzero(largest > negligible * largest.max()).tolist()}
        return self._columns

    _columns: set[int] | None = None


class _Order:
    """The fronts of one cluster.

    samples    the cluster's part of G at sample configurations, the first ``closed`` of them assembled
    rank       number of independent constraints
    rounding   relative to the largest entry: bound of rounding of the data
    """

    def __init__(
        self, mech: Mechanism, cluster: Cluster, samples: Float64Array, closed: int, rank: int, rounding: float
    ):
        self.cluster, self.closed, self.rank = cluster, closed, rank
        self.negligible, self.least = max(NEGLIGIBLE, rounding), max(LOOPS.rank, rounding)
        self.implied = max(IMPLIED, rounding)
        self.fronts: list[Front] = []
        sizes = np.abs(samples).max(axis=(0, 2))
        kept = [k for k, size in enumerate(sizes) if size > self.negligible * sizes.max()]
        groups = []
        for number in cluster.loops:
            within = mech.constraints.rows(mech.loops[number].name)
            members = [k for k in kept if within.start <= cluster.rows[k] < within.stop]
            if members:
                groups.append(_Group([cluster.rows[k] for k in members], [matrix[members] for matrix in samples], []))
        while groups:
            groups = self._merge([rest for group in groups for rest in self._eliminate(group, groups)])

    def _columns(self, group: _Group) -> set[int]:
        return group.columns(self.negligible)

    def _eliminate(self, group: _Group, groups: list[_Group]) -> Iterable[_Group]:
        """Add the front of a group; returns its remaining constraints as a group, if any."""
        shared = set().union(*(self._columns(other) for other in groups if other is not group))
        columns = self._columns(group)
        private = sorted(columns - shared)
        is_root = not columns & shared
        pivots = self._independent(group, groups) if is_root else self._safe_pivots(group, private)
        if not is_root and not pivots:
            return [group]
        names = tuple(self.cluster.coordinates[c] for c in private if c not in group.waiting)
        spare = min(pivots, 1) if is_root and len(self.cluster.coordinates) <= SMALL else 0
        self.fronts.append(Front(tuple(group.rows), names, pivots, group.children, spare, self.implied))
        if is_root:
            return []
        matrices = [_reduce(matrix, private, pivots, self.negligible)[0] for matrix in group.matrices]
        return [_Group([], matrices, private, (len(self.fronts) - 1,))] if len(matrices[0]) else []

    def _merge(self, groups: list[_Group]) -> list[_Group]:
        """Merge the groups that share the coordinate with the fewest groups."""
        counts = Counter(c for group in groups for c in self._columns(group))
        shared = [c for c, count in counts.items() if count > 1]
        if not shared:
            return groups
        chosen = min(shared, key=lambda c: (counts[c], c))
        together = [group for group in groups if chosen in self._columns(group)]
        merged = _Group(
            [row for group in together for row in group.rows],
            [np.concatenate(parts) for parts in zip(*(group.matrices for group in together), strict=True)],
            [c for group in together for c in group.waiting],
            tuple(child for group in together for child in group.children),
        )
        return [merged, *(group for group in groups if group not in together)]

    def _independent(self, group: _Group, groups: list[_Group]) -> int:
        """Number of constraints that are independent on the manifold; for the last group, the rest of the rank."""
        left = self.rank - sum(front.pivots for front in self.fronts)
        if len(groups) == 1:
            return min(left, len(group.matrices[0]), len(self._columns(group)))
        values = [np.linalg.svd(matrix, compute_uv=False) for matrix in group.matrices[: self.closed]]
        rank = max(int(np.sum(s > self.least * s.max(initial=0.0))) for s in values)
        return min(rank, left)

    def _safe_pivots(self, group: _Group, private: list[int]) -> int:
        """Number of private coordinates that can be eliminated with large pivots at all samples."""
        most = min(len(private), len(group.matrices[0]))
        pivots = [_reduce(matrix, private, most, self.negligible)[1] for matrix in group.matrices[: self.closed]]
        return int(min((np.sum(sizes > SAFE) for sizes in pivots), default=0))


def _reduce(
    matrix: Float64Array, columns: list[int], steps: int, negligible: float
) -> tuple[Float64Array, Float64Array]:
    """A matrix after this many elimination steps with complete pivoting among ``columns``, without the pivot rows; and
    the pivots relative to the largest entry of their rows.  Pivots may vanish at a sample with open loops and links in
    one line: then the smallest rows are dropped."""
    rest, pivots = matrix.copy(), []
    for _ in range(steps):
        sizes = np.abs(rest[:, columns])
        row, column_index = np.unravel_index(np.argmax(sizes), sizes.shape)
        column = columns[column_index]
        scale = np.abs(rest).max()
        if not sizes[row, column_index] > negligible * scale:
            break
        pivots.append(sizes[row, column_index] / scale)
        taken = rest[row]
        rest = np.delete(rest - np.outer(rest[:, column] / taken[column], taken), row, axis=0)
        rest[:, column] = 0.0
    missing = steps - len(pivots)
    if missing:
        rest = rest[np.sort(np.argsort(-np.abs(rest).max(axis=1, initial=0.0), kind="stable")[: len(rest) - missing])]
    return rest, np.array(pivots)
