"""The motion near a state, linearized exactly (spencer2004 4.2, 4.4, Appendix B).

A tree is a mechanism without loops.  With M a + h = tau - G* lambda and [R; G] a = [d2y/dt2; -dG/dt v], all
terms of Appendix B in dK/dy, dK/dt and d2K/dt2 come from derivatives along q of three vectors (algorithms/
linearization.py), because these matrices occur in products only:

    dK*/dy (tau_NE - tau) = K* d(G* lambda)/dq K,    dK/dt = -L d(G v)/dq K,    K* M d2K/dt2 from -L d(G a + dG/dt v)/dq

where [K, L] is the inverse of [R; G] (4.11), or its pseudo-inverse where constraints are redundant.

With nonholonomic constraints, positions have more independent coordinates than velocities: steps of q
are along the null space of the other constraints, changes of v along that of all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..compiler.store import float64_function
from ..dynamics.by_joint import state_by_joint
from ..dynamics.derivatives import Derivative, inverse_dynamics_derivatives
from ..dynamics.force_elements import applied
from ..dynamics.passive import Passive
from ..dynamics.states import ByJoint, Float64Array, state_arrays
from ..dynamics.trees import inverse_dynamics
from ..mechanism import Mechanism, MechanismError
from ..mechanism.quaternions import NOT_UNIT, with_unit_quaternions
from .accelerations import Terms, require_inertia_of_motions, terms
from .decomposition import Decomposition, times, transposed_times
from .equations import decomposed_jacobian, loop_of, opening_rates
from .masks import loop_mask, row_mask
from .redundancy import redundancy
from .sizes import sizes
from .tolerances import LOOPS

CONSTRAINT_MOTION_BY_Q = Derivative("constraint_motion", "q", mode="forward")
SINGULAR = 1e-6  # relative: constraints that become independent faster than this, per unit of motion, are not redundant


class State(NamedTuple):
    """A state: q (nq), v, tau (nv), wrenches (n_links, 6) or None, of one batch shape; force elements; active loops
    (number of loops), 1 or 0, None for all."""

    mech: Mechanism
    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray
    wrenches: np.ndarray | None
    passive: Any  # force elements: ``Resolved``, or another object with its functions of q and v; None without
    active: np.ndarray | None = None

    @property
    def batch(self) -> tuple[int, ...]:
        return self.q.shape[:-1]


@dataclass(frozen=True)
class Independent:
    """Independent coordinates y with dy/dt = rows v, and their motions; batches in front.

    names     (p): names of coordinates, or y1, y2, ... for linear combinations
    rows      (p, nv): R
    null      (nv, p): a basis of the null space of G, orthonormal in dimensionless coordinates
    basis     (nv, p): K, with R K = 1 and G K = 0: dq/dt per unit of dy/dt
    closing   (nv, m): L, with R L = 0 and G L x = x for every x in the range of G: [K, L] is [R; G]^+ (4.11)
    """

    names: tuple[str, ...]
    rows: Float64Array
    null: Float64Array
    basis: Float64Array
    closing: Float64Array


def null_space_coordinates(mech: Mechanism, svd: Decomposition) -> Independent:
    """Orthonormal combinations of the dimensionless coordinates, valid at every regular position: R projects onto the
    nearest motion, and L moves the least.  A batch has the largest number of all states; unused columns of K are
    zero."""
    dofs = mech.nv - int(svd.rank.min(initial=svd.s.shape[-1]))
    free = svd.is_free[..., None, mech.nv - dofs :]
    null = svd.null_of(dofs) * free
    rows = np.swapaxes(svd.v[..., mech.nv - dofs :] * free, -1, -2) / sizes(mech).columns
    return Independent(numbered(dofs), rows, null, null, svd.pseudo_inverse)


def filled(matrix: np.ndarray, basis: np.ndarray) -> np.ndarray:
    """(..., p, p): K* X K made regular by a nonzero diagonal for columns of zeros in K."""
    diagonal = np.einsum("...ii->...i", matrix)
    size = np.abs(diagonal).max(axis=-1, initial=0.0, keepdims=True)
    return matrix + np.eye(matrix.shape[-1]) * (~basis.any(axis=-2) * np.where(size > 0.0, size, 1.0))[..., None, :]


def dofs_of(mech: Mechanism, svd: Decomposition) -> int:
    """The number of degrees of freedom, the same for every state of a batch; for an empty batch, that of independent
    constraints."""
    rank = svd.rank
    lowest = int(rank.min(initial=svd.s.shape[-1]))
    if rank.ndim and not np.all(rank == lowest):
        raise MechanismError(
            f"states of mechanism {mech.name!r} have from {mech.nv - int(rank.max())} to {mech.nv - lowest} degrees of "
            "freedom: linearize those with equally many together"
        )
    return mech.nv - lowest


def numbered(count: int) -> tuple[str, ...]:
    """Names y1, y2, ... of combinations of coordinates."""
    return tuple(f"y{i + 1}" for i in range(count))


class Variations(NamedTuple):
    """The motion near a state, in independent coordinates (y, dy/dt) and in those of all joints; batches in front.

    y is R times the step from the state to its neighbour (``difference``), dy/dt is R v.

    independent     independent coordinates of v, with K
    positions       independent coordinates of q; more than ``independent`` with nonholonomic constraints, and then y is
                    R_q times the step
    tangent         (2 nv, 2 p): steps of q and changes of v, per unit of (y, dy/dt): the derivative of Psi
    rates           (2 nv, 2 p): changes of their rates: the derivative of f(Psi)
    own_rates       (2 p, 2 p): A, changes of the rates of (y, dy/dt)
    response        (p, nv): second derivatives of y per unit of joint forces, (K* M K)^-1 K*
    acceleration    (nv): at the state itself
    """

    independent: Independent
    positions: Independent
    tangent: np.ndarray
    rates: np.ndarray
    own_rates: np.ndarray
    response: np.ndarray
    acceleration: np.ndarray


def state_of(
    mech: Mechanism,
    q: ByJoint | None,
    v: ByJoint | None,
    tau: ByJoint | None,
    wrenches: ArrayLike | None,
    elements: Any = None,
    active: Any = None,
    name: str = "q",
    furthest: float | None = NOT_UNIT,
) -> State:
    """The checked state, with arrays of one batch shape and the defaults of ``states.otherwise`` for None.  Quaternions
    of q get unit length; errors beyond ``furthest`` raise under ``name``, None skips this (stages of an integrator).
    ``elements`` are force elements, ``force_elements.Applied`` or a ``Passive``; ``active`` (..., number of loops)."""
    state = state_by_joint(mech, {"q": q, "v": v, "tau": tau})
    arrays = state_arrays(mech, state if wrenches is None else {**state, "wrenches": wrenches}, optional=True)
    mask = loop_mask(mech, active, q=arrays["q"])
    elements = applied(mech, elements, None, None) if isinstance(elements, Passive) else elements
    others = [] if elements is None else [elements.batch]
    others += [] if mask is None else [mask.shape[:-1]]
    batch = np.broadcast_shapes(arrays["q"].shape[:-1], *others)
    if batch != arrays["q"].shape[:-1]:
        arrays = {
            name: np.broadcast_to(x, (*batch, *x.shape[x.ndim - (2 if name == "wrenches" else 1) :]))
            for name, x in arrays.items()
        }
    if furthest is not None:
        arrays["q"] = with_unit_quaternions(mech, name, arrays["q"], furthest)
    mask = None if mask is None else np.broadcast_to(mask, (*batch, mask.shape[-1]))
    return State(mech, arrays["q"], arrays["v"], arrays["tau"], arrays.get("wrenches"), elements, mask)


class Motion(NamedTuple):
    """The motion at a state: forces on the joints and accelerations, in the independent coordinates."""

    independent: Independent
    response: np.ndarray  # (p, nv): (K* M K)^-1 K*
    acceleration: np.ndarray  # (nv,)
    multipliers: np.ndarray  # (m,): G* lambda = tau - tau_NE


def variations(
    at: State,
    choose: Callable[[Mechanism, Decomposition], Independent] = null_space_coordinates,
    rank: int | None = None,
    choose_positions: Callable[[Mechanism, Decomposition], Independent] = null_space_coordinates,
) -> Variations:
    """The motion near ``at`` in the independent coordinates of ``choose``, and of ``choose_positions`` for positions.

    ``rank`` bounds the number of independent constraints if loops are not exactly closed; then nothing is checked.
    """
    equations = terms(at.mech, at.q, at.v, active=at.active)
    if rank is None:
        refuse_open(at, equations)
    svd = decomposed_jacobian(at.mech, equations.jacobian, rank=rank)
    try:
        chosen = choose(at.mech, svd)
    except MechanismError:
        _refuse_singular_positions(at, svd)  # no choice of coordinates is valid there
        raise
    here = _motion(at, equations, chosen)
    basis, closing = here.independent.basis, here.independent.closing
    positions = chosen
    if at.mech.constraints.is_nonholonomic:
        holonomic = equations.jacobian * at.mech.constraints.holonomic_rows[:, None]
        positions = choose_positions(at.mech, decomposed_jacobian(at.mech, holonomic))
    rows, steps, p = positions.rows, positions.basis, positions.basis.shape[-1]

    # Derivatives of tau_NE - tau + G* lambda by q and v, of G a + dG/dt v by q, and of G v by q.
    by_q, by_v = force_derivatives(at, here.acceleration)
    reaction_by_q, bias_by_q, velocity_by_q = constraint_derivatives(at, svd, here, rank is None)
    step_rates = step_rate_jacobian(at)
    if positions is chosen:  # d(dG/dt v)/dv: 2 dG/dt, except for steps that do not commute
        bias_of_v = 2.0 * (velocity_by_q - equations.jacobian @ step_rates)
    else:
        bias_of_v = bias_by_v(at, here)

    # Derivatives of K, dK/dt and the accelerations by loops, by (y, dy/dt).
    steps_of_q = np.concatenate([steps, np.zeros_like(basis)], axis=-1)
    steps_of_v = np.concatenate([-(closing @ (velocity_by_q @ steps)), basis], axis=-1)
    bent = closing @ (bias_by_q @ steps_of_q + bias_of_v @ steps_of_v)

    # A21 and A22 of Section 4.2 side by side, for any joints and with joint forces (B.3, B.5).
    missing = (by_q + reaction_by_q) @ steps_of_q + by_v @ steps_of_v - equations.mass @ bent
    own_rates = np.zeros((*at.batch, steps_of_q.shape[-1], steps_of_q.shape[-1]))
    if positions is chosen:
        own_rates[..., :p, :p] = rows @ (step_rates @ basis)
        own_rates[..., :p, p:] = np.eye(p)
    else:
        own_rates[..., :p, :] = rows @ (steps_of_v + step_rates @ steps_of_q)
    own_rates[..., p:, :] -= here.response @ missing
    return Variations(
        here.independent,
        positions,
        np.concatenate([steps_of_q, steps_of_v], axis=-2),
        np.concatenate([steps_of_v + step_rates @ steps_of_q, basis @ own_rates[..., p:, :] - bent], axis=-2),
        own_rates,
        here.response,
        here.acceleration,
    )


def _motion(at: State, equations: Terms, chosen: Independent) -> Motion:
    """Accelerations (B.2) and multipliers, from one solution with K* M K."""
    basis, closing = chosen.basis, chosen.closing
    across = np.swapaxes(basis, -1, -2)
    force = applied_force(at) - (equations.bias_force if at.wrenches is None else bias_force(at))
    offset = -times(closing, equations.bias)
    reduced = filled(across @ equations.mass @ basis, basis)
    require_inertia_of_motions(at.mech, reduced, "linearize")
    response = np.linalg.solve(reduced, across)
    acceleration = times(basis, times(response, force - times(equations.mass, offset))) + offset
    multipliers = transposed_times(closing, force - times(equations.mass, acceleration))
    return Motion(chosen, response, acceleration, multipliers)


def applied_force(at: State) -> np.ndarray:
    """(nv,): joint forces, commanded and of force elements."""
    return at.tau if at.passive is None else at.tau + at.passive.forces(at.q, at.v)


def force_derivatives(at: State, acceleration: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(nv, nv) each: tau_NE minus applied forces, by q and by v (Section 4.3)."""
    by_q, by_v, _ = inverse_dynamics_derivatives(at.mech.spanning_tree, at.q, at.v, acceleration, at.wrenches)
    if at.passive is None:
        return by_q, by_v
    passive_by_q, passive_by_v = at.passive.derivatives(at.q, at.v)
    return by_q - passive_by_q, by_v - passive_by_v


def bias_force(at: State) -> np.ndarray:
    """(nv,): joint forces at zero acceleration, wrenches included."""
    return inverse_dynamics(at.mech.spanning_tree, at.q, at.v, np.zeros(at.mech.nv), at.wrenches)


# -- derivatives of the constraints -------------------------------------------------------------------


def constraint_derivatives(
    at: State, svd: Decomposition, here: Motion, check: bool
) -> tuple[Any, np.ndarray, np.ndarray]:
    """Derivatives along q of G* lambda (nv, nv), G a + dG/dt v (m, nv) and G v (m, nv).  ``check``: raise in singular
    positions."""
    n, m = at.mech.nv, at.mech.n_constraints
    if not m:
        return 0.0, np.zeros((*at.batch, 0, n)), np.zeros((*at.batch, 0, n))
    null = here.independent.null
    # Multipliers of redundant constraints are evaluated in the same batch: see _refuse_singular.
    untold = _undetermined_multipliers(at, svd, n - null.shape[-1] if check else m)
    along = np.concatenate([here.multipliers[..., None, :], untold], axis=-2)
    q, v, a = (x[..., None, :] for x in (at.q, at.v, here.acceleration))
    derivatives = float64_function(at.mech, CONSTRAINT_MOTION_BY_Q)(q, v, a, along)
    _refuse_singular(at.mech, svd.s[..., 0], null, derivatives[..., 1:, :n, :])
    first = derivatives[..., 0, :, :]
    return first[..., :n, :], mask_rows(at, first[..., n : n + m, :]), mask_rows(at, first[..., n + m :, :])


def mask_rows(at: State, rows: np.ndarray) -> np.ndarray:
    """(..., m, k): rows of all constraints, zero for inactive loops."""
    return rows if at.active is None else rows * row_mask(at.mech, at.active)[..., None]


def bias_by_v(at: State, here: Motion) -> np.ndarray:
    """(m, nv): derivative of G a + dG/dt v by v, for any constraints."""
    n, m = at.mech.nv, at.mech.n_constraints
    by_v = Derivative("constraint_motion", "v", mode="forward")
    slopes = float64_function(at.mech, by_v)(at.q, at.v, here.acceleration, here.multipliers)
    return mask_rows(at, slopes[..., n : n + m, :])


def reaction_derivative(at: State, multipliers: np.ndarray) -> np.ndarray:
    """(nv, nv): derivative of G* lambda along q."""
    n = at.mech.nv
    if not at.mech.loops:
        return np.zeros((*at.batch, n, n))
    still = np.zeros(n)
    return float64_function(at.mech, CONSTRAINT_MOTION_BY_Q)(at.q, still, still, multipliers)[..., :n, :]


def step_rate_jacobian(at: State) -> np.ndarray:
    """(nv, nv): derivative of the rate of a step along steps; zero if steps commute."""
    if at.mech.coordinates.steps_commute:
        return np.zeros((at.mech.nv, at.mech.nv))
    return float64_function(at.mech, "step_rate_jacobian")(at.v)


# -- refusals ---------------------------------------------------------------------------------------


def refuse_open(at: State, equations: Terms) -> None:
    if not at.mech.loops:
        return
    mech = at.mech
    rows = sizes(mech).rows
    opening = np.abs(rows * equations.error).reshape(-1, mech.n_constraints)
    if opening.max(initial=0.0) > LOOPS.open_in_derivatives:
        gap, loop = (opening / rows).max(), loop_of(mech, int(np.argmax(opening.max(axis=0))))
        raise MechanismError(
            f"loop {loop!r} of mechanism {mech.name!r} is open by {gap:.3g}: close it with "
            "linkwise.constraints.assemble or project before linearizing"
        )
    velocity, bound = opening_rates(mech, equations.jacobian, at.v, at.v, LOOPS.velocity_in_derivatives)
    velocity = mask_rows(at, velocity[..., None])[..., 0]
    if np.any(velocity > bound):
        velocity = velocity.reshape(-1, mech.n_constraints)
        loop = loop_of(mech, int(np.argmax(velocity.max(axis=0))))
        raise MechanismError(
            f"the velocities violate the constraints of loop {loop!r} of mechanism {mech.name!r}, by "
            f"{(velocity / rows).max():.3g} per second: make them consistent with "
            "linkwise.constraints.project(mech, q, v)"
        )


def _refuse_singular_positions(at: State, svd: Decomposition) -> None:
    """Raise in singular positions, before coordinates are chosen; states have the same number of degrees of freedom."""
    ranks = np.unique(svd.rank)
    if len(ranks) != 1 or not at.mech.loops:
        return
    bending = reaction_derivative(at._replace(q=at.q[..., None, :]), _undetermined_multipliers(at, svd, ranks[0]))
    _refuse_singular(at.mech, svd.s[..., 0], svd.null_of(at.mech.nv - int(ranks[0])), bending)


def _undetermined_multipliers(at: State, svd: Decomposition, rank: int) -> np.ndarray:
    """(..., m - rank, m): multipliers u of redundant constraints, G* u = 0, of dimensionless size at most 1; zero for
    states of higher rank."""
    m = svd.u.shape[-1]
    untold = (svd.u * (np.arange(m) >= svd.rank[..., None])[..., None, :])[..., rank:]
    return np.swapaxes(mask_rows(at, untold if svd.rows is None else svd.rows[:, None] * untold), -1, -2)


def _refuse_singular(mech: Mechanism, size: np.ndarray, null: np.ndarray, bending: np.ndarray) -> None:
    """Raise if redundant constraints become independent when the mechanism moves.  ``null`` has motions of
    dimensionless size 1, ``size`` is the largest singular value.

    If u* G = 0, then u* dG N vanishes on a manifold where G has one rank, since G N does: N* d(G* u)/dq N = 0.
    Otherwise a first-order degree of freedom is lost nearby, and there is no chart (2.28).
    """
    if not bending.size:
        return
    null = null[..., None, :, :]
    growth = np.sqrt(np.sum((np.swapaxes(null, -1, -2) @ bending @ null) ** 2, axis=(-1, -2, -3)))
    if np.any(growth > max(SINGULAR, redundancy(mech).rounding) * size):
        raise MechanismError(
            f"mechanism {mech.name!r} is at a singular position: it seems to have {null.shape[-1]} degrees of "
            "freedom, but loops that do not constrain some of them here do so nearby "
            f"(by {np.max(growth):.3g} per unit of motion), so that no independent coordinates describe the motion "
            "(2.28 is violated for every choice); linearize at another position"
        )
