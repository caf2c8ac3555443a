"""linkwise demo: the first minute with the library."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from .screen import Progress, section, shown, table
from .signatures import Folder, command


@command("The first minute: an arm, two motions, a page.")
def demo(output: Folder = Path("demo")) -> int:
    """A tour of one minute: an arm, its mass matrix, what it costs and how fast it is; two motions; a page to look at.

    output   folder for the pictures and index.html; made if it is not there

    \b
    linkwise demo
    linkwise demo --output somewhere
    """
    from linkwise.demo.drawing import drawable
    from linkwise.demo.exhibit import made
    from linkwise.demo.gallery import summary, write_gallery
    from linkwise.demo.tour import LEAD, NEXT, TITLE, TOUR

    click.echo(click.style(TITLE, bold=True))
    if not drawable():
        click.echo("matplotlib is not installed, so there are no pictures: pip install 'linkwise[plot]'")
    output.mkdir(parents=True, exist_ok=True)
    results = []
    with Progress(len(TOUR.entries) + 1) as progress:
        for result in made([(TOUR, entry) for entry in TOUR.entries], lambda _, entry: progress.at(entry.title)):
            results.append(result)
            progress.done()
            for line in _describe(result):
                progress.say(line)
        progress.at("pictures")
        page, pictures = write_gallery(results, output, TITLE, LEAD)
    click.echo(f"\n{summary(results)}; {len(pictures)} pictures")
    click.echo("\n".join(section("open this", [shown(page)])))
    here = Path(sys.prefix) / "bin" / "activate"
    first = [f"source {shown(here)}"] if shutil.which("linkwise") is None and here.exists() else []
    click.echo("\n".join(section("then try", [*first, *NEXT])))
    return 0 if all(result.exhibit.agrees for result in results) else 1


def _describe(result: Any) -> Iterator[str]:
    """An exhibit as text."""
    exhibit = result.exhibit
    yield from section(
        f"{result.entry.number}. {result.entry.title}", textwrap.wrap(exhibit.shows.replace("`", ""), 100)
    )
    for each in exhibit.tables:
        yield ""
        yield from (f"  {line}" for line in table(each.head, each.rows, range(1, len(each.head))))
    if exhibit.compared:
        yield ""
        yield from (f"  {comparison}" for comparison in exhibit.compared)
