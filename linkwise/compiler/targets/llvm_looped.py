"""LLVM text of counted loops: a function for each body, and one for each loop that calls them in turn.

Bases of iterations and numbers are no part of the text: they lie in ``tables``, whose address is the argument ``data``
of the exported function, so that mechanisms that differ in numbers alone share code.  A body gets a pointer for
everything that it reads or writes relative to; numbers, which are the same in all lanes, are spread over a vector as
they are loaded.
"""

from __future__ import annotations

import itertools

import numpy as np

from ..ir import ops
from ..ir.looped import CELL, INPUT, NUMBER, OUTPUT, Body, Loop, LoopedProgram, Place
from ..ir.program import Node, Program
from .llvm_operations import Writer
from .llvm_scratch import LoopScratch
from .llvm_vector import VectorType
from .register_assignment import assigned

Pointer = tuple[str, int, int | None]  # space, array, base


ALIGNMENT = 64  # bytes
SPILLED = "spilled"  # the space of values that had to leave their registers


def looped(
    program: LoopedProgram, vector: VectorType, count: int, attributes: str
) -> tuple[LoopScratch, list[str], list[str]]:
    """The layout of the scratch area, the calls that compute, and the functions that these need."""
    scratch = LoopScratch(program, vector)
    starts = _starts(program)
    functions = []
    for number, loop in enumerate(program.loops):
        functions.append(_loop(number, loop, scratch, starts, attributes))
        functions += [_body(f"{number}.{k}", body, vector, count, attributes) for k, body in enumerate(loop.bodies)]
    calls = [f"  call void @loop{number}(ptr %scratch, ptr %data)" for number in range(len(program.loops))]
    return scratch, calls, functions


def tables(program: LoopedProgram, dtype: str) -> np.ndarray:
    """The bytes that ``data`` must point to: of each loop bases and bodies of its iterations, then the numbers."""
    numbers = program.numbers.astype(dtype)
    starts = _starts(program)
    room = np.zeros(starts[-1] + numbers.nbytes + ALIGNMENT, dtype=np.uint8)
    memory = room[-room.ctypes.data % ALIGNMENT :]
    parts = [part for loop in program.loops for part in (loop.bases[:, _bases(loop)], loop.which)]
    for start, part in zip(starts, [*(part.astype(np.int32) for part in parts), numbers], strict=True):
        memory[start : start + part.nbytes] = np.frombuffer(np.ascontiguousarray(part).tobytes(), dtype=np.uint8)
    return memory


def _starts(program: LoopedProgram) -> list[int]:
    """Where each of the tables begins, in bytes."""
    sizes = [4 * count * len(loop.which) for loop in program.loops for count in (len(_bases(loop)), 1)]
    return list(itertools.accumulate((-(-size // ALIGNMENT) * ALIGNMENT for size in sizes), initial=0))


def _bases(loop: Loop) -> list[int]:
    """The positions that the bodies of a loop use."""
    return sorted({base for body in loop.bodies for _, _, base in _pointers(body) if base is not None})


def _pointers(body: Body) -> list[Pointer]:
    return sorted({place[:3] for place in (*body.reads, *body.writes)}, key=repr)


def _name(pointer: Pointer) -> str:
    space, array, base = pointer
    return "%spilled" if space == SPILLED else f"%{space}{array}.{'start' if base is None else base}"


def _loop(number: int, loop: Loop, scratch: LoopScratch, starts: list[int], attributes: str) -> str:
    """``void @loop<number>(ptr scratch, ptr data)``: positions of iterations become pointers, and their bodies run."""
    wanted = {pointer for body in loop.bodies for pointer in _pointers(body)}
    bases = _bases(loop)
    one_body = len(loop.bodies) == 1
    arguments = "ptr noalias %scratch, ptr noalias %data"
    lines = [
        f"define internal void @loop{number}({arguments}) noinline nounwind {attributes} {{",
        "entry:",
        f"  %bases = getelementptr i8, ptr %data, i64 {starts[2 * number]}",
        f"  %bodies = getelementptr i8, ptr %data, i64 {starts[2 * number + 1]}",
        f"  %table = getelementptr i8, ptr %data, i64 {starts[-1]}",
        "  br label %iteration",
        "iteration:",
        "  %i = phi i64 [ 0, %entry ], [ %i.next, %next ]",
        f"  %row = mul i64 %i, {len(bases)}",
    ]
    for column, base in enumerate(bases):
        lines += [
            f"  %at{base} = add i64 %row, {column}",
            f"  %base{base}.at = getelementptr i32, ptr %bases, i64 %at{base}",
            f"  %base{base}.short = load i32, ptr %base{base}.at",
            f"  %base{base} = zext i32 %base{base}.short to i64",
        ]
    for pointer in sorted(wanted, key=repr):
        lines += _pointer(pointer, scratch)
    if one_body:
        lines.append("  br label %body0")
    else:
        choices = " ".join(f"i32 {k}, label %body{k}" for k in range(1, len(loop.bodies)))
        lines += [
            "  %which.at = getelementptr i32, ptr %bodies, i64 %i",
            "  %which = load i32, ptr %which.at",
            f"  switch i32 %which, label %body0 [ {choices} ]",
        ]
    for k, body in enumerate(loop.bodies):
        arguments = ", ".join(f"ptr {_name(pointer)}" for pointer in _pointers(body))
        lines += [f"body{k}:", f"  call void @body{number}.{k}({arguments})", "  br label %next"]
    lines += [
        "next:",
        "  %i.next = add i64 %i, 1",
        f"  %more = icmp slt i64 %i.next, {len(loop.which)}",
        "  br i1 %more, label %iteration, label %exit",
        "exit:",
        "  ret void",
        "}",
        "",
    ]
    return "\n".join(lines)


def _pointer(pointer: Pointer, scratch: LoopScratch) -> list[str]:
    space, array, base = pointer
    name = _name(pointer)
    position = "0" if base is None else f"%base{base}"
    if space == NUMBER:
        return [f"  {name} = getelementptr {scratch.vector.scalar}, ptr %table, i64 {position}"]
    start = {INPUT: scratch.input_offsets, OUTPUT: scratch.output_offsets, CELL: [scratch.cells]}[space][array]
    return [
        f"  {name}.place = add i64 {position}, {start}",
        f"  {name} = getelementptr {scratch.vector.real}, ptr %scratch, i64 {name}.place",
    ]


def _body(name: str, body: Body, vector: VectorType, count: int, attributes: str) -> str:
    """``void @body<name>(pointers)``: one iteration, with ``count`` values in registers at a time.  No two pointers
    lead to the same place, and what is read where something is written is saved first: a value is stored as soon as it
    is there."""
    memory = _BodyMemory(body)
    writer = _BodyWriter(vector)
    angles = _angles_first(body.program)  # calls drive values out of the registers: first, when few are alive
    computed = [*angles, *(node for node in body.program.nodes if node.args and node not in angles)]
    copied = (node for node in memory.destinations if not node.args)
    for saved, before in memory.displaced.items():
        writer.load(saved, before)
        writer.store(saved, memory.slots[saved])
        del writer.names[saved]
    writer.perform(assigned([*computed, *copied], memory, count))
    for at, constant in memory.constants:
        writer.store(constant, at)
    room = [f"  %spilled = alloca [{memory.spilled} x {vector.real}], align 64"] if memory.spilled else []
    parameters = ", ".join(f"ptr noalias {_name(pointer)}" for pointer in _pointers(body))
    head = f"define internal void @body{name}({parameters}) noinline nounwind {attributes} {{"
    return "\n".join([head, *room, *writer.lines, "  ret void", "}", ""])


class _BodyMemory:
    """Where the values of a body lie: at the places that it reads and writes, and on the stack if they had to leave
    their registers."""

    def __init__(self, body: Body):
        self.spilled = 0
        self._free: list[Place] = []
        inputs = [node for node in body.program.nodes if node.op is ops.INPUT]
        self.slots: dict[Node, Place] = {node: body.reads[node.value[1]] for node in inputs}
        # Places that get something else before the body is done with what is there.
        written = set(body.writes)
        self.displaced = {node: place for node, place in self.slots.items() if place in written}
        self.slots |= {node: self.take() for node in self.displaced}
        self.destinations: dict[Node, list[Place]] = {}
        self.constants: list[tuple[Place, Node]] = []
        for place, node in zip(body.writes, body.program.results[0], strict=True):
            if node.op is ops.CONST:
                self.constants.append((place, node))
            else:
                self.destinations.setdefault(node, []).append(place)

    def take(self) -> Place:
        if self._free:
            return self._free.pop()
        self.spilled += 1
        return Place(SPILLED, 0, None, self.spilled - 1)

    def give_back(self, place: Place) -> None:
        self._free.append(place)


def _angles_first(program: Program) -> dict[Node, None]:
    """Sines and cosines of what takes little to compute, with what they need."""
    early: dict[Node, None] = {}
    simple = {node for node in program.nodes if not node.args}
    for node in program.nodes:
        if node.args and all(arg in simple and not arg.args for arg in node.args):
            simple.add(node)
    for node in program.nodes:
        if node.op in (ops.SIN, ops.COS) and node.args[0] in simple:
            early |= dict.fromkeys([arg for arg in node.args if arg.args] + [node])
    return early


class _BodyWriter(Writer):
    """Writes the instructions of a body."""

    def load(self, node: Node, place: Place) -> None:
        vector, base = self.vector, _name(place[:3])
        if place.space != NUMBER:
            self.load_from(node, place, "read", base, place.offset * vector.bytes)
            return
        address = self.place_of(node, place, "number", base, place.offset * (vector.bits // 8))
        name = self.names[node]
        self.lines += [
            f"  {name}.one = load {vector.scalar}, ptr {address}",
            f"  {name}.first = insertelement {self.real} poison, {vector.scalar} {name}.one, i32 0",
            f"  {name} = shufflevector {self.real} {name}.first, {self.real} poison, "
            f"<{vector.lanes} x i32> zeroinitializer",
        ]

    def store(self, node: Node, place: Place) -> None:
        self.store_at(node, _name(place[:3]), place.offset)
