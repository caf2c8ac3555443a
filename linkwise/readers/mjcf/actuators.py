"""What actuators add to joints whether driven or not, and the largest force they can give; how they drive is in
``actuation.py``."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from linkwise.mechanics.joints import Joint
from linkwise.mechanism.checks import did_you_mean
from linkwise.readers.mjcf.defaults import Defaults
from linkwise.readers.mjcf.document import Settings, is_limited
from linkwise.readers.mjcf.omissions import nonzero
from linkwise.readers.mjcf.tendons import lever_arms
from linkwise.readers.protocol import Element, omit, warn

_EVERYTHING = (-math.inf, math.inf)
Interval = tuple[float, float]


@dataclass
class Rotor:
    """What the actuators of a joint add to it: inertia and damping, both times the square of the gear; and the largest
    force that they can give it."""

    armature: float = 0.0
    damping: float = 0.0
    largest_force: float = math.inf


def rotors_of(
    root: Element, settings: Settings, defaults: Defaults, kinds: Mapping[str, Joint]
) -> defaultdict[str, Rotor]:
    """What actuators add to hinges and slides, by the joints' names; all actuators are noted."""
    rotors: defaultdict[str, Rotor] = defaultdict(Rotor)
    forces: dict[str, Interval] = {}
    for element, arms in _reached(root, kinds):
        actuator = defaults.applied(element, tag="actuator")
        own = _joint_of(actuator)
        _read(actuator, rotors[own] if _is_scalar(kinds.get(own)) else None)
        for joint, arm in arms.items():
            if _is_scalar(kinds[joint]) and settings.drives(actuator):
                low, high = forces.get(joint, (0.0, 0.0))
                least, most = _scaled(_transmitted_force(actuator, settings), arm)
                forces[joint] = low + least, high + most
    for joint, bounds in forces.items():
        rotors[joint].largest_force = max(map(abs, bounds))
    return rotors


def driven_joints(
    root: Element, settings: Settings, defaults: Defaults, kinds: Mapping[str, Joint]
) -> tuple[str, ...] | None:
    """The joints that actuators drive, themselves or by fixed tendons, each once.  None if there are none: no
    actuators, or only such as drive sites, spatial tendons and the like, which may move any joint."""
    reached = ((defaults.applied(one, tag="actuator"), arms) for one, arms in _reached(root, kinds))
    driven = (joint for actuator, arms in reached if settings.drives(actuator) for joint in arms)
    return tuple(dict.fromkeys(driven)) or None


def _reached(root: Element, kinds: Mapping[str, Joint]) -> Iterator[tuple[Element, dict[str, float]]]:
    """Each actuator with the joints that it is known to drive, and the factors of its force there."""
    tendons = {one.attributes.get("name"): one for section in root.all("tendon") for one in section.children}
    scalar = [name for name, kind in kinds.items() if _is_scalar(kind)]
    for actuator in (one for section in root.all("actuator") for one in section.children):
        joint, tendon = _joint_of(actuator), actuator.attributes.get("tendon", "")
        arms = {joint: 1.0} if joint in kinds else {}
        if tendon in tendons and tendons[tendon].tag == "fixed":
            arms = {name: arm for name, arm in lever_arms(tendons[tendon], scalar).items() if arm}
        elif tendon and tendon not in tendons or joint and not arms:
            what, name, known = ("tendon", tendon, tendons) if tendon else ("joint", joint, kinds)
            suggestion = did_you_mean(name, [one for one in known if one])
            warn(actuator, f"drives the {what} {name!r}, which does not exist, and is left out: {suggestion}")
        yield actuator, arms


def _is_scalar(kind: Joint | None) -> bool:
    return kind is not None and kind.only_step is not None


def _joint_of(actuator: Element) -> str:
    return actuator.attributes.get("joint", actuator.attributes.get("jointinparent", ""))


def _gear(actuator: Element) -> float:
    return actuator.numbers("gear", 1, 6)[0] if "gear" in actuator.attributes else 1.0


def _read(actuator: Element, rotor: Rotor | None) -> None:
    """What the actuator adds to the hinge or slide that it drives; None: it drives none."""
    adds = [key for key in ("armature", "damping") if nonzero(actuator, key)]
    if adds and rotor is None:
        advice = "driving no hinge or slide, so that this is not read: write it at the joints"
        omit(actuator, f"actuator with {' and '.join(adds)}", advice)
    for key in adds if rotor is not None else ():
        first, *higher = actuator.numbers(key, 1, 3)
        setattr(rotor, key, getattr(rotor, key) + _gear(actuator) ** 2 * first)
        if any(higher):
            omit(actuator, f"actuator with nonlinear {key}", "only the first coefficient is read")


# -- the largest force ----------------------------------------------------------------------------------


def _transmitted_force(actuator: Element, settings: Settings) -> Interval:
    """Between which bounds is the force at the joint or along the tendon: the gear times what the actuator gives."""
    force = _clipped(_driving_force(actuator, settings), actuator, "forcelimited", "forcerange", settings)
    return _scaled(force, _gear(actuator))


def _driving_force(actuator: Element, settings: Settings) -> Interval:
    """Gain times control (or activation) where that is all of the force; servos have a state that nothing bounds."""
    given = actuator.attributes
    if given.get("gaintype") != "fixed":
        return _EVERYTHING
    if given["biastype"] != "none" and any(actuator.numbers("biasprm", 1, 10)[:3]):
        return _EVERYTHING
    driven, dynamics = _EVERYTHING, given["dyntype"]
    if dynamics in ("none", "filter", "filterexact") and settings.has("clampctrl"):
        driven = _clipped(driven, actuator, "ctrllimited", "ctrlrange", settings)
    if dynamics != "none":
        driven = _clipped(driven, actuator, "actlimited", "actrange", settings)
    return _scaled(driven, actuator.numbers("gainprm", 1, 10)[0])


def _clipped(bounds: Interval, actuator: Element, switch: str, attribute: str, settings: Settings) -> Interval:
    """What is left of the bounds where values beyond the range are put to its ends."""
    if not is_limited(actuator, switch, attribute, settings):
        return bounds
    low, high = actuator.numbers(attribute, 2)
    return min(max(bounds[0], low), high), min(max(bounds[1], low), high)


def _scaled(bounds: Interval, factor: float) -> Interval:
    if factor == 0.0:
        return 0.0, 0.0
    low, high = sorted(factor * bound for bound in bounds)
    return low, high
