"""CUDA loops over angles that precede straight-line code, which reads sines and cosines from shared memory: one copy of
the sine and cosine code instead of dozens, as instruction fetch limits long kernels."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..ir import ops
from ..ir.program import Node, Program
from .c_expressions import Real

LEAST = 8  # minimum number of angles for a loop
COPIED = 8  # angles prefetched at a time: loading takes longer than computing
AT_A_TIME = 2


@dataclass(frozen=True)
class Angles:
    """Angles, and the nodes of their sines and cosines.

    angles   the nodes
    turned   for each node the number of its angle, and 0 for the sine, 1 for the cosine
    array    number of the input whose elements all non-constant angles are; None for computed angles
    """

    angles: tuple[Node, ...]
    turned: dict[Node, tuple[int, int]]
    array: int | None = None

    @property
    def places(self) -> int:
        """Number of values that the loop stores."""
        return 2 * len(self.angles)

    def tables(self, real: Real) -> list[str]:
        if self.array is None:
            return []
        elements_read = [place for place in map(_element_and_constant, self.angles) if place]  # never None here
        elements = ", ".join(str(element) for _, element, _ in elements_read)
        offsets = ", ".join(real.literal(offset) for _, _, offset in elements_read)
        size = len(self.angles)
        return [
            f"__constant__ int _angles[{size}] = {{{elements}}};",
            f"__constant__ {real.name} _offsets[{size}] = {{{offsets}}};",
        ]

    def copied(self, element: str, place: str) -> list[str]:
        """Load an angle. ``element``: location of element number ``_angles[_k]``; ``place``: destination of angle
        ``_k``."""
        size = len(self.angles)
        loop = f"for (int _k = 0; _k < {size}; ++_k) {place}[0] = {element};"
        return [f"#pragma unroll {COPIED}", loop]

    def loop(self, real: Real, place: str, apart: int) -> list[str]:
        """The loop. ``place``: location of angle ``_k``, then of its sine; the cosine follows ``apart``
        numbers later."""
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


def frequent_angles(program: Program) -> Angles | None:
    """The angles of the input array with most of them; None if there are few."""
    by_array: dict[int | None, dict[Node, list[Node]]] = defaultdict(lambda: defaultdict(list))
    for angle, nodes in _turned(program).items():
        place = _element_and_constant(angle)
        by_array[place[0] if place else None][angle] = nodes
    by_array.pop(None, None)
    if not by_array:
        return None
    array = max(by_array, key=lambda number: len(by_array[number]))
    return _angles(by_array[array], array)


def computed_angles(program: Program) -> Angles | None:
    """All angles that are computed without sines themselves; None if there are few."""
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


def _angles(nodes_of: Mapping[Node, Sequence[Node]], array: int | None) -> Angles | None:
    if len(nodes_of) < LEAST:
        return None
    turned = {n: (k, int(n.op is ops.COS)) for k, nodes in enumerate(nodes_of.values()) for n in nodes}
    return Angles(tuple(nodes_of), turned, array)


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
