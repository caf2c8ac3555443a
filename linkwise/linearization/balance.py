"""Unbalanced forces of a mechanism at rest, and Newton's method on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..dynamics.closed.assembly import AssemblyError, assemble
from ..dynamics.closed.decomposition import decompose
from ..dynamics.closed.redundancy import closable_error, closable_jacobian
from ..dynamics.closed.variations import State, applied_force, bias_force, force_derivatives, reaction_derivative
from ..dynamics.trees import difference, integrate

LARGEST_STEP = 0.5  # of a coordinate, per iteration
HOPELESS = 1e12  # damping beyond which no step makes the residual smaller
STRAYED = 3.0  # times the distance that is asked for: how far a search may go on its way


class Search(NamedTuple):
    """What may move (places in v), the joints that may not, the force to compare with, how little of it may be left
    unbalanced, where the search starts, and how far from there a coordinate may be (radians or metres)."""

    free: np.ndarray
    hold: Sequence[str]
    scale: float
    tolerance: float
    start: np.ndarray
    within: float = np.inf

    def way(self, at: State) -> np.ndarray:
        """(nv,): from the start."""
        return difference(at.mech, self.start, at.q)

    def distance(self, at: State) -> float:
        """The largest change of a coordinate since the start."""
        return float(np.abs(self.way(at)).max(initial=0.0))

    def strayed(self, at: State) -> bool:
        """Whether it is so far away that no way leads back, most likely."""
        return self.within < np.inf and self.distance(at) > STRAYED * self.within


class Balance(NamedTuple):
    """How far a configuration is from balance; forces in units of ``search.scale``."""

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


def balance(at: State, search: Search, multipliers: np.ndarray | None = None) -> Balance:
    """The balance at ``at``; without multipliers, with those that leave the least unbalanced."""
    forces = (bias_force(at) - applied_force(at)) / search.scale
    jacobian = closable_jacobian(at.mech, at.q)
    if multipliers is None:
        multipliers = -decompose(jacobian[:, search.free]).solve_transposed(forces[search.free])
    error = closable_error(at.mech, at.q)
    return Balance(at, search, multipliers, forces + multipliers @ jacobian, jacobian, error)


def stiffness(here: Balance) -> np.ndarray:
    """(nv, nv): derivative of the balance by steps of q, multipliers kept."""
    by_q, _ = force_derivatives(here.at, np.zeros(here.at.mech.nv))
    return by_q / here.search.scale + reaction_derivative(here.at, here.multipliers)


# -- Newton's method ----------------------------------------------------------------------------------


def newton(at: State, search: Search, max_steps: int) -> Balance:
    """The best balance found by damped steps in q and the multipliers together."""
    free = search.free
    here, damping = balance(at, search), 1e-3
    for _ in range(max_steps):
        if here.size <= 0.1 * search.tolerance or damping > HOPELESS or search.strayed(here.at):
            break
        # Damping in proportion to the residual keeps convergence quadratic.
        step = -decompose(_slopes(here)).damped(here.residual, np.asarray(damping * here.size))
        change = np.zeros(at.mech.nv)
        change[free] = step[: len(free)]
        shorter = min(1.0, LARGEST_STEP / max(np.abs(change).max(initial=0.0), LARGEST_STEP))
        ahead = here.at._replace(q=integrate(at.mech, here.at.q, shorter * change, 1.0))
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
    q = integrate(mech, here.at.q, step, 1.0)
    if mech.loops:
        try:
            closed = assemble(mech, q, hold=hold, tries=1)
        except AssemblyError:
            return None
        # On the same branch the correction is of second order in the step.
        if np.linalg.norm(difference(mech, q, closed)) > 0.5 * np.linalg.norm(step):
            return None
        q = closed
    return here.at._replace(q=q)
