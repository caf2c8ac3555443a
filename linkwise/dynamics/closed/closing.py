"""The equations g(q) = 0 as the data of a mechanism allow them to be met, and the iteration that closes loops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ...compiler.store import kernel_function
from ...mechanism import Mechanism
from .. import trees as tree
from .decomposition import decompose, times
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
        return self.sizes.rows * kernel_function(self.mech, "position_error", None)(q)

    def at(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(..., m), (..., m, nv): g and G, both without rounding."""
        error, jacobian = self.error(q), kernel_function(self.mech, "constraint_jacobian", None)(q)
        jacobian = self.sizes.rows[:, None] * jacobian * self.sizes.columns
        if not self.blocks:
            return error, jacobian
        kept = self._independent_part(jacobian)
        return times(kept, error), kept @ jacobian

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
        kept = self._independent_part(scale * jacobian * self.sizes.columns)
        return (kept @ (scale * columns)) / scale

    def _independent_part(self, jacobian: np.ndarray) -> np.ndarray:
        """(..., m, m): U1 U1*, the projection on the range of the nearest matrix of the rank that each block has."""
        kept = np.broadcast_to(np.eye(len(self.sizes.rows)), (*jacobian.shape[:-1], jacobian.shape[-2])).copy()
        for block in self.blocks:
            u = decompose(jacobian[..., block.rows[:, None], block.columns], 0.0).u[..., : block.rank]
            kept[..., block.rows[:, None], block.rows] = u @ np.swapaxes(u, -1, -2)
        return kept

    def open_by(self, q: np.ndarray) -> np.ndarray:
        """(...): the norm of g without rounding."""
        return np.linalg.norm(self.at(q)[0] if self.blocks else self.error(q), axis=-1)

    def is_closed(self, q: np.ndarray, tolerance: float) -> np.ndarray:
        """(...): whether all loops are, to the tolerance or to what rounding leaves, of positions and of data."""
        closed: np.ndarray = np.asarray(self.open_by(q) <= max(tolerance, self.sizes.noise))
        return np.logical_and(closed, self.is_nearly_closed(q))

    def alignments(self, q: np.ndarray) -> np.ndarray:
        """(..., loops): cosines of the angles between the two sides; where loops are closed 1, or -1 back to back."""
        if not self.mech.loops:
            return np.ones((*q.shape[:-1], 0))
        return kernel_function(self.mech, "loop_alignments", q)(q)

    def is_aligned(self, q: np.ndarray) -> np.ndarray:
        """(...): whether no loop is back to back."""
        return np.all(self.alignments(q) > 0.0, axis=-1)

    def is_nearly_closed(self, q: np.ndarray) -> np.ndarray:
        """(...): whether the error of every rounded block is no more than its data explain."""
        near = np.ones(q.shape[:-1], dtype=bool)
        error = self.error(q) if self.blocks else near
        for block in self.blocks:
            near = near & (np.linalg.norm(error[..., block.rows], axis=-1) <= block.closure)
        return near


def closed_by(
    equations: LoopEquations,
    q: np.ndarray,
    free: np.ndarray,
    aim: float,
    tolerance: float,
    max_steps: int,
    metric: np.ndarray | float = 1.0,
    kept: Sequence[int] = (),
) -> np.ndarray:
    """The best configurations found from q (..., nq) by moving the velocities that are ``free`` (nv,), closed or not;
    the numbers of q in the places ``kept`` stay as they are.

    Levenberg-Marquardt on the configuration manifold: every step makes the error smaller, none moves a dimensionless
    coordinate by more than half a unit.  Below the tolerance it goes on to ``aim`` while the error halves.  Steps are
    the shortest with coordinates in units of ``metric`` (nv,).  Far from closed, constraints that are redundant but for
    rounding say as much as others and are needed: they are left out where the error is what they can be satisfied to.
    """
    if equations.blocks and not np.all(near := equations.is_nearly_closed(q)):
        whole = replace(equations, blocks=())
        goal = 0.5 * min(block.closure for block in equations.blocks)
        q = np.where(near[..., None], q, _iterated(whole, q, free, goal, goal, max_steps, metric, kept))
    return _iterated(equations, q, free, aim, tolerance, max_steps, metric, kept)


def _iterated(
    equations: LoopEquations,
    q: np.ndarray,
    free: np.ndarray,
    aim: float,
    tolerance: float,
    max_steps: int,
    metric: np.ndarray | float,
    kept: Sequence[int],
) -> np.ndarray:
    tolerance = max(tolerance, equations.sizes.noise)
    units = metric / equations.sizes.columns
    size = equations.open_by(q)
    damping = np.ones_like(size)
    earlier, settled = size, np.zeros(size.shape, dtype=bool)
    for iteration in range(max_steps):
        if iteration and iteration % PATIENCE == 0:
            earlier, settled = size, settled | (size > 0.5 * earlier)
        active = (size > aim) & (damping < HOPELESS) & ~settled
        if not np.any(active):
            break
        error, jacobian = equations.at(q)
        jacobian[..., np.flatnonzero(~equations.mech.holonomic_rows), :] = 0.0  # a search may go where no wheel rolls
        # Damping in proportion to the error keeps convergence quadratic, and redundant constraints from causing motion.
        jacobian = jacobian * (units * free)
        if len(kept):
            jacobian = jacobian @ _leaving(equations, q, units * free, kept)
        change = -units * decompose(jacobian).damped(error, damping * size)
        largest = np.abs(change).max(axis=-1, initial=0.0, keepdims=True)
        change *= np.minimum(1.0, LARGEST_STEP / np.maximum(largest, LARGEST_STEP)) * active[..., None] * free
        moved = tree.integrate(equations.mech, q, equations.sizes.columns * change, 1.0)
        moved[..., kept] = q[..., kept]
        size_there = equations.open_by(moved)
        better = active & (size_there < np.where(size <= tolerance, 0.5, 1.0) * size)
        settled = settled | (active & ~better & (size <= tolerance))
        q, size = np.where(better[..., None], moved, q), np.where(better, size_there, size)
        damping = np.where(better, damping * 0.2, np.where(active, np.maximum(damping * 10.0, 1e-3), damping))
    return q


def _leaving(equations: LoopEquations, q: np.ndarray, units: np.ndarray, kept: Sequence[int]) -> np.ndarray:
    """(..., nv, nv): the projection on changes, in these units, that leave the numbers of q in the places ``kept``."""
    every = np.eye(equations.mech.nv)
    rates = tree.coordinate_rates(equations.mech, q[..., None, :], every)[..., list(kept)]
    rows = np.swapaxes(rates, -1, -2) * equations.sizes.columns * units
    return every - np.linalg.pinv(rows) @ rows
