"""linkwise: the spatial operator algebra of multibody dynamics, compiled link by link."""

import importlib
from typing import Any

from . import operators
from .compiler import compile
from .joints import Cylindrical, Fixed, Floating, Helical, Planar, Prismatic, Revolute, Spherical, Universal
from .kernel import Kernel, KernelError
from .mechanism import Builder, InertiaWarning, Limits, Loop, Mechanism, MechanismError, MechanismWarning, Mimic
from .mechanism import library as mechanisms
from .readers import from_dh, load, load_dh
from .runtime.threads import get_num_threads, set_num_threads
from .tree_dynamics import (
    acceleration_parts,
    bias_force,
    center_of_mass,
    coordinate_rates,
    coriolis_matrix,
    difference,
    forward_dynamics,
    forward_link_accelerations,
    frame_pose,
    gravity_force,
    integrate,
    inverse_dynamics,
    jacobian,
    kinetic_energy,
    link_accelerations,
    link_poses,
    link_velocities,
    mass_matrix,
    mass_matrix_derivatives,
    mass_matrix_inverse,
    momentum,
    neutral,
    operational_inertia,
    potential_energy,
    random_state,
)

__version__ = "0.1.0"

__all__ = [
    "BaseParameters",
    "Builder",
    "Cylindrical",
    "Fixed",
    "Floating",
    "Helical",
    "InertiaWarning",
    "Kernel",
    "KernelError",
    "Limits",
    "Loop",
    "Mechanism",
    "MechanismError",
    "MechanismWarning",
    "Mimic",
    "Passive",
    "Planar",
    "Prismatic",
    "Revolute",
    "SimulationError",
    "Spherical",
    "StateSpace",
    "Trajectory",
    "Universal",
    "__version__",
    "acceleration_parts",
    "base_parameters",
    "bias_force",
    "center_of_mass",
    "closed",
    "compile",
    "coordinate_rates",
    "coriolis_matrix",
    "denoc",
    "diagonal",
    "difference",
    "events",
    "export_c",
    "find_equilibrium",
    "forward_dynamics",
    "forward_dynamics_derivatives",
    "forward_link_accelerations",
    "frame_pose",
    "from_dh",
    "get_num_threads",
    "gravity_force",
    "inertial_parameters",
    "integrate",
    "inverse_dynamics",
    "inverse_dynamics_derivatives",
    "inverse_dynamics_second_derivatives",
    "jacobian",
    "jacobian_derivatives",
    "jacobian_of",
    "jacobian_rate",
    "jacobian_second_rate",
    "joint_feedback",
    "kinetic_energy",
    "linearization",
    "linearize",
    "link_accelerations",
    "link_poses",
    "link_velocities",
    "load",
    "load_dh",
    "load_trajectory",
    "mass_matrix",
    "mass_matrix_derivatives",
    "mass_matrix_inverse",
    "mechanisms",
    "momentum",
    "neutral",
    "operational_inertia",
    "operators",
    "potential_energy",
    "random_state",
    "regressor",
    "rollout",
    "rotor_inertias",
    "set_num_threads",
    "simulate",
    "viewer",
]


#: Loaded when first asked for: importing the package stays quick, and so does the first call of a compiled function.
_LATER = {
    "Passive": (".passive", "Passive"),
    "SimulationError": (".simulation", "SimulationError"),
    "Trajectory": (".simulation", "Trajectory"),
    "events": (".simulation.events", None),
    "load_trajectory": (".simulation", "load_trajectory"),
    "simulate": (".simulation", "simulate"),
    "closed": (".closed", None),
    "denoc": (".denoc", None),
    "diagonal": (".diagonal", None),
    "export_c": (".export", "export_c"),
    "joint_feedback": (".joint_control", "joint_feedback"),
    "StateSpace": (".linearization", "StateSpace"),
    "find_equilibrium": (".linearization", "find_equilibrium"),
    "linearization": (".linearization", None),
    "linearize": (".linearization", "linearize"),
    "inverse_dynamics_second_derivatives": (".differentiation", "inverse_dynamics_second_derivatives"),
    "rollout": (".rollouts", "rollout"),
    "viewer": (".viewer", None),
    "jacobian_of": (".differentiation", "jacobian_of"),
    "forward_dynamics_derivatives": (".derivatives", "forward_dynamics_derivatives"),
    "inverse_dynamics_derivatives": (".derivatives", "inverse_dynamics_derivatives"),
    "BaseParameters": (".identification", "BaseParameters"),
    "base_parameters": (".identification", "base_parameters"),
    "inertial_parameters": (".identification", "inertial_parameters"),
    "jacobian_derivatives": (".derivatives", "jacobian_derivatives"),
    "jacobian_rate": (".derivatives", "jacobian_rate"),
    "jacobian_second_rate": (".derivatives", "jacobian_second_rate"),
    "regressor": (".identification", "regressor"),
    "rotor_inertias": (".identification", "rotor_inertias"),
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'linkwise' has no attribute {name!r}")
    module_name, attribute = _LATER[name]
    module = importlib.import_module(module_name, __name__)
    value = globals()[name] = getattr(module, attribute) if attribute else module
    return value


def __dir__() -> list[str]:
    return __all__
