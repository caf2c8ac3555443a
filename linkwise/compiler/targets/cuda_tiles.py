"""CUDA C of tiles in shared memory, through which warps move rows of their states."""

from __future__ import annotations

from .c_expressions import Real
from .cuda_spills import WARP


def pitch(size: int) -> int:
    """Row distance in a tile for this many elements: threads reading a column use separate memory banks, or share one
    in pairs."""
    return size if size % 4 else size + 1


def move_functions(real: Real) -> list[str]:
    """Functions that move rows between an array and a tile, neighbouring lanes at neighbouring elements. Rows after the
    last copy it on loading and are not stored."""
    head = "template <int size> __device__ __forceinline__ void"
    body = [
        "{",
        "    const int pitch = size % 4 ? size : size + 1;",
        f"    if (rows == {WARP} && step == size) {{  // one piece of memory",
        "        #pragma unroll",
        "        for (int k = 0; k < size; ++k) {",
        f"            const int at = k * {WARP} + lane;",
        "            {whole}",
        "        }",
        "        return;",
        "    }",
        "    #pragma unroll 8",
        "    for (int k = 0; k < size; ++k) {",
        f"        const int at = k * {WARP} + lane, row = at / size, element = at % size;",
        "        {part}",
        "    }",
        "}",
        "",
    ]

    def mover(name: str, parameters: str, whole_tile: str, part: str) -> list[str]:
        return [f"{head} {name}({parameters}, long long step, int lane, int rows)"] + [
            line.replace("{whole}", whole_tile).replace("{part}", part) for line in body
        ]

    here, there = "tile[row * pitch + element]", "tile[pitch == size ? at : at + at / size]"
    return [
        *mover(
            "_stage",
            f"{real.name} *tile, const {real.name} *x",
            f"{there} = x[at];",
            f"{here} = x[(row < rows ? row : rows - 1) * step + element];",
        ),
        *mover(
            "_deliver",
            f"const {real.name} *tile, {real.name} *x",
            f"x[at] = {there};",
            f"if (row < rows) x[row * step + element] = {here};",
        ),
    ]


def store_function(real: Real) -> list[str]:
    """A function that moves rows from local memory of the threads to a tile."""
    parameters = f"{real.name} *tile, const volatile {real.name} *own, int lane"
    return [
        f"template <int size> __device__ __forceinline__ void _give({parameters})",
        "{",
        "    #pragma unroll 32",  # number of loads in flight
        "    for (int k = 0; k < size; ++k) tile[lane * (size % 4 ? size : size + 1) + k] = own[k];",
        "}",
        "",
    ]
