"""Compiled loops as NumPy functions: a generalized ufunc made from machine code.

NumPy exports the C function that makes ufuncs in a table of pointers; ctypes calls it, so no extension module is
needed.  Batches, broadcasting, strides, casting, ``out=`` and memory overlap are then NumPy's own.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from ..ir.program import Array
from . import numpy_api
from .llvm_loader import MachineCode

_NO_IDENTITY = -1  # PyUFunc_None
_kept: list[Any] = []  # kept for good if ufuncs cannot own them


def make_gufunc(
    code: MachineCode,
    inputs: Sequence[Array],
    outputs: Sequence[Array],
    dtype: str,
    name: str,
    doc: str = "",
    tables: np.ndarray | None = None,
) -> np.ufunc:
    """A ufunc that runs ``code``, a ``PyUFuncGenericFunction``, on arrays of ``dtype``, and owns it and its ``tables``.

    Core dimensions are fixed except for axes of time; NumPy refuses wrong ones.  Raises ``ValueError`` for core
    dimensions of size 0 and for programs without inputs, which NumPy does not support; evaluate these with
    ``targets.numpy_reference``.
    """
    arrays = [*inputs, *outputs]
    if not inputs:
        raise ValueError(f"{name} has no inputs; NumPy makes no ufunc of it, use the NumPy reference target")
    for array in arrays:
        if 0 in array.shape:
            raise ValueError(
                f"{name}: {array.name} has shape {array.shape}; NumPy makes no ufunc with an empty core dimension, "
                "use the NumPy reference target"
            )
    functions = (ctypes.c_void_p * 1)(code.address)
    data = (ctypes.c_void_p * 1)(None if tables is None else tables.ctypes.data)
    types = (ctypes.c_byte * len(arrays))(*[np.dtype(dtype).num] * len(arrays))
    texts = [ctypes.create_string_buffer(text.encode()) for text in (name, doc, _signature(inputs, outputs))]
    ufunc = _constructor()(
        functions, data, types, 1, len(inputs), len(outputs), _NO_IDENTITY, texts[0], texts[1], 0, texts[2]
    )
    _make_owner(ufunc, (code, functions, data, types, texts, tables))  # NumPy copies none of it
    return ufunc


class _UfuncObject(ctypes.Structure):
    """``PyUFuncObject`` of NumPy's ufuncobject.h, up to the object that a ufunc owns."""

    _fields_ = [
        ("reference_count", ctypes.c_int64),
        ("type", ctypes.c_void_p),
        ("inputs_outputs_arguments_identity", ctypes.c_int * 4),
        ("functions", ctypes.c_void_p),
        ("data", ctypes.c_void_p),
        ("types_and_reserved", ctypes.c_int * 2),
        ("name", ctypes.c_char_p),
        ("types", ctypes.c_void_p),
        ("doc", ctypes.c_void_p),
        ("memory", ctypes.c_void_p),
        ("owned", ctypes.c_void_p),
    ]


def _make_owner(ufunc: np.ufunc, owner: Any) -> None:
    """Tie the lifetime of ``owner`` to ``ufunc``, in the slot where ``numpy.frompyfunc`` stores its function."""
    if not owners_are_known():
        _kept.append(owner)
        return
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(owner))
    _UfuncObject.from_address(id(ufunc)).owned = id(owner)


@cache
def owners_are_known() -> bool:
    """Whether ufuncs have the expected memory layout, tested on a ufunc with a known owner."""
    if sys.implementation.name != "cpython" or object.__basicsize__ != 16 or ctypes.sizeof(ctypes.c_void_p) != 8:
        return False

    def known(x: Any) -> Any:
        return x

    fields = _UfuncObject.from_address(id(ufunc := np.frompyfunc(known, 1, 1)))
    empty = _UfuncObject.from_address(id(np.add)).owned
    return fields.owned == id(known) and fields.type == id(type(ufunc)) and fields.name is not None and empty is None


def inner_loop(ufunc: np.ufunc) -> tuple[int, int] | None:
    """Addresses of a ufunc's first inner loop and of its data; None if the layout is unknown."""
    if type(ufunc) is not np.ufunc or not owners_are_known():
        return None
    fields = _UfuncObject.from_address(id(ufunc))
    data = ctypes.c_void_p.from_address(fields.data).value if fields.data else 0
    return ctypes.c_void_p.from_address(fields.functions).value or 0, data or 0


def delivered(results: Sequence[Any], out: Any, copyto: Callable[..., None] = np.copyto) -> Any:
    """The return value of a call that is not a ufunc's: a single result bare, several as a tuple.

    A result with an array in ``out`` (one array, or a tuple of arrays and None) is written to that array, which is
    returned; as for ufuncs, its precision may be lower but its kind must be the same.
    """
    outputs = out if isinstance(out, tuple) else (None,) * len(results) if out is None else (out,)
    if len(outputs) != len(results):
        raise ValueError(f"out must have {len(results)} arrays, one for each result, not {len(outputs)}")
    for array, result in zip(outputs, results, strict=True):
        if array is not None:
            copyto(array, result, casting="same_kind")
    answers = tuple(result if array is None else array for array, result in zip(outputs, results, strict=True))
    return answers[0] if len(answers) == 1 else answers


def _signature(inputs: Sequence[Array], outputs: Sequence[Array]) -> str:
    """NumPy's notation, for instance ``(6),(6)->(6,6)``."""

    def core(array: Array) -> str:
        return ",".join(map(str, (*array.axes, *array.shape)))

    return "->".join(",".join(f"({core(array)})" for array in side) for side in (inputs, outputs))


@cache
def _constructor() -> Callable[..., np.ufunc]:
    """NumPy's ``PyUFunc_FromFuncAndDataAndSignature`` as a Python callable."""
    pointer, number = ctypes.c_void_p, ctypes.c_int
    prototype = ctypes.PYFUNCTYPE(
        ctypes.py_object, pointer, pointer, pointer, number, number, number, number, pointer, pointer, number, pointer
    )
    return prototype(numpy_api.address("PyUFunc_FromFuncAndDataAndSignature"))
