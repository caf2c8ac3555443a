"""The spatial operator algebra of multibody dynamics, compiled link by link.  Written by tools/stub.py."""

from . import interop as interop
from . import linearization as linearization
from . import studies as studies
from . import trajectories as trajectories
from . import viewer as viewer
from .compiler.export import c_file as c_file
from .compiler.export import export_c as export_c
from .compiler.formulas.expand import FormulaError as FormulaError
from .compiler.formulas.formulas import Formulas as Formulas
from .compiler.kernel import Kernel as Kernel
from .compiler.kernel import KernelError as KernelError
from .compiler.pipeline import DTYPES as DTYPES
from .compiler.pipeline import LANGUAGES as LANGUAGES
from .compiler.pipeline import TARGETS as TARGETS
from .compiler.pipeline import compile as compile
from .compiler.pipeline import register_target as register_target
from .compiler.runtime import cache as cache
from .compiler.runtime.single_call import get_single_call_shortcut as get_single_call_shortcut
from .compiler.runtime.single_call import set_single_call_shortcut as set_single_call_shortcut
from .compiler.runtime.threads import get_num_threads as get_num_threads
from .compiler.runtime.threads import set_num_threads as set_num_threads
from .compiler.targets.protocol import Target as Target
from .control.decoupled import decoupled_tracking as decoupled_tracking
from .control.joints import joint_feedback as joint_feedback
from .control.joints import saturated as saturated
from .control.operational_space import operational_space_control as operational_space_control
from .control.regulators import lqr as lqr
from .control.tracking import computed_torque as computed_torque
from .display import progress as progress
from .dynamics import constraints as constraints
from .dynamics import denoc as denoc
from .dynamics import diagonal as diagonal
from .dynamics import estimation as estimation
from .dynamics import linkages as linkages
from .dynamics import momenta as momenta
from .dynamics.by_joint import configuration as configuration
from .dynamics.centroidal import center_of_mass_acceleration as center_of_mass_acceleration
from .dynamics.centroidal import center_of_mass_jacobian as center_of_mass_jacobian
from .dynamics.centroidal import center_of_mass_velocity as center_of_mass_velocity
from .dynamics.centroidal import centroidal_momentum as centroidal_momentum
from .dynamics.centroidal import centroidal_momentum_matrix as centroidal_momentum_matrix
from .dynamics.centroidal import centroidal_momentum_matrix_rate as centroidal_momentum_matrix_rate
from .dynamics.centroidal import centroidal_momentum_rate as centroidal_momentum_rate
from .dynamics.centroidal import momentum_matrix as momentum_matrix
from .dynamics.centroidal import momentum_rate as momentum_rate
from .dynamics.closed.force_derivatives import joint_wrenches_derivatives as joint_wrenches_derivatives
from .dynamics.compliant_contact import ContactPoints as ContactPoints
from .dynamics.compliant_contact import contact_energy as contact_energy
from .dynamics.compliant_contact import contact_points as contact_points
from .dynamics.compliant_contact import contact_wrenches as contact_wrenches
from .dynamics.derivatives import difference_derivatives as difference_derivatives
from .dynamics.derivatives import forward_dynamics_derivatives as forward_dynamics_derivatives
from .dynamics.derivatives import integrate_derivatives as integrate_derivatives
from .dynamics.derivatives import inverse_dynamics_derivatives as inverse_dynamics_derivatives
from .dynamics.derivatives import inverse_dynamics_second_derivatives as inverse_dynamics_second_derivatives
from .dynamics.derivatives import jacobian_derivatives as jacobian_derivatives
from .dynamics.derivatives import jacobian_of as jacobian_of
from .dynamics.derivatives import jacobian_rate as jacobian_rate
from .dynamics.derivatives import jacobian_second_rate as jacobian_second_rate
from .dynamics.derivatives import jvp_of as jvp_of
from .dynamics.derivatives import step_derivatives as step_derivatives
from .dynamics.derivatives import vjp_of as vjp_of
from .dynamics.force_elements import activation_rates as activation_rates
from .dynamics.force_elements import actuator_forces as actuator_forces
from .dynamics.force_elements import joint_force_derivatives as joint_force_derivatives
from .dynamics.force_elements import joint_forces as joint_forces
from .dynamics.formulas import symbolic as symbolic
from .dynamics.frames import delassus_matrix as delassus_matrix
from .dynamics.frames import effective_inertia as effective_inertia
from .dynamics.frames import frame_acceleration as frame_acceleration
from .dynamics.frames import frame_velocity as frame_velocity
from .dynamics.frames import jacobian_rate_times_velocity as jacobian_rate_times_velocity
from .dynamics.frames import manipulability as manipulability
from .dynamics.frames import operational_inertia as operational_inertia
from .dynamics.frames import wrenches_at as wrenches_at
from .dynamics.held_contacts import hold_contacts as hold_contacts
from .dynamics.held_contacts import hold_frames as hold_frames
from .dynamics.identification import BaseParameters as BaseParameters
from .dynamics.identification import base_parameters as base_parameters
from .dynamics.identification import inertial_parameters as inertial_parameters
from .dynamics.identification import regressor as regressor
from .dynamics.identification import rotor_inertias as rotor_inertias
from .dynamics.passive import Passive as Passive
from .dynamics.physical_bodies import physical_parameters as physical_parameters
from .dynamics.placing import place_on_ground as place_on_ground
from .dynamics.second_derivatives import forward_dynamics_second_derivatives as forward_dynamics_second_derivatives
from .dynamics.state_checks import check_state as check_state
from .dynamics.trees import acceleration_parts as acceleration_parts
from .dynamics.trees import bias_force as bias_force
from .dynamics.trees import center_of_mass as center_of_mass
from .dynamics.trees import coordinate_rates as coordinate_rates
from .dynamics.trees import coriolis_matrix as coriolis_matrix
from .dynamics.trees import difference as difference
from .dynamics.trees import forward_dynamics as forward_dynamics
from .dynamics.trees import forward_link_accelerations as forward_link_accelerations
from .dynamics.trees import frame_pose as frame_pose
from .dynamics.trees import gravity_force as gravity_force
from .dynamics.trees import integrate as integrate
from .dynamics.trees import interpolate as interpolate
from .dynamics.trees import inverse_dynamics as inverse_dynamics
from .dynamics.trees import jacobian as jacobian
from .dynamics.trees import joint_wrenches as joint_wrenches
from .dynamics.trees import kinetic_energy as kinetic_energy
from .dynamics.trees import link_accelerations as link_accelerations
from .dynamics.trees import link_poses as link_poses
from .dynamics.trees import link_velocities as link_velocities
from .dynamics.trees import mass_matrix as mass_matrix
from .dynamics.trees import mass_matrix_derivatives as mass_matrix_derivatives
from .dynamics.trees import mass_matrix_inverse as mass_matrix_inverse
from .dynamics.trees import momentum as momentum
from .dynamics.trees import neutral as neutral
from .dynamics.trees import potential_energy as potential_energy
from .dynamics.trees import random_state as random_state
from .dynamics.trees import static_forces as static_forces
from .kinematics import se3 as se3
from .kinematics import so3 as so3
from .kinematics.branches import inverse_kinematics_branches as inverse_kinematics_branches
from .kinematics.inverse import InverseKinematics as InverseKinematics
from .kinematics.inverse import InverseKinematicsError as InverseKinematicsError
from .kinematics.inverse import inverse_kinematics as inverse_kinematics
from .kinematics.targets import CenterOfMassTarget as CenterOfMassTarget
from .kinematics.targets import FrameTarget as FrameTarget
from .linearization.equilibrium import find_equilibrium as find_equilibrium
from .linearization.linearize import linearize as linearize
from .linearization.state_space import StateSpace as StateSpace
from .mechanics import operators as operators
from .mechanics import scalar as scalar
from .mechanics.algorithms.algorithm import Algorithm as Algorithm
from .mechanics.algorithms.catalogue import algorithms as algorithms
from .mechanics.algorithms.catalogue import register_integrator as register_integrator
from .mechanics.algorithms.integration import Splitting as Splitting
from .mechanics.algorithms.integration import Tableau as Tableau
from .mechanics.contacts.ball import Ball as Ball
from .mechanics.contacts.distance import Distance as Distance
from .mechanics.contacts.knife_edge import KnifeEdge as KnifeEdge
from .mechanics.contacts.wheel import Wheel as Wheel
from .mechanics.joints.cylindrical import Cylindrical as Cylindrical
from .mechanics.joints.fixed import Fixed as Fixed
from .mechanics.joints.floating import Floating as Floating
from .mechanics.joints.helical import Helical as Helical
from .mechanics.joints.pin_in_slot import PinInSlot as PinInSlot
from .mechanics.joints.planar import Planar as Planar
from .mechanics.joints.prismatic import Prismatic as Prismatic
from .mechanics.joints.protocol import Joint as Joint
from .mechanics.joints.revolute import Revolute as Revolute
from .mechanics.joints.spherical import Spherical as Spherical
from .mechanics.joints.universal import Universal as Universal
from .mechanism import library as mechanisms
from .mechanism.annotation import Note as Note
from .mechanism.builder import Builder as Builder
from .mechanism.checks import InertiaWarning as InertiaWarning
from .mechanism.checks import LimitWarning as LimitWarning
from .mechanism.checks import MechanismError as MechanismError
from .mechanism.checks import MechanismWarning as MechanismWarning
from .mechanism.checks import MissingConstraintWarning as MissingConstraintWarning
from .mechanism.checks import OmissionWarning as OmissionWarning
from .mechanism.checks import PenetrationWarning as PenetrationWarning
from .mechanism.dh import from_dh as from_dh
from .mechanism.dh_tables import DHTable as DHTable
from .mechanism.dh_tables import dh_table as dh_table
from .mechanism.drives import Drive as Drive
from .mechanism.elements import Actuator as Actuator
from .mechanism.elements import EffortRange as EffortRange
from .mechanism.elements import FluidForce as FluidForce
from .mechanism.elements import GravityCompensation as GravityCompensation
from .mechanism.elements import Tendon as Tendon
from .mechanism.looks import Look as Look
from .mechanism.model import Mechanism as Mechanism
from .mechanism.parts import Coupling as Coupling
from .mechanism.parts import Limits as Limits
from .mechanism.parts import Loop as Loop
from .mechanism.parts import Mimic as Mimic
from .mechanism.poses import pose as pose
from .mechanism.shapes import ContactLaw as ContactLaw
from .mechanism.shapes import ContactPair as ContactPair
from .mechanism.shapes import Shape as Shape
from .motion import events as events
from .motion.simulation import SimulationError as SimulationError
from .motion.simulation import simulate as simulate
from .motion.trajectory import Trajectory as Trajectory
from .motion.trajectory import load_trajectory as load_trajectory
from .readers import load as load
from .readers import register_reader as register_reader
from .readers.dh_table import load_dh as load_dh
from .readers.meshes import load_mesh as load_mesh
from .readers.meshes.surface import Surface as Surface
from .readers.srdf import load_srdf as load_srdf
from .simulation.functions import held as held
from .simulation.rollout_gradients import rollout_vjp as rollout_vjp
from .simulation.rollouts import rollout as rollout
from .simulation.step_kernels import step_kernel as step_kernel
from .simulation.step_matrices import rollout_derivatives as rollout_derivatives
from .simulation.steps import rollout_methods as rollout_methods
from .trajectories.files import load_motion as load_motion
from .viewer.browser import view as view

__version__: str
__all__ = [
    "Actuator",
    "Algorithm",
    "Ball",
    "BaseParameters",
    "Builder",
    "CenterOfMassTarget",
    "ContactLaw",
    "ContactPair",
    "ContactPoints",
    "Coupling",
    "Cylindrical",
    "DHTable",
    "DTYPES",
    "Distance",
    "Drive",
    "EffortRange",
    "Fixed",
    "Floating",
    "FluidForce",
    "FormulaError",
    "Formulas",
    "FrameTarget",
    "GravityCompensation",
    "Helical",
    "InertiaWarning",
    "InverseKinematics",
    "InverseKinematicsError",
    "Joint",
    "Kernel",
    "KernelError",
    "KnifeEdge",
    "LANGUAGES",
    "LimitWarning",
    "Limits",
    "Look",
    "Loop",
    "Mechanism",
    "MechanismError",
    "MechanismWarning",
    "Mimic",
    "MissingConstraintWarning",
    "Note",
    "OmissionWarning",
    "Passive",
    "PenetrationWarning",
    "PinInSlot",
    "Planar",
    "Prismatic",
    "Revolute",
    "Shape",
    "SimulationError",
    "Spherical",
    "Splitting",
    "StateSpace",
    "Surface",
    "TARGETS",
    "Tableau",
    "Target",
    "Tendon",
    "Trajectory",
    "Universal",
    "Wheel",
    "__version__",
    "acceleration_parts",
    "activation_rates",
    "actuator_forces",
    "algorithms",
    "base_parameters",
    "bias_force",
    "c_file",
    "cache",
    "center_of_mass",
    "center_of_mass_acceleration",
    "center_of_mass_jacobian",
    "center_of_mass_velocity",
    "centroidal_momentum",
    "centroidal_momentum_matrix",
    "centroidal_momentum_matrix_rate",
    "centroidal_momentum_rate",
    "check_state",
    "compile",
    "computed_torque",
    "configuration",
    "constraints",
    "contact_energy",
    "contact_points",
    "contact_wrenches",
    "coordinate_rates",
    "coriolis_matrix",
    "decoupled_tracking",
    "delassus_matrix",
    "denoc",
    "dh_table",
    "diagonal",
    "difference",
    "difference_derivatives",
    "effective_inertia",
    "estimation",
    "events",
    "export_c",
    "find_equilibrium",
    "forward_dynamics",
    "forward_dynamics_derivatives",
    "forward_dynamics_second_derivatives",
    "forward_link_accelerations",
    "frame_acceleration",
    "frame_pose",
    "frame_velocity",
    "from_dh",
    "get_num_threads",
    "get_single_call_shortcut",
    "gravity_force",
    "held",
    "hold_contacts",
    "hold_frames",
    "inertial_parameters",
    "integrate",
    "integrate_derivatives",
    "interop",
    "interpolate",
    "inverse_dynamics",
    "inverse_dynamics_derivatives",
    "inverse_dynamics_second_derivatives",
    "inverse_kinematics",
    "inverse_kinematics_branches",
    "jacobian",
    "jacobian_derivatives",
    "jacobian_of",
    "jacobian_rate",
    "jacobian_rate_times_velocity",
    "jacobian_second_rate",
    "joint_feedback",
    "joint_force_derivatives",
    "joint_forces",
    "joint_wrenches",
    "joint_wrenches_derivatives",
    "jvp_of",
    "kinetic_energy",
    "linearization",
    "linearize",
    "link_accelerations",
    "link_poses",
    "link_velocities",
    "linkages",
    "load",
    "load_dh",
    "load_mesh",
    "load_motion",
    "load_srdf",
    "load_trajectory",
    "lqr",
    "manipulability",
    "mass_matrix",
    "mass_matrix_derivatives",
    "mass_matrix_inverse",
    "mechanisms",
    "momenta",
    "momentum",
    "momentum_matrix",
    "momentum_rate",
    "neutral",
    "operational_inertia",
    "operational_space_control",
    "operators",
    "physical_parameters",
    "place_on_ground",
    "pose",
    "potential_energy",
    "progress",
    "random_state",
    "register_integrator",
    "register_reader",
    "register_target",
    "regressor",
    "rollout",
    "rollout_derivatives",
    "rollout_methods",
    "rollout_vjp",
    "rotor_inertias",
    "saturated",
    "scalar",
    "se3",
    "set_num_threads",
    "set_single_call_shortcut",
    "simulate",
    "so3",
    "static_forces",
    "step_derivatives",
    "step_kernel",
    "studies",
    "symbolic",
    "trajectories",
    "view",
    "viewer",
    "vjp_of",
    "wrenches_at",
]
