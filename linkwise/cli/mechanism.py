"""The FILE argument: a mechanism file, - for one on standard input, a DH table, or builtin:NAME[:NUMBER...]."""

from __future__ import annotations

import functools
import inspect
import re
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import click

import linkwise as lw

from .files import PIPE, called, contents
from .screen import table, warn

BUILTIN = "builtin:"
TABLES = (".toml", ".csv")  # endings of DH tables; everything else is a mechanism file


class Loaded(NamedTuple):
    """A mechanism and what its reader had to say about it, but for what of it does not act: the notes have that."""

    mechanism: lw.Mechanism
    warnings: tuple[str, ...]
    trust_units: bool = False


def takes_mechanism(command: Callable[..., Any], required: bool = True) -> Callable[..., Any]:
    """Give a command the argument FILE with its options; what it is called with first is the mechanism, ``Loaded``, or
    None where FILE is not ``required`` and not given."""

    @functools.wraps(command)
    def run(
        file: str | None,
        floating_base: bool,
        loops: str | None,
        convention: str | None,
        gravity: tuple[float, float, float] | None,
        ground: float | None,
        trust_units: bool,
        **others: Any,
    ) -> Any:
        if file is None:
            return command(None, **others)
        if file == BUILTIN:
            click.echo("\n".join(table(None, [_described(name) for name in lw.mechanisms.__all__])))
            return None
        if file == PIPE and PIPE in (value for name, value in others.items() if name != "output"):
            raise click.UsageError("standard input is the mechanism or a table of numbers, not both")
        found = loaded(file, floating_base, loops, convention, trust_units)
        if gravity:
            found = found._replace(mechanism=found.mechanism.with_gravity(gravity))
        if ground is not None:
            found = found._replace(mechanism=found.mechanism.with_ground(ground))
        return command(found, **others)

    decorated: Callable[..., Any] = run
    for option in (
        click.option("--trust-units", is_flag=True, help="Accept numbers that look like degrees or millimetres."),
        click.option("--ground", type=float, metavar="HEIGHT", help="Put a floor under the shapes of the file, in m."),
        click.option("--gravity", type=float, nargs=3, metavar="X Y Z", help="In the ground frame, m/s^2."),
        click.option(
            "--convention",
            metavar="NAME",
            help="Of a DH table, instead of the one in its file: standard, modified or saha1999.",
        ),
        click.option("--loops", metavar="FILE", help="TOML file of joints that close loops, beside a URDF file."),
        click.option("--floating-base", is_flag=True, help="Let the root link of the file move freely."),
        click.argument("file", required=required),
    ):
        decorated = option(decorated)
    return decorated


def loaded(
    file: str,
    floating_base: bool = False,
    loops: str | None = None,
    convention: str | None = None,
    trust_units: bool = False,
) -> Loaded:
    """The mechanism of FILE; ``convention`` and ``trust_units`` are those of a DH table."""
    is_builtin = file.startswith(BUILTIN)
    is_table = file.lower().endswith(TABLES) and not is_builtin
    if convention and not is_table:
        raise click.UsageError("--convention is for DH tables, in .toml or .csv files")
    for option, given in (("--floating-base", floating_base), ("--loops", loops)):
        if given and (is_builtin or is_table):
            raise click.UsageError(f"{option} is for mechanism files such as URDF; {file} is as it is")
    if file.lstrip().startswith("<"):
        raise click.UsageError("FILE is the path of a file, not its text")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if is_builtin:
            mechanism = _builtin(file.removeprefix(BUILTIN))
        elif is_table:
            mechanism = lw.load_dh(file, convention, trust_units)
        else:
            mechanism = lw.load(_piped() if file == PIPE else file, floating_base=floating_base, loops=loops)
    told = (warning for warning in caught if not issubclass(warning.category, lw.OmissionWarning))
    return Loaded(mechanism, tuple(str(warning.message) for warning in told), trust_units)


def _piped() -> str:
    """The document on standard input, such as xacro writes it."""
    text = contents(PIPE).decode("utf-8-sig", errors="replace").strip()
    if not text.startswith("<"):
        trouble = "is no" if text else "is empty; it must be a"
        raise click.UsageError(f"{called(PIPE)} {trouble} URDF, MJCF or SDF document")
    return text


def report_warnings(found: Loaded, notes: bool = True) -> lw.Mechanism:
    """The mechanism; warnings go to stderr, where they are not part of the answer, and a line on its ``notes``."""
    for message in found.warnings:
        warn(message)
    if notes and found.mechanism.annotations.notes:
        missing = ", ".join(note.counted for note in found.mechanism.annotations.notes)
        warn(f"not acting: {missing} (linkwise info says where and what to do)")
    return found.mechanism


def _builtin(description: str) -> lw.Mechanism:
    name, *arguments = description.split(":")
    try:
        make = lw.mechanisms.maker(name)
    except ValueError as error:
        raise click.UsageError(f"{error} ({BUILTIN} lists them all)") from None
    values = [_number(name, argument) for argument in arguments]
    try:
        inspect.signature(make).bind(*values)
    except TypeError as error:
        parameters = ":".join(inspect.signature(make).parameters)
        raise click.UsageError(f"{BUILTIN}{description}: {error}; the form is {BUILTIN}{name}:{parameters}") from None
    return make(*values)


def _described(name: str) -> tuple[str, str]:
    """A built-in mechanism as FILE names it, with the numbers that it takes, and what it is."""
    make = lw.mechanisms.maker(name)
    numbers = [
        one.name if one.default is one.empty else f"[{one.name}]"
        for one in inspect.signature(make).parameters.values()
        if one.annotation in ("int", "float", "int | None", "float | None")
    ]
    about = " ".join((inspect.getdoc(make) or "").split()).replace("``", "")
    return BUILTIN + ":".join([name, *numbers]), re.split(r"[.,:;(]", about)[0].strip()


def _number(name: str, text: str) -> float:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    raise click.UsageError(f"{BUILTIN}{name} takes numbers, not {text!r}")
