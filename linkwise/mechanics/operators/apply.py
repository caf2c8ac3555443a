"""An expression on a tree: numbers in, numbers out.  This is what gets traced."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..recursions.tree import Configuration, Tree
from ..scalar import Scalar
from .evaluate import Evaluation, run_sweeps
from .expression import FORCE, JOINT, MOTION, Expression, Space, SpaceError, Vector
from .matrices import from_user, matrix_of, to_user
from .to_recursions import Recursions, regroupable_steps


def input_vectors(expression: Expression) -> dict[str, Space]:
    """The vectors of an expression in order of appearance, with their spaces."""
    if expression.domain is None or (expression.codomain is None and not expression.is_vector):
        raise SpaceError(
            f"nothing says on which space {expression} acts: use op.identity(op.JOINT) or another space of op"
        )
    found: dict[str, Space] = {}
    for part in expression.walk():
        if isinstance(part, Vector):
            if part.codomain is None:
                raise SpaceError(
                    f"{part.name} is a link vector of forces or of motions: nothing in {expression} says which"
                )
            if found.setdefault(part.name, part.codomain) != part.codomain:
                raise SpaceError(f"{part.name} is used both in {found[part.name]} and in {part.codomain}")
    return found


def apply_expression(expression: Expression, tree: Tree, q: Sequence[Scalar], vectors: Mapping[str, Any]) -> Any:
    """The value of ``expression`` at q: an array in the user's frames.

    Vectors are given per joint (lists of numbers) or per link (rows of six, in the user's frames).
    """
    at = Configuration(tree, q)
    spaces = input_vectors(expression)
    values = {name: _given(at, space, vectors[name]) for name, space in spaces.items()}
    if not expression.is_vector:
        return matrix_of(expression, at, values)
    results = evaluate(expression, at, values)
    space = expression.codomain
    assert space is not None
    numbers = [to_user(at, space, i, value) for i, value in enumerate(results)]
    if space in (FORCE, MOTION):
        return numbers
    if space == JOINT:
        return [x for part in numbers for x in part]
    return numbers[0] if space.link else numbers[0][0]


def evaluate(expression: Expression, at: Configuration, values: Mapping[str, Sequence[Any]]) -> list[Any]:
    """The value at every link (or the only one) of a vector expression, in internal frames."""
    recursions = Recursions()
    combination = recursions.of(expression)
    steps = recursions.steps_for(combination)
    regrouped = regroupable_steps(steps, combination)
    evaluation = Evaluation(at, values, regrouped)
    run_sweeps(at, steps, evaluation.value, regrouped)
    single = expression.codomain not in (JOINT, FORCE, MOTION)
    return [evaluation.total(combination, i) for i in (range(1) if single else range(len(at.tree.links)))]


def _given(at: Configuration, space: Space, rows: Any) -> list[Any]:
    if space == JOINT:
        return [list(part) for part in rows]
    if space.link:
        return [from_user(at, space, 0, rows)]
    return [from_user(at, space, i, row) for i, row in enumerate(rows)]
