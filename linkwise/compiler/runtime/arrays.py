"""Conversion of arrays of other libraries to NumPy: torch tensors and anything with ``__array__`` or DLPack."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

_MAIN_MEMORY = (1, 3, 11)  # DLPack devices that the CPU can read: kDLCPU, kDLCUDAHost, kDLROCMHost
REQUIRES_GRAD = (
    "is a tensor with requires_grad, whose gradients torch cannot take through this function: call that of "
    "linkwise.torch, which it can, or give tensor.detach()"
)
TRACED_BY_JAX = (
    "is traced by JAX, inside of jit, vmap or a derivative, which cannot look into this function: call that of "
    "linkwise.jax, which it can"
)
MASKED = "is a masked array: give its numbers with .filled(value)"
SYMBOL_OF_CASADI = (
    "is a symbol of CasADi, which has no numbers that this function could compute with: call that of linkwise.casadi, "
    "such as linkwise.casadi.forward_dynamics(mech, q, v, tau), which takes symbols"
)


class UnreadableArrayError(ValueError):
    """An array of another library whose numbers the CPU cannot read; the message continues after the array's name.

    place   index among several arrays
    """

    place = 0


class NoDeviceError(RuntimeError):
    """No GPU is available."""


def is_foreign(x: Any) -> bool:
    """Whether x is an array of another library."""
    if isinstance(x, (np.ndarray, np.generic)):
        return False
    return hasattr(type(x), "__array__") or hasattr(type(x), "__dlpack__")


def plain(x: Any) -> Any:
    """An array of another library as a NumPy array of its precision, without a copy; other values unchanged. Raises for
    masked arrays, whose mask NumPy would ignore."""
    if isinstance(x, np.ma.MaskedArray):
        raise UnreadableArrayError(MASKED)
    if not is_foreign(x):
        return x
    obstacle = _obstacle(x)
    if obstacle:
        raise UnreadableArrayError(obstacle)
    try:
        return np.asarray(x) if hasattr(type(x), "__array__") else np.from_dlpack(x)
    except (TypeError, RuntimeError, BufferError) as error:
        raise UnreadableArrayError(
            f"({type(x).__name__} of dtype {getattr(x, 'dtype', 'unknown')}) cannot be read as a NumPy array: convert "
            f"it to float32 or float64 first, as tensor.double() of torch does ({error})"
        ) from error


def all_plain(arrays: Sequence[Any]) -> Sequence[Any]:
    """``plain`` of each array; errors carry its index."""
    converted = list(arrays)
    for position, x in enumerate(arrays):
        try:
            converted[position] = plain(x)
        except UnreadableArrayError as error:
            error.place = position
            raise
    return converted


def _obstacle(x: Any) -> str:
    """Why the array cannot be read, with advice; empty if unknown."""
    if str(getattr(x, "device", "")) == "meta":
        return "lies on the device meta, where tensors have no numbers: give one with values on the CPU"
    if getattr(x, "requires_grad", False) is True:
        return REQUIRES_GRAD
    if type(x).__module__.partition(".")[0] == "jax" and type(x).__name__.endswith("Tracer"):
        return TRACED_BY_JAX
    if type(x).__module__.partition(".")[0] == "casadi" and type(x).__name__ in ("SX", "MX"):
        return SYMBOL_OF_CASADI
    if on_device(x):
        device = getattr(x, "device", None)
        where = f"the device {device}" if device is not None else "a device"
        return (
            f"lies on {where}, but this is computed on the CPU: copy it there first, as tensor.cpu() of torch and "
            "cupy.asnumpy(array) do, or compile a kernel with target='cuda'; functions of arrays and rollouts whose "
            "first array lies there are computed there where CuPy is installed (pip install 'linkwise[cuda]')"
        )
    return ""


def on_device(x: Any) -> bool:
    """Whether the array's memory is not accessible to the CPU."""
    if type(x).__module__ == "cupy" or hasattr(x, "__cuda_array_interface__"):
        return True
    device = getattr(x, "__dlpack_device__", None)
    if str(getattr(x, "device", "")) == "meta":  # torch's "meta" device has no memory
        return False
    return device is not None and int(device()[0]) not in _MAIN_MEMORY
