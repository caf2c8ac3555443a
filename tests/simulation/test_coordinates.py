"""One motion, whatever is integrated: joint velocities, total joint rates, independent coordinates."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.mechanism import MechanismError
from tests.simulated import simulate

TREES = {
    "stanford_arm": lambda: lw.mechanisms.stanford_arm(),
    "floating_tree": lambda: lw.mechanisms.random_tree(5, 3, floating_base=True),
    "chain_20": lambda: lw.mechanisms.chain(20),
}


@pytest.mark.parametrize("coordinates", ["nu", "xi"])
@pytest.mark.parametrize("name", TREES)
def test_total_rates_give_the_same_trajectory(name, coordinates):
    mech = TREES[name]()
    q, v = lw.random_state(mech, np.random.default_rng(5))
    times = np.linspace(0.0, 0.5, 6)
    tight = {"t_eval": times, "rtol": 1e-11, "atol": 1e-11}
    expected = simulate(mech, q, 0.5 * v, 0.5, **tight)
    found = simulate(mech, q, 0.5 * v, 0.5, settings=lw.motion.Settings(coordinates=coordinates), **tight)
    for name in ("q", "v", "a"):
        scale = np.abs(getattr(expected, name)).max()
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), atol=2e-8 * scale)
    scale = np.abs(found.kinetic_energy).max() + np.abs(found.potential_energy).max()
    assert np.ptp(found.energy) < 1e-9 * scale


@pytest.mark.parametrize("method", ["radau", "lsoda", "rk4"])
def test_total_rates_under_a_controller_and_springs(method):
    mech = lw.mechanisms.random_tree(3, 7, joints=("revolute", "spherical"), floating_base=True)
    q, v = lw.random_state(mech, np.random.default_rng(5))
    passive = lw.forces.Passive.springs({mech.joint_names[-1]: 5.0})

    def control(t, q, v):
        return np.cos(5.0 * t) - 0.3 * v

    ends = [
        lw.simulate(
            mech,
            q,
            v,
            0.2,
            control,
            method=method,
            settings=lw.motion.Settings(coordinates=c, rtol=1e-8, atol=1e-8),
            passive=passive,
        )
        for c in ("joint", "nu", "xi")
    ]
    for other in ends[1:]:
        np.testing.assert_allclose(other.q[-1], ends[0].q[-1], atol=2e-6)
        np.testing.assert_allclose(other.tau[-1], ends[0].tau[-1], atol=2e-5)


@pytest.mark.parametrize("method", ["dop853", "radau", "rk4"])
def test_independent_coordinates_of_a_four_bar(method):
    mech = lw.mechanisms.four_bar()
    q = np.zeros(3)
    v = 5.0 * lw.constraints.null_space(mech, q, independent=("crank_joint",))[:, 0]
    options = {"t_eval": np.linspace(0.0, 0.3, 5), "method": method, "step": 5e-3, "rtol": 1e-8, "atol": 1e-8}
    expected = simulate(mech, q, v, 0.3, **options)
    found = simulate(
        mech, q, v, 0.3, settings=lw.motion.Settings(coordinates="independent", independent=("crank_joint",)), **options
    )
    np.testing.assert_allclose(found.q, expected.q, atol=1e-5)
    np.testing.assert_allclose(found.v, expected.v, atol=1e-4)
    assert found.constraint_error.max() < 1e-11 and found.velocity_error.max() < 1e-9
    assert np.ptp(found.energy) < 1e-4
    np.testing.assert_array_equal(found.end.chart.rows, [[1.0, 0.0, 0.0]])  # what x means is kept with it
    assert found.resume(0.1).t[-1] == pytest.approx(0.4)


def test_coordinates_that_do_not_fit():
    four_bar, arm = lw.mechanisms.four_bar(), lw.mechanisms.planar_arm(2)
    with pytest.raises(MechanismError, match="has loops, and compiled steps in these coordinates do not keep them"):
        lw.rollout(four_bar, np.zeros(3), np.zeros(3), None, 1e-3, 10, coordinates="nu")
    with pytest.raises(ValueError, match="did you mean 'joint'"):
        lw.simulate(arm, np.zeros(2), np.zeros(2), 1.0, settings=lw.motion.Settings(coordinates="joints"))
    with pytest.raises(ValueError, match="needs coordinates='independent'"):
        lw.simulate(four_bar, np.zeros(3), np.zeros(3), 1.0, settings=lw.motion.Settings(independent=("crank_joint",)))
    with pytest.raises(ValueError, match="projection would falsify"):
        lw.simulate(
            four_bar,
            np.zeros(3),
            np.zeros(3),
            1.0,
            settings=lw.motion.Settings(coordinates="independent"),
            method="bdf",
        )
    with pytest.raises(MechanismError, match="one state at a time"):
        lw.simulate(
            four_bar,
            np.zeros((2, 3)),
            np.zeros(3),
            1.0,
            settings=lw.motion.Settings(coordinates="independent"),
            method="rk4",
        )


@pytest.mark.parametrize("method", ["dop853", "rk45", "radau", "rk4"])
def test_independent_coordinates_of_what_turns_freely(method):
    """A ball that spins at 20 rad/s turns through all that one chart has again and again."""
    builder = lw.Builder().link("ball", 1.0, (0, 0, 0), (1, 1, 1))
    mech = builder.joint("ball", lw.Spherical(), "ground", "ball").build("ball", (0, 0, 0))
    turned = lw.simulate(
        mech,
        [1.0, 0, 0, 0],
        [0, 0, 20.0],
        1.0,
        settings=lw.motion.Settings(coordinates="independent"),
        method=method,
        step=0.05,
    )
    assert turned.chart_changes > 5
    half = 10.0 * turned.t
    expected = np.stack([np.cos(half), 0.0 * half, 0.0 * half, np.sin(half)], axis=-1)
    assert np.abs(lw.difference(mech, expected, turned.q)).max() < 1e-12


@pytest.mark.parametrize("method", ["dop853", "radau"])
def test_steps_that_would_leave_the_chart_are_made_shorter(method):
    """Coordinates that change evenly allow steps as long as the duration, but for the end of the chart."""
    builder = lw.Builder().link("ball", 1.0, (0, 0, 0), (1, 1, 1))
    mech = builder.joint("ball", lw.Spherical(), "ground", "ball").build("ball", (0, 0, 0))
    turned = lw.simulate(
        mech, [1.0, 0, 0, 0], [0, 0, 1.0], 10.0, settings=lw.motion.Settings(coordinates="independent"), method=method
    )
    assert np.abs(lw.difference(mech, turned.q[-1], [np.cos(5.0), 0, 0, np.sin(5.0)])).max() < 1e-12
    assert turned.step_sizes.max() > 0.5


def test_a_closed_mechanism_that_turns_over():
    """A four-bar on a floating base, through more than 180 degrees: angular momentum of the whole is kept."""
    builder = lw.Builder().link("base", 3.0, (0.1, 0, 0.02), (0.05, 0.06, 0.07))
    for name, length in (("crank", 0.3), ("coupler", 0.5), ("rocker", 0.4)):
        builder.link(name, 1.0, (length / 2, 0.01, 0.02), (0.01, 0.02, 0.02))
    builder.joint("free", lw.Floating(), "ground", "base").joint("a", lw.Revolute((0, 0, 1)), "base", "crank")
    builder.joint("b", lw.Revolute((0, 0, 1)), "crank", "coupler", pose=(None, (0.3, 0, 0)))
    builder.joint("c", lw.Revolute((0, 0, 1)), "base", "rocker", pose=(None, (0.6, 0, 0)))
    builder.loop("d", lw.Revolute((0, 0, 1)), "coupler", (None, (0.5, 0, 0)), "rocker", (None, (0.4, 0, 0)))
    mech = builder.build("floating four-bar", (0, 0, 0))
    q = lw.constraints.assemble(mech, [1, 0, 0, 0, 0, 0, 0, 1.0, -0.8, 1.2], hold=("free", "a"))
    null = lw.constraints.null_space(mech, q)
    v = 2.0 * null @ np.random.default_rng(0).normal(size=null.shape[1])
    expected = lw.simulate(mech, q, v, 2.0, settings=lw.motion.Settings(rtol=1e-11, atol=1e-11))
    found = lw.simulate(mech, q, v, 2.0, settings=lw.motion.Settings(coordinates="independent", rtol=1e-7, atol=1e-7))
    assert found.chart_changes > 0 and found.constraint_error.max() < 1e-11
    momentum = lw.momentum(mech, found.q, found.v)
    assert np.ptp(momentum, axis=0).max() < 1e-5
    assert np.abs(lw.difference(mech, expected.q[-1], found.q[-1])).max() < 1e-5
