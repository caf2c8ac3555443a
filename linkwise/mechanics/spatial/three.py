"""Vectors and matrices of ordinary space.  Components are constants or traced values; zeros cost nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..scalar import Scalar, is_constant, is_zero

CYCLE = ((1, 2), (2, 0), (0, 1))  # the plane turned by a rotation about axis 0, 1, 2


class Vector3(NamedTuple):
    """Three components in one frame."""

    x: Scalar
    y: Scalar
    z: Scalar

    def __add__(self, other: Vector3) -> Vector3:  # type: ignore[override]
        return Vector3(self.x + other.x, self.y + other.y, self.z + other.z)

    def __sub__(self, other: Vector3) -> Vector3:
        return Vector3(self.x - other.x, self.y - other.y, self.z - other.z)

    def __neg__(self) -> Vector3:
        return Vector3(-self.x, -self.y, -self.z)

    def __mul__(self, factor: Scalar) -> Vector3:
        return Vector3(self.x * factor, self.y * factor, self.z * factor)

    def dot(self, other: Vector3) -> Scalar:
        return self.x * other.x + self.y * other.y + self.z * other.z

    def cross(self, other: Vector3) -> Vector3:
        return Vector3(
            self.y * other.z - self.z * other.y,
            self.z * other.x - self.x * other.z,
            self.x * other.y - self.y * other.x,
        )

    def turned(self, axis: int, c: Scalar, s: Scalar) -> Vector3:
        """Components in a frame that is rotated about coordinate ``axis`` by the angle of cosine c and sine s."""
        i, j = CYCLE[axis]
        out = list(self)
        out[i] = c * self[i] + s * self[j]
        out[j] = c * self[j] - s * self[i]
        return Vector3(*out)


ZERO = Vector3(0.0, 0.0, 0.0)


class Symmetric3(NamedTuple):
    """A symmetric 3x3 matrix: six numbers."""

    xx: Scalar
    yy: Scalar
    zz: Scalar
    xy: Scalar
    xz: Scalar
    yz: Scalar

    @staticmethod
    def from_rows(rows: Sequence[Sequence[Scalar]]) -> Symmetric3:
        """The symmetric part of a full matrix."""

        def mean(a: Scalar, b: Scalar) -> Scalar:
            return a if a is b else 0.5 * (a + b)

        return Symmetric3(
            rows[0][0],
            rows[1][1],
            rows[2][2],
            mean(rows[0][1], rows[1][0]),
            mean(rows[0][2], rows[2][0]),
            mean(rows[1][2], rows[2][1]),
        )

    @staticmethod
    def multiple_of_identity(factor: Scalar) -> Symmetric3:
        return Symmetric3(factor, factor, factor, 0.0, 0.0, 0.0)

    def entry(self, i: int, j: int) -> Scalar:
        return self[_SYMMETRIC_INDEX[i][j]]

    def row(self, i: int) -> Vector3:
        return Vector3(*(self[k] for k in _SYMMETRIC_INDEX[i]))

    def __add__(self, other: Symmetric3) -> Symmetric3:  # type: ignore[override]
        return Symmetric3(*(a + b for a, b in zip(self, other, strict=True)))

    def __sub__(self, other: Symmetric3) -> Symmetric3:
        return Symmetric3(*(a - b for a, b in zip(self, other, strict=True)))

    def __matmul__(self, v: Vector3) -> Vector3:
        return Vector3(
            self.xx * v.x + self.xy * v.y + self.xz * v.z,
            self.xy * v.x + self.yy * v.y + self.yz * v.z,
            self.xz * v.x + self.yz * v.y + self.zz * v.z,
        )

    def turned(self, axis: int, c: Scalar, s: Scalar) -> Symmetric3:
        """R* S R for a rotation about a coordinate axis, in 4 multiplications for the plane and 4 for the rest.

        With t = s (b - a) + 2 c m for the plane's entries (a, b; m): a + s t, b - s t, c t - m.
        """
        i, j = CYCLE[axis]
        a, b, m = self[i], self[j], self.entry(i, j)
        out = list(self)
        if is_zero(b) and is_zero(m) and is_constant(c) and is_constant(s):  # products of c and s are constants
            out[i], out[j], out[_SYMMETRIC_INDEX[i][j]] = (c * c) * a, (s * s) * a, -(c * s) * a
        else:
            t = s * (b - a) + (c + c) * m
            st = s * t
            out[i], out[j], out[_SYMMETRIC_INDEX[i][j]] = a + st, b - st, c * t - m
        e, f = self.entry(i, axis), self.entry(j, axis)
        out[_SYMMETRIC_INDEX[i][axis]] = c * e + s * f
        out[_SYMMETRIC_INDEX[j][axis]] = c * f - s * e
        return Symmetric3(*out)

    def congruent(self, r: Matrix3) -> Symmetric3:
        """R* S R for a full matrix R."""
        columns = r.columns()
        images = [self @ column for column in columns]
        return Symmetric3(
            columns[0].dot(images[0]),
            columns[1].dot(images[1]),
            columns[2].dot(images[2]),
            columns[0].dot(images[1]),
            columns[0].dot(images[2]),
            columns[1].dot(images[2]),
        )

    def turning(self, w: Vector3) -> Symmetric3:
        """w~ S - S w~: the rate of S when it is carried along by the angular velocity w."""
        yz, zx, xy = w.x * self.yz, w.y * self.xz, w.z * self.xy
        return Symmetric3(
            2.0 * (zx - xy),
            2.0 * (xy - yz),
            2.0 * (yz - zx),
            w.z * (self.xx - self.yy) + w.y * self.yz - w.x * self.xz,
            w.y * (self.zz - self.xx) + w.x * self.xy - w.z * self.yz,
            w.x * (self.yy - self.zz) + w.z * self.xz - w.y * self.xy,
        )


_SYMMETRIC_INDEX = ((0, 3, 4), (3, 1, 5), (4, 5, 2))


class Matrix3(NamedTuple):
    """A 3x3 matrix stored by rows."""

    x: Vector3
    y: Vector3
    z: Vector3

    @staticmethod
    def from_rows(rows: Iterable[Iterable[Scalar]]) -> Matrix3:
        return Matrix3(*(Vector3(*row) for row in rows))

    @staticmethod
    def cross(h: Vector3) -> Matrix3:
        """The matrix of ``v -> h x v``."""
        return Matrix3(Vector3(0.0, -h.z, h.y), Vector3(h.z, 0.0, -h.x), Vector3(-h.y, h.x, 0.0))

    def columns(self) -> tuple[Vector3, Vector3, Vector3]:
        first, second, third = (Vector3(*column) for column in zip(*self, strict=True))
        return first, second, third

    @property
    def T(self) -> Matrix3:
        return Matrix3(*self.columns())

    def __add__(self, other: Matrix3) -> Matrix3:  # type: ignore[override]
        return Matrix3(self.x + other.x, self.y + other.y, self.z + other.z)

    def __sub__(self, other: Matrix3) -> Matrix3:
        return Matrix3(self.x - other.x, self.y - other.y, self.z - other.z)

    def __matmul__(self, v: Vector3) -> Vector3:
        return Vector3(self.x.dot(v), self.y.dot(v), self.z.dot(v))

    def times(self, other: Matrix3) -> Matrix3:
        columns = other.columns()
        return Matrix3(*(Vector3(*(row.dot(column) for column in columns)) for row in self))

    def turned(self, axis: int, c: Scalar, s: Scalar) -> Matrix3:
        """R* B R for a rotation about a coordinate axis (the symmetric trick; the plane's antisymmetric part stays).

        With t = s (u - p) + c (q + r) for the plane's block (p, q; r, u): p + s t, c t - r; c t - q, u - s t.
        """
        i, j = CYCLE[axis]
        p, q, r, u = self[i][i], self[i][j], self[j][i], self[j][j]
        t = s * (u - p) + c * (q + r)
        st, ct = s * t, c * t
        rows = [list(row) for row in self]
        rows[i][i], rows[i][j] = p + st, ct - r
        rows[j][i], rows[j][j] = ct - q, u - st
        e, f = self[i][axis], self[j][axis]
        rows[i][axis], rows[j][axis] = c * e + s * f, c * f - s * e
        e, f = self[axis][i], self[axis][j]
        rows[axis][i], rows[axis][j] = c * e + s * f, c * f - s * e
        return Matrix3.from_rows(rows)

    def turning(self, w: Vector3) -> Matrix3:
        """w~ B - B w~: the rate of B when it is carried along by the angular velocity w."""
        (xx, xy, xz), (yx, yy, yz), (zx, zy, zz) = self
        plane_x, plane_y, plane_z = w.x * (yz + zy), w.y * (zx + xz), w.z * (xy + yx)
        along_x, along_y, along_z = w.x * (yy - zz), w.y * (zz - xx), w.z * (xx - yy)
        return Matrix3(
            Vector3(plane_y - plane_z, along_z + w.y * zy - w.x * xz, along_y + w.x * xy - w.z * yz),
            Vector3(along_z + w.y * yz - w.x * zx, plane_z - plane_x, along_x + w.z * xz - w.y * yx),
            Vector3(along_y + w.x * yx - w.z * zy, along_x + w.z * zx - w.y * xy, plane_x - plane_y),
        )

    def congruent(self, r: Matrix3) -> Matrix3:
        """R* B R for a full matrix R."""
        return r.T.times(self.times(r))


IDENTITY = Matrix3.from_rows(((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)))
