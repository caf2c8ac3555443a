"""NumPy's C functions, from its tables of pointers, whose layout is part of its stable interface."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

# Positions in the tables: __multiarray_api.h and __ufunc_api.h.
_POSITIONS = {
    "PyArray_Return": ("_ARRAY_API", 76),
    "PyArray_NewFromDescr": ("_ARRAY_API", 94),
    "PyUFunc_clearfperr": ("_UFUNC_API", 27),
    "PyUFunc_getfperr": ("_UFUNC_API", 28),
    "PyUFunc_FromFuncAndDataAndSignature": ("_UFUNC_API", 31),
}


def address(function: str) -> int:
    """Address of a function by name."""
    table, position = _POSITIONS[function]
    return _table(table)[position]


@cache
def _table(name: str) -> Any:
    from numpy._core import _multiarray_umath  # type: ignore[attr-defined]

    pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )
    return ctypes.cast(pointer_of(getattr(_multiarray_umath, name), None), ctypes.POINTER(ctypes.c_void_p))
