"""Inverse kinematics of the centre of mass: robots stand with it where it is wanted, beside targets of frames."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.mechanism.scales import scales

FEET = ("left_sole", "right_sole")


def center(mech: lw.Mechanism, q: np.ndarray) -> np.ndarray:
    """By the definition: the mean of the links' centres, weighted by mass."""
    poses = lw.link_poses(mech, q)
    places = (poses[..., :3, :3] @ mech.parameters.coms[:, :, None])[..., 0] + poses[..., :3, 3]
    return (mech.parameters.masses[:, None] * places).sum(axis=-2) / mech.parameters.masses.sum()


@pytest.fixture(scope="module")
def humanoid() -> lw.Mechanism:
    free = lw.mechanisms.humanoid(held=())
    return free.with_limits({"left_shank_joint": lw.Limits(-0.1, 2.0), "right_shank_joint": lw.Limits(-0.1, 2.0)})


def test_a_humanoid_stands_on_one_foot_and_leans_with_both_feet_held(humanoid):
    q0 = lw.neutral(humanoid)
    feet = {name: lw.frame_pose(humanoid, q0, name) for name in FEET}
    over = np.linspace(feet["left_sole"][:2, 3], feet["right_sole"][:2, 3], 9)
    target = lw.kinematics.CenterOfMassTarget(over, axes="xy")
    found = lw.inverse_kinematics(humanoid, feet, q0, posture=q0, center_of_mass=target)
    assert found.q.shape == (9, humanoid.nq) and found.converged.all() and (found.attempts == 1).all()
    for name, pose in feet.items():
        np.testing.assert_allclose(lw.frame_pose(humanoid, found.q, name), np.broadcast_to(pose, (9, 4, 4)), atol=3e-8)
    np.testing.assert_allclose(center(humanoid, found.q)[:, :2], over, atol=2e-8)
    knees = found.q[:, [humanoid.q_index(f"{side}_shank_joint").start for side in ("left", "right")]]
    assert (knees >= -0.1).all() and (knees <= 2.0).all()
    # The posture is kept as far as the targets allow: nothing of the way to it is left in their null space.
    rows = [lw.jacobian(humanoid, found.q, name, frame="world_aligned") for name in FEET]
    rows = np.concatenate([*rows, lw.centroidal.center_of_mass_jacobian(humanoid, found.q)[:, :2]], axis=1)
    free = np.abs(knees - [-0.1, -0.1]).min(axis=1) > 1e-6
    # Metres are compared with radians in units of the mechanism's length.
    way, rows = lw.difference(humanoid, found.q, q0) / scales(humanoid).of_v, rows * scales(humanoid).of_v
    left = way - np.einsum("nij,nj->ni", np.linalg.pinv(rows) @ rows, way)
    assert free.sum() > 4 and np.abs(left[free]).max() < 1e-5


def test_other_axes_no_frames_loops_and_what_is_out_of_reach(humanoid):
    q0 = lw.neutral(humanoid)
    high = lw.kinematics.CenterOfMassTarget([[0.8], [0.85]], axes="z")
    feet = {name: lw.frame_pose(humanoid, q0, name) for name in FEET}
    squat = lw.inverse_kinematics(humanoid, feet, q0, center_of_mass=high)
    one = lw.inverse_kinematics(humanoid, feet, q0, center_of_mass=lw.kinematics.CenterOfMassTarget(0.8, axes="z"))
    np.testing.assert_array_equal(one.q, squat.q[0])
    np.testing.assert_allclose(center(humanoid, squat.require())[:, 2], [0.8, 0.85], atol=2e-8)
    arm = lw.mechanisms.planar_arm(3)
    wanted = center(arm, np.array([0.3, 0.5, -0.4]))
    alone = lw.inverse_kinematics(arm, {}, center_of_mass=wanted).require()
    np.testing.assert_allclose(center(arm, alone), wanted, atol=2e-8)
    far = lw.inverse_kinematics(arm, {}, center_of_mass=(9.0, 0.0, 0.0), attempts=2)
    assert not far.converged and far.error == pytest.approx(9.0 - np.linalg.norm(center(arm, np.zeros(3))), rel=1e-3)
    linkage = lw.mechanisms.five_bar()
    start = lw.constraints.assemble(linkage, linkage.initial)
    aside = center(linkage, start) + (0.02, 0.03, 0.0)
    moved = lw.inverse_kinematics(linkage, {}, start, center_of_mass=aside).require()
    np.testing.assert_allclose(center(linkage, moved), aside, atol=2e-8)
    assert np.abs(lw.constraints.position_error(linkage, moved)).max() < 1e-10


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: lw.kinematics.CenterOfMassTarget((0, 0), axes="xw"), 'must be some of "x", "y", "z"'),
        (
            lambda: lw.kinematics.CenterOfMassTarget((0, 0), weight=-1.0),
            "weight of a CenterOfMassTarget must be a positive",
        ),
        (
            lambda: lw.kinematics.CenterOfMassTarget((0, 0, 0), axes="xy"),
            r"axes 'xy' and must have shape \(\.\.\., 2\), got \(3,\)",
        ),
        (
            lambda: (0.0, 0.0),
            r"shape \(\.\.\., 3\), got \(2,\): for some axes write linkwise.kinematics.CenterOfMassTarget",
        ),
        (lambda: (0.0, np.nan, 0.0), "must be finite"),
    ],
)
def test_bad_input(make, message):
    arm = lw.mechanisms.planar_arm(2)
    with pytest.raises(ValueError, match=message):
        lw.inverse_kinematics(arm, {}, center_of_mass=make())
