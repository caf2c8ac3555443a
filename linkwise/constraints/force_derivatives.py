"""Derivatives of multipliers, constraint forces, loop reactions and joint wrenches.

With M a + h + G* lambda = tau and G a + dG/dt v = 0, steps of q, changes of v and of tau change accelerations and
multipliers together.  All other forces are functions of (q, v, a, lambda), and change by the chain rule.

With redundant constraints lambda has the least dimensionless norm: lambda in the range of G, n* lambda = 0 for all n
with G* n = 0.  Since G* dn = -dG* n, that keeps n* dlambda = n* dG G^+ lambda.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..compiler.registry import compile_instead
from ..compiler.store import float64_function
from ..dynamics import trees as tree
from ..dynamics.derivatives import Derivative, inverse_dynamics_derivatives
from ..dynamics.derivatives import forward_dynamics_derivatives as tree_derivatives
from ..dynamics.force_elements import NONE, applied
from ..dynamics.states import ByJoint, Float64Array
from ..mechanism import Loop, Mechanism, one_of
from .accelerations import spanning_tree_bias, terms
from .decomposition import times
from .derivatives import compiled_or, joint_derivatives
from .equations import decomposed_jacobian
from .reactions import decompose_in_moments, wrenches_of_loops
from .sizes import sizes
from .solver import ALL_DERIVATIVES
from .variations import CONSTRAINT_MOTION_BY_Q, State, Variations, applied_force, mask_rows, state_of

Three = tuple[Float64Array, Float64Array, Float64Array]


def multipliers_derivatives(
    mech: Mechanism,
    q: ByJoint,
    v: ByJoint | None = None,
    tau: ByJoint | None = None,
    wrenches: ArrayLike | None = None,
    active: ArrayLike | None = None,
    forces: Any = NONE,
    ctrl: ArrayLike | Mapping[str, Any] | None = None,
    activation: ArrayLike | None = None,
) -> Three:
    """(d_q, d_v, d_tau), each (m, nv): row i has the derivatives of multiplier i of ``multipliers``, along tangent
    directions of q, by v and by tau; zero for loops that are not ``active`` (..., len(mech.loops)).

    As in ``forward_dynamics_derivatives``, changes of q and v that violate constraints are first projected onto allowed
    ones, as ``constraints.project`` does, with the sizes of all loops, active or not.  The external ``wrenches``
    (n_links, 6) are constant in their link frames.  ``forces``, ``ctrl`` and ``activation``: active force
    elements, as for ``forward_dynamics``.
    """
    elements = applied(mech, forces, ctrl, activation)
    near = _moving(state_of(mech, q, v, tau, wrenches, elements, active))
    return _three(near.d_multipliers)


def constraint_forces_derivatives(
    mech: Mechanism,
    q: ByJoint,
    v: ByJoint | None = None,
    tau: ByJoint | None = None,
    wrenches: ArrayLike | None = None,
    active: ArrayLike | None = None,
    forces: Any = NONE,
    ctrl: ArrayLike | Mapping[str, Any] | None = None,
    activation: ArrayLike | None = None,
) -> Three:
    """(d_q, d_v, d_tau), each (nv, nv): row i has the derivatives of force i of ``constraint_forces``, -G* lambda,
    unique also where multipliers are not.  Arguments and projection are those of ``multipliers_derivatives``."""
    elements = applied(mech, forces, ctrl, activation)
    near = _moving(state_of(mech, q, v, tau, wrenches, elements, active))
    n = mech.nv
    if not mech.loops:
        return _three(np.zeros((*near.at.batch, n, 3 * n)))
    still = np.zeros(n)
    along = float64_function(mech, CONSTRAINT_MOTION_BY_Q)(near.at.q, still, still, near.multipliers)[..., :n, :]
    jacobian = float64_function(mech, "constraint_jacobian")(near.at.q)
    changes = along @ near.d_state[..., :n, :] + np.swapaxes(jacobian, -1, -2) @ near.d_multipliers
    return _three(-changes)


def loop_reactions_derivatives(
    mech: Mechanism,
    q: ByJoint,
    v: ByJoint | None = None,
    tau: ByJoint | None = None,
    wrenches: ArrayLike | None = None,
    active: ArrayLike | None = None,
    frame: str = "loop",
    forces: Any = NONE,
    ctrl: ArrayLike | Mapping[str, Any] | None = None,
    activation: ArrayLike | None = None,
) -> Three:
    """(d_q, d_v, d_tau), each (number of loops, 6, nv): the derivatives of the wrenches of ``loop_reactions``, in the
    axes of ``frame``, "loop" or "world_aligned".  Arguments and projection are those of ``multipliers_derivatives``."""
    one_of("frame", frame, ("loop", "world_aligned"))
    elements = applied(mech, forces, ctrl, activation)
    near = _moving(state_of(mech, q, v, tau, wrenches, elements, active))
    steps = near.d_state[..., : mech.nv, :]
    if not mech.loops:
        return _three(np.zeros((*near.at.batch, 0, 6, 3 * mech.nv)))
    maps = float64_function(mech, "loop_motion_maps")(near.at.q)
    turning = float64_function(mech, Derivative("loop_motion_maps", "q", mode="forward"))(near.at.q)  # (..., m, 6, nv)
    values = wrenches_of_loops(mech, near.at.q, near.multipliers)
    changes = np.zeros((*near.at.batch, len(mech.loops), 6, 3 * mech.nv))
    for k, loop in enumerate(mech.loops):
        rows = mech.constraints.rows(loop.name)
        turned = np.einsum("...rik,...r->...ik", turning[..., rows, :, :], near.multipliers[..., rows])
        changed = np.swapaxes(maps[..., rows, :], -1, -2) @ near.d_multipliers[..., rows, :]
        changes[..., k, :, :] = -(turned @ steps + changed)
        if frame == "world_aligned" and isinstance(loop, Loop):
            axes = tree.frame_pose(mech, near.at.q, loop.link_b)[..., :3, :3] @ loop.pose_b[0]
            spin = tree.jacobian(mech, near.at.q, loop.link_b, frame="world_aligned")[..., :3, :] @ steps
            for part in (slice(0, 3), slice(3, 6)):
                vector = times(axes, values[..., k, part])
                changes[..., k, part, :] = axes @ changes[..., k, part, :] - np.cross(vector[..., None], spin, axis=-2)
    return _three(changes)


def joint_wrenches_derivatives(
    mech: Mechanism,
    q: ByJoint,
    v: ByJoint | None = None,
    tau: ByJoint | None = None,
    wrenches: ArrayLike | None = None,
    active: ArrayLike | None = None,
    forces: Any = NONE,
    ctrl: ArrayLike | Mapping[str, Any] | None = None,
    activation: ArrayLike | None = None,
) -> Three:
    """(d_q, d_v, d_tau), each (n_links, 6, nv): the derivatives of ``joint_wrenches`` under joint forces ``tau``, of
    trees and constrained mechanisms, in link axes.  Arguments and projection are those of
    ``multipliers_derivatives``."""
    elements = applied(mech, forces, ctrl, activation)
    near = _moving(state_of(mech, q, v, tau, wrenches, elements, active))
    at = near.at
    pushes = at.wrenches
    if elements is not None:
        pushes = elements.wrenches(at.q, at.v) + (0.0 if pushes is None else pushes)
    n, state = mech.nv, [at.q, at.v, near.a, near.multipliers]
    ports = () if pushes is None else ("wrenches",)
    joint_derivatives = Derivative("joint_wrenches_within_loops", ("q", "v", "a", "multipliers"), ports)
    partials = float64_function(mech, joint_derivatives)(*state, *([] if pushes is None else [pushes]))
    changes = np.concatenate([near.d_state, near.d_a, near.d_multipliers], axis=-2)
    flat = partials.reshape(*partials.shape[:-3], 6 * mech.n_links, 3 * n + mech.n_constraints) @ changes
    result = flat.reshape(*flat.shape[:-2], mech.n_links, 6, 3 * n)
    if elements is not None:
        by_state = elements.wrench_derivatives(at.q, at.v)
        pushed = (by_state.reshape(*by_state.shape[:-3], 6 * mech.n_links, 2 * n) @ near.d_state).reshape(result.shape)
        result = result + _transmitted(mech, at.q, pushed)
    return _three(result)


def _transmitted(mech: Mechanism, q: np.ndarray, wrenches: np.ndarray) -> np.ndarray:
    """(..., n_links, 6, k): wrenches that joints transmit from k sets of wrenches on links (..., n_links, 6, k)."""
    free, rest = mech.spanning_tree, np.zeros(mech.nv)
    alone = tree.joint_wrenches(free, q, rest, rest)[..., None, :, :]
    pushed = tree.joint_wrenches(free, q[..., None, :], rest, rest, np.moveaxis(wrenches, -1, -3))
    return np.moveaxis(pushed - alone, -3, -1)


for _function in (
    multipliers_derivatives,
    constraint_forces_derivatives,
    loop_reactions_derivatives,
    joint_wrenches_derivatives,
):
    compile_instead("'closed_motion_derivatives', of mechanisms whose constraints are independent")(_function)


# -- the motion and its derivatives -------------------------------------------------------------------------------


class MovingForces(NamedTuple):
    """Accelerations and multipliers at a state, and their derivatives by steps of q and changes of v and tau (3 nv).

    a               (..., nv)
    multipliers     (..., m)
    d_state         (..., 2 nv, 3 nv): steps of q and changes of v, projected onto allowed ones
    d_a             (..., nv, 3 nv)
    d_multipliers   (..., m, 3 nv)
    """

    at: State
    a: Float64Array
    multipliers: Float64Array
    d_state: Float64Array
    d_a: Float64Array
    d_multipliers: Float64Array


def _moving(at: State) -> MovingForces:
    """``MovingForces`` at a state with force elements."""
    elements = at.passive
    near = moving_forces(at._replace(tau=applied_force(at), passive=None))
    if elements is None:
        return near
    n = at.mech.nv
    pushes = np.concatenate(elements.derivatives(near.at.q, near.at.v), axis=-1) @ near.d_state
    d_a, d_multipliers = (x + x[..., 2 * n :] @ pushes for x in (near.d_a, near.d_multipliers))
    return near._replace(at=at, d_a=d_a, d_multipliers=d_multipliers)


def moving_forces(at: State) -> MovingForces:
    """``MovingForces`` at a state without force elements."""
    n = at.mech.nv
    if not at.mech.loops:
        by_q, by_v, by_tau = tree_derivatives(at.mech, at.q, at.v, at.tau, at.wrenches)
        a = tree.forward_dynamics(at.mech, at.q, at.v, at.tau, at.wrenches)
        state = np.zeros((*at.batch, 2 * n, 3 * n))
        state[..., : 2 * n] = np.eye(2 * n)
        none = np.zeros((*at.batch, 0))
        d_a = np.concatenate([by_q, by_v, by_tau], axis=-1)
        return MovingForces(at, a, none, state, d_a, np.zeros((*at.batch, 0, 3 * n)))
    return MovingForces(at, *compiled_or(ALL_DERIVATIVES, at, None, _reference))


def _reference(at: State, near: Variations) -> tuple[np.ndarray, ...]:
    """The results of the kernel, for any constraints, by singular values."""
    mech, n = at.mech, at.mech.nv
    here = terms(mech, at.q, at.v, active=at.active)
    zeros = np.zeros((*at.batch, 2 * n, n))
    d_state = np.concatenate([*joint_derivatives(near, near.tangent), zeros], axis=-1)
    by_tau = near.independent.basis @ near.response
    d_a = np.concatenate([*joint_derivatives(near, near.rates[..., n:, :]), by_tau], axis=-1)
    forces = at.tau - times(here.mass, near.acceleration) - spanning_tree_bias(mech, here, at.q, at.v, at.wrenches)
    by_q, by_v, _ = inverse_dynamics_derivatives(mech.spanning_tree, at.q, at.v, near.acceleration, at.wrenches)
    changes = -np.concatenate([by_q, by_v], axis=-1) @ d_state - here.mass @ d_a  # of G* lambda
    changes[..., 2 * n :] += np.eye(n)

    units, rank = sizes(mech), decomposed_jacobian(mech, here.jacobian).rank
    svd = decompose_in_moments(mech, here.jacobian, rank)
    multipliers = svd.solve_transposed(forces)
    still = np.zeros(n)
    turned = float64_function(mech, CONSTRAINT_MOTION_BY_Q)(at.q, still, still, multipliers)[..., :n, :]
    changes = changes - turned @ d_state[..., :n, :]
    inverse = np.swapaxes(svd.pseudo_inverse, -1, -2)
    d_multipliers = inverse @ changes
    scale = units.multipliers[:, None]
    free = svd.u * (np.arange(svd.u.shape[-1]) >= np.asarray(rank)[..., None])[..., None, :]
    if free.any():  # redundant constraints: multipliers keep the least norm
        velocity = svd.solve(multipliers / units.multipliers**2)
        opened = float64_function(mech, CONSTRAINT_MOTION_BY_Q)(at.q, velocity, still, 0.0 * multipliers)
        opened = mask_rows(at, opened[..., n + mech.n_constraints :, :]) @ d_state[..., :n, :]
        d_multipliers = d_multipliers + scale * (free @ (np.swapaxes(free, -1, -2) @ (scale * opened)))
    return near.acceleration, multipliers, d_state, d_a, d_multipliers


def _three(changes: Float64Array) -> Three:
    by_q, by_v, by_tau = np.split(changes, 3, axis=-1)
    return by_q, by_v, by_tau
