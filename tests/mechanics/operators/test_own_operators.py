"""Operators that a user defines, with their adjoints, definitions, inverses, on mimic joints, against the oracle."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise import operators as op
from tests.physics.test_jacobian_rates import with_mimic_joints


@pytest.fixture(autouse=True)
def forgotten():
    """Definitions end with the test."""
    before = dict(op.RECORDS)
    yield
    op.RECORDS.clear()
    op.RECORDS.update(before)


def gains(stacked) -> np.ndarray:
    """The matrix of ``mixed``: 2 on the diagonal of each joint's block, 1 above it."""
    blocks = np.zeros((stacked.n_joint,) * 2)
    for at in stacked.of_joint:
        blocks[at, at] = 2.0 * np.eye(at.stop - at.start) + np.triu(np.ones((at.stop - at.start,) * 2), 1)
    return blocks


def mixed() -> op.Expression:
    """An operator that is not its own adjoint, joint by joint."""

    def forward(at, i, x):
        return [2.0 * x[k] + sum(x[k + 1 :], 0.0) for k in range(len(x))]

    def adjoint(at, i, x):
        return [2.0 * x[k] + sum(x[:k], 0.0) for k in range(len(x))]

    apply, back = op.local("Mixed", forward), op.local("Mixed.T", adjoint)
    return op.define(op.Record("Mixed", op.JOINT, op.JOINT, "mixes the numbers of a joint", apply, back, dense=gains))


MECHANISMS = [lw.mechanisms.random_tree(6, 3), with_mimic_joints(), lw.mechanisms.chain(3)]


@pytest.mark.parametrize("mech", MECHANISMS, ids=lambda mech: mech.name)
def test_forward_and_adjoint_agree_with_the_oracle(mech):
    own = mixed()
    q, v = lw.random_state(mech, np.random.default_rng(1))
    force, motion = op.S.T @ own @ op.H @ op.phi, op.phi.T @ op.H.T @ own.T @ op.S
    for expression in (force @ op.M @ motion, force, motion, op.S.T @ own.T @ own @ op.S):
        found = lw.compile(expression, mech, target="numpy")(q)
        np.testing.assert_allclose(found, op.dense(expression, mech, q), rtol=1e-10, atol=1e-10)
    twist = lw.compile(motion @ op.coordinate_vector("v"), mech, target="numpy")
    np.testing.assert_allclose(twist(q, v).ravel(), op.dense(motion, mech, q) @ v, rtol=1e-10, atol=1e-10)
    assert "mixes the numbers of a joint" in twist.plan()


def test_definitions_and_inverses():
    own, mech = mixed(), lw.mechanisms.random_tree(4, 2)
    twice = op.define(
        op.Record("Twice", op.JOINT, op.JOINT, "own, twice", definition=own @ own, dense=lambda s: gains(s) @ gains(s))
    )
    halves = op.local("Half", lambda at, i, x: [0.5 * y for y in x])
    half = op.define(
        op.Record(
            "Half",
            op.JOINT,
            op.JOINT,
            "a half",
            halves,
            self_adjoint=True,
            inverse=2.0 * op.identity(op.JOINT),
            dense=lambda stacked: 0.5 * np.eye(stacked.n_joint),
        )
    )
    q = lw.random_state(mech, np.random.default_rng(1))[0]
    for expression in (twice @ half, half.inv @ twice.T):
        found = lw.compile(expression, mech, target="numpy")(q)
        np.testing.assert_allclose(found, op.dense(expression, mech, q), rtol=1e-10, atol=1e-10)


def test_a_name_is_defined_once():
    mixed()
    with pytest.raises(ValueError, match="'Mixed'.*already"):
        mixed()
