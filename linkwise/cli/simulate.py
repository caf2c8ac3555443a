"""linkwise simulate: a motion in time, as numbers, pictures and files."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from typing import Annotated, Any

import click
import numpy as np

import linkwise as lw

from .acting import Idle, Stopped, acting_section, at_effort_limits, idle_elements, idle_limits
from .control import Driving
from .files import PIPE, Output, Picture
from .mechanism import Source
from .screen import Answer, section, table, written
from .signatures import Joints, command, options_of
from .state import State, coordinates
from .tables import DEGREES, RADIANS, Units

MAX_ROWS = 10_000_000
DIGITS = 12  # behind the point, on the screen: beyond them is round-off
INTERRUPTED = 130  # exit code, as of every program that Ctrl-C ended


@command("A motion in time: numbers, plots, animations.", of=lw.simulate, without=("progress",))
def simulate(
    source: Source,
    state: State,
    driving: Driving,
    acting: Stopped,
    answer: Answer,
    duration: float | None = None,
    every: float = 0.01,
    tolerance: float | None = None,
    independent: Joints | None = None,
    output: Annotated[str, Output(".csv", ".npz", ".html", pipe=True)] | None = None,
    plot: Picture | None = None,
    gif: Annotated[str, Output(".gif", ".mp4", drawn=True)] | None = None,
    **options: Any,
) -> int:
    """Follow the motion of a mechanism, with loops or without, from a state under gravity, torques or a controller.

    Without options it is let go at rest; springs, damping, friction, limits and actuators of the file act unless
    --acting says otherwise, and what does not act is listed. Files are in radians unless --degrees is given (.npz is
    always). Ctrl-C ends the motion: what was computed is written and shown, and the exit code is 130.

    duration      seconds; with --torques, until the last of them by default
    every         seconds between rows of the result
    method        Integrator: dop853, rk45, rk23, radau, bdf, lsoda; with fixed steps rk4, semi_implicit.  By default
                  dop853, and radau where friction of contacts acts
    step          fixed step (0.001 s at usual sizes), or the longest step of adaptive methods
    tolerance     relative and absolute, of adaptive methods (--rtol and --atol); by default 1e-9, the absolute one in
                  the mechanism's own units
    coordinates   what is integrated: joint (q, v); momentum, of the joints; nu or xi, total joint rates; independent:
                  independent coordinates of loops (--independent) until they are worse than --worst-condition
    independent   the first independent coordinates of --coordinates independent; chosen if left out
    stabilization   how loops are kept closed: projection after every step; baumgarte, with the gains --baumgarte; none.
                  Singular positions are passed on arcs, with closed loops, whatever it is
    baumgarte     gains alpha and beta of --stabilization baumgarte, 1/s; by default 10 10
    output        all rows: a .csv table, .npz for lw.files.load_trajectory, an .html page; - for CSV on standard output
    plot          curves over time: .png, .svg or .pdf
    gif           an animation: .gif or .mp4

    \b
    linkwise simulate builtin:stanford_arm --q joint2=1.57 --duration 2 --plot fall.png
    linkwise simulate robot.urdf --duration 3 --kp 80 --kp elbow=40 --kd 10 --target elbow=0.7 --gif reach.gif
    linkwise simulate robot.urdf --start motion.csv --follow motion.csv
    linkwise simulate robot.urdf --duration 0.1 --acting damping,limits
    """
    mech = acting.of(source.mechanism(notes=False))
    if output == PIPE and answer.json:
        raise click.UsageError("standard output takes the rows (--output -) or the summary (--json), not both")
    if [state.start, driving.torques, driving.follow].count(PIPE) > 1:
        raise click.UsageError("standard input is one table: --start -, --torques - or --follow -, not several")
    q, v = state.of(mech)
    control, duration = driving.control(mech, q, duration)
    if not (np.isfinite(duration) and duration > 0.0):
        raise click.UsageError(f"--duration must be positive, got {duration:g}")
    if not (np.isfinite(every) and every > 0.0 and duration / every <= MAX_ROWS):
        raise click.UsageError(f"--every {every:g}: rows must be apart, and no more than {MAX_ROWS:g} of them")
    options |= {} if tolerance is None else {"rtol": tolerance, "atol": tolerance}
    options |= {} if independent is None else {"independent": independent}
    options |= {"ctrl": acting.inputs(mech), "progress": sys.stderr.isatty() and find_spec("tqdm") is not None}
    code, trouble = 0, None
    try:
        motion = lw.simulate(mech, q, v, duration, control, t_eval=every, **options_of(lw.simulate, options))
    except lw.SimulationError as error:
        code, trouble, motion = 1, str(error), error.trajectory
    if motion.interrupted:
        code, trouble = INTERRUPTED, f"interrupted at t = {motion.end.t:.6g} s of {duration:g} s"
    idle: list[Idle | lw.files.Note] = [*idle_elements(mech), *mech.notes, *idle_limits(motion, driving.saturate)]
    files: list[str] = []
    try:
        for file in _written(motion, output, plot, gif, state.units):
            files.append(file)
    except KeyboardInterrupt:
        code, trouble = INTERRUPTED, "interrupted while files were written"
    if output == PIPE:
        for each in idle:
            click.echo(f"linkwise: not acting: {each}", err=True)
    else:
        facts = _facts(motion, files, idle, driving.saturate)
        answer.show(facts, _text(motion, facts, idle, driving.saturate, state.units))
    if trouble:
        click.echo(f"linkwise: {trouble}; what was computed until then is shown and written", err=True)
    return code


def _written(
    motion: lw.Trajectory, output: str | None, plot: str | None, gif: str | None, units: Units
) -> Iterable[str]:
    if output and output.lower().endswith((".npz", ".html")):
        motion.save(output)
    elif output:
        names, rows = motion.table()
        quantities = {"q": motion.q, "v": motion.v, "a": motion.a, "tau": motion.tau}
        count = 1 + sum(array.shape[1] for array in quantities.values())
        others = dict(zip(names[count:], rows[:, count:].T, strict=True))
        units.write(output, motion.mechanism, {"t": motion.t, **quantities, **others})
    if output and output != PIPE:
        yield output
    if plot:
        motion.plot(plot, degrees=units.degrees)
        yield plot
    if gif:
        yield str(lw.viewer.animate(motion, path=gif))


def _facts(
    motion: lw.Trajectory, files: Sequence[str], idle: Sequence[Idle | lw.files.Note], saturated: bool
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
        "loop_gap": motion.constraint_error.max(),
        "start": {"q": motion.q[0], "v": motion.v[0]},
        "end": {"q": motion.end.q, "v": motion.end.v},
        "at_effort_limit": at_effort_limits(motion) if saturated else (),
        "acting": mech.forces.active,
        "not_acting": [dataclasses.asdict(each) for each in idle],
        "files": files,
    }


def _text(
    motion: lw.Trajectory, facts: dict[str, Any], idle: Iterable[object], saturated: bool, units: Units
) -> Iterable[str]:
    mech, energy = motion.mechanism, facts["energy"]
    told_already = motion.interrupted or motion.stopped.startswith("failed")
    ending = motion.stopped.partition(":")[0] if told_already else f"stopped by {motion.stopped}"
    counts = f"{facts['steps']} steps, {facts['evaluations']} evaluations"
    yield click.style(mech.name, bold=True) + f": {facts['duration']:g} s by {facts['method']}, {counts}, {ending}"
    q, v = units.outside(mech, "q", motion.q), units.outside(mech, "v", motion.v)
    rows = []
    for name, at, rate in coordinates(mech):
        column = np.round(q[:, at], DIGITS)
        speed = "" if rate is None else f"{np.round(np.abs(v[:, rate]).max(), DIGITS):.4g}"
        rows.append((name, *(f"{x + 0.0:.5g}" for x in (column[0], column[-1], column.min(), column.max())), speed))
    head = ("joint", "q at start", "at end", "lowest", "highest", "largest speed")
    title = f"positions, angles in {DEGREES if units.degrees else RADIANS}, lengths in metres; speeds per second"
    yield from section(title, table(head, rows, range(1, 6)))
    lines = [
        f"energy {energy['start']:.6g} J at the start, {energy['end']:.6g} J at the end, changed by up to "
        f"{energy['largest_change']:.2g} J"
    ]
    if facts["loop_gap"]:
        lines.append(f"loops open by at most {facts['loop_gap']:.2g} m")
    if saturated:
        lines.append(f"forces cut off by effort limits: {', '.join(facts['at_effort_limit']) or 'none'}")
    yield from section("balance", lines)
    yield from acting_section(mech, idle)
    yield from written(facts["files"])
