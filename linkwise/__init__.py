"""linkwise: the spatial operator algebra of multibody dynamics, compiled link by link."""

import importlib
import importlib.abc
import importlib.machinery
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from . import started as started
from .compiler.kernel import Kernel
from .compiler.registry import NAME_ALIASES, OTHER_LIBRARIES
from .compiler.runtime.explanations import KernelError
from .dynamics.trees import (
    bias_force,
    center_of_mass,
    coriolis_matrix,
    difference,
    forward_dynamics,
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
    mass_matrix_inverse,
    momentum,
    neutral,
    potential_energy,
    random_state,
    static_forces,
)
from .former import MOVED, moved
from .mechanics.joints import *  # noqa: F403 - every kind of joint is public
from .mechanics.joints import __all__ as _JOINTS
from .mechanism import Builder, Limits, Mechanism, MechanismError, MechanismWarning, Mimic, from_dh, pose
from .readers import load

if TYPE_CHECKING:  # for type checkers; loaded later, see below
    from .compiler.pipeline import compile

__version__ = "0.1.0"

#: Loaded when first asked for: importing the package stays quick, and so does the first call of a compiled function.
#: Module -> public names in it.
_LATER = {
    ".compiler.export": ("export_c",),
    ".compiler.pipeline": ("compile",),
    ".dynamics.by_joint": ("configuration",),
    ".dynamics.derivatives": (
        "forward_dynamics_derivatives",
        "inverse_dynamics_derivatives",
        "jacobian_of",
        "jvp_of",
        "vjp_of",
    ),
    ".dynamics.frames": ("frame_acceleration", "frame_velocity"),
    ".kinematics.inverse": ("inverse_kinematics",),
    ".linearization.equilibrium": ("find_equilibrium",),
    ".linearization.linear_models": ("linearize",),
    ".mechanics.algorithms.catalogue": ("algorithms",),
    ".motion.simulation": ("SimulationError", "simulate"),
    ".motion.trajectory": ("Trajectory",),
    ".motion.rollout": ("rollout",),
    ".viewer.browser": ("view",),
}
_HOME = {name: module for module, names in _LATER.items() for name in names}
#: Public modules, which have all else by concern, and where in the package they are at home.
_MODULES = {
    "centroidal": ".dynamics.centroidal",
    "codegen": ".codegen",
    "constraints": ".constraints",
    "contact": ".contact",
    "control": ".control",
    "derivatives": ".derivatives",
    "estimation": ".estimation",
    "extend": ".extend",
    "files": ".files",
    "forces": ".forces",
    "formulations": ".formulations",
    "interop": ".interop",
    "kinematics": ".kinematics",
    "linkages": ".linkages",
    "mechanisms": ".mechanism.library",
    "motion": ".motion",
    "operators": ".mechanics.operators",
    "studies": ".studies",
    "trajectories": ".trajectories",
    "viewer": ".viewer",
}
_FORMER = {  # modules of names that have moved, with adapters where their arguments were others: not listed; they warn
    "acting": ".dynamics.former.acting",
    "closed": ".dynamics.former.closed",
    "linearization": ".linearization",
}

__all__ = [
    "Builder",
    "Kernel",
    "KernelError",
    "Limits",
    "Mechanism",
    "MechanismError",
    "MechanismWarning",
    "Mimic",
    "__version__",
    "bias_force",
    "center_of_mass",
    "compile",
    "coriolis_matrix",
    "difference",
    "forward_dynamics",
    "frame_pose",
    "from_dh",
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
    "mass_matrix",
    "mass_matrix_inverse",
    "momentum",
    "neutral",
    "pose",
    "potential_energy",
    "random_state",
    "static_forces",
]
#: Public modules of public modules that are at home elsewhere.
_WITHIN_MODULES = {
    "codegen.cache": ".compiler.runtime.cache",
    "extend.scalar": ".mechanics.scalar",
    "formulations.denoc": ".dynamics.denoc",
    "formulations.diagonal": ".dynamics.diagonal",
    "formulations.momenta": ".dynamics.momenta",
}
_FORMER_MODULES = ("cache", "denoc", "diagonal", "events", "momenta", "scalar", "se3", "so3")
_BESIDE_OTHERS = ("casadi", "jax", "torch")  # modules that need the library of their name, and are no public names
__all__.extend(name for name in (*_JOINTS, *_HOME, *_MODULES) if name not in __all__)
__all__.sort()


def __getattr__(name: str) -> Any:
    if name in _BESIDE_OTHERS:
        return importlib.import_module(f".{name}", __name__)
    if name in _MODULES or name in _FORMER:
        globals()[name] = module = importlib.import_module((_MODULES | _FORMER)[name], __name__)
        return module
    if name in MOVED:
        return moved(name)
    if name not in _HOME:
        ours = NAME_ALIASES.get(name) or OTHER_LIBRARIES.get(name) or _within(name)
        hint = f": it is linkwise.{ours} here" if ours else ""
        raise AttributeError(f"module 'linkwise' has no attribute {name!r}{hint}")
    globals()[name] = value = getattr(importlib.import_module(_HOME[name], __name__), name)
    return value


def _within(name: str) -> str:
    """Address of a public name in a submodule, such as "constraints.assemble"; empty if there is none."""
    for module in () if name.startswith("_") else _MODULES:
        if name in importlib.import_module(_MODULES[module], __name__).__all__:
            return f"{module}.{name}"
    return ""


__dir__ = __all__.copy


class _PublicModules(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports ``linkwise.operators`` as the module ``from linkwise import operators`` gives, wherever it is in the
    package.
    """

    homes = {f"{__name__}.{name}": home for name, home in (_MODULES | _FORMER).items()}

    homes |= {f"{__name__}.{name}": home for name, home in _WITHIN_MODULES.items()}

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        public, home, _ = self._home(fullname)
        return None if home == public.removeprefix(__name__) else importlib.machinery.ModuleSpec(fullname, self)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        _, home, inner = self._home(spec.name)
        module = importlib.import_module(home + inner, __name__)
        spec.loader_state = module.__spec__
        return module

    def _home(self, fullname: str) -> tuple[str, str, str]:
        """The public module of a name or of its parent, the module in the package, and the rest of the name."""
        parts = fullname.split(".")
        for count in (3, 2):
            public = ".".join(parts[:count])
            former = public.removeprefix(f"{__name__}.")
            if former in _FORMER_MODULES and len(parts) >= count:
                return public, moved(former).__name__, "".join(f".{part}" for part in parts[count:])
            if public in self.homes and len(parts) >= count:
                return public, self.homes[public], "".join(f".{part}" for part in parts[count:])
        return fullname, fullname.removeprefix(__name__), ""

    def exec_module(self, module: ModuleType) -> None:
        """The module has run under the name and specification that it keeps."""
        assert module.__spec__ is not None
        module.__spec__ = module.__spec__.loader_state


sys.meta_path.insert(0, _PublicModules())
