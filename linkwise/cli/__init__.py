"""The command line.  Bad input ends with exit code 2 and one line on stderr; results go to stdout, plain when piped."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import click

import linkwise as lw

from .checkout import checkout_commands
from .files import trouble
from .screen import one_line_warnings


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


for _module in iter_modules(__path__):
    _command = getattr(import_module(f"{__name__}.{_module.name}"), _module.name, None)
    if isinstance(_command, click.Command):  # a command is named as the file that it is in
        commands.add_command(_command)
for _command in checkout_commands():
    commands.add_command(_command)


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
