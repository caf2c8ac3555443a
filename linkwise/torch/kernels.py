"""Kernels as functions that torch differentiates.

A call outside of torch's transforms is kept short: checks are made once, autograd is only entered for tensors that need
gradients, and then below ``Function.apply``, which inspects signatures at every call.  Inside ``torch.func`` transforms
the same gradients go the general way, and inside ``torch.compile`` through operators (``operators.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

import linkwise as lw

from ..frameworks import only_result
from .operators import call_operator, registered
from .signatures import Signature, signature, times

DTYPES = {torch.float64: "float64", torch.float32: "float32"}
PLAIN = (Tensor, torch.nn.Parameter)

_in_transform: Callable[[], bool] = getattr(torch._C, "_are_functorch_transforms_active", lambda: True)


def differentiable(kernel: lw.Kernel, result: str | None = None) -> Callable[..., Tensor]:
    """``kernel`` as a differentiable function of tensors in its precision; batches broadcast.

    result   the name of the result, where the kernel has several

    Gradients by configurations are plain ones, by each of the nq coordinates: that of a quaternion has a part along
    the quaternion, which a step within unit length does not use.  Gradients have gradients themselves, and there are
    derivatives along directions (``torch.func.jvp``); ``torch.func.vmap`` becomes the kernel's batch, and
    ``torch.compile`` sees one operator.  A kernel compiled with target="cuda" takes tensors on that device.
    """
    if not isinstance(kernel, lw.Kernel):
        raise TypeError(f"differentiable takes a kernel such as linkwise.compile('mass_matrix', mech), got {kernel!r}")
    kernel = only_result(kernel, result)
    call_signature, handle = signature(kernel), registered(kernel)
    count, dtype, on_cpu = len(call_signature.names), call_signature.dtype, call_signature.device == "cpu"

    def function(*tensors: Any) -> Tensor:
        if torch.compiler.is_compiling():
            return call_operator(handle, list(tensors))
        if len(tensors) != count:
            listed = ", ".join(call_signature.names)
            raise TypeError(f"{kernel.name} takes {count} tensors ({listed}), {len(tensors)} were given")
        followed = False
        for x in tensors:
            if type(x) not in PLAIN or x.dtype is not dtype or x.is_cpu is not on_cpu:
                return function(
                    *(_tensor(call_signature, n, x) for n, x in zip(call_signature.names, tensors, strict=True))
                )
            if x.requires_grad:
                followed = True
        if _in_transform() or forward_ad._current_level >= 0:
            return _Transformed.apply(call_signature, *tensors)
        return (
            _directly(call_signature, *tensors) if followed and torch.is_grad_enabled() else call_signature.of(*tensors)
        )

    function.__name__ = kernel.name
    vars(function)["handle"] = handle
    return function


def _tensor(wanted: Signature, name: str, x: Any) -> Tensor:
    """An argument as a tensor that is not converted; what cannot be is refused."""
    if not isinstance(x, Tensor):
        return torch.as_tensor(x, dtype=wanted.dtype, device=wanted.device)
    if x.dtype != wanted.dtype:
        raise TypeError(
            f"{wanted.kernel.name}: {name} has dtype {x.dtype}, where {wanted.dtype} is needed: all must be "
            "torch.float64, or all torch.float32"
        )
    if x.device.type != wanted.device:
        raise ValueError(
            f"{wanted.kernel.name}: {name} lies on {x.device}, the kernel is compiled for target "
            f"{wanted.kernel.target!r}: use {name}.to({wanted.device!r}), or compile for the device where tensors lie"
        )
    return x.as_subclass(Tensor)


# -- gradients --------------------------------------------------------------------------------------------


class _Differentiated(torch.autograd.Function):
    """A kernel's result, weighed derivatives of which another kernel gives."""

    @staticmethod
    def backward(ctx: Any, *weights: Any) -> Any:
        signature, tensors, wanted, (weight,) = ctx.own, ctx.saved_tensors, ctx.needs_input_grad[1:], weights
        derived = signature.derived(wanted)
        if torch.is_grad_enabled() or _in_transform():  # they may be differentiated themselves
            call = partial(_Transformed.apply, derived)
        else:
            call = derived.of
        flat = times(weight, call(*tensors)) if signature.is_product else call(*tensors, weight)
        return None, *signature.parts(wanted, tensors, flat)


class _Direct(_Differentiated):
    """Outside of transforms, where a context that is filled on the way costs least."""

    @staticmethod
    def forward(ctx: Any, signature: Signature, *tensors: Tensor) -> Tensor:
        ctx.own = signature
        ctx.save_for_backward(*tensors)
        return signature.of(*tensors)


class _Transformed(_Differentiated):
    """Inside of transforms, which fill contexts afterwards."""

    generate_vmap_rule = False

    @staticmethod
    def forward(taken: Signature, *tensors: Tensor) -> Tensor:
        return taken.of(*tensors)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.own = inputs[0]
        ctx.save_for_backward(*inputs[1:])
        ctx.save_for_forward(*inputs[1:])

    @staticmethod
    def jvp(ctx: Any, _: None, *directions: Tensor) -> Tensor:
        return _Transformed.apply(ctx.own.along(), *ctx.saved_tensors, *directions)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], taken: Signature, *tensors: Tensor) -> tuple[Tensor, int]:
        return _Transformed.apply(taken, *taken.with_leading_axis(in_dims[1:], tensors)), 0


_directly: Callable[..., Tensor] = super(torch.autograd.Function, _Direct).apply  # without a look at signatures
