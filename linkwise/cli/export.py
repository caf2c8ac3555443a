"""linkwise export: generated source of an algorithm for one mechanism."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import click

import linkwise as lw

from .files import PIPE, Output
from .mechanism import Source
from .screen import shown
from .signatures import command


@command("Source code of an algorithm: C, CUDA, LLVM.")
def export(
    source: Source,
    algorithm: str,
    language: Annotated[str, click.Choice(lw.codegen.LANGUAGES)] = "c",
    output: Annotated[str, Output(pipe=True)] | None = None,
    name: str | None = None,
    dtype: Annotated[str, click.Choice(lw.codegen.DTYPES)] = "float64",
    link: str | None = None,
    frame: str | None = None,
    method: str | None = None,
    parameter: Sequence[Annotated[str, "NAME"]] = (),
) -> None:
    """Source code of ALGORITHM for one mechanism, to be compiled and used without linkwise.

    ALGORITHM is a name such as inverse_dynamics, forward_dynamics, mass_matrix, jacobian, link_poses. C is one file of
    C99 (C++ too) with a function for one state and one for many; it needs the C library alone.

    output      the source file; standard output if left out, or -
    name        of the C function; that of the algorithm by default
    link        of algorithms for one link or frame, such as jacobian and frame_pose
    frame       of jacobian: link, world or world_aligned
    method      of forward_dynamics: one of the papers' algorithms, such as filter_and_smoother
    parameter   make mass, com, inertia, pose, gravity or LINK.mass ... an input

    \b
    linkwise export builtin:puma560 forward_dynamics -o puma_dynamics.c
    linkwise export robot.urdf jacobian --link tool --frame world -o jacobian.c
    """
    mech = source.mechanism()
    if name and language != "c":
        raise click.UsageError("--name is for C")
    chosen = {key: value for key, value in (("link", link), ("frame", frame), ("method", method)) if value is not None}
    options: dict[str, Any] = {"dtype": dtype, "parameters": parameter, **chosen}
    try:
        kernel = lw.compile(algorithm, mech, target="numpy", **options)
    except TypeError as error:  # an option that this algorithm cannot do without
        raise click.UsageError(f"{error}, here --link, --frame or --method") from None
    text = lw.codegen.c_file(algorithm, mech, name, **options) if language == "c" else kernel.source(language)
    if not output or output == PIPE:
        click.echo(text, nl=False)
        return
    Path(output).write_text(text, encoding="utf-8")
    counts = ", ".join(f"{kind} {count}" for kind, count in kernel.op_counts.items())
    click.echo(f"{shown(output)}: {algorithm} of {mech.name}, {dtype}; per state {counts}")
