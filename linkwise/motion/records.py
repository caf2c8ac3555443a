"""The arrays that rollouts write: made or given, with the initial states in them, and looked at in the end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from ..compiler.ir.program import Array
from ..compiler.runtime.explanations import KernelError
from ..mechanism import Mechanism, MechanismWarning, warn_caller
from .checks import warn_of_creep, warn_of_slip_in_rollout
from .step import PER_STEP, Step


def started(initial: Sequence[Any], results: Sequence[Any], steps: int, final_only: bool) -> list[Any]:
    """Write the initial states, if they are kept, and give the places of the records that follow."""
    records = [x[..., None, :] if final_only else x for x in results]
    if not final_only or not steps:
        for record, first in zip(records, initial, strict=True):
            record[..., 0, :] = first
    return records if final_only else [record[..., 1:, :] for record in records]


def results_of(
    out: tuple[np.ndarray, np.ndarray] | None, shapes: list[tuple[int, ...]], dtype: np.dtype
) -> Sequence[np.ndarray]:
    """The arrays given for q and v if they fit, else new ones."""
    if out is None:
        return [np.empty(shape, dtype) for shape in shapes]
    fits = isinstance(out, tuple) and len(out) == len(shapes) and all(isinstance(x, np.ndarray) for x in out)
    if not fits or any(
        x.shape != shape or x.dtype != dtype or not x.flags.writeable for x, shape in zip(out, shapes, strict=True)
    ):
        raise KernelError(no_place(shapes, dtype))
    if any(np.may_share_memory(*pair) for pair in combinations(out, 2)):
        raise KernelError("rollout: the arrays of out must not share memory")
    return out


def no_place(shapes: list[tuple[int, ...]], dtype: np.dtype, where: str = "") -> str:
    needed = " and ".join(map(str, shapes))
    last = ", the last for activations" if len(shapes) > 2 else ""
    count = "three" if last else "two"
    return f"rollout: out must be a tuple of {count} writable arrays{where} of dtype {dtype}, shapes {needed}{last}"


def finite_states(batch: tuple[int, ...], *arrays: np.ndarray) -> np.ndarray:
    """(...): whether all numbers of a state are."""
    return np.logical_and.reduce([np.isfinite(x).all(axis=tuple(range(len(batch), x.ndim))) for x in arrays])


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


def warn_of_lost(
    mech: Mechanism,
    step: Step,
    given: Mapping[Array, np.ndarray],
    batch: tuple[int, ...],
    records: Sequence[np.ndarray],
    every: int,
) -> np.ndarray:
    """Where numbers that are finite have led to some that are not, which stay so: the last record tells.  Returns the
    step by which they did, 0 where they did not."""
    finite = np.isfinite(records[1][..., -1, :])
    if finite.all():
        return np.zeros(batch, int)
    method, lost = step.name, ~finite.all(axis=-1)
    inputs = with_batch({array: x for array, x in given.items() if array.name != "numbers"}, batch)
    lost &= finite_states(batch, *inputs.values())
    first = (np.argmin(np.isfinite(records[1]).all(axis=-1), axis=-1) + 1) * every
    stiff = "where damping, friction or stops of joints, or kd of lw.control.joint_feedback, are stiff"
    other_method = "" if method == "semi_implicit" else f"method='semi_implicit' {stiff}, "
    warn_first(
        np.where(lost, first, -1),
        inputs["dt"],
        f"steps of {method!r} are too long for the motion of mechanism {mech.name!r}, whose velocities grew beyond all "
        "numbers",
        f"take smaller steps, {other_method}or lw.simulate with method='radau'",
        every,
    )
    return np.where(lost, first, 0)


def with_batch(given: Mapping[Array, np.ndarray], batch: tuple[int, ...]) -> dict[str, np.ndarray]:
    """All inputs by name, each with all batch axes; those of every step as (..., steps, core)."""
    whole = {}
    for array, values in given.items():
        own = len(array.shape) + 2 * (array.name in PER_STEP)
        shape = values.shape[values.ndim - own :]
        values = np.broadcast_to(values, (*batch, *shape))
        if array.name in PER_STEP:
            values = values.reshape(*batch, shape[0] * shape[1], *array.shape)
        whole[array.name] = values
    return whole


def returned(found: Any, asked: bool) -> tuple[Any, ...]:
    """(q, v), and the activations if they are asked for."""
    q, v, *activation = found
    if not asked:
        return q, v
    return q, v, activation[0] if activation else np.zeros((*q.shape[:-1], 0), q.dtype)


def apart_from(out: Any, inputs: Iterable[Any]) -> list[Any]:
    """Inputs, copied where they share memory with arrays that are given for the results: these are written to from the
    first record on, inputs are read to the last."""
    results = [x for x in out if isinstance(x, np.ndarray)] if isinstance(out, tuple) else []
    return [x.copy() if _share_memory(x, results) else x for x in inputs]


def _share_memory(x: Any, others: Iterable[np.ndarray]) -> bool:
    return isinstance(x, np.ndarray) and any(np.may_share_memory(x, other) for other in others)


def look_at_records(
    mech: Mechanism,
    step: Step,
    named: Mapping[Array, np.ndarray],
    batch: tuple[int, ...],
    kept: Sequence[np.ndarray],
    every: int,
    friction_is_known: bool = True,
) -> np.ndarray:
    """Warn of motions that are lost, and of friction that steps cannot follow.  Returns the step by which states were
    lost, 0 where they were not."""
    lost = np.zeros(batch, int) if mech.loops else warn_of_lost(mech, step, named, batch, kept, every)
    if not step.acting.laws or not kept[1].size:
        return lost
    dt = next(x for array, x in named.items() if array.name == "dt")
    longest = float(np.abs(dt).max(initial=0.0))
    warn_of_creep(mech, step.name, step.acting, longest, kept[1])
    if not step.is_implicit and friction_is_known:
        warn_of_slip_in_rollout(mech, step.name, longest, every * kept[0].shape[-2] * dt, *kept[:2])
    return lost
