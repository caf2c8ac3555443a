"""Joints and distances that follow functions of time, against equations of motion in which time is put in by hand."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

import linkwise as lw
from linkwise.mechanism.plain_data import from_data, to_data
from linkwise.motion.checks import warn_of_drives
from linkwise.viewer.coordinates import Units
from linkwise.viewer.trajectory import _states as trajectory_states
from tests.oracle import rolling


def shaken(*drive, **more):
    """A pendulum under a cart that is driven along x."""
    builder = lw.Builder().link("cart", 2.0, inertia=(0.1, 0.1, 0.1)).link("bob", 1.0, (0, 0, -0.5), (0.01, 0.01, 0.01))
    builder.joint("slide", lw.Prismatic((1, 0, 0)), "ground", "cart").joint(
        "pin", lw.Revolute((0, 1, 0)), "cart", "bob"
    )
    return builder.drive("shaker", "slide", *drive, **more).build("shaken")


def pendulum_rates(t, s):
    """By hand: I w' = m l (cos(angle) x'' - g sin(angle))."""
    return [s[1], 0.5 * (np.cos(s[0]) * -1.8 * np.sin(3.0 * t) - 9.81 * np.sin(s[0])) / 0.26]


@pytest.fixture(scope="module")
def mech():
    return shaken(lambda t: 0.2 * np.sin(3.0 * t))


def test_shaken_pendulum(mech):
    assert "1 drive" in repr(mech) and mech.constraints.driven == ("shaker",)
    times = np.linspace(0.0, 5.0, 21)
    motion = lw.simulate(mech, None, None, 5.0, settings=lw.motion.Settings(rtol=1e-10, atol=1e-10), t_eval=times)
    expected = rolling.integrated(pendulum_rates, [0.0, 0.0], times)
    assert np.abs(np.stack([motion.q[:, 1], motion.v[:, 1]], axis=-1) - expected).max() < 1e-8
    assert motion.q[:, 0] == pytest.approx(0.2 * np.sin(3.0 * times), abs=1e-14)
    assert motion.v[:, 0] == pytest.approx(0.6 * np.cos(3.0 * times), abs=1e-13)
    assert motion.a[:, 0] == pytest.approx(-1.8 * np.sin(3.0 * times), abs=1e-13)
    assert motion.constraint_error.max() < 1e-14 and motion.velocity_error.max() < 1e-13
    shown = trajectory_states(motion, None, Units())
    assert not shown.conserves and shown.velocity_error.max() < 1e-13
    assert motion.loop_reactions.shape == (21, 1, 6)
    # At the slide, what the drive does not: weight and inertia of cart and bob across it.
    mass, moved = 3.0, 0.5 * np.stack([np.cos(motion.q[:, 1]), np.sin(motion.q[:, 1])])
    lifted = moved[1] * motion.a[:, 1] + moved[0] * motion.v[:, 1] ** 2
    assert motion.joint_wrenches[:, 0, 5] == pytest.approx(mass * 9.81 + lifted, abs=1e-9)
    # The drive's own force by Newton's law along x; it is no reaction of a joint.
    dragged = moved[0] * motion.a[:, 1] - moved[1] * motion.v[:, 1] ** 2
    assert motion.drive_forces["shaker"] == pytest.approx(mass * motion.a[:, 0] - dragged, abs=1e-9)
    assert list(motion.reactions) == ["slide", "pin"]
    again = lw.simulate(mech, None, None, 2.0, settings=lw.motion.Settings(rtol=1e-10, atol=1e-10)).resume(3.0)
    assert again.q[-1] == pytest.approx(motion.q[-1], abs=1e-8)


@pytest.mark.slow
def test_work_of_drives_and_other_methods(mech):
    """What the drive does is the change of energy, by Simpson's rule."""
    fine = lw.simulate(mech, None, None, 1.0, settings=lw.motion.Settings(rtol=1e-11, atol=1e-11), t_eval=1e-2)
    weights = np.where(np.arange(101) % 2, 4.0, 2.0)
    weights[[0, -1]] = 1.0
    forces = [
        lw.constraints.constraint_forces(mech.constraints.at_time(t), q, v, np.zeros(2)) @ v
        for t, q, v in zip(fine.t, fine.q, fine.v, strict=True)
    ]
    assert weights @ forces / 300.0 == pytest.approx(fine.energy[-1] - fine.energy[0], abs=1e-6)
    fixed = lw.simulate(mech, None, None, 1.0, method="rk4", step=1e-3)
    assert fixed.q[-1] == pytest.approx(fine.q[-1], abs=1e-9)
    pulled = lw.simulate(
        mech, None, None, 0.2, settings=lw.motion.Settings(stabilization="baumgarte", rtol=1e-9, atol=1e-9)
    )
    assert pulled.q[-1] == pytest.approx(fine.q[20], abs=1e-7)


def test_one_moment(mech):
    """At a time, a driven mechanism is one with constraints that move: all of lw.constraints answers."""
    now = mech.constraints.at_time(0.3)
    q, v = lw.constraints.project(now, [0.1, 0.4], [0.0, 1.0])
    assert q[0] == pytest.approx(0.2 * np.sin(0.9)) and v[0] == pytest.approx(0.6 * np.cos(0.9))
    assert lw.constraints.degrees_of_freedom(now, q) == 1
    tau = np.array([0.3, -0.2])
    expected = (0.5 * (np.cos(q[1]) * -1.8 * np.sin(0.9) - 9.81 * np.sin(q[1])) - 0.2) / 0.26
    for method in ("elimination", "svd", "lagrange"):
        a = lw.forward_dynamics(now, q, v, tau, method=method)
        assert a == pytest.approx([-1.8 * np.sin(0.9), expected])
    whole = lw.inverse_dynamics(now.spanning_tree, q, v, a)
    assert lw.constraints.constraint_forces(now, q, v, tau) == pytest.approx(whole - tau)
    assert lw.inverse_dynamics(now, q, v, a) == pytest.approx([0.0, whole[1]], abs=1e-12)
    kernel = lw.compile("closed_forward_dynamics", mech, parameters=("drive",))
    assert kernel(q, v, tau, mech.constraints.drives_at(0.3)) == pytest.approx(a)
    # Linear: with the cart's motion given, the pendulum alone.
    model = lw.linearize(now, q, v, tau)
    slope = 0.5 * (-np.sin(q[1]) * -1.8 * np.sin(0.9) - 9.81 * np.cos(q[1])) / 0.26
    assert model.A == pytest.approx(np.array([[0.0, 1.0], [slope, 0.0]]))
    assert from_data(to_data(now)) == now
    assert lw.simulate(mech, None, {"pin": 1.0}, 0.01).v[0] == pytest.approx([0.6, 1.0])


def test_given_velocities(mech):
    """A velocity alone keeps no position: the cart starts anywhere."""
    moving = shaken(velocity=0.5)
    assert moving.constraints.is_nonholonomic and not mech.constraints.is_nonholonomic
    motion = lw.simulate(moving, [3.0, 0.1], None, 2.0)
    assert motion.q[-1, 0] == pytest.approx(4.0, abs=1e-9)
    speeding = shaken(velocity=lambda t: 0.5 * t * t)
    assert speeding.constraints.drives_at(2.0) == pytest.approx(np.array([[0.0, 2.0, 2.0]]))
    assert lw.simulate(speeding, [0.0, 0.1], None, 2.0).q[-1, 0] == pytest.approx(8.0 / 6.0, abs=1e-8)


def test_driven_length():
    """A pendulum whose string is pulled in keeps its angular momentum where there is no gravity."""
    builder = lw.Builder().link("bob", 2.0, inertia=(1e-9, 1e-9, 1e-9)).joint("base", lw.Planar(), "ground", "bob")
    builder.distance("string", "ground", (0.0, 0.0, 0.0), "bob", (0.0, 0.0, 0.0), lambda t: 1.0 - 0.25 * t)
    mech = builder.build("pulled", gravity=(0.0, 0.0, 0.0))
    motion = lw.simulate(
        mech, [1.0, 0.0, 0.0], [-0.25, 2.0, 0.0], 2.0, settings=lw.motion.Settings(rtol=1e-11, atol=1e-11)
    )
    x, y, _ = motion.q.T
    assert np.hypot(x, y) == pytest.approx(1.0 - 0.25 * motion.t, abs=1e-12)
    assert x * motion.v[:, 1] - y * motion.v[:, 0] == pytest.approx(2.0, abs=1e-8)
    still = lw.Builder().link("bob", 2.0, inertia=(1.0,) * 3).joint("base", lw.Floating(), "ground", "bob", (0, 0, -1))
    pendulum = still.distance("rod", "ground", (0, 0, 0), "bob", (0, 0, 0), 1.0).build("rod")
    assert lw.constraints.degrees_of_freedom(pendulum, lw.neutral(pendulum)) == 5
    (wrench,) = lw.constraints.loop_reactions(pendulum, lw.neutral(pendulum), np.zeros(6), np.zeros(6))
    assert wrench == pytest.approx([0.0, 0.0, 0.0, 0.0, 0.0, 2.0 * 9.81])


def test_snakeboard_moves_by_its_gait():
    """With rotor and axles driven in the same rhythm it gets ahead: the same under the torques that it took."""
    board = lw.mechanisms.snakeboard()
    gait = {"rotor": (0.7, 1.0), "front_axle": (0.3, 1.0), "rear_axle": (-0.3, 1.0)}
    drives = [
        lw.constraints.Coupling(f"{joint}_motor", {joint: 1.0}, drive=lambda t, a=a, w=w: a * np.sin(w * t))
        for joint, (a, w) in gait.items()
    ]
    mech = board.with_loops(*drives)
    assert lw.constraints.degrees_of_freedom(mech.constraints.at_time(0.0), np.zeros(6)) == 1
    motion = lw.simulate(mech, None, None, 4.0 * np.pi, settings=lw.motion.Settings(rtol=1e-10, atol=1e-10), t_eval=0.1)
    assert motion.q[:, 3:] == pytest.approx(np.outer(np.sin(motion.t), [a for a, _ in gait.values()]), abs=1e-12)
    assert np.abs(motion.q[-1, :2]).max() > 0.05  # where two periods have led
    for k in range(0, len(motion.t), 40):
        q, v = motion.q[k], motion.v[k]
        multipliers = lw.constraints.multipliers(mech.constraints.at_time(motion.t[k]), q, v, np.zeros(6))
        torque = np.array([0.0, 0.0, 0.0, *-multipliers[2:]])
        rates = rolling.snakeboard_rates(
            6.0, 0.016 + 2 * 0.1 * 0.2**2, 0.072, 0.0013, 0.2, lambda t, torque=torque: torque
        )
        assert rates(0.0, np.concatenate([q, v]))[6:] == pytest.approx(motion.a[k], abs=1e-9)


def test_given_derivatives_and_what_can_be_kept():
    knots = np.linspace(0.0, 2.0, 9)
    spline = CubicSpline(knots, 0.1 * knots**2)
    mech = shaken(spline, spline.derivative(), spline.derivative(2))
    assert mech.constraints.drives_at(0.5)[0] == pytest.approx([0.025, 0.1, 0.2])
    assert mech.with_gravity((0.0, 0.0, -1.0)).constraints.at_time(0.5).constraints.drives_at(9.0) == pytest.approx(
        mech.constraints.drives_at(0.5)
    )
    assert pickle.loads(pickle.dumps(mech)).constraints.drives_at(0.5) == pytest.approx(mech.constraints.drives_at(0.5))
    given = shaken(lambda t: t, lambda t: 1.0, 0.0)
    assert given.constraints.drives_at(3.0) == pytest.approx(np.array([[3.0, 1.0, 0.0]]))
    part = shaken(lambda t: t * t, lambda t: 2.0 * t)
    assert part.constraints.drives_at(3.0) == pytest.approx(np.array([[9.0, 6.0, 2.0]]))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: shaken(), "a drive follows a position f\\(t\\), or a velocity"),
        (lambda: shaken(0.3), "is a function of time, not 0.3.*coupling with an offset"),
        (lambda: shaken(lambda t: np.exp(t)).constraints.at_time(1.0), "could not be differentiated.*give its rates"),
        (lambda: shaken(lambda t: [1.0, 2.0]).constraints.at_time(1.0), "must be one number"),
        (lambda: shaken(lambda t: 1.0, lambda t: np.nan, 0.0).constraints.at_time(1.0), "must be finite"),
        (lambda: shaken(lambda t: t).constraints.at_time("noon"), "the time"),
        (lambda: lw.constraints.position_error(shaken(lambda t: t), [0.0, 0.0]), "'shaker' follows a function of time"),
        (
            lambda: lw.rollout(shaken(lambda t: t).constraints.at_time(0.0), None, None, None, 1e-3, 3),
            "roll out the mechanism itself",
        ),
        (
            lambda: lw.simulate(shaken(lambda t: t).constraints.at_time(0.0), None, None, 1.0),
            "simulate the mechanism itself",
        ),
        (lambda: to_data(shaken(lambda t: t)), "files do not hold"),
        (
            lambda: lw.constraints.Loop("a", lw.Revolute(), "b", None, "c", None, lambda t: t),
            "a drive moves one number",
        ),
        (lambda: lw.constraints.Coupling("a", {"b": 1.0}, drive=3.0), "a drive is a function of time"),
        (lambda: lw.Builder().distance("d", "a", (0, 0, 0), "b", (0, 0, 0), 0.0), "Spherical"),
        (
            lambda: lw.simulate(
                shaken(lambda t: t), None, None, 1.0, settings=lw.motion.Settings(coordinates="independent")
            ),
            "coordinates='joint'",
        ),
    ],
)
def test_what_is_wrong_is_said(make, said):
    with pytest.raises(lw.MechanismError, match=said):
        make()


def test_samples_of_driven_motions_are_stored_without_the_functions(mech, tmp_path):
    motion = lw.simulate(mech, None, None, 0.1)
    with pytest.warns(
        lw.files.OmissionWarning, match="functions of time and of coordinates are not stored.*without shaker"
    ):
        motion.save(tmp_path / "motion.npz")
    with pytest.warns(lw.files.OmissionWarning, match="is here without shaker"):
        loaded = lw.files.load_trajectory(tmp_path / "motion.npz")
    for name in ("t", "q", "v", "a", "tau", "kinetic_energy"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(motion, name), err_msg=name)
    assert loaded.mechanism == mech.spanning_tree


@pytest.mark.parametrize(
    ("drive", "told"),
    [
        ((lambda t: 1.0 if t > 0.05 else 0.0,), r"'shaker' .* jumps from 0 to 1 at t = 0.05 s"),
        (
            (np.sin, 5.0, 0.0),
            r"'shaker' .* velocity at t = 0.0\d+ s is 5, and its position changes at a rate of 1 ",
        ),
        ((np.sin, np.cos, np.sin), "acceleration at t = .* is 0.*, and its velocity changes at a rate of -0"),
    ],
)
def test_drives_that_contradict_themselves_are_told(drive, told):
    with pytest.warns(lw.MechanismWarning, match=told):
        lw.simulate(shaken(*drive), None, None, 0.2, method="rk4", step=0.05)


def test_steep_drives_with_corners_contradict_nothing():
    """Fast vibrations, corners, steep ramps and roots are no jumps."""
    ramp = lambda t: 0.0 if t < 0.1 else min(1e4 * (t - 0.1), 1.0)  # noqa: E731
    slope = lambda t: 1e4 if 0.1 <= t < 0.1001 else 0.0  # noqa: E731
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for drive in ((lambda t: np.sin(3000.0 * t),), (ramp, slope, 0.0), (np.sqrt,), (lambda t: 0.0 * t,)):
            warn_of_drives(shaken(*drive), 0.0, 10.0)


def test_a_drive_into_a_dead_centre_is_named():
    motor = lw.constraints.Coupling("motor", {"crank_joint": 1.0}, drive=lw.constraints.Drive(lambda t: -5 * t))
    linkage = lw.mechanisms.four_bar(crank=0.8, coupler=0.7, rocker=0.6, base=1.0).with_loops(motor)
    with pytest.raises(lw.SimulationError, match="0.63.* s only: .*dead centre.*drive 'motor' cannot move") as found:
        lw.simulate(linkage, None, None, 1.0)
    # Where coupler and rocker are in line, by the law of cosines; the crank's angle is counted from upright.
    between = np.arccos((0.8**2 + 1.0 - 1.3**2) / (2 * 0.8))
    assert found.value.trajectory.q[-1, 0] == pytest.approx(-between - np.pi / 2, abs=1e-6)


def test_peaks_of_a_motor_are_found_between_the_steps():
    points = {"A": (0, 0), "B": (0.05, 0.08), "C": (0.35, 0.3), "D": (0.4, 0)}
    links = {"ground": "AD", "crank": "AB", "coupler": "BC", "rocker": "DC"}
    drawn = [lw.Builder().linkage(points, links, density=2.0) for _ in range(2)]
    free = drawn[0].build("free", (0.0, -9.81, 0.0))
    driven = drawn[1].drive("motor", "A", velocity=20.0).build("driven", (0.0, -9.81, 0.0))
    motion = lw.simulate(driven, duration=0.35)
    times = np.linspace(0.0, 0.35, 1501)
    exact = lw.linkages.driven_motion(free, {"A": 20.0 * times}, {"A": 20.0})
    torque = lw.inverse_dynamics(free, exact.q, exact.v, exact.a, actuated="A")[:, 0]
    largest = int(np.argmax(np.abs(torque)))
    peak = motion.drive_peaks["motor"]
    assert peak.t == pytest.approx(times[largest], abs=1e-3)
    assert peak.force == pytest.approx(torque[largest], rel=1e-5)
    assert abs(peak.force) > 1.001 * np.abs(motion.drive_forces["motor"]).max()  # which the samples cut
    more = motion.resampled(51)
    assert more.t.shape == (51,) and more.drive_forces["motor"] == pytest.approx(torque[::30], abs=1e-6)
    np.testing.assert_allclose(more.a, exact.a[::30], atol=1e-6)
    assert lw.simulate(free, duration=0.01).drive_peaks == {}


def test_a_tree_at_other_times():
    arm = lw.mechanisms.stanford_arm()
    motion = lw.simulate(arm, None, None, 0.2, control=lambda t, q, v: -0.1 * v)
    again = motion.resampled(motion.t)
    np.testing.assert_allclose(again.a, motion.a, atol=1e-9)
    np.testing.assert_allclose(motion.resampled([0.05, 0.11]).energy, [motion.energy[0]] * 2, rtol=1e-2)


def test_rollouts_in_pieces_are_told_the_time(mech):
    """Each starts at the time 0 unless ``drive`` says otherwise."""
    whole = lw.rollout(mech, None, None, None, 0.01, 8)
    middle = whole[0][4], whole[1][4]
    with pytest.raises(lw.constraints.AssemblyError, match=r"drive=lw.motion.drive_values\(mech, dt, steps, start=t\)"):
        lw.rollout(mech, *middle, None, 0.01, 4)
    drive = lw.motion.drive_values(mech, 0.01, 4, start=0.04)
    assert lw.rollout(mech, *middle, None, 0.01, 4, drive=drive)[0] == pytest.approx(whole[0][4:], abs=1e-9)
    with pytest.raises(lw.MechanismError, match="lw.simulate and lw.rollout follow it"):
        lw.forward_dynamics(mech, *middle, np.zeros(2))
    four_bar = lw.mechanisms.four_bar()  # without drives the time is no cause
    with pytest.raises(lw.constraints.AssemblyError) as refusal:
        lw.rollout(four_bar, np.array([0.3, 0.3, 0.3]), None, None, 0.01, 4)
    assert "drive" not in str(refusal.value)
