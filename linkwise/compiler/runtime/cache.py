"""Compiled object code on disk, so that a program is compiled once per machine and not once per process.

One file per key: a magic number, a checksum, the object code.  A file that is damaged, foreign or unreadable counts
as absent; a directory that cannot be written to is no error.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import tempfile
from functools import cache
from pathlib import Path

import llvmlite
import llvmlite.binding as llvm

from ..ir.program import Program
from ..ir.recurrence import Recurrence
from ..targets.protocol import Options

_MAGIC = b"linkwise object 1\n"
_DIGEST_SIZE = 32


def directory() -> Path:
    """Where the files are: $LINKWISE_CACHE_DIR, else the user's cache directory."""
    override = os.environ.get("LINKWISE_CACHE_DIR")
    if override:
        return Path(override)
    if sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    elif os.name == "nt":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "linkwise"


def program_key(program: Program, options: Options, recurrence: Recurrence | None = None) -> str:
    """A name for what compiling ``program`` with ``options`` gives, as a ``recurrence`` or not: equal keys, equal code.

    Besides these it covers the text of the compiler itself and the version of LLVM.  Take it before the passes:
    then neither they nor the emitter need to run when the object code is there.
    """
    number = {node: i for i, node in enumerate(program.nodes)}
    lines = [
        f"{node.op.name} {node.value!r}" if not node.args else f"{node.op.name} {[number[arg] for arg in node.args]}"
        for node in program.nodes
    ]
    lines.append(repr((program.name, program.inputs, program.outputs, options, recurrence, compiler_fingerprint())))
    lines += [repr([number[node] for node in group]) for group in program.results]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


@cache
def compiler_fingerprint() -> str:
    """A digest of the compiler's own source and of the version of LLVM."""
    package = Path(__file__).resolve().parents[1]
    digest = hashlib.sha256(repr((llvmlite.__version__, llvm.llvm_version_info, sys.platform)).encode())
    sources = [
        file for folder in ("ir", "passes", "targets", "runtime") for file in sorted((package / folder).glob("*.py"))
    ]
    for file in (package / "pipeline.py", *sources):
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


def fetch(key: str) -> bytes | None:
    """The object code stored under ``key``, if it is there, ours and whole."""
    try:
        with _path(key).open("rb") as file:
            if hasattr(os, "getuid") and os.fstat(file.fileno()).st_uid != os.getuid():
                return None  # code that someone else wrote is not run
            content = file.read()
    except OSError:
        return None
    start = len(_MAGIC) + _DIGEST_SIZE
    code = content[start:]
    if content[:start] != _MAGIC + hashlib.sha256(code).digest():
        return None
    return code


def store(key: str, code: bytes) -> None:
    """Write ``code`` under ``key``: to a temporary file first, so that no reader ever sees half of it."""
    with contextlib.suppress(OSError):
        folder = directory()
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, temporary = tempfile.mkstemp(dir=folder, prefix=".writing-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(_MAGIC + hashlib.sha256(code).digest() + code)
            os.replace(temporary, _path(key))
        except OSError:
            os.unlink(temporary)
            raise


def _path(key: str) -> Path:
    return directory() / f"{key}.object"
