"""What of a file acts, and what not: switches, stops at limits, control inputs of actuators."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import click
import numpy as np

import linkwise as lw

from .screen import warn

MOST_NAMES = 4  # in one line
BEYOND = 1e-9  # of a limit: what goes less beyond it does so by round-off
OF_JOINTS = ("springs", "damping", "friction", "limits")


@dataclass(frozen=True)
class Idle:
    """Something of the file that did not act.

    exceeded   joints that went beyond it, of limits; None of the rest
    option     what would let it act; None if nothing does
    """

    what: str
    joints: tuple[str, ...]
    exceeded: tuple[str, ...] | None = None
    option: str | None = None

    def __str__(self) -> str:
        few = len(self.joints) < 3
        line = f"{self.what} of {_listed(self.joints) if few else f'{len(self.joints)} joints'}"
        if self.what not in (*OF_JOINTS, "velocity limits", "effort limits"):
            line = f"{self.what}: {_listed(self.joints)}"
        if self.exceeded is not None:
            line += f": {'exceeded by ' + _listed(self.exceeded) if self.exceeded else 'not exceeded'}"
        return line + (f" ({self.option} lets them act)" if self.option else " (nothing enforces them)")


def _listed(names: Sequence[str]) -> str:
    more = len(names) - MOST_NAMES
    return ", ".join(names[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def acting_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """--acting, and --passive of earlier versions, which is what happens without it."""
    for option in (
        click.option("--passive", is_flag=True, hidden=True),
        click.option(
            "--acting",
            metavar="KIND,KIND...",
            help="What of the file acts: all by default, none, or some of springs, damping, friction, limits, "
            "actuators, tendons, gravity_compensation, fluid, contact.",
        ),
    ):
        command = option(command)
    return command


def ctrl_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """--ctrl."""
    return click.option(
        "--ctrl",
        multiple=True,
        metavar="[ACTUATOR=]U",
        help="Control input of an actuator, zero by default; or of all of them: U or U,U,...",
    )(command)


def limit_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """--limits, --limit-damping and --ctrl."""
    for option in (
        ctrl_option,
        click.option(
            "--limit-damping",
            type=float,
            help="Of stops: the share by which a stop pushes harder per rad/s or m/s that it is run into.",
        ),
        click.option(
            "--limits",
            type=float,
            metavar="STIFFNESS",
            help="Joint limits are stops as stiff as this, N m/rad or N/m; by default as suits the inertia.",
        ),
    ):
        command = option(command)
    return command


def with_acting(
    mech: lw.Mechanism, kinds: str | None, stiffness: float | None = None, damping: float | None = None
) -> lw.Mechanism:
    """The mechanism with the elements switched as asked for, and stops as hard."""
    if kinds is not None:
        chosen = [kind.strip() for kind in kinds.split(",")]
        mech = mech.with_acting(*{"all": [True], "none": [False]}.get(kinds.strip(), chosen))
    if stiffness is None:
        if damping is not None:
            raise click.UsageError("--limit-damping needs --limits, the stiffness of the stops")
        return mech
    if not (np.isfinite(stiffness) and stiffness > 0.0):
        raise click.UsageError(f"--limits must be a positive stiffness, got {stiffness:g}")
    bounded = [body for body in mech.bodies if np.isfinite([body.limits.lower, body.limits.upper]).any()]
    if not bounded:
        warn(f"--limits: no joint of {mech.name} has limits")
    hard = {"stiffness": stiffness, "damping": damping or 0.0}
    return mech.with_limits({body.joint: dataclasses.replace(body.limits, **hard) for body in bounded})


def controls(mech: lw.Mechanism, given: Sequence[str]) -> np.ndarray | None:
    """(n_ctrl,): control inputs from ``--ctrl``; None if there are none."""
    if not given:
        return None
    inputs, names = np.zeros(len(mech.actuator_names)), mech.actuator_names
    for text in given:
        name, equals, value = text.rpartition("=")
        try:
            numbers = [float(one) for one in value.split(",")]
        except ValueError:
            raise click.UsageError(f"--ctrl {text}: {value!r} is no number") from None
        if equals and name not in names:
            known = f"its actuators are {', '.join(names)}" if names else "it has no actuators that act"
            raise click.UsageError(f"--ctrl {text}: {mech.name} has no actuator {name!r}: {known}")
        size = 1 if equals else len(names)
        if len(numbers) not in (1, size) or not names:
            raise click.UsageError(f"--ctrl {text}: {mech.name} has {len(names)} actuators: {', '.join(names)}")
        if equals:
            inputs[names.index(name)] = numbers[0]
        else:
            inputs[:] = numbers
    return inputs


def acting_lines(mech: lw.Mechanism) -> Iterator[str]:
    """What acts, a line for each kind."""
    for kind, names in mech.acting.items():
        yield f"{kind.replace('_', ' ')}: {_listed(names)}"


def idle_elements(mech: lw.Mechanism) -> Iterator[Idle]:
    """What was switched off."""
    for kind, names in mech.idle.items():
        if kind != "limits":  # which say whether they were exceeded
            yield Idle(kind, names, option="--acting")


def idle_limits(motion: lw.Trajectory, saturated: bool) -> Iterator[Idle]:
    """Limits of the file that a motion knew nothing of."""
    mech = motion.mechanism
    off = set(mech.idle.get("limits", ()))
    if off:
        bounded = [body for body in mech.bodies if body.joint in off]
        outside = {b.joint: _beyond(_positions(motion, b.joint), b.limits.lower, b.limits.upper) for b in bounded}
        yield from _idle("limits", mech, ("lower", "upper"), outside, "--acting")
    heeded = {one.target for one in mech.actuators}
    others = [body for body in mech.bodies if body.joint not in heeded]
    fast = {b.joint: _beyond(_velocities(motion, b.joint), None, b.limits.velocity) for b in others}
    yield from _idle("velocity limits", mech, ("velocity",), fast, None)
    if not saturated and motion.tau.any():
        driven = [body for body in mech.bodies if not body.mimic]
        strong = {b.joint: _beyond(motion.tau[:, mech.v_index(b.joint)], None, b.limits.effort) for b in driven}
        yield from _idle("effort limits", mech, ("effort",), strong, "--saturate")


def at_effort_limits(motion: lw.Trajectory) -> tuple[str, ...]:
    """Joints whose forces were cut off."""
    mech = motion.mechanism
    return tuple(
        body.joint
        for body in mech.bodies
        if not body.mimic and (np.abs(motion.tau[:, mech.v_index(body.joint)]) >= body.limits.effort).any()
    )


def _idle(
    what: str, mech: lw.Mechanism, bounds: Iterable[str], exceeded: dict[str, bool], option: str | None
) -> Iterator[Idle]:
    limited = [b.joint for b in mech.bodies if np.isfinite([getattr(b.limits, bound) for bound in bounds]).any()]
    known = tuple(joint for joint in limited if joint in exceeded)
    if known:
        yield Idle(what, known, tuple(joint for joint in known if exceeded[joint]), option)


def _positions(motion: lw.Trajectory, joint: str) -> np.ndarray:
    return motion.mechanism.place(joint).positions(motion.q)


def _velocities(motion: lw.Trajectory, joint: str) -> np.ndarray:
    return motion.mechanism.place(joint).velocities(motion.v)


def _beyond(values: np.ndarray, lower: Any, upper: Any) -> bool:
    """Whether any of (m, n) is outside the bounds (n,); without lower bounds, its size beyond the upper ones."""
    upper = np.asarray(upper)
    lower = -upper if lower is None else np.asarray(lower)
    size = np.where(np.isfinite(lower), np.abs(lower), 0.0)
    slack = BEYOND * np.maximum(size, np.where(np.isfinite(upper), np.abs(upper), 0.0))
    return bool(((values > upper + slack) | (values < lower - slack)).any())
