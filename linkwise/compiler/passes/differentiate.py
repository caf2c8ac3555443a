"""Pass: the exact derivatives of one output of a program, as a program.

Two ways through the same graph.  Forward: every value has its partial derivatives along the directions on which it
depends, and no others.  Reverse: for every element of the output, the values between it and the inputs have the
derivative of that element by them.  Both build on the value's own nodes, so that what value and derivatives have in
common is computed once; what does not depend on a direction is a constant zero.

Where a value is not smooth: the derivative of a ``select`` is that of the operand it chooses, whatever becomes of the
other one there (infinite or not a number), and its condition has none.  The derivative of ``sqrt`` at 0 is infinite and
that of ``atan2`` at the origin is not a number, as the quotients that define them are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..ir import ops
from ..ir.builder import Builder
from ..ir.program import Array, Node, Program, reachable

MODES = ("auto", "forward", "reverse")
#: "auto" builds both ways and compares where the estimates of their operations differ by less than this factor, ...
CLOSE_CALL = 4
#: ... and together are at most this many; beyond, the estimates decide.
CHEAP_TO_TRY = 200_000

#: Operations that can be infinite or not a number, or have such a slope, at finite operands.
_HAZARDS = (ops.DIV, ops.SQRT, ops.ATAN2)
#: Operations whose slopes are 1 or -1: a derivative passes without a product.
_LINEAR = (ops.ADD, ops.SUB, ops.NEG, ops.SELECT)

Partials = dict[int, Node]  # direction -> derivative along it, where that is no structural zero


@dataclass(frozen=True, eq=False)
class Directions:
    """Directions in which one input array moves.

    array      position of the input
    elements   the elements that move, one direction each, in this order; None: all of them
    basis      instead of elements: a program whose first input is like the array and whose one output (size, n) has a
               direction in every column, so that directions may depend on where the array is
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

    directions   of one input after the other: their columns follow each other in the last axis
    mode         "forward", "reverse", or "auto": the one with fewer operations; see ``_cheaper``
    value        the output itself comes before its derivatives, as a second output of the same program
    names        of the new program and of its output
    """
    if mode not in MODES:
        raise ValueError(f"mode must be one of {', '.join(map(repr, MODES))}, not {mode!r}")
    candidates = _cheaper(_Graph(program, directions, output)) if mode == "auto" else (mode,)
    # A graph for each, as what a builder holds already has a part in what it makes.
    graphs = [_Graph(program, directions, output) for _ in candidates]
    built = [WAYS[way](graph) for way, graph in zip(candidates, graphs, strict=True)]
    best = min(range(len(built)), key=lambda i: _operations(built[i]))
    graph, flat = graphs[best], tuple(node for row in built[best] for node in row)
    array = program.outputs[output]
    outputs: tuple[Array, ...] = (Array(names[1], (*array.shape, graph.columns)),)
    results: tuple[tuple[Node, ...], ...] = (flat,)
    if value:
        outputs, results = (array, *outputs), (tuple(graph.results), flat)
    return Program(program.inputs, outputs, reachable(results), results, names[0])


class _Graph:
    """A copy of what one output depends on, in a builder that has room for the derivatives.

    seeds    for every input node that moves, its derivatives along the directions
    active   the nodes that depend on those, in order of evaluation
    """

    def __init__(self, program: Program, directions: Sequence[Directions], output: int):
        self.builder = Builder()
        new = self.builder.copy(program)
        self.results = [new[node] for node in program.results[output]]
        self.nodes = reachable([self.results])
        self.seeds: dict[Node, Partials] = {}
        self.columns = 0
        for chosen in directions:
            self._sow(program, chosen)
        moving = set(self.seeds)
        for node in self.nodes:
            if node not in moving and node.op is not ops.LESS and any(arg in moving for arg in node.args):
                moving.add(node)
        self.moving = moving
        self.active = [node for node in self.nodes if node in moving]
        self._slopes: dict[Node, list[tuple[Node, Node]]] = {}

    def _sow(self, program: Program, chosen: Directions) -> None:
        """Seeds of the next columns."""
        array, unit = program.inputs[chosen.array], self.builder.const(1.0)
        count = chosen.count(program)
        if chosen.basis is None:
            moved = range(array.size) if chosen.elements is None else chosen.elements
            columns = {element: {self.columns + k: unit} for k, element in enumerate(moved)}
        else:
            new = self.builder.copy(chosen.basis, lambda _, element: self.builder.input(chosen.array, element))
            basis = [new[node] for node in chosen.basis.results[0]]
            rows = [basis[count * element : count * (element + 1)] for element in range(array.size)]
            columns = {
                element: {self.columns + k: node for k, node in enumerate(row) if not _is_zero(node)}
                for element, row in enumerate(rows)
            }
        for element, partials in columns.items():
            node = self.builder.input(chosen.array, element)
            if partials:
                self.seeds.setdefault(node, {}).update(partials)
        self.columns += count

    def slopes(self, node: Node) -> list[tuple[Node, Node]]:
        """Operands that move, each with the derivative of ``node`` by it; not for ``select``."""
        if node not in self._slopes:
            self.builder.section = node.section
            self._slopes[node] = [
                (arg, _slope(self.builder, node, position))
                for position, arg in enumerate(node.args)
                if arg in self.moving
            ]
        return self._slopes[node]


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


def _is_zero(node: Node) -> bool:
    return node.op is ops.CONST and node.value == 0.0


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
        partials[node] = {k: partial for k, partial in total.items() if not _is_zero(partial)}
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

    What a ``select`` hands to its operands holds under a condition.  To make that a factor 0 would give 0 * infinity
    further on, so an adjoint goes along with the cases in which it holds, and is made 0 in the others only where
    nothing can be infinite any more, or where it meets adjoints that hold in other cases.
    """
    builder = graph.builder
    gradient = [builder.const(0.0)] * graph.columns
    always = builder.const(1.0)
    adjoints: dict[Node, list[Held]] = {result: [(always, always)]}
    for node in reversed(_active_part(graph, result)):
        if node not in adjoints:
            continue  # met under contradicting conditions only
        builder.section = node.section
        adjoint, cases = _met(builder, adjoints.pop(node))
        if node not in hazardous:
            adjoint, cases = _settled(builder, adjoint, cases), always
        if node in graph.seeds:
            for k, seed in graph.seeds[node].items():
                gradient[k] = builder.add(gradient[k], builder.mul(adjoint, seed))
        elif node.op is ops.SELECT:
            for arg, holds in zip(node.args[1:], (True, False), strict=True):
                narrowed = _narrowed(builder, cases, node.args[0], holds)
                if arg in graph.moving and not _is_zero(narrowed):
                    adjoints.setdefault(arg, []).append((adjoint, narrowed))
        else:
            for arg, slope in graph.slopes(node):
                adjoints.setdefault(arg, []).append((builder.mul(adjoint, slope), cases))
    return gradient


#: A value, and the cases in which it holds: a number that is 0 where it does not, and positive where it does.
Held = tuple[Node, Node]


def _met(builder: Builder, parts: list[Held]) -> Held:
    """The sum of what meets at one node."""
    sums: dict[Node, Node] = {}  # by cases
    for value, cases in parts:
        sums[cases] = builder.add(sums[cases], value) if cases in sums else value
    if len(sums) == 1:
        ((cases, value),) = sums.items()
        return value, cases
    value = cases = builder.const(0.0)
    for own_cases, total in sums.items():
        value, cases = _sum(builder, value, _settled(builder, total, own_cases)), _sum(builder, cases, own_cases)
    always = any(own_cases.op is ops.CONST for own_cases in sums) or cases.op is ops.CONST
    return value, builder.const(1.0) if always else cases


def _sum(builder: Builder, a: Node, b: Node) -> Node:
    """a + b, where a choice between a number and 0 and the opposite one are one choice."""
    if a.op is ops.SELECT and b.op is ops.SELECT and a.args[0] is b.args[0]:
        pairs = tuple(zip(a.args[1:], b.args[1:], strict=True))
        if any(_is_zero(x) or _is_zero(y) for x, y in pairs):
            return builder.select(a.args[0], *(_sum(builder, x, y) for x, y in pairs))
    return builder.add(a, b)


def _settled(builder: Builder, value: Node, cases: Node) -> Node:
    """``value`` in its cases, 0 otherwise."""
    if cases.op is ops.CONST:
        return value
    zero = builder.const(0.0)
    if cases.op is ops.SELECT and all(arg.op is ops.CONST for arg in cases.args[1:]):  # a single condition
        condition, then, otherwise = cases.args
        return builder.select(condition, *(zero if _is_zero(case) else value for case in (then, otherwise)))
    return builder.select(builder.less(zero, cases), value, zero)


def _narrowed(builder: Builder, cases: Node, condition: Node, holds: bool) -> Node:
    """The subset of ``cases`` in which ``condition`` equals ``holds``."""
    while cases.op is ops.SELECT and cases.args[0] is condition:
        cases = cases.args[1] if holds else cases.args[2]
    if _is_zero(cases):
        return cases
    zero = builder.const(0.0)
    return builder.select(condition, *((cases, zero) if holds else (zero, cases)))


def _active_part(graph: _Graph, result: Node) -> list[Node]:
    """The nodes between ``result`` and the inputs that move, in order of evaluation."""
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
    """The ways worth building, by an estimate of their operations.

    Across an edge of the graph goes one product or sum per direction that reaches it from the inputs (forward), or per
    element of the output that can be reached from it (reverse).  The estimate misses what folds or is shared, which is
    why close calls are decided by the operations really emitted, where trying both is cheap.
    """
    directions: dict[Node, int] = {}  # sets as bits
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
