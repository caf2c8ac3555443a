"""Total joint rates and working moments: the four transforms, the factors, and what they mean for energy and power."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise import operators as op
from tests.physics.trees import Model, close

from .trees import every_tree

both = pytest.mark.parametrize("normalized", [True, False], ids=["nu", "xi"])
STATES = 4


def adjoint(matrix: np.ndarray, vector: np.ndarray) -> np.ndarray:
    return np.einsum("...ji,...j->...i", matrix, vector)


@pytest.mark.seed("jain1995", "1.2", by="library")
@pytest.mark.seed("jain1995", "7.8", by="library")
@every_tree
def test_kinetic_energy_is_diagonal(tree):
    model = tree()
    q, v, _, _ = model.states(STATES)
    nu, xi = model.diagonal_rates(q, v), model.diagonal_rates(q, v, normalized=False)
    energy = model.kinetic_energy(q, v)
    np.testing.assert_allclose(0.5 * np.sum(nu**2, axis=-1), energy, rtol=1e-12)
    d = np.array([op.dense(op.D, model.mech, state) for state in q])
    np.testing.assert_allclose(0.5 * np.einsum("si,sij,sj->s", xi, d, xi), energy, rtol=1e-11)


@pytest.mark.seed("jain1995", "1.3", by="library")
@pytest.mark.seed("jain1995", "1.4", by="library")
@pytest.mark.seed("jain1995", "5.1", by="library")
@pytest.mark.seed("jain1995", "5.2", by="library")
@pytest.mark.seed("jain1995", "7.7", by="library")
@both
@every_tree
def test_factors_and_transforms_are_the_operators(tree, normalized):
    model = tree()
    q, v, tau, _ = model.states(STATES)
    m, inverse = (
        model.diagonal_factor(q, normalized=normalized),
        model.diagonal_factor_inverse(q, normalized=normalized),
    )
    expected = (op.I + op.H @ op.phi @ op.K) @ (op.D_half if normalized else op.I)
    close(m, op.dense(expected, model.mech, q), 1e-11, core=2)
    close(m @ inverse, np.broadcast_to(np.eye(model.mech.nv), m.shape), 1e-11, core=2)
    if normalized:
        close(m @ np.swapaxes(m, -1, -2), model.mass_matrix(q), 1e-12, core=2)
    close(model.diagonal_rates(q, v, normalized=normalized), adjoint(m, v), 1e-11)
    close(model.diagonal_velocities(q, v, normalized=normalized), adjoint(inverse, v), 1e-11)
    close(model.diagonal_forces(q, tau, normalized=normalized), np.einsum("sij,sj->si", inverse, tau), 1e-11)
    close(model.diagonal_torques(q, tau, normalized=normalized), np.einsum("sij,sj->si", m, tau), 1e-11)


@both
@every_tree
def test_transforms_invert_each_other_and_keep_power(tree, normalized):
    model = tree()
    q, v, tau, _ = model.states(STATES)
    nu = model.diagonal_rates(q, v, normalized=normalized)
    eps = model.diagonal_forces(q, tau, normalized=normalized)
    close(model.diagonal_velocities(q, nu, normalized=normalized), v, 1e-11)
    close(model.diagonal_torques(q, eps, normalized=normalized), tau, 1e-11)
    np.testing.assert_allclose(np.sum(nu * eps, -1), np.sum(v * tau, -1), rtol=1e-9, atol=1e-11 * np.abs(tau).max())


@pytest.mark.seed("jain1995", "5.3", by="library")
def test_total_rate_is_the_relative_one_of_a_joint_on_a_body_at_rest():
    """xi = v + G* V+: the joint's own rate, plus what the motion of the bodies before it adds."""
    mech = lw.mechanisms.stanford_arm()
    q, _ = lw.random_state(mech, np.random.default_rng(1))
    for joint in range(mech.nv):
        v = np.zeros(mech.nv)
        v[joint] = 1.7
        xi = lw.formulations.diagonal.rates(mech, q, v, normalized=False)
        assert xi[joint] == pytest.approx(1.7, abs=1e-14)
        assert np.all(xi[:joint] == 0.0)
    assert np.any(np.abs(lw.formulations.diagonal.rates(mech, q, np.eye(6)[0], normalized=False)[1:]) > 0.01)


def test_triangular_blocks():
    """A joint of several freedoms has a lower triangular block, so nu of one freedom is free of the former ones' v."""
    mech = lw.mechanisms.random_tree(4, 2, joints=("floating", "spherical", "planar"))
    q, _ = lw.random_state(mech, np.random.default_rng(0))
    m = lw.formulations.diagonal.factor(mech, q)
    for joint in mech.joint_names:
        own = mech.v_index(joint)
        np.testing.assert_array_equal(np.triu(m[own, own], 1), 0.0)
        assert np.all(np.diag(m)[own] > 0.0)


def test_inverse_and_adjoint_of_the_square_root_in_expressions():
    mech = lw.mechanisms.random_tree(6, 5)
    q, _ = lw.random_state(mech, np.random.default_rng(0))
    root = op.dense(op.D_half, mech, q)
    for expression, expected in (
        (op.D_half @ op.D_half.T, op.dense(op.D, mech, q)),
        (op.D_half.inv, np.linalg.inv(root)),
        (op.D_half.T.inv, np.linalg.inv(root).T),
        (op.D_half.inv.T, np.linalg.inv(root).T),
        (op.D_half.inv.inv, root),
        ((op.D_half @ op.D_half.T).inv, np.linalg.inv(op.dense(op.D, mech, q))),
        (((op.I + op.H @ op.phi @ op.K) @ op.D_half).inv, lw.formulations.diagonal.factor_inverse(mech, q)),
    ):
        kernel = lw.compile(expression, mech, target="numpy")
        np.testing.assert_allclose(kernel(q), expected, rtol=0, atol=1e-12 * np.abs(expected).max())
        np.testing.assert_allclose(op.dense(expression, mech, q), expected, rtol=0, atol=1e-11 * np.abs(expected).max())


def test_what_has_no_mass_is_refused():
    with pytest.warns(lw.MechanismWarning):
        weightless = lw.Builder().link("a").joint("j", lw.Revolute(), "ground", "a").build(strict=False)
    with pytest.raises(lw.MechanismError, match="positive mass matrix"):
        lw.formulations.diagonal.rates(weightless, [0.0], [1.0])


def test_batches_and_float32():
    mech = lw.mechanisms.puma560()
    rng = np.random.default_rng(0)
    q, v = lw.random_state(mech, rng, (3, 5))
    nu = lw.formulations.diagonal.rates(mech, q, v)
    assert nu.shape == (3, 5, 6)
    np.testing.assert_allclose(nu, Model(mech).diagonal_rates(q, v), rtol=1e-12, atol=1e-13)
    rate, found = lw.formulations.diagonal.motion(mech, q, nu, 0.0 * v)
    assert rate.shape == found.shape == (3, 5, 6)
    np.testing.assert_allclose(found, v, atol=1e-12)
    assert lw.formulations.diagonal.rates(mech, q.astype(np.float32), v.astype(np.float32)).dtype == np.float32


def test_a_mechanism_without_joints():
    mech = lw.Builder().link("rock", 1.0).joint("weld", lw.Fixed(), "ground", "rock").build()
    q = np.zeros((5, 0))
    for name, inputs, rank in (
        *((name, 2, 1) for name in ("rates", "velocities", "forces", "torques", "coriolis")),
        ("forward_dynamics", 3, 1),
        *((name, 1, 2) for name in ("factor", "factor_inverse")),
        *((name, 1, 3) for name in ("factor_derivatives", "christoffel_symbols")),
        ("curvature", 1, 4),
    ):
        assert getattr(lw.formulations.diagonal, name)(mech, *(q,) * inputs).shape == (5, *(0,) * rank), name
    assert lw.formulations.diagonal.is_globally_diagonalizable(mech)
