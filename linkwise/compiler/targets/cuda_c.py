"""Programs as CUDA C: one thread per state, each warp's 32 states on their own.

An array is read and written where it lies.  Where the elements of a state lie side by side (``rows``), a warp moves the
rows of its 32 states through a tile in shared memory, so that neighbouring threads touch neighbouring numbers of the
array; all other arrays are read and written directly at ``x[i * step + ...]``, with any strides, zero among them.
Threads beyond the last state do what that state's thread does.  A recurrence keeps what it feeds back in registers.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..ir import ops
from ..ir.looped import NUMBER, AnyProgram, Loop, LoopedProgram
from ..ir.program import Array
from ..ir.recurrence import RECORDS, REPEATS, Recurrence
from . import cuda_math, cuda_spills, cuda_tiles
from .c_expressions import RESERVED, Body, Real, identifier, parameters, real_of, summary
from .c_loops import LoopedBody
from .cuda_spills import WARP
from .protocol import Options

MOST_WARPS = 4  # in a block
SHARED_BYTES = 48 * 1024  # that a block has without asking for more
LINE_BYTES = 128  # of the cache: of shorter rows a warp finds in it what it has not asked for yet
ITEM_BYTES = {"float64": 8, "float32": 4}
MOST_OPERATIONS = 8192  # whose instructions, of 16 bytes, fit into the instruction cache of 128 kB


@dataclass(frozen=True)
class Layout:
    """How the arrays of a call lie in memory.

    batch   number of axes of the batch that are no single one
    rows    for inputs, then outputs: whether it goes through a tile; with several axes of the batch none does
    even    likewise: whether its elements, in C order, have the same distance from one to the next, below 2**32
    """

    batch: int
    rows: tuple[bool, ...]
    even: tuple[bool, ...]


def layout_for(
    program: AnyProgram,
    options: Options,
    batch: int = 1,
    in_rows: Sequence[bool] | None = None,
    even: Sequence[bool] | None = None,
    room: int = 0,
) -> Layout:
    """The layout of arrays of which ``in_rows`` says whether the elements of a state lie side by side, ``even`` whether
    they lie at equal distances.

    Results go through tiles, as many as there is ``room`` for in bytes of shared memory for a warp (0: a block's), as
    pieces of cache lines are slow to write; inputs after them, and only if their rows are long: on an H200 tiles for
    the inputs of six and seven joints cost a quarter of the rate, and doubled that of 38.
    """
    arrays = (*program.inputs, *program.outputs)
    size = ITEM_BYTES[options.dtype]
    left = (room or SHARED_BYTES) // (WARP * size)
    possible = in_rows or (True,) * len(arrays)
    rows = [False] * len(arrays)
    results = range(len(program.inputs), len(arrays))
    for k in (*results, *range(len(program.inputs))):
        pays = arrays[k].size > 1 if k in results else arrays[k].size * size >= LINE_BYTES
        rows[k] = batch == 1 and possible[k] and pays and cuda_tiles.pitch(arrays[k]) <= left
        left -= cuda_tiles.pitch(arrays[k]) if rows[k] else 0
    return Layout(batch, tuple(rows), tuple(even or (False,) * len(arrays)))


class Emitted(NamedTuple):
    """A kernel, and how it must be launched: threads in a block, and bytes of shared memory besides its own."""

    text: str
    threads: int
    shared_bytes: int


def emitted(
    program: AnyProgram,
    options: Options,
    layout: Layout,
    recurrence: Recurrence | None = None,
    near: bool = True,
) -> Emitted:
    """CUDA C text of ``extern "C" __global__ void NAME(n, sizes, arrays, strides)``; ``near``: values that registers
    have no room for wait in shared memory, else wherever the compiler leaves them."""
    kernel = _Kernel(program, options, layout, recurrence, near)
    return Emitted(kernel.text(), WARP * kernel.warps, kernel.waiting_bytes)


def bytes_beside_tiles(
    program: AnyProgram, options: Options, layout: Layout, recurrence: Recurrence | None = None
) -> int:
    """Shared memory of a block for values that wait, if arrays go through tiles."""
    return _Kernel(program, options, layout, recurrence, near=True, most_warps=cuda_spills.USUAL).waiting_bytes


def emit(
    program: AnyProgram, options: Options, layout: Layout | None = None, recurrence: Recurrence | None = None
) -> str:
    """The text alone."""
    return emitted(program, options, layout or layout_for(program, options), recurrence).text


def ordered(program: AnyProgram, options: Options) -> AnyProgram:
    """In an order of evaluation that suits the registers of a thread."""
    real = real_of(options)
    if isinstance(program, LoopedProgram):
        return program.with_bodies(lambda body: cuda_spills.ordered(body, real))
    return cuda_spills.ordered(program, real)


def has_values_that_wait(program: AnyProgram, options: Options) -> bool:
    """Whether registers have no room for more than a few values of the program."""
    if isinstance(program, LoopedProgram):
        long = (cuda_spills.are_needed(body.program, real_of(options)) for body, _ in program.bodies)
        return _has_fixed_places(program) and any(long)
    return cuda_spills.are_needed(program, real_of(options))


def _has_fixed_places(program: LoopedProgram) -> bool:
    """Whether all iterations of a body read and write the same places, but for numbers of the table."""
    places = [place for body, _ in program.bodies for place in (*body.reads, *body.writes)]
    return all(place.base is None or place.space == NUMBER for place in places)


def function_name(program: AnyProgram) -> str:
    """The name of the kernel in the emitted text."""
    return identifier(program.name, set(RESERVED))


def _tile_sizes(program: AnyProgram, layout: Layout) -> list[int]:
    arrays = (*program.inputs, *program.outputs)
    return [WARP * cuda_tiles.pitch(array) if rows else 0 for array, rows in zip(arrays, layout.rows, strict=True)]


def _warps(tiles: Sequence[int], options: Options) -> int:
    """Warps in a block: as many as there is shared memory for."""
    warps = MOST_WARPS
    while warps > 1 and warps * sum(tiles) * ITEM_BYTES[options.dtype] > SHARED_BYTES:
        warps //= 2
    return warps


@dataclass(frozen=True)
class _Operand:
    """An array of the kernel.  Names of what is not the program's begin with an underscore, as none of its do.

    name      of the pointer that the kernel is given; ``_name`` points to the elements of this thread's state
    axes      of a recurrence, by name
    tile      where its tile begins in the warp's, None if it has none
    even      whether it has one stride, not one for each axis
    in_pairs  elements are told by positions of two loops, not row by row
    """

    name: str
    array: Array
    axes: tuple[str, ...]
    tile: int | None
    is_input: bool
    even: bool
    in_pairs: bool = False

    def strides(self, batch: int) -> list[str]:
        """Names of its strides, in the order of the kernel's parameters: batch, axes, elements."""
        own = [f"_{self.name}_stride{k}" for k in range(len(self.array.shape))]
        own = [] if self.tile is not None else [f"_{self.name}_stride"][: len(own)] if self.even else own
        return [*(f"_{self.name}_step{k}" for k in range(batch)), *(f"_{self.name}_{axis}" for axis in self.axes), *own]

    def start(self, batch: int) -> str:
        """The place of the warp's first state, or of this thread's own if there is no tile."""
        axes = [f"_{axis} * _{self.name}_{axis}" for axis in self.axes]
        states = [f"_first * _{self.name}_step0"] if self.tile is not None else []
        states = states or [f"_i{k} * _{self.name}_step{k}" for k in range(batch)]
        return " + ".join([self.name, *states, *axes])

    def pointer(self, real: Real, batch: int) -> list[str]:
        """The declaration of the pointer to this thread's elements, and of their distance, of 32 bits whatever the
        compiler thinks: products then take one instruction."""
        place = (
            self.start(batch) if self.tile is None else f"_tile + {self.tile} + _lane * {cuda_tiles.pitch(self.array)}"
        )
        kind = f"const {real.name}" if self.is_input else real.name
        lines = [f"{kind} *const _{self.name} = {place};"]
        if self.even and self.tile is None and self.array.shape:
            each = f"_{self.name}_each"
            lines += [f'unsigned {each} = (unsigned)_{self.name}_stride; asm("" : "+r"({each}));']
        return lines

    def element(self, element: int, base: str = "") -> str:
        """The place of an element of this thread's state, or of one after the row that begins with element ``base``."""
        if self.tile is not None:
            return f"_{self.name}[{base} + {element}]" if base else f"_{self.name}[{element}]"
        start = f"_{self.name}" if self.is_input else f"_apart(_{self.name})"
        if self.even and self.array.shape:
            number = f"(unsigned long long)({base} + {element})" if base else f"{element}ull"
            return f"{start}[{number} * _{self.name}_each]"
        if base and self.in_pairs:
            after = [math.prod(self.array.shape[axis + 1 :]) for axis in range(len(self.array.shape))]
            number, sizes = f"({base} + {element})", zip(after, self.array.shape, strict=True)
            places = (f"{number} / {a} % {n} * _{self.name}_stride{k}" for k, (a, n) in enumerate(sizes))
            return f"{start}[{' + '.join(places)}]"
        index, rest = [], element
        if base:
            width = math.prod(self.array.shape[1:])
            index.append(f"({base} / {width}) * _{self.name}_stride0" if self.array.shape else "0")
        for axis in reversed(range(len(self.array.shape))):
            rest, k = divmod(rest, self.array.shape[axis])
            index += [f"{k} * _{self.name}_stride{axis}"] if k else []
        return f"{start}[{' + '.join(reversed(index)) or '0'}]"

    def move(self, kind: str, batch: int) -> str:
        """Between the array and its tile, all lanes together: "_stage" or "_deliver"."""
        tile = f"_tile + {self.tile}"
        return f"{kind}<{self.array.size}>({tile}, {self.start(batch)}, _{self.name}_step0, _lane, _rows);"


class _Kernel:
    """The parts of one kernel's text."""

    def __init__(
        self,
        program: AnyProgram,
        options: Options,
        layout: Layout,
        recurrence: Recurrence | None,
        near: bool,
        most_warps: int | None = None,
    ):
        self.program, self.recurrence, self.batch = program, recurrence, layout.batch
        self.real = real_of(options)
        sizes = _tile_sizes(program, layout)
        self.tile_size, self.warps = sum(sizes), _warps(sizes, options)
        starts = itertools.accumulate(sizes, initial=0)
        self._even = layout.even
        self._tiles = [at if size else None for at, size in zip(starts, sizes, strict=False)]
        self.operands: dict[str, _Operand] = {}
        self.waiting: cuda_spills.Waiting | None = None
        self.constants = cuda_math.Constants(self.real)
        waits = near and has_values_that_wait(program, options)
        self.functions = functions = cuda_math.functions(self.constants, waits)
        self.body: Body | LoopedBody
        if isinstance(program, LoopedProgram):
            looped = program, self.real, self._address, functions, self._named, "__device__ const"
            if waits:
                self.warps = 1  # so that shared memory is used up
                self.body = LoopedBody(*looped, "_cell({})".format, self._spilled)
                self.body.statements = self._with_cells(self.body.statements, program.cells)
            else:
                self.body = LoopedBody(*looped)
        elif waits:
            self.warps = 1  # so that shared memory is used up
            fed = {name for _, name in recurrence.feeds} if recurrence else set()
            kept = sum(array.size for array in program.inputs if array.name in fed)
            most_warps = most_warps or (cuda_spills.USUAL if self.tile_size else cuda_spills.BUDGETS[0].warps)
            self.waiting = cuda_spills.waiting_for(program, self.real, most_warps, kept)
            self.body = cuda_spills.SpilledBody(program, self.real, self._address, functions, self._named, self.waiting)
        else:
            self.body = Body(program, self.real, self._address, functions, self._named, eager=recurrence is None)
        named = self.operands.values()
        self.inputs = [operand for operand in named if operand.is_input and operand.array.size]
        self.outputs = [operand for operand in named if not operand.is_input and operand.array.size]

    @property
    def waiting_bytes(self) -> int:
        """Shared memory of a block for values that wait."""
        places = self.waiting.near if self.waiting else 0
        return self.warps * WARP * places * cuda_spills.ITEM_BYTES[self.real.name]

    def _spilled(self, loop: Loop, k: int, address: Callable[[str, int], str]) -> Body:
        """A body of a loop, whose values may wait; shared memory is that of the one with the most."""
        waiting = cuda_spills.Waiting(self.real, cuda_spills.usual())
        body = cuda_spills.SpilledBody(loop.bodies[k].program, self.real, address, self.functions, None, waiting)
        self.waiting = max(self.waiting or waiting, waiting, key=lambda one: one.count)
        return body

    def _with_cells(self, lines: Sequence[str], count: int) -> list[str]:
        """The text with places for cells: besides those of values that wait."""
        assert self.waiting is not None
        places = [self.waiting.keep() for _ in range(count)]
        return [re.sub(r"_cell\((\d+)\)", lambda found: places[int(found[1])], line) for line in lines]

    def _named(self, inputs: Sequence[str], outputs: Sequence[str]) -> None:
        """Hear of the names that arrays have in the text."""
        arrays = (*self.program.inputs, *self.program.outputs)
        for place, (name, array) in enumerate(zip((*inputs, *outputs), arrays, strict=True)):
            axes = self.recurrence.axes(array.name) if self.recurrence else ()
            tile, even = self._tiles[place], self._even[place]
            in_pairs = isinstance(self.program, LoopedProgram) and self.program.is_nested and place >= len(inputs)
            self.operands[name] = _Operand(name, array, axes, tile, place < len(inputs), even, in_pairs)

    def _address(self, name: str, element: int, base: str = "") -> str:
        fed = self._fed_back().get(name)
        if fed is None:
            return self.operands[name].element(element, base)
        if self.waiting and self.waiting.kept:
            place = cuda_spills.near(self._kept_from(fed) + element)
            return f"(&{place})[{WARP} * {base}]" if base else place
        return f"_now_{fed}[{base} + {element}]" if base else f"_now_{fed}[{element}]"

    def _fed_back(self) -> dict[str, str]:
        """Arrays that a recurrence keeps in registers, inputs and outputs, each with the name of the input."""
        names = {operand.array.name: name for name, operand in self.operands.items()}
        pairs = self.recurrence.feeds if self.recurrence else ()
        return {names[one]: names[fed] for output, fed in pairs for one in (output, fed)}

    def _kept_from(self, name: str) -> int:
        """Where an array that is fed back begins among the values that wait."""
        start = 0
        for operand in self.operands.values():
            if operand.name == name:
                break
            start += operand.array.size if operand.is_input and operand.name in self._fed_back() else 0
        return start

    # -- text ---------------------------------------------------------------------------------------------

    def text(self) -> str:
        body = self.body
        lines = ["/*", f" * {body.function}: n states, one thread each, blocks of {WARP * self.warps} threads."]
        lines += [f" *   {line}" for line in summary(self.program, body.inputs, body.outputs)]
        lines += [
            " *",
            f" * Strides count elements: _x_step0{self._more_steps()} of the batch, then of x itself, row-major, or",
            " * _x_stride from each element to the next.",
        ]
        lines += [" * Where there is no stride but the batch's, the elements of a state lie side by side.", " */"]
        lines += [f"#define FMA(a, b, c) fma{self.real.suffix}(a, b, c)"] if body.is_fused else []
        lines += [
            "",
            *self._definitions(),
            *body.declarations,
            *(cuda_tiles.movers(self.real) if self.tile_size else []),
        ]
        lines += [f'extern "C" __global__ void {self._bounds}{body.function}(']
        lines += [",\n".join(f"    {parameter}" for parameter in self._parameters()) + ")", "{"]
        steps = [*self._places(), *(self._runs() if self.recurrence else self._once())]
        return "\n".join([*lines, *(f"    {line}".rstrip() for line in steps), "}"]) + "\n"

    @property
    def _bounds(self) -> str:
        """What tells the compiler to leave registers for more warps than otherwise."""
        if self.waiting is None or self.waiting.warps <= cuda_spills.USUAL:
            return ""
        return f"__launch_bounds__({WARP * self.warps}, {self.waiting.warps}) "

    def _definitions(self) -> list[str]:
        used = {node.op for _, node, _ in self.program.nodes_by_section}
        found = cuda_math.definitions(
            self.constants, self.functions, ops.SIN in used or ops.COS in used, ops.DIV in used
        )
        written = any(operand.tile is None for operand in self.outputs)
        return [*self.constants.declaration, *found, *(_apart(self.real) if written else [])]

    def _more_steps(self) -> str:
        return "".join(f", _x_step{k}" for k in range(1, self.batch))

    def _parameters(self) -> list[str]:
        axes = [f"_{axis}_count" for axis in (RECORDS, REPEATS)] if self.recurrence else []
        sizes = [f"_size{k}" for k in range(1, self.batch)]
        strides = [name for operand in self.operands.values() for name in operand.strides(self.batch)]
        whole = [f"const long long {name}" for name in ("n", *axes, *sizes)]
        return [
            *whole,
            *parameters(self.real, self.body.inputs, self.body.outputs, "__restrict__"),
            *(f"const long long {name}" for name in strides),
        ]

    def _places(self) -> list[str]:
        """Which states are this warp's and which is this thread's."""
        lines = [
            f"const int _lane = threadIdx.x % {WARP};",
            "const long long _first = (long long)blockIdx.x * blockDim.x + threadIdx.x - _lane;",
            "if (_first >= n) return;",
            f"const int _rows = n - _first < {WARP} ? (int)(n - _first) : {WARP};",
            "const long long i = _first + (_lane < _rows ? _lane : _rows - 1);",
        ]
        rest = "i"
        for k in reversed(range(1, self.batch)):
            lines += [f"const long long _i{k} = {rest} % _size{k}, _rest{k} = {rest} / _size{k};"]
            rest = f"_rest{k}"
        lines += [f"const long long _i0 = {rest};", "(void)_i0; (void)_rows;"]
        if self.tile_size:
            lines += [
                f"__shared__ {self.real.name} _tiles[{self.warps * self.tile_size}];",
                f"{self.real.name} *const _tile = _tiles + threadIdx.x / {WARP} * {self.tile_size};",
            ]
        if self.waiting:
            lines += [
                f"extern __shared__ {self.real.name} _waiting[];",
                f"volatile {self.real.name} *const _near = _waiting + _lane;",
                *([f"volatile {self.real.name} _far[{self.waiting.far}];"] if self.waiting.far else []),
            ]
        return lines

    def _staged(self, operands: Sequence[_Operand], again: bool = False) -> list[str]:
        """Fill the tiles of these inputs; ``again``: when all lanes are done with what is in them."""
        moves = [operand.move("_stage", self.batch) for operand in operands if operand.tile is not None]
        return [*(["__syncwarp();"] if again else []), *moves, "__syncwarp();"] if moves else []

    def _delivered(self, operands: Sequence[_Operand], again: bool = False) -> list[str]:
        """Empty the tiles of these outputs; ``again``: they are filled another time."""
        moves = [operand.move("_deliver", self.batch) for operand in operands if operand.tile is not None]
        return ["__syncwarp();", *moves, *(["__syncwarp();"] if again else [])] if moves else []

    def _pointers(self, operands: Sequence[_Operand]) -> list[str]:
        return [line for operand in operands for line in operand.pointer(self.real, self.batch)]

    def _once(self) -> list[str]:
        pointers = self._pointers([*self.inputs, *self.outputs])
        return [*self._staged(self.inputs), *pointers, "", *self.body.statements, *self._delivered(self.outputs)]

    def _runs(self) -> list[str]:
        """The program again and again, from what it gave the time before."""
        once = [operand for operand in self.inputs if not operand.axes]
        per_run = [operand for operand in self.inputs if operand.axes]
        fed = [operand for operand in once if operand.name in self._fed_back()]
        lines = [*self._staged(once), *self._pointers(once)]
        for operand in fed:
            values = [operand.element(k) for k in range(operand.array.size)]
            if self.waiting and self.waiting.kept:
                lines += [f"{self._address(operand.name, k)} = {value};" for k, value in enumerate(values)]
            else:
                kind = f"volatile {self.real.name}" if self.waiting else self.real.name
                lines += [f"{kind} _now_{operand.name}[{operand.array.size}] = {{{', '.join(values)}}};"]
        run = [*self._staged(per_run, again=True), *self._pointers(per_run), "", *self.body.statements]
        return [*lines, *_loop(RECORDS, [*_loop(REPEATS, run), *self._record()])]

    def _record(self) -> list[str]:
        """Write what the program has given last."""
        lines = self._pointers(self.outputs)
        for operand in self.outputs:
            kept = (f"{operand.element(k)} = {self._address(operand.name, k)};" for k in range(operand.array.size))
            lines += kept
        return [*lines, *self._delivered(self.outputs, again=True)]


def _loop(axis: str, inside: Sequence[str]) -> list[str]:
    """Counted from 0, the number in ``_axis``."""
    head = f"for (long long _{axis} = 0; _{axis} < _{axis}_count; ++_{axis}) {{"
    return [head, *(f"    {line}" for line in inside), "}"]


def _apart(real: Real) -> list[str]:
    """A function that gives a pointer back without the compiler knowing it: that looks for ways from each place that
    results are written to, to each other one, which takes minutes where there are a thousand."""
    return [
        f"__device__ __forceinline__ {real.name} *_apart({real.name} *x)",
        "{",
        "    size_t place = __cvta_generic_to_global(x);",
        '    asm("" : "+l"(place));',
        f"    return ({real.name} *)__cvta_global_to_generic(place);",
        "}",
        "",
    ]
