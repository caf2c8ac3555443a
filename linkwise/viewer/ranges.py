"""Ranges of motion and workspaces of closed mechanisms, with their singular positions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import linkwise as lw

from . import style
from .coordinates import ANGLE, LENGTH, Series, Units, all_series, measure_of
from .style import BLACK, GREEN, GREY, PURPLE, VERMILLION

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_CURVES = 7  # as many as there are colours
ROW = 2.4  # inches
NAMES = {
    "boundary": "boundary",
    "limit": "joint limit",
    "input": "input singularity",
    "output": "output singularity",
    "constraint": "constraint singularity",
}
LOOKS: dict[str, tuple[str, Any, str]] = {  # kind -> colour, line, marker
    "boundary": (BLACK, "-", "|"),
    "limit": (GREY, "--", "s"),
    "input": (VERMILLION, "-", "o"),
    "output": (PURPLE, "-.", "D"),
    "constraint": (GREEN, ":", "X"),
}


@style.styled
def plot_range(
    range_of_motion: Any,
    singular: Sequence[Any] = (),
    joints: Sequence[str] | None = None,
    path: str | Path | None = None,
    degrees: bool = False,
) -> Figure:
    """The other coordinates of a mechanism over one of them, as far as it goes, angles above distances.

    range_of_motion   from lw.linkages.range_of_motion
    singular          positions from lw.linkages.singular_positions, marked on the curves
    joints            those to show; by default all that move by one coordinate, up to seven
    degrees           angles in degrees; in radians by default

    Dashed lines are the ends of the range; where nothing stops the coordinate, one round is shown.
    """
    if not isinstance(range_of_motion, lw.linkages.RangeOfMotion):
        kind = type(range_of_motion).__name__
        raise TypeError(f"a RangeOfMotion is needed, got {kind}: make one with lw.linkages.range_of_motion")
    mech, motion, name = range_of_motion.mechanism, range_of_motion.path, range_of_motion.coordinate
    curves = [curve for curve in all_series(mech, joints) if curve.q is not None and curve.measures in (ANGLE, LENGTH)]
    if joints is None:  # all that move by one coordinate
        single = [c for c in curves if mech.bodies[mech.body_index(c.joint)].kind.nq == 1 and c.joint != name]
        curves = [curve for curve in single if np.ptp(curve.positions(motion.q)) > 1e-9][:MOST_CURVES]
    groups = list(filter(None, ([curve for curve in curves if curve.measures == of] for of in (ANGLE, LENGTH))))
    if not groups:
        raise ValueError(f"there is nothing to plot over {name!r}: no other joint moves")
    units = Units(degrees)
    scale = units.position_factor(measure_of(mech, name))
    figure, grid = style.subplots(len(groups), 1, style.WIDTH, 0.6 + ROW * len(groups), sharex=True, squeeze=False)
    for ax, group in zip(grid[:, 0], groups, strict=True):
        factor = units.position_factor(group[0].measures)
        for k, curve in enumerate(group):
            values = factor * curve.positions(motion.q)
            ax.plot(scale * range_of_motion.values, values, label=curve.label, **style.curve(k))
        for end in range_of_motion.ends:
            if np.isfinite(end.value):
                ax.axvline(scale * end.value, color=GREY, linestyle="--", linewidth=0.9, zorder=1)
        _mark_positions(ax, group, singular, range_of_motion, scale, factor)
        ax.set_ylabel(units.label(group[0].measures, group[0].measures))
        ax.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), borderaxespad=0.0)
    grid[-1, 0].set_xlabel(units.label(name, measure_of(mech, name)))
    title = f"nothing stops {name}"
    if all(np.isfinite(end.value) for end in range_of_motion.ends):
        low, high = (replace(end, value=scale * end.value) for end in range_of_motion.ends)
        title = f"{name} from {low} to {high}"
    grid[0, 0].set_title(f"{mech.name}: {title}", loc="left")
    return style.save(figure, path)


def _mark_positions(
    ax: Any, group: Sequence[Series], singular: Sequence[Any], travel: Any, scale: float, factor: float
) -> None:
    """Markers at singular positions on every curve; ``scale`` and ``factor`` convert units of both axes."""
    by_kind: dict[str, list[np.ndarray]] = {}
    for position in singular:
        family, q = travel.path.family, travel.path.q  # positions of another path may be whole turns away
        shortest = family.shortest(q, np.broadcast_to(position.q, q.shape))
        nearest = int(np.argmin(np.linalg.norm(shortest, axis=-1)))
        turns = shortest[nearest] - family.difference(q[nearest], position.q)
        by_kind.setdefault(position.kind, []).append(np.asarray(family.moved(position.q, turns)))
    for kind, states in by_kind.items():
        q = np.array(states)
        colour, _, marker = LOOKS[kind]
        across = np.array([travel.value_at(row) for row in q])
        for k, curve in enumerate(group):
            look = {"color": colour, "marker": marker, "s": 26, "zorder": 4, "label": NAMES[kind] if k == 0 else None}
            ax.scatter(scale * across, factor * curve.positions(q), **look)


@style.styled
def plot_workspace(
    workspace: Any, path: str | Path | None = None, shade: str | None = None, degrees: bool = False
) -> Figure:
    """The workspace of two coordinates in one assembly mode, its boundary, and curves of singular positions.

    workspace   from lw.linkages.workspace
    shade       one of its measures ("input", "output", "constraint") as shades: pale where it is near zero
    degrees     angles in degrees; in radians by default
    """
    if not isinstance(workspace, lw.linkages.Workspace):
        raise TypeError(f"a Workspace is needed, got {type(workspace).__name__}: make one with lw.linkages.workspace")
    if shade is not None and shade not in workspace.measures:
        raise ValueError(f"the workspace has no measure {shade!r}: available: {', '.join(workspace.measures)}")
    mech, names = workspace.mechanism, workspace.coordinates
    measured, units = [measure_of(mech, name) for name in names], Units(degrees)
    scales = np.array([units.position_factor(measures) for measures in measured])
    axes = [scale * values for scale, values in zip(scales, (workspace.first, workspace.second), strict=True)]
    figure = style.figure(5.8, 4.6)
    ax = figure.add_subplot()
    if shade is None:
        from matplotlib.colors import ListedColormap

        reached = np.where(workspace.is_reached, 1.0, np.nan)
        ax.pcolormesh(*axes, reached.T, cmap=ListedColormap([style.SKY]), alpha=0.25)
    else:
        sizes = np.abs(workspace.measures[shade])
        mesh = ax.pcolormesh(*axes, sizes.T, cmap="Blues", shading="nearest", vmin=0.0)
        figure.colorbar(mesh, ax=ax, shrink=0.7, label=f"{shade} measure")
    seen: set[str] = set()
    for curve in workspace.curves:
        points = np.concatenate([curve.points, curve.points[:1]]) if curve.is_closed else curve.points
        points = scales * points
        colour, line, _ = LOOKS[curve.kind]
        label = None if curve.kind in seen else NAMES[curve.kind]
        ax.plot(points[:, 0], points[:, 1], color=colour, linestyle=line, linewidth=1.6, label=label)
        seen.add(curve.kind)
    across, up = (units.label(name, measures) for name, measures in zip(names, measured, strict=True))
    ax.set(xlabel=across, ylabel=up, xlim=axes[0][[0, -1]], ylim=axes[1][[0, -1]])
    ax.set_title(f"{mech.name}: where {names[0]} and {names[1]} can be", loc="left")
    if measured == [LENGTH, LENGTH]:
        ax.set_aspect("equal")
    if seen:
        figure.legend(loc="outside lower center", ncols=len(seen))
    return style.save(figure, path)
