"""Ranges of motion against the law of cosines, formulas of legs, and dense searches."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.spatial.transform import Rotation

import linkwise as lw

from ..constraints.built_in import SYMMETRIC, built
from ..constraints.parallel_robots import (
    FAR,
    GAP,
    NEAR,
    delta_legs,
    stewart_legs,
    stewart_points,
    two_arms,
    two_arms_at,
)

# -- four-bar linkages --------------------------------------------------------------------------------

FOUR_BARS = {  # crank, coupler, rocker, base
    "crank and rocker": (0.3, 0.9, 0.8, 1.0),
    "two cranks": (0.9, 0.8, 1.0, 0.3),
    "two rockers": (0.9, 0.3, 1.0, 0.8),
    "no link turns": (0.8, 0.7, 0.6, 1.0),
    "folds inwards": (0.8, 0.35, 1.1, 0.9),
}


def swing(link: float, base: float, other: float, coupler: float) -> tuple[float, float]:
    """The angles between which a link on the base can be: the rest of the linkage spans from |difference| to sum."""

    def angle(span: float) -> float:
        cosine = (link**2 + base**2 - span**2) / (2.0 * link * base)
        return float(np.arccos(cosine)) if abs(cosine) < 1.0 else np.nan

    inner, outer = angle(abs(coupler - other)), angle(coupler + other)
    if np.isnan(outer):
        return (-np.inf, np.inf) if np.isnan(inner) else (inner, 2.0 * np.pi - inner)
    return (-outer, outer) if np.isnan(inner) else (inner, outer)


@pytest.mark.parametrize("lengths", FOUR_BARS.values(), ids=FOUR_BARS)
def test_links_of_four_bars_swing_as_the_law_of_cosines_says(lengths):
    crank, coupler, rocker, base = lengths
    mech = lw.mechanisms.four_bar(*lengths)
    start = np.pi / 2.0  # the angle of the crank at q = 0
    low, high = swing(crank, base, rocker, coupler)
    found = lw.linkages.range_of_motion(mech, "crank_joint")
    np.testing.assert_allclose([found.lower + start, found.upper + start], [low, high], rtol=1e-12, atol=1e-12)
    cause = "full rotation" if np.isinf(low) else "dead centre"
    assert [end.cause for end in found.ends] == [cause, cause]

    pin = np.array([0.0, crank, 0.0]) + mech.loops[0].pose_a[1] - np.array([base, 0.0, 0.0])
    start = np.pi - np.arctan2(pin[1], pin[0])  # to the base line, which points to the crank: clockwise
    low, high = swing(rocker, base, crank, coupler)
    found = lw.linkages.range_of_motion(mech, "rocker_joint")
    np.testing.assert_allclose([start - found.upper, start - found.lower], [low, high], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("lengths", FOUR_BARS.values(), ids=FOUR_BARS)
def test_paths_are_closed_curves_without_gaps(lengths):
    mech = lw.mechanisms.four_bar(*lengths)
    path = lw.linkages.range_of_motion(mech, "crank_joint").path
    assert path.is_closed
    assert np.abs(lw.constraints.position_error(mech, path.q)).max() < 1e-14
    assert np.linalg.norm(np.diff(path.q, axis=0), axis=-1).max() < 0.051
    np.testing.assert_allclose(lw.link_poses(mech, path.q[-1]), lw.link_poses(mech, path.q[0]), atol=1e-12)


def test_dead_centres_of_an_input_are_its_singular_positions():
    mech = lw.mechanisms.four_bar(*FOUR_BARS["no link turns"])
    found = lw.linkages.range_of_motion(mech, "crank_joint")
    singular = lw.linkages.singular_positions(mech, "crank_joint")
    assert [one.kind for one in singular] == ["input", "input"]
    for dead, position in zip(found.dead_centres, singular, strict=True):
        np.testing.assert_allclose(dead.q, position.q, atol=1e-12)


# -- slider-cranks ------------------------------------------------------------------------------------


def test_slider_goes_from_rod_minus_crank_to_rod_plus_crank():
    crank, rod = 0.15, 0.3
    mech = built("slider_crank")
    home = np.sqrt(rod**2 - crank**2)
    found = lw.linkages.range_of_motion(mech, "slider_joint")
    np.testing.assert_allclose([found.lower, found.upper], [rod - crank - home, rod + crank - home], rtol=1e-13)
    np.testing.assert_allclose(np.sin(found.ends[1].q[0] + np.pi / 2.0), 0.0, atol=1e-13)
    turning = lw.linkages.range_of_motion(mech, "crank_joint")
    assert (turning.lower, turning.upper) == (-np.inf, np.inf)
    height = lw.linkages.range_of_motion(mech, "rod.y")  # the crank pin
    np.testing.assert_allclose([height.lower, height.upper], [-crank, crank], rtol=1e-13)


def test_limits_of_joints_end_a_range_when_they_are_asked_for():
    mech = built("slider_crank").with_limits({"crank_joint": lw.Limits(-1.0, 0.5)})
    free = lw.linkages.range_of_motion(mech, "slider_joint")
    held = lw.linkages.range_of_motion(mech, "slider_joint", limits=True)
    assert free.path.is_closed and not held.path.is_closed
    home = np.sqrt(0.3**2 - 0.15**2)
    for crank, end in ((-1.0, held.ends[1]), (0.5, held.ends[0])):
        pin = 0.15 * np.array([-np.sin(crank), np.cos(crank)])
        np.testing.assert_allclose(end.value, pin[0] + np.sqrt(0.3**2 - pin[1] ** 2) - home, rtol=1e-12)
        assert (end.cause, end.joint) == ("joint limit", "crank_joint")
    with pytest.raises(lw.MechanismError, match="'crank_joint'.* is beyond its limits at the start"):
        lw.linkages.range_of_motion(mech, "slider_joint", q=free.ends[0].q, limits=True)


def test_a_coordinate_that_turns_back_several_times_can_be_driven_less_far_than_it_goes():
    point = (None, (0.5, -1.0, 0.0))
    mech = built("four_bar").with_frame("point", "coupler", point)
    found = lw.linkages.range_of_motion(mech, "point.y")
    assert len(found.dead_centres) >= 4
    heights = lw.frame_pose(mech, dense_turn(mech), "point")[:, 1, 3]
    np.testing.assert_allclose([found.lower, found.upper], [heights.min(), heights.max()], atol=1e-7)
    turning = np.flatnonzero(np.diff(np.sign(np.diff(heights))))
    assert len(turning) == len(found.dead_centres)
    np.testing.assert_allclose(sorted(end.value for end in found.dead_centres), np.sort(heights[turning]), atol=1e-6)
    here = float(lw.frame_pose(mech, np.zeros(3), "point")[1, 3])
    stops = np.sort([end.value for end in found.dead_centres])
    assert found.driven[0].value < here < found.driven[1].value
    assert all(np.abs(stops - end.value).min() < 1e-12 for end in found.driven)
    assert found.driven[1].value - found.driven[0].value < found.upper - found.lower


def dense_turn(mech: lw.Mechanism, count: int = 6000) -> np.ndarray:
    """(count, nq): the four-bar over a full turn of its crank, by intersecting circles."""
    crank, coupler, rocker, base = FOUR_BARS["crank and rocker"]
    angle = np.linspace(0.0, 2.0 * np.pi, count) + 0.3
    elbow = crank * np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    way = np.array([base, 0.0]) - elbow
    distance = np.linalg.norm(way, axis=-1)
    along = (distance**2 + coupler**2 - rocker**2) / (2.0 * distance)
    across = np.stack([-way[:, 1], way[:, 0]], axis=-1) / distance[:, None]
    pin = elbow + (along / distance)[:, None] * way + np.sqrt(coupler**2 - along**2)[:, None] * across
    home = mech.loops[0].pose_a[1]
    q0, turn = angle - np.pi / 2.0, np.arctan2(*(pin - elbow).T[::-1]) - np.arctan2(home[1], home[0])
    return np.stack([q0, turn - q0, np.zeros(count)], axis=-1)


# -- mechanisms of several degrees of freedom ---------------------------------------------------------


def test_one_arm_of_two_while_the_other_stands_still():
    mech = two_arms()
    start = two_arms_at(np.array([0.3, 1.2]))
    found = lw.linkages.range_of_motion(mech, "right_joint", q=start, hold=("left_joint",))
    elbow = NEAR * np.array([np.cos(start[0]), np.sin(start[0])])
    away = elbow - np.array([GAP, 0.0])  # the right foot is one end of a base line, the left elbow the other
    low, high = swing(NEAR, float(np.linalg.norm(away)), FAR, FAR)
    direction = np.arctan2(away[1], away[0])
    expected = np.array([low, high]) + direction
    inside = expected - 2.0 * np.pi * np.round((expected.mean() - start[2]) / (2.0 * np.pi))
    np.testing.assert_allclose([found.lower, found.upper], inside, rtol=1e-12)
    np.testing.assert_allclose(found.path.q[:, 0], start[0], rtol=1e-15)


@pytest.mark.parametrize("place", [(0.0, 0.0), (0.15, -0.1), (-0.3, 0.2)])
def test_height_of_a_delta_robot_ends_where_a_leg_is_stretched_or_folded(place):
    mech = built("delta_robot")
    guess = lw.neutral(mech)
    home = lw.frame_pose(mech, guess, "platform")[2, 3]
    start = lw.constraints.assemble(mech, at_platform(mech, guess, (*place, 0.0)), hold=("platform_joint",))
    found = lw.linkages.range_of_motion(mech, "platform.z", q=start, hold=("platform.x", "platform.y"))
    distance, least, largest = delta_legs(np.array([*place, 0.0]))
    lowest, highest = -np.sqrt(largest**2 - distance**2).min(), -np.sqrt(np.maximum(least**2 - distance**2, 0.0)).max()
    assert lowest < home < highest
    np.testing.assert_allclose([found.lower, found.upper], [lowest, highest], rtol=1e-11)
    np.testing.assert_allclose(lw.frame_pose(mech, found.path.q, "platform")[:, :2, 3] - place, 0.0, atol=1e-11)


def at_platform(mech: lw.Mechanism, q: np.ndarray, move: tuple[float, float, float]) -> np.ndarray:
    """q with its floating platform elsewhere."""
    moved = q.copy()
    moved[mech.q_index("platform_joint")][4:] += move
    return moved


LEVEL = ("platform_joint[1]", "platform_joint[2]", "platform_joint[3]")


def test_height_of_a_stewart_platform_ends_where_a_leg_meets_its_limit():
    legs = [f"leg{i}_rod_joint" for i in range(1, 7)]
    mech = built("stewart_platform").with_limits({leg: lw.Limits(-0.2, 0.3) for leg in legs})
    place = (0.1, -0.05)
    start = lw.constraints.assemble(mech, at_platform(mech, lw.neutral(mech), (*place, 0.0)), hold=("platform_joint",))
    hold = ("platform.x", "platform.y", *LEVEL)
    found = lw.linkages.range_of_motion(mech, "platform.z", q=start, hold=hold, limits=True)
    heights = np.linspace(0.5, 1.6, 200001)
    lengths = stewart_legs(np.stack([*np.broadcast_arrays(*place, heights)], axis=-1))
    allowed = heights[((lengths >= -0.2) & (lengths <= 0.3)).all(axis=-1)]
    np.testing.assert_allclose([found.lower, found.upper], [allowed.min(), allowed.max()], atol=1e-5)
    for end, bound in zip(found.ends, (-0.2, 0.3), strict=True):
        assert end.cause == "joint limit"
        np.testing.assert_allclose(end.q[mech.q_index(end.joint)], bound, atol=1e-12)
        lengths = stewart_legs(np.array([*place, end.value]))
        assert end.joint == legs[int(np.argmin(np.abs(lengths - bound)))]


def test_bricards_angles_go_as_far_as_their_relation_lets_them():
    found = lw.linkages.range_of_motion(built("bricard"), "rod1_joint")
    assert found.path.is_closed
    a, b = found.path.q[:, 0] - np.pi / 2.0, found.path.q[:, 1] + np.pi / 2.0
    np.testing.assert_allclose(np.cos(a) + np.cos(b) + np.cos(a) * np.cos(b), 0.0, atol=1e-13)
    ends = np.pi / 2.0 + np.arccos(-0.5) * np.array([-1.0, 1.0])  # where cos b is 1
    np.testing.assert_allclose([found.lower, found.upper], ends, rtol=1e-12)


# -- what cannot be done ------------------------------------------------------------------------------


def test_what_does_not_move_stands_still():
    for mech, name, place in ((built("four_bar"), "rocker.x", 1.0), (built("slider_crank"), "slider.y", 0.0)):
        found = lw.linkages.range_of_motion(mech, name)
        assert [end.cause for end in found.ends] == ["stands still", "stands still"] and not found.dead_centres
        np.testing.assert_allclose([found.lower, found.upper], place, atol=1e-12)


def sledges(axis: tuple[float, ...]) -> lw.Mechanism:
    """Two sledges on rails, the second along ``axis``, with a rod between them."""
    builder = lw.Builder()
    for name, along, start in (("left", (1.0, 0, 0), (0, 0, 0)), ("right", axis, (0, 1.0, 0))):
        builder.link(name, 1.0, (0, 0, 0), (0.1, 0.1, 0.1))
        builder.joint(f"{name}_rail", lw.Prismatic(along), "ground", name, pose=start)
    builder.link("rod", 1.0, (0, 0.5, 0), (0.1, 0.1, 0.1)).joint("pin", lw.Revolute((0, 0, 1)), "left", "rod")
    return builder.loop("eye", lw.Revolute((0, 0, 1)), "rod", (0, 1.25, 0), "right", None).build("sledges")


def test_nothing_stops_what_slides_without_stops():
    """Alone, with other degrees of freedom, and in a loop; limits do where they are asked for."""
    builder = lw.Builder().link("sledge", 1.0, (0, 0, 0), (0.1, 0.1, 0.1))
    alone = builder.joint("track", lw.Prismatic((1, 0, 0)), "ground", "sledge").build("endless")
    for mech, name in ((alone, "track"), (lw.mechanisms.cart_pole(), "rail"), (alone, "sledge.x")):
        found = lw.linkages.range_of_motion(mech, name)
        assert [end.cause for end in found.ends] == ["unlimited", "unlimited"]
        assert (found.lower, found.upper) == (-np.inf, np.inf)
        assert "from -inf (unlimited) to inf (unlimited)" in repr(found)
    limited = alone.with_limits(track=lw.Limits(lower=-2.0))
    found = lw.linkages.range_of_motion(limited, "track", limits=True)
    assert [end.cause for end in found.ends] == ["joint limit", "unlimited"]
    np.testing.assert_allclose([found.lower, found.upper], [-2.0, np.inf])
    opposite = sledges((-1.0, 0, 0))
    backwards = lw.linkages.range_of_motion(
        opposite, "right_rail", lw.constraints.assemble(opposite, [0.0, -0.75, -0.6])
    )
    assert [end.cause for end in backwards.ends] == ["unlimited", "unlimited"]
    assert (backwards.lower, backwards.upper) == (-np.inf, np.inf)


def test_what_bends_is_not_taken_for_endless():
    """Rails at an angle: the rod between the sledges ends the motion, sooner or later."""
    mech = sledges((1.0, 0.02, 0))
    q = lw.constraints.assemble(mech, [0.0, 0.75, -0.6])
    with pytest.warns(
        lw.MechanismWarning, match=r"range of 'left_rail'.*search ended\) is where the search was given up"
    ):
        found = lw.linkages.range_of_motion(mech, "left_rail", q)
    with pytest.warns(lw.MechanismWarning, match="'sledges' was not followed to its end .*may be more singular"):
        lw.linkages.singular_positions(mech, "left_rail", q)
    assert np.isfinite([found.lower, found.upper]).all()
    assert "unlimited" not in {end.cause for end in found.ends}


def test_a_parallelogram_that_lies_flat_is_told_where_to_start():
    pin = lw.Revolute((0, 0, 1))
    builder = lw.Builder()
    for name in ("crank", "coupler", "rocker"):
        builder.link(name, 1.0, (0.25, 0, 0), (0.01, 0.01, 0.01))
    builder.joint("a", pin, "ground", "crank").joint("b", pin, "crank", "coupler", pose=(0.5, 0, 0))
    builder.joint("c", pin, "ground", "rocker", pose=(1, 0, 0))
    mech = builder.loop("pin", pin, "coupler", (1, 0, 0), "rocker", (0.5, 0, 0)).build("parallelogram")
    with pytest.raises(
        lw.MechanismError, match=r"branches of its motion meet there.*q=constraints\.assemble\(mech, guess\)"
    ):
        lw.linkages.range_of_motion(mech, "a")
    parallel = lw.linkages.range_of_motion(mech, "c", q=lw.constraints.assemble(mech, [0.1, -0.1, 0.1]))
    assert parallel.upper == np.inf
    np.testing.assert_allclose(np.sin(parallel.path.q[:, 0] - parallel.path.q[:, 2]), 0.0, atol=1e-9)


def test_a_loop_on_a_floating_base_moves_as_on_the_ground():
    four_bar = built("four_bar")
    builder = lw.Builder()
    builder.link("base", 1.0, (0, 0, 0), (0.1, 0.1, 0.1)).joint("free", lw.Floating(), "ground", "base")
    for body in four_bar.bodies:
        parent = "base" if body.parent < 0 else four_bar.bodies[body.parent].link
        builder.link(body.link, body.mass, body.com, body.inertia)
        builder.joint(body.joint, body.kind, parent, body.link, (body.rotation, body.position))
    (loop,) = four_bar.loops
    builder.loop(loop.name, loop.kind, loop.link_a, loop.pose_a, loop.link_b, loop.pose_b)
    mech = builder.build("floating_four_bar")
    q = lw.neutral(mech)
    q[:7] = [0.5, 0.5, -0.5, 0.5, 0.3, -1.0, 2.0]
    grounded = lw.linkages.range_of_motion(four_bar, "rocker_joint")
    for hold in ("free", ()):  # held, or free to move along
        found = lw.linkages.range_of_motion(mech, "rocker_joint", q=q, hold=hold)
        np.testing.assert_allclose([found.lower, found.upper], [grounded.lower, grounded.upper], rtol=1e-11)


def test_refusals_say_what_to_do():
    delta, five_bar = built("delta_robot"), built("five_bar")
    with pytest.raises(lw.MechanismError, match="'delta_robot' has 3: hold 2 more"):
        lw.linkages.singular_positions(delta, ("arm1_joint", "arm2_joint", "arm3_joint"))
    with pytest.raises(lw.MechanismError, match="has 0 while 'crank_joint' stand still: hold 1 fewer"):
        lw.linkages.range_of_motion(built("four_bar"), "rocker_joint", hold="crank_joint")
    with pytest.raises(lw.MechanismError, match="are open at q by .*use constraints.assemble first"):
        lw.linkages.range_of_motion(five_bar, "joint1", q=np.zeros(4), hold=("joint4",))
    with pytest.raises(lw.MechanismError, match="joint 'platform_joint' has 7 coordinates: name one of them"):
        lw.linkages.range_of_motion(delta, "platform_joint", hold=("platform.x", "platform.y"))
    with pytest.raises(lw.MechanismError, match=r"no coordinate 'platform.w'.*'link.x'"):
        lw.linkages.range_of_motion(delta, "platform.w")
    with pytest.raises(lw.MechanismError, match="so there is no 'rocker_joint\\[1\\]'"):
        lw.linkages.range_of_motion(built("four_bar"), "rocker_joint[1]")
    with pytest.raises(lw.MechanismError, match="inputs name 1 coordinate: name as many as there are degrees of"):
        lw.linkages.singular_positions(five_bar, "joint1", q=SYMMETRIC, hold="joint1")
    flat = np.array([np.pi / 2.0, np.pi / 2.0, -np.pi / 2.0])
    with pytest.raises(lw.MechanismError, match="singular position at q, where 2 motions are possible: branches"):
        lw.linkages.range_of_motion(lw.mechanisms.n_four_bar(1), "post0_joint", q=flat)


def test_a_range_says_what_it_is():
    text = repr(lw.linkages.range_of_motion(built("four_bar"), "rocker_joint"))  # what notebooks and print show
    assert text == "rocker_joint of four_bar: from -0.166478 (dead centre) to 0.635489 (dead centre)"


# -- several degrees of freedom at once ---------------------------------------------------------------


def test_with_everything_free_a_point_of_two_arms_goes_to_the_end_of_their_reach():
    mech, start = two_arms(), two_arms_at(np.array([0.4, 1.2]))
    most = np.sqrt((NEAR + FAR) ** 2 - (GAP / 2.0) ** 2)  # both arms stretched
    for name, ends in (("tip.x", (GAP - NEAR - FAR, NEAR + FAR)), ("tip.y", (-most, most))):
        found = lw.linkages.range_of_motion(mech, name, q=start)
        np.testing.assert_allclose([found.lower, found.upper], ends, rtol=1e-12)
        assert [end.cause for end in found.ends] == ["dead centre", "dead centre"]
        assert np.all(np.diff(found.values) > -1e-12)
        np.testing.assert_allclose(lw.constraints.position_error(mech, found.path.q), 0.0, atol=1e-11)
    turning = lw.linkages.range_of_motion(mech, "left_joint", q=start)
    assert [end.cause for end in turning.ends] == ["full rotation", "full rotation"]
    assert (turning.lower, turning.upper) == (-np.inf, np.inf)


def test_a_saddle_is_no_end():
    arm = lw.mechanisms.planar_arm(2)  # of two links of a metre, folded: no motion changes tip.x at once
    found = lw.linkages.range_of_motion(arm, "tip.x", q=[0.0, np.pi])
    np.testing.assert_allclose([found.lower, found.upper], [-2.0, 2.0], rtol=1e-12)


def test_with_everything_free_a_delta_robot_hangs_as_low_as_on_its_axis():
    found = lw.linkages.range_of_motion(built("delta_robot"), "platform.z")
    grid = np.linspace(-0.5, 0.5, 201)  # even, with the axis in the middle
    x, y = np.meshgrid(grid, grid)
    distance, _, largest = delta_legs(np.stack([x, y, np.zeros_like(x)], axis=-1))
    np.testing.assert_allclose(found.lower, -np.sqrt(np.max((largest**2 - distance**2).min(axis=-1))), rtol=1e-12)


def test_a_stewart_platform_goes_as_far_as_the_limits_of_its_legs_let_it():
    legs = [f"leg{i}_rod_joint" for i in range(1, 7)]
    mech = built("stewart_platform").with_limits({leg: lw.Limits(-0.15, 0.2) for leg in legs})
    feet, heads = stewart_points()
    neutral = np.linalg.norm([0.0, 0.0, 1.0] + heads - feet, axis=-1)

    def stretch(pose: np.ndarray) -> np.ndarray:
        points = pose[:3] + Rotation.from_rotvec(pose[3:]).apply(heads)
        return np.linalg.norm(points - feet, axis=-1) - neutral

    inside = [
        {"type": "ineq", "fun": lambda pose: stretch(pose) + 0.15},
        {"type": "ineq", "fun": lambda pose: 0.2 - stretch(pose)},
    ]
    for k, name in ((1, "platform.y"), (2, "platform.z")):
        found = lw.linkages.range_of_motion(mech, name, limits=True)
        for end, sense in zip(found.ends, (-1.0, 1.0), strict=True):
            best = minimize(
                lambda pose, k=k, sense=sense: -sense * pose[k],
                [0.0, 0.0, 1.0, 0.0, 0.0, 0.0],
                constraints=inside,
                options={"maxiter": 500, "ftol": 1e-13},
            )
            assert end.cause == "joint limit" and set(end.joint.split(", ")) <= set(legs)
            np.testing.assert_allclose(end.value, best.x[k], atol=1e-7)
        slides = found.path.q[:, [mech.q_index(leg).start for leg in legs]]
        assert slides.min() > -0.15 - 1e-9 and slides.max() < 0.2 + 1e-9


def test_limits_wider_than_a_full_turn_are_limits():
    arm = lw.mechanisms.planar_arm(1).with_limits(joint1=lw.Limits(lower=-10.0, upper=10.0))
    found = lw.linkages.range_of_motion(arm, "joint1", limits=True)
    assert (found.lower, found.upper) == pytest.approx((-10.0, 10.0), abs=1e-9)
    free = lw.linkages.range_of_motion(arm, "joint1")
    assert (free.lower, free.upper) == (-np.inf, np.inf)


def test_the_area_of_a_square_is_that_of_the_square():
    found = lw.linkages.workspace(
        lw.mechanisms.planar_arm(2), ("joint1", "joint2"), bounds=((0.0, 1.0), (0.0, 1.0)), points=11
    )
    assert found.is_reached.all() and found.area == pytest.approx(1.0, rel=1e-12)


def test_only_the_limit_that_stops_a_joint_is_named():
    """Another joint rests at its own bound all the while."""
    arm = lw.mechanisms.planar_arm(2).with_limits(joint1=lw.Limits(-0.5, 1.2), joint2=lw.Limits(0.0, 0.8))
    found = lw.linkages.range_of_motion(arm, "joint1", limits=True)
    assert str(found).endswith("from -0.5 (joint limit of joint1) to 1.2 (joint limit of joint1)")
