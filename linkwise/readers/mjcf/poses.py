"""Poses as MJCF writes them: a position, and one of five ways to write an orientation."""

from __future__ import annotations

import numpy as np

from linkwise.mechanics.spatial.quaternion import rotation_matrix
from linkwise.mechanism import Pose, snapped
from linkwise.readers.mjcf.document import ORIENTATIONS, Settings
from linkwise.readers.protocol import Element

HERE: Pose = (np.eye(3), np.zeros(3))
_AXES = dict(zip("xyz", np.eye(3), strict=True))
_PARALLEL = 1e-10  # sine of an angle below which two directions are the same


def pose_of(element: Element, settings: Settings) -> Pose:
    """The pose in an element's attributes, in the frame around it."""
    return orientation_of(element, settings), np.array(element.vector("pos", (0.0, 0.0, 0.0)))


def orientation_of(element: Element, settings: Settings) -> np.ndarray:
    """The rotation in an element's attributes; the identity without any."""
    given = [key for key in ORIENTATIONS if key in element.attributes]
    if not given:
        return np.eye(3)
    if len(given) > 1:
        raise element.error(f"{element.label}: {' and '.join(given)} both give its orientation; keep one of them")
    key = given[0]
    numbers = np.array(element.numbers(key, {"quat": 4, "axisangle": 4, "xyaxes": 6, "zaxis": 3, "euler": 3}[key]))
    if key == "euler":
        return rotation_from_euler([settings.radians(angle) for angle in numbers], settings.euler)
    if key == "quat":
        _direction(element, key, numbers)
        return snapped(np.array(rotation_matrix(numbers.tolist()), dtype=float))
    if key == "axisangle":
        return rotation_about(_direction(element, key, numbers[:3]), settings.radians(numbers[3]))
    if key == "zaxis":
        return rotation_to(_direction(element, key, numbers))
    x = _direction(element, key, numbers[:3])
    y = _direction(element, key, numbers[3:] - (x @ numbers[3:]) * x)
    return snapped(np.column_stack([x, y, np.cross(x, y)]))


def _direction(element: Element, key: str, vector: np.ndarray) -> np.ndarray:
    length = np.linalg.norm(vector)
    if length < _PARALLEL:
        raise element.error(f'{element.label}: {key}="{element.attributes[key]}" has no direction')
    return vector / length


def rotation_about(axis: np.ndarray, angle: float) -> np.ndarray:
    """The rotation by an angle about a unit axis; right angles come out exact."""
    sine, cosine = np.sin(angle), np.cos(angle)
    x, y, z = axis
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return snapped(cosine * np.eye(3) + sine * cross + (1.0 - cosine) * np.outer(axis, axis))


def rotation_to(direction: np.ndarray) -> np.ndarray:
    """The shortest rotation that takes z to a unit direction; for -z the one by pi about x."""
    axis = np.cross(_AXES["z"], direction)
    sine = float(np.linalg.norm(axis))
    axis = axis / sine if sine > _PARALLEL else _AXES["x"]
    return rotation_about(axis, float(np.arctan2(sine, direction[2])))


def rotation_from_euler(angles: list[float], sequence: str) -> np.ndarray:
    """Rotations one after the other: intrinsic (lower case), about axes that move along, or extrinsic (upper case)."""
    result = np.eye(3)
    for letter, angle in zip(sequence, angles, strict=True):
        step = rotation_about(_AXES[letter.lower()], angle)
        result = result @ step if letter.islower() else step @ result
    return snapped(result)


def between(element: Element) -> tuple[Pose, float]:
    """The frame halfway along ``fromto``, with z from its end to its start, and half its length."""
    ends = np.array(element.numbers("fromto", 6)).reshape(2, 3)
    if np.any(element.vector("pos", (0.0, 0.0, 0.0))):
        raise element.error(f"{element.label} has both pos and fromto; keep one of them")
    length = float(np.linalg.norm(ends[0] - ends[1]))
    if length < _PARALLEL:
        raise element.error(f'{element.label}: the points of fromto="{element.attributes["fromto"]}" coincide')
    return (rotation_to((ends[0] - ends[1]) / length), ends.mean(axis=0)), length / 2.0
