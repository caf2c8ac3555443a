"""Cache lines of large results, asked for while these are computed: storing them does not wait for memory then."""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.program import Program
from .llvm_lines import CACHE_LINE, LARGE
from .llvm_vector import VectorType
from .register_assignment import AHEAD, COMPUTE, Action

COMPUTED = 2  # operations for each line that is asked for: more lines would hold them up


def outputs_ahead(program: Program, vector: VectorType) -> list[int]:
    """Numbers of the results that are large."""
    return [i for i, array in enumerate(program.outputs) if array.size * vector.bits // 8 >= LARGE]


def with_lines_ahead(pieces: Sequence[list[Action]], program: Program, vector: VectorType) -> list[list[Action]]:
    """The actions, with the cache lines of large results, state by state, asked for at equal distances.  A line is told
    by the number of the address that it is counted from, and its distance in bytes."""
    wanted = [
        (number * vector.lanes + lane, start)
        for number, output in enumerate(outputs_ahead(program, vector))
        for lane in range(vector.lanes)
        for start in range(0, program.outputs[output].size * vector.bits // 8, CACHE_LINE)
    ]
    computed = sum(action.kind == COMPUTE for actions in pieces for action in actions)
    wanted = wanted[: computed // COMPUTED]
    found, done, asked = [], 0, 0
    for actions in pieces:
        piece = []
        for action in actions:
            if action.kind == COMPUTE:
                done += 1
                due = len(wanted) * done // computed
                piece += [Action(AHEAD, None, line) for line in wanted[asked:due]]
                asked = due
            piece.append(action)
        found.append(piece)
    return found
