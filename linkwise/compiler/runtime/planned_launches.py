"""What a call launches on the GPU, as data: for whoever has the addresses of the arrays."""

from __future__ import annotations

from typing import Any, NamedTuple


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
