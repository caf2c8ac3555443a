"""Programs on the CPU: machine code as functions of arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ..ir.program import Program
from ..targets.llvm_scratch import identifier
from ..targets.protocol import Options
from . import cache, llvm_loader
from .cache import program_key
from .explanations import explaining
from .gufunc import make_gufunc
from .llvm_loader import MachineCode
from .single_call import single_call
from .threads import call_threaded, states_per_task, threaded

LONG = 20_000  # operations above which the short cut for single states saves little and would block other threads
RELIABILITY = "reliability"  # the result with the status of the others


def load(program: Program, dtype: str) -> Callable[..., Any]:
    """A function of arrays; for a program over time, one that writes to ``out``. Cached code skips optimizing and
    emitting."""
    if _no_ufunc(program):
        from . import interpreter  # imported here: few programs have no inputs

        return interpreter.load(program, dtype)
    code, ufunc = code_and_ufunc(program, dtype)
    if program.carried:
        return _time_function(ufunc, program)
    operations = program.size
    general = explaining(threaded(ufunc, operations), program.signature, dtype)
    if any(array.name == RELIABILITY for array in program.outputs):
        general = _suppress_warnings(general)
    if operations > LONG or program.has_loops:
        return general
    return single_call(code, program.inputs, program.outputs, dtype, general, operations)


def machine_code(program: Program, dtype: str) -> tuple[MachineCode, np.ndarray | None, str]:
    """The compiled loop, its tables, and its key."""
    options = llvm_loader.host_options(dtype)
    options = replace(options, lanes=options.lanes * program.registers)
    key = program_key(program, options)
    code = llvm_loader.load(lambda: _text(program, options), identifier(program.name), options, key)
    return code, _tables(program, dtype) if program.has_loops else None, key


def _text(program: Program, options: Options) -> str:
    from ..passes import optimize  # imported here: cached code needs neither
    from ..targets import llvm_simd

    return llvm_simd.emit(optimize(program), options)


def _tables(program: Program, dtype: str) -> np.ndarray:
    """Tables of code with loops, from disk if the recipe of the program is known."""
    from ..targets import llvm_looped  # imported here: few programs have loops

    key = f"{program.recipe}-{dtype}" if program.recipe else None
    kept = cache.fetch(key, cache.TABLES) if key else None
    if kept is not None:
        return llvm_looped.aligned(kept)
    tables = llvm_looped.tables(program, dtype)
    if key:
        cache.store(key, tables.tobytes(), cache.TABLES)
    return tables


def code_and_ufunc(program: Program, dtype: str) -> tuple[MachineCode, np.ufunc]:
    """The compiled loop, and the ufunc that runs it."""
    code, tables, _ = machine_code(program, dtype)
    return code, make_gufunc(code, program.inputs, program.outputs, dtype, program.name, tables=tables)


def _suppress_warnings(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of arrays without NumPy's warnings of divisions by zero: its status result reports these."""

    def call(*arrays: Any, out: Any = None) -> Any:
        with np.errstate(all="ignore"):
            return function(*arrays, out=out)

    return call


def _time_function(ufunc: np.ufunc, program: Program) -> Callable[..., None]:
    """Machine code of a program over time as ``f(*arrays, out=arrays)``, with large batches split over threads."""
    (timed, axis), first, size = program.timed_input, program.outputs[0], program.size

    def run(*arrays: Any, out: Any) -> None:
        records, repeats = arrays[timed].shape[axis], arrays[timed].shape[axis + 1]
        operations = size * records * repeats
        numbers = first.size * (records if first.axes else 1)  # shape of the batch of the first result
        if out[0].size < 2 * states_per_task(operations) * numbers:  # too few states for two threads
            ufunc(*arrays, out=out)
        else:
            call_threaded(ufunc, arrays, out, operations)

    return run


def _no_ufunc(program: Program) -> bool:
    """Whether NumPy cannot make a ufunc of a program: it has no inputs, or arrays without elements."""
    return not program.inputs or any(array.size == 0 for array in (*program.inputs, *program.outputs))
