"""Loop constraints of a mechanism: error, Jacobian, bias, degrees of freedom (spencer2004 2.1c-2.3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..compiler.store import float64_function, kernel_function, of_algorithm
from ..dynamics.by_joint import accept_joints
from ..dynamics.states import ByJoint, Float64Array, checked_arrays
from ..mechanism import Mechanism, MechanismError, MechanismWarning, warn_caller
from ..mechanism.checks import names_of
from ..mechanism.model import NO_JOINTS
from ..mechanism.parts import HELD
from .decomposition import Decomposition, decompose, times
from .infinitesimal import completed_rows, has_infinitesimal_motions
from .masks import loop_mask, map_over_masks, mask_constraints, row_mask
from .sizes import sizes
from .tolerances import LOOPS

SURELY_CLOSED = LOOPS.open_by_mistake**2  # the sum of squares


@accept_joints
@of_algorithm("position_error")
def position_error(mech: Mechanism, q: ArrayLike) -> Float64Array:
    """(m,): g(q), zero where all loops are closed; metres and sines of angles, 6 - DoF of the joint per loop, and one
    per coupling, in units of its coordinates.

    ``mech.constraints.rows(loop)`` is the slice of a loop; docs/closed.md explains its rows.
    """
    return kernel_function(mech, "position_error")(q)


@accept_joints
@of_algorithm("constraint_jacobian")
def constraint_jacobian(mech: Mechanism, q: ArrayLike) -> Float64Array:
    """(m, nv): G with dg/dt = G v (2.2)."""
    return kernel_function(mech, "constraint_jacobian")(q)


@accept_joints
@of_algorithm("constraint_bias")
def constraint_bias(mech: Mechanism, q: ArrayLike, v: ArrayLike) -> Float64Array:
    """(m,): dG/dt v; loops stay closed while ``G a + constraint_bias`` is zero (2.3)."""
    return kernel_function(mech, "constraint_bias")(q, v)


def degrees_of_freedom(
    mech: Mechanism, q: ByJoint = NO_JOINTS, tolerance: float | None = None, active: ArrayLike | None = None
) -> int | NDArray[np.intp]:
    """nv minus the rank of G at q (by default near ``mech.initial``, loops closed), of all loops or those that are
    ``active`` (..., len(mech.loops)): an integer, or an array of them for a batch.

    By default constraints that are redundant up to the rounding of the data (``redundancy``) are not counted.  With
    ``tolerance`` the rank is the number of singular values above ``tolerance`` times the largest.  A motion that
    constraints allow to first order and block to second, at every position, is no degree of freedom.  q must be
    assembled: a ``MechanismWarning`` reports open loops, which make redundant constraints look independent.
    """
    (q,) = checked_arrays(mech, q=q)
    require_finite(mech, q)
    mask = loop_mask(mech, active, q=q)
    if all(loop.drive is None for loop in mech.loops):  # the position of driven loops depends on time
        warn_if_open(mech, position_error(mech, q), mask)
    if tolerance is None and mech.loops and has_infinitesimal_motions(mech):
        dofs = _moving(mech, q, mask)
    else:
        dofs = mech.nv - decomposed(mech, q, tolerance, active=mask).rank
    return int(dofs) if np.ndim(dofs) == 0 else dofs


def _moving(mech: Mechanism, q: Float64Array, mask: Float64Array | None) -> NDArray[np.intp]:
    """(...): degrees of freedom without infinitesimal motions."""
    return _moving_here(mech, q) if mask is None else map_over_masks(_moving_here, mech, mask, q)


def _moving_here(mech: Mechanism, q: Float64Array) -> NDArray[np.intp]:
    return np.asarray(mech.nv - decomposed_motions(mech, q).rank)


def decomposed(
    mech: Mechanism,
    q: ArrayLike,
    tolerance: float | None = None,
    rank: Any = None,
    active: Float64Array | None = None,
) -> Decomposition:
    """The singular value decomposition of G at q in double precision; with a ``tolerance``, of G including rounding."""
    return decomposed_jacobian(mech, counted_jacobian(mech, q, tolerance, active), tolerance, rank)


def decomposed_jacobian(
    mech: Mechanism, jacobian: Float64Array, tolerance: float | None = None, rank: Any = None
) -> Decomposition:
    """The singular value decomposition of a constraint Jacobian (..., m, nv), made dimensionless by the loops' sizes.
    All ranks and least norms of constraints are decided here; its methods take and return numbers with dimensions."""
    scale, tolerance = sizes(mech), LOOPS.rank if tolerance is None else tolerance
    rows = np.append(
        scale.rows, np.ones(jacobian.shape[-2] - len(scale.rows))
    )  # rows appended by ``completed_rows`` are dimensionless
    return decompose(jacobian, tolerance, rank, rows, scale.columns if scale.has_lengths else None)


def decomposed_motions(mech: Mechanism, q: ArrayLike, rank: Any = None) -> Decomposition:
    """The decomposition of G at q, completed so that its null space has no infinitesimal motions."""
    jacobian = counted_jacobian(mech, q)
    if mech.loops and has_infinitesimal_motions(mech):
        jacobian, rank = completed_rows(mech, jacobian, np.asarray(q, dtype=float), rank)
    return decomposed_jacobian(mech, jacobian, None, rank)


def counted_jacobian(
    mech: Mechanism, q: ArrayLike, tolerance: float | None = None, active: Float64Array | None = None
) -> Float64Array:
    """(..., m, nv): G at q as ``mask_constraints`` leaves it."""
    return mask_constraints(mech, float64_function(mech, "constraint_jacobian")(np.asarray(q)), active, tolerance)


def require_finite(mech: Mechanism, q: Float64Array, complaint: str = "q is not finite") -> None:
    """Raise for configurations that are not finite, for results that cannot be NaN."""
    known = np.isfinite(q).all(axis=-1)
    if not known.all():
        which = f" (state {int(np.argmin(known.ravel()))})" if known.ndim else ""
        raise MechanismError(f"mechanism {mech.name!r}: {complaint}{which}")


def one_state(who: str, mech: Mechanism, wrenches: Any = None, **state: Any) -> list[Float64Array]:
    """The values given by name as float64 arrays; a batch is refused."""
    arrays = checked_arrays(mech, wrenches, **state)
    if any(array.ndim > 1 for array in arrays) or np.ndim(wrenches) > 2:
        raise MechanismError(f"{who} takes one state; loop over batches")
    return arrays


def require_holonomic(who: str, mech: Mechanism) -> None:
    """Raise for nonholonomic constraints."""
    if mech.constraints.is_nonholonomic:
        loop = loop_of(mech, int(np.argmin(mech.constraints.holonomic_rows)))
        if loop in mech.constraints.driven:
            raise MechanismError(
                f"{who} asks where positions can be, and {loop!r} of mechanism {mech.name!r} drives it: ask "
                "mech.constraints.without_drives()"
            )
        raise MechanismError(
            f"{who} asks where positions can be, and {loop!r} of mechanism {mech.name!r} constrains velocities alone: "
            "no coordinates of positions follow from it"
        )


def refuse_structure(mech: Mechanism) -> NoReturn:
    """Raise: the mechanism has zero degrees of freedom."""
    raise MechanismError(f"mechanism {mech.name!r} has no degree of freedom: it is a structure")


def warn_if_open(mech: Mechanism, error: Float64Array, active: Float64Array | None = None) -> None:
    """Warn of an open loop, which results assume to be closed; error is g (..., m), ``active`` from ``loop_mask``."""
    error = error * sizes(mech).rows
    if active is not None:
        error = error * row_mask(mech, active)
    if (error.dot(error) if error.ndim == 1 else np.vdot(error, error)) <= SURELY_CLOSED:  # the usual case, quickly
        return
    gaps = np.abs(error).reshape(-1, error.shape[-1])
    worst = np.fmax.reduce(gaps, axis=0, initial=0.0)  # NaN states are ignored
    if worst.max() > LOOPS.open_by_mistake:
        row = int(np.argmax(worst))
        gap, loop = worst[row] / sizes(mech).rows[row], loop_of(mech, row)
        frame = loop.removeprefix(HELD)
        if frame != loop and frame in mech.frames:
            warn_caller(
                f"{frame!r} of mechanism {mech.name!r} is held {gap:.3g} (metres or radians) from where it is at q: "
                f"hold it there, linkwise.contact.hold_frames(..., {frame!r}, q), let it go with active=..., or bring "
                "q to "
                "where it is held with constraints.assemble",
                MechanismWarning,
            )
            return
        warn_caller(
            f"loop {loop!r} of mechanism {mech.name!r} is open by {gap:.3g} "
            "(metres or radians): close it with constraints.assemble or constraints.project, or, where "
            "accelerations are asked for, with baumgarte=(alpha, beta)",
            MechanismWarning,
        )


def warn_if_opening(mech: Mechanism, q: Float64Array, v: Float64Array, active: Float64Array | None = None) -> None:
    """Warn of a loop that velocities open, which results assume to stay closed."""
    if not mech.loops or not (v.any() or mech.constraints.driven):  # at rest
        return
    opening, bound = opening_rates(mech, float64_function(mech, "constraint_jacobian")(q), v, v)
    if active is not None:
        opening = opening * row_mask(mech, active)
    if (opening > bound).any():
        *_, row = np.argwhere(opening > bound)[0]
        warn_caller(
            f"the velocities violate the constraints of loop {loop_of(mech, int(row))!r} of mechanism {mech.name!r}: "
            "results are those of another motion; to give the speed of some joints, use v = {joint: speed}, the others "
            "follow, or take those nearest to them from constraints.project(mech, q, v)",
            MechanismWarning,
        )


def opening_rates(
    mech: Mechanism,
    jacobian: Float64Array,
    v: Float64Array,
    meant: Float64Array,
    tolerance: float = LOOPS.velocity_by_mistake,
) -> tuple[Float64Array, Float64Array]:
    """(..., m) and (..., 1): dimensionless rates at which velocities open loops, per second; and the largest allowed
    rate for velocities of the size of ``meant``."""
    rows, aims = sizes(mech).rows, mech.constraints.drive_rates
    opening = np.abs(times(jacobian, v) - aims) * rows
    speeds = (times(np.abs(jacobian), np.abs(meant)) + np.abs(aims)) * rows
    slow = LOOPS.at_rest * sizes(mech).rate
    return opening, tolerance * (speeds.max(axis=-1, initial=0.0, keepdims=True) + slow)


def loop_of(mech: Mechanism, row: int) -> str:
    """Name of the loop of a row of G."""
    return next(loop.name for loop in mech.loops if row < mech.constraints.rows(loop.name).stop)


def velocity_rows(mech: Mechanism, joints: Sequence[str], label: str) -> Float64Array:
    """(p, nv): rows @ v are velocities of the named joints or coordinates (``v_names``); mimic joints have their
    ratio."""
    units = np.eye(mech.nv)

    def rows(name: str) -> Float64Array:
        if name not in mech.joint_names and name in mech.v_names:
            return units[[mech.v_names.index(name)]]
        entry = mech.coordinates.place(name)
        return entry.ratio * units[entry.v_index]

    return np.concatenate([np.zeros((0, mech.nv)), *map(rows, names_of(joints))])


def moved_by(mech: Mechanism, joints: Sequence[str], label: str) -> NDArray[np.intp]:
    """Indices of v, ascending, of the coordinates that move the named joints."""
    return np.flatnonzero(velocity_rows(mech, joints, label).any(axis=0))


def driven_by(mech: Mechanism, joints: Sequence[str], label: str) -> NDArray[np.intp]:
    """Indices of v, and of joint forces, of the named joints in order, each once.  Raises for mimic joints, which have
    no coordinates of their own."""
    rows = velocity_rows(mech, joints, label)
    for name in names_of(joints):
        single = name not in mech.joint_names and mech.coordinates.index("v", name) is not None
        mimic = None if single else mech.bodies[mech.body_index(name)].mimic
        if mimic:
            raise MechanismError(
                f"{label} names joint {name!r}, which mimics {mimic.joint!r} and has no force of its own: name "
                f"{mimic.joint!r}; a force at {name!r} is {mimic.ratio:g} times that on it"
            )
    return np.array(list(dict.fromkeys(np.nonzero(rows)[1].tolist())), dtype=int)
