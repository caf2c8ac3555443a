"""The array functions of linkwise by their names, as functions of JAX."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import linkwise as lw

from ..frameworks import ActingCall, Call, UnderForces, algorithm_named, asked, kept, result_named
from .kernels import differentiable
from .signatures import precision_of, usual_target


def named_function(name: str, of_loops: bool = False) -> Callable[..., Any]:
    """The function of JAX's arrays that belongs to an algorithm of linkwise."""
    algorithm = algorithm_named(name, "linkwise.jax.closed" if of_loops else "linkwise.jax", of_loops)
    gives, plain = result_named(name, of_loops), Call(algorithm)

    def function(
        mech: lw.Mechanism,
        *arguments: Any,
        wrenches: Any = None,
        parameters: Mapping[str, Any] | None = None,
        forces: Any = None,
        ctrl: Any = None,
        activation: Any = None,
        **options: Any,
    ) -> Any:
        if forces is not None or ctrl is not None or activation is not None:
            acts = {"forces": forces, "ctrl": ctrl, "activation": activation}
            more = {"wrenches": wrenches, "parameters": parameters, **options}
            return _UNDER_FORCES(algorithm, function, mech, arguments, acts, more)
        call, arrays = plain, arguments
        if wrenches is not None or parameters or options or any(isinstance(x, str) for x in arguments):
            call, arrays = asked(algorithm, arguments, wrenches, parameters, options)
        results = _function(mech, call, precision_of(name, arrays))(*arrays)
        return results if gives is None else gives(results)

    function.__name__ = name
    function.__doc__ = (
        f"``linkwise.{'closed.' * of_loops}{name}`` of JAX's arrays, with derivatives; ``parameters`` by name, such as "
        "masses, too."
    )
    return function


def evaluated(mech: lw.Mechanism, call: ActingCall, arrays: tuple[Any, ...]) -> Any:
    """Forces of elements as a JAX expression."""
    return _function(mech, call, precision_of(call.algorithm, arrays))(*arrays)


_UNDER_FORCES = UnderForces(evaluated)


def _function(mech: lw.Mechanism, call: Call | ActingCall, dtype: str) -> Callable[..., Any]:
    return kept(mech, ("jax", call, dtype), lambda: differentiable(call.compiled(mech, dtype, usual_target())))
