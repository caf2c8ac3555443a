"""Events: moments at which a function of the state passes through zero."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.optimize import brentq, fminbound

from ..dynamics.states import Float64Array
from ..mechanism import Mechanism, MechanismError
from .forces import Function, evaluate

__all__ = ["Event", "Occurrence", "joint_passes", "velocity_zero", "when"]

PARTS = 8  # of every step: event functions are sampled at their ends
DIP = 1e-6  # relative to two parts: shorter excursions past zero may be missed


@dataclass(frozen=True)
class Event:
    """The zeros of ``function(t, q, v)``; make one with ``when``, ``joint_passes`` or ``velocity_zero``.

    direction   1: where it rises through zero, -1: where it falls, 0: both
    terminal    whether the motion ends there
    """

    function: Function
    name: str
    direction: int = 0
    terminal: bool = False


@dataclass(frozen=True)
class Occurrence:
    """An event that occurred: its name, time and state."""

    name: str
    t: float
    q: Float64Array
    v: Float64Array


def when(function: Function, name: str | None = None, direction: int = 0, terminal: bool = False) -> Event:
    """The event that ``function(t, q, v)``, a continuous scalar, passes through zero."""
    if not callable(function):
        raise TypeError(f"an event is one of lw.motion or a function of (t, q, v), not {function!r}")
    if direction not in (-1, 0, 1):
        raise ValueError(f"direction must be 1 (rising), -1 (falling) or 0 (both), not {direction!r}")
    if terminal not in (False, True):
        raise ValueError(f"terminal must be True or False, not {terminal!r}")
    return Event(function, name or str(getattr(function, "__name__", "event")), direction, bool(terminal))


def _as_event(function: Function) -> Event:
    """The event of a plain function, which may have SciPy's attributes ``direction`` and ``terminal``."""
    return when(function, None, getattr(function, "direction", 0), getattr(function, "terminal", False))


def joint_passes(
    mech: Mechanism, joint: str, value: float, coordinate: int = 0, direction: int = 0, terminal: bool = False
) -> Event:
    """The event that a coordinate of the named joint passes ``value``; mimic joints have a coordinate here too.

    Angles are as in q: they count revolutions.
    """
    entry = mech.coordinates.place(joint)
    k = _checked(joint, entry.q_index, coordinate)
    return when(lambda t, q, v: entry.positions(q)[k] - value, f"{joint} passes {value:g}", direction, terminal)


def velocity_zero(
    mech: Mechanism, joint: str, coordinate: int = 0, direction: int = 0, terminal: bool = False
) -> Event:
    """The event that a velocity of the named joint passes through zero: where it reverses."""
    entry = mech.coordinates.place(joint)
    k = _checked(joint, entry.v_index, coordinate)
    return when(lambda t, q, v: entry.velocities(v)[k], f"{joint} turns back", direction, terminal)


def _checked(joint: str, columns: slice, coordinate: int) -> int:
    if not 0 <= coordinate < columns.stop - columns.start:
        raise MechanismError(
            f"joint {joint!r} has no coordinate {coordinate}: it has {columns.stop - columns.start}, from 0 on"
        )
    return coordinate


class Watch:
    """Detects events from step to step."""

    def __init__(self, events: Event | Function | Sequence[Event | Function]):
        listed = events if isinstance(events, Sequence) and not isinstance(events, str) else (events,)
        self._events = tuple(event if isinstance(event, Event) else _as_event(event) for event in listed)
        self._values: list[float] = []

    def __len__(self) -> int:
        return len(self._events)

    @property
    def names(self) -> list[str]:
        """Names of the events, in the order given."""
        return [event.name for event in self._events]

    def start(self, t: float, q: Float64Array, v: Float64Array) -> None:
        """Record the initial state; a zero there is not an event."""
        self._values = [self._value(event, t, q, v) for event in self._events]

    def within(
        self,
        t_old: float,
        t: float,
        state: tuple[Float64Array, Float64Array],
        between: Callable[[float], tuple[Float64Array, Float64Array]],
    ) -> tuple[list[Occurrence], bool]:
        """Occurrences in (t_old, t], in order of time up to the first terminal event, and whether there is one."""
        inside = np.linspace(t_old, t, PARTS + 1).tolist()[1:-1]
        looks = [(time, between(time)) for time in inside] + [(t, state)]
        crossings: list[tuple[float, Event]] = []
        for i, event in enumerate(self._events):
            seen = [(t_old, self._values[i]), *((time, self._value(event, time, *there)) for time, there in looks)]
            self._values[i] = seen[-1][1]

            def value(time: float, event: Event = event) -> float:
                return self._value(event, time, *between(time))

            for before, after in pairwise(sorted(seen + _dips(seen, value))):
                rises, falls = before[1] < 0.0 <= after[1], before[1] > 0.0 >= after[1]
                if (rises and event.direction >= 0) or (falls and event.direction <= 0):
                    crossings.append((_moment(before[0], *after, value), event))
        last = min((moment for moment, event in crossings if event.terminal), default=t)
        crossings = sorted(
            (crossing for crossing in crossings if crossing[0] <= last),
            key=lambda crossing: (crossing[0], crossing[1].terminal),
        )
        occurrences = [
            Occurrence(event.name, moment, *(state if moment == t else between(moment))) for moment, event in crossings
        ]
        return occurrences, bool(crossings) and crossings[-1][1].terminal

    @staticmethod
    def _value(event: Event, t: float, q: np.ndarray, v: np.ndarray) -> float:
        value = evaluate(f"event {event.name!r}", event.function, t, q, v, kinds="iuf")
        if value.size != 1 or not np.isfinite(value).all():
            raise MechanismError(f"event {event.name!r} gives {value} at t = {t:.6g} s, not one finite number")
        return float(value.reshape(()))


def _dips(seen: list[tuple[float, float]], value: Callable[[float], float]) -> list[tuple[float, float]]:
    """Times and values of excursions past zero between three successive samples on one side of it.

    The search runs where the parabola through three samples has its vertex between them and bends towards zero.
    Samples that differ by less than their distance from zero are skipped: the function does not reach it.
    """
    dips = []
    for (start, a), (_, b), (end, c) in zip(seen, seen[1:], seen[2:], strict=False):
        side = math.copysign(1.0, b)
        a, b, c = side * a, side * b, side * c
        has_vertex = (
            3.0 * a - 4.0 * b + c >= 0.0 and 3.0 * c - 4.0 * b + a >= 0.0
        )  # minus and plus the slopes at the ends
        if has_vertex and 0.0 < min(a, b, c) <= max(a, b, c) - min(a, b, c):
            time = float(fminbound(lambda time, side=side: side * value(time), start, end, xtol=DIP * (end - start)))
            lowest = value(time)
            if side * lowest < 0.0:
                dips.append((time, lowest))
    return dips


def _moment(t_old: float, t: float, after: float, value: Callable[[float], float]) -> float:
    """Time of a zero crossing between t_old and t, where the value is ``after``.  The function is past zero at the
    result, so that a motion resumed there does not find the same event again."""
    if after == 0.0:
        return t
    side = math.copysign(1.0, after)

    def past(time: float) -> float:
        return side * (after if time == t else value(time))

    if past(t_old) >= 0.0:  # the interpolation starts past zero: the step began on it but for round-off
        return t_old
    moment, gap = brentq(past, t_old, t, xtol=4e-16 * max(abs(t), t - t_old), rtol=9e-16), math.ulp(t)
    while moment < t and past(moment) <= 0.0:
        moment, gap = min(t, moment + gap), 2.0 * gap
    return moment
