"""Mobility of points: the largest acceleration of a point of a link under a unit force at that point.

Default numbers of contacts depend on it, before anything is compiled. The inverse operational-space inertia of every
link is computed in one sweep to the base and one to the tips, in O(N). Loops and mimic joints are left out; they would
reduce the mobility.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from linkwise.mechanism.resistance import motions_at, spatial_inertia
from linkwise.mechanism.welding import joint_pose

if TYPE_CHECKING:
    from linkwise.mechanism.model import Mechanism

Placement = tuple[np.ndarray, np.ndarray]  # rotation and position in the world


class PointMobility:
    """Inverse effective masses of points of a mechanism in its initial configuration, along world axes.

    poses   rotation and position of every link in the world
    """

    def __init__(self, mech: Mechanism):
        self._mech = mech
        self.poses: list[Placement] = []
        self._arms: list[np.ndarray] = []  # (3,): from the origin of the parent link to that of the link
        self._motions: list[np.ndarray] = []  # (6, nv of the joint): [omega; v at the link's origin] per unit velocity
        for body in mech.bodies:
            rotation, start = self.poses[body.parent] if body.parent >= 0 else (np.eye(3), np.zeros(3))
            q = np.atleast_1d(mech.coordinates.place(body.joint).positions(mech.initial)).tolist()
            turn, shift = joint_pose(body.kind, q)
            along = rotation @ body.rotation
            position = start + rotation @ body.position + along @ shift
            rotation = along @ turn
            self.poses.append((rotation, position))
            self._arms.append(position - start)
            self._motions.append(np.kron(np.eye(2), rotation) @ motions_at(body.kind, q))

    @cached_property
    def _mobilities(self) -> list[np.ndarray]:
        """(6, 6) per link: spatial acceleration of its origin under a unit wrench there.

        With X from the parent's origin to the link's, S the joint's motions and P the articulated inertia,
        D = S* P S + R and Omega = (1 - S D^-1 S* P) X Omega_parent X* (1 - ...)* + S D^-1 S*.
        """
        bodies = self._mech.bodies
        articulated = [
            spatial_inertia(body.mass, rotation @ body.com, rotation @ body.inertia @ rotation.T)
            for body, (rotation, _) in zip(bodies, self.poses, strict=True)
        ]
        inverses: list[np.ndarray] = [np.empty(0)] * len(bodies)
        for i in reversed(range(len(bodies))):
            inertia, motion = articulated[i], self._motions[i]
            resisted = motion.T @ inertia @ motion + np.diag(bodies[i].armature)
            inverses[i] = _inverse(resisted)
            if bodies[i].parent >= 0:
                through = inertia @ motion
                rest = inertia - through @ inverses[i] @ through.T
                shift = _shift(self._arms[i])
                articulated[bodies[i].parent] += shift.T @ rest @ shift
        mobilities: list[np.ndarray] = []
        for i, body in enumerate(bodies):
            mobility = self._motions[i] @ inverses[i] @ self._motions[i].T
            if body.parent >= 0:
                passed = (np.eye(6) - mobility @ articulated[i]) @ _shift(self._arms[i])
                mobility = mobility + passed @ mobilities[body.parent] @ passed.T
            mobilities.append(mobility)
        return mobilities

    def mobility(self, body: int, points: np.ndarray) -> float:
        """Largest acceleration of any of the points (n, 3), given in the link's frame, under a unit force at that
        point; zero for the ground.
        """
        if body < 0:
            return 0.0
        to_points = np.stack([_shift(arm)[3:] for arm in points @ self.poses[body][0].T])
        mobilities = to_points @ self._mobilities[body] @ to_points.transpose(0, 2, 1)
        return float(np.linalg.eigvalsh(mobilities)[:, -1].max())


def _shift(arm: np.ndarray) -> np.ndarray:
    """(6, 6): moves [omega; v] from the start of an arm to its end, [omega; v + omega x arm]."""
    x, y, z = arm
    shift = np.eye(6)
    shift[3:, :3] = [[0.0, z, -y], [-z, 0.0, x], [y, -x, 0.0]]
    return shift


def _inverse(matrix: np.ndarray) -> np.ndarray:
    """The pseudo-inverse of a symmetric matrix, scaled to a diagonal of ones: directions without inertia are left
    out.
    """
    scale = np.sqrt(np.maximum(matrix.diagonal(), 0.0))
    scale = np.where(scale > 0.0, scale, 1.0)
    return np.linalg.pinv(matrix / np.outer(scale, scale), hermitian=True) / np.outer(scale, scale)
