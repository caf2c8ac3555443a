"""From values that belong to link classes to loops over the links.

A value is computed in the sweep by which everything that it depends on is known, or where it is first needed if it
depends on inputs alone.  What a later sweep needs is kept in cells of the link's own.  What passes between neighbours
lies in exchange cells, which are used again as soon as the last neighbour has taken it.  Values that depend on the
mechanism's numbers alone are computed here, for all links, and become numbers of the table.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property

import numpy as np

from ...mechanics.recursions.pairs import Dof
from ...mechanics.recursions.rolled import ANY, CHILDREN, PARENT, NotRolled, Passed
from ...mechanics.recursions.schedule import BASE_TO_TIP
from ..ir import ops
from ..ir.program import CELL, OUTPUT, Body, For, Node, Place, Program
from ..trace import Symbol
from .bodies import HERE, THERE, BodyWriter, Columns, Memory, Offsets, Store, Tables
from .groups import grouped, parents_of, with_few_positions
from .paths import Beginnings, along_paths, each_column
from .values import ALONG_PATHS, Traced, Values

Source = tuple[int, Dof | None]  # a class, and where it gives several values, the degree of freedom
Exchanged = dict[tuple[int, int], dict[Source, Node]]  # by quantity and number, the values of the classes that give it


def assemble(traced: Traced, name: str) -> Program:
    """The program with loops."""
    return _Assembly(traced).program(name)


class _Assembly:
    def __init__(self, traced: Traced):
        self.traced, self.rolling, self.leaves = traced, traced.rolling, traced.leaves
        self.link_classes = traced.rolling.link_classes
        self.sweeps = traced.sweeps
        self.builder = traced.leaves.builder
        self.values = Values(traced)
        self.columns = Columns(self.values)
        self.class_of = np.empty(len(traced.parents), dtype=int)
        for k, link_class in enumerate(self.link_classes):
            self.class_of[list(link_class.links)] = k
        self.groups = grouped(traced.parents, self.class_of.tolist())
        self.parents_of_groups = parents_of(self.groups, traced.parents)

    # -- what is needed ---------------------------------------------------------------------------------

    @cached_property
    def _exchanged(self) -> Exchanged:
        """What passes between links and is used: by quantity and number the values of the classes that give it."""
        exchanged: Exchanged = {}
        seen: set[Node] = set()
        stack = [result.node for result in self.traced.results]
        while stack:
            node = stack.pop()
            if node in seen:
                continue
            seen.add(node)
            stack.extend(node.args)
            if self.values.is_passed(node):
                _, passed, k = self.leaves.passed[node.value[1]]
                if (passed.number, k) not in exchanged:
                    values = {source: self._given_by(passed, source)[k] for source in self.rolling.gives(passed)}
                    exchanged[passed.number, k] = values
                    stack.extend(values.values())
        return exchanged

    def _given_by(self, passed: Passed, source: Source) -> list[Node]:
        """The numbers that links of a class pass on."""
        form, numbers = self.rolling.given(passed, *source)
        if form is None:
            size = max(len(self.rolling.given(passed, *other)[1]) for other in self.rolling.gives(passed))
            return [self.builder.const(0.0)] * size
        return [x.node if isinstance(x, Symbol) else self.builder.const(x) for x in numbers]

    # -- when and where ---------------------------------------------------------------------------------

    def program(self, name: str) -> Program:
        exchanged = self._exchanged
        self.values.study(
            [*(result.node for result in self.traced.results), *_all(v.values() for v in exchanged.values())]
        )
        offsets = self._exchange_offsets(exchanged)
        stores, beginnings = self._stores(exchanged, offsets)
        needed = self._needed(stores, beginnings)
        computed, kept = self._computed(needed)
        blocks = [self._blocks(sweep) for sweep in range(len(self.sweeps))]
        widths = [sum(1 for s, _ in offsets.values() if s == sweep) for sweep in range(len(self.sweeps))]
        region = max((count * width for (_, count), width in zip(blocks, widths, strict=True)), default=0)
        nodes = [sorted(nodes, key=_index) for nodes in self._table_nodes(needed, computed)]
        tables = Tables(self.values, self.link_classes, nodes)
        own_sizes = np.array([max(cells.values(), default=-1) + 1 for cells in kept])
        packed = 0 if self.traced.packing is None else self.traced.packing.cells
        starts = packed + region + np.concatenate([[0], np.cumsum(own_sizes[self.class_of])])
        of_links = np.stack([starts[:-1], tables.rows, *self.columns.starts.values()], axis=-1)
        loops = []
        for sweep, direction in enumerate(self.sweeps):
            memory = Memory(offsets, kept, tables)
            writer = BodyWriter(self.values, self.columns, memory, sweep, stores[sweep], computed[sweep])
            if direction == ALONG_PATHS:
                loops.append(along_paths(writer, self.class_of, of_links, beginnings, widths[sweep], packed))
            else:
                exchange = packed + blocks[sweep][0] * widths[sweep]
                loops.append(self._loop(writer, direction, exchange, self._of_members(of_links)))
        inputs, outputs = (tuple(p.array for p in side) for side in (self.traced.inputs, self.traced.outputs))
        once, each = ([x for x in part if len(x.which)] for part in (loops[: self._each], loops[self._each :]))
        cells, numbers = int(starts[-1]), tables.numbers
        straight = Program(inputs, outputs, (), (), name, tuple(once), cells, numbers, constants_in_code=False)
        if self.traced.packing is not None:
            return replace(straight, results=(self.traced.packing.results(),))
        columns = [each_column(each, self.columns, self.traced.dofs)] if each else []
        return replace(straight, loops=(*once, *columns), sparse=self._is_sparse(straight, bool(each)))

    @property
    def _each(self) -> int:
        """The first of the sweeps that are made for every column."""
        return self.traced.columns

    def _is_sparse(self, before: Program, by_columns: bool) -> bool:
        """Whether something is not written that is a result, or that columns are read from."""
        written = sum(times * sum(place.space == OUTPUT for place in body.writes) for body, times in before.bodies)
        if not by_columns:
            return written < sum(array.size for array in before.outputs)
        matrices = len({matrix for _, matrix in self.leaves.columns} - {None})
        return written < matrices * self.traced.dofs**2

    def _of_members(self, of_links: np.ndarray) -> np.ndarray:
        """(groups, positions of all their links): where there are fewer links, those of the last again."""
        most = max(len(group.links) for group in self.groups)
        members = np.array([(*group.links, *group.links[-1:] * (most - len(group.links))) for group in self.groups])
        return of_links[members].reshape(len(members), -1)

    def _loop(self, writer: BodyWriter, direction: str, exchange: np.ndarray, of_links: np.ndarray) -> For:
        """One sweep, whose exchange cells begin at ``exchange`` for each group."""
        outwards = direction == BASE_TO_TIP
        link_classes = list(dict.fromkeys(group.link_classes for group in self.groups))
        bodies = {of_group: body for of_group in link_classes if (body := writer.body(of_group, outwards)) is not None}
        numbered = {of_group: number for number, of_group in enumerate(bodies)}
        which = np.array([numbered.get(group.link_classes, -1) for group in self.groups], dtype=np.int32)
        order = np.flatnonzero(which >= 0)[:: 1 if outwards else -1]
        parents = np.array(self.parents_of_groups)
        there = np.where(parents >= 0, exchange[parents], 0)
        positions = np.column_stack([exchange, there, of_links])[order].astype(np.int32)
        label = self._label(bodies.values(), direction)
        return with_few_positions(For(label, tuple(bodies.values()), which[order], positions))

    @staticmethod
    def _label(bodies: Iterable[Body], direction: str) -> str:
        sections = (n.section.rpartition(": ")[0] for b in bodies for n in b.program.nodes if n.args)
        return next((section for section in sections if section), direction.replace("_", " "))

    def _exchange_offsets(self, exchanged: Iterable[tuple[int, int]]) -> Offsets:
        """Sweep and offset in the exchange cells of everything that passes."""
        counts = [0] * len(self.sweeps)
        offsets = {}
        for number, k in sorted(exchanged):
            sweep = self.traced.sweep_of(self.rolling.passed[number])
            offsets[number, k] = (sweep, counts[sweep])
            counts[sweep] += 1
        return offsets

    def _stores(self, exchanged: Exchanged, offsets: Offsets) -> tuple[list[list[list[Store]]], Beginnings]:
        """By sweep and class: what is to be written where, and whether it is added to what is there; and what
        is written where paths begin."""
        beginnings: Beginnings = {}
        stores: list[list[list[Store]]] = [[[] for _ in self.link_classes] for _ in self.sweeps]
        for array, element, node, by_column in self.traced.results:
            if element.link_class is None:
                raise NotRolled("a result belongs to no link")
            place = self.columns.place(OUTPUT if self.traced.packing is None else CELL, array, element)
            along = element.outer is not None and not by_column
            least = self.traced.columns if by_column else self.traced.paths if along else 0
            sweep = max(self.values.sweep[node], least)
            if self.traced.repeated_from(sweep) != (least if along or by_column else -1):
                raise NotRolled("a result of one link depends on those further out, one by one")
            stores[sweep][element.link_class].append((place, node, False))
        for (number, k), values in exchanged.items():
            passed = self.rolling.passed[number]
            sweep, offset = offsets[number, k]
            for (link_class, dof), node in values.items():
                place = Place(CELL, 0, HERE if passed.source == PARENT else THERE, offset)
                if dof is not None and dof != ANY:
                    beginnings.setdefault((link_class, dof[1]), []).append((place, node, False))
                    continue
                adds = dof is None and passed.source == CHILDREN and not self.link_classes[link_class].first
                if not adds or not (node.op is ops.CONST and node.value == 0.0):
                    stores[sweep][link_class].append((place, node, adds))
        return stores, beginnings

    def _needed(self, stores: list[list[list[Store]]], beginnings: Beginnings) -> list[list[list[Node]]]:
        """By sweep and class what is written."""
        needed = [[[node for _, node, _ in of_class] for of_class in of_sweep] for of_sweep in stores]
        for (link_class, _), begun in beginnings.items():
            needed[self.traced.paths][link_class] += [node for _, node, _ in begun]
        return needed

    def _computed(self, needed: list[list[list[Node]]]) -> tuple[list[list[set[Node]]], list[dict[Node, int]]]:
        """By sweep and class what is computed; by class what is kept for later sweeps, and in which of its cells."""
        count = len(self.sweeps)
        computed: list[list[set[Node]]] = [[set() for _ in self.link_classes] for _ in self.sweeps]
        kept: list[dict[Node, int]] = [{} for _ in self.link_classes]
        for k in range(len(self.link_classes)):
            roots = [list(needed[sweep][k]) for sweep in range(count)]
            free: list[list[Node]] = [[] for _ in range(count)]  # needed in a sweep, but dependent on inputs alone
            for sweep in reversed(range(count)):
                stack = list(roots[sweep])
                while stack:
                    node = stack.pop()
                    if self.values.is_given(node):
                        continue
                    when = self.values.sweep[node]
                    if when < self.traced.repeated_from(sweep):
                        when = max(when, 0)  # once for a link, not once for each path or column
                        kept[k].setdefault(node, len(kept[k]))
                        roots[when].append(node)
                    elif when < 0:
                        free[sweep].append(node)
                    elif when < sweep:
                        kept[k].setdefault(node, len(kept[k]))
                        roots[when].append(node)
                    elif node not in computed[sweep][k] and not self.values.is_passed(node):
                        computed[sweep][k].add(node)
                        stack.extend(node.args)
            done: set[Node] = set()
            for sweep in range(count):
                here: set[Node] = set()
                stack = free[sweep]
                while stack:
                    node = stack.pop()
                    if self.values.is_given(node) or node in here:
                        continue
                    if node in done and not self.values.is_cheap(node):
                        kept[k].setdefault(node, len(kept[k]))
                        continue
                    here.add(node)
                    stack.extend(node.args)
                computed[sweep][k] |= here
                done |= here
        return computed, [self._cells(k, kept[k], needed, computed) for k in range(len(self.link_classes))]

    def _cells(
        self, k: int, kept: Iterable[Node], needed: list[list[list[Node]]], computed: list[list[set[Node]]]
    ) -> dict[Node, int]:
        """A cell for each value that is kept.  It is taken by another in the sweep that needs the value last: memory is
        what limits long chains, and what is in a cache already is written at no cost."""
        count = len(self.sweeps)
        first = {node: s for s in reversed(range(count)) for node in computed[s][k]}
        used = [{arg for node in computed[s][k] for arg in node.args} for s in range(count)]
        used = [nodes | set(needed[s][k]) for s, nodes in enumerate(used)]
        born = {node: self.values.sweep[node] if self.values.is_passed(node) else first[node] for node in kept}
        cells: dict[Node, int] = {}
        free_from: list[int] = []  # the sweep from which on each cell may hold something else
        for node in sorted(kept, key=lambda node: (born[node], node.index)):
            last = max(s for s in range(count) if node in used[s])
            if born[node] < self.traced.repeated_from(last):
                last = count  # it is needed for every column
            cell = next((c for c, sweep in enumerate(free_from) if sweep <= born[node]), len(free_from))
            free_from[cell : cell + 1] = [last]
            cells[node] = cell
        return cells

    def _table_nodes(self, needed: list[list[list[Node]]], computed: list[list[set[Node]]]) -> list[set[Node]]:
        """By class the values that bodies read from the table."""
        nodes: list[set[Node]] = [set() for _ in self.link_classes]
        for sweep in range(len(self.sweeps)):
            for k in range(len(self.link_classes)):
                used = [arg for node in computed[sweep][k] for arg in node.args]
                used += needed[sweep][k]
                nodes[k] |= {node for node in used if self.values.tabular[node]}
        return nodes

    def _blocks(self, sweep: int) -> tuple[np.ndarray, int]:
        """The block of exchange cells that each group has in a sweep, and how many blocks there are: a block is free
        again when the group whose neighbours meet in it has been passed, and all of them."""
        parents = self.parents_of_groups
        if self.sweeps[sweep] == ALONG_PATHS:
            return np.zeros(0, dtype=int), 2
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


def _index(node: Node) -> int:
    return node.index


def _all(groups: Iterable[Iterable[Node]]) -> list[Node]:
    return [node for group in groups for node in group]
