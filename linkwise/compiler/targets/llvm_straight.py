"""Straight-line code as functions on the scratch area.

Registers are assigned before LLVM sees the code (``register_assignment``).  Long code is assembly if the processor is
supported (``x86_assembly``).  Otherwise it is cut into parts that pass values through the scratch area, which keeps
LLVM's time proportional to the length.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Protocol

from ..ir import ops
from ..ir.program import Node, Program
from . import x86_assembly
from .llvm_operations import Writer
from .llvm_vector import VectorType
from .prefetch import add_prefetches
from .register_assignment import CUT, Action, Memory, assigned, registers

NODES_PER_PART = 2000  # LLVM's time per operation grows beyond a few thousand; shorter parts run slower
NODES_FOR_LLVM = 4000  # longer programs are written as assembly if possible
NODES_PER_RESULT = 3  # weight of a stored result in a part's size: LLVM's time per store grows beyond a few hundred


class Room(Memory, Protocol):
    """Places of straight-line code's values in the scratch area; slots are numbers of vectors."""

    vector: VectorType

    @property
    def input_names(self) -> Sequence[str]: ...


def parts(
    program: Program, room: Room, features: str, attributes: str, ahead: bool = False, prefix: str = "part"
) -> tuple[list[str], list[str]]:
    """Calls of functions ``void @PREFIX<number>(ptr scratch, ptr ahead)`` that together compute all results, and the
    functions. ``ahead`` holds addresses of large results to be prefetched."""
    nodes, cuts = _pieces(program, room)
    by_hand = len(nodes) > NODES_FOR_LLVM and x86_assembly.available(features, room.vector)
    if by_hand:
        nodes = x86_assembly.interleave(nodes)
        cuts = x86_assembly.cuts_around_others(nodes)  # at a cut, values leave their registers
    pieces: list[list[Action]] = [[]] if nodes else []
    for action in assigned(nodes, room, registers(features), cuts):
        if action.kind == CUT:
            pieces.append([])
        else:
            pieces[-1].append(action)
    if ahead:
        pieces = add_prefetches(pieces, program, room.vector)
    names = [f"{prefix}{number}" for number in range(len(pieces))]
    texts = []
    for name, actions in zip(names, pieces, strict=True):
        assembly = x86_assembly.function(name, actions, room.vector) if by_hand else None
        texts.append(assembly or _part(name, actions, room, attributes))
    return [f"  call void @{name}(ptr %scratch, ptr %ahead)" for name in names], texts


def _part(name: str, actions: list[Action], room: Room, attributes: str) -> str:
    """``void @name(ptr scratch, ptr ahead)``."""
    writer = _PartWriter(room)
    writer.perform(actions)
    head = f"define internal void @{name}(ptr noalias %scratch, ptr %ahead) noinline nounwind {attributes} {{"
    return "\n".join([head, *writer.lines, "  ret void", "}", ""])


def _pieces(program: Program, room: Room) -> tuple[list[Node], set[int]]:
    """The nodes to compute, and positions that cut them into pieces of equal work. Sine and cosine of an angle are
    adjacent. Results that are not computed (inputs, sines of inputs) are copied at the end."""
    twins = program.sine_cosine_pairs
    work: dict[Node, None] = {}
    for node in program.nodes:
        if node.args and node not in room.slots:
            work[node] = None
            if node in twins:
                work[twins[node]] = None
    nodes = [*work, *(node for node in room.destinations if node not in work)]
    ends = list(itertools.accumulate(1 + NODES_PER_RESULT * len(room.destinations.get(node, ())) for node in nodes))
    count = math.ceil(ends[-1] / NODES_PER_PART) if nodes else 0
    pieces = [(end - 1) * count // ends[-1] for end in ends]
    return nodes, {i for i, (before, piece) in enumerate(itertools.pairwise(pieces), 1) if before != piece}


class _PartWriter(Writer):
    """Writes the instructions of one part; values come from the scratch area."""

    def __init__(self, room: Room):
        super().__init__(room.vector)
        self.input_names = room.input_names
        self.states: set[str] = set()  # base addresses that have been loaded

    def load(self, node: Node, slot: int) -> None:
        array, element = node.value if node.op is ops.INPUT else (0, 0)
        called = f"{self.input_names[array]}_{element}" if node.op is ops.INPUT else f"{node.op.name}{node.index}"
        self.load_from(node, slot, called, "%scratch", slot * self.vector.bytes)

    def store(self, node: Node, slot: int) -> None:
        self.store_at(node, "%scratch", slot)

    def ask_for(self, pointer: int, shift: int) -> None:
        state = f"%state{pointer}"
        if state not in self.states:
            self.states.add(state)
            self.lines.append(f"  {state}.at = getelementptr ptr, ptr %ahead, i64 {pointer}")
            self.lines.append(f"  {state} = load ptr, ptr {state}.at")
        self.lines.append(f"  {state}.{shift} = getelementptr i8, ptr {state}, i64 {shift}")
        self.lines.append(f"  call void @llvm.prefetch.p0(ptr {state}.{shift}, i32 0, i32 2, i32 1)")
