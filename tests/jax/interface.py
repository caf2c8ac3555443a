"""The structures of XLA's foreign function interface, as the header of jaxlib lays them out."""

import ctypes
import re
from functools import cache
from pathlib import Path

import jax

HEADER = (Path(jax.ffi.include_dir()) / "xla" / "ffi" / "api" / "c_api.h").read_text()
SIMPLE = {"size_t": ctypes.c_size_t, "int64_t": ctypes.c_int64, "int": ctypes.c_int, "int32_t": ctypes.c_int32}


def plain_text():
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", HEADER, flags=re.DOTALL)
    return re.sub(r"_XLA_FFI_API_STRUCT_FIELD\((\w+)\)", r"void* \1", text)


@cache
def structures():
    """The structures of the header by name, laid out as C does it."""
    text, found = plain_text(), {}
    kinds = {name: ctypes.c_int for name in re.findall(r"typedef enum \{[^}]*\} (\w+);", text)}
    kinds |= SIMPLE | {"XLA_FFI_Handler_Traits": ctypes.c_uint32}
    for name, body in re.findall(r"struct (\w+) \{([^{}]*)\}", text):
        fields = []
        for line in filter(None, (re.sub(r"\s+", " ", part).strip() for part in body.split(";"))):
            *kind, field = line.replace("*", "* ").split()
            is_pointer = "*" in line or "(" in line
            fields.append((re.sub(r"\W", "", field), ctypes.c_void_p if is_pointer else kinds[" ".join(kind)]))
        found[name] = kinds[name] = type(name, (ctypes.Structure,), {"_fields_": fields})
    return found


def made(name, **fields):
    """A structure that knows its size."""
    kind = structures()[name]
    return kind(struct_size=ctypes.sizeof(kind), **fields)


def address(thing):
    return ctypes.cast(ctypes.pointer(thing), ctypes.c_void_p).value


def addresses(things):
    """An array of pointers to structures."""
    return (ctypes.c_void_p * len(things))(*map(address, things))
