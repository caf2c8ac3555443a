"""Which laws act on a mechanism: those of its joints' own numbers and of its records, where they are switched on.

A new kind of record is one line in ``LAWS``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ...mechanism import Actuator, Body, EffortRange, GravityCompensation, Mechanism, Tendon
from ...mechanism.elements import RECORDS, name_of
from ..algorithms.dynamics import mass_matrix
from ..recursions.tree import build_tree
from .actuators import Actuation
from .at_joints import Damper, Friction, Spring, Stop
from .contact import CompliantContact
from .gravity_compensation import HoldingUp
from .law import Acting, ForceLaw
from .tendons import TendonLaw

#: How stops of joint limits push back where nothing is said: as stiff as makes the joint's own effective inertia m
#: swing with this time constant, m / LIMIT_TIME^2, with a damping that is critical from this depth on.
LIMIT_TIME = 0.02
LIMIT_WIDTH = 0.01
LIMIT_DAMPING = 2.0 * LIMIT_TIME / LIMIT_WIDTH


def acting_on(mech: Mechanism) -> Acting:
    """All that acts on a mechanism by itself."""
    return Acting((*passive_laws(mech), *record_laws(mech)))


# -- of joints --------------------------------------------------------------------------------------------------


def passive_laws(mech: Mechanism) -> Iterator[ForceLaw]:
    """Springs, damping, friction and limits of the joints."""
    limited = set(mech.acting.get("limits", ()))
    hardness = _hardness(mech) if limited else {}
    for body in mech.bodies:
        joint = body.joint
        if any(body.stiffness) and mech.acts("springs", joint):
            yield Spring(joint, body.stiffness, body.rest)
        if any(body.damping) and mech.acts("damping", joint):
            yield Damper(joint, body.damping)
        if any(body.friction) and mech.acts("friction", joint):
            yield Friction(joint, body.friction)
        if joint in limited:
            yield _stop(body, hardness)


def _stop(body: Body, hardness: dict[str, tuple[float, ...]]) -> Stop:
    limits = body.limits
    stiffness = hardness[body.joint] if limits.stiffness is None else limits.stiffness
    damping, width = (LIMIT_DAMPING, LIMIT_WIDTH) if limits.damping is None else (limits.damping, math.inf)
    return Stop(body.joint, limits.lower, limits.upper, stiffness, damping, width)


def _hardness(mech: Mechanism) -> dict[str, tuple[float, ...]]:
    """Joint -> the stiffness of its stops, one per coordinate; of a mimic joint that the mimicked one feels so."""
    inertia = effective_inertia(mech)
    found = {}
    for body in mech.bodies:
        place = mech.place(body.joint)
        own = inertia[place.v_index] / (place.ratio**2 or 1.0)
        found[body.joint] = tuple(_rounded(m / LIMIT_TIME**2) for m in own)
    return found


def effective_inertia(mech: Mechanism) -> np.ndarray:
    """(nv,): 1 / (M^-1)_ii at the configuration that the file starts from: what a force at one joint has to move while
    all others are free (the inverse of MuJoCo's ``dof_invweight0``).  Loops are left open."""
    inverse = mobility(mech).diagonal()
    return np.where(inverse > 0.0, 1.0 / np.where(inverse > 0.0, inverse, 1.0), 1.0)


def mobility(mech: Mechanism) -> np.ndarray:
    """(nv, nv): the inverse of the mass matrix there, of what moves inertia."""
    matrix = mass_matrix(build_tree(mech.spanning_tree), mech.initial.tolist())
    whole = np.array(matrix, dtype=float).reshape(mech.nv, mech.nv)
    scale = np.sqrt(np.maximum(whole.diagonal(), 1e-300))
    return np.linalg.pinv(whole / np.outer(scale, scale), hermitian=True) / np.outer(scale, scale)


def _rounded(stiffness: float) -> float:
    """To a power of two: variants that differ a little, by a payload say, keep the same stops and share their code."""
    return 2.0 ** round(math.log2(stiffness)) if stiffness > 0.0 else 1.0


# -- of records -------------------------------------------------------------------------------------------------


def _tendon_law(mech: Mechanism, tendon: Tendon) -> ForceLaw | None:
    if not (tendon.stiffness or tendon.damping or tendon.friction or tendon.limits):
        return None
    stiffness = 0.0
    if tendon.limits:
        inertia = effective_inertia(mech)
        moved = sum(arm**2 / inertia[mech.v_index(joint)][0] for joint, arm in tendon.joints)
        stiffness = _rounded(1.0 / (moved * LIMIT_TIME**2)) if moved else 0.0
    return TendonLaw(tendon, stiffness, LIMIT_DAMPING, LIMIT_WIDTH)


#: Record -> its law on a mechanism; actuators are one law together.
LAWS: dict[type, Callable[[Mechanism, Any], ForceLaw | None]] = {
    Tendon: _tendon_law,
    GravityCompensation: lambda mech, record: HoldingUp(record),
}


def record_laws(mech: Mechanism) -> Iterator[ForceLaw]:
    """Of all records that are switched on."""
    for record in mech.elements:
        if type(record) in LAWS and mech.acts(RECORDS[type(record)], name_of(record)):
            law = LAWS[type(record)](mech, record)
            if law is not None:
                yield law
    touching = tuple(pair for pair in mech.contact_pairs if mech.acts("contact", pair.name))
    if touching:
        yield CompliantContact(touching)
    if mech.actuators:
        bounds = [one for one in mech.elements if isinstance(one, EffortRange)]
        yield Actuation(
            mech.actuators,
            tuple(one for one in mech.tendons if any(_drives(a, one) for a in mech.actuators)),
            tuple((one.joint, one.lower, one.upper) for one in bounds),
            tuple(_speeds(mech)),
        )


def _speeds(mech: Mechanism) -> Iterator[tuple[str, float]]:
    """Velocity limits of joints that actuators drive."""
    for joint in dict.fromkeys(one.target for one in mech.actuators if one.transmission == "joint"):
        body = mech.bodies[mech.body_index(joint)]
        if body.kind.nv == 1 and 0.0 < body.limits.velocity[0] < math.inf:
            yield joint, body.limits.velocity[0]


def _drives(actuator: Actuator, tendon: Tendon) -> bool:
    return actuator.transmission == "tendon" and actuator.target == tendon.name
