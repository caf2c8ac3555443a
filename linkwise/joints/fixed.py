"""Fixed joint: no freedom.  Links behind it are welded when a mechanism is built; it may also close a loop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..spatial import Motion, Transform
from .protocol import Coordinates, Joint


@dataclass(frozen=True)
class Fixed(Joint):
    """``q`` and ``v`` are empty."""

    nq: ClassVar[int] = 0
    nv: ClassVar[int] = 0
    span: ClassVar = ()

    def transform(self, q: Coordinates) -> Transform:
        return Transform()

    def motion(self, q: Coordinates) -> tuple[Motion, ...]:
        return ()
