"""dnu/dt + C(q, nu) = epsilon, against forward dynamics and the rate of the factor along the motion."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from tests.physics.trees import Model, close, rate

from .trees import every_tree

both = pytest.mark.parametrize("normalized", [True, False], ids=["nu", "xi"])
STATES = 3


def rate_along_the_motion(model: Model, q, v, a, normalized: bool) -> np.ndarray:
    """d(m* v)/dt = dm*/dt v + m* a."""

    def rates(t: float) -> np.ndarray:
        return model.diagonal_rates(model.integrate(q, v, np.full(len(q), t)), v, normalized=normalized)

    m = model.diagonal_factor(q, normalized=normalized)
    return rate(rates, 2e-3) + np.einsum("sji,sj->si", m, a)


@pytest.mark.seed("jain1995", "3.1", by="library")
@pytest.mark.seed("jain1995", "Lemma 3.1", by="library")
@pytest.mark.seed("jain1995", "Lemma 7.3", by="library")
@pytest.mark.seed("jain1995", "7.9", by="library")
@pytest.mark.seed("jain1995", "8.1", by="library")
@both
@every_tree
def test_forward_dynamics(tree, normalized):
    """With gravity and wrenches, for all joints, rotor inertias and floating bases."""
    model = tree()
    q, v, tau, wrenches = model.states(STATES)
    nu = model.diagonal_rates(q, v, normalized=normalized)
    found = model.diagonal_motion_with_wrenches(q, nu, tau, wrenches, normalized=normalized)
    a = model.forward_dynamics_with_wrenches(q, v, tau, wrenches)
    close(found[:, 0], rate_along_the_motion(model, q, v, a, normalized), 2e-10)
    close(found[:, 1], v, 1e-11)
    plain = model.diagonal_motion(q, nu, tau, normalized=normalized)
    close(plain, model.diagonal_motion_with_wrenches(q, nu, tau, 0.0 * wrenches, normalized=normalized), 1e-12, core=2)


@pytest.mark.quick_one_in(2)
@pytest.mark.seed("jain1995", "Algorithm 7.1", by="library")
@pytest.mark.seed("jain1995", "7.2", by="library")
@pytest.mark.seed("jain1995", "7.10", by="library")
@every_tree
def test_coriolis_term_closes_the_equation(tree):
    model = tree()
    q, v, tau, wrenches = model.states(STATES)
    nu, xi = model.diagonal_rates(q, v), model.diagonal_rates(q, v, normalized=False)
    eps = model.diagonal_forces_of_all(q, tau, wrenches)
    found = model.diagonal_motion_with_wrenches(q, nu, tau, wrenches)[:, 0] + model.diagonal_coriolis(q, nu)
    close(found, eps, 1e-10)
    d = [lw.operators.dense(lw.operators.D, model.mech, state) for state in q]
    xi_rate = model.diagonal_motion_with_wrenches(q, xi, tau, wrenches, normalized=False)[:, 0]
    found = np.einsum("sij,sj->si", d, xi_rate) + model.diagonal_coriolis(q, xi, normalized=False)
    close(found, model.diagonal_forces_of_all(q, tau, wrenches, normalized=False), 1e-10)


@pytest.mark.seed("jain1995", "7.3", by="library")
@pytest.mark.seed("jain1995", "Lemma 7.1", by="library")
@every_tree
def test_coriolis_term_does_no_work(tree):
    model = tree()
    q, v, _, _ = model.states(8)
    nu = model.diagonal_rates(q, v)
    c = model.diagonal_coriolis(q, nu)
    size = np.linalg.norm(nu, axis=-1) * np.linalg.norm(c, axis=-1)
    assert np.all(np.abs(np.sum(nu * c, axis=-1)) <= 1e-12 * size + 1e-14)


@pytest.mark.seed("jain1995", "7.6", by="library")
@pytest.mark.seed("jain1995", "Lemma 7.2", by="library")
@every_tree
def test_rate_of_kinetic_energy_is_the_power_of_the_working_moments(tree):
    """nu* epsilon = d/dt (v* M v / 2), taken along the motion."""
    model = tree()
    q, v, tau, wrenches = model.states(STATES)
    a = model.forward_dynamics_with_wrenches(q, v, tau, wrenches)

    def energy(t: float) -> np.ndarray:
        return model.kinetic_energy(model.integrate(q, v, np.full(len(q), t)), v + a * t)

    nu, eps = model.diagonal_rates(q, v), model.diagonal_forces_of_all(q, tau, wrenches)
    scale = np.linalg.norm(nu, axis=-1) * np.linalg.norm(eps, axis=-1)
    slope = rate(energy, 1e-3)  # q(t) follows the velocity to first order, which is all that a derivative sees
    np.testing.assert_allclose(np.sum(nu * eps, axis=-1) / scale, slope / scale, atol=1e-8)


def test_gravity_and_wrenches_are_generalized_forces():
    mech = lw.mechanisms.puma560()
    rng = np.random.default_rng(3)
    q, v = lw.random_state(mech, rng, (4,))
    tau, wrenches = rng.normal(size=v.shape), rng.normal(size=(4, mech.n_links, 6))
    pushed = lw.inverse_dynamics(mech, q, 0.0 * v, 0.0 * v, wrenches)
    np.testing.assert_allclose(
        lw.formulations.diagonal.all_forces(mech, q, tau, wrenches),
        lw.formulations.diagonal.forces(mech, q, tau - pushed),
        atol=1e-11,
    )
    nu = lw.formulations.diagonal.rates(mech, q, v)
    np.testing.assert_allclose(
        lw.formulations.diagonal.forward_dynamics(mech, q, nu, tau, wrenches),
        lw.formulations.diagonal.all_forces(mech, q, tau, wrenches) - lw.formulations.diagonal.coriolis(mech, q, nu),
        atol=1e-10,
    )
    weightless = mech.with_gravity((0.0, 0.0, 0.0))
    np.testing.assert_allclose(
        lw.formulations.diagonal.coriolis(mech, q, nu),
        -lw.formulations.diagonal.forward_dynamics(weightless, q, nu, 0.0 * v),
        atol=1e-11,
    )


def test_coriolis_term_is_quadratic():
    mech = lw.mechanisms.random_tree(7, 4)
    q, v = lw.random_state(mech, np.random.default_rng(0))
    for normalized in (True, False):
        nu = lw.formulations.diagonal.rates(mech, q, v, normalized=normalized)
        c = lw.formulations.diagonal.coriolis(mech, q, nu, normalized=normalized)
        tripled = lw.formulations.diagonal.coriolis(mech, q, -3.0 * nu, normalized=normalized)
        np.testing.assert_allclose(tripled, 9.0 * c, rtol=1e-9, atol=1e-12)
