"""Short cut for one state, or a few, past NumPy's machinery: a native function in front of the ufunc.

Deciding on loops, casts, strides and broadcasting costs a generalized ufunc about a microsecond, several times the cost
of a small kernel for one state.  The native function first inspects its arguments.  If they are exactly one state
(plain contiguous arrays of the kernel's dtype and core shapes), or a few states in rows, it allocates the results, or
takes the single array given for them, and runs the compiled loop once.  All other calls go unchanged to the general
function.  All kernels share its code; data of a kernel are in a structure that the function has as its ``self``.
"""

from __future__ import annotations

import ctypes
import hashlib
import math
import re
import sys
import sysconfig
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from ..ir.program import Array
from . import llvm_loader, numpy_api
from .cache import compiler_fingerprint
from .llvm_loader import MachineCode
from .single_call_text import MAX_ARRAYS, SOURCE

# Numbers of states in rows, and of operations, above which NumPy's overhead is small and releasing the lock is better.
_FEW, _SHORT = 64, 200_000
_METH_FASTCALL_KEYWORDS = 0x0080 | 0x0002
_enabled = ctypes.c_int8(1)  # read by the native function at every call


def set_single_call_shortcut(enabled: bool) -> None:
    """Enable or disable the short cut past NumPy's ufunc machinery for calls with one state (enabled at first).

    Results are the same to the last bit; without the short cut a call takes about a microsecond longer.  The setting
    takes effect at once for all kernels of this process.
    """
    if not isinstance(enabled, (bool, np.bool_)):
        raise ValueError(f"enabled must be True or False, not {enabled!r}")
    _enabled.value = bool(enabled)


def get_single_call_shortcut() -> bool:
    """Whether calls with one state may bypass NumPy's ufunc machinery, and this interpreter supports it."""
    return bool(_enabled.value) and layout_is_known()


def single_call(
    code: MachineCode,
    inputs: Sequence[Array],
    outputs: Sequence[Array],
    dtype: str,
    general: Callable[..., Any],
    operations: int = 1,
) -> Callable[..., Any]:
    """``general`` with a short cut for one state, or a few in rows, by the loop ``code`` (a ``PyUFuncGenericFunction``)
    of this many ``operations`` per state.

    Results equal those of the ufunc: arrays, NumPy scalars for core shape ``()``, a tuple for several results.  If the
    loop raises floating-point flags, ``general`` computes the state again and reports them according to
    ``numpy.errstate``.  The interpreter lock is held during the call: this is for short kernels.  For interpreters with
    an unknown object layout, returns ``general`` itself.
    """
    arrays = [*inputs, *outputs]
    if len(arrays) > MAX_ARRAYS or not layout_is_known():
        return general
    description = np.dtype(dtype)
    steps = [description.itemsize * math.prod(array.shape) for array in arrays]  # of states, then of axes
    for array in arrays:
        steps += [description.itemsize * math.prod(array.shape[axis + 1 :]) for axis in range(len(array.shape))]
    kernel = _Kernel(
        loop=code.address,
        general=general,
        inputs=len(inputs),
        outputs=len(outputs),
        array_type=np.ndarray,
        dtype=description,
        few=max(1, min(_FEW, _SHORT // max(1, operations))),
        steps=_numbers(steps),
        shapes=(_Shape * MAX_ARRAYS)(*(_Shape(len(array.shape), _numbers(array.shape)) for array in arrays)),
    )
    kernel.origin = code
    return _native(kernel)


def _native(kernel: _Kernel) -> Callable[..., Any]:
    """The native function of a kernel."""
    memory = np.frombuffer(memoryview(kernel).toreadonly(), np.uint8).view(_Memory)
    return _new_function()(ctypes.byref(_method()), memory, None)


def with_general(
    function: Callable[..., Any], instead: Callable[[Callable[..., Any]], Callable[..., Any]]
) -> Callable[..., Any]:
    """A copy of a function made by ``single_call`` with ``instead(general)`` as its general function; for any other
    function, ``instead`` of it."""
    memory = getattr(function, "__self__", None)
    if not isinstance(memory, _Memory):
        return instead(function)
    kernel = _Kernel.from_buffer_copy(memory.data)
    kernel.origin, kernel.general = memory, instead(kernel.general)
    return _native(kernel)


def _numbers(values: Sequence[int]) -> Any:
    return (ctypes.c_int64 * max(1, len(values)))(*values)


class _Memory(np.ndarray):
    """Owns a ``_Kernel``; an array, so that the native function finds the structure's address in it."""

    __slots__ = ()

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError("a compiled function cannot be pickled: pickle the mechanism and compile where that is loaded")


# -- what the native function reads -------------------------------------------------------------------


class _Shape(ctypes.Structure):
    _fields_ = [("rank", ctypes.c_int64), ("sizes", ctypes.POINTER(ctypes.c_int64))]


class _Kernel(ctypes.Structure):
    """``%Kernel`` of the text below. It keeps its targets and the machine code of its loop alive, through ``origin`` or
    the memory of the kernel that it was copied from."""

    origin: MachineCode | _Memory | None = None

    _fields_ = [
        ("loop", ctypes.c_void_p),
        ("general", ctypes.py_object),
        ("inputs", ctypes.c_int64),
        ("outputs", ctypes.c_int64),
        ("array_type", ctypes.py_object),
        ("dtype", ctypes.py_object),
        ("few", ctypes.c_int64),
        ("steps", ctypes.POINTER(ctypes.c_int64)),
        ("shapes", _Shape * MAX_ARRAYS),
    ]


class _ArrayObject(ctypes.Structure):
    """``PyArrayObject_fields`` of NumPy's ndarraytypes.h up to its flags, ``%Array`` of the text below."""

    _fields_ = [
        ("reference_count", ctypes.c_int64),
        ("type", ctypes.c_void_p),
        ("data", ctypes.c_void_p),
        ("rank", ctypes.c_int),
        ("sizes", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("base", ctypes.c_void_p),
        ("dtype", ctypes.c_void_p),
        ("flags", ctypes.c_int),
    ]


class _MethodDefinition(ctypes.Structure):
    """``PyMethodDef``, with the machine code of its function."""

    code: MachineCode

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


@cache
def layout_is_known() -> bool:
    """Whether arrays have the memory layout that the native function expects, tested on known arrays."""
    if sys.implementation.name != "cpython" or sysconfig.get_config_var("Py_GIL_DISABLED"):
        return False
    if ctypes.sizeof(ctypes.c_void_p) != 8 or object.__basicsize__ != 16:
        return False
    if np.ndarray.__basicsize__ < ctypes.sizeof(_ArrayObject):
        return False
    sample = np.arange(24.0).reshape(2, 3, 4)
    part = sample.astype(np.float32)[:, ::2].T
    part.flags.writeable = False
    return all(_reads_as_reported(array) for array in (sample, part, np.array(1.0)))


def _reads_as_reported(array: np.ndarray) -> bool:
    """Whether the fields of ``array`` have the values that NumPy reports."""
    fields = _ArrayObject.from_address(id(array))
    return (
        fields.type == id(np.ndarray)
        and fields.data == array.ctypes.data
        and fields.rank == array.ndim
        and tuple(fields.sizes[: array.ndim]) == array.shape
        and tuple(fields.strides[: array.ndim]) == array.strides
        and fields.base == (None if array.base is None else id(array.base))
        and fields.dtype == id(array.dtype) == id(np.dtype(array.dtype.name))
        and fields.flags == array.flags.num
    )


# -- the native function ------------------------------------------------------------------------------


@cache
def _new_function() -> Callable[..., Any]:
    return ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)(
        ("PyCFunction_NewEx", ctypes.pythonapi)
    )


@cache
def _method() -> _MethodDefinition:
    """The definition shared by all functions made here; never freed, as they point to it."""
    options = llvm_loader.host_options()
    key = hashlib.sha256(repr((SOURCE, options, compiler_fingerprint())).encode()).hexdigest()
    code = llvm_loader.load(SOURCE, "linkwise_single_call", options, key, _host_functions())
    definition = _MethodDefinition(b"kernel", code.address, _METH_FASTCALL_KEYWORDS, None)
    definition.code = code
    return definition


def _host_functions() -> dict[str, int]:
    """Addresses for the declarations of the text: the switch, NumPy's and Python's functions."""
    addresses = {"linkwise_single_call_enabled": ctypes.addressof(_enabled), "_Py_NoneStruct": id(None)}
    for name in re.findall(r"^declare \w+ @(\w+)", SOURCE, re.MULTILINE):
        if name.startswith(("PyArray_", "PyUFunc_")):
            addresses[name] = numpy_api.address(name)
        else:
            addresses[name] = ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0
    return addresses
