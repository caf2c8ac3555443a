"""What of a mechanism acts by itself, and switching it: the part of ``Mechanism`` that is about its elements."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.mechanism import elements as records
from linkwise.mechanism import family
from linkwise.mechanism.annotation import Keyframe, keyframes
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
from linkwise.mechanism.shapes import ContactPair

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


class ActingElements:
    """Elements of a mechanism, which act in ``lw.simulate``, ``lw.rollout`` and ``lw.linearize``; in functions of
    dynamics, such as ``lw.forward_dynamics``, those act that ``forces=`` names."""

    elements: tuple[Any, ...]
    switched_off: records.Switches
    bodies: tuple[Body, ...]
    contact_pairs: tuple[ContactPair, ...]

    # Numbers of joints --------------------------------------------------------------------------------------------

    @cached_property
    def damping(self: Any) -> np.ndarray:
        """(nv,) viscous damping of the joints; those of joints that mimic others are not among them, here and below."""
        return self._of_joints("damping")

    @cached_property
    def friction(self: Any) -> np.ndarray:
        """(nv,) dry friction of the joints, as the file gives it (``frictionloss`` of MJCF)."""
        return self._of_joints("friction")

    @cached_property
    def stiffness(self: Any) -> np.ndarray:
        """(nv,) stiffness of springs in the joints, as the file gives it."""
        return self._of_joints("stiffness")

    @cached_property
    def spring_rest(self: Any) -> np.ndarray:
        """(nq,) where springs in the joints are at rest (``springref`` of MJCF), neutral where nothing is said."""
        return self._of_joints("rest")

    @property
    def keyframes(self: Any) -> dict[str, Keyframe]:
        """Named states: postures with velocities, control inputs and activations (keyframes of MJCF)."""
        return keyframes(self)

    @property
    def timestep(self: Any) -> float | None:
        """The time step that its file (``<option timestep>`` of MJCF, 0.002 by default) means simulations to take, s;
        None for other formats.  ``lw.rollout`` takes it where dt is None."""
        return self.annotations.timestep

    @property
    def integrator(self: Any) -> str | None:
        """The integrator that its file (``<option integrator>`` of MJCF, "Euler" by default) means simulations in
        MuJoCo to take; None for other formats.  It is written again, and chooses nothing here: ``method`` of
        ``lw.rollout`` does, "semi_implicit" for "Euler", "implicit" and "implicitfast", "rk4" for "RK4"."""
        return self.annotations.integrator

    # Records ------------------------------------------------------------------------------------------------------

    @cached_property
    def actuators(self) -> tuple[Actuator, ...]:
        """The actuators that act; control inputs are in their order."""
        return tuple(one for one in self.elements if isinstance(one, Actuator) and self.acts("actuators", one.name))

    @property
    def actuator_names(self) -> tuple[str, ...]:
        """Names of the actuators that act, in the order of ``ctrl``."""
        return tuple(one.name for one in self.actuators)

    @property
    def n_ctrl(self) -> int:
        """Number of control inputs."""
        return len(self.actuators)

    @property
    def n_activation(self) -> int:
        """Number of activations: states of actuators with dynamics, in the order of ``ctrl``."""
        return sum(one.has_activation for one in self.actuators)

    @cached_property
    def ctrl_range(self) -> np.ndarray:
        """(n_ctrl, 2): bounds of the control inputs, infinite where there are none."""
        ranges = [one.ctrl_range or (-np.inf, np.inf) for one in self.actuators]
        array = np.array(ranges, dtype=float).reshape(-1, 2)
        array.flags.writeable = False
        return array

    @cached_property
    def tendons(self) -> tuple[Tendon, ...]:
        """Tendons, whether something acts along them or not."""
        return tuple(one for one in self.elements if isinstance(one, Tendon))

    def acts(self, kind: str, name: str) -> bool:
        """Whether what the mechanism has of a ``kind`` at ``name`` is switched on."""
        return records.acts(self.switched_off, kind, name)

    @cached_property
    def acting(self) -> dict[str, tuple[str, ...]]:
        """What acts: kind -> names of joints, actuators, tendons or links."""
        known = self._known_elements
        return {kind: found for kind in KINDS if (found := tuple(n for n in known[kind] if self.acts(kind, n)))}

    @cached_property
    def idle(self) -> dict[str, tuple[str, ...]]:
        """What is switched off, likewise."""
        known = self._known_elements
        return {kind: found for kind in KINDS if (found := tuple(n for n in known[kind] if not self.acts(kind, n)))}

    @cached_property
    def _known_elements(self) -> dict[str, tuple[str, ...]]:
        """Kind -> all names, switched on or not."""
        found = {kind: tuple(b.joint for b in self.bodies if has(b)) for kind, has in _AT_JOINTS.items()}
        for kind in KINDS[len(found) :]:
            of_kind = (one for one in self.elements if RECORDS[type(one)] == kind)
            found[kind] = tuple(dict.fromkeys(map(records.name_of, of_kind)))
        found["contact"] = tuple(pair.name for pair in self.contact_pairs)
        return found

    def with_acting(self: Any, *only: Any, **kinds: Any) -> Mechanism:
        """A copy in which other elements act: ``with_acting(False)`` nothing, ``with_acting(True)`` everything,
        ``with_acting("damping", "actuators")`` these kinds alone; ``with_acting(limits=False)`` switches one kind,
        ``with_acting(actuators=("hip", "knee"))`` lets these alone of a kind act.

        Kinds are springs, damping, friction, limits, actuators, tendons, gravity_compensation, fluid and contact.
        """
        off = records.switched(self._known_elements, self.switched_off, only, kinds)
        return family.variant(self, (), switched_off=off)

    def with_elements(self: Any, *elements: Any) -> Mechanism:
        """A copy with further actuators, tendons and the like (``lw.forces.Actuator``, ``lw.forces.Tendon``, ...).

        Where ``actuated_joints`` is known, the joints that new actuators drive are among them.
        """
        return with_records(self, (*self.elements, *elements))

    def without_elements(self: Any, *names: str) -> Mechanism:
        """A copy without the actuators, tendons and other elements of these names; joints that lose their last actuator
        are no longer among ``actuated_joints``."""
        known = [records.name_of(one) for one in self.elements]
        for name in names:
            if name not in known:
                raise MechanismError(f"mechanism {self.name!r} has no element {name!r}: " + did_you_mean(name, known))
        return with_records(self, tuple(one for one in self.elements if records.name_of(one) not in names))

    def _check_elements(self: Any) -> None:
        """Every record leads somewhere."""
        object.__setattr__(self, "elements", records.checked(self.elements))
        object.__setattr__(self, "switched_off", tuple((kind, name) for kind, name in self.switched_off))
        tendons = [one.name for one in self.elements if isinstance(one, Tendon)]
        for one in self.elements:
            if isinstance(one, Tendon):
                for joint, _ in one.joints:
                    _require_scalar(self, joint, f"tendon {one.name!r}")
            elif isinstance(one, EffortRange):
                _require_scalar(self, one.joint, "an effort range")
            elif isinstance(one, (GravityCompensation, FluidForce)):
                self.frame(one.link)
            elif isinstance(one, Actuator):
                _check_target(self, one, tendons)


def _check_target(mech: Any, one: Actuator, tendons: list[str]) -> None:
    if one.transmission == "site":
        mech.frame(one.target)
    elif one.transmission == "tendon":
        if one.target not in tendons:
            raise MechanismError(
                f"actuator {one.name!r} drives tendon {one.target!r}, which does not exist: "
                + did_you_mean(one.target, tendons)
            )
    else:
        kind = mech.bodies[mech.body_index(one.target)].kind
        if kind.nv != 1 and not (kind.is_ball or kind.is_free):
            raise MechanismError(
                f"actuator {one.name!r} drives joint {one.target!r}, which has {kind.nv} coordinates: it needs a joint "
                "of one, a ball or a free joint"
            )


def _require_scalar(mech: Any, joint: str, what: str) -> None:
    kind = mech.bodies[mech.body_index(joint)].kind
    if kind.nv != 1 or not kind.rates_are_velocities:
        raise MechanismError(f"{what} is at joint {joint!r}, which has not one coordinate whose rate is its velocity")


# -- motors of joints -------------------------------------------------------------------------------------------


def with_records(mech: Any, elements: tuple[Any, ...]) -> Mechanism:
    """The mechanism with other records: joints are actuated that actuators drive now, and not those that they drove."""
    changed = dataclasses.replace(mech, elements=elements)
    if mech.annotations.actuated is None:
        return changed
    before, now = (dict.fromkeys(j for a in _actuators(m) for j in driven_by(m, a)) for m in (mech, changed))
    kept = [joint for joint in mech.annotations.actuated if joint in now or joint not in before]
    actuated = tuple(dict.fromkeys([*kept, *(joint for joint in now if joint not in before)]))
    return dataclasses.replace(changed, annotations=dataclasses.replace(mech.annotations, actuated=actuated))


def driven_only_at(mech: Any, joints: Sequence[str]) -> tuple[Any, ...]:
    """The elements without the actuators that drive other joints; those of frames may move any joint, and stay."""
    lost = [one for one in _actuators(mech) if not set(driven_by(mech, one)) <= set(joints)]
    return tuple(one for one in mech.elements if one not in lost)


def driven_by(mech: Any, actuator: Actuator) -> tuple[str, ...]:
    """The joints that an actuator drives, mimicked ones in the place of those that mimic them; none of frames."""
    joints = [actuator.target] if actuator.transmission in ("joint", "jointinparent") else []
    if actuator.transmission == "tendon":
        joints = [joint for one in mech.tendons if one.name == actuator.target for joint, _ in one.joints]
    bodies = (mech.bodies[mech.body_index(joint)] for joint in joints)
    return tuple(body.mimic.joint if body.mimic else body.joint for body in bodies)


def _actuators(mech: Any) -> list[Actuator]:
    """All, switched on or not."""
    return [one for one in mech.elements if isinstance(one, Actuator)]


def with_efforts(mech: Any, efforts: Mapping[str, float]) -> tuple[Any, ...]:
    """The elements when the effort limits of joints are these: bounds of what the actuators there give, none where the
    limit is infinite."""
    driven = {one.target for one in _actuators(mech)} | {e.joint for e in mech.elements if isinstance(e, EffortRange)}
    kept = (one for one in mech.elements if not (isinstance(one, EffortRange) and one.joint in efforts))
    bounded = ((joint, most) for joint, most in efforts.items() if joint in driven and most < np.inf)
    return (*kept, *(EffortRange(joint, -most, most) for joint, most in bounded))


def locked(elements: tuple[Any, ...], values: Mapping[str, Sequence[float]]) -> tuple[Any, ...]:
    """The elements when joints are locked at these coordinates: what drives them alone is gone, and what they add to
    tendons is constant."""
    kept: list[Any] = []
    for one in elements:
        if isinstance(one, Tendon):
            free = tuple((joint, arm) for joint, arm in one.joints if joint not in values)
            offset = one.offset + sum(arm * values[joint][0] for joint, arm in one.joints if joint in values)
            kept += [dataclasses.replace(one, joints=free, offset=offset)] if free else []
        elif not (isinstance(one, EffortRange) and one.joint in values):
            kept.append(one)
    tendons = {one.name for one in kept if isinstance(one, Tendon)}
    return tuple(one for one in kept if not isinstance(one, Actuator) or not _lost(one, values, tendons))


def _lost(one: Actuator, values: Mapping[str, Any], tendons: set[str]) -> bool:
    if one.transmission == "tendon":
        return one.target not in tendons
    return one.transmission != "site" and one.target in values
