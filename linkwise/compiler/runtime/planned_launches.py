"""Planned GPU launches as data, for callers with the addresses of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np


class Outline(NamedTuple):
    """Memory layout of an array: strides in bytes."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def ndim(self) -> int:
        return len(self.shape)


class Place(NamedTuple):
    """Byte offset from the start of an array of the call, numbered as inputs, outputs, intermediate arrays."""

    array: int
    offset: int = 0


class PlannedLaunch(NamedTuple):
    """One kernel launch: function, blocks, threads per block, shared memory in bytes, arguments."""

    function: Any
    blocks: int
    threads: int
    shared: int
    arguments: tuple[Any, ...]  # numbers and places


class Plan(NamedTuple):
    """Consecutive launches, and the number of elements of each intermediate array that passes data between them."""

    launches: tuple[PlannedLaunch, ...]
    between: tuple[int, ...] = ()

    def carry_out(self, starts: Sequence[int]) -> None:
        """Launch on the current stream, with the addresses of the call's arrays followed by those of intermediate
        arrays."""
        for function, blocks, threads, shared, arguments in self.launches:
            numbers = (starts[x.array] + x.offset if isinstance(x, Place) else x for x in arguments)
            function((blocks,), (threads,), tuple(map(np.int64, numbers)), shared_mem=shared)
