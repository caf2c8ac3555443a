"""linkwise simulate: a motion in time, as numbers, pictures and files."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click
import numpy as np

import linkwise as lw

from .acting import (
    Idle,
    acting_lines,
    acting_options,
    at_effort_limits,
    controls,
    idle_elements,
    idle_limits,
    limit_options,
    with_acting,
)
from .control import Driving, control_options
from .files import PIPE, check_output, check_picture
from .mechanism import Loaded, report_warnings, takes_mechanism
from .screen import as_json, section, shown, table
from .state import coordinates, state, state_options
from .tables import write_csv
from .units import DEGREE, DEGREES, RADIANS, scaled

MAX_ROWS = 10_000_000
DIGITS = 12  # behind the point, on the screen: beyond them is round-off
INTERRUPTED = 130  # exit code, as of every program that Ctrl-C ended


@click.command(short_help="A motion in time: numbers, plots, animations.")
@takes_mechanism
@click.option("--duration", type=float, help="Seconds; with --torques, until the last of them by default.")
@state_options
@click.option(
    "--method",
    metavar="NAME",
    help="Integrator: dop853, rk45, rk23, radau, bdf, lsoda; with fixed steps rk4, semi_implicit.  [default: dop853, "
    "and radau where friction of contacts acts]",
)
@click.option(
    "--coordinates",
    "variables",
    metavar="NAME",
    default="joint",
    show_default=True,
    help="What is integrated: joint, momentum (fixed steps also symplectic_euler, stormer_verlet, implicit_midpoint), "
    "nu, xi, independent.",
)
@click.option(
    "--step", type=float, help="Fixed step (0.001 s at usual sizes), or the longest step of adaptive methods."
)
@click.option(
    "--tolerance",
    type=float,
    help="Relative and absolute, of adaptive methods; by default 1e-9, the absolute one in the mechanism's own units.",
)
@click.option("--every", type=float, default=0.01, show_default=True, help="Seconds between rows of the result.")
@control_options
@limit_options
@acting_options
@click.option(
    "--output",
    "-o",
    metavar="FILE",
    help="All rows: a .csv table, .npz for lw.load_trajectory, an .html page to look at; - for CSV on standard output.",
)
@click.option("--plot", metavar="FILE", help="Curves over time: .png, .svg or .pdf.")
@click.option("--gif", metavar="FILE", help="An animation: .gif or .mp4.")
@click.option("--json", "json_wanted", is_flag=True, help="The summary as one JSON document.")
@click.pass_context
def simulate(
    context: click.Context, found: Loaded, duration: float | None, positions: Sequence[str], velocities: Sequence[str],
    start: str | None, degrees: bool, method: str | None, variables: str, step: float | None, tolerance: float | None,
    every: float, torques: str | None, kp: Sequence[str], kd: Sequence[str], target: Sequence[str], hold_gravity: bool,
    follow: str | None, regulator: str | None, saturate: bool, acting: str | None, passive: bool,
    limits: float | None, limit_damping: float | None, ctrl: Sequence[str], output: str | None, plot: str | None,
    gif: str | None, json_wanted: bool,
) -> None:  # fmt: skip
    """Follow the motion of a mechanism, with loops or without, from a state under gravity, torques or a controller.

    Without options it is let go at rest; springs, damping, friction, limits and actuators of the file act unless
    --acting says otherwise, and what does not act is listed. Files are in radians unless --degrees is given (.npz is
    always). Ctrl-C ends the motion: what was computed is written and shown, and the exit code is 130.

    \b
    linkwise simulate builtin:stanford_arm --q joint2=1.57 --duration 2 --plot fall.png
    linkwise simulate robot.urdf --duration 3 --kp 80 --kp elbow=40 --kd 10 --target elbow=0.7 --gif reach.gif
    linkwise simulate robot.urdf --start motion.csv --follow motion.csv
    linkwise simulate robot.urdf --duration 0.1 --acting damping,limits
    """
    check_output(output, ".csv", ".npz", ".html", pipe=True)
    check_picture(plot, ".png", ".svg", ".pdf")
    check_picture(gif, ".gif", ".mp4")
    mech = with_acting(report_warnings(found, notes=False), acting, limits, limit_damping)
    if output == PIPE and json_wanted:
        raise click.UsageError("standard output takes the rows (--output -) or the summary (--json), not both")
    if [start, torques, follow].count(PIPE) > 1:
        raise click.UsageError("standard input is one table: --start -, --torques - or --follow -, not several")
    q, v = state(mech, positions, velocities, start, degrees, found.trust_units)
    springs = (kp, kd, target, hold_gravity)
    driving = Driving(torques, *springs, follow, regulator, saturate, degrees, found.trust_units)
    control, duration = driving.control(mech, q, duration)
    if not (np.isfinite(duration) and duration > 0.0):
        raise click.UsageError(f"--duration must be positive, got {duration:g}")
    if not (np.isfinite(every) and every > 0.0 and duration / every <= MAX_ROWS):
        raise click.UsageError(f"--every {every:g}: rows must be apart, and no more than {MAX_ROWS:g} of them")
    options: dict[str, Any] = {"method": method, "output_step": every}
    options |= {} if tolerance is None else {"rtol": tolerance, "atol": tolerance}
    options |= {"coordinates": variables} if step is None else {"coordinates": variables, "step": step}
    options |= {"ctrl": controls(mech, ctrl), "progress": sys.stderr.isatty() and find_spec("tqdm") is not None}
    code, trouble = 0, None
    try:
        motion = lw.simulate(mech, q, v, duration, control, **options)
    except lw.SimulationError as error:
        code, trouble, motion = 1, str(error), error.trajectory
    if motion.interrupted:
        code, trouble = INTERRUPTED, f"interrupted at t = {motion.end.t:.6g} s of {duration:g} s"
    idle: list[Idle | lw.Note] = [*idle_elements(mech), *mech.notes, *idle_limits(motion, saturate)]
    files: list[Path] = []
    try:
        for file in _written(motion, output, plot, gif, degrees):
            files.append(file)
    except KeyboardInterrupt:
        code, trouble = INTERRUPTED, "interrupted while files were written"
    if output == PIPE:
        for one in idle:
            click.echo(f"linkwise: not acting: {one}", err=True)
    elif json_wanted:
        click.echo(as_json(_summary(motion, files, idle, saturate)))
    else:
        click.echo("\n".join(_text(motion, files, idle, saturate, degrees)))
    if trouble:
        click.echo(f"linkwise: {trouble}; what was computed until then is shown and written", err=True)
    context.exit(code)


def _written(
    motion: lw.Trajectory, output: str | None, plot: str | None, gif: str | None, degrees: bool
) -> Iterable[Path]:
    if output and output.lower().endswith((".npz", ".html")):
        motion.save(output)
    elif output:
        write_csv(output, *_rows(motion, degrees))
    if output and output != PIPE:
        yield Path(output)
    if plot:
        motion.plot(plot, degrees=degrees)
        yield Path(plot)
    if gif:
        yield lw.viewer.animate(motion, path=gif)


def _rows(motion: lw.Trajectory, degrees: bool) -> tuple[list[str], np.ndarray]:
    """Names and rows of the table, angles as the user has them."""
    names, rows = motion.table()
    mech, factor, start = motion.mechanism, 1.0 / DEGREE if degrees else 1.0, 1
    for quantity, count in (("q", mech.nq), ("v", mech.nv), ("a", mech.nv)):  # after t
        own = slice(start, start + count)
        rows[:, own], start = scaled(mech, quantity, rows[:, own], factor), own.stop
    return names, rows


# -- what is shown ------------------------------------------------------------------------------------


def _summary(
    motion: lw.Trajectory, files: Sequence[Path], idle: Sequence[Idle | lw.Note], saturated: bool
) -> dict[str, Any]:
    mech, energy = motion.mechanism, motion.energy
    return {
        "mechanism": mech.name,
        "stopped": motion.stopped,
        "duration": motion.end.t,
        "method": motion.settings.method,
        "steps": len(motion.step_sizes),
        "evaluations": motion.evaluations,
        "rows": len(motion.t),
        "energy": {"start": energy[0], "end": energy[-1], "largest_change": np.abs(energy - energy[0]).max()},
        "loop_gap": motion.constraint_error.max() if mech.loops else 0.0,
        "start": {"q": motion.q[0], "v": motion.v[0]},
        "end": {"q": motion.end.q, "v": motion.end.v},
        "at_effort_limit": at_effort_limits(motion) if saturated else (),
        "acting": mech.acting,
        "not_acting": [dataclasses.asdict(one) for one in idle],
        "files": [str(path) for path in files],
    }


def _text(
    motion: lw.Trajectory, files: Sequence[Path], idle: Sequence[Idle | lw.Note], saturated: bool, degrees: bool
) -> Iterable[str]:
    mech, facts = motion.mechanism, _summary(motion, files, idle, saturated)
    yield click.style(mech.name, bold=True) + (
        f": {facts['duration']:g} s by {facts['method']}, {facts['steps']} steps, {facts['evaluations']} "
        f"evaluations, {_ending(motion)}"
    )
    factor = 1.0 / DEGREE if degrees else 1.0
    q, v = scaled(mech, "q", motion.q, factor), scaled(mech, "v", motion.v, factor)
    rows = []
    for name, at, rate in coordinates(mech):
        column = np.round(q[:, at], DIGITS)
        speed = "" if rate is None else f"{np.round(np.abs(v[:, rate]).max(), DIGITS):.4g}"
        rows.append((name, *(f"{x + 0.0:.5g}" for x in (column[0], column[-1], column.min(), column.max())), speed))
    head = ("joint", "q at start", "at end", "lowest", "highest", "largest speed")
    unit = DEGREES if degrees else RADIANS
    title = f"positions, angles in {unit}, lengths in metres; speeds per second"
    yield from section(title, table(head, rows, range(1, 6)))
    energy = facts["energy"]
    lines = [
        f"energy {energy['start']:.6g} J at the start, {energy['end']:.6g} J at the end, changed by up to "
        f"{energy['largest_change']:.2g} J"
    ]
    if mech.loops:
        lines.append(f"loops open by at most {facts['loop_gap']:.2g} m")
    if saturated:
        lines.append(f"forces cut off by effort limits: {', '.join(facts['at_effort_limit']) or 'none'}")
    yield from section("balance", lines)
    if mech.acting:
        yield from section("acting", acting_lines(mech))
    if idle:
        yield from section("of the file, not acting", map(str, idle))
    if files:
        yield from section("files", map(shown, files))


def _ending(motion: lw.Trajectory) -> str:
    told_already = motion.interrupted or motion.stopped.startswith("failed")
    return motion.stopped.partition(":")[0] if told_already else f"stopped by {motion.stopped}"
