"""Register assignment for straight-line code before LLVM: when values are loaded and stored.

LLVM treats a loaded value like any other: when registers run out, it stores the value a second time.  In straight-line
code the next use of each value is known, and evicting the value with the farthest next use takes the fewest loads
(Belady, IBM Systems Journal 5, 1966).  Values that are in memory already are evicted for free.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from ..ir import ops
from ..ir.program import Node

LOAD, COMPUTE, STORE, FORGET, CUT, AHEAD = "load", "compute", "store", "forget", "cut", "ahead"
CALLS = (ops.SIN, ops.COS, ops.ATAN2)  # calls of functions, which may use all registers
SPARE = 4  # registers left for constants and for temporaries of an instruction
NEVER = 1 << 60


class Action(NamedTuple):
    """LOAD a value from a slot, COMPUTE it, STORE it to a slot, or FORGET its register. CUT: no value is in a register,
    so the code may be divided here. AHEAD: prefetch a cache line (``prefetch``)."""

    kind: str
    node: Node | None = None
    slot: Any = None


class Memory(Protocol):
    """Places of values: inputs, results, and spill slots. Slots are opaque to the register assignment."""

    @property
    def slots(self) -> Mapping[Node, Any]: ...

    @property
    def destinations(self) -> Mapping[Node, Sequence[Any]]: ...

    def take(self) -> Any: ...

    def give_back(self, slot: Any) -> None: ...


def registers(features: str) -> int:
    """Number of vector registers for values on a machine with these features."""
    many = any(feature in features for feature in ("+avx512vl", "+neon", "+vsx"))
    return (32 if many else 16) - SPARE


def assigned(
    nodes: Sequence[Node],
    scratch: Memory,
    count: int,
    cuts: Collection[int] = (),
    calls: Collection[ops.Op] = CALLS,
) -> Iterator[Action]:
    """The actions that compute ``nodes`` with ``count`` registers; cuts come before the positions ``cuts``, and no
    value stays in a register across ``calls``."""
    plan = _Assignment(nodes, scratch, count, calls)
    for position, node in enumerate(nodes):
        if position in cuts:
            yield from plan.cleared()
            yield Action(CUT)
        yield from plan.step(node)


class _Assignment:
    """State of the assignment: values in registers, and memory slots of the others.

    uses       for every value the positions of its uses, the next one last; ``next_use`` returns it
    held       values in registers
    memory     slots of values that are in memory
    borrowed   spill slots, given back after the last use of their values
    """

    def __init__(self, nodes: Sequence[Node], scratch: Memory, count: int, calls: Collection[ops.Op]):
        self.scratch, self.count, self.calls = scratch, count, calls
        self.uses: dict[Node, list[int]] = {}
        for position in reversed(range(len(nodes))):
            for arg in _operands(nodes[position]):
                self.uses.setdefault(arg, []).append(position)
        self.next_use = {node: left[-1] for node, left in self.uses.items()}
        self.memory = dict(scratch.slots)
        self.borrowed: dict[Node, Any] = {}
        self.held: dict[Node, None] = {}
        self.called: set[Node] = set()  # angles with sine and cosine already computed

    def step(self, node: Node) -> Iterator[Action]:
        """Compute a value unless it is in memory from the beginning, and store it if it is a result."""
        operands = _operands(node)
        if node not in self.memory:
            if node.op in self.calls and not (node.op is not ops.ATAN2 and node.args[0] in self.called):
                self.called.add(node.args[0])
                yield from self.cleared()
            for arg in operands:
                if arg not in self.held:
                    if len(self.held) >= self.count:
                        yield from self._leave(self._farthest())  # not an operand: these are needed now
                    yield from self._load(arg)
            yield Action(COMPUTE, node)
            self.held[node] = None
        for arg in operands:
            left = self.uses[arg]
            left.pop()
            self.next_use[arg] = left[-1] if left else NEVER
            if not left:
                yield from self._done(arg)
        for slot in self.scratch.destinations.get(node, ()):
            if node not in self.held:
                yield from self._load(node)
            yield Action(STORE, node, slot)
            self.memory.setdefault(node, slot)
        if self.next_use.setdefault(node, NEVER) == NEVER:
            yield from self._done(node)
        while len(self.held) > self.count:
            yield from self._leave(self._farthest())

    def cleared(self) -> Iterator[Action]:
        """Spill all values."""
        for node in list(self.held):
            yield from self._leave(node)

    def _farthest(self) -> Node:
        """The value in a register whose next use is farthest away."""
        return max(self.held, key=self.next_use.__getitem__)

    def _load(self, node: Node) -> Iterator[Action]:
        self.held[node] = None
        yield Action(LOAD, node, self.memory[node])

    def _leave(self, node: Node) -> Iterator[Action]:
        if node not in self.memory:
            self.memory[node] = self.borrowed[node] = self.scratch.take()
            yield Action(STORE, node, self.memory[node])
        del self.held[node]
        yield Action(FORGET, node)

    def _done(self, node: Node) -> Iterator[Action]:
        if node in self.held:
            del self.held[node]
            yield Action(FORGET, node)
        if node in self.borrowed:
            self.scratch.give_back(self.borrowed.pop(node))


def _operands(node: Node) -> list[Node]:
    return [arg for arg in dict.fromkeys(node.args) if arg.op is not ops.CONST]
