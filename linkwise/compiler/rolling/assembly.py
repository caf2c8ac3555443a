"""From values that belong to kinds of links to loops over the links.

A value is computed in the sweep by which everything that it depends on is known, or where it is first needed if it
depends on inputs alone.  What a later sweep needs is kept in cells of the link's own.  What passes between neighbours
lies in exchange cells, which are used again as soon as the last neighbour has taken it.  Values that depend on the
mechanism's numbers alone are computed here, for all links, and become numbers of the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ...mechanics.recursions.rolled import CHILDREN, PARENT, NotRolled, Passed, Rolling
from ...mechanics.recursions.schedule import BASE_TO_TIP
from ...mechanics.scalar import Scalar
from ..ir import ops
from ..ir.builder import Builder
from ..ir.looped import CELL, INPUT, NUMBER, OUTPUT, Body, Loop, LoopedProgram, Place
from ..ir.program import Array, Node, Program, reachable
from ..targets.numpy_reference import MEANING
from ..trace import Symbol

OWN, HERE, THERE, TABLE = range(4)  # positions of an iteration: its cells, its and its parent's exchange, its numbers
EVERY = -1  # the kind of values that are the same for all links
CHEAP = (ops.ADD, ops.SUB, ops.MUL, ops.NEG)  # of inputs: computed again rather than kept


Store = tuple[Place, Node, bool]  # where, what, and whether it is added to what is there
Exchanged = dict[tuple[int, int], dict[int, Node]]  # by quantity and number, the values of the kinds that give it
Offsets = dict[tuple[int, int], tuple[int, int]]  # the same, sweep and offset in the exchange cells


class ElementOfKind(NamedTuple):
    """An element of an array: of links of a kind, ``offset`` past their positions in a column; None: of no link."""

    kind: int | None
    column: tuple[str, int] | None
    offset: int


@dataclass(frozen=True)
class DividedArray:
    """An array, what its elements are in the trace, and where those of every link begin, by column."""

    array: Array
    places: list[ElementOfKind]
    columns: dict[tuple[str, int], np.ndarray]


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
    results: list[list[Node]]


def assemble(traced: Traced, name: str) -> LoopedProgram:
    """The program with loops."""
    return _Assembly(traced).program(name)


class _Assembly:
    def __init__(self, traced: Traced):
        self.traced, self.rolling, self.leaves = traced, traced.rolling, traced.leaves
        self.kinds = traced.rolling.kinds
        self.sweeps = traced.rolling.sweeps or [BASE_TO_TIP]
        self.builder = traced.leaves.builder
        self._kind: dict[Node, int] = {}
        self._sweep: dict[Node, int] = {}
        self._tabular: dict[Node, bool] = {}
        self.columns = {c: None for part in (*traced.inputs, *traced.outputs) for c in part.columns}

    # -- what a value belongs to ------------------------------------------------------------------------

    def _study(self, roots: Iterable[Node]) -> None:
        """Kind, sweep and nature of all nodes that ``roots`` depend on."""
        for node in reachable([list(roots)]):
            if node in self._kind:
                continue
            if node.op is ops.INPUT:
                self._kind[node], self._sweep[node] = self._leaf(node)
                self._tabular[node] = node.value[0] == self.leaves.arrays
                continue
            kinds = {self._kind[arg] for arg in node.args} - {EVERY}
            if len(kinds) > 1:
                raise NotRolled("a value depends on links that are no neighbours")
            self._kind[node] = kinds.pop() if kinds else EVERY
            self._sweep[node] = max((self._sweep[arg] for arg in node.args), default=-1)
            self._tabular[node] = bool(node.args) and all(self._tabular[a] or a.op is ops.CONST for a in node.args)

    def _leaf(self, node: Node) -> tuple[int, int]:
        array, element = node.value
        if array == self.leaves.arrays:
            return self.leaves.numbers[element][0], -1
        if array > self.leaves.arrays:
            kind, passed, _ = self.leaves.passed[element]
            return kind, passed.sweep
        kind = self.traced.inputs[array].places[element].kind
        return (EVERY if kind is None else kind), -1

    def _is_passed(self, node: Node) -> bool:
        return node.op is ops.INPUT and node.value[0] > self.leaves.arrays

    def _is_given(self, node: Node) -> bool:
        """Whether it is read where it is needed: constants, inputs, numbers of the table."""
        return node.op is ops.CONST or self._tabular[node] or (node.op is ops.INPUT and not self._is_passed(node))

    # -- what is needed ---------------------------------------------------------------------------------

    @cached_property
    def _exchanged(self) -> Exchanged:
        """What passes between links and is used: by quantity and number the values of the kinds that give it."""
        found: Exchanged = {}
        seen: set[Node] = set()
        stack = [node for group in self.traced.results for node in group]
        while stack:
            node = stack.pop()
            if node in seen:
                continue
            seen.add(node)
            stack.extend(node.args)
            if self._is_passed(node):
                _, passed, k = self.leaves.passed[node.value[1]]
                if (passed.number, k) not in found:
                    values = {j: self._given_by(passed, j)[k] for j in self.rolling.gives(passed)}
                    found[passed.number, k] = values
                    stack.extend(values.values())
        return found

    def _given_by(self, passed: Passed, kind: int) -> list[Node]:
        """The numbers that links of a kind pass on."""
        form, numbers = self.rolling.given(passed, kind)
        if form is None:
            size = max(len(self.rolling.given(passed, j)[1]) for j in self.rolling.gives(passed))
            return [self.builder.const(0.0)] * size
        return [x.node if isinstance(x, Symbol) else self.builder.const(x) for x in numbers]

    # -- when and where ---------------------------------------------------------------------------------

    def program(self, name: str) -> LoopedProgram:
        exchanged = self._exchanged
        self._study(
            [*(n for group in self.traced.results for n in group), *_all(v.values() for v in exchanged.values())]
        )
        offsets = self._exchange_offsets(exchanged)
        stores = self._stores(exchanged, offsets)
        computed, kept = self._computed(stores)
        blocks = [self._blocks(sweep) for sweep in range(len(self.sweeps))]
        widths = [sum(1 for s, _ in offsets.values() if s == sweep) for sweep in range(len(self.sweeps))]
        region = max((count * width for (_, count), width in zip(blocks, widths, strict=True)), default=0)
        tables = _Tables(self, [sorted(nodes, key=_index) for nodes in self._table_nodes(stores, computed)])
        own_sizes = np.array([max(cells.values(), default=-1) + 1 for cells in kept])
        kind_of = np.empty(len(self.traced.parents), dtype=int)
        for k, kind in enumerate(self.kinds):
            kind_of[list(kind.links)] = k
        own = region + np.concatenate([[0], np.cumsum(own_sizes[kind_of])])
        starts = {c: v for part in (*self.traced.inputs, *self.traced.outputs) for c, v in part.columns.items()}
        loops = []
        for sweep, direction in enumerate(self.sweeps):
            writer = _BodyWriter(self, sweep, offsets, kept, tables)
            bodies = [writer.body(k, stores[sweep][k], computed[sweep][k]) for k in range(len(self.kinds))]
            numbered = {k: n for n, k in enumerate(k for k, body in enumerate(bodies) if body is not None)}
            order = np.arange(len(kind_of)) if direction == BASE_TO_TIP else np.arange(len(kind_of))[::-1]
            order = order[np.isin(kind_of[order], list(numbered))]
            here, _ = blocks[sweep]
            parents = np.array(self.traced.parents)
            there = np.where(parents >= 0, here[parents], 0)
            positions = [own[:-1], here * widths[sweep], there * widths[sweep], tables.rows, *starts.values()]
            loops.append(
                Loop(
                    self._label(bodies, direction),
                    tuple(body for body in bodies if body is not None),
                    np.array([numbered[k] for k in kind_of[order]], dtype=np.int32),
                    np.stack([np.asarray(p)[order] for p in positions], axis=-1).astype(np.int32),
                )
            )
        inputs, outputs = (tuple(p.array for p in side) for side in (self.traced.inputs, self.traced.outputs))
        return LoopedProgram(
            inputs, outputs, tuple(x for x in loops if len(x.which)), int(own[-1]), tables.numbers, name
        )

    @staticmethod
    def _label(bodies: Sequence[Body | None], direction: str) -> str:
        sections = (n.section.rpartition(": ")[0] for b in bodies if b is not None for n in b.program.nodes if n.args)
        return next((section for section in sections if section), direction.replace("_", " "))

    def _exchange_offsets(self, exchanged: Iterable[tuple[int, int]]) -> Offsets:
        """Sweep and offset in the exchange cells of everything that passes."""
        counts = [0] * len(self.sweeps)
        offsets = {}
        for number, k in sorted(exchanged):
            sweep = self.rolling.passed[number].sweep
            offsets[number, k] = (sweep, counts[sweep])
            counts[sweep] += 1
        return offsets

    def _stores(self, exchanged: Exchanged, offsets: Offsets) -> list[list[list[Store]]]:
        """By sweep and kind: what is to be written where, and whether it is added to what is there."""
        stores: list[list[list[Store]]] = [[[] for _ in self.kinds] for _ in self.sweeps]
        for number, (array, nodes) in enumerate(zip(self.traced.outputs, self.traced.results, strict=True)):
            for element, node in zip(array.places, nodes, strict=True):
                if element.kind is None:
                    raise NotRolled("a result belongs to no link")
                place = Place(OUTPUT, number, self._base(element), element.offset)
                stores[max(self._sweep[node], 0)][element.kind].append((place, node, False))
        for (number, k), values in exchanged.items():
            passed = self.rolling.passed[number]
            sweep, offset = offsets[number, k]
            for kind, node in values.items():
                place = Place(CELL, 0, HERE if passed.source == PARENT else THERE, offset)
                adds = passed.source == CHILDREN and not self.kinds[kind].first
                if not adds or not (node.op is ops.CONST and node.value == 0.0):
                    stores[sweep][kind].append((place, node, adds))
        return stores

    def _base(self, element: ElementOfKind) -> int | None:
        return None if element.column is None else TABLE + 1 + list(self.columns).index(element.column)

    def _computed(self, stores: list[list[list[Store]]]) -> tuple[list[list[set[Node]]], list[dict[Node, int]]]:
        """By sweep and kind what is computed; by kind what is kept for later sweeps, and in which of its cells."""
        count = len(self.sweeps)
        computed: list[list[set[Node]]] = [[set() for _ in self.kinds] for _ in self.sweeps]
        kept: list[dict[Node, int]] = [{} for _ in self.kinds]
        for k in range(len(self.kinds)):
            roots = [[node for _, node, _ in stores[sweep][k]] for sweep in range(count)]
            free: list[list[Node]] = [[] for _ in range(count)]  # needed in a sweep, but dependent on inputs alone
            for sweep in reversed(range(count)):
                stack = list(roots[sweep])
                while stack:
                    node = stack.pop()
                    if self._is_given(node):
                        continue
                    when = self._sweep[node]
                    if when < 0:
                        free[sweep].append(node)
                    elif when < sweep:
                        kept[k].setdefault(node, len(kept[k]))
                        roots[when].append(node)
                    elif node not in computed[sweep][k] and not self._is_passed(node):
                        computed[sweep][k].add(node)
                        stack.extend(node.args)
            done: set[Node] = set()
            for sweep in range(count):
                here: set[Node] = set()
                stack = free[sweep]
                while stack:
                    node = stack.pop()
                    if self._is_given(node) or node in here:
                        continue
                    if node in done and not self._is_cheap(node):
                        kept[k].setdefault(node, len(kept[k]))
                        continue
                    here.add(node)
                    stack.extend(node.args)
                computed[sweep][k] |= here
                done |= here
        return computed, [self._cells(k, kept[k], stores, computed) for k in range(len(self.kinds))]

    def _cells(
        self, k: int, kept: Iterable[Node], stores: list[list[list[Store]]], computed: list[list[set[Node]]]
    ) -> dict[Node, int]:
        """A cell for each value that is kept.  It is taken by another in the sweep that needs the value last: memory is
        what limits long chains, and what is in a cache already is written at no cost."""
        count = len(self.sweeps)
        first = {node: s for s in reversed(range(count)) for node in computed[s][k]}
        used = [{arg for node in computed[s][k] for arg in node.args} for s in range(count)]
        used = [nodes | {node for _, node, _ in stores[s][k]} for s, nodes in enumerate(used)]
        born = {node: self._sweep[node] if self._is_passed(node) else first[node] for node in kept}
        cells: dict[Node, int] = {}
        free_from: list[int] = []  # the sweep from which on each cell may hold something else
        for node in sorted(kept, key=lambda node: (born[node], node.index)):
            last = max(s for s in range(count) if node in used[s])
            cell = next((c for c, sweep in enumerate(free_from) if sweep <= born[node]), len(free_from))
            free_from[cell : cell + 1] = [last]
            cells[node] = cell
        return cells

    def _is_cheap(self, node: Node) -> bool:
        return node.op in CHEAP and all(self._is_given(arg) for arg in node.args)

    def _table_nodes(self, stores: list[list[list[Store]]], computed: list[list[set[Node]]]) -> list[set[Node]]:
        """By kind the values that bodies read from the table."""
        found: list[set[Node]] = [set() for _ in self.kinds]
        for sweep in range(len(self.sweeps)):
            for k in range(len(self.kinds)):
                used = [arg for node in computed[sweep][k] for arg in node.args]
                used += [node for _, node, _ in stores[sweep][k]]
                found[k] |= {node for node in used if self._tabular[node]}
        return found

    def _blocks(self, sweep: int) -> tuple[np.ndarray, int]:
        """The block of exchange cells that each link has in a sweep, and how many blocks there are: a block is free
        again when the link whose neighbours meet in it has been passed, and all of them."""
        parents = self.traced.parents
        outwards = self.sweeps[sweep] == BASE_TO_TIP
        order = range(len(parents)) if outwards else reversed(range(len(parents)))
        left = [0] * len(parents)
        for parent in parents:
            if parent >= 0:
                left[parent] += 1
        blocks, count = np.zeros(len(parents), dtype=int), 0
        free: list[int] = []

        def taken() -> int:
            nonlocal count
            if free:
                return free.pop()
            count += 1
            return count - 1

        opened = [False] * len(parents)
        for i in order:
            parent = parents[i]
            if outwards:
                if left[i]:
                    blocks[i] = taken()
                if parent >= 0:
                    left[parent] -= 1
                    if left[parent] == 0:
                        free.append(int(blocks[parent]))
            else:
                if parent >= 0 and not opened[parent]:
                    opened[parent], blocks[parent] = True, taken()
                if opened[i]:
                    free.append(int(blocks[i]))
        return blocks, count


class _Tables:
    """The numbers of all links: row by row, one kind after the other."""

    def __init__(self, assembly: _Assembly, nodes: Sequence[Sequence[Node]]):
        self.column = [{node: c for c, node in enumerate(of_kind)} for of_kind in nodes]
        self.rows = np.zeros(len(assembly.traced.parents), dtype=int)
        parts, start = [], 0
        for kind, of_kind in zip(assembly.kinds, nodes, strict=True):
            values = self._values(assembly, kind.table, of_kind)
            self.rows[list(kind.links)] = start + np.arange(len(kind.links)) * len(of_kind)
            parts.append(values.ravel())
            start += values.size
        self.numbers = np.concatenate(parts) if parts else np.zeros(0)

    @staticmethod
    def _values(assembly: _Assembly, table: np.ndarray, nodes: Sequence[Node]) -> np.ndarray:
        """(links, nodes): the nodes' values for every link of a kind."""
        values: dict[Node, np.ndarray] = {}
        with np.errstate(all="ignore"):
            for node in reachable([nodes]):
                if node.op is ops.CONST:
                    values[node] = np.array(node.value)
                elif node.op is ops.INPUT:
                    values[node] = table[:, assembly.leaves.numbers[node.value[1]][1]]
                else:
                    values[node] = MEANING[node.op](*(values[arg] for arg in node.args))
        columns = [np.broadcast_to(values[node], len(table)) for node in nodes]
        return np.stack(columns, axis=-1) if columns else np.zeros((len(table), 0))


class _BodyWriter:
    """Makes the bodies of one loop."""

    def __init__(self, assembly: _Assembly, sweep: int, offsets: Offsets, kept: list[dict[Node, int]], tables: _Tables):
        self.assembly, self.sweep, self.offsets, self.kept, self.tables = assembly, sweep, offsets, kept, tables

    def body(self, kind: int, stores: Sequence[Store], computed: set[Node]) -> Body | None:
        """What links of a kind do; None if that is nothing."""
        builder = Builder()
        reads: dict[Place, int] = {}
        new: dict[Node, Node] = {}
        kept = self.kept[kind]

        def read(place: Place) -> Node:
            return builder.input(0, reads.setdefault(place, len(reads)))

        def value(node: Node) -> Node:
            if node not in new:
                new[node] = builder.const(node.value) if node.op is ops.CONST else read(self._place(kind, node))
            return new[node]

        for node in sorted(computed, key=_index):
            new[node] = builder.rebuild(node, tuple(value(arg) for arg in node.args))
        writes = []
        for place, node, adds in stores:
            builder.section = node.section
            writes.append((place, builder.add(read(place), value(node)) if adds else value(node)))
        for node, cell in kept.items():
            if node in computed or (self.assembly._is_passed(node) and self.assembly._sweep[node] == self.sweep):
                writes.append((Place(CELL, 0, OWN, cell), value(node)))
        if not writes:
            return None
        results = (tuple(node for _, node in writes),)
        arrays = (Array("reads", (len(reads),)),), (Array("writes", (len(writes),)),)
        program = Program(*arrays, reachable(results), results, f"sweep{self.sweep}_kind{kind}")
        return Body(program, tuple(reads), tuple(place for place, _ in writes))

    def _place(self, kind: int, node: Node) -> Place:
        """Where a value is read that is not computed here."""
        assembly = self.assembly
        if assembly._tabular[node]:
            return Place(NUMBER, 0, TABLE, self.tables.column[kind][node])
        if assembly._is_given(node):
            array, element = node.value
            found = assembly.traced.inputs[array].places[element]
            return Place(INPUT, array, assembly._base(found), found.offset)
        if assembly._is_passed(node) and assembly._sweep[node] == self.sweep:
            _, passed, k = assembly.leaves.passed[node.value[1]]
            return Place(CELL, 0, THERE if passed.source == PARENT else HERE, self.offsets[passed.number, k][1])
        return Place(CELL, 0, OWN, self.kept[kind][node])


def _index(node: Node) -> int:
    return node.index


def _all(groups: Iterable[Iterable[Node]]) -> list[Node]:
    return [node for group in groups for node in group]
