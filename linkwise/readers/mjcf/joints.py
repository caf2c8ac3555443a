"""The joints of bodies: kind, place and numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.mechanics.joints import Joint, kinds_of_format
from linkwise.mechanism import Limits, Pose
from linkwise.readers.mjcf.actuators import Rotor
from linkwise.readers.mjcf.document import Settings, choice, is_limited
from linkwise.readers.mjcf.omissions import note_softness
from linkwise.readers.mjcf.poses import HERE, rotation_about
from linkwise.readers.mjcf.tree import Node, unused
from linkwise.readers.protocol import Element, omit, unbounded, warn

FREE = "free"
_STOPS = (
    "stops push from the end of the range on, as stiff as inertias ask for: mech.with_limits(joint=lw.Limits(lower, "
    "upper, stiffness=..., damping=...)) sets them"
)

_UNEVEN = (
    "MuJoCo has it along the axes of the world, and apart for position and orientation; here it is along the axes of "
    "the body, so that forces differ.  It may come from a default class; <freejoint/> has none"
)


@dataclass(frozen=True)
class BodyJoint:
    """A joint of a body.

    anchor      (3,) a point on its axis, in the body's frame; it does not matter for slides
    reference   its coordinate in the pose that the file gives the body (hinges and slides)
    """

    name: str
    element: Element
    kind: Joint
    anchor: np.ndarray
    reference: float

    @property
    def at_zero(self) -> Pose:
        """The pose, in the frame the file gives, of what the joint moves while its coordinate is zero."""
        if self.kind.hinge:
            return rotation_about(np.array(self.kind.hinge), -self.reference), np.zeros(3)
        if self.kind.slide:
            return np.eye(3), -self.reference * np.array(self.kind.slide)
        return HERE


def joints_of(bodies: list[Node], settings: Settings) -> dict[str, list[BodyJoint]]:
    """The joints of each body that has some, by the body's name."""
    taken = {joint.attributes.get("name", "") for body in bodies for joint, _ in body.joints}
    found: dict[str, list[BodyJoint]] = {}
    for body in bodies:
        if body.parent is None and body.joints:
            raise body.joints[0][0].error(f"{body.joints[0][0].label}: the world cannot have joints")
        for element, frame in body.joints:
            name = element.attributes.get("name", "").strip() or unused(f"{body.name}_joint", taken)
            found.setdefault(body.name, []).append(_joint(name, element, frame, body, settings))
    return found


def _joint(name: str, element: Element, frame: Pose, body: Node, settings: Settings) -> BodyJoint:
    known = kinds_of_format("mjcf")
    type_name = FREE if element.tag == "freejoint" else choice(element, "type", tuple(known), "hinge")
    made: Callable[..., Joint] = known[type_name]
    anchor, reference = np.zeros(3), 0.0
    if type_name == FREE:
        _check_free(element, body, settings)
        return BodyJoint(name, element, made(), anchor, reference)
    at = frame[1] + frame[0] @ element.vector("pos", (0.0, 0.0, 0.0))
    if not known[type_name].formats["mjcf"].axes:
        return BodyJoint(name, element, made(), at, reference)
    axis = tuple((frame[0] @ element.vector("axis", (0.0, 0.0, 1.0))).tolist())
    try:
        kind = made(axis)
    except ValueError as error:
        raise element.error(f"{element.label}: its axis {axis} has no direction ({error})") from None
    reference = element.number("ref", 0.0)
    reference = settings.radians(reference) if kind.hinge else reference
    return BodyJoint(name, element, kind, anchor if kind.slide else at, reference)


def _check_free(element: Element, body: Node, settings: Settings) -> None:
    if len(body.joints) > 1:
        raise element.error(f"{element.label}: {body.element.label} moves freely and can have no other joint")
    if body.parent is None or body.parent.parent is not None:
        raise element.error(
            f"{element.label}: only bodies right under <worldbody> can move freely, not {body.element.label}"
        )
    align = choice(element, "align", ("true", "false", "auto"), "auto")
    if (align == "true" or (align == "auto" and settings.align_free)) and not body.element.first("body"):
        warn(
            element,
            "moves a body whose frame MuJoCo would align with its inertia (align or alignfree); the frame is kept as "
            "it is written",
        )


# -- numbers --------------------------------------------------------------------------------------------


def numbers_of(joint: BodyJoint, body: Node, settings: Settings, rotor: Rotor) -> dict[str, Any]:
    """Armature, damping, friction, springs and limits, as ``Builder.joint`` takes them; a <freejoint> has none.

    rotor   what actuators add to the joint, and what they can do
    """
    element = joint.element
    if element.tag == "freejoint":
        return {}
    is_hinge = joint.kind.hinge is not None
    spring = _linear(element, "stiffness") if settings.has("spring") else 0.0
    numbers: dict[str, Any] = {
        "armature": element.number("armature", 0.0) + rotor.armature,
        "damping": _linear(element, "damping") + rotor.damping if settings.has("damper") else 0.0,
        "friction": element.number("frictionloss", 0.0) if settings.has("frictionloss") else 0.0,
        "stiffness": spring,
        "limits": _limits(joint, settings, rotor),
    }
    if (spring or _has_spring_damper(element)) and joint.kind.is_free:
        numbers["rest"] = [*quaternion_of(body.world_pose[0]), *body.world_pose[1]]
    elif (spring or _has_spring_damper(element)) and not joint.kind.is_ball:
        rest = element.number("springref", 0.0)
        numbers["rest"] = settings.radians(rest) if is_hinge else rest
    if numbers["friction"]:
        note_softness(element, "joint", "friction", "dry friction is viscous below 0.01 rad/s or m/s")
    uneven = [key for key in ("armature", "stiffness", "friction") if numbers[key]]
    uneven += ["springdamper"] if _has_spring_damper(element) else []
    if uneven and joint.kind.is_free:
        omit(element, f"free joint with {' and '.join(uneven)}", _UNEVEN)
    if "springyield" in element.attributes:
        omit(element, "joint with springyield", "not read: the spring never yields")
    return numbers


def _has_spring_damper(element: Element) -> bool:
    return "springdamper" in element.attributes and min(element.numbers("springdamper", 2)) > 0.0


def _linear(element: Element, attribute: str) -> float:
    """The first coefficient of a polynomial spring or damper."""
    if attribute not in element.attributes:
        return 0.0
    first, *higher = element.numbers(attribute, 1, 3)
    if any(higher):
        omit(element, f"joint with nonlinear {attribute}", "only the first coefficient is read")
    return first


def _limits(joint: BodyJoint, settings: Settings, rotor: Rotor) -> Limits:
    element = joint.element
    bounds = {"effort": rotor.largest_force}
    if joint.kind.is_free:
        return Limits()
    if is_limited(element, "limited", "range", settings, needed=not joint.kind.is_ball):
        if settings.has("limit") and joint.kind.only_step:
            convert = settings.radians if joint.kind.hinge else float
            bounds["lower"], bounds["upper"] = (unbounded(convert(x)) for x in element.numbers("range", 2))
            note_softness(element, "joint", "limit", _STOPS)
        elif settings.has("limit"):
            omit(element, "ball joint with limits", "the rotation angle of a ball joint has no limits here")
    if is_limited(element, "actuatorfrclimited", "actuatorfrcrange", settings):
        bounds["effort"] = min(rotor.largest_force, max(map(abs, element.numbers("actuatorfrcrange", 2))))
    return Limits(**bounds)


def quaternion_of(rotation: np.ndarray) -> list[float]:
    """[w, x, y, z], by the eigenvector of the matrix whose largest eigenvalue is 3 (Bar-Itzhack 2000)."""
    r = rotation
    matrix = np.array(
        [
            [r[0, 0] + r[1, 1] + r[2, 2], r[2, 1] - r[1, 2], r[0, 2] - r[2, 0], r[1, 0] - r[0, 1]],
            [r[2, 1] - r[1, 2], r[0, 0] - r[1, 1] - r[2, 2], r[0, 1] + r[1, 0], r[0, 2] + r[2, 0]],
            [r[0, 2] - r[2, 0], r[0, 1] + r[1, 0], r[1, 1] - r[0, 0] - r[2, 2], r[1, 2] + r[2, 1]],
            [r[1, 0] - r[0, 1], r[0, 2] + r[2, 0], r[1, 2] + r[2, 1], r[2, 2] - r[0, 0] - r[1, 1]],
        ]
    )
    quaternion = np.linalg.eigh(matrix)[1][:, -1]
    return (math.copysign(1.0, quaternion[0]) * quaternion).tolist()
