"""An expression on a tree: numbers in, numbers out.  This is what gets traced."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..recursions.tree import Tree, plant
from ..scalar import Scalar
from ..spatial.three import ZERO
from .evaluate import Configuration, Evaluation, run_sweeps
from .expression import FORCE, JOINT, MOTION, Bias, Expression, Product, Space, SpaceError, Sum, Vector, product, total
from .identities import CHANGES_OF_ORIGIN
from .matrices import from_user, matrix_of, to_user
from .to_recursions import Recursions


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
    if not expression.is_vector:
        return matrix_of(expression, at)
    values = {name: _given(at, space, vectors[name]) for name, space in spaces.items()}
    results = evaluate(expression, at, values)
    space = expression.codomain
    assert space is not None
    numbers = [to_user(at, space, i, value) for i, value in enumerate(results)]
    if space in (FORCE, MOTION):
        return numbers
    if space == JOINT:
        return [x for part in numbers for x in part]
    return numbers[0] if space.link else numbers[0][0]


# -- biases -------------------------------------------------------------------------------------------


def at_users_origins(expression: Expression, tree: Tree) -> Expression:
    """The expression with biases that belong to the user's link frames; as it is where that makes no difference.

    The equations of motion hold for any origins, and cost least with the internal ones.
    """
    if not any(isinstance(part, Bias) and part.name in CHANGES_OF_ORIGIN for part in expression.walk()):
        return expression
    if all(link.user.position() == ZERO for link in tree.links):
        return expression
    moved = _moved_biases(expression)
    return moved if _differ(expression, moved, plant(tree.mechanism)) else expression


def _moved_biases(expression: Expression) -> Expression:
    match expression:
        case Bias(name=name, of=of) if name in CHANGES_OF_ORIGIN:
            return expression + CHANGES_OF_ORIGIN[name] @ Bias("c", MOTION, of)
        case Product(factors=factors):
            result = _moved_biases(factors[-1])
            for factor in reversed(factors[:-1]):
                result = product(_moved_biases(factor), result)
            return result
        case Sum(terms=terms) if terms:
            return total(tuple((weight, _moved_biases(term)) for weight, term in terms))
    return expression


def _differ(one: Expression, other: Expression, tree: Tree) -> bool:
    """Whether two expressions differ somewhere; they are analytic, so a random place will show it."""
    rng = np.random.default_rng(0)
    q = np.zeros(tree.mechanism.nq)
    for body in tree.mechanism.bodies:
        if not body.mimic:
            q[tree.mechanism.q_index(body.joint)] = body.kind.random(rng, ())
    given = {
        name: [rng.normal(size=link.joint.nv if space == JOINT else 6).tolist() for link in tree.links]
        for name, space in input_vectors(one).items()
    }
    first, second = (np.array(apply_expression(e, tree, q.tolist(), given), dtype=float) for e in (one, other))
    return not np.allclose(first, second, rtol=1e-8, atol=1e-8 * np.abs(second).max(initial=0.0))


# -- values -------------------------------------------------------------------------------------------


def evaluate(expression: Expression, at: Configuration, values: Mapping[str, Sequence[Any]]) -> list[Any]:
    """The value at every link (or the only one) of a vector expression, in internal frames."""
    recursions = Recursions()
    combination = recursions.of(expression)
    evaluation = Evaluation(at, values)
    run_sweeps(at, recursions.steps_for(combination), evaluation.value)
    single = expression.codomain not in (JOINT, FORCE, MOTION)
    return [evaluation.total(combination, i) for i in (range(1) if single else range(len(at.tree.links)))]


def _given(at: Configuration, space: Space, rows: Any) -> list[Any]:
    if space == JOINT:
        return [list(part) for part in rows]
    if space.link:
        return [from_user(at, space, 0, rows)]
    return [from_user(at, space, i, row) for i, row in enumerate(rows)]
