"""What drives the rollouts of a study: what ``Rollout`` gives, with numbers that vary in their places."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import linkwise as lw

from ..motion.arguments import drive_array
from .cases import Cases
from .errors import StudyError

FEEDBACK = ("target", "kp", "kd")
IN_TIME = ("tau", "ctrl", "target")  # which may change from step to step


def driven(cases: Cases, tau: Any, ctrl: Any, feedback: Any) -> dict[str, Any]:
    """Driving arguments of ``lw.rollout``, for every case where they vary."""
    return {
        "tau": _placed(cases, "tau", tau),
        "ctrl": _placed(cases, "ctrl", ctrl),
        "feedback": _feedback(cases, feedback),
    }


def nominal(mech: lw.Mechanism, tau: Any, ctrl: Any, feedback: Any) -> dict[str, np.ndarray | None]:
    """Constant driving values, of which factors and steps may vary; None where they change in time.
    Zero, or the initial configuration, where nothing is given."""
    gains = feedback if isinstance(feedback, Mapping) else dict.fromkeys(FEEDBACK, feedback)
    values = {"tau": tau, "ctrl": ctrl, **{name: gains.get(name) for name in FEEDBACK}}
    arrays = {name: None if callable(x) else drive_array(mech, name, x) for name, x in values.items()}
    return {name: None if x is None or x.ndim > 1 else x for name, x in arrays.items()}


def _feedback(cases: Cases, feedback: Any) -> Any:
    varied = [name for name in FEEDBACK if cases.varies(name)]
    if not varied:
        return feedback
    if feedback is not None and not isinstance(feedback, Mapping):
        raise StudyError("target, kp and kd vary with feedback={'target': ...}, not with a compiled controller")
    gains = dict(feedback or {})
    gains.setdefault("target", np.array(cases.mechanism.initial))
    return gains | {name: _placed(cases, name, gains.get(name)) for name in varied}


def _placed(cases: Cases, head: str, value: Any) -> Any:
    """A driving argument with the varied numbers of all or single joints or actuators in place."""
    if not cases.varies(head):
        return value
    if head in cases.values:  # of all: nothing is left of what is given
        value = None
    if callable(value):  # which lw.rollout refuses, unless it is held
        held: Any = value
        return replace(held, function=Replacing(cases, head, held.function)) if hasattr(held, "period") else held
    values = drive_array(cases.mechanism, head, value)
    return cases.placed(head, values[None] if head in IN_TIME and values.ndim == 1 else values)


@dataclass(frozen=True, eq=False)
class Replacing:
    """A controller that is asked for all cases at once, of which single joints or actuators vary."""

    cases: Cases
    head: str
    function: Callable[..., Any]

    def __call__(self, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        driving = drive_array(self.cases.mechanism, self.head, self.function(t, q, v))
        return self.cases.placed(self.head, np.broadcast_to(driving, (len(self.cases), 1, driving.shape[-1])))[:, 0]
