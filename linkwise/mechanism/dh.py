"""Serial arms from Denavit-Hartenberg tables, in three conventions.

One row describes one link and the joint that moves it. ``Rz``, ``Tz``, ``Rx``, ``Tx`` are rotations about and
translations along z and x; joint i is the rotation about or the translation along z of a frame.

"standard"    frame i is fixed to link i at its far end:  ``frame(i-1) -> frame(i) = Rz(theta) Tz(d) Tx(a) Rx(alpha)``;
              joint i along z of frame i-1. Denavit and Hartenberg 1955, Paul, Corke.
"modified"    frame i is fixed to link i at its own joint: ``frame(i-1) -> frame(i) = Rx(alpha) Tx(a) Rz(theta) Tz(d)``;
              joint i along z of frame i, and row i holds alpha(i-1) and a(i-1). Craig; Khalil.
"saha1999"    as printed in saha1999, Appendix A: frame i is fixed to link i-1, ``frame(i) -> frame(i+1)`` is
              ``Rz(theta) Tz(b) Tx(a) Rx(alpha)`` and joint i along z of frame i. These are the frames
              of "standard" numbered one higher; ``b`` is that convention's ``d``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from linkwise.mechanics.joints import Fixed, Prismatic, Revolute
from linkwise.mechanism.builder import Builder
from linkwise.mechanism.checks import (
    MechanismError,
    checked_array,
    checked_inertia,
    checked_number,
    did_you_mean,
    snapped,
)
from linkwise.mechanism.model import GROUND, Mechanism
from linkwise.mechanism.parts import Pose
from linkwise.mechanism.welding import RigidMass, composed

CONVENTIONS = ("standard", "modified", "saha1999")
_KINDS = {"revolute": Revolute, "prismatic": Prismatic}
_KEYS = {
    *("a", "alpha", "theta", "kind", "offset", "mass", "inertia", "link", "joint"),
    *("armature", "damping", "friction", "limits", "stiffness", "rest"),
}
_KEYS_OF = {
    "standard": _KEYS | {"d", "com"},
    "modified": _KEYS | {"d", "com"},
    "saha1999": _KEYS | {"b", "r"},
}


def from_dh(
    rows: Iterable[Mapping[str, Any]],
    convention: str = "standard",
    name: str = "arm",
    gravity: Any = (0.0, 0.0, -9.81),
    strict: bool = True,
) -> Mechanism:
    """A serial arm on the ground from a table of rows, one mapping per link, base to tip.

    Keys of a row (lengths in metres, angles in radians):

    a, alpha      always needed
    d             needed for a revolute joint; for a prismatic one its value at q = 0 (0 if left out). "saha1999": ``b``
    theta         needed for a prismatic joint; for a revolute one its value at q = 0 (0 if left out)
    kind          "revolute" (if left out) or "prismatic"
    offset        added to the variable one of theta and d (0 if left out)
    mass          0 if left out
    com           (3,) centre of mass in the link's DH frame: the frame fixed to link i, which is frame i in "standard"
                  (at the far end of the link) and in "modified" (at its joint)
    r             in "saha1999" instead of ``com``: (3,) from the centre of mass to the origin of frame i+1 (fixed to
                  link i at its far end), in that frame; the centre of mass is at ``-r`` there
    inertia       (3, 3) or (3,) principal moments, about the centre of mass, along the axes of that same frame
    armature, damping, friction, limits, stiffness, rest     of the joint, as in ``Builder.joint``
    link, joint   names; "link1", "joint1", ... if left out

    The mechanism's link frames are the frames of the joints that move them, as everywhere in this library: in
    "modified" they are the DH frames; in "standard" and "saha1999" link i's frame has the z axis and the origin of the
    DH frame in front of the link. The DH frames themselves are there by name: "frame1" ... "frame<n>", in
    "saha1999" "frame2" ... "frame<n+1>" (the frame before these is the ground). ``strict`` as in ``Builder.build``.
    """
    if convention not in CONVENTIONS:
        raise MechanismError(f"unknown DH convention {convention!r}; known: {', '.join(CONVENTIONS)}")
    rows = [rows] if isinstance(rows, Mapping) else list(rows)
    if not rows:
        raise MechanismError("the DH table has no rows")
    builder = Builder()
    parent, far_end = GROUND, (np.eye(3), np.zeros(3))
    for number, row in enumerate(rows, start=1):
        _check_keys(number, row, convention)
        joint_pose, dh_frame = _geometry(number, row, convention, far_end)
        link = row.get("link", f"link{number}")
        mass = _mass(number, row, convention).seen_from(*dh_frame)
        builder.link(link, mass.mass, mass.com, mass.inertia)
        builder.joint(
            row.get("joint", f"joint{number}"),
            _KINDS[row.get("kind", "revolute")]((0.0, 0.0, 1.0)),
            parent,
            link,
            joint_pose,
            armature=row.get("armature", 0.0),
            damping=row.get("damping", 0.0),
            friction=row.get("friction", 0.0),
            stiffness=row.get("stiffness", 0.0),
            rest=row.get("rest"),
            limits=row.get("limits"),
        )
        frame = f"frame{number + 1 if convention == 'saha1999' else number}"
        builder.link(frame)
        builder.joint(f"{link}_to_{frame}", Fixed(), link, frame, dh_frame)
        parent, far_end = link, dh_frame
    return builder.build(name, gravity, strict)


def _check_keys(number: int, row: Any, convention: str) -> None:
    """The row is a mapping with the keys it needs and no others."""
    if not isinstance(row, Mapping):
        raise MechanismError(f"row {number} of the DH table must be a mapping such as {{'a': 0.4, ...}}, not {row!r}")
    known = _KEYS_OF[convention]
    for key in row:
        if key not in known:
            raise MechanismError(
                f"row {number} of the DH table: unknown key {key!r} in the convention {convention!r}; "
                + did_you_mean(key, sorted(known))
            )
    kind = row.get("kind", "revolute")
    if kind not in _KINDS:
        raise MechanismError(f"row {number} of the DH table: kind {kind!r}; known: {', '.join(_KINDS)}")
    fixed_parameter = _distance_key(convention) if kind == "revolute" else "theta"
    for key in ("a", "alpha", fixed_parameter):
        if key not in row:
            slides = key == fixed_parameter and "kind" not in row
            other = '; if it slides, say kind = "prismatic"' if slides else ""
            raise MechanismError(f"row {number} of the DH table: a {kind} joint needs {key!r}{other}")


def _distance_key(convention: str) -> str:
    return "b" if convention == "saha1999" else "d"


def _geometry(number: int, row: Mapping[str, Any], convention: str, far_end: Pose) -> tuple[Pose, Pose]:
    """The joint's pose in the parent link's frame, and the link's DH frame in the link's own frame, both at q = 0.

    ``far_end`` is the parent link's DH frame in the parent link's frame.
    """
    distance_key = _distance_key(convention)
    a, alpha, theta, distance, offset = (
        checked_number(f"row {number} of the DH table: {key}", row.get(key, 0.0))
        for key in ("a", "alpha", "theta", distance_key, "offset")
    )
    if row.get("kind", "revolute") == "revolute":
        theta += offset
    else:
        distance += offset
    if convention == "modified":
        before_joint = composed(far_end, composed(_screw(0, alpha, a), _screw(2, theta, distance)))
        return before_joint, _screw(2, 0.0, 0.0)
    return far_end, composed(_screw(2, theta, distance), _screw(0, alpha, a))


def _screw(axis: int, angle: float, distance: float) -> Pose:
    """A rotation about a coordinate axis together with a translation along it."""
    y, z = (axis + 1) % 3, (axis + 2) % 3
    rotation, position = np.eye(3), np.zeros(3)
    rotation[y, y] = rotation[z, z] = math.cos(angle)
    rotation[z, y] = math.sin(angle)
    rotation[y, z] = -math.sin(angle)
    position[axis] = distance
    return snapped(rotation), position


def _mass(number: int, row: Mapping[str, Any], convention: str) -> RigidMass:
    """The link's mass, centre of mass and inertia in its DH frame."""
    prefix = f"row {number} of the DH table: "
    com_key, sign = ("r", -1.0) if convention == "saha1999" else ("com", 1.0)
    return RigidMass(
        checked_number(f"{prefix}mass", row.get("mass", 0.0)),
        sign * checked_array(f"{prefix}{com_key}", row.get(com_key, (0.0, 0.0, 0.0)), (3,)),
        checked_inertia(f"{prefix}inertia", row.get("inertia")),
    )
