"""A comparison as a page with plots: what was measured and how, who is faster where, and why."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from .comparison import US, Comparison, Row
from .peers import ALL, STEP, STEPS
from .peers.protocol import CLOSED, ROLLOUT

#: Why a peer can be faster, by where that happens; said beside every such line.
REASONS = {
    "single": (
        "one state fills one of the SIMD lanes, whose divisions and sines take longer than scalar ones; and the result "
        "is a new array"
    ),
    "closed": "closed dynamics checks that states lie on the loops, in NumPy, before it computes",
    ROLLOUT: "few states fill few SIMD lanes",
    "wide": "straight-line code of this size leaves the instruction cache and the registers",
}

IN_A_ROW = 4  # panels of a picture


def written(comparison: Comparison, folder: Path) -> Path:
    """Write ``comparison.md`` and its plots into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    pictures = plots(comparison, folder)
    page = folder / "comparison.md"
    page.write_text("\n".join(page_lines(comparison, pictures)) + "\n")
    return page


def page_lines(comparison: Comparison, pictures: Sequence[str] = ()) -> Iterator[str]:
    versions = comparison.versions
    yield "# linkwise beside other libraries"
    yield ""
    yield f"{versions.pop('processor')}, one thread, double precision; load of the machine {comparison.load:.1f} at the"
    yield f"start; {comparison.seconds:.0f} s in all. " + ", ".join(f"{k} {v}" for k, v in versions.items()) + "."
    yield ""
    yield "Every library gets the mechanism from the same numbers and the same random states, and its answers are"
    yield "compared before times count (error: relative to the largest number). Times are the best of several, of the"
    yield "thread's own clock, but of libraries on JAX, which have threads of their own, of the wall's clock; single"
    yield "calls are from Python, with arrays that exist beforehand. Where a library has no call for batches, a loop in"
    yield f"Python over up to 256 states stands for all sizes. A rollout is {STEPS} steps of {STEP} s, semi-implicit."
    yield ""
    yield from _faster(comparison)
    yield from _called(comparison)
    for name in dict.fromkeys(row.mechanism for row in comparison.rows):
        yield from _mechanism(name, [row for row in comparison.rows if row.mechanism == name])
    for picture in pictures:
        yield f"![{Path(picture).stem.replace('_', ' ')}]({picture})"
        yield ""


def slower_than(comparison: Comparison) -> list[tuple[Row, Row]]:
    """Rows of ours with the peer's row that is faster."""
    ours = {(row.mechanism, row.task, row.batch): row for row in comparison.rows if row.library == US}
    found = []
    for row in comparison.rows:
        own = ours.get((row.mechanism, row.task, row.batch))
        if own is not None and row.library != US and row.seconds < own.seconds:
            found.append((own, row))
    return found


def _faster(comparison: Comparison) -> Iterator[str]:
    lost, compared = slower_than(comparison), [r for r in comparison.rows if r.library != US and r.seconds > 0.0]
    yield "## Where another library is faster"
    yield ""
    if not lost:
        yield f"Nowhere in {len(compared)} comparisons."
    for own, row in lost:
        size = "single calls" if row.batch == 0 else f"batches of {row.batch}"
        ratio = own.seconds / row.seconds
        yield f"- {row.mechanism}, {_words(row.task)}, {size}: {row.library} by {ratio:.2f}; {_reason(row)}"
    yield ""


def _reason(row: Row) -> str:
    if row.task == CLOSED:
        return REASONS["closed"]
    if row.task == ROLLOUT and row.batch <= 10:
        return REASONS[ROLLOUT]
    return REASONS["single"] if row.batch <= 1 else REASONS["wide"]


def _called(comparison: Comparison) -> Iterator[str]:
    yield "## What is called"
    yield ""
    yield "linkwise: `linkwise.compile(task, mech)`, `linkwise.rollout`, `linkwise.forward_dynamics`."
    yield ""
    yield "| library | task | call |"
    yield "| --- | --- | --- |"
    seen = set()
    for row in comparison.rows:
        if row.library != US and row.how and (row.library, row.task) not in seen:
            seen.add((row.library, row.task))
            yield f"| {row.library} | {_words(row.task)} | {row.how.split(' (ready')[0]} |"
    yield ""
    absent = {row.library: row.note for row in comparison.rows if row.note.startswith("not installed")}
    left_out = [name for name in ALL if name not in comparison.settings.libraries]
    for name, note in absent.items():
        yield f"- {name}: {note}"
    if left_out:
        yield f"- left out of this run: {', '.join(left_out)}"
    yield ""


def _mechanism(name: str, rows: Sequence[Row]) -> Iterator[str]:
    """Times of linkwise in nanoseconds per state; of the others, how many times slower they are."""
    yield f"## {name}, {rows[0].nv} degrees of freedom"
    yield ""
    batches = sorted({row.batch for row in rows})
    heads = ["single call" if batch == 0 else f"batch {batch:,}" for batch in batches]
    yield f"| task | library | {' | '.join(heads)} | error |"
    yield "|" + " --- |" * (3 + len(heads))
    for task in dict.fromkeys(row.task for row in rows):
        own = {row.batch: row for row in rows if row.task == task and row.library == US}
        for library in dict.fromkeys(row.library for row in rows if row.task == task):
            found = {row.batch: row for row in rows if row.task == task and row.library == library}
            note = next((row.note for row in found.values() if row.note), "")
            if note and not any(row.seconds > 0.0 for row in found.values()):
                if not note.startswith("not installed"):
                    yield f"| {_words(task)} | {library} | {note} |" + " |" * len(heads)
                continue
            cells = [_cell(found.get(batch), own.get(batch), library == US) for batch in batches]
            error = "" if library == US else f"{max(row.error for row in found.values()):.0e} {note}".strip()
            label = f"**{library}**, ns" if library == US else library
            yield f"| {_words(task)} | {label} | {' | '.join(cells)} | {error} |"
    yield ""


def _cell(row: Row | None, own: Row | None, ours: bool) -> str:
    if row is None or math.isnan(row.seconds):
        return "-"
    if ours:
        return f"{1e9 * row.seconds:,.0f}"
    return "-" if own is None else f"x {row.seconds / own.seconds:.1f}"


def _words(task: str) -> str:
    return task.replace("_", " ")


def plots(comparison: Comparison, folder: Path) -> list[str]:
    """Time per state over the size of the batch, a picture per mechanism; and per link over the length of chains."""
    try:
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot
    except ImportError:
        return []
    made = []
    for name in dict.fromkeys(row.mechanism for row in comparison.rows):
        rows = [row for row in comparison.rows if row.mechanism == name and row.batch > 0]
        tasks = list(dict.fromkeys(row.task for row in rows))
        if len({row.batch for row in rows}) < 2 or not tasks:
            continue
        figure, axes = _panels(pyplot, len(tasks))
        for axis, task in zip(axes, tasks, strict=True):
            for library in dict.fromkeys(row.library for row in rows if row.task == task):
                points = [(row.batch, 1e9 * row.seconds) for row in rows if (row.task, row.library) == (task, library)]
                _line(axis, points, library)
            axis.set(
                title=_words(task), xlabel="states in the batch", ylabel="ns per state", xscale="log", yscale="log"
            )
        made.append(_saved(figure, folder, f"batches_{_file_name(name)}", pyplot))
    chains = [row for row in comparison.rows if row.mechanism.startswith("chain of") and not math.isnan(row.seconds)]
    if len({row.nv for row in chains}) > 1:
        largest = max(row.batch for row in chains if row.nv == min(row.nv for row in chains))
        at = [row for row in chains if row.batch == min(largest, 1000)]
        tasks = list(dict.fromkeys(row.task for row in at))
        figure, axes = _panels(pyplot, len(tasks))
        for axis, task in zip(axes, tasks, strict=True):
            for library in dict.fromkeys(row.library for row in at if row.task == task):
                points = [
                    (row.nv, 1e9 * row.seconds / row.nv) for row in at if (row.task, row.library) == (task, library)
                ]
                _line(axis, points, library)
            axis.set(title=_words(task), xlabel="links", ylabel="ns per state and link", xscale="log", yscale="log")
        made.append(_saved(figure, folder, "chains", pyplot))
    return made


def _panels(pyplot: Any, count: int) -> tuple[Any, list[Any]]:
    """A figure with so many panels, and room for what the colours mean."""
    columns = min(count, IN_A_ROW)
    rows = -(-count // columns)
    figure, axes = pyplot.subplots(rows, columns, figsize=(3.2 * columns + 1.6, 3.0 * rows), squeeze=False, sharey=True)
    for axis in axes.flat[count:]:
        axis.remove()
    return figure, list(axes.flat[:count])


def _line(axis: Any, points: Sequence[tuple[float, float]], library: str) -> None:
    """A library has one colour in all panels, whichever others are there."""
    name, width = library.split()[0], 2.5 if library == US else 1.0
    colour = f"C{(US, *ALL).index(name)}"
    axis.plot(*zip(*points, strict=True), marker=".", label=name, linewidth=width, color=colour)


def _saved(figure: Any, folder: Path, name: str, pyplot: Any) -> str:
    found = {label: line for axis in figure.axes for line, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    labels = [label for label in (US, *ALL) if label in found]
    figure.tight_layout(rect=(0.0, 0.0, 1.0 - 1.4 / figure.get_figwidth(), 1.0))
    figure.legend([found[label] for label in labels], labels, loc="center right", fontsize=8)
    figure.savefig(folder / f"{name}.png", dpi=110)
    pyplot.close(figure)
    return f"{name}.png"


def _file_name(text: str) -> str:
    return "_".join("".join(c if c.isalnum() else " " for c in text.lower()).split())
