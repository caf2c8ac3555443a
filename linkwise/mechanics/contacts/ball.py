"""Balls that roll on a plane without slip."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..scalar import Scalar
from ..spatial import Force, Matrix3, Vector3
from .protocol import Contact, positive_length


@dataclass(frozen=True)
class Ball(Contact):
    """A ball whose centre is the origin of ``pose_b`` rolls on the plane z = 0 of ``pose_a``, from above.

    Constraints: the height of its lowest point (if ``contact``), then the velocity of the material point there along x
    and y of ``pose_a``.  It may spin about the normal.
    """

    radius: float
    contact: bool = True
    lengths: ClassVar = ("radius",)

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", positive_length("the radius of a ball", self.radius))

    @property
    def n_constraints(self) -> int:
        return 2 + int(self.contact)

    def closure(self, rotation: Matrix3, position: Vector3) -> list[Scalar]:
        return [position.z - self.radius] if self.contact else []

    def sliding(self, rotation: Matrix3, position: Vector3) -> list[Force]:
        touching = Vector3(0.0, 0.0, -self.radius)
        return [
            Force(touching.cross(direction), direction)
            for direction in (Vector3(1.0, 0.0, 0.0), Vector3(0.0, 1.0, 0.0))
        ]
