"""Kernels as targets of XLA's foreign function interface: what a framework such as JAX calls without Python."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from .ir.program import Array
from .kernel import Kernel
from .pipeline import machine_code
from .runtime import xla
from .runtime.xla import ATTRIBUTE, Handler

__all__ = ["ATTRIBUTE", "XlaTarget", "xla_target"]

_targets: dict[str, XlaTarget] = {}  # for good: what XLA has been told of may be called at any time
_lock = threading.Lock()


@dataclass(frozen=True, eq=False)
class XlaTarget:
    """A handler with the name that it is registered under: equal names, equal code, in other processes too.

    operations   of one state
    """

    name: str
    handler: Handler
    arrays: tuple[Array, ...]
    itemsize: int
    operations: int

    def words(self, states: int, shared: Sequence[bool]) -> np.ndarray:
        """The attribute ``ATTRIBUTE`` of a call with so many states in rows: of inputs that are ``shared`` there is
        one for all."""
        size = self.itemsize
        single = (*shared, *(False,) * (len(self.arrays) - len(shared)))
        steps = [0 if one else size * prod(array.shape) for array, one in zip(self.arrays, single, strict=True)]
        for array in self.arrays:
            steps += [size * prod(array.shape[axis + 1 :]) for axis in range(len(array.shape))]
        sizes = list(dict.fromkeys(n for array in self.arrays for n in array.shape))
        return xla.call_words(states, sizes, steps, len(self.arrays), self.operations)


def xla_target(kernel: Kernel) -> XlaTarget:
    """The target of a kernel of the CPU, whose inputs and outputs are buffers of rows of states.

    It stays for good, with its machine code, as XLA forgets no target.
    """
    if kernel.target != "cpu":
        raise ValueError(f"{kernel.name} is compiled for {kernel.target!r}: XLA calls kernels with target='cpu'")
    program, dtype = kernel.traced, kernel.dtype.name
    arrays = (*program.inputs, *program.outputs)
    if any(array.size == 0 for array in arrays):
        raise ValueError(f"{kernel.name} has arrays without elements, which no machine code is made for")
    code, tables, key = machine_code(program, dtype)
    digest = hashlib.sha256(key.encode() + (b"" if tables is None else tables.tobytes())).hexdigest()
    name = f"linkwise_{program.name}_{digest[:32]}"
    with _lock:
        if name not in _targets:
            handler = xla.handler(code, tables)
            _targets[name] = XlaTarget(name, handler, arrays, kernel.dtype.itemsize, program.size)
        return _targets[name]
