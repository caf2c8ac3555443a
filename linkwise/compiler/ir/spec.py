"""What a legal program is, as code: every stage's output can be checked with ``check``."""

from __future__ import annotations

import math

from . import ops
from .program import Node, Program


class IllegalProgram(ValueError):
    """A program breaks a rule of the IR; the message names the node and the rule."""


def check(program: Program) -> Program:
    """Return ``program`` if it is legal, else raise IllegalProgram."""
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
    return program


def _require(condition: bool, node: Node, rule: str) -> None:
    if not condition:
        raise IllegalProgram(f"node {node!r}: {rule}")
