"""Through singular positions with methods that choose their steps.

Close to a singular position accelerations are quotients of small numbers: a state off the manifold by d has errors of
d / sigma^2 in its velocities, sigma the smallest singular value of G.  Methods that control their error answer with
ever shorter steps, until rounding stops them or turns the motion into another branch of the manifold.  The motion
itself is smooth there.  So it is followed to where sigma is small but harmless, by steps that are parts of the time
left, and then taken across by one step of Gauss's collocation, whose stages keep away from the middle, where the
singular position is.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable

import numpy as np
from numpy.polynomial import legendre

from ..dynamics import closed
from ..mechanism import MechanismError
from .loops import NEAR
from .systems import System

PART = 0.5  # of the time to a singular position: the longest step towards it
STAGES = 6  # of collocation, an even number: none is in the middle
SETTLING = 0.5  # stages are found by iteration; a change of more than this part of the one before is noise
FINE = 1e-8  # relative to x: the largest noise, and the largest of the last two coefficients of the way

Way = tuple[float, np.ndarray, Callable[[float], np.ndarray]]


def look_ahead(
    system: System, t: float, x: np.ndarray, rates: np.ndarray, end: float, max_step: float
) -> tuple[float, Way | None]:
    """The longest step that should be taken from x, and the way across a singular position that is near: the time
    behind it, but not after ``end``, x there, and x as a function of the time up to there."""
    if system.chart is not None or not system.manifold.projects:
        return max_step, None
    left, now = closed.time_to_singular(system.mech, *system.state(x), int(system.manifold.rank))
    way = None
    if now <= NEAR * system.manifold.usual_nearness and t + PART * left < end and 2.0 * left <= max_step:
        with contextlib.suppress(MechanismError):  # a stage far off the manifold
            way = across(system, t, x, rates, left, end)
    return min(PART * left, max_step), way


def across(system: System, t: float, x: np.ndarray, rates: np.ndarray, half: float, end: float) -> Way | None:
    """A step of 2 ``half``; None if its stages do not settle, or it is too long for a polynomial of this degree.

    Every stage is put back on the manifold before its rates are asked for.
    """
    nodes, _ = legendre.leggauss(STAGES)
    path: np.ndarray = np.zeros((STAGES + 1, len(x)))  # Legendre coefficients of the way from x
    path[:2] = half * rates
    change, settling = math.inf, True
    while settling:
        stages = [system.corrected(x + legendre.legval(node, path)) for node in nodes]
        slopes = [system.rates(t + half * (node + 1.0), stage) for node, stage in zip(nodes, stages, strict=True)]
        path, old = legendre.legint(legendre.legfit(nodes, np.array(slopes), STAGES - 1), lbnd=-1.0, scl=half), path
        change, before = np.abs(path - old).max(), change
        settling = 0.0 < change < SETTLING * before
    if not max(change, np.abs(path[-2:]).max()) <= FINE * (np.abs(x).max() + half * np.abs(rates).max()):
        return None

    def between(time: float) -> np.ndarray:
        return x + legendre.legval((time - t) / half - 1.0, path)

    t_new = min(t + 2.0 * half, end)
    return t_new, system.corrected(between(t_new)), between
