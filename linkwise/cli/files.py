"""Files named on the command line: what is read, what will be written, and what is wrong with them."""

from __future__ import annotations

import sys
from pathlib import Path

import click

import linkwise as lw

PIPE = "-"  # standard input where something is read, standard output where something is written


def called(path: str) -> str:
    """A file as messages call it."""
    return "standard input" if path == PIPE else path


def contents(path: str) -> bytes:
    """What is in a file, a pipe such as /dev/stdin, or standard input, "-"."""
    if path == PIPE:
        return sys.stdin.buffer.read()
    file = Path(path)
    if file.is_dir():
        raise click.UsageError(f"{path} is a folder; give the path of a file in it")
    if not file.exists():
        raise click.UsageError(f"there is no file {path}")
    return file.read_bytes()


def check_output(path: str | None, *suffixes: str, pipe: bool = False) -> None:
    """Complain of a file that cannot be written before anything is computed for it, not after.

    ``suffixes`` are the endings it may have, any if there are none; ``pipe`` allows "-", standard output.
    """
    if path is None or (pipe and path == PIPE):
        return
    file = Path(path)
    if file.is_dir():
        raise click.UsageError(f"{path} is a folder; give the path of a file in it")
    if suffixes and file.suffix.lower() not in suffixes:
        raise click.UsageError(f"{path}: the name must end in {' or '.join(suffixes)}")
    if not file.parent.is_dir():
        raise click.UsageError(f"{path} cannot be written: there is no folder {file.parent}")


def check_picture(path: str | None, *suffixes: str) -> None:
    """The same of a picture, and that what draws it is installed."""
    check_output(path, *suffixes)
    if path is not None:
        lw.viewer.animation.require(path)


def trouble(error: OSError) -> str:
    """What an operating system says of a file, in words."""
    if error.strerror is None or error.filename is None:
        return str(error)
    return f"{error.filename}: {error.strerror[:1].lower()}{error.strerror[1:]}"
