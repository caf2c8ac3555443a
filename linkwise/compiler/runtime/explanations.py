"""Error messages for unsuitable arrays of a call, in the user's terms."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..ir.program import Signature
from .arrays import UnreadableArrayError, plain

STATE = ("q", "v")  # inputs that ``check_state`` inspects


class KernelError(ValueError):
    """Arrays that do not fit a kernel; the message names the array and what was expected."""


def explaining(function: Callable[..., Any], signature: Signature, dtype: str) -> Callable[..., Any]:
    """``function(*arrays, out=None)`` with error messages that name the array and the expected shape or dtype."""

    count, masked = len(signature.inputs), np.ma.MaskedArray

    def call(*arrays: Any, out: Any = None) -> Any:
        try:
            if len(arrays) != count:  # NumPy would take a surplus array as output and write to it
                raise TypeError
            for array in arrays:
                if type(array) is masked:  # NumPy would ignore the mask
                    raise TypeError
            return function(*arrays) if out is None else function(*arrays, out=out)
        except (TypeError, ValueError) as error:
            raise _explanation(signature, np.dtype(dtype), arrays, out, error) from None

    call.__name__ = call.__qualname__ = signature.name  # Python's message for unknown keywords
    return call


def _explanation(signature: Signature, dtype: np.dtype, arrays: Sequence[Any], out: Any, error: Exception) -> Exception:
    """The fault of the arrays in the user's terms; the original error if none is identified."""
    name, expected = signature.name, signature.inputs
    if len(arrays) != len(expected):
        names = ", ".join(f"{a.name} {a.shape}" for a in expected)
        return KernelError(f"{name} takes {len(expected)} arrays ({names}), {len(arrays)} were given")
    if isinstance(error, UnreadableArrayError):
        return KernelError(f"{name}: {expected[error.place].name} {error}")
    batches = []
    for array, value in zip(expected, arrays, strict=True):
        core = ", ".join(map(str, array.shape))
        if value is None:
            return KernelError(f"{name}: {array.name} is missing: it is None, and must be (..., {core})")
        if isinstance(value, Mapping):
            maker = {"wrenches": "wrenches_at(mech, wrenches, q)"}.get(array.name, f"configuration(mech, {array.name})")
            advice = f": lw.{maker} makes one" * (array.name in ("q", "q0", "q1", "wrenches"))
            return KernelError(f"{name}: {array.name} is a dictionary, but an array (..., {core}) is needed{advice}")
        try:
            values = _outline(value)
        except UnreadableArrayError as unread:
            return KernelError(f"{name}: {array.name} {unread}")
        except ValueError as ragged:
            return KernelError(f"{name}: {array.name} is no array: {ragged}")
        if not np.can_cast(values.dtype, dtype, casting="safe" if dtype.itemsize == 8 else "same_kind"):
            return KernelError(
                f"{name}: {array.name} has dtype {values.dtype}, but real numbers that {dtype} can hold are needed"
            )
        if dtype == np.float32 and not np.can_cast(values.dtype, dtype, casting="safe"):
            return KernelError(
                f"{name} is compiled for float32, but {array.name} has dtype {values.dtype}: "
                "convert it with np.asarray(x, np.float32), or compile with dtype='float64'"
            )
        lead = values.ndim - len(array.shape)
        if lead < 0 or values.shape[lead:] != array.shape:
            advice = "; linkwise.motion.check_state(mech, q, v) says what it may be" if array.name in STATE else ""
            return KernelError(f"{name}: {array.name} has shape {values.shape}, expected (..., {core}){advice}")
        batches.append(values.shape[:lead])
    try:
        batch = np.broadcast_shapes(*batches)
    except ValueError:
        listed = ", ".join(f"{a.name} {b}" for a, b in zip(expected, batches, strict=True))
        return KernelError(f"{name}: the batch shapes do not broadcast: {listed}")
    given_outputs = out if isinstance(out, tuple) else () if out is None else (out,)
    for array, value in zip(signature.outputs, given_outputs, strict=False):
        fault = _output_fault(value, batch + array.shape, dtype)
        if fault:
            return KernelError(
                f"{name}: out {fault}; a writable array of shape {batch + array.shape} and dtype {dtype} is needed"
            )
    return error


def _outline(x: Any) -> np.ndarray:
    """An array with the shape and dtype of ``given``: itself, or a stand-in for one on a GPU."""
    device = getattr(x, "__cuda_array_interface__", None)
    if device is None:
        return np.asarray(plain(x))
    return np.broadcast_to(np.empty((), device["typestr"]), device["shape"])


def _output_fault(result: Any, shape: tuple[int, ...], dtype: np.dtype) -> str | None:
    """Why a result cannot be written to ``result``."""
    on_device = hasattr(result, "__cuda_array_interface__")
    if not isinstance(result, np.ndarray) and not on_device:
        return f"is no array but a {type(result).__name__}"
    if not on_device and not result.flags.writeable:
        return "is read-only"
    result = _outline(result)
    if result.shape != shape:
        return f"has shape {result.shape}"
    return None if np.can_cast(dtype, result.dtype, casting="same_kind") else f"has dtype {result.dtype}"
