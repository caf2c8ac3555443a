"""URDF, the robot description format of ROS.

Kinematics, inertias, limits, damping, friction, mimic joints and motors are read, loops and couplings of URDF+, visible
geometry as looks and collision geometry as shapes. Other parts that constrain, drive or collide are noted. Extensions
that ``mech.save`` writes are read too: ``armature``, ``spring_stiffness`` and ``spring_reference`` of <dynamics>, a
number or one per coordinate, and <gravity xyz="..."/> of <robot>. Files from other programs contain moments of inertia
that no body can have: they are kept as written, with an ``InertiaWarning``; a negative mass is an error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from linkwise.mechanics.joints import Fixed, Floating
from linkwise.mechanism import GROUND, Builder, Mechanism
from linkwise.mechanism.checks import close_names
from linkwise.mechanism.naming import unused_name
from linkwise.readers import drake
from linkwise.readers.protocol import (
    FLOATING_BASE,
    STANDARD_GRAVITY,
    Element,
    omit,
    register_reader,
    warn,
    warn_of_slips,
)
from linkwise.readers.urdf import constraints
from linkwise.readers.urdf.geometry import looks_of, shapes_of
from linkwise.readers.urdf.motors import actuated_joints, actuators
from linkwise.readers.urdf.parts import add_joint, add_link, mimic_rules

ROOT_TAG = "robot"

# What elements may have: attributes of all that are read, and children.
_ATTRIBUTES: dict[str, tuple[str, ...]] = {
    "link": ("name", "type"),
    "inertial": (),
    "mass": ("value",),
    "inertia": ("ixx", "ixy", "ixz", "iyy", "iyz", "izz"),
    "joint": ("name", "type", "independent"),
    "parent": ("link",),
    "child": ("link",),
    "origin": ("xyz", "rpy", "quat_xyzw"),
    "axis": ("xyz",),
    "limit": ("lower", "upper", "velocity", "effort", "acceleration", "deceleration", "jerk"),
    "dynamics": ("damping", "friction", "armature", "spring_stiffness", "spring_reference"),
    "mimic": ("joint", "multiplier", "offset"),
    "drake:joint": ("name", "type"),
    "loop": ("name", "type"),
    "coupling": ("name", "type"),
    "predecessor": ("link",),
    "successor": ("link",),
    "ratio": ("value",),
}
_CHILDREN: dict[str, tuple[str, ...]] = {
    "link": ("inertial", "visual", "collision"),
    "inertial": ("origin", "mass", "inertia"),
    "joint": ("parent", "child", "origin", "axis", "limit", "dynamics", "mimic", "safety_controller", "calibration"),
    "drake:joint": ("parent", "child", "origin", "axis", "limit", "dynamics", "drake:screw_thread_pitch"),
    "loop": ("predecessor", "successor", "axis", "origin"),
    "coupling": ("predecessor", "successor", "ratio"),
    "predecessor": ("origin",),
    "successor": ("origin",),
}


@register_reader(ROOT_TAG, "URDF")
def from_xml(
    root: Element, floating_base: bool, gravity: Any, name: str | None, folder: Path | None, mimic: bool
) -> Mechanism:
    """The mechanism that a parsed ``<robot>`` describes; no other file is opened: meshes are looked for in
    ``folder`` by whoever looks at them."""
    if root.tag != ROOT_TAG:
        raise root.error(f"a URDF file starts with <robot>, not <{root.tag}>")
    for child in root.children:
        if child.tag.startswith("xacro:"):
            raise child.error(
                f"<{child.tag}>: this is a xacro macro file, not URDF; load it as a file named .xacro, or expand it "
                "first with `xacro in.xacro > out.urdf`"
            )
    links = list(root.all("link"))
    joints = [element for element in root.children if element.tag == "joint" or drake.is_joint(element)]
    if not links:
        raise root.error("the robot has no <link>")
    base = _root_link(root, links, joints)
    for element in (*links, *joints, *root.all("loop"), *root.all("coupling")):
        warn_of_slips(element, _ATTRIBUTES, _CHILDREN)
    ends = [end for joint in joints for end in (joint.required("parent"), joint.required("child"))]
    ends += constraints.check_ends(root, links)
    balls = list(drake.ball_constraints(root))
    base_is_ground = base.text("name") == GROUND and not floating_base
    if not base_is_ground:
        _free_the_name_of_the_ground(links, ends)
    shapes = shapes_of(links)
    note_omissions(root, joints, _CHILDREN)
    builder = Builder(source=root.source)
    for link in links:
        if not (link is base and base_is_ground):  # what the fixed world weighs does not matter
            add_link(builder, link)
    if floating_base:
        _free_the_name_of_the_base_joint(joints)
        builder.joint(FLOATING_BASE, Floating(), GROUND, base.text("name"))
    elif not base_is_ground:
        builder.joint(f"{base.text('name')}_to_{GROUND}", Fixed(), GROUND, base.text("name"))
    constraints.add_loops(builder, root)
    constraints.add_ball_constraints(builder, balls, links)
    rules = mimic_rules(joints) if mimic else {}
    if mimic:
        constraints.add_couplings(builder, root, joints, rules)
    for joint in joints:
        add_joint(builder, joint, rules.get(joint.text("name")))
    gravity_element = root.first("gravity")
    if gravity is None:
        gravity = STANDARD_GRAVITY if gravity_element is None else gravity_element.numbers("xyz", 3)
    mech = builder.build(name or root.attributes.get("name", "").strip() or "robot", gravity, strict=False)
    independent, actuated = constraints.independent_joints(joints), actuated_joints(root, mech)
    if floating_base and independent is not None:
        independent = (FLOATING_BASE, *independent)
    looks = looks_of(root, links, folder)
    known = replace(mech.annotations, independent=independent, actuated=actuated, looks=looks)
    return replace(mech, annotations=known, shapes=shapes, elements=actuators(root, mech))


def _root_link(root: Element, links: list[Element], joints: list[Element]) -> Element:
    """The one link that is not a child."""
    names: set[str] = set()
    for link in links:
        if link.text("name") in names:
            raise link.error(f"there are two links named {link.text('name')!r}; names must be unique")
        names.add(link.text("name"))
    for joint in joints:
        for end in (joint.required("parent"), joint.required("child")):
            if end.text("link") not in names:
                raise end.error(f"{joint.label}: its {end.tag} link {end.text('link')!r} does not exist")
    children = {joint.required("child").text("link") for joint in joints}
    bases = [link for link in links if link.text("name") not in children]
    if not bases:
        raise root.error("every link is the child of some joint, so the joints run in a circle: no link is the root")
    if len(bases) > 1:
        listed = ", ".join(repr(base.text("name")) for base in bases)
        raise bases[1].error(f"the links {listed} are children of no joint; a robot has exactly one such root link")
    return bases[0]


def _free_the_name_of_the_ground(links: Sequence[Element], ends: Sequence[Element]) -> None:
    """Rename a link that has the name of the fixed world, and its mentions in ``ends`` of joints."""
    names = {link.text("name") for link in links}
    if GROUND not in names:
        return
    new_name = unused_name(f"{GROUND}_link", names)
    for link in links:
        if link.text("name") == GROUND:
            warn(link, f'is read as {new_name!r}: "{GROUND}" is the fixed world')
            link.attributes["name"] = new_name
    for end in ends:
        if end.text("link") == GROUND:
            end.attributes["link"] = new_name


def _free_the_name_of_the_base_joint(joints: list[Element]) -> None:
    """Rename a fixed joint that has the name of the joint that moves the base."""
    names = {joint.text("name") for joint in joints}
    for joint in joints:
        if joint.text("name") == FLOATING_BASE and joint.text("type") == "fixed":
            while joint.text("name") in names:
                joint.attributes["name"] += "_fixed"


# -- parts that are not read -----------------------------------------------------------------------------


# What is read elsewhere, what neither constrains nor drives, and words of what constrains.
_READ = ("link", "joint", "loop", "coupling", "transmission", "ros2_control", "gravity")
_SILENT = ("material", "sensor", "mujoco", "author", "verify_license")
_CONSTRAINING = ("loop", "coupling", "constraint", "bushing", "gear", "closure", "cable", "equality")


def note_omissions(root: Element, joints: Sequence[Element], known: Mapping[str, tuple[str, ...]]) -> None:
    """Note ignored elements; ``known`` are the children that elements may have."""
    settled = {joint.text("name") for joint in joints if joint.first("mimic") or joint.text("type") == "fixed"}
    drake.note_omissions(root)
    for element in root.children:
        if drake.is_known(element):
            continue
        if element.tag == "gazebo":
            _note_gazebo(element, settled)
        elif element.tag == "actuator":
            omit(element, "actuator", "not read: joint forces are given as tau")
        elif element.tag in ("loop", "coupling"):
            for tag in (child.tag for child in element.children if child.tag not in known[element.tag]):
                omit(element, f"{element.tag} with {tag}", f"<{tag}> is not read: the {element.tag} holds without it")
        elif element.tag not in (*_READ, *_SILENT) and not (element.tag == "loops" and "file" in element.attributes):
            _note_unknown(element)
    for joint in joints:
        for child in joint.children:
            if child.tag in known[joint.tag]:
                continue
            if close_names(child.tag.lower(), ("mimic",)):
                advice = 'not read as <mimic joint="...">, so that the joint moves freely: fix the name'
                omit(child, "misspelt <mimic>", advice, constrains=True)
            else:
                _note_unknown(child)


def _note_unknown(element: Element) -> None:
    if any(word in element.tag.lower() for word in _CONSTRAINING):
        advice = (
            "not read: write <loop> or <coupling> of URDF+, or give loops by loops= of load or mech.with_loops, "
            "couplings as <mimic> of a joint"
        )
        omit(element, element.tag.rpartition(":")[2], advice, constrains=True)
    else:
        omit(element, "unknown element", "not read")


def _note_gazebo(gazebo: Element, settled: set[str]) -> None:
    """Note Gazebo's elements that close loops, tie joints or drive; ``settled`` joints are tied or fixed anyway."""
    for child in gazebo.children:
        if child.tag == "joint":
            advice = "not read: write it as <loop> of URDF+, or give the loop by loops= of load"
            omit(child, "Gazebo joint", advice, constrains=True)
        elif child.tag == "plugin":
            tied = child.first("mimicJoint")
            if tied and tied.content in settled:
                continue
            mimics = "mimic" in "".join(child.attributes.values()).lower()
            advice = "not read: write <mimic> at the joint" if mimics else "not read"
            omit(child, "Gazebo mimic plugin" if mimics else "Gazebo plugin", advice, constrains=mimics)
