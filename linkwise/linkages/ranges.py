"""Ranges of motion of a coordinate of a closed mechanism, and the causes of their ends."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..constraints.named_coordinates import LimitSlack, NamedCoordinate, named_coordinate
from ..display import mimebundle
from ..mechanism import Mechanism, MechanismWarning, warn_caller
from .continuation import (
    DEAD_CENTRE,
    FULL_ROTATION,
    STUCK,
    TOO_LONG,
    UNLIMITED,
    Maximization,
    MotionPath,
    join,
    motion_path,
    require_within,
)
from .manifolds import Manifold, closed_start, constraint_manifold, require_dof

SAME_PLACE = 1e-9  # in the units of the mechanism
STANDS_STILL = "stands still"


@dataclass(frozen=True, eq=False, repr=False)
class RangeEnd:
    """One end of a range of motion.

    value   of the coordinate, infinite where nothing stops it
    cause   "dead centre": the coordinate turns back, while the mechanism can move on; "joint limit": of ``joint``;
            "full rotation" and "unlimited" (a slide without stops): nothing stops it; "stands still": it does not move;
            "search ended" (the motion goes on and on) or "stuck": not known to be an end
    q       (nq,): the configuration there; where nothing stops the coordinate, that at the end of one round
    joint   the joint at its limit, several with commas between, "" elsewhere
    """

    value: float
    cause: str
    q: np.ndarray
    joint: str = ""

    def __repr__(self) -> str:
        return f"{self.value:.6g} ({self.cause}{f' of {self.joint}' if self.joint else ''})"


@dataclass(frozen=True, eq=False, repr=False)
class RangeOfMotion:
    """The range of one coordinate, from ``range_of_motion``.

    ends           the lowest and the highest value that is reached without taking the mechanism apart
    driven         how far the coordinate itself can be driven from q to either side: to the next dead centre
    dead_centres   all positions where the coordinate turns back, in the order in which they are passed
    path           the motion; with several degrees of freedom, that from the lowest to the highest value
    values         (n,): of the coordinate along the path
    """

    coordinate: str
    ends: tuple[RangeEnd, RangeEnd]
    driven: tuple[RangeEnd, RangeEnd]
    dead_centres: tuple[RangeEnd, ...]
    path: MotionPath
    values: np.ndarray

    @property
    def mechanism(self) -> Mechanism:
        return self.path.mechanism

    def value_at(self, q: np.ndarray) -> float:
        """Value of the coordinate at a configuration (nq,) on the path, including whole turns."""
        nearest = int(np.argmin(np.linalg.norm(self.path.family.difference(self.path.q, q), axis=-1)))
        coordinate = named_coordinate(self.mechanism, self.coordinate)
        return float(coordinate.centred(float(self.values[nearest])).value(np.asarray(q, dtype=float)))

    @property
    def lower(self) -> float:
        """The lowest value, minus infinity without a lower end."""
        return self.ends[0].value

    @property
    def upper(self) -> float:
        """The highest value, infinity without an upper end."""
        return self.ends[1].value

    def __repr__(self) -> str:
        lines = [f"{self.coordinate} of {self.mechanism.name}: from {self.ends[0]} to {self.ends[1]}"]
        same = SAME_PLACE * named_coordinate(self.mechanism, self.coordinate).unit(self.path.family.units)
        if any(abs(end.value - other.value) > same for end, other in zip(self.ends, self.driven, strict=True)):
            lines.append(f"driven from where it is: from {self.driven[0]} to {self.driven[1]}")
        return "\n".join(lines)

    _repr_mimebundle_ = mimebundle


def range_of_motion(
    mech: Mechanism, coordinate: str, q: Any = None, hold: Sequence[str] = (), limits: bool = False
) -> RangeOfMotion:
    """The range of a coordinate in the assembly mode of q, and the cause of either end.

    With one degree of freedom the motion is followed by arc length, beyond dead centres, where the coordinate turns
    back: the range is complete. With several, the coordinate is maximized and minimized along the steepest motion from
    q: ends are local extrema, which motions along other ways might surpass. Ends are exact to rounding. A
    ``MechanismWarning`` names ends where the search stopped early.

    coordinate   a joint of one coordinate, ``joint[k]`` (number k of its q, or its name in ``mech.q_names``) or
                 ``link.x``, ``link.y``, ``link.z`` (the origin of a link or frame in the world), ``link.yaw``,
                 ``link.pitch``, ``link.roll`` (its orientation: rotations about fixed axes x, y and z, in this order;
                 of planar mechanisms the angle about the normal of the plane, counted beyond whole turns)
    q            (nq,): assembled; by default ``assemble`` from ``mech.initial``
    hold         joints and coordinates that stand still
    limits       whether the limits of joints are ends too
    """
    result = search_range(mech, coordinate, q, hold, limits)
    warn_of_unknown_ends(result)
    return result


def warn_of_unknown_ends(result: RangeOfMotion) -> None:
    """Warn of ends of a range at which the search gave up."""
    unknown = [str(end) for end in result.ends if end.cause in (TOO_LONG, STUCK)]
    if unknown:
        warn_caller(
            f"range of {result.coordinate!r} of mechanism {result.mechanism.name!r}: {' and '.join(unknown)} is where "
            "the search was given up, not an end of the range; what is beyond is not known",
            MechanismWarning,
        )


def search_range(mech: Mechanism, coordinate: str, q: Any, hold: Sequence[str], limits: bool) -> RangeOfMotion:
    """The range of motion without warnings about unknown ends."""
    measured = named_coordinate(mech, coordinate)
    start = closed_start("range_of_motion", mech, q, (hold,))
    manifold = constraint_manifold(mech, start, hold)
    if manifold.dof > 1:
        return _range_by_maximization(manifold, measured, start, limits)
    require_dof("range_of_motion", manifold, start, hold, 1)
    path = motion_path(manifold, start, limits, toward=measured.dimensionless(manifold.units).rows(start))
    return _range_along(path, measured)


def _range_along(path: MotionPath, measured: NamedCoordinate) -> RangeOfMotion:
    values, scaled = measured.along(path.q), measured.dimensionless(path.family.units)
    unit = measured.unit(path.family.units)
    if np.ptp(values) <= unit * SAME_PLACE:
        still = _end(measured.centred(values[0]), path.q[0], STANDS_STILL)
        return RangeOfMotion(measured.name, (still, still), (still, still), (), path, values)
    turning = path.roots(lambda q, tangent, i: float(scaled.rows(q) @ tangent))
    dead = [
        (float(path.arc[i] + x), _end(measured.centred(values[i]), path.at(i, x)[0], DEAD_CENTRE)) for i, x in turning
    ]
    advance = float(values[-1] - values[0])
    if path.is_closed and abs(advance) > 1e-6 * unit:
        sides = (-math.inf, path.q[0]), (math.inf, path.q[-1])
        ends = [RangeEnd(value, FULL_ROTATION, q) for value, q in sides]
    else:
        stops = [end for _, end in dead] + ([] if path.is_closed else _stops(path, measured, values))
        ends = [min(stops, key=lambda end: end.value), max(stops, key=lambda end: end.value)]
    driven = _driven(path, measured, values, dead, tuple(ends))
    return RangeOfMotion(measured.name, (ends[0], ends[1]), driven, tuple(end for _, end in dead), path, values)


def _end(measured: NamedCoordinate, q: np.ndarray, cause: str, joint: str = "") -> RangeEnd:
    return RangeEnd(float(measured.value(q)), cause, q, joint)


def _stops(path: MotionPath, measured: NamedCoordinate, values: np.ndarray) -> list[RangeEnd]:
    """Both ends of an open path."""
    ends = [
        _end(measured.centred(values[-side]), path.q[-side], path.causes[side], path.joints[side]) for side in (0, 1)
    ]
    return [_unlimited(path, measured, side, end) for side, end in enumerate(ends)]


def _unlimited(path: MotionPath, measured: NamedCoordinate, side: int, end: RangeEnd) -> RangeEnd:
    """The end of a straight path: the coordinate is unlimited."""
    rate = float(measured.dimensionless(path.family.units).rows(end.q) @ path.tangents[-side]) * (1.0 if side else -1.0)
    if end.cause != TOO_LONG or not path.is_straight[side] or abs(rate) <= SAME_PLACE:
        return end
    return replace(end, value=math.copysign(math.inf, rate), cause=UNLIMITED)


def _driven(
    path: MotionPath,
    measured: NamedCoordinate,
    values: np.ndarray,
    dead: Sequence[tuple[float, RangeEnd]],
    ends: tuple[RangeEnd, ...],
) -> tuple[RangeEnd, RangeEnd]:
    """The stops next to the start of the path, at arc length zero, on either side."""
    if path.is_closed:
        round_back = float(values[0] - values[-1])
        turns = path.q[0] - path.q[-1]  # whole ones
        before = [replace(end, value=end.value + round_back, q=end.q + turns) for _, end in dead]
        stops = [*((arc - path.arc[-1], end) for (arc, _), end in zip(dead, before, strict=True)), *dead]
    else:
        first, last = _stops(path, measured, values)
        stops = [(float(path.arc[0]), first), *dead, (float(path.arc[-1]), last)]
    behind = [end for arc, end in stops if arc <= SAME_PLACE]
    ahead = [end for arc, end in stops if arc > SAME_PLACE]
    if not behind or not ahead:
        return ends[0], ends[1]
    low, high = sorted((behind[-1], ahead[0]), key=lambda end: end.value)
    return low, high


# -- several degrees of freedom -----------------------------------------------------------------------


def _range_by_maximization(
    manifold: Manifold, measured: NamedCoordinate, start: np.ndarray, limits: bool
) -> RangeOfMotion:
    manifold = replace(manifold, limited=limits)
    slack = LimitSlack(manifold.mech) if limits else None
    require_within(manifold.mech, slack, start)
    turns = measured.turns or _can_rotate(manifold, measured.name)
    here = float(measured.value(start))
    searches = [
        Maximization(manifold, measured.dimensionless(manifold.units), start, sense, slack, turns)
        for sense in (-1.0, 1.0)
    ]
    ends = []
    for search in searches:
        nearest = measured.centred(search.value * measured.unit(manifold.units))
        end = _end(nearest, search.q[-1], search.cause, search.joint)
        ends.append(replace(end, value=search.sense * math.inf) if search.cause == FULL_ROTATION else end)
    down, up = searches
    q, arc, causes, joints = join(down, up)
    directions = manifold.difference(q[:-1], q[1:])
    directions = np.concatenate([directions, directions[-1:]]) if len(directions) else np.zeros((1, manifold.mech.nv))
    sizes = np.linalg.norm(directions, axis=-1, keepdims=True)
    tangents = np.divide(directions, sizes, out=np.zeros_like(directions), where=sizes > 0.0)
    path = MotionPath(q, tangents, arc, False, causes, joints, manifold, manifold.values(start))
    ends = [_unlimited(path, measured, side, end) for side, end in enumerate(ends)]
    dead = tuple(end for end in ends if end.cause == DEAD_CENTRE)
    values = measured.along(q)
    values = values + (here - values[len(down.q) - 1])  # without jumps, and what it was at the start
    return RangeOfMotion(measured.name, (ends[0], ends[1]), (ends[0], ends[1]), dead, path, values)


def _can_rotate(manifold: Manifold, name: str) -> bool:
    """Whether the coordinate is an angle that repeats after a full turn."""
    joint, _, number = name.partition("[")
    if joint not in manifold.mech.joint_names:
        return False
    columns, k = range(manifold.mech.nv)[manifold.mech.v_index(joint)], int(number[:-1] or 0)
    return k < len(columns) and bool(manifold.periodic[columns[k]])
