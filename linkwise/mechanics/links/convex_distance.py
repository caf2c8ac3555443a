"""Signed distance of two convex shapes with a fixed number of steps, from their support functions alone.

Every shape is a ball and a sum of ellipsoids about a centre (``mechanism.shapes.summands``): a capsule is a ball and a
line segment, a cylinder a disk and a segment, a box three segments.  With the columns L_k of their half axes, and D the
vector between the centres, the distance of two shapes is

    d = max over unit vectors n of  n . D - sum_k |L_k* n| - radii,

negative if they penetrate: -d is the least translation that separates them.  Its rate is n times the relative velocity
of the contact points, because n is optimal.  Flat faces and edges are kinks of |L* n|.  They are smoothed, sqrt(|L*
n|^2 + (e l)^2) with l the size of the summand, by a fraction e that shrinks to 1e-4: d is the exact distance of shapes
whose faces bulge by this fraction.

Steps are Newton's for n and for u_k = L_k* n / |L_k* n|, the contact point of each summand, as independent unknowns,
after T. Chan, G. Golub and P. Mulet, "A nonlinear primal-dual method for total variation-based image restoration", SIAM
J. Sci. Comput. 20, 1999.  Separate shapes, and shapes that penetrate less than their smallest radius of curvature, have
one maximum.  Deeper penetrations have several: the search starts at the best axis of the shapes. All numbers are
divided by the size of both shapes, so that no threshold has a unit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from ..scalar import Scalar, each, select, sqrt
from ..spatial import Vector3
from ..spatial.three import ZERO
from .contact_force import at_least, at_most

#: Smoothing of edges relative to the size of a summand, step by step.
ROUNDING = (*np.geomspace(0.3, 1e-4, 9).tolist(), 1e-4, 1e-4, 1e-4)
DEEP = 0.5  # of the curvature: the depth from which it is left out of the steps, which would lead to a minimum
CENTRED = ROUNDING[-1]  # of the size: gravity decides between ways out that differ by less
ASTRAY = 1e-3  # of the size: steps that end so much deeper than they began, which is rare and deep, do not count
LEAST = 1e-9  # of the size: curvature that keeps 0 / 0 away


class Summand(NamedTuple):
    """An ellipsoid about the origin, a disk or a line segment: its half axes, and their root mean square."""

    axes: tuple[Vector3, ...]
    size: Scalar

    def support(self, normal: Vector3, rounding: float) -> tuple[list[Scalar], Scalar]:
        """L* n, and its length; ellipsoids need no smoothing."""
        along = [axis.dot(normal) for axis in self.axes]
        square = sum((x * x for x in along), 0.0)
        return along, sqrt(square if len(self.axes) == 3 else square + (rounding * self.size) * (rounding * self.size))


class Sides(NamedTuple):
    """Two shapes, from the second one's centre and along its axes.

    between    from the second one's centre to the first one's
    summands   of the first and of the second shape
    radii      of their balls
    fallback   a unit vector: the normal is on its side where the centres coincide, or nearly
    """

    between: Vector3
    summands: tuple[Sequence[Summand], Sequence[Summand]]
    radii: tuple[float, float]
    fallback: Vector3

    @property
    def size(self) -> float:
        """The largest half extent of both together, or an upper bound."""
        return sum(self.radii) + sum(len(x.axes) ** 0.5 * x.size for side in self.summands for x in side)


class Separation(NamedTuple):
    """Gap, the outward normal of the second shape, and the middle of the two closest points."""

    gap: Scalar
    normal: Vector3
    point: Vector3


def separations(pairs: Sequence[Sides]) -> list[Separation]:
    """The signed distances of pairs of shapes, with a loop over pairs of the same kinds."""
    results: list[Separation | None] = [None] * len(pairs)
    groups: dict[tuple[tuple[int, ...], ...], list[int]] = {}
    for k, pair in enumerate(pairs):
        groups.setdefault(tuple(tuple(len(x.axes) for x in side) for side in pair.summands), []).append(k)
    for counts, members in groups.items():
        search = Search((*counts[0], *counts[1]))
        numbers = each([search.numbers(pairs[k]) for k in members], *search.steps, alike=True)
        for k, ends in zip(members, numbers, strict=True):
            results[k] = _separation(pairs[k], ends, len(counts[0]))
    return [result for result in results if result is not None]


def _separation(pair: Sides, numbers: Sequence[Scalar], count: int) -> Separation:
    """The result from the dimensionless numbers at the end of the search; the first shape has ``count`` summands."""
    size, (radius_a, radius_b) = pair.size, pair.radii
    gap, normal = numbers[0] * size - (radius_a + radius_b), Vector3(*numbers[1:4])
    ends = [Vector3(*numbers[k : k + 3]) * size for k in range(4, len(numbers), 3)]
    first = pair.between - sum(ends[:count], ZERO) - normal * radius_a
    second = sum(ends[count:], ZERO) + normal * radius_b
    return Separation(gap, normal, (first + second) * 0.5)


class Search:
    """The search for the best normal of a pair, as functions of one list of numbers, in units of the pair's size.

    counts   numbers of half axes of all summands
    """

    def __init__(self, counts: Sequence[int]):
        self._counts = counts
        self.steps: list[Callable[[list[Scalar]], list[Scalar]]] = [
            self._start,
            *(partial(self._step, rounding=rounding) for rounding in ROUNDING),
            self._end,
        ]

    def numbers(self, pair: Sides) -> list[Scalar]:
        """Offset, fallback, and half axes and size of every summand."""
        scale, parts = 1.0 / pair.size, [x for side in pair.summands for x in side]
        axes = [x for part in parts for axis in part.axes for x in axis * scale]
        return [*(pair.between * scale), *pair.fallback, *axes, *(part.size * scale for part in parts)]

    def _read(self, numbers: list[Scalar]) -> tuple[Vector3, list[Summand], list[Scalar]]:
        """Offset, summands, and the remaining numbers: normals and touching points."""
        axes = [Vector3(*numbers[k : k + 3]) for k in range(6, 6 + 3 * sum(self._counts), 3)]
        after = 6 + 3 * len(axes) + len(self._counts)
        sizes, parts, first = numbers[after - len(self._counts) : after], [], 0
        for count, size in zip(self._counts, sizes, strict=True):
            parts.append(Summand(tuple(axes[first : first + count]), size))
            first += count
        return Vector3(*numbers[:3]), parts, numbers[after:]

    def _start(self, numbers: list[Scalar]) -> list[Scalar]:
        offset, parts, _ = self._read(numbers)
        start, furthest = _best_axis(offset + Vector3(*numbers[3:6]) * CENTRED, parts)
        ends = [x for part in parts for x in _end(part, start, ROUNDING[0])]
        return [*numbers, *start, furthest, *start, *ends]

    def _step(self, numbers: list[Scalar], rounding: float) -> list[Scalar]:
        offset, parts, rest = self._read(numbers)
        touching, first = [], 7
        for count in self._counts:
            touching.append(rest[first : first + count])
            first += count
        normal, touching = _step(offset, parts, Vector3(*rest[4:7]), touching, rounding)
        return [*numbers[: len(numbers) - len(rest) + 4], *normal, *(x for point in touching for x in point)]

    def _end(self, numbers: list[Scalar]) -> list[Scalar]:
        offset, parts, rest = self._read(numbers)
        start, furthest, normal = Vector3(*rest[:3]), rest[3], Vector3(*rest[4:7])
        astray = _gap(offset, parts, normal, ROUNDING[-1]) < furthest - ASTRAY
        normal = Vector3(*(select(astray, x, y) for x, y in zip(start, normal, strict=True)))
        ends = [_combined(part.axes, _end(part, normal, ROUNDING[-1])) for part in parts]
        return [_gap(offset, parts, normal, ROUNDING[-1]), *normal, *(x for end in ends for x in end)]


def _end(part: Summand, normal: Vector3, rounding: float) -> list[Scalar]:
    """u = L* n / |L* n|: the contact point of a summand for a normal."""
    along, length = part.support(normal, rounding)
    inverse = 1.0 / length
    return [x * inverse for x in along]


def _gap(offset: Vector3, parts: Sequence[Summand], normal: Vector3, rounding: float) -> Scalar:
    """The gap between the shapes along a normal."""
    return normal.dot(offset) - sum((part.support(normal, rounding)[1] for part in parts), 0.0)


def _best_axis(offset: Vector3, parts: Sequence[Summand]) -> tuple[Vector3, Scalar]:
    """The axis with the largest gap, among the direction between the centres and the half axes; and the gap."""
    best: Vector3 | None = None
    furthest: Scalar = 0.0
    for direction in (offset, *(axis for part in parts for axis in part.axes)):
        towards = direction.dot(offset)
        unit = direction * (select(towards < 0.0, -1.0, 1.0) / sqrt(direction.dot(direction)))
        apart = _gap(offset, parts, unit, LEAST)
        if best is None:
            best, furthest = unit, apart
        else:
            further = furthest < apart
            best = Vector3(*(select(further, x, y) for x, y in zip(unit, best, strict=True)))
            furthest = select(further, apart, furthest)
    assert best is not None
    return best, furthest


def _step(
    offset: Vector3, parts: Sequence[Summand], normal: Vector3, touching: Sequence[list[Scalar]], rounding: float
) -> tuple[Vector3, list[list[Scalar]]]:
    """A step of the normal, and of the contact point u of each summand."""
    across = _tangents(normal)
    curvature, apart, supports = [LEAST, 0.0, LEAST], offset, []
    for k, part in enumerate(parts):
        along, length = part.support(normal, rounding)
        inverse = 1.0 / length
        ends = [x * inverse for x in along]
        point = touching[k]
        slopes = [[axis.dot(tangent) for axis in part.axes] for tangent in across]
        at_point, at_end = ([_dot(slope, x) for slope in slopes] for x in (point, ends))
        for m, (i, j) in enumerate(((0, 0), (0, 1), (1, 1))):
            bent = _dot(slopes[i], slopes[j]) - 0.5 * (at_point[i] * at_end[j] + at_point[j] * at_end[i])
            curvature[m] = curvature[m] + bent * inverse
        apart = apart - _combined(part.axes, ends)
        supports.append((along, inverse, point, slopes, at_end))
    xx, xy, yy = curvature
    distance = normal.dot(apart)
    deep = distance * (xx + yy) < -DEEP * (xx * yy - xy * xy)
    distance = select(deep, 0.0, distance)
    xx, yy = xx + distance, yy + distance
    x, y = (tangent.dot(apart) for tangent in across)
    inverse = 1.0 / (xx * yy - xy * xy)
    turn = [(yy * x - xy * y) * inverse, (xx * y - xy * x) * inverse]
    turned = normal + across[0] * turn[0] + across[1] * turn[1]
    following = []
    for along, inverse, point, slopes, at_end in supports:
        shrinks = _dot(at_end, turn)
        ahead = [
            (x + _dot([slope[c] for slope in slopes], turn) - point[c] * shrinks) * inverse for c, x in enumerate(along)
        ]
        following.append(_clip_to_unit(ahead))
    return turned * (1.0 / sqrt(turned.dot(turned))), following


def _tangents(n: Vector3) -> tuple[Vector3, Vector3]:
    """Two unit vectors that are orthogonal to n and to each other (T. Duff et al., "Building an orthonormal basis,
    revisited", J. Computer Graphics Techniques 6, 2017)."""
    sign = select(n.z < 0.0, -1.0, 1.0)
    a = -1.0 / (sign + n.z)
    b = n.x * n.y * a
    return Vector3(1.0 + sign * n.x * n.x * a, sign * b, -sign * n.x), Vector3(b, sign + n.y * n.y * a, -n.y)


def _clip_to_unit(x: list[Scalar]) -> list[Scalar]:
    """x, or x / |x| if that is shorter."""
    if len(x) == 1:
        return [at_most(at_least(x[0], -1.0), 1.0)]
    scale = 1.0 / sqrt(at_least(_dot(x, x), 1.0))
    return [y * scale for y in x]


def _combined(axes: Sequence[Vector3], factors: Sequence[Scalar]) -> Vector3:
    return sum((axis * factor for axis, factor in zip(axes, factors, strict=True)), ZERO)


def _dot(a: Sequence[Scalar], b: Sequence[Scalar]) -> Scalar:
    return sum((x * y for x, y in zip(a, b, strict=True)), 0.0)
