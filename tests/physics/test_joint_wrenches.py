"""The wrenches that joints transmit, against Newton's laws link by link, closed forms, Pinocchio and MuJoCo."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise import operators as op
from tests.physics.trees import close, skew, tree_of

small_trees = pytest.mark.parametrize("case", [(2, 0, False), (3, 1, True), (5, 0, True), (8, 1, False)], ids=str)


@small_trees
def test_dense_operators_give_the_same(case):
    """f = phi (M alpha + b - wrenches), and H f = T - R a, with alpha and omega from the kinematics alone."""
    model = tree_of(*case)
    mech = model.mech
    q, v, a, wrenches = model.states(2)
    found = model.joint_wrenches_with_wrenches(q, v, a, wrenches)
    velocities, rates = model.link_velocities(q, v), model.link_accelerations(q, v, a)
    turns = model.link_poses(q)[..., :3, :3]
    omega = velocities[..., :3]
    alpha = rates.copy()
    alpha[..., 3:] += np.cross(omega, velocities[..., 3:]) - np.einsum("...ji,j->...i", turns, mech.gravity)
    coms, masses = mech.parameters.coms, mech.parameters.masses
    about_origin = mech.parameters.inertias + masses[:, None, None] * skew(coms) @ np.swapaxes(skew(coms), -1, -2)
    gyroscopic = np.concatenate(
        [
            np.cross(omega, np.einsum("ijk,...ik->...ij", about_origin, omega)),
            masses[:, None] * np.cross(omega, np.cross(omega, coms)),
        ],
        axis=-1,
    )
    armature = np.concatenate([body.armature for body in mech.bodies])
    tau = model.inverse_dynamics_with_wrenches(q, v, a, wrenches)
    for k in range(len(q)):
        phi, mass, maps = (op.dense(part, mech, q[k]) for part in (op.phi, op.M, op.H))
        on_links = mass @ alpha[k].ravel() + (gyroscopic - wrenches)[k].ravel()
        close(found[k].ravel(), phi @ on_links, 1e-12)
        close(maps @ found[k].ravel(), tau[k] - armature * a[k], 1e-12)


@pytest.mark.quick_one_in(2)
@pytest.mark.parametrize("floating", [False, True], ids=["fixed", "floating"])
def test_agrees_with_pinocchio(floating):
    pytest.importorskip("pinocchio")
    from tests.peers.pinocchio_peer import ANGULAR_FIRST, mirrored, pin

    mech = lw.mechanisms.random_tree(6, 5, joints=("revolute", "prismatic", "spherical"), floating_base=floating)
    mech = mech.parameters.with_armature({mech.joint_names[-1]: 0.3})
    peer = mirrored(mech)
    rng = np.random.default_rng(1)
    q, v = lw.random_state(mech, rng)
    a, wrenches = rng.normal(size=mech.nv), rng.normal(size=(mech.n_links, 6))
    external = pin.StdVec_Force()
    external.extend([pin.Force(np.zeros(6))] * peer.model.njoints)
    for joint, wrench in zip(peer.joints, wrenches, strict=True):
        external[joint] = pin.Force(wrench[ANGULAR_FIRST])
    tie = peer.full_from_own
    pin.rnea(peer.model, peer.data, peer.configuration(q), tie @ v, tie @ a, external)
    expected = np.array([peer.data.f[joint].vector[ANGULAR_FIRST] for joint in peer.joints])
    close(lw.joint_wrenches(mech, q, v, a, wrenches), expected, 1e-12, core=2)


def test_agrees_with_mujoco():
    """cfrc_int has world axes and acts at the centre of mass of the whole tree of a body."""
    pytest.importorskip("mujoco")
    from tests.peers.test_mujoco import Peer, mujoco

    mech = lw.mechanisms.random_tree(6, 2, joints=("revolute", "prismatic", "spherical"), floating_base=True)
    peer = Peer(mech)
    rng = np.random.default_rng(2)
    q, v = lw.random_state(mech, rng)
    tau = rng.normal(size=mech.nv)
    peer.set(q, v, tau)
    mujoco.mj_rnePostConstraint(peer.model, peer.data)
    found = lw.joint_wrenches(mech, q, v, lw.forward_dynamics(mech, q, v, tau))
    for link, wrench, pose in zip(mech.link_names, found, lw.link_poses(mech, q), strict=True):
        body = peer.model.body(link)
        moment, force = pose[:3, :3] @ wrench[:3], pose[:3, :3] @ wrench[3:]
        moment = moment + np.cross(pose[:3, 3] - peer.data.subtree_com[body.rootid[0]], force)
        close(np.concatenate([moment, force]), peer.data.cfrc_int[body.id], 1e-9)


def test_a_pendulum_pulls_at_its_hinge():
    """m (l v^2 + g cos q) along the rod, m (l a + g sin q) across it, and the moment of that about the hinge."""
    mass, length, q, v, a = 2.0, 0.5, 0.7, 3.0, -1.2
    mech = (
        lw.Builder()
        .link("rod", mass, com=(0, 0, -length))
        .joint("hinge", lw.Revolute((0, 1, 0)), "ground", "rod", armature=0.1)
        .build()
    )
    along, across = mass * (length * v**2 + 9.81 * np.cos(q)), mass * (length * a + 9.81 * np.sin(q))
    expected = [0.0, length * across, 0.0, -across, 0.0, along]
    close(lw.joint_wrenches(mech, [q], [v], [a])[0], expected, 1e-14)
    assert lw.inverse_dynamics(mech, [q], [v], [a]) == pytest.approx(length * across + 0.1 * a)


def test_a_follower_transmits_what_it_would_alone():
    """Joints that mimic others have no coordinate of their own, but a link and a wrench."""

    def arm(mimic):
        builder = lw.Builder()
        for k in range(3):
            builder.link(f"link{k}", 1.0 + k, (0.1, 0.2, -0.1), (0.02, 0.03, 0.04))
            parent = f"link{k - 1}" if k else "ground"
            rule = mimic if k == 2 else None
            kind = lw.Prismatic((1, 1, 0)) if k == 2 else lw.Revolute((0, k, 1))
            builder.joint(f"joint{k}", kind, parent, f"link{k}", (None, (0.3, 0, 0.1)), mimic=rule)
        return builder.build()

    tied, free = arm(lw.Mimic("joint0", -1.5, 0.4)), arm(None)
    rng = np.random.default_rng(3)
    q, v, a, wrenches = rng.normal(size=2), rng.normal(size=2), rng.normal(size=2), rng.normal(size=(3, 6))
    whole = [[*q, -1.5 * q[0] + 0.4], [*v, -1.5 * v[0]], [*a, -1.5 * a[0]]]
    expected = lw.joint_wrenches(free, *whole, wrenches)
    close(lw.joint_wrenches(tied, q, v, a, wrenches), expected, 1e-13, core=2)


def test_a_free_body_needs_nothing_of_its_joint():
    """Without joint forces, the wrench onto a freely moving base is zero: nobody holds it."""
    mech = lw.mechanisms.random_tree(3, 4, joints=("revolute",), floating_base=True)
    rng = np.random.default_rng(4)
    q, v = lw.random_state(mech, rng)
    tau = np.zeros(mech.nv)
    tau[6:] = rng.normal(size=mech.nv - 6)
    found = lw.joint_wrenches(mech, q, v, lw.forward_dynamics(mech, q, v, tau))
    assert np.abs(found[0]).max() < 1e-9 * np.abs(found).max()


def test_loops_are_not_ignored():
    """From accelerations, the wrenches are those under the least joint forces that produce them."""
    mech = lw.mechanisms.four_bar()
    q, zero = lw.neutral(mech), np.zeros(mech.nv)
    held = lw.static_forces(mech, q, actuated=["crank_joint"])
    expected = lw.joint_wrenches(mech, q, tau=held)
    np.testing.assert_allclose(
        lw.joint_wrenches(mech, q, zero, zero, actuated=["crank_joint"]), expected, atol=1e-12 * np.abs(expected).max()
    )
    along = [kind @ wrench for kind, wrench in zip(np.eye(6)[[2, 2, 2]], expected, strict=True)]
    np.testing.assert_allclose(along, held, atol=1e-10)
    with pytest.raises(lw.MechanismError, match="give one of them"):
        lw.joint_wrenches(mech, q, zero, zero, tau=held)


def test_reactions_of_loops_go_along_as_wrenches():
    """Then the joints of the spanning tree feel along their freedoms the forces that drive the closed mechanism."""
    mech = lw.mechanisms.four_bar()
    q = lw.constraints.assemble(mech, lw.neutral(mech) + 0.3)
    v = lw.constraints.project(mech, q, np.full(mech.nv, 0.7))[1]
    tau = np.array([0.4, -0.3, 0.2])
    a = lw.forward_dynamics(mech, q, v, tau)
    wrenches = np.zeros((mech.n_links, 6))
    poses = lw.link_poses(mech, q)

    def push(link, place, moment, force):  # in the world, at the point ``place``
        body = mech.frame(link).body
        if body >= 0:
            turn, origin = poses[body][:3, :3], poses[body][:3, 3]
            wrenches[body] += np.r_[turn.T @ (moment + np.cross(place - origin, force)), turn.T @ force]

    for loop, reaction in zip(mech.loops, lw.constraints.loop_reactions(mech, q, v, tau), strict=True):
        at_b = lw.frame_pose(mech, q, loop.link_b)
        turn, place = at_b[:3, :3] @ loop.pose_b[0], at_b[:3, 3] + at_b[:3, :3] @ loop.pose_b[1]
        moment, force = turn @ reaction[:3], turn @ reaction[3:]
        push(loop.link_b, place, moment, force)
        push(loop.link_a, place, -moment, -force)
    found = lw.joint_wrenches(mech.spanning_tree, q, v, a, wrenches)
    close(lw.joint_wrenches(mech, q, v, tau=tau), found, 1e-12)
    along = op.dense(op.H, mech.spanning_tree, q) @ found.ravel()
    np.testing.assert_allclose(along, tau, rtol=0, atol=1e-9 * np.abs(found).max())
