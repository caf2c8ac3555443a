"""Symbols with arithmetic for tracing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..ir import ops
from ..ir.builder import Builder
from ..ir.program import Array, Node

Function = Callable[[list[Any]], list[Any]]  # transforms a list of floats and symbols
NUMBERS = (float, int, np.floating, np.integer)


class Symbol:
    """A symbolic number. Arithmetic with floats and other symbols builds nodes; a result that folds to a constant is
    returned as a plain float."""

    __slots__ = ("node", "builder")
    __array_ufunc__ = None  # numpy scalars on the left defer to __radd__ and friends

    def __init__(self, node: Node, builder: Builder):
        self.node = node
        self.builder = builder

    def _lift(self, other: Any) -> Node:
        return other.node if isinstance(other, Symbol) else self.builder.const(other)

    def _wrap(self, node: Node) -> Symbol | float:
        return node.value if node.op is ops.CONST else Symbol(node, self.builder)

    # Jets and other kinds of numbers implement operations with symbols themselves, so operators defer to them.

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, Symbol):
            if not isinstance(other, NUMBERS):
                return NotImplemented
            if other == 0.0:
                return self
        return self._wrap(self.builder.add(self.node, self._lift(other)))

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        if not isinstance(other, Symbol):
            if not isinstance(other, NUMBERS):
                return NotImplemented
            if other == 0.0:
                return self
        return self._wrap(self.builder.sub(self.node, self._lift(other)))

    def __rsub__(self, other: Any) -> Any:
        return self._wrap(self.builder.sub(self._lift(other), self.node))

    def __mul__(self, other: Any) -> Any:
        if not isinstance(other, Symbol):
            if not isinstance(other, NUMBERS):
                return NotImplemented
            if other == 0.0:
                return 0.0
            if other == 1.0:
                return self
        return self._wrap(self.builder.mul(self.node, self._lift(other)))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        if not isinstance(other, (Symbol, *NUMBERS)):
            return NotImplemented
        return self._wrap(self.builder.div(self.node, self._lift(other)))

    def __rtruediv__(self, other: Any) -> Any:
        return self._wrap(self.builder.div(self._lift(other), self.node))

    def __neg__(self) -> Symbol | float:
        return self._wrap(self.builder.neg(self.node))

    def __pos__(self) -> Symbol:
        return self

    def __pow__(self, exponent: Any) -> Any:
        if not isinstance(exponent, int):
            return NotImplemented
        if exponent < 0:
            return 1.0 / self**-exponent
        return 1.0 if exponent == 0 else self * self ** (exponent - 1)

    def __lt__(self, other: Any) -> Any:
        if not isinstance(other, (Symbol, *NUMBERS)):
            return NotImplemented
        return Symbol(self.builder.less(self.node, self._lift(other)), self.builder)

    def __gt__(self, other: Any) -> Any:
        if not isinstance(other, (Symbol, *NUMBERS)):
            return NotImplemented
        return Symbol(self.builder.less(self._lift(other), self.node), self.builder)

    def __bool__(self) -> bool:
        raise TypeError(
            "a traced value has no truth value: the program must not depend on the state; "
            "use linkwise.extend.scalar.select(condition, then, otherwise)"
        )

    # Implementations of linkwise.extend.scalar.

    def sqrt(self) -> Symbol | float:
        return self._wrap(self.builder.sqrt(self.node))

    def sin(self) -> Symbol | float:
        return self._wrap(self.builder.sin(self.node))

    def cos(self) -> Symbol | float:
        return self._wrap(self.builder.cos(self.node))

    def atan2(self, x: Symbol | float) -> Symbol | float:
        return self._wrap(self.builder.atan2(self.node, self._lift(x)))

    def ratan2(self, y: Symbol | float) -> Symbol | float:
        return self._wrap(self.builder.atan2(self._lift(y), self.node))

    def select(self, then: Symbol | float, otherwise: Symbol | float) -> Symbol | float:
        return self._wrap(self.builder.select(self.node, self._lift(then), self._lift(otherwise)))

    def each(self, items: Sequence[list[Any]], functions: Sequence[Function], alike: bool) -> list[list[Any]]:
        if self.builder.loops is not None:
            return self.builder.loops.each(items, functions, alike)
        return [applied(functions, item) for item in items]

    def folded(self, start: Sequence[Any], rows: np.ndarray, step: Callable[..., list[Any]]) -> list[Any] | None:
        return None if self.builder.loops is None else self.builder.loops.folded(start, rows, step)


def applied(functions: Sequence[Function], numbers: list[Any]) -> list[Any]:
    """The list of numbers after all functions in turn."""
    for function in functions:
        numbers = function(numbers)
    return numbers


def symbols(inputs: Sequence[Array], builder: Builder) -> list[np.ndarray]:
    """Arrays of symbols shaped like ``inputs``."""
    arrays = []
    for position, array in enumerate(inputs):
        elements = np.empty(array.size, dtype=object)
        for element in range(array.size):
            elements[element] = Symbol(builder.input(position, element), builder)
        arrays.append(elements.reshape(array.shape))
    return arrays


def run_on_symbols(
    function: Callable[..., Sequence[np.ndarray]],
    inputs: Sequence[Array],
    outputs: Sequence[str],
    builder: Builder,
    on_section: Callable[[Callable[[str], None]], None] | None,
) -> tuple[tuple[Array, ...], tuple[tuple[Node, ...], ...]]:
    """The outputs, and the nodes of their elements."""
    if on_section is not None:
        on_section(lambda label: setattr(builder, "section", label))
    results = [np.asarray(result, dtype=object) for result in function(*symbols(inputs, builder))]
    nodes = tuple(
        tuple(x.node if isinstance(x, Symbol) else builder.const(x) for x in result.ravel()) for result in results
    )
    return tuple(Array(label, result.shape) for label, result in zip(outputs, results, strict=True)), nodes
