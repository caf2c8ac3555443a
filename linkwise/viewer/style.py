"""The style of the project's pictures, and the only import of matplotlib: figures, colours, files.

Figures are made without pyplot: nothing is registered anywhere, no window opens, no backend is chosen, and a figure
nobody refers to is gone.  Notebooks show them as results of cells.  To draw into a window, hand over axes of your own.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

if TYPE_CHECKING:
    from matplotlib.figure import Figure

P = ParamSpec("P")
R = TypeVar("R")

# Okabe and Ito's colours, told apart by colour-blind readers too; yellow, too light for lines on white, is left out.
BLUE, VERMILLION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
ORANGE, SKY, BLACK, GREY = "#E69F00", "#56B4E9", "#222222", "#8C8C8C"
COLOURS = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY, BLACK)
#: Line styles tell the same curves apart in print without colours.
STYLES = ("-", "--", "-.", ":", (0, (6, 1, 1, 1, 1, 1)), (0, (8, 2)), (0, (3, 1)))
WIDTH = 6.8  # inches: the width of a page's text
FIGURE_MARGIN = 0.15  # inches
DPI = 150

SETTINGS: dict[str, Any] = {
    "axes.axisbelow": True,
    "axes.formatter.limits": (-3, 4),
    "axes.grid": True,
    "axes.labelsize": 9,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 10,
    "figure.dpi": DPI,
    "font.size": 9,
    "grid.color": "#E2E2E2",
    "grid.linewidth": 0.6,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "lines.linewidth": 1.3,
    "savefig.dpi": "figure",
    "svg.fonttype": "none",
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
}


class MissingLibrary(ImportError, ValueError):
    """An optional library is not installed; a ValueError too, so that the command line ends with one line."""


def styled(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function that draws: it runs in the project's style, and raises if matplotlib is missing."""

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        library = matplotlib()
        from cycler import cycler

        with library.rc_context({**SETTINGS, "axes.prop_cycle": cycler(color=COLOURS)}):
            return function(*args, **kwargs)

    return run


def figure(width: float = WIDTH, height: float = 4.2) -> Figure:
    """An empty figure, its size in inches, with a layout that avoids overlaps."""
    matplotlib()
    from .picture import Picture

    return Picture(figsize=(width, height), dpi=DPI, layout="constrained")


def subplots(rows: int = 1, columns: int = 1, width: float = WIDTH, height: float = 4.2, **options: Any) -> Any:
    """(figure, axes) as pyplot.subplots gives them; ``options`` such as sharex and width_ratios."""
    empty = figure(width, height)
    return empty, empty.subplots(rows, columns, **options)


def curve(k: int) -> dict[str, Any]:
    """Colour and line style of the k-th of several curves."""
    return {"color": COLOURS[k % len(COLOURS)], "linestyle": STYLES[k % len(STYLES)]}


def save(figure: Figure, path: str | Path | None) -> Figure:
    """The figure, written to ``path`` if there is one: vectors for .svg and .pdf, dots for .png and others."""
    if path is not None:
        file = Path(path)
        supported = figure.canvas.get_supported_filetypes()
        if file.suffix[1:].lower() not in supported:
            raise ValueError(f"pictures are written as .png, .svg or .pdf, not as {file.name!r}")
        # A date in the file would make two equal pictures differ.
        dated = {".svg": "Date", ".pdf": "CreationDate"}.get(file.suffix.lower())
        figure.savefig(file, metadata={dated: None} if dated else None)
    return figure


def matplotlib() -> Any:
    """The library; raises with the command that installs it."""
    try:
        import matplotlib
    except ImportError:
        raise MissingLibrary("drawing needs matplotlib: pip install 'linkwise[plot]'") from None
    return matplotlib
