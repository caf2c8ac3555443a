"""Spatial vectors: motions [angular; linear] and forces [moment; force], angular part first as in the papers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..scalar import Scalar
from .three import ZERO, Vector3


class Motion(NamedTuple):
    """A spatial velocity or acceleration at the origin of a frame, in that frame's axes."""

    angular: Vector3
    linear: Vector3

    @staticmethod
    def of(six: Sequence[Scalar]) -> Motion:
        return Motion(Vector3(*six[:3]), Vector3(*six[3:]))

    def __add__(self, other: Motion) -> Motion:  # type: ignore[override]
        return Motion(self.angular + other.angular, self.linear + other.linear)

    def __sub__(self, other: Motion) -> Motion:
        return Motion(self.angular - other.angular, self.linear - other.linear)

    def __mul__(self, factor: Scalar) -> Motion:
        return Motion(self.angular * factor, self.linear * factor)

    def cross(self, other: Motion) -> Motion:
        """V x W, the rate of change of W when it is carried along by V."""
        return Motion(
            self.angular.cross(other.angular), self.angular.cross(other.linear) + self.linear.cross(other.angular)
        )

    def cross_force(self, force: Force) -> Force:
        """V x* F, the rate of change of F when it is carried along by V."""
        return Force(self.angular.cross(force.moment) + self.linear.cross(force.force), self.angular.cross(force.force))

    def flat(self) -> tuple[Scalar, ...]:
        return (*self.angular, *self.linear)


class Force(NamedTuple):
    """A spatial force or momentum at the origin of a frame, in that frame's axes."""

    moment: Vector3
    force: Vector3

    @staticmethod
    def of(six: Sequence[Scalar]) -> Force:
        return Force(Vector3(*six[:3]), Vector3(*six[3:]))

    def __add__(self, other: Force) -> Force:  # type: ignore[override]
        return Force(self.moment + other.moment, self.force + other.force)

    def __sub__(self, other: Force) -> Force:
        return Force(self.moment - other.moment, self.force - other.force)

    def __mul__(self, factor: Scalar) -> Force:
        return Force(self.moment * factor, self.force * factor)

    def dot(self, motion: Motion) -> Scalar:
        """Power of the force along the motion."""
        return self.moment.dot(motion.angular) + self.force.dot(motion.linear)

    def flat(self) -> tuple[Scalar, ...]:
        return (*self.moment, *self.force)


NO_MOTION = Motion(ZERO, ZERO)
NO_FORCE = Force(ZERO, ZERO)
