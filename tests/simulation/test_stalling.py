"""Adaptive steps that do not get on: told, and never where a motion is stiff but smooth."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.simulation import integrators

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
    held = lw.simulate(PENDULUM, [0.5, 0.2], None, 1.0, lw.held(switching, 1e-3))
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
    run = lw.simulate(robot, None, [8.0, 0.0], 0.2, method=method, rtol=1e-6, atol=1e-6)
    assert run.stopped == "duration" and run.q[:, 0].max() > 0.3
