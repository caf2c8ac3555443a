"""Assemble loops over the links from values traced once per link class.

A value is computed in the first sweep in which its operands are known; values of inputs alone, in the first sweep that
needs them.  Values needed by a later sweep are kept in cells of the link.  Values that pass between neighbours are
stored in exchange cells, which are reused once the last neighbour has read them.  Values of the mechanism's numbers
alone are computed here for all links and become numbers of the table.

Sweeps that run once are loops over groups of links.  Entries of matrices are computed by nested loops: along the path
from every degree of freedom to the root, or in sweeps over all links for every column.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import accumulate

import numpy as np

from ...mechanics.recursions.pairs import Dof
from ...mechanics.recursions.rolled import ALONG_PATHS, ANY, CHILDREN, PARENT, NotRolled, Passed, Rolling
from ...mechanics.recursions.schedule import BASE_TO_TIP
from ...mechanism import Mechanism
from ..ir import ops
from ..ir.builder import BodyBuilder
from ..ir.program import CELL, NUMBER, OUTPUT, Array, Body, For, Node, Place, Program, reachable
from ..targets.numpy_reference import MEANING
from ..trace import Symbol
from .groups import drop_redundant_positions, group_parents, grouped
from .packed_matrices import OF_PAIRS, Packing
from .values import FROM_THE_END, HERE, OWN, TABLE, THERE, Leaves, Positions, Result, Values

Source = tuple[int, Dof | None]  # link class, and the degree of freedom if it provides several values
Exchanged = dict[tuple[int, int], dict[Source, Node]]  # by quantity and number, the values by source class
Store = tuple[Place, Node, bool]  # place, value, and whether it is added

NOTHING = Body(Program((Array("reads", (0,)),), (Array("writes", (0,)),), (), ((),), "column"), (), ())


class Assembly:
    """The program with loops for a mechanism, of an algorithm traced once per link class.

    exchanged    values that pass between links and are used
    offsets      by quantity and number, the sweep and the offset in the exchange cells
    stores       by sweep and class, the values to write
    beginnings   by class and degree of freedom of its joint, the values to write at the start of its path to the root
    computed     by class and sweep, the values to compute
    kept         by class, the values kept for later sweeps with their cells of the link
    columns      by class, the values in the table with their columns
    rows         start of each link's numbers
    """

    def __init__(
        self,
        mechanism: Mechanism,
        rolling: Rolling,
        leaves: Leaves,
        positions: Positions,
        results: Sequence[Result],
        packing: Packing | None,
    ):
        self.rolling, self.leaves, self.positions = rolling, leaves, positions
        self.results, self.packing, self.dofs = results, packing, mechanism.nv
        self.parents, self.link_classes = np.array(mechanism.tree.parents), rolling.link_classes
        self.class_of = np.empty(len(self.parents), dtype=int)
        for k, link_class in enumerate(self.link_classes):
            self.class_of[list(link_class.links)] = k
        self.groups = grouped(mechanism.tree.parents, self.class_of.tolist())
        self.parents_of_groups = group_parents(self.groups, mechanism.tree.parents)
        self.exchanged = self._exchanged()
        exchanged_nodes = [node for values in self.exchanged.values() for node in values.values()]
        self.values = Values(rolling, leaves, [*(result.node for result in results), *exchanged_nodes])
        self.offsets, self.widths = self._exchange_offsets()
        sweeps = range(len(rolling.directions))
        self.stores: list[list[list[Store]]] = [[[] for _ in self.link_classes] for _ in sweeps]
        self.beginnings: dict[tuple[int, int], list[Store]] = {}
        self._store_results()
        self._store_exchanged()
        needed = [[[node for _, node, _ in self.stores[s][k]] for s in sweeps] for k in range(len(self.link_classes))]
        for (k, _), begun in self.beginnings.items():
            needed[k][rolling.paths] += [node for _, node, _ in begun]
        both = [self.values.computed(of_class) for of_class in needed]
        self.computed, self.kept = [computed for computed, _ in both], [kept for _, kept in both]
        self.columns = [self._tabular(*of_class) for of_class in zip(needed, self.computed, strict=True)]

    def program(self, inputs: tuple[Array, ...], outputs: tuple[Array, ...], name: str) -> Program:
        numbers = self._tables()
        blocks = [self._blocks(sweep) for sweep in range(len(self.widths))]
        region = max((count * width for (_, count), width in zip(blocks, self.widths, strict=True)), default=0)
        own_sizes = np.array([max(cells.values(), default=-1) + 1 for cells in self.kept])
        packed = 0 if self.packing is None else self.packing.cells
        starts = packed + region + np.concatenate([[0], np.cumsum(own_sizes[self.class_of])])
        self.of_links = np.stack([starts[:-1], self.rows, *self.positions.columns.values()], axis=-1)
        loops = [
            self._path_loop(packed)
            if direction == ALONG_PATHS
            else self._loop(sweep, packed + blocks[sweep][0] * self.widths[sweep])
            for sweep, direction in enumerate(self.rolling.directions)
        ]
        first = self.rolling.columns
        once, each = ([loop for loop in part if len(loop.which)] for part in (loops[:first], loops[first:]))
        cells = int(starts[-1])
        straight = Program(inputs, outputs, (), (), name, tuple(once), cells, numbers, constants_in_code=False)
        if self.packing is not None:
            return replace(straight, results=(self.packing.results,))
        columns = [self._each_column(each)] if each else []
        return replace(straight, loops=(*once, *columns), sparse=self._is_sparse(straight, bool(each)))

    # -- what passes, and what is written ---------------------------------------------------------------

    def _exchanged(self) -> Exchanged:
        exchanged: Exchanged = {}
        seen: set[Node] = set()
        stack = [result.node for result in self.results]
        while stack:
            node = stack.pop()
            if node in seen:
                continue
            seen.add(node)
            stack.extend(node.args)
            if node.op is ops.INPUT and (passed := self.leaves[node].passed) is not None:
                quantity, k = passed
                if (quantity.number, k) not in exchanged:
                    sources = self.rolling.gives(quantity)
                    values = {source: self._outgoing_numbers(quantity, source)[k] for source in sources}
                    exchanged[quantity.number, k] = values
                    stack.extend(values.values())
        return exchanged

    def _outgoing_numbers(self, passed: Passed, source: Source) -> list[Node]:
        """The numbers that links of a class pass on."""
        builder = self.leaves.builder
        form, numbers = self.rolling.given(passed, *source)
        if form is None:
            size = max(len(self.rolling.given(passed, *other)[1]) for other in self.rolling.gives(passed))
            return [builder.const(0.0)] * size
        return [x.node if isinstance(x, Symbol) else builder.const(x) for x in numbers]

    def _exchange_offsets(self) -> tuple[dict[tuple[int, int], tuple[int, int]], list[int]]:
        """``offsets``, and the amount of numbers that pass in each sweep."""
        widths = [0] * len(self.rolling.directions)
        offsets = {}
        for number, k in sorted(self.exchanged):
            sweep = self.rolling.sweep_index(self.rolling.passed[number])
            offsets[number, k] = (sweep, widths[sweep])
            widths[sweep] += 1
        return offsets, widths

    def _store_results(self) -> None:
        for link_class, place, node, by_column in self.results:
            along = place.outer is not None and not by_column
            least = self.rolling.columns if by_column else self.rolling.paths if along else 0
            sweep = max(self.values.known[node], least)
            if self.rolling.first_repetition(sweep) != (least if along or by_column else -1):
                raise NotRolled("a result of one link depends on those further out, one by one")
            self.stores[sweep][link_class].append((place, node, False))

    def _store_exchanged(self) -> None:
        for (number, k), values in self.exchanged.items():
            passed = self.rolling.passed[number]
            sweep, offset = self.offsets[number, k]
            for (link_class, dof), node in values.items():
                place = Place(CELL, 0, HERE if passed.source == PARENT else THERE, offset)
                if dof is not None and dof != ANY:
                    self.beginnings.setdefault((link_class, dof[1]), []).append((place, node, False))
                    continue
                adds = dof is None and passed.source == CHILDREN and not self.link_classes[link_class].first
                if not adds or not (node.op is ops.CONST and node.value == 0.0):
                    self.stores[sweep][link_class].append((place, node, adds))

    # -- the table --------------------------------------------------------------------------------------

    def _tabular(self, needed: Sequence[Sequence[Node]], computed: Sequence[set[Node]]) -> dict[Node, int]:
        used = {arg for here in computed for node in here for arg in node.args} | {x for here in needed for x in here}
        nodes = sorted((node for node in used if self.values.tabular[node]), key=lambda node: node.index)
        return {node: column for column, node in enumerate(nodes)}

    def _tables(self) -> np.ndarray:
        """The numbers of all links, row by row and class by class. They follow the numbers of the identity matrix,
        whose rows are windows of one row of zeros with a one in the middle."""
        n, starts = self.dofs, FROM_THE_END in self.positions.columns
        parts = [np.eye(1, 2 * n - 1, n - 1)[0] if starts else np.zeros(0)]
        self.rows = np.zeros(len(self.parents), dtype=int)
        for link_class, columns in zip(self.link_classes, self.columns, strict=True):
            start = sum(part.size for part in parts)
            self.rows[list(link_class.links)] = start + np.arange(len(link_class.links)) * len(columns)
            parts.append(self._numbers_of_links(link_class.table, list(columns)).ravel())
        return np.concatenate(parts)

    def _numbers_of_links(self, table: np.ndarray, nodes: Sequence[Node]) -> np.ndarray:
        """(links, nodes): values of the nodes for every link of a class."""
        tables: dict[Node, np.ndarray] = {}
        with np.errstate(all="ignore"):
            for node in reachable([nodes]):
                if node.op is ops.CONST:
                    tables[node] = np.array(node.value)
                elif node.op is ops.INPUT:
                    tables[node] = table[:, self.leaves[node].number]
                else:
                    tables[node] = MEANING[node.op](*(tables[arg] for arg in node.args))
        columns = [np.broadcast_to(tables[node], len(table)) for node in nodes]
        return np.stack(columns, axis=-1) if columns else np.zeros((len(table), 0))

    # -- bodies -----------------------------------------------------------------------------------------

    def _body(self, sweep: int, link_classes: Sequence[int], outwards: bool) -> Body | None:
        """The body for links of these classes, each the child of the one before; None if empty."""
        body, handed = BodyBuilder(), None
        members = list(enumerate(link_classes))[:: 1 if outwards else -1]
        for member, k in members:
            computed = self.computed[k][sweep]
            kept = [
                (Place(CELL, 0, OWN, cell), node, False)
                for node, cell in self.kept[k].items()
                if node in computed or (self.values.passed(node) and self.values.known[node] == sweep)
            ]
            is_last = (member, k) == members[-1]
            handed = self._add_member(body, (sweep, k, member), [*self.stores[sweep][k], *kept], handed, is_last)
        return body.body("_".join([f"sweep{sweep}", "kind", *map(str, link_classes)])) if body.writes else None

    def _add_member(
        self,
        body: BodyBuilder,
        who: tuple[int, int, int],
        stores: Sequence[Store],
        handed: dict[int, Node] | None,
        is_last: bool,
    ) -> dict[int, Node]:
        """Extend a body by one link of an iteration. ``who``: sweep, class and number of the link in the iteration.
        ``handed``: values from the link before, by offset (None for the first link). The link hands values to the next
        one in registers; the last one stores them."""
        sweep, k, member = who

        def source(node: Node) -> Place | Node | None:
            if node in self.computed[k][sweep]:
                return None
            place = self._place(node, sweep, k)
            if handed is not None and place.base in (HERE, THERE):
                return handed[place.offset]
            return self.positions.member_place(place, member)

        value = body.values([node for _, node, _ in stores], source)
        hands_on: dict[int, Node] = {}
        for place, node, adds in stores:
            body.builder.section = node.section
            here = value(node)
            if not is_last and place.base in (HERE, THERE):
                hands_on[place.offset] = here
                continue
            place = self.positions.member_place(place, member)
            body.write(place, body.builder.add(body.read(place), here) if adds else here)
        return hands_on

    def _place(self, node: Node, sweep: int, k: int) -> Place:
        """Place of a value that another sweep computes, for the first link of an iteration."""
        if self.values.tabular[node]:
            return Place(NUMBER, 0, TABLE, self.columns[k][node])
        if node.op is ops.INPUT:
            leaf = self.leaves[node]
            if leaf.place is not None:
                return leaf.place
            if leaf.passed is not None and self.values.known[node] == sweep:
                passed, number = leaf.passed
                offset = self.offsets[passed.number, number][1]
                return Place(CELL, 0, THERE if passed.source == PARENT else HERE, offset)
        return Place(CELL, 0, OWN, self.kept[k][node])

    # -- loops ------------------------------------------------------------------------------------------

    def _loop(self, sweep: int, exchange: np.ndarray) -> For:
        """The loop of one sweep, whose exchange cells begin at ``exchange`` for each group."""
        direction = self.rolling.directions[sweep]
        outwards = direction == BASE_TO_TIP
        link_classes = dict.fromkeys(group.link_classes for group in self.groups)
        bodies = {k: body for k in link_classes if (body := self._body(sweep, k, outwards)) is not None}
        numbered = {k: number for number, k in enumerate(bodies)}
        which = np.array([numbered.get(group.link_classes, -1) for group in self.groups], dtype=np.int32)
        order = np.flatnonzero(which >= 0)[:: 1 if outwards else -1]
        parents = np.array(self.parents_of_groups)
        there = np.where(parents >= 0, exchange[parents], 0)
        positions = np.column_stack([exchange, there, self._member_positions])[order].astype(np.int32)
        label = _label(bodies.values(), direction.replace("_", " "))
        return drop_redundant_positions(For(label, tuple(bodies.values()), which[order], positions))

    @cached_property
    def _member_positions(self) -> np.ndarray:
        """Positions of all links per group, (groups, positions); shorter groups repeat their last link."""
        most = max(len(group.links) for group in self.groups)
        members = np.array([(*group.links, *group.links[-1:] * (most - len(group.links))) for group in self.groups])
        return self.of_links[members].reshape(len(members), -1)

    def _path_loop(self, start: int) -> For:
        """Nested loops from every degree of freedom to the root, link by link.

        The outer loop begins a path for each degree of freedom: it copies the values for the parent of its link. The
        inner loop continues through the ancestors to the ground.  Values along the path alternate between two buffers,
        so that no value is overwritten before it is read; the buffers begin at cell ``start``.
        """
        sweep, parents = self.rolling.paths, self.parents
        depths, width = np.zeros(len(parents), dtype=int), self.widths[sweep]
        for i, parent in enumerate(parents.tolist()):
            depths[i] = depths[parent] + 1 if parent >= 0 else 0
        here = depths % 2 * width
        positions = np.column_stack([start + here, start + width - here, self.of_links]).astype(np.int32)
        link_classes = [k for k, stores in enumerate(self.stores[sweep]) if stores]
        bodies = [body for k in link_classes if (body := self._body(sweep, (k,), False)) is not None]
        if len(bodies) < len(link_classes):
            raise NotRolled("nothing is computed along a path")
        numbered = {k: number for number, k in enumerate(link_classes)}
        which = np.array([numbered.get(k, -1) for k in self.class_of.tolist()], dtype=np.int32)
        inner = np.flatnonzero(which >= 0)
        row_of = np.full(len(parents) + 1, -1, dtype=np.int32)  # the last stands for the ground
        row_of[inner] = np.arange(len(inner))
        label = _label(bodies, "paths to the root")
        rows = drop_redundant_positions(For(label, tuple(bodies), which[inner], positions[inner]))
        begun = [(i, dof) for i, k in enumerate(self.class_of.tolist()) for j, dof in self.beginnings if j == k]
        links, dofs = np.array(begun, dtype=np.int32).reshape(-1, 2).T
        rows = replace(rows, first=row_of[parents[links]], following=row_of[parents[inner]])
        bases = positions[links]
        for number, column in enumerate(self.positions.columns, TABLE + 1):
            if column[0] == "nv":
                bases[:, number] += dofs * column[1]
            elif column == OF_PAIRS and self.packing is not None:
                bases[:, number] = self.packing.of_pairs[self.packing.dof_starts[links] + dofs]
        numbers = {key: number for number, key in enumerate(self.beginnings)}
        begins = np.array([numbers[self.class_of[i], dof] for i, dof in begun], dtype=np.int32)
        return drop_redundant_positions(For(rows.label, tuple(self._path_beginnings()), begins, bases, rows))

    def _path_beginnings(self) -> Iterator[Body]:
        """Kept values that links of each class write at the start of a path."""
        for (k, dof), stores in self.beginnings.items():
            body = BodyBuilder()
            self._add_member(body, (self.rolling.paths, k, 0), stores, None, True)
            yield body.body(f"path_of_kind_{k}_{dof}")

    def _each_column(self, sweeps: Sequence[For]) -> For:
        """Sweeps that run for each column of matrices, over all links in order."""
        firsts = accumulate((len(loop.bodies) for loop in sweeps), initial=0)
        which = np.concatenate([loop.which + first for loop, first in zip(sweeps, firsts, strict=False)])
        bodies = tuple(body for loop in sweeps for body in loop.bodies)
        following = np.arange(1, len(which) + 1, dtype=np.int32)
        following[-1] = -1
        count = self.dofs
        zeros, bases = np.zeros(count, dtype=np.int32), np.concatenate([loop.bases for loop in sweeps])
        around = np.zeros((count, TABLE + 1 + len(self.positions.columns)), dtype=np.int32)
        for number, column in enumerate(self.positions.columns, TABLE + 1):
            each = np.arange(count) * column[1]
            around[:, number] = each[::-1] if column == FROM_THE_END else each
        rows = For(sweeps[0].label, bodies, which.astype(np.int32), bases, first=zeros, following=following)
        return For("columns", (NOTHING,), zeros, around, rows)

    def _is_sparse(self, before: Program, by_columns: bool) -> bool:
        """Whether some elements of results, or of inputs of column sweeps, are not written."""
        written = sum(times * sum(place.space == OUTPUT for place in body.writes) for body, times in before.bodies)
        if not by_columns:
            return written < sum(array.size for array in before.outputs)
        places = (leaf.place for leaf in self.leaves.values())
        matrices = {place.offset // self.dofs**2 for place in places if place is not None and place.space == OUTPUT}
        return written < len(matrices) * self.dofs**2

    def _blocks(self, sweep: int) -> tuple[np.ndarray, int]:
        """The block of exchange cells of each group in a sweep, and the number of blocks. A block is free again once
        its group and all its neighbours have been visited."""
        parents = self.parents_of_groups
        if self.rolling.directions[sweep] == ALONG_PATHS:
            return np.zeros(0, dtype=int), 2
        outwards = self.rolling.directions[sweep] == BASE_TO_TIP
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


def _label(bodies: Iterable[Body], otherwise: str) -> str:
    """The name of the sweep with most operations in the first body."""
    sections = (n.section.rpartition(": ")[0] for body in bodies for n in body.program.nodes if n.args)
    return next((section for section in sections if section), otherwise)
