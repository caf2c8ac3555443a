"""Spatial algebra as plain 6x6 matrices, angular part first."""

from __future__ import annotations

import numpy as np

from linkwise.mechanics.spatial import (
    ArticulatedInertia,
    Force,
    Matrix3,
    Motion,
    Orientation,
    RigidInertia,
    Rotation,
    Symmetric3,
    Transform,
    Translation,
    Vector3,
)


def skew(x) -> np.ndarray:
    return np.array([[0.0, -x[2], x[1]], [x[2], 0.0, -x[0]], [-x[1], x[0], 0.0]])


def turn(axis: int, angle: float) -> np.ndarray:
    """Rotation matrix about a coordinate axis: columns are the turned frame's axes."""
    k = skew(np.eye(3)[axis])
    return np.eye(3) + np.sin(angle) * k + (1.0 - np.cos(angle)) * k @ k


def motion_back(rotation: np.ndarray, position: np.ndarray) -> np.ndarray:
    """(6, 6): a motion at a frame with this pose, as a motion at the frame in which the pose is given."""
    return np.block([[rotation, np.zeros((3, 3))], [skew(position) @ rotation, rotation]])


def pose(transform: Transform) -> tuple[np.ndarray, np.ndarray]:
    """Rotation and position, composed step by step."""
    rotation, position = np.eye(3), np.zeros(3)
    for step in transform.factors:
        if isinstance(step, Translation):
            position = position + rotation @ np.array(step.shift)
        elif isinstance(step, Rotation):
            rotation = rotation @ turn(step.axis, np.arctan2(step.s, step.c))
        else:
            rotation = rotation @ np.array(step.matrix)
    return rotation, position


def rigid(inertia: RigidInertia) -> np.ndarray:
    """(6, 6) of a rigid inertia."""
    moment = np.array([[inertia.moment.entry(i, j) for j in range(3)] for i in range(3)])
    h = skew(inertia.h)
    return np.block([[moment, h], [h.T, inertia.mass * np.eye(3)]])


def articulated(inertia: ArticulatedInertia) -> np.ndarray:
    return np.array([[inertia.entry(i, j) for j in range(6)] for i in range(6)])


def six(value: Motion | Force) -> np.ndarray:
    return np.array(value.flat())


# -- random values ------------------------------------------------------------------------------------


def random_rotation(rng: np.random.Generator) -> np.ndarray:
    q, r = np.linalg.qr(rng.normal(size=(3, 3)))
    q = q * np.sign(np.diag(r))
    return q * np.linalg.det(q)


def random_transform(rng: np.random.Generator, steps: int = 5) -> Transform:
    """Shifts, turns about coordinate axes and constant orientations in any order."""
    factors: list = []
    for kind in rng.integers(3, size=steps):
        if kind == 0:
            factors.append(Translation(Vector3(*rng.normal(size=3).tolist())))
        elif kind == 1:
            angle = float(rng.uniform(-3.0, 3.0))
            factors.append(Rotation(int(rng.integers(3)), float(np.cos(angle)), float(np.sin(angle))))
        else:
            factors.append(Orientation(Matrix3.from_rows(random_rotation(rng).tolist())))
    return Transform(tuple(factors))


def random_rigid(rng: np.random.Generator) -> RigidInertia:
    return RigidInertia.about_com(
        float(rng.uniform(0.5, 2.0)), Vector3(*rng.normal(size=3).tolist()), random_moment(rng)
    )


def random_moment(rng: np.random.Generator) -> Symmetric3:
    root = rng.normal(size=(3, 3))
    return Symmetric3.from_rows((root @ root.T).tolist())


def random_articulated(rng: np.random.Generator) -> ArticulatedInertia:
    root = rng.normal(size=(6, 6))
    matrix = (root @ root.T).tolist()
    return ArticulatedInertia.from_entries(lambda i, j: matrix[i][j])
