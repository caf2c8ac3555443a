"""linkwise formulas: closed formulas of a small mechanism, in named symbols."""

from __future__ import annotations

import click

import linkwise as lw

from .mechanism import Loaded, report_warnings, takes_mechanism

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


@click.command(short_help="Closed formulas of a small mechanism.")
@takes_mechanism
@click.option("--of", "what", type=_Word(tuple(WORDS)), default="torques", show_default=True)
@click.option("--link", metavar="NAME", help="The link or frame of a jacobian.")
@click.option("--let", "given", multiple=True, metavar="SYMBOL=FORMULA", help="What a symbol is in terms of others.")
@click.option("--numbers", is_flag=True, help="Numbers in place of masses, lengths, inertias and gravity.")
@click.option("--latex", is_flag=True, help="LaTeX instead of text.")
def formulas(found: Loaded, what: str, link: str | None, given: tuple[str, ...], numbers: bool, latex: bool) -> None:
    """Closed formulas of a mechanism with few joints.

    Coordinates are q1, q2, ..., velocities v1, accelerations a1, joint forces tau1; c12 is the cosine of q1 + q2; link
    k has mass mk, its centre of mass at rk, inertia Ik about it and carries the next joint at lk; g is gravity.

    \b
    linkwise formulas builtin:planar_arm:2
    linkwise formulas builtin:planar_arm:2 --of inverse --latex
    linkwise formulas builtin:planar_arm:1 --let r1=l1/2 --let "I1=m1*l1**2/12"
    """
    symbols = {}
    for one in given:
        name, equals, formula = one.partition("=")
        if not equals:
            raise click.UsageError(f"--let {one}: write SYMBOL=FORMULA, such as r1=l1/2")
        symbols[name.strip()] = formula.strip()
    if (link is not None) != (what == "jacobian"):
        raise click.UsageError("--link goes with --of jacobian, which needs it")
    report_warnings(found)
    options = {} if link is None else {"link": link}
    parameters = () if numbers else ("mass", "com", "inertia", "pose", "gravity")
    result = lw.symbolic(found.mechanism, WORDS[what], symbols, parameters, **options)
    click.echo(result.latex() if latex else result.text())
