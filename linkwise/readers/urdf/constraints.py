"""URDF+ (Chignoli, Slotine, Wensing, Kim 2024): constraints on joints of a tree, and which joints are independent.

    <loop name="pin" type="revolute">                  a joint between two links of the tree; its frame in each
      <predecessor link="coupler"><origin xyz="0.4 0 0"/></predecessor>
      <successor link="rocker"><origin xyz="0.3 0 0"/></successor>
      <axis xyz="0 0 1"/>                              in the frame on the predecessor
    </loop>
    <coupling name="belt" type="rolling">              gears and belts
      <predecessor link="shank"/>
      <successor link="rotor"/>
      <ratio value="9"/>
    </coupling>
    <joint name="knee" type="revolute" independent="false"> ...

In a coupling the coordinates of the joints from the nearest common ancestor to the successor add up to ``ratio`` times
the sum of the coordinates to the predecessor; with parallel axes these sums are the rotations of successor and
predecessor relative to that ancestor. With one joint on either side one joint mimics the other: the dependent one, or
the successor's if both are dependent or both independent. With more joints it is a ``Coupling`` of the mechanism.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from linkwise.mechanics.joints import Spherical
from linkwise.mechanism import Builder, Mimic, did_you_mean
from linkwise.readers import drake
from linkwise.readers.protocol import Element, warn
from linkwise.readers.urdf.parts import FORMAT, ONE_COORDINATE, kind, pose

ELEMENTS = ("loop", "coupling")
ENDS = ("predecessor", "successor")


def check_ends(root: Element, links: Sequence[Element]) -> list[Element]:
    """The ``<predecessor>`` and ``<successor>`` of all loops and couplings, which name links of the file."""
    names = [link.text("name") for link in links]
    ends = []
    for element in root.children:
        for tag in ENDS if element.tag in ELEMENTS else ():
            end = element.first(tag)
            if end is None:
                raise element.error(f'{element.label} has no <{tag}>: write <{tag} link="..."/> in it')
            if end.text("link") not in names:
                hint = did_you_mean(end.text("link"), names)
                raise end.error(f"{element.label}: its {tag} link {end.text('link')!r} does not exist: {hint}")
            ends.append(end)
    return ends


def add_loops(builder: Builder, root: Element) -> None:
    """Every ``<loop>`` as a loop of the mechanism."""
    for loop in root.all("loop"):
        made = kind(loop, without=("floating",))
        if loop.first("origin"):
            raise loop.error(
                f"{loop.label}: write its <origin> inside <predecessor> and <successor>, one for each link"
            )
        if made.formats[FORMAT].axes and not loop.first("axis"):
            warn(loop, "has no <axis>, so that it is x of its frame on the predecessor, as the format says")
        ends = [loop.required(tag) for tag in ENDS]
        sides = [(end.text("link"), pose(end)) for end in ends]
        builder.loop(loop.text("name"), made, *sides[0], *sides[1])


def add_ball_constraints(builder: Builder, balls: Iterable[drake.BallConstraint], links: Sequence[Element]) -> None:
    """Every ball constraint of Drake as a spherical loop."""
    names = [link.text("name") for link in links]
    for ball in balls:
        for body in (ball.link_a, ball.link_b):
            if drake.link_of(body) not in names:
                hint = did_you_mean(drake.link_of(body), names)
                raise body.error(f"{body.label}: there is no link {drake.link_of(body)!r}: {hint}")
        sides = [(drake.link_of(body), (np.eye(3), point)) for body, point in (ball[1:3], ball[3:])]
        builder.loop(ball.name, Spherical(), *sides[0], *sides[1])


def independent_joints(joints: Sequence[Element]) -> tuple[str, ...] | None:
    """Joints that are independent coordinates: all without ``independent="false"``; None if no joint has the
    attribute.
    """
    for joint in joints:
        said = joint.attributes.get("independent", "true")
        if said not in ("true", "false"):
            raise joint.error(f'{joint.label}: independent="{said}" must be "true" or "false"')
    if not any("independent" in joint.attributes for joint in joints):
        return None
    return tuple(joint.text("name") for joint in joints if joint.attributes.get("independent") != "false")


def add_couplings(builder: Builder, root: Element, joints: Sequence[Element], rules: dict[str, Mimic]) -> None:
    """Every ``<coupling>``: further ``rules`` for joints that mimic others, and couplings of the mechanism."""
    joint_above = {joint.required("child").text("link"): joint for joint in joints}
    dependent = {joint.text("name") for joint in joints if joint.attributes.get("independent") == "false"}
    for coupling in root.all("coupling"):
        ratio = _ratio(coupling)
        paths = [_outwards(coupling.required(tag).text("link"), joint_above) for tag in ENDS]
        shared = sum(a is b for a, b in zip(*paths, strict=False))
        predecessors, successors = (_coordinates(coupling, way[shared:]) for way in paths)
        if not (predecessors or successors):
            raise coupling.error(f"{coupling.label}: both its links are parts of one rigid body; name links that move")
        if len(predecessors) == len(successors) == 1 and _mimics(
            predecessors[0], successors[0], ratio, dependent, rules
        ):
            continue
        if len(predecessors) + len(successors) == 1:
            held = (predecessors or successors)[0]
            warn(coupling, f"holds joint {held!r} at zero: one of its links carries the other")
        builder.coupling(coupling.text("name"), dict.fromkeys(predecessors, ratio) | dict.fromkeys(successors, -1.0))


def _ratio(coupling: Element) -> float:
    type_name = coupling.attributes.get("type", "rolling")
    if type_name != "rolling":
        raise coupling.error(f"{coupling.label} has the unknown type {type_name!r}; known: rolling")
    element = coupling.first("ratio")
    ratio = element.number("value") if element else 1.0
    if ratio == 0.0:
        raise coupling.error(f"{coupling.label}: a ratio of 0 couples nothing; give that of successor to predecessor")
    return ratio


def _outwards(link: str, joint_above: Mapping[str, Element]) -> list[Element]:
    """The joints from the root out to a link."""
    way: list[Element] = []
    while link in joint_above and joint_above[link] not in way:  # circles of joints are refused later
        way.append(joint_above[link])
        link = way[-1].required("parent").text("link")
    return way[::-1]


def _coordinates(coupling: Element, way: Sequence[Element]) -> list[str]:
    """Names of the moving joints of a path; each must have one coordinate."""
    moving = [joint for joint in way if joint.text("type") != "fixed"]
    for joint in moving:
        if joint.text("type") not in ONE_COORDINATE:
            raise coupling.error(
                f"{coupling.label}: {joint.label} between its links is {joint.text('type')}, and has not one "
                f"coordinate; couple links that {', '.join(ONE_COORDINATE)} joints move"
            )
    return [joint.text("name") for joint in moving]


def _mimics(first: str, second: str, ratio: float, dependent: set[str], rules: dict[str, Mimic]) -> bool:
    """Whether one joint can mimic the other, ``second = ratio * first``; adds the rule to ``rules``."""
    choices = [(second, Mimic(first, ratio)), (first, Mimic(second, 1.0 / ratio))]
    if first in dependent and second not in dependent:
        choices.reverse()
    for joint, rule in choices:
        chain = [joint, rule.joint]
        while chain[-1] in rules and rules[chain[-1]].joint not in chain:
            chain.append(rules[chain[-1]].joint)
        if joint not in rules and chain[-1] not in rules:  # otherwise it is tied already, or would mimic itself
            rules[joint] = rule
            return True
    return False
