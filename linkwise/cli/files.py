"""Files named on the command line: reading, checks before writing, and error messages."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import click

import linkwise as lw

PIPE = "-"  # standard input where something is read, standard output where something is written


class Output(click.ParamType):
    """A file that can be written: complains before anything is computed for it, not after.

    suffixes   the endings it may have, any if there are none
    pipe       allows "-", standard output
    drawn      what draws it must be installed
    """

    name = "FILE"

    def __init__(self, *suffixes: str, pipe: bool = False, drawn: bool = False):
        self.suffixes, self.pipe, self.drawn = suffixes, pipe, drawn

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        file = Path(value)
        if self.pipe and value == PIPE:
            return value
        if file.is_dir():
            raise click.UsageError(f"{value} is a folder; give the path of a file in it")
        if self.suffixes and file.suffix.lower() not in self.suffixes:
            raise click.UsageError(f"{value}: the name must end in {' or '.join(self.suffixes)}")
        if not file.parent.is_dir():
            raise click.UsageError(f"{value} cannot be written: there is no folder {file.parent}")
        if self.drawn:
            lw.viewer.animation.require(value)
        return value


Picture = Annotated[str, Output(".png", ".svg", ".pdf", drawn=True)]
Arrays = Annotated[str, Output(".npz")]
TableFile = Annotated[str, Output(".csv", ".npz", pipe=True)]


def called(path: str) -> str:
    """A file as messages call it."""
    return "standard input" if path == PIPE else path


def contents(path: str) -> bytes:
    """The bytes of a file, a pipe such as /dev/stdin, or standard input, "-"."""
    return sys.stdin.buffer.read() if path == PIPE else existing(path).read_bytes()


def existing(path: str) -> Path:
    """A file or a pipe such as /dev/stdin that is there."""
    file = Path(path)
    if file.is_dir():
        raise click.UsageError(f"{path} is a folder; give the path of a file in it")
    if not file.exists():
        raise click.UsageError(f"there is no file {path}")
    return file


def trouble(error: OSError) -> str:
    """The message of an operating system on a file, in words."""
    if error.strerror is None or error.filename is None:
        return str(error)
    return f"{error.filename}: {error.strerror[:1].lower()}{error.strerror[1:]}"
