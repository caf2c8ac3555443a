"""Universal joint: an angle about an axis of the parent side, then one about an axis of the child side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from ..scalar import Scalar, cos, sin
from ..spatial import ZERO, Matrix3, Motion, RigidInertia, Rotation, Transform, Vector3, rotation_about
from ..spatial.inertia import NO_INERTIA
from ..spatial.motion import NO_MOTION
from . import drawing
from .protocol import ANGLE, Alignment, Coordinates, FormatEntry, Joint, Measure, Step, align_xz, unit_axis


@dataclass(frozen=True)
class Universal(Joint):
    """``q`` = angles about ``axis1``, then about ``axis2`` (both in the link frame at zero), ``v`` their rates.

    The axes may have any angle but must not be parallel.
    """

    axis1: Sequence[float] = (1.0, 0.0, 0.0)
    axis2: Sequence[float] = (0.0, 1.0, 0.0)
    nq: ClassVar[int] = 2
    nv: ClassVar[int] = 2
    position_measures: ClassVar = (Measure("1", ANGLE), Measure("2", ANGLE))
    canonical_numbers: ClassVar = ("first_axis",)
    formats: ClassVar = {
        "sdf": FormatEntry("universal", ("axis1", "axis2"), also=("revolute2",)),
        "pinocchio": FormatEntry("JointModelUniversal", ("axis1", "axis2"), square=True),
    }

    def __post_init__(self) -> None:
        object.__setattr__(self, "axis1", unit_axis(self.axis1, "the first axis of a universal joint"))
        object.__setattr__(self, "axis2", unit_axis(self.axis2, "the second axis of a universal joint"))
        if np.linalg.norm(np.cross(self.axis1, self.axis2)) < 1e-6:
            raise ValueError("the two axes of a universal joint must not be parallel; use a revolute joint instead")

    @cached_property
    def alignment(self) -> Alignment:
        """z along the second axis, x in the plane of both."""
        return align_xz(self.axis1, self.axis2)[0]

    @cached_property
    def first_axis(self) -> Vector3:
        """axis1 in the canonical frame at zero: (sin b, 0, cos b)."""
        return Vector3(*align_xz(self.axis1, self.axis2)[1])

    @property
    def steps(self) -> tuple[Step, ...]:
        return Step(ANGLE, self.axis1, 0), Step(ANGLE, self.axis2, 1)  # type: ignore[arg-type]

    def symbol(self) -> drawing.Drawing:
        axes = ((self.axis1, True), (self.axis2, False))  # the first axis moves with the parent side
        return drawing.Drawing(
            tuple(drawing.Cylinder(axis, 0.45, 3.4, fixed=fixed) for axis, fixed in axes),
            centre_lines=tuple(drawing.CentreLine(axis, 3.0, fixed) for axis, fixed in axes),
            colour=drawing.TURNING,
        )

    def transform(self, q: Coordinates) -> Transform:
        first = self.first_axis
        if first.z == 0.0:
            return Transform((rotation_about(0, q[0]), rotation_about(2, q[1])))
        tilt = Rotation(1, first.z, first.x)  # takes z to the first axis
        return Transform((tilt, rotation_about(2, q[0]), tilt.inverse(), rotation_about(2, q[1])))

    def motion(self, q: Coordinates) -> tuple[Motion, ...]:
        first = rotation_about(2, q[1]).vector_into(self.first_axis)
        return (Motion(first, ZERO), Motion(Vector3(0.0, 0.0, 1.0), ZERO))

    def motion_rate(self, q: Coordinates, v: Coordinates) -> tuple[Motion, ...]:
        rate = self.first_axis.x * v[1]
        return Motion(Vector3(-(sin(q[1]) * rate), -(cos(q[1]) * rate), 0.0), ZERO), NO_MOTION

    def closure(self, rotation: Matrix3, position: Vector3) -> list[Scalar]:
        """The second axis keeps its angle to the first."""
        first = self.first_axis
        second = Vector3(rotation.x.z, rotation.y.z, rotation.z.z)
        return [*position, first.dot(second) - first.z]

    def regroupable(self, inertia: RigidInertia) -> RigidInertia:
        return inertia._replace(h=ZERO, moment=NO_INERTIA.moment)
