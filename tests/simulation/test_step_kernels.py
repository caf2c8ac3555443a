"""One step as a kernel: repeated, it is what ``rollout`` does."""

import numpy as np
import pytest

import linkwise as lw


def test_steps_under_all_that_acts_are_those_of_rollout():
    arm = lw.mechanisms.planar_arm(2).with_elements(lw.forces.Actuator("motor", "joint1"))
    rng = np.random.default_rng(0)
    q, v, tau, target = rng.normal(size=(4, 2))
    wrenches, damping, ctrl = rng.normal(size=(2, 6)), np.array([0.3, 0.1]), np.array([0.7])
    step = lw.motion.step_kernel(arm, 0.01, inputs=("wrenches", "feedback"), parameters=("damping",))
    assert step.inputs == ("q", "v", "tau", "dt", "wrenches", "target", "kp", "kd", "ctrl", "damping")
    gains = {"target": target, "kp": np.full(2, 5.0), "kd": np.ones(2)}
    path, speeds = lw.rollout(
        arm, q, v, tau, 0.01, 3, wrenches=wrenches, feedback=gains, ctrl=ctrl, parameters={"damping": damping}
    )
    for k in range(3):
        state = step(q, v, tau, 0.01, wrenches, *gains.values(), ctrl, damping)
        q, v = state[:2], state[2:]
        np.testing.assert_allclose(q, path[k + 1], rtol=1e-13)
        np.testing.assert_allclose(v, speeds[k + 1], rtol=1e-13)
    assert lw.motion.step_kernel(arm, 0.01, inputs=("wrenches", "feedback"), parameters=("damping",)) is step


def test_steps_of_closed_mechanisms_say_how_far_they_can_be_relied_on():
    mech = lw.mechanisms.four_bar()
    tau = np.array([1.0, 0.0, 0.0])
    state, reliability, _ = lw.motion.step_kernel(mech, 0.01)(mech.initial, np.zeros(3), tau, 0.01)
    np.testing.assert_allclose(state[:3], lw.rollout(mech, None, None, tau, 0.01, 1)[0][-1], atol=1e-14)
    assert reliability > 1.0


def test_steps_in_momenta():
    arm = lw.mechanisms.planar_arm(2)
    q, v, tau = np.random.default_rng(0).normal(size=(3, 2))
    state = lw.motion.step_kernel(arm, 0.01, coordinates="momentum")(q, v, tau, 0.01)
    path, _ = lw.rollout(arm, q, v, tau, 0.01, 1, coordinates="momentum")
    np.testing.assert_allclose(state[:2], path[-1], rtol=1e-12)


def test_what_is_refused():
    with pytest.raises(ValueError, match="unknown input of a step 'torque'"):
        lw.motion.step_kernel(lw.mechanisms.planar_arm(2), 0.01, inputs=["torque"])
    with pytest.raises(ValueError, match="unknown method 'euler'"):
        lw.motion.step_kernel(lw.mechanisms.planar_arm(2), 0.01, "euler")
