"""Controllers on the command line: gains of regulators, motions that are followed, what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest

import linkwise as lw

BALANCED = ("lqr", "builtin:cart_pole", "--inputs", "rail")


def test_gains_are_those_of_the_library(run):
    found = json.loads(
        run(*BALANCED, "--state-weight", 2, "--state-weight", "hinge=10", "--input-weight", 0.5, "--json")
    )
    model = lw.linearize(lw.mechanisms.cart_pole(), inputs=("rail",))
    expected = lw.control.lqr(model, Q=[2.0, 10.0, 2.0, 2.0], R=0.5)
    np.testing.assert_allclose(found["gain"], expected.gain, rtol=1e-9)
    assert max(real for real, _ in found["eigenvalues"]) < 0.0 < max(real for real, _ in found["open_eigenvalues"])


def test_a_pole_is_balanced_by_gains_of_a_file(run):
    text = run(*BALANCED, "-o", "upright.npz")
    assert "driven by rail" in text and "none: it is in balance" in text and "upright.npz" in text
    motion = ("simulate", "builtin:cart_pole", "--q", "hinge=0.3", "--duration", 8, "--json")
    found = json.loads(run(*motion, "--regulator", "upright.npz"))
    mech = lw.mechanisms.cart_pole()
    regulator = lw.control.lqr(lw.linearize(mech, inputs=("rail",)))
    expected = lw.simulate(
        mech, {"hinge": 0.3}, None, 8.0, regulator, settings=lw.motion.Settings(rtol=1e-9, atol=1e-9)
    )
    np.testing.assert_allclose(found["end"]["q"], expected.end.q, atol=1e-7)
    assert np.abs(found["end"]["q"]).max() < 0.01
    assert abs(json.loads(run(*motion))["end"]["q"][1]) > 1.0  # which falls without


def test_a_linkage_is_held_by_one_motor(run):
    text = run(
        "lqr", "builtin:four_bar", "--q", "crank_joint=0.9", "--inputs", "crank_joint", "--independent", "crank_joint"
    )
    assert "2 states, driven by crank_joint" in text and "held there by the forces" in text


def test_computed_torque_along_a_table(run):
    run("trajectory", "builtin:puma560", "--to", "joint1=1", "--duration", 1, "-o", "motion.csv")
    command = ("simulate", "builtin:puma560", "--start", "motion.csv", "--q", "joint2=0.1", "--json")
    found = json.loads(run(*command, "--follow", "motion.csv"))
    decay = (1.0 + 10.0) * np.exp(-10.0)  # of a critically damped error, in one second
    assert found["duration"] == 1.0
    np.testing.assert_allclose(found["end"]["q"][:3], [1.0, 0.1 * decay, 0.0], atol=1e-6)
    slow = json.loads(run(*command, "--follow", "motion.csv", "--kp", 1, "--kd", 2))
    np.testing.assert_allclose(slow["end"]["q"][1], 0.1 * 2.0 * np.exp(-1.0), atol=1e-6)


def test_computed_torque_holds_a_linkage(run):
    """Loops take part: one motor and the loop hold all joints at the assembled configuration."""
    mech = lw.mechanisms.four_bar()
    q = lw.constraints.assemble(mech, {"crank_joint": 0.9})
    np.savez("linkage.npz", t=np.arange(2.0), q=np.tile(q, (2, 1)))
    found = json.loads(
        run("simulate", "builtin:four_bar", "--start", "linkage.npz", "--follow", "linkage.npz", "--json")
    )
    np.testing.assert_allclose(found["end"]["q"], q, atol=1e-6)


REFUSED = (
    (("lqr", "builtin:cart_pole", "--inputs", "rail", "--v", "rail=1"), "a state of rest: leave --v out"),
    (("lqr", "builtin:cart_pole", "--state-weight", "pole=2"), "there is no 'pole'; available: rail, hinge, rail.rate"),
    (("lqr", "builtin:cart_pole", "--state-weight", "1,2"), "one number is for all"),
    (("lqr", "builtin:cart_pole", "--input-weight", -1), "R must be positive"),
    (("lqr", "builtin:cart_pole", "-o", "gains.csv"), "must end in .npz"),
    (("simulate", "builtin:cart_pole", "--regulator", "other.npz"), "gains of another mechanism, of 2 velocities"),
    (("simulate", "builtin:cart_pole", "--regulator", "table.npz"), "has no gains: give a file that linkwise lqr -o"),
    (("simulate", "builtin:cart_pole", "--regulator", "none.npz"), "there is no file none.npz"),
    (("simulate", "builtin:puma560", "--regulator", "x.npz", "--kp", 1), "--regulator and --kp are two controllers"),
    (("simulate", "builtin:puma560", "--follow", "x.csv", "--target", "joint1=1"), "--follow and --target are two"),
    (("simulate", "builtin:puma560", "--follow", "-", "--start", "-"), "standard input is one table"),
)


@pytest.mark.parametrize(("arguments", "message"), REFUSED, ids=[message[:24] for _, message in REFUSED])
def test_what_is_refused(run, arguments, message):
    np.savez("other.npz", q=np.zeros(3), v=np.zeros(2), tau=np.zeros(2), gain=np.zeros((2, 4)))
    np.savez("table.npz", q=np.zeros((2, 2)))
    assert message in run(*arguments, fails=True)
