"""Closed-form derivatives against differences of fifty-digit numbers, for every kind of joint."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from tests.physics.test_mimic import tied_and_free
from tests.physics.trees import Model, tree_of

from . import precise

TREES = [(3, 1, False), (3, 2, False), (5, 0, True), (5, 1, False), (5, 3, True)]
some_trees = pytest.mark.parametrize("case", TREES, ids=["-".join(map(str, case)) for case in TREES])
KINDS = lw.mechanisms.EVERY_KIND


def close(found: np.ndarray, expected: np.ndarray, tolerance: float = 1e-12) -> None:
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=tolerance * np.abs(expected).max())


@pytest.mark.seed("jain1995", "6.12", by="library")
@pytest.mark.seed("jain1995", "Identity 6.3", by="library")
@some_trees
def test_mass_matrix(case):
    model = tree_of(*case)
    q = model.states(1)[0][0]
    close(model.mass_matrix_derivatives(q), precise.derivatives(model.mech, "mass_matrix", q))


@some_trees
@pytest.mark.parametrize("normalized", [True, False], ids=["m", "I + H phi K"])
def test_factor(case, normalized):
    model = tree_of(*case)
    q = model.states(1)[0][0]
    found = model.diagonal_factor_derivatives(q, normalized=normalized)
    close(found, precise.derivatives(model.mech, "diagonal_factor", q, normalized=normalized), 1e-11)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_joint(kind):
    """A chain of three joints of one kind: each is inside, outside and in the middle of the others."""
    mech = lw.mechanisms.random_tree(3, 17, joints=(kind,))
    model = Model(mech)
    q = model.states(1, seed=2)[0][0]
    close(model.mass_matrix_derivatives(q), precise.derivatives(mech, "mass_matrix", q))
    close(model.diagonal_factor_derivatives(q), precise.derivatives(mech, "diagonal_factor", q), 1e-11)


@pytest.mark.quick_one_in(2)
@pytest.mark.parametrize("kind", KINDS)
def test_second_derivatives_of_the_mass_matrix(kind):
    mech = lw.mechanisms.random_tree(2 if kind == "floating" else 3, 23, joints=(kind, "revolute"))
    model = Model(mech)
    q = model.states(1, seed=2)[0][0]
    assert any(type(body.kind).__name__.lower() == kind.replace("_", "") for body in mech.bodies)
    close(model.mass_matrix_second_derivatives(q), precise.derivatives(mech, "mass_matrix_derivatives", q))


@pytest.mark.parametrize("normalized", [True, False], ids=["m", "I + H phi K"])
@some_trees
def test_rate_of_the_factor(case, normalized):
    model = tree_of(*case)
    q, v = (x[0] for x in model.states(1)[:2])
    slopes = model.diagonal_factor_derivatives(q, normalized=normalized)
    close(model.diagonal_factor_rate(q, v, normalized=normalized), slopes @ v, 1e-12)


@pytest.mark.seed("jain1995", "3.2", by="library")
def test_coriolis_term_from_the_derivatives():
    """C = l (dm/dt nu - v* M' v / 2), where v are coordinate rates (with the sign and factor of the errata)."""
    mech = lw.mechanisms.stanford_arm()
    q, v = lw.random_state(mech, np.random.default_rng(4))
    nu = lw.formulations.diagonal.rates(mech, q, v)
    half = 0.5 * np.einsum("ijk,i,j->k", lw.derivatives.mass_matrix_derivatives(mech, q), v, v)
    expected = lw.formulations.diagonal.factor_inverse(mech, q) @ (
        lw.formulations.diagonal.factor_rate(mech, q, v) @ nu - half
    )
    close(lw.formulations.diagonal.coriolis(mech, q, nu), expected, 1e-11)


def test_factor_and_mass_matrix_agree():
    """M' = m' m* + m m'*."""
    model = tree_of(8, 1, True)
    q = model.states(1)[0][0]
    m, slope = model.diagonal_factor(q), model.diagonal_factor_derivatives(q)
    half = np.einsum("ilk,jl->ijk", slope, m)
    close(half + np.swapaxes(half, 0, 1), model.mass_matrix_derivatives(q), 1e-11)


def test_derivatives_give_the_coriolis_forces():
    """jain1995 (2.1): C v = dM/dt v - v* M' v / 2, where v are coordinate rates."""
    mech = lw.mechanisms.puma560()
    q, v = lw.random_state(mech, np.random.default_rng(0), (5,))
    slopes = lw.derivatives.mass_matrix_derivatives(mech, q)
    force = np.einsum("sijk,sj,sk->si", slopes, v, v) - 0.5 * np.einsum("sjki,sj,sk->si", slopes, v, v)
    close(force, lw.bias_force(mech, q, v) - lw.gravity_force(mech, q), 1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_mass_matrix_with_mimic_joints(seed):
    tied_mech, free_mech, tie, offset = tied_and_free(seed)
    q = lw.random_state(tied_mech, np.random.default_rng(1))[0]
    free = Model(free_mech).mass_matrix_derivatives(tie @ q + offset)
    close(Model(tied_mech).mass_matrix_derivatives(q), np.einsum("abc,ai,bj,ck->ijk", free, tie, tie, tie))


def test_second_derivatives_with_parameters_as_inputs():
    mech = lw.mechanisms.double_pendulum()
    q, masses = np.array([0.3, 0.8]), np.array([b.mass for b in mech.bodies])
    kernel = lw.compile("mass_matrix_second_derivatives", mech, target="numpy", parameters=("mass",))
    close(kernel(q, masses), Model(mech).mass_matrix_second_derivatives(q), 1e-13)
