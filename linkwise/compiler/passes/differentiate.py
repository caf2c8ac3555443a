"""Pass: the exact derivatives of a program, as a program.

Two modes on the same graph.  Forward: every value has its partial derivatives along the directions that it depends on.
Reverse: for every element of the output, each value between it and the inputs has the derivative of that element by
this value.  Both reuse the nodes of the original program, so that subexpressions common to value and derivatives are
computed once.  Derivatives along directions that a value does not depend on are constant zeros.

Where a value is not smooth: the derivative of a ``select`` is the derivative of the chosen operand, even where the
other operand is infinite or NaN; its condition has no derivative.  The derivative of ``sqrt`` at 0 is infinite, and the
derivative of ``atan2`` at the origin is NaN, like the quotients that define them.

``differentiate`` gives all columns of the derivative of one output, of straight-line code.  ``push_forward`` gives the
change of all outputs along one direction and keeps loops: changes are stored beside the values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, islice

import numpy as np

from ..ir import ops
from ..ir.builder import Builder, body_between
from ..ir.program import CELL, INPUT, OUTPUT, Array, Body, For, Node, Place, Program, is_zero, reachable

MODES = ("auto", "forward", "reverse")
#: "auto" builds both modes and compares them if their estimated operations differ by less than this factor, ...
CLOSE_CALL = 4
#: ... and add up to at most this many; otherwise the estimates decide.
CHEAP_TO_TRY = 200_000

#: Operations with possibly infinite or NaN results or slopes at finite operands.
_HAZARDS = (ops.DIV, ops.SQRT, ops.ATAN2)
#: Operations with slopes 1 or -1: a derivative passes without a product.
_LINEAR = (ops.ADD, ops.SUB, ops.NEG, ops.SELECT)

Partials = dict[int, Node]  # direction -> derivative along it; structural zeros are omitted


@dataclass(frozen=True, eq=False)
class Directions:
    """Directions in which one input array moves.

    array      position of the input
    elements   the elements that move, one direction each, in this order; None: all of them
    basis      instead of elements: a program whose first input has the shape of the array and whose only output (size,
               n) has a direction in every column, so that directions may depend on the array's value
    """

    array: int
    elements: tuple[int, ...] | None = None
    basis: Program | None = None

    def count(self, program: Program) -> int:
        if self.basis is not None:
            return self.basis.outputs[0].shape[1]
        return program.inputs[self.array].size if self.elements is None else len(self.elements)


def differentiate(
    program: Program,
    directions: Sequence[Directions],
    mode: str = "auto",
    output: int = 0,
    value: bool = False,
    names: tuple[str, str] = ("derivative", "derivative"),
) -> Program:
    """The program of the derivatives of one output, of shape ``shape of the output + (number of directions,)``.

    directions   of one input after the other; their columns are concatenated along the last axis
    mode         "forward", "reverse", or "auto": the mode with fewer operations; see ``_cheaper``
    value        also return the output itself, as an output before the derivatives
    names        of the new program and of its output
    """
    if mode not in MODES:
        raise ValueError(f"mode must be one of {', '.join(map(repr, MODES))}, not {mode!r}")
    candidates = _cheaper(_seed_graph(program, directions, output)) if mode == "auto" else (mode,)
    # A separate graph per mode: nodes already in a builder are reused by what it builds next.
    graphs = [_seed_graph(program, directions, output) for _ in candidates]
    built = [WAYS[name](graph) for name, graph in zip(candidates, graphs, strict=True)]
    best = min(range(len(built)), key=lambda i: _operations(built[i]))
    graph, flat = graphs[best], tuple(node for row in built[best] for node in row)
    array = program.outputs[output]
    outputs: tuple[Array, ...] = (Array(names[1], (*array.shape, graph.columns)),)
    results: tuple[tuple[Node, ...], ...] = (flat,)
    if value:
        outputs, results = (array, *outputs), (tuple(graph.results), flat)
    return Program(program.inputs, outputs, reachable(results), results, names[0])


class _Graph:
    """The dependencies of some results, in a builder that also makes the derivatives.

    seeds    for every input node that moves, its derivatives along the directions
    active   the nodes that depend on moving inputs, in order of evaluation
    """

    def __init__(self, builder: Builder, results: Sequence[Node], seeds: Mapping[Node, Partials], columns: int):
        self.builder, self.results, self.seeds, self.columns = builder, results, seeds, columns
        self.nodes = reachable([results])
        self.moving = _depending(self.nodes, seeds)
        self.active = [node for node in self.nodes if node in self.moving]
        self._slopes: dict[Node, list[tuple[Node, Node]]] = {}

    def slopes(self, node: Node) -> list[tuple[Node, Node]]:
        """Operands that move, each with the derivative of ``node`` by it; ``select`` is treated elsewhere."""
        if node not in self._slopes:
            self.builder.section = node.section
            self._slopes[node] = [
                (arg, _slope(self.builder, node, position))
                for position, arg in enumerate(node.args)
                if arg in self.moving
            ]
        return self._slopes[node]


def _depending(nodes: Sequence[Node], seeds: Iterable[Node]) -> set[Node]:
    """The seeds and all nodes that depend on them, operands first."""
    moving = set(seeds)
    for node in nodes:
        if node not in moving and node.op is not ops.LESS and any(arg in moving for arg in node.args):
            moving.add(node)
    return moving


def _seed_graph(program: Program, directions: Sequence[Directions], output: int) -> _Graph:
    """The graph of one output, with the directions of all inputs as columns."""
    builder = Builder()
    new = builder.copy(program)
    results = [new[node] for node in program.results[output]]
    seeds: dict[Node, Partials] = {}
    columns = 0
    for chosen in directions:
        for element, partials in _columns(builder, program, chosen).items():
            if partials:
                node = builder.input(chosen.array, element)
                seeds.setdefault(node, {}).update({columns + k: x for k, x in partials.items()})
        columns += chosen.count(program)
    return _Graph(builder, results, seeds, columns)


def _columns(builder: Builder, program: Program, chosen: Directions) -> dict[int, Partials]:
    """For each element of an input that moves, its derivatives along the directions."""
    size = program.inputs[chosen.array].size
    if chosen.basis is None:
        moved = range(size) if chosen.elements is None else chosen.elements
        return {element: {k: builder.const(1.0)} for k, element in enumerate(moved)}
    count = chosen.count(program)
    new = builder.copy(chosen.basis, lambda _, element: builder.input(chosen.array, element))
    basis = [new[node] for node in chosen.basis.results[0]]
    rows = [basis[count * element : count * (element + 1)] for element in range(size)]
    return {element: {k: x for k, x in enumerate(row) if not is_zero(x)} for element, row in enumerate(rows)}


def _slope(builder: Builder, node: Node, position: int) -> Node:
    """Partial derivative of an operation by one operand, reusing the operation's result where possible."""
    args, op = node.args, node.op
    if op in (ops.ADD, ops.SUB, ops.NEG):
        return builder.const(-1.0 if op is ops.NEG or (op is ops.SUB and position == 1) else 1.0)
    if op is ops.MUL:
        return args[1 - position]
    if op is ops.DIV:  # one reciprocal for all directions
        reciprocal = builder.div(builder.const(1.0), args[1])
        return reciprocal if position == 0 else builder.neg(builder.mul(node, reciprocal))
    if op is ops.SQRT:
        return builder.div(builder.const(0.5), node)
    if op is ops.SIN:
        return builder.cos(args[0])
    if op is ops.COS:
        return builder.neg(builder.sin(args[0]))
    if op is ops.ATAN2:
        y, x = args
        square = builder.add(builder.mul(x, x), builder.mul(y, y))
        return builder.div(x, square) if position == 0 else builder.neg(builder.div(y, square))
    raise NotImplementedError(f"no derivative is known for operation {op}")


# -- forward accumulation ---------------------------------------------------------------------------------


def _forward(graph: _Graph) -> list[list[Node]]:
    """Derivatives of each output element along all directions."""
    builder, zero = graph.builder, graph.builder.const(0.0)
    partials: dict[Node, Partials] = {}
    nothing: Partials = {}
    for node in graph.active:
        if node in graph.seeds:
            partials[node] = graph.seeds[node]
            continue
        builder.section = node.section
        total: Partials = {}
        if node.op is ops.SELECT:
            condition, then, otherwise = node.args
            chosen, left = partials.get(then, nothing), partials.get(otherwise, nothing)
            for k in sorted({*chosen, *left}):
                total[k] = builder.select(condition, chosen.get(k, zero), left.get(k, zero))
        else:
            for arg, slope in graph.slopes(node):
                for k, partial in partials[arg].items():
                    term = builder.mul(slope, partial)
                    total[k] = builder.add(total[k], term) if k in total else term
        partials[node] = {k: partial for k, partial in total.items() if not is_zero(partial)}
    return [[partials.get(node, nothing).get(k, zero) for k in range(graph.columns)] for node in graph.results]


# -- reverse accumulation ---------------------------------------------------------------------------------


def _reverse(graph: _Graph) -> list[list[Node]]:
    """Derivatives of each output element along all directions, by reverse mode."""
    hazardous: set[Node] = set()
    for node in graph.nodes:
        if node.op in _HAZARDS or any(arg in hazardous for arg in node.args):
            hazardous.add(node)
    rows: dict[Node, list[Node]] = {}
    for result in graph.results:
        if result not in rows:
            rows[result] = _gradient(graph, result, hazardous)
    return [rows[result] for result in graph.results]


def _gradient(graph: _Graph, result: Node, hazardous: set[Node]) -> list[Node]:
    """Derivatives of one value along all directions.

    The adjoint that a ``select`` passes to an operand is valid under its condition only.  Multiplying it by 0 otherwise
    could give 0 * infinity later, so each adjoint carries the cases in which it is valid.  It is set to 0 in the other
    cases once no later slope can be infinite, or where it is added to adjoints with different cases.
    """
    builder = graph.builder
    gradient = [builder.const(0.0)] * graph.columns
    always = builder.const(1.0)
    adjoints: dict[Node, list[Held]] = {result: [(always, always)]}
    for node in reversed(_active_part(graph, result)):
        if node not in adjoints:
            continue  # only adjoints with contradicting conditions
        builder.section = node.section
        adjoint, cases = _merge_adjoints(builder, adjoints.pop(node))
        if node not in hazardous:
            adjoint, cases = _select_cases(builder, adjoint, cases), always
        if node in graph.seeds:
            for k, seed in graph.seeds[node].items():
                gradient[k] = builder.add(gradient[k], builder.mul(adjoint, seed))
        elif node.op is ops.SELECT:
            for arg, holds in zip(node.args[1:], (True, False), strict=True):
                narrowed = _narrow_cases(builder, cases, node.args[0], holds)
                if arg in graph.moving and not is_zero(narrowed):
                    adjoints.setdefault(arg, []).append((adjoint, narrowed))
        else:
            for arg, slope in graph.slopes(node):
                adjoints.setdefault(arg, []).append((builder.mul(adjoint, slope), cases))
    return gradient


#: A value and its cases: a number that is positive where the value is valid, and 0 elsewhere.
Held = tuple[Node, Node]


def _merge_adjoints(builder: Builder, parts: list[Held]) -> Held:
    """The sum of adjoints at one node."""
    sums: dict[Node, Node] = {}  # by cases
    for value, cases in parts:
        sums[cases] = builder.add(sums[cases], value) if cases in sums else value
    if len(sums) == 1:
        ((cases, value),) = sums.items()
        return value, cases
    value = cases = builder.const(0.0)
    for own_cases, total in sums.items():
        value, cases = _sum(builder, value, _select_cases(builder, total, own_cases)), _sum(builder, cases, own_cases)
    always = any(own_cases.op is ops.CONST for own_cases in sums) or cases.op is ops.CONST
    return value, builder.const(1.0) if always else cases


def _sum(builder: Builder, a: Node, b: Node) -> Node:
    """a + b; two choices between a value and 0 with opposite conditions merge into one choice."""
    if a.op is ops.SELECT and b.op is ops.SELECT and a.args[0] is b.args[0]:
        pairs = tuple(zip(a.args[1:], b.args[1:], strict=True))
        if any(is_zero(x) or is_zero(y) for x, y in pairs):
            return builder.select(a.args[0], *(_sum(builder, x, y) for x, y in pairs))
    return builder.add(a, b)


def _select_cases(builder: Builder, value: Node, cases: Node) -> Node:
    """``value`` in its cases, 0 otherwise."""
    if cases.op is ops.CONST:
        return value
    zero = builder.const(0.0)
    if cases.op is ops.SELECT and all(arg.op is ops.CONST for arg in cases.args[1:]):  # a single condition
        condition, then, otherwise = cases.args
        return builder.select(condition, *(zero if is_zero(case) else value for case in (then, otherwise)))
    return builder.select(builder.less(zero, cases), value, zero)


def _narrow_cases(builder: Builder, cases: Node, condition: Node, holds: bool) -> Node:
    """The subset of ``cases`` in which ``condition`` equals ``holds``."""
    while cases.op is ops.SELECT and cases.args[0] is condition:
        cases = cases.args[1] if holds else cases.args[2]
    if is_zero(cases):
        return cases
    zero = builder.const(0.0)
    return builder.select(condition, *((cases, zero) if holds else (zero, cases)))


def _active_part(graph: _Graph, result: Node) -> list[Node]:
    """The nodes between ``result`` and the moving inputs, in order of evaluation."""
    seen: set[Node] = set()
    stack = [result] if result in graph.moving else []
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            stack.extend(arg for arg in node.args if arg in graph.moving)
    return sorted(seen, key=lambda node: node.index)


WAYS = {"forward": _forward, "reverse": _reverse}


# -- which way ------------------------------------------------------------------------------------------


def _cheaper(graph: _Graph) -> tuple[str, ...]:
    """The modes worth building, by an estimate of their operations.

    Each edge of the graph costs one product or sum per direction that reaches it from the inputs (forward), or per
    element of the output that is reachable from it (reverse).  The estimate ignores folding and sharing; close calls
    are therefore decided by counting emitted operations, if building both modes is cheap.
    """
    directions: dict[Node, int] = {}  # sets as bit masks
    elements: dict[Node, int] = {}
    for position, node in enumerate(graph.results):
        elements[node] = elements.get(node, 0) | 1 << position
    for node in graph.active:
        mask = 0
        for k in graph.seeds.get(node, ()):
            mask |= 1 << k
        for arg in node.args:
            mask |= directions.get(arg, 0)
        directions[node] = mask
    forward = reverse = 0
    for node in reversed(graph.active):
        reached = elements.get(node, 0)
        weight = 1 if node.op in _LINEAR else 2
        for arg in node.args:
            if arg in graph.moving:
                elements[arg] = elements.get(arg, 0) | reached
                forward += weight * directions[arg].bit_count()
                reverse += weight * reached.bit_count()
    if forward + reverse <= CHEAP_TO_TRY and max(forward, reverse) <= CLOSE_CALL * min(forward, reverse):
        return ("forward", "reverse")
    return ("forward",) if forward <= reverse else ("reverse",)


def _operations(entries: list[list[Node]]) -> int:
    return sum(len(node.op.counts) for node in reachable(entries))


# -- along one direction, through loops -------------------------------------------------------------------


def push_forward(
    program: Program, directions: Sequence[Directions], weights: Sequence[Array], names: tuple[str, Sequence[str]]
) -> Program:
    """The program of the change of all outputs along one combination of directions.

    directions   of inputs, at most one entry per input
    weights      further inputs of the new program: the coefficients of each input's directions
    names        of the new program and of its outputs
    """
    inputs = (*program.inputs, *weights)
    outputs = tuple(Array(name, array.shape) for name, array in zip(names[1], program.outputs, strict=True))
    builder = Builder()
    new = builder.copy(program)
    changes = {
        chosen.array: _apply_weights(builder, _columns(builder, program, chosen), len(program.inputs) + k)
        for k, chosen in enumerate(directions)
    }
    if program.loops:
        return _DifferentiatedLoops(program, changes).program(inputs, outputs, names[0])
    seeds = {
        builder.input(array, element): {0: change}
        for array, of_elements in changes.items()
        for element, change in of_elements.items()
    }
    results = [new[node] for group in program.results for node in group]
    flat = iter(_forward(_Graph(builder, results, seeds, 1)))
    pushed = tuple(tuple(x for (x,) in islice(flat, array.size)) for array in outputs)
    return Program(inputs, outputs, reachable(pushed), pushed, names[0])


def _apply_weights(builder: Builder, columns: dict[int, Partials], weights: int) -> dict[int, Node]:
    """For each moving element, its derivatives multiplied by the elements of an input."""
    changes = {}
    for element, partials in columns.items():
        terms = [builder.mul(partial, builder.input(weights, k)) for k, partial in partials.items()]
        if terms:
            *_, changes[element] = accumulate(terms, builder.add)
    return changes


class _DifferentiatedLoops:
    """Loops that store changes beside the values.

    Memory consists of four ranges of cells: values, their changes, changes of inputs that have to be computed, and
    values of results that are read back, because the outputs are the changes.

    changes   for each moving input, the changes of its elements: nodes over the inputs of the new program
    moving    for each range of memory, the elements with stored changes.  A place of a body counts as moving in all
              iterations if it is moving in any
    """

    def __init__(self, program: Program, changes: dict[int, dict[int, Node]]):
        self._old = program
        self._count = 2 * program.cells
        self._change_of_input = {array: self._laid_out(array, nodes) for array, nodes in changes.items()}
        self._in_cells = {
            array: nodes for array, nodes in changes.items() if self._change_of_input[array].space == CELL
        }
        needed = {place.array for body, _ in program.bodies for place in body.reads if place.space == OUTPUT}
        self._value_of_output = {k: self._allocate(program.outputs[k].size) for k in sorted(needed)}
        self._moving: dict[tuple[str, int], np.ndarray] = {(CELL, 0): np.zeros(program.cells, bool)}
        complete = not program.sparse  # every element is written
        self._moving |= {(OUTPUT, k): np.full(array.size, complete) for k, array in enumerate(program.outputs)}
        self._accesses: dict[tuple[Body, bool], dict[int, list[np.ndarray]]] = {}
        for loop in program.loops:
            for space in (CELL, OUTPUT):
                for read in (True, False):
                    for body, number, _, elements in loop.elements(space, read):
                        self._accesses.setdefault((body, read), {}).setdefault(number, []).append(elements)
        self._spread()

    def program(self, inputs: tuple[Array, ...], outputs: tuple[Array, ...], name: str) -> Program:
        old, loops = self._old, [loop.with_bodies(self._pushed) for loop in self._old.loops]
        loops = [self._zeros(k, start) for k, start in self._value_of_output.items()] + loops
        if self._in_cells:
            loops.insert(0, self._changes_of_inputs())
        at_rest = ~self._moving[CELL, 0]
        results = tuple(np.where((x < 0) | at_rest[x], -1, x + old.cells).astype(np.int32) for x in old.results)
        made = replace(old, inputs=inputs, outputs=outputs, results=results, name=name, loops=tuple(loops))
        return replace(made, cells=self._count)

    # -- where changes lie ------------------------------------------------------------------------------

    def _allocate(self, count: int) -> int:
        """Allocate cells; returns the first."""
        self._count += count
        return self._count - count

    def _laid_out(self, array: int, changes: dict[int, Node]) -> Place:
        """Start of the changes of an input: inside another input if they are its elements, otherwise in cells."""
        nodes = [changes.get(element) for element in range(self._old.inputs[array].size)]
        values = [node.value for node in nodes if node is not None and node.op is ops.INPUT]
        if values and values == [(values[0][0], element) for element in range(len(nodes))]:
            return Place(INPUT, values[0][0], None, 0)
        return Place(CELL, 0, None, self._allocate(len(nodes)))

    def _changes_of_inputs(self) -> For:
        """A loop that computes changes of inputs that are not inputs themselves."""
        nodes, places, zero = [], [], Builder().const(0.0)
        for array, changes in self._in_cells.items():
            start = self._change_of_input[array]
            for element in range(self._old.inputs[array].size):
                nodes.append(changes.get(element, zero))
                places.append(start._replace(offset=start.offset + element))

        def place(node: Node) -> Place | None:
            return Place(INPUT, node.value[0], None, node.value[1]) if node.op is ops.INPUT else None

        body = body_between(nodes, places, place, "changes")
        return For("changes of inputs", (body,), np.zeros(1, np.int32), np.zeros((1, 1), np.int32))

    def _zeros(self, output: int, start: int) -> For:
        """A loop that sets results to zero before they are written."""
        body = body_between([Builder().const(0.0)], [Place(CELL, 0, 0, start)], lambda _: None, "zeros")
        elements = np.arange(self._old.outputs[output].size, dtype=np.int32)
        return For("zeros of results", (body,), np.zeros(len(elements), np.int32), elements[:, None])

    def _value(self, place: Place) -> Place:
        if place.space != OUTPUT:
            return place
        return place._replace(space=CELL, array=0, offset=self._value_of_output[place.array] + place.offset)

    def _change(self, place: Place) -> Place:
        if place.space == CELL:
            return place._replace(offset=self._old.cells + place.offset)
        if place.space == INPUT:
            start = self._change_of_input[place.array]
            return place._replace(space=start.space, array=start.array, offset=start.offset + place.offset)
        return place

    # -- what changes -----------------------------------------------------------------------------------

    def _touches(self, body: Body, number: int, read: bool) -> bool:
        """Whether a place of a body has stored changes in any iteration."""
        place = (body.reads if read else body.writes)[number]
        if place.space == INPUT:
            return place.array in self._change_of_input
        moving = self._moving.get((place.space, place.array))
        return moving is not None and any(moving[x].any() for x in self._accesses.get((body, read), {}).get(number, ()))

    def _mark(self, body: Body, number: int, read: bool) -> None:
        place = (body.reads if read else body.writes)[number]
        for elements in self._accesses.get((body, read), {}).get(number, ()):
            self._moving[place.space, place.array][elements] = True

    def _moving_reads(self, body: Body) -> list[int]:
        return [number for number in range(len(body.reads)) if self._touches(body, number, read=True)]

    def _spread(self) -> None:
        """Mark elements with stored changes, up to a fixed point."""
        before = -1
        while before != (before := sum(map(np.count_nonzero, self._moving.values()))):
            for body, _ in self._old.bodies:
                reads = self._moving_reads(body)
                for number in reads:
                    self._mark(body, number, read=True)
                seeds = [node for node in body.program.nodes if node.op is ops.INPUT and node.value[1] in reads]
                moving = _depending(body.program.nodes, seeds)
                for number, node in enumerate(body.program.results[0]):
                    if node in moving or self._touches(body, number, read=False):
                        self._mark(body, number, read=False)

    def _pushed(self, body: Body) -> Body:
        """The body extended by the changes of its values."""
        builder = Builder()
        new = builder.copy(body.program)
        results = [new[node] for node in body.program.results[0]]
        places = [self._value(place) for place in body.reads]
        seeds = {}
        for number in self._moving_reads(body):
            seeds[builder.input(0, number)] = {0: builder.input(0, len(places))}
            places.append(self._change(body.reads[number]))
        changes = [change for (change,) in _forward(_Graph(builder, results, seeds, 1))]
        kept = [k for k, place in enumerate(body.writes) if place.space == CELL or place.array in self._value_of_output]
        moved = [k for k in range(len(results)) if self._touches(body, k, read=False)]
        nodes = [*(results[k] for k in kept), *(changes[k] for k in moved)]
        writes = [*(self._value(body.writes[k]) for k in kept), *(self._change(body.writes[k]) for k in moved)]
        return body_between(
            nodes, writes, lambda node: places[node.value[1]] if node.op is ops.INPUT else None, body.program.name
        )
