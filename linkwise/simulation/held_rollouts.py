"""Rollouts under controllers that are asked every so many steps, and held in between."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np

from ..dynamics.by_actuator import inputs_by_actuator, unless_empty
from ..dynamics.by_joint import state_by_joint
from ..dynamics.states import array_of, otherwise, real_numbers
from ..mechanism import Mechanism, MechanismError
from .functions import Held, answer
from .rollout_inputs import by_name, count, step_length
from .steps import ACTIVATION

WHOLE = 1e-6  # by which a period may miss a whole number of steps, in steps
CORES = {"tau": 1, "ctrl": 1, "wrenches": 2, "target": 1}  # axes of one value of inputs that may change in every step

Rollout = TypeVar("Rollout", bound=Callable[..., Any])


def asking_controllers(rollout: Rollout) -> Rollout:
    """A rollout whose ``tau`` and ``ctrl`` may be ``lw.motion.held``."""

    @wraps(rollout)
    def run(mech: Any, q0: Any, v0: Any, tau: Any, dt: Any, steps: Any, *more: Any, **options: Any) -> Any:
        if isinstance(tau, Held) or isinstance(options.get("ctrl"), Held):
            if more:
                options["method"] = more[0]
            return _in_turns(rollout, mech, q0, v0, tau, step_length(mech, dt), count("steps", steps, 0), options)
        return rollout(mech, q0, v0, tau, dt, steps, *more, **options)

    return cast(Rollout, run)


def _in_turns(
    rollout: Any, mech: Mechanism, q0: Any, v0: Any, tau: Any, dt: Any, steps: int, options: dict[str, Any]
) -> tuple[np.ndarray, ...]:
    """One short rollout after the other, each under what the controllers gave at its start."""
    asked = {name: x for name, x in (("tau", tau), ("ctrl", options.pop("ctrl", None))) if x is not None}
    every, final_only = options.pop("every", 1), options.pop("final_only", False)
    wants_activation, activation = options.pop("return_activation", False), options.pop(ACTIVATION, None)
    if options.pop("out", None) is not None:
        raise MechanismError("rollout: out is not for controllers that are held; leave it out")
    turn = _steps_of_a_turn(dt, [one for one in asked.values() if isinstance(one, Held)])
    feedback = by_name("feedback", options.pop("feedback", None), "{'target': q}")
    given = {**asked, "wrenches": options.pop("wrenches", None), "target": feedback.get("target")}
    state = state_by_joint(mech, {"q": q0, "v": v0})
    q, v = (otherwise(mech, name) if x is None else array_of(name, x) for name, x in state.items())
    batch = np.broadcast_shapes(q.shape[:-1], v.shape[:-1])
    q, v = np.broadcast_to(q, (*batch, mech.nq)), np.broadcast_to(v, (*batch, mech.nv))
    kept: list[tuple[np.ndarray, ...]] = []
    for start in range(0, steps, turn):
        length = min(turn, steps - start)
        now = {name: _at(mech, name, x, start * dt, q, v, start, length, steps) for name, x in given.items()}
        target = {} if feedback.get("target") is None else {"target": now["target"]}
        inputs = {name: x for name, x in now.items() if name in ("ctrl", "wrenches") and x is not None}
        found = rollout(
            mech, q, v, now.get("tau"), dt, length, **options, **inputs, activation=activation,
            feedback={**feedback, **target} or None, return_activation=True,
        )  # fmt: skip
        q, v, activation = (x[..., -1, :] for x in found)
        activation = activation if activation.shape[-1] else None
        kept.append(tuple(x if not kept else x[..., 1:, :] for x in found))
    if not steps:
        return rollout(mech, q, v, None, dt, 0, **options, every=every, final_only=final_only)
    whole = [np.concatenate(parts, axis=-2) for parts in zip(*kept, strict=True)]
    if steps % count("every", every, 1):
        raise ValueError(f"every must divide the number of steps: {steps} steps are no multiple of {every}")
    chosen = [x[..., -1, :] if final_only else x[..., ::every, :] for x in whole]
    return tuple(chosen) if wants_activation else tuple(chosen[:2])


def _steps_of_a_turn(dt: Any, functions: list[Held]) -> int:
    """How many steps lie between two questions."""
    length = real_numbers("dt", dt)
    periods = {one.period for one in functions}
    if length.ndim or len(periods) > 1:
        raise MechanismError("rollout: controllers that are held need one dt for all states, and the same period")
    (period,) = periods
    steps = period / abs(float(length)) if length else 0.0
    if round(steps) < 1 or abs(steps - round(steps)) > WHOLE * steps:
        raise MechanismError(
            f"rollout: the period {period:g} s of a held controller must be a whole number of steps, of "
            f"{float(length):g} s"
        )
    return round(steps)


def _at(
    mech: Mechanism, name: str, given: Any, t: float, q: np.ndarray, v: np.ndarray, start: int, length: int, steps: int
) -> Any:
    """What a controller gives at the start of a turn, for all its steps; of inputs by step, those of the turn."""
    if isinstance(given, Held):
        size = mech.nv if name == "tau" else mech.n_ctrl
        found = answer(name, lambda *state: inputs_by_actuator(mech, given(*state)), t, q, v)
        if found.shape[-1:] != (size,) or found.ndim > v.ndim:
            raise MechanismError(
                f"rollout: at t = {t:.6g} s {name} gives an array of shape {found.shape}, expected (..., {size})"
            )
        return found[..., None, :].astype(q.dtype)
    given = inputs_by_actuator(mech, unless_empty(mech, given)) if name == "ctrl" else given
    if given is None or isinstance(given, dict):
        return given
    values = array_of(name, given)
    axis = -1 - CORES[name]
    by_step = values.ndim > CORES[name] and values.shape[axis] == steps
    return np.take(values, range(start, start + length), axis=axis) if by_step else values
