"""Floating joint: all six degrees of freedom, as a unit quaternion and a position."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..scalar import Scalar
from ..spatial import Matrix3, Motion, Orientation, Transform, Translation, Vector3
from ..spatial import quaternion as quat
from . import drawing
from .protocol import ANGLE, LENGTH, QUATERNION, Coordinates, FormatEntry, Joint, Measure


@dataclass(frozen=True)
class Floating(Joint):
    """``q = [qw, qx, qy, qz, x, y, z]``, ``v = [omega; v]``, both parts of v in the child frame."""

    nq: ClassVar[int] = 7
    nv: ClassVar[int] = 6
    position_measures: ClassVar = (
        *(Measure(name, QUATERNION) for name in ("qw", "qx", "qy", "qz")),
        *(Measure(name, LENGTH) for name in ("x", "y", "z")),
    )
    velocity_measures: ClassVar = (
        *(Measure(name, ANGLE) for name in ("qx", "qy", "qz")),
        *(Measure(name, LENGTH) for name in ("x", "y", "z")),
    )
    span: ClassVar = (0, 1, 2, 3, 4, 5)
    transported: ClassVar = (3, 4, 5)
    formats: ClassVar = {
        "urdf": FormatEntry("floating"),
        "mjcf": FormatEntry("free"),
        "pinocchio": FormatEntry("JointModelFreeFlyer"),
    }

    def symbol(self) -> drawing.Drawing:
        return drawing.Drawing((drawing.Octahedron(1.2),), way=True, colour=drawing.UNKNOWN, ground=drawing.HOVERS)

    def transform(self, q: Coordinates) -> Transform:
        return Transform((Translation(Vector3(*q[4:])), Orientation(quat.rotation_matrix(q[:4]))))

    def motion(self, q: Coordinates) -> tuple[Motion, ...]:
        return tuple(Motion.of(axis) for axis in np.eye(6).tolist())

    def q_rate(self, q: Coordinates, v: Coordinates) -> list[Scalar]:
        return [*quat.rate(q[:4], Vector3(*v[:3])), *(quat.rotation_matrix(q[:4]) @ Vector3(*v[3:]))]

    def neutral(self) -> tuple[float, ...]:
        return (1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)

    def integrate(self, q: Coordinates, v: Coordinates, dt: Scalar) -> list[Scalar]:
        rotation, translation = Vector3(*v[:3]) * dt, Vector3(*v[3:]) * dt
        moved = quat.rotation_matrix(q[:4]) @ quat.displacement(rotation, translation)
        return [*quat.normalized(quat.product(q[:4], quat.exponential(rotation))), *(Vector3(*q[4:]) + moved)]

    def kick_bias(self, v: Coordinates) -> list[Scalar]:
        return [0.0, 0.0, 0.0, *Vector3(*v[:3]).cross(Vector3(*v[3:]))]

    def drift(self, q: Coordinates, v: Coordinates, dt: Scalar) -> tuple[list[Scalar], list[Scalar]]:
        turn, linear = quat.exponential(Vector3(*v[:3]) * dt), Vector3(*v[3:])
        position = Vector3(*q[4:]) + quat.rotation_matrix(q[:4]) @ (linear * dt)
        transported = quat.rotation_matrix(turn).T @ linear
        return [*quat.normalized(quat.product(q[:4], turn)), *position], [*v[:3], *transported]

    def difference(self, q0: Coordinates, q1: Coordinates) -> list[Scalar]:
        rotation = quat.logarithm(quat.product(quat.conjugate(quat.normalized(q0[:4])), quat.normalized(q1[:4])))
        moved = quat.rotation_matrix(q0[:4]).T @ (Vector3(*q1[4:]) - Vector3(*q0[4:]))
        return [*rotation, *quat.twist_slide(rotation, moved)]

    def closure(self, rotation: Matrix3, position: Vector3) -> list[Scalar]:
        return []

    def random(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        q = rng.normal(size=(*shape, 4))
        return np.concatenate(
            [q / np.linalg.norm(q, axis=-1, keepdims=True), rng.uniform(-1.0, 1.0, (*shape, 3))], axis=-1
        )
