"""Motions as functions of JAX: a scan over compiled steps, with all derivatives that these have."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import linkwise as lw

from ..frameworks import ALL, chosen_forces, spacing, unless_empty
from ..motion.step_kernels import (
    ACTIVATION,
    ACTIVE,
    DRIVE,
    arrays_by_name,
    check_numbers,
    is_reliable,
    optional_inputs,
    step_inputs,
    step_length,
    stride,
)
from .kernels import call_p
from .signatures import Signature, precision_of, signature, usual_target


def rollout(
    mech: lw.Mechanism,
    q0: Any,
    v0: Any,
    tau: Any,
    dt: Any,
    steps: int,
    method: str | None = None,
    *,
    wrenches: Any = None,
    feedback: Mapping[str, Any] | None = None,
    parameters: Mapping[str, Any] | None = None,
    ctrl: Any = None,
    activation: Any = None,
    return_activation: bool = False,
    every: int = 1,
    final_only: bool = False,
    passive: lw.forces.Passive | None = None,
    active: Any = None,
    forces: Any = ALL,
    drive: Any = None,
) -> tuple[jax.Array, ...]:
    """(q, v), (..., steps + 1, nq) and (..., steps + 1, nv): ``linkwise.rollout``, with derivatives by all arrays.

    every        each ``every``-th state only, (..., steps // every + 1, nq): those between are computed again for
                 gradients, which needs less memory and takes one more rollout
    final_only   the last state, (..., nq); gradients use about sqrt(steps) states that are kept

    Arguments and their shapes are those of ``linkwise.rollout``, whose other options are not taken; numbers by joint or
    actuator, {joint: ...}, must be known when JAX traces.  Derivatives are
    those of the steps, one after the other: forwards, backwards (which keeps the states, and nothing else), and of
    derivatives.  Initial states of closed mechanisms must be assembled; from the first step on that compiled
    elimination cannot be relied on, near singular positions, states are not a number.
    """
    if forces is not ALL:
        mech, passive = chosen_forces(mech, forces, passive)
    count = whole_number("steps", steps, 0)
    apart = stride(count, whole_number("every", every, 1), False)
    if final_only and apart == 1:
        apart = spacing(count)
    if feedback is not None and not isinstance(feedback, Mapping):
        raise TypeError(
            f"feedback is a dictionary such as {{'target': q, 'kp': kp, 'kd': kd}}, got {type(feedback).__name__}: "
            "linkwise.rollout takes controllers, without gradients; in JAX write them as functions of the state, and "
            "scan over linkwise.jax.differentiable(linkwise.motion.step_kernel(mech, dt))"
        )
    if callable(tau) or callable(ctrl):
        raise TypeError(
            "rollout: tau and ctrl must be arrays: a controller in JAX is a function inside a scan of yours"
        )
    if {"kp", "gain"} & {*(feedback or ())} and "target" not in (feedback or ()):
        raise ValueError("rollout: feedback with kp or gain needs a target, the configuration that it leads to")
    dt = step_length(mech, dt)
    driven = {"tau": tau, "wrenches": wrenches, "ctrl": unless_empty(mech, ctrl), ACTIVATION: activation}
    driven[DRIVE] = drive
    driven[ACTIVE] = None if active is None else jnp.asarray(active, jnp.float32)
    arguments = {"q": q0, "v": v0, "dt": dt, **driven, **dict(feedback or {}), **dict(parameters or {})}
    _refuse_traced_names(arguments)
    named = arrays_by_name(mech, arguments)
    arguments = {name: x for name, x in arguments.items() if x is not None and name not in named}
    dtype = precision_of("rollout", [x for name, x in arguments.items() if name not in (ACTIVE, DRIVE)])
    arguments |= {name: x.astype(dtype) for name, x in named.items()}
    if mech.constraints.driven and drive is None:  # from the time 0
        arguments[DRIVE] = lw.motion.drive_values(mech, np.asarray(dt), count, method)
    arguments |= {name: jnp.asarray(arguments[name], dtype) for name in (ACTIVE, DRIVE) if name in arguments}
    parts = (optional_inputs(arguments), tuple(parameters or ()), passive)
    kernel = lw.motion.step_kernel(mech, dt, method, *parts, dtype=dtype, target=usual_target())
    called = signature(kernel)
    path = _motion(called, count, apart, mech.nq, mech.nv)(*_inputs(mech, called, arguments, count))
    if final_only:
        path = tuple(x[..., -1, :] for x in path)
    if not return_activation:
        return path[:2]
    return path if len(path) > 2 else (*path, jnp.zeros((*path[0].shape[:-1], 0), dtype))


def _refuse_traced_names(arguments: Mapping[str, Any]) -> None:
    """Numbers by joint become arrays in NumPy, where nothing is differentiated."""
    for name, x in arguments.items():
        if isinstance(x, Mapping) and any(isinstance(value, jax.core.Tracer) for value in x.values()):
            index_call = "mech.q_index(joint)" if name in ("q", "target") else "mech.v_index(joint)"
            raise TypeError(
                f"rollout: {name} has numbers by name that JAX traces, to differentiate or map: give an array, such as "
                f"array.at[{index_call}].set(value)"
            )


def whole_number(label: str, value: Any, least: int) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(
            f"rollout: {label} must be an integer that is known when JAX traces the function, got {value!r}"
        ) from None
    if number < least:
        raise ValueError(f"rollout: {label} must be an integer, at least {least}, got {number}")
    return number


def _inputs(
    mech: lw.Mechanism, called: Signature, arguments: Mapping[str, Any], steps: int
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The checked inputs of a step by name: constant ones (..., core), and those given per step (steps, ..., core)."""

    def array(name: str, x: Any) -> Any:
        return called.array(name, x if name in arguments and x is arguments[name] else x.astype(called.dtype))

    fixed, changing = {}, {}
    shapes = dict(zip(called.names, called.shapes, strict=True))
    for name, (x, axis) in step_inputs(mech, shapes, arguments, steps, array).items():
        if name in arguments and _is_known(arguments[name], x):
            check_numbers(mech, name, np.asarray(arguments[name], x.dtype))
        if axis is None:
            fixed[name] = x
        elif x.shape[axis] == 1:
            fixed[name] = jnp.squeeze(x, axis)
        else:
            changing[name] = jnp.moveaxis(x, axis, 0)
    leads = _leads(called, fixed, changing)
    try:
        np.broadcast_shapes(*leads.values())
    except ValueError:
        listed = ", ".join(f"{name} {lead}" for name, lead in leads.items())
        raise lw.KernelError(f"rollout: the batch shapes do not broadcast: {listed}") from None
    return fixed, changing


def _is_known(value: Any, x: Any) -> bool:
    """Whether the numbers of ``value``, a JAX array ``x``, are available: not while tracing, and not on a GPU."""
    if isinstance(x, jax.core.Tracer):
        return False
    return not isinstance(value, jax.Array) or all(device.platform == "cpu" for device in value.devices())


@lru_cache(maxsize=256)
def _motion(called: Signature, steps: int, every: int, nq: int, nv: int) -> Callable[..., tuple[jax.Array, ...]]:
    """The rollout as a compiled function of the constant inputs and of those per step, whose first axis is the step."""
    cores = dict(zip(called.names, called.shapes, strict=True))
    names = ("q", "v", *(ACTIVATION,) * (ACTIVATION in cores))

    def motion(fixed: dict[str, Any], changing: dict[str, Any]) -> tuple[jax.Array, ...]:
        batch = np.broadcast_shapes(*_leads(called, fixed, changing).values())
        start = tuple(jnp.broadcast_to(fixed[name], (*batch, *cores[name])) for name in names)

        def step(state: tuple[Any, ...], now: dict[str, Any]) -> tuple[Any, None]:
            inputs = {**fixed, **now, **dict(zip(names, state, strict=True))}
            end, *trust = call_p.bind(*(inputs[name] for name in called.names), called=called)
            if trust:
                end = jnp.where(is_reliable(trust[0])[..., None], end, jnp.nan)
            return tuple(jnp.split(end, (nq, nq + nv), axis=-1)[: len(names)]), None

        def record(state: tuple[Any, ...], now: dict[str, Any]) -> tuple[Any, Any]:
            """The next state that is kept, ``every`` steps later."""
            last = step(state, now)[0] if every == 1 else jax.lax.scan(step, state, now, length=every)[0]
            return last, last

        if every > 1:
            record = jax.checkpoint(record)
            changing = {name: x.reshape((-1, every, *x.shape[1:])) for name, x in changing.items()}
        _, path = jax.lax.scan(record, start, changing, length=steps // every)
        return tuple(
            jnp.moveaxis(jnp.concatenate([first[None], after]), 0, -2) for first, after in zip(start, path, strict=True)
        )

    return jax.jit(motion)


def _leads(called: Signature, fixed: Mapping[str, Any], changing: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """The batch axes of each input."""
    ranks = {name: len(core) for name, core in zip(called.names, called.shapes, strict=True)}
    leads = {name: x.shape[: x.ndim - ranks[name]] for name, x in {**fixed, **changing}.items()}
    return {name: lead[1:] if name in changing else lead for name, lead in leads.items()}
