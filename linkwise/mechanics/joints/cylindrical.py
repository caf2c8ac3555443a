"""Cylindrical joint: an angle about and a distance along one axis, independent of each other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from ..scalar import Scalar
from ..spatial import ZERO, Matrix3, Motion, RigidInertia, Transform, Translation, Vector3, rotation_about
from . import drawing
from .protocol import ANGLE, LENGTH, Alignment, Coordinates, Joint, Measure, Step, align_z, unit_axis


@dataclass(frozen=True)
class Cylindrical(Joint):
    """``q = [angle, distance]`` about and along ``axis``, ``v`` their rates."""

    axis: Sequence[float] = (0.0, 0.0, 1.0)
    nq: ClassVar[int] = 2
    nv: ClassVar[int] = 2
    position_measures: ClassVar = (Measure("angle", ANGLE), Measure("distance", LENGTH))
    span: ClassVar = (2, 5)
    slides: ClassVar[bool] = True
    canonical_numbers: ClassVar = ()
    rotation_coordinate: ClassVar = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "axis", unit_axis(self.axis, "the axis of a cylindrical joint"))

    @cached_property
    def alignment(self) -> Alignment:
        return align_z(self.axis)

    @property
    def steps(self) -> tuple[Step, ...]:
        return Step(ANGLE, self.axis, 0), Step(LENGTH, self.axis, 1)  # type: ignore[arg-type]

    def symbol(self) -> drawing.Drawing:
        pin = drawing.Cylinder(self.axis, 0.8, 3.0)
        collars = (drawing.Cylinder(self.axis, 1.25, 0.5, at=side * 1.6) for side in (-1, 1))
        return drawing.Drawing((pin, *collars), (drawing.Rail(self.axis, 3.4),), colour=drawing.SLIDING)

    def transform(self, q: Coordinates) -> Transform:
        return Transform((Translation(Vector3(0.0, 0.0, q[1])), rotation_about(2, q[0])))

    def motion(self, q: Coordinates) -> tuple[Motion, ...]:
        along = Vector3(0.0, 0.0, 1.0)
        return (Motion(along, ZERO), Motion(ZERO, along))

    def closure(self, rotation: Matrix3, position: Vector3) -> list[Scalar]:
        return [position.x, position.y, rotation.x.z, rotation.y.z]

    def loop_alignment(self, rotation: Matrix3, position: Vector3) -> Scalar:
        return rotation.z.z

    def random(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        return rng.uniform(-1.0, 1.0, (*shape, 2)) * (math.pi, 1.0)

    def regroupable(self, inertia: RigidInertia) -> RigidInertia:
        return inertia.on_the_z_axis(massive=False)
