"""The error of every method falls with its step, or with its tolerance, as theory says."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from tests.simulated import simulate

ORDERS = {"rk4": 4, "semi_implicit": 1, "rk23": 3, "rk45": 5, "dop853": 8}


def turning_tree() -> lw.Mechanism:
    """Balls, a floating base and hinges: the order must hold for quaternions as well."""
    return lw.mechanisms.random_tree(4, 11, joints=("spherical", "revolute"), floating_base=True)


def error_after(mech: lw.Mechanism, q, v, expected: lw.Trajectory, **options) -> float:
    found = simulate(mech, q, v, expected.t[-1], **options)
    apart = lw.difference(mech, expected.q[-1], found.q[-1])
    return float(np.linalg.norm(apart) + np.linalg.norm(expected.v[-1] - found.v[-1]))


@pytest.mark.parametrize("controlled", [False, True], ids=["free", "controlled"])
@pytest.mark.parametrize("method", ORDERS)
def test_order_of_methods_by_their_step(method, controlled):
    """Adaptive ones are held at a step by a tolerance that is never met.  Controlled, the forces change within a step:
    a step of "rk4" is then no longer one kernel."""
    mech = turning_tree()
    q, v = lw.random_state(mech, np.random.default_rng(2))
    control = (lambda t, q, v: np.sin(3.0 * t) - 0.5 * v) if controlled else None
    v = v * (6.0 if method == "dop853" else 3.0)
    expected = lw.simulate(mech, q, v, 0.4, control, settings=lw.motion.Settings(rtol=1e-13, atol=1e-13))
    step = {"semi_implicit": 2e-4, "rk23": 4e-3, "rk4": 8e-3, "rk45": 2e-2, "dop853": 2.5e-2}[method]
    options = {"control": control, "method": method, "rtol": 1e3, "atol": 1e9}
    coarse, fine = (error_after(mech, q, v, expected, step=h, **options) for h in (step, step / 2))
    assert ORDERS[method] - 0.4 < np.log2(coarse / fine) < ORDERS[method] + 1.2
    assert fine > 1e-11  # not yet round-off


@pytest.mark.parametrize("method", ["radau", "bdf", "lsoda"])
def test_error_of_implicit_methods_follows_the_tolerance(method):
    mech = turning_tree()
    q, v = lw.random_state(mech, np.random.default_rng(2))
    expected = lw.simulate(mech, q, v, 0.3, settings=lw.motion.Settings(rtol=1e-13, atol=1e-13))
    errors = [error_after(mech, q, v, expected, method=method, rtol=tol, atol=tol) for tol in (1e-5, 1e-7, 1e-9)]
    assert errors[2] < errors[1] / 5 < errors[0] / 25
    assert errors[2] < 1e-6


def test_order_of_radau_by_its_step():
    """Fifth order: steps of given size, with a tolerance tight for Newton's iteration and loose for the steps."""
    mech = lw.mechanisms.double_pendulum()
    expected = lw.simulate(mech, [1.0, 0.5], [0.0, 0.0], 1.0, settings=lw.motion.Settings(rtol=1e-13, atol=1e-13))
    errors = []
    for step in (2e-2, 1e-2):
        errors.append(
            error_after(mech, [1.0, 0.5], [0.0, 0.0], expected, method="radau", step=step, rtol=1e-8, atol=1.0)
        )
    assert 4.5 < np.log2(errors[0] / errors[1]) < 6.5


@pytest.mark.parametrize("coordinates", ["nu", "xi"])
@pytest.mark.parametrize(("method", "steps"), [("rk4", (2e-2, 1e-2)), ("semi_implicit", (2e-3, 1e-3))])
def test_order_in_total_rates(coordinates, method, steps):
    mech = turning_tree()
    q, v = lw.random_state(mech, np.random.default_rng(2))
    expected = lw.simulate(mech, q, 0.5 * v, 0.4, settings=lw.motion.Settings(rtol=1e-13, atol=1e-13))
    coarse, fine = (
        error_after(mech, q, 0.5 * v, expected, method=method, step=step, coordinates=coordinates) for step in steps
    )
    assert ORDERS[method] - 0.4 < np.log2(coarse / fine) < ORDERS[method] + 1.2


def test_implicit_methods_take_long_steps_where_explicit_ones_cannot():
    """A stiff damper and spring: what Jacobians are for.  Exact ones cost no evaluations of the equations of motion."""
    mech = lw.mechanisms.random_tree(3, 11, floating_base=True)
    stiff = lw.forces.Passive.dampers({joint: 3e3 for joint in mech.joint_names})
    q, v = lw.random_state(mech, np.random.default_rng(0))
    runs = {
        m: lw.simulate(mech, q, v, 0.01, method=m, passive=stiff, settings=lw.motion.Settings(rtol=1e-4, atol=1e-4))
        for m in ("radau", "rk45")
    }
    np.testing.assert_allclose(runs["radau"].q[-1], runs["rk45"].q[-1], atol=1e-3)
    assert len(runs["radau"].step_sizes) < 0.1 * len(runs["rk45"].step_sizes)
    assert runs["radau"].evaluations < 20 * len(runs["radau"].step_sizes)
