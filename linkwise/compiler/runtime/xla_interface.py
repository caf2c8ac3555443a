"""XLA's foreign function interface in LLVM text: parts shared by handlers of all platforms.

XLA passes a handler one structure, the call frame, with the addresses of all buffers (``xla/ffi/api/c_api.h`` of
jaxlib: a C interface that is stable within a major version).  All kernels of a platform share one function,
``linkwise_xla_call(frame, kernel)``; each kernel has a function of three instructions in front of it that passes its
own data.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from . import llvm_loader
from .llvm_loader import MachineCode

ATTRIBUTE = "call"  # the name of the only attribute
MAJOR_VERSION = 0  # of the interface; field offsets are fixed within it
OLDEST_MINOR_VERSION = 1  # version of jaxlib 0.5

#: Byte offsets of fields in structures of the interface.
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
    ("XLA_FFI_Api", "XLA_FFI_Error_Create"): 48,
    ("XLA_FFI_Api", "XLA_FFI_Error_Destroy"): 64,
    ("XLA_FFI_Api", "XLA_FFI_Stream_Get"): 80,
    ("XLA_FFI_Api", "XLA_FFI_ThreadPool_Schedule"): 136,
    ("XLA_FFI_ThreadPool_Schedule_Args", "ctx"): 16,
    ("XLA_FFI_ThreadPool_Schedule_Args", "task"): 24,
    ("XLA_FFI_ThreadPool_Schedule_Args", "data"): 32,
    ("XLA_FFI_Error_Destroy_Args", "error"): 16,
    ("XLA_FFI_Error_Create_Args", "message"): 16,
    ("XLA_FFI_Error_Create_Args", "errc"): 24,
    ("XLA_FFI_Stream_Get_Args", "ctx"): 16,
    ("XLA_FFI_Stream_Get_Args", "stream"): 24,
}
#: Sizes of structures that the handler fills in.
SIZES = {
    "XLA_FFI_Api_Version": 24,
    "XLA_FFI_ThreadPool_Schedule_Args": 40,
    "XLA_FFI_Error_Destroy_Args": 24,
    "XLA_FFI_Error_Create_Args": 32,
    "XLA_FFI_Stream_Get_Args": 32,
}
METADATA_EXTENSION = 1  # XLA_FFI_Extension_Metadata
INTERNAL = 13  # XLA_FFI_Error_Code_INTERNAL
COMMAND_BUFFER_COMPATIBLE = 1  # of XLA_FFI_Handler_TraitsBits: equal attributes give equal launches


@dataclass(frozen=True, eq=False)
class Handler:
    """A function ``XLA_FFI_Error *(XLA_FFI_CallFrame *)`` at ``address``, valid as long as this object lives; ``owned``
    is its machine code and data."""

    address: int
    owned: tuple[object, ...]


def bind(call: MachineCode, kernel: np.ndarray, *owned: object) -> Handler:
    """A handler that passes the 64-bit numbers ``kernel`` to the shared code of its platform."""
    host = {CALL: call.address, "linkwise_xla_kernel": kernel.ctypes.data}
    front = llvm_loader.load(_FRONT, "linkwise_xla_handler", llvm_loader.host_options(), host_functions=host)
    return Handler(front.address, (front, call, kernel, *owned))


# -- the text -----------------------------------------------------------------------------------------

CALL = "linkwise_xla_call"
FRAME = "XLA_FFI_CallFrame"


def address(result: str, base: str, structure: str, field: str) -> str:
    """An instruction that computes a field's address, named ``%result.at``."""
    return f"  %{result}.at = getelementptr i8, ptr %{base}, i64 {OFFSETS[structure, field]}"


def load(result: str, kind: str, base: str, structure: str, field: str) -> str:
    """Instructions that load a field."""
    return f"{address(result, base, structure, field)}\n  %{result} = load {kind}, ptr %{result}.at"


def store(value: str, name: str, base: str, structure: str, field: str) -> str:
    """Instructions that store a field."""
    return f"{address(name, base, structure, field)}\n  store {value}, ptr %{name}.at"


def word(result: str, kind: str, base: str, number: int | str) -> str:
    return f"  %{result}.at = getelementptr i64, ptr %{base}, i64 {number}\n  %{result} = load {kind}, ptr %{result}.at"


def filled(name: str, structure: str) -> str:
    """Instructions that make a zeroed structure with its size field set."""
    size = SIZES[structure]
    return f"""  %{name} = alloca [{size} x i8], align 8
  call void @llvm.memset.p0.i64(ptr %{name}, i8 0, i64 {size}, i1 false)
  store i64 {size}, ptr %{name}"""


_FRONT = """
@linkwise_xla_kernel = external global [2 x i64]
declare ptr @linkwise_xla_call(ptr, ptr)
define ptr @linkwise_xla_handler(ptr %frame) nounwind {
  %error = tail call ptr @linkwise_xla_call(ptr %frame, ptr @linkwise_xla_kernel)
  ret ptr %error
}
"""

METADATA = f"""
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

; XLA asks for the version of the interface that the handler knows: any minor one of its major version will do, so it is
; told its own.  Older ones do not say which that is.
define internal void @metadata(ptr %frame, ptr %extension, i32 %traits) {{
entry:
{load("metadata", "ptr", "extension", "XLA_FFI_Metadata_Extension", "metadata")}
{load("api", "ptr", "frame", FRAME, "api")}
  %unknown = icmp eq ptr %api, null
  br i1 %unknown, label %tell, label %ask
ask:
{address("theirs", "api", "XLA_FFI_Api", "api_version")}
{load("minor", "i32", "theirs.at", "XLA_FFI_Api_Version", "minor_version")}
  br label %tell
tell:
  %told = phi i32 [{OLDEST_MINOR_VERSION}, %entry], [%minor, %ask]
{address("ours", "metadata", "XLA_FFI_Metadata", "api_version")}
  store i64 {SIZES["XLA_FFI_Api_Version"]}, ptr %ours.at
{store("ptr null", "no_extension", "ours.at", "XLA_FFI_Api_Version", "extension_start")}
{store(f"i32 {MAJOR_VERSION}", "our_major", "ours.at", "XLA_FFI_Api_Version", "major_version")}
{store("i32 %told", "our_minor", "ours.at", "XLA_FFI_Api_Version", "minor_version")}
{store("i32 %traits", "our_traits", "metadata", "XLA_FFI_Metadata", "traits")}
  ret void
}}
"""

BUFFERS = f"""
; Addresses of the data of so many buffers.
define internal void @addresses(ptr %to, ptr %buffers, i64 %count) {{
entry:
  %some = icmp sgt i64 %count, 0
  br i1 %some, label %buffer, label %end
buffer:
  %i = phi i64 [0, %entry], [%i1, %buffer]
  %buffer.at = getelementptr ptr, ptr %buffers, i64 %i
  %one = load ptr, ptr %buffer.at
{load("data", "ptr", "one", "XLA_FFI_Buffer", "data")}
  %slot = getelementptr ptr, ptr %to, i64 %i
  store ptr %data, ptr %slot
  %i1 = add i64 %i, 1
  %more = icmp slt i64 %i1, %count
  br i1 %more, label %buffer, label %end
end:
  ret void
}}

define internal void @operands(ptr %frame, ptr %to) {{
{load("inputs", "i64", "frame", FRAME, "args.size")}
{load("args", "ptr", "frame", FRAME, "args.args")}
{load("outputs", "i64", "frame", FRAME, "rets.size")}
{load("rets", "ptr", "frame", FRAME, "rets.rets")}
  call void @addresses(ptr %to, ptr %args, i64 %inputs)
  %after = getelementptr ptr, ptr %to, i64 %inputs
  call void @addresses(ptr %after, ptr %rets, i64 %outputs)
  ret void
}}
"""


def entry(traits: int) -> str:
    """The function ``linkwise_xla_call`` up to label ``call``, where the attribute's words are available; before, it
    answers XLA's queries about the handler."""
    return f"""
; XLA_FFI_Error *linkwise_xla_call(XLA_FFI_CallFrame *frame, long long *kernel)
define ptr @linkwise_xla_call(ptr %frame, ptr %kernel) nounwind {{
entry:
{load("extension", "ptr", "frame", FRAME, "extension_start")}
  %plain = icmp eq ptr %extension, null
  br i1 %plain, label %call, label %extended
extended:
{load("type", "i32", "extension", "XLA_FFI_Extension_Base", "type")}
  %asks = icmp eq i32 %type, {METADATA_EXTENSION}
  br i1 %asks, label %tell, label %call
tell:
  call void @metadata(ptr %frame, ptr %extension, i32 {traits})
  ret ptr null
call:
{load("api", "ptr", "frame", FRAME, "api")}
{load("attributes", "ptr", "frame", FRAME, "attrs.attrs")}
  %attribute = load ptr, ptr %attributes
{load("length", "i64", "attribute", "XLA_FFI_Array", "size")}
{load("words", "ptr", "attribute", "XLA_FFI_Array", "data")}
{load("inputs", "i64", "frame", FRAME, "args.size")}
{load("outputs", "i64", "frame", FRAME, "rets.size")}
  %operands = add i64 %inputs, %outputs"""
