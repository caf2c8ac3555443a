"""``linkwise.closed`` of version 0.1: its functions are in ``linkwise.constraints``, ``linkwise.linkages`` and
``linkwise`` itself; the old names go with version 0.3."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any

from numpy.typing import ArrayLike

import linkwise

from ...compiler.registry import ArrayFunction, compile_instead, register
from ...constraints import accelerations, derivatives, reactions
from ...former import MOVED, moved
from ...mechanism import Mechanism, MechanismError, warn_caller
from .. import trees
from ..passive import Passive
from ..states import ByJoint, Float64Array


def _inverse_dynamics(
    mech: Mechanism,
    q: ByJoint,
    v: ByJoint | None = None,
    a: ArrayLike | Mapping[str, Any] | None = None,
    actuated: Sequence[str] | None = None,
    weights: ArrayLike | None = None,
    wrenches: ArrayLike | None = None,
    independent: Any = None,
    distribution: ArrayLike | None = None,
    active: ArrayLike | None = None,
    passive: Passive | None = None,
    unactuated: Sequence[str] | None = None,
) -> Float64Array:
    """``lw.inverse_dynamics``, where ``passive`` is ``forces``."""
    passive, unactuated = _springs_or_names(passive, unactuated)
    how: dict[str, Any] = {"actuated": actuated, "unactuated": unactuated, "weights": weights, "active": active}
    how |= {"distribution": distribution, "independent": independent, "forces": "none" if passive is None else passive}
    return trees.inverse_dynamics(mech, q, v, a, wrenches, **how)


register(_inverse_dynamics, ArrayFunction("closed_inverse_dynamics"))


@compile_instead("'static_forces'")
def _static_forces(
    mech: Mechanism,
    q: ByJoint,
    actuated: Sequence[str] | None = None,
    wrenches: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    passive: Passive | None = None,
    unactuated: Sequence[str] | None = None,
) -> Float64Array:
    """``lw.static_forces``, where ``passive`` is ``forces``."""
    return _inverse_dynamics(mech, q, None, None, actuated, weights, wrenches, passive=passive, unactuated=unactuated)


def _springs_or_names(passive: Any, unactuated: Sequence[str] | None) -> tuple[Passive | None, Sequence[str] | None]:
    """Springs and dampers, and joints without motors, which ``passive`` once named."""
    if passive is None or isinstance(passive, Passive):
        return passive, unactuated
    if unactuated is not None:
        raise MechanismError(f"passive is a linkwise.forces.Passive (springs, dampers), not {passive!r}")
    warn_caller(
        f"passive={passive!r}: joints without motors are named by unactuated=; passive takes springs and dampers "
        "(linkwise.forces.Passive), as everywhere, and names no longer from version 0.3 on",
        DeprecationWarning,
    )
    return None, passive


_BY_OTHER_ARGUMENTS: dict[str, Callable[..., Any]] = {
    "forward_dynamics": accelerations.forward_dynamics,
    "forward_dynamics_derivatives": derivatives.forward_dynamics_derivatives,
    "inverse_dynamics": _inverse_dynamics,
    "joint_wrenches": reactions.joint_wrenches,
    "static_forces": _static_forces,
}


def function_named(name: str) -> Any:
    """The value of ``linkwise.closed.NAME``, without a warning; None of other names."""
    address = MOVED.get(f"closed.{name}")
    return _BY_OTHER_ARGUMENTS.get(name) or (attrgetter(address)(linkwise) if address else None)


def __getattr__(name: str) -> Any:
    if f"closed.{name}" not in MOVED:
        raise AttributeError(f"module 'linkwise.closed' has no attribute {name!r}")
    moved(f"closed.{name}")
    return function_named(name)


def __dir__() -> list[str]:
    return []
