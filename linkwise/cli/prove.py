"""linkwise prove: whether two operator expressions are equal, by the papers' identities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import click

from linkwise import operators as op

from .operators import declared_vectors
from .signatures import command


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
