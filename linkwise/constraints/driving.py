"""The motion of closed mechanisms along a branch while coordinates are driven straight to a goal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..dynamics import trees as tree
from ..mechanism import Mechanism
from .decomposition import Decomposition, decompose
from .locked import Held, HeldEquations
from .loop_closure import Goal, LoopEquations, closed_by
from .named_coordinates import NamedCoordinate
from .sizes import sizes, units
from .tolerances import LOOPS

LARGEST_STEP = 0.2  # radians, or sizes of loops: where no finer one is asked for
STRAIGHT = np.cos(0.15)  # between directions of neighbours: beyond, the step may have reached another branch
CORRECTED = 0.25  # of a step: the largest correction on the same branch
FROM_SINGULAR = 0.5  # the same where a motion starts in a singular position, and its branch has yet to be found
SMALLEST_STEP = 1e-10  # radians, or sizes of loops: no step on the same branch is left
WEAK = 1e-4  # of the largest seen: a smaller singular value is that of a singular position, where branches meet
NEWTON_STEPS = 20  # in singular positions each halves the error
ARRIVED = 1e-13  # of the way
NEARLY = 1e-8  # of the way: what may be left where loops lock, if the goal is a dead centre
DEAD_CENTRE = 1e-2  # radians, or sizes of loops: by so much, at most, the others move on what is left of it
ROUNDING = 1e-7  # the same: what is left of errors at the goal

Corrected = tuple[np.ndarray, float, float]  # a position, how much of the way that is, and how far it was corrected


def reached(mech: Mechanism, start: np.ndarray, goal: np.ndarray, held: Held) -> np.ndarray | None:
    """(nq,): the configuration on the branch of the assembled ``start`` whose held coordinates are those of ``goal``;
    None where it is not met on the straight way there."""
    ends = [held.wanted.get(coordinate.name, float(coordinate.value(start))) for coordinate in held.links]
    drive = Drive(mech, start, goal, held.free, held.links, ends)
    q, done = drive.to_the_end(start, Course(), LARGEST_STEP)
    return q if done == 1.0 else None


@dataclass
class Course:
    """What a motion hands on from one target to the next.

    x, along   its direction and that of its driven coordinates (see ``Drive``); None before it has one
    rank       of the equations, wherever they are not singular: the largest that was seen
    weakest    of the singular values that count, relative to the first: the largest seen
    """

    x: np.ndarray | None = None
    along: np.ndarray | None = None
    rank: int = 0
    weakest: float = 0.0

    def sees(self, parts: Decomposition) -> bool:
        """Take note of a position; whether it tells that those before were singular."""
        rises = bool(parts.rank > self.rank)
        if rises:
            self.rank, self.weakest = int(parts.rank), 0.0
        if self.rank:
            self.weakest = max(self.weakest, float(parts.s[self.rank - 1] / parts.s[0]))
        return rises

    def rank_at(self, parts: Decomposition) -> int:
        """How many equations are independent: fewer where branches meet, or would within rounding."""
        return int(np.count_nonzero(parts.s[: self.rank] > WEAK * self.weakest * parts.s[:1]))


class Drive:
    """A motion in which some coordinates go straight from where they are to a goal, and the others follow.

    Its unknowns are x, the velocities of the others and the pace of the driven ones, dimensionless: one more than there
    are at a given pace.  So it is a curve, followed by its length.  In singular positions, where velocities do not
    follow from the pace, the curve goes straight on; where more than one motion is possible everywhere, the others move
    as little as they can.

    goal     (nq,): with the driven joints where they are to be
    free     (nv,): the velocities that are not those of driven joints
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

    def to_the_end(self, q: np.ndarray, course: Course, largest: float) -> tuple[np.ndarray, float]:
        """Where the motion comes to from q, and how much of the way that is: 1, or less where loops lock."""
        if self.length <= LOOPS.closed:
            return self.closed_at_goal(q, 0.0), 1.0
        q, done, _ = self._corrected(q, 0.0, keep_pace=True) or (q, 0.0, 0.0)
        parts = decompose(self._linear(q, done)[1])
        course.sees(parts)
        x, step = self._direction(parts, course, self._before(course)), largest
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
            if self._at(1.0).is_closed(end, LOOPS.closed) and moved < (ROUNDING if done == 1.0 else DEAD_CENTRE):
                return end, 1.0
        return q, done

    def _step(
        self, q: np.ndarray, done: float, x: np.ndarray, step: float, course: Course
    ) -> tuple[np.ndarray, float, np.ndarray] | None:
        """The next position on the way, no further than its end, and the direction there; None where that may be
        on another branch."""
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
        """The position on the curve at the end of the way, about so far along a direction."""
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
        """The position on the curve beside the one at a distance along a direction."""
        return self._corrected(*self._moved(q, done, distance * x))

    def _corrected(self, q: np.ndarray, done: float, keep_pace: bool = False) -> Corrected | None:
        """The position on the curve next to one beside it, and how far it was; None if it is not found.  Newton's
        iteration by shortest steps; a wheel need not roll while it is put back."""
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
        return (q, done, float(np.linalg.norm(change))) if self._at(done).is_closed(q, LOOPS.closed) else None

    def closed_at_goal(self, q: np.ndarray, done: float) -> np.ndarray:
        """(nq,): from there straight to the goal, loops closed as well as they can be."""
        rest = (1.0 - done) * self.length * self.along[: self.mech.nv]
        q = tree.integrate(self.mech, q, self.columns * rest, 1.0)
        for body in self.mech.bodies:  # the driven coordinates are those of the goal to the last digit
            indices, still = self.mech.q_index(body.joint), ~self.free[self.mech.v_index(body.joint)]
            q[indices] = np.where(
                still if body.kind.rates_are_velocities else still.all(), self.goal[indices], q[indices]
            )
        return closed_by(self._at(1.0), q, Goal(15), self.free)

    def _direction(self, parts: Decomposition, course: Course, before: np.ndarray | None) -> np.ndarray:
        """(n + 1,): of the motion, of unit length; in singular positions as before, elsewhere onwards; zero where loops
        lock."""
        rank = course.rank_at(parts)
        onwards = np.zeros(len(parts.v))
        onwards[-1] = 1.0
        null = parts.v[:, rank:]
        x: np.ndarray = null @ (null.T @ (onwards if before is None or rank == course.rank else before))
        size = float(np.linalg.norm(x))
        return x / size if size > np.sqrt(np.finfo(float).eps) else 0.0 * x

    def _before(self, course: Course) -> np.ndarray | None:
        """The direction of the motion to the last target, as one on the way to this; backwards if that turns back."""
        if course.x is None or course.along is None:
            return None
        turned = float(course.along @ self.along)
        x = course.x * np.where(np.arange(len(course.x)) < len(course.x) - 1, 1.0, turned)
        return -x if turned < 0.0 else x

    # -- equations and unknowns ---------------------------------------------------------------------------

    def _at(self, done: float) -> LoopEquations:
        """The equations that hold after so much of the way."""
        if isinstance(self._equations, HeldEquations):
            return replace(self._equations, values=self.ends - (1.0 - done) * self.ways)
        return self._equations

    def _linear(self, q: np.ndarray, done: float, counted: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """(m,), (m, n + 1): the error of the equations, and their derivatives by the unknowns; of constraints that do
        not count none."""
        error, jacobian = self._at(done).at(q)
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
