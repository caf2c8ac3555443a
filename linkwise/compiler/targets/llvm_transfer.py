"""LLVM text of the moves between NumPy arrays, or a table of constants, and vectors: element by element, one state
per lane; and of those between vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .llvm_vector import VectorType

CACHE_LINE = 64  # bytes
LARGE = 4096  # bytes of a matrix whose cache lines are asked for before they are written
AHEAD = 8 * CACHE_LINE


def fill(constants: Mapping[int, float], vector: VectorType, attributes: str) -> str:
    """``void @fill(scratch)``: puts each constant into all lanes of the vector of ``scratch`` that it is keyed by.

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
    return f"""define internal void @copy(ptr noalias %from, ptr noalias %to, i64 %count) noinline nounwind \
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


def table(name: str, places: Sequence[int]) -> str:
    """A table of places in the scratch area."""
    return f"@{name} = internal constant [{len(places)} x i32] [{', '.join(f'i32 {place}' for place in places)}]"


def transfer(kind: str, rows: int, columns: int, vector: VectorType, attributes: str) -> str:
    """``void @gather<rows>x<columns>(base, step, row_stride, column_stride, numbers, scratch)``, ``@scatter...``, and
    ``@deliver...`` with one more argument, a table.

    Moves a matrix of each lane's state to or from ``rows * columns`` vectors at ``scratch``, or (deliver) from the
    places there that the table has; ``numbers`` points at the lanes' state numbers.  Where neighbours in a row are
    neighbours in memory, they are moved two at a time: half the accesses, and two shuffles put them in their places.
    A matrix that has no gaps in memory is stored by cache lines.
    """
    paired = columns // 2 * 2 if vector.lanes > 1 else 0
    by_lines = kind != GATHER and vector.lanes > 1 and rows * columns * vector.bits // 8 >= CACHE_LINE
    lines = [
        f"define internal void @{kind}{rows}x{columns}(ptr %base, i64 %step, i64 %row_stride, i64 %column_stride, "
        f"ptr %numbers, ptr %scratch{', ptr %table' if kind == DELIVER else ''}) noinline nounwind {attributes} {{",
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
    if kind == SCATTER and not by_lines:  # the records of a state follow each other: stores would wait for their lines
        for i in range(vector.lanes):
            lines.append(f"  %later{i} = getelementptr i8, ptr %lane{i}, i64 {AHEAD // 2}")
            lines.append(f"  call void @llvm.prefetch.p0(ptr %later{i}, i32 1, i32 3, i32 1)")
    if by_lines:
        lines += _cache_lines(rows, columns, kind == DELIVER, vector)
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
        *(line for k in range(count) for line in _place(name, k, kind == DELIVER, vector)),
        *(f"  %{name}.a{i} = getelementptr i8, ptr %lane{i}, i64 %{name}.offset" for i in range(vector.lanes)),
        *move(vector),
        f"  %{name}.j.next = add i64 %{name}.j, {count}",
        f"  %{name}.more = icmp slt i64 %{name}.j.next, {end}",
        f"  br i1 %{name}.more, label %{name}, label %{after}",
    ]


def _place(name: str, k: int, by_table: bool, vector: VectorType) -> list[str]:
    """Instructions that find the vector of the k-th of the elements moved together."""
    lines = [f"  %{name}.number{k} = add i64 %{name}.first, {k}"]
    place = f"%{name}.number{k}"
    if by_table:
        lines += [
            f"  %{name}.entry{k} = getelementptr i32, ptr %table, i64 {place}",
            f"  %{name}.short{k} = load i32, ptr %{name}.entry{k}",
            f"  %{name}.place{k} = zext i32 %{name}.short{k} to i64",
        ]
        place = f"%{name}.place{k}"
    return [*lines, f"  %{name}.at{k} = getelementptr {vector.real}, ptr %scratch, i64 {place}"]


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
        lines.append(_shuffle(f"%element{k}", vector, evens, odds, mask))
        lines.append(f"  store {vector.real} %element{k}, ptr %pair.at{k}")
    return lines


def _scatter_pair(vector: VectorType) -> list[str]:
    n, scalar = vector.lanes, vector.scalar
    lines = []
    for k in range(2):
        lines.append(f"  %element{k} = load {vector.real}, ptr %pair.at{k}")
    for k, name in enumerate(("%even_lanes", "%odd_lanes")):
        mask = [base + 2 * i + k for i in range(n // 2) for base in (0, n)]
        lines.append(_shuffle(name, vector, "%element0", "%element1", mask))
        for i in range(n // 2):
            pair = f"%pair{2 * i + k}"
            mask_text = f"<2 x i32> <i32 {2 * i}, i32 {2 * i + 1}>"
            lines.append(f"  {pair} = shufflevector {vector.real} {name}, {vector.real} poison, {mask_text}")
            lines.append(f"  store <2 x {scalar}> {pair}, ptr %pair.a{2 * i + k}, align 1")
    return lines


def _cache_lines(rows: int, columns: int, by_table: bool, vector: VectorType) -> list[str]:
    """Blocks that store a matrix without gaps, a cache line of each state at a time, and leave; the last one, for
    others, is left open.  The last line ends with the matrix: where it overlaps the one before, elements are stored
    twice.  Of a large matrix, lines further on are asked for, as the stores would wait for them."""
    size, item, n, lines = rows * columns, vector.bits // 8, vector.lanes, []
    at_once, together = CACHE_LINE // item, _stored_together(vector)
    flat = "%dense"
    if rows > 1:
        lines += [f"  %close = icmp eq i64 %row_stride, {columns * item}", "  %flat = and i1 %dense, %close"]
        flat = "%flat"
    lines += [
        f"  br i1 {flat}, label %line, label %gaps",
        "line:",
        "  %line.j = phi i64 [ 0, %entry ], [ %line.j.next, %line ]",
        f"  %line.first = call i64 @llvm.umin.i64(i64 %line.j, i64 {size - at_once})",
        f"  %line.offset = mul i64 %line.first, {item}",
        *(line for k in range(at_once) for line in _place("line", k, by_table, vector)),
        *(f"  %line.in{k} = load {vector.real}, ptr %line.at{k}" for k in range(at_once)),
        *(f"  %line.a{i} = getelementptr i8, ptr %lane{i}, i64 %line.offset" for i in range(n)),
    ]
    if size * item >= LARGE:
        for i in range(n):
            lines.append(f"  %line.ahead{i} = getelementptr i8, ptr %line.a{i}, i64 {AHEAD}")
            lines.append(f"  call void @llvm.prefetch.p0(ptr %line.ahead{i}, i32 1, i32 3, i32 1)")
    for start in range(0, at_once, together):
        inside = [f"%line.in{start + k}" for k in range(together)]
        lines += _store_together(f"line.{start}", start * item, inside, vector)
    return [
        *lines,
        f"  %line.j.next = add i64 %line.j, {at_once}",
        f"  %line.more = icmp slt i64 %line.j.next, {size}",
        "  br i1 %line.more, label %line, label %exit",
        "gaps:",
    ]


def _stored_together(vector: VectorType) -> int:
    """How many neighbours one store takes: no more than lanes, and 32 bytes, of which few lie across cache lines."""
    return min(vector.lanes, 32 * 8 // vector.bits)


def _store_together(name: str, shift: int, parts: list[str], vector: VectorType) -> list[str]:
    """Store vectors, each an element of all states, ``shift`` bytes past the lanes' places.

    Two vectors become two that have both elements of every second state side by side; then two of those, twice as many
    elements of half of their states, and so on, until one vector has all elements of some states.
    """
    lines: list[str] = []
    n, width = vector.lanes, 1
    sets = [(parts, list(range(n)))]  # vectors that are to be put together, and the states that they have
    while width < len(parts):
        following = []
        for pieces, states in sets:
            for half in range(2):
                chosen = (
                    range(half, n, 2) if width == 1 else range(half * n // width // 2, (half + 1) * n // width // 2)
                )
                mask = [base + width * p + k for p in chosen for base in (0, n) for k in range(width)]
                made = [f"%{name}.{width}.{states[chosen[0]]}.{i // 2}" for i in range(0, len(pieces), 2)]
                pairs = zip(made, pieces[::2], pieces[1::2], strict=True)
                lines += [_shuffle(joined, vector, a, b, mask) for joined, a, b in pairs]
                following.append((made, [states[p] for p in chosen]))
        sets, width = following, 2 * width
    for (piece,), states in sets:
        for p, state in enumerate(states):
            mask_text = ", ".join(f"i32 {p * width + k}" for k in range(width))
            lines += [
                f"  %{name}.of{state} = shufflevector {vector.real} {piece}, {vector.real} poison, "
                f"<{width} x i32> <{mask_text}>",
                f"  %{name}.to{state} = getelementptr i8, ptr %line.a{state}, i64 {shift}",
                f"  store <{width} x {vector.scalar}> %{name}.of{state}, ptr %{name}.to{state}, align 1",
            ]
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


def _shuffle(name: str, vector: VectorType, a: str, b: str, mask: list[int]) -> str:
    numbers = ", ".join(f"i32 {i}" for i in mask)
    return f"  {name} = shufflevector {vector.real} {a}, {vector.real} {b}, <{vector.lanes} x i32> <{numbers}>"
