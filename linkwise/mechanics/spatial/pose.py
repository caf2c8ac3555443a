"""Poses: axes and origin of a frame in another, composed step by step along transforms."""

from __future__ import annotations

from .factors import Translation
from .three import Matrix3, Vector3
from .transform import Transform

Pose = tuple[Matrix3, Vector3]


def beyond(pose: Pose, transform: Transform) -> Pose:
    """The pose of the child frame of ``transform``, step by step: translations are along few axes, rotations about
    one."""
    rotation, position = pose
    for factor in transform.factors:
        if isinstance(factor, Translation):
            position = rotation @ factor.shift + position
        else:
            rotation = Matrix3(*(factor.vector_into(row) for row in rotation))
    return rotation, position
