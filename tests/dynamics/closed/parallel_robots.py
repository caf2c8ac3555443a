"""Parallel robots by formulas of their legs that share no code with the library: what they reach, where they are
singular."""

from __future__ import annotations

import numpy as np

import linkwise as lw

# -- two arms in the plane ----------------------------------------------------------------------------

NEAR, FAR, GAP = 0.8, 1.0, 0.8  # inner and outer links, and between the feet


def two_arms() -> lw.Mechanism:
    """Two arms of two links that hold a point together; "left_joint" and "right_joint" drive it.  At q = 0, where it is
    not assembled, all links lie along the x axis."""
    builder = lw.Builder()
    for name, foot in (("left", 0.0), ("right", GAP)):
        builder.link(name, 1.0, (NEAR / 2.0, 0.0, 0.0), (0.0, 0.01, 0.01))
        builder.link(f"{name}_far", 1.0, (FAR / 2.0, 0.0, 0.0), (0.0, 0.01, 0.01))
        builder.joint(f"{name}_joint", lw.Revolute((0, 0, 1)), "ground", name, (None, (foot, 0.0, 0.0)))
        builder.joint(f"{name}_elbow", lw.Revolute((0, 0, 1)), name, f"{name}_far", (None, (NEAR, 0.0, 0.0)))
    end = (None, (FAR, 0.0, 0.0))
    builder.loop("tip", lw.Revolute((0, 0, 1)), "left_far", end, "right_far", end)
    return builder.build("two_arms", (0.0, -9.81, 0.0)).with_frame("tip", "left_far", end)


def two_arms_at(tip: np.ndarray, elbows: tuple[int, int] = (1, -1)) -> np.ndarray:
    """(nq,): with the tip (2,) there; elbows of sign 1 are left of the line from foot to tip."""
    angles = []
    for foot, side in zip((0.0, GAP), elbows, strict=True):
        x, y = tip[0] - foot, tip[1]
        distance = np.hypot(x, y)
        inner = np.arccos((NEAR**2 + distance**2 - FAR**2) / (2.0 * NEAR * distance))
        outer = np.arccos((NEAR**2 + FAR**2 - distance**2) / (2.0 * NEAR * FAR))
        angles += [np.arctan2(y, x) + side * inner, side * (outer - np.pi)]
    return np.array(angles)


def elbows_of(q: np.ndarray) -> np.ndarray:
    """(..., 2, 2): the two elbows."""
    return np.stack(
        [
            np.stack([NEAR * np.cos(q[..., k]) + foot, NEAR * np.sin(q[..., k])], axis=-1)
            for k, foot in ((0, 0.0), (2, GAP))
        ],
        axis=-2,
    )


# -- the delta robot ----------------------------------------------------------------------------------

DELTA = {"base": 0.2, "arm": 0.3, "forearm": 0.8, "plate": 0.05}


def delta_legs(point: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(..., 3) each, of a platform at (..., 3): distance from shoulder to wrist in the plane of the arm, and the least
    and the largest that arm and forearm can span."""
    distance, least, largest = [], [], []
    for angle in np.radians((0.0, 120.0, 240.0)):
        outward = point[..., 0] * np.cos(angle) + point[..., 1] * np.sin(angle) + DELTA["plate"] - DELTA["base"]
        sideways = -point[..., 0] * np.sin(angle) + point[..., 1] * np.cos(angle)
        rod = np.sqrt(np.maximum(DELTA["forearm"] ** 2 - sideways**2, 0.0))
        distance.append(np.hypot(outward, point[..., 2]))
        least.append(np.abs(rod - DELTA["arm"]))
        largest.append(rod + DELTA["arm"])
    return np.stack(distance, axis=-1), np.stack(least, axis=-1), np.stack(largest, axis=-1)


# -- the Stewart platform -----------------------------------------------------------------------------


def stewart_points(height: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """(6, 3) each: feet in the world, heads on the platform."""
    feet, heads = [], []
    for i in range(6):
        pair, side = i // 2, 1.0 if i % 2 else -1.0
        for radius, spread, points in ((1.0, 50.0, feet), (0.5, 15.0, heads)):
            angle = np.radians(120.0 * pair + spread * side + 60.0)
            points.append([radius * np.cos(angle), radius * np.sin(angle), 0.0])
    return np.array(feet), np.array(heads)


def stewart_legs(position: np.ndarray, yaw: float = 0.0) -> np.ndarray:
    """(..., 6): how much longer the legs are than in the neutral position, platform level at (..., 3)."""
    feet, heads = stewart_points()
    turn = np.array([[np.cos(yaw), -np.sin(yaw), 0.0], [np.sin(yaw), np.cos(yaw), 0.0], [0.0, 0.0, 1.0]])
    legs = position[..., None, :] + heads @ turn.T - feet
    neutral = np.array([0.0, 0.0, 1.0]) + heads - feet
    return np.linalg.norm(legs, axis=-1) - np.linalg.norm(neutral, axis=-1)


def stewart_determinant(position: np.ndarray, yaw: float) -> float:
    """Of the legs' lines in Pluecker coordinates: zero where the platform moves though no leg changes its length."""
    feet, heads = stewart_points()
    turn = np.array([[np.cos(yaw), -np.sin(yaw), 0.0], [np.sin(yaw), np.cos(yaw), 0.0], [0.0, 0.0, 1.0]])
    arms = heads @ turn.T
    legs = position + arms - feet
    legs /= np.linalg.norm(legs, axis=-1, keepdims=True)
    return float(np.linalg.det(np.hstack([np.cross(arms, legs), legs])))
