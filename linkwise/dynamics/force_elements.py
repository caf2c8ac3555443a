"""Force elements of a mechanism (springs, damping, friction, limits, actuators, tendons, fluid, contact): selection by
``forces=``, joint forces, and derivatives.

q is (..., nq), v and forces (..., nv), ``ctrl`` (..., n_ctrl) the control inputs of ``mech.forces.actuator_names``, or
{actuator: input}, ``activation`` (..., n_activation) the states of actuators with dynamics; both are zero where they
are None.

``forces`` is "none", "all" (what ``mech.with_acting`` leaves switched on), a kind of these by name ("springs",
"damping", "friction", "limits", "actuators", "tendons", "gravity_compensation", "fluid", "contact"), a
``lw.forces.Passive`` of other springs, dampers, friction and stops, or a sequence of such names and at most one
``lw.forces.Passive``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..compiler.pipeline import compile
from ..compiler.registry import compile_instead
from ..compiler.store import stored
from ..mechanics.algorithms.algorithm import Algorithm
from ..mechanics.elements.actuators import Actuation
from ..mechanics.elements.law import Acting, Situation
from ..mechanics.recursions.tree import Tree
from ..mechanics.scalar import Scalar
from ..mechanism import Mechanism, MechanismError, one_of, require_mechanism
from ..mechanism.elements import KINDS, OF_JOINTS
from .by_actuator import inputs_by_actuator, unless_empty
from .passive import Passive
from .resolved import INPUTS, LAW, ForceDerivatives, Resolved, no_controls, resolved
from .states import Argument, ByJoint, Float64Array, at_rest, state_arrays

NONE, ALL = "none", "all"
OF_RECORDS = tuple(kind for kind in KINDS if kind not in OF_JOINTS)  # not replaced by a ``lw.forces.Passive``


def with_forces(mech: Mechanism, forces: Any) -> tuple[Mechanism, Passive | None]:
    """The mechanism with only the force elements that ``forces`` names switched on, and the ``Passive`` elements that
    replace those of its joints, if given.
    """
    require_mechanism(mech)
    if isinstance(forces, str):
        if forces == ALL:
            return mech, None
        choices: tuple[Any, ...] = () if forces == NONE else (forces,)
    elif isinstance(forces, Passive):
        choices = (forces,)
    else:
        try:
            choices = tuple(forces)
        except TypeError:
            raise TypeError(
                f'forces is "none", "all", a kind of force elements, a linkwise.forces.Passive or several of '
                f"these, not {forces!r}"
            ) from None
    passives = [choice for choice in choices if isinstance(choice, Passive)]
    kinds = frozenset(
        one_of("kind of force elements", choice, KINDS, f'forces is "none", "all" or some of {", ".join(KINDS)}')
        for choice in choices
        if not isinstance(choice, Passive)
    )
    if len(passives) > 1:
        raise MechanismError("forces has more than one linkwise.forces.Passive: add them, first + second")
    if passives and kinds & {*OF_JOINTS}:
        raise MechanismError(
            "forces has a linkwise.forces.Passive, which is in place of the springs, damping, friction and limits of "
            f"the joints, and {', '.join(sorted(kinds & {*OF_JOINTS}))} too: linkwise.forces.Passive.of(mech) + yours "
            "has both"
        )
    idle = tuple(kind for kind in KINDS if kind not in kinds and mech.forces.active.get(kind))
    if idle:
        mech = stored(mech, (with_forces, idle), lambda: mech.with_acting(**dict.fromkeys(idle, False)))
    return mech, passives[0] if passives else None


def chosen_forces(mech: Mechanism, forces: Any, passive: Passive | None) -> tuple[Mechanism, Passive | None]:
    """``with_forces`` that also accepts replacement elements as ``passive``."""
    mech, passive_forces = with_forces(mech, forces)
    if passive_forces is not None and passive is not None:
        raise MechanismError("forces and passive both have elements in place of those of the joints: give one of them")
    if passive is not None and isinstance(forces, str) and forces == NONE:
        raise MechanismError('forces="none" lets no force elements act, and passive has some: forces=passive alone')
    return mech, passive if passive_forces is None else passive_forces


@dataclass(frozen=True)
class Applied:
    """Force elements with constant control inputs and activations, as functions of q and v."""

    elements: Resolved
    ctrl: np.ndarray
    activation: np.ndarray

    def forces(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """(..., nv): joint forces of the elements."""
        return self.elements.forces(q, v, self.ctrl, self.activation)

    def forces_and_rates(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(..., nv) and (..., n_activation): joint forces, and rates of the activations."""
        return self.elements.forces_and_rates(q, v, self.ctrl, self.activation)

    def wrenches(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """(..., n_links, 6): wrenches of elements that act on links; ``forces`` includes them."""
        return self.elements.wrenches(q, v, self.ctrl, self.activation)

    def derivatives(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(nv, nv) each: derivatives of the forces along tangent directions of q, and by v."""
        return self.elements.derivatives(q, v, self.ctrl, self.activation)

    def wrench_derivatives(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """(..., n_links, 6, 2 nv): derivatives of the wrenches along tangent directions of q, and by v."""
        return self.elements.wrench_derivatives(q, v, self.ctrl, self.activation)

    def second_derivatives(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """(..., nv, 2 nv, 2 nv): second derivatives of the forces along tangent directions of q, and by v."""
        return self.elements.second_derivatives(q, v, self.ctrl, self.activation)

    def energy(self, q: np.ndarray) -> np.ndarray:
        """(...): potential energy of elements that have one."""
        return self.elements.energy(q)

    @property
    def has_potential(self) -> bool:
        """Whether all forces at rest derive from an energy; actuators do not."""
        return not self.elements.n_ctrl

    @property
    def batch(self) -> tuple[int, ...]:
        """Batch shape of the control inputs and activations."""
        return np.broadcast_shapes(self.ctrl.shape[:-1], self.activation.shape[:-1])

    def driven_by(self, ctrl: np.ndarray, activation: np.ndarray) -> Applied:
        """The elements under other control inputs and activations."""
        return replace(self, ctrl=ctrl, activation=activation)

    def all_derivatives(self, q: np.ndarray, v: np.ndarray) -> ForceDerivatives:
        """Derivatives of forces and activation rates by all their arguments."""
        return self.elements.all_derivatives(q, v, self.ctrl, self.activation)


def applied(mech: Mechanism, forces: Any, ctrl: Any = None, activation: Any = None) -> Applied | None:
    """The force elements that ``forces`` selects; None if there are none."""
    if isinstance(forces, str) and forces == NONE and ctrl is activation is None:
        return None
    require_mechanism(mech)
    has_actuators = bool(mech.forces.active.get("actuators"))
    mech, passive = with_forces(mech, forces)
    elements = resolved(mech, passive, implicit_step=0.0)
    ctrl = inputs_by_actuator(mech, unless_empty(mech, ctrl))
    if elements is None and ctrl is activation is None:
        return None
    elements = elements or Resolved.nothing(mech)
    values = []
    for name, value, size in (("ctrl", ctrl, elements.n_ctrl), ("activation", activation, elements.n_activation)):
        if value is not None and not size:
            if has_actuators and not elements.n_ctrl:
                raise MechanismError(
                    f"{name} is given, but no actuator of mechanism {mech.name!r} acts under forces={forces!r}: "
                    'forces="all" has all that acts on it, forces="actuators" these alone'
                )
            raise MechanismError(no_controls(mech, name))
        names = [actuator.name for actuator in mech.forces.actuators if name == "ctrl" or actuator.has_activation]
        meant = ": one number for each of the actuators " + ", ".join(names)
        values.append(np.zeros(size) if value is None else Argument(name, (size,), meant=meant).array(mech, value))
    return Applied(elements, *values)


# -- public functions -----------------------------------------------------------------------------------------------


@compile_instead("steps that have force elements in them, lw.motion.step_kernel(mech, dt)")
def joint_forces(
    mech: Mechanism,
    q: ByJoint,
    v: ByJoint | None = None,
    *,
    forces: Any = ALL,
    ctrl: ArrayLike | Mapping[str, Any] | None = None,
    activation: ArrayLike | None = None,
) -> Float64Array:
    """(nv,): joint forces of springs, damping, friction, actuators and all other force elements (``forces="all"``), or
    of those in ``forces``; forces on links count by virtual work.

    forces       "all", "none", kinds by name ("springs", "damping", "friction", "limits", "actuators", "tendons",
                 "gravity_compensation", "fluid", "contact") or a ``lw.forces.Passive``; see ``lw.forward_dynamics``
    ctrl         (..., n_ctrl): control inputs of ``mech.forces.actuator_names``, or {actuator: input}; zero if left out
    activation   (..., n_activation): states of actuators with dynamics, zero if left out
    """
    q, v = _state(mech, q, v)
    elements = applied(mech, forces, ctrl, activation) or _nothing(mech)
    return elements.forces(q, v)


@compile_instead("steps that have force elements in them, lw.motion.step_kernel(mech, dt)")
def joint_force_derivatives(
    mech: Mechanism,
    q: ByJoint,
    v: ByJoint | None = None,
    *,
    forces: Any = ALL,
    ctrl: ArrayLike | Mapping[str, Any] | None = None,
    activation: ArrayLike | None = None,
) -> ForceDerivatives:
    """(by_q, by_v, by_ctrl, by_activation) of ``lw.forces.joint_forces`` (nv rows) and, below, of
    ``lw.forces.activation_rates``, for all force elements (``forces="all"``) or those in ``forces``; by_q is along
    tangent directions.

    Where a force has a kink (a stop just touched, a control input at its bound) the side with zero slope is taken.
    """
    q, v = _state(mech, q, v)
    elements = applied(mech, forces, ctrl, activation) or _nothing(mech)
    return elements.all_derivatives(q, v)


@compile_instead("steps that have force elements in them, lw.motion.step_kernel(mech, dt)")
def activation_rates(
    mech: Mechanism,
    q: ByJoint,
    v: ByJoint | None = None,
    *,
    ctrl: ArrayLike | Mapping[str, Any] | None = None,
    activation: ArrayLike | None = None,
) -> Float64Array:
    """(n_activation,): rates of the activations of actuators with dynamics."""
    q, v = _state(mech, q, v)
    elements = applied(mech, ALL, ctrl, activation) or _nothing(mech)
    return elements.forces_and_rates(q, v)[1]


@compile_instead("steps that have force elements in them, lw.motion.step_kernel(mech, dt)")
def actuator_forces(
    mech: Mechanism,
    q: ByJoint,
    v: ByJoint | None = None,
    *,
    ctrl: ArrayLike | Mapping[str, Any] | None = None,
    activation: ArrayLike | None = None,
) -> Float64Array:
    """(n_ctrl,): the force of each actuator, in the order of ``mech.forces.actuator_names``: after gain, bias and
    ranges, before the gear and the joints' effort bounds.
    """
    q, v = _state(mech, q, v)
    selection = applied(mech, ALL, ctrl, activation)
    if selection is None or not selection.elements.n_ctrl:
        return np.zeros((*np.broadcast_shapes(q.shape[:-1], v.shape[:-1]), 0))
    acting = selection.elements.acting
    algorithm = find_algorithm("actuator_forces", mech, acting)
    function = stored(mech, ("actuator_forces", acting), lambda: compile(algorithm, mech).function)
    named = dict(zip(INPUTS, (q, v, selection.ctrl, selection.activation), strict=True))
    return np.asarray(function(*(named[name] for name in algorithm.inputs)))


def find_algorithm(label: str, mech: Mechanism, acting: Acting) -> Algorithm:
    """The algorithm of q, v and optionally ctrl and activation for "forces" (nv + n_activation,), joint forces and
    activation rates, or "actuator_forces" (n_ctrl,).
    """
    sizes = {"ctrl": (acting.n_ctrl,), "activation": (acting.n_activation,)}
    inputs = tuple(name for name in INPUTS if name not in sizes or sizes[name][0])

    def run(tree: Tree, *arrays: Any) -> list[Scalar]:
        named = dict(zip(inputs, arrays, strict=True))
        driving = named.get("ctrl", ()), named.get("activation", ())
        if label == "forces":
            return list(acting.joint_forces(tree, named["q"], named["v"], *driving))
        (law,) = (law for law in acting.laws if isinstance(law, Actuation))
        return [drive.force for drive in law.driven(Situation(tree, named["q"], named["v"]), *driving)]

    size = acting.n_ctrl if label == "actuator_forces" else mech.nv + acting.n_activation
    return Algorithm(f"acting_{label}", inputs, "forces", run, reason=LAW, sizes={**sizes, "forces": (size,)})


def _nothing(mech: Mechanism) -> Applied:
    return Applied(Resolved.nothing(mech), np.zeros(0), np.zeros(0))


def _state(mech: Mechanism, q: ByJoint, v: ByJoint | None) -> tuple[Float64Array, Float64Array]:
    arrays = state_arrays(mech, at_rest(mech, {"q": q, "v": v}), finite=False)
    return arrays["q"], arrays["v"]
