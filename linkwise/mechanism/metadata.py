"""The view ``mech.metadata``: data of a file that changes no result of dynamics, and edits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from linkwise.mechanism import checks, family
from linkwise.mechanism.annotation import Coordinates
from linkwise.mechanism.checks import MechanismError
from linkwise.mechanism.forces import driven_only_at
from linkwise.mechanism.looks import Look
from linkwise.mechanism.quaternions import unit_coordinates
from linkwise.mechanism.view import View, kept

if TYPE_CHECKING:
    from linkwise.mechanism.model import Mechanism

SAME_COORDINATE = 1e-6  # rad, or of the mechanism's length: coordinates that differ by less are equal


class Keyframe(NamedTuple):
    """A state with a name: q (nq,), v (nv,), ctrl (n_ctrl,), activation (n_activation,)."""

    q: np.ndarray
    v: np.ndarray
    ctrl: np.ndarray
    activation: np.ndarray


class MetadataView(View):
    """Data of a file without effect on dynamics; see also ``mech.initial``, ``mech.postures``, ``mech.notes``."""

    __slots__ = ()

    @property
    def keyframes(self) -> dict[str, Keyframe]:
        """Named states: postures with velocities, control inputs and activations (keyframes of MJCF)."""
        mech, keyframes = self._mech, {}
        known = {name: tuple(map(dict, more)) for name, *more in mech.annotations.keyframes}
        for name, q in mech.postures.items():
            velocities, inputs, activations = known.get(name, ({}, {}, {}))
            v = np.zeros(mech.nv)
            for joint, rates in velocities.items():
                if joint in mech.joint_names and not mech.bodies[mech.body_index(joint)].mimic:
                    v[mech.v_index(joint)] = rates
            actuators = mech.forces.actuators
            ctrl = [inputs.get(actuator.name, (0.0,))[0] for actuator in actuators]
            activation = [activations.get(x.name, (0.0,))[0] for x in actuators if x.has_activation]
            keyframes[name] = Keyframe(q, v, np.array(ctrl), np.array(activation))
        return keyframes

    @property
    def timestep(self) -> float | None:
        """The time step, s, that the file intends for simulation (``<option timestep>`` of MJCF, default 0.002); None
        for other formats. ``lw.rollout`` uses it if dt is None.
        """
        return self._mech.annotations.timestep

    @property
    def integrator(self) -> str | None:
        """The integrator that the file intends for MuJoCo (``<option integrator>``, default "Euler"); None for other
        formats. It is saved again but selects nothing: use ``method`` of ``lw.rollout``, "semi_implicit" for "Euler",
        "implicit" and "implicitfast", "rk4" for "RK4".
        """
        return self._mech.annotations.integrator

    @property
    def looks(self) -> tuple[Look, ...]:
        """Visuals of links from the file; ``lw.viewer.scene`` has everything that is drawn."""
        return self._mech.annotations.looks

    @property
    def actuated_joints(self) -> tuple[str, ...] | None:
        """Joints with motors, from the file (MJCF actuators) or ``with_actuated``, in the order of the actuators; None
        if unspecified. Controllers such as ``lw.control.joint_feedback`` drive these.
        """
        said = self._mech.annotations.actuated
        return None if said is None else tuple(joint for joint in said if joint in self._mech.joint_names)

    @property
    def independent_joints(self) -> tuple[str, ...] | None:
        """Joints that the file (URDF+) declares independent; the others follow by loops and couplings. None if
        unspecified. ``lw.linearize`` uses these where possible.
        """
        said = self._mech.annotations.independent
        moving = (body.joint for body in self._mech.bodies if not body.mimic)
        return None if said is None else tuple(joint for joint in moving if joint in said)

    @kept
    def groups(self) -> Mapping[str, tuple[str, ...]]:
        """Named groups of joints, from SRDF and others; fixed joints are left out."""
        moving, groups = set(self._mech.joint_names), self._mech.annotations.groups
        return MappingProxyType({name: tuple(joint for joint in joints if joint in moving) for name, joints in groups})

    def with_initial(self, q: Any) -> Mechanism:
        """A copy with another initial configuration, where pictures, pages, assembly and ranges of motion start by
        default: q (nq,), ``lw.configuration(mech, crank=0.4)`` for one with closed loops, or by joint,
        {"crank": 0.4}, of which the others stay as they are."""
        mech, label = self._mech, f"the initial configuration of mechanism {self._mech.name!r}"
        kept = dict(mech.annotations.initial) if isinstance(q, Mapping) else {}
        return self._with(initial=tuple({**kept, **dict(_independent_coordinates(mech, label, q))}.items()))

    def with_postures(self, postures: Mapping[str, Any]) -> Mechanism:
        """A copy with further postures: ``{name: q}``, or ``{name: {joint name: coordinates}}``.

        A mimic joint that is named brings the joint it mimics to where it has these coordinates.
        """
        mech, known = self._mech, dict(self._mech.annotations.postures)
        for name, values in postures.items():
            label = f"posture {checks.checked_name('posture', name)!r} of mechanism {mech.name!r}"
            known[name] = _independent_coordinates(mech, label, values)
        return self._with(postures=tuple(known.items()))

    def with_groups(self, groups: Mapping[str, Iterable[str]]) -> Mechanism:
        """A copy with further groups of joints: ``{name: joint names}``."""
        mech, known = self._mech, dict(self._mech.annotations.groups)
        for name, joints in groups.items():
            known[checks.checked_name("group", name)] = members = checks.names_of(joints)
            for joint in members:
                if joint not in mech.joint_names:
                    hint = checks.did_you_mean(joint, mech.joint_names)
                    raise MechanismError(
                        f"group {name!r}: mechanism {mech.name!r} has no moving joint {joint!r}: {hint}"
                    )
        return self._with(groups=tuple(known.items()))

    def with_actuated(self, *joints: str) -> Mechanism:
        """A copy with motors at exactly these joints: ``with_actuated("a", "b")`` or a list.

        Actuators that drive other joints are taken away, those of frames stay; joints that have none get none.
        """
        mech, names = self._mech, checks.names_of(joints)
        actuated = checks.names_of(names[0]) if len(names) == 1 and isinstance(names[0], Iterable) else names
        for joint in actuated:
            if not isinstance(joint, str):
                raise TypeError(f"with_actuated takes names of joints, 'a', 'b', got {joint!r}")
        for joint in actuated:
            mimic = mech.bodies[mech.body_index(joint)].mimic
            if mimic:
                raise MechanismError(
                    f"joint {joint!r} mimics {mimic.joint!r} and has no force of its own: actuate that one"
                )
        known = replace(mech.annotations, actuated=actuated)
        return family.variant(mech, (), annotations=known, elements=driven_only_at(mech, actuated))

    def _with(self, **annotations: Any) -> Mechanism:
        return family.variant(self._mech, (), annotations=replace(self._mech.annotations, **annotations))


def _independent_coordinates(mech: Mechanism, label: str, values: Any) -> Coordinates:
    """Coordinates by independent joint, from q (nq,) or {joint: one number or as many as it has}. The value of a mimic
    joint sets its leader; raises where the two contradict each other.
    """
    if not isinstance(values, Mapping):
        q = checks.checked_array(label, values, (mech.nq,))
        values = {body.joint: q[mech.q_index(body.joint)] for body in mech.bodies if not body.mimic}
    coordinates: dict[str, tuple[float, ...]] = {}
    for joint, value in values.items():
        kind = mech.bodies[mech.body_index(joint)].kind
        at = np.atleast_1d(np.asarray(value, dtype=object))
        if at.shape != (kind.nq,):
            raise MechanismError(f"{label}: joint {joint!r} has {kind.nq} coordinates, not {at.tolist()}")
        numbers = checks.per_coordinate(f"joint {joint!r} of {label}", at, kind.nq)
        unit = unit_coordinates(kind, f"the quaternion of joint {joint!r} in {label}", numbers)
        coordinates[joint] = tuple(unit.tolist())
    mimics = [body for body in mech.bodies if body.mimic and body.joint in coordinates]
    independent = {joint: x for joint, x in coordinates.items() if joint not in [body.joint for body in mimics]}
    for body in mimics:
        value, entry, mimic = coordinates[body.joint][0], mech.coordinates.place(body.joint), body.mimic
        assert mimic is not None
        if mimic.joint not in independent and mimic.ratio:
            independent[mimic.joint] = (float(entry.q_at(value)),)
        follows = mimic.ratio * independent[mimic.joint][0] + mimic.offset if mimic.ratio else mimic.offset
        if abs(value - follows) > SAME_COORDINATE * mech._scales.of_kind(body.kind, "q")[0]:
            raise MechanismError(
                f"{label}: joint {body.joint!r} mimics {mimic.joint!r} and is at {follows:g} with it, not at "
                f"{value:g}: give one of the two joints"
            )
    return tuple(independent.items())
