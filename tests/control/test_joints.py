"""Springs and dampers in the joints: forces by definition, targets reached on any joint, bad gains refused."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw


@pytest.mark.parametrize("seed", range(4))
def test_forces_are_springs_dampers_and_gravity(seed):
    mech = lw.mechanisms.random_tree(5, seed, floating_base=seed % 2 == 1)
    rng = np.random.default_rng(seed)
    (q, v), (target, _) = lw.random_state(mech, rng), lw.random_state(mech, rng)
    kp, kd = rng.uniform(1.0, 2.0, (2, mech.nv))
    control = lw.joint_feedback(mech, target, kp, kd)
    expected = kp * lw.difference(mech, q, target) - kd * v + lw.gravity_force(mech, q)
    for body in mech.bodies:
        if isinstance(body.kind, lw.Floating):
            expected[mech.v_index(body.joint)] = 0.0
    np.testing.assert_allclose(control(0.0, q, v), expected)
    bare = lw.joint_feedback(mech, target, 2.0, gravity=False, actuated=np.ones(mech.nv, dtype=bool))
    np.testing.assert_allclose(bare(0.0, q, v), 2.0 * lw.difference(mech, q, target))


def test_a_ball_joint_turns_to_its_target():
    builder = (
        lw.Builder().link("head", 1.0, (0, 0, 0.1), (0.02, 0.02, 0.01)).joint("neck", lw.Spherical(), "ground", "head")
    )
    mech = builder.build()
    target = np.array([np.cos(0.6), 0.0, np.sin(0.6), 0.0])
    control = lw.joint_feedback(mech, target, kp=2.0, kd=0.5)
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
        lw.joint_feedback(lw.mechanisms.planar_arm(2), **options)


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
    np.testing.assert_array_equal(lw.saturated(mech, control)(0, 0, 0), [[3.0, -50.0], [-3.0, 1.0], [2.0, 0.0]])
    np.testing.assert_array_equal(lw.saturated(mech, control, 2.0)(0, 0, 0), [[2.0, -2.0], [-2.0, 1.0], [2.0, 0.0]])
    np.testing.assert_array_equal(lw.saturated(mech, control, [9, 8])(0, 0, 0), [[5.0, -8.0], [-4.0, 1.0], [2.0, 0.0]])
    motion = lw.simulate(mech, [1.0, 0.0], [0.0, 0.0], 0.2, lw.saturated(mech, lw.joint_feedback(mech, [0, 0], 100.0)))
    assert np.abs(motion.tau[:, 0]).max() == 3.0
    for limit in (-1.0, [1.0, 2.0, 3.0], np.nan):
        with pytest.raises(ValueError, match="limit must be"):
            lw.saturated(mech, control, limit)
    with pytest.raises(TypeError, match="control must be a function"):
        lw.saturated(mech, [1.0, 2.0])


def test_something_else_than_a_mechanism_is_refused():
    with pytest.raises(TypeError, match="a Mechanism is needed, got str"):
        lw.joint_feedback("arm", [0.0])
