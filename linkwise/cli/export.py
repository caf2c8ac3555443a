"""linkwise export: source code of an algorithm; linkwise formulas: closed formulas of a small mechanism."""

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


WORDS = {
    "torques": "inverse_dynamics",
    "mass-matrix": "mass_matrix",
    "inverse": "mass_matrix_inverse",
    "accelerations": "forward_dynamics",
    "bias": "bias_force",
    "gravity": "gravity_force",
    "coriolis": "coriolis_matrix",
    "energy": "kinetic_energy",
    "jacobian": "jacobian",
}


class _Word(click.Choice):
    """One of the words, with hyphens or underscores."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return str(super().convert(value.replace("_", "-"), param, ctx))


@command("Closed formulas of a small mechanism.")
def formulas(
    source: Source,
    of: Annotated[str, _Word(tuple(WORDS))] = "torques",
    link: Annotated[str, "NAME"] | None = None,
    let: Sequence[Annotated[str, "SYMBOL=FORMULA"]] = (),
    numbers: bool = False,
    latex: bool = False,
) -> None:
    """Closed formulas of a mechanism with few joints.

    Coordinates are q1, q2, ..., velocities v1, accelerations a1, joint forces tau1; c12 is the cosine of q1 + q2; link
    k has mass mk, its centre of mass at rk, inertia Ik about it and carries the next joint at lk; g is gravity.

    of        the quantity
    link      the link or frame of a jacobian
    let       what a symbol is in terms of others
    numbers   numbers in place of masses, lengths, inertias and gravity
    latex     LaTeX instead of text

    \b
    linkwise formulas builtin:planar_arm:2
    linkwise formulas builtin:planar_arm:2 --of inverse --latex
    linkwise formulas builtin:planar_arm:1 --let r1=l1/2 --let "I1=m1*l1**2/12"
    """
    symbols = {}
    for text in let:
        name, equals, formula = text.partition("=")
        if not equals:
            raise click.UsageError(f"--let {text}: write SYMBOL=FORMULA, such as r1=l1/2")
        symbols[name.strip()] = formula.strip()
    if (link is not None) != (of == "jacobian"):
        raise click.UsageError("--link goes with --of jacobian, which needs it")
    parameters = () if numbers else ("mass", "com", "inertia", "pose", "gravity")
    result = lw.codegen.symbolic(source.mechanism(), WORDS[of], symbols, parameters, **({"link": link} if link else {}))
    click.echo(result.latex() if latex else result.text())
