"""Poses in all the forms people write them: positions, with rotations as matrices, angles, quaternions, axes or SciPy
objects.

A rotation matrix has the axes of the child as columns, in the parent; quaternions are scalar-first; angles are radians.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.mechanics.spatial import Matrix3
from linkwise.mechanics.spatial.quaternion import from_matrix, rotation_matrix
from linkwise.mechanism.checks import IDENTITY, MechanismError, checked_array, checked_number, checked_rotation, snapped

Pose = tuple[NDArray[np.float64], NDArray[np.float64]]  # rotation (3, 3), position (3,)

UNIT_TOLERANCE = 1e-6  # of a quaternion's length: one further from 1 is no rotation that was rounded
FORMS = "None, (x, y, z), (rotation, position), a 4x4 matrix or what lw.pose(...) gives"


def pose(
    position: Any = (0.0, 0.0, 0.0),
    *,
    rpy: Any = None,
    quaternion: Any = None,
    axis_angle: Any = None,
    matrix: Any = None,
    rotation: Any = None,
) -> np.ndarray:
    """(4, 4): a pose from a position and at most one description of the rotation; without one, the axes stay parallel.

    rpy          (roll, pitch, yaw) about the fixed axes x, y, z in this order, as in URDF: Rz(yaw) Ry(pitch) Rx(roll)
    quaternion   (w, x, y, z) of unit length
    axis_angle   ((x, y, z), angle); the axis may have any length but zero
    matrix       3x3, the axes of the child as columns
    rotation     a ``scipy.spatial.transform.Rotation``
    """
    descriptions: dict[str, tuple[Callable[[Any], np.ndarray], Any]] = {
        "rpy": (lambda x: rotation_from_rpy(checked_array("rpy", x, (3,))), rpy),
        "quaternion": (rotation_from_quaternion, quaternion),
        "axis_angle": (_rotation_from_axis_angle, axis_angle),
        "matrix": (lambda x: checked_rotation("matrix", x), matrix),
        "rotation": (lambda x: checked_rotation("rotation", x), rotation),
    }
    said = [name for name, (_, value) in descriptions.items() if value is not None]
    if len(said) > 1:
        raise MechanismError(f"{' and '.join(said)} both say what the rotation is; give one of them")
    result = np.eye(4)
    result[:3, 3] = checked_array("position", position, (3,))
    for name in said:
        convert, value = descriptions[name]
        result[:3, :3] = convert(value)
    return result


def rotation_from_rpy(rpy: Any) -> np.ndarray:
    """``Rz(yaw) Ry(pitch) Rx(roll)``: rotations about the fixed axes x, y, z in this order; quarter turns are exact."""
    (sr, sp, sy), (cr, cp, cy) = np.sin(rpy), np.cos(rpy)
    return snapped(
        np.array(
            [
                [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
                [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
                [-sp, cp * sr, cp * cr],
            ]
        )
    )


def rotation_from_quaternion(quaternion: Any, label: str = "quaternion") -> np.ndarray:
    """The rotation of (w, x, y, z), whose length must be 1."""
    numbers = checked_array(label, quaternion, (4,))
    length = float(np.linalg.norm(numbers))
    if abs(length - 1.0) > UNIT_TOLERANCE:
        raise MechanismError(f"{label} must be [w, x, y, z] of length 1, not {length:.6g}")
    return snapped(np.array(rotation_matrix(numbers.tolist()), dtype=float))


def quaternion_from_rotation(rotation: np.ndarray) -> np.ndarray:
    """(4,): the unit quaternion [w, x, y, z] of a rotation matrix, w not negative."""
    q = np.array(from_matrix(Matrix3.from_rows(np.asarray(rotation).tolist())), dtype=float)
    return q if q[0] >= 0.0 else -q


def _rotation_from_axis_angle(axis_angle: Any) -> np.ndarray:
    try:
        axis, angle = axis_angle
    except (TypeError, ValueError):
        raise MechanismError(f"axis_angle must be ((x, y, z), angle), not {axis_angle!r}") from None
    axis = checked_array("the axis of axis_angle", axis, (3,))
    half = 0.5 * checked_number("the angle of axis_angle", angle)
    length = float(np.linalg.norm(axis))
    if length == 0.0:
        raise MechanismError("the axis of axis_angle must not be zero")
    return rotation_from_quaternion([math.cos(half), *(math.sin(half) / length * axis)])


def checked_pose(label: str, value: Any) -> Pose:
    """A pose in any of its forms, as ``(rotation, position)``.

    None, a position, ``(rotation or None, position or None)``, or 4x4; a rotation is a 3x3 matrix or a SciPy object.
    """
    if value is None:
        value = (None, None)
    if hasattr(value, "as_matrix"):
        value = value.as_matrix()  # of a rotation or of a rigid transform of SciPy's
    try:
        parts = list(value)
    except TypeError:
        parts = []
    if parts and all(type(part) is float or (np.ndim(part) == 0 and part is not None) for part in parts):
        return IDENTITY, checked_array(label, value, (3,))
    if len(parts) == 3:
        raise MechanismError(f"{label} is a rotation alone: write (rotation, (0, 0, 0)) or lw.pose(matrix=rotation)")
    if len(parts) == 4:
        matrix = checked_array(label, value, (4, 4))
        if not np.array_equal(matrix[3], (0.0, 0.0, 0.0, 1.0)):
            raise MechanismError(f"the last row of {label} must be 0 0 0 1, not {matrix[3].tolist()}")
        parts = [matrix[:3, :3], matrix[:3, 3]]
    if len(parts) != 2:
        raise MechanismError(f"{label} must be {FORMS}, not {value!r}")
    rotation = np.eye(3) if parts[0] is None else parts[0]
    position = np.zeros(3) if parts[1] is None else parts[1]
    if np.shape(rotation) in ((3,), (4,)):
        raise MechanismError(
            f"the rotation of {label} must be a 3x3 matrix, and {rotation!r} is none: write lw.pose(position, "
            "rpy=...), or quaternion=... in place of rpy"
        )
    return (
        checked_rotation(f"the rotation of {label}", rotation),
        checked_array(f"the position of {label}", position, (3,)),
    )
