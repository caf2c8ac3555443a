"""The catalogue of named algorithms: inputs, results and restrictions.

Algorithms are registered in their own modules.  This module imports all modules of the folder, so that ``ALGORITHMS``
is complete.
"""

from __future__ import annotations

from importlib import import_module
from itertools import combinations
from pkgutil import iter_modules

from ..registered import REGISTERED
from . import integration
from .algorithm import (
    ALGORITHMS,
    CONFIGURATION_FIRST,
    SHAPES,
    Algorithm,
    from_expression,
)
from .constrained_steps import register_constrained_steps
from .step_derivatives import register_step_derivatives
from .steps_in_variables import register_variable_steps

__all__ = [
    "ALGORITHMS",
    "CONFIGURATION_FIRST",
    "SHAPES",
    "Algorithm",
    "algorithms",
    "from_expression",
    "variants",
]

for _module in iter_modules(import_module(__package__).__path__):
    import_module(f"{__package__}.{_module.name}")


class Lines(tuple[str, ...]):
    """Lines of text, shown one below the other."""

    def __repr__(self) -> str:
        return "\n".join(self)


def algorithms() -> Lines:
    """The names that ``compile`` takes, one per line: inputs, optional inputs in brackets, options after a bar,
    results and a description.
    """
    return Lines(_line(ALGORITHMS[name]) for name in sorted(ALGORITHMS))


def _line(algorithm: Algorithm) -> str:
    inputs = [*algorithm.inputs, *(f"[{port}]" for port in algorithm.ports)]
    options = f" | {', '.join(algorithm.options)}" if algorithm.options else ""
    return f"{algorithm.name}({', '.join(inputs)}{options}) -> {', '.join(algorithm.outputs)}: {algorithm.about}"


def variants() -> list[Algorithm]:
    """All algorithms, without optional inputs and with every combination of them."""
    return [
        algorithm.with_ports(*chosen)
        for algorithm in ALGORITHMS.values()
        for count in range(len(algorithm.ports) + 1)
        for chosen in combinations(algorithm.ports, count)
    ]


def register_integrator(name: str, method: integration.Method) -> None:
    """Register a method of fixed steps: ``rollout`` and ``simulate`` then take its name, and ``compile`` the names of
    its steps and their derivatives, NAME_step, closed_NAME_step and NAME_step_derivatives.  A ``Tableau`` also gets
    steps in momenta and total rates, momentum_NAME_step, nu_NAME_step, xi_NAME_step.

    method   a ``Tableau`` (explicit Runge-Kutta) or a ``Splitting`` (velocities and positions in turn)
    """
    if not isinstance(method, (integration.Tableau, integration.Splitting)):
        raise TypeError(
            f"a method of fixed steps is a linkwise.extend.Tableau or a linkwise.extend.Splitting, not {method!r}"
        )
    if name in integration.METHODS:
        raise ValueError(f"method {name!r} is known already; known: {', '.join(integration.METHODS)}")
    integration.METHODS[name] = method
    REGISTERED["method", name] = method
    integration.register_steps(name, method)
    register_constrained_steps(name, method)
    register_step_derivatives(name, method)
    register_variable_steps(name)
