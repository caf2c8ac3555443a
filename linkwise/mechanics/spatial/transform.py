"""A change of frame as a sequence of elementary steps from a parent frame to a child frame."""

from __future__ import annotations

from typing import NamedTuple

from ..scalar import is_constant
from .factors import Factor, Translation, orientation
from .inertia import Inertia
from .motion import Force, Motion
from .three import IDENTITY, ZERO, Matrix3, Vector3


class Transform(NamedTuple):
    """Steps from parent to child; ``into`` means expressed in the child frame, ``back`` in the parent's."""

    factors: tuple[Factor, ...] = ()

    @staticmethod
    def from_pose(rotation: Matrix3, position: Vector3) -> Transform:
        """The transform of a child at ``position`` in the parent with axes as columns of ``rotation``."""
        shift = () if position == ZERO else (Translation(position),)
        return Transform(shift + orientation(rotation))

    @property
    def is_constant(self) -> bool:
        """Whether all its numbers are known while tracing."""
        return all(is_constant(number) for factor in self.factors for number in factor.numbers)

    def then(self, other: Transform) -> Transform:
        """This change of frame followed by another; two adjacent shifts become one."""
        if self.factors and other.factors:
            last, first = self.factors[-1], other.factors[0]
            if isinstance(last, Translation) and isinstance(first, Translation):
                return Transform((*self.factors[:-1], Translation(last.shift + first.shift), *other.factors[1:]))
        return Transform(self.factors + other.factors)

    def inverse(self) -> Transform:
        return Transform(tuple(f.inverse() for f in reversed(self.factors)))

    def vector_into(self, v: Vector3) -> Vector3:
        for f in self.factors:
            v = f.vector_into(v)
        return v

    def vector_back(self, v: Vector3) -> Vector3:
        for f in reversed(self.factors):
            v = f.vector_back(v)
        return v

    def motion_into(self, m: Motion) -> Motion:
        for f in self.factors:
            m = f.motion_into(m)
        return m

    def motion_back(self, m: Motion) -> Motion:
        for f in reversed(self.factors):
            m = f.motion_back(m)
        return m

    def force_into(self, f: Force) -> Force:
        for factor in self.factors:
            f = factor.force_into(f)
        return f

    def force_back(self, f: Force) -> Force:
        for factor in reversed(self.factors):
            f = factor.force_back(f)
        return f

    def inertia_back(self, inertia: Inertia) -> Inertia:
        for f in reversed(self.factors):
            inertia = f.inertia_back(inertia)
        return inertia

    def point_back(self, p: Vector3) -> Vector3:
        """Position in the parent of a point given in the child."""
        for f in reversed(self.factors):
            p = f.shift + p if isinstance(f, Translation) else f.vector_back(p)
        return p

    def rotation(self) -> Matrix3:
        """The child's axes in the parent, as columns."""
        return Matrix3(*(self.vector_into(row) for row in IDENTITY))

    def position(self) -> Vector3:
        """The child's origin in the parent."""
        return self.point_back(ZERO)
