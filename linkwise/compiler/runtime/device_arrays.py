"""GPU arrays of other libraries: CuPy views of their memory, and results as arrays of the caller's library.

Memory is passed on by DLPack, which also keeps the order of work on different streams.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .arrays import REQUIRES_GRAD, UnreadableArrayError, is_foreign, on_device, plain


@dataclass(frozen=True)
class Library:
    """The array library of a call: it converts results and provides the stream."""

    deliver: Callable[[Any], Any]
    stream: Callable[[], Any] = contextlib.nullcontext


def seen_by_cupy(cupy: Any, arrays: Sequence[Any]) -> tuple[list[Any], Library]:
    """CuPy views of device arrays, other arrays copied; and the library for results: the first device array's, else
    NumPy."""
    seen, library = [], None
    for position, x in enumerate(arrays):
        if isinstance(x, cupy.ndarray):
            library = library or Library(_itself)
        elif is_foreign(x) and on_device(x):
            library = library or _find_library(cupy, x)
            x = _view(cupy, x, position)
        else:
            x = cupy.asarray(np.asarray(plain(x)))
        seen.append(x)
    return seen, library or Library(cupy.asnumpy)


def writable(cupy: Any, x: Any) -> Any:
    """A CuPy view of a device array; None for other values."""
    if isinstance(x, cupy.ndarray):
        return x
    return cupy.asarray(x) if hasattr(x, "__cuda_array_interface__") and not isinstance(x, np.ndarray) else None


@dataclass(frozen=True)
class Some:
    """An array on the device with row access by NumPy masks."""

    cupy: Any
    array: Any

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    @property
    def dtype(self) -> np.dtype:
        return self.array.dtype

    def __getitem__(self, mask: np.ndarray) -> np.ndarray:
        return self.cupy.asnumpy(self.array[self.cupy.asarray(mask)])

    def __setitem__(self, mask: np.ndarray, rows: np.ndarray) -> None:
        self.array[self.cupy.asarray(mask)] = self.cupy.asarray(rows)


class DeviceCall:
    """One call of a function that checks its arguments by name before computing on the GPU.

    seen      the arguments: device arrays as CuPy views, others as on the CPU
    stream    the context of the work
    """

    def __init__(self, cupy: Any, inputs: Mapping[str, Any]):
        self._cupy = cupy
        self.seen, library = {}, None
        for position, (name, x) in enumerate(inputs.items()):
            if isinstance(x, cupy.ndarray) or (is_foreign(x) and on_device(x)):
                library = library or (Library(_itself) if isinstance(x, cupy.ndarray) else _find_library(cupy, x))
                x = x if isinstance(x, cupy.ndarray) else _view(cupy, x, position)
            self.seen[name] = x if isinstance(x, cupy.ndarray) else plain(x)
        self._library = library or Library(cupy.asnumpy)
        self.stream = self._library.stream

    def copied(self, arrays: Sequence[Any]) -> list[Any]:
        """All arrays on the device."""
        return [self._cupy.asarray(x) for x in arrays]

    def fetched(self, array: Any) -> np.ndarray:
        """The array on the CPU."""
        return self._cupy.asnumpy(array)

    def some(self, array: Any) -> Some:
        """Row access to the array through the CPU."""
        return Some(self._cupy, array)

    def over_and_over(self, shape: tuple[int, ...], records: int, dtype: np.dtype) -> tuple[Any, Any]:
        """Zeros (..., n), and an array of records (..., records, n) whose records all share this memory."""
        last = self._cupy.zeros(shape, dtype)
        strides = (*last.strides[:-1], 0, last.strides[-1])
        views = self._cupy.lib.stride_tricks
        return last, views.as_strided(last, (*shape[:-1], records, shape[-1]), strides)

    def results(self, out: Any, shapes: Sequence[tuple[int, ...]], dtype: np.dtype) -> list[Any] | None:
        """New arrays, or those in ``out``; None if these do not fit."""
        if out is None:
            return [self._cupy.empty(shape, dtype) for shape in shapes]
        views = [writable(self._cupy, x) for x in out] if isinstance(out, tuple) and len(out) == len(shapes) else [None]
        fits = all(
            x is not None and x.shape == shape and x.dtype == dtype for x, shape in zip(views, shapes, strict=False)
        )
        return views if fits else None

    def delivered(self, results: Sequence[Any], out: Any) -> Any:
        """The arrays of ``out``, otherwise results converted for the caller's library."""
        return out if out is not None else tuple(map(self._library.deliver, results))


def _view(cupy: Any, x: Any, position: int) -> Any:
    """An array of another library as CuPy's, in the same memory."""
    if getattr(x, "requires_grad", False) is True:
        error = UnreadableArrayError(REQUIRES_GRAD)
        error.place = position
        raise error
    return cupy.from_dlpack(x) if hasattr(type(x), "__dlpack__") else cupy.asarray(x)


def _itself(array: Any) -> Any:
    return array


def _find_library(cupy: Any, array: Any) -> Library:
    """The library by the module of the array's type; unknown libraries get CuPy arrays."""
    name = type(array).__module__.partition(".")[0]
    if name == "torch":
        torch = sys.modules["torch"]

        def stream() -> Any:
            current = torch.cuda.current_stream(array.device).cuda_stream
            return cupy.cuda.ExternalStream(current) if current else contextlib.nullcontext()

        return Library(torch.from_dlpack, stream)
    if name in ("jax", "jaxlib"):
        import jax.dlpack  # CuPy itself: no conversion

        return Library(jax.dlpack.from_dlpack)
    return Library(_itself)
