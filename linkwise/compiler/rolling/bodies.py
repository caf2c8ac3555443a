"""Bodies of loops over links: what the links of an iteration compute in one sweep, from where to where."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...mechanics.recursions.link_classes import LinkClass
from ...mechanics.recursions.rolled import PARENT
from ..ir import ops
from ..ir.builder import Builder
from ..ir.program import CELL, INPUT, NUMBER, OUTPUT, Array, Body, Node, Place, Program, reachable
from ..targets.numpy_reference import MEANING
from .values import FROM_THE_END, ElementOfClass, Values

# Positions of an iteration: exchange cells of its last link and of its parent, then of each of its links the cells, the
# numbers, and the elements of inputs and outputs.
HERE, THERE, OWN, TABLE = range(4)

Store = tuple[Place, Node, bool]  # where, what, and whether it is added to what is there
Offsets = dict[tuple[int, int], tuple[int, int]]  # by quantity and number, sweep and offset in the exchange cells


class Columns:
    """The positions that every link of an iteration has."""

    def __init__(self, values: Values):
        arrays = (*values.traced.inputs, *values.traced.outputs)
        self.starts = {column: starts for part in arrays for column, starts in part.columns.items()}
        self._numbers = {column: TABLE + 1 + number for number, column in enumerate(self.starts)}
        self._size = values.traced.dofs

    @property
    def of_a_link(self) -> int:
        return 2 + len(self.starts)

    def place(self, space: str, array: int, element: ElementOfClass) -> Place:
        """Of an element of an array, for the first link of an iteration."""
        base, outer = (None if c is None else self._numbers[c] for c in (element.column, element.outer))
        return Place(space, array, base, element.offset, outer)

    def of_column(self, dof: int, matrix: int | None, identity: int) -> Place:
        """Of a degree of freedom in a column of a matrix, or of the identity, which begins with such a number."""
        n = self._size
        if matrix is None:
            return Place(NUMBER, 0, self._numbers["nv", 1], identity + dof, self._numbers[FROM_THE_END])
        return Place(OUTPUT, 0, self._numbers["nv", n], matrix * n * n + dof * n, self._numbers["nv", 1])

    def around(self, count: int) -> np.ndarray:
        """(count, positions) of a loop over columns of matrices."""
        positions = np.zeros((count, 2 + self.of_a_link), dtype=np.int32)
        for column, number in self._numbers.items():
            each = np.arange(count) * column[1]
            positions[:, number] = count - 1 - each if column == FROM_THE_END else each
        return positions

    def of_member(self, place: Place, member: int) -> Place:
        """A place for another link of the iteration than the first."""
        if place.base is None or place.base in (HERE, THERE):
            return place
        return place._replace(base=place.base + member * self.of_a_link)


class Tables:
    """The numbers of all links: row by row, one class after the other."""

    def __init__(self, values: Values, link_classes: Sequence[LinkClass], nodes: Sequence[Sequence[Node]]):
        self.column = [{node: c for c, node in enumerate(of_class)} for of_class in nodes]
        self.rows = np.zeros(len(values.traced.parents), dtype=int)
        parts, start = [], 0
        for link_class, of_class in zip(link_classes, nodes, strict=True):
            numbers = _numbers_of_links(values, link_class.table, of_class)
            self.rows[list(link_class.links)] = start + np.arange(len(link_class.links)) * len(of_class)
            parts.append(numbers.ravel())
            start += numbers.size
        self.identity = start
        if any(matrix is None for _, matrix in values.leaves.columns):  # its rows are parts of this
            n = values.traced.dofs
            parts.append(np.eye(1, 2 * n - 1, n - 1)[0])
        self.numbers = np.concatenate(parts) if parts else np.zeros(0)


def _numbers_of_links(values: Values, table: np.ndarray, nodes: Sequence[Node]) -> np.ndarray:
    """(links, nodes): the nodes' values for every link of a class."""
    tables: dict[Node, np.ndarray] = {}
    with np.errstate(all="ignore"):
        for node in reachable([nodes]):
            if node.op is ops.CONST:
                tables[node] = np.array(node.value)
            elif node.op is ops.INPUT:
                tables[node] = table[:, values.leaves.numbers[node.value[1]][1]]
            else:
                tables[node] = MEANING[node.op](*(tables[arg] for arg in node.args))
    columns = [np.broadcast_to(tables[node], len(table)) for node in nodes]
    return np.stack(columns, axis=-1) if columns else np.zeros((len(table), 0))


class Memory(NamedTuple):
    """Where values lie that a body takes from others.

    offsets   of what passes between links
    kept      by class the values that are kept for later sweeps, and in which of the link's cells
    tables    the mechanism's numbers
    """

    offsets: Offsets
    kept: list[dict[Node, int]]
    tables: Tables


class BodyWriter:
    """Makes the bodies of one loop.

    stores     by class, what is to be written
    computed   by class, what is computed for that
    """

    def __init__(
        self,
        values: Values,
        columns: Columns,
        memory: Memory,
        sweep: int,
        stores: Sequence[Sequence[Store]],
        computed: Sequence[set[Node]],
    ):
        self.values, self.columns, self.memory, self.sweep = values, columns, memory, sweep
        self.stores, self.computed = stores, computed

    def body(self, link_classes: Sequence[int], outwards: bool) -> Body | None:
        """What links of these classes do, each but the first carried by the one before; None if that is nothing."""
        builder = Builder()
        reads: dict[Place, int] = {}
        writes: list[tuple[Place, Node]] = []
        handed: dict[int, Node] = {}  # by offset, from one link of the iteration to the next
        last = len(link_classes) - 1
        for member in range(len(link_classes)) if outwards else reversed(range(len(link_classes))):
            within = {HERE: member < last, THERE: member > 0}  # whether the neighbour there is of this iteration
            of_member = _Member(self, builder, reads, handed, link_classes[member], member, within)
            handed, outside = of_member.written(
                self.stores[link_classes[member]], self._kept_here(link_classes[member])
            )
            writes += outside
        name = "_".join([f"sweep{self.sweep}", "kind", *map(str, link_classes)])
        return self._made(reads, writes, name) if writes else None

    def beginning(self, link_class: int, stores: Sequence[Store], name: str) -> Body:
        """What a link of a class writes at the beginning of a path, of what it has kept."""
        reads: dict[Place, int] = {}
        member = _Member(self, Builder(), reads, {}, link_class, 0, {HERE: False, THERE: False})
        _, writes = member.written(stores, {})
        return self._made(reads, writes, name)

    def _kept_here(self, link_class: int) -> dict[Node, int]:
        """What links of a class keep that is known in this sweep, and in which cells."""
        values, computed = self.values, self.computed[link_class]
        return {
            node: cell
            for node, cell in self.memory.kept[link_class].items()
            if node in computed or (values.is_passed(node) and values.sweep[node] == self.sweep)
        }

    @staticmethod
    def _made(reads: dict[Place, int], writes: list[tuple[Place, Node]], name: str) -> Body:
        results = (tuple(node for _, node in writes),)
        arrays = (Array("reads", (len(reads),)),), (Array("writes", (len(writes),)),)
        return Body(
            Program(*arrays, reachable(results), results, name), tuple(reads), tuple(place for place, _ in writes)
        )


class _Member:
    """One link of an iteration."""

    def __init__(
        self,
        writer: BodyWriter,
        builder: Builder,
        reads: dict[Place, int],
        handed: dict[int, Node],
        link_class: int,
        member: int,
        within: dict[int, bool],
    ):
        self.writer, self.builder, self.reads, self.handed = writer, builder, reads, handed
        self.link_class, self.member, self.within = link_class, member, within
        self.new: dict[Node, Node] = {}

    def written(
        self, stores: Sequence[Store], kept: dict[Node, int]
    ) -> tuple[dict[int, Node], list[tuple[Place, Node]]]:
        """What the link hands to the next one of the iteration, and what it writes."""
        writer = self.writer
        for node in self._needed([*(node for _, node, _ in stores), *kept]):
            self.new[node] = self.builder.rebuild(node, tuple(map(self._value, node.args)))
        handed: dict[int, Node] = {}
        writes: list[tuple[Place, Node]] = []
        for place, node, adds in stores:
            self.builder.section = node.section
            if place.base in self.within and self.within[place.base]:
                handed[place.offset] = self._value(node)
                continue
            place = writer.columns.of_member(place, self.member)
            value = self._value(node)
            writes.append((place, self.builder.add(self._read(place), value) if adds else value))
        for node, cell in kept.items():
            writes.append((writer.columns.of_member(Place(CELL, 0, OWN, cell), self.member), self._value(node)))
        return handed, writes

    def _needed(self, roots: Sequence[Node]) -> list[Node]:
        """What is computed for these values, operands first."""
        computed, needed, stack = self.writer.computed[self.link_class], set(), list(roots)
        while stack:
            node = stack.pop()
            if node in computed and node not in needed:
                needed.add(node)
                stack.extend(node.args)
        return sorted(needed, key=_index)

    def _read(self, place: Place) -> Node:
        return self.builder.input(0, self.reads.setdefault(place, len(self.reads)))

    def _value(self, node: Node) -> Node:
        if node not in self.new:
            self.new[node] = self.builder.const(node.value) if node.op is ops.CONST else self._taken(node)
        return self.new[node]

    def _taken(self, node: Node) -> Node:
        """A value that is not computed here."""
        place = self._place(node)
        if place.base in self.within and self.within[place.base]:
            return self.handed[place.offset]
        return self._read(self.writer.columns.of_member(place, self.member))

    def _place(self, node: Node) -> Place:
        """Where it lies, for the first link of an iteration."""
        writer, values = self.writer, self.writer.values
        offsets, kept, tables = writer.memory
        if values.tabular[node]:
            return Place(NUMBER, 0, TABLE, tables.column[self.link_class][node])
        if values.is_of_column(node):
            (_, dof), matrix = values.leaves.columns[node.value[1]]
            return writer.columns.of_column(dof, matrix, tables.identity)
        if values.is_given(node):
            array, element = node.value
            position = values.traced.inputs[array].places[element]
            return writer.columns.place(INPUT, array, position)
        if values.is_passed(node) and values.sweep[node] == writer.sweep:
            _, passed, k = values.leaves.passed[node.value[1]]
            return Place(CELL, 0, THERE if passed.source == PARENT else HERE, offsets[passed.number, k][1])
        return Place(CELL, 0, OWN, kept[self.link_class][node])


def _index(node: Node) -> int:
    return node.index
