"""Values of an algorithm traced once per link class: their class, the sweep that computes them, and the values that
links keep between sweeps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ...mechanics.recursions.rolled import NotRolled, Passed, Rolling
from ...mechanics.scalar import Scalar
from ...mechanism import Mechanism
from ..ir import ops
from ..ir.builder import Builder
from ..ir.program import INPUT, Node, Place, reachable
from ..trace import Symbol

EVERY = -1  # pseudo class of values common to all links
CHEAP = (ops.ADD, ops.SUB, ops.MUL, ops.NEG)  # operations on inputs up to which a value is recomputed instead of kept

# Positions of an iteration: exchange cells of its last link and of its parent; then of each of its links the cells, the
# numbers, and the elements of arrays.
HERE, THERE, OWN, TABLE = range(4)
Column = tuple[str, int]  # quantity with "nq", "nv" or "n_links" entries, and elements per entry
FROM_THE_END: Column = ("from the end", 1)  # of degrees of freedom


class Positions:
    """Start of each link's elements in arrays of a mechanism, by column."""

    def __init__(self, mechanism: Mechanism):
        self._mechanism = mechanism
        self.columns: dict[Column, np.ndarray] = {}

    def number(self, column: Column, starts: np.ndarray | None = None) -> int:
        """Number of a position of the first link of an iteration; ``starts`` for a column other than elements of
        arrays."""
        if column not in self.columns:
            quantity, width = column
            self.columns[column] = starts_of_links(self._mechanism, quantity)[:-1] * width if starts is None else starts
        return TABLE + 1 + list(self.columns).index(column)

    def member_place(self, place: Place, member: int) -> Place:
        """The corresponding place of another link of the iteration, for a place of its first link."""
        if place.base is None or place.base in (HERE, THERE):
            return place
        return place._replace(base=place.base + member * (2 + len(self.columns)))


def starts_of_links(mechanism: Mechanism, quantity: str) -> np.ndarray:
    """Start of each link's entries in an array of this quantity."""
    sizes = [1 if quantity == "n_links" else getattr(body, quantity) for body in mechanism.bodies]
    return np.concatenate([[0], np.cumsum(sizes, dtype=int)])


class Leaf(NamedTuple):
    """Meaning of an unknown of the trace; exactly one field is set.

    place    where iterations read it: an element of an input, or of a column of a matrix
    number   a column of the table of the link class
    passed   a value from a neighbour: the quantity, and the number in it
    """

    link_class: int
    place: Place | None = None
    number: int | None = None
    passed: tuple[Passed, int] | None = None


class Result(NamedTuple):
    """A value that is an element of an output; ``by_column`` if it is computed for every column of a matrix."""

    link_class: int
    place: Place
    node: Node
    by_column: bool = False


class Leaves(dict[Node, Leaf]):
    """The unknowns of a trace, as inputs of the builder: array elements under the array's number, numbers of the
    mechanism under the next number, all others under the one after it."""

    def __init__(self, builder: Builder, arrays: int):
        self.builder, self._arrays = builder, arrays
        self._known: dict[Leaf, Symbol] = {}

    def symbol(self, leaf: Leaf) -> Scalar:
        """The symbol of an unknown; equal leaves share one."""
        if leaf not in self._known:
            array = self._arrays if leaf.number is not None else self._arrays + 1
            self._known[leaf] = Symbol(self.builder.input(array, len(self._known)), self.builder)
            self[self._known[leaf].node] = leaf
        return self._known[leaf]


class Values:
    """The values of a trace.

    link_class   of the links that they belong to, by node
    known        the first sweep in which each value is known; -1: from the beginning
    tabular      whether each depends on the mechanism's numbers alone
    """

    def __init__(self, rolling: Rolling, leaves: Mapping[Node, Leaf], roots: Iterable[Node]):
        self.rolling, self.leaves = rolling, leaves
        self.link_class: dict[Node, int] = {}
        self.known: dict[Node, int] = {}
        self.tabular: dict[Node, bool] = {}
        for node in reachable([list(roots)]):
            if node.op is ops.INPUT:
                leaf = leaves[node]
                self.link_class[node] = leaf.link_class
                self.known[node] = self._known_leaf(leaf)
                self.tabular[node] = leaf.number is not None
                continue
            link_classes = {self.link_class[arg] for arg in node.args} - {EVERY}
            if len(link_classes) > 1:
                raise NotRolled("a value depends on links that are no neighbours")
            self.link_class[node] = link_classes.pop() if link_classes else EVERY
            self.known[node] = max((self.known[arg] for arg in node.args), default=-1)
            self.tabular[node] = bool(node.args) and all(self.tabular[a] or a.op is ops.CONST for a in node.args)

    def _known_leaf(self, leaf: Leaf) -> int:
        if leaf.passed is not None:
            return self.rolling.sweep_index(leaf.passed[0])
        return self.rolling.columns if leaf.place is not None and leaf.place.space != INPUT else -1

    def passed(self, node: Node) -> tuple[Passed, int] | None:
        """Quantity and number of a value from a neighbour; None for other values."""
        return self.leaves[node].passed if node.op is ops.INPUT else None

    def is_given(self, node: Node) -> bool:
        """Whether a value can be read everywhere: constants, inputs, numbers of the table."""
        return node.op is ops.CONST or self.tabular[node] or (node.op is ops.INPUT and not self.passed(node))

    def is_cheap(self, node: Node) -> bool:
        return node.op in CHEAP and all(self.is_given(arg) for arg in node.args)

    def computed(self, needed: Sequence[Iterable[Node]]) -> tuple[list[set[Node]], dict[Node, int]]:
        """From the values that links of a class need in each sweep: the values computed in each sweep, and the cells of
        values kept for later sweeps."""
        computed: list[set[Node]] = [set() for _ in needed]
        kept: dict[Node, None] = {}
        roots = [list(nodes) for nodes in needed]
        free: list[list[Node]] = [[] for _ in needed]  # depends on inputs alone
        for sweep in reversed(range(len(needed))):
            stack = list(roots[sweep])
            while stack:
                node = stack.pop()
                if self.is_given(node):
                    continue
                when = self.known[node]
                if when < self.rolling.first_repetition(sweep):
                    kept.setdefault(node)
                    roots[max(when, 0)].append(node)  # once per link, not once per path or column
                elif when < 0:
                    free[sweep].append(node)
                elif when < sweep:
                    kept.setdefault(node)
                    roots[when].append(node)
                elif node not in computed[sweep] and not self.passed(node):
                    computed[sweep].add(node)
                    stack.extend(node.args)
        done: set[Node] = set()
        for here, stack in zip(computed, free, strict=True):
            at_first_need: set[Node] = set()
            while stack:
                node = stack.pop()
                if self.is_given(node) or node in at_first_need:
                    continue
                if node in done and not self.is_cheap(node):
                    kept.setdefault(node)
                    continue
                at_first_need.add(node)
                stack.extend(node.args)
            here |= at_first_need
            done |= at_first_need
        return computed, self._cells(kept, needed, computed)

    def _cells(
        self, kept: Iterable[Node], needed: Sequence[Iterable[Node]], computed: Sequence[set[Node]]
    ) -> dict[Node, int]:
        """A cell for each kept value, reused from the sweep of the value's last use on. Memory limits long chains, and
        writing to cached lines is free."""
        count = len(computed)
        first = {node: s for s in reversed(range(count)) for node in computed[s]}
        used = [
            {arg for node in here for arg in node.args} | set(nodes)
            for here, nodes in zip(computed, needed, strict=True)
        ]
        born = {node: self.known[node] if self.passed(node) else first[node] for node in kept}
        cells: dict[Node, int] = {}
        free_from: list[int] = []  # first sweep in which each cell may be reused
        for node in sorted(kept, key=lambda node: (born[node], node.index)):
            last = max(s for s in range(count) if node in used[s])
            if born[node] < self.rolling.first_repetition(last):
                last = count  # needed for every column
            cell = next((c for c, sweep in enumerate(free_from) if sweep <= born[node]), len(free_from))
            free_from[cell : cell + 1] = [last]
            cells[node] = cell
        return cells
