"""What reaches from one link to another, as plain data: rods without mass, springs, dampers, cylinders."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import linkwise as lw

from .elements import ROD, ElementMark, element_lines, kinds_of
from .shapes import Mesh, tubes
from .skeleton import Sketch, attachment, rods

LINE, BAR = 0.1, 0.2  # radii, in units of the size of symbols
Ends = tuple[tuple[int, np.ndarray], tuple[int, np.ndarray]]  # links by number, -1 the ground, and points of them


@dataclass(frozen=True, eq=False)
class Strut:
    """Something between two points of links, stretched as they move.

    name     what it is called
    ends     two links, by number, -1 for the ground, with the points (3,) in their frames
    shape    along z, from the origin on
    length   metres: of the shape
    """

    name: str
    ends: Ends
    shape: Mesh
    length: float

    def placed(self, poses: np.ndarray, beside: np.ndarray) -> np.ndarray:
        """(..., 4, 4): from the shape's frame into the world, which stretches it, for poses (..., n_links, 4, 4);
        x is square to ``beside`` (3,) where that is not along the way."""
        world = np.concatenate([poses, np.broadcast_to(np.eye(4), (*poses.shape[:-3], 1, 4, 4))], axis=-3)
        a, b = (world[..., k, :3, :3] @ point + world[..., k, :3, 3] for k, point in self.ends)
        way = b - a
        square = np.cross(way, beside)
        spare = np.cross(way, np.eye(3)[np.argmin(np.abs(beside))])
        square = np.where(np.linalg.norm(square, axis=-1, keepdims=True) > 1e-9, square, spare)
        square = square / np.maximum(np.linalg.norm(square, axis=-1, keepdims=True), 1e-300)
        third = np.cross(way, square) / np.maximum(np.linalg.norm(way, axis=-1, keepdims=True), 1e-300)
        found = np.zeros((*way.shape[:-1], 4, 4))
        found[..., :3, 0], found[..., :3, 1], found[..., :3, 2] = square, third, way / self.length
        found[..., :3, 3], found[..., 3, 3] = a, 1.0
        return found


def struts(mech: lw.Mechanism, passive: Any, sketch: Sketch, pin: float) -> tuple[Strut, ...]:
    """All of a mechanism, and those of ``passive``; as long as in the sketch; symbols of joints are ``pin`` metres."""
    world = np.concatenate([sketch.poses, np.eye(4)[None]])
    found = []
    for name, kinds, ends in (*_rods(mech), *_of_passive(mech, passive)):
        a, b = (world[k, :3, :3] @ point + world[k, :3, 3] for k, point in ends)
        length = max(float(np.linalg.norm(b - a)), 1e-6)
        mark = ElementMark(kinds, np.zeros(3), np.array([0.0, 0.0, length]))
        lines = element_lines([mark], pin, np.array([0.0, 1.0, 0.0]))["solid"]
        segments = np.concatenate([np.stack([line[:-1], line[1:]], axis=1) for line in lines])
        found.append(Strut(name, ends, tubes(segments, pin * (BAR if kinds == (ROD,) else LINE)), length))
    return tuple(found)


def _rods(mech: lw.Mechanism) -> Iterator[tuple[str, tuple[str, ...], Ends]]:
    for loop in rods(mech):
        (a, frame_a), (b, frame_b) = (attachment(mech, loop, side) for side in "ab")
        yield loop.name, (ROD,), ((a, frame_a[:3, 3]), (b, frame_b[:3, 3]))


def _of_passive(mech: lw.Mechanism, passive: Any) -> Iterator[tuple[str, tuple[str, ...], Ends]]:
    for one in (one for one in getattr(passive, "elements", ()) if hasattr(one, "link_a")):
        frames = [(mech.frame(link), point) for link, point in ((one.link_a, one.point_a), (one.link_b, one.point_b))]
        a, b = ((frame.body, frame.rotation @ np.array(point) + frame.position) for frame, point in frames)
        kinds = kinds_of(one)
        yield " and ".join(kinds), kinds, (a, b)
