"""Motions as functions that torch differentiates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

import linkwise as lw

from ..frameworks import Call, derivative_of, kept, spacing
from .kernels import DTYPES, differentiable

PER_STEP = ("tau", "wrenches", "ctrl")  # what may change from step to step
STEP_BY_STEP = (
    "take them through linkwise.torch.differentiable(linkwise.step_kernel(mech, dt), 'state'), step after step, or "
    "through linkwise.jax.rollout"
)


@torch.compiler.disable  # graphs break here, instead of following NumPy
def rollout(
    mech: lw.Mechanism,
    q0: Tensor | None,
    v0: Tensor | None,
    tau: Tensor | None,
    dt: float | None,
    steps: int,
    method: str = "rk4",
    *,
    wrenches: Tensor | None = None,
    ctrl: Tensor | None = None,
    parameters: Mapping[str, Tensor] | None = None,
    feedback: Mapping[str, Any] | None = None,
    every: int = 1,
    final_only: bool = False,
    passive: lw.Passive | None = None,
) -> tuple[Tensor, Tensor]:
    """(q, v), (..., steps + 1, nq) and (..., steps + 1, nv): ``linkwise.rollout``, with gradients by q0, v0, tau,
    wrenches, ctrl, ``parameters`` and those of ``feedback`` that are tensors, at about three times its cost.

    every        each ``every``-th state only, (..., steps // every + 1, nq): those between are computed again for
                 gradients, which needs less memory and takes one more rollout
    final_only   the last state, (..., nq); gradients use about sqrt(steps) states that are kept

    Shapes are those of ``linkwise.rollout``, whose other options are not taken.  A tensor that states share gets the
    sum of their gradients.  The gradient by q0 moves within configurations: that of a quaternion has no part along it.
    With loops torch sees step after step, as compiled: near singular positions, where ``linkwise.rollout`` takes
    others, they cannot be relied on.
    """
    if feedback is not None and not isinstance(feedback, Mapping):
        raise TypeError(
            f"feedback is a dictionary such as {{'target': q, 'kp': kp, 'kd': kd}}, got {type(feedback).__name__}: "
            "linkwise.rollout takes controllers, without gradients"
        )
    driven = {"q0": q0, "v0": v0, "tau": tau, "wrenches": wrenches, "ctrl": ctrl}
    given = {
        name: x for name, x in {**driven, **dict(feedback or {}), **dict(parameters or {})}.items() if x is not None
    }
    _refuse_lost_gradients({"dt": dt, **given})
    wrong = [name for name, x in given.items() if isinstance(x, Tensor) and x.device.type != "cpu"]
    if wrong:
        raise ValueError(f"rollout: {', '.join(wrong)} on a GPU: gradients of rollouts are taken on the CPU")
    tensors = {name: x for name, x in given.items() if isinstance(x, Tensor)}
    if len({x.dtype for x in tensors.values()}) > 1:
        listed = ", ".join(f"{name} {x.dtype}" for name, x in tensors.items())
        raise TypeError(f"rollout: tensors of several precisions ({listed}): give all in one")
    if mech.loops and torch.is_grad_enabled() and any(x.requires_grad for x in tensors.values()):
        if feedback:
            raise ValueError(
                f"mechanism {mech.name!r} has loops, where gradients are those of steps one after the other: compute "
                "feedback between steps, linkwise.torch.differentiable(linkwise.step_kernel(mech, dt), 'state')"
            )
        return _step_by_step(mech, given, dt, steps, method, tuple(parameters or {}), every, final_only, passive)
    call = _Motion(
        mech,
        dt,
        steps,
        method,
        given,
        tuple(tensors),
        frozenset(feedback or {}),
        frozenset(parameters or {}),
        spacing(steps) if final_only and every == 1 else every,
        final_only,
        passive,
    )
    q, v, *_ = _Rollout.apply(call, *tensors.values())
    return q, v


def _refuse_lost_gradients(given: Mapping[str, Any]) -> None:
    """Tensors that are no arguments by themselves would be read as numbers, without gradients."""
    if not torch.is_grad_enabled():
        return
    for name, x in given.items():
        parts = x.values() if isinstance(x, Mapping) else x if isinstance(x, list | tuple) else ()
        if any(isinstance(part, Tensor) and part.requires_grad for part in parts):
            raise TypeError(
                f"rollout: {name} has tensors with requires_grad in a {type(x).__name__}, where gradients are not "
                "followed: give one tensor with the numbers of all joints, made by torch.stack or torch.cat for "
                "instance, or tensor.detach()"
            )
    if isinstance(given["dt"], Tensor) and given["dt"].requires_grad:
        raise TypeError(
            "rollout: dt is a tensor with requires_grad: gradients by dt are not computed here; linkwise.jax.rollout "
            "and linkwise.rollout_vjp(..., wrt='dt') have them; else give dt.detach()"
        )


def _step_by_step(
    mech: lw.Mechanism,
    given: Mapping[str, Any],
    dt: float | None,
    steps: int,
    method: str,
    parameters: tuple[str, ...],
    every: int,
    final_only: bool,
    passive: lw.Passive | None,
) -> tuple[Tensor, Tensor]:
    """A motion of a mechanism with loops, each step of which torch sees."""
    if steps % every:
        raise ValueError(f"every must divide the number of steps: {steps} steps are no multiple of {every}")
    dtype = next(x.dtype for x in given.values() if isinstance(x, Tensor))
    dt = mech.timestep if dt is None else dt
    more = ["wrenches"] if "wrenches" in given else []
    kernel = lw.step_kernel(mech, dt, method, more, parameters, passive, dtype=DTYPES[dtype])
    if "activation" in kernel.inputs:
        raise ValueError(f"actuators of {mech.name!r} have states of their own, which gradients here do not follow")
    values = {name: torch.as_tensor(x, dtype=dtype) for name, x in {"dt": dt, **given}.items()}
    q = values.get("q0", torch.tensor(mech.initial, dtype=dtype))
    v = values.get("v0", torch.zeros(mech.nv, dtype=dtype))
    lead = torch.broadcast_shapes(q.shape[:-1], v.shape[:-1])
    path = [torch.cat([q.expand(*lead, -1), v.expand(*lead, -1)], -1)]
    step, (_, _, *rest) = differentiable(kernel, "state"), kernel.input_shapes.items()
    driven = [(values.get(name, torch.zeros(core, dtype=dtype)), len(core), name in PER_STEP) for name, core in rest]
    for k in range(steps):
        now = [_in_step(x, k, core) if per_step else x for x, core, per_step in driven]
        path.append(step(*path[-1].split([mech.nq, mech.nv], -1), *now))
    kept_states = path[-1:] if final_only else path[::every]
    states = torch.stack(torch.broadcast_tensors(*kept_states), -2)
    q, v = (states[..., 0, :] if final_only else states).split([mech.nq, mech.nv], -1)
    return q, v


def _in_step(x: Tensor, k: int, core: int) -> Tensor:
    """What is given for all steps at once, or for each, as it is in step k; ``core`` is the number of its own axes."""
    if x.ndim == core:
        return x
    axis = x.ndim - core - 1
    return x.select(axis, k if x.shape[axis] > 1 else 0)


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
    method: str
    given: Mapping[str, Any]
    names: tuple[str, ...]
    feedback: frozenset[str]
    parameters: frozenset[str]
    every: int
    final_only: bool
    passive: lw.Passive | None

    def arguments(self, tensors: tuple[Tensor, ...]) -> tuple[dict[str, Any], dict[str, Any]]:
        """All values by name, and those that rollouts take by keyword."""
        numbers = {n: x.detach().numpy() for n, x in zip(self.names, tensors, strict=True)}
        values = {**self.given, **numbers}
        options = {
            "feedback": {name: values[name] for name in self.feedback} or None,
            "parameters": {name: values[name] for name in self.parameters} or None,
            **{name: values.get(name) for name in ("ctrl", "wrenches")},
            "passive": self.passive,
        }
        return values, {name: x for name, x in options.items() if x is not None}


class _Rollout(torch.autograd.Function):
    """Motions: q and v, and all states that gradients need where those are the last ones only."""

    @staticmethod
    def forward(motion: _Motion, *tensors: Tensor) -> tuple[Tensor, ...]:
        values, options = motion.arguments(tensors)
        start, tau = (values.get("q0"), values.get("v0")), values.get("tau")
        path = lw.rollout(
            motion.mech, *start, tau, motion.dt, motion.steps, motion.method, every=motion.every, **options
        )
        kept = [torch.from_numpy(np.ascontiguousarray(x)) for x in path]
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
        found = iter(_Gradients.apply(ctx.motion, wanted, *weights[:2], *tensors))
        return None, *(next(found) if needed else None for needed in wanted)

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
    """Gradients of a motion by those of its tensors that are wanted; they have none themselves."""

    @staticmethod
    def forward(
        motion: _Motion, needed: tuple[bool, ...], of_q: Tensor, of_v: Tensor, *tensors: Tensor
    ) -> tuple[Tensor, ...]:
        *tensors_in, q, v = tensors
        values, options = motion.arguments(tuple(tensors_in))
        mech, wanted = motion.mech, [n for n, x in zip(motion.names, needed, strict=True) if x]
        path, rates = q.detach().numpy(), _rates_of(mech, q.detach().numpy().dtype.name)
        w_q, w_v = (w.detach().numpy() for w in (of_q, of_v))
        at = path[..., -1, :] if motion.final_only else path
        along = np.einsum("...ij,...i->...j", rates(at, np.zeros_like(w_v)), w_q)
        found = lw.rollout_vjp(
            mech, path, v.detach().numpy(), values.get("tau"), motion.dt, motion.steps, (along, w_v), motion.method,
            wrt=tuple(wanted), **options,
        )  # fmt: skip
        if "q0" in found:
            start = path[..., 0, :]
            matrix = rates(start, np.zeros((*start.shape[:-1], mech.nv), start.dtype))
            inner = np.linalg.solve(np.einsum("...ij,...ik->...jk", matrix, matrix), found["q0"][..., None])
            found["q0"] = (matrix @ inner)[..., 0]
        shapes = {name: x.shape for name, x in zip(motion.names, tensors_in, strict=True)}
        return tuple(torch.from_numpy(np.ascontiguousarray(found[name])).sum_to_size(shapes[name]) for name in wanted)

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
