"""Forces that hold links up against gravity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...mechanism import GravityCompensation
from ..scalar import Scalar
from ..spatial import Force, Vector3
from .law import ForceLaw, Situation


@dataclass(frozen=True)
class HoldingUp(ForceLaw):
    """Minus ``mass`` times gravity at a point of a link: like mass that gravity does not pull at."""

    record: GravityCompensation
    looks_at_gravity = True

    def frames(self) -> tuple[str, ...]:
        return (self.record.link,)

    def act(self, at: Situation, ctrl: Sequence[Scalar] = (), activation: Sequence[Scalar] = ()) -> Sequence[Scalar]:
        rotation, _ = at.pose(self.record.link)
        force = rotation.T @ (at.tree.gravity * -self.record.mass)
        at.push_frame(self.record.link, Force(Vector3(*self.record.point).cross(force), force))
        return ()

    def energy(self, at: Situation) -> Scalar:
        rotation, position = at.pose(self.record.link)
        return at.tree.gravity.dot(position + rotation @ Vector3(*self.record.point)) * self.record.mass
