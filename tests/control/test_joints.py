"""Springs and dampers in the joints: forces by definition, targets reached on any joint, bad gains refused."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import linkwise as lw


@pytest.mark.parametrize("seed", range(4))
def test_forces_are_springs_dampers_and_gravity(seed):
    mech = lw.mechanisms.random_tree(5, seed, floating_base=seed % 2 == 1)
    rng = np.random.default_rng(seed)
    (q, v), (target, _) = lw.random_state(mech, rng), lw.random_state(mech, rng)
    kp, kd = rng.uniform(1.0, 2.0, (2, mech.nv))
    control = lw.control.joint_feedback(mech, target, kp, kd)
    expected = kp * lw.difference(mech, q, target) - kd * v + lw.gravity_force(mech, q)
    for body in mech.bodies:
        if isinstance(body.kind, lw.Floating):
            expected[mech.v_index(body.joint)] = 0.0
    np.testing.assert_allclose(control(0.0, q, v), expected)
    bare = lw.control.joint_feedback(mech, target, 2.0, gravity=False, actuated=np.ones(mech.nv, dtype=bool))
    np.testing.assert_allclose(bare(0.0, q, v), 2.0 * lw.difference(mech, q, target))


def test_a_ball_joint_turns_to_its_target():
    builder = (
        lw.Builder().link("head", 1.0, (0, 0, 0.1), (0.02, 0.02, 0.01)).joint("neck", lw.Spherical(), "ground", "head")
    )
    mech = builder.build()
    target = np.array([np.cos(0.6), 0.0, np.sin(0.6), 0.0])
    control = lw.control.joint_feedback(mech, target, kp=2.0, kd=0.5)
    motion = lw.simulate(mech, lw.neutral(mech), np.zeros(3), 6.0, control)
    np.testing.assert_allclose(lw.difference(mech, motion.end.q, target), 0.0, atol=1e-5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": [0.0]}, "target must be 2 finite numbers"),
        ({"target": [0.0, np.nan]}, "target must be"),
        ({"target": [0.0, 0.0], "kp": -1.0}, "kp must be"),
        ({"target": [0.0, 0.0], "kd": [1.0, 2.0, 3.0]}, "kd must be"),
        ({"target": [0.0, 0.0], "kd": np.inf}, "kd must be"),
    ],
)
def test_bad_gains(options, message):
    with pytest.raises(ValueError, match=message):
        lw.control.joint_feedback(lw.mechanisms.planar_arm(2), **options)


def test_gains_targets_and_limits_by_joint():
    arm = lw.mechanisms.stanford_arm()
    v = np.ones(6)
    control = lw.control.joint_feedback(arm, {"joint2": 0.5}, kp={"joint2": 10.0}, kd={"joint1": 2.0}, gravity=False)
    np.testing.assert_allclose(control(0.0, np.zeros(6), v), [-2.0, 5.0, 0.0, 0.0, 0.0, 0.0])
    np.testing.assert_array_equal(
        lw.control.saturated(arm, control, {"joint2": 3.0})(0.0, np.zeros(6), v)[:2], [-2.0, 3.0]
    )
    neck = lw.Builder().link("head", 1.0, (0, 0, 0.1), (0.02, 0.02, 0.01))
    neck = neck.joint("neck", lw.Spherical(), "ground", "head").build()
    control = lw.control.joint_feedback(
        neck, {"neck": [1.0, 0.0, 0.0, 0.0]}, kd={"neck": [1.0, 2.0, 3.0]}, gravity=False
    )
    np.testing.assert_allclose(control(0.0, lw.neutral(neck), np.ones(3)), [-1.0, -2.0, -3.0])


def test_a_target_by_joint_closes_loops():
    mech = lw.mechanisms.four_bar()
    control = lw.control.joint_feedback(mech, {"crank_joint": 0.3}, kp={"crank_joint": 10.0})
    assert control.target[0] == 0.3 and np.linalg.norm(lw.constraints.position_error(mech, control.target)) < 1e-11
    assert control.actuated_joints == ("crank_joint",)


def test_targets_and_gains_of_mimic_joints():
    builder = lw.Builder().link("a", 1.0, (0.1, 0, 0), (1, 1, 1)).link("b", 1.0, (0.1, 0, 0), (1, 1, 1))
    builder.joint("one", lw.Revolute(), "ground", "a").joint("two", lw.Revolute(), "a", "b", mimic=lw.Mimic("one", 2.0))
    mech = builder.build()
    assert lw.control.joint_feedback(mech, {"two": 0.8}).target.tolist() == [0.4]
    with pytest.raises(lw.MechanismError, match="kp names joint 'two', which mimics 'one' .*: name 'one'"):
        lw.control.joint_feedback(mech, [0.0], kp={"two": 1.0})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": {"jnt1": 0.0}}, "no moving joint 'jnt1': did you mean 'joint1'"),
        ({"target": {"joint1": [0.0, 1.0]}}, "target must be 2 finite numbers, one configuration"),
        ({"target": [0.0, 0.0], "kp": {"jnt1": 0.0}}, "no moving joint 'jnt1'"),
        ({"target": [0.0, 0.0], "kp": {"joint1": -1.0}}, "kp must be .* not negative"),
        ({"target": [0.0, 0.0], "kd": {"joint1": [1.0, 2.0]}}, "kd must be a number, 2 of them or"),
        ({"target": [0.0, 0.0], "kd": {"joint1": 1.0}, "actuated": "joint2"}, "kd names joint 'joint1', .* no motor"),
    ],
)
def test_bad_numbers_by_joint(options, message):
    with pytest.raises(ValueError, match=message):  # of which MechanismError is one
        lw.control.joint_feedback(lw.mechanisms.planar_arm(2), **options)


def test_forces_are_cut_off_at_what_motors_can_do():
    builder = lw.Builder()
    for name in ("a", "b", "c"):
        builder.link(name, 1.0, (0.5, 0.0, 0.0), (0.1, 0.1, 0.1))
    builder.joint("one", lw.Revolute(), "ground", "a", limits=lw.Limits(effort=3.0))
    builder.joint("two", lw.Prismatic(), "a", "b")
    builder.joint("three", lw.Revolute(), "b", "c", mimic=lw.Mimic("one", 2.0), limits=lw.Limits(effort=0.1))
    mech = builder.build()

    def control(t, q, v):
        return np.array([[5.0, -50.0], [-4.0, 1.0], [2.0, 0.0]])

    # The joint that follows another has no motor of its own; the one without a limit is not limited.
    np.testing.assert_array_equal(lw.control.saturated(mech, control)(0, 0, 0), [[3.0, -50.0], [-3.0, 1.0], [2.0, 0.0]])
    np.testing.assert_array_equal(
        lw.control.saturated(mech, control, 2.0)(0, 0, 0), [[2.0, -2.0], [-2.0, 1.0], [2.0, 0.0]]
    )
    np.testing.assert_array_equal(
        lw.control.saturated(mech, control, [9, 8])(0, 0, 0), [[5.0, -8.0], [-4.0, 1.0], [2.0, 0.0]]
    )
    motion = lw.simulate(
        mech, [1.0, 0.0], [0.0, 0.0], 0.2, lw.control.saturated(mech, lw.control.joint_feedback(mech, [0, 0], 100.0))
    )
    assert np.abs(motion.tau[:, 0]).max() == 3.0
    for limit in (-1.0, [1.0, 2.0, 3.0], np.nan):
        with pytest.raises(ValueError, match="limit must be"):
            lw.control.saturated(mech, control, limit)
    with pytest.raises(TypeError, match="control must be a function"):
        lw.control.saturated(mech, [1.0, 2.0])


def test_something_else_than_a_mechanism_is_refused():
    with pytest.raises(TypeError, match="a Mechanism is needed, got str"):
        lw.control.joint_feedback("arm", [0.0])


def test_effort_limits_of_zero_are_told():
    arm = lw.load(
        """<robot name="exported"><link name="base"/><link name="l"><inertial><mass value="1"/>
        <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link><joint name="j" type="revolute">
        <parent link="base"/><child link="l"/><limit lower="-3" upper="3" effort="0" velocity="0"/></joint></robot>"""
    )
    with pytest.warns(lw.MechanismWarning, match="effort limits of mechanism 'exported' are 0 at joints j,"):
        control = lw.control.saturated(arm, lw.control.joint_feedback(arm, [1.0], 10.0, 1.0))
    np.testing.assert_array_equal(control(0.0, np.zeros(1), np.zeros(1)), 0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lw.control.saturated(arm, control, {"j": 5.0})


def test_targets_beyond_limits_that_act_are_told():
    """Of joints that a spring pulls there; paths that are planned tell the same."""
    arm = lw.mechanisms.planar_arm(2).with_limits(joint1=lw.Limits(-1.0, 1.0), joint2=lw.Limits(-0.5, 0.5))
    told = "target of joint_feedback .* beyond joint limits.*: 'joint2' to 0.7, outside -0.5 .. 0.5; np.clip"
    for target in ([0.0, 0.7], {"joint2": 0.7}):
        with pytest.warns(lw.motion.LimitWarning, match=told):
            lw.control.joint_feedback(arm, target, kp=10.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lw.control.joint_feedback(arm, [1.0, -0.5], kp=10.0)
        lw.control.joint_feedback(arm, [0.0, 0.7])  # gravity held, nothing else
        lw.control.joint_feedback(arm, [0.0, 0.7], kp={"joint1": 10.0})
        lw.control.joint_feedback(arm, [0.0, 0.7], kp=10.0, actuated=["joint1"])
        lw.control.joint_feedback(arm.with_acting(limits=False), [0.0, 0.7], kp=10.0)
    with pytest.warns(lw.motion.LimitWarning, match="'joint2' to 0.7, outside -0.5 .. 0.5"):
        lw.trajectories.point_to_point(arm, [0.0, 0.0], [0.0, 0.7], 1.0)
