"""The force of a compliant contact: of the depth, how fast it grows, and how fast the touching points slide.

Along the normal it is Hunt and Crossley's law ("Coefficient of restitution interpreted as damping in vibroimpact",
J. Appl. Mech. 42, 1975) with two changes, neither of which lets it pull or feed energy: it sets in smoothly, and the
loss fades smoothly where shapes separate (as in A. Castro et al., "Irrotational contact fields", 2023).  With
phi(p) >= 0 the smoothed depth and u = dp/dt,

    f = k phi psi(d u),    psi(x) = 1 + x  for x >= 0,   (1 + x/2)^2  for -2 <= x < 0,   0 below

psi - 1 has the sign of u and is at least -1: f is never negative, k phi is conservative, the rest only loses energy.
For explicit steps x = d u / (1 + phi k d / b): the slope of f by u is then at most b.

Friction -mu f w / sqrt(w.w + s^2 + (mu f / c)^2) of the sliding velocity w lies inside Coulomb's cone, only loses
energy too, and is no stronger than a damper of c: what explicit steps can follow does not depend on the load.  Steps
that take contact implicitly follow any friction, and leave its bound out.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol

from ..scalar import Scalar, is_zero, select, sqrt
from ..spatial import Symmetric3, Vector3

RESTING = 1e-18  # m^2: square of a change of depth that is none


class Law(Protocol):
    """Numbers of a contact: see ``linkwise.ContactLaw``."""

    @property
    def stiffness(self) -> float: ...
    @property
    def dissipation(self) -> float: ...
    @property
    def damping(self) -> float: ...
    @property
    def friction(self) -> Scalar: ...
    @property
    def slip_speed(self) -> float: ...
    @property
    def smoothing(self) -> float: ...
    @property
    def margin(self) -> float: ...


def at_least(x: Scalar, bound: float) -> Scalar:
    """The larger of the two."""
    return select(x < bound, bound, x)


def at_most(x: Scalar, bound: float) -> Scalar:
    """The smaller of the two."""
    return select(x < bound, x, bound)


def contact_force(law: Law, normal: Vector3, depth: Scalar, velocity: Vector3) -> Vector3:
    """The force on what moves with ``velocity`` against the other side, along whose outward ``normal`` it is pushed."""
    return contact_response(law, normal, depth, velocity).force


class Response(NamedTuple):
    """A force, and how it resists a change of velocity, along the normal and across it: not negative."""

    force: Vector3
    along: Scalar
    across: Scalar

    def resistance(self, normal: Vector3) -> Symmetric3:
        """(3, 3): across 1 + (along - across) n n*."""
        x, y, z = normal
        more = self.along - self.across
        xx, yy, zz = (self.across + more * (one * one) for one in normal)
        return Symmetric3(xx, yy, zz, more * (x * y), more * (x * z), more * (y * z))


def contact_response(
    law: Law,
    normal: Vector3,
    depth: Scalar,
    velocity: Vector3,
    step: Scalar = 0.0,
    bound: float = 0.0,
    mass: float = math.inf,
    reached: Vector3 | None = None,
) -> Response:
    """The force as ``contact_force`` has it, or with a ``step`` h that of the depth p + h u which is reached by the end
    of the step, with its slopes by the velocity (of friction its secant, the factor of -w): for methods that take
    contact implicitly, and for which friction needs no bound.  ``bound`` is 1 / b of explicit steps.

    A step that stops what falls takes most of that normal force back, by its slope.  Where the velocity ``reached`` by
    the end of the step is known, friction is that of the normal force there, and of the faster sliding; else it is
    less by what the step would take back from a free ``mass`` that falls."""
    rate = -normal.dot(velocity)
    push, along = normal_response(law, depth + step * rate, rate, step, bound)
    if is_zero(law.friction):
        return Response(normal * push, along, 0.0)
    sliding = velocity + normal * rate
    pressed, square = push, sliding.dot(sliding)
    if reached is None and not is_zero(step):
        change = (step * rate) * (step * rate)
        falling = change / (change + depth * depth + RESTING)  # 1 if the depth is mostly that of this step, 0 at rest
        pressed = push / (1.0 + along * falling * (step * (1.0 / mass)))
    elif reached is not None:
        later = -normal.dot(reached)
        slid = reached + normal * later
        pressed = at_least(push + along * (later - rate), 0.0)
        square = select(square < slid.dot(slid), slid.dot(slid), square)
    most = law.friction * pressed
    viscous = most * (1.0 / law.damping if is_zero(step) else 0.0)  # the speed at which damping reaches its bound
    drag = most / sqrt(square + law.slip_speed**2 + viscous * viscous)
    return Response(normal * push - sliding * drag, along, drag)


def normal_response(law: Law, depth: Scalar, rate: Scalar, step: Scalar, bound: float) -> tuple[Scalar, Scalar]:
    """f, and its slope by the rate, not negative, where the depth changes by ``step`` times as much."""
    phi, growth = smoothed_depth(law, depth)
    share: Scalar = 1.0
    if law.dissipation * bound:
        share = 1.0 / (1.0 + (law.dissipation * law.stiffness * bound) * phi)
    x = at_least(law.dissipation * rate * share, -2.0)
    shrinking = at_most(x, 0.0)
    psi, slope = 1.0 + x + 0.25 * (shrinking * shrinking), 1.0 + 0.5 * shrinking
    by_rate = law.stiffness * phi * slope * (law.dissipation * share)
    if is_zero(step):
        return law.stiffness * phi * psi, by_rate
    by_depth = (psi - x * slope * (1.0 - share)) * (law.stiffness * growth)
    return law.stiffness * phi * psi, step * by_depth + by_rate


def smoothed_depth(law: Law, depth: Scalar) -> tuple[Scalar, Scalar]:
    """phi(p): 0 for p < 0, p^2 / 2 e up to e, p - e/2 beyond; e is the law's smoothing; and its slope."""
    inside = at_least(depth, 0.0)
    if law.smoothing == 0.0:
        return inside, select(depth > 0.0, 1.0, 0.0)
    early = at_most(inside, law.smoothing) * (1.0 / law.smoothing)
    return early * (inside - (0.5 * law.smoothing) * early), early


def elastic_energy(law: Law, depth: Scalar) -> Scalar:
    """k times the integral of phi."""
    inside = at_least(depth, 0.0)
    if law.smoothing == 0.0:
        return (0.5 * law.stiffness) * inside * inside
    early = at_most(inside, law.smoothing)
    later = 0.5 * (inside - early) * (inside + early - law.smoothing)
    return law.stiffness * (early * early * early * (1.0 / (6.0 * law.smoothing)) + later)
