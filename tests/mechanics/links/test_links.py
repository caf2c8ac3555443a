"""What one link does in each sweep, against plain 6x6 matrices."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.mechanics.links.articulation import Factor, articulate, force_to_parent
from linkwise.mechanics.links.forces import gyroscopic_force, inertial_force, is_massless
from linkwise.mechanics.links.kinematics import (
    angular_velocity_base_to_tip,
    centripetal,
    propagate_acceleration,
    propagate_acceleration_with_biases,
    rigid_acceleration,
    velocity_base_to_tip,
)
from linkwise.mechanics.links.link import JointKinematics, combine
from linkwise.mechanics.links.mobility import IMMOBILE, free_joint, propagate_mobility, respond
from linkwise.mechanics.recursions.tree import build_tree
from linkwise.mechanics.spatial import Force, Motion, RigidInertia, Symmetric3, Vector3
from linkwise.mechanics.spatial.motion import NO_MOTION
from linkwise.mechanics.spatial.three import ZERO

from ..spatial import dense

KINDS = lw.mechanisms.EVERY_KIND
SEEDS = pytest.mark.parametrize("seed", range(8))
every_kind = pytest.mark.parametrize("kind", KINDS)


def close(found, expected, tolerance=1e-11) -> None:
    np.testing.assert_allclose(
        np.asarray(found, dtype=float), expected, rtol=0.0, atol=tolerance * (1.0 + np.abs(expected).max(initial=0.0))
    )


def last_crossing(kind: str, seed: int) -> tuple[JointKinematics, list[float], list[float], np.random.Generator]:
    """The last joint of a random tree of one kind, at random coordinates; with and without armature."""
    mech = lw.mechanisms.random_tree(3, seed, joints=(kind,))
    rng = np.random.default_rng(seed)
    link = build_tree(mech).links[-1]
    q = link.joint.random(rng, ()).tolist()
    return link.joint_kinematics(q), q, rng.normal(size=link.joint.nv).tolist(), rng


def motions(kinematics: JointKinematics) -> np.ndarray:
    """H*, (6, nv)."""
    return np.array([h.flat() for h in kinematics.motion], dtype=float).T


def to_child(kinematics: JointKinematics) -> np.ndarray:
    """X, (6, 6): motions of the parent's frame as motions of the child's."""
    return np.linalg.inv(dense.motion_back(*dense.pose(kinematics.transform)))


# -- kinematics ---------------------------------------------------------------------------------------


@SEEDS
@every_kind
def test_velocities(kind, seed):
    kinematics, q, v, rng = last_crossing(kind, seed)
    parent = rng.normal(size=6)
    expected = to_child(kinematics) @ parent + motions(kinematics) @ v
    close(dense.six(velocity_base_to_tip(kinematics, Motion.of(parent.tolist()), v)), expected)
    close(np.array(angular_velocity_base_to_tip(kinematics, Vector3(*parent[:3].tolist()), q, v).omega), expected[:3])
    close(dense.six(kinematics.relative_motion(v)), motions(kinematics) @ v)
    close(dense.six(combine(kinematics.motion, v)), motions(kinematics) @ v)


@SEEDS
@every_kind
def test_accelerations(kind, seed):
    """With rates of components A and velocities V: A = X A_parent + V x H* v + dH*/dt v; origins see omega x v more."""
    kinematics, q, v, rng = last_crossing(kind, seed)
    parent_v, parent_rate = rng.normal(size=(2, 6))
    x, relative = to_child(kinematics), motions(kinematics) @ v
    velocity = x @ parent_v + relative
    turning = np.array([m.flat() for m in kinematics.link.joint.motion_rate(q, v)], dtype=float).T @ v
    across = np.concatenate(
        [
            np.cross(velocity[:3], relative[:3]),
            np.cross(velocity[:3], relative[3:]) + np.cross(velocity[3:], relative[:3]),
        ]
    )
    expected = seen(x @ parent_rate + across + turning, velocity)
    spin = angular_velocity_base_to_tip(kinematics, Vector3(*parent_v[:3].tolist()), q, v)
    parent = Motion.of(seen(parent_rate, parent_v).tolist())
    close(dense.six(propagate_acceleration(kinematics, spin, parent)), expected)
    close(dense.six(propagate_acceleration_with_biases(kinematics, spin, parent)), expected)


def seen(rate: np.ndarray, velocity: np.ndarray) -> np.ndarray:
    return rate + np.concatenate([np.zeros(3), np.cross(velocity[:3], velocity[3:])])


@SEEDS
def test_accelerations_of_body_points(seed):
    omega, alpha, p = np.random.default_rng(seed).normal(size=(3, 3))
    w, a, at = (Vector3(*x.tolist()) for x in (omega, alpha, p))
    turning = np.cross(omega, np.cross(omega, p))
    close(np.array(centripetal(w) @ at), turning)
    close(np.array(rigid_acceleration(w, a) @ at), np.cross(alpha, p) + turning)


# -- forces -------------------------------------------------------------------------------------------


@SEEDS
def test_inertial_forces(seed):
    rng = np.random.default_rng(seed)
    inertia = dense.random_rigid(rng)
    omega, acceleration = rng.normal(size=3), rng.normal(size=6)
    matrix, w = dense.rigid(inertia), dense.skew(omega)
    gyroscopic = np.concatenate([w @ matrix[:3, :3] @ omega, w @ w @ np.array(inertia.h)])
    close(dense.six(gyroscopic_force(inertia, Vector3(*omega.tolist()))), gyroscopic)
    found = inertial_force(inertia, Vector3(*omega.tolist()), Motion.of(acceleration.tolist()))
    close(dense.six(found), matrix @ acceleration + gyroscopic)
    assert not is_massless(inertia)


def test_massless_links_push_nothing():
    nothing = RigidInertia(0.0, ZERO, Symmetric3(0.0, 0.0, 0.0, 0.0, 0.0, 0.0))
    assert is_massless(nothing)
    assert not any(inertial_force(nothing, Vector3(1.0, 2.0, 3.0), Motion.of([1.0] * 6)).flat())


# -- articulation -------------------------------------------------------------------------------------


@SEEDS
def test_factors(seed):
    rng = np.random.default_rng(seed)
    n = seed % 6 + 1
    root, x = rng.normal(size=(n, n)), rng.normal(size=n)
    matrix = root @ root.T + np.eye(n)
    factor = Factor.of(matrix.tolist())
    close(factor.solve(x.tolist()), np.linalg.solve(matrix, x))
    lower = np.array(factor.lower, dtype=float) + np.eye(n)
    close(lower @ np.diag(1.0 / np.array(factor.reciprocal)) @ lower.T, matrix)
    close(factor.forward(x.tolist()), np.linalg.solve(lower, x))


@SEEDS
def test_factors_of_semidefinite_matrices(seed):
    """A row that depends on those before it, or is zero but for round-off, gets the number zero; the equations hold."""
    rng = np.random.default_rng(seed)
    rank, n = seed % 4 + 1, 9
    rows = np.vstack([rng.normal(size=(rank, 6)), rng.normal(size=(n - rank - 2, rank)) @ np.eye(rank, 6)])
    rows[rank:] = rows[rank:, :rank] @ rows[:rank]  # combinations of the first
    rows = np.vstack([np.zeros((1, 6)), rows, 1e-17 * rng.normal(size=(1, 6))])
    rows *= 10.0 ** rng.uniform(-3, 3, size=(n, 1))
    matrix = rows @ rows.T
    x = matrix @ rng.normal(size=n)
    solved = np.array(Factor.of(matrix.tolist(), semidefinite=True).solve(x.tolist()))
    close(matrix @ solved / np.abs(x).max(), x / np.abs(x).max(), 1e-9)
    np.testing.assert_array_equal(solved[[0, *range(rank + 1, n)]], 0.0)


@SEEDS
@every_kind
def test_eliminating_a_joint(kind, seed):
    kinematics, _, _, rng = last_crossing(kind, seed)
    inertia = dense.random_articulated(rng)
    p, h = dense.articulated(inertia), motions(kinematics)
    rotors = np.diag(np.array(kinematics.link.armature, dtype=float))
    d = h.T @ p @ h + rotors
    gain = p @ h @ np.linalg.inv(d)
    joint = articulate(kinematics, inertia)
    close(joint.d, d)
    close(np.array([g.flat() for g in joint.gain], dtype=float).T, gain)
    close(dense.articulated(joint.remaining), p - gain @ d @ gain.T)
    tau, force = rng.normal(size=len(d)), rng.normal(size=6)
    innovation = tau - h.T @ force
    close(joint.innovation(tau.tolist(), Force.of(force.tolist())), innovation)
    close(dense.six(joint.absorb(Force.of(force.tolist()), innovation.tolist())), force + gain @ innovation)
    close(joint.factor.solve(innovation.tolist()), np.linalg.solve(d, innovation))


@SEEDS
@every_kind
def test_the_force_handed_to_the_parent(kind, seed):
    """phi (z + P a), with a all that carrying an acceleration of zero across the joint gives."""
    kinematics, q, v, rng = last_crossing(kind, seed)
    spin = angular_velocity_base_to_tip(kinematics, Vector3(*rng.normal(size=3).tolist()), q, v)
    inertia, force = dense.random_articulated(rng), rng.normal(size=6)
    bias = dense.six(propagate_acceleration(kinematics, spin, NO_MOTION))
    expected = to_child(kinematics).T @ (force + dense.articulated(inertia) @ bias)
    close(dense.six(force_to_parent(kinematics, spin, inertia, Force.of(force.tolist()))), expected)
    without = to_child(kinematics).T @ dense.articulated(inertia) @ bias
    close(dense.six(force_to_parent(kinematics, spin, inertia, None)), without)


@SEEDS
@every_kind
def test_mobilities(kind, seed):
    kinematics, _, _, rng = last_crossing(kind, seed)
    root, force = rng.normal(size=(6, 6)), rng.normal(size=6)
    mobility = root @ root.T
    rows = tuple(map(tuple, mobility.tolist()))
    x, h = to_child(kinematics), motions(kinematics)
    close(propagate_mobility(kinematics.transform, rows), x @ mobility @ x.T)
    close(dense.six(respond(rows, Force.of(force.tolist()))), mobility @ force)
    joint = articulate(kinematics, dense.random_articulated(rng))
    gain = np.array([g.flat() for g in joint.gain], dtype=float).T
    passing, own = np.eye(6) - h @ gain.T, h @ np.linalg.inv(np.array(joint.d, dtype=float)) @ h.T
    close(free_joint(joint, rows), passing @ mobility @ passing.T + own)
    close(free_joint(joint, IMMOBILE), own)
