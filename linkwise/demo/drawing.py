"""Curves over time beside each other, in the style of ``linkwise.viewer``."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from linkwise.viewer.style import COLOURS, GREY, STYLES, figure, styled

__all__ = ["COLOURS", "GREY", "Panel", "drawable", "figure", "over", "styled", "tidy"]


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
