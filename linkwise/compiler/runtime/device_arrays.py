"""Arrays of other libraries on a GPU: seen by CuPy where they lie, results as arrays of the caller's library.

Memory is passed on by DLPack, which also keeps the order of work on different streams.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .arrays import UnreadableArrayError, is_foreign, on_device


@dataclass(frozen=True)
class Library:
    """Whose arrays a call was given: how results become its arrays, and the stream that its work is on."""

    deliver: Callable[[Any], Any]
    stream: Callable[[], Any] = contextlib.nullcontext


def seen_by_cupy(cupy: Any, arrays: Sequence[Any]) -> tuple[list[Any], Library]:
    """The arrays as CuPy's, without copies of what is on the device, and the library that gets the results: that of the
    first array on the device, else NumPy."""
    found, library = [], None
    for place, x in enumerate(arrays):
        if isinstance(x, cupy.ndarray):
            library = library or Library(_itself)
        elif is_foreign(x) and on_device(x):
            if getattr(x, "requires_grad", False) is True:
                error = UnreadableArrayError(
                    "is a tensor with requires_grad, whose gradients torch cannot take through compiled code: give "
                    "tensor.detach(), and get derivatives from linkwise (jacobian_of, vjp_of)"
                )
                error.place = place
                raise error
            library = library or _library_of(cupy, x)
            x = cupy.from_dlpack(x) if hasattr(type(x), "__dlpack__") else cupy.asarray(x)
        else:
            x = cupy.asarray(np.asarray(x))
        found.append(x)
    return found, library or Library(cupy.asnumpy)


def _itself(array: Any) -> Any:
    return array


def _library_of(cupy: Any, array: Any) -> Library:
    """By the module of its type; results of libraries that are not known are CuPy's."""
    name = type(array).__module__.partition(".")[0]
    if name == "torch":
        torch = sys.modules["torch"]

        def stream() -> Any:
            current = torch.cuda.current_stream(array.device).cuda_stream
            return cupy.cuda.ExternalStream(current) if current else contextlib.nullcontext()

        return Library(torch.from_dlpack, stream)
    if name in ("jax", "jaxlib"):
        import jax.dlpack  # it is there: the array is its own

        return Library(jax.dlpack.from_dlpack)
    return Library(_itself)
