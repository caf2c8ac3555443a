"""Drake's extensions of URDF and SDF: ball constraints, which close loops, and further types of joints.

    <drake:joint name="hook" type="universal"> ...          also ball, planar and, in URDF, screw
    <drake:ball_constraint>                                 two points that coincide; in SDF the words are contents
      <drake:ball_constraint_body_A name="coupler"/>  <drake:ball_constraint_p_AP value="0.4 0 0"/>
      <drake:ball_constraint_body_B name="rocker"/>   <drake:ball_constraint_p_BQ value="0.3 0 0"/>
    </drake:ball_constraint>

Tendon constraints, bushings and springs do not act and are noted. Drake's weld constraints cannot be written in files.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from linkwise.mechanics.joints import Helical, Joint, Planar, Spherical, Universal
from linkwise.readers.protocol import Element, omit

PREFIX = "drake:"
JOINT, BALL = "drake:joint", "drake:ball_constraint"
TYPES = ("ball", "planar", "screw", "universal")
_NOT_ACTING = {
    "tendon_constraint": (True, "not read: write it as a coupling of its joints, by loops= of load"),
    "linear_bushing_rpy": (True, "a force element, which is not read: a fixed or spherical loop holds as a stiff one"),
    "linear_spring_damper": (False, "a force element, which is not read"),
}


class BallConstraint(NamedTuple):
    """Two coincident points, each given in its link's frame."""

    name: str
    link_a: Element
    point_a: np.ndarray
    link_b: Element
    point_b: np.ndarray


def is_joint(element: Element) -> bool:
    """Whether an element is a joint of Drake's extension."""
    return element.tag == JOINT


def kind(joint: Element) -> Joint:
    """The joint of a ``<drake:joint>``; x and y are the axes of universal joints, z the normal of planar ones."""
    type_name = joint.text("type")
    if type_name == "ball":
        return Spherical()
    if type_name == "planar":
        return Planar()
    if type_name == "universal":
        return Universal()
    if type_name != "screw":
        raise joint.error(f"{joint.label} has the type {type_name!r}, which is not read; known: {', '.join(TYPES)}")
    axis, pitch = joint.first("axis"), joint.required("drake:screw_thread_pitch")
    direction = axis.vector("xyz", (1.0, 0.0, 0.0)) if axis else (1.0, 0.0, 0.0)
    try:
        return Helical(direction, pitch.number("value") / (2.0 * math.pi))
    except ValueError as error:
        raise (axis or joint).error(f"{joint.label}: {error}") from None


def ball_constraints(root: Element) -> Iterator[BallConstraint]:
    """Every ``<drake:ball_constraint>``; bodies are elements whose attribute ``name`` or content names a link."""
    for number, element in enumerate(root.all(BALL), 1):
        link_a, link_b = (element.required(f"{BALL}_body_{side}") for side in "AB")
        points = (element.required(f"{BALL}_p_{side}") for side in ("AP", "BQ"))
        point_a, point_b = (
            np.array(point.numbers("value", 3) if "value" in point.attributes else point.content_numbers(3))
            for point in points
        )
        yield BallConstraint(f"ball_constraint_{number}", link_a, point_a, link_b, point_b)


def link_of(body: Element) -> str:
    """The link named by a body element."""
    return body.content if body.content and "name" not in body.attributes else body.text("name")


def note_omissions(root: Element) -> None:
    """Note Drake's constraints and force elements that are not read."""
    for element in root.children:
        constrains, advice = _NOT_ACTING.get(element.tag.removeprefix(PREFIX), (False, ""))
        if element.tag.startswith(PREFIX) and advice:
            omit(element, element.tag.removeprefix(PREFIX), advice, constrains=constrains)


def is_known(element: Element) -> bool:
    """Whether this module reads or notes an element."""
    word = element.tag.removeprefix(PREFIX)
    return element.tag in (JOINT, BALL) or (element.tag.startswith(PREFIX) and word in _NOT_ACTING)
