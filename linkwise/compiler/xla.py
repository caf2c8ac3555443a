"""Kernels as targets of XLA's foreign function interface: a framework such as JAX calls them without Python."""

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
    """A handler with its registered name: equal names mean equal code, across processes."""

    name: str
    handler: Handler


@dataclass(frozen=True, eq=False)
class XlaCall:
    """A call of a target for a number of states in rows.

    words     the attribute ``ATTRIBUTE``
    between   sizes of further results, temporary memory of the call
    """

    target: XlaTarget
    words: np.ndarray
    between: tuple[int, ...] = ()


#: From the number of states and the shared inputs, those with a single row for all states, to a call.
Calls = Callable[[int, Sequence[bool]], XlaCall]

_targets: dict[str, XlaTarget] = {}  # never freed: XLA may call registered targets at any time
_lock = threading.Lock()


def calls_on_cpu(kernel: Kernel) -> Calls:
    """Calls of machine code, with rows of states as buffers."""
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
    """Calls of kernels on GPUs, by CUDA device numbers; the code depends on which inputs are shared."""
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
    """Buffer layout: rows of states, or a single row for all."""
    shape = array.shape if states is None else (states, *array.shape)
    return Outline(shape, tuple(dtype.itemsize * step for step in _strides(shape)))


def _strides(shape: Sequence[int]) -> list[int]:
    """Strides in C order, in elements."""
    return [prod(shape[axis + 1 :]) for axis in range(len(shape))]
