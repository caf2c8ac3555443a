"""A joint as a user may write one: as many velocities as coordinates, but not their rates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import linkwise as lw
from linkwise.mechanics.spatial import ZERO, Motion, Vector3
from linkwise.mechanics.spatial import quaternion as quat
from linkwise.mechanics.spatial.factors import rotation_about
from linkwise.mechanics.spatial.motion import NO_MOTION


@dataclass(frozen=True)
class BodyPlanar(lw.Planar):
    """A planar joint whose velocities [vx, vy, omega] are along the axes of the moving side."""

    def motion(self, q):
        x, y, z = (Vector3(*axis) for axis in np.eye(3).tolist())
        return Motion(ZERO, x), Motion(ZERO, y), Motion(z, ZERO)

    def motion_rate(self, q, v):
        return (NO_MOTION,) * 3

    def q_rate(self, q, v):
        moved = rotation_about(2, q[2]).vector_back(Vector3(v[0], v[1], 0.0))
        return [moved.x, moved.y, v[2]]

    def integrate(self, q, v, dt):
        turn, slide = Vector3(0.0, 0.0, v[2] * dt), Vector3(v[0] * dt, v[1] * dt, 0.0)
        moved = rotation_about(2, q[2]).vector_back(quat.displacement(turn, slide))
        return [q[0] + moved.x, q[1] + moved.y, q[2] + turn.z]

    def difference(self, q0, q1):
        turn = Vector3(0.0, 0.0, q1[2] - q0[2])
        moved = rotation_about(2, q0[2]).vector_into(Vector3(q1[0] - q0[0], q1[1] - q0[1], 0.0))
        slide = quat.twist_slide(turn, moved)
        return [slide.x, slide.y, turn.z]


def cart(planar: type[lw.Planar], loop: bool = False, armature: float = 0.0) -> lw.Mechanism:
    """A cart on a tilted plane with a second one, hinged between; with ``loop`` a rod holds the last link."""
    builder = lw.Builder("cart")
    builder.link("cart", 2.0, (0.1, -0.2, 0.3), (0.3, 0.2, 0.4))
    builder.link("arm", 1.0, (0.0, 0.3, 0.1), (0.1, 0.2, 0.15))
    builder.link("plate", 1.5, (0.2, 0.1, 0.0), (0.1, 0.1, 0.2))
    builder.joint("drive", planar((0.3, 0.1, 1.0)), "ground", "cart")
    builder.joint("hinge", lw.Revolute((1.0, 0.0, 0.2)), "cart", "arm", (None, (0.5, 0.0, 0.1)), armature=armature)
    builder.joint("table", planar(), "arm", "plate", (None, (0.0, 0.4, 0.0)))
    if loop:
        builder.loop("rod", lw.Universal(), "plate", None, "ground", (None, (0.5, 0.4, 0.1)))
    return builder.build().with_gravity((1.0, -2.0, -9.81))


def turned(q: np.ndarray) -> np.ndarray:
    """(..., 7, 7): T with v of ``cart(Planar)`` = T v of ``cart(BodyPlanar)``."""
    matrix = np.zeros((*q.shape[:-1], 7, 7))
    matrix[...] = np.eye(7)
    for start in (0, 4):
        c, s = np.cos(q[..., start + 2]), np.sin(q[..., start + 2])
        matrix[..., start, start], matrix[..., start, start + 1] = c, -s
        matrix[..., start + 1, start], matrix[..., start + 1, start + 1] = s, c
    return matrix
