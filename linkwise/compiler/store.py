"""Kernels that public functions keep with a mechanism: made on first use, found again by what was asked for.

The store is a dictionary of the mechanism itself.  What is in it stays; what is not is made by the first thread that
asks for it, while others that need something new of the same mechanism wait.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

import numpy as np

from ..mechanism import Mechanism, require_mechanism
from .kernel import Kernel
from .runtime.arrays import DeviceArrayError, all_plain, is_foreign

_FLOAT64, _FLOAT32 = np.dtype("float64"), np.dtype("float32")
#: An algorithm, one with its options, ("frame_pose", ("link", "tool")), or a function of mechanism and dtype that makes
#: the kernel.
Request = str | tuple[Any, ...] | Callable[[Mechanism, str], Kernel]
Made = TypeVar("Made")


# Functions are kept under their request alone, or with how they go about their arguments: _choosing or _converting.


def kernel_function(mech: Mechanism, request: Request, first: Any) -> Callable[..., Any]:
    """The function of arrays for ``request`` that suits its first argument: all-float32 arguments are computed in
    float32, everything else in float64."""
    precision = getattr(first, "dtype", None)
    key: Any = request
    if precision is not _FLOAT64 and first is not None:  # by far the most calls are float64, and short
        key = (request, _choosing) if precision is _FLOAT32 else _key(request, first)
    try:
        return mech._kernels[key]
    except (KeyError, AttributeError, TypeError):  # not compiled yet, no mechanism, or an option that is no name
        pass
    return _made(mech, request, key)  # elsewhere, as a function that holds another is slower to call


def _key(request: Request, first: Any) -> Any:
    """The same of a first argument that is no such NumPy array."""
    return (request, _converting) if is_foreign(first) else request


def _made(mech: Mechanism, request: Request, key: Any) -> Callable[..., Any]:
    return stored(mech, key, lambda: (_compiled if key is request else key[1])(mech, request))


def stored(mech: Mechanism, key: Any, make: Callable[[], Made]) -> Made:
    """What the mechanism keeps under ``key``, made by the first thread that asks for it."""
    require_mechanism(mech)
    # One lock per process: a forked child must not wait for a thread of its parent.
    with mech._locks.setdefault(os.getpid(), threading.RLock()):
        with suppress(KeyError, TypeError):
            return mech._kernels[key]
        made = mech._kernels[key] = make()
        return made


def _compiled(mech: Mechanism, request: Request, dtype: str = "float64") -> Callable[..., Any]:
    if callable(request):
        return request(mech, dtype).function
    from .pipeline import compile  # here, so that importing the package stays quick

    name, *options = (request,) if isinstance(request, str) else request
    return compile(name, mech, dtype=dtype, **dict(options)).function


def is_single(x: Any) -> bool:
    """Whether an argument lets a result be computed in float32: a float32 array, or one of Python's own numbers."""
    return getattr(x, "dtype", None) == _FLOAT32 or type(x) in (int, float)


def _choosing(mech: Mechanism, request: Request) -> Callable[..., Any]:
    """A function that computes in float32 if all arguments allow that (``is_single``), else in float64."""
    in_float32 = _compiled(mech, request, "float32")

    def choose(*arrays: Any) -> Any:
        if all(map(is_single, arrays)):
            return in_float32(*arrays)
        if any(map(is_foreign, arrays)):
            return _converting(mech, request)(*arrays)
        return kernel_function(mech, request, None)(*arrays)

    return choose


def _converting(mech: Mechanism, request: Request) -> Callable[..., Any]:
    """A function that takes arrays of other libraries for the NumPy arrays that they are."""

    def convert(*given: Any) -> Any:
        try:
            arrays = all_plain(given)
        except DeviceArrayError:  # kernels know the name of the array
            return kernel_function(mech, request, None)(*given)
        return kernel_function(mech, request, arrays[0])(*arrays)

    return convert
