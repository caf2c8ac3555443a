"""Revolute joint: one angle about an axis (URDF: revolute and continuous)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from ..scalar import Scalar
from ..spatial import ZERO, Matrix3, Motion, RigidInertia, Transform, Vector3, rotation_about
from . import drawing
from .protocol import ANGLE, Alignment, Coordinates, FormatEntry, Joint, Measure, Step, align_z, unit_axis


@dataclass(frozen=True)
class Revolute(Joint):
    """``q`` is the angle about ``axis`` (given in the link frame), ``v`` its rate."""

    axis: Sequence[float] = (0.0, 0.0, 1.0)
    nq: ClassVar[int] = 1
    nv: ClassVar[int] = 1
    position_measures: ClassVar = (Measure("", ANGLE),)
    span: ClassVar = (2,)
    slides: ClassVar[bool] = True
    canonical_numbers: ClassVar = ()
    rotation_coordinate: ClassVar = 0
    formats: ClassVar = {
        "urdf": FormatEntry("revolute", ("axis",), unlimited="continuous", loop="revolute"),
        "sdf": FormatEntry("revolute", ("axis",), unlimited="continuous"),
        "mjcf": FormatEntry("hinge", ("axis",), loop="connect"),
    }

    def __post_init__(self) -> None:
        object.__setattr__(self, "axis", unit_axis(self.axis, "the axis of a revolute joint"))

    @cached_property
    def alignment(self) -> Alignment:
        return align_z(self.axis)

    @property
    def steps(self) -> tuple[Step, ...]:
        return (Step(ANGLE, self.axis),)  # type: ignore[arg-type]

    def symbol(self) -> drawing.Drawing:
        pin = drawing.Cylinder(self.axis, 1.0, 2.6)
        return drawing.Drawing((pin,), centre_lines=(drawing.CentreLine(self.axis, 3.4),))

    def transform(self, q: Coordinates) -> Transform:
        return Transform((rotation_about(2, q[0]),))

    def motion(self, q: Coordinates) -> tuple[Motion, ...]:
        return (Motion(Vector3(0.0, 0.0, 1.0), ZERO),)

    def closure(self, rotation: Matrix3, position: Vector3) -> list[Scalar]:
        return [*position, rotation.x.z, rotation.y.z]

    def loop_alignment(self, rotation: Matrix3, position: Vector3) -> Scalar:
        return rotation.z.z

    def regroupable(self, inertia: RigidInertia) -> RigidInertia:
        return inertia.on_the_z_axis(massive=True)
