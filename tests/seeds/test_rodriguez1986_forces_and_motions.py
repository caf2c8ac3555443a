"""rodriguez1986, Sections 3 to 5: spatial inertia, forces inward, velocities and accelerations outward.

Accelerations are body-fixed (derivatives of components in link axes), gravity is an external force. Forces between the
links are linkwise's and pinocchio's, motions are linkwise's or rates by differences of order eight.
"""

from __future__ import annotations

import numpy as np
import pinocchio
import pytest

import linkwise as lw
from tests.seeds.rodriguez1986 import (
    ARMS,
    Case,
    accelerations,
    bias_accelerations,
    bias_forces,
    biases,
    moving_arm,
    spatial_forces,
    velocities,
)
from tests.seeds.tip_to_base import TipToBase, close, differ, rate, tilde, to_base, to_tip

U = np.eye(3)
O = np.zeros((3, 3))  # noqa: E741
x = np.cross


def joint_forces(case: Case) -> np.ndarray:
    """Row k: [T-; f-], what joint k exerts on link k at joint k, by linkwise and by pinocchio."""
    v, a = to_base(case.u_dot), to_base(case.u_ddot)
    found = case.arm.from_links(lw.joint_wrenches(case.mech, case.q, v, a, case.wrenches))
    close(found[1:], by_pinocchio(case)[1:])
    return found


def by_pinocchio(case: Case) -> np.ndarray:
    """The same, by a library that shares no code."""
    model = pinocchio.Model()
    model.gravity = pinocchio.Motion(np.array(case.mech.gravity), np.zeros(3))
    for i, body in enumerate(case.mech.bodies):
        place = pinocchio.SE3(np.array(body.rotation), np.array(body.position))
        joint = model.addJoint(i, pinocchio.JointModelRevoluteUnaligned(np.array(body.kind.axis)), place, body.joint)
        inertia = pinocchio.Inertia(body.mass, np.array(body.com), np.array(body.inertia))
        model.appendBodyToJoint(joint, inertia, pinocchio.SE3.Identity())
    data = model.createData()
    external = pinocchio.StdVec_Force([pinocchio.Force.Zero()] + [pinocchio.Force(w[3:], w[:3]) for w in case.wrenches])
    pinocchio.rnea(model, data, case.q, to_base(case.u_dot), to_base(case.u_ddot), external)
    return case.arm.from_links([np.concatenate([force.angular, force.linear]) for force in list(data.f)[1:]])


def link_motions(case: Case) -> tuple[np.ndarray, np.ndarray]:
    """V- and lambda- of every link, by linkwise."""
    v, a = to_base(case.u_dot), to_base(case.u_ddot)
    return (
        case.arm.from_links(lw.link_velocities(case.mech, case.q, v)),
        case.arm.from_links(lw.link_accelerations(case.mech, case.q, v, a)),
    )


def centre_velocity(case: Case, k: int) -> np.ndarray:
    """Velocity of the mass centre of link k, by differences of its position, in the arm's axes."""

    def position(t: float) -> np.ndarray:
        world = TipToBase(case.mech, case.at(t).q)
        return world.origin[k] + world.p[k]

    velocity = rate(position)
    return velocity if case.arm.axes == "world" else case.arm.rotation[k].T @ velocity


# Section 3 ------------------------------------------------------------------------------------------------------------


@ARMS
@pytest.mark.seed("rodriguez1986", "3.1", by="library")
@pytest.mark.seed("rodriguez1986", "3.2", by="library")
@pytest.mark.seed("rodriguez1986", "3.3", by="library")
@pytest.mark.seed("rodriguez1986", "3.4", by="library")
def test_spatial_inertia_gives_the_kinetic_energy(which):
    case = moving_arm(*which)
    arm, (V, _) = case.arm, link_motions(case)
    total = 0.0
    for k in case.links:
        m, p, I_centre = arm.mass[k], arm.p[k], arm.inertia[k]
        I_joint = I_centre + m * ((p @ p) * U - np.outer(p, p))  # below (4.9)
        M = np.block([[I_joint, m * tilde(p)], [-m * tilde(p), m * U]])  # (3.1)
        at_centre = np.block([[U, O], [-tilde(p), U]]) @ V[k]  # (3.4)
        close(at_centre[3:], centre_velocity(case, k))
        about_centre = 0.5 * at_centre @ np.block([[I_centre, O], [O, m * U]]) @ at_centre  # (3.3)
        about_joint = 0.5 * V[k] @ M @ V[k]  # (3.2)
        close(about_joint, about_centre)
        close(arm.M[k], M)
        total += about_joint
    close(total, lw.kinetic_energy(case.mech, case.q, to_base(case.u_dot)))


@pytest.mark.seed("rodriguez1986", "3.5", by="library")
@pytest.mark.seed("rodriguez1986", "3.6", by="library")
@pytest.mark.parametrize("which", [(6, 1, "world"), (5, 2, "world", "R", False, True)], ids=str)
def test_transition_matrix(which):
    """L(k, m) leads from joint k to joint m; the print has it the other way round."""
    case = moving_arm(*which)
    arm, joints, (V, _) = case.arm, range(case.arm.n + 1), link_motions(case)

    def phi(k: int, m: int, sign: float = 1.0) -> np.ndarray:
        return np.block([[U, sign * tilde(arm.origin[m] - arm.origin[k])], [O, U]])  # (3.5)

    for k in case.links:
        # The point of link k at joint k - 1 moves with link k: its velocity, by differences of the joint's position.
        speed = rate(lambda t, k=k: case.at(t).arm.origin[k - 1])
        moved = np.concatenate([V[k, :3], speed])
        close(phi(k, k - 1).T @ V[k], moved)
        differ(phi(k, k - 1, sign=-1.0).T @ V[k], moved)  # as printed
        close(phi(k, k), np.eye(6))
        for m in joints:
            close(arm.phi(k, m), phi(k, m))
            close(np.linalg.inv(phi(k, m)), phi(m, k))
            for i in joints:
                close(phi(k, i) @ phi(i, m), phi(k, m))  # (3.6)
    in_link_axes = type(arm)(case.mech, case.q, "link")  # the change of axes keeps all three properties
    close(in_link_axes.phi(5, 2) @ in_link_axes.phi(2, 4), in_link_axes.phi(5, 4))
    close(np.linalg.inv(in_link_axes.phi(5, 2)), in_link_axes.phi(2, 5))


# Section 4 ------------------------------------------------------------------------------------------------------------


@ARMS
@pytest.mark.seed("rodriguez1986", "4.5", by="library")
@pytest.mark.seed("rodriguez1986", "4.6", by="library")
@pytest.mark.seed("rodriguez1986", "4.7", by="library")
@pytest.mark.seed("rodriguez1986", "4.8", by="library")
@pytest.mark.seed("rodriguez1986", "4.9", by="library")
@pytest.mark.seed("rodriguez1986", "4.10", by="library")
@pytest.mark.seed("rodriguez1986", "4.11", by="library")
@pytest.mark.seed("rodriguez1986", "4.12", by="library")
def test_equations_of_motion_of_one_link(which):
    """Newton and Euler for each link alone, with linkwise's joint wrenches.

    Printed (4.8) and (4.10) lose the dot of omega; printed (4.10) and (4.11) have the joint's velocity where the mass
    centre's belongs.
    """
    case = moving_arm(*which)
    arm, forces = case.arm, joint_forces(case)
    forces[0] = 0.0
    V, acceleration = link_motions(case)
    for k in case.links:
        m, p, I_c, L, rot = arm.mass[k], arm.p[k], arm.inertia[k], arm.l(k, k - 1), arm.rot(k, k - 1)
        I_k = I_c + m * ((p @ p) * U - np.outer(p, p))
        w, w_dot, v_joint, v_joint_dot = V[k, :3], acceleration[k, :3], V[k, 3:], acceleration[k, 3:]
        T, f = case.T[k], case.f[k]
        T_minus, f_minus = forces[k, :3], forces[k, 3:]
        T_plus, f_plus = -rot @ forces[k - 1, :3], -rot @ forces[k - 1, 3:]  # on link k at joint k-1: (4.12)

        v = v_joint + x(w, p)  # of the mass centre
        v_dot = v_joint_dot + x(w_dot, p)  # (4.8), of the components in link axes
        close(v_dot, component_rate(case, k))
        differ(v_joint_dot + x(w, p), v_dot)  # as printed

        about_centre = I_c @ w_dot + x(w, I_c @ w)
        close(about_centre, T_minus + T_plus + T + x(L - p, f_plus) - x(p, f_minus))  # (4.5)
        close(f_minus, m * (v_dot + x(w, v)) - f_plus - f)  # (4.6)
        close(about_centre + m * x(p, v_dot + x(w, v)), T_minus + T_plus + x(L, f_plus) + T + x(p, f))  # (4.7)
        moment_bias = x(w, I_k @ w) + m * x(p, x(w, v_joint)) - T - x(p, f)
        close(T_minus, -T_plus - x(L, f_plus) + I_k @ w_dot + m * x(p, v_joint_dot) + moment_bias)  # (4.9)

        inertial = -f_plus + m * x(w_dot, p) + m * v_joint_dot - f
        close(f_minus, inertial + m * x(w, v))  # (4.10)
        differ(f_minus, inertial + m * x(w, v_joint))  # as printed: velocity
        undotted = -f_plus + m * x(w, p) + m * v_joint_dot + m * x(w, v) - f
        differ(f_minus, undotted)  # as printed: dot

        phi, M = np.block([[U, tilde(L)], [O, U]]), np.block([[I_k, m * tilde(p)], [-m * tilde(p), m * U]])
        before = phi @ -np.concatenate([T_plus, f_plus]) + M @ acceleration[k]
        close(forces[k], before + np.concatenate([moment_bias, m * x(w, v) - f]))  # (4.11)
        differ(forces[k], before + np.concatenate([moment_bias, m * x(w, v_joint) - f]))  # as printed

        # (4.12): the balance of link k alone says what acts on it at joint k-1: minus what acts on link k-1 there.
        balance = M @ acceleration[k] + np.concatenate([moment_bias, m * x(w, v) - f]) - forces[k]
        close(np.linalg.solve(phi, balance), -np.concatenate([rot @ forces[k - 1, :3], rot @ forces[k - 1, 3:]]))


def component_rate(case: Case, k: int) -> np.ndarray:
    """d/dt of the components in link axes of the mass centre's velocity, by differences; then in the arm's axes."""

    def components(t: float) -> np.ndarray:
        later = case.at(t)
        v = lw.link_velocities(later.mech, later.q, to_base(later.u_dot))[case.arm.n - k]
        return v[3:] + x(v[:3], case.mech.bodies[case.arm.n - k].com)

    return case.arm.rotation[k] @ rate(components) if case.arm.axes == "world" else rate(components)


@ARMS
@pytest.mark.seed("rodriguez1986", "4.1", by="library")
@pytest.mark.seed("rodriguez1986", "4.2", by="library")
@pytest.mark.seed("rodriguez1986", "4.3", by="library")
@pytest.mark.seed("rodriguez1986", "4.4", by="library")
def test_inward_recursion_gives_the_forces_between_links(which):
    """The force row of the bias has the mass centre's velocity; with the joint's, as printed, the forces are wrong."""
    case = moving_arm(*which)
    V, acceleration = link_motions(case)
    expected = joint_forces(case)
    xi = bias_forces(case.arm, V, case.T, case.f)
    close(spatial_forces(case.arm, acceleration, xi)[1:], expected[1:])
    for k in case.links:  # (4.4) as printed
        xi[k, 3:] = case.arm.mass[k] * x(V[k, :3], V[k, 3:]) - case.f[k]
    differ(spatial_forces(case.arm, acceleration, xi)[1:], expected[1:])


# Section 5 ------------------------------------------------------------------------------------------------------------


@ARMS
@pytest.mark.seed("rodriguez1986", "5.1", by="library")
@pytest.mark.seed("rodriguez1986", "5.2", by="library")
@pytest.mark.seed("rodriguez1986", "5.3", by="library")
def test_outward_recursion_gives_the_velocities(which):
    case = moving_arm(*which)
    V_minus, V_plus = velocities(case.arm, case.u_dot)
    close(V_minus[1:], link_motions(case)[0][1:])
    differ(velocities(case.arm, to_tip(case.q))[0][1:], V_minus[1:])  # (5.2) as printed, without the dot
    n = case.arm.n
    close(V_minus[n], case.arm.H[n][0] * case.u_dot[n])  # the base does not move
    close(V_plus[0, 3:], tip_velocity(case))


def tip_velocity(case: Case) -> np.ndarray:
    velocity = rate(lambda t: case.at(t).arm.origin[0])
    return velocity if case.arm.axes == "world" else case.arm.rotation[1].T @ velocity


@ARMS
@pytest.mark.seed("rodriguez1986", "5.4", by="library")
@pytest.mark.seed("rodriguez1986", "5.5", by="library")
@pytest.mark.seed("rodriguez1986", "5.6", by="library")
def test_outward_recursion_gives_the_accelerations(which):
    """Body-fixed accelerations: with the bias of inertial ones, [omega x h u_dot; 0], the recursion is wrong."""
    case = moving_arm(*which)
    _, V_plus = velocities(case.arm, case.u_dot)
    eta = bias_accelerations(case.arm, V_plus, case.u_dot)
    expected = link_motions(case)[1]
    close(accelerations(case.arm, case.u_ddot, eta)[0][1:], expected[1:])
    if case.arm.n > 1:  # the first joint of an arm does not move
        eta[:, 3:] = 0.0
        differ(accelerations(case.arm, case.u_ddot, eta)[0][1:], expected[1:])


@pytest.mark.seed("rodriguez1986", "5.7", by="library")
@pytest.mark.seed("rodriguez1986", "5.8", by="library")
@pytest.mark.seed("rodriguez1986", "5.9", by="library")
@pytest.mark.seed("rodriguez1986", "5.10", by="library")
@pytest.mark.seed("rodriguez1986", "5.11", by="library")
@pytest.mark.seed("rodriguez1986", "5.12", by="library")
@pytest.mark.seed("rodriguez1986", "5.13", by="library")
@pytest.mark.seed("rodriguez1986", "5.14", by="library")
@pytest.mark.seed("rodriguez1986", "5.15", by="library")
@pytest.mark.seed("rodriguez1986", "5.16", by="library")
@pytest.mark.parametrize("which", [(6, 1, "world"), (5, 2, "world")], ids=str)
def test_motion_across_links_and_joints(which):
    """Every step of the proof against linkwise's poses and rates by differences.

    Printed (5.13) loses the dot of omega, printed (5.14) has one dot too many on the last u, and (5.12) is garbled: it
    is the rate of (5.8) in the inertial frame.
    """
    case = moving_arm(*which)
    arm, n = case.arm, case.arm.n
    poses = lw.link_poses(case.mech, case.q)[::-1]
    w, v = velocities_of_links(case)
    w_dot = rate(lambda t: velocities_of_links(case.at(t))[0])  # the same in both frames
    R_dot = rate(lambda t: case.at(t).arm.origin)  # inertial velocity of joints 0..n
    R_ddot = rate(lambda t: rate(lambda s: case.at(t + s).arm.origin, 2e-2), 2e-2)
    R = np.vstack([arm.origin, np.zeros(3)])  # the ground is link n + 1
    for k in case.links:
        L = arm.l(k, k - 1)
        close(R[k], poses[k - 1][:3, 3])
        close(R[k - 1], R[k] + L)  # (5.7), with L fixed in link k:
        close(rate(lambda t, k=k: case.at(t).arm.rotation[k].T @ case.at(t).arm.l(k, k - 1)), np.zeros(3))
        close(R_dot[k - 1], R_dot[k] + x(w[k], L))  # (5.8)
        both = np.block([[U, O], [-tilde(L), U]]) @ np.concatenate([w[k], R_dot[k]])
        close(both, np.concatenate([w[k], R_dot[k - 1]]))  # (5.9)
        h, inner, inner_dot = arm.h[k], w[k + 1], w_dot[k + 1]
        close(w[k], inner + h * case.u_dot[k])  # (5.10)
        close(v[k], v[k + 1] + x(inner, R[k] - R[k + 1]))  # (5.11): joint k as a point of link k and of link k+1
        # Body-fixed rates: inertial ones minus omega x v, of link k or of link k+1 at the same point.
        v_dot_minus, v_dot_plus = R_ddot[k] - x(w[k], R_dot[k]), R_ddot[k] - x(inner, R_dot[k])
        v_dot_outer = R_ddot[k - 1] - x(w[k], R_dot[k - 1])
        close(np.concatenate([w_dot[k], v_dot_minus]), link_motions(case)[1][k], 1e-9)  # linkwise's accelerations
        close(v_dot_minus, component_rate_of_joint(case, k, k))
        close(v_dot_outer, component_rate_of_joint(case, k, k - 1))
        inner_rate = component_rate_of_joint(case, k + 1, k) if k < n else np.zeros(3)
        close(v_dot_plus, inner_rate)
        left = component_rate_of_joint(case, k, k - 1) + x(w[k], R_dot[k - 1])
        right = component_rate_of_joint(case, k, k) + x(w[k], R_dot[k]) + x(w_dot[k], L) + x(w[k], x(w[k], L))
        close(left, right)  # (5.12)
        close(v_dot_outer, v_dot_minus + x(w_dot[k], L))  # (5.13)
        differ(v_dot_outer, v_dot_minus + x(w[k], L))  # as printed
        close(w_dot[k], inner_dot + h * case.u_ddot[k] + x(inner, h * case.u_dot[k]))  # (5.14)
        if k < n:
            doubled = inner_dot + h * case.u_ddot[k] + x(inner, h * case.u_ddot[k])
            differ(w_dot[k], doubled)  # as printed
        close(component_rate_of_joint(case, k, k) + x(w[k], R_dot[k]), inner_rate + x(inner, R_dot[k]))  # (5.15)
        close(v_dot_minus, v_dot_plus + x(R_dot[k], h * case.u_dot[k]))  # (5.16)


def velocities_of_links(case: Case) -> tuple[np.ndarray, np.ndarray]:
    """omega and v of links 1..n and of the ground, n + 1, in world axes; row 0 is NaN."""
    V = np.vstack([link_motions(case)[0], np.zeros(6)])
    return V[:, :3], V[:, 3:]


def component_rate_of_joint(case: Case, k: int, j: int) -> np.ndarray:
    """d/dt of the components, in the axes of link k, of the velocity of joint j as a point of link k; world axes."""

    def components(t: float) -> np.ndarray:
        later = case.at(t)
        w, v = velocities_of_links(later)
        return later.arm.rotation[k].T @ (v[k] + x(w[k], later.arm.origin[j] - later.arm.origin[k]))

    return case.arm.rotation[k] @ rate(components)


def test_biases_vanish_at_rest():
    case = moving_arm(4, 7, "world", "R", True)
    xi, eta = biases(case)
    close(eta[1:], np.zeros((4, 6)))
    for k in case.links:
        close(xi[k], -np.concatenate([case.T[k] + x(case.arm.p[k], case.f[k]), case.f[k]]))
