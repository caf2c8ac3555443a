"""rodriguez1986, Section 8: forward dynamics by an inward filter and an outward smoother (Result 8.1).

Velocity and gravity biases are inside the two sweeps. Accelerations are body-fixed and gravity is an external force,
as in ``tests/seeds/rodriguez1986.py``.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import linkwise as lw
from tests.seeds.rodriguez1986 import (
    ARMS,
    Case,
    bias_forces,
    biases,
    force_at_held_base,
    inward_filter,
    moving_arm,
    outward_smoother,
    rows,
    spatial_forces,
    velocities,
)
from tests.seeds.tip_to_base import close, differ, reversed_both, tilde, to_base, to_tip

I6 = np.eye(6)


def exact(case: Case) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """x, lambda- and lambda+ from linkwise's accelerations."""
    arm, (xi, _) = case.arm, biases(case)
    minus = arm.from_links(lw.link_accelerations(case.mech, case.q, to_base(case.u_dot), to_base(case.u_ddot)))
    plus = rows(arm.n, 6)
    plus[arm.n] = 0.0
    for k in case.links:
        plus[k - 1] = arm.phi(k, k - 1).T @ minus[k]
    return spatial_forces(arm, minus, xi), minus, plus


@ARMS
@pytest.mark.seed("rodriguez1986", "Result 8.1", by="library")
@pytest.mark.seed("rodriguez1986", "8.2", by="library")
@pytest.mark.seed("rodriguez1986", "8.3", by="library")
@pytest.mark.seed("rodriguez1986", "8.4", by="library")
@pytest.mark.seed("rodriguez1986", "8.6", by="library")
@pytest.mark.seed("rodriguez1986", "8.7", by="library")
@pytest.mark.seed("rodriguez1986", "8.8", by="library")
@pytest.mark.seed("rodriguez1986", "8.10", by="library")
@pytest.mark.seed("rodriguez1986", "8.11", by="library")
@pytest.mark.seed("rodriguez1986", "8.12", by="library")
@pytest.mark.seed("rodriguez1986", "8.13", by="library")
def test_filter_and_smoother_are_forward_dynamics(which):
    """Printed (8.6) has the unknown x where z belongs; printed (8.13) has u_dot for u_ddot."""
    case = moving_arm(*which)
    arm = case.arm
    xi, eta = biases(case)
    s = inward_filter(arm, case.tau, xi, eta)
    out = outward_smoother(arm, s, eta)
    v = to_base(case.u_dot)
    expected = to_tip(lw.forward_dynamics(case.mech, case.q, v, to_base(case.tau), case.wrenches))
    close(out.u_ddot[1:], expected[1:])
    close(out.u_ddot[1:], case.u_ddot[1:])
    x, lambda_minus, lambda_plus = exact(case)
    close(out.minus[1:], lambda_minus[1:])
    close(out.plus, lambda_plus)
    for k in case.links:
        H = arm.H[k][0]
        second_form = (I6 - np.outer(s.G[k], H)).T @ (out.plus[k] + eta[k]) + H * s.e_plus[k]
        close(second_form, lambda_minus[k])  # (8.13)
        differ(out.plus[k] + eta[k] + H * case.u_dot[k], lambda_minus[k])  # (8.13) as printed
        differ(case.tau[k] - H @ x[k], s.e_minus[k])  # (8.6) as printed: zero, by (6.5)


@pytest.mark.seed("rodriguez1986", "Result 8.1", by="model")
@pytest.mark.parametrize("drop", ["velocity", "external forces"])
def test_biases_belong_into_the_sweeps(drop):
    """Without the velocity terms, or without gravity and other forces on the links, the accelerations are wrong."""
    case = moving_arm(6, 1, "world")
    still = replace(case, u_dot=0.0 * case.u_dot) if drop == "velocity" else case
    free = replace(still, T=0.0 * case.T, f=0.0 * case.f) if drop == "external forces" else still
    xi, eta = biases(free)
    out = outward_smoother(case.arm, inward_filter(case.arm, case.tau, xi, eta), eta)
    differ(out.u_ddot[1:], case.u_ddot[1:])


@pytest.mark.seed("rodriguez1986", "Result 8.1", by="library")
def test_sliding_joints_are_a_simple_extension():
    """As Section 1 says: H = [0 h^T], and eta is the spatial cross product V+ x H^T u_dot, of which (5.6) is a case."""
    case = moving_arm(6, 4, "world", "RPPR")
    arm = case.arm
    V_minus, V_plus = velocities(arm, case.u_dot)
    eta = rows(arm.n, 6)
    for k in case.links:
        W, V = tilde(V_plus[k, :3]), tilde(V_plus[k, 3:])
        eta[k] = np.block([[W, np.zeros((3, 3))], [V, W]]) @ arm.H[k][0] * case.u_dot[k]
    xi = bias_forces(arm, V_minus, case.T, case.f)
    out = outward_smoother(arm, inward_filter(arm, case.tau, xi, eta), eta)
    close(out.u_ddot[1:], case.u_ddot[1:])


@ARMS
@pytest.mark.seed("rodriguez1986", "8.4", by="library")
@pytest.mark.seed("rodriguez1986", "8.5", by="library")
@pytest.mark.seed("rodriguez1986", "8.9", by="library")
@pytest.mark.seed("rodriguez1986", "8.23", by="library")
@pytest.mark.seed("rodriguez1986", "8.25", by="library")
def test_inertia_sweep(which):
    """P, D and G against dense algebra.

    D(k) is the inertia about joint k of links 1..k with their own joints free: the pivots of the inertia matrix in
    tip-to-base order. (With these joints locked it would be the diagonal element m(k, k), which is larger.)
    P-(k) is what is left of the composite inertia r(k, k) when joints 1..k-1 yield: a Schur complement.
    """
    case = moving_arm(*which)
    arm = case.arm
    s = inward_filter(arm, case.tau, *biases(case))
    m = reversed_both(lw.mass_matrix(case.mech, case.q))
    phi, H = arm.stacked_phi, arm.diagonal(arm.H)
    forces = phi @ arm.diagonal(arm.M) @ phi.T  # of all joints, per unit of acceleration
    for k in case.links:
        outer, me = slice(0, k - 1), slice(6 * k - 6, 6 * k)
        close(s.D[k], m[k - 1, k - 1] - m[k - 1, outer] @ np.linalg.solve(m[outer, outer], m[outer, k - 1]))
        assert k == 1 or s.D[k] < m[k - 1, k - 1]
        row = forces[me] @ H.T
        yielded = row[:, outer] @ np.linalg.solve(m[outer, outer], row[:, outer].T)
        close(s.P_minus[k], forces[me, me] - yielded)  # (8.4) from k-1 to k
        outer_and_me = slice(0, k)
        yielded = row[:, outer_and_me] @ np.linalg.solve(m[outer_and_me, outer_and_me], row[:, outer_and_me].T)
        close(s.P_plus[k], forces[me, me] - yielded)  # (8.9), (8.23)
        h = arm.H[k][0]
        close(s.G[k] * s.D[k], s.P_minus[k] @ h)  # (8.5)
        close(h @ s.G[k], 1.0)
        rest = I6 - np.outer(s.G[k], h)
        close(rest @ s.P_minus[k], s.P_plus[k])  # (8.25)
        close(s.P_minus[k] @ rest.T, s.P_plus[k])
        close(rest @ s.P_minus[k] @ rest.T, s.P_plus[k])
        close(s.P_plus[k] @ h, np.zeros(6))  # nothing resists along the joint


@ARMS
@pytest.mark.seed("rodriguez1986", "8.1", by="library")
@pytest.mark.seed("rodriguez1986", "8.14", by="library")
@pytest.mark.seed("rodriguez1986", "8.15", by="library")
@pytest.mark.seed("rodriguez1986", "8.16", by="library")
@pytest.mark.seed("rodriguez1986", "8.17", by="library")
@pytest.mark.seed("rodriguez1986", "8.18", by="library")
def test_sweep_method_along_the_exact_solution(which):
    """x = z + P lambda on both sides of every joint, with linkwise's motion and the forces that belong to it.

    Printed (8.16) has u_dot for u_ddot.
    """
    case = moving_arm(*which)
    arm, (xi, eta) = case.arm, biases(case)
    s = inward_filter(arm, case.tau, xi, eta)
    x, minus, plus = exact(case)
    for k in case.links:
        H, push = arm.H[k][0], plus[k] + eta[k]
        close(s.z_minus[k] + s.P_minus[k] @ minus[k], x[k])  # (8.1)
        close(s.z_plus[k] + s.P_plus[k] @ plus[k], x[k])
        innovation = case.tau[k] - H @ s.z_minus[k]  # (8.15)
        close(innovation, H @ s.P_minus[k] @ minus[k])  # (8.14)
        close(s.D[k] * case.u_ddot[k], innovation - H @ s.P_minus[k] @ push)  # (8.16)
        differ(s.D[k] * case.u_dot[k], innovation - H @ s.P_minus[k] @ push)  # as printed
        close(case.u_ddot[k], innovation / s.D[k] - s.G[k] @ push)  # (8.17)
        close(minus[k], (I6 - np.outer(s.G[k], H)).T @ push + H * innovation / s.D[k])  # (8.18)


@ARMS
@pytest.mark.seed("rodriguez1986", "8.19", by="library")
@pytest.mark.seed("rodriguez1986", "8.20", by="library")
@pytest.mark.seed("rodriguez1986", "8.21", by="library")
@pytest.mark.seed("rodriguez1986", "8.22", by="library")
@pytest.mark.seed("rodriguez1986", "8.24", by="library")
def test_proof_of_the_filter_equations(which):
    """The identities that the prediction and update of z and P are read from.

    (8.20) and (8.22) are asked of any lambda: that makes (8.3), (8.4), (8.7) and (8.9) the only choice.
    """
    case = moving_arm(*which)
    arm, (xi, eta) = case.arm, biases(case)
    s = inward_filter(arm, case.tau, xi, eta)
    _, minus, plus = exact(case)
    any_lambda = np.random.default_rng(5).normal(size=6)
    for k in case.links:
        phi, M, H = arm.phi(k, k - 1), arm.M[k], arm.H[k][0]
        left = s.z_minus[k] + s.P_minus[k] @ minus[k]
        across = phi @ s.z_plus[k - 1] + phi @ s.P_plus[k - 1] @ plus[k - 1]
        close(left, across + M @ minus[k] + xi[k])  # (8.19)
        for lam in (minus[k], any_lambda):
            right = phi @ s.z_plus[k - 1] + phi @ s.P_plus[k - 1] @ phi.T @ lam + M @ lam + xi[k]
            close(s.z_minus[k] + s.P_minus[k] @ lam, right)  # (8.20)
        close(s.z_plus[k] + s.P_plus[k] @ plus[k], left)  # (8.21)
        rest = I6 - np.outer(s.G[k], H)
        for lam in (plus[k], any_lambda):
            right = s.z_minus[k] + s.P_minus[k] @ rest.T @ (lam + eta[k]) + s.P_minus[k] @ H * s.e_plus[k]
            close(s.z_plus[k] + s.P_plus[k] @ lam, right)  # (8.22)
        # (8.24): z+ is the force at joint k that goes with lambda+ = 0, of links 1..k driven by tau(1..k) alone.
        close(s.z_plus[k], force_at_held_base(case, k, xi, eta))
