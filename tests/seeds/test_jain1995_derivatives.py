"""jain1995, Section 6: time derivatives of the operators along the motion.

Inertial derivatives are those of components along the world's axes, local ones those of components along the axes of
the link; both are taken of the operators themselves by a complex step in time.
"""

from __future__ import annotations

import numpy as np
import pytest

from .jain1995 import Moving, moving_chains
from .tip_to_base import close, differ, results, spatial_tilde

TIGHT = 1e-11


def rots(arm) -> np.ndarray:
    """(6n, 6n): from link axes to the world's, link by link."""
    return arm.diagonal([np.kron(np.eye(2), rot) for rot in arm.rotation])


def local(chain: Moving, in_link_axes) -> np.ndarray:
    """The rate of in_link_axes(R, operators) along the motion, R from ``rots``: a local derivative in link axes."""
    return chain.dot(lambda arm, x: in_link_axes(rots(arm), x))


def local_P(chain: Moving) -> np.ndarray:
    """P with a ring: the derivative of P's components in link axes, in the world's axes."""
    R = rots(chain.arm)
    return R @ local(chain, lambda R, x: R.T @ x.P @ R) @ R.T


@results("jain1995", "6.1", "6.2", "6.3", by="library")
@moving_chains
def test_inertial_and_local_derivatives(chain):
    """x_dot = x_ring + Omega~ x, with Omega = [omega; 0]; tried on the gains G(k), which change in both senses."""
    R = rots(chain.arm)
    inertial, ring = chain.dot(lambda arm, x: x.G), R @ local(chain, lambda R, x: R.T @ x.G)
    close(inertial, ring + chain.Omega @ chain.x.G, TIGHT)  # (6.1)
    differ(inertial, ring)
    velocities = chain.arm.per_link(chain.V)
    rotations = chain.dot(lambda arm, x: arm.rotation)
    for k in range(1, chain.n + 1):
        omega = velocities[k][:3]
        Omega = spatial_tilde([*omega, 0.0, 0.0, 0.0])  # (6.2)
        close(chain.block(chain.Omega, k), Omega)
        close(Omega[:3, :3], rotations[k] @ chain.arm.rotation[k].T, TIGHT)
        close(chain.block(chain.Omega_delta, k), spatial_tilde(chain.arm.H[k][0] * chain.theta_dot[k - 1]))  # (6.3)
        outer = velocities[k + 1][:3] if k < chain.n else np.zeros(3)
        close(omega - outer, chain.arm.h[k] * chain.theta_dot[k - 1])


@results("jain1995", "Table 3", by="library")
@moving_chains
def test_table_3(chain):
    """The left column reads H, M, D = H P H*, G, tau_bar = I - G H; printed is [I - G] H."""
    x, R, Omega, P_ring = chain.x, rots(chain.arm), chain.Omega, local_P(chain)
    inverse, nothing = np.linalg.inv(x.D), np.zeros
    close(local(chain, lambda R, x: x.H @ R), nothing(x.H.shape), TIGHT)
    close(chain.dot(lambda arm, x: x.H), -x.H @ Omega, TIGHT)
    close(local(chain, lambda R, x: R.T @ x.M @ R), nothing(x.M.shape), TIGHT)
    close(chain.dot(lambda arm, x: x.M), Omega @ x.M - x.M @ Omega, TIGHT)
    close(x.D, x.H @ x.P @ x.H.T)
    close(chain.dot(lambda arm, x: x.D), x.H @ P_ring @ x.H.T, TIGHT)
    G_ring = R @ local(chain, lambda R, x: R.T @ x.G)
    close(G_ring, x.tau_bar @ P_ring @ x.H.T @ inverse, TIGHT)
    close(chain.dot(lambda arm, x: x.G), G_ring + Omega @ x.G, TIGHT)
    close(x.tau_bar, x.I6 - x.G @ x.H)
    with pytest.raises(ValueError):  # as printed
        _ = (x.I6 - x.G) @ x.H
    tau_ring = R @ local(chain, lambda R, x: R.T @ x.tau_bar @ R) @ R.T
    close(tau_ring, -G_ring @ x.H, TIGHT)
    close(chain.dot(lambda arm, x: x.tau_bar), tau_ring + Omega @ x.tau_bar - x.tau_bar @ Omega, TIGHT)


@results("jain1995", "Algorithm 6.1", "6.4", "6.5", "6.6", by="library")
@moving_chains
def test_algorithm_6_1(chain):
    """The loop (6.5) is printed without the star of the second psi; (6.4) has it."""
    x, P, lambda_dot, P_ring = chain.x, chain.x.parts.P, chain.lambda_dot, local_P(chain)
    delta, outer = chain.Omega_delta, chain.Omega_s
    close(lambda_dot, P_ring + delta @ x.P - x.P @ delta, TIGHT)  # (6.4)
    close(P_ring, x.E_psi @ lambda_dot @ x.E_psi.T, TIGHT)

    def loop(second):
        lam, ring = [np.zeros((6, 6))], [None]
        for k in range(1, chain.n + 1):
            psi = x.parts.psi[k - 1] if k > 1 else np.zeros((6, 6))
            ring.append(psi @ lam[k - 1] @ second(psi))
            rot = chain.block(delta, k)
            lam.append(ring[k] + rot @ P[k] - P[k] @ rot)
        return chain.arm.diagonal(lam), chain.arm.diagonal(ring)

    lam, ring = loop(np.transpose)  # (6.5)
    close(lam, lambda_dot, TIGHT)
    close(ring, P_ring, TIGHT)
    differ(loop(lambda psi: psi)[0], lambda_dot)  # as printed
    P_dot = chain.dot(lambda arm, x: x.P)
    close(P_dot, P_ring + chain.Omega @ x.P - x.P @ chain.Omega, TIGHT)  # (6.6)
    close(P_dot, lambda_dot + outer @ x.P - x.P @ outer, TIGHT)
    # lambda_dot(k) does not depend on the joints on the inward path.
    halted = chain.arm.joints.T @ np.where(np.arange(chain.n) < chain.n - 1, chain.theta_dot, 0.0)
    for k in range(1, chain.n):
        close(chain.block(Moving(chain.mech, chain.q, halted).lambda_dot, k), chain.block(lambda_dot, k))


@results("jain1995", "Identity 6.1", "6.7", by="library")
@moving_chains
def test_rate_of_the_innovations_factor(chain):
    """Printed with tau for tau_bar, which (A.29) and (A.30) have."""
    x, root = chain.x, np.linalg.inv(chain.x.root_D)
    form = lambda tau: (  # noqa: E731
        x.H @ x.phi @ (chain.Omega_delta @ x.phi_tilde @ x.P + 0.5 * (x.I6 + tau) @ chain.lambda_dot) @ x.H.T @ root
    )
    m_dot = chain.dot(lambda arm, x: x.m)
    close(form(x.tau_bar), m_dot, TIGHT)
    differ(form(x.tau), m_dot)
    close(m_dot @ x.m.T + x.m @ m_dot.T, chain.dot(lambda arm, x: x.mass_matrix), TIGHT)


@results("jain1995", "Identity 6.2", "6.8", "6.9", by="library")
@moving_chains
def test_rate_of_the_innovations_factor_times_total_rates(chain):
    """Every step of the proof, with tau_bar where the print has tau; from (B.4) on it holds for this V alone."""
    x, V, lam, delta = chain.x, chain.V, chain.lambda_dot, chain.Omega_delta
    left, root = x.H @ x.phi, np.linalg.inv(x.root_D)
    nu, I6, P, K, E = x.m.T @ chain.theta_dot, x.I6, x.P, x.K, x.E_psi
    expected = chain.dot(lambda arm, x: x.m) @ nu
    first = lambda tau: left @ (delta @ x.phi_tilde @ P + 0.5 * (I6 + tau) @ lam) @ x.H.T  # noqa: E731
    close(first(x.tau_bar) @ root @ nu, expected, TIGHT)
    close(first(x.tau_bar) @ x.G.T @ x.phi.T @ x.H.T @ chain.theta_dot, expected, TIGHT)
    close(first(x.tau_bar) @ x.G.T @ V, expected, TIGHT)
    differ(first(x.tau) @ x.G.T @ V, expected)  # as printed
    gain = delta @ x.phi @ K @ x.H @ P
    close(left @ (gain + 0.5 * (I6 + x.tau_bar) @ lam @ x.tau.T) @ V, expected, TIGHT)
    differ(left @ (gain + 0.5 * (I6 + x.tau) @ lam @ x.tau.T) @ V, expected)  # as printed
    close(left @ (gain + 0.5 * (I6 + E) @ lam @ (I6 - E.T)) @ V, expected, TIGHT)
    close(left @ (gain + 0.5 * (lam - E @ lam @ E.T + E @ lam - lam @ E.T)) @ V, expected, TIGHT)
    close(left @ (gain + 0.5 * (delta @ P - P @ delta + E @ lam - lam @ E.T)) @ V, expected, TIGHT)  # (6.8), (6.9)
