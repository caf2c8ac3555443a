"""linkwise formulas: closed formulas of a small mechanism, in named symbols."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import click

import linkwise as lw

from .mechanism import Source
from .signatures import command

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
