"""Regressor and base parameters of every mechanism against virtual work and dense null spaces."""

import numpy as np
import pytest

import linkwise as lw

from . import oracle
from .mechanisms import NAMES, Case, case
from .product import Quantity, cells, check


def random_parameters(mech: lw.Mechanism, rng: np.random.Generator) -> np.ndarray:
    """(10 n_links,): of bodies of four point masses each."""
    numbers = []
    for _ in range(mech.n_links):
        masses, points = rng.uniform(0.2, 1.0, 4), rng.normal(size=(4, 3))
        inertia = sum(m * (x @ x * np.eye(3) - np.outer(x, x)) for m, x in zip(masses, points, strict=True))
        numbers += [masses.sum(), *(masses @ points), *(inertia[i, j] for i in range(3) for j in range(i + 1))]
    return np.array(numbers)


def motion(size: int) -> np.ndarray:
    """(size,): any accelerations; terms are defined for those that constraints do not allow, too."""
    return np.random.default_rng(5).normal(size=size)


def coordinates(mech: lw.Mechanism, q: np.ndarray, active: np.ndarray | None = None) -> np.ndarray:
    """(p, nv): rows of independent coordinates, any."""
    dofs = oracle.null_space(mech, oracle.constraint_jacobian(mech, q, active)).shape[1]
    return np.random.default_rng(6).normal(size=(dofs, mech.nv))


def forces_of_links(terms: oracle.Terms) -> np.ndarray:
    """(nv,): what the links need, without the rotors."""
    a = motion(terms.mech.nv)
    return oracle.inverse_dynamics(terms.mech, terms.q, terms.v, a) - lw.estimation.rotor_inertias(terms.mech) * a


def projected_forces(terms: oracle.Terms) -> np.ndarray:
    """(p,): K* times these, K with G K = 0 and rows K = 1, all constraints active."""
    rows = coordinates(terms.mech, terms.q)
    basis = oracle.null_space(terms.mech, oracle.constraint_jacobian(terms.mech, terms.q))
    return np.linalg.solve((rows @ basis).T, basis.T @ forces_of_links(terms))


QUANTITIES = [
    Quantity(
        "regressor",
        lambda c: (
            lw.estimation.regressor(c.mech, c.q, c.v, motion(c.mech.nv)) @ lw.estimation.inertial_parameters(c.mech)
        ),
        forces_of_links,
        1e-10,
    ),
    Quantity(
        "regressor_in_independent_coordinates",
        lambda c: (
            lw.estimation.regressor(c.mech, c.q, c.v, motion(c.mech.nv), independent=coordinates(c.mech, c.q))
            @ lw.estimation.inertial_parameters(c.mech)
        ),
        projected_forces,
    ),
]


@cells(QUANTITIES)
def test_product(quantity, case_name):
    check(quantity, case(case_name))


@pytest.mark.parametrize("name", NAMES)
def test_columns_are_those_of_any_bodies(name):
    this, rng = case(name), np.random.default_rng(1)
    a, parameters = motion(this.mech.nv), random_parameters(this.mech, rng)
    matrix = lw.estimation.regressor(this.mech, this.q, this.v, a)
    assert matrix.shape == (this.mech.nv, 10 * this.mech.n_links)
    expected = oracle.inverse_dynamics(this.mech.parameters.with_inertial(parameters), this.q, this.v, a)
    found = matrix @ parameters + lw.estimation.rotor_inertias(this.mech) * a
    np.testing.assert_allclose(found, expected, atol=1e-10 * np.abs(expected).max())


@pytest.mark.parametrize("name", ["tree", "three loops", "overconstrained", "rolling"])
def test_batches_in_independent_coordinates(name):
    this = case(name)
    rows, a = coordinates(this.mech, this.q), np.random.default_rng(2).normal(size=(4, 1, this.mech.nv))
    v = np.stack([this.v, 2.0 * this.v])
    matrix = lw.estimation.regressor(this.mech, this.q, v, a, independent=rows)
    assert matrix.shape == (4, 2, len(rows), 10 * this.mech.n_links)
    for i, j in np.ndindex(4, 2):
        single = lw.estimation.regressor(this.mech, this.q, v[j], a[i, 0], independent=rows)
        np.testing.assert_allclose(matrix[i, j], single, atol=1e-12 * np.abs(single).max())
    empty = lw.estimation.regressor(this.mech, np.tile(this.q, (2, 0, 3, 1)), this.v, this.v, rows)
    assert empty.shape == (2, 0, 3, len(rows), 10 * this.mech.n_links)


def projected_regressors(this: Case, count: int, rng: np.random.Generator):
    """Matrices K* Y, (p, 10 n_links) each, of random motions that keep the constraints, at other instants where some of
    the motion is prescribed."""
    q = this.q
    for _ in range(count):
        mech = this.mech.constraints.at_time(rng.uniform(0.0, 2.0)) if this.mech.constraints.driven else this.mech
        if mech.loops:
            basis = oracle.null_space(mech, oracle.constraint_jacobian(mech, q))
            q = lw.constraints.assemble(mech, lw.integrate(mech, q, basis @ rng.normal(size=basis.shape[1]), 0.2))
            v = lw.constraints.project(mech, q, rng.normal(size=mech.nv))[1]
            jacobian = oracle.constraint_jacobian(mech, q)
            basis = oracle.null_space(mech, jacobian)
            a = -np.linalg.pinv(jacobian, rcond=oracle.RANK) @ lw.constraints.constraint_bias(mech, q, v)
        else:
            q, v = lw.random_state(mech, rng)
            basis, a = np.eye(mech.nv), np.zeros(mech.nv)
        yield basis.T @ lw.estimation.regressor(mech, q, v, a + basis @ rng.normal(size=basis.shape[1]))


@pytest.mark.parametrize("name", NAMES)
def test_base_parameters_are_sufficient_and_no_more_than_needed(name):
    this = case(name)
    base = lw.estimation.base_parameters(this.mech, q=this.q)
    dofs = oracle.null_space(this.mech, oracle.constraint_jacobian(this.mech, this.q)).shape[1]
    drawn = projected_regressors(this, 10 + 4 * len(base) // dofs, np.random.default_rng(3))
    stacked = np.concatenate([*drawn])
    chosen = stacked[:, base.columns]
    np.testing.assert_allclose(chosen @ base.grouping, stacked, atol=1e-8 * np.abs(stacked).max())
    values = np.linalg.svd(chosen / np.linalg.norm(chosen, axis=0), compute_uv=False)
    assert values[-1] > 1e-8 * values[0]
