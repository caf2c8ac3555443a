"""Motions as functions that torch differentiates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

import linkwise as lw

from ..frameworks import ALL, Call, chosen_forces, derivative_of, kept, spacing, unless_empty
from ..motion.step_kernels import optional_inputs, step_inputs, stride
from .kernels import DTYPES, differentiable
from .signatures import DEVICES

STEP_BY_STEP = (
    "take them through linkwise.torch.differentiable(linkwise.motion.step_kernel(mech, dt), 'state'), step after step, "
    "or through linkwise.jax.rollout"
)
START = {"q0": "q", "v0": "v"}  # what callers know as initial states -> inputs of a step


@torch.compiler.disable  # graphs break here, instead of following NumPy
def rollout(
    mech: lw.Mechanism,
    q0: Tensor | None,
    v0: Tensor | None,
    tau: Tensor | None,
    dt: float | None,
    steps: int,
    method: str | None = None,
    *,
    wrenches: Tensor | None = None,
    ctrl: Tensor | None = None,
    parameters: Mapping[str, Tensor] | None = None,
    feedback: Mapping[str, Any] | None = None,
    every: int = 1,
    final_only: bool = False,
    passive: lw.forces.Passive | None = None,
    active: Any = None,
    forces: Any = ALL,
    drive: Any = None,
) -> tuple[Tensor, Tensor]:
    """(q, v), (..., steps + 1, nq) and (..., steps + 1, nv): ``linkwise.rollout``, with gradients by q0, v0, tau,
    wrenches, ctrl, drive, ``parameters`` and those of ``feedback`` that are tensors, at about three times its cost.

    every        each ``every``-th state only, (..., steps // every + 1, nq): those between are computed again for
                 gradients, which needs less memory and takes one more rollout
    final_only   the last state, (..., nq); gradients use about sqrt(steps) states that are kept

    Shapes are those of ``linkwise.rollout``, whose other options are not taken.  A tensor that states share gets the
    sum of their gradients.  The gradient by q0 moves within configurations: that of a quaternion has no part along it.
    With loops torch sees step after step, as compiled: near singular positions, where ``linkwise.rollout`` takes
    others, they cannot be relied on.  On a GPU it does so, too, if gradients are followed: one kernel for each step.
    """
    if forces is not ALL:
        mech, passive = chosen_forces(mech, forces, passive)
    if feedback is not None and not isinstance(feedback, Mapping):
        raise TypeError(
            f"feedback is a dictionary such as {{'target': q, 'kp': kp, 'kd': kd}}, got {type(feedback).__name__}: "
            "linkwise.rollout takes controllers, without gradients"
        )
    driven = {"q0": q0, "v0": v0, "tau": tau, "wrenches": wrenches, "ctrl": unless_empty(mech, ctrl)}
    driven["drive"] = drive
    driven["active"] = active.detach().cpu().numpy() if isinstance(active, Tensor) else active
    _refuse_controllers(driven)
    arguments = {
        name: x for name, x in {**driven, **dict(feedback or {}), **dict(parameters or {})}.items() if x is not None
    }
    _refuse_lost_gradients({"dt": dt, **arguments})
    tensors = {name: x for name, x in arguments.items() if isinstance(x, Tensor)}
    device = _the_same(tensors)
    followed = torch.is_grad_enabled() and any(x.requires_grad for x in tensors.values())
    call = _Motion(
        mech,
        dt,
        steps,
        method,
        arguments,
        tuple(tensors),
        frozenset(feedback or {}),
        tuple(parameters or {}),
        spacing(steps) if final_only and every == 1 else every,
        final_only,
        passive,
    )
    if followed and (mech.loops or device.type != "cpu"):
        return call.step_by_step()
    if device.type != "cpu":  # all steps in one kernel
        q, v = call.motion([x.detach() for x in tensors.values()], every, final_only)
    else:
        q, v, *_ = _Rollout.apply(call, *tensors.values())
    return q, v


def _refuse_controllers(driven: Mapping[str, Any]) -> None:
    """Functions of the state, whose gradients would be lost."""
    for name, x in driven.items():
        if callable(x) and not isinstance(x, Tensor):
            raise TypeError(
                f"rollout: {name} must be a tensor, given before the motion, not a function of the state: gradients "
                "through a controller are those of a loop of yours over "
                "linkwise.torch.differentiable(linkwise.motion.step_kernel(mech, dt, method), 'state'), asked in every "
                "step; "
                "linkwise.rollout takes linkwise.motion.held(control, period), without gradients"
            )


def _refuse_lost_gradients(arguments: Mapping[str, Any]) -> None:
    """Tensors that are no arguments by themselves would be read as numbers, without gradients."""
    if not torch.is_grad_enabled():
        return
    for name, x in arguments.items():
        parts = x.values() if isinstance(x, Mapping) else x if isinstance(x, list | tuple) else ()
        if any(isinstance(part, Tensor) and part.requires_grad for part in parts):
            raise TypeError(
                f"rollout: {name} has tensors with requires_grad in a {type(x).__name__}, where gradients are not "
                "followed: give one tensor with the numbers of all joints, made by torch.stack or torch.cat for "
                "instance, or tensor.detach()"
            )
    if isinstance(arguments["dt"], Tensor) and arguments["dt"].requires_grad:
        raise TypeError(
            "rollout: dt is a tensor with requires_grad: gradients by dt are not computed here; linkwise.jax.rollout "
            "and linkwise.derivatives.rollout_vjp(..., wrt='dt') have them; else give dt.detach()"
        )


def _the_same(tensors: Mapping[str, Tensor]) -> torch.device:
    """The device of all tensors, which have one precision."""
    if len({x.dtype for x in tensors.values()}) > 1:
        listed = ", ".join(f"{name} {x.dtype}" for name, x in tensors.items())
        raise TypeError(f"rollout: tensors of several precisions ({listed}): give all in one")
    devices = {x.device for x in tensors.values()}
    if len(devices) > 1:
        listed = ", ".join(f"{name} on {x.device}" for name, x in tensors.items())
        raise ValueError(f"rollout: tensors must all lie on one device: {listed}")
    return devices.pop() if devices else torch.device("cpu")


@dataclass(frozen=True, eq=False)
class _Motion:
    """The arguments of a rollout that are no tensors, and where tensors go.

    given                  arguments by name
    names                  those that are tensors
    feedback, parameters   those that are handed on together
    every, final_only      which states are kept, and whether only the last one is a result
    """

    mech: lw.Mechanism
    dt: float | None
    steps: int
    method: str | None
    given: Mapping[str, Any]
    names: tuple[str, ...]
    feedback: frozenset[str]
    parameters: tuple[str, ...]
    every: int
    final_only: bool
    passive: lw.forces.Passive | None

    def arguments(self, arrays: Sequence[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """All values by name, with ``arrays`` in place of the tensors, and the keyword arguments of the rollout."""
        values = {**self.given, **dict(zip(self.names, arrays, strict=True))}
        options = {
            "feedback": {name: values[name] for name in self.feedback} or None,
            "parameters": {name: values[name] for name in self.parameters} or None,
            **{name: values.get(name) for name in ("ctrl", "wrenches", "active", "drive")},
            "passive": self.passive,
        }
        return values, {name: x for name, x in options.items() if x is not None}

    def motion(self, arrays: Sequence[Any], every: int, final_only: bool = False) -> Any:
        """The result of ``linkwise.rollout``, without gradients."""
        values, options = self.arguments(arrays)
        q0, v0, tau = (values.get(name) for name in ("q0", "v0", "tau"))
        options |= {"final_only": True} if final_only else {"every": every}
        return lw.rollout(self.mech, q0, v0, tau, self.dt, self.steps, self.method, **options)

    def step_by_step(self) -> tuple[Tensor, Tensor]:
        """q and v of the recorded states, torch seeing every step; those between are recomputed for gradients."""
        mech, steps, apart = self.mech, self.steps, stride(self.steps, self.every, False)
        first = self.given[self.names[0]]
        dtype, device = first.dtype, first.device
        dt = mech.metadata.timestep if self.dt is None else self.dt
        values = {START.get(name, name): x for name, x in {"dt": dt, **self.given}.items()}
        parts = (optional_inputs(values), self.parameters, self.passive)
        kernel = lw.motion.step_kernel(mech, dt, self.method, *parts, dtype=DTYPES[dtype], target=DEVICES[device.type])
        if "activation" in kernel.inputs:
            raise ValueError(f"actuators of {mech.name!r} have states of their own, which gradients here do not follow")
        if mech.constraints.driven and "drive" not in values:  # from the time 0
            values["drive"] = lw.motion.drive_values(mech, dt, steps, self.method)

        def tensor(name: str, value: Any) -> Tensor:
            if isinstance(value, Mapping):
                raise TypeError(f"rollout: {name} is a dictionary, where gradients here take a tensor of all joints")
            return torch.as_tensor(value, dtype=dtype, device=device)

        step, inputs = differentiable(kernel, "state"), step_inputs(mech, kernel.input_shapes, values, steps, tensor)
        q, v = (inputs.pop(name).value for name in ("q", "v"))

        def after(state: Tensor, begin: int) -> Tensor:
            for k in range(begin, begin + apart):
                others = [
                    x if axis is None else x.select(axis, k if x.shape[axis] > 1 else 0) for x, axis in inputs.values()
                ]
                state = step(*state.split([mech.nq, mech.nv], -1), *others)
            return state

        lead = torch.broadcast_shapes(q.shape[:-1], v.shape[:-1])
        path = [torch.cat([q.expand(*lead, -1), v.expand(*lead, -1)], -1)]
        for begin in range(0, steps, apart):
            last = path[-1]
            again: Any = checkpoint(after, last, begin, use_reentrant=False) if apart > 1 else after(last, begin)
            path.append(again)
        states = torch.stack(torch.broadcast_tensors(*path[-1:] if self.final_only else path), -2)
        q, v = (states[..., 0, :] if self.final_only else states).split([mech.nq, mech.nv], -1)
        return q, v


def _numbers(tensors: Sequence[Tensor]) -> list[np.ndarray]:
    return [x.detach().numpy() for x in tensors]


class _Rollout(torch.autograd.Function):
    """Forward pass of a rollout: q and v, plus the states that the backward pass needs."""

    @staticmethod
    def forward(motion: _Motion, *tensors: Tensor) -> tuple[Tensor, ...]:
        kept = [torch.from_numpy(np.ascontiguousarray(x)) for x in motion.motion(_numbers(tensors), motion.every)]
        return (*(x[..., -1, :].clone() for x in kept), *kept) if motion.final_only else tuple(kept)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        ctx.motion = inputs[0]
        ctx.save_for_backward(*inputs[1:], *output[-2:])
        if ctx.motion.final_only:
            ctx.mark_non_differentiable(*output[-2:])

    @staticmethod
    def backward(ctx: Any, *weights: Any) -> Any:
        tensors, wanted = ctx.saved_tensors, ctx.needs_input_grad[1:]
        gradients = iter(_Gradients.apply(ctx.motion, wanted, *weights[:2], *tensors))
        return None, *(next(gradients) if needed else None for needed in wanted)

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        raise RuntimeError(f"derivatives of rollouts in torch are taken backwards only: {STEP_BY_STEP}")

    @staticmethod
    def vmap(info: Any, in_dims: Any, *inputs: Any) -> Any:
        raise RuntimeError(
            "rollouts take batches themselves: in place of torch.func.vmap give tensors with leading axes; second "
            f"derivatives they have none: {STEP_BY_STEP}"
        )


class _Gradients(torch.autograd.Function):
    """Backward pass of a rollout: gradients by the tensors that need them; not differentiable again."""

    @staticmethod
    def forward(
        motion: _Motion, needed: tuple[bool, ...], of_q: Tensor, of_v: Tensor, *tensors: Tensor
    ) -> tuple[Tensor, ...]:
        *tensors_in, q, v = tensors
        values, options = motion.arguments(_numbers(tensors_in))
        mech, wanted = motion.mech, [n for n, x in zip(motion.names, needed, strict=True) if x]
        path, rates = q.detach().numpy(), _rates_of(mech, q.detach().numpy().dtype.name)
        w_q, w_v = (w.detach().numpy() for w in (of_q, of_v))
        at = path[..., -1, :] if motion.final_only else path
        along = np.einsum("...ij,...i->...j", rates(at, np.zeros_like(w_v)), w_q)
        gradients = lw.derivatives.rollout_vjp(
            mech, path, v.detach().numpy(), values.get("tau"), motion.dt, motion.steps, (along, w_v), motion.method,
            wrt=tuple(wanted), **options,
        )  # fmt: skip
        if "q0" in gradients:
            start = path[..., 0, :]
            matrix = rates(start, np.zeros((*start.shape[:-1], mech.nv), start.dtype))
            inner = np.linalg.solve(np.einsum("...ij,...ik->...jk", matrix, matrix), gradients["q0"][..., None])
            gradients["q0"] = (matrix @ inner)[..., 0]
        shapes = {name: x.shape for name, x in zip(motion.names, tensors_in, strict=True)}
        return tuple(
            torch.from_numpy(np.ascontiguousarray(gradients[name])).sum_to_size(shapes[name]) for name in wanted
        )

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *weights: Any) -> Any:
        raise RuntimeError(f"gradients of rollouts have no gradients in torch: {STEP_BY_STEP}")

    @staticmethod
    def vmap(info: Any, in_dims: Any, *inputs: Any) -> Any:
        raise RuntimeError(f"gradients of rollouts cannot be mapped in torch: {STEP_BY_STEP}")


def _rates_of(mech: lw.Mechanism, dtype: str) -> lw.Kernel:
    """N(q), (nq, nv): dq/dt = N(q) v."""
    return kept(mech, (_rates_of, dtype), lambda: derivative_of(Call("coordinate_rates").compiled(mech, dtype), ("v",)))
