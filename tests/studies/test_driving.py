"""Numbers of one joint or actuator that vary leave the others as ``Rollout`` drives them."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise import studies as st

ARM = lw.mechanisms.planar_arm(3).with_gravity((0, 0, 0))
MOTORS = ARM.with_elements(*(lw.forces.Actuator(f"m{k}", f"joint{k}") for k in (1, 2, 3)))
STEPS = 40
TIMES = 0.01 * np.arange(STEPS)[:, None]


def driven(mech, vary, **given):
    """The last states of a study, and the numbers that were drawn."""
    one = st.Study(mech, st.Rollout(0.01, STEPS, final_only=True, **given), vary, cases=3)
    found = one.run()
    return found["positions"], found


def alone(mech, **given):
    return lw.rollout(mech, None, None, given.pop("tau", None), 0.01, STEPS, final_only=True, **given)[0]


@pytest.mark.parametrize("tau", [[1.0, 2.0, 3.0], np.sin(20.0 * TIMES + [0, 1, 2]), {"joint1": 1.0, "joint3": -2.0}])
def test_one_joint_force(tau):
    found, results = driven(ARM, {"tau.joint2": st.distributions.Uniform(0.0, 1.0)}, tau=tau)
    whole = [tau.get(name, 0.0) for name in ARM.joint_names] if isinstance(tau, dict) else tau
    for k, force in enumerate(results["tau.joint2"]):
        own = np.array(np.broadcast_to(whole, (STEPS, 3)))
        own[:, 1] = force
        np.testing.assert_allclose(found[k], alone(ARM, tau=own), atol=1e-12)


def test_one_joint_force_beside_a_controller():
    tau = lw.motion.held(lambda t, q, v: np.sin(t + np.array([1.0, 2.0, 3.0])) - 2.0 * q, 0.02)
    found, results = driven(ARM, {"tau.joint2": st.distributions.Uniform(0.0, 1.0)}, tau=tau)
    for k, force in enumerate(results["tau.joint2"]):
        own = lw.motion.held(lambda t, q, v, force=force: np.where([0, 1, 0], force, tau(t, q, v)), 0.02)
        np.testing.assert_allclose(found[k], alone(ARM, tau=own), atol=1e-12)


@pytest.mark.parametrize("name, place", [("kp", 20.0), ("kd", 8.0), ("target", 1.0)])
@pytest.mark.parametrize("whole", [False, True])
def test_one_gain_or_target(name, place, whole):
    """Gains given as one number for all joints that have motors, or by joint."""
    mech = ARM.metadata.with_actuated("joint1", "joint2")
    feedback = {"target": [0.5, 1.0, 0.2], "kp": 20.0, "kd": 8.0}
    if whole:
        feedback = {"target": {"joint2": 1.0}, "kp": {"joint1": 20.0, "joint2": 10.0}, "kd": [8.0, 7.0, 6.0]}
    found, results = driven(mech, {f"{name}.joint2": st.distributions.Uniform(0.8 * place, place)}, feedback=feedback)
    numbers = {"target": [0.5, 1.0, 0.2], "kp": [20.0, 20.0, 0.0], "kd": [8.0, 8.0, 0.0]}
    if whole:
        numbers = {"target": [0.0, 1.0, 0.0], "kp": [20.0, 10.0, 0.0], "kd": [8.0, 7.0, 6.0]}
    for k, one in enumerate(results[f"{name}.joint2"]):
        own = {key: np.array(x) for key, x in numbers.items()}
        own[name][1] = one
        np.testing.assert_allclose(found[k], alone(mech, feedback=own), atol=1e-12)


def test_one_target_of_a_path():
    path = np.sin(5.0 * TIMES + [0, 1, 2])
    feedback = {"target": path, "kp": 20.0, "kd": 8.0}
    found, results = driven(ARM, {"target.joint3": st.distributions.Uniform(0.5, 1.0)}, feedback=feedback)
    for k, one in enumerate(results["target.joint3"]):
        own = np.column_stack([path[:, :2], np.full(STEPS, one)])
        np.testing.assert_allclose(found[k], alone(ARM, feedback={**feedback, "target": own}), atol=1e-12)


@pytest.mark.parametrize("held", [False, True])
def test_one_control_input(held):
    inputs = {"m1": 1.0, "m2": 2.0, "m3": -1.0}
    ctrl = lw.motion.held(lambda t, q, v: inputs, 0.02) if held else inputs
    found, results = driven(MOTORS, {"ctrl.m2": st.distributions.Uniform(0.0, 1.0)}, ctrl=ctrl)
    for k, one in enumerate(results["ctrl.m2"]):
        np.testing.assert_allclose(found[k], alone(MOTORS, ctrl={**inputs, "m2": one}), atol=1e-12)


def test_numbers_of_all_joints_take_the_place_of_all():
    vary = {"tau": st.distributions.Uniform(0.0, 1.0), "tau.joint2": 5.0, "ctrl": st.distributions.Uniform(0.0, 1.0)}
    found, results = driven(
        MOTORS, vary, tau=np.ones((STEPS, 3)), ctrl=lw.motion.held(lambda t, q, v: np.ones(3), 0.02)
    )
    for k in range(3):
        tau = results["tau"][k].copy()
        tau[1] = 5.0
        np.testing.assert_allclose(found[k], alone(MOTORS, tau=tau, ctrl=results["ctrl"][k]), atol=1e-12)


def test_factors_and_steps_are_of_what_the_rollout_gives():
    feedback = {"target": [0.5, 1.0, 0.2], "kp": 20.0, "kd": {"joint1": 8.0}}
    vary = {
        "kp": st.distributions.Relative(st.distributions.Uniform(0.5, 1.5)),
        "target": st.distributions.Offset(st.distributions.Normal(0.0, 0.1)),
        "kd.joint1": st.distributions.Offset(st.distributions.Uniform(-1.0, 1.0)),
        "tau.joint3": st.distributions.Relative(st.distributions.Uniform(0.5, 1.5)),
        "ctrl.m2": st.distributions.Relative(st.distributions.Uniform(0.5, 1.5)),
    }
    found, results = driven(MOTORS, vary, feedback=feedback, tau=[0.0, 0.0, 2.0], ctrl={"m1": 0.5, "m2": -1.0})
    assert (np.abs(results["kp"] / 20.0 - 1.0) < 0.5).all() and (np.abs(results["kd.joint1"] - 8.0) < 1.0).all()
    assert (np.abs(results["tau.joint3"] / 2.0 - 1.0) < 0.5).all() and (np.abs(results["ctrl.m2"] + 1.0) < 0.5).all()
    assert (np.abs(results["target"] - feedback["target"]) < 0.5).all() and np.ptp(results["target"]) > 0.1
    for k in range(3):
        gains = {"target": results["target"][k], "kp": results["kp"][k], "kd": [results["kd.joint1"][k], 0.0, 0.0]}
        ctrl = {"m1": 0.5, "m2": results["ctrl.m2"][k]}
        own = alone(MOTORS, feedback=gains, tau=[0.0, 0.0, results["tau.joint3"][k]], ctrl=ctrl)
        np.testing.assert_allclose(found[k], own, atol=1e-12)


@pytest.mark.parametrize(
    "vary, given, message",
    [
        (
            {"tau": st.distributions.Relative(st.distributions.Uniform(0.5, 1.5))},
            {},
            "tau: what it is a factor of is zero: give 'tau' in the",
        ),
        (
            {"v0": st.distributions.Relative(st.distributions.Uniform(0.5, 1.5))},
            {},
            "v0: what it is a factor of is zero: give a distribution",
        ),
        (
            {"tau": st.distributions.Offset(st.distributions.Uniform(0.0, 1.0))},
            {"tau": np.ones((STEPS, 3))},
            "tau: what is given changes in time",
        ),
        (
            {"tau.joint1": st.distributions.Relative(st.distributions.Uniform(0.5, 1.5))},
            {"tau": lw.motion.held(lambda t, q, v: -q, 0.01)},
            "tau.joint1: what is given changes in time or with the state",
        ),
    ],
)
def test_factors_of_nothing_and_of_what_changes_are_refused(vary, given, message):
    with pytest.raises(st.StudyError, match=message):
        driven(ARM, vary, **given)
