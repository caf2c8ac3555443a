"""How closed a loop is: the tolerances on positions, velocities, accelerations and ranks of loops, with their reasons.

How near a motion is to a singular position, and how a search ends, are matters of their files.
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
    aim                  of ``closed``: where iterations go on to if they can, mostly with one step more: round-off
    open_in_derivatives  a loop with a larger error cannot be linearized: errors g make redundant constraints seem
                         independent by about g, and this is the threshold ``rank`` below which they are not
    open_by_mistake      a loop with a larger error, a thousandth of its size or a milliradian, was not meant to be
                         closed; below, it may come from a file with few digits or a long integration, and results still
                         mean something
    velocity_in_derivatives   relative to v: velocities that open loops faster do not belong to the mechanism that
                         is linearized; round-off of velocities from ``project`` is ten orders below
    velocity_by_mistake  relative to v: velocities that open loops faster, and initial ones that projection changes by
                         more, were meant otherwise; below, they were given with few digits
    at_rest              of the speed of a fall through the mechanism's size, as sizes of loops and radians: slower
                         velocities are rounding, and open nothing; without gravity there is no such speed
    acceleration         relative: accelerations that open loops faster, and forces that miss more of those asked for,
                         are inconsistent; the square root of round-off, as conditions of loops near singular positions
                         take half the digits
    rank                 singular values of G below this fraction of the largest count as zero, and their constraints as
                         implied by the others: above what closure to ``closed`` leaves of them, below what the motion
                         needs far from singular positions
    rough                what the coarsest data leave, of four digits: errors and relative singular values below it may
                         be rounding, above it they are meant
    gap                  between singular values of constraints that count and of those that are rounding, at least
    more_rounding        loops may stay open by this times the largest rounding seen when redundancy was decided
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
