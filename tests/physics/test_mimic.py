"""Joints that follow others: the same as the free mechanism with its coordinates tied, ``v_free = T v``."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from tests.physics.trees import Model, close

STATES = 4


def tied_and_free(seed: int) -> tuple[lw.Mechanism, lw.Mechanism, np.ndarray, np.ndarray]:
    """A random tree in which some joints mimic others, the same without, and T, offset: q_free = T q + offset."""
    rng = np.random.default_rng(seed)
    tree = lw.mechanisms.random_tree(int(rng.integers(4, 9)), seed, joints=("revolute", "prismatic", "helical"))
    mimicked_joints = [body.joint for body in tree.bodies if rng.random() < 0.5] or [tree.joint_names[-1]]
    rules = {
        joint: lw.Mimic(
            mimicked_joints[rng.integers(len(mimicked_joints))], rng.uniform(-2.0, 2.0), rng.uniform(-1.0, 1.0)
        )
        for joint in tree.joint_names
        if joint not in mimicked_joints
    }
    builder = lw.Builder()
    for body in tree.bodies:
        parent = "ground" if body.parent < 0 else tree.bodies[body.parent].link
        builder.link(body.link, body.mass, body.com, body.inertia)
        pose = (body.rotation, body.position)
        builder.joint(
            body.joint, body.kind, parent, body.link, pose, armature=body.armature, mimic=rules.get(body.joint)
        )
    tied = builder.build("tied")
    tie, offset = np.zeros((tree.nv, tied.nv)), np.zeros(tree.nv)
    for i, joint in enumerate(tree.joint_names):
        rule = rules.get(joint, lw.Mimic(joint))
        tie[i, tied.v_index(rule.joint)] = rule.ratio
        offset[i] = rule.offset
    return tied, tree, tie, offset


@pytest.mark.quick_one_in(2)
@pytest.mark.parametrize("seed", range(12))
def test_against_the_projected_mechanism(seed):
    tied_mech, free_mech, tie, offset = tied_and_free(seed)
    assert tied_mech.nv < free_mech.nv
    assert tied_mech.n_links == free_mech.n_links
    tied, free = Model(tied_mech), Model(free_mech)
    q, v, a, wrenches = tied.states(STATES)
    q_free, v_free, a_free = q @ tie.T + offset, v @ tie.T, a @ tie.T

    mass = tie.T @ free.mass_matrix(q_free) @ tie
    bias = free.bias_force(q_free, v_free) @ tie
    close(tied.mass_matrix(q), mass, 1e-12, core=2)
    close(tied.bias_force(q, v), bias, 1e-12)
    close(tied.gravity_force(q), free.gravity_force(q_free) @ tie, 1e-12)
    close(tied.coriolis_matrix(q, v), tie.T @ free.coriolis_matrix(q_free, v_free) @ tie, 1e-12, core=2)
    close(tied.inverse_dynamics(q, v, a), free.inverse_dynamics(q_free, v_free, a_free) @ tie, 1e-12)
    pushed = free.inverse_dynamics_with_wrenches(q_free, v_free, a_free, wrenches) @ tie
    close(tied.inverse_dynamics_with_wrenches(q, v, a, wrenches), pushed, 1e-12)

    close(tied.mass_matrix_inverse(q), np.linalg.inv(mass), 1e-9, core=2)
    close(tied.forward_dynamics(q, v, a), np.linalg.solve(mass, (a - bias)[..., None])[..., 0], 1e-9)
    tau = tied.inverse_dynamics_with_wrenches(q, v, a, wrenches)
    close(tied.forward_dynamics_with_wrenches(q, v, tau, wrenches), a, 1e-9)

    close(tied.link_poses(q), free.link_poses(q_free), 1e-13, core=3)
    close(tied.link_velocities(q, v), free.link_velocities(q_free, v_free), 1e-13, core=2)
    close(tied.link_accelerations(q, v, a), free.link_accelerations(q_free, v_free, a_free), 1e-12, core=2)
    close(tied.kinetic_energy(q, v), free.kinetic_energy(q_free, v_free), 1e-13, core=0)
    close(tied.potential_energy(q), free.potential_energy(q_free), 1e-12, core=0)
    close(tied.momentum(q, v), free.momentum(q_free, v_free), 1e-12)
    close(tied.momentum_matrix(q), free.momentum_matrix(q_free) @ tie, 1e-12, core=2)
    close(tied.centroidal_momentum_matrix(q), free.centroidal_momentum_matrix(q_free) @ tie, 1e-12, core=2)
    rate = free.centroidal_momentum_matrix_rate(q_free, v_free) @ tie
    close(tied.centroidal_momentum_matrix_rate(q, v), rate, 1e-12, core=2)
    close(
        tied.static_forces_with_wrenches(q, wrenches), free.static_forces_with_wrenches(q_free, wrenches) @ tie, 1e-12
    )
    for link in tied_mech.link_names[-2:]:
        jacobian = free.jacobian(q_free, link=link) @ tie
        close(tied.jacobian(q, link=link), jacobian, 1e-12, core=2)
        mobility = jacobian @ np.linalg.inv(mass) @ np.swapaxes(jacobian, -1, -2)
        direction = np.random.default_rng(seed).normal(size=6)
        found = tied.effective_inertia(q, direction, link=link)
        close(1.0 / found, np.einsum("i,sij,j->s", direction, mobility, direction), 1e-9, core=0)
        for frame in ("link", "world", "world_aligned"):
            of = {"link": link, "frame": frame}
            expected = free.frame_acceleration(q_free, v_free, a_free, **of)
            close(tied.frame_acceleration(q, v, a, **of), expected, 1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_machine_code_of_tied_mechanisms(seed):
    mech, *_ = tied_and_free(seed)
    q, v, a, _ = Model(mech).states(STATES)
    close(lw.forward_dynamics(mech, q, v, lw.inverse_dynamics(mech, q, v, a)), a, 1e-9)
    close(lw.mass_matrix(mech, q) @ lw.mass_matrix_inverse(mech, q), np.tile(np.eye(mech.nv), (STATES, 1, 1)), 1e-9, 2)


def test_operational_inertia_with_a_tied_joint():
    """Eight joints in a row, one of them tied to another: seven freedoms move the tip."""
    builder = lw.Builder()
    chain = lw.mechanisms.chain(8)
    for i, body in enumerate(chain.bodies):
        parent = "ground" if i == 0 else chain.link_names[i - 1]
        builder.link(body.link, body.mass, body.com, body.inertia)
        mimic = lw.Mimic("joint2", 0.5, 0.2) if i == 4 else None
        builder.joint(body.joint, body.kind, parent, body.link, (body.rotation, body.position), mimic=mimic)
    model = Model(builder.build())
    q, *_ = model.states(STATES)
    jacobian = model.jacobian(q, link="link8")
    mobility = jacobian @ model.mass_matrix_inverse(q) @ np.swapaxes(jacobian, -1, -2)
    close(model.operational_inertia(q, link="link8"), np.linalg.inv(mobility), 1e-8, core=2)
