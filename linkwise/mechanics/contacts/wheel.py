"""Wheels that roll on a plane without slip."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ..joints.protocol import unit_axis
from ..scalar import Scalar, sqrt
from ..spatial import Force, Matrix3, Vector3
from .protocol import Contact, positive_length

GRIPS = {"full": (True, True), "forward": (True, False), "lateral": (False, True), "none": (False, False)}


@dataclass(frozen=True)
class Wheel(Contact):
    """A wheel whose centre is the origin of ``pose_b`` rolls on the plane z = 0 of ``pose_a``, from above.

    radius    from the centre to where an upright wheel touches the plane
    axis      of the wheel, in ``pose_b``; (0, 1, 0) with the plane's z upwards rolls forward along x
    crown     radius of the tyre's cross-section: 0 for a thin disk, a torus otherwise
    grip      "full": the point that touches does not slip; "forward": it slips sideways, as omni wheels do;
              "lateral": it slips along the plane of the wheel, as skates do; "none"
    contact   whether the wheel is kept on the plane too; False where joints keep it there already

    Constraints: the height of its lowest point, then the velocity of the material point there, along the wheel and
    across.  A wheel that lies flat has no direction to roll in: that is a singular position.
    """

    radius: float
    axis: Sequence[float] = (0.0, 1.0, 0.0)
    crown: float = 0.0
    grip: str = "full"
    contact: bool = True
    lengths: ClassVar = ("radius", "crown")

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", positive_length("the radius of a wheel", self.radius))
        object.__setattr__(self, "axis", unit_axis(self.axis, "the axis of a wheel"))
        object.__setattr__(self, "crown", float(self.crown))
        if not 0.0 <= self.crown <= self.radius:
            raise ValueError(f"the crown of a wheel is from 0 to its radius, {self.radius:g}, not {self.crown:g}")
        if self.grip not in GRIPS:
            raise ValueError(f"unknown grip {self.grip!r} of a wheel; available: {', '.join(GRIPS)}")
        if not self.n_constraints:
            raise ValueError("a wheel without contact and grip constrains nothing; leave it out")

    @property
    def n_constraints(self) -> int:
        return int(self.contact) + sum(GRIPS[self.grip])

    def closure(self, rotation: Matrix3, position: Vector3) -> list[Scalar]:
        if not self.contact:
            return []
        axis = rotation @ Vector3(*self.axis)
        return [position.z - (self.radius - self.crown) * _upright(axis) - self.crown]

    def sliding(self, rotation: Matrix3, position: Vector3) -> list[Force]:
        axis = rotation @ Vector3(*self.axis)
        upright, ring = _upright(axis), self.radius - self.crown
        across = Vector3(axis.x / upright, axis.y / upright, 0.0)
        touching = across * (ring * axis.z) + Vector3(0.0, 0.0, -(ring * upright) - self.crown)
        forward = Vector3(across.y, -across.x, 0.0)
        along = (direction for direction, grips in zip((forward, across), GRIPS[self.grip], strict=True) if grips)
        return [Force(touching.cross(direction), direction) for direction in along]


def _upright(axis: Vector3) -> Scalar:
    """The sine of the angle between the axis of a wheel and the normal of the plane: 1 if upright, 0 if flat."""
    return sqrt(axis.x * axis.x + axis.y * axis.y)
