"""Poses, velocities, accelerations, Jacobians, momentum and wrenches agree with each other and with their meaning."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from tests.physics.trees import Model, close, every_tree, large_trees_are_slow, rate, skew

pytestmark = large_trees_are_slow

STATES = 3


def carrying(pose: np.ndarray) -> np.ndarray:
    """(..., 6, 6): [omega; v] in a frame's axes at its origin -> in the world's axes at the world's origin."""
    rotation, position = pose[..., :3, :3], pose[..., :3, 3]
    result = np.zeros((*pose.shape[:-2], 6, 6))
    result[..., :3, :3] = result[..., 3:, 3:] = rotation
    result[..., 3:, :3] = skew(position) @ rotation
    return result


def twist(pose: np.ndarray, pose_rate: np.ndarray) -> np.ndarray:
    """[omega; v] in the frame's own axes at its origin, from pose^-1 d(pose)/dt."""
    moving = np.linalg.inv(pose) @ pose_rate
    return np.stack([moving[..., i, j] for i, j in ((2, 1), (0, 2), (1, 0), (0, 3), (1, 3), (2, 3))], axis=-1)


@every_tree
def test_velocities_are_rates_of_poses(tree):
    model = tree()
    q, v, *_ = model.states(STATES)
    pose_rates = rate(lambda t: model.link_poses(model.integrate(q, v, t)))
    close(model.link_velocities(q, v), twist(model.link_poses(q), pose_rates), 1e-9, core=2)


@every_tree
def test_accelerations_are_rates_of_velocities(tree):
    model = tree()
    q, v, a, _ = model.states(STATES)
    expected = rate(lambda t: model.link_velocities(model.integrate(q, v, t), v + a * t))
    close(model.link_accelerations(q, v, a), expected, 1e-9, core=2)


@every_tree
def test_jacobians_in_all_frames(tree):
    """Every named frame, moving or welded: J v is its velocity, and the three expressions differ by known shifts."""
    model = tree()
    mech = model.mech
    q, v, *_ = model.states(STATES)
    for name in list(mech.frames)[:: max(1, len(mech.frames) // 4)]:
        pose = model.frame_pose(q, link=name)
        own = model.jacobian(q, link=name)
        pose_rate = rate(lambda t, name=name: model.frame_pose(model.integrate(q, v, t), link=name))
        close(np.einsum("...ij,...j", own, v), twist(pose, pose_rate), 1e-8)
        close(model.jacobian(q, link=name, frame="world"), carrying(pose) @ own, 1e-12, core=2)
        aligned = pose.copy()
        aligned[..., :3, 3] = 0.0
        close(model.jacobian(q, link=name, frame="world_aligned"), carrying(aligned) @ own, 1e-12, core=2)


@every_tree
def test_wrenches_enter_through_jacobians(tree):
    model = tree()
    mech = model.mech
    q, v, a, wrenches = model.states(STATES)
    pushed = sum(
        np.einsum("...ij,...i", model.jacobian(q, link=link), wrenches[:, i]) for i, link in enumerate(mech.link_names)
    )
    tau = model.inverse_dynamics_with_wrenches(q, v, a, wrenches)
    close(tau, model.inverse_dynamics(q, v, a) - pushed, 1e-11)
    helped = model.forward_dynamics(q, v, a + pushed)
    close(model.forward_dynamics_with_wrenches(q, v, a, wrenches), helped, 1e-9)


@every_tree
def test_momentum_is_that_of_the_links(tree):
    model = tree()
    mech = model.mech
    q, v, *_ = model.states(STATES)
    poses, velocities = model.link_poses(q), model.link_velocities(q, v)
    total, first_moment = 0.0, 0.0
    for i, body in enumerate(mech.bodies):
        rotation, origin = poses[:, i, :3, :3], poses[:, i, :3, 3]
        center = origin + rotation @ body.com
        omega = velocities[:, i, :3]
        linear = body.mass * np.einsum("nij,nj->ni", rotation, velocities[:, i, 3:] + np.cross(omega, body.com))
        angular = np.einsum("nij,jk,nk->ni", rotation, body.inertia, omega) + np.cross(center, linear)
        total = total + np.concatenate([angular, linear], axis=-1)
        first_moment = first_moment + body.mass * center
    close(model.momentum(q, v), total, 1e-12)
    close(model.center_of_mass(q), first_moment / mech.parameters.masses.sum(), 1e-12)
    close(model.potential_energy(q), -first_moment @ mech.gravity, 1e-11, core=0)
    close(
        rate(lambda t: model.center_of_mass(model.integrate(q, v, t))),
        total[:, 3:] / mech.parameters.masses.sum(),
        1e-8,
    )


@pytest.mark.parametrize("seed", range(6))
def test_a_floating_tree_without_gravity_keeps_its_momentum(seed):
    mech = lw.mechanisms.random_tree(12, seed, floating_base=True).with_gravity((0.0, 0.0, 0.0))
    model = Model(_without_rotors(mech))
    q, v, tau, _ = model.states(STATES)
    tau[:, :6] = 0.0  # nothing pushes the base: all forces are internal
    a = model.forward_dynamics(q, v, tau)
    change = rate(lambda t: model.momentum(model.integrate(q, v, t), v + a * t))
    assert np.abs(change).max() < 1e-9 * max(1.0, np.abs(model.momentum(q, v)).max() * np.abs(a).max())


def _without_rotors(mech: lw.Mechanism) -> lw.Mechanism:
    """The mechanism without armatures: a rotor's momentum is not that of a link."""
    builder = lw.Builder()
    for body in mech.bodies:
        parent = "ground" if body.parent < 0 else mech.bodies[body.parent].link
        builder.link(body.link, body.mass, body.com, body.inertia)
        builder.joint(body.joint, body.kind, parent, body.link, (body.rotation, body.position))
    return builder.build("without_rotors", mech.gravity)


@pytest.mark.quick_one_in(2)
@every_tree
def test_operational_inertia(tree):
    model = tree()
    mech = model.mech
    q, *_ = model.states(STATES)
    inverse = model.mass_matrix_inverse(q)
    tested = 0
    for name, frame in reversed(mech.frames.items()):
        if tested == 3 or sum(mech.bodies[i].nv for i in mech.tree.path(frame.body)) < 6:
            continue
        jacobian = model.jacobian(q, link=name)
        mobility = jacobian @ inverse @ np.swapaxes(jacobian, -1, -2)
        if np.linalg.cond(mobility).max() > 1e6:
            continue  # a chain whose six freedoms nearly depend on each other
        close(model.operational_inertia(q, link=name), np.linalg.inv(mobility), 1e-8, core=2)
        tested += 1
    if any(isinstance(body.kind, lw.Floating) for body in mech.bodies):
        assert tested


@pytest.mark.parametrize("seed", range(4))
def test_armature_is_inertia_of_the_coordinates(seed):
    """Rotors add to the diagonal of the mass matrix and to nothing else."""
    mech = lw.mechanisms.random_tree(10, seed)
    rotors = np.concatenate([np.broadcast_to(body.armature, body.nv) for body in mech.bodies])
    assert rotors.any()
    with_rotors, without = Model(mech), Model(_without_rotors(mech))
    q, v, a, _ = with_rotors.states(STATES)
    close(with_rotors.mass_matrix(q), without.mass_matrix(q) + np.diag(rotors), 1e-13, core=2)
    close(with_rotors.inverse_dynamics(q, v, a), without.inverse_dynamics(q, v, a) + rotors * a, 1e-13)
    close(with_rotors.bias_force(q, v), without.bias_force(q, v), 1e-13)
