"""Constrained inverse dynamics: forces of chosen joints that produce given accelerations, and their derivatives.

Least joint forces tau = W y at the actuated joints, W = S D^-2 S* with S their columns and D their units, solve

    W y - G* lambda = load,    G y = 0,    load = M a + h,

so that y = K (K* W K)^-1 K* load.  Differentiated, with K = K(q) a basis of the null space of G and L = G^+,

    dy = K dz - L dG y,    K* W K dz = K* (dload + dG* lambda + W L dG y).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..compiler.registry import ArrayFunction, register
from ..dynamics import trees as tree
from ..dynamics.by_joint import rates_by_joint, velocities_of
from ..dynamics.states import Argument, ByJoint, Float64Array, checked_arrays, common_batch, real_numbers
from ..mechanism import Mechanism, MechanismError, MechanismWarning, warn_caller
from ..mechanism.checks import names_of
from .accelerations import Terms, curvature_of, independent_at, moving_terms, spanning_tree_bias, terms
from .decomposition import Decomposition, decompose, times, transposed_times
from .equations import decomposed_jacobian, driven_by, loop_of, warn_if_open, warn_if_opening
from .force_units import mixes_units, velocity_units, warn_of_mixed_units
from .formulations import acceleration_basis
from .idle_motions import advice, explain_idle_motions
from .masks import loop_mask
from .redundancy import closable_error, redundancy
from .sizes import sizes
from .solver import Inputs, RefusedStates, solve
from .tolerances import LOOPS
from .variations import (
    Motion,
    State,
    bias_by_v,
    constraint_derivatives,
    filled,
    force_derivatives,
    null_space_coordinates,
    refuse_open,
    step_rate_jacobian,
)

DRIVEN = 1e-10  # of unit forces: smaller leverages on the degrees of freedom count as zero


class Sharing(NamedTuple):
    """Effort sharing among joints, as for ``linkwise.inverse_dynamics``, and the coordinates of the accelerations.

    actuated      names of the joints with motors, None for all; ``driven`` are their indices of v
    independent   coordinates of the given accelerations; None for all joints
    besides       (..., nv): further joint forces, which are subtracted from the result
    """

    actuated: Sequence[str] | None
    driven: np.ndarray
    weights: ArrayLike | None = None
    distribution: ArrayLike | None = None
    independent: Any = None
    besides: Float64Array | None = None


def inverse_dynamics(
    mech: Mechanism,
    q: ByJoint,
    v: ByJoint | None = None,
    a: ArrayLike | Mapping[str, Any] | None = None,
    *,
    wrenches: ArrayLike | None = None,
    active: ArrayLike | None = None,
    actuated: Sequence[str] | None = None,
    unactuated: Sequence[str] | None = None,
    independent: Any = None,
    **sharing: Any,
) -> Float64Array:
    """``linkwise.inverse_dynamics`` under constraints; ``sharing`` are weights, a distribution and joint forces
    ``besides``, see ``Sharing``.

    A ``MechanismWarning`` reports loops open by more than a thousandth of their size or 1 mrad, and velocities that
    open them.
    """
    if isinstance(a, Mapping):
        a, independent = accelerations_of_joints(mech, a, independent)
    q, v = checked_arrays(mech, q=q, v=v)
    mask = loop_mask(mech, active, q=q, v=v)
    warn_if_open(mech, closable_error(mech, q), mask)
    warn_if_opening(mech, q, v, mask)
    actuated = joints_with_motors(mech, actuated, unactuated)
    driven = np.arange(mech.nv) if actuated is None else driven_by(mech, actuated, "actuated")
    how = Sharing(actuated, driven, independent=independent, **sharing)

    def reference(q: Any, v: Any, a: Any, mask: Any, wrenches: Any) -> Float64Array:
        return _forces_for(mech, Inputs((q, v, a), mask, wrenches), how)

    if how.weights is how.distribution is how.independent is how.besides is None:
        q, v, a = checked_arrays(mech, wrenches, q=q, v=v, a=a)
        options = () if actuated is None else (("actuated", tuple(names_of(actuated))),)
        tau = solve(mech, "closed_inverse_dynamics", Inputs((q, v, a), mask, wrenches), reference, options)
    else:
        tau = reference(q, v, a, mask, wrenches)
    if how.weights is how.distribution is None and mixes_units(mech, driven):
        jacobian = terms(mech, q, v, active=mask, infinitesimal=True).jacobian
        null = decompose(sizes(mech).rows[:, None] * jacobian * velocity_units(mech)).null
        warn_of_mixed_units(mech, np.swapaxes(null[..., driven, :], -1, -2), driven, actuated)
    if actuated is None and mech.loops:
        _warn_of_floating_joints(mech, tau)
    return tau


def _warn_of_floating_joints(mech: Mechanism, tau: Float64Array) -> None:
    """Warn of forces at floating joints, which have no motors, if the actuated joints are not given."""
    most = LOOPS.closed * np.abs(tau).max(initial=0.0)
    floating = [body.joint for body in mech.bodies if body.kind.is_free]
    pushed = [joint for joint in floating if np.abs(tau[..., mech.v_index(joint)]).max(initial=0.0) > most]
    if pushed:
        warn_caller(
            f"the forces that move mechanism {mech.name!r} are shared by all of its joints, {pushed[0]!r} among them, "
            "which floats and has no motor: name the joints that have some, actuated=..., or those that have none, "
            f"unactuated={pushed!r}",
            MechanismWarning,
        )


register(inverse_dynamics, ArrayFunction("closed_inverse_dynamics"))


def accelerations_of_joints(mech: Mechanism, named: Mapping[str, Any], independent: Any) -> tuple[np.ndarray, Any]:
    """Accelerations given by joint as one array, and the joints, which are independent coordinates."""
    if independent is not None and list(names_of(independent)) != list(named):
        raise MechanismError("accelerations by joint say which are independent: leave out independent")
    values = rates_by_joint(mech, "a", named, 0.0)
    columns = [values[..., velocities_of(mech, name)] for name in named]
    return np.concatenate([values[..., :0], *columns], axis=-1), tuple(named)


def joints_with_motors(
    mech: Mechanism, actuated: Sequence[str] | None, unactuated: Sequence[str] | None
) -> Sequence[str] | None:
    """The actuated joints, None for all: ``actuated``, or all except the passive ones."""
    if unactuated is None:
        return actuated
    if actuated is not None:
        raise MechanismError("actuated names the joints with motors, unactuated those without: give one of them")
    without = set(names_of(unactuated))
    for name in without:
        mech.body_index(name)
    return tuple(body.joint for body in mech.bodies if body.nv and not body.mimic and body.joint not in without)


def _forces_for(mech: Mechanism, inputs: Inputs, how: Sharing) -> Float64Array:
    """``inverse_dynamics`` of (q, v, a) by NumPy's linear algebra."""
    q, v, a = inputs.arrays
    wrenches, driven = inputs.wrenches, how.driven
    at, rank = moving_terms(mech, q, v, active=inputs.active)
    svd = decomposed_jacobian(mech, at.jacobian, rank=rank)
    if how.independent is None:
        q, v, a = checked_arrays(mech, wrenches, q=q, v=v, a=a)
    force = spanning_tree_bias(mech, at, q, v, wrenches)
    force = force if how.besides is None else force - how.besides
    if how.independent is not None:
        a = _all_accelerations(mech, at, svd, (q, v, a), how, force)
        q, v, a = checked_arrays(mech, wrenches, q=q, v=v, a=a)
    _refuse_inconsistent(mech, at, a)
    load = times(at.mass, a) + force
    patterns = _patterns(velocity_units(mech)[driven], how.weights, how.distribution)
    reach = _reach(svd.null[..., driven, :], patterns, velocity_units(mech)[driven])
    forces = times(patterns, decompose(reach).solve(transposed_times(svd.null, load)))
    tau = np.zeros((*forces.shape[:-1], mech.nv))
    tau[..., driven] = forces
    missing = np.abs(transposed_times(svd.null, tau - load)).max(axis=-1, initial=0.0)
    poor = missing > LOOPS.acceleration * np.abs(sizes(mech).columns * load).max(axis=-1, initial=0.0)
    if np.any(poor):
        shared = (
            "" if how.distribution is None else f", shared as the {patterns.shape[-1]} columns of distribution say,"
        )
        names = ", ".join(map(repr, mech.joint_names if how.actuated is None else names_of(how.actuated))) or "(none)"
        raise RefusedStates(
            f"the joints {names} of mechanism {mech.name!r}{shared} cannot produce this acceleration",
            poor,
            f": {np.max(missing):.3g} of the force along the degrees of freedom is missing; "
            + (
                advice(mech, *_first(poor, q, svd.null), driven)
                if how.distribution is None
                else "give as many independent columns as there are degrees of freedom, of joints that can drive them"
            ),
        )
    return tau


def _first(states: np.ndarray, q: np.ndarray, null: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """q (nq,) and ``null`` (nv, p) of the first state of a batch for which ``states`` is true."""
    state = tuple(np.argwhere(states)[0])
    batch = np.shape(states)
    return np.broadcast_to(q, batch + q.shape[-1:])[state], np.broadcast_to(null, batch + null.shape[-2:])[state]


def _reach(null: np.ndarray, patterns: np.ndarray, units: np.ndarray) -> np.ndarray:
    """(..., p, k): generalized forces along the DoF per pattern of forces, from the rows of ``null`` of the driven
    joints with ``units``.  Values below the error of closed loops are zero, as at dead centres."""
    reach = np.swapaxes(null, -1, -2) @ patterns
    most = np.linalg.norm(units[:, None] * patterns, axis=-2)[..., None, :]
    known = np.linalg.norm(reach, axis=-2, keepdims=True) > LOOPS.closed * most
    return np.where(known | ~np.isfinite(reach), reach, 0.0)


def _all_accelerations(
    mech: Mechanism, at: Terms, svd: Decomposition, state: Sequence[Any], how: Sharing, force: np.ndarray
) -> np.ndarray:
    """(..., nv): joint accelerations K a + k from accelerations of the independent coordinates (2.42b), at (q, v,
    a)."""
    (q, v, a), independent, driven = state, how.independent, how.driven
    chosen: Any = independent_at(mech, q, independent)
    count = len(chosen) if chosen.ndim == 1 else chosen.shape[-2]
    a = real_numbers("a", np.zeros(count) if a is None else a)
    if a.size or count:  # the number of functions of an empty batch is unknown
        Argument("a of the independent coordinates", (count,)).batch(mech, a)
    common_batch({"q": q.shape[:-1], "v": v.shape[:-1], "a": a.shape[:-1]})
    a = a - curvature_of(mech, q, v, independent)
    dofs = mech.nv - np.asarray(svd.rank)
    if dofs.size and (count < dofs).all() and len(driven) < mech.nv:
        rows = np.eye(mech.nv)[chosen] if chosen.ndim == 1 else chosen
        accelerations, unknown = _following_freely(at, svd, rows, a, force, driven)
        if (unknown == dofs - count).all():
            return accelerations
    with explain_idle_motions(mech, q, independent):
        basis, offset = acceleration_basis("partitioning", at.jacobian, at.bias, svd, chosen)
    return times(basis[..., : a.shape[-1]], a) + offset


def _following_freely(
    at: Terms, svd: Decomposition, rows: np.ndarray, a: np.ndarray, force: np.ndarray, driven: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(..., nv) and (...): accelerations with ``rows`` @ accelerations = ``a`` for which undriven joints need no
    forces, and the number of degrees of freedom that this condition determines.

    Accelerations are N y + k, with N a basis of the allowed motions; y = y0 + Z z, where Z spans the null space of
    ``rows``.  Driven joints with columns S cannot produce the part of N* (M a + h) orthogonal to N* S.
    """
    null, offset = svd.null, -svd.solve(at.bias)
    across = np.swapaxes(null, -1, -2)
    selected = decompose(rows @ null)
    left_open = np.eye(null.shape[-1]) - selected.pseudo_inverse @ (rows @ null)
    y = selected.solve(a - times(rows, offset))
    reach = across[..., driven]
    beyond = np.eye(null.shape[-1]) - reach @ decompose(reach).pseudo_inverse
    inertia = across @ at.mass
    needed = times(beyond, times(inertia, times(null, y) + offset) + times(across, force))
    free = decompose(beyond @ inertia @ null @ left_open)
    y = y - times(left_open, free.solve(needed))
    return times(null, y) + offset, np.asarray(free.rank)


def _patterns(units: np.ndarray, weights: ArrayLike | None, distribution: ArrayLike | None) -> np.ndarray:
    """(..., count, k): forces of the actuated coordinates per unit of the minimized effort; ``units`` (count,) are
    those of their velocities."""
    count = len(units)
    if weights is not None and distribution is not None:
        raise MechanismError("weights and distribution both say how the effort is shared: give one of them")
    if distribution is not None:
        columns = real_numbers("distribution", distribution)
        columns = columns[:, None] if columns.ndim == 1 else columns
        if columns.ndim < 2 or columns.shape[-2] != count or not np.isfinite(columns).all():
            raise MechanismError(
                f"distribution must have finite rows for the {count} actuated coordinates, in the order of actuated, "
                f"and a column per degree of freedom: shape (..., {count}, k), not {np.shape(distribution)}"
            )
        return columns
    scale = units**2 if weights is None else real_numbers("weights", weights)
    if scale.shape != (count,) or not np.all(scale > 0.0):
        raise MechanismError(f"weights must be {count} positive numbers, one per actuated coordinate, not {weights!r}")
    return np.diag(1.0 / np.sqrt(scale))


def _refuse_inconsistent(mech: Mechanism, at: Terms, a: np.ndarray) -> None:
    size, m = sizes(mech), mech.n_constraints
    jacobian, bias = at.jacobian[..., :m, :], at.bias[..., :m]
    opening = size.rows * np.abs(times(jacobian, a) + bias)
    scale = size.rows * (times(np.abs(jacobian), np.abs(a)) + np.abs(bias))
    tolerance = max(LOOPS.acceleration, redundancy(mech).rounding)
    if opening.size and np.any(opening > tolerance * (size.rate**2 + scale.max(axis=-1, keepdims=True))):
        row = int(np.argmax(opening.reshape(-1, opening.shape[-1]).max(axis=0)))
        raise MechanismError(
            f"the accelerations violate the constraints of loop {loop_of(mech, row)!r} of mechanism {mech.name!r} (by "
            f"{(opening / size.rows).max():.3g} per second squared): give those of independent joints with "
            "independent=..., the others follow"
        )


# -- derivatives ------------------------------------------------------------------------------------------------------


def derivatives_of_inverse_dynamics(
    at: State, actuated: Sequence[str] | None
) -> tuple[Float64Array, Float64Array, Float64Array]:
    """(d_q, d_v, d_a), each (nv, nv), of ``inverse_dynamics`` at the projected state (as by ``project``), with the
    nearest accelerations that active constraints allow; ``at.tau`` are the accelerations."""
    mech, elements, a = at.mech, at.passive, at.tau
    at = at._replace(tau=np.zeros(a.shape))
    besides = None if elements is None else elements.forces(at.q, at.v)
    driven = np.arange(mech.nv) if actuated is None else driven_by(mech, actuated, "actuated")
    weights, holds = velocity_units(mech)[driven] ** 2, None if at.active is None else at.active > 0.0
    how: Any = {"actuated": actuated, "weights": weights, "wrenches": at.wrenches, "active": holds, "besides": besides}
    tau = inverse_dynamics(mech, at.q, at.v, a, **how)

    equations = terms(mech, at.q, at.v, active=at.active)
    refuse_open(at, equations)
    svd = decomposed_jacobian(mech, equations.jacobian)
    independent = null_space_coordinates(mech, svd)
    basis, closing, rows = independent.basis, independent.closing, independent.rows
    load = tree.inverse_dynamics(mech.spanning_tree, at.q, at.v, a, at.wrenches)
    load = load if besides is None else load - besides
    multipliers = transposed_times(closing, tau - load)
    here = Motion(independent, np.zeros((0, mech.nv)), a, multipliers)
    reaction_by_q, bias_by_q, velocity_by_q = constraint_derivatives(at, svd, here, True)

    # Allowed steps, by steps of q, changes of v and of a.
    onto = basis @ rows
    onto_positions = onto
    if mech.constraints.is_nonholonomic:
        holonomic = equations.jacobian * mech.constraints.holonomic_rows[:, None]
        positions = null_space_coordinates(mech, decomposed_jacobian(mech, holonomic))
        onto_positions = positions.basis @ positions.rows
        bias_of_v = bias_by_v(at, here)
    else:
        bias_of_v = 2.0 * (velocity_by_q - equations.jacobian @ step_rate_jacobian(at))
    v_by_q = -closing @ (velocity_by_q @ onto_positions)
    a_by_q = -closing @ (bias_by_q @ onto_positions + bias_of_v @ v_by_q)
    a_by_v = -closing @ (bias_of_v @ onto)

    load_by_q, load_by_v = force_derivatives(at, a)
    d_load = np.concatenate(
        [
            (load_by_q + reaction_by_q) @ onto_positions + load_by_v @ v_by_q + equations.mass @ a_by_q,
            load_by_v @ onto + equations.mass @ a_by_v,
            equations.mass @ onto,
        ],
        axis=-1,
    )

    leverage = np.zeros(mech.nv)
    leverage[driven] = 1.0 / weights
    across = np.swapaxes(basis, -1, -2)
    reach = filled((across * leverage) @ basis, basis)
    _require_driven(mech, reach)
    y = times(basis, np.linalg.solve(reach, times(across, load)[..., None])[..., 0])
    along_y = at._replace(v=np.broadcast_to(y, at.v.shape))
    bent = closing @ (constraint_derivatives(along_y, svd, here, False)[2] @ onto_positions)  # derivative of G y by q
    bent = np.concatenate([bent, np.zeros((*bent.shape[:-1], 2 * mech.nv))], axis=-1)
    dz = np.linalg.solve(reach, across @ (d_load + leverage[:, None] * bent))
    d_tau = leverage[:, None] * (basis @ dz - bent)
    d_q, d_v, d_a = np.split(d_tau, 3, axis=-1)
    return d_q, d_v, d_a


def _require_driven(mech: Mechanism, reach: np.ndarray) -> None:
    """Raise unless the actuated joints drive all degrees of freedom; ``reach`` (..., p, p) is K* W K."""
    if not reach.size:
        return
    values = np.linalg.eigvalsh(reach)
    if np.any(values[..., 0] < DRIVEN * values[..., -1]):
        raise MechanismError(
            f"the actuated joints of mechanism {mech.name!r} do not drive all of its degrees of freedom: they produce "
            "no other accelerations nearby, and derivatives of their forces do not exist; name more joints as actuated"
        )
