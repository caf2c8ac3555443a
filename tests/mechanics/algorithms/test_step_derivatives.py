"""Derivatives of steps by the chain rule over the stages, against the program of the step differentiated, and against
differences of rollouts."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.mechanics.algorithms import catalogue, integration
from linkwise.mechanism.library import EVERY_KIND
from tests.algorithms import VARIANTS
from tests.physics.test_mimic import tied_and_free

METHODS = ("rk4", "semi_implicit")


def states(mech: lw.Mechanism, seed: int = 0, shape=(3,)):
    rng = np.random.default_rng(seed)
    q, v = lw.random_state(mech, rng, shape)
    return q, v, rng.normal(size=v.shape), rng.normal(size=(*shape, mech.n_links, 6))


def by_program(mech: lw.Mechanism, name: str):
    """The program of the step, differentiated operation by operation."""
    kernel = lw.compile(VARIANTS.get(name, name), mech, target="numpy")
    return lw.jacobian_of(kernel, ("q", "v", "tau"), tangent_result=True)


def agree(found, expected, tolerance: float = 1e-12) -> None:
    found = np.concatenate(found, axis=-1)
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * max(1.0, np.abs(expected).max()))


@pytest.mark.slow_cases("[1-rk4]", "[0-rk4]")
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seed", range(3))
def test_against_the_program_of_the_step(seed, method):
    mech = lw.mechanisms.random_tree(3, seed, joints=EVERY_KIND, floating_base=seed == 1)
    q, v, tau, _ = states(mech, seed)
    found = lw.compile(f"{method}_step_derivatives", mech, target="numpy")
    expected = by_program(mech, f"{method}_step")
    for dt in (0.01, 0.3):  # short and long turns
        agree(found(q, v, tau, dt), expected(q, v, tau, dt))
    still = 0.0 * v
    agree(found(q, still, tau, 0.01), expected(q, still, tau, 0.01))


def test_wrenches_and_mimic_joints():
    mech, *_ = tied_and_free(0)
    q, v, tau, wrenches = states(mech)
    agree(
        lw.derivatives.step_derivatives(mech, q, v, tau, 0.02, wrenches=wrenches),
        by_program(mech, "rk4_step_with_wrenches")(q, v, tau, 0.02, wrenches),
    )


@pytest.mark.parametrize("method", METHODS)
def test_against_differences_of_rollouts(method):
    mech, dt, h = lw.mechanisms.random_tree(4, 5, floating_base=True), 0.02, 1e-3
    q, v, tau, _ = states(mech, 1)
    a, b = lw.derivatives.step_derivatives(mech, q, v, tau, dt, method)
    by_q, by_v, by_tau = np.random.default_rng(2).normal(size=(3, *v.shape))

    def moved(s):
        start = lw.integrate(mech, q, by_q, s), v + s * by_v
        return lw.rollout(mech, *start, (tau + s * by_tau)[:, None], dt, 1, method, final_only=True)

    weights = {1: 4 / 5, 2: -1 / 5, 3: 4 / 105, 4: -1 / 280}
    change = 0.0
    for k, weight in weights.items():
        (q1, v1), (q0, v0) = moved(k * h), moved(-k * h)
        middle, _ = moved(0.0)
        step = lw.difference(mech, middle, q1) - lw.difference(mech, middle, q0)
        change = change + weight * np.concatenate([step, v1 - v0], axis=-1) / h
    found = np.einsum("sij,sj->si", a, np.concatenate([by_q, by_v], axis=-1)) + np.einsum("sij,sj->si", b, by_tau)
    np.testing.assert_allclose(found, change, rtol=0, atol=1e-9 * np.abs(change).max())


def test_methods_of_ones_own():
    three = lw.extend.Tableau(stages=((), (0.5,), (-1.0, 2.0)), weights=(1 / 6, 2 / 3, 1 / 6))
    leapfrog = lw.extend.Splitting(kicks=(0.5, 0.5), drifts=(1.0, 0.0))
    names = {"kutta3_here": three, "leapfrog_here": leapfrog}
    mech = lw.mechanisms.random_tree(2, 3, joints=("spherical", "revolute"))
    q, v, tau, _ = states(mech)
    try:
        for name, method in names.items():
            lw.extend.register_integrator(name, method)
            agree(
                lw.derivatives.step_derivatives(mech, q, v, tau, 0.1, name),
                by_program(mech, f"{name}_step")(q, v, tau, 0.1),
            )
    finally:
        for name in names:
            integration.METHODS.pop(name, None)
            for key in [key for key in catalogue.ALGORITHMS if name in key]:
                del catalogue.ALGORITHMS[key]


def test_parameters_are_inputs_as_in_other_kernels():
    mech = lw.mechanisms.planar_arm(2)
    q, v, tau, _ = states(mech)
    kernel = lw.compile("rk4_step_derivatives", mech, target="numpy", parameters=("mass",))
    heavier = mech.parameters.masses * 1.2
    scaled = lw.compile("rk4_step", mech, target="numpy", parameters=("mass",))
    agree(
        kernel(q, v, tau, 0.05, heavier),
        lw.jacobian_of(scaled, ("q", "v", "tau"), tangent_result=True)(q, v, tau, 0.05, heavier),
    )


def test_what_is_refused():
    q, v, tau, _ = states(mech := lw.mechanisms.planar_arm(2))
    with pytest.raises(ValueError, match="method"):
        lw.derivatives.step_derivatives(mech, q, v, tau, 0.1, "rk5")
    loop = lw.mechanisms.five_bar()
    with pytest.raises(lw.MechanismError, match="loops"):
        lw.derivatives.step_derivatives(loop, np.zeros(loop.nq), np.zeros(loop.nv), np.zeros(loop.nv), 0.1)
