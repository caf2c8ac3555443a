"""Length, mass and time of a mechanism: the units in which thresholds, tolerances and steps are dimensionless.

A decision must not depend on the units in which a mechanism is written down: metres, millimetres or micrometres.
Numbers that are compared with a threshold are therefore divided by the mechanism's own scales first.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from linkwise.mechanics.joints import LENGTH, Joint, LoopKind
from linkwise.mechanics.spatial import Matrix3, Vector3
from linkwise.mechanism.parts import Loop

if TYPE_CHECKING:
    from linkwise.mechanism.model import Mechanism

STEPS_PER_TIME = 180.0


@dataclass(frozen=True, eq=False)
class Scales:
    """Characteristic quantities of a mechanism, in its own units.

    length   the longest offset between joints, frames, centres of mass, sides of loops and shapes
    mass     the largest mass; of links without mass, their largest moment of inertia over the square of the length
    time     of a fall through the length; without gravity, of the stiffest spring in a joint with that mass; infinite
             where neither is there: nothing moves unless it is pushed
    of_q, of_v   (nq,), (nv,): the length for coordinates that are lengths, 1 for angles and quaternions

    Variants of a mechanism (``with_payload``, ...) keep its length and mass, so that decisions are the same for all.
    """

    length: float
    mass: float
    time: float
    of_q: NDArray[np.float64]
    of_v: NDArray[np.float64]

    @property
    def moment(self) -> float:
        """Weight times length, or the stiffness of the stiffest spring in radians: a torque, and an energy; zero where
        neither gravity nor springs act."""
        return self.mass * (self.length / self.time) ** 2

    def of_kind(self, kind: Joint, quantity: str) -> NDArray[np.float64]:
        """Units of the numbers of "q" or "v" of a joint of this kind: the length, or 1."""
        return np.array([self.length if measure.of == LENGTH else 1.0 for measure in kind.measures(quantity)])

    @property
    def step(self) -> float:
        """A usual step of methods with fixed steps: the power of ten next to a 180th of the time, 1 ms for offsets from
        3 cm to 3 m on Earth; 1e-3 where nothing sets a time."""
        return 10.0 ** round(math.log10(self.time / STEPS_PER_TIME)) if math.isfinite(self.time) else 1e-3

    def time_of(self, v: Any, duration: float = math.inf) -> float:
        """Characteristic time of a motion: the period of a pendulum of the mechanism's length, or of its springs.
        Without either, the time in which the fastest velocity of ``v`` (..., nv) moves its coordinate by its unit, at
        most ``duration``.
        """
        if math.isfinite(self.time):
            return 2.0 * math.pi * self.time
        speed = float(np.abs(np.asarray(v) / self.of_v).max(initial=0.0))
        time = min(1.0 / speed if speed else math.inf, duration)
        return time if math.isfinite(time) else 1.0


def scales(mech: Mechanism) -> Scales:
    """The scales of a mechanism, computed once."""
    return mech.constraints.structure._scales


def lengths_among(mech: Mechanism, quantity: str) -> NDArray[np.bool_]:
    """(nq,) or (nv,): which numbers of "q" or "v" are lengths."""
    return np.array([of == LENGTH for of in mech.coordinates.measures(quantity)], dtype=bool)


def constraint_lengths(mech: Mechanism) -> NDArray[np.bool_]:
    """(n_constraints,): which constraints are lengths, or rates of lengths; couplings of sliding joints are."""
    are_lengths: list[bool] = []
    for loop in mech.loops:
        if isinstance(loop, Loop):
            are_lengths += closure_lengths(loop.kind)
        else:
            kinds = [mech.bodies[mech.body_index(joint)].kind for joint, _ in loop.ratios]
            are_lengths.append(all(measure.of == LENGTH for kind in kinds for measure in kind.measures("q")))
    return np.array(are_lengths, dtype=bool)


def closure_lengths(kind: LoopKind) -> list[bool]:
    """For each constraint of a loop, whether it is a length, so that its error scales with positions, or is on
    velocities.
    """
    still = Matrix3.from_rows(np.eye(3).tolist())
    here, there = (kind.closure(still, Vector3(*(scale * x for x in (0.3, 0.5, 0.7)))) for scale in (1.0, 2.0))
    are_lengths = [a != b for a, b in zip(here, there, strict=True)]
    return are_lengths + [True] * (kind.n_constraints - len(are_lengths))


def size(mech: Mechanism) -> tuple[float, float]:
    """Characteristic length and mass of a mechanism, from its data."""
    # The longest offset; without any, the largest radius of gyration, the longest travel of a sliding joint, or 1.
    length = next(filter(None, map(_longest, (_offsets(mech), _radii_of_gyration(mech), _travels(mech)))), 1.0)
    mass = (
        float(mech.parameters.masses.max(initial=0.0))
        or float(np.abs(mech.parameters.inertias).max(initial=0.0)) / length**2
        or 1.0
    )
    return length, mass


def measure(mech: Mechanism) -> Scales:
    """Characteristic quantities of a mechanism, from its size, gravity and springs."""
    length, mass = mech._size
    of_q, of_v = (np.where(lengths_among(mech, quantity), length, 1.0) for quantity in ("q", "v"))
    gravity = float(np.linalg.norm(mech.gravity))
    squared_rate = gravity / length or float((mech.parameters.stiffness * of_v**2).max(initial=0.0)) / (
        mass * length**2
    )
    for array in (of_q, of_v):
        array.flags.writeable = False
    return Scales(length, mass, 1.0 / math.sqrt(squared_rate) if squared_rate else math.inf, of_q, of_v)


def _longest(lengths: Iterator[float]) -> float:
    return max((x for x in lengths if math.isfinite(x)), default=0.0)


def _offsets(mech: Mechanism) -> Iterator[float]:
    """Distances in the mechanism's data; distances on the ground count only at joints and loops."""
    for body in mech.bodies:
        yield math.hypot(*body.position.tolist())
        if body.mass:
            yield math.hypot(*body.com.tolist())
        yield from _lengths_of(body.kind)
    for frame in mech.frames.values():
        if frame.body >= 0:
            yield math.hypot(*frame.position.tolist())
    for loop in mech.loops:
        if isinstance(loop, Loop):
            for link, pose in ((loop.link_a, loop.pose_a), (loop.link_b, loop.pose_b)):
                frame = mech.frame(link)
                yield math.hypot(*(frame.position + frame.rotation @ pose[1]).tolist())
            yield from _lengths_of(loop.kind)
    for shape in mech.shapes:
        if mech.frame(shape.link).body >= 0:
            yield math.hypot(*shape.pose[1].tolist())
            yield max(shape.size, default=0.0)


def _lengths_of(kind: LoopKind) -> Iterator[float]:
    return (abs(float(getattr(kind, name))) for name in kind.lengths)


def _radii_of_gyration(mech: Mechanism) -> Iterator[float]:
    for body in mech.bodies:
        if body.mass > 0.0:
            yield math.sqrt(max(float(np.trace(body.inertia)), 0.0) / (2.0 * body.mass))


def _travels(mech: Mechanism) -> Iterator[float]:
    """Travels of sliding joints, mimic joints included."""
    for body in mech.bodies:
        for measure, low, high in zip(body.kind.measures("q"), body.limits.lower, body.limits.upper, strict=True):
            if measure.of == LENGTH:
                yield from (abs(low), abs(high))
