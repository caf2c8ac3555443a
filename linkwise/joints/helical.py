"""Helical (screw) joint: a turn about an axis together with an advance along it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ..spatial import Motion, Transform, Translation, Vector3, rotation_about
from .protocol import Coordinates, Joint, align_z, unit_axis


@dataclass(frozen=True)
class Helical(Joint):
    """``q`` is the angle about ``axis``; the advance along it is ``pitch * q`` (metres per radian)."""

    axis: Sequence[float] = (0.0, 0.0, 1.0)
    pitch: float = 0.0
    nq: ClassVar[int] = 1
    nv: ClassVar[int] = 1
    slides: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "axis", unit_axis(self.axis, "the axis of a helical joint"))
        pitch = float(self.pitch)
        if not math.isfinite(pitch):
            raise ValueError(f"the pitch of a helical joint must be finite (metres per radian), got {pitch}")
        object.__setattr__(self, "pitch", pitch)

    @property
    def alignment(self):
        return align_z(self.axis)

    def transform(self, q: Coordinates) -> Transform:
        return Transform((Translation(Vector3(0.0, 0.0, self.pitch * q[0])), rotation_about(2, q[0])))

    def motion(self, q: Coordinates) -> tuple[Motion, ...]:
        return (Motion(Vector3(0.0, 0.0, 1.0), Vector3(0.0, 0.0, self.pitch)),)
