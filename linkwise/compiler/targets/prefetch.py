"""Prefetch-for-write of output cache lines."""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.program import Program
from .llvm_lines import CACHE_LINE, LARGE
from .llvm_vector import VectorType
from .register_assignment import AHEAD, COMPUTE, Action

COMPUTED = 2  # minimum operations per prefetched line: more prefetches would slow them down


def large_outputs(program: Program, vector: VectorType) -> list[int]:
    """Numbers of the large results."""
    return [i for i, array in enumerate(program.outputs) if array.size * vector.bits // 8 >= LARGE]


def add_prefetches(pieces: Sequence[list[Action]], program: Program, vector: VectorType) -> list[list[Action]]:
    """The actions with prefetches of the cache lines of large results, evenly spaced. A line is given by the number of
    its base address and its distance in bytes."""
    wanted = [
        (number * vector.lanes + lane, start)
        for number, output in enumerate(large_outputs(program, vector))
        for lane in range(vector.lanes)
        for start in range(0, program.outputs[output].size * vector.bits // 8, CACHE_LINE)
    ]
    computes = [[i for i, action in enumerate(actions) if action.kind == COMPUTE] for actions in pieces]
    computed = sum(map(len, computes))
    wanted = wanted[: computed // COMPUTED]
    due = [-(-(number * computed) // len(wanted)) for number in range(1, len(wanted) + 1)]
    lines, done, asked = [], 0, 0
    for actions, results in zip(pieces, computes, strict=True):
        piece: list[Action] = []
        start = 0
        while asked < len(wanted) and due[asked] <= done + len(results):
            end = results[due[asked] - done - 1]
            piece += [*actions[start:end], Action(AHEAD, None, wanted[asked])]
            start, asked = end, asked + 1
        lines.append(piece + actions[start:])
        done += len(results)
    return lines
