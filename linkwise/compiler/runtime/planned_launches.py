"""Planned GPU launches as data, for callers that have the addresses of the arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np


class Outline(NamedTuple):
    """How an array lies in memory: strides in bytes."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def ndim(self) -> int:
        return len(self.shape)


class Place(NamedTuple):
    """So many bytes behind the beginning of an array of the call: inputs, outputs, then the arrays between."""

    array: int
    offset: int = 0


class PlannedLaunch(NamedTuple):
    """One kernel: the function, its blocks, their threads, bytes of shared memory that it asks for, arguments."""

    function: Any
    blocks: int
    threads: int
    shared: int
    arguments: tuple[Any, ...]  # numbers and places


class Plan(NamedTuple):
    """Launches, one after the other, and how many elements each array between them has: what one launch writes there,
    another one reads."""

    launches: tuple[PlannedLaunch, ...]
    between: tuple[int, ...] = ()

    def carry_out(self, starts: Sequence[int]) -> None:
        """Launch on the current stream, on arrays at these addresses: those of the call, then those between."""
        for function, blocks, threads, shared, arguments in self.launches:
            numbers = (starts[x.array] + x.offset if isinstance(x, Place) else x for x in arguments)
            function((blocks,), (threads,), tuple(map(np.int64, numbers)), shared_mem=shared)
