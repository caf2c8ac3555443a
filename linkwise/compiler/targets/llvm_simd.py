"""The LLVM target: one state per vector lane, as the inner loop of a NumPy generalized ufunc.

The text holds one exported function, ``void NAME(char **args, npy_intp *dimensions, npy_intp *steps, void *data)``. It
walks over the states in groups of ``options.lanes``.  A group's inputs are gathered into a scratch area, one vector per
array element; straight-line code computes the results there; then they are scattered.  A value that occurs as several
elements of results is stored once; tables map elements to values.  In a partial last group, idle lanes repeat the last
state.  This is also safe if an output overlaps an input, because a group is read completely before it is written.
Constant results are written to the scratch area once per call.

Over time the same code runs several times for each group (``llvm_loop``).

Inputs that no result depends on are checked nevertheless: if one is NaN, the results of that state are NaN.

Straight-line code is written by ``llvm_straight``, loops over links by ``llvm_looped``.
"""

from __future__ import annotations

from functools import partial

from ..ir import ops
from ..ir.program import Program
from . import llvm_math
from .llvm_lines import PERMUTE
from .llvm_loop import loop, symbol, tables, transfers
from .llvm_looped import looped
from .llvm_scratch import LoopScratch, Scratch
from .llvm_straight import parts
from .llvm_transfer import copy, copy_from_places, fill, split_transfer, transfer
from .llvm_vector import VectorType
from .prefetch import large_outputs
from .protocol import Options

__all__ = ["emit", "symbol"]


def emit(program: Program, options: Options) -> str:
    """LLVM text of ``program``; the exported function is ``symbol(program)``."""
    vector = VectorType(options.dtype, options.lanes)
    attributes = _attributes(vector)
    permutes = "+avx512f" in options.features and vector.bytes == 64 and vector.bits == 64
    moved = partial(transfer, vector=vector, attributes=attributes, permutes=permutes)
    if program.registers > 1:
        moved = partial(split_transfer, vector=vector, registers=program.registers, attributes=attributes)
    scratch: Scratch | LoopScratch
    ahead: list[int] = []
    if program.loops:
        scratch, compute, functions = looped(program, vector, options.features, attributes)
    else:
        scratch = Scratch(program, vector, in_order=bool(program.carried))
        ahead = [] if program.carried else large_outputs(program, vector)
        compute, functions = _straight(program, scratch, options.features, attributes, bool(ahead))
    copying = copy if scratch.in_order else copy_from_places
    used = {node.op for code, _ in program.blocks for node in code.nodes}
    unread = [] if program.carried else _unread(program, scratch)
    if unread and (scratch.varying or scratch.constants):
        compute = [*compute, "  call void @heed_unread(ptr %scratch)"]
        heeding = _nan_check if scratch.varying else _constant_nan_check
        functions = [*functions, heeding(unread, scratch, attributes)]
    texts = [
        f"; {program.name}: {options.lanes} lanes of {options.dtype}",
        loop(program, scratch, compute, attributes, ahead),
        *functions,
        *(moved(*shape) for shape in transfers(program, scratch)),
        *tables(scratch),
        *([copying(vector, attributes)] if program.carried else []),
        *([fill(scratch.constants, vector, attributes)] if scratch.constants else []),
        *([llvm_math.sincos(vector, attributes)] if ops.SIN in used or ops.COS in used else []),
        *([llvm_math.atan2(vector, attributes)] if ops.ATAN2 in used else []),
        _declarations(vector),
        *(["declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)\n"] if program.sparse else []),
        *([f"declare {vector.real} @{PERMUTE}({vector.real}, {vector.integer}, {vector.real})\n"] if permutes else []),
    ]
    return "\n".join(texts)


def _straight(
    program: Program, scratch: Scratch, features: str, attributes: str, ahead: bool
) -> tuple[list[str], list[str]]:
    """The calls of the computation, and the functions that they call."""
    calls, functions = parts(program, scratch, features, attributes, ahead)
    compute = ["  call void @angles(ptr %scratch)"] if scratch.angles else []
    return [*compute, *calls], [*([_angles(scratch, attributes)] if scratch.angles else []), *functions]


def _unread(program: Program, scratch: Scratch | LoopScratch) -> list[int]:
    """Slots of inputs that no result depends on."""
    both = zip(program.unread, scratch.input_offsets, strict=True)
    return [offset + element for elements, offset in both for element in elements.tolist()]


def _nan_check(unread: list[int], scratch: Scratch | LoopScratch, attributes: str) -> str:
    """``void @heed_unread(ptr scratch)``: sets results to NaN in states with a NaN in an unread input. Two inputs are
    compared at a time for a group of states, with a rarely taken branch."""
    vector = scratch.vector
    real, boolean, step = vector.real, vector.boolean, vector.bytes
    lines = [f"define internal void @heed_unread(ptr noalias %scratch) nounwind {attributes} {{"]
    for i, slot in enumerate(unread):
        lines += [
            f"  %unread{i}.at = getelementptr i8, ptr %scratch, i64 {slot * step}",
            f"  %unread{i} = load {real}, ptr %unread{i}.at",
        ]
    unknown = ""
    for i in range(0, len(unread), 2):
        other = min(i + 1, len(unread) - 1)
        lines.append(f"  %pair{i} = fcmp uno {real} %unread{i}, %unread{other}")
        if unknown:
            lines.append(f"  %any{i} = or {boolean} {unknown}, %pair{i}")
        unknown = f"%any{i}" if unknown else f"%pair{i}"
    lines += [
        f"  %lanes = bitcast {boolean} {unknown} to i{vector.lanes}",
        f"  %none = icmp eq i{vector.lanes} %lanes, 0",
        '  br i1 %none, label %done, label %spread, !prof !{!"branch_weights", i32 1000000, i32 1}',
        "spread:",
        f"  %nan = fdiv {real} zeroinitializer, zeroinitializer",
    ]
    for i, slot in enumerate(scratch.varying):
        lines += [
            f"  %result{i}.at = getelementptr i8, ptr %scratch, i64 {slot * step}",
            f"  %result{i} = load {real}, ptr %result{i}.at",
            f"  %marked{i} = select {boolean} {unknown}, {real} %nan, {real} %result{i}",
            f"  store {real} %marked{i}, ptr %result{i}.at",
        ]
    return "\n".join([*lines, "  br label %done", "done:", "  ret void", "}", ""])


def _constant_nan_check(unread: list[int], scratch: Scratch | LoopScratch, attributes: str) -> str:
    """``void @heed_unread(ptr scratch)`` for constant results: the first constant is written anew for each group of
    states, as NaN where required. The unread inputs are data and the code is a loop."""
    vector, (slot, value) = scratch.vector, next(iter(scratch.constants.items()))
    real, boolean, step = vector.real, vector.boolean, vector.bytes
    slots = ", ".join(f"i32 {slot}" for slot in unread)
    return f"""@unread_places = internal constant [{len(unread)} x i32] [{slots}]
define internal void @heed_unread(ptr noalias %scratch) nounwind {attributes} {{
  br label %next
next:
  %i = phi i64 [ 0, %0 ], [ %following, %next ]
  %before = phi {boolean} [ zeroinitializer, %0 ], [ %unknown, %next ]
  %place.at = getelementptr i32, ptr @unread_places, i64 %i
  %place = load i32, ptr %place.at
  %slot = zext i32 %place to i64
  %offset = mul i64 %slot, {step}
  %at = getelementptr i8, ptr %scratch, i64 %offset
  %value = load {real}, ptr %at
  %is_nan = fcmp uno {real} %value, %value
  %unknown = or {boolean} %before, %is_nan
  %following = add i64 %i, 1
  %more = icmp ult i64 %following, {len(unread)}
  br i1 %more, label %next, label %done
done:
  %nan = fdiv {real} zeroinitializer, zeroinitializer
  %marked = select {boolean} %unknown, {real} %nan, {real} {vector.splat(value)}
  %result.at = getelementptr i8, ptr %scratch, i64 {slot * step}
  store {real} %marked, ptr %result.at
  ret void
}}
"""


def _attributes(vector: VectorType) -> str:
    """Without these attributes LLVM may split 512-bit vectors if it deems the wide units slow."""
    width = max(128, min(512, vector.bytes * 8))
    return f'"prefer-vector-width"="{width}" "min-legal-vector-width"="{width}"'


def _declarations(vector: VectorType) -> str:
    real = vector.real
    return "\n".join(
        [
            f"declare {real} @llvm.fmuladd.{vector.suffix}({real}, {real}, {real})",
            f"declare {real} @llvm.sqrt.{vector.suffix}({real})",
            "declare i64 @llvm.umin.i64(i64, i64)",
            "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)",
            "declare ptr @PyMem_RawMalloc(i64)",
            "declare void @PyMem_RawFree(ptr)",
            "declare i32 @PyGILState_Ensure()",
            "declare void @PyGILState_Release(i32)",
            "declare ptr @PyErr_NoMemory()",
            "declare i32 @madvise(ptr, i64, i32)",
            "",
        ]
    )


def _angles(scratch: Scratch, attributes: str) -> str:
    """``void @angles(ptr scratch)``: sines and cosines of inputs. They are computed first, when the calls force no
    other values out of registers."""
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
