"""Links joined rigidly are one body: poses composed, masses and inertias combined by parallel axes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.mechanics.joints import Joint
from linkwise.mechanism import checks
from linkwise.mechanism.checks import IDENTITY, NO_INERTIA, MechanismError, snapped
from linkwise.mechanism.poses import Pose, checked_pose


@dataclass(frozen=True, eq=False)
class RigidMass:
    """A rigid distribution of mass seen from some frame.

    mass      kilograms
    com       (3,) centre of mass in that frame
    inertia   (3, 3) about the centre of mass, along the axes of that frame
    """

    mass: float
    com: np.ndarray
    inertia: np.ndarray

    @classmethod
    def checked(cls, label: str, mass: Any, com: Any, inertia: Any) -> RigidMass:
        """The mass described by a caller; if ``com`` is a pose, ``inertia`` is along its axes."""
        rotation, position = checked_pose(f"{label}: com", com)
        moments = checks.checked_inertia(f"{label}: inertia", inertia)
        if rotation is not IDENTITY and not np.array_equal(rotation, IDENTITY):
            moments = rotated(moments, rotation)
        checked = checks.checked_mass(label, mass)
        checks.require_finite_moments(label, checked, position, moments)
        return cls(checked, position, moments)

    @classmethod
    def from_numbers(cls, numbers: Sequence[float]) -> RigidMass:
        """The mass of 13 numbers in the layout of ``numbers``; empty input is no mass."""
        if not numbers:
            return NOTHING
        return cls(numbers[0], np.array(numbers[1:4]), np.array(numbers[4:]).reshape(3, 3))

    @property
    def numbers(self) -> tuple[float, ...]:
        """Mass, centre of mass, inertia by rows; empty without mass and inertia."""
        return () if self.is_nothing else (float(self.mass), *self.com.tolist(), *self.inertia.ravel().tolist())

    @property
    def is_nothing(self) -> bool:
        """Whether there is neither mass nor inertia."""
        return self.mass == 0.0 and not self.inertia.any()

    def seen_from(self, rotation: np.ndarray, position: np.ndarray) -> RigidMass:
        """The mass seen from a frame in which its present frame has this pose."""
        return RigidMass(self.mass, position + rotation @ self.com, rotated(self.inertia, rotation))


def rotated(inertia: np.ndarray, rotation: np.ndarray) -> np.ndarray:
    """A moment of inertia along the axes of a frame in which its own axes are ``rotation``."""
    if inertia is NO_INERTIA:
        return inertia
    turned = rotation @ inertia @ rotation.T
    return 0.5 * (turned + turned.T)


def point_inertia(mass: float, x: float, y: float, z: float) -> np.ndarray:
    """The rotational inertia about the origin of a mass at a point (parallel axes)."""
    xx, yy, zz = mass * (y * y + z * z), mass * (x * x + z * z), mass * (x * x + y * y)
    xy, xz, yz = -mass * (x * y), -mass * (x * z), -mass * (y * z)
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


NOTHING = RigidMass(0.0, np.zeros(3), NO_INERTIA)


ORIGIN = (np.eye(3), np.zeros(3))  # the pose of a frame in itself


def relative_pose(frame: Pose, pose: Pose) -> Pose:
    """The pose in ``frame``, from poses of both in a third frame."""
    return pose if frame is ORIGIN else (frame[0].T @ pose[0], frame[0].T @ (pose[1] - frame[1]))


def composed(outer: Pose, inner: Pose) -> Pose:
    """The pose ``inner`` given in a frame that itself has the pose ``outer``."""
    return snapped(outer[0] @ inner[0]), outer[1] + outer[0] @ inner[1]


def joint_pose(kind: Joint, q: list[float]) -> Pose:
    """Pose of the link's frame in the joint's frame at the joint's own coordinates."""
    transform, axes = kind.transform(q), np.array(kind.alignment, dtype=float)
    rotation, position = np.array(transform.rotation(), dtype=float), np.array(transform.position(), dtype=float)
    return snapped(axes @ rotation @ axes.T), axes @ position


def combined(parts: Iterable[RigidMass]) -> RigidMass:
    """All parts, seen from one common frame, as a single rigid mass.

    Parts without mass and inertia leave the numbers of the others untouched to the last bit.
    """
    parts = [part for part in parts if not part.is_nothing]
    if not parts:
        return NOTHING
    if len(parts) == 1:
        return parts[0]
    mass = sum(part.mass for part in parts)
    if mass == 0.0 and any(part.mass for part in parts):
        raise MechanismError("the masses of links that are welded together cancel: a negative mass must be fixed")
    centres = [part.com.tolist() for part in parts]
    first_moments = ([part.mass * x for x in centre] for part, centre in zip(parts, centres, strict=True))
    com = [sum(along) / mass for along in zip(*first_moments, strict=True)] if mass else [0.0] * 3
    inertia = np.zeros((3, 3))
    for part, center in zip(parts, centres, strict=True):
        inertia += part.inertia
        inertia += point_inertia(part.mass, center[0] - com[0], center[1] - com[1], center[2] - com[2])
    return RigidMass(mass, np.array(com), inertia)
