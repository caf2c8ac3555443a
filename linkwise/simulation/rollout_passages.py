"""Singular positions in rollouts: trajectories that steps do not resolve there take the arcs of ``simulate``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from ..dynamics.resolved import Resolved
from ..mechanics.elements.law import Acting
from ..mechanism import Mechanism, MechanismWarning, warn_caller
from ..motion.integrators import Crossings
from ..motion.singular import BESIDE, SingularPositions
from ..motion.system import FullState, Manifold
from .forces import Forces
from .steps import feedback_forces

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
