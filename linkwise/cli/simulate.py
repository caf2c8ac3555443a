"""linkwise simulate: a motion in time, as numbers, pictures and files."""

from __future__ import annotations

import dataclasses
import io
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Annotated, Any

import click
import numpy as np

import linkwise as lw

from .acting import Idle, Stopped, acting_section, idle_elements, idle_limits, saturated_joints
from .files import PIPE, Output, Picture, called, contents
from .mechanism import Source
from .screen import Answer, section, table, written
from .signatures import File, Joints, command, options_of
from .state import State, coordinates, joint_numbers, named, spread
from .tables import DEGREES, RADIANS, Table, Units

Control = Callable[..., np.ndarray]  # of (t, q, v)
FOLLOWING = 100.0, 20.0  # kp (1/s^2) and kd (1/s) of computed torque: errors decay in 0.1 s


@dataclass
class Driving:
    """Joint forces of a motion.

    torques        joint forces from a table with t and tau (- for standard input), joined by straight lines
    kp             stiffness towards the target, N m/rad or N/m: of every joint, or of the one that is named
    kd             damping, as --kp: N m s/rad or N s/m
    target         where --kp pulls; by default where it starts
    hold_gravity   add the forces that hold the mechanism against gravity
    follow         computed torque along a motion, a table with t and q (v, a): --kp in 1/s^2, --kd in 1/s
    regulator      gains of linkwise lqr, back to where they are made for
    saturate       cut these forces off at the effort limits of the file
    """

    units: Units
    torques: File | None = None
    kp: Sequence[Annotated[str, "[JOINT=]K"]] = ()
    kd: Sequence[Annotated[str, "[JOINT=]D"]] = ()
    target: Sequence[Annotated[str, "JOINT=Q"]] = ()
    hold_gravity: bool = False
    follow: File | None = None
    regulator: Annotated[str, "FILE.npz"] | None = None
    saturate: bool = False

    def control(self, mech: lw.Mechanism, q: np.ndarray, duration: float | None) -> tuple[Control | None, float]:
        """Joint forces as a function of time and state (or None), and the duration."""
        springs = {"--target": self.target, "--hold-gravity": self.hold_gravity}
        if self.regulator is not None:
            springs |= {"--kp": self.kp, "--kd": self.kd, "--follow": self.follow}
        if self.regulator is not None or self.follow is not None:
            first = "--regulator" if self.regulator is not None else "--follow"
            for other, value in springs.items():
                if value:
                    raise click.UsageError(f"{first} and {other} are two controllers: give one")
        control: Control | None
        if self.follow is not None:
            rows = self.units.read(self.follow, mech, ("t", "q"), ("v", "a"))
            _check_times(rows, called(self.follow))
            v, a = rows.get("v"), rows.get("a") if "v" in rows else None
            motion = lw.trajectories.sampled(mech, rows["t"], rows["q"], v, a)
            kp, kd = (
                gains(mech, option, texts) if texts else otherwise
                for option, texts, otherwise in zip(("--kp", "--kd"), (self.kp, self.kd), FOLLOWING, strict=True)
            )
            control = lw.control.computed_torque(mech, motion, kp, kd)
            duration = motion.duration if duration is None else duration
        elif self.regulator is not None:
            control = _regulator(mech, self.regulator)
        else:
            control = self._feedback(mech, q)
        if self.torques is not None:
            control, duration = _add_table(mech, self.torques, control, duration)
        if duration is None:
            raise click.UsageError("how long? Give --duration, in seconds")
        if self.saturate and control is None:
            raise click.UsageError(
                "--saturate is for the forces of --torques, --kp, --kd, --hold-gravity, --follow or --regulator: give "
                "one"
            )
        return lw.control.saturated(mech, control) if self.saturate and control is not None else control, duration

    def _feedback(self, mech: lw.Mechanism, q: np.ndarray) -> Control | None:
        """Springs and dampers of joints; None without any."""
        stiffness, damping = gains(mech, "--kp", self.kp), gains(mech, "--kd", self.kd)
        for text in self.target:
            joint, _ = joint_numbers(mech, "--target", text)
            if not stiffness[mech.v_index(joint)].any():
                raise click.UsageError(f"--target {text} needs --kp, the stiffness towards it")
        if not (stiffness.any() or damping.any() or self.hold_gravity):
            return None
        goal = named(mech, "q", self.target, q, self.units, "--target")
        control = lw.control.joint_feedback(mech, goal, stiffness, damping, self.hold_gravity)
        joints = [joint_numbers(mech, "--kp", text)[0] for text in (*self.kp, *self.kd) if "=" in text]
        if not joints:
            return control
        actuated = control.actuated.copy()
        for joint in joints:  # one that is named is driven
            actuated[mech.v_index(joint)] = True
        return lw.control.joint_feedback(mech, goal, stiffness, damping, self.hold_gravity, actuated)


def _regulator(mech: lw.Mechanism, file: str) -> Control:
    """The feedback tau - K [q - q_0; v - v_0] with the gains in a file of ``linkwise lqr -o``."""
    try:
        with np.load(io.BytesIO(contents(file)), allow_pickle=False) as archive:
            q, v, tau, gain = (np.asarray(archive[name], dtype=float) for name in ("q", "v", "tau", "gain"))
    except (KeyError, ValueError, OSError, EOFError):
        raise click.UsageError(f"{called(file)} has no gains: give a file that linkwise lqr -o has written") from None
    shapes = (mech.nq,), (mech.nv,), (mech.nv,), (mech.nv, 2 * mech.nv)
    if tuple(x.shape for x in (q, v, tau, gain)) != shapes:
        raise click.UsageError(
            f"{called(file)}: gains of another mechanism, of {len(v)} velocities: {mech.name} has {mech.nv}"
        )

    def control(_: float, at: np.ndarray, rates: np.ndarray) -> np.ndarray:
        return tau - gain @ np.concatenate([lw.difference(mech, q, at), rates - v])

    return control


def gains(mech: lw.Mechanism, option: str, texts: Sequence[str]) -> np.ndarray:
    """(nv,): NUMBER is for every joint, JOINT=NUMBER,... for the degrees of freedom of one; zero otherwise."""

    def index_of(joint: str) -> slice:
        body = mech.bodies[mech.body_index(joint)]
        if body.mimic:
            raise click.UsageError(f"{option} {joint}: joint {joint!r} follows {body.mimic.joint!r}; give that one's")
        return mech.v_index(joint)

    return spread(option, texts, np.zeros(mech.nv), index_of)


def _add_table(
    mech: lw.Mechanism, torques: str, feedback: Control | None, duration: float | None
) -> tuple[Control, float]:
    """Joint forces of a table plus those of ``feedback``, and the duration."""
    rows, source = Units().read(torques, mech, ("t", "tau"), ()), called(torques)
    _check_times(rows, source)
    t, tau = rows["t"], rows["tau"]
    covered = float(t[-1] - t[0])
    duration = covered if duration is None else duration
    if duration > covered * (1.0 + 1e-9):
        raise click.UsageError(f"{source} covers {covered:g} s, the motion takes {duration:g} s")

    def driven(time: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        torque = np.array([np.interp(t[0] + time, t, column) for column in tau.T])
        return torque if feedback is None else torque + feedback(time, q, v)

    return driven, duration


def _check_times(rows: Table, source: str) -> None:
    if len(rows["t"]) < 2 or not (np.diff(rows["t"]) > 0.0).all():
        raise click.UsageError(f"{source}: t must increase from row to row, over two rows at least")


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
    mech = acting.switch(source.mechanism(notes=False))
    if output == PIPE and answer.json:
        raise click.UsageError("standard output takes the rows (--output -) or the summary (--json), not both")
    if [state.start, driving.torques, driving.follow].count(PIPE) > 1:
        raise click.UsageError("standard input is one table: --start -, --torques - or --follow -, not several")
    q, v = state.values(mech)
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
        energy = motion.energy
        facts = {
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
            "at_effort_limit": saturated_joints(motion) if driving.saturate else (),
            "acting": mech.forces.active,
            "not_acting": [dataclasses.asdict(each) for each in idle],
            "files": files,
        }
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


def _text(
    motion: lw.Trajectory, facts: dict[str, Any], idle: Iterable[object], saturated: bool, units: Units
) -> Iterable[str]:
    mech, energy = motion.mechanism, facts["energy"]
    is_reported = motion.interrupted or motion.stopped.startswith("failed")
    ending = motion.stopped.partition(":")[0] if is_reported else f"stopped by {motion.stopped}"
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
