"""GPU kernels as XLA FFI handlers that launch them.

A handler contains its kernels' handles on each GPU.  The launches are planned when a function is compiled and passed as
one attribute of the call (``launch_words``): kernels, numbers of blocks, and places in the buffers.  A call asks XLA
for its stream, fills in the addresses of buffers, and launches; it never waits.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from . import llvm_loader
from .llvm_loader import MachineCode
from .planned_launches import Place, PlannedLaunch
from .xla_interface import (
    BUFFERS,
    CALL,
    COMMAND_BUFFER_COMPATIBLE,
    FRAME,
    INTERNAL,
    METADATA,
    Handler,
    bind,
    entry,
    filled,
    load,
    store,
    word,
)

LAUNCHES_WORD, MOST_WORD, FIRST_WORD = range(3)  # launch count, most arguments, first launch
FUNCTION, BLOCKS, THREADS, SHARED, ARGUMENTS, LAUNCH_WORDS = range(6)  # of a launch; pairs for its arguments follow
NUMBER = -1  # in place of a buffer: the argument is a number
LAUNCH, DEVICE_OF_CONTEXT, ERROR_NAME, DEVICES, PER_DEVICE, HANDLES = range(6)  # words of a handler's data


@dataclass(frozen=True)
class Driver:
    """Addresses of functions of the CUDA driver: cuLaunchKernel, cuCtxGetDevice, cuGetErrorName."""

    launch: int
    device_of_context: int
    error_name: int


@cache
def driver() -> Driver:
    library: Any = ctypes.CDLL("nvcuda.dll" if os.name == "nt" else "libcuda.so.1")
    names = ("cuLaunchKernel", "cuCtxGetDevice", "cuGetErrorName")
    return Driver(*(ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0 for name in names))


def handler(calls: Driver, handles: Sequence[Sequence[int]], *owned: object) -> Handler:
    """The handler that launches kernels by their driver handles on each device, keyed by device number; a device may
    have none. ``owned`` keeps them loaded."""
    count = max(map(len, handles))
    table = [handle for of_device in handles for handle in (of_device or (0,) * count)]
    header = [calls.launch, calls.device_of_context, calls.error_name, len(handles), count, *table]
    return bind(_call(), np.array(header, np.int64), *owned)


def launch_words(launches: Sequence[PlannedLaunch], functions: Sequence[Any]) -> np.ndarray:
    """The attribute of a call, one array of 64-bit integers; ``functions`` are the functions of the handler."""
    words = [len(launches), max(len(launch.arguments) for launch in launches)]
    for launch in launches:
        which = next(k for k, function in enumerate(functions) if function is launch.function)
        words += [which, launch.blocks, launch.threads, launch.shared, len(launch.arguments)]
        for x in launch.arguments:
            words += [x.array, x.offset] if isinstance(x, Place) else [NUMBER, int(x)]
    return np.array(words, np.int64)


@cache
def _call() -> MachineCode:
    """Code shared by all handlers, never freed."""
    write = ctypes.cast(ctypes.pythonapi.PyOS_snprintf, ctypes.c_void_p).value or 0
    return llvm_loader.load(_SOURCE, CALL, llvm_loader.host_options(), host_functions={"linkwise_write": write})


# -- the text -----------------------------------------------------------------------------------------


def _text(name: str, content: str) -> str:
    return f'@{name} = private constant [{len(content) + 1} x i8] c"{content}\\00"'


MESSAGE_BYTES = 200
_STREAM, _ERROR = "XLA_FFI_Stream_Get_Args", "XLA_FFI_Error_Create_Args"

_FAILURES = f"""
{_text("format", "linkwise: a kernel was not launched on the GPU: %s")}
{_text("nameless", "an error that the driver has no name for")}
{_text("elsewhere", "it is not loaded on this device, which JAX did not know of when it was compiled")}

define internal ptr @failure(ptr %frame, ptr %reason) {{
  %message = alloca [{MESSAGE_BYTES} x i8]
  %written = call i32 (ptr, i64, ptr, ...) @linkwise_write(ptr %message, i64 {MESSAGE_BYTES}, ptr @format, ptr %reason)
{filled("request", _ERROR)}
{store("ptr %message", "to_message", "request", _ERROR, "message")}
{store(f"i32 {INTERNAL}", "to_code", "request", _ERROR, "errc")}
{load("api", "ptr", "frame", FRAME, "api")}
{load("create", "ptr", "api", "XLA_FFI_Api", "XLA_FFI_Error_Create")}
  %error = call ptr %create(ptr %request)
  ret ptr %error
}}

define internal ptr @error_of_driver(ptr %frame, ptr %kernel, i32 %code) {{
  %name = alloca ptr
  store ptr @nameless, ptr %name
{word("name_of", "ptr", "kernel", ERROR_NAME)}
  %unnamed = call i32 %name_of(i32 %code, ptr %name)
  %given = load ptr, ptr %name
  %none = icmp eq ptr %given, null
  %reason = select i1 %none, ptr @nameless, ptr %given
  %error = call ptr @failure(ptr %frame, ptr %reason)
  ret ptr %error
}}
"""

_SOURCE = f"""
declare i32 @linkwise_write(ptr, i64, ptr, ...)
{METADATA}{BUFFERS}{_FAILURES}{entry(COMMAND_BUFFER_COMPATIBLE)}
  %bases = alloca ptr, i64 %operands
  call void @operands(ptr %frame, ptr %bases)
{load("context", "ptr", "frame", FRAME, "ctx")}
{filled("request", _STREAM)}
{store("ptr %context", "to_context", "request", _STREAM, "ctx")}
{load("stream_of", "ptr", "api", "XLA_FFI_Api", "XLA_FFI_Stream_Get")}
  %refusal = call ptr %stream_of(ptr %request)
  %refused = icmp ne ptr %refusal, null
  br i1 %refused, label %no_stream, label %find
no_stream:
  ret ptr %refusal
find:
{load("stream", "ptr", "request", _STREAM, "stream")}
  %device.slot = alloca i32
{word("device_of", "ptr", "kernel", DEVICE_OF_CONTEXT)}
  %no_device = call i32 %device_of(ptr %device.slot)
  %lost = icmp ne i32 %no_device, 0
  br i1 %lost, label %no_context, label %look
no_context:
  %of_context = call ptr @error_of_driver(ptr %frame, ptr %kernel, i32 %no_device)
  ret ptr %of_context
look:
  %device.number = load i32, ptr %device.slot
  %device = zext i32 %device.number to i64
{word("devices", "i64", "kernel", DEVICES)}
{word("per_device", "i64", "kernel", PER_DEVICE)}
  %inside = icmp ult i64 %device, %devices
  br i1 %inside, label %loaded, label %elsewhere
loaded:
  %row = mul i64 %device, %per_device
  %functions.word = add i64 %row, {HANDLES}
{word("functions", "i64", "kernel", "%functions.word")}
  %missing = icmp eq i64 %functions, 0
  br i1 %missing, label %elsewhere, label %start
elsewhere:
  %of_device = call ptr @failure(ptr %frame, ptr @elsewhere)
  ret ptr %of_device
start:
{word("launches", "i64", "words", LAUNCHES_WORD)}
{word("most", "i64", "words", MOST_WORD)}
  %values = alloca i64, i64 %most
  %places = alloca ptr, i64 %most
  %first = getelementptr i64, ptr %words, i64 {FIRST_WORD}
{word("launcher", "ptr", "kernel", LAUNCH)}
  br label %launch
launch:
  %k = phi i64 [0, %start], [%k1, %launched]
  %now = phi ptr [%first, %start], [%next, %launched]
{word("function", "i64", "now", FUNCTION)}
{word("blocks", "i64", "now", BLOCKS)}
{word("threads", "i64", "now", THREADS)}
{word("shared", "i64", "now", SHARED)}
{word("arguments", "i64", "now", ARGUMENTS)}
  %pairs = getelementptr i64, ptr %now, i64 {LAUNCH_WORDS}
  br label %argument
argument:
  %j = phi i64 [0, %launch], [%j1, %argument]
  %pair = mul i64 %j, 2
{word("buffer", "i64", "pairs", "%pair")}
  %number.word = add i64 %pair, 1
{word("number", "i64", "pairs", "%number.word")}
  %bare = icmp slt i64 %buffer, 0
  %of_buffer = select i1 %bare, i64 0, i64 %buffer
{word("base", "i64", "bases", "%of_buffer")}
  %offset = select i1 %bare, i64 0, i64 %base
  %value = add i64 %offset, %number
  %value.at = getelementptr i64, ptr %values, i64 %j
  store i64 %value, ptr %value.at
  %place.at = getelementptr ptr, ptr %places, i64 %j
  store ptr %value.at, ptr %place.at
  %j1 = add i64 %j, 1
  %more = icmp slt i64 %j1, %arguments
  br i1 %more, label %argument, label %ready
ready:
  %handle.at = getelementptr ptr, ptr %functions.at, i64 %function
  %handle = load ptr, ptr %handle.at
  %grid = trunc i64 %blocks to i32
  %block = trunc i64 %threads to i32
  %bytes = trunc i64 %shared to i32
  %code = call i32 %launcher(ptr %handle, i32 %grid, i32 1, i32 1, i32 %block, i32 1, i32 1, i32 %bytes, ptr %stream,
                             ptr %places, ptr null)
  %wrong = icmp ne i32 %code, 0
  br i1 %wrong, label %failed, label %launched
failed:
  %of_launch = call ptr @error_of_driver(ptr %frame, ptr %kernel, i32 %code)
  ret ptr %of_launch
launched:
  %after = mul i64 %arguments, 2
  %next = getelementptr i64, ptr %pairs, i64 %after
  %k1 = add i64 %k, 1
  %again = icmp slt i64 %k1, %launches
  br i1 %again, label %launch, label %end
end:
  ret ptr null
}}
"""
