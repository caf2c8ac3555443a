"""linkwise study: thousands of cases, from a file, here or on a cluster."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import click

import linkwise as lw

from .files import Output, Picture
from .screen import Answer, shown
from .screen import table as columns
from .signatures import Count, command


@command("Thousands of cases of a computation, here or on a cluster; stopped and resumed.")
def study(
    file: str,
    answer: Answer,
    cluster: Annotated[str, "ADDRESS"] | None = None,
    processes: Count | None = None,
    store: Annotated[str, "FOLDER"] | None = None,
    table: Annotated[str, Output(".csv", ".parquet")] | None = None,
    plot: Picture | None = None,
    of: Annotated[str, "RESULT"] | None = None,
) -> None:
    """Run the study in FILE (TOML, see docs/studies.md) and print statistics of its results.

    With a store, each part is written as soon as it is computed; the same command goes on where it was interrupted.

    cluster     of a Dask scheduler, such as tcp://host:8786
    processes   processes on this machine
    store       NAME.zarr or NAME.parquet, in place of the file's
    table       write a table of all cases, .csv or .parquet
    plot        a picture of how the results are spread
    of          the result to show and to plot; the first by default

    \b
    linkwise study study.toml --table cases.csv --plot spread.png
    """
    if cluster and processes:
        raise click.UsageError("--cluster and --processes are two places to compute: give one")
    file_study = lw.studies.load_study(file)
    to = Path(store) if store else file_study.store
    try:
        shows_bar = sys.stderr.isatty() and find_spec("tqdm") is not None
        results = file_study.study.run(cluster or processes, to, progress=shows_bar)
    except KeyboardInterrupt:
        if to is not None and to.exists():
            done = lw.studies.open_study(to).done
            click.echo(f"linkwise: {done.sum()} of {len(done)} cases are stored; run again to go on", err=True)
        raise
    computed = [name for name in results.names if name not in results.varied]
    chosen = of or computed[0]
    if chosen not in results:
        raise click.UsageError(f"there is no result {chosen!r}; available: {', '.join(results.names)}")
    _print(results, chosen, to, answer)
    if table:
        results.save_table(table, *(name for name in results.names if name not in results.over_time))
        if results.over_time:
            left_out = ", ".join(results.over_time)
            click.echo(f"linkwise: {table} has a row per case, without {left_out} over time: see --store", err=True)
    if plot:
        results.plot_quantiles(chosen, plot)


def _print(results: Any, name: str, store: Path | None, answer: Answer) -> None:
    """Statistics of a result, entry by entry; of results over time, at the last time."""
    summary = results.summary(name)
    if "t" in summary.dims:
        summary = summary.isel(t=-1)
    series = summary.stack(entry=[axis for axis in summary.dims if axis != "statistic"]) if summary.ndim > 1 else None
    heads = [str(statistic) for statistic in summary["statistic"].values]
    entries: dict[str, list[float]] = {}
    for k in range(1 if series is None else series.sizes["entry"]):
        numbers = (summary if series is None else series.isel(entry=k)).values
        label = "" if series is None else ", ".join(map(str, series["entry"].values[k]))
        if series is not None and f"{name}_unit" in series.coords:
            label += f" ({series[f'{name}_unit'].values[k]})"
        entries[label] = [float(x) for x in numbers]
    document = {"cases": results.n_cases, "result": name, "unit": results.unit(name), "statistics": heads}
    answer.show({**document, "entries": entries}, _text(results, name, heads, entries, store))


def _text(
    results: Any, name: str, heads: list[str], entries: dict[str, list[float]], store: Path | None
) -> Iterator[str]:
    unit = f" ({results.unit(name)})" if results.unit(name) else ""
    yield f"{results.n_cases} cases, {name}{unit}{' at the end' if 't' in results.axes(name) else ''}"
    cells = [(label, *(f"{x:.6g}" for x in row)) for label, row in entries.items()]
    yield from columns(("", *heads), cells, range(1, len(heads) + 1))
    others = [each for each in results.names if each not in results.varied and each != name]
    if others:
        yield f"also: {', '.join(others)}"
    if store is not None:
        yield f"stored in {shown(store)}"
