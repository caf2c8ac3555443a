"""Singular positions in rollouts: what is done about steps that compiled code cannot be relied on for.

Every trajectory counts its compiled steps up to the first that cannot be relied on, and up to the first that does not
resolve the motion.  Trajectories with such a step are followed again past it (``Followed``): what passes beside a
singular position is resolved by shorter steps, compiled too, of all trajectories together; what goes through takes the
arcs of ``simulate``, each trajectory for itself; elsewhere by the compiled step or, where that cannot be relied on, by
the step of ``simulate`` from accelerations.  Then compiled steps take over again, until the next.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from ..compiler.store import float64_function
from ..constraints.sizes import units
from ..dynamics.resolved import Resolved
from ..mechanics.algorithms.closed_projection import RELIABLE
from ..mechanics.elements.of_mechanism import for_explicit_steps
from ..mechanism import Mechanism, MechanismError, MechanismWarning, warn_caller
from .forces import Forces
from .integrators import Crossings
from .records import finite_states
from .singular import BESIDE, SingularPositions
from .step import ACTIVATION, PER_STEP, RESOLVED, WATCHED, Step, feedback_forces
from .system import FullState, Manifold

MANY = 24.0  # shorter steps to a singular position
TOO_FEW = 0.8 * MANY  # with fewer a step is taken again, shorter
SHORTEST = 2.0**-14  # of a step: what comes so near goes through
AT_ENDS = 1e-9  # of a step: forces of a step hold from a little before its start
SAME = 1e-7  # of velocities: a step that leads where two of half its length do, but for this, resolves the motion
SHORTER = "rk4"  # the method of shorter steps
LARGEST = 2**23  # numbers that are kept of trajectories while they are followed again

Records = Sequence[np.ndarray]
#: All states after every step, q, v and activations if there are any, (n, steps, ...), and what ``step._counting`` ends
#: with, of trajectories with inputs by name (n, ...), those of every step (n, steps, ...).
Resumed = Callable[[Mapping[str, np.ndarray]], tuple[Records, np.ndarray]]


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


@dataclass
class Followed:
    """Some trajectories followed again: by compiled steps as far as these can be relied on, then past the singular
    position one step after the other, by arcs near it, else by the compiled step or, where that cannot be relied on, by
    the rates of ``simulate``'s systems; then by compiled steps again, all together, until the next.

    resumed     runs compiled steps; None where none can be relied on
    given       inputs of the rollout for these trajectories, (n, ...), those of every step (n, steps, ...)
    unresolved  (n,): after how many steps the motion was not resolved first, or -1
    left        (n,): the number of the first step, from 1, that is not the compiled one, or 0
    lost        (n,): after how many steps loops could not be closed any more, or -1; the states are NaN then
    """

    mech: Mechanism
    step: Step
    resumed: Resumed | None
    given: Mapping[str, np.ndarray]
    unresolved: np.ndarray = field(init=False)
    lost: np.ndarray = field(init=False)
    left: np.ndarray = field(init=False)
    told: Told = field(init=False, default_factory=Told)

    def __post_init__(self) -> None:
        longest = float(np.abs(self.given["dt"]).max(initial=0.0))
        self._explicit = for_explicit_steps(self.step.acting, longest)  # near singular positions nothing is implicit
        self._elements = Resolved(self.mech, self._explicit) if self._explicit.laws else None
        self._policy = SingularPositions.around(self.mech, self.given["q"].astype(float))
        self._crossings: dict[int, Crossings] = {}
        self.unresolved, self.lost = (np.full(len(self.given["q"]), -1) for _ in range(2))
        self.left = np.zeros(len(self.given["q"]), int)
        self._steps = self.given["tau"].shape[1]
        self._state_names = [name for name in ("q", "v", ACTIVATION) if name in self.given]
        self._more = tuple(name for name in ("wrenches", "ctrl", ACTIVATION) if name in self.given)

    def _kernel(self, method: str) -> Callable[..., tuple[np.ndarray, ...]]:
        """One compiled step."""
        acting = self.step.acting if method == self.step.method else self._explicit
        return float64_function(self.mech, Step(method, acting, self._more))

    def records(self, like: Records) -> list[np.ndarray]:
        """q, v and activations if there are any, (n, records, ...), as ``like`` keeps them."""
        self._now = [self.given[name].astype(float) for name in self._state_names]
        self._made = np.zeros(len(self._now[0]), dtype=int)  # steps
        self._every = self._steps // like[0].shape[-2]
        self._kept = [np.empty((len(self._made), *x.shape[-2:]), x.dtype) for x in like]
        while len(which := np.flatnonzero(self._made < self._steps)):
            ends = self._by_compiled_steps(which)
            which, ends = which[ends >= 0], ends[ends >= 0]
            through = self._by_shorter_steps(which, ends)
            self._past(which[through], ends[through])
        return self._kept

    def _keep(self, i: int, states: Sequence[np.ndarray], compiled: bool = True) -> None:
        """Note the states (k, ...) of a trajectory after its next k steps, and whether these are the compiled ones."""
        before, count = int(self._made[i]), len(states[0])
        if not (compiled or self.left[i]):
            self.left[i] = before + 1
        first, last = before // self._every, (before + count) // self._every
        for kept, own in zip(self._kept, states, strict=True):
            kept[i, first:last] = own[(first + 1) * self._every - before - 1 :: self._every]
        for now, own in zip(self._now, states, strict=True):
            now[i] = own[-1:] if count else now[i : i + 1]
        self._made[i] = before + count

    def _by_compiled_steps(self, which: np.ndarray) -> np.ndarray:
        """Take these trajectories as far as compiled steps do, up to where a singular position comes near; (n,): which
        step it is that they cannot be relied on for, or -1 at the end."""
        if self.resumed is None:
            return self._made[which]
        ends = np.full(len(which), -1)
        longest = self._steps - int(self._made[which].min())
        size = longest * sum(self.given[name].shape[-1] for name in ("q", "v", "tau"))
        some = max(1, LARGEST // size)
        for part in (slice(k, k + some) for k in range(0, len(which), some)):
            own = which[part]
            states, trusted = self.resumed(self._inputs(own))
            relied, resolved, near = trusted.astype(int).T
            first = np.minimum(*(np.where(count < 0, -1 - count, self._steps) for count in (relied, resolved)))
            left = self._steps - self._made[own]
            good = np.where(first < left, np.minimum(near, first), left)
            ends[part] = np.where(first < left, self._made[own] + first, -1)
            for k, (i, count) in enumerate(zip(own.tolist(), good.tolist(), strict=True)):
                self._keep(i, [x[k, :count] for x in states])
        return ends

    def _inputs(self, which: np.ndarray) -> dict[str, np.ndarray]:
        """Those of some trajectories from where they are; as many steps for all, though some end before."""
        first = self._made[which]
        ahead = np.minimum(first[:, None] + np.arange(self._steps - first.min()), self._steps - 1)
        found = {name: x[which[:, None], ahead] if name in PER_STEP else x[which] for name, x in self.given.items()}
        for name, now in zip(self._state_names, self._now, strict=True):
            found[name] = now[which].astype(self.given[name].dtype)
        return found

    # -- beside singular positions ------------------------------------------------------------------------------

    def _by_shorter_steps(self, which: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """Take trajectories beyond the steps ``ends`` by shorter ones, until compiled steps will do again; (n,): where
        that does not do, as they go through a singular position.  Those are left where they were."""
        if self.resumed is None:
            return np.ones(len(which), dtype=bool)
        begun, before = self._made[which].copy(), [x[which] for x in self._now]
        dt = self.given["dt"][which].astype(float)
        motions = ShorterSteps(self._kernel(SHORTER), before, dt, units(self.mech).velocities)
        forces, others = self._driven(which, begun, before)
        on = np.arange(len(which))
        while len(on):
            motions.advance(on, forces[on], [x[on] for x in others])
            arrived = on[(motions.left[on] == 0.0) & ~motions.failed[on]]
            for j in arrived.tolist():
                self._keep(int(which[j]), [x[j : j + 1] for x in motions.x], compiled=False)
            k = self._made[which]
            goes_on = (k < self._steps) & ~((k > ends) & (motions.away >= WATCHED * np.abs(dt))) & ~motions.failed
            further = arrived[goes_on[arrived]]
            if len(further):
                motions.begin(further)
                driven = self._driven(which[further], k[further], [x[further] for x in motions.x])
                forces[further] = driven[0]
                for whole, own in zip(others, driven[1], strict=True):
                    whole[further] = own
            on = on[~motions.failed[on] & ((motions.left[on] != 0.0) | goes_on[on])]
        through, rest = motions.failed.copy(), np.flatnonzero(~motions.failed)
        times = begun * dt + motions.when
        through[rest] = ~self._pass_beside(which[rest], motions.closest[rest], times[rest])
        self._made[which[through]] = begun[through]
        for now, x in zip(self._now, before, strict=True):
            now[which[through]] = x[through]
        return through

    def _driven(
        self, which: np.ndarray, k: np.ndarray, now: Sequence[np.ndarray]
    ) -> tuple[np.ndarray, list[np.ndarray]]:
        """Joint forces and other inputs of the k-th step of some, which are constant during it."""
        others = [self.given[name][which, k].astype(float) for name in self._more if name != ACTIVATION]
        return self._forces(which, k, now[0], now[1]), others

    def _forces(self, which: int | np.ndarray, k: int | np.ndarray, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Joint forces in the k-th step: constant during it but for those of feedback, which are those at (q, v)."""
        tau = self.given["tau"][which, k].astype(float)
        if "target" not in self.given:
            return tau
        target = self.given["target"][which, k].astype(float)
        return tau + feedback_forces(self.mech, self.given, which, target, q, v)

    def _pass_beside(self, which: np.ndarray, closest: np.ndarray, times: np.ndarray) -> np.ndarray:
        """(n,): whether trajectories that came as close to a singular position as ``closest`` (n, nq), at these times,
        passed beside it, as corners that steps can resolve; where these are sharp, that is told."""
        conditioning = self._policy.of(which).conditioning(closest)
        for i, time, least in zip(which.tolist(), times.tolist(), conditioning.tolist(), strict=True):
            if least >= BESIDE:
                self._policy_of(i).tell_of_corner(time, least)
        return conditioning >= BESIDE

    def _policy_of(self, trajectory: int) -> SingularPositions:
        return self._policy.of((trajectory,)).telling(lambda *said: self.told.found.append((trajectory, *said)))

    # -- past singular positions --------------------------------------------------------------------------------

    def _past(self, which: np.ndarray, ends: np.ndarray) -> None:
        """Take trajectories one step after the other beyond those ``ends``, until compiled steps will do again."""
        while len(which):
            k, now = self._made[which], [x[which] for x in self._now]
            there, settled, compiled = self._step(which, k, now)
            for i, taken, *states in zip(which.tolist(), compiled.tolist(), *there, strict=True):
                self._keep(i, [x[None] for x in states], taken)
            unknown = ~np.logical_and.reduce([np.isfinite(x).all(axis=-1) for x in there])
            for i in which[unknown].tolist():  # and stays so
                self._keep(i, [np.full((self._steps - self._made[i], x.shape[-1]), np.nan) for x in self._now])
            on = (self._made[which] < self._steps) & ~(settled & (ends < k + 1))
            which, ends = which[on], ends[on]

    def _step(
        self, which: np.ndarray, k: np.ndarray, now: Sequence[np.ndarray]
    ) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
        """The states after the k-th step of each of these trajectories, whether compiled steps will do from there, and
        whether this was one."""
        q, v, *activation = now
        dt, (forces, others) = self.given["dt"][which].astype(float), self._driven(which, k, now)
        inputs, ends = [*others, *activation], np.cumsum([x.shape[-1] for x in now])[:-1]
        if self.resumed is None:
            nothing = np.zeros(len(which), dtype=bool)
            return self._from_rates(which, k, now, forces, others), nothing, nothing
        state, reliability, ahead = self._kernel(self.step.method)(q, v, forces, dt, *inputs)
        there = np.split(state, ends, axis=-1)
        known = finite_states(dt.shape, q, v, forces, *inputs)
        past = self._on_arcs(which, k, now, known & (ahead < WATCHED**2), there)
        poor = ~(reliability > RELIABLE) & known & ~past
        rough = (self.unresolved[which] < 0) & (ahead < RESOLVED**2) & ~past
        if rough.any():
            halved = self._by_halves([x[rough] for x in now], forces[rough], dt[rough], [x[rough] for x in others])
            rough[rough] = poor[rough] | ~self._is_same(halved, [x[rough] for x in there], v[rough], dt[rough])
        self.unresolved[which[rough]] = k[rough]
        if poor.any():
            again = self._from_rates(
                which[poor], k[poor], [x[poor] for x in now], forces[poor], [x[poor] for x in others]
            )
            for one, own in zip(there, again, strict=True):
                one[poor] = own
        return there, known & ~past & ~poor & (ahead >= WATCHED**2), ~past & ~poor

    def _from_rates(
        self,
        which: np.ndarray,
        k: np.ndarray,
        now: Sequence[np.ndarray],
        forces: np.ndarray,
        others: Sequence[np.ndarray],
    ) -> list[np.ndarray]:
        """The states after the k-th step of some as ``simulate`` makes it, from accelerations and projected; NaN where
        loops cannot be closed."""
        x, dt = np.concatenate(now, axis=-1), self.given["dt"][which].astype(float)
        names = [name for name in self._more if name != ACTIVATION]
        for length in np.unique(dt):
            some = dt == length
            named = {name: given[some] for name, given in zip(names, others, strict=True)}
            x[some] = self._reached(which[some], x[some], length, forces[some], named)
        unknown = np.isnan(x).any(axis=-1) & (self.lost[which] < 0)
        self.lost[which[unknown]] = k[unknown]
        return np.split(x, np.cumsum([part.shape[-1] for part in now])[:-1], axis=-1)

    def _reached(
        self, which: np.ndarray, x: np.ndarray, dt: float, forces: np.ndarray, driven: Mapping[str, np.ndarray]
    ) -> np.ndarray:
        """The states x (n, ...) of some after a step under forces that are constant during it; NaN where loops cannot
        be closed."""
        controls = {name: given[None] if name == "ctrl" else given for name, given in driven.items()}
        held = Forces(self.mech, forces[None], self._elements, (len(which),), **controls)
        system = FullState(self.mech, held, Manifold(self._policy.of(which), projects=True))
        try:
            return system.corrected(system.step(self.step.rule)(0.0, x, dt))
        except MechanismError:
            if len(which) == 1:
                return np.full_like(x, np.nan)
        alone = (slice(i, i + 1) for i in range(len(which)))
        parts = [(which[i], x[i], dt, forces[i], {name: given[i] for name, given in driven.items()}) for i in alone]
        return np.concatenate([self._reached(*part) for part in parts])

    def _by_halves(
        self, now: Sequence[np.ndarray], forces: np.ndarray, dt: np.ndarray, others: Sequence[np.ndarray]
    ) -> Sequence[np.ndarray]:
        """The states after two compiled steps of half the length."""
        kernel, ends = self._kernel(self.step.method), np.cumsum([x.shape[-1] for x in now])[:-1]
        for _ in range(2):
            q, v, *activation = now
            now = np.split(kernel(q, v, forces, 0.5 * dt, *others, *activation)[0], ends, axis=-1)
        return now

    def _is_same(self, states: Records, others: Records, v: np.ndarray, dt: np.ndarray) -> np.ndarray:
        """(n,): whether q and v after a step from velocities v are the same but for ``SAME``, lengths in units of the
        mechanism's size."""
        own = units(self.mech)
        allowed = SAME * np.abs(v / own.velocities).max(axis=-1)
        off_q, off_v = (
            np.abs((x - y) / unit).max(axis=-1)
            for x, y, unit in zip(states[:2], others[:2], (own.positions, own.velocities), strict=True)
        )
        return (off_q <= allowed * np.abs(dt)) & (off_v <= allowed)

    # -- on arcs --------------------------------------------------------------------------------------------------

    def _on_arcs(
        self,
        which: np.ndarray,
        k: np.ndarray,
        now: Sequence[np.ndarray],
        near: np.ndarray,
        there: Sequence[np.ndarray],
    ) -> np.ndarray:
        """(n,): which of these trajectories take an arc in the k-th step, of those that are near a singular position or
        on an arc already; where it leads is written to ``there``."""
        past = np.zeros(len(which), bool)
        for j in np.flatnonzero(self.given["dt"][which] > 0.0).tolist():  # arcs lead forward in time
            i = int(which[j])
            crossings, dt, x = self._crossings.get(i), float(self.given["dt"][i]), np.concatenate([x[j] for x in now])
            if not near[j] and (crossings is None or not crossings.is_inside):
                continue
            crossings = self._crossings.setdefault(i, crossings or Crossings(self._along_arcs(i)))
            if crossings.plan(k[j] * dt, x, (k[j] + 1) * dt):

                def still(_: float, x: np.ndarray = x) -> np.ndarray:
                    return x

                past[j], reached = True, crossings.planned(x.shape, still)((k[j] + 1) * dt)
                for part, own in zip(there, np.split(reached, np.cumsum([x.shape[-1] for x in now])[:-1]), strict=True):
                    part[j] = own
        return past

    def _along_arcs(self, trajectory: int) -> FullState:
        """One of the trajectories as a system of ``simulate``, under the forces of the step at a time."""
        held = {name: partial(self._given_at, name, trajectory) for name in ("wrenches", "ctrl") if name in self.given}

        def forces(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
            return self._forces(trajectory, self._step_at(trajectory, t), q, v)

        acting = Forces(self.mech, forces, self._elements, (), **held)
        return FullState(self.mech, acting, Manifold(self._policy_of(trajectory), projects=True))

    def _given_at(self, name: str, trajectory: int, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return self.given[name][trajectory, self._step_at(trajectory, t)].astype(float)

    def _step_at(self, trajectory: int, t: float) -> int:
        """The number of the step at a time."""
        return int(np.clip(np.floor(t / self.given["dt"][trajectory] + AT_ENDS), 0, self._steps - 1))


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
