"""What the caller of ``compile`` asked for: which algorithm, and which numbers of the mechanism are inputs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from ..mechanics.algorithms.catalogue import ALGORITHMS, Algorithm, from_expression
from ..mechanics.operators.expression import Expression
from ..mechanism import Mechanism, one_of
from ..mechanism.family import Numbers
from .ir.program import Array
from .registry import NAME_ALIASES, array_function

PARAMETER_SHAPES: dict[str, tuple[int, ...]] = {"mass": (), "com": (3,), "inertia": (3, 3), "pose": (4, 4)}
MAIN_ALGORITHMS = (
    "available: inverse_dynamics, forward_dynamics, mass_matrix, bias_force, jacobian, link_poses and every other "
    "array function of linkwise by its name; docs/api.md lists all"
)


def algorithm_of(asked: Any) -> Algorithm:
    if isinstance(asked, Algorithm):
        return asked
    if isinstance(asked, Expression):
        return from_expression(asked)
    if callable(asked):
        return ALGORITHMS[_name_of(asked)]
    if not isinstance(asked, str):
        raise TypeError(f"an algorithm is a name, a function of linkwise or an operator expression, got {asked!r}")
    name = NAME_ALIASES.get(asked.lower(), asked)
    return ALGORITHMS[one_of("algorithm", name, (*ALGORITHMS, *NAME_ALIASES), MAIN_ALGORITHMS)]


def _name_of(function: Callable[..., Any]) -> str:
    """The algorithm that an array function of linkwise is made from; other functions are refused, whatever their
    names."""
    made = array_function(function)
    if made is not None and made.algorithm is not None:
        return made.algorithm
    module, name = getattr(function, "__module__", None) or "", getattr(function, "__name__", repr(function))
    full = f"{module}.{name}" if module else name
    if made is not None or getattr(sys.modules.get(module), name, None) is function and module.startswith("linkwise."):
        raise ValueError(f"{full} is no algorithm that can be compiled: {made.advice if made else MAIN_ALGORITHMS}")
    meant = f"did you mean linkwise.{name}?" if name in ALGORITHMS else MAIN_ALGORITHMS
    raise ValueError(
        f"{full} is no function of linkwise, and only those are compiled: {meant} (for a computation of your own give "
        "an operator expression, or a linkwise.Algorithm)"
    )


def parameter_arrays(mech: Mechanism, names: Sequence[Any]) -> tuple[list[Array], list[list[tuple[Any, Any]]]]:
    """One input per name, and for each the numbers it replaces: ((kind, body), index into the array)."""
    if isinstance(names, str):
        names = (names,)
    arrays: list[Array] = []
    entries: list[list[tuple[tuple[str, int], Any]]] = []
    taken: set[tuple[str, int]] = set()
    places: list[tuple[tuple[str, int], Any]]
    for name in names:
        if isinstance(name, Numbers):  # all that variants of a mechanism differ in, as one vector
            arrays.append(Array("numbers", (name.size,)))
            entries.append(name.places)
            continue
        if not isinstance(name, str):
            raise TypeError(f"a parameter is named by a string such as 'mass' or 'forearm.mass', got {name!r}")
        link, _, kind = name.rpartition(".")
        if name == "gravity":
            array, places = Array(name, (3,)), [(("gravity", -1), ...)]
        elif name == "drive":
            array = Array(name, (len(mech.driven), 3))
            driven = [k for k, loop in enumerate(mech.loops) if loop.drive is not None]
            places = [(("drive", k), row) for row, k in enumerate(driven)]
        elif link:
            one_of(f"parameter of link {link!r}", kind, tuple(PARAMETER_SHAPES))
            body = mech.moving_link_index(link)
            array, places = Array(name, PARAMETER_SHAPES[kind]), [((kind, body), ...)]
        else:
            one_of("parameter", kind, (*PARAMETER_SHAPES, "gravity", "drive"))
            array = Array(name, (mech.n_links, *PARAMETER_SHAPES[kind]))
            places = [((kind, i), i) for i in range(mech.n_links)]
        clash = taken.intersection(key for key, _ in places)
        if clash:
            raise ValueError(f"parameter {name!r} repeats numbers that another parameter already makes inputs")
        taken.update(key for key, _ in places)
        arrays.append(array)
        entries.append(places)
    return arrays, entries
