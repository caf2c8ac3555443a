"""Errors of studies: checks of options, whose messages begin with the key, and imports of optional libraries."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Collection, Mapping
from difflib import get_close_matches
from numbers import Integral
from typing import Any

import numpy as np


class StudyError(ValueError):
    """A study that cannot be computed, stored or resumed; the message names what is wrong and how to fix it."""


class MissingLibrary(ImportError, StudyError):
    """An optional library is not installed."""


def library(name: str, purpose: str, extra: str = "cluster") -> Any:
    """An optional library, imported now."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise MissingLibrary(f"{purpose} needs {name.partition('.')[0]}: pip install 'linkwise[{extra}]'") from None


def check_count(key: str, value: Any, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise StudyError(f"{key} must be an integer, at least {least}, not {value!r}")


def check_numbers(key: str, value: Any, shape: tuple[int, ...], names: Collection[str], steps: int | None) -> None:
    """Raise unless the value is an array (..., *shape) or numbers by name.

    With ``steps`` the axis before may be time; gains have ``steps`` None and may be one number.
    """
    if value is None or callable(value):
        return
    if isinstance(value, Mapping) and names:
        for name in value:
            check_name(key, name, names)
        return
    try:
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise StudyError(f"{key} must be numbers, not {value!r}") from None
    if steps is None and not array.ndim:
        return
    if array.shape[-len(shape) :] != shape:
        expected = ", ".join(map(str, shape))
        of = f": one for each of {', '.join(names)}" if names else ""
        raise StudyError(f"{key} must have shape ({expected}) or (..., {expected}), not {array.shape}{of}")
    times = array.shape[-len(shape) - 1] if array.ndim > len(shape) else 1
    if steps is not None and times not in (1, steps):
        raise StudyError(
            f"{key} has {times} rows in time, and steps is {steps}: give one for each step, or one for all"
        )


def check_options(function: Callable[..., Any], options: Mapping[str, Any], taken: Collection[str]) -> None:
    """Raise unless all keys are arguments of a function of the library, other than those ``taken`` by the study."""
    known = [name for name in inspect.signature(function).parameters if name not in taken]
    for key in options:
        if key in taken:
            raise StudyError(f"{key}: the study itself gives it; vary it, or leave it out")
        check_name("option", key, known, f" of lw.{function.__name__}")


def check_name(key: str, value: Any, known: Collection[str], more: str = "") -> None:
    if value not in known:
        close = get_close_matches(str(value), list(known), n=1)
        hint = f"did you mean {close[0]!r}?  " if close else ""
        raise StudyError(f"{key}{more}: {value!r} is unknown; {hint}available: {', '.join(known) or 'none'}")
