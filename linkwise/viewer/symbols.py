"""Joints as small solids and lines, in the world.  No matplotlib here: a canvas paints them, flat or in space."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .shapes import along
from .skeleton import JointMark, is_free
from .style import ORANGE, SKY

SIDES = 14  # of a round solid
COLOURS = {"plain": "#F7F7F7", "sliding": SKY, "turning": ORANGE, "unknown": "#BBBBBB"}
POINT = 0.7  # radius of the dot at a named point of a link, in units of that of a pin


@dataclass(frozen=True)
class Solid:
    """Flat faces, each (k, 3), of one convex solid; the first ``edged`` of them end at edges, the others go round."""

    faces: tuple[np.ndarray, ...]
    edged: int

    @property
    def points(self) -> np.ndarray:
        return np.concatenate(self.faces)


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
        [_solid(mark, one, size) for one in drawn.solids],
        [_placed_rail(mark, one, size) for one in drawn.rails],
        [_thread(mark, one, size) for one in drawn.threads],
        [_way(mark)] if drawn.way and not is_free(mark) else [],
        [_centre_line(mark.origin, _direction(mark, one), one.half * size) for one in drawn.centre_lines],
        COLOURS[drawn.colour],
        sum(one.fixed for one in drawn.solids),
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
        return _octahedron(mark.origin, part.radius * size)
    if part.shape == "box":
        side = mark.start if part.fixed else mark.end
        frame = side[:3, :3] if part.axis is None else along(_direction(mark, part))
        return _box(mark.origin, frame, tuple(half * size for half in part.half))
    axis = _direction(mark, part)
    centre = mark.origin + part.at * size * axis if part.at else mark.origin
    return _cylinder(centre, axis, part.radius * size, part.length * size)


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
    places = [0.0, zero, *(zero + end for end in mark.travel or ())]
    return mark.origin + np.outer([min(places) - beyond, max(places) + beyond], axis)


# -- solids -------------------------------------------------------------------------------------------


def _cylinder(centre: np.ndarray, axis: np.ndarray, radius: float, length: float) -> Solid:
    angles = np.linspace(0.0, 2.0 * np.pi, SIDES, endpoint=False)
    rim = centre + radius * (along(axis)[:, :2] @ np.stack([np.cos(angles), np.sin(angles)])).T
    low, high = rim - 0.5 * length * axis, rim + 0.5 * length * axis
    sides = [np.array([low[i - 1], low[i], high[i], high[i - 1]]) for i in range(SIDES)]
    return Solid((low[::-1], high, *sides), edged=2)


def cone(tip: np.ndarray, base: np.ndarray, radius: float) -> Solid:
    """A cone that stands on ``base``."""
    axis = (tip - base) / np.linalg.norm(tip - base)
    angles = np.linspace(0.0, 2.0 * np.pi, SIDES, endpoint=False)
    rim = base + radius * (along(axis)[:, :2] @ np.stack([np.cos(angles), np.sin(angles)])).T
    return Solid((rim[::-1], *(np.array([rim[i - 1], rim[i], tip]) for i in range(SIDES))), edged=1)


def _box(centre: np.ndarray, frame: np.ndarray, half: Sequence[float]) -> Solid:
    corners = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * half
    corners = centre + corners @ frame.T
    faces = ((0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3))
    return Solid(tuple(corners[list(face)] for face in faces), edged=6)


def ball(centre: np.ndarray, radius: float) -> Solid:
    """A ball of flat faces."""
    across, along = np.meshgrid(np.linspace(0.0, 2.0 * np.pi, 13), np.linspace(0.0, np.pi, 8))
    grid = centre + radius * np.stack(
        [np.sin(along) * np.cos(across), np.sin(along) * np.sin(across), np.cos(along)], axis=-1
    )
    return Solid(
        tuple(
            np.array([grid[i, j], grid[i + 1, j], grid[i + 1, j + 1], grid[i, j + 1]])
            for i in range(7)
            for j in range(12)
        ),
        edged=0,
    )


def _octahedron(centre: np.ndarray, radius: float) -> Solid:
    x, y, z = radius * np.eye(3)
    signs = [(a, b, c) for a in (-1, 1) for b in (-1, 1) for c in (-1, 1)]
    return Solid(tuple(centre + np.array([a * x, b * y, c * z]) for a, b, c in signs), edged=8)
