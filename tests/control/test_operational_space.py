"""Operational-space control: frames that move as asked for, and what is left near singular positions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import brentq

import linkwise as lw
from linkwise.control.operational_space import length_of_arm


@pytest.fixture(scope="module")
def puma() -> lw.Mechanism:
    return lw.mechanisms.puma560()


def test_a_frame_moves_as_a_free_body_and_postures_do_not_disturb_it(puma):
    rng = np.random.default_rng(1)
    arm = lw.mechanisms.chain(8)
    q, v = lw.random_state(arm, rng, (5,))
    frame = arm.link_names[-1]
    pose = lw.frame_pose(arm, lw.random_state(arm, rng)[0], frame)
    velocity, acceleration = rng.normal(size=(2, 6))
    by_axis = rng.uniform(10.0, 40.0, 6), rng.uniform(5.0, 10.0, 6)
    for gain, (kp, kd) in ((0.0, (30.0, 9.0)), (10.0, by_axis)):
        control = lw.control.operational_space_control(
            arm, frame, lambda t: (pose, velocity, acceleration), kp, kd, rng.normal(size=8), gain, gain
        )
        a = lw.forward_dynamics(arm, q, v, control(0.0, q, v))
        moved = lw.frame_acceleration(arm, q, v, a, frame, frame="world_aligned", classical=True)
        at = lw.frame_pose(arm, q, frame)
        way = lw.kinematics.so3.log(pose[:3, :3] @ lw.kinematics.so3.inverse(at[:, :3, :3]))
        error = np.concatenate([way, pose[:3, 3] - at[:, :3, 3]], axis=-1)
        rate = lw.frame_velocity(arm, q, v, frame, frame="world_aligned")
        np.testing.assert_allclose(moved, acceleration + kd * (velocity - rate) + kp * error, rtol=1e-8, atol=1e-8)


def test_a_position_is_reached_and_the_posture_as_far_as_it_lets():
    arm = lw.mechanisms.planar_arm(4)
    goal, posture = np.array([2.0, 1.5, 0.0]), np.full(4, 0.4)
    control = lw.control.operational_space_control(arm, "tip", goal, 50.0, 14.0, posture, 20.0, 9.0)
    q, v = lw.rollout(arm, np.full(4, 0.3), None, None, 2e-3, 4000, feedback=control, final_only=True)
    np.testing.assert_allclose(lw.frame_pose(arm, q, "tip")[:3, 3], goal, atol=1e-5)
    jacobian = lw.jacobian(arm, q, "tip", "world_aligned")[3:5]
    inertia = lw.mass_matrix(arm, q)
    # At rest M u0 is balanced by a force at the tip: u0 has no part that the tip does not feel.
    left = inertia @ (posture - q)
    np.testing.assert_allclose(left - jacobian.T @ np.linalg.lstsq(jacobian.T, left, rcond=None)[0], 0.0, atol=1e-4)
    np.testing.assert_allclose(v, 0.0, atol=1e-4)


def light_wrist(unit: float = 1.0) -> lw.Mechanism:
    """A column, two links of an arm that slides out, and three axes that meet, ten thousand times lighter; lengths in
    metres / ``unit``."""
    builder = lw.Builder()
    y, z = (0, 1, 0), (0, 0, 1)
    joints = [
        lw.Revolute(z),
        lw.Revolute(y),
        lw.Prismatic((1, 0, 0)),
        lw.Revolute((1, 0, 0)),
        lw.Revolute(y),
        lw.Revolute(z),
    ]
    places = [(0, 0, 0.2), (0.1, 0, 0.1), (0.4, 0, 0), (0.3, 0, 0), (0, 0, 0), (0, 0, 0.08)]
    parent = "ground"
    for k, (joint, place) in enumerate(zip(joints, places, strict=True)):
        heavy = 8.0 if k < 3 else 8e-4
        centre = (0.15 * unit, 0.02 * unit, 0.01 * unit) if k < 3 else (0.01 * unit, 0.0, 0.02 * unit)
        inertia = heavy * unit**2 * np.array([0.01, 0.02, 0.03]) * (1.0 if k < 3 else 0.05)
        builder.link(f"link{k}", heavy, centre, inertia)
        builder.joint(f"joint{k}", joint, parent, f"link{k}", unit * np.array(place))
        parent = f"link{k}"
    builder.frame("tool", parent, (unit * 0.05, 0.0, unit * 0.1))
    return builder.build("light_wrist", gravity=(0.0, 0.0, -9.81 * unit))


def textbook(arm: lw.Mechanism, frame: str, target: np.ndarray, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """J* (J M^-1 J*)^-1 (100 e - 20 J v - dJ/dt v - J u0) + ID(q, v, u0), u0 = 10 (posture - q) - 6 v."""
    jacobian, at = lw.jacobian(arm, q, frame, "world_aligned"), lw.frame_pose(arm, q, frame)
    error = np.r_[lw.kinematics.so3.log(target[:3, :3] @ at[:3, :3].T), target[:3, 3] - at[:3, 3]]
    bias = lw.kinematics.jacobian_rate_times_velocity(arm, q, v, frame, "world_aligned")
    own = 10.0 * (arm.initial - q) - 6.0 * v
    wanted = 100.0 * error - 20.0 * jacobian @ v - bias - jacobian @ own
    mobility = jacobian @ np.linalg.solve(lw.mass_matrix(arm, q), jacobian.T)
    return jacobian.T @ np.linalg.solve(mobility, wanted) + lw.inverse_dynamics(arm, q, v, own)


def test_light_wrists_on_heavy_arms_are_no_singular_position():
    """Nor is the unit of lengths: in millimetres joints move alike."""
    arm, small = light_wrist(), light_wrist(1000.0)
    lengths = np.where(np.arange(6) == 2, 1000.0, 1.0)
    q, v = np.array([0.3, -0.4, 0.1, 0.5, 0.9, -0.3]), np.array([0.2, 0.1, -0.1, 0.3, -0.2, 0.4])
    jacobian = lw.jacobian(arm, q, "tool", "world_aligned")
    mobility = np.linalg.eigvalsh(jacobian @ np.linalg.solve(lw.mass_matrix(arm, q), jacobian.T))
    assert mobility[-1] > 1e5 * mobility[0] and np.linalg.cond(jacobian) < 30.0
    target = lw.frame_pose(arm, q, "tool")
    target[:3, 3] += [0.05, -0.05, 0.05]
    tau = lw.control.operational_space_control(arm, "tool", target)(0.0, q, v)
    np.testing.assert_allclose(tau, textbook(arm, "tool", target, q, v), rtol=1e-7, atol=1e-7)
    target[:3, 3] *= 1000.0
    other = lw.control.operational_space_control(small, "tool", target)(0.0, q * lengths, v * lengths)
    a, b = lw.forward_dynamics(arm, q, v, tau), lw.forward_dynamics(small, q * lengths, v * lengths, other)
    np.testing.assert_allclose(b, a * lengths, rtol=1e-6, atol=1e-6)


def test_at_singular_positions_only_the_lost_direction_is_left_out():
    """Two axes of the wrist in line: the frame goes where it can, forces are finite, and the posture has the rest."""
    arm = light_wrist()
    q, v = np.array([0.3, -0.4, 0.1, 0.5, 0.0, -0.3]), np.zeros(6)
    q[4] = np.pi / 2.0  # the axis of joint5 along that of joint3
    length = np.hypot(0.1, 0.1) + 0.4 + 0.3 + 0.08 + np.hypot(0.05, 0.1)  # from the column to the tool
    units = np.array([1.0, 1.0, 1.0, length, length, length])
    jacobian = lw.jacobian(arm, q, "tool", "world_aligned")
    directions, sizes, _ = np.linalg.svd(jacobian / units[:, None])
    assert sizes[-1] < 1e-12 < 1e-2 < sizes[-2]
    target = lw.frame_pose(arm, q, "tool")
    target[:3] = lw.kinematics.so3.exp([0.1, 0.2, -0.1]) @ target[:3]
    control = lw.control.operational_space_control(arm, "tool", target, posture_kp=0.0)
    at = lw.frame_pose(arm, q, "tool")
    wanted = 100.0 * np.r_[0.1, 0.2, -0.1, target[:3, 3] - at[:3, 3]]
    expected = wanted - units * directions[:, -1] * (directions[:, -1] @ (wanted / units))
    assert np.abs(expected - wanted).max() > 1.0
    a = lw.forward_dynamics(arm, q, v, control(0.0, q, v))
    np.testing.assert_allclose(jacobian @ a, expected, atol=1e-4 * np.abs(wanted).max())
    close = np.linspace(-0.2, 0.2, 401)[:, None] * (np.arange(6) == 4) + q
    forces = control(0.0, close, np.zeros((401, 6)))
    assert np.abs(forces).max() < 100.0 * np.abs(control(0.0, close[0], v)).max()


def left_out(arm: lw.Mechanism, frame: str, target: np.ndarray, length: float, q: np.ndarray, v: np.ndarray):
    """The textbook's law in the directions that a frame has at a singular position, found by singular values."""
    units = np.array([1.0, 1.0, 1.0, length, length, length])
    jacobian = lw.jacobian(arm, q, frame, "world_aligned") / units[:, None]
    directions, sizes, _ = np.linalg.svd(jacobian)
    assert sizes[-1] < 1e-12 < 0.05 < sizes[-2]
    at, own = lw.frame_pose(arm, q, frame), 10.0 * (arm.initial - q) - 6.0 * v
    error = np.r_[lw.kinematics.so3.log(target[:3, :3] @ at[:3, :3].T), target[:3, 3] - at[:3, 3]]
    bias = lw.kinematics.jacobian_rate_times_velocity(arm, q, v, frame, "world_aligned")
    wanted = (100.0 * error - bias) / units - jacobian @ (20.0 * v + own)
    left = directions[:, :-1].T
    mobility = left @ jacobian @ np.linalg.solve(lw.mass_matrix(arm, q), jacobian.T) @ left.T
    return jacobian.T @ left.T @ np.linalg.solve(mobility, left @ wanted) + lw.inverse_dynamics(arm, q, v, own)


@pytest.mark.parametrize(("elbow", "wrist"), [(0.3, 0.0), (-2.3, 0.9), (-1.5, 0.9)])
def test_forces_do_not_jump_at_singular_positions(puma, elbow, wrist):
    """Axes of the wrist in line, the wrist above the shoulder, the arm stretched: from all sides forces tend to the law
    without the lost direction, which is that of the singular position itself."""

    def determinant(angle):
        return np.linalg.det(lw.jacobian(puma, [0.3, -1.2, angle, 0.4, 0.9, 0.3], "link6"))

    angle = brentq(determinant, elbow - 0.1, elbow + 0.1, xtol=1e-15) if elbow < 0.0 else elbow
    q, v = np.array([0.3, -1.2, angle, 0.4, wrist, 0.3]), np.array([0.3, -0.2, 0.5, 0.1, 0.2, -0.4])
    control = lw.control.operational_space_control(puma, "link6", np.eye(4))
    expected = left_out(puma, "link6", np.eye(4), length_of_arm(puma, "link6"), q, v)
    distances = np.array([0.0, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5])[:, None]
    for way in np.random.default_rng(0).normal(size=(4, 6)):
        forces = control(0.0, q + distances * way, np.tile(v, (6, 1)))
        np.testing.assert_allclose(forces, np.tile(expected, (6, 1)), rtol=1e-4, atol=1e-2)
        change = np.abs(np.diff(forces, axis=0)).max(axis=-1) / np.diff(distances[:, 0])
        assert change.max() < 5e3 * np.abs(expected).max()  # steep beside a singular position, but no jump


def test_targets_that_are_no_poses_are_refused_as_by_inverse_kinematics(puma):
    q, rest = np.array([0.1, -0.6, 0.4, 0.2, 0.5, 0.3]), np.zeros(6)
    pose = lw.frame_pose(puma, q, "link6")
    scaled, mirrored = pose.copy(), pose.copy()
    scaled[:3, :3] *= 2.0
    mirrored[:, 0] *= -1.0
    for wrong in (pose.T, scaled, mirrored, np.diag([2.0, 1.0, 1.0, 1.0]), np.nan * pose, (2.0 * pose[:3, :3], q[:3])):
        with pytest.raises(lw.MechanismError) as known:
            lw.inverse_kinematics(puma, {"link6": wrong}, q)
        later = lw.control.operational_space_control(puma, "link6", lambda t, wrong=wrong: pose if t < 0.5 else wrong)
        for ask in (
            lambda wrong=wrong: lw.control.operational_space_control(puma, "link6", wrong),
            lambda wrong=wrong: lw.control.operational_space_control(puma, "link6", lambda t: (wrong, rest, rest)),
            lambda later=later: later(1.0, q, rest),
        ):
            with pytest.raises(lw.MechanismError) as refused:
                ask()
            assert str(refused.value) == str(known.value)


def test_targets_may_be_a_rotation_and_a_position(puma):
    q, rest, v = np.array([0.1, -0.6, 0.4, 0.2, 0.5, 0.3]), np.zeros(6), np.full(6, 0.2)
    pose = lw.frame_pose(puma, q + 0.1, "link6")
    rotation, position = pose[:3, :3], pose[:3, 3]
    expected = lw.control.operational_space_control(puma, "link6", pose)(0.0, q, v)
    pair = (rotation, position)
    for target in (pair, pair[::-1], (rotation.tolist(), position.tolist()), (pair, rest), (pair, rest, rest)):
        for given in (target, lambda t, target=target: target):
            assert np.array_equal(lw.control.operational_space_control(puma, "link6", given)(0.0, q, v), expected)
    with pytest.raises(lw.MechanismError, match=r"write \(\(rotation, position\), velocity, acceleration\)"):
        lw.control.operational_space_control(puma, "link6", (rotation, position, rest))
    with pytest.raises(lw.MechanismError, match=r"or \(rotation \(3, 3\), position \(3,\)\), got shape \(3, 3\)"):
        lw.control.operational_space_control(puma, "link6", rotation)
    with pytest.raises(lw.MechanismError, match=r"got shape \(0,\)"):
        lw.control.operational_space_control(puma, "link6", ())


def test_a_motion_into_singular_positions_is_followed(puma):
    """A target at the origin of the base: the arm folds, and two directions are lost on the way."""
    control = lw.control.operational_space_control(puma, "link6", np.eye(4))
    run = lw.simulate(puma, [0.1, -0.6, 0.4, 0.2, 0.5, 0.3], None, 1.5, control)
    assert run.stopped == "duration" and run.evaluations < 20_000
    sizes = np.linalg.svd(lw.jacobian(puma, run.q, "link6"), compute_uv=False)
    assert (sizes[:, -2] < 0.02).any() and sizes[:, -1].min() < 1e-3
    q, v = lw.rollout(puma, run.q[0], None, None, 1e-4, 15000, feedback=control, final_only=True)
    np.testing.assert_allclose(np.r_[q, v], np.r_[run.q[-1], run.v[-1]], atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "frame", "locked"),
    [
        ("ur_description/urdf/ur10_robot.urdf", "tool0", []),
        ("ur_description/urdf/ur5_robot.urdf", "tool0", []),
        ("panda_description/urdf/panda.urdf", "panda_hand", []),
        (
            "tiago_description/robots/tiago_no_hand.urdf",
            "arm_tool_link",
            ["wheel_right_joint", "wheel_left_joint", "head_1_joint", "head_2_joint"],
        ),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_robots_reach_poses_as_fast_as_the_gains_say(path, frame, locked):
    pin = pytest.importorskip("pinocchio")
    file = Path(pin.__file__).parents[4] / "share" / "example-robot-data" / "robots" / path
    if not file.exists():
        pytest.skip("example-robot-data is not installed")
    robot = lw.load(file).with_acting(False).with_locked(locked)
    rng = np.random.default_rng(0)
    states = [lw.random_state(robot, rng, within_limits=True)[0] for _ in range(20)]
    start = max(states, key=lambda q: np.linalg.svd(lw.jacobian(robot, q, frame), compute_uv=False)[-1])
    target = lw.frame_pose(robot, start, frame)
    target[:3, 3] += [0.02, -0.02, 0.02]
    control = lw.control.operational_space_control(robot, frame, target, posture=start)
    q, _ = lw.rollout(robot, start, None, None, 1e-3, 500, feedback=control)
    t = 1e-3 * np.arange(501)
    error = lw.frame_pose(robot, q, frame)[:, :3, 3] - target[:3, 3]
    np.testing.assert_allclose(error, -np.outer((1.0 + 10.0 * t) * np.exp(-10.0 * t), [0.02, -0.02, 0.02]), atol=1e-5)
