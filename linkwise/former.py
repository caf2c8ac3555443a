"""Public names of version 0.1 that have moved, and their new addresses; the old names end with version 0.3."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from .mechanism import warn_caller

#: Old module, new module -> the names that moved between them; "" is the package itself.
_MOVES = {
    ("", "centroidal"): (
        "center_of_mass_acceleration center_of_mass_jacobian center_of_mass_velocity centroidal_momentum "
        "centroidal_momentum_matrix centroidal_momentum_matrix_rate centroidal_momentum_rate momentum_matrix "
        "momentum_rate"
    ),
    ("", "codegen"): (
        "DTYPES FormulaError Formulas LANGUAGES TARGETS c_file cache get_num_threads get_single_call_shortcut "
        "progress set_num_threads set_single_call_shortcut symbolic"
    ),
    ("", "constraints"): "Coupling Drive Loop",
    ("", "contact"): (
        "Ball ContactLaw ContactPair ContactPoints Distance KnifeEdge PenetrationWarning Shape Wheel contact_energy "
        "contact_points contact_wrenches delassus_matrix hold_contacts hold_frames place_on_ground"
    ),
    ("", "control"): (
        "StateSpace computed_torque decoupled_tracking effective_inertia joint_feedback lqr operational_inertia "
        "operational_space_control saturated"
    ),
    ("", "derivatives"): (
        "difference_derivatives forward_dynamics_second_derivatives integrate_derivatives "
        "inverse_dynamics_second_derivatives jacobian_derivatives jacobian_rate jacobian_second_rate "
        "joint_force_derivatives joint_wrenches_derivatives mass_matrix_derivatives rollout_derivatives rollout_vjp "
        "step_derivatives"
    ),
    ("", "estimation"): (
        "BaseParameters base_parameters inertial_parameters physical_parameters regressor rotor_inertias"
    ),
    ("", "extend"): (
        "Algorithm Joint Splitting Tableau Target register_integrator register_reader register_target scalar"
    ),
    ("", "files"): (
        "DHTable InertiaWarning Look MissingConstraintWarning Note OmissionWarning Surface dh_table load_dh load_mesh "
        "load_motion load_srdf load_trajectory"
    ),
    ("", "forces"): (
        "Actuator EffortRange FluidForce GravityCompensation Passive Tendon activation_rates actuator_forces "
        "joint_forces wrenches_at"
    ),
    ("", "formulations"): "denoc diagonal momenta",
    ("", "kinematics"): (
        "CenterOfMassTarget FrameTarget InverseKinematics InverseKinematicsError acceleration_parts coordinate_rates "
        "forward_link_accelerations interpolate inverse_kinematics_branches jacobian_rate_times_velocity "
        "manipulability se3 so3"
    ),
    ("", "motion"): "LimitWarning check_state held rollout_methods step_kernel",
    ("acting", ""): "forward_dynamics inverse_dynamics",
    ("acting", "forces"): "activation_rates actuator_forces",
    ("closed", ""): "forward_dynamics forward_dynamics_derivatives inverse_dynamics joint_wrenches static_forces",
    ("closed", "constraints"): (
        "AssemblyError ClusterRedundancy Redundancy assemble conditioning constraint_bias constraint_forces "
        "constraint_jacobian degrees_of_freedom generic_rank loop_reactions multipliers null_space position_error "
        "project redundancy"
    ),
    ("closed", "contact"): "impact impact_impulses",
    ("closed", "derivatives"): "constraint_forces_derivatives loop_reactions_derivatives multipliers_derivatives",
    ("closed", "kinematics"): (
        "ChartError Coordinates ImplicitCoordinates LocalParametrization implicit_coordinates local_parametrization "
        "time_to_singular"
    ),
    ("closed", "linkages"): (
        "DrivenMotion InstantCenters MotionPath RangeEnd RangeOfMotion SingularCurve SingularPosition Workspace "
        "driven_motion follow follow_path instant_centers mechanical_advantage range_of_motion singular_positions "
        "transmission_angle with_joint_of_loop workspace"
    ),
    ("constraints", "contact"): "impact impact_impulses",
    ("constraints", "derivatives"): "constraint_forces_derivatives loop_reactions_derivatives multipliers_derivatives",
    ("constraints", "kinematics"): (
        "ChartError Coordinates ImplicitCoordinates LocalParametrization implicit_coordinates local_parametrization "
        "time_to_singular"
    ),
    ("constraints", "linkages"): "with_joint_of_loop",
    ("linearization", ""): "find_equilibrium linearize",
    ("linearization", "control"): "Discrete Equilibrium EquilibriumError Modes StateSpace rate_jacobian",
    ("studies", "studies.distributions"): (
        "Choice Distribution FromScipy Given Grid LogNormal MultivariateNormal Normal Offset Relative Triangular "
        "Uniform WithinLimits"
    ),
}
#: Names that changed besides, or whole modules, in which all that is in them moved along.
_RENAMED = {
    "acting.derivatives": "derivatives.joint_force_derivatives",
    "acting.forces": "forces.joint_forces",
    "events": "motion",
}
#: Old name -> new name, both as they are written after ``linkwise.``
MOVED = {
    f"{old}.{name}".lstrip("."): f"{new}.{name}".lstrip(".")
    for (old, new), names in _MOVES.items()
    for name in names.split()
} | _RENAMED


def moved(name: str) -> Any:
    """The object of an old name, with a DeprecationWarning that names its new address."""
    now = MOVED[name]
    warn_caller(f"linkwise.{name} is linkwise.{now} now; the old name goes with version 0.3", DeprecationWarning)
    value: Any = sys.modules[__package__]
    for part in now.split("."):
        value = getattr(value, part)
    return value


def moved_from(module: str) -> Callable[[str], Any]:
    """``__getattr__`` of a public module from which names have moved."""

    def __getattr__(name: str) -> Any:
        if f"{module}.{name}" in MOVED:
            return moved(f"{module}.{name}")
        raise AttributeError(f"module 'linkwise.{module}' has no attribute {name!r}")

    return __getattr__


#: Modules that are gone, and where what was in them is.
GONE = {"linkwise.simulation": "linkwise.motion", "linkwise.dynamics.closed": "linkwise.constraints"}


class _GoneModules:
    """Raises for removed modules with their new names: objects pickled by earlier versions import them."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> None:
        if name in GONE:
            raise ModuleNotFoundError(
                f"{name} is {GONE[name]} now: kernels, motions and studies that an earlier version of linkwise pickled "
                "are made again by the same calls under their present names",
                name=name,
            )


sys.meta_path.append(_GoneModules)
