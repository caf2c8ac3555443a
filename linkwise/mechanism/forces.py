"""The view ``mech.forces``: force elements, which of them are switched on, and edits."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.mechanism import elements as records
from linkwise.mechanism import family
from linkwise.mechanism.checks import MechanismError, did_you_mean
from linkwise.mechanism.elements import (
    KINDS,
    OF_JOINTS,
    RECORDS,
    Actuator,
    EffortRange,
    FluidForce,
    GravityCompensation,
    Tendon,
)
from linkwise.mechanism.parts import Body
from linkwise.mechanism.view import View, kept, read_only

if TYPE_CHECKING:
    from linkwise.mechanism.model import Mechanism

#: Kind -> whether a joint has such.
_AT_JOINTS: dict[str, Callable[[Body], bool]] = {
    "springs": lambda body: any(body.stiffness),
    "damping": lambda body: any(body.damping),
    "friction": lambda body: any(body.friction),
    "limits": lambda body: bool(
        body.kind.rates_are_velocities and np.isfinite([*body.limits.lower, *body.limits.upper]).any()
    ),
}
assert tuple(_AT_JOINTS) == OF_JOINTS


class ForcesView(View):
    """Force elements: springs, damping, friction and limits of joints, actuators, tendons, fluid, contact.

    They act in ``lw.simulate``, ``lw.rollout`` and ``lw.linearize``; in functions of dynamics, such as
    ``lw.forward_dynamics``, those act that ``forces=`` names.  ``mech.with_acting`` switches them,
    ``mech.with_elements`` adds some.
    """

    __slots__ = ()

    @kept
    def active(self) -> dict[str, tuple[str, ...]]:
        """Force elements that are switched on: kind -> names of joints, actuators, tendons or links."""
        return self._switched_names(True)

    @kept
    def idle(self) -> dict[str, tuple[str, ...]]:
        """Force elements that are switched off: kind -> names."""
        return self._switched_names(False)

    def _switched_names(self, wanted: bool) -> dict[str, tuple[str, ...]]:
        chosen = (
            (kind, tuple(x for x in names if self.acts(kind, x) is wanted)) for kind, names in self._known.items()
        )
        return {kind: names for kind, names in chosen if names}

    def acts(self, kind: str, name: str) -> bool:
        """Whether the element of a ``kind`` at ``name`` is switched on."""
        return records.acts(self._mech.switched_off, kind, name)

    @kept
    def actuators(self) -> tuple[Actuator, ...]:
        """Active actuators, in the order of the control inputs."""
        return tuple(x for x in self._mech.elements if isinstance(x, Actuator) and self.acts("actuators", x.name))

    @property
    def actuator_names(self) -> tuple[str, ...]:
        """Names of active actuators, in the order of ``ctrl``."""
        return tuple(actuator.name for actuator in self.actuators)

    @property
    def n_activation(self) -> int:
        """Number of activations: states of actuators with dynamics, in the order of ``ctrl``."""
        return sum(actuator.has_activation for actuator in self.actuators)

    @kept
    def ctrl_range(self) -> np.ndarray:
        """(n_ctrl, 2): bounds of the control inputs, infinite if unlimited."""
        ranges = [actuator.ctrl_range or (-np.inf, np.inf) for actuator in self.actuators]
        return read_only(np.array(ranges, dtype=float).reshape(-1, 2))

    @kept
    def tendons(self) -> tuple[Tendon, ...]:
        """All tendons, with or without forces along them."""
        return tuple(element for element in self._mech.elements if isinstance(element, Tendon))

    def without(self, *names: str) -> Mechanism:
        """A copy without the named actuators, tendons and other elements. Joints that lose their last actuator leave
        ``mech.metadata.actuated_joints``.
        """
        mech = self._mech
        known = [records.name_of(element) for element in mech.elements]
        for name in names:
            if name not in known:
                raise MechanismError(f"mechanism {mech.name!r} has no element {name!r}: " + did_you_mean(name, known))
        return with_records(mech, tuple(x for x in mech.elements if records.name_of(x) not in names))

    @kept
    def _known(self) -> dict[str, tuple[str, ...]]:
        """Kind -> all names, switched on or not."""
        return known_elements(self._mech)


def known_elements(mech: Mechanism) -> dict[str, tuple[str, ...]]:
    """Kind of force element -> names of all that a mechanism has, switched on or not."""
    known = {kind: tuple(b.joint for b in mech.bodies if has(b)) for kind, has in _AT_JOINTS.items()}
    for kind in KINDS[len(known) :]:
        of_kind = (element for element in mech.elements if RECORDS[type(element)] == kind)
        known[kind] = tuple(dict.fromkeys(map(records.name_of, of_kind)))
    known["contact"] = tuple(pair.name for pair in mech.contact_pairs)
    return known


def with_switched(mech: Mechanism, only: tuple[Any, ...], kinds: dict[str, Any]) -> Mechanism:
    """The mechanism with elements switched on and off."""
    return family.variant(mech, (), switched_off=records.switched(known_elements(mech), mech.switched_off, only, kinds))


def check_elements(mech: Mechanism) -> None:
    """Every record leads somewhere."""
    tendons = mech.forces.tendons
    for element in mech.elements:
        if isinstance(element, Tendon):
            for joint, _ in element.joints:
                _require_scalar(mech, joint, f"tendon {element.name!r}")
        elif isinstance(element, EffortRange):
            _require_scalar(mech, element.joint, "an effort range")
        elif isinstance(element, (GravityCompensation, FluidForce)):
            mech.frame(element.link)
        elif isinstance(element, Actuator):
            _check_target(mech, element, [tendon.name for tendon in tendons])


def _check_target(mech: Any, actuator: Actuator, tendons: list[str]) -> None:
    if actuator.transmission == "site":
        mech.frame(actuator.target)
    elif actuator.transmission == "tendon":
        if actuator.target not in tendons:
            raise MechanismError(
                f"actuator {actuator.name!r} drives tendon {actuator.target!r}, which does not exist: "
                + did_you_mean(actuator.target, tendons)
            )
    else:
        kind = mech.bodies[mech.body_index(actuator.target)].kind
        if kind.nv != 1 and not (kind.is_ball or kind.is_free):
            raise MechanismError(
                f"actuator {actuator.name!r} drives joint {actuator.target!r}, which has {kind.nv} coordinates: it "
                "needs a joint of one, a ball or a free joint"
            )


def _require_scalar(mech: Any, joint: str, label: str) -> None:
    kind = mech.bodies[mech.body_index(joint)].kind
    if kind.nv != 1 or not kind.rates_are_velocities:
        raise MechanismError(f"{label} is at joint {joint!r}, which has not one coordinate whose rate is its velocity")


def with_records(mech: Any, elements: tuple[Any, ...]) -> Mechanism:
    """The mechanism with other elements; its actuated joints are updated."""
    changed = dataclasses.replace(mech, elements=elements)
    if mech.annotations.actuated is None:
        return changed
    before, now = (dict.fromkeys(j for a in _actuators(m) for j in driven_by(m, a)) for m in (mech, changed))
    kept = [joint for joint in mech.annotations.actuated if joint in now or joint not in before]
    actuated = tuple(dict.fromkeys([*kept, *(joint for joint in now if joint not in before)]))
    return dataclasses.replace(changed, annotations=dataclasses.replace(mech.annotations, actuated=actuated))


def driven_only_at(mech: Any, joints: Sequence[str]) -> tuple[Any, ...]:
    """The elements without actuators of other joints. Actuators at frames can move any joint and are kept."""
    lost = [element for element in _actuators(mech) if not set(driven_by(mech, element)) <= set(joints)]
    return tuple(element for element in mech.elements if element not in lost)


def driven_by(mech: Any, actuator: Actuator) -> tuple[str, ...]:
    """The joints that an actuator drives, with leaders in place of mimic joints; empty for actuators at frames."""
    joints = [actuator.target] if actuator.transmission in ("joint", "jointinparent") else []
    if actuator.transmission == "tendon":
        joints = [
            joint for tendon in mech.forces.tendons if tendon.name == actuator.target for joint, _ in tendon.joints
        ]
    bodies = (mech.bodies[mech.body_index(joint)] for joint in joints)
    return tuple(body.mimic.joint if body.mimic else body.joint for body in bodies)


def _actuators(mech: Any) -> list[Actuator]:
    """All, switched on or not."""
    return [element for element in mech.elements if isinstance(element, Actuator)]


def with_efforts(mech: Any, efforts: Mapping[str, float]) -> tuple[Any, ...]:
    """The elements with effort limits of joints applied to the actuators there; an infinite limit removes the bound."""
    driven = {element.target for element in _actuators(mech)} | {
        e.joint for e in mech.elements if isinstance(e, EffortRange)
    }
    kept = (element for element in mech.elements if not (isinstance(element, EffortRange) and element.joint in efforts))
    bounded = ((joint, most) for joint, most in efforts.items() if joint in driven and most < np.inf)
    return (*kept, *(EffortRange(joint, -most, most) for joint, most in bounded))


def locked(elements: tuple[Any, ...], values: Mapping[str, Sequence[float]]) -> tuple[Any, ...]:
    """The elements after joints are locked at these coordinates: elements at locked joints are removed, and their
    share of tendons becomes an offset.
    """
    kept: list[Any] = []
    for element in elements:
        if isinstance(element, Tendon):
            free = tuple((joint, arm) for joint, arm in element.joints if joint not in values)
            offset = element.offset + sum(arm * values[joint][0] for joint, arm in element.joints if joint in values)
            kept += [dataclasses.replace(element, joints=free, offset=offset)] if free else []
        elif not (isinstance(element, EffortRange) and element.joint in values):
            kept.append(element)
    tendons = {element.name for element in kept if isinstance(element, Tendon)}
    return tuple(
        element for element in kept if not isinstance(element, Actuator) or not _loses_target(element, values, tendons)
    )


def _loses_target(actuator: Actuator, values: Mapping[str, Any], tendons: set[str]) -> bool:
    if actuator.transmission == "tendon":
        return actuator.target not in tendons
    return actuator.transmission != "site" and actuator.target in values
