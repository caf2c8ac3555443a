"""Unbalanced forces of a mechanism at rest, and Newton's method on them.

All numbers here are dimensionless: steps of coordinates in units of the mechanism's length or in radians, forces in
units of an energy per such a step, constraints in units of their loops' sizes.  A search is then the same in all units.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..constraints.assembly import AssemblyError, assemble
from ..constraints.decomposition import damped_solve, decompose
from ..constraints.redundancy import closable_error, closable_jacobian
from ..constraints.sizes import sizes
from ..constraints.variations import State, applied_force, bias_force, force_derivatives, reaction_derivative
from ..dynamics.trees import difference, integrate, mass_matrix
from ..mechanism.scales import scales

LARGEST_STEP = 0.5  # of a coordinate, per iteration, in unit steps
HOPELESS = 1e12  # damping beyond which no step makes the residual smaller
STRAYED = 3.0  # times the distance that is asked for: how far a search may go on its way


class Search(NamedTuple):
    """The unknowns of an equilibrium search and their units.

    free        (n,): indices in v of what may move; ``hold`` names the joints that may not
    energy      to compare with; forces are in units of this energy per unit step
    tolerance   how much may be left unbalanced
    start       (nq,): where the search starts
    units       (nv,): unit steps of coordinates
    rows        (m,): 1 / unit of each constraint
    within      (nv,): how far from the start a coordinate may be, as a raw step of v
    """

    free: np.ndarray
    hold: Sequence[str]
    energy: float
    tolerance: float
    start: np.ndarray
    units: np.ndarray
    rows: np.ndarray
    within: np.ndarray

    @classmethod
    def around(
        cls,
        at: State,
        free: np.ndarray,
        hold: Sequence[str],
        energy: float,
        tolerance: float,
        within: np.ndarray | float = np.inf,
    ) -> Search:
        """A search that starts at ``at``, in the mechanism's units."""
        mech = at.mech
        rows = sizes(mech).rows
        limits = np.broadcast_to(np.asarray(within, dtype=float), (mech.nv,))
        return cls(free, hold, energy, tolerance, at.q, scales(mech).of_v, rows, limits)

    @property
    def is_bounded(self) -> bool:
        """Whether coordinates must stay near the start."""
        return bool(np.isfinite(self.within).any())

    def way(self, at: State) -> np.ndarray:
        """(nv,): step from the start, not dimensionless."""
        return difference(at.mech, self.start, at.q)

    def distance(self, at: State) -> float:
        """The largest change of a coordinate since the start."""
        return float(np.abs(self.way(at) / self.units).max(initial=0.0))

    def share(self, at: State) -> float:
        """The largest change of a coordinate since the start, over the largest that is allowed."""
        return float(np.abs(self.way(at) / self.within).max(initial=0.0))

    def strayed(self, at: State) -> bool:
        """Whether the iteration has moved so far away that it will hardly converge."""
        return self.is_bounded and self.share(at) > STRAYED

    def joint_forces(self, forces: np.ndarray) -> np.ndarray:
        """(nv,): dimensionless forces as joint forces."""
        return self.energy * forces / self.units


class Balance(NamedTuple):
    """Unbalanced forces of a configuration, in units of ``search.energy`` per unit step."""

    at: State
    search: Search
    multipliers: np.ndarray
    forces: np.ndarray  # (nv,): needed for rest, minus applied ones and reactions of the loops
    jacobian: np.ndarray  # G
    error: np.ndarray  # g

    @property
    def residual(self) -> np.ndarray:
        return np.concatenate([self.forces[self.search.free], self.error])

    @property
    def size(self) -> float:
        return float(np.linalg.norm(self.residual))

    @property
    def dofs(self) -> np.ndarray:
        """(nv, p): an orthonormal basis of the motions that keep loops closed and held joints still."""
        free = self.search.free
        return np.eye(self.at.mech.nv)[:, free] @ decompose(self.jacobian[:, free]).null

    @property
    def loop_multipliers(self) -> np.ndarray:
        """(m,): multipliers of the constraints as they are, not dimensionless."""
        return self.search.energy * self.search.rows * self.multipliers


def balance(at: State, search: Search, multipliers: np.ndarray | None = None) -> Balance:
    """The balance at ``at``; multipliers default to those that leave the least unbalanced force."""
    forces = (bias_force(at) - applied_force(at)) * (search.units / search.energy)
    jacobian = search.rows[:, None] * closable_jacobian(at.mech, at.q) * search.units
    if multipliers is None:
        multipliers = -decompose(jacobian[:, search.free]).solve_transposed(forces[search.free])
    error = search.rows * closable_error(at.mech, at.q)
    return Balance(at, search, multipliers, forces + multipliers @ jacobian, jacobian, error)


def stiffness(here: Balance) -> np.ndarray:
    """(nv, nv): derivative of the balance by steps of q, multipliers kept."""
    by_q, _ = force_derivatives(here.at, np.zeros(here.at.mech.nv))
    by_q = by_q + reaction_derivative(here.at, here.loop_multipliers)
    return by_q * np.multiply.outer(here.search.units, here.search.units) / here.search.energy


def inertia(here: Balance) -> np.ndarray:
    """(nv, nv): the mass matrix in unit steps, over the mass and the square of the length of the mechanism."""
    units, of_mechanism = here.search.units, scales(here.at.mech)
    matrix = mass_matrix(here.at.mech, here.at.q) * np.multiply.outer(units, units)
    return matrix / (of_mechanism.mass * of_mechanism.length**2)


# -- Newton's method ----------------------------------------------------------------------------------


def newton(at: State, search: Search, max_steps: int) -> Balance:
    """The best balance found by damped steps in q and the multipliers together."""
    free = search.free
    here, damping = balance(at, search), 1e-3
    for _ in range(max_steps):
        if here.size <= 0.1 * search.tolerance or damping > HOPELESS or search.strayed(here.at):
            break
        # Damping in proportion to the residual keeps convergence quadratic.
        step = -damped_solve(_slopes(here), here.residual, np.asarray(damping * here.size))
        change = np.zeros(at.mech.nv)
        change[free] = step[: len(free)]
        shorter = min(1.0, LARGEST_STEP / max(np.abs(change).max(initial=0.0), LARGEST_STEP))
        ahead = here.at._replace(q=integrate(at.mech, here.at.q, shorter * search.units * change, 1.0))
        there = balance(ahead, search, here.multipliers + shorter * step[len(free) :])
        if there.size < here.size:
            here, damping = there, damping * 0.1
        else:
            damping = max(damping * 10.0, 1e-9)
    return here


def _slopes(here: Balance) -> np.ndarray:
    """(free + m, free + m): derivative of balance and closure by steps of the free coordinates and by multipliers."""
    free = here.search.free
    jacobian = here.jacobian[:, free]
    m = len(jacobian)
    return np.block([[stiffness(here)[np.ix_(free, free)], jacobian.T], [jacobian, np.zeros((m, m))]])


def moved(here: Balance, step: np.ndarray) -> State | None:
    """The state after a step along the degrees of freedom, loops closed again; None where that leads elsewhere."""
    mech, hold = here.at.mech, here.search.hold
    units = here.search.units
    q = integrate(mech, here.at.q, units * step, 1.0)
    try:
        closed = assemble(mech, q, hold=hold, tries=1)
    except AssemblyError:
        return None
    # On the same branch the correction is of second order in the step.
    if np.linalg.norm(difference(mech, q, closed) / units) > 0.5 * np.linalg.norm(step):
        return None
    return here.at._replace(q=closed)
