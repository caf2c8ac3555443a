"""The FILE argument: a mechanism file, a DH table, or builtin:NAME[:NUMBER...]."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from difflib import get_close_matches
from typing import Any, NamedTuple

import click

import linkwise as lw
from linkwise.readers.dh_table import SUFFIXES, load_dh

BUILTIN = "builtin:"


class Loaded(NamedTuple):
    """A mechanism and what its reader had to say about it."""

    mechanism: lw.Mechanism
    warnings: tuple[str, ...]


def file_argument(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the argument FILE and the option --floating-base."""
    command = click.option("--floating-base", is_flag=True, help="Let the root link of the file move freely.")(command)
    return click.argument("file")(command)


def loaded(file: str, floating_base: bool = False, convention: str | None = None, trust_units: bool = False) -> Loaded:
    """The mechanism of FILE; ``convention`` and ``trust_units`` are those of a DH table."""
    is_table = file.lower().endswith(SUFFIXES) and not file.startswith(BUILTIN)
    if convention and not is_table:
        raise click.UsageError("--convention is for DH tables, in .toml or .csv files")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if file.startswith(BUILTIN):
            if floating_base:
                raise click.UsageError("--floating-base is for files; a built-in mechanism is as it is")
            mechanism = _builtin(file.removeprefix(BUILTIN))
        elif file.lstrip().startswith("<"):
            raise click.UsageError("FILE is the path of a file, not its text")
        elif is_table:
            if floating_base:
                raise click.UsageError(
                    "--floating-base is for mechanism files; the arm of a DH table stands on the ground"
                )
            mechanism = load_dh(file, convention, trust_units)
        else:
            mechanism = lw.load(file, floating_base=floating_base)
    return Loaded(mechanism, tuple(str(warning.message) for warning in caught))


def report_warnings(found: Loaded) -> None:
    """Warnings to stderr, where they are not part of the answer."""
    for message in found.warnings:
        click.echo(f"linkwise: warning: {message}", err=True)


def _builtin(description: str) -> lw.Mechanism:
    name, *arguments = description.split(":")
    known = lw.mechanisms.__all__
    if name not in known:
        close = get_close_matches(name, known)
        hint = f"did you mean {' or '.join(close)}?" if close else f"there are {', '.join(known)}"
        raise click.UsageError(f"there is no built-in mechanism {name!r}: {hint}")
    make = getattr(lw.mechanisms, name)
    values = [_number(name, argument) for argument in arguments]
    try:
        inspect.signature(make).bind(*values)
    except TypeError as error:
        parameters = ":".join(inspect.signature(make).parameters)
        raise click.UsageError(f"{BUILTIN}{description}: {error}; the form is {BUILTIN}{name}:{parameters}") from None
    return make(*values)


def _number(name: str, text: str) -> float:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    raise click.UsageError(f"{BUILTIN}{name} takes numbers, not {text!r}")
