"""linkwise reproduce: the figures of a paper, drawn anew."""

from __future__ import annotations

from pathlib import Path

import click

from linkwise.reproduce import PAPERS


@click.command()
@click.argument("paper", type=click.Choice(sorted(PAPERS)))
@click.option(
    "--output",
    "-o",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("."),
    show_default=True,
    help="Folder for the pictures; made if it is not there.",
)
def reproduce(paper: str, output: Path) -> None:
    """Draw the figures of PAPER from the library's own results, and print the values they end with."""
    output.mkdir(parents=True, exist_ok=True)
    for line in PAPERS[paper](output):
        click.echo(line)
