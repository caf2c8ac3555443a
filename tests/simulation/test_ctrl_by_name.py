"""Control inputs by the names of actuators, wherever control inputs are taken."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from tests.simulation.test_elements import ARM, SPEED, START, W

NAMED, ARRAY = {"slow": 0.4, "servo": -0.2}, np.array([-0.2, 0.4, 0.0])


def test_functions_of_one_state():
    assert ARM.forces.actuator_names == ("servo", "slow", "pull")
    np.testing.assert_array_equal(
        lw.forces.joint_forces(ARM, START, SPEED, ctrl=NAMED, activation=W),
        lw.forces.joint_forces(ARM, START, SPEED, ctrl=ARRAY, activation=W),
    )
    by_name, by_order = (lw.linearize(ARM, START, ctrl=ctrl, activation=W) for ctrl in (NAMED, ARRAY))
    np.testing.assert_array_equal(by_name.A, by_order.A)
    assert by_name.input_names == ARM.forces.actuator_names
    rest = [lw.find_equilibrium(ARM, START, solve_for="tau", ctrl=ctrl).tau for ctrl in (NAMED, ARRAY)]
    np.testing.assert_array_equal(*rest)


def test_motions():
    first, second = (lw.rollout(ARM, START, SPEED, None, 5e-3, 10, ctrl=ctrl) for ctrl in (NAMED, ARRAY))
    np.testing.assert_array_equal(first[0], second[0])
    ramp = np.linspace(0.0, 1.0, 10)
    rows = np.zeros((10, 3))
    rows[:, 0] = ramp
    first, second = (lw.rollout(ARM, START, SPEED, None, 5e-3, 10, ctrl=c) for c in ({"servo": ramp}, rows))
    np.testing.assert_array_equal(first[0], second[0])
    motions = [
        lw.simulate(ARM, START, SPEED, 0.05, method="rk4", ctrl=ctrl)
        for ctrl in (NAMED, ARRAY, lambda t, q, v: NAMED, lambda t, q, v: ARRAY)
    ]
    for motion in motions[1:]:
        np.testing.assert_array_equal(motion.ctrl, motions[0].ctrl)
        np.testing.assert_allclose(motion.q, motions[0].q, rtol=0, atol=1e-13)
    again = motions[0].resume(0.01, ctrl={"servo": 0.1})
    np.testing.assert_array_equal(again.ctrl[-1], [0.1, 0.0, 0.0])


def test_precision_and_mistakes():
    start, speed = START.astype(np.float32), SPEED.astype(np.float32)
    dt = np.float32(5e-3)
    assert lw.rollout(ARM, start, speed, None, dt, 2, ctrl=NAMED)[0].dtype == np.float32
    with pytest.raises(lw.MechanismError, match="has no actuator 'sevro' that acts: did you mean 'servo'?"):
        lw.rollout(ARM, START, SPEED, None, 5e-3, 2, ctrl={"sevro": 1.0})
    with pytest.raises(lw.MechanismError, match=r"shapes of the inputs do not broadcast: servo \(2,\), slow \(3,\)"):
        lw.rollout(ARM, START, SPEED, None, 5e-3, 2, ctrl={"servo": [1.0, 2.0], "slow": [1.0, 2.0, 3.0]})
    with pytest.raises(lw.MechanismError, match="no actuator of mechanism 'double_pendulum' acts"):
        lw.simulate(lw.mechanisms.double_pendulum(), None, None, 0.1, ctrl={"motor": 1.0})


def test_no_inputs_of_no_actuators():
    """What code gives that counts them, in batches too; numbers for nobody are refused all the same."""
    arm, q = lw.mechanisms.double_pendulum(), np.array([[0.3, 0.2], [0.1, -0.4], [0.0, 1.0]])
    path = lw.rollout(arm, q, None, None, 0.01, 4)
    for ctrl in (np.zeros(0), [], np.zeros((3, 1, 0)), np.zeros((3, 0)), np.zeros((4, arm.n_ctrl)), {}):
        np.testing.assert_array_equal(lw.rollout(arm, q, None, None, 0.01, 4, ctrl=ctrl)[0], path[0])
        motion = lw.simulate(arm, q, None, 0.04, method="rk4", step=0.01, ctrl=ctrl)
        np.testing.assert_allclose(motion.q[-1], path[0][:, -1], rtol=0, atol=1e-13)
        np.testing.assert_array_equal(lw.forces.joint_forces(arm, q, 0 * q, ctrl=ctrl), 0 * q)
    policy = lw.motion.held(lambda t, q, v: -q, 0.02)
    held = [lw.rollout(arm, q, None, policy, 0.01, 4, **more)[0] for more in ({}, {"ctrl": np.zeros(0)})]
    np.testing.assert_array_equal(*held)
    weights = np.ones((3, 5, 2)), np.zeros((3, 5, 2))
    found = lw.derivatives.rollout_vjp(arm, *path, None, 0.01, 4, weights, ctrl=np.zeros((3, 1, 0)))
    np.testing.assert_array_equal(found["q0"], lw.derivatives.rollout_vjp(arm, *path, None, 0.01, 4, weights)["q0"])
    single = q.astype(np.float32)
    assert lw.rollout(arm, single, None, None, 0.01, 2, ctrl=np.zeros(0))[0].dtype == np.float32
    assert lw.linearize(arm, q[0], ctrl=np.zeros(0)).input_names == lw.linearize(arm, q[0]).input_names
    for refused in (np.zeros(1), np.zeros((0, 2)), lambda t, q, v: np.zeros(0)):
        with pytest.raises(lw.MechanismError, match="no actuator of mechanism 'double_pendulum' acts"):
            lw.simulate(arm, q[0], None, 0.1, ctrl=refused)
    with pytest.raises(lw.MechanismError, match="ctrl"):
        lw.simulate(ARM, START, None, 0.1, ctrl=np.zeros(0))


def test_forces_of_actuators():
    """By hand: a servo cut off at its input, a filter, an integrator through a tendon."""
    q, v = START, SPEED
    found = lw.forces.actuator_forces(ARM, q, v, ctrl={"servo": 1.7, "slow": 5.0}, activation=W)
    expected = [9.0 * 1.0 - 9.0 * q[1] - 1.0 * v[1], W[0], W[1]]  # activations are what drives the others
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13)
    batch = lw.forces.actuator_forces(ARM, np.stack([q, 2 * q]), v, ctrl=ARRAY, activation=W)
    assert batch.shape == (2, 3)
    motion = lw.simulate(ARM, START, SPEED, 0.05, method="rk4", ctrl={"servo": 1.7})
    assert motion.actuator_forces.shape == (len(motion.t), 3)
    np.testing.assert_allclose(motion.actuator_forces[:, 0], 9.0 - 9.0 * motion.q[:, 1] - motion.v[:, 1], atol=1e-12)
    free = lw.simulate(lw.mechanisms.double_pendulum(), None, None, 0.01)
    assert free.actuator_forces.shape == (len(free.t), 0)
