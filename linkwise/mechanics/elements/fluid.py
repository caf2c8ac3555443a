"""Forces of a fluid on links that move through it, by the two models of MuJoCo's documentation ("Fluid forces").

With V and W the velocities of the part's middle against the fluid and of its rotation, along its own axes:

box of sides s        viscosity: -3 pi d mu V and -pi d^3 mu W, d the mean of the sides (Stokes)
                      density:   -rho/2 s_j s_k |V_i| V_i and -rho/64 s_i (s_j^4 + s_k^4) |W_i| W_i along each axis i
ellipsoid of half     viscosity: the same with d twice the mean of the half axes
axes r                density:   drag by the projected area A, -rho (c_b A + c_s (A_max - A)) |V| V, and about its axes;
                      lift by circulation and by spin; and the fluid that moves along: added mass, without the part
                      that accelerations would have
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from scipy.special import elliprd

from ...mechanism import FluidForce
from ..scalar import Scalar, select, sqrt
from ..spatial import Force, Matrix3, Vector3
from .law import ForceLaw, Situation

LEAST = 1e-15  # in place of zero, where a velocity has no direction


@dataclass(frozen=True)
class FluidLaw(ForceLaw):
    """One part in the fluid."""

    part: FluidForce

    def frames(self) -> tuple[str, ...]:
        return (self.part.link,)

    def act(self, at: Situation, ctrl: Sequence[Scalar] = (), activation: Sequence[Scalar] = ()) -> Sequence[Scalar]:
        part = self.part
        assert part.axes is not None
        axes, middle = Matrix3.from_rows(part.axes), Vector3(*part.position)
        omega, linear = at.velocity(part.link)
        linear = linear + omega.cross(middle)
        if any(part.wind):
            linear = linear - at.pose(part.link)[0].T @ Vector3(*part.wind)
        moment, force = self._forces(axes.T @ omega, axes.T @ linear)
        moment, force = axes @ moment, axes @ force
        at.push_frame(part.link, Force(moment + middle.cross(force), force))
        return ()

    def _forces(self, spin: Vector3, velocity: Vector3) -> tuple[Vector3, Vector3]:
        if self.part.shape == "box":
            return box_forces(self.part, spin, velocity)
        return self._ellipsoid.forces(spin, velocity)

    @cached_property
    def _ellipsoid(self) -> Ellipsoid:
        return Ellipsoid.of(self.part)


def box_forces(part: FluidForce, spin: Vector3, velocity: Vector3) -> tuple[Vector3, Vector3]:
    """Moment and force on a box."""
    diameter, rho = sum(part.size) / 3.0, part.density
    stokes = (-math.pi * diameter**3 * part.viscosity, -3.0 * math.pi * diameter * part.viscosity)
    moments, forces = [], []
    for i in range(3):
        side, width, other = part.size[i], part.size[i - 1], part.size[i - 2]
        about, along = rho * side * (width**4 + other**4) / 64.0, 0.5 * rho * width * other
        moments.append(spin[i] * (stokes[0] - about * _size(spin[i])))
        forces.append(velocity[i] * (stokes[1] - along * _size(velocity[i])))
    return Vector3(*moments), Vector3(*forces)


@dataclass(frozen=True)
class Ellipsoid:
    """The numbers of an ellipsoid in a fluid.

    squares       (r_y r_z)^2, ...: of the areas that are seen along its axes, but for pi
    widest        the largest such area
    added         mass and moments of the fluid that moves along
    drag_about    by which the spin about each axis is slowed down, per density
    """

    part: FluidForce
    squares: tuple[float, ...]
    widest: float
    added_mass: tuple[float, ...]
    added_inertia: tuple[float, ...]
    drag_about: tuple[float, ...]

    @classmethod
    def of(cls, part: FluidForce) -> Ellipsoid:
        x, y, z = radii = part.size
        _, middle, longest = sorted(radii)
        _, slender, angular, *_ = part.coefficients
        most = 8.0 / 15.0 * math.pi * middle * longest**4
        about = [8.0 / 15.0 * math.pi * radii[i] * max(radii[i - 1], radii[i - 2]) ** 4 for i in range(3)]
        mass, inertia = added_mass(radii)
        return cls(
            part,
            ((y * z) ** 2, (z * x) ** 2, (x * y) ** 2),
            math.pi * longest * middle,
            tuple(part.density * m for m in mass),
            tuple(part.density * m for m in inertia),
            tuple(angular * radius + slender * (most - radius) for radius in about),
        )

    def forces(self, spin: Vector3, velocity: Vector3) -> tuple[Vector3, Vector3]:
        """Moment and force."""
        rho, mu = self.part.density, self.part.viscosity
        blunt, slender, _, kutta, magnus = self.part.coefficients
        x, y, z = self.part.size
        normal = Vector3(*(s * v for s, v in zip(self.squares, velocity, strict=True)))  # of the projected area
        across, along = normal.dot(normal), normal.dot(velocity)
        speed = _smooth_root(velocity.dot(velocity))
        area = math.pi * _smooth_root(across / _at_least(along, LEAST))
        # lift
        cosine = along / _at_least(speed * across, LEAST)
        circulation = normal.cross(velocity) * (kutta * rho * cosine * area)
        volume = 4.0 / 3.0 * math.pi * x * y * z
        force = circulation.cross(velocity) + spin.cross(velocity) * (magnus * rho * volume)
        # drag
        diameter = 2.0 / 3.0 * (x + y + z)
        slowing = 3.0 * math.pi * diameter * mu + rho * speed * (blunt * area + slender * (self.widest - area))
        most = max(self.drag_about)
        turning = Vector3(*((d / most) * w for d, w in zip(self.drag_about, spin, strict=True)))
        braking = math.pi * diameter**3 * mu + rho * most * _smooth_root(turning.dot(turning))
        # fluid that moves along
        momentum = Vector3(*(m * v for m, v in zip(self.added_mass, velocity, strict=True)))
        angular = Vector3(*(m * w for m, w in zip(self.added_inertia, spin, strict=True)))
        moment = momentum.cross(velocity) + angular.cross(spin) - spin * braking
        return moment, force + momentum.cross(spin) - velocity * slowing


def added_mass(radii: Sequence[float]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mass and moments of inertia of the fluid that moves along with an ellipsoid, per density (Tuckerman, "Inertia
    factors of ellipsoids for use in airship design", 1925): with k = r_x r_y r_z times the integral over l from zero of
    1 / ((r_i^2 + l) sqrt((r_x^2 + l) (r_y^2 + l) (r_z^2 + l))), one of Carlson's."""
    squares, volume = [r * r for r in radii], 4.0 / 3.0 * math.pi * math.prod(radii)
    k = [2.0 / 3.0 * math.prod(radii) * elliprd(squares[i - 1], squares[i - 2], squares[i]) for i in range(3)]
    mass = tuple(float(volume * x / max(LEAST, 2.0 - x)) for x in k)
    inertia = []
    for i in range(3):
        first, other, k_one, k_other = squares[i - 2], squares[i - 1], k[i - 2], k[i - 1]
        difference, total = first - other, first + other
        below = max(LEAST, abs(2.0 * difference + total * (k_one - k_other)))
        inertia.append(float(volume / 5.0 * difference**2 * abs(k_other - k_one) / below))
    return mass, tuple(inertia)


def _smooth_root(square: Scalar) -> Scalar:
    """The root, with a derivative of zero where the square of something vanishes."""
    return sqrt(square + LEAST**2)


def _size(x: Scalar) -> Scalar:
    return select(x < 0.0, -x, x)


def _at_least(x: Scalar, low: float) -> Scalar:
    return select(x < low, low, x)
