"""linkwise estimate: tables in, tables with error bars out."""

from __future__ import annotations

import csv

import numpy as np
import pytest

import linkwise as lw


@pytest.fixture
def log(here):
    """A table of measurements without noise, and what was measured."""
    arm = lw.mechanisms.planar_arm(2)
    t = np.linspace(0.0, 1.0, 41)
    q = np.column_stack([np.sin(3.0 * t), 1.0 + 0.3 * np.cos(4.0 * t)])
    v = np.column_stack([3.0 * np.cos(3.0 * t), -1.2 * np.sin(4.0 * t)])
    a = np.column_stack([-9.0 * np.sin(3.0 * t), -4.8 * np.cos(4.0 * t)])
    held = arm.with_payload("link2", 0.5, (0.8, 0.0, 0.0))
    tau = lw.inverse_dynamics(held, q, v, a)
    np.savez(here / "log.npz", t=t, q=q, v=v, a=a, tau=tau)
    return arm, t, q, v, a, tau


def rows(text: str) -> dict[str, np.ndarray]:
    names, *numbers = csv.reader(text.splitlines())
    return dict(zip(names, np.array(numbers, dtype=float).T, strict=True))


def test_table_is_what_the_library_gives(run, log):
    arm, t, q, v, a, tau = log
    options = ("--torque-noise", "0.3", "--acceleration-noise", "joint1=0.1", "--acceleration-noise", "joint2=0.2")
    found = rows(run("estimate", "builtin:planar_arm:2", "log.npz", *options, "--push", "link2=0,0,0,5,5,0"))
    noise = lw.estimation.Noise([0.1, 0.2], 0.3, {"link2": (0, 0, 0, 5, 5, 0)})
    expected = lw.estimation.smooth(arm, q, v, a, tau, noise)
    np.testing.assert_array_equal(found["t"], t)
    np.testing.assert_array_equal(found["tau.joint2"], expected.tau[:, 1])
    np.testing.assert_array_equal(found["a_std.joint1"], expected.a_std[:, 0])
    np.testing.assert_array_equal(found["wrench.link2[4]"], expected.wrenches[:, 1, 4])
    np.testing.assert_array_equal(found["wrench_std.link2[3]"], expected.wrench_std[:, 1, 3])


def test_accelerations_from_encoders(run, log):
    _, _, _, _, a, _ = log
    found = rows(run("estimate", "builtin:planar_arm:2", "log.npz", "--encoder-noise", "1e-6", "--torque-noise", "100"))
    middle = slice(5, -5)
    assert np.abs(found["a.joint1"] - a[:, 0])[middle].max() < 0.1
    assert np.all(found["a_std.joint1"] > 0.0)


def test_payload(run, log):
    options = ("--torque-noise", "0.3", "--acceleration-noise", "0.1", "--payload", "link2", "--parameters", "m,mx,my")
    assert run("estimate", "builtin:planar_arm:2", "log.npz", *options).startswith("payload of 'link2': 0.5 +- ")


def test_bad_input_is_one_line(run, log):
    command = ("estimate", "builtin:planar_arm:2", "log.npz")
    assert "--torque-noise goes with columns of tau" in run(*command, fails=True)
    assert "not both" in run(*command, "--torque-noise", "1", "--torque-noise", "joint1=1", fails=True)
    assert "write LINK=DEVIATION" in run(*command, "--torque-noise", "1", "--push", "link2", fails=True)
    assert "unknown moving link 'hand'" in run(*command, "--torque-noise", "1", "--push", "hand=1", fails=True)
    encoders = ("--torque-noise", "1", "--encoder-noise", "1e-5", "--payload", "link2")
    assert "goes without" in run(*command, *encoders, fails=True)
    both = ("--torque-noise", "0.3", "--acceleration-noise", "0.1", "--payload", "link2")
    assert "do not tell mz of a payload" in run(*command, *both, fails=True)
