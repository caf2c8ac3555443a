"""Triangles of one colour."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True, eq=False)
class Surface:
    """Triangles of one colour.

    vertices   (n, 3), each once
    faces      (m, 3): numbers of the corners of each triangle
    colour     red, green, blue, opacity, from 0 to 1; None where the file says nothing
    """

    vertices: NDArray[np.float32]
    faces: NDArray[np.int32]
    colour: tuple[float, ...] | None = None


def surface(vertices: ArrayLike, faces: ArrayLike, colour: tuple[float, ...] | None = None) -> Surface:
    """The surface of triangles, with equal vertices merged and unused vertices and degenerate triangles removed."""
    points = np.asarray(vertices, dtype=np.float32).reshape(-1, 3) + np.float32(0.0)  # no negative zeros
    corners = np.asarray(faces, dtype=np.int64).reshape(-1, 3)
    if corners.size and not 0 <= corners.min() <= corners.max() < len(points):
        raise ValueError("its faces name vertices that it does not have")
    if not np.isfinite(points).all():
        raise ValueError("its vertices are not all finite")
    used = points[corners.ravel()]
    _, first, number = np.unique(used.view(np.dtype((np.void, 12))).ravel(), return_index=True, return_inverse=True)
    triangles = number.reshape(-1, 3)
    apart = (triangles != np.roll(triangles, 1, axis=1)).all(axis=1)
    return Surface(used[first], triangles[apart].astype(np.int32), colour)
