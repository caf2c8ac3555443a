"""Rollouts within constraints: how they start, and which of their steps can be relied on.

Compiled steps eliminate loops by pivots that may be too small for some states, close loops by a fixed number of
iterations, and may be too long to resolve the motion near singular positions.  Every trajectory therefore counts its
steps up to the first that cannot be relied on, and up to the first that does not resolve the motion: from there on
``passages`` follows it again.

Under a schedule or drives, and where numbers of the mechanism differ from state to state, such trajectories stay as
they are, and their status says from which step on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
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
from ..constraints.sizes import sizes
from ..constraints.tolerances import LOOPS
from ..mechanics.algorithms.closed_projection import RELIABLE
from ..mechanics.algorithms.constrained_steps import holds_where_it_engages
from ..mechanism import Mechanism
from .checks import warn_of_inconsistent_velocities
from .passages import Followed, Records, Resumed
from .records import finite_states, warn_first
from .step import (
    ACTIVE,
    DRIVE,
    NONE_YET,
    PER_STEP,
    Step,
)

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
    poor = (~(reliability > RELIABLE) | has_infinitesimal_motions(mech)) & known
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
