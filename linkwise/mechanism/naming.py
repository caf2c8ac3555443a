"""Other names: of former versions and of other libraries for attributes of a mechanism, of files for kinds of loops."""

from __future__ import annotations

import re
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from linkwise.mechanism.checks import warn_caller

if TYPE_CHECKING:
    from linkwise.mechanism.model import Mechanism

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
    "joint_limits": "limits.lower and limits.upper",
    "lowerPositionLimit": "limits.lower",
    "upperPositionLimit": "limits.upper",
    "velocityLimit": "limits.velocity",
    "effortLimit": "limits.effort",
    "jnt_range": "limits.lower and limits.upper",
    "lower_limits": "limits.lower",
    "upper_limits": "limits.upper",
    "lower_limit": "limits.lower",
    "upper_limit": "limits.upper",
    "lower": "limits.lower",
    "upper": "limits.upper",
    "q_min": "limits.lower",
    "q_max": "limits.upper",
    "position_limits": "limits.lower and limits.upper",
    "velocity_limits": "limits.velocity",
    "velocity_limit": "limits.velocity",
    "v_max": "limits.velocity",
    "effort_limits": "limits.effort",
    "torque_limits": "limits.effort",
    "tau_max": "limits.effort",
    "dof": "nv, of the tree; linkwise.constraints.degrees_of_freedom(mech) where there are loops",
    "ndof": "nv, of the tree; linkwise.constraints.degrees_of_freedom(mech) where there are loops",
    "body_names": "link_names",
    "actuator_ctrlrange": "forces.ctrl_range",
    "body_mass": "parameters.masses",
    "dof_damping": "parameters.damping, by degree of freedom",
    "dof_armature": "parameters.armature, by degree of freedom",
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
    "mass": "parameters.masses, of the links: parameters.masses.sum() is that of all",
    "total_mass": "parameters.masses.sum()",
    "inertia": "parameters.inertias",
    "com": "parameters.coms, of the links in their frames; linkwise.center_of_mass(mech, q) is that of all",
    "neutral": "linkwise.neutral(mech)",
    "referenceConfigurations": "postures",
    "qpos0": "initial",
    "q0": "initial",
    "key_qpos": "postures",
    "opt": "gravity and metadata.timestep",
    "add_payload": "with_payload, which gives a copy",
    "lock": "with_locked",
    "attach": "with_mechanism, or with_payload for a rigid body",
}

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
