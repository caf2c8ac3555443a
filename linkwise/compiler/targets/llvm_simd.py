"""The LLVM target: one state per vector lane, as the inner loop of a NumPy generalized ufunc.

The text holds one exported function, ``void NAME(char **args, npy_intp *dimensions, npy_intp *steps, void *data)``.
It walks over the states in groups of ``options.lanes``.  A group's inputs are gathered into a scratch area,
one vector per array element; straight-line code computes the results there; then they are scattered.  A value that is
several elements of the results lies there once, and tables tell where each element is to be found.  A last,
partial group fills its idle lanes with the last state.  As a group is read completely before any of it is
written, that is harmless also where an output lies over an input.  Results that are constants are put into the
scratch area once per call: no group changes them.

A recurrence runs the same code several times for each group (``llvm_loop``).

Which values are in registers is decided before LLVM sees the code (``register_assignment``).  Long straight-line code
is assembly where the processor is known (``x86_assembly``); elsewhere it is cut into parts that hand values on through
the scratch area, so that the time LLVM takes stays proportional to the length.
"""

from __future__ import annotations

import itertools
import math
import sys
from functools import partial

from ..ir import ops
from ..ir.looped import AnyProgram, LoopedProgram
from ..ir.program import Node, Program
from ..ir.recurrence import Recurrence
from . import llvm_math, x86_assembly
from .lines_ahead import outputs_ahead, with_lines_ahead
from .llvm_lines import PERMUTE
from .llvm_loop import loop, symbol, tables, transfers
from .llvm_looped import looped
from .llvm_operations import Writer
from .llvm_scratch import LoopScratch, Scratch
from .llvm_transfer import by_registers, copy, fill, transfer
from .llvm_vector import VectorType
from .protocol import Options
from .register_assignment import CUT, Action, assigned, registers

__all__ = ["HOST_SYMBOLS", "emit", "symbol"]

NODES_PER_PART = 2000  # LLVM's time per operation grows beyond a few thousand; shorter parts run slower
NODES_FOR_LLVM = 4000  # longer programs are written as assembly where that is possible
NODES_PER_RESULT = 3  # what storing a result counts for: LLVM's time per store grows beyond a few hundred
# Functions of the host process that the emitted code may call; the loader binds them.
HOST_SYMBOLS = (
    "linkwise_libm_sin",
    "linkwise_libm_cos",
    "PyMem_RawMalloc",
    "PyMem_RawFree",
    "PyGILState_Ensure",
    "PyGILState_Release",
    "PyErr_NoMemory",
    *(["madvise"] if sys.platform == "linux" else []),
)


def emit(program: AnyProgram, options: Options, recurrence: Recurrence | None = None) -> str:
    """LLVM text of ``program``, run once or as a ``recurrence``; the exported function is ``symbol(program)``."""
    vector = VectorType(options.dtype, options.lanes)
    attributes = _attributes(vector)
    permutes = "+avx512f" in options.features and vector.bytes == 64 and vector.bits == 64
    moved = partial(transfer, vector=vector, attributes=attributes, permutes=permutes)
    if recurrence and recurrence.registers > 1:
        moved = partial(by_registers, vector=vector, registers=recurrence.registers, attributes=attributes)
    scratch: Scratch | LoopScratch
    ahead: list[int] = []
    if isinstance(program, LoopedProgram):
        scratch, compute, functions = looped(program, vector, registers(options.features), attributes)
        used = {node.op for body, _ in program.bodies for node in body.program.nodes}
    else:
        scratch = Scratch(program, vector, in_order=recurrence is not None)
        ahead = [] if recurrence else outputs_ahead(program, vector)
        compute, functions = _straight(program, scratch, options.features, attributes, bool(ahead))
        used = {node.op for node in program.nodes}
    texts = [
        f"; {program.name}: {options.lanes} lanes of {options.dtype}",
        loop(program, scratch, compute, attributes, recurrence, ahead),
        *functions,
        *(moved(*shape) for shape in transfers(program, scratch)),
        *tables(scratch),
        *([copy(vector, attributes)] if recurrence else []),
        *([fill(scratch.constants, vector, attributes)] if scratch.constants else []),
        *([llvm_math.sincos(vector, attributes)] if ops.SIN in used or ops.COS in used else []),
        *([llvm_math.atan2(vector, attributes)] if ops.ATAN2 in used else []),
        _declarations(vector),
        *(["declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)\n"] if getattr(program, "sparse", False) else []),
        *([f"declare {vector.real} @{PERMUTE}({vector.real}, {vector.integer}, {vector.real})\n"] if permutes else []),
    ]
    return "\n".join(texts)


def _straight(
    program: Program, scratch: Scratch, features: str, attributes: str, ahead: bool
) -> tuple[list[str], list[str]]:
    """The calls that compute, and the functions that these call."""
    parts = _parts(program, scratch, features, attributes, ahead)
    compute = ["  call void @angles(ptr %scratch)"] if scratch.angles else []
    compute += [f"  call void @part{number}(ptr %scratch, ptr %ahead)" for number in range(len(parts))]
    return compute, [*([_angles(scratch, attributes)] if scratch.angles else []), *parts]


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


# -- straight-line code -------------------------------------------------------------------------


def _parts(program: Program, scratch: Scratch, features: str, attributes: str, ahead: bool) -> list[str]:
    """``void @part<number>(ptr scratch, ptr ahead)``, one after the other: together they compute all results.
    ``ahead`` are addresses of large results, if these are asked for."""
    nodes, cuts = _pieces(program, scratch)
    by_hand = len(nodes) > NODES_FOR_LLVM and x86_assembly.available(features, scratch.vector)
    if by_hand:
        nodes = x86_assembly.apart(nodes)
        cuts = x86_assembly.cuts_around_others(nodes)  # at a cut, values leave their registers
    pieces: list[list[Action]] = [[]] if nodes else []
    for action in assigned(nodes, scratch, registers(features), cuts):
        if action.kind == CUT:
            pieces.append([])
        else:
            pieces[-1].append(action)
    if ahead:
        pieces = with_lines_ahead(pieces, program, scratch.vector)
    texts = []
    for number, actions in enumerate(pieces):
        found = x86_assembly.function(f"part{number}", actions, scratch.vector) if by_hand else None
        texts.append(found or _part(number, actions, scratch, attributes))
    return texts


def _part(number: int, actions: list[Action], scratch: Scratch, attributes: str) -> str:
    """``void @part<number>(ptr scratch, ptr ahead)``."""
    writer = _PartWriter(scratch)
    writer.perform(actions)
    head = f"define internal void @part{number}(ptr noalias %scratch, ptr %ahead) noinline nounwind {attributes} {{"
    return "\n".join([head, *writer.lines, "  ret void", "}", ""])


def _pieces(program: Program, scratch: Scratch) -> tuple[list[Node], set[int]]:
    """The nodes to be computed, and where to cut them into pieces of equal work.  A sine and cosine of one angle stand
    together.  Results that are not computed (inputs, sines of inputs) are copied at the end."""
    twins = program.sine_cosine_pairs
    work: dict[Node, None] = {}
    for node in program.nodes:
        if node.args and node not in scratch.slots:
            work[node] = None
            if node in twins:
                work[twins[node]] = None
    nodes = [*work, *(node for node in scratch.destinations if node not in work)]
    ends = list(itertools.accumulate(1 + NODES_PER_RESULT * len(scratch.destinations.get(node, ())) for node in nodes))
    count = math.ceil(ends[-1] / NODES_PER_PART) if nodes else 0
    pieces = [(end - 1) * count // ends[-1] for end in ends]
    return nodes, {i for i, (before, piece) in enumerate(itertools.pairwise(pieces), 1) if before != piece}


class _PartWriter(Writer):
    """Writes the instructions of one part, whose values come from the scratch area."""

    def __init__(self, scratch: Scratch):
        super().__init__(scratch.vector)
        self.input_names = scratch.input_names
        self.states: set[str] = set()  # whose addresses have been read

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


def _angles(scratch: Scratch, attributes: str) -> str:
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
