"""Rollouts in which torch sees every step: mechanisms with loops, and rollouts on a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

import linkwise as lw

from ..frameworks import spacing
from ..motion.step_kernels import GAINS, PER_STEP, left_out, stride, with_motors
from .kernels import DTYPES, differentiable
from .signatures import DEVICES

STEP_BY_STEP = (
    "take them through linkwise.torch.differentiable(linkwise.motion.step_kernel(mech, dt), 'state'), step after step, "
    "or through linkwise.jax.rollout"
)
START = {"q0": "q", "v0": "v"}  # what callers know as initial states -> inputs of a step


def step_by_step(
    mech: lw.Mechanism,
    arguments: Mapping[str, Any],
    dt: float | None,
    steps: int,
    method: str | None,
    feedback: tuple[str, ...],
    parameters: tuple[str, ...],
    every: int,
    final_only: bool,
    passive: lw.forces.Passive | None,
) -> tuple[Tensor, Tensor]:
    """q and v of the recorded states; states between them are recomputed for gradients."""
    first = next(x for x in arguments.values() if isinstance(x, Tensor))
    dtype, device, apart = first.dtype, first.device, stride(steps, every, False)
    if final_only and apart == 1:
        apart = spacing(steps)
    dt = mech.metadata.timestep if dt is None else dt
    more = [*["wrenches"] * ("wrenches" in arguments), *["feedback"] * bool(feedback), *["gain"] * ("gain" in feedback)]
    more += ["active"] * ("active" in arguments)
    kernel = lw.motion.step_kernel(
        mech, dt, method, more, parameters, passive, dtype=DTYPES[dtype], target=DEVICES[device.type]
    )
    if "activation" in kernel.inputs:
        raise ValueError(f"actuators of {mech.name!r} have states of their own, which gradients here do not follow")
    values = {START.get(name, name): x for name, x in {"dt": dt, **arguments}.items()}
    if mech.constraints.driven and "drive" not in values:  # from the time 0
        values["drive"] = lw.motion.drive_values(mech, dt, steps, method)
    unknown = [name for name in values if name not in kernel.inputs]
    if unknown:
        raise lw.KernelError(f"rollout: nothing takes {', '.join(unknown)}: steps take {', '.join(kernel.inputs)}")
    step, inputs = differentiable(kernel, "state"), {}
    for name, core in kernel.input_shapes.items():
        x = _tensor(name, values[name] if name in values else left_out(mech, name, core), dtype, device)
        if name in GAINS and x.ndim == 0:
            x = torch.where(torch.as_tensor(with_motors(mech), device=device), x, torch.zeros_like(x))
        inputs[name] = _Input(name, x, core, steps)

    def after(state: Tensor, begin: int) -> Tensor:
        for k in range(begin, begin + apart):
            others = [x.at(k) for name, x in inputs.items() if name not in ("q", "v")]
            state = step(*state.split([mech.nq, mech.nv], -1), *others)
        return state

    q, v = inputs["q"].value, inputs["v"].value
    lead = torch.broadcast_shapes(q.shape[:-1], v.shape[:-1])
    path = [torch.cat([q.expand(*lead, -1), v.expand(*lead, -1)], -1)]
    for begin in range(0, steps, apart):
        again: Any = checkpoint(after, path[-1], begin, use_reentrant=False) if apart > 1 else after(path[-1], begin)
        path.append(again)
    states = torch.stack(torch.broadcast_tensors(*path[-1:] if final_only else path), -2)
    q, v = (states[..., 0, :] if final_only else states).split([mech.nq, mech.nv], -1)
    return q, v


class _Input:
    """An input of steps: constant, or one per step."""

    def __init__(self, name: str, value: Tensor, core: tuple[int, ...], steps: int):
        lead = value.ndim - len(core)
        self.value, self._axis = value, lead - 1 if name in PER_STEP and lead > 0 else None
        if tuple(value.shape[max(0, lead) :]) != core or (
            self._axis is not None and value.shape[lead - 1] not in (1, steps)
        ):
            numbers = ", ".join(map(str, core))
            each = f", ({steps}, {numbers}) or (..., {steps}, {numbers})" if name in PER_STEP else ""
            raise lw.KernelError(f"rollout: {name} has shape {tuple(value.shape)}, expected (..., {numbers}){each}")

    def at(self, step: int) -> Tensor:
        if self._axis is None:
            return self.value
        return self.value.select(self._axis, step if self.value.shape[self._axis] > 1 else 0)


def _tensor(name: str, value: Any, dtype: torch.dtype, device: torch.device) -> Tensor:
    if isinstance(value, Mapping):
        raise TypeError(f"rollout: {name} is a dictionary, where gradients here take a tensor of all joints")
    return torch.as_tensor(value, dtype=dtype, device=device)
