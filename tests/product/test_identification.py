"""Regressor and base parameters of every mechanism against virtual work and dense null spaces."""

import numpy as np
import pytest

import linkwise as lw

from . import oracle
from .mechanisms import NAMES, Case, case


def random_parameters(mech: lw.Mechanism, rng: np.random.Generator) -> np.ndarray:
    """(10 n_links,): of bodies of four point masses each."""
    numbers = []
    for _ in range(mech.n_links):
        masses, points = rng.uniform(0.2, 1.0, 4), rng.normal(size=(4, 3))
        inertia = sum(m * (x @ x * np.eye(3) - np.outer(x, x)) for m, x in zip(masses, points, strict=True))
        numbers += [masses.sum(), *(masses @ points), *(inertia[i, j] for i in range(3) for j in range(i + 1))]
    return np.array(numbers)


def projection(this: Case, rows: np.ndarray, q: np.ndarray) -> np.ndarray:
    """(nv, p): K with G K = 0 and ``rows`` K = 1."""
    basis = oracle.null_space(this.mech, oracle.constraint_jacobian(this.mech, q))
    return basis @ np.linalg.inv(rows @ basis)


@pytest.mark.parametrize("name", NAMES)
def test_regressor_is_linear_in_inertial_parameters(name):
    this, rng = case(name), np.random.default_rng(1)
    a = rng.normal(size=this.mech.nv)
    matrix = lw.regressor(this.mech, this.q, this.v, a)
    assert matrix.shape == (this.mech.nv, 10 * this.mech.n_links)
    rotors = lw.rotor_inertias(this.mech) * a
    for parameters in (lw.inertial_parameters(this.mech), random_parameters(this.mech, rng)):
        mech = this.mech.with_inertial_parameters(parameters)
        expected = oracle.inverse_dynamics(mech, this.q, this.v, a)
        np.testing.assert_allclose(matrix @ parameters + rotors, expected, atol=1e-10 * np.abs(expected).max())


@pytest.mark.parametrize("name", NAMES)
def test_regressor_in_independent_coordinates(name):
    this, rng = case(name), np.random.default_rng(2)
    mech = this.mech
    dofs = oracle.null_space(mech, oracle.constraint_jacobian(mech, this.q)).shape[1]
    rows, a = rng.normal(size=(dofs, mech.nv)), rng.normal(size=(3, mech.nv))
    matrix = lw.regressor(mech, this.q, this.v, a, independent=rows)
    assert matrix.shape == (3, dofs, 10 * mech.n_links)
    parameters = lw.inertial_parameters(mech)
    for k in range(3):
        forces = oracle.inverse_dynamics(mech, this.q, this.v, a[k]) - lw.rotor_inertias(mech) * a[k]
        expected = projection(this, rows, this.q).T @ forces
        np.testing.assert_allclose(matrix[k] @ parameters, expected, atol=1e-9 * np.abs(expected).max())
    assert lw.regressor(mech, this.q, np.zeros((2, 0, 3, mech.nv)), this.v, rows).shape[:-2] == (2, 0, 3)


def moments(mech: lw.Mechanism, times: np.ndarray) -> list[lw.Mechanism]:
    """The mechanism at other instants, where some of its motion is prescribed."""
    return [mech.at_time(t) if mech.driven else mech for t in times]


def states(this: Case, count: int, rng: np.random.Generator):
    """Matrices K* Y, (p, 10 n_links) each, of motions that keep the constraints; forces by joint forces drawn."""
    q = this.q
    for mech in moments(this.mech, rng.uniform(0.0, 2.0, count)):
        if mech.loops:
            basis = oracle.null_space(mech, oracle.constraint_jacobian(mech, q))
            q = lw.integrate(mech, q, basis @ rng.normal(size=basis.shape[1]), 0.1)
            q, v = lw.closed.project(mech, lw.closed.assemble(mech, q), rng.normal(size=mech.nv))
        else:
            q, v = lw.random_state(mech, rng)
        terms = oracle.Terms(Case(this.name, mech, q, v, this.tau), q, v)
        a = terms.offset + terms.basis @ (3.0 * rng.normal(size=terms.basis.shape[1]))
        yield terms.basis.T @ lw.regressor(mech, q, v, a)


@pytest.mark.parametrize("name", NAMES)
def test_base_parameters_are_sufficient_and_no_more_than_needed(name):
    this = case(name)
    base = lw.base_parameters(this.mech)
    dofs = oracle.null_space(this.mech, oracle.constraint_jacobian(this.mech, this.q)).shape[1]
    stacked = np.concatenate([*states(this, 4 + 2 * len(base) // dofs, np.random.default_rng(3))])
    chosen = stacked[:, base.columns]
    np.testing.assert_allclose(chosen @ base.grouping, stacked, atol=1e-7 * np.abs(stacked).max())
    values = np.linalg.svd(chosen / np.linalg.norm(chosen, axis=0), compute_uv=False)
    assert values[-1] > 1e-6 * values[0]
