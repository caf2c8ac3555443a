"""GPU results that a kernel writes element by element for some states at a time, and a transposition lays out as rows
(``cuda_transposition``)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..ir.program import Array
from ..targets import cuda_transposition
from ..targets.cuda_spills import WARP
from .planned_launches import Place, Plan, PlannedLaunch


@dataclass(frozen=True)
class Transposed:
    """The transposed results of a launch.

    function   the transposition
    states     number of states
    outputs    the results of the kernel
    which      the transposed ones among them
    steps      batch strides of all arrays, in elements
    """

    function: Any
    dtype: np.dtype
    states: int
    outputs: tuple[Array, ...]
    which: tuple[bool, ...]
    steps: tuple[int, ...]

    @property
    def chunk_size(self) -> int:
        sizes = (array.size for array, chosen in zip(self.outputs, self.which, strict=True) if chosen)
        most = cuda_transposition.states_at_a_time(self.dtype.itemsize * sum(sizes))
        return min(most, -(-self.states // WARP) * WARP)

    def kernel_strides(self, strides: Sequence[Any]) -> list[Any]:
        """The strides passed to the kernel: element by element for transposed results."""
        count = len(strides) - len(self.outputs)
        layouts = list(strides[:count])
        for layout, array, chosen in zip(strides[count:], self.outputs, self.which, strict=True):
            pitch = self.chunk_size
            core = [pitch * math.prod(array.shape[k + 1 :]) for k in range(len(array.shape))]
            layouts.append(([1], layout[1], core) if chosen else layout)
        return layouts

    def plan(self, launch: Any) -> Plan:
        """The launches of kernel and transposition in turn."""
        (threads,), pitch, size, count = launch.block, self.chunk_size, self.dtype.itemsize, len(self.steps)
        inputs = count - len(self.outputs)
        numbers = itertools.count(count)
        between = [Place(next(numbers)) if chosen else None for chosen in self.which]
        launches = []
        for first in range(0, self.states, pitch):
            some = min(pitch, self.states - first)
            positions = [Place(k, first * step * size) for k, step in enumerate(self.steps)]
            written = [near or position for near, position in zip(between, positions[inputs:], strict=True)]
            arguments = (some, *launch.head[1:], *positions[:inputs], *written, *launch.tail)
            launches.append(PlannedLaunch(launch.kernel, -(-some // threads), threads, launch.shared, arguments))
            for array, near, operand, step in zip(
                self.outputs, between, positions[inputs:], self.steps[inputs:], strict=True
            ):
                if near is not None:
                    blocks = cuda_transposition.blocks(some, array.size)
                    moved = (some, array.size, near, pitch, operand, step)
                    launches.append(PlannedLaunch(self.function, blocks, cuda_transposition.WARPS * WARP, 0, moved))
        chosen = (array for array, is_chosen in zip(self.outputs, self.which, strict=True) if is_chosen)
        return Plan(tuple(launches), tuple(array.size * pitch for array in chosen))

    def run(self, cupy: Any, launch: Any, arrays: Sequence[Any]) -> None:
        """Carry out the plan."""
        plan = self.plan(launch)
        between = [cupy.empty(size, self.dtype) for size in plan.between]
        plan.carry_out([x.data.ptr for x in (*arrays, *between)])
