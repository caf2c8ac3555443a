"""Spatial algebra on scalars that may be constants or traced: 3-vectors, transforms, motions, forces, inertias."""

from .factors import Orientation, Rotation, Translation, orientation, rotation_about, turn
from .inertia import ArticulatedInertia, RigidInertia
from .motion import Force, Motion
from .three import IDENTITY, ZERO, Matrix3, Symmetric3, Vector3
from .transform import Transform

__all__ = [
    "IDENTITY",
    "ZERO",
    "ArticulatedInertia",
    "Force",
    "Matrix3",
    "Motion",
    "Orientation",
    "RigidInertia",
    "Rotation",
    "Symmetric3",
    "Transform",
    "Translation",
    "Vector3",
    "orientation",
    "rotation_about",
    "turn",
]
