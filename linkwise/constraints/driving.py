"""Continuation along a branch of assembled configurations, with coordinates driven straight to a goal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..dynamics import trees as tree
from ..mechanism import Mechanism
from .decomposition import Decomposition, decompose
from .locked import Held, HeldEquations
from .loop_closure import Goal, LoopEquations, close_loops
from .named_coordinates import NamedCoordinate
from .sizes import sizes, units
from .tolerances import LOOPS

LARGEST_STEP = 0.2  # radians, or sizes of loops: default of the largest step
STRAIGHT = np.cos(0.15)  # between neighbouring directions: below, the step may have reached another branch
CORRECTED = 0.25  # of a step: the largest correction on the same branch
FROM_SINGULAR = 0.5  # of a step: the largest correction of the first step out of a singular position
SMALLEST_STEP = 1e-10  # radians, or sizes of loops: no step on the same branch is left
WEAK = 1e-4  # of the largest seen: a smaller singular value marks a singular position, where branches meet
NEWTON_STEPS = 20  # in singular positions each halves the error
ARRIVED = 1e-13  # of the path
NEARLY = 1e-8  # of the path: remainder at which loops may lock if the goal is a dead centre
DEAD_CENTRE = 1e-2  # radians, or sizes of loops: largest move of other coordinates on that remainder
ROUNDING = 1e-7  # radians, or sizes of loops: largest move at the goal

Corrected = tuple[np.ndarray, float, float]  # position, share of the path, size of the correction


def drive_to_goal(mech: Mechanism, start: np.ndarray, goal: np.ndarray, held: Held) -> np.ndarray | None:
    """(nq,): the configuration on the branch of the assembled ``start`` with the held coordinates of ``goal``.  None if
    the straight path does not reach it."""
    ends = [held.wanted.get(coordinate.name, float(coordinate.value(start))) for coordinate in held.links]
    drive = Drive(mech, start, goal, held.free, held.links, ends)
    q, done = drive.run(start, Course(), LARGEST_STEP)
    return q if done == 1.0 else None


@dataclass
class Course:
    """State of a continuation from one target to the next.

    x, along   direction of the motion and of its driven coordinates (see ``Drive``); None before the first step
    rank       largest rank of the equations so far
    weakest    smallest nonzero singular value relative to the largest: its largest value so far
    """

    x: np.ndarray | None = None
    along: np.ndarray | None = None
    rank: int = 0
    weakest: float = 0.0

    def sees(self, parts: Decomposition) -> bool:
        """Record a position; returns whether it shows that earlier positions were singular."""
        rises = bool(parts.rank > self.rank)
        if rises:
            self.rank, self.weakest = int(parts.rank), 0.0
        if self.rank:
            self.weakest = max(self.weakest, float(parts.s[self.rank - 1] / parts.s[0]))
        return rises

    def rank_at(self, parts: Decomposition) -> int:
        """Number of independent equations: fewer where branches meet, up to rounding."""
        return int(np.count_nonzero(parts.s[: self.rank] > WEAK * self.weakest * parts.s[:1]))


class Drive:
    """A motion that drives some coordinates straight to a goal while the others follow.

    The unknowns x are the dimensionless velocities of the others and the pace of the driven ones.  With the pace
    unknown the motion is a curve, followed by arc length.  In singular positions, where the pace does not determine
    velocities, the curve goes straight on.  With further degrees of freedom, the others move the least.

    goal     (nq,): configuration with the driven joints at their targets
    free     (nv,): whether a velocity belongs to no driven joint
    links    coordinates of links that are driven to ``ends``
    """

    def __init__(
        self,
        mech: Mechanism,
        q: np.ndarray,
        goal: np.ndarray,
        free: np.ndarray,
        links: tuple[NamedCoordinate, ...] = (),
        ends: Sequence[float] | np.ndarray = (),
    ):
        self.mech, self.free, self.goal, self.ends = mech, free, goal, np.asarray(ends, dtype=float)
        self.columns = sizes(mech).columns
        self.ways = np.array(
            [-float(coordinate.change(q, end)) for coordinate, end in zip(links, self.ends, strict=True)]
        )
        paces = self.ways / np.array([coordinate.unit(units(mech)) for coordinate in links])
        turns = np.where(free, 0.0, tree.difference(mech, q, goal) / self.columns)
        self.length = float(np.linalg.norm([*turns, *paces]))
        self.along = np.array([*turns, *paces]) / (self.length or 1.0)
        self._equations = Held(free, (), links).equations(mech, q)
        self._from_singular = False

    def run(self, q: np.ndarray, course: Course, largest: float) -> tuple[np.ndarray, float]:
        """The last configuration reached from q, and its share of the path: 1, or less where loops lock."""
        if self.length <= LOOPS.closed:
            return self.closed_at_goal(q, 0.0), 1.0
        q, done, _ = self._corrected(q, 0.0, keep_pace=True) or (q, 0.0, 0.0)
        parts = decompose(self._linear(q, done)[1])
        course.sees(parts)
        x, step = self._direction(parts, course, self._previous_direction(course)), largest
        while step >= SMALLEST_STEP and done < 1.0:
            taken = self._step(q, done, x, step, course)
            if taken is None:
                step *= 0.5
                continue
            q, done, x = taken
            course.x, course.along, self._from_singular = x, self.along, False
            step = min(largest, 1.5 * step)
        if done > 1.0 - NEARLY:  # loops lock just there if the goal is a dead centre
            end = self.closed_at_goal(q, done)
            moved = np.abs(tree.difference(self.mech, q, end) / self.columns).max()
            if self._equations_at(1.0).is_closed(end, LOOPS.closed) and moved < (
                ROUNDING if done == 1.0 else DEAD_CENTRE
            ):
                return end, 1.0
        return q, done

    def _step(
        self, q: np.ndarray, done: float, x: np.ndarray, step: float, course: Course
    ) -> tuple[np.ndarray, float, np.ndarray] | None:
        """The next position, not beyond the end of the path, and the direction there; None if it may be on another
        branch."""
        left = (1.0 - done) * self.length
        is_last = step * x[-1] >= left
        distance = left / x[-1] if is_last else step
        there = None if is_last else self._beside(q, done, x, distance)
        if there is not None and there[1] > 1.0:
            is_last, distance = True, distance * (1.0 - done) / (there[1] - done)
        there = self._arrival(q, done, x, distance) if is_last else there
        if there is None:
            return None
        parts = decompose(self._linear(*there[:2])[1])
        self._from_singular |= course.sees(parts)
        if there[2] > (FROM_SINGULAR if self._from_singular else CORRECTED) * distance:
            return None
        ahead = self._direction(parts, course, x)
        if not self._from_singular and ahead @ x < STRAIGHT:
            return None
        return there[0], there[1], ahead

    def _arrival(self, q: np.ndarray, done: float, x: np.ndarray, distance: float) -> Corrected | None:
        """The position on the curve at the end of the path, at about this distance along a direction."""
        longest = 1.5 * distance
        for _ in range(NEWTON_STEPS):
            there = self._beside(q, done, x, distance)
            if there is None or abs(1.0 - there[1]) <= ARRIVED:
                return there and (there[0], 1.0, there[2])
            distance += (1.0 - there[1]) * self.length / x[-1]
            if not 0.0 < distance < longest:
                return None
        return None

    def _beside(self, q: np.ndarray, done: float, x: np.ndarray, distance: float) -> Corrected | None:
        """The position on the curve beside the point at a distance along a direction."""
        return self._corrected(*self._moved(q, done, distance * x))

    def _corrected(self, q: np.ndarray, done: float, keep_pace: bool = False) -> Corrected | None:
        """The nearest position on the curve and its distance, by Newton's iteration with shortest steps; None on
        failure. Rolling constraints on velocities are left out of the correction."""
        change, before = np.zeros(int(self.free.sum()) + 1), np.inf
        tolerance = self._equations.exact
        for _ in range(NEWTON_STEPS):
            error, matrix = self._linear(q, done, self.mech.constraints.holonomic_rows)
            size = float(np.linalg.norm(error))
            if size <= LOOPS.aim * tolerance or (size > 0.5 * before and size <= tolerance) or not size < 2.0 * before:
                break
            matrix[:, -1] *= not keep_pace
            step = -decompose(matrix).solve(error)
            change, before = change + step, size
            q, done = self._moved(q, done, step)
        return (q, done, float(np.linalg.norm(change))) if self._equations_at(done).is_closed(q, LOOPS.closed) else None

    def closed_at_goal(self, q: np.ndarray, done: float) -> np.ndarray:
        """(nq,): the configuration at the goal after a straight move from q, with loops closed as well as possible."""
        rest = (1.0 - done) * self.length * self.along[: self.mech.nv]
        q = tree.integrate(self.mech, q, self.columns * rest, 1.0)
        for body in self.mech.bodies:  # driven coordinates equal the goal to the last digit
            indices, still = self.mech.q_index(body.joint), ~self.free[self.mech.v_index(body.joint)]
            q[indices] = np.where(
                still if body.kind.rates_are_velocities else still.all(), self.goal[indices], q[indices]
            )
        return close_loops(self._equations_at(1.0), q, Goal(15), self.free)

    def _direction(self, parts: Decomposition, course: Course, before: np.ndarray | None) -> np.ndarray:
        """(n + 1,): unit direction of the motion; in singular positions the previous one, zero where loops lock."""
        rank = course.rank_at(parts)
        onwards = np.zeros(len(parts.v))
        onwards[-1] = 1.0
        null = parts.v[:, rank:]
        x: np.ndarray = null @ (null.T @ (onwards if before is None or rank == course.rank else before))
        size = float(np.linalg.norm(x))
        return x / size if size > np.sqrt(np.finfo(float).eps) else 0.0 * x

    def _previous_direction(self, course: Course) -> np.ndarray | None:
        """The direction of the motion to the last target in unknowns of this path; reversed if the path turns back."""
        if course.x is None or course.along is None:
            return None
        turned = float(course.along @ self.along)
        x = course.x * np.where(np.arange(len(course.x)) < len(course.x) - 1, 1.0, turned)
        return -x if turned < 0.0 else x

    # -- equations and unknowns ---------------------------------------------------------------------------

    def _equations_at(self, done: float) -> LoopEquations:
        """The equations at a share ``done`` of the path."""
        if isinstance(self._equations, HeldEquations):
            return replace(self._equations, values=self.ends - (1.0 - done) * self.ways)
        return self._equations

    def _linear(self, q: np.ndarray, done: float, counted: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """(m,), (m, n + 1): the error of the equations, and their derivatives by the unknowns; zero for constraints
        that are not ``counted``."""
        error, jacobian = self._equations_at(done).at(q)
        if counted is not None:
            jacobian[np.flatnonzero(~counted)] = 0.0
        by_pace = jacobian @ self.along[: self.mech.nv]
        by_pace[len(by_pace) - len(self.ends) :] -= self.along[self.mech.nv :]
        return error, np.column_stack([jacobian[:, self.free], by_pace])

    def _moved(self, q: np.ndarray, done: float, change: np.ndarray) -> tuple[np.ndarray, float]:
        """The position after a change of the unknowns."""
        velocities = self.along[: self.mech.nv] * change[-1]
        velocities[self.free] = change[:-1]
        return tree.integrate(self.mech, q, self.columns * velocities, 1.0), done + float(change[-1]) / self.length
