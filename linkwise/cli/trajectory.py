"""linkwise trajectory: a planned motion as a table: between postures, through waypoints, as fast as motors allow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import click
import numpy as np

import linkwise as lw

from .files import TableFile
from .mechanism import Source
from .signatures import File, command, options_of
from .state import Position, named
from .tables import Units


@command("Planned motions.", of=(lw.trajectories.point_to_point, lw.trajectories.time_optimal))
def trajectory(
    source: Source,
    position: Position,
    to: Sequence[Annotated[str, "JOINT=Q"]] = (),
    through: File | None = None,
    law: Literal["cycloid", "quintic", "trapezoid"] = "cycloid",
    duration: float | None = None,
    fastest: bool = False,
    effort: float | None = None,
    step: float = 0.01,
    output: TableFile | None = None,
    **options: Any,
) -> None:
    """A planned motion: positions, velocities, accelerations and the joint forces it takes, in equal steps of time.

    It begins at --start and --q.

    to         where it ends; other joints stay
    through    waypoints: the rows of a table of q, with times t or without
    law        of time, from start to end
    ramp       with --law trapezoid: the part of the time to speed up, and to slow down
    duration   seconds; by default as velocity limits allow
    fastest    as fast as effort and velocity limits of the joints allow
    effort     with --fastest: a bound of all joint forces, instead of the file's
    step       seconds between the rows of the table
    output     .csv or .npz: t, q, v, a, tau; standard output by default

    \b
    linkwise trajectory builtin:puma560 --to joint1=1 --to joint3=-0.5 --duration 2 -o motion.csv
    linkwise trajectory builtin:puma560 --to joint1=1 --law trapezoid --ramp 0.1 --duration 2 -o motion.csv
    linkwise trajectory builtin:puma560 --to joint1=1.5 --fastest --effort 100 -o fast.csv
    """
    if bool(to) == bool(through):
        raise click.UsageError("give --to JOINT=Q, where the motion ends, or --through FILE, its waypoints")
    if not step > 0.0:
        raise click.UsageError(f"--step {step}: steps take time")
    if effort is not None and not fastest:
        raise click.UsageError("--effort is for --fastest")
    shape, fast = (options_of(f, options) for f in (lw.trajectories.point_to_point, lw.trajectories.time_optimal))
    if fast and not fastest:
        raise click.UsageError(f"--{next(iter(fast))} is for --fastest")
    if shape and (through or law != "trapezoid"):
        raise click.UsageError("--ramp is for --law trapezoid")
    mech, units = source.mechanism(notes=False), position.units
    if through:
        motion = _through(mech, through, duration, units)
    else:
        q0 = position.of(mech)
        q1 = named(mech, "q", to, q0, units, "--to")
        motion = lw.trajectories.point_to_point(mech, q0, q1, 1.0 if fastest else duration, law, **shape)
    if fastest:
        motion = lw.trajectories.time_optimal(motion, effort, **fast)
    t = np.append(np.arange(0.0, motion.duration, step), motion.duration)
    q, v, a = motion(t)
    units.write(output, mech, {"t": t, "q": q, "v": v, "a": a, "tau": motion.torques(t)})
    click.echo(f"{motion}, {len(t)} rows", err=True)


def _through(mech: lw.Mechanism, file: str, duration: float | None, units: Units) -> lw.trajectories.Motion:
    table = units.read(file, mech, ("q",))
    times = table["t"].ravel() if "t" in table else None
    if times is None and duration is None:
        raise click.UsageError(f"{file} has no column t: give --duration")
    path = lw.trajectories.spline(mech, table["q"], times, None if times is not None else np.zeros((2, mech.nv)))
    return lw.trajectories.along(path, duration)
