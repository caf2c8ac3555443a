"""saha1999, Sections 2 to 4: definitions, the DeNOC matrices and the elements of the equations of motion, (1)-(31).

Rates of change are taken by differences along a motion, hence the tolerance DIFFERENCES where they enter.
"""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from tests.dynamics.denoc.mass_centres import tilde
from tests.seeds.saha1999 import Arm, CompiledArm, random_arm
from tests.seeds.tip_to_base import close, differ, results

DIFFERENCES = 1e-9


@pytest.fixture(
    scope="module",
    params=[("RRRR", Arm), ("RPRRP", Arm), ("PRRPRR", Arm), ("RPRR", CompiledArm)],
    ids=["RRRR", "RPRRP", "PRRPRR", "linkwise"],
)
def arm(request):
    joints, kind = request.param
    mech = random_arm(joints, 1999)
    rng = np.random.default_rng(5)
    theta, theta_dot = lw.random_state(mech, rng)
    return kind(mech, theta, theta_dot, rng.normal(size=mech.nv))


def paper(*ids, by):
    return results("saha1999", *ids, by=by)


# -- 2. Definitions -----------------------------------------------------------------------------------


@paper("1", "3", "4", by="library")
@paper("2", "5", by="model")
def test_twists_wrenches_and_masses(arm):
    for i in arm.numbers:
        close(arm.v[i], arm.rate(lambda a, i=i: a.C[i]), DIFFERENCES)  # (1): v_i is the velocity of C_i
        close(np.cross(arm.omega[i], arm.e[i]), arm.rate(lambda a, i=i: a.e[i]), DIFFERENCES)  # and omega_i rotates e_i
        x = np.arange(1.0, 7.0)
        close(arm.Omega(i) @ x, [*np.cross(arm.omega[i], x[:3]), *np.cross(arm.omega[i], x[3:])])  # (2)
    t, M = arm.stack(arm.t), arm.diagonal(arm.M)  # (3), (4)
    assert t.shape == (6 * arm.n,) and arm.theta_dot.shape == (arm.n,)  # (5)
    close(0.5 * t @ M @ t, lw.kinetic_energy(arm.mech, arm.theta, arm.theta_dot))
    # (3): wrenches of all bodies are conjugate to their twists, t^T w is the power that they exert.
    w = M @ arm.stack(arm.t_dot) + arm.diagonal(arm.M_dot) @ t
    power = arm.rate(lambda a: lw.kinetic_energy(a.mech, a.theta, a.theta_dot))
    close(t @ w, power, DIFFERENCES)
    Omega = arm.diagonal(arm.Omega)  # (4)
    assert not Omega[:6, 6:].any() and np.array_equal(Omega[-6:, -6:], arm.Omega(arm.n))


# -- 3. Dynamic modelling -----------------------------------------------------------------------------


def net_wrench(arm, i):
    """All that acts on body i, at its mass centre: linkwise's joint wrenches on both of its sides, and its weight."""
    onto = lw.joint_wrenches(arm.mech, arm.theta, arm.theta_dot, arm.theta_ddot)
    rots, total = lw.link_poses(arm.mech, arm.theta)[:, :3, :3], arm.weight(i)
    for joint, sign in ((i, 1.0), (i + 1, -1.0)):
        if joint <= arm.n:
            moment, force = rots[joint - 1] @ onto[joint - 1, :3], rots[joint - 1] @ onto[joint - 1, 3:]
            total = total + sign * np.concatenate([moment + np.cross(arm.O[joint] - arm.C[i], force), force])
    return total


@paper("6a", "6b", "7", "9", by="library")
@paper("8", "10", by="model")
def test_newton_euler_equations(arm):
    wrenches = [None]
    for i in arm.numbers:
        n = arm.rate(lambda a, i=i: a.I_c[i] @ a.omega[i])  # rates of angular and linear momentum
        f = arm.rate(lambda a, i=i: a.m[i] * a.v[i])
        omega_dot, v_dot = arm.t_dot[i][:3], arm.t_dot[i][3:]
        close(arm.I_c[i] @ omega_dot + np.cross(arm.omega[i], arm.I_c[i] @ arm.omega[i]), n, DIFFERENCES)  # (6a)
        close(arm.m[i] * v_dot, f, DIFFERENCES)  # (6b)
        wrenches.append(np.concatenate([n, f]))
        close(arm.M(i) @ arm.t_dot[i] + arm.M_dot(i) @ arm.t[i], wrenches[i], DIFFERENCES)  # (7), (8)
        close(wrenches[i], net_wrench(arm, i), DIFFERENCES)
        # The matrix of (8) is not the rate of M_i, but has the same effect on t_i.
        true_rate = arm.rate(lambda a, i=i: a.M(i))
        close(arm.M_dot(i) @ arm.t[i], true_rate @ arm.t[i], DIFFERENCES)
        if np.abs(arm.omega[i]).max() > 0:
            differ(arm.M_dot(i), true_rate)
    M, M_dot = arm.diagonal(arm.M), arm.diagonal(arm.M_dot)  # (10)
    close(M @ arm.stack(arm.t_dot) + M_dot @ arm.stack(arm.t), arm.stack(wrenches), DIFFERENCES)  # (9)


@paper("11a", "11b", "12", "13", "14", "15", by="library")
def test_velocity_constraints(arm):
    for i in range(2, arm.n + 1):
        j, rate = i - 1, arm.theta_dot[i - 1]
        if arm.revolute[i]:
            close(arm.omega[i], arm.omega[j] + rate * arm.e[i])  # (11a)
            propagated = np.cross(arm.omega[j], arm.r[j]) + np.cross(arm.omega[i], arm.d[i])
            close(arm.v[i], arm.v[j] + propagated)  # (11b)
            close(arm.c(i, j), -arm.d[i] - arm.r[j])  # below (13)
            close(arm.p[i], [*arm.e[i], *np.cross(arm.e[i], arm.d[i])])  # (13)
        else:
            close(arm.p[i], [0.0, 0.0, 0.0, *arm.e[i]])  # (15)
        close(arm.t[i], arm.B(i, j) @ arm.t[j] + arm.p[i] * rate)  # (12)
    assert {True, False} <= set(arm.revolute[1:]) or all(arm.revolute[1:])
    for i in arm.numbers:
        close(arm.B(i, i), np.eye(6))  # (14)
        for j in arm.numbers:
            close(arm.B(i, j), np.block([[np.eye(3), np.zeros((3, 3))], [tilde(arm.c(i, j)), np.eye(3)]]))  # (13)
            close(np.linalg.inv(arm.B(i, j)), arm.B(j, i))
            for k in arm.numbers:
                close(arm.B(i, j) @ arm.B(j, k), arm.B(i, k))


@paper("16", "17", by="library")
def test_decoupled_natural_orthogonal_complement(arm):
    close(arm.N_l @ arm.N_d @ arm.theta_dot, arm.stack(arm.t))  # (16)
    N_l, N_d = lw.formulations.denoc.matrices(arm.mech, arm.theta)
    close(N_l, arm.N_l)  # (17)
    close(N_d, arm.N_d)


@paper("18", "19", by="library")
def test_constraint_wrenches_do_no_work(arm):
    """Free bodies: gravity and the joint drives are external, what remains is exerted by the constraints."""
    external = [None, *(arm.weight(i) for i in arm.numbers)]
    for i in arm.numbers:
        for body, sign in ((i, 1.0), (i - 1, -1.0)):  # the drive of joint i acts on body i, and back on body i - 1
            if body == 0:
                continue
            push = sign * arm.tau[i - 1] * arm.e[i]
            couple = push if arm.revolute[i] else np.cross(arm.O[i] - arm.C[body], push)
            external[body] = external[body] + np.concatenate([couple, np.zeros(3) if arm.revolute[i] else push])
    w_E, N = arm.stack(external), arm.N_l @ arm.N_d
    total = arm.diagonal(arm.M) @ arm.stack(arm.t_dot) + arm.diagonal(arm.M_dot) @ arm.stack(arm.t)
    constraint = total - w_E
    assert np.abs(constraint).max() > 0.1
    close(N.T @ constraint, np.zeros(arm.n), 1e-8)
    close(arm.stack(arm.t) @ constraint, 0.0, 1e-8)
    close(N.T @ total, N.T @ (w_E + constraint))  # (18)
    close(N.T @ total, N.T @ w_E, DIFFERENCES)  # (19)


@paper("20", by="library")
def test_constrained_equations_of_motion(arm):
    N, M = arm.N_l @ arm.N_d, arm.diagonal(arm.M)
    N_dot = arm.rate(lambda a: a.N_l @ a.N_d)
    close(N @ arm.theta_ddot + N_dot @ arm.theta_dot, arm.stack(arm.t_dot), DIFFERENCES)
    differ(N @ arm.theta_dot + N_dot @ arm.theta, arm.stack(arm.t_dot))  # as printed above (20)
    inertia = N.T @ M @ N
    close(inertia, arm.GIM)
    C = N.T @ (M @ N_dot + arm.diagonal(arm.M_dot) @ N)
    gravity = N.T @ arm.stack([None, *(arm.weight(i) for i in arm.numbers)])
    close(inertia @ arm.theta_ddot + C @ arm.theta_dot, arm.tau + gravity, DIFFERENCES)
    close(lw.formulations.denoc.coriolis_matrix(arm.mech, arm.theta, arm.theta_dot), C, DIFFERENCES)


# -- 4.1 Inertia matrix -------------------------------------------------------------------------------


@paper("21", "22", "23a", "23b", "24", by="library")
def test_inertia_matrix_from_composite_bodies(arm):
    tilde_M = arm.composite  # (23a)
    close(tilde_M[arm.n], arm.M(arm.n))
    for i in range(arm.n - 1, 0, -1):
        close(tilde_M[i], arm.M(i) + arm.B(i + 1, i).T @ tilde_M[i + 1] @ arm.B(i + 1, i))  # (23b)
        # The composite body has the mass, and the inertia about C_i, of bodies i ... n frozen together.
        close(np.trace(tilde_M[i][3:, 3:]) / 3, sum(arm.m[i:]))
    big = arm.N_l.T @ arm.diagonal(arm.M) @ arm.N_l
    close(big, arm.blocks(lambda i, j: tilde_M[i] @ arm.B(i, j) if i >= j else arm.B(j, i).T @ tilde_M[j]))  # (22)
    close(arm.N_d.T @ big @ arm.N_d, arm.GIM)  # (21)
    found = lw.formulations.denoc.inertia_matrix(arm.mech, arm.theta)
    for i in arm.numbers:
        for j in range(1, i + 1):
            i_ij = arm.p[i] @ tilde_M[i] @ arm.B(i, j) @ arm.p[j]  # (24)
            close([found[i - 1, j - 1], found[j - 1, i - 1]], [i_ij, i_ij])


# -- 4.2 Convective inertia terms ---------------------------------------------------------------------


class Convective:
    """M~dot_i and H~_ij of (28), dots as they must be; zero beyond the tip."""

    def __init__(self, arm):
        self.arm, zero = arm, np.zeros((6, 6))
        self.rates = [None, *([zero] * (arm.n + 1))]
        self.H = {(arm.n + 1, j): zero for j in range(1, arm.n + 1)}
        for i in range(arm.n, 0, -1):
            self.rates[i] = arm.M_dot(i) + self.rates[i + 1]
            behind = arm.B(i + 1, i).T @ self.H[i + 1, i] if i < arm.n else zero
            for j in range(1, i):
                self.H[i, j] = arm.composite[i] @ arm.B_dot(i, j) + behind


@paper("25", "26", "27", "28", by="library")
def test_convective_inertia_matrices(arm):
    M, zero = arm.diagonal(arm.M), np.zeros((6, 6))
    parts, n = Convective(arm), arm.n
    N_l_dot = arm.rate(lambda a: a.N_l)
    close(arm.blocks(lambda i, j: arm.B_dot(i, j) if i > j else zero), N_l_dot, DIFFERENCES)
    Omega = arm.diagonal(arm.Omega)
    close(arm.rate(lambda a: a.N_d), Omega @ arm.N_d, DIFFERENCES)  # (26)

    # (28) gives what the sums are: over k >= i of B_ki^T M_k Bdot_kj, and of Mdot_k.
    for i in arm.numbers:
        close(parts.rates[i], sum(arm.M_dot(k) for k in range(i, n + 1)))
        for j in range(1, i):
            close(parts.H[i, j], sum(arm.B(k, i).T @ arm.M(k) @ arm.B_dot(k, j) for k in range(i, n + 1)))
    printed = arm.composite[n] @ arm.B(n, 1)  # (28) without the dot of B
    differ(printed, parts.H[n, 1])

    # (27): N_l^T M Ndot_l, and N_l^T Mdot N_l, in which no B appears.
    def first(i, j):
        if i > j:
            return parts.H[i, j]
        return arm.B(j + 1, i).T @ parts.H[j + 1, j] if j < n else zero

    close(arm.N_l.T @ M @ N_l_dot, arm.blocks(first), DIFFERENCES)
    M_dot = arm.diagonal(arm.M_dot)
    second = arm.blocks(lambda i, j: parts.rates[max(i, j)])
    close(arm.N_l.T @ M_dot @ arm.N_l, second)
    differ(arm.N_l.T @ M @ arm.N_l, arm.blocks(first))  # (27) without dots
    differ(arm.N_l.T @ M @ arm.N_l, second)
    assert not np.allclose(parts.H[n - 1, 1], parts.H[n, 1])  # last row of (27) as printed: H~_(n-1,1) for H~_n1
    differ(arm.B(n, 2).T @ parts.H[n, n - 1], parts.H[n, n - 1])  # and a B too much in its column n - 1

    tilde_M = arm.N_l.T @ M @ arm.N_l
    close(  # (25)
        arm.N_d.T @ (arm.N_l.T @ M @ N_l_dot + tilde_M @ Omega + second) @ arm.N_d,
        lw.formulations.denoc.coriolis_matrix(arm.mech, arm.theta, arm.theta_dot),
        DIFFERENCES,
    )
    # In (25) the last term is N_l^T Mdot N_l, not the rate of M~.
    rate = arm.rate(lambda a: a.N_l.T @ a.diagonal(a.M) @ a.N_l)
    differ(rate, second)


@paper("29", by="library")
def test_elements_of_the_convective_matrix(arm):
    parts, tilde_M, n = Convective(arm), arm.composite, arm.n
    zero = np.zeros((6, 6))

    def element(i, j, column):
        if i > j:
            inside = tilde_M[i] @ arm.B(i, j) @ arm.Omega(j) + parts.H[i, j] + parts.rates[i]
        else:
            translated = arm.B(j + 1, i).T @ parts.H[j + 1, column] if j < n else zero
            inside = arm.B(j, i).T @ tilde_M[j] @ arm.Omega(j) + translated + parts.rates[j]
        return arm.p[i] @ inside @ arm.p[j]

    found = lw.formulations.denoc.coriolis_matrix(arm.mech, arm.theta, arm.theta_dot)
    close(found, [[element(i, j, column=j) for j in arm.numbers] for i in arm.numbers])
    differ(found, [[element(i, j, column=i) for j in arm.numbers] for i in arm.numbers])  # H~_(j+1,i) as printed


# -- 4.3 Generalized forces ---------------------------------------------------------------------------


@paper("30", "31", by="library")
def test_generalized_forces(arm):
    w = [None, *np.random.default_rng(30).normal(size=(arm.n, 6))]
    total = {arm.n + 1: np.zeros(6)}
    tau = [None] * (arm.n + 1)
    for i in range(arm.n, 0, -1):
        outer = arm.B(i + 1, i).T @ total[i + 1] if i < arm.n else total[i + 1]
        total[i] = w[i] + outer
        tau[i] = arm.p[i] @ total[i]  # (30)
    stacked = np.concatenate([total[i] for i in arm.numbers])
    close(stacked, arm.N_l.T @ arm.stack(w))  # (31)
    close(lw.formulations.denoc.forces(arm.mech, arm.theta, np.array(w[1:])), tau[1:])


def test_cross_product_tensor():
    x, y = np.random.default_rng(2).normal(size=(2, 3))
    close(tilde(x) @ y, np.cross(x, y))
