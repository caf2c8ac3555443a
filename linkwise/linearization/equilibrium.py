"""Equilibria: configurations at rest in which forces balance, or joint forces that hold a configuration."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..constraints.assembly import assemble, generic_rank
from ..constraints.decomposition import decompose
from ..constraints.equations import moved_by
from ..constraints.force_units import mixes_units, velocity_units, warn_of_mixed_units
from ..constraints.masks import loop_mask, mechanism_holding, row_mask
from ..constraints.redundancy import closable_error
from ..constraints.sizes import sizes
from ..constraints.tolerances import LOOPS
from ..constraints.variations import State, state_of
from ..dynamics.force_elements import ALL, Applied, chosen_forces
from ..dynamics.passive import Passive
from ..dynamics.states import ByJoint, Float64Array
from ..mechanism import Mechanism, MechanismError, one_of, require_mechanism
from ..mechanism.checks import names_of
from ..mechanism.quaternions import NOT_UNIT
from ..mechanism.scales import scales
from .actuated import driven
from .balance import Balance, Search, balance, descent, drop, has_potential, inertia, newton, relaxed, stiffness
from .coordinates import coordinate_names, named_rows

UNKNOWNS = ("q", "tau", "ctrl")
BALANCED = 1e-10  # relative to the weight and the given forces: what is left unbalanced
NEUTRAL = 1e-9  # relative: a stiffness below is none
STANDING = 0.5  # radians, or of the mechanism's length: what stands on the ground has fallen if it is further away
NEARBY = 0.1  # radians, or of the mechanism's length: what is so near is taken without a look at other ways


class EquilibriumError(MechanismError):
    """No equilibrium was found. ``joint`` names the worst coordinate, ``residual`` is its unbalanced force, ``q`` is
    the last configuration.
    """

    def __init__(self, message: str, joint: str, residual: float, q: Float64Array):
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
    stiffness     (p, p): unbalanced force per displacement along the p degrees of freedom (held joints fixed), an
                  orthonormal basis of which is ``dofs`` (nv, p)
    stable        whether the stiffness brings small displacements back: None if some direction has none, and at
                  singular positions, where degrees of freedom to first order are not those of the mechanism.
                  (Springs and gravity decide; dampers make stable equilibria attractive.)
    ctrl          (n_ctrl,): the control inputs that were found, with solve_for="ctrl"
    distance      from the guess: the largest change of a coordinate (rad, m)
    """

    q: Float64Array
    tau: Float64Array
    residual: float
    multipliers: Float64Array
    stiffness: Float64Array
    dofs: Float64Array
    stable: bool | None
    ctrl: Float64Array | None = None
    distance: float = 0.0

    def __repr__(self) -> str:
        kind = {True: "stable", False: "unstable", None: "neutral"}[self.stable]
        return f"<Equilibrium: {kind}, unbalanced forces below {self.residual:.1e}, q = {self.q}>"


def find_equilibrium(
    mech: Mechanism,
    q_guess: ByJoint | None = None,
    tau: ByJoint | None = None,
    hold: Sequence[str] = (),
    passive: Passive | None = None,
    wrenches: ArrayLike | None = None,
    solve_for: str = "q",
    actuated: Sequence[str] | None = None,
    tolerance: float = BALANCED,
    max_steps: int = 200,
    stable: bool = False,
    ctrl: ByJoint | None = None,
    activation: ArrayLike | None = None,
    within: float | None = None,
    forces: Any = ALL,
    active: ArrayLike | None = None,
) -> Equilibrium:
    """A state of rest near ``q_guess``, or the joint forces that keep the mechanism at ``q_guess``, under all force
    elements (``forces="all"``).

    q_guess     ``mech.initial`` (the file's configuration, else neutral) if left out
    solve_for   "q": the configuration in which joint forces ``tau`` (zero if left out), gravity, springs and wrenches
                balance, loops closed; a near one, stable or not.  "tau": the least forces of the ``actuated``
                joints (all by default) that hold ``q_guess``, with ``tau`` at the other joints.  "ctrl": the
                control inputs of the actuators that hold it, within their ranges
    hold        joints that stay at the guess; their holding forces are part of the result
    forces      force elements that act: "all", except those that ``mech.with_acting`` switched off; "none", kinds by
                name or a ``lw.forces.Passive``: see ``lw.forward_dynamics``
    passive     springs, stops, ... (``linkwise.forces.Passive``) instead of those of the mechanism's joints
    ctrl, activation   control inputs and states of actuators, as for ``linearize``
    wrenches    (n_links, 6): external, constant in the link frames
    active      (len(mech.loops),) booleans: constraints that hold; default: all
    stable      with solve_for="q": only accept a stable equilibrium, the end of a descent of the energy from the guess.
                (Directions without stiffness may remain: ``stable`` of the result is then None.)
    within      largest distance of a coordinate from the guess (rad, m); None: any distance, but 0.5 rad, or half the
                mechanism's length, for mechanisms on contacts or with a floating base that loops hold
    tolerance   largest unbalanced force, relative to the weight and the given forces
    max_steps   of Newton's method, and of each descent

    Newton's method on the configuration manifold, damped so that every step reduces the unbalanced forces, with exact
    derivatives. Where it fails, a descent of the energy follows, with closed loops, which ends in a minimum if there is
    one below; with forces that have no energy (actuators, wrenches, joint forces on spherical and floating joints) it
    is an overdamped relaxation. ``EquilibriumError`` names the most unbalanced coordinate, or the distance of the
    nearest equilibrium, and the methods that failed. One state.
    """
    one_of("solve_for", solve_for, UNKNOWNS)
    furthest = math.inf if solve_for == "q" else NOT_UNIT
    require_mechanism(mech)
    if active is not None:
        mask = loop_mask(mech, active)
        if mask is None or mask.ndim > 1:
            raise MechanismError(f"find_equilibrium takes one state, not the batch {np.shape(active)[:-1]}")
        options = hold, passive, wrenches, solve_for, actuated, tolerance, max_steps, stable, ctrl, activation, within
        balanced = find_equilibrium(mechanism_holding(mech, mask), q_guess, tau, *options, forces)
        multipliers = np.zeros(mech.n_constraints)
        multipliers[row_mask(mech, mask) > 0.0] = balanced.multipliers
        return replace(balanced, multipliers=multipliers)
    if forces is not ALL:
        mech, passive = chosen_forces(mech, forces, passive)
    elements = driven(mech, passive, ctrl, activation)
    at = state_of(mech, q_guess, None, tau, wrenches, elements, name="q_guess", furthest=furthest)
    if at.batch:
        raise MechanismError(f"find_equilibrium takes one state, not the batch {at.batch}")
    hold = names_of(hold)
    held = moved_by(mech, hold, "hold")
    if solve_for != "q":
        if len(held) or stable or within is not None:
            argument = "hold" if len(held) else "stable" if stable else "within"
            raise MechanismError(f"{argument} is for solve_for='q': a given configuration stays where it is altogether")
        if solve_for == "tau":
            return _holding(at, actuated, tolerance)
        if actuated is not None or ctrl is not None or activation is not None:
            raise MechanismError(
                "solve_for='ctrl' finds the inputs of all actuators: leave out actuated, ctrl, activation"
            )
        return _held_by_actuators(at, passive, tolerance)
    if actuated is not None:
        raise MechanismError("actuated is for solve_for='tau': joints with unknown forces are named by hold")
    at = at._replace(q=assemble(mech, at.q, hold=hold))
    free = np.setdiff1d(np.arange(mech.nv), held)
    search = Search.start_at(at, free, hold, _energy(at), tolerance, _furthest(mech, within))
    balance = _balanced(at, search, stable, max_steps)
    forces = at.tau.copy()
    forces[held] += search.joint_forces(balance.forces)[held]
    return _result(balance._replace(at=balance.at._replace(tau=forces)))


# -- the configuration --------------------------------------------------------------------------------


def _furthest(mech: Mechanism, within: Any) -> np.ndarray | float:
    """(nv,) or one number: the largest steps of coordinates from the guess."""
    if within is None:
        return STANDING * scales(mech).of_v if _stands(mech) else math.inf
    if not (isinstance(within, (int, float)) and within > 0.0):
        raise ValueError(f"within must be a positive number (rad, m) or None, got {within!r}")
    return float(within)


def _stands(mech: Mechanism) -> bool:
    """Whether shapes are in contact, or constraints hold links of a floating base to the ground."""
    if any(mech.forces.acts("contact", pair.name) for pair in mech.contact_pairs):
        return True
    for loop in (constraint for constraint in mech.loops if constraint.links):
        sides = [mech.frame(link).body for link in loop.links]
        if min(sides) < 0 and mech.bodies[_root(mech, max(sides))].kind.is_free:
            return True
    return False


def _root(mech: Mechanism, body: int) -> int:
    while mech.tree.parents[body] >= 0:
        body = mech.tree.parents[body]
    return body


def _attempts(at: State, search: Search, stable: bool, max_steps: int) -> Iterator[tuple[str, Balance]]:
    """Searches for an equilibrium with their results, the nearest equilibrium first; with ``stable``, only descents."""
    if not stable:
        yield "Newton's method from the guess", newton(at, search, max_steps)
    potential = has_potential(at, search)
    if potential:
        way = descent(at, search, max_steps)
        yield f"descent of the energy, which fell by {drop(way):.3g}", newton(way[-1].at, search, max_steps)
        best = min(way, key=lambda balance: balance.size)
        yield "Newton's method from the best place on that way", newton(best.at, search, max_steps)
    if not (stable and potential):
        end = relaxed(at, search, max_steps, stable)
        yield "overdamped relaxation", newton(end.at, search, max_steps)


def _balanced(at: State, search: Search, stable: bool, max_steps: int) -> Balance:
    """The first search that ends in balance, and with ``stable`` not at a saddle. Bounded searches continue until an
    equilibrium is near enough, and return the nearest.
    """
    tried: list[tuple[str, Balance]] = []
    balances: list[Balance] = []
    for way, here in _attempts(at, search, stable, max_steps):
        tried.append((way, here))
        if here.size <= search.tolerance and not (stable and _result(here).stable is False):
            balances.append(here)
            is_near = search.distance(here.at) <= NEARBY and search.share(here.at) <= 1.0
            if is_near or not search.is_bounded:
                break
    nearest = min(balances, key=lambda balance: search.distance(balance.at), default=None)
    if nearest is not None and search.share(nearest.at) <= 1.0:
        return nearest
    attempts = "; ".join(dict.fromkeys(way for way, _ in tried))
    if nearest is not None:
        raise _too_far(nearest, stable, attempts)
    best = min((here for _, here in tried), key=lambda balance: balance.size)
    if best.size <= search.tolerance:
        raise _saddle(best, attempts)
    distances = " or ".join(f"{step:.3g}" for step in np.unique(search.within))
    near = "" if not search.is_bounded else f" within {distances} (rad, m)"
    raise _unbalanced(
        best,
        f"no {'stable ' * stable}equilibrium of mechanism {at.mech.name!r} was found from this guess{near}",
        f"tried were {attempts}: start nearer to one, hold joints that forces drive on and on, or balance those forces "
        "(solve_for='tau' finds forces that hold the guess)",
    )


def _energy(at: State) -> float:
    """A reference energy: weight times length, plus the work of other forces and springs in a unit step."""
    units = scales(at.mech)
    energy = at.mech.parameters.masses.sum() * np.linalg.norm(at.mech.gravity) * units.length
    energy += np.abs(at.tau * units.of_v).max(initial=0.0)
    if at.wrenches is not None:
        energy += np.abs(at.wrenches * np.repeat([1.0, units.length], 3)).max(initial=0.0)
    if at.passive is not None:
        by_q = at.passive.derivatives(at.q, at.v)[0]
        energy += np.abs(by_q * np.multiply.outer(units.of_v, units.of_v)).max(initial=0.0)
    return float(energy) or units.moment or 1.0


# -- the forces ---------------------------------------------------------------------------------------


def _refuse_open(at: State) -> None:
    mech = at.mech
    error = closable_error(mech, at.q)
    if np.abs(sizes(mech).rows * error).max(initial=0.0) > LOOPS.open_in_derivatives:
        raise MechanismError(
            f"the loops of mechanism {mech.name!r} are open by {np.abs(error).max():.3g}: close them with "
            "linkwise.constraints.assemble"
        )


def _held_by_actuators(at: State, passive: Any, tolerance: float) -> Equilibrium:
    """Control inputs that hold the configuration."""
    _refuse_open(at)
    inputs, held = holding_inputs(at, Search.start_at(at, np.arange(at.mech.nv), (), _energy(at), tolerance), passive)
    if np.abs(held.forces).max(initial=0.0) > 1e2 * tolerance:
        raise _unbalanced(
            held,
            f"no control inputs within their ranges hold mechanism {at.mech.name!r} here",
            "give it more or stronger actuators, or let solve_for='q' find where given ones hold it",
        )
    return replace(_result(held), ctrl=inputs)


def _holding(at: State, actuated: Sequence[str] | None, tolerance: float) -> Equilibrium:
    """Forces of the actuated joints that hold the configuration."""
    mech = at.mech
    _refuse_open(at)
    driving = np.eye(mech.nv) if actuated is None else named_rows(mech, actuated, "actuated")[1]
    at = at._replace(tau=np.where(driving.any(axis=0), 0.0, at.tau))
    search = Search.start_at(at, np.arange(mech.nv), (), _energy(at), tolerance)
    loose = balance(at, search)
    null = decompose(loose.jacobian).null
    each = search.energy / (np.abs(driving) @ velocity_units(mech))  # unit forces of the actuated joints
    by_forces = null.T @ (search.units[:, None] * driving.T * each / search.energy)
    forces = at.tau + driving.T @ (each * decompose(by_forces).solve(null.T @ loose.forces))
    coordinates = np.abs(driving).argmax(axis=1)
    if mixes_units(mech, coordinates):
        warn_of_mixed_units(mech, by_forces, coordinates, actuated)
    held = balance(at._replace(tau=forces), search)
    if np.abs(held.forces).max(initial=0.0) > 1e2 * tolerance:
        names = ", ".join(map(repr, mech.joint_names if actuated is None else names_of(actuated))) or "no joints"
        raise _unbalanced(
            held,
            f"forces of {names} cannot hold mechanism {mech.name!r} here",
            "actuate more joints, or let solve_for='q' find where they can",
        )
    return _result(held)


def _unbalanced(here: Balance, headline: str, remedy: str) -> EquilibriumError:
    free = here.search.free
    worst = int(free[np.argmax(np.abs(here.forces[free]))])
    joint, residual = coordinate_names(here.at.mech)[worst], float(abs(here.search.joint_forces(here.forces)[worst]))
    return EquilibriumError(
        f"{headline}: {joint!r} keeps an unbalanced force of {residual:.3g}; {remedy}", joint, residual, here.at.q
    )


def _saddle(here: Balance, attempts: str) -> EquilibriumError:
    mech = here.at.mech
    dofs = here.dofs
    curvature = dofs.T @ stiffness(here) @ dofs
    falling = dofs @ np.linalg.eigh(0.5 * (curvature + curvature.T))[1][:, 0]
    joint = coordinate_names(mech)[int(np.argmax(np.abs(falling)))]
    return EquilibriumError(
        f"no stable equilibrium of mechanism {mech.name!r} was found from this guess: that at which the search ended "
        f"falls over, {joint!r} the most; tried were {attempts}.  Start nearer to one, or leave stable=True out",
        joint,
        0.0,
        here.at.q,
    )


def _too_far(here: Balance, stable: bool, attempts: str) -> EquilibriumError:
    mech, search = here.at.mech, here.search
    way = np.abs(search.way(here.at))
    worst = int(np.argmax(way / search.within))
    joint, distance = coordinate_names(mech)[worst], float(way[worst])
    return EquilibriumError(
        f"no {'stable ' * stable}equilibrium of mechanism {mech.name!r} is near this guess: that which was found has "
        f"{joint!r} {distance:.3g} (rad, m) away, more than within={search.within[worst]:.3g}; tried were {attempts}.  "
        "Start nearer to one, let actuators or joint forces hold it (solve_for='tau' finds those that hold the guess), "
        f"or give within={_rounded_up(distance):g} to accept it",
        joint,
        0.0,
        here.at.q,
    )


def _rounded_up(x: float) -> float:
    """The number rounded up to two digits."""
    last = 10.0 ** (math.floor(math.log10(x)) - 1)
    return math.ceil(x / last) * last


def _result(here: Balance) -> Equilibrium:
    """The equilibrium with its stiffness and stability, and the forces that locked joints need."""
    at, search = here.at, here.search
    along, mass = (here.dofs.T @ matrix @ here.dofs for matrix in (stiffness(here), inertia(here)))
    is_singular = decompose(here.jacobian).rank < generic_rank(at.mech, at.q)  # the rank is smaller than nearby
    dofs = here.dofs
    if (search.units != 1.0).any():  # an orthonormal basis of joint displacements, whatever their units
        dofs, change = np.linalg.qr(search.units[:, None] * dofs)
        back = np.linalg.inv(change)
        raw = search.energy * (back.T @ along @ back)
    else:
        raw = search.energy * along
    return Equilibrium(
        at.q,
        at.tau,
        float(np.abs(search.joint_forces(here.forces)[search.free]).max(initial=0.0)),
        here.loop_multipliers,
        raw,
        dofs,
        None if is_singular else _stable(along, mass),
        distance=float(np.abs(search.way(at)).max(initial=0.0)),
    )


def _stable(stiffness: np.ndarray, mass: np.ndarray) -> bool | None:
    """Whether all squared frequencies are positive (Lagrange and Dirichlet); None if the smallest is zero to rounding.
    The matrices are dimensionless, in independent coordinates.
    """
    if not len(stiffness):
        return True
    if np.abs(stiffness).max() <= NEUTRAL:
        return None
    try:
        squares = np.linalg.eigvals(np.linalg.solve(mass, stiffness))
    except np.linalg.LinAlgError:  # something moves without inertia: the stiffness alone decides
        squares = np.linalg.eigvals(stiffness)
    size = np.abs(squares).max()
    if np.any(squares.real < -NEUTRAL * size) or np.any(np.abs(squares.imag) > 1e-6 * size):
        return False
    return None if np.any(squares.real <= NEUTRAL * size) else True


def holding_inputs(at: State, search: Search, passive: Any) -> tuple[np.ndarray, Balance]:
    """(n_ctrl,): the control inputs, within their ranges, that leave the least unbalanced force; and its balance.

    Among several they have the least norm. If some actuators make forces and others torques, each is measured by its
    joint forces, with the mechanism's length as lever arm of forces. Filters have the activations of their inputs;
    integrators, at rest, no input.
    """
    from scipy.optimize import lsq_linear

    mech = at.mech
    if not mech.n_ctrl:
        raise MechanismError(
            f"solve_for='ctrl': no actuator of mechanism {mech.name!r} acts; solve_for='tau' finds joint forces"
        )
    start = np.array([_middle(low, high) for low, high in mech.forces.ctrl_range.tolist()])
    elements = driven(mech, passive, start)
    assert elements is not None
    loose = balance(at._replace(passive=elements), search)
    null = decompose(loose.jacobian).null
    by_inputs = search.units[:, None] * _force_per_input(mech, elements, at) / search.energy
    effect = np.ones(mech.n_ctrl)
    if mixes_units(mech, np.flatnonzero(by_inputs.any(axis=1))):
        effect = np.linalg.norm((velocity_units(mech) / search.units)[:, None] * by_inputs, axis=0)
        effect = np.where(effect > 0.0, effect, 1.0)
    driving = null.T @ by_inputs / effect
    free = np.array([actuator.dynamics != "integrator" for actuator in mech.forces.actuators])
    lower, upper = ((mech.forces.ctrl_range[free] - start[free, None]) * effect[free, None]).T
    needed = null.T @ loose.forces
    inputs = start.copy()
    inputs[~free] = 0.0
    if free.any():
        inputs[free] += lsq_linear(driving[:, free], needed, (lower, upper), tol=1e-14).x / effect[free]
    return inputs, balance(at._replace(passive=driven(mech, passive, inputs)), search)


def _middle(low: float, high: float) -> float:
    if low < 0.0 < high:
        return 0.0
    return (
        0.5 * (low + high) if math.isfinite(low) and math.isfinite(high) else (low + 1.0 if low >= 0.0 else high - 1.0)
    )


def _force_per_input(mech: Mechanism, elements: Applied, at: State) -> np.ndarray:
    """(nv, n_ctrl): joint forces per unit of each input, through the activations of filters."""
    slopes = elements.all_derivatives(at.q, np.zeros(mech.nv))
    through = np.zeros((elements.elements.n_activation, mech.n_ctrl))
    states = (i for i, actuator in enumerate(mech.forces.actuators) if actuator.has_activation)
    for row, i in enumerate(states):
        through[row, i] = mech.forces.actuators[i].dynamics != "integrator"
    return slopes.by_ctrl[: mech.nv] + slopes.by_activation[: mech.nv] @ through
