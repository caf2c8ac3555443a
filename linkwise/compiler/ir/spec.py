"""The specification of legal programs as code; ``check`` verifies the output of every stage."""

from __future__ import annotations

import math
from itertools import islice

import numpy as np

from . import ops
from .program import CELL, INPUT, NUMBER, OUTPUT, RECORDS, REPEATS, For, Node, Program


class IllegalProgram(ValueError):
    """A program breaks a rule of the IR; the message names the node and the rule."""


def check(program: Program) -> Program:
    """Return ``program`` if it is legal, else raise IllegalProgram."""
    if program.loops:
        _check_loops(program)
    else:
        _check_operations(program)
    if program.carried:
        _check_time(program)
    return program


def _check_time(program: Program) -> None:
    """Over time, each carried output has the shape of its input, which has no axes of time; some input has both
    axes."""
    if sorted(k for k, _ in program.carried) != list(range(len(program.outputs))):
        raise IllegalProgram("not every output of a program over time is carried, once")
    for k, number in program.carried:
        source, target = program.outputs[k], program.inputs[number]
        if target.axes or source.shape != target.shape or source.axes not in ((), (RECORDS,)):
            raise IllegalProgram(f"output {source.name} cannot be carried to input {target.name}")
    if len({number for _, number in program.carried}) != len(program.outputs):
        raise IllegalProgram("two outputs are carried to one input")
    if {array.axes for array in program.inputs} - {()} != {(RECORDS, REPEATS)}:
        raise IllegalProgram("no input of a program over time has an element for every run")


def _check_loops(program: Program) -> None:
    """Bodies are legal, accesses stay inside their arrays, cells are written before they are read, and every result is
    written."""
    limits = {CELL: [program.cells], NUMBER: [len(program.numbers)]}
    limits |= {INPUT: [a.size for a in program.inputs], OUTPUT: [a.size for a in program.outputs]}
    for loop in program.loops:
        for level in loop.levels:
            _check_level(level, limits, (loop.bases,) if level is not loop else ())
        if loop.inner is not None:
            _check_trips(loop)
    _check_order(program)
    if program.results:
        _check_results(program)
        return
    written = [np.full(array.size, program.sparse) for array in program.outputs]
    for loop in () if program.sparse else program.loops:
        for _, _, place, elements in loop.elements(OUTPUT):
            written[place.array][elements] = True
    for array, done in zip(program.outputs, written, strict=True):
        if not done.all():
            raise IllegalProgram(f"output {array.name} is not written completely")


def _check_order(program: Program) -> None:
    """Cells are written before they are read: by an earlier loop, or by an earlier iteration."""
    written = np.full(program.cells, np.iinfo(np.int64).max)  # time of the first write
    start = 0
    for loop in program.loops:
        for *_, elements, when in loop.accesses(CELL, read=False):
            np.minimum.at(written, *np.broadcast_arrays(elements, start + when))
        for _, _, place, elements, when in loop.accesses(CELL, read=True):
            if (written[elements] >= start + when).any():
                raise IllegalProgram(f"loop {loop.label}: {place} is read before it is written")
        start += loop.duration


def _check_results(program: Program) -> None:
    """Results are in cells that have been written."""
    written = np.zeros(program.cells + 1, bool)
    written[-1] = True  # represents zero
    for loop in program.loops:
        for _, _, _, elements in loop.elements(CELL):
            written[elements] = True
    for array, places in zip(program.outputs, program.results, strict=True):
        if places.shape != (array.size,) or places.min(initial=-1) < -1 or places.max(initial=-1) >= program.cells:
            raise IllegalProgram(f"output {array.name} is in no cells")
        if not written[places].all():
            raise IllegalProgram(f"output {array.name} is not written completely")


def _check_level(loop: For, limits: dict[str, list[int]], around: tuple[np.ndarray, ...]) -> None:
    """Check bodies and places of a loop, or of a nested loop for the positions ``around`` of the surrounding one."""
    if loop.which.min(initial=0) < 0 or loop.which.max(initial=-1) >= len(loop.bodies):
        raise IllegalProgram(f"loop {loop.label}: an iteration has no body")
    for k, body in enumerate(loop.bodies):
        _check_operations(body.program)
        if [len(body.reads), len(body.writes)] != [body.program.inputs[0].size, body.program.outputs[0].size]:
            raise IllegalProgram(f"loop {loop.label}: a body has other arrays than places")
        bases = loop.bases[loop.which == k]
        for place in (*body.reads, *body.writes):
            least = greatest = place.offset
            for number, table in ((place.base, bases), *((place.outer, table) for table in around)):
                if number is not None and len(table):
                    least, greatest = least + table[:, number].min(), greatest + table[:, number].max()
            if least < 0 or greatest >= limits[place.space][place.array]:
                raise IllegalProgram(f"loop {loop.label}: {place} is outside its array")
            if place.outer is not None and not around:
                raise IllegalProgram(f"loop {loop.label}: {place} lies past a loop that is not there")
        for place in body.writes:
            if place.space in (INPUT, NUMBER):
                raise IllegalProgram(f"loop {loop.label}: {place} cannot be written")


def _check_trips(loop: For) -> None:
    """A nested loop has a trip for each surrounding iteration, and every trip ends."""
    inner = loop.inner
    assert inner is not None
    if len(inner.first) != len(loop.which) or len(inner.following) != len(inner.which) or inner.inner is not None:
        raise IllegalProgram(f"loop {loop.label}: its nested loop has not one trip for each iteration around it")
    count = len(inner.following)
    for rows in (inner.first, inner.following):
        if rows.min(initial=-1) < -1 or rows.max(initial=-1) >= count:
            raise IllegalProgram(f"loop {loop.label}: a trip leads to no iteration")
    if sum(1 for _ in islice(inner.steps, count + 1)) > count:
        raise IllegalProgram(f"loop {loop.label}: a trip has no end")


def _check_operations(program: Program) -> None:
    done: set[Node] = set()
    known = frozenset(ops.ALL)
    for node in program.nodes:
        op, args = node.op, node.args
        if op not in known:
            raise _illegal(node, f"unknown operation {op!r}")
        if len(args) != op.arity:
            raise _illegal(node, f"{op} takes {op.arity} operands")
        for position, arg in enumerate(args):
            if arg not in done:
                raise _illegal(node, f"operand %{arg.index} is not computed before it is used")
            wanted = "bool" if position == 0 and op.operands == "select" else "real"
            if arg.op.result != wanted:
                raise _illegal(node, f"operand {position} must be {wanted}")
        if not args:
            _check_leaf(program, node)
        elif node.value is not None:
            raise _illegal(node, "only constants and inputs have a value")
        if node in done:
            raise _illegal(node, "a node is evaluated twice")
        done.add(node)
    if len(program.results) != len(program.outputs):
        raise IllegalProgram(f"{len(program.outputs)} outputs are declared, {len(program.results)} given")
    for array, results in zip(program.outputs, program.results, strict=True):
        if len(results) != array.size:
            raise IllegalProgram(f"output {array.name} has {array.size} elements, {len(results)} given")
        for node in results:
            if node not in done or node.op.result != "real":
                raise _illegal(node, f"output {array.name} needs a computed real")


def _check_leaf(program: Program, node: Node) -> None:
    if node.op is ops.CONST:
        if not isinstance(node.value, float) or not math.isfinite(node.value):
            raise _illegal(node, "a constant is a finite float")
    else:
        array, element = node.value
        if not (0 <= array < len(program.inputs) and 0 <= element < program.inputs[array].size):
            raise _illegal(node, f"element {element} of input {array} does not exist")


def _illegal(node: Node, rule: str) -> IllegalProgram:
    return IllegalProgram(f"node {node!r}: {rule}")
