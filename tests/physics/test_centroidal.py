"""Momentum about the centre of mass and the centre's motion: from poses and link velocities, along motions, and what
Newton and Euler say of gravity and wrenches."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import linkwise as lw
from tests.physics.trees import close, every_tree, large_trees_are_slow, rate, tree_of

pytestmark = large_trees_are_slow

TOLERANCE = 1e-11
ALONG_MOTION = 2e-8  # differences of order eight


def times(matrix, vector):
    return np.einsum("...ij,...j->...i", matrix, vector)


def about_the_center_of_mass(model, q, v):
    """[angular; linear] momentum, link by link from poses and link velocities."""
    mech, poses, velocities = model.mech, model.link_poses(q), model.link_velocities(q, v)
    rotations, origins = poses[..., :3, :3], poses[..., :3, 3]
    centers = origins + times(rotations, mech.parameters.coms)
    omega = times(rotations, velocities[..., :3])
    moving = times(rotations, velocities[..., 3:]) + np.cross(omega, centers - origins)
    spin = times(rotations, times(mech.parameters.inertias, velocities[..., :3]))
    common = np.average(centers, axis=-2, weights=mech.parameters.masses)
    linear = mech.parameters.masses[:, None] * moving
    angular = spin + np.cross(centers - common[..., None, :], linear)
    return np.concatenate([angular.sum(-2), linear.sum(-2)], axis=-1), common


@every_tree
def test_the_matrix_gives_the_momentum_of_the_links(tree):
    model = tree()
    q, v, _, _ = model.states(4)
    expected, center = about_the_center_of_mass(model, q, v)
    close(times(model.centroidal_momentum_matrix(q), v), expected, TOLERANCE)
    close(model.centroidal_momentum(q, v), expected, 1e-10)
    close(model.center_of_mass(q), center, TOLERANCE)
    whole = times(model.momentum_matrix(q), v)
    close(whole, model.momentum(q, v), TOLERANCE)
    close(whole[:, :3] - np.cross(center, whole[:, 3:]), expected[:, :3], 1e-10)


@every_tree
def test_the_center_of_mass_moves_with_the_linear_momentum(tree):
    model = tree()
    q, v, _, _ = model.states(4)
    velocity = about_the_center_of_mass(model, q, v)[0][:, 3:] / model.mech.parameters.masses.sum()
    close(model.center_of_mass_velocity(q, v), velocity, TOLERANCE)
    close(times(model.center_of_mass_jacobian(q), v), velocity, TOLERANCE)


@pytest.mark.quick_one_in(2)
@every_tree
def test_rates_along_a_motion(tree):
    """Along q(t) that leaves with velocity v and acceleration a."""
    model = tree()
    q, v, a, _ = model.states(2)

    def along(function):
        return rate(lambda t: function(model.integrate(q, v + a * (t / 2), t), v + a * t))

    close(along(lambda at, _: model.center_of_mass(at)), model.center_of_mass_velocity(q, v), ALONG_MOTION)
    close(along(model.center_of_mass_velocity), model.center_of_mass_acceleration(q, v, a), ALONG_MOTION)
    close(along(model.momentum), model.momentum_rate(q, v, a), ALONG_MOTION)
    found = model.centroidal_momentum_matrix_rate(q, v)
    close(along(lambda at, _: model.centroidal_momentum_matrix(at)), found, ALONG_MOTION, core=2)


@every_tree
def test_the_rate_of_momentum_is_that_of_its_parts(tree):
    """d(A v)/dt = A a + dA/dt v, about the centre of mass and about the world's origin."""
    model = tree()
    q, v, a, _ = model.states(4)
    matrix, change = model.centroidal_momentum_matrix(q), model.centroidal_momentum_matrix_rate(q, v)
    parts = times(matrix, a) + times(change, v)
    whole, center = model.momentum_rate(q, v, a), model.center_of_mass(q)
    close(parts[:, 3:], whole[:, 3:], 1e-10)
    close(parts[:, :3], whole[:, :3] - np.cross(center, whole[:, 3:]), 1e-10)
    close(model.center_of_mass_acceleration(q, v, a), whole[:, 3:] / model.mech.parameters.masses.sum(), 1e-10)


@pytest.mark.parametrize("seed", (1, 3))
def test_a_body_in_free_flight_is_moved_by_gravity_and_wrenches(seed):
    """Newton and Euler for the whole: nothing holds a floating tree, rotors are left out."""
    mech = lw.mechanisms.random_tree(6, seed, joints=("revolute", "prismatic", "spherical"), floating_base=True)
    mech = without_rotors(mech)
    rng = np.random.default_rng(seed)
    q, v = lw.random_state(mech, rng, (3,))
    tau, wrenches = rng.normal(size=v.shape), rng.normal(size=(3, mech.n_links, 6))
    free = np.array([mech.v_index(body.joint).start for body in mech.bodies if body.parent < 0])
    tau[:, free[0] : free[0] + 6] = 0.0
    a = lw.forward_dynamics(mech, q, v, tau, wrenches)
    poses, total = lw.link_poses(mech, q), np.zeros((3, 6))
    forces = times(poses[..., :3, :3], wrenches[..., 3:])
    moments = times(poses[..., :3, :3], wrenches[..., :3]) + np.cross(poses[..., :3, 3], forces)
    weight = mech.parameters.masses.sum() * np.asarray(mech.gravity)
    total[:, 3:] = forces.sum(1) + weight
    total[:, :3] = moments.sum(1) + np.cross(lw.center_of_mass(mech, q), weight)
    close(lw.centroidal.momentum_rate(mech, q, v, a), total, 1e-9)


def without_rotors(mech: lw.Mechanism) -> lw.Mechanism:
    bodies = tuple(dataclasses.replace(body, armature=(0.0,) * body.kind.nv) for body in mech.bodies)
    return dataclasses.replace(mech, bodies=bodies)


@every_tree
def test_static_forces_are_inverse_dynamics_at_rest(tree):
    model = tree()
    q, v, _, wrenches = model.states(3)
    close(model.static_forces(q), model.gravity_force(q), 1e-12)
    still = np.zeros_like(v)
    expected = model.inverse_dynamics_with_wrenches(q, still, still, wrenches)
    close(model.static_forces_with_wrenches(q, wrenches), expected, 1e-11)


def test_batches_machine_code_and_single_precision():
    mech = tree_of(5, 1, True).mech
    rng = np.random.default_rng(0)
    q, v = lw.random_state(mech, rng, (3, 1))
    a = rng.normal(size=(4, mech.nv))
    assert (
        lw.centroidal.centroidal_momentum_matrix(mech, q).shape
        == lw.centroidal.momentum_matrix(mech, q).shape
        == (3, 1, 6, mech.nv)
    )
    assert lw.centroidal.center_of_mass_acceleration(mech, q, v, a).shape == (3, 4, 3)
    assert lw.centroidal.momentum_rate(mech, q, v, a).shape == (3, 4, 6)
    assert lw.static_forces(mech, q, np.zeros((4, mech.n_links, 6))).shape == (3, 4, mech.nv)
    found = lw.centroidal.centroidal_momentum_matrix_rate(mech, q, v)
    expected = lw.compile(lw.centroidal.centroidal_momentum_matrix_rate, mech, target="numpy")(q, v)
    close(found, expected, 1e-12, core=2)
    narrow = lw.centroidal.centroidal_momentum_matrix_rate(mech, np.float32(q), np.float32(v))
    assert narrow.dtype == np.float32
    close(narrow, expected, 1e-4, core=2)


def test_masses_as_inputs():
    mech = lw.mechanisms.random_tree(5, 3, floating_base=True)
    q, v = lw.random_state(mech, np.random.default_rng(0))
    bodies = tuple(dataclasses.replace(body, mass=2.0 * body.mass + 0.1) for body in mech.bodies)
    heavier = dataclasses.replace(mech, bodies=bodies)
    for name, arrays in (("center_of_mass_jacobian", (q,)), ("centroidal_momentum_matrix_rate", (q, v))):
        kernel = lw.compile(name, mech, target="numpy", parameters=("mass",))
        for one, masses in ((mech, mech.parameters.masses), (heavier, heavier.parameters.masses)):
            close(kernel(*arrays, masses), lw.compile(name, one, target="numpy")(*arrays), 1e-12, core=2)


def test_nothing_that_moves_and_nothing_that_weighs():
    still = lw.Builder().link("block", 1.0).joint("weld", lw.Fixed(), "ground", "block").build("still")
    assert lw.centroidal.momentum_matrix(still, []).shape == (6, 0)
    np.testing.assert_array_equal(lw.momentum(still, [], []), np.zeros(6))
    for function, arrays in (
        (lw.centroidal.centroidal_momentum_matrix, 1),
        (lw.centroidal.centroidal_momentum, 2),
        (lw.centroidal.center_of_mass_velocity, 2),
    ):
        with pytest.raises(lw.MechanismError, match="no moving link of mechanism 'still' has mass"):
            function(still, *([[]] * arrays))


def test_static_forces_hold_a_closed_mechanism():
    mech = lw.mechanisms.four_bar()
    q = lw.neutral(mech)
    held = lw.static_forces(mech, q, actuated="crank_joint")
    assert held[0] != 0.0 and not held[1:].any()
    np.testing.assert_allclose(lw.forward_dynamics(mech, q, tau=held), 0.0, atol=1e-9)
    assert np.abs(held - lw.static_forces(mech.spanning_tree, q)).max() > 0.1


def test_the_centroidal_form_costs_less_than_moving_the_expression():
    """W phi C H*, the composite bodies' centre, and the lever arm's cross product for each column."""
    for mech in (lw.mechanisms.puma560(), lw.mechanisms.chain(12), tree_of(8, 1, True).mech):
        count = {
            name: sum(lw.compile(name, mech, target="numpy").op_counts.values())
            for name in ("momentum_matrix", "centroidal_momentum_matrix", "center_of_mass", "center_of_mass_jacobian")
        }
        moved = count["momentum_matrix"] + count["center_of_mass"] + 12 * mech.nv
        assert count["centroidal_momentum_matrix"] < moved
        assert count["center_of_mass_jacobian"] < 0.6 * count["momentum_matrix"]
