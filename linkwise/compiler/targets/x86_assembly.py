"""Straight-line code as x86 assembly for processors with AVX-512: registers are already assigned, so each operation is
one instruction and no compiler pass is needed.

LLVM takes 50 us per operation, its assembler 1 us.  That pays for long programs; short ones are compiled by LLVM.  As
LLVM does, operations are reordered so that few wait for the previous one (``interleave``).

Straight-line code runs as fast as it is fetched, some 16 bytes per cycle.  A memory operand is three bytes shorter
within 8 kB of an address in a register: registers point to the places of the next operands (``_Windows``).
"""

from __future__ import annotations

import itertools
import math
import struct
import sys
from collections import Counter
from collections.abc import Sequence

from ..ir import ops
from ..ir.program import Node
from .llvm_vector import VectorType
from .register_assignment import AHEAD, COMPUTE, FORGET, LOAD, STORE, Action

NEEDED = ("+avx512f", "+avx512vl", "+avx512dq")
SCRATCH, AHEAD_OF = "%rdi", "%rsi"  # the arguments of a function
STATE = "%rax"  # addresses of a state's results
WINDOWS = ("%rcx", "%rdx", "%r8", "%r9", "%r10")  # addresses in the scratch area
CONSTANTS = "%r11"  # address of a function's scratch area
NEAR = 128  # range of a short operand on either side of an address, in vectors or numbers
STRETCH, WORTH = 512, 4  # actions considered for choosing windows, and minimum operands in a window
CLOSE = 50  # operations between others that do not justify a part of their own
TEMPORARY = 31  # a register without a value
_TWO_OPERANDS = {ops.ADD: "vadd", ops.SUB: "vsub", ops.MUL: "vmul", ops.DIV: "vdiv"}
_FUSED = {ops.FMA: "vfmadd", ops.FMS: "vfmsub", ops.FNMA: "vfnmadd"}
LATENCIES = {ops.DIV: 13, ops.SQRT: 20, ops.ADD: 3, ops.SUB: 3, ops.MUL: 3, ops.NEG: 1}  # cycles
FUSED_LATENCY = 4
LOOKED_AT = 16  # lookahead in operations: more does not improve the order, and separates values from their uses
KNOWN = {*_TWO_OPERANDS, *_FUSED, ops.NEG, ops.SQRT}


def available(features: str, vector: VectorType) -> bool:
    """Whether assembly is supported for this machine and full-width vectors."""
    return sys.platform == "linux" and vector.bytes == 64 and all(feature in features for feature in NEEDED)


def interleave(nodes: Sequence[Node]) -> list[Node]:
    """Reorder nodes so that few wait for the previous one. Of the next ``LOOKED_AT``, the first ready one comes next,
    at one start per cycle. The processor's own lookahead is too short for sums, which are chains of operations.
    Operations without an instruction stay in place."""
    order: list[Node] = []
    for is_known, run in itertools.groupby(nodes, key=lambda node: node.op in KNOWN):
        part = list(run)
        order += _interleave(part) if is_known else part
    return order


def _interleave(nodes: Sequence[Node]) -> list[Node]:
    there: dict[Node, float] = dict.fromkeys(nodes, math.inf)  # ready time of each node; 0 for inputs
    order: list[Node] = []
    window: list[Node] = []
    following, time = iter(nodes), 0.0
    while len(order) < len(nodes):
        window += itertools.islice(following, LOOKED_AT - len(window))
        chosen, start = 0, math.inf
        for position, node in enumerate(window):
            needed = max([there.get(arg, 0.0) for arg in node.args])
            if needed < start:
                chosen, start = position, needed
                if needed <= time:
                    break
        node = window.pop(chosen)
        time = max(time, start) + 1.0
        there[node] = time - 1.0 + LATENCIES.get(node.op, FUSED_LATENCY)
        order.append(node)
    return order


def cuts_around_others(nodes: Sequence[Node]) -> set[int]:
    """Where to cut the nodes into parts, so that operations without an instruction form separate parts for LLVM."""
    cuts: set[int] = set()
    end = -CLOSE  # position of the latest operation without an instruction
    for i, node in enumerate(nodes):
        if node.op not in KNOWN:
            if i - end < CLOSE:
                cuts.discard(end)
            else:
                cuts.add(i)
            end = i + 1
            cuts.add(end)
    return cuts - {0, len(nodes)}


def function(name: str, actions: Sequence[Action], vector: VectorType) -> str | None:
    """LLVM text of ``void @name(ptr scratch, ptr ahead)`` in assembly; None if an operation has no instruction."""
    if not all(node is not None and node.op in KNOWN for kind, node, _ in actions if kind == COMPUTE):
        return None
    lines = _Writer(name, vector).written(actions)
    text = "\n".join(f'module asm "{line}"' for line in lines)
    return f"declare void @{name}(ptr, ptr)\n{text}\n"


class _Windows:
    """Address registers that point into the scratch area to keep operands short."""

    def __init__(self, vector: VectorType):
        self._bytes = vector.bytes
        self._registers: dict[int, str] = {}  # by number of the window

    def moved(self, actions: Sequence[Action]) -> list[str]:
        """Instructions that set windows to cover the operands of the next actions."""
        uses = Counter(slot // (2 * NEAR) for kind, _, slot in actions if kind in (LOAD, STORE))
        wanted = [window for window, count in uses.most_common(len(WINDOWS)) if count >= WORTH]
        kept = {window: register for window, register in self._registers.items() if window in wanted}
        free = [register for register in WINDOWS if register not in kept.values()]
        free.sort(key=lambda register: register in self._registers.values())  # unused ones first
        new = dict(zip((window for window in wanted if window not in kept), free, strict=False))
        left = {window: register for window, register in self._registers.items() if register in free[len(new) :]}
        self._registers = kept | new | left
        return [f"leaq {self._middle(window) * self._bytes}({SCRATCH}), {register}" for window, register in new.items()]

    def operand(self, slot: int) -> str:
        window = slot // (2 * NEAR)
        if window in self._registers:
            return f"{(slot - self._middle(window)) * self._bytes}({self._registers[window]})"
        return f"{slot * self._bytes}({SCRATCH})"

    @staticmethod
    def _middle(window: int) -> int:
        return 2 * NEAR * window + NEAR


class _Writer:
    """Writes the instructions of one function.

    registers   of values
    folded      loaded values that are memory operands of the next instruction, and their slots
    """

    def __init__(self, name: str, vector: VectorType):
        self.name, self.vector = name, vector
        self.kind = "pd" if vector.bits == 64 else "ps"
        self.lines: list[str] = []
        self.registers: dict[Node, int] = {}
        self.folded: dict[Node, int] = {}
        self.free = list(range(TEMPORARY - 1, -1, -1))
        self.constants: dict[str, int] = {}  # bits -> number
        self.windows = _Windows(vector)

    def written(self, actions: Sequence[Action]) -> list[str]:
        asked = None
        for position, (kind, node, slot) in enumerate(actions):
            if position % STRETCH == 0:
                self.lines += self.windows.moved(actions[position : position + STRETCH])
            if kind == AHEAD:
                if slot[0] != asked:
                    asked = slot[0]
                    self.lines.append(f"movq {asked * 8}({AHEAD_OF}), {STATE}")
                self.lines.append(f"prefetcht1 {slot[1]}({STATE})")
                continue
            assert node is not None
            if kind == LOAD:
                if not self.folded and _is_used_once(actions, position):
                    self.folded[node] = slot
                else:
                    self.registers[node] = self.free.pop()
                    self._write("vmovap", self.windows.operand(slot), self.registers[node])
            elif kind == STORE:
                self._write("vmovap", self.registers[node], self.windows.operand(slot))
            elif kind == FORGET:
                if self.folded.pop(node, None) is None and node in self.registers:
                    self.free.append(self.registers.pop(node))
            else:
                self._compute(node, {a.node for a in _last_used(actions, position)})
        number = ".quad" if self.vector.bits == 64 else ".long"
        table = f".L{self.name}_constants"
        return [
            ".text",
            ".p2align 4",
            f"{self.name}:",
            *([f"leaq {table}+{NEAR * self.vector.bits // 8}(%rip), {CONSTANTS}"] if self.constants else []),
            *self.lines,
            "vzeroupper",
            "ret",
            ".section .rodata",
            ".p2align 3",
            f"{table}:",
            *(f"{number} {bits}" for bits in self.constants),
            ".text",
        ]

    def _write(self, instruction: str, *operands: str | int) -> None:
        spelled = ", ".join(f"%zmm{x}" if isinstance(x, int) else x for x in operands)
        kind = self.kind[-1] if instruction in ("vmovap", "vbroadcasts") else self.kind
        self.lines.append(f"{instruction}{kind} {spelled}")

    def _operand(self, node: Node) -> str | int:
        if node.op is ops.CONST:
            return self._constant(node.value)
        return self.windows.operand(self.folded[node]) if node in self.folded else self.registers[node]

    def _constant(self, value: float) -> str:
        """A constant in memory, broadcast to the lanes."""
        format, integer_format = ("<d", "<Q") if self.vector.bits == 64 else ("<f", "<I")
        bits = hex(struct.unpack(integer_format, struct.pack(format, self.vector.round(value)))[0])
        number = self.constants.setdefault(bits, len(self.constants))
        return f"{(number - NEAR) * self.vector.bits // 8}({CONSTANTS}){{1to{self.vector.lanes}}}"

    def _load_operand(self, operand: str | int, register: int = TEMPORARY) -> int:
        """The operand in a register: its own, or ``register`` after a load."""
        if isinstance(operand, int):
            return operand
        if "{1to" in operand:
            self._write("vbroadcasts", operand.split("{")[0], register)
        else:
            self._write("vmovap", operand, register)
        return register

    def _compute(self, node: Node, dying: set[Node | None]) -> None:
        result = self.free.pop()
        if node.op in _FUSED:
            result = self._fuse(node, dying, result)
        elif node.op is ops.NEG:
            (value,) = (self._operand(arg) for arg in node.args)
            self._write("vxor", self._constant(-0.0), self._load_operand(value), result)
        elif node.op is ops.SQRT:
            self._write("vsqrt", self._load_operand(self._operand(node.args[0])), result)
        else:
            a, b = (self._operand(arg) for arg in node.args)
            if isinstance(b, int) and not isinstance(a, int) and node.op in (ops.ADD, ops.MUL):
                a, b = b, a
            self._write(_TWO_OPERANDS[node.op], b, self._load_operand(a), result)
        self.registers[node] = result

    def _fuse(self, node: Node, dying: set[Node | None], result: int) -> int:
        """a * b + c and similar. The result takes the register of an operand with its last use here, or of a copy. One
        operand may be in memory: b in form 231, which overwrites c, or c in form 213, which overwrites b."""
        first, second, third = node.args
        if not isinstance(self._operand(first), int) or (first in dying and second not in dying):
            first, second = second, first
        name = _FUSED[node.op]
        a, b, c = self._load_operand(self._operand(first)), self._operand(second), self._operand(third)
        over = next(
            (x for x in (third, second) if x in dying and x in self.registers and node.args.count(x) == 1), None
        )
        if over is not None:
            self.free.append(result)
            result = self.registers.pop(over)
        elif isinstance(b, int) and not isinstance(c, int):
            self._write("vmovap", b, result)
            b, over = result, second
        else:
            self._load_operand(c, result) if not isinstance(c, int) else self._write("vmovap", c, result)
        self._write(f"{name}213", c, a, result) if over is second else self._write(f"{name}231", b, a, result)
        return result


def _last_used(actions: Sequence[Action], position: int) -> Sequence[Action]:
    """The values that an operation uses for the last time."""
    end = position + 1
    while end < len(actions) and actions[end].kind == FORGET:
        end += 1
    return actions[position + 1 : end]


def _is_used_once(actions: Sequence[Action], position: int) -> bool:
    """Whether only the next operation uses a loaded value."""
    node, compute = actions[position].node, position + 1
    while compute < len(actions) and actions[compute].kind in (LOAD, FORGET):
        compute += 1
    if compute == len(actions) or actions[compute].kind != COMPUTE:
        return False
    return any(action.node is node for action in _last_used(actions, compute))
