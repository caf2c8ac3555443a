"""What acts on a mechanism by itself, as functions of arrays: joint forces of its springs, actuators and the like,
their derivatives, and dynamics under them.

q is (..., nq), v, tau and forces (..., nv), ``ctrl`` (..., n_ctrl) the control inputs of ``mech.actuator_names``, or
{actuator: input},
``activation`` (..., n_activation) the states of actuators with dynamics; both are zero where they are None.
``mech.with_acting`` says what acts, and ``passive`` (``linkwise.Passive``) takes the place of the springs, damping,
friction and limits of the joints.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..compiler.pipeline import compile
from ..compiler.store import stored
from ..mechanics.algorithms.algorithm import Algorithm
from ..mechanics.elements.actuators import Actuation
from ..mechanics.elements.law import Acting, Situation
from ..mechanics.recursions.tree import Tree
from ..mechanics.scalar import Scalar
from ..mechanism import Mechanism, MechanismError
from . import closed, trees
from .by_actuator import inputs_by_actuator, unless_empty
from .passive import Passive
from .resolved import INPUTS, LAW, ForceDerivatives, Resolved, no_controls, resolved
from .states import ByJoint, Float64Array, at_rest, real_numbers, state_arrays

__all__ = [
    "activation_rates",
    "actuator_forces",
    "derivatives",
    "forces",
    "forward_dynamics",
    "inverse_dynamics",
]


def forces(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    ctrl: ArrayLike | None = None,
    activation: ArrayLike | None = None,
    passive: Passive | None = None,
) -> Float64Array:
    """(nv,): the joint forces of all that acts, as tau."""
    elements, given = _asked(mech, q, v, ctrl, activation, passive)
    return elements.forces(*given)


def activation_rates(
    mech: Mechanism, q: ArrayLike, v: ArrayLike, ctrl: ArrayLike | None = None, activation: ArrayLike | None = None
) -> Float64Array:
    """(n_activation,): the rates of the activations."""
    elements, given = _asked(mech, q, v, ctrl, activation, None)
    return elements.forces_and_rates(*given)[1]


def actuator_forces(
    mech: Mechanism, q: ArrayLike, v: ArrayLike, ctrl: ArrayLike | None = None, activation: ArrayLike | None = None
) -> Float64Array:
    """(n_ctrl,): the force of each actuator that acts, in the order of ``mech.actuator_names``: what its gain, bias and
    ranges lead to, before the gear, and before joints bound what all actuators give them together."""
    elements, given = _asked(mech, q, v, ctrl, activation, None)
    if not elements.n_ctrl:
        return np.zeros((*np.broadcast_shapes(given[0].shape[:-1], given[1].shape[:-1]), 0))
    algorithm = algorithm_of("actuator_forces", mech, elements.acting)
    function = stored(mech, ("actuator_forces", elements.acting), lambda: compile(algorithm, mech).function)
    named = dict(zip(INPUTS, given, strict=True))
    return np.asarray(function(*(named[name] for name in algorithm.inputs)))


def algorithm_of(what: str, mech: Mechanism, acting: Acting) -> Algorithm:
    """Of q, v and, where there are any, ctrl and activation: the "forces" (nv + n_activation,) of all that acts, behind
    them the rates of activations, or the "actuator_forces" (n_ctrl,)."""
    sizes = {"ctrl": (acting.n_ctrl,), "activation": (acting.n_activation,)}
    inputs = tuple(name for name in INPUTS if name not in sizes or sizes[name][0])

    def run(tree: Tree, *arrays: Any) -> list[Scalar]:
        named = dict(zip(inputs, arrays, strict=True))
        driving = named.get("ctrl", ()), named.get("activation", ())
        if what == "forces":
            return list(acting.joint_forces(tree, named["q"], named["v"], *driving))
        (law,) = (one for one in acting.laws if isinstance(one, Actuation))
        return [one.force for one in law.driven(Situation(tree, named["q"], named["v"]), *driving)]

    size = acting.n_ctrl if what == "actuator_forces" else mech.nv + acting.n_activation
    return Algorithm(f"acting_{what}", inputs, "forces", run, reason=LAW, sizes={**sizes, "forces": (size,)})


def derivatives(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    ctrl: ArrayLike | None = None,
    activation: ArrayLike | None = None,
    passive: Passive | None = None,
) -> ForceDerivatives:
    """(by_q, by_v, by_ctrl, by_activation) of joint forces (nv rows) and, below, of the rates of activations; q moves
    along tangent directions.  At kinks (a stop just touched, a control input at its bound) they are those of the side
    on which nothing changes: a stop that does not push, an input beyond its bound."""
    elements, given = _asked(mech, q, v, ctrl, activation, passive)
    return elements.all_derivatives(*given)


def forward_dynamics(
    mech: Mechanism,
    q: ByJoint,
    v: ByJoint | None = None,
    tau: ByJoint | None = None,
    ctrl: ArrayLike | None = None,
    activation: ArrayLike | None = None,
    wrenches: ArrayLike | None = None,
    passive: Passive | None = None,
) -> Float64Array:
    """(nv,): accelerations under joint forces ``tau`` and all that acts; loops are kept closed."""
    q, v, given = state_arrays(mech, at_rest(mech, {"q": q, "v": v, "tau": tau}), finite=False).values()
    total = given + forces(mech, q, v, ctrl, activation, passive)
    find = closed.forward_dynamics if mech.loops else trees.forward_dynamics
    return find(mech, q, v, total, wrenches=wrenches)


def inverse_dynamics(
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
    """(nv,): the joint forces that are missing, besides all that acts, for the accelerations ``a``.  Of mechanisms with
    loops those of ``closed.inverse_dynamics``, less what acts.

    actuated      joints that can exert them (default: all); of all forces that do, the least
    independent   ``a`` is that of these joints, rows or coordinates only, the rest follows; see
                  ``closed.forward_dynamics``
    """
    if actuated is not None or independent is not None or isinstance(a, Mapping):
        state = state_arrays(mech, at_rest(mech, {"q": q, "v": v}), finite=False)
        acting = forces(mech, state["q"], state["v"], ctrl, activation, passive)
        return closed.forces_besides(mech, state["q"], state["v"], a, acting, actuated, independent, wrenches)
    q, v, a = state_arrays(mech, at_rest(mech, {"q": q, "v": v, "a": a}), finite=False).values()
    find = closed.inverse_dynamics if mech.loops else trees.inverse_dynamics
    needed = find(mech, q, v, a, wrenches=wrenches)
    return needed - forces(mech, q, v, ctrl, activation, passive)


def _asked(
    mech: Mechanism, q: ArrayLike, v: ArrayLike, ctrl: Any, activation: Any, passive: Passive | None
) -> tuple[Resolved, tuple[Any, ...]]:
    """The elements, and the state with what drives them, checked."""
    elements = resolved(mech, passive, implicit_step=0.0) or Resolved.nothing(mech)
    state = state_arrays(mech, at_rest(mech, {"q": q, "v": v}), finite=False)
    more = []
    ctrl = inputs_by_actuator(mech, unless_empty(mech, ctrl))
    for name, given, size in (("ctrl", ctrl, elements.n_ctrl), ("activation", activation, elements.n_activation)):
        values = np.zeros(size) if given is None else real_numbers(name, given)
        if given is not None and not size:
            raise MechanismError(no_controls(mech, name))
        if values.shape[-1:] != (size,):
            raise MechanismError(f"{name} has shape {values.shape}, expected (..., {size}): {_order(mech, name)}")
        more.append(values)
    return elements, (state["q"], state["v"], *more)


def _order(mech: Mechanism, name: str) -> str:
    names = [one.name for one in mech.actuators if name == "ctrl" or one.has_activation]
    return "one number for each of the actuators " + ", ".join(names)
