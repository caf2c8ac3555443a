"""Functions of the user: controllers, events, wrenches that depend on the state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..mechanism import MechanismError

Function = Callable[[float, np.ndarray, np.ndarray], Any]
REAL = "biuf"  # kinds of dtypes that are real numbers


def answer(who: str, function: Function, t: float, q: np.ndarray, v: np.ndarray, kinds: str = REAL) -> np.ndarray:
    """The numbers that ``function(t, q, v)`` gives, of dtypes of these ``kinds``; an error names ``who`` gave others.

    The function gets copies and so does the caller: a function may change its arguments, keep them, and give the same
    array again and again, and the integration is none the worse for it.
    """
    given = function(t, q.copy(), v.copy())
    try:
        values = np.asarray(given)
    except ValueError as ragged:
        raise MechanismError(f"at t = {t:.6g} s {who} gives no array: {ragged}") from None
    if values.dtype.kind not in kinds:
        raise MechanismError(
            f"at t = {t:.6g} s {who} gives {given!r}, of type {values.dtype}, but real numbers are needed"
        )
    return np.array(values, dtype=float)
