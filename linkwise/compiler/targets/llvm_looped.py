"""LLVM text of counted loops: a function for each body, and one for each loop that calls them in turn.

Bases of iterations and numbers are no part of the text: they lie in ``tables``, whose address is the argument ``data``
of the exported function, so that mechanisms that differ in numbers alone share code.  A body gets a pointer for
everything that it reads or writes relative to; numbers, which are the same in all lanes, are spread over a vector as
they are loaded.

A loop inside a loop goes along rows, from the first of the iteration around it to the one that a table says comes next.
"""

from __future__ import annotations

import itertools

import numpy as np

from ..ir import ops
from ..ir.program import CELL, INPUT, NUMBER, OUTPUT, Body, For, Node, Place, Program
from .llvm_operations import Writer
from .llvm_scratch import Fixed, LoopScratch, is_straight
from .llvm_straight import NODES_FOR_LLVM, NODES_PER_PART, parts
from .llvm_vector import VectorType
from .register_assignment import CUT, assigned, registers

Pointer = tuple[str, int, int | None, int | None]  # space, array, base, position of the loop around it


ALIGNMENT = 64  # bytes
SPILLED = "spilled"  # the space of values that had to leave their registers


def looped(
    program: Program, vector: VectorType, features: str, attributes: str
) -> tuple[LoopScratch, list[str], list[str]]:
    """The layout of the scratch area, the calls that compute, and the functions that these need."""
    scratch = LoopScratch(program, vector)
    starts = iter(_starts(program))
    calls, functions = [], []
    for number, loop in enumerate(program.loops):
        own = [next(starts) for _ in _tables_of(loop)]
        if is_straight(loop):
            (body,) = loop.bodies
            room = Fixed(body, scratch, scratch.cells_written_after(number))
            made, texts = parts(body.program, room, features, attributes, prefix=f"straight{number}.")
            calls += made
            functions += texts
            continue
        calls.append(f"  call void @loop{number}(ptr %scratch, ptr %data)")
        functions.append(_loop(number, loop, scratch, [*own, _starts(program)[-1]], attributes))
        count = registers(features)
        for level in loop.levels:
            prefix = f"{number}.{'' if level is loop else 'row'}"
            functions += [_body(f"{prefix}{k}", body, vector, count, attributes) for k, body in enumerate(level.bodies)]
    calls += [
        f"  %places_of_out{number} = getelementptr i8, ptr %data, i64 {start}"
        for number, start in enumerate(places_of_results(program))
    ]
    return scratch, [*(scratch.zeros if program.reads_results else []), *calls], functions


def tables(program: Program, dtype: str) -> np.ndarray:
    """The bytes that ``data`` must point to: of each loop bases and bodies of its iterations, and of rows inside, then
    the numbers."""
    numbers = program.numbers.astype(dtype)
    starts = _starts(program)
    memory = aligned(bytes(starts[-1] + numbers.nbytes))
    parts = [part.astype(np.int32) for loop in program.loops for part in _tables_of(loop)]
    parts += [places.astype(np.int32) for places in LoopScratch(program, VectorType(dtype, 1)).places]
    for start, part in zip(starts, [*parts, numbers], strict=True):
        memory[start : start + part.nbytes] = np.frombuffer(np.ascontiguousarray(part).tobytes(), dtype=np.uint8)
    return memory


def aligned(data: bytes) -> np.ndarray:
    """A copy of bytes where ``data`` may point to."""
    room = np.zeros(len(data) + ALIGNMENT, dtype=np.uint8)
    start = -room.ctypes.data % ALIGNMENT
    room[start : start + len(data)] = np.frombuffer(data, np.uint8)
    return room[start : start + len(data)]


def places_of_results(program: Program) -> list[int]:
    """Where in ``data`` it says in which places the elements of each output are, in bytes."""
    return _starts(program)[:-1][-len(program.results) :] if program.results else []


def _tables_of(loop: For) -> list[np.ndarray]:
    """Bases and bodies of the iterations, and of the rows that they go along, with the first and the following ones."""
    tables = [loop.bases[:, _bases(loop)], loop.which]
    if loop.inner is not None:
        tables += [*_tables_of(loop.inner), loop.inner.first, loop.inner.following]
    return tables


def _starts(program: Program) -> list[int]:
    """Where each of the tables begins, in bytes."""
    sizes = [4 * table.size for loop in program.loops for table in _tables_of(loop)]
    sizes += [4 * places.size for places in program.results]
    return list(itertools.accumulate((-(-size // ALIGNMENT) * ALIGNMENT for size in sizes), initial=0))


def _bases(loop: For) -> list[int]:
    """The positions that the bodies of a loop use, and those of rows inside."""
    used = {base for body in loop.bodies for _, _, base, _ in _pointers(body)}
    for body in loop.inner.bodies if loop.inner is not None else ():
        used |= {outer for _, _, _, outer in _pointers(body)}
    return sorted(base for base in used if base is not None)


def _pointers(body: Body) -> list[Pointer]:
    return sorted({_pointer_of(place) for place in (*body.reads, *body.writes)}, key=repr)


def _pointer_of(place: Place) -> Pointer:
    return place.space, place.array, place.base, place.outer


def _name(pointer: Pointer) -> str:
    space, array, base, outer = pointer
    around = "" if outer is None else f".{outer}"
    return "%spilled" if space == SPILLED else f"%{space}{array}.{'start' if base is None else base}{around}"


def _loop(number: int, loop: For, scratch: LoopScratch, starts: list[int], attributes: str) -> str:
    """``void @loop<number>(ptr scratch, ptr data)``: positions of iterations become pointers, and their bodies run."""
    names = ["%bases", "%bodies", *(["%row.bases", "%row.bodies", "%firsts", "%followings"] if loop.inner else [])]
    arguments = "ptr noalias %scratch, ptr noalias %data"
    lines = [
        f"define internal void @loop{number}({arguments}) noinline nounwind {attributes} {{",
        "entry:",
        *(
            f"  {name} = getelementptr i8, ptr %data, i64 {start}"
            for name, start in zip([*names, "%table"], starts, strict=True)
        ),
        "  br label %iteration",
        "iteration:",
        "  %i = phi i64 [ 0, %entry ], [ %i.next, %next ]",
        *_iteration(loop, "", f"{number}.", "%i", scratch, "next" if loop.inner is None else "rows"),
        *(_rows(loop.inner, number, scratch) if loop.inner is not None else []),
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


def _rows(rows: For, number: int, scratch: LoopScratch) -> list[str]:
    """Blocks from ``rows`` to ``next``: along rows until there is none."""
    return [
        "rows:",
        "  %first.at = getelementptr i32, ptr %firsts, i64 %i",
        "  %first = load i32, ptr %first.at",
        "  br label %row",
        "row:",
        "  %r = phi i32 [ %first, %rows ], [ %following, %row.next ]",
        "  %some = icmp sge i32 %r, 0",
        "  br i1 %some, label %row.here, label %next",
        "row.here:",
        "  %r.long = zext i32 %r to i64",
        *_iteration(rows, "row.", f"{number}.row", "%r.long", scratch, "row.next"),
        "row.next:",
        "  %following.at = getelementptr i32, ptr %followings, i64 %r.long",
        "  %following = load i32, ptr %following.at",
        "  br label %row",
    ]


def _iteration(loop: For, prefix: str, called: str, index: str, scratch: LoopScratch, after: str) -> list[str]:
    """Positions of one iteration become pointers, and its body runs; what it names begins with ``prefix``."""
    bases = _bases(loop)
    lines = [f"  %{prefix}at = mul i64 {index}, {len(bases)}"]
    for column, base in enumerate(bases):
        name = f"%{prefix}base{base}"
        lines += [
            f"  {name}.number = add i64 %{prefix}at, {column}",
            f"  {name}.at = getelementptr i32, ptr %{prefix}bases, i64 {name}.number",
            f"  {name}.short = load i32, ptr {name}.at",
            f"  {name} = zext i32 {name}.short to i64",
        ]
    for pointer in sorted({pointer for body in loop.bodies for pointer in _pointers(body)}, key=repr):
        lines += _pointer(pointer, prefix, scratch)
    if len(loop.bodies) == 1:
        lines.append(f"  br label %{prefix}body0")
    else:
        choices = " ".join(f"i32 {k}, label %{prefix}body{k}" for k in range(1, len(loop.bodies)))
        lines += [
            f"  %{prefix}which.at = getelementptr i32, ptr %{prefix}bodies, i64 {index}",
            f"  %{prefix}which = load i32, ptr %{prefix}which.at",
            f"  switch i32 %{prefix}which, label %{prefix}body0 [ {choices} ]",
        ]
    for k, body in enumerate(loop.bodies):
        arguments = ", ".join(f"ptr {_prefixed(_name(pointer), prefix)}" for pointer in _pointers(body))
        lines += [f"{prefix}body{k}:", f"  call void @body{called}{k}({arguments})", f"  br label %{after}"]
    return lines


def _prefixed(name: str, prefix: str) -> str:
    return f"%{prefix}{name[1:]}"


def _pointer(pointer: Pointer, prefix: str, scratch: LoopScratch) -> list[str]:
    space, array, base, outer = pointer
    name = _prefixed(_name(pointer), prefix)
    position, lines = "0" if base is None else f"%{prefix}base{base}", []
    if outer is not None:
        lines, position = [f"  {name}.both = add i64 {position}, %base{outer}"], f"{name}.both"
    if space == NUMBER:
        return [*lines, f"  {name} = getelementptr {scratch.vector.scalar}, ptr %table, i64 {position}"]
    start = {INPUT: scratch.input_offsets, OUTPUT: scratch.output_offsets, CELL: [scratch.cells]}[space][array]
    return [
        *lines,
        f"  {name}.place = add i64 {position}, {start}",
        f"  {name} = getelementptr {scratch.vector.real}, ptr %scratch, i64 {name}.place",
    ]


def _body(name: str, body: Body, vector: VectorType, count: int, attributes: str) -> str:
    """``void @body<name>(pointers)``: one iteration, with ``count`` values in registers at a time.  No two pointers
    lead to the same place, and what is read where something is written is saved first: a value is stored as soon as it
    is there.  Long bodies call parts, which hand values on through places of their own."""
    memory = _BodyMemory(body)
    angles = _angles_first(body.program)  # calls drive values out of the registers: first, when few are alive
    computed = [*angles, *(node for node in body.program.nodes if node.args and node not in angles)]
    nodes = [*computed, *(node for node in memory.destinations if not node.args)]
    pieces = len(nodes) // NODES_PER_PART if len(nodes) > NODES_FOR_LLVM else 1
    cuts = {max(len(nodes) * k // pieces, len(angles)) for k in range(1, pieces)}
    writers = [_BodyWriter(vector)]
    for saved, before in memory.displaced.items():
        writers[0].load(saved, before)
        writers[0].store(saved, memory.slots[saved])
        del writers[0].names[saved]
    for is_cut, actions in itertools.groupby(assigned(nodes, memory, count, cuts), lambda action: action.kind == CUT):
        if is_cut:
            writers.append(_BodyWriter(vector))
        else:
            writers[-1].perform(list(actions))
    for at, constant in memory.constants:
        writers[-1].store(constant, at)
    room = [f"  %spilled = alloca [{memory.spilled} x {vector.real}], align 64"] if memory.spilled else []
    parameters = ", ".join(f"ptr noalias {_name(pointer)}" for pointer in _pointers(body))
    head = f"define internal void @body{name}({parameters}) noinline nounwind {attributes} {{"
    if len(writers) == 1:
        return "\n".join([head, *room, *writers[0].lines, "  ret void", "}", ""])
    given = [_name(pointer) for pointer in _pointers(body)] + ["%spilled"] * bool(room)
    taken, passed = (", ".join(f"{kind} {each}" for each in given) for kind in ("ptr noalias", "ptr"))
    texts = [
        f"define internal void @body{name}.{k}({taken}) noinline nounwind {attributes} {{\n"
        + "\n".join([*writer.lines, "  ret void", "}", ""])
        for k, writer in enumerate(writers)
    ]
    calls = [f"  call void @body{name}.{k}({passed})" for k in range(len(writers))]
    return "\n".join([*texts, head, *room, *calls, "  ret void", "}", ""])


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
        vector, base = self.vector, _name(_pointer_of(place))
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
        self.store_at(node, _name(_pointer_of(place)), place.offset)
