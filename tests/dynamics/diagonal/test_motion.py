"""Integrating (q, nu) and (q, xi) gives the motion that integrating (q, v) gives, and keeps its energy."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import linkwise as lw

from .simulated import simulate

MECHANISMS = {
    "Stanford arm": (lw.mechanisms.stanford_arm, 1.5, 0.5),
    "floating tree": (lambda: lw.mechanisms.random_tree(7, 12, floating_base=True), 1.0, 0.5),
    "chain of 20": (lambda: lw.mechanisms.chain(20), 0.5, 0.3),
}
TOLERANCE = 1e-11


@cache
def motion(name: str, variables: str):
    make, duration, speed = MECHANISMS[name]
    mech = make()
    q, v = lw.random_state(mech, np.random.default_rng(5))
    return mech, *simulate(mech, q, speed * v, np.linspace(0.0, duration, 9), variables, tolerance=TOLERANCE)


@pytest.mark.quick_one_in(2)
@pytest.mark.seed("jain1995", "Algorithm 8.1", by="library")
@pytest.mark.parametrize("variables", ["nu", "xi"])
@pytest.mark.parametrize("name", MECHANISMS)
def test_motion_and_energy(name, variables):
    mech, q, v = motion(name, "v")
    _, found_q, found_v = motion(name, variables)
    assert np.abs(lw.difference(mech, q[0], q[-1])).max() > 0.3, "the mechanism must have moved"
    assert np.abs(lw.difference(mech, q, found_q)).max() < 1e-7
    assert np.abs(v - found_v).max() < 1e-6 * np.abs(v).max()
    energy = lw.kinetic_energy(mech, found_q, found_v) + lw.potential_energy(mech, found_q)
    exchanged = np.ptp(lw.potential_energy(mech, found_q))
    assert exchanged > 0.1
    assert np.ptp(energy) < 1e-8 * exchanged


def test_fixed_steps_on_the_manifold():
    """Runge and Kutta's method of order four in (q, xi), each step along a tangent vector: errors fall by sixteen."""
    mech = lw.mechanisms.stanford_arm()
    q, v = lw.random_state(mech, np.random.default_rng(5))
    exact, _ = simulate(mech, q, 0.5 * v, np.linspace(0.0, 0.4, 2), "v", tolerance=1e-12)

    def end(steps: int) -> np.ndarray:
        here, xi, dt = q, lw.formulations.diagonal.rates(mech, q, 0.5 * v, normalized=False), 0.4 / steps
        for _ in range(steps):
            slopes = [lw.formulations.diagonal.motion(mech, here, xi, np.zeros(6), normalized=False)]
            for part in (0.5, 0.5, 1.0):
                change, rates = slopes[-1]
                at = lw.integrate(mech, here, rates, part * dt)
                slopes.append(
                    lw.formulations.diagonal.motion(mech, at, xi + part * dt * change, np.zeros(6), normalized=False)
                )
            weights = (1 / 6, 1 / 3, 1 / 3, 1 / 6)
            here = lw.integrate(mech, here, sum(w * s[1] for w, s in zip(weights, slopes, strict=True)), dt)
            xi = xi + dt * sum(w * s[0] for w, s in zip(weights, slopes, strict=True))
        return here

    errors = [np.abs(end(steps) - exact[-1]).max() for steps in (20, 40)]
    assert errors[1] < 1e-6
    assert 10.0 < errors[0] / errors[1] < 24.0
