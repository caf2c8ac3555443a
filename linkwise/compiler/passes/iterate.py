"""Equal parts of a program as a loop: a state that is handed on from one run of the part to the next."""

from __future__ import annotations

import numpy as np

from ..ir import ops
from ..ir.builder import body_between
from ..ir.program import CELL, INPUT, NUMBER, OUTPUT, For, Node, Place, Program


def iterate(program: Program, state: str, row: str, table: np.ndarray) -> Program:
    """The program ``x[0] = first; x[k + 1] = next(x[k], table[k]); result(x[len(table)])`` with one loop for all k.

    ``state`` and ``row`` are the inputs of ``program`` for x and a row of the table; its outputs are the result, which
    does not depend on a row, first, which depends on neither, and next, of the shape of x.  What next and the result
    need of the other inputs alone is computed once.
    """
    named = {array.name: k for k, array in enumerate(program.inputs)}
    x, r = named.pop(state), named.pop(row)
    width, columns = program.inputs[x].size, program.inputs[r].size
    position = {k: at for at, k in enumerate(named.values())}  # of the inputs that remain
    result, first, following = program.results
    varying: set[Node] = set()
    for node in program.nodes:
        if (node.op is ops.INPUT and node.value[0] in (x, r)) or any(arg in varying for arg in node.args):
            varying.add(node)
    needed = dict.fromkeys(arg for node in program.nodes if node in varying for arg in node.args)
    needed |= dict.fromkeys((*following, *result))
    conditions = [node for node in needed if node.op.result == "bool"]  # cells have numbers: they are computed again
    needed |= dict.fromkeys(arg for node in conditions for arg in node.args)
    kept = [node for node in needed if node.args and node not in varying and node.op.result != "bool"]
    states = [Place(CELL, 0, None, k) for k in range(width)]
    cells = {node: Place(CELL, 0, None, width + k) for k, node in enumerate(kept)}
    rows = [Place(NUMBER, 0, 0, k) for k in range(columns)]
    given, leaves = dict[Node, Place](), dict(cells)
    for node in program.nodes:
        if node.op is ops.INPUT:
            array, element = node.value
            if node in varying:
                leaves[node] = (states if array == x else rows)[element]
            else:
                given[node] = leaves[node] = Place(INPUT, position[array], None, element)
    start = body_between([*first, *kept], [*states, *cells.values()], given, "first")
    stage = body_between(following, states, leaves, "next")
    end = body_between(result, [Place(OUTPUT, 0, None, k) for k in range(len(result))], leaves, "result")
    once, zero = np.zeros((1, 1), int), np.zeros(1, int)
    loops = (
        For("before all iterations", (start,), zero, once),
        For("iterations", (stage,), np.zeros(len(table), int), columns * np.arange(len(table))[:, None]),
        For("after all iterations", (end,), zero, once),
    )
    numbers = np.asarray(table, float).ravel()
    inputs = tuple(program.inputs[k] for k in position)
    return Program(inputs, program.outputs[:1], (), (), program.name, loops, width + len(kept), numbers)
