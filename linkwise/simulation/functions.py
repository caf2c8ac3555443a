"""Functions of the user: controllers, events, wrenches that depend on the state."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..compiler.runtime.arrays import UnreadableArrayError, plain
from ..mechanism import MechanismError

Function = Callable[[float, np.ndarray, np.ndarray], Any]
REAL = "biuf"  # kinds of dtypes that are real numbers


@dataclass(frozen=True)
class Held:
    """A function of (t, q, v) that is asked every ``period`` seconds, at multiples of it, and held in between."""

    function: Function
    period: float

    def __repr__(self) -> str:
        return f"<{self.function!r}, held for {self.period:g} s>"

    def __call__(self, t: float, q: np.ndarray, v: np.ndarray) -> Any:
        return self.function(t, q, v)


def held(control: Function, period: float) -> Held:
    """A digital controller: ``control(t, q, v)`` is asked every ``period`` seconds, at multiples of it, and what it
    gives is held in between (zero-order hold).

    ``control`` and ``ctrl`` of ``simulate`` take it, and ``tau`` and ``ctrl`` of ``rollout``, where the period is a
    whole number of steps and q and v are those of all states.
    """
    if not callable(control):
        raise TypeError(f"held takes a function of (t, q, v), not {control!r}")
    if isinstance(period, bool) or not isinstance(period, numbers.Real) or not 0.0 < period < math.inf:
        raise MechanismError(f"the period of a held controller must be a positive number of seconds, not {period!r}")
    return Held(control, float(period))


def answer(who: str, function: Function, t: float, q: np.ndarray, v: np.ndarray, kinds: str = REAL) -> np.ndarray:
    """The numbers that ``function(t, q, v)`` gives, of dtypes of these ``kinds``; an error names ``who`` gave others.

    The function gets copies and so does the caller: a function may change its arguments, keep them, and give the same
    array again and again, and the integration is none the worse for it.
    """
    given = function(t, q.copy(), v.copy())
    if isinstance(given, Mapping):
        made = ": linkwise.forces.wrenches_at makes one of pushes on links and frames" if who == "wrenches" else ""
        raise MechanismError(f"at t = {t:.6g} s {who} gives a dictionary, but an array of numbers is needed{made}")
    try:
        values = np.asarray(plain(given))
    except UnreadableArrayError as unread:
        raise MechanismError(f"at t = {t:.6g} s {who} gives an array that {unread}") from None
    except ValueError as ragged:
        raise MechanismError(f"at t = {t:.6g} s {who} gives no array: {ragged}") from None
    if values.dtype.kind not in kinds:
        raise MechanismError(
            f"at t = {t:.6g} s {who} gives {given!r}, of type {values.dtype}, but real numbers are needed"
        )
    return np.array(values, dtype=float)
