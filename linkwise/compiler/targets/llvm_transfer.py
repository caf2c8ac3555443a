"""LLVM text of moves between NumPy arrays, or tables of constants, and vectors: element by element, one state per lane;
and of moves between vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .llvm_lines import AHEAD, CACHE_LINE, cache_lines, find_address, shuffle
from .llvm_vector import VectorType


def fill(constants: Mapping[int, float], vector: VectorType, attributes: str) -> str:
    """``void @fill(scratch)``: broadcasts each constant to the vector of ``scratch`` with its key as number.

    The constants are data and the code is a loop, so that LLVM's time hardly grows with their number.
    """
    count = len(constants)
    places = ", ".join(f"i32 {place}" for place in constants)
    values = ", ".join(map(vector.number, constants.values()))
    return f"""@constant_places = internal constant [{count} x i32] [{places}]
@constants = internal constant [{count} x {vector.scalar}] [{values}]

define internal void @fill(ptr noalias %scratch) noinline nounwind {attributes} {{
entry:
  br label %constant
constant:
  %i = phi i64 [ 0, %entry ], [ %i.next, %constant ]
  %place.at = getelementptr i32, ptr @constant_places, i64 %i
  %place = load i32, ptr %place.at
  %value.at = getelementptr {vector.scalar}, ptr @constants, i64 %i
  %value = load {vector.scalar}, ptr %value.at
  %one_lane = insertelement {vector.real} poison, {vector.scalar} %value, i32 0
  %all_lanes = shufflevector {vector.real} %one_lane, {vector.real} poison, <{vector.lanes} x i32> zeroinitializer
  %at = getelementptr {vector.real}, ptr %scratch, i32 %place
  store {vector.real} %all_lanes, ptr %at
  %i.next = add i64 %i, 1
  %more = icmp slt i64 %i.next, {count}
  br i1 %more, label %constant, label %exit
exit:
  ret void
}}
"""


def copy(vector: VectorType, attributes: str) -> str:
    """``void @copy(from, to, count)``: copies ``count`` vectors, at least one, between places that do not overlap."""
    return f"""define internal void @copy(ptr noalias %from, ptr noalias %to, i64 %count) nounwind \
{attributes} {{
entry:
  br label %vector
vector:
  %i = phi i64 [ 0, %entry ], [ %i.next, %vector ]
  %from.at = getelementptr {vector.real}, ptr %from, i64 %i
  %to.at = getelementptr {vector.real}, ptr %to, i64 %i
  %value = load {vector.real}, ptr %from.at
  store {vector.real} %value, ptr %to.at
  %i.next = add i64 %i, 1
  %more = icmp slt i64 %i.next, %count
  br i1 %more, label %vector, label %exit
exit:
  ret void
}}
"""


def copy_from_places(vector: VectorType, attributes: str) -> str:
    """``void @copy_from_places(scratch, places, to, count)``: copies ``count`` vectors, at least one, from the scratch
    places in a table to ``to``, without overlap."""
    return f"""define internal void @copy_from_places(ptr %scratch, ptr noalias %places, ptr %to, i64 %count) nounwind \
{attributes} {{
entry:
  br label %vector
vector:
  %i = phi i64 [ 0, %entry ], [ %i.next, %vector ]
  %place.at = getelementptr i32, ptr %places, i64 %i
  %place = load i32, ptr %place.at
  %from.at = getelementptr {vector.real}, ptr %scratch, i32 %place
  %to.at = getelementptr {vector.real}, ptr %to, i64 %i
  %value = load {vector.real}, ptr %from.at
  store {vector.real} %value, ptr %to.at
  %i.next = add i64 %i, 1
  %more = icmp slt i64 %i.next, %count
  br i1 %more, label %vector, label %exit
exit:
  ret void
}}
"""


def table(name: str, places: Sequence[int]) -> str:
    """A table of places in the scratch area."""
    return f"@{name} = internal constant [{len(places)} x i32] [{', '.join(f'i32 {place}' for place in places)}]"


def transfer(kind: str, rows: int, columns: int, vector: VectorType, attributes: str, permutes: bool = False) -> str:
    """``void @gather<rows>x<columns>(base, step, row_stride, column_stride, numbers, scratch)``, ``@scatter...``, and
    ``@deliver...`` with a table as further argument.

    Moves a matrix of each lane's state to or from ``rows * columns`` vectors at ``scratch``, or (deliver) from the
    scratch places in the table; ``numbers`` points to the lanes' state numbers.  Row neighbours that are adjacent in
    memory are moved in pairs: half the accesses, plus two shuffles.  A contiguous matrix is stored by cache lines;
    ``permutes``: the machine has ``PERMUTE``.
    """
    of_register = OF_REGISTER * (vector.share > 1)
    paired = columns // 2 * 2 if vector.lanes > 1 else 0
    by_lines = kind != GATHER and vector.lanes > 1 and rows * columns * vector.bits // 8 >= CACHE_LINE
    lines = [
        f"define internal void @{kind}{rows}x{columns}{of_register}(ptr %base, i64 %step, i64 %row_stride, "
        f"i64 %column_stride, ptr %numbers, ptr %scratch{', ptr %table' if kind == DELIVER else ''}) "
        f"noinline nounwind {attributes} {{",
        "entry:",
    ]
    for i in range(vector.lanes):
        lines += [
            f"  %number{i}.at = getelementptr i64, ptr %numbers, i64 {i}",
            f"  %number{i} = load i64, ptr %number{i}.at",
            f"  %shift{i} = mul i64 %number{i}, %step",
            f"  %lane{i} = getelementptr i8, ptr %base, i64 %shift{i}",
        ]
    lines.append(f"  %dense = icmp eq i64 %column_stride, {vector.bits // 8}")
    if kind == SCATTER and not by_lines:  # contiguous records: stores would wait for their lines
        for i in range(vector.lanes):
            lines.append(f"  %later{i} = getelementptr i8, ptr %lane{i}, i64 {AHEAD // 2}")
            lines.append(f"  call void @llvm.prefetch.p0(ptr %later{i}, i32 1, i32 3, i32 1)")
    if by_lines:
        lines += cache_lines(rows, columns, kind == DELIVER, vector, permutes)
    lines += [
        "  br label %row",
        "row:",
        f"  %i = phi i64 [ 0, %{'gaps' if by_lines else 'entry'} ], [ %i.next, %row_end ]",
        "  %row.offset = mul i64 %i, %row_stride",
        f"  %row.place = mul i64 %i, {columns}",
    ]
    if paired:
        lines.append("  br i1 %dense, label %pair, label %single")
        lines += _loop("pair", kind, vector, "[ 0, %row ]", paired, "single" if paired < columns else "row_end")
    else:
        lines.append("  br label %single")
    starts = f"[ 0, %row ], [ {paired}, %pair ]" if 0 < paired < columns else "[ 0, %row ]"
    lines += [
        *_loop("single", kind, vector, starts, columns, "row_end"),
        "row_end:",
        "  %i.next = add i64 %i, 1",
        f"  %more_rows = icmp slt i64 %i.next, {rows}",
        "  br i1 %more_rows, label %row, label %exit",
        "exit:",
        "  ret void",
        "}",
        "",
    ]
    return "\n".join(lines)


GATHER, SCATTER, DELIVER = "gather", "scatter", "deliver"
OF_REGISTER = "_of_register"


def split_transfer(kind: str, rows: int, columns: int, vector: VectorType, registers: int, attributes: str) -> str:
    """``transfer`` for vectors of several registers: lanes are moved register by register, because the addresses of all
    lanes do not fit into registers."""
    part, name = VectorType(vector.dtype, vector.lanes // registers, registers), f"{kind}{rows}x{columns}"
    strides = "i64 %step, i64 %row_stride, i64 %column_stride"
    function = f"""define internal void @{name}(ptr %base, {strides}, ptr %numbers, ptr %scratch) noinline nounwind \
{attributes} {{
entry:
  br label %register
register:
  %k = phi i64 [ 0, %entry ], [ %k.next, %register ]
  %lane = mul i64 %k, {part.lanes}
  %own_numbers = getelementptr i64, ptr %numbers, i64 %lane
  %own_scratch = getelementptr {part.real}, ptr %scratch, i64 %k
  call void @{name}{OF_REGISTER}(ptr %base, {strides}, ptr %own_numbers, ptr %own_scratch)
  %k.next = add i64 %k, 1
  %more = icmp slt i64 %k.next, {registers}
  br i1 %more, label %register, label %exit
exit:
  ret void
}}

"""
    return function + transfer(kind, rows, columns, part, attributes)


def _loop(name: str, kind: str, vector: VectorType, starts: str, end: int, after: str) -> list[str]:
    """A block ``name`` that loops over columns, in pairs or singly, up to ``end`` and goes on to ``after``."""
    move = {
        ("pair", True): _gather_pair,
        ("pair", False): _scatter_pair,
        ("single", True): _gather_single,
        ("single", False): _scatter_single,
    }[name, kind == GATHER]
    count = 2 if name == "pair" else 1
    return [
        f"{name}:",
        f"  %{name}.j = phi i64 {starts}, [ %{name}.j.next, %{name} ]",
        f"  %{name}.shift = mul i64 %{name}.j, %column_stride",
        f"  %{name}.offset = add i64 %row.offset, %{name}.shift",
        f"  %{name}.first = add i64 %row.place, %{name}.j",
        *(line for k in range(count) for line in find_address(name, k, kind == DELIVER, vector)),
        *(f"  %{name}.a{i} = getelementptr i8, ptr %lane{i}, i64 %{name}.offset" for i in range(vector.lanes)),
        *move(vector),
        f"  %{name}.j.next = add i64 %{name}.j, {count}",
        f"  %{name}.more = icmp slt i64 %{name}.j.next, {end}",
        f"  br i1 %{name}.more, label %{name}, label %{after}",
    ]


def _gather_single(vector: VectorType) -> list[str]:
    lines, so_far = [], "poison"
    for i in range(vector.lanes):
        lines.append(f"  %element.{i} = load {vector.scalar}, ptr %single.a{i}, align 1")
        lines.append(f"  %value{i} = insertelement {vector.real} {so_far}, {vector.scalar} %element.{i}, i32 {i}")
        so_far = f"%value{i}"
    return [*lines, f"  store {vector.real} {so_far}, ptr %single.at0"]


def _scatter_single(vector: VectorType) -> list[str]:
    lines = [f"  %value = load {vector.real}, ptr %single.at0"]
    for i in range(vector.lanes):
        lines.append(f"  %element.{i} = extractelement {vector.real} %value, i32 {i}")
        lines.append(f"  store {vector.scalar} %element.{i}, ptr %single.a{i}, align 1")
    return lines


def _gather_pair(vector: VectorType) -> list[str]:
    two, n = f"<2 x {vector.scalar}>", vector.lanes
    lines = [f"  %pair{i} = load {two}, ptr %pair.a{i}, align 1" for i in range(n)]
    # Pairs of the even lanes side by side, pairs of the odd lanes side by side; then first with first.
    evens = _concatenate(lines, vector, "even_lanes", [f"%pair{i}" for i in range(0, n, 2)])
    odds = _concatenate(lines, vector, "odd_lanes", [f"%pair{i}" for i in range(1, n, 2)])
    for k in range(2):
        mask = [base + 2 * i + k for i in range(n // 2) for base in (0, n)]
        lines.append(shuffle(f"%element{k}", vector, evens, odds, mask))
        lines.append(f"  store {vector.real} %element{k}, ptr %pair.at{k}")
    return lines


def _scatter_pair(vector: VectorType) -> list[str]:
    n, scalar = vector.lanes, vector.scalar
    lines = []
    for k in range(2):
        lines.append(f"  %element{k} = load {vector.real}, ptr %pair.at{k}")
    for k, name in enumerate(("%even_lanes", "%odd_lanes")):
        mask = [base + 2 * i + k for i in range(n // 2) for base in (0, n)]
        lines.append(shuffle(name, vector, "%element0", "%element1", mask))
        for i in range(n // 2):
            pair = f"%pair{2 * i + k}"
            mask_text = f"<2 x i32> <i32 {2 * i}, i32 {2 * i + 1}>"
            lines.append(f"  {pair} = shufflevector {vector.real} {name}, {vector.real} poison, {mask_text}")
            lines.append(f"  store <2 x {scalar}> {pair}, ptr %pair.a{2 * i + k}, align 1")
    return lines


def _concatenate(lines: list[str], vector: VectorType, name: str, pieces: list[str]) -> str:
    """Put vectors of two side by side, in a tree."""
    width, level = 2, 0
    while len(pieces) > 1:
        kind, mask = f"<{width} x {vector.scalar}>", ", ".join(f"i32 {i}" for i in range(2 * width))
        joined = []
        for i in range(0, len(pieces), 2):
            joined.append(f"%{name}.{level}.{i // 2}")
            sides = f"{kind} {pieces[i]}, {kind} {pieces[i + 1]}"
            lines.append(f"  {joined[-1]} = shufflevector {sides}, <{2 * width} x i32> <{mask}>")
        pieces, width, level = joined, 2 * width, level + 1
    return pieces[0]
