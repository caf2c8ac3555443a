"""Memory layout of a call's arrays, and which of them a CUDA kernel moves by rows through shared memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..ir.program import Array, Program
from .cuda_spills import WARP
from .cuda_tiles import pitch
from .protocol import Options

ITEM_BYTES = {"float64": 8, "float32": 4}
SHARED_BYTES = 48 * 1024  # available to a block by default
LINE_BYTES = 128  # cache line: for shorter rows, a warp's accesses hit lines it has loaded already
MOST_PASSING = 2048  # bytes per thread passed in this way: the second-level cache has room for all threads


@dataclass(frozen=True)
class Layout:
    """Memory layout of the arrays of a call.

    batch     number of batch axes longer than one
    rows      for inputs, then outputs: whether a warp moves its rows; none with several batch axes
    even      likewise: whether its elements, in C order, are equidistant, at a distance below 2**32
    passing   likewise: whether rows pass through the slots of spilled values instead of a tile
    over      likewise: number of the input whose tile a result reuses after its last read, or None
    """

    batch: int
    rows: tuple[bool, ...]
    even: tuple[bool, ...]
    passing: tuple[bool, ...]
    over: tuple[int | None, ...]


def choose_layout(
    program: Program,
    options: Options,
    batch: int = 1,
    in_rows: Sequence[bool] | None = None,
    even: Sequence[bool] | None = None,
    room: int | None = None,
    sharing: bool = False,
) -> Layout:
    """The layout of arrays. ``in_rows``: whether the elements of each array's states are contiguous; ``even``: whether
    they are equidistant.

    Results use tiles, as writing parts of cache lines is slow.  Inputs come second, and only with long rows: on an H200
    tiles for the inputs of six and seven joints cost a quarter of the rate; tiles for 38 joints doubled it. ``room``:
    bytes of shared memory per warp for tiles beside spilled values, None without spilled values; long results without a
    tile pass through the slots of spilled values.  ``sharing``: results may reuse tiles of inputs.
    """
    arrays, first = (*program.inputs, *program.outputs), len(program.inputs)
    possible = [batch == 1 and is_row for is_row in in_rows or (True,) * len(arrays)]
    tiles = _Tiles(arrays, ITEM_BYTES[options.dtype], SHARED_BYTES if room is None else room)
    results = [k for k in range(first, len(arrays)) if possible[k] and arrays[k].size > 1]
    inputs = [k for k in range(first) if possible[k] and tiles.row_bytes(k) >= LINE_BYTES]
    for k in results:
        if tiles.take(k) and sharing:
            tiles.share(k, inputs)
    for k in inputs:
        tiles.take(k)
    passing = [k for k in results if k not in tiles.taken] if room is not None else []
    if sum(map(tiles.row_bytes, passing)) > MOST_PASSING:
        passing = []
    numbers = range(len(arrays))
    return Layout(
        batch,
        tuple(k in tiles.taken or k in passing for k in numbers),
        tuple(even or (False,) * len(arrays)),
        tuple(k in passing for k in numbers),
        tuple(tiles.over.get(k) for k in numbers),
    )


class _Tiles:
    """Assigns tiles to arrays within a warp's shared memory."""

    def __init__(self, arrays: Sequence[Array], item_bytes: int, room: int):
        self._arrays, self._item_bytes, self._left = arrays, item_bytes, room // (WARP * item_bytes)
        self.taken: set[int] = set()
        self.over: dict[int, int] = {}

    def row_bytes(self, k: int) -> int:
        """Bytes of a row."""
        return self._arrays[k].size * self._item_bytes

    def take(self, k: int) -> bool:
        """Assign a tile to an array if there is room and it has none."""
        if k not in self.taken and pitch(self._arrays[k].size) <= self._left:
            self._left -= pitch(self._arrays[k].size)
            self.taken.add(k)
            return True
        return False

    def share(self, result: int, inputs: Sequence[int]) -> None:
        """Let a result reuse the tile of an input of its size, if there is one."""
        alike = [k for k in inputs if k not in self.taken and self._arrays[k].size == self._arrays[result].size]
        if alike:
            self.over[result] = alike[-1]
            self.taken.add(alike[-1])
