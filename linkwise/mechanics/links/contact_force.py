"""The force of a compliant contact: of the depth, how fast it grows, and how fast the touching points slide.

Along the normal it is Hunt and Crossley's law ("Coefficient of restitution interpreted as damping in vibroimpact",
J. Appl. Mech. 42, 1975) with two changes, neither of which lets it pull or feed energy: it sets in smoothly, and the
loss fades smoothly where shapes separate (as in A. Castro et al., "Irrotational contact fields", 2023).  With
phi(p) >= 0 the smoothed depth and u = dp/dt,

    f = k phi psi(d u),    psi(x) = 1 + x  for x >= 0,   (1 + x/2)^2  for -2 <= x < 0,   0 below

psi - 1 has the sign of u and is at least -1: f is never negative, k phi is conservative, the rest only loses energy.
For explicit steps x = d u / (1 + s d / b): the slope of f by u is then at most b.  Where that bounds dissipation it
bounds the spring s too: k phi up to a knee F = b / d, or twice the weight that is carried if that is more, and beyond
it s = F (3 - (F / k phi)^2) / 2 < 3 F / 2.  So a deep start is not thrown up: what separates faster than
2 / d + 3 F / b is pushed no more.

Friction -mu f w / sqrt(w.w + s^2 + (mu f / c)^2) of the sliding velocity w lies inside Coulomb's cone, only loses
energy too, and is no stronger than a damper of c: what explicit steps can follow does not depend on the load.  Steps
that take contact implicitly follow any friction, and leave its bound out.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol

from ..scalar import Scalar, is_zero, select, sqrt
from ..spatial import Symmetric3, Vector3

RESTING = 1e-6  # square of a rate of depth that counts as rest, by the square of the slip speed
NO_ZERO = 1e-36  # keeps 0 / 0 away in steps of no length, in single precision too; far below all squares of lengths
KNEE = 2.0  # weights: the spring of explicit steps is linear up to this force


class Law(Protocol):
    """Numbers of a contact: see ``linkwise.contact.ContactLaw``."""

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


class Response(NamedTuple):
    """A force, and how it resists a change of velocity, along the normal and across it: not negative."""

    force: Vector3
    along: Scalar
    across: Scalar

    def resistance(self, normal: Vector3) -> Symmetric3:
        """(3, 3): across 1 + (along - across) n n*."""
        x, y, z = normal
        more = self.along - self.across
        xx, yy, zz = (self.across + more * (component * component) for component in normal)
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
    load: float = math.inf,
) -> Response:
    """The force on what moves with ``velocity`` against the other side, along whose outward ``normal`` it is pushed,
    and its slopes by the velocity (of friction its secant, the factor of -w).  With a ``step`` h it is the force at the
    depth p + h u which is reached by the end of the step: for methods that take contact implicitly, and for which
    friction needs no bound.  ``bound`` is 1 / b of explicit steps, whose springs are bounded by ``load``.

    A step that stops what falls takes most of that normal force back, by its slope.  Where the velocity ``reached`` by
    the end of the step is known, friction is that of the normal force there, and of the faster sliding; else it is
    less by what the step would take back from a free ``mass`` that falls.  What was about to touch has the same normal
    force as in that solution if it ends as that did, and else a damper's: it neither pulls nor pushes what others have
    stopped before."""
    rate = -normal.dot(velocity)
    if is_zero(step):
        push, along = normal_force(law, law.stiffness, depth, rate, bound, load), 0.0
    else:
        push, along = predicted_normal_force(law, depth, rate, step, mass)
    sliding = velocity + normal * rate
    pressed, square = push, sliding.dot(sliding)
    if reached is None and not is_zero(step):
        change, rest = (step * rate) * (step * rate), (step * law.slip_speed) * (step * law.slip_speed)
        depths = change + depth * depth + (RESTING * rest + NO_ZERO)
        falling = change / depths  # 1 if the depth is mostly that of this step, 0 at rest
        pressed = push / (1.0 + along * falling * (step * (1.0 / mass)))
    elif reached is not None:
        ended = -normal.dot(reached)
        slid = reached + normal * ended
        square = select(square < slid.dot(slid), slid.dot(slid), square)
        pressed = at_least(push + along * (ended - rate), 0.0)
        apart = depth < 0.0
        approaching = (
            0.0 < ended
        )  # as all that is pressed, but for rounding; which leaves no more than the slope either
        damper = at_most(select(approaching, pressed, 0.0) / select(approaching, ended, 1.0), along)
        push, along = select(apart, damper * rate, push), select(apart, damper, along)
    if is_zero(law.friction):
        return Response(normal * push, along, 0.0)
    most = law.friction * pressed
    viscous = most * (1.0 / law.damping if is_zero(step) else 0.0)  # the speed at which damping reaches its bound
    drag = most / sqrt(square + law.slip_speed**2 + viscous * viscous)
    return Response(normal * push - sliding * drag, along, drag)


def explicit_response(
    law: Law,
    normal: Vector3,
    depth: Scalar,
    velocity: Vector3,
    step: Scalar,
    mass: float,
    sharing: Scalar,
    load: float = math.inf,
) -> Response:
    """The force of a ``step`` h that takes it explicitly and may be of any length, as that of contacts which tie links
    to each other: no stiffer than m / 2 n h^2 and damped by no more than m / n h, along the normal and across it, which
    such a step can follow where n contacts, those ``sharing`` it, push a free ``mass`` m; the spring is bounded by
    ``load``."""
    rate, softness = -normal.dot(velocity), (step * (1.0 / mass)) * sharing
    stiffness = law.stiffness / at_least((2.0 * law.stiffness) * (step * softness), 1.0)
    push = normal_force(law, stiffness, depth, rate, softness, load)
    if is_zero(law.friction):
        return Response(normal * push, 0.0, 0.0)
    sliding, most = velocity + normal * rate, law.friction * push
    viscous = most * softness
    drag = most / sqrt(sliding.dot(sliding) + law.slip_speed**2 + viscous * viscous)
    return Response(normal * push - sliding * drag, 0.0, 0.0)


def normal_force(
    law: Law, stiffness: Scalar, depth: Scalar, rate: Scalar, bound: Scalar, load: float = math.inf
) -> Scalar:
    """f of explicit steps; ``bound`` is 1 / b, ``load`` the weight that bounds the spring."""
    phi, _ = smoothed_depth(law, depth)
    spring, share = stiffness * phi, 1.0
    if _has_knee(law, bound, load):
        share_of_knee = 1.0 / (1.0 + at_least(spring * _inverse_knee(law, bound, load) - 1.0, 0.0))
        spring = spring * (share_of_knee * (1.5 - 0.5 * (share_of_knee * share_of_knee)))
    if law.dissipation and not is_zero(bound):
        share = 1.0 / (1.0 + (law.dissipation * bound) * spring)
    return spring * _loss(law, rate * share)[0]


def implicit_normal_force(law: Law, depth: Scalar, rate: Scalar, step: Scalar) -> tuple[Scalar, Scalar, Scalar]:
    """f(u) = k phi(p + h u) psi(d u), and two slopes of it, not negative: forces of a step are f(u) + C (u' - u) of the
    rate u' that it ends with.  f is convex: the tangent lies below it.  The other is the secant where shapes approach
    each other, to the rate at which they touch, or to rest where they do already, where f is k phi(p)."""
    later, touching = depth + step * rate, at_least(depth, 0.0)
    (phi, slope), (before, _) = smoothed_depth(law, later), smoothed_depth(law, touching)
    psi, faster = _loss(law, rate)
    growing = touching < later
    mean = select(growing, _mean_slope(law, touching, later), slope)
    least = select(growing, before, phi)
    tangent = law.stiffness * (step * psi * slope + phi * faster * law.dissipation)
    secant = law.stiffness * (step * psi * mean + least * faster * law.dissipation)
    return law.stiffness * phi * psi, tangent, secant


def predicted_normal_force(law: Law, depth: Scalar, rate: Scalar, step: Scalar, mass: float) -> tuple[Scalar, Scalar]:
    """The force of a step at the rate u of its start, and its slope C, of a rate that it may end with: that of Newton's
    method from u on for a free ``mass``, not beyond rest.

    The slope is the secant where shapes approach each other: what a tangent leaves of a hard impact is half of it, and
    it would pull at what others have stopped, at the rate that it leaves.  So a contact that touches gives no more
    energy than its spring sets free, whatever rate the step ends with."""
    force, tangent, _ = implicit_normal_force(law, depth, rate, step)
    softness = step * (1.0 / mass)
    ended = at_least(rate - softness * force / (1.0 + softness * tangent), 0.0)
    ended = select(0.0 < rate, ended, rate)
    force, _, slope = implicit_normal_force(law, depth, ended, step)
    return force + slope * (rate - ended), slope


def _loss(law: Law, rate: Scalar) -> tuple[Scalar, Scalar]:
    """psi(d u) and its slope by d u."""
    x = at_least(law.dissipation * rate, -2.0)
    shrinking = at_most(x, 0.0)
    return 1.0 + x + 0.25 * (shrinking * shrinking), 1.0 + 0.5 * shrinking


def smoothed_depth(law: Law, depth: Scalar) -> tuple[Scalar, Scalar]:
    """phi(p) and its slope: 0 for p < 0, p^2 / 2 e up to e, p - e/2 beyond, with the law's smoothing e."""
    inside = at_least(depth, 0.0)
    if law.smoothing == 0.0:
        return inside, select(depth > 0.0, 1.0, 0.0)
    early = at_most(inside, law.smoothing) * (1.0 / law.smoothing)
    return early * (inside - (0.5 * law.smoothing) * early), early


def _mean_slope(law: Law, first: Scalar, later: Scalar) -> Scalar:
    """(phi(later) - phi(first)) / (later - first) for 0 <= first < later, from depths alone: the difference of two phi
    that are nearly the same would be rounding, in single precision more than it."""
    if law.smoothing == 0.0:
        return 1.0
    start, end = at_most(first, law.smoothing), at_most(later, law.smoothing)
    share = (end - start) / select(first < later, later - first, 1.0)  # of the way, where the slope is below 1
    return 1.0 - share * (1.0 - (start + end) * (0.5 / law.smoothing))


def _has_knee(law: Law, bound: Scalar, load: float) -> bool:
    """Whether the spring of a contact is bounded, which is the case with dissipation."""
    return bool(law.dissipation) and not is_zero(bound) and not math.isinf(load)


def _inverse_knee(law: Law, bound: Scalar, load: float) -> Scalar:
    """1 / F: F is the force up to which the spring of explicit steps is linear, beyond where it sets in."""
    return at_most(law.dissipation * bound, 1.0 / max(KNEE * load, law.stiffness * law.smoothing))


def elastic_energy(law: Law, depth: Scalar, bound: float = 0.0, load: float = math.inf) -> Scalar:
    """The integral of the spring force over the depth: k phi, or with ``bound`` and ``load`` that of explicit steps,
    which grows more slowly beyond the knee.
    """
    inside = at_least(depth, 0.0)
    if _has_knee(law, bound, load):
        knee = 1.0 / _inverse_knee(law, bound, load)
        linear = at_most(inside, knee / law.stiffness + 0.5 * law.smoothing)
        beyond = (inside - linear) * (law.stiffness / knee)
        further = beyond + 0.5 * beyond * beyond / (1.0 + beyond)
        return elastic_energy(law, linear) + (knee * knee / law.stiffness) * further
    if law.smoothing == 0.0:
        return (0.5 * law.stiffness) * inside * inside
    early = at_most(inside, law.smoothing)
    later = 0.5 * (inside - early) * (inside + early - law.smoothing)
    return law.stiffness * (early * early * early * (1.0 / (6.0 * law.smoothing)) + later)
