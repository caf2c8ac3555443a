"""How easily points of a mechanism are pushed: J M^-1 J* of points, densely and with NumPy, for one configuration.

It is what default numbers of contacts are chosen by, before anything is compiled.  Loops are left out: with them points
are pushed less easily.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from linkwise.mechanism.parts import Body

if TYPE_CHECKING:
    from linkwise.mechanism.model import Mechanism


class PointMobility:
    """A mechanism in its initial configuration; points and results are along the axes of the world."""

    def __init__(self, mech: Mechanism):
        self._mech = mech
        self._poses: list[tuple[np.ndarray, np.ndarray]] = []  # of the links in the world
        self._motions: list[np.ndarray] = []  # (6, nv): [omega; v of the point at the world's origin] of the links
        for body in mech.bodies:
            rotation, position = self._poses[body.parent] if body.parent >= 0 else (np.eye(3), np.zeros(3))
            position = position + rotation @ body.position
            transform, axes, motions = _joint_at(body, mech.place(body.joint).positions(mech.initial))
            position = position + rotation @ body.rotation @ axes @ transform[1]
            rotation = rotation @ body.rotation @ axes @ transform[0] @ axes.T
            along = np.kron(np.eye(2), rotation @ axes) @ motions
            along[3:] += np.cross(position, along[:3], axisb=0).T  # v - omega x p
            whole = self._motions[body.parent].copy() if body.parent >= 0 else np.zeros((6, mech.nv))
            whole[:, mech.v_index(body.joint)] += along * mech.place(body.joint).ratio
            self._poses.append((rotation, position))
            self._motions.append(whole)

    @cached_property
    def _inverse(self) -> np.ndarray:
        """M^-1; where nothing resists, nothing moves."""
        mass_matrix = np.diag(self._mech.armature)
        for body, (rotation, position), motion in zip(self._mech.bodies, self._poses, self._motions, strict=True):
            at_com = motion[3:] - _cross_columns(position + rotation @ body.com, motion[:3])
            inertia = rotation @ body.inertia @ rotation.T
            mass_matrix = mass_matrix + motion[:3].T @ inertia @ motion[:3] + body.mass * at_com.T @ at_com
        return np.linalg.pinv(mass_matrix, hermitian=True)

    def of(self, body: int, points: np.ndarray) -> float:
        """The largest acceleration that a unit force at one of the points (n, 3) of a link, given in its frame, gives
        that point; zero for the ground."""
        if body < 0:
            return 0.0
        rotation, position = self._poses[body]
        motion = self._motions[body]
        largest = 0.0
        for point in position + points @ rotation.T:
            at_point = motion[3:] - _cross_columns(point, motion[:3])
            largest = max(largest, float(np.linalg.eigvalsh(at_point @ self._inverse @ at_point.T)[-1]))
        return largest


def _cross_columns(point: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """point x column, of every column."""
    return np.cross(point, columns, axisb=0).T


def _joint_at(body: Body, q: np.ndarray) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray, np.ndarray]:
    """Rotation and position of the child side of a joint in its own axes, these axes, and (6, nv): what its velocities
    do to the link, in its own axes at the link's origin."""
    kind = body.kind
    coordinates = np.atleast_1d(q).tolist()
    transform, axes = kind.transform(coordinates), np.array(kind.alignment, dtype=float)
    pose = np.array(transform.rotation(), dtype=float), np.array(transform.position(), dtype=float)
    motions = np.array([[*m.angular, *m.linear] for m in kind.motion(coordinates)], dtype=float).reshape(-1, 6).T
    return pose, axes, motions
