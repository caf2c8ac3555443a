"""Commands from tables to tables: linkwise dynamics, estimate and trajectory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import click
import numpy as np

import linkwise as lw

from .files import TableFile
from .mechanism import Source
from .signatures import File, command, options_of
from .state import Position, finite_numbers, named
from .tables import Table, Units


@dataclass
class Tables:
    """Tables in and out.

    output   a .csv or .npz file; CSV on standard output if left out, or -
    """

    units: Units
    output: TableFile | None = None

    def read(self, path: str, mech: lw.Mechanism, *needed: str) -> Table:
        """The quantities ``needed``, and t if it is there."""
        return self.units.read(path, mech, needed)

    def write(self, mech: lw.Mechanism, states: Table, **quantities: np.ndarray) -> None:
        """The quantities, behind the time of the states."""
        time = {"t": states["t"]} if "t" in states else {}
        self.units.write(self.output, mech, {**time, **quantities})


@click.group(short_help="Inverse and forward dynamics of tables of states.")
def dynamics() -> None:
    """Inverse and forward dynamics of whole tables of states.

    Tables of numbers are CSV files with columns t, q.elbow, v.elbow, a.elbow, tau.elbow, ... for joints elbow, ... (or
    q1, q2, ..., v1, ... in their order), or npz files with arrays t, q, v, a, tau, one row per state; - is standard
    input. To follow a motion in time, see linkwise simulate.

    \b
    linkwise dynamics inverse builtin:stanford_arm motion.csv -o torques.csv
    linkwise simulate robot.urdf --duration 1 -o - | linkwise dynamics inverse robot.urdf -
    """


@dynamics.add_command
@command("Joint torques along a trajectory.")
def inverse(
    source: Source,
    trajectory: str,
    tables: Tables,
    actuated: Sequence[Annotated[str, "JOINT"]] = (),
    independent: Sequence[Annotated[str, "JOINT"]] = (),
) -> None:
    """Joint torques and forces (tau) along a TRAJECTORY with q, v and a; loops, if there are any, stay closed, and the
    least forces are given where they leave a choice.

    actuated      a joint with a motor, once for each; all of them by default
    independent   with loops, a joint whose accelerations are taken from the table; the others follow.  All by default

    \b
    linkwise dynamics inverse robot.urdf motion.csv -o torques.csv
    linkwise dynamics inverse builtin:four_bar turn.csv --actuated crank_joint
    """
    mech = source.mechanism()
    states = tables.read(trajectory, mech, "q", "v", "a")
    q, v, a = (states[name] for name in ("q", "v", "a"))
    if independent:
        a = np.concatenate([a[:, mech.v_index(joint)] for joint in independent], axis=-1)
    tau = lw.inverse_dynamics(mech, q, v, a, actuated=actuated or None, independent=independent or None)
    tables.write(mech, states, tau=tau)


@dynamics.add_command
@command("Joint accelerations in states.")
def forward(source: Source, states: str, tables: Tables) -> None:
    """Joint accelerations (a) in STATES with q, v and tau; loops, if there are any, stay closed.

    \b
    linkwise dynamics forward robot.urdf states.npz -o accelerations.npz
    """
    mech = source.mechanism()
    rows = tables.read(states, mech, "q", "v", "tau")
    tables.write(mech, rows, a=lw.forward_dynamics(mech, rows["q"], rows["v"], rows["tau"]))


@dynamics.command(hidden=True, context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1)
def simulate(arguments: Sequence[str]) -> None:
    """Moved."""
    raise click.UsageError("simulate is a command of its own: linkwise simulate FILE --duration SECONDS")


@command("Joint forces, pushes and payloads from noisy measurements.")
def estimate(
    source: Source,
    measurements: str,
    torque_noise: Sequence[Annotated[str, "[JOINT=]S"]] = (),
    acceleration_noise: Sequence[Annotated[str, "[JOINT=]S"]] = (),
    encoder_noise: Annotated[float, "S"] | None = None,
    push: Sequence[Annotated[str, "LINK=S"]] = (),
    payload: Annotated[str, "LINK"] | None = None,
    parameters: str = "m,mx,my,mz",
    output: TableFile | None = None,
) -> None:
    """Most likely accelerations, joint forces and wrenches, with standard deviations, for a table of MEASUREMENTS.

    MEASUREMENTS has q, v, a and tau (see linkwise dynamics), a row per state; with --encoder-noise t, q and tau, and v
    and a are found from q. What has no noise is exact; tau may be left out.

    torque_noise         standard deviation of measured joint forces: a number for all joints, or JOINT=NUMBER, again
                         for others
    acceleration_noise   of measured accelerations, likewise
    encoder_noise        of measured positions, from which v and a follow
    push                 a link with an unknown wrench: its deviation, one or six
    payload              print the payload of a link instead of a table
    parameters           what to find of a payload
    output               a .csv or .npz file; standard output if left out, or -

    \b
    linkwise estimate robot.urdf motion.csv --torque-noise 0.3 --acceleration-noise 0.1 --push fore=20 -o pushed.csv
    """
    mech, units = source.mechanism(), Units(trust_units=source.trust_units)
    needed = ("q", "v", "a") if encoder_noise is None else ("t", "q")
    table = units.read(measurements, mech, needed, ("t", "tau"))
    of_a: Any
    if encoder_noise is None:
        q, v, a, of_a = table["q"], table["v"], table["a"], _deviations("--acceleration-noise", acceleration_noise, 0.0)
    else:
        if acceleration_noise or payload:
            raise click.UsageError(
                "--encoder-noise goes without --acceleration-noise, and without --payload: accelerations from "
                "positions have errors that depend on each other"
            )
        motion = lw.estimation.encoder_motion(mech, table["t"], table["q"], encoder_noise)
        q, v, a, of_a = motion.q, motion.v, motion.a, motion.a_std
    measured = "tau" in table
    if measured != bool(torque_noise):
        raise click.UsageError("--torque-noise goes with columns of tau: both are needed, or neither")
    of_tau = _deviations("--torque-noise", torque_noise, np.inf)
    wrenches: dict[str, Any] = {}
    for text in push:
        link, equals, numbers = text.rpartition("=")
        if not equals:
            raise click.UsageError(f"--push {text}: write LINK=DEVIATION, or six of them with commas")
        deviations = finite_numbers(f"--push {link}", numbers)
        wrenches[link] = deviations[0] if len(deviations) == 1 else deviations
    noise = lw.estimation.Noise(of_a, of_tau, wrenches)
    if payload is not None:
        if not measured:
            raise click.UsageError("--payload needs columns of tau, and --torque-noise")
        asked = parameters.split(",")
        click.echo(lw.estimation.estimate_payload(mech, q, v, a, table["tau"], payload, noise, asked))
        return
    result = lw.estimation.smooth(mech, q, v, a, table.get("tau"), noise)
    columns = {"t": table["t"]} if "t" in table else {}
    columns |= {name: getattr(result, name) for name in ("a", "a_std", "tau", "tau_std")}
    for link in noise.wrench:
        k = mech.link_names.index(link)
        columns |= {f"wrench.{link}": result.wrenches[:, k], f"wrench_std.{link}": result.wrench_std[:, k]}
    units.write(output, mech, columns)


def _deviations(option: str, texts: Sequence[str], otherwise: float) -> float | dict[str, list[float]]:
    """A number for all joints, or numbers by joint; ``otherwise`` without any."""
    if not texts:
        return otherwise
    named = [text.rpartition("=") for text in texts]
    if any(name for name, _, _ in named):
        if not all(name for name, _, _ in named):
            raise click.UsageError(f"{option}: a number for all joints, or JOINT=NUMBER for each, not both")
        return {name: finite_numbers(f"{option} {name}", number) for name, _, number in named}
    if len(texts) > 1:
        raise click.UsageError(f"{option}: one number for all joints, or JOINT=NUMBER")
    (number,) = finite_numbers(option, texts[0])[:1]
    return number


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
        table = units.read(through, mech, ("q",))
        times = table["t"].ravel() if "t" in table else None
        if times is None and duration is None:
            raise click.UsageError(f"{through} has no column t: give --duration")
        rest = np.zeros((2, mech.nv)) if times is None else None
        motion = lw.trajectories.along(lw.trajectories.spline(mech, table["q"], times, rest), duration)
    else:
        q0 = position.values(mech)
        q1 = named(mech, "q", to, q0, units, "--to")
        motion = lw.trajectories.point_to_point(mech, q0, q1, 1.0 if fastest else duration, law, **shape)
    if fastest:
        motion = lw.trajectories.time_optimal(motion, effort, **fast)
    t = np.append(np.arange(0.0, motion.duration, step), motion.duration)
    q, v, a = motion(t)
    units.write(output, mech, {"t": t, "q": q, "v": v, "a": a, "tau": motion.torques(t)})
    click.echo(f"{motion}, {len(t)} rows", err=True)
