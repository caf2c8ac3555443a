"""Arrays of a CUDA kernel: parameters, addresses per thread, and moves of rows."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from ..ir.program import Array
from . import cuda_tiles
from .c_expressions import Real


@dataclass(frozen=True)
class Operand:
    """An array of the kernel.  Internal names begin with an underscore, unlike all names of the program.

    name      of the kernel's pointer parameter; ``_name`` points to the elements of this thread's state
    axes      of time, by name
    rows      whether rows of it pass through a tile
    tile      start of its tile within the warp's, None if its rows wait in local memory instead
    even      whether it has a single stride, not one for each axis
    in_pairs  elements are indexed by positions of two loops, not row by row
    other_pointer   the pointer to the elements of this thread's state, if it belongs to another array
    """

    name: str
    array: Array
    axes: tuple[str, ...]
    rows: bool
    tile: int | None
    is_input: bool
    even: bool
    in_pairs: bool = False
    other_pointer: str = ""

    def overwritten(self, name: str, result: Array) -> Operand:
        """A result that overwrites this array in its tile."""
        return replace(self, name=name, array=result, is_input=False, other_pointer=f"_{self.name}")

    def strides(self, batch: int) -> list[str]:
        """Names of its stride parameters: batch, axes, elements."""
        names = [f"_{self.name}_stride{k}" for k in range(len(self.array.shape))]
        names = [] if self.rows else [f"_{self.name}_stride"][: len(names)] if self.even else names
        return [
            *(f"_{self.name}_step{k}" for k in range(batch)),
            *(f"_{self.name}_{axis}" for axis in self.axes),
            *names,
        ]

    def start(self, batch: int) -> str:
        """Start of the warp's first state if rows are moved, otherwise of this thread's own state."""
        axes = [f"_{axis} * _{self.name}_{axis}" for axis in self.axes]
        states = [f"_first * _{self.name}_step0"] if self.rows else []
        states = states or [f"_i{k} * _{self.name}_step{k}" for k in range(batch)]
        return " + ".join([self.name, *states, *axes])

    def pointer(self, real: Real, batch: int) -> list[str]:
        """Declarations of the pointer to this thread's elements, and of their distance as a 32-bit variable, opaque to
        the compiler: products then take one instruction."""
        if self.other_pointer:
            return []
        if self.rows and self.tile is None:
            return [f"volatile {real.name} _{self.name}[{self.array.size}];"]
        tile = f"_tile + {self.tile} + _lane * {cuda_tiles.pitch(self.array.size)}"
        address = tile if self.rows else self.start(batch)
        kind = f"const {real.name}" if self.is_input and not self.rows else real.name
        lines = [f"{kind} *const _{self.name} = {address};"]
        if self.even and not self.rows and self.array.shape:
            each = f"_{self.name}_each"
            lines += [f'unsigned {each} = (unsigned)_{self.name}_stride; asm("" : "+r"({each}));']
        return lines

    def declarations(self, real: Real) -> dict[str, str]:
        """Variables in the addresses of its elements, as parameters of a function."""
        declarations = {} if self.rows else {name: f"const long long {name}" for name in self.strides(0)}
        if self.other_pointer:
            return declarations
        kind = "volatile " if self.rows and self.tile is None else "const " if self.is_input and not self.rows else ""
        declarations[f"_{self.name}"] = f"{kind}{real.name} *const _{self.name}"
        if self.even and not self.rows and self.array.shape:
            declarations[f"_{self.name}_each"] = f"const unsigned _{self.name}_each"
        return declarations

    def element(self, element: int, base: str = "") -> str:
        """The location of an element of this thread's state, or of one after the row that begins with
        element ``base``."""
        if self.rows:
            pointer = self.other_pointer or f"_{self.name}"
            return f"{pointer}[{base} + {element}]" if base else f"{pointer}[{element}]"
        start = f"_{self.name}" if self.is_input else f"_apart(_{self.name})"
        if self.even and self.array.shape:
            number = f"(unsigned long long)({base} + {element})" if base else f"{element}ull"
            return f"{start}[{number} * _{self.name}_each]"
        if base and self.in_pairs:
            after = [math.prod(self.array.shape[axis + 1 :]) for axis in range(len(self.array.shape))]
            number, sizes = f"({base} + {element})", zip(after, self.array.shape, strict=True)
            offsets = (f"{number} / {a} % {n} * _{self.name}_stride{k}" for k, (a, n) in enumerate(sizes))
            return f"{start}[{' + '.join(offsets)}]"
        index, rest = [], element
        if base:
            width = math.prod(self.array.shape[1:])
            index.append(f"({base} / {width}) * _{self.name}_stride0" if self.array.shape else "0")
        for axis in reversed(range(len(self.array.shape))):
            rest, k = divmod(rest, self.array.shape[axis])
            index += [f"{k} * _{self.name}_stride{axis}"] if k else []
        return f"{start}[{' + '.join(reversed(index)) or '0'}]"

    def staged(self, batch: int) -> str:
        """Move rows from the array to the tile, all lanes together."""
        return self._move("_stage", self.array.size, f"_tile + {self.tile}", self.start(batch))

    def delivered(self, batch: int, width: int) -> list[str]:
        """Move rows to the array, all lanes together; ``width``: number of columns per pass without a tile."""
        if self.tile is not None:
            return [self._move("_deliver", self.array.size, f"_tile + {self.tile}", self.start(batch))]
        lines = []
        for first in range(0, self.array.size, width):
            columns = min(width, self.array.size - first)
            give = f"_give<{columns}>(_passing, _{self.name} + {first}, _lane);"
            start = f"{self.start(batch)} + {first}" if first else self.start(batch)
            lines += ["__syncwarp();", give, "__syncwarp();", self._move("_deliver", columns, "_passing", start)]
        return lines

    def _move(self, kind: str, columns: int, tile: str, start: str) -> str:
        return f"{kind}<{columns}>({tile}, {start}, _{self.name}_step0, _lane, _rows);"
