"""Matrices of products that contain structured ones: each is what the stacked operators say."""

from __future__ import annotations

import inspect
import sys

import numpy as np
import pytest

import linkwise as lw
from linkwise import operators as op
from linkwise.compiler.pipeline import trace_algorithm
from linkwise.mechanics.algorithms.catalogue import ALGORITHMS, from_expression
from linkwise.mechanics.operators import plan

MASS = op.H @ op.phi @ op.M @ op.phi.T @ op.H.T + op.R
OMEGA = op.psi.T @ op.H.T @ op.D.inv @ op.H @ op.psi
BODIES = op.phi @ op.M @ op.phi.T

EXPRESSIONS = {
    "square": MASS @ MASS,
    "between": MASS @ op.D.inv @ MASS,
    "inverse and back": MASS.inv @ MASS @ MASS.inv,
    "cube": MASS @ MASS @ MASS,
    "sum of a product and its adjoint": MASS @ op.H @ op.phi @ op.G + op.G.T @ op.phi.T @ op.H.T @ MASS,
    "bodies twice": BODIES @ OMEGA @ BODIES,
    "mobilities twice": OMEGA @ BODIES @ OMEGA,
    "twice over": 2 * MASS + MASS @ op.R @ MASS,
}


@pytest.mark.quick_one_in(2)
@pytest.mark.parametrize("floating", [False, True])
@pytest.mark.parametrize("name", EXPRESSIONS)
def test_symmetric_products(name, floating):
    expression = EXPRESSIONS[name]
    for mech in (lw.mechanisms.puma560(), lw.mechanisms.random_tree(6, 4, floating_base=floating)):
        q, _ = lw.random_state(mech, np.random.default_rng(1))
        expected = op.dense(expression, mech, q)
        found = lw.compile(expression, mech, target="numpy")(q)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10 * np.abs(expected).max())


@pytest.mark.parametrize("what", ["mass_matrix_inverse", "mass_matrix", op.H @ op.psi @ op.M @ op.psi.T @ op.H.T])
def test_long_chains_do_not_exhaust_the_stack(what, monkeypatch):
    """Columns of deep trees are swept: no more of Python's stack is used, and the program is the same."""
    mech = lw.mechanisms.chain(40)
    algorithm = from_expression(what) if isinstance(what, op.Expression) else ALGORITHMS[what]
    on_demand = trace_algorithm(algorithm, mech)[0]
    monkeypatch.setattr(plan, "DEEP", 10)
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack()) + 60)
    try:
        swept = trace_algorithm(algorithm, mech)[0]
        monkeypatch.setattr(plan, "DEEP", 100)
        with pytest.raises(RecursionError):
            trace_algorithm(algorithm, mech)
    finally:
        sys.setrecursionlimit(limit)
    assert swept.op_counts == on_demand.op_counts
