"""Random expressions, compiled, against the same expressions multiplied out as stacked matrices."""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import pytest

import linkwise as lw
from linkwise import operators as op
from linkwise.compiler.pipeline import trace_algorithm
from linkwise.mechanics.algorithms.catalogue import from_expression
from linkwise.mechanics.operators.dense import StackedOperators
from linkwise.mechanics.operators.expression import Expression
from linkwise.mechanics.operators.vectors import input_vectors

from .random_expressions import Generator, StackedVectors

KINDS = lw.mechanisms.EVERY_KIND
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
GROWING = 40
KINDS_OF_RESULTS = 5  # joint, link force, link motion and task vectors, numbers


@cache
def tree(number: int) -> lw.Mechanism:
    return TREES[number]()


def draw(seed: int, matrix: bool, mech: lw.Mechanism | None = None) -> tuple[Expression, lw.Mechanism]:
    """One expression, from an integer."""
    rng = np.random.default_rng([seed, matrix])
    mech = mech or tree(int(rng.integers(len(TREES))))
    generator = Generator(rng, mech)
    depth = int(rng.integers(1, 7 if not matrix else 5))
    spaces = (op.JOINT, op.FORCE, op.MOTION, generator.task())
    if matrix:
        domain, codomain = (spaces[k] for k in rng.integers(len(spaces), size=2))
        return generator.operator(domain, codomain, depth), mech
    choice = int(rng.integers(KINDS_OF_RESULTS))
    return generator.number(depth) if choice == 4 else generator.vector(spaces[choice], depth), mech


def discrepancy(expression: Expression, mech: lw.Mechanism, seed: int, target: str) -> tuple[float, float]:
    """Largest difference to the stacked matrices, and what rounding allows."""
    rng = np.random.default_rng(seed)
    q, _ = lw.random_state(mech, rng)
    vectors = {
        name: rng.normal(size=(mech.nv,) if space == op.JOINT else (mech.n_links, 6))
        for name, space in input_vectors(expression).items()
    }
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


@pytest.mark.slow_cases(*(f"[{share}]" for share in range(6, 16)))
@pytest.mark.parametrize("share", range(SHARES))
def test_vectors_and_numbers(share):
    for seed in range(share * VECTORS_PER_SHARE, (share + 1) * VECTORS_PER_SHARE):
        check(seed, matrix=False)


@pytest.mark.slow_cases(*(f"[{share}]" for share in range(6, 16)))
@pytest.mark.parametrize("share", range(SHARES))
def test_matrices(share):
    for seed in range(share * MATRICES_PER_SHARE, (share + 1) * MATRICES_PER_SHARE):
        check(seed, matrix=True)


def test_the_shares_make_up_enough_expressions():
    """Most of them differ, some are deep, and every operator and kind of result occurs."""
    vectors = [draw(seed, matrix=False)[0] for seed in range(SHARES * VECTORS_PER_SHARE)]
    matrices = [draw(seed, matrix=True)[0] for seed in range(SHARES * MATRICES_PER_SHARE)]
    together = " ".join(texts := [str(expression) for expression in vectors + matrices])
    assert len(texts) >= 500 and len(set(texts)) >= 450
    assert sum(text.count("@") >= 6 for text in texts) >= 100
    names = "H phi psi E_phi E_psi M P P_plus D R G K tau tau_bar I A B a b g".split()
    assert set(names) <= set(re.findall(r"[A-Za-z_]+", together))
    assert together.count(".inv") >= 100 and together.count(".T") >= 100
    assert {e.codomain.name for e in vectors} >= {"scalars", op.JOINT.name, op.FORCE.name, op.MOTION.name}


@pytest.mark.parametrize("share", range(3))
def test_some_as_machine_code(share):
    for seed in range(share, COMPILED, 3):
        check(1000 + seed, matrix=seed % 3 == 0, target="cpu")


def test_a_wrong_operator_is_noticed(monkeypatch):
    """The comparison can fail: with links one gram heavier in the oracle hardly an expression with M in it passes."""
    monkeypatch.setattr(StackedVectors, "M", property(lambda self: wrong(self)), raising=False)

    def wrong(stacked: StackedVectors) -> np.ndarray:
        masses = np.kron(np.eye(stacked.mech.n_links), np.diag([0.0, 0.0, 0.0, 1e-3, 1e-3, 1e-3]))
        return StackedOperators.M.func(stacked) + masses

    expression = op.H @ op.phi @ op.M @ op.phi.T @ op.H.T @ op.joint_vector("x")
    difference, allowed = discrepancy(expression, tree(2), 0, "numpy")
    assert difference > 1e3 * allowed


@pytest.mark.parametrize("share", range(4))
def test_vectors_cost_in_proportion_to_the_number_of_links(share):
    """Twice the links added, at most twice (and a twentieth) the operations added."""
    sizes = (8, 16, 32)
    chains = [lw.mechanisms.chain(n) for n in sizes]
    for seed in range(share, GROWING, 4):
        expression, _ = draw(5000 + seed, matrix=False, mech=chains[0])
        short, middle, long = (operations(expression, mech) for mech in chains)
        assert long - middle <= 2.1 * (middle - short) + 20, f"{expression} costs {short}, {middle}, {long} operations"


def operations(expression: Expression, mech: lw.Mechanism) -> int:
    counts = trace_algorithm(from_expression(expression), mech)[0].op_counts
    return sum(counts.get(kind, 0) for kind in ("add", "mul", "div"))
