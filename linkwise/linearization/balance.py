"""The search for balance: Newton's method on unbalanced forces, and descent of the energy on the closed mechanism."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ..dynamics.closed.assembly import AssemblyError, assemble
from ..dynamics.closed.decomposition import decompose
from ..dynamics.closed.redundancy import closable_error, closable_jacobian
from ..dynamics.closed.variations import State, applied_force, bias_force, force_derivatives, reaction_derivative
from ..dynamics.trees import difference, integrate, potential_energy

LARGEST_STEP = 0.5  # of a coordinate, per iteration
HOPELESS = 1e12  # damping beyond which no step makes the residual smaller
FALLS = 20  # how often a mechanism that is stuck is let go, each time by
FALL = 0.2  # radians or metres along the unbalanced forces
LEVEL = 1e-13  # relative: differences of energy below are round-off
SMALLEST_STEP = 1e-9  # radians or metres: where not even so short a step leads down, no way does
FLAT = 1e-12  # relative to the largest curvature: one below is none


class Search(NamedTuple):
    """What may move (places in v), the joints that may not, the force to compare with, and how little of it may be left
    unbalanced."""

    free: np.ndarray
    hold: Sequence[str]
    scale: float
    tolerance: float


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


def attempts(at: State, search: Search, stable: bool, max_steps: int) -> Iterator[tuple[str, Balance]]:
    """Ways to an equilibrium and where they end, the one to the nearest first; with ``stable``, only ways down."""
    here = balance(at, search)
    if not stable:
        here = newton(at, search, max_steps)
        yield "Newton's method from the guess", here
    if has_potential(at, search):
        way = _descent(at, search, max_steps)
        yield f"descent of the energy, which fell by {_drop(way):.3g}", newton(way[-1].at, search, max_steps)
        yield "Newton's method from the best place on that way", newton(_best(way).at, search, max_steps)
    if not stable:
        for _ in range(FALLS):
            here = newton(_fallen(here), search, max_steps)
            yield f"letting go {FALLS} times, each time by {FALL}", here


def _best(found: Sequence[Balance]) -> Balance:
    return min(found, key=lambda one: one.size)


# -- Newton's method ----------------------------------------------------------------------------------


def newton(at: State, search: Search, max_steps: int) -> Balance:
    """The best balance found by damped steps in q and the multipliers together."""
    free = search.free
    here, damping = balance(at, search), 1e-3
    for _ in range(max_steps):
        if here.size <= 0.1 * search.tolerance or damping > HOPELESS:
            break
        # Damping in proportion to the residual keeps convergence quadratic.
        step = -decompose(_slopes(here)).damped(here.residual, np.asarray(damping * here.size))
        change = np.zeros(at.mech.nv)
        change[free] = step[: len(free)]
        shorter = min(1.0, LARGEST_STEP / max(np.abs(change).max(initial=0.0), LARGEST_STEP))
        moved = here.at._replace(q=integrate(at.mech, here.at.q, shorter * change, 1.0))
        there = balance(moved, search, here.multipliers + shorter * step[len(free) :])
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


def _fallen(here: Balance) -> State:
    """A step along the forces that are left over."""
    downhill = -here.dofs @ (here.dofs.T @ here.forces)
    largest = np.abs(downhill).max(initial=0.0)
    step = downhill * (FALL / largest) if largest > 0.0 else downhill
    return here.at._replace(q=integrate(here.at.mech, here.at.q, step, 1.0))


# -- descent of the energy ----------------------------------------------------------------------------


def has_potential(at: State, search: Search) -> bool:
    """Whether all that acts derives from an energy: not wrenches that rotate with their links, nor constant forces on
    spherical and floating joints, nor actuators."""
    if at.wrenches is not None and at.wrenches.any() or not getattr(at.passive, "has_potential", True):
        return False
    rotating = [at.mech.v_index(body.joint) for body in at.mech.bodies if not body.kind.rates_are_velocities]
    acting = at.tau != 0.0
    return not any(acting[own][np.isin(np.arange(at.mech.nv)[own], search.free)].any() for own in rotating)


def _energy(at: State, search: Search, origin: np.ndarray) -> float:
    """Of gravity, springs, stops, and joint forces (from ``origin``), in units of ``search.scale``."""
    energy = potential_energy(at.mech, at.q) - at.tau @ difference(at.mech, origin, at.q)
    if at.passive is not None:
        energy = energy + at.passive.energy(at.q)
    return float(energy) / search.scale


def _descent(at: State, search: Search, max_steps: int) -> list[Balance]:
    """The way down to a minimum, which it reaches where there is one: every step lowers the energy.

    Steps are those of a trust region: they lead to the lowest point, no further than a radius, of the energy to second
    order on the closed mechanism, whose curvature is exact.  A saddle or a maximum is left along its lowest curvature.
    """
    here, level = balance(at, search), _energy(at, search, at.q)
    way, radius = [here], LARGEST_STEP
    for _ in range(max_steps):
        dofs = here.dofs
        slope, curvature = dofs.T @ here.forces, dofs.T @ stiffness(here) @ dofs
        curvature = 0.5 * (curvature + curvature.T)
        step = _lowest_within(radius, slope, curvature)
        expected = -(slope @ step + 0.5 * step @ curvature @ step)
        if expected <= LEVEL * (1.0 + abs(level)):
            break
        length = float(np.linalg.norm(step))
        moved = _moved(here, dofs @ step)
        below = np.inf if moved is None else _energy(moved, search, at.q)
        share = (level - below) / expected
        if share < 0.25:
            radius = 0.25 * length
        elif share > 0.75 and length > 0.9 * radius:
            radius = min(2.0 * radius, LARGEST_STEP)
        if moved is not None and share > 0.1:
            here, level = balance(moved, search), below
            way.append(here)
        elif radius < SMALLEST_STEP:
            break
    return way


def _drop(way: Sequence[Balance]) -> float:
    """How much energy a way down has given off."""
    first, last = way[0].at, way[-1].at
    search = way[0].search
    return search.scale * (_energy(first, search, first.q) - _energy(last, search, first.q))


def _moved(here: Balance, step: np.ndarray) -> State | None:
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
