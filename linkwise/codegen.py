"""Compiled code: targets and languages, the cache on disk, threads, C files, and quantities as closed formulas."""

from typing import TYPE_CHECKING, Any

from .compiler import known_targets
from .compiler.export import c_file
from .compiler.requests import DTYPES
from .compiler.runtime import cache
from .compiler.runtime.single_call import get_single_call_shortcut, set_single_call_shortcut
from .compiler.runtime.threads import get_num_threads, set_num_threads
from .display import progress
from .dynamics.formulas import FormulaError, Formulas, symbolic

if TYPE_CHECKING:
    from .compiler.known_targets import LANGUAGES, TARGETS

__path__: list[str] = []  # its modules can be imported by name
__all__ = [
    "DTYPES",
    "FormulaError",
    "Formulas",
    "LANGUAGES",
    "TARGETS",
    "c_file",
    "cache",
    "get_num_threads",
    "get_single_call_shortcut",
    "progress",
    "set_num_threads",
    "set_single_call_shortcut",
    "symbolic",
]


def __getattr__(name: str) -> Any:
    if name in ("LANGUAGES", "TARGETS"):  # lists that grow
        return getattr(known_targets, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__dir__ = __all__.copy
