"""Helical (screw) joint: a rotation about an axis together with an advance along it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from ..scalar import Scalar, cos, select, sin
from ..spatial import Matrix3, Motion, RigidInertia, Transform, Translation, Vector3, rotation_about
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
class Helical(Joint):
    """``q`` is the angle about ``axis``; the advance along it is ``pitch * q`` (metres per radian)."""

    axis: Sequence[float] = (0.0, 0.0, 1.0)
    pitch: float = 0.0
    nq: ClassVar[int] = 1
    nv: ClassVar[int] = 1
    position_measures: ClassVar = (Measure("", ANGLE),)
    slides: ClassVar[bool] = True
    canonical_numbers: ClassVar = ("pitch",)
    lengths: ClassVar = ("pitch",)
    formats: ClassVar = {
        "sdf": FormatEntry("screw", ("axis",), (("pitch", "screw_thread_pitch", 2.0 * math.pi),)),
        "pinocchio": FormatEntry("JointModelHelicalUnaligned", ("axis",), (("pitch", "pitch", 1.0),)),
    }

    def __post_init__(self) -> None:
        object.__setattr__(self, "axis", unit_axis(self.axis, "the axis of a helical joint"))
        pitch = float(self.pitch)
        if not math.isfinite(pitch):
            raise ValueError(f"the pitch of a helical joint must be finite (metres per radian), got {pitch}")
        object.__setattr__(self, "pitch", pitch)

    @cached_property
    def alignment(self) -> Alignment:
        return align_z(self.axis)

    @property
    def steps(self) -> tuple[Step, ...]:
        return Step(ANGLE, self.axis), Step(LENGTH, self.axis, ratio=self.pitch, name="advance")  # type: ignore[arg-type]

    def symbol(self) -> drawing.Drawing:
        return drawing.Drawing(
            (drawing.Cylinder(self.axis, 0.8, 3.6),),
            (drawing.Rail(self.axis, 3.4),),
            (drawing.Thread(self.axis, 1.15, 1.8, right=not self.pitch < 0.0),),
        )

    def transform(self, q: Coordinates) -> Transform:
        return Transform((Translation(Vector3(0.0, 0.0, self.pitch * q[0])), rotation_about(2, q[0])))

    def motion(self, q: Coordinates) -> tuple[Motion, ...]:
        return (Motion(Vector3(0.0, 0.0, 1.0), Vector3(0.0, 0.0, self.pitch)),)

    def closure(self, rotation: Matrix3, position: Vector3) -> list[Scalar]:
        """The advance agrees with the angle up to whole turns of the screw, so any number of turns is possible."""
        if self.pitch == 0.0:
            along = position.z
        else:
            along = -(self.pitch * self._lead(rotation, position)[1])
        return [position.x, position.y, rotation.x.z, rotation.y.z, along]

    def loop_alignment(self, rotation: Matrix3, position: Vector3) -> Scalar:
        if self.pitch == 0.0:
            return rotation.z.z
        agreement = self._lead(rotation, position)[0]
        return select(rotation.z.z < agreement, rotation.z.z, agreement)

    def _lead(self, rotation: Matrix3, position: Vector3) -> tuple[Scalar, Scalar]:
        """Cosine and sine of the angle by which the rotation leads the advance."""
        c, s = 0.5 * (rotation.x.x + rotation.y.y), 0.5 * (rotation.y.x - rotation.x.y)
        angle = position.z * (1.0 / self.pitch)
        return c * cos(angle) + s * sin(angle), s * cos(angle) - c * sin(angle)

    def regroupable(self, inertia: RigidInertia) -> RigidInertia:
        return inertia.on_the_z_axis(massive=False)
