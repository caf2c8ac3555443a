"""Loops that hold or let go, state by state: masks, and kernels that take them, with the states left to NumPy that are
in doubt there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...compiler.registry import DECIDED_OPTIONS
from ...compiler.runtime.arrays import UnreadableArrayError, plain
from ...compiler.store import kernel_function, stored
from ...mechanism import Mechanism, MechanismError
from ...mechanism.clusters import clusters
from ..states import Float64Array, checked_arrays, common_batch, real_numbers
from .redundancy import redundancy, without_rounding

#: Kernels that sweep over links and multipliers where that costs less.
SWEPT = ("closed_multipliers", "closed_constraint_forces", "closed_loop_reactions", "closed_joint_wrenches")
MOST_COORDINATES = 40  # of a cluster: larger ones would take long to compile, as kernels have no loops

Reference = Callable[..., Float64Array]
Three = tuple[Float64Array, Float64Array, Float64Array]


def loop_mask(mech: Mechanism, active: Any, **others: np.ndarray) -> Float64Array | None:
    """(..., number of loops): 1 where a loop holds, 0 where it lets go; None if all hold.  The batches of ``others``,
    by name, must fit to it."""
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
    """(..., m): the mask of every constraint."""
    return np.repeat(mask, [loop.n_constraints for loop in mech.loops], axis=-1)


def that_count(
    mech: Mechanism, rows: Float64Array, active: Float64Array | None, tolerance: float | None = None
) -> Float64Array:
    """(..., m, k): numbers of all constraints, the first nv columns of which are G, without what the rounding of the
    data adds to the rank of G (``redundancy``), but where a ``tolerance`` of one's own decides what counts; and zero
    for loops that let go.  What is redundant among those that hold is a matter of the mechanism that has no others."""
    n = mech.nv
    if active is None:
        return without_rounding(mech, rows[..., :n], rows) if tolerance is None else rows
    rows = rows * row_mask(mech, active)[..., None]
    if tolerance is None and redundancy(mech).blocks:
        held = np.broadcast_to(active > 0.0, (*rows.shape[:-2], active.shape[-1]))
        for mask in np.unique(held.reshape(-1, held.shape[-1]), axis=0):
            states, own = (held == mask).all(axis=-1), row_mask(mech, mask).astype(bool)
            part, kept = mechanism_holding(mech, mask), rows[states][:, own]
            here = np.zeros((len(kept), *rows.shape[-2:]))
            here[:, own] = without_rounding(part, kept[..., :n], kept) if part.loops else kept
            rows[states] = here
    return rows


def mechanism_holding(mech: Mechanism, mask: np.ndarray) -> Mechanism:
    """The mechanism with those loops only that hold."""
    loops = [loop for loop, holds in zip(mech.loops, mask, strict=True) if holds]
    return stored(mech, (mechanism_holding, mask.tobytes()), lambda: mech.spanning_tree.with_loops(*loops))


def by_mask(
    function: Callable[..., Three],
    mech: Mechanism,
    active: Any,
    state: Mapping[str, Any],
    wrenches: Any = None,
    **options: Any,
) -> Three:
    """``function(mechanism, *state, wrenches)``, matrices (nv, nv), of the mechanism that has only the constraints
    that are ``active``: one after the other for all combinations of these in the batch."""
    names = dict(zip(state, checked_arrays(mech, wrenches, **state), strict=True))
    mask = loop_mask(mech, active, **names)
    assert mask is not None
    arrays = [*names.values()]
    if wrenches is not None:
        arrays.append(real_numbers("wrenches", wrenches))
    batch = _batch([*names.values()], mask, wrenches)
    cores = [(x.shape[-1],) for x in names.values()] + ([(mech.n_links, 6)] if wrenches is not None else [])
    arrays = [np.broadcast_to(x, (*batch, *core)) for x, core in zip(arrays, cores, strict=True)]
    mask = np.broadcast_to(mask, (*batch, mask.shape[-1]))
    results: list[Float64Array] = []
    for held in np.unique(mask.reshape(-1, mask.shape[-1]), axis=0):
        states = (mask == held).all(axis=-1)
        found = function(mechanism_holding(mech, held), *(x[states] for x in arrays), **options)
        results = results or [np.empty((*batch, *x.shape[-2:])) for x in found]
        for result, part in zip(results, found, strict=True):
            result[states] = part
    first, second, third = results or [np.empty((*batch, mech.nv, mech.nv)) for _ in range(3)]
    return first, second, third


class RefusedStates(MechanismError):
    """An error of some ``states`` of a batch, where these are true; the first of them is named between two halves of a
    sentence."""

    def __init__(self, before: str, states: np.ndarray, after: str) -> None:
        count = int(np.count_nonzero(states))
        where = f" in state {tuple(map(int, np.argwhere(states)[0]))}" if np.ndim(states) else ""
        super().__init__(before + where + (f" and {count - 1} more" if count > 1 else "") + after)
        self.before, self.states, self.after = before, states, after

    def among(self, chosen: np.ndarray) -> RefusedStates:
        """The same error where these are the ``chosen`` ones of a larger batch."""
        states = np.zeros(np.shape(chosen), dtype=bool)
        states[chosen] = self.states
        return RefusedStates(self.before, states, self.after)


def by_kernel(
    mech: Mechanism,
    name: str,
    arrays: Sequence[Float64Array],
    reference: Reference,
    active: Float64Array | None = None,
    wrenches: Any = None,
    options: tuple[tuple[str, Any], ...] = (),
) -> Float64Array:
    """What the kernel "closed_``name``" gives, compiled with the options; states that are in doubt there, and
    mechanisms that no kernel is made for, are left to ``reference(*arrays, active, wrenches)``."""
    (result,) = all_by_kernel(
        mech, f"closed_{name}", arrays, lambda *given: (reference(*given),), active, wrenches, options
    )
    return result


def all_by_kernel(
    mech: Mechanism,
    name: str,
    arrays: Sequence[Float64Array],
    reference: Callable[..., tuple[Float64Array, ...]],
    active: Float64Array | None = None,
    wrenches: Any = None,
    options: tuple[tuple[str, Any], ...] = (),
) -> tuple[Float64Array, ...]:
    """All results of the kernel ``name``; states of which one is not a number are left to ``reference``."""
    if not has_kernels(mech, active is None and name in SWEPT):
        return reference(*arrays, active, wrenches)
    more = [] if active is None else [active]
    if wrenches is not None:
        more.append(np.asarray(wrenches, dtype=float))
    ports = tuple(port for port, x in (("active", active), ("wrenches", wrenches)) if x is not None)
    request = (name, ("ports", ports), *options) if ports or options else name
    function = kernel_function(mech, request, None)
    with np.errstate(invalid="ignore"):  # what is in doubt is no number
        result = function(*arrays, *more)
    results = tuple(map(np.asarray, result if isinstance(result, tuple) else (result,)))
    if any(np.isnan(one).any() for one in results):
        batch = _batch(arrays, active, wrenches)
        states = [np.isnan(one).any(axis=tuple(range(len(batch), one.ndim))) for one in results]
        poor = np.any(states, axis=0)
        finite = [np.broadcast_to(np.isfinite(x).all(axis=-1), batch) for x in arrays]
        numbers = np.all(finite, axis=0)
        given = [np.broadcast_to(x, (*batch, x.shape[-1]))[poor] for x in arrays]
        on = None if active is None else np.broadcast_to(active, (*batch, active.shape[-1]))[poor]
        pushes = None if wrenches is None else np.broadcast_to(more[-1], (*batch, mech.n_links, 6))[poor]
        try:
            for one, right in zip(results, reference(*given, on, pushes), strict=True):
                one[poor] = right
                one[~numbers] = np.nan
        except RefusedStates as error:
            raise error.among(np.asarray(poor)) from None
    return tuple(one if one.ndim else one[()] for one in results)


def has_kernels(mech: Mechanism, swept: bool = False) -> bool:
    """Whether kernels of loops that hold or let go serve a mechanism: all that moves has inertia without the loops, its
    data are exact enough, and no cluster is very large, but for those that are ``swept`` where all loops hold."""
    try:
        return mech._kernels[has_kernels, swept]
    except KeyError:
        return stored(mech, (has_kernels, swept), lambda: _has_kernels(mech, swept))


def _has_kernels(mech: Mechanism, swept: bool) -> bool:
    if not mech.loops or mech.singular_joints or redundancy(mech).blocks:
        return False
    large = [k for k, cluster in enumerate(clusters(mech)) if len(cluster.coordinates) > MOST_COORDINATES]
    if not large:
        return True
    sweeps = DECIDED_OPTIONS["sweeps"](mech) if swept else ()
    return bool(sweeps) and all(sweeps[k] is not None for k in large)


def _batch(arrays: Sequence[Float64Array], active: Float64Array | None, wrenches: Any) -> tuple[int, ...]:
    shapes = [x.shape[:-1] for x in arrays]
    if active is not None:
        shapes.append(active.shape[:-1])
    if wrenches is not None:
        shapes.append(np.shape(wrenches)[:-2])
    return np.broadcast_shapes(*shapes)
