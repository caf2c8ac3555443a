"""Recycled memory for large results.

The system clears new memory page by page on the first write, which can take longer than computing the numbers. Arrays
made here own their memory; when the last of them is gone, it waits for the next array of the same size.
"""

from __future__ import annotations

import gc
import math
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

LARGE = 1 << 20  # bytes; the C library itself recycles smaller blocks
KEPT = 1 << 28  # maximum bytes of all waiting blocks


class _Memory:
    """Some bytes; compared by identity."""

    def __init__(self, size: int):
        self.size = size
        self.bytes = np.empty(size, np.uint8)


_waiting: deque[_Memory] = deque()  # least recently used first; appending and removing are atomic


class _Lease:
    """Owner of a block of memory; the block is recycled when its last array is gone."""

    def __init__(self, size: int):
        self.memory = _get_block(size)
        self.__array_interface__ = self.memory.bytes.__array_interface__

    def __del__(self) -> None:
        _give_back(self.memory)


def empty(shape: tuple[int, ...], dtype: str | np.dtype) -> np.ndarray:
    """An array whose values are not set."""
    kind = np.dtype(dtype)
    size = math.prod(shape) * kind.itemsize
    if size < LARGE:
        return np.empty(shape, kind)
    return np.asarray(_Lease(size)).view(kind).reshape(shape)


def _get_block(size: int) -> _Memory:
    """A recycled block of memory, or a new one."""
    for memory in tuple(_waiting):
        if memory.size == size:
            try:
                _waiting.remove(memory)
            except ValueError:  # another thread was quicker
                continue
            return memory
    return _Memory(size)


def _give_back(memory: _Memory) -> None:
    if memory.size <= KEPT:
        _waiting.append(memory)
    while sum(block.size for block in tuple(_waiting)) > KEPT:
        try:
            _waiting.popleft()
        except IndexError:  # another thread was quicker
            return


@contextmanager
def collection_paused() -> Iterator[None]:
    """Context that pauses Python's cyclic garbage collector: programs consist of many small objects that all survive,
    and scanning them would take a third of compile time."""
    was_running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_running:
            gc.enable()
