"""What drives ask for is looked at before a motion: rates that contradict positions, and positions that jump."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..mechanism import Mechanism, MechanismWarning, warn_caller
from ..mechanism.drives import Drive
from ..mechanism.scales import scales

PLACES = 16  # times at which rates are compared, away from the ends
CONTRADICTION = 0.05  # of the largest rate: what differs by more, at two times at least (one may be a corner)
STEP = 1e-6  # of the span, or of the mechanism's time where that is shorter: of differences
SAMPLES, SUSPECTS, HALVINGS = 256, 3, 30  # times for jumps, intervals that are looked into, and how closely
JUMP = 1e-4  # of the range of a position: what is left of a change in a tiny interval where it is a jump


def warn_of_drives(mech: Mechanism, start: float, duration: float) -> None:
    """One warning for each drive that contradicts itself within the motion."""
    for loop in mech.loops:
        drive = loop.drive
        if isinstance(drive, Drive) and duration > 0.0:
            try:
                found = _contradiction(drive, start, duration, STEP * min(duration, scales(mech).time))
            except Exception:  # its own errors are told when the motion gets there, if it does
                continue
            if found:
                warn_caller(f"drive {loop.name!r} of mechanism {mech.name!r}: {found}", MechanismWarning)


def _contradiction(drive: Drive, start: float, duration: float, step: float) -> str | None:
    position, velocity, acceleration = drive.position, drive.velocity, drive.acceleration
    if callable(position) and velocity is not None:
        if told := _differing("velocity", "position", position, velocity, start, duration, step):
            return told
    if callable(velocity) and acceleration is not None:
        if told := _differing("acceleration", "velocity", velocity, acceleration, start, duration, step):
            return told
    return _jump(position, start, duration) if callable(position) else None


def _differing(
    name: str, of: str, function: Callable[[float], Any], rate: Any, start: float, duration: float, h: float
) -> str | None:
    """Where a given rate is not that of the function, by differences over ``h`` to both sides."""
    times = start + duration * (np.arange(PLACES) + 0.4142) / PLACES
    given = np.array([float(rate(t) if callable(rate) else rate) for t in times.tolist()])
    values = np.array([(float(function(t - h)), float(function(t + h))) for t in times.tolist()])
    true = (values[:, 1] - values[:, 0]) / (2.0 * h)
    rounding = 4.0 * np.finfo(float).eps * np.abs(values).max() / h
    scale = max(np.abs(given).max(), np.abs(true).max())
    wrong = np.flatnonzero(np.abs(given - true) > CONTRADICTION * scale + rounding)
    if len(wrong) < 2:
        return None
    k = wrong[0]
    return (
        f"its {name} at t = {times[k]:.4g} s is {given[k]:.4g}, and its {of} changes at a rate of {true[k]:.4g} there: "
        f"give the derivative, or leave the {name} out where the {of} is made of plain arithmetic, which is "
        "differentiated exactly"
    )


def _jump(position: Callable[[float], Any], start: float, duration: float) -> str | None:
    """Where a position jumps: its change does not become small in ever smaller intervals."""
    times = start + np.linspace(0.0, duration, SAMPLES)
    values = np.array([float(position(t)) for t in times.tolist()])
    changes = np.diff(values)
    size = JUMP * np.ptp(values)
    around = np.pad(changes, 1, mode="edge")
    for k in np.argsort(-np.abs(changes - 0.5 * (around[:-2] + around[2:])))[:SUSPECTS]:
        (a, b), (low, high) = times[k : k + 2].tolist(), values[k : k + 2].tolist()
        for _ in range(HALVINGS):
            middle = 0.5 * (a + b)
            value = float(position(middle))
            if abs(value - low) > abs(high - value):
                b, high = middle, value
            else:
                a, low = middle, value
        if abs(high - low) > size:
            return (
                f"its position jumps from {low:.4g} to {high:.4g} at t = {b:.4g} s, which no velocity leads to: give a "
                "function without jumps, such as a ramp"
            )
    return None
