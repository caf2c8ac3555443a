"""LLVM text that stores a contiguous matrix of each lane's state by cache lines."""

from __future__ import annotations

from .llvm_vector import VectorType

CACHE_LINE = 64  # bytes
LARGE = 4096  # bytes of a matrix above which its cache lines are prefetched for writing
AHEAD = 8 * CACHE_LINE
WHOLE = 8  # minimum cache lines of a matrix for storing whole lines
PERMUTE = "llvm.x86.avx512.vpermi2var.pd.512"  # instruction that picks from two vectors by variable indices


def cache_lines(rows: int, columns: int, by_table: bool, vector: VectorType, permutes: bool) -> list[str]:
    """Blocks that store a contiguous matrix, one cache line of each state at a time, and leave; the last block, for
    other matrices, is left open. The last line ends with the matrix: elements in the overlap with the line before are
    stored twice. For large matrices, lines further on are prefetched. If the machine ``permutes`` vectors by computed
    indices, matrices of several lines are stored by aligned lines of memory."""
    size, item, n, lines = rows * columns, vector.bits // 8, vector.lanes, []
    at_once, together = CACHE_LINE // item, _stored_together(vector)
    flat = "%dense"
    if rows > 1:
        lines += [f"  %close = icmp eq i64 %row_stride, {columns * item}", "  %flat = and i1 %dense, %close"]
        flat = "%flat"
    before = "entry"
    if permutes and n == at_once and item == 8 and size >= WHOLE * at_once:
        lines += [f"  br i1 {flat}, label %whole, label %gaps", *_whole_lines(size, by_table, vector)]
        before = "whole"
    else:
        lines.append(f"  br i1 {flat}, label %line, label %gaps")
    lines += [
        "line:",
        f"  %line.j = phi i64 [ 0, %{before} ], [ %line.j.next, %line ]",
        f"  %line.first = call i64 @llvm.umin.i64(i64 %line.j, i64 {size - at_once})",
        f"  %line.offset = mul i64 %line.first, {item}",
        *(line for k in range(at_once) for line in find_address("line", k, by_table, vector)),
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


def _whole_lines(size: int, by_table: bool, vector: VectorType) -> list[str]:
    """Blocks that store a matrix by aligned cache lines, each with one instruction, and leave.  If numbers lie across
    lines, they continue to the block ``line``.

    Aligned stores take the processor half the time of others.  The matrices of the lanes start at different offsets in
    a line.  Block k of each, its elements 8 k to 8 k + 7, and the block before together contain the next line; the
    offset is the number of elements before the first line.  The ends of a matrix are stored unaligned.
    """
    n, item, real = vector.lanes, 8, vector.real
    blocks, lanes = size // n, range(vector.lanes)
    lines = ["whole:"]
    for i in lanes:
        lines += [
            f"  %address{i} = ptrtoint ptr %lane{i} to i64",
            f"  %across{i} = {f'or i64 %across{i - 1}, %address{i}' if i else 'add i64 %address0, 0'}",
        ]
    lines += [
        f"  %odd = and i64 %across{n - 1}, {item - 1}",
        "  %even = icmp eq i64 %odd, 0",
        "  br i1 %even, label %first, label %line",
        "first:",
    ]
    for i in lanes:
        lines += [
            f"  %negative{i} = sub i64 0, %address{i}",
            f"  %ahead{i} = and i64 %negative{i}, {CACHE_LINE - 1}",
            f"  %whole{i} = getelementptr i8, ptr %lane{i}, i64 %ahead{i}",
            f"  %skipped{i} = lshr exact i64 %ahead{i}, 3",
            f"  %one{i} = insertelement {vector.integer} poison, i64 %skipped{i}, i32 0",
            f"  %all{i} = shufflevector {vector.integer} %one{i}, {vector.integer} poison, {vector.integer_mask(0)}",
            f"  %picked{i} = add {vector.integer} %all{i}, {vector.counting}",
        ]
    lines += ["  %first.first = add i64 0, 0", *_transposed("first", by_table, vector)]
    lines += [f"  store {real} %first.of{i}, ptr %lane{i}, align {item}" for i in lanes]
    lines += [
        "  br label %block",
        "block:",
        "  %block.k = phi i64 [ 1, %first ], [ %block.next, %block ]",
        *(f"  %before{i} = phi {real} [ %first.of{i}, %first ], [ %block.of{i}, %block ]" for i in lanes),
        f"  %block.first = mul i64 %block.k, {n}",
        *_transposed("block", by_table, vector),
        f"  %block.end = mul i64 %block.k, {CACHE_LINE}",
        f"  %block.offset = sub i64 %block.end, {CACHE_LINE}",
    ]
    for i in lanes:
        arguments = f"{real} %before{i}, {vector.integer} %picked{i}, {real} %block.of{i}"
        lines += [
            f"  %filled{i} = call {real} @{PERMUTE}({arguments})",
            f"  %filled{i}.to = getelementptr i8, ptr %whole{i}, i64 %block.offset",
            f"  store {real} %filled{i}, ptr %filled{i}.to, align {CACHE_LINE}",
        ]
        if size * item >= LARGE:
            lines.append(f"  %filled{i}.ahead = getelementptr i8, ptr %filled{i}.to, i64 {AHEAD}")
            lines.append(f"  call void @llvm.prefetch.p0(ptr %filled{i}.ahead, i32 1, i32 3, i32 1)")
    lines += [
        "  %block.next = add i64 %block.k, 1",
        f"  %block.more = icmp slt i64 %block.next, {blocks}",
        "  br i1 %block.more, label %block, label %rest",
        "rest:",
    ]
    for i in lanes:
        lines += [
            f"  %last{i} = getelementptr i8, ptr %lane{i}, i64 {(blocks - 1) * CACHE_LINE}",
            f"  store {real} %block.of{i}, ptr %last{i}, align {item}",
        ]
    if size % n:
        lines += [f"  %rest.first = add i64 0, {size - n}", *_transposed("rest", by_table, vector)]
        for i in lanes:
            lines += [
                f"  %rest.to{i} = getelementptr i8, ptr %lane{i}, i64 {(size - n) * item}",
                f"  store {real} %rest.of{i}, ptr %rest.to{i}, align {item}",
            ]
    return [*lines, "  br label %exit"]


def _transposed(name: str, by_table: bool, vector: VectorType) -> list[str]:
    """Instructions that load 8 vectors, elements from number ``%name.first`` on of all states, and transpose them into
    ``%name.of0`` to ``%name.of7``, these elements of each state."""
    lines = [line for k in range(8) for line in find_address(name, k, by_table, vector)]
    half_real, joined = f"<4 x {vector.scalar}>", f"<8 x i32> <{', '.join(f'i32 {i}' for i in range(8))}>"
    for upper in range(2):  # states 0 to 3, states 4 to 7
        for k in range(8):
            at = f"%{name}.half{upper}.{k}"
            lines += [
                f"  {at}.at = getelementptr i8, ptr %{name}.at{k}, i64 {upper * vector.bytes // 2}",
                f"  {at} = load {half_real}, ptr {at}.at",
            ]
        # Elements two apart, adjacent by the loads; pairs of elements of states two apart; all of one state.
        for k in (0, 1, 4, 5):
            sides = ", ".join(f"{half_real} %{name}.half{upper}.{i}" for i in (k, k + 2))
            lines.append(f"  %{name}.two{upper}.{k} = shufflevector {sides}, {joined}")
        for odd in range(2):
            fours = [f"%{name}.four{upper}.{odd}.{k}" for k in (0, 4)]
            for k, made in zip((0, 4), fours, strict=True):
                first, second = (f"%{name}.two{upper}.{k + i}" for i in range(2))
                mask = [base + 2 * i + odd for i in range(4) for base in (0, 8)]
                lines.append(shuffle(made, vector, first, second, mask))
            for apart in range(2):
                mask = [base + 4 * i + 2 * apart + k for base in (0, 8) for i in range(2) for k in range(2)]
                state = f"%{name}.of{4 * upper + odd + 2 * apart}"
                lines.append(shuffle(state, vector, fours[0], fours[1], mask))
    return lines


def _stored_together(vector: VectorType) -> int:
    """Number of adjacent elements per store: at most the number of lanes, and 32 bytes, as wider stores often cross
    cache lines."""
    return min(vector.lanes, 32 * 8 // vector.bits)


def _store_together(name: str, shift: int, parts: list[str], vector: VectorType) -> list[str]:
    """Store vectors, each an element of all states, ``shift`` bytes past the lanes' places.

    Two vectors become two that have both elements of every second state side by side; then two of those, twice as many
    elements of half of their states, and so on, until one vector has all elements of some states.
    """
    lines: list[str] = []
    n, width = vector.lanes, 1
    sets = [(parts, list(range(n)))]  # vectors to be merged, and their states
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
                lines += [shuffle(joined, vector, a, b, mask) for joined, a, b in pairs]
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


def find_address(name: str, k: int, by_table: bool, vector: VectorType) -> list[str]:
    """Instructions that compute the address of the k-th vector among the elements moved together."""
    lines = [f"  %{name}.number{k} = add i64 %{name}.first, {k}"]
    place = f"%{name}.number{k}"
    if by_table:
        lines += [
            f"  %{name}.entry{k} = getelementptr i32, ptr %table, i64 {place}",
            f"  %{name}.short{k} = load i32, ptr %{name}.entry{k}",
            f"  %{name}.place{k} = zext i32 %{name}.short{k} to i64",
        ]
        place = f"%{name}.place{k}"
    return [*lines, f"  %{name}.at{k} = getelementptr {vector.stored}, ptr %scratch, i64 {place}"]


def shuffle(name: str, vector: VectorType, a: str, b: str, mask: list[int]) -> str:
    numbers = ", ".join(f"i32 {i}" for i in mask)
    return f"  {name} = shufflevector {vector.real} {a}, {vector.real} {b}, <{vector.lanes} x i32> <{numbers}>"
