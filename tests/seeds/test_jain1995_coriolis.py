"""jain1995, Section 7: the Coriolis term of the diagonal equations, in closed form and recursively.

The reference is the equation of motion itself: epsilon and kappa come from joint moments, nu_dot and xi_dot from the
library's accelerations and the derivatives of the operators by a complex step.
"""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw

from .jain1995 import Moving, moving_chain, moving_chains
from .tip_to_base import close, differ, rate, results

TIGHT = 1e-10


class Motion:
    """nu, xi and their rates under joint moments T, and from them the Coriolis terms of (3.1) and (7.9)."""

    def __init__(self, chain: Moving) -> None:
        x, J, theta_dot = chain.x, chain.arm.joints, chain.theta_dot
        self.T = np.random.default_rng(chain.n).normal(size=chain.n)
        self.theta_ddot = J @ lw.forward_dynamics(chain.mech, chain.q, chain.v, J.T @ self.T)
        self.nu, self.factor = x.m.T @ theta_dot, x.I + x.H @ x.phi @ x.K
        self.nu_dot = chain.dot(lambda arm, x: x.m).T @ theta_dot + x.m.T @ self.theta_ddot
        self.epsilon = np.linalg.solve(x.m, self.T)
        self.coriolis_nu = self.epsilon - self.nu_dot
        self.xi = self.factor.T @ theta_dot
        factor_dot = chain.dot(lambda arm, x: x.I + x.H @ x.phi @ x.K)
        self.xi_dot = factor_dot.T @ theta_dot + self.factor.T @ self.theta_ddot
        self.coriolis_xi = np.linalg.solve(self.factor, self.T) - x.D @ self.xi_dot


@pytest.fixture
def motion(chain):
    return Motion(chain)


def bracket(chain: Moving) -> np.ndarray:
    """The brackets of (7.1), without the term in M."""
    x, lam, delta = chain.x, chain.lambda_dot, chain.Omega_delta
    return x.E_psi @ lam - lam @ x.E_psi.T - delta @ x.P - x.P @ delta


@results("jain1995", "Identity 7.1", "7.1", by="library")
@moving_chains
def test_closed_form(chain, motion):
    x, root = chain.x, np.linalg.inv(chain.x.root_D)
    whole = bracket(chain) - 2 * chain.V_tilde.T @ x.M
    close(0.5 * root @ x.H @ x.psi @ whole @ x.psi.T @ x.H.T @ root @ motion.nu, motion.coriolis_nu, TIGHT)
    close(0.5 * root @ x.H @ x.psi @ whole @ chain.V, motion.coriolis_nu, TIGHT)
    # As the definition has it, l (m_dot nu - 1/2 theta_dot* M_theta theta_dot).
    M_theta = chain.by_joint(lambda arm, x: x.mass_matrix)[1:]
    half = 0.5 * np.array([chain.theta_dot @ M @ chain.theta_dot for M in M_theta])
    close(x.ell @ (chain.dot(lambda arm, x: x.m) @ motion.nu - half), motion.coriolis_nu, TIGHT)


@results("jain1995", "Algorithm 7.1", "7.2", by="library")
@moving_chains
def test_algorithm_7_1(chain, motion):
    """With - [2 V~* M + X - X*] V in the fourth line, from (7.1); printed is - 2 [V~* M . X + X*] V."""
    n, arm, parts = chain.n, chain.arm, chain.x.parts
    V = arm.per_link(chain.V)
    V_plus = [None, *(arm.phi(k + 1, k).T @ V[k + 1] for k in range(1, n + 1))]

    def loop(inertial):
        lam, y, C = [np.zeros((6, 6))], [np.zeros(6)], []
        for k in range(1, n + 1):
            psi = parts.psi[k - 1] if k > 1 else np.zeros((6, 6))
            X = chain.block(chain.Omega_delta, k) @ parts.P[k]
            Y = psi @ lam[k - 1]
            lam.append(Y @ psi.T + X + X.T)
            V_star_M = chain.block(chain.V_tilde, k).T @ arm.M[k]
            through = Y @ V[k - 1] - lam[k] @ parts.tau_bar[k].T @ V_plus[k]
            y.append(psi @ y[k - 1] - inertial(V_star_M, X) @ V[k] + through)
            C.append(0.5 * (arm.H[k] @ y[k]).item() / np.sqrt(parts.D[k].item()))
        return np.array(C), arm.diagonal(lam)

    C, lam = loop(lambda VM, X: 2 * VM + X - X.T)
    close(C, motion.coriolis_nu, TIGHT)
    close(lam, chain.lambda_dot)
    for sign in (+1.0, -1.0):  # whichever sign the dot before X stands for
        differ(loop(lambda VM, X, sign=sign: 2 * (VM + sign * X + X.T))[0], motion.coriolis_nu)


@results("jain1995", "Lemma 7.1", "7.3", "7.4", "7.5", by="library")
@moving_chains
def test_coriolis_force_does_no_work(chain, motion):
    x, V, theta_dot, nu = chain.x, chain.V, chain.theta_dot, motion.nu
    close(nu @ motion.coriolis_nu, 0.0, TIGHT)  # (7.3)
    # Its proof: M = m m*, printed m m_dot*.
    m_theta, m_dot = chain.by_joint(lambda arm, x: x.m)[1:], chain.dot(lambda arm, x: x.m)
    column = np.array([nu @ part.T @ theta_dot for part in m_theta])
    M_theta = chain.by_joint(lambda arm, x: x.mass_matrix)[1:]
    close([theta_dot @ part @ theta_dot for part in M_theta], 2 * column, TIGHT)
    close(nu @ motion.coriolis_nu, theta_dot @ (m_dot @ nu - column), TIGHT)
    close(theta_dot @ m_dot @ nu, nu @ m_dot.T @ theta_dot)
    differ(x.m @ m_dot.T, x.mass_matrix)
    skew = bracket(chain)
    close(skew, -skew.T)
    whole = skew - 2 * chain.V_tilde.T @ x.M
    differ(whole, -whole.T)
    close(nu @ np.linalg.inv(x.root_D) @ x.H @ x.psi, V)  # how (7.4) follows from (7.1)
    close(0.5 * V @ whole @ V, nu @ motion.coriolis_nu, TIGHT)  # (7.4)
    close(V @ chain.V_tilde.T, np.zeros_like(V))
    close(0.5 * V @ skew @ V, 0.0, TIGHT)  # (7.5)
    differ(theta_dot @ x.m @ (motion.coriolis_nu + m_dot.T @ theta_dot), 0.0)  # C(theta, theta_dot) of (2.1) does work
    J = chain.arm.joints
    close(J @ lw.bias_force(chain.mech, chain.q, chain.v), x.m @ (motion.coriolis_nu + m_dot.T @ theta_dot), TIGHT)


@results("jain1995", "Lemma 7.2", "7.6", by="library")
@moving_chains
def test_rate_of_the_kinetic_energy(chain, motion):
    """dK/dt = nu* nu_dot, printed with a factor 1/2."""
    J = chain.arm.joints
    q, v, a = chain.q, chain.v, J.T @ motion.theta_ddot
    energy = rate(lambda t: lw.kinetic_energy(chain.mech, q + v * t + a * t**2 / 2, v + a * t), 1e-3)
    close(motion.nu @ motion.nu_dot, energy, 1e-9)
    differ(0.5 * motion.nu @ motion.nu_dot, energy)  # as printed
    close(motion.nu @ (motion.epsilon - motion.coriolis_nu), energy, 1e-9)
    close(motion.nu @ motion.epsilon, energy, 1e-9)


@results("jain1995", "7.7", "7.8", "Lemma 7.3", "7.9", by="library")
@moving_chains
def test_unnormalized_equations_of_motion(chain, motion):
    """K = 1/2 xi* D xi and kappa = (I - H psi K) T; printed are xi_dot in the one and a star in the other."""
    x, root, V = chain.x, chain.x.root_D, chain.V
    xi, nu, T = motion.xi, motion.nu, motion.T
    close(np.linalg.solve(root, nu), xi)  # (7.7)
    energy = lw.kinetic_energy(chain.mech, chain.q, chain.v)
    close(0.5 * xi @ x.D @ xi, energy)  # (7.8)
    differ(0.5 * motion.xi_dot @ x.D @ motion.xi_dot, energy)  # as printed
    kappa = (x.I - x.H @ x.psi @ x.K) @ T
    close(root @ motion.epsilon, kappa)
    differ((x.I - x.H @ x.psi @ x.K).T @ T, kappa)  # as printed
    # The three forms of the Coriolis term; the last is printed with P* V and + V~* M V.
    root_dot = chain.dot(lambda arm, x: np.linalg.inv(x.root_D))
    coriolis = root @ (motion.coriolis_nu - root @ root_dot @ nu)
    close(x.D @ motion.xi_dot + coriolis, kappa, TIGHT)  # (7.9)
    lam, delta, VM = chain.lambda_dot, chain.Omega_delta, chain.V_tilde.T @ x.M
    P_ring = x.E_psi @ lam @ x.E_psi.T
    close(x.H @ x.psi @ (lam @ x.H.T @ xi - (delta @ x.P + VM) @ V), coriolis, TIGHT)
    V_plus = V - x.H.T @ chain.theta_dot
    close(x.H @ x.psi @ (P_ring @ x.H.T @ xi - (delta @ x.P_plus @ V_plus + VM @ V)), coriolis, TIGHT)
    close(x.P_plus @ V_plus, x.P_plus @ V)
    differ(x.H @ x.psi @ (P_ring @ x.H.T @ xi - delta @ x.P.T @ V + VM @ V), coriolis)  # as printed
    differ(xi @ coriolis, 0.0)  # "not orthogonal to the generalized velocities"


@results("jain1995", "7.10", by="library")
@moving_chains
def test_recursion_of_the_unnormalized_term(chain, motion):
    """With [V~* M + X] V; printed is a*(k), which is no matrix, for X(k). X*(k) does not do."""
    n, arm, parts = chain.n, chain.arm, chain.x.parts
    V = arm.per_link(chain.V)

    def loop(second):
        lam, y, c = [np.zeros((6, 6))], [np.zeros(6)], []
        for k in range(1, n + 1):
            psi = parts.psi[k - 1] if k > 1 else np.zeros((6, 6))
            X = chain.block(chain.Omega_delta, k) @ parts.P[k]
            lam.append(psi @ lam[k - 1] @ psi.T + X + X.T)
            drift = chain.block(chain.V_tilde, k).T @ arm.M[k] + second(X)
            y.append(psi @ y[k - 1] + lam[k] @ arm.H[k][0] * motion.xi[k - 1] - drift @ V[k])
            c.append((arm.H[k] @ y[k]).item())
        return np.array(c)

    close(loop(lambda X: X), motion.coriolis_xi, TIGHT)
    differ(loop(np.transpose), motion.coriolis_xi)


def test_one_link_has_no_coriolis_term():
    """One revolute joint: nothing changes but the angle."""
    single = moving_chain(1, 5)
    close(Motion(single).coriolis_nu, [0.0])
