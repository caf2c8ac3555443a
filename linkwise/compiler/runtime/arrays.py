"""Arrays of other libraries as NumPy arrays: tensors of torch and whatever else has ``__array__`` or speaks DLPack."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

_MAIN_MEMORY = (1, 3, 11)  # devices of DLPack that the CPU can read: kDLCPU, kDLCUDAHost, kDLROCMHost


class DeviceArrayError(ValueError):
    """An array that lies on a device, where functions of the CPU cannot read it.

    place   which of several arrays it is
    """

    def __init__(self, array: Any, place: int = 0):
        device = getattr(array, "device", None)
        where = f"the device {device}" if device is not None else "a device"
        super().__init__(
            f"lies on {where}, but this is computed on the CPU: copy it there first, as tensor.cpu() of torch and "
            "cupy.asnumpy(array) do, or compile a kernel with target='cuda'"
        )
        self.place = place


def is_foreign(x: Any) -> bool:
    """Whether it is an array of another library."""
    if isinstance(x, (np.ndarray, np.generic)):
        return False
    return hasattr(type(x), "__array__") or hasattr(type(x), "__dlpack__")


def plain(x: Any) -> Any:
    """An array of another library as a NumPy array of its precision, in the same memory; all else as it is."""
    if not is_foreign(x):
        return x
    if _on_device(x):
        raise DeviceArrayError(x)
    return np.asarray(x) if hasattr(type(x), "__array__") else np.from_dlpack(x)


def all_plain(arrays: Sequence[Any]) -> Sequence[Any]:
    """``plain`` of each; an error says which one it is about."""
    found = list(arrays)
    for place, x in enumerate(arrays):
        try:
            found[place] = plain(x)
        except DeviceArrayError as error:
            error.place = place
            raise
    return found


def _on_device(x: Any) -> bool:
    if hasattr(x, "__cuda_array_interface__"):
        return True
    device = getattr(x, "__dlpack_device__", None)
    return device is not None and int(device()[0]) not in _MAIN_MEMORY
