"""What drives a motion: joint forces from a table, springs and dampers towards a target, gravity held, computed torque
along a motion, a regulator; their limits."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated

import click
import numpy as np

import linkwise as lw

from .files import called, contents
from .signatures import File
from .state import joint_numbers, named, spread
from .tables import Table, Units

Control = Callable[..., np.ndarray]  # of (t, q, v)
FOLLOWING = 100.0, 20.0  # kp (1/s^2) and kd (1/s) of computed torque: errors decay in 0.1 s


@dataclass
class Driving:
    """What drives a motion.

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
        """Joint forces as a function of time and state, None if there are none, and for how long."""
        self._refuse_two_controllers()
        control: Control | None
        if self.follow is not None:
            control, whole_duration = self._following(mech, self.follow)
            duration = whole_duration if duration is None else duration
        elif self.regulator is not None:
            control = _regulator(mech, self.regulator)
        else:
            control = self._feedback(mech, q)
        if self.torques is not None:
            control, duration = _driven(mech, self.torques, control, duration)
        if duration is None:
            raise click.UsageError("how long? Give --duration, in seconds")
        if self.saturate and control is None:
            raise click.UsageError(
                "--saturate is for the forces of --torques, --kp, --kd, --hold-gravity, --follow or --regulator: give "
                "one"
            )
        return lw.control.saturated(mech, control) if self.saturate and control is not None else control, duration

    def _refuse_two_controllers(self) -> None:
        springs = {"--target": self.target, "--hold-gravity": self.hold_gravity}
        if self.regulator is not None:
            springs |= {"--kp": self.kp, "--kd": self.kd, "--follow": self.follow}
        first = "--regulator" if self.regulator is not None else "--follow"
        if self.regulator is not None or self.follow is not None:
            for other, value in springs.items():
                if value:
                    raise click.UsageError(f"{first} and {other} are two controllers: give one")

    def _following(self, mech: lw.Mechanism, file: str) -> tuple[Control, float]:
        """Computed torque along the motion of a table, and how long that is."""
        rows = self.units.read(file, mech, ("t", "q"), ("v", "a"))
        _check_times(rows, called(file))
        v, a = rows.get("v"), rows.get("a") if "v" in rows else None
        motion = lw.trajectories.sampled(mech, rows["t"], rows["q"], v, a)
        kp, kd = (
            gains(mech, option, texts) if texts else otherwise
            for option, texts, otherwise in zip(("--kp", "--kd"), (self.kp, self.kd), FOLLOWING, strict=True)
        )
        return lw.control.computed_torque(mech, motion, kp, kd), motion.duration

    def _feedback(self, mech: lw.Mechanism, q: np.ndarray) -> Control | None:
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
    """tau - K [q - q_0; v - v_0] of the gains that ``linkwise lqr -o`` has written."""
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
    """(nv,): NUMBER is for every joint, JOINT=NUMBER for one, or one NUMBER,... for each of its degrees of
    freedom; zero where nothing is given."""

    def index_of(joint: str) -> slice:
        body = mech.bodies[mech.body_index(joint)]
        if body.mimic:
            raise click.UsageError(f"{option} {joint}: joint {joint!r} follows {body.mimic.joint!r}; give that one's")
        return mech.v_index(joint)

    return spread(option, texts, np.zeros(mech.nv), index_of)


def _driven(
    mech: lw.Mechanism, torques: str, feedback: Control | None, duration: float | None
) -> tuple[Control, float]:
    """Forces of a table, and those of ``feedback`` besides."""
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
