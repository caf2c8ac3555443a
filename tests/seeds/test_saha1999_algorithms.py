"""saha1999, Section 5 and Appendix B: recursive dynamics and reverse Gaussian elimination, (32)-(55)."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise import operators as op
from tests.dynamics.denoc.mass_centres import tilde
from tests.seeds.saha1999 import Arm, CompiledArm, random_arm
from tests.seeds.tip_to_base import close, differ, results


@pytest.fixture(
    scope="module",
    params=[("RRRR", Arm), ("RPRRP", Arm), ("PRRPRR", Arm), ("RPRR", CompiledArm)],
    ids=["RRRR", "RPRRP", "PRRPRR", "linkwise"],
)
def arm(request):
    joints, kind = request.param
    mech = random_arm(joints, 1997)
    rng = np.random.default_rng(6)
    theta, theta_dot = lw.random_state(mech, rng)
    return kind(mech, theta, theta_dot, rng.normal(size=mech.nv))


def paper(*ids, by):
    return results("saha1999", *ids, by=by)


# -- 5.1 Inverse dynamics -----------------------------------------------------------------------------


def recursive_inverse_dynamics(arm, theta_ddot, gravity, propagated=True):
    """Section 5.1 with (32).  ``propagated=False`` is the forward recursion of nu as printed, without B."""
    nu, xi, gamma, tau = ([None] * (arm.n + 2) for _ in range(4))
    for i in arm.numbers:
        rate = arm.theta_dot[i - 1]
        own = arm.p[i] * theta_ddot[i - 1]
        if i == 1:
            nu[1] = arm.p[1] * rate
            xi[1] = own + rotating(nu[1]) @ arm.p[1] * rate + np.concatenate([np.zeros(3), -gravity])  # (32)
        else:
            nu[i] = arm.p[i] * rate + (arm.B(i, i - 1) @ nu[i - 1] if propagated else nu[i - 1])
            B_dot = np.zeros((6, 6))
            B_dot[3:, :3] = tilde(nu[i - 1][3:] - nu[i][3:])
            xi[i] = own + rotating(nu[i]) @ arm.p[i] * rate + arm.B(i, i - 1) @ xi[i - 1] + B_dot @ nu[i - 1]
    for i in range(arm.n, 0, -1):
        M_dot = np.zeros((6, 6))
        M_dot[:3, :3] = tilde(nu[i][:3]) @ arm.I_c[i]
        gamma[i] = arm.M(i) @ xi[i] + M_dot @ nu[i]
        if i < arm.n:
            gamma[i] = gamma[i] + arm.B(i + 1, i).T @ gamma[i + 1]
        tau[i] = arm.p[i] @ gamma[i]
    return np.array(tau[1 : arm.n + 1]), nu, xi


def rotating(nu):
    """Omega of (2) for the twist nu."""
    return np.kron(np.eye(2), tilde(nu[:3]))


@paper("Section 5.1", "32", by="library")
def test_recursive_inverse_dynamics(arm):
    weightless = np.zeros(3)
    tau, nu, xi = recursive_inverse_dynamics(arm, arm.theta_ddot, weightless)
    close(np.array(nu[1 : arm.n + 1]), np.array(arm.t[1:]))  # nu_i are the twists,
    close(np.array(xi[1 : arm.n + 1]), np.array(arm.t_dot[1:]), 1e-9)  # xi_i their rates
    free = arm.mech.with_gravity(weightless)
    close(tau, lw.inverse_dynamics(free, arm.theta, arm.theta_dot, arm.theta_ddot))
    tau, *_ = recursive_inverse_dynamics(arm, arm.theta_ddot, arm.mech.gravity)  # (32)
    close(tau, arm.tau)
    close(lw.formulations.denoc.inverse_dynamics(arm.mech, arm.theta, arm.theta_dot, arm.theta_ddot), tau)
    printed, *_ = recursive_inverse_dynamics(arm, arm.theta_ddot, arm.mech.gravity, propagated=False)
    differ(printed, arm.tau)


# -- 5.2 Forward dynamics -----------------------------------------------------------------------------


def articulated(arm):
    """psi_hat_k, m_hat_k, psi_k and M_hat_k from (47), (48) and (50), tip to base."""
    psi_hat, m_hat, psi, M_hat = ([None] * (arm.n + 1) for _ in range(4))
    for k in range(arm.n, 0, -1):
        M_hat[k] = arm.M(k)
        if k < arm.n:
            remaining = M_hat[k + 1] - np.outer(psi_hat[k + 1], psi[k + 1])
            M_hat[k] = M_hat[k] + arm.B(k + 1, k).T @ remaining @ arm.B(k + 1, k)
        psi_hat[k] = M_hat[k] @ arm.p[k]
        m_hat[k] = arm.p[k] @ psi_hat[k]
        psi[k] = psi_hat[k] / m_hat[k]
    return psi_hat, m_hat, psi, M_hat


def solve_for_accelerations(arm, phi, index_offset=1):
    """(34)-(37).  ``index_shift=-1`` takes tau_hat_(i-1) in (35), as printed."""
    _, m_hat, psi, _ = articulated(arm)
    n = arm.n
    tau_hat, eta = [None] * (n + 1), {}
    between = np.zeros(6)  # eta_(n,n+1)
    for i in range(n, 0, -1):
        if i < n:
            known = tau_hat[i + index_offset] if i + index_offset >= 1 else None
            known = 0.0 if known is None else known  # what is printed is not known yet
            eta[i + 1] = psi[i + 1] * known + between
            between = arm.B(i + 1, i).T @ eta[i + 1]  # (35)
        tau_hat[i] = phi[i - 1] - arm.p[i] @ between  # (34)
    tau_tilde = [None, *(tau_hat[i] / m_hat[i] for i in arm.numbers)]
    theta_ddot, mu = [None] * (n + 1), None
    for i in arm.numbers:
        before = np.zeros(6) if i == 1 else arm.B(i, i - 1) @ mu  # mu_(i,i-1)
        theta_ddot[i] = tau_tilde[i] - psi[i] @ before  # (36)
        mu = arm.p[i] * theta_ddot[i] + before  # (37)
    return np.array(tau_hat[1:]), np.array(tau_tilde[1:]), np.array(theta_ddot[1:])


@paper("Section 5.2", "33", "34", "35", "36", "37", by="library")
def test_recursive_forward_dynamics(arm):
    at_rest, *_ = recursive_inverse_dynamics(arm, np.zeros(arm.n), arm.mech.gravity)
    phi = arm.tau - at_rest  # tau - C theta_dot and gravity, by inverse dynamics without accelerations
    assert phi.shape == (arm.n,)  # printed: "the six-dimensional vector phi", which it is of six joints only
    if arm.n != 6:
        with pytest.raises(ValueError, match="mismatch"):
            np.linalg.solve(arm.GIM, np.resize(phi, 6))
    U, D = lw.formulations.denoc.udu(arm.mech, arm.theta)
    close(U @ D @ U.T @ arm.theta_ddot, phi)  # (33)
    tau_hat, tau_tilde, theta_ddot = solve_for_accelerations(arm, phi)
    close(U @ tau_hat, phi)
    close(D @ tau_tilde, tau_hat)
    close(U.T @ theta_ddot, tau_tilde)
    close(theta_ddot, arm.theta_ddot, 1e-9)
    close(lw.formulations.denoc.forward_dynamics(arm.mech, arm.theta, arm.theta_dot, arm.tau), theta_ddot, 1e-9)
    differ(solve_for_accelerations(arm, phi, index_offset=-1)[2], arm.theta_ddot)  # (35) as printed


# -- Appendix B ---------------------------------------------------------------------------------------


def elementary(alpha, k, n):
    """E_k of (41) with alpha_k of (42) and lambda_k of (43); ``alpha`` holds alpha_1k ... alpha_(k-1),k."""
    column, unit = np.zeros(n), np.zeros(n)
    column[: k - 1] = alpha
    unit[k - 1] = 1.0
    return np.eye(n) - np.outer(column, unit)


def eliminate(matrix):
    """Reverse Gaussian elimination of a matrix, from its last column, by numbers alone: E_k and L_k, k = n ... 2."""
    n = len(matrix)
    E, L = {}, {n + 1: matrix}
    for k in range(n, 1, -1):
        pivot = L[k + 1][k - 1, k - 1]
        E[k] = elementary(L[k + 1][: k - 1, k - 1] / pivot, k, n)
        L[k] = E[k] @ L[k + 1]  # (45)
    return E, L


@paper("40", "41", "42", "43", "44", "45", "51", "52", "53", "54", "55", "Appendix B", by="library")
def test_reverse_gaussian_elimination(arm):
    n, inertia = arm.n, arm.GIM
    E, L = eliminate(inertia)
    close(L[n][: n - 1, n - 1], np.zeros(n - 1))  # (40): the column above the pivot is gone,
    close(L[n][n - 1], inertia[n - 1])  # the pivot's row is that of I,
    close(L[n][: n - 1, : n - 1], L[n][: n - 1, : n - 1].T)  # and what remains is symmetric
    found, pivots = lw.formulations.denoc.udu(arm.mech, arm.theta)
    for k in range(2, n + 1):
        close(elementary(found[: k - 1, k - 1], k, n), E[k])  # (41) to (43), with linkwise's alpha_k
        shape = E[k] - np.eye(n)
        shape[: k - 1, k - 1] = 0.0
        assert not shape.any()  # (44): (41) is the identity but for column k, above the diagonal (42), (43)
        close(np.linalg.inv(E[k]), 2.0 * np.eye(n) - E[k])  # (52)
    whole = np.eye(n)
    for k in range(2, n + 1):
        whole = whole @ E[k]
    close(whole @ inertia, L[2])  # (51)
    close(np.triu(L[2], 1), np.zeros((n, n)))
    U = np.linalg.inv(whole)
    close(U @ L[2], inertia)  # (53)
    close(U, np.eye(n) + sum(np.eye(n) - E[k] for k in E))  # its elements are those of the alpha_k
    D = np.diag(np.diag(L[2]))
    close(np.diag(D), articulated(arm)[1][1:])  # (54): m_hat_1 ... m_hat_n
    close(D @ U.T, L[2])
    close(U @ D @ U.T, inertia)  # (55)
    close(found, U)
    close(pivots, D)


@paper("46", "47", "48", "50", by="library")
@paper("49", by="model")
def test_elimination_from_articulated_bodies(arm):
    n = arm.n
    E, L = eliminate(arm.GIM)
    psi_hat, m_hat, psi, M_hat = articulated(arm)  # (47), (48), (50) for i = k - 1
    composite = arm.composite
    U, D = lw.formulations.denoc.udu(arm.mech, arm.theta)
    for k in arm.numbers:  # linkwise's articulated inertias, at mass centres
        close(articulated_inertia(arm, k), M_hat[k])
    M_hat_ik = {}
    for k in range(n, 1, -1):
        close(m_hat[k], D[k - 1, k - 1])
        behind = M_hat[k] - np.outer(psi_hat[k], psi[k])  # M_hat_kk of (50)
        close(behind @ arm.p[k], np.zeros(6))  # the joint is free: nothing resists it
        for i in range(k - 1, 0, -1):
            psi_hat_ik = {m: arm.B(m, i).T @ psi_hat[m] for m in range(k, n + 1)}  # (47)
            psi_ik = arm.B(k, i).T @ psi[k]
            close(psi_ik, psi_hat_ik[k] / m_hat[k])  # (48)
            close(arm.p[i] @ psi_ik, -E[k][i - 1, k - 1])  # (46)
            close(arm.p[i] @ psi_ik, U[i - 1, k - 1])
            removed = sum(np.outer(psi_hat_ik[m], psi_hat_ik[m]) / m_hat[m] for m in range(k, n + 1))
            M_hat_ik[i, k] = composite[i] - removed  # (49), with the composite body of (23a)
            outer = behind if i == k - 1 else M_hat_ik[i + 1, k]
            close(M_hat_ik[i, k], arm.M(i) + arm.B(i + 1, i).T @ outer @ arm.B(i + 1, i))  # (50)
            for j in range(1, i + 1):
                close(arm.p[i] @ M_hat_ik[i, k] @ arm.B(i, j) @ arm.p[j], L[k][i - 1, j - 1])  # (46)
        close(M_hat_ik[k - 1, k], M_hat[k - 1])  # M_hat_i is M_hat_(i,i+1)
        # (49) as printed subtracts from the articulated body itself, which would leave the other terms out twice.
        differ(M_hat[k - 1] - removed_from(arm, k, psi_hat, m_hat), M_hat[k - 1])


def articulated_inertia(arm, k):
    """The articulated-body inertia of link k that linkwise computes in the link's frame, at C_k and in world axes."""
    link = slice(6 * k - 6, 6 * k)
    rot = np.kron(np.eye(2), lw.link_poses(arm.mech, arm.theta)[k - 1, :3, :3])
    to_joint = np.block([[np.eye(3), np.zeros((3, 3))], [tilde(arm.d[k]), np.eye(3)]])  # a twist at C_k as one at O_k
    own = lw.compile(op.P, arm.mech, target="numpy")(arm.theta)[link, link]
    return to_joint.T @ rot @ own @ rot.T @ to_joint


def removed_from(arm, k, psi_hat, m_hat):
    """Psi_(k-1,k) of (49)."""
    translated = (arm.B(m, k - 1).T @ psi_hat[m] for m in range(k, arm.n + 1))
    return sum(np.outer(x, x) / m_hat[m] for m, x in enumerate(translated, k))
