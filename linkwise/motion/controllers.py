"""Rollouts under controllers that are asked every so many steps, and held in between (zero-order hold)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np

from ..dynamics.by_actuator import inputs_by_actuator, unless_empty
from ..dynamics.by_joint import state_by_joint
from ..dynamics.states import STATE, array_of, real_numbers
from ..mechanism import Mechanism, MechanismError
from .arguments import by_name, count, drives_of, step_length
from .forces import Held, answer
from .step import ACTIVATION, ACTIVE, DRIVE, step_of

WHOLE = 1e-6  # by which a period may miss a whole number of steps, in steps
CORES = {"tau": 1, "ctrl": 1, "wrenches": 2, "target": 1, ACTIVE: 1, DRIVE: 3}  # axes of one value of inputs per step

Rollout = TypeVar("Rollout", bound=Callable[..., Any])


def asking_controllers(rollout: Rollout) -> Rollout:
    """A rollout whose ``tau`` and ``ctrl`` may be ``lw.motion.held``."""

    @wraps(rollout)
    def run(mech: Any, q0: Any, v0: Any, tau: Any, dt: Any, steps: Any, *more: Any, **options: Any) -> Any:
        if isinstance(tau, Held) or isinstance(options.get("ctrl"), Held):
            if more:
                options["method"] = more[0]
            turns = _Turns(rollout, mech, step_length(mech, dt), count("steps", steps, 0))
            return turns.run({"q": q0, "v": v0}, tau, options)
        return rollout(mech, q0, v0, tau, dt, steps, *more, **options)

    return cast(Rollout, run)


@dataclass(frozen=True)
class _Turns:
    """One short rollout after the other, each under what the controllers gave at its start."""

    rollout: Callable[..., Any]
    mech: Mechanism
    dt: Any
    steps: int

    def run(self, state: Mapping[str, Any], tau: Any, options: dict[str, Any]) -> tuple[np.ndarray, ...]:
        """``options`` are those of ``rollout``, by name."""
        mech, dt, steps = self.mech, self.dt, self.steps
        asked = {name: x for name, x in (("tau", tau), ("ctrl", options.pop("ctrl", None))) if x is not None}
        every, final_only = options.pop("every", 1), options.pop("final_only", False)
        wants_activation, activation = options.pop("return_activation", False), options.pop(ACTIVATION, None)
        wants_status = options.pop("return_status", False)
        if options.pop("out", None) is not None:
            raise MechanismError("rollout: out is not for controllers that are held; leave it out")
        turn = self._steps_of_a_turn([one for one in asked.values() if isinstance(one, Held)])
        feedback = by_name("feedback", options.pop("feedback", None), "{'target': q}")
        given = {**asked, "target": feedback.get("target")}
        given |= {name: options.pop(name, None) for name in ("wrenches", ACTIVE, DRIVE)}
        if mech.constraints.driven:
            step = step_of(mech, options.get("method"), "joint")
            given |= drives_of(mech, given[DRIVE], step, dt, steps)
        arrays = state_by_joint(mech, state)
        q, v = (STATE[name].otherwise(mech) if x is None else array_of(name, x) for name, x in arrays.items())
        batch = np.broadcast_shapes(q.shape[:-1], v.shape[:-1])
        q, v = np.broadcast_to(q, (*batch, mech.nq)), np.broadcast_to(v, (*batch, mech.nv))
        kept: list[tuple[np.ndarray, ...]] = []
        status = np.zeros((), int)
        for start in range(0, steps, turn):
            part = slice(start, min(start + turn, steps))
            now = {name: self._at(name, x, part, (q, v)) for name, x in given.items()}
            target = {} if feedback.get("target") is None else {"target": now["target"]}
            inputs = {
                name: x for name, x in now.items() if name in ("ctrl", "wrenches", ACTIVE, DRIVE) and x is not None
            }
            *found, ended = self.rollout(
                mech, q, v, now.get("tau"), dt, part.stop - start, **options, **inputs, activation=activation,
                feedback={**feedback, **target} or None, return_activation=True, return_status=True,
            )  # fmt: skip
            q, v, activation = (x[..., -1, :] for x in found)
            activation = activation if activation.shape[-1] else None
            kept.append(tuple(x if not kept else x[..., 1:, :] for x in found))
            status = np.where((status == 0) & (ended > 0), ended + start, status)
        if not steps:
            return self.rollout(mech, q, v, None, dt, 0, **options, every=every, final_only=final_only)
        whole = [np.concatenate(parts, axis=-2) for parts in zip(*kept, strict=True)]
        if steps % count("every", every, 1):
            raise ValueError(f"every must divide the number of steps: {steps} steps are no multiple of {every}")
        chosen = [x[..., -1, :] if final_only else x[..., ::every, :] for x in whole]
        return (*chosen[: 2 + wants_activation], *(status,) * wants_status)

    def _steps_of_a_turn(self, functions: list[Held]) -> int:
        """How many steps lie between two questions."""
        length = real_numbers("dt", self.dt)
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

    def _at(self, name: str, given: Any, part: slice, state: tuple[np.ndarray, np.ndarray]) -> Any:
        """What a controller gives at the start of a turn, for all its steps; of inputs by step, those of the turn."""
        mech, (q, v) = self.mech, state
        if isinstance(given, Held):
            t, size = part.start * self.dt, mech.nv if name == "tau" else mech.n_ctrl
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
        by_step = values.ndim > CORES[name] and values.shape[axis] == self.steps
        return np.take(values, range(part.start, part.stop), axis=axis) if by_step else values
