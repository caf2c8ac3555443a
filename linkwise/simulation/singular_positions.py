"""Singular positions: all that a simulation decides about them, in one policy.

Close to a singular position accelerations are quotients of small numbers: a state off the manifold by d has errors of
d / sigma^2 in its accelerations, sigma the smallest singular value of G.  Methods that control their error answer with
ever shorter steps, until rounding stops them or puts the motion onto another branch of the manifold; others do not
notice.  The motion itself is smooth there, as a rule: it goes straight on, and is the only smooth continuation.

So near a singular position, and where a step would come near one, every method and every tolerance gives way to the
same thing: a polynomial of the time from one side to the other (``collocation.Arc``), which satisfies the equations of
motion at nodes that keep away from the singular position.  A polynomial of high degree that is accurate is proof that
the motion is smooth, whatever the number of loops.  Where none is, because the motion turns a sharp corner beside the
singular position, arcs are shortened until the corner is resolved.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import numpy as np

from ..dynamics import closed
from ..dynamics import trees as tree
from ..mechanism import Mechanism, MechanismError, MechanismWarning, warn_caller
from . import collocation
from .collocation import Arc, collocated, outer_nodes

NEAR = 0.2  # of the usual conditioning: with less, an error of a step is much larger in accelerations
SINGULAR = 1e-5  # of the usual conditioning: with less, rounding decides in which direction a state would be projected
NEARLY_CLOSED = 1e-6  # metres or radians, times the usual conditioning, which goes with the size of a mechanism
PAIRS = (5, 7, 9)  # of nodes, on both sides of a singular position
FINE = 1e-10  # an arc with a smaller error is accurate, whatever the tolerance
STRAIGHT = 1e-4  # the largest error of an arc straight through: one beside a singular position is not smooth
THROUGH = 1e-5  # conditioning, as a part of the usual one: what passes more closely goes through, but for errors
BESIDE = 1e-3  # the same: what passes more closely is led straight on too, since errors decide on which side it passes
SHORT = 1e-7  # the largest error of an arc towards or away from a singular position, where rounding is no smaller
STAGNANT = 0.1  # of the error with fewer nodes: one that is larger does not come from the degree of the polynomial
ROUGH = 1e-4  # the same where a motion starts: rounding of a singular position, 1e-16, is 1e-8 in coordinates
SHORTEST = 2.0**-20  # of the first arc tried: what has no smooth continuation then is left to the method
LOOK = np.array([0.0, 0.01, 0.5, 1.0, 1.5])  # parts of the next step: at which to look for what is ahead
PART = 0.5  # of the time to a singular position: the longest step towards it where no arc crosses it
AT_REST = 1e-9  # of the velocity that accelerations lead to within an arc


class Motion(collocation.Motion, Protocol):
    """What the policy needs to know of one motion of joint velocities."""

    def state(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]: ...

    def settled(self, x: np.ndarray) -> np.ndarray:
        """x of the end of an arc, as the motion goes on from it: on the manifold, its energy kept if that is wanted."""
        ...


class Ahead(NamedTuple):
    """A singular position, or one beside which a motion passes: after how many seconds, and after how many seconds it
    is left behind."""

    time: float
    behind: float


@dataclass(frozen=True)
class SingularPositions:
    """The policy of one simulation.  Nothing else in ``simulation`` decides what is done near singular positions:

    ``is_singular``   is this state so near one that it must not be projected?
    ``may_be_ahead``  which states should be asked about what is ahead of them?
    ``arc``           how is a singular position passed or left, and how long may steps towards it be?

    rank                 (...): number of independent constraints away from singular positions; None without loops
    usual_conditioning   smallest over largest singular value of G there
    """

    mech: Mechanism
    rank: np.ndarray | None = None
    usual_conditioning: float = 1.0

    @staticmethod
    def around(mech: Mechanism, q: np.ndarray) -> SingularPositions:
        """The policy for motions from q (..., nq)."""
        if not mech.loops:
            return SingularPositions(mech)
        rank, first = np.asarray(closed.generic_rank(mech, q)), q.reshape(-1, mech.nq)[:1]
        return SingularPositions(mech, rank, closed.usual_conditioning(mech, first[0]) if len(first) else 1.0)

    def of(self, states: np.ndarray | tuple[int, ...]) -> SingularPositions:
        """The policy for some states of a batch."""
        return self if self.rank is None else replace(self, rank=self.rank[states])

    def conditioning(self, q: np.ndarray) -> np.ndarray:
        """(...): that of states, as a part of the usual one.  Further axes may come between those of ``rank`` and of
        q."""
        if self.rank is None:
            return np.ones(q.shape[:-1])
        rank = self.rank.reshape(self.rank.shape + (1,) * (q.ndim - 1 - self.rank.ndim))
        return closed.conditioning(self.mech, q, rank) / self.usual_conditioning

    def is_singular(self, q: np.ndarray) -> np.ndarray:
        """(...): whether states are in a singular position, but for rounding, with their loops nearly closed: an error
        g would move them by g / sigma, sigma the smallest singular value of G, and not the way they came."""
        gaps = np.abs(closed.position_error(self.mech, q)).max(axis=-1, initial=0.0)
        return (self.conditioning(q) < SINGULAR) & (gaps < NEARLY_CLOSED * self.usual_conditioning)

    def may_be_ahead(self, q: np.ndarray, v: np.ndarray, step: float) -> np.ndarray:
        """(...): whether states are near a singular position, or come near one within a step."""
        if self.rank is None:
            return np.zeros(q.shape[:-1], dtype=bool)
        along = self.conditioning(self._path(q[..., None, :], v[..., None, :], np.zeros(v.shape), LOOK * step))
        turns = (along[..., :-1] > along[..., 1:]).any(axis=-1) & (np.argmin(along, axis=-1) < len(LOOK) - 1)
        return turns | (along.min(axis=-1) < NEAR)

    def arc(
        self, motion: Motion, t: float, x: np.ndarray, rates: np.ndarray, step: float
    ) -> tuple[Arc | None, float]:
        """The arc to take from (t, x) instead of ``step``, if there is one, and the longest step to take otherwise."""
        if self.rank is None:
            return None, math.inf
        q, v = motion.state(x)
        ahead = self._ahead(q, v, rates[-len(v) :], step)
        if ahead is None:
            return None, math.inf
        if not ahead.time and float(self.conditioning(q)) < SINGULAR:
            return self._departure(motion, t, x, rates, ahead), math.inf
        near = bool(self.conditioning(q) < NEAR)
        arc = self._smooth(motion, t, x, rates, ahead.behind, STRAIGHT if near else FINE)
        if arc is not None:
            time, least = self._closest(motion, arc)
            if least > BESIDE and arc.error > FINE:
                arc = None
            elif THROUGH < least <= BESIDE:
                self._warn(time, f"passes a singular position closely (its conditioning falls to {least:.1g} of the "
                           "usual one), and errors decide on which side: it was led straight on")
        if arc is None and near:
            arc = self._shorter(motion, t, x, rates, ahead)
        return arc, PART * ahead.time if ahead.time else math.inf

    def arcs(self, motion: Motion, t: float, x: np.ndarray, until: float) -> list[Arc]:
        """Arcs from (t, x) that end at ``until`` or after it; none if the motion is not to be, or cannot be, followed by
        arcs."""
        found: list[Arc] = []
        while t < until:
            arc, _ = self.arc(motion, t, x, motion.rates(t, x), until - t)
            if arc is None and found:  # behind it
                arc = self._smooth(motion, t, x, motion.rates(t, x), until - t, SHORT)
            if arc is None:
                return []
            found.append(arc)
            t, x = arc.t, motion.settled(arc.between(arc.t))
        return found

    def _warn(self, time: float, what: str) -> None:
        warn_caller(f"at t = {time:.6g} s mechanism {self.mech.name!r} {what}", MechanismWarning)

    # -- what is ahead ------------------------------------------------------------------------------------------

    def _path(self, q: np.ndarray, v: np.ndarray, a: np.ndarray, times: np.ndarray) -> np.ndarray:
        """(..., k, nq): where the motion of constant acceleration is after k times."""
        return tree.integrate(self.mech, q, v * times[:, None] + 0.5 * a[..., None, :] * times[:, None] ** 2, 1.0)

    def _ahead(self, q: np.ndarray, v: np.ndarray, a: np.ndarray, step: float) -> Ahead | None:
        """The singular position that the next step comes near, or from whose neighbourhood it starts."""

        def along(times: np.ndarray) -> np.ndarray:
            return self.conditioning(self._path(q, v, a, times))

        times = step * LOOK
        values = along(times)
        if values[0] < NEAR:
            times = step * LADDER
            away = np.flatnonzero(along(times) >= NEAR)
            if not len(away):
                return None
            times = np.linspace(0.0, times[away[0]], CLOSELY)
            values = along(times)
            least = int(np.argmin(values))
            away = least + np.flatnonzero(values[least:] >= NEAR)
            return Ahead(float(times[least]), float(times[away[0]]))
        least = int(np.argmin(values))
        if least == 0:
            return None
        times = np.linspace(times[least - 1], times[min(least + 1, len(LOOK) - 1)], CLOSELY)
        values = along(times)
        if values.min() >= NEAR:
            return None
        time = float(times[np.argmin(values)])
        times = time * np.linspace(2.0, 6.0, CLOSELY)
        away = np.flatnonzero(along(times) >= NEAR)
        return Ahead(time, float(times[away[0]]) if len(away) else math.inf)

    # -- arcs ---------------------------------------------------------------------------------------------------

    def _shorter(self, motion: Motion, t: float, x: np.ndarray, rates: np.ndarray, ahead: Ahead) -> Arc | None:
        """An arc towards or away from a singular position, as long as it can be."""
        length = PART * (ahead.time or ahead.behind)
        shortest = SHORTEST * length
        while length > shortest:
            arc = self._smooth(motion, t, x, rates, length, SHORT)
            if arc is not None:
                return arc
            length *= 0.5
        return None

    def _smooth(
        self, motion: Motion, t: float, x: np.ndarray, rates: np.ndarray, length: float, error: float, both_ways: bool = False
    ) -> Arc | None:
        """An arc of this length, if it is accurate to ``error``."""
        if not math.isfinite(length):
            return None
        q, v = motion.state(x)
        a = rates[-len(v) :]

        def guess(times: np.ndarray) -> np.ndarray:
            return np.concatenate([self._path(q, v, a, times), v + a * times[:, None]], axis=-1)

        best: Arc | None = None
        for nodes in map(outer_nodes, PAIRS):
            try:
                arc = collocated(motion, t, x, length, nodes, guess, len(v), both_ways)
            except MechanismError:  # a node that cannot be closed
                return None
            if arc.error <= FINE:
                return arc
            if best is not None and arc.error > STAGNANT * best.error:
                best = min(best, arc, key=lambda one: one.error)
                return best if best.error <= error else None
            best = arc
        return None

    def _closest(self, motion: Motion, arc: Arc) -> tuple[float, float]:
        """When an arc is closest to a singular position, and the conditioning there."""

        def along(times: np.ndarray) -> np.ndarray:
            return self.conditioning(np.array([motion.state(arc.between(float(time)))[0] for time in times]))

        times = np.linspace(arc.t_old, arc.t, CLOSELY)
        values = along(times)
        time, width, least = float(times[np.argmin(values)]), float(times[1] - times[0]), float(values.min())
        while least > THROUGH and width > THROUGH * (arc.t - arc.t_old):
            left, middle, right = along(time + width * np.array([-1.0, 0.0, 1.0])) ** 2  # a parabola
            bend, least = left - 2.0 * middle + right, min(least, math.sqrt(min(left, middle, right)))
            if bend <= 0.0:
                break
            time, width = time + width * float(np.clip(0.5 * (left - right) / bend, -1.0, 1.0)), 0.1 * width
        return time, least

    def _departure(self, motion: Motion, t: float, x: np.ndarray, rates: np.ndarray, ahead: Ahead) -> Arc | None:
        """The arc out of a singular position."""
        length = ahead.behind
        for _ in range(10):
            arc = self._smooth(motion, t, x, rates, length, ROUGH, both_ways=True)
            if arc is not None:
                return arc
            length *= 0.5
        return None


LADDER = 2.0 ** np.arange(-12.0, 12.5, 0.5)  # steps: the times at which to look for the end of a neighbourhood
CLOSELY = 33  # number of times at which an interval is looked at
