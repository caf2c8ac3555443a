"""Sections that are not read: unknown ones are errors, what concerns mechanics is reported, the rest is skipped."""

from __future__ import annotations

from linkwise.mechanism.checks import did_you_mean
from linkwise.readers.mjcf.document import Defaults, Settings
from linkwise.readers.mjcf.tree import Node
from linkwise.readers.protocol import Element, warn

_READ = ("compiler", "option", "default", "asset", "worldbody", "equality", "tendon", "actuator", "deformable")
_SKIPPED = ("size", "statistic", "visual", "extension", "contact", "sensor", "custom", "keyframe")
_TENDON_FORCES = ("stiffness", "damping", "frictionloss", "armature")


def report(root: Element, bodies: list[Node], settings: Settings, defaults: Defaults) -> None:
    """Warn of everything that acts on the mechanism and is left out."""
    for section in root.children:
        if section.tag not in (*_READ, *_SKIPPED):
            raise section.error(f"<{section.tag}> is no section of MJCF: {did_you_mean(section.tag, _READ + _SKIPPED)}")
    for tendon in (one for section in root.all("tendon") for one in section.children):
        _report_tendon(defaults.applied(tendon, tag="tendon"), settings)
    for actuator in (one for section in root.all("actuator") for one in section.children):
        merged = defaults.applied(actuator)
        for attribute in ("armature", "damping"):
            if _nonzero(merged, attribute):
                warn(actuator, f"adds {attribute} to what it drives, which is not read: write it at the joint")
    for flex in (one for section in root.all("deformable") for one in section.all("flex")):
        warn(flex, "is left out: deformable bodies are not read")
    for option in root.all("option"):
        fluid = [key for key in ("density", "viscosity") if _nonzero(option, key)]
        if fluid:
            warn(option, f"has {' and '.join(fluid)} of a fluid around the bodies, whose forces are left out")
    for body in bodies[1:]:
        if _nonzero(body.element, "gravcomp") and body.moves and any(settings.gravity):
            warn(body.element, "has gravcomp, a force against gravity that is left out")


def _report_tendon(tendon: Element, settings: Settings) -> None:
    acts = [attribute for attribute in _TENDON_FORCES if _nonzero(tendon, attribute)]
    limited = tendon.attributes.get("limited", "auto")
    if limited == "true" or (limited == "auto" and settings.autolimits and "range" in tendon.attributes):
        acts.append("limits")
    if acts:
        warn(tendon, f"is a tendon with {', '.join(acts)}, which is left out")


def _nonzero(element: Element, attribute: str) -> bool:
    return attribute in element.attributes and any(element.numbers(attribute, 1, 6))
