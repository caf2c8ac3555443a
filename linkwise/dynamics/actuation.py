"""Which joints have motors, and how these alone hold a mechanism against gravity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .. import constraints
from ..compiler.store import float64_function
from ..constraints.elimination_orders import fronts
from ..constraints.force_units import velocity_units
from ..constraints.sizes import constraint_units
from ..mechanics.links.constraint_units import ConstraintUnits
from ..mechanism import Mechanism, MechanismError
from ..mechanism.checks import names_of
from .states import Float64Array
from .trees import gravity_force

INDEPENDENT = 1e-3  # of a unit motion: a coordinate that moves less while others are held is dependent
BALANCED = (
    "linkwise.control.lqr of a linear model balances what has fewer motors, linkwise.inverse_dynamics of what "
    "linkwise.contact.hold_frames holds moves what stands"
)
REACH = 1e-8  # relative: motions with a smaller leverage of the actuated joints count as undriven


def actuated_coordinates(mech: Mechanism, q: np.ndarray, actuated: Sequence[str] | np.ndarray | None) -> np.ndarray:
    """(nv,) of bool: the velocity coordinates with a motor, from joint names, from such an array, or by default.

    By default these are ``mech.metadata.actuated_joints``.  If the file has no motors, every joint outside of loops has
    one.  In loops, as many coordinates have one as there are degrees of freedom at ``q``.  They are taken in this
    order, unless determined by earlier ones: joints with an effort limit; sliding joints between moving links
    (cylinders, struts); joints of one degree of freedom; others; each from the ground outwards.  A floating joint never
    has one.
    """
    if actuated is None:
        return _default(mech, q)
    if not isinstance(actuated, str) and np.asarray(actuated).dtype == bool:
        chosen = np.array(actuated)
        if chosen.shape != (mech.nv,):
            raise MechanismError(f"actuated must be joint names or {mech.nv} booleans, got shape {chosen.shape}")
        return chosen
    actuated = names_of(actuated)
    if not all(isinstance(name, str) for name in actuated):
        raise MechanismError(f"actuated must be joint names or {mech.nv} booleans, got {actuated!r}")
    chosen = np.zeros(mech.nv, dtype=bool)
    for name in actuated:
        mimic = mech.bodies[mech.body_index(name)].mimic
        if mimic:
            raise MechanismError(f"joint {name!r} mimics {mimic.joint!r} and has no force of its own: actuate that one")
        chosen[mech.v_index(name)] = True
    return chosen


class Motors(NamedTuple):
    """Names of coordinates that share a load, and units that compare their forces if constraints leave the shares
    open."""

    names: tuple[str, ...] = ()
    units: ConstraintUnits = ConstraintUnits()

    @classmethod
    def at(cls, mech: Mechanism, driven: np.ndarray) -> Motors:
        """The motors of the ``driven`` coordinates (nv,)."""
        names = tuple(np.array(mech.coordinates.names("v"))[driven].tolist())
        return cls(names, constraint_units(mech)) if mech.loops else cls(names)


def motors_of(
    mech: Mechanism, task: str, actuated: Sequence[str] | np.ndarray | None, instead: str = BALANCED
) -> Motors:
    """The coordinates with a motor (``actuated_coordinates`` at the initial configuration), which must be as many as
    the degrees of freedom; ``instead`` is the advice for trees with joints without motor."""
    driven = actuated_coordinates(mech, mech.initial, actuated)
    motors = Motors.at(mech, driven)
    if not mech.loops:
        _require_all(mech, task, driven, instead)
        return motors
    names = motors.names
    dofs = mech.nv - fronts(mech).pivots
    if len(names) < dofs:
        raise MechanismError(
            f"constraints leave mechanism {mech.name!r} {dofs} degrees of freedom, and it has {len(names)} motors "
            f"({', '.join(map(repr, names)) or 'none'}): name as many, actuated=..., or balance what has fewer with "
            "linkwise.control.lqr of its linear model"
        )
    return motors


def bearing_gravity(mech: Mechanism, actuated: np.ndarray) -> Motors:
    """The coordinates that hold the mechanism against gravity: the ``actuated`` ones (nv,), and coordinates without
    motor outside of loops (a floating base), which are taken as held otherwise."""
    return Motors.at(mech, actuated | ~_loop_coordinates(mech))


def shared_by_motors(mech: Mechanism, q: Any, load: Any, motors: tuple[str, ...]) -> Float64Array:
    """(..., nv): the least forces of motors with the same virtual work as joint forces ``load`` on all allowed motions.
    NaN if the motors cannot carry it, as at dead centres."""
    request = ("closed_motor_forces", ("actuated", motors))
    with np.errstate(invalid="ignore"):
        return float64_function(mech, request)(q, load)


def require_motors(mech: Mechanism, label: str) -> None:
    """Raise unless all joints have motors and none is in a loop."""
    if mech.loops:
        raise MechanismError(
            f"{label} would ignore the loops of mechanism {mech.name!r}: linkwise.control.computed_torque, "
            "linkwise.control.lqr of its "
            "linear model and linkwise.control.joint_feedback heed them; mech.spanning_tree is the mechanism with "
            "loops open"
        )
    _require_all(mech, label, actuated_coordinates(mech, mech.initial, None), BALANCED)


def _require_all(mech: Mechanism, task: str, driven: np.ndarray, instead: str) -> None:
    """Raise unless all joints have motors; ``instead`` is the advice in the message."""
    if not driven.all():
        names = [body.joint for body in mech.bodies if not (body.mimic or driven[mech.v_index(body.joint)].all())]
        raise MechanismError(
            f"{task} needs a motor at every joint, and {', '.join(map(repr, names))} of mechanism {mech.name!r} has "
            f"none: {instead}; mech.metadata.with_actuated(...) says which joints have some"
        )


def gravity_held(mech: Mechanism, q: Any, actuated: np.ndarray) -> np.ndarray:
    """(nv,): forces of the ``actuated`` coordinates (nv,) that hold the mechanism against gravity; zero elsewhere.

    Coordinates without motor outside of loops (a floating base) are taken as held otherwise.  Forces that loops leave
    open have the least norm, a force counting as a torque at the mechanism's length.  If the actuated joints cannot
    hold the mechanism, the nearest forces are returned.
    """
    load = gravity_force(mech, q)
    if mech.loops:
        units = velocity_units(mech)
        transposed = _motions(mech, q).swapaxes(-1, -2)
        driving = actuated | ~_loop_coordinates(mech)
        shares = np.linalg.pinv(transposed[..., driving], rcond=REACH)
        forces = np.zeros(load.shape)
        forces[..., driving] = (shares @ (transposed @ (load * units)[..., None]))[..., 0]
        load = forces / units
    return np.where(actuated, load, 0.0)


def _motions(mech: Mechanism, q: Any) -> np.ndarray:
    """(..., nv, p): an orthonormal basis of the motions that loops allow, lengths in units of the mechanism's."""
    basis, units = constraints.null_space(mech, q), velocity_units(mech)
    return np.linalg.qr(basis / units[:, None])[0] if (units != 1.0).any() else basis


def _default(mech: Mechanism, q: np.ndarray) -> np.ndarray:
    chosen = np.zeros(mech.nv, dtype=bool)
    said = mech.metadata.actuated_joints
    for joint in mech.joint_names if said is None else said:
        if not mech.bodies[mech.body_index(joint)].kind.is_free:
            chosen[mech.v_index(joint)] = True
    if said is not None or not mech.loops:
        return chosen
    return chosen & ~_loop_coordinates(mech) | _drivers_of_loops(mech, q)


def _loop_coordinates(mech: Mechanism) -> np.ndarray:
    """(nv,) of bool: coordinates of joints between the two sides of a loop, or in a coupling."""
    inside = np.zeros(mech.nv, dtype=bool)
    for loop in mech.loops:
        for index in loop.bodies_within(mech):
            inside[mech.v_index(mech.bodies[index].joint)] = True
    return inside


def _drivers_of_loops(mech: Mechanism, q: np.ndarray) -> np.ndarray:
    """(nv,) of bool: coordinates in loops whose motion determines that of all the others."""
    inside = _loop_coordinates(mech)
    motions = _motions(mech, q)

    def remove_motions(rows: np.ndarray) -> None:
        """Project ``motions`` onto those without motion of the coordinates ``rows``."""
        nonlocal motions
        for row in rows:
            size = np.linalg.norm(motions[row])
            if size > INDEPENDENT:
                unit = motions[row] / size
                motions = motions - np.outer(motions @ unit, unit)

    remove_motions(np.flatnonzero(~inside))
    chosen = np.zeros(mech.nv, dtype=bool)
    for index in _preferred_bodies(mech):
        for row in np.arange(mech.nv)[mech.v_index(mech.bodies[index].joint)]:
            if inside[row] and np.linalg.norm(motions[row]) > INDEPENDENT:
                chosen[row] = True
                remove_motions(np.array([row]))
    return chosen


def _preferred_bodies(mech: Mechanism) -> list[int]:
    """Bodies whose joints may have motors, the most likely first."""

    def key(index: int) -> tuple[bool, bool, bool, int, int]:
        body = mech.bodies[index]
        strut = body.kind.only_slides and body.parent >= 0
        return (
            not np.isfinite(body.limits.effort).any(),
            not strut,
            body.kind.nv > 1,
            len(mech.tree.path(index)),
            index,
        )

    may = (i for i, body in enumerate(mech.bodies) if not (body.mimic or body.kind.is_free))
    return sorted(may, key=key)
