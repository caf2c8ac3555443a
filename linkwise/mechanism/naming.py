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

#: Attributes of version 0.1 that have moved into views; the old names go with version 0.3.
FORMER = {
    "acting": "forces.active",
    "acts": "forces.acts",
    "actuated_joints": "metadata.actuated_joints",
    "actuator_names": "forces.actuator_names",
    "actuators": "forces.actuators",
    "armature": "parameters.armature",
    "at_time": "constraints.at_time",
    "children": "tree.children",
    "coms": "parameters.coms",
    "constraint_index": "constraints.rows",
    "contact_parts": "contact.parts",
    "contact_step": "contact.step",
    "coordinate_names": "coordinates.names",
    "coordinate_place": "coordinates.index",
    "ctrl_range": "forces.ctrl_range",
    "damping": "parameters.damping",
    "drive_rates": "constraints.drive_rates",
    "driven": "constraints.driven",
    "drives_at": "constraints.drives_at",
    "effort_limit": "limits.effort",
    "frame_names": "frames",
    "friction": "parameters.friction",
    "groups": "metadata.groups",
    "holonomic_rows": "constraints.holonomic_rows",
    "idle": "forces.idle",
    "independent_joints": "metadata.independent_joints",
    "inertias": "parameters.inertias",
    "integrator": "metadata.integrator",
    "is_nonholonomic": "constraints.is_nonholonomic",
    "joint_of_coordinate": "coordinates.joint_of",
    "keyframes": "metadata.keyframes",
    "looks": "metadata.looks",
    "loop_hint": "constraints.hint",
    "loop_index": "constraints.index",
    "masses": "parameters.masses",
    "mimic_joints": "coordinates.mimic_joints",
    "moving_link_index": "parameters.link_index",
    "n_activation": "forces.n_activation",
    "pairs_between_links": "contact.pairs_between_links",
    "parents": "tree.parents",
    "path": "tree.path",
    "place": "coordinates.place",
    "q_lower": "limits.lower",
    "q_upper": "limits.upper",
    "rates_are_velocities": "coordinates.rates_are_velocities",
    "shape": "contact.shape",
    "single_place": "coordinates.single_place",
    "singular_joints": "parameters.singular_joints",
    "spring_rest": "parameters.spring_rest",
    "steps_commute": "coordinates.steps_commute",
    "stiffness": "parameters.stiffness",
    "structure": "constraints.structure",
    "structure_constants": "coordinates.structure_constants",
    "subtree": "tree.subtree",
    "tendons": "forces.tendons",
    "timestep": "metadata.timestep",
    "v_limit": "limits.velocity",
    "waits_for_time": "constraints.waits_for_time",
    "with_actuated": "metadata.with_actuated",
    "with_armature": "parameters.with_armature",
    "with_damping": "parameters.with_damping",
    "with_distances": "constraints.with_distances",
    "with_groups": "metadata.with_groups",
    "with_inertial_parameters": "parameters.with_inertial",
    "with_initial": "metadata.with_initial",
    "with_postures": "metadata.with_postures",
    "with_shared_code": "parameters.with_shared_code",
    "with_springs": "parameters.with_springs",
    "without_contact": "contact.without",
    "without_drives": "constraints.without_drives",
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
