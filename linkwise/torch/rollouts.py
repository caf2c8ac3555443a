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
    wrong = [name for name, x in given.items() if isinstance(x, Tensor) and x.device.type != "cpu"]
    if wrong:
        raise ValueError(f"rollout: {', '.join(wrong)} on a GPU: gradients of rollouts are taken on the CPU")
    tensors = {name: x for name, x in given.items() if isinstance(x, Tensor)}
    if len({x.dtype for x in tensors.values()}) > 1:
        listed = ", ".join(f"{name} {x.dtype}" for name, x in tensors.items())
        raise TypeError(f"rollout: tensors of several precisions ({listed}): give all in one")
    if mech.loops and torch.is_grad_enabled() and any(x.requires_grad for x in tensors.values()):
        raise ValueError(
            f"mechanism {mech.name!r} has loops, and gradients of whole rollouts are those of trees: repeat the step "
            f"linkwise.torch.closed_{method}_step(mech, q, v, tau, dt, result='state'), which has gradients"
        )
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
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *weights: Any) -> Any:
        motion, (*tensors, q, v) = ctx.motion, ctx.saved_tensors
        values, options = motion.arguments(tuple(tensors))
        mech, wanted = motion.mech, [n for n, x in zip(motion.names, ctx.needs_input_grad[1:], strict=True) if x]
        path, rates = q.detach().numpy(), _rates_of(mech, q.numpy().dtype.name)
        w_q, w_v = (w.numpy() for w in weights[:2])
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
        gradients = {name: torch.from_numpy(np.ascontiguousarray(found[name])) for name in wanted}
        return None, *(
            gradients[n].sum_to_size(x.shape) if n in gradients else None
            for n, x in zip(motion.names, tensors, strict=True)
        )


def _rates_of(mech: lw.Mechanism, dtype: str) -> lw.Kernel:
    """N(q), (nq, nv): dq/dt = N(q) v."""
    return kept(mech, (_rates_of, dtype), lambda: derivative_of(Call("coordinate_rates").compiled(mech, dtype), ("v",)))
