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
from ..joints.protocol import ANGLE, LENGTH
from ..recursions.tree import build_tree
from .actuators import Actuation
from .at_joints import FRICTION_SPEED, Damper, Friction, Spring, Stop
from .contact import CompliantContact
from .gravity_compensation import HoldingUp
from .law import Acting, ForceLaw
from .tendons import TendonLaw

#: How stops of joint limits push back where nothing is said: as stiff as makes the joint's own effective inertia m
#: swing with this time constant, m / LIMIT_TIME^2, or stiffer where the joint's full effort would press it in deeper
#: than LIMIT_DEPTH; with a damping that is critical from the depth LIMIT_WIDTH on.
LIMIT_TIME = 0.002
LIMIT_DEPTH = {ANGLE: 0.01, LENGTH: 0.001}  # rad, m
LIMIT_WIDTH = 0.001
LIMIT_DAMPING = 2.0 * LIMIT_TIME / LIMIT_WIDTH
#: Explicit methods follow a stiffness of m / (LIMIT_STEPS h)^2, and a friction that is a damping of m / h at most.
LIMIT_STEPS = 2.0


def acting_on(mech: Mechanism, explicit_step: float | None = None) -> Acting:
    """All that acts on a mechanism by itself.

    explicit_step   the length of steps that evaluate forces explicitly and do not become shorter by themselves: stops
                    are then softer and friction sets in more slowly where such steps could not follow them
    """
    return Acting((*passive_laws(mech, explicit_step), *record_laws(mech, explicit_step)))


# -- of joints --------------------------------------------------------------------------------------------------


def passive_laws(mech: Mechanism, explicit_step: float | None) -> Iterator[ForceLaw]:
    """Springs, damping, friction and limits of the joints."""
    limited, rubbing = (set(mech.acting.get(kind, ())) for kind in ("limits", "friction"))
    inertia = _inertia_by_joint(mech) if limited or (rubbing and explicit_step) else {}
    for body in mech.bodies:
        joint = body.joint
        if any(body.stiffness) and mech.acts("springs", joint):
            yield Spring(joint, body.stiffness, body.rest)
        if any(body.damping) and mech.acts("damping", joint):
            yield Damper(joint, body.damping)
        if joint in rubbing:
            yield Friction(joint, body.friction, _friction_speeds(body, inertia, explicit_step))
        if joint in limited:
            yield _stop(body, inertia[joint], explicit_step)


def _friction_speeds(body: Body, inertia: dict[str, list[float]], explicit_step: float | None) -> tuple[float, ...]:
    """The speeds at which friction is regularised."""
    if explicit_step is None:
        return (FRICTION_SPEED,) * body.kind.nv
    speeds = (f * explicit_step / m for f, m in zip(body.friction, inertia[body.joint], strict=True))
    return tuple(max(FRICTION_SPEED, _rounded(speed, math.ceil)) for speed in speeds)


def _stop(body: Body, inertia: list[float], explicit_step: float | None) -> Stop:
    limits = body.limits
    if limits.stiffness is not None:
        damping, width = (LIMIT_DAMPING, LIMIT_WIDTH) if limits.damping is None else (limits.damping, math.inf)
        return Stop(body.joint, limits.lower, limits.upper, limits.stiffness, damping, width)
    kinds = [measure.of for measure in body.kind.position_measures]
    depths = (LIMIT_DEPTH.get(kind, LIMIT_DEPTH[ANGLE]) for kind in kinds)
    rows = zip(inertia, limits.effort, depths, strict=True)
    pairs = [stop_numbers(m, effort / depth if effort < math.inf else 0.0, explicit_step) for m, effort, depth in rows]
    stiffness, damping = (tuple(column) for column in zip(*pairs, strict=True))
    if limits.damping is not None:
        return Stop(body.joint, limits.lower, limits.upper, stiffness, limits.damping)
    return Stop(body.joint, limits.lower, limits.upper, stiffness, damping, LIMIT_WIDTH)


def stop_numbers(inertia: float, least: float, explicit_step: float | None) -> tuple[float, float]:
    """Stiffness, at least ``least``, and damping of a stop before what has this inertia."""
    own = _rounded(inertia / LIMIT_TIME**2)
    stiffness = max(own, _rounded(least, math.ceil))
    if explicit_step is not None:
        stiffness = min(stiffness, _rounded(inertia / (LIMIT_STEPS * explicit_step) ** 2, math.floor))
    return stiffness, 2.0 * LIMIT_TIME * math.sqrt(own / stiffness) / LIMIT_WIDTH


def _inertia_by_joint(mech: Mechanism) -> dict[str, list[float]]:
    """Joint -> what a force at each of its coordinates moves; of a mimic joint what the mimicked one does."""
    inertia = effective_inertia(mech)
    found = {}
    for body in mech.bodies:
        place = mech.place(body.joint)
        found[body.joint] = (inertia[place.v_index] / (place.ratio**2 or 1.0)).tolist()
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


def _rounded(x: float, to_integer: Callable[[float], int] = round) -> float:
    """To a power of two: variants that differ a little, by a payload say, keep the same laws and share their code."""
    return 2.0 ** to_integer(math.log2(x)) if x > 0.0 else 0.0


# -- of records -------------------------------------------------------------------------------------------------


def _tendon_law(mech: Mechanism, tendon: Tendon, explicit_step: float | None) -> ForceLaw | None:
    if not (tendon.stiffness or tendon.damping or tendon.friction or tendon.limits):
        return None
    stiffness = damping = 0.0
    speed = FRICTION_SPEED
    if tendon.limits or (tendon.friction and explicit_step):
        inertia = effective_inertia(mech)
        moved = sum(arm**2 / inertia[mech.v_index(joint)][0] for joint, arm in tendon.joints)
        if moved and tendon.limits:
            stiffness, damping = stop_numbers(1.0 / moved, 0.0, explicit_step)
        if explicit_step is not None:
            speed = max(speed, _rounded(tendon.friction * explicit_step * moved, math.ceil))
    return TendonLaw(tendon, stiffness, damping, LIMIT_WIDTH, speed)


#: Record -> its law on a mechanism; actuators are one law together.
LAWS: dict[type, Callable[[Mechanism, Any, float | None], ForceLaw | None]] = {
    Tendon: _tendon_law,
    GravityCompensation: lambda mech, record, _: HoldingUp(record),
}


def record_laws(mech: Mechanism, explicit_step: float | None = None) -> Iterator[ForceLaw]:
    """Of all records that are switched on."""
    for record in mech.elements:
        if type(record) in LAWS and mech.acts(RECORDS[type(record)], name_of(record)):
            law = LAWS[type(record)](mech, record, explicit_step)
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
