"""From LLVM text to machine code in this process: compile for the host, cache the object code on disk, link it.

Machine code lives as long as its ``MachineCode`` object: keep that object while its address is in use.
"""

from __future__ import annotations

import contextlib
import ctypes
import ctypes.util
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from functools import cache

import llvmlite.binding as llvm

from ..targets.llvm_scratch import HOST_SYMBOLS
from ..targets.protocol import Options
from . import cache as object_cache

# Measured on articulated-body recursions: LLVM's passes over the text gain nothing, and code generation at level 1
# gives code as fast as at levels 2 and 3.
_CODE_GENERATION_LEVEL = 1

# An engine takes 100 kB plus some 10 kB for every library that it has ever linked.  It links this many libraries, and
# is freed with the last of them.
_LIBRARIES_PER_ENGINE = 16

_lock = threading.RLock()
if hasattr(os, "register_at_fork"):  # a forked child must not inherit the lock, or LLVM, in the middle of a compilation
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)


class MachineCode:
    """A function in machine code, at ``address``; unloaded with the last reference to this object."""

    __slots__ = ("__weakref__", "address")

    def __init__(self, address: int, engine: _Engine, library: llvm.ResourceTracker):
        self.address = address
        # At exit nothing is unloaded: threads may still be running it.
        weakref.finalize(self, _unload, engine, library).atexit = False


class _Engine:
    """An LLVM linker with the libraries that it has linked."""

    def __init__(self) -> None:
        options = host_options()
        machine = _target_machine(options.cpu, options.features)
        self.jit = llvm.create_lljit_compiler(machine, use_jit_link=True)
        self.linked = 0


_loaded: weakref.WeakValueDictionary[str, MachineCode] = weakref.WeakValueDictionary()  # by key
_engine: _Engine | None = None  # the engine of the next library
_unused: deque[tuple[_Engine, llvm.ResourceTracker]] = deque()  # libraries to be unloaded


def host_options(dtype: str = "float64") -> Options:
    """Options for this machine: a vector register full of numbers of ``dtype``.

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
) -> MachineCode:
    """The function ``symbol`` of the LLVM text ``source``, compiled with ``options``.

    With a ``key`` (``cache.program_key``), loaded code is reused, and object code is looked up on disk and stored
    there. A ``source`` given as a function is called only if the text is needed.  ``host_functions`` are the addresses
    of functions that the text calls; by default the host functions of emitted programs.
    """
    try:
        with _lock:
            loaded = _loaded.get(key) if key is not None else None
            if loaded is not None:
                return loaded
            code = object_cache.fetch(key) if key is not None else None
            if code is None:
                code = compile_object(source if isinstance(source, str) else source(), options)
                if key is not None:
                    object_cache.store(key, code)
            loaded = _link(code, symbol, _host_symbols() if host_functions is None else host_functions)
            if key is not None:
                _loaded[key] = loaded
            return loaded
    finally:
        _unload_unused()


def _unload(engine: _Engine, library: llvm.ResourceTracker) -> None:
    """Called by the garbage collector, in any thread at any time."""
    _unused.append((engine, library))
    _unload_unused()


def _unload_unused() -> None:
    if not _lock.acquire(blocking=False):
        return  # another load in progress unloads this afterwards; waiting for its lock here could deadlock
    try:
        while _unused:
            engine, library = _unused.popleft()
            library.close()
            del engine, library  # the engine's last library takes the engine with it
    finally:
        _lock.release()


def compile_object(source: str, options: Options) -> bytes:
    """Object code of LLVM text."""
    with _parsed(source, options) as (machine, module):
        return machine.emit_object(module)


def assembly(source: str, options: Options) -> str:
    """Host assembly of LLVM text, to look at."""
    with _parsed(source, options) as (machine, module):
        return machine.emit_assembly(module)


@contextlib.contextmanager
def _parsed(source: str, options: Options) -> Iterator[tuple[llvm.TargetMachine, llvm.ModuleRef]]:
    """``source`` parsed in a context of its own, as a context keeps all its constants for ever; and the machine for
    ``options``."""
    machine = _target_machine(options.cpu, options.features)
    with llvm.create_context() as context, llvm.parse_assembly(source, context) as module:
        module.triple = llvm.get_process_triple()
        module.data_layout = str(machine.target_data)
        yield machine, module


def _link(code: bytes, symbol: str, host_functions: Mapping[str, int]) -> MachineCode:
    global _engine
    if _engine is None or _engine.linked == _LIBRARIES_PER_ENGINE:
        _engine = _Engine()
    builder = llvm.JITLibraryBuilder().add_object_img(code).export_symbol(symbol)
    for name, address in host_functions.items():
        builder.import_symbol(name, address)
    _engine.linked += 1
    library = builder.link(_engine.jit, f"linkwise_{_engine.linked}")
    return MachineCode(library[symbol], _engine, library)


@cache
def _target_machine(cpu: str, features: str) -> llvm.TargetMachine:
    _initialize()
    # Position-independent small-model code addresses its constants relative to itself.  The linker places code and
    # constants next to each other and reaches distant functions through stubs.
    return llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(
        cpu=cpu, features=features, opt=_CODE_GENERATION_LEVEL, reloc="pic", codemodel="small", jit=True
    )


@cache
def _initialize() -> None:
    with contextlib.suppress(RuntimeError):  # newer llvmlite initializes itself and raises here
        llvm.initialize()
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    llvm.initialize_native_asmparser()


@cache
def _host_symbols() -> dict[str, int]:
    """Addresses of the host functions that emitted code may call."""
    library = ctypes.cdll.msvcrt if os.name == "nt" else ctypes.CDLL(None)
    if not hasattr(library, "sin"):  # the interpreter is linked without the mathematical library
        library = ctypes.CDLL(ctypes.util.find_library("m"))
    functions = {"linkwise_libm_sin": library.sin, "linkwise_libm_cos": library.cos}
    addresses = {}
    for name in HOST_SYMBOLS:
        function = functions.get(name) or getattr(ctypes.pythonapi, name)
        addresses[name] = ctypes.cast(function, ctypes.c_void_p).value or 0
    return addresses
