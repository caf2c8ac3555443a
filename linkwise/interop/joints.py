"""Conversion of one joint's coordinates and velocities to those of another library.

With v_there = B v for a joint's own velocities, B is orthogonal for every joint: an order of numbers, or a rotation of
some of them.  Forces therefore change as velocities do, and the inverse of B is its transpose.  Where B depends on q,
its derivative along a tangent u is B W(u), with a skew-symmetric W(u) that is linear in u and the same at every q.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

QUATERNION_LAST = [1, 2, 3, 0]
POSITION_FIRST = [4, 5, 6, 1, 2, 3, 0]
LINEAR_FIRST = [3, 4, 5, 0, 1, 2]


class Same:
    """Equal numbers on both sides: hinges, slides, and all joints whose coordinates are rates."""

    def q_there(self, q: np.ndarray) -> np.ndarray:
        """Coordinates (..., nq there) from our coordinates (..., nq here)."""
        return q

    def q_here(self, q: np.ndarray) -> np.ndarray:
        """The inverse."""
        return q

    def forth(self, q: np.ndarray, x: np.ndarray) -> np.ndarray:
        """B x, for velocities or forces x (..., nv) at our coordinates q."""
        return x

    def back(self, q: np.ndarray, x: np.ndarray) -> np.ndarray:
        """B* x."""
        return x

    def turning(self, tangent: np.ndarray, x: np.ndarray) -> np.ndarray:
        """W(tangent) x, (..., nv): B changes by B W(tangent) per unit of motion along the tangent; zero where B is
        constant."""
        return np.zeros(np.broadcast_shapes(tangent.shape, x.shape), dtype=x.dtype)


class Endless(Same):
    """An angle stored as cosine and sine, as Pinocchio's unlimited revolute joints; whole turns are lost."""

    def q_there(self, q: np.ndarray) -> np.ndarray:
        return np.concatenate([np.cos(q), np.sin(q)], axis=-1)

    def q_here(self, q: np.ndarray) -> np.ndarray:
        return np.arctan2(q[..., 1:], q[..., :1])


@dataclass(frozen=True)
class Reordered(Same):
    """Equal numbers in another order: ``x_there = x[order]``."""

    q_order: Any
    v_order: Any

    def q_there(self, q: np.ndarray) -> np.ndarray:
        return q[..., self.q_order]

    def q_here(self, q: np.ndarray) -> np.ndarray:
        return q[..., np.argsort(self.q_order)]

    def forth(self, q: np.ndarray, x: np.ndarray) -> np.ndarray:
        return x[..., self.v_order]

    def back(self, q: np.ndarray, x: np.ndarray) -> np.ndarray:
        return x[..., np.argsort(self.v_order)]


BALL = Reordered(QUATERNION_LAST, [0, 1, 2])  # quaternions x, y, z, w
FREE_FLYER = Reordered(POSITION_FIRST, LINEAR_FIRST)  # both parts of velocities in child axes


class PlanarInChildAxes(Same):
    """``q = [x, y, cos, sin]``, velocities along axes that rotate with the child."""

    def q_there(self, q: np.ndarray) -> np.ndarray:
        return np.concatenate([q[..., :2], np.cos(q[..., 2:]), np.sin(q[..., 2:])], axis=-1)

    def q_here(self, q: np.ndarray) -> np.ndarray:
        return np.concatenate([q[..., :2], np.arctan2(q[..., 3:], q[..., 2:3])], axis=-1)

    def forth(self, q: np.ndarray, x: np.ndarray) -> np.ndarray:
        return self._rotated(-q[..., 2], x)

    def back(self, q: np.ndarray, x: np.ndarray) -> np.ndarray:
        return self._rotated(q[..., 2], x)

    def turning(self, tangent: np.ndarray, x: np.ndarray) -> np.ndarray:
        angle, along_x, along_y = np.broadcast_arrays(tangent[..., 2], x[..., 0], x[..., 1])
        return np.stack([angle * along_y, -angle * along_x, np.zeros_like(along_x)], axis=-1)

    @staticmethod
    def _rotated(angle: np.ndarray, x: np.ndarray) -> np.ndarray:
        c, s = np.cos(angle), np.sin(angle)
        return np.stack([c * x[..., 0] - s * x[..., 1], s * x[..., 0] + c * x[..., 1], x[..., 2]], axis=-1)


@dataclass(frozen=True, eq=False)
class Elsewhere(Same):
    """A floating joint whose frame is at another pose in the ground: ``rotation`` and ``position`` of ours in that."""

    rotation: np.ndarray
    position: np.ndarray

    def q_there(self, q: np.ndarray) -> np.ndarray:
        turned = product(quaternion_of(self.rotation), q[..., :4])
        return np.concatenate([turned, q[..., 4:] @ self.rotation.T + self.position], axis=-1)

    def q_here(self, q: np.ndarray) -> np.ndarray:
        turned = product(quaternion_of(self.rotation) * (1.0, -1.0, -1.0, -1.0), q[..., :4])
        return np.concatenate([turned, (q[..., 4:] - self.position) @ self.rotation], axis=-1)


@dataclass(frozen=True, eq=False)
class FreeInWorldAxes(Same):
    """MuJoCo's free joint: the pose in the world, position first; linear velocity along the world's axes, angular
    velocity along the child's.  ``rotation`` and ``position`` are the pose of the joint's frame in the ground."""

    rotation: np.ndarray
    position: np.ndarray

    def q_there(self, q: np.ndarray) -> np.ndarray:
        return np.roll(Elsewhere(self.rotation, self.position).q_there(q), 3, axis=-1)

    def q_here(self, q: np.ndarray) -> np.ndarray:
        return Elsewhere(self.rotation, self.position).q_here(np.roll(q, -3, axis=-1))

    def forth(self, q: np.ndarray, x: np.ndarray) -> np.ndarray:
        linear = np.einsum("...ij,...j->...i", self._axes(q), x[..., 3:])
        return np.concatenate([linear, np.broadcast_to(x[..., :3], linear.shape)], axis=-1)

    def back(self, q: np.ndarray, x: np.ndarray) -> np.ndarray:
        linear = np.einsum("...ji,...j->...i", self._axes(q), x[..., :3])
        return np.concatenate([np.broadcast_to(x[..., 3:], linear.shape), linear], axis=-1)

    def turning(self, tangent: np.ndarray, x: np.ndarray) -> np.ndarray:
        linear = np.cross(tangent[..., :3], x[..., 3:])
        return np.concatenate([np.zeros_like(linear), linear], axis=-1)

    def _axes(self, q: np.ndarray) -> np.ndarray:
        """(..., 3, 3): the child's axes in the world."""
        return self.rotation @ rotation_of(q[..., :4])


# -- quaternions w, x, y, z -------------------------------------------------------------------------------------


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The rotation b, then a."""
    w = a[..., :1] * b[..., :1] - np.sum(a[..., 1:] * b[..., 1:], axis=-1, keepdims=True)
    vector = a[..., :1] * b[..., 1:] + b[..., :1] * a[..., 1:] + np.cross(a[..., 1:], b[..., 1:])
    return np.concatenate([w, vector], axis=-1)


def rotation_of(quaternion: np.ndarray) -> np.ndarray:
    """(..., 3, 3): rotation matrices of quaternions of any nonzero length."""
    w, x, y, z = np.moveaxis(quaternion / np.linalg.norm(quaternion, axis=-1, keepdims=True), -1, 0)
    rows = (
        (1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)),
        (2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x)),
        (2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)),
    )
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def quaternion_of(rotation: np.ndarray) -> np.ndarray:
    """(4,): the unit quaternion of a rotation with w >= 0."""
    from scipy.spatial.transform import Rotation

    quaternion = np.asarray(Rotation.from_matrix(rotation).as_quat())[[3, 0, 1, 2]]
    return quaternion if quaternion[0] >= 0.0 else -quaternion
