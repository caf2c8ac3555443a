"""What running an algorithm once per kind of link gave: symbols, results, and what each value belongs to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ...mechanics.recursions.rolled import AFTER_SWEEPS, NotRolled, Passed, Rolling
from ...mechanics.recursions.schedule import BASE_TO_TIP
from ...mechanics.scalar import Scalar
from ..ir import ops
from ..ir.builder import Builder
from ..ir.program import Array, Node, reachable
from ..trace import Symbol

ALONG_WAYS = "inwards from every degree of freedom"
Column = tuple[str, int]  # "nq", "nv" or "n_links", and how many elements each of them has
EVERY = -1  # the kind of values that are the same for all links
CHEAP = (ops.ADD, ops.SUB, ops.MUL, ops.NEG)  # of inputs: computed again rather than kept


class ElementOfKind(NamedTuple):
    """An element of an array: of links of a kind, ``offset`` past their positions in a column; None: of no link.

    outer   of a matrix, the column of the degree of freedom further out whose position is added
    """

    kind: int | None
    column: Column | None
    offset: int
    outer: Column | None = None


class Result(NamedTuple):
    """A value that is an element of an output."""

    array: int
    element: ElementOfKind
    node: Node


@dataclass(frozen=True)
class DividedArray:
    """An array, what its elements are in the trace (of an input), and where those of every link begin, by column."""

    array: Array
    places: list[ElementOfKind]
    columns: dict[Column, np.ndarray]


@dataclass
class Leaves:
    """The symbols of a trace: inputs by number of the array, and after them numbers and what links take."""

    builder: Builder
    arrays: int
    numbers: list[tuple[int, int]] = field(default_factory=list)  # kind, column of its table
    passed: list[tuple[int, Passed, int]] = field(default_factory=list)  # kind that takes it, quantity, which number
    _known: dict[tuple[int, int, int], Symbol] = field(default_factory=dict)

    def number(self, kind: int, column: int) -> Symbol:
        """A number that is another for every link of a kind."""
        self.numbers.append((kind, column))
        return Symbol(self.builder.input(self.arrays, len(self.numbers) - 1), self.builder)

    def taken(self, kind: int, passed: Passed, k: int) -> Scalar:
        """Number k of what links of a kind take from a neighbour."""
        key = (kind, passed.number, k)
        if key not in self._known:
            self.passed.append((kind, passed, k))
            self._known[key] = Symbol(self.builder.input(self.arrays + 1, len(self.passed) - 1), self.builder)
        return self._known[key]


@dataclass(frozen=True)
class Traced:
    """What running an algorithm once per kind gave."""

    leaves: Leaves
    rolling: Rolling
    parents: Sequence[int]
    inputs: list[DividedArray]
    outputs: list[DividedArray]
    results: list[Result]

    @property
    def sweeps(self) -> list[str]:
        """Directions of the sweeps, and after them, where something goes along, of the ways of degrees of freedom."""
        found = self.rolling.sweeps or [BASE_TO_TIP]
        return [*found, ALONG_WAYS] if any(passed.sweep == AFTER_SWEEPS for passed in self.rolling.passed) else found

    def sweep_of(self, passed: Passed) -> int:
        return len(self.sweeps) - 1 if passed.sweep == AFTER_SWEEPS else passed.sweep


class Values:
    """The values of a trace.

    kind      of the links that they belong to, by node
    sweep     by which they are known; -1: from the beginning
    tabular   whether they depend on the mechanism's numbers alone
    """

    def __init__(self, traced: Traced):
        self.traced, self.leaves = traced, traced.leaves
        self.kind: dict[Node, int] = {}
        self.sweep: dict[Node, int] = {}
        self.tabular: dict[Node, bool] = {}

    def study(self, roots: Iterable[Node]) -> None:
        """Kind, sweep and nature of all nodes that ``roots`` depend on."""
        for node in reachable([list(roots)]):
            if node in self.kind:
                continue
            if node.op is ops.INPUT:
                self.kind[node], self.sweep[node] = self._leaf(node)
                self.tabular[node] = node.value[0] == self.leaves.arrays
                continue
            kinds = {self.kind[arg] for arg in node.args} - {EVERY}
            if len(kinds) > 1:
                raise NotRolled("a value depends on links that are no neighbours")
            self.kind[node] = kinds.pop() if kinds else EVERY
            self.sweep[node] = max((self.sweep[arg] for arg in node.args), default=-1)
            self.tabular[node] = bool(node.args) and all(self.tabular[a] or a.op is ops.CONST for a in node.args)

    def _leaf(self, node: Node) -> tuple[int, int]:
        array, element = node.value
        if array == self.leaves.arrays:
            return self.leaves.numbers[element][0], -1
        if array > self.leaves.arrays:
            kind, passed, _ = self.leaves.passed[element]
            return kind, self.traced.sweep_of(passed)
        kind = self.traced.inputs[array].places[element].kind
        return (EVERY if kind is None else kind), -1

    def is_passed(self, node: Node) -> bool:
        return node.op is ops.INPUT and node.value[0] > self.leaves.arrays

    def is_given(self, node: Node) -> bool:
        """Whether it is read where it is needed: constants, inputs, numbers of the table."""
        return node.op is ops.CONST or self.tabular[node] or (node.op is ops.INPUT and not self.is_passed(node))

    def is_cheap(self, node: Node) -> bool:
        return node.op in CHEAP and all(self.is_given(arg) for arg in node.args)
