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
    "Planar",
    "Prismatic",
    "Revolute",
    "Spherical",
    "Universal",
    "__version__",
    "acceleration_parts",
    "bias_force",
    "center_of_mass",
    "closed",
    "compile",
    "coordinate_rates",
    "coriolis_matrix",
    "denoc",
    "diagonal",
    "difference",
    "export_c",
    "forward_dynamics",
    "forward_dynamics_derivatives",
    "forward_link_accelerations",
    "frame_pose",
    "from_dh",
    "get_num_threads",
    "gravity_force",
    "integrate",
    "inverse_dynamics",
    "inverse_dynamics_derivatives",
    "jacobian",
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


#: Loaded when first asked for: importing the package stays quick, and so does the first call of a compiled function.
_LATER = {
    "closed": (".closed", None),
    "denoc": (".denoc", None),
    "diagonal": (".diagonal", None),
    "export_c": (".export", "export_c"),
    "forward_dynamics_derivatives": (".derivatives", "forward_dynamics_derivatives"),
    "inverse_dynamics_derivatives": (".derivatives", "inverse_dynamics_derivatives"),
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
