"""Long straight-line C and CUDA C in several functions, one after the other.

The time that compilers take grows with the square of the length of a function.  At a cut no value is in a register
(``register_assignment``): parts find what they need where values wait, and in the arrays.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from ..ir import ops
from ..ir.program import Node, Program
from .c_expressions import Body, Functions, Real, identifier
from .register_assignment import COMPUTE, CUT, FORGET, LOAD, NEVER, assigned

CUT_LINE = "/* next part */"

_NAME = re.compile(r"\b[A-Za-z_]\w*")


class Lengths(NamedTuple):
    """Operations that stay one function at most, and those of a part of longer code."""

    longest: int
    part: int


#: Of C.  With gcc 12 -O1 the derivatives of a humanoid's dynamics, 38,000 statements, took 34 s, and take 7 s in parts.
OF_C = Lengths(500, 500)


def cuts(nodes: Sequence[Node], partners: Mapping[Node, Node], lengths: Lengths) -> Collection[int]:
    """Positions before which a part ends; only in long code, never between a sine and its cosine."""
    if len(nodes) <= lengths.longest:
        return ()
    count = -(-len(nodes) // lengths.part)
    positions = (k * len(nodes) // count for k in range(1, count))
    return {at + (partners.get(nodes[at - 1]) is nodes[at]) for at in positions}


class Waiting:
    """Where values wait: places in C, here those of a local array."""

    registers = NEVER  # values that are in registers at a time: between two cuts, all of them

    def __init__(self) -> None:
        self.count = 0  # of places
        self.slots: dict[Node, str] = {}
        self.destinations: dict[Node, Sequence[str]] = {}
        self._free: list[str] = []

    def take(self) -> str:
        return self._free.pop() if self._free else self.keep()

    def keep(self) -> str:
        """A place that is not given back."""
        self.count += 1
        return self._place(self.count - 1)

    def give_back(self, slot: str) -> None:
        self._free.append(slot)

    def _place(self, number: int) -> str:
        return f"_waiting[{number}]"


class PartedBody(Body):
    """One program as C statements with lines between its parts, at which no value is in a register.

    Results are written as soon as they are there; those that take the place of what is read later, at the end.
    """

    lengths = OF_C

    def __init__(
        self,
        program: Program,
        real: Real,
        address: Callable[..., str],
        functions: Functions,
        named: Callable[[list[str], list[str]], None] | None,
        waiting: Waiting,
    ):
        self.waiting = waiting
        self._loaded = set[Node]()  # values that were read in this part
        super().__init__(program, real, address, functions, named, eager=True)

    def _reads(self, taken: set[str]) -> list[str]:
        for node in self.program.nodes:
            if node.op is ops.INPUT:
                array, element = node.value
                self.waiting.slots[node] = self._address(self.inputs[array], element)
                self._text[node] = identifier(f"{self.inputs[array]}_{element}", taken)
        return self._unused()

    def _operations(self, eager: bool) -> list[str]:
        for node in self.program.nodes:
            if node.op is ops.CONST:
                self._text[node] = self._literal(node)
        results = [node for node in self._places if node.op is not ops.CONST]
        nodes = list(dict.fromkeys([*self._in_order(), *results]))
        read, last = self._last_reads(nodes), []
        for at, node in enumerate(nodes):
            places = self._places.pop(node, [])
            late = [place for place in places if read.get(place, at) > at]
            kept = [self.waiting.take()] if late else []
            self.waiting.destinations[node] = [*(place for place in places if place not in late), *kept]
            last += [f"{place} = {kept[0]};" for place in late]
        return [*self._performed(nodes), *last]

    def _in_order(self) -> Sequence[Node]:
        """The nodes to be computed straight on."""
        return [node for node in self.program.nodes if node.args]

    def _last_reads(self, nodes: Sequence[Node]) -> dict[str, int]:
        """Until when the places of inputs are read."""
        slots = self.waiting.slots
        return {slots[x]: at for at, node in enumerate(nodes) for x in (node, *node.args) if x.op is ops.INPUT}

    def _performed(self, nodes: Sequence[Node]) -> list[str]:
        lines: list[str] = []
        section, done = "", set[Node]()
        places = cuts(nodes, self._partner, self.lengths)
        for kind, node, place in assigned(nodes, self.waiting, self.waiting.registers, places, calls=()):
            if kind == CUT:
                lines.append(CUT_LINE)
                section = ""
                self._loaded.clear()
                continue
            assert node is not None
            if kind == LOAD:
                lines += self._loads(node, place)
            elif kind == COMPUTE:
                if node.section != section:
                    section = node.section
                    lines += self._heading(section)
                if node not in done:
                    lines.append(self._statement(node))
                done.update((node, self._partner.get(node, node)))
                lines += self._after(node)
            elif kind != FORGET:
                lines.append(f"{place} = {self._text[node]};")
        return lines

    def _after(self, node: Node) -> Sequence[str]:
        """What follows the statement of a value."""
        return ()

    def _loads(self, node: Node, place: str) -> list[str]:
        if node in self._loaded:
            return []
        self._loaded.add(node)
        return [self._declaration(node, place)]

    def _declaration(self, node: Node, place: str) -> str:
        if node.op.result == "bool":
            return f"const int {self._text[node]} = {place} != 0;"
        return f"const {self.real.name} {self._text[node]} = {place};"


class Parts:
    """Functions split off from another one's statements.

    head       what stands before their names
    handed     names that all of them are given, with their declarations
    opening    their first lines
    """

    def __init__(self, head: str, handed: Mapping[str, str] | None = None, opening: Sequence[str] = ()):
        self._head, self._handed, self._opening = head, handed or {}, opening
        self.definitions: list[str] = []
        self.count = 0

    def called(self, statements: Sequence[str], known: Mapping[str, str], alone: bool = False) -> list[str]:
        """Calls of functions that do this; the same statements where they are one part, unless that may stand
        ``alone``.  ``known`` are declarations of the names around that statements may use."""
        if CUT_LINE not in statements and not alone:
            return list(statements)
        pieces = list[list[str]]([[]])
        for line in statements:
            if line == CUT_LINE:
                pieces.append([])
            else:
                pieces[-1].append(line)
        return [self._function(piece, known) for piece in pieces]

    def _function(self, lines: Sequence[str], known: Mapping[str, str]) -> str:
        """A call of a new function."""
        names = (name for line in lines if not line.startswith("/*") for name in _NAME.findall(line) if name in known)
        declarations = {**self._handed, **{name: known[name] for name in names}}
        name = f"_part{self.count}"
        self.count += 1
        self.definitions += [
            f"{self._head} {name}({', '.join(declarations.values())})",
            "{",
            *(f"    {line}".rstrip() for line in (*self._opening, *lines)),
            "}",
            "",
        ]
        return f"{name}({', '.join(declarations)});"
