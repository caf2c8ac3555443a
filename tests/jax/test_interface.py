"""The structures of XLA's foreign function interface, as the handlers read them, against the header of jaxlib."""

import ctypes
import re

import pytest

from linkwise.compiler.runtime import xla_interface

pytest.importorskip("jax")
from .interface import HEADER, structures  # noqa: E402


def offset(structure, path):
    total = 0
    for part in path.split("."):
        total += getattr(structure, part).offset
        structure = dict(structure._fields_)[part]
    return total


def test_fields_are_where_handlers_read_them():
    known = structures()
    for (name, path), expected in xla_interface.OFFSETS.items():
        assert offset(known[name], path) == expected, (name, path)
    for name, expected in xla_interface.SIZES.items():
        assert ctypes.sizeof(known[name]) == expected, name


def test_the_version_of_the_interface():
    assert int(re.search(r"#define XLA_FFI_API_MAJOR (\d+)", HEADER)[1]) == xla_interface.MAJOR_VERSION
    assert int(re.search(r"XLA_FFI_Extension_Metadata = (\d+)", HEADER)[1]) == xla_interface.METADATA_EXTENSION
