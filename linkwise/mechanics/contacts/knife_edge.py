"""Knife edge: a blade that moves only along its own direction, like skates and sledge runners."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..joints.protocol import unit_axis
from ..scalar import Scalar, sqrt
from ..spatial import ZERO, Force, Matrix3, Vector3
from .protocol import Contact


@dataclass(frozen=True)
class KnifeEdge(Contact):
    """The origin of ``pose_b`` has no velocity across the blade, along the plane z = 0 of ``pose_a``.

    direction   of the blade in ``pose_b``; what counts is its projection on the plane
    contact     whether the origin of ``pose_b`` is kept on the plane too; False where joints keep it there already

    Constraints: the height (if ``contact``), then the velocity across the blade.
    """

    direction: Sequence[float] = (1.0, 0.0, 0.0)
    contact: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "direction", unit_axis(self.direction, "the direction of a knife edge"))

    @property
    def n_constraints(self) -> int:
        return 1 + int(self.contact)

    def closure(self, rotation: Matrix3, position: Vector3) -> list[Scalar]:
        return [position.z] if self.contact else []

    def sliding(self, rotation: Matrix3, position: Vector3) -> list[Force]:
        blade = rotation @ Vector3(*self.direction)
        length = sqrt(blade.x * blade.x + blade.y * blade.y)
        return [Force(ZERO, Vector3(-(blade.y / length), blade.x / length, 0.0))]
