"""Pass: unroll loops into straight-line code."""

from __future__ import annotations

from dataclasses import replace

from ..ir.builder import Builder
from ..ir.program import CELL, NUMBER, OUTPUT, Body, Node, Program, reachable


def unroll(program: Program) -> Program:
    """An equivalent program of straight-line code; loops over time stay."""
    if not program.loops:
        return program
    builder = Builder()
    cells: dict[int, Node] = {}
    written: list[dict[int, Node]] = [{} for _ in program.outputs]
    zero = builder.const(0.0)
    for body, bases, around in program.iterations:

        def read(_: int, element: int, body: Body = body, bases: list[int] = bases, around: list[int] = around) -> Node:
            place = body.reads[element]
            at = place.at(bases, around)
            if place.space == CELL:
                return cells[at]
            if place.space == NUMBER:
                return builder.const(program.numbers[at])
            if place.space == OUTPUT:
                return written[place.array].get(at, zero)
            return builder.input(place.array, at)

        new = builder.copy(body.program, read)
        for place, node in zip(body.writes, body.program.results[0], strict=True):
            (cells if place.space == CELL else written[place.array])[place.at(bases, around)] = new[node]
    if program.results:
        results = tuple(tuple(cells.get(cell, zero) for cell in group.tolist()) for group in program.results)
    else:
        both = zip(written, program.outputs, strict=True)
        results = tuple(
            tuple(values.get(k, zero) if program.sparse else values[k] for k in range(array.size))
            for values, array in both
        )
    code = Program(program.inputs, program.outputs, reachable(results), results, program.name)
    return replace(code, carried=program.carried, registers=program.registers)
