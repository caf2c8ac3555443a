"""Joints as small solids and lines, in the world.  No matplotlib here: a canvas paints them, flat or in space."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .shapes import Solid, axis_frame, ball, box, cylinder, octahedron
from .skeleton import JointMark, is_free
from .style import ORANGE, SKY

COLOURS = {"plain": "#F7F7F7", "sliding": SKY, "turning": ORANGE, "unknown": "#BBBBBB"}
POINT = 0.7  # radius of the dot at a named point of a link, in units of that of a pin


@dataclass(frozen=True)
class Symbol:
    """A joint as solids and lines.

    solids    body of the joint
    rails     (m, 2, 3): guides of slides
    threads   polylines (k, 3) around screws
    ways      (m, 2, 3): from the joint's fixed side to its moving side, for joints without a guide
    axes      (m, 2, 3): centre lines of its axes
    colour    of the solids
    n_fixed   count of the solids, the first ones, on the joint's fixed side
    """

    solids: list[Solid]
    rails: list[np.ndarray] = field(default_factory=list)
    threads: list[np.ndarray] = field(default_factory=list)
    ways: list[np.ndarray] = field(default_factory=list)
    axes: list[np.ndarray] = field(default_factory=list)
    colour: str = "#F7F7F7"
    n_fixed: int = 0


def symbol(mark: JointMark, size: float) -> Symbol:
    """The symbol of a joint (``Joint.symbol``) in the world; ``size`` metres is the radius of a pin."""
    drawn = mark.kind.symbol()
    centre_lines = [(_direction(mark, line), line.half * size) for line in drawn.centre_lines]
    rails = [_rail(mark, rail, size) for rail in drawn.rails]
    if mark.guides_only and rails:
        return Symbol([], rails=rails)
    return Symbol(
        [_solid(mark, solid, size) for solid in drawn.solids],
        rails,
        [_thread(mark, thread, size) for thread in drawn.threads],
        [np.array([mark.start[:3, 3], mark.origin])] if drawn.way and not is_free(mark) else [],
        [np.array([mark.origin - half * axis, mark.origin + half * axis]) for axis, half in centre_lines],
        COLOURS[drawn.colour],
        sum(solid.fixed for solid in drawn.solids),
    )


def _direction(mark: JointMark, part: Any) -> np.ndarray:
    """The axis of a part, in the world."""
    return (mark.start if part.fixed else mark.end)[:3, :3] @ np.asarray(part.axis)


def _solid(mark: JointMark, part: Any, size: float) -> Solid:
    if part.shape == "ball":
        return ball(mark.origin, part.radius * size)
    if part.shape == "octahedron":
        return octahedron(mark.origin, part.radius * size)
    if part.shape == "box":
        side = mark.start if part.fixed else mark.end
        frame = side[:3, :3] if part.axis is None else axis_frame(_direction(mark, part))
        return box(mark.origin, frame, tuple(half * size for half in part.half))
    axis = _direction(mark, part)
    centre = mark.origin + part.at * size * axis if part.at else mark.origin
    return cylinder(centre, axis, part.radius * size, part.length * size)


def _rail(mark: JointMark, part: Any, size: float) -> np.ndarray:
    """(2, 3): a straight guide through the joint's zero, its position and the ends of its travel, and a bit beyond."""
    axis = _direction(mark, part)
    zero = float((mark.start[:3, 3] - mark.origin) @ axis)
    stops = [0.0, zero, *(zero + end for end in mark.travel or ())]
    middle = mark.origin + np.outer([min(stops) - part.beyond * size, max(stops) + part.beyond * size], axis)
    if part.across is None:
        return middle
    across = np.cross(mark.end[:3, :3] @ np.asarray(part.across[0]), axis)
    return middle + part.across[1] * size * (across / np.linalg.norm(across))


def _thread(mark: JointMark, part: Any, size: float) -> np.ndarray:
    """(61, 3): three turns of a helix around the joint's axis."""
    axis = mark.end[:3, :3] @ np.asarray(part.axis)
    turns = np.linspace(0.0, 6.0 * np.pi, 61)
    handed = 1.0 if part.right else -1.0
    circle = np.stack([np.cos(turns), handed * np.sin(turns)])
    advance = np.outer(np.linspace(-part.half, part.half, 61) * size, axis)
    return mark.origin + part.radius * size * (axis_frame(axis)[:, :2] @ circle).T + advance
