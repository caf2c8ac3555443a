"""Programs as text, one line per node, with a comment line where a new section starts."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from . import ops
from .program import INPUT, OUTPUT, RECORDS, REPEATS, Array, Node, Place, Program


def text(program: Program) -> str:
    """A readable listing; printing is deterministic."""
    if program.loops:
        return _looped(program)
    lines = [f"program {program.name}", *_inputs(program)]
    lines += _operations(program, lambda array, element: f"{program.inputs[array].name}[{element}]")
    number = {node: i for i, node in enumerate(program.nodes)}
    for array, results in zip(program.outputs, program.results, strict=True):
        lines.append(f"  out {_shaped(array)} = " + " ".join(f"%{number[n]}" for n in results))
    return "\n".join(lines) + "\n"


def _shaped(array: Array) -> str:
    """Name, axes of time and shape of an array."""
    return f"{array.name}[{', '.join(map(str, (*array.axes, *array.shape)))}]"


def _inputs(program: Program) -> list[str]:
    """The inputs, with the outputs that are carried to them over time."""
    carried = [f"{program.outputs[k].name} -> {program.inputs[n].name}" for k, n in program.carried]
    lines = [f"  in  {_shaped(array)}" for array in program.inputs]
    return [*lines, f"  for {RECORDS}, {REPEATS}: {', '.join(carried)}"] if carried else lines


def _looped(program: Program) -> str:
    def place(location: Place) -> str:
        array = {INPUT: program.inputs, OUTPUT: program.outputs}.get(location.space)
        name = location.space if array is None else array[location.array].name
        bases = [f"@{location.base}"] if location.base is not None else []
        bases += [f"@@{location.outer}"] if location.outer is not None else []
        return f"{name}[{' + '.join([*bases, str(location.offset)])}]"

    lines = [f"program {program.name}: {program.cells} cells, {len(program.numbers)} numbers", *_inputs(program)]
    for loop in program.loops:
        lines.append(f"  loop {loop.label}: {len(loop.which)} iterations")
        for k, (body, times) in enumerate(loop.all_bodies):
            of_row = k >= len(loop.bodies)
            lines.append(f"   body {k}{', of rows inwards' if of_row else ''}, {times} times")
            texts = [place(access) for access in body.reads]
            lines += _operations(body.program, lambda _, element, texts=texts: texts[element])  # type: ignore[misc]
            number = {node: i for i, node in enumerate(body.program.nodes)}
            results = zip(body.writes, body.program.results[0], strict=True)
            lines += [f"  {place(access)} = %{number[node]}" for access, node in results]
    lines += [f"  out {_shaped(array)}" for array in program.outputs]
    return "\n".join(lines) + "\n"


def _operations(program: Program, read: Callable[[int, int], str]) -> list[str]:
    """A line for each node, and a comment line at the start of a section."""
    number = {node: i for i, node in enumerate(program.nodes)}
    lines, section = [], None
    for node in program.nodes:
        if node.section != section and node.op not in (ops.CONST, ops.INPUT):
            section = node.section
            lines.append(f"  # {section}")
        lines.append(f"  %{number[node]} = {_right_hand_side(node, read, number)}")
    return lines


def _right_hand_side(node: Node, read: Callable[[int, int], str], number: Mapping[Node, int]) -> str:
    if node.op is ops.CONST:
        return repr(node.value)
    if node.op is ops.INPUT:
        return read(*node.value)
    return f"{node.op} " + " ".join(f"%{number[a]}" for a in node.args)
