"""The elementary steps of a change of frame: a turn about a coordinate axis, a constant orientation, a shift.

Frame B is reached from frame A by one step.  ``into`` converts components from A to B, ``back`` from B to A.  A
sequence of steps is cheaper than their product: a turn costs four multiplications for a vector, a quarter-turn or a
shift along one axis almost nothing.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from ..scalar import Scalar, cos, is_constant, sin
from .inertia import Inertia
from .motion import Force, Motion
from .three import Matrix3, Vector3


class _Turn:
    """B has A's origin: both parts of a motion or force transform like vectors."""

    __slots__ = ()

    def vector_into(self, v: Vector3) -> Vector3:
        raise NotImplementedError

    def vector_back(self, v: Vector3) -> Vector3:
        raise NotImplementedError

    def motion_into(self, m: Motion) -> Motion:
        return Motion(self.vector_into(m.angular), self.vector_into(m.linear))

    def motion_back(self, m: Motion) -> Motion:
        return Motion(self.vector_back(m.angular), self.vector_back(m.linear))

    def force_into(self, f: Force) -> Force:
        return Force(self.vector_into(f.moment), self.vector_into(f.force))

    def force_back(self, f: Force) -> Force:
        return Force(self.vector_back(f.moment), self.vector_back(f.force))


class _AngleAboutAxis(NamedTuple):
    axis: int
    c: Scalar
    s: Scalar


class Rotation(_Turn, _AngleAboutAxis):
    """B is A turned about coordinate ``axis`` by the angle with cosine ``c`` and sine ``s``."""

    __slots__ = ()

    @property
    def numbers(self) -> tuple[Scalar, ...]:
        return (self.c, self.s)

    def vector_into(self, v: Vector3) -> Vector3:
        return v.turned(self.axis, self.c, self.s)

    def vector_back(self, v: Vector3) -> Vector3:
        return v.turned(self.axis, self.c, -self.s)

    def inertia_back(self, inertia: Inertia) -> Inertia:
        return inertia.turned(self.axis, self.c, -self.s)

    def matrix_back(self, matrix: Matrix3) -> Matrix3:
        return matrix.turned(self.axis, self.c, -self.s)

    def inverse(self) -> Rotation:
        return Rotation(self.axis, self.c, -self.s)


class _Axes(NamedTuple):
    matrix: Matrix3


class Orientation(_Turn, _Axes):
    """B's axes in A are the columns of ``matrix``."""

    __slots__ = ()

    @property
    def numbers(self) -> tuple[Scalar, ...]:
        return tuple(entry for row in self.matrix for entry in row)

    def vector_into(self, v: Vector3) -> Vector3:
        return self.matrix.T @ v

    def vector_back(self, v: Vector3) -> Vector3:
        return self.matrix @ v

    def inertia_back(self, inertia: Inertia) -> Inertia:
        return inertia.congruent(self.matrix.T)

    def matrix_back(self, matrix: Matrix3) -> Matrix3:
        return matrix.congruent(self.matrix.T)

    def inverse(self) -> Orientation:
        return Orientation(self.matrix.T)


class Translation(NamedTuple):
    """A translation: B has A's axes and its origin at ``shift`` in A."""

    shift: Vector3

    @property
    def numbers(self) -> tuple[Scalar, ...]:
        return tuple(self.shift)

    def vector_into(self, v: Vector3) -> Vector3:
        return v

    def vector_back(self, v: Vector3) -> Vector3:
        return v

    def motion_into(self, m: Motion) -> Motion:
        return Motion(m.angular, m.linear + m.angular.cross(self.shift))

    def motion_back(self, m: Motion) -> Motion:
        return Motion(m.angular, m.linear - m.angular.cross(self.shift))

    def force_into(self, f: Force) -> Force:
        return Force(f.moment - self.shift.cross(f.force), f.force)

    def force_back(self, f: Force) -> Force:
        return Force(f.moment + self.shift.cross(f.force), f.force)

    def inertia_back(self, inertia: Inertia) -> Inertia:
        return inertia.shifted(self.shift)

    def inverse(self) -> Translation:
        return Translation(-self.shift)


Factor = Rotation | Orientation | Translation

AXES = (Vector3(1.0, 0.0, 0.0), Vector3(0.0, 1.0, 0.0), Vector3(0.0, 0.0, 1.0))


def rotation_about(axis: int, angle: Scalar) -> Rotation:
    """A turn by ``angle``; the sine and cosine of a constant quarter-turn are exact."""
    if is_constant(angle):
        quarter_turns = angle / (math.pi / 2)
        if quarter_turns == round(quarter_turns):
            c, s = ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0))[round(quarter_turns) % 4]
            return Rotation(axis, c, s)
    return Rotation(axis, cos(angle), sin(angle))


def turn(rotation: Rotation, quarter_turns: int) -> Rotation:
    """The rotation followed by ``quarter_turns`` exact quarter-turns about the same axis."""
    c, s = rotation.c, rotation.s
    for _ in range(quarter_turns % 4):
        c, s = -s, c
    return Rotation(rotation.axis, c, s)


def orientation(matrix: Matrix3) -> tuple[Factor, ...]:
    """The cheapest steps for an orientation: none, a turn about a coordinate axis, or the full matrix."""
    if not all(is_constant(entry) for row in matrix for entry in row):
        return (Orientation(matrix),)
    for axis in range(3):
        if matrix[axis] == AXES[axis] and matrix.columns()[axis] == AXES[axis]:
            i, j = (axis + 1) % 3, (axis + 2) % 3
            c, s = matrix[i][i], matrix[j][i]
            return () if (c, s) == (1.0, 0.0) else (Rotation(axis, c, s),)
    return (Orientation(matrix),)
