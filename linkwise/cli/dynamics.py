"""linkwise dynamics: torques of trajectories, accelerations under torques, and motions, from files to files."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import click
import numpy as np

import linkwise as lw
from linkwise.mechanism.dh import CONVENTIONS
from linkwise.reproduce.free_motion import simulate as followed

from .mechanism import loaded, report_warnings
from .tables import Table, read_table, write_table

#: Which coordinates of a joint are angles, and which are lengths; those of other joints are neither.
ANGLES: dict[type, tuple[int, ...]] = {
    lw.Revolute: (0,),
    lw.Helical: (0,),
    lw.Universal: (0, 1),
    lw.Cylindrical: (0,),
    lw.Planar: (2,),
}
LENGTHS: dict[type, tuple[int, ...]] = {lw.Prismatic: (0,), lw.Cylindrical: (1,), lw.Planar: (0, 1)}
MAX_ANGLE, MAX_LENGTH = 4.0 * math.pi, 50.0  # beyond these, numbers look like degrees and millimetres
MAX_ROWS = 10_000_000


def robot_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """What the commands have in common: the mechanism, its gravity, units and the place of the result."""
    for option in (
        click.option("--output", "-o", metavar="FILE", help="A .csv or .npz file; CSV on standard output if left out."),
        click.option("--trust-units", is_flag=True, help="Accept numbers that look like degrees or millimetres."),
        click.option("--degrees", is_flag=True, help="Angles, and their rates, in degrees, in and out."),
        click.option("--gravity", type=float, nargs=3, metavar="X Y Z", help="In the ground frame, m/s^2."),
        click.option(
            "--convention", type=click.Choice(CONVENTIONS), help="Of a DH table, instead of the one in its file."
        ),
        click.argument("robot"),
    ):
        command = option(command)
    return command


@click.group()
def dynamics() -> None:
    """Inverse and forward dynamics of trajectories, and simulation.

    ROBOT is a URDF file, builtin:NAME[:NUMBER...], or a DH table (.toml or .csv). Tables of numbers are CSV files with
    the columns t, q1 ..., v1 ..., a1 ..., tau1 ..., or npz files with arrays t, q, v, a, tau, one row per state.
    """


@dynamics.command()
@robot_options
@click.argument("trajectory")
def inverse(robot, trajectory, convention, gravity, degrees, trust_units, output) -> None:
    """Joint torques and forces (tau) along a TRAJECTORY with q, v and a."""
    mech = _mechanism(robot, convention, gravity, trust_units)
    table = _read(trajectory, mech, ("q", "v", "a"), degrees, trust_units)
    tau = lw.inverse_dynamics(mech, table["q"], table["v"], table["a"])
    _write(output, mech, {**_time(table), "tau": tau}, degrees)


@dynamics.command()
@robot_options
@click.argument("states")
def forward(robot, states, convention, gravity, degrees, trust_units, output) -> None:
    """Joint accelerations (a) in STATES with q, v and tau."""
    mech = _mechanism(robot, convention, gravity, trust_units)
    table = _read(states, mech, ("q", "v", "tau"), degrees, trust_units)
    a = lw.forward_dynamics(mech, table["q"], table["v"], table["tau"])
    _write(output, mech, {**_time(table), "a": a}, degrees)


@dynamics.command()
@robot_options
@click.option("--start", metavar="FILE", help="Initial state: the first row of a table with q, and v unless at rest.")
@click.option("--torques", metavar="FILE", help="Table with t and tau, joined by straight lines; free fall without it.")
@click.option("--duration", type=float, help="Seconds; needed for a free fall, otherwise until the last torque.")
@click.option("--step", type=float, default=0.01, show_default=True, help="Seconds between rows of the result.")
def simulate(robot, start, torques, duration, step, convention, gravity, degrees, trust_units, output) -> None:
    """Motion (t, q, v, a, energy) under torques, or in free fall, from rest at zero coordinates or from --start."""
    mech = _mechanism(robot, convention, gravity, trust_units)
    q, v = lw.neutral(mech), np.zeros(mech.nv)
    if start:
        table = _read(start, mech, ("q",), degrees, trust_units, optional=("v",))
        q, v = table["q"][0], table.get("v", v[None])[0]
    first, last, tau = 0.0, duration, None
    if torques:
        table = read_table(torques, mech, ("t", "tau"), ())
        t, values = table["t"], table["tau"]
        if len(t) < 2 or not (np.diff(t) > 0.0).all():
            raise click.UsageError(f"{torques}: t must increase from row to row, over two rows at least")
        first, last = float(t[0]), float(t[-1]) if duration is None else float(t[0]) + duration
        if last > t[-1] + 1e-9:
            raise click.UsageError(f"{torques} ends at t = {t[-1]:g} s, before the end of the motion at {last:g} s")
        tau = _straight_lines(t, values)
    if last is None:
        raise click.UsageError("a free fall needs --duration")
    if not (math.isfinite(last) and last > first and math.isfinite(step) and step > 0.0):
        raise click.UsageError("--duration and --step must be positive")
    rows = round((last - first) / step) + 1
    if not 2 <= rows <= MAX_ROWS:
        raise click.UsageError(
            f"--step {step:g} gives {rows} rows: choose it between the duration and its {MAX_ROWS:g}th"
        )
    try:
        motion = followed(mech, q, v, np.linspace(first, last, rows), tau)
    except ArithmeticError as error:
        raise click.UsageError(str(error)) from None
    result = {"t": motion.t, "q": motion.q, "v": motion.v, "a": motion.a, "energy": motion.energy}
    _write(output, mech, result, degrees)


def _straight_lines(t: np.ndarray, values: np.ndarray) -> Callable[[float], np.ndarray]:
    return lambda time: np.array([np.interp(time, t, column) for column in values.T])


# -- robots and units ---------------------------------------------------------------------------------


def _mechanism(robot: str, convention: str | None, gravity: tuple[float, ...] | None, trust: bool) -> lw.Mechanism:
    found = loaded(robot, convention=convention, trust_units=trust)
    report_warnings(found)
    return found.mechanism.with_gravity(gravity) if gravity else found.mechanism


def _places(mech: lw.Mechanism, kinds: dict[type, tuple[int, ...]], quantity: str) -> list[int]:
    """Indices of the numbers of a quantity that are of ``kinds``."""
    index = mech.q_index if quantity == "q" else mech.v_index
    return [
        index(body.joint).start + k for body in mech.bodies if not body.mimic for k in kinds.get(type(body.kind), ())
    ]


def _read(path, mech: lw.Mechanism, needed, degrees: bool, trust: bool, optional=("t",)) -> Table:
    table = read_table(path, mech, needed, optional)
    for quantity in ("q", "v", "a"):
        if degrees and quantity in table:
            table[quantity][:, _places(mech, ANGLES, quantity)] *= math.pi / 180.0
    if not trust:
        _check_units(path, mech, table["q"])
    return table


def _check_units(path: str, mech: lw.Mechanism, q: np.ndarray) -> None:
    for kinds, limit, looks_like, remedy in (
        (ANGLES, MAX_ANGLE, "degrees", "radians are expected: use --degrees, or --trust-units if they are radians"),
        (LENGTHS, MAX_LENGTH, "millimetres", "metres are expected: --trust-units if they are metres"),
    ):
        for k in _places(mech, kinds, "q"):
            largest = np.abs(q[:, k]).max()
            if largest > limit:
                raise click.UsageError(f"{path}: q{k + 1} reaches {largest:g}, which looks like {looks_like}; {remedy}")


def _time(table: Table) -> Table:
    return {"t": table["t"]} if "t" in table else {}


def _write(output: str | None, mech: lw.Mechanism, table: Table, degrees: bool) -> None:
    for quantity in ("q", "v", "a"):
        if degrees and quantity in table:
            table[quantity] = table[quantity].copy()
            table[quantity][:, _places(mech, ANGLES, quantity)] *= 180.0 / math.pi
    write_table(output, table)
