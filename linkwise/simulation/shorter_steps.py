"""Steps of closed mechanisms divided into shorter ones where singular positions are near: many motions at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..mechanics.algorithms.closed_projection import RELIABLE

MANY = 24.0  # shorter steps to a singular position
TOO_FEW = 0.8 * MANY  # with fewer a step is taken again, shorter
SHORTEST = 2.0**-14  # of a step: what comes so near goes through


class ShorterSteps:
    """Motions in the middle of a step, each of its own.

    x          q, v, and activations if there are any, (n, ...): where they are
    left       (n,): what is left of the step
    away       (n,): at least so many seconds from a singular position, as velocities and pivots tell
    failed     (n,): it is so near that shorter steps do not do
    closest    (n, nq): where they were nearest to one, after ``when`` (n,) seconds
    """

    def __init__(
        self,
        kernel: Callable[..., tuple[np.ndarray, ...]],
        x: Sequence[np.ndarray],
        dt: np.ndarray,
        units: np.ndarray,
    ):
        """``kernel`` gives the state after a step, whether it can be relied on, and how far a singular position is;
        ``units`` (nv,) are those of velocities."""
        self._kernel, self._dt, self._units = kernel, dt, units
        self._ends = np.cumsum([part.shape[-1] for part in x])[:-1]
        self.x, self.closest = [np.array(part) for part in x], np.array(x[0])
        self.left, self._next, self._past = dt.copy(), dt.copy(), np.zeros_like(dt)
        self.away, self._least, self.when = (np.full(len(dt), value) for value in (np.inf, np.inf, 0.0))
        self.failed = np.zeros(len(dt), dtype=bool)

    def begin(self, which: np.ndarray) -> None:
        """The next step of some."""
        self._past[which] += self._dt[which]
        self.left[which] = self._dt[which]
        self._choose(which)

    def advance(self, which: np.ndarray, forces: np.ndarray, more: Sequence[np.ndarray]) -> None:
        """One shorter step of some under joint forces and ``more`` inputs of the kernel, the last of these the
        activations, if there are any; those for which it turns out too long stay where they are."""
        q, v, *activation = (part[which] for part in self.x)
        h = self._next[which]
        state, reliability, ahead = self._kernel(q, v, forces, h, *more, *activation)
        away, far = np.sqrt(ahead) * np.abs(h), ahead >= TOO_FEW**2
        distance = away * np.linalg.norm(v / self._units, axis=-1)  # also where velocities change much, as in corners
        closer = which[nearer := far & (distance < self._least[which])]
        self._least[closer], self.closest[closer] = distance[nearer], q[nearer]
        self.when[closer] = (self._past + self._dt - self.left)[closer]
        moved = which[far]
        for part, there in zip(self.x, np.split(state[far], self._ends, axis=-1), strict=True):
            part[moved] = there
        self.left[moved] = np.where(h[far] == self.left[moved], 0.0, self.left[moved] - h[far])
        self.away[which] = np.where(far, away - np.abs(h), away)
        self.failed[which] = (far & ~(reliability > RELIABLE)) | ~(
            self.away[which] > MANY * SHORTEST * np.abs(self._dt[which])
        )
        self._choose(which)

    def _choose(self, which: np.ndarray) -> None:
        """How long the next shorter steps are: a whole part of what is left."""
        left, known = self.left[which], self.away[which] > 0.0
        parts = np.ceil(MANY * np.abs(left) / np.where(known, self.away[which], np.inf))
        self._next[which] = left / np.maximum(parts, 1.0)
