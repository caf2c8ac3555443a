"""Numbers that callers give by the names of joints: configurations, and numbers of velocity coordinates."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from ..compiler.registry import Function, array_function, register
from ..mechanism import Mechanism, MechanismError, require_mechanism
from ..mechanism.checks import per_coordinate
from .states import Float64Array, real_numbers


def coordinates_by_joint(mech: Mechanism, what: str, named: Mapping[str, Any]) -> Float64Array:
    """(nq,): the initial configuration with these coordinates of joints, loops as they are then."""
    q = mech.initial.copy()
    for joint, values in named.items():
        place, kind = mech.place(joint), mech.bodies[mech.body_index(joint)].kind
        given = real_numbers(f"the {what} of {joint!r}", values)
        if given.size != kind.nq:
            raise MechanismError(f"{what}: joint {joint!r} has {kind.nq} coordinates, got {values!r}")
        q[place.q_index] = place.q_at(given.reshape(kind.nq))
    return q


def configuration_by_joint(mech: Mechanism, what: str, named: Mapping[str, Any]) -> Float64Array:
    """(nq,): the same with loops closed, the named joints held."""
    q = coordinates_by_joint(mech, what, named)
    if not mech.loops:
        return q
    from .closed.assembly import assemble  # here, as functions of closed mechanisms take states by joint too

    return assemble(mech, q, hold=tuple(named))


def state_by_joint(mech: Mechanism, given: Mapping[str, Any]) -> dict[str, Any]:
    """Arrays by name, "q" (or "q0") and others over the velocities: those that are dictionaries by joint as arrays.

    Where there are loops, no q at all is the initial configuration with its loops closed, and velocities by joint are
    ``velocities_by_joint``.
    """
    require_mechanism(mech)
    found = dict(given)
    for name, values in given.items():
        if name in ("q", "q0") and (isinstance(values, Mapping) or (values is None and mech.loops)):
            found[name] = configuration_by_joint(mech, name, values or {})
    for name, values in given.items():
        if name not in ("q", "q0") and isinstance(values, Mapping):
            found[name] = rates_by_joint(mech, name, values, 0.0)
            if name in ("v", "v0") and mech.loops:
                q = found[name.replace("v", "q")]
                found[name] = velocities_by_joint(mech, name, values, real_numbers("q", q), found[name])
    return found


def taking_joints(function: Function) -> Function:
    """The same function of a mechanism and arrays, made from an algorithm, which takes these by joint too."""
    signature, known = inspect.signature(function), array_function(function)
    assert known is not None

    @functools.wraps(function)
    def call(mech: Mechanism, *given: Any, **named: Any) -> Any:
        if any(isinstance(values, Mapping) for values in (*given, *named.values())):
            _, *arrays = signature.bind(mech, *given, **named).arguments.items()
            return function(mech, **state_by_joint(mech, dict(arrays)))
        return function(mech, *given, **named)

    return register(cast(Function, call), known)


def velocities_by_joint(
    mech: Mechanism, what: str, named: Mapping[str, Any], q: Float64Array, given: Float64Array
) -> Float64Array:
    """(..., nv): the velocities ``given`` of the named joints, and of all others the least that keep loops closed at q.
    Named ones that loops do not allow are refused."""
    from .closed.constraints import counted_jacobian, loop_of  # here, as in ``configuration_by_joint``
    from .closed.decomposition import decompose, times
    from .closed.tolerances import LOOPS

    jacobian = counted_jacobian(mech, q)
    free = np.ones(mech.nv, dtype=bool)
    free[[i for joint in named for i in range(mech.nv)[mech.v_index(joint)]]] = False
    v = given - decompose(jacobian * free).solve(times(jacobian, given) - mech.drive_rates)
    opening = np.abs(times(jacobian, v) - mech.drive_rates)
    speeds = times(np.abs(jacobian), np.abs(given)) + np.abs(mech.drive_rates)
    refused = opening > LOOPS.velocity_by_mistake * speeds.max(axis=-1)[..., None]
    if refused.any():
        *state, row = (int(i) for i in np.argwhere(refused)[0])
        which = f" in state {tuple(state)}" if state else ""
        raise MechanismError(
            f"{what}: loop {loop_of(mech, row)!r} of mechanism {mech.name!r} does not let "
            f"{', '.join(map(repr, named))} move with these velocities{which}: it would open by "
            f"{opening[(*state, row)]:.3g} (metres or radians) per second; name fewer joints, or others where the "
            "position is singular"
        )
    return v


def rates_by_joint(mech: Mechanism, what: str, named: Mapping[str, Any], otherwise: float) -> Float64Array:
    """(nv,): numbers of the named joints, one or as many as they have degrees of freedom, the others as
    ``otherwise``."""
    values = np.full(mech.nv, otherwise)
    for joint, value in named.items():
        body = mech.bodies[mech.body_index(joint)]
        if body.mimic:
            raise MechanismError(
                f"{what} names joint {joint!r}, which mimics {body.mimic.joint!r} and has no force of its own: "
                f"name {body.mimic.joint!r}"
            )
        values[mech.v_index(joint)] = per_coordinate(f"{what} of {joint!r}", value, body.nv, finite=False)
    return values
