"""Closest points of simple shapes: points, line segments and boxes, along the axes of one frame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..scalar import Scalar, select, sqrt
from ..spatial import Vector3
from ..spatial.three import CYCLE
from .contact_force import at_least, at_most

CENTRED = 1e-24  # square of a distance from a box or between axes that counts as none, by the square of their size
ROUNDING = 1e-5  # relative: no further beyond a face of a box counts as inside, as in passing an edge it is on one
PARALLEL = 1e-6  # square of the angle between two segments that are taken for parallel


class Nearest(NamedTuple):
    """The point nearest to a box: signed distance from its surface (negative inside), outward direction, and the
    parameter along a segment, from -1 to 1.
    """

    distance: Scalar
    normal: Vector3
    along: Scalar = 0.0


def point_from_box(point: Vector3, half: Sequence[float]) -> Nearest:
    """The signed distance and direction of a point from a box, in the box's axes from its centre."""
    outside = Vector3(*(x - at_most(at_least(x, -h), h) for x, h in zip(point, half, strict=True)))
    square = outside.dot(outside)
    none = CENTRED * max(half) ** 2
    distance = sqrt(square + none)
    away = outside * (1.0 / distance)
    nearest, face = _nearest_face(point, half)
    inside = square < none
    return Nearest(select(inside, -nearest, distance), _chosen(inside, Vector3(*face), away))


def _nearest_face(point: Vector3, half: Sequence[float]) -> tuple[Scalar, list[Scalar]]:
    """Depth of a point inside a box below its nearest face, and the normal of that face."""
    sides = [select(x < 0.0, -1.0, 1.0) for x in point]
    below = [h - x * side for x, side, h in zip(point, sides, half, strict=True)]
    nearest, face = below[0], [sides[0], 0.0, 0.0]
    for k in (1, 2):
        closer = below[k] < nearest
        nearest = select(closer, below[k], nearest)
        candidate = [sides[k] if i == k else 0.0 for i in range(3)]
        face = [select(closer, x, y) for x, y in zip(candidate, face, strict=True)]
    return nearest, face


def segment_from_box(middle: Vector3, axis: Vector3, length: float, half: Sequence[float]) -> list[Nearest]:
    """Of a segment, middle + t axis with t from -1 to 1 and an axis of known ``length``, two points: towards either end
    the end itself, or where the segment passes an edge of the box on that side, whichever is closer.

    Distances along a segment are convex, so that what lies on the box lies between the two.  Every edge is on the side
    of one end, the opposite one on that of the other; a segment that lies on a face leaves it by edges on different
    sides.  Where a point slides along the segment it is the closest one to an edge or a corner: the distance changes as
    if it did not slide.  A corner counts on both sides, as edges that meet there may be on different ones.
    """
    ends = (-1.0, 1.0)
    passed = [_closest([_segment_to_edge(middle, axis, length, end, k, half) for k in range(3)]) for end in ends]
    points = []
    for end, parameter, other in zip(ends, passed, reversed(passed), strict=True):
        corner = Vector3(*(select(x < 0.0, -h, h) for x, h in zip(_edge_point(middle, axis, other), half, strict=True)))
        along, between = _closest([parameter, _segment_to_point(middle, axis, length, corner)])
        distance = sqrt(between.dot(between) + CENTRED * max(half) ** 2)
        outwards: Scalar = -1.0  # if the point is inside of the box, else 1
        for x, h in zip(middle + axis * along, half, strict=True):
            outwards = select(_size(x) < (1.0 + ROUNDING) * h, outwards, 1.0)
        tip = point_from_box(middle + axis * end, half)
        closer = distance < tip.distance
        normal = _chosen(closer, between * (outwards / distance), tip.normal)
        points.append(Nearest(select(closer, outwards * distance, tip.distance), normal, select(closer, along, end)))
    return points


Beside = tuple[Scalar, Vector3]  # where on a segment, and the way there from the closest point of something else


def _closest(candidates: Sequence[Beside]) -> Beside:
    """The candidate with the shortest distance."""
    along, between = candidates[0]
    for other, apart in candidates[1:]:
        closer = apart.dot(apart) < between.dot(between)
        along, between = select(closer, other, along), _chosen(closer, apart, between)
    return along, between


def _edge_point(middle: Vector3, axis: Vector3, beside: Beside) -> Vector3:
    """The point of the other thing."""
    along, between = beside
    return middle + axis * along - between


def _segment_to_point(middle: Vector3, axis: Vector3, length: float, point: Vector3) -> Beside:
    """Distance of a segment and a point."""
    along = _clamp_to_unit((point - middle).dot(axis) * (1.0 / length**2))
    return along, middle + axis * along - point


def _segment_to_edge(
    middle: Vector3, axis: Vector3, length: float, end: float, k: int, half: Sequence[float]
) -> Beside:
    """Distance of a segment and one of the four edges along axis k, the one that the segment passes on the side of its
    ``end``.
    """
    i, j = CYCLE[k]

    def passed(i: int, j: int) -> tuple[Scalar, Scalar]:
        """The edge at i and j, of the two at that i to which the end points."""
        at = select(end * axis[i] < 0.0, -half[i], half[i])
        across = (middle[j] * axis[i] + (at - middle[i]) * axis[j]) * axis[i]  # j there, times axis[i]^2
        return at, select(across < 0.0, -half[j], half[j])

    steeper = _size(axis[j]) * half[i] < _size(axis[i]) * half[j]
    (at_i, at_j), (swapped_j, swapped_i) = passed(i, j), passed(j, i)
    edge = [0.0, 0.0, 0.0]
    edge[i], edge[j] = select(steeper, at_i, swapped_i), select(steeper, at_j, swapped_j)
    square = axis[i] * axis[i] + axis[j] * axis[j]
    along = (edge[i] - middle[i]) * axis[i] + (edge[j] - middle[j]) * axis[j]
    t = _clamp_to_unit(along / at_least(square, PARALLEL * length**2))
    edge[k] = at_most(at_least(middle[k] + axis[k] * t, -half[k]), half[k])
    return _segment_to_point(middle, axis, length, Vector3(*edge))


def closest_of_segments(
    centres: Sequence[Vector3], axes: Sequence[Vector3 | None], halves: Sequence[float]
) -> list[Vector3]:
    """The points of two segments centre + s axis, -1 <= s <= 1, that are closest to each other (C. Ericson, Real-Time
    Collision Detection, 5.1.9); a ball has no axis, the half length of an axis is known."""
    between = centres[0] - centres[1]
    first, other = axes
    if first is None and other is None:
        return list(centres)
    if first is None or other is None:
        k = 0 if other is None else 1
        axis = axes[k]
        assert axis is not None
        along = axis.dot(between) * ((-1.0 if k == 0 else 1.0) / halves[k] ** 2)
        points = list(centres)
        points[k] = centres[k] + axis * _clamp_to_unit(along)
        return points
    a, e = halves[0] ** 2, halves[1] ** 2
    b, c, f = first.dot(other), first.dot(between), other.dot(between)
    s = _clamp_to_unit((b * f - c * e) / at_least(a * e - b * b, PARALLEL * a * e))
    t = _clamp_to_unit((b * s + f) * (1.0 / e))
    s = _clamp_to_unit((b * t - c) * (1.0 / a))
    return [centres[0] + first * s, centres[1] + other * t]


def _clamp_to_unit(x: Scalar) -> Scalar:
    return at_most(at_least(x, -1.0), 1.0)


def _size(x: Scalar) -> Scalar:
    return select(x < 0.0, -x, x)


def _chosen(condition: Scalar, then: Vector3, otherwise: Vector3) -> Vector3:
    return Vector3(*(select(condition, x, y) for x, y in zip(then, otherwise, strict=True)))
