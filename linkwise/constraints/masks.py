"""Active loops, state by state: masks, and mechanisms with the active loops only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..compiler.runtime.arrays import UnreadableArrayError, plain
from ..compiler.store import stored
from ..dynamics.states import Float64Array, common_batch
from ..mechanism import Mechanism, MechanismError
from .redundancy import redundancy, without_rounding


def loop_mask(mech: Mechanism, active: Any, **others: np.ndarray) -> Float64Array | None:
    """(..., len(mech.loops)): 1 for active loops, 0 for others; None if all are active.  Batches of the arrays
    ``others`` must broadcast with it."""
    if active is None:
        return None
    count = len(mech.loops)
    meant = f"one for each of the {count} loops of mechanism {mech.name!r}"
    try:
        array = np.asarray(plain(active))
    except (UnreadableArrayError, ValueError) as error:
        raise MechanismError(f"active is no array of booleans, {meant}: {error}") from None
    if array.dtype != bool:
        raise MechanismError(f"active has dtype {array.dtype}, but booleans are needed, {meant}, in the order of loops")
    if array.shape[-1:] != (count,):
        raise MechanismError(f"active has shape {array.shape}, expected (..., {count}): {meant}")
    common_batch({**{name: other.shape[:-1] for name, other in others.items()}, "active": array.shape[:-1]})
    return array.astype(float)


def row_mask(mech: Mechanism, mask: Float64Array) -> Float64Array:
    """(..., m): the mask of each row of G."""
    return np.repeat(mask, [loop.n_constraints for loop in mech.loops], axis=-1)


def mask_constraints(
    mech: Mechanism, rows: Float64Array, active: Float64Array | None, tolerance: float | None = None
) -> Float64Array:
    """(..., m, k): rows of constraints, of which the first nv columns are G, with inactive rows zeroed and constraints
    redundant up to rounding projected out (``redundancy``).  With a ``tolerance`` nothing is projected out.  Redundancy
    is decided for the mechanism with the active loops only."""
    n = mech.nv
    if active is None:
        return without_rounding(mech, rows[..., :n], rows) if tolerance is None else rows
    rows = rows * row_mask(mech, active)[..., None]
    if tolerance is None and redundancy(mech).blocks:
        held = np.broadcast_to(active > 0.0, (*rows.shape[:-2], active.shape[-1]))
        for mask in np.unique(held.reshape(-1, held.shape[-1]), axis=0):
            states, active_rows = (held == mask).all(axis=-1), row_mask(mech, mask).astype(bool)
            part, kept = mechanism_holding(mech, mask), rows[states][:, active_rows]
            here = np.zeros((len(kept), *rows.shape[-2:]))
            here[:, active_rows] = without_rounding(part, kept[..., :n], kept) if part.loops else kept
            rows[states] = here
    return rows


def mechanism_holding(mech: Mechanism, mask: np.ndarray) -> Mechanism:
    """The mechanism with its active loops only."""
    loops = [loop for loop, holds in zip(mech.loops, mask, strict=True) if holds]
    return stored(mech, (mechanism_holding, mask.tobytes()), lambda: mech.spanning_tree.with_loops(*loops))


def map_over_masks(
    function: Callable[..., NDArray[Any]], mech: Mechanism, active: Float64Array, *arrays: np.ndarray
) -> NDArray[Any]:
    """(..., *core): ``function(mechanism, *arrays)``, evaluated once per mask with the mechanism of its active loops
    and the states of arrays (..., n) under this mask.  The core shape is the largest of all, padded with zeros."""
    batch = np.broadcast_shapes(active.shape[:-1], *(x.shape[:-1] for x in arrays))
    held = np.broadcast_to(active > 0.0, (*batch, active.shape[-1]))
    state_arrays = [np.broadcast_to(x, (*batch, x.shape[-1])) for x in arrays]
    masks = np.unique(held.reshape(-1, held.shape[-1]), axis=0) if held.size else np.ones((1, held.shape[-1]), bool)
    each = [np.asarray((held == mask).all(axis=-1)) for mask in masks]
    results = [
        np.asarray(function(mechanism_holding(mech, mask), *(x[states] for x in state_arrays)))
        for mask, states in zip(masks, each, strict=True)
    ]
    core = np.max([result.shape[1:] for result in results], axis=0).astype(int)
    filled = np.zeros((*batch, *core), dtype=results[0].dtype)
    for states, result in zip(each, results, strict=True):
        padded = np.pad(
            result, [(0, 0), *((0, most - size) for most, size in zip(core, result.shape[1:], strict=True))]
        )
        filled[states] = padded if batch else padded[0]
    return filled
