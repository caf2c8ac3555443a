"""Kernels as operators of torch, ``torch.ops.linkwise``: what ``torch.compile`` and ``torch.export`` put into graphs.

An operator names a kernel by a string, its handle; handles are those of this process.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress, count
from typing import Any
from weakref import WeakValueDictionary

from torch import Tensor
from torch.library import custom_op, register_vmap

import linkwise as lw

from .signatures import Signature, signature

_kernels: WeakValueDictionary[str, Signature] = WeakValueDictionary()
_handles: dict[int, str] = {}
_numbers = count()


def registered(kernel: lw.Kernel) -> str:
    """The handle of a kernel, valid as long as its signature exists."""
    known = signature(kernel)
    handle = _handles.get(id(known))
    if handle is None or _kernels.get(handle) is not known:
        handle = _handles[id(known)] = f"{kernel.name}:{next(_numbers)}"
        _kernels[handle] = known
    return handle


@custom_op("linkwise::call", mutates_args=())
def call_operator(kernel: str, tensors: Sequence[Tensor]) -> Tensor:
    """The result of a kernel."""
    known = _kernels[kernel]
    for name, x in zip(known.names, tensors, strict=True):
        if x.dtype != known.dtype:
            raise TypeError(
                f"{known.kernel.name}: {name} has dtype {x.dtype}, the kernel is compiled for {known.dtype}"
            )
    return known.of(*tensors)


@custom_op("linkwise::gradient", mutates_args=())
def gradient_operator(kernel: str, wanted: Sequence[bool], tensors: Sequence[Tensor], weight: Tensor) -> Tensor:
    """A weight times the derivatives of a kernel's result, by the inputs that are wanted."""
    return _kernels[kernel].derived(tuple(wanted)).of(*tensors, weight)


@call_operator.register_fake
def _(kernel: str, tensors: Sequence[Tensor]) -> Tensor:
    known = _kernels[kernel]
    return tensors[0].new_empty((*known.batch(tensors), *known.result))


@gradient_operator.register_fake
def _(kernel: str, wanted: Sequence[bool], tensors: Sequence[Tensor], weight: Tensor) -> Tensor:
    known = _kernels[kernel]
    return tensors[0].new_empty((*known.batch(tensors), sum(compress(known.sizes, wanted))))


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.kernel, tensors = inputs
    ctx.save_for_backward(*tensors)


def _backward(ctx: Any, weight: Tensor) -> Any:
    known, tensors = _kernels[ctx.kernel], ctx.saved_tensors
    wanted = tuple(ctx.needs_input_grad[1])
    return None, known.parts(wanted, tensors, gradient_operator(ctx.kernel, list(wanted), list(tensors), weight))


call_operator.register_autograd(_backward, setup_context=_keep)


@register_vmap("linkwise::call")
def _(info: Any, in_dims: Any, kernel: str, tensors: Sequence[Tensor]) -> tuple[Tensor, int]:
    return call_operator(kernel, _kernels[kernel].with_leading_axis(in_dims[1], tensors)), 0
