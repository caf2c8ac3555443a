"""A motion over time: positions, velocities, forces, energies, events, and how well loops stay closed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import linkwise as lw

from . import style
from .configurations import mechanism_of
from .coordinates import ANGLE, FORCES, LENGTH, OTHER, QUATERNION, Series, Units, all_series, measure_of
from .style import BLACK, COLOURS, GREY, STYLES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_CURVES = 7  # in one panel: as many as there are colours
ROW = 1.75  # inches
DRIVEN_WIDTH = 9.2  # inches, with a third column for forces
FEW = 400  # samples: curves through fewer show corners
ROUND_OFF = 1e-12  # of the largest value, or of 1 rad, 1 m, ...: curves that vary less are shown as constants
TITLES = {ANGLE: "angle", LENGTH: "distance", QUATERNION: "quaternion", OTHER: "coordinate"}
RADIANS = Units()
DASHES = (":", "--", "-.", "-")  # of events


@dataclass(frozen=True)
class States:
    """The plotted quantities of a trajectory, or of a driven motion over the positions of its input.

    t, q, v        (m,), (m, nq), (m, nv)
    tau            (m, nv): commanded joint forces; None where all are zero
    conserves      whether nothing adds or takes energy
    smooth         t, q, v with more samples, where a trajectory has few and can interpolate
    passive        force elements that store energy
    drive_forces   by drive, at the times of ``smooth``
    a              (m, nv): accelerations of a driven motion
    over           label of t
    """

    mech: lw.Mechanism
    t: np.ndarray
    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray | None
    energy: np.ndarray | None
    constraint_error: np.ndarray | None
    conserves: bool
    events: Sequence[Any]
    smooth: tuple[np.ndarray, np.ndarray, np.ndarray]
    passive: Any
    velocity_error: np.ndarray | None = None
    drive_forces: Mapping[str, np.ndarray] = field(default_factory=dict)
    a: np.ndarray | None = None
    over: str = "time (s)"
    units: Units = RADIANS


@style.styled
def plot_trajectory(
    trajectory: Any,
    path: str | Path | None = None,
    mech: lw.Mechanism | None = None,
    joints: Sequence[str] | None = None,
    energy: bool = True,
    loops: bool = True,
    degrees: bool = False,
) -> Figure:
    """Positions, velocities and forces of the joints, energies, errors of loops, and events over time.

    trajectory   a driven motion (``lw.linkages.driven_motion``), which is shown over the positions of its input, with
                 its accelerations; or anything with ``t`` (m,), ``q`` (m, nq), ``v`` (m, nv) and its mechanism, such as
                 that of lw.simulate; ``tau`` (m, nv), ``events``, ``energy``, ``passive`` and ``wrenches`` are used
                 where it has them
    mech         the mechanism of a trajectory without one
    joints       those to show; by default all with coordinates of their own
    energy       kinetic, potential and total energy; beside them the change of the total where nothing adds or takes
                 energy, the power of the joint forces where there are any
    loops        of a mechanism with loops: how far they are open and how fast their sides slip; not of driven motions
    degrees      angles, their rates and accelerations in degrees; in radians by default

    Up to seven curves of one unit share a panel.  Quaternions are shown as four continuous numbers, beside the angular
    velocity in the axes of the moving link.  Commanded forces are shown where any differs from zero.  Forces and power
    of drives have their own row.
    """
    states = _states(trajectory, mech, Units(degrees))
    groups = _groups(all_series(states.mech, joints))
    closed = loops and bool(states.mech.loops) and states.a is None  # driven motions are made closed
    driven = bool(states.drive_forces)
    rows = len(groups) + driven + energy + closed
    if rows == 0:
        raise ValueError("there is nothing to plot: no joints, no energy, no loops")
    panels = _Panels(rows, 2 if states.tau is None and states.a is None else 3, states)
    for row, group in enumerate(groups):
        _plot_group(panels, row, states, group)
    if driven:
        _plot_drives(panels, len(groups), states)
    if energy:
        _plot_energy(panels, len(groups) + driven, states)
    if closed:
        _plot_loops(panels, rows - 1, states)
    panels.finish()
    return style.save(panels.figure, path)


class _Panels:
    """Axes over one time in rows and columns, not all of which are filled."""

    def __init__(self, rows: int, columns: int, states: States):
        self.columns, self._states = columns, states
        self.figure = style.figure(style.WIDTH if columns == 2 else DRIVEN_WIDTH, 0.35 + ROW * rows)
        self._grid = self.figure.add_gridspec(rows, columns)
        self._lowest: dict[int, Any] = {}  # column -> axes

    def add(self, row: int, column: int) -> Any:
        axes = self.figure.axes
        ax = self._lowest[column] = self.figure.add_subplot(self._grid[row, column], sharex=axes[0] if axes else None)
        return ax

    def finish(self) -> None:
        """The common time, below the lowest panels; events across all of them."""
        t = self._states.t
        for ax in self.figure.axes:
            if len(t) > 1:
                ax.set_xlim(t.min(), t.max())
            ax.tick_params(labelbottom=ax in self._lowest.values())
            if ax in self._lowest.values():
                ax.set_xlabel(self._states.over)
        names = list(dict.fromkeys(event.name for event in self._states.events))
        looks: dict[str, dict[str, Any]] = {
            name: {"color": GREY, "ls": DASHES[k % len(DASHES)], "lw": 0.9} for k, name in enumerate(names)
        }
        for ax in self.figure.axes:
            for event in self._states.events:
                ax.axvline(event.t, zorder=0.9, **looks[event.name])
        if names:
            from matplotlib.lines import Line2D

            keys = [Line2D([], [], label=name, **look) for name, look in looks.items()]
            self.figure.legend(handles=keys, loc="outside upper center", ncols=min(len(keys), 3))


def _states(trajectory: Any, mech: lw.Mechanism | None, units: Units = RADIANS) -> States:
    if isinstance(trajectory, lw.linkages.DrivenMotion):
        name, values = trajectory.over
        mech, measures = trajectory.mech, measure_of(trajectory.mech, name)
        smooth = (units.position_factor(measures) * values, trajectory.q, trajectory.v)
        shown: dict[str, Any] = {"a": trajectory.a, "over": units.label(name, measures), "units": units}
        return States(mech, *smooth, None, None, None, False, (), smooth, None, **shown)
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
    series = [getattr(trajectory, name, None) for name in ("tau", "energy", "constraint_error", "velocity_error")]
    tau, energy, error, slip = [None if x is None else np.asarray(x, dtype=float) for x in series]
    if tau is not None and tau.shape != v.shape:
        raise ValueError(f"tau has shape {tau.shape}, expected {v.shape} as v")
    tau = tau if tau is not None and tau.any() else None
    smooth = (t, q, v)
    if hasattr(trajectory, "at") and 1 < len(t) < FEW:
        times = np.union1d(t, np.linspace(t[0], t[-1], FEW))
        smooth = (times, *trajectory.at(times))
    conserves = tau is None and not _dissipates(mech, trajectory)
    events, passive = getattr(trajectory, "events", ()), getattr(trajectory, "passive", None)
    drives = getattr(trajectory, "drive_forces", {})
    if drives and hasattr(trajectory, "resampled"):  # steps may be far apart, and peaks between them
        drives = trajectory.resampled(smooth[0]).drive_forces
    return States(mech, t, q, v, tau, energy, error, conserves, events, smooth, passive, slip, drives, units=units)


def _dissipates(mech: lw.Mechanism, trajectory: Any) -> bool:
    """Whether something other than joint forces adds or takes energy: drives, wrenches, actuators, dampers,
    friction."""
    if mech.constraints.driven:
        return True
    passive, active = getattr(trajectory, "passive", None), mech.forces.active
    of_joints = () if passive is not None else ("damping", "friction", "limits")
    if not {*of_joints, "actuators", "tendons", "contact"}.isdisjoint(active):
        return True
    elements = getattr(passive, "elements", ())
    taking = any(np.any(getattr(element, name, 0.0)) for element in elements for name in ("damping", "friction"))
    wrenches = getattr(trajectory, "wrenches", None)
    return taking or (wrenches is not None and bool(np.any(wrenches)))


def _groups(every: list[Series]) -> list[list[Series]]:
    """Curves by row: those of one unit, at most one per colour; quaternions joint by joint."""
    groups: list[list[Series]] = []
    for measures in (ANGLE, LENGTH, OTHER):
        same = [curve for curve in every if curve.measures == measures]
        rows = -(-len(same) // MOST_CURVES)
        groups += [list(part) for part in np.array_split(np.array(same, dtype=object), rows)] if rows else []
    rotations = [curve for curve in every if curve.measures == QUATERNION]
    return groups + [rotations[i : i + 4] for i in range(0, len(rotations), 4)]


def _plot_group(panels: _Panels, row: int, states: States, group: list[Series]) -> None:
    measures = group[0].measures
    unit, rate_unit = states.units.names(measures)
    factor, rate_factor = states.units.position_factor(measures), states.units.rate_factor(measures)
    axes = [panels.add(row, column) for column in range(panels.columns)]
    positions, rates, *forces = axes
    t, q, v = states.smooth
    signs: Any = 1.0
    if measures == QUATERNION:  # q and -q are one rotation: the signs that make it continuous
        quaternions = np.stack([curve.positions(q) for curve in group], axis=-1)
        turned = np.einsum("ij,ij->i", quaternions[1:], quaternions[:-1]) < 0.0
        signs = np.cumprod(np.concatenate([[1.0], np.where(turned, -1.0, 1.0)]))
    for k, curve in enumerate(group, -1 if measures == QUATERNION else 0):  # x, y, z as the angular velocities, w black
        look = {"color": COLOURS[k], "linestyle": STYLES[k]}
        if curve.q is not None:
            positions.plot(t, factor * signs * curve.positions(q), label=curve.label, **look)
        if curve.v is not None:
            rates.plot(t, rate_factor * curve.velocities(v), label=None if curve.q is not None else curve.label, **look)
        force = curve.forces(states.tau) if states.tau is not None else None
        if force is not None:
            forces[0].plot(states.t, force, **look)
        if states.a is not None and curve.v is not None:
            forces[0].plot(states.t, rate_factor * curve.velocities(states.a), **look)
    positions.set_ylabel(f"{TITLES[measures]} ({unit})" if unit else TITLES[measures])
    rates.set_ylabel(f"{'angular velocity' if measures == QUATERNION else 'velocity'} ({rate_unit})")
    for ax in forces:
        ax.set_ylabel(FORCES[measures] if states.a is None else f"acceleration ({rate_unit}²)")
    for ax in (positions, rates):
        values = np.concatenate([np.zeros(0), *(line.get_ydata() for line in ax.get_lines())])
        middle = values.mean() if len(values) else 0.0
        scale = max(1.0, abs(middle))
        if np.abs(values - middle).max(initial=0.0) < ROUND_OFF * scale:  # which would fill the panel
            ax.set_ylim(middle - 0.05 * scale, middle + 0.05 * scale)
    _legend(axes[-1], *axes[:-1])


def _legend(ax: Any, *others: Any, beside_nothing: bool = False) -> None:
    """The names of the curves of all axes of a row, right of it, or in the space of a missing panel."""
    curves = [line for panel in (*others, ax) for line in panel.get_lines() if not line.get_label().startswith("_")]
    legend = ax.legend(
        handles=curves, loc="center left", bbox_to_anchor=(1.01, 0.5), borderaxespad=0.0, handlelength=1.6
    )
    legend.set_in_layout(not beside_nothing)


def _energies(mech: lw.Mechanism, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Kinetic and potential energy (m,)."""
    return lw.kinetic_energy(mech, q, v), lw.potential_energy(mech, q)


def _plot_energy(panels: _Panels, row: int, states: States) -> None:
    mech, kinetic, potential = states.mech, *_energies(states.mech, states.q, states.v)
    total = kinetic + potential if states.energy is None else states.energy
    stored = total - kinetic - potential
    largest = max(np.abs(total).max(initial=0.0), np.abs(kinetic).max(initial=0.0))
    has_stored = bool(np.abs(stored).max(initial=0.0) > 1e-9 * largest)
    t, q, v = states.smooth
    curves = dict(zip(("kinetic", "potential"), _energies(mech, q, v), strict=True))
    if has_stored and hasattr(states.passive, "energy"):
        curves["springs, stops"] = states.passive.energy(mech, q)
    elif has_stored:  # it is known at the samples alone
        t, curves = states.t, {"kinetic": kinetic, "potential": potential, "springs, stops": stored}
    curves["total"] = np.sum(list(curves.values()), axis=0)
    energies = panels.add(row, 0)
    for (name, values), colour, line in zip(curves.items(), (*COLOURS[: len(curves) - 1], BLACK), STYLES, strict=False):
        energies.plot(t, values, color=colour, linestyle=line, label=name)
    energies.set_ylabel("energy (J)")
    if not states.conserves and states.tau is None:
        _legend(energies, beside_nothing=True)
        return
    beside = panels.add(row, 1)
    if states.tau is not None:
        beside.plot(states.t, np.sum(states.tau * states.v, axis=-1), color=BLACK)
        beside.set_ylabel("power of\njoint forces (W)")
    else:
        scale = kinetic.max(initial=0.0) or np.ptp(potential) or 1.0
        beside.plot(states.t, (total - total[0]) / scale, color=BLACK)
        beside.set_ylabel("change of total\n/ largest kinetic")
    _legend(beside, energies, beside_nothing=panels.columns > 2)


def _plot_drives(panels: _Panels, row: int, states: States) -> None:
    forces, powers = panels.add(row, 0), panels.add(row, 1)
    times = states.smooth[0]
    rates = np.array([states.mech.constraints.drives_at(t)[:, 1] for t in times])
    for k, (name, values) in enumerate(states.drive_forces.items()):
        forces.plot(times, values, label=name, **style.curve(k))
        powers.plot(times, values * rates[:, k], **style.curve(k))
    forces.set_ylabel("force of drives\n(N or N m)")
    powers.set_ylabel("power of\ndrives (W)")
    _legend(powers, forces, beside_nothing=panels.columns > 2)


def _plot_loops(panels: _Panels, row: int, states: States) -> None:
    error = states.constraint_error
    if error is None:
        error = np.linalg.norm(lw.constraints.position_error(states.mech, states.q), axis=-1)
    slip = states.velocity_error
    if slip is None:
        jacobian = lw.constraints.constraint_jacobian(states.mech, states.q)
        slip = np.linalg.norm((jacobian @ states.v[..., None])[..., 0], axis=-1)
    for column, (values, label) in enumerate(((error, "loop error (m)"), (slip, "slip in loops (m/s)"))):
        ax = panels.add(row, column)
        ax.plot(states.t, values, color=COLOURS[1])
        ax.set_ylabel(label)
        if values.max(initial=0.0) > 0.0:
            ax.set_yscale("log", nonpositive="mask")
