"""The LLVM target: one state per vector lane, as the inner loop of a NumPy generalized ufunc.

The text holds one exported function, ``void NAME(char **args, npy_intp *dimensions, npy_intp *steps, void *data)``.
It walks over the states in groups of ``options.lanes``.  A group's inputs are gathered into a scratch area,
one vector per array element; straight-line code computes the results there; then they are scattered.  A last,
partial group fills its idle lanes with the last state.  As a group is read completely before any of it is
written, that is harmless also where an output lies over an input.  Results that are constants are put into the
scratch area once per call: no group changes them.

Long straight-line code is cut into parts that hand values on through the scratch area, so that the time LLVM
takes stays proportional to the length.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence

from ..ir import ops
from ..ir.program import Array, Node, Program
from . import llvm_math
from .llvm_transfer import fill, transfer
from .llvm_vector import VectorType
from .protocol import Options

NODES_PER_PART = 2000  # LLVM's time per operation grows beyond a few thousand; shorter parts run slower
NODES_PER_RESULT = 3  # what storing a result counts for: LLVM's time per store grows beyond a few hundred
STACK_LIMIT = 1 << 16  # bytes of scratch on the stack; more is taken from the heap
# Functions of the host process that the emitted code may call; the loader binds them.
HOST_SYMBOLS = (
    "linkwise_libm_sin",
    "linkwise_libm_cos",
    "PyMem_RawMalloc",
    "PyMem_RawFree",
    "PyGILState_Ensure",
    "PyGILState_Release",
    "PyErr_NoMemory",
)

_BINARY = {ops.ADD: "fadd", ops.SUB: "fsub", ops.MUL: "fmul", ops.DIV: "fdiv", ops.LESS: "fcmp olt"}
_NEGATED_OPERAND = {ops.FMA: None, ops.FMS: 2, ops.FNMA: 0}  # so that all three become a*b + c


def emit(program: Program, options: Options) -> str:
    """LLVM text of ``program``; the exported function is called ``symbol(program)``."""
    vector = VectorType(options.dtype, options.lanes)
    attributes = _attributes(vector)
    scratch = _Scratch(program, vector)
    parts = _parts(program, scratch)
    last_part = {n: i for i, nodes in enumerate(parts) for node in nodes for n in (*node.args, node)}
    bodies = [_part(number, nodes, scratch, last_part, attributes) for number, nodes in enumerate(parts)]
    used = {node.op for node in program.nodes}
    texts = [
        f"; {program.name}: {options.lanes} lanes of {options.dtype}",
        _loop(program, scratch, len(parts), attributes),
        *([_angles(scratch, attributes)] if scratch.angles else []),
        *bodies,
        *(transfer(*shape, vector, attributes) for shape in _transfers(program)),
        *([fill(scratch.constants, vector, attributes)] if scratch.constants else []),
        *([llvm_math.sincos(vector, attributes)] if ops.SIN in used or ops.COS in used else []),
        *([llvm_math.atan2(vector, attributes)] if ops.ATAN2 in used else []),
        _declarations(vector),
    ]
    return "\n".join(texts)


def symbol(program: Program) -> str:
    """Name of the exported function."""
    return _identifier(program.name)


def _identifier(name: str) -> str:
    return re.sub(r"\W", "_", name)


def _attributes(vector: VectorType) -> str:
    """Without these LLVM may cut 512-bit vectors in two where it deems the wide units slow."""
    width = max(128, min(512, vector.bytes * 8))
    return f'"prefer-vector-width"="{width}" "min-legal-vector-width"="{width}"'


def _declarations(vector: VectorType) -> str:
    real = vector.real
    return "\n".join(
        [
            f"declare {real} @llvm.fmuladd.{vector.suffix}({real}, {real}, {real})",
            f"declare {real} @llvm.sqrt.{vector.suffix}({real})",
            "declare i64 @llvm.umin.i64(i64, i64)",
            "declare ptr @PyMem_RawMalloc(i64)",
            "declare void @PyMem_RawFree(ptr)",
            "declare i32 @PyGILState_Ensure()",
            "declare void @PyGILState_Release(i32)",
            "declare ptr @PyErr_NoMemory()",
            "",
        ]
    )


class _Scratch:
    """Where values lie in the scratch area, in units of one vector: inputs, outputs, sines and cosines of
    inputs, and slots for values that one part hands to another."""

    def __init__(self, program: Program, vector: VectorType):
        self.vector = vector
        self.input_names = [_identifier(array.name) for array in program.inputs]
        self.input_offsets, size = _offsets(program.inputs, 0)
        self.output_offsets, size = _offsets(program.outputs, size)
        self.slots = {n: self.input_offsets[n.value[0]] + n.value[1] for n in program.nodes if n.op is ops.INPUT}
        self.angles: dict[Node, int] = {}  # input whose sine and cosine come first -> slot of the sine
        for node in program.nodes:
            if node.op in (ops.SIN, ops.COS) and node.args[0].op is ops.INPUT:
                sine = self.angles.setdefault(node.args[0], size + 2 * len(self.angles))
                self.slots[node] = sine + (node.op is ops.COS)
        self.size = size + 2 * len(self.angles)
        self.destinations: dict[Node, list[int]] = {}  # output elements that a node gives, unless it is constant
        self.constants: dict[int, float] = {}  # output elements that are constant
        for offset, results in zip(self.output_offsets, program.results, strict=True):
            for element, node in enumerate(results):
                if node.op is ops.CONST:
                    self.constants[offset + element] = node.value
                else:
                    self.destinations.setdefault(node, []).append(offset + element)
        self._free: list[int] = []

    @property
    def bytes(self) -> int:
        return self.size * self.vector.bytes

    def take(self, node: Node) -> int:
        """A slot for ``node``."""
        if self._free:
            self.slots[node] = self._free.pop()
        else:
            self.slots[node] = self.size
            self.size += 1
        return self.slots[node]

    def give_back(self, node: Node) -> None:
        self._free.append(self.slots[node])


def _offsets(arrays: Sequence[Array], start: int) -> tuple[list[int], int]:
    ends = list(itertools.accumulate((array.size for array in arrays), initial=start))
    return ends[:-1], ends[-1]


# -- straight-line code -------------------------------------------------------------------------


def _parts(program: Program, scratch: _Scratch) -> list[list[Node]]:
    """The nodes to be computed, cut into pieces of equal work.  A sine and cosine of one angle stand together.
    Results that are not computed (inputs, sines of inputs) are copied at the end."""
    twins = {(n.op, n.args[0]): n for n in program.nodes if n.op in (ops.SIN, ops.COS)}
    work: dict[Node, None] = {}
    for node in program.nodes:
        if node.args and node not in scratch.slots:
            work[node] = None
            if node.op in (ops.SIN, ops.COS):
                twin = twins.get((ops.COS if node.op is ops.SIN else ops.SIN, node.args[0]))
                if twin is not None:
                    work[twin] = None
    nodes = [*work, *(node for node in scratch.destinations if node not in work)]
    ends = list(itertools.accumulate(1 + NODES_PER_RESULT * len(scratch.destinations.get(node, ())) for node in nodes))
    count = math.ceil(ends[-1] / NODES_PER_PART) if nodes else 0
    parts: list[list[Node]] = [[] for _ in range(count)]
    for node, end in zip(nodes, ends, strict=True):
        parts[(end - 1) * count // ends[-1]].append(node)
    return parts


def _part(number: int, nodes: list[Node], scratch: _Scratch, last_part: dict[Node, int], attributes: str) -> str:
    """``void @part<number>(ptr scratch)``: computes ``nodes`` and stores the results and what later parts need."""
    writer = _PartWriter(scratch)
    section = ""
    for node in nodes:
        if node.section != section:
            section = node.section
            writer.lines.append(f"  ; {section}")
        if node.args and node not in scratch.slots:
            writer.compute(node)
            if last_part[node] > number:
                writer.store(node, scratch.take(node))
        for slot in scratch.destinations.get(node, ()):
            writer.store(node, slot)
    for node in writer.names:
        if last_part[node] == number and node.args and node in scratch.slots:
            scratch.give_back(node)
    head = f"define internal void @part{number}(ptr noalias %scratch) noinline nounwind {attributes} {{"
    return "\n".join([head, *writer.lines, "  ret void", "}", ""])


class _PartWriter:
    """Writes the instructions of one part; a value from the scratch area is loaded where it is first used."""

    def __init__(self, scratch: _Scratch):
        self.scratch = scratch
        self.vector = scratch.vector
        self.real = scratch.vector.real
        self.lines: list[str] = []
        self.names: dict[Node, str] = {}
        self._pairs: set[str] = set()

    def operand(self, node: Node) -> str:
        name = self.names.get(node)
        if name is None:
            name = self.names[node] = self.vector.splat(node.value) if node.op is ops.CONST else self._load(node)
        return name

    def _load(self, node: Node) -> str:
        if node.op is ops.INPUT:
            name = f"%{self.scratch.input_names[node.value[0]]}_{node.value[1]}"
        else:
            name = f"%{node.op.name}{node.index}"
        address = self._address(f"{name}.at", self.scratch.slots[node])
        if node.op.result == "real":
            self.lines.append(f"  {name} = load {self.real}, ptr {address}")
        else:
            self.lines.append(f"  {name}.real = load {self.real}, ptr {address}")
            self.lines.append(f"  {name} = fcmp une {self.real} {name}.real, zeroinitializer")
        return name

    def store(self, node: Node, slot: int) -> None:
        value = self.operand(node)
        if node.op.result == "bool":
            one = self.vector.splat(1.0)
            self.lines.append(
                f"  {value}.real = select {self.vector.boolean} {value}, {self.real} {one}, {self.real} zeroinitializer"
            )
            value = f"{value}.real"
        address = self._address(f"%slot{slot}.{len(self.lines)}", slot)
        self.lines.append(f"  store {self.real} {value}, ptr {address}")

    def _address(self, name: str, slot: int) -> str:
        self.lines.append(f"  {name} = getelementptr i8, ptr %scratch, i64 {slot * self.vector.bytes}")
        return name

    def compute(self, node: Node) -> None:
        op, real = node.op, self.real
        args = [self.operand(arg) for arg in node.args]
        name = self.names[node] = f"%{op.name}{node.index}"
        if op in _BINARY:
            right = f"{_BINARY[op]} {real} {args[0]}, {args[1]}"
        elif op in _NEGATED_OPERAND:
            negated = _NEGATED_OPERAND[op]
            if negated is not None:
                self.lines.append(f"  {name}.neg = fneg {real} {args[negated]}")
                args[negated] = f"{name}.neg"
            right = self._call(f"llvm.fmuladd.{self.vector.suffix}", args)
        elif op is ops.NEG:
            right = f"fneg {real} {args[0]}"
        elif op is ops.SQRT:
            right = self._call(f"llvm.sqrt.{self.vector.suffix}", args)
        elif op is ops.ATAN2:
            right = self._call("atan2", args)
        elif op is ops.SELECT:
            right = f"select {self.vector.boolean} {args[0]}, {real} {args[1]}, {real} {args[2]}"
        else:
            right = self._sine_or_cosine(node, args[0])
        self.lines.append(f"  {name} = {right}")

    def _call(self, function: str, args: list[str]) -> str:
        return f"call {self.real} @{function}({', '.join(f'{self.real} {arg}' for arg in args)})"

    def _sine_or_cosine(self, node: Node, angle: str) -> str:
        """One call gives both; the second of the two takes what the first has called for."""
        pair_type, pair = f"{{ {self.real}, {self.real} }}", f"%sincos{node.args[0].index}"
        if pair not in self._pairs:
            self._pairs.add(pair)
            self.lines.append(f"  {pair} = call {pair_type} @sincos({self.real} {angle})")
        return f"extractvalue {pair_type} {pair}, {int(node.op is ops.COS)}"


def _angles(scratch: _Scratch, attributes: str) -> str:
    """``void @angles(ptr scratch)``: sines and cosines of inputs.  They come first, when no other value is
    alive that the calls would drive out of the registers."""
    real, step = scratch.vector.real, scratch.vector.bytes
    lines = [f"define internal void @angles(ptr noalias %scratch) noinline nounwind {attributes} {{"]
    for i, (angle, slot) in enumerate(scratch.angles.items()):
        lines += [
            f"  %angle{i}.at = getelementptr i8, ptr %scratch, i64 {scratch.slots[angle] * step}",
            f"  %angle{i} = load {real}, ptr %angle{i}.at",
            f"  %pair{i} = call {{ {real}, {real} }} @sincos({real} %angle{i})",
        ]
        for k, name in enumerate(("sin", "cos")):
            lines += [
                f"  %{name}{i} = extractvalue {{ {real}, {real} }} %pair{i}, {k}",
                f"  %{name}{i}.at = getelementptr i8, ptr %scratch, i64 {(slot + k) * step}",
                f"  store {real} %{name}{i}, ptr %{name}{i}.at",
            ]
    return "\n".join([*lines, "  ret void", "}", ""])


# -- the loop over the states -------------------------------------------------------------------


def _loop(program: Program, scratch: _Scratch, parts: int, attributes: str) -> str:
    """The exported function."""
    lanes = scratch.vector.lanes
    arrays = [*program.inputs, *program.outputs]
    names = [f"in{i}" for i in range(len(program.inputs))] + [f"out{i}" for i in range(len(program.outputs))]
    offsets = [*scratch.input_offsets, *scratch.output_offsets]
    setup, calls = [], []
    stride_number = len(arrays)
    for number, (array, name) in enumerate(zip(arrays, names, strict=True)):
        setup.append(f"  ; {array.name}{list(array.shape)}")
        setup += _load_from("ptr", f"%{name}.base", "%args", number)
        setup += _load_from("i64", f"%{name}.step", "%steps", number)
        for axis in range(len(array.shape)):
            setup += _load_from("i64", f"%{name}.stride{axis}", "%steps", stride_number)
            stride_number += 1
        calls.append(_transfer_calls(name, array, offsets[number], scratch.vector))
    count = len(program.inputs)
    body = ["  call void @angles(ptr %scratch)"] if scratch.angles else []
    body += [f"  call void @part{i}(ptr %scratch)" for i in range(parts)]
    setup += ["  call void @fill(ptr %scratch)"] if scratch.constants else []
    allocate, release = _allocation(scratch.bytes)
    lines = [
        f"define void @{symbol(program)}(ptr %args, ptr %dimensions, ptr %steps, ptr %data) nounwind {attributes} {{",
        "entry:",
        "  %states = load i64, ptr %dimensions",
        "  %some = icmp sgt i64 %states, 0",
        f"  %numbers = alloca [{lanes} x i64], align 64",
        *allocate,
        "prepare:",
        "  %last = sub i64 %states, 1",
        *setup,
        "  br label %group",
        "group:",
        "  %first = phi i64 [ 0, %prepare ], [ %next, %group ]",
        *_lane_states(lanes),
        *itertools.chain(*calls[:count]),
        *body,
        *itertools.chain(*calls[count:]),
        f"  %next = add i64 %first, {lanes}",
        "  %more = icmp slt i64 %next, %states",
        "  br i1 %more, label %group, label %done",
        "done:",
        *release,
        "  br label %exit",
        "exit:",
        "  ret void",
        "}",
        "",
    ]
    return "\n".join(lines)


def _load_from(kind: str, name: str, table: str, position: int) -> list[str]:
    return [
        f"  {name}.at = getelementptr {kind}, ptr {table}, i64 {position}",
        f"  {name} = load {kind}, ptr {name}.at",
    ]


def _lane_states(lanes: int) -> list[str]:
    """Store the number of the state in each lane; lanes beyond the end repeat the last state."""
    lines = []
    for i in range(lanes):
        lines += [
            f"  %lane{i} = add i64 %first, {i}",
            f"  %number{i} = call i64 @llvm.umin.i64(i64 %lane{i}, i64 %last)",
            f"  %numbers{i} = getelementptr i64, ptr %numbers, i64 {i}",
            f"  store i64 %number{i}, ptr %numbers{i}",
        ]
    return lines


def _allocation(size: int) -> tuple[list[str], list[str]]:
    """Instructions that make %scratch and leave the entry block, and those that release it."""
    if size <= STACK_LIMIT:
        return [f"  %scratch = alloca [{size} x i8], align 64", "  br i1 %some, label %prepare, label %exit"], []
    allocate = [
        "  br i1 %some, label %allocate, label %exit",
        "allocate:",
        f"  %memory = call ptr @PyMem_RawMalloc(i64 {size + 63})",
        "  %address = ptrtoint ptr %memory to i64",
        "  %above = add i64 %address, 63",
        "  %aligned = and i64 %above, -64",
        "  %scratch = inttoptr i64 %aligned to ptr",
        "  %failed = icmp eq ptr %memory, null",
        "  br i1 %failed, label %no_memory, label %prepare",
        "no_memory:",
        "  %lock = call i32 @PyGILState_Ensure()",
        "  %error = call ptr @PyErr_NoMemory()",
        "  call void @PyGILState_Release(i32 %lock)",
        "  br label %exit",
    ]
    return allocate, ["  call void @PyMem_RawFree(ptr %memory)"]


def _rows_and_columns(array: Array) -> tuple[int, int]:
    rows, columns = (1, 1, *array.shape)[-2:]
    return rows, columns


def _transfers(program: Program) -> list[tuple[str, int, int]]:
    """The gathers and scatters that the arrays need: kind, rows, columns."""
    gathers = {("gather", *_rows_and_columns(array)) for array in program.inputs if array.size}
    scatters = {("scatter", *_rows_and_columns(array)) for array in program.outputs if array.size}
    return sorted(gathers) + sorted(scatters)


def _transfer_calls(name: str, array: Array, offset: int, vector: VectorType) -> list[str]:
    """Calls that move one array between memory and scratch, one for each of its matrices."""
    if array.size == 0:
        return []
    kind = "gather" if name.startswith("in") else "scatter"
    rows, columns = _rows_and_columns(array)
    rank = len(array.shape)
    row_stride = f"%{name}.stride{rank - 2}" if rank >= 2 else "0"
    column_stride = f"%{name}.stride{rank - 1}" if rank >= 1 else "0"
    lines = []
    for number, index in enumerate(itertools.product(*map(range, array.shape[:-2]))):
        base = f"%{name}.base"
        for axis, i in enumerate(index):
            lines += [
                f"  %{name}.offset{number}.{axis} = mul i64 %{name}.stride{axis}, {i}",
                f"  %{name}.base{number}.{axis} = getelementptr i8, ptr {base}, i64 %{name}.offset{number}.{axis}",
            ]
            base = f"%{name}.base{number}.{axis}"
        place = (offset + number * rows * columns) * vector.bytes
        lines += [
            f"  %{name}.scratch{number} = getelementptr i8, ptr %scratch, i64 {place}",
            f"  call void @{kind}{rows}x{columns}(ptr {base}, i64 %{name}.step, i64 {row_stride}, i64 {column_stride}, "
            f"ptr %numbers, ptr %{name}.scratch{number})",
        ]
    return lines
