"""What drives a motion: joint forces from a table, springs and dampers towards a target, gravity held, their limits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click
import numpy as np

import linkwise as lw

from .files import called
from .state import finite_numbers, joint_numbers, named
from .tables import read_table
from .units import DEGREE

Control = Callable[..., np.ndarray]  # of (t, q, v)


def control_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """--torques, --kp, --kd, --target, --hold-gravity and --saturate."""
    for option in (
        click.option("--saturate", is_flag=True, help="Cut these forces off at the effort limits of the file."),
        click.option("--hold-gravity", is_flag=True, help="Add the forces that hold the mechanism against gravity."),
        click.option(
            "--target", multiple=True, metavar="JOINT=Q", help="Where --kp pulls; by default where it starts."
        ),
        click.option("--kd", multiple=True, metavar="[JOINT=]D", help="Damping, as --kp: N m s/rad or N s/m."),
        click.option(
            "--kp",
            multiple=True,
            metavar="[JOINT=]K",
            help="Stiffness towards the target, N m/rad or N/m: of every joint, or of the one that is named.",
        ),
        click.option(
            "--torques",
            metavar="FILE",
            help="Joint forces from a table with t and tau (- for standard input), joined by straight lines.",
        ),
    ):
        command = option(command)
    return command


def control_of(
    mech: lw.Mechanism,
    q: np.ndarray,
    duration: float | None,
    torques: str | None,
    kp: Sequence[str],
    kd: Sequence[str],
    target: Sequence[str],
    hold_gravity: bool,
    saturate: bool,
    degrees: bool,
) -> tuple[Control | None, float]:
    """Joint forces as a function of time and state, None if there are none, and for how long."""
    control = _feedback(mech, q, kp, kd, target, hold_gravity, degrees)
    if torques is not None:
        control, duration = _driven(mech, torques, control, duration)
    if duration is None:
        raise click.UsageError("how long? Give --duration, in seconds")
    if saturate and control is None:
        raise click.UsageError("--saturate is for the forces of --torques, --kp, --kd or --hold-gravity: give one")
    return lw.saturated(mech, control) if saturate and control is not None else control, duration


def _feedback(
    mech: lw.Mechanism,
    q: np.ndarray,
    kp: Sequence[str],
    kd: Sequence[str],
    target: Sequence[str],
    hold_gravity: bool,
    degrees: bool,
) -> Control | None:
    stiffness, damping = gains(mech, "--kp", kp), gains(mech, "--kd", kd)
    for text in target:
        joint, _ = joint_numbers(mech, "--target", text)
        if not stiffness[mech.v_index(joint)].any():
            raise click.UsageError(f"--target {text} needs --kp, the stiffness towards it")
    if not (stiffness.any() or damping.any() or hold_gravity):
        return None
    goal = named(mech, "q", target, q, DEGREE if degrees else 1.0, "--target")
    control = lw.joint_feedback(mech, goal, stiffness, damping, hold_gravity)
    joints = [joint_numbers(mech, "--kp", text)[0] for text in (*kp, *kd) if "=" in text]
    if not joints:
        return control
    actuated = control.actuated.copy()
    for joint in joints:  # one that is named is driven
        actuated[mech.v_index(joint)] = True
    return lw.joint_feedback(mech, goal, stiffness, damping, hold_gravity, actuated)


def gains(mech: lw.Mechanism, option: str, texts: Sequence[str]) -> np.ndarray:
    """(nv,): NUMBER is for every joint, JOINT=NUMBER for one, or one NUMBER,... for each of its degrees of
    freedom; zero where nothing is given."""
    found = np.zeros(mech.nv)
    common = [text for text in texts if "=" not in text]
    if len(common) > 1:
        raise click.UsageError(f"{option} {' and '.join(common)}: give one number for all joints")
    for text in common:
        numbers = finite_numbers(f"{option} {text}", text)
        if len(numbers) > 1:
            raise click.UsageError(f"{option} {text}: one number is for all joints, JOINT=NUMBER for one of them")
        found[:] = numbers
    seen: set[str] = set()
    for text in (text for text in texts if "=" in text):
        joint, numbers = joint_numbers(mech, option, text)
        if joint in seen:
            raise click.UsageError(f"{option} {text}: {joint!r} is given twice")
        seen.add(joint)
        body, own = mech.bodies[mech.body_index(joint)], mech.v_index(joint)
        if body.mimic:
            raise click.UsageError(f"{option} {text}: joint {joint!r} follows {body.mimic.joint!r}; give that one's")
        count = own.stop - own.start
        if len(numbers) not in (1, count):
            takes = "one number" if count == 1 else f"one number, or {count} with commas between them"
            raise click.UsageError(f"{option} {text}: joint {joint!r} takes {takes}")
        found[own] = numbers
    return found


def _driven(
    mech: lw.Mechanism, torques: str, feedback: Control | None, duration: float | None
) -> tuple[Control, float]:
    """Forces of a table, and those of ``feedback`` besides."""
    rows, source = read_table(torques, mech, ("t", "tau"), ()), called(torques)
    t, tau = rows["t"], rows["tau"]
    if len(t) < 2 or not (np.diff(t) > 0.0).all():
        raise click.UsageError(f"{source}: t must increase from row to row, over two rows at least")
    covered = float(t[-1] - t[0])
    duration = covered if duration is None else duration
    if duration > covered + 1e-9:
        raise click.UsageError(f"{source} covers {covered:g} s, the motion takes {duration:g} s")

    def driven(time: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        given = np.array([np.interp(t[0] + time, t, column) for column in tau.T])
        return given if feedback is None else given + feedback(time, q, v)

    return driven, duration
