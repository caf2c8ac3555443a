"""Motors: ``<transmission>`` of ROS, and joints with commands in ``<ros2_control>``.

A motor at one joint is an actuator: its control input is the torque of the motor; the torque at the joint is the
reduction times as large, at most the joint's effort limit. It does not drive the joint beyond its velocity limit.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from linkwise.mechanism import Actuator, EffortRange, Mechanism
from linkwise.mechanism.naming import unused_name
from linkwise.readers.protocol import Element, omit, warn

_REDUCTION = ("mechanicalReduction", "mechanical_reduction")
_ADVICE = (
    "does not act, since it drives several joints at once: give joint forces as tau at the joints, which for a motor "
    "is its torque times the reduction; mech.metadata.actuated_joints has the joints"
)
_NO_MOTOR = "does not act: it drives no joint that moves"


def actuated_joints(root: Element, mech: Mechanism) -> tuple[str, ...] | None:
    """Joints with motors, in the order of the file; None if unspecified, or if so few are listed that others are
    probably missing.

    A motor at a mimic joint drives the one it mimics.
    """
    elements = _elements(root)
    driven = [list(_driven(element)) for element in elements]
    names: dict[str, None] = {}
    for element, joints in zip(elements, driven, strict=True):
        for name in (joint.text("name") for joint in joints):
            if name in mech.joint_names:
                mimic = mech.bodies[mech.body_index(name)].mimic
                names[mimic.joint if mimic else name] = None
            elif name not in mech.annotations.fixed_joints:
                warn(element, f"names the joint {name!r}, which does not exist: fix the name or remove it")
    strong = _strong_joints(mech, elements, driven)
    covered = sum(joint in names for joint in strong)
    return tuple(names) or None if 2 * covered >= len(strong) else None


def actuators(root: Element, mech: Mechanism) -> tuple[Actuator | EffortRange, ...]:
    """One actuator per joint that has its own motor (the first of several), with force bounds; other drives are
    noted.
    """
    motors: dict[str, Actuator] = {}
    taken: set[str] = set()
    for element in _elements(root):
        joints = list(_driven(element))
        known = [joint for joint in joints if joint.text("name") in mech.joint_names]
        if not known or (element.tag == "transmission" and not _is_simple(element, joints)):
            feature = "transmission" if element.tag == "transmission" else "ros2_control system"
            feature += " of several joints" if known else " of no moving joint"
            reductions = [" and ".join(_reductions(element, joint)) for joint in joints]
            details = ", ".join(
                f"joint {joint.text('name')}" + (f", reduction {reduction}" if reduction else "")
                for joint, reduction in zip(joints, reductions, strict=True)
            )
            omit(element, feature, _ADVICE if known else _NO_MOTOR, detail=details)
            continue
        for joint in known:
            target = joint.text("name")
            if target not in motors:
                motors[target] = Actuator(_name(element, target, taken), target, gear=(_gear(element, joint),))
    limits = ((name, mech.bodies[mech.body_index(name)].limits.effort[0]) for name in motors)
    ranges = (EffortRange(name, -most, most) for name, most in limits if 0.0 < most < math.inf)
    single = (actuator for actuator in motors.values() if mech.bodies[mech.body_index(actuator.target)].kind.nv == 1)
    return (*single, *ranges)


def _elements(root: Element) -> list[Element]:
    return [*root.all("transmission"), *root.all("ros2_control")]


def _is_simple(transmission: Element, joints: Sequence[Element]) -> bool:
    """Whether one motor drives one joint."""
    kind = transmission.first("type")
    named = transmission.attributes.get("type", "") + (kind.content if kind else "")
    motors = [part for part in transmission.children if part.tag.lower().endswith("actuator")]
    return len(joints) == 1 and len(motors) <= 1 and ("Simple" in named or "Transmission" not in named)


def _name(element: Element, joint: str, taken: set[str]) -> str:
    """Name of the motor, or of its joint."""
    motors = [part.attributes.get("name", "") for part in element.children if part.tag == "actuator"]
    name = motors[0] if len(motors) == 1 and motors[0] and motors[0] not in taken else joint
    return unused_name(name, taken)


def _gear(element: Element, joint: Element) -> float:
    """The reduction, by default 1."""
    try:
        return float(_reductions(element, joint)[0])
    except (IndexError, ValueError):
        return 1.0


def _strong_joints(mech: Mechanism, elements: Sequence[Element], driven: Sequence[Sequence[Element]]) -> list[str]:
    """Joints expected to have motors: one degree of freedom, an effort limit, in no loop, not marked as passive or
    measured only.
    """
    named = {part.attributes.get("name") for element in elements for part in element.children if _is_joint(part)}
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


def _driven(element: Element) -> Iterator[Element]:
    """Elements that name driven joints, without measured and mimicking ones."""
    for child in element.children:
        if not _is_joint(child) or "passive" in child.tag:
            continue
        if element.tag == "ros2_control":
            drives = child.first("command_interface") is not None
        else:
            interfaces = [interface.content for interface in child.all("hardwareInterface")]
            drives = not interfaces or any("StateInterface" not in interface for interface in interfaces)
        if drives and child.attributes.get("name"):
            yield child


def _reductions(element: Element, joint: Element) -> list[str]:
    """Texts of the reductions between a motor and a joint."""
    name, parts = joint.text("name"), element.children
    if element.tag == "ros2_control":  # has transmissions of its own
        transmissions = [
            transmission
            for transmission in element.all("transmission")
            if any(_names(part, name) for part in transmission.children)
        ]
        parts = [part for transmission in transmissions for part in transmission.children]
    ours = [part for part in parts if _names(part, name) or not _is_joint(part)]
    return [text for part in (element, *ours) if (text := _reduction(part))]


def _is_joint(part: Element) -> bool:
    return part.tag.lower().endswith("joint")


def _names(part: Element, joint: str) -> bool:
    return _is_joint(part) and part.attributes.get("name") == joint


def _reduction(part: Element) -> str:
    children = (child.content for tag in _REDUCTION for child in part.all(tag))
    return next((text for text in (*(part.attributes.get(key, "") for key in _REDUCTION), *children) if text), "")
