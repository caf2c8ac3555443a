"""Inverse kinematics of arms of six revolute joints in closed form: all configurations of a pose, by subproblems.

With E_i the motion of joint i by its angle, about an axis along h_i through a point p_i as they are at zero, the hand
has the pose T where

    G = T M^-1 = E_1 E_2 E_3 E_4 E_5 E_6,         M the pose of the hand at zero

If three axes meet in a point c (Pieper, "The Kinematics of Manipulators under Computer Control", 1968), or three
successive axes are parallel, projections and lengths of G c and of the axes of G depend on few of the angles; each step
is then a subproblem (``subproblems.py``).  Arms whose first joints have these properties instead of the last are read
backwards: G^-1 = E_6^-1 ... E_1^-1.

There are up to eight configurations, from three binary choices.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..recursions.tree import Configuration, Tree
from ..scalar import Matrix, Scalar, dot, select, sqrt
from ..spatial import IDENTITY, ZERO, Matrix3, Vector3
from ..spatial.pose import beyond
from .kinematics import path_transform
from .subproblems import (
    AxisRotation,
    least,
    pair_taking,
    planar_pairs,
    rotation_taking,
    rotations_meeting,
    rotations_reaching,
    wrap_angle,
)

BRANCHES = 8
WHOLE = 2.0 * math.pi
MISSING = 1e6  # squared radians: penalty of an invalid configuration, larger than any distance from the guess
BEYOND = 1e22  # penalty per squared radian beyond a limit: those within limits are nearest, but for a nanoradian

Three = tuple[float, float, float]


@dataclass(frozen=True)
class ArmGeometry:
    """The axes of six revolute joints, from the base to the hand.

    kind         key of ``SOLUTIONS``, read from the base or, ``backwards``, from the hand
    axes         (6, 3): unit vectors at zero angles, in the axes ``base``, whose rows are in the world
    signs        (6,): of the joints' angles against those about ``axes``; parallel axes point in one direction
    points       (6, 3): on the axes; ``centre`` is the common point of the axes that meet in this kind
    hand_rotation, hand_position   the inverse of the hand's pose at zero, rotation by rows
    slack        tolerance of a negative ``room``, for round-off and axes that deviate from the kind
    size         of the arm, a power of two; ``points``, ``centre`` and ``hand_position`` are in units of it
    """

    kind: str
    backwards: bool
    axes: tuple[Three, ...]
    signs: tuple[float, ...]
    points: tuple[Three, ...]
    centre: Three
    base: tuple[Three, ...]
    hand_rotation: tuple[Three, ...]
    hand_position: Three
    slack: float = 1e-12
    size: float = 1.0


class Axes(NamedTuple):
    """Six joint axes in the order of G: directions, points, a common point of several axes, and a unit vector across
    the last."""

    h: Sequence[Vector3]
    p: Sequence[Vector3]
    centre: Vector3
    across_last: Vector3


class Branch(NamedTuple):
    """One configuration: six angles, and the least ``room`` of its subproblems."""

    angles: Sequence[Scalar]
    room: Scalar


Branches = Iterator[Branch]


# -- three axes meet: positions of the centre by three joints, then rotations by the others -------------------------


def _wrist(axes: Axes, g: Matrix3, rotations: Sequence[AxisRotation], room: Scalar) -> Branches:
    """The last three angles, after the first three."""
    last, aside = g @ axes.h[5], g @ axes.across_last
    for rotation in rotations:
        last, aside = rotation.back(last), rotation.back(aside)
    for ends, there in _last_three(axes, None, axes.h[3], last, aside):
        yield Branch([rotation.angle for rotation in (*rotations, *ends)], least(room, there))


def _last_three(
    axes: Axes, between: AxisRotation | None, first: Vector3, last: Vector3, aside: Vector3
) -> Iterator[tuple[tuple[AxisRotation, AxisRotation, AxisRotation], Scalar]]:
    """Rotations about ``first``, the fifth and the sixth axis that take the last axis and a vector across it to
    ``last`` and ``aside``; ``between`` is a known rotation between the first two, or None."""
    h5, h6 = axes.h[4], axes.h[5]
    pairs = pair_taking(first, h5, h6, last, between)
    (outer, inner), (outer2, inner2) = pairs.both
    end = _last(axes, (outer, between, inner), aside)
    yield (outer, inner, end), pairs.room
    end2 = end.opposite if pairs.mirrored else _last(axes, (outer2, between, inner2), aside)
    yield (outer2, inner2, end2), pairs.room


def _last(axes: Axes, before: Sequence[AxisRotation | None], aside: Vector3) -> AxisRotation:
    for rotation in before:
        if rotation is not None:
            aside = rotation.back(aside)
    return rotation_taking(axes.h[5], axes.across_last, aside, 1.0)


def _wrist_after_parallel_axes(axes: Axes, g: Matrix3, t: Vector3) -> Branches:
    """Axes 4, 5, 6 meet, 2 and 3 are parallel: rotations about 2 and 3 preserve the centre's coordinate along them."""
    h, p, c = axes.h, axes.p, axes.centre
    target = g @ c + t - p[0]
    firsts = rotations_meeting(h[0], target, h[1], h[1].dot(c - p[0]))
    for first in firsts.both:
        pairs = planar_pairs(h[1], p[2] - p[1], c - p[2], first.back(target) - (p[1] - p[0]))
        for pair in pairs.both:
            yield from _wrist(axes, g, (first, *pair), least(firsts.room, pairs.room))


def _wrist_after_parallel_first_axes(axes: Axes, g: Matrix3, t: Vector3) -> Branches:
    """Axes 4, 5, 6 meet, 1 and 2 are parallel: the third joint alone moves the centre along these."""
    h, p, c = axes.h, axes.p, axes.centre
    target = g @ c + t
    thirds = rotations_meeting(h[2], h[0], c - p[2], h[0].dot(target - p[2]))
    for third in thirds.both:
        arm = p[2] + third.rotate(c - p[2]) - p[1]
        pairs = planar_pairs(h[0], p[1] - p[0], arm, target - p[0])
        for pair in pairs.both:
            yield from _wrist(axes, g, (*pair, third), least(thirds.room, pairs.room))


def _wrist_after_meeting_first_axes(axes: Axes, g: Matrix3, t: Vector3) -> Branches:
    """Axes 4, 5, 6 meet, and so do 1 and 2: the third joint alone changes the distance of the two points."""
    h, p, c = axes.h, axes.p, axes.centre
    target = g @ c + t - p[0]
    thirds = rotations_reaching(h[2], p[2] - p[0], c - p[2], target.dot(target))
    for third in thirds.both:
        pairs = pair_taking(h[0], h[1], p[2] - p[0] + third.rotate(c - p[2]), target)
        for pair in pairs.both:
            yield from _wrist(axes, g, (*pair, third), least(thirds.room, pairs.room))


def _wrist_after_meeting_axes(axes: Axes, g: Matrix3, t: Vector3) -> Branches:
    """Axes 4, 5, 6 meet, and so do 2 and 3: the first joint alone changes the distance of the two points."""
    h, p, c = axes.h, axes.p, axes.centre
    target, arm, elbow = g @ c + t - p[0], c - p[1], p[0] - p[1]
    missing = 0.5 * (arm.dot(arm) - elbow.dot(elbow) - target.dot(target))
    firsts = rotations_meeting(h[0], target, elbow, missing)
    for first in firsts.both:
        pairs = pair_taking(h[1], h[2], arm, first.back(target) + elbow)
        for pair in pairs.both:
            yield from _wrist(axes, g, (first, *pair), least(firsts.room, pairs.room))


# -- three axes are parallel: the sum of their angles is found with the others, then a triangle ---------------------


def _planar(
    axes: Axes, k: int, target: Vector3, total: AxisRotation, beyond_: Vector3
) -> Iterator[tuple[list[Scalar], Scalar]]:
    """Angles of three parallel joints k, k + 1, k + 2 whose sum is the angle of ``total``. They move the point
    ``beyond_``, given in the third joint's frame at zero, to ``target`` in the first joint's frame."""
    p = axes.p
    pairs = planar_pairs(axes.h[k], p[k + 1] - p[k], p[k + 2] - p[k + 1], target - total.rotate(beyond_))
    for first, second in pairs.both:
        yield [first.angle, second.angle, wrap_angle(total.angle - first.angle - second.angle)], pairs.room


def _parallel_before_meeting_axes(axes: Axes, g: Matrix3, t: Vector3) -> Branches:
    """Axes 2, 3, 4 are parallel, 5 and 6 meet (UR arms)."""
    h, p, c = axes.h, axes.p, axes.centre
    target = g @ c + t - p[0]
    firsts = rotations_meeting(h[0], target, h[1], h[1].dot(c - p[0]))
    for first in firsts.both:
        last, aside = first.back(g @ h[5]), first.back(g @ axes.across_last)
        seen = first.back(target) - (p[1] - p[0])
        for (total, fifth, sixth), there in _last_three(axes, None, h[1], last, aside):
            for three, reached in _planar(axes, 1, seen, total, c - p[3]):
                yield Branch([first.angle, *three, fifth.angle, sixth.angle], least(firsts.room, there, reached))


def _parallel_before_parallel_axes(axes: Axes, g: Matrix3, t: Vector3) -> Branches:
    """Axes 2, 3, 4 are parallel, and so are 5 and 6."""
    h, p = axes.h, axes.p
    target = g @ p[5] + t - p[0]
    pairs = pair_taking(h[0], h[1], h[5], g @ h[5])
    for first, total in pairs.both:
        seen = first.back(target)
        fifths = rotations_meeting(h[4], h[1], p[5] - p[4], h[1].dot(seen - (p[4] - p[0])))
        for fifth in fifths.both:
            sixth = _last(axes, (first, total, fifth), g @ axes.across_last)
            further = p[4] - p[3] + fifth.rotate(p[5] - p[4])
            for three, reached in _planar(axes, 1, seen - (p[1] - p[0]), total, further):
                room = least(pairs.room, fifths.room, reached)
                yield Branch([first.angle, *three, fifth.angle, sixth.angle], room)


def _parallel_first_before_meeting_axes(axes: Axes, g: Matrix3, t: Vector3) -> Branches:
    """Axes 1, 2, 3 are parallel, 5 and 6 meet: the fourth joint alone moves the centre along the first."""
    h, p, c = axes.h, axes.p, axes.centre
    target = g @ c + t
    fourths = rotations_meeting(h[3], h[0], c - p[3], h[0].dot(target - p[3]))
    for fourth in fourths.both:
        further = p[3] - p[2] + fourth.rotate(c - p[3])
        ends = _last_three(axes, fourth, h[0], g @ h[5], g @ axes.across_last)
        for (total, fifth, sixth), there in ends:
            for three, reached in _planar(axes, 0, target - p[0], total, further):
                yield Branch([*three, fourth.angle, fifth.angle, sixth.angle], least(fourths.room, there, reached))


def _parallel_first_before_parallel_axes(axes: Axes, g: Matrix3, t: Vector3) -> Branches:
    """Axes 1, 2, 3 are parallel, and so are 5 and 6."""
    h, p = axes.h, axes.p
    target = g @ p[5] + t
    pairs = pair_taking(h[0], h[3], h[5], g @ h[5])
    for total, fourth in pairs.both:
        along = fourth.back(h[0])
        fifths = rotations_meeting(h[4], along, p[5] - p[4], h[0].dot(target - p[3]) - along.dot(p[4] - p[3]))
        for fifth in fifths.both:
            sixth = _last(axes, (total, fourth, fifth), g @ axes.across_last)
            further = p[3] - p[2] + fourth.rotate(p[4] - p[3] + fifth.rotate(p[5] - p[4]))
            for three, reached in _planar(axes, 0, target - p[0], total, further):
                room = least(pairs.room, fifths.room, reached)
                yield Branch([*three, fourth.angle, fifth.angle, sixth.angle], room)


class Property(NamedTuple):
    """Conditions on axes: which ``meet`` in one point, the centre, and which are ``parallel``; joints counted from
    zero. ``touching`` axes meet in another point."""

    solution: Callable[[Axes, Matrix3, Vector3], Branches]
    meet: tuple[int, ...] = ()
    parallel: tuple[tuple[int, ...], ...] = ()
    touching: tuple[int, ...] = ()


#: Kinds of arms by preference: those with the fewest operations first.
SOLUTIONS: dict[str, Property] = {
    "spherical wrist, parallel axes 2 and 3": Property(_wrist_after_parallel_axes, (3, 4, 5), ((1, 2),)),
    "parallel axes 2, 3 and 4, meeting axes 5 and 6": Property(_parallel_before_meeting_axes, (4, 5), ((1, 2, 3),)),
    "spherical wrist, meeting axes 1 and 2": Property(_wrist_after_meeting_first_axes, (3, 4, 5), (), (0, 1)),
    "spherical wrist, parallel axes 1 and 2": Property(_wrist_after_parallel_first_axes, (3, 4, 5), ((0, 1),)),
    "spherical wrist, meeting axes 2 and 3": Property(_wrist_after_meeting_axes, (3, 4, 5), (), (1, 2)),
    "parallel axes 1, 2 and 3, meeting axes 5 and 6": Property(
        _parallel_first_before_meeting_axes, (4, 5), ((0, 1, 2),)
    ),
    "parallel axes 2, 3 and 4 and parallel axes 5 and 6": Property(
        _parallel_before_parallel_axes, (), ((1, 2, 3), (4, 5))
    ),
    "parallel axes 1, 2 and 3 and parallel axes 5 and 6": Property(
        _parallel_first_before_parallel_axes, (), ((0, 1, 2), (4, 5))
    ),
}


# -- what is compiled ---------------------------------------------------------------------------------------------


def branches(geometry: ArmGeometry, target: Matrix) -> list[Branch]:
    """All solutions for the pose ``target`` (4, 4) in the world; its last row is ignored."""
    axes = _axes(geometry)
    base, hand = (Matrix3(*(Vector3(*row) for row in rows)) for rows in (geometry.base, geometry.hand_rotation))
    rotation = base.times(Matrix3(*(Vector3(*row[:3]) for row in target[:3])))
    g = rotation.times(hand)
    target_position = Vector3(*(row[3] * (1.0 / geometry.size) for row in target[:3]))
    t = rotation @ Vector3(*geometry.hand_position) + base @ target_position
    if geometry.backwards:
        g, t = g.T, -(g.T @ t)
    order = slice(None, None, -1 if geometry.backwards else 1)
    return [
        Branch(
            [sign * angle for sign, angle in zip(geometry.signs, solution.angles[order], strict=True)], solution.room
        )
        for solution in SOLUTIONS[geometry.kind].solution(axes, g, t)
    ]


def _axes(geometry: ArmGeometry) -> Axes:
    h, p = ([Vector3(*x) for x in rows] for rows in (geometry.axes, geometry.points))
    if geometry.backwards:
        h, p = [-x for x in h[::-1]], p[::-1]
    last = h[5]
    unit = [ZERO._replace(**{name: 1.0}) for name in "xyz"][min(range(3), key=lambda k: abs(last[k]))]
    aside = last.cross(unit)
    return Axes(h, p, Vector3(*geometry.centre), aside * (1.0 / math.sqrt(aside.dot(aside))))


def inverse_kinematics_branches(tree: Tree, target: Matrix, *, geometry: ArmGeometry) -> Matrix:
    """(8, 6): all solutions for a pose, angles between -pi and pi, padded with NaN."""
    solutions = branches(geometry, target)
    nan_where_none = [sqrt(select(branch.room < -geometry.slack, -1.0, 0.0)) for branch in solutions]
    return [[angle + nan for angle in branch.angles] for branch, nan in zip(solutions, nan_where_none, strict=True)]


def nearest_branch(
    tree: Tree,
    target: Matrix,
    limits: Matrix,
    windows: Matrix,
    *,
    geometry: ArmGeometry,
    frame: str,
    indices: tuple[int, ...],
    fixed: tuple[float, ...],
) -> tuple[list[Scalar], list[Scalar]]:
    """The solution nearest to a guess within ``limits`` (2, 6), with whole turns chosen nearest to the guess, and its
    errors [distance, angle]. If there is none, the nearest one clipped to the limits.

    windows   (3, 6): the guess; and multiples of 2 pi and angles between -pi and pi, whose sums are the centres of the
              ranges of 2 pi for the angles
    indices and fixed  indices of the six joints in q, and the other entries of q
    """
    best: list[Scalar] = []
    least: Scalar = 0.0
    for branch in branches(geometry, target):
        angles, distance = [], select(branch.room < -geometry.slack, MISSING, 0.0)
        for angle, *numbers in zip(branch.angles, *limits, *windows, strict=True):
            held, square = _clamp_to_limits(angle, *numbers)
            angles.append(held)
            distance = distance + square
        nearer = distance < least if best else True
        best = [select(nearer, x, y) for x, y in zip(angles, best or angles, strict=True)]
        least = select(nearer, distance, least)
    return best, _distance(tree, best, target, frame, indices, fixed)


def _clamp_to_limits(
    angle: Scalar, lower: Scalar, upper: Scalar, guess: Scalar, turns: Scalar, rest: Scalar
) -> tuple[Scalar, Scalar]:
    """An angle within the whole rotation about ``turns + rest``, or at the limit next to it; and the square of how far
    it is from the guess."""
    ahead = rest - angle
    angle = turns + select(ahead > math.pi, angle + WHOLE, select(ahead < -math.pi, angle - WHOLE, angle))
    above = select(angle < lower, lower, angle)
    held = select(upper < above, upper, above)
    away, cut = held - guess, angle - held
    return held, away * away + BEYOND * (cut * cut)


def _distance(
    tree: Tree,
    angles: Sequence[Scalar],
    target: Matrix,
    frame: str,
    indices: tuple[int, ...],
    fixed: tuple[float, ...],
) -> list[Scalar]:
    """Distance and angle to a pose. The angle is approximated by its chord: smaller by angle^3 / 24, but larger if the
    matrix is not a rotation."""
    q = list(fixed)
    for at, angle in zip(indices, angles, strict=True):
        q[at] = angle
    rotation, position = beyond((IDENTITY, ZERO), path_transform(Configuration(tree, q), frame))
    offset = [p - row[3] for p, row in zip(position, target[:3], strict=True)]
    off = [
        a - b for row, target_row in zip(rotation, target, strict=False) for a, b in zip(row, target_row, strict=False)
    ]
    last = [*target[3][:3], target[3][3] - 1.0]
    return [sqrt(dot(offset, offset)), sqrt(0.5 * dot(off, off) + dot(last, last))]
