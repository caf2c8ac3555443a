"""Rollouts within constraints: projection of initial states, status of compiled steps, slow path past singularities.

Compiled steps eliminate loops with fixed pivots, which may be too small for some states.  They close loops by a fixed
number of iterations, and may be too long to resolve the motion near singular positions.  Every trajectory therefore
counts its steps up to the first unreliable one, and up to the first that does not resolve the motion.

Trajectories with such a step are computed again past it (``SlowPath``):

- Beside a singular position, compiled substeps resolve the motion, for all trajectories together.
- Through a singular position, each trajectory takes the arcs of ``simulate``.
- Elsewhere the compiled step is taken or, if it is unreliable, the step of ``simulate`` from accelerations.

Then compiled steps take over again, up to the next singular position.

Under a schedule or drives, and with parameters that vary from state to state, such trajectories are left as they are.
Their status is the number of the first unreliable step.
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
    is_reliable,
    reached,
)
from .system import FullState, Manifold

MANY = 24.0  # number of substeps to a singular position
TOO_FEW = 0.8 * MANY  # with fewer substeps, a step is repeated with a shorter length
SHORTEST = 2.0**-14  # of a step: shortest substep; a closer trajectory goes through the singular position
AT_ENDS = 1e-9  # of a step: tolerance of its start
SAME = 1e-7  # of velocities: a step resolves the motion if two of half its length agree to this tolerance
SHORTER = "rk4"  # the method of substeps
LARGEST = 2**23  # memory of the slow path, in numbers

Records = Sequence[np.ndarray]
#: From inputs by name, (n, ...) or per step (n, steps, ...), to the states after every step, q, v and activations
#: (n, steps, ...), and the final counts of ``step._count_status``.
Resumed = Callable[[Mapping[str, np.ndarray]], tuple[Records, np.ndarray]]


# -- how they start -----------------------------------------------------------------------------------


def project_start(
    mech: Mechanism, q: np.ndarray, v: np.ndarray, parameters: Mapping[str, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Initial states projected onto the constraints: loops closed to round-off, velocities consistent.  Raises
    ``AssemblyError`` for loops open by more than a thousandth of their size or a milliradian."""
    poses = _constraint_parameters(parameters)
    start, velocities = np.asarray(q, float), np.asarray(v, float)
    if has_infinitesimal_motions(mech) and parameters:
        refuse_infinitesimal_motions(mech, "rollout with numbers that differ from state to state")
    error = _function(mech, "position_error", tuple(poses))(start, *poses.values())
    _refuse_open(mech, start, error)
    error = error * sizes(mech).rows
    projected, reliability = _function(mech, "closed_projection", tuple(poses))(start, velocities, *poses.values())
    batch = projected.shape[:-1]
    start, velocities = (np.broadcast_to(x, (*batch, x.shape[-1])) for x in (start, velocities))
    is_open = np.broadcast_to((np.abs(error).max(axis=-1, initial=0.0) > LOOPS.closed)[..., None], (*batch, 1))
    to = np.where(is_open, projected[..., : mech.nq], start), np.array(projected[..., mech.nq :])
    known = finite_states(batch, start, velocities)
    poor = (~is_reliable(reliability) | has_infinitesimal_motions(mech)) & known
    if poor.any() and not poses:
        to[0][poor], to[1][poor] = constraints.project(mech, start[poor], velocities[poor], rank=fronts(mech).pivots)
    rates = rates_of_drives(mech, poses.get(DRIVE))
    warn_of_inconsistent_velocities(mech, (to[0][known], to[1][known]), velocities[known], rates)
    return to[0].astype(q.dtype), to[1].astype(v.dtype)


def project_start_on_device(
    device: DeviceCall, mech: Mechanism, q: Any, v: Any, parameters: Mapping[str, Any]
) -> tuple[Any, Any]:
    """Initial states projected onto the constraints, on a GPU.  If loops are open, velocities inconsistent or the
    projection unreliable, ``project_start`` does it on the host, with its errors and warnings."""
    if not parameters and q.ndim == v.ndim == 2:  # parameters and one-state inputs are cheap on the host
        error = _function_on_device(mech, "position_error")(q)
        projected, reliability = _function_on_device(mech, "closed_projection")(q, v)
        rows, columns = device.copied([sizes(mech).rows, sizes(mech).columns])
        gaps, rates = np.abs(error * rows).max(axis=-1), projected[..., mech.nq :]
        bound = LOOPS.velocity_by_mistake * np.abs(v / columns).max(axis=-1)
        plain = (
            (gaps <= LOOPS.open_by_mistake)
            & is_reliable(reliability)
            & (np.abs((rates - v) / columns).max(axis=-1) <= bound)
        )
        if bool(plain.all()):
            closed_q = np.where(gaps[..., None] > LOOPS.closed, projected[..., : mech.nq], q)
            return closed_q.astype(q.dtype), rates.astype(v.dtype)
    here = {name: device.fetched(x) for name, x in parameters.items()}
    return project_start(mech, device.fetched(q), device.fetched(v), here)


def refuse_open_schedule(
    mech: Mechanism, q: np.ndarray, active: np.ndarray, parameters: Mapping[str, np.ndarray]
) -> None:
    """Refuse initial states with open active constraints, and masks that leave infinitesimal motions in any step.  Feet
    may start anywhere: they hold where they touch down.  ``active`` is (..., records, every, number of loops)."""
    for mask in np.unique(np.reshape(active, (-1, active.shape[-1])), axis=0):
        if mask.any():
            refuse_infinitesimal_motions(mechanism_holding(mech, mask), "the rollout under a schedule")
    poses = _constraint_parameters(parameters)
    error = _function(mech, "position_error", tuple(poses))(np.asarray(q, float), *poses.values())
    closes = np.array([not holds_where_it_engages(mech, loop) for loop in mech.loops])
    _refuse_open(mech, np.asarray(q, float), error * row_mask(mech, active[..., 0, 0, :] * closes))


def _constraint_parameters(parameters: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Parameters that the position error of constraints depends on."""
    kinds = ("pose", DRIVE)
    return {name: np.asarray(x, float) for name, x in parameters.items() if name.rpartition(".")[2] in kinds}


def rates_of_drives(mech: Mechanism, drive: np.ndarray | None) -> np.ndarray | None:
    """(n_constraints,): prescribed rates of drives, for the first state of a batch."""
    if drive is None:
        return None
    rates, first = np.zeros(mech.n_constraints), drive.reshape(-1, *drive.shape[-2:])[0]
    for name, (_, rate, _) in zip(mech.constraints.driven, first, strict=True):
        rates[mech.constraints.rows(name)] = rate
    return rates


def _function(mech: Mechanism, algorithm: str, parameters: tuple[str, ...]) -> Callable[..., np.ndarray]:
    """A kernel in double precision with these parameters as further inputs."""
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
    """One run of a rollout within constraints; unreliable trajectories are computed again.

    run       the compiled rollout
    arrays    its inputs; inputs per step are (..., records, every, ...)
    given     inputs by name with all batch axes; inputs per step are (..., steps, ...)
    records   q, v and activations to write, (..., records, n), without the initial states
    varied    whether parameters of the mechanism vary from state to state
    """

    mech: Mechanism
    step: Step
    run: Callable[..., None]
    arrays: Mapping[Array, Any]
    given: Mapping[str, Any]
    records: Sequence[Any]
    varied: bool

    def run_here(self) -> np.ndarray:
        """Run on the CPU; returns the status of each motion."""
        if ACTIVE not in self.step.inputs and has_infinitesimal_motions(self.mech):
            return self._step_by_rates()
        trusted = _counted(self.run, list(self.arrays.values()), self.records)
        return self._repair(self.given, trusted, self.records, self._resuming(self.run, self.records))

    def _step_by_rates(self) -> np.ndarray:
        """Run every step with NumPy: compiled steps would allow infinitesimal motions.  Returns the status of each
        motion."""
        batch = self.records[0].shape[:-2]
        known = finite_states(batch, self.given["q"], self.given["v"])
        followed = SlowPath(self.mech, self.step, None, {name: x[known] for name, x in self.given.items()})
        for record, states in zip(self.records, followed.records(self.records), strict=True):
            record[~known], record[known] = np.nan, states
        status = np.ones(batch, int)
        status[known] = followed.uncompiled
        return status

    def run_on_device(self, device: DeviceCall, on_cpu: Callable[[], Callable[..., None]]) -> np.ndarray:
        """Run on a GPU; unreliable trajectories are computed again on the CPU by the rollout ``on_cpu()``."""
        refuse_infinitesimal_motions(self.mech, "rollout on a GPU")
        first, dtype = self.records[0], self.records[0].dtype
        trusted, written = device.over_and_over((*first.shape[:-2], *NONE_YET.shape), first.shape[-2], dtype)
        self.run(*self.arrays.values(), out=(*self.records, written))
        counts = device.fetched(trusted)
        if not (counts[..., :2] < 0.0).any():
            return np.zeros(counts.shape[:-1], int)
        here = {name: x if type(x) is np.ndarray else device.some(x) for name, x in self.given.items()}
        here |= {name: device.fetched(self.given[name]) for name in ("q", "v", "dt")}
        records: list[Any] = [device.some(x) for x in self.records]

        def resumed(some: Mapping[str, np.ndarray]) -> tuple[Records, np.ndarray]:
            return self._resuming(on_cpu(), records)(some)

        return self._repair(here, counts, records, resumed)

    def _resuming(self, run: Callable[..., None], records: Sequence[Any]) -> Resumed:
        """A function that runs compiled steps for some of the trajectories."""

        def resumed(some: Mapping[str, np.ndarray]) -> tuple[Records, np.ndarray]:
            names = [x.name for x in self.arrays]
            inputs = [some[name][:, :, None] if name in PER_STEP else some[name] for name in names]
            out = [np.empty((*some["tau"].shape[:2], x.shape[-1]), x.dtype) for x in records]
            return out, _counted(run, inputs, out)

        return resumed

    def _repair(
        self, inputs: Mapping[str, Any], trusted: np.ndarray, records: Sequence[Any], resumed: Resumed
    ) -> np.ndarray:
        """Compute unreliable trajectories again and warn of the rest; returns the status of each motion.

        trusted   (..., 3): final counts of ``step._count_status``
        """
        ended, unresolved = (np.array(np.maximum(-1 - trusted[..., k].astype(int), -1)) for k in range(2))
        ended = np.where(finite_states(ended.shape, inputs["q"], inputs["v"]), ended, -1)
        lost, again = np.full(ended.shape, -1), (ended >= 0) | (unresolved >= 0)
        status = np.array(ended + 1)
        dt, name, scheduled = inputs["dt"], self.mech.name, bool({ACTIVE, DRIVE} & {*self.step.inputs})
        if again.any() and not (self.varied or scheduled):
            followed = SlowPath(self.mech, self.step, resumed, {name: x[again] for name, x in inputs.items()})
            for record, states in zip(records, followed.records(records), strict=True):
                record[again] = states
            followed.diagnostics.warn(self.mech, np.argwhere(again))
            unresolved[again], lost[again] = followed.unresolved, followed.lost
            status[again] = followed.uncompiled
        else:
            advice = "take other states or smaller steps, or edits of the mechanism instead of parameters"
            if scheduled:
                advice = "constraints that hold must be independent and, but for feet, closed; take smaller steps"
            problem = f"compiled steps of mechanism {name!r} cannot be relied on near singular positions"
            warn_first(ended, dt, problem, advice)
        warn_first(lost, dt, f"the loops of mechanism {name!r} cannot be kept closed", "take smaller steps")
        advice = "energies may change there; take smaller steps, or lw.simulate for these states"
        problem = f"steps do not resolve the motion of mechanism {name!r} near singular positions"
        warn_first(unresolved, dt, problem, advice)
        return status


def _counted(run: Callable[..., None], inputs: Sequence[np.ndarray], out: Records) -> np.ndarray:
    """Run a rollout on the CPU; returns the final counts of its steps."""
    trusted = np.zeros((*out[0].shape[:-2], *NONE_YET.shape), out[0].dtype)
    with np.errstate(all="ignore"):
        run(*inputs, out=(*out, overwritten_records(trusted, out[0].shape[-2])))
    return trusted


def overwritten_records(last: np.ndarray, records: int, core: int = 1) -> np.ndarray:
    """(..., records, *core): a view of ``last`` (..., *core) that every record overwrites; the last one remains."""
    cut = last.ndim - core
    shape = (*last.shape[:cut], records, *last.shape[cut:])
    return as_strided(last, shape, (*last.strides[:cut], 0, *last.strides[cut:]))


# -- the slow path past unreliable steps ---------------------------------------------------------------------


@dataclass
class Diagnostics:
    """Reports of the singularity policy: (trajectory, time, problem) each."""

    entries: list[tuple[int, float, str]] = field(default_factory=list)

    def warn(self, mech: Mechanism, states: np.ndarray) -> None:
        """Warn of the earliest report; ``states`` (n, batch axes) are the batch indices of the trajectories."""
        if not self.entries:
            return
        trajectory, time, problem = min(self.entries, key=lambda entry: entry[1])
        index = tuple(map(int, states[trajectory]))
        count = len({entry for entry, _, _ in self.entries})
        whose = f" in state {index}" if index else ""
        others = f" ({count} states are told of something like this)" if count > 1 else ""
        warn_caller(f"rollout: at t = {time:.6g} s{whose}, mechanism {mech.name!r} {problem}{others}", MechanismWarning)


@dataclass(frozen=True)
class Moments:
    """Some trajectories, each at the start of a step.

    which    (n,): numbers of the trajectories
    k        (n,): numbers of the steps
    dt       (n,): lengths of the steps
    state    q, v, and activations of actuators with dynamics, (n, ...)
    forces   (n, nv): joint forces, constant during the step
    inputs   wrenches and control inputs by name, constant during the step
    """

    which: np.ndarray
    k: np.ndarray
    dt: np.ndarray
    state: list[np.ndarray]
    forces: np.ndarray
    inputs: dict[str, np.ndarray]

    def some(self, chosen: Any) -> Moments:
        """The chosen trajectories."""
        state, inputs = [x[chosen] for x in self.state], {name: x[chosen] for name, x in self.inputs.items()}
        return Moments(self.which[chosen], self.k[chosen], self.dt[chosen], state, self.forces[chosen], inputs)

    def put(self, chosen: Any, others: Moments) -> None:
        """Overwrite the chosen trajectories by others."""
        self.k[chosen], self.forces[chosen] = others.k, others.forces
        for target, source in zip(
            (*self.state, *self.inputs.values()), (*others.state, *others.inputs.values()), strict=True
        ):
            target[chosen] = source


@dataclass
class SlowPath:
    """The slow path: trajectories computed again past singular positions.

    Compiled steps are taken as far as they are reliable.  Past a singular position each step is taken by itself: on an
    arc near it, else by the compiled step or, if that is unreliable, from the rates of ``simulate``'s system.  Then
    compiled steps are taken again, for all trajectories together.

    resumed     runs compiled steps; None if none is reliable
    given       inputs of the rollout for these trajectories, (n, ...), or per step (n, steps, ...)
    unresolved  (n,): number of steps before the first that does not resolve the motion, or -1
    uncompiled  (n,): number of the first step, from 1, that is not the compiled one, or 0
    lost        (n,): number of steps after which loops cannot be closed, or -1; later states are NaN
    """

    mech: Mechanism
    step: Step
    resumed: Resumed | None
    given: Mapping[str, np.ndarray]
    unresolved: np.ndarray = field(init=False)
    lost: np.ndarray = field(init=False)
    uncompiled: np.ndarray = field(init=False)
    diagnostics: Diagnostics = field(init=False, default_factory=Diagnostics)

    def __post_init__(self) -> None:
        longest = float(np.abs(self.given["dt"]).max(initial=0.0))
        self._explicit = for_explicit_steps(
            self.step.acting, longest
        )  # near singular positions all forces are explicit
        self._elements = Resolved(self.mech, self._explicit) if self._explicit.laws else None
        self._policy = SingularPositions.around(self.mech, self.given["q"].astype(float))
        self._crossings: dict[int, Crossings] = {}
        self.unresolved, self.lost = (np.full(len(self.given["q"]), -1) for _ in range(2))
        self.uncompiled = np.zeros(len(self.given["q"]), int)
        self._steps = self.given["tau"].shape[1]
        self._state_names = [name for name in ("q", "v", ACTIVATION) if name in self.given]
        self._ends = np.cumsum([self.given[name].shape[-1] for name in self._state_names])[:-1]

    def _compiled(self, method: str, now: Moments, dt: np.ndarray) -> tuple[list[np.ndarray], Any, Any]:
        """The states after one compiled step, whether it is reliable, and the distance to a singular position."""
        acting, (q, v, *activation) = self.step.acting if method == self.step.method else self._explicit, now.state
        step = Step(method, acting, (*now.inputs, *(ACTIVATION,) * len(activation)))
        state, relied, ahead = reached(self.mech, step, q, v, now.forces, dt, *now.inputs.values(), *activation)
        return np.split(state, self._ends, axis=-1), relied, ahead

    def records(self, like: Records) -> list[np.ndarray]:
        """Run all trajectories; returns q, v and activations (n, records, ...), shaped as ``like``."""
        self._now = [self.given[name].astype(float) for name in self._state_names]
        self._made = np.zeros(len(self._now[0]), dtype=int)  # steps
        self._every = self._steps // like[0].shape[-2]
        self._kept = [np.empty((len(self._made), *x.shape[-2:]), x.dtype) for x in like]
        while len(which := np.flatnonzero(self._made < self._steps)):
            ends = self._take_compiled_steps(which)
            which, ends = which[ends >= 0], ends[ends >= 0]
            through = self._take_substeps(which, ends)
            self._pass_singular_positions(which[through], ends[through])
        return self._kept

    def _record(self, i: int, states: Sequence[np.ndarray], compiled: bool = True) -> None:
        """Record the states (k, ...) of a trajectory after its next k steps; ``compiled``: by compiled steps."""
        before, count = int(self._made[i]), len(states[0])
        if not (compiled or self.uncompiled[i]):
            self.uncompiled[i] = before + 1
        first, last = before // self._every, (before + count) // self._every
        for kept, made in zip(self._kept, states, strict=True):
            kept[i, first:last] = made[(first + 1) * self._every - before - 1 :: self._every]
        for now, made in zip(self._now, states, strict=True):
            now[i] = made[-1:] if count else now[i : i + 1]
        self._made[i] = before + count

    def _take_compiled_steps(self, which: np.ndarray) -> np.ndarray:
        """Advance trajectories by compiled steps until a singular position comes near.  Returns (n,): the number of the
        step that is unreliable, or -1 at the end of the motion."""
        if self.resumed is None:
            return self._made[which]
        ends = np.full(len(which), -1)
        longest = self._steps - int(self._made[which].min())
        size = longest * sum(self.given[name].shape[-1] for name in ("q", "v", "tau"))
        some = max(1, LARGEST // size)
        for part in (slice(k, k + some) for k in range(0, len(which), some)):
            members = which[part]
            states, trusted = self.resumed(self._inputs(members))
            relied, resolved, near = trusted.astype(int).T
            first = np.minimum(*(np.where(count < 0, -1 - count, self._steps) for count in (relied, resolved)))
            uncompiled = self._steps - self._made[members]
            good = np.where(first < uncompiled, np.minimum(near, first), uncompiled)
            ends[part] = np.where(first < uncompiled, self._made[members] + first, -1)
            for k, (i, count) in enumerate(zip(members.tolist(), good.tolist(), strict=True)):
                self._record(i, [x[k, :count] for x in states])
        return ends

    def _inputs(self, which: np.ndarray) -> dict[str, np.ndarray]:
        """Inputs of some trajectories from their present steps on; shorter ones are padded by their last step."""
        first = self._made[which]
        ahead = np.minimum(first[:, None] + np.arange(self._steps - first.min()), self._steps - 1)
        inputs = {name: x[which[:, None], ahead] if name in PER_STEP else x[which] for name, x in self.given.items()}
        for name, now in zip(self._state_names, self._now, strict=True):
            inputs[name] = now[which].astype(self.given[name].dtype)
        return inputs

    # -- beside singular positions ------------------------------------------------------------------------------

    def _take_substeps(self, which: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """Advance trajectories past the steps ``ends`` by substeps, until compiled steps are reliable again.  Returns
        (n,): whether a trajectory goes through a singular position; its state is then restored."""
        if self.resumed is None:
            return np.ones(len(which), dtype=bool)
        now = self._moments(which, self._made[which].copy(), [x[which] for x in self._now])
        begun, before, dt = now.k.copy(), [x.copy() for x in now.state], now.dt
        motions = Substeps(partial(self._compiled, SHORTER), now, units(self.mech).velocities)
        on = np.arange(len(which))
        while len(on):
            motions.advance(on)
            arrived = on[(motions.remaining[on] == 0.0) & ~motions.failed[on]]
            for j in arrived.tolist():
                self._record(int(which[j]), [x[j : j + 1] for x in now.state], compiled=False)
            k = self._made[which]
            goes_on = (k < self._steps) & ~((k > ends) & (motions.away >= WATCHED * np.abs(dt))) & ~motions.failed
            further = arrived[goes_on[arrived]]
            if len(further):
                now.put(further, self._moments(which[further], k[further], [x[further] for x in now.state]))
                motions.begin(further)
            on = on[~motions.failed[on] & ((motions.remaining[on] != 0.0) | goes_on[on])]
        through, rest = motions.failed.copy(), np.flatnonzero(~motions.failed)
        times = begun * dt + motions.when
        through[rest] = ~self._pass_beside(which[rest], motions.closest[rest], times[rest])
        self._made[which[through]] = begun[through]
        for x, start in zip(self._now, before, strict=True):
            x[which[through]] = start[through]
        return through

    def _moments(self, which: np.ndarray, k: np.ndarray, state: list[np.ndarray]) -> Moments:
        """Some trajectories in these states, at the start of their k-th steps."""
        forces, dt = self._forces(which, k, state[0], state[1]), self.given["dt"][which].astype(float)
        held = [name for name in ("wrenches", "ctrl") if name in self.given]
        return Moments(which, k, dt, state, forces, {name: self.given[name][which, k].astype(float) for name in held})

    def _forces(self, which: int | np.ndarray, k: int | np.ndarray, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Joint forces in the k-th step, with the feedback forces at (q, v)."""
        tau = self.given["tau"][which, k].astype(float)
        if "target" not in self.given:
            return tau
        target = self.given["target"][which, k].astype(float)
        return tau + feedback_forces(self.mech, self.given, which, target, q, v)

    def _pass_beside(self, which: np.ndarray, closest: np.ndarray, times: np.ndarray) -> np.ndarray:
        """(n,): whether trajectories pass beside a singular position, not through it; sharp corners are reported.
        ``closest`` (n, nq) are their closest configurations, at ``times`` (n,)."""
        conditioning = self._policy.of(which).conditioning(closest)
        for i, time, least in zip(which.tolist(), times.tolist(), conditioning.tolist(), strict=True):
            if least >= BESIDE:
                self._policy_of(i).report_corner(time, least)
        return conditioning >= BESIDE

    def _policy_of(self, trajectory: int) -> SingularPositions:
        return self._policy.of((trajectory,)).with_report(
            lambda *said: self.diagnostics.entries.append((trajectory, *said))
        )

    # -- past singular positions --------------------------------------------------------------------------------

    def _pass_singular_positions(self, which: np.ndarray, ends: np.ndarray) -> None:
        """Advance trajectories step by step past the steps ``ends``, until compiled steps are reliable again."""
        while len(which):
            k = self._made[which]
            there, settled, compiled = self._step(which, self._moments(which, k, [x[which] for x in self._now]))
            for i, taken, *states in zip(which.tolist(), compiled.tolist(), *there, strict=True):
                self._record(i, [x[None] for x in states], taken)
            unknown = ~np.logical_and.reduce([np.isfinite(x).all(axis=-1) for x in there])
            for i in which[unknown].tolist():  # and stays unknown
                self._record(i, [np.full((self._steps - self._made[i], x.shape[-1]), np.nan) for x in self._now])
            on = (self._made[which] < self._steps) & ~(settled & (ends < k + 1))
            which, ends = which[on], ends[on]

    def _step(self, which: np.ndarray, now: Moments) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
        """The states after a step, whether compiled steps are reliable from there on, and whether this step was one."""
        if self.resumed is None:
            nothing = np.zeros(len(which), dtype=bool)
            return self._step_by_rates(now), nothing, nothing
        there, relied, ahead = self._compiled(self.step.method, now, now.dt)
        known = finite_states(now.dt.shape, *now.state, now.forces, *now.inputs.values())
        past = self._take_arcs(now, known & (ahead < WATCHED**2), there)
        poor = ~relied & known & ~past
        rough = (self.unresolved[which] < 0) & (ahead < RESOLVED**2) & ~past
        if rough.any():
            some = now.some(rough)
            there_too = self._is_same(self._two_half_steps(some), [x[rough] for x in there], some.state[1], some.dt)
            rough[rough] = poor[rough] | ~there_too
        self.unresolved[which[rough]] = now.k[rough]
        if poor.any():
            for target, source in zip(there, self._step_by_rates(now.some(poor)), strict=True):
                target[poor] = source
        return there, known & ~past & ~poor & (ahead >= WATCHED**2), ~past & ~poor

    def _step_by_rates(self, now: Moments) -> list[np.ndarray]:
        """The states after a step of ``simulate``, from accelerations, projected; NaN if loops cannot be closed."""
        x = np.concatenate(now.state, axis=-1)
        for length in np.unique(now.dt):
            some = now.dt == length
            x[some] = self._reached(now.which[some], now.some(some))
        unknown = np.isnan(x).any(axis=-1) & (self.lost[now.which] < 0)
        self.lost[now.which[unknown]] = now.k[unknown]
        return np.split(x, self._ends, axis=-1)

    def _reached(self, which: np.ndarray, now: Moments) -> np.ndarray:
        """(n, ...): the states [q, v, activations] after steps of one length; NaN if loops cannot be closed."""
        controls = {name: value[None] if name == "ctrl" else value for name, value in now.inputs.items()}
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

    def _two_half_steps(self, now: Moments) -> list[np.ndarray]:
        """The states after two compiled steps of half the length."""
        for _ in range(2):
            now = replace(now, state=self._compiled(self.step.method, now, 0.5 * now.dt)[0])
        return now.state

    def _is_same(self, states: Records, others: Records, v: np.ndarray, dt: np.ndarray) -> np.ndarray:
        """(n,): whether q and v after a step from velocities v agree to ``SAME``, in units of the mechanism's size."""
        unit_sizes = units(self.mech)
        allowed = SAME * np.abs(v / unit_sizes.velocities).max(axis=-1)
        off_q, off_v = (
            np.abs((x - y) / unit).max(axis=-1)
            for x, y, unit in zip(states[:2], others[:2], (unit_sizes.positions, unit_sizes.velocities), strict=True)
        )
        return (off_q <= allowed * np.abs(dt)) & (off_v <= allowed)

    # -- on arcs --------------------------------------------------------------------------------------------------

    def _take_arcs(self, now: Moments, near: np.ndarray, there: Sequence[np.ndarray]) -> np.ndarray:
        """(n,): which trajectories take an arc in this step; their end states are written to ``there``.  Candidates are
        ``near`` a singular position, or on an arc already."""
        past, k = np.zeros(len(now.which), bool), now.k
        for j in np.flatnonzero(now.dt > 0.0).tolist():  # arcs lead forward in time
            i, dt, x = int(now.which[j]), float(now.dt[j]), np.concatenate([part[j] for part in now.state])
            crossings = self._crossings.get(i)
            if not near[j] and (crossings is None or not crossings.is_inside):
                continue
            crossings = self._crossings.setdefault(i, crossings or Crossings(self._arc_system(i)))
            if crossings.plan(k[j] * dt, x, (k[j] + 1) * dt):

                def still(_: float, x: np.ndarray = x) -> np.ndarray:
                    return x

                past[j], end = True, crossings.planned(x.shape, still)((k[j] + 1) * dt)
                for part, source in zip(there, np.split(end, self._ends), strict=True):
                    part[j] = source
        return past

    def _arc_system(self, trajectory: int) -> FullState:
        """One trajectory as a system of ``simulate``, under the forces of the step at each time."""

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


class Substeps:
    """Motions within a step, each at its own time.

    remaining   (n,): seconds to the end of the step
    away        (n,): lower bound of the seconds to a singular position, from velocities and pivots
    failed      (n,): whether the motion is too near for substeps
    closest     (n, nq): the configuration nearest to a singular position, after ``when`` (n,) seconds
    """

    def __init__(
        self,
        step: Callable[[Moments, np.ndarray], tuple[Sequence[np.ndarray], np.ndarray, np.ndarray]],
        now: Moments,
        units: np.ndarray,
    ):
        """``step`` returns the states after a step, whether it is reliable, and the distance to a singular position.
        ``now`` is updated with every step; ``units`` (nv,) are the units of velocities."""
        self._step, self._now, self._units, self._dt = step, now, units, now.dt
        self.closest = now.state[0].copy()
        self.remaining, self._next, self._elapsed = now.dt.copy(), now.dt.copy(), np.zeros_like(now.dt)
        self.away, self._least, self.when = (np.full(len(now.dt), value) for value in (np.inf, np.inf, 0.0))
        self.failed = np.zeros(len(now.dt), dtype=bool)

    def begin(self, which: np.ndarray) -> None:
        """Start the next step of some motions."""
        self._elapsed[which] += self._dt[which]
        self.remaining[which] = self._dt[which]
        self._choose(which)

    def advance(self, which: np.ndarray) -> None:
        """Take one substep of some motions; a motion for which it is too long stays in place."""
        now, h = self._now.some(which), self._next[which]
        there, relied, ahead = self._step(now, h)
        away, far = np.sqrt(ahead) * np.abs(h), ahead >= TOO_FEW**2
        q, v, *_ = now.state
        distance = away * np.linalg.norm(v / self._units, axis=-1)  # also where velocities change much, as in corners
        closer = which[nearer := far & (distance < self._least[which])]
        self._least[closer], self.closest[closer] = distance[nearer], q[nearer]
        self.when[closer] = (self._elapsed + self._dt - self.remaining)[closer]
        moved = which[far]
        for part, end in zip(self._now.state, there, strict=True):
            part[moved] = end[far]
        self.remaining[moved] = np.where(h[far] == self.remaining[moved], 0.0, self.remaining[moved] - h[far])
        self.away[which] = np.where(far, away - np.abs(h), away)
        self.failed[which] = (far & ~relied) | ~(self.away[which] > MANY * SHORTEST * np.abs(self._dt[which]))
        self._choose(which)

    def _choose(self, which: np.ndarray) -> None:
        """Choose the next substeps: the remaining time over a whole number."""
        remaining, known = self.remaining[which], self.away[which] > 0.0
        parts = np.ceil(MANY * np.abs(remaining) / np.where(known, self.away[which], np.inf))
        self._next[which] = remaining / np.maximum(parts, 1.0)
