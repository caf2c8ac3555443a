"""Sines and cosines of the elements of an array by a loop, before straight-line CUDA C that reads them from shared
memory: the code of one sine and cosine instead of dozens (what limits long kernels is the fetching of instructions)."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from ..ir import ops
from ..ir.program import Node, Program
from .c_expressions import Real

LEAST = 8  # angles: fewer are written one by one
COPIED = 8  # angles that are asked for at a time, which takes longer than to compute with them
AT_A_TIME = 2


@dataclass(frozen=True)
class Angles:
    """Elements of an input, each with a constant that is added to it, and the nodes that are their sines and cosines.

    array    number of the input
    angles   (element, constant)
    turned   for each node the number of its angle, and 0 for the sine, 1 for the cosine
    """

    array: int
    angles: tuple[tuple[int, float], ...]
    turned: dict[Node, tuple[int, int]]

    @property
    def places(self) -> int:
        """Values that the loop leaves behind."""
        return 2 * len(self.angles)

    def tables(self, real: Real) -> list[str]:
        elements = ", ".join(str(element) for element, _ in self.angles)
        offsets = ", ".join(real.literal(offset) for _, offset in self.angles)
        size = len(self.angles)
        return [
            f"__constant__ int _angles[{size}] = {{{elements}}};",
            f"__constant__ {real.name} _offsets[{size}] = {{{offsets}}};",
        ]

    def loop(self, real: Real, element: str, place: str) -> list[str]:
        """``element``: where element number ``_angles[_k]`` is; ``place`` where the sine of angle ``_k`` waits, the
        cosine 32 numbers after it."""
        size = len(self.angles)
        return [
            f"#pragma unroll {COPIED}",
            f"for (int _k = 0; _k < {size}; ++_k) {place}[0] = {element};",
            f"#pragma unroll {AT_A_TIME}",
            f"for (int _k = 0; _k < {size}; ++_k) {{",
            f"    {real.name} _sine, _cosine;",
            f"    _sincos({place}[0] + _offsets[_k], &_sine, &_cosine);",
            f"    {place}[0] = _sine;",
            f"    {place}[32] = _cosine;",
            "}",
        ]


def found_in(program: Program) -> Angles | None:
    """The angles of the input that has most of them; None if they are few."""
    by_array: dict[int, dict[tuple[int, float], list[Node]]] = defaultdict(lambda: defaultdict(list))
    for node in program.nodes:
        if node.op in (ops.SIN, ops.COS):
            angle = _element_and_constant(node.args[0])
            if angle is not None:
                array, element, offset = angle
                by_array[array][element, offset].append(node)
    if not by_array:
        return None
    array = max(by_array, key=lambda number: len(by_array[number]))
    angles = by_array[array]
    if len(angles) < LEAST:
        return None
    turned = {n: (k, int(n.op is ops.COS)) for k, nodes in enumerate(angles.values()) for n in nodes}
    return Angles(array, tuple(angles), turned)


def _element_and_constant(angle: Node) -> tuple[int, int, float] | None:
    if angle.op is ops.INPUT:
        return (*angle.value, 0.0)
    if angle.op is ops.ADD:
        for one, other in (angle.args, angle.args[::-1]):
            if one.op is ops.INPUT and other.op is ops.CONST:
                return (*one.value, other.value)
    if angle.op is ops.SUB and angle.args[0].op is ops.INPUT and angle.args[1].op is ops.CONST:
        return (*angle.args[0].value, -angle.args[1].value)
    return None
