"""Which joints have motors: ``<transmission>`` of ROS, and joints with commands in ``<ros2_control>``.

Forces are given at joints, so that a transmission does not act; its joint and its reduction are noted.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence

from linkwise.mechanics.joints import Floating
from linkwise.mechanism import Mechanism
from linkwise.mechanism.annotation import MOST_PLACES
from linkwise.readers.protocol import Element, omit, warn

_REDUCTION = ("mechanicalReduction", "mechanical_reduction")
_ADVICE = (
    "does not act: joint forces are given as tau at the joints, which for a motor is its torque times the reduction; "
)
_NAMED = "mech.actuated_joints has the joints"
_FEW = (
    "only {covered} of {count} joints with effort limits have one, so that the file is taken not to say which joints "
    "have motors: mech.actuated_joints is None, mech.with_actuated(...) says it"
)


def actuated_joints(root: Element, mech: Mechanism) -> tuple[str, ...] | None:
    """The joints that have motors, in the order of the file; None where nothing is said of motors, or of so few that
    the others are likely to be forgotten.

    A motor at a mimic joint drives the one it mimics.
    """
    elements = [*root.all("transmission"), *root.all("ros2_control")]
    driven = [list(_driven(element)) for element in elements]
    found: dict[str, None] = {}
    for element, joints in zip(elements, driven, strict=True):
        for name in (joint.text("name") for joint in joints):
            if name in mech.joint_names:
                mimic = mech.bodies[mech.body_index(name)].mimic
                found[mimic.joint if mimic else name] = None
            elif name not in mech.annotations.fixed_joints:
                warn(element, f"names the joint {name!r}, which does not exist: fix the name or remove it")
    strong = _strong_joints(mech, elements, driven)
    covered = sum(joint in found for joint in strong)
    is_list = 2 * covered >= len(strong)
    few = _FEW.format(covered=covered, count=len(strong))
    advice = _ADVICE + (_NAMED + _others(mech, found) if is_list or not found else few)
    for element, joints in zip(elements, driven, strict=True):
        what = "transmission" if element.tag == "transmission" else "ros2_control system"
        omit(element, what, advice, detail=", ".join(_described(element, joint) for joint in joints))
    return tuple(found) or None if is_list else None


def _strong_joints(mech: Mechanism, elements: Sequence[Element], driven: Sequence[Sequence[Element]]) -> list[str]:
    """Joints that one expects to have motors: of one degree of freedom, with an effort limit, in no loop, and not said
    to be passive or only measured."""
    named = {part.attributes.get("name") for one in elements for part in one.children if _is_joint(part)}
    passive = named - {joint.text("name") for joints in driven for joint in joints}
    inside = {mech.bodies[index].joint for loop in mech.loops for index in loop.bodies_within(mech)}
    return [
        body.joint
        for body in mech.bodies
        if body.nv == 1
        and not body.mimic
        and 0.0 < body.limits.effort[0] < math.inf
        and body.joint not in passive | inside
    ]


def _others(mech: Mechanism, found: Collection[str]) -> str:
    """A word on joints that have no motor while others do."""
    movable = (body for body in mech.bodies if not body.mimic and not isinstance(body.kind, Floating))
    others = [body.joint for body in movable if body.joint not in found] if found else []
    more = ", ..." if len(others) > MOST_PLACES else ""
    named = ", ".join(others[:MOST_PLACES]) + more
    return f"; the file has no motor at {named}: mech.with_actuated(...) says otherwise" if others else ""


def _driven(element: Element) -> Iterator[Element]:
    """The elements that name joints with motors: not those that are only measured, nor those that move along."""
    for child in element.children:
        if not _is_joint(child) or "passive" in child.tag:
            continue
        if element.tag == "ros2_control":
            drives = child.first("command_interface") is not None
        else:
            interfaces = [one.content for one in child.all("hardwareInterface")]
            drives = not interfaces or any("StateInterface" not in one for one in interfaces)
        if drives and child.attributes.get("name"):
            yield child


def _described(element: Element, joint: Element) -> str:
    """ "joint elbow, reduction 50"."""
    name, parts = joint.text("name"), element.children
    if element.tag == "ros2_control":  # has transmissions of its own
        own = [one for one in element.all("transmission") if any(_names(part, name) for part in one.children)]
        parts = [part for one in own for part in one.children]
    ours = [part for part in parts if _names(part, name) or not _is_joint(part)]
    found = [text for part in (element, *ours) if (text := _reduction(part))]
    return f"joint {name}" + (f", reduction {' and '.join(found)}" if found else "")


def _is_joint(part: Element) -> bool:
    return part.tag.lower().endswith("joint")


def _names(part: Element, joint: str) -> bool:
    return _is_joint(part) and part.attributes.get("name") == joint


def _reduction(part: Element) -> str:
    children = (child.content for tag in _REDUCTION for child in part.all(tag))
    return next((text for text in (*(part.attributes.get(key, "") for key in _REDUCTION), *children) if text), "")
