"""Digital controllers, asked at a rate and held, in simulate and rollout; feedback by matrices."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg

import linkwise as lw
from tests.simulation.test_elements import ARM, SPEED, START

PENDULUM = lw.mechanisms.double_pendulum()
Q, V = np.array([0.4, -0.3]), np.array([0.2, 0.5])


def spring(t, q, v):
    return -6.0 * q - 1.5 * v + np.array([np.sin(9.0 * t), 0.0])


def by_hand(q, v, turns, period, steps, method="rk4"):
    """One short motion after the other, each under a constant force."""
    for k in range(turns):
        q, v = lw.rollout(PENDULUM, q, v, spring(k * period, q, v), period / steps, steps, method, final_only=True)
    return q, v


def test_simulate_asks_at_a_rate():
    asked = []

    def control(t, q, v):
        asked.append(t)
        return spring(t, q, v)

    motion = lw.simulate(PENDULUM, Q, V, 0.1, control=lw.motion.held(control, 0.02), method="rk4", step=2e-3)
    np.testing.assert_allclose(asked, 0.02 * np.arange(5), atol=1e-15)
    q, v = by_hand(Q, V, 5, 0.02, 10)
    np.testing.assert_allclose(motion.q[-1], q, rtol=0, atol=1e-13)
    assert len({tuple(tau) for tau in motion.tau[1:].tolist()}) == 5
    adaptive = lw.simulate(PENDULUM, Q, V, 0.1, control=lw.motion.held(spring, 0.02))
    np.testing.assert_allclose(adaptive.q[-1], motion.q[-1], rtol=0, atol=1e-7)
    # The questions go on at multiples of the period, and a last part may be shorter.
    first = lw.simulate(PENDULUM, Q, V, 0.05, control=lw.motion.held(spring, 0.02), method="rk4", step=2e-3)
    asked.clear()
    first.resume(0.03, control=lw.motion.held(control, 0.02))
    np.testing.assert_allclose(asked, [0.05, 0.06], atol=1e-12)


def test_rollout_asks_at_a_rate():
    q0 = Q + 0.1 * np.random.default_rng(0).normal(size=(4, 2))
    q, v = lw.rollout(PENDULUM, q0, V, lw.motion.held(spring, 0.02), 2e-3, 50)
    assert q.shape == v.shape == (4, 51, 2)
    for i in range(4):
        expected = by_hand(q0[i], V, 5, 0.02, 10)
        np.testing.assert_allclose((q[i, -1], v[i, -1]), expected, rtol=0, atol=1e-13)
    some, _ = lw.rollout(PENDULUM, q0, V, lw.motion.held(spring, 0.02), 2e-3, 50, every=5)
    last, _ = lw.rollout(PENDULUM, q0, V, lw.motion.held(spring, 0.02), 2e-3, 50, final_only=True)
    np.testing.assert_array_equal(some, q[:, ::5])
    np.testing.assert_array_equal(last, q[:, -1])
    with pytest.raises(lw.MechanismError, match="period 0.003 s of a held controller must be a whole number of steps"):
        lw.rollout(PENDULUM, q0, V, lw.motion.held(spring, 0.003), 2e-3, 50)
    with pytest.raises(lw.MechanismError, match="must be a positive number of seconds, not -1"):
        lw.motion.held(spring, -1)


def test_control_inputs_that_are_held():
    """By name, beside joint forces by step, with activations: simulate and rollout agree."""

    def servo(t, q, v):
        return {"servo": 0.3 - q[..., 1], "slow": 0.1 * t}

    force = np.zeros((40, 3))
    force[:, 0] = np.linspace(0.0, 1.0, 40)
    found = lw.rollout(
        ARM,
        START,
        SPEED,
        force,
        1e-3,
        40,
        ctrl=lw.motion.held(servo, 5e-3),
        activation=[0.1, -0.05],
        return_activation=True,
    )
    q, v, w = START, SPEED, np.array([0.1, -0.05])
    for k in range(8):
        ctrl = servo(5e-3 * k, q, v)
        path = lw.rollout(ARM, q, v, force[5 * k : 5 * k + 5], 1e-3, 5, ctrl=ctrl, activation=w, return_activation=True)
        q, v, w = (x[-1] for x in path)
    for one, expected in zip(found, (q, v, w), strict=True):
        np.testing.assert_allclose(one[-1], expected, rtol=0, atol=1e-14)
    motion = lw.simulate(ARM, START, SPEED, 0.04, method="rk4", step=1e-3, ctrl=lw.motion.held(servo, 5e-3))
    plain = lw.rollout(ARM, START, SPEED, None, 1e-3, 40, ctrl=lw.motion.held(servo, 5e-3))
    np.testing.assert_allclose(motion.q[-1], plain[0][-1], rtol=0, atol=1e-12)


def test_feedback_by_a_matrix():
    """An LQR holds the pendulum up: compiled steps, those of a controller that is asked in each, and its gradient."""
    up = np.array([np.pi, 0.0])
    model = lw.linearize(PENDULUM, up)
    riccati = scipy.linalg.solve_continuous_are(model.A, model.B, np.eye(4), np.eye(2))
    gain = model.B.T @ riccati
    q0 = up + np.array([0.1, -0.1])
    feedback = {"target": up, "gain": gain}
    q, v = lw.rollout(PENDULUM, q0, [0.0, 0.0], None, 1e-3, 4000, feedback=feedback)
    np.testing.assert_allclose(q[-1], up, atol=1e-3)

    def control(t, q, v):
        return gain @ np.concatenate([up - q, -v])

    asked, _ = lw.rollout(PENDULUM, q0, [0.0, 0.0], lw.motion.held(control, 1e-3), 1e-3, 20)
    np.testing.assert_allclose(q[:21], asked, rtol=0, atol=1e-12)
    short = lw.rollout(PENDULUM, q0, [0.0, 0.0], None, 1e-3, 20, feedback=feedback)
    weights = (np.array([1.0, 0.0]), None)
    found = lw.derivatives.rollout_vjp(PENDULUM, *short, None, 1e-3, 20, weights, wrt="gain", feedback=feedback)["gain"]
    assert found.shape == (2, 4)
    step = 1e-4
    for i, j in ((0, 1), (1, 2)):
        ends = []
        for sign in (1.0, -1.0):
            other = gain.copy()
            other[i, j] += sign * step
            again = lw.rollout(PENDULUM, q0, [0.0, 0.0], None, 1e-3, 20, feedback={"target": up, "gain": other})
            ends.append(again[0][-1, 0])
        assert found[i, j] == pytest.approx((ends[0] - ends[1]) / (2.0 * step), rel=1e-5)
    with pytest.raises(ValueError, match="feedback with kp or gain needs a target"):
        lw.rollout(PENDULUM, q0, V, None, 1e-3, 2, feedback={"gain": gain})
    with pytest.raises(lw.KernelError, match=r"gain has shape \(2, 2\), expected \(..., 2, 4\)"):
        lw.rollout(PENDULUM, q0, V, None, 1e-3, 2, feedback={"target": up, "gain": np.eye(2)})


def test_feedback_by_a_matrix_of_a_closed_mechanism():
    mech = lw.mechanisms.five_bar()
    q0 = lw.constraints.assemble(mech, mech.initial)
    gain = np.hstack([5.0 * np.eye(mech.nv), 0.5 * np.eye(mech.nv)])
    by_matrix, by_joint = (
        lw.rollout(mech, q0, None, None, 1e-3, 30, feedback={"target": q0, **gains})
        for gains in ({"gain": gain}, {"kp": np.full(mech.nv, 5.0), "kd": np.full(mech.nv, 0.5)})
    )
    np.testing.assert_allclose(by_matrix[0], by_joint[0], rtol=0, atol=1e-11)


def test_forces_by_joint_are_those_of_arrays():
    mech = lw.mechanisms.slider_crank()
    q, v = lw.neutral(mech), np.zeros(3)
    named = lw.simulate(mech, q, v, 0.2, control=lambda t, q, v: {"crank_joint": 2.0 - v[0]})
    plain = lw.simulate(mech, q, v, 0.2, control=lambda t, q, v: [2.0 - v[0], 0.0, 0.0])
    np.testing.assert_array_equal(named.q, plain.q)
    np.testing.assert_array_equal(named.tau, plain.tau)
    with pytest.raises(lw.SimulationError, match="no moving joint 'crank'"):
        lw.simulate(mech, q, v, 0.2, control=lambda t, q, v: {"crank": 2.0})


def test_held_forces_beside_a_compiled_controller():
    """The reference of the controller goes on from one question to the next."""
    move = lw.trajectories.point_to_point(PENDULUM, [0.0, 0.0], [1.0, 0.5], 0.05)
    control = lw.control.computed_torque(PENDULUM, move, kp=100.0, kd=20.0)
    push = np.array([0.4, -0.1])
    held = lw.motion.held(lambda t, q, v: push, 5e-3)
    found = lw.rollout(PENDULUM, Q, V, held, 1e-3, 40, feedback=control)
    expected = lw.rollout(PENDULUM, Q, V, push, 1e-3, 40, feedback=control)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-13)
