"""Meshes as masses depend on them, in triangles as MuJoCo cuts them: vertices (3 n,), corners of faces (3 m,)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from linkwise.readers.meshes import of_mujoco

#: Polygons of OBJ files that have more corners are left out by MuJoCo.
MOST_CORNERS = 100


def _from_stl(path: Path) -> tuple[np.ndarray, np.ndarray]:
    data = path.read_bytes()
    count = int.from_bytes(data[80:84], "little")
    if len(data) != 84 + 50 * count:
        raise ValueError("it is no binary STL file")
    record = np.dtype([("normal", "<f4", 3), ("corners", "<f4", 9), ("attribute", "<u2")])
    corners = np.frombuffer(data, record, offset=84)["corners"].astype(float)
    return corners.ravel(), np.arange(3 * count)


def _from_msh(path: Path) -> tuple[np.ndarray, np.ndarray]:
    corners, faces = of_mujoco(path.read_bytes())
    return corners.astype(float), faces.astype(int)


def _from_obj(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """All vertices, and the faces of the first object or group that has some, as MuJoCo reads it: polygons are cut as
    it cuts them, and those of more than ``MOST_CORNERS`` corners are left out."""
    vertices, polygons = _parsed_obj(path)
    read = (polygon for group, polygon in polygons if group == 0 and len(polygon) <= MOST_CORNERS)
    faces = [corner for polygon in read for corner in _triangles(polygon, vertices)]
    return vertices.astype(float).ravel(), np.array(faces, dtype=int)


def has_large_polygons(path: Path) -> bool:
    """Whether an OBJ file has a polygon that ``FORMATS`` leaves out."""
    lines = path.read_text(errors="replace").replace("\\\n", " ").splitlines()
    return any(line.lstrip().startswith("f") and len(line.split()) > MOST_CORNERS + 1 for line in lines)


def _parsed_obj(path: Path) -> tuple[np.ndarray, list[tuple[int, list[int]]]]:
    """Vertices (n, 3), and for each polygon: the number of its object or group, its corners."""
    points: list[list[float]] = []
    polygons: list[tuple[int, list[int]]] = []
    group = 0
    for line in path.read_text(errors="replace").replace("\\\n", " ").splitlines():
        words = line.split()
        if words[:1] == ["v"]:
            points.append([float(word) for word in words[1:4]])
        elif words[:1] == ["f"]:
            numbers = [int(word.partition("/")[0]) for word in words[1:]]
            corners = [number - 1 if number > 0 else len(points) + number for number in numbers]
            polygons.append((group, corners))
        elif words[:1] in (["o"], ["g"]) and len(words) > 1 and polygons:
            group += 1
    return np.array(points, dtype=np.float32).reshape(-1, 3), polygons


def _triangles(polygon: list[int], vertices: np.ndarray) -> list[int]:
    """The corners of triangles that make up a polygon; quadrilaterals are cut along the shorter diagonal, as in MuJoCo,
    which is right if they are convex, and larger polygons corner by corner."""
    if len(polygon) < 4 or not 0 <= min(polygon) <= max(polygon) < len(vertices):
        return polygon if len(polygon) == 3 else []
    if len(polygon) > 4:
        return [polygon[k] for k in _ears_of_mujoco(vertices[polygon])]
    a, b, c, d = polygon
    one, other = vertices[c] - vertices[a], vertices[d] - vertices[b]
    return [a, b, c, a, c, d] if one @ one < other @ other else [a, b, d, b, c, d]


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
