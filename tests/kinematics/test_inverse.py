"""Inverse kinematics: targets are reached, on trees of all joints and in loops; limits, postures, weights; what cannot
be reached is said to be."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

import linkwise as lw


def distance(mech: lw.Mechanism, q: np.ndarray, frame: str, pose: np.ndarray) -> np.ndarray:
    """(...,): metres and radians to a pose, by SciPy-free definitions: chordal lengths are equal to first order."""
    off = lw.frame_pose(mech, q, frame) - pose
    return np.maximum(np.linalg.norm(off[..., :3, 3], axis=-1), np.linalg.norm(off[..., :3, :3], axis=(-2, -1)))


@pytest.fixture(scope="module")
def puma() -> lw.Mechanism:
    arm = lw.mechanisms.puma560()
    return arm.with_limits({name: lw.Limits(-2.6, 2.6) for name in arm.joint_names})


def test_many_poses_within_limits(puma):
    q, _ = lw.random_state(puma, np.random.default_rng(0), (4, 200), within_limits=True)
    poses = lw.frame_pose(puma, q, "link6")
    found = lw.inverse_kinematics(puma, {"link6": poses})
    assert found.q.shape == (4, 200, 6) and found.converged.shape == (4, 200) and found.converged.all()
    assert distance(puma, found.q, "link6", poses).max() < 3e-8 and found.error.max() <= 1e-8
    assert (np.abs(found.q) <= 2.6).all() and (np.abs(found.q) < 2.6).any()
    assert found.require() is found.q and "800 of 800 solved" in str(found)
    again = lw.inverse_kinematics(puma, {"link6": poses})
    np.testing.assert_array_equal(again.q, found.q)
    one = lw.inverse_kinematics(puma, {"link6": poses[1, 7]})
    assert one.q.shape == (6,) and one.converged and distance(puma, one.q, "link6", poses[1, 7]) < 3e-8


def test_a_start_nearby_stays_nearby_and_half_a_turn_is_no_obstacle(puma):
    rng = np.random.default_rng(1)
    q, _ = lw.random_state(puma, rng, (50,), within_limits=True)
    poses = lw.frame_pose(puma, q, "link6")
    near = q + 0.02 * rng.normal(size=q.shape)
    found = lw.inverse_kinematics(puma, {"link6": poses}, near, attempts=1)
    regular = np.linalg.svd(lw.jacobian(puma, q, "link6"))[1][:, -1] > 0.1
    assert regular.sum() > 10 and found.converged[regular].all() and found.iterations.max() < 40
    assert np.abs(found.q - q)[regular].max() < 0.3 and (found.attempts == 1).all()
    unhurried = lw.inverse_kinematics(puma, {"link6": poses[0]}, near[0])
    np.testing.assert_array_equal(unhurried.q, found.q[0])
    assert unhurried.attempts == 1
    flipped = poses[0] @ np.diag([1.0, -1.0, -1.0, 1.0])
    there = lw.inverse_kinematics(puma, {"link6": lw.kinematics.FrameTarget(rotation=flipped[:3, :3])}, q[0])
    assert there.converged
    np.testing.assert_allclose(lw.frame_pose(puma, there.q, "link6")[:3, :3], flipped[:3, :3], atol=1e-7)


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (0, *range(2, 12)))])
def test_trees_of_all_joints_reach_several_targets(seed):
    mech = lw.mechanisms.random_tree(6, seed, floating_base=seed % 2 == 1)
    rng = np.random.default_rng(seed)
    q, _ = lw.random_state(mech, rng, (12,))
    first, second = mech.link_names[-1], mech.link_names[2]
    one, two = (lw.frame_pose(mech, q, name) for name in (first, second))
    axis = np.array([0.0, 0.6, 0.8])
    aimed = lw.kinematics.FrameTarget(position=two[..., :3, 3], axis=axis, direction=two[..., :3, :3] @ axis)
    start = lw.integrate(mech, q, 0.1 * rng.normal(size=(12, mech.nv)), 1.0)
    found = lw.inverse_kinematics(mech, {first: one, second: aimed}, start)
    assert found.converged.all()
    assert distance(mech, found.q, first, one).max() < 3e-8
    at = lw.frame_pose(mech, found.q, second)
    np.testing.assert_allclose(at[..., :3, 3], two[..., :3, 3], atol=2e-8)
    np.testing.assert_allclose(at[..., :3, :3] @ axis, two[..., :3, :3] @ axis, atol=2e-8)


def test_the_preferred_posture_is_the_nearest_of_all_that_reach_the_target():
    mech = lw.mechanisms.planar_arm(5)
    goal, posture = np.array([2.9, 1.8, 0.0]), np.array([0.5, 0.1, 0.1, 0.1, 0.4])
    found = lw.inverse_kinematics(mech, {"tip": goal}, posture=posture)
    assert found.converged

    def gap(q):
        return lw.frame_pose(mech, q, "tip")[:2, 3] - goal[:2]

    best = minimize(
        lambda q: np.sum((q - posture) ** 2), found.q + 0.05, constraints={"type": "eq", "fun": gap}, method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 300},
    )  # fmt: skip
    np.testing.assert_allclose(found.q, best.x, atol=1e-5)
    free = lw.inverse_kinematics(mech, {"tip": goal})
    assert np.linalg.norm(free.q - posture) > np.linalg.norm(found.q - posture)


def test_a_posture_costs_no_solution_and_whole_rotations_are_those_nearest_to_it(puma):
    wide = puma.with_limits({name: lw.Limits(-6.2, 6.3) for name in puma.joint_names})
    rng = np.random.default_rng(4)
    q = rng.uniform(-6.2, 6.3, (300, 6))
    poses = lw.frame_pose(wide, q, "link6")
    posture = np.array([0.3, -1.0, 1.2, 0.2, 0.5, -5.0])
    for options, wanted in (
        ({"posture": posture, "q0": np.zeros(6)}, posture),
        ({"q0": posture}, posture),
        ({}, np.full(6, 0.05)),
    ):
        found = lw.inverse_kinematics(wide, {"link6": poses}, **options)
        assert found.converged.all() and distance(wide, found.q, "link6", poses).max() < 3e-8
        assert ((found.q >= -6.2) & (found.q <= 6.3)).all()
        for sign in (-1.0, 1.0):  # what would be nearer is beyond the limits
            other = found.q + sign * 2 * np.pi
            allowed = (other >= -6.2) & (other <= 6.3)
            assert (np.abs(other - wanted) >= np.abs(found.q - wanted) - 1e-9)[allowed].all()
    preferred = lw.inverse_kinematics(puma, {"link6": poses}, posture=np.zeros(6), attempts=1)
    alone = lw.inverse_kinematics(puma, {"link6": poses}, np.zeros(6), attempts=1)
    assert 100 < alone.converged.sum() < 300 and preferred.converged[alone.converged].all()


def test_joints_that_others_mimic_keep_their_rotations():
    builder = lw.Builder().link("a", 1.0, (0.5, 0, 0), (1, 1, 1)).link("b", 1.0, (0.5, 0, 0), (1, 1, 1))
    builder.joint("one", lw.Revolute(), "ground", "a", limits=lw.Limits(-10.0, 10.0))
    builder.joint("two", lw.Revolute(), "a", "b", (None, (1, 0, 0)), mimic=lw.Mimic("one", 0.3))
    mech = builder.frame("tip", "b", (1.0, 0, 0)).build()
    goal = lw.frame_pose(mech, [7.0], "tip")
    found = lw.inverse_kinematics(mech, {"tip": goal}, [6.9])
    assert found.converged
    np.testing.assert_allclose(found.q, [7.0], atol=1e-6)


def test_limits_hold_and_what_they_exclude_is_not_reached():
    mech = lw.mechanisms.planar_arm(3)
    goal = np.array([-1.0, 0.5, 0.0])
    limits = (-0.4, 0.9)
    held = lw.inverse_kinematics(mech, {"tip": goal}, limits=limits, attempts=6)
    assert not held.converged and (held.q >= -0.4).all() and (held.q <= 0.9).all()
    nearest = minimize(
        lambda q: np.sum((lw.frame_pose(mech, q, "tip")[:3, 3] - goal) ** 2), np.full(3, 0.8), bounds=[limits] * 3
    )
    np.testing.assert_allclose(held.error**2, nearest.fun, rtol=1e-4)
    with pytest.raises(
        lw.kinematics.InverseKinematicsError, match="1 of 1 targets of mechanism 'planar_arm_3' were not reached"
    ):
        held.require()
    assert lw.inverse_kinematics(mech, {"tip": goal}, limits=False).converged
    assert "not solved" in str(held)


def test_weights_share_what_cannot_be_reached():
    """Out of reach along x, the arm points there; a heavy direction is kept better than a light one."""
    mech = lw.mechanisms.planar_arm(2)
    errors = []
    for weight in (0.1, 10.0):
        target = lw.kinematics.FrameTarget((5.0, 0.0, 0.0), axis=(1, 0, 0), direction=(0, 1, 0), rotation_weight=weight)
        found = lw.inverse_kinematics(mech, {"tip": target}, [0.3, 0.3], attempts=1)
        axis = lw.frame_pose(mech, found.q, "tip")[:3, 0]
        errors.append(np.arccos(np.clip(axis[1], -1.0, 1.0)))
        assert not found.converged
    assert errors[1] < 0.5 * errors[0]


@pytest.mark.parametrize(
    "make",
    [
        lw.mechanisms.five_bar,
        pytest.param(lw.mechanisms.loader, marks=pytest.mark.slow),
        pytest.param(lw.mechanisms.stewart_platform, marks=pytest.mark.slow),
    ],
)
def test_loops_are_closed(make):
    mech = make()
    rng = np.random.default_rng(3)
    q = lw.constraints.assemble(mech, mech.initial)
    moved = lw.constraints.null_space(mech, q) @ (0.1 * rng.normal(size=lw.constraints.degrees_of_freedom(mech, q)))
    there = lw.constraints.project(mech, lw.integrate(mech, q, moved, 1.0), np.zeros(mech.nv))[0]
    frame = mech.link_names[-1]
    goal = lw.frame_pose(mech, there, frame)
    target = goal if make is lw.mechanisms.stewart_platform else goal[:3, 3]
    found = lw.inverse_kinematics(mech, {frame: target}, q)
    assert found.converged and np.abs(lw.constraints.position_error(mech, found.q)).max() < 1e-10
    np.testing.assert_allclose(lw.frame_pose(mech, found.q, frame)[:3, 3], goal[:3, 3], atol=2e-8)


def test_mimic_joints_keep_their_limits():
    builder = lw.Builder().link("a", 1.0, (0.5, 0, 0), (1, 1, 1)).link("b", 1.0, (0.5, 0, 0), (1, 1, 1))
    builder.joint("one", lw.Revolute(), "ground", "a", limits=lw.Limits(-3.0, 3.0))
    builder.joint(
        "two", lw.Revolute(), "a", "b", (None, (1, 0, 0)), mimic=lw.Mimic("one", 2.0), limits=lw.Limits(-1.0, 1.0)
    )
    mech = builder.build()
    goal = lw.frame_pose(mech, np.array([0.4]), "b")
    assert lw.inverse_kinematics(mech, {"b": goal}).q == pytest.approx([0.4])
    beyond = lw.inverse_kinematics(
        mech, {"b": lw.kinematics.FrameTarget(rotation=lw.frame_pose(mech, np.array([0.8]), "b")[:3, :3])}
    )
    assert not beyond.converged and beyond.q == pytest.approx([0.5])


@pytest.mark.parametrize(
    ("targets", "options", "message"),
    [
        ({}, {}, "targets must be a dictionary"),
        ({"hand": np.eye(4)}, {}, "hand"),
        ({"ground": np.eye(4)}, {}, "fixed to the ground"),
        ({"tip": np.eye(3)}, {}, "must be a pose .* for a rotation"),
        ({"tip": np.diag([2.0, 1.0, 1.0, 1.0])}, {}, "is no rotation"),
        ({"tip": np.ones((4, 4))}, {}, "last row"),
        ({"tip": [0.0, np.nan, 0.0]}, {}, "must be finite"),
        ({"tip": np.zeros((2, 3))}, {"q0": np.zeros((3, 2))}, "do not broadcast"),
        ({"tip": np.zeros(3)}, {"q0": np.zeros(3)}, "q0 must be numbers of shape"),
        ({"tip": np.zeros(3)}, {"q0": np.full(2, np.nan)}, "q0 must be finite, and has nan"),
        ({"tip": np.full((4, 4), np.nan)}, {}, "the target of 'tip' must be finite, and has nan"),
        ({"tip": np.zeros(3)}, {"tolerance": 0.0}, "tolerance must be"),
        ({"tip": np.zeros(3)}, {"attempts": 0}, "attempts must be"),
        ({"tip": np.zeros(3)}, {"limits": 3}, "limits must be True, False"),
        (
            {"tip": np.zeros(3)},
            {"limits": ([1.0, 0.0], [0.0, 1.0])},
            "no configuration is within the limits of 'joint1'",
        ),
    ],
)
def test_bad_input(targets, options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        lw.inverse_kinematics(lw.mechanisms.planar_arm(2), targets, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "none is given"),
        ({"axis": (0, 0, 1)}, "axis and direction together"),
        ({"axis": (0, 0, 1), "direction": (0, 0, 1), "rotation": np.eye(3)}, "a rotation or an axis"),
        ({"position": (0, 0, 0), "position_weight": 0.0}, "position_weight"),
    ],
)
def test_targets_that_say_too_little_or_too_much(options, message):
    with pytest.raises(ValueError, match=message):
        lw.kinematics.FrameTarget(**options)


def test_targets_as_people_first_write_them():
    arm = lw.mechanisms.puma560()
    q = np.array([0.3, -0.5, 0.4, 0.2, 0.6, 0.1])
    pose = lw.frame_pose(arm, q, "link6")
    for pair in ((pose[:3, :3], pose[:3, 3]), (pose[:3, 3], pose[:3, :3])):
        np.testing.assert_allclose(lw.inverse_kinematics(arm, {"link6": pair}, q).require(), q, atol=1e-8)
    with pytest.raises(
        TypeError, match=r"targets must be a dictionary .*\{'link6': pose\}, q0 comes behind it: got 'link6'"
    ):
        lw.inverse_kinematics(arm, "link6", pose)
    with pytest.raises(TypeError, match=r"\{'link6': pose\}.*got a ndarray"):
        lw.inverse_kinematics(arm, pose, q)
    with pytest.raises(TypeError, match="wrenches_at takes .*behind the mechanism, then q: not a ndarray"):
        lw.forces.wrenches_at(arm, q, {"link6": np.ones(6)})
    with pytest.raises(lw.MechanismError, match=r"linkwise.forces.wrenches_at\(mech, \{frame"):
        lw.simulate(arm, q, None, 0.1, wrenches={"link6": np.ones(6)})
    with pytest.raises(lw.MechanismError, match=r"q0 is the text 'home'.*mech.postures\[...\]"):
        lw.simulate(arm, "home", None, 0.1)
    with pytest.raises(TypeError, match="frame_pose takes link or name, both words for the name of a link or frame"):
        lw.frame_pose(arm, q)
