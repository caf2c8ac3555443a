"""Where the LLVM target keeps the values of one group of states: the layout of the scratch area."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

from ..ir import ops
from ..ir.program import Array, Node, Program
from .llvm_vector import VectorType


def identifier(name: str) -> str:
    return re.sub(r"\W", "_", name)


class Scratch:
    """Where values lie in the scratch area, in units of one vector: inputs, outputs, sines and cosines of
    inputs, and slots for values that had to leave their registers."""

    def __init__(self, program: Program, vector: VectorType):
        self.vector = vector
        self.input_names = [identifier(array.name) for array in program.inputs]
        self.input_offsets, size = _offsets(program.inputs, 0)
        self.output_offsets, size = _offsets(program.outputs, size)
        self.slots = {n: self.input_offsets[n.value[0]] + n.value[1] for n in program.nodes if n.op is ops.INPUT}
        self.angles: dict[Node, int] = {}  # input whose sine and cosine come first -> slot of the sine
        for node in program.nodes:
            if node.op in (ops.SIN, ops.COS) and node.args[0].op is ops.INPUT:
                sine = self.angles.setdefault(node.args[0], size + 2 * len(self.angles))
                self.slots[node] = sine + (node.op is ops.COS)
        self.size = size + 2 * len(self.angles)
        self.destinations: dict[Node, list[int]] = {}  # output elements that a node gives, unless it is constant
        self.constants: dict[int, float] = {}  # output elements that are constant
        for offset, results in zip(self.output_offsets, program.results, strict=True):
            for element, node in enumerate(results):
                if node.op is ops.CONST:
                    self.constants[offset + element] = node.value
                else:
                    self.destinations.setdefault(node, []).append(offset + element)
        self._free: list[int] = []

    @property
    def bytes(self) -> int:
        return self.size * self.vector.bytes

    def take(self) -> int:
        """A free slot."""
        if self._free:
            return self._free.pop()
        self.size += 1
        return self.size - 1

    def give_back(self, slot: int) -> None:
        self._free.append(slot)


def _offsets(arrays: Sequence[Array], start: int) -> tuple[list[int], int]:
    ends = list(itertools.accumulate((array.size for array in arrays), initial=start))
    return ends[:-1], ends[-1]
