"""The FILE argument: a mechanism file, - for one on standard input, a DH table, or builtin:NAME[:NUMBER...]."""

from __future__ import annotations

import inspect
import re
import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, NamedTuple

import click

import linkwise as lw

from .files import PIPE, called, contents
from .screen import table, warn
from .signatures import ARGUMENT, File

BUILTIN = "builtin:"
TABLES = (".toml", ".csv")  # endings of DH tables; everything else is a mechanism file


class Loaded(NamedTuple):
    """A mechanism and the warnings of its reader, except those listed in ``mech.notes``."""

    mechanism: lw.Mechanism
    warnings: tuple[str, ...]


@dataclass
class Source:
    """The mechanism of a command.

    floating_base   let the root link of the file move freely
    loops           TOML file of joints that close loops, beside a URDF file
    convention      of a DH table, instead of the one in its file: standard, modified or saha1999
    gravity         in the ground frame, m/s^2
    ground          put a floor under the shapes of the file, at this height in m
    trust_units     accept numbers that look like degrees or millimetres
    """

    file: str
    floating_base: bool = False
    loops: File | None = None
    convention: Annotated[str, "NAME"] | None = None
    gravity: tuple[float, float, float] | None = None
    ground: Annotated[float, "HEIGHT"] | None = None
    trust_units: bool = False

    @cached_property
    def loaded(self) -> Loaded:
        """The mechanism, read when it is first needed."""
        if self.file == BUILTIN:
            click.echo("\n".join(table(None, [_described(name) for name in lw.mechanisms.__all__])))
            raise click.exceptions.Exit(0)
        others = click.get_current_context().params
        if self.file == PIPE and PIPE in (text for name, text in others.items() if name not in ("file", "output")):
            raise click.UsageError("standard input is the mechanism or a table of numbers, not both")
        mech, messages = loaded(self.file, self.floating_base, self.loops, self.convention, self.trust_units)
        mech = mech.with_gravity(self.gravity) if self.gravity else mech
        return Loaded(mech if self.ground is None else mech.with_ground(self.ground), messages)

    def mechanism(self, notes: bool = True) -> lw.Mechanism:
        """The mechanism; warnings go to stderr, with ``notes`` also a line on ignored force elements."""
        return report_warnings(self.loaded, notes)


@dataclass
class OptionalSource(Source):
    """The mechanism of a command that can do without."""

    file: Annotated[str | None, ARGUMENT] = None  # type: ignore[assignment]


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
    for option, value in (("--floating-base", floating_base), ("--loops", loops)):
        if value and (is_builtin or is_table):
            raise click.UsageError(f"{option} is for mechanism files such as URDF; {file} is as it is")
    if file.lstrip().startswith("<"):
        raise click.UsageError("FILE is the path of a file, not its text")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if is_builtin:
            mechanism = _builtin(file.removeprefix(BUILTIN))
        elif is_table:
            mechanism = lw.files.load_dh(file, convention, trust_units)
        else:
            document = file
            if file == PIPE:  # the text, such as xacro writes it
                document = contents(PIPE).decode("utf-8-sig", errors="replace").strip()
                if not document.startswith("<"):
                    trouble = "is no" if document else "is empty; it must be a"
                    raise click.UsageError(f"{called(PIPE)} {trouble} URDF, MJCF or SDF document")
            mechanism = lw.load(document, floating_base=floating_base, loops=loops)
    messages = (warning.message for warning in caught if not issubclass(warning.category, lw.files.OmissionWarning))
    return Loaded(mechanism, tuple(map(str, messages)))


def report_warnings(loading: Loaded, notes: bool = True) -> lw.Mechanism:
    """The mechanism; warnings go to stderr, where they are not part of the answer, and a line on its ``notes``."""
    for message in loading.warnings:
        warn(message)
    if notes and loading.mechanism.annotations.notes:
        missing = ", ".join(note.counted for note in loading.mechanism.annotations.notes)
        warn(f"not acting: {missing} (linkwise info says where and what to do)")
    return loading.mechanism


def _builtin(description: str) -> lw.Mechanism:
    name, *texts = description.split(":")
    try:
        make = lw.mechanisms.maker(name)
    except ValueError as error:
        raise click.UsageError(f"{error} ({BUILTIN} lists them all)") from None
    try:
        values = [int(text) if text.lstrip("+-").isdigit() else float(text) for text in texts]
    except ValueError as error:
        raise click.UsageError(f"{BUILTIN}{name} takes numbers, not {str(error).partition(': ')[2]}") from None
    try:
        inspect.signature(make).bind(*values)
    except TypeError as error:
        parameters = ":".join(inspect.signature(make).parameters)
        raise click.UsageError(f"{BUILTIN}{description}: {error}; the form is {BUILTIN}{name}:{parameters}") from None
    return make(*values)


def _described(name: str) -> tuple[str, str]:
    """The FILE of a built-in mechanism with its numbers, and its description."""
    make = lw.mechanisms.maker(name)
    numbers = [
        parameter.name if parameter.default is parameter.empty else f"[{parameter.name}]"
        for parameter in inspect.signature(make).parameters.values()
        if parameter.annotation in ("int", "float", "int | None", "float | None")
    ]
    about = " ".join((inspect.getdoc(make) or "").split()).replace("``", "")
    return BUILTIN + ":".join([name, *numbers]), re.split(r"[.,:;(]", about)[0].strip()
