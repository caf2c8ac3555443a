"""From LLVM text to an address in this process: compile for the host, keep the object code, link it."""

from __future__ import annotations

import contextlib
import ctypes
import ctypes.util
import itertools
import os
import threading
from collections.abc import Callable, Mapping
from functools import cache

import llvmlite.binding as llvm

from ..targets import llvm_simd
from ..targets.protocol import Options
from . import cache as object_cache

# Measured on articulated-body recursions: the emitter leaves nothing for LLVM's passes over the text to do, and code
# generation at level 1 gives code as fast as at levels 2 and 3.
_CODE_GENERATION_LEVEL = 1

_lock = threading.RLock()
_libraries: dict[str, llvm.ResourceTracker] = {}  # loaded code, by key; kept for good
_library_numbers = itertools.count()
if hasattr(os, "register_at_fork"):  # a child must not inherit the lock, or LLVM, from the middle of a compilation
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)


def host_options(dtype: str = "float64") -> Options:
    """Options for this machine: as many lanes as one vector register holds numbers of ``dtype``.

    Measured with AVX-512: one register per value (8 doubles) is faster than half of one (by 20 percent) and than two.
    """
    if dtype not in ("float64", "float32"):
        raise ValueError(f"dtype must be 'float64' or 'float32', not {dtype!r}")
    cpu, features, register_bytes = _host()
    return Options(dtype=dtype, lanes=register_bytes // (8 if dtype == "float64" else 4), cpu=cpu, features=features)


@cache
def _host() -> tuple[str, str, int]:
    """Name and features of the CPU, and the bytes of a vector register."""
    features = llvm.get_host_cpu_features()
    if features.get("avx512f") and features.get("avx512dq") and features.get("avx512vl"):
        register_bytes = 64
    elif features.get("avx"):
        register_bytes = 32
    else:  # SSE2, NEON, VSX and the like
        register_bytes = 16
    return llvm.get_host_cpu_name(), features.flatten(), register_bytes


def load(
    source: str | Callable[[], str],
    symbol: str,
    options: Options,
    key: str | None = None,
    host_functions: Mapping[str, int] | None = None,
) -> int:
    """Address of the function ``symbol`` of the LLVM text ``source``, compiled with ``options``.

    With a ``key`` (``cache.program_key``) the object code is looked up on disk first and stored there; then a
    ``source`` given as a function is called only if it is needed.  ``host_functions`` are the addresses of the
    functions that the text calls; without it, those that emitted programs call.  Loaded code stays loaded.
    """
    with _lock:
        if key is not None and key in _libraries:
            return _libraries[key][symbol]
        code = object_cache.fetch(key) if key is not None else None
        if code is None:
            code = compile_object(source if isinstance(source, str) else source(), options)
            if key is not None:
                object_cache.store(key, code)
        library = _link(code, symbol, _host_symbols() if host_functions is None else host_functions)
        _libraries[key or library.name] = library
        return library[symbol]


def compile_object(source: str, options: Options) -> bytes:
    """Object code of LLVM text."""
    machine = _target_machine(options.cpu, options.features)
    return machine.emit_object(_parse(source, machine))


def assembly(source: str, options: Options) -> str:
    """Host assembly of LLVM text, to look at."""
    machine = _target_machine(options.cpu, options.features)
    return machine.emit_assembly(_parse(source, machine))


def _parse(source: str, machine: llvm.TargetMachine) -> llvm.ModuleRef:
    module = llvm.parse_assembly(source)
    module.triple = llvm.get_process_triple()
    module.data_layout = str(machine.target_data)
    return module


def _link(code: bytes, symbol: str, host_functions: Mapping[str, int]) -> llvm.ResourceTracker:
    builder = llvm.JITLibraryBuilder().add_object_img(code).export_symbol(symbol)
    for name, address in host_functions.items():
        builder.import_symbol(name, address)
    return builder.link(_jit(), f"linkwise_{next(_library_numbers)}")


@cache
def _target_machine(cpu: str, features: str) -> llvm.TargetMachine:
    _initialize()
    # Position-independent small-model code addresses its constants relative to itself; the linker puts code and
    # constants next to each other and reaches far functions through stubs.
    return llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(
        cpu=cpu, features=features, opt=_CODE_GENERATION_LEVEL, reloc="pic", codemodel="small", jit=True
    )


@cache
def _jit() -> llvm.LLJIT:
    options = host_options()
    return llvm.create_lljit_compiler(_target_machine(options.cpu, options.features), use_jit_link=True)


@cache
def _initialize() -> None:
    with contextlib.suppress(RuntimeError):  # newer llvmlite initializes itself and says so
        llvm.initialize()
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


@cache
def _host_symbols() -> dict[str, int]:
    """Addresses of the host functions that emitted code may call."""
    library = ctypes.cdll.msvcrt if os.name == "nt" else ctypes.CDLL(None)
    if not hasattr(library, "sin"):  # the interpreter is linked without the mathematical library
        library = ctypes.CDLL(ctypes.util.find_library("m"))
    functions = {"linkwise_libm_sin": library.sin, "linkwise_libm_cos": library.cos}
    addresses = {}
    for name in llvm_simd.HOST_SYMBOLS:
        function = functions.get(name) or getattr(ctypes.pythonapi, name)
        addresses[name] = ctypes.cast(function, ctypes.c_void_p).value or 0
    return addresses
