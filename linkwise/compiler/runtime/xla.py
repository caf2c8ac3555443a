"""Compiled loops as XLA FFI handlers for the CPU.

A handler contains its loop.  All other data, such as the number of states and the strides of arrays, are one attribute
of the call: ``call_words``.

Large batches are cut into tiles, which the caller and threads of XLA's pool take one at a time.  A task that starts
after all work is done finds no tile left; the last task with a reference to a job frees it.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from functools import cache

import numpy as np

from . import llvm_loader
from .llvm_loader import MachineCode
from .threads import shares
from .workers import (
    BASES,
    CORE,
    COUNT,
    DATA,
    DIMENSIONS,
    FUNCTION,
    JOB_WORDS,
    MAX_OPERANDS,
    NEXT,
    OPERANDS,
    STEPS,
    TILE,
    drain,
)
from .xla_interface import BUFFERS, CALL, FRAME, METADATA, OFFSETS, Handler, bind, entry, filled, load, store, word

RUNNING, REFERENCES = 24, 32  # words of a job: number of threads that may be working on it, and of references
TILE_WORD, HELPERS_WORD, CORE_WORD, STATES_WORD = range(4)  # of ``call_words``; sizes and strides follow


def handler(code: MachineCode, tables: np.ndarray | None = None) -> Handler:
    """The handler that runs a loop (a ``PyUFuncGenericFunction``) with its ``tables``."""
    kernel = np.array([code.address, 0 if tables is None else tables.ctypes.data], np.int64)
    return bind(_call(), kernel, code, tables)


def call_words(states: int, sizes: Sequence[int], steps: Sequence[int], operands: int, operations: int) -> np.ndarray:
    """The attribute of a call, one array of 64-bit integers.

    states       number of states
    sizes        of the loop's core dimensions, in NumPy's numbering
    steps        bytes from state to state of every operand (0 for a shared one), then core strides
    operations   per state: determines the number of useful threads
    """
    count, tile = shares(states, operations) if operands <= MAX_OPERANDS else (1, states)
    return np.array([tile, count - 1, len(sizes), states, *sizes, *steps], np.int64)


@cache
def _call() -> MachineCode:
    """Code shared by all handlers, never freed."""
    if os.name == "nt":
        pause = ctypes.WinDLL("kernel32").SwitchToThread  # type: ignore[attr-defined]
    else:
        pause = ctypes.CDLL(None).sched_yield
    functions = {
        "linkwise_malloc": ctypes.pythonapi.PyMem_RawMalloc,
        "linkwise_free": ctypes.pythonapi.PyMem_RawFree,
        "linkwise_pause": pause,
    }
    host = {name: ctypes.cast(function, ctypes.c_void_p).value or 0 for name, function in functions.items()}
    return llvm_loader.load(_SOURCE, CALL, llvm_loader.host_options(), host_functions=host)


# -- the text -----------------------------------------------------------------------------------------


def _set_words(base: str, values: dict[int, str]) -> str:
    return "\n".join(
        f"  %{base}.word{number} = getelementptr i64, ptr %{base}, i64 {number}\n"
        f"  store {value}, ptr %{base}.word{number}"
        for number, value in values.items()
    )


_SCHEDULE = "XLA_FFI_ThreadPool_Schedule_Args"

_TASKS = f"""
define internal void @release(ptr %job) {{
entry:
  %references = getelementptr i64, ptr %job, i64 {REFERENCES}
  %before = atomicrmw sub ptr %references, i64 1 acq_rel
  %last = icmp eq i64 %before, 1
  br i1 %last, label %free, label %end
free:
  call void @linkwise_free(ptr %job)
  br label %end
end:
  ret void
}}

; What a thread of the pool does.  It counts as running before it takes a tile, so that the caller waits for it.
define internal void @task(ptr %job) {{
  %running = getelementptr i64, ptr %job, i64 {RUNNING}
  %more = atomicrmw add ptr %running, i64 1 acq_rel
  call void @drain(ptr %job)
  %fewer = atomicrmw sub ptr %running, i64 1 acq_rel
  call void @release(ptr %job)
  ret void
}}

; Ask the pool to work along; a pool that cannot is no error, as the caller does all that nobody else does.
define internal void @ask(ptr %frame, ptr %job) {{
entry:
{load("api", "ptr", "frame", FRAME, "api")}
{load("context", "ptr", "frame", FRAME, "ctx")}
{filled("request", _SCHEDULE)}
{store("ptr %context", "to_context", "request", _SCHEDULE, "ctx")}
{store("ptr @task", "to_task", "request", _SCHEDULE, "task")}
{store("ptr %job", "to_data", "request", _SCHEDULE, "data")}
{load("schedule", "ptr", "api", "XLA_FFI_Api", "XLA_FFI_ThreadPool_Schedule")}
  %error = call ptr %schedule(ptr %request)
  %refused = icmp ne ptr %error, null
  br i1 %refused, label %destroy, label %end
destroy:
{filled("destruction", "XLA_FFI_Error_Destroy_Args")}
{store("ptr %error", "to_error", "destruction", "XLA_FFI_Error_Destroy_Args", "error")}
{load("destroyer", "ptr", "api", "XLA_FFI_Api", "XLA_FFI_Error_Destroy")}
  call void %destroyer(ptr %destruction)
  call void @release(ptr %job)
  br label %end
end:
  ret void
}}
"""

_TOGETHER = f"""
; The job as threads share it; sizes and strides are copied, as late threads look at it after the call.
define internal i1 @together(ptr %frame, ptr %kernel, ptr %words, i64 %length, i64 %operands) {{
entry:
  %numbers = sub i64 %length, {STATES_WORD}
  %own = add i64 %operands, {JOB_WORDS}
  %all = add i64 %own, %numbers
  %bytes = mul i64 %all, 8
  %job = call ptr @linkwise_malloc(i64 %bytes)
  %none = icmp eq ptr %job, null
  br i1 %none, label %failed, label %fill
failed:
  ret i1 false
fill:
  call void @llvm.memset.p0.i64(ptr %job, i8 0, i64 {8 * JOB_WORDS}, i1 false)
{word("tile", "i64", "words", TILE_WORD)}
{word("helpers", "i64", "words", HELPERS_WORD)}
{word("core", "i64", "words", CORE_WORD)}
{word("states", "i64", "words", STATES_WORD)}
  %loop = load ptr, ptr %kernel
{word("data", "ptr", "kernel", 1)}
  %bases = getelementptr i64, ptr %job, i64 {JOB_WORDS}
  call void @operands(ptr %frame, ptr %bases)
  %dimensions = getelementptr i64, ptr %bases, i64 %operands
  %copied = mul i64 %numbers, 8
  call void @llvm.memcpy.p0.p0.i64(ptr %dimensions, ptr %states.at, i64 %copied, i1 false)
  %before_steps = add i64 %core, 1
  %steps = getelementptr i64, ptr %dimensions, i64 %before_steps
  %references = add i64 %helpers, 1
{
    _set_words(
        "job",
        {
            FUNCTION: "ptr %loop",
            DATA: "ptr %data",
            OPERANDS: "i64 %operands",
            CORE: "i64 %core",
            COUNT: "i64 %states",
            TILE: "i64 %tile",
            DIMENSIONS: "ptr %dimensions",
            STEPS: "ptr %steps",
            BASES: "ptr %bases",
            NEXT: "i64 0",
            REFERENCES: "i64 %references",
        },
    )
}
  br label %helper
helper:
  %h = phi i64 [0, %fill], [%h1, %helper]
  call void @ask(ptr %frame, ptr %job)
  %h1 = add i64 %h, 1
  %more = icmp slt i64 %h1, %helpers
  br i1 %more, label %helper, label %work
work:
  call void @drain(ptr %job)
  %running = getelementptr i64, ptr %job, i64 {RUNNING}
  br label %wait
wait:
  %others = load atomic i64, ptr %running acquire, align 8
  %over = icmp eq i64 %others, 0
  br i1 %over, label %end, label %pause
pause:
  %paused = call i32 @linkwise_pause()
  br label %wait
end:
  call void @release(ptr %job)
  ret i1 true
}}
"""

_SOURCE = f"""
declare ptr @linkwise_malloc(i64)
declare void @linkwise_free(ptr)
declare i32 @linkwise_pause()
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
{drain()}{METADATA}{BUFFERS}{_TASKS}{_TOGETHER}{entry(traits=0)}
{word("helpers", "i64", "words", HELPERS_WORD)}
  %api_size = load i64, ptr %api
  %has_pool = icmp ugt i64 %api_size, {OFFSETS["XLA_FFI_Api", "XLA_FFI_ThreadPool_Schedule"]}
  %worth = icmp sgt i64 %helpers, 0
  %several = and i1 %has_pool, %worth
  br i1 %several, label %shared, label %alone
shared:
  %done = call i1 @together(ptr %frame, ptr %kernel, ptr %words, i64 %length, i64 %operands)
  br i1 %done, label %end, label %alone
alone:
  %args = alloca ptr, i64 %operands
  call void @operands(ptr %frame, ptr %args)
{word("core", "i64", "words", CORE_WORD)}
  %before_steps = add i64 %core, {STATES_WORD + 1}
  %dimensions = getelementptr i64, ptr %words, i64 {STATES_WORD}
  %steps = getelementptr i64, ptr %words, i64 %before_steps
  %loop = load ptr, ptr %kernel
{word("data", "ptr", "kernel", 1)}
  call void %loop(ptr %args, ptr %dimensions, ptr %steps, ptr %data)
  br label %end
end:
  ret ptr null
}}
"""
