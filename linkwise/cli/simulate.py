"""linkwise simulate: a motion in time, as numbers, pictures and files."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

import linkwise as lw

from .mechanism import Loaded, report_warnings, takes_mechanism
from .screen import as_json, section, shown, table
from .state import named, state, state_options
from .tables import read_table
from .units import DEGREE, scaled

METHODS = ("dop853", "rk45", "rk23", "radau", "bdf", "lsoda", "rk4", "semi_implicit")
MAX_ROWS = 10_000_000
Control = Callable[..., np.ndarray]  # of (t, q, v)


@click.command(short_help="A motion in time: numbers, plots, films.")
@takes_mechanism
@click.option("--duration", type=float, help="Seconds; with --torques, until the last of them by default.")
@state_options
@click.option("--method", type=click.Choice(METHODS), default="dop853", show_default=True, help="Integrator.")
@click.option("--step", type=float, help="Step of rk4 and semi_implicit (0.001 s), longest step of the others.")
@click.option(
    "--tolerance", type=float, default=1e-9, show_default=True, help="Relative and absolute, of adaptive methods."
)
@click.option("--every", type=float, default=0.01, show_default=True, help="Seconds between rows of the result.")
@click.option("--torques", metavar="FILE", help="Joint forces from a table with t and tau, joined by straight lines.")
@click.option("--kp", type=float, default=0.0, help="Stiffness of every joint towards the target, N m/rad or N/m.")
@click.option("--kd", type=float, default=0.0, help="Damping of every joint, N m s/rad or N s/m.")
@click.option("--target", multiple=True, metavar="JOINT=Q", help="Where --kp pulls; by default where it starts.")
@click.option("--hold-gravity", is_flag=True, help="Add the forces that hold the mechanism against gravity.")
@click.option("--passive", is_flag=True, help="Let springs, dampers and friction of the file act.")
@click.option(
    "--output",
    "-o",
    metavar="FILE",
    help="All rows: a .csv table, or .npz for lw.load_trajectory; - for CSV on standard output.",
)
@click.option("--plot", metavar="FILE", help="Curves over time: .png, .svg or .pdf.")
@click.option("--gif", metavar="FILE", help="Moving picture: .gif or .mp4.")
@click.option("--json", "json_wanted", is_flag=True, help="The summary as one JSON document.")
def simulate(
    found: Loaded, duration, positions, velocities, start, degrees, method, step, tolerance, every,
    torques, kp, kd, target, hold_gravity, passive, output, plot, gif, json_wanted,
) -> None:  # fmt: skip
    """Follow the motion of a mechanism, with loops or without, from a state under gravity, torques or a controller.

    Without options it is let go at rest. Files are in radians unless --degrees is given.

    \b
    linkwise simulate builtin:stanford_arm --q joint2=1.57 --duration 2 --plot fall.png
    linkwise simulate robot.urdf --duration 3 --kp 80 --kd 10 --target elbow=0.7 --hold-gravity --gif reach.gif
    """
    mech = report_warnings(found)
    _check_files(output, plot, gif)
    if output == "-" and json_wanted:
        raise click.UsageError("standard output takes the rows (--output -) or the summary (--json), not both")
    q, v = state(mech, positions, velocities, start, degrees, found.trust_units)
    control, duration = _control(mech, q, torques, kp, kd, target, hold_gravity, degrees, duration)
    if not (np.isfinite(duration) and duration > 0.0):
        raise click.UsageError(f"--duration must be positive, got {duration:g}")
    if not (np.isfinite(every) and every > 0.0 and duration / every <= MAX_ROWS):
        raise click.UsageError(f"--every {every:g}: rows must be apart, and no more than {MAX_ROWS:g} of them")
    options = {} if step is None else {"step": step}
    motion = lw.simulate(
        mech,
        q,
        v,
        duration,
        control,
        method=method,
        rtol=tolerance,
        atol=tolerance,
        passive=lw.Passive.of(mech) if passive else None,
        output_step=every,
        progress=sys.stderr.isatty(),
        **options,
    )
    files = list(_written(motion, output, plot, gif))
    if output == "-":
        names, columns = motion.table()
        click.echo(",".join(names))
        for row in columns.tolist():
            click.echo(",".join(map(repr, row)))
    elif json_wanted:
        click.echo(as_json(_summary(motion, files)))
    else:
        click.echo("\n".join(_text(motion, files, degrees)))


def _check_files(*paths: str | None) -> None:
    """Complain of suffixes before the motion is computed, not after."""
    for path, suffixes in zip(paths, ((".csv", ".npz"), (".png", ".svg", ".pdf"), (".gif", ".mp4")), strict=True):
        if path and path != "-" and Path(path).suffix.lower() not in suffixes:
            raise click.UsageError(f"{path}: the name must end in {' or '.join(suffixes)}")


def _control(
    mech: lw.Mechanism,
    q: np.ndarray,
    torques: str | None,
    kp: float,
    kd: float,
    target: Sequence[str],
    hold_gravity: bool,
    degrees: bool,
    duration: float | None,
) -> tuple[Control | None, float]:
    """Joint forces as a function of time and state, and for how long."""
    feedback: Control | None = None
    if target and not kp:
        raise click.UsageError("--target needs --kp, the stiffness towards it")
    if kp or kd or hold_gravity:
        goal = named(mech, "q", target, q, DEGREE if degrees else 1.0)
        feedback = lw.joint_feedback(mech, goal, kp, kd, hold_gravity)
    if torques is None:
        if duration is None:
            raise click.UsageError("how long? Give --duration, in seconds")
        return feedback, duration
    rows = read_table(torques, mech, ("t", "tau"), ())
    t, tau = rows["t"], rows["tau"]
    if len(t) < 2 or not (np.diff(t) > 0.0).all():
        raise click.UsageError(f"{torques}: t must increase from row to row, over two rows at least")
    duration = float(t[-1] - t[0]) if duration is None else duration
    if duration > t[-1] - t[0] + 1e-9:
        raise click.UsageError(f"{torques} covers {t[-1] - t[0]:g} s, the motion takes {duration:g} s")

    def driven(time: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        given = np.array([np.interp(t[0] + time, t, column) for column in tau.T])
        return given if feedback is None else given + feedback(time, q, v)

    return driven, duration


def _written(motion: lw.Trajectory, output: str | None, plot: str | None, gif: str | None) -> Iterable[Path]:
    if output and output != "-":
        (motion.to_csv if output.lower().endswith(".csv") else motion.save)(output)
        yield Path(output)
    if plot:
        motion.plot(plot)
        yield Path(plot)
    if gif:
        yield lw.viewer.animate(motion, path=gif)


# -- what is told -------------------------------------------------------------------------------------


def _summary(motion: lw.Trajectory, files: Sequence[Path]) -> dict[str, Any]:
    mech, energy = motion.mechanism, motion.energy
    return {
        "mechanism": mech.name,
        "stopped": motion.stopped,
        "duration": motion.end.t,
        "method": motion.settings["method"],
        "steps": len(motion.step_sizes),
        "evaluations": motion.evaluations,
        "rows": len(motion.t),
        "energy": {"start": energy[0], "end": energy[-1], "largest_change": np.abs(energy - energy[0]).max()},
        "loop_gap": motion.constraint_error.max() if mech.loops else 0.0,
        "start": {"q": motion.q[0], "v": motion.v[0]},
        "end": {"q": motion.end.q, "v": motion.end.v},
        "files": [str(path) for path in files],
    }


def _text(motion: lw.Trajectory, files: Sequence[Path], degrees: bool) -> Iterable[str]:
    mech, facts = motion.mechanism, _summary(motion, files)
    yield click.style(mech.name, bold=True) + (
        f": {facts['duration']:g} s by {facts['method']}, {facts['steps']} steps, {facts['evaluations']} "
        f"evaluations, stopped by {motion.stopped}"
    )
    factor = 1.0 / DEGREE if degrees else 1.0
    q, v = scaled(mech, "q", motion.q, factor), scaled(mech, "v", motion.v, factor)
    rows = []
    for body in mech.bodies:
        if body.mimic:
            continue
        for k, (at, rate) in enumerate(_pairs(mech, body.joint)):
            name = body.joint if k == 0 else ""
            column = q[:, at]
            speed = "" if rate is None else f"{np.abs(v[:, rate]).max():.4g}"
            rows.append((name, *(f"{x + 0.0:.5g}" for x in (column[0], column[-1], column.min(), column.max())), speed))
    head = ("joint", "q at start", "at end", "lowest", "highest", "largest speed")
    unit = "angles in degrees" if degrees else "angles in radians"
    yield from section(f"positions, {unit}", table(head, rows, range(1, 6)))
    energy = facts["energy"]
    lines = [
        f"energy {energy['start']:.6g} J at the start, {energy['end']:.6g} J at the end, changed by up to "
        f"{energy['largest_change']:.2g} J"
    ]
    if mech.loops:
        lines.append(f"loops open by at most {facts['loop_gap']:.2g} m")
    yield from section("balance", lines)
    if files:
        yield from section("files", map(shown, files))


def _pairs(mech: lw.Mechanism, joint: str) -> list[tuple[int, int | None]]:
    """Places of a joint's coordinates, each with that of a rate; quaternions have one number more."""
    q, v = mech.q_index(joint), mech.v_index(joint)
    rates = list(range(v.start, v.stop))
    return [(at, rates[k] if k < len(rates) else None) for k, at in enumerate(range(q.start, q.stop))]
