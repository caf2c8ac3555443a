"""A program used inside a trace: what it computes becomes part of the program under way."""

from __future__ import annotations

import numpy as np

from ..ir import ops
from ..ir.builder import Builder
from ..ir.program import Node, Program
from .tracer import Symbol


def inline(program: Program, *arrays: np.ndarray) -> list[np.ndarray]:
    """The outputs of ``program`` at ``arrays`` of symbols, one for each of its inputs, as arrays of symbols and floats.

    The program must hold no fused operations, which only ``passes`` make.
    """
    values = [np.asarray(array, dtype=object).ravel() for array in arrays]
    builder = next((x.builder for array in values for x in array if isinstance(x, Symbol)), None) or Builder()
    section = builder.section
    new: dict[Node, Node] = {}
    for node in program.nodes:
        if node.op is ops.INPUT:
            array, element = node.value
            given = values[array][element]
            new[node] = given.node if isinstance(given, Symbol) else builder.const(given)
        else:
            new[node] = builder.rebuild(node, tuple(new[arg] for arg in node.args))
    builder.section = section
    outputs = []
    for array, results in zip(program.outputs, program.results, strict=True):
        flat = np.empty(array.size, dtype=object)
        for i, result in enumerate(results):
            node = new[result]
            flat[i] = node.value if node.op is ops.CONST else Symbol(node, builder)
        outputs.append(flat.reshape(array.shape))
    return outputs
