"""linkwise trajectory: a planned motion as a table: between postures, through waypoints, as fast as motors allow."""

from __future__ import annotations

from collections.abc import Sequence

import click
import numpy as np

import linkwise as lw

from .mechanism import Loaded, report_warnings, takes_mechanism
from .state import named, state
from .tables import check_table_output, read_table, write_table
from .units import DEGREE, scaled

LAWS = ("cycloid", "quintic", "trapezoid")


@click.command(short_help="Planned motions.")
@takes_mechanism
@click.option("--q", "positions", multiple=True, metavar="JOINT=Q", help="Where the motion starts.")
@click.option("--start", metavar="FILE|POSTURE", help="Where the motion starts, from a table or a posture.")
@click.option("--to", "ends", multiple=True, metavar="JOINT=Q", help="Where it ends; other joints stay.")
@click.option("--through", metavar="FILE", help="Waypoints: the rows of a table of q, with times t or without.")
@click.option(
    "--law", type=click.Choice(LAWS), default="cycloid", show_default=True, help="Of time, from start to end."
)
@click.option("--ramp", type=float, help="With --law trapezoid: the part of the time to speed up, and to slow down.")
@click.option("--duration", type=float, help="Seconds; by default as velocity limits allow.")
@click.option("--fastest", is_flag=True, help="As fast as effort and velocity limits of the joints allow.")
@click.option("--effort", type=float, help="With --fastest: a bound of all joint forces, instead of the file's.")
@click.option("--step", default=0.01, show_default=True, help="Seconds between the rows of the table.")
@click.option("--degrees", is_flag=True, help="Angles in degrees, on the command line and in tables.")
@click.option("--output", "-o", metavar="FILE", help=".csv or .npz: t, q, v, a, tau; standard output by default.")
def trajectory(
    found: Loaded, positions: Sequence[str], start: str | None, ends: Sequence[str], through: str | None, law: str,
    ramp: float | None, duration: float | None, fastest: bool, effort: float | None, step: float, degrees: bool,
    output: str | None,
) -> None:  # fmt: skip
    """A planned motion: positions, velocities, accelerations and the joint forces it takes, in equal steps of time.

    \b
    linkwise trajectory builtin:puma560 --to joint1=1 --to joint3=-0.5 --duration 2 -o motion.csv
    linkwise trajectory builtin:puma560 --to joint1=1 --law trapezoid --ramp 0.1 --duration 2 -o motion.csv
    linkwise trajectory builtin:puma560 --to joint1=1.5 --fastest --effort 100 -o fast.csv
    """
    check_table_output(output)
    if bool(ends) == bool(through):
        raise click.UsageError("give --to JOINT=Q, where the motion ends, or --through FILE, its waypoints")
    if not step > 0.0:
        raise click.UsageError(f"--step {step}: steps take time")
    if effort is not None and not fastest:
        raise click.UsageError("--effort is for --fastest")
    if ramp is not None and (through or law != "trapezoid"):
        raise click.UsageError("--ramp is for --law trapezoid")
    mech = report_warnings(found, notes=False)
    if through:
        motion = _through(mech, through, duration, degrees, found.trust_units)
    else:
        q0, _ = state(mech, positions, (), start, degrees, found.trust_units)
        q1 = named(mech, "q", ends, q0, DEGREE if degrees else 1.0, found.trust_units, "--to")
        motion = lw.trajectories.point_to_point(mech, q0, q1, 1.0 if fastest else duration, law, ramp=ramp)
    if fastest:
        motion = lw.trajectories.time_optimal(motion, effort)
    t = np.append(np.arange(0.0, motion.duration, step), motion.duration)
    q, v, a = motion(t)
    factor = 1.0 / DEGREE if degrees else 1.0
    shown = {name: scaled(mech, name, x, factor) for name, x in (("q", q), ("v", v), ("a", a))}
    write_table(output, mech, {"t": t[:, None], **shown, "tau": motion.torques(t)})
    click.echo(f"{motion}, {len(t)} rows", err=True)


def _through(
    mech: lw.Mechanism, file: str, duration: float | None, degrees: bool, trust_units: bool
) -> lw.trajectories.Motion:
    table = read_table(file, mech, ("q",), ("t",), degrees, trust_units)
    times = table["t"].ravel() if "t" in table else None
    if times is None and duration is None:
        raise click.UsageError(f"{file} has no column t: give --duration")
    path = lw.trajectories.spline(mech, table["q"], times, None if times is not None else np.zeros((2, mech.nv)))
    return lw.trajectories.along(path, duration)
