"""Kernels on the GPU: CUDA C compiled by CuPy, called with arrays of shape ``batch + core``.

CuPy is imported when a kernel is loaded, not before; everything else in linkwise works without it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir.program import Array, Program
from ..targets import cuda_c
from ..targets.protocol import Options
from .gufunc import delivered

THREADS_PER_BLOCK = 128


def load(program: Program, options: Options) -> GpuKernel:
    """Compile ``program`` for the GPU at hand."""
    return GpuKernel(program, options, _cupy_with_device())


class GpuKernel:
    """``kernel(*arrays, out=None)``: inputs of shape ``batch + core``, broadcast over their batch shapes.

    Given CuPy arrays (at least one), the results are CuPy arrays and nothing leaves the device; given
    NumPy arrays, they are NumPy arrays.  One output is returned bare, several as a tuple.  Arrays in ``out``
    may be of either library, whatever the inputs are.
    """

    def __init__(self, program: Program, options: Options, cupy: Any):
        self.source = cuda_c.emit(program, options)
        self.inputs = program.inputs
        self.outputs = program.outputs
        self.dtype = np.dtype(options.dtype)
        self._cupy = cupy
        self._function = cupy.RawModule(code=self.source).get_function(cuda_c.function_name(program))

    def __call__(self, *arrays: Any, out: Any = None) -> Any:
        cupy = self._cupy
        if len(arrays) != len(self.inputs):
            names = ", ".join(array.name for array in self.inputs)
            raise TypeError(f"the kernel takes {len(self.inputs)} arrays ({names}), {len(arrays)} were given")
        on_device = any(isinstance(array, cupy.ndarray) for array in arrays)
        values = [self._converted(x, a) for x, a in zip(arrays, self.inputs, strict=True)]
        batch = np.broadcast_shapes(*(_batch_shape(x, a) for x, a in zip(values, self.inputs, strict=True)))
        states = int(np.prod(batch))
        element_major = [self._element_major(x, a, batch) for x, a in zip(values, self.inputs, strict=True)]
        results = [cupy.empty((array.size, states), dtype=self.dtype) for array in self.outputs]
        if states:
            blocks = -(-states // THREADS_PER_BLOCK)
            self._function((blocks,), (THREADS_PER_BLOCK,), (np.uint64(states), *element_major, *results))
        shaped = [
            cupy.ascontiguousarray(x.T).reshape(batch + a.shape) for x, a in zip(results, self.outputs, strict=True)
        ]
        return delivered(shaped if on_device else [cupy.asnumpy(x) for x in shaped], out, self._copyto)

    def _converted(self, values: Any, array: Array) -> Any:
        """On the device, in the kernel's precision; numbers that would lose more than digits are refused."""
        values = self._cupy.asarray(values)
        if not np.can_cast(values.dtype, self.dtype, casting="same_kind"):
            raise TypeError(f"input {array.name} has dtype {values.dtype}, which is no {self.dtype}")
        return self._cupy.asarray(values, dtype=self.dtype)

    def _copyto(self, array: Any, values: Any, casting: Any) -> None:
        """``numpy.copyto`` from and to either library's arrays."""
        cupy = self._cupy
        if isinstance(array, cupy.ndarray):
            cupy.copyto(array, cupy.asarray(values), casting=casting)
        else:
            np.copyto(array, cupy.asnumpy(values), casting=casting)

    def _element_major(self, values: Any, array: Array, batch: tuple[int, ...]) -> Any:
        """``(elements, states)`` in C order, the layout of the emitted code."""
        rows = self._cupy.broadcast_to(values, batch + array.shape).reshape(int(np.prod(batch)), array.size)
        return self._cupy.ascontiguousarray(rows.T)


def _batch_shape(values: Any, array: Array) -> tuple[int, ...]:
    split = values.ndim - len(array.shape)
    if split < 0 or values.shape[split:] != array.shape:
        raise ValueError(f"input {array.name} must have trailing dimensions {array.shape}, its shape is {values.shape}")
    return values.shape[:split]


def _cupy_with_device() -> Any:
    """CuPy, where it is installed and sees a GPU; an error that says what is missing otherwise."""
    try:
        import cupy
    except ImportError as error:
        raise ImportError("target 'cuda' needs CuPy: pip install 'linkwise[cuda]'") from error
    try:
        devices = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise RuntimeError(_NO_DEVICE) from error
    if not devices:
        raise RuntimeError(_NO_DEVICE)
    return cupy


_NO_DEVICE = "target 'cuda' needs an NVIDIA GPU with its driver; linkwise[cuda] is installed, but CuPy sees no device"
