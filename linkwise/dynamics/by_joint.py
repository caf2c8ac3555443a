"""Configurations, and numbers of velocity coordinates, by joint name."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from ..compiler.registry import Function, array_function, register
from ..mechanics.joints import QUATERNION
from ..mechanism import Mechanism, MechanismError, require_mechanism
from ..mechanism.checks import did_you_mean, per_coordinate
from ..mechanism.coordinates import ANGLES
from .states import Float64Array, at_rest, common_batch, real_numbers


def coordinates_by_joint(
    mech: Mechanism, label: str, named: Mapping[str, Any], others: np.ndarray | None = None
) -> Float64Array:
    """(nq,): the initial configuration, or ``others``, with these joint coordinates; loops are not closed."""
    q = (mech.initial if others is None else others).copy()
    orientations: dict[str, dict[str, float]] = {}
    for joint, values in named.items():
        if joint not in mech.joint_names and _one_coordinate(mech, label, joint, values, q, orientations):
            continue
        entry, kind = mech.coordinates.place(joint), mech.bodies[mech.body_index(joint)].kind
        numbers = real_numbers(f"the {label} of {joint!r}", values)
        if numbers.size != kind.nq:
            raise MechanismError(f"{label}: joint {joint!r} has {kind.nq} coordinates, got {values!r}")
        q[entry.q_index] = entry.q_at(numbers.reshape(kind.nq))
    for joint, angles in orientations.items():
        start = mech.q_index(joint).start
        q[start : start + 4] = _quaternion(*(angles.get(angle, 0.0) for angle in ANGLES))
    return q


def split_joints_and_links(
    mech: Mechanism, label: str, named: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, float]]:
    """Split named numbers into those of joints and their coordinates, and those of links such as "platform.x"."""
    from ..constraints.named_coordinates import is_of_link  # here, as in ``configuration_by_joint``

    links = {name: one_number(label, name, value) for name, value in named.items() if is_of_link(mech, name)}
    return {name: value for name, value in named.items() if name not in links}, links


def one_number(label: str, name: str, value: Any) -> float:
    number = real_numbers(f"the {label} of {name!r}", value)
    if number.size != 1:
        raise MechanismError(f"{label}: {name!r} is one number, got {value!r}")
    return float(number.reshape(()))


def _one_coordinate(
    mech: Mechanism, label: str, name: str, value: Any, q: Float64Array, orientations: dict[str, dict[str, float]]
) -> bool:
    """Whether a name is a single coordinate, "base.x", which is set, or an angle of an orientation, "base.yaw", which
    is stored in ``orientations``.
    """
    joint, _, word = name.rpartition(".")
    index = mech.coordinates.index("q", name)
    if index is None and joint not in mech.joint_names:
        return False
    number = one_number(label, name, value)
    if index is not None:
        q[index] = number
        return True
    kind = mech.bodies[mech.body_index(joint)].kind
    if word in ANGLES and kind.measures("q")[0].of == QUATERNION:
        orientations.setdefault(joint, {})[word] = number
        return True
    words = [measure.name for measure in kind.measures("q") if measure.name]
    words += ANGLES if words and kind.measures("q")[0].of == QUATERNION else ()
    raise MechanismError(f"{label}: joint {joint!r} has no coordinate {word!r}: " + did_you_mean(word, words))


def _quaternion(roll: float, pitch: float, yaw: float) -> Float64Array:
    """[w, x, y, z] of rotations about fixed axes x, y, z, in this order."""
    (sr, sp, sy), (cr, cp, cy) = np.sin([roll / 2, pitch / 2, yaw / 2]), np.cos([roll / 2, pitch / 2, yaw / 2])
    return np.array(
        [
            cr * cp * cy + sr * sp * sy,
            sr * cp * cy - cr * sp * sy,
            cr * sp * cy + sr * cp * sy,
            cr * cp * sy - sr * sp * cy,
        ]
    )


def configuration_by_joint(
    mech: Mechanism, label: str, named: Mapping[str, Any], others: np.ndarray | None = None
) -> Float64Array:
    """(nq,): the initial configuration with these joint coordinates and closed loops, on its branch if possible.
    Joints with n successive positions give (n, nq), followed on that branch."""
    if paths := [joint for joint, values in named.items() if _is_path(mech, joint, values)]:
        return _path_by_joint(mech, label, named, paths, others)
    if not mech.loops:
        return coordinates_by_joint(mech, label, named, others)
    from ..constraints.assembly import placed  # here, as functions of closed mechanisms take states by joint too

    joints, links = split_joints_and_links(mech, label, named)
    guess = coordinates_by_joint(mech, label, joints, others)
    return placed(mech, label, guess, tuple(named), links, mech.initial if others is None else others)


def _is_path(mech: Mechanism, joint: str, values: Any) -> bool:
    """Whether several positions are given for a joint or coordinate."""
    several = joint in mech.joint_names and mech.bodies[mech.body_index(joint)].kind.nq > 1
    return np.ndim(values) > several and np.shape(values) != (1,)


def _path_by_joint(
    mech: Mechanism, label: str, named: Mapping[str, Any], paths: Sequence[str], others: np.ndarray | None
) -> Float64Array:
    """(n, nq): a path from positions by joint; single positions are constant."""
    from ..constraints.assembly import assemble  # here, as in ``configuration_by_joint``
    from ..constraints.following import follow_path

    counts = {joint: len(named[joint]) for joint in paths}
    if len(set(counts.values())) > 1:
        told = ", ".join(f"{count} of {joint!r}" for joint, count in counts.items())
        raise MechanismError(f"{label}: as many positions of each joint are needed, not {told}")
    count = counts[paths[0]]
    rows = {joint: x if joint in paths else np.broadcast_to(x, (count, *np.shape(x))) for joint, x in named.items()}
    if mech.loops:
        return follow_path(mech, assemble(mech, mech.initial if others is None else others), rows)
    return np.array(
        [coordinates_by_joint(mech, label, {joint: x[k] for joint, x in rows.items()}, others) for k in range(count)]
    ).reshape(count, mech.nq)


def configuration(mech: Mechanism, joints: Mapping[str, Any] | None = None, /, **named: Any) -> Float64Array:
    """(nq,): ``mech.initial`` with other coordinates of some joints, ``configuration(arm, {"elbow": 0.3})`` or
    ``configuration(arm, elbow=0.3)``.  Loops are closed in the assembly mode of ``mech.initial``: the named joints are
    driven straight from there.  If loops lock on this path, other modes are searched, with a warning.

    Joints with several coordinates take them all, or one by one: ``{"base.z": 0.4, "base.yaw": 1.2}``.  Many positions,
    ``configuration(linkage, crank=np.linspace(0, 2 * np.pi, 73))``, give (n, nq): loops are followed from one to the
    next without changing the branch.
    """
    require_mechanism(mech)
    return configuration_by_joint(mech, "configuration", {**(joints or {}), **named})


def state_by_joint(mech: Mechanism, arrays: Mapping[str, Any]) -> dict[str, Any]:
    """State arrays by name, "q" (or "q0") and others over the velocities, with dictionaries by joint converted to
    arrays.

    With loops, a missing q is the initial configuration with its loops closed, and velocities by joint are those of
    ``velocities_by_joint``.
    """
    require_mechanism(mech)
    checked = dict(arrays)
    for name, values in arrays.items():
        if name in ("q", "q0") and (isinstance(values, Mapping) or (values is None and mech.loops)):
            checked[name] = configuration_by_joint(mech, name, values or {})
    for name, values in arrays.items():
        if name not in ("q", "q0") and isinstance(values, Mapping):
            checked[name] = rates_by_joint(mech, name, values, 0.0)
            if name in ("v", "v0") and mech.loops:
                q = checked[name.replace("v", "q")]
                checked[name] = velocities_by_joint(mech, name, values, real_numbers("q", q), checked[name])
    return checked


def accept_joints(function: Function) -> Function:
    """Wrap a function of a mechanism and arrays so that it accepts dictionaries by joint, and None for rest."""
    signature, known = inspect.signature(function), array_function(function)
    assert known is not None

    @functools.wraps(function)
    def call(mech: Mechanism, *arguments: Any, **named: Any) -> Any:
        if any(values is None or isinstance(values, Mapping) for values in (*arguments, *named.values())):
            _, *arrays = signature.bind(mech, *arguments, **named).arguments.items()
            state = dict(arrays)
            if any(isinstance(values, Mapping) for values in state.values()):
                state = state_by_joint(mech, state)
            return function(mech, **at_rest(mech, state))
        return function(mech, *arguments, **named)

    return register(cast(Function, call), known)


def velocities_by_joint(
    mech: Mechanism, label: str, named: Mapping[str, Any], q: Float64Array, velocities: Float64Array
) -> Float64Array:
    """(..., nv): the given velocities of the named joints, and the least velocities of the others that keep loops
    closed at q. Raises if loops do not allow the named ones.
    """
    from ..constraints.decomposition import times
    from ..constraints.equations import (  # here, as in ``configuration_by_joint``
        counted_jacobian,
        decomposed_jacobian,
        loop_of,
        opening_rates,
    )
    from ..constraints.sizes import sizes

    common_batch({"q": q.shape[:-1], label: velocities.shape[:-1]})
    jacobian = counted_jacobian(mech, q)
    free = np.ones(mech.nv, dtype=bool)
    free[[i for name in named for i in range(mech.nv)[velocities_of(mech, name)]]] = False
    v = velocities - decomposed_jacobian(mech, jacobian * free).solve(
        times(jacobian, velocities) - mech.constraints.drive_rates
    )
    opening, bound = opening_rates(mech, jacobian, v, velocities)
    refused = opening > bound
    if refused.any():
        *state, row = (int(i) for i in np.argwhere(refused)[0])
        rate = opening[(*state, row)] / sizes(mech).rows[row]
        which = f" in state {tuple(state)}" if state else ""
        raise MechanismError(
            f"{label}: loop {loop_of(mech, row)!r} of mechanism {mech.name!r} does not let "
            f"{', '.join(map(repr, named))} move with these velocities{which}: it would open by "
            f"{rate:.3g} (metres or radians) per second; name fewer joints, or others where the "
            "position is singular"
        )
    return v


def velocities_of(mech: Mechanism, name: str) -> slice:
    """Slice of a joint, or of one coordinate, in v."""
    index = mech.coordinates.index("v", name)
    return slice(index, index + 1) if index is not None else mech.v_index(name)


def rates_by_joint(mech: Mechanism, label: str, named: Mapping[str, Any], otherwise: float) -> Float64Array:
    """(nv,): numbers of the named joints, one or one per degree of freedom, and ``otherwise`` for other joints;
    (..., nv) for several states."""
    values = np.full(mech.nv, otherwise)
    for joint, value in named.items():
        index = mech.coordinates.index("v", joint)
        if index is not None and joint not in mech.joint_names:
            values = _set_numbers(values, slice(index, index + 1), f"{label} of {joint!r}", value)
            continue
        body = mech.bodies[mech.body_index(joint)]
        if body.mimic:
            raise MechanismError(
                f"{label} names joint {joint!r}, which mimics {body.mimic.joint!r} and has no force of its own: "
                f"name {body.mimic.joint!r}"
            )
        values = _set_numbers(values, mech.v_index(joint), f"{label} of {joint!r}", value)
    return values


def numbers_per_velocity(
    mech: Mechanism, name: str, value: Any, otherwise: float, positive: bool = False, finite: bool = False
) -> Float64Array:
    """(nv,): one number for all, nv numbers, or {joint: number} with ``otherwise`` for the other joints. Numbers must
    not be negative, or must be ``positive``.
    """
    values = rates_by_joint(mech, name, value, otherwise) if isinstance(value, Mapping) else real_numbers(name, value)
    is_valid = values > 0.0 if positive else values >= 0.0
    if values.shape not in ((), (mech.nv,)) or not is_valid.all() or (finite and not np.isfinite(values).all()):
        sign = ("a positive number", "") if positive else ("a number", ", not negative")
        raise MechanismError(
            f"{name} must be {sign[0]}, {mech.nv} of them or {{joint: number}}{sign[1]}, got {value!r}"
        )
    return np.broadcast_to(values, (mech.nv,))


def _set_numbers(values: Float64Array, columns: slice, label: str, value: Any) -> Float64Array:
    """(..., nv): values with a slice replaced by one number, several, or arrays per state."""
    count = columns.stop - columns.start
    if np.ndim(value) > (count > 1) and np.shape(value) != (1,):
        numbers = real_numbers(label, value)
        numbers = numbers[..., None] if count == 1 else numbers
        if numbers.shape[-1] != count:
            raise MechanismError(f"{label} must be {count} numbers in each state, not {np.shape(value)}")
        batch = common_batch({label: numbers.shape[:-1], "others": values.shape[:-1]})
        values = np.array(np.broadcast_to(values, (*batch, values.shape[-1])))
        values[..., columns] = numbers
    else:
        values[..., columns] = per_coordinate(label, value, count, finite=False)
    return values
