"""Prescribed motion (rheonomic constraints): a number as a function of time, with its first two derivatives."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from linkwise.mechanics.jet import Jet, parts
from linkwise.mechanism.checks import MechanismError

Function = Callable[[Any], Any]


class Instant(NamedTuple):
    """Prescribed value, rate and second rate at one time."""

    position: float = 0.0
    velocity: float = 0.0
    acceleration: float = 0.0


@dataclass(frozen=True)
class Drive:
    """A number that follows a function of time.

    position       ``f(t)``; None if only the rate is known, and then no position is kept
    velocity       its rate ``f'(t)``, a function or a constant
    acceleration   its second rate ``f''(t)``

    Rates that are left out are found by exact differentiation of the given function, which must then use plain
    arithmetic and NumPy's sin, cos and sqrt. Give all three for any other function, such as a spline.
    """

    position: Function | None = None
    velocity: Function | float | None = None
    acceleration: Function | float | None = None

    def __post_init__(self) -> None:
        if self.position is None and self.velocity is None:
            raise MechanismError("a drive follows a position f(t), or a velocity: give one of them")
        for name in ("position", "velocity", "acceleration"):
            value = getattr(self, name)
            if value is not None and not callable(value):
                object.__setattr__(self, name, _number(f"the {name} of a drive", value))
        if self.position is not None and not callable(self.position):
            raise MechanismError(
                f"the position of a drive is a function of time, not {self.position!r}: what stays in one place is a "
                "coupling with an offset, or a locked joint"
            )

    def at(self, t: float) -> Instant:
        """Value and rates at the time t."""
        if self.position is None:
            rates = self._value_and_rates("velocity", self.velocity, t)[:2]
            return Instant(0.0, rates[0], rates[1] if self.acceleration is None else _value(self.acceleration, t))
        if self.velocity is not None and self.acceleration is not None:
            functions = (self.position, self.velocity, self.acceleration)
            return Instant(*(_number("the value of a drive", _value(function, t)) for function in functions))
        value, rate, second = self._value_and_rates("position", self.position, t)
        if self.velocity is not None:
            rate, second, _ = self._value_and_rates("velocity", self.velocity, t)
        return Instant(value, rate, second)

    def _value_and_rates(self, name: str, function: Any, t: float) -> tuple[float, float, float]:
        """The value of a function and its first two rates."""
        try:
            value, first, second = parts(function(Jet(float(t), 1.0)) if callable(function) else function)
            return _number(name, value), _number(name, first), _number(name, second)
        except MechanismError:
            raise
        except Exception as error:
            raise MechanismError(
                f"the {name} of a drive could not be differentiated ({type(error).__name__}: {error}): give its rates "
                "too, Drive(position, velocity, acceleration)"
            ) from error


def _value(function: Any, t: float) -> Any:
    return function(float(t)) if callable(function) else function


def _number(label: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise MechanismError(f"{label} must be one number, got {value!r}") from None
    if not math.isfinite(number):
        raise MechanismError(f"{label} must be finite, got {number}")
    return number


def drive_of(position: Any, velocity: Any = None, acceleration: Any = None) -> Drive:
    """A drive, from a ``Drive`` or from functions of time."""
    if isinstance(position, Drive):
        if velocity is not None or acceleration is not None:
            raise MechanismError("a Drive has its own velocity and acceleration: give them there")
        return position
    return Drive(position, velocity, acceleration)
