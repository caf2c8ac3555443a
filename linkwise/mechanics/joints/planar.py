"""Planar joint: two translations in a plane and a rotation about its normal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from ..scalar import Scalar
from ..spatial import ZERO, Matrix3, Motion, RigidInertia, Transform, Translation, Vector3, rotation_about
from ..spatial.motion import NO_MOTION
from . import drawing
from .protocol import (
    ANGLE,
    LENGTH,
    Alignment,
    Coordinates,
    FormatEntry,
    Joint,
    Measure,
    Step,
    align_z,
    unit_axis,
)


@dataclass(frozen=True)
class Planar(Joint):
    """``q = [x, y, angle]``: first the translation in the plane, then the rotation about ``normal``; ``v`` = dq/dt.

    x and y are measured along the first two axes of the canonical frame (``alignment``): the link's own
    x and y for a normal along z.
    """

    normal: Sequence[float] = (0.0, 0.0, 1.0)
    nq: ClassVar[int] = 3
    nv: ClassVar[int] = 3
    position_measures: ClassVar = (Measure("x", LENGTH), Measure("y", LENGTH), Measure("angle", ANGLE))
    span: ClassVar = (2, 3, 4)
    slides: ClassVar[bool] = True
    canonical_numbers: ClassVar = ()
    formats: ClassVar = {"urdf": FormatEntry("planar", ("normal",), loop="planar", along_z=True)}

    def __post_init__(self) -> None:
        object.__setattr__(self, "normal", unit_axis(self.normal, "the normal of a planar joint"))

    @cached_property
    def alignment(self) -> Alignment:
        return align_z(self.normal)

    @property
    def steps(self) -> tuple[Step, ...]:
        x, y, z = zip(*self.alignment, strict=True)
        return Step(LENGTH, x, 0), Step(LENGTH, y, 1), Step(ANGLE, z, 2)

    def symbol(self) -> drawing.Drawing:
        return drawing.Drawing(
            (drawing.Box(self.normal, (2.0, 2.0, 0.25)),),
            centre_lines=(drawing.CentreLine(self.normal, 2.4),),
            way=True,
            colour=drawing.SLIDING,
            ground=drawing.HOVERS,
        )

    def transform(self, q: Coordinates) -> Transform:
        return Transform((Translation(Vector3(q[0], q[1], 0.0)), rotation_about(2, q[2])))

    def motion(self, q: Coordinates) -> tuple[Motion, ...]:
        rotation = rotation_about(2, q[2])
        return (
            Motion(ZERO, rotation.vector_into(Vector3(1.0, 0.0, 0.0))),
            Motion(ZERO, rotation.vector_into(Vector3(0.0, 1.0, 0.0))),
            Motion(Vector3(0.0, 0.0, 1.0), ZERO),
        )

    def motion_rate(self, q: Coordinates, v: Coordinates) -> tuple[Motion, ...]:
        def rotating(column: Motion) -> Motion:
            return Motion(ZERO, Vector3(column.linear.y * v[2], -(column.linear.x * v[2]), 0.0))

        along_x, along_y, _ = self.motion(q)
        return rotating(along_x), rotating(along_y), NO_MOTION

    def closure(self, rotation: Matrix3, position: Vector3) -> list[Scalar]:
        return [position.z, rotation.x.z, rotation.y.z]

    def loop_alignment(self, rotation: Matrix3, position: Vector3) -> Scalar:
        return rotation.z.z

    def random(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        return rng.uniform(-1.0, 1.0, (*shape, 3)) * (1.0, 1.0, math.pi)

    def regroupable(self, inertia: RigidInertia) -> RigidInertia:
        return inertia.on_the_z_axis(massive=False)
