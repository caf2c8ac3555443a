"""Equilibria: configurations at rest in which forces balance, or joint forces that hold a configuration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..closed.assembly import assemble
from ..closed.constraints import constraint_jacobian, position_error, velocity_indices
from ..closed.decomposition import decompose
from ..mechanism import Mechanism, MechanismError
from ..mechanism.checks import did_you_mean
from ..passive import Passive
from ..tree_dynamics import integrate, mass_matrix
from .coordinates import coordinate_names, places
from .variations import OPEN, State, applied_force, bias_force, force_derivatives, reaction_derivative, state_of

UNKNOWNS = ("q", "tau")
BALANCED = 1e-10  # relative to the weight and the given forces: what is left unbalanced
LARGEST_STEP = 0.5  # of a coordinate, per iteration
HOPELESS = 1e12  # damping beyond which no step makes the residual smaller
FALLS = 20  # how often a mechanism that is stuck is let go, each time by
FALL = 0.2  # radians or metres along the unbalanced forces
NEUTRAL = 1e-9  # relative: a stiffness below is none


class EquilibriumError(MechanismError):
    """No equilibrium was found.  ``joint`` names the worst coordinate, ``residual`` is its unbalanced force, ``q`` is
    where the search ended."""

    def __init__(self, message: str, joint: str, residual: float, q: np.ndarray):
        super().__init__(message)
        self.joint = joint
        self.residual = residual
        self.q = q


@dataclass(frozen=True, eq=False)
class Equilibrium:
    """A mechanism at rest: ``linearize(mech, found.q, tau=found.tau)`` has no drift.

    q             (nq,): the configuration, loops closed
    tau           (nv,): joint forces, including those that hold the joints named in ``hold``
    residual      the largest unbalanced force
    multipliers   (m,): of the loops, G* lambda = tau - gravity ...
    stiffness     (p, p): unbalanced force per displacement along the p freedoms (held joints fixed), an orthonormal
                  basis of which is ``freedoms`` (nv, p)
    stable        whether the stiffness brings small displacements back: None if some direction has none.  (Springs and
                  gravity decide; dampers make stable equilibria attractive.)
    """

    q: np.ndarray
    tau: np.ndarray
    residual: float
    multipliers: np.ndarray
    stiffness: np.ndarray
    freedoms: np.ndarray
    stable: bool | None

    def __repr__(self) -> str:
        kind = {True: "stable", False: "unstable", None: "neutral"}[self.stable]
        return f"<Equilibrium: {kind}, unbalanced forces below {self.residual:.1e}, q = {self.q}>"


class _Search(NamedTuple):
    """What may move (places in v), the force to compare with, and how little of it may be left unbalanced."""

    free: np.ndarray
    scale: float
    tolerance: float


class _Balance(NamedTuple):
    """How far a configuration is from balance; forces in units of ``search.scale``."""

    at: State
    search: _Search
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


def find_equilibrium(
    mech: Mechanism,
    q_guess,
    tau=None,
    hold: Sequence[str] = (),
    passive: Passive | None = None,
    wrenches=None,
    solve_for: str = "q",
    actuated: Sequence[str] | None = None,
    tolerance: float = BALANCED,
    max_steps: int = 200,
) -> Equilibrium:
    """A state of rest near ``q_guess``, or the joint forces that keep the mechanism at ``q_guess``.

    solve_for   "q": the configuration in which joint forces ``tau`` (zero if left out), gravity, springs and wrenches
                balance, loops closed; stable or not, whichever is near.  "tau": the forces of the ``actuated`` joints
                (all by default) that hold ``q_guess``, the smallest where there is a choice; ``tau`` at the others
    hold        joints that stay where the guess has them; the forces that this takes are part of the result
    passive     springs, stops, ... (``linkwise.Passive``)
    wrenches    (n_links, 6): external, constant in the link frames

    Newton's method on the configuration manifold, damped so that every step reduces what is unbalanced, with exact
    derivatives; where that is stuck the mechanism is let go for a little way.  ``EquilibriumError`` names the
    coordinate that remains unbalanced.  One state.
    """
    if solve_for not in UNKNOWNS:
        raise ValueError(f"unknown solve_for {solve_for!r}: " + did_you_mean(str(solve_for), UNKNOWNS))
    at = state_of(mech, q_guess, None, tau, wrenches, passive)
    if at.batch:
        raise MechanismError(f"find_equilibrium takes one state, not the batch {at.batch}")
    held = velocity_indices(mech, hold, "hold")
    if solve_for == "tau":
        if len(held):
            raise MechanismError("hold is for solve_for='q': a given configuration stays where it is altogether")
        return _holding(at, actuated, tolerance)
    if actuated is not None:
        raise MechanismError("actuated is for solve_for='tau': joints with unknown forces are named by hold")
    search = _Search(np.setdiff1d(np.arange(mech.nv), held), _scale(at), tolerance)
    if mech.loops:
        at = at._replace(q=assemble(mech, at.q, hold=hold))
    found = _balanced(at, search, max_steps)
    forces = at.tau.copy()
    forces[held] += search.scale * found.forces[held]
    return _result(found._replace(at=found.at._replace(tau=forces)))


# -- the configuration --------------------------------------------------------------------------------


def _balanced(at: State, search: _Search, max_steps: int) -> _Balance:
    """Newton's method, and where it is stuck a step along the forces that are left over."""
    free, tried = search.free, []
    for _ in range(FALLS):
        here = _newton(at, search, max_steps)
        if here.size <= search.tolerance:
            return here
        tried.append(here)
        null = decompose(here.jacobian[:, free]).null
        downhill = np.zeros(at.mech.nv)
        downhill[free] = -null @ (null.T @ here.forces[free])
        largest = np.abs(downhill).max(initial=0.0)
        if not largest > 0.0:
            break
        at = at._replace(q=integrate(at.mech, here.at.q, downhill * (FALL / largest), 1.0))
    best = min(tried, key=lambda one: one.size)
    raise _unbalanced(
        best,
        f"no equilibrium of mechanism {at.mech.name!r} was found from this guess",
        "start nearer to one, hold joints that forces drive on and on, or balance those forces",
    )


def _newton(at: State, search: _Search, max_steps: int) -> _Balance:
    """The best balance found by damped steps in q and the multipliers together."""
    free = search.free
    here, damping = _balance(at, search), 1e-3
    for _ in range(max_steps):
        if here.size <= 0.1 * search.tolerance or damping > HOPELESS:
            break
        # Damping in proportion to the residual keeps convergence quadratic.
        step = -decompose(_slopes(here)).damped(here.residual, np.asarray(damping * here.size))
        change = np.zeros(at.mech.nv)
        change[free] = step[: len(free)]
        shorter = min(1.0, LARGEST_STEP / max(np.abs(change).max(initial=0.0), LARGEST_STEP))
        moved = here.at._replace(q=integrate(at.mech, here.at.q, shorter * change, 1.0))
        there = _balance(moved, search, here.multipliers + shorter * step[len(free) :])
        if there.size < here.size:
            here, damping = there, damping * 0.1
        else:
            damping = max(damping * 10.0, 1e-9)
    return here


def _balance(at: State, search: _Search, multipliers: np.ndarray | None = None) -> _Balance:
    """The balance at ``at``; without multipliers, with those that leave the least unbalanced."""
    forces = (bias_force(at) - applied_force(at)) / search.scale
    jacobian = constraint_jacobian(at.mech, at.q)
    if multipliers is None:
        multipliers = -decompose(jacobian[:, search.free]).solve_transposed(forces[search.free])
    error = position_error(at.mech, at.q)
    return _Balance(at, search, multipliers, forces + multipliers @ jacobian, jacobian, error)


def _slopes(here: _Balance) -> np.ndarray:
    """(free + m, free + m): derivative of balance and closure by steps of the free coordinates and by multipliers."""
    free = here.search.free
    jacobian = here.jacobian[:, free]
    m = len(jacobian)
    return np.block([[_stiffness(here)[np.ix_(free, free)], jacobian.T], [jacobian, np.zeros((m, m))]])


def _stiffness(here: _Balance) -> np.ndarray:
    """(nv, nv): derivative of the balance by steps of q, multipliers kept."""
    still = np.zeros(here.at.mech.nv)
    by_q, _ = force_derivatives(here.at, still)
    return by_q / here.search.scale + reaction_derivative(here.at, here.multipliers)


def _scale(at: State) -> float:
    """A force to compare with: the weight (times a metre), and what else acts or pulls back."""
    scale = at.mech.masses.sum() * np.linalg.norm(at.mech.gravity) + np.abs(at.tau).max(initial=0.0)
    if at.wrenches is not None:
        scale += np.abs(at.wrenches).max(initial=0.0)
    if at.passive is not None:
        scale += np.abs(at.passive.derivatives(at.q, at.v)[0]).max(initial=0.0)
    return float(scale) or 1.0


# -- the forces ---------------------------------------------------------------------------------------


def _holding(at: State, actuated: Sequence[str] | None, tolerance: float) -> Equilibrium:
    """Forces of the actuated joints that keep the configuration."""
    mech = at.mech
    opening = np.abs(position_error(mech, at.q)).max(initial=0.0)
    if opening > OPEN:
        raise MechanismError(
            f"the loops of mechanism {mech.name!r} are open by {opening:.3g}: close them with linkwise.closed.assemble"
        )
    driven = list(range(mech.nv)) if actuated is None else places(mech, actuated, "actuated")
    at = at._replace(tau=np.where(np.isin(np.arange(mech.nv), driven), 0.0, at.tau))
    search = _Search(np.arange(mech.nv), _scale(at), tolerance)
    loose = _balance(at, search)
    null = decompose(loose.jacobian).null
    forces = at.tau.copy()
    forces[driven] = search.scale * decompose(null.T[:, driven]).solve(null.T @ loose.forces)
    held = _balance(at._replace(tau=forces), search)
    if np.abs(held.forces).max(initial=0.0) > 1e2 * tolerance:
        names = ", ".join(map(repr, mech.joint_names if actuated is None else actuated)) or "no joints"
        raise _unbalanced(
            held,
            f"forces of {names} cannot hold mechanism {mech.name!r} here",
            "actuate more joints, or let solve_for='q' find where they can",
        )
    return _result(held)


def _unbalanced(here: _Balance, what: str, remedy: str) -> EquilibriumError:
    free = here.search.free
    worst = int(free[np.argmax(np.abs(here.forces[free]))])
    joint, residual = coordinate_names(here.at.mech)[worst], float(abs(here.forces[worst]) * here.search.scale)
    return EquilibriumError(
        f"{what}: {joint!r} keeps an unbalanced force of {residual:.3g}; {remedy}", joint, residual, here.at.q
    )


def _result(here: _Balance) -> Equilibrium:
    """The equilibrium with its stiffness and stability; held joints have the forces they need."""
    at, scale, free = here.at, here.search.scale, here.search.free
    freedoms = np.eye(at.mech.nv)[:, free] @ decompose(here.jacobian[:, free]).null
    stiffness = scale * (freedoms.T @ _stiffness(here) @ freedoms)
    mass = freedoms.T @ mass_matrix(at.mech, at.q) @ freedoms
    return Equilibrium(
        at.q,
        at.tau,
        scale * float(np.abs(here.forces[free]).max(initial=0.0)),
        scale * here.multipliers,
        stiffness,
        freedoms,
        _stable(stiffness, mass, scale),
    )


def _stable(stiffness: np.ndarray, mass: np.ndarray, scale: float) -> bool | None:
    """Whether all squared frequencies are positive (Lagrange and Dirichlet); None if the smallest vanish."""
    if not len(stiffness):
        return True
    if np.abs(stiffness).max() <= NEUTRAL * scale:
        return None
    try:
        squares = np.linalg.eigvals(np.linalg.solve(mass, stiffness))
    except np.linalg.LinAlgError:  # something moves without inertia: the stiffness alone decides
        squares = np.linalg.eigvals(stiffness)
    size = np.abs(squares).max()
    if np.any(squares.real < -NEUTRAL * size) or np.any(np.abs(squares.imag) > 1e-6 * size):
        return False
    return None if np.any(squares.real <= NEUTRAL * size) else True
