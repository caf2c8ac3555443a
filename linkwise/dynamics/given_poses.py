"""Checks of rotations and poses in arguments: targets of frames, for inverse kinematics and control."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..mechanism import MechanismError
from .states import Float64Array, real_numbers

TOLERANCE = 1e-6  # of R* R - 1: error of rotations that were computed, or have seven digits
LAST_ROW = np.array([0.0, 0.0, 0.0, 1.0])


def checked_rotations(label: str, rotation: Any) -> Float64Array:
    """(..., 3, 3): rotation matrices, from arrays or ``scipy.spatial.transform.Rotation``; raises for others."""
    array = real_numbers(label, rotation.as_matrix() if hasattr(rotation, "as_matrix") else rotation)
    if array.shape[-2:] != (3, 3):
        raise MechanismError(f"{label} must have shape (..., 3, 3), got {array.shape}")
    off = _distance_from_rotations(array)
    if not off < TOLERANCE:
        raise MechanismError(
            f"{label} is no rotation: its rows are off by {off:.1e} from being orthogonal, unit and right-handed; "
            "linkwise.kinematics.so3.exp and scipy.spatial.transform.Rotation make rotations"
        )
    return array


def is_pair(pose: Any) -> bool:
    """Whether it is a tuple of rotation (..., 3, 3) and position (..., 3), in either order."""
    if not (isinstance(pose, tuple) and len(pose) == 2):
        return False
    try:
        return {np.shape(part)[-2:] == (3, 3) for part in pose} == {True, False}
    except ValueError:  # ragged
        return False


def rotation_and_position(label: str, pose: Any) -> tuple[Float64Array, Float64Array] | None:
    """A rotation (..., 3, 3), not yet checked to be one, and a position (..., 3): from a pose (..., 4, 4), or a tuple
    of the two in either order; None otherwise."""
    if is_pair(pose):
        position, rotation = sorted(pose, key=lambda part: np.shape(part)[-2:] == (3, 3))
        return real_numbers(label, rotation), real_numbers(label, position)
    array = real_numbers(label, pose)
    if array.shape[-2:] != (4, 4):
        return None
    if not np.isfinite(array).all():
        raise MechanismError(f"{label} must be finite, and has {array[~np.isfinite(array)][0]}")
    if not np.abs(array[..., 3, :] - LAST_ROW).max(initial=0.0) < TOLERANCE:
        raise MechanismError(f"{label} is no pose: its last row must be 0 0 0 1")
    return array[..., :3, :3], array[..., :3, 3]


def _distance_from_rotations(matrices: np.ndarray) -> float:
    """The largest of x x - 1, y y - 1, x y and x cross y - z for rows x, y, z; not finite if they are not."""
    if not matrices.size:
        return 0.0
    (a, b, c), (d, e, f), (g, h, i) = np.ascontiguousarray(np.moveaxis(matrices, (-2, -1), (0, 1)))
    lengths = (a * a + b * b + c * c - 1.0, d * d + e * e + f * f - 1.0, a * d + b * e + c * f)
    across = (b * f - c * e - g, c * d - a * f - h, a * e - b * d - i)
    return float(max(np.abs(x).max() for x in (*lengths, *across)))
