"""Singular positions: one policy for simulation and rollout, and the arcs that take motions past them.

Close to a singular position accelerations are quotients of small numbers.  A state off the manifold by d has errors of
d / sigma^2 in its accelerations, where sigma is the smallest singular value of G.  Methods with error control take ever
shorter steps, until rounding stops them or moves the motion onto another branch of the manifold.  Fixed steps do not
notice.  The motion itself is usually smooth there: it goes straight on, the only smooth continuation.

Near a singular position every method therefore gives way to an arc (``Arc``): a polynomial of the time from one side to
the other.  It satisfies the equations of motion at nodes that keep away from the singular position.  An accurate
polynomial of high degree proves that the motion is smooth, for any number of loops.  Where the motion turns a sharp
corner beside a singular position, no polynomial is accurate: arcs are shortened until they resolve the corner.

``SingularPositions`` is the policy of ``simulate``, and of the slow path of ``rollout``.  ``Crossings`` of
``integrators.py`` replaces steps by arcs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.polynomial import legendre

from .. import constraints
from ..constraints.loop_closure import LoopEquations
from ..constraints.sizes import units
from ..dynamics import trees as tree
from ..mechanism import Mechanism, MechanismError, MechanismWarning, warn_caller

if TYPE_CHECKING:
    from .system import Member  # one motion in joint velocities; x = [q, v, activations]

# Conditioning is that of the constraints, relative to its usual value for the mechanism; errors of arcs are relative.
NEAR = 0.2  # conditioning: below it, a step of any method is replaced by an arc
SINGULAR = 1e-5  # conditioning: below it, rounding decides the direction of projection
THROUGH = 1e-5  # conditioning: a closer motion goes through, up to errors of integration
BESIDE = 1e-4  # conditioning: a closer motion is led straight on, as errors decide on which side it passes
SHARP = 0.02  # conditioning: a closer motion turns a corner at which small changes lead to other motions
SAFELY = 0.01  # of the distance to another branch: the most that projection may move a state
NEARLY_CLOSED = 1e-6  # radians, or sizes of loops, times the usual conditioning
PAIRS = (6, 8, 10)  # of nodes of an arc, on both sides of a singular position, in order of attempts
FINE = 1e-10  # error below which an arc is accurate, whatever the tolerance
GAUSSIAN = 1e-8  # error below which an arc at Gauss nodes is accurate: they resolve the ends of an arc much better
ROUNDED = 1e-8  # error below which an arc is accurate if more nodes do not help
ROUNDING = 1e-15  # over the square of the conditioning: error by rounding
STAGNANT = 0.1  # of the error with fewer nodes: a larger error does not come from the degree of the polynomial
ROUGH = 1e-6  # largest accepted error: a singular position is known to half the digits only
HALVINGS = 20  # of the length of an arc: then the motion is left to the method
PART = 0.5  # of the time to a singular position: the longest step or arc towards it where none crosses it
LOOK = np.array([0.0, 0.01, 0.5, 1.0, 1.5])  # steps: times at which to look ahead
FURTHER = LOOK[-1] * 2.0 ** np.arange(0.5, 4.5, 0.5)  # steps: later times at which to look ahead
LADDER = 2.0 ** np.arange(-12.0, 24.5, 0.5)  # steps: times at which to look for the end of a neighbourhood
ALMOST = 0.9  # of the conditioning: unless it falls below, a motion counts as past the singular position
SAME = 1.0 + 1e-9  # ratio of conditionings: a smaller change is rounding
CLOSELY = 33  # number of samples of an interval
AT_REST = 1e-9  # of the velocity gained within a step: a slower motion is at rest
CONSISTENT = 1e-6  # of velocities: smaller changes onto a branch are rounding
INCONSISTENT = 0.3  # of velocities: larger changes would make it another motion
SETTLING = 0.5  # of the change before the last: a larger change in the iteration for states at nodes is noise
GAP = 0.4  # of half the duration of an arc: nodes keep this far from the singular position in its middle
EXACT = 1e-14  # relative: a smaller change at nodes ends the iteration


# -- arcs: collocation on the constraint manifold --------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Arc:
    """A piece of a motion as a polynomial.

    t_old, t   start and end
    half       half the length of the interval of the coefficients, which ends at t
    path       (degree + 1, n): Legendre coefficients
    error      largest of its last coefficients and the gap between nodes and manifold, relative to the path of q and
               the largest v
    """

    t_old: float
    t: float
    half: float
    path: np.ndarray
    error: float

    def between(self, time: float) -> np.ndarray:
        """x at a time on the arc."""
        return legendre.legval((time - self.t) / self.half + 1.0, self.path)


def gauss_pairs(pairs: int) -> np.ndarray:
    """An even number of Gauss nodes from -1 to 1, so that none is in the middle."""
    return legendre.leggauss(2 * pairs)[0]


def outer_pairs(pairs: int) -> np.ndarray:
    """Nodes from -1 to 1, none within ``GAP`` of the middle: their squares are Gauss's nodes from there to 1."""
    squares = 0.5 * (1.0 + GAP**2) + 0.5 * (1.0 - GAP**2) * legendre.leggauss(pairs)[0]
    return np.concatenate([-np.sqrt(squares[::-1]), np.sqrt(squares)])


@dataclass(frozen=True)
class Nodes:
    """Nodes at which an arc satisfies the equations of motion.

    length      seconds, from the start of the arc
    at          from -1 to 1
    both_ways   whether -1 and 1 are the start minus and plus the length, else the start and the end
    """

    length: float
    at: np.ndarray
    both_ways: bool = False


@dataclass(frozen=True)
class Measure:
    """Dimensionless norms of differences of states and of paths.

    velocity_size   number of entries of x, at its end, that are velocities or activations
    units           (n,): units of x
    """

    velocity_size: int
    units: np.ndarray | float = 1.0

    def __call__(self, difference: np.ndarray, path: np.ndarray) -> float:
        """The largest difference of positions relative to the path length, or of velocities relative to the
        largest one."""
        difference, path = difference / self.units, path / self.units
        n = path.shape[1] - self.velocity_size
        distance, speed = (
            np.abs(path[1:, :n]).sum(axis=0).max(initial=0.0),
            np.abs(path[:, n:]).sum(axis=0).max(initial=0.0),
        )
        parts: Sequence[tuple[np.ndarray, float]] = ((difference[:, :n], distance), (difference[:, n:], speed))
        return max(float(np.abs(part).max(initial=0.0)) / scale if scale else 0.0 for part, scale in parts)


def collocated(
    motion: Member,
    t: float,
    x: np.ndarray,
    nodes: Nodes,
    guess: Callable[[np.ndarray], np.ndarray],
    measure: Measure,
) -> Arc:
    """The motion from (t, x) as a polynomial that satisfies the equations of motion at nodes (collocation).
    ``guess(times)`` is an estimate of x at these times after t."""
    half, known = (nodes.length, 0.0) if nodes.both_ways else (0.5 * nodes.length, -1.0)
    times, stages = half * (nodes.at - known), len(nodes.at)
    inside = legendre.legvander(nodes.at, stages)
    to_coefficients = np.linalg.inv(inside[:, :stages])
    states, changes = guess(times), [math.inf, math.inf]
    path = np.zeros((stages + 1, len(x)))
    while EXACT < changes[-1] and (len(changes) < 4 or changes[-1] < SETTLING * changes[-3]):
        on_manifold = motion.closed(states)
        slopes = motion.rates_along(t + np.maximum(times, 0.0), on_manifold)
        path = legendre.legint(to_coefficients @ slopes, lbnd=known, scl=half)
        path[0] += x
        states, before = inside @ path, states
        changes.append(measure(states - before, path))
    errors = (states - motion.closed(states), path[-2:])
    error = max(changes[-1], *(measure(estimate, path) for estimate in errors))
    return Arc(t, t + nodes.length, half, path, error)


# -- the policy -------------------------------------------------------------------------------------------------


class Start(NamedTuple):
    """Start of an arc: time, x, and accelerations (nv,)."""

    t: float
    x: np.ndarray
    a: np.ndarray


class Ahead(NamedTuple):
    """A singular position ahead: seconds until the motion is closest to it, and until it is left behind."""

    time: float
    behind: float


@dataclass(frozen=True)
class SingularPositions:
    """The policy near singular positions of one simulation or rollout.

    ``is_singular``   is this state too near a singular position to be projected?
    ``may_be_ahead``  which states may come near a singular position within a step?
    ``arc``           how is a singular position passed or left, and how long may steps towards it be?

    rank                 (...): number of independent constraints away from singular positions; None without loops
    usual_conditioning   smallest over largest singular value of G there
    report               called with time and text of a message; None: warn
    """

    mech: Mechanism
    rank: np.ndarray | None = None
    usual_conditioning: float = 1.0
    report: Callable[[float, str], None] | None = None

    @staticmethod
    def around(mech: Mechanism, q: np.ndarray) -> SingularPositions:
        """The policy for motions from q (..., nq)."""
        if not mech.loops:
            return SingularPositions(mech)
        rank, first = np.asarray(constraints.generic_rank(mech, q)), q.reshape(-1, mech.nq)[:1]
        return SingularPositions(mech, rank, constraints.usual_conditioning(mech, first[0]) if len(first) else 1.0)

    def of(self, states: np.ndarray | tuple[int, ...]) -> SingularPositions:
        """The policy for some states of a batch."""
        return self if self.rank is None else replace(self, rank=self.rank[states])

    def with_report(self, report: Callable[[float, str], None]) -> SingularPositions:
        """The policy with messages passed to ``report`` instead of warnings."""
        return replace(self, report=report)

    def conditioning(self, q: np.ndarray) -> np.ndarray:
        """(...): conditioning of states relative to its usual value. q may have further axes between those of ``rank``
        and of coordinates."""
        if self.rank is None:
            return np.ones(q.shape[:-1])
        rank = self.rank.reshape(self.rank.shape + (1,) * (q.ndim - 1 - self.rank.ndim))
        return constraints.conditioning(self.mech, q, rank) / self.usual_conditioning

    def is_singular(self, q: np.ndarray) -> np.ndarray:
        """(...): whether states with nearly closed loops are too near a singular position to be projected.  An error g
        moves a state by g / sigma, while another branch is only sigma away."""
        if self.rank is None:
            return np.zeros(q.shape[:-1], dtype=bool)
        gaps = np.abs(LoopEquations.of(self.mech).error(q)).max(axis=-1, initial=0.0)
        conditioning = self.conditioning(q)
        far = gaps > SAFELY * (self.usual_conditioning * conditioning) ** 2
        return (far | (conditioning < SINGULAR)) & (gaps < NEARLY_CLOSED * self.usual_conditioning)

    def may_be_ahead(self, q: np.ndarray, v: np.ndarray, step: float) -> np.ndarray:
        """(...): whether states are near a singular position, or come near one within a step."""
        if self.rank is None:
            return np.zeros(q.shape[:-1], dtype=bool)
        along = self.conditioning(self._path(q[..., None, :], v[..., None, :], np.zeros(v.shape), LOOK * step))
        return _dips(along).any(axis=-1) | (along.min(axis=-1) < NEAR)

    def arc(self, motion: Member, t: float, x: np.ndarray, rates: np.ndarray, step: float) -> tuple[Arc | None, float]:
        """The arc from (t, x) that replaces a step of length ``step``, or None, and else the longest step."""
        if self.rank is None:
            return None, math.inf
        q, v = motion.state(x)
        conditioning, a = float(self.conditioning(q)), motion.state(rates)[1]
        ahead = None if conditioning < SINGULAR else self._ahead(q, v, a, step)
        if conditioning >= SINGULAR and ahead is None:
            return None, math.inf
        if motion.drifts:
            x = motion.settled(x)
            a = motion.state(motion.rates(t, x))[1]
        start = Start(t, x, a)
        if ahead is None:
            return self._departure(motion, start, step), math.inf
        if conditioning >= NEAR:
            arc = self._collocated(motion, start, ahead.behind, gauss_pairs)
            smooth = arc is not None and arc.error <= GAUSSIAN
        else:
            arc = self._collocated(motion, start, ahead.behind, outer_pairs)
            smooth = arc is not None and arc.error <= FINE
        if arc is None or not self._is_crossing(motion, arc, smooth, ahead, self._rounded(conditioning)):
            arc = self._shorter(motion, start, ahead, self._rounded(conditioning)) if conditioning < NEAR else None
        return arc, PART * ahead.time if ahead.time else math.inf

    def arcs(self, motion: Member, t: float, x: np.ndarray, until: float, step: float, inside: bool) -> list[Arc]:
        """Arcs from (t, x) up to ``until`` or beyond; empty if none is needed or possible.  ``step`` is the length of a
        step; ``inside``: the motion was on an arc just before."""
        arcs: list[Arc] = []
        while t < until:
            rates = motion.rates(t, x)
            arc, _ = self.arc(motion, t, x, rates, step)
            if arc is None and (arcs or inside):
                arc = self._collocated(motion, Start(t, x, motion.state(rates)[1]), step, gauss_pairs)
                arc = arc if arc is not None and arc.error <= ROUNDED else None
            if arc is None:
                return []
            arcs.append(arc)
            t, x = arc.t, motion.settled(arc.between(arc.t))
        return arcs

    # -- looking ahead ------------------------------------------------------------------------------------------

    def _path(self, q: np.ndarray, v: np.ndarray, a: np.ndarray, times: np.ndarray) -> np.ndarray:
        """(..., k, nq): configurations of the motion with constant acceleration at k times."""
        return tree.integrate(self.mech, q, v * times[:, None] + 0.5 * a[..., None, :] * times[:, None] ** 2, 1.0)

    def _states(self, x: np.ndarray, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """(k, n): x with other positions (k, nq) and velocities (k, nv)."""
        rest = x[self.mech.nq + self.mech.nv :]
        return np.concatenate([q, v, np.broadcast_to(rest, (len(q), len(rest)))], axis=-1)

    def _ahead(self, q: np.ndarray, v: np.ndarray, a: np.ndarray, step: float, leaves: bool = False) -> Ahead | None:
        """The singular position that the next step comes near, or in whose neighbourhood it starts.  ``leaves``: the
        state is in the singular position up to rounding."""

        def along(times: np.ndarray) -> np.ndarray:
            return self.conditioning(self._path(q, v, a, times))

        times = step * LOOK
        values = along(times)
        if values[0] < NEAR:
            return _neighbourhood_end(along, step, leaves)
        (dips,) = np.nonzero(_dips(values))
        if not len(dips) and values[-1] >= NEAR:
            return None
        if not len(dips):  # the closest point is further away: an arc must end beyond it
            times = np.concatenate([times[-2:], step * FURTHER])
            values = along(times)
            (dips,) = np.nonzero(_dips(values))
        first, last = (int(dips[0]), int(dips[0]) + 2) if len(dips) else (0, 1)
        times = np.linspace(times[first], times[last], CLOSELY)
        values = along(times)
        if values.min() >= NEAR:
            return None
        time = float(times[np.argmin(values)])
        return Ahead(time, 2.0 * time)

    # -- arcs ---------------------------------------------------------------------------------------------------

    def _collocated(
        self,
        motion: Member,
        start: Start,
        length: float,
        nodes: Callable[[int], np.ndarray],
        both_ways: bool = False,
    ) -> Arc | None:
        """The best arc of this length; None if loops cannot be closed at some node."""
        if not math.isfinite(length):
            return None
        t, x, a = start
        q, v = motion.state(x)

        def guess(times: np.ndarray) -> np.ndarray:
            return self._states(x, self._path(q, v, a, times), v + a * times[:, None])

        of_x = np.ones(len(x))
        of_x[: len(q) + len(v)] = np.concatenate([units(self.mech).positions, units(self.mech).velocities])
        measure, best = Measure(len(x) - len(q), of_x), None
        for pairs in PAIRS:
            try:
                arc = collocated(motion, t, x, Nodes(length, nodes(pairs), both_ways), guess, measure)
            except MechanismError:
                return best
            if arc.error <= FINE or (nodes is gauss_pairs and arc.error <= GAUSSIAN):
                return arc
            if best is not None and arc.error > STAGNANT * best.error:
                return min(best, arc, key=lambda candidate: candidate.error)
            best = arc
        return best

    def _rounded(self, conditioning: float) -> float:
        """Largest accepted error of an arc from a state of this conditioning, if more nodes do not help."""
        return min(max(ROUNDED, ROUNDING / (conditioning * self.usual_conditioning) ** 2), ROUGH)

    def _is_crossing(self, motion: Member, arc: Arc, smooth: bool, ahead: Ahead, rounded: float) -> bool:
        """Whether to take an arc past a singular position: if it is smooth, or passes too closely not to be."""
        if not ahead.time:
            return smooth
        time, least = self._closest(motion, arc)
        if least > BESIDE or arc.error > max(
            rounded, least
        ):  # the error of an arc straight past is about this distance
            return smooth and self._report_arc_corner(arc, time, least)
        if least > THROUGH:
            self._report(
                time,
                f"passes a singular position so closely (its conditioning falls to {least:.1g} of the usual one) that "
                "errors of integration decide on which side: it was led straight on",
            )
        return True

    def _report_arc_corner(self, arc: Arc, time: float, least: float) -> bool:
        """Report a sharp corner on an arc; returns True."""
        if arc.t_old < time < arc.t:
            self.report_corner(time, least)
        return True

    def report_corner(self, time: float, least: float) -> None:
        """Report a sharp corner of a motion, judged by its least conditioning."""
        if least < SHARP:
            self._report(
                time,
                f"turns a sharp corner beside a singular position (its conditioning falls to {least:.1g} of the usual "
                "one): small errors before may lead to a motion on the other side",
            )

    def _shorter(self, motion: Member, start: Start, ahead: Ahead, rounded: float) -> Arc | None:
        """The longest accurate arc towards or away from a singular position."""
        length = PART * (ahead.time or ahead.behind)
        for _ in range(HALVINGS):
            arc = self._collocated(motion, start, length, gauss_pairs)
            if arc is not None and arc.error <= rounded:
                self._report_arc_corner(arc, *self._closest(motion, arc))
                return arc
            length *= 0.5
        self._report(
            start.t,
            "is near a singular position, and no smooth continuation was found: the steps of the method go on, and the "
            "branch they take depends on errors",
        )
        return None

    def _closest(self, motion: Member, arc: Arc) -> tuple[float, float]:
        """Time at which an arc is closest to a singular position, and the conditioning there."""

        def along(times: np.ndarray) -> np.ndarray:
            return self.conditioning(np.array([motion.state(arc.between(float(time)))[0] for time in times]))

        times = np.linspace(arc.t_old, arc.t, CLOSELY)
        values = along(times)
        time, width, least = float(times[np.argmin(values)]), float(times[1] - times[0]), float(values.min())
        while least > ROUNDED and width > ROUNDED * (arc.t - arc.t_old):
            left, middle, right = along(time + width * np.array([-1.0, 0.0, 1.0])) ** 2  # a parabola
            bend, least = left - 2.0 * middle + right, min(least, math.sqrt(min(left, middle, right)))
            if bend <= 0.0:
                break
            time, width = time + width * float(np.clip(0.5 * (left - right) / bend, -1.0, 1.0)), 0.1 * width
        return float(np.clip(time, arc.t_old, arc.t)), least

    def _report(self, time: float, problem: str) -> None:
        if self.report is not None:
            self.report(time, problem)
        else:
            warn_caller(f"at t = {time:.6g} s mechanism {self.mech.name!r} {problem}", MechanismWarning)

    def _size(self, v: np.ndarray) -> float:
        """The largest of velocities or accelerations (nv,), lengths in units of the mechanism's size."""
        return float(np.abs(v / units(self.mech).velocities).max(initial=0.0))

    # -- out of a singular position -----------------------------------------------------------------------------

    def _departure(self, motion: Member, start: Start, step: float) -> Arc | None:
        """The arc out of a singular position: half of an arc through it.  Velocities select the branch; at rest it is
        the branch nearest to the accelerations."""
        t, x, a = start
        q, v = motion.state(x)
        at_rest = self._size(v) <= AT_REST * self._size(a) * step
        if not at_rest:
            a = np.zeros_like(a)  # accelerations depend on the branch there
        ahead = self._ahead(q, v, a, step, leaves=True)
        if ahead is None:  # it stays there
            return None
        length = ahead.behind
        for _ in range(HALVINGS):
            leaving = x if at_rest else self._branch_state(motion, x, length)
            arc = None
            if leaving is not None:
                arc = self._collocated(motion, Start(t, leaving, a), length, outer_pairs, both_ways=True)
            if arc is not None and arc.error <= ROUGH:
                break
            length *= 0.5
        else:
            self._report(t, "is in a singular position, and no smooth way out was found: the steps of the method go on")
            return None
        if at_rest:
            self._report(
                t,
                "is at rest in a singular position, which it may leave in several ways: it leaves along the branch "
                "nearest to its acceleration",
            )
        elif leaving is not None and self._size(change := motion.state(leaving)[1] - v) > CONSISTENT * self._size(v):
            self._report(
                t,
                "is in a singular position with velocities that belong to no branch: they were changed by "
                f"{np.abs(change).max():.2g}, to those of the branch it leaves along",
            )
        return arc

    def _branch_state(self, motion: Member, x: np.ndarray, length: float) -> np.ndarray | None:
        """x in a singular position with velocities along a branch, or None.  They are the limit of the velocities of
        closed states on both sides."""
        q, v = motion.state(x)
        nodes = outer_pairs(PAIRS[0])
        to_middle = (
            np.linalg.inv(legendre.legvander(nodes, len(nodes) - 1)).T @ legendre.legvander(0.0, len(nodes) - 1)[0]
        )
        for _ in range(HALVINGS):
            steps = self._path(q, v, np.zeros_like(v), length * nodes)
            try:
                closed_states = motion.closed(self._states(x, steps, np.broadcast_to(v, (len(nodes), len(v)))))
            except MechanismError:
                return None
            v, before = to_middle @ motion.state(closed_states)[1], v
            if self._size(v - before) <= CONSISTENT * self._size(v):
                velocity = motion.state(x)[1]
                fits = self._size(before - velocity) <= INCONSISTENT * self._size(velocity)
                return self._states(x, q[None], before[None])[0] if fits else None
        return None


def _neighbourhood_end(along: Callable[[np.ndarray], np.ndarray], step: float, leaves: bool) -> Ahead | None:
    """When a motion near a singular position is closest to it, and when it leaves the neighbourhood.  ``along(times)``
    is the conditioning.  A motion ahead of the position leaves as long after it as it is before it.  A motion that
    ``leaves`` or has almost passed does so when it is away or turns back."""
    times = np.concatenate([[0.0], step * LADDER])
    values = along(times)
    rises = np.flatnonzero(SAME * values[:-1] < values[1:])
    if not len(rises):
        return None
    times = np.linspace(0.0, times[rises[0] + 1], CLOSELY)
    values = along(times)
    passes = float(times[np.argmin(values)])
    if passes and not leaves and values.min() < ALMOST * values[0]:
        return Ahead(passes, 2.0 * passes)
    times = step * LADDER[rises[0] :]
    values = along(times)
    ends = np.flatnonzero((values[:-1] >= NEAR) | (values[:-1] > SAME * values[1:]))
    return Ahead(0.0, float(times[ends[0] if len(ends) else -1]))


def _dips(values: np.ndarray) -> np.ndarray:
    """(..., k - 2): whether inner values of (..., k) are local minima."""
    return (values[..., 1:-1] < values[..., :-2]) & (values[..., 1:-1] <= values[..., 2:])
