"""Prismatic joint: one distance along an axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from ..scalar import Scalar
from ..spatial import ZERO, Matrix3, Motion, RigidInertia, Transform, Translation, Vector3
from . import drawing
from .protocol import (
    LENGTH,
    Alignment,
    Coordinates,
    FormatEntry,
    Joint,
    Measure,
    Step,
    align_z,
    rotation_cosine,
    rotation_error,
    unit_axis,
)


@dataclass(frozen=True)
class Prismatic(Joint):
    """``q`` is the distance along ``axis`` (given in the link frame), ``v`` its rate."""

    axis: Sequence[float] = (0.0, 0.0, 1.0)
    nq: ClassVar[int] = 1
    nv: ClassVar[int] = 1
    position_measures: ClassVar = (Measure("", LENGTH),)
    span: ClassVar = (5,)
    slides: ClassVar[bool] = True
    canonical_numbers: ClassVar = ()
    formats: ClassVar = {
        "urdf": FormatEntry("prismatic", ("axis",), loop="prismatic"),
        "sdf": FormatEntry("prismatic", ("axis",)),
        "mjcf": FormatEntry("slide", ("axis",)),
    }

    def __post_init__(self) -> None:
        object.__setattr__(self, "axis", unit_axis(self.axis, "the axis of a prismatic joint"))

    @cached_property
    def alignment(self) -> Alignment:
        return align_z(self.axis)

    @property
    def steps(self) -> tuple[Step, ...]:
        return (Step(LENGTH, self.axis),)  # type: ignore[arg-type]

    def symbol(self) -> drawing.Drawing:
        slider, rail = drawing.Box(self.axis, (0.9, 0.9, 1.9)), drawing.Rail(self.axis, 3.4)
        return drawing.Drawing((slider,), (rail,), colour=drawing.SLIDING, ground=drawing.GUIDED)

    def transform(self, q: Coordinates) -> Transform:
        return Transform((Translation(Vector3(0.0, 0.0, q[0])),))

    def motion(self, q: Coordinates) -> tuple[Motion, ...]:
        return (Motion(ZERO, Vector3(0.0, 0.0, 1.0)),)

    def closure(self, rotation: Matrix3, position: Vector3) -> list[Scalar]:
        return [position.x, position.y, *rotation_error(rotation)]

    def loop_alignment(self, rotation: Matrix3, position: Vector3) -> Scalar:
        return rotation_cosine(rotation)

    def random(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        return rng.uniform(-1.0, 1.0, (*shape, 1))

    def regroupable(self, inertia: RigidInertia) -> RigidInertia:
        return RigidInertia(0.0, ZERO, inertia.moment)
