"""Branches of closed mechanisms: kept by positions of joints, one or many, also where branches meet."""

import numpy as np
import pytest

import linkwise as lw

PARALLELOGRAM = (
    lw.Builder()
    .linkage(
        {"A": (0, 0), "B": (0, 0.2), "C": (0.5, 0.2), "D": (0.5, 0)},
        {"ground": "AD", "crank": "AB", "coupler": "BC", "rocker": "DC"},
    )
    .build("parallelogram")
)


@pytest.mark.parametrize("count", [9, 20, 25, 37, 38, 50, 73, 361])
def test_a_parallelogram_stays_one_through_its_flat_positions(count):
    """Samples in the flat position, beside it, and on both sides of it."""
    angles = np.linspace(0.0, 2.0 * np.pi, count)
    q = lw.linkages.follow_path(PARALLELOGRAM, None, {"A": angles})
    np.testing.assert_allclose(q[:, PARALLELOGRAM.q_index("D")][:, 0], angles, atol=1e-6)


def test_back_and_forth_over_a_flat_position():
    angles = np.array([0.0, 1.5, np.pi / 2, 1.7, np.pi / 2, 0.3, -np.pi / 2, -2.0])
    q = lw.linkages.follow_path(PARALLELOGRAM, None, {"A": angles})
    np.testing.assert_allclose(q[:, PARALLELOGRAM.q_index("D")][:, 0], angles, atol=1e-6)


@pytest.mark.parametrize("count", [9, 38])
def test_an_isosceles_slider_crank_goes_through_its_centre(count):
    """Crank as long as the rod: the slider goes on through the centre, or stays there: two branches."""
    points = {"O": (0, 0), "A": (0.2 * np.cos(0.4), 0.2 * np.sin(0.4)), "B": (0.4 * np.cos(0.4), 0)}
    links = {"ground": "O", "crank": "OA", "rod": "AB", "piston": "B"}
    mech = lw.Builder().linkage(points, links, slides={"piston": ("ground", (1, 0))}).build("isosceles")
    angles = np.linspace(0.0, 2.0 * np.pi, count)
    q = lw.linkages.follow_path(mech, None, {"O": angles})
    slider = lw.frame_pose(mech, q, "piston")[:, 0, 3] - lw.frame_pose(mech, lw.neutral(mech), "piston")[0, 3]
    np.testing.assert_allclose(slider, 0.4 * (np.cos(0.4 + angles) - np.cos(0.4)), atol=1e-6)


def test_a_four_bar_with_change_points_keeps_its_branch():
    mech = lw.mechanisms.four_bar(crank=0.5, coupler=1.0, rocker=0.5, base=1.0)
    q = lw.linkages.follow_path(mech, None, {"crank_joint": np.linspace(0.0, 2.0 * np.pi, 9)})
    np.testing.assert_allclose(q[:, 2], q[:, 0], atol=1e-6)


@pytest.mark.parametrize("name", ["slider_crank", "four_bar"])
def test_one_position_is_on_the_branch_of_many(name):
    """Cranks that rotate without leaving their branch, whichever function is given their angle."""
    mech = getattr(lw.mechanisms, name)()
    for angle in np.radians([-165.0, -150.0, -120.0, -75.0, 100.0, 180.0]):
        there = lw.linkages.follow(mech, lw.neutral(mech), {"crank_joint": angle})
        np.testing.assert_allclose(lw.configuration(mech, crank_joint=angle), there, atol=1e-9)
        np.testing.assert_allclose(lw.constraints.assemble(mech, {"crank_joint": angle}), there, atol=1e-9)
        held = lw.constraints.assemble(mech, {"crank_joint": angle}, hold="crank_joint")
        np.testing.assert_allclose(held, there, atol=1e-9)
        np.testing.assert_allclose(
            lw.linkages.driven_motion(mech, {"crank_joint": angle}, {"crank_joint": 1.0}).q, there, atol=1e-9
        )


def test_functions_that_take_an_angle_are_on_the_drawn_branch():
    """The slider-crank's own formula; crank 0.1, rod 0.25, the slide on its side of the crank."""
    points = {"O": (0, 0), "A": (0.1, 0), "B": (0.35, 0)}
    links = {"ground": "O", "crank": "OA", "rod": "AB", "piston": "B"}
    mech = lw.Builder().linkage(points, links, slides={"piston": ("ground", (1, 0))}).build("press")
    for angle in np.radians([-170.0, -120.0, -45.0, 30.0, 135.0, 179.0]):
        reach = 0.1 * np.cos(angle) + np.sqrt(0.25**2 - (0.1 * np.sin(angle)) ** 2)
        pose = lw.frame_pose(mech, lw.configuration(mech, O=angle), "piston")
        assert pose[0, 3] == pytest.approx(reach, abs=1e-9)
        rate = -0.1 * np.sin(angle) * (1.0 + 0.1 * np.cos(angle) / np.sqrt(0.25**2 - (0.1 * np.sin(angle)) ** 2))
        assert lw.linkages.mechanical_advantage(mech, {"O": angle}, "O", "piston.x") == pytest.approx(1.0 / rate)


def test_another_assembly_mode_is_told_of():
    """The rocker of a crank and rocker is on one side of its base in either mode, and passes none into the other."""
    mech = lw.mechanisms.four_bar(crank=0.3, coupler=1.0, rocker=0.8, base=1.1)
    beyond = 2.3
    assert lw.linkages.range_of_motion(mech, "rocker_joint").upper < 1.0
    with pytest.warns(lw.MechanismWarning, match=r"another assembly mode.*follow_path"):
        q = lw.configuration(mech, rocker_joint=beyond)
    assert np.abs(lw.constraints.position_error(mech, q)).max() < 1e-10
    with pytest.raises(lw.constraints.AssemblyError, match="locks after"):
        lw.linkages.follow(mech, None, {"rocker_joint": beyond})


def test_singular_positions_have_no_transmission_and_no_rates():
    angles = np.radians([80.0, 89.9, 90.0, 90.1])
    transmitted = lw.linkages.transmission_angle(PARALLELOGRAM, {"A": angles}, "A", "D")
    np.testing.assert_allclose(np.degrees(transmitted), [10.0, 0.1, np.nan, 0.1], atol=1e-6)
    gained = lw.linkages.mechanical_advantage(PARALLELOGRAM, {"A": angles}, "A", "D")
    np.testing.assert_allclose(gained, [1.0, 1.0, np.nan, 1.0], atol=1e-6)
    assert np.isnan(lw.linkages.mechanical_advantage(PARALLELOGRAM, {"A": np.pi / 2}, "A", "D"))
    with pytest.raises(lw.MechanismError, match=r"position 2 of 4 \('A' at 1.5708\).* is singular.*leave it out"):
        lw.linkages.driven_motion(PARALLELOGRAM, {"A": angles}, {"A": 1.0})
    beside = lw.linkages.driven_motion(PARALLELOGRAM, {"A": np.linspace(0.0, 2.0 * np.pi, 38)}, {"A": 1.0})
    np.testing.assert_allclose(beside.of_joint("D")[1], 1.0, atol=1e-9)


def test_batches_without_states():
    q = np.zeros((2, 0, 3, PARALLELOGRAM.nq))
    assert np.shape(lw.linkages.transmission_angle(PARALLELOGRAM, q, "A", "D")) == (2, 0, 3)
    assert np.shape(lw.linkages.mechanical_advantage(PARALLELOGRAM, q, "A", "D")) == (2, 0, 3)
    assert lw.linkages.driven_motion(PARALLELOGRAM, q, {"A": 1.0}).v.shape == (2, 0, 3, PARALLELOGRAM.nv)


def test_a_dead_centre_can_be_the_goal():
    """The slider of a slider-crank to where its range ends, and no further."""
    mech = lw.mechanisms.slider_crank()
    slider = mech.joint_names[-1]
    start = lw.linkages.follow(mech, None, {"crank_joint": 0.5})
    ends = lw.linkages.range_of_motion(mech, slider, start)
    q = lw.linkages.follow(mech, start, {slider: ends.upper - 1e-12})
    assert np.abs(lw.constraints.position_error(mech, q)).max() < 1e-10
    with pytest.raises(lw.constraints.AssemblyError, match=r"locks after 9\d\.\d+% of the way"):
        lw.linkages.follow(mech, start, {slider: ends.upper + 1e-3})
