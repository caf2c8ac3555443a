"""Disk cache of object code and of outlines of programs by recipe, so that work is done once per machine, not per
process.

One file per key: a magic number, a checksum, the content.  A damaged, foreign or unreadable file counts as absent; a
directory without write access is no error.  A directory in which other users can exchange files is not used: they could
have this user run their code.  Modification times record the last use: above the size limit, the least recently used
files are deleted.  Several processes may use the cache at once.
"""

from __future__ import annotations

import contextlib
import hashlib
import numbers
import os
import stat
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import llvmlite
import llvmlite.binding as llvm

from ..ir.program import Program
from ..targets.protocol import Options

OBJECT, OUTLINE, TABLES = "object", "outline", "tables"  # kinds of content, and the suffixes of files
_KINDS = (OBJECT, OUTLINE, TABLES)
_DIGEST_SIZE = 32
_WRITING = ".writing-"
DEFAULT_LIMIT = 512_000_000  # bytes
# Scanning the directory takes some milliseconds.  A process scans at its first write, when its own writes reach the
# limit, and after each such share of it, because others write too.
_SHARE_UNSEEN = 1 / 16
_ROOM = 0.9  # share of the limit kept after an eviction, so that not every write evicts
_ABANDONED = 3600.0  # s: older temporary files belong to killed processes

__all__ = ["Info", "clear", "directory", "info", "limit", "set_limit"]
__dir__ = __all__.copy

_limit: int | None = None  # set by ``set_limit``
_unwatched = 0.0  # bytes that this process may still write before the next scan
_warned_of: set[Path] = set()  # directories that are unsafe
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


@dataclass(frozen=True)
class Info:
    """Contents of the cache of compiled code.

    directory   where it is
    files       number of compiled programs
    size        of all files together, bytes
    limit       size above which the least recently used files are deleted, bytes
    """

    directory: Path
    files: int
    size: int
    limit: int


def info() -> Info:
    """Place, number of programs, size and limit of the cache of compiled code."""
    _is_safe(directory())
    entries = list(_entries())
    objects = sum(path.suffix == f".{OBJECT}" for _, _, path in entries)
    return Info(directory(), objects, sum(size for _, size, _ in entries), limit())


def clear() -> Info:
    """Delete all compiled code on disk; returns the former contents. Kernels of running programs keep working."""
    before = info()
    for _, _, path in _entries():
        _delete(path)
    _delete_abandoned(age=0.0)
    return before


def limit() -> int:
    """Maximum bytes of compiled code on disk: from ``set_limit``, else $LINKWISE_CACHE_LIMIT, else 512 MB."""
    if _limit is not None:
        return _limit
    text = os.environ.get("LINKWISE_CACHE_LIMIT")
    if not text:
        return DEFAULT_LIMIT
    if not text.isdecimal():
        raise ValueError(f"LINKWISE_CACHE_LIMIT must be a whole number of bytes, such as 512000000, not {text!r}")
    return int(text)


def set_limit(size: int) -> None:
    """Limit compiled code on disk to ``size`` bytes for this process; 0 disables the cache. Excess files are deleted at
    once, least recently used first."""
    global _limit
    if not isinstance(size, numbers.Integral) or isinstance(size, bool) or size < 0:
        raise ValueError(f"the limit of the cache must be a whole number of bytes, 0 or more, not {size!r}")
    _limit = int(size)
    _evict()


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


def _is_safe(folder: Path) -> bool:
    """Whether no other user can exchange files of a directory, or it does not exist yet; warns once if unsafe.

    With the sticky bit, as on /tmp, other users can only add files; files of other owners are never read.
    """
    try:
        facts = folder.stat()
    except OSError:
        return True
    if not hasattr(os, "getuid"):  # access is controlled by other means
        return True
    if facts.st_uid not in (os.getuid(), 0):
        reason = f"belongs to another user ({facts.st_uid})"
    elif facts.st_mode & _OTHERS_WRITE and not facts.st_mode & stat.S_ISVTX:
        reason = f"can be written by other users (mode {stat.S_IMODE(facts.st_mode):04o})"
    else:
        return True
    if folder not in _warned_of:
        _warned_of.add(folder)
        warnings.warn(
            f"compiled code is neither read from nor kept in {folder}, which {reason}: they could have you run their "
            f"code. chmod go-w {folder} if it is yours, or set LINKWISE_CACHE_DIR to a directory that only you can "
            "write",
            stacklevel=3,
        )
    return False


def program_key(program: Program, options: Options) -> str:
    """The cache key of compiling ``program`` with ``options``: equal keys, equal code.

    The key also covers the compiler's source and the version of LLVM.  Compute it before the passes, so that neither
    passes nor the emitter run when the object code is cached.
    """
    over_time = program.carried, program.registers
    arrays = repr((program.name, program.inputs, program.outputs, options, over_time, compiler_fingerprint()))
    return hashlib.sha256(f"{arrays}\n{program.content}".encode()).hexdigest()


@cache
def compiler_fingerprint() -> str:
    """A digest of the version of LLVM and of the compiler sources that affect object code."""
    package = Path(__file__).resolve().parents[1]
    digest = hashlib.sha256(repr((llvmlite.__version__, llvm.llvm_version_info, sys.platform)).encode())
    stages = [file for folder in ("ir", "passes", "targets") for file in sorted((package / folder).glob("*.py"))]
    for file in (package / "pipeline.py", *stages, package / "runtime" / "llvm_loader.py"):
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


def fetch(key: str, kind: str = OBJECT) -> bytes | None:
    """Content stored under ``key``, object code or another ``kind``; None if absent, damaged or foreign. Marks the file
    as used."""
    path = _path(key, kind)
    if not _is_safe(path.parent):
        return None
    try:
        with path.open("rb") as file:
            facts = os.fstat(file.fileno())
            if hasattr(os, "getuid") and (facts.st_uid != os.getuid() or facts.st_mode & _OTHERS_WRITE):
                return None  # code possibly written by someone else is not run
            content = file.read()
    except OSError:
        return None
    start = len(_magic(kind)) + _DIGEST_SIZE
    code = content[start:]
    if content[:start] != _magic(kind) + hashlib.sha256(code).digest():
        return None
    with contextlib.suppress(OSError):
        os.utime(path)
    return code


def _magic(kind: str) -> bytes:
    return f"linkwise {kind} 1\n".encode()


def store(key: str, code: bytes, kind: str = OBJECT) -> None:
    """Write ``code`` under ``key``, through a temporary file so that readers never see a part of it."""
    global _unwatched
    content = _magic(kind) + hashlib.sha256(code).digest() + code
    most = limit()
    if len(content) > most:
        return
    folder = directory()
    if not _is_safe(folder):
        return
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, temporary = tempfile.mkstemp(dir=folder, prefix=_WRITING)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            os.replace(temporary, _path(key, kind))
        except OSError:
            os.unlink(temporary)
            raise
    _unwatched -= len(content)
    if _unwatched < 0.0:
        _evict()


def _evict() -> None:
    """Delete the least recently used files if the total size exceeds the limit."""
    global _unwatched
    entries = sorted(_entries())
    size, most = sum(size for _, size, _ in entries), limit()
    if size > most:
        for _, freed, path in entries:
            if size <= _ROOM * most:
                break
            _delete(path)
            size -= freed
    _delete_abandoned(_ABANDONED)
    _unwatched = min(_SHARE_UNSEEN * most, most - size)


def _entries() -> Iterator[tuple[float, int, Path]]:
    """(time of last use, size, path) of every file; skips files deleted by other processes."""
    return _files(lambda name: name.rpartition(".")[2] in _KINDS)


def _delete_abandoned(age: float) -> None:
    """Delete temporary files older than ``age`` seconds."""
    for changed, _, path in _files(lambda name: name.startswith(_WRITING)):
        if time.time() - changed >= age:
            _delete(path)


def _files(wanted: Callable[[str], bool]) -> Iterator[tuple[float, int, Path]]:
    with contextlib.suppress(OSError), os.scandir(directory()) as entries:
        for entry in entries:
            if wanted(entry.name):
                with contextlib.suppress(OSError):
                    facts = entry.stat(follow_symlinks=False)
                    yield facts.st_mtime, facts.st_size, Path(entry.path)


def _delete(path: Path) -> None:
    with contextlib.suppress(OSError):  # gone already, or locked because in use
        path.unlink()


def _path(key: str, kind: str = OBJECT) -> Path:
    return directory() / f"{key}.{kind}"
