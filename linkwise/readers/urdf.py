"""URDF, the robot description format of ROS.

Kinematics, inertias, limits, damping, friction and mimic joints are read; what concerns looks is skipped; what is not
read and constrains, drives or collides is noted.  Files in the wild hold moments of inertia that no body can have:
these are kept as written and reported as ``InertiaWarning``; a negative mass is refused.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from linkwise.mechanics.joints import Fixed, Floating, Joint, Planar, Prismatic, Revolute, Spherical
from linkwise.mechanics.spatial.quaternion import rotation_matrix
from linkwise.mechanism import GROUND, Builder, Limits, Mechanism, Mimic, snapped
from linkwise.mechanism.checks import close_names
from linkwise.mechanism.poses import rotation_from_rpy
from linkwise.readers.protocol import (
    FLOATING_BASE,
    STANDARD_GRAVITY,
    Element,
    omit,
    register_reader,
    warn,
    warn_of_slips,
)

ROOT_TAG = "robot"

_ALONG_AXIS: dict[str, type[Revolute | Prismatic | Planar]] = {
    "revolute": Revolute,
    "continuous": Revolute,
    "prismatic": Prismatic,
    "planar": Planar,
}
_WITHOUT_AXIS: dict[str, type[Fixed | Floating | Spherical]] = {
    "fixed": Fixed,
    "floating": Floating,
    "spherical": Spherical,
    "ball": Spherical,
}
# What elements may have: attributes of all that are read, and children.
_ATTRIBUTES: dict[str, tuple[str, ...]] = {
    "link": ("name", "type"),
    "inertial": (),
    "mass": ("value",),
    "inertia": ("ixx", "ixy", "ixz", "iyy", "iyz", "izz"),
    "joint": ("name", "type"),
    "parent": ("link",),
    "child": ("link",),
    "origin": ("xyz", "rpy", "quat_xyzw"),
    "axis": ("xyz",),
    "limit": ("lower", "upper", "velocity", "effort", "acceleration", "deceleration", "jerk"),
    "dynamics": ("damping", "friction"),
    "mimic": ("joint", "multiplier", "offset"),
}
_CHILDREN: dict[str, tuple[str, ...]] = {
    "link": ("inertial", "visual", "collision"),
    "inertial": ("origin", "mass", "inertia"),
    "joint": ("parent", "child", "origin", "axis", "limit", "dynamics", "mimic", "safety_controller", "calibration"),
}
# Beside links and joints: what drives, what neither constrains nor drives, and words of what constrains.
_DRIVING = {"transmission": "transmission", "ros2_control": "ros2_control system", "actuator": "actuator"}
_SILENT = ("material", "sensor", "mujoco", "author", "verify_license")
_CONSTRAINING = ("loop", "coupling", "constraint", "bushing", "gear", "closure", "cable", "equality")


@register_reader(ROOT_TAG, "URDF")
def from_xml(
    root: Element, floating_base: bool, gravity: Any, name: str | None, folder: Path | None, mimic: bool
) -> Mechanism:
    """The mechanism that a parsed ``<robot>`` describes; no other file is opened, so ``folder`` does not matter."""
    if root.tag != ROOT_TAG:
        raise root.error(f"a URDF file starts with <robot>, not <{root.tag}>")
    _refuse_xacro(root)
    links, joints = list(root.all("link")), list(root.all("joint"))
    if not links:
        raise root.error("the robot has no <link>")
    base = _root_link(root, links, joints)
    for element in (*links, *joints):
        warn_of_slips(element, _ATTRIBUTES, _CHILDREN)
    _note_omissions(root, links, joints)
    base_is_ground = base.text("name") == GROUND and not floating_base
    if not base_is_ground:
        _free_the_name_of_the_ground(links, joints)
    builder = Builder(source=root.source)
    for link in links:
        if not (link is base and base_is_ground):  # what the fixed world weighs does not matter
            _add_link(builder, link)
    if floating_base:
        _free_the_name_of_the_base_joint(joints)
        builder.joint(FLOATING_BASE, Floating(), GROUND, base.text("name"))
    elif not base_is_ground:
        builder.joint(f"{base.text('name')}_to_{GROUND}", Fixed(), GROUND, base.text("name"))
    for joint in joints:
        _add_joint(builder, joint, mimic)
    gravity = STANDARD_GRAVITY if gravity is None else gravity
    return builder.build(name or root.attributes.get("name", "").strip() or "robot", gravity, strict=False)


# -- what is not read -----------------------------------------------------------------------------------


def _note_omissions(root: Element, links: list[Element], joints: list[Element]) -> None:
    """Note what constrains, drives or collides and is not read, elements that nobody knows included."""
    for link in links:
        if link.first("collision"):
            omit(link, "link with collision geometry", "links pass through each other and through the ground")
    settled = {joint.text("name") for joint in joints if joint.first("mimic") or joint.text("type") == "fixed"}
    for element in root.children:
        if element.tag == "gazebo":
            _note_gazebo(element, settled)
        elif element.tag in _DRIVING:
            omit(element, _DRIVING[element.tag], "not read: joint forces are given as tau")
        elif element.tag not in ("link", "joint", *_SILENT):
            _note_unknown(element)
    for joint in joints:
        for child in joint.children:
            if child.tag in _CHILDREN["joint"]:
                continue
            if close_names(child.tag.lower(), ("mimic",)):
                advice = 'not read as <mimic joint="...">, so that the joint moves freely: fix the name'
                omit(child, "misspelt <mimic>", advice, constrains=True)
            else:
                _note_unknown(child)


def _note_unknown(element: Element) -> None:
    if any(word in element.tag.lower() for word in _CONSTRAINING):
        advice = "not read: give loops by loops= of load or mech.with_loops, couplings as <mimic> of a joint"
        omit(element, element.tag.rpartition(":")[2], advice, constrains=True)
    else:
        omit(element, "unknown element", "not read")


def _note_gazebo(gazebo: Element, settled: set[str]) -> None:
    """Gazebo's own elements may close loops, tie joints (``settled`` ones are tied or fixed anyway) or drive."""
    for child in gazebo.children:
        if child.tag == "joint":
            omit(child, "Gazebo joint", "not read: give the loop by loops= of load", constrains=True)
        elif child.tag == "plugin":
            tied = child.first("mimicJoint")
            if tied and tied.content in settled:
                continue
            mimics = "mimic" in "".join(child.attributes.values()).lower()
            advice = "not read: write <mimic> at the joint" if mimics else "not read"
            omit(child, "Gazebo mimic plugin" if mimics else "Gazebo plugin", advice, constrains=mimics)


def _refuse_xacro(root: Element) -> None:
    for child in root.children:
        if child.tag.startswith("xacro:"):
            raise child.error(
                f"<{child.tag}>: this is a xacro macro file, not URDF; expand it first with `xacro in.xacro > out.urdf`"
            )


def _root_link(root: Element, links: list[Element], joints: list[Element]) -> Element:
    """The one link that is nobody's child."""
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


def _free_the_name_of_the_ground(links: list[Element], joints: list[Element]) -> None:
    """Rename a link that is called like the fixed world without being it."""
    names = {link.text("name") for link in links}
    if GROUND not in names:
        return
    new_name = f"{GROUND}_link"
    while new_name in names:
        new_name += "_"
    for link in links:
        if link.text("name") == GROUND:
            warn(link, f'is read as {new_name!r}: "{GROUND}" is the fixed world')
            link.attributes["name"] = new_name
    for joint in joints:
        for end in (joint.required("parent"), joint.required("child")):
            if end.text("link") == GROUND:
                end.attributes["link"] = new_name


def _free_the_name_of_the_base_joint(joints: list[Element]) -> None:
    """Rename a fixed joint, whose name nobody sees again, that is called like the joint which makes the base float."""
    names = {joint.text("name") for joint in joints}
    for joint in joints:
        if joint.text("name") == FLOATING_BASE and joint.text("type") == "fixed":
            while joint.text("name") in names:
                joint.attributes["name"] += "_fixed"


def _pose(element: Element) -> tuple[np.ndarray, np.ndarray]:
    """The pose in an element's ``<origin>``; the identity without one."""
    origin = element.first("origin")
    if origin is None:
        return np.eye(3), np.zeros(3)
    here = (0.0, 0.0, 0.0)
    return _rotation(origin), np.array(origin.vector("xyz", here))


def _rotation(origin: Element) -> np.ndarray:
    """By angles about fixed axes or, since version 1.1 of the format, by a quaternion x, y, z, w of any length."""
    if "quat_xyzw" not in origin.attributes:
        return rotation_from_rpy(origin.vector("rpy", (0.0, 0.0, 0.0)))
    if "rpy" in origin.attributes:
        raise origin.error(f"{origin.label}: rpy and quat_xyzw both give its orientation; keep one of them")
    x, y, z, w = origin.numbers("quat_xyzw", 4)
    if not any((x, y, z, w)):
        raise origin.error(f"{origin.label}: a quat_xyzw of zeros is no rotation; write 0 0 0 1 for none")
    return snapped(np.array(rotation_matrix((w, x, y, z)), dtype=float))


def _add_link(builder: Builder, link: Element) -> None:
    inertial = link.first("inertial")
    if inertial is None:
        builder.link(link.text("name"))
        return
    rotation, com = _pose(inertial)
    builder.link(
        link.text("name"), inertial.required("mass").number("value"), com, rotation @ _inertia(inertial) @ rotation.T
    )


def _inertia(inertial: Element) -> np.ndarray:
    """The inertia about the centre of mass along the axes of the inertial frame; zero where none is given."""
    element = inertial.first("inertia")
    if element is None:
        return np.zeros((3, 3))
    xx, yy, zz = (element.number(key) for key in ("ixx", "iyy", "izz"))
    xy, xz, yz = (element.number(key, 0.0) for key in ("ixy", "ixz", "iyz"))
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def _add_joint(builder: Builder, joint: Element, mimics: bool) -> None:
    kind = _kind(joint)
    dynamics, mimic = joint.first("dynamics"), joint.first("mimic")
    builder.joint(
        joint.text("name"),
        kind,
        parent=joint.required("parent").text("link"),
        child=joint.required("child").text("link"),
        pose=_pose(joint),
        damping=dynamics.number("damping", 0.0) if dynamics else 0.0,
        friction=dynamics.number("friction", 0.0) if dynamics else 0.0,
        limits=_limits(joint),
        # A joint that cannot move has nothing to mimic with.
        mimic=_mimic(mimic) if mimic and mimics and kind.nv > 0 else None,
    )


def _kind(joint: Element) -> Joint:
    type_name = joint.text("type")
    if type_name in _WITHOUT_AXIS:
        return _WITHOUT_AXIS[type_name]()
    if type_name not in _ALONG_AXIS:
        raise joint.error(
            f"{joint.label} has the unknown type {type_name!r}; known: {', '.join([*_ALONG_AXIS, *_WITHOUT_AXIS])}"
        )
    axis = joint.first("axis")
    direction = axis.vector("xyz", (1.0, 0.0, 0.0)) if axis else (1.0, 0.0, 0.0)
    try:
        return _ALONG_AXIS[type_name](direction)
    except ValueError as error:
        raise (axis or joint).error(f"{joint.label}: its axis {direction} has no direction ({error})") from None


def _limits(joint: Element) -> Limits | None:
    """The bounds in ``<limit>``: positions of revolute and prismatic joints (0 where left out, as the format says)."""
    limit = joint.first("limit")
    if limit is None:
        return None
    bounds = {key: limit.number(key, np.inf, finite=False) for key in ("velocity", "effort")}
    if joint.text("type") in ("revolute", "prismatic"):
        bounds |= {key: limit.number(key, 0.0, finite=False) for key in ("lower", "upper")}
    return Limits(**bounds)


def _mimic(mimic: Element) -> Mimic:
    return Mimic(mimic.text("joint"), mimic.number("multiplier", 1.0), mimic.number("offset", 0.0))
