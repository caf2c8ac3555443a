"""Singular positions: all that a simulation decides about them, in one policy.

Close to a singular position accelerations are quotients of small numbers: a state off the manifold by d has errors of
d / sigma^2 in its velocities, sigma the smallest singular value of G.  Methods that control their error answer with
ever shorter steps, until rounding stops them or turns the motion into another branch of the manifold.  The motion
itself is smooth there.  So it is followed to where sigma is small but harmless, by steps that are parts of the time
left, and then taken across by one step of Gauss's collocation, whose stages keep away from the middle, where the
singular position is.  A motion that starts in a singular position is left alone until it has left: projection there
would choose a branch for it.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import numpy as np
from numpy.polynomial import legendre

from ..dynamics import closed
from ..mechanism import Mechanism, MechanismError

NEAR = 0.02  # of the usual conditioning: a state with less is near a singular position
NEARLY_CLOSED = 1e-6  # metres or radians, times the usual conditioning, which goes with the size of a mechanism
PART = 0.5  # of the time to a singular position: the longest step towards it
STAGES = 6  # of collocation, an even number: none is in the middle
SETTLING = 0.5  # stages are found by iteration; a change of more than this part of the one before is noise
FINE = 1e-8  # relative to x: the largest noise, and the largest of the last two coefficients of the passage


class Motion(Protocol):
    """What the policy needs to know of the equations of motion: a ``System`` of (q, v) under projection."""

    def state(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]: ...

    def rates(self, t: float, x: np.ndarray) -> np.ndarray: ...

    def corrected(self, x: np.ndarray) -> np.ndarray: ...


class Ahead(NamedTuple):
    """The next singular position of a motion: when it is met, in seconds (infinity if it is not), and how well
    conditioned the constraints are now that are dependent there."""

    time: float
    conditioning: float


class Passage(NamedTuple):
    """A step across a singular position: when it ends, x there, and x at a time up to there."""

    t: float
    x: np.ndarray
    between: Callable[[float], np.ndarray]


@dataclass(frozen=True)
class SingularPositions:
    """The policy of one simulation.  Nothing else in ``simulation`` decides what is done near singular positions:

    ``is_near``       is this state near one?
    ``ahead``         when is the next one met?
    ``longest_step``  how is it approached?
    ``passage``       how is it passed?
    ``Departure``     which states are not projected?
    ``aim``           how closely does projection close the loops?

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

    def of(self, states: np.ndarray) -> SingularPositions:
        """The policy for some states of a batch."""
        return self if self.rank is None else replace(self, rank=self.rank[states])

    def is_near(self, q: np.ndarray) -> np.ndarray:
        """(...): whether states are near a singular position."""
        if self.rank is None:
            return np.zeros(q.shape[:-1], dtype=bool)
        return closed.conditioning(self.mech, q, self.rank) < NEAR * self.usual_conditioning

    def ahead(self, q: np.ndarray, v: np.ndarray) -> Ahead:
        """When the motion of one state meets the next singular position."""
        if self.rank is None:
            return Ahead(math.inf, 1.0)
        return Ahead(*closed.time_to_singular(self.mech, q, v, int(self.rank)))

    def longest_step(self, ahead: Ahead) -> float:
        """The longest step that should be taken towards it."""
        return PART * ahead.time

    def passage(
        self, motion: Motion, t: float, x: np.ndarray, rates: np.ndarray, ahead: Ahead, end: float, max_step: float
    ) -> Passage | None:
        """The step from (t, x) across it, if it is near and such a step is accurate: to behind it, but not after
        ``end``, and no longer than ``max_step``."""
        near = ahead.conditioning <= NEAR * self.usual_conditioning
        if not near or t + PART * ahead.time >= end or 2.0 * ahead.time > max_step:
            return None
        with contextlib.suppress(MechanismError):  # a stage far off the manifold
            return _collocated(motion, t, x, rates, ahead.time, end)
        return None

    def aim(self, tolerance: float) -> float:
        """To which error projection closes loops if it can; to ``tolerance`` it must.

        An error g at the distance x from a singular position is a deviation g / x from the branch, and loops of one
        degree of freedom, which go right through these positions, would leave on another: so nothing is left that
        rounding does not.  Loops of more degrees of freedom pass beside them, around a corner that an error up to the
        tolerance keeps wider than rounding (spencer2004 3.2).
        """
        if self.rank is None or np.all(closed.velocities_within_loops(self.mech) - self.rank <= 1):
            return closed.LOOPS.aim * tolerance
        return tolerance


class Departure:
    """Which states of a motion are still near the singular position they started from; it changes as the motion goes
    on, and only by ``note``."""

    def __init__(self, positions: SingularPositions, batch: tuple[int, ...]):
        self._positions = positions
        self._departing = np.full(batch, positions.rank is not None)

    def note(self, q: np.ndarray) -> None:
        """The motion is at q (..., nq) now: what is away from singular positions has departed for good."""
        if self._departing.any():
            self._departing = self._departing & self._positions.is_near(q)

    def left_alone(self, q: np.ndarray) -> np.ndarray:
        """(...): whether a state is still so near the singular position where it started, and its loops so nearly
        closed, that it is better not projected: an error g would move it by g / sigma, sigma the smallest singular
        value of G, and not the way it came."""
        if not self._departing.any():
            return np.zeros(q.shape[:-1], dtype=bool)
        near = self._departing & self._positions.is_near(q)
        gaps = np.abs(closed.position_error(self._positions.mech, q)).max(axis=-1, initial=0.0)
        return near & (gaps < NEARLY_CLOSED * self._positions.usual_conditioning)


def _collocated(motion: Motion, t: float, x: np.ndarray, rates: np.ndarray, half: float, end: float) -> Passage | None:
    """A step of 2 ``half``; None if its stages do not settle, or it is too long for a polynomial of this degree.

    Every stage is put back on the manifold before its rates are asked for.
    """
    nodes, _ = legendre.leggauss(STAGES)
    path: np.ndarray = np.zeros((STAGES + 1, len(x)))  # Legendre coefficients of the way from x
    path[:2] = half * rates
    change, settling = math.inf, True
    while settling:
        stages = [motion.corrected(x + legendre.legval(node, path)) for node in nodes]
        slopes = [motion.rates(t + half * (node + 1.0), stage) for node, stage in zip(nodes, stages, strict=True)]
        path, old = legendre.legint(legendre.legfit(nodes, np.array(slopes), STAGES - 1), lbnd=-1.0, scl=half), path
        change, before = np.abs(path - old).max(), change
        settling = 0.0 < change < SETTLING * before
    if not max(change, np.abs(path[-2:]).max()) <= FINE * (np.abs(x).max() + half * np.abs(rates).max()):
        return None

    def between(time: float) -> np.ndarray:
        return x + legendre.legval((time - t) / half - 1.0, path)

    t_new = min(t + 2.0 * half, end)
    return Passage(t_new, motion.corrected(between(t_new)), between)
