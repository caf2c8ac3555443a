"""Functions of torch tensors, with gradients: ``import linkwise.torch``.

Every kernel with one result becomes a function that torch differentiates, by kernels derived from it
(``linkwise.vjp_of``): no number of a gradient is a difference.  Tensors are those of the CPU; nothing is copied.

    from linkwise.torch import differentiable, forward_dynamics, rollout

    a = forward_dynamics(arm, q, v, tau)             # any array function that is an algorithm, by its name
    f = differentiable(lw.compile("mass_matrix", arm))
    path, speeds = rollout(arm, q0, v0, tau, 1e-3, 200)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .inertias import Inertias
from .kernels import differentiable, named_function
from .rollouts import rollout

__all__ = ["Inertias", "differentiable", "rollout"]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return named_function(name)
