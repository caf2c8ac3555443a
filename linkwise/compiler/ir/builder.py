"""Construction of nodes: interning, constant folding and local algebra while the graph grows.

Rules are of three kinds.  Folding: an operation on constants, or with a neutral or absorbing constant, is never built.
Canonical signs: negations are pulled outwards, so ``-(a*b)`` and ``(-a)*b`` are one node and most negations end up
inside a subtraction.  Cancelling: ``a + (b - a)`` is b.  Zero absorbs: ``0*x`` is 0 for every x.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from . import ops
from .program import Array, Body, Node, Place, Program, reachable


class Builder:
    """Makes interned nodes.  Operands and results are nodes or plain floats (constants)."""

    def __init__(self, numbers: int | None = None) -> None:
        """``numbers``: an input whose elements are fixed before the program runs; treated like constants."""
        self.section = ""
        self.loops: Any = None  # loop factory of the trace
        self._table: dict[tuple, Node] = {}
        self._count = 0
        self._numbers = numbers
        self._fixed: set[Node] = set()  # nodes that depend only on constants and ``numbers``

    # -- leaves ---------------------------------------------------------------------------------

    def const(self, value: float) -> Node:
        value = float(value) + 0.0  # -0.0 and 0.0 are the same constant
        return self._intern((ops.CONST, value), ops.CONST, (), value)

    def input(self, array: int, element: int) -> Node:
        return self._intern((ops.INPUT, array, element), ops.INPUT, (), (array, element))

    def _intern(self, key: tuple, op: ops.Op, args: tuple[Node, ...], value: Any = None) -> Node:
        node = self._table.get(key)
        if node is None:
            node = self._table[key] = Node(op, args, value, self.section, self._count)
            self._count += 1
            if self._numbers is not None and self._is_fixed(node):
                self._fixed.add(node)
        return node

    def _is_fixed(self, node: Node) -> bool:
        if node.op is ops.INPUT:
            return node.value[0] == self._numbers
        return all(arg in self._fixed for arg in node.args)

    def _binary(self, op: ops.Op, a: Node, b: Node) -> Node:
        return self._intern((op, a.index, b.index), op, (a, b))

    def _commutative(self, op: ops.Op, a: Node, b: Node) -> Node:
        return self._binary(op, a, b) if a.index <= b.index else self._binary(op, b, a)

    def _unary(self, op: ops.Op, a: Node) -> Node:
        return self._intern((op, a.index), op, (a,))

    # -- arithmetic -----------------------------------------------------------------------------

    def add(self, a: Node, b: Node) -> Node:
        if a.op is ops.CONST:
            if b.op is ops.CONST:
                return self.const(a.value + b.value)
            if a.value == 0.0:
                return b
        elif b.op is ops.CONST and b.value == 0.0:
            return a
        if b.op is ops.NEG:
            return self.sub(a, b.args[0])
        if a.op is ops.NEG:
            return self.sub(b, a.args[0])
        if a is b:
            return self.mul(self.const(2.0), a)
        if b.op is ops.SUB and b.args[1] is a:  # a + (c - a)
            return b.args[0]
        if a.op is ops.SUB and a.args[1] is b:
            return a.args[0]
        return self._commutative(ops.ADD, a, b)

    def sub(self, a: Node, b: Node) -> Node:
        if a is b:
            return self.const(0.0)
        if b.op is ops.CONST:
            if a.op is ops.CONST:
                return self.const(a.value - b.value)
            if b.value == 0.0:
                return a
        elif a.op is ops.CONST and a.value == 0.0:
            return self.neg(b)
        if b.op is ops.NEG:
            return self.add(a, b.args[0])
        if a.op is ops.NEG:
            return self.neg(self.add(a.args[0], b))
        if a.op is ops.ADD and b in a.args:  # (b + c) - b
            return a.args[0] if a.args[1] is b else a.args[1]
        if b.op is ops.SUB and b.args[0] is a:  # a - (a - c)
            return b.args[1]
        if a.op is ops.SUB and a.args[0] is b:  # (b - c) - b
            return self.neg(a.args[1])
        mirrored = self._table.get((ops.SUB, b.index, a.index))
        if mirrored is not None:
            return self._unary(ops.NEG, mirrored)
        return self._binary(ops.SUB, a, b)

    def neg(self, a: Node) -> Node:
        if a.op is ops.CONST:
            return self.const(-a.value)
        if a.op is ops.NEG:
            return a.args[0]
        return self._unary(ops.NEG, a)

    def mul(self, a: Node, b: Node) -> Node:
        if b.op is ops.CONST:
            a, b = b, a
        if a.op is ops.CONST:
            c = a.value
            if b.op is ops.CONST:
                return self.const(c * b.value)
            if c == 0.0:
                return a
            if c == 1.0:
                return b
            if c < 0.0:
                return self.neg(self.mul(self.const(-c), b))
            if b.op is ops.MUL and b.args[0].op is ops.CONST:
                return self.mul(self.const(c * b.args[0].value), b.args[1])
        if a.op is ops.NEG:
            return self.neg(self.mul(a.args[0], b))
        if b.op is ops.NEG:
            return self.neg(self.mul(a, b.args[0]))
        if self._fixed and (a in self._fixed) != (b in self._fixed):
            number, other = (a, b) if a in self._fixed else (b, a)
            if other.op is ops.MUL:  # products of fixed numbers stay outside the program
                for factor, rest in (other.args, other.args[::-1]):
                    if factor in self._fixed:
                        return self.mul(self.mul(number, factor), rest)
        if a.op is ops.CONST:  # constants stand first, so that the rules above match products of constants
            return self._binary(ops.MUL, a, b)
        return self._commutative(ops.MUL, a, b)

    def div(self, a: Node, b: Node) -> Node:
        if b.op is ops.CONST:
            if b.value == 0.0:
                raise ZeroDivisionError("division by a constant zero while tracing")
            if a.op is ops.CONST:
                return self.const(a.value / b.value)
            return self.mul(self.const(1.0 / b.value), a)
        if a.op is ops.CONST and a.value == 0.0:
            return a
        if a.op is ops.NEG:
            return self.neg(self.div(a.args[0], b))
        if b.op is ops.NEG:
            return self.neg(self.div(a, b.args[0]))
        return self._binary(ops.DIV, a, b)

    # -- functions ------------------------------------------------------------------------------

    def sqrt(self, a: Node) -> Node:
        return self.const(math.sqrt(a.value)) if a.op is ops.CONST else self._unary(ops.SQRT, a)

    def sin(self, a: Node) -> Node:
        if a.op is ops.CONST:
            return self.const(math.sin(a.value))
        return self.neg(self.sin(a.args[0])) if a.op is ops.NEG else self._unary(ops.SIN, a)

    def cos(self, a: Node) -> Node:
        if a.op is ops.CONST:
            return self.const(math.cos(a.value))
        return self.cos(a.args[0]) if a.op is ops.NEG else self._unary(ops.COS, a)

    def atan2(self, y: Node, x: Node) -> Node:
        if y.op is ops.CONST and x.op is ops.CONST:
            return self.const(math.atan2(y.value, x.value))
        return self._binary(ops.ATAN2, y, x)

    def less(self, a: Node, b: Node) -> Node:
        return self._binary(ops.LESS, a, b)

    def select(self, condition: Node, then: Node, otherwise: Node) -> Node:
        if then is otherwise:
            return then
        key = (ops.SELECT, condition.index, then.index, otherwise.index)
        return self._intern(key, ops.SELECT, (condition, then, otherwise))

    def fused(self, op: ops.Op, *args: Node) -> Node:
        """Build an operation of ``ops.FUSED`` or ``ops.SHORT``; nothing is folded."""
        return self._intern((op, *(arg.index for arg in args)), op, args)

    def rebuild(self, node: Node, args: tuple[Node, ...]) -> Node:
        """Rebuild an operation on other operands; used by passes that copy a graph."""
        self.section = node.section
        if node.op is ops.CONST:
            return self.const(node.value)
        if node.op is ops.INPUT:
            return self.input(*node.value)
        if node.op in ops.FUSED or node.op in ops.SHORT:
            return self.fused(node.op, *args)
        return getattr(self, node.op.name)(*args)

    def copy(self, program: Program, input: Callable[[int, int], Node] | None = None) -> dict[Node, Node]:
        """Copy a program and return the new node of each old one. ``input(array, element)`` supplies nodes for its
        inputs, by default equal inputs. Fused operations are split."""
        section, input = self.section, input or self.input
        new: dict[Node, Node] = {}
        for node in program.nodes:
            args = tuple(new[arg] for arg in node.args)
            if node.op is ops.INPUT:
                new[node] = input(*node.value)
            elif node.op in ops.FUSED:
                self.section = node.section
                product = self.mul(*args[:2])
                left, right = (args[2], product) if node.op is ops.FNMA else (product, args[2])
                new[node] = self.add(left, right) if node.op is ops.FMA else self.sub(left, right)
            else:
                new[node] = self.rebuild(node, args)
        self.section = section
        return new


class BodyBuilder:
    """Builds a loop body from nodes of a trace; each node is either computed in the body or read from a place."""

    def __init__(self) -> None:
        self.builder = Builder()
        self.writes: list[tuple[Place, Node]] = []
        self._reads: dict[Place, int] = {}

    def read(self, place: Place) -> Node:
        return self.builder.input(0, self._reads.setdefault(place, len(self._reads)))

    def write(self, place: Place, node: Node) -> None:
        self.writes.append((place, node))

    def values(self, nodes: Iterable[Node], source: Callable[[Node], Place | Node | None]) -> Callable[[Node], Node]:
        """Nodes of the body that correspond to ``nodes`` of the trace. ``source(node)`` returns the place to read a
        value from, the body's own node if it exists, or None if it is to be computed."""
        sources: dict[Node, Place | Node | None] = {}
        stack = list(nodes)
        while stack:
            node = stack.pop()
            if node not in sources:
                sources[node] = None if node.op is ops.CONST else source(node)
                if sources[node] is None:
                    stack.extend(node.args)
        values: dict[Node, Node] = {}

        def value(node: Node) -> Node:
            if node not in values:
                where = sources[node]
                if where is None:
                    values[node] = self.builder.const(node.value)
                else:
                    values[node] = where if isinstance(where, Node) else self.read(where)
            return values[node]

        computed = [node for node, where in sources.items() if where is None and node.args]
        for node in sorted(computed, key=lambda node: node.index):  # operands first
            values[node] = self.builder.rebuild(node, tuple([value(arg) for arg in node.args]))
        return value

    def body(self, name: str) -> Body:
        results = (tuple(node for _, node in self.writes),)
        arrays = (Array("reads", (len(self._reads),)),), (Array("writes", (len(self.writes),)),)
        program = Program(*arrays, reachable(results), results, name)
        return Body(program, tuple(self._reads), tuple(place for place, _ in self.writes))


def body_between(
    results: Sequence[Node], writes: Sequence[Place], source: Callable[[Node], Place | None], name: str
) -> Body:
    """A body that computes ``results`` of a trace and writes them. ``source(node)`` returns the place to read a value
    from, or None if it is to be computed."""
    body = BodyBuilder()
    value = body.values(results, source)
    for place, node in zip(writes, results, strict=True):
        body.write(place, value(node))
    return body.body(name)
