"""The arrays that rollouts write: made or given, with the initial states in them, and looked at in the end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from ..compiler.ir.program import Array
from ..compiler.runtime.explanations import KernelError
from ..mechanics.elements.law import Acting
from ..mechanism import Mechanism
from ..motion.checks import warn_of_creep, warn_of_slip_in_rollout
from .closed_rollouts import finite_states, warn_first
from .steps import PER_STEP, fixed_steps


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


def warn_of_lost(
    mech: Mechanism,
    method: str,
    given: Mapping[Array, np.ndarray],
    batch: tuple[int, ...],
    records: Sequence[np.ndarray],
    every: int,
) -> None:
    """Where numbers that are finite have led to some that are not, which stay so: the last record tells."""
    finite = np.isfinite(records[1][..., -1, :])
    if finite.all():
        return
    lost = ~finite.all(axis=-1)
    inputs = with_batch({array: x for array, x in given.items() if array.name != "numbers"}, batch)
    lost &= finite_states(batch, *inputs.values())
    first = np.argmin(np.isfinite(records[1]).all(axis=-1), axis=-1)
    stiff = "where damping, friction or stops of joints, or kd of lw.control.joint_feedback, are stiff"
    other_method = "" if method == "semi_implicit" else f"method='semi_implicit' {stiff}, "
    warn_first(
        np.where(lost, (first + 1) * every, -1),
        inputs["dt"],
        f"steps of {method!r} are too long for the motion of mechanism {mech.name!r}, whose velocities grew beyond all "
        "numbers",
        f"take smaller steps, {other_method}or lw.simulate with method='radau'",
        every,
    )


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
    method: str,
    acting: Acting,
    named: Mapping[Array, np.ndarray],
    batch: tuple[int, ...],
    kept: Sequence[np.ndarray],
    every: int,
    friction_is_known: bool = True,
) -> None:
    """Tell of motions that are lost, and of friction that steps cannot follow."""
    if not mech.loops:
        warn_of_lost(mech, method, named, batch, kept, every)
    if not acting.laws or not kept[1].size:
        return
    dt = next(x for array, x in named.items() if array.name == "dt")
    longest = float(np.abs(dt).max(initial=0.0))
    warn_of_creep(mech, method, acting, longest, kept[1])
    if fixed_steps(method, 0.0)[1] is None and friction_is_known:
        warn_of_slip_in_rollout(mech, method, longest, every * kept[0].shape[-2] * dt, *kept[:2])
