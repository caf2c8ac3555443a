"""Unit quaternions [w, x, y, z] and the exponential and logarithm of rotations and rigid displacements."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..jet import jet, parts
from ..scalar import Scalar, atan2, cos, select, sin, sqrt, transposed
from .three import Matrix3, Vector3

SMALL = 1e-4  # squared angle below which the power series are used (their first error is below 1e-17)


def rotation_matrix(q: Sequence[Scalar]) -> Matrix3:
    """The rotation of a quaternion of any length but zero: the formula divides by the squared length."""
    w, x, y, z = q
    k = 2.0 / (w * w + x * x + y * y + z * z)
    kx, ky, kz = k * x, k * y, k * z
    xx, yy, zz = kx * x, ky * y, kz * z
    xy, xz, yz = kx * y, kx * z, ky * z
    wx, wy, wz = kx * w, ky * w, kz * w
    return Matrix3(
        Vector3(1.0 - (yy + zz), xy - wz, xz + wy),
        Vector3(xy + wz, 1.0 - (xx + zz), yz - wx),
        Vector3(xz - wy, yz + wx, 1.0 - (xx + yy)),
    )


def from_matrix(rotation: Matrix3) -> list[Scalar]:
    """A unit quaternion of a rotation matrix, by the largest of its four numbers (Shepperd, "Quaternion from rotation
    matrix", Journal of Guidance and Control 1, 1978): accurate for all angles."""
    (xx, xy, xz), (yx, yy, yz), (zx, zy, zz) = rotation
    candidates = [
        (xx + yy + zz, [1.0 + xx + yy + zz, zy - yz, xz - zx, yx - xy]),
        (xx, [zy - yz, 1.0 + xx - yy - zz, xy + yx, xz + zx]),
        (yy, [xz - zx, xy + yx, 1.0 - xx + yy - zz, yz + zy]),
        (zz, [yx - xy, xz + zx, yz + zy, 1.0 - xx - yy + zz]),
    ]
    largest, best = candidates[0]
    for size, numbers in candidates[1:]:
        better = largest < size
        best = [select(better, new, old) for new, old in zip(numbers, best, strict=True)]
        largest = select(better, size, largest)
    return normalized(best)


def product(a: Sequence[Scalar], b: Sequence[Scalar]) -> list[Scalar]:
    """The quaternion of the rotation a followed, in a's own axes, by b."""
    av, bv = Vector3(*a[1:]), Vector3(*b[1:])
    return [a[0] * b[0] - av.dot(bv), *(bv * a[0] + av * b[0] + av.cross(bv))]


def conjugate(q: Sequence[Scalar]) -> list[Scalar]:
    return [q[0], -q[1], -q[2], -q[3]]


def normalized(q: Sequence[Scalar]) -> list[Scalar]:
    scale = 1.0 / sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3])
    return [x * scale for x in q]


def rate(q: Sequence[Scalar], omega: Vector3) -> list[Scalar]:
    """dq/dt for the angular velocity ``omega`` in the turned frame."""
    return product(q, [0.0, *(omega * 0.5)])


def _divisor(square: Scalar, value: Scalar) -> Scalar:
    """``value`` if the closed form is used, 2 for the series: both are evaluated, and 0 / 0 would raise a warning.

    Not 1: compilers drop a division by 1, and then divide by ``value`` everywhere instead.
    """
    return select(square < SMALL, 2.0, value)


def exponential(turn: Vector3) -> list[Scalar]:
    """The quaternion of a rotation vector."""
    square = 0.25 * turn.dot(turn)  # of the half angle
    half = sqrt(_divisor(square, square))  # away from 0, where the root is not differentiable
    sinc = 1.0 - square * (1.0 / 6.0) * (1.0 - square * (1.0 / 20.0) * (1.0 - square * (1.0 / 42.0)))
    cosine = 1.0 - square * 0.5 * (1.0 - square * (1.0 / 12.0) * (1.0 - square * (1.0 / 30.0)))
    scale = 0.5 * select(square < SMALL, sinc, sin(half) / half)
    return [select(square < SMALL, cosine, cos(half)), *(turn * scale)]


def logarithm(q: Sequence[Scalar]) -> Vector3:
    """The shortest rotation vector of a unit quaternion."""
    sign = select(q[0] < 0.0, -1.0, 1.0)
    w, v = q[0] * sign, Vector3(*q[1:]) * sign
    square = v.dot(v)
    length = sqrt(_divisor(square, square))  # away from 0, where the root is not differentiable
    near = select(square < SMALL, w, 2.0)
    ratio = square / (near * near)
    series = 1.0 - ratio * (1.0 / 3.0 - ratio * (1.0 / 5.0 - ratio * (1.0 / 7.0 - ratio * (1.0 / 9.0))))
    return v * select(square < SMALL, (2.0 / near) * series, 2.0 * atan2(length, w) / length)


def _haversine(angle: Scalar) -> Scalar:
    """1 - cos(angle) without cancellation."""
    half_sine = sin(0.5 * angle)
    return 2.0 * half_sine * half_sine


def displacement(turn: Vector3, slide: Vector3) -> Vector3:
    """Position reached by the constant body twist [turn; slide] in unit time: V(turn) slide."""
    square = turn.dot(turn)
    apart = _divisor(square, square)
    angle = sqrt(apart)
    a = select(square < SMALL, 0.5 - square * (1.0 / 24.0 - square * (1.0 / 720.0)), _haversine(angle) / apart)
    b_series = 1.0 / 6.0 - square * (1.0 / 120.0 - square * (1.0 / 5040.0))
    b = select(square < SMALL, b_series, (angle - sin(angle)) / (apart * angle))
    across = turn.cross(slide)
    return slide + across * a + turn.cross(across) * b


def twist_slide(turn: Vector3, position: Vector3) -> Vector3:
    """The inverse of ``displacement``: V(turn)^-1 position, for turns up to pi."""
    square = turn.dot(turn)
    apart = _divisor(square, square)
    series = 1.0 / 12.0 + square * (1.0 / 720.0 + square * (1.0 / 30240.0))
    half = 0.5 * sqrt(apart)
    closed = (1.0 - half * cos(half) / sin(half)) / apart
    across = turn.cross(position)
    return position - across * 0.5 + turn.cross(across) * select(square < SMALL, series, closed)


UNITS = (Vector3(1.0, 0.0, 0.0), Vector3(0.0, 1.0, 0.0), Vector3(0.0, 0.0, 1.0))


def exponential_jacobian(turn: Vector3) -> list[list[Scalar]]:
    """J of exp(turn + d) = exp(turn) exp(J d) for small d, in the turned axes: V(-turn)."""
    return transposed([list(displacement(-turn, unit)) for unit in UNITS])


def logarithm_jacobian(turn: Vector3) -> list[list[Scalar]]:
    """J of log(R exp(d)) = turn + J d for small d, where R = exp(turn), for turns up to pi: V(-turn)^-1."""
    return transposed([list(twist_slide(-turn, unit)) for unit in UNITS])


def extend_to_twists(jacobian: Callable[[Vector3], list[list[Scalar]]], twist: Sequence[Scalar]) -> list[list[Scalar]]:
    """(6, 6): a rotation ``jacobian`` extended to the twist [turn; slide] of a rigid displacement.

    It is the same function of the rotation vector turn + e slide, where e e = 0: the block by which rotations change
    positions is its derivative along the slide.
    """
    rows = jacobian(Vector3(*(jet(x, d) for x, d in zip(twist[:3], twist[3:], strict=True))))
    turned = [[parts(x)[0] for x in row] for row in rows]
    across = [[parts(x)[1] for x in row] for row in rows]
    return [*([*row, 0.0, 0.0, 0.0] for row in turned), *([*a, *b] for a, b in zip(across, turned, strict=True))]
