"""Events: found where they are, in order, in the right direction, once."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ellipk

import linkwise as lw
from linkwise.mechanism import MechanismError
from tests.simulated import simulate

ADAPTIVE = ("dop853", "rk45", "radau", "bdf", "lsoda")


def falling(speed: float = 0.0) -> tuple[lw.Mechanism, np.ndarray, np.ndarray]:
    """A mass on a vertical slide."""
    builder = lw.Builder().link("mass", 1.0, (0, 0, 0), (1, 1, 1))
    mech = builder.joint("height", lw.Prismatic((0, 0, 1)), "ground", "mass").build("falling")
    return mech, np.array([5.0]), np.array([speed])


def pendulum() -> lw.Mechanism:
    """A point of 1 kg, 1 m from a horizontal hinge; hangs at zero."""
    builder = lw.Builder().link("bob", 1.0, (0, 0, -1.0))
    return builder.joint("hinge", lw.Revolute((0, 1, 0)), "ground", "bob").build("pendulum")


@pytest.mark.parametrize("method", (*ADAPTIVE, "rk4"))
def test_a_falling_mass_reaches_the_ground(method):
    mech, q, v = falling(2.0)
    ground = lw.motion.joint_passes(mech, "height", 0.0, terminal=True)
    top = lw.motion.velocity_zero(mech, "height")
    trajectory = lw.simulate(
        mech,
        q,
        v,
        10.0,
        method=method,
        events=[ground, top],
        step=0.05,
        settings=lw.motion.Settings(rtol=1e-10, atol=1e-10),
    )
    landing = (2.0 + np.sqrt(4.0 + 2 * 9.81 * 5.0)) / 9.81
    assert [event.name for event in trajectory.events] == ["height turns back", "height passes 0"]
    assert trajectory.events[0].t == pytest.approx(2.0 / 9.81, abs=1e-8)
    assert trajectory.events[1].t == pytest.approx(landing, abs=1e-8)
    assert trajectory.t[-1] == trajectory.events[1].t == trajectory.end.t
    np.testing.assert_allclose(trajectory.q[-1], 0.0, atol=1e-9)
    assert trajectory.stopped == "event: height passes 0" and not trajectory.interrupted
    assert np.sum(trajectory.step_sizes) == pytest.approx(trajectory.t[-1])


def test_periods_of_a_pendulum_against_the_elliptic_integral():
    mech = pendulum()
    trajectory = lw.simulate(
        mech,
        [2.0],
        [0.0],
        20.0,
        events=[lw.motion.joint_passes(mech, "hinge", 0.0, direction=-1)],
        settings=lw.motion.Settings(rtol=1e-12, atol=1e-12),
    )
    period = 4.0 / np.sqrt(9.81) * ellipk(np.sin(1.0) ** 2)
    times = np.array([event.t for event in trajectory.events])
    np.testing.assert_allclose(times, period * (0.25 + np.arange(len(times))), atol=1e-9)
    assert len(times) == int(20.0 / period + 0.75)
    assert all(event.v[0] < 0.0 for event in trajectory.events)


def test_accuracy_of_events_with_fixed_steps_is_of_fourth_order():
    mech = pendulum()
    quarter = 1.0 / np.sqrt(9.81) * ellipk(np.sin(0.5) ** 2)
    errors = []
    for step in (0.04, 0.02):
        event = lw.motion.joint_passes(mech, "hinge", 0.0, terminal=True)
        found = lw.simulate(mech, [1.0], [0.0], 2.0, method="rk4", step=step, events=[event])
        errors.append(abs(found.end.t - quarter))
    assert errors[0] < 1e-5 and errors[0] / errors[1] > 8.0


@pytest.mark.parametrize("method", ["dop853", "rk4"])
def test_a_motion_stopped_by_an_event_goes_on_from_there(method):
    """The event is not met again at once; the bounce is the user's."""
    mech = pendulum()
    event = lw.motion.joint_passes(mech, "hinge", 0.5, terminal=True)
    options = {"method": method, "step": 0.01}
    first = simulate(mech, [1.0], [0.0], 10.0, events=[event], **options)
    second = first.resume(10.0, events=[event])
    assert second.events[0].t == first.end.t < second.events[1].t
    assert second.events[1].v[0] > 0.0  # the next time it comes back from the other side
    through = simulate(mech, [1.0], [0.0], second.end.t, **options)
    np.testing.assert_allclose(second.q[-1], through.q[-1], atol=1e-6)


def test_any_function_and_several_events_in_one_step():
    mech, q, v = falling()
    heights = [lw.motion.joint_passes(mech, "height", h) for h in (4.99, 4.95, 4.97)]

    def half_a_second(t, q, v):
        return t - 0.5

    trajectory = lw.simulate(
        mech, q, v, 1.0, events=[*heights, half_a_second], settings=lw.motion.Settings(rtol=1e-6, atol=1e-6), step=0.2
    )
    assert [e.name for e in trajectory.events] == [
        "height passes 4.99",
        "height passes 4.97",
        "height passes 4.95",
        "half_a_second",
    ]
    np.testing.assert_allclose([e.q[0] for e in trajectory.events[:3]], [4.99, 4.97, 4.95], atol=1e-12)
    assert trajectory.events[3].t == pytest.approx(0.5, abs=1e-14)


def test_events_after_a_terminal_one_do_not_take_place():
    mech, q, v = falling()
    events = [lw.motion.joint_passes(mech, "height", 4.9), lw.motion.joint_passes(mech, "height", 4.95, terminal=True)]
    trajectory = lw.simulate(mech, q, v, 1.0, events=events, step=0.5, t_eval=0.01)
    assert [event.name for event in trajectory.events] == ["height passes 4.95"]
    assert trajectory.t[-1] <= trajectory.end.t == pytest.approx(np.sqrt(0.1 / 9.81))
    assert len(trajectory.t) == int(trajectory.end.t / 0.01) + 1


def test_mimic_joints_and_loops_have_events():
    builder = lw.Builder()
    for name in ("leader", "follower"):
        builder.link(name, 1.0, (0.1, 0, 0), (0.1, 0.1, 0.1))
    builder.joint("leader", lw.Revolute(), "ground", "leader")
    builder.joint("follower", lw.Revolute(), "ground", "follower", mimic=lw.Mimic("leader", -2.0, 0.3))
    mech = builder.build("geared", (0, 0, 0))
    events = [lw.motion.joint_passes(mech, "follower", -0.7), lw.motion.velocity_zero(mech, "follower")]
    trajectory = lw.simulate(mech, [0.0], [1.0], 1.3, [-0.5], events=events)
    at_half, turning = trajectory.events
    assert at_half.q[0] == pytest.approx(0.5, abs=1e-9) and turning.v[0] == pytest.approx(0.0, abs=1e-12)
    four_bar = lw.mechanisms.four_bar()
    v = 5.0 * lw.constraints.null_space(four_bar, np.zeros(3), independent=("crank_joint",))[:, 0]
    event = lw.motion.joint_passes(four_bar, "crank_joint", 1.0, terminal=True)
    for coordinates in ("joint", "independent"):
        found = lw.simulate(
            four_bar, np.zeros(3), v, 1.0, events=[event], settings=lw.motion.Settings(coordinates=coordinates)
        )
        assert found.q[-1, 0] == pytest.approx(1.0, abs=1e-10)
        assert found.constraint_error[-1] < 1e-11


@pytest.mark.parametrize("method", (*ADAPTIVE, "rk23", "rk4"))
@pytest.mark.parametrize("depth", [0.1, 1e-3, 1e-6])
def test_a_function_that_passes_zero_twice_within_a_step(method, depth):
    """A mass thrown up is higher than a mark for a moment only: less than a step, and than the distance of looks."""
    mech, _, v = falling(5.0)
    apex, mark = 5.0 / 9.81, 12.5 / 9.81 - depth
    events = [lw.motion.joint_passes(mech, "height", mark, direction=d) for d in (0, 1, -1)]
    trajectory = lw.simulate(mech, [0.0], v, 1.0, method=method, events=events, step=0.2)
    up, down = apex - np.sqrt(2.0 * depth / 9.81), apex + np.sqrt(2.0 * depth / 9.81)
    accuracy = 1e-8 / np.sqrt(depth)  # of the multistep methods' own error, where the height hardly changes
    assert [event.v[0] > 0.0 for event in trajectory.events] == [True, True, False, False]
    np.testing.assert_allclose([event.t for event in trajectory.events], [up, up, down, down], rtol=0, atol=accuracy)


def test_short_excursions_wherever_they_are_in_a_step():
    """Steps of 0.5 s, looked at eight times each: a dip at any place, of any depth, and none where there is none."""
    mech, q, v = falling()
    rng = np.random.default_rng(0)
    for place, width in zip(rng.uniform(0.0, 1.0, 30), 10.0 ** rng.uniform(-6.0, -1.0, 30), strict=True):
        for sign in (1.0, -1.0):
            dip = lw.motion.when(lambda t, q, v: sign * ((t - place) ** 2 - width**2))  # noqa: B023
            above = lw.motion.when(lambda t, q, v: sign * ((t - place) ** 2 + width**2))  # noqa: B023
            found = lw.simulate(mech, q, v, 1.5, method="rk4", step=0.5, events=[dip, above])
            expected = [t for t in (place - width, place + width) if t > 0.0]
            np.testing.assert_allclose([event.t for event in found.events], expected, rtol=0, atol=1e-9)


def test_looking_costs_nothing_where_there_are_no_events():
    calls = 0

    def control(t, q, v):
        nonlocal calls
        calls += 1
        return -v

    mech, q, v = falling()
    plain = lw.simulate(mech, q, v, 1.0, control)
    assert calls == plain.evaluations + len(plain.t)  # the equations of motion, and the record
    watched = lw.simulate(mech, q, v, 1.0, control, events=[lambda t, q, v: q[0] - 3.0])
    assert watched.evaluations == plain.evaluations + 3 * len(plain.step_sizes)  # what dop853 interpolates with
    asked = 0

    def height(t, q, v):
        nonlocal asked
        asked += 1
        return q[0] + 1.0

    lw.simulate(mech, q, v, 1.0, control, events=height)
    assert asked == 1 + 8 * len(plain.step_sizes)


def test_events_at_one_moment_all_take_place():
    mech, q, v = falling()
    events = [
        lw.motion.when(lambda t, q, v: t - 0.5, name, terminal=end) for name, end in (("stop", True), ("a", False))
    ]
    found = lw.simulate(mech, q, v, 1.0, events=events)
    assert [event.name for event in found.events] == ["a", "stop"] and found.stopped == "event: stop"
    assert found.events[0].t == found.events[1].t == found.end.t


def test_attributes_of_functions_count_as_in_scipy():
    def height(t, q, v):
        return q[0] - 4.0

    mech, q, v = falling(3.0)
    q = q - 1.2
    height.direction, height.terminal = -1, True
    found = lw.simulate(mech, q, v, 2.0, events=height)
    assert found.stopped == "event: height" and found.v[-1, 0] < 0.0 and len(found.events) == 1


def test_events_that_make_no_sense():
    mech, q, v = falling()
    with pytest.raises(MechanismError, match="did you mean 'height'"):
        lw.motion.joint_passes(mech, "heigth", 0.0)
    with pytest.raises(MechanismError, match="has no coordinate 1"):
        lw.motion.velocity_zero(mech, "height", coordinate=1)
    with pytest.raises(ValueError, match="direction must be"):
        lw.motion.when(lambda t, q, v: t, direction=2)
    with pytest.raises(ValueError, match="terminal must be True or False, not 2"):
        lw.motion.when(lambda t, q, v: t, terminal=2)
    with pytest.raises(MechanismError, match="of type bool, but real numbers are needed"):  # it would never rise
        lw.simulate(mech, q, v, 1.0, events=[lambda t, q, v: q[0] < 4.0])
    with pytest.raises(TypeError, match="a function of"):
        lw.simulate(mech, q, v, 1.0, events=["ground"])
    with pytest.raises(MechanismError, match="not one finite number"):
        lw.simulate(mech, q, v, 1.0, events=[lambda t, q, v: [1.0, 2.0]])
    with pytest.raises(MechanismError, match="one motion at a time"):
        lw.simulate(mech, np.zeros((2, 1)), v, 1.0, method="rk4", events=[lambda t, q, v: t - 1.0])
