"""Collocation on the constraint manifold: a polynomial that satisfies the equations of motion at its nodes.

Between nodes the polynomial is as good as at them, wherever the motion is smooth; the equations are asked for at the
nodes only, each of them put on the manifold first.  So the equations may be singular anywhere else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.polynomial import legendre

SETTLING = (
    0.5  # nodes are found by iteration, of q and v in turn: a change of more than this part of the one before the
)
# last is noise
GAP = 0.4  # of half the time of an arc: nearer to its middle, where a singular position is, are no nodes
ROUNDING = 1e-14  # relative: changes that are not worth another iteration


class Motion(Protocol):
    """What collocation needs to know of the equations of motion; x = [q, v, ...]."""

    def rates_along(self, times: np.ndarray, x: np.ndarray) -> np.ndarray:
        """(k, n): dx/dt of k states, each at its own time."""
        ...

    def closed(self, x: np.ndarray) -> np.ndarray:
        """(k, n): k states put on the manifold, each moved the least."""
        ...


@dataclass(frozen=True, eq=False)
class Arc:
    """A piece of a motion as a polynomial.

    t_old, t   when it starts and ends
    half       of the time over which its coefficients are, which ends with it
    path       (degree + 1, n): Legendre coefficients
    error      its last coefficients, or the gap between its nodes and the manifold: relative to how far q moves and to
               the largest v, whichever is worst
    """

    t_old: float
    t: float
    half: float
    path: np.ndarray
    error: float

    def between(self, time: float) -> np.ndarray:
        """x at a time within."""
        return legendre.legval((time - self.t) / self.half + 1.0, self.path)


def gauss_pairs(pairs: int) -> np.ndarray:
    """Gauss's nodes, from -1 to 1, none of them in the middle."""
    return legendre.leggauss(2 * pairs)[0]


def outer_pairs(pairs: int) -> np.ndarray:
    """Nodes from -1 to 1, none within ``GAP`` of the middle: their squares are Gauss's nodes from there to 1."""
    squares = 0.5 * (1.0 + GAP**2) + 0.5 * (1.0 - GAP**2) * legendre.leggauss(pairs)[0]
    return np.concatenate([-np.sqrt(squares[::-1]), np.sqrt(squares)])


def collocated(
    motion: Motion,
    t: float,
    x: np.ndarray,
    length: float,
    nodes: np.ndarray,
    guess: Callable[[np.ndarray], np.ndarray],
    velocity_size: int,
    both_ways: bool = False,
    units: np.ndarray | float = 1.0,
) -> Arc:
    """The motion from (t, x) for ``length`` seconds; ``guess(times)`` is roughly x at these times after t.

    nodes       from -1 to 1, where the equations of motion are satisfied
    both_ways   the polynomial is that of the motion for as long before t as after
    units       of the numbers of x, by which errors are compared
    """
    half, known = (length, 0.0) if both_ways else (0.5 * length, -1.0)
    times, stages = half * (nodes - known), len(nodes)
    inside = legendre.legvander(nodes, stages)
    to_coefficients = np.linalg.inv(inside[:, :stages])
    states, changes = guess(times), [math.inf, math.inf]
    path = np.zeros((stages + 1, len(x)))
    while ROUNDING < changes[-1] and (len(changes) < 4 or changes[-1] < SETTLING * changes[-3]):
        on_manifold = motion.closed(states)
        slopes = motion.rates_along(t + np.maximum(times, 0.0), on_manifold)
        path = legendre.legint(to_coefficients @ slopes, lbnd=known, scl=half)
        path[0] += x
        states, before = inside @ path, states
        changes.append(_largest((states - before) / units, path / units, velocity_size))
    errors = (states - motion.closed(states), path[-2:])
    error = max(changes[-1], *(_largest(one / units, path / units, velocity_size) for one in errors))
    return Arc(t, t + length, half, path, error)


def _largest(difference: np.ndarray, path: np.ndarray, velocity_size: int) -> float:
    """The largest difference of positions, relative to the way of all, or of velocities, relative to the largest."""
    n = path.shape[1] - velocity_size
    way, speed = np.abs(path[1:, :n]).sum(axis=0).max(initial=0.0), np.abs(path[:, n:]).sum(axis=0).max(initial=0.0)
    parts: Sequence[tuple[np.ndarray, float]] = ((difference[:, :n], way), (difference[:, n:], speed))
    return max(float(np.abs(part).max(initial=0.0)) / scale if scale else 0.0 for part, scale in parts)
