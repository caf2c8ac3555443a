"""Functions of JAX's arrays, with all transformations: ``import linkwise.jax``.

Every kernel becomes a function that ``jax.jit`` compiles to a call of its machine code, without Python in between;
``jax.vmap`` becomes the kernel's batch, and derivatives, forwards and backwards, are kernels derived from it
(``linkwise.jvp_of``, ``linkwise.vjp_of``): no number of a gradient is a difference.  Arrays stay where they are: on the
CPU, or on a GPU (with CuPy), where the same functions launch CUDA kernels.

    import linkwise.jax as lwj

    a = lwj.forward_dynamics(arm, q, v, tau)             # any array function that is an algorithm, by its name
    f = lwj.differentiable(lw.compile("mass_matrix", arm))
    path, speeds = lwj.rollout(arm, q0, v0, tau, 1e-3, 200)
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
    if missing.name not in ("jax", "jaxlib"):
        raise
    raise ModuleNotFoundError("linkwise.jax needs JAX: pip install 'linkwise[jax]'", name="jax") from missing

__all__ = ["Inertias", "acting", "closed", "differentiable", "rollout"]

closed = Namespace(named_function)
acting = ActingFunctions(evaluated, named_function)

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        made = globals()[name] = named_function(name)
        return made
