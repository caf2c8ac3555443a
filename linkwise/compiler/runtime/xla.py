"""Compiled loops as functions that XLA calls: handlers of its foreign function interface, written in LLVM's language.

XLA hands a handler one structure, the call frame, with the addresses of all buffers (``xla/ffi/api/c_api.h`` of
jaxlib: a C interface that stays as it is within a major version).  The code that reads it is the same for all kernels;
each has a function of three instructions in front of it that knows its loop.  What the loop needs to know besides, such
as how many states there are and the strides of arrays, comes as one attribute of the call: ``call_words``.

Large batches are cut into tiles which threads of XLA's pool take one at a time, as the caller does.  Tasks that get a
thread only when all is done find no tile left; the last one that knows of a job frees it.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from dataclasses import dataclass
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

ATTRIBUTE = "call"  # the name of the only attribute
MAJOR_VERSION = 0  # of the interface: within it, fields stay where they are
OLDEST_MINOR_VERSION = 1  # that of jaxlib 0.5
RUNNING, REFERENCES = 24, 32  # words of a job: threads that may be working on it, and those that will look at it
TILE_WORD, HELPERS_WORD, CORE_WORD, STATES_WORD = range(4)  # of ``call_words``; sizes and strides follow

#: Bytes from the start of a structure of the interface to a field of it.
OFFSETS = {
    ("XLA_FFI_CallFrame", "extension_start"): 8,
    ("XLA_FFI_CallFrame", "api"): 16,
    ("XLA_FFI_CallFrame", "ctx"): 24,
    ("XLA_FFI_CallFrame", "args.size"): 56,
    ("XLA_FFI_CallFrame", "args.args"): 72,
    ("XLA_FFI_CallFrame", "rets.size"): 96,
    ("XLA_FFI_CallFrame", "rets.rets"): 112,
    ("XLA_FFI_CallFrame", "attrs.attrs"): 160,
    ("XLA_FFI_Buffer", "data"): 24,
    ("XLA_FFI_Array", "size"): 8,
    ("XLA_FFI_Array", "data"): 16,
    ("XLA_FFI_Extension_Base", "type"): 8,
    ("XLA_FFI_Metadata_Extension", "metadata"): 24,
    ("XLA_FFI_Metadata", "api_version"): 8,
    ("XLA_FFI_Metadata", "traits"): 32,
    ("XLA_FFI_Api_Version", "extension_start"): 8,
    ("XLA_FFI_Api_Version", "major_version"): 16,
    ("XLA_FFI_Api_Version", "minor_version"): 20,
    ("XLA_FFI_Api", "api_version"): 16,
    ("XLA_FFI_Api", "XLA_FFI_Error_Destroy"): 64,
    ("XLA_FFI_Api", "XLA_FFI_ThreadPool_Schedule"): 136,
    ("XLA_FFI_ThreadPool_Schedule_Args", "ctx"): 16,
    ("XLA_FFI_ThreadPool_Schedule_Args", "task"): 24,
    ("XLA_FFI_ThreadPool_Schedule_Args", "data"): 32,
    ("XLA_FFI_Error_Destroy_Args", "error"): 16,
}
#: Sizes of those that the handler fills in.
SIZES = {"XLA_FFI_Api_Version": 24, "XLA_FFI_ThreadPool_Schedule_Args": 40, "XLA_FFI_Error_Destroy_Args": 24}
METADATA_EXTENSION = 1  # XLA_FFI_Extension_Metadata


@dataclass(frozen=True, eq=False)
class Handler:
    """A function ``XLA_FFI_Error *(XLA_FFI_CallFrame *)`` at ``address``, which is valid as long as this object lives;
    ``owned`` is what it runs."""

    address: int
    owned: tuple[object, ...]


def handler(code: MachineCode, tables: np.ndarray | None = None) -> Handler:
    """The handler that runs a loop (a ``PyUFuncGenericFunction``), on the ``tables`` that it reads."""
    kernel = np.array([code.address, 0 if tables is None else tables.ctypes.data], np.int64)
    call = _call()
    host = {"linkwise_xla_call": call.address, "linkwise_xla_kernel": kernel.ctypes.data}
    front = llvm_loader.load(_FRONT, "linkwise_xla_handler", llvm_loader.host_options(), host_functions=host)
    return Handler(front.address, (front, call, kernel, code, tables))


def call_words(states: int, sizes: Sequence[int], steps: Sequence[int], operands: int, operations: int) -> np.ndarray:
    """The attribute of a call, one array of 64-bit integers.

    states       how many there are
    sizes        of the loop's core dimensions, as NumPy numbers them
    steps        bytes from state to state of every operand (0 where one serves all), then within their core dimensions
    operations   of one state: how many threads are worth while
    """
    count, tile = shares(states, operations) if operands <= MAX_OPERANDS else (1, states)
    return np.array([tile, count - 1, len(sizes), states, *sizes, *steps], np.int64)


@cache
def _call() -> MachineCode:
    """The code that all handlers share, kept for good."""
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
    return llvm_loader.load(_SOURCE, "linkwise_xla_call", llvm_loader.host_options(), host_functions=host)


# -- the text -----------------------------------------------------------------------------------------


def _field(result: str, base: str, structure: str, field: str) -> str:
    """An instruction that finds a field."""
    return f"  %{result}.at = getelementptr i8, ptr %{base}, i64 {OFFSETS[structure, field]}"


def _load(result: str, kind: str, base: str, structure: str, field: str) -> str:
    """Instructions that read a field."""
    return f"{_field(result, base, structure, field)}\n  %{result} = load {kind}, ptr %{result}.at"


def _store(value: str, name: str, base: str, structure: str, field: str) -> str:
    """Instructions that write a field."""
    return f"{_field(name, base, structure, field)}\n  store {value}, ptr %{name}.at"


def _word(result: str, kind: str, base: str, number: int | str) -> str:
    return f"  %{result}.at = getelementptr i64, ptr %{base}, i64 {number}\n  %{result} = load {kind}, ptr %{result}.at"


def _set_words(base: str, values: dict[int, str]) -> str:
    return "\n".join(
        f"  %{base}.word{number} = getelementptr i64, ptr %{base}, i64 {number}\n"
        f"  store {value}, ptr %{base}.word{number}"
        for number, value in values.items()
    )


_FRONT = """
@linkwise_xla_kernel = external global [2 x i64]
declare ptr @linkwise_xla_call(ptr, ptr)
define ptr @linkwise_xla_handler(ptr %frame) nounwind {
  %error = tail call ptr @linkwise_xla_call(ptr %frame, ptr @linkwise_xla_kernel)
  ret ptr %error
}
"""

_FRAME = "XLA_FFI_CallFrame"
_SCHEDULE = "XLA_FFI_ThreadPool_Schedule_Args"

_METADATA = f"""
; XLA asks for the version of the interface that the handler knows: any minor one of its major version will do, so it is
; told its own.  Older ones do not say which that is.
define internal void @metadata(ptr %frame, ptr %extension) {{
entry:
{_load("metadata", "ptr", "extension", "XLA_FFI_Metadata_Extension", "metadata")}
{_load("api", "ptr", "frame", _FRAME, "api")}
  %unknown = icmp eq ptr %api, null
  br i1 %unknown, label %tell, label %ask
ask:
{_field("theirs", "api", "XLA_FFI_Api", "api_version")}
{_load("minor", "i32", "theirs.at", "XLA_FFI_Api_Version", "minor_version")}
  br label %tell
tell:
  %told = phi i32 [{OLDEST_MINOR_VERSION}, %entry], [%minor, %ask]
{_field("ours", "metadata", "XLA_FFI_Metadata", "api_version")}
  store i64 {SIZES["XLA_FFI_Api_Version"]}, ptr %ours.at
{_store("ptr null", "no_extension", "ours.at", "XLA_FFI_Api_Version", "extension_start")}
{_store(f"i32 {MAJOR_VERSION}", "our_major", "ours.at", "XLA_FFI_Api_Version", "major_version")}
{_store("i32 %told", "our_minor", "ours.at", "XLA_FFI_Api_Version", "minor_version")}
{_store("i32 0", "traits", "metadata", "XLA_FFI_Metadata", "traits")}
  ret void
}}
"""

_BUFFERS = f"""
; Addresses of the data of so many buffers.
define internal void @addresses(ptr %to, ptr %buffers, i64 %count) {{
entry:
  %some = icmp sgt i64 %count, 0
  br i1 %some, label %buffer, label %end
buffer:
  %i = phi i64 [0, %entry], [%i1, %buffer]
  %buffer.at = getelementptr ptr, ptr %buffers, i64 %i
  %one = load ptr, ptr %buffer.at
{_load("data", "ptr", "one", "XLA_FFI_Buffer", "data")}
  %slot = getelementptr ptr, ptr %to, i64 %i
  store ptr %data, ptr %slot
  %i1 = add i64 %i, 1
  %more = icmp slt i64 %i1, %count
  br i1 %more, label %buffer, label %end
end:
  ret void
}}

define internal void @operands(ptr %frame, ptr %to) {{
{_load("inputs", "i64", "frame", _FRAME, "args.size")}
{_load("args", "ptr", "frame", _FRAME, "args.args")}
{_load("outputs", "i64", "frame", _FRAME, "rets.size")}
{_load("rets", "ptr", "frame", _FRAME, "rets.rets")}
  call void @addresses(ptr %to, ptr %args, i64 %inputs)
  %after = getelementptr ptr, ptr %to, i64 %inputs
  call void @addresses(ptr %after, ptr %rets, i64 %outputs)
  ret void
}}
"""

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
  %request = alloca [{SIZES[_SCHEDULE]} x i8], align 8
  %destruction = alloca [{SIZES["XLA_FFI_Error_Destroy_Args"]} x i8], align 8
{_load("api", "ptr", "frame", _FRAME, "api")}
{_load("context", "ptr", "frame", _FRAME, "ctx")}
  call void @llvm.memset.p0.i64(ptr %request, i8 0, i64 {SIZES[_SCHEDULE]}, i1 false)
  store i64 {SIZES[_SCHEDULE]}, ptr %request
{_store("ptr %context", "to_context", "request", _SCHEDULE, "ctx")}
{_store("ptr @task", "to_task", "request", _SCHEDULE, "task")}
{_store("ptr %job", "to_data", "request", _SCHEDULE, "data")}
{_load("schedule", "ptr", "api", "XLA_FFI_Api", "XLA_FFI_ThreadPool_Schedule")}
  %error = call ptr %schedule(ptr %request)
  %refused = icmp ne ptr %error, null
  br i1 %refused, label %destroy, label %end
destroy:
  call void @llvm.memset.p0.i64(ptr %destruction, i8 0, i64 {SIZES["XLA_FFI_Error_Destroy_Args"]}, i1 false)
  store i64 {SIZES["XLA_FFI_Error_Destroy_Args"]}, ptr %destruction
{_store("ptr %error", "to_error", "destruction", "XLA_FFI_Error_Destroy_Args", "error")}
{_load("destroyer", "ptr", "api", "XLA_FFI_Api", "XLA_FFI_Error_Destroy")}
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
{_word("tile", "i64", "words", TILE_WORD)}
{_word("helpers", "i64", "words", HELPERS_WORD)}
{_word("core", "i64", "words", CORE_WORD)}
{_word("states", "i64", "words", STATES_WORD)}
  %loop = load ptr, ptr %kernel
{_word("data", "ptr", "kernel", 1)}
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
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
{drain()}{_METADATA}{_BUFFERS}{_TASKS}{_TOGETHER}
; XLA_FFI_Error *linkwise_xla_call(XLA_FFI_CallFrame *frame, {{loop, data}} *kernel)
define ptr @linkwise_xla_call(ptr %frame, ptr %kernel) nounwind {{
entry:
{_load("extension", "ptr", "frame", _FRAME, "extension_start")}
  %plain = icmp eq ptr %extension, null
  br i1 %plain, label %call, label %extended
extended:
{_load("type", "i32", "extension", "XLA_FFI_Extension_Base", "type")}
  %asks = icmp eq i32 %type, {METADATA_EXTENSION}
  br i1 %asks, label %tell, label %call
tell:
  call void @metadata(ptr %frame, ptr %extension)
  ret ptr null
call:
{_load("attributes", "ptr", "frame", _FRAME, "attrs.attrs")}
  %attribute = load ptr, ptr %attributes
{_load("length", "i64", "attribute", "XLA_FFI_Array", "size")}
{_load("words", "ptr", "attribute", "XLA_FFI_Array", "data")}
{_load("inputs", "i64", "frame", _FRAME, "args.size")}
{_load("outputs", "i64", "frame", _FRAME, "rets.size")}
  %operands = add i64 %inputs, %outputs
{_word("helpers", "i64", "words", HELPERS_WORD)}
{_load("api", "ptr", "frame", _FRAME, "api")}
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
{_word("core", "i64", "words", CORE_WORD)}
  %before_steps = add i64 %core, {STATES_WORD + 1}
  %dimensions = getelementptr i64, ptr %words, i64 {STATES_WORD}
  %steps = getelementptr i64, ptr %words, i64 %before_steps
  %loop = load ptr, ptr %kernel
{_word("data", "ptr", "kernel", 1)}
  call void %loop(ptr %args, ptr %dimensions, ptr %steps, ptr %data)
  br label %end
end:
  ret ptr null
}}
"""
