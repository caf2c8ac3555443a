"""Singular positions in rollouts: what passes beside them is resolved by shorter steps, what goes through takes the
arcs of ``simulate``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from ..dynamics.resolved import Resolved
from ..mechanics.algorithms.closed_projection import RELIABLE
from ..mechanics.elements.law import Acting
from ..mechanism import Mechanism, MechanismWarning, warn_caller
from .forces import Forces
from .integrators import Crossings
from .singular import BESIDE, SingularPositions
from .step import feedback_forces
from .system import FullState, Manifold

MANY = 24.0  # shorter steps to a singular position
TOO_FEW = 0.8 * MANY  # with fewer a step is taken again, shorter
SHORTEST = 2.0**-14  # of a step: what comes so near goes through
AT_ENDS = 1e-9  # of a step: forces of a step hold from a little before its start


@dataclass
class Told:
    """What the policy said about trajectories, each by its number, in the order of finding."""

    found: list[tuple[int, float, str]] = field(default_factory=list)

    def warn(self, mech: Mechanism, states: np.ndarray) -> None:
        """Warn of what was said of the earliest; ``states`` (n, batch axes) are the places of all trajectories."""
        if not self.found:
            return
        trajectory, time, what = min(self.found, key=lambda one: one[1])
        place = tuple(map(int, states[trajectory]))
        count = len({one for one, _, _ in self.found})
        whose = f" in state {place}" if place else ""
        others = f" ({count} states are told of something like this)" if count > 1 else ""
        warn_caller(f"rollout: at t = {time:.6g} s{whose}, mechanism {mech.name!r} {what}{others}", MechanismWarning)


class Passages:
    """Some trajectories of a rollout, and the arcs that take them past singular positions, each for itself.

    given   inputs of the rollout for these trajectories, (n, ...), those of every step (n, steps, ...)
    """

    def __init__(self, mech: Mechanism, acting: Acting, given: Mapping[str, np.ndarray]):
        self._mech, self._given = mech, given
        self._elements = Resolved(mech, acting) if acting.laws else None
        self._policy = SingularPositions.around(mech, given["q"].astype(float))
        self._crossings: dict[int, Crossings] = {}
        self.told = Told()

    def tell_of_corners(self, which: np.ndarray, closest: np.ndarray, times: np.ndarray) -> np.ndarray:
        """(n,): whether trajectories that came as close to a singular position as ``closest`` (n, nq), at these times,
        passed beside it, as corners that steps can resolve; where these are sharp, that is told."""
        conditioning = self._policy.of(which).conditioning(closest)
        for i, time, least in zip(which.tolist(), times.tolist(), conditioning.tolist(), strict=True):
            if least >= BESIDE:
                self._policy_of(i).tell_of_corner(time, least)
        return conditioning >= BESIDE

    def is_inside(self, trajectory: int) -> bool:
        """Whether an arc that was begun goes on."""
        return trajectory in self._crossings and self._crossings[trajectory].is_inside

    def reached(self, trajectory: int, k: int, state: Sequence[np.ndarray]) -> list[np.ndarray] | None:
        """The state [q, v, activations if there are any] after step k, by arcs; None where there are none to take, and
        a step will do."""
        if trajectory not in self._crossings:
            self._crossings[trajectory] = Crossings(self._system(trajectory))
        crossings, dt, x = self._crossings[trajectory], float(self._given["dt"][trajectory]), np.concatenate(state)
        if not crossings.plan(k * dt, x, (k + 1) * dt):
            return None
        found = crossings.planned(x.shape, lambda time: x)((k + 1) * dt)
        return np.split(found, np.cumsum([len(part) for part in state])[:-1])

    def _system(self, trajectory: int) -> FullState:
        policy = self._policy_of(trajectory)
        held = {name: partial(self._held, name, trajectory) for name in ("wrenches", "ctrl") if name in self._given}
        forces = Forces(self._mech, partial(self._forces, trajectory), self._elements, (), **held)
        return FullState(self._mech, forces, Manifold(policy, projects=True))

    def _policy_of(self, trajectory: int) -> SingularPositions:
        return self._policy.of((trajectory,)).telling(lambda *said: self.told.found.append((trajectory, *said)))

    def _step(self, trajectory: int, t: float) -> int:
        """The number of the step at a time."""
        count = self._given["tau"].shape[1]
        return int(np.clip(np.floor(t / self._given["dt"][trajectory] + AT_ENDS), 0, count - 1))

    def _held(self, name: str, trajectory: int, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """What is constant during each step."""
        return self._given[name][trajectory, self._step(trajectory, t)].astype(float)

    def _forces(self, trajectory: int, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Joint forces; feedback, which steps hold, follows the state along an arc."""
        given, tau = self._given, self._held("tau", trajectory, t, q, v)
        if "target" not in given:
            return tau
        target = self._held("target", trajectory, t, q, v)
        return tau + feedback_forces(self._mech, given, trajectory, target, q, v)


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
