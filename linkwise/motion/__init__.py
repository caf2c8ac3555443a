"""Motion in time beside ``linkwise.simulate`` and ``rollout``: events, methods, one step as a kernel, held inputs."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # for type checkers; loaded on first use: the modules below import parts of this package
    from ..dynamics.state_checks import check_state
    from ..mechanism import LimitWarning
    from .arguments import drive_values
    from .events import Event, Occurrence, joint_passes, velocity_zero, when
    from .forces import held
    from .settings import Settings
    from .step import rollout_methods
    from .step_kernels import step_kernel

_HOMES = {
    "..dynamics.state_checks": ("check_state",),
    "..mechanism": ("LimitWarning",),
    ".arguments": ("drive_values",),
    ".forces": ("held",),
    ".step_kernels": ("step_kernel",),
    ".settings": ("Settings",),
    ".step": ("rollout_methods",),
    ".events": ("Event", "Occurrence", "joint_passes", "velocity_zero", "when"),
}
__all__ = [
    "Event",
    "LimitWarning",
    "Occurrence",
    "Settings",
    "check_state",
    "drive_values",
    "held",
    "joint_passes",
    "rollout_methods",
    "step_kernel",
    "velocity_zero",
    "when",
]


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names:
            return getattr(import_module(module, __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__dir__ = __all__.copy
