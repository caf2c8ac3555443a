"""Layout of the scratch area: the values of one group of states in the LLVM target."""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..ir import ops
from ..ir.program import CELL, INPUT, OUTPUT, Array, Body, For, Node, Place, Program
from .llvm_vector import VectorType

LONG_BODY = 2000  # minimum operations of a body that runs once for compiling it as straight-line code


# Functions of the host process that the emitted code may call; the loader binds them.
HOST_SYMBOLS = (
    "linkwise_libm_sin",
    "linkwise_libm_cos",
    "PyMem_RawMalloc",
    "PyMem_RawFree",
    "PyGILState_Ensure",
    "PyGILState_Release",
    "PyErr_NoMemory",
    *(["madvise"] if sys.platform == "linux" else []),
)


def identifier(name: str) -> str:
    return re.sub(r"\W", "_", name)


@dataclass
class LoopScratch:
    """The scratch area of a program with loops, in units of one vector: inputs, outputs, cells, constants, and spill
    slots of long straight-line code."""

    program: Program
    vector: VectorType
    spilled: int = 0

    @property
    def in_order(self) -> bool:
        """Whether loops write results in the order of their arrays; otherwise results are in cells."""
        return not self.program.uses_result_cells

    @cached_property
    def constants(self) -> dict[int, float]:
        """Constants after the cells: a zero, for zero results; and constants that straight-line code leaves
        in cells."""
        zero = {} if self.in_order else {self.cells + self.program.cells: 0.0}
        return zero | {
            slot: x for body in straight_bodies(self.program) for slot, x in Fixed(body, self).constants.items()
        }

    @property
    def places(self) -> list[np.ndarray]:
        """Places of the elements of each output."""
        results = self.program.results
        return [np.where(cells < 0, self.program.cells, cells) + self.cells for cells in results]

    @cached_property
    def input_offsets(self) -> list[int]:
        return _offsets(self.program.inputs, 0)[0]

    @cached_property
    def output_offsets(self) -> list[int]:
        return _offsets(self.program.outputs, sum(array.size for array in self.program.inputs))[0]

    @property
    def cells(self) -> int:
        results = self.program.outputs if self.in_order else ()
        return sum(array.size for array in (*self.program.inputs, *results))

    @property
    def bytes(self) -> int:
        return (self.first_spilled + self.spilled) * self.vector.bytes

    @property
    def first_spilled(self) -> int:
        return self.cells + self.program.cells + (not self.in_order)

    @property
    def varying(self) -> list[int]:
        """The first element of each output that is recomputed for every group of states."""
        program, varying = self.program, list[int]()
        if program.results:
            for cells in program.results:
                slots = (self.cells + cell for cell in cells.tolist() if cell >= 0)
                varying += [slot for slot in slots if slot not in self.constants][:1]
            return varying
        for number, offset in enumerate(self.output_offsets):
            written = (
                int(elements.min())
                for loop in program.loops
                for _, _, place, elements in loop.elements(OUTPUT)
                if place.array == number
            )
            varying += [offset + element for element in sorted(written)[:1]]
        return varying

    def cells_written_after(self, number: int) -> list[int]:
        """Cells that only loops after this one write, for every group of states; the first ones come last."""
        written = [np.zeros(self.program.cells, bool) for _ in range(2)]
        for position, loop in enumerate(self.program.loops):
            for _, _, _, elements in loop.elements(CELL):
                written[position > number][elements] = True
        cells = np.flatnonzero(~written[0] & written[1])[::-1].tolist()
        return [cell for cell in cells if self.cells + cell not in self.constants]

    @property
    def preparation(self) -> list[str]:
        """Instructions that write results common to all groups of states."""
        fill = ["  call void @fill(ptr %scratch)"] if self.constants else []
        return fill if self.program.reads_results else [*fill, *self.zeros]

    @property
    def zeros(self) -> list[str]:
        """Instructions that zero the elements that no loop writes."""
        if not self.program.sparse:
            return []
        size = sum(array.size for array in self.program.outputs) * self.vector.bytes
        return [
            f"  %zeros = getelementptr i8, ptr %scratch, i64 {self.output_offsets[0] * self.vector.bytes}",
            f"  call void @llvm.memset.p0.i64(ptr %zeros, i8 0, i64 {size}, i1 false)",
        ]


def straight_bodies(program: Program) -> list[Body]:
    """Long bodies that run once: straight-line code at fixed places."""
    return [loop.bodies[0] for loop in program.loops if is_straight(loop)]


def is_straight(loop: For) -> bool:
    if len(loop.which) != 1 or len(loop.bodies) != 1 or loop.inner is not None:
        return False
    (body,) = loop.bodies
    places = (*body.reads, *body.writes)
    is_fixed = all(place.base is None and place.space in (INPUT, CELL) for place in places)
    return is_fixed and body.program.size > LONG_BODY and not set(body.reads) & set(body.writes)


class Fixed:
    """Places in the scratch area for the values of a body that runs once. Spilled values use cells that only later
    loops write, then slots of their own."""

    def __init__(self, body: Body, scratch: LoopScratch, unused: Sequence[int] = ()):
        self.vector, self.input_names, self._scratch = scratch.vector, ("value",), scratch
        inputs = [node for node in body.program.nodes if node.op is ops.INPUT]
        self.slots = {node: self._slot(body.reads[node.value[1]]) for node in inputs}
        self.destinations: dict[Node, list[int]] = {}
        self.constants: dict[int, float] = {}
        for place, node in zip(body.writes, body.program.results[0], strict=True):
            if node.op is ops.CONST:
                self.constants[self._slot(place)] = node.value
            else:
                self.destinations.setdefault(node, []).append(self._slot(place))
        self._taken, self._free = 0, [scratch.cells + cell for cell in unused]

    def _slot(self, place: Place) -> int:
        start = self._scratch.cells if place.space == CELL else self._scratch.input_offsets[place.array]
        return start + place.offset

    def take(self) -> int:
        if self._free:
            return self._free.pop()
        self._taken += 1
        self._scratch.spilled = max(self._scratch.spilled, self._taken)
        return self._scratch.first_spilled + self._taken - 1

    def give_back(self, slot: int) -> None:
        self._free.append(slot)


class Scratch:
    """Places of values in the scratch area, in units of one vector: inputs, outputs, sines and cosines of inputs, and
    spill slots."""

    def __init__(self, program: Program, vector: VectorType, in_order: bool = False):
        """``in_order``: results are stored in the order of their arrays. Otherwise each value is stored once, and
        ``places`` maps elements of outputs to values."""
        self.vector, self.in_order = vector, in_order
        self.input_names = [identifier(array.name) for array in program.inputs]
        self.input_offsets, self.size = _offsets(program.inputs, 0)
        self.slots = {n: self.input_offsets[n.value[0]] + n.value[1] for n in program.nodes if n.op is ops.INPUT}
        self.angles: dict[Node, int] = {}  # input whose sine and cosine are computed first -> slot of the sine
        for node in program.nodes:
            if node.op in (ops.SIN, ops.COS) and node.args[0].op is ops.INPUT:
                sine = self.angles.setdefault(node.args[0], self.size + 2 * len(self.angles))
                self.slots[node] = sine + (node.op is ops.COS)
        self.size += 2 * len(self.angles)
        self.destinations: dict[Node, list[int]] = {}  # destination of each stored node, except constants
        self.constants: dict[int, float] = {}  # destinations of constants
        self.places: list[list[int]] = []  # of the elements of each output
        once: dict[Node, int] | None = None if in_order else {}
        for results in program.results:
            self.places.append([self._place(node, once) for node in results])
        if not self.destinations and not self.constants and any(len(elements) for elements in program.unread):
            self._copy_a_result(program)
        self._free: list[int] = []

    def _place(self, node: Node, once: dict[Node, int] | None) -> int:
        """The place of a result: the known place in ``once``, or a new one."""
        if once is not None and (node in once or node in self.slots):
            return self.slots[node] if node in self.slots else once[node]
        place, self.size = self.size, self.size + 1
        if node.op is ops.CONST:
            self.constants[place] = node.value
        else:
            self.destinations.setdefault(node, []).append(place)
        if once is not None:
            once[node] = place
        return place

    def _copy_a_result(self, program: Program) -> None:
        """If all results are inputs, copy one to a place of its own, which can be set to NaN."""
        for places, results in zip(self.places, program.results, strict=True):
            if places:
                places[0] = self._place(results[0], None)
                return

    @property
    def bytes(self) -> int:
        return self.size * self.vector.bytes

    @property
    def preparation(self) -> list[str]:
        """Instructions that write results common to all groups of states."""
        return ["  call void @fill(ptr %scratch)"] if self.constants else []

    @property
    def output_offsets(self) -> list[int]:
        """Start of each output if its elements are in order."""
        return [places[0] if places else 0 for places in self.places]

    @property
    def varying(self) -> list[int]:
        """Elements of outputs that are recomputed for every group of states."""
        return [place for places in self.destinations.values() for place in places]

    def take(self) -> int:
        """A free slot."""
        if self._free:
            return self._free.pop()
        self.size += 1
        return self.size - 1

    def give_back(self, slot: int) -> None:
        self._free.append(slot)


def _offsets(arrays: Sequence[Array], start: int) -> tuple[list[int], int]:
    ends = list(itertools.accumulate((array.size for array in arrays), initial=start))
    return ends[:-1], ends[-1]
