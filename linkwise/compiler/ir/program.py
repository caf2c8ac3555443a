"""Nodes, loops and programs: the immutable data that the compiler works on.

Straight-line code is a graph of scalar operations between named arrays.  Operations that run many times on different
operands are the body of a ``For``: links of the same class, columns and rows of matrices, lists, stages of a step.  An
iteration has a body and some positions (``bases``).  Operands and results of the body lie at fixed offsets from these
positions: elements of the inputs and outputs, numbers of a table, and cells.  Cells are memory that carries values from
one iteration to another.  A body is itself straight-line code.

A program may also run over time (``passes/scan.py``): repeatedly, with axes of its arrays counting the runs and values
carried from outputs to inputs.
"""

from __future__ import annotations

import hashlib
import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np

from . import ops

INPUT, OUTPUT, CELL, NUMBER = "input", "output", "cell", "number"  # where operands of bodies lie
RECORDS, REPEATS = "records", "repeats"  # axes of time: recorded states, and runs between two records


class Node:
    """One scalar value.  Nodes are interned by their builder: equal values are the same object.

    ``value`` is the number of a CONST, ``(array, element)`` of an INPUT, otherwise None. ``section`` names the sweep
    and link that first computed the value.
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
    """Name and core shape of one input or output array; ``axes`` of time precede the core."""

    name: str
    shape: tuple[int, ...]
    axes: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def __hash__(self) -> int:
        return hash(self.name)  # arrays are dictionary keys in every call


class Place(NamedTuple):
    """Element ``offset`` past the position number ``base`` of an iteration (None: past the beginning).

    space   INPUT or OUTPUT with the number ``array``; CELL; NUMBER
    outer   in a nested loop, a position of the surrounding iteration to be added; None: none
    """

    space: str
    array: int
    base: int | None
    offset: int
    outer: int | None = None

    def at(self, bases: Any, around: Any = ()) -> Any:
        """The element's number for positions of an iteration and of the surrounding one. Positions may be arrays over
        several iterations."""
        position = self.offset if self.base is None else self.offset + bases[self.base]
        return position if self.outer is None else position + around[self.outer]


@dataclass(frozen=True, eq=False)
class Body:
    """Straight-line code of one iteration: its single input gathers the numbers at ``reads``, its single output is
    stored at ``writes``. All reads precede all writes."""

    program: Program
    reads: tuple[Place, ...]
    writes: tuple[Place, ...]


@dataclass(frozen=True, eq=False)
class For:
    """A loop.  Iterations run in order; a nested loop runs the iterations that belong to the surrounding one.

    bodies      one per class of iterations
    which       (iterations,): the body of each
    bases       (iterations, positions)
    inner       the loop that runs inside each iteration, after its body
    first       of a nested loop, (surrounding iterations,): the first inner iteration; -1: none
    following   of a nested loop, (iterations,): the next inner iteration; -1: end.  Trips may share their ends
    """

    label: str
    bodies: tuple[Body, ...]
    which: np.ndarray
    bases: np.ndarray
    inner: For | None = None
    first: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int32))
    following: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int32))

    @property
    def repeats(self) -> np.ndarray:
        """Number of runs of each body."""
        counts = np.zeros(len(self.bodies), dtype=int)
        rows = (rows for _, rows in self.steps) if len(self.first) else (slice(None),)
        for row in rows:
            counts += np.bincount(self.which[row], minlength=len(counts))
        return counts

    @property
    def all_bodies(self) -> Iterator[tuple[Body, int]]:
        """Bodies of all levels with their number of runs."""
        for level in self.levels:
            yield from zip(level.bodies, level.repeats.tolist(), strict=True)

    @property
    def levels(self) -> tuple[For, ...]:
        """The loop and, if present, the one nested in it."""
        return (self,) if self.inner is None else (self, *self.inner.levels)

    def with_bodies(self, change: Callable[[Body], Body]) -> For:
        """The loop with every body changed."""
        inner = self.inner and self.inner.with_bodies(change)
        return replace(self, bodies=tuple(map(change, self.bodies)), inner=inner)

    @property
    def steps(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Of a nested loop, for each step: the surrounding iterations that still run, and their inner iterations."""
        around = np.flatnonzero(self.first >= 0)
        rows = self.first[around]
        while len(rows):
            yield around, rows
            rows = self.following[rows]
            around, rows = around[rows >= 0], rows[rows >= 0]

    def trip(self, around: int) -> Iterator[int]:
        """Inner iterations of one surrounding iteration."""
        row = int(self.first[around])
        while row >= 0:
            yield row
            row = int(self.following[row])

    def elements(self, space: str, read: bool = False) -> Iterator[tuple[Body, int, Place, np.ndarray]]:
        """Writes of all bodies to a space: body, number of the result, place and elements. With ``read``, reads from it
        instead."""
        return ((body, number, place, elements) for body, number, place, elements, _ in self.accesses(space, read))

    def accesses(self, space: str, read: bool) -> Iterator[tuple[Body, int, Place, np.ndarray, np.ndarray]]:
        """``elements`` with the time at which each body runs: increasing integers below ``duration``."""
        each = self.duration // max(len(self.which), 1)
        for level in self.levels:
            outer, along = np.zeros(len(level.which), int), np.arange(len(level.which))
            when = along * each
            if level is not self:
                outer, along = (np.concatenate(parts) for parts in zip(*level.steps, strict=True))
                counts = [len(rows) for _, rows in level.steps]
                when = outer * each + np.repeat(np.arange(1, len(counts) + 1), counts)
            for k, body in enumerate(level.bodies):
                chosen = level.which[along] == k
                bases, around = level.bases[along[chosen]].T, self.bases[outer[chosen]].T
                for number, place in enumerate(body.reads if read else body.writes):
                    if place.space == space and bases.size:
                        yield body, number, place, np.atleast_1d(place.at(bases, around)), when[chosen]

    @property
    def duration(self) -> int:
        """Number of iterations; nested trips all count with the longest length."""
        longest = 0 if self.inner is None else sum(1 for _ in self.inner.steps)
        return len(self.which) * (1 + longest)


class Signature(NamedTuple):
    """Interface of a program: its arrays."""

    name: str
    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]


@dataclass(frozen=True, eq=False)
class Program:
    """A computation: straight-line code, or loops that run one after the other.

    nodes     of straight-line code, in evaluation order
    results   of straight-line code, the nodes of each output's elements in C order; with loops, the cells that hold
              these elements at the end (-1: zero), or empty if loops write the outputs directly
    loops     empty for straight-line code
    cells     number of cells; each is written before it is read
    numbers   the table
    sparse    elements that no loop writes are zero; otherwise loops write all elements
    constants_in_code   constants of the mechanism are part of the code, as in straight-line code; otherwise in tables
    carried   (output, input), ..., by number: the program runs over time.  For each record it runs REPEATS times, and
              each of these outputs replaces its input before the next run.  Inputs with axes have an element for every
              run, outputs with axes one for every record; outputs without axes hold the final value
    registers   number of vector registers per value: several hide the latency of short programs
    """

    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]
    nodes: tuple[Node, ...] = ()
    results: tuple[Any, ...] = ()
    name: str = field(default="kernel")
    loops: tuple[For, ...] = ()
    cells: int = 0
    numbers: np.ndarray = field(default_factory=lambda: np.zeros(0))
    sparse: bool = False
    constants_in_code: bool = True
    carried: tuple[tuple[int, int], ...] = ()
    registers: int = 1
    recipe: ClassVar[str | None] = None  # digest of the recipe, if the program has one

    @property
    def blocks(self) -> Iterator[tuple[Program, int]]:
        """All straight-line code with its number of runs."""
        if not self.loops:
            yield self, 1
        for body, times in self.bodies:
            yield body.program, times

    @property
    def bodies(self) -> Iterator[tuple[Body, int]]:
        """All bodies of loops with their number of runs."""
        for loop in self.loops:
            yield from loop.all_bodies

    def with_blocks(self, change: Callable[[Program], Program]) -> Program:
        """The program with ``change(code)`` applied to all straight-line code."""

        def changed(body: Body) -> Body:
            return replace(body, program=change(body.program))

        if not self.loops:
            code = change(self)
            return replace(self, nodes=code.nodes, results=code.results)
        return replace(self, loops=tuple(loop.with_bodies(changed) for loop in self.loops))

    @property
    def op_counts(self) -> dict[str, int]:
        """Scalar operations per state, by class; a sine and cosine of one angle count as one ``sincos``."""
        counts: Counter[str] = Counter()
        for code, times in self.blocks:
            block_counts = Counter(kind for node in code.nodes for kind in node.op.counts)
            angles = block_counts.pop("sin", 0) + block_counts.pop("cos", 0) - len(code.sine_cosine_pairs) // 2
            counts.update({kind: n * times for kind, n in (block_counts | {"sincos": angles}).items() if n})
        return dict(sorted(counts.items()))

    @property
    def size(self) -> int:
        """Number of evaluated nodes per state, a measure of cost."""
        return sum(len(code.nodes) * times for code, times in self.blocks)

    @property
    def signature(self) -> Signature:
        """Interface of the program; functions of arrays may keep it without keeping the program."""
        return Signature(self.name, self.inputs, self.outputs)

    @property
    def has_loops(self) -> bool:
        """Whether the program consists of loops."""
        return bool(self.loops)

    @cached_property
    def content(self) -> str:
        """A digest of everything that determines code besides arrays: operations, results and structure of loops.
        Tables and positions of loops are data and not included."""
        lines = []
        if self.loops:
            sizes = [level.which.size for loop in self.loops for level in loop.levels]
            kept = (self.cells, self.sparse, len(self.results))
            lines.append(repr((kept, [len(loop.levels) for loop in self.loops], sizes)))
            if self.constants_in_code:  # liveness of cells when straight-line code runs
                lines += [loop.bases.tobytes().hex() for loop in self.loops]
            for body, _ in self.bodies:
                lines += [repr((body.reads, body.writes)), *_operations(body.program)]
        else:
            lines += _operations(self)
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()

    @property
    def nodes_by_section(self) -> Iterator[tuple[str, Node, int]]:
        """Section and number of evaluations of every node."""
        return ((node.section, node, times) for code, times in self.blocks for node in code.nodes)

    @property
    def timed_input(self) -> tuple[int, int]:
        """Of a program over time, the number of an input with an element for every run, and its axis of records,
        counted from the end. The axis of repeats follows."""
        number = next(k for k, array in enumerate(self.inputs) if array.axes)
        return number, -2 - len(self.inputs[number].shape)

    def times(self, shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
        """Numbers of records and repeats for inputs of these shapes; () if the program runs once."""
        if not self.carried:
            return ()
        number, axis = self.timed_input
        return shapes[number][axis], shapes[number][axis + 1]

    @property
    def uses_result_cells(self) -> bool:
        """Whether cells hold the results at the end."""
        return bool(self.loops and self.results)

    @property
    def is_nested(self) -> bool:
        """Whether a loop contains an inner loop."""
        return any(loop.inner is not None for loop in self.loops)

    @property
    def has_fixed_places(self) -> bool:
        """Whether all iterations of a body read and write the same places, table numbers excepted."""
        places = (place for body, _ in self.bodies for place in (*body.reads, *body.writes))
        return all(place.base is None or place.space == NUMBER for place in places)

    @property
    def reads_results(self) -> bool:
        """Whether loops read results that other loops have written."""
        return any(place.space == OUTPUT for body, _ in self.bodies for place in body.reads)

    def with_divided_output(self, arrays: tuple[Array, ...]) -> Program:
        """The program with its single output split into several consecutive ones. With loops, positions are relative to
        the start of each new output."""
        starts = list(accumulate((array.size for array in arrays), initial=0))

        def divided(place: Place) -> Place:
            if place.space != OUTPUT:
                return place
            which = bisect_right(starts, place.offset) - 1
            return place._replace(array=which, offset=place.offset - starts[which])

        def changed(body: Body) -> Body:
            return replace(body, writes=tuple(map(divided, body.writes)))

        results = tuple(flat[start:end] for flat in self.results for start, end in pairwise(starts))
        loops = tuple(loop.with_bodies(changed) for loop in self.loops)
        return replace(self, outputs=arrays, results=results, loops=loops)

    @property
    def sparsity(self) -> tuple[np.ndarray, ...]:
        """For each output a boolean pattern: False for elements that are zero for all inputs."""
        if not self.loops:
            patterns = [np.array([not is_zero(node) for node in nodes], bool) for nodes in self.results]
        elif self.results:
            filled = np.zeros(self.cells + 1, bool)  # the last element represents zero
            self._mark_filled(CELL, lambda _: filled)
            patterns = [filled[cells] for cells in self.results]
        else:
            patterns = [np.full(array.size, not self.sparse) for array in self.outputs]
            self._mark_filled(OUTPUT, lambda place: patterns[place.array])
        return tuple(x.reshape(array.shape) for x, array in zip(patterns, self.outputs, strict=True))

    def _mark_filled(self, space: str, pattern: Callable[[Place], np.ndarray]) -> None:
        """Mark the elements of a place that loops write; returns whether the value is nonzero."""
        for loop in self.loops:
            for body, number, place, elements in loop.elements(space):
                pattern(place)[elements] = not is_zero(body.program.results[0][number])

    @cached_property
    def unread(self) -> tuple[np.ndarray, ...]:
        """For each input, the elements (flat indices) that no operation uses."""
        read = [np.zeros(array.size, bool) for array in self.inputs]
        for node in self.nodes:
            if node.op is ops.INPUT:
                read[node.value[0]][node.value[1]] = True
        for loop in self.loops:
            for _, _, place, elements in loop.elements(INPUT, read=True):
                read[place.array][elements] = True
        return tuple(np.flatnonzero(~is_read) for is_read in read)

    @property
    def iterations(self) -> Iterator[tuple[Body, list[int], list[int]]]:
        """All iterations in the order of execution: body, positions, and positions of the surrounding iteration."""
        for loop in self.loops:
            for t, (which, bases) in enumerate(zip(loop.which.tolist(), loop.bases.tolist(), strict=True)):
                yield loop.bodies[which], bases, []
                for inner in loop.levels[1:]:
                    for row in inner.trip(t):
                        yield inner.bodies[inner.which[row]], inner.bases[row].tolist(), bases

    @property
    def sine_cosine_pairs(self) -> dict[Node, Node]:
        """Maps each sine to the cosine of the same angle and vice versa, for angles of which straight-line code has
        both."""
        sines = {node.args[0]: node for node in self.nodes if node.op is ops.SIN}
        both = [(sines[node.args[0]], node) for node in self.nodes if node.op is ops.COS and node.args[0] in sines]
        return dict(both) | {cosine: sine for sine, cosine in both}


def _operations(program: Program) -> list[str]:
    """Operations and results of straight-line code, as text."""
    number = {node: i for i, node in enumerate(program.nodes)}
    lines = [
        f"{node.op.name} {node.value!r}" if not node.args else f"{node.op.name} {[number[arg] for arg in node.args]}"
        for node in program.nodes
    ]
    return lines + [repr([number[node] for node in group]) for group in program.results]


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
    """``order`` with constants and inputs inserted before their first use."""
    nodes: dict[Node, None] = {}
    for node in order:
        for arg in node.args:
            nodes.setdefault(arg)
        nodes[node] = None
    for group in results:
        for node in group:
            nodes.setdefault(node)
    return tuple(nodes)
