"""A motion over time: positions, velocities, energies, and how well loops stay closed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import linkwise as lw

from . import style
from .configurations import mechanism_of
from .coordinates import ANGLE, DISTANCE, OTHER, ROTATION, UNITS, Series, all_series
from .style import BLACK, COLOURS, STYLES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_CURVES = 7  # in one panel: as many as there are colours
ROW = 1.75  # inches
FEW = 400  # samples: curves through fewer show corners
TITLES = {ANGLE: "angle", DISTANCE: "distance", ROTATION: "quaternion", OTHER: "coordinate"}


@dataclass(frozen=True)
class States:
    """t (m,), q (m, nq), v (m, nv), and what a trajectory says of its own energy and loops, if it does.

    ``smooth`` are the same t, q, v, with more between the samples where a trajectory has few and can interpolate.
    """

    mech: lw.Mechanism
    t: np.ndarray
    q: np.ndarray
    v: np.ndarray
    energy: np.ndarray | None
    constraint_error: np.ndarray | None
    smooth: tuple[np.ndarray, np.ndarray, np.ndarray]


@style.styled
def plot_trajectory(
    trajectory: Any,
    path: str | Path | None = None,
    mech: lw.Mechanism | None = None,
    joints: Sequence[str] | None = None,
    energy: bool = True,
    loops: bool = True,
) -> Figure:
    """Positions and velocities of the joints, energies and their drift, and errors of loops over time.

    trajectory   anything with ``t`` (m,), ``q`` (m, nq), ``v`` (m, nv) and its mechanism, such as that of lw.simulate
    mech         its mechanism, if it does not know it
    joints       those to show; by default all with coordinates of their own
    energy       kinetic, potential and total energy, and the change of the total
    loops        of a mechanism with loops: how far they are open and how fast their sides slip

    Up to seven curves of one unit share a panel.  Quaternions are shown as their four numbers, of the sign that makes
    them continuous, beside the angular velocity in the axes of the moving link.
    """
    states = _states(trajectory, mech)
    groups = _groups(all_series(states.mech, joints))
    energies, closed = energy, loops and bool(states.mech.loops)
    rows = len(groups) + energies + closed
    if rows == 0:
        raise ValueError("there is nothing to plot: no joints, no energy, no loops")
    figure, grid = style.subplots(rows, 2, style.WIDTH, 0.35 + ROW * rows, sharex=True, squeeze=False)
    for pair, group in zip(grid, groups, strict=False):
        _plot_group(pair, states, group)
    if energies:
        _plot_energy(grid[len(groups)], states)
    if closed:
        _plot_loops(grid[-1], states)
    for ax in grid.flat:
        ax.set_xlim(states.t[0], states.t[-1]) if len(states.t) > 1 else None
    for ax in grid[-1]:
        ax.set_xlabel("time (s)")
    return style.save(figure, path)


def _states(trajectory: Any, mech: lw.Mechanism | None) -> States:
    missing = [name for name in ("t", "q", "v") if not hasattr(trajectory, name)]
    if missing:
        raise TypeError(f"a trajectory has t, q and v; {type(trajectory).__name__} has no {' and no '.join(missing)}")
    mech = mechanism_of(trajectory) if mech is None else mech
    t, q, v = (np.asarray(getattr(trajectory, name), dtype=float) for name in "tqv")
    if q.shape != (len(t), mech.nq) or v.shape != (len(t), mech.nv):
        raise ValueError(
            f"one motion is plotted: t (m,), q (m, {mech.nq}) and v (m, {mech.nv}), but the shapes are {t.shape}, "
            f"{q.shape} and {v.shape}; choose one of a batch"
        )
    own = [getattr(trajectory, name, None) for name in ("energy", "constraint_error")]
    own = [None if x is None else np.asarray(x, dtype=float) for x in own]
    smooth = (t, q, v)
    if hasattr(trajectory, "at") and 1 < len(t) < FEW:
        times = np.union1d(t, np.linspace(t[0], t[-1], FEW))
        smooth = (times, *trajectory.at(times))
    return States(mech, t, q, v, own[0], own[1], smooth)


def _groups(every: list[Series]) -> list[list[Series]]:
    """Curves that share a row: same unit, at most as many as colours; quaternions joint by joint."""
    groups: list[list[Series]] = []
    for measures in (ANGLE, DISTANCE, OTHER):
        same = [one for one in every if one.measures == measures]
        rows = -(-len(same) // MOST_CURVES)
        groups += [list(part) for part in np.array_split(np.array(same, dtype=object), rows)] if rows else []
    rotations = [one for one in every if one.measures == ROTATION]
    return groups + [rotations[i : i + 4] for i in range(0, len(rotations), 4)]


def _plot_group(pair: Any, states: States, group: list[Series]) -> None:
    measures = group[0].measures
    unit, rate_unit = UNITS[measures]
    positions, rates = pair
    t, q, v = states.smooth
    signs = _continuous_signs(np.stack([q[:, one.q] for one in group], axis=-1)) if measures == ROTATION else 1.0
    for k, one in enumerate(group, -1 if measures == ROTATION else 0):  # x, y, z as the angular velocities, w black
        look = {"color": COLOURS[k], "linestyle": STYLES[k]}
        if one.q is not None:
            positions.plot(t, signs * q[:, one.q], label=one.name, **look)
        if one.v is not None:
            rates.plot(t, v[:, one.v], label=None if one.q is not None else one.name, **look)
    positions.set_ylabel(f"{TITLES[measures]} ({unit})" if unit else TITLES[measures])
    rates.set_ylabel(f"{'angular velocity' if measures == ROTATION else 'velocity'} ({rate_unit})")
    _legend(rates, positions)


def _legend(ax: Any, *others: Any) -> None:
    """The names of the curves of all axes of a row, right of it."""
    curves = [line for one in (*others, ax) for line in one.get_lines() if not line.get_label().startswith("_")]
    ax.legend(handles=curves, loc="center left", bbox_to_anchor=(1.01, 0.5), borderaxespad=0.0, handlelength=1.6)


def _continuous_signs(quaternions: np.ndarray) -> np.ndarray:
    """(m,): q and -q are the same rotation; the signs with which each follows its neighbour."""
    turned = np.einsum("ij,ij->i", quaternions[1:], quaternions[:-1]) < 0.0
    return np.cumprod(np.concatenate([[1.0], np.where(turned, -1.0, 1.0)]))


def _plot_energy(pair: Any, states: States) -> None:
    kinetic = lw.kinetic_energy(states.mech, states.q, states.v)
    potential = lw.potential_energy(states.mech, states.q)
    total = kinetic + potential if states.energy is None else states.energy
    energies, drift = pair
    curves = {"kinetic": kinetic, "potential": potential, "total": total}
    stored = total - kinetic - potential
    if np.abs(stored).max(initial=0.0) > 1e-9 * max(np.abs(total).max(initial=0.0), np.abs(kinetic).max(initial=0.0)):
        curves = {"kinetic": kinetic, "potential": potential, "springs, stops": stored, "total": total}
    for (name, values), colour, line in zip(curves.items(), (*COLOURS[: len(curves) - 1], BLACK), STYLES, strict=False):
        energies.plot(states.t, values, color=colour, linestyle=line, label=name)
    energies.set_ylabel("energy (J)")
    scale = kinetic.max(initial=0.0) or np.ptp(potential) or 1.0
    drift.plot(states.t, (total - total[0]) / scale, color=BLACK)
    drift.set_ylabel("change of total\n/ largest kinetic")
    _legend(drift, energies)


def _plot_loops(pair: Any, states: States) -> None:
    error = states.constraint_error
    if error is None:
        error = np.linalg.norm(lw.closed.position_error(states.mech, states.q), axis=-1)
    jacobian = lw.closed.constraint_jacobian(states.mech, states.q)
    slip = np.linalg.norm((jacobian @ states.v[..., None])[..., 0], axis=-1)
    for ax, values, label in zip(pair, (error, slip), ("loop error (m)", "slip in loops (m/s)"), strict=True):
        ax.plot(states.t, values, color=COLOURS[1])
        ax.set_ylabel(label)
        if values.max(initial=0.0) > 0.0:
            ax.set_yscale("log", nonpositive="mask")
