"""Rollouts of closed mechanisms: how they start, and what is done about steps that compiled code cannot be relied on
for.

Compiled steps eliminate loops by pivots that may be too small for some states, close loops by a fixed number of
iterations, and may be too long to resolve the motion near singular positions.  Every trajectory therefore counts its
steps up to the first that cannot be relied on, and up to the first that does not resolve the motion.  Trajectories with
such a step are followed again past it, one step after the other: near singular positions by the arcs that ``simulate``
takes too, elsewhere by the compiled step or, where that cannot be relied on, by singular value decompositions.  Then
compiled steps take over again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from .. import constraints
from ..compiler.ir.program import Array
from ..compiler.pipeline import compile
from ..compiler.runtime.device_arrays import DeviceCall
from ..compiler.store import float64_function, stored
from ..constraints.equations import loop_of
from ..constraints.sizes import sizes
from ..constraints.tolerances import LOOPS
from ..mechanics.algorithms.closed_projection import RELIABLE
from ..mechanics.elements.law import Acting
from ..mechanics.scalar import Scalar, select
from ..mechanism import Mechanism, MechanismWarning, warn_caller
from ..motion.checks import warn_of_inconsistent_velocities
from .followed_rollouts import RESOLVED, WATCHED, Followed, Records, Resumed, finite_states, independent_constraints
from .steps import PER_STEP

TRUSTED = "trusted"
NONE_YET = np.zeros(3)  # what ``counting`` starts with
SETTLED = {"float64": 1e-6, "float32": 1e-3}  # rad, sizes of loops: the last correction of positions


def counting(step: Callable[..., Any]) -> Callable[..., list[Scalar]]:
    """The closed step with one more input, which comes back at the end of the state: ``trusted``, how many steps were
    made that can be relied on, how many that resolve the motion, and after how many of them a singular position came
    near, to which the next ones lead.  With the first step that does not, each of the first two ends, and is -1 minus
    the number."""

    def counted(*given: Any, **options: Any) -> list[Scalar]:
        *others, (relied, resolved, near) = given
        state, reliability, ahead = step(*others, **options)
        poor, rough = select(RELIABLE < reliability, 0.0, 1.0), select(ahead < RESOLVED**2, 1.0, 0.0)
        away = select(ahead < WATCHED**2, near, relied + select(0.5 < poor + rough, 0.0, 1.0))
        near = select(relied < 0.0, near, select(resolved < 0.0, near, away))
        ends = ((relied, poor), (resolved, rough))
        counts = [select(count < 0.0, count, select(0.5 < end, -1.0 - count, count + 1.0)) for count, end in ends]
        return [*state, *counts, near]

    return counted


# -- how they start -----------------------------------------------------------------------------------


def onto_loops(
    mech: Mechanism, q: np.ndarray, v: np.ndarray, parameters: Mapping[str, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """The initial states with their loops closed to round-off, and velocities that keep them so.  Loops that are open
    by more than a thousandth of their size or a milliradian are refused."""
    poses = {name: np.asarray(x, float) for name, x in parameters.items() if name.rpartition(".")[2] == "pose"}
    start, given = np.asarray(q, float), np.asarray(v, float)
    error = _function(mech, "position_error", tuple(poses))(start, *poses.values())
    _refuse_open(mech, start, error)
    error = error * sizes(mech).rows
    found, reliability = _function(mech, "closed_projection", tuple(poses))(start, given, *poses.values())
    batch = found.shape[:-1]
    start, given = (np.broadcast_to(x, (*batch, x.shape[-1])) for x in (start, given))
    is_open = np.broadcast_to((np.abs(error).max(axis=-1, initial=0.0) > LOOPS.closed)[..., None], (*batch, 1))
    to = np.where(is_open, found[..., : mech.nq], start), np.array(found[..., mech.nq :])
    known = finite_states(batch, start, given)
    poor = ~(reliability > RELIABLE) & known
    if poor.any() and not poses:
        to[0][poor], to[1][poor] = constraints.project(
            mech, start[poor], given[poor], rank=independent_constraints(mech)
        )
    warn_of_inconsistent_velocities(mech, (to[0][known], to[1][known]), given[known])
    return to[0].astype(q.dtype), to[1].astype(v.dtype)


def onto_loops_on_device(
    device: DeviceCall, mech: Mechanism, q: Any, v: Any, parameters: Mapping[str, Any]
) -> tuple[Any, Any]:
    """The same of arrays on a GPU, there if nothing is to be said about them."""
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


def run_closed(
    mech: Mechanism,
    method: str,
    acting: Acting,
    run: Callable[..., None],
    arrays: Mapping[Array, np.ndarray],
    given: Mapping[str, np.ndarray],
    records: Records,
    varied: bool,
) -> None:
    """Run a rollout; what cannot be relied on is made again.

    arrays   inputs of the rollout, those of every step (..., records, every, ...)
    given, records, varied   as for ``look_after``
    """

    trusted = _counted(run, list(arrays.values()), records)
    look_after(mech, method, acting, _resuming(run, arrays, records), given, varied, trusted, records)


def run_closed_on_device(
    device: DeviceCall,
    mech: Mechanism,
    method: str,
    acting: Acting,
    run: Callable[..., None],
    on_cpu: Callable[[], Any],
    arrays: Mapping[Array, Any],
    given: Mapping[str, Any],
    records: Sequence[Any],
    varied: bool,
) -> None:
    """The same on a GPU; what is made again is made on the CPU, by the rollout that ``on_cpu`` gives first."""
    first, dtype = records[0], records[0].dtype
    trusted, written = device.over_and_over((*first.shape[:-2], *NONE_YET.shape), first.shape[-2], dtype)
    run(*arrays.values(), out=(*records, written))
    counts = device.fetched(trusted)
    if not (counts[..., :2] < 0.0).any():
        return
    here: dict[str, Any] = {name: x if type(x) is np.ndarray else device.some(x) for name, x in given.items()}
    here |= {name: device.fetched(given[name]) for name in ("q", "v", "dt")}
    places: list[Any] = [device.some(x) for x in records]

    def resumed(some: Mapping[str, np.ndarray]) -> tuple[Records, np.ndarray]:
        return _resuming(on_cpu()[0], arrays, places)(some)

    look_after(mech, method, acting, resumed, here, varied, counts, places)


def _counted(run: Callable[..., None], inputs: Sequence[np.ndarray], out: Records) -> np.ndarray:
    """Run a rollout on the CPU; what ``counting`` ends with."""
    trusted = np.zeros((*out[0].shape[:-2], *NONE_YET.shape), out[0].dtype)
    with np.errstate(all="ignore"):
        run(*inputs, out=(*out, over_and_over(trusted, out[0].shape[-2])))
    return trusted


def _resuming(run: Callable[..., None], arrays: Mapping[Array, Any], records: Records) -> Resumed:
    """Compiled steps for some of the trajectories."""

    def resumed(some: Mapping[str, np.ndarray]) -> tuple[Records, np.ndarray]:
        inputs = [some[name][:, :, None] if name in PER_STEP else some[name] for name in (x.name for x in arrays)]
        out = [np.empty((*some["tau"].shape[:2], x.shape[-1]), x.dtype) for x in records]
        return out, _counted(run, inputs, out)

    return resumed


def over_and_over(last: np.ndarray, records: int) -> np.ndarray:
    """(..., records, n): an array of records that are all written to the same place (..., n), where the last stays."""
    shape, strides = last.shape, last.strides
    return as_strided(last, (*shape[:-1], records, shape[-1]), (*strides[:-1], 0, strides[-1]))


# -- what cannot be relied on -------------------------------------------------------------------------


def look_after(
    mech: Mechanism,
    method: str,
    acting: Acting,
    resumed: Resumed,
    given: Mapping[str, np.ndarray],
    varied: bool,
    trusted: np.ndarray,
    records: Records,
) -> None:
    """Follow the trajectories again that cannot be relied on, and warn of what remains.

    resumed    runs compiled steps
    given      inputs of the rollout with all batch axes; those of every step (..., steps, ...)
    varied     whether numbers of the mechanism differ from state to state
    trusted    (..., 3): what ``counting`` ended with
    records    q and v, (..., records, n): where trajectories are kept, the initial states not among them
    """
    ended, unresolved = (np.array(np.maximum(-1 - trusted[..., k].astype(int), -1)) for k in range(2))
    ended = np.where(finite_states(ended.shape, given["q"], given["v"]), ended, -1)
    lost, again = np.full(ended.shape, -1), (ended >= 0) | (unresolved >= 0)
    if again.any() and not varied:
        followed = Followed(mech, method, acting, resumed, {name: x[again] for name, x in given.items()})
        for record, own in zip(records, followed.records(records), strict=True):
            record[again] = own
        followed.passages.told.warn(mech, np.argwhere(again))
        unresolved[again], lost[again] = followed.unresolved, followed.lost
    dt, name = given["dt"], mech.name
    if varied:
        advice = "take other states or smaller steps, or edits of the mechanism instead of parameters"
        warn_first(
            ended, dt, f"compiled steps of mechanism {name!r} cannot be relied on near singular positions", advice
        )
    warn_first(lost, dt, f"the loops of mechanism {name!r} cannot be kept closed", "take smaller steps")
    advice = "energies may change there; take smaller steps, or lw.simulate for these states"
    warn_first(unresolved, dt, f"steps do not resolve the motion of mechanism {name!r} near singular positions", advice)


# -- what is said about it ----------------------------------------------------------------------------


def warn_first(ended: np.ndarray, dt: np.ndarray, what: str, advice: str, within: int = 1) -> None:
    """Warn of the first state of a batch of which something became true: ``ended`` (...) says after how many steps,
    -1 where it never did; in one of the last ``within`` of them, where states between were not looked at."""
    if not (ended >= 0).any():
        return
    times = np.where(ended >= 0, ended * np.abs(dt), np.inf)
    state = tuple(map(int, np.unravel_index(np.argmin(times), times.shape)))
    whose = f"in state {state}, " if state else ""
    others = f" ({int((ended >= 0).sum())} of {times.size} states)" if state else ""
    before, time = (float(((ended - steps) * dt)[state]) + 0.0 for steps in (within, 0))  # no negative zero
    when = f"first {whose}at t = {time:.6g} s"
    if within > 1:
        when = f"{whose}between t = {before:.6g} s and {time:.6g} s"
    warn_caller(f"rollout: {what}, {when}{others}: {advice}", MechanismWarning)
