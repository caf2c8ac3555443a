"""Public array functions and their algorithms, for ``compile(linkwise.forward_dynamics, mech)``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

OPTION_ALIASES = {"name": "link", "independent": "independent_velocities"}  # synonyms of options
TARGET_ALIASES = {"gpu": "cuda"}  # synonyms of targets
NAME_ALIASES = {"rnea": "inverse_dynamics", "aba": "forward_dynamics", "crba": "mass_matrix"}  # synonyms of algorithms
#: Names of Pinocchio's and MuJoCo's functions with their linkwise equivalents; these count as well.
OTHER_LIBRARIES = {
    "nonLinearEffects": "bias_force",
    "computeGeneralizedGravity": "gravity_force",
    "computeStaticTorque": "static_forces",
    "computeCoriolisMatrix": "coriolis_matrix",
    "computeMinverse": "mass_matrix_inverse",
    "computeRNEADerivatives": "inverse_dynamics_derivatives",
    "computeABADerivatives": "forward_dynamics_derivatives",
    "computeJointTorqueRegressor": "estimation.regressor",
    "forwardKinematics": "link_poses",
    "framesForwardKinematics": "frame_pose",
    "updateFramePlacements": "frame_pose",
    "computeFrameJacobian": "jacobian",
    "getFrameJacobian": "jacobian",
    "computeJointJacobian": "jacobian",
    "computeJointJacobians": "jacobian, of one link after the other",
    "computeJointJacobiansTimeVariation": "derivatives.jacobian_rate",
    "getFrameJacobianTimeVariation": "derivatives.jacobian_rate",
    "constraintDynamics": "forward_dynamics, of what linkwise.contact.hold_frames makes",
    "computeConstraintDynamicsDerivatives": "forward_dynamics_derivatives",
    "impulseDynamics": "contact.impact",
    "RigidConstraintModel": "contact.hold_frames, or linkwise.constraints.Loop",
    "dIntegrate": "derivatives.integrate_derivatives",
    "dDifference": "derivatives.difference_derivatives",
    "Jlog3": "kinematics.so3.log_jacobian",
    "Jlog6": "kinematics.se3.log_jacobian",
    "Jexp3": "kinematics.so3.exp_jacobian",
    "Jexp6": "kinematics.se3.exp_jacobian",
    "skew": "kinematics.so3.skew",
    "appendModel": "Mechanism.with_mechanism",
    "squaredDistance": "difference, squared",
    "distance": "difference, of which that is the length",
    "isSameConfiguration": "difference, which is then zero",
    "normalize": "integrate, by nothing for no time",
    "computeMechanicalEnergy": "kinetic_energy and linkwise.potential_energy",
    "computeTotalMass": "Mechanism.parameters.masses",
    "computeGeneralizedGravityDerivatives": "inverse_dynamics_derivatives, at rest",
    "computeForwardKinematicsDerivatives": "jacobian_of(linkwise.compile('frame_velocity', mech, link=...), 'q')",
    "computeJointKinematicHessians": "derivatives.jacobian_derivatives",
    "getConstraintJacobian": "constraints.constraint_jacobian",
    "nle": "bias_force",
    "rneaInParallel": "inverse_dynamics, of rows of states",
    "abaInParallel": "forward_dynamics, of rows of states",
    "forwardDynamics": "forward_dynamics, of what linkwise.contact.hold_frames makes",
    "lcaba": "forward_dynamics",
    "contactInverseDynamics": "inverse_dynamics, of what linkwise.contact.hold_frames makes",
    "computeDelassusMatrix": "constraints.constraint_jacobian G and linkwise.mass_matrix_inverse: G M^-1 G*",
    "getConstraintsJacobian": "constraints.constraint_jacobian",
    "getVelocity": "link_velocities",
    "getAcceleration": "link_accelerations",
    "getClassicalAcceleration": "frame_acceleration(..., classical=True)",
    "getCoriolisMatrix": "coriolis_matrix",
    "getJointJacobian": "jacobian",
    "getJointJacobianTimeVariation": "derivatives.jacobian_rate",
    "frameJacobianTimeVariation": "derivatives.jacobian_rate",
    "getJointKinematicHessian": "derivatives.jacobian_derivatives",
    "getFrameKinematicHessian": "derivatives.jacobian_derivatives",
    "getFrameVelocityDerivatives": "jacobian_of(linkwise.compile('frame_velocity', mech, link=...), 'q')",
    "getFrameAccelerationDerivatives": "jacobian_of(linkwise.compile('frame_acceleration', mech, link=...), 'q')",
    "computeCentroidalDynamicsDerivatives": "jacobian_of(linkwise.compile('centroidal_momentum_rate', mech), 'q')",
    "computeCentroidalMapTimeVariation": "centroidal.centroidal_momentum_matrix_rate",
    "computeStaticTorqueDerivatives": "inverse_dynamics_derivatives, at rest",
    "computeStaticRegressor": "estimation.regressor, at rest",
    "computeSubtreeMasses": "Mechanism.parameters.masses of Mechanism.tree.subtree",
    "updateFramePlacement": "frame_pose",
    "updateGlobalPlacements": "link_poses",
    "tangentMap": "kinematics.coordinate_rates, which multiplies by it",
    "computeCollisions": "contact.contact_points, of simple shapes and pairs of Mechanism.with_contact",
    "computeDistance": "contact.contact_points, whose gaps are those of Mechanism.with_contact",
    "computeDistances": "contact.contact_points, whose gaps are those of Mechanism.with_contact",
    "buildModelFromMJCF": "load",
    "loadReferenceConfigurationsFromXML": "files.load_srdf",
    "loadRotorParameters": "Mechanism.parameters.with_armature",
    "transformJointIntoMimic": "Mimic, of a joint of linkwise.Builder",
    "JointModelPlanar": "Planar, or linkwise.load(..., floating_base=linkwise.Planar())",
    "log6": "kinematics.se3.log",
    "exp6": "kinematics.se3.exp",
    "log3": "kinematics.so3.log",
    "exp3": "kinematics.so3.exp",
    "SE3": "kinematics.se3.pose, or linkwise.pose",
    "JointModelFreeFlyer": "Floating, or linkwise.load(..., floating_base=True)",
    "loadReferenceConfigurations": "files.load_srdf",
    "getFrameVelocity": "frame_velocity",
    "getFrameAcceleration": "frame_acceleration",
    "getFrameClassicalAcceleration": "frame_acceleration(..., classical=True)",
    "forward_kinematics": "frame_pose or linkwise.link_poses",
    "fk": "frame_pose or linkwise.link_poses",
    "ik": "inverse_kinematics",
    "gravity": "gravity_force",
    "gravity_vector": "gravity_force",
    "inertia_matrix": "mass_matrix",
    "coriolis": "coriolis_matrix or linkwise.bias_force",
    "computeCentroidalMomentumTimeVariation": "centroidal.centroidal_momentum_rate",
    "dccrba": "centroidal.centroidal_momentum_matrix_rate",
    "centerOfMass": "center_of_mass",
    "jacobianCenterOfMass": "centroidal.center_of_mass_jacobian",
    "computeCentroidalMomentum": "centroidal.centroidal_momentum",
    "ccrba": "centroidal.centroidal_momentum_matrix",
    "computeCentroidalMap": "centroidal.centroidal_momentum_matrix",
    "computeKineticEnergy": "kinetic_energy",
    "computePotentialEnergy": "potential_energy",
    "randomConfiguration": "random_state, the first of what that gives",
    "random_configuration": "random_state, the first of what that gives",
    "attach": "Mechanism.with_mechanism",
    "buildModelFromUrdf": "load",
    "buildModelFromXML": "load",
    "buildReducedModel": "Mechanism.with_locked",
    "MjModel": "Mechanism, from linkwise.load",
    "computeAllTerms": "mass_matrix, linkwise.jacobian, linkwise.bias_force and so on, one by one",
    "mj_forward": "forward_dynamics",
    "mj_inverse": "inverse_dynamics",
    "mj_step": "simulate or linkwise.rollout",
    "mj_fullM": "mass_matrix",
    "mj_jac": "jacobian",
    "mj_jacBody": "jacobian",
    "mj_integratePos": "integrate",
    "mj_differentiatePos": "difference",
    "mjd_transitionFD": "linearize",
    "Hinge": "Revolute",
    "Pin": "Revolute",
    "Slider": "Prismatic",
    "Slide": "Prismatic",
    "BallJoint": "Spherical",
    "Screw": "Helical",
    "Gear": "Mimic, of a joint of linkwise.Builder, or Builder.coupling",
    "Spring": "forces.Passive.springs at joints, or linkwise.forces.Passive.spring_between two points",
    "Damper": "forces.Passive.dampers at joints, or linkwise.forces.Passive.damper_between two points",
    "Motor": "forces.Actuator",
    "export": "export_c",
    "formulas": "codegen.symbolic",
}


@dataclass(frozen=True)
class ArrayFunction:
    """The algorithm of a public function, or advice on what to compile instead.

    gives   converts the kernel's result to the function's result, if they differ
    """

    algorithm: str | None
    advice: str = ""
    gives: Callable[[Any], Any] | None = None


_MADE: dict[Callable[..., Any], ArrayFunction] = {}
Function = TypeVar("Function", bound=Callable[..., Any])


def array_function(function: Callable[..., Any]) -> ArrayFunction | None:
    """The registered entry of a public function; None for other functions."""
    try:
        return _MADE.get(function)
    except TypeError:  # an unhashable callable
        return None


def register(function: Function, known: ArrayFunction) -> Function:
    """Register the entry of a public function."""
    _MADE[function] = known
    return function


def compile_instead(advice: str) -> Callable[[Function], Function]:
    """Register advice on what to compile instead of a function that runs more than one algorithm."""

    def note(function: Function) -> Function:
        return register(function, ArrayFunction(None, f"compile {advice}"))

    return note
