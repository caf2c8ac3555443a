"""linkwise: the spatial operator algebra of multibody dynamics, compiled link by link."""

import importlib
import importlib.abc
import importlib.machinery
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from .compiler.kernel import Kernel, KernelError
from .compiler.registry import NAME_ALIASES, OTHER_LIBRARIES
from .display import progress
from .dynamics.trees import (
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
    interpolate,
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
    potential_energy,
    random_state,
    static_forces,
)
from .mechanics.contacts import *  # noqa: F403 - every kind of contact is public
from .mechanics.contacts import __all__ as _CONTACTS
from .mechanics.joints import *  # noqa: F403 - every kind of joint is public
from .mechanics.joints import __all__ as _JOINTS
from .mechanism import (
    Actuator,
    Builder,
    ContactLaw,
    ContactPair,
    Coupling,
    Drive,
    EffortRange,
    FluidForce,
    GravityCompensation,
    InertiaWarning,
    Limits,
    LimitWarning,
    Look,
    Loop,
    Mechanism,
    MechanismError,
    MechanismWarning,
    Mimic,
    MissingConstraintWarning,
    Note,
    OmissionWarning,
    PenetrationWarning,
    Shape,
    Tendon,
    pose,
)
from .mechanism import library as mechanisms
from .readers import from_dh, load, load_dh, load_srdf, register_reader

if TYPE_CHECKING:  # for type checkers; loaded later, see below
    from .compiler.pipeline import compile
    from .compiler.runtime.threads import get_num_threads, set_num_threads
    from .mechanics import operators

__version__ = "0.1.0"

#: Loaded when first asked for: importing the package stays quick, and so does the first call of a compiled function.
#: Module -> public names in it; one named like the module is the module itself.
_LATER = {
    ".dynamics.constraints": ("constraints",),
    ".dynamics.linkages": ("linkages",),
    ".compiler.pipeline": ("DTYPES", "LANGUAGES", "TARGETS", "compile", "register_target"),
    ".compiler.targets.protocol": ("Target",),
    ".dynamics.by_joint": ("configuration",),
    ".dynamics.centroidal": (
        "center_of_mass_acceleration",
        "center_of_mass_jacobian",
        "center_of_mass_velocity",
        "centroidal_momentum",
        "centroidal_momentum_matrix",
        "centroidal_momentum_matrix_rate",
        "centroidal_momentum_rate",
        "momentum_matrix",
        "momentum_rate",
    ),
    ".dynamics.compliant_contact": ("ContactPoints", "contact_energy", "contact_points", "contact_wrenches"),
    ".dynamics.denoc": ("denoc",),
    ".dynamics.second_derivatives": ("forward_dynamics_second_derivatives",),
    ".dynamics.closed.force_derivatives": ("joint_wrenches_derivatives",),
    ".dynamics.derivatives": (
        "difference_derivatives",
        "forward_dynamics_derivatives",
        "integrate_derivatives",
        "inverse_dynamics_derivatives",
        "inverse_dynamics_second_derivatives",
        "jacobian_derivatives",
        "jacobian_of",
        "jacobian_rate",
        "jacobian_second_rate",
        "jvp_of",
        "step_derivatives",
        "vjp_of",
    ),
    ".dynamics.diagonal": ("diagonal",),
    ".dynamics.estimation": ("estimation",),
    ".compiler.export": ("c_file", "export_c"),
    ".dynamics.formulas": ("FormulaError", "Formulas", "symbolic"),
    ".dynamics.force_elements": ("activation_rates", "actuator_forces", "joint_force_derivatives", "joint_forces"),
    ".dynamics.frames": (
        "delassus_matrix",
        "effective_inertia",
        "frame_acceleration",
        "frame_velocity",
        "jacobian_rate_times_velocity",
        "manipulability",
        "operational_inertia",
        "wrenches_at",
    ),
    ".dynamics.momenta": ("momenta",),
    ".dynamics.held_contacts": ("hold_contacts", "hold_frames"),
    ".dynamics.placing": ("place_on_ground",),
    ".dynamics.identification": (
        "BaseParameters",
        "base_parameters",
        "inertial_parameters",
        "regressor",
        "rotor_inertias",
    ),
    ".dynamics.physical_bodies": ("physical_parameters",),
    ".control.joints": ("joint_feedback", "saturated"),
    ".control.tracking": ("computed_torque",),
    ".control.decoupled": ("decoupled_tracking",),
    ".control.regulators": ("lqr",),
    ".control.operational_space": ("operational_space_control",),
    ".interop": ("interop",),
    ".kinematics.branches": ("inverse_kinematics_branches",),
    ".kinematics.inverse": ("InverseKinematics", "InverseKinematicsError", "inverse_kinematics"),
    ".kinematics.targets": ("CenterOfMassTarget", "FrameTarget"),
    ".kinematics.so3": ("so3",),
    ".kinematics.se3": ("se3",),
    ".trajectories": ("trajectories",),
    ".trajectories.files": ("load_motion",),
    ".linearization": ("StateSpace", "find_equilibrium", "linearization", "linearize"),
    ".mechanics.algorithms.algorithm": ("Algorithm",),
    ".mechanics.algorithms.catalogue": ("algorithms", "register_integrator"),
    ".mechanics.algorithms.integration": ("Splitting", "Tableau"),
    ".mechanics.operators": ("operators",),
    ".mechanics.scalar": ("scalar",),
    ".mechanism.dh_tables": ("DHTable", "dh_table"),
    ".dynamics.passive": ("Passive",),
    ".dynamics.state_checks": ("check_state",),
    ".simulation.functions": ("held",),
    ".simulation.rollouts": ("rollout",),
    ".simulation.step_matrices": ("rollout_derivatives",),
    ".simulation.rollout_gradients": ("rollout_vjp",),
    ".simulation.step_kernels": ("step_kernel",),
    ".simulation.steps": ("rollout_methods",),
    ".compiler.runtime.cache": ("cache",),
    ".compiler.runtime.single_call": ("get_single_call_shortcut", "set_single_call_shortcut"),
    ".compiler.runtime.threads": ("get_num_threads", "set_num_threads"),
    ".studies": ("studies",),
    ".motion.simulation": ("SimulationError", "simulate"),
    ".motion.trajectory": ("Trajectory", "load_trajectory"),
    ".motion.events": ("events",),
    ".readers.meshes": ("Surface", "load_mesh"),
    ".viewer": ("viewer",),
    ".viewer.browser": ("view",),
}
_HOME = {name: module for module, names in _LATER.items() for name in names}
_FORMER = {"acting": ".dynamics.former.acting", "closed": ".dynamics.former.closed"}  # not listed; they warn

__all__ = [
    "Actuator",
    "Builder",
    "ContactLaw",
    "ContactPair",
    "Coupling",
    "Drive",
    "EffortRange",
    "FluidForce",
    "GravityCompensation",
    "InertiaWarning",
    "Kernel",
    "KernelError",
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
    "PenetrationWarning",
    "Tendon",
    "Shape",
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
    "interpolate",
    "inverse_dynamics",
    "jacobian",
    "joint_wrenches",
    "kinetic_energy",
    "link_accelerations",
    "link_poses",
    "link_velocities",
    "load",
    "load_dh",
    "load_srdf",
    "mass_matrix",
    "mass_matrix_derivatives",
    "mass_matrix_inverse",
    "mechanisms",
    "momentum",
    "neutral",
    "operators",
    "pose",
    "potential_energy",
    "progress",
    "random_state",
    "register_reader",
    "set_num_threads",
    "static_forces",
]
_BESIDE_OTHERS = ("casadi", "jax", "torch")  # modules that need the library of their name, and are no public names
__all__.extend(name for name in (*_JOINTS, *_CONTACTS, *_HOME) if name not in __all__)
__all__.sort()


def __getattr__(name: str) -> Any:
    if name in _BESIDE_OTHERS:
        return importlib.import_module(f".{name}", __name__)
    if name in _FORMER:
        return importlib.import_module(_FORMER[name], __name__)
    if name not in _HOME:
        ours = NAME_ALIASES.get(name) or OTHER_LIBRARIES.get(name) or _within(name)
        hint = f": it is linkwise.{ours} here" if ours else ""
        raise AttributeError(f"module 'linkwise' has no attribute {name!r}{hint}")
    home = _HOME[name]
    module = importlib.import_module(home, __name__)
    value = module if home.rpartition(".")[2] == name else getattr(module, name)
    if value is module or name in vars(module):  # else it is a list that grows, and asked for each time
        globals()[name] = value
    return value


def _within(name: str) -> str:
    """Where a public name is that was looked for here: "constraints.assemble", or nothing."""
    for module in ("constraints", "linkages", "mechanisms", "viewer", "trajectories", "so3", "se3"):
        if not name.startswith("_") and name in getattr(sys.modules[__name__], module).__all__:
            return f"{module}.{name}"
    return ""


def __dir__() -> list[str]:
    return __all__


class _PublicModules(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """``import linkwise.operators`` gives what ``from linkwise import operators`` gives: the one module, wherever in
    the package it is at home."""

    homes = {f"{__name__}.{name}": home for name, home in _HOME.items() if home.rpartition(".")[2] == name}
    homes[f"{__name__}.mechanisms"] = ".mechanism.library"
    homes |= {f"{__name__}.{name}": home for name, home in _FORMER.items()}

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        public = ".".join(fullname.split(".")[:2])
        at_home = public not in self.homes or self.homes[public] == public.removeprefix(__name__)
        return None if at_home else importlib.machinery.ModuleSpec(fullname, self)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        parts = spec.name.split(".")
        module = importlib.import_module(".".join([self.homes[".".join(parts[:2])], *parts[2:]]), __name__)
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """It has run at home, under the name and the specification that it keeps."""
        assert module.__spec__ is not None
        module.__spec__ = module.__spec__.loader_state


sys.meta_path.insert(0, _PublicModules())
