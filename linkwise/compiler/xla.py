"""Kernels as targets of XLA's foreign function interface: what a framework such as JAX calls without Python."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from .ir.program import Array
from .kernel import Kernel
from .launching import launching
from .runtime import xla, xla_cuda
from .runtime.cpu import machine_code
from .runtime.planned_launches import Outline
from .runtime.xla_interface import ATTRIBUTE, Handler

__all__ = ["ATTRIBUTE", "XlaCall", "XlaTarget", "calls_on_cpu", "calls_on_cuda"]


@dataclass(frozen=True, eq=False)
class XlaTarget:
    """A handler with the name that it is registered under: equal names, equal code, in other processes too."""

    name: str
    handler: Handler


@dataclass(frozen=True, eq=False)
class XlaCall:
    """A call of a target with so many states in rows.

    words     the attribute ``ATTRIBUTE``
    between   elements of further results, which are of no use after the call
    """

    target: XlaTarget
    words: np.ndarray
    between: tuple[int, ...] = ()


#: How a kernel is called: of the number of states, and which inputs are shared: of those there is one for all.
Calls = Callable[[int, Sequence[bool]], XlaCall]

_targets: dict[str, XlaTarget] = {}  # for good: what XLA has been told of may be called at any time
_lock = threading.Lock()


def calls_on_cpu(kernel: Kernel) -> Calls:
    """Calls of machine code, whose inputs and outputs are buffers of rows of states."""
    program, dtype, size = kernel.traced, kernel.dtype.name, kernel.dtype.itemsize
    arrays = (*program.inputs, *program.outputs)
    if any(array.size == 0 for array in arrays):
        raise ValueError(f"{kernel.name} has arrays without elements, which no machine code is made for")
    code, tables, key = machine_code(program, dtype)
    content = key.encode() + (b"" if tables is None else tables.tobytes())
    target = _target(program.name, content, lambda: xla.handler(code, tables))

    def call(states: int, shared: Sequence[bool]) -> XlaCall:
        single = (*shared, *(False,) * len(program.outputs))
        steps = [0 if is_single else size * prod(array.shape) for array, is_single in zip(arrays, single, strict=True)]
        for array in arrays:
            steps += [size * step for step in _strides(array.shape)]
        sizes = list(dict.fromkeys(n for array in arrays for n in array.shape))
        return XlaCall(target, xla.call_words(states, sizes, steps, len(arrays), program.size))

    return call


def calls_on_cuda(kernel: Kernel, devices: Sequence[int]) -> Calls:
    """Calls of kernels on GPUs, by the numbers that CUDA gives these; the code depends on what is shared."""
    program = kernel.program
    code = launching(kernel)

    def call(states: int, shared: Sequence[bool]) -> XlaCall:
        counts = [None if is_shared else states for is_shared in (*shared, *(False,) * len(program.outputs))]
        arrays = (*program.inputs, *program.outputs)
        rows = [_rows(array, count, code.dtype) for array, count in zip(arrays, counts, strict=True)]
        plan = code.plan(rows[: len(shared)], rows[len(shared) :])
        functions = list(dict.fromkeys(launch.function for launch in plan.launches))

        def handler() -> Handler:
            handles: list[list[int]] = [[] for _ in range(max(devices) + 1)]
            for device in devices:
                handles_by_function = code.handles(plan, device)
                handles[device] = [handles_by_function[function] for function in functions]
            return xla_cuda.handler(xla_cuda.driver(), handles, code, functions)

        content = "".join(function.code for function in functions).encode()
        target = _target(program.name, content, handler)
        return XlaCall(target, xla_cuda.launch_words(plan.launches, functions), plan.between)

    return call


def _target(name: str, content: bytes, make: Callable[[], Handler]) -> XlaTarget:
    """The XLA call target with this content; never freed, as XLA keeps targets for good."""
    full_name = f"linkwise_{name}_{hashlib.sha256(content).hexdigest()[:32]}"
    with _lock:
        if full_name not in _targets:
            _targets[full_name] = XlaTarget(full_name, make())
        return _targets[full_name]


def _rows(array: Array, states: int | None, dtype: np.dtype) -> Outline:
    """Of a buffer: rows of states, or one for all."""
    shape = array.shape if states is None else (states, *array.shape)
    return Outline(shape, tuple(dtype.itemsize * step for step in _strides(shape)))


def _strides(shape: Sequence[int]) -> list[int]:
    """Of an array in C order, in elements."""
    return [prod(shape[axis + 1 :]) for axis in range(len(shape))]
