"""Nodes and programs: an immutable scalar graph with named array inputs and outputs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from . import ops


class Node:
    """One scalar value.  Nodes are interned by their builder: equal values are the same object.

    ``value`` is the number of a CONST, ``(array, element)`` of an INPUT, otherwise None.
    ``section`` names the place in the mechanics that first asked for the value.
    """

    __slots__ = ("op", "args", "value", "section", "index")

    def __init__(self, op: ops.Op, args: tuple[Node, ...], value: Any, section: str, index: int):
        self.op = op
        self.args = args
        self.value = value
        self.section = section
        self.index = index

    def __repr__(self) -> str:
        return f"%{self.index}={self.op}"


@dataclass(frozen=True)
class Array:
    """Name and core shape of one input or output array."""

    name: str
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        return math.prod(self.shape)


@dataclass(frozen=True, eq=False)
class Program:
    """A straight-line computation: ``nodes`` in evaluation order, ``results`` the elements of each output.

    ``results[k]`` holds the nodes of output ``k`` in C order, so ``len(results[k]) == outputs[k].size``.
    """

    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]
    nodes: tuple[Node, ...]
    results: tuple[tuple[Node, ...], ...]
    name: str = field(default="kernel")

    @property
    def op_counts(self) -> dict[str, int]:
        """Scalar operations per state, by class; a sine and cosine of one angle count as one ``sincos``."""
        counts = Counter(kind for node in self.nodes for kind in node.op.counts)
        angles = counts.pop("sin", 0) + counts.pop("cos", 0) - len(self.sine_cosine_pairs) // 2
        if angles:
            counts["sincos"] = angles
        return dict(sorted(counts.items()))

    def with_divided_output(self, arrays: tuple[Array, ...]) -> Program:
        """The only output as several, one after the other."""
        (flat,) = self.results
        ends = list(accumulate((array.size for array in arrays), initial=0))
        return replace(self, outputs=arrays, results=tuple(flat[start:end] for start, end in pairwise(ends)))

    @property
    def sparsity(self) -> tuple[np.ndarray, ...]:
        """For each output, False where it is zero whatever the inputs are."""
        return tuple(
            np.array([not is_zero(node) for node in nodes], bool).reshape(array.shape)
            for array, nodes in zip(self.outputs, self.results, strict=True)
        )

    @property
    def unread(self) -> tuple[np.ndarray, ...]:
        """For each input, the elements (flat indices) that nothing is computed from."""
        read = [np.zeros(array.size, bool) for array in self.inputs]
        for node in self.nodes:
            if node.op is ops.INPUT:
                read[node.value[0]][node.value[1]] = True
        return tuple(np.flatnonzero(~one) for one in read)

    @property
    def size(self) -> int:
        """Nodes that are evaluated per state: what its cost grows with."""
        return len(self.nodes)

    @property
    def nodes_by_section(self) -> Iterator[tuple[str, Node, int]]:
        """Section and number of evaluations of every node."""
        return ((node.section, node, 1) for node in self.nodes)

    @property
    def sine_cosine_pairs(self) -> dict[Node, Node]:
        """For each sine the cosine of the same angle and the other way round, where the program has both."""
        sines = {node.args[0]: node for node in self.nodes if node.op is ops.SIN}
        both = [(sines[node.args[0]], node) for node in self.nodes if node.op is ops.COS and node.args[0] in sines]
        return dict(both) | {cosine: sine for sine, cosine in both}


def is_zero(node: Node) -> bool:
    return node.op is ops.CONST and node.value == 0.0


def reachable(results: Iterable[Iterable[Node]]) -> tuple[Node, ...]:
    """All nodes that ``results`` depend on, in order of their creation (operands come first)."""
    seen: set[Node] = set()
    stack = [node for group in results for node in group]
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            stack.extend(node.args)
    return tuple(sorted(seen, key=lambda node: node.index))


def leaves_before_use(order: dict[Node, None], results: tuple[tuple[Node, ...], ...]) -> tuple[Node, ...]:
    """``order`` with constants and inputs added where they are first needed."""
    nodes: dict[Node, None] = {}
    for node in order:
        for arg in node.args:
            nodes.setdefault(arg)
        nodes[node] = None
    for group in results:
        for node in group:
            nodes.setdefault(node)
    return tuple(nodes)
