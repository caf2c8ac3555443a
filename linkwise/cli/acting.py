"""What a file says of its joints besides masses: springs, damping, friction, limits; what of it acts, and what not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import click
import numpy as np

import linkwise as lw

ELEMENTS = {"stiffness": "springs", "damping": "damping", "friction": "friction"}  # attribute of a body -> in words
MOST_NAMES = 4  # in one line
BEYOND = 1e-9  # rad, m, ...: what goes less beyond a limit does so by round-off


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
        line = f"{self.what} of {_listed(self.joints) if len(self.joints) < 3 else f'{len(self.joints)} joints'}"
        if self.exceeded is not None:
            line += f": {'exceeded by ' + _listed(self.exceeded) if self.exceeded else 'not exceeded'}"
        return line + (f" ({self.option} lets them act)" if self.option else " (nothing enforces them)")


def _listed(names: Sequence[str]) -> str:
    more = len(names) - MOST_NAMES
    return ", ".join(names[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def passive_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """--passive, --limits and --limit-damping."""
    for option in (
        click.option(
            "--limit-damping",
            type=float,
            default=0.0,
            show_default=True,
            help="Of stops: the share by which a stop pushes harder per rad/s or m/s that it is run into.",
        ),
        click.option(
            "--limits",
            type=float,
            metavar="STIFFNESS",
            help="Joint limits of the file act as stops as stiff as this, N m/rad or N/m; files do not say.",
        ),
        click.option("--passive", is_flag=True, help="Let springs, damping and friction of the file act."),
    ):
        command = option(command)
    return command


def passive_of(mech: lw.Mechanism, own: bool, stiffness: float | None, damping: float) -> lw.Passive | None:
    """The elements that act: the file's ``own`` springs, dampers and friction, and stops at its limits."""
    if own and not any(_with(mech, name) for name in ELEMENTS):
        _warn(f"--passive: no joint of {mech.name} has springs, damping or friction")
    if stiffness is None:
        if damping:
            raise click.UsageError("--limit-damping needs --limits, the stiffness of the stops")
        return lw.Passive.of(mech) if own else None
    if not (np.isfinite(stiffness) and stiffness > 0.0):
        raise click.UsageError(f"--limits must be a positive stiffness, got {stiffness:g}")
    bounded = [body for body in mech.bodies if np.isfinite([body.limits.lower, body.limits.upper]).any()]
    if not bounded:
        _warn(f"--limits: no joint of {mech.name} has limits")
    bounds = {body.joint: (body.limits.lower, body.limits.upper) for body in bounded}
    stops = lw.Passive.stops(bounds, stiffness, damping)
    return lw.Passive.of(mech) + stops if own else stops


def idle_elements(mech: lw.Mechanism) -> Iterator[Idle]:
    """Springs, damping and friction of the file, where --passive is not given."""
    for name, words in ELEMENTS.items():
        joints = _with(mech, name)
        if joints:
            yield Idle(words, joints, option="--passive")


def idle_limits(motion: lw.Trajectory, stops: bool, saturated: bool) -> Iterator[Idle]:
    """Limits of the file that a motion knew nothing of."""
    mech = motion.mechanism
    if not stops:
        outside = {b.joint: _beyond(_positions(motion, b.joint), b.limits.lower, b.limits.upper) for b in mech.bodies}
        yield from _idle("limits", mech, ("lower", "upper"), outside, "--limits")
    fast = {b.joint: _beyond(_velocities(motion, b.joint), None, b.limits.velocity) for b in mech.bodies}
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
    if lower is None:
        values = np.abs(values)
    over = (values > np.asarray(upper) + BEYOND).any()
    return bool(over or (lower is not None and (values < np.asarray(lower) - BEYOND).any()))


def _with(mech: lw.Mechanism, name: str) -> tuple[str, ...]:
    return tuple(body.joint for body in mech.bodies if any(getattr(body, name)))


def _warn(message: str) -> None:
    click.echo(f"linkwise: warning: {message}", err=True)
