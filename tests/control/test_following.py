"""What was simulated is followed by every controller that follows a motion."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import linkwise as lw


def test_a_trajectory_is_followed_as_the_motion_that_it_is():
    arm = lw.mechanisms.planar_arm(3)
    start, end = np.array([0.2, 0.1, 0.3]), np.array([0.7, 0.4, -0.2])
    planned = lw.trajectories.point_to_point(arm, start, end, 0.5)
    made = lw.simulate(arm, start, None, 0.5, control=lw.control.computed_torque(arm, planned))
    at = np.array([-1.0, 0.2, 0.33, 2.0])
    for one, other, error in zip(made(at), planned(at), (1e-7, 1e-6, 1e-4), strict=True):
        np.testing.assert_allclose(one, other, atol=error)
    for control in (
        lw.control.computed_torque(arm, made),
        lw.control.decoupled_tracking(arm, made),
        lw.control.operational_space_control(arm, "link3", made, posture=end),
        lw.control.operational_space_control(arm, "link3", planned, posture=end),
    ):
        again, _ = lw.rollout(arm, start, None, None, 1e-3, 500, feedback=control)
        np.testing.assert_allclose(again[-1], end, atol=1e-5)
        np.testing.assert_allclose(
            lw.frame_pose(arm, again[250], "link3"), lw.frame_pose(arm, planned(0.25)[0], "link3"), atol=1e-5
        )
    assert np.isfinite(pickle.loads(pickle.dumps(made))(0.1)[0]).all()
    with pytest.raises(lw.MechanismError, match="computed_torque.*follow motions"):
        lw.control.joint_feedback(arm, made)
    with pytest.raises(lw.MechanismError, match=r"trajectories\.sampled\(mech, t, q, v, a\)"):
        lw.control.computed_torque(arm, made.q)
    batch = lw.simulate(arm, np.array([start, end]), None, 0.1, method="rk4", step=0.01)
    with pytest.raises(lw.MechanismError, match=r"trajectory\.member\(index\)"):
        lw.control.computed_torque(arm, batch)(0.0, start, start)
