"""Motions that motors do not reach, such as that about the line through two feet: refused for the true reason, and
what the message advises works."""

from __future__ import annotations

import re

import numpy as np
import pytest

import linkwise as lw
from linkwise import constraints

ROBOT = lw.mechanisms.quadruped(())
TOES = [name for name in ROBOT.frames if name.endswith("_toe")]
STAND = ROBOT.initial
HELD = lw.contact.hold_frames(ROBOT, TOES, STAND, points=True)
MOTORS = HELD.joint_names[1:]
TRUNK = [f"trunk_joint.{axis}" for axis in ("wx", "wy", "wz", "vx", "vy", "vz")]


def line_of(message: str) -> tuple[np.ndarray, np.ndarray]:
    numbers = re.search(r"about the line through \((.*?)\) along \((.*?)\) of the world", message)
    assert numbers, message
    through, along = (np.array([float(x) for x in group.split(",")]) for group in numbers.groups())
    return through, along


@pytest.mark.parametrize("feet", [(0, 3), (1, 2), (0, 1), (0, 2)])
def test_the_line_through_two_feet_is_named(feet):
    """As loops of two feet, and of four of which two hold."""
    rng = np.random.default_rng(feet[1])
    q = lw.integrate(ROBOT, STAND, 0.3 * rng.normal(size=ROBOT.nv), 1.0)
    places = [lw.frame_pose(ROBOT, q, TOES[k])[:3, 3] for k in feet]
    two = lw.contact.hold_frames(ROBOT, [TOES[k] for k in feet], q, points=True)
    four, active = lw.contact.hold_frames(ROBOT, TOES, q, points=True), np.isin(np.arange(4), feet)
    for held, more in ((two, {}), (four, {"active": active})):
        with pytest.raises(lw.MechanismError, match="in 1 of the 12 degrees of freedom, the rotation of") as refused:
            lw.inverse_dynamics(held, q, None, None, actuated=MOTORS, **more)
        assert " too" not in str(refused.value) and "actuate" not in str(refused.value)
        assert "11 independent joints or coordinates alone" in str(refused.value)
        through, along = line_of(str(refused.value))
        for place in places:
            assert np.linalg.norm(np.cross(place - through, along)) < 0.01


def test_what_is_left_free_follows():
    """All but one acceleration of the trunk, and the legs in the air: motors produce them, whatever is left out."""
    rng = np.random.default_rng(0)
    active = np.array([True, False, False, True])
    for left_out in TRUNK:
        wanted = dict(
            zip([one for one in TRUNK if one != left_out] + list(MOTORS[3:9]), rng.normal(size=11), strict=True)
        )
        tau = lw.inverse_dynamics(HELD, STAND, None, wanted, actuated=MOTORS, active=active)
        assert not tau[:6].any()
        a = dict(zip(HELD.v_names, lw.forward_dynamics(HELD, STAND, None, tau, active=active), strict=True))
        np.testing.assert_allclose([a[name] for name in wanted], list(wanted.values()), atol=1e-8)


def test_batches_name_their_first_state():
    """Standing on four feet, on two, on one and on none."""
    active = np.array([[1, 1, 1, 1], [1, 0, 0, 1], [0, 0, 1, 0], [0, 0, 0, 0]], dtype=bool)
    told = r"in state \(1,\) and 2 more: .*in 1 of the 12 degrees of freedom"
    with pytest.raises(lw.MechanismError, match=told):
        lw.inverse_dynamics(HELD, STAND, None, None, actuated=MOTORS, active=active)
    for feet, count, dofs in ((2, 3, 15), (3, 6, 18)):
        told = f"in {count} of the {dofs} degrees of freedom no joint moves but 'trunk_joint', which no motor drives"
        with pytest.raises(lw.MechanismError, match=told):
            lw.inverse_dynamics(HELD, STAND, None, None, actuated=MOTORS, active=active[feet])


def test_motors_that_would_help_are_asked_for():
    """Some of the motors are not named: with them four feet carry the robot, two do not."""
    most = MOTORS[:-3]
    with pytest.raises(lw.MechanismError, match="actuate at least as many joints") as refused:
        lw.inverse_dynamics(HELD, STAND, None, None, actuated=MOTORS[:4])
    assert "which no motor drives" not in str(refused.value)
    with pytest.raises(lw.MechanismError, match="actuate at least as many joints.*; in 1 of the 12 .* no motor drives"):
        lw.inverse_dynamics(HELD, STAND, None, None, actuated=most, active=np.array([True, False, False, True]))


def test_coordinates_that_are_named_are_not_asked_for():
    two = lw.contact.hold_frames(ROBOT, [TOES[0], TOES[3]], STAND, points=True)
    with pytest.raises(lw.MechanismError, match="12 coordinates were chosen, and the others do not follow") as refused:
        constraints.null_space(two, STAND, independent=MOTORS)
    assert " too" not in str(refused.value)
    with pytest.raises(lw.MechanismError, match="name 'rear_left_knee_joint' too") as refused:
        constraints.null_space(two, STAND, independent=[name for name in MOTORS if name != "rear_left_knee_joint"])
    assert "front_right_knee_joint" not in str(refused.value)
