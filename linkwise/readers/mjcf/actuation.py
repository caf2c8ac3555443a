"""Actuators and fixed tendons as force elements, and bodies that are held up against gravity.

Actuators are read as ``<general>``: ``actuator_records.py`` writes all other elements in its words.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from linkwise.mechanics.elements.actuators import Actuation as ActuatorLaw
from linkwise.mechanics.elements.law import Acting
from linkwise.mechanics.elements.of_mechanism import effective_inertia, mobility
from linkwise.mechanics.joints import Joint
from linkwise.mechanics.recursions.tree import build_tree
from linkwise.mechanism import Actuator, EffortRange, GravityCompensation, Mechanism, Tendon
from linkwise.mechanism.welding import RigidMass
from linkwise.readers.mjcf.actuators import Rotor
from linkwise.readers.mjcf.defaults import Defaults
from linkwise.readers.mjcf.document import Settings, check_attributes, flag, is_limited
from linkwise.readers.mjcf.joints import BodyJoint
from linkwise.readers.mjcf.omissions import nonzero, note_softness
from linkwise.readers.mjcf.tendons import lever_arms
from linkwise.readers.mjcf.tree import Node, unused
from linkwise.readers.protocol import Element, omit

#: Gain types of actuators that are no force law of their length, its rate, a control input and one activation.
_OTHER_LAWS = {
    "muscle": "its force is that of a muscle",
    "so3": "it drives orientations",
    "pid": "it has an integral term",
    "dcmotor": "it is an electrical machine",
}
_ELSEWHERE = {
    "refsite": "it acts between two sites",
    "cranksite": "it is a slider-crank",
    "body": "it acts through contacts",
}
_NOT_ACTING = "does not act: {why}; give its force as tau"
_TYPES = {
    "dyntype": ("none", "integrator", "filter", "filterexact"),
    "gaintype": ("fixed", "affine"),
    "biastype": ("none", "affine"),
}


@dataclass(frozen=True)
class Driven:
    """An actuator as a record, its damping ratio still to be made a damping, and whether it is switched on."""

    record: Actuator
    ratio: float | None = None
    acts: bool = True


class Actuation:
    """What a document says of actuators and tendons."""

    def __init__(self, root: Element, settings: Settings, defaults: Defaults, joints: Sequence[BodyJoint]) -> None:
        self._root, self._settings, self._defaults = root, settings, defaults
        self._check_attributes()
        self._joints = {joint.name: joint for joint in joints}
        self._kinds: dict[str, Joint] = {joint.name: joint.kind for joint in joints}
        self._scalar = [name for name, kind in self._kinds.items() if kind.only_step]
        self._fixed = {
            one.attributes["name"]: defaults.applied(one, tag="tendon")
            for section in root.all("tendon")
            for one in section.children
            if one.tag == "fixed" and "name" in one.attributes
        }

    def _check_attributes(self) -> None:
        for section in (*self._root.all("tendon"), *self._root.all("actuator")):
            for element in section.children:
                check_attributes(element)
                for joint in element.all("joint"):
                    check_attributes(joint, "tendon joint")

    # -- tendons ------------------------------------------------------------------------------------------------

    def tendons(self) -> Iterator[Tendon]:
        """Fixed tendons along which something acts, or that actuators pull."""
        pulled = {one.attributes.get("tendon") for section in self._root.all("actuator") for one in section.children}
        taken = set(self._fixed)
        for section in self._root.all("tendon"):
            for element in (one for one in section.children if one.tag == "fixed"):
                given = element.attributes.get("name", "")
                record = self._tendon(given or unused("tendon", taken), self._defaults.applied(element, tag="tendon"))
                acts = record.stiffness or record.damping or record.friction or record.limits
                if record.joints and (acts or (given in pulled and self._settings.has("actuation"))):
                    yield record

    def _tendon(self, name: str, element: Element) -> Tendon:
        arms = {joint: arm for joint, arm in lever_arms(element, self._scalar).items() if arm}
        length = sum(arm * self._spring_reference(joint) for joint, arm in arms.items())
        rest = element.numbers("springlength", 1, 2) if "springlength" in element.attributes else (-1.0,)
        low, high = rest if len(rest) == 2 else (rest[0], rest[0])
        if (low, high) == (-1.0, -1.0):  # where springs of the joints are at rest
            low = high = length
        limited = is_limited(element, "limited", "range", self._settings) and self._settings.has("limit")
        for constraint in ["limit"] * limited + ["friction"] * nonzero(element, "frictionloss"):
            note_softness(element, "tendon", constraint, "not read: stops and friction of tendons are those of joints")
        return Tendon(
            name,
            tuple(arms.items()),
            stiffness=_first(element, "stiffness") if self._settings.has("spring") else 0.0,
            rest=(low, high),
            damping=_first(element, "damping") if self._settings.has("damper") else 0.0,
            friction=element.number("frictionloss", 0.0) if self._settings.has("frictionloss") else 0.0,
            limits=(tuple(element.numbers("range", 2)) if limited else None),  # type: ignore[arg-type]
        )

    def _spring_reference(self, joint: str) -> float:
        value = self._joints[joint].element.number("springref", 0.0)
        return self._settings.radians(value) if self._kinds[joint].hinge else value

    # -- actuators ----------------------------------------------------------------------------------------------

    def actuators(self, frames: Mapping[str, str]) -> Iterator[Driven | None]:
        """All actuators in their order: None for those that do not act, which are noted.  ``frames`` are the names of
        sites -> frames."""
        if not self._settings.has("actuation"):
            return
        elements = [one for section in self._root.all("actuator") for one in section.children]
        taken = {one.attributes.get("name", "") for one in elements}
        for element in elements:
            whole = self._defaults.applied(element, tag="actuator")
            name = element.attributes.get("name", "").strip()
            why, transmission, target = self._transmission(whole, frames)
            why = _unknown_law(whole) or why
            if why:
                omit(element, f"{element.tag} actuator", _NOT_ACTING.format(why=why))
                yield None
                continue
            name = name or unused(f"{element.tag}_{target}", taken)
            yield self._record(whole, name, transmission, target)

    def _transmission(self, actuator: Element, frames: Mapping[str, str]) -> tuple[str, str, str]:
        """Why it cannot act, or nothing; how it drives what."""
        given = actuator.attributes
        for key in ("joint", "jointinparent"):
            if key in given:
                missing = given[key] not in self._kinds
                return "its joint does not exist" if missing else "", key, given[key]
        if "tendon" in given:
            why = "" if given["tendon"] in self._fixed else "only fixed tendons are read"
            if not why and not any(lever_arms(self._fixed[given["tendon"]], self._scalar).values()):
                why = "its tendon moves no joint"
            return why, "tendon", given["tendon"]
        if "site" in given and "refsite" not in given:
            return "" if given["site"] in frames else "its site has no name", "site", frames.get(given["site"], "")
        return next((why for key, why in _ELSEWHERE.items() if key in given), "it drives nothing that is read"), "", ""

    def _record(self, actuator: Element, name: str, transmission: str, target: str) -> Driven:
        given = actuator.attributes
        affine_gain, has_bias = given["gaintype"] == "affine", given["biastype"] != "none"
        gain = actuator.numbers("gainprm", 1, 10)[: 3 if affine_gain else 1]
        bias = actuator.numbers("biasprm", 1, 10)[: 3 if has_bias else 0]
        ratio = bias[2] if has_bias and _is_balanced(actuator) and bias[2] > 0.0 else None
        if ratio is not None:
            bias = (*bias[:2], 0.0)
            if gain[0] < 0.0:
                raise actuator.error(f"{actuator.label}: a damping ratio needs a positive stiffness, not {gain[0]:g}")
        dynamics = given["dyntype"]
        if flag(actuator, "actearly") and dynamics != "none":
            omit(actuator, "actuator with actearly", "the force is that of the activation now, not one step later")
        if nonzero(actuator, "delay"):
            omit(actuator, "actuator with delay", "its control input acts at once")
        ranges = self._ranges(actuator, target)
        record = Actuator(
            name,
            target,
            transmission,
            gear=actuator.numbers("gear", 1, 6) if "gear" in given else (1.0,),
            gain=gain,  # type: ignore[arg-type]
            bias=bias,  # type: ignore[arg-type]
            dynamics=dynamics,
            time_constant=self._time_constant(actuator) if dynamics in ("filter", "filterexact") else 1.0,
            ctrl_range=ranges["ctrl"] if self._settings.has("clampctrl") else None,
            force_range=ranges["force"],
            activation_range=ranges["act"] if dynamics != "none" else None,
        )
        return Driven(record, ratio, self._settings.drives(actuator))

    @staticmethod
    def _time_constant(actuator: Element) -> float:
        constant = actuator.numbers("dynprm", 1, 10)[0]
        if constant <= 0.0:
            raise actuator.error(
                f"{actuator.label}: the time constant of its filter must be positive, not {constant:g}"
            )
        return constant

    def _ranges(self, actuator: Element, target: str) -> dict[str, Any]:
        """Of control input, force and activation: two numbers each or None; servos may have that of their target."""
        inherited = self._inherited_range(actuator, target)
        ranges: dict[str, Any] = {}
        for kind in ("ctrl", "force", "act"):
            limited, bounds = f"{kind}limited", f"{kind}range"
            if kind in inherited:
                ranges[kind] = inherited[kind] if actuator.attributes[limited] != "false" else None
            else:
                there = is_limited(actuator, limited, bounds, self._settings)
                ranges[kind] = actuator.numbers(bounds, 2) if there else None
        return ranges

    def _inherited_range(self, actuator: Element, target: str) -> dict[str, tuple[float, float]]:
        """The range of the control input or of the activation that a servo has from its target."""
        share = actuator.number("inheritrange", 0.0) if _is_servo(actuator) else 0.0
        bounds = self._bounds(target) if share > 0.0 else None
        if bounds is None:
            return {}
        middle, half = 0.5 * (bounds[0] + bounds[1]), 0.5 * share * (bounds[1] - bounds[0])
        kind = "act" if actuator.attributes["dyntype"] == "integrator" else "ctrl"
        return {kind: (middle - half, middle + half)}

    def _bounds(self, target: str) -> tuple[float, float] | None:
        """The range of a joint or tendon."""
        element = self._joints[target].element if target in self._joints else self._fixed.get(target)
        if element is None or "range" not in element.attributes:
            return None
        low, high = element.numbers("range", 2)
        if target in self._joints and self._kinds[target].hinge:
            return self._settings.radians(low), self._settings.radians(high)
        return low, high

    # -- joints and bodies --------------------------------------------------------------------------------------

    def effort_ranges(self) -> Iterator[EffortRange]:
        """Bounds of what actuators together give to joints."""
        for name in self._scalar:
            element = self._joints[name].element
            limited = is_limited(element, "actuatorfrclimited", "actuatorfrcrange", self._settings)
            if flag(element, "actuatorgravcomp") and (limited or not self._settings.has("actuation")):
                omit(element, "joint with actuatorgravcomp", "gravity compensation acts beside actuators, on or off")
            if limited:
                yield EffortRange(name, *element.numbers("actuatorfrcrange", 2))


def gravity_compensation(
    bodies: Sequence[Node], masses: Mapping[str, RigidMass], frames: Mapping[str, str], settings: Settings
) -> Iterator[GravityCompensation]:
    """Bodies with ``gravcomp``."""
    for body in bodies[1:] if settings.has_passive_forces else ():
        share = body.element.number("gravcomp", 0.0)
        mass = masses[body.name]
        if share and body.moves and mass.mass:
            yield GravityCompensation(frames[body.name], share * mass.mass, tuple(mass.com.tolist()))


def with_spring_dampers(
    mechanism: Mechanism, joints: Sequence[BodyJoint], settings: Settings, rotors: Mapping[str, Rotor]
) -> Mechanism:
    """The mechanism with springs and damping of joints that give a time constant t and a damping ratio d in their
    place: m / (t d)^2 and 2 m / t, with m the inertia that the joint moves alone (as MuJoCo has it).  The damping of
    actuators is added."""
    given = {one.name: one.element for one in joints if "springdamper" in one.element.attributes}
    if not given:
        return mechanism
    untied, bodies = _untied(mechanism), list(mechanism.bodies)
    inertia = effective_inertia(untied)
    for i, body in enumerate(bodies):
        if body.joint not in given:
            continue
        constant, ratio = given[body.joint].numbers("springdamper", 2)
        if constant <= 0.0 or ratio <= 0.0:
            continue
        m = float(len(body.damping) / np.sum(1.0 / inertia[untied.v_index(body.joint)]))
        damping = 2.0 * m / constant + (rotors[body.joint].damping if body.joint in rotors else 0.0)
        bodies[i] = replace(
            body,
            stiffness=m / (constant * ratio) ** 2 if settings.has("spring") else 0.0,
            damping=(damping if settings.has("damper") else 0.0,) * len(body.damping),
        )
    return replace(mechanism, bodies=tuple(bodies))


def note_effort_ranges(mechanism: Mechanism, driven: Sequence[Driven | None], joints: Sequence[BodyJoint]) -> None:
    """Note joints whose bounds of what actuators give them leave out actuators at sites, which MuJoCo counts."""
    elements = {joint.name: joint.element for joint in joints}
    bounded = {one.joint for one in mechanism.elements if isinstance(one, EffortRange)}
    sites = {one.record.target for one in driven if one is not None and one.record.transmission == "site"}
    moved = (mechanism.frame(site).body for site in sites)
    carried = {mechanism.bodies[i].joint for body in moved if body >= 0 for i in mechanism.tree.path(body)}
    for joint in (joint for joint in elements if joint in bounded & carried):
        advice = "forces of actuators at sites act beyond its bounds"
        omit(elements[joint], "joint with actuatorfrcrange and actuators at sites", advice)


def _untied(mechanism: Mechanism) -> Mechanism:
    """The mechanism whose mimic joints move freely: equalities are no part of MuJoCo's mass matrix."""
    return replace(mechanism, bodies=tuple(replace(body, mimic=None) for body in mechanism.bodies))


def with_damping_ratios(driven: Sequence[Driven | None], mechanism: Mechanism) -> tuple[Actuator, ...]:
    """The actuators, damping ratios made damping: 2 ratio sqrt(kp m), with m the inertia that the actuator moves in the
    pose that the file gives, 1 / (J M^-1 J*) for its lever arms J (as MuJoCo has it)."""
    acting = [one for one in driven if one is not None]
    if all(one.ratio is None for one in acting):
        return tuple(one.record for one in acting)
    untied, records = _untied(mechanism), []
    inverse = mobility(untied)
    for one in acting:
        record = one.record
        if one.ratio is not None:
            arms = _arms(record, untied)
            moved = float(arms @ inverse @ arms)
            damping = 2.0 * one.ratio * math.sqrt(record.gain[0] / moved) if moved > 0.0 else 0.0
            record = replace(record, bias=(*record.bias[:2], -damping))
        records.append(record)
    return tuple(records)


def _arms(record: Actuator, mechanism: Mechanism) -> np.ndarray:
    """(nv,): the joint forces of a unit force of an actuator in the pose that the file gives."""
    unit = Actuator(record.name, record.target, record.transmission, record.gear)
    law = ActuatorLaw((unit,), tuple(one for one in mechanism.forces.tendons if one.name == record.target))
    tree, still = build_tree(mechanism.spanning_tree), [0.0] * mechanism.nv
    return np.array(Acting((law,)).joint_forces(tree, mechanism.initial.tolist(), still, [1.0]), dtype=float)


def _is_servo(actuator: Element) -> bool:
    """Whether it is driven to a position by gain and bias alone."""
    types = actuator.attributes["gaintype"], actuator.attributes["biastype"]
    return types == ("fixed", "affine") and _is_balanced(actuator)


def _is_balanced(actuator: Element) -> bool:
    """Whether its control input is a length at which the first numbers of gain and bias cancel: a positive last number
    of the bias is a damping ratio then."""
    return actuator.numbers("gainprm", 1, 10)[0] == -actuator.numbers("biasprm", 1, 10)[1]


def _unknown_law(actuator: Element) -> str:
    """Why the force law of an actuator is not read, or an empty string."""
    given = actuator.attributes
    if "gaintype" not in given:  # of a plugin, say
        return f"<{actuator.tag}> is not known"
    if given["gaintype"] in _OTHER_LAWS:
        return _OTHER_LAWS[given["gaintype"]]
    for name, known in _TYPES.items():
        if given[name] not in known:
            return f'{name}="{given[name]}" is not known'
    return ""


def _first(element: Element, attribute: str) -> float:
    """The first coefficient of a polynomial spring or damper."""
    if attribute not in element.attributes:
        return 0.0
    first, *higher = element.numbers(attribute, 1, 3)
    if any(higher):
        omit(element, f"tendon with nonlinear {attribute}", "only the first coefficient is read")
    return first
