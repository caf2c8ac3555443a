"""Programs as text, one line per node, with a comment line where a new section starts."""

from __future__ import annotations

from collections.abc import Mapping

from . import ops
from .program import Node, Program


def text(program: Program) -> str:
    """A readable listing; the same program always prints the same."""
    number = {node: i for i, node in enumerate(program.nodes)}
    lines = [f"program {program.name}"]
    lines += [f"  in  {a.name}{list(a.shape)}" for a in program.inputs]
    section = None
    for node in program.nodes:
        if node.section != section and node.op not in (ops.CONST, ops.INPUT):
            section = node.section
            lines.append(f"  # {section}")
        lines.append(f"  %{number[node]} = {_right_hand_side(node, program, number)}")
    for array, results in zip(program.outputs, program.results, strict=True):
        lines.append(f"  out {array.name}{list(array.shape)} = " + " ".join(f"%{number[n]}" for n in results))
    return "\n".join(lines) + "\n"


def _right_hand_side(node: Node, program: Program, number: Mapping[Node, int]) -> str:
    if node.op is ops.CONST:
        return repr(node.value)
    if node.op is ops.INPUT:
        array, element = node.value
        return f"{program.inputs[array].name}[{element}]"
    return f"{node.op} " + " ".join(f"%{number[a]}" for a in node.args)
