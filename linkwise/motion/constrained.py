"""Rollouts within constraints: how they start, which of their steps can be relied on, and what is done about others.

Compiled steps eliminate loops by pivots that may be too small for some states, close loops by a fixed number of
iterations, and may be too long to resolve the motion near singular positions.  Every trajectory therefore counts its
steps up to the first that cannot be relied on, and up to the first that does not resolve the motion.  Trajectories with
such a step are followed again past it (``Followed``): what passes beside a singular position is resolved by shorter
steps, compiled too, of all trajectories together; what goes through takes the arcs of ``simulate``, each trajectory for
itself; elsewhere by the compiled step or, where that cannot be relied on, by the step of ``simulate`` from
accelerations.  Then compiled steps take over again, until the next.

Under a schedule or drives, and where numbers of the mechanism differ from state to state, such trajectories stay as
they are, and their status says from which step on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from .. import constraints
from ..compiler.ir.program import Array
from ..compiler.pipeline import compile
from ..compiler.runtime.device_arrays import DeviceCall
from ..compiler.store import float64_function, stored
from ..constraints.elimination_orders import fronts
from ..constraints.equations import loop_of
from ..constraints.infinitesimal import has_infinitesimal_motions, refuse_infinitesimal_motions
from ..constraints.masks import mechanism_holding, row_mask
from ..constraints.sizes import sizes, units
from ..constraints.tolerances import LOOPS
from ..dynamics.resolved import Resolved
from ..mechanics.algorithms.constrained_steps import holds_where_it_engages
from ..mechanics.elements.of_mechanism import for_explicit_steps
from ..mechanism import Mechanism, MechanismError, MechanismWarning, warn_caller
from .checks import finite_states, warn_first, warn_of_inconsistent_velocities
from .forces import Forces
from .integrators import Crossings
from .singular import BESIDE, SingularPositions
from .step import (
    ACTIVATION,
    ACTIVE,
    DRIVE,
    NONE_YET,
    PER_STEP,
    RESOLVED,
    WATCHED,
    Step,
    feedback_forces,
    reached,
    relied_on,
)
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


# -- how they start -----------------------------------------------------------------------------------


def onto_loops(
    mech: Mechanism, q: np.ndarray, v: np.ndarray, parameters: Mapping[str, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """The initial states with their loops closed to round-off, and velocities that keep them so.  Loops that are open
    by more than a thousandth of their size or a milliradian are refused."""
    poses = _of_constraints(parameters)
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
    poor = (~relied_on(reliability) | has_infinitesimal_motions(mech)) & known
    if poor.any() and not poses:
        to[0][poor], to[1][poor] = constraints.project(mech, start[poor], given[poor], rank=fronts(mech).pivots)
    rates = rates_of_drives(mech, poses.get(DRIVE))
    warn_of_inconsistent_velocities(mech, (to[0][known], to[1][known]), given[known], rates)
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
            & relied_on(reliability)
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
    poses = _of_constraints(parameters)
    error = _function(mech, "position_error", tuple(poses))(np.asarray(q, float), *poses.values())
    closes = np.array([not holds_where_it_engages(mech, loop) for loop in mech.loops])
    _refuse_open(mech, np.asarray(q, float), error * row_mask(mech, active[..., 0, 0, :] * closes))


def _of_constraints(parameters: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Those numbers that say how constraints are closed."""
    kinds = ("pose", DRIVE)
    return {name: np.asarray(x, float) for name, x in parameters.items() if name.rpartition(".")[2] in kinds}


def rates_of_drives(mech: Mechanism, drive: np.ndarray | None) -> np.ndarray | None:
    """(n_constraints,): the velocities that drives ask for, of the first of several states."""
    if drive is None:
        return None
    rates, first = np.zeros(mech.n_constraints), drive.reshape(-1, *drive.shape[-2:])[0]
    for name, (_, rate, _) in zip(mech.constraints.driven, first, strict=True):
        rates[mech.constraints.rows(name)] = rate
    return rates


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
    time = (
        "; drives start at the time 0, and a motion goes on from the time t by "
        "drive=lw.motion.drive_values(mech, dt, steps, start=t)"
    ) * bool(mech.constraints.driven)
    whose, loop = f" in state {index}" if index else "", loop_of(mech, int(row))
    raise constraints.AssemblyError(
        f"rollout: loop {loop!r} of mechanism {mech.name!r} is open by {gap:.3g} (metres or radians){whose}: close it "
        f"first, q0 = constraints.assemble(mech, q0){time}",
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
            return self._from_rates()
        trusted = _counted(self.run, list(self.arrays.values()), self.records)
        return self._look_after(self.given, trusted, self.records, self._resuming(self.run, self.records))

    def _from_rates(self) -> np.ndarray:
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
        dt, name, scheduled = given["dt"], self.mech.name, bool({ACTIVE, DRIVE} & {*self.step.inputs})
        if again.any() and not (self.varied or scheduled):
            followed = Followed(self.mech, self.step, resumed, {name: x[again] for name, x in given.items()})
            for record, own in zip(records, followed.records(records), strict=True):
                record[again] = own
            followed.told.warn(self.mech, np.argwhere(again))
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


# -- steps that cannot be relied on ---------------------------------------------------------------------


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


@dataclass(frozen=True)
class Moments:
    """Some trajectories, each at the start of a step.

    which    (n,): their numbers
    k        (n,): those of the steps
    dt       (n,): how long these are
    state    q, v, and activations if there are any, (n, ...)
    forces   (n, nv): joint forces, constant during the step
    inputs   wrenches and control inputs where there are any, by name, constant too
    """

    which: np.ndarray
    k: np.ndarray
    dt: np.ndarray
    state: list[np.ndarray]
    forces: np.ndarray
    inputs: dict[str, np.ndarray]

    def some(self, places: Any) -> Moments:
        """Some of them."""
        state, inputs = [x[places] for x in self.state], {name: x[places] for name, x in self.inputs.items()}
        return Moments(self.which[places], self.k[places], self.dt[places], state, self.forces[places], inputs)

    def put(self, places: Any, others: Moments) -> None:
        """Others in the place of some."""
        self.k[places], self.forces[places] = others.k, others.forces
        for whole, own in zip(
            (*self.state, *self.inputs.values()), (*others.state, *others.inputs.values()), strict=True
        ):
            whole[places] = own


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
        self._ends = np.cumsum([self.given[name].shape[-1] for name in self._state_names])[:-1]

    def _compiled(self, method: str, now: Moments, dt: np.ndarray) -> tuple[list[np.ndarray], Any, Any]:
        """The states after one compiled step, whether it can be relied on, and how far a singular position is."""
        acting, (q, v, *activation) = self.step.acting if method == self.step.method else self._explicit, now.state
        step = Step(method, acting, (*now.inputs, *(ACTIVATION,) * len(activation)))
        state, relied, ahead = reached(self.mech, step, q, v, now.forces, dt, *now.inputs.values(), *activation)
        return np.split(state, self._ends, axis=-1), relied, ahead

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
        now = self._moments(which, self._made[which].copy(), [x[which] for x in self._now])
        begun, before, dt = now.k.copy(), [x.copy() for x in now.state], now.dt
        motions = ShorterSteps(partial(self._compiled, SHORTER), now, units(self.mech).velocities)
        on = np.arange(len(which))
        while len(on):
            motions.advance(on)
            arrived = on[(motions.left[on] == 0.0) & ~motions.failed[on]]
            for j in arrived.tolist():
                self._keep(int(which[j]), [x[j : j + 1] for x in now.state], compiled=False)
            k = self._made[which]
            goes_on = (k < self._steps) & ~((k > ends) & (motions.away >= WATCHED * np.abs(dt))) & ~motions.failed
            further = arrived[goes_on[arrived]]
            if len(further):
                now.put(further, self._moments(which[further], k[further], [x[further] for x in now.state]))
                motions.begin(further)
            on = on[~motions.failed[on] & ((motions.left[on] != 0.0) | goes_on[on])]
        through, rest = motions.failed.copy(), np.flatnonzero(~motions.failed)
        times = begun * dt + motions.when
        through[rest] = ~self._pass_beside(which[rest], motions.closest[rest], times[rest])
        self._made[which[through]] = begun[through]
        for x, start in zip(self._now, before, strict=True):
            x[which[through]] = start[through]
        return through

    def _moments(self, which: np.ndarray, k: np.ndarray, state: list[np.ndarray]) -> Moments:
        """Some of them in these states, at the start of their k-th steps."""
        forces, dt = self._forces(which, k, state[0], state[1]), self.given["dt"][which].astype(float)
        held = [name for name in ("wrenches", "ctrl") if name in self.given]
        return Moments(which, k, dt, state, forces, {name: self.given[name][which, k].astype(float) for name in held})

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
            k = self._made[which]
            there, settled, compiled = self._step(which, self._moments(which, k, [x[which] for x in self._now]))
            for i, taken, *states in zip(which.tolist(), compiled.tolist(), *there, strict=True):
                self._keep(i, [x[None] for x in states], taken)
            unknown = ~np.logical_and.reduce([np.isfinite(x).all(axis=-1) for x in there])
            for i in which[unknown].tolist():  # and stays so
                self._keep(i, [np.full((self._steps - self._made[i], x.shape[-1]), np.nan) for x in self._now])
            on = (self._made[which] < self._steps) & ~(settled & (ends < k + 1))
            which, ends = which[on], ends[on]

    def _step(self, which: np.ndarray, now: Moments) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
        """The states of trajectories after a step, whether compiled steps will do from there, and whether this was
        one."""
        if self.resumed is None:
            nothing = np.zeros(len(which), dtype=bool)
            return self._from_rates(now), nothing, nothing
        there, relied, ahead = self._compiled(self.step.method, now, now.dt)
        known = finite_states(now.dt.shape, *now.state, now.forces, *now.inputs.values())
        past = self._on_arcs(now, known & (ahead < WATCHED**2), there)
        poor = ~relied & known & ~past
        rough = (self.unresolved[which] < 0) & (ahead < RESOLVED**2) & ~past
        if rough.any():
            some = now.some(rough)
            there_too = self._is_same(self._by_halves(some), [x[rough] for x in there], some.state[1], some.dt)
            rough[rough] = poor[rough] | ~there_too
        self.unresolved[which[rough]] = now.k[rough]
        if poor.any():
            for whole, own in zip(there, self._from_rates(now.some(poor)), strict=True):
                whole[poor] = own
        return there, known & ~past & ~poor & (ahead >= WATCHED**2), ~past & ~poor

    def _from_rates(self, now: Moments) -> list[np.ndarray]:
        """The states after a step as ``simulate`` makes it, from accelerations and projected; NaN where loops cannot be
        closed."""
        x = np.concatenate(now.state, axis=-1)
        for length in np.unique(now.dt):
            some = now.dt == length
            x[some] = self._reached(now.which[some], now.some(some))
        unknown = np.isnan(x).any(axis=-1) & (self.lost[now.which] < 0)
        self.lost[now.which[unknown]] = now.k[unknown]
        return np.split(x, self._ends, axis=-1)

    def _reached(self, which: np.ndarray, now: Moments) -> np.ndarray:
        """(n, ...): the states after steps of one length, one array of all parts; NaN where loops cannot be closed."""
        controls = {name: given[None] if name == "ctrl" else given for name, given in now.inputs.items()}
        held = Forces(self.mech, now.forces[None], self._elements, (len(which),), **controls)
        system = FullState(self.mech, held, Manifold(self._policy.of(which), projects=True))
        x = np.concatenate(now.state, axis=-1)
        try:
            return system.corrected(system.step(self.step.rule)(0.0, x, float(now.dt[0])))
        except MechanismError:
            if len(which) == 1:
                return np.full_like(x, np.nan)
        alone = (slice(i, i + 1) for i in range(len(which)))
        return np.concatenate([self._reached(which[i], now.some(i)) for i in alone])

    def _by_halves(self, now: Moments) -> list[np.ndarray]:
        """The states after two compiled steps of half the length."""
        for _ in range(2):
            now = replace(now, state=self._compiled(self.step.method, now, 0.5 * now.dt)[0])
        return now.state

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

    def _on_arcs(self, now: Moments, near: np.ndarray, there: Sequence[np.ndarray]) -> np.ndarray:
        """(n,): which of these trajectories take an arc in this step, of those that are near a singular position or
        on an arc already; where it leads is written to ``there``."""
        past, k = np.zeros(len(now.which), bool), now.k
        for j in np.flatnonzero(now.dt > 0.0).tolist():  # arcs lead forward in time
            i, dt, x = int(now.which[j]), float(now.dt[j]), np.concatenate([part[j] for part in now.state])
            crossings = self._crossings.get(i)
            if not near[j] and (crossings is None or not crossings.is_inside):
                continue
            crossings = self._crossings.setdefault(i, crossings or Crossings(self._along_arcs(i)))
            if crossings.plan(k[j] * dt, x, (k[j] + 1) * dt):

                def still(_: float, x: np.ndarray = x) -> np.ndarray:
                    return x

                past[j], end = True, crossings.planned(x.shape, still)((k[j] + 1) * dt)
                for part, own in zip(there, np.split(end, self._ends), strict=True):
                    part[j] = own
        return past

    def _along_arcs(self, trajectory: int) -> FullState:
        """One of the trajectories as a system of ``simulate``, under the forces of the step at a time."""

        def given(name: str, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
            return self.given[name][trajectory, self._step_at(trajectory, t)].astype(float)

        held = {name: partial(given, name) for name in ("wrenches", "ctrl") if name in self.given}

        def forces(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
            return self._forces(trajectory, self._step_at(trajectory, t), q, v)

        acting = Forces(self.mech, forces, self._elements, (), **held)
        return FullState(self.mech, acting, Manifold(self._policy_of(trajectory), projects=True))

    def _step_at(self, trajectory: int, t: float) -> int:
        """The number of the step at a time."""
        return int(np.clip(np.floor(t / self.given["dt"][trajectory] + AT_ENDS), 0, self._steps - 1))


class ShorterSteps:
    """Motions in the middle of a step, each of its own.

    left       (n,): what is left of the step
    away       (n,): at least so many seconds from a singular position, as velocities and pivots tell
    failed     (n,): it is so near that shorter steps do not do
    closest    (n, nq): where they were nearest to one, after ``when`` (n,) seconds
    """

    def __init__(
        self,
        step: Callable[[Moments, np.ndarray], tuple[Sequence[np.ndarray], np.ndarray, np.ndarray]],
        now: Moments,
        units: np.ndarray,
    ):
        """``step`` gives the states after a step, whether it can be relied on, and how far a singular position is;
        ``now`` is where they are, and moves with them; ``units`` (nv,) are those of velocities."""
        self._step, self._now, self._units, self._dt = step, now, units, now.dt
        self.closest = now.state[0].copy()
        self.left, self._next, self._past = now.dt.copy(), now.dt.copy(), np.zeros_like(now.dt)
        self.away, self._least, self.when = (np.full(len(now.dt), value) for value in (np.inf, np.inf, 0.0))
        self.failed = np.zeros(len(now.dt), dtype=bool)

    def begin(self, which: np.ndarray) -> None:
        """The next step of some."""
        self._past[which] += self._dt[which]
        self.left[which] = self._dt[which]
        self._choose(which)

    def advance(self, which: np.ndarray) -> None:
        """One shorter step of some; those for which it turns out too long stay where they are."""
        now, h = self._now.some(which), self._next[which]
        there, relied, ahead = self._step(now, h)
        away, far = np.sqrt(ahead) * np.abs(h), ahead >= TOO_FEW**2
        q, v, *_ = now.state
        distance = away * np.linalg.norm(v / self._units, axis=-1)  # also where velocities change much, as in corners
        closer = which[nearer := far & (distance < self._least[which])]
        self._least[closer], self.closest[closer] = distance[nearer], q[nearer]
        self.when[closer] = (self._past + self._dt - self.left)[closer]
        moved = which[far]
        for part, end in zip(self._now.state, there, strict=True):
            part[moved] = end[far]
        self.left[moved] = np.where(h[far] == self.left[moved], 0.0, self.left[moved] - h[far])
        self.away[which] = np.where(far, away - np.abs(h), away)
        self.failed[which] = (far & ~relied) | ~(self.away[which] > MANY * SHORTEST * np.abs(self._dt[which]))
        self._choose(which)

    def _choose(self, which: np.ndarray) -> None:
        """How long the next shorter steps are: a whole part of what is left."""
        left, known = self.left[which], self.away[which] > 0.0
        parts = np.ceil(MANY * np.abs(left) / np.where(known, self.away[which], np.inf))
        self._next[which] = left / np.maximum(parts, 1.0)
