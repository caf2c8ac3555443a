"""linkwise prove: whether two operator expressions are equal, by the papers' identities."""

from __future__ import annotations

import click

from linkwise import operators as op

from .operators import declared_vectors


@click.command(short_help="Proof or counterexample for an operator identity.")
@click.argument("left")
@click.argument("right")
@click.option("--joint", "joints", multiple=True, metavar="NAME", help="A joint vector in the expressions.")
@click.option("--link", "links", multiple=True, metavar="NAME", help="A link vector in the expressions.")
@click.option(
    "--armature/--no-armature",
    default=None,
    help="For mechanisms whose joints may have rotor inertias, or have none. "
    "Default: none, as in the papers, unless R occurs in the expressions.",
)
@click.pass_context
def prove(
    context: click.Context,
    left: str,
    right: str,
    joints: tuple[str, ...],
    links: tuple[str, ...],
    armature: bool | None,
) -> None:
    """Whether LEFT equals RIGHT for every mechanism in every state.

    Prints the chain of identities that leads from one to the other, each with its source, or a mechanism and a state at
    which they differ. Exit code 0: proven; 1: they differ, or neither was found. Expressions are written as for
    linkwise operators.

    \b
    linkwise prove "(I - H@psi@K) @ H @ phi" "H @ psi"
    linkwise prove "H @ phi @ M @ phi.T @ H.T" "(I + H@phi@K) @ D @ (I + H@phi@K).T"
    """
    vectors = declared_vectors(joints, links)
    proof = op.prove(op.parse(left, vectors), op.parse(right, vectors), armature)
    click.echo(proof)
    context.exit(0 if proof.holds else 1)
