"""Which public functions are made from algorithms, so that ``compile(linkwise.forward_dynamics, mech)`` knows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

OPTION_ALIASES = {"name": "link"}  # other words for options
TARGET_ALIASES = {"gpu": "cuda"}  # ... for targets
NAME_ALIASES = {"rnea": "inverse_dynamics", "aba": "forward_dynamics", "crba": "mass_matrix"}  # ... for algorithms


@dataclass(frozen=True)
class ArrayFunction:
    """The algorithm that a public function is made from, or what to compile in its place."""

    algorithm: str | None
    advice: str = ""


#: Options of algorithms that are the mechanism's to decide, where that takes computing: a function of the mechanism.
DECIDED_OPTIONS: dict[str, Callable[[Any], Any]] = {}
_MADE: dict[Callable[..., Any], ArrayFunction] = {}
Function = TypeVar("Function", bound=Callable[..., Any])


def array_function(function: Callable[..., Any]) -> ArrayFunction | None:
    """What is known of a public function; None of functions that are not ours."""
    try:
        return _MADE.get(function)
    except TypeError:  # an object that is called, and cannot be a key
        return None


def register(function: Function, known: ArrayFunction) -> Function:
    """Note what is known of a public function."""
    _MADE[function] = known
    return function


def compile_instead(advice: str) -> Callable[[Function], Function]:
    """Says of a public function that does more than one algorithm what to compile in its place."""

    def note(function: Function) -> Function:
        return register(function, ArrayFunction(None, f"compile {advice}"))

    return note
