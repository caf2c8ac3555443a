"""Large batches over several threads: the loops run without the interpreter lock."""

from __future__ import annotations

import contextvars
import itertools
import math
import numbers
import os
import re
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import lru_cache
from typing import Any

import numpy as np

from . import memory, workers
from .arrays import all_plain
from .gufunc import inner_loop

# Waking a thread costs some tens of microseconds; its share should take longer.  Threads take tiles one at a time:
# large enough that counting them costs nothing, small enough that all threads end together.
_OPERATIONS_PER_TASK = 1_000_000 if sys.platform.startswith("linux") else 4_000_000
_TILES_PER_THREAD = 4
_OPERATIONS_PER_TILE = (200_000, 10_000_000)
_STATES_PER_GROUP = 16  # tiles are whole groups of SIMD lanes
# Machine code cannot be interrupted: long work is divided into calls of some tenths of a second for Ctrl-C.
_OPERATIONS_PER_CALL = 1_000_000_000

_MAX_THREADS = 1024  # more than any machine has; a larger request is a mistake

_num_threads: int | None = None
_pool: workers.Workers | None = None


def set_num_threads(n: int) -> None:
    """Use up to ``n`` threads for large batches."""
    global _num_threads
    if not isinstance(n, numbers.Integral) or not 1 <= n <= _MAX_THREADS:
        raise ValueError(f"the number of threads must be a positive integer, at most {_MAX_THREADS}, not {n!r}")
    _num_threads = int(n)
    _drop_pool()


def get_num_threads() -> int:
    """The number of threads for large batches; at first, the CPUs this process may run on."""
    if _num_threads is not None:
        return _num_threads
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def states_per_task(operations: int) -> int:
    """Number of states, of this many scalar operations each, that justify a thread."""
    return max(1, _OPERATIONS_PER_TASK // max(1, operations))


def threaded(ufunc: np.ufunc, operations: int) -> Callable[..., np.ndarray | tuple[np.ndarray, ...]]:
    """``ufunc`` as a function ``(*arrays, out=None)`` that uses threads for large batches.

    ``operations``: scalar operations per state.  Arrays with fewer numbers than a task has states go straight through.
    Arrays of other libraries are accepted.
    """
    enough, array_type = states_per_task(operations), np.ndarray
    cores = _core_shapes(ufunc)[: ufunc.nin]
    few = [(len(core), 2 * enough * math.prod(core)) for core in cores]  # sizes of too few states

    few_of_first = few[0][1] if len(few) == 1 else enough

    def run(*arrays: Any, out: Any = None) -> np.ndarray | tuple[np.ndarray, ...]:
        for array in arrays:
            if type(array) is not array_type:
                return run_anything(arrays, out)
            if array.size > few_of_first:
                if all_of_few_states(arrays):
                    break
                return call_threaded(ufunc, arrays, out, operations)
        return ufunc(*arrays) if out is None else ufunc(*arrays, out=out)

    def all_of_few_states(arrays: Sequence[Any]) -> bool:
        """Whether the batch, common to all arrays, is too small to be split; otherwise ``call_threaded`` decides."""
        batch = None
        for array, (rank, limit) in zip(arrays, few, strict=False):
            if (
                type(array) is not array_type
                or array.size >= limit
                or batch not in (None, array.shape[: array.ndim - rank])
            ):
                return False
            batch = array.shape[: array.ndim - rank]
        return True

    def run_anything(inputs: Sequence[Any], out: Any) -> np.ndarray | tuple[np.ndarray, ...]:
        """For numbers, lists and arrays of other libraries."""
        arrays = all_plain(inputs)
        if any(getattr(array, "size", 0) > enough for array in arrays):
            return call_threaded(ufunc, arrays, out, operations)
        return ufunc(*arrays) if out is None else ufunc(*arrays, out=out)

    return run


def call_threaded(
    ufunc: np.ufunc,
    arrays: Sequence[np.ndarray],
    out: np.ndarray | tuple[np.ndarray | None, ...] | None = None,
    operations: int = _OPERATIONS_PER_TASK,
) -> np.ndarray | tuple[np.ndarray, ...]:
    """``ufunc(*arrays, out=out)``, with the batch split over threads if it is large enough.

    ``operations``: scalar operations per state.  Rows of states are cut into tiles that threads take one at a time.  If
    NumPy is needed, the longest axis of the broadcast batch is cut into equal pieces, one per thread.
    """
    arrays = [np.asarray(array) for array in arrays]
    batch = _batch_shape(ufunc, arrays)
    outputs = out if isinstance(out, tuple) else (out,) * (out is not None)
    out = outputs or (None,) * ufunc.nout  # None alone is valid for one result only
    enough = states_per_task(operations)
    if batch is None or math.prod(batch) < 2 * enough:
        return ufunc(*arrays, out=out)
    states, longest = math.prod(batch), max(batch, default=1)
    count = min(get_num_threads(), states // enough, longest)
    calls = min(-(-states * operations // (count * _OPERATIONS_PER_CALL)), longest // count)
    overlap = any(np.may_share_memory(array, result) for result in outputs for array in arrays if result is not None)
    if overlap:
        return ufunc(*arrays, out=out)
    results = _results(ufunc, batch, outputs)
    if count == 1 and calls == 1:
        return ufunc(*arrays, out=tuple(results))
    if not _run_workers(ufunc, batch, [*arrays, *results], operations, count):
        _run_pool(ufunc, batch, [*arrays, *results], count, calls)
    return results[0] if len(results) == 1 else tuple(results)


def shares(states: int, operations: int) -> tuple[int, int]:
    """Number of useful threads for states of this many operations each, and the tile size."""
    count = max(1, min(get_num_threads(), states // states_per_task(operations)))
    return count, _tile(states, operations, count)


def _tile(states: int, operations: int, count: int) -> int:
    """Number of states per tile."""
    at_least, at_most = (-(-bound // max(1, operations)) for bound in _OPERATIONS_PER_TILE)
    tile = min(max(-(-states // (_TILES_PER_THREAD * count)), at_least), at_most)
    return -(-tile // _STATES_PER_GROUP) * _STATES_PER_GROUP


def _run_workers(
    ufunc: np.ufunc, batch: tuple[int, ...], operands: Sequence[np.ndarray], operations: int, count: int
) -> bool:
    """Process tiles in threads without Python. Returns False, without results, if NumPy is needed: for casts, for
    batches that are not rows of states, for errors."""
    job = _job(ufunc, batch, operands)
    if job is None:
        return False
    states, tile = math.prod(batch), _tile(math.prod(batch), operations, count)
    per_call = max(tile, count * _OPERATIONS_PER_CALL // operations)
    for start in range(0, states, per_call):
        _threads().run(job, start, min(start + per_call, states), tile, count - 1)
    return not job.raised  # NumPy reports which status it was


def _job(ufunc: np.ufunc, batch: tuple[int, ...], operands: Sequence[np.ndarray]) -> workers.Job | None:
    """The work of one call, if all operands fit the loop directly: rows of states of its own dtype."""
    loop = inner_loop(ufunc) if workers.native() is not None else None
    if loop is None or ufunc.signature is None or len(operands) > workers.MAX_OPERANDS:
        return None
    names, kinds = _core_names(ufunc.signature), ufunc.types[0].replace("->", "")
    sizes: dict[str, int] = {}
    steps: list[int] = []
    inner: list[int] = []
    for array, kind, core in zip(operands, kinds, names, strict=True):
        depth = array.ndim - len(core)
        step = _step(array.shape[:depth], array.strides[:depth], batch) if depth >= 0 else None
        if step is None or array.dtype.char != kind or not array.flags.aligned or not array.dtype.isnative:
            return None
        for name, size in zip(core, array.shape[depth:], strict=True):
            if sizes.setdefault(name, size) != size or (name.isdecimal() and int(name) != size):
                return None
        steps.append(step)
        inner.extend(array.strides[depth:])
    bases = [array.ctypes.data for array in operands]
    return workers.Job(loop, bases, list(sizes.values()), [*steps, *inner])


def _step(shape: tuple[int, ...], strides: tuple[int, ...], batch: tuple[int, ...]) -> int | None:
    """Bytes from one state of a batch to the next, 0 for a single shared state; None if the states are not
    equidistant."""
    if len(shape) == 1 and shape == batch:
        return strides[0]
    if math.prod(shape) == 1:
        return 0
    if shape != batch:
        return None
    along = [(size, stride) for size, stride in zip(shape, strides, strict=True) if size > 1]
    in_a_row = all(outer[1] == inner[0] * inner[1] for outer, inner in itertools.pairwise(along))
    return along[-1][1] if in_a_row else None


def _run_pool(ufunc: np.ufunc, batch: tuple[int, ...], operands: Sequence[np.ndarray], count: int, calls: int) -> None:
    """Process pieces in Python's threads."""
    pieces = _pieces(ufunc, batch, operands, count * calls)
    first, *others = (pieces[i : i + calls] for i in range(0, len(pieces), calls))
    contexts = [contextvars.copy_context() for _ in others]  # numpy.errstate applies in the threads, too
    stop = threading.Event()
    pool = ThreadPoolExecutor(max(1, count - 1), thread_name_prefix="linkwise")  # the caller does a piece itself
    futures = [
        pool.submit(context.run, _call, ufunc, share, stop) for context, share in zip(contexts, others, strict=True)
    ]
    try:
        _call(ufunc, first, stop)
    except BaseException:
        stop.set()
        raise
    finally:
        wait(futures)  # no thread may write into the arrays after the return
        pool.shutdown()
    for future in futures:
        future.result()


def _batch_shape(ufunc: np.ufunc, arrays: Sequence[np.ndarray]) -> tuple[int, ...] | None:
    """The broadcast batch, or None if the arrays do not fit; NumPy then raises the error."""
    cores = _core_shapes(ufunc)
    if len(arrays) != ufunc.nin:
        return None
    shapes = {array.shape[: max(0, array.ndim - len(core))] for array, core in zip(arrays, cores, strict=False)}
    if len(shapes) == 1:
        return shapes.pop()
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        return None


def _pieces(
    ufunc: np.ufunc, batch: tuple[int, ...], operands: Sequence[np.ndarray], count: int
) -> list[list[np.ndarray]]:
    """``count`` lists of operands, each a share of the batch along its longest axis."""
    axis = int(np.argmax(batch)) - len(batch)  # counted from the end of the batch
    bounds = [batch[axis] * i // count for i in range(count + 1)]
    axes = [axis - len(core) for core in _core_shapes(ufunc)]
    return [
        [_piece(array, axis, start, stop) for array, axis in zip(operands, axes, strict=True)]
        for start, stop in itertools.pairwise(bounds)
    ]


def _call(ufunc: np.ufunc, share: Sequence[Sequence[np.ndarray]], stop: threading.Event) -> None:
    """One thread's share, unless another has stopped the work."""
    for operands in share:
        if stop.is_set():
            return
        ufunc(*operands[: ufunc.nin], out=tuple(operands[ufunc.nin :]))


def _results(ufunc: np.ufunc, batch: tuple[int, ...], outputs: tuple[np.ndarray | None, ...]) -> list[np.ndarray]:
    """The output arrays: the given ones, and new ones for the others."""
    outputs = outputs or (None,) * ufunc.nout
    types = ufunc.types[0].split("->")[1]
    cores = _core_shapes(ufunc)[ufunc.nin :]
    return [
        memory.empty(batch + core, kind) if array is None else array
        for array, kind, core in zip(outputs, types, cores, strict=True)
    ]


def _piece(array: np.ndarray, axis: int, start: int, stop: int) -> np.ndarray:
    """``array[start:stop]`` along ``axis`` (counted from the end), or the full array if it is broadcast along this
    axis."""
    if array.ndim < -axis or array.shape[axis] == 1:
        return array
    return array[(slice(None),) * (array.ndim + axis) + (slice(start, stop),)]


def _core_shapes(ufunc: np.ufunc) -> tuple[tuple[int, ...], ...]:
    """Core shapes of all operands, from the signature; -1 for named sizes, which require given outputs."""
    return ((),) * ufunc.nargs if ufunc.signature is None else _parse_shapes(ufunc.signature)


@lru_cache
def _parse_shapes(signature: str) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(int(size) if size.isdecimal() else -1 for size in core) for core in _core_names(signature))


@lru_cache
def _core_names(signature: str) -> tuple[tuple[str, ...], ...]:
    """Names, or fixed sizes, of every operand's core dimensions."""
    groups = re.findall(r"\(([^)]*)\)", signature)
    return tuple(tuple(size for size in group.split(",") if size) for group in groups)


def _threads() -> workers.Workers:
    global _pool
    if _pool is None:  # the calling thread works too
        _pool = workers.Workers(get_num_threads() - 1)
    return _pool


def _drop_pool() -> None:
    """Detach the thread pool: running calls may finish, the next call makes a new one."""
    global _pool
    if _pool is not None:
        _pool.end()
    _pool = None


def _forget_pool() -> None:
    """Forget the thread pool in a forked child, which has no threads."""
    global _pool
    _pool = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)
