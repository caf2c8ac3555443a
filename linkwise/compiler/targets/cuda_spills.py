"""Straight-line CUDA C whose values do not fit into the registers of a thread: those that are needed latest wait in
shared memory.

The CUDA compiler would keep them in local memory, whose writes go through to the second-level cache: on an H200 the
derivatives of a Panda in double precision become twice as fast, the forward dynamics of a humanoid in single precision
half as fast again.  (What limits these then is the fetching of instructions: half of the cycles of a warp.)  Which
values wait is decided as for processors (``register_assignment``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..ir import ops
from ..ir.program import Node, Program
from .c_expressions import Body, Functions, Real
from .register_assignment import COMPUTE, FORGET, LOAD, assigned

WARP = 32
ITEM_BYTES = {"double": 8, "float": 4}
REGISTERS = {"double": 110, "float": 215}  # of 255 with 32 bits each, some of them for addresses
#: Bytes of shared memory for the values of a warp: four warps then run at a time on a multiprocessor with 227 kB, one
#: for each of its schedulers.  What does not fit is left in local memory.
NEAR_BYTES = 56 * 1024
FEW_BYTES = 512  # of a thread: so much in local memory costs less than warps that shared memory has no room for


class Waiting:
    """Where values wait: places in C.  Those of a warp's threads lie side by side.

    kept   places that a recurrence keeps its state in, from the first on
    """

    def __init__(self, real: Real, kept: int = 0):
        self.limit = NEAR_BYTES // (WARP * ITEM_BYTES[real.name])
        self.kept, self.count = kept, kept
        self.slots: dict[Node, str] = {}
        self.destinations: dict[Node, Sequence[str]] = {}
        self._free: list[str] = []

    def take(self) -> str:
        return self._free.pop() if self._free else self.keep()

    def keep(self) -> str:
        """A place that is not given back."""
        self.count += 1
        place = self.count - 1
        return near(place) if place < self.limit else f"_far[{place - self.limit}]"

    def give_back(self, slot: str) -> None:
        self._free.append(slot)

    @property
    def near(self) -> int:
        """Values of a thread in shared memory."""
        return min(self.count, self.limit)

    @property
    def far(self) -> int:
        """Values of a thread in local memory."""
        return self.count - self.near


def near(place: int) -> str:
    return f"_near[{WARP * place}]"


def are_needed(program: Program, real: Real) -> bool:
    """Whether more than a few values of a program have to wait."""
    waiting = Waiting(real)
    waiting.slots = {node: "" for node in program.nodes if node.op is ops.INPUT}
    most = FEW_BYTES // ITEM_BYTES[real.name]
    return any(waiting.count > most for _ in assigned(_computed(program), waiting, REGISTERS[real.name], calls=()))


def _computed(program: Program) -> list[Node]:
    """The nodes to be computed; a sine and cosine of one angle stand together."""
    twins, found = program.sine_cosine_pairs, dict[Node, None]()
    for node in program.nodes:
        if node.args:
            found[node] = None
            if node in twins:
                found[twins[node]] = None
    return list(found)


class SpilledBody(Body):
    """One program as C statements that keep few values in registers.

    Results are written as soon as they are there; those that take the place of what is read later, at the end.
    """

    def __init__(
        self,
        program: Program,
        real: Real,
        address: Callable[[str, int], str],
        functions: Functions,
        named: Callable[[list[str], list[str]], None] | None,
        waiting: Waiting,
    ):
        self.waiting = waiting
        super().__init__(program, real, address, functions, named, eager=True)

    def _reads(self, taken: set[str]) -> list[str]:
        for node in self.program.nodes:
            if node.op is ops.INPUT:
                array, element = node.value
                self.waiting.slots[node] = self._address(self.inputs[array], element)
        return self._unused()

    def _operations(self, eager: bool) -> list[str]:
        for node in self.program.nodes:
            if node.op is ops.CONST:
                self._text[node] = self._literal(node)
        results = [node for node in self._places if node.op is not ops.CONST]
        nodes = list(dict.fromkeys([*_computed(self.program), *results]))
        read, last = self._last_reads(nodes), []
        for at, node in enumerate(nodes):
            places = self._places.pop(node, [])
            late = [place for place in places if read.get(place, at) > at]
            kept = [self.waiting.take()] if late else []
            self.waiting.destinations[node] = [*(place for place in places if place not in late), *kept]
            last += [f"{place} = {kept[0]};" for place in late]
        return [*self._performed(nodes), *last]

    def _last_reads(self, nodes: Sequence[Node]) -> dict[str, int]:
        """Until when the places of inputs are read."""
        slots = self.waiting.slots
        return {slots[x]: at for at, node in enumerate(nodes) for x in (node, *node.args) if x.op is ops.INPUT}

    def _performed(self, nodes: Sequence[Node]) -> list[str]:
        lines: list[str] = []
        section, done = "", set[Node]()
        for kind, node, place in assigned(nodes, self.waiting, REGISTERS[self.real.name], calls=()):
            assert node is not None
            if kind == LOAD:
                lines.append(self._loaded(node, place))
            elif kind == COMPUTE:
                if node.section != section:
                    section = node.section
                    lines += self._heading(section)
                if node not in done:
                    lines.append(self._statement(node))
                done.update((node, self._partner.get(node, node)))
            elif kind != FORGET:
                lines.append(f"{place} = {self._text[node]};")
        return lines

    def _loaded(self, node: Node, place: str) -> str:
        name = self._name(node)
        if node.op.result == "bool":
            return f"const int {name} = {place} != 0;"
        return f"const {self.real.name} {name} = {place};"
