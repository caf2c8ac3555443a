"""Results that a kernel on the GPU writes element by element, some states at a time, and that are laid out as rows
then (``cuda_transposition``)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..ir.program import Array
from ..targets import cuda_transposition
from ..targets.cuda_spills import WARP


@dataclass(frozen=True)
class Transposed:
    """Which results, and what it takes.

    function   the transposition
    outputs    the results of the kernel
    which      those of them that are transposed
    steps      strides of the batch of all arrays, in elements
    """

    function: Any
    dtype: np.dtype
    outputs: tuple[Array, ...]
    which: tuple[bool, ...]
    steps: tuple[int, ...]

    @property
    def at_a_time(self) -> int:
        sizes = (array.size for array, chosen in zip(self.outputs, self.which, strict=True) if chosen)
        return cuda_transposition.states_at_a_time(self.dtype.itemsize * sum(sizes))

    def of_kernel(self, strides: Sequence[Any]) -> list[Any]:
        """The strides that the kernel is given: element by element where results are transposed."""
        count = len(strides) - len(self.outputs)
        found = list(strides[:count])
        for own, array, chosen in zip(strides[count:], self.outputs, self.which, strict=True):
            pitch = self.at_a_time
            core = [pitch * math.prod(array.shape[k + 1 :]) for k in range(len(array.shape))]
            found.append(([1], own[1], core) if chosen else own)
        return found

    def run(self, cupy: Any, launch: Any, arrays: Sequence[Any]) -> None:
        """The kernel and the transposition, in turn."""
        size, pitch, (states, *_) = self.dtype.itemsize, self.at_a_time, launch.head
        count = len(arrays) - len(self.outputs)
        between = [
            cupy.empty((array.size, pitch), self.dtype) if chosen else None
            for array, chosen in zip(self.outputs, self.which, strict=True)
        ]
        (threads,) = launch.block
        for first in range(0, int(states), pitch):
            some = min(pitch, int(states) - first)
            places = [np.int64(x.data.ptr + first * step * size) for x, step in zip(arrays, self.steps, strict=True)]
            given = places[:count] + [
                place if x is None else np.int64(x.data.ptr) for place, x in zip(places[count:], between, strict=True)
            ]
            arguments = (np.int64(some), *launch.head[1:], *given, *launch.tail)
            launch.kernel((-(-some // threads),), launch.block, arguments, shared_mem=launch.shared)
            for array, x, to, step in zip(self.outputs, between, places[count:], self.steps[count:], strict=True):
                if x is None:
                    continue
                grid = (cuda_transposition.blocks(some, array.size),)
                numbers = (
                    np.int64(some),
                    np.int64(array.size),
                    np.int64(x.data.ptr),
                    np.int64(pitch),
                    to,
                    np.int64(step),
                )
                self.function(grid, (cuda_transposition.WARPS * WARP,), numbers, shared_mem=0)
