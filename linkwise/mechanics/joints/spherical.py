"""Spherical (ball) joint: a free rotation, as a unit quaternion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..scalar import Scalar
from ..spatial import ZERO, Matrix3, Motion, Orientation, RigidInertia, Transform, Vector3
from ..spatial import quaternion as quat
from ..spatial.inertia import NO_INERTIA
from . import drawing
from .protocol import ANGLE, QUATERNION, Coordinates, FormatEntry, Joint, Measure


@dataclass(frozen=True)
class Spherical(Joint):
    """``q = [w, x, y, z]`` (used as if normalised), ``v`` = angular velocity in the child frame."""

    nq: ClassVar[int] = 4
    nv: ClassVar[int] = 3
    position_measures: ClassVar = tuple(Measure(name, QUATERNION) for name in ("qw", "qx", "qy", "qz"))
    velocity_measures: ClassVar = tuple(Measure(name, ANGLE) for name in ("qx", "qy", "qz"))
    span: ClassVar = (0, 1, 2)
    formats: ClassVar = {
        "urdf": FormatEntry("spherical", also=("ball",), loop="spherical", extension="spherical joints"),
        "sdf": FormatEntry("ball"),
        "mjcf": FormatEntry("ball", loop="connect"),
        "pinocchio": FormatEntry("JointModelSpherical"),
    }

    def symbol(self) -> drawing.Drawing:
        return drawing.Drawing((drawing.Ball(1.3),), colour=drawing.TURNING)

    def transform(self, q: Coordinates) -> Transform:
        return Transform((Orientation(quat.rotation_matrix(q)),))

    def motion(self, q: Coordinates) -> tuple[Motion, ...]:
        return tuple(Motion(Vector3(*axis), ZERO) for axis in np.eye(3).tolist())

    def q_rate(self, q: Coordinates, v: Coordinates) -> list[Scalar]:
        return quat.rate(q, Vector3(*v))

    def neutral(self) -> tuple[float, ...]:
        return (1.0, 0.0, 0.0, 0.0)

    def integrate(self, q: Coordinates, v: Coordinates, dt: Scalar) -> list[Scalar]:
        return quat.normalized(quat.product(q, quat.exponential(Vector3(*v) * dt)))

    def difference(self, q0: Coordinates, q1: Coordinates) -> list[Scalar]:
        return list(quat.logarithm(quat.product(quat.conjugate(quat.normalized(q0)), quat.normalized(q1))))

    def closure(self, rotation: Matrix3, position: Vector3) -> list[Scalar]:
        return list(position)

    def random(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        q = rng.normal(size=(*shape, 4))
        return q / np.linalg.norm(q, axis=-1, keepdims=True)

    def regroupable(self, inertia: RigidInertia) -> RigidInertia:
        return inertia._replace(h=ZERO, moment=NO_INERTIA.moment)
