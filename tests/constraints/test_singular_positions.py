"""Singular positions along motions and over workspaces against formulas and dense searches that share no code."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq

import linkwise as lw

from ..linkages.test_ranges import LEVEL, at_platform
from .built_in import built
from .parallel_robots import (
    DELTA,
    FAR,
    GAP,
    NEAR,
    ThreeLegs,
    delta_legs,
    elbows_of,
    stewart_determinant,
    stewart_legs,
    two_arms,
    two_arms_at,
)

ARMS = ("arm1_joint", "arm2_joint", "arm3_joint")
LEGS = tuple(f"leg{i}_rod_joint" for i in range(1, 7))
DRIVES = ("left_joint", "right_joint")
TIP = ("tip.x", "tip.y")


def moves_without(mech: lw.Mechanism, position: lw.linkages.SingularPosition, joints) -> None:
    """The motions that a singular position names keep loops closed and the joints at rest."""
    rows = [
        lw.constraints.constraint_jacobian(mech, position.q),
        *(np.eye(mech.nv)[mech.v_index(name)] for name in joints),
    ]
    np.testing.assert_allclose(np.concatenate(rows) @ position.motions, 0.0, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(position.motions, axis=0), 1.0, rtol=1e-12)


# -- along a motion -----------------------------------------------------------------------------------


def test_a_slider_cannot_drive_through_its_dead_centres():
    mech = built("slider_crank")
    found = lw.linkages.singular_positions(mech, "slider_joint", outputs="crank_joint")
    assert [one.kind for one in found] == ["input", "input"]
    np.testing.assert_allclose(np.cos([one.q[0] for one in found]), 0.0, atol=1e-12)  # the crank is upright at zero
    for one in found:
        moves_without(mech, one, ("slider_joint",))
    swapped = lw.linkages.singular_positions(mech, "crank_joint", outputs="slider_joint")
    assert [one.kind for one in swapped] == ["output", "output"]


@pytest.mark.parametrize("crank", [0.0, np.pi])
def test_a_dead_centre_at_the_start_is_found_like_others(crank):
    """A crank of 0.1 and a rod of 0.3 in line with the slide: q is known in closed form."""
    link = lw.Builder().link("crank", 1.0, inertia=(1, 1, 1)).link("rod", 1.0, inertia=(1, 1, 1)).link("piston", 1.0)
    link.joint("crank", lw.Revolute(), "ground", "crank").joint("pin", lw.Revolute(), "crank", "rod", (0.1, 0, 0))
    link.joint("slide", lw.Prismatic((1, 0, 0)), "ground", "piston")
    mech = link.loop("wrist", lw.Revolute(), "rod", (0.3, 0, 0), "piston").build("in line")
    start = [crank, -crank, 0.3 + 0.1 * np.cos(crank)]
    found = lw.linkages.singular_positions(mech, "crank", start, outputs="slide")
    assert [one.kind for one in found] == ["output", "output"]
    for one in found:
        nearest = np.round(one.q[:2] / np.pi) * np.pi
        np.testing.assert_allclose(one.q, [*nearest, 0.3 + 0.1 * np.cos(nearest[0])], atol=1e-9)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_parallelograms_are_singular_when_they_lie_flat(count):
    mech = lw.mechanisms.n_four_bar(count)
    found = lw.linkages.singular_positions(mech, "post0_joint")
    assert [one.kind for one in found] == ["constraint", "constraint"]
    for one, angle in zip(found, (0.5 * np.pi, 1.5 * np.pi), strict=True):
        np.testing.assert_allclose(one.q, [angle] * (count + 1) + [-angle] * count, atol=1e-10)
        assert one.motions.shape == (mech.nv, count + 1)  # every parallelogram may turn inside out on its own
        moves_without(mech, one, ())


def test_two_arms_are_singular_where_outer_links_are_in_line_or_an_arm_is_stretched():
    mech, start = two_arms(), two_arms_at(np.array([0.4, 1.2]))
    found = lw.linkages.singular_positions(mech, DRIVES, q=start, outputs=TIP, hold=("left_joint",))
    angle = np.linspace(0.0, 2.0 * np.pi, 200001)  # the right arm over a full turn, both ways to join the outer links
    elbow = elbows_of(np.stack([np.full_like(angle, start[0]), 0 * angle, angle, 0 * angle], axis=-1))
    apart = np.linalg.norm(elbow[:, 0] - elbow[:, 1], axis=-1)
    parallel = np.flatnonzero(np.diff(np.sign(apart - 2.0 * FAR)))
    assert sorted(one.kind for one in found).count("input") == len(parallel) == 2
    for one in found:
        left, right = elbows_of(one.q)
        tip = lw.frame_pose(mech, one.q, "tip")[:2, 3]
        if one.kind == "input":
            np.testing.assert_allclose(np.linalg.norm(left - right), 2.0 * FAR, rtol=1e-12)
        else:
            reach = np.linalg.norm([tip, tip - [GAP, 0.0]], axis=-1)
            assert min(*np.abs(reach - NEAR - FAR), *np.abs(reach - FAR + NEAR)) < 1e-12
        moves_without(mech, one, DRIVES if one.kind == "input" else ())
    serial = 0
    for side in (1.0, -1.0):
        middle, half = elbow.mean(axis=1), 0.5 * (elbow[:, 1] - elbow[:, 0])
        height = np.sqrt(np.maximum(FAR**2 - (half**2).sum(axis=-1), 0.0)) / np.linalg.norm(half, axis=-1)
        tips = middle + side * height[:, None] * np.stack([-half[:, 1], half[:, 0]], axis=-1)
        for k, foot in enumerate((0.0, GAP)):
            way, link = tips - elbow[:, k], elbow[:, k] - [foot, 0.0]
            bend = np.where(apart <= 2.0 * FAR, link[:, 0] * way[:, 1] - link[:, 1] * way[:, 0], np.nan)
            serial += int(np.sum(bend[:-1] * bend[1:] < 0.0))
    assert len(found) == len(parallel) + serial


def test_a_delta_robot_on_its_axis_is_singular_where_arms_are_stretched_and_where_rods_are_parallel():
    mech = built("delta_robot")
    hold = ("platform.x", "platform.y")
    found = lw.linkages.singular_positions(mech, ARMS, outputs=(*hold, "platform.z"), hold=hold)
    reach = DELTA["base"] - DELTA["plate"]
    seen = {"output": [], "input": [], "constraint": []}
    for one in found:
        seen[one.kind].append(lw.frame_pose(mech, one.q, "platform")[2, 3])
    stretched = [-np.sqrt((DELTA["forearm"] + sign * DELTA["arm"]) ** 2 - reach**2) for sign in (1.0, -1.0)]
    np.testing.assert_allclose(sorted(seen["output"]), stretched, rtol=1e-12)
    # Rods are upright where elbows are above wrists: nothing keeps the platform from turning, and from sideways motion.
    lift = DELTA["arm"] * np.sin(np.arccos(reach / DELTA["arm"]))
    upright = [-DELTA["forearm"] - lift, -DELTA["forearm"] + lift]
    np.testing.assert_allclose(sorted(seen["constraint"]), upright, rtol=1e-9)
    np.testing.assert_allclose(sorted(seen["input"]), upright, rtol=1e-7)


def test_a_stewart_platform_is_singular_where_its_legs_lines_depend_on_each_other():
    mech = built("stewart_platform")
    place = (0.08, 0.05, 1.1)
    start = lw.constraints.assemble(
        mech, at_platform(mech, lw.neutral(mech), (0.08, 0.05, 0.1)), hold=("platform_joint",)
    )
    hold = ("platform.x", "platform.y", "platform.z", *LEVEL[:2])
    limited = mech.with_limits(
        {"platform_joint": lw.Limits([-2.0] * 3 + [-0.95] + [-9.0] * 3, [2.0] * 3 + [0.95] + [9.0] * 3)}
    )
    found = lw.linkages.singular_positions(limited, LEGS, q=start, hold=hold, limits=True)
    most = 2.0 * np.arcsin(0.95)
    yaw = np.linspace(-most, most, 4001)
    values = np.array([stewart_determinant(np.array(place), angle) for angle in yaw])
    brackets = np.flatnonzero(values[:-1] * values[1:] < 0.0)
    expected = [brentq(lambda x: stewart_determinant(np.array(place), x), yaw[k], yaw[k + 1]) for k in brackets]
    assert len(expected) >= 2 and {one.kind for one in found} == {"input"}
    quaternions = np.array([one.q[mech.q_index("platform_joint")] for one in found])
    np.testing.assert_allclose(np.sort(2.0 * np.arcsin(quaternions[:, 3])), expected, atol=1e-9)
    for one in found:
        moves_without(mech, one, LEGS)


# -- over a workspace ---------------------------------------------------------------------------------


def reached_by_two_arms(points: np.ndarray) -> np.ndarray:
    """(...): whether both arms reach (..., 2)."""
    distances = [np.hypot(points[..., 0] - foot, points[..., 1]) for foot in (0.0, GAP)]
    return np.all([(FAR - NEAR < d) & (d < FAR + NEAR) for d in distances], axis=0)


def test_workspace_of_two_arms_has_circles_as_boundary_and_a_coupler_curve_inside():
    mech, start = two_arms(), two_arms_at(np.array([0.4, 1.2]))
    found = lw.linkages.workspace(
        mech, TIP, ((-2.03, 2.8), (-2.0, 2.01)), q=start, inputs=DRIVES, outputs=TIP, points=41
    )
    grid = np.stack(np.meshgrid(found.first, found.second, indexing="ij"), axis=-1)
    assert np.array_equal(found.is_reached, reached_by_two_arms(grid))
    np.testing.assert_allclose(
        lw.frame_pose(mech, found.q[found.is_reached], "tip")[:, :2, 3], grid[found.is_reached], atol=1e-13
    )
    assert np.all(np.sin(found.q[found.is_reached][:, 1]) < 0.0)  # the assembly mode of the start, everywhere
    assert np.all(np.sin(found.q[found.is_reached][:, 3]) > 0.0)

    edge = np.concatenate([curve.points for curve in found.curves_of("boundary")])
    reach = np.stack([np.hypot(edge[:, 0] - foot, edge[:, 1]) for foot in (0.0, GAP)])
    assert np.minimum(np.abs(reach - NEAR - FAR), np.abs(reach - FAR + NEAR)).min(axis=0).max() < 1e-11
    assert all(curve.is_closed for curve in found.curves_of("boundary")) and len(found.curves_of("boundary")) == 3

    inner = np.concatenate([curve.q for curve in found.curves_of("input")])
    elbows = elbows_of(inner)
    apart = np.linalg.norm(elbows[:, 0] - elbows[:, 1], axis=-1)
    assert np.minimum(np.abs(apart - 2.0 * FAR), apart).max() < 1e-9
    assert np.any(apart > 1.0) and not found.curves_of("output")

    def mode(points):  # sign of the outer links' angle, by the same formula of arms as the start
        q = np.array([two_arms_at(point) for point in points])
        ends = [elbow - points for elbow in np.swapaxes(elbows_of(q), 0, 1)]
        return ends[0][:, 0] * ends[1][:, 1] - ends[0][:, 1] * ends[1][:, 0]

    sides = found.measures["input"][found.is_reached]
    dense = mode(grid[found.is_reached])
    assert abs(np.sum(np.sign(sides) * np.sign(dense))) == len(sides)  # the same regions, up to one sign for all


def test_without_bounds_a_workspace_is_looked_at_as_a_whole():
    mech, start = two_arms(), two_arms_at(np.array([0.4, 1.2]))
    found = lw.linkages.workspace(mech, TIP, q=start, points=15)
    high = np.sqrt((NEAR + FAR) ** 2 - (GAP / 2.0) ** 2)
    for line, ends in ((found.first, (GAP - NEAR - FAR, NEAR + FAR)), (found.second, (-high, high))):
        np.testing.assert_allclose(line[[0, -1]], [1.05 * ends[0] - 0.05 * ends[1], 1.05 * ends[1] - 0.05 * ends[0]])
    assert not (found.is_reached[[0, -1]].any() or found.is_reached[:, [0, -1]].any())
    told = f"<Workspace of tip.x, tip.y of {mech.name}: {found.is_reached.sum()} of 225 points of the grid are reached"
    assert repr(found).startswith(told) and len(repr(found)) < 200
    turning = lw.linkages.workspace(mech, DRIVES, q=start, points=9)
    np.testing.assert_allclose(np.ptp(turning.first), 2.0 * np.pi)
    builder = lw.Builder()
    for name, axis, parent in (("bridge", (1, 0, 0), "ground"), ("trolley", (0, 1, 0), "bridge")):
        builder.link(name, 1.0, (0, 0, 0), (0.1, 0.1, 0.1)).joint(f"{name}_track", lw.Prismatic(axis), parent, name)
    with pytest.raises(lw.MechanismError, match="'bridge_track' of mechanism 'crane' goes on and on: give bounds"):
        lw.linkages.workspace(builder.build("crane"), ("bridge_track", "trolley_track"))


def test_singular_positions_over_inputs_are_the_curves_of_the_workspace():
    mech, start = two_arms(), two_arms_at(np.array([0.4, 1.2]))
    low, high = start[[0, 2]] - 0.9, start[[0, 2]] + 0.9
    bounds = tuple(zip(low, high, strict=True))
    curves = lw.linkages.singular_positions(mech, DRIVES, q=start, outputs=TIP, over=DRIVES, bounds=bounds, points=31)
    kinds = {curve.kind for curve in curves}
    assert kinds == {"boundary", "output"}  # where inputs cannot go on the outer links are in line
    for curve in curves:
        left, right = elbows_of(curve.q)[:, 0], elbows_of(curve.q)[:, 1]
        if curve.kind == "boundary":
            np.testing.assert_allclose(np.linalg.norm(left - right, axis=-1), 2.0 * FAR, rtol=1e-11)
        else:
            np.testing.assert_allclose(np.abs(np.sin(curve.q[:, [1, 3]])).min(axis=-1), 0.0, atol=1e-9)


def test_a_slice_of_the_workspace_of_a_delta_robot():
    mech = built("delta_robot")
    height = -0.85
    home = lw.frame_pose(mech, lw.neutral(mech), "platform")[2, 3]
    start = lw.constraints.assemble(
        mech, at_platform(mech, lw.neutral(mech), (0.0, 0.0, height - home)), hold=("platform_joint",)
    )
    found = lw.linkages.workspace(
        mech, ("platform.x", "platform.y"), ((-0.9, 0.9), (-0.9, 0.9)), q=start, hold=("platform.z",), points=19
    )
    x, y = np.meshgrid(found.first, found.second, indexing="ij")
    distance, least, largest = delta_legs(np.stack([x, y, np.full_like(x, height)], axis=-1))
    assert np.array_equal(found.is_reached, ((distance > least) & (distance < largest)).all(axis=-1))
    edge = np.concatenate([curve.points for curve in found.curves])
    distance, least, largest = delta_legs(np.column_stack([edge, np.full(len(edge), height)]))
    assert np.minimum(np.abs(distance - least), np.abs(distance - largest)).min(axis=-1).max() < 1e-10


def test_a_slice_of_the_workspace_of_a_stewart_platform_ends_at_limits_of_legs():
    mech = built("stewart_platform").with_limits({leg: lw.Limits(-0.15, 0.2) for leg in LEGS})
    found = lw.linkages.workspace(
        mech,
        ("platform.x", "platform.y"),
        ((-0.6, 0.6), (-0.6, 0.6)),
        hold=("platform.z", *LEVEL),
        points=9,
        limits=True,
    )
    x, y = np.meshgrid(found.first, found.second, indexing="ij")
    lengths = stewart_legs(np.stack([x, y, np.ones_like(x)], axis=-1))
    assert np.array_equal(found.is_reached, ((lengths >= -0.15) & (lengths <= 0.2)).all(axis=-1))
    assert {curve.kind for curve in found.curves} == {"limit"}
    edge = np.concatenate([curve.points for curve in found.curves])
    lengths = stewart_legs(np.column_stack([edge, np.ones(len(edge))]))
    assert np.minimum(np.abs(lengths + 0.15), np.abs(lengths - 0.2)).min(axis=-1).max() < 1e-9


HIPS = ("hip0", "hip1", "hip2")
LEG_CASES = [  # lengths of links, radius and angle of the plate, signs of knees
    pytest.param((0.9, 0.9, 0.3, 0.2, (1, 1, 1))),  # legs fold to nothing inside the workspace
    pytest.param((0.9, 0.7, 0.3, 0.2, (1, 1, 1)), marks=pytest.mark.slow),
    pytest.param((0.75, 0.75, 0.2, -0.5, (1, -1, 1)), marks=pytest.mark.slow),
    pytest.param((0.6, 0.95, 0.35, 0.7, (-1, -1, 1)), marks=pytest.mark.slow),
]


@pytest.mark.parametrize("case", LEG_CASES)
def test_three_legs_that_fold_are_singular_where_their_determinants_vanish(case):
    near, far, plate, angle, signs = case
    legs = ThreeLegs(near, far, plate)
    mech, box = legs.mech, ((-1.5, 1.5), (-1.52, 1.5))
    start = legs.at(0.0, 0.0, angle, np.array(signs))
    options = {"q": start, "inputs": HIPS, "outputs": ("plate",), "points": 21}
    found = lw.linkages.workspace(mech, ("plate[0]", "plate[1]"), box, hold=("plate[2]",), **options)
    assert np.array_equal(found.is_reached, legs.reaches(*np.meshgrid(found.first, found.second, indexing="ij"), angle))
    q = found.q[found.is_reached]
    assert np.abs(lw.constraints.position_error(mech, q)).max() < 1e-12
    assert np.array_equal(np.sign(legs.serial(q)), np.broadcast_to(signs, (len(q), 3)))
    sides = np.sign(found.measures["input"][found.is_reached]) * np.sign(legs.parallel(q))
    assert abs(sides.sum()) == len(q)  # the same regions, up to one sign for all
    assert {curve.kind for curve in found.curves} <= {"boundary", "input"}
    for curve in found.curves:
        assert np.abs(lw.constraints.position_error(mech, curve.q)).max() < 1e-12
        inside = curve.kind == "input"
        zero = np.abs(legs.parallel(curve.q)) if inside else np.abs(legs.serial(curve.q)).min(axis=-1)
        assert zero.max() < (1e-9 if inside else 1e-6)  # a knee is known to the root of what the position is
    if near == far and signs == (1, 1, 1):
        assert [curve.is_closed for curve in found.curves_of("input")] == [True] * 3


def three_legs_at_random(seed: int) -> tuple[ThreeLegs, np.ndarray]:
    """Three legs and a configuration of theirs; of every third seed, legs that fold to nothing."""
    rng = np.random.default_rng(seed)
    near, far, angle, plate = (rng.uniform(*ends) for ends in ((0.5, 1.0), (0.5, 1.0), (-1.0, 1.0), (0.1, 0.4)))
    legs = ThreeLegs(near, near if seed % 3 == 0 else far, plate)
    return legs, legs.at(0.0, 0.0, angle, rng.choice([-1.0, 1.0], 3))


def over_hips(legs: ThreeLegs, start: np.ndarray, points: int, half: float = np.pi) -> lw.linkages.Workspace:
    box = [(x - half, x + half) for x in (start[legs.mech.q_index(name).start] for name in HIPS[:2])]
    return lw.linkages.workspace(legs.mech, HIPS[:2], box, start, HIPS, ("plate",), hold=HIPS[2:], points=points)


def check_assembly_mode(legs: ThreeLegs, found: lw.linkages.Workspace, start: np.ndarray) -> None:
    """All points that are reached are joined to the start by motions along the grid, and no such motion leads to a
    point that is not: by the differential equation of the plate."""
    mech, shape = legs.mech, found.is_reached.shape
    hips = [mech.q_index(name).start for name in HIPS]
    lines = (found.first, found.second)
    first = tuple(int(np.argmin(np.abs(line - start[k]))) for line, k in zip(lines, hips, strict=False))
    joined, new = {first}, [first]
    while new:
        node = new.pop()
        for step in ((0, 1), (0, -1), (1, 0), (-1, 0)):
            there = (node[0] + step[0], node[1] + step[1])
            if there in joined or min(there) < 0 or there[0] >= shape[0] or there[1] >= shape[1]:
                continue
            goal = np.array([found.first[there[0]], found.second[there[1]], start[hips[2]]])
            plate = legs.driven(found.q[node], goal)
            if plate is None:
                continue
            assert found.is_reached[there], f"{there} is reached from {node}"
            off = plate - found.q[there][mech.q_index("plate")]
            off[2] = np.arctan2(np.sin(off[2]), np.cos(off[2]))
            if np.abs(off).max() < 1e-6:  # a sheet may meet itself with other angles of the hips
                joined.add(there)
                new.append(there)
    assert joined == set(map(tuple, np.argwhere(found.is_reached).tolist()))


@pytest.mark.parametrize(("seed", "points"), [(8, 9), (16, 9), (22, 13)])
def test_three_legs_go_as_far_as_their_differential_equation(seed, points):
    """Seed 8 starts close to a singular position."""
    legs, start = three_legs_at_random(seed)
    check_assembly_mode(legs, over_hips(legs, start, points), start)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "points"), [(seed, 9) for seed in range(20)] + [(seed, 25) for seed in range(0, 22, 3)]
)
def test_many_three_legs_go_as_far_as_their_differential_equation(seed, points):
    legs, start = three_legs_at_random(seed)
    check_assembly_mode(legs, over_hips(legs, start, points), start)


def test_a_branch_through_the_edge_of_an_assembly_mode_is_not_followed():
    """Between two points of the grid the plate may go straight on through a position in which the determinant vanishes:
    what is behind belongs to another assembly mode."""
    legs, start = three_legs_at_random(9)
    q = over_hips(legs, start, 25).q[20, 16]  # a folded leg, beside that position
    found = over_hips(legs, q, 7, 3 * np.pi / 12)
    assert found.is_reached.sum() > 10 and np.all(legs.parallel(found.q[found.is_reached]) < 0.0)
    check_assembly_mode(legs, found, q)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_three_legs_over_their_inputs_stay_in_one_assembly_mode(seed):
    legs, start = three_legs_at_random(seed)
    mech, found = legs.mech, over_hips(legs, start, 25)
    q = found.q[found.is_reached]
    assert len(np.unique(np.sign(legs.parallel(q)))) == 1
    measure, knees = found.measures["output"][found.is_reached], legs.serial(q).prod(axis=-1)
    on_curve = measure == 0.0  # points of the grid, of legs that fold to nothing
    assert np.abs(knees[on_curve]).max(initial=0.0) < 1e-12 < np.abs(knees[~on_curve]).min()
    assert abs(np.sum(np.sign(measure) * np.sign(knees))) == np.sum(~on_curve)
    for curve in found.curves:
        assert np.abs(lw.constraints.position_error(mech, curve.q)).max() < 1e-12
        inside = curve.kind == "output"
        zero = np.abs(legs.serial(curve.q)).min(axis=-1) if inside else np.abs(legs.parallel(curve.q))
        assert zero.max() < 1e-6


def test_loops_that_depend_on_each_other_along_a_curve():
    mech = built("parallel_four_bar_robot")
    start = np.array([1.0, 0.3, 0.7, -0.7 - np.pi])
    found = lw.linkages.workspace(mech, ("joint1", "joint2"), ((-0.5, 1.5), (0.0, 1.03)), q=start, points=(20, 11))
    assert found.is_reached.all()
    assert [curve.kind for curve in found.curves] == ["constraint"]
    np.testing.assert_allclose(found.curves[0].points[:, 0], found.curves[0].points[:, 1], atol=1e-7)


def test_refusals_of_workspaces_say_what_to_do():
    mech, start = two_arms(), two_arms_at(np.array([0.4, 1.2]))
    for bounds in (((0.0, 1.0),), ((1.0, 0.0), (0.0, 1.0)), ((0.0, np.inf), (0.0, 1.0))):
        with pytest.raises(lw.MechanismError, match="bounds are .* finite and low < high"):
            lw.linkages.workspace(mech, TIP, bounds, q=start)
    with pytest.raises(lw.MechanismError, match="choose bounds around it"):
        lw.linkages.workspace(mech, TIP, ((5.0, 6.0), (5.0, 6.0)), q=start)
    with pytest.raises(lw.MechanismError, match="a workspace has two coordinates"):
        lw.linkages.workspace(mech, "tip.x", ((0.0, 1.0), (0.0, 1.0)), q=start)
    with pytest.raises(lw.MechanismError, match="at least 2 points"):
        lw.linkages.workspace(mech, TIP, ((0.0, 1.0), (0.0, 1.0)), q=start, points=1)
    with pytest.raises(lw.MechanismError, match="has 3: hold 1 more"):
        lw.linkages.workspace(built("delta_robot"), ("platform.x", "platform.y"), ((0.0, 1.0), (0.0, 1.0)))
