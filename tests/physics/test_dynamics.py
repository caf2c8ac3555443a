"""Identities between the quantities of the equation of motion, over random trees of all joint kinds."""

from __future__ import annotations

import numpy as np
import pytest

from tests.physics.trees import close, every_tree, large_trees_are_slow, rate

pytestmark = pytest.mark.smoke_cases("[3-0-False]", "[5-1-True]", "[8-0-False]")

STATES = 4


@large_trees_are_slow
@every_tree
def test_mass_matrix_and_its_inverse(tree):
    model = tree()
    q, v, *_ = model.states(STATES)
    mass, inverse = model.mass_matrix(q), model.mass_matrix_inverse(q)
    assert np.array_equal(mass, np.swapaxes(mass, -1, -2))
    assert np.array_equal(inverse, np.swapaxes(inverse, -1, -2))
    assert (np.linalg.eigvalsh(mass) > 0.0).all()
    close(mass @ inverse, np.broadcast_to(np.eye(model.mech.nv), mass.shape), 1e-10, core=2)
    close(model.kinetic_energy(q, v), 0.5 * np.einsum("...i,...ij,...j", v, mass, v), 1e-13, core=0)


@large_trees_are_slow
@every_tree
def test_inverse_dynamics_is_the_equation_of_motion(tree):
    model = tree()
    q, v, a, _ = model.states(STATES)
    bias, gravity = model.bias_force(q, v), model.gravity_force(q)
    tau = model.inverse_dynamics(q, v, a)
    close(tau, np.einsum("...ij,...j", model.mass_matrix(q), a) + bias, 1e-12)
    close(bias, np.einsum("...ij,...j", model.coriolis_matrix(q, v), v) + gravity, 1e-12)
    close(model.bias_force(q, 0.0 * v), gravity, 1e-14)


@pytest.mark.quick_one_in(2)
@every_tree
def test_forward_and_inverse_dynamics_undo_each_other(tree):
    model = tree()
    q, v, a, wrenches = model.states(STATES)
    close(model.forward_dynamics(q, v, model.inverse_dynamics(q, v, a)), a, 1e-10)
    close(model.inverse_dynamics(q, v, model.forward_dynamics(q, v, a)), a, 1e-10)
    tau = model.inverse_dynamics_with_wrenches(q, v, a, wrenches)
    close(model.forward_dynamics_with_wrenches(q, v, tau, wrenches), a, 1e-10)


@large_trees_are_slow
@every_tree
def test_rate_of_the_mass_matrix_less_twice_coriolis_is_skew(tree):
    model = tree()
    q, v, *_ = model.states(STATES)
    mass_rate = rate(lambda t: model.mass_matrix(model.integrate(q, v, t)))
    coriolis = model.coriolis_matrix(q, v)
    close(coriolis + np.swapaxes(coriolis, -1, -2), mass_rate, 1e-8, core=2)


@large_trees_are_slow
@every_tree
def test_gravity_force_is_the_gradient_of_potential_energy(tree):
    model = tree()
    q, *_ = model.states(STATES)
    directions = np.eye(model.mech.nv)[:, None, :]
    gradient = rate(lambda t: model.potential_energy(model.integrate(q, directions, t)))
    close(gradient.T, model.gravity_force(q), 1e-9)


@large_trees_are_slow
@every_tree
def test_power_balance(tree):
    """d(kinetic + potential)/dt is the power of joint forces and wrenches."""
    model = tree()
    q, v, tau, wrenches = model.states(STATES)
    a = model.forward_dynamics_with_wrenches(q, v, tau, wrenches)

    def energy(t):
        q_t = model.integrate(q, v, t)
        return model.kinetic_energy(q_t, v + a * t) + model.potential_energy(q_t)

    power = np.sum(v * tau, axis=-1) + np.sum(model.link_velocities(q, v) * wrenches, axis=(-2, -1))
    scale = np.abs(v * tau).sum(axis=-1)
    close(rate(energy) / scale, power / scale, 1e-8, core=0)


@large_trees_are_slow
@every_tree
def test_energy_is_kept_along_a_free_step(tree):
    """A classical Runge-Kutta step of order 4 without forces changes the energy by O(h^5)."""
    model = tree()
    q, v, *_ = model.states(1)
    v = 0.3 * v

    def flow(q, v):
        return model.coordinate_rates(q, v), model.forward_dynamics(q, v, 0.0 * v)

    def step(h):
        slopes = [flow(q, v)]
        for part in (0.5 * h, 0.5 * h, h):
            slopes.append(flow(q + part * slopes[-1][0], v + part * slopes[-1][1]))
        return [
            x + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4) for x, k1, k2, k3, k4 in zip((q, v), *slopes, strict=True)
        ]

    def energy(q, v):
        return model.kinetic_energy(q, v) + model.potential_energy(q)

    fastest = 1.0 + np.abs(v).max() + np.sqrt(np.abs(model.forward_dynamics(q, v, 0.0 * v)).max())
    h = 0.08 / fastest
    changes = [abs(energy(*step(part)) - energy(q, v)).item() for part in (h, h / 2.0)]
    noise = 1e-14 * (abs(model.potential_energy(q)) + model.kinetic_energy(q, v) + 1.0).item()
    assert changes[1] <= changes[0] / 2.0**4 + noise
    assert changes[0] <= 1e-4 * model.kinetic_energy(q, v).item() + noise
