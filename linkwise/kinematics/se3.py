"""Poses: matrices (..., 4, 4), and twists [omega; v] (..., 6), rotation first, along the axes of the moving frame.

All functions broadcast over leading axes.  ``exp`` moves with a constant twist for unit time: along a screw.
"""

from __future__ import annotations

from functools import partial, reduce
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..dynamics.given_poses import checked_rotations
from ..dynamics.states import Float64Array, real_numbers
from ..mechanics.algorithms.kinematics import homogeneous
from ..mechanics.scalar import Matrix, Scalar
from ..mechanics.spatial import Matrix3, Vector3
from ..mechanics.spatial import quaternion as quat
from ..mechanism import MechanismError
from .so3 import Compiled, skew

__all__ = ["adjoint", "compose", "exp", "exp_jacobian", "interpolate", "inverse", "log", "log_jacobian", "pose"]
__dir__ = __all__.copy


def _exponential(twist: list[Scalar]) -> Matrix:
    turn, slide = Vector3(*twist[:3]), Vector3(*twist[3:])
    return homogeneous((quat.rotation_matrix(quat.exponential(turn)), quat.displacement(turn, slide)))


def _logarithm(pose: Matrix) -> list[Scalar]:
    turn = quat.logarithm(quat.from_matrix(Matrix3.from_rows(row[:3] for row in pose[:3])))
    return [*turn, *quat.twist_slide(turn, Vector3(*(row[3] for row in pose[:3])))]


_exp = Compiled("se3_exp", _exponential, twist=(6,))
_log = Compiled("se3_log", _logarithm, pose=(4, 4))
_exp_jacobian = Compiled("se3_exp_jacobian", partial(quat.extend_to_twists, quat.exponential_jacobian), twist=(6,))
_log_jacobian = Compiled("se3_log_jacobian", partial(quat.extend_to_twists, quat.logarithm_jacobian), twist=(6,))


def pose(rotation: ArrayLike, position: ArrayLike) -> Float64Array:
    """(..., 4, 4): from rotations (..., 3, 3) and positions (..., 3)."""
    turned, translation = checked_rotations("rotation", rotation), real_numbers("position", position)
    if translation.shape[-1:] != (3,):
        raise MechanismError(f"position must have shape (..., 3), got {translation.shape}")
    made = np.zeros((*np.broadcast_shapes(turned.shape[:-2], translation.shape[:-1]), 4, 4))
    made[..., :3, :3], made[..., :3, 3], made[..., 3, 3] = turned, translation, 1.0
    return made


def exp(twist: ArrayLike) -> Float64Array:
    """(..., 4, 4): the pose that the constant twist (..., 6) leads to in unit time."""
    return _exp(twist)


def log(pose: ArrayLike) -> Float64Array:
    """(..., 6): the constant twist that leads to a pose in unit time, by the shortest rotation."""
    checked = _four_by_four(pose)
    checked_rotations("the rotation of pose", checked[..., :3, :3])
    return _log(checked)


def exp_jacobian(twist: ArrayLike) -> Float64Array:
    """(..., 6, 6): J with exp(twist + d) = exp(twist) exp(J d) for small d [omega; v], along the axes of the moved
    frame (the right Jacobian)."""
    return _exp_jacobian(twist)


def log_jacobian(pose: ArrayLike) -> Float64Array:
    """(..., 6, 6): J with log(pose exp(d)) = log(pose) + J d for small d, the inverse of ``exp_jacobian`` there."""
    return _log_jacobian(log(pose))


def compose(*poses: ArrayLike) -> Float64Array:
    """(..., 4, 4): the first displacement followed, in the moved frame, by the others: their matrix product."""
    return reduce(np.matmul, [_four_by_four(x) for x in poses], np.eye(4))


def inverse(pose: ArrayLike) -> Float64Array:
    """(..., 4, 4): the pose of frame A in B, of that of B in A."""
    matrix = _four_by_four(pose)
    back = np.swapaxes(matrix[..., :3, :3], -1, -2)
    made = np.zeros_like(matrix)
    made[..., :3, :3], made[..., 3, 3] = back, 1.0
    made[..., :3, 3] = -(back @ matrix[..., :3, 3:])[..., 0]
    return made


def interpolate(first: ArrayLike, last: ArrayLike, share: ArrayLike) -> Float64Array:
    """(..., 4, 4): on the screw that leads from one pose to another, after ``share`` (...,) of the way; 0 is the first,
    1 the last, others go beyond.  For a straight line of the origin interpolate position and rotation each."""
    way = log(inverse(first) @ _four_by_four(last))
    return _four_by_four(first) @ exp(way * real_numbers("share", share)[..., None])


def adjoint(pose: ArrayLike) -> Float64Array:
    """(..., 6, 6): X with twist_in_A = X twist_in_B, [omega; v], for the pose of frame B in A.  Its transpose maps
    wrenches [moment; force] from A to B.
    """
    matrix = _four_by_four(pose)
    turned = matrix[..., :3, :3]
    made = np.zeros((*matrix.shape[:-2], 6, 6))
    made[..., :3, :3], made[..., 3:, 3:], made[..., 3:, :3] = turned, turned, skew(matrix[..., :3, 3]) @ turned
    return made


def _four_by_four(value: Any) -> Float64Array:
    array = real_numbers("pose", value)
    if array.shape[-2:] != (4, 4):
        raise MechanismError(f"a pose must have shape (..., 4, 4), got {array.shape}")
    if not np.allclose(array[..., 3, :], (0.0, 0.0, 0.0, 1.0), atol=1e-9):
        raise MechanismError("the last row of a pose must be 0 0 0 1")
    return array
