"""Motions: benchmark problems against reference solutions, through singular positions, with energies kept."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import linkwise as lw
from linkwise.constraints.sizes import sizes
from linkwise.mechanism import MechanismError
from tests.simulated import simulate

from .built_in import STRETCHED, SYMMETRIC, built, random_state


def energy_error(motion) -> float:
    return float(np.abs(motion.energy - motion.energy[0]).max())


def condition(motion) -> np.ndarray:
    """sigma_1 / sigma_2 of the five-bar's two constraints."""
    values = np.linalg.svd(lw.constraints.constraint_jacobian(motion.mechanism, motion.q), compute_uv=False)
    return values[:, 0] / np.maximum(values[:, 1], 1e-300)


def swing(n: int, duration: float, **options):
    """The N-four-bar started at 1 rad/s and its exact motion: all posts turn alike, so it is a pendulum."""
    mech = lw.mechanisms.n_four_bar(n)
    q = np.zeros(mech.nq)
    v = -lw.constraints.null_space(mech, q, independent=("post0_joint",))[:, 0]
    motion = simulate(mech, q, v, duration, **options)
    inertia, weight = (n + 1) / 3.0 + n, 9.81 * ((n + 1) / 2.0 + n)
    exact = solve_ivp(
        lambda t, x: [x[1], weight * np.sin(x[0]) / inertia],
        (0, duration),
        [0.0, -1.0],
        "DOP853",
        rtol=1e-12,
        atol=1e-12,
    )
    return motion, exact.y[0, -1]


@pytest.mark.parametrize(("n", "duration"), [(2, 2.0), (8, 1.2)])
def test_n_four_bar_passes_its_singular_positions(n, duration):
    motion, exact = swing(n, duration, method="rk4", step=0.005, keep_energy=True)
    posts = motion.q[:, : n + 1]
    assert posts.min() < -np.pi / 2  # the posts have passed the horizontal
    np.testing.assert_allclose(posts, posts[:, :1] * np.ones(n + 1), atol=1e-7)  # and none took another branch
    assert energy_error(motion) < 1e-6
    np.testing.assert_allclose(posts[-1], exact, atol=1e-6)


SPEEDS = [2.5, *(pytest.param(speed, marks=pytest.mark.slow) for speed in (0.3, 1.0, 5.45, 7.0))]


@pytest.mark.parametrize("method", ["dop853", "rk45", "radau"])
@pytest.mark.parametrize("speed", SPEEDS)
def test_adaptive_steps_leave_singular_positions_on_the_same_branch(method, speed):
    """Parallelograms go through four flat positions and more, where they could become crossed ones."""
    mech = built("n_four_bar")
    q = lw.neutral(mech)
    posts = [i for i, name in enumerate(mech.joint_names) if name.startswith("post")]
    v = speed * lw.constraints.null_space(mech, q, independent=("post0_joint",))[:, 0]
    motion = lw.simulate(mech, q, v, 3.0, method=method)
    turned = motion.q[:, posts] - q[posts]
    assert np.abs(turned).max() > 1.5 * np.pi
    np.testing.assert_allclose(turned, turned[:, :1] * np.ones(len(posts)), atol=1e-9)
    assert energy_error(motion) < 5e-6


def tumbling_parallelogram() -> tuple[lw.Mechanism, np.ndarray, np.ndarray]:
    """A parallelogram about the axis (1, 2, 3) of a free body, a ball joint on its bar: ten degrees of freedom, and a
    loop that goes through its flat position all the same."""
    axis = np.array([1.0, 2.0, 3.0]) / np.sqrt(14.0)
    across = np.cross(axis, (0.0, 0.0, 1.0)) / np.linalg.norm(axis[:2])
    tilted, turn = np.stack([across, np.cross(axis, across), axis], axis=1), lw.Revolute((0, 0, 1))
    builder = lw.Builder().link("base", 4.0, (0.1, 0.0, 0.0), 0.5 * np.eye(3))
    builder.joint("free", lw.Floating(), "ground", "base")
    places = {"left": ("base", (tilted, np.zeros(3))), "right": ("base", (tilted, 2.0 * across))}
    for name, (parent, pose) in {**places, "bar": ("left", (np.eye(3), (1.0, 0.0, 0.0)))}.items():
        builder.link(name, 1.0, (0.5, 0.02, 0.01), np.diag([0.01, 0.09, 0.1]))
        builder.joint(name, turn, parent, name, pose)
    builder.link("ball", 0.3, (0.0, 0.1, 0.2), 0.02 * np.eye(3))
    builder.joint("ball", lw.Spherical(), "bar", "ball", (np.eye(3), (0.7, 0.0, 0.0)))
    builder.loop("pin", turn, "bar", (np.eye(3), (2.0, 0, 0)), "right", (np.eye(3), (1.0, 0, 0)))
    mech = builder.build("tumbling", (0.0, 0.0, 0.0))
    q, v = lw.neutral(mech), 0.3 * np.random.default_rng(0).normal(size=mech.nv)
    v = lw.constraints.project(mech, q, v)[1]
    for name, sense in (("left", 1.0), ("right", 1.0), ("bar", -1.0)):
        q[mech.q_index(name)] = 1.2 * sense
        v[mech.v_index(name)] = -4.0 * sense
    return mech, *lw.constraints.project(mech, lw.constraints.assemble(mech, q), v)


@pytest.mark.parametrize("method", ["dop853", "rk45"])
def test_a_loop_on_a_free_body_stays_on_its_branch(method):
    mech, q, v = tumbling_parallelogram()
    motion = lw.simulate(mech, q, v, 3.0, method=method)
    left, right = (motion.q[:, mech.q_index(name)][:, 0] for name in ("left", "right"))
    assert np.ptp(left) > 2.0 * np.pi
    np.testing.assert_allclose(left, right, atol=1e-9)
    assert energy_error(motion) < 1e-6
    momentum = lw.momentum(mech, motion.q, motion.v)
    np.testing.assert_allclose(momentum, momentum[:1] * np.ones((len(motion.t), 1)), atol=1e-6)


@pytest.mark.parametrize(("n", "tolerance"), [(2, 1e-9), (8, 1e-9), (2, 1e-12)])
def test_default_method_through_many_singular_positions(n, tolerance):
    """Ten seconds, ten times through the horizontal, against the pendulum that it is."""
    motion, exact = swing(n, 10.0, rtol=tolerance, atol=tolerance)
    posts = motion.q[:, : n + 1]
    np.testing.assert_allclose(posts, posts[:, :1] * np.ones(n + 1), atol=1e-9)
    assert energy_error(motion) < 1e-6
    np.testing.assert_allclose(posts[-1], exact, atol=1e4 * tolerance)


def test_states_within_the_passage_of_a_singular_position():
    """Samples, events and an end that fall into the step across are on the manifold and on the motion."""
    mech = lw.mechanisms.n_four_bar(1)
    q = np.zeros(mech.nq)
    v = -2.0 * lw.constraints.null_space(mech, q, independent=("post0_joint",))[:, 0]
    flat = lw.motion.joint_passes(mech, "post0_joint", -np.pi / 2)
    whole = lw.simulate(mech, q, v, 0.6, events=flat)
    (crossing,) = whole.events
    which = np.argmax((whole.t[:-1] < crossing.t) & (crossing.t <= whole.t[1:]))
    times = np.linspace(*whole.t[which : which + 2], 9)
    inside = lw.simulate(mech, q, v, 0.6, t_eval=times)
    cut = lw.simulate(mech, q, v, crossing.t)
    for some in (inside, cut):
        assert some.constraint_error.max() < 1e-11 and some.velocity_error.max() < 1e-9
        np.testing.assert_allclose(some.energy, whole.energy[0], atol=1e-6)
        np.testing.assert_allclose(some.q[:, 0], some.q[:, 1], atol=1e-6)
    np.testing.assert_allclose(cut.q[-1, 0], -np.pi / 2, atol=1e-8)


@pytest.mark.filterwarnings("ignore:at t = 0 s mechanism 'five_bar' is at rest")
@pytest.mark.parametrize("options", [{}, {"method": "rk45"}, {"keep_energy": True}, {"method": "rk4", "step": 1e-3}])
def test_a_motion_out_of_a_singular_position_keeps_its_symmetry(options):
    """The five-bar let go stretched out comes back: to 2.82 s, as printed, and to the position itself."""
    mech = lw.mechanisms.five_bar()
    motion = simulate(mech, STRETCHED, np.zeros(4), 2.9, t_eval=1e-3, **options)
    numbers = np.where(motion.t > 1.0, condition(motion), 0.0)
    assert motion.t[np.argmax(numbers)] == pytest.approx(2.82537, abs=0.002)
    assert numbers.max() > 1e4
    assert energy_error(motion) < 1e-5
    assert motion.constraint_error.max() < 1e-11


@pytest.mark.filterwarnings("ignore:at t = 0 s mechanism 'five_bar' is at rest")
def test_a_batch_of_which_some_start_in_a_singular_position():
    mech = lw.mechanisms.five_bar()
    states = np.array([STRETCHED, lw.constraints.assemble(mech, SYMMETRIC), STRETCHED])
    together = lw.simulate(
        mech, states, np.zeros(4), 0.2, method="rk4", step=1e-3, settings=lw.motion.Settings(keep_energy=True)
    )
    for i, q in enumerate(states):
        alone = lw.simulate(
            mech, q, np.zeros(4), 0.2, method="rk4", step=1e-3, settings=lw.motion.Settings(keep_energy=True)
        )
        np.testing.assert_allclose(together.q[:, i], alone.q, atol=1e-9)


def test_how_near_a_singular_position_is_for_a_mechanism_of_any_size():
    """Loops of a millimetre have small singular values throughout, but for their size."""
    large = lw.constraints.usual_conditioning(lw.mechanisms.five_bar(), SYMMETRIC)
    assert 0.1 < large <= 1.0 and lw.constraints.conditioning(lw.mechanisms.five_bar(), STRETCHED, 2) < 1e-15
    assert lw.constraints.usual_conditioning(lw.mechanisms.five_bar(), STRETCHED) > 0.1
    builder, parent, size, turn = lw.Builder(), "ground", 1e-3, lw.Revolute((0, 0, 1))
    for name in ("crank", "coupler", "rocker", "end"):
        builder.link(name, 1e-6, (size / 2, 0, 0), 1e-13 * np.eye(3))
        builder.joint(f"{name}_joint", turn, parent, name, (np.eye(3), (size * (parent != "ground"), 0, 0)))
        parent = name
    builder.loop("weld", lw.Fixed(), "end", (np.eye(3), (0, 0, 0)), "ground", (np.eye(3), (1.5 * size, 0, 0)))
    small = builder.build("small")
    q = lw.constraints.assemble(small, [1.2, -0.9, -1.0, 0.7])
    usual = lw.constraints.usual_conditioning(small, q)
    assert usual > 0.1 and lw.constraints.conditioning(small, q, 3) > 0.02
    v = 30.0 * lw.constraints.null_space(small, q)[:, 0]
    motion = lw.simulate(small, q, v, 0.2)
    assert motion.constraint_error.max() < 1e-11
    assert energy_error(motion) < 1e-6 * motion.kinetic_energy.max()


def how_near(unit):
    """Conditioning, time to a singular position and conditioning there of a slider-crank, in which lengths and angles
    meet, all its lengths in other units."""
    builder = lw.Builder()
    for name, parent, at, length in (("crank", "ground", 0.0, 0.3), ("rod", "crank", 0.3, 0.8)):
        builder.link(name, 1.0, (unit * length / 2, 0, 0), unit**2 * 0.01 * np.eye(3))
        builder.joint(name, lw.Revolute((0, 0, 1)), parent, name, (None, (unit * at, 0, 0)))
    builder.link("slider", 0.5, (0, 0, 0), unit**2 * 0.01 * np.eye(3))
    builder.joint("slider", lw.Prismatic((1, 0, 0)), "ground", "slider")
    builder.loop("pin", lw.Revolute((0, 0, 1)), "rod", (None, (unit * 0.8, 0, 0)), "slider", None)
    mech, angle = builder.build("slider_crank"), np.pi / 2 - 0.4
    rod = -angle - np.arcsin(0.3 * np.sin(angle) / 0.8)
    values = {"crank": angle, "rod": rod, "slider": unit * (0.3 * np.cos(angle) + 0.8 * np.cos(angle + rod))}
    q = np.array([values[name] for name in mech.joint_names])
    v = lw.constraints.null_space(mech, q, independent=("crank",))[:, 0]
    conditioning = lw.constraints.conditioning(mech, q, lw.constraints.generic_rank(mech, q))
    return [conditioning, *lw.kinematics.time_to_singular(mech, q, v), lw.constraints.usual_conditioning(mech, q)]


@pytest.mark.parametrize("unit", [1e-3, 1e3])
def test_units_do_not_decide_how_near_a_singular_position_is(unit):
    found, expected = how_near(unit), how_near(1.0)
    np.testing.assert_allclose(found[:-1], expected[:-1], rtol=1e-6)
    assert found[-1] == pytest.approx(expected[-1], rel=0.01)  # assembly takes its own ways to configurations nearby


def test_questions_about_singular_positions_check_their_states():
    mech = lw.mechanisms.five_bar()
    for ask in (lw.kinematics.time_to_singular, lambda mech, q, v: lw.constraints.conditioning(mech, q, 2)):
        with pytest.raises(MechanismError, match="q has shape"):
            ask(mech, [1.0], np.zeros(4))
        with pytest.raises((TypeError, MechanismError), match="complex"):
            ask(mech, np.zeros(4, dtype=complex), np.zeros(4))
    with pytest.raises(MechanismError, match="one state"):
        lw.kinematics.time_to_singular(mech, np.zeros((2, 4)), np.zeros(4))


def test_time_to_a_singular_position():
    """Posts at the angle x from the horizontal, turning at 1 rad/s, are flat after x seconds, but for O(x^3)."""
    mech = lw.mechanisms.n_four_bar(2)
    rank = lw.constraints.generic_rank(mech, np.zeros(mech.nq))
    for x in (1e-1, 1e-2, 1e-4):
        turn = -(np.pi / 2 - x) * np.array([1, 1, 1, -1, -1])
        v = np.array([-1.0, -1.0, -1.0, 1.0, 1.0])
        assert np.linalg.norm(lw.constraints.position_error(mech, turn)) < 1e-14
        time, conditioning = lw.kinematics.time_to_singular(mech, turn, v, rank)
        assert abs(time - x) < 2.0 * x**3 + 1e-6 * x
        scaled = sizes(mech).rows[:, None] * lw.constraints.constraint_jacobian(mech, turn)
        s = np.linalg.svd(scaled, compute_uv=False)
        assert np.abs(conditioning - s[rank - 2 : rank] / s[0]).min() < 1e-12  # both fall to zero at the same time
        assert lw.kinematics.time_to_singular(mech, turn, -v)[0] > 1.0  # away from it
    assert lw.kinematics.time_to_singular(mech, -(np.pi / 2) * np.array([1, 1, 1, -1, -1]), v) == (np.inf, 0.0)
    assert lw.kinematics.time_to_singular(mech, turn, 0.0 * v) == (np.inf, 1.0)


@pytest.mark.slow
@pytest.mark.parametrize("n", [2, 8])
def test_n_four_bar_for_ten_seconds(n):
    motion, exact = swing(n, 10.0, method="rk4", step=0.005, keep_energy=True)
    np.testing.assert_allclose(motion.q[:, : n + 1], motion.q[:, :1] * np.ones(n + 1), atol=1e-6)
    assert energy_error(motion) < 1e-6
    np.testing.assert_allclose(motion.q[-1, 0], exact, atol=1e-6)


def test_bricard_for_ten_seconds():
    """One freedom though the count says none; no energy projection, so the energy is a measure of accuracy."""
    motion = lw.simulate(
        lw.mechanisms.bricard(),
        np.zeros(5),
        np.zeros(5),
        10.0,
        method="dop853",
        settings=lw.motion.Settings(rtol=1e-10, atol=1e-10),
    )
    assert energy_error(motion) < 1e-6
    assert motion.constraint_error.max() < 1e-11
    assert np.ptp(motion.q[:, 0]) > 3.0
    finer = lw.simulate(
        lw.mechanisms.bricard(),
        np.zeros(5),
        np.zeros(5),
        10.0,
        method="dop853",
        settings=lw.motion.Settings(rtol=1e-12, atol=1e-12),
    )
    np.testing.assert_allclose(motion.q[-1], finer.q[-1], atol=1e-6)


def test_slider_crank_against_its_one_freedom():
    """Under gravity from a spinning start, against the scalar equation of motion with effective inertia."""
    crank, rod = 0.15, 0.3
    mech = built("slider_crank")
    q = np.zeros(3)
    v = 20.0 * lw.constraints.null_space(mech, q, independent=("crank_joint",))[:, 0]
    motion = lw.simulate(mech, q, v, 0.5, method="dop853", settings=lw.motion.Settings(rtol=1e-11, atol=1e-11))
    assert energy_error(motion) < 1e-6

    def kinematics(angle):  # crank angle from the x axis; everything else and its derivatives by the angle
        s, c = np.sin(angle), np.cos(angle)
        ratio = crank / rod
        tilt = np.arcsin(ratio * s)
        tilt1 = ratio * c / np.cos(tilt)
        tilt2 = (-ratio * s + np.sin(tilt) * tilt1**2) / np.cos(tilt)
        slide1 = -crank * s - rod * np.sin(tilt) * tilt1
        slide2 = -crank * c - rod * (np.cos(tilt) * tilt1**2 + np.sin(tilt) * tilt2)
        middle1 = np.array([-crank * s - rod / 2 * np.sin(tilt) * tilt1, crank * c - rod / 2 * np.cos(tilt) * tilt1])
        middle2 = np.array(
            [
                -crank * c - rod / 2 * (np.cos(tilt) * tilt1**2 + np.sin(tilt) * tilt2),
                -crank * s - rod / 2 * (-np.sin(tilt) * tilt1**2 + np.cos(tilt) * tilt2),
            ]
        )
        return c, tilt1, tilt2, slide1, slide2, middle1, middle2

    def rate(t, x):
        c, tilt1, tilt2, slide1, slide2, middle1, middle2 = kinematics(x[0])
        turn = 1.0 * rod**2 / 12
        inertia = 0.5 * crank**2 / 3 + turn * tilt1**2 + 1.0 * middle1 @ middle1 + 2.0 * slide1**2
        slope = turn * tilt1 * tilt2 + 1.0 * middle1 @ middle2 + 2.0 * slide1 * slide2
        weight = 9.81 * (0.5 * crank / 2 * c + 1.0 * middle1[1])
        return [x[1], -(slope * x[1] ** 2 + weight) / inertia]

    exact = solve_ivp(rate, (0.0, 0.5), [np.pi / 2, 20.0], "DOP853", rtol=1e-12, atol=1e-12)
    assert motion.q[-1, 0] + np.pi / 2 == pytest.approx(exact.y[0, -1], abs=1e-7)


def test_flyball_governor_against_a_fine_step():
    """Spun up with a spring and damper between shaft and collar, as in the benchmark; half the step, a sixteenth of
    the error."""
    mech = built("flyball_governor")
    collar, shaft = mech.v_index("collar_joint"), mech.v_index("shaft_joint")

    def control(t, q, v):
        tau = np.zeros(mech.nv)
        tau[collar] = -800.0 * q[collar] - 40.0 * v[collar]
        return tau

    q = np.zeros(mech.nq)
    v = lw.constraints.project(mech, q, np.eye(mech.nv)[shaft.start] * 6.0)[1]
    ends = [lw.simulate(mech, q, v, 0.5, control, method="rk4", step=step).q[-1] for step in (1e-2, 5e-3, 2.5e-3)]
    coarse, fine = np.linalg.norm(ends[0] - ends[2]), np.linalg.norm(ends[1] - ends[2])
    assert fine < 1e-6 and coarse / fine > 10.0
    reference = lw.simulate(
        mech, q, v, 0.5, control, method="dop853", settings=lw.motion.Settings(rtol=1e-11, atol=1e-11)
    )
    np.testing.assert_allclose(ends[2], reference.q[-1], atol=1e-7)
    assert abs(reference.q[:, mech.q_index("collar_joint")]).max() > 1e-3


def test_integrators_and_stabilizations_agree():
    mech = built("five_bar")
    q, v = random_state("five_bar")
    expected = lw.simulate(mech, q, v, 0.1, method="dop853", settings=lw.motion.Settings(rtol=1e-11, atol=1e-11)).q[-1]
    for options in (
        {"method": "rk45"},
        {"method": "radau", "rtol": 1e-7, "atol": 1e-7},
        {"method": "lsoda", "stabilization": "baumgarte"},
        {"method": "bdf", "stabilization": None, "rtol": 1e-8, "atol": 1e-8},
        {"method": "rk4", "formulation": "lagrange", "stabilization": "baumgarte"},
        {"method": "rk4", "formulation": "partitioning", "step": 5e-3},
        {"method": "rk4", "keep_energy": True},
    ):
        found = simulate(mech, q, v, 0.1, **options)
        np.testing.assert_allclose(found.q[-1], expected, atol=2e-5)
        assert found.t[-1] == pytest.approx(0.1)


def test_batches_move_like_their_members():
    mech = built("five_bar")
    states = [random_state("five_bar", seed) for seed in range(4)]
    q, v = (np.array(x) for x in zip(*states, strict=True))
    together = lw.simulate(mech, q, v, 0.02, method="rk4")
    assert together.q.shape == (21, 4, 4) and together.energy.shape == (21, 4)
    alone = lw.simulate(mech, q[2], v[2], 0.02, method="rk4")
    np.testing.assert_allclose(together.q[:, 2], alone.q, atol=1e-11)


def test_requests_that_make_no_sense():
    mech = built("five_bar")
    rest = np.zeros(4)
    for options, message in (
        ({"method": "rk5"}, "unknown method 'rk5'"),
        ({"stabilization": "glue"}, "stabilization must be"),
        ({"method": "bdf"}, "projection would falsify"),
        ({"stabilization": None, "keep_energy": True}, "keep_energy needs"),
    ):
        with pytest.raises(ValueError, match=message):
            simulate(mech, SYMMETRIC, rest, 1.0, **options)
    with pytest.raises(MechanismError, match="one state at a time"):
        lw.simulate(mech, np.array([SYMMETRIC, STRETCHED]), rest, 1.0, method="dop853")
    with pytest.raises(MechanismError, match="q0 has shape"):
        lw.simulate(mech, SYMMETRIC[:3], rest, 1.0)
    with pytest.raises(MechanismError, match="at least one step"):
        lw.simulate(mech, SYMMETRIC, rest, 1e-5, method="rk4")


def test_mimic_joints_inside_a_loop():
    """A geared crank in a four-bar: the follower moves with its leader, the loop stays closed, energy is kept."""
    builder = lw.Builder()
    builder.link("crank", 1.0, (0.1, 0, 0), (0.01, 0.01, 0.01)).link("wheel", 2.0, (0.05, 0, 0), (0.1, 0.1, 0.1))
    builder.link("coupler", 0.5, (0.4, 0, 0), (0, 0.05, 0.05)).link("rocker", 1.0, (0.3, 0, 0), (0, 0.1, 0.1))
    builder.joint("crank", lw.Revolute(), "ground", "crank").joint(
        "coupler", lw.Revolute(), "crank", "coupler", (None, (0.3, 0, 0))
    )
    builder.joint("wheel", lw.Revolute(), "ground", "wheel", (None, (0, 0.5, 0)), mimic=lw.Mimic("crank", -2.0))
    builder.joint("rocker", lw.Revolute(), "ground", "rocker", (None, (1.0, 0, 0)))
    builder.loop("pin", lw.Revolute(), "coupler", (None, (0.9, 0, 0)), "rocker", (None, (0.8, 0, 0)))
    mech = builder.build("geared", (0.0, -9.81, 0.0))
    q = lw.constraints.assemble(mech, [0.5, 0.5, 2.0], hold=("crank",))
    v = 5.0 * lw.constraints.null_space(mech, q, independent=("crank",))[:, 0]
    motion = lw.simulate(mech, q, v, 0.5, method="dop853", settings=lw.motion.Settings(rtol=1e-10, atol=1e-10))
    assert energy_error(motion) < 1e-7 and np.ptp(motion.q[:, 0]) > 1.0
