"""Kernels as functions that torch differentiates."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

import linkwise as lw

DTYPES = {torch.float64: "float64", torch.float32: "float32"}
COTANGENT = "cotangent"  # the last input of a product of a weight with a derivative


def differentiable(kernel: lw.Kernel) -> Callable[..., Tensor]:
    """``kernel`` as a function of tensors of its precision, shaped as the kernel takes them: batches broadcast.

    Gradients by configurations are plain ones, by each of the nq coordinates: that of a quaternion has a part along
    the quaternion, which a step within unit length does not use.  Gradients have gradients themselves, once;
    ``torch.func.vmap`` becomes the kernel's batch.
    """
    if not isinstance(kernel, lw.Kernel):
        raise TypeError(f"differentiable takes a kernel such as linkwise.compile('mass_matrix', mech), got {kernel!r}")
    if len(kernel.output_shapes) != 1:
        raise ValueError(
            f"{kernel.name} has several results ({', '.join(kernel.output_shapes)}): only one is supported"
        )
    names, dtype = kernel.inputs, getattr(torch, kernel.dtype.name)

    def function(*tensors: Any) -> Tensor:
        if len(tensors) != len(names):
            raise TypeError(f"{kernel.name} takes {len(names)} tensors ({', '.join(names)}), {len(tensors)} were given")
        for x in tensors:
            if type(x) is not Tensor or x.dtype is not dtype or not x.is_cpu:
                tensors = tuple(_tensor(kernel, n, x, dtype) for n, x in zip(names, tensors, strict=True))
                break
        return _Call.apply(kernel, *tensors)

    function.__name__ = kernel.name
    return function


def named_function(name: str) -> Callable[..., Tensor]:
    """The function of tensors that belongs to an algorithm of linkwise."""

    def function(
        mech: lw.Mechanism,
        *arguments: Any,
        wrenches: Any = None,
        parameters: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Tensor:
        given = dict(parameters or {})
        tensors = [x for x in arguments if not isinstance(x, str)]
        words = [x for x in arguments if isinstance(x, str)]  # link and frame follow the arrays, as in linkwise
        options |= dict(zip(("link", "frame"), words, strict=False))
        algorithm = name if wrenches is None else f"{name}_with_wrenches"
        more = [*([] if wrenches is None else [wrenches]), *given.values()]
        dtype = _precision(name, (*tensors, *more))
        return _function(mech, algorithm, dtype, tuple(given), tuple(sorted(options.items())))(*tensors, *more)

    if not hasattr(lw, name):
        raise AttributeError(
            f"linkwise.torch has no {name!r}: it has differentiable, rollout, Inertias and the array "
            "functions of linkwise that are algorithms, such as forward_dynamics"
        )
    function.__name__ = name
    function.__doc__ = f"``linkwise.{name}`` of tensors, with gradients; ``parameters`` by name, such as masses, too."
    return function


_KEPT = 256
_functions: dict[Any, tuple[lw.Mechanism, Callable[..., Tensor]]] = {}


def _function(
    mech: lw.Mechanism, name: str, dtype: str, parameters: tuple[str, ...], options: tuple[tuple[str, Any], ...]
) -> Callable[..., Tensor]:
    """Functions are kept by the mechanism as an object, which is kept with them: its hash takes longer than a call."""
    key = (id(mech), name, dtype, parameters, options)
    try:
        return _functions[key][1]
    except KeyError:
        made = differentiable(lw.compile(name, mech, dtype=dtype, parameters=parameters, **dict(options)))
    if len(_functions) >= _KEPT:
        _functions.clear()
    _functions[key] = mech, made
    return made


def _precision(name: str, values: Sequence[Any]) -> str:
    """That of the tensors among the arguments, which must agree."""
    found = {x.dtype for x in values if isinstance(x, Tensor)}
    if len(found) > 1 or not found <= set(DTYPES):
        listed = ", ".join(sorted(map(str, found)))
        raise TypeError(f"{name}: tensors of {listed}: all must be torch.float64, or all torch.float32")
    return DTYPES[found.pop()] if found else "float64"


def _tensor(kernel: lw.Kernel, name: str, x: Any, dtype: torch.dtype) -> Tensor:
    if not isinstance(x, Tensor):
        return torch.as_tensor(x, dtype=dtype)
    if x.dtype != dtype:
        raise TypeError(f"{kernel.name}: {name} has dtype {x.dtype}, the kernel is compiled for {dtype}")
    if x.device.type != "cpu":
        raise ValueError(
            f"{kernel.name}: {name} lies on {x.device}, and gradients are taken on the CPU: use {name}.cpu()"
        )
    return x


class _Call(torch.autograd.Function):
    """A kernel's result."""

    generate_vmap_rule = False

    @staticmethod
    def forward(kernel: lw.Kernel, *tensors: Tensor) -> Tensor:
        return torch.as_tensor(kernel(*(x.detach().numpy() for x in tensors)))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.kernel = inputs[0]
        ctx.save_for_backward(*inputs[1:])

    @staticmethod
    def backward(ctx: Any, *weights: Any) -> Any:
        kernel, tensors = ctx.kernel, ctx.saved_tensors
        wanted = tuple(n for n, needed in zip(kernel.inputs, ctx.needs_input_grad[1:], strict=True) if needed)
        flat = _Product.apply(_product(kernel, wanted), *tensors, weights[0])
        return None, *_parts(kernel, wanted, tensors, flat)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], kernel: lw.Kernel, *tensors: Tensor) -> tuple[Tensor, int]:
        return _Call.apply(kernel, *_with_leading_axis(kernel, in_dims[1:], tensors)), 0


class _Product(torch.autograd.Function):
    """A weight of a kernel's result times its derivative; itself differentiated by all of its own derivative."""

    @staticmethod
    def forward(product: lw.Kernel, *tensors: Tensor) -> Tensor:
        return torch.as_tensor(product(*(x.detach().numpy() for x in tensors)))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.product = inputs[0]
        ctx.save_for_backward(*inputs[1:])

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *weights: Any) -> Any:
        product, tensors = ctx.product, ctx.saved_tensors
        wanted = tuple(n for n, needed in zip(product.inputs, ctx.needs_input_grad[1:], strict=True) if needed)
        matrix = torch.from_numpy(_matrix(product, wanted)(*(x.detach().numpy() for x in tensors)))
        return None, *_parts(product, wanted, tensors, torch.einsum("...i,...ij->...j", weights[0], matrix))

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], product: lw.Kernel, *tensors: Tensor) -> tuple[Tensor, int]:
        return _Product.apply(product, *_with_leading_axis(product, in_dims[1:], tensors)), 0


@lru_cache(maxsize=256)
def _product(kernel: lw.Kernel, wrt: tuple[str, ...]) -> lw.Kernel:
    return lw.vjp_of(kernel, wrt, tangent=False)


@lru_cache(maxsize=256)
def _matrix(kernel: lw.Kernel, wrt: tuple[str, ...]) -> lw.Kernel:
    return lw.jacobian_of(kernel, wrt, tangent=False)


def _parts(kernel: lw.Kernel, wanted: tuple[str, ...], tensors: Sequence[Tensor], flat: Tensor) -> list[Tensor | None]:
    """The gradients of single inputs, summed over the batch axes that these were broadcast along."""
    shapes = kernel.input_shapes
    pieces = iter(torch.split(flat, [math.prod(shapes[name]) for name in wanted], -1))
    found: list[Tensor | None] = []
    for name, tensor in zip(kernel.inputs, tensors, strict=True):
        if name in wanted:
            piece = next(pieces)
            found.append(piece.reshape((*piece.shape[:-1], *shapes[name])).sum_to_size(tensor.shape))
        else:
            found.append(None)
    return found


def _with_leading_axis(kernel: lw.Kernel, in_dims: Sequence[int | None], tensors: Sequence[Tensor]) -> list[Tensor]:
    """Tensors with the axis that is mapped over ahead of all axes of the batch."""
    cores = [len(shape) for shape in kernel.input_shapes.values()]
    ranks = [x.ndim - core - (at is not None) for x, core, at in zip(tensors, cores, in_dims, strict=True)]
    found = []
    for x, rank, at in zip(tensors, ranks, in_dims, strict=True):
        if at is not None:
            x = x.movedim(at, 0)
            x = x.reshape((x.shape[0], *(1,) * (max(ranks) - rank), *x.shape[1:]))
        found.append(x)
    return found
