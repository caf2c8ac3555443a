"""Visuals in the parts shared by all formats: mesh paths and scaling."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from linkwise.mechanism import Look, Pose

HERE = np.eye(3)


def pose_of(look: Look) -> Pose:
    """Rotation and position of a visual in the frame of its link."""
    numbers = np.reshape(look.pose, (3, 4))
    return numbers[:, :3], numbers[:, 3]


def scale_of(look: Look) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Scale, rotation and point of a mesh, whose vertices x become scale * (rotation.T @ (x - point)); None if its
    shape matrix has no such form.
    """
    numbers = np.reshape(look.shaping, (3, 4))
    linear, shift = numbers[:, :3], numbers[:, 3]
    if np.array_equal(linear, np.diag(np.diag(linear))):
        scale, rotation = np.diag(linear), HERE
    else:
        scale = np.linalg.norm(linear, axis=1) * (1.0 if np.linalg.det(linear) > 0.0 else -1.0)
        rotation = linear.T / np.where(scale == 0.0, 1.0, scale)
    if not scale.all() or not np.allclose(rotation.T @ rotation, HERE, rtol=0.0, atol=1e-9):
        return None
    return scale, rotation, -rotation @ (shift / scale) + 0.0


def mesh_path(look: Look, document: Path | None) -> str | None:
    """The mesh file relative to the document's folder, absolute for text; None if it is missing."""
    if look.path is None:
        return None
    there = look.path.absolute()
    try:
        shown = there if document is None else Path(os.path.relpath(there, document.absolute().parent))
    except ValueError:  # another drive of Windows
        shown = there
    return shown.as_posix()
