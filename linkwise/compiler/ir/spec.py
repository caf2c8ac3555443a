"""What a legal program is, as code: every stage's output can be checked with ``check``."""

from __future__ import annotations

import math
from typing import TypeVar

import numpy as np

from . import ops
from .looped import CELL, INPUT, NUMBER, OUTPUT, LoopedProgram
from .program import Node, Program

Checked = TypeVar("Checked", Program, LoopedProgram)


class IllegalProgram(ValueError):
    """A program breaks a rule of the IR; the message names the node and the rule."""


def check(program: Checked) -> Checked:
    """Return ``program`` if it is legal, else raise IllegalProgram."""
    if isinstance(program, LoopedProgram):
        _check_loops(program)
    else:
        _check_operations(program)
    return program


def _check_loops(program: LoopedProgram) -> None:
    """Bodies are legal, everything is read and written inside its array, and no result is forgotten.  That cells are
    written before they are read shows in ``program.unrolled``."""
    limits = {CELL: [program.cells], NUMBER: [len(program.numbers)]}
    limits |= {INPUT: [a.size for a in program.inputs], OUTPUT: [a.size for a in program.outputs]}
    written = [np.zeros(array.size, bool) for array in program.outputs]
    for loop in program.loops:
        if loop.which.min(initial=0) < 0 or loop.which.max(initial=-1) >= len(loop.bodies):
            raise IllegalProgram(f"loop {loop.label}: an iteration has no body")
        for k, body in enumerate(loop.bodies):
            _check_operations(body.program)
            if [len(body.reads), len(body.writes)] != [body.program.inputs[0].size, body.program.outputs[0].size]:
                raise IllegalProgram(f"loop {loop.label}: a body has other arrays than places")
            bases = loop.bases[loop.which == k]
            for place in (*body.reads, *body.writes):
                at = place.offset + (np.zeros(1, int) if place.base is None else bases[:, place.base])
                if at.min(initial=0) < 0 or at.max(initial=0) >= limits[place.space][place.array]:
                    raise IllegalProgram(f"loop {loop.label}: {place} is outside its array")
            for place in body.writes:
                if place.space in (INPUT, NUMBER):
                    raise IllegalProgram(f"loop {loop.label}: {place} cannot be written")
                if place.space == OUTPUT:
                    at = place.offset + (np.zeros(1, int) if place.base is None else bases[:, place.base])
                    written[place.array][at] = True
    for array, done in zip(program.outputs, written, strict=True):
        if not done.all():
            raise IllegalProgram(f"output {array.name} is not written completely")


def _check_operations(program: Program) -> None:
    done = set()
    for node in program.nodes:
        _require(node.op in ops.ALL, node, f"unknown operation {node.op!r}")
        _require(len(node.args) == node.op.arity, node, f"{node.op} takes {node.op.arity} operands")
        for position, arg in enumerate(node.args):
            _require(arg in done, node, f"operand %{arg.index} is not computed before it is used")
            wanted = "bool" if node.op.operands == "select" and position == 0 else "real"
            _require(arg.op.result == wanted, node, f"operand {position} must be {wanted}")
        if node.op is ops.CONST:
            _require(isinstance(node.value, float) and math.isfinite(node.value), node, "a constant is a finite float")
        elif node.op is ops.INPUT:
            array, element = node.value
            inside = 0 <= array < len(program.inputs) and 0 <= element < program.inputs[array].size
            _require(inside, node, f"element {element} of input {array} does not exist")
        else:
            _require(node.value is None, node, "only constants and inputs have a value")
        _require(node not in done, node, "a node is evaluated twice")
        done.add(node)
    if len(program.results) != len(program.outputs):
        raise IllegalProgram(f"{len(program.outputs)} outputs are declared, {len(program.results)} given")
    for array, results in zip(program.outputs, program.results, strict=True):
        if len(results) != array.size:
            raise IllegalProgram(f"output {array.name} has {array.size} elements, {len(results)} given")
        for node in results:
            _require(node in done and node.op.result == "real", node, f"output {array.name} needs a computed real")


def _require(condition: bool, node: Node, rule: str) -> None:
    if not condition:
        raise IllegalProgram(f"node {node!r}: {rule}")
