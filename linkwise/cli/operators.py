"""linkwise operators: from an operator expression to its plan, its source and its speed."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import click
import numpy as np

import linkwise as lw
from linkwise import operators as op

from .mechanism import file_argument, loaded, report_warnings

TOLERANCE = {"float64": 1e-8, "float32": 1e-2}  # of the largest number; ill-conditioned inverses lose digits
CHECKED = 20  # configurations
SECONDS = 0.4  # to spend on each timing


@click.command()
@click.argument("expression")
@file_argument
@click.option("--joint", "joints", multiple=True, metavar="NAME", help="A joint vector (nv,) of the expression.")
@click.option("--link", "links", multiple=True, metavar="NAME", help="A link vector (n_links, 6) of the expression.")
@click.option("--target", type=click.Choice(["cpu", "cuda", "numpy"]), default="cpu", show_default=True)
@click.option("--dtype", type=click.Choice(["float64", "float32"]), default="float64", show_default=True)
@click.option("--source", type=click.Choice(["c", "llvm", "cuda"]), help="Print the generated source and nothing else.")
@click.option("--time", "timed", is_flag=True, help="Measure a batch and single calls.")
@click.option(
    "--batch", type=click.IntRange(1, 10_000_000), default=10_000, show_default=True, help="States in a batch."
)
@click.option("--dense-check", is_flag=True, help="Compare with stacked matrices; exit code 1 if they differ.")
@click.pass_context
def operators(
    context, expression, file, floating_base, joints, links, target, dtype, source, timed, batch, dense_check
):
    """The plan of an operator EXPRESSION on a mechanism: seven levels, with the operations of each sweep.

    EXPRESSION is written as in Python: H phi psi E_phi E_psi M P D R G K tau tau_bar I, joined by @ + - *, with .T for
    the adjoint and .inv for the inverse, B("link") for a force at a link, A("link") for a motion of it,
    bias_acceleration(v), bias_force(v), gravity(). Other names are vectors: declare each with --joint or --link. Put --
    before an expression that starts with a minus.

    \b
    linkwise operators "(I - H@psi@K).T @ D.inv @ (I - H@psi@K) @ T" builtin:puma560 --joint T
    linkwise operators "B('link6').T @ phi.T @ H.T" builtin:stanford_arm --time
    """
    both = set(joints) & set(links)
    if both:
        raise click.UsageError(f"{sorted(both)[0]!r} is declared both as a joint vector and as a link vector")
    vectors = {name: op.joint_vector(name) for name in joints} | {name: op.link_vector(name) for name in links}
    parsed = op.parse(expression, vectors)
    found = loaded(file, floating_base)
    report_warnings(found)
    try:
        kernel = lw.compile(parsed, found.mechanism, dtype=dtype, target=target)
    except (ImportError, RuntimeError) as error:
        if target == "cuda":  # no CuPy, or no GPU
            raise click.UsageError(str(error)) from None
        raise
    unused = [name for name in vectors if name not in kernel.inputs]
    if unused:
        click.echo(f"linkwise: warning: {', '.join(unused)} declared, but not in the expression", err=True)
    if source:
        click.echo(kernel.source(source), nl=False)
    else:
        click.echo(kernel.plan())
    if timed:
        _time(kernel, found.mechanism, batch, err=bool(source))
    if dense_check and not _agrees(kernel, parsed, found.mechanism, err=bool(source)):
        context.exit(1)


def _arrays(kernel: lw.Kernel, mech: lw.Mechanism, shape: tuple[int, ...]) -> list[np.ndarray]:
    """Random arguments of a kernel, q first."""
    rng = np.random.default_rng(0)
    q, _ = lw.random_state(mech, rng, shape)
    others = [rng.normal(size=(*shape, *core)) for name, core in kernel.input_shapes.items() if name != "q"]
    return [np.asarray(array, kernel.dtype) for array in (q, *others)]


def _time(kernel: lw.Kernel, mech: lw.Mechanism, batch: int, err: bool) -> None:
    """Nanoseconds for a state of a batch, and for a call with a single state; the best of repeated runs."""
    many, one = _arrays(kernel, mech, (batch,)), _arrays(kernel, mech, ())
    calls = 1 if kernel.target == "numpy" else 100

    def single() -> None:
        for _ in range(calls):
            kernel(*one)

    per_state = _best(lambda: kernel(*many)) / batch
    per_call = _best(single) / calls
    threads = lw.get_num_threads() if kernel.target == "cpu" else 1
    where = {"cpu": f"{threads} thread" + "s" * (threads > 1), "cuda": "with transfers", "numpy": "interpreted"}
    click.echo(
        f"time, {kernel.dtype}, target {kernel.target}, {where[kernel.target]}: {_nanoseconds(per_state)} ns per state "
        f"in batches of {batch}, {_nanoseconds(per_call)} ns for a call with one state",
        err=err,
    )


def _best(run: Callable[[], Any]) -> float:
    """Seconds of the quickest run, after one that is not counted."""
    run()
    times: list[float] = []
    while len(times) < 3 or sum(times) < SECONDS:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def _nanoseconds(seconds: float) -> str:
    return f"{1e9 * seconds:.3g}" if seconds < 1e-7 else f"{1e9 * seconds:.0f}"


def _agrees(kernel: lw.Kernel, expression: op.Expression, mech: lw.Mechanism, err: bool) -> bool:
    """Compare with op.dense at random configurations, relative to the largest number."""
    q, *others = _arrays(kernel, mech, (CHECKED,))
    names = [name for name in kernel.input_shapes if name != "q"]
    results = kernel(q, *others)
    worst = 0.0
    for state, result in enumerate(results):
        values = {name: array[state] for name, array in zip(names, others, strict=True)}
        try:
            expected = op.dense(expression, mech, q[state], values)
        except TypeError as error:  # a bias
            raise click.UsageError(f"--dense-check: {error}") from None
        scale = np.abs(expected).max(initial=0.0) or 1.0
        worst = max(worst, float(np.abs(result.reshape(expected.shape) - expected).max(initial=0.0)) / scale)
    agrees = worst <= TOLERANCE[kernel.dtype.name]
    verdict = "agrees with" if agrees else "DIFFERS from"
    click.echo(
        f"{verdict} the stacked matrices: largest relative difference {worst:.1e} over {CHECKED} configurations",
        err=err,
    )
    return agrees
