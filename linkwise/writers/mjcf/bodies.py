"""Bodies with their joints, masses, frames as sites and shapes as geoms."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np

from linkwise.mechanics.joints import Joint
from linkwise.mechanism import GROUND, PLANE, Body, EffortRange, GravityCompensation, Mechanism, Pose, Shape
from linkwise.mechanism.checks import inertia_defects
from linkwise.mechanism.elements import Actuator
from linkwise.mechanism.forces import driven_by
from linkwise.mechanism.naming import unused_name
from linkwise.mechanism.poses import quaternion_from_rotation, rotation_from_quaternion
from linkwise.mechanism.welding import ORIGIN, composed, relative_pose
from linkwise.writers.report import Report
from linkwise.writers.xml import element

WORLD = "world"
FORMAT = "mjcf"
NO_LIMIT = 1e300  # the format has no infinite numbers
NEAR_BOUND = 1e-6  # principal moments A + B = C but for this share, as of thin rods and plates, are written as such
SMALLEST = 1e-15  # mass and moment of inertia that MuJoCo takes (its mjMINVAL)
ROUNDING = 1e-9  # a share of C beyond A + B that is taken for rounding
TOUCHES_NOTHING = (1 << 30, 0)  # masks of a geom that meets no other by masks


@dataclass(frozen=True)
class Chain:
    """A body of the file: massless links and the last link with their load, moved by joints one after the other.

    name, frame   of the body's frame: the last link's own, or a frame fixed to it, at this pose in it
    """

    links: tuple[int, ...]
    name: str
    frame: Pose


class Bodies:
    """Writes all bodies, depth first, and records the order of joints and the sites."""

    def __init__(self, mech: Mechanism, report: Report, axes: Mapping[int, np.ndarray]) -> None:
        """``axes`` are principal axes of inertias, of bodies where it matters which are written."""
        self.mech, self._report, self._axes = mech, report, axes
        self.order: list[int] = []
        self._elements: dict[int, tuple[Element, Pose]] = {}  # of a body -> its element, and its frame in the link's
        self._sites: dict[str, tuple[int, Pose]] = {}
        self._names = {GROUND, WORLD, *mech.frames}
        self.initial = {body.joint: mech.coordinates.place(body.joint).positions(mech.initial) for body in mech.bodies}

    def write(self, world: Element) -> None:
        """Everything below ``<worldbody>``."""
        self._elements[-1] = (world, ORIGIN)
        self._frames(-1, GROUND, WORLD)
        for index, parent in enumerate(self.mech.tree.parents):
            if parent < 0:
                self._body(index)

    # -- sites --------------------------------------------------------------------------------------------------

    def site(self, link: str, pose: Pose, name: str) -> str:
        """Name of an existing or new site at a pose on a link or frame."""
        frame = self.mech.frame(link)
        placed = composed(frame.pose, pose)
        for known, (body, there) in self._sites.items():
            if body == frame.body and all(np.array_equal(a, b) for a, b in zip(there, placed, strict=True)):
                return known
        name = unused_name(name, self._names)
        self._site(frame.body, placed, name)
        return name

    def has(self, body: int) -> bool:
        """Whether a body has its own element; massless links between joints have none."""
        return body in self._elements

    def inside(self, body: int, pose: Pose) -> tuple[Element, Pose]:
        """The element of a body, and a pose in that element for a pose in the link's frame."""
        parent, origin = self._elements[body]
        return parent, relative_pose(origin, pose)

    def _site(self, body: int, pose: Pose, name: str) -> None:
        parent, seen = self.inside(body, pose)
        element(parent, "site", name=name, **pose_attributes(seen))
        self._sites[name] = (body, pose)

    def _frames(self, body: int, *skipped: str) -> None:
        """Write all frames and shapes of a body except frames that loading creates."""
        for frame in self.mech.frames.values():
            if frame.body == body and frame.name not in skipped:
                self._site(body, frame.pose, frame.name)
        for shape in self.mech.shapes:
            carrier, pose = shape.placed(self.mech)
            if carrier == body:
                parent, seen = self.inside(body, pose)
                geom(parent, shape, seen)

    # -- bodies -------------------------------------------------------------------------------------------------

    def _body(self, index: int) -> None:
        chain, mech = self._chain(index), self.mech
        first, last = mech.bodies[chain.links[0]], mech.bodies[chain.links[-1]]
        parent, origin = self._elements[first.parent]
        poses, pose = self._poses(chain)
        made = element(parent, "body", name=chain.name, **pose_attributes(relative_pose(origin, pose)))
        if last.mass or last.inertia.any():
            self._inertial(made, chain.links[-1], chain.frame)
        else:
            nothing = (0.0, 0.0, 0.0)
            element(made, "inertial", pos=nothing, mass=0.0, diaginertia=nothing)  # without it no reader takes the body
            self._report.remark("bodies without mass, which linkwise reads and MuJoCo refuses", chain.name)
        for link, seen in zip(chain.links, poses, strict=True):
            self.order.append(link)
            self._joint(made, mech.bodies[link], seen)
            expected = f"{chain.name}/{mech.bodies[link].joint}"
            if mech.bodies[link].link not in (expected, chain.name):
                self._report.remark("links without mass, by new names", f"{mech.bodies[link].link} ({expected})")
        self._elements[chain.links[-1]] = (made, chain.frame)
        self._frames(chain.links[-1], chain.name, last.link)
        for child in mech.tree.children[chain.links[-1]]:
            self._body(child)

    def _chain(self, index: int) -> Chain:
        links, mech = [index], self.mech
        while self._only_stands_between(links[-1]):
            links.append(mech.tree.children[links[-1]][0])
        last = mech.bodies[links[-1]]
        base = last.link.removesuffix(f"/{last.joint}")  # as the reader calls the link of a joint that is elsewhere
        if base != last.link and base in mech.frames and mech.frames[base].body == links[-1]:
            frame = mech.frames[base]
            if np.array_equal(frame.rotation, np.eye(3)) and not last.kind.is_free:
                return Chain(tuple(links), base, frame.pose)
        if last.link == WORLD:
            raise self._report.refuse(f'"{WORLD}" is the fixed world of MJCF; a link has this name: rename it')
        return Chain(tuple(links), last.link, ORIGIN)

    def _only_stands_between(self, index: int) -> bool:
        """Whether a massless link without frames and shapes carries exactly one other."""
        body, mech = self.mech.bodies[index], self.mech
        if body.mass or body.inertia.any() or len(mech.tree.children[index]) != 1 or body.kind.is_free:
            return False
        if mech.bodies[mech.tree.children[index][0]].kind.is_free:
            return False
        used = [frame.name for frame in mech.frames.values() if frame.body == index and frame.name != body.link]
        used += [shape.link for shape in mech.shapes if shape.placed(mech)[0] == index]
        ends = [link for loop in mech.loops for link in loop.links]
        return not used and body.link not in ends and not self._is_target(body.link)

    def _is_target(self, link: str) -> bool:
        """Whether a force element acts on a link."""
        targets = [
            element.target
            for element in self.mech.elements
            if isinstance(element, Actuator) and element.transmission == "site"
        ]
        return link in targets + [
            element.link for element in self.mech.elements if isinstance(element, GravityCompensation)
        ]

    def _poses(self, chain: Chain) -> tuple[list[Pose], Pose]:
        """The body's frame seen from each link of the chain, and from the parent, in the configuration of the file."""
        seen, poses = chain.frame, []
        for link in reversed(chain.links):
            body = self.mech.bodies[link]
            poses.append(seen)
            moved = composed(moved_by(body.kind, self.initial[body.joint]), seen)
            seen = composed(body.pose, moved)
            if body.kind.is_ball and any(self.initial[body.joint][1:]):
                self._report.omit("initial orientation of ball joint", body.joint)
        return poses[::-1], seen

    def _inertial(self, made: Element, index: int, frame: Pose) -> None:
        body = self.mech.bodies[index]
        rotation, com = relative_pose(frame, (np.eye(3), body.com))
        moments = rotation @ body.inertia @ rotation.T if not np.array_equal(rotation, np.eye(3)) else body.inertia
        if share := self._held_up(index):
            made.set("gravcomp", repr(share))
        (low, middle, high), axes = np.linalg.eigh(moments)
        if index in self._axes:
            rotated = rotation @ self._axes[index]
            numbers = {
                "quat": quaternion_from_rotation(rotated),
                "diaginertia": (rotated.T @ moments @ rotated).diagonal(),
            }
        elif (
            low > 0.0 and abs(low + middle - high) < NEAR_BOUND * high
        ):  # decomposed by MuJoCo it may be beyond the bound
            axes[:, 0] *= np.linalg.det(axes)
            high = high if high - low - middle > ROUNDING * high else min(high, low + middle)
            numbers = {"quat": quaternion_from_rotation(axes), "diaginertia": (low, middle, high)}
        else:
            numbers = {"fullinertia": moments[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]}
        element(made, "inertial", pos=com, mass=body.mass, **numbers)
        refused = high > low + middle or inertia_defects(body.mass, body.inertia)
        if min(body.mass, low) < SMALLEST or refused:
            self._report.remark("masses or inertias that linkwise reads and MuJoCo refuses", body.link)

    def _held_up(self, index: int) -> float:
        """Fraction of a body's weight that is compensated; zero if the force is not at its centre of mass."""
        mech, body = self.mech, self.mech.bodies[index]
        total, moment = 0.0, np.zeros(3)
        for compensation in (
            compensation for compensation in mech.elements if isinstance(compensation, GravityCompensation)
        ):
            frame = mech.frame(compensation.link)
            if frame.body == index:
                total += compensation.mass
                moment += compensation.mass * (
                    frame.rotation @ np.array(compensation.point) + frame.position - body.com
                )
        if total and np.abs(moment).max() > 1e-12 * max(abs(total), 1.0):
            self._report.omit("gravity compensation beside the centre of mass", body.link)
            return 0.0
        return total / body.mass if total else 0.0

    # -- joints -------------------------------------------------------------------------------------------------

    def _joint(self, made: Element, body: Body, seen: Pose) -> None:
        numbers = self._numbers(body)
        if body.kind.is_free:
            if body.parent >= 0:
                raise self._report.refuse(
                    f"joint {body.joint!r} floats on the moving link {self.mech.bodies[body.parent].link!r}, and MJCF "
                    "has free joints on the world alone"
                )
            if not (np.array_equal(body.rotation, np.eye(3)) and not body.position.any()):
                self._report.remark("coordinates that are those of the pose in the world", body.joint)
            if not numbers:
                element(made, "freejoint", name=body.joint)
                return
        anchor = -(seen[0].T @ seen[1]) + 0.0
        step = body.kind.only_step
        element(
            made,
            "joint",
            name=body.joint,
            type=body.kind.formats[FORMAT].type,
            axis=None if step is None else seen[0].T @ np.array(step.axis),
            pos=anchor if anchor.any() and not body.kind.slide and not body.kind.is_free else None,
            ref=None if step is None else self.initial[body.joint][0] or None,
            **numbers,
        )

    def _numbers(self, body: Body) -> dict[str, Any]:
        """Armature, damping, friction, spring and limits."""
        attributes: dict[str, Any] = {}
        words = {"armature": "armature", "damping": "damping", "friction": "frictionloss", "stiffness": "stiffness"}
        for name, word in words.items():
            values = getattr(body, name)
            if len(set(values)) > 1:
                self._report.omit(f"{name} that differs between coordinates", body.joint)
            elif values[0]:
                attributes[word] = values[0]
        scalar = body.kind.only_step is not None
        neutral = self.initial[body.joint] if body.kind.is_free else body.kind.neutral()  # where MuJoCo's springs rest
        if any(body.stiffness) and scalar:
            attributes["springref"] = body.rest[0]
        elif any(body.stiffness) and not np.allclose(body.rest, neutral, rtol=0.0, atol=1e-15):
            self._report.omit("rest of the spring", body.joint)
        if body.kind.is_free and {"armature", "stiffness", "frictionloss"} & attributes.keys():
            self._report.remark("armature, spring and friction along the world's axes in MuJoCo", body.joint)
        limits = body.limits
        if scalar and np.isfinite([*limits.lower, *limits.upper]).any():
            bounds = limits.lower[0], limits.upper[0]
            attributes |= {"limited": True, "range": [min(max(x, -NO_LIMIT), NO_LIMIT) for x in bounds]}
        elif np.isfinite([*limits.lower, *limits.upper]).any():
            self._report.omit("limits of position", body.joint)
        if limits.stiffness is not None or limits.damping is not None:
            self._report.omit("stiffness and damping of limits", body.joint)
        if scalar and (efforts := self._efforts(body)) is not None:
            attributes |= {"actuatorfrclimited": True, "actuatorfrcrange": efforts}
        return attributes

    def _efforts(self, body: Body) -> tuple[float, float] | None:
        """Total force bounds of a joint's actuators; None if the actuators' own bounds imply them."""
        for bound in self.mech.elements:
            if isinstance(bound, EffortRange) and bound.joint == body.joint:
                return max(bound.lower, -NO_LIMIT), min(bound.upper, NO_LIMIT)
        most = body.limits.effort[0]
        actuators = (element for element in self.mech.elements if isinstance(element, Actuator))
        driven = any(body.joint in driven_by(self.mech, actuator) for actuator in actuators)
        return None if driven or not 0.0 < most < math.inf else (-most, most)


def moved_by(kind: Joint, q: np.ndarray) -> Pose:
    """Pose of the joint's child side in its parent side."""
    if kind.slide:
        return np.eye(3), float(q[0]) * np.array(kind.slide)
    if kind.hinge and q[0]:
        half = 0.5 * float(q[0])
        return rotation_from_quaternion([math.cos(half), *(math.sin(half) * np.array(kind.hinge))]), np.zeros(3)
    if kind.is_free:
        return rotation_from_quaternion(np.array(q[:4])), np.array(q[4:])
    return ORIGIN


def pose_attributes(pose: Pose) -> dict[str, Any]:
    """Attributes ``pos`` and ``quat``, without defaults."""
    rotation, position = pose
    turned = not np.array_equal(rotation, np.eye(3))
    return {
        "pos": position + 0.0 if np.any(position) else None,
        "quat": quaternion_from_rotation(rotation) if turned else None,
    }


def geom(parent: Element, shape: Shape, pose: Pose) -> Element:
    """The geom of a shape; masks are set when contacts are written."""
    return element(
        parent,
        "geom",
        name=shape.name,
        type=shape.kind,
        size=shape.size if shape.kind != PLANE else (0.0, 0.0, 1.0),
        friction=(shape.friction, 0.005, 0.0001),
        contype=shape.category,
        conaffinity=shape.collides_with,
        **pose_attributes(pose),
    )
