"""linkwise export: generated source of an algorithm for one mechanism."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

import linkwise as lw

from .files import PIPE, check_output
from .mechanism import Loaded, report_warnings, takes_mechanism
from .screen import shown


@click.command(short_help="Source code of an algorithm: C, CUDA, LLVM.")
@takes_mechanism
@click.argument("algorithm")
@click.option("--language", type=click.Choice(lw.LANGUAGES), default="c", show_default=True)
@click.option("--output", "-o", metavar="FILE", help="The source file; standard output if left out, or -.")
@click.option("--name", help="Of the C function; that of the algorithm by default.")
@click.option("--dtype", type=click.Choice(lw.DTYPES), default="float64", show_default=True)
@click.option("--link", help="Of algorithms for one link or frame, such as jacobian and frame_pose.")
@click.option("--frame", help="Of jacobian: link, world or world_aligned.")
@click.option("--method", help="Of forward_dynamics: one of the papers' algorithms, such as filter_and_smoother.")
@click.option(
    "--parameter",
    "parameters",
    multiple=True,
    metavar="NAME",
    help="Make mass, com, inertia, pose, gravity or LINK.mass ... an input.",
)
def export(
    found: Loaded,
    algorithm: str,
    language: str,
    output: str | None,
    name: str | None,
    dtype: str,
    link: str | None,
    frame: str | None,
    method: str | None,
    parameters: Sequence[str],
) -> None:
    """Source code of ALGORITHM for one mechanism, to be compiled and used without linkwise.

    ALGORITHM is a name such as inverse_dynamics, forward_dynamics, mass_matrix, jacobian, link_poses. C is one file of
    C99 (C++ too) with a function for one state and one for many; it needs the C library alone.

    \b
    linkwise export builtin:puma560 forward_dynamics -o puma_dynamics.c
    linkwise export robot.urdf jacobian --link tool --frame world -o jacobian.c
    """
    check_output(output, pipe=True)
    mech = report_warnings(found)
    if name and language != "c":
        raise click.UsageError("--name is for C")
    chosen = {key: value for key, value in (("link", link), ("frame", frame), ("method", method)) if value is not None}
    options: dict[str, Any] = {"dtype": dtype, "parameters": parameters, **chosen}
    try:
        kernel = lw.compile(algorithm, mech, target="numpy", **options)
    except TypeError as error:  # an option that this algorithm cannot do without
        raise click.UsageError(f"{error}, here --link, --frame or --method") from None
    source = lw.c_file(algorithm, mech, name, **options) if language == "c" else kernel.source(language)
    if not output or output == PIPE:
        click.echo(source, nl=False)
        return
    path = Path(output)
    path.write_text(source, encoding="utf-8")
    counts = ", ".join(f"{kind} {count}" for kind, count in kernel.op_counts.items())
    click.echo(f"{shown(path)}: {algorithm} of {mech.name}, {dtype}; per state {counts}")
