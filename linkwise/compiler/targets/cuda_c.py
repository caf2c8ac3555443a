"""Programs as CUDA C: one thread per state; each warp processes 32 states independently.

Arrays are accessed in place.  If the elements of a state are contiguous (``rows``), a warp moves the rows of its 32
states through a tile in shared memory, so that neighbouring threads access neighbouring numbers of the array.  All
other arrays are accessed directly at ``x[i * step + ...]``, with any strides including zero. If spilled values in
shared memory leave no room for a tile, results wait in local memory and pass through the slots of spilled values at the
end.  Threads beyond the last state repeat the last state.  Over time carried values stay in registers.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import NamedTuple

from ..ir.program import RECORDS, REPEATS, For, Program
from ..passes.shorten import shorten
from . import cuda_math, cuda_spills, cuda_tiles
from .c_expressions import RESERVED, Body, Real, identifier, parameters, real_of, summary
from .c_loops import LoopedBody
from .c_parts import Parts
from .cuda_layout import ITEM_BYTES, SHARED_BYTES, Layout, choose_layout
from .cuda_operands import Operand
from .cuda_spills import WARP
from .protocol import Options

MOST_WARPS = 4  # threads per block
LEAST_COLUMNS = 16  # columns of rows that pass at a time through slots of spilled values
MOST_OPERATIONS = 8192  # code whose instructions, of 16 bytes, fit into the instruction cache of 128 kB


class Emitted(NamedTuple):
    """A kernel with its launch parameters: threads per block and dynamic shared memory."""

    text: str
    threads: int
    shared_bytes: int


def emitted(
    program: Program,
    options: Options,
    layout: Layout,
    near: bool = True,
) -> Emitted:
    """CUDA C text of ``extern "C" __global__ void NAME(n, sizes, arrays, strides)``. ``near``: values that exceed the
    registers are spilled to shared memory; otherwise the compiler places them."""
    kernel = _Kernel(program, options, layout, near)
    return Emitted(kernel.text(), WARP * kernel.warps, kernel.waiting_bytes)


def bytes_beside_tiles(program: Program, options: Options, layout: Layout) -> int:
    """Shared memory per block for spilled values, if arrays use tiles."""
    return _Kernel(program, options, layout, near=True, most_warps=cuda_spills.USUAL).waiting_bytes


def emit(program: Program, options: Options, layout: Layout | None = None) -> str:
    """The text alone, for the program in its final order."""
    program = ordered(program, options)
    return emitted(program, options, layout or choose_layout(program, options)).text


def ordered(program: Program, options: Options) -> Program:
    """The program with GPU instructions, ordered for the registers of a thread."""
    real = real_of(options)
    return program.with_blocks(lambda code: cuda_spills.ordered(shorten(code), real))


def has_values_that_wait(program: Program, options: Options) -> bool:
    """Whether more than a few values exceed the registers."""
    real = real_of(options)
    return program.has_fixed_places and any(cuda_spills.are_needed(code, real) for code, _ in program.blocks)


def function_name(program: Program) -> str:
    """The name of the kernel in the emitted text."""
    return identifier(program.name, set(RESERVED))


def _tile_sizes(program: Program, layout: Layout) -> list[int]:
    arrays = (*program.inputs, *program.outputs)
    each = zip(layout.rows, layout.passing, layout.over, strict=True)
    tiled = (rows and not passing and over is None for rows, passing, over in each)
    return [
        WARP * cuda_tiles.pitch(array.size) if is_tiled else 0 for array, is_tiled in zip(arrays, tiled, strict=True)
    ]


def _warps(tiles: Sequence[int], options: Options) -> int:
    """Warps per block, limited by shared memory."""
    warps = MOST_WARPS
    while warps > 1 and warps * sum(tiles) * ITEM_BYTES[options.dtype] > SHARED_BYTES:
        warps //= 2
    return warps


class _Kernel:
    """The parts of one kernel's text."""

    def __init__(
        self,
        program: Program,
        options: Options,
        layout: Layout,
        near: bool,
        most_warps: int | None = None,
    ):
        self.program, self.batch = program, layout.batch
        self.real = real_of(options)
        sizes = _tile_sizes(program, layout)
        self.tile_size, self.warps = sum(sizes), _warps(sizes, options)
        starts = itertools.accumulate(sizes, initial=0)
        self._layout = layout
        self._tiles = [at if size else None for at, size in zip(starts, sizes, strict=False)]
        self.operands: dict[str, Operand] = {}
        self.waiting: cuda_spills.Waiting | None = None
        pointer = f"volatile {self.real.name} *const _near = _waiting + threadIdx.x % {WARP};"
        self.parts = Parts(
            "static __device__ __noinline__ void",
            {"_far": f"volatile {self.real.name} *const _far"},
            [pointer, "(void)_near; (void)_far;"],
        )
        self._cells: list[str] = []  # slots of loop cells
        self.constants = cuda_math.Constants(self.real)
        waits = near and has_values_that_wait(program, options)
        self.functions = functions = cuda_math.functions(self.constants, waits)
        self.body: Body | LoopedBody
        if program.loops:
            looped = program, self.real, self._address, functions, self._named, "__device__ const"
            if waits:
                self.warps = 1  # so that shared memory is used up
                self.body = LoopedBody(*looped, "_cell({})".format, self._spilled)
                self._cells = self._kept(program.cells)
                self.body.statements = self._add_cells(self.body.statements)
            else:
                self.body = LoopedBody(*looped)
        elif waits:
            self.warps = 1  # so that shared memory is used up
            kept = sum(program.inputs[number].size for _, number in program.carried)
            most_warps = most_warps or (cuda_spills.USUAL if self.tile_size else cuda_spills.BUDGETS[0].warps)
            self.waiting = cuda_spills.allocate_slots(program, self.real, most_warps, kept)
            self.body = cuda_spills.SpilledBody(program, self.real, self._address, functions, self._named, self.waiting)
            self.body.statements = self.parts.called(self.body.statements, self._declarations())
        else:
            self.body = Body(program, self.real, self._address, functions, self._named, eager=not program.carried)
        named = self.operands.values()
        self.inputs = [operand for operand in named if operand.is_input and operand.array.size]
        self.outputs = [operand for operand in named if not operand.is_input and operand.array.size]

    @property
    def waiting_bytes(self) -> int:
        """Shared memory per block for spilled values."""
        if self.waiting is None:
            return 0
        passing = self.waiting.kept + cuda_tiles.pitch(self._width) if self._width else 0
        return self.warps * WARP * max(self.waiting.near, passing) * cuda_spills.ITEM_BYTES[self.real.name]

    @property
    def _width(self) -> int:
        """Number of row columns that pass at a time through the slots of spilled values, when none is in use."""
        if self.waiting is None:
            return 0
        taken = self.waiting.kept + self.tile_size // WARP + 1
        room = max(self.waiting.limit - taken, LEAST_COLUMNS)
        passing = [operand.array.size for operand in self.operands.values() if operand.rows and operand.tile is None]
        longest = max(passing, default=0)
        return longest if longest <= room else room // LEAST_COLUMNS * LEAST_COLUMNS

    @cached_property
    def _budget_of_bodies(self) -> cuda_spills.Budget:
        """The budget common to all bodies of loops."""
        assert self.program.loops
        return cuda_spills.loop_budget([code for code, _ in self.program.blocks], self.program.cells, self.real)

    def _spilled(self, loop: For, k: int, address: Callable[[str, int], str]) -> Body:
        """The code of a loop body with spills; shared memory is sized for the body with most spills."""
        program = loop.bodies[k].program
        angles = cuda_spills.body_angles(program, self.real)
        waiting = cuda_spills.Waiting(self.real, self._budget_of_bodies, angles=angles)
        body = cuda_spills.SpilledBody(program, self.real, address, self.functions, None, waiting)
        body.statements = self.parts.called(body.statements, {"_at": "const int *const _at", **self._declarations()})
        self.waiting = max(self.waiting or waiting, waiting, key=lambda candidate: candidate.count)
        return body

    def _declarations(self) -> dict[str, str]:
        """Declarations of the kernel that statements may use, as parameters of a function."""
        declarations = {
            f"_now_{name}": f"volatile {self.real.name} *const _now_{name}" for name in self._fed_back().values()
        }
        for operand in self.operands.values():
            declarations |= operand.declarations(self.real)
        return declarations

    def _kept(self, count: int) -> list[str]:
        """Slots for cells, besides those of spilled values."""
        assert self.waiting is not None
        return [self.waiting.keep() for _ in range(count)]

    def _add_cells(self, lines: Sequence[str]) -> list[str]:
        """The text with declarations of slots for cells."""
        return [re.sub(r"_cell\((\d+)\)", lambda match: self._cells[int(match[1])], line) for line in lines]

    def _named(self, inputs: Sequence[str], outputs: Sequence[str]) -> None:
        """Set the names of arrays in the text."""
        arrays = (*self.program.inputs, *self.program.outputs)
        for position, (name, array) in enumerate(zip((*inputs, *outputs), arrays, strict=True)):
            over = self._layout.over[position]
            rows, tile, even = self._layout.rows[position], self._tiles[position], self._layout.even[position]
            if over is not None:
                self.operands[name] = self.operands[inputs[over]].overwritten(name, array)
                continue
            in_pairs = self.program.is_nested and position >= len(inputs)
            self.operands[name] = Operand(name, array, array.axes, rows, tile, position < len(inputs), even, in_pairs)

    def _address(self, name: str, element: int, base: str = "") -> str:
        fed = self._fed_back().get(name)
        if fed is None:
            return self.operands[name].element(element, base)
        if self.waiting and self.waiting.kept:
            address = cuda_spills.near(self._first_slot(fed) + element)
            return f"(&{address})[{WARP} * {base}]" if base else address
        return f"_now_{fed}[{base} + {element}]" if base else f"_now_{fed}[{element}]"

    def _fed_back(self) -> dict[str, str]:
        """Carried arrays in registers, outputs and inputs, each with the name of the input."""
        names, first = list(self.operands), len(self.program.inputs)
        pairs = ((names[first + output], names[number]) for output, number in self.program.carried)
        return {name: pair[1] for pair in pairs for name in pair}

    def _first_slot(self, name: str) -> int:
        """First slot of a carried array among the spilled values."""
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
            *(cuda_tiles.move_functions(self.real) if self.tile_size or self._width else []),
            *(cuda_tiles.store_function(self.real) if self._width else []),
            *self._add_cells(self._functions()),
        ]
        lines += [f'extern "C" __global__ void {self._bounds}{body.function}(']
        lines += [",\n".join(f"    {parameter}" for parameter in self._parameters()) + ")", "{"]
        steps = [*self._places(), *(self._runs() if self.program.carried else self._once())]
        return "\n".join([*lines, *(f"    {line}".rstrip() for line in steps), "}"]) + "\n"

    @property
    def _bounds(self) -> str:
        """Launch bounds that make the compiler leave registers for more warps."""
        if self.waiting is None or self.waiting.warps <= cuda_spills.USUAL:
            return ""
        return f"__launch_bounds__({WARP * self.warps}, {self.waiting.warps}) "

    def _definitions(self) -> list[str]:
        used = {node.op for _, node, _ in self.program.nodes_by_section}
        definitions = cuda_math.definitions(self.constants, self.functions, used)
        written = any(not operand.rows for operand in self.outputs)
        return [*self.constants.declaration, *definitions, *(_apart(self.real) if written else [])]

    def _functions(self) -> list[str]:
        """Parts of the kernel, and the memory that they share."""
        shared = [f"extern __shared__ {self.real.name} _waiting[];", ""]
        return [*shared, *self.parts.definitions] if self.parts.count else []

    def _more_steps(self) -> str:
        return "".join(f", _x_step{k}" for k in range(1, self.batch))

    def _parameters(self) -> list[str]:
        axes = [f"_{axis}_count" for axis in (RECORDS, REPEATS)] if self.program.carried else []
        sizes = [f"_size{k}" for k in range(1, self.batch)]
        strides = [name for operand in self.operands.values() for name in operand.strides(self.batch)]
        integers = [f"const long long {name}" for name in ("n", *axes, *sizes)]
        return [
            *integers,
            *parameters(self.real, self.body.inputs, self.body.outputs, "__restrict__"),
            *(f"const long long {name}" for name in strides),
        ]

    def _places(self) -> list[str]:
        """Indices of the warp's and the thread's states."""
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
            name, free = self.real.name, WARP * self.waiting.kept
            far = self.waiting.far or int(self.parts.count > 0)
            lines += [
                *([] if self.parts.count else [f"extern __shared__ {name} _waiting[];"]),
                f"volatile {name} *const _near = _waiting + _lane;",
                *(["(void)_near;"] if self.parts.count else []),
                *([f"volatile {name} _far[{far}];"] if far else []),
                *([f"{name} *const _passing = _waiting + {free};"] if self._width else []),
            ]
        return lines

    def _staged(self, operands: Sequence[Operand], again: bool = False) -> list[str]:
        """Move rows of these inputs to tiles; ``again``: first wait until all lanes are done with the tiles."""
        moves = [operand.staged(self.batch) for operand in operands if operand.rows]
        return [*(["__syncwarp();"] if again else []), *moves, "__syncwarp();"] if moves else []

    def _delivered(self, operands: Sequence[Operand], again: bool = False) -> list[str]:
        """Move rows of these outputs from tiles; ``again``: in a repeated delivery."""
        moves = [line for operand in operands if operand.rows for line in operand.delivered(self.batch, self._width)]
        return ["__syncwarp();", *moves, *(["__syncwarp();"] if again else [])] if moves else []

    def _pointers(self, operands: Sequence[Operand]) -> list[str]:
        return [line for operand in operands for line in operand.pointer(self.real, self.batch)]

    def _once(self) -> list[str]:
        pointers = self._pointers([*self.inputs, *self.outputs])
        return [*pointers, *self._staged(self.inputs), "", *self.body.statements, *self._delivered(self.outputs)]

    def _runs(self) -> list[str]:
        """The loop over runs, each starting from the previous results."""
        once = [operand for operand in self.inputs if not operand.axes]
        per_run = [operand for operand in self.inputs if operand.axes]
        fed = [operand for operand in once if operand.name in self._fed_back()]
        lines = [*self._pointers(once), *self._staged(once)]
        for operand in fed:
            values = [operand.element(k) for k in range(operand.array.size)]
            if self.waiting and self.waiting.kept:
                lines += [f"{self._address(operand.name, k)} = {value};" for k, value in enumerate(values)]
            else:
                kind = f"volatile {self.real.name}" if self.waiting else self.real.name
                lines += [f"{kind} _now_{operand.name}[{operand.array.size}] = {{{', '.join(values)}}};"]
        run = [*self._pointers(per_run), *self._staged(per_run, again=True), "", *self.body.statements]
        return [*lines, *_loop(RECORDS, [*_loop(REPEATS, run), *self._record()])]

    def _record(self) -> list[str]:
        """Write the latest results as a record."""
        lines = self._pointers(self.outputs)
        for operand in self.outputs:
            kept = (f"{operand.element(k)} = {self._address(operand.name, k)};" for k in range(operand.array.size))
            lines += kept
        return [*lines, *self._delivered(self.outputs, again=True)]


def _loop(axis: str, inside: Sequence[str]) -> list[str]:
    """A loop that counts ``_axis`` from 0."""
    head = f"for (long long _{axis} = 0; _{axis} < _{axis}_count; ++_{axis}) {{"
    return [head, *(f"    {line}" for line in inside), "}"]


def _apart(real: Real) -> list[str]:
    """A function that returns a pointer unknown to the compiler. Otherwise its alias analysis compares all pairs of
    result addresses, which takes minutes for a thousand."""
    return [
        f"__device__ __forceinline__ {real.name} *_apart({real.name} *x)",
        "{",
        "    size_t place = __cvta_generic_to_global(x);",
        '    asm("" : "+l"(place));',
        f"    return ({real.name} *)__cvta_global_to_generic(place);",
        "}",
        "",
    ]
