"""The spatial operator algebra of multibody dynamics, compiled link by link.  Written by tools/stub.py."""

from abc import ABCMeta
from typing import Any

from typing_extensions import deprecated

from . import codegen as codegen
from . import constraints as constraints
from . import contact as contact
from . import control as control
from . import derivatives as derivatives
from . import estimation as estimation
from . import extend as extend
from . import files as files
from . import forces as forces
from . import formulations as formulations
from . import interop as interop
from . import kinematics as kinematics
from . import linkages as linkages
from . import motion as motion
from . import studies as studies
from . import trajectories as trajectories
from . import viewer as viewer
from .compiler.export import export_c as export_c
from .compiler.kernel import Kernel as Kernel
from .compiler.pipeline import compile as compile
from .compiler.runtime.explanations import KernelError as KernelError
from .dynamics import centroidal as centroidal
from .dynamics.by_joint import configuration as configuration
from .dynamics.derivatives import forward_dynamics_derivatives as forward_dynamics_derivatives
from .dynamics.derivatives import inverse_dynamics_derivatives as inverse_dynamics_derivatives
from .dynamics.derivatives import jacobian_of as jacobian_of
from .dynamics.derivatives import jvp_of as jvp_of
from .dynamics.derivatives import vjp_of as vjp_of
from .dynamics.frames import frame_acceleration as frame_acceleration
from .dynamics.frames import frame_velocity as frame_velocity
from .dynamics.trees import bias_force as bias_force
from .dynamics.trees import center_of_mass as center_of_mass
from .dynamics.trees import coriolis_matrix as coriolis_matrix
from .dynamics.trees import difference as difference
from .dynamics.trees import forward_dynamics as forward_dynamics
from .dynamics.trees import frame_pose as frame_pose
from .dynamics.trees import gravity_force as gravity_force
from .dynamics.trees import integrate as integrate
from .dynamics.trees import inverse_dynamics as inverse_dynamics
from .dynamics.trees import jacobian as jacobian
from .dynamics.trees import joint_wrenches as joint_wrenches
from .dynamics.trees import kinetic_energy as kinetic_energy
from .dynamics.trees import link_accelerations as link_accelerations
from .dynamics.trees import link_poses as link_poses
from .dynamics.trees import link_velocities as link_velocities
from .dynamics.trees import mass_matrix as mass_matrix
from .dynamics.trees import mass_matrix_inverse as mass_matrix_inverse
from .dynamics.trees import momentum as momentum
from .dynamics.trees import neutral as neutral
from .dynamics.trees import potential_energy as potential_energy
from .dynamics.trees import random_state as random_state
from .dynamics.trees import static_forces as static_forces
from .kinematics.inverse import inverse_kinematics as inverse_kinematics
from .linearization.equilibrium import find_equilibrium as find_equilibrium
from .linearization.linear_models import linearize as linearize
from .mechanics import operators as operators
from .mechanics.algorithms.catalogue import algorithms as algorithms
from .mechanics.joints.cylindrical import Cylindrical as Cylindrical
from .mechanics.joints.fixed import Fixed as Fixed
from .mechanics.joints.floating import Floating as Floating
from .mechanics.joints.helical import Helical as Helical
from .mechanics.joints.pin_in_slot import PinInSlot as PinInSlot
from .mechanics.joints.planar import Planar as Planar
from .mechanics.joints.prismatic import Prismatic as Prismatic
from .mechanics.joints.revolute import Revolute as Revolute
from .mechanics.joints.spherical import Spherical as Spherical
from .mechanics.joints.universal import Universal as Universal
from .mechanism import library as mechanisms
from .mechanism.builder import Builder as Builder
from .mechanism.checks import MechanismError as MechanismError
from .mechanism.checks import MechanismWarning as MechanismWarning
from .mechanism.dh import from_dh as from_dh
from .mechanism.model import Mechanism as Mechanism
from .mechanism.parts import Limits as Limits
from .mechanism.parts import Mimic as Mimic
from .mechanism.poses import pose as pose
from .motion.rollout import rollout as rollout
from .motion.simulation import SimulationError as SimulationError
from .motion.simulation import simulate as simulate
from .motion.trajectory import Trajectory as Trajectory
from .readers import load as load
from .viewer.browser import view as view

__version__: str
__all__ = [
    "Builder",
    "Cylindrical",
    "Fixed",
    "Floating",
    "Helical",
    "Kernel",
    "KernelError",
    "Limits",
    "Mechanism",
    "MechanismError",
    "MechanismWarning",
    "Mimic",
    "PinInSlot",
    "Planar",
    "Prismatic",
    "Revolute",
    "SimulationError",
    "Spherical",
    "Trajectory",
    "Universal",
    "__version__",
    "algorithms",
    "bias_force",
    "center_of_mass",
    "centroidal",
    "codegen",
    "compile",
    "configuration",
    "constraints",
    "contact",
    "control",
    "coriolis_matrix",
    "derivatives",
    "difference",
    "estimation",
    "export_c",
    "extend",
    "files",
    "find_equilibrium",
    "forces",
    "formulations",
    "forward_dynamics",
    "forward_dynamics_derivatives",
    "frame_acceleration",
    "frame_pose",
    "frame_velocity",
    "from_dh",
    "gravity_force",
    "integrate",
    "interop",
    "inverse_dynamics",
    "inverse_dynamics_derivatives",
    "inverse_kinematics",
    "jacobian",
    "jacobian_of",
    "joint_wrenches",
    "jvp_of",
    "kinematics",
    "kinetic_energy",
    "linearize",
    "link_accelerations",
    "link_poses",
    "link_velocities",
    "linkages",
    "load",
    "mass_matrix",
    "mass_matrix_inverse",
    "mechanisms",
    "momentum",
    "motion",
    "neutral",
    "operators",
    "pose",
    "potential_energy",
    "random_state",
    "rollout",
    "simulate",
    "static_forces",
    "studies",
    "trajectories",
    "view",
    "viewer",
    "vjp_of",
]

def _within(name: str) -> str: ...

@deprecated("it is linkwise.forces.Actuator now")
class Actuator(forces.Actuator): ...

@deprecated("it is linkwise.extend.Algorithm now")
class Algorithm(extend.Algorithm): ...

@deprecated("it is linkwise.contact.Ball now")
class Ball(contact.Ball): ...

@deprecated("it is linkwise.estimation.BaseParameters now")
class BaseParameters(estimation.BaseParameters): ...

@deprecated("it is linkwise.kinematics.CenterOfMassTarget now")
class CenterOfMassTarget(kinematics.CenterOfMassTarget): ...

@deprecated("it is linkwise.contact.ContactLaw now")
class ContactLaw(contact.ContactLaw): ...

@deprecated("it is linkwise.contact.ContactPair now")
class ContactPair(contact.ContactPair): ...

@deprecated("it is linkwise.contact.ContactPoints now")
class ContactPoints(contact.ContactPoints): ...

@deprecated("it is linkwise.constraints.Coupling now")
class Coupling(constraints.Coupling): ...

@deprecated("it is linkwise.files.DHTable now")
class DHTable(files.DHTable): ...

@deprecated("it is linkwise.contact.Distance now")
class Distance(contact.Distance): ...

@deprecated("it is linkwise.constraints.Drive now")
class Drive(constraints.Drive): ...

@deprecated("it is linkwise.forces.EffortRange now")
class EffortRange(forces.EffortRange): ...

@deprecated("it is linkwise.forces.FluidForce now")
class FluidForce(forces.FluidForce): ...

@deprecated("it is linkwise.codegen.FormulaError now")
class FormulaError(codegen.FormulaError): ...

@deprecated("it is linkwise.codegen.Formulas now")
class Formulas(codegen.Formulas): ...

@deprecated("it is linkwise.kinematics.FrameTarget now")
class FrameTarget(kinematics.FrameTarget): ...

@deprecated("it is linkwise.forces.GravityCompensation now")
class GravityCompensation(forces.GravityCompensation): ...

@deprecated("it is linkwise.files.InertiaWarning now")
class InertiaWarning(files.InertiaWarning): ...

@deprecated("it is linkwise.kinematics.InverseKinematics now")
class InverseKinematics(kinematics.InverseKinematics): ...

@deprecated("it is linkwise.kinematics.InverseKinematicsError now")
class InverseKinematicsError(kinematics.InverseKinematicsError): ...

@deprecated("it is linkwise.extend.Joint now")
class Joint(extend.Joint, metaclass=ABCMeta): ...

@deprecated("it is linkwise.contact.KnifeEdge now")
class KnifeEdge(contact.KnifeEdge): ...

@deprecated("it is linkwise.motion.LimitWarning now")
class LimitWarning(motion.LimitWarning): ...

@deprecated("it is linkwise.files.Look now")
class Look(files.Look): ...

@deprecated("it is linkwise.constraints.Loop now")
class Loop(constraints.Loop): ...

@deprecated("it is linkwise.files.MissingConstraintWarning now")
class MissingConstraintWarning(files.MissingConstraintWarning): ...

@deprecated("it is linkwise.files.Note now")
class Note(files.Note): ...

@deprecated("it is linkwise.files.OmissionWarning now")
class OmissionWarning(files.OmissionWarning): ...

@deprecated("it is linkwise.forces.Passive now")
class Passive(forces.Passive): ...

@deprecated("it is linkwise.contact.PenetrationWarning now")
class PenetrationWarning(contact.PenetrationWarning): ...

@deprecated("it is linkwise.contact.Shape now")
class Shape(contact.Shape): ...

@deprecated("it is linkwise.extend.Splitting now")
class Splitting(extend.Splitting): ...

@deprecated("it is linkwise.control.StateSpace now")
class StateSpace(control.StateSpace): ...

@deprecated("it is linkwise.files.Surface now")
class Surface(files.Surface): ...

@deprecated("it is linkwise.extend.Tableau now")
class Tableau(extend.Tableau): ...

@deprecated("it is linkwise.extend.Target now")
class Target(extend.Target): ...

@deprecated("it is linkwise.forces.Tendon now")
class Tendon(forces.Tendon): ...

@deprecated("it is linkwise.contact.Wheel now")
class Wheel(contact.Wheel): ...

@deprecated("it is linkwise.kinematics.acceleration_parts now")
def acceleration_parts(*args: Any, **kwargs: Any) -> Any: ...
@deprecated("it is linkwise.forces.activation_rates now")
def activation_rates(*args: Any, **kwargs: Any) -> Any: ...
@deprecated("it is linkwise.forces.actuator_forces now")
def actuator_forces(*args: Any, **kwargs: Any) -> Any: ...
@deprecated("it is linkwise.estimation.base_parameters now")
def base_parameters(*args: Any, **kwargs: Any) -> Any: ...
@deprecated("it is linkwise.codegen.c_file now")
def c_file(*args: Any, **kwargs: Any) -> Any: ...
@deprecated("it is linkwise.centroidal.center_of_mass_acceleration now")
def center_of_mass_acceleration(*args: Any, **kwargs: Any) -> Any: ...
@deprecated("it is linkwise.centroidal.center_of_mass_jacobian now")
def center_of_mass_jacobian(*args: Any, **kwargs: Any) -> Any: ...
@deprecated("it is linkwise.centroidal.center_of_mass_velocity now")
def center_of_mass_velocity(*args: Any, **kwargs: Any) -> Any: ...
@deprecated("it is linkwise.centroidal.centroidal_momentum now")
def centroidal_momentum(*args: Any, **kwargs: Any) -> Any: ...
@deprecated("it is linkwise.centroidal.centroidal_momentum_matrix now")
def centroidal_momentum_matrix(*args: Any, **kwargs: Any) -> Any: ...
@deprecated("it is linkwise.centroidal.centroidal_momentum_matrix_rate now")
def centroidal_momentum_matrix_rate(*args: Any, **kwargs: Any) -> Any: ...
@deprecated("it is linkwise.centroidal.centroidal_momentum_rate now")
def centroidal_momentum_rate(*args: Any, **kwargs: Any) -> Any: ...
@deprecated("it is linkwise.motion.check_state now")
def check_state(*args: Any, **kwargs: Any) -> Any: ...
@deprecated("it is linkwise.control.computed_torque now")
def computed_torque(*args: Any, **kwargs: Any) -> Any: ...
@deprecated("it is linkwise.contact.contact_energy now")
def contact_energy(*args: Any, **kwargs: Any) -> Any: ...
@deprecated("it is linkwise.contact.contact_points now")
def contact_points(*args: Any, **kwargs: Any) -> Any: ...
@deprecated("it is linkwise.contact.contact_wrenches now")
def contact_wrenches(*args: Any, **kwargs: Any) -> Any: ...
@deprecated("it is linkwise.kinematics.coordinate_rates now")
def coordinate_rates(*args: Any, **kwargs: Any) -> Any: ...
@deprecated("it is linkwise.control.decoupled_tracking now")
def decoupled_tracking(*args: Any, **kwargs: Any) -> Any: ...
@deprecated("it is linkwise.contact.delassus_matrix now")
def delassus_matrix(*args: Any, **kwargs: Any) -> Any: ...
@deprecated("it is linkwise.files.dh_table now")
def dh_table(*args: Any, **kwargs: Any) -> Any: ...
@deprecated("it is linkwise.derivatives.difference_derivatives now")
def difference_derivatives(*args: Any, **kwargs: Any) -> Any: ...
@deprecated("it is linkwise.control.effective_inertia now")
def effective_inertia(*args: Any, **kwargs: Any) -> Any: ...
@deprecated("it is linkwise.derivatives.forward_dynamics_second_derivatives now")
def forward_dynamics_second_derivatives(*args: Any, **kwargs: Any) -> Any: ...
@deprecated("it is linkwise.kinematics.forward_link_accelerations now")
def forward_link_accelerations(*args: Any, **kwargs: Any) -> Any: ...
@deprecated("it is linkwise.codegen.get_num_threads now")
def get_num_threads(*args: Any, **kwargs: Any) -> Any: ...
@deprecated("it is linkwise.codegen.get_single_call_shortcut now")
def get_single_call_shortcut(*args: Any, **kwargs: Any) -> Any: ...
@deprecated("it is linkwise.motion.held now")
def held(*args: Any, **kwargs: Any) -> Any: ...
@deprecated("it is linkwise.contact.hold_contacts now")
def hold_contacts(*args: Any, **kwargs: Any) -> Any: ...
@deprecated("it is linkwise.contact.hold_frames now")
def hold_frames(*args: Any, **kwargs: Any) -> Any: ...
@deprecated("it is linkwise.estimation.inertial_parameters now")
def inertial_parameters(*args: Any, **kwargs: Any) -> Any: ...
@deprecated("it is linkwise.derivatives.integrate_derivatives now")
def integrate_derivatives(*args: Any, **kwargs: Any) -> Any: ...
@deprecated("it is linkwise.kinematics.interpolate now")
def interpolate(*args: Any, **kwargs: Any) -> Any: ...
@deprecated("it is linkwise.derivatives.inverse_dynamics_second_derivatives now")
def inverse_dynamics_second_derivatives(*args: Any, **kwargs: Any) -> Any: ...
@deprecated("it is linkwise.kinematics.inverse_kinematics_branches now")
def inverse_kinematics_branches(*args: Any, **kwargs: Any) -> Any: ...
@deprecated("it is linkwise.derivatives.jacobian_derivatives now")
def jacobian_derivatives(*args: Any, **kwargs: Any) -> Any: ...
@deprecated("it is linkwise.derivatives.jacobian_rate now")
def jacobian_rate(*args: Any, **kwargs: Any) -> Any: ...
@deprecated("it is linkwise.kinematics.jacobian_rate_times_velocity now")
def jacobian_rate_times_velocity(*args: Any, **kwargs: Any) -> Any: ...
@deprecated("it is linkwise.derivatives.jacobian_second_rate now")
def jacobian_second_rate(*args: Any, **kwargs: Any) -> Any: ...
@deprecated("it is linkwise.control.joint_feedback now")
def joint_feedback(*args: Any, **kwargs: Any) -> Any: ...
@deprecated("it is linkwise.derivatives.joint_force_derivatives now")
def joint_force_derivatives(*args: Any, **kwargs: Any) -> Any: ...
@deprecated("it is linkwise.forces.joint_forces now")
def joint_forces(*args: Any, **kwargs: Any) -> Any: ...
@deprecated("it is linkwise.derivatives.joint_wrenches_derivatives now")
def joint_wrenches_derivatives(*args: Any, **kwargs: Any) -> Any: ...
@deprecated("it is linkwise.files.load_dh now")
def load_dh(*args: Any, **kwargs: Any) -> Any: ...
@deprecated("it is linkwise.files.load_mesh now")
def load_mesh(*args: Any, **kwargs: Any) -> Any: ...
@deprecated("it is linkwise.files.load_motion now")
def load_motion(*args: Any, **kwargs: Any) -> Any: ...
@deprecated("it is linkwise.files.load_srdf now")
def load_srdf(*args: Any, **kwargs: Any) -> Any: ...
@deprecated("it is linkwise.files.load_trajectory now")
def load_trajectory(*args: Any, **kwargs: Any) -> Any: ...
@deprecated("it is linkwise.control.lqr now")
def lqr(*args: Any, **kwargs: Any) -> Any: ...
@deprecated("it is linkwise.kinematics.manipulability now")
def manipulability(*args: Any, **kwargs: Any) -> Any: ...
@deprecated("it is linkwise.derivatives.mass_matrix_derivatives now")
def mass_matrix_derivatives(*args: Any, **kwargs: Any) -> Any: ...
@deprecated("it is linkwise.centroidal.momentum_matrix now")
def momentum_matrix(*args: Any, **kwargs: Any) -> Any: ...
@deprecated("it is linkwise.centroidal.momentum_rate now")
def momentum_rate(*args: Any, **kwargs: Any) -> Any: ...
@deprecated("it is linkwise.control.operational_inertia now")
def operational_inertia(*args: Any, **kwargs: Any) -> Any: ...
@deprecated("it is linkwise.control.operational_space_control now")
def operational_space_control(*args: Any, **kwargs: Any) -> Any: ...
@deprecated("it is linkwise.estimation.physical_parameters now")
def physical_parameters(*args: Any, **kwargs: Any) -> Any: ...
@deprecated("it is linkwise.contact.place_on_ground now")
def place_on_ground(*args: Any, **kwargs: Any) -> Any: ...
@deprecated("it is linkwise.codegen.progress now")
def progress(*args: Any, **kwargs: Any) -> Any: ...
@deprecated("it is linkwise.extend.register_integrator now")
def register_integrator(*args: Any, **kwargs: Any) -> Any: ...
@deprecated("it is linkwise.extend.register_reader now")
def register_reader(*args: Any, **kwargs: Any) -> Any: ...
@deprecated("it is linkwise.extend.register_target now")
def register_target(*args: Any, **kwargs: Any) -> Any: ...
@deprecated("it is linkwise.estimation.regressor now")
def regressor(*args: Any, **kwargs: Any) -> Any: ...
@deprecated("it is linkwise.derivatives.rollout_derivatives now")
def rollout_derivatives(*args: Any, **kwargs: Any) -> Any: ...
@deprecated("it is linkwise.motion.rollout_methods now")
def rollout_methods(*args: Any, **kwargs: Any) -> Any: ...
@deprecated("it is linkwise.derivatives.rollout_vjp now")
def rollout_vjp(*args: Any, **kwargs: Any) -> Any: ...
@deprecated("it is linkwise.estimation.rotor_inertias now")
def rotor_inertias(*args: Any, **kwargs: Any) -> Any: ...
@deprecated("it is linkwise.control.saturated now")
def saturated(*args: Any, **kwargs: Any) -> Any: ...
@deprecated("it is linkwise.codegen.set_num_threads now")
def set_num_threads(*args: Any, **kwargs: Any) -> Any: ...
@deprecated("it is linkwise.codegen.set_single_call_shortcut now")
def set_single_call_shortcut(*args: Any, **kwargs: Any) -> Any: ...
@deprecated("it is linkwise.derivatives.step_derivatives now")
def step_derivatives(*args: Any, **kwargs: Any) -> Any: ...
@deprecated("it is linkwise.motion.step_kernel now")
def step_kernel(*args: Any, **kwargs: Any) -> Any: ...
@deprecated("it is linkwise.codegen.symbolic now")
def symbolic(*args: Any, **kwargs: Any) -> Any: ...
@deprecated("it is linkwise.forces.wrenches_at now")
def wrenches_at(*args: Any, **kwargs: Any) -> Any: ...
