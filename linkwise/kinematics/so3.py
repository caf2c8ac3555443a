"""Rotations: matrices (..., 3, 3) with the axes of the rotated frame as columns, and rotation vectors (..., 3).

All functions broadcast over leading axes.  A rotation vector is the axis times the angle in radians, along the axes
of either frame: they agree on it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, reduce
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..compiler.ir.program import Array
from ..compiler.kernel import Kernel
from ..compiler.pipeline import loaded
from ..compiler.store import is_single
from ..compiler.trace import trace
from ..dynamics.given_poses import checked_rotations
from ..dynamics.states import Float64Array, real_numbers
from ..mechanics.spatial import Matrix3, Vector3
from ..mechanics.spatial import quaternion as quat
from ..mechanism import MechanismError


class Compiled:
    """``inputs`` are names and core shapes of the arrays that ``function`` takes, as lists of scalars within lists."""

    def __init__(self, name: str, function: Callable[..., Any], **inputs: tuple[int, ...]):
        self.name, self.function, self.inputs = name, function, inputs
        self._kernel = cache(self._loaded)

    def __call__(self, *arrays: Any) -> Any:
        return self._kernel("float32" if all(map(is_single, arrays)) else "float64")(*arrays)

    def _loaded(self, dtype: str) -> Kernel:
        def run(*arrays: np.ndarray) -> list[np.ndarray]:
            return [np.array(self.function(*(array.tolist() for array in arrays)), dtype=object)]

        shapes = [Array(name, shape) for name, shape in self.inputs.items()]
        return loaded(trace(run, shapes, ("result",), self.name), dtype, "cpu", (), {})


__all__ = [
    "compose",
    "exp",
    "exp_jacobian",
    "from_quaternion",
    "from_rpy",
    "interpolate",
    "inverse",
    "log",
    "log_jacobian",
    "skew",
    "to_quaternion",
    "to_rpy",
]
__dir__ = __all__.copy

LOCKED = 1e-9  # cosine of the pitch from which on roll and yaw are one rotation

_exp = Compiled("so3_exp", lambda vector: quat.rotation_matrix(quat.exponential(Vector3(*vector))), vector=(3,))
_log = Compiled(
    "so3_log", lambda rotation: quat.logarithm(quat.from_matrix(Matrix3.from_rows(rotation))), rotation=(3, 3)
)
_exp_jacobian = Compiled("so3_exp_jacobian", lambda vector: quat.exponential_jacobian(Vector3(*vector)), vector=(3,))
_log_jacobian = Compiled("so3_log_jacobian", lambda vector: quat.logarithm_jacobian(Vector3(*vector)), vector=(3,))
_from_quaternion = Compiled("so3_from_quaternion", quat.rotation_matrix, quaternion=(4,))
_to_quaternion = Compiled(
    "so3_to_quaternion", lambda rotation: quat.from_matrix(Matrix3.from_rows(rotation)), rotation=(3, 3)
)


def exp(vector: ArrayLike) -> Float64Array:
    """(..., 3, 3): the rotation of a rotation vector (..., 3)."""
    return _exp(vector)


def log(rotation: ArrayLike) -> Float64Array:
    """(..., 3): the rotation vector of least length, at most pi, of a rotation (..., 3, 3). A half turn has two; one
    of them is returned.
    """
    return _log(checked_rotations("rotation", rotation))


def exp_jacobian(vector: ArrayLike) -> Float64Array:
    """(..., 3, 3): J with exp(vector + d) = exp(vector) exp(J d) for small d: J times the rate of a rotation vector is
    the angular velocity along the axes of the rotated frame (the right Jacobian)."""
    return _exp_jacobian(vector)


def log_jacobian(rotation: ArrayLike) -> Float64Array:
    """(..., 3, 3): J with log(rotation exp(d)) = log(rotation) + J d for small d, the inverse of ``exp_jacobian``
    there. A half turn uses the rotation vector that ``log`` returns.
    """
    return _log_jacobian(log(rotation))


def compose(*rotations: ArrayLike) -> Float64Array:
    """(..., 3, 3): the first rotation followed, in the rotated frame, by the others: their matrix product."""
    return reduce(np.matmul, [_three_by_three(x) for x in rotations], np.eye(3))


def inverse(rotation: ArrayLike) -> Float64Array:
    """(..., 3, 3): the transposed matrix."""
    return np.swapaxes(_three_by_three(rotation), -1, -2)


def skew(vector: ArrayLike) -> Float64Array:
    """(..., 3, 3): the matrix S with S x = vector cross x for all x."""
    components = real_numbers("vector", vector)
    if components.shape[-1:] != (3,):
        raise MechanismError(f"vector must have shape (..., 3), got {components.shape}")
    x, y, z = np.moveaxis(components, -1, 0)
    zero = np.zeros_like(x)
    return np.moveaxis(np.array([[zero, -z, y], [z, zero, -x], [-y, x, zero]]), (0, 1), (-2, -1))


def interpolate(first: ArrayLike, last: ArrayLike, share: ArrayLike) -> Float64Array:
    """(..., 3, 3): the rotation a fraction ``share`` (...,) of the way from ``first`` (0) to ``last`` (1), at constant
    angular velocity; other values extrapolate."""
    first = _three_by_three(first)
    way = log(inverse(first) @ _three_by_three(last))
    return first @ exp(way * real_numbers("share", share)[..., None])


def from_quaternion(quaternion: ArrayLike) -> Float64Array:
    """(..., 3, 3): the rotation of a quaternion [w, x, y, z] of any length but zero."""
    return _from_quaternion(quaternion)


def to_quaternion(rotation: ArrayLike) -> Float64Array:
    """(..., 4): a unit quaternion [w, x, y, z] of a rotation; its negative represents the same rotation."""
    return _to_quaternion(checked_rotations("rotation", rotation))


def from_rpy(rpy: ArrayLike) -> Float64Array:
    """(..., 3, 3): the rotation of roll, pitch, yaw (..., 3), about the fixed axes x, y, z one after the other, as in
    URDF: Rz(yaw) Ry(pitch) Rx(roll)."""
    angles = real_numbers("rpy", rpy)
    if angles.shape[-1:] != (3,):
        raise MechanismError(f"rpy must have shape (..., 3), got {angles.shape}")
    roll, pitch, yaw = (exp(angles[..., k, None] * np.eye(3)[k]) for k in range(3))
    return yaw @ pitch @ roll


def to_rpy(rotation: ArrayLike) -> Float64Array:
    """(..., 3): roll, pitch, yaw of a rotation, the pitch between -pi/2 and pi/2; where that is +-pi/2 and only the sum
    or difference of the others is known, the roll is zero."""
    (xx, xy, _), (yx, yy, _), (zx, zy, zz) = np.moveaxis(checked_rotations("rotation", rotation), (-2, -1), (0, 1))
    level = np.hypot(xx, yx)
    locked = level < LOCKED
    roll = np.where(locked, 0.0, np.arctan2(zy, zz))
    yaw = np.where(locked, np.arctan2(-xy, yy), np.arctan2(yx, xx))
    return np.stack([roll, np.arctan2(-zx, level), yaw], axis=-1)


def _three_by_three(value: Any) -> Float64Array:
    array = real_numbers("rotation", value.as_matrix() if hasattr(value, "as_matrix") else value)
    if array.shape[-2:] != (3, 3):
        raise MechanismError(f"a rotation must have shape (..., 3, 3), got {array.shape}")
    return array
