"""linkwise bench: how fast the kernels of a mechanism are on this machine."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

import click

import linkwise as lw
from linkwise.cli.mechanism import OptionalSource, Source
from linkwise.cli.screen import Answer, Progress, section, shown, table
from linkwise.cli.signatures import command

from . import ALGORITHMS, Conditions, Measurement, conditions, measure
from .comparison import Settings, cases, compare
from .comparison_report import slower_than, written
from .peers import ALL, TASKS
from .peers.protocol import CLOSED

OF_LOOPS = ("forward_dynamics", "mass_matrix")  # with loops; the mass matrix is that of the open tree


@command("Time the kernels of a mechanism, or linkwise beside other libraries.")
def bench(
    source: OptionalSource,
    answer: Answer,
    algorithm: Sequence[Annotated[str, click.Choice(ALGORITHMS)]] = (),
    batch: Annotated[int, click.IntRange(1, 10_000_000)] = 4096,
    dtype: Annotated[str, click.Choice(lw.codegen.DTYPES)] = "float64",
    threads: Annotated[int, click.IntRange(1, 256)] = 1,
    peers: bool = False,
    quick: bool = False,
    library: Sequence[Annotated[str, click.Choice(tuple(ALL))]] = (),
    output: Path = Path("comparison"),
) -> None:
    """Time inverse dynamics, forward dynamics and mass matrix, in batches and for one state.

    They are set against the machine's measured peak of fused multiply-adds, against the NumPy target of linkwise (which
    interprets the same program) and against Pinocchio and MuJoCo where these are installed; all answers are compared.
    With loops, forward dynamics is that under constraints, compiled terms with linear algebra in NumPy, and has no
    other library beside it.

    With --peers, linkwise is set against Pinocchio, MuJoCo, Drake, code that CasADi generates, adam, frax, JaxSim and
    MJX, those of them that are installed: inverse and forward dynamics, mass matrix and inverse, derivatives, rollouts
    and closed dynamics, single calls and batches of 1 to 100,000 states; of FILE, or of arms, a quadruped, a humanoid,
    chains of 5 to 10,000 links and mechanisms with loops.  That takes an hour on a quiet machine; --quick a minute.

    algorithm   only this; all of them by default
    batch       states in a batch
    peers       compare with all libraries that are installed, and write a page with plots
    quick       with --peers: a small mechanism and small batches
    library     with --peers: only this
    output      with --peers: the folder of the page

    \b
    linkwise bench builtin:puma560
    linkwise bench robot.urdf --dtype float32 --threads 2 --json
    linkwise bench --peers --quick --library Pinocchio --output comparison
    """
    if peers:
        _compare(source, quick, library or tuple(ALL), output)
        return
    if source.file is None:
        raise click.UsageError("Missing argument 'FILE': a mechanism, or --peers for a comparison with other libraries")
    mech = source.mechanism()
    chosen = algorithm or (OF_LOOPS if mech.loops else ALGORITHMS)
    refused = [name for name in chosen if mech.loops and name not in OF_LOOPS]
    if refused:
        raise click.UsageError(f"{refused[0]} is for trees; with loops available: {', '.join(OF_LOOPS)}")
    results = []
    with Progress(len(chosen) + 1) as progress:
        progress.at("the machine's peak")
        at = conditions(dtype, threads, batch)
        progress.done()
        for name in chosen:
            progress.at(name)
            results.append(measure(mech, name, at))
            progress.done()
    document = {"mechanism": mech.name, "nv": mech.nv, **dataclasses.asdict(at)}
    facts = {**document, "results": [dataclasses.asdict(result) for result in results]}
    answer.show(facts, _text(mech, at, results))


def _compare(source: Source, quick: bool, libraries: Sequence[str], output: Path) -> None:
    """The comparison of one mechanism, or of all."""
    settings = Settings(libraries=libraries)
    if quick:
        settings = Settings(batches=(1, 100, 1_000), libraries=libraries, rounds=4, slice_seconds=0.02)
    chosen = list(cases(quick))
    if source.file is not None:
        mech = source.mechanism()
        chosen = [(mech.name, lambda: mech, (CLOSED,) if mech.loops else tuple(TASKS))]
    with Progress(sum(len(tasks) for _, _, tasks in chosen)) as progress:

        def tell(what: str) -> None:
            progress.at(what)
            progress.done()

        comparison = compare(settings, chosen, tell, lambda found: written(found, output))  # an hour's work is kept
    lost = slower_than(comparison)
    where = shown(output / "comparison.md")
    click.echo(f"{len(comparison.rows)} rows, another library faster in {len(lost)}; {where}")


def _text(mech: lw.Mechanism, at: Conditions, results: Sequence[Measurement]) -> Iterable[str]:
    versions = ", ".join(f"{name} {version}" for name, version in at.versions.items())
    yield click.style(mech.name, bold=True) + f": nv = {mech.nv}, batches of {at.batch} random states"
    yield versions
    threads = f"{at.threads} thread{'s' * (at.threads > 1)}"
    yield f"{at.cpu} ({at.target}), {threads}, {at.dtype}, {at.lanes} lanes, peak {at.peak / 1e9:.1f} GFLOP/s per core"
    rows = [
        (
            _called(mech, r.algorithm),
            f"{1e9 * r.batch:.1f}",
            "-" if math.isnan(r.peak_share) else f"{100 * r.peak_share:.0f}",
            f"{1e9 * r.single:.0f}",
            "-" if r.operations is None else str(r.operations),
            f"{r.compile:.3f}",
        )
        for r in results
    ]
    head = ("", "ns per state", "% of peak", "ns per single call", "operations", "s to compile or load")
    yield from section("kernels", table(head, rows, range(1, 6)))
    ratios = [
        (_called(mech, r.algorithm), name, "-" if math.isnan(batch) else f"{batch:.1f}", f"{single:.1f}")
        for r in results
        for name, (batch, single) in r.against.items()
    ]
    if ratios:
        yield from section("times faster", table(("", "against", "batch", "single"), ratios, (2, 3)))


def _called(mech: lw.Mechanism, algorithm: str) -> str:
    """An algorithm as tables call it, with what else than a compiled kernel of the whole it is."""
    if not mech.loops:
        return algorithm
    return f"{algorithm}, {'loops closed, with NumPy' if algorithm == 'forward_dynamics' else 'loops open'}"
