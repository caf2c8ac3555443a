"""``<equality>``: points and bodies held together become loops, joints tied linearly become mimic joints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from linkwise.mechanics.joints import Fixed, Spherical
from linkwise.mechanics.spatial.quaternion import rotation_matrix
from linkwise.mechanism import GROUND, Builder, Mimic, Pose
from linkwise.mechanism.checks import did_you_mean
from linkwise.mechanism.welding import composed
from linkwise.readers.mjcf.defaults import Defaults
from linkwise.readers.mjcf.document import Settings, check_attributes, flag
from linkwise.readers.mjcf.tree import WORLD, Node, carrier
from linkwise.readers.protocol import Element, omit, warn

_READ = ("joint", "connect", "weld", "tendon")
_LEFT_OUT = {  # what they are called, and whether they hold together what is read
    "distance": ("distance equality", True),
    "flex": ("equality of deformable bodies", False),
    "flexvert": ("equality of deformable bodies", False),
    "flexstrain": ("equality of deformable bodies", False),
}


@dataclass(frozen=True)
class Ties:
    """Mimic joints, and joints that are held at a coordinate."""

    mimic_joints: Mapping[str, Mimic]
    held: Mapping[str, float]


def active(root: Element, settings: Settings, defaults: Defaults) -> list[Element]:
    """The equality constraints in force, with their defaults."""
    if not settings.has("equality"):
        return []
    found = [defaults.applied(one, tag="equality") for section in root.all("equality") for one in section.children]
    found = [one for one in found if flag(one, "active", True)]
    for one in found:
        check_attributes(one, f"equality {one.tag}" if one.tag in ("joint", "tendon") else None)
    return found


# -- loops ----------------------------------------------------------------------------------------------


class LoopMaker:
    """Adds loops to a builder: knows where bodies and sites are while the file's joints have not moved."""

    def __init__(self, bodies: list[Node], frame_of: Mapping[str, str]) -> None:
        self._frame_of = frame_of
        self._bodies = {body.name: body for body in bodies}
        self._sites = {
            site.attributes["name"]: (body, pose)
            for body in bodies
            for site, pose in body.sites
            if site.attributes.get("name")
        }
        self._names: set[str] = set()

    def add(self, builder: Builder, element: Element) -> None:
        """The loop of a ``<connect>`` or ``<weld>``."""
        (body_a, pose_a), (body_b, pose_b) = self._sides(element)
        ball = element.tag == "connect" or element.number("torquescale", 1.0) == 0.0
        name = element.attributes.get("name") or f"{element.tag}_{body_a.name}_{body_b.name}"
        while name in self._names:
            name += "_"
        self._names.add(name)
        if carrier(body_a) is carrier(body_b):
            warn(element, f"is left out: {body_a.name!r} and {body_b.name!r} are parts of the same rigid body")
            return
        links = [GROUND if body.name == WORLD else self._frame_of[body.name] for body in (body_a, body_b)]
        builder.loop(name, Spherical() if ball else Fixed(), links[0], pose_a, links[1], pose_b)

    def _sides(self, element: Element) -> tuple[tuple[Node, Pose], tuple[Node, Pose]]:
        """Two bodies, each with the pose in it that meets the other's."""
        if "site1" in element.attributes or "site2" in element.attributes:
            return self._site(element, "site1"), self._site(element, "site2")
        one = self._body(element, element.text("body1"))
        other = self._body(element, element.attributes.get("body2") or WORLD)
        anchor = np.array(element.vector("anchor", (0.0, 0.0, 0.0)))
        if element.tag == "connect":
            element.text("anchor")
            point = (np.eye(3), anchor)
            return (one, point), (other, _seen_from(other, composed(one.world_pose, point)))
        # The second body's anchor meets the first one's: relpose if given, otherwise where it is in the file's pose.
        point = (np.eye(3), anchor)
        if "relpose" in element.attributes:
            *position, w, x, y, z = element.numbers("relpose", 7)
            if any((w, x, y, z)):  # otherwise it counts as left out
                rotation = np.array(rotation_matrix((w, x, y, z)), dtype=float)
                return (one, (rotation, np.array(position))), (other, point)
        return (one, _seen_from(one, composed(other.world_pose, point))), (other, point)

    def _body(self, element: Element, name: str) -> Node:
        if name not in self._bodies:
            raise element.error(f"{element.label}: there is no body {name!r}: {did_you_mean(name, self._bodies)}")
        return self._bodies[name]

    def _site(self, element: Element, key: str) -> tuple[Node, Pose]:
        name = element.text(key)
        if name not in self._sites:
            raise element.error(f"{element.label}: there is no site {name!r}: {did_you_mean(name, self._sites)}")
        return self._sites[name]


def _seen_from(body: Node, world_pose: Pose) -> Pose:
    rotation, position = body.world_pose
    return rotation.T @ world_pose[0], rotation.T @ (world_pose[1] - position)


# -- joints ---------------------------------------------------------------------------------------------


def ties_of(elements: list[Element], references: Mapping[str, float], mimic: bool = True) -> Ties:
    """What the ``<joint>`` constraints say; ``references`` are the coordinates of hinges and slides in the file's pose.

    ``y - y0 = a0 + a1 (x - x0) + ...`` for the coordinates y of the first joint and x of the second.  Without ``mimic``
    they say nothing.
    """
    mimic_joints: dict[str, Mimic] = {}
    held: dict[str, float] = {}
    for element in elements:
        if element.tag in _LEFT_OUT:
            what, constrains = _LEFT_OUT[element.tag]
            omit(element, what, "equalities of this kind are not read", constrains)
        elif element.tag not in _READ:
            raise element.error(
                f"<{element.tag}> is no equality that is known: " + did_you_mean(element.tag, (*_READ, *_LEFT_OUT))
            )
        elif element.tag == "joint":
            _add_tie(element, references, mimic_joints, held)
    return Ties(mimic_joints, _held(mimic_joints, held)) if mimic else Ties({}, {})


def coefficients(element: Element) -> list[float]:
    """The five numbers of ``polycoef``; left out, they are 0 1 0 0 0."""
    found = [0.0, 1.0, 0.0, 0.0, 0.0]
    if "polycoef" in element.attributes:
        given = element.numbers("polycoef", 1, 5)
        found[: len(given)] = given
    return found


def _held(mimic_joints: Mapping[str, Mimic], held: Mapping[str, float]) -> dict[str, float]:
    """Joints that are held, and those that these mimic: each is held where the one that mimics it must be."""
    result: dict[str, float] = {}
    for joint, value in held.items():
        chain = [joint]
        while joint in mimic_joints and mimic_joints[joint].ratio and mimic_joints[joint].joint not in chain:
            rule = mimic_joints[joint]
            joint, value = rule.joint, (value - rule.offset) / rule.ratio
            chain.append(joint)
        if joint not in mimic_joints:  # otherwise its own rule holds it
            result.setdefault(joint, value)
    return result


def _add_tie(
    element: Element, references: Mapping[str, float], mimic_joints: dict[str, Mimic], held: dict[str, float]
) -> None:
    names = [element.text(key) for key in ("joint1", "joint2") if key == "joint1" or key in element.attributes]
    for name in names:
        if name not in references:
            raise element.error(
                f"{element.label}: there is no hinge or slide {name!r}: {did_you_mean(name, references)}"
            )
    offset, ratio, *higher = coefficients(element)
    first = names[0]
    if len(names) == 1:
        held[first] = references[first] + offset
        return
    second = names[1]
    if any(higher):
        omit(element, "nonlinear joint equality", "both joints are left free", constrains=True)
        return
    offset += references[first] - ratio * references[second]
    if first in mimic_joints and second not in mimic_joints and ratio != 0.0:
        first, second, ratio, offset = second, first, 1.0 / ratio, -offset / ratio
    if first in mimic_joints:
        raise element.error(
            f"{element.label}: {first!r} already mimics {mimic_joints[first].joint!r}; keep one of both"
        )
    mimic_joints[first] = Mimic(second, ratio, offset)
