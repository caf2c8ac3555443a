"""Constraint forces: multipliers, wrenches at loop joints and moving joints, and impacts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..compiler.registry import ArrayFunction, register
from ..compiler.store import WRENCHES, float64_function
from ..dynamics import trees as tree
from ..dynamics.force_elements import NONE, applied
from ..dynamics.states import ByJoint, Float64Array, checked_arrays, checked_motion
from ..mechanism import Loop, Mechanism, one_of
from .accelerations import (
    Method,
    Terms,
    accelerations,
    constrained_motion,
    least_norm_basis,
    moving_terms,
    null_space_accelerations,
    spanning_tree_bias,
)
from .decomposition import Decomposition, decompose, times, transposed_times
from .equations import decomposed_jacobian, position_error, warn_if_open, warn_if_opening
from .infinitesimal import refuse_infinitesimal_motions
from .masks import loop_mask
from .redundancy import redundancy
from .sizes import sizes
from .solver import Inputs, solve
from .tolerances import LOOPS

Options = dict[str, Any]
APPLIED = ("wrenches", "forces", "ctrl", "activation")  # options besides the joint forces
OPTIONS = (*APPLIED, "method", "baumgarte", "independent", "rank", "tolerance", "damping")


def constraint_forces(
    mech: Mechanism,
    q: ByJoint,
    v: ByJoint | None = None,
    tau: ByJoint | None = None,
    *,
    active: ArrayLike | None = None,
    **options: Any,
) -> Float64Array:
    """(nv,): the joint forces -G* lambda that the loops exert on the spanning tree, unique even if the multipliers
    are not.  Options are those of ``forward_dynamics``."""
    inputs, how = _check_inputs(mech, q, v, tau, active, options)

    def reference(*state: Any) -> Float64Array:
        return _reaction(mech, how, *state)[0]

    return _solve(mech, "closed_constraint_forces", inputs, how, reference)


def multipliers(
    mech: Mechanism,
    q: ByJoint,
    v: ByJoint | None = None,
    tau: ByJoint | None = None,
    *,
    active: ArrayLike | None = None,
    **options: Any,
) -> Float64Array:
    """(m,): Lagrange multipliers, M a + h = tau - G* lambda; zero for loops that are not ``active``.

    With redundant constraints they have the least norm of moments.  Forces count by their moments at the longest offset
    of the mechanism, so that the norm does not depend on units.  Options are those of ``forward_dynamics``."""
    inputs, how = _check_inputs(mech, q, v, tau, active, options)

    def reference(*state: Any) -> Float64Array:
        return _multipliers(mech, how, *state)

    return _solve(mech, "closed_multipliers", inputs, how, reference)


def loop_reactions(
    mech: Mechanism,
    q: ByJoint,
    v: ByJoint | None = None,
    tau: ByJoint | None = None,
    *,
    active: ArrayLike | None = None,
    frame: str = "loop",
    **options: Any,
) -> Float64Array:
    """(number of loops, 6): the wrench [moment; force] that side A of each loop joint exerts on side B, at the origin
    of ``pose_b``; B exerts the opposite on A.  Couplings have no frames, and zeros here: they act on joints, by their
    ratios times ``multipliers``.  Loops that are not ``active`` have zeros too.

    frame   axes of the wrenches: "loop" (of ``pose_b``) or "world_aligned", such as for ground forces on feet
            (``lw.contact.hold_frames``)

    Rigid-body mechanics does not determine reactions of redundant constraints; these belong to the multipliers of least
    norm (``multipliers``).  Massless links are allowed if forces are in balance, as those of ``static_forces`` are.
    Options are those of ``forward_dynamics``.
    """
    one_of("frame", frame, ("loop", "world_aligned"))
    inputs, how = _check_inputs(mech, q, v, tau, active, options)

    def reference(*state: Any) -> Float64Array:
        return wrenches_of_loops(mech, state[0], _multipliers(mech, how, *state))

    reactions = _solve(mech, "closed_loop_reactions", inputs, how, reference)
    return reactions if frame == "loop" else _rotate_to_world(mech, inputs.arrays[0], reactions)


def _rotate_to_world(mech: Mechanism, q: Float64Array, wrenches: Float64Array) -> Float64Array:
    """Wrenches of loops (..., number of loops, 6) in world axes instead of those of ``pose_b``."""
    turned = wrenches.copy()
    for k, loop in enumerate(mech.loops):
        if isinstance(loop, Loop):
            axes = tree.frame_pose(mech, q, loop.link_b)[..., :3, :3] @ loop.pose_b[0]
            for part in (slice(0, 3), slice(3, 6)):
                turned[..., k, part] = (axes @ wrenches[..., k, part, None])[..., 0]
    return turned


def joint_wrenches(
    mech: Mechanism,
    q: ByJoint,
    v: ByJoint | None = None,
    tau: ByJoint | None = None,
    wrenches: ArrayLike | None = None,
    active: ArrayLike | None = None,
) -> Float64Array:
    """``linkwise.joint_wrenches`` under constraints, of joint forces ``tau``."""
    inputs, how = _check_inputs(mech, q, v, tau, active, {"wrenches": wrenches})

    def reference(q: np.ndarray, v: np.ndarray, tau: np.ndarray, mask: Any, wrenches: Any) -> Float64Array:
        here = Inputs((q, v, tau), mask, wrenches)
        if not mech.loops:
            return tree.joint_wrenches(mech, q, v, accelerations(mech, here), wrenches)
        a = constrained_motion(mech, here, undetermined=True)[1]
        return wrenches_of_joints(mech, q, v, a, _multipliers(mech, how, q, v, tau, mask, wrenches), wrenches)

    return solve(mech, "closed_joint_wrenches", inputs, reference)


# -- impacts ------------------------------------------------------------------------------------------


def impact(mech: Mechanism, q: ByJoint, v: ByJoint | None, active: ArrayLike | None = None) -> Float64Array:
    """(nv,): velocities just after the ``active`` loops (default: all) close without rebound,
    v - M^-1 G* (G M^-1 G*)^+ G v: the allowed velocities that are nearest to ``v`` in kinetic energy.

    Loops that are not active are released: loops that were active before must be listed again.
    """
    inputs = _check_velocities(mech, q, v, active)

    def reference(q: np.ndarray, v: np.ndarray, mask: Any, _: Any) -> Float64Array:
        return v + _impact(mech, q, v, mask)[0]

    return solve(mech, "closed_impact", inputs, reference)


def impact_impulses(mech: Mechanism, q: ByJoint, v: ByJoint | None, active: ArrayLike | None = None) -> Float64Array:
    """(number of loops, 6): [angular; linear] impulse of side A on side B of each loop joint during an ``impact``, at
    the origin and in the axes of ``pose_b``, as for ``loop_reactions``; zero for loops that are not active."""
    inputs = _check_velocities(mech, q, v, active)

    def reference(q: np.ndarray, v: np.ndarray, mask: Any, _: Any) -> Float64Array:
        jump, at = _impact(mech, q, v, mask)
        return wrenches_of_loops(mech, q, -_balancing(mech, at.jacobian, times(at.mass, jump)))

    return solve(mech, "closed_impact_impulses", inputs, reference)


def _impact(mech: Mechanism, q: np.ndarray, v: np.ndarray, mask: Float64Array | None) -> tuple[np.ndarray, Terms]:
    """The jump of velocities, and the terms of the equations of motion."""
    at, rank = moving_terms(mech, q, v, active=mask)
    still = np.zeros(np.broadcast_shapes(at.bias_force.shape, v.shape))
    return null_space_accelerations(mech, at, still, least_norm_basis(mech, at, times(at.jacobian, v), rank)), at


for _function in (constraint_forces, multipliers, loop_reactions, joint_wrenches, impact, impact_impulses):
    register(_function, ArrayFunction(f"closed_{_function.__name__}"))


# -- shared -------------------------------------------------------------------------------------------


def _check_inputs(mech: Mechanism, q: Any, v: Any, tau: Any, active: Any, options: Options) -> tuple[Inputs, Method]:
    """Checked state with forces of elements added to joint forces, mask and wrenches, and the solution method.  Warns
    of open active loops."""
    for name in options:
        one_of("option", name, OPTIONS)
    elements = applied(mech, options.get("forces", NONE), options.get("ctrl"), options.get("activation"))
    wrenches = options.get("wrenches")
    q, v, tau = checked_motion(mech, q, v, tau, wrenches)
    if elements is not None:
        tau = tau + elements.forces(q, v)
    mask = loop_mask(mech, active, q=q, v=v, tau=tau)
    if options.get("baumgarte") is None:
        warn_if_open(mech, position_error(mech, q), mask)
        warn_if_opening(mech, q, v, mask)
    settings = {name: value for name, value in options.items() if name not in (*APPLIED, "method")}
    return Inputs((q, v, tau), mask, wrenches), Method(options.get("method") or "elimination", **settings)


def _solve(
    mech: Mechanism, name: str, inputs: Inputs, how: Method, reference: Callable[..., Float64Array]
) -> Float64Array:
    """Results of the kernel ``name``, or of NumPy's linear algebra if ``how`` is not plain elimination."""
    if how.is_plain and how.rank is None:
        return solve(mech, name, inputs, reference)
    return reference(*inputs.arrays, inputs.active, inputs.wrenches)


def _check_velocities(mech: Mechanism, q: Any, v: Any, active: Any) -> Inputs:
    q, v = checked_arrays(mech, q=q, v=v)
    mask = loop_mask(mech, active, q=q, v=v)
    warn_if_open(mech, position_error(mech, q), mask)
    return Inputs((q, v), mask)


def _reaction(
    mech: Mechanism, how: Method, q: np.ndarray, v: np.ndarray, tau: np.ndarray, mask: Any, wrenches: Any
) -> tuple[np.ndarray, np.ndarray]:
    """M a + h - tau, and G, by NumPy's linear algebra."""
    at, a = constrained_motion(mech, Inputs((q, v, tau), mask, wrenches), how, undetermined=True)
    return times(at.mass, a) + spanning_tree_bias(mech, at, q, v, wrenches) - tau, at.jacobian


def _multipliers(mech: Mechanism, how: Method, *state: Any) -> Float64Array:
    forces, jacobian = _reaction(mech, how, *state)
    return -_balancing(mech, jacobian, forces, how.tolerance, how.rank)


def _balancing(
    mech: Mechanism, jacobian: np.ndarray, forces: np.ndarray, tolerance: float | None = None, rank: Any = None
) -> Float64Array:
    """(..., m): the least lambda with G* lambda = forces, for the Jacobian of ``moving_terms``.  Raises for forces
    along infinitesimal motions, which no lambda balances."""
    blocked, jacobian = jacobian[..., mech.n_constraints :, :], jacobian[..., : mech.n_constraints, :]
    if blocked.shape[-2]:
        rank, columns = redundancy(mech).rank, sizes(mech).columns
        along = np.abs(times(blocked * columns, columns * forces)).max(axis=-1)
        if np.any(along > LOOPS.acceleration * np.abs(columns * forces).max(axis=-1)):
            refuse_infinitesimal_motions(mech, "the reactions to these forces")
    rank = decomposed_jacobian(mech, jacobian, tolerance, rank).rank
    return decompose_in_moments(mech, jacobian, rank).solve_transposed(forces)


def decompose_in_moments(mech: Mechanism, jacobian: np.ndarray, rank: Any) -> Decomposition:
    """The decomposition of G in which multipliers of least norm are least moments, by the mechanism's length."""
    scale = sizes(mech)
    return decompose(jacobian, 0.0, rank, scale.multipliers, scale.columns)


def wrenches_of_joints(
    mech: Mechanism, q: np.ndarray, v: np.ndarray, a: np.ndarray, forces: np.ndarray, wrenches: Any = None
) -> Float64Array:
    """(..., n_links, 6): ``joint_wrenches`` of a mechanism with loops from accelerations and multipliers (..., m)."""
    if wrenches is None:
        return float64_function(mech, "joint_wrenches_within_loops")(q, v, a, forces)
    return float64_function(mech, ("joint_wrenches_within_loops", WRENCHES))(q, v, a, forces, wrenches)


def wrenches_of_loops(mech: Mechanism, q: np.ndarray, forces: Float64Array) -> Float64Array:
    """Multipliers as wrenches of side A on side B of each loop, in ``pose_b``."""
    maps = float64_function(mech, "loop_motion_maps")(q)
    wrenches = [
        -transposed_times(maps[..., rows, :], forces[..., rows])
        for rows in (mech.constraints.rows(loop.name) for loop in mech.loops)
    ]
    return np.stack(wrenches, axis=-2) if wrenches else np.zeros((*forces.shape[:-1], 0, 6))
