"""Other names: of former versions and of other libraries for attributes of a mechanism, of files for kinds of loops."""

from __future__ import annotations

import re
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from linkwise.mechanism.checks import warn_caller

if TYPE_CHECKING:
    from linkwise.mechanism.model import Mechanism

#: What is meant -> what models of Pinocchio and MuJoCo, and people, call attributes and methods of a mechanism.
_CALLED_ELSEWHERE = {
    "n_links, of moving links and their joints": "njoints n_joints",
    "n_links": "nbodies nbody njnt",
    "len(mech.frames)": "nframes",
    "n_ctrl": "nu",
    "joint_names": "names",
    "joint_names, or bodies, which have joints with all their numbers": "joints",
    "link_names, or bodies": "links",
    "limits.lower and limits.upper": "joint_limits jnt_range position_limits",
    "limits.lower": "lowerPositionLimit lower_limits lower_limit lower q_min",
    "limits.upper": "upperPositionLimit upper_limits upper_limit upper q_max",
    "limits.velocity": "velocityLimit velocity_limits velocity_limit v_max",
    "limits.effort": "effortLimit effort_limits torque_limits tau_max",
    "nv, of the tree; linkwise.constraints.degrees_of_freedom(mech) where there are loops": "dof ndof",
    "link_names": "body_names",
    "forces.ctrl_range": "actuator_ctrlrange",
    "parameters.masses": "body_mass",
    "parameters.damping, by degree of freedom": "dof_damping",
    "parameters.armature, by degree of freedom": "dof_armature",
    "contact_pairs, with the friction of each; with_contact(friction=...) changes it": "geom_friction",
    "shapes, and contact_pairs of those that touch": "geoms",
    "not read: linkwise.frame_velocity, contact_points and others compute what sensors measure": "sensors nsensor",
    "q_index(joint)": "idx_qs",
    "v_index(joint)": "idx_vs",
    "body_index(joint), of what linkwise takes by name": "getJointId",
    "the name: functions take those of frames": "getFrameId",
    "name in mech.frames": "existFrame",
    "name in mech.joint_names": "existJointName",
    "with_frame, which gives a copy": "addFrame",
    "linkwise.Builder().joint": "addJoint",
    "not needed: functions take the mechanism and arrays": "createData",
    "not needed: mechanisms do not change, with_... give changed copies": "copy",
    "parameters.masses, of the links: parameters.masses.sum() is that of all": "mass",
    "parameters.masses.sum()": "total_mass",
    "parameters.inertias": "inertia",
    "parameters.coms, of the links in their frames; linkwise.center_of_mass(mech, q) is that of all": "com",
    "linkwise.neutral(mech)": "neutral",
    "postures": "referenceConfigurations key_qpos",
    "initial": "qpos0 q0",
    "gravity and metadata.timestep": "opt",
    "with_payload, which gives a copy": "add_payload",
    "with_locked": "lock",
    "with_mechanism, or with_payload for a rigid body": "attach",
}
OF_OTHER_LIBRARIES = {name: meant for meant, names in _CALLED_ELSEWHERE.items() for name in names.split()}

#: View -> names of version 0.1 that moved into it; the old names go with version 0.3.
_MOVED_TO_VIEWS = {
    "constraints": (
        "at_time drive_rates driven drives_at holonomic_rows is_nonholonomic structure waits_for_time with_distances "
        "without_drives"
    ),
    "contact": "pairs_between_links shape",
    "coordinates": "mimic_joints place rates_are_velocities single_place steps_commute structure_constants",
    "forces": "acts actuator_names actuators ctrl_range idle n_activation tendons",
    "metadata": (
        "actuated_joints groups independent_joints integrator keyframes looks timestep with_actuated with_groups "
        "with_initial with_postures"
    ),
    "parameters": (
        "armature coms damping friction inertias masses singular_joints spring_rest stiffness with_armature "
        "with_damping with_shared_code with_springs"
    ),
    "tree": "children parents path subtree",
}
#: Attributes of version 0.1 and where they are now.
FORMER = {name: f"{view}.{name}" for view, names in _MOVED_TO_VIEWS.items() for name in names.split()} | {
    "acting": "forces.active",
    "constraint_index": "constraints.rows",
    "contact_parts": "contact.parts",
    "contact_step": "contact.step",
    "coordinate_names": "coordinates.names",
    "coordinate_place": "coordinates.index",
    "effort_limit": "limits.effort",
    "frame_names": "frames",
    "joint_of_coordinate": "coordinates.joint_of",
    "loop_hint": "constraints.hint",
    "loop_index": "constraints.index",
    "moving_link_index": "parameters.link_index",
    "q_lower": "limits.lower",
    "q_upper": "limits.upper",
    "v_limit": "limits.velocity",
    "with_inertial_parameters": "parameters.with_inertial",
    "without_contact": "contact.without",
    "without_elements": "forces.without",
}


def former_attribute(mech: Mechanism, name: str) -> Any:
    """The value of an attribute under its old name, with a DeprecationWarning."""
    now = FORMER[name]
    warn_caller(f"Mechanism.{name} is Mechanism.{now} now; the old name goes with version 0.3", DeprecationWarning)
    value = attrgetter(now)(mech)
    return tuple(value) if name == "frame_names" else value


def word_of(kind: str) -> str:
    """Name of a kind of joint or contact in files of loops: "pin_in_slot" for PinInSlot."""
    return kind if "." in kind else re.sub("(?<=.)(?=[A-Z])", "_", kind).lower()


def key_of(field: str) -> str:
    """Key of a joint field in files of loops."""
    return "axis" if field == "normal" else field


def unused_name(name: str, taken: set[str]) -> str:
    """The name, with underscores added until it is not taken; it is added to ``taken``."""
    while name in taken:
        name += "_"
    taken.add(name)
    return name
