"""What to add kinds, algorithms, methods, targets and formats with; docs/extending.md has the recipes."""

from .compiler.known_targets import register_target
from .compiler.targets.protocol import Target
from .mechanics import scalar
from .mechanics.algorithms.algorithm import Algorithm
from .mechanics.algorithms.catalogue import register_integrator
from .mechanics.algorithms.integration import Splitting, Tableau
from .mechanics.joints import Joint
from .readers import register_reader

__path__: list[str] = []  # its modules can be imported by name
__all__ = [
    "Algorithm",
    "Joint",
    "Splitting",
    "Tableau",
    "Target",
    "register_integrator",
    "register_reader",
    "register_target",
    "scalar",
]


def __dir__() -> list[str]:
    return __all__
