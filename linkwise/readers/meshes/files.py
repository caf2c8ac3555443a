"""Files of meshes, each read as its vertices (3 n,) and the numbers of the corners of its triangles (3 m,)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from linkwise.readers.meshes.surface import Surface, surface

#: Polygons of OBJ files that have more corners are left out by MuJoCo.
MOST_CORNERS = 100
#: From the corners (n, 3) of a polygon to the numbers of the corners of its triangles.
Triangulation = Callable[[np.ndarray], list[int]]


def _from_stl(path: Path) -> tuple[np.ndarray, np.ndarray]:
    data = path.read_bytes()
    count = int.from_bytes(data[80:84], "little")
    if len(data) != 84 + 50 * count:
        raise ValueError("it is no binary STL file")
    record = np.dtype([("normal", "<f4", 3), ("corners", "<f4", 9), ("attribute", "<u2")])
    corners = np.frombuffer(data, record, offset=84)["corners"].astype(float)
    return corners.ravel(), np.arange(3 * count)


def _from_ascii_stl(path: Path) -> tuple[np.ndarray, np.ndarray]:
    lines = [line.split() for line in path.read_text(errors="replace").splitlines()]
    facets = sum(words[:1] == ["facet"] for words in lines)
    corners = [[float(word) for word in words[1:4]] for words in lines if words[:1] == ["vertex"]]
    whole = sum(len(corner) == 3 for corner in corners)
    if not whole == len(corners) == 3 * facets:
        raise ValueError(f"it has {whole} complete vertices for {3 * facets} corners of facets: is it cut off?")
    return np.ravel(corners), np.arange(len(corners))


def one_surface(path: Path) -> Iterator[Surface]:
    """All that an STL or MSH file shows."""
    read = FORMATS[path.suffix.lower()]
    if read is _from_stl:
        with path.open("rb") as file:
            start = file.read(512)
        if start.lstrip().startswith(b"solid") and b"facet" in start:  # headers of binary files may start so too
            read = _from_ascii_stl
    yield surface(*read(path))


def _from_msh(path: Path) -> tuple[np.ndarray, np.ndarray]:
    data = path.read_bytes()
    vertices, normals, texture, faces = np.frombuffer(data, "<i4", 4).tolist()
    if min(vertices, normals, texture, faces) < 0:
        raise ValueError("its header has negative numbers")
    at_faces = 16 + 4 * (3 * vertices + 3 * normals + 2 * texture)
    corners = np.frombuffer(data, "<f4", 3 * vertices, offset=16).astype(float)
    return corners, np.frombuffer(data, "<i4", 3 * faces, offset=at_faces).astype(int)


def _from_obj(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """All vertices, and the faces of the first object or group that has some, as MuJoCo reads it: polygons are cut as
    it cuts them, and those of more than ``MOST_CORNERS`` corners are left out."""
    vertices, polygons = _parsed_obj(path)
    read = (polygon for group, _, polygon in polygons if group == 0 and len(polygon) <= MOST_CORNERS)
    faces = [corner for polygon in read for corner in _triangles(polygon, vertices, _ears_of_mujoco)]
    return vertices.astype(float).ravel(), np.array(faces, dtype=int)


def has_large_polygons(path: Path) -> bool:
    """Whether an OBJ file has a polygon that ``FORMATS`` leaves out."""
    lines = path.read_text(errors="replace").replace("\\\n", " ").splitlines()
    return any(line.lstrip().startswith("f") and len(line.split()) > MOST_CORNERS + 1 for line in lines)


def _parsed_obj(path: Path) -> tuple[np.ndarray, list[tuple[int, str, list[int]]]]:
    """Vertices (n, 3), and for each polygon: the number of its object or group, its material, its corners."""
    points: list[list[float]] = []
    polygons: list[tuple[int, str, list[int]]] = []
    group, material = 0, ""
    for line in path.read_text(errors="replace").replace("\\\n", " ").splitlines():
        words = line.split()
        if words[:1] == ["v"]:
            points.append([float(word) for word in words[1:4]])
        elif words[:1] == ["f"]:
            numbers = [int(word.partition("/")[0]) for word in words[1:]]
            corners = [number - 1 if number > 0 else len(points) + number for number in numbers]
            polygons.append((group, material, corners))
        elif words[:1] in (["o"], ["g"]) and len(words) > 1 and polygons:
            group += 1
        elif words[:1] == ["usemtl"]:
            material = " ".join(words[1:])
    return np.array(points, dtype=np.float32).reshape(-1, 3), polygons


def obj_surfaces(path: Path) -> Iterator[Surface]:
    """All that an OBJ file shows, a surface per material."""
    vertices, polygons = _parsed_obj(path)
    colours = _colours(path)
    faces: dict[str, list[int]] = {}
    for _, material, polygon in polygons:
        faces.setdefault(material, []).extend(_triangles(polygon, vertices, _ears))
    for material, corners in faces.items():
        yield surface(vertices, corners, colours.get(material))


def _colours(path: Path) -> dict[str, tuple[float, ...]]:
    """Material -> colour, of the material files beside an OBJ file."""
    found: dict[str, tuple[float, ...]] = {}
    lines = path.read_text(errors="replace").splitlines()
    for library in (line.split(maxsplit=1)[1].strip() for line in lines if line.startswith("mtllib ")):
        file, name = path.parent / library, ""
        for words in map(str.split, file.read_text(errors="replace").splitlines() if file.is_file() else ()):
            if words[:1] == ["newmtl"]:
                name = " ".join(words[1:])
            elif words[:1] == ["Kd"] and len(words) == 4:
                found[name] = (*map(float, words[1:]), found.get(name, (0.0, 0.0, 0.0, 1.0))[3])
            elif words[:1] == ["d"] and len(words) == 2:
                found[name] = (*found.get(name, (1.0, 1.0, 1.0))[:3], float(words[1]))
    return found


def _triangles(polygon: list[int], vertices: np.ndarray, ears: Triangulation) -> list[int]:
    """The corners of triangles that make up a polygon; quadrilaterals are cut along the shorter diagonal, as in MuJoCo,
    which is right if they are convex, and larger polygons by ``ears``."""
    if len(polygon) < 4 or not 0 <= min(polygon) <= max(polygon) < len(vertices):
        return polygon if len(polygon) == 3 else []
    if len(polygon) > 4:
        return [polygon[k] for k in ears(vertices[polygon])]
    a, b, c, d = polygon
    one, other = vertices[c] - vertices[a], vertices[d] - vertices[b]
    return [a, b, c, a, c, d] if one @ one < other @ other else [a, b, d, b, c, d]


def _ears(polygon: np.ndarray) -> list[int]:
    """Triangles of a polygon (n, 3), cut off one by one at corners that are convex and have no other corner inside."""
    corners = polygon.astype(float)
    following = np.roll(corners, -1, axis=0)
    normal = np.cross(corners, following).sum(axis=0)  # twice the area of the polygon
    axis = int(np.abs(normal).argmax())
    flat = np.delete(corners, axis, axis=1)[:, :: 1 if normal[axis] * (-1) ** axis >= 0.0 else -1]  # counter-clockwise
    left, triangles = list(range(len(corners))), []
    while len(left) > 3:
        ears = (k for k in range(len(left)) if _is_ear(flat[np.roll(left, 1 - k)]))
        ear = next(ears, 1)  # a polygon that crosses itself may have none
        triangles += [left[ear - 1], left[ear], left[(ear + 1) % len(left)]]
        del left[ear]
    return triangles + left


def _is_ear(corners: np.ndarray) -> bool:
    """Whether the triangle at the second corner of a counter-clockwise polygon (n, 2) is a part of it."""
    triangle, others = corners[:3], corners[3:]
    sides = np.roll(triangle, -1, axis=0) - triangle
    bend = sides[0, 0] * sides[1, 1] - sides[0, 1] * sides[1, 0]
    if bend <= 0.0:
        return bool(bend == 0.0)  # a corner on a straight side can go
    away = others[:, None] - triangle
    inside = (sides[:, 0] * away[..., 1] >= sides[:, 1] * away[..., 0]).all(axis=1)
    apart = away.any(axis=2).all(axis=1)  # from the corners themselves, where a polygon may pass twice
    return not (inside & apart).any()


def _ears_of_mujoco(polygon: np.ndarray) -> list[int]:
    """Triangles of a polygon (n, 3) of single precision, cut off as MuJoCo does: polygons that are not convex may be
    cut wrongly, or in part only, and masses of meshes depend on it.

    From one corner on, the next three are cut off unless they bend otherwise than their first side turns about the
    origin, or have another corner inside; the polygon is given up after one round without a triangle.
    """
    flat = polygon[:, _flat_axes(polygon)]
    left, triangles = list(range(len(polygon))), []
    start, failures = 0, 0
    while len(left) > 3 and failures < len(left):
        start %= len(left)
        corners = flat[left[start:] + left[:start]]
        (ax, ay), (bx, by), (cx, cy) = corners[:3]
        bend = (bx - ax) * (cy - by) - (by - ay) * (cx - bx)
        if bend * ((ax * by - ay * bx) * np.float32(0.5)) < 0.0 or _are_inside(corners[:3], corners[3:]).any():
            start, failures = start + 1, failures + 1
            continue
        triangles += [left[(start + k) % len(left)] for k in range(3)]
        del left[(start + 1) % len(left)]
        failures = 0
    return triangles + left if len(left) == 3 else triangles


def _flat_axes(polygon: np.ndarray) -> list[int]:
    """The two coordinates in which MuJoCo looks at a polygon: those of the first corner that bends."""
    sides = np.roll(polygon, -1, axis=0) - polygon
    bends = np.abs(np.cross(sides, np.roll(sides, -1, axis=0)))
    first = np.flatnonzero((bends > np.finfo(np.float32).eps).any(axis=1))
    x, y, z = bends[first[0]] if len(first) else (1.0, 0.0, 0.0)
    if x > y and x > z:
        return [1, 2]
    return [0, 1] if z > x and z > y else [0, 2]


def _are_inside(triangle: np.ndarray, points: np.ndarray) -> np.ndarray:
    """(n,): which points (n, 2) a ray leaves a triangle from an odd number of times."""
    inside = np.zeros(len(points), dtype=bool)
    x, y = points.T
    for (ax, ay), (bx, by) in zip(triangle, np.roll(triangle, 1, axis=0), strict=True):
        if ay != by:
            inside ^= ((ay > y) != (by > y)) & (x < (bx - ax) * (y - ay) / (by - ay) + ax)
    return inside


FORMATS = {".stl": _from_stl, ".obj": _from_obj, ".msh": _from_msh}
