"""linkwise demo: the first minute with the library."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import click

from .screen import Progress, exhibited, section, shown
from .signatures import Folder, command


@command("The first minute: an arm, two motions, a page.")
def demo(output: Folder = Path("demo")) -> int:
    """A tour of one minute: an arm, its mass matrix, what it costs and how fast it is; two motions; a page to look at.

    output   folder for the pictures and index.html; made if it is not there

    \b
    linkwise demo
    linkwise demo --output somewhere
    """
    from linkwise.papers import made, summary, write_gallery
    from linkwise.papers.drawing import drawable
    from linkwise.papers.tour import LEAD, NEXT, TITLE, TOUR

    click.echo(click.style(TITLE, bold=True))
    if not drawable():
        click.echo("matplotlib is not installed, so there are no pictures: pip install 'linkwise[plot]'")
    output.mkdir(parents=True, exist_ok=True)
    results = []
    with Progress(len(TOUR.entries) + 1) as progress:
        for result in made([(TOUR, entry) for entry in TOUR.entries], lambda _, entry: progress.at(entry.title)):
            results.append(result)
            progress.done()
            for line in exhibited(result):
                progress.say(line)
        progress.at("pictures")
        page, pictures = write_gallery(results, output, TITLE, LEAD)
    click.echo(f"\n{summary(results)}; {len(pictures)} pictures")
    click.echo("\n".join(section("open this", [shown(page)])))
    here = Path(sys.prefix) / "bin" / "activate"
    first = [f"source {shown(here)}"] if shutil.which("linkwise") is None and here.exists() else []
    click.echo("\n".join(section("then try", [*first, *NEXT])))
    return 0 if all(result.exhibit.agrees for result in results) else 1
