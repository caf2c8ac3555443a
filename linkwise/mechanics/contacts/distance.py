"""Distance: two points that stay as far apart as they are, as the ends of a rod without mass do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..scalar import Scalar, sqrt
from ..spatial import Matrix3, Vector3
from .protocol import Contact, positive_length

NOWHERE = 1e-120  # square metres: points that coincide have no direction from one to the other, but rates all the same


@dataclass(frozen=True)
class Distance(Contact):
    """The origins of ``pose_a`` and ``pose_b`` stay ``length`` apart: one constraint.

    A ``drive`` of the loop moves it: the distance is then the length, which may be 0, plus the drive's position.
    """

    length: float = 0.0
    lengths: ClassVar = ("length",)

    def __post_init__(self) -> None:
        if self.length != 0.0:
            object.__setattr__(self, "length", positive_length("a distance", self.length))

    @property
    def n_constraints(self) -> int:
        return 1

    def closure(self, rotation: Matrix3, position: Vector3) -> list[Scalar]:
        return [sqrt(position.dot(position) + NOWHERE) - self.length]
