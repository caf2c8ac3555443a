"""Motions of one degree of freedom as curves: followed by arc length, through dead centres and singular positions."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ..constraints.named_coordinates import LimitSlack
from ..mechanism import Mechanism, MechanismError
from .manifolds import Family

LARGEST_STEP = 0.05  # along the curve; like all lengths here in the units of the mechanism, see ``Family``
SMALLEST_STEP = 1e-10
STRAIGHT = np.cos(0.15)  # between tangents of neighbours: beyond, the step may have reached another branch
CORRECTED = 0.25  # of a step: the largest correction on the same branch
LONGEST = 60.0  # of the curve, to either side
ROOT = 1e-14  # of a distance along the curve
BENT = 1e-9  # a change of tangents, of unit length, that is no rounding

#: Why a path, or the range of a coordinate on it, ends.
COMES_BACK, LIMIT, TOO_LONG, STUCK = "comes back", "joint limit", "search ended", "stuck"
DEAD_CENTRE, FULL_ROTATION, UNLIMITED = "dead centre", "full rotation", "unlimited"


@dataclass(frozen=True, eq=False)
class MotionPath:
    """The configurations of a mechanism that moves with one degree of freedom.

    q           (n, nq): in the order in which they are passed
    tangents    (n, nv): directions of motion, of unit length with lengths in units of the mechanism's size
    arc         (n,): length along the curve, in radians and these units; zero at the start
    is_closed   whether the motion comes back to where it began; then the last q is the first, but for whole turns
    causes      why the path ends at either side: "comes back", "joint limit", "search ended", "stuck"
    joints      the joints whose limits end it, "" elsewhere
    """

    q: np.ndarray
    tangents: np.ndarray
    arc: np.ndarray
    is_closed: bool
    causes: tuple[str, str]
    joints: tuple[str, str]
    family: Family = field(repr=False)
    values: np.ndarray = field(repr=False)  # of the held coordinates

    @property
    def mechanism(self) -> Mechanism:
        return self.family.mech

    @cached_property
    def is_straight(self) -> np.ndarray:
        """(2,): whether the curve is straight from its start to either end. Constraints are analytic in the
        coordinates, so a line that satisfies them over a long stretch satisfies them everywhere.
        """
        sides = (self.tangents[self.arc <= 0.0], self.tangents[self.arc >= 0.0])
        return np.array([np.ptp(side, axis=0).max(initial=0.0) <= BENT for side in sides])

    @cached_property
    def steps(self) -> np.ndarray:
        """(n - 1,): lengths of the steps between neighbours."""
        return np.diff(self.arc)

    def at(self, i: int, distance: float) -> tuple[np.ndarray, np.ndarray]:
        """Configuration and tangent at a distance behind the i-th configuration, not much more than a step."""
        q, _ = beside(self.family, self.q[i], self.tangents[i], distance, self.values)
        return q, self.family.along(q, self.tangents[i])

    def roots(self, function: Callable[[np.ndarray, np.ndarray, int], float]) -> list[tuple[int, float]]:
        """Steps and distances within them where function(q, tangent, i) changes its sign.

        The function is continuous on each step i; where the path is closed it has the same sign at both ends.
        """
        lengths = []
        for i, length in enumerate(self.steps):

            def along(x: float, i: int = i) -> float:
                return function(*self.at(i, x), i)

            ends = function(self.q[i], self.tangents[i], i), function(self.q[i + 1], self.tangents[i + 1], i)
            if self.is_closed and i == len(self.steps) - 1:  # rounding must not let a root at the start be lost
                ends = ends[0], function(self.q[0], self.tangents[0], i)
            if (ends[0] < 0.0) != (ends[1] < 0.0):
                lengths.append((i, root(along, float(length), ends)))
        return lengths


def root(function: Callable[[float], float], length: float, ends: tuple[float, float]) -> float:
    """The root of a function with opposite signs at the ends of [0, length], by Brent's method."""

    from scipy.optimize import brentq  # here: importing it takes longer than everything else together

    def pinned(x: float) -> float:  # what is known at the ends may differ by rounding from what is computed there
        return ends[0] if x == 0.0 else ends[1] if x == length else function(x)

    return float(brentq(pinned, 0.0, length, xtol=ROOT, rtol=4.0 * np.finfo(float).eps))


def motion_path(made: Family, q: np.ndarray, limits: bool, toward: np.ndarray | None = None) -> MotionPath:
    """The curve of a one-dimensional constraint manifold through q, in both directions or once around; ``toward``
    (nv,) selects the first direction.
    """
    made = dataclasses.replace(made, limited=limits)
    mech, values = made.mech, made.values(q)
    parts = made.decomposed(q)
    if parts.rank < made.rank:
        raise MechanismError(
            f"mechanism {mech.name!r} is in a singular position at q, where {len(made.columns) - parts.rank} motions "
            "are possible: branches of its motion meet there.  Start a little way along the one that is meant: move "
            "joints by about 0.1 rad, or a tenth of its size, in its direction and close the loops, "
            "q=constraints.assemble(mech, guess)"
        )
    tangent = made.basis(q)[:, 0]
    if toward is not None and tangent @ toward < 0.0:
        tangent = -tangent
    slack = LimitSlack(mech) if limits else None
    require_within(mech, slack, q)
    forward = _Walk(made, q, tangent, values, slack)
    if forward.cause == COMES_BACK:
        there = forward
        causes, joints = (COMES_BACK, COMES_BACK), ("", "")
        rows, tangents, arc = there.q, there.tangents, there.arc
    else:
        back = _Walk(made, q, -tangent, values, slack)
        rows = [*back.q[:0:-1], *forward.q]
        tangents = [*(-way for way in back.tangents[:0:-1]), *forward.tangents]
        arc = [*(-x for x in back.arc[:0:-1]), *forward.arc]
        causes, joints = (back.cause, forward.cause), (back.joint, forward.joint)
    closed = forward.cause == COMES_BACK
    return MotionPath(np.array(rows), np.array(tangents), np.array(arc), closed, causes, joints, made, values)


def require_within(mech: Mechanism, slack: LimitSlack | None, q: np.ndarray) -> None:
    """Refuse a start beyond the limits of a joint, where these are asked for."""
    if slack is not None and slack(q).min(initial=np.inf) < -1e-9:
        joint = slack.names[int(np.argmin(slack(q)))]
        raise MechanismError(f"joint {joint!r} of mechanism {mech.name!r} is beyond its limits at the start")


class _Walk:
    """From q along the curve, until it comes back, meets a limit, or has become too long."""

    def __init__(self, made: Family, q: np.ndarray, tangent: np.ndarray, values: np.ndarray, slack: Any):
        self.family, self.values, self.slack = made, values, slack
        self.q, self.tangents, self.arc = [q], [tangent], [0.0]
        self.cause, self.joint = "", ""
        step = 0.2 * LARGEST_STEP
        while not self.cause:
            taken = self._step(step)
            if taken:
                step = min(LARGEST_STEP, 1.5 * step)
                self.cause = self.cause or (TOO_LONG if self.arc[-1] > LONGEST else "")
            else:
                step *= 0.5
                self.cause = STUCK if step < SMALLEST_STEP else ""

    def _step(self, step: float) -> bool:
        """Add the next configuration, if it is certainly on the same branch."""
        q, tangent = self.q[-1], self.tangents[-1]
        there, converged = beside(self.family, q, tangent, step, self.values)
        if not converged:
            return False
        ahead = self.family.along(there, tangent)
        if ahead @ tangent < STRAIGHT:
            return False
        if self.slack is not None and np.any(self.slack(there) < 0.0):
            self._stop_at_limit(step)
        elif self._passes_start(there, ahead, step):
            gap, start = self._to_start(q), self.q[0]
            turns = np.where(self.family.periodic, self.family.difference(start, q) + gap, 0.0)
            self._add(self.family.moved(start, turns), self.tangents[0], self._distance_to_start())
            self.cause = COMES_BACK
        else:
            self._add(there, ahead, step)
        return True

    def _add(self, q: np.ndarray, tangent: np.ndarray, step: float) -> None:
        self.q.append(q)
        self.tangents.append(tangent)
        self.arc.append(self.arc[-1] + step)

    def _to_start(self, q: np.ndarray) -> np.ndarray:
        """(nv,): from q to where the walk began, whole turns left out."""
        return -self.family.shortest(self.q[0], q)

    def _distance_to_start(self, iterations: int = 10) -> float:
        """Distance along the tangent from the last configuration to the start of a closed curve."""
        q, tangent, first = self.q[-1], self.tangents[-1], self.tangents[0]
        distance = float(self._to_start(q) @ tangent)
        for _ in range(iterations):
            left = float(self._to_start(beside(self.family, q, tangent, distance, self.values)[0]) @ first)
            distance += left
            if abs(left) <= ROOT:
                break
        return distance

    def _passes_start(self, there: np.ndarray, ahead: np.ndarray, step: float) -> bool:
        first = self.tangents[0]
        before, behind = self._to_start(self.q[-1]), self._to_start(there)
        if len(self.q) < 3 or ahead @ first < STRAIGHT or before @ first <= 0.0 or behind @ first > 0.0:
            return False
        return bool(np.linalg.norm(before) <= 2.0 * step and np.linalg.norm(behind) <= 2.0 * step)

    def _stop_at_limit(self, step: float) -> None:
        """Append the configuration in which the first joint reaches its limit."""
        q, tangent, slack = self.q[-1], self.tangents[-1], self.slack

        def room(x: float) -> float:
            return float(slack(beside(self.family, q, tangent, x, self.values)[0]).min())

        distance = root(room, step, (room(0.0), room(step))) if room(0.0) > 0.0 else 0.0
        there, _ = beside(self.family, q, tangent, distance, self.values)
        self.cause, self.joint = LIMIT, slack.names[int(np.argmin(slack(there)))]
        if distance > 0.0:
            self._add(there, self.family.along(there, tangent), distance)


def beside(
    made: Family, q: np.ndarray, tangent: np.ndarray, distance: float, values: np.ndarray
) -> tuple[np.ndarray, bool]:
    """The configuration on the curve next to the point at ``distance`` along the tangent, and whether it is certainly
    on the same branch: its correction is then of second order.
    """
    guess = made.moved(q, tangent, distance)
    there, closed = made.corrected(guess, values)
    correction = np.linalg.norm(made.difference(guess, there))
    return there, bool(closed) and bool(correction <= CORRECTED * abs(distance))
