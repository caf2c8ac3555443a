"""The force laws of a mechanism: those of joints' own parameters and of its elements that are switched on.

A new kind of record is one line in ``LAWS``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ...mechanism import Actuator, Body, EffortRange, FluidForce, GravityCompensation, Mechanism, Tendon
from ...mechanism.elements import CONTACT_FRICTION, RECORDS, name_of
from ...mechanism.scales import scales
from ...mechanism.shapes import is_implicit
from ..algorithms.dynamics import mass_matrix
from ..joints.protocol import ANGLE, LENGTH
from ..recursions.tree import build_tree
from .actuators import Actuation
from .at_joints import FRICTION_SPEED, Damper, Element, Friction, Spring, Stop, StopSpring, friction_speeds
from .contact import CompliantContact
from .fluid import FluidLaw
from .gravity_compensation import HoldingUp
from .law import Acting, ForceLaw
from .tendons import TendonLaw

#: How stops of joint limits push back where nothing is said: as stiff as makes the joint's own effective inertia m
#: swing with a time constant of LIMIT_TIME usual steps, m / time^2, or stiffer where the joint's full effort would
#: press it in deeper than LIMIT_DEPTH; with a damping that is critical from the depth LIMIT_WIDTH on; and softer from
#: the depth LIMIT_KNEE on, or the force there, so that what starts outside is not thrown back.  Depths are in radians,
#: or those of sliding joints in units of the mechanism's length.
LIMIT_TIME = 2.0  # usual steps: 2 ms for mechanisms of usual size
LIMIT_DEPTH = {ANGLE: 0.01, LENGTH: 0.001}
LIMIT_WIDTH = 0.001
LIMIT_KNEE = 0.02
EVEN = 1e-6  # of an octave: powers of two are so near that rounding to one does not miss it
#: Explicit methods follow what swings with this many of their steps as time constant, critically damped.
LIMIT_STEPS = 1.5


def acting_on(mech: Mechanism, explicit_step: float | None = None, implicit_step: float | None = None) -> Acting:
    """All that acts on a mechanism by itself.

    explicit_step   the length of steps that evaluate forces explicitly and do not become shorter by themselves: stops
                    are then softer and friction is viscous at low speeds where such steps could not follow them
    implicit_step   that of steps that take forces at joints and contact implicitly; 0 of steps that take all forces
                    implicitly: friction of contacts needs no bound then
    """
    return Acting((*passive_laws(mech, explicit_step), *record_laws(mech, explicit_step, implicit_step)))


# -- of joints --------------------------------------------------------------------------------------------------


def passive_laws(mech: Mechanism, explicit_step: float | None) -> Iterator[ForceLaw]:
    """Springs, damping, friction and limits of the joints."""
    limited, rubbing = (set(mech.forces.active.get(kind, ())) for kind in ("limits", "friction"))
    inertia = _by_joint(mech, effective_inertia(mech)) if limited else {}
    most = _followed(mech, explicit_step) if limited or rubbing else {}
    for body in mech.bodies:
        joint = body.joint
        if any(body.stiffness) and mech.forces.acts("springs", joint):
            yield Spring(joint, body.stiffness, body.rest)
        if any(body.damping) and mech.forces.acts("damping", joint):
            yield Damper(joint, body.damping)
        if joint in rubbing:
            yield Friction(joint, body.friction, steepest=_steepest(mech, body, body.friction, most[joint]))
        if joint in limited:
            yield _stop(mech, body, inertia[joint], most[joint])


def with_varying_numbers(
    mech: Mechanism, acting: Acting, varied: Iterable[tuple[str, int]], explicit_step: float | None
) -> Acting:
    """The laws with parameters that are inputs (``Tree.numbers_that_act``): ("damping", body), ...,
    ("contact_friction", pair). These laws exist even if the mechanism's own parameter is zero.
    """
    of_kind: dict[str, list[int]] = {}
    for kind, index in varied:
        of_kind.setdefault(kind, []).append(index)
    rubbing = {mech.contact_pairs[k].name for k in of_kind.pop(CONTACT_FRICTION, ())}
    laws = [_with_friction(law, rubbing) if isinstance(law, CompliantContact) else law for law in acting.laws]
    most = _followed(mech, explicit_step) if "friction" in of_kind else {}
    for kind, bodies in of_kind.items():
        for body in (mech.bodies[i] for i in bodies):
            varying = [
                law for law in laws if isinstance(law, Element) and (law.varies, law.joint) == (kind, body.joint)
            ]
            if kind == "friction":
                laws = [law for law in laws if law not in varying]
                steepest = _steepest(mech, body, [math.inf] * body.kind.nv, most[body.joint])
                laws.append(Friction(body.joint, 0.0, steepest=steepest))
            elif not varying:
                laws.append(Damper(body.joint, 0.0) if kind == "damping" else Spring(body.joint, 0.0, body.rest))
    return Acting(tuple(laws))


def _with_friction(contact: CompliantContact, rubbing: Container[str]) -> CompliantContact:
    """Contacts of which some rub, however much."""
    pairs = (replace(x, law=replace(x.law, friction=1.0)) if x.name in rubbing else x for x in contact.pairs)
    return replace(contact, pairs=tuple(pairs))


class Followed(NamedTuple):
    """The largest stiffness and damping that steps can follow."""

    stiffness: float = math.inf
    damping: float = math.inf

    @classmethod
    def by(cls, inertia: float, explicit_step: float | None) -> Followed:
        """Limits that explicit steps of this inertia can resolve."""
        if explicit_step is None:
            return cls()
        time = LIMIT_STEPS * explicit_step
        return cls(inertia / time**2, 2.0 * inertia / time)


def _followed(mech: Mechanism, explicit_step: float | None) -> dict[str, list[Followed]]:
    """Joint -> limits of explicit steps at each of its coordinates, and with all joints together."""
    inertia = np.ones(mech.nv) if explicit_step is None else least_inertia(mech)
    return {
        joint: [Followed.by(m, explicit_step) for m in inertias] for joint, inertias in _by_joint(mech, inertia).items()
    }


def _steepest(
    mech: Mechanism, body: Body, friction: Iterable[float], most: Iterable[Followed]
) -> tuple[float, ...] | None:
    """Bound of dry friction (``Friction.steepest``) of this size in explicit steps; None if steps resolve all of it.
    Rounded more finely than stops, because friction is too low below its smoothing speed.
    """
    units = _units(mech, body, "v")
    rows = zip(most, units, strict=True)
    slopes = tuple(_rounded(row.damping**2, unit.damping**2, math.floor) ** 0.5 for row, unit in rows)
    speeds = friction_speeds(mech, body)
    return None if all(f / s <= slope for f, s, slope in zip(friction, speeds, slopes, strict=True)) else slopes


def _efforts(mech: Mechanism, body: Body) -> list[float]:
    """Force that can press a joint against its stops: effort limits, or the largest motor force; zero if neither is
    known.
    """
    motors = [
        actuator
        for actuator in mech.forces.actuators
        if actuator.transmission == "joint" and actuator.target == body.joint
    ]
    total = sum((abs(actuator.gear[0]) * _largest_force(actuator) for actuator in motors), 0.0)
    known = (min(limit, total) if total else limit for limit in body.limits.effort)
    return [0.0 if math.isinf(effort) else effort for effort in known]


def _largest_force(actuator: Actuator) -> float:
    if actuator.force_range is not None:
        return max(map(abs, actuator.force_range))
    within = actuator.activation_range if actuator.has_activation else actuator.ctrl_range
    plain = not any(actuator.bias) and not any(actuator.gain[1:])
    return abs(actuator.gain[0]) * max(map(abs, within)) if plain and within is not None else math.inf


class StopUnits(NamedTuple):
    """Units of one coordinate, which measures an ANGLE or a LENGTH: of depths, of inertia, and of time."""

    measure: str
    depth: float
    inertia: float
    time: float

    @property
    def stiffness(self) -> float:
        return self.inertia / self.time**2

    @property
    def damping(self) -> float:
        return self.inertia / self.time

    @property
    def force(self) -> float:
        return self.stiffness * self.depth

    @property
    def pressed(self) -> float:
        """The depth to which the full effort of a joint may press it."""
        return LIMIT_DEPTH[self.measure] * self.depth


def _units(mech: Mechanism, body: Body, quantity: str) -> list[StopUnits]:
    units, measures = scales(mech), body.kind.measures(quantity)
    return [
        StopUnits(LENGTH if measure.of == LENGTH else ANGLE, unit, units.mass * units.length**2 / unit**2, units.step)
        for measure, unit in zip(measures, units.of_kind(body.kind, quantity).tolist(), strict=True)
    ]


def limit_depths(mech: Mechanism, body: Body) -> np.ndarray:
    """(nq of the joint,): largest depth to which its motors press it into its stops."""
    return np.array([unit.pressed for unit in _units(mech, body, "q")])


def _stop(mech: Mechanism, body: Body, inertia: list[float], most: list[Followed]) -> Stop:
    limits, units = body.limits, _units(mech, body, "q")
    if limits.stiffness is not None:
        shape: tuple[Any, Any] = (limits.damping, math.inf)
        if limits.damping is None:
            widths = tuple(LIMIT_WIDTH * unit.depth for unit in units)
            shape = (
                tuple(2.0 * LIMIT_TIME * unit.time / width for unit, width in zip(units, widths, strict=True)),
                widths,
            )
        return Stop(body.joint, limits.lower, limits.upper, limits.stiffness, *shape)
    rows = zip(inertia, _efforts(mech, body), units, most, strict=True)
    springs = [default_stop(*row) for row in rows]
    numbers: dict[str, Any] = {name: [getattr(spring, name) for spring in springs] for name in StopSpring._fields}
    if limits.damping is not None:
        numbers |= {"damping": limits.damping, "width": math.inf}
    return Stop(body.joint, limits.lower, limits.upper, **{name: _hashable(x) for name, x in numbers.items()})


def _hashable(x: Any) -> Any:
    return tuple(x) if isinstance(x, list) else x


def default_stop(inertia: float, effort: float, unit: StopUnits, most: Followed) -> StopSpring:
    """A stop before what has this inertia, pressed by this effort.  It is softer from a force on that is far more than
    it should meet."""
    time, width = LIMIT_TIME * unit.time, LIMIT_WIDTH * unit.depth
    softest = _rounded(inertia / time**2, unit.stiffness)
    stiffness = max(softest, _rounded(effort / unit.pressed, unit.stiffness, math.ceil))
    damping = 2.0 * time * math.sqrt(softest * stiffness)  # critical
    stiffness = min(stiffness, _rounded(most.stiffness, unit.stiffness, math.floor))
    damping = min(damping, _rounded(most.damping, unit.damping, math.floor))
    force = max(LIMIT_KNEE * unit.depth * softest, _rounded(2.0 * effort, unit.force, math.ceil))
    return StopSpring(stiffness, damping / (stiffness * width), width, force / stiffness)


def _by_joint(mech: Mechanism, inertia: np.ndarray) -> dict[str, list[float]]:
    """Joint -> effective inertia at each of its coordinates; for a mimic joint that of its leader."""
    inertias = {}
    for body in mech.bodies:
        entry = mech.coordinates.place(body.joint)
        inertias[body.joint] = (inertia[entry.v_index] / (entry.ratio**2 or 1.0)).tolist()
    return inertias


def effective_inertia(mech: Mechanism) -> np.ndarray:
    """(nv,): 1 / (M^-1)_ii at the configuration that the file starts from: what a force at one joint has to move while
    all others are free (the inverse of MuJoCo's ``dof_invweight0``).  Loops are left open."""
    return _reciprocal(mobility(mech).diagonal())


def least_inertia(mech: Mechanism) -> np.ndarray:
    """(nv,): 1 / sum over j of |(M^-1)_ij| sqrt(m_j / m_i) with m of ``effective_inertia``. Forces at all joints that
    are small relative to these are small whatever their signs (Gershgorin bound for M^-1 scaled to a unit
    diagonal).
    """
    inverse = np.abs(mobility(mech))
    scale = np.sqrt(_reciprocal(inverse.diagonal()))
    return scale**2 * _reciprocal(scale * (inverse @ scale))


def _reciprocal(x: np.ndarray) -> np.ndarray:
    """1 / x, and 1 where nothing moves."""
    return np.where(x > 0.0, 1.0 / np.where(x > 0.0, x, 1.0), 1.0)


def mobility(mech: Mechanism) -> np.ndarray:
    """(nv, nv): pseudo-inverse of the mass matrix in the initial configuration, without massless motions."""
    matrix = mass_matrix(build_tree(mech.spanning_tree), mech.initial.tolist())
    mass = np.array(matrix, dtype=float).reshape(mech.nv, mech.nv)
    scale = np.sqrt(np.maximum(mass.diagonal(), 1e-300))
    return np.linalg.pinv(mass / np.outer(scale, scale), hermitian=True) / np.outer(scale, scale)


def _rounded(x: float, unit: float, to_integer: Callable[[float], int] = round) -> float:
    """To a power of two of a unit: variants that differ a little, by a payload say, keep the same laws and share their
    code."""
    if not 0.0 < x < math.inf:
        return x
    octaves = math.log2(x / unit)
    nearest = round(octaves)
    return unit * 2.0 ** (nearest if abs(octaves - nearest) < EVEN else to_integer(octaves))


# -- of records -------------------------------------------------------------------------------------------------


def _tendon_law(mech: Mechanism, tendon: Tendon, explicit_step: float | None) -> ForceLaw | None:
    if not (tendon.stiffness or tendon.damping or tendon.friction or tendon.limits):
        return None
    stop, steepest = StopSpring(0.0, 0.0, math.inf, math.inf), math.inf
    units = scales(mech)
    # Lengths of tendons are sums of coordinates: how much one changes where a joint moves by its unit.
    arms = (abs(arm) * units.of_kind(mech.bodies[mech.body_index(joint)].kind, "v")[0] for joint, arm in tendon.joints)
    length = max(arms, default=0.0) or 1.0
    unit = StopUnits(ANGLE, length, units.mass * units.length**2 / length**2, units.step)
    speed = FRICTION_SPEED * length / (1000.0 * units.step)
    if tendon.limits or (tendon.friction and explicit_step):
        inertia = effective_inertia(mech)
        moved = sum(arm**2 / inertia[mech.v_index(joint)][0] for joint, arm in tendon.joints)
        if moved and tendon.limits:
            stop = default_stop(1.0 / moved, 0.0, unit, Followed.by(1.0 / moved, explicit_step))
        if explicit_step and moved:
            slope = _rounded(1.0 / (explicit_step * moved), unit.damping, math.floor)
            steepest = slope if tendon.friction > speed * slope else math.inf
    return TendonLaw(tendon, stop, steepest, speed)


#: Record -> its law on a mechanism; actuators are one law together.
LAWS: dict[type, Callable[[Mechanism, Any, float | None], ForceLaw | None]] = {
    Tendon: _tendon_law,
    GravityCompensation: lambda mech, record, _: HoldingUp(record),
    FluidForce: lambda mech, record, _: FluidLaw(record),
}


def record_laws(
    mech: Mechanism, explicit_step: float | None = None, implicit_step: float | None = None
) -> Iterator[ForceLaw]:
    """Laws of all elements that are switched on."""
    for record in mech.elements:
        if type(record) in LAWS and mech.forces.acts(RECORDS[type(record)], name_of(record)):
            law = LAWS[type(record)](mech, record, explicit_step)
            if law is not None:
                yield law
    touching = tuple(pair for pair in mech.contact_pairs if mech.forces.acts("contact", pair.name))
    if touching:
        if implicit_step == 0.0:
            touching = tuple(pair.without_bound for pair in touching)
        elif implicit_step is not None:
            touching = tuple(pair.settling(implicit_step) if is_implicit(mech, pair) else pair for pair in touching)
        elif explicit_step is not None:
            touching = tuple(pair.softened(explicit_step) for pair in touching)
        yield CompliantContact(touching, explicit_step)
    if mech.forces.actuators:
        bounds = [element for element in mech.elements if isinstance(element, EffortRange)]
        yield Actuation(
            mech.forces.actuators,
            tuple(tendon for tendon in mech.forces.tendons if any(_drives(a, tendon) for a in mech.forces.actuators)),
            tuple((bound.joint, bound.lower, bound.upper) for bound in bounds),
            tuple(_speeds(mech)),
        )


def for_explicit_steps(acting: Acting, step: float) -> Acting:
    """The laws for steps of this length that treat contact explicitly."""

    def made(law: ForceLaw) -> ForceLaw:
        if not isinstance(law, CompliantContact):
            return law
        return replace(law, pairs=tuple(pair.softened(step) for pair in law.pairs), explicit_step=step)

    return Acting(tuple(map(made, acting.laws)))


def _speeds(mech: Mechanism) -> Iterator[tuple[str, float]]:
    """Velocity limits of joints that actuators drive."""
    for joint in dict.fromkeys(
        actuator.target for actuator in mech.forces.actuators if actuator.transmission == "joint"
    ):
        body = mech.bodies[mech.body_index(joint)]
        if body.kind.nv == 1 and 0.0 < body.limits.velocity[0] < math.inf:
            yield joint, body.limits.velocity[0]


def _drives(actuator: Actuator, tendon: Tendon) -> bool:
    return actuator.transmission == "tendon" and actuator.target == tendon.name
