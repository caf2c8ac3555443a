"""Commands whose files are in a checkout and not in the wheel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path

import click

import linkwise as lw

MODULES = {"bench": "benchmarks.speed.bench", "reproduce": "papers.reproduce"}
ROOT = Path(lw.__file__).parents[1]


def checkout_commands(root: Path = ROOT) -> Iterator[click.Command]:
    """The commands of a checkout in ``root``; where there is none, commands that say how to get it."""
    for name, module in MODULES.items():
        there = root.joinpath(*module.split(".")).with_suffix(".py").is_file()
        try:
            yield getattr(import_module(module), name) if there else _elsewhere(name, module)
        except ModuleNotFoundError as error:  # a package of the same name lies before it on the path
            if module.split(".")[0] != (error.name or "").split(".")[0]:
                raise
            yield _elsewhere(name, module)


def _elsewhere(name: str, module: str) -> click.Command:
    folder = module.partition(".")[0]

    @click.command(name, hidden=True, add_help_option=False, context_settings={"ignore_unknown_options": True})
    @click.argument("words", nargs=-1)
    def explain(words: Sequence[str]) -> None:
        raise click.UsageError(
            f"linkwise {name} is not in the installed package: its files are in the folder {folder}/ of a checkout, or "
            "of the source distribution; pip install --editable . there, and run it again"
        )

    return explain
