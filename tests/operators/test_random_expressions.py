"""Random expressions, compiled, against the same expressions multiplied out as stacked matrices."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import linkwise as lw
from linkwise import operators as op
from linkwise.operators.apply import input_vectors
from linkwise.operators.expression import Expression

from .random_expressions import Generator, StackedVectors

KINDS = lw.mechanisms.MOVING_KINDS
TREES = (
    lambda: lw.mechanisms.random_tree(3, 1),
    lambda: lw.mechanisms.random_tree(4, 2),
    lambda: lw.mechanisms.random_tree(5, 3),
    lambda: lw.mechanisms.random_tree(3, 4, floating_base=True),
    lambda: lw.mechanisms.random_tree(5, 5, joints=(*KINDS, "fixed"), floating_base=True),
    lambda: lw.mechanisms.random_tree(6, 6, joints=("revolute", "prismatic", "helical", "universal", "fixed")),
    lambda: lw.mechanisms.random_tree(6, 7, joints=("revolute", "prismatic", "cylindrical")),
    lambda: lw.mechanisms.chain(6),
)
SHARES = 16
VECTORS_PER_SHARE, MATRICES_PER_SHARE = 24, 9
COMPILED = 30
KINDS_OF_RESULTS = 5


@cache
def tree(number: int) -> lw.Mechanism:
    return TREES[number]()


def draw(seed: int, matrix: bool) -> tuple[Expression, lw.Mechanism]:
    """One expression, from an integer."""
    rng = np.random.default_rng([seed, matrix])
    mech = tree(int(rng.integers(len(TREES))))
    generator = Generator(rng, mech)
    depth = int(rng.integers(1, 7 if not matrix else 5))
    spaces = (op.JOINT, op.FORCE, op.MOTION, generator._task())
    if matrix:
        domain, codomain = (spaces[k] for k in rng.integers(len(spaces), size=2))
        return generator.operator(domain, codomain, depth), mech
    choice = int(rng.integers(KINDS_OF_RESULTS))
    return generator.number(depth) if choice == 4 else generator.vector(spaces[choice], depth), mech


def discrepancy(expression: Expression, mech: lw.Mechanism, seed: int, target: str) -> tuple[float, float]:
    """Largest difference to the stacked matrices, and what rounding allows."""
    rng = np.random.default_rng(seed)
    q, _ = lw.random_state(mech, rng)
    shapes = {name: (mech.nv,) if space == op.JOINT else (mech.n_links, 6) for name, space in input_vectors(expression).items()}
    vectors = {name: rng.normal(size=shape) for name, shape in shapes.items()}
    kernel = lw.compile(expression, mech, target=target)
    assert kernel.inputs == ("q", *vectors)
    found = kernel(q, *vectors.values())
    stacked = StackedVectors(mech, q, vectors)
    expected = stacked.matrix(expression)
    difference = float(np.abs(np.reshape(found, expected.shape) - expected).max(initial=0.0))
    return difference, 1e-10 * float(np.linalg.norm(expected)) + 1e-14 * stacked.size_of_terms(expression)


def check(seed: int, matrix: bool, target: str = "numpy") -> None:
    expression, mech = draw(seed, matrix)
    difference, allowed = discrepancy(expression, mech, seed, target)
    assert difference <= allowed, f"seed {seed} on {mech.name}: {expression} is off by {difference:.1e} > {allowed:.1e}"


@pytest.mark.parametrize("share", range(SHARES))
def test_vectors_and_numbers(share):
    for seed in range(share * VECTORS_PER_SHARE, (share + 1) * VECTORS_PER_SHARE):
        check(seed, matrix=False)


@pytest.mark.parametrize("share", range(SHARES))
def test_matrices(share):
    for seed in range(share * MATRICES_PER_SHARE, (share + 1) * MATRICES_PER_SHARE):
        check(seed, matrix=True)
