"""Sines and cosines by a loop, of the elements of an array or of what is computed first, before straight-line CUDA C
that reads them from shared memory: the code of one sine and cosine instead of dozens (what limits long kernels is the
fetching of instructions)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..ir import ops
from ..ir.program import Node, Program
from .c_expressions import Real

LEAST = 8  # angles: fewer are written one by one
COPIED = 8  # angles that are asked for at a time, which takes longer than to compute with them
AT_A_TIME = 2


@dataclass(frozen=True)
class Angles:
    """Angles, and the nodes that are their sines and cosines.

    angles   the nodes
    turned   for each node the number of its angle, and 0 for the sine, 1 for the cosine
    array    number of the input that all of them are elements of but for constants; None if they are computed
    """

    angles: tuple[Node, ...]
    turned: dict[Node, tuple[int, int]]
    array: int | None = None

    @property
    def places(self) -> int:
        """Values that the loop leaves behind."""
        return 2 * len(self.angles)

    def tables(self, real: Real) -> list[str]:
        if self.array is None:
            return []
        elements_read = [place for place in map(_element_and_constant, self.angles) if place]  # all have one
        elements = ", ".join(str(element) for _, element, _ in elements_read)
        offsets = ", ".join(real.literal(offset) for _, _, offset in elements_read)
        size = len(self.angles)
        return [
            f"__constant__ int _angles[{size}] = {{{elements}}};",
            f"__constant__ {real.name} _offsets[{size}] = {{{offsets}}};",
        ]

    def copied(self, element: str, place: str) -> list[str]:
        """``element``: where element number ``_angles[_k]`` is; ``place`` where angle ``_k`` is to be."""
        size = len(self.angles)
        loop = f"for (int _k = 0; _k < {size}; ++_k) {place}[0] = {element};"
        return [f"#pragma unroll {COPIED}", loop]

    def loop(self, real: Real, place: str, apart: int) -> list[str]:
        """``place`` is where angle ``_k`` is, then its sine; the cosine so many numbers after it."""
        offset = "" if self.array is None else " + _offsets[_k]"
        return [
            f"#pragma unroll {AT_A_TIME}",
            f"for (int _k = 0; _k < {len(self.angles)}; ++_k) {{",
            f"    {real.name} _sine, _cosine;",
            f"    _sincos({place}[0]{offset}, &_sine, &_cosine);",
            f"    {place}[0] = _sine;",
            f"    {place}[{apart}] = _cosine;",
            "}",
        ]


def found_in(program: Program) -> Angles | None:
    """The angles of the input array with most of them; None if they are few."""
    by_array: dict[int | None, dict[Node, list[Node]]] = defaultdict(lambda: defaultdict(list))
    for angle, nodes in _turned(program).items():
        place = _element_and_constant(angle)
        by_array[place[0] if place else None][angle] = nodes
    by_array.pop(None, None)
    if not by_array:
        return None
    array = max(by_array, key=lambda number: len(by_array[number]))
    return _angles(by_array[array], array)


def computed_in(program: Program) -> Angles | None:
    """All angles that have to be computed before and need no sine themselves; None if they are few."""
    after = set[Node]()
    for node in program.nodes:
        if node.op in (ops.SIN, ops.COS) or any(arg in after for arg in node.args):
            after.add(node)
    return _angles({angle: nodes for angle, nodes in _turned(program).items() if angle not in after}, None)


def _turned(program: Program) -> dict[Node, list[Node]]:
    """Angles with their sines and cosines."""
    turned: dict[Node, list[Node]] = defaultdict(list)
    for node in program.nodes:
        if node.op in (ops.SIN, ops.COS):
            turned[node.args[0]].append(node)
    return turned


def _angles(found: Mapping[Node, Sequence[Node]], array: int | None) -> Angles | None:
    if len(found) < LEAST:
        return None
    turned = {n: (k, int(n.op is ops.COS)) for k, nodes in enumerate(found.values()) for n in nodes}
    return Angles(tuple(found), turned, array)


def _element_and_constant(angle: Node) -> tuple[int, int, float] | None:
    if angle.op is ops.INPUT:
        return (*angle.value, 0.0)
    if angle.op is ops.ADD:
        for first, other in (angle.args, angle.args[::-1]):
            if first.op is ops.INPUT and other.op is ops.CONST:
                return (*first.value, other.value)
    if angle.op is ops.SUB and angle.args[0].op is ops.INPUT and angle.args[1].op is ops.CONST:
        return (*angle.args[0].value, -angle.args[1].value)
    return None
