"""Programs evaluated on symbols: every scalar operation of a kernel becomes one of CasADi's."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import casadi
import numpy as np

import linkwise as lw

from .checks import Checked
from .matrices import identifier, matrix_shape, pattern, positions

#: What operations mean, as ``compiler/targets/numpy_reference.py`` defines it.
MEANING: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "neg": operator.neg,
    "sqrt": casadi.sqrt,
    "sin": casadi.sin,
    "cos": casadi.cos,
    "atan2": casadi.atan2,
    "less": operator.lt,
    "select": casadi.if_else,
}


def symbolic_function(kernel: lw.Kernel) -> casadi.Function:
    """The kernel's program as expressions; elements that are always zero are not stored."""
    program = kernel.straight_line
    symbols = [casadi.SX.sym(identifier(array.name), *matrix_shape(array.shape)) for array in program.inputs]
    elements = []
    for symbol, array in zip(symbols, program.inputs, strict=True):
        by_column = symbol.elements()
        elements.append([by_column[index] for index in positions(array.shape)])
    values: dict[Any, Any] = {}
    for node in program.nodes:
        if node.op.name == "const":
            values[node] = node.value
        elif node.op.name == "input":
            array, element = node.value
            values[node] = elements[array][element]
        else:
            values[node] = MEANING[node.op.name](*[values[arg] for arg in node.args])
    results = []
    for array, nodes, present in zip(program.outputs, program.results, program.sparsity, strict=True):
        indices = positions(array.shape)
        order = np.argsort(indices)
        order = order[present.ravel()[order]]
        stored = casadi.vertcat(*(values[nodes[k]] for k in order)) if len(order) else casadi.SX(0, 1)
        results.append(casadi.SX(pattern(*matrix_shape(array.shape), indices[order]), casadi.SX(stored)))
    names = [identifier(array.name) for array in program.inputs], [identifier(array.name) for array in program.outputs]
    return Checked(identifier(program.name), symbols, results, *names)
