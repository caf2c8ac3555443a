"""The equations g(q) = 0 as the data of a mechanism allow them to be met, and the iteration that closes loops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ..compiler.store import float64_function, kernel_function, stored
from ..dynamics import trees as tree
from ..mechanism import Mechanism
from ..mechanism.clusters import Cluster, clusters
from .decomposition import damped_solve, decompose
from .sizes import Sizes, sizes
from .tolerances import LOOPS

LARGEST_STEP = (
    0.5  # of a dimensionless coordinate, per iteration: linearized loops say little about what is further away
)
HOPELESS = 1e12  # damping beyond which no step makes the error smaller: a local minimum
PATIENCE = 20  # iterations after which the error must have halved, or it has settled above zero


class RoundedBlock(NamedTuple):
    """Constraints of a cluster of which no more than ``rank`` are independent: the others hold to rounding only.

    rows, columns   places in g and in v
    closure         dimensionless: the largest error |g| that rounding leaves
    """

    rows: np.ndarray
    columns: np.ndarray
    rank: int
    closure: float


class Parts:
    """Constraints that share no coordinate with others, and the coordinates that they depend on: each part is closed
    for itself, whatever the others do.

    count     of the parts
    loops     (count, number of loops): which loops are theirs
    columns   (nv,): which part a coordinate belongs to, ``count`` for those that no constraint depends on
    places    (nq,): the same of the numbers of q
    """

    def __init__(self, mech: Mechanism, more: Sequence[Sequence[int]] = ()):
        """``more`` are places in v that further rows, after those of the loops, depend on, one list for each."""
        tied = [
            ({*cluster.rows}, {*cluster.coordinates}, {*cluster.loops}) for cluster in clusters(mech) if cluster.rows
        ]
        for k, touched in enumerate(more):
            others = [part for part in tied if part[1].isdisjoint(touched)]
            joined = [part for part in tied if not part[1].isdisjoint(touched)]
            rows, columns, loops = (
                (set[int]().union(*sets) for sets in zip(*joined, strict=True)) if joined else [set()] * 3
            )
            tied = [*others, ({*rows, mech.n_constraints + k}, {*columns, *touched}, loops)]
        self.count = len(tied)
        self._rows = [np.array(sorted(rows)) for rows, _, _ in tied]
        self._columns = [np.array(sorted(columns), dtype=int) for _, columns, _ in tied]
        self._row_order, self._row_starts = _ordered(self._rows)
        self._column_order, self._column_starts = _ordered(self._columns)
        self.columns, self.places = np.full(mech.nv, self.count), np.full(mech.nq, self.count)
        self.loops = np.zeros((self.count, len(mech.loops)), dtype=bool)
        for number, (_, columns, loops) in enumerate(tied):
            self.columns[list(columns)], self.loops[number, list(loops)] = number, True
        for body in mech.bodies:
            self.places[mech.q_index(body.joint)] = self.columns[mech.v_index(body.joint).start]

    def norms(self, error: np.ndarray) -> np.ndarray:
        """(..., count): of the parts of an error (..., m)."""
        if not self.count:
            return np.zeros((*error.shape[:-1], 0))
        return np.sqrt(np.add.reduceat(error[..., self._row_order] ** 2, self._row_starts, axis=-1))

    def largest(self, change: np.ndarray) -> np.ndarray:
        """(..., count): the largest number of each part of a change (..., nv)."""
        return np.maximum.reduceat(np.abs(change[..., self._column_order]), self._column_starts, axis=-1)

    def at_columns(self, values: np.ndarray) -> np.ndarray:
        """(..., nv): the value (..., count) of its part for every coordinate, 0 for those of none."""
        return _with_zero(values)[..., self.columns]

    def at_places(self, values: np.ndarray) -> np.ndarray:
        """(..., nq): the same for every number of q."""
        return _with_zero(values)[..., self.places]

    def is_of(self, cluster: Cluster) -> np.ndarray:
        """(nq,): whether a number of q is one of this cluster, whose constraints belong to one part."""
        return self.places == (self.columns[cluster.coordinates[0]] if cluster.coordinates else -1)

    def damped(self, error: np.ndarray, jacobian: np.ndarray, damping: np.ndarray, which: np.ndarray) -> np.ndarray:
        """(..., nv): steps of Levenberg and Marquardt of the parts ``which`` (count,), 0 for others; ``damping`` is
        (..., count)."""
        change = np.zeros((*error.shape[:-1], jacobian.shape[-1]))
        alike: dict[tuple[int, int], list[int]] = {}
        for number in np.flatnonzero(which).tolist():
            alike.setdefault((len(self._rows[number]), len(self._columns[number])), []).append(number)
        for numbers in alike.values():
            rows, columns = (
                np.array([numbers_of_part[k] for k in numbers]) for numbers_of_part in (self._rows, self._columns)
            )
            blocks = jacobian[..., rows[:, :, None], columns[:, None, :]]
            change[..., columns] = damped_solve(blocks, error[..., rows], damping[..., numbers])
        return change


def _ordered(members: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Members one after the other, and where each begins."""
    order = np.concatenate([np.zeros(0, dtype=int), *members])
    return order, np.cumsum([0, *map(len, members)])[:-1]


def _with_zero(values: np.ndarray) -> np.ndarray:
    """(..., n + 1): values (..., n) with a zero at the end."""
    return np.append(values, np.zeros((*values.shape[:-1], 1), dtype=values.dtype), axis=-1)


@dataclass(frozen=True, eq=False)
class LoopEquations:
    """g and G of a mechanism, dimensionless, without the constraints that follow from others but for rounding.

    Where a block has the rank r, G is replaced by the nearest matrix of this rank, and g by its part in the range of
    that matrix: what data with errors of size eps say beyond it is of size eps, and cannot be satisfied.
    """

    mech: Mechanism
    sizes: Sizes
    blocks: tuple[RoundedBlock, ...] = ()

    @staticmethod
    def of(mech: Mechanism, blocks: Sequence[RoundedBlock] = ()) -> LoopEquations:
        return LoopEquations(mech, sizes(mech), tuple(blocks))

    @property
    def exact(self) -> float:
        """The error below which loops are closed exactly."""
        return max(LOOPS.closed, self.sizes.noise)

    def error(self, q: np.ndarray) -> np.ndarray:
        """(..., m): all of g."""
        return self.sizes.rows * float64_function(self.mech, "position_error")(q)

    def at(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(..., m), (..., m, nv): g and G, both without rounding."""
        error, jacobian = self.error(q), float64_function(self.mech, "constraint_jacobian")(q)
        jacobian *= self.sizes.rows[:, None]  # in place: many loops make it large
        jacobian *= self.sizes.columns
        return self._without_rounding(jacobian, error[..., None])[..., 0], self._without_rounding(jacobian, jacobian)

    @property
    def parts(self) -> Parts:
        """What is closed for itself."""
        return stored(self.mech.constraints.structure, Parts, lambda: Parts(self.mech.constraints.structure))

    def residual(self, q: np.ndarray) -> np.ndarray:
        """(..., m): g without rounding."""
        return self.at(q)[0] if self.blocks else self.error(q)

    def with_dimensions(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The same as ``at`` in metres and sines of angles, by the velocities as they are."""
        error, jacobian = self.at(q)
        return error / self.sizes.rows, jacobian / (self.sizes.rows[:, None] * self.sizes.columns)

    def without_rounding(self, jacobian: np.ndarray, of_constraints: np.ndarray | None = None) -> np.ndarray:
        """(..., m, k): of columns with one number per constraint, G by default, what is left without rounding; all as
        the kernels give it, with dimensions."""
        columns = jacobian if of_constraints is None else of_constraints
        if not self.blocks:
            return columns
        scale = self.sizes.rows[:, None]
        return self._without_rounding(scale * jacobian * self.sizes.columns, scale * columns) / scale

    def _without_rounding(self, jacobian: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """(..., m, k): U1 U1* times columns, the projection on the range of the nearest matrix of the rank that each
        block of G has; the other rows as they are.  All dimensionless."""
        if not self.blocks:
            return columns
        projected = np.array(np.broadcast_to(columns, (*jacobian.shape[:-1], columns.shape[-1])))
        for block in self.blocks:
            u = decompose(jacobian[..., block.rows[:, None], block.columns], 0.0).u[..., : block.rank]
            projected[..., block.rows, :] = u @ (np.swapaxes(u, -1, -2) @ columns[..., block.rows, :])
        return projected

    def open_by(self, q: np.ndarray) -> np.ndarray:
        """(...): the norm of g without rounding, of the part that is open the furthest."""
        return self.parts.norms(self.residual(q)).max(axis=-1, initial=0.0)

    def is_closed(self, q: np.ndarray, tolerance: float) -> np.ndarray:
        """(...): whether all loops are, to the tolerance or to what rounding leaves, of positions and of data."""
        return np.asarray(self.are_closed(q, tolerance).all(axis=-1))

    def are_closed(self, q: np.ndarray, tolerance: float) -> np.ndarray:
        """(..., parts): whether all loops of each part are closed."""
        closed = self.parts.norms(self.residual(q)) <= max(tolerance, self.sizes.noise)
        error = self.error(q) if self.blocks else None
        for block in self.blocks:
            assert error is not None
            near = np.linalg.norm(error[..., block.rows], axis=-1) <= block.closure
            closed[..., self.parts.columns[block.columns[0]]] &= near
        return closed

    def alignments(self, q: np.ndarray) -> np.ndarray:
        """(..., loops): cosines of the angles between the two sides; where loops are closed 1, or -1 back to back."""
        if not self.mech.loops:
            return np.ones((*q.shape[:-1], 0))
        return kernel_function(self.mech, "loop_alignments")(q)

    def are_aligned(self, q: np.ndarray) -> np.ndarray:
        """(..., parts): whether no loop of each part is back to back."""
        return np.asarray(~(~(self.alignments(q) > 0.0) @ self.parts.loops.T))

    def is_nearly_closed(self, q: np.ndarray) -> np.ndarray:
        """(...): whether the error of every rounded block is no more than its data explain."""
        near = np.ones(q.shape[:-1], dtype=bool)
        error = self.error(q) if self.blocks else near
        for block in self.blocks:
            near = near & (np.linalg.norm(error[..., block.rows], axis=-1) <= block.closure)
        return near


class Goal(NamedTuple):
    """How far loops are to be closed: in ``max_steps`` to errors below ``tolerance``, and on to ``aim`` while the error
    halves, about round-off by default."""

    max_steps: int
    tolerance: float = LOOPS.closed
    aim: float | None = None

    @property
    def finest(self) -> float:
        """The aim, given or not."""
        return LOOPS.aim * self.tolerance if self.aim is None else self.aim


def closed_by(
    equations: LoopEquations,
    q: np.ndarray,
    goal: Goal,
    free: np.ndarray | None = None,
    kept: Sequence[int] = (),
) -> np.ndarray:
    """The best configurations found from q (..., nq) by moving the velocities that are ``free`` (nv,), all by default,
    closed or not; the numbers of q in the places ``kept`` stay as they are.

    Levenberg-Marquardt on the configuration manifold: every step makes the error smaller, none moves a dimensionless
    coordinate by more than half a unit.  Steps are the shortest of dimensionless coordinates.  Parts that share no
    coordinate do not wait for each other.  Far from closed, constraints that are redundant but for rounding say as much
    as others and are needed: they are left out where the error is what they can be satisfied to.
    """
    free = np.ones(equations.mech.nv, dtype=bool) if free is None else free
    if equations.blocks and not np.all(near := equations.is_nearly_closed(q)):
        unblocked = replace(equations, blocks=())
        closure = 0.5 * min(block.closure for block in equations.blocks)
        roughly = Goal(goal.max_steps, closure, closure)
        q = np.where(near[..., None], q, _iterated(unblocked, q, roughly, free, kept))
    return _iterated(equations, q, goal, free, kept)


def _iterated(equations: LoopEquations, q: np.ndarray, goal: Goal, free: np.ndarray, kept: Sequence[int]) -> np.ndarray:
    shape, q = q.shape, np.array(q, dtype=float).reshape(-1, q.shape[-1])
    aim, tolerance, parts = goal.finest, max(goal.tolerance, equations.sizes.noise), equations.parts
    size = parts.norms(equations.residual(q))
    damping = np.ones_like(size)
    earlier, settled = size.copy(), np.zeros(size.shape, dtype=bool)
    for iteration in range(goal.max_steps):
        if iteration and iteration % PATIENCE == 0:
            earlier, settled = size.copy(), settled | (size > 0.5 * earlier)
        active = (size > aim) & (damping < HOPELESS) & ~settled
        states = np.flatnonzero(active.any(axis=-1))
        if not len(states):
            break
        here, going = q[states], active[states]
        error, jacobian = equations.at(here)
        jacobian[..., np.flatnonzero(~equations.mech.constraints.holonomic_rows), :] = (
            0.0  # a search may go where no wheel rolls
        )
        # Damping in proportion to the error keeps convergence quadratic, and redundant constraints from causing motion.
        jacobian *= free
        if len(kept):
            jacobian = jacobian @ _leaving(equations, here, free, kept)
        change = -parts.damped(error, jacobian, (damping * size)[states], np.any(going, axis=0))
        shorter = np.minimum(1.0, LARGEST_STEP / np.maximum(parts.largest(change), LARGEST_STEP))
        change *= parts.at_columns(shorter * going) * free
        moved = tree.integrate(equations.mech, here, equations.sizes.columns * change, 1.0)
        moved[..., kept] = here[..., kept]
        there, before = parts.norms(equations.residual(moved)), size[states]
        better = going & (there < np.where(before <= tolerance, 0.5, 1.0) * before)
        settled[states] |= going & ~better & (before <= tolerance)
        q[states], size[states] = np.where(parts.at_places(better), moved, here), np.where(better, there, before)
        stiffer = np.where(going, np.maximum(damping[states] * 10.0, 1e-3), damping[states])
        damping[states] = np.where(better, damping[states] * 0.2, stiffer)
    return q.reshape(shape)


def _leaving(equations: LoopEquations, q: np.ndarray, free: np.ndarray, kept: Sequence[int]) -> np.ndarray:
    """(..., nv, nv): the projection on free changes that leave the numbers of q in the places ``kept``."""
    every = np.eye(equations.mech.nv)
    rates = tree.coordinate_rates(equations.mech, q[..., None, :], every)[..., list(kept)]
    rows = np.swapaxes(rates, -1, -2) * equations.sizes.columns * free
    return every - np.linalg.pinv(rows) @ rows
