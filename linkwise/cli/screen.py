"""Output to terminals and pipes: tables, warnings, progress.  A pipe gets plain text and no progress."""

from __future__ import annotations

import contextlib
import json
import math
import shutil
import sys
import unicodedata
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np

_warned: set[str] = set()  # by the command that runs


def warn(message: str) -> None:
    """One line on stderr, once for each message of a command."""
    text = " ".join(message.split())
    if text not in _warned:
        _warned.add(text)
        click.echo(f"linkwise: warning: {text}", err=True)


@contextlib.contextmanager
def one_line_warnings() -> Iterator[None]:
    """Print what is warned of inside as ``warn`` does, whatever its category; Python's -W and PYTHONWARNINGS still
    say what is ignored."""

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        warn(str(message))

    _warned.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("always", append=True)
        warnings.showwarning = show
        yield


def table(head: Sequence[str] | None, rows: Sequence[Sequence[str]], numbers: Sequence[int] = ()) -> Iterator[str]:
    """Columns of equal width, ``numbers`` among them to the right; empty columns are left out."""
    used = [k for k in range(len(rows[0]) if rows else 0) if any(row[k] for row in rows)]
    lines = [*([head] if head else []), *rows]
    widths = {k: max(_cells(line[k]) for line in lines) for k in used}
    for index, line in enumerate(lines):
        gaps = {k: " " * (widths[k] - _cells(line[k])) for k in used}
        text = "  ".join(gaps[k] + line[k] if k in numbers else line[k] + gaps[k] for k in used).rstrip()
        yield click.style(text, dim=True) if head and index == 0 else text


def _cells(text: str) -> int:
    """The width of a text on the screen: letters of East Asia take two cells, combining accents none."""
    return sum(
        0 if unicodedata.combining(letter) else 1 + (unicodedata.east_asian_width(letter) in "WF") for letter in text
    )


def section(title: str, lines: Iterable[str]) -> Iterator[str]:
    """An empty line, a title, and the lines indented."""
    yield ""
    yield click.style(title, bold=True)
    yield from (f"  {line}".rstrip() for line in lines)


@dataclass
class Answer:
    """What a command shows.

    json   one JSON document instead of text, in SI units; complex numbers are [real, imaginary]
    """

    json: bool = False

    def show(self, facts: dict[str, Any], lines: Iterable[str]) -> None:
        """The facts as JSON, or the lines of text."""
        click.echo(json.dumps(_plain(facts), indent=2) if self.json else "\n".join(lines))


def _plain(value: Any) -> Any:
    """A value for JSON: arrays as lists, complex numbers as [real, imaginary], infinity and NaN as None."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, (complex, np.complexfloating)):
        return [_plain(float(value.real)), _plain(float(value.imag))]
    if isinstance(value, (np.floating, float)):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, np.integer):
        return int(value)
    return value


def written(files: Iterable[Path | str]) -> Iterator[str]:
    """A section with the files of an answer; empty without files."""
    names = [shown(file) for file in files]
    yield from section("files", names) if names else ()


def free_width(otherwise: int) -> int:
    """Letters that fit a line of a section on the terminal; ``otherwise`` in a pipe."""
    return max(20, shutil.get_terminal_size().columns - 2) if sys.stdout.isatty() else otherwise


def shown(path: Path | str) -> str:
    """A path as it is best typed: relative to here if it is below."""
    try:
        return str(Path(path).resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(path)


class Progress:
    """A line of progress at the foot of the terminal; invisible if stderr is no terminal."""

    def __init__(self, total: int):
        self.total, self.count = total, 0
        self.live = sys.stderr.isatty()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self._write("")

    def at(self, stage: str) -> None:
        """Show the present stage."""
        self._write(f"[{self.count + 1}/{self.total}] {stage} ...")

    def done(self) -> None:
        self.count += 1

    def say(self, line: str) -> None:
        """A line of output above the progress."""
        self._write("")
        click.echo(line)

    def _write(self, text: str) -> None:
        if self.live:
            width = shutil.get_terminal_size().columns - 1
            # Blanks wipe out what was there, on any terminal.
            click.echo(f"\r{text[:width]:{width}}" + "\r" * (not text), err=True, nl=False)
