"""Functions of CasADi, for optimal control: ``import linkwise.casadi``.

Programs of kernels are evaluated on CasADi's symbols, which differentiates them, or run as machine code whose
derivatives are kernels too.

    from linkwise.casadi import forward_dynamics, function

    a = forward_dynamics(arm, q, v, tau)       # of symbols (SX or MX) or numbers, under constraints too: any algorithm
    step = function("rk4_step", arm)           # a casadi.Function, with inputs q, v, tau, dt
    f = function(kernel, machine_code=True)    # ... that runs machine code
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..frameworks import former_closed

try:
    from .functions import function, named_function
except ModuleNotFoundError as missing:
    if missing.name != "casadi":
        raise
    raise ModuleNotFoundError(
        "linkwise.casadi needs CasADi: pip install 'linkwise[casadi]'", name="casadi"
    ) from missing

__all__ = ["function"]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name == "closed":
            return former_closed(__name__, named_function)
        made = globals()[name] = named_function(name)
        return made
