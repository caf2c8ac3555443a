"""Registered targets: languages that programs are written in, and places where they run."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..mechanics.registered import REGISTERED
from ..mechanism import one_of
from .ir.program import Program
from .runtime import cpu, interpreter, llvm_loader
from .targets import c_source, cuda_c, llvm_simd, numpy_reference
from .targets.protocol import Options, Target

#: Languages and targets in the order of registration.
LANGUAGES: tuple[str, ...]
TARGETS: tuple[str, ...]
_WRITTEN: dict[str, Target] = {}
_RUNNING: dict[str, Target] = {}


def emit(program: Program, language: str, dtype: str) -> str:
    """Stage 4: source text of an optimized program, with options of this machine where relevant."""
    target = _WRITTEN[one_of("language", language, _WRITTEN)]
    return target.emit(target.understood(program), target.options(dtype))


def load(program: Program, dtype: str, target: str) -> Callable[..., Any]:
    """Stage 5: a function of arrays; for a program over time, one that writes to ``out``. Cached machine code skips
    stages 2 to 4."""
    loader = _RUNNING[target].load
    assert loader is not None
    return loader(_RUNNING[target].understood(program), dtype)


def is_long(program: Program, target: str) -> bool:
    """Whether the code is too long for full speed on a target; repeated operations then become loops."""
    most = _RUNNING[target].most_operations
    return most is not None and program.size > most


def register_target(target: Target) -> None:
    """Register a target: ``kernel.source(target.language)`` then writes in its language.  If it has a name,
    ``compile(..., target=target.name)`` runs there, and so does ``rollout`` if it loads programs over time.

    A language or name that is already registered is refused.
    """
    _register(target)
    REGISTERED["target", target.name] = target.most_operations


def _register(target: Target) -> None:
    if (target.name is None) != (target.load is None) or (target.name is None and target.over_time):
        raise ValueError(f"target {target.language!r} needs a name and a load function, or neither")
    if target.language in _WRITTEN:
        raise ValueError(f"language {target.language!r} is known already; known: {', '.join(_WRITTEN)}")
    if target.name in _RUNNING:
        raise ValueError(f"target {target.name!r} is known already; known: {', '.join(_RUNNING)}")
    _WRITTEN[target.language] = target
    if target.name is not None:
        _RUNNING[target.name] = target


def rollout_targets() -> tuple[str, ...]:
    """The names of targets that run rollouts."""
    return tuple(name for name, target in _RUNNING.items() if target.over_time)


if not TYPE_CHECKING:

    def __getattr__(name: str) -> tuple[str, ...]:
        """``LANGUAGES`` and ``TARGETS``, including targets registered later."""
        tables = {"LANGUAGES": _WRITTEN, "TARGETS": _RUNNING}
        if name not in tables:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return tuple(tables[name])


def _load_on_gpu(program: Program, dtype: str) -> Callable[..., Any]:
    from .runtime import gpu  # imported here: few machines have a GPU

    return gpu.load_function(program, dtype)


for _target in (
    Target("llvm", llvm_simd.emit, llvm_loader.host_options, "cpu", cpu.load, over_time=True, loops=True),
    Target("c", c_source.emit, loops=True),
    Target(
        "cuda",
        cuda_c.emit,
        name="cuda",
        load=_load_on_gpu,
        over_time=True,
        loops=True,
        loops_of_lists=False,  # GPU threads have no fast memory for lists; straight-line code is compiled in parts
        most_operations=cuda_c.MOST_OPERATIONS,
    ),
    Target("numpy", numpy_reference.emit, Options, "numpy", interpreter.load, over_time=True, loops=True),
):
    _register(_target)
