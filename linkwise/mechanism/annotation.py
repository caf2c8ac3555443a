"""Data of a mechanism that no equation of motion uses: notes on ignored parts of its file, named postures and groups.

None of it changes a result of dynamics, so that mechanisms which differ in nothing else are equal.  Everything is kept
by the names of joints: it stays true when joints are locked or loops added.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from linkwise.mechanism.checks import (
    MechanismError,
    checked_array,
    checked_name,
    did_you_mean,
    names_of,
    per_coordinate,
)
from linkwise.mechanism.looks import Look
from linkwise.mechanism.parts import Body
from linkwise.mechanism.quaternions import unit_coordinates

USUAL_TIMESTEP = 0.002  # s, of files that say nothing in a format that has one
USUAL_INTEGRATOR = "Euler"  # likewise
Coordinates = tuple[tuple[str, tuple[float, ...]], ...]  # (joint, its coordinates), ...

MOST_PLACES = 4  # that a line names
SAME_COORDINATE = 1e-6  # rad, or of the mechanism's length: values of a posture that differ by less say the same


@dataclass(frozen=True)
class Note:
    """Something of a description that does not act.

    what         in the singular: "motor", "joint with damping"
    where        the elements with their lines, or the joints
    advice       what that means, and what to do about it
    constrains   whether it would hold parts together, so that without it they come apart
    """

    what: str
    where: tuple[str, ...]
    advice: str
    constrains: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "where", tuple(self.where))

    @property
    def count(self) -> int:
        """Number of occurrences."""
        return len(self.where)

    @property
    def counted(self) -> str:
        """ "8 joints with damping"."""
        if self.count == 1:
            return f"1 {self.what}"
        head, *tail = re.split("(?= with | of )", self.what, maxsplit=1)
        return f"{self.count} {_plural(head)}{''.join(tail)}"

    def __str__(self) -> str:
        more = f" and {self.count - MOST_PLACES} more" if self.count > MOST_PLACES else ""
        return f"{self.counted} ({', '.join(self.where[:MOST_PLACES])}{more}): {self.advice}"


def _plural(words: str) -> str:
    """ "bodies", "meshes", "boxes", "joints"."""
    if words.endswith("y"):
        return f"{words[:-1]}ies"
    return words + ("es" if words.endswith(("sh", "ch", "x", "s")) else "s")


@dataclass(frozen=True)
class Annotations:
    """
    notes          what of the file does not act
    initial        coordinates of joints in the configuration that the file starts from, where it says so; the others
                   are neutral, which nobody has chosen
    postures       (name, coordinates of joints), ...: the other joints are as in ``initial``
    keyframes      (name, velocities of joints, inputs of actuators, activations of actuators), ...: what states of this
                   name have besides the posture; zero where nothing is said
    groups         (name, joints), ...
    fixed_joints   names of joints that do not move, which no body has
    actuated       names of the joints that have motors; None where nothing is said of motors
    independent    names of the joints whose coordinates are meant to be independent; None where nothing is said
    timestep       s, that the file means simulations to take; None where it says nothing
    integrator     that the file means simulations in MuJoCo to take; None of other formats
    looks          what is to be seen of links
    ground_mass    mass, centre of mass and inertia (13 numbers) of links that are fixed to the ground, which count
                   where it is attached to something that moves
    neighbours_touch   whether the file lets shapes of links touch that a joint connects
    kept_apart     pairs of links or frames whose shapes the file does not let touch
    """

    notes: tuple[Note, ...] = ()
    initial: Coordinates = ()
    postures: tuple[tuple[str, Coordinates], ...] = ()
    groups: tuple[tuple[str, tuple[str, ...]], ...] = ()
    fixed_joints: tuple[str, ...] = ()
    actuated: tuple[str, ...] | None = None
    independent: tuple[str, ...] | None = None
    keyframes: tuple[tuple[str, Coordinates, Coordinates, Coordinates], ...] = ()
    timestep: float | None = None
    integrator: str | None = None
    looks: tuple[Look, ...] = ()
    ground_mass: tuple[float, ...] = ()
    neighbours_touch: bool = False
    kept_apart: tuple[tuple[str, str], ...] = ()

    def with_fixed(self, joints: Iterable[str]) -> Annotations:
        """A copy in which further joints are fixed."""
        return replace(self, fixed_joints=(*self.fixed_joints, *joints))


class Keyframe(NamedTuple):
    """A state with a name: q (nq,), v (nv,), ctrl (n_ctrl,), activation (n_activation,)."""

    q: np.ndarray
    v: np.ndarray
    ctrl: np.ndarray
    activation: np.ndarray


def keyframes(mech: Any) -> dict[str, Keyframe]:
    """Postures with the velocities, inputs and activations of their keyframes."""
    known = {name: tuple(map(dict, more)) for name, *more in mech.annotations.keyframes}
    keyframes_by_name = {}
    for name, q in mech.postures.items():
        velocities, inputs, activations = known.get(name, ({}, {}, {}))
        v = np.zeros(mech.nv)
        for joint, values in velocities.items():
            if joint in mech.joint_names and not mech.bodies[mech.body_index(joint)].mimic:
                v[mech.v_index(joint)] = values
        ctrl = [inputs.get(actuator.name, (0.0,))[0] for actuator in mech.forces.actuators]
        activation = [
            activations.get(actuator.name, (0.0,))[0] for actuator in mech.forces.actuators if actuator.has_activation
        ]
        keyframes_by_name[name] = Keyframe(q, v, np.array(ctrl), np.array(activation))
    return keyframes_by_name


# -- postures and groups --------------------------------------------------------------------------------


def configuration(bodies: Sequence[Body], *parts: Coordinates) -> np.ndarray:
    """(nq,), read-only: the neutral configuration, with the coordinates that the parts give one after the other.

    Joints that no longer move, and those that mimic others, have none.
    """
    values_of = {joint: values for part in parts for joint, values in part}
    independent = (body for body in bodies if not body.mimic)
    q = np.array([x for body in independent for x in values_of.get(body.joint, body.kind.neutral())], dtype=float)
    q.flags.writeable = False
    return q


def checked_coordinates(mech: Any, label: str, values: Mapping[str, Any]) -> Coordinates:
    """Coordinates by joint name, one number or as many as the joint has."""
    if not isinstance(values, Mapping):
        raise MechanismError(f"{label} is given as {{joint name: coordinates}}, not {values!r}")
    result = []
    for joint, value in values.items():
        kind = mech.bodies[mech.body_index(joint)].kind
        at = np.atleast_1d(np.asarray(value, dtype=object))
        if at.shape != (kind.nq,):
            raise MechanismError(f"{label}: joint {joint!r} has {kind.nq} coordinates, not {at.tolist()}")
        numbers = per_coordinate(f"joint {joint!r} of {label}", at, kind.nq)
        unit = unit_coordinates(kind, f"the quaternion of joint {joint!r} in {label}", numbers)
        result.append((joint, tuple(unit.tolist())))
    return tuple(result)


def with_initial(mech: Any, q: Any) -> Annotations:
    """The annotations of a mechanism with another initial configuration."""
    label = f"the initial configuration of mechanism {mech.name!r}"
    kept = dict(mech.annotations.initial) if isinstance(q, Mapping) else {}
    return replace(mech.annotations, initial=tuple({**kept, **dict(_named(mech, label, q))}.items()))


def _named(mech: Any, label: str, values: Any) -> Coordinates:
    """Coordinates by joint of a configuration, which may be given so."""
    if not isinstance(values, Mapping):
        q = checked_array(label, values, (mech.nq,))
        values = {body.joint: q[mech.q_index(body.joint)] for body in mech.bodies if not body.mimic}
    return _independent(mech, label, checked_coordinates(mech, label, values))


def with_postures(mech: Any, postures: Mapping[str, Any]) -> Annotations:
    """The annotations of a mechanism with postures added, or replaced where the name is known."""
    kept = dict(mech.annotations.postures)
    for name, values in postures.items():
        label = f"posture {checked_name('posture', name)!r} of mechanism {mech.name!r}"
        kept[name] = _named(mech, label, values)
    return replace(mech.annotations, postures=tuple(kept.items()))


def _independent(mech: Any, label: str, values_by_joint: Coordinates) -> Coordinates:
    """Coordinates of independent joints alone; the value of a mimic joint sets the joint that it mimics.  Raises where
    the two contradict each other."""
    independent = {joint: values for joint, values in values_by_joint if not mech.bodies[mech.body_index(joint)].mimic}
    for joint, (value, *_) in ((joint, values) for joint, values in values_by_joint if joint not in independent):
        body, entry = mech.bodies[mech.body_index(joint)], mech.coordinates.place(joint)
        mimic = body.mimic
        if mimic.joint not in independent and mimic.ratio:
            independent[mimic.joint] = (float(entry.q_at(value)),)
        follows = mimic.ratio * independent[mimic.joint][0] + mimic.offset if mimic.ratio else mimic.offset
        if abs(value - follows) > SAME_COORDINATE * mech._scales.of_kind(body.kind, "q")[0]:
            raise MechanismError(
                f"{label}: joint {joint!r} mimics {mimic.joint!r} and is at {follows:g} with it, not at {value:g}: "
                "give one of the two joints"
            )
    return tuple(independent.items())


def with_groups(mech: Any, groups: Mapping[str, Iterable[str]]) -> Annotations:
    """The annotations of a mechanism with groups of moving joints added, or replaced where the name is known."""
    kept = dict(mech.annotations.groups)
    for name, joints in groups.items():
        kept[checked_name("group", name)] = chosen = names_of(joints)
        for joint in chosen:
            if joint not in mech.joint_names:
                known = did_you_mean(joint, mech.joint_names)
                raise MechanismError(f"group {name!r}: mechanism {mech.name!r} has no moving joint {joint!r}: {known}")
    return replace(mech.annotations, groups=tuple(kept.items()))


def with_actuated(mech: Any, joints: Iterable[str]) -> Annotations:
    """The annotations of a mechanism whose motors are at these joints: names one by one, or in one list."""
    names = names_of(joints)
    chosen = names_of(names[0]) if len(names) == 1 and isinstance(names[0], Iterable) else names
    for joint in chosen:
        if not isinstance(joint, str):
            raise TypeError(f"with_actuated takes names of joints, 'a', 'b', got {joint!r}")
    for joint in chosen:
        mimic = mech.bodies[mech.body_index(joint)].mimic
        if mimic:
            raise MechanismError(
                f"joint {joint!r} mimics {mimic.joint!r} and has no force of its own: actuate that one"
            )
    return replace(mech.annotations, actuated=chosen)
