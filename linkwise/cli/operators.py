"""linkwise operators: plan, source and speed of an operator expression; linkwise prove: proofs of identities."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import Annotated, Any

import click
import numpy as np

import linkwise as lw
from linkwise import operators as op
from linkwise.demo.timing import best

from .mechanism import Source
from .screen import warn
from .signatures import command

CHECKED = 20  # configurations
TOLERANCE = {"float64": 1e-8, "float32": 1e-2}  # of the largest number of an answer
SECONDS = 0.4  # to spend on each timing


@command("Plan and source of an operator expression.")
def operators(
    expression: str,
    file: Source,
    joint: Sequence[Annotated[str, "NAME"]] = (),
    link: Sequence[Annotated[str, "NAME"]] = (),
    target: Annotated[str, click.Choice(lw.codegen.TARGETS)] = "cpu",
    dtype: Annotated[str, click.Choice(lw.codegen.DTYPES)] = "float64",
    source: Annotated[str, click.Choice(lw.codegen.LANGUAGES)] | None = None,
    as_written: bool = False,
    time: bool = False,
    batch: Annotated[int, click.IntRange(1, 10_000_000)] = 10_000,
    dense_check: bool = False,
) -> int:
    """The plan of an operator EXPRESSION on a mechanism: seven levels, with the operations of each sweep.

    EXPRESSION is written as in Python: H phi psi E_phi E_psi M P P_plus D D_half R G K tau tau_bar Phi Psi I, joined by
    @ + - * /, with .T for the adjoint and .inv for the inverse, B("link") for a force at a link, A("link") for a motion
    of it, bias_acceleration(v), bias_force(v), gravity(), identity(JOINT) for I on a named space. Other names are
    vectors: declare each with --joint or --link. An expression that starts with a minus goes after all options and
    a --.

    joint         a joint vector (nv,) of the expression
    link          a link vector (n_links, 6) of the expression
    source        print the generated source and nothing else
    as_written    compute it as it is written, not in the form that costs least
    time          measure a batch and single calls
    batch         states in a batch
    dense_check   compare with stacked matrices; exit code 1 if they differ

    \b
    linkwise operators "(I - H@psi@K).T @ D.inv @ (I - H@psi@K) @ T" builtin:puma560 --joint T
    linkwise operators "B('link6').T @ phi.T @ H.T" builtin:stanford_arm --time
    """
    vectors = declared_vectors(joint, link)
    parsed = op.parse(expression, vectors)
    if parsed.domain is None:
        raise click.UsageError(
            f"nothing says on which space {parsed} acts: write identity(JOINT), identity(FORCE) or identity(MOTION) "
            "instead of I"
        )
    mech = file.mechanism()
    try:
        kernel = lw.compile(parsed, mech, dtype=dtype, target=target, simplify=not as_written)
    except (ImportError, RuntimeError) as error:
        if target == "cpu":
            raise
        raise click.UsageError(str(error)) from None  # no library for it, or no device
    unused = [name for name in vectors if name not in kernel.inputs]
    if unused:
        warn(f"{', '.join(unused)} declared, but not in the expression")
    difference = _difference(kernel, parsed, mech) if dense_check else 0.0
    click.echo(kernel.source(source) if source else kernel.plan(), nl=not source)
    remarks = bool(source)  # to stderr, so that stdout is the source and nothing else
    if time:
        click.echo(_time(kernel, mech, batch), err=remarks)
    if dense_check:
        agrees = difference <= TOLERANCE[dtype]
        click.echo(
            f"{'agrees with' if agrees else 'DIFFERS from'} the stacked matrices: largest relative difference "
            f"{difference:.1e} over {CHECKED} configurations",
            err=remarks,
        )
        return 0 if agrees else 1
    return 0


def declared_vectors(joints: Sequence[str], links: Sequence[str]) -> dict[str, Any]:
    """The vectors of an expression by name."""
    both = set(joints) & set(links)
    if both:
        raise click.UsageError(f"{sorted(both)[0]!r} is declared both as a joint vector and as a link vector")
    return {name: op.joint_vector(name) for name in joints} | {name: op.link_vector(name) for name in links}


def _arrays(kernel: lw.Kernel, mech: lw.Mechanism, shape: tuple[int, ...]) -> list[np.ndarray]:
    """Random arguments of a kernel, q first."""
    rng = np.random.default_rng(0)
    q, _ = lw.random_state(mech, rng, shape)
    others = [rng.normal(size=(*shape, *core)) for name, core in kernel.input_shapes.items() if name != "q"]
    return [np.asarray(array, kernel.dtype) for array in (q, *others)]


def _time(kernel: lw.Kernel, mech: lw.Mechanism, batch: int) -> str:
    """Nanoseconds for a state of a batch, and for a call with a single state; the best of repeated runs."""
    many, single = _arrays(kernel, mech, (batch,)), _arrays(kernel, mech, ())
    calls = 1 if kernel.target == "numpy" else 100
    how: dict[str, Any] = {"rounds": 1, "slice_seconds": SECONDS, "clock": perf_counter}
    (per_batch,) = best(lambda: kernel(*many), **how)
    (per_call,) = best(lambda: kernel(*single), repeats=calls, **how)
    per_state = per_batch / batch
    threads = lw.codegen.get_num_threads() if kernel.target == "cpu" else 1
    remarks = {"cpu": f", {threads} thread" + "s" * (threads > 1), "cuda": ", with transfers", "numpy": ", interpreted"}
    where = f"target {kernel.target}{remarks.get(kernel.target, '')}"
    return (
        f"time, {kernel.dtype}, {where}: {_nanoseconds(per_state)} ns per state in batches of {batch}, "
        f"{_nanoseconds(per_call)} ns for a call with one state"
    )


def _nanoseconds(seconds: float) -> str:
    return f"{1e9 * seconds:.3g}" if seconds < 1e-7 else f"{1e9 * seconds:.0f}"


def _difference(kernel: lw.Kernel, expression: op.Expression, mech: lw.Mechanism) -> float:
    """The largest difference from op.dense at random configurations, relative to the largest number of each."""
    q, *others = _arrays(kernel, mech, (CHECKED,))
    names = [name for name in kernel.input_shapes if name != "q"]
    worst = 0.0
    for state, result in enumerate(kernel(q, *others)):
        values = {name: array[state] for name, array in zip(names, others, strict=True)}
        try:
            expected = op.dense(expression, mech, q[state], values)
        except TypeError as error:  # a bias
            raise click.UsageError(f"--dense-check: {error}") from None
        scale = np.abs(expected).max(initial=0.0) or 1.0
        worst = max(worst, float(np.abs(result.reshape(expected.shape) - expected).max(initial=0.0)) / scale)
    return worst


@command("Proof or counterexample for an operator identity.", of=op.prove)
def prove(
    left: str,
    right: str,
    joint: Sequence[Annotated[str, "NAME"]] = (),
    link: Sequence[Annotated[str, "NAME"]] = (),
    **options: Any,
) -> int:
    """Whether LEFT equals RIGHT for every mechanism in every state.

    Prints the chain of identities that leads from one to the other, each with its source, or a mechanism and a state at
    which they differ. Exit code 0: proven; 1: they differ, or neither was found. Expressions are written as for
    linkwise operators.

    joint   a joint vector in the expressions
    link    a link vector in the expressions

    \b
    linkwise prove "(I - H@psi@K) @ H @ phi" "H @ psi"
    linkwise prove "H @ phi @ M @ phi.T @ H.T" "(I + H@phi@K) @ D @ (I + H@phi@K).T"
    """
    vectors = declared_vectors(joint, link)
    proof = op.prove(op.parse(left, vectors), op.parse(right, vectors), **options)
    click.echo(proof)
    return 0 if proof.holds else 1
