"""Programs with counted loops: bodies that are ordinary programs, run for one link after the other.

An iteration has a body and some positions (``bases``).  What the body reads and writes lies at fixed offsets from them:
elements of the inputs and outputs, numbers of a table, and cells, the memory that iterations hand values on in.

Where results are matrices, loops are nested: an iteration goes along rows after its body, from link to link inwards,
and what the bodies of rows write lies past a position of the row and one of the iteration.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from .builder import Builder
from .program import Array, Node, Program, is_zero, reachable

INPUT, OUTPUT, CELL, NUMBER = "input", "output", "cell", "number"


class Place(NamedTuple):
    """Element ``offset`` past the position number ``base`` of an iteration (None: past the beginning).

    space   INPUT or OUTPUT, with ``array`` which of them; CELL; NUMBER
    outer   for a row, the position of the iteration around it that is added too
    """

    space: str
    array: int
    base: int | None
    offset: int
    outer: int | None = None

    def at(self, bases: Any, around: Any = ()) -> Any:
        """Which element it is, from the positions of an iteration, and of the one around it: numbers, or arrays with
        one for each of several iterations."""
        position = self.offset if self.base is None else self.offset + bases[self.base]
        return position if self.outer is None else position + around[self.outer]


@dataclass(frozen=True, eq=False)
class Body:
    """What an iteration does: ``program`` has one input, the numbers at ``reads``, and one output, those at ``writes``.
    All is read before anything is written."""

    program: Program
    reads: tuple[Place, ...]
    writes: tuple[Place, ...]


def body_between(results: Sequence[Node], writes: Sequence[Place], leaves: Mapping[Node, Place], name: str) -> Body:
    """What computes ``results`` of another program from what is at the places of ``leaves``."""
    seen, stack = set[Node](), list(results)
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            stack.extend(() if node in leaves else node.args)
    builder, reads = Builder(), dict[Place, int]()
    new: dict[Node, Node] = {}
    for node in sorted(seen, key=lambda node: node.index):  # operands first
        if node in leaves:
            new[node] = builder.input(0, reads.setdefault(leaves[node], len(reads)))
        else:
            new[node] = builder.rebuild(node, tuple(new[arg] for arg in node.args))
    found = (tuple(new[node] for node in results),)
    arrays = (Array("reads", (len(reads),)),), (Array("writes", (len(writes),)),)
    return Body(Program(*arrays, reachable(found), found, name), tuple(reads), tuple(writes))


@dataclass(frozen=True, eq=False)
class Loop:
    """Iterations in turn.

    which   (iterations,): the body of each
    bases   (iterations, positions)
    inner   what an iteration does after its body
    """

    label: str
    bodies: tuple[Body, ...]
    which: np.ndarray
    bases: np.ndarray
    inner: Ways | None = None

    @property
    def repeats(self) -> np.ndarray:
        """How often each body runs."""
        return np.bincount(self.which, minlength=len(self.bodies))

    @property
    def all_bodies(self) -> Iterator[tuple[Body, int]]:
        """Its bodies and those of rows, and how often each runs."""
        yield from zip(self.bodies, self.repeats.tolist(), strict=True)
        if self.inner is not None:
            yield from zip(self.inner.rows.bodies, self.inner.repeats.tolist(), strict=True)

    @property
    def levels(self) -> tuple[Loop, ...]:
        """Itself, and the rows that its iterations go along."""
        return (self,) if self.inner is None else (self, self.inner.rows)

    def with_bodies(self, change: Callable[[Body], Body]) -> Loop:
        """The same with every body changed."""
        inner = self.inner and replace(self.inner, rows=self.inner.rows.with_bodies(change))
        return replace(self, bodies=tuple(map(change, self.bodies)), inner=inner)

    def elements(self, space: str, read: bool = False) -> Iterator[tuple[Body, int, Place, np.ndarray]]:
        """Of the bodies that run, those results that go to a space: body, number of the result, place and elements; or
        what they ``read`` from there."""
        for k, body in enumerate(self.bodies):
            bases = self.bases[self.which == k].T
            for number, place in enumerate(body.reads if read else body.writes):
                if place.space == space and bases.size:
                    yield body, number, place, np.atleast_1d(place.at(bases))
        if self.inner is None:
            return
        rows = self.inner.rows
        around, along = (np.concatenate(parts) for parts in zip(*self.inner.steps, strict=True))
        for k, body in enumerate(rows.bodies):
            chosen = rows.which[along] == k
            bases, outer = rows.bases[along[chosen]].T, self.bases[around[chosen]].T
            for number, place in enumerate(body.reads if read else body.writes):
                if place.space == space and bases.size:
                    yield body, number, place, np.atleast_1d(place.at(bases, outer))


@dataclass(frozen=True, eq=False)
class Ways:
    """Rows that the iterations of a loop go along, each its own way.

    rows        bodies and positions, as those of iterations
    first       (iterations,): the row at which each begins; -1: at none
    following   (rows,): the row that comes after each; -1: none
    """

    rows: Loop
    first: np.ndarray
    following: np.ndarray

    @property
    def steps(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Step by step those iterations that go on, and the rows that they have come to."""
        iterations = np.flatnonzero(self.first >= 0)
        rows = self.first[iterations]
        while len(rows):
            yield iterations, rows
            rows = self.following[rows]
            iterations, rows = iterations[rows >= 0], rows[rows >= 0]

    def way(self, iteration: int) -> Iterator[int]:
        """The rows of one iteration."""
        row = int(self.first[iteration])
        while row >= 0:
            yield row
            row = int(self.following[row])

    @property
    def repeats(self) -> np.ndarray:
        """How often each body of rows runs."""
        counts = np.zeros(len(self.rows.bodies), dtype=int)
        for _, rows in self.steps:
            counts += np.bincount(self.rows.which[rows], minlength=len(counts))
        return counts


@dataclass(frozen=True, eq=False)
class LoopedProgram:
    """Loops that run one after the other.

    cells     how many there are; those that are read have been written before
    numbers   the table
    sparse    results are zero where no loop writes; else all are written
    results   of each output, the cells that its elements are in at the end, -1: zero; None: loops write outputs
    constants_in_code   of the mechanism, as in straight-line code; else all numbers that differ are in tables
    """

    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]
    loops: tuple[Loop, ...]
    cells: int
    numbers: np.ndarray
    name: str = "kernel"
    sparse: bool = False
    results: tuple[np.ndarray, ...] | None = None
    constants_in_code: bool = False

    @property
    def op_counts(self) -> dict[str, int]:
        """Scalar operations per state, by class."""
        counts: Counter[str] = Counter()
        for body, times in self.bodies:
            counts.update({kind: n * times for kind, n in body.program.op_counts.items()})
        return dict(sorted(counts.items()))

    @property
    def reads_results(self) -> bool:
        """Whether loops go on from what others have written as results."""
        return any(place.space == OUTPUT for body, _ in self.bodies for place in body.reads)

    @property
    def is_nested(self) -> bool:
        """Whether iterations of a loop go along rows."""
        return any(loop.inner is not None for loop in self.loops)

    @property
    def bodies(self) -> Iterator[tuple[Body, int]]:
        """All bodies, and how often each runs."""
        for loop in self.loops:
            yield from loop.all_bodies

    @property
    def sparsity(self) -> tuple[np.ndarray, ...]:
        """For each output, False where it is zero whatever the inputs are."""
        if self.results is not None:
            filled = np.zeros(self.cells + 1, bool)  # the last stands for zeros
            for loop in self.loops:
                for body, number, _, elements in loop.elements(CELL):
                    filled[elements] = not is_zero(body.program.results[0][number])
            both = zip(self.results, self.outputs, strict=True)
            return tuple(filled[cells].reshape(array.shape) for cells, array in both)
        patterns = [np.full(array.size, not self.sparse) for array in self.outputs]
        for loop in self.loops:
            for body, number, place, elements in loop.elements(OUTPUT):
                patterns[place.array][elements] = not is_zero(body.program.results[0][number])
        return tuple(x.reshape(array.shape) for x, array in zip(patterns, self.outputs, strict=True))

    @property
    def unread(self) -> tuple[np.ndarray, ...]:
        """For each input, the elements (flat indices) that nothing is computed from."""
        read = [np.zeros(array.size, bool) for array in self.inputs]
        for loop in self.loops:
            for _, _, place, elements in loop.elements(INPUT, read=True):
                read[place.array][elements] = True
        return tuple(np.flatnonzero(~one) for one in read)

    @property
    def size(self) -> int:
        """Nodes that are evaluated per state: what its cost grows with."""
        return sum(body.program.size * times for body, times in self.bodies)

    @property
    def nodes_by_section(self) -> Iterator[tuple[str, Node, int]]:
        """Section and number of evaluations of every node."""
        for body, times in self.bodies:
            for node in body.program.nodes:
                yield node.section, node, times

    def with_divided_output(self, arrays: tuple[Array, ...]) -> LoopedProgram:
        """The only output as several, one after the other, each with elements of all iterations: positions are counted
        from where it begins."""
        starts = list(accumulate((array.size for array in arrays), initial=0))

        def divided(place: Place) -> Place:
            if place.space != OUTPUT:
                return place
            which = bisect_right(starts, place.offset) - 1
            return place._replace(array=which, offset=place.offset - starts[which])

        def changed(body: Body) -> Body:
            return replace(body, writes=tuple(map(divided, body.writes)))

        found = replace(self, outputs=arrays, loops=tuple(loop.with_bodies(changed) for loop in self.loops))
        if self.results is None:
            return found
        return replace(found, results=tuple(np.split(self.results[0], starts[1:-1])))

    def with_bodies(self, change: Callable[[Program], Program]) -> LoopedProgram:
        """The same with ``change(program)`` of every body."""

        def changed(body: Body) -> Body:
            return replace(body, program=change(body.program))

        return replace(self, loops=tuple(loop.with_bodies(changed) for loop in self.loops))

    @property
    def iterations(self) -> Iterator[tuple[Body, list[int], list[int]]]:
        """All that runs, one after the other: body, positions, and positions of the iteration around it."""
        for loop in self.loops:
            for t, (which, bases) in enumerate(zip(loop.which.tolist(), loop.bases.tolist(), strict=True)):
                yield loop.bodies[which], bases, []
                if loop.inner is not None:
                    rows = loop.inner.rows
                    for row in loop.inner.way(t):
                        yield rows.bodies[rows.which[row]], rows.bases[row].tolist(), bases

    @property
    def unrolled(self) -> Program:
        """The straight-line program that computes the same."""
        builder = Builder()
        cells: dict[int, Node] = {}
        results: list[dict[int, Node]] = [{} for _ in self.outputs]
        for body, bases, around in self.iterations:

            def read(
                _: int, element: int, body: Body = body, bases: list[int] = bases, around: list[int] = around
            ) -> Node:
                place = body.reads[element]
                at = place.at(bases, around)
                if place.space == CELL:
                    return cells[at]
                if place.space == NUMBER:
                    return builder.const(self.numbers[at])
                if place.space == OUTPUT:
                    found = results[place.array].get(at)
                    return builder.const(0.0) if found is None else found
                return builder.input(place.array, at)

            new = builder.copy(body.program, read)
            for place, node in zip(body.writes, body.program.results[0], strict=True):
                (cells if place.space == CELL else results[place.array])[place.at(bases, around)] = new[node]
        if self.results is not None:
            zero = builder.const(0.0)
            results = [{k: cells.get(c, zero) for k, c in enumerate(places.tolist())} for places in self.results]
        if self.sparse:
            for found, array in zip(results, self.outputs, strict=True):
                found.update((k, builder.const(0.0)) for k in set(range(array.size)) - set(found))
        ordered = tuple(
            tuple(found[k] for k in range(array.size)) for found, array in zip(results, self.outputs, strict=True)
        )
        return Program(self.inputs, self.outputs, reachable(ordered), ordered, self.name)


AnyProgram = Program | LoopedProgram
