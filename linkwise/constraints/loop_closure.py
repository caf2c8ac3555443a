"""The loop equations g(q) = 0 up to the rounding of the data, and the iteration that closes loops."""

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

LARGEST_STEP = 0.5  # of a dimensionless coordinate, per iteration: linearized loops are inaccurate further away
HOPELESS = 1e12  # damping beyond which no step reduces the error: a local minimum
PATIENCE = 20  # iterations after which the error must have halved, or it has settled above zero


class RoundedBlock(NamedTuple):
    """Constraints of a cluster with at most ``rank`` independent ones; the others hold up to rounding only.

    rows, columns   indices of g and of v
    closure         largest dimensionless error |g| by rounding
    """

    rows: np.ndarray
    columns: np.ndarray
    rank: int
    closure: float


class Parts:
    """Independent parts of the constraints, without shared coordinates: each is closed separately.

    count     number of parts
    loops     (count, number of loops): whether a loop belongs to a part
    columns   (nv,): part of each velocity, ``count`` if no constraint depends on it
    places    (nq,): part of each number of q
    """

    def __init__(self, mech: Mechanism, more: Sequence[Sequence[int]] = ()):
        """``more``: for each further row after those of the loops, the indices of v that it depends on."""
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
        """(..., count): norm of an error (..., m) in each part."""
        if not self.count:
            return np.zeros((*error.shape[:-1], 0))
        return np.sqrt(np.add.reduceat(error[..., self._row_order] ** 2, self._row_starts, axis=-1))

    def largest(self, change: np.ndarray) -> np.ndarray:
        """(..., count): largest entry of a change (..., nv) in each part."""
        return np.maximum.reduceat(np.abs(change[..., self._column_order]), self._column_starts, axis=-1)

    def spread_to_velocities(self, values: np.ndarray) -> np.ndarray:
        """(..., nv): values (..., count) of parts spread to their velocities, 0 for velocities of no part."""
        return _append_zero(values)[..., self.columns]

    def spread_to_positions(self, values: np.ndarray) -> np.ndarray:
        """(..., nq): values (..., count) of parts spread to their numbers of q, 0 for numbers of no part."""
        return _append_zero(values)[..., self.places]

    def is_of(self, cluster: Cluster) -> np.ndarray:
        """(nq,): whether a number of q belongs to this cluster, whose constraints are in one part."""
        return self.places == (self.columns[cluster.coordinates[0]] if cluster.coordinates else -1)

    def damped(self, error: np.ndarray, jacobian: np.ndarray, damping: np.ndarray, which: np.ndarray) -> np.ndarray:
        """(..., nv): Levenberg-Marquardt steps of the parts ``which`` (count,), 0 for others; ``damping`` is (...,
        count)."""
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
    """The members concatenated, and the index at which each begins."""
    order = np.concatenate([np.zeros(0, dtype=int), *members])
    return order, np.cumsum([0, *map(len, members)])[:-1]


def _append_zero(values: np.ndarray) -> np.ndarray:
    """(..., n + 1): values (..., n) with a zero at the end."""
    return np.append(values, np.zeros((*values.shape[:-1], 1), dtype=values.dtype), axis=-1)


@dataclass(frozen=True, eq=False)
class LoopEquations:
    """Dimensionless g and G of a mechanism, without constraints that are redundant up to rounding.

    In a block of rank r, G is replaced by the nearest matrix of this rank, and g by its part in the range of that
    matrix. For data with errors of size eps the rest is of size eps, and cannot be satisfied.
    """

    mech: Mechanism
    sizes: Sizes
    blocks: tuple[RoundedBlock, ...] = ()

    @staticmethod
    def of(mech: Mechanism, blocks: Sequence[RoundedBlock] = ()) -> LoopEquations:
        return LoopEquations(mech, sizes(mech), tuple(blocks))

    @property
    def exact(self) -> float:
        """The error below which loops count as closed exactly."""
        return max(LOOPS.closed, self.sizes.noise)

    def error(self, q: np.ndarray) -> np.ndarray:
        """(..., m): g including rounding."""
        return self.sizes.rows * float64_function(self.mech, "position_error")(q)

    def at(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(..., m), (..., m, nv): g and G, both without rounding."""
        error, jacobian = self.error(q), float64_function(self.mech, "constraint_jacobian")(q)
        jacobian *= self.sizes.rows[:, None]  # in place: it is large with many loops
        jacobian *= self.sizes.columns
        return self._without_rounding(jacobian, error[..., None])[..., 0], self._without_rounding(jacobian, jacobian)

    @property
    def parts(self) -> Parts:
        """The independent parts."""
        return stored(self.mech.constraints.structure, Parts, lambda: Parts(self.mech.constraints.structure))

    def residual(self, q: np.ndarray) -> np.ndarray:
        """(..., m): g without rounding."""
        return self.at(q)[0] if self.blocks else self.error(q)

    def with_dimensions(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """g and G without rounding, as ``at``, in metres and sines of angles."""
        error, jacobian = self.at(q)
        return error / self.sizes.rows, jacobian / (self.sizes.rows[:, None] * self.sizes.columns)

    def without_rounding(self, jacobian: np.ndarray, of_constraints: np.ndarray | None = None) -> np.ndarray:
        """(..., m, k): columns with one number per constraint, G by default, without their part due to rounding.
        All have the dimensions of the kernels."""
        columns = jacobian if of_constraints is None else of_constraints
        if not self.blocks:
            return columns
        scale = self.sizes.rows[:, None]
        return self._without_rounding(scale * jacobian * self.sizes.columns, scale * columns) / scale

    def _without_rounding(self, jacobian: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """(..., m, k): U1 U1* columns, the projection of each block on the range of the nearest matrix of its rank;
        other rows are unchanged.  All dimensionless."""
        if not self.blocks:
            return columns
        projected = np.array(np.broadcast_to(columns, (*jacobian.shape[:-1], columns.shape[-1])))
        for block in self.blocks:
            u = decompose(jacobian[..., block.rows[:, None], block.columns], 0.0).u[..., : block.rank]
            projected[..., block.rows, :] = u @ (np.swapaxes(u, -1, -2) @ columns[..., block.rows, :])
        return projected

    def open_by(self, q: np.ndarray) -> np.ndarray:
        """(...): the norm of g without rounding in the part with the largest error."""
        return self.parts.norms(self.residual(q)).max(axis=-1, initial=0.0)

    def is_closed(self, q: np.ndarray, tolerance: float) -> np.ndarray:
        """(...): whether all loops are closed, to the tolerance or to the rounding of positions and data."""
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
        """(..., loops): cosine of the angle between the two sides; 1 for closed loops, -1 for loops closed back to
        back."""
        if not self.mech.loops:
            return np.ones((*q.shape[:-1], 0))
        return kernel_function(self.mech, "loop_alignments")(q)

    def are_aligned(self, q: np.ndarray) -> np.ndarray:
        """(..., parts): whether no loop of each part is back to back."""
        return np.asarray(~(~(self.alignments(q) > 0.0) @ self.parts.loops.T))

    def is_nearly_closed(self, q: np.ndarray) -> np.ndarray:
        """(...): whether the error of every rounded block is within the rounding of its data."""
        near = np.ones(q.shape[:-1], dtype=bool)
        error = self.error(q) if self.blocks else near
        for block in self.blocks:
            near = near & (np.linalg.norm(error[..., block.rows], axis=-1) <= block.closure)
        return near


class Goal(NamedTuple):
    """Stopping criteria: at most ``max_steps`` to errors below ``tolerance``, then on to ``aim`` while the error
    halves; about round-off by default."""

    max_steps: int
    tolerance: float = LOOPS.closed
    aim: float | None = None

    @property
    def finest(self) -> float:
        """The aim, or its default."""
        return LOOPS.aim * self.tolerance if self.aim is None else self.aim


def close_loops(
    equations: LoopEquations,
    q: np.ndarray,
    goal: Goal,
    free: np.ndarray | None = None,
    kept: Sequence[int] = (),
) -> np.ndarray:
    """The configurations with the least error found from q (..., nq), closed or not.

    Only ``free`` velocities (nv,) move, all by default; numbers of q with indices ``kept`` stay unchanged.
    Levenberg-Marquardt on the configuration manifold: every step reduces the error, and moves no dimensionless
    coordinate by more than half a unit.  Steps are the shortest in dimensionless coordinates, separately in each part.
    Constraints redundant up to rounding are needed far from closure; they are left out once the error is at their
    rounding.
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
            0.0  # the search ignores rolling constraints
        )
        # Damping proportional to the error keeps convergence quadratic, and redundant constraints cause no motion.
        jacobian *= free
        if len(kept):
            jacobian = jacobian @ _leaving(equations, here, free, kept)
        change = -parts.damped(error, jacobian, (damping * size)[states], np.any(going, axis=0))
        shorter = np.minimum(1.0, LARGEST_STEP / np.maximum(parts.largest(change), LARGEST_STEP))
        change *= parts.spread_to_velocities(shorter * going) * free
        moved = tree.integrate(equations.mech, here, equations.sizes.columns * change, 1.0)
        moved[..., kept] = here[..., kept]
        there, before = parts.norms(equations.residual(moved)), size[states]
        better = going & (there < np.where(before <= tolerance, 0.5, 1.0) * before)
        settled[states] |= going & ~better & (before <= tolerance)
        q[states], size[states] = (
            np.where(parts.spread_to_positions(better), moved, here),
            np.where(better, there, before),
        )
        stiffer = np.where(going, np.maximum(damping[states] * 10.0, 1e-3), damping[states])
        damping[states] = np.where(better, damping[states] * 0.2, stiffer)
    return q.reshape(shape)


def _leaving(equations: LoopEquations, q: np.ndarray, free: np.ndarray, kept: Sequence[int]) -> np.ndarray:
    """(..., nv, nv): the projection on free changes that keep the numbers of q with indices ``kept``."""
    every = np.eye(equations.mech.nv)
    rates = tree.coordinate_rates(equations.mech, q[..., None, :], every)[..., list(kept)]
    rows = np.swapaxes(rates, -1, -2) * equations.sizes.columns * free
    return every - np.linalg.pinv(rows) @ rows
