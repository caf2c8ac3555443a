"""Numbers that callers give by the names of joints: configurations, and numbers of velocity coordinates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..mechanism import Mechanism, MechanismError, require_mechanism
from ..mechanism.checks import per_coordinate
from .states import Float64Array, real_numbers


def configuration_by_joint(mech: Mechanism, what: str, named: Mapping[str, Any]) -> Float64Array:
    """(nq,): the initial configuration with these coordinates of joints, loops closed."""
    q = mech.initial.copy()
    for joint, values in named.items():
        place, kind = mech.place(joint), mech.bodies[mech.body_index(joint)].kind
        given = real_numbers(f"the {what} of {joint!r}", values)
        if given.size != kind.nq:
            raise MechanismError(f"{what}: joint {joint!r} has {kind.nq} coordinates, got {values!r}")
        q[place.q_index] = place.q_at(given.reshape(kind.nq))
    if not mech.loops:
        return q
    from .closed.assembly import assemble  # here, as functions of closed mechanisms take states by joint too

    return assemble(mech, q, hold=tuple(named))


def state_by_joint(mech: Mechanism, given: Mapping[str, Any]) -> dict[str, Any]:
    """Arrays by name, "q" (or "q0") and others over the velocities: those that are dictionaries by joint as arrays."""
    require_mechanism(mech)
    found = dict(given)
    for name, values in given.items():
        if isinstance(values, Mapping):
            is_q = name.startswith("q")
            by_joint = configuration_by_joint(mech, name, values) if is_q else rates_by_joint(mech, name, values, 0.0)
            found[name] = by_joint
    return found


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
