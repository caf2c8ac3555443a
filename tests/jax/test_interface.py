"""The structures of XLA's foreign function interface, as the handlers read them, against the header of jaxlib."""

import ctypes
import re
from pathlib import Path

import pytest

from linkwise.compiler.runtime import xla

jax = pytest.importorskip("jax")

HEADER = (Path(jax.ffi.include_dir()) / "xla" / "ffi" / "api" / "c_api.h").read_text()
SIMPLE = {"size_t": ctypes.c_size_t, "int64_t": ctypes.c_int64, "int": ctypes.c_int, "int32_t": ctypes.c_int32}


def plain_text():
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", HEADER, flags=re.DOTALL)
    return re.sub(r"_XLA_FFI_API_STRUCT_FIELD\((\w+)\)", r"void* \1", text)


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


def offset(structure, path):
    total = 0
    for part in path.split("."):
        total += getattr(structure, part).offset
        structure = dict(structure._fields_)[part]
    return total


def test_fields_are_where_handlers_read_them():
    known = structures()
    for (name, path), expected in xla.OFFSETS.items():
        assert offset(known[name], path) == expected, (name, path)
    for name, expected in xla.SIZES.items():
        assert ctypes.sizeof(known[name]) == expected, name


def test_the_version_of_the_interface():
    assert int(re.search(r"#define XLA_FFI_API_MAJOR (\d+)", HEADER)[1]) == xla.MAJOR_VERSION
    assert int(re.search(r"XLA_FFI_Extension_Metadata = (\d+)", HEADER)[1]) == xla.METADATA_EXTENSION
