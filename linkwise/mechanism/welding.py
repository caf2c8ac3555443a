"""Links joined rigidly are one body: poses composed, masses and inertias combined by parallel axes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.mechanism import checks
from linkwise.mechanism.checks import MechanismError, snapped
from linkwise.mechanism.poses import checked_pose


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
    def given(cls, what: str, mass: Any, com: Any, inertia: Any) -> RigidMass:
        """The mass that a caller describes; the axes of a ``com`` that is a pose are those of ``inertia``."""
        rotation, position = checked_pose(f"{what}: com", com)
        moments = checks.checked_inertia(f"{what}: inertia", inertia)
        if not np.array_equal(rotation, np.eye(3)):
            moments = rotated(moments, rotation)
        return cls(checks.checked_mass(what, mass), position, moments)

    @property
    def is_nothing(self) -> bool:
        """No mass and no inertia."""
        return self.mass == 0.0 and not self.inertia.any()

    def seen_from(self, rotation: np.ndarray, position: np.ndarray) -> RigidMass:
        """The same mass seen from a frame in which the present one has this pose."""
        return RigidMass(self.mass, position + rotation @ self.com, rotated(self.inertia, rotation))


def rotated(inertia: np.ndarray, rotation: np.ndarray) -> np.ndarray:
    """A moment of inertia along the axes of a frame in which those it was given along are ``rotation``."""
    turned = rotation @ inertia @ rotation.T
    return 0.5 * (turned + turned.T)


NOTHING = RigidMass(0.0, np.zeros(3), np.zeros((3, 3)))


def composed(
    outer: tuple[np.ndarray, np.ndarray], inner: tuple[np.ndarray, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """The pose ``inner`` given in a frame that itself has the pose ``outer``."""
    return snapped(outer[0] @ inner[0]), outer[1] + outer[0] @ inner[1]


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
    com = sum((part.mass * part.com for part in parts), np.zeros(3)) / mass if mass else np.zeros(3)
    inertia = np.zeros((3, 3))
    for part in parts:
        offset = part.com - com
        inertia = inertia + part.inertia + part.mass * (offset @ offset * np.eye(3) - np.outer(offset, offset))
    return RigidMass(mass, com, inertia)
