"""Diagrams of the papers' pictures: costs that grow, matrices by the size of their elements."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from linkwise.demo.drawing import COLOURS, STYLES, figure, styled, tidy

LEGEND = 32  # letters in a line of a legend


@styled
def growth(
    sizes: Sequence[int], curves: Mapping[str, Sequence[float]], xlabel: str = "links n", ylabel: str = "operations"
) -> Any:
    """Costs against sizes, on logarithmic axes."""
    drawn = figure(8.4, 3.8)
    axes = drawn.subplots()
    for k, (name, values) in enumerate(curves.items()):
        mark = "os^Dv"[k // len(COLOURS) % 5]
        k %= len(COLOURS)
        label = "\n".join(textwrap.wrap(name, LEGEND))
        axes.loglog(sizes, values, marker=mark, ls=STYLES[k], color=COLOURS[k], label=label, ms=4)
    axes.set_xticks(sizes, [str(n) for n in sizes])
    axes.minorticks_off()
    tidy(axes, "", xlabel, ylabel)
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return drawn


@styled
def matrices(
    named: Mapping[str, np.ndarray], columns: int = 4, blocks: Mapping[str, tuple[int, int]] | None = None
) -> Any:
    """Matrices as pictures: white where an element is zero, darker where it is larger; blocks of rows and columns
    outlined."""
    from matplotlib.colors import LogNorm

    rows = -(-len(named) // columns)
    drawn = figure(2.7 * columns, 2.8 * rows)
    grid = drawn.subplots(rows, columns, squeeze=False)
    for axes in grid.flat[len(named) :]:
        axes.axis("off")
    for axes, (name, matrix) in zip(grid.flat, named.items(), strict=False):
        size = np.abs(matrix)
        largest = size.max(initial=0.0) or 1.0
        seen = np.ma.masked_less(size, 1e-12 * largest)
        axes.grid(False)
        axes.imshow(seen, cmap="Blues", norm=LogNorm(largest * 1e-5, largest), interpolation="nearest", aspect="auto")
        high, wide = (blocks or {}).get(name, (0, 0))
        for at in range(high, len(matrix), high) if high else ():
            axes.axhline(at - 0.5, color="#BBBBBB", lw=0.6)
        for at in range(wide, matrix.shape[1], wide) if wide else ():
            axes.axvline(at - 0.5, color="#BBBBBB", lw=0.6)
        filled = 100.0 * np.count_nonzero(~np.ma.getmaskarray(seen)) / size.size
        axes.set_title(name)
        axes.set_xlabel(f"{size.shape[0]} x {size.shape[1]}, {filled:.0f} % filled")
        axes.set(xticks=[], yticks=[])
        axes.spines[["top", "right"]].set_visible(True)
    return drawn
