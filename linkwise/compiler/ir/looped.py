"""Programs with counted loops: bodies that are ordinary programs, run for one link after the other.

An iteration has a body and some positions (``bases``).  What the body reads and writes lies at fixed offsets from them:
elements of the inputs and outputs, numbers of a table, and cells, the memory that iterations hand values on in.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from .builder import Builder
from .program import Array, Node, Program, is_zero, reachable

INPUT, OUTPUT, CELL, NUMBER = "input", "output", "cell", "number"


class Place(NamedTuple):
    """Element ``offset`` past the position number ``base`` of an iteration (None: past the beginning).

    space   INPUT or OUTPUT, with ``array`` which of them; CELL; NUMBER
    """

    space: str
    array: int
    base: int | None
    offset: int


@dataclass(frozen=True, eq=False)
class Body:
    """What an iteration does: ``program`` has one input, the numbers at ``reads``, and one output, those at ``writes``.
    All is read before anything is written."""

    program: Program
    reads: tuple[Place, ...]
    writes: tuple[Place, ...]


@dataclass(frozen=True, eq=False)
class Loop:
    """Iterations in turn.

    which   (iterations,): the body of each
    bases   (iterations, positions)
    """

    label: str
    bodies: tuple[Body, ...]
    which: np.ndarray
    bases: np.ndarray

    @property
    def repeats(self) -> np.ndarray:
        """How often each body runs."""
        return np.bincount(self.which, minlength=len(self.bodies))


@dataclass(frozen=True, eq=False)
class LoopedProgram:
    """Loops that run one after the other.

    cells     how many there are; those that are read have been written before
    numbers   the table
    """

    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]
    loops: tuple[Loop, ...]
    cells: int
    numbers: np.ndarray
    name: str = "kernel"

    @property
    def op_counts(self) -> dict[str, int]:
        """Scalar operations per state, by class."""
        counts: Counter[str] = Counter()
        for body, times in self.bodies:
            counts.update({kind: n * times for kind, n in body.program.op_counts.items()})
        return dict(sorted(counts.items()))

    @property
    def bodies(self) -> Iterator[tuple[Body, int]]:
        """All bodies, and how often each runs."""
        for loop in self.loops:
            yield from zip(loop.bodies, loop.repeats.tolist(), strict=True)

    @property
    def sparsity(self) -> tuple[np.ndarray, ...]:
        """For each output, False where it is zero whatever the inputs are."""
        patterns = [np.ones(array.size, bool) for array in self.outputs]
        for loop in self.loops:
            for k, body in enumerate(loop.bodies):
                for place, node in zip(body.writes, body.program.results[0], strict=True):
                    if place.space == OUTPUT and is_zero(node):
                        bases = 0 if place.base is None else loop.bases[loop.which == k, place.base]
                        patterns[place.array][place.offset + bases] = False
        return tuple(x.reshape(array.shape) for x, array in zip(patterns, self.outputs, strict=True))

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

        loops = (
            replace(
                loop,
                bodies=tuple(replace(body, writes=tuple(map(divided, body.writes))) for body in loop.bodies),
            )
            for loop in self.loops
        )
        return replace(self, outputs=arrays, loops=tuple(loops))

    def with_bodies(self, change: Callable[[Program], Program]) -> LoopedProgram:
        """The same with ``change(program)`` of every body."""
        loops = (
            replace(loop, bodies=tuple(replace(body, program=change(body.program)) for body in loop.bodies))
            for loop in self.loops
        )
        return replace(self, loops=tuple(loops))

    @property
    def unrolled(self) -> Program:
        """The straight-line program that computes the same."""
        builder = Builder()
        cells: dict[int, Node] = {}
        results: list[dict[int, Node]] = [{} for _ in self.outputs]
        for loop in self.loops:
            for which, bases in zip(loop.which.tolist(), loop.bases.tolist(), strict=True):
                body = loop.bodies[which]

                def at(place: Place, bases: list[int] = bases) -> int:
                    return place.offset + (0 if place.base is None else bases[place.base])

                def read(_: int, element: int, body: Body = body, at: Callable[[Place], int] = at) -> Node:
                    place = body.reads[element]
                    if place.space == CELL:
                        return cells[at(place)]
                    if place.space == NUMBER:
                        return builder.const(self.numbers[at(place)])
                    return builder.input(place.array, at(place))

                new = builder.copy(body.program, read)
                for place, node in zip(body.writes, body.program.results[0], strict=True):
                    (cells if place.space == CELL else results[place.array])[at(place)] = new[node]
        ordered = tuple(
            tuple(found[k] for k in range(array.size)) for found, array in zip(results, self.outputs, strict=True)
        )
        return Program(self.inputs, self.outputs, reachable(ordered), ordered, self.name)


AnyProgram = Program | LoopedProgram
