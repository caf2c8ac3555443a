"""Building blocks of new joint kinds, algorithms, integrators, targets and readers; docs/extending.md has recipes."""

from .compiler.known_targets import register_target
from .compiler.targets.protocol import Target
from .joint_check import check_joint
from .mechanics import scalar
from .mechanics.algorithms.algorithm import Algorithm
from .mechanics.algorithms.catalogue import register_integrator
from .mechanics.algorithms.integration import Splitting, Tableau
from .mechanics.joints import FormatEntry, Joint, Measure, Step
from .mechanics.recursions.sweep import tip_to_base
from .mechanics.spatial import Force, Motion, Transform, Translation, Vector3, rotation_about
from .readers import register_reader

__path__: list[str] = []  # its modules can be imported by name
__all__ = [
    "Algorithm",
    "Force",
    "FormatEntry",
    "Joint",
    "Measure",
    "Motion",
    "Splitting",
    "Step",
    "Tableau",
    "Target",
    "Transform",
    "Translation",
    "Vector3",
    "check_joint",
    "register_integrator",
    "register_reader",
    "register_target",
    "rotation_about",
    "scalar",
    "tip_to_base",
]
__dir__ = __all__.copy
