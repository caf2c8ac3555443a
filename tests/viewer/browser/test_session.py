"""What a viewer computes: configurations from sliders and hands, motions over time, what is drawn over them."""

import numpy as np
import pytest

import linkwise as lw
from linkwise.viewer.browser import overlays
from linkwise.viewer.browser.dragging import Hand, Live
from linkwise.viewer.browser.player import Player, clip_of, clip_of_mode
from linkwise.viewer.browser.session import Scale, Session


@pytest.fixture(scope="module")
def five_bar():
    return lw.mechanisms.five_bar()


@pytest.fixture(scope="module")
def arm():
    limits = lw.Limits([-1.0], [2.0])
    return lw.mechanisms.planar_arm(3).with_limits(joint2=limits)


def gap(mech, q):
    """By how much a five-bar is open, from its poses: the ends of its two halves are one point."""
    (loop,) = mech.loops
    ends = [
        lw.frame_pose(mech, q, link) @ np.append(pose[1], 1.0)
        for link, pose in ((loop.link_a, loop.pose_a), (loop.link_b, loop.pose_b))
    ]
    return np.abs(ends[0] - ends[1]).max()


# -- sliders ------------------------------------------------------------------------------------------


def test_sliders_have_limits_in_degrees(arm):
    session = Session(arm)
    one = session.sliders["joint2"]
    assert one.unit == "°" and one.low == pytest.approx(-np.degrees(1.0)) and one.high == pytest.approx(np.degrees(2.0))
    assert (session.sliders["joint1"].low, session.sliders["joint1"].high) == (-180.0, 180.0)
    session.move("joint2", 90.0)
    np.testing.assert_allclose(session.q, [0.0, np.pi / 2.0, 0.0])
    assert session.values["joint2"] == pytest.approx(90.0)
    np.testing.assert_allclose(session.poses, lw.link_poses(arm, [0.0, np.pi / 2.0, 0.0]))


def test_orientations_have_three_angles():
    session = Session(lw.mechanisms.quadruped().spanning_tree)
    for name, value in (("trunk_joint.yaw", 30.0), ("trunk_joint.pitch", -20.0), ("trunk_joint.x", 0.3)):
        session.move(name, value)
    found = session.values
    assert found["trunk_joint.yaw"] == pytest.approx(30.0) and found["trunk_joint.pitch"] == pytest.approx(-20.0)
    assert session.sliders["trunk_joint.x"].unit == "m" and found["trunk_joint.x"] == pytest.approx(0.3)
    assert np.linalg.norm(session.q[:4]) == pytest.approx(1.0) or np.linalg.norm(session.q[3:7]) == pytest.approx(1.0)


def test_a_slider_of_a_loop_moves_the_others(five_bar):
    session = Session(five_bar)
    before = session.q.copy()
    session.move("joint1", session.values["joint1"] + 15.0)
    assert session.q[0] - before[0] == pytest.approx(np.radians(15.0))
    assert np.abs(session.q[1:] - before[1:]).max() > 0.01
    assert session.gap < 1e-9 and gap(five_bar, session.q) < 1e-6


def test_what_loops_do_not_allow_is_shown_and_not_jumped_to():
    session = Session(lw.mechanisms.four_bar())
    (joint, *_) = session.sliders
    path = [session.q]
    for value in np.linspace(session.values[joint], session.values[joint] + 350.0, 36):
        session.move(joint, float(value))
        path.append(session.q)
        if session.status:
            break
    assert session.gap < 1e-9
    if session.status:
        assert "locks here" in session.status
    else:
        assert np.abs(np.diff(path, axis=0)).max() < 1.0  # a crank that goes round, without jumps


def test_other_motors_stand_still_if_they_are_held(five_bar):
    session = Session(five_bar)
    before, session.held = session.q.copy(), ("joint1", "joint4")
    session.move("joint1", session.values["joint1"] + 2.0)
    assert session.q[3] == pytest.approx(before[3], abs=1e-12) and session.gap < 1e-9
    assert session.q[0] - before[0] == pytest.approx(np.radians(2.0))


def test_hands_move_what_drives_would():
    builder = lw.Builder()
    builder.link("arm", 1.0, (0.5, 0.0, 0.0), (0.1, 0.1, 0.1))
    builder.joint("elbow", lw.Revolute((0.0, 0.0, 1.0)), "ground", "arm")
    session = Session(builder.drive("motor", "elbow", lambda t: 0.5 * t).build("driven"))
    session.move("elbow", 30.0)
    np.testing.assert_allclose(session.q, [np.radians(30.0)])


# -- hands --------------------------------------------------------------------------------------------


def test_a_point_of_a_loop_is_dragged_and_stays_closed(five_bar):
    session = Session(five_bar)
    hand = Hand(five_bar.link_names[1], np.array([0.1, 0.0, 0.0]))
    start = hand.position(five_bar, session.q)
    last = session.q
    for k in range(12):
        goal = start + 0.01 * k * np.array([0.5, -1.0, 0.0])
        reached = session.drag(hand, goal)
        assert gap(five_bar, session.q) < 1e-6 and reached.distance < 1e-5
        np.testing.assert_allclose(hand.position(five_bar, session.q), goal, atol=1e-5)
        assert np.abs(session.q - last).max() < 0.3, "no jump to another branch"
        last = session.q
    session.drag(hand, start + [0.0, 0.0, 0.4])  # out of its plane
    assert "out of reach" in session.status and session.gap < 1e-9
    np.testing.assert_allclose(session.target, start + [0.0, 0.0, 0.4])
    np.testing.assert_allclose(hand.position(five_bar, session.q)[2], start[2], atol=1e-9)


def test_an_arm_is_dragged_within_its_limits(arm):
    session = Session(arm, [0.3, 0.5, 0.4])
    hand = Hand("link3", np.array([0.2, 0.0, 0.0]))
    goal = hand.position(arm, [0.6, 0.2, 0.9])
    for _ in range(20):
        reached = session.drag(hand, goal)
    assert reached.distance < 1e-5 and session.status == ""
    for _ in range(40):  # far away: stretched towards it, and within limits
        session.drag(hand, np.array([-50.0, 20.0, 0.0]))
    assert arm.limits.lower[1] <= session.q[1] <= arm.limits.upper[1] and "out of reach" in session.status
    away = hand.position(arm, session.q)
    assert away @ (-50.0, 20.0, 0.0) > 0.9 * np.linalg.norm(away) * np.hypot(50.0, 20.0)


def test_an_orientation_is_dragged_too(arm):
    session = Session(arm, [0.3, 0.5, 0.4])
    hand = Hand("link3", np.zeros(3))
    pose = lw.frame_pose(arm, [0.5, 0.6, -0.3], "link3")
    for _ in range(30):
        reached = session.drag(hand, pose[:3, 3], pose[:3, :3])
    assert reached.distance < 1e-5 and reached.angle < 1e-5
    np.testing.assert_allclose(lw.frame_pose(arm, session.q, "link3"), pose, atol=1e-5)


# -- motions ------------------------------------------------------------------------------------------


def test_motions_are_played_scrubbed_and_repeated(arm):
    q = np.linspace([0.0, 0.0, 0.0], [1.0, 0.5, -1.0], 11)
    player = Player(clip_of(arm, q, np.linspace(2.0, 4.0, 11)))
    assert (player.clip.start, player.clip.end) == (2.0, 4.0) and not player.advance(1.0)
    player.play()
    player.speed = 2.0
    assert player.advance(0.5) and player.time == pytest.approx(3.0)
    np.testing.assert_allclose(player.clip.at(player.time)[0], [0.5, 0.25, -0.5])
    np.testing.assert_allclose(player.clip.velocities(3.1)[0], [0.5, 0.25, -0.5])
    player.advance(0.75)
    assert player.time == pytest.approx(2.5) and player.playing, "again from the beginning"
    player.repeats = False
    player.advance(10.0)
    assert player.time == 4.0 and not player.playing
    player.play()
    assert player.time == 2.0
    player.seek(99.0)
    assert player.time == 4.0


def test_batches_are_played_beside_each_other(arm):
    starts = np.array([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]])
    q, v = lw.rollout(arm, starts, np.zeros(3), None, 0.01, 20)
    clip = clip_of(arm, q, 0.01 * np.arange(21))
    assert len(clip.motions) == 2
    np.testing.assert_allclose(clip.at(0.0), starts)
    np.testing.assert_allclose(clip.at(0.1), q[:, 10])
    motion = lw.simulate(arm, starts[0], np.zeros(3), 0.1)
    played = clip_of(motion)
    np.testing.assert_allclose(played.velocities(0.05)[0], motion.at(0.05)[1])
    assert played.forces["reactions"].shape == (len(motion.t), 3, 6)
    assert len(clip_of([motion, motion]).motions) == 2
    way = played.path("link3", np.zeros(3))
    np.testing.assert_allclose(way[-1], lw.frame_pose(arm, motion.q[-1], "link3")[:3, 3], atol=1e-9)


def test_modes_are_motions(five_bar):
    model = lw.linearize(five_bar, Session(five_bar).q)
    clip = clip_of_mode(model, 0)
    q = clip.motions[0].q
    np.testing.assert_allclose(q[0], q[-1], atol=1e-9)
    assert np.abs(q - model.q).max() > 1e-3 and max(gap(five_bar, one) for one in q) < 1e-6


# -- what is drawn over them --------------------------------------------------------------------------


def test_inertia_ellipsoids_have_the_inertia_of_their_links():
    mech = lw.mechanisms.puma560()
    for body, shape in zip(mech.bodies, overlays.inertia_ellipsoids(mech), strict=True):
        if shape is None:
            continue
        squares = shape.half**2
        moments = body.mass / 5.0 * np.diag(squares.sum() - squares)
        rebuilt = shape.rotation @ moments @ shape.rotation.T
        if (shape.half > 0.021 * shape.half.max()).all():
            np.testing.assert_allclose(rebuilt, body.inertia, atol=1e-9)


def test_velocities_and_forces_are_arrows_in_the_world(arm):
    q, v = np.array([0.3, 0.5, -0.4]), np.array([1.0, -0.5, 0.7])
    arrows = overlays.velocity_arrows(arm, q, v)
    ahead = lw.link_poses(arm, q + 1e-6 * v) - lw.link_poses(arm, q - 1e-6 * v)
    for k, com in enumerate(arm.parameters.coms):
        np.testing.assert_allclose(arrows[k, 1] - arrows[k, 0], (ahead[k] @ np.append(com, 1.0))[:3] / 2e-6, atol=1e-6)
    wrenches = np.zeros((3, 6))
    wrenches[2, 3:] = lw.link_poses(arm, q)[2][:3, :3].T @ (0.0, 5.0, 0.0)
    force = overlays.force_arrows(arm, q, wrenches)[2]
    np.testing.assert_allclose(force[1] - force[0], (0.0, 5.0, 0.0), atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(np.diff(overlays.scaled(force[None], 5.0, 2.0), axis=1)), 0.7)


def test_manipulability_is_flat_where_an_arm_is_stretched(arm):
    bent = overlays.manipulability_ellipsoid(arm, np.array([0.2, 0.9, 0.8]), "link3", np.array([0.3, 0, 0]), 1.0)
    straight = overlays.manipulability_ellipsoid(arm, np.zeros(3), "link3", np.array([0.3, 0, 0]), 1.0)
    assert bent.half[1] > 0.05 and straight.half[1] == pytest.approx(2e-3)
    np.testing.assert_allclose(np.abs(straight.rotation[:, 0]), (0.0, 1.0, 0.0), atol=1e-9)


def test_singular_positions_of_a_motion_are_marked():
    flat = lw.mechanisms.n_four_bar(1)  # a parallelogram, singular where all its links are in a line
    angles = np.linspace(0.0, 3.0, 61)
    path = np.outer(angles, [1.0, 1.0, -1.0])
    (found,) = overlays.singular_moments(flat, path)
    assert abs(angles[found] - np.pi / 2.0) < 0.05
    assert len(overlays.singular_moments(flat, path[:20])) == 0


# -- a simulation that is pulled ----------------------------------------------------------------------


def test_a_live_simulation_is_that_of_rollouts_and_follows_the_hand(arm):
    q = np.array([0.4, 0.3, 0.2])
    live = Live(arm, q, step=1e-3)
    live.advance(0.02)
    np.testing.assert_array_equal(live.q, lw.rollout(arm, q, np.zeros(3), None, 1e-3, 20, final_only=True)[0])
    hand = Hand("link3", np.array([0.1, 0.0, 0.0]))
    wanted = hand.position(arm, live.q) + [0.0, 0.3, 0.0]
    live.pull = (hand, wanted)
    force = live.wrenches()[2]
    np.testing.assert_allclose(force[:3], np.cross(hand.point, force[3:]), atol=1e-9)
    free = arm.with_gravity((0.0, 0.0, 0.0)).parameters.with_damping(0.5)
    pulled, wanted = Live(free, q), hand.position(arm, q) - [0.4, 0.1, 0.0]
    pulled.pull = (hand, wanted)
    for _ in range(100):
        pulled.advance(0.03)
    assert np.linalg.norm(hand.position(free, pulled.q) - wanted) < 0.05


def test_a_range_of_motion_is_played():
    found = lw.linkages.range_of_motion(lw.mechanisms.four_bar(), "crank_joint")
    clip = clip_of(found)
    np.testing.assert_array_equal(clip.motions[0].q, found.path.q)
    assert clip.duration == pytest.approx(6.0)


def test_numbers_beside_sliders_have_as_many_digits_as_steps_do():
    assert Scale(-180.0, 180.0, 0.1).nearest(-3.671743) == -3.7
    assert Scale(-1.0, 1.0, 0.001).nearest(0.123456) == 0.123
    assert Scale(-180.0, 180.0, 0.1).nearest(200.0) == 180.0 and Scale(-400.0, 400.0, 1.0).nearest(12.6) == 13.0


def test_values_of_sliders_are_within_their_bounds():
    """Whatever the limits are: of both ends, of values between and beyond, of ranges from 1e-12 to 1e12."""
    rng = np.random.default_rng(0)
    limits = [(-154.50001, -52.4386), (29.96, 70.0), (0.0, 0.0), (0.3, 0.3), (-1e11, 1e11), (1e9, 1e9 + 1e-7)]
    for _ in range(2000):
        low, width = rng.normal() * 10.0 ** rng.uniform(-9, 9), 10.0 ** rng.uniform(-12, 12)
        limits.append((low, low + width))
    for low, high in limits:
        scale = Scale.covering(low, high)
        slack = 1e-6 * scale.step
        assert scale.low <= low + slack and high - slack <= scale.high and scale.low + 0.5 * scale.step < scale.high
        for value in (low, high, *rng.uniform(low, high, 3), low - 1.0, high + 1.0, scale.low, scale.high):
            number = scale.nearest(value)
            assert scale.low <= number <= scale.high
            assert abs(number - min(max(value, scale.low), scale.high)) <= 0.51 * scale.step
    assert Scale.covering(np.degrees(np.radians(30.0)), 70.0).low == 30.0
    assert Scale.covering(-154.5, -52.4386) == Scale(-154.5, -52.4, 0.1)
