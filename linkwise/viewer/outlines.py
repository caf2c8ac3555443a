"""Outlines of the shapes that touch, and the floor that they stand on.  No matplotlib here."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
from scipy.spatial import ConvexHull

import linkwise as lw

from .shapes import shape_of
from .skeleton import Sketch, matrix
from .views import View

EDGE_ON = 0.05  # cosine between a floor's normal and the way to the onlooker below which it is seen as a line
FAR = 1.0  # of the extent of the picture: a floor that is further below is left out
BEYOND = 0.08  # of the extent, by which a floor goes on around what stands on it
STROKES = 24  # of hatching along a floor

Placed = tuple[lw.contact.Shape, np.ndarray]  # a shape, and its pose (4, 4) in the world


def touching(mech: lw.Mechanism, sketch: Sketch) -> list[Placed]:
    """The shapes that take part in contacts; planes last."""
    names = dict.fromkeys(name for pair in mech.contact_pairs for name in pair.shapes)
    world = np.concatenate([sketch.poses, np.eye(4)[None]])  # the ground is body -1
    shapes = []
    for shape in map(mech.contact.shape, names):
        body, pose = shape.placed(mech)
        shapes.append((shape, world[body] @ matrix(*pose)))
    return sorted(shapes, key=lambda placed_shape: placed_shape[0].kind == "plane")


def around(box: np.ndarray, mech: lw.Mechanism, sketches: Sequence[Sketch]) -> np.ndarray:
    """(2, 3): the box with the shapes of a mechanism in several configurations, and with the floors below them."""
    placed = [placed_shape for sketch in sketches for placed_shape in touching(mech, sketch)]
    points = [_vertices(*placed_shape) for placed_shape in placed if placed_shape[0].kind != "plane"]
    near = [corners for corners in points if _is_near(corners, box)]
    box = _box_of([box, *near])
    return _box_of([box, *(patch for placed_shape in placed if (patch := floor(*placed_shape, box)) is not None)])


def is_seen(shape: lw.contact.Shape, pose: np.ndarray, box: np.ndarray) -> bool:
    """Whether a shape is within a box (2, 3); planes are always."""
    if shape.kind == "plane":
        return True
    vertices, slack = _vertices(shape, pose), BEYOND * float(np.ptp(box, axis=0).max())
    return bool(((vertices >= box[0] - slack) & (vertices <= box[1] + slack)).all())


def _is_near(vertices: np.ndarray, box: np.ndarray) -> bool:
    """Whether a shape is no further from a box (2, 3) than the box is large: others would make it small."""
    gaps = np.maximum(box[0] - vertices.max(axis=0), vertices.min(axis=0) - box[1])
    reach = FAR * float(np.ptp(box, axis=0).max())
    return bool(gaps.max() <= reach and np.ptp(vertices, axis=0).max() <= 4.0 * reach)


def _box_of(points: Sequence[np.ndarray]) -> np.ndarray:
    every = np.concatenate(points)
    return np.array([every.min(axis=0), every.max(axis=0)])


def floor(shape: lw.contact.Shape, pose: np.ndarray, box: np.ndarray) -> np.ndarray | None:
    """(4, 3): the part of a plane that is below a box (2, 3); None for what is no plane, and for one far away."""
    if shape.kind != "plane":
        return None
    corners = np.array([[box[i, 0], box[j, 1], box[k, 2]] for i, j, k in product((0, 1), repeat=3)])
    local = (corners - pose[:3, 3]) @ pose[:3, :3]
    extent = float(np.ptp(box, axis=0).max())
    if local[:, 2].min() > FAR * extent or local[:, 2].max() < -FAR * extent:
        return None
    (low, high), more = (local.min(axis=0), local.max(axis=0)), BEYOND * extent
    ring = [(low[0] - more, low[1] - more), (high[0] + more, low[1] - more)]
    ring += [(high[0] + more, high[1] + more), (low[0] - more, high[1] + more)]
    return np.array([[x, y, 0.0] for x, y in ring]) @ pose[:3, :3].T + pose[:3, 3]


def floor_lines(patch: np.ndarray, view: View, size: float) -> list[np.ndarray]:
    """A floor that a flat view sees edge-on, as a line with hatching below; nothing of others."""
    normal = np.cross(patch[1] - patch[0], patch[2] - patch[1])
    normal /= np.linalg.norm(normal)
    if not view.flat or abs(normal @ view.toward) > EDGE_ON:
        return []
    along = np.cross(view.toward, normal)
    along /= np.linalg.norm(along)
    distances = patch @ along
    start = patch[int(distances.argmin())]
    length = float(np.ptp(distances))
    slanted = -0.9 * size * normal - 0.8 * size * along
    strokes = (start + along * x for x in np.linspace(0.8 * size, length, STROKES))
    return [start + np.outer([0.0, length], along), *(np.array([foot, foot + slanted]) for foot in strokes)]


def outlines(shape: lw.contact.Shape, pose: np.ndarray, view: View) -> list[np.ndarray]:
    """Lines (k, 3) of a shape: its silhouette in a flat view, else circles around it and edges."""
    if view.flat:
        vertices = _vertices(shape, pose)
        ring = ConvexHull(view.project(vertices)).vertices
        return [vertices[[*ring, ring[0]]]]
    return [line @ pose[:3, :3].T + pose[:3, 3] for line in shape_of(shape.kind, shape.size).edges()]


def _vertices(shape: lw.contact.Shape, pose: np.ndarray) -> np.ndarray:
    return shape_of(shape.kind, shape.size).mesh().vertices @ pose[:3, :3].T + pose[:3, 3]
