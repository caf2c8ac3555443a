"""Tolerances on positions, velocities, accelerations and ranks of loops, with their reasons.

Thresholds of singular positions and of searches are in their own modules.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..mechanics.algorithms.closed_derivatives import OPEN, OPENING
from ..mechanics.algorithms.closed_dynamics import AT_REST, CLOSED, KEPT_CLOSED


@dataclass(frozen=True)
class LoopTolerances:
    """Positions are in units of the sizes of loops and sines of angles (``sizes.py``): ``position_error`` itself for
    lever arms of a metre.

    closed               a loop with a smaller error is closed: four orders above the round-off of positions of a metre,
                         so that large mechanisms and long loops reach it too
    aim                  of ``closed``: round-off, the target of iterations, mostly reached with one more step
    open_in_derivatives  a loop with a larger error cannot be linearized: errors g make redundant constraints seem
                         independent by about g, which must stay below the threshold ``rank``
    open_by_mistake      a loop with a larger error, a thousandth of its size or a milliradian, is open by mistake; a
                         smaller error may come from a file with few digits or a long integration, and results are still
                         useful
    velocity_in_derivatives   relative to v: velocities that open loops faster do not belong to the mechanism that
                         is linearized; round-off of velocities from ``project`` is ten orders below
    velocity_by_mistake  relative to v: velocities that open loops faster, and initial ones that projection changes by
                         more, are a mistake; smaller violations come from few digits
    at_rest              slowest velocity, in sizes of loops and radians, relative to the speed of a fall through the
                         mechanism's size: slower ones are rounding; not used without gravity
    acceleration         relative: accelerations that open loops faster, and forces with a larger deficit, are
                         inconsistent; the square root of round-off, as conditions of loops near singular positions
                         take half the digits
    rank                 singular values of G below this fraction of the largest count as zero, their constraints as
                         redundant: above the noise of loops closed to ``closed``, below the values of regular positions
    rough                rounding of the coarsest data, of four digits: errors and relative singular values above it are
                         not rounding
    gap                  least ratio between singular values of independent constraints and of rounding
    more_rounding        loops may stay open by this times the largest rounding found when redundancy was decided
    """

    closed: float = 1e-11
    aim: float = 1e-5
    open_in_derivatives: float = OPEN
    open_by_mistake: float = CLOSED
    velocity_in_derivatives: float = OPENING
    velocity_by_mistake: float = KEPT_CLOSED
    at_rest: float = AT_REST
    acceleration: float = 1e-8
    rank: float = 1e-8
    rough: float = 1e-3
    gap: float = 20.0
    more_rounding: float = 10.0


LOOPS = LoopTolerances()
