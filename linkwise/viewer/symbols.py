"""Joints as small solids and lines, in the world.  No matplotlib here: a canvas paints them, flat or in space."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .shapes import Solid, along, ball, box, cylinder, octahedron
from .skeleton import JointMark, is_free
from .style import ORANGE, SKY

COLOURS = {"plain": "#F7F7F7", "sliding": SKY, "turning": ORANGE, "unknown": "#BBBBBB"}
POINT = 0.7  # radius of the dot at a named point of a link, in units of that of a pin


@dataclass(frozen=True)
class Symbol:
    """solids    what the joint is
    rails     (m, 2, 3) along which it slides
    threads   polylines (k, 3) around it
    ways      (m, 2, 3) from the joint's fixed side to its moving side, where nothing guides it
    axes      (m, 2, 3) centre lines of its axes
    colour    of the solids
    n_fixed   how many of the solids, the first ones, stay with the joint's fixed side
    """

    solids: list[Solid]
    rails: list[np.ndarray] = field(default_factory=list)
    threads: list[np.ndarray] = field(default_factory=list)
    ways: list[np.ndarray] = field(default_factory=list)
    axes: list[np.ndarray] = field(default_factory=list)
    colour: str = "#F7F7F7"
    n_fixed: int = 0


def symbol(mark: JointMark, size: float) -> Symbol:
    """The symbol of a joint, ``size`` metres being the radius of a pin: what its kind says (``Joint.symbol``), where it
    is."""
    drawn = mark.kind.symbol()
    here = Symbol(
        [_solid(mark, solid, size) for solid in drawn.solids],
        [_placed_rail(mark, rail, size) for rail in drawn.rails],
        [_thread(mark, thread, size) for thread in drawn.threads],
        [_way(mark)] if drawn.way and not is_free(mark) else [],
        [_centre_line(mark.origin, _direction(mark, line), line.half * size) for line in drawn.centre_lines],
        COLOURS[drawn.colour],
        sum(solid.fixed for solid in drawn.solids),
    )
    return Symbol([], rails=here.rails) if mark.guides_only and here.rails else here


def _direction(mark: JointMark, part: Any) -> np.ndarray:
    """The axis of a part, in the world."""
    side = mark.start if part.fixed else mark.end
    return side[:3, :3] @ np.asarray(part.axis)


def _solid(mark: JointMark, part: Any, size: float) -> Solid:
    if part.shape == "ball":
        return ball(mark.origin, part.radius * size)
    if part.shape == "octahedron":
        return octahedron(mark.origin, part.radius * size)
    if part.shape == "box":
        side = mark.start if part.fixed else mark.end
        frame = side[:3, :3] if part.axis is None else along(_direction(mark, part))
        return box(mark.origin, frame, tuple(half * size for half in part.half))
    axis = _direction(mark, part)
    centre = mark.origin + part.at * size * axis if part.at else mark.origin
    return cylinder(centre, axis, part.radius * size, part.length * size)


def _placed_rail(mark: JointMark, part: Any, size: float) -> np.ndarray:
    axis = _direction(mark, part)
    middle = _rail(mark, axis, part.beyond * size)
    if part.across is None:
        return middle
    across = np.cross(mark.end[:3, :3] @ np.asarray(part.across[0]), axis)
    return middle + part.across[1] * size * (across / np.linalg.norm(across))


def _thread(mark: JointMark, part: Any, size: float) -> np.ndarray:
    axis = mark.end[:3, :3] @ np.asarray(part.axis)
    turns = np.linspace(0.0, 6.0 * np.pi, 61)
    handed = 1.0 if part.right else -1.0
    circle = np.stack([np.cos(turns), handed * np.sin(turns)])
    advance = np.outer(np.linspace(-part.half, part.half, 61) * size, axis)
    return mark.origin + part.radius * size * (along(axis)[:, :2] @ circle).T + advance


def _centre_line(origin: np.ndarray, axis: np.ndarray, half: float) -> np.ndarray:
    return np.array([origin - half * axis, origin + half * axis])


def _way(mark: JointMark) -> np.ndarray:
    return np.array([mark.start[:3, 3], mark.origin])


def _rail(mark: JointMark, axis: np.ndarray, beyond: float) -> np.ndarray:
    """The straight way along which a joint slides: past its zero, past where it is, and past the ends of its travel."""
    zero = float((mark.start[:3, 3] - mark.origin) @ axis)
    stops = [0.0, zero, *(zero + end for end in mark.travel or ())]
    return mark.origin + np.outer([min(stops) - beyond, max(stops) + beyond], axis)
