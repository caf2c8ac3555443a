"""Drawings of joints as data: solids and lines in units of the pin radius, along directions of the link frame.

Viewers place them at the joint.  Parts move with the moving side unless they are ``fixed``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

Direction = Sequence[float]

#: Meanings of colours; viewers choose the colours.
PLAIN, SLIDING, TURNING, UNKNOWN = "plain", "sliding", "turning", "unknown"
#: Drawing at a fixed side on the ground: hatching under the joint, hatching along its rail, or nothing.
STANDS, GUIDED, HOVERS = "stands", "guided", "hovers"


class Cylinder(NamedTuple):
    """A cylinder about an axis, with its centre ``at`` along the axis."""

    axis: Direction
    radius: float
    length: float
    at: float = 0.0
    fixed: bool = False

    @property
    def shape(self) -> str:
        return "cylinder"


class Box(NamedTuple):
    """A box with three half sides, the last along the axis; without an axis along the moving side's axes."""

    axis: Direction | None
    half: tuple[float, float, float]
    fixed: bool = False

    @property
    def shape(self) -> str:
        return "box"


class Ball(NamedTuple):
    """About the origin of the joint."""

    radius: float
    fixed: bool = False

    @property
    def shape(self) -> str:
        return "ball"


class Octahedron(NamedTuple):
    """Along the axes of the world."""

    radius: float
    fixed: bool = False

    @property
    def shape(self) -> str:
        return "octahedron"


class Rail(NamedTuple):
    """The straight rail along which the joint slides, extending ``beyond`` its ends. ``across`` = (pin, distance): the
    rail is offset in the direction across its axis and the pin, a direction of the moving side."""

    axis: Direction
    beyond: float
    across: tuple[Direction, float] | None = None
    fixed: bool = False


class Thread(NamedTuple):
    """A screw thread: three turns about an axis, right-handed or not, from -half to half."""

    axis: Direction
    radius: float
    half: float
    right: bool = True


class CentreLine(NamedTuple):
    """The centre line of an axis, ``half`` to either side."""

    axis: Direction
    half: float
    fixed: bool = False


@dataclass(frozen=True)
class Drawing:
    """solids         bodies of the joint; the fixed side's come first
    rails          along which it slides
    threads        around it
    centre_lines   of its axes
    way            whether a line leads from its fixed to its moving side, where nothing guides it
    colour         of the solids: PLAIN, SLIDING, TURNING or UNKNOWN
    ground         drawing at a fixed side on the ground: STANDS, GUIDED or HOVERS"""

    solids: tuple[Cylinder | Box | Ball | Octahedron, ...]
    rails: tuple[Rail, ...] = ()
    threads: tuple[Thread, ...] = ()
    centre_lines: tuple[CentreLine, ...] = ()
    way: bool = False
    colour: str = PLAIN
    ground: str = STANDS

    @property
    def is_guided(self) -> bool:
        """Whether the drawing on the ground is a rail."""
        return self.ground == GUIDED

    @property
    def hovers(self) -> bool:
        """Whether nothing is drawn on the ground."""
        return self.ground == HOVERS
