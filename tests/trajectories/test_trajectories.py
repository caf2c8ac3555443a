"""Laws of time, paths and motions: derivatives against differences, splines against SciPy's, on any joints."""

from __future__ import annotations

import copy
import csv
import pickle
import warnings

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

import linkwise as lw
from linkwise import trajectories as tr

STEP = 1e-5


@pytest.mark.parametrize("law", [tr.cycloid, tr.quintic, tr.trapezoid, lambda t, T: tr.trapezoid(t, T, 0.5)])
def test_laws_start_and_end_at_rest_and_have_their_derivatives(law):
    t = np.linspace(0.01, 1.99, 117)
    s, rate, change = law(t, 2.0)
    np.testing.assert_allclose((law(t + STEP, 2.0)[0] - law(t - STEP, 2.0)[0]) / (2 * STEP), rate, atol=1e-4)
    smooth = np.abs(law(t + STEP, 2.0)[2] - law(t - STEP, 2.0)[2]) < 1e-3
    slope = (law(t + STEP, 2.0)[1] - law(t - STEP, 2.0)[1]) / (2 * STEP)
    np.testing.assert_allclose(slope[smooth], change[smooth], atol=1e-6)
    assert smooth.sum() > 100 and (np.diff(s) > 0.0).all()
    np.testing.assert_allclose(
        [law(np.array(x), 2.0)[0] for x in (-1.0, 0.0, 1.0, 2.0, 5.0)], [0, 0, 0.5, 1, 1], atol=1e-15
    )
    assert all(law(np.array(x), 2.0)[1] == 0.0 for x in (-1.0, 5.0))


@pytest.mark.seed("saha1999", "38", by="library")
def test_the_cycloid_is_the_printed_one():
    t, duration = np.linspace(0.0, 10.0, 41), 10.0
    printed = 0.5 * (2.0 * np.pi / duration * t - np.sin(2.0 * np.pi / duration * t))
    np.testing.assert_allclose(np.pi * tr.cycloid(t, duration)[0], printed, atol=1e-14)
    q, v, a = tr.point_to_point(lw.mechanisms.planar_arm(3), np.zeros(3), np.full(3, np.pi), duration)(t)
    np.testing.assert_allclose(q, np.tile(printed[:, None], 3), atol=1e-14)


def test_splines_of_ordinary_coordinates_are_those_of_scipy():
    mech, rng = lw.mechanisms.chain(4), np.random.default_rng(0)
    q, at, t = rng.normal(size=(6, 4)), np.array([0.0, 0.5, 0.9, 2.0, 2.2, 3.0]), np.linspace(0.0, 3.0, 50)
    ends = rng.normal(size=(2, 4))
    for given, kind in ((None, "clamped"), (ends, ((1, ends[0]), (1, ends[1])))):
        expected = CubicSpline(at, q, bc_type=kind)
        for found, order in zip(tr.spline(mech, q, at, given)(t), range(3), strict=True):
            np.testing.assert_allclose(found, expected(t, order), atol=1e-9)
    natural = tr.spline(mech, q)
    expected = CubicSpline(natural.knots, q, bc_type="natural")
    np.testing.assert_allclose(natural(t / 3.0)[2], expected(t / 3.0, 2), atol=1e-8)


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (0, *range(2, 8)))])
def test_motions_of_all_joints_pass_their_waypoints_and_have_their_derivatives(seed):
    mech = lw.mechanisms.random_tree(6, seed, floating_base=seed % 2 == 1)
    rng = np.random.default_rng(seed)
    q, _ = lw.random_state(mech, rng, (4,))
    at = np.array([0.0, 1.0, 1.5, 3.0])
    path = tr.spline(mech, q, at)
    motion = tr.along(path)
    np.testing.assert_allclose(lw.difference(mech, motion(at)[0], q), 0.0, atol=1e-12)
    t = np.array([0.2, 0.8, 1.2, 2.0, 2.9])
    _, v, a = motion(t)
    (before, v_before, _), (after, v_after, _) = motion(t - STEP), motion(t + STEP)
    np.testing.assert_allclose(lw.difference(mech, before, after) / (2 * STEP), v, atol=1e-6)
    np.testing.assert_allclose((v_after - v_before) / (2 * STEP), a, atol=1e-5)
    # Pieces meet with equal velocities and accelerations, and the ends are at rest.
    (left, *rates_left), (right, *rates_right) = path(at[1:-1] - 1e-12), path(at[1:-1] + 1e-12)
    np.testing.assert_allclose(lw.difference(mech, left, right), 0.0, atol=1e-10)
    np.testing.assert_allclose(rates_left, rates_right, atol=1e-8)
    np.testing.assert_allclose(motion(at[[0, -1]])[1], 0.0, atol=1e-9)
    one = tr.point_to_point(mech, q[0], q[1], 2.0, law="quintic")
    np.testing.assert_allclose(lw.difference(mech, one(2.0)[0], q[1]), 0.0, atol=1e-12)
    np.testing.assert_allclose(one(1.0)[1], 15.0 / 16.0 * lw.difference(mech, q[0], q[1]), atol=1e-9)


def test_velocities_and_accelerations_at_waypoints_are_met():
    mech, rng = lw.mechanisms.random_tree(3, 5, [lw.Spherical]), np.random.default_rng(1)
    q, v = lw.random_state(mech, rng, (3,))
    a = rng.normal(size=v.shape)
    path = tr.spline(mech, q, [0.0, 1.0, 2.5], v, a)
    for found, expected in zip(path([0.0, 1.0, 2.5])[1:], (v, a), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-9)


def test_the_shortest_duration_of_a_law():
    mech = lw.mechanisms.chain(2).with_limits({f"joint{k}": lw.Limits(velocity=2.0) for k in (1, 2)})
    q = [0.0, 0.0], [3.0, -1.0]
    motion = tr.point_to_point(mech, *q, law="trapezoid", acceleration={"joint2": 0.5}, ramp=0.25)
    _, _, v, a = motion.sample(4001)
    assert motion.duration == pytest.approx(max(3.0 / 0.75 / 2.0, np.sqrt(1.0 / 0.75 / 0.25 / 0.5)), rel=1e-3)
    assert np.abs(v).max() <= 2.0 + 1e-9 and np.abs(a[:, 1]).max() <= 0.5 + 1e-9
    for bound, expected in (
        (4.0, 3.0 / 2.0 + 2.0 / 4.0),
        (0.75, 2.0 * np.sqrt(3.0 / 0.75)),
    ):  # a phase at 2 rad/s or not
        motion = tr.point_to_point(mech, *q, law="trapezoid", acceleration=bound)
        _, _, v, a = motion.sample(4001)
        assert motion.duration == pytest.approx(expected, rel=1e-6)
        assert np.abs(v).max() <= 2.0 + 1e-9 and np.abs(a).max() <= bound + 1e-9
    assert tr.point_to_point(mech, *q, law="trapezoid").duration == pytest.approx(3.0 / 0.75 / 2.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: tr.point_to_point(m, [0.0, 0.0], [1.0, 1.0], -1.0), "duration must be"),
        (lambda m: tr.point_to_point(m, [0.0, 0.0], [1.0, 1.0]), "no bound says how long"),
        (lambda m: tr.point_to_point(m, [0.0], [1.0, 1.0], 1.0), r"q0 must be numbers of shape \(2,\)"),
        (lambda m: tr.point_to_point(m, [0.0, 0.0], [1.0, 1.0], 1.0, law="cubic"), "unknown law 'cubic'"),
        (lambda m: tr.spline(m, [[0.0, 0.0]]), "two waypoints or more"),
        (lambda m: tr.spline(m, np.zeros((2, 2))), "waypoints 0 and 1 are equal"),
        (lambda m: tr.spline(m, np.eye(2), [1.0, 0.0]), "growing numbers"),
        (lambda m: tr.spline(m, np.eye(2), None, np.zeros(2)), "velocities must have shape"),
        (
            lambda m: tr.spline(m, np.eye(3)[:, :2], [0.0, 1.0, 2.0], None, np.zeros((3, 2))),
            "accelerations .* go with velocities",
        ),
        (lambda m: tr.trapezoid(0.0, 1.0, 0.7), "ramp must be"),
        (lambda m: tr.point_to_point(m, [0.0, 0.0], [1.0, 1.0], 1.0, "trapezoid", ramp=0.7), "ramp must be"),
        (lambda m: tr.point_to_point(m, [0.0, 0.0], [1.0, 1.0], 1.0, ramp=0.2), "ramp=0.2 is for law='trapezoid'"),
        (lambda m: tr.along(tr.line(m, [0.0, 0.0], [1.0, 1.0]), 0.0), "duration must be"),
        (lambda m: tr.spline(m, [[0, 0], [0, np.nan]]), r"must be finite, and has nan at \[1, 1\]"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call(lw.mechanisms.chain(2))


def test_paths_beyond_limits_are_told():
    """Their ends, and what a spline does between waypoints that are within."""
    arm = lw.mechanisms.planar_arm(2).with_limits(joint1=lw.Limits(-2.9, 2.9))
    with pytest.warns(lw.motion.LimitWarning, match=r"'joint1' to 3.5, outside -2.9 .. 2.9;") as told:
        motion = lw.trajectories.point_to_point(arm, np.zeros(2), [3.5, 4.0], duration=2.0)
        lw.trajectories.time_optimal(motion, effort=100.0)
    assert len(told) == 1 and told[0].filename == __file__
    np.testing.assert_allclose(motion(2.0)[0], [3.5, 4.0])
    with pytest.warns(lw.motion.LimitWarning, match="'joint1' to 3"):
        lw.trajectories.spline(arm, [[0.0, 0.0], [2.8, 0.0], [2.8, 0.0], [0.0, 0.0]], at=[0.0, 1.0, 2.0, 3.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lw.trajectories.point_to_point(arm, np.zeros(2), [2.9, 4.0], duration=2.0)
        lw.trajectories.spline(arm, [[0.0, 0.0], [2.9, 0.0]], at=[0.0, 1.0])


def test_configurations_by_joint(tmp_path):
    """Joints that are not named stay where they are; the start is the initial configuration of the mechanism."""
    arm = lw.mechanisms.puma560()
    start, end = np.full(6, 0.2), np.array([1.0, 0.2, 0.2, 0.2, -0.3, 0.2])
    for q0, q1, first, last in (
        (start, {"joint1": 1.0, "joint5": -0.3}, start, end),
        (None, {"joint1": 1.0}, arm.initial, [1.0, *arm.initial[1:]]),
        ({"joint2": 0.4}, None, [arm.initial[0], 0.4, *arm.initial[2:]], arm.initial),
    ):
        motion = tr.point_to_point(arm, q0, q1, 1.0)
        np.testing.assert_allclose(motion([0.0, 1.0])[0], [first, last], atol=1e-14)
    path = tr.spline(arm, [start, {"joint1": 1.0, "joint5": -0.3}, {"joint5": 0.4}], at=[0.0, 1.0, 2.0])
    np.testing.assert_allclose(path([1.0, 2.0])[0], [end, [1.0, 0.2, 0.2, 0.2, 0.4, 0.2]], atol=1e-14)
    with pytest.raises(lw.MechanismError, match="joint9"):
        tr.point_to_point(arm, None, {"joint9": 1.0})


def test_motions_survive_pickling_and_copies():
    arm = lw.mechanisms.puma560()
    path = tr.spline(arm, np.array([np.zeros(6), np.full(6, 0.4), np.full(6, -0.1)]))
    motions = [
        tr.point_to_point(arm, np.zeros(6), np.full(6, 0.3), 0.7, law) for law in ("cycloid", "quintic", "trapezoid")
    ]
    motions += [tr.along(path, 2.0), tr.time_optimal(path, effort=200.0, velocity=3.0)]
    for motion in motions:
        t = np.linspace(-0.1, 1.1, 41) * motion.duration
        for again in (pickle.loads(pickle.dumps(motion)), copy.deepcopy(motion)):
            assert again.duration == motion.duration
            for one, other in zip(again(t), motion(t), strict=True):
                np.testing.assert_array_equal(one, other)


def test_motions_as_tables(tmp_path):
    body = lw.mechanisms.random_tree(3, 1, ("revolute",), floating_base=True)
    motion = tr.along(tr.spline(body, lw.random_state(body, np.random.default_rng(0), (3,))[0], at=[0.0, 1.0, 1.5]))
    motion.save(tmp_path / "motion.npz", 11)
    motion.save(str(tmp_path / "motion.csv"), 11)
    with open(tmp_path / "motion.csv", newline="", encoding="utf-8") as file:
        names, *rows = csv.reader(file)
    table = dict(zip(names, np.array(rows, dtype=float).T, strict=True))
    t, q, v, a = motion.sample(11)
    for k, name in enumerate(body.coordinates.names("v")):
        np.testing.assert_array_equal(table[f"a.{name}"], a[:, k])
    np.testing.assert_array_equal(table[f"q.{body.coordinates.names('q')[-1]}"], q[:, -1])
    with np.load(tmp_path / "motion.npz") as file:
        for one, other in zip((t, q, v, a), (file[name] for name in "tqva"), strict=True):
            np.testing.assert_array_equal(one, other)
    for again in (lw.files.load_motion(tmp_path / "motion.npz"), lw.files.load_motion(tmp_path / "motion.csv", body)):
        assert again.mechanism.joint_names == body.joint_names and again.duration == motion.duration
        for one, other in zip(again(t), (q, v, a), strict=True):
            np.testing.assert_allclose(one, other, atol=1e-9)
    with pytest.raises(lw.MechanismError, match="no ending"):
        motion.save("motion.txt")
    with pytest.raises(lw.MechanismError, match=r"does not say what moves: load_motion\(path, mech\)"):
        lw.files.load_motion(tmp_path / "motion.csv")
    with pytest.raises(lw.MechanismError, match="is no column of puma560"):
        lw.files.load_motion(tmp_path / "motion.csv", lw.mechanisms.puma560())
    with pytest.raises(lw.MechanismError, match="a planned motion, which linkwise.files.load_motion reads"):
        lw.files.load_trajectory(tmp_path / "motion.npz")


def test_motions_of_the_command_line_and_of_simulations_are_loaded(tmp_path):
    """Columns in any order, in degrees, with forces and energies besides."""
    arm, table = lw.mechanisms.planar_arm(2), tmp_path / "log.csv"
    table.write_text("kinetic_energy,q.joint2,t,q.joint1\n1,10,5.0,0\n2,20,5.5,45\n3,60,6.0,90\n")
    motion = lw.files.load_motion(table, arm, degrees=True)
    np.testing.assert_allclose(np.degrees(motion([0.0, 0.5, 1.0])[0]), [[0, 10], [45, 20], [90, 60]], atol=1e-12)
    moved = lw.simulate(arm, [0.3, 0.2], None, 0.2)
    moved.save(tmp_path / "fall.npz")
    again = lw.files.load_motion(tmp_path / "fall.npz")
    for one, other in zip(again(moved.t), (moved.q, moved.v, moved.a), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-9)
    with pytest.raises(lw.MechanismError, match="two times or more"):
        tr.sampled(arm, 0.0, [0.0, 0.0])


def test_planned_motions_are_drawn_as_simulated_ones_are(tmp_path):
    pytest.importorskip("matplotlib")
    arm = lw.mechanisms.planar_arm(2)
    motion = tr.point_to_point(arm, [0.0, 0.0], [0.5, 0.3], 0.2, law="quintic")
    figure = motion.plot(tmp_path / "motion.png")
    curve = figure.axes[2].lines[0]  # torques
    np.testing.assert_allclose(curve.get_ydata()[[0, -1]], motion.torques([0.0, 0.2])[:, 0], atol=1e-9)
    assert motion.animate(tmp_path / "motion.gif", fps=5).exists() and "<html" in motion.show().html
    assert (tmp_path / "motion.png").exists()


def test_a_velocity_limit_of_zero_is_named():
    """As some exporters write where they know none."""
    arm = lw.mechanisms.planar_arm(3)
    still = arm.with_limits({arm.joint_names[1]: lw.Limits(velocity=0.0), arm.joint_names[2]: lw.Limits(velocity=2.0)})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(
            lw.MechanismError, match=f"velocity limit of joints that are to move is 0: {arm.joint_names[1]};"
        ):
            tr.point_to_point(still, np.zeros(3), [0.0, 1.0, 1.0])
        motion = tr.point_to_point(still, np.zeros(3), [0.0, 0.0, 1.0])  # that joint stays
        assert np.abs(motion.sample()[2]).max() == pytest.approx(2.0)
        assert tr.point_to_point(still, np.zeros(3), [0.0, 1.0, 1.0], 3.0).duration == 3.0


@pytest.mark.parametrize("law", ["quintic", tr.cycloid, "trapezoid"])
def test_a_law_along_a_path(law):
    """From rest to rest through the places of the path, with the derivatives of its positions."""
    arm, rng = lw.mechanisms.planar_arm(3), np.random.default_rng(0)
    path = tr.spline(arm, rng.normal(size=(4, 3)), at=[1.0, 2.0, 2.5, 4.0])
    motion = pickle.loads(pickle.dumps(tr.along(path, 3.0, law)))
    t, h = np.linspace(0.3, 2.6, 7), 1e-5
    q, v, a = motion(t)
    s = (tr.laws.LAWS[law] if isinstance(law, str) else law)(t, 3.0)[0]
    np.testing.assert_allclose(q, path(1.0 + 3.0 * s)[0], atol=1e-12)
    np.testing.assert_allclose(v, (motion(t + h)[0] - motion(t - h)[0]) / (2.0 * h), atol=1e-7)
    np.testing.assert_allclose(a, (motion(t + h)[1] - motion(t - h)[1]) / (2.0 * h), atol=1e-5)
    for end, s in ((0.0, 1.0), (3.0, 4.0)):
        q, v, _ = motion(end)
        np.testing.assert_allclose(q, path(s)[0], atol=1e-12)
        np.testing.assert_allclose(v, 0.0, atol=1e-12)


def test_a_bare_law_of_a_motion_says_how_it_is_put_along_a_path():
    path = tr.line(lw.mechanisms.planar_arm(1), [0.0], [1.0])
    with pytest.raises(TypeError, match=r"trajectories.along\(path, duration, law\)"):
        tr.Motion(path, 3.0, tr.quintic)
