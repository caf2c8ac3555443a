"""Adaptive steps that do not get on: told, and never where a motion is stiff but smooth."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.motion import integrators
from tests.simulated import simulate

PENDULUM = lw.mechanisms.double_pendulum()


def switching(t, q, v):
    return -60.0 * np.sign(q + 0.2 * v)


@pytest.mark.parametrize("method", ["dop853", "rk45", "rk23", "lsoda"])
def test_forces_that_jump_to_and_fro_are_told(monkeypatch, method):
    monkeypatch.setattr(integrators, "PATIENCE", 10_000)
    with pytest.raises(
        lw.SimulationError, match=r"it stalls at t = 0\.00185.* controller that switches.*rk4"
    ) as failed:
        lw.simulate(PENDULUM, [0.5, 0.2], None, 2.0, switching, method=method)
    reached = failed.value.trajectory
    assert 1.8e-3 < reached.t[-1] < 1.9e-3 and reached.evaluations < 40_000
    assert abs(reached.q[-1, 1] + 0.2 * reached.v[-1, 1]) < 1e-6  # where the force on the second joint jumps


def test_rows_of_control_inputs_do_not_hide_it(monkeypatch):
    """Each row ends a step: what counts is the way to the end of the motion."""
    monkeypatch.setattr(integrators, "PATIENCE", 10_000)
    pushed = lw.mechanisms.planar_arm(2)

    def wrenches(t, q, v):
        return np.sign(q[0] + 0.1 * v[0]) * np.array([[0, 0, -200.0, 0, 0, 0], [0, 0, 0, 0, 0, 0]])

    with pytest.raises(lw.SimulationError, match="it stalls"):
        lw.simulate(pushed, [0.1, 0.0], None, 2.0, np.zeros((2000, 2)), wrenches=wrenches)


def test_what_the_message_advises_goes_through():
    fixed = lw.simulate(PENDULUM, [0.5, 0.2], None, 1.0, switching, method="rk4", step=1e-3)
    held = lw.simulate(PENDULUM, [0.5, 0.2], None, 1.0, lw.motion.held(switching, 1e-3))
    smooth = lw.simulate(PENDULUM, [0.5, 0.2], None, 1.0, lambda t, q, v: -60.0 * np.tanh((q + 0.2 * v) / 0.01))
    for run in (fixed, held, smooth):  # back, but for what an interval of 1 ms lets it swing
        assert run.stopped == "duration" and np.abs(run.q[-1]).max() < 0.06


@pytest.mark.parametrize("method", ["dop853", "radau"])
def test_stiff_motions_never_stall(monkeypatch, method):
    """With a hundredth of the patience: a light hand with dry friction, thrown against stops."""
    monkeypatch.setattr(integrators, "PATIENCE", integrators.PATIENCE // 100)
    built = lw.Builder().link("arm", 2.0, (0.3, 0, 0), (0.02, 0.02, 0.02))
    built.link("hand", 0.01, (0.02, 0, 0), (1e-6, 1e-5, 1e-5))
    built.joint("elbow", lw.Revolute((0, 1, 0)), "ground", "arm", friction=2.0, limits=lw.Limits(-0.5, 0.5))
    built.joint("wrist", lw.Revolute((0, 1, 0)), "arm", "hand", (0.6, 0, 0), friction=0.1, limits=lw.Limits(-0.3, 0.3))
    robot = built.build("robot")
    run = lw.simulate(robot, None, [8.0, 0.0], 0.2, method=method, settings=lw.motion.Settings(rtol=1e-6, atol=1e-6))
    assert run.stopped == "duration" and run.q[:, 0].max() > 0.3


ARM, FOUR_BAR = lw.mechanisms.planar_arm(2), lw.mechanisms.four_bar()
WAYS = [(method, "joint") for method in ("dop853", "rk45", "rk23", "radau", "bdf", "lsoda", "rk4", "semi_implicit")]
WAYS += [("dop853", "momentum"), ("dop853", "nu"), ("dop853", "xi")]
LOST = "not finite|it stalls|cannot go on|leaves all bounds"


@pytest.mark.filterwarnings("ignore:.*encountered:RuntimeWarning")
@pytest.mark.parametrize("speed", [1e20, 1e150, 1e155, 1e300, 1.7e308])
@pytest.mark.parametrize(("method", "coordinates"), WAYS)
def test_velocities_beyond_all_bounds_are_refused(method, coordinates, speed):
    """Their squares overflow, at once or within steps: the motion ends, and so does the call."""
    with pytest.raises(lw.SimulationError, match=LOST) as caught:
        lw.simulate(
            ARM, [0.1, 0.2], [speed, speed], 0.01, method=method, settings=lw.motion.Settings(coordinates=coordinates)
        )
    assert caught.value.trajectory.end.t < 0.01 and len(str(caught.value)) < 400


@pytest.mark.filterwarnings("ignore:.*encountered:RuntimeWarning")
@pytest.mark.parametrize("speed", [1e155, 1e300])
@pytest.mark.parametrize(
    "options", [{}, {"method": "radau"}, {"coordinates": "independent"}, {"method": "bdf", "stabilization": None}]
)
def test_loops_with_velocities_beyond_all_bounds_are_refused(options, speed):
    with pytest.raises(lw.SimulationError, match=LOST):
        simulate(FOUR_BAR, None, {"crank_joint": speed}, 0.01, **options)


@pytest.mark.filterwarnings("ignore:.*encountered:RuntimeWarning")
def test_the_message_names_the_velocity():
    with pytest.raises(
        lw.SimulationError, match=r"t = 0 s are not finite: the largest velocity is 1e\+300, of 'joint2'"
    ):
        lw.simulate(ARM, [0.1, 0.2], [0.0, 1e300], 0.01)
    with pytest.raises(
        lw.SimulationError, match=r"it stalls .* the largest velocity is .*, of 'joint\d'. Give .*rad/s"
    ):
        lw.simulate(ARM, [0.1, 0.2], [0.0, 1e20], 0.01)


@pytest.mark.filterwarnings("ignore:.*encountered:RuntimeWarning")
@pytest.mark.parametrize("method", ["dop853", "radau", "bdf", "lsoda", "rk4"])
def test_forces_that_grow_beyond_all_bounds_end_the_motion(method):
    """What is finite at the start and overflows later; the part before is kept."""

    def push(t, q, v):
        return np.full(2, 1e308 if t > 0.005 else 0.0)

    with pytest.raises(lw.SimulationError, match=LOST) as caught:
        lw.simulate(ARM, [0.1, 0.2], [0.0, 0.0], 0.01, push, method=method, step=1e-3)
    assert 0.002 < caught.value.trajectory.end.t < 0.007
    assert np.isfinite(caught.value.trajectory.q).all()


@pytest.mark.parametrize("method", ["dop853", "radau"])
def test_errors_of_controllers_are_passed_on(method):
    def control(t, q, v):
        raise ValueError("no torque today")

    with pytest.raises(ValueError, match="no torque today") as caught:
        lw.simulate(ARM, [0.1, 0.2], [0.0, 0.0], 0.01, control, method=method)
    assert not isinstance(caught.value, lw.SimulationError)


def test_fast_motions_that_can_be_followed_are():
    """A free rotor at 1e12 rad/s turns 1e10 times: nothing changes but its angle."""
    rotor = lw.mechanisms.planar_arm(1).with_gravity((0.0, 0.0, 0.0))
    motion = lw.simulate(rotor, [0.0], [1e12], 0.01)
    np.testing.assert_allclose(motion.q[-1], 1e10, rtol=1e-12)
