"""Write the gallery: a self-contained index.html with pictures, and a copy in Markdown."""

from __future__ import annotations

import html
import platform
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

import linkwise as lw

from .exhibit import Animation, Made, Paper

STYLE = """
:root { --ink: #1d2530; --soft: #5c6673; --line: #dde2e8; --paper: #ffffff; --back: #f4f6f8; --blue: #0b5c94;
  --good: #1a7f4b; --bad: #b3261e; }
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--ink); font: 16px/1.55 Georgia, "Times New Roman", serif; }
header { background: linear-gradient(160deg, #12303f, #0b5c94); color: #fff; padding: 3.2rem 1.5rem 2.4rem; }
header > *, main, footer { max-width: 64rem; margin-left: auto; margin-right: auto; }
header h1 { font-size: 2.2rem; margin-top: 0; margin-bottom: .4rem; font-weight: 600; }
header p { color: #d5e4ee; max-width: 46rem; margin: .3rem auto .3rem; }
header > p, header > h1, header > nav { padding: 0 .2rem; width: 100%; max-width: 64rem; }
nav a { color: #fff; display: inline-block; margin: .9rem .9rem 0 0; border-bottom: 1px solid #7fb0d0;
  text-decoration: none; font: 14px system-ui, sans-serif; }
main { padding: 0 1.2rem; }
section.paper { margin-top: 3rem; }
section.paper > h2 { font-size: 1.55rem; margin: 0; }
.authors { color: var(--soft); font-style: italic; margin: .1rem 0 .6rem; }
.about { max-width: 46rem; }
article { background: var(--paper); border: 1px solid var(--line); border-radius: 8px; padding: 1.1rem 1.4rem 1.2rem;
  margin: 1.3rem 0; }
article h3 { margin: 0 0 .3rem; font-size: 1.12rem; }
article h3 b { color: var(--blue); font-weight: 600; margin-right: .5rem; }
article p { margin: .35rem 0; max-width: 52rem; }
.pictures { display: flex; flex-wrap: wrap; gap: 1rem; justify-content: center; margin: .8rem 0; }
.pictures img { max-width: 100%; height: auto; }
table { border-collapse: collapse; margin: .8rem 0; font: 13.5px/1.45 system-ui, sans-serif; }
th { text-align: left; color: var(--soft); font-weight: 600; border-bottom: 2px solid var(--line); }
td, th { padding: .28rem .9rem .28rem 0; vertical-align: top; }
td { border-bottom: 1px solid var(--line); font-variant-numeric: tabular-nums; }
.scroll { overflow-x: auto; }
.short { white-space: nowrap; }
pre { background: var(--back); padding: .8rem 1rem; overflow-x: auto; font-size: 12.5px; line-height: 1.4;
  border-radius: 6px; }
code { font-size: .88em; }
ul.compared { list-style: none; padding: 0; margin: .7rem 0 0; font: 13.5px/1.5 system-ui, sans-serif; }
ul.compared li { padding-left: 1.5rem; position: relative; }
ul.compared li::before { content: "\\2713"; position: absolute; left: .2rem; color: var(--good); font-weight: 700; }
ul.compared li.deviates::before { content: "\\2717"; color: var(--bad); }
ul.compared li.deviates { color: var(--bad); }
ul.compared b { font-variant-numeric: tabular-nums; font-weight: 600; }
.remark { color: var(--soft); font-size: .93rem; border-left: 3px solid var(--line); padding-left: .8rem; }
.absent { color: var(--soft); font-size: .93rem; }
footer { color: var(--soft); font: 13px/1.6 system-ui, sans-serif; padding: 1rem 1.2rem 3rem; margin-top: 3rem; }
@media print { body { background: #fff; } article { break-inside: avoid; } }
"""


def write_gallery(items: Sequence[Made], folder: Path, title: str, lead: str) -> tuple[Path, list[Path]]:
    """Save all pictures, index.html and gallery.md in ``folder``; the page, and the pictures."""
    folder.mkdir(parents=True, exist_ok=True)
    pictures = {(m.paper.key, m.entry.number): list(_saved(m, folder)) for m in items}
    page, twin = folder / "index.html", folder / "gallery.md"
    page.write_text("\n".join(_page(items, pictures, folder, title, lead)) + "\n", encoding="utf-8")
    twin.write_text("\n".join(_markdown(items, pictures, folder, title, lead)) + "\n", encoding="utf-8")
    return page, [path for paths in pictures.values() for path in paths]


def _saved(item: Made, folder: Path) -> Iterator[Path]:
    stem = re.sub(r"[^a-z0-9.]+", "_", item.entry.number.lower())
    for k, picture in enumerate(item.exhibit.pictures):
        moving = isinstance(picture, Animation)
        name = (stem if k == 0 else f"{stem}_{k + 1}") + (".gif" if moving else ".png")
        path = folder / item.paper.key / name
        path.parent.mkdir(exist_ok=True)
        if moving:
            lw.viewer.animate(picture.motion, path=path, **{"fps": 20, "dpi": 70, **picture.options})
        else:
            picture.savefig(path, dpi=130)
        yield path


def _group_by_paper(items: Sequence[Made]) -> Iterator[tuple[Paper, list[Made]]]:
    for key in dict.fromkeys(m.paper.key for m in items):
        of_paper = [m for m in items if m.paper.key == key]
        yield of_paper[0].paper, of_paper


def summary(items: Sequence[Made]) -> str:
    """One line: how much was compared and whether it agrees."""
    compared = [c for m in items for c in m.exhibit.compared]
    wrong = [c for c in compared if not c.agrees]
    verdict = f"{len(wrong)} of {len(compared)} comparisons DEVIATE" if wrong else f"all {len(compared)} agree"
    return f"{len(items)} exhibits, {len(compared)} comparisons: {verdict}"


def conditions(items: Sequence[Made]) -> str:
    """Versions, machine and time of the computation."""
    return (
        f"linkwise {lw.__version__}, NumPy {np.__version__}, Python {platform.python_version()} on "
        f"{platform.machine()}, {sum(m.seconds for m in items):.0f} s of computing"
    )


# -- HTML ---------------------------------------------------------------------------------------------


def _marked(text: str) -> str:
    """Text for HTML, with code in backticks."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text, quote=False))


def _page(
    items: Sequence[Made], pictures: dict[tuple[str, str], list[Path]], folder: Path, title: str, lead: str
) -> Iterator[str]:
    yield "<!doctype html>"
    yield '<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    yield f"<title>{title}</title><style>{STYLE}</style></head><body>"
    yield f"<header><h1>{title}</h1><p>{_marked(lead)}</p><p>{summary(items)}.</p><nav>"
    yield from (f'<a href="#{paper.key}">{html.escape(paper.title)}</a>' for paper, _ in _group_by_paper(items))
    yield "</nav></header><main>"
    for paper, of_paper in _group_by_paper(items):
        yield f'<section class="paper" id="{paper.key}"><h2>{html.escape(paper.title)}</h2>'
        yield f'<p class="authors">{html.escape(paper.authors)}</p><p class="about">{_marked(paper.about)}</p>'
        for m in of_paper:
            yield from _article(m, [path.relative_to(folder) for path in pictures[paper.key, m.entry.number]])
        if paper.absent:
            listed = "; ".join(f"<b>{html.escape(number)}</b>: {_marked(why)}" for number, why in paper.absent)
            yield f'<p class="absent">Not reproduced: {listed}.</p>'
        yield "</section>"
    yield f"</main><footer>{html.escape(conditions(items))}. </footer>"
    yield "</body></html>"


def _article(item: Made, pictures: Iterable[Path]) -> Iterator[str]:
    exhibit, entry = item.exhibit, item.entry
    anchor = f"{item.paper.key}-{re.sub(r'[^a-z0-9]+', '-', entry.number.lower())}"
    yield f'<article id="{anchor}"><h3><b>{html.escape(entry.number)}</b> {html.escape(entry.title)}</h3>'
    yield f"<p>{_marked(exhibit.shows)}</p>"
    images = "".join(f'<img src="{path.as_posix()}" alt="{html.escape(entry.title)}">' for path in pictures)
    if images:
        yield f'<div class="pictures">{images}</div>'
    for table in exhibit.tables:
        yield f'<div class="scroll"><table>{_row(table.head, "th")}'
        yield from (_row(row, "td") for row in table.rows)
        yield "</table></div>"
    if exhibit.text:
        yield f"<pre>{html.escape(exhibit.text)}</pre>"
    if exhibit.compared:
        yield '<ul class="compared">'
        for c in exhibit.compared:
            kind, allowed = "" if c.agrees else ' class="deviates"', f"(allowed {c.allowed:.0e})"
            yield f"<li{kind}>{_marked(c.what)}: <b>{c.deviation:.1e}</b> {allowed}</li>"
        yield "</ul>"
    if exhibit.remark:
        yield f'<p class="remark">{_marked(exhibit.remark)}</p>'
    yield "</article>"


def _row(cells: Sequence[str], tag: str) -> str:
    short = ' class="short"'
    return "<tr>" + "".join(f"<{tag}{short * (len(c) < 26)}>{_marked(c)}</{tag}>" for c in cells) + "</tr>"


# -- Markdown -----------------------------------------------------------------------------------------


def _markdown(
    items: Sequence[Made], pictures: dict[tuple[str, str], list[Path]], folder: Path, title: str, lead: str
) -> Iterator[str]:
    yield from (f"# {title}", "", lead, "", f"{summary(items)}. {conditions(items)}.")
    for paper, of_paper in _group_by_paper(items):
        yield from ("", f"## {paper.title}", "", *([f"*{paper.authors}*", ""] * bool(paper.authors)), paper.about)
        for m in of_paper:
            yield from ("", f"### {m.entry.number}: {m.entry.title}", "")
            for path in pictures[paper.key, m.entry.number]:
                yield f"![{m.entry.title}]({path.relative_to(folder).as_posix()})"
            exhibit = m.exhibit
            yield from ("", exhibit.shows)
            for table in exhibit.tables:
                yield ""
                for row in (table.head, ["---"] * len(table.head), *table.rows):
                    yield "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"
            if exhibit.text:
                yield from ("", "```", exhibit.text, "```")
            if exhibit.compared:
                yield from ("", *(f"- {comparison}" for comparison in exhibit.compared))
            if exhibit.remark:
                yield from ("", f"*{exhibit.remark}*")
        if paper.absent:
            yield from ("", "Not reproduced: " + "; ".join(f"{number}: {why}" for number, why in paper.absent) + ".")
