"""Shapes that scenes are made of, and their triangles."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np

ROUND = 24  # corners around a round shape
ENDLESS = 10.0  # metres, half the side of what is drawn of a plane that does not end


class AnyShape(Protocol):
    """Something that can be drawn as triangles, centred in a frame of its own."""

    def mesh(self) -> Mesh:
        """Its triangles."""


@dataclass(frozen=True, eq=False)
class Mesh:
    """vertices (n, 3) and faces (m, 3), the numbers of the corners of triangles.

    Equal meshes of a scene are the same object, so that they can be sent, and kept, once.
    """

    vertices: np.ndarray
    faces: np.ndarray

    def mesh(self) -> Mesh:
        return self


@dataclass(frozen=True)
class Box:
    """Half its sides."""

    half: tuple[float, float, float]

    def mesh(self) -> Mesh:
        corners = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * self.half
        sides = ((0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3))
        return Mesh(corners, np.array([t for a, b, c, d in sides for t in ((a, b, c), (a, c, d))]))


@dataclass(frozen=True)
class Sphere:
    radius: float

    def mesh(self) -> Mesh:
        ball = _lathe(_half_circle(1.0, 0.0))
        return Mesh(ball.vertices * self.radius, ball.faces)


@dataclass(frozen=True)
class Ellipsoid:
    """Its half axes."""

    half: tuple[float, float, float]

    def mesh(self) -> Mesh:
        ball = _lathe(_half_circle(1.0, 0.0))
        return Mesh(ball.vertices * self.half, ball.faces)


@dataclass(frozen=True)
class Cylinder:
    """Along z."""

    radius: float
    half_length: float

    def mesh(self) -> Mesh:
        r, h = self.radius, self.half_length
        return _lathe(((0.0, -h), (r, -h), (r, -h), (r, h), (r, h), (0.0, h)))


@dataclass(frozen=True)
class Capsule:
    """Along z; half its length without its caps."""

    radius: float
    half_length: float

    def mesh(self) -> Mesh:
        return _lathe(_half_circle(self.radius, self.half_length))


@dataclass(frozen=True)
class Plane:
    """z = 0; half its sides along x and y, zero where it does not end."""

    half: tuple[float, float] = (0.0, 0.0)

    def mesh(self) -> Mesh:
        x, y = (side or ENDLESS for side in self.half)
        corners = np.array([[-x, -y, 0.0], [x, -y, 0.0], [x, y, 0.0], [-x, y, 0.0]])
        return Mesh(corners, np.array([[0, 1, 2], [0, 2, 3]]))


def shape_of(kind: str, size: tuple[float, ...]) -> AnyShape:
    """The shape of a kind and size as ``lw.contact.Shape`` and ``lw.files.Look`` have them."""
    if kind == "plane":
        x, y = (*size, 0.0, 0.0)[:2]
        return Plane((x, y))
    if kind in ("box", "ellipsoid"):
        x, y, z = size
        return Box((x, y, z)) if kind == "box" else Ellipsoid((x, y, z))
    return {"sphere": Sphere, "cylinder": Cylinder, "capsule": Capsule}[kind](*size)


def _half_circle(radius: float, half_length: float) -> tuple[tuple[float, float], ...]:
    """Distances from the axis and heights, from the lowest point to the highest."""
    angles = np.linspace(-np.pi / 2.0, np.pi / 2.0, ROUND // 2 + 1)
    if half_length:
        angles = np.insert(angles, len(angles) // 2, 0.0)
    middle = np.where(np.arange(len(angles)) < len(angles) / 2.0, -half_length, half_length)
    return tuple(zip((radius * np.cos(angles)).tolist(), (radius * np.sin(angles) + middle).tolist(), strict=True))


@lru_cache(maxsize=256)
def _lathe(outline: tuple[tuple[float, float], ...], sides: int = ROUND) -> Mesh:
    """The surface of revolution about z; points of the outline that are there twice make an edge."""
    angles = np.linspace(0.0, 2.0 * np.pi, sides, endpoint=False)
    around = np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    rings = np.array(outline)
    vertices = np.concatenate(
        [rings[:, None, :1] * around, np.broadcast_to(rings[:, None, 1:], (len(rings), sides, 1))], axis=-1
    ).reshape(-1, 3)
    low, one = np.meshgrid(np.arange(len(rings) - 1) * sides, np.arange(sides), indexing="ij")
    other = (one + 1) % sides
    a, b, c, d = low + one, low + other, low + other + sides, low + one + sides
    faces = np.concatenate([np.stack([a, b, c], -1).reshape(-1, 3), np.stack([a, c, d], -1).reshape(-1, 3)])
    corners = vertices[faces]
    areas = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
    return Mesh(vertices, faces[areas > 1e-12 * max(areas.max(), 1e-300)])


def tubes(segments: np.ndarray, radius: float, sides: int = 6) -> Mesh:
    """Straight lines (m, 2, 3) as thin tubes, in one mesh."""
    vertices: list[np.ndarray] = []
    faces: list[np.ndarray] = []
    angles = np.linspace(0.0, 2.0 * np.pi, sides, endpoint=False)
    k = np.arange(sides)
    wall = np.concatenate(
        [
            np.stack([k, (k + 1) % sides, sides + k], -1),
            np.stack([(k + 1) % sides, sides + (k + 1) % sides, sides + k], -1),
        ]
    )
    for start, end in segments:
        way = end - start
        length = float(np.linalg.norm(way))
        if length == 0.0:
            continue
        across = along(way / length)[:, :2]
        ring = radius * (across @ np.stack([np.cos(angles), np.sin(angles)])).T
        faces.append(wall + 2 * sides * len(vertices))
        vertices.append(np.concatenate([start + ring, end + ring]))
    if not vertices:
        return Mesh(np.zeros((0, 3)), np.zeros((0, 3), dtype=int))
    return Mesh(np.concatenate(vertices), np.concatenate(faces))


def arrow_mesh(arrows: np.ndarray, radius: float) -> Mesh:
    """Arrows (m, 2, 3) in one mesh; those that are shorter than their heads are heads alone."""
    found = []
    for start, end in arrows:
        length = float(np.linalg.norm(end - start))
        head = min(7.0 * radius, length)
        rotated = along((end - start) / length)
        neck = radius if length > head else 0.0
        outline = ((0.0, 0.0), (neck, 0.0), (neck, length - head), (3.0 * head / 7.0, length - head), (0.0, length))
        shape = _lathe(tuple((round(r, 9), round(h, 9)) for r, h in outline), 10)
        found.append(Mesh(shape.vertices @ rotated.T + start, shape.faces))
    return together(found)


def together(meshes: Iterable[Mesh]) -> Mesh:
    """One mesh of several."""
    vertices, faces, count = [np.zeros((0, 3))], [np.zeros((0, 3), dtype=int)], 0
    for mesh in meshes:
        vertices.append(mesh.vertices)
        faces.append(mesh.faces + count)
        count += len(mesh.vertices)
    return Mesh(np.concatenate(vertices), np.concatenate(faces))


def along(axis: np.ndarray) -> np.ndarray:
    """(3, 3): columns of a right-handed frame whose z is ``axis``, of length one."""
    other = np.eye(3)[np.argmin(np.abs(axis))]
    x = np.cross(other, axis) / np.linalg.norm(np.cross(other, axis))
    return np.stack([x, np.cross(axis, x), axis], axis=-1)
