"""The few kinds of diagrams that the papers' pictures are, in the style of ``linkwise.viewer``."""

from __future__ import annotations

import importlib.util
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from linkwise.viewer.style import COLOURS, GREY, STYLES, figure, styled

__all__ = ["COLOURS", "GREY", "Panel", "drawable", "figure", "growth", "matrices", "over", "styled", "tidy"]

LEGEND = 32  # letters in a line of a legend


def drawable() -> bool:
    """Whether matplotlib is installed."""
    return importlib.util.find_spec("matplotlib") is not None


def tidy(axes: Any, title: str = "", x: str = "", y: str = "") -> None:
    """Labels, the title at the left."""
    if title:
        axes.set_title(title, loc="left")
    axes.set(xlabel=x, ylabel=y)


class Panel(NamedTuple):
    """Curves by name over one axis; a curve whose name is empty or begins with "_" goes without a legend.

    ``marks`` are places on the axis below, each drawn as an upright line.
    """

    label: str
    curves: Mapping[str, np.ndarray]
    title: str = ""
    logarithmic: bool = False
    marks: Iterable[float] = ()


@styled
def over(x: np.ndarray, panels: Sequence[Panel], columns: int = 1, xlabel: str = "time (s)", width: float = 6.8) -> Any:
    """Panels of curves over the same axis."""
    rows = -(-len(panels) // columns)
    drawn = figure(width, 0.6 + (2.3 if rows > 1 else 3.0) * rows)
    grid = drawn.subplots(rows, columns, sharex=True, squeeze=False)
    for axes, panel in zip(grid.flat, panels, strict=False):
        for k, (name, series) in enumerate(panel.curves.items()):
            k %= len(COLOURS)
            axes.plot(x, series, ls=STYLES[k], color=COLOURS[k], label=name or "_")
        tidy(axes, panel.title, "", panel.label)
        axes.set_xlim(x[0], x[-1])
        if panel.logarithmic:
            axes.set_yscale("log")
        for mark in panel.marks:
            axes.axvline(mark, color=GREY, ls=":", lw=1.2)
        if any(name and not name.startswith("_") for name in panel.curves):
            beside = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)}  # where it covers no curve
            axes.legend(**(beside if columns == 1 else {}))
    for axes in grid[-1]:
        axes.set_xlabel(xlabel)
    return drawn


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
