"""The command line.  Bad input ends with exit code 2 and one line on stderr; results go to stdout, plain when piped."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import click

import linkwise as lw

from .files import trouble
from .screen import one_line_warnings

ROOT = Path(lw.__file__).parents[1]
CHECKOUT = {"bench": "benchmarks.speed.bench", "reproduce": "papers.reproduce"}


class ReaderGone(Exception):
    """Whoever read our output has seen enough."""


class Commands(click.Group):
    """Click takes a pipe that was closed for a failure; other tools end quietly, as if by the signal SIGPIPE."""

    def invoke(self, ctx: click.Context) -> Any:
        with _noticing_readers():
            return super().invoke(ctx)

    def make_context(self, *arguments: Any, **options: Any) -> click.Context:
        with _noticing_readers():  # --help is answered here
            return super().make_context(*arguments, **options)


@contextlib.contextmanager
def _noticing_readers() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise ReaderGone from None


@click.group(cls=Commands, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(lw.__version__, prog_name="linkwise", message="%(prog)s %(version)s")
@click.pass_context
def commands(context: click.Context) -> None:
    """The spatial operator algebra of multibody dynamics, compiled link by link.

    FILE is a mechanism file (URDF, SDF, MJCF; - for one on standard input), a Denavit-Hartenberg table (.toml or .csv),
    or a built-in mechanism: builtin:NAME[:NUMBER...], such as builtin:puma560 or builtin:chain:12; builtin: lists them
    all.
    Every command has a --help with an example.

    \b
    linkwise demo                                    the first minute
    linkwise info builtin:stanford_arm               what is in a mechanism
    linkwise simulate builtin:five_bar --duration 2 --q joint1=2.09 --gif fall.gif
    """
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":  # https://no-color.org
        context.color = False
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def _commands_of(module: str) -> Iterator[click.Command]:
    """The commands in a module, without those that are in a group of it."""
    listed = [value for value in vars(import_module(module)).values() if isinstance(value, click.Command)]
    inner = [command for group in listed if isinstance(group, click.Group) for command in group.commands.values()]
    return (command for command in listed if command not in inner)


def _checkout_command(name: str, module: str) -> click.Command:
    """A command whose files are in a checkout and not in the wheel, or one that raises where they are missing."""
    folder = module.partition(".")[0]
    if ROOT.joinpath(*module.split(".")).with_suffix(".py").is_file():
        try:
            return getattr(import_module(module), name)
        except ModuleNotFoundError as error:  # a package of the same name lies before it on the path
            if folder != (error.name or "").split(".")[0]:
                raise

    @click.command(name, hidden=True, add_help_option=False, context_settings={"ignore_unknown_options": True})
    @click.argument("words", nargs=-1)
    def explain(words: Sequence[str]) -> None:
        raise click.UsageError(
            f"linkwise {name} is not in the installed package: its files are in the folder {folder}/ of a checkout, or "
            "of the source distribution; pip install --editable . there, and run it again"
        )

    return explain


for _module in iter_modules(__path__):
    for _command in _commands_of(f"{__name__}.{_module.name}"):
        commands.add_command(_command)
for _name, _path in CHECKOUT.items():
    commands.add_command(_checkout_command(_name, _path))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code: 0, 1 if a check failed or a motion could not be followed, 2 on
    bad input, 130 if interrupted, 141 if whoever read the output went away."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # names in files may not fit the terminal's encoding
    code = 2
    try:
        with one_line_warnings():
            code = commands.main(arguments, prog_name="linkwise", standalone_mode=False) or 0
        sys.stdout.flush()
        return code
    except (BrokenPipeError, ReaderGone):
        # Nothing more is written, not even by the interpreter as it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except (click.Abort, KeyboardInterrupt):
        message, code = "interrupted", 130
    except click.ClickException as error:
        message = error.format_message()
    except OSError as error:
        message = trouble(error)
    except (ValueError, ImportError, lw.operators.SpaceError) as error:  # ImportError: optional libraries
        message = str(error)
    except ArithmeticError as error:  # answers that differ
        message, code = str(error), 1
    click.echo("linkwise: " + " ".join(message.split()), err=True)
    return code
