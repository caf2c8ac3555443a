"""spencer2004, Appendix A: identities of the adjoint operators, tree algorithms with joints of several degrees of
freedom, and loop constraints from virtual links."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy.linalg import expm

import linkwise as lw
from linkwise.mechanics.jet import Jet, parts
from linkwise.mechanics.spatial import Force, Motion, Transform, Translation, Vector3, rotation_about

from ..mechanics.spatial.dense import motion_back, pose, skew
from .random_loops import CLOSING, with_loops
from .test_spencer2004_chapter2 import seed


def bracket(x) -> np.ndarray:
    """ad_x as a 6x6 matrix."""
    return np.block([[skew(x[:3]), np.zeros((3, 3))], [skew(x[3:]), skew(x[:3])]])


@seed("A.1", "A.2", "A.3", "A.4", by="library")
def test_derivatives_of_the_adjoint_operators():
    """f = M e^(S q) with S a turn about z: ``motion_into`` is Ad of f^-1, ``force_back`` its dual, ``cross`` is ad."""
    rng = np.random.default_rng(0)
    q, x, y, screw = Jet(0.7, 1.3), rng.normal(size=(2, 6)), rng.normal(size=(2, 6)), np.eye(6)[2]
    fixed = (Translation(Vector3(0.3, -0.2, 0.5)), rotation_about(0, 0.4))
    moving = Transform((*fixed, rotation_about(2, q)))
    still = Transform((*fixed, rotation_about(2, 0.7)))
    jets = [Jet(value, slope) for value, slope in x.T], [Jet(value, slope) for value, slope in y.T]

    def slopes(vector) -> np.ndarray:
        return np.array([parts(value)[1] for value in vector.flat()])

    def into(values) -> np.ndarray:
        return np.array(still.motion_into(Motion.of(list(values))).flat())

    def back(values) -> np.ndarray:
        return np.array(still.force_back(Force.of(list(values))).flat())

    found = slopes(moving.motion_into(Motion.of(jets[0])))
    np.testing.assert_allclose(found, -1.3 * bracket(screw) @ into(x[0]) + into(x[1]), atol=1e-14)  # (A.1)
    found = slopes(moving.force_back(Force.of(jets[0])))
    np.testing.assert_allclose(found, -1.3 * back(bracket(screw).T @ x[0]) + back(x[1]), atol=1e-14)  # (A.2)
    found = slopes(Motion.of(jets[0]).cross(Motion.of(jets[1])))
    np.testing.assert_allclose(found, bracket(x[1]) @ y[0] + bracket(x[0]) @ y[1], atol=1e-14)  # (A.3)
    found = -slopes(Motion.of(jets[0]).cross_force(Force.of(jets[1])))  # V x* F is -ad* F
    np.testing.assert_allclose(found, bracket(x[1]).T @ y[0] + bracket(x[0]).T @ y[1], atol=1e-14)  # (A.4)


@seed("A.1", by="library")
def test_the_exponential_has_the_cube_of_the_norm():
    """Section A.1.3, which (A.1) rests on: a body that moves with a constant twist (w, v) for a second is then at
    e^[w], A v with [w]^2 / |w|^3 in A; printed is |w|^2."""
    free = lw.Builder().link("body", 1.0, (0, 0, 0), (1, 1, 1)).joint("free", lw.Floating(), "ground", "body").build()
    twist = np.array([0.7, -1.1, 0.4, 0.3, -0.2, 0.5])
    w, norm = skew(twist[:3]), np.linalg.norm(twist[:3])
    place = lw.link_poses(free, lw.integrate(free, lw.neutral(free), twist, 1.0))[0]
    exact = expm(np.block([[w, twist[3:, None]], [np.zeros((1, 4))]]))
    np.testing.assert_allclose(place, exact, atol=1e-12)
    rotation = np.eye(3) + w / norm * np.sin(norm) + w @ w / norm**2 * (1 - np.cos(norm))
    np.testing.assert_allclose(rotation, exact[:3, :3], atol=1e-14)

    def moved(power: int) -> np.ndarray:
        return (np.eye(3) + w / norm**2 * (1 - np.cos(norm)) + w @ w / norm**power * (norm - np.sin(norm))) @ twist[3:]

    np.testing.assert_allclose(moved(3), exact[:3, 3], atol=1e-14)
    assert np.abs(moved(2) - exact[:3, 3]).max() > 1e-2  # as printed


@seed("A.2", by="library")
def test_the_dual_adjoint_is_the_transpose_of_the_adjoint():
    """Section A.1.4, which (A.2) rests on: Ad* is [R 0; [p] R, R]* = [R* R*[p]*; 0 R*]; the first is printed with R*
    in its last corner, which the second line, and ``force_into`` as the dual of ``motion_back``, do not have."""
    step = Transform((Translation(Vector3(0.3, -0.2, 0.5)), rotation_about(0, 0.4), rotation_about(2, 1.1)))
    rotation, position = pose(step)
    zero = np.zeros((3, 3))
    adjoint = np.block([[rotation, zero], [skew(position) @ rotation, rotation]])
    units = np.eye(6)
    ours = np.array([step.motion_back(Motion.of(list(unit))).flat() for unit in units]).T
    np.testing.assert_allclose(ours, adjoint, atol=1e-15)
    dual = np.array([step.force_into(Force.of(list(unit))).flat() for unit in units]).T
    second_line = np.block([[rotation.T, rotation.T @ skew(position).T], [zero, rotation.T]])
    np.testing.assert_allclose(dual, second_line, atol=1e-15)
    np.testing.assert_allclose(adjoint.T, second_line, atol=1e-15)
    printed = np.block([[rotation, zero], [skew(position) @ rotation, rotation.T]]).T
    assert np.abs(printed - second_line).max() > 0.1


class Joints:
    """f_{P,i} as Ad of its inverse, S and dS/dt of every joint in link frames, as the printed algorithms take them."""

    def __init__(self, mech, q, v):
        self.mech, self.v, self.into, self.s, self.s_rate, self.inertia = mech, v, [], [], [], []
        for body in mech.bodies:
            own, rate = q[mech.q_index(body.joint)].tolist(), v[mech.v_index(body.joint)].tolist()
            axes = np.array(body.kind.alignment)
            turn, shift = pose(body.kind.transform(own))
            rotation = body.rotation @ axes @ turn @ axes.T
            position = body.rotation @ axes @ shift + body.position
            self.into.append(np.linalg.inv(motion_back(rotation, position)))
            to_link = np.kron(np.eye(2), axes)
            self.s.append(to_link @ np.array([m.flat() for m in body.kind.motion(own)], dtype=float).T)
            self.s_rate.append(to_link @ np.array([m.flat() for m in body.kind.motion_rate(own, rate)], dtype=float).T)
            com = skew(body.com)
            self.inertia.append(
                np.block(
                    [
                        [body.inertia - body.mass * com @ com, body.mass * com],
                        [-body.mass * com, body.mass * np.eye(3)],
                    ]
                )
            )

    def own(self, vector, i) -> np.ndarray:
        return vector[self.mech.v_index(self.mech.bodies[i].joint)]

    def velocities(self):
        """V_i and the part of dV_i/dt that comes with it, dS/dt v - ad_{S v} V."""
        moving, carried = [], []
        for i, body in enumerate(self.mech.bodies):
            rate = self.own(self.v, i)
            parent = moving[body.parent] if body.parent >= 0 else np.zeros(6)
            moving.append(self.into[i] @ parent + self.s[i] @ rate)
            carried.append(self.s_rate[i] @ rate - bracket(self.s[i] @ rate) @ moving[i])
        return moving, carried


def newton_euler(joints: Joints, a, printed: bool = False) -> np.ndarray:
    """Section A.3, with the ground accelerating against gravity; ``printed``: ad* of dV/dt in place of V."""
    mech = joints.mech
    moving, carried = joints.velocities()
    rates, forces = [], [np.zeros(6) for _ in mech.bodies]
    for i, body in enumerate(mech.bodies):
        parent = rates[body.parent] if body.parent >= 0 else np.concatenate([np.zeros(3), -mech.gravity])
        rates.append(joints.into[i] @ parent + joints.s[i] @ joints.own(a, i) + carried[i])
    tau = np.zeros(mech.nv)
    for i, body in reversed(list(enumerate(mech.bodies))):
        gyroscopic = bracket(rates[i] if printed else moving[i]).T @ joints.inertia[i] @ moving[i]
        forces[i] = forces[i] + joints.inertia[i] @ rates[i] - gyroscopic
        tau[mech.v_index(body.joint)] = joints.s[i].T @ forces[i]
        if body.parent >= 0:
            forces[body.parent] = forces[body.parent] + joints.into[i].T @ forces[i]
    return tau


def tree(seed: int = 11) -> lw.Mechanism:
    """A random tree with joints of up to six degrees of freedom and no armatures."""
    mech = lw.mechanisms.random_tree(7, seed)
    return dataclasses.replace(
        mech, bodies=tuple(dataclasses.replace(b, armature=(0.0,) * b.kind.nv) for b in mech.bodies)
    )


@seed("Section A.3", "Section A.2.7", "A.5a", "A.5b", "A.6", "A.7", by="library")
def test_newton_euler_with_joints_of_several_freedoms():
    mech = tree()
    assert any(body.kind.nv > 1 for body in mech.bodies)
    q, v = lw.random_state(mech, np.random.default_rng(0))
    a = np.random.default_rng(1).normal(size=mech.nv)
    joints = Joints(mech, q, v)
    tau = newton_euler(joints, a)
    np.testing.assert_allclose(lw.inverse_dynamics(mech, q, v, a), tau, atol=1e-11 * np.abs(tau).max())
    assert np.abs(newton_euler(joints, a, printed=True) - tau).max() > 1e-2 * np.abs(tau).max()  # the printed dot
    zero = newton_euler(joints, 0.0 * a)
    columns = np.array([newton_euler(joints, unit) - zero for unit in np.eye(mech.nv)]).T
    np.testing.assert_allclose(lw.mass_matrix(mech, q), columns, atol=1e-11 * np.abs(columns).max())
    np.testing.assert_allclose(columns @ a - -zero, tau, atol=1e-11 * np.abs(tau).max())  # (A.6), F = -zero
    np.testing.assert_allclose(
        lw.forward_dynamics(mech, q, v, tau), np.linalg.solve(columns, tau - zero), atol=1e-8 * np.abs(a).max()
    )


@seed("Section A.2.7", by="library")
def test_a_cylindrical_joint_moves_as_printed():
    kind = lw.Cylindrical((0.0, 0.0, 1.0))
    rotation, position = pose(kind.transform([0.7, 0.2]))
    c, s = np.cos(0.7), np.sin(0.7)
    np.testing.assert_allclose(rotation, [[c, -s, 0], [s, c, 0], [0, 0, 1]], atol=1e-15)
    np.testing.assert_allclose(position, [0.0, 0.0, 0.2])
    np.testing.assert_array_equal(np.array([m.flat() for m in kind.motion([0.7, 0.2])]).T, np.eye(6)[:, [2, 5]])


@seed("Section A.3.4", by="library")
def test_composite_and_articulated_bodies_as_printed():
    mech = tree(5)
    q, v = lw.random_state(mech, np.random.default_rng(0))
    tau = np.random.default_rng(1).normal(size=mech.nv)
    joints = Joints(mech, q, v)
    index = [mech.v_index(body.joint) for body in mech.bodies]
    mass, composite = np.zeros((mech.nv, mech.nv)), [x.copy() for x in joints.inertia]
    for i, body in reversed(list(enumerate(mech.bodies))):
        force, j = composite[i] @ joints.s[i], i
        mass[index[i], index[i]] = joints.s[i].T @ force
        while mech.tree.parents[j] >= 0:
            force, j = joints.into[j].T @ force, mech.tree.parents[j]
            mass[index[j], index[i]] = joints.s[j].T @ force
            mass[index[i], index[j]] = mass[index[j], index[i]].T
        if body.parent >= 0:
            composite[body.parent] += joints.into[i].T @ composite[i] @ joints.into[i]
    np.testing.assert_allclose(lw.mass_matrix(mech, q), mass, atol=1e-11 * np.abs(mass).max())

    moving, carried = joints.velocities()
    articulated = [x.copy() for x in joints.inertia]
    bias = [-bracket(moving[i]).T @ joints.inertia[i] @ moving[i] for i in range(mech.n_links)]
    total = list(bias)
    for i, body in reversed(list(enumerate(mech.bodies))):
        s, inertia = joints.s[i], articulated[i]
        total[i] = inertia @ carried[i] + bias[i]
        gain = inertia @ s @ np.linalg.inv(s.T @ inertia @ s)
        if body.parent >= 0:
            articulated[body.parent] += joints.into[i].T @ (inertia - gain @ s.T @ inertia) @ joints.into[i]
            force = total[i] + gain @ (joints.own(tau, i) - s.T @ total[i])
            bias[body.parent] = bias[body.parent] + joints.into[i].T @ force
    a, rates = np.zeros(mech.nv), []
    for i, body in enumerate(mech.bodies):
        parent = rates[body.parent] if body.parent >= 0 else np.concatenate([np.zeros(3), -mech.gravity])
        s, inertia = joints.s[i], articulated[i]
        given = joints.into[i] @ parent
        a[index[i]] = np.linalg.solve(s.T @ inertia @ s, joints.own(tau, i) - s.T @ (inertia @ given + total[i]))
        rates.append(given + s @ a[index[i]] + carried[i])
    np.testing.assert_allclose(lw.forward_dynamics(mech, q, v, tau), a, atol=1e-9 * np.abs(a).max())


def virtual_loop(kind):
    """A chain closed by ``kind`` (a), and the open chain whose last link is the virtual one, at the cut joint (b)."""
    chain = lw.mechanisms.chain(7)
    rng = np.random.default_rng(2)
    q, _ = lw.random_state(chain, rng)
    virtual = kind.random(rng, ())
    base = np.eye(4)
    base[:3, 3] = (0.3, 0.1, -0.2)
    builder = lw.Builder()
    parent = "ground"
    for body in chain.bodies:
        builder.link(body.link, body.mass, body.com, body.inertia)
        builder.joint(body.joint, body.kind, parent, body.link, (body.rotation, body.position))
        parent = body.link
    builder.link("virtual", 1.0, (0, 0, 0), (1, 1, 1)).joint("virtual", kind, "ground", "virtual", base)
    extended = builder.build("extended")
    full = np.concatenate([q, virtual])
    pose_b = np.linalg.inv(lw.frame_pose(extended, full, "link7")) @ lw.frame_pose(extended, full, "virtual")
    loop = lw.mechanism.Loop(
        "cut", kind, "ground", (base[:3, :3], base[:3, 3]), "link7", (pose_b[:3, :3], pose_b[:3, 3])
    )
    return with_loops(chain, loop), q, extended, full, motion_back(pose_b[:3, :3], pose_b[:3, 3])


def twist_of_the_cut_frame(mech, q, v, to_link7, step: float = 1e-4) -> np.ndarray:
    """[angular; linear] of the frame on link 7 that the loop cuts, in its own axes, by differences of closed poses."""
    cut = np.eye(4)
    cut[:3, :3], shift = to_link7[:3, :3], to_link7[3:, :3] @ to_link7[:3, :3].T
    cut[:3, 3] = shift[2, 1], shift[0, 2], shift[1, 0]

    def at(t: float) -> np.ndarray:
        there = lw.constraints.project(mech, lw.integrate(mech, q, v, t), v)[0]
        return lw.frame_pose(mech, there, "link7") @ cut

    rate = np.linalg.inv(at(0.0)) @ (8 * (at(step) - at(-step)) - (at(2 * step) - at(-2 * step))) / (12 * step)
    return np.array([rate[2, 1], rate[0, 2], rate[1, 0], *rate[:3, 3]])


@seed("A.9", "A.10", "A.11", "A.12", "A.13", "Section A.3.2", "Section A.3.3", by="library")
@pytest.mark.parametrize("kind", [k for k in CLOSING if k.nv], ids=lambda kind: type(kind).__name__)
def test_virtual_links_give_the_same_constraints(kind):
    """(J_i - J_i') v = 0 at the cut; the virtual coordinates eliminated, the rows span those of the closure."""
    mech, q, extended, full, to_link7 = virtual_loop(kind)
    np.testing.assert_allclose(lw.constraints.position_error(mech, q), 0.0, atol=1e-12)
    n = mech.nv
    both = lw.jacobian(extended, full, "virtual") - np.linalg.inv(to_link7) @ lw.jacobian(
        extended, full, "link7"
    )  # (A.9)
    # Split the six rows: a complement of the virtual joint's motion (g) and the motion itself (g_v).
    left, _, _ = np.linalg.svd(both[:, n:])
    mixed = np.random.default_rng(0).normal(size=(6, 6)) @ left.T  # any split with a regular dg_v/dq_v will do
    g, g_v = mixed[kind.nv :] @ both, mixed[: kind.nv] @ both
    eliminated = g[:, :n] - g[:, n:] @ np.linalg.solve(g_v[:, n:], g_v[:, :n])  # (A.12)
    ours = lw.constraints.constraint_jacobian(mech, q)
    assert np.linalg.matrix_rank(ours) == np.linalg.matrix_rank(eliminated) == 6 - kind.nv
    assert np.linalg.matrix_rank(np.vstack([ours, eliminated]), tol=1e-9) == 6 - kind.nv

    # Along a motion that keeps the loop closed, (A.10) and (A.11) hold with the velocity of the virtual joint, which is
    # what the closed mechanism's poses say: the twist of the cut frame on link 7, along the joint's freedoms.
    basis = lw.constraints.null_space(mech, q)
    v = basis @ np.ones(basis.shape[1])
    moving = twist_of_the_cut_frame(mech, q, v, to_link7)
    v_virtual, *_ = np.linalg.lstsq(lw.jacobian(extended, full, "virtual")[:, n:], moving, rcond=None)
    for rows in (g, g_v):
        np.testing.assert_allclose(rows[:, :n] @ v, -rows[:, n:] @ v_virtual, atol=1e-6)
        opening = v + 0.1 * np.random.default_rng(1).normal(size=n)
        assert np.abs(rows[:, :n] @ opening + rows[:, n:] @ v_virtual).max() > 1e-2
    v_virtual = -np.linalg.solve(g_v[:, n:], g_v[:, :n] @ v)  # the same to rounding, for what follows

    rows = np.hstack([basis.T, np.zeros((basis.shape[1], kind.nv))])  # y_q = R_q q^
    inverse = np.linalg.inv(np.vstack([rows, both]))
    np.testing.assert_allclose(inverse[:n, : basis.shape[1]], basis, atol=1e-9)  # (A.13)

    # A.3.3: the bias from body-fixed accelerations at zero joint accelerations, where the sign is that of (2.45).
    whole = np.concatenate([v, v_virtual])
    accelerations = lw.link_accelerations(extended, full, whole, np.zeros(extended.nv))
    rates = accelerations[-1] - np.linalg.inv(to_link7) @ accelerations[-2]
    offset = -(inverse[:n, basis.shape[1] :] @ rates)
    expected = -np.linalg.pinv(ours) @ lw.constraints.constraint_bias(mech, q, v)
    np.testing.assert_allclose(offset, expected, atol=1e-8 * (1.0 + np.abs(expected).max()))
    assert np.abs(-offset - expected).max() > 1e-2  # without the minus, as printed
