"""Links and joints of URDF: poses, inertias, kinds of joints, limits."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from linkwise.mechanics.joints import Joint, kinds_of_format
from linkwise.mechanics.spatial.quaternion import rotation_matrix
from linkwise.mechanism import Builder, Limits, Mimic, Pose, snapped
from linkwise.mechanism.poses import rotation_from_rpy
from linkwise.readers import drake
from linkwise.readers.protocol import Element, unbounded

ONE_COORDINATE = ("revolute", "continuous", "prismatic")  # types of joints that can mimic others

FORMAT = "urdf"
_X_AXIS = (1.0, 0.0, 0.0)  # where none is given, as the format says


def pose(element: Element) -> Pose:
    """The pose in an element's ``<origin>``; the identity without one."""
    origin = element.first("origin")
    if origin is None:
        return np.eye(3), np.zeros(3)
    here = (0.0, 0.0, 0.0)
    return _rotation(origin), np.array(origin.vector("xyz", here))


def _rotation(origin: Element) -> np.ndarray:
    """The rotation from angles about fixed axes or, since version 1.1 of the format, from a quaternion x, y, z, w of
    any length.
    """
    if "quat_xyzw" not in origin.attributes:
        return rotation_from_rpy(origin.vector("rpy", (0.0, 0.0, 0.0)))
    if "rpy" in origin.attributes:
        raise origin.error(f"{origin.label}: rpy and quat_xyzw both give its orientation; keep one of them")
    x, y, z, w = origin.numbers("quat_xyzw", 4)
    if not any((x, y, z, w)):
        raise origin.error(f"{origin.label}: a quat_xyzw of zeros is no rotation; write 0 0 0 1 for none")
    return snapped(np.array(rotation_matrix((w, x, y, z)), dtype=float))


def add_link(builder: Builder, link: Element) -> None:
    """Declare a ``<link>``."""
    inertial = link.first("inertial")
    if inertial is None:
        builder.link(link.text("name"))
        return
    rotation, com = pose(inertial)
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


def add_joint(builder: Builder, joint: Element, mimic: Mimic | None) -> None:
    """Declare a ``<joint>``, with a rule if it mimics another."""
    made = kind(joint)
    dynamics = joint.first("dynamics")
    builder.joint(
        joint.text("name"),
        made,
        parent=joint.required("parent").text("link"),
        child=joint.required("child").text("link"),
        pose=pose(joint),
        damping=_damping(dynamics, made.nv),
        friction=dynamics.number("friction", 0.0) if dynamics else 0.0,
        limits=_limits(joint),
        mimic=mimic if made.nv > 0 else None,  # a joint that cannot move has nothing to mimic with
        **_extensions(dynamics, made),
    )


def _damping(dynamics: Element | None, size: int) -> float | tuple[float, ...]:
    """A number for all coordinates, or one for each."""
    if dynamics is None or "damping" not in dynamics.attributes:
        return 0.0
    values = dynamics.numbers("damping", 1, max(size, 1))
    return values[0] if len(values) == 1 else values


def _extensions(dynamics: Element | None, kind: Joint) -> dict[str, Any]:
    """Rotor inertia and spring, which plain URDF does not have."""
    words = {"armature": ("armature", kind.nv), "spring_stiffness": ("stiffness", kind.nv)}
    words["spring_reference"] = ("rest", kind.nq)
    if dynamics is None or kind.nv == 0:
        return {}
    numbers: dict[str, Any] = {}
    for word, (name, size) in words.items():
        if word in dynamics.attributes:
            values = dynamics.numbers(word, 1, size)
            numbers[name] = values[0] if len(values) == 1 else values
    return numbers


def kind(joint: Element, without: Iterable[str] = ()) -> Joint:
    """The joint of an element, by its ``type`` and ``<axis>``; types in ``without`` are unknown."""
    if drake.is_joint(joint):
        return drake.kind(joint)
    type_name = joint.text("type")
    known = {word: kind for word, kind in kinds_of_format(FORMAT).items() if word not in without}
    if type_name not in known:
        raise joint.error(f"{joint.label} has the unknown type {type_name!r}; known: {', '.join(known)}")
    made: Callable[..., Joint] = known[type_name]
    if not known[type_name].formats[FORMAT].axes:
        return made()
    axis = joint.first("axis")
    direction = axis.vector("xyz", _X_AXIS) if axis else _X_AXIS
    try:
        return made(direction)
    except ValueError as error:
        raise (axis or joint).error(f"{joint.label}: its axis {direction} has no direction ({error})") from None


def _limits(joint: Element) -> Limits | None:
    """Limits of ``<limit>``; positions of revolute and prismatic joints default to 0, as in the format."""
    limit = joint.first("limit")
    if limit is None:
        return None
    bounds = {key: limit.number(key, np.inf, finite=False) for key in ("velocity", "effort")}
    if joint.text("type") in ("revolute", "prismatic"):
        bounds |= {key: limit.number(key, 0.0, finite=False) for key in ("lower", "upper")}
    return Limits(**{key: unbounded(value) for key, value in bounds.items()})


def mimic_rules(joints: Iterable[Element]) -> dict[str, Mimic]:
    """Rules of ``<mimic>`` by joint."""
    pairs = ((joint.text("name"), joint.first("mimic")) for joint in joints)
    return {
        name: Mimic(mimic.text("joint"), mimic.number("multiplier", 1.0), mimic.number("offset", 0.0))
        for name, mimic in pairs
        if mimic
    }
