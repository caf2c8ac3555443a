"""Spatial inertias at the origin of a frame: of a rigid body (10 numbers) and articulated (21 numbers)."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

from ..scalar import Scalar
from .motion import Force, Motion
from .three import Matrix3, Symmetric3, Vector3


class RigidInertia(NamedTuple):
    """Mass, first moment ``h`` = mass times centre of mass, and rotational inertia about the frame's origin."""

    mass: Scalar
    h: Vector3
    moment: Symmetric3

    @staticmethod
    def about_com(mass: Scalar, com: Vector3, inertia: Symmetric3) -> RigidInertia:
        """An inertia about the link's origin from that about the centre of mass (parallel axes)."""
        body = RigidInertia(mass, Vector3(0.0, 0.0, 0.0), inertia)
        return body.shifted(com)

    def __add__(self, other: RigidInertia) -> RigidInertia:  # type: ignore[override]
        return RigidInertia(self.mass + other.mass, self.h + other.h, self.moment + other.moment)

    def __sub__(self, other: RigidInertia) -> RigidInertia:
        return RigidInertia(self.mass - other.mass, self.h - other.h, self.moment - other.moment)

    def __matmul__(self, m: Motion) -> Force:
        return Force(self.moment @ m.angular + self.h.cross(m.linear), m.linear * self.mass + m.angular.cross(self.h))

    def turned(self, axis: int, c: Scalar, s: Scalar) -> RigidInertia:
        return RigidInertia(self.mass, self.h.turned(axis, c, s), self.moment.turned(axis, c, s))

    def congruent(self, r: Matrix3) -> RigidInertia:
        return RigidInertia(self.mass, r.T @ self.h, self.moment.congruent(r))

    def shifted(self, p: Vector3) -> RigidInertia:
        """The inertia about the origin of a frame in which this frame's origin is at ``p``."""
        h = self.h + p * self.mass
        e = Vector3(*(p[k] * (h[k] + self.h[k]) for k in range(3)))
        xy, xz, yz = (-(h[i] * p[j] + p[i] * self.h[j]) for i, j in ((0, 1), (0, 2), (1, 2)))
        return RigidInertia(self.mass, h, self.moment + Symmetric3(e.y + e.z, e.x + e.z, e.x + e.y, xy, xz, yz))

    def transport_rate(self, m: Motion) -> RigidInertia:
        """m x* A - A m x: the rate of the inertia carried by the motion m; its mass is constant."""
        w, u = m
        x, y, z = (self.h[k] * u[k] for k in range(3))
        xy, xz, yz = (-(self.h[i] * u[j] + u[i] * self.h[j]) for i, j in ((0, 1), (0, 2), (1, 2)))
        sliding = Symmetric3(2.0 * (y + z), 2.0 * (x + z), 2.0 * (x + y), xy, xz, yz)
        return RigidInertia(0.0, w.cross(self.h) + u * self.mass, self.moment.turning(w) + sliding)

    @property
    def numbers(self) -> tuple[Scalar, ...]:
        """Mass, first moment, rotational inertia: ten numbers."""
        return (self.mass, *self.h, *self.moment)

    def on_the_z_axis(self, massive: bool) -> RigidInertia:
        """The part that a mass distribution on the z axis could have: all second moments along z, and with ``massive``
        the mass and its first moment along z.
        """
        spread = 0.5 * (self.moment.xx + self.moment.yy - self.moment.zz)
        mass, first = (self.mass, self.h.z) if massive else (0.0, 0.0)
        return RigidInertia(mass, Vector3(0.0, 0.0, first), Symmetric3(spread, spread, 0.0, 0.0, 0.0, 0.0))

    def articulated(self) -> ArticulatedInertia:
        return ArticulatedInertia(self.moment, Matrix3.cross(self.h), Symmetric3.multiple_of_identity(self.mass))


class ArticulatedInertia(NamedTuple):
    """The symmetric 6x6 matrix [[moment, coupling], [coupling*, mass]] of an articulated body."""

    moment: Symmetric3
    coupling: Matrix3
    mass: Symmetric3

    def __add__(self, other: ArticulatedInertia) -> ArticulatedInertia:  # type: ignore[override]
        return ArticulatedInertia(self.moment + other.moment, self.coupling + other.coupling, self.mass + other.mass)

    def __matmul__(self, m: Motion) -> Force:
        return Force(
            self.moment @ m.angular + self.coupling @ m.linear, self.coupling.T @ m.angular + self.mass @ m.linear
        )

    def entry(self, i: int, j: int) -> Scalar:
        """Element of the 6x6 matrix."""
        if i < 3:
            return self.moment.entry(i, j) if j < 3 else self.coupling[i][j - 3]
        return self.coupling[j][i - 3] if j < 3 else self.mass.entry(i - 3, j - 3)

    @staticmethod
    def from_entries(entry: Callable[[int, int], Scalar]) -> ArticulatedInertia:
        """A symmetric matrix from a function of (i, j), i <= j, that returns the upper triangle."""
        moment = Symmetric3(*(entry(i, j) for i, j in _UPPER))
        coupling = Matrix3.from_rows([[entry(i, j + 3) for j in range(3)] for i in range(3)])
        mass = Symmetric3(*(entry(i + 3, j + 3) for i, j in _UPPER))
        return ArticulatedInertia(moment, coupling, mass)

    def turned(self, axis: int, c: Scalar, s: Scalar) -> ArticulatedInertia:
        return ArticulatedInertia(
            self.moment.turned(axis, c, s), self.coupling.turned(axis, c, s), self.mass.turned(axis, c, s)
        )

    def congruent(self, r: Matrix3) -> ArticulatedInertia:
        return ArticulatedInertia(self.moment.congruent(r), self.coupling.congruent(r), self.mass.congruent(r))

    def shifted(self, p: Vector3) -> ArticulatedInertia:
        """The inertia about the origin of a frame in which this frame's origin is at ``p``: B' = B + p~ M, J' = J + p~
        B* - B' p~.

        With rows b of B and c of B', J'_ij = J_ij + (p x b_j)_i + (p x c_i)_j, terms of one factor collected.
        """
        lever = Matrix3(*(p.cross(self.mass.row(j)) for j in range(3)))  # row j is column j of p~ M
        (b0, b1, b2), new = self.coupling, self.coupling + lever.T
        c0, c1, c2 = new
        x, y, z = p
        gain = Symmetric3(
            y * (b0.z + c0.z) - z * (b0.y + c0.y),
            z * (b1.x + c1.x) - x * (b1.z + c1.z),
            x * (b2.y + c2.y) - y * (b2.x + c2.x),
            y * b1.z + z * (c0.x - b1.y) - x * c0.z,
            y * (b2.z - c0.x) - z * b2.y + x * c0.y,
            z * b2.x + x * (c1.y - b2.z) - y * c1.x,
        )
        return ArticulatedInertia(self.moment + gain, new, self.mass)

    def transport_rate(self, m: Motion) -> ArticulatedInertia:
        """m x* A - A m x: the rate of the inertia when it is carried along by the motion m."""
        w, u = m
        lever = Matrix3(*(u.cross(row) for row in self.coupling)).T  # u~ B*
        slide = Matrix3(*(u.cross(self.mass.row(j)) for j in range(3))).T  # u~ M
        sliding = Symmetric3(*(lever[i][j] + lever[j][i] for i, j in _UPPER))
        return ArticulatedInertia(
            self.moment.turning(w) + sliding, self.coupling.turning(w) + slide, self.mass.turning(w)
        )


NO_INERTIA = RigidInertia(0.0, Vector3(0.0, 0.0, 0.0), Symmetric3(0.0, 0.0, 0.0, 0.0, 0.0, 0.0))

_UPPER = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))

NOTHING_ARTICULATED = ArticulatedInertia.from_entries(lambda i, j: 0.0)

Inertia = TypeVar("Inertia", RigidInertia, ArticulatedInertia)  # what changes frames alike
