"""Inline a program into a trace."""

from __future__ import annotations

import numpy as np

from ..ir import ops
from ..ir.builder import Builder
from ..ir.program import Node, Program
from .tracer import Symbol


def inline(program: Program, *arrays: np.ndarray) -> list[np.ndarray]:
    """The outputs of ``program`` at ``arrays`` of symbols, one for each of its inputs: arrays of symbols and floats."""
    values = [np.asarray(array, dtype=object).ravel() for array in arrays]
    builder = next((x.builder for array in values for x in array if isinstance(x, Symbol)), None) or Builder()

    def given(array: int, element: int) -> Node:
        value = values[array][element]
        return value.node if isinstance(value, Symbol) else builder.const(value)

    new = builder.copy(program, given)
    outputs = []
    for array, results in zip(program.outputs, program.results, strict=True):
        flat = np.empty(array.size, dtype=object)
        for i, result in enumerate(results):
            node = new[result]
            flat[i] = node.value if node.op is ops.CONST else Symbol(node, builder)
        outputs.append(flat.reshape(array.shape))
    return outputs
