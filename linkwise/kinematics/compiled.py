"""Functions of arrays made from functions of scalars that no mechanism has a part in: traced, compiled when first
called, batched as all kernels are."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from ..compiler.ir.program import Array
from ..compiler.kernel import Kernel
from ..compiler.pipeline import loaded
from ..compiler.store import is_single
from ..compiler.trace import trace


class Compiled:
    """``inputs`` are names and core shapes of the arrays that ``function`` takes, as lists of scalars within lists."""

    def __init__(self, name: str, function: Callable[..., Any], **inputs: tuple[int, ...]):
        self.name, self.function, self.inputs = name, function, inputs
        self._kernel = cache(self._loaded)

    def __call__(self, *arrays: Any) -> Any:
        return self._kernel("float32" if all(map(is_single, arrays)) else "float64")(*arrays)

    def _loaded(self, dtype: str) -> Kernel:
        def run(*arrays: np.ndarray) -> list[np.ndarray]:
            return [np.array(self.function(*(array.tolist() for array in arrays)), dtype=object)]

        shapes = [Array(name, shape) for name, shape in self.inputs.items()]
        return loaded(trace(run, shapes, ("result",), self.name), dtype, "cpu", (), {})
