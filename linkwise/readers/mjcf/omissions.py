"""Sections that are not read: unknown ones are errors, what acts or measures is noted, the rest is skipped."""

from __future__ import annotations

from collections.abc import Iterator

from linkwise.mechanism.checks import did_you_mean
from linkwise.readers.mjcf.defaults import Defaults
from linkwise.readers.mjcf.document import Settings, is_limited
from linkwise.readers.mjcf.tree import Node
from linkwise.readers.protocol import Element, omit

_READ = (
    "compiler",
    "option",
    "default",
    "asset",
    "worldbody",
    "equality",
    "tendon",
    "actuator",
    "contact",
    "deformable",
)
_SKIPPED = ("size", "statistic", "visual", "extension", "sensor", "custom", "keyframe")
#: What MuJoCo's solver makes of a constraint: numbers of a spring and damper, and how hard it is, by default.
OF_SOLVER = {"solref": (0.02, 1.0), "solimp": (0.9, 0.95, 0.001, 0.5, 2.0)}
_TENDON_FORCES = ("stiffness", "damping", "frictionloss", "armature")
_OF_A_ROPE = (
    "what hangs on it falls: mech.with_loops(lw.constraints.Loop(name, lw.contact.Distance(length), site_a, None, "
    "site_b, None)), or "
    "Builder.distance, keeps two points a length apart, as a rod or a taut rope does (docs/closed.md); the pull of a "
    "rope that goes slack is to be given as wrenches"
)


def note(root: Element, bodies: list[Node], settings: Settings, defaults: Defaults) -> None:
    """Note what acts on the mechanism, or measures it, and is left out; actuators, equalities and geoms are noted where
    they are read."""
    for section in root.children:
        if section.tag not in (*_READ, *_SKIPPED):
            raise section.error(f"<{section.tag}> is no section of MJCF: {did_you_mean(section.tag, _READ + _SKIPPED)}")
    for tendon in _inside(root, "tendon"):
        _note_tendon(defaults.applied(tendon, tag="tendon"), settings)
    for flex in _inside(root, "deformable", "flex"):
        omit(flex, "deformable body", "deformable bodies are not read")
    for sensor in _inside(root, "sensor"):
        omit(sensor, "sensor", "not read: lw.frame_pose, lw.frame_velocity, lw.frame_acceleration compute such")
    for body in bodies[1:]:
        if body.element.attributes.get("mocap") == "true":
            omit(body.element, "mocap body", "kept where the file has it")
        if "sleep" in settings.enabled and body.element.attributes.get("sleep") == "init":
            omit(body.element, "body with sleep", "it moves from the start on, where the file has it asleep")


def _inside(root: Element, section: str, tag: str | None = None) -> Iterator[Element]:
    return (one for part in root.all(section) for one in part.children if tag in (None, one.tag))


def nonzero(element: Element, attribute: str) -> bool:
    """Whether an attribute is there and holds a number other than zero."""
    return attribute in element.attributes and any(element.numbers(attribute, 1, 6))


def own_numbers(element: Element, attribute: str, usual: tuple[float, ...]) -> bool:
    """Whether an attribute is there and holds other numbers than the format has by default."""
    given = element.numbers(attribute, 1, len(usual)) if attribute in element.attributes else ()
    return given != usual[: len(given)]


def note_softness(element: Element, what: str, constraint: str, advice: str) -> None:
    """Numbers of MuJoCo's solver for a limit or dry friction (``constraint``) of a joint or tendon."""
    names = [name + constraint for name in OF_SOLVER if own_numbers(element, name + constraint, OF_SOLVER[name])]
    names += ["margin"] * (constraint == "limit" and nonzero(element, "margin"))
    if names:
        omit(element, f"{what} with {' and '.join(names)}", advice)


def _note_tendon(tendon: Element, settings: Settings) -> None:
    """What acts along spatial tendons; along fixed ones it is read, but for armature."""
    acts = [attribute for attribute in _TENDON_FORCES if nonzero(tendon, attribute)]
    if tendon.tag == "fixed":
        acts = [attribute for attribute in acts if attribute == "armature"]
    elif settings.has("limit") and is_limited(tendon, "limited", "range", settings, needed=False):
        omit(tendon, "spatial tendon with limits", _OF_A_ROPE, constrains=True)
    if acts:
        omit(tendon, f"{tendon.tag} tendon with {', '.join(acts)}", "does not act: give its forces as tau")
    for attribute in ("springyield", "actuatorfrcrange"):
        if tendon.tag == "fixed" and attribute in tendon.attributes:
            omit(tendon, f"tendon with {attribute}", "not read")
