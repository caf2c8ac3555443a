"""GPU kernels for frameworks with their own memory and streams: planned once, launched on addresses."""

from __future__ import annotations

from .kernel import Kernel
from .runtime import gpu
from .runtime.gpu import GpuKernel
from .runtime.planned_launches import Outline, Plan
from .targets.protocol import Options

__all__ = ["GpuKernel", "Outline", "Plan", "launching"]


def launching(kernel: Kernel) -> GpuKernel:
    """The object that plans and launches a kernel on the GPU, for a kernel of any target."""
    return gpu.load(kernel.program, Options(kernel.dtype.name))
