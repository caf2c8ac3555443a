"""Pictures of results: spread over time, histograms, sensitivities.  Needs matplotlib and xarray."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..viewer import style
from .errors import StudyError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from .results import Results

MOST_PANELS = 12
COLUMNS = 3
PANEL = 2.0  # inches
LEGEND_ROW = 0.17
BANDS = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
SHADES = ("#DCEAF5", "#A9CDE6", "#6FA9D2")  # from all cases to the middle half


@style.styled
def plot_quantiles(self: Results, name: str, path: str | Path | None = None, entries: Any = None) -> Figure:
    """The spread of an array over time: median, middle 50 and 90 percent, and all cases.

    Each of its ``entries`` (labels; all by default, at most 12) has a panel.  Arrays without an axis of time have a box
    for each entry.
    """
    quantiles = self.quantiles(name, BANDS)
    if "t" not in quantiles.dims:
        return _boxes(self, name, quantiles, path)
    panels = _panels(quantiles, "t", entries)
    figure, axes = _grid(len(panels), sharex=True)
    for ax, (label, values) in zip(axes, panels, strict=False):
        t, rows = values["t"].values, values.transpose("quantile", "t").values
        for k, shade in enumerate(SHADES):
            share = ("all cases", "90 %", "50 %")[k]
            ax.fill_between(t, rows[k], rows[-1 - k], color=shade, linewidth=0, label=share)
        ax.plot(t, rows[len(BANDS) // 2], color=style.BLUE, label="median")
        ax.set_title(_title(name, label, values))
    _label(axes, len(panels), "time (s)", _axis_label(self, name))
    _legend(figure, axes[0])
    return style.save(figure, path)


@style.styled
def plot_histogram(
    self: Results, name: str, path: str | Path | None = None, bins: int = 50, entries: Any = None
) -> Figure:
    """Histograms of an array, a panel for each of its ``entries``; of arrays over time, at the last time."""
    histogram = self.histogram(name, bins)
    edges = histogram.attrs["edges"]
    if "t" in histogram.dims:
        histogram = histogram.isel(t=-1)
    panels = _panels(histogram, "bin", entries)
    figure, axes = _grid(len(panels), sharex=False)
    for ax, (label, values) in zip(axes, panels, strict=False):
        counts = values.values
        ax.stairs(counts, edges, fill=True, color=style.BLUE)
        hit = np.flatnonzero(counts)
        if hit.size:
            ax.set_xlim(edges[hit[0]], edges[hit[-1] + 1])
        ax.set_title(_title(name, label, values))
    _label(axes, len(panels), _axis_label(self, name), "cases")
    return style.save(figure, path)


@style.styled
def plot_sensitivity(
    self: Results, name: str, path: str | Path | None = None, entries: Any = None, most: int = 7
) -> Figure:
    """Sensitivity indices of an array, a panel for each of its ``entries``: curves over time of the ``most`` factors
    that matter most, or bars where there is no axis of time."""
    indices = self.sensitivity(name)
    kind = "total" if "total" in indices else "first"
    over_time = "t" in indices.dims
    panels = _panels(indices[kind], "t" if over_time else "factor", entries, keep=("factor",))
    strength = [np.nan_to_num(np.abs(x.values)).reshape(x.sizes["factor"], -1).max(axis=1) for _, x in panels]
    strongest = np.argsort(-np.max(strength, axis=0), kind="stable")[:most]
    panels = [(label, values.isel(factor=strongest)) for label, values in panels]
    figure, axes = _grid(len(panels), sharex=True, sharey=True)
    for ax, (label, values) in zip(axes, panels, strict=False):
        names = [str(factor) for factor in values["factor"].values]
        if over_time:
            for k, curve in enumerate(values.transpose("factor", "t").values):
                ax.plot(values["t"].values, curve, label=names[k], **style.curve(k))
            ax.set_ylim(-0.05, 1.05)
        else:
            ax.barh(names, values.values, color=style.BLUE)
        ax.set_title(label)
    if over_time:
        _label(axes, len(panels), "time (s)", f"{kind} index")
        _legend(figure, axes[0])
    else:
        axes[0].invert_yaxis()
        _label(axes, len(panels), f"{kind} index", "")
    figure.suptitle(f"{name}: sensitivity by {indices.attrs['estimator']}", fontsize=9)
    return style.save(figure, path)


def _boxes(results: Results, name: str, quantiles: Any, path: Any) -> Figure:
    """Medians, middle 50 and 90 percent of arrays without time."""
    panels = _panels(quantiles, "quantile", None, most=40)
    figure, ax = style.subplots(height=3.2)
    rows = np.array([values.values for _, values in panels])
    low, lower, quarter, median, three, upper, high = rows.T
    heights = np.arange(len(panels))
    ax.vlines(heights, low, high, color=SHADES[0], linewidth=10, label="all cases")
    ax.vlines(heights, lower, upper, color=SHADES[1], linewidth=10, label="90 %")
    ax.vlines(heights, quarter, three, color=SHADES[2], linewidth=10, label="50 %")
    ax.plot(heights, median, "_", color=style.BLUE, markersize=12, label="median")
    ax.set_xticks(heights, [label for label, _ in panels], rotation=30 if len(panels) > 6 else 0)
    ax.set_ylabel(_axis_label(results, name))
    _legend(figure, ax)
    return style.save(figure, path)


def _panels(
    values: Any, along: str, entries: Sequence[Any] | None, keep: Sequence[str] = (), most: int = MOST_PANELS
) -> list[tuple[str, Any]]:
    """(label, array along one axis) for every entry of the other axes."""
    lead = "quantile" if "quantile" in values.dims and along != "quantile" else None
    rest = [axis for axis in values.dims if axis not in (along, lead, *keep)]
    labels = [values[axis].values if axis in values.coords else range(values.sizes[axis]) for axis in rest]
    stacked = [
        (", ".join(map(str, (x[k] for x, k in zip(labels, index, strict=True)))), dict(zip(rest, index, strict=True)))
        for index in np.ndindex(*(values.sizes[axis] for axis in rest))
    ]
    if entries is not None:
        chosen = [entries] if isinstance(entries, str) else [str(entry) for entry in entries]
        known = [label for label, _ in stacked]
        for entry in chosen:
            if entry not in known:
                raise StudyError(f"no entry {entry!r} to show; available: {', '.join(known[:20])}")
        stacked = [pair for pair in stacked if pair[0] in chosen]
    elif len(stacked) > most:
        raise StudyError(
            f"{len(stacked)} entries are too many for one picture: choose some, entries=[{stacked[0][0]!r}, ...]"
        )
    return [(label, values.isel(index)) for label, index in stacked]


def _title(name: str, label: str, values: Any) -> str:
    """The label of an entry, with its unit where entries have several."""
    unit = values.coords.get(f"{name}_unit")
    return label if unit is None or unit.ndim or not str(unit.item()) else f"{label} ({unit.item()})"


def _grid(count: int, **options: Any) -> tuple[Any, list[Any]]:
    columns = min(COLUMNS, count)
    rows = math.ceil(count / columns)
    width = style.WIDTH if count > 1 else 0.7 * style.WIDTH
    figure, axes = style.subplots(rows, columns, width, max(2.8, PANEL * rows + 0.7), squeeze=False, **options)
    flat = list(axes.flat)
    for ax in flat[count:]:
        ax.set_visible(False)
    return figure, flat


def _label(axes: Sequence[Any], count: int, x: str, y: str) -> None:
    columns = min(COLUMNS, count)
    for k, ax in enumerate(axes[:count]):
        if k + columns >= count:
            ax.set_xlabel(x)
            ax.tick_params(labelbottom=True)
        if k % columns == 0:
            ax.set_ylabel(y)


def _legend(figure: Any, ax: Any) -> None:
    """Below the panels, in as many columns as fit."""
    handles, labels = ax.get_legend_handles_labels()
    for columns in range(min(4, len(labels)), 0, -1):
        legend = figure.legend(handles, labels, loc="outside lower center", ncols=columns)
        if legend.get_window_extent().width <= figure.bbox.width or columns == 1:
            break
        legend.remove()
    figure.set_figheight(figure.get_figheight() + (math.ceil(len(labels) / columns) - 1) * LEGEND_ROW)


def _axis_label(results: Results, name: str) -> str:
    unit = results.unit(name)
    return f"{name} ({unit})" if unit else name
