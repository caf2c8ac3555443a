"""Geometric subproblems: angles of rotations about given axes that take given vectors to given places, without
iterations.

Subproblems 1 and 2 are those of Paden and Kahan (Murray, Li, Sastry, "A Mathematical Introduction to Robotic
Manipulation", 1994, 3.2); the projection is subproblem 4 of Elias and Wen ("IK-Geo", 2022).  Rotations are computed as
cosines and sines by square roots, and converted to angles at the end.  If a subproblem has no solution, the result is
the nearest angle with a negative ``room``; if every angle solves it, the result is zero.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from ..scalar import Scalar, atan2, is_constant, is_zero, select, sqrt
from ..spatial import Vector3

NOTHING = 1e-25  # squared lengths in units of the arm: smaller ones leave their angle undetermined
ROUND_OFF = 1e-12  # of cosines between axes


class AxisRotation(NamedTuple):
    """A rotation about a constant axis."""

    axis: Vector3
    c: Scalar
    s: Scalar
    angle: Scalar

    def rotate(self, v: Vector3) -> Vector3:
        along = self.axis * self.axis.dot(v)
        return along + (v - along) * self.c + self.axis.cross(v) * self.s

    def back(self, v: Vector3) -> Vector3:
        along = self.axis * self.axis.dot(v)
        return along + (v - along) * self.c - self.axis.cross(v) * self.s

    @property
    def opposite(self) -> AxisRotation:
        """Half a rotation further."""
        return AxisRotation(self.axis, -self.c, -self.s, wrap_angle(self.angle + math.pi))


class Rotations(NamedTuple):
    """Two solutions of a subproblem, equal if there is only one. They exist if ``room``, the squared sine of half the
    angle between them, is not negative.
    """

    both: tuple[AxisRotation, AxisRotation]
    room: Scalar


class Pairs(NamedTuple):
    """Two pairs of rotations, first and second, with their ``room``; ``mirrored`` if the first rotations of the pairs
    are half a rotation apart, as for perpendicular axes."""

    both: tuple[tuple[AxisRotation, AxisRotation], tuple[AxisRotation, AxisRotation]]
    room: Scalar
    mirrored: bool = False


def wrap_angle(angle: Scalar) -> Scalar:
    """An angle between -3 pi and 3 pi as one between -pi and pi."""
    lower = select(angle > math.pi, angle - 2.0 * math.pi, angle)
    return select(lower < -math.pi, lower + 2.0 * math.pi, lower)


def least(*rooms: Scalar) -> Scalar:
    smallest = rooms[0]
    for room in rooms[1:]:
        smallest = select(room < smallest, room, smallest)
    return smallest


def across(axis: Vector3, v: Vector3) -> Vector3:
    """The part of v across a unit vector."""
    return v - axis * axis.dot(v)


def _tidy(x: Scalar) -> Scalar:
    """A constant, with round-off of zero replaced by zero."""
    return 0.0 if is_constant(x) and abs(x) < ROUND_OFF else x


def _renormalize(c: Scalar, s: Scalar) -> tuple[Scalar, Scalar]:
    """Cosine and sine rescaled to length one by Newton steps for the root, as round-off is large after a division by a
    small number."""
    for _ in range(2):
        longer = 1.5 - 0.5 * (c * c + s * s)
        c, s = c * longer, s * longer
    return c, s


def rotation_taking(axis: Vector3, p: Vector3, q: Vector3, square: Scalar) -> AxisRotation:
    """Rotation about ``axis`` from p to q (subproblem 1), whose components across it have equal length but for
    round-off; ``square`` is its square."""
    nowhere = square < NOTHING
    x, y = select(nowhere, 1.0, across(axis, p).dot(q)), select(nowhere, 0.0, axis.cross(p).dot(q))
    scale = 1.0 / select(nowhere, 1.0, square)
    return AxisRotation(axis, *_renormalize(x * scale, y * scale), atan2(y, x))


def rotations_meeting(
    axis: Vector3, h: Vector3, p: Vector3, d: Scalar, other_form: tuple[Scalar, Scalar] | None = None
) -> Rotations:
    """The rotations about ``axis`` for which h . (R p) = d (subproblem 4).

    A cos + B sin = x is solved by the angle of (A, B) plus or minus the angle of (x, root), where root^2 = A^2 + B^2 -
    x^2, which is inaccurate near zero.  ``other_form`` is an expression for it that is accurate if its second number, a
    squared length, is small.
    """
    along = h.dot(axis) * axis.dot(p)
    a, b, x = h.dot(p) - along, h.dot(axis.cross(p)), d - along
    square = a * a + b * b
    room = square - x * x
    if other_form is not None:
        room = other_form[0] if is_constant(square) else select(square < other_form[1], room, other_form[0])
    root = sqrt(select(room < 0.0, 0.0, room))
    nowhere = square < NOTHING
    scale = 1.0 / select(nowhere, 1.0, square)
    both = []
    for sign in (1.0, -1.0):
        c, s = a * x - sign * b * root, b * x + sign * a * root
        if is_constant(a) and is_constant(b):
            angle = wrap_angle(math.atan2(b, a) + sign * atan2(root, x))
            both.append(AxisRotation(axis, c * scale, s * scale, angle))
        else:
            c, s = select(nowhere, 1.0, c), select(nowhere, 0.0, s)
            both.append(AxisRotation(axis, *_renormalize(c * scale, s * scale), atan2(s, c)))
    return Rotations((both[0], both[1]), room * scale)


def rotations_reaching(axis: Vector3, a: Vector3, b: Vector3, square: Scalar) -> Rotations:
    """The rotations about ``axis`` for which |a + R b|^2 is ``square`` (subproblem 3)."""
    return rotations_meeting(axis, a, b, 0.5 * (square - a.dot(a) - b.dot(b)))


def pair_taking(first: Vector3, second: Vector3, p: Vector3, q: Vector3, between: AxisRotation | None = None) -> Pairs:
    """The rotations about ``first`` and ``second`` for which R1 R2 p = q, or R1 B R2 p = q (subproblem 2); p and q are
    of one length.

    The root is of Gram's determinant of the first axis, the second and q.  It uses the length of q across the first
    axis, instead of a difference of squares, for accuracy.
    """
    seen = first if between is None else between.back(first)
    a, b, d = _tidy(seen.dot(second)), _tidy(second.dot(p)), first.dot(q)
    aside = across(first, q)
    aside_square = aside.dot(aside)
    gram = aside_square - b * b + (0.0 if is_zero(a) else a * (2.0 * b * d - a * q.dot(q)))
    rotations = rotations_meeting(second, seen, p, d, (gram, aside_square))

    def leading(rotation: AxisRotation) -> AxisRotation:
        moved = rotation.rotate(p)
        return rotation_taking(first, moved if between is None else between.rotate(moved), q, aside_square)

    near, far = rotations.both
    outer = leading(near)
    mirrored = is_zero(a) and is_zero(b) and between is None
    return Pairs(((outer, near), (outer.opposite if mirrored else leading(far), far)), rotations.room, mirrored)


def planar_pairs(axis: Vector3, a: Vector3, b: Vector3, target: Vector3) -> Pairs:
    """Two rotations about parallel axes for which R1 (a + R2 b) = target, in the plane across them: a triangle."""
    a, b, target = across(axis, a), across(axis, b), across(axis, target)
    square = target.dot(target)
    rotations = rotations_reaching(axis, a, b, square)
    first, second = (
        (rotation_taking(axis, a + rotation.rotate(b), target, square), rotation) for rotation in rotations.both
    )
    return Pairs((first, second), rotations.room)
