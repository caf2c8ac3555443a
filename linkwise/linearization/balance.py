"""Unbalanced forces of a mechanism at rest, and three searches for equilibria: Newton's method, descent of the energy,
overdamped relaxation.

All numbers here are dimensionless: steps of coordinates in units of the mechanism's length or in radians, forces in
units of energy per such step, constraints in units of their loops' sizes. Searches do not depend on units.
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
from ..dynamics.trees import difference, integrate, mass_matrix, potential_energy
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
    def start_at(
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
        """(nv,): step from the start, in raw units of v."""
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
        """(m,): multipliers of the constraints in raw units."""
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
    """(nv, nv): derivative of the balance by steps of q at constant multipliers."""
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
    """The state after a step along the degrees of freedom, with loops closed again; None if they close on another
    branch.
    """
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


# -- descent of the energy, where all forces derive from one ---------------------------------------------


LEVEL = 1e-13  # relative: differences of energy below are round-off
SMALLEST_STEP = 1e-9  # in unit steps: where not even so short a step leads down, no way does
FLAT = 1e-12  # relative to the largest curvature: one below is none


def has_potential(at: State, search: Search) -> bool:
    """Whether all applied forces derive from a potential. Wrenches that rotate with their links, constant forces on
    spherical and floating joints, and actuators do not.
    """
    if at.wrenches is not None and at.wrenches.any() or not getattr(at.passive, "has_potential", True):
        return False
    rotating = [at.mech.v_index(body.joint) for body in at.mech.bodies if not body.kind.rates_are_velocities]
    acting = at.tau != 0.0
    return not any(acting[rates][np.isin(np.arange(at.mech.nv)[rates], search.free)].any() for rates in rotating)


def _energy(at: State, search: Search, origin: np.ndarray) -> float:
    """The energy of gravity, springs, stops, and joint forces (from ``origin``), in units of ``search.energy``."""
    energy = potential_energy(at.mech, at.q) - at.tau @ difference(at.mech, origin, at.q)
    if at.passive is not None:
        energy = energy + at.passive.energy(at.q)
    return float(energy) / search.energy


def descent(at: State, search: Search, max_steps: int) -> list[Balance]:
    """A path of decreasing energy to a minimum.

    Each step goes to the lowest point of the energy, to second order on the closed mechanism and within a trust region.
    The curvature is exact. A saddle or a maximum is left along its lowest curvature.
    """
    here, level = balance(at, search), _energy(at, search, at.q)
    way, radius = [here], LARGEST_STEP
    for _ in range(max_steps):
        if search.strayed(here.at):
            break
        dofs = here.dofs
        slope, curvature = dofs.T @ here.forces, dofs.T @ stiffness(here) @ dofs
        curvature = 0.5 * (curvature + curvature.T)
        step = _lowest_within(radius, slope, curvature)
        expected = -(slope @ step + 0.5 * step @ curvature @ step)
        if expected <= LEVEL * (1.0 + abs(level)):
            break
        length = float(np.linalg.norm(step))
        there = moved(here, dofs @ step)
        below = np.inf if there is None else _energy(there, search, at.q)
        share = (level - below) / expected
        if share < 0.25:
            radius = 0.25 * length
        elif share > 0.75 and length > 0.9 * radius:
            radius = min(2.0 * radius, LARGEST_STEP)
        if there is not None and share > 0.1:
            here, level = balance(there, search), below
            way.append(here)
        elif radius < SMALLEST_STEP:
            break
    return way


def drop(way: Sequence[Balance]) -> float:
    """Energy lost along a path."""
    first, last = way[0].at, way[-1].at
    search = way[0].search
    return search.energy * (_energy(first, search, first.q) - _energy(last, search, first.q))


def _lowest_within(radius: float, slope: np.ndarray, curvature: np.ndarray) -> np.ndarray:
    """(p,): the lowest point of slope x + x curvature x / 2 with |x| <= radius: x = -(curvature + shift)^-1 slope."""
    if not len(slope):
        return slope
    values, vectors = np.linalg.eigh(curvature)
    along = vectors.T @ slope
    size = float(np.linalg.norm(slope))
    flat = FLAT * max(float(np.abs(values).max()), size / radius) or 1.0
    shift = max(0.0, flat - values[0])
    step = -along / (values + shift)
    if np.linalg.norm(step) > radius:
        low, high = shift, shift + size / radius
        for _ in range(60):
            shift = 0.5 * (low + high)
            step = -along / (values + shift)
            low, high = (shift, high) if np.linalg.norm(step) > radius else (low, shift)
    elif values[0] < -flat:  # no slope along the lowest curvature: either side is down
        step[0] += np.copysign(np.sqrt(radius**2 - step @ step), step[0])
    return vectors @ step


# -- overdamped relaxation -------------------------------------------------------------------------------


FIRST_STEP = 0.01  # in unit steps
LONGEST_STEP = 0.2
UNFORESEEN, FORESEEN = 0.5, 0.1  # of the forces: what a step may miss, and what lets the next be longer
COLLISION = 1.0  # the force to compare with: a step that misses more has run into something, on a saddle too
SLOWER, FASTER = 4.0, 3.0
SLOWEST = 1e14  # relative to the first: no step is short enough
WEAK = 1e-3  # of the force to compare with: what is less sets nothing in motion, at first
SETTLED = 1e-7  # of the force to compare with: Newton's method does the rest
UNSTABLE = 1e-9  # relative to the largest curvature
NO_INERTIA = 1e-9  # relative to the largest: what moves without inertia has this


def relaxed(at: State, search: Search, max_steps: int, leave_saddles: bool) -> Balance:
    """The end of an overdamped relaxation: an equilibrium, the state after ``max_steps``, or the last state near the
    start.  A mechanism that is let go with much damping ends in a stable equilibrium:

        M dq/ds = unbalanced forces,     implicit steps  (K + M / h) dq = unbalanced forces

    on the closed mechanism, K the exact stiffness.  No energy is needed: actuators, wrenches that rotate with their
    links and friction have none.  A step is as long as K predicts the forces at its end, so that contacts are met
    gently; where the prediction is good, h grows and steps become those of Newton's method (pseudo-transient
    continuation, Kelley and Keyes, SIAM Journal on Numerical Analysis 35, 1998).

    leave_saddles   whether to go on from an equilibrium that is not stable, along its lowest curvature
    """
    here, rate, first = balance(at, search), 0.0, 0.0
    for _ in range(max_steps):
        if search.strayed(here.at):
            break
        dofs = here.dofs
        forces, curvature = dofs.T @ here.forces, dofs.T @ stiffness(here) @ dofs
        mass = _inertia_along(here, dofs)
        lowest, way = _lowest(curvature, mass)
        saddle = lowest < -UNSTABLE * np.abs(curvature).max(initial=0.0)
        if np.abs(here.forces[search.free]).max(initial=0.0) < SETTLED and not (saddle and leave_saddles):
            break
        if not first:
            first = rate = max(float(np.linalg.norm(forces)), WEAK) / (FIRST_STEP * np.trace(mass) / len(mass))
        if saddle and np.linalg.norm(forces) < SETTLED:
            step = FIRST_STEP * way / np.abs(way).max()
        else:
            rate = max(rate, -2.0 * lowest)  # downhill on saddles too
            step = -np.linalg.lstsq(curvature + rate * mass, forces, rcond=None)[0]
        largest = np.abs(dofs @ step).max(initial=0.0)
        there = moved(here, dofs @ step) if largest <= LONGEST_STEP else None
        if there is None:
            rate *= SLOWER
        else:
            ahead = balance(there, search)
            unbalanced, size = ahead.dofs.T @ ahead.forces, float(np.linalg.norm(forces))
            missed = abs(np.linalg.norm(unbalanced) - np.linalg.norm(forces + curvature @ step))
            if missed > UNFORESEEN * max(size, SETTLED) and (missed > COLLISION or not saddle):
                rate *= SLOWER
            else:
                here = ahead
                rate = rate / FASTER if missed < FORESEEN * size else rate
        if rate > SLOWEST * first:
            break
    return here


def _inertia_along(here: Balance, dofs: np.ndarray) -> np.ndarray:
    """(p, p): along the degrees of freedom."""
    matrix = dofs.T @ inertia(here) @ dofs
    return matrix + NO_INERTIA * (np.trace(matrix) or 1.0) * np.eye(len(matrix))


def _lowest(curvature: np.ndarray, inertia: np.ndarray) -> tuple[float, np.ndarray]:
    """The smallest curvature relative to the inertia, and its direction (p,)."""
    lower = np.linalg.inv(np.linalg.cholesky(inertia))
    values, vectors = np.linalg.eigh(lower @ (0.5 * (curvature + curvature.T)) @ lower.T)
    return float(values[0]), lower.T @ vectors[:, 0]
