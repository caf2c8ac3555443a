"""Equilibria where Newton's method alone is stuck: the energy is descended, also round closed loops."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize

import linkwise as lw
from linkwise.control import EquilibriumError
from linkwise.linearization.balance import _lowest_within
from linkwise.mechanism import MechanismError

from ..constraints.built_in import built, random_state
from .test_equilibrium import at_rest

TURN = lw.Revolute((0, 0, 1))


def crank_rocker() -> lw.Mechanism:
    """Uniform rods of 0.4, 1.1 and 0.7 m on a base of 1 m; the crank can go round."""
    builder = lw.Builder()
    rods = (
        ("crank", "ground", 0.0, 0.4, 0.5),
        ("coupler", "crank", 0.4, 1.1, 1.2),
        ("rocker", "ground", 1.0, 0.7, 0.9),
    )
    for name, parent, at, length, mass in rods:
        across = mass * length**2 / 12
        builder.link(name, mass, (length / 2, 0, 0), (0.0, across, across))
        builder.joint(f"{name}_joint", TURN, parent, name, (None, (at, 0, 0)))
    builder.loop("tip", TURN, "coupler", (None, (1.1, 0, 0)), "rocker", (None, (0.7, 0, 0)))
    return builder.build("crank_rocker").with_gravity((0, -9.81, 0))


@pytest.mark.parametrize("stable", [False, True])
def test_an_arm_of_eight_links_on_springs(stable):
    """Where BFGS on the energy finds a minimum, so does this, from every start; and it is no higher than nearby."""
    arm = lw.mechanisms.planar_arm(8)
    springs = lw.forces.Passive.springs(dict.fromkeys(arm.joint_names, 25.0))
    rng = np.random.default_rng(0)

    def energy(q):
        return float(lw.potential_energy(arm, q) + springs.energy(arm, q))

    lowest = scipy.optimize.minimize(energy, np.zeros(8), method="BFGS").fun
    for guess in rng.uniform(-1, 1, (20, 8)):
        found = lw.find_equilibrium(arm, guess, passive=springs, stable=stable)
        at_rest(arm, found, springs)
        if stable:
            assert found.stable is True and energy(found.q) <= energy(guess)
            assert energy(found.q) >= lowest - 1e-6 * abs(lowest)
            there = energy(found.q)
            assert all(energy(found.q + 1e-3 * rng.normal(size=8)) > there for _ in range(5))


@pytest.mark.parametrize("stable", [False, True])
def test_every_start_round_a_crank_rocker(stable):
    mech = crank_rocker()
    spring = lw.forces.Passive.springs({"rocker_joint": 30.0}, rest={"rocker_joint": 1.2})
    q, positions, energies = lw.constraints.assemble(mech, [0.0, 1.0, 1.5]), [], []
    for angle in np.linspace(0.0, 2.0 * np.pi, 31):
        q = lw.linkages.follow(mech, q, {"crank_joint": angle})
        found = lw.find_equilibrium(mech, q, passive=spring, stable=stable)
        at_rest(mech, found, spring)
        positions.append(found.q[0] % (2.0 * np.pi))
        energies.append(lw.potential_energy(mech, q) + spring.energy(mech, q))
        assert found.stable is True or not stable
    if stable:  # its energy has one minimum on the cycle: between the neighbours of the lowest start
        np.testing.assert_allclose(positions, positions[0], atol=1e-7)
        lowest = 2.0 * np.pi / 30 * int(np.argmin(energies[:30]))
        assert abs(np.angle(np.exp(1j * (positions[0] - lowest)))) < 2.0 * np.pi / 30


@pytest.mark.parametrize(
    "name", ["four_bar", "slider_crank", "five_bar", "parallel_four_bar_robot", "bricard", "delta_robot"]
)
def test_closed_mechanisms_come_to_rest_at_a_minimum(name):
    """No assembled configuration nearby has less energy, also where the position is singular."""
    mech = built(name)
    rng = np.random.default_rng(3)
    for seed in range(3):
        found = lw.find_equilibrium(mech, random_state(name, seed)[0], stable=True)
        assert found.stable is not False and found.residual < 1e-6
        here = lw.potential_energy(mech, found.q)
        for _ in range(5):
            near = lw.constraints.assemble(mech, lw.integrate(mech, found.q, 0.02 * rng.normal(size=mech.nv), 1.0))
            assert lw.potential_energy(mech, near) >= here - 1e-9 * abs(here)


def test_tops_are_left():
    """At a maximum nothing pulls; either side is down."""
    arm = lw.mechanisms.planar_arm(2)
    top = [np.pi / 2, 0.0]
    assert lw.find_equilibrium(arm, top).stable is False
    hanging = lw.find_equilibrium(arm, top, stable=True)
    assert hanging.stable and np.isclose(np.cos(hanging.q[0] + np.pi / 2), 1.0)
    ball = lw.Builder().link("bob", 1.0, (0, 0, 0.3), (0.1, 0.1, 0.1)).joint("ball", lw.Spherical(), "ground", "bob")
    ball = ball.build()
    found = lw.find_equilibrium(ball, lw.neutral(ball), stable=True)
    np.testing.assert_allclose(lw.center_of_mass(ball, found.q), [0, 0, -0.3], atol=1e-9)
    assert found.stable is None  # it may turn about the vertical


def test_held_joints_stay_on_the_way_down():
    mech = crank_rocker()
    q = lw.constraints.assemble(mech, [0.7, 1.0, 1.5])
    held = lw.find_equilibrium(mech, q, hold=("crank_joint",), stable=True)
    np.testing.assert_allclose(held.q, q, atol=1e-9)
    arm = lw.mechanisms.planar_arm(3)
    found = lw.find_equilibrium(arm, [0.4, 1.0, 2.0], hold=("joint1",), stable=True)
    assert found.q[0] == 0.4 and found.stable
    np.testing.assert_allclose(np.cos(found.q[0] + found.q[1] + np.pi / 2), 1.0, atol=1e-9)


def test_constant_torques_up_to_what_gravity_can_hold():
    arm = lw.mechanisms.planar_arm(1)
    most = float(lw.gravity_force(arm, [0.0])[0])
    for guess in np.linspace(-3.0, 3.0, 13):
        for share in (0.5, 0.9, 0.99):
            found = lw.find_equilibrium(arm, [guess], tau=[share * most])
            np.testing.assert_allclose(np.cos(found.q[0]), share, atol=1e-9)
        low = lw.find_equilibrium(arm, [guess], tau=[0.5 * most], stable=True)
        np.testing.assert_allclose(low.q[0] % (2 * np.pi), 2 * np.pi - np.arccos(0.5), atol=1e-9)
    with pytest.raises(EquilibriumError, match="tried were Newton's method.*descent of the energy, which fell by"):
        lw.find_equilibrium(arm, [0.3], tau=[1.01 * most])
    with pytest.raises(EquilibriumError, match="no stable equilibrium.*tried were descent"):
        lw.find_equilibrium(arm, [0.3], tau=[1.01 * most], stable=True)


def test_forces_without_an_energy():
    arm = lw.mechanisms.planar_arm(2)
    wrenches = np.zeros((2, 6))
    wrenches[1, 4] = 1.0
    at_rest(arm, lw.find_equilibrium(arm, [0.1, 0.2], wrenches=wrenches), wrenches=wrenches)
    low = lw.find_equilibrium(arm, [0.1, 0.2], wrenches=wrenches, stable=True)
    at_rest(arm, low, wrenches=wrenches)
    assert low.stable and lw.center_of_mass(arm, low.q)[1] < 0.0
    ball = lw.Builder().link("bob", 1.0, (0, 0, 0.3), (0.1, 0.1, 0.1)).joint("ball", lw.Spherical(), "ground", "bob")
    pushed = lw.find_equilibrium(ball.build(), [1, 0, 0, 0], tau=[0.1, 0, 0], stable=True)
    at_rest(ball.build(), pushed)
    assert pushed.stable is not False and lw.center_of_mass(ball.build(), pushed.q)[2] == pytest.approx(-0.3, rel=1e-2)
    with pytest.raises(MechanismError, match="stable is for solve_for='q'"):
        lw.find_equilibrium(arm, [0.1, 0.2], solve_for="tau", stable=True)


@pytest.mark.parametrize("seed", range(6))
def test_the_lowest_point_within_a_radius(seed):
    """Against many points of the ball, and the conditions that tell the lowest."""
    rng = np.random.default_rng(seed)
    n = 4
    curvature = rng.normal(size=(n, n))
    curvature = curvature + curvature.T + (seed % 3) * 3.0 * np.eye(n)
    slope = rng.normal(size=n)
    if seed >= 4:  # no slope along the lowest curvature
        lowest = np.linalg.eigh(curvature)[1][:, 0]
        slope -= lowest * (lowest @ slope)
    step = _lowest_within(0.5, slope, curvature)
    assert np.linalg.norm(step) <= 0.5 * (1 + 1e-9)
    points = rng.normal(size=(4000, n))
    points *= 0.5 * (rng.uniform(size=(4000, 1)) ** 0.25) / np.linalg.norm(points, axis=1, keepdims=True)
    heights = points @ slope + 0.5 * np.einsum("ki,ij,kj->k", points, curvature, points)
    assert slope @ step + 0.5 * step @ curvature @ step <= heights.min()
