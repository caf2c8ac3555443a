"""Options for force elements of a file (switches, stops at limits, control inputs), and reports of ignored ones."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import click
import numpy as np

import linkwise as lw

from .screen import section, warn
from .signatures import HIDDEN
from .state import spread

MOST_NAMES = 4  # in one line
BEYOND = 1e-9  # of a limit: what goes less beyond it does so by round-off
OF_JOINTS = ("springs", "damping", "friction", "limits")


@dataclass(frozen=True)
class Idle:
    """A force element of the file that was switched off or ignored.

    exceeded   joints that went beyond it, of limits; None of the rest
    option     that switches it on; None if there is none
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


@dataclass
class Acting:
    """Force elements of the file that act.

    acting   force elements of the file that act: all by default, none, or some of springs, damping, friction, limits,
             actuators, tendons, gravity_compensation, fluid, contact
    """

    acting: Annotated[str, "KIND,KIND..."] | None = None
    passive: Annotated[bool, HIDDEN] = False  # of earlier versions: what happens without it

    def switch(self, mech: lw.Mechanism) -> lw.Mechanism:
        """The mechanism with its elements switched."""
        if self.acting is None:
            return mech
        chosen = [kind.strip() for kind in self.acting.split(",")]
        return mech.with_acting(*{"all": [True], "none": [False]}.get(self.acting.strip(), chosen))


@dataclass
class Controlled(Acting):
    """Force elements of the file that act, and the inputs of actuators.

    ctrl   control input of an actuator, zero by default; or of all of them: U or U,U,...
    """

    ctrl: Sequence[Annotated[str, "[ACTUATOR=]U"]] = ()

    def inputs(self, mech: lw.Mechanism) -> np.ndarray | None:
        """(n_ctrl,): control inputs; None if there are none."""
        names = mech.forces.actuator_names

        def index_of(name: str) -> slice:
            if name not in names:
                known = f"its actuators are {', '.join(names)}" if names else "it has no actuators that act"
                raise click.UsageError(f"--ctrl {name}: {mech.name} has no actuator {name!r}: {known}")
            return slice(names.index(name), names.index(name) + 1)

        for text in self.ctrl:
            if "=" not in text and (not names or text.count(",") not in (0, len(names) - 1)):
                raise click.UsageError(f"--ctrl {text}: {mech.name} has {len(names)} actuators: {', '.join(names)}")
        return (
            spread("--ctrl", self.ctrl, np.zeros(len(names)), index_of, "actuator", listed=True) if self.ctrl else None
        )


@dataclass
class Stopped(Controlled):
    """Force elements of the file that act, the inputs of actuators, and stops at limits.

    limits          joint limits are stops as stiff as this, N m/rad or N/m; by default as suits the inertia
    limit_damping   of stops: the share by which a stop pushes harder per rad/s or m/s that it is run into
    """

    limits: Annotated[float, "STIFFNESS"] | None = None
    limit_damping: float | None = None

    def switch(self, mech: lw.Mechanism) -> lw.Mechanism:
        """The mechanism with its elements switched, and stops as hard."""
        mech, stiffness = super().switch(mech), self.limits
        if stiffness is None:
            if self.limit_damping is not None:
                raise click.UsageError("--limit-damping needs --limits, the stiffness of the stops")
            return mech
        if not (np.isfinite(stiffness) and stiffness > 0.0):
            raise click.UsageError(f"--limits must be a positive stiffness, got {stiffness:g}")
        bounded = [body for body in mech.bodies if np.isfinite([body.limits.lower, body.limits.upper]).any()]
        if not bounded:
            warn(f"--limits: no joint of {mech.name} has limits")
        hard = {"stiffness": stiffness, "damping": self.limit_damping or 0.0}
        return mech.with_limits({body.joint: dataclasses.replace(body.limits, **hard) for body in bounded})


def acting_section(mech: lw.Mechanism, idle: Iterable[object], title: str = "acting") -> Iterator[str]:
    """Sections of the force elements that act, a line for each kind, and of those that do not; empty ones left out."""
    if mech.forces.active:
        yield from section(
            title, (f"{kind.replace('_', ' ')}: {_listed(names)}" for kind, names in mech.forces.active.items())
        )
    lines = [str(each) for each in idle]
    yield from section("of the file, not acting", lines) if lines else ()


def idle_elements(mech: lw.Mechanism) -> Iterator[Idle]:
    """Force elements that were switched off."""
    for kind, names in mech.forces.idle.items():
        if kind != "limits":  # which say whether they were exceeded
            yield Idle(kind, names, option="--acting")


def idle_limits(motion: lw.Trajectory, saturated: bool) -> Iterator[Idle]:
    """Limits of the file that a motion did not enforce."""
    mech, of_joint = motion.mechanism, motion.mechanism.coordinates.place
    off, targets = mech.forces.idle.get("limits", ()), {actuator.target for actuator in mech.forces.actuators}
    bodies = [body for body in mech.bodies if body.joint in off]
    bounds = [(b, of_joint(b.joint).positions(motion.q), b.limits.lower, b.limits.upper) for b in bodies]
    yield from _idle("limits", bounds, "--acting")
    bodies = [body for body in mech.bodies if body.joint not in targets]
    rates = ((b, of_joint(b.joint).velocities(motion.v), np.asarray(b.limits.velocity)) for b in bodies)
    yield from _idle("velocity limits", [(b, v, -limit, limit) for b, v, limit in rates], None)
    if not saturated and motion.tau.any():
        bodies = [body for body in mech.bodies if not body.mimic]
        forces = ((b, motion.tau[:, mech.v_index(b.joint)], np.asarray(b.limits.effort)) for b in bodies)
        yield from _idle("effort limits", [(b, tau, -limit, limit) for b, tau, limit in forces], "--saturate")


def _idle(message: str, bounds: Iterable[tuple[Any, np.ndarray, Any, Any]], option: str | None) -> Iterator[Idle]:
    """Finite bounds (n,) of the values (m, n) of bodies, and the joints that went beyond them."""
    exceeded = {}
    for body, values, lower, upper in bounds:
        if np.isfinite([lower, upper]).any():
            sizes = [np.where(np.isfinite(bound), np.abs(bound), 0.0) for bound in (lower, upper)]
            slack = BEYOND * np.maximum(*sizes)
            exceeded[body.joint] = bool(((values > upper + slack) | (values < lower - slack)).any())
    if exceeded:
        yield Idle(message, tuple(exceeded), tuple(joint for joint, is_beyond in exceeded.items() if is_beyond), option)


def saturated_joints(motion: lw.Trajectory) -> tuple[str, ...]:
    """Joints whose forces were cut off."""
    mech = motion.mechanism
    return tuple(
        body.joint
        for body in mech.bodies
        if not body.mimic and (np.abs(motion.tau[:, mech.v_index(body.joint)]) >= body.limits.effort).any()
    )
