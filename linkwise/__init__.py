"""linkwise: the spatial operator algebra of multibody dynamics, compiled link by link."""

import importlib
from typing import TYPE_CHECKING, Any

from .joints import Cylindrical, Fixed, Floating, Helical, Planar, Prismatic, Revolute, Spherical, Universal
from .kernel import Kernel, KernelError
from .mechanism import (
    Builder,
    InertiaWarning,
    Limits,
    LimitWarning,
    Loop,
    Mechanism,
    MechanismError,
    MechanismWarning,
    Mimic,
)
from .mechanism import library as mechanisms
from .readers import from_dh, load, load_dh
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
    joint_wrenches,
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

if TYPE_CHECKING:  # for type checkers; loaded later, see below
    from . import operators
    from .compiler import compile
    from .runtime.threads import get_num_threads, set_num_threads

__version__ = "0.1.0"

#: Loaded when first asked for: importing the package stays quick, and so does the first call of a compiled function.
#: Module -> public names in it; one named like the module is the module itself.
_LATER = {
    ".closed": ("closed",),
    ".compiler": ("DTYPES", "LANGUAGES", "TARGETS", "compile"),
    ".denoc": ("denoc",),
    ".derivatives": (
        "forward_dynamics_derivatives",
        "inverse_dynamics_derivatives",
        "jacobian_derivatives",
        "jacobian_rate",
        "jacobian_second_rate",
    ),
    ".diagonal": ("diagonal",),
    ".differentiation": ("inverse_dynamics_second_derivatives", "jacobian_of", "vjp_of"),
    ".export": ("c_file", "export_c"),
    ".identification": ("BaseParameters", "base_parameters", "inertial_parameters", "regressor", "rotor_inertias"),
    ".joint_control": ("joint_feedback", "saturated"),
    ".linearization": ("StateSpace", "find_equilibrium", "linearization", "linearize"),
    ".operators": ("operators",),
    ".passive": ("Passive",),
    ".rollouts": ("rollout",),
    ".runtime.threads": ("get_num_threads", "set_num_threads"),
    ".simulation": ("SimulationError", "Trajectory", "load_trajectory", "simulate"),
    ".simulation.events": ("events",),
    ".viewer": ("viewer",),
}
_HOME = {name: module for module, names in _LATER.items() for name in names}

__all__ = [
    "Builder",
    "Cylindrical",
    "Fixed",
    "Floating",
    "Helical",
    "InertiaWarning",
    "Kernel",
    "KernelError",
    "LimitWarning",
    "Limits",
    "Loop",
    "Mechanism",
    "MechanismError",
    "MechanismWarning",
    "Mimic",
    "Planar",
    "Prismatic",
    "Revolute",
    "Spherical",
    "Universal",
    "__version__",
    "acceleration_parts",
    "bias_force",
    "center_of_mass",
    "compile",
    "coordinate_rates",
    "coriolis_matrix",
    "difference",
    "forward_dynamics",
    "forward_link_accelerations",
    "frame_pose",
    "from_dh",
    "get_num_threads",
    "gravity_force",
    "integrate",
    "inverse_dynamics",
    "jacobian",
    "joint_wrenches",
    "kinetic_energy",
    "link_accelerations",
    "link_poses",
    "link_velocities",
    "load",
    "load_dh",
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
    "set_num_threads",
]
__all__.extend(name for name in _HOME if name not in __all__)
__all__.sort()


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'linkwise' has no attribute {name!r}")
    home = _HOME[name]
    module = importlib.import_module(home, __name__)
    value = globals()[name] = module if home.rpartition(".")[2] == name else getattr(module, name)
    return value


def __dir__() -> list[str]:
    return __all__
