"""Forward and inverse dynamics, reactions and derivatives of any mechanism: the functions of ``trees.py`` for
constraints, force elements and states by joint.

Arguments are those of the public functions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..compiler.store import WRENCHES, float64_function, kernel_function, match_precision
from ..constraints import accelerations as constrained_dynamics
from ..constraints import derivatives as constrained_derivatives
from ..constraints import inverse as constrained_inverse
from ..constraints import reactions
from ..constraints.variations import state_of
from ..mechanism import Mechanism, MechanismError
from .force_elements import NONE, Applied, applied
from .settings import (
    ForwardDerivativesSettings,
    ForwardDynamicsSettings,
    InverseDerivativesSettings,
    InverseDynamicsSettings,
    JointWrenchesSettings,
)
from .states import Float64Array, at_rest, checked_arrays, state_arrays

Three = tuple[Float64Array, Float64Array, Float64Array]
Four = tuple[Float64Array, Float64Array, Float64Array, Float64Array]


@match_precision
def forward_dynamics(
    mech: Mechanism,
    q: Any,
    v: Any = None,
    tau: Any = None,
    wrenches: Any = None,
    method: str | None = None,
    **settings: Any,
) -> Float64Array:
    elements, solver = _acting(mech, ForwardDynamicsSettings, settings)
    if elements is not None:
        q, v, tau = _arrays(mech, q=q, v=v, tau=tau)
        tau = tau + elements.forces(q, v)
    if mech.loops or solver or method in constrained_dynamics.ALL_METHODS:
        how = method or "elimination"
        return constrained_dynamics.forward_dynamics(mech, q, v, tau, how, wrenches=wrenches, **solver)
    return _call_tree_kernel(mech, "forward_dynamics", {"q": q, "v": v, "tau": tau}, wrenches, method=method)


@match_precision
def inverse_dynamics(
    mech: Mechanism, q: Any, v: Any = None, a: Any = None, wrenches: Any = None, **settings: Any
) -> Float64Array:
    if mech.loops and not settings:
        return constrained_inverse.inverse_dynamics(mech, q, v, a, wrenches=wrenches)
    elements, sharing = _acting(mech, InverseDynamicsSettings, settings)
    besides: Float64Array | None = None
    if elements is not None:
        at_q, at_v = _arrays(mech, q=q, v=v)
        q, v, besides = at_q, at_v, elements.forces(at_q, at_v)
    if mech.loops or isinstance(a, Mapping) or sharing:
        return constrained_inverse.inverse_dynamics(mech, q, v, a, wrenches=wrenches, besides=besides, **sharing)
    needed = _call_tree_kernel(mech, "inverse_dynamics", {"q": q, "v": v, "a": a}, wrenches)
    return needed if besides is None else needed - besides


@match_precision
def static_forces(mech: Mechanism, q: Any, wrenches: Any = None, **settings: Any) -> Float64Array:
    return inverse_dynamics(mech, q, None, None, wrenches, **settings)


@match_precision
def joint_wrenches(
    mech: Mechanism, q: Any, v: Any = None, a: Any = None, wrenches: Any = None, tau: Any = None, **settings: Any
) -> Float64Array:
    if a is not None and tau is not None:
        raise MechanismError("joint wrenches follow from accelerations a or from joint forces tau: give one of them")
    elements, sharing = _acting(mech, JointWrenchesSettings, settings)
    if not mech.loops and tau is None:
        if elements is not None:
            q, v, a = _arrays(mech, q=q, v=v, a=a)
            wrenches = elements.wrenches(q, v) + (0.0 if wrenches is None else np.asarray(wrenches, dtype=float))
        return _call_tree_kernel(mech, "joint_wrenches", {"q": q, "v": v, "a": a}, wrenches)
    if tau is None:
        tau = inverse_dynamics(mech, q, v, a, wrenches, **settings)
    if elements is not None:
        q, v, tau = _arrays(mech, q=q, v=v, tau=tau)
        tree, pushes = mech.spanning_tree, elements.wrenches(q, v)
        at_joints = elements.forces(q, v) - float64_function(tree, "static_forces")(q)
        tau = tau + at_joints + float64_function(tree, ("static_forces", WRENCHES))(q, pushes)
        wrenches = pushes + (0.0 if wrenches is None else np.asarray(wrenches, dtype=float))
    return reactions.joint_wrenches(mech, q, v, tau, wrenches, sharing.get("active"))


@match_precision
def forward_dynamics_derivatives(
    mech: Mechanism, q: Any, v: Any = None, tau: Any = None, wrenches: Any = None, **settings: Any
) -> Three:
    if mech.loops and not settings:
        return constrained_derivatives.forward_dynamics_derivatives(mech, q, v, tau, wrenches)
    elements, others = _acting(mech, ForwardDerivativesSettings, settings)
    active = others.get("active")
    if mech.loops or active is not None:
        at = state_of(mech, q, v, tau, wrenches, elements, active)
        return constrained_derivatives.derivatives_at(at)
    if elements is None:
        return _three(_call_tree_kernel(mech, "forward_dynamics_derivatives", {"q": q, "v": v, "tau": tau}, wrenches))
    q, v, tau = _arrays(mech, q=q, v=v, tau=tau)
    state = {"q": q, "v": v, "tau": tau + elements.forces(q, v)}
    by_q, by_v, by_tau = _three(_call_tree_kernel(mech, "forward_dynamics_derivatives", state, wrenches))
    of_forces = elements.derivatives(q, v)
    return by_q + by_tau @ of_forces[0], by_v + by_tau @ of_forces[1], by_tau


@match_precision
def inverse_dynamics_derivatives(
    mech: Mechanism, q: Any, v: Any = None, a: Any = None, wrenches: Any = None, **settings: Any
) -> Three:
    elements, sharing = _acting(mech, InverseDerivativesSettings, settings)
    if mech.loops or sharing:
        at = state_of(mech, q, v, a, wrenches, elements, sharing.get("active"))
        return constrained_inverse.derivatives_of_inverse_dynamics(at, sharing.get("actuated"))
    if elements is None:
        return _three(_call_tree_kernel(mech, "inverse_dynamics_derivatives", {"q": q, "v": v, "a": a}, wrenches))
    q, v, a = _arrays(mech, q=q, v=v, a=a)
    by_q, by_v, by_a = _three(
        _call_tree_kernel(mech, "inverse_dynamics_derivatives", {"q": q, "v": v, "a": a}, wrenches)
    )
    of_forces = elements.derivatives(q, v)
    return by_q - of_forces[0], by_v - of_forces[1], by_a


def subtract_force_second_derivatives(
    mech: Mechanism, q: Any, v: Any, second: Four, forces: Any, ctrl: Any, activation: Any
) -> Four:
    """The second derivatives of inverse dynamics minus those of the active force elements."""
    elements = applied(mech, forces, ctrl, activation)
    if elements is None:
        return second
    q, v = _arrays(mech, q=q, v=v)
    bends, n = elements.second_derivatives(q, v), mech.nv
    d_qq, d_vv, d_qv, d_aq = second
    return d_qq - bends[..., :n, :n], d_vv - bends[..., n:, n:], d_qv - bends[..., :n, n:], d_aq


def _acting(mech: Mechanism, known: Any, settings: Mapping[str, Any]) -> tuple[Applied | None, dict[str, Any]]:
    """The active force elements, and the other given settings of those in the ``TypedDict`` ``known``."""
    if not settings:
        return None, {}
    for name in settings:
        if name not in known.__annotations__:
            raise TypeError(f"unexpected keyword argument {name!r}: there are {', '.join(known.__annotations__)}")
    chosen = (settings.get("forces", NONE), settings.get("ctrl"), settings.get("activation"))
    others = {name: x for name, x in settings.items() if x is not None and name not in ("forces", "ctrl", "activation")}
    return applied(mech, *chosen), others


def _arrays(mech: Mechanism, **arrays: Any) -> list[Float64Array]:
    return list(state_arrays(mech, at_rest(mech, arrays), finite=False).values())


def _call_tree_kernel(
    mech: Mechanism, name: str, state: Mapping[str, Any], wrenches: Any = None, **options: Any
) -> Float64Array:
    """The result of the tree's kernel; states may be given by joint."""
    arrays: Any = state.values()
    if any(x is None or isinstance(x, Mapping) for x in arrays):
        arrays = checked_arrays(mech, wrenches, **state)
    ports = [] if wrenches is None else [wrenches]
    settings = ((WRENCHES,) if ports else ()) + tuple((key, x) for key, x in options.items() if x is not None)
    first, *_ = arrays
    function: Callable[..., Float64Array] = kernel_function(mech, (name, *settings) if settings else name)
    return function(*arrays, *ports)


def _three(partials: Float64Array) -> Three:
    return partials[..., 0, :, :], partials[..., 1, :, :], partials[..., 2, :, :]
