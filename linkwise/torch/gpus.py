"""Kernels on the GPU for torch: on its current stream, on tensors in its own memory."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

import linkwise as lw

from ..compiler.launching import GpuKernel, Outline, Plan, launching

KEPT = 256  # plans


class _Planned(NamedTuple):
    """Launch data of a call, fixed by the shapes, strides and device of its tensors; no plan for an empty batch."""

    code: GpuKernel
    plan: Plan | None
    shape: tuple[int, ...]


class Launcher:
    """``launcher(*tensors)``: the result of a kernel with a single result, for tensors of its precision on one GPU."""

    def __init__(self, kernel: lw.Kernel):
        self._kernel, self._dtype = kernel, getattr(torch, kernel.dtype.name)
        self._codes: dict[torch.device, GpuKernel] = {}
        self._planned: dict[Any, _Planned] = {}

    def __call__(self, *tensors: Tensor) -> Tensor:
        device = tensors[0].device
        key = tuple([(x.shape, x.stride(), x.device) for x in tensors])
        with on_device(device):
            planned = self._planned.get(key) or self._new(key, device)
            result = torch.empty(planned.shape, dtype=self._dtype, device=device)
            if planned.plan is not None:
                between = [torch.empty(size, dtype=self._dtype, device=device) for size in planned.plan.between]
                starts = [x.data_ptr() for x in (*tensors, result, *between)]
                planned.code.carry_out(planned.plan, starts, stream_of(device))
        return result

    def _new(self, key: Any, device: torch.device) -> _Planned:
        named = dict(zip(self._kernel.inputs, (device for *_, device in key), strict=True))
        if len({*named.values()}) > 1:
            listed = ", ".join(f"{name} on {device}" for name, device in named.items())
            raise ValueError(f"{self._kernel.name}: tensors must all lie on one device: {listed}")
        if len(self._planned) >= KEPT:
            self._planned.clear()
        if device not in self._codes:
            self._codes[device] = launching(self._kernel)
        code, size = self._codes[device], self._kernel.dtype.itemsize
        outlines = [Outline(tuple(shape), tuple(size * step for step in steps)) for shape, steps, _ in key]
        try:
            *_, (shape,) = code.sizes(outlines)
        except ValueError as error:
            raise lw.KernelError(f"{self._kernel.name}: {error}") from None
        result = torch.empty(shape, dtype=self._dtype, device="meta")
        outline = Outline(shape, tuple(size * step for step in result.stride()))
        plan = code.plan(outlines, [outline]) if result.numel() else None
        made = self._planned[key] = _Planned(code, plan, shape)
        return made


def on_device(device: torch.device) -> Any:
    return torch.cuda.device(device)


def stream_of(device: torch.device) -> int:
    """The address of torch's current stream."""
    return torch.cuda.current_stream(device).cuda_stream
