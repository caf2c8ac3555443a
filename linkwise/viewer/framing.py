"""Cameras of pages, and positions of several mechanisms beside each other.  No browser here."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import linkwise as lw

from .scene import Scene
from .shapes import ENDLESS
from .skeleton import Skeleton
from .views import view_of

FIELD, ASPECT = np.radians(45.0), 1.15  # of view from top to bottom; width over height of narrow windows
LIFT, LIFT_OF_ROWS = 0.35, 0.7  # tangents of how far down the camera looks: at one row, and at least at several
ABOVE = 1.2  # the same for what moves in a horizontal plane
NEAREST = 0.8  # of the depth of what is seen: nearer cameras make near parts too large
FILLED = 0.88  # of the picture
APART = 1.15  # distance of neighbours, in units of their size
FAR = 3.0  # times its size: the way of a mechanism that goes further is not all in the picture
MOMENTS = 24  # of each motion that are looked at


@dataclass(frozen=True)
class Framing:
    """Offsets (n, 3) of mechanisms, a camera at ``position`` that looks at ``look_at``, and the largest distance of
    points from the origin."""

    offsets: np.ndarray
    position: np.ndarray
    look_at: np.ndarray
    reach: float


def frame(count: int, points: np.ndarray, aside: np.ndarray, up: np.ndarray, lift: float = LIFT) -> Framing:
    """``count`` mechanisms with points (n, 3) each, in the number of rows that makes them largest in the picture."""
    candidates = []
    for columns in range(1, count + 1):
        rows = -(-count // columns)
        if columns < count and columns * (rows - 1) >= count:
            continue  # fewer columns do for as many rows
        offsets = beside(count, columns, np.ptp(points, axis=0), aside, up)
        everywhere = (points[None] + offsets[:, None]).reshape(-1, 3)
        position, look_at = camera(everywhere, aside, up, lift if rows == 1 else max(lift, LIFT_OF_ROWS))
        candidates.append(Framing(offsets, position, look_at, float(np.linalg.norm(everywhere, axis=1).max())))
    return min(candidates, key=lambda camera: float(np.linalg.norm(camera.position - camera.look_at)))


def beside(count: int, columns: int, extent: np.ndarray, aside: np.ndarray, up: np.ndarray) -> np.ndarray:
    """(count, 3): positions of mechanisms of some extent (3,) in rows across the view, about the origin.

    Rows are far enough apart that tall mechanisms do not hide those behind them.
    """
    across = np.cross(up, aside) / np.linalg.norm(np.cross(up, aside))
    away = -aside / np.linalg.norm(aside)
    wide, deep, high = (float(np.abs(way) @ extent) for way in (across, away, up))
    least = 0.1 * max(wide, deep, high)
    row, column = np.divmod(np.arange(count), columns)
    sideways = APART * max(wide, least) * (column - 0.5 * (min(columns, count) - 1))
    return np.outer(sideways, across) + np.outer(APART * max(deep, high) * row, away)


def camera(points: np.ndarray, aside: np.ndarray, up: np.ndarray, lift: float = LIFT) -> tuple[np.ndarray, np.ndarray]:
    """Position of the nearest camera that sees all points (n, 3) from a side, and the point it looks at.

    A point at (x, y, z) to the right, above and towards the camera is seen by one at distance d that looks at (c, e)
    if |x - c| < t (d - z), and so with y: c and d follow from the largest x + t z and the smallest x - t z.
    """
    back = (aside + lift * up) / np.linalg.norm(aside + lift * up)
    right = np.cross(up, back) / np.linalg.norm(np.cross(up, back))
    x, y, z = (points @ np.stack([right, np.cross(back, right), back], axis=-1)).T
    tangent = FILLED * np.tan(0.5 * FIELD)
    near, far, middle = float(z.max()), float(z.min()), []
    distance = near + max(NEAREST * (near - far), 1e-3)
    for values, slope in ((x, tangent * ASPECT), (y, tangent)):
        high, low = float((values + slope * z).max()), float((values - slope * z).min())
        middle.append(0.5 * (high + low))
        distance = max(distance, 0.5 * (high - low) / slope)
    target = np.stack([right, np.cross(back, right)], axis=-1) @ middle
    ahead = 0.5 * (near + far)  # what it looks at, and is rotated about, is in the middle of the mechanism
    return target + back * distance, target + back * ahead


def viewpoint(mech: lw.Mechanism, q: np.ndarray, points: np.ndarray, up: np.ndarray) -> tuple[np.ndarray, float]:
    """(3,) and a tangent: the level direction towards the viewer, and the slope of the view downwards.

    The view is square to an upright plane of motion, from above for a level one, and from ahead otherwise.
    """
    seen = view_of(mech, q, "auto", points)
    if seen.flat and abs(seen.toward @ up) < 0.5:
        return seen.toward, LIFT
    across = np.cross(up, np.eye(3)[int(np.argmin(np.abs(up)))])
    aside = -np.cross(up, across) + 0.6 * across  # robots look along x, most of them
    return aside / np.linalg.norm(aside), ABOVE if seen.flat else LIFT


def points_of(scene: Scene, mech: lw.Mechanism, q: np.ndarray) -> np.ndarray:
    """(n, 3): points in the picture of configurations (..., nq): the skeleton, and corners of boxes around moving
    parts."""
    first, *others = np.reshape(q, (-1, mech.nq))
    if not mech.n_links:
        return np.zeros((1, 3))
    moving = [part for part in scene.shown if part.link in scene.link_names and len(part.shape.mesh().vertices)]
    points = np.concatenate([Skeleton(mech).at(first).own_points, scene.corners(lw.link_poses(mech, first), moving)])
    if not others:
        return points
    poses = lw.link_poses(mech, np.array(others))
    extent = np.concatenate([points, poses[..., :3, 3].reshape(-1, 3), scene.corners(poses, moving)])
    size = np.linalg.norm(np.ptp(points, axis=0))
    return extent if np.linalg.norm(np.ptp(extent, axis=0)) < FAR * size else points


def floor_height(points: np.ndarray, up: np.ndarray) -> float:
    """Height along ``up`` of a floor below points (n, 3)."""
    lowest = float((points @ up).min())
    return 0.0 if 0.0 <= lowest < ENDLESS else lowest
