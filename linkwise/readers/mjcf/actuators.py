"""Actuators: what they add to joints whether driven or not is read; that they drive is noted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from linkwise.mechanics.joints import Joint, Prismatic, Revolute
from linkwise.readers.mjcf.document import Defaults, Settings
from linkwise.readers.mjcf.omissions import nonzero
from linkwise.readers.protocol import Element, omit

_DRIVES = "it is not read: give joint forces as tau (the gear included), lw.saturated keeps to effort limits"
_HOLDS = (
    "in MuJoCo it acts even where ctrl is 0, here nothing does: control=lw.joint_feedback(mech, target, kp, kd) of "
    "lw.simulate acts like it"
)
_NAMES = {"position": "position servo", "velocity": "velocity servo", "intvelocity": "position servo"}
_HOLDING = (*_NAMES, "orientation", "pid", "damper", "muscle")


@dataclass
class Rotor:
    """What the actuators of a joint add to it: inertia and damping, both times the square of the gear."""

    armature: float = 0.0
    damping: float = 0.0


def rotors_of(
    root: Element, settings: Settings, defaults: Defaults, kinds: Mapping[str, Joint]
) -> defaultdict[str, Rotor]:
    """What actuators add to hinges and slides, by the joints' names; all actuators are noted."""
    rotors: defaultdict[str, Rotor] = defaultdict(Rotor)
    for element in (one for section in root.all("actuator") for one in section.children):
        actuator = defaults.applied(element, tag="actuator")
        _read(actuator, kinds, rotors)
        if settings.has("actuation"):
            _note(actuator)
    return rotors


def driven_joints(root: Element, settings: Settings, kinds: Mapping[str, Joint]) -> tuple[str, ...] | None:
    """The joints that actuators drive, each once.  None if there are no actuators, or if some drive other things, such
    as tendons, so that it is not known which joints these move."""
    actuators = [one for section in root.all("actuator") for one in section.children]
    joints = [one.attributes.get("joint", one.attributes.get("jointinparent", "")) for one in actuators]
    known = joints and settings.has("actuation") and all(joint in kinds for joint in joints)
    return tuple(dict.fromkeys(joints)) if known else None


def _read(actuator: Element, kinds: Mapping[str, Joint], rotors: defaultdict[str, Rotor]) -> None:
    adds = [key for key in ("armature", "damping") if nonzero(actuator, key)]
    joint = actuator.attributes.get("joint", actuator.attributes.get("jointinparent", ""))
    if adds and isinstance(kinds.get(joint), (Revolute, Prismatic)):
        gear = actuator.numbers("gear", 1, 6)[0] if "gear" in actuator.attributes else 1.0
        for key in adds:
            first, *higher = actuator.numbers(key, 1, 3)
            setattr(rotors[joint], key, getattr(rotors[joint], key) + gear**2 * first)
            if any(higher):
                omit(actuator, f"actuator with nonlinear {key}", "only its first coefficient is read")
    elif adds:
        advice = "it drives no hinge or slide, so that this is not read; write it at the joints"
        omit(actuator, f"actuator with {' and '.join(adds)}", advice)


def _note(actuator: Element) -> None:
    holds = actuator.tag in _HOLDING
    name = _NAMES.get(actuator.tag, actuator.tag if actuator.tag in ("motor", "damper", "muscle") else "")
    if actuator.tag == "general":
        # A class that was written for servos gives its gains to general actuators too.
        holds = "kp" in actuator.attributes or (
            actuator.attributes.get("biastype", "none") != "none" and nonzero(actuator, "biasprm")
        )
        name = "servo" if holds else "general actuator"
    omit(actuator, name or f"{actuator.tag} actuator", _HOLDS if holds else _DRIVES)
