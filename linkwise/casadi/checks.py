"""Check arguments before CasADi sees them: its own errors name neither inputs nor expected shapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import casadi
import numpy as np


class Checked(casadi.Function):
    """A function whose calls raise for inputs of wrong shape, with the expected one."""

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        check_call(self, arguments, named)
        return super().__call__(*arguments, **named)


def check_call(function: casadi.Function, arguments: Sequence[Any], named: Mapping[str, Any]) -> None:
    names = function.name_in()
    if arguments and named:
        raise TypeError(f"{function.name()} takes its inputs in order or by name, not both: {_listed(function)}")
    if len(arguments) > len(names) or (arguments and len(arguments) < len(names)):
        raise TypeError(f"{function.name()} takes {len(names)} inputs, {_listed(function)}; got {len(arguments)}")
    for name, argument in named.items():
        if name not in names:
            close = get_close_matches(name, names, n=1)
            hint = f" (did you mean {close[0]!r}?)" if close else ""
            raise TypeError(f"{function.name()} has no input {name!r}{hint}: {_listed(function)}")
        _check_shape(function, names.index(name), argument)
    for k, argument in enumerate(arguments):
        _check_shape(function, k, argument)


def _check_shape(function: casadi.Function, k: int, argument: Any) -> None:
    shape, wanted = _shape(argument), function.size_in(k)
    if shape is None or _fits(shape, wanted):
        return
    rows, columns = wanted
    expected = f"{rows} numbers" if columns == 1 else f"a matrix of shape ({rows}, {columns})"
    hint = ""
    if shape[1] == rows and shape[0] != rows:
        hint = "; several states stand side by side, one column each: transpose it"
    raise ValueError(
        f"{function.name_in(k)} of {function.name()} must be {expected}, got shape {shape}{hint}; inputs are "
        f"{_listed(function)}"
    )


def _fits(shape: tuple[int, int], wanted: tuple[int, int]) -> bool:
    """CasADi's broadcasting rule: scalars and empty arrays fit everything, a row fits a column, states stand side by
    side.
    """
    rows, columns = wanted
    if shape == wanted or shape == (1, 1) or 0 in shape:
        return True
    if 1 in wanted and shape == (columns, rows):
        return True
    return shape[0] == rows and columns > 0 and shape[1] % columns == 0


def _shape(argument: Any) -> tuple[int, int] | None:
    """Shape of an argument as a matrix; None where CasADi determines it."""
    shape = getattr(argument, "shape", None)
    if shape is None:
        try:
            shape = np.shape(argument)
        except ValueError:  # ragged
            return None
    if len(shape) > 2:
        return None
    return (*shape, 1, 1)[:2] if len(shape) < 2 else tuple(shape)


def _listed(function: casadi.Function) -> str:
    sizes = (function.size_in(k) for k in range(function.n_in()))
    shapes = (
        ("" if size == (1, 1) else f"[{size[0]}]" if size[1] == 1 else f"[{size[0]}, {size[1]}]") for size in sizes
    )
    return ", ".join(f"{name}{shape}" for name, shape in zip(function.name_in(), shapes, strict=True))
