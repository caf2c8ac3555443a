"""CUDA C that transposes results written element by element into rows: one warp for each square of 32 states and 32
elements, through a tile in shared memory.

Rows without a tile in the kernel would be written in parts of cache lines: on an H200 that takes five to ten times as
long as writing them in order and transposing them in the second-level cache.
"""

from __future__ import annotations

from ..ir.program import Array
from .c_expressions import real_of
from .cuda_spills import WARP
from .protocol import Options

NAME = "transposed"
WARPS = 4  # threads per block
LEAST_BYTES = 512  # minimum bytes of a transposed row: shorter ones are written directly
NEAR_BYTES = 32 << 20  # bytes of results transposed at a time: less than the second-level cache
LEAST_STATES = 1 << 15  # minimum states at a time: fewer do not occupy a GPU


def pays(array: Array, item_bytes: int) -> bool:
    """Whether the rows of an output are long enough for a transposition."""
    return array.size * item_bytes >= LEAST_BYTES


def states_at_a_time(bytes_of_state: int) -> int:
    return max(LEAST_STATES, NEAR_BYTES // bytes_of_state // WARP * WARP)


def blocks(states: int, size: int) -> int:
    return -(-(-(-states // WARP) * -(-size // WARP)) // WARPS)


def emit(options: Options) -> str:
    """``transposed(n, size, from, pitch, to, step)``: n states of ``size`` elements, element k of all states at ``from
    + k pitch``, to rows at ``to + i step``."""
    real = real_of(options).name
    return f"""extern "C" __global__ void {NAME}(
    const long long n, const long long size, const {real} *__restrict__ from, const long long pitch,
    {real} *__restrict__ to, const long long step)
{{
    __shared__ {real} tiles[{WARPS} * {WARP} * {WARP + 1}];
    const int lane = threadIdx.x % {WARP};
    {real} *const tile = tiles + threadIdx.x / {WARP} * ({WARP} * {WARP + 1});
    const long long across = (size + {WARP - 1}) / {WARP};
    const long long square = (long long)blockIdx.x * {WARPS} + threadIdx.x / {WARP};
    const long long first = square / across * {WARP}, begin = square % across * {WARP};
    if (first >= n) return;
    const int rows = n - first < {WARP} ? (int)(n - first) : {WARP};
    const int columns = size - begin < {WARP} ? (int)(size - begin) : {WARP};
    from += begin * pitch + first + (lane < rows ? lane : 0);
    {real} found[{WARP}];
    #pragma unroll
    for (int k = 0; k < {WARP}; ++k) found[k] = from[(k < columns ? k : 0) * pitch];  // all on the way at a time
    #pragma unroll
    for (int k = 0; k < {WARP}; ++k) tile[k * {WARP + 1} + lane] = found[k];
    __syncwarp();
    to += first * step + begin + lane;
    if (lane >= columns) return;
    #pragma unroll
    for (int k = 0; k < {WARP}; ++k)
        if (k < rows) to[k * step] = tile[lane * {WARP + 1} + k];
}}
"""
