"""Steps that take velocities and positions in turn, of bodies that fly and spin: linear velocities are vectors,
whatever the axes do that their numbers are given along."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.mechanics.algorithms.integration import METHODS
from linkwise.motion.step import drifted, kick_bias

BALL = """<mujoco><option gravity="0 0 {gravity}"/><worldbody>{ground}
<body pos="0 0 {height}"><freejoint/><geom size=".1" friction="1"/></body></worldbody></mujoco>"""
FLOOR = '<geom type="plane" size="5 5 1"/>'


def test_a_ball_flies_on_however_fast_it_spins():
    mech = lw.load(BALL.format(gravity=0, ground="", height=0))
    q, v = lw.rollout(mech, mech.initial, [3.0, 20.0, -4.0, 2.0, 1.0, 0.0], None, 0.01, 200, "semi_implicit")
    np.testing.assert_allclose(np.linalg.norm(v[:, 3:], axis=-1), np.sqrt(5.0), rtol=1e-12)
    np.testing.assert_allclose(q[:, 4:], np.linspace(0.0, 2.0, 201)[:, None] * [2.0, 1.0, 0.0], atol=1e-11)


def test_a_ball_rolls_on():
    """Without slip, contact being implicit: along the ground, at the speed that it had."""
    mech = lw.load(BALL.format(gravity=-9.81, ground=FLOOR, height=0.1))
    q, v = lw.rollout(mech, mech.initial, [0.0, 20.0, 0.0, 2.0, 0.0, 0.0], None, 2e-3, 500, "semi_implicit")
    assert np.abs(q[:, 6] - 0.1).max() < 5e-3
    assert q[-1, 4] == pytest.approx(2.0, rel=0.02)
    assert np.linalg.norm(v[-1, 3:]) == pytest.approx(2.0, rel=0.02)


def test_one_step_from_rates_is_the_compiled_one():
    mech = lw.mechanisms.random_tree(4, 2, floating_base=True)
    rng = np.random.default_rng(0)
    q, v = lw.random_state(mech, rng, (5,))
    tau, h = rng.normal(size=v.shape), 0.02
    expected = lw.compile("semi_implicit_step", mech)(q, v, tau, h)
    found = METHODS["semi_implicit"].advance(
        q,
        v,
        h,
        lambda _, q, v: lw.forward_dynamics(mech, q, v, tau) + kick_bias(mech, q, v),
        lambda q, v, h: drifted(mech, q, v, h),
    )
    np.testing.assert_allclose(np.concatenate(found, axis=-1), expected, atol=1e-12)


def test_simulations_step_alike():
    mech = lw.mechanisms.random_tree(3, 4, floating_base=True)
    q0, v0 = lw.random_state(mech, np.random.default_rng(1))
    leapfrog = lw.extend.Splitting(kicks=(0.5, 0.5), drifts=(1.0, 0.0))
    METHODS["kick_drift_kick"] = leapfrog
    try:
        ends = []
        for steps in (50, 100, 200):
            motion = lw.simulate(
                mech, q0, v0, 0.5, lambda t, q, v: -0.1 * v, method="kick_drift_kick", step=0.5 / steps
            )
            ends.append(motion.v[-1])
    finally:
        del METHODS["kick_drift_kick"]
    exact = lw.simulate(
        mech, q0, v0, 0.5, lambda t, q, v: -0.1 * v, settings=lw.motion.Settings(rtol=1e-10, atol=1e-12)
    ).v[-1]
    errors = [np.abs(end - exact).max() for end in ends]
    assert errors[2] < 0.6 * errors[1] < 0.36 * errors[0]
