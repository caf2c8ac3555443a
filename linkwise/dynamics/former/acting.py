"""``linkwise.acting`` of version 0.1: names for what ``lw.forces.joint_forces`` and its like do, and for
``lw.forward_dynamics`` and ``lw.inverse_dynamics`` with ``forces="all"``; they go with version 0.3."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import ArrayLike

from ...former import moved
from ...mechanism import Mechanism
from .. import force_elements, trees
from ..passive import Passive
from ..resolved import ForceDerivatives
from ..states import ByJoint, Float64Array


def _forces(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    ctrl: ArrayLike | None = None,
    activation: ArrayLike | None = None,
    passive: Passive | None = None,
) -> Float64Array:
    """``lw.forces.joint_forces``."""
    return force_elements.joint_forces(mech, q, v, forces=_chosen(mech, passive), ctrl=ctrl, activation=activation)


def _activation_rates(
    mech: Mechanism, q: ArrayLike, v: ArrayLike, ctrl: ArrayLike | None = None, activation: ArrayLike | None = None
) -> Float64Array:
    """``lw.forces.activation_rates``."""
    return force_elements.activation_rates(mech, q, v, ctrl=ctrl, activation=activation)


def _actuator_forces(
    mech: Mechanism, q: ArrayLike, v: ArrayLike, ctrl: ArrayLike | None = None, activation: ArrayLike | None = None
) -> Float64Array:
    """``lw.forces.actuator_forces``."""
    return force_elements.actuator_forces(mech, q, v, ctrl=ctrl, activation=activation)


def _derivatives(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    ctrl: ArrayLike | None = None,
    activation: ArrayLike | None = None,
    passive: Passive | None = None,
) -> ForceDerivatives:
    """``lw.derivatives.joint_force_derivatives``."""
    acts = {"forces": _chosen(mech, passive), "ctrl": ctrl, "activation": activation}
    return force_elements.joint_force_derivatives(mech, q, v, **acts)


def _forward_dynamics(
    mech: Mechanism,
    q: ByJoint,
    v: ByJoint | None = None,
    tau: ByJoint | None = None,
    ctrl: ArrayLike | None = None,
    activation: ArrayLike | None = None,
    wrenches: ArrayLike | None = None,
    passive: Passive | None = None,
) -> Float64Array:
    """``lw.forward_dynamics(..., forces="all")``."""
    acts: Any = {"forces": _chosen(mech, passive), "ctrl": ctrl, "activation": activation}
    return trees.forward_dynamics(mech, q, v, tau, wrenches, **acts)


def _inverse_dynamics(
    mech: Mechanism,
    q: ByJoint,
    v: ByJoint | None = None,
    a: ByJoint | None = None,
    ctrl: ArrayLike | None = None,
    activation: ArrayLike | None = None,
    wrenches: ArrayLike | None = None,
    passive: Passive | None = None,
    actuated: Sequence[str] | None = None,
    independent: Any = None,
) -> Float64Array:
    """``lw.inverse_dynamics(..., forces="all")``."""
    acts: Any = {"forces": _chosen(mech, passive), "ctrl": ctrl, "activation": activation}
    return trees.inverse_dynamics(mech, q, v, a, wrenches, actuated=actuated, independent=independent, **acts)


def _chosen(mech: Mechanism, passive: Passive | None) -> Any:
    return "all" if passive is None else (*force_elements.OF_RECORDS, passive)


_BY_OTHER_ARGUMENTS = {
    "forces": _forces,
    "activation_rates": _activation_rates,
    "actuator_forces": _actuator_forces,
    "derivatives": _derivatives,
    "forward_dynamics": _forward_dynamics,
    "inverse_dynamics": _inverse_dynamics,
}


def __getattr__(name: str) -> Any:
    if name not in _BY_OTHER_ARGUMENTS:
        raise AttributeError(f"module 'linkwise.acting' has no attribute {name!r}")
    moved(f"acting.{name}")
    return _BY_OTHER_ARGUMENTS[name]


def __dir__() -> list[str]:
    return []
