"""Mechanical advantage and transmission angle against the formulas of four-bar and slider-crank in textbooks."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw

from ..constraints.built_in import built

CRANK, COUPLER, ROCKER, BASE = 0.3, 0.9, 0.8, 1.0
ARM, ROD = 0.15, 0.3


def turned(mech: lw.Mechanism, angles: np.ndarray) -> np.ndarray:
    """(n, nq): with the crank at these angles, from the configuration at zero on."""
    found, q = [], lw.constraints.assemble(mech, lw.neutral(mech))
    for angle in angles:
        q = lw.linkages.follow(mech, q, {"crank_joint": angle})
        found.append(q)
    return np.array(found)


def four_bar_angles(crank: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Between coupler and rocker, and between crank and coupler, by the law of cosines, the crank upright at zero."""
    angle = crank + np.pi / 2.0
    diagonal = np.sqrt(CRANK**2 + BASE**2 - 2.0 * CRANK * BASE * np.cos(angle))
    at_rocker = np.arccos((COUPLER**2 + ROCKER**2 - diagonal**2) / (2.0 * COUPLER * ROCKER))
    return at_rocker, diagonal


def test_a_four_bar():
    mech, angles = built("four_bar"), np.linspace(0.0, 2.0 * np.pi, 25)
    q = turned(mech, angles)
    at_rocker, _ = four_bar_angles(angles)
    found = lw.linkages.transmission_angle(mech, q, "crank_joint", "rocker_joint")
    np.testing.assert_allclose(found, np.minimum(at_rocker, np.pi - at_rocker), atol=1e-9)
    # Torques by the force F along the coupler: F CRANK sin(angle to the crank) and F ROCKER sin(transmission angle).
    way = lw.frame_pose(mech, q, "coupler")[:, :2, 3]
    pin = np.array([lw.frame_pose(mech, one, "rocker")[:2] @ [*pin_on_rocker(mech), 0.0, 1.0] for one in q])
    lever_in = way[:, 0] * (pin - way)[:, 1] - way[:, 1] * (pin - way)[:, 0]
    lever_out = (pin - [BASE, 0.0])[:, 0] * (pin - way)[:, 1] - (pin - [BASE, 0.0])[:, 1] * (pin - way)[:, 0]
    advantage = lw.linkages.mechanical_advantage(mech, q, "crank_joint", "rocker_joint")
    np.testing.assert_allclose(advantage, lever_out / lever_in, rtol=1e-8)
    back = lw.linkages.mechanical_advantage(mech, q[3], "rocker_joint", "crank_joint")
    assert isinstance(back, float) and back == pytest.approx(1.0 / advantage[3])


def pin_on_rocker(mech: lw.Mechanism) -> np.ndarray:
    """(2,): where the loop's joint is on the rocker."""
    return np.asarray(mech.loops[0].pose_b[1])[:2]


def test_a_four_bar_at_its_dead_centres():
    mech = built("four_bar")
    for end in lw.linkages.range_of_motion(mech, "rocker_joint").dead_centres:
        assert lw.linkages.mechanical_advantage(mech, end.q, "crank_joint", "rocker_joint") in (np.inf, -np.inf)
        assert lw.linkages.mechanical_advantage(mech, end.q, "rocker_joint", "crank_joint") == 0.0
        at_rocker, _ = four_bar_angles(end.q[mech.q_index("crank_joint")][0])
        found = lw.linkages.transmission_angle(mech, end.q, "crank_joint", "rocker_joint")
        assert found == pytest.approx(min(at_rocker, np.pi - at_rocker), abs=1e-6)
        assert lw.linkages.transmission_angle(mech, end.q, "rocker_joint", "crank_joint") == pytest.approx(
            0.0, abs=1e-6
        )


def test_a_slider_crank_either_way():
    mech, angles = built("slider_crank"), np.linspace(0.1, 6.1, 17)
    q = turned(mech, angles)
    crank = angles + np.pi / 2.0
    tilt = np.arcsin(ARM * np.sin(crank) / ROD)  # of the rod, against the slide
    found = lw.linkages.transmission_angle(mech, q, "crank_joint", "slider_joint")
    np.testing.assert_allclose(found, np.pi / 2.0 - np.abs(tilt), atol=1e-9)
    speed = -ARM * np.sin(crank) - ARM * np.cos(crank) * np.tan(tilt)  # of the slider, per unit of the crank's
    np.testing.assert_allclose(lw.linkages.mechanical_advantage(mech, q, "crank_joint", "slider_joint"), 1.0 / speed)
    # The other way round the rod pushes the crank.
    found = lw.linkages.transmission_angle(mech, q, "slider_joint", "crank_joint")
    between = np.abs(np.sin(crank + tilt))
    np.testing.assert_allclose(np.sin(found), between, atol=1e-9)
    tip = lw.linkages.mechanical_advantage(mech, q, "slider_joint", "slider.x")
    np.testing.assert_allclose(tip, 1.0)


def test_several_degrees_of_freedom_and_batches():
    mech = built("five_bar")
    q = lw.constraints.assemble(mech, [2.0, 1.9, 1.5, 1.9])
    with pytest.raises(lw.MechanismError, match="move independently of each other: hold other joints"):
        lw.linkages.mechanical_advantage(mech, q, "joint1", "joint2")
    one = lw.linkages.mechanical_advantage(mech, q, "joint1", "joint2", hold="joint4")
    basis = lw.constraints.null_space(mech, q)
    still = basis @ np.array([basis[3, 1], -basis[3, 0]])
    assert one == pytest.approx(still[0] / still[1])
    many = lw.linkages.mechanical_advantage(mech, np.tile(q, (2, 3, 1)), "joint1", "joint2", hold="joint4")
    assert many.shape == (2, 3) and np.allclose(many, one)
    assert lw.linkages.transmission_angle(mech, np.tile(q, (2, 1)), "joint1", "joint2", hold="joint4").shape == (2,)


def test_refusals_say_what_to_do():
    mech = built("four_bar")
    q = {"crank_joint": 0.5}
    with pytest.raises(lw.MechanismError, match="nothing called 'pivot' acts on the link.*available: pin"):
        lw.linkages.transmission_angle(mech, q, "crank_joint", "rocker_joint", at="pivot")
    with pytest.raises(lw.MechanismError, match="no moving joint 'rocker'.*'rocker_joint' moves"):
        lw.linkages.transmission_angle(mech, q, "crank_joint", "rocker")
    same = lw.linkages.transmission_angle(mech, q, "crank_joint", "rocker_joint", at="pin")
    assert same == pytest.approx(lw.linkages.transmission_angle(mech, q, "crank_joint", "rocker_joint"))
    with pytest.raises(lw.MechanismError, match="are the same joint, 'crank_joint'"):
        lw.linkages.transmission_angle(mech, q, "crank_joint", "crank_joint")


def test_a_link_that_is_moved_by_several():
    """The bar on three cranks, against one of them: both others push it."""
    turn, builder = lw.Revolute((0, 0, 1)), lw.Builder()
    for k in range(3):
        builder.link(f"crank{k}", 1.0, (0.3, 0, 0), (0.01, 0.03, 0.03))
        builder.joint(f"crank{k}", turn, "ground", f"crank{k}", (None, (1.0 * k, 0.2 * k, 0.0)))
    builder.link("bar", 1.0, (1.0, 0.2, 0), (0.01, 0.3, 0.3)).joint("bar", turn, "crank0", "bar", (None, (0.6, 0, 0)))
    for k in (1, 2):
        builder.loop(f"pin{k}", turn, "bar", (None, (1.0 * k, 0.2 * k, 0)), f"crank{k}", (None, (0.6, 0, 0)))
    mech = builder.build("three_cranks")
    q = {"crank0": 0.7}
    with pytest.raises(lw.MechanismError, match="is pushed by pin1, pin2: say which with at="):
        lw.linkages.transmission_angle(mech, q, "crank0", "bar")
    angle = lw.linkages.transmission_angle(mech, q, "crank0", "bar", at="pin1")
    assert 0.0 < angle < np.pi / 2.0


def test_a_rod_between_two_balls():
    """It may rotate about itself, which neither crank nor rocker feels."""
    builder = lw.Builder().link("crank", 1.0, (0.1, 0, 0), (0.01, 0.02, 0.02))
    builder.link("rocker", 1.0, (0, 0.2, 0), (0.03, 0.01, 0.03)).link("rod", 0.5, (0, 0.3, 0.1), (0.02, 0.02, 0.02))
    builder.joint("crank", lw.Revolute((0, 0, 1)), "ground", "crank")
    builder.joint("rocker", lw.Revolute((1, 0, 0)), "ground", "rocker", (None, (0.5, -0.3, 0.2)))
    builder.joint("ball", lw.Spherical(), "crank", "rod", (None, (0.2, 0, 0)))
    builder.loop("pin", lw.Spherical(), "rod", (None, (0.3, 0.2, 0.2)), "rocker", (None, (0, 0.5, 0)))
    mech = builder.build("rod_with_balls")
    q = lw.neutral(mech)
    assert lw.constraints.degrees_of_freedom(mech, q) == 2
    # The rod has a force along itself: its moments about both axes, and how it pushes the rocker's end.
    along, arm, end = np.array([0.3, 0.2, 0.2]), np.array([0.2, 0.0, 0.0]), np.array([0.0, 0.5, 0.0])
    moments = np.cross(arm, along)[2], np.cross(end, along)[0]
    assert lw.linkages.mechanical_advantage(mech, q, "crank", "rocker") == pytest.approx(moments[1] / moments[0])
    push = abs(along[2]) / np.linalg.norm(along)  # the rocker's end moves along z
    assert np.sin(lw.linkages.transmission_angle(mech, q, "crank", "rocker")) == pytest.approx(push)


@pytest.fixture(scope="module")
def three_legs() -> tuple[lw.Mechanism, np.ndarray]:
    """A platform in the plane on three legs of two links, each with a motor at the ground, and a configuration."""
    builder, guess = lw.Builder().link("platform", 3.0, inertia=(0.1, 0.1, 0.2)), {"plat": [0.0, 0.0, 0.1]}
    builder.joint("plat", lw.Planar(), "ground", "platform")
    for i, angle in enumerate(2.0 * np.pi * np.arange(3) / 3.0 + np.pi / 2.0):
        way = np.array([np.cos(angle), np.sin(angle), 0.0])
        for link in (f"upper{i}", f"lower{i}"):
            builder.link(link, 1.0, (0.3, 0, 0), (0, 0.03, 0.03))
        builder.joint(f"motor{i}", lw.Revolute(), "ground", f"upper{i}", tuple(way))
        builder.joint(f"elbow{i}", lw.Revolute(), f"upper{i}", f"lower{i}", (0.6, 0, 0))
        builder.loop(f"pin{i}", lw.Revolute(), f"lower{i}", (0.6, 0, 0), "platform", tuple(0.3 * way))
        guess |= {f"motor{i}": angle + np.pi + 0.8, f"elbow{i}": -1.6}
    mech = builder.build("three legs")
    return mech, lw.constraints.assemble(mech, guess, hold="plat")


def test_one_coordinate_of_a_platform(three_legs):
    """The leg that drives it pushes along its lower link, the others stand still."""
    mech, q = three_legs
    held = {"motor1": q[mech.q_index("motor1")], "motor2": q[mech.q_index("motor2")]}
    there = [
        lw.linkages.follow(mech, q, {"motor0": q[mech.q_index("motor0")] + step, **held}) for step in (-1e-4, 1e-4)
    ]
    pose = lw.frame_pose(mech, np.array([q, *there]), "lower0")
    pin = pose[:, :3, 3] + 0.6 * pose[:, :3, 0]
    moving = (pin[2] - pin[1]) / np.linalg.norm(pin[2] - pin[1])
    expected = np.arcsin(abs(pose[0, :3, 0] @ moving))
    for output in ("plat[0]", "plat.y", "plat.angle"):
        found = lw.linkages.transmission_angle(mech, q, "motor0", output, at="pin0", hold=tuple(held))
        assert found == pytest.approx(expected, abs=1e-6)
    with pytest.raises(
        lw.MechanismError, match="'platform.x' is the place of a link.*'plat.x', 'plat.y', 'plat.angle'"
    ):
        lw.linkages.transmission_angle(mech, q, "motor0", "platform.x", hold=tuple(held))


def test_names_of_coordinates_of_a_platform(three_legs):
    mech, q = three_legs
    by_name, by_number = (
        lw.linkages.range_of_motion(mech, angle, q, hold=place)
        for angle, place in (("plat.angle", ("plat.x", "plat.y")), ("plat[2]", ("platform.x", "platform.y")))
    )
    assert [by_name.lower, by_name.upper] == pytest.approx([by_number.lower, by_number.upper], abs=1e-9)
    motors = ("motor0", "motor1", "motor2")
    one, other = (
        lw.inverse_dynamics(mech, q, None, a, actuated=motors)
        for a in ({"plat.angle": 2.0, "plat.x": 1.0, "plat.y": 0.0}, {"plat": [1.0, 0.0, 2.0]})
    )
    np.testing.assert_allclose(one, other, atol=1e-9)


def test_a_driven_mechanism_without_its_drives(three_legs):
    mech, q = three_legs
    driven = mech.with_loops(
        lw.constraints.Coupling("motor", {"motor0": 1.0}, drive=lw.constraints.Drive(velocity=1.0))
    )
    with pytest.raises(lw.MechanismError, match=r"'motor' of .* drives it: ask mech.constraints.without_drives\(\)"):
        lw.linkages.mechanical_advantage(driven, q, "motor0", "plat.x", hold=("motor1", "motor2"))
    assert driven.constraints.without_drives().loops == mech.loops


def spherical_four_bar(radius: float) -> lw.Mechanism:
    """Axes of all joints through one point; link frames at this distance from it."""
    z, (a, b, c, d) = lw.Revolute((0, 0, 1)), np.radians([30.0, 80.0, 70.0, 85.0])

    def beyond(angle: float) -> np.ndarray:
        return lw.pose((0, 0, -radius)) @ lw.pose(axis_angle=((1, 0, 0), angle)) @ lw.pose((0, 0, radius))

    builder = lw.Builder()
    for name in ("crank", "coupler", "rocker"):
        builder.link(name, 1.0, (0, 0.1, -0.1), (0.02, 0.02, 0.02))
    builder.joint("A", z, "ground", "crank", lw.pose((0, 0, radius))).joint("B", z, "crank", "coupler", beyond(a))
    builder.joint("D", z, "ground", "rocker", lw.pose(axis_angle=((1, 0, 0), d)) @ lw.pose((0, 0, radius)))
    return (
        builder.loop("C", z, "coupler", beyond(b), "rocker", beyond(c)).frame("at_C", "coupler", beyond(b)).build("s")
    )


@pytest.mark.parametrize("radius", [0.0, 0.5])
def test_spherical_linkages_drawn_anywhere(radius):
    """The angle between the planes of coupler and rocker, by their normals."""
    mech = spherical_four_bar(radius)
    q = np.array([lw.constraints.assemble(mech, {"A": x, "B": 0.677, "D": 1.286}, hold="A") for x in (0.5, 0.9)])
    b, c, d = (lw.frame_pose(mech, q, name)[:, :3, 2] for name in ("coupler", "at_C", "rocker"))
    normals = [np.cross(c, x) / np.linalg.norm(np.cross(c, x), axis=-1, keepdims=True) for x in (b, d)]
    expected = np.arccos(np.abs(np.einsum("ki,ki->k", *normals)))
    np.testing.assert_allclose(lw.linkages.transmission_angle(mech, q, "A", "D"), expected, atol=1e-9)


def test_a_cardan_joint():
    """A moment along the normal of its cross turns the output shaft."""
    builder = lw.Builder().link("in", 1.0, (0, 0, 0), (0.01,) * 3).link("out", 1.0, (0, 0, 0), (0.02,) * 3)
    bent = lw.pose(axis_angle=((0, 0, 1), np.radians(40.0)))
    builder.joint("I", lw.Revolute((1, 0, 0)), "ground", "in").joint("O", lw.Revolute((1, 0, 0)), "ground", "out", bent)
    mech = builder.loop("U", lw.Universal((0, 1, 0), (0, 0, 1)), "in", None, "out", None).build("cardan")
    for angle in (0.0, 0.3, 0.9):
        q = lw.constraints.assemble(mech, {"I": angle}, hold="I")
        one, other = (lw.frame_pose(mech, q, name)[:3, :3] for name in ("in", "out"))
        normal = np.cross(one[:, 1], other[:, 2])
        expected = np.arcsin(abs(normal @ other[:, 0]) / np.linalg.norm(normal))
        assert lw.linkages.transmission_angle(mech, q, "I", "O") == pytest.approx(expected, abs=1e-9)
