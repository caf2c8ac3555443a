"""Functions of torch tensors, with gradients: ``import linkwise.torch``.

Every kernel with one result becomes a function that torch differentiates, by kernels derived from it
(``linkwise.vjp_of``): no number of a gradient is a difference.  Nothing is copied.

    from linkwise.torch import closed, differentiable, forward_dynamics, rollout

    a = forward_dynamics(arm, q, v, tau)             # any array function that is an algorithm, by its name
    a = forward_dynamics(bars, q, v, tau)     # ... under constraints
    f = differentiable(lw.compile("mass_matrix", arm))
    path, speeds = rollout(arm, q0, v0, tau, 1e-3, 200)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..frameworks import ActingFunctions, Namespace

try:
    from .inertias import Inertias
    from .kernels import differentiable
    from .named import evaluated, named_function
    from .rollouts import rollout
except ModuleNotFoundError as missing:
    if missing.name != "torch":
        raise
    raise ModuleNotFoundError("linkwise.torch needs PyTorch: pip install 'linkwise[torch]'") from missing

__all__ = ["Inertias", "acting", "closed", "differentiable", "rollout"]

closed = Namespace(named_function)
acting = ActingFunctions(evaluated, named_function)

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        made = globals()[name] = named_function(name)
        return made
