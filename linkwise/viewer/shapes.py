"""Shapes that scenes are made of, and their triangles."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np

ROUND = 24  # corners around a round shape
CIRCLE = 32  # straight lines around a circle
SIDES = 14  # of a round solid
ENDLESS = 10.0  # metres, half the side of what is drawn of a plane that does not end


CUBE = np.array([[x, y, z] for x in (-1.0, 1.0) for y in (-1.0, 1.0) for z in (-1.0, 1.0)])
CUBE_FACES = ((0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3))


class AnyShape(Protocol):
    """A shape made of triangles, centred in its own frame."""

    def mesh(self) -> Mesh:
        """Its triangles."""

    def edges(self) -> list[np.ndarray]:
        """Lines (k, 3): circles around it, and edges."""


@dataclass(frozen=True, eq=False)
class Mesh:
    """vertices (n, 3) and faces (m, 3), the numbers of the corners of triangles.

    Equal meshes of a scene are the same object, so that they can be sent, and kept, once.
    """

    vertices: np.ndarray
    faces: np.ndarray

    def mesh(self) -> Mesh:
        return self

    def edges(self) -> list[np.ndarray]:
        return []


@dataclass(frozen=True)
class Box:
    """Half its sides."""

    half: tuple[float, float, float]

    def mesh(self) -> Mesh:
        return Mesh(CUBE * self.half, np.array([t for a, b, c, d in CUBE_FACES for t in ((a, b, c), (a, c, d))]))

    def edges(self) -> list[np.ndarray]:
        return [CUBE[[a, b]] * self.half for a in range(8) for b in range(a, 8) if (CUBE[a] != CUBE[b]).sum() == 1]


@dataclass(frozen=True)
class Ellipsoid:
    """Its half axes."""

    half: tuple[float, float, float]

    def mesh(self) -> Mesh:
        ball = _lathe(_half_circle(1.0, 0.0))
        return Mesh(ball.vertices * self.half, ball.faces)

    def edges(self) -> list[np.ndarray]:
        return [np.roll(_circle(), k, axis=1) * self.half for k in range(3)]  # in three planes


@dataclass(frozen=True)
class Sphere:
    radius: float

    def mesh(self) -> Mesh:
        return Ellipsoid((self.radius,) * 3).mesh()

    def edges(self) -> list[np.ndarray]:
        return Ellipsoid((self.radius,) * 3).edges()


@dataclass(frozen=True)
class Cylinder:
    """Along z."""

    radius: float
    half_length: float

    def mesh(self) -> Mesh:
        r, h = self.radius, self.half_length
        return _lathe(((0.0, -h), (r, -h), (r, -h), (r, h), (r, h), (0.0, h)))

    def edges(self) -> list[np.ndarray]:
        low, high = _rims(self.radius, self.half_length)
        return [low, high, *(np.array([low[k], high[k]]) for k in range(0, CIRCLE, CIRCLE // 4))]


@dataclass(frozen=True)
class Capsule:
    """Along z; half its length without its caps."""

    radius: float
    half_length: float

    def mesh(self) -> Mesh:
        return _lathe(_half_circle(self.radius, self.half_length))

    def edges(self) -> list[np.ndarray]:
        upright = np.roll(_circle(), 1, axis=1)[:, [1, 0, 2]] * self.radius  # in the plane of x and z
        ends = np.where(upright[:, 2] < 0.0, -self.half_length, self.half_length)
        stadium = upright + np.outer(ends, [0.0, 0.0, 1.0])
        return [*_rims(self.radius, self.half_length), stadium, stadium[:, [1, 0, 2]]]


@dataclass(frozen=True)
class Plane:
    """The plane z = 0 with half its sides along x and y; zero for an endless side."""

    half: tuple[float, float] = (0.0, 0.0)

    def mesh(self) -> Mesh:
        x, y = (side or ENDLESS for side in self.half)
        corners = np.array([[-x, -y, 0.0], [x, -y, 0.0], [x, y, 0.0], [-x, y, 0.0]])
        return Mesh(corners, np.array([[0, 1, 2], [0, 2, 3]]))

    def edges(self) -> list[np.ndarray]:
        corners = self.mesh().vertices
        return [np.vstack([corners, corners[:1]])]


def shape_of(kind: str, size: tuple[float, ...]) -> AnyShape:
    """The shape of a kind and size as ``lw.contact.Shape`` and ``lw.files.Look`` have them."""
    if kind == "plane":
        x, y = (*size, 0.0, 0.0)[:2]
        return Plane((x, y))
    if kind in ("box", "ellipsoid"):
        x, y, z = size
        return Box((x, y, z)) if kind == "box" else Ellipsoid((x, y, z))
    return {"sphere": Sphere, "cylinder": Cylinder, "capsule": Capsule}[kind](*size)


def _circle() -> np.ndarray:
    """(CIRCLE + 1, 3): a closed unit circle around z."""
    angles = np.linspace(0.0, 2.0 * np.pi, CIRCLE + 1)
    return np.stack([np.cos(angles), np.sin(angles), np.zeros(CIRCLE + 1)], axis=-1)


def _rims(radius: float, half_length: float) -> list[np.ndarray]:
    return [_circle() * radius + [0.0, 0.0, end] for end in (-half_length, half_length)]


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
    low, high = np.meshgrid(np.arange(len(rings) - 1) * sides, np.arange(sides), indexing="ij")
    other = (high + 1) % sides
    a, b, c, d = low + high, low + other, low + other + sides, low + high + sides
    faces = np.concatenate([np.stack([a, b, c], -1).reshape(-1, 3), np.stack([a, c, d], -1).reshape(-1, 3)])
    corners = vertices[faces]
    areas = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
    return Mesh(vertices, faces[areas > 1e-12 * max(areas.max(), 1e-300)])


def tubes(segments: np.ndarray, radius: float, sides: int = 6) -> Mesh:
    """Straight lines (m, 2, 3) as thin tubes, in one mesh."""
    meshes = []
    k = np.arange(sides)
    after = (k + 1) % sides
    wall = np.concatenate([np.stack([k, after, sides + k], -1), np.stack([after, sides + after, sides + k], -1)])
    for start, end in segments:
        way = end - start
        length = float(np.linalg.norm(way))
        if length == 0.0:
            continue
        ring = _ring(way / length, radius, sides)
        meshes.append(Mesh(np.concatenate([start + ring, end + ring]), wall))
    return join(meshes)


def arrow_mesh(arrows: np.ndarray, radius: float) -> Mesh:
    """Arrows (m, 2, 3) in one mesh; short ones have only heads."""
    meshes = []
    for start, end in arrows:
        length = float(np.linalg.norm(end - start))
        head = min(7.0 * radius, length)
        rotated = axis_frame((end - start) / length)
        neck = radius if length > head else 0.0
        outline = ((0.0, 0.0), (neck, 0.0), (neck, length - head), (3.0 * head / 7.0, length - head), (0.0, length))
        shape = _lathe(tuple((round(r, 9), round(h, 9)) for r, h in outline), 10)
        meshes.append(Mesh(shape.vertices @ rotated.T + start, shape.faces))
    return join(meshes)


def join(meshes: Iterable[Mesh]) -> Mesh:
    """One mesh of several."""
    vertices, faces, count = [np.zeros((0, 3))], [np.zeros((0, 3), dtype=int)], 0
    for mesh in meshes:
        vertices.append(mesh.vertices)
        faces.append(mesh.faces + count)
        count += len(mesh.vertices)
    return Mesh(np.concatenate(vertices), np.concatenate(faces))


def axis_frame(axis: np.ndarray) -> np.ndarray:
    """(3, 3): columns of a right-handed frame whose z is ``axis``, of length one."""
    other = np.eye(3)[np.argmin(np.abs(axis))]
    x = np.cross(other, axis) / np.linalg.norm(np.cross(other, axis))
    return np.stack([x, np.cross(axis, x), axis], axis=-1)


def _ring(axis: np.ndarray, radius: float, sides: int) -> np.ndarray:
    """(sides, 3): corners of a circle around an axis through the origin."""
    angles = np.linspace(0.0, 2.0 * np.pi, sides, endpoint=False)
    return radius * (axis_frame(axis)[:, :2] @ np.stack([np.cos(angles), np.sin(angles)])).T


# -- solids of flat faces ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Solid:
    """Flat faces (k, 3) of a convex solid; the first ``edged`` of them have visible edges, the others look round."""

    faces: tuple[np.ndarray, ...]
    edged: int

    @property
    def points(self) -> np.ndarray:
        return np.concatenate(self.faces)

    def mesh(self) -> Mesh:
        """Its triangles; each face keeps its own corners, so that edges are seen."""
        return join(Mesh(face, fan(len(face))) for face in self.faces)


def fan(corners: int) -> np.ndarray:
    """(corners - 2, 3): a convex polygon as triangles."""
    second = np.arange(1, corners - 1)
    return np.stack([np.zeros_like(second), second, second + 1], axis=-1)


def cylinder(centre: np.ndarray, axis: np.ndarray, radius: float, length: float) -> Solid:
    rim = centre + _ring(axis, radius, SIDES)
    low, high = rim - 0.5 * length * axis, rim + 0.5 * length * axis
    sides = [np.array([low[i - 1], low[i], high[i], high[i - 1]]) for i in range(SIDES)]
    return Solid((low[::-1], high, *sides), edged=2)


def cone(tip: np.ndarray, base: np.ndarray, radius: float) -> Solid:
    """A cone that stands on ``base``."""
    axis = (tip - base) / np.linalg.norm(tip - base)
    rim = base + _ring(axis, radius, SIDES)
    return Solid((rim[::-1], *(np.array([rim[i - 1], rim[i], tip]) for i in range(SIDES))), edged=1)


def box(centre: np.ndarray, frame: np.ndarray, half: Sequence[float]) -> Solid:
    corners = centre + CUBE * half @ frame.T
    return Solid(tuple(corners[list(face)] for face in CUBE_FACES), edged=6)


def ball(centre: np.ndarray, radius: float) -> Solid:
    """A ball of flat faces."""
    across, down = np.meshgrid(np.linspace(0.0, 2.0 * np.pi, 13), np.linspace(0.0, np.pi, 8))
    grid = centre + radius * np.stack(
        [np.sin(down) * np.cos(across), np.sin(down) * np.sin(across), np.cos(down)], axis=-1
    )
    cells = ((i, j) for i in range(7) for j in range(12))
    faces = (np.array([grid[i, j], grid[i + 1, j], grid[i + 1, j + 1], grid[i, j + 1]]) for i, j in cells)
    return Solid(tuple(faces), edged=0)


def octahedron(centre: np.ndarray, radius: float) -> Solid:
    return Solid(tuple(centre + radius * np.diag(signs) for signs in CUBE), edged=8)
