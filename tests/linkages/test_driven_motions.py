"""Motions of linkages whose inputs are given, against formulas of textbooks and differences of positions."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw

from ..constraints.built_in import built

ARM, ROD, SPEED, GAIN = 0.1, 0.35, 30.0, 4.0
STEP = 1e-4


def slider_crank() -> lw.Mechanism:
    """Points as a designer draws them; the slide is the x axis."""
    points = {"O": (0.0, 0.0), "A": (ARM, 0.0), "B": (ARM + ROD, 0.0)}
    links = {"ground": "O", "crank": "OA", "rod": "AB"}
    return lw.Builder().linkage(points, links, slots={"B": ("ground", (1.0, 0.0))}).build("slider_crank")


@pytest.fixture(scope="module")
def piston() -> lw.Mechanism:
    return slider_crank()


def by_formulas(angle: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Place, velocity and acceleration of the piston, the crank at SPEED and gaining GAIN."""
    sine, cosine = np.sin(angle), np.cos(angle)
    root = np.sqrt(ROD**2 - (ARM * sine) ** 2)
    slope = -ARM * sine - ARM**2 * sine * cosine / root
    bend = -ARM * cosine - ARM**2 * (cosine**2 - sine**2) / root - ARM**4 * (sine * cosine) ** 2 / root**3
    return ARM * cosine + root, slope * SPEED, bend * SPEED**2 + slope * GAIN


def test_the_piston_of_a_slider_crank(piston: lw.Mechanism):
    angles = np.linspace(0.0, 2.0 * np.pi, 37)
    motion = lw.linkages.driven_motion(piston, {"O": angles}, {"O": SPEED}, {"O": GAIN})
    place, velocity, acceleration = by_formulas(angles)
    np.testing.assert_allclose(motion.position("B")[:, 0], place, atol=1e-10)
    np.testing.assert_allclose(motion.velocity("B")[:, 0], velocity, atol=1e-8)
    np.testing.assert_allclose(motion.acceleration("B")[:, 0], acceleration, atol=1e-6)
    np.testing.assert_allclose(motion.of_joint("O")[1], SPEED)
    np.testing.assert_allclose(motion.of_joint("O")[2], GAIN)
    # The rod's angle is asin(ARM sin(angle) / ROD), downwards.
    rate = -ARM * np.cos(angles) * SPEED / np.sqrt(ROD**2 - (ARM * np.sin(angles)) ** 2)
    np.testing.assert_allclose(motion.angular_velocity("rod")[:, 2], rate, atol=1e-8)
    single = lw.linkages.driven_motion(piston, {"O": angles[5]}, {"O": SPEED}, {"O": GAIN})
    np.testing.assert_allclose(single.acceleration("B"), motion.acceleration("B")[5], atol=1e-6)


def test_shaking_forces_are_those_of_the_links(piston: lw.Mechanism):
    motion = lw.linkages.driven_motion(piston, {"O": np.linspace(0.3, 2.0, 5)}, {"O": SPEED})
    torque = lw.inverse_dynamics(piston.with_gravity((0, 0, 0)), motion.q, motion.v, motion.a, actuated="O")
    weightless = piston.with_gravity((0, 0, 0))
    crank = lw.joint_wrenches(weightless, motion.q, motion.v, tau=torque)[:, 0, 3:]
    turned = lw.frame_pose(piston, motion.q, "crank")[:, :3, :3] @ crank[..., None]
    slot = lw.constraints.loop_reactions(weightless, motion.q, motion.v, torque)[:, 0, 3:]
    slot = (lw.frame_pose(piston, motion.q, "rod")[:, :3, :3] @ slot[..., None])[..., 0]
    np.testing.assert_allclose(motion.shaking_force, -(turned[..., 0] + slot), atol=1e-8)


def test_a_coupler_point_against_differences_of_its_path():
    mech = built("four_bar").with_frame("P", "coupler", (0.3, 0.4, 0.0))
    angles = np.linspace(-1.0, 4.0, 6)
    motion = lw.linkages.driven_motion(mech, {"crank_joint": angles}, {"crank_joint": SPEED}, {"crank_joint": GAIN})

    def at(t: float) -> np.ndarray:
        there = angles + SPEED * t + 0.5 * GAIN * t**2
        q = [lw.linkages.follow(mech, q, {"crank_joint": x}) for q, x in zip(motion.q, there, strict=True)]
        return lw.frame_pose(mech, np.array(q), "P")[:, :3, 3]

    before, now, after = at(-STEP), at(0.0), at(STEP)
    np.testing.assert_allclose(motion.velocity("P"), (after - before) / (2 * STEP), atol=1e-3)
    np.testing.assert_allclose(motion.acceleration("P"), (after - 2 * now + before) / STEP**2, atol=1e-1)
    for what in (motion.position, motion.velocity, motion.acceleration):  # the same point, without a frame
        np.testing.assert_allclose(what(("coupler", (0.3, 0.4, 0.0))), what("P"), atol=1e-9)
    np.testing.assert_allclose(motion.angular_velocity("P"), motion.angular_velocity("coupler"))
    assert np.abs(motion.angular_acceleration("coupler")[:, :2]).max() == 0.0


def test_speeds_may_differ_from_state_to_state(piston: lw.Mechanism):
    motion = lw.linkages.driven_motion(piston, {"O": 0.4}, {"O": np.array([1.0, 2.0, 4.0])})
    assert motion.q.shape == (3, piston.nq)
    np.testing.assert_allclose(motion.velocity("B")[:, 0], motion.velocity("B")[0, 0] * np.array([1.0, 2.0, 4.0]))
    np.testing.assert_allclose(motion.acceleration("B")[2], 16.0 * motion.acceleration("B")[0], rtol=1e-9)


def test_joints_outside_of_loops_stand_still():
    arm = lw.mechanisms.stanford_arm()
    motion = lw.linkages.driven_motion(arm, None, {"joint2": 1.0}, {"joint2": 0.5})
    np.testing.assert_allclose(motion.v, np.eye(6)[1])
    np.testing.assert_allclose(motion.a, 0.5 * np.eye(6)[1])


def test_inputs_that_do_not_say_how_it_moves_are_refused():
    five_bar = built("five_bar")
    q = lw.constraints.assemble(five_bar, [2.1, 1.9, 1.5, 1.9])
    with pytest.raises(
        lw.MechanismError, match="v names 1 input, .* needs 2: .* of 2 joints, such as 'joint1', 'joint2'"
    ):
        lw.linkages.driven_motion(five_bar, q, {"joint1": 1.0})
    with pytest.raises(lw.MechanismError, match="driven joints by name, {joint: number}"):
        lw.linkages.driven_motion(five_bar, q, np.zeros(4))
    with pytest.raises(lw.MechanismError, match="'joint9'"):
        lw.linkages.driven_motion(five_bar, q, {"joint9": 1.0})


@pytest.mark.parametrize(
    ("rates", "count"), [({"crank_joint": 1.0, "rocker_joint": 2.0}, "2 inputs"), ({}, "0 inputs")]
)
def test_too_many_or_too_few_inputs_are_counted(rates: dict[str, float], count: str):
    expected = f"v names {count}, the mechanism needs 1: give the speed of one joint, such as 'crank_joint'$"
    with pytest.raises(lw.MechanismError, match=expected):
        lw.linkages.driven_motion(built("four_bar"), {"crank_joint": 0.3}, rates)


def test_a_structure_has_no_motion():
    points, links = {"A": (0.0, 0.0), "B": (0.0, 1.0), "C": (1.0, 0.0)}, {"ground": "AC", "p": "AB", "q": "BC"}
    truss = lw.Builder().linkage(points, links).build("truss")
    q = lw.neutral(truss)
    for asked in (
        lambda: lw.linkages.driven_motion(truss, {"A": 0.0}, {"A": 1.0}),
        lambda: lw.constraints.null_space(truss, q, independent="A"),
        lambda: lw.constraints.null_space(truss, [q, q], independent="A"),
        lambda: lw.linkages.range_of_motion(truss, "A"),
        lambda: lw.linkages.singular_positions(truss, "A"),
        lambda: lw.linkages.transmission_angle(truss, {}, "A", "C"),
        lambda: lw.linkages.mechanical_advantage(truss, {}, "A", "C"),
        lambda: lw.linkages.instant_centers(truss),
        lambda: lw.linkages.workspace(truss, ("q.x", "q.y")),
    ):
        with pytest.raises(lw.MechanismError, match="^mechanism 'truss' has no degree of freedom: it is a structure$"):
            asked()
    assert lw.constraints.null_space(truss, q).shape == (2, 0)
    with pytest.raises(lw.MechanismError, match="0 while 'crank_joint' stand still: hold 1 fewer"):
        lw.linkages.range_of_motion(built("four_bar"), "rocker_joint", hold="crank_joint")


PLACE, ARMS = ("platform.x", "platform.y", "platform.z"), ("arm1_joint", "arm2_joint", "arm3_joint")


def test_a_platform_of_three_degrees_of_freedom_is_driven_by_its_own_motion():
    delta = lw.mechanisms.delta_robot()
    q = lw.constraints.assemble(delta, {"arm1_joint": 0.3, "arm2_joint": 0.1})
    rate, change = np.array([1.0, -0.4, 0.3]), np.array([0.2, 0.7, -0.5])
    motion = lw.linkages.driven_motion(
        delta, q, dict(zip(PLACE, rate, strict=True)), dict(zip(PLACE, change, strict=True))
    )
    np.testing.assert_allclose(motion.velocity("platform"), rate, atol=1e-12)
    np.testing.assert_allclose(motion.acceleration("platform"), change, atol=1e-9)
    per_arm = lw.jacobian(delta, q, "platform")[3:] @ lw.constraints.null_space(delta, q, independent=ARMS)
    per_arm = lw.frame_pose(delta, q, "platform")[:3, :3] @ per_arm  # the robot's Jacobian
    arms = [motion.of_joint(name)[1] for name in ARMS]
    np.testing.assert_allclose(arms, np.linalg.solve(per_arm, rate), atol=1e-10)
    basis = lw.constraints.null_space(delta, q, independent=PLACE)
    np.testing.assert_allclose(basis @ rate, motion.v, atol=1e-12)
    step, here = 1e-4, lw.frame_pose(delta, q, "platform")[:3, 3]
    times = np.array([0.0, -step, step])[:, None]
    ways = here + rate * times + 0.5 * change * times**2
    there = lw.linkages.follow_path(delta, q, dict(zip(PLACE, ways.T, strict=True)))
    angles = np.array([there[:, delta.q_index(name).start] for name in ARMS])
    bends = (angles[:, 1] - 2.0 * angles[:, 0] + angles[:, 2]) / step**2
    np.testing.assert_allclose([motion.of_joint(name)[2] for name in ARMS], bends, atol=1e-5)
    names = [name.replace("platform", "platform_joint") for name in PLACE]  # the same by the coordinates of its joint
    same = lw.linkages.driven_motion(
        delta, q, dict(zip(names, rate, strict=True)), dict(zip(names, change, strict=True))
    )
    np.testing.assert_allclose(same.a, motion.a, atol=1e-9)


def test_places_and_orientations_of_links_are_held_and_followed():
    delta = lw.mechanisms.delta_robot()
    aim = np.array([0.1, 0.05, -0.8])
    for q in (
        lw.constraints.assemble(delta, dict(zip(PLACE, aim, strict=True)), hold=PLACE),
        lw.configuration(delta, dict(zip(PLACE, aim, strict=True))),
        lw.linkages.follow(delta, None, dict(zip(PLACE, aim, strict=True))),
        lw.linkages.driven_motion(delta, dict(zip(PLACE, aim, strict=True)), dict.fromkeys(PLACE, 0.0)).q,
    ):
        np.testing.assert_allclose(lw.frame_pose(delta, q, "platform")[:3, 3], aim, atol=1e-10)
        assert np.abs(lw.constraints.position_error(delta, q)).max() < 1e-11
    with pytest.raises(lw.MechanismError, match="'platform.x' cannot be driven further"):
        lw.linkages.follow(delta, None, {"platform.x": 3.0})
    four_bar = built("four_bar")
    yaw = lw.linkages.range_of_motion(four_bar, "coupler.yaw")
    middle = 0.5 * (yaw.lower + yaw.upper)
    q = lw.constraints.assemble(four_bar, {"coupler.yaw": middle}, hold="coupler.yaw")
    pose = lw.frame_pose(four_bar, q, "coupler")
    assert np.arctan2(pose[1, 0], pose[0, 0]) == pytest.approx(middle, abs=1e-10)


def test_tables_and_pictures_are_over_the_input(tmp_path):
    angles = np.linspace(0.0, 6.28, 60)
    motion = lw.linkages.driven_motion(built("four_bar"), {"crank_joint": angles}, {"crank_joint": 10.0})
    motion.save(tmp_path / "motion.csv")
    header, *rows = (tmp_path / "motion.csv").read_text().splitlines()
    assert header.split(",")[:3] == ["crank_joint", "q.crank_joint", "q.coupler_joint"]
    assert header.split(",")[-1] == "a.rocker_joint"
    numbers = np.array([row.split(",") for row in rows], dtype=float)
    np.testing.assert_array_equal(numbers, np.column_stack([angles, motion.q, motion.v, motion.a]))
    frame = pytest.importorskip("pandas") and motion.to_pandas()
    assert frame.index.name == "crank_joint"
    np.testing.assert_array_equal(frame["a.rocker_joint"], motion.of_joint("rocker_joint")[2])
    motion.plot(tmp_path / "motion.png")
    figure = lw.viewer.plot_trajectory(motion, energy=False)
    positions, velocities, accelerations = figure.axes
    assert positions.get_xlabel() == "crank_joint (rad)" and "rad/s²" in accelerations.get_ylabel()
    for ax, values in ((positions, motion.q), (velocities, motion.v), (accelerations, motion.a)):
        for line, column in zip(ax.get_lines(), values.T, strict=True):
            np.testing.assert_array_equal(line.get_xdata(), angles)
            np.testing.assert_array_equal(line.get_ydata(), column)
    assert (tmp_path / "motion.png").stat().st_size > 10_000
    with pytest.raises(lw.MechanismError, match="tables, .csv or .parquet"):
        motion.save(tmp_path / "motion.png")
    alone = lw.linkages.driven_motion(built("four_bar"), {"crank_joint": 0.3}, {"crank_joint": 10.0})
    with pytest.raises(lw.MechanismError, match="has no path of one"):
        alone.plot()


def test_pictures_of_platforms_are_over_their_place(tmp_path):
    x = np.linspace(-0.1, 0.1, 5)
    paths = dict(zip(PLACE, (0.0 * x + 0.02, x, 0.0 * x - 0.8), strict=True))
    motion = lw.linkages.driven_motion(
        lw.mechanisms.delta_robot(), paths, {**dict.fromkeys(PLACE, 0.0), "platform.y": 1.0}
    )
    name, values = motion.over
    assert name == "platform.y"
    np.testing.assert_allclose(values, x, atol=1e-12)
