"""Compiled object code on disk, so that a program is compiled once per machine and not once per process; and outlines
of programs by recipe, so that most need not be made again either.

One file per key: a magic number, a checksum, the content.  A file that is damaged, foreign or unreadable counts
as absent; a directory that cannot be written to is no error.  A directory in which other users can exchange files is
not used: they could have this user run their code.  The time of a file is that of its last use: where the files take
more room than they may, those that were not used for longest are deleted.  Several processes may do all of this at
once.
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

OBJECT, OUTLINE, TABLES = "object", "outline", "tables"  # what files hold, and how their names end
_KINDS = (OBJECT, OUTLINE, TABLES)
_DIGEST_SIZE = 32
_WRITING = ".writing-"
DEFAULT_LIMIT = 512_000_000  # bytes
# Looking through the directory takes some milliseconds: a process does so at its first write, when its own writes reach
# the limit, and after each such share of it, as others write too.
_SHARE_UNSEEN = 1 / 16
_ROOM = 0.9  # of the limit that is left filled: not every write is to delete something
_ABANDONED = 3600.0  # s: a file that has been written to for so long belongs to a process that was killed

__all__ = ["Info", "clear", "directory", "info", "limit", "set_limit"]
__dir__ = __all__.copy

_limit: int | None = None  # as this process was told
_unwatched = 0.0  # bytes that this process may still write before it looks through the directory again
_warned_of: set[Path] = set()  # directories that are not used
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


@dataclass(frozen=True)
class Info:
    """What is in the cache of compiled code.

    directory   where it is
    files       how many compiled programs
    size        of all files together, bytes
    limit       the size beyond which the longest unused files are deleted, bytes
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
    """Delete all compiled code on disk; gives what there was.  Kernels of running programs keep working."""
    before = info()
    for _, _, path in _entries():
        _delete(path)
    _delete_abandoned(age=0.0)
    return before


def limit() -> int:
    """The most bytes of compiled code on disk: as ``set_limit`` said, else $LINKWISE_CACHE_LIMIT, else 512 MB."""
    if _limit is not None:
        return _limit
    text = os.environ.get("LINKWISE_CACHE_LIMIT")
    if not text:
        return DEFAULT_LIMIT
    if not text.isdecimal():
        raise ValueError(f"LINKWISE_CACHE_LIMIT must be a whole number of bytes, such as 512000000, not {text!r}")
    return int(text)


def set_limit(size: int) -> None:
    """In this process, keep at most ``size`` bytes of compiled code on disk; 0 keeps nothing.  What is too much is
    deleted at once, the longest unused first."""
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
    """Whether no other user can exchange files of a directory, or it is not there yet; warns once where one can.

    Where the sticky bit is set, as on /tmp, others can add files only, which are not theirs to have read.
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
    """A name for what compiling ``program`` with ``options`` gives: equal keys, equal code.

    Besides these it covers the text of the compiler itself and the version of LLVM.  Take it before the passes:
    then neither they nor the emitter need to run when the object code is there.
    """
    over_time = program.carried, program.registers
    arrays = repr((program.name, program.inputs, program.outputs, options, over_time, compiler_fingerprint()))
    return hashlib.sha256(f"{arrays}\n{program.content}".encode()).hexdigest()


@cache
def compiler_fingerprint() -> str:
    """A digest of the version of LLVM and of the compiler's own source, as far as object code depends on it."""
    package = Path(__file__).resolve().parents[1]
    digest = hashlib.sha256(repr((llvmlite.__version__, llvm.llvm_version_info, sys.platform)).encode())
    stages = [file for folder in ("ir", "passes", "targets") for file in sorted((package / folder).glob("*.py"))]
    for file in (package / "pipeline.py", *stages, package / "runtime" / "llvm_loader.py"):
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


def fetch(key: str, kind: str = OBJECT) -> bytes | None:
    """What is stored under ``key``, object code or another ``kind``, if it is there, ours and whole; it counts as used
    now."""
    path = _path(key, kind)
    if not _is_safe(path.parent):
        return None
    try:
        with path.open("rb") as file:
            facts = os.fstat(file.fileno())
            if hasattr(os, "getuid") and (facts.st_uid != os.getuid() or facts.st_mode & _OTHERS_WRITE):
                return None  # code that someone else wrote, or may have written, is not run
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
    """Write ``code`` under ``key``: to a temporary file first, so that no reader ever sees half of it."""
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
    """Delete the files that were not used for longest, if all together take more room than the limit allows."""
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
    """(time of last use, size, path) of every file; what another process deletes meanwhile is left out."""
    return _files(lambda name: name.rpartition(".")[2] in _KINDS)


def _delete_abandoned(age: float) -> None:
    """Delete what has been written for longer than ``age``, in seconds."""
    for changed, _, path in _files(lambda name: name.startswith(_WRITING)):
        if time.time() - changed >= age:
            _delete(path)


def _files(wanted: Callable[[str], bool]) -> Iterator[tuple[float, int, Path]]:
    with contextlib.suppress(OSError), os.scandir(directory()) as found:
        for entry in found:
            if wanted(entry.name):
                with contextlib.suppress(OSError):
                    facts = entry.stat(follow_symlinks=False)
                    yield facts.st_mtime, facts.st_size, Path(entry.path)


def _delete(path: Path) -> None:
    with contextlib.suppress(OSError):  # gone already, or in use on a system that minds
        path.unlink()


def _path(key: str, kind: str = OBJECT) -> Path:
    return directory() / f"{key}.{kind}"
