"""``trace``, which turns a function of arrays into a program, and the loops of a trace.

``scalar.each`` applies a function to many lists, such as the columns of a matrix.  It is traced once for all lists with
equal constants, with parameters in place of all other numbers.  ``scalar.folded`` applies a function to its own result
and the rows of a table in turn, as the stages of a step.  It is traced once, with parameters for both.

Operations on parameters become the body of a loop; operations independent of parameters run once before it.  Results of
a loop are leaves of the trace.  The program is then straight-line code up to the loops, the loops, straight-line code
that needs their results, and so on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..ir import ops
from ..ir.builder import Builder, body_between
from ..ir.program import CELL, INPUT, NUMBER, OUTPUT, Array, For, Node, Place, Program, is_zero, reachable
from .tracer import Function, Symbol, applied, run_on_symbols

PARAMETERS, RESULTS = -1, -2  # arrays of leaves that are not inputs of the program
FEWEST = 3  # minimum number of lists for a loop


def trace(
    function: Callable[..., Sequence[np.ndarray]],
    inputs: Sequence[Array],
    outputs: Sequence[str],
    name: str = "kernel",
    on_section: Callable[[Callable[[str], None]], None] | None = None,
    pay: Callable[[int], bool] | None = None,
    folds: bool = False,
) -> Program:
    """Run ``function`` on symbolic arrays shaped like ``inputs``; its results become the outputs.

    ``function`` returns one array (or scalar) per name in ``outputs``.  ``on_section``, if given, receives a setter
    through which the caller names the current section.  ``pay(operations)`` returns whether a loop over lists is worth
    saving the text of this many operations; None disables such loops.  ``folds`` enables loops of ``scalar.folded``.
    """
    builder = Builder()
    loops = builder.loops = LoopTracer(builder, pay, folds)
    arrays, nodes = run_on_symbols(function, inputs, outputs, builder, on_section)
    if loops.found:
        return _Assembly(loops.found).program(tuple(inputs), arrays, nodes, name)
    return Program(tuple(inputs), arrays, reachable(nodes), nodes, name)


@dataclass(frozen=True, eq=False)
class TracedLoop:
    """One function of many lists, or of its own results.

    parameters   placeholders of the varying elements that are used
    needed       other values that the function needs
    results      distinct results that depend on parameters; of a fold, all inputs of the next run
    arguments    the varying elements of every list; of a fold, the inputs of the first run
    first        number of the leaf that is the first result of the first list; the others follow
    table        of a fold, further numbers for each run; None for lists
    """

    parameters: tuple[Node, ...]
    needed: tuple[Node, ...]
    results: tuple[Node, ...]
    arguments: tuple[tuple[Node, ...], ...]
    first: int
    table: np.ndarray | None = None

    @property
    def size(self) -> int:
        """The number of leaves that are its results."""
        return len(self.results) * len(self.arguments)


class LoopTracer:
    """The loops of one trace."""

    def __init__(self, builder: Builder, pay: Callable[[int], bool] | None, folds: bool):
        self._builder, self._pay, self._folds = builder, pay, folds
        self._depends: dict[Node, bool] = {}  # depends on parameters, by node
        self.found: list[TracedLoop] = []

    def each(self, items: Sequence[list[Any]], functions: Sequence[Function], alike: bool) -> list[list[Any]]:
        """Apply all functions in turn to each item: function by function if that makes loops, otherwise
        item by item."""
        if self._pay is None:
            return [applied(functions, item) for item in items]
        groups: dict[tuple, list[int]] = {}
        for number, item in enumerate(items):
            constants = tuple(None if isinstance(x, Symbol) else float(x) for x in item)
            groups.setdefault(() if alike else constants, []).append(number)
        many = [members for members in groups.values() if len(members) >= FEWEST]
        self._builder.loops = None  # inside another loop, functions are applied list by list
        pays = self._pays(functions, [[items[k] for k in members] for members in many])
        results: list[list[Any]] = [[] for _ in items]
        for members in groups.values():
            lists = [items[k] for k in members]
            if pays and members in many:
                filled = _filled(lists)
                for function in functions:
                    lists, filled = self._repeated(function, lists, filled)
                if alike:
                    lists = [
                        [x if mask >> k & 1 else 0.0 for x, mask in zip(values, filled, strict=True)]
                        for k, values in enumerate(lists)
                    ]
            else:
                lists = [applied(functions, item) for item in lists]
            for k, values in zip(members, lists, strict=True):
                results[k] = values
        self._builder.loops = self
        return results

    def _pays(self, functions: Sequence[Function], groups: Sequence[Sequence[list[Any]]]) -> bool:
        """Whether loops over the lists of each group save enough operations. Counts function by function until this is
        decided."""
        assert self._pay is not None
        saved = 0
        for items in groups:
            parameters = self._parameters(items)
            for function in functions:
                results = function(parameters)
                saved += (len(items) - 1) * len(self._varying(x.node for x in results if isinstance(x, Symbol)))
                if self._pay(saved):
                    return True
                parameters = [
                    self._parameter(k) if isinstance(x, Symbol) and self._is_varying(x.node) else x
                    for k, x in enumerate(results)
                ]
        return False

    def _parameters(self, items: Sequence[list[Any]]) -> list[Any]:
        """Common elements of all lists, and parameters in place of varying ones."""
        columns = [{self._node(x): x for x in column} for column in zip(*items, strict=True)]
        return [
            self._parameter(k) if len(column) > 1 else next(iter(column.values())) for k, column in enumerate(columns)
        ]

    def _parameter(self, k: int) -> Symbol:
        return Symbol(self._builder.input(PARAMETERS, k), self._builder)

    def _repeated(
        self, function: Function, items: list[list[Any]], filled: Sequence[int]
    ) -> tuple[list[list[Any]], list[int]]:
        """A function applied to all items by a loop, and the zero pattern of the results, as from ``_filled``. Elements
        that the function leaves unchanged keep their values."""
        parameters = self._parameters(items)
        results = function(parameters)
        numbers = {self._node(x): k for k, x in enumerate(parameters) if _is_leaf(self._node(x), PARAMETERS)}
        nodes = [self._node(x) for x in results]
        once = dict.fromkeys(node for node in nodes if self._is_varying(node) and node not in numbers)
        varying = self._varying(once)
        used = {node: k for node, k in numbers.items() if node in varying}
        arguments = tuple(tuple(self._node(item[k]) for k in used.values()) for item in items)
        besides = {arg for node in varying for arg in node.args if arg not in varying and arg.op is not ops.CONST}
        needed = tuple(sorted(besides, key=lambda node: node.index))
        leaf = self._next_leaf
        if once:
            self.found.append(TracedLoop(tuple(used), needed, tuple(once), arguments, leaf))
        lists = []
        for item in items:
            known: dict[Node, Any] = {node: item[k] for node, k in numbers.items()}
            for node in once:
                known[node] = Symbol(self._builder.input(RESULTS, leaf), self._builder)
                leaf += 1
            lists.append([known.get(node, x) for node, x in zip(nodes, results, strict=True)])
        masks = _propagated(varying, {node: filled[k] for node, k in numbers.items()})
        return lists, [masks[node] if node in masks else 0 if is_zero(node) else -1 for node in nodes]

    def folded(
        self, start: Sequence[Any], rows: np.ndarray, step: Callable[[list[Any], list[Any]], list[Any]]
    ) -> list[Any] | None:
        """``start`` after ``step(numbers, row)`` for all rows in turn, by a loop; None if such loops are disabled."""
        if not self._folds or len(rows) < 2:
            return None
        self._builder.loops = None  # no nested loops
        both = [self._parameter(k) for k in range(len(start) + rows.shape[1])]
        results = tuple(self._node(x) for x in step(both[: len(start)], both[len(start) :]))
        self._builder.loops = self
        varying = self._varying(results)
        besides = {arg for node in varying for arg in node.args if arg not in varying}
        besides |= {node for node in results if node not in varying}
        needed = sorted((node for node in besides if node.op is not ops.CONST), key=lambda node: node.index)
        parameters, first = tuple(x.node for x in both), self._next_leaf
        arguments = (tuple(self._node(x) for x in start),)
        self.found.append(TracedLoop(parameters, tuple(needed), results, arguments, first, rows))
        return [Symbol(self._builder.input(RESULTS, first + k), self._builder) for k in range(len(start))]

    @property
    def _next_leaf(self) -> int:
        return sum(loop.size for loop in self.found)

    def _node(self, x: Any) -> Node:
        return x.node if isinstance(x, Symbol) else self._builder.const(x)

    def _is_varying(self, node: Node) -> bool:
        """Whether a value depends on parameters."""
        for operand in _operands_first([node], self._depends):
            self._depends[operand] = _is_leaf(operand, PARAMETERS) or any(self._depends[arg] for arg in operand.args)
        return self._depends[node]

    def _varying(self, results: Iterable[Node]) -> set[Node]:
        """Nodes among the operands of ``results`` that depend on parameters."""
        nodes: set[Node] = set()
        stack = [node for node in results if self._is_varying(node)]
        while stack:
            node = stack.pop()
            if node not in nodes:
                nodes.add(node)
                stack += [arg for arg in node.args if self._depends[arg]]
        return nodes


def _filled(items: Sequence[list[Any]]) -> list[int]:
    """For every element, a bit mask of the items in which it is not a constant zero. Items that differ only in
    constants may have different zeros, which a common loop does not see."""
    columns = zip(*items, strict=True)
    return [sum(1 << k for k, x in enumerate(column) if isinstance(x, Symbol) or x != 0.0) for column in columns]


def _propagated(varying: Iterable[Node], filled: Mapping[Node, int]) -> dict[Node, int]:
    """``_filled`` for values that depend on parameters, from the masks of the parameters."""
    masks = dict(filled)
    for node in sorted(varying, key=lambda node: node.index):
        if node not in masks:
            first, *others = [masks.get(arg, 0 if is_zero(arg) else -1) for arg in node.args]
            if node.op is ops.MUL:
                masks[node] = first & others[0]
            elif node.op in (ops.ADD, ops.SUB):
                masks[node] = first | others[0]
            else:
                masks[node] = first if node.op in (ops.NEG, ops.DIV, ops.SQRT, ops.SIN) else -1
    return masks


def _operands_first(nodes: Iterable[Node], done: dict[Node, Any]) -> Iterable[Node]:
    """``nodes`` and all their operands except nodes in ``done``; each is added to ``done`` before the next is
    yielded."""
    stack = [(node, False) for node in nodes]
    while stack:
        node, is_ready = stack.pop()
        if is_ready:
            if node not in done:
                yield node
        elif node not in done:
            stack.append((node, True))
            stack += [(arg, False) for arg in node.args]


def _is_leaf(node: Node, array: int) -> bool:
    return node.op is ops.INPUT and node.value[0] == array


@dataclass(eq=False)
class _Layout:
    """Places of the lists of a loop.

    places    of its parameters
    writes    of its results
    columns   position columns: one number per iteration
    """

    places: dict[Node, Place] = field(default_factory=dict)
    writes: list[Place] = field(default_factory=list)
    columns: list[np.ndarray] = field(default_factory=list)

    def position_index(self, positions: np.ndarray) -> int:
        """The index of a position column, which is added if new."""
        for number, column in enumerate(self.columns):
            if np.array_equal(column, positions):
                return number
        self.columns.append(positions)
        return len(self.columns) - 1


@dataclass(eq=False)
class _Assembly:
    """Straight-line code and loops in turn.  Level k is the straight-line code that depends on loops of lower levels
    only, followed by the loops that need this code.

    levels        of values
    loop_levels   of loops
    layouts       of loops
    leaf_cells    cells of loop results
    cells         cells of values that are read outside the code that computes them
    copies        cells of values as elements of lists; the cells of a list are contiguous
    starts        cells of a fold's inputs: start values for the first run, previous results for later ones
    count         number of cells
    numbers       constants that differ from list to list
    """

    traced: Sequence[TracedLoop]
    levels: dict[Node, int] = field(default_factory=dict)
    loop_levels: dict[TracedLoop, int] = field(default_factory=dict)
    layouts: dict[TracedLoop, _Layout] = field(default_factory=dict)
    leaf_cells: list[int] = field(default_factory=list)
    cells: dict[Node, int] = field(default_factory=dict)
    copies: dict[Node, list[int]] = field(default_factory=dict)
    starts: dict[Node, list[int]] = field(default_factory=dict)
    count: int = 0
    numbers: list[float] = field(default_factory=list)

    def program(
        self, inputs: tuple[Array, ...], outputs: tuple[Array, ...], results: Sequence[Sequence[Node]], name: str
    ) -> Program:
        for loop in self.traced:  # in this order: each needs only the ones before it
            operands = (node for arguments in loop.arguments for node in arguments)
            self.loop_levels[loop] = self._level([*loop.needed, *operands])
            self.layouts[loop] = self._laid_out(loop) if loop.table is None else self._laid_out_fold(loop, loop.table)
        last = self._level([node for group in results for node in group])
        for loop in self.traced:
            self._keep(loop.needed)
        in_cells = any(loop.table is None for loop in self.traced)  # otherwise code after the loops writes outputs
        cells_of_results = [
            [-1 if is_zero(node) else self._result_cell(node) for node in group] for group in results if in_cells
        ]
        for node, level in self.levels.items():
            self._keep(arg for arg in node.args if self.levels[arg] < level)
        loops = []
        for level in range(max(last, *self.loop_levels.values()) + 1):
            loops += self._straight_line(level)
            loops += [self._loop(part) for part, at in self.loop_levels.items() if at == level]
        if not in_cells:
            loops.append(self._writing(results, last))
        result_cells = tuple(np.array(group, dtype=np.int32) for group in cells_of_results)
        numbers = np.array(self.numbers)
        return Program(inputs, outputs, (), result_cells, name, tuple(loops), self.count, numbers)

    def _level(self, nodes: Sequence[Node]) -> int:
        """The first level at which all ``nodes`` are known."""
        for node in _operands_first(nodes, self.levels):
            if _is_leaf(node, RESULTS):
                self.levels[node] = 1 + self.loop_levels[self._loop_of_leaf(node)]
            else:
                self.levels[node] = max((self.levels[arg] for arg in node.args), default=0)
        return max((self.levels[node] for node in nodes), default=0)

    def _loop_of_leaf(self, leaf: Node) -> TracedLoop:
        return next(loop for loop in reversed(self.traced) if loop.first <= leaf.value[1])

    # -- where values lie -------------------------------------------------------------------------------

    def _allocate(self, count: int) -> range:
        """Allocate contiguous cells; returns the first."""
        self.count += count
        return range(self.count - count, self.count)

    def _laid_out(self, loop: TracedLoop) -> _Layout:
        """Places of a loop's lists. Constants are in the table, results of another loop stay in place. Other parameters
        are copied, so that the cells of a list are contiguous."""
        layout, copied, constant = _Layout(), [], []
        for k, parameter in enumerate(loop.parameters):
            column = [arguments[k] for arguments in loop.arguments]
            if all(node.op is ops.CONST for node in column):
                constant.append((parameter, column))
            elif not self._is_shared_result(layout, parameter, column):
                copied.append((parameter, column))
        lists = np.arange(len(loop.arguments))
        for number, (parameter, _) in enumerate(constant):
            position_index = layout.position_index(len(self.numbers) + len(constant) * lists)
            layout.places[parameter] = Place(NUMBER, 0, position_index, number)
        self.numbers += [column[k].value for k in lists for _, column in constant]
        cells = self._allocate(len(copied) * len(lists))
        for number, (parameter, column) in enumerate(copied):
            position_index = layout.position_index(cells.start + len(copied) * lists)
            layout.places[parameter] = Place(CELL, 0, position_index, number)
            for node, start in zip(column, cells[number :: len(copied)], strict=True):
                self.copies.setdefault(node, []).append(start)
        cells = self._allocate(loop.size)
        self.leaf_cells += cells
        position_index = layout.position_index(cells.start + len(loop.results) * lists)
        layout.writes = [Place(CELL, 0, position_index, k) for k in range(len(loop.results))]
        return layout

    def _laid_out_fold(self, loop: TracedLoop, table: np.ndarray) -> _Layout:
        """Places of a fold: inputs of a run in the same cells for all runs, and a row of the table."""
        count, columns = table.shape
        cells = self._allocate(loop.size)
        self.leaf_cells += cells
        for node, cell in zip(loop.arguments[0], cells, strict=True):
            self.starts.setdefault(node, []).append(cell)
        layout = _Layout()
        position_index = layout.position_index(len(self.numbers) + columns * np.arange(count))
        self.numbers += table.ravel().tolist()
        layout.writes = [Place(CELL, 0, None, cell) for cell in cells]
        rows = [Place(NUMBER, 0, position_index, k) for k in range(columns)]
        layout.places = dict(zip(loop.parameters, [*layout.writes, *rows], strict=True))
        return layout

    def _is_shared_result(self, layout: _Layout, parameter: Node, column: Sequence[Node]) -> bool:
        """Whether a parameter is, for all lists, the same result of another loop; adds its place then."""
        if not all(_is_leaf(node, RESULTS) for node in column):
            return False
        other = self._loop_of_leaf(column[0])
        width = len(other.results)
        list_of, which = np.divmod([node.value[1] - other.first for node in column], width)
        if (which != which[0]).any() or list_of.max() >= len(other.arguments) or list_of.min() < 0:
            return False
        position_index = layout.position_index(self.leaf_cells[other.first] + width * list_of)
        layout.places[parameter] = Place(CELL, 0, position_index, int(which[0]))
        return True

    def _keep(self, nodes: Iterable[Node]) -> None:
        """Assign cells to values that have none. Conditions have no cells: they are recomputed where needed."""
        for node in nodes:
            if node.op.result == "bool":
                self._keep(node.args)
            elif node.args and node not in self.cells:
                self.cells[node] = self._own_cell(node)

    def _own_cell(self, node: Node) -> int:
        return self.copies[node][0] if node in self.copies else self._allocate(1).start

    def _result_cell(self, node: Node) -> int:
        """The cell of a result, which may also be an input or a constant."""
        if _is_leaf(node, RESULTS):
            return self.leaf_cells[node.value[1]]
        if node not in self.cells:
            self.cells[node] = self._own_cell(node)
        return self.cells[node]

    def _known_before(self, level: int) -> Callable[[Node], Place | None]:
        """Places of values that code of a level reads: inputs, and values kept by lower levels."""

        def place(node: Node) -> Place | None:
            if node.op is ops.INPUT:
                if _is_leaf(node, RESULTS):
                    return Place(CELL, 0, None, self.leaf_cells[node.value[1]])
                return None if _is_leaf(node, PARAMETERS) else Place(INPUT, node.value[0], None, node.value[1])
            cell = self.cells.get(node) if node.args else None
            return None if cell is None or self.levels[node] >= level else Place(CELL, 0, None, cell)

        return place

    # -- what is computed -------------------------------------------------------------------------------

    def _straight_line(self, level: int) -> list[For]:
        """The values of a level that are needed elsewhere; None if there are none."""
        wanted = {node: [cell] for node, cell in self.cells.items() if self.levels[node] == level}
        for node, cells in [*self.copies.items(), *self.starts.items()]:
            if self.levels[node] == level:
                wanted[node] = [*dict.fromkeys([*wanted.get(node, ()), *cells])]
        if not wanted:
            return []
        nodes = [node for node, cells in wanted.items() for _ in cells]
        places = [Place(CELL, 0, None, cell) for cells in wanted.values() for cell in cells]
        body = body_between(nodes, places, self._known_before(level), f"level_{level}")
        return [For("straight-line code", (body,), np.zeros(1, np.int32), np.zeros((1, 1), np.int32))]

    def _writing(self, results: Sequence[Sequence[Node]], level: int) -> For:
        """The code after all loops, which writes the outputs."""
        places = [Place(OUTPUT, array, None, k) for array, group in enumerate(results) for k in range(len(group))]
        body = body_between([node for group in results for node in group], places, self._known_before(level), "last")
        return For("straight-line code", (body,), np.zeros(1, np.int32), np.zeros((1, 1), np.int32))

    def _loop(self, loop: TracedLoop) -> For:
        layout = self.layouts[loop]
        known = self._known_before(self.loop_levels[loop] + 1)
        body = body_between(
            loop.results, layout.writes, lambda node: layout.places.get(node) or known(node), "repeated"
        )
        label = next((node.section for node in body.program.nodes if node.section), "each of many lists")
        bases = np.column_stack(layout.columns).astype(np.int32)
        return For(label, (body,), np.zeros(len(bases), np.int32), bases)
