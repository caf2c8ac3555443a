"""What running an algorithm once per link class gave: symbols, results, and what each value belongs to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ...mechanics.recursions.pairs import Dof
from ...mechanics.recursions.rolled import AFTER_SWEEPS, NotRolled, Passed, Rolling
from ...mechanics.recursions.schedule import BASE_TO_TIP
from ...mechanics.scalar import Scalar
from ..ir import ops
from ..ir.builder import Builder
from ..ir.program import Array, Node, reachable
from ..trace import Symbol
from .packed_matrices import Packing

ALONG_PATHS = "inwards from every degree of freedom"
Column = tuple[str, int]  # "nq", "nv" or "n_links", and how many elements each of them has
FROM_THE_END: Column = ("from the end", 1)  # of degrees of freedom
EVERY = -1  # the class of values that are the same for all links
CHEAP = (ops.ADD, ops.SUB, ops.MUL, ops.NEG)  # of inputs: computed again rather than kept


class ElementOfClass(NamedTuple):
    """An element of an array: of links of a class, ``offset`` past their positions in a column; None: of no link.

    outer   of a matrix, the column of the degree of freedom further out whose position is added
    """

    link_class: int | None
    column: Column | None
    offset: int
    outer: Column | None = None


class Result(NamedTuple):
    """A value that is an element of an output; ``by_column`` if it is computed for every column of a matrix."""

    array: int
    element: ElementOfClass
    node: Node
    by_column: bool = False


@dataclass(frozen=True)
class DividedArray:
    """An array, what its elements are in the trace (of an input), and where those of every link begin, by column."""

    array: Array
    places: list[ElementOfClass]
    columns: dict[Column, np.ndarray]


@dataclass
class Leaves:
    """The symbols of a trace: inputs by number of the array, and after them numbers, what links take, and elements of
    columns of matrices."""

    builder: Builder
    arrays: int
    numbers: list[tuple[int, int]] = field(default_factory=list)  # class, column of its table
    passed: list[tuple[int, Passed, int]] = field(default_factory=list)  # class that takes it, quantity, which number
    columns: list[tuple[Dof, int | None]] = field(default_factory=list)  # of a class, and of which matrix
    _known: dict[tuple[int, int, int], Symbol] = field(default_factory=dict)

    def number(self, link_class: int, column: int) -> Symbol:
        """A number that is another for every link of a class."""
        self.numbers.append((link_class, column))
        return Symbol(self.builder.input(self.arrays, len(self.numbers) - 1), self.builder)

    def column(self, dof: Dof, matrix: int | None) -> Scalar:
        """An element of a column of a matrix, or of the identity."""
        self.columns.append((dof, matrix))
        return Symbol(self.builder.input(self.arrays + 2, len(self.columns) - 1), self.builder)

    def taken(self, link_class: int, passed: Passed, k: int) -> Scalar:
        """Number k of what links of a class take from a neighbour."""
        key = (link_class, passed.number, k)
        if key not in self._known:
            self.passed.append((link_class, passed, k))
            self._known[key] = Symbol(self.builder.input(self.arrays + 1, len(self.passed) - 1), self.builder)
        return self._known[key]


@dataclass(frozen=True)
class Traced:
    """What running an algorithm once per class gave."""

    leaves: Leaves
    rolling: Rolling
    parents: Sequence[int]
    inputs: list[DividedArray]
    outputs: list[DividedArray]
    results: list[Result]
    dofs: int  # of the mechanism: columns of matrices
    packing: Packing | None = None

    @property
    def sweeps(self) -> list[str]:
        """Directions of the sweeps; after those that are made once, where something goes along them, of the paths from
        degrees of freedom to the root; then of the sweeps that are made for every column."""
        directions = self.rolling.sweeps or [BASE_TO_TIP]
        once, each = directions[: self._once], directions[self._once :]
        return [*once, ALONG_PATHS, *each] if self._has_paths else directions

    @property
    def paths(self) -> int:
        """The number of the paths among the sweeps."""
        return self._once

    @property
    def columns(self) -> int:
        """The first of the sweeps that are made for every column."""
        return self._once + self._has_paths

    @property
    def _once(self) -> int:
        """How many sweeps are made once."""
        from_here = self.rolling.columns_from
        return len(self.rolling.sweeps or [BASE_TO_TIP]) if from_here is None else from_here

    @property
    def _has_paths(self) -> bool:
        return any(passed.sweep == AFTER_SWEEPS for passed in self.rolling.passed)

    def sweep_of(self, passed: Passed) -> int:
        if passed.sweep == AFTER_SWEEPS:
            return self.paths
        return passed.sweep + (self._has_paths and passed.sweep >= self._once)

    def repeated_from(self, sweep: int) -> int:
        """Of a sweep or paths that run for each of many, the first sweep that does so; -1: it runs once."""
        return self.columns if sweep >= self.columns else sweep if self.sweeps[sweep] == ALONG_PATHS else -1


class Values:
    """The values of a trace.

    class      of the links that they belong to, by node
    sweep     by which they are known; -1: from the beginning
    tabular   whether they depend on the mechanism's numbers alone
    """

    def __init__(self, traced: Traced):
        self.traced, self.leaves = traced, traced.leaves
        self.link_class: dict[Node, int] = {}
        self.sweep: dict[Node, int] = {}
        self.tabular: dict[Node, bool] = {}

    def study(self, roots: Iterable[Node]) -> None:
        """Kind, sweep and nature of all nodes that ``roots`` depend on."""
        for node in reachable([list(roots)]):
            if node in self.link_class:
                continue
            if node.op is ops.INPUT:
                self.link_class[node], self.sweep[node] = self._leaf(node)
                self.tabular[node] = node.value[0] == self.leaves.arrays
                continue
            link_classes = {self.link_class[arg] for arg in node.args} - {EVERY}
            if len(link_classes) > 1:
                raise NotRolled("a value depends on links that are no neighbours")
            self.link_class[node] = link_classes.pop() if link_classes else EVERY
            self.sweep[node] = max((self.sweep[arg] for arg in node.args), default=-1)
            self.tabular[node] = bool(node.args) and all(self.tabular[a] or a.op is ops.CONST for a in node.args)

    def _leaf(self, node: Node) -> tuple[int, int]:
        array, element = node.value
        if array == self.leaves.arrays:
            return self.leaves.numbers[element][0], -1
        if array == self.leaves.arrays + 2:
            return self.leaves.columns[element][0][0], self.traced.columns
        if array > self.leaves.arrays:
            link_class, passed, _ = self.leaves.passed[element]
            return link_class, self.traced.sweep_of(passed)
        link_class = self.traced.inputs[array].places[element].link_class
        return (EVERY if link_class is None else link_class), -1

    def is_passed(self, node: Node) -> bool:
        return node.op is ops.INPUT and node.value[0] == self.leaves.arrays + 1

    def is_of_column(self, node: Node) -> bool:
        return node.op is ops.INPUT and node.value[0] == self.leaves.arrays + 2

    def is_given(self, node: Node) -> bool:
        """Whether it is read where it is needed: constants, inputs, numbers of the table."""
        return node.op is ops.CONST or self.tabular[node] or (node.op is ops.INPUT and not self.is_passed(node))

    def is_cheap(self, node: Node) -> bool:
        return node.op in CHEAP and all(self.is_given(arg) for arg in node.args)
