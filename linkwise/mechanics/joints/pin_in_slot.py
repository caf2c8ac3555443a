"""Pin-in-slot joint: a distance along a slot of the parent side, and an angle about a pin of the child side."""

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
from .protocol import ANGLE, LENGTH, Alignment, Coordinates, Joint, Measure, Step, align_xz, unit_axis


@dataclass(frozen=True)
class PinInSlot(Joint):
    """``q = [distance, angle]``: first along ``slide_axis``, then about ``pin_axis`` (both in the link frame at zero),
    ``v`` their rates.

    The slot does not rotate with the pin.  The axes may have any angle but must not be parallel.
    """

    slide_axis: Sequence[float] = (1.0, 0.0, 0.0)
    pin_axis: Sequence[float] = (0.0, 0.0, 1.0)
    nq: ClassVar[int] = 2
    nv: ClassVar[int] = 2
    position_measures: ClassVar = (Measure("distance", LENGTH), Measure("angle", ANGLE))
    slides: ClassVar[bool] = True
    canonical_numbers: ClassVar = ("slot",)

    def __post_init__(self) -> None:
        object.__setattr__(self, "slide_axis", unit_axis(self.slide_axis, "the slide axis of a pin-in-slot joint"))
        object.__setattr__(self, "pin_axis", unit_axis(self.pin_axis, "the pin axis of a pin-in-slot joint"))
        if np.linalg.norm(np.cross(self.slide_axis, self.pin_axis)) < 1e-6:
            raise ValueError("the axes of a pin-in-slot joint must not be parallel; use a cylindrical joint instead")

    @cached_property
    def alignment(self) -> Alignment:
        """z along the pin, x in the plane of pin and slot."""
        return align_xz(self.slide_axis, self.pin_axis)[0]

    @cached_property
    def slot(self) -> Vector3:
        """The slot's direction in the canonical frame of the parent side: (sin b, 0, cos b)."""
        return Vector3(*align_xz(self.slide_axis, self.pin_axis)[1])

    @property
    def steps(self) -> tuple[Step, ...]:
        return Step(LENGTH, self.slide_axis, 0), Step(ANGLE, self.pin_axis, 1)  # type: ignore[arg-type]

    def symbol(self) -> drawing.Drawing:
        """A pin between the two sides of its slot."""
        pin = self.pin_axis
        return drawing.Drawing(
            (drawing.Cylinder(pin, 0.8, 2.6),),
            tuple(drawing.Rail(self.slide_axis, 4.2, (pin, side * 1.1), fixed=True) for side in (-1, 1)),
            centre_lines=(drawing.CentreLine(pin, 3.4),),
            colour=drawing.SLIDING,
            ground=drawing.GUIDED,
        )

    def transform(self, q: Coordinates) -> Transform:
        return Transform((Translation(self.slot * q[0]), rotation_about(2, q[1])))

    def motion(self, q: Coordinates) -> tuple[Motion, ...]:
        along = rotation_about(2, q[1]).vector_into(self.slot)
        return (Motion(ZERO, along), Motion(Vector3(0.0, 0.0, 1.0), ZERO))

    def motion_rate(self, q: Coordinates, v: Coordinates) -> tuple[Motion, ...]:
        along = self.motion(q)[0].linear
        return Motion(ZERO, Vector3(along.y * v[1], -(along.x * v[1]), 0.0)), NO_MOTION

    def closure(self, rotation: Matrix3, position: Vector3) -> list[Scalar]:
        """The pin stays in the slot and keeps its direction."""
        slot = self.slot
        across = position.z * slot.x - position.x * slot.z
        return [across, position.y, rotation.x.z, rotation.y.z]

    def loop_alignment(self, rotation: Matrix3, position: Vector3) -> Scalar:
        return rotation.z.z

    def random(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        return rng.uniform(-1.0, 1.0, (*shape, 2)) * (1.0, math.pi)

    def regroupable(self, inertia: RigidInertia) -> RigidInertia:
        return inertia.on_the_z_axis(massive=False)
