"""Rods without mass, springs, dampers, cylinders and gears as shapes: fixed to a link, or between two of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from .elements import ROD, ElementMark, element_lines
from .shapes import Mesh, together, tubes

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
        transforms = np.zeros((*way.shape[:-1], 4, 4))
        transforms[..., :3, 0], transforms[..., :3, 1], transforms[..., :3, 2] = square, third, way / self.length
        transforms[..., :3, 3], transforms[..., 3, 3] = a, 1.0
        return transforms


@dataclass(frozen=True, eq=False)
class Fixture:
    """Something fixed to a link, by number, -1 for the ground: spiral springs, gears; in its frame."""

    name: str
    link: int
    shape: Mesh

    def placed(self, poses: np.ndarray, beside: np.ndarray) -> np.ndarray:
        """(..., 4, 4): the pose of its link, from whichever side it is seen."""
        return poses[..., self.link, :, :] if self.link >= 0 else np.eye(4)


def elements_between(
    marks: Iterable[ElementMark], poses: np.ndarray, pin: float
) -> tuple[tuple[Fixture, ...], tuple[Strut, ...]]:
    """What elements of a sketch with these poses (n_links, 4, 4) look like: fixed to one link, and between two, as long
    as in the sketch; symbols of joints are ``pin`` metres."""
    inverse = np.linalg.inv(np.concatenate([poses, np.eye(4)[None]]))
    fixtures, struts = [], []
    for mark in marks:
        kind = " and ".join(mark.kinds)
        name = f"{mark.name}_{kind}" if mark.of_joints else mark.name or kind
        a, b = (
            inverse[k, :3, :3] @ point + inverse[k, :3, 3]
            for k, point in zip(mark.links, (mark.a, mark.b), strict=True)
        )
        if mark.links[0] == mark.links[1]:
            axis = None if mark.axis is None else inverse[mark.links[0], :3, :3] @ mark.axis
            drawn = _tube(replace(mark, a=a, b=b, axis=axis), pin, LINE)
            fixtures.append(Fixture(name, mark.links[0], drawn))
        else:
            length = max(float(np.linalg.norm(mark.b - mark.a)), 1e-6)
            along_z = replace(mark, a=np.zeros(3), b=np.array([0.0, 0.0, length]))
            held = (mark.links[0], a), (mark.links[1], b)
            struts.append(Strut(name, held, _tube(along_z, pin, BAR if mark.kinds == (ROD,) else LINE), length))
    return tuple(fixtures), tuple(struts)


def _tube(mark: ElementMark, pin: float, thickness: float) -> Mesh:
    drawn = element_lines([mark], pin, np.array([0.0, 1.0, 0.0]))
    lines = [line for some in drawn.values() for line in some]
    segments = [np.stack([line[:-1], line[1:]], axis=1) for line in lines]
    return tubes(np.concatenate([np.zeros((0, 2, 3)), *segments]), thickness * pin)


def placed_together(things: Sequence[Fixture | Strut], poses: np.ndarray, beside: np.ndarray) -> Mesh:
    """All of them in the world, in one mesh, for poses (n_links, 4, 4)."""
    poses_of_struts = [strut.placed(poses, beside) for strut in things]
    return together(
        Mesh(strut.shape.vertices @ pose[:3, :3].T + pose[:3, 3], strut.shape.faces)
        for strut, pose in zip(things, poses_of_struts, strict=True)
    )
