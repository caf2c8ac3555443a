"""Joints as small solids and lines, in the world.  No matplotlib here: a canvas paints them, flat or in space."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

import linkwise as lw

from .shapes import along
from .skeleton import JointMark, is_free
from .style import ORANGE, SKY

SIDES = 14  # of a round solid
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
    """

    solids: list[Solid]
    rails: list[np.ndarray] = field(default_factory=list)
    threads: list[np.ndarray] = field(default_factory=list)
    ways: list[np.ndarray] = field(default_factory=list)
    axes: list[np.ndarray] = field(default_factory=list)
    colour: str = "#F7F7F7"


def symbol(mark: JointMark, size: float) -> Symbol:
    """The symbol of a joint, ``size`` metres being the radius of a pin."""
    for kind, draw in SYMBOLS.items():
        if isinstance(mark.kind, kind):
            drawn = draw(mark, size)
            return Symbol([], rails=drawn.rails) if mark.guides_only and drawn.rails else drawn
    return Symbol([_octahedron(mark.origin, size)], colour="#BBBBBB")


# -- the kinds ----------------------------------------------------------------------------------------


def _revolute(mark: JointMark, size: float) -> Symbol:
    axis = _moving(mark, mark.kind.axis)
    return Symbol([_cylinder(mark.origin, axis, size, 2.6 * size)], axes=[_centre_line(mark.origin, axis, 3.4 * size)])


def _prismatic(mark: JointMark, size: float) -> Symbol:
    axis = _moving(mark, mark.kind.axis)
    frame = along(axis)
    slider = _box(mark.origin, frame, (0.9 * size, 0.9 * size, 1.9 * size))
    return Symbol([slider], [_rail(mark, axis, 3.4 * size)], colour=SKY)


def _cylindrical(mark: JointMark, size: float) -> Symbol:
    axis = _moving(mark, mark.kind.axis)
    collars = [_cylinder(mark.origin + side * 1.6 * size * axis, axis, 1.25 * size, 0.5 * size) for side in (-1, 1)]
    return Symbol(
        [_cylinder(mark.origin, axis, 0.8 * size, 3.0 * size), *collars],
        [_rail(mark, axis, 3.4 * size)],
        colour=SKY,
    )


def _helical(mark: JointMark, size: float) -> Symbol:
    axis = _moving(mark, mark.kind.axis)
    across = along(axis)[:, :2]
    turns = np.linspace(0.0, 6.0 * np.pi, 61)
    handed = -1.0 if mark.kind.pitch < 0.0 else 1.0
    circle = np.stack([np.cos(turns), handed * np.sin(turns)])
    thread = mark.origin + 1.15 * size * (across @ circle).T + np.outer(np.linspace(-1.8, 1.8, 61) * size, axis)
    pin = _cylinder(mark.origin, axis, 0.8 * size, 3.6 * size)
    return Symbol([pin], [_rail(mark, axis, 3.4 * size)], [thread])


def _spherical(mark: JointMark, size: float) -> Symbol:
    return Symbol([ball(mark.origin, 1.3 * size)], colour=ORANGE)


def _universal(mark: JointMark, size: float) -> Symbol:
    axes = (mark.start[:3, :3] @ mark.kind.axis1, _moving(mark, mark.kind.axis2))
    return Symbol(
        [_cylinder(mark.origin, axis, 0.45 * size, 3.4 * size) for axis in axes],
        axes=[_centre_line(mark.origin, axis, 3.0 * size) for axis in axes],
        colour=ORANGE,
    )


def _pin_in_slot(mark: JointMark, size: float) -> Symbol:
    slot, axis = mark.start[:3, :3] @ mark.kind.slide_axis, _moving(mark, mark.kind.pin_axis)
    across = np.cross(axis, slot) / np.linalg.norm(np.cross(axis, slot))
    middle = _rail(mark, slot, 4.2 * size)
    return Symbol(
        [_cylinder(mark.origin, axis, 0.8 * size, 2.6 * size)],
        [middle + side * 1.1 * size * across for side in (-1, 1)],
        axes=[_centre_line(mark.origin, axis, 3.4 * size)],
        colour=SKY,
    )


def _planar(mark: JointMark, size: float) -> Symbol:
    normal = _moving(mark, mark.kind.normal)
    plate = _box(mark.origin, along(normal), (2.0 * size, 2.0 * size, 0.25 * size))
    return Symbol([plate], ways=[_way(mark)], axes=[_centre_line(mark.origin, normal, 2.4 * size)], colour=SKY)


def _floating(mark: JointMark, size: float) -> Symbol:
    ways = [] if is_free(mark) else [_way(mark)]
    return Symbol([_octahedron(mark.origin, 1.2 * size)], ways=ways, colour="#BBBBBB")


def _fixed(mark: JointMark, size: float) -> Symbol:
    return Symbol([_box(mark.origin, mark.end[:3, :3], (0.8 * size,) * 3)], colour="#BBBBBB")


#: Kind -> its symbol; one that is not here is an octahedron.
SYMBOLS: dict[type, Callable[[JointMark, float], Symbol]] = {
    lw.Revolute: _revolute,
    lw.Prismatic: _prismatic,
    lw.Cylindrical: _cylindrical,
    lw.Helical: _helical,
    lw.Spherical: _spherical,
    lw.Universal: _universal,
    lw.PinInSlot: _pin_in_slot,
    lw.Planar: _planar,
    lw.Floating: _floating,
    lw.Fixed: _fixed,
}


def _moving(mark: JointMark, direction: Sequence[float]) -> np.ndarray:
    """A direction given in the frame of the link that the joint moves, in the world."""
    return mark.end[:3, :3] @ np.asarray(direction)


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
