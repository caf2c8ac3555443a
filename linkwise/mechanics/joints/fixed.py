"""Fixed joint: no degree of freedom.  Links behind it are welded when a mechanism is built; it may close a loop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..scalar import Scalar
from ..spatial import Matrix3, Motion, Transform, Vector3
from . import drawing
from .protocol import Coordinates, FormatEntry, Joint, rotation_cosine, rotation_error


@dataclass(frozen=True)
class Fixed(Joint):
    """``q`` and ``v`` are empty."""

    nq: ClassVar[int] = 0
    nv: ClassVar[int] = 0
    span: ClassVar = ()
    formats: ClassVar = {
        "urdf": FormatEntry("fixed", loop="fixed"),
        "sdf": FormatEntry("fixed"),
        "mjcf": FormatEntry("", loop="weld"),
    }

    def symbol(self) -> drawing.Drawing:
        return drawing.Drawing((drawing.Box(None, (0.8, 0.8, 0.8)),), colour=drawing.UNKNOWN)

    def transform(self, q: Coordinates) -> Transform:
        return Transform()

    def motion(self, q: Coordinates) -> tuple[Motion, ...]:
        return ()

    def closure(self, rotation: Matrix3, position: Vector3) -> list[Scalar]:
        return [*position, *rotation_error(rotation)]

    def loop_alignment(self, rotation: Matrix3, position: Vector3) -> Scalar:
        return rotation_cosine(rotation)
