"""LLVM text of the loop over the states: gather a group of them, compute, scatter; over time, repeatedly.

Over time a group of states runs from its first to its last record before the next group starts.  Carried values stay in
the scratch area; only per-run inputs are gathered and results of each record scattered.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ..ir.program import RECORDS, REPEATS, Array, Program
from .llvm_scratch import LoopScratch, Scratch, identifier
from .llvm_transfer import DELIVER, GATHER, SCATTER, table
from .llvm_vector import VectorType

STACK_LIMIT = 1 << 16  # bytes of scratch on the stack; larger areas are on the heap
#: Bytes of scratch above which large pages are requested on Linux: getting new memory in small pages takes longer than
#: the computation.
LARGE_PAGES_FROM, MADV_HUGEPAGE = 1 << 22, 14


@dataclass(frozen=True)
class _Operand:
    """An array of the loop, with its named axes before the core. Its core in scratch begins at ``offset``, or is at the
    places of a table."""

    name: str
    array: Array
    axes: tuple[str, ...]
    offset: int
    table: str = ""

    def setup(self, number: int, stride_number: int) -> list[str]:
        """Instructions that read the array's address and strides."""
        lines = [f"  ; {self.array.name}{[*self.axes, *self.array.shape]}".replace("'", "")]
        lines += _load_from("ptr", f"%{self.name}.base", "%args", number)
        lines += _load_from("i64", f"%{self.name}.step", "%steps", number)
        for axis in (*self.axes, *range(len(self.array.shape))):
            lines += _load_from("i64", f"%{self.name}.stride{_suffix(axis)}", "%steps", stride_number)
            stride_number += 1
        return lines

    def here(self) -> tuple[list[str], str]:
        """Instructions for the array's address at the current indices of its named axes."""
        lines, base = [], f"%{self.name}.base"
        for axis in self.axes:
            lines += [
                f"  %{self.name}.shift.{axis} = mul i64 %{self.name}.stride.{axis}, %{axis}.i",
                f"  %{self.name}.at.{axis} = getelementptr i8, ptr {base}, i64 %{self.name}.shift.{axis}",
            ]
            base = f"%{self.name}.at.{axis}"
        return lines, base

    def transfer(self, kind: str, vector: VectorType) -> list[str]:
        """Calls that move the array between memory and scratch, one for each of its matrices."""
        array, name = self.array, self.name
        if array.size == 0:
            return []
        rows, columns = _rows_and_columns(array)
        rank = len(array.shape)
        row_stride = f"%{name}.stride{rank - 2}" if rank >= 2 else "0"
        column_stride = f"%{name}.stride{rank - 1}" if rank >= 1 else "0"
        lines, start = self.here()
        for number, index in enumerate(itertools.product(*map(range, array.shape[:-2]))):
            base = start
            for axis, i in enumerate(index):
                lines += [
                    f"  %{name}.offset{number}.{axis} = mul i64 %{name}.stride{axis}, {i}",
                    f"  %{name}.base{number}.{axis} = getelementptr i8, ptr {base}, i64 %{name}.offset{number}.{axis}",
                ]
                base = f"%{name}.base{number}.{axis}"
            where = f"ptr {base}, i64 %{name}.step, i64 {row_stride}, i64 {column_stride}, ptr %numbers"
            place = number * rows * columns
            if self.table:
                lines += [
                    f"  %{name}.table{number} = getelementptr i32, ptr {self.table}, i64 {place}",
                    f"  call void @{kind}{rows}x{columns}({where}, ptr %scratch, ptr %{name}.table{number})",
                ]
            else:
                place = (self.offset + place) * vector.bytes
                lines += [
                    f"  %{name}.scratch{number} = getelementptr i8, ptr %scratch, i64 {place}",
                    f"  call void @{kind}{rows}x{columns}({where}, ptr %{name}.scratch{number})",
                ]
        return lines


def _suffix(axis: str | int) -> str:
    return f".{axis}" if isinstance(axis, str) else str(axis)


def symbol(program: Program) -> str:
    """Name of the exported function."""
    return identifier(program.name)


def transfers(program: Program, scratch: Scratch | LoopScratch) -> list[tuple[str, int, int]]:
    """The moves that the arrays need: kind, rows, columns."""
    gathers = {(GATHER, *_rows_and_columns(array)) for array in program.inputs if array.size}
    back = SCATTER if scratch.in_order or program.carried else DELIVER
    return sorted(gathers) + sorted({(back, *_rows_and_columns(array)) for array in program.outputs if array.size})


def _rows_and_columns(array: Array) -> tuple[int, int]:
    rows, columns = (1, 1, *array.shape)[-2:]
    return rows, columns


def loop(
    program: Program,
    scratch: Scratch | LoopScratch,
    compute: list[str],
    attributes: str,
    ahead: Sequence[int] = (),
) -> str:
    """The exported function. ``compute``: calls that read inputs and write outputs in scratch; they may prefetch the
    outputs with numbers ``ahead``."""
    inputs, outputs = _operands(program, scratch)
    setup = []
    stride_number = len(inputs) + len(outputs)
    for number, operand in enumerate((*inputs, *outputs)):
        setup += operand.setup(number, stride_number)
        stride_number += len(operand.axes) + len(operand.array.shape)
    setup += scratch.preparation
    if not program.carried:
        back = SCATTER if scratch.in_order else DELIVER
        gathers = [line for operand in inputs for line in operand.transfer(GATHER, scratch.vector)]
        deliveries = [line for operand in outputs for line in operand.transfer(back, scratch.vector)]
        addresses = [line for i, number in enumerate(ahead) for line in _addresses(i, outputs[number], scratch.vector)]
        group, end = [*gathers, *addresses, *compute, *deliveries], "group"
    else:
        setup += _sizes(inputs, outputs)
        group, end = _runs(program, inputs, outputs, compute, scratch.vector), "group_end"
    lanes = scratch.vector.lanes
    allocate, release = _allocation(scratch.bytes)
    lines = [
        f"define void @{symbol(program)}(ptr %args, ptr %dimensions, ptr %steps, ptr %data) nounwind {attributes} {{",
        "entry:",
        "  %states = load i64, ptr %dimensions",
        "  %some = icmp sgt i64 %states, 0",
        f"  %numbers = alloca [{lanes} x i64], align 64",
        f"  %ahead = alloca [{max(1, len(ahead) * lanes)} x ptr], align 64",
        *allocate,
        "prepare:",
        "  %last = sub i64 %states, 1",
        *setup,
        "  br label %group",
        "group:",
        f"  %first = phi i64 [ 0, %prepare ], [ %next, %{end} ]",
        *_lane_states(lanes),
        *group,
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


def _operands(program: Program, scratch: Scratch | LoopScratch) -> tuple[list[_Operand], list[_Operand]]:
    def named(side: str, arrays: tuple[Array, ...], offsets: list[int]) -> Iterator[_Operand]:
        for i, (array, offset) in enumerate(zip(arrays, offsets, strict=True)):
            yield _Operand(f"{side}{i}", array, array.axes, offset)

    inputs = list(named("in", program.inputs, scratch.input_offsets))
    outputs = list(named("out", program.outputs, scratch.output_offsets))
    if not scratch.in_order:
        sigil = "%" if isinstance(scratch, LoopScratch) else "@"  # tables are data; otherwise constants
        outputs = [replace(operand, table=f"{sigil}places_of_{operand.name}") for operand in outputs]
    return inputs, outputs


def tables(scratch: Scratch | LoopScratch) -> list[str]:
    """Tables of element positions of permuted outputs."""
    if isinstance(scratch, LoopScratch) or scratch.in_order:
        return []
    return [table(f"places_of_out{i}", places) for i, places in enumerate(scratch.places) if places]


# -- over time --------------------------------------------------------------------------------


def _sizes(inputs: list[_Operand], outputs: list[_Operand]) -> list[str]:
    """Read the lengths of the named axes. NumPy numbers core dimensions in order of appearance, with equal names as
    one."""
    order = dict.fromkeys(size for operand in (*inputs, *outputs) for size in (*operand.axes, *operand.array.shape))
    position = {size: number for number, size in enumerate(order, 1)}
    return [
        line
        for axis in (RECORDS, REPEATS)
        for line in _load_from("i64", f"%{axis}.count", "%dimensions", position[axis])
    ]


def _runs(
    program: Program,
    inputs: list[_Operand],
    outputs: list[_Operand],
    compute: list[str],
    vector: VectorType,
) -> list[str]:
    """Blocks that compute all records of one group of states; the last block is left open."""
    once = [operand for operand in inputs if not operand.axes]
    per_run = [operand for operand in inputs if operand.axes]
    fed_back = [replace(outputs[k], offset=inputs[number].offset, table="") for k, number in program.carried]
    return [
        *(line for operand in once for line in operand.transfer(GATHER, vector)),
        f"  br label %{RECORDS}",
        *_counting(RECORDS, "group", "record_end", REPEATS, "group_end"),
        *_counting(REPEATS, RECORDS, "run", "run", "record_end"),
        "run:",
        *(line for operand in per_run for line in operand.transfer(GATHER, vector)),
        *compute,
        *(line for pair in zip(outputs, fed_back, strict=True) for line in _copy(*pair, vector)),
        f"  br label %{REPEATS}",
        "record_end:",
        *(line for operand in fed_back if operand.axes for line in operand.transfer(SCATTER, vector)),
        f"  br label %{RECORDS}",
        "group_end:",
        *(line for operand in fed_back if not operand.axes for line in operand.transfer(SCATTER, vector)),
    ]


def _counting(axis: str, before: str, end: str, inside: str, after: str) -> list[str]:
    """The head of a loop over a named axis: continue at ``inside`` or, at the end, at ``after``."""
    return [
        f"{axis}:",
        f"  %{axis}.i = phi i64 [ 0, %{before} ], [ %{axis}.next, %{end} ]",
        f"  %{axis}.next = add i64 %{axis}.i, 1",
        f"  %{axis}.more = icmp slt i64 %{axis}.i, %{axis}.count",
        f"  br i1 %{axis}.more, label %{inside}, label %{after}",
    ]


def _copy(source: _Operand, target: _Operand, vector: VectorType) -> list[str]:
    """Copy an output in scratch to its carried input."""
    if source.array.size == 0:
        return []
    name = source.name
    if source.table:
        places, size = f"ptr {source.table}", source.array.size
        return [
            f"  %{name}.back = getelementptr i8, ptr %scratch, i64 {target.offset * vector.bytes}",
            f"  call void @copy_from_places(ptr %scratch, {places}, ptr %{name}.back, i64 {size})",
        ]
    return [
        f"  %{name}.fed = getelementptr i8, ptr %scratch, i64 {source.offset * vector.bytes}",
        f"  %{name}.back = getelementptr i8, ptr %scratch, i64 {target.offset * vector.bytes}",
        f"  call void @copy(ptr %{name}.fed, ptr %{name}.back, i64 {source.array.size})",
    ]


# -- pieces of the exported function ------------------------------------------------------------


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


def _addresses(position: int, operand: _Operand, vector: VectorType) -> list[str]:
    """Store the start address of an output of each lane's state, from position ``position`` of %ahead on."""
    lines, name = [], operand.name
    for i in range(vector.lanes):
        lines += [
            f"  %{name}.ahead{i}.shift = mul i64 %number{i}, %{name}.step",
            f"  %{name}.ahead{i} = getelementptr i8, ptr %{name}.base, i64 %{name}.ahead{i}.shift",
            f"  %{name}.ahead{i}.at = getelementptr ptr, ptr %ahead, i64 {position * vector.lanes + i}",
            f"  store ptr %{name}.ahead{i}, ptr %{name}.ahead{i}.at",
        ]
    return lines


def _allocation(size: int) -> tuple[list[str], list[str]]:
    """Instructions that allocate %scratch and leave the entry block, and instructions that release it."""
    if size <= STACK_LIMIT:
        return [f"  %scratch = alloca [{size} x i8], align 64", "  br i1 %some, label %prepare, label %exit"], []
    large = size >= LARGE_PAGES_FROM and sys.platform == "linux"
    alignment = 4096 if large else 64
    advice = f"  %advised = call i32 @madvise(ptr %scratch, i64 {size}, i32 {MADV_HUGEPAGE})"
    allocate = [
        "  br i1 %some, label %allocate, label %exit",
        "allocate:",
        f"  %memory = call ptr @PyMem_RawMalloc(i64 {size + alignment - 1})",
        "  %address = ptrtoint ptr %memory to i64",
        f"  %above = add i64 %address, {alignment - 1}",
        f"  %aligned = and i64 %above, -{alignment}",
        "  %scratch = inttoptr i64 %aligned to ptr",
        "  %failed = icmp eq ptr %memory, null",
        f"  br i1 %failed, label %no_memory, label %{'advise' if large else 'prepare'}",
        *(["advise:", advice, "  br label %prepare"] if large else []),
        "no_memory:",
        "  %lock = call i32 @PyGILState_Ensure()",
        "  %error = call ptr @PyErr_NoMemory()",
        "  call void @PyGILState_Release(i32 %lock)",
        "  br label %exit",
    ]
    return allocate, ["  call void @PyMem_RawFree(ptr %memory)"]
