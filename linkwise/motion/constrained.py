"""Rollouts within constraints: how they start, and what is done about steps that compiled code cannot be relied on for.

Compiled steps eliminate loops by pivots that may be too small for some states, close loops by a fixed number of
iterations, and may be too long to resolve the motion near singular positions.  Every trajectory therefore counts its
steps up to the first that cannot be relied on, and up to the first that does not resolve the motion.  Trajectories with
such a step are followed again past it: what passes beside a singular position is resolved by shorter steps, compiled
too, of all trajectories together; what goes through takes the arcs of ``simulate``, each trajectory for itself;
elsewhere by the compiled step or, where that cannot be relied on, by singular value decompositions.  Then compiled
steps take over again, until the next.

Under a schedule, and where numbers of the mechanism differ from state to state, such trajectories stay as they are, and
their status says from which step on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from .. import constraints
from ..compiler.ir.program import Array
from ..compiler.pipeline import compile
from ..compiler.runtime.device_arrays import DeviceCall
from ..compiler.store import float64_function, stored
from ..constraints.accelerations import accelerations
from ..constraints.elimination_orders import fronts
from ..constraints.equations import loop_of
from ..constraints.infinitesimal import has_infinitesimal_motions, refuse_infinitesimal_motions
from ..constraints.masks import mechanism_holding, row_mask
from ..constraints.sizes import sizes, units
from ..constraints.tolerances import LOOPS
from ..dynamics import trees as tree
from ..dynamics.resolved import Resolved
from ..mechanics.algorithms.closed_projection import RELIABLE
from ..mechanics.algorithms.constrained_steps import holds_where_it_engages
from ..mechanics.algorithms.integration import Splitting, Tableau
from ..mechanics.elements.of_mechanism import for_explicit_steps
from ..mechanism import Mechanism, MechanismError
from .checks import warn_of_inconsistent_velocities
from .passages import Passages, ShorterSteps
from .records import finite_states, warn_first
from .step import (
    ACTIVATION,
    ACTIVE,
    NONE_YET,
    PER_STEP,
    RESOLVED,
    WATCHED,
    Step,
    drifted,
    feedback_forces,
    kick_bias,
)

Records = Sequence[np.ndarray]
#: All states after every step, q, v and activations if there are any, (n, steps, ...), and what ``step._counting`` ends
#: with, of trajectories with inputs by name (n, ...), those of every step (n, steps, ...).
Resumed = Callable[[Mapping[str, np.ndarray]], tuple[Records, np.ndarray]]
SAME = 1e-7  # of velocities: a step that leads where two of half its length do, but for this, resolves the motion
SHORTER = "rk4"  # the method of shorter steps
LARGEST = 2**23  # numbers that are kept of trajectories while they are followed again


# -- how they start -----------------------------------------------------------------------------------


def onto_loops(
    mech: Mechanism, q: np.ndarray, v: np.ndarray, parameters: Mapping[str, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """The initial states with their loops closed to round-off, and velocities that keep them so.  Loops that are open
    by more than a thousandth of their size or a milliradian are refused."""
    poses = {name: np.asarray(x, float) for name, x in parameters.items() if name.rpartition(".")[2] == "pose"}
    start, given = np.asarray(q, float), np.asarray(v, float)
    if has_infinitesimal_motions(mech) and parameters:
        refuse_infinitesimal_motions(mech, "rollout with numbers that differ from state to state")
    error = _function(mech, "position_error", tuple(poses))(start, *poses.values())
    _refuse_open(mech, start, error)
    error = error * sizes(mech).rows
    found, reliability = _function(mech, "closed_projection", tuple(poses))(start, given, *poses.values())
    batch = found.shape[:-1]
    start, given = (np.broadcast_to(x, (*batch, x.shape[-1])) for x in (start, given))
    is_open = np.broadcast_to((np.abs(error).max(axis=-1, initial=0.0) > LOOPS.closed)[..., None], (*batch, 1))
    to = np.where(is_open, found[..., : mech.nq], start), np.array(found[..., mech.nq :])
    known = finite_states(batch, start, given)
    poor = (~(reliability > RELIABLE) | has_infinitesimal_motions(mech)) & known
    if poor.any() and not poses:
        to[0][poor], to[1][poor] = constraints.project(
            mech, start[poor], given[poor], rank=independent_constraints(mech)
        )
    warn_of_inconsistent_velocities(mech, (to[0][known], to[1][known]), given[known])
    return to[0].astype(q.dtype), to[1].astype(v.dtype)


def onto_loops_on_device(
    device: DeviceCall, mech: Mechanism, q: Any, v: Any, parameters: Mapping[str, Any]
) -> tuple[Any, Any]:
    """Initial states on a GPU with closed loops and consistent velocities.  They are computed there if loops
    are closed and velocities consistent up to tolerances, and the projection is reliable; else ``onto_loops`` computes
    them on the host, where it refuses or warns."""
    if not parameters and q.ndim == v.ndim == 2:  # one of each for all states is quickly done here
        error = _function_on_device(mech, "position_error")(q)
        found, reliability = _function_on_device(mech, "closed_projection")(q, v)
        rows, columns = device.copied([sizes(mech).rows, sizes(mech).columns])
        gaps, rates = np.abs(error * rows).max(axis=-1), found[..., mech.nq :]
        bound = LOOPS.velocity_by_mistake * np.abs(v / columns).max(axis=-1)
        plain = (
            (gaps <= LOOPS.open_by_mistake)
            & (reliability > RELIABLE)
            & (np.abs((rates - v) / columns).max(axis=-1) <= bound)
        )
        if bool(plain.all()):
            closed_q = np.where(gaps[..., None] > LOOPS.closed, found[..., : mech.nq], q)
            return closed_q.astype(q.dtype), rates.astype(v.dtype)
    here = {name: device.fetched(x) for name, x in parameters.items()}
    return onto_loops(mech, device.fetched(q), device.fetched(v), here)


def refuse_open_schedule(
    mech: Mechanism, q: np.ndarray, active: np.ndarray, parameters: Mapping[str, np.ndarray]
) -> None:
    """Refuse initial states in which constraints hold that are open, but for feet, which hold where they are, and
    constraints of any step that leave infinitesimal motions; ``active`` (..., records, every, number of loops)."""
    for mask in np.unique(np.reshape(active, (-1, active.shape[-1])), axis=0):
        if mask.any():
            refuse_infinitesimal_motions(mechanism_holding(mech, mask), "the rollout under a schedule")
    poses = {name: np.asarray(x, float) for name, x in parameters.items() if name.rpartition(".")[2] == "pose"}
    error = _function(mech, "position_error", tuple(poses))(np.asarray(q, float), *poses.values())
    closes = np.array([not holds_where_it_engages(mech, loop) for loop in mech.loops])
    _refuse_open(mech, np.asarray(q, float), error * row_mask(mech, active[..., 0, 0, :] * closes))


def _function(mech: Mechanism, algorithm: str, parameters: tuple[str, ...]) -> Callable[..., np.ndarray]:
    """In double precision, of mechanisms with these numbers as further inputs."""
    if not parameters:
        return float64_function(mech, algorithm)
    return stored(mech, (algorithm, parameters), lambda: compile(algorithm, mech, parameters=parameters))


def _function_on_device(mech: Mechanism, algorithm: str) -> Callable[..., Any]:
    return stored(mech, (algorithm, "cuda"), lambda: compile(algorithm, mech, target="cuda"))


def _refuse_open(mech: Mechanism, q: np.ndarray, error: np.ndarray) -> None:
    gaps = np.abs(error * sizes(mech).rows)
    if not (gaps > LOOPS.open_by_mistake).any():
        return
    *state, row = np.unravel_index(np.nanargmax(gaps), gaps.shape)
    index, gap = tuple(map(int, state)), float(np.nanmax(gaps) / sizes(mech).rows[row])
    whose, loop = f" in state {index}" if index else "", loop_of(mech, int(row))
    raise constraints.AssemblyError(
        f"rollout: loop {loop!r} of mechanism {mech.name!r} is open by {gap:.3g} (metres or radians){whose}: close it "
        "first, q0 = constraints.assemble(mech, q0)",
        loop,
        gap,
        np.broadcast_to(q, (*gaps.shape[:-1], mech.nq))[index],
    )


# -- compiled steps -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class WithinConstraints:
    """A rollout within constraints on its way through its arrays; what cannot be relied on is made again.

    run       the compiled rollout
    arrays    its inputs, those of every step (..., records, every, ...)
    given     the same with all batch axes, by name; those of every step (..., steps, ...)
    records   q, v and activations, (..., records, n): where trajectories are kept, the initial states not among them
    varied    whether numbers of the mechanism differ from state to state
    """

    mech: Mechanism
    step: Step
    run: Callable[..., None]
    arrays: Mapping[Array, Any]
    given: Mapping[str, Any]
    records: Sequence[Any]
    varied: bool

    def run_here(self) -> np.ndarray:
        """On the CPU; the status of each motion."""
        if ACTIVE not in self.step.inputs and has_infinitesimal_motions(self.mech):
            return self._by_decomposition()
        trusted = _counted(self.run, list(self.arrays.values()), self.records)
        return self._look_after(self.given, trusted, self.records, self._resuming(self.run, self.records))

    def _by_decomposition(self) -> np.ndarray:
        """Every step by NumPy, as compiled steps take all motions that constraints allow to first order."""
        batch = self.records[0].shape[:-2]
        known = finite_states(batch, self.given["q"], self.given["v"])
        followed = Followed(self.mech, self.step, None, {name: x[known] for name, x in self.given.items()})
        for record, own in zip(self.records, followed.records(self.records), strict=True):
            record[~known], record[known] = np.nan, own
        status = np.ones(batch, int)
        status[known] = followed.left
        return status

    def run_on_device(self, device: DeviceCall, on_cpu: Callable[[], Callable[..., None]]) -> np.ndarray:
        """On a GPU; what is made again is made on the CPU, by the rollout that ``on_cpu`` gives."""
        refuse_infinitesimal_motions(self.mech, "rollout on a GPU")
        first, dtype = self.records[0], self.records[0].dtype
        trusted, written = device.over_and_over((*first.shape[:-2], *NONE_YET.shape), first.shape[-2], dtype)
        self.run(*self.arrays.values(), out=(*self.records, written))
        counts = device.fetched(trusted)
        if not (counts[..., :2] < 0.0).any():
            return np.zeros(counts.shape[:-1], int)
        here = {name: x if type(x) is np.ndarray else device.some(x) for name, x in self.given.items()}
        here |= {name: device.fetched(self.given[name]) for name in ("q", "v", "dt")}
        places: list[Any] = [device.some(x) for x in self.records]

        def resumed(some: Mapping[str, np.ndarray]) -> tuple[Records, np.ndarray]:
            return self._resuming(on_cpu(), places)(some)

        return self._look_after(here, counts, places, resumed)

    def _resuming(self, run: Callable[..., None], records: Sequence[Any]) -> Resumed:
        """Compiled steps for some of the trajectories."""

        def resumed(some: Mapping[str, np.ndarray]) -> tuple[Records, np.ndarray]:
            names = [x.name for x in self.arrays]
            inputs = [some[name][:, :, None] if name in PER_STEP else some[name] for name in names]
            out = [np.empty((*some["tau"].shape[:2], x.shape[-1]), x.dtype) for x in records]
            return out, _counted(run, inputs, out)

        return resumed

    def _look_after(
        self, given: Mapping[str, Any], trusted: np.ndarray, records: Sequence[Any], resumed: Resumed
    ) -> np.ndarray:
        """Follow the trajectories again that cannot be relied on, and warn of what remains.  Returns the status.

        trusted   (..., 3): what steps that count ended with
        """
        ended, unresolved = (np.array(np.maximum(-1 - trusted[..., k].astype(int), -1)) for k in range(2))
        ended = np.where(finite_states(ended.shape, given["q"], given["v"]), ended, -1)
        lost, again = np.full(ended.shape, -1), (ended >= 0) | (unresolved >= 0)
        status = np.array(ended + 1)
        dt, name, scheduled = given["dt"], self.mech.name, ACTIVE in self.step.inputs
        if again.any() and not (self.varied or scheduled):
            followed = Followed(self.mech, self.step, resumed, {name: x[again] for name, x in given.items()})
            for record, own in zip(records, followed.records(records), strict=True):
                record[again] = own
            followed.passages.told.warn(self.mech, np.argwhere(again))
            unresolved[again], lost[again] = followed.unresolved, followed.lost
            status[again] = followed.left
        else:
            advice = "take other states or smaller steps, or edits of the mechanism instead of parameters"
            if scheduled:
                advice = "constraints that hold must be independent and, but for feet, closed; take smaller steps"
            what = f"compiled steps of mechanism {name!r} cannot be relied on near singular positions"
            warn_first(ended, dt, what, advice)
        warn_first(lost, dt, f"the loops of mechanism {name!r} cannot be kept closed", "take smaller steps")
        advice = "energies may change there; take smaller steps, or lw.simulate for these states"
        what = f"steps do not resolve the motion of mechanism {name!r} near singular positions"
        warn_first(unresolved, dt, what, advice)
        return status


def _counted(run: Callable[..., None], inputs: Sequence[np.ndarray], out: Records) -> np.ndarray:
    """Run a rollout on the CPU; what steps that count end with."""
    trusted = np.zeros((*out[0].shape[:-2], *NONE_YET.shape), out[0].dtype)
    with np.errstate(all="ignore"):
        run(*inputs, out=(*out, over_and_over(trusted, out[0].shape[-2])))
    return trusted


def over_and_over(last: np.ndarray, records: int, core: int = 1) -> np.ndarray:
    """(..., records, *core): records that are all written to the same place (..., *core), where the last stays."""
    cut = last.ndim - core
    shape = (*last.shape[:cut], records, *last.shape[cut:])
    return as_strided(last, shape, (*last.strides[:cut], 0, *last.strides[cut:]))


# -- what cannot be relied on -------------------------------------------------------------------------


@dataclass
class Followed:
    """Some trajectories followed again: by compiled steps as far as these can be relied on, then past the singular
    position one step after the other, by arcs near it, else by the compiled step or, where that cannot be relied on, by
    singular value decompositions; then by compiled steps again, all together, until the next.

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
    passages: Passages = field(init=False)

    def __post_init__(self) -> None:
        longest = float(np.abs(self.given["dt"]).max(initial=0.0))
        self._explicit = for_explicit_steps(self.step.acting, longest)  # near singular positions nothing is implicit
        self.passages = Passages(self.mech, self._explicit, self.given)
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
        through[rest] = ~self.passages.tell_of_corners(which[rest], motions.closest[rest], times[rest])
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
        inputs = [*others, *activation]
        if self.resumed is None:
            states = self._by_decomposition(which, k, q, v, dt, forces, dict(zip(self._more, inputs, strict=True)))
            nothing = np.zeros(len(which), dtype=bool)
            return [*states], nothing, nothing
        state, reliability, ahead = self._kernel(self.step.method)(q, v, forces, dt, *inputs)
        there = np.split(state, np.cumsum([x.shape[-1] for x in now])[:-1], axis=-1)
        known = finite_states(dt.shape, q, v, forces, *inputs)
        past = self._past_singular_positions(which, k, now, known & (ahead < WATCHED**2), there)
        poor = ~(reliability > RELIABLE) & known & ~past
        rough = (self.unresolved[which] < 0) & (ahead < RESOLVED**2) & ~past
        if rough.any():
            halved = self._by_halves([x[rough] for x in now], forces[rough], dt[rough], [x[rough] for x in others])
            rough[rough] = poor[rough] | ~self._is_same(halved, [x[rough] for x in there], v[rough], dt[rough])
        self.unresolved[which[rough]] = k[rough]
        if poor.any():
            named = {name: x[poor] for name, x in zip(self._more, inputs, strict=True)}
            again = self._by_decomposition(which[poor], k[poor], q[poor], v[poor], dt[poor], forces[poor], named)
            for one, own in zip(there, again, strict=True):
                one[poor] = own
        return there, known & ~past & ~poor & (ahead >= WATCHED**2), ~past & ~poor

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

    def _past_singular_positions(
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
            if near[j] or self.passages.is_inside(i):
                reached = self.passages.reached(i, int(k[j]), [part[j] for part in now])
                if reached is not None:
                    past[j] = True
                    for part, own in zip(there, reached, strict=True):
                        part[j] = own
        return past

    def _forces(self, which: np.ndarray, k: np.ndarray, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Joint forces of a step that are constant during it."""
        tau = self.given["tau"][which, k].astype(float)
        if "target" not in self.given:
            return tau
        target = self.given["target"][which, k].astype(float)
        return tau + feedback_forces(self.mech, self.given, which, target, q, v)

    def _by_decomposition(
        self,
        which: np.ndarray,
        k: np.ndarray,
        q: np.ndarray,
        v: np.ndarray,
        dt: np.ndarray,
        tau: np.ndarray,
        others: Mapping[str, np.ndarray],
    ) -> tuple[np.ndarray, ...]:
        """The states after a step of some; NaN where loops cannot be closed."""
        try:
            return decomposed_step(self.mech, replace(self.step, acting=self._explicit), q, v, dt[:, None], tau, others)
        except MechanismError:
            if len(which) == 1:
                self.lost[which] = np.where(self.lost[which] < 0, k, self.lost[which])
                lost = [q, v, *([others[ACTIVATION]] if ACTIVATION in others else [])]
                return tuple(np.full_like(x, np.nan) for x in lost)
        alone = [
            self._by_decomposition(
                which[i], k[i], q[i], v[i], dt[i], tau[i], {name: x[i] for name, x in others.items()}
            )
            for i in (slice(i, i + 1) for i in range(len(which)))
        ]
        return tuple(np.concatenate(parts) for parts in zip(*alone, strict=True))


def decomposed_step(
    mech: Mechanism,
    step: Step,
    q: np.ndarray,
    v: np.ndarray,
    h: np.ndarray,
    tau: np.ndarray,
    driven: Mapping[str, np.ndarray],
) -> tuple[np.ndarray, ...]:
    """One step of a method and the projection after it, by NumPy: (q, v), and the activations if there are any."""
    method, rank, elements = step.rule, independent_constraints(mech), Resolved(mech, step.acting)
    wrenches, ctrl, activation = (driven.get(name) for name in ("wrenches", "ctrl", ACTIVATION))
    nq, n, more = mech.nq, mech.nv, [] if activation is None else [activation]

    def changes(q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Of v and activations, one behind the other."""
        forces, rates = elements.forces_and_rates(q, v[:, :n], ctrl, v[:, n:] if more else None)
        a = accelerations(mech, q, v[:, :n], tau + forces, wrenches=wrenches, rank=rank)
        return np.concatenate([a, rates], axis=-1)

    def rates(_: float, x: np.ndarray) -> np.ndarray:
        q, v = x[:, :nq], x[:, nq:]
        return np.concatenate([tree.coordinate_rates(mech, q, v[:, :n]), changes(q, v)], axis=-1)

    if isinstance(method, Tableau):
        x = method.advance(np.concatenate([q, v, *more], axis=-1), h, rates)
        q, v = x[:, :nq], x[:, nq:]
    else:
        assert isinstance(method, Splitting)

        def kicks(_: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
            found = changes(q, v)
            found[:, :n] += kick_bias(mech, q, v[:, :n])
            return found

        def moved(q: np.ndarray, v: np.ndarray, h: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            q, rates = drifted(mech, q, v[:, :n], h[:, 0])
            return q, np.concatenate([rates, v[:, n:]], axis=-1)

        q, v = method.advance(q, np.concatenate([v, *more], axis=-1), h, kicks, moved)
    closed_q, closed_v = constraints.project(mech, q, v[:, :n], rank=rank)
    return (closed_q, closed_v, v[:, n:])[: 2 + len(more)]


def independent_constraints(mech: Mechanism) -> int:
    """How many constraints are independent away from singular positions."""
    return fronts(mech).pivots
