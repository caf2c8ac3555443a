"""Orientations of links as angles: roll, pitch and yaw about fixed axes x, y and z, in this order."""

from __future__ import annotations

import numpy as np

from ..dynamics import trees as tree
from ..mechanism import Mechanism
from ..mechanism.coordinates import ANGLES
from .sizes import random_configurations

TRIED = 4  # random configurations
CONSTANT = 1e-12  # rates per unit of velocity


def wrapped(angle: np.ndarray) -> np.ndarray:
    """The same but for whole turns, from -pi to pi."""
    return np.asarray(angle - 2.0 * np.pi * np.round(angle / (2.0 * np.pi)))


def angle_of(rotation: np.ndarray, angle: str) -> np.ndarray:
    """(...): of rotations (..., 3, 3) = Rz(yaw) Ry(pitch) Rx(roll); pitch is within a quarter of a turn."""
    if angle == "roll":
        return np.arctan2(rotation[..., 2, 1], rotation[..., 2, 2])
    if angle == "yaw":
        return np.arctan2(rotation[..., 1, 0], rotation[..., 0, 0])
    return np.arctan2(-rotation[..., 2, 0], np.hypot(rotation[..., 0, 0], rotation[..., 1, 0]))


def angle_about_one_axis(rotation: np.ndarray, angle: str) -> float:
    """Of a rotation (3, 3) about the axis of this angle, or of one that may be turned about others before a yaw."""
    if angle == "pitch":
        return float(np.arctan2(-rotation[2, 0], rotation[2, 2]))
    return float(angle_of(rotation, angle))


def rates_of(rotation: np.ndarray, angular: np.ndarray, angle: str) -> np.ndarray:
    """(..., nv): the rate of the angle, with the angular velocity in the world (..., 3, nv)."""
    cosine, sine = rotation[..., 0, 0, None], rotation[..., 1, 0, None]  # of yaw, times the cosine of pitch
    level = np.hypot(cosine, sine)
    with np.errstate(divide="ignore", invalid="ignore"):  # upright, where roll and yaw cannot be told apart
        ahead = (cosine * angular[..., 0, :] + sine * angular[..., 1, :]) / level
        if angle == "pitch":
            return (cosine * angular[..., 1, :] - sine * angular[..., 0, :]) / level
        if angle == "roll":
            return ahead / level
        return angular[..., 2, :] - rotation[..., 2, 0, None] / level * ahead


def rates_about_one_axis(mech: Mechanism, link: str, angle: str) -> np.ndarray | None:
    """(nv,): the rate of an angle per unit of v, where it is constant: joints turn the link about this axis of the
    world alone, and the frame itself is turned about no other, unless the axis is that of yaw."""
    axis = ANGLES.index(angle)
    q = np.concatenate([mech.initial[None], random_configurations(mech, np.random.default_rng(0), TRIED)])
    angular = tree.jacobian(mech, q, link, "world_aligned")[..., :3, :]
    if np.abs(np.delete(angular, axis, axis=-2)).max(initial=0.0) > CONSTANT:
        return None
    rows = angular[:, axis]
    if np.abs(rows - rows[0]).max(initial=0.0) > CONSTANT or not rows[0].any():
        return None
    start = tree.frame_pose(mech, mech.initial, link)[:3, :3]
    about = start[:, axis] - np.eye(3)[axis]
    if angle != "yaw" and np.abs(about).max() > CONSTANT:
        return None
    return np.where(np.abs(rows[0]) > CONSTANT, rows[0], 0.0)
