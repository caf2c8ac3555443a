"""Springs, dampers, dry friction and stops at joints.

Each has numbers for all coordinates of its joint or one each.  Compiled code takes them as inputs where they are given
by hand (``lw.forces.Passive``), so that elements that differ in numbers share it, and as constants in rollouts.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ...mechanism import Body, Mechanism, MechanismError, checks
from ...mechanism.scales import scales
from ..jet import jet, parts
from ..recursions.tree import Tree
from ..scalar import Scalar, is_constant, select, sqrt
from .law import ForceLaw, Situation

RETURN_STEPS = 4.0
SOFTER = 0.01  # of its stiffness, by which a stop with a knee pushes harder the deeper it is beyond that
NOTHING = 1e-30  # square of a depth that is none where a stop has no width; far above what single precision has least
INFINITE = ("lower", "upper", "width", "knee")  # numbers that may be so
FRICTION_SPEED = 1e-2  # rad, or of the mechanism's length, in a thousand usual steps: 0.01 rad/s
TINY = 1e-12  # of the width of a stop: a depth that is none
Numbers = Mapping[str, Sequence[Scalar]]
Bounds = tuple[Scalar | None, Scalar | None]


@dataclass(frozen=True)
class Element(ForceLaw):
    """A force element at one joint; a number applies to all its coordinates, or one is given for each."""

    joint: str

    #: Field -> which coordinates it has a number for, and whether it must not be negative.
    fields: ClassVar[Mapping[str, tuple[str, bool]]] = {}
    #: Fields that may be None: ``default`` says what they then are.
    optional: ClassVar[tuple[str, ...]] = ()
    #: The field that may differ from state to state (``Tree.numbers_that_act``).
    varies: ClassVar[str] = ""

    def at(self, mech: Mechanism) -> dict[str, list[float]]:
        """The numbers of this element, one per coordinate."""
        numbers, body = {}, _body(mech, self.joint)
        for name, (count, _) in self.fields.items():
            value = getattr(self, name)
            if value is None and name in self.optional:
                value = self.default(name, mech)
            numbers[name] = self.checked(name, value, getattr(body.kind, count)).tolist()
        return numbers

    def default(self, name: str, mech: Mechanism) -> Any:
        """The number, or one per coordinate, of an ``optional`` field that is None."""
        raise KeyError(name)

    def checked(self, name: str, value: Any, size: int) -> np.ndarray:
        """(size,): ``value`` of the field ``name``, one number for all coordinates or one each."""
        label = f"the {name.replace('_', ' ')} of a {type(self).__name__.lower()} at joint {self.joint!r}"
        if np.asarray(value).dtype.kind not in "iuf":
            raise MechanismError(f"{label} must be a number or several, not {value!r}")
        numbers = np.array(checks.per_coordinate(label, value, size, finite=name not in INFINITE))
        if self.fields[name][1] and (numbers < 0.0).any():
            raise MechanismError(f"{label} must not be negative, got {value!r}")
        return numbers

    # -- as a law -----------------------------------------------------------------------------------------------

    def numbers(self, mech: Mechanism) -> tuple[float, ...]:
        numbers = self.at(mech)
        return tuple(x for name in self.fields for x in numbers[name])

    def structure(self, mech: Mechanism) -> Hashable:
        return type(self), self.joint

    def act(
        self,
        at: Situation,
        ctrl: Sequence[Scalar] = (),
        activation: Sequence[Scalar] = (),
        numbers: Sequence[Scalar] | None = None,
    ) -> Sequence[Scalar]:
        self.push(at, self._named(at.tree, numbers))
        return ()

    def energy(self, at: Situation, numbers: Sequence[Scalar] | None = None) -> Scalar:
        return self.stored(at, self._named(at.tree, numbers))

    def _named(self, tree: Tree, numbers: Sequence[Scalar] | None) -> Numbers:
        mech = tree.mechanism
        kind = _body(mech, self.joint).kind
        if numbers is None:
            numbers = self.numbers(mech)
        ends = list(accumulate((getattr(kind, count) for count, _ in self.fields.values()), initial=0))
        by_name = {name: list(numbers[ends[i] : ends[i + 1]]) for i, name in enumerate(self.fields)}
        varying = tree.numbers_that_act.get((self.varies, mech.body_index(self.joint)))
        return by_name if varying is None else self.varied(by_name, np.atleast_1d(varying).tolist())

    def varied(self, numbers: dict[str, list[Scalar]], values: list[Scalar]) -> Numbers:
        """The parameters, with those that are inputs replaced by ``values``."""
        return {**numbers, self.varies: values}

    @abstractmethod
    def push(self, at: Situation, numbers: Numbers) -> None:
        """Add the forces, with these numbers by the names of the fields."""

    def stored(self, at: Situation, numbers: Numbers) -> Scalar:
        """The potential energy."""
        return 0.0

    def add_diagonal(self, mech: Mechanism, matrix: np.ndarray, numbers: Sequence[float]) -> None:
        """Add numbers, one per velocity of the joint, to the diagonal of a matrix over all velocities."""
        entry = mech.coordinates.place(self.joint)
        rows = np.arange(mech.nv)[entry.v_index]
        matrix[rows, rows] += entry.ratio**2 * np.array(numbers)


def _body(mech: Mechanism, joint: str) -> Body:
    return mech.bodies[mech.body_index(joint)]


@dataclass(frozen=True)
class Spring(Element):
    """The potential ``stiffness . d^2 / 2`` of d = difference(rest, q); ``rest`` (nq numbers) is where the two sides of
    the joint coincide if it is None.  For rotations of a ball d is the shortest rotation vector."""

    stiffness: Any
    rest: Any = None
    fields: ClassVar = {"stiffness": ("nv", True), "rest": ("nq", False)}
    optional: ClassVar = ("rest",)
    varies: ClassVar = "stiffness"

    def default(self, name: str, mech: Mechanism) -> Any:
        return _body(mech, self.joint).kind.neutral()

    def push(self, at: Situation, numbers: Numbers) -> None:
        pulls = [
            k * d
            for k, d in zip(numbers["stiffness"], self._stretch(at, at.positions(self.joint), numbers), strict=True)
        ]
        kind = _body(at.tree.mechanism, self.joint).kind
        if kind.rates_are_velocities:
            at.push_joint(self.joint, [-pull for pull in pulls])
            return
        q, forces = at.positions(self.joint), []
        for k in range(kind.nv):  # -dU/dk = -(stiffness d) . dd/dk along the tangent direction k
            rates = kind.q_rate(q, [1.0 if i == k else 0.0 for i in range(kind.nv)])
            moved = self._stretch(at, [jet(x, rate) for x, rate in zip(q, rates, strict=True)], numbers)
            forces.append(-sum((pull * parts(d)[1] for pull, d in zip(pulls, moved, strict=True)), 0.0))
        at.push_joint(self.joint, forces)

    def add_linear(self, mech: Mechanism, stiffness: np.ndarray, damping: np.ndarray) -> None:
        self.add_diagonal(mech, stiffness, self.at(mech)["stiffness"])

    def stored(self, at: Situation, numbers: Numbers) -> Scalar:
        stretch = self._stretch(at, at.positions(self.joint), numbers)
        return 0.5 * sum((k * d * d for k, d in zip(numbers["stiffness"], stretch, strict=True)), 0.0)

    def _stretch(self, at: Situation, q: Sequence[Scalar], numbers: Numbers) -> list[Scalar]:
        kind = _body(at.tree.mechanism, self.joint).kind
        if kind.rates_are_velocities:
            return [x - rest for x, rest in zip(q, numbers["rest"], strict=True)]
        return list(kind.difference(list(numbers["rest"]), list(q)))


@dataclass(frozen=True)
class Damper(Element):
    """The force ``-damping v``."""

    damping: Any
    fields: ClassVar = {"damping": ("nv", True)}
    varies: ClassVar = "damping"

    def push(self, at: Situation, numbers: Numbers) -> None:
        rates = zip(numbers["damping"], at.velocities(self.joint), strict=True)
        at.push_joint(self.joint, [-(d * v) for d, v in rates])
        at.resist_joint(self.joint, numbers["damping"])

    def add_linear(self, mech: Mechanism, stiffness: np.ndarray, damping: np.ndarray) -> None:
        self.add_diagonal(mech, damping, self.at(mech)["damping"])


@dataclass(frozen=True)
class Friction(Element):
    """Dry friction ``-friction v / sqrt(v^2 + speed^2)``: within 0.5 percent of its full size beyond ten times
    ``speed``, smooth below.  None for ``friction_speeds`` of the mechanism.

    With numbers ``steepest``, one per degree of freedom, it is ``-steepest v`` at speeds where that is less: explicit
    steps follow no steeper one.  Beyond such speeds, friction / steepest at most, nothing changes.
    """

    friction: Any
    speed: Any = None
    steepest: tuple[float, ...] | None = None
    fields: ClassVar = {"friction": ("nv", True), "speed": ("nv", True)}
    optional: ClassVar = ("speed",)
    varies: ClassVar = "friction"

    def default(self, name: str, mech: Mechanism) -> Any:
        return friction_speeds(mech, _body(mech, self.joint))

    def at(self, mech: Mechanism) -> dict[str, list[float]]:
        numbers = super().at(mech)
        if min(numbers["speed"]) <= 0.0:
            raise MechanismError(
                f"the speed of a friction at joint {self.joint!r} must be positive, got {self.speed!r}"
            )
        return numbers

    def structure(self, mech: Mechanism) -> Hashable:
        return *super().structure(mech), self.steepest  # type: ignore[misc]

    def push(self, at: Situation, numbers: Numbers) -> None:
        rates = at.velocities(self.joint)
        steepest = self.steepest or (math.inf,) * len(rates)
        rows = zip(numbers["friction"], numbers["speed"], rates, steepest, strict=True)
        drags = [friction_drag(*row) for row in rows]
        at.push_joint(self.joint, [-(drag * v) for drag, v in zip(drags, rates, strict=True)])
        at.resist_joint(self.joint, drags)  # the secant: velocities never change their sign, and come to rest


def friction_speeds(mech: Mechanism, body: Body) -> tuple[float, ...]:
    """Default speeds below which dry friction is smoothed, one per velocity coordinate: 0.01 rad/s, or 0.01 of the
    mechanism's length per second, for a mechanism of usual size (``Scales.step``).
    """
    units = scales(mech)
    return tuple(FRICTION_SPEED * unit / (1000.0 * units.step) for unit in units.of_kind(body.kind, "v").tolist())


def friction_drag(friction: Scalar, speed: Scalar, rate: Scalar, steepest: float) -> Scalar:
    """The force of dry friction per rate, ``steepest`` at most."""
    drag = friction / sqrt(rate * rate + speed * speed)
    return drag if is_unbounded(steepest) else at_most(drag, steepest)


@dataclass(frozen=True)
class Stop(Element):
    """Springs that hold q between ``lower`` and ``upper``: at a depth p beyond a bound they push back with
    ``stiffness (p + damping min(p, width) dp/dt)``, never pulling: Hunt and Crossley's law, continuous at contact, with
    a damping that grows no further beyond the depth ``width``, so that steps of explicit methods can follow it there.
    With a ``knee`` p is min(p, knee) + ``SOFTER`` p: what starts far outside comes back slowly.

    Where a stop is just touched, or about to let go, derivatives are those of the side on which it does not push.
    """

    lower: Any
    upper: Any
    stiffness: Any
    damping: Any = 0.0
    width: Any = math.inf
    knee: Any = math.inf
    fields: ClassVar = {
        "lower": ("nq", False),
        "upper": ("nq", False),
        "stiffness": ("nq", True),
        "damping": ("nq", True),
        "width": ("nq", True),
        "knee": ("nq", True),
    }

    def at(self, mech: Mechanism) -> dict[str, list[float]]:
        body = _body(mech, self.joint)
        if not body.kind.rates_are_velocities:
            raise MechanismError(
                f"joint {self.joint!r} is a {type(body.kind).__name__} joint, whose coordinates have no bounds: "
                "a stop needs a joint whose velocities are the rates of its coordinates"
            )
        return super().at(mech)

    def structure(self, mech: Mechanism) -> Hashable:
        """Numbers that are infinite leave no code."""
        return *super().structure(mech), *(x for name in INFINITE for x in self._finite(mech)[name])  # type: ignore[misc]

    def _finite(self, mech: Mechanism) -> dict[str, list[bool]]:
        numbers = self.at(mech)
        return {name: np.isfinite(numbers[name]).tolist() for name in INFINITE}

    def push(self, at: Situation, numbers: Numbers) -> None:
        rows = zip(at.positions(self.joint), at.velocities(self.joint), self._springs(at, numbers), strict=True)
        responses = [spring.response(x, rate, bounds, at.step) for x, rate, (spring, bounds) in rows]
        at.push_joint(self.joint, [force for force, _ in responses])
        at.resist_joint(self.joint, [slope for _, slope in responses])

    def stored(self, at: Situation, numbers: Numbers) -> Scalar:
        rows = zip(at.positions(self.joint), self._springs(at, numbers), strict=True)
        return sum((spring.energy(x, bounds) for x, (spring, bounds) in rows), 0.0)

    def _springs(self, at: Situation, numbers: Numbers) -> list[tuple[StopSpring, Bounds]]:
        """The spring and the bounds of every coordinate; None if unlimited."""
        finite, springs = self._finite(at.tree.mechanism), []
        for k in range(len(numbers["lower"])):
            spring = {name: numbers[name][k] for name in self.fields}
            spring |= {name: math.inf for name in ("width", "knee") if not finite[name][k]}
            lower, upper = (spring[name] if finite[name][k] else None for name in ("lower", "upper"))
            springs.append((StopSpring(*(spring[name] for name in StopSpring._fields)), (lower, upper)))
        return springs


def excess(x: Scalar, bounds: Bounds) -> Scalar:
    """Distance of x beyond its bounds, negative below the lower one, zero within. NaN is preserved."""
    lower, upper = bounds
    nearest = x if upper is None else select(upper < x, upper, x)
    return x - (nearest if lower is None else select(x < lower, lower, nearest))


class StopSpring(NamedTuple):
    """The numbers of a stop at one coordinate: see ``Stop``."""

    stiffness: Scalar
    damping: Scalar
    width: Scalar
    knee: Scalar

    def response(self, x: Scalar, rate: Scalar, bounds: Bounds, step: Scalar | None) -> tuple[Scalar, Scalar]:
        """The force and its slope by the rate with the sign changed, not negative. One law serves both bounds, since x
        exceeds at most one.

        With a ``step`` the spring is at the depth that is reached by its end.  Whether the stop pushes is decided at
        the start of the step: what leaves is held until it has left, as it would otherwise be pressed in again by the
        next step.  What is about to come beyond a bound is slowed down by a damper, ``_arrested``: neither gives energy
        that the spring does not hold, whatever rate the step ends with."""
        beyond = excess(x, bounds)
        outside: Scalar = True
        if step is not None:
            outside = self._none < beyond * beyond
            beyond = select(outside, beyond, excess(x + step * rate, bounds))
        side = select(beyond < 0.0, -1.0, 1.0)
        depth, inwards = beyond * side, rate * side
        damped = self.damping * within(depth, self.width)
        if step is not None and not is_unbounded(self.width):
            damped = damped * self._slow_enough(depth, step)
        push = self._bent(depth) + damped * inwards
        stiffness = select(0.0 < push, self.stiffness, 0.0)  # else it would pull
        if step is None:
            return -(push * stiffness * side), 0.0
        damper, ahead = self._arrested(depth, inwards, step, damped), step * self._slope(depth)
        forces = select(outside, push + ahead * inwards, damper * inwards)
        return -(forces * stiffness * side), stiffness * select(outside, damped + ahead, damper)

    def _slow_enough(self, depth: Scalar, step: Scalar) -> Scalar:
        """The factor of the damping with which what is pressed in takes several steps to come out: if it came out in
        one, the next step would find nothing that pushes, and it would be pressed in again.  The spring pushes it out
        at the speed ``_bent(depth)`` / (damping width)."""
        share = 1.0 if is_unbounded(self.knee) else self.knee / at_least(depth, self.knee) + SOFTER
        ratio = RETURN_STEPS * step * share / (self.damping * self.width)
        return select(ratio < 1.0, 1.0, ratio)

    def _slope(self, depth: Scalar) -> Scalar:
        """Slope of ``_bent``, limited to the depth that a step can leave."""
        if is_unbounded(self.knee):
            return 1.0
        return select((1.0 - 1.0 / RETURN_STEPS) * depth < self.knee, 1.0, SOFTER)

    def _arrested(self, depth: Scalar, inwards: Scalar, step: Scalar, damped: Scalar) -> Scalar:
        """Damping per stiffness that brings a depth reached at the end of a step back to the bound in that step, for
        the inertia m = stiffness (damping width / 2)^2 at which the stop is critically damped. At most the stop's
        own damping.
        """
        time = step if is_unbounded(self.width) else 0.5 * self.damping * self.width
        most, missing = damped + step, positive(step * inwards - depth)  # rounded, it may be below zero
        part = time * time * depth
        return most * part / select(self._none < depth * depth, step * missing * most + part, 1.0)

    @property
    def _none(self) -> Scalar:
        """Square of a depth that counts as zero."""
        return NOTHING if is_unbounded(self.width) else (TINY * self.width) * (TINY * self.width)

    def energy(self, x: Scalar, bounds: Bounds) -> Scalar:
        """The integral of ``_bent``, times the stiffness."""
        beyond = excess(x, bounds)
        depth = select(beyond < 0.0, -beyond, beyond)
        if is_unbounded(self.knee):
            return 0.5 * self.stiffness * depth * depth
        first = within(depth, self.knee)
        return 0.5 * self.stiffness * (first * (2.0 * depth - first) + SOFTER * depth * depth)

    def _bent(self, depth: Scalar) -> Scalar:
        """Depth up to the knee plus a small fraction of the full depth; the spring force is stiffness times this."""
        return depth if is_unbounded(self.knee) else within(depth, self.knee) + SOFTER * depth


def is_unbounded(width: Scalar) -> bool:
    return is_constant(width) and math.isinf(width)


def one_if(condition: Scalar) -> Scalar:
    """1 where a condition holds, else 0: a factor that, unlike a choice, leaves NaN as it is."""
    return select(condition, 1.0, 0.0)


def positive(x: Scalar) -> Scalar:
    """x where it is above zero, else zero; NaN stays NaN."""
    return x * one_if(0.0 < x)


def within(x: Scalar, most: Scalar) -> Scalar:
    """x, or ``most`` where that is less."""
    return x if is_unbounded(most) else select(most < x, most, x)


def at_least(x: Scalar, low: Scalar) -> Scalar:
    """max(x, low); the derivative is zero at the bound. NaN is preserved."""
    return select(low < x, x, select(x < low + 1.0, low, x))


def at_most(x: Scalar, high: Scalar) -> Scalar:
    """min(x, high); the derivative is zero at the bound. NaN is preserved."""
    return select(x < high, x, select(high - 1.0 < x, high, x))
