"""Names of single coordinates, the part of ``Mechanism`` that is about them; what files call kinds of loops."""

from __future__ import annotations

import re
from functools import cached_property
from typing import Any

from linkwise.mechanics.joints import ANGLE, QUATERNION
from linkwise.mechanism.checks import MechanismError
from linkwise.mechanism.parts import Body, Place

#: What models of Pinocchio and MuJoCo, and people, call attributes and methods of a mechanism.
OF_OTHER_LIBRARIES = {
    "njoints": "n_links, of moving links and their joints",
    "n_joints": "n_links, of moving links and their joints",
    "nbodies": "n_links",
    "nframes": "len(mech.frames)",
    "nbody": "n_links",
    "njnt": "n_links",
    "nu": "n_ctrl",
    "names": "joint_names",
    "joints": "joint_names, or bodies, which have joints with all their numbers",
    "links": "link_names, or bodies",
    "limits": "q_lower, q_upper, v_limit and effort_limit",
    "joint_limits": "q_lower and q_upper",
    "lowerPositionLimit": "q_lower",
    "upperPositionLimit": "q_upper",
    "velocityLimit": "v_limit",
    "effortLimit": "effort_limit",
    "jnt_range": "q_lower and q_upper",
    "lower_limits": "q_lower",
    "upper_limits": "q_upper",
    "lower_limit": "q_lower",
    "upper_limit": "q_upper",
    "lower": "q_lower",
    "upper": "q_upper",
    "q_min": "q_lower",
    "q_max": "q_upper",
    "position_limits": "q_lower and q_upper",
    "velocity_limits": "v_limit",
    "velocity_limit": "v_limit",
    "v_max": "v_limit",
    "effort_limits": "effort_limit",
    "torque_limits": "effort_limit",
    "tau_max": "effort_limit",
    "dof": "nv, of the tree; linkwise.constraints.degrees_of_freedom(mech) where there are loops",
    "ndof": "nv, of the tree; linkwise.constraints.degrees_of_freedom(mech) where there are loops",
    "body_names": "link_names",
    "actuator_ctrlrange": "ctrl_range",
    "body_mass": "masses",
    "dof_damping": "damping, by degree of freedom",
    "dof_armature": "armature, by degree of freedom",
    "geom_friction": "contact_pairs, with the friction of each; with_contact(friction=...) changes it",
    "geoms": "shapes, and contact_pairs of those that touch",
    "sensors": "not read: linkwise.frame_velocity, contact_points and others compute what sensors measure",
    "nsensor": "not read: linkwise.frame_velocity, contact_points and others compute what sensors measure",
    "idx_qs": "q_index(joint)",
    "idx_vs": "v_index(joint)",
    "getJointId": "body_index(joint), of what linkwise takes by name",
    "getFrameId": "the name: functions take those of frames",
    "existFrame": "name in mech.frames",
    "existJointName": "name in mech.joint_names",
    "addFrame": "with_frame, which gives a copy",
    "addJoint": "linkwise.Builder().joint",
    "createData": "not needed: functions take the mechanism and arrays",
    "copy": "not needed: mechanisms do not change, with_... give changed copies",
    "mass": "masses, of the links: masses.sum() is that of all",
    "total_mass": "masses.sum()",
    "inertia": "inertias",
    "com": "coms, of the links in their frames; linkwise.center_of_mass(mech, q) is that of all",
    "neutral": "linkwise.neutral(mech)",
    "referenceConfigurations": "postures",
    "qpos0": "initial",
    "q0": "initial",
    "key_qpos": "postures",
    "opt": "gravity and timestep",
    "add_payload": "with_payload, which gives a copy",
    "lock": "with_locked",
    "attach": "with_mechanism, or with_payload for a rigid body",
}
ANGLES = ("roll", "pitch", "yaw")  # by which orientations can be given: rotations about fixed axes x, y, z


class NamedCoordinates:
    """Numbers of q and v by name."""

    bodies: tuple[Body, ...]

    @cached_property
    def q_names(self) -> tuple[str, ...]:
        """One name per number of q: the joint's, or "joint.x" of joints with several; quaternions are "joint.qw",
        "joint.qx", ...  States by joint take these too, and "joint.roll", ".pitch", ".yaw" of orientations."""
        return tuple(_named(body, one.name) for body in self._own for one in body.kind.measures("q"))

    @cached_property
    def v_names(self) -> tuple[str, ...]:
        """One name per number of v: the joint's, or "joint.x" of joints with several; of joints with quaternions
        "joint.wx", ..., the angular velocity, and "joint.vx", ..., both along the axes of the child."""
        found = []
        for body in self._own:
            has_quaternion = any(one.of == QUATERNION for one in body.kind.measures("q"))
            for one in body.kind.measures("v"):
                letter = "w" if one.of == ANGLE else "v"
                found.append(_named(body, letter + one.name[-1:] if has_quaternion else one.name))
        return tuple(found)

    def coordinate_names(self, quantity: str) -> tuple[str, ...]:
        """One name per number of "q" or "v": the joint's, or ``joint[k]`` where it has several."""
        if quantity not in ("q", "v"):
            raise MechanismError(f"coordinates are those of 'q' or 'v', not {quantity!r}")
        return self._coordinate_names[quantity]

    def coordinate_place(self, quantity: str, name: str) -> int | None:
        """Where in "q" or "v" a single coordinate is, by either of its names; None if there is none."""
        return self._coordinate_places[quantity].get(name)

    def single_place(self: Any, name: str) -> Place | None:
        """The place of one coordinate of a joint with several, whose rate is its velocity; None of other names."""
        place = self.coordinate_place("q", name)
        if place is None:
            return None
        body = self.bodies[self.body_index(self.joint_of_coordinate(name))]
        if not body.kind.rates_are_velocities:
            raise MechanismError(
                f"{name!r} is one number of an orientation or position whose rate is no velocity of its own: name the "
                f"whole joint {body.joint!r}"
            )
        velocity = self.v_index(body.joint).start + place - self.q_index(body.joint).start
        return Place(name, slice(place, place + 1), slice(velocity, velocity + 1), 1.0, 0.0)

    def joint_of_coordinate(self, name: str) -> str:
        """The joint that a name of a coordinate begins with."""
        return re.sub(r"\[\d+\]$", "", name) if name.endswith("]") else name.rpartition(".")[0]

    @property
    def _own(self) -> list[Body]:
        return [body for body in self.bodies if not body.mimic]

    @cached_property
    def _coordinate_names(self) -> dict[str, tuple[str, ...]]:
        names: dict[str, list[str]] = {"q": [], "v": []}
        for body in self.bodies:
            for quantity, count in (("q", body.nq), ("v", body.nv)):
                names[quantity] += [body.joint] if count == 1 else [f"{body.joint}[{k}]" for k in range(count)]
        return {quantity: tuple(one) for quantity, one in names.items()}

    @cached_property
    def _coordinate_places(self) -> dict[str, dict[str, int]]:
        found: dict[str, dict[str, int]] = {}
        for quantity, named in (("q", self.q_names), ("v", self.v_names)):
            pairs = zip(self.coordinate_names(quantity), named, strict=True)
            found[quantity] = {name: k for k, names in enumerate(pairs) for name in names}
        return found


def coordinate_measures(mech: Any, quantity: str) -> tuple[str, ...]:
    """What every number of q measures: "angle", "length", "quaternion" or "other"; of other quantities, those of v."""
    of = "q" if quantity == "q" else "v"
    return tuple(one.of for body in mech.bodies if not body.mimic for one in body.kind.measures(of))


def _named(body: Body, measure: str) -> str:
    return f"{body.joint}.{measure}" if measure else body.joint


def word_of(kind: str) -> str:
    """What files of loops call a kind of joint or contact: "pin_in_slot" for PinInSlot."""
    return kind if "." in kind else re.sub("(?<=.)(?=[A-Z])", "_", kind).lower()


def key_of(field: str) -> str:
    """What files of loops call a field of a kind of joint."""
    return "axis" if field == "normal" else field
