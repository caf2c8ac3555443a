"""Inverse kinematics of robots from files, judged by Pinocchio's forward kinematics; limits of the files are kept."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw

from .robots import load, pin, robot

ARMS = {
    "ur_description/urdf/ur5_robot.urdf": "tool0",
    "panda_description/urdf/panda.urdf": "panda_hand",
    "talos_data/robots/talos_left_arm.urdf": "gripper_left_base_link",
}


@pytest.mark.parametrize(
    "path", [list(ARMS)[0], *(pytest.param(path, marks=pytest.mark.slow) for path in list(ARMS)[1:])]
)
def test_reachable_poses_are_reached(path):
    mech, frame = load(robot(path)), ARMS[path]
    wanted, _ = lw.random_state(mech, np.random.default_rng(0), (1000,), within_limits=True)
    poses = lw.frame_pose(mech, wanted, frame)
    found = lw.inverse_kinematics(mech, {frame: poses})
    assert found.converged.mean() >= 0.995
    assert ((found.q >= mech.limits.lower) & (found.q <= mech.limits.upper)).all()
    model = pin.buildModelFromUrdf(str(robot(path)))
    data, number = model.createData(), model.getFrameId(frame)
    places = [
        (model.joints[model.getJointId(body.joint)].idx_q, mech.coordinates.place(body.joint)) for body in mech.bodies
    ]
    for q, pose in zip(found.q[found.converged][:200], poses[found.converged][:200], strict=True):
        theirs = pin.neutral(model)
        for index, place in places:
            theirs[index] = place.ratio * q[place.q_index.start] + place.offset
        pin.framesForwardKinematics(model, data, theirs)
        way = pin.SE3(pose[:3, :3], pose[:3, 3]).actInv(data.oMf[number])
        assert np.linalg.norm(way.translation) < 1.01e-8 and np.linalg.norm(pin.log3(way.rotation)) < 1.01e-8


@pytest.mark.slow
def test_a_humanoid_reaches_with_hands_and_feet():
    mech = load(robot("talos_data/robots/talos_reduced.urdf"), floating_base=True)
    frames = ("gripper_left_base_link", "gripper_right_base_link", "left_sole_link", "right_sole_link")
    q, _ = lw.random_state(mech, np.random.default_rng(0), (32,), within_limits=True)
    poses = {frame: lw.frame_pose(mech, q, frame) for frame in frames}
    found = lw.inverse_kinematics(mech, poses, mech.initial)
    good = found.converged
    assert good[0] and good.mean() > 0.9  # random postures of all limbs, far from where it starts
    for frame in frames:
        np.testing.assert_allclose(lw.frame_pose(mech, found.q[good], frame), poses[frame][good], atol=3e-8)
    near = lw.inverse_kinematics(mech, {frame: pose[0] for frame, pose in poses.items()}, posture=mech.initial)
    assert near.converged and ((near.q >= mech.limits.lower) & (near.q <= mech.limits.upper)).all()
