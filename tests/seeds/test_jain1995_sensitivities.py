"""jain1995, Appendix A: derivatives of the operators with respect to each joint angle.

Every formula, stacked as printed, is compared with the derivative of the operator itself by a complex step. In the scan
the subscripts delta (the joint i alone) and s (the links beyond it) are often exchanged; where they are, the test shows
that the printed one fails.
"""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw

from .jain1995 import JointMatrices, Moving, moving_chains
from .tip_to_base import close, differ, rate_of_change, results, spatial_tilde, tilde

TIGHT = 1e-11


def fails(value, expected):
    """As printed: wrong for at least one joint, of lists by joint that begin with None."""
    assert max(np.abs(a - b).max() for a, b in zip(value[1:], expected[1:], strict=True)) > 1e-3


def lambdas(chain: Moving, joint: JointMatrices) -> list:
    """(A.16): block-diagonal lambda_i, i = 1 ... n, in a list that begins with None."""
    result = [None]
    for i in range(1, chain.n + 1):
        whole, P = np.zeros_like(chain.x.P), chain.x.parts.P[i]
        first = joint.one[i] @ P - P @ joint.one[i]
        for k in range(i, chain.n + 1):
            psi = chain.x.psi[6 * k - 6 : 6 * k, 6 * i - 6 : 6 * i]
            chain.block(whole, k)[:] = first if k == i else psi @ first @ psi.T
        result.append(whole)
    return result


@pytest.fixture
def joint(chain):
    return JointMatrices(chain)


@results("jain1995", "A.3", by="library")
@results("jain1995", "6.10", "6.11", "A.1", "A.2", by="model")
@moving_chains
def test_joint_matrices(chain, joint):
    """H~(i) on the links that joint i moves; A.1 defines H_s^i and, by (A.2), H^i, printed as a second H_delta^i."""
    n = chain.n
    for i in range(1, n + 1):
        h = tilde(chain.arm.h[i])
        close(joint.one[i], np.block([[h, np.zeros((3, 3))], [np.zeros((3, 3)), h]]))
        close(joint.one[i], -joint.one[i].T)
        # What H~(i) does to link axes is what rotating joint i does to them.
        rots = chain.by_joint(lambda arm, x: arm.rotation[1 : n + 1])[i]
        for k in range(1, n + 1):
            block = chain.block(joint.all[i], k)
            close(rots[k - 1], block[:3, :3] @ chain.arm.rotation[k], TIGHT)
            close(block[:3, :3], block[3:, 3:])
            close(chain.block(joint.s[i], k), joint.one[i] * (k < i))
            close(chain.block(joint.delta[i], k), joint.one[i] * (k == i))
        assert np.count_nonzero(joint.delta[i]) <= 12  # "a single 6 x 6 block"
        close(joint.all[i], joint.s[i] + joint.delta[i])  # (A.2)
    differ(joint.delta[n], joint.s[n] + joint.delta[n])  # (A.2), were H^i the second operator printed in (A.1)
    total = lambda parts: sum(part * rate for part, rate in zip(parts[1:], chain.theta_dot, strict=True))  # noqa: E731
    close(total(joint.all), chain.Omega)  # (A.3)
    close(total(joint.s), chain.Omega_s)
    close(total(joint.delta), chain.Omega_delta)
    close(chain.Omega, chain.Omega_s + chain.Omega_delta)


@results("jain1995", "A.4", "A.5", "A.6", by="library")
@moving_chains
def test_sensitivities_of_the_components(chain, joint):
    n, arm = chain.n, chain.arm
    for k in range(1, n + 1):
        H_star = chain.by_joint(lambda c, x, k=k: c.H[k].T)
        phi = chain.by_joint(lambda c, x, k=k: c.phi(k + 1, k))
        M = chain.by_joint(lambda c, x, k=k: c.M[k])
        for i in range(1, n + 1):
            rotated = np.concatenate([tilde(arm.h[i]) @ arm.h[k], np.zeros(3)])[:, None]
            close(H_star[i], rotated * (k < i), TIGHT)  # (A.4)
            translation = arm.phi(k + 1, k)
            close(phi[i], (joint.one[i] @ translation - translation @ joint.one[i]) * (k < i), TIGHT)  # (A.5)
            close(M[i], (joint.one[i] @ arm.M[k] - arm.M[k] @ joint.one[i]) * (k <= i), TIGHT)  # (A.6)


@results("jain1995", "A.7", "A.8", "A.9", "A.10", "A.11", by="library")
@moving_chains
def test_sensitivities_of_the_operators(chain, joint):
    """(A.9) is printed with - phi [E_phi] phi and with H_s for H_delta, (A.11) with - phi_tilde."""
    x = chain.x
    H_star, E_phi = chain.by_joint(lambda c, x: x.H.T), chain.by_joint(lambda c, x: x.E_phi)
    phi, M = chain.by_joint(lambda c, x: x.phi), chain.by_joint(lambda c, x: x.M)
    printed = [None]
    for i in range(1, chain.n + 1):
        H_s, H_delta, H_all = joint.s[i], joint.delta[i], joint.all[i]
        close(H_star[i], H_s @ x.H.T, TIGHT)  # (A.7)
        close(E_phi[i], H_all @ x.E_phi - x.E_phi @ H_s, TIGHT)  # (A.8)
        close(phi[i], x.phi @ E_phi[i] @ x.phi, TIGHT)  # (A.9)
        close(phi[i], x.phi @ H_delta @ x.phi - x.phi @ H_all + H_s @ x.phi, TIGHT)
        close(M[i], H_all @ x.M - x.M @ H_all, TIGHT)  # (A.10)
        printed.append(x.phi @ H_s @ x.phi - x.phi @ H_all + H_s @ x.phi)
    fails([None, *(-x.phi @ e @ x.phi for e in E_phi[1:])], phi)
    fails(printed, phi)
    close(x.E_phi @ x.phi, x.phi - x.I6)  # (A.11)
    close(x.phi @ x.E_phi, x.phi - x.I6)
    close(x.phi_tilde, x.phi - x.I6)  # as defined below (6.7)
    differ(-x.phi_tilde, x.phi - x.I6)


@results("jain1995", "Lemma A.1", "A.12", by="library")
@moving_chains
def test_lemma_a_1(chain, joint):
    """With every step of its proof; the printed first step lacks a star, the last has H_s for H_delta."""
    x, phi = chain.x, chain.by_joint(lambda c, x: x.phi)
    M, expected = chain.by_joint(lambda c, x: x.M), chain.by_joint(lambda c, x: x.phi @ x.M @ x.phi.T)
    inner, printed_first, printed_last = x.phi @ x.M @ x.phi.T, [None], [None]
    for i in range(1, chain.n + 1):
        H_s, H_delta, H_all, tail = joint.s[i], joint.delta[i], joint.all[i], x.phi_tilde
        close(phi[i] @ x.M @ x.phi.T + x.phi @ x.M @ phi[i].T + x.phi @ M[i] @ x.phi.T, expected[i], TIGHT)
        first = (x.phi @ H_all @ tail - tail @ H_s @ x.phi) @ x.M @ x.phi.T
        second = x.phi @ x.M @ (x.phi.T @ H_s @ tail.T - tail.T @ H_all @ x.phi.T)
        close(first + second + x.phi @ (H_all @ x.M - x.M @ H_all) @ x.phi.T, expected[i], TIGHT)
        left, right = x.phi @ H_all - tail @ H_s, H_all @ x.phi.T - H_s @ tail.T
        close(left @ inner - inner @ right, expected[i], TIGHT)
        close((x.phi @ H_delta + H_s) @ inner - inner @ (H_delta @ x.phi.T + H_s), expected[i], TIGHT)  # (A.12)
        printed_first.append(phi[i] @ x.M @ x.phi.T + x.phi @ x.M @ phi[i] + x.phi @ M[i] @ x.phi.T)
        printed_last.append((x.phi @ H_s + H_s) @ inner - inner @ (H_s @ x.phi.T + H_s))
    fails(printed_first, expected)
    fails(printed_last, expected)


@results("jain1995", "Lemma A.2", "A.13", "Identity 6.3", "6.12", by="library")
@moving_chains
def test_mass_matrix_sensitivity(chain, joint):
    """(A.13) is printed with H_s for the H_delta of (6.12). The mass matrix is the library's, by differences, too."""
    x, printed = chain.x, [None]
    expected, H_star = chain.by_joint(lambda c, x: x.mass_matrix), chain.by_joint(lambda c, x: x.H.T)
    inner = chain.by_joint(lambda c, x: x.phi @ x.M @ x.phi.T)
    J = chain.arm.joints
    for i in range(1, chain.n + 1):
        formula = lambda which: (  # noqa: E731
            x.H @ x.phi @ (which @ x.phi @ x.M - x.M @ x.phi.T @ which) @ x.phi.T @ x.H.T
        )
        close(formula(joint.delta[i]), expected[i], TIGHT)
        by_differences = rate_of_change(lambda q: lw.mass_matrix(chain.mech, q), chain.mech, chain.q, J.T[:, i - 1])
        close(formula(joint.delta[i]), J @ by_differences @ J.T, 1e-9)
        core = x.phi @ x.M @ x.phi.T
        close(H_star[i].T @ core @ x.H.T + x.H @ core @ H_star[i] + x.H @ inner[i] @ x.H.T, expected[i], TIGHT)
        printed.append(formula(joint.s[i]))
    fails(printed, expected)


@results("jain1995", "Lemma A.3", "A.14a", "A.14b", "A.14c", "A.15", "Identity 6.4", "6.13", by="library")
@moving_chains
def test_quadratic_form_of_the_sensitivities(chain, joint):
    """(A.14b) and (A.14c) are printed with Omega_s, (6.13) has Omega_delta; X* Y~* = -Y* X~*, printed without minus."""
    x, V, V_star = chain.x, chain.V, chain.V_tilde.T
    expected = np.array([chain.theta_dot @ M @ chain.theta_dot for M in chain.by_joint(lambda c, x: x.mass_matrix)[1:]])
    close(2 * np.array([V @ joint.delta[i] @ x.phi @ x.M @ V for i in range(1, chain.n + 1)]), expected, TIGHT)
    velocities = chain.arm.per_link(V)
    rows = chain.arm.diagonal([(velocities[k] @ joint.one[k])[None] if k else None for k in range(chain.n + 1)])
    close(2 * rows @ x.phi @ x.M @ V, expected, TIGHT)  # (A.15)
    close(rows, x.H @ V_star)
    for k in range(1, chain.n + 1):
        X, Y = velocities[k], chain.arm.H[k][0]
        close(X @ spatial_tilde(Y).T, -Y @ spatial_tilde(X).T)
        close(X @ spatial_tilde(Y), Y @ spatial_tilde(X).T)  # Y~ is skew, for its lower half is zero
    X, Y = velocities[1], chain.arm.H[1][0]
    differ(X @ spatial_tilde(Y).T, Y @ spatial_tilde(X).T)
    close(2 * x.H @ V_star @ x.phi @ x.M @ V, expected, TIGHT)  # (A.14a)
    b = lambda Omega: 2 * x.H @ x.phi @ (Omega @ x.phi + V_star) @ x.M @ V  # noqa: E731
    c = lambda Omega: 2 * x.H @ x.phi @ (Omega @ (x.I6 + x.phi @ x.K @ x.H) @ x.P + V_star @ x.M) @ V  # noqa: E731
    for form in (b, c):
        close(form(chain.Omega_delta), expected, TIGHT)
        differ(form(chain.Omega_s), expected)


@results("jain1995", "A.16", "A.17", "A.22", "A.23", "A.26", by="library")
@moving_chains
def test_sensitivities_of_articulated_inertias_by_outer_joints(chain, joint):
    """lambda_i(k) is the derivative of P(k) by a joint i <= k; (A.17) is printed with H_s for H_delta."""
    x, P, lam = chain.x, chain.by_joint(lambda c, x: x.P), lambdas(chain, joint)
    printed = [None]
    for i in range(1, chain.n + 1):
        for k in range(1, chain.n + 1):
            close(chain.block(lam[i], k), chain.block(P[i], k) * (k >= i), TIGHT)  # (A.16), (A.22)
            psi, P_k = x.psi[6 * k - 6 : 6 * k, 6 * i - 6 : 6 * i], x.parts.P[k]
            rotated = joint.one[i] @ P_k - P_k @ joint.one[i]
            close(chain.block(P[i], k), rotated if k <= i else psi @ chain.block(P[i], i) @ psi.T, TIGHT)  # (A.23)
        close(lam[i] - x.E_psi @ lam[i] @ x.E_psi.T, joint.delta[i] @ x.P - x.P @ joint.delta[i], TIGHT)  # (A.17)
        printed.append(joint.s[i] @ x.P - x.P @ joint.s[i])
    fails(printed, [None, *(part - x.E_psi @ part @ x.E_psi.T for part in lam[1:])])
    close(sum(part * rate for part, rate in zip(lam[1:], chain.theta_dot, strict=True)), chain.lambda_dot, TIGHT)


@results("jain1995", "Lemma A.4", "A.18", "A.19", "A.20", "A.21", "A.24", by="library")
@moving_chains
def test_lemma_a_4(chain, joint):
    x, lam = chain.x, lambdas(chain, joint)
    P, D = chain.by_joint(lambda c, x: x.P), chain.by_joint(lambda c, x: x.D)
    D_inverse = chain.by_joint(lambda c, x: np.linalg.inv(x.D))
    G, inverse = chain.by_joint(lambda c, x: x.G), np.linalg.inv(x.D)
    for i in range(1, chain.n + 1):
        H_s = joint.s[i]
        close(P[i], lam[i] - x.P @ H_s + H_s @ x.P, TIGHT)  # (A.18)
        close(P[i] + x.P @ H_s - H_s @ x.P, lam[i], TIGHT)  # (A.24): gamma_i is lambda_i
        close(D[i], x.H @ lam[i] @ x.H.T, TIGHT)  # (A.19)
        close(D_inverse[i], -inverse @ x.H @ lam[i] @ x.H.T @ inverse, TIGHT)  # (A.20)
        close(G[i], x.tau_bar @ lam[i] @ x.H.T @ inverse + H_s @ x.G, TIGHT)  # (A.21)


@results("jain1995", "A.25", "Lemma A.4", by="library")
@moving_chains
def test_proof_of_lemma_a_4(chain, joint):
    """(A.25) is printed with E_psi for E_phi in its derivation, and H_s E_psi for H^i E_psi in its result."""
    x, inverse = chain.x, np.linalg.inv(chain.x.D)
    P, gammas = chain.by_joint(lambda c, x: x.P), lambdas(chain, joint)
    tau, tau_bar = chain.by_joint(lambda c, x: x.tau), chain.by_joint(lambda c, x: x.tau_bar)
    E_phi, E_psi = chain.by_joint(lambda c, x: x.E_phi), chain.by_joint(lambda c, x: x.E_psi)
    close(x.M, x.P - x.E_psi @ x.P @ x.E_phi.T)  # the form of (4.9) that is differentiated
    printed_first, printed_last, printed_link = [None], [None], [None]
    for i in range(1, chain.n + 1):
        H_s, H_delta, H_all, gamma = joint.s[i], joint.delta[i], joint.all[i], gammas[i]
        gain = gamma @ x.H.T @ inverse @ x.H
        tau_i = x.tau_bar @ gain + H_s @ x.tau - x.tau @ H_s
        close(tau[i], tau_i, TIGHT)
        close(tau_bar[i], -tau_i, TIGHT)
        close(E_psi[i], E_phi[i] @ x.tau_bar + x.E_phi @ tau_bar[i], TIGHT)
        close(E_psi[i], (H_all @ x.E_phi - x.E_phi @ H_s) @ x.tau_bar - x.E_phi @ tau_i, TIGHT)
        close(E_psi[i], H_all @ x.E_psi - x.E_psi @ gain - x.E_psi @ H_s, TIGHT)
        printed_first.append((H_s @ x.E_psi - x.E_psi @ H_s) @ x.tau_bar - x.E_psi @ tau_i)
        printed_last.append(H_s @ x.E_psi - x.E_psi @ gain - x.E_psi @ H_s)
        # The derivative of (4.9), and what it leads to: gamma_i satisfies (A.17).
        by_parts = P[i] - E_psi[i] @ x.P @ x.E_phi.T - x.E_psi @ P[i] @ x.E_phi.T - x.E_psi @ x.P @ E_phi[i].T
        close(H_all @ x.M - x.M @ H_all, by_parts, TIGHT)
        rest = P[i] - H_all @ x.P + x.P @ H_all
        close(rest, x.E_psi @ gamma @ x.E_psi.T, TIGHT)
        printed_link.append(rest - x.E_psi @ gamma @ x.E_phi.T)  # zero, as printed
        close(gamma - x.E_psi @ gamma @ x.E_psi.T, H_delta @ x.P - x.P @ H_delta, TIGHT)
    fails(printed_first, E_psi)
    fails(printed_last, E_psi)
    fails(printed_link, [None, *(np.zeros_like(x.P) for _ in range(chain.n))])


@results("jain1995", "Lemma A.5", "A.27", "A.28", by="library")
@moving_chains
def test_lemma_a_5(chain):
    """(A.28) is printed with P_dot(k-1) for lambda_dot(k-1) and Omega for Omega_delta."""
    x, P, psi = chain.x, chain.x.parts.P, chain.x.parts.psi
    expected = chain.lambda_dot
    source = chain.Omega_delta @ x.P - x.P @ chain.Omega_delta
    close(expected - x.E_psi @ expected @ x.E_psi.T, source, TIGHT)  # (A.27)

    def loop(Omega, propagated):
        lambda_dot = [np.zeros((6, 6))]
        for k in range(1, chain.n + 1):
            rot = chain.block(Omega, k)
            before = psi[k - 1] @ propagated(lambda_dot, k - 1) @ psi[k - 1].T if k > 1 else 0.0
            lambda_dot.append(before + rot @ P[k] - P[k] @ rot)
        return chain.arm.diagonal(lambda_dot)

    P_dot = chain.dot(lambda c, x: x.P)
    close(loop(chain.Omega_delta, lambda lam, k: lam[k]), expected, TIGHT)
    differ(loop(chain.Omega_delta, lambda lam, k: chain.block(P_dot, k)), expected)
    differ(loop(chain.Omega, lambda lam, k: lam[k]), expected)


@results("jain1995", "Lemma A.6", "A.29", "A.30", "A.31", by="library")
@moving_chains
def test_lemma_a_6(chain, joint):
    """(A.30) is printed with P_dot for lambda_dot; the lost subscripts of H^i in (A.29) and of Omega are delta."""
    x, lam, root = chain.x, lambdas(chain, joint), np.linalg.inv(chain.x.root_D)
    inverse, factor = np.linalg.inv(x.D), x.I + x.H @ x.phi @ x.K
    close(factor, x.I + x.H @ x.phi_tilde @ x.G)  # (A.31)
    close(factor, x.I - x.H @ x.G + x.H @ x.phi @ x.G)
    close(factor, x.H @ x.phi @ x.G)
    m, factors = chain.by_joint(lambda c, x: x.m), chain.by_joint(lambda c, x: x.I + x.H @ x.phi @ x.K)
    roots, others = chain.by_joint(lambda c, x: x.root_D), ([None], [None])
    for i in range(1, chain.n + 1):
        H_s, H_delta, H_all = joint.s[i], joint.delta[i], joint.all[i]
        gain = x.tau_bar @ lam[i] @ x.H.T @ inverse
        close(factors[i], x.H @ x.phi @ ((H_delta @ x.phi - H_all) @ x.G + gain + H_s @ x.G), TIGHT)
        close(factors[i], x.H @ x.phi @ (H_delta @ x.phi @ x.K + gain), TIGHT)
        close(factors[i], x.H @ x.phi @ (H_delta @ x.phi_tilde @ x.P + x.tau_bar @ lam[i]) @ x.H.T @ inverse, TIGHT)
        close(roots[i], 0.5 * root @ x.H @ lam[i] @ x.H.T, TIGHT)
        close(roots[i], 0.5 * x.H @ lam[i] @ x.H.T @ root, TIGHT)
        spread = lambda where, i=i: (  # noqa: E731
            x.H @ x.phi @ (where @ x.phi_tilde @ x.P + 0.5 * (x.I6 + x.tau_bar) @ lam[i]) @ x.H.T @ root
        )
        close(m[i], spread(H_delta), TIGHT)  # (A.29)
        others[0].append(spread(H_all))
        others[1].append(spread(H_s))
    for other in others:
        fails(other, m)
    m_dot = lambda Omega, rate: (  # noqa: E731
        x.H @ x.phi @ (Omega @ x.phi_tilde @ x.P + 0.5 * (x.I6 + x.tau_bar) @ rate) @ x.H.T @ root
    )
    expected = chain.dot(lambda c, x: x.m)
    close(sum(part * rate for part, rate in zip(m[1:], chain.theta_dot, strict=True)), expected, TIGHT)
    close(m_dot(chain.Omega_delta, chain.lambda_dot), expected, TIGHT)  # (A.30)
    differ(m_dot(chain.Omega_delta, chain.dot(lambda c, x: x.P)), expected)
    differ(m_dot(chain.Omega, chain.lambda_dot), expected)
