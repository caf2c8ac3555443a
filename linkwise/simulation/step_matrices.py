"""Matrices of the steps of a rollout, with all that acts: what optimal control along a motion is made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..dynamics.by_actuator import inputs_by_actuator, unless_empty
from ..dynamics.by_joint import state_by_joint
from ..dynamics.force_elements import ALL, chosen_forces
from ..dynamics.passive import Passive
from ..dynamics.states import Float64Array, real_numbers
from ..mechanism import Mechanism, MechanismError, one_of, require_mechanism
from .rollout_gradients import rollout_vjp

BY = ("tau", "ctrl")


def rollout_derivatives(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    tau: Any,
    dt: ArrayLike | None,
    method: str | None = None,
    *,
    by: str = "tau",
    wrenches: ArrayLike | None = None,
    feedback: Mapping[str, Any] | None = None,
    ctrl: Any = None,
    passive: Passive | None = None,
    forces: Any = ALL,
) -> tuple[Float64Array, Float64Array]:
    """(A, B) of every step of a motion that ``rollout`` gave: (..., steps, 2 nv, 2 nv) and (..., steps, 2 nv, nv), with
    contact, actuators, damping and all else that acts, loops closed.

    q, v    what ``rollout`` returned with every=1: (..., steps + 1, nq), (..., steps + 1, nv)
    by      what B is by: "tau", or "ctrl", the control inputs of actuators: (..., steps, 2 nv, n_ctrl)
    tau, dt, method, wrenches, feedback, ctrl, forces, passive   as ``rollout`` was given them

    dx_next = A dx + B du, where x is (q, v) with changes of configurations along tangent directions (``difference``).
    By ``rollout_vjp``, one step backwards for each row; ``step_derivatives`` are those of the bare mechanism.
    """
    require_mechanism(mech)
    if forces is not ALL:
        mech, passive = chosen_forces(mech, forces, passive)
    one_of("by", by, BY)
    q, v = real_numbers("q", q), real_numbers("v", v)
    if q.ndim < 2 or q.shape[-1] != mech.nq or v.shape[-1:] != (mech.nv,) or v.shape[:-1] != q.shape[:-1]:
        raise MechanismError(
            f"q and v must be those of rollout, (..., steps + 1, {mech.nq}) and (..., steps + 1, {mech.nv}), "
            f"got {q.shape} and {v.shape}"
        )
    if any(one.has_activation for one in mech.forces.actuators):
        raise MechanismError("rollout_derivatives: actuators with states of their own need rollout_vjp")
    n = mech.nv
    unit = np.zeros((2 * n, 2, 2 * n), q.dtype)  # each element of the state at the end of a step counts for itself
    unit[:, 1] = np.eye(2 * n)
    unit = unit.reshape(2 * n, *(1,) * (q.ndim - 1), 2, 2 * n)
    starts_and_ends = [np.stack([x[..., :-1, :], x[..., 1:, :]], axis=-2) for x in (q, v)]
    if feedback is not None and "target" in feedback:
        feedback = {**feedback, "target": _per_step(feedback["target"], 1)}
    found = rollout_vjp(
        mech,
        starts_and_ends[0],
        starts_and_ends[1],
        _per_step(state_by_joint(mech, {"tau": tau})["tau"], 1),
        dt,
        1,
        (unit[..., :n], unit[..., n:]),
        method,
        wrt=("q0", "v0", by),
        wrenches=_per_step(wrenches, 2),
        feedback=feedback,
        ctrl=_per_step(inputs_by_actuator(mech, unless_empty(mech, ctrl)), 1),
        passive=passive,
    )
    rows = np.concatenate([found["q0"], found["v0"]], axis=-1)
    return np.moveaxis(rows, 0, -2), np.moveaxis(found[by][..., 0, :], 0, -2)


def _per_step(given: Any, core: int) -> Any:
    """What drives a rollout, (..., steps, *core), as that of as many rollouts of one step: (..., steps, 1, *core)."""
    if given is None or np.ndim(given) == core or isinstance(given, Mapping):
        return given
    return np.expand_dims(np.asarray(given), -core - 1)
