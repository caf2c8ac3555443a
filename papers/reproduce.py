"""linkwise reproduce: the papers' figures, tables and algorithms, computed again into a gallery."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import click

from linkwise.cli.screen import Progress, shown
from linkwise.cli.signatures import Folder, command

ALL = "all"
TITLE = "Five papers, computed again"
LEAD = (
    "The figures, tables and algorithms of the five papers behind linkwise, made by the library on this machine. "
    "Below each stands what it was compared with, and the largest deviation found while this page was made."
)
KEYS = ("rodriguez1986", "rodriguez1992", "jain1995", "saha1999", "spencer2004")


@command("The papers' figures and tables in a gallery.")
def reproduce(
    paper: Annotated[str, click.Choice((ALL, *KEYS))],
    output: Folder = Path("gallery"),
    only: Sequence[Annotated[str, "NUMBER"]] = (),
    list: bool = False,
) -> int:
    """Compute figures, tables and algorithms of PAPER again, or of all five, and compare them with print and physics.

    The result is a page to look at, OUTPUT/index.html. The exit code is 1 if anything deviates by more than it may.

    output   folder for index.html, gallery.md and the pictures; made if it is not there
    only     make only this, such as 'figure 5', or only a kind: table
    list     list what can be made, and make nothing

    \b
    linkwise reproduce all
    linkwise reproduce saha1999 --only "figure 8" --output pictures
    """
    from . import PAPERS, made, summary, write_gallery

    papers = [*PAPERS.values()] if paper == ALL else [PAPERS[paper]]
    chosen = [(p, entry) for p in papers for entry in p.chosen(only)]
    if not chosen:
        known = ", ".join(entry.number for p in papers for entry in p.entries)
        raise click.UsageError(f"{paper} has nothing called {' or '.join(map(repr, only))}; available: {known}")
    if list:
        for p, entry in chosen:
            click.echo(f"{p.key}  {entry.number}: {entry.title}")
        return 0
    output.mkdir(parents=True, exist_ok=True)
    results = []
    with Progress(len(chosen)) as progress:
        for result in made(chosen, before=lambda p, entry: progress.at(f"{p.key}, {entry.number}")):
            results.append(result)
            progress.done()
            verdict = "" if result.exhibit.agrees else click.style("  DEVIATES", fg="red")
            progress.say(f"{result.paper.key}  {result.entry.number}: {result.entry.title}{verdict}")
            for comparison in result.exhibit.compared:
                if not comparison.agrees:
                    progress.say(f"  {comparison}")
    page, pictures = write_gallery(results, output, TITLE, LEAD)
    click.echo(f"{summary(results)}\n{len(pictures)} pictures, page: {shown(page)}")
    return 0 if all(result.exhibit.agrees for result in results) else 1
