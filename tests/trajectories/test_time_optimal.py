"""The fastest motion along a path: known solutions, bounds that are kept and used up, paths that cannot be followed."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

import linkwise as lw
from linkwise import trajectories as tr

WAYPOINTS = np.array(
    [
        [0, 0, 0, 0, 0, 0],
        [0.5, -0.6, 0.3, 0.2, 0.4, 0.1],
        [1.2, -0.2, -0.5, 0.5, -0.2, 0.6],
        [1, 0.5, 0.2, 0, 0.3, -0.4],
    ]
)
EFFORT = np.array([80.0, 120.0, 60.0, 15.0, 15.0, 10.0])


def slider() -> lw.Mechanism:
    return lw.Builder().link("block", 2.0).joint("slide", lw.Prismatic((1, 0, 0)), "ground", "block").build()


def test_a_block_that_is_pushed_and_stopped():
    """Full force to the middle and back: t = 2 sqrt(m l / F); with a bound of velocity l / v + v m / F."""
    line = tr.line(slider(), [0.0], [3.0])
    bang = tr.time_optimal(line, effort=5.0)
    assert bang.duration == pytest.approx(2.0 * np.sqrt(2.0 * 3.0 / 5.0), rel=1e-9)
    np.testing.assert_allclose(np.abs(bang.torques(np.linspace(0.01, bang.duration - 0.01, 50))), 5.0, rtol=1e-9)
    assert tr.time_optimal(line, effort=5.0, velocity=1.0, points=2000).duration == pytest.approx(3.4, rel=1e-5)
    assert tr.time_optimal(line, acceleration=2.5).duration == pytest.approx(bang.duration, rel=1e-9)


@pytest.fixture(scope="module")
def fastest() -> tr.Motion:
    return tr.time_optimal(tr.spline(lw.mechanisms.puma560(), WAYPOINTS), EFFORT, 3.0, points=300)


def test_bounds_are_kept_and_always_one_of_them_is_reached(fastest):
    t = np.linspace(0.0, fastest.duration, 3001)[1:-1]
    used = np.abs(fastest.torques(t)) / EFFORT
    fast = np.abs(fastest(t)[1]) / 3.0
    most = np.maximum(used.max(axis=-1), fast.max(axis=-1))
    assert most.max() < 1.001 and np.mean(most > 0.98) > 0.98  # between places of the grid it is off by its square
    q, v, _ = fastest([0.0, fastest.duration])
    np.testing.assert_allclose(q, WAYPOINTS[[0, -1]], atol=1e-12)
    np.testing.assert_allclose(v, 0.0, atol=1e-5)


def test_a_convex_program_finds_no_faster_motion(fastest):
    """The sum of all x is largest in the fastest motion too: a linear program by other code, on a coarse grid."""
    path, n = fastest.path, 40
    mech, places = path.mechanism, np.linspace(0.0, 1.0, n + 1)
    q, first, second = path(places)
    still = np.zeros_like(first)
    weight = lw.inverse_dynamics(mech, q, still, still)
    m = lw.inverse_dynamics(mech, q, still, first) - weight
    b = lw.inverse_dynamics(mech, q, first, second) - weight
    rows, right = [], []
    for k in range(n):
        for place in (k, k + 1):
            for sign in (1.0, -1.0):
                for j in range(6):
                    row = np.zeros(n + 1)
                    row[k] -= sign * m[place, j] * n / 2.0
                    row[k + 1] += sign * m[place, j] * n / 2.0
                    row[place] += sign * b[place, j]
                    rows.append(row)
                    right.append(EFFORT[j] - sign * weight[place, j])
    largest = np.min((3.0 / np.abs(first)) ** 2, axis=-1)
    limits = [(0.0, 0.0 if k in (0, n) else largest[k]) for k in range(n + 1)]
    best = linprog(-np.ones(n + 1), A_ub=np.array(rows), b_ub=right, bounds=limits)
    coarse = tr.time_optimal(path, EFFORT, 3.0, points=n)
    x = np.maximum(best.x, 0.0)
    duration = np.sum(2.0 / n / (np.sqrt(x[:-1]) + np.sqrt(x[1:])))
    assert coarse.duration == pytest.approx(duration, rel=2e-3)  # the largest x step by step, or in sum


@pytest.mark.slow
def test_limits_of_the_joints_are_the_default_and_joints_may_rotate_freely():
    builder = lw.Builder().link("head", 2.0, (0, 0, 0.1), (0.05, 0.04, 0.03))
    mech = builder.joint("neck", lw.Spherical(), "ground", "head", limits=lw.Limits(effort=6.0)).build()
    rng = np.random.default_rng(2)
    q, _ = lw.random_state(mech, rng, (4,))
    motion = tr.time_optimal(tr.spline(mech, q), points=200)
    used = np.abs(motion.torques(np.linspace(0.0, motion.duration, 500))).max(axis=-1) / 6.0
    assert used.max() < 1.01 and np.mean(used > 0.95) > 0.95


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda arm: tr.time_optimal(tr.line(arm, [0.0, 0.0], [1.0, 1.0]), effort=5.0),
            "joint 'joint1' needs .* to hold still",
        ),
        (lambda arm: tr.time_optimal(tr.line(arm, [0.0, 0.0], [1.0, 1.0])), "no joint has an effort or velocity limit"),
        (lambda arm: tr.time_optimal(tr.line(arm, [0.0, 0.0], [1.0, 1.0]), effort=-5.0), "effort must be a positive"),
        (lambda arm: tr.time_optimal(tr.line(arm, [0.0, 0.0], [1.0, 1.0]), effort=50.0, points=1), "points must be"),
        (lambda arm: tr.time_optimal(lw.mechanisms.four_bar()), "path must be"),
        (
            lambda arm: tr.time_optimal(tr.line(lw.mechanisms.four_bar(), np.zeros(3), np.ones(3)), 5.0),
            "leaves the constraints",
        ),
    ],
)
def test_what_cannot_be_done_is_said(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call(lw.mechanisms.planar_arm(2))


def test_nothing_but_motors_moves_a_base():
    """Within bounds of joint forces; those of velocities need no motor to be planned for."""
    robot = lw.mechanisms.random_tree(4, 2, ("revolute",), floating_base=True)
    start = lw.neutral(robot)
    end = lw.integrate(robot, start, np.r_[np.zeros(3), 0.5, 0.0, 0.0, np.full(robot.nv - 6, 0.4)], 1.0)
    path = tr.line(robot, start, end)
    base = robot.joint_names[0]
    with pytest.raises(
        lw.MechanismError, match=f"time_optimal needs a motor at every joint, and {base!r}.*effort=np.inf"
    ):
        tr.time_optimal(path, effort=50.0, velocity=2.0)
    motion = tr.time_optimal(path, effort=np.inf, velocity=2.0)
    assert np.abs(motion.sample()[2]).max() == pytest.approx(2.0, rel=1e-6)
    cart_pole = lw.mechanisms.cart_pole().metadata.with_actuated(("rail",))
    with pytest.raises(lw.MechanismError, match="needs a motor at every joint"):
        tr.time_optimal(tr.line(cart_pole, np.zeros(2), np.ones(2)), effort=10.0)
