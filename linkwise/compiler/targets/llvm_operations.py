"""LLVM text of the operations of straight-line code, one state per vector lane."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..ir import ops
from ..ir.program import Node
from .llvm_vector import VectorType
from .register_assignment import AHEAD, FORGET, LOAD, STORE, Action

# LLVM's scheduler compares every store with all accesses back to the last fence; without fences this dominates for
# programs with many results.  A single-thread fence is no instruction; it keeps accesses in order.
ACCESSES_PER_FENCE = 256
FENCE = '  fence syncscope("singlethread") acq_rel'

_BINARY = {ops.ADD: "fadd", ops.SUB: "fsub", ops.MUL: "fmul", ops.DIV: "fdiv", ops.LESS: "fcmp olt"}
_NEGATED_OPERAND = {ops.FMA: None, ops.FMS: 2, ops.FNMA: 0}  # all three become a*b + c


class Writer:
    """Writes instructions. Subclasses ``load`` and ``store`` values outside registers."""

    def __init__(self, vector: VectorType):
        self.vector = vector
        self.real = vector.real
        self.lines: list[str] = []
        self.names: dict[Node, str] = {}  # names of values in registers
        self._pairs: set[str] = set()
        self._accesses = 0
        self._loaded: set[Any] = set()  # slots accessed since the last fence
        self._section = ""

    def perform(self, actions: Iterable[Action]) -> None:
        """Write the actions of the register assignment, with a comment at the start of a section."""
        for kind, node, slot in actions:
            if kind == AHEAD:
                self.ask_for(*slot)
                continue
            assert node is not None
            if kind == LOAD:
                self.load(node, slot)
            elif kind == STORE:
                self.store(node, slot)
            elif kind == FORGET:
                del self.names[node]
            else:
                if node.section != self._section:
                    self._section = node.section
                    self.lines.append(f"  ; {node.section}")
                self.compute(node)

    def load(self, node: Node, slot: Any) -> None:
        """Load a value from its slot."""
        raise NotImplementedError

    def store(self, node: Node, slot: Any) -> None:
        """Store a value to its slot."""
        raise NotImplementedError

    def ask_for(self, pointer: int, shift: int) -> None:
        """Prefetch the cache line ``shift`` bytes past an address for writing."""
        raise NotImplementedError

    def operand(self, node: Node) -> str:
        return self.vector.splat(node.value) if node.op is ops.CONST else self.names[node]

    def load_from(self, node: Node, slot: Any, called: str, base: str, shift: int) -> None:
        """Load a vector ``shift`` bytes past ``base``."""
        address = self.place_of(node, slot, called, base, shift)
        name = self.names[node]
        if node.op.result == "real":
            self.lines.append(f"  {name} = load {self.real}, ptr {address}")
        else:
            self.lines.append(f"  {name}.real = load {self.real}, ptr {address}")
            self.lines.append(f"  {name} = fcmp une {self.real} {name}.real, zeroinitializer")

    def place_of(self, node: Node, slot: Any, called: str, base: str, shift: int) -> str:
        """The address of a value to be loaded, under a new name. A fence precedes repeated loads: otherwise LLVM would
        merge them and keep the value in a register."""
        if slot in self._loaded:
            self.fence()
        self._loaded.add(slot)
        name = self.names[node] = f"%{called}.{len(self.lines)}"
        return self.address(f"{name}.at", base, shift)

    def store_at(self, node: Node, base: str, offset: int) -> None:
        """Store a value ``offset`` vectors past ``base``."""
        value = self.operand(node)
        if node.op.result == "bool":
            unit = self.vector.splat(1.0)
            real = f"{value}.stored{len(self.lines)}"
            self.lines.append(
                f"  {real} = select {self.vector.boolean} {value}, {self.real} {unit}, {self.real} zeroinitializer"
            )
            value = real
        address = self.address(f"%to.{len(self.lines)}", base, offset * self.vector.bytes)
        self.lines.append(f"  store {self.real} {value}, ptr {address}")

    def address(self, name: str, base: str, shift: int) -> str:
        """The address ``shift`` bytes past ``base``."""
        self._accesses += 1
        if self._accesses % ACCESSES_PER_FENCE == 0:
            self.fence()
        self.lines.append(f"  {name} = getelementptr i8, ptr {base}, i64 {shift}")
        return name

    def fence(self) -> None:
        self.lines.append(FENCE)
        self._loaded.clear()

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
        """A single call computes both; the second operation uses the result of the first one's call."""
        pair_type, pair = f"{{ {self.real}, {self.real} }}", f"%sincos{node.args[0].index}"
        if pair not in self._pairs:
            self._pairs.add(pair)
            self.lines.append(f"  {pair} = call {pair_type} @sincos({self.real} {angle})")
        return f"extractvalue {pair_type} {pair}, {int(node.op is ops.COS)}"
