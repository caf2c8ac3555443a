"""What the papers' figures share: matplotlib where it is installed, colours, files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

# Okabe and Ito's colours, told apart by colour-blind readers too; line styles tell them apart in print.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")
STYLES = ("-", "--", "-.", ":")


def pyplot() -> Any:
    """matplotlib's pyplot without a window, or a ValueError that says how to get it."""
    try:
        import matplotlib
    except ImportError:
        raise ValueError("drawing needs matplotlib: pip install 'linkwise[plot]'") from None
    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot


def save(figure: Any, path: Path) -> Path:
    figure.savefig(path, dpi=130)
    pyplot().close(figure)
    return path
