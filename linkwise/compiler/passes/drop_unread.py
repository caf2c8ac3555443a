"""Pass: remove loop results that nothing reads."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..ir import ops
from ..ir.builder import body_between
from ..ir.program import CELL, OUTPUT, Body, Program, reachable


def drop_unread(program: Program) -> Program:
    """The program without writes of dead cells: neither results nor read by a live computation."""
    if not program.loops:
        return program
    used = np.zeros(program.cells + 1, bool)  # the last element represents zero
    for cells in program.results:
        used[cells] = True
    accesses: dict[tuple[Body, bool], dict[int, list[np.ndarray]]] = {}
    for loop in program.loops:
        for is_read in (True, False):
            for body, number, _, elements in loop.elements(CELL, is_read):
                accesses.setdefault((body, is_read), {}).setdefault(number, []).append(elements)

    def kept(body: Body) -> list[int]:
        """Numbers of the live results of a body."""
        cells = accesses.get((body, False), {})
        written = [k for k, place in enumerate(body.writes) if place.space == OUTPUT]
        return sorted([*written, *(k for k, parts in cells.items() if any(used[x].any() for x in parts))])

    before = -1
    while before != (before := int(np.count_nonzero(used))):
        for body, _ in program.bodies:
            wanted = [body.program.results[0][k] for k in kept(body)]
            read = accesses.get((body, True), {})
            for node in reachable([wanted]):
                if node.op is ops.INPUT:
                    for elements in read.get(node.value[1], ()):
                        used[elements] = True

    def changed(body: Body) -> Body:
        left = kept(body)
        return body_between(
            [body.program.results[0][k] for k in left],
            [body.writes[k] for k in left],
            lambda node: body.reads[node.value[1]] if node.op is ops.INPUT else None,
            body.program.name,
        )

    return replace(program, loops=tuple(loop.with_bodies(changed) for loop in program.loops))
