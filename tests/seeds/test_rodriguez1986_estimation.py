"""rodriguez1986, Section 9 and Table 6.1: the arm as an estimation problem, solved with real estimators.

The model is x(k) = phi x(k-1) + w(k), tau(k) = H x(k) without measurement noise, w(k) white with mean xi(k) and
covariance M(k). Three estimators that know nothing of mechanics (a textbook Kalman filter, a Rauch-Tung-Striebel
smoother, conditioning of the joint Gaussian distribution) are compared with the sweeps of Section 8 and with linkwise.
The arms are at rest, so that eta = 0 as Section 9 assumes; xi holds gravity and other forces on the links.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import linkwise as lw
from tests.seeds.rodriguez1986 import (
    Case,
    accelerations,
    biases,
    inward_filter,
    moving_arm,
    outward_smoother,
    rows,
    spatial_forces,
)
from tests.seeds.tip_to_base import close, differ, reversed_both, to_base

I6 = np.eye(6)
ARMS_AT_REST = pytest.mark.parametrize(
    "which", [(6, 1, "world"), (4, 2, "link"), (1, 3, "world"), (3, 5, "link", True)], ids=str
)


def arm_at_rest(n: int, seed: int, axes: str, library: bool = False) -> Case:
    case = moving_arm(n, seed, axes, "R", True, library)
    close(biases(case)[1][1:], np.zeros((n, 6)))
    return case


def sweeps(case: Case, tau) -> tuple[SimpleNamespace, SimpleNamespace]:
    """The filter and the smoother of Section 8 without bias accelerations."""
    xi, nothing = biases(case)[0], np.zeros((case.arm.n + 1, 6))
    s = inward_filter(case.arm, tau, xi, nothing)
    return s, outward_smoother(case.arm, s, nothing)


# Estimators -----------------------------------------------------------------------------------------------------------


def kalman_filter(F, u, Q, C, y) -> SimpleNamespace:
    """x(k) = F x(k-1) + w(k), mean u and covariance Q; y(k) = C x(k); x(0) = 0. Joseph's form of the update."""
    n = len(F) - 1
    out = SimpleNamespace(
        x_pred=rows(n, 6), P_pred=rows(n, 6, 6), x=rows(n, 6), P=rows(n, 6, 6), gain=rows(n, 6), S=rows(n)
    )
    out.x[0], out.P[0] = 0.0, 0.0
    for k in range(1, n + 1):
        out.x_pred[k] = F[k] @ out.x[k - 1] + u[k]
        out.P_pred[k] = F[k] @ out.P[k - 1] @ F[k].T + Q[k]
        S = C[k] @ out.P_pred[k] @ C[k].T
        gain = np.linalg.solve(S, C[k] @ out.P_pred[k]).T
        out.x[k] = out.x_pred[k] + gain @ (y[k] - C[k] @ out.x_pred[k])
        joseph = I6 - gain @ C[k]
        out.P[k] = joseph @ out.P_pred[k] @ joseph.T
        out.gain[k], out.S[k] = gain[:, 0], S.item()
    return out


def rauch_tung_striebel(F, filtered: SimpleNamespace) -> tuple[np.ndarray, np.ndarray]:
    """Smoothed means and covariances."""
    x, P = filtered.x.copy(), filtered.P.copy()
    for k in range(len(F) - 2, 0, -1):
        gain = np.linalg.solve(filtered.P_pred[k + 1], F[k + 1] @ filtered.P[k]).T
        x[k] += gain @ (x[k + 1] - filtered.x_pred[k + 1])
        P[k] += gain @ (P[k + 1] - filtered.P_pred[k + 1]) @ gain.T
    return x, P


class JointGaussian:
    """All states and measurements of the model as one Gaussian vector; conditioning by one dense solve."""

    def __init__(self, case: Case, mean_w) -> None:
        phi, self.H = case.arm.stacked_phi, case.arm.diagonal(case.arm.H)
        self.mean = phi @ mean_w[1:].ravel()
        self.covariance = phi @ case.arm.diagonal(case.arm.M) @ phi.T
        self.tau = case.tau[1:]

    def given(self, m: int) -> tuple[np.ndarray, np.ndarray]:
        """Mean (n, 6) and covariance (6n, 6n) of the states, tau(1..m) known."""
        H = self.H[:m]
        cross = self.covariance @ H.T
        gain = np.linalg.solve(H @ cross, cross.T).T
        mean = self.mean + gain @ (self.tau[:m] - H @ self.mean)
        return mean.reshape(-1, 6), self.covariance - gain @ cross.T


def model(case: Case) -> tuple:
    """F, u, Q, C of the estimators: the right column of Table 6.1."""
    arm, (xi, _) = case.arm, biases(case)
    F, Q, C = rows(arm.n, 6, 6), rows(arm.n, 6, 6), rows(arm.n, 1, 6)
    for k in case.links:
        F[k], Q[k], C[k] = arm.phi(k, k - 1), arm.M[k], arm.H[k]
    return F, xi, Q, C


def block(k: int) -> slice:
    return slice(6 * k - 6, 6 * k)


# The analogy ----------------------------------------------------------------------------------------------------------


@ARMS_AT_REST
@pytest.mark.seed("rodriguez1986", "Table 6.1", by="library")
@pytest.mark.seed("rodriguez1986", "Section 9", by="library")
@pytest.mark.seed("rodriguez1986", "9.14", by="library")
def test_a_kalman_smoother_solves_the_arm(which):
    """Every row of Table 6.1: transition, process covariance, input and output map and measurements in; the smoothed
    states are the spatial forces, and the co-states, (P-)^-1 (smoothed - predicted), linkwise's accelerations."""
    case = arm_at_rest(*which)
    F, xi, Q, C = model(case)
    filtered = kalman_filter(F, xi, Q, C, case.tau)
    x, _ = rauch_tung_striebel(F, filtered)
    at_rest = np.zeros(case.arm.n)
    motion = case.arm.from_links(lw.link_accelerations(case.mech, case.q, at_rest, to_base(case.u_ddot)))
    co_states = np.linalg.solve(filtered.P_pred[1:], (x - filtered.x_pred)[1:, :, None])[..., 0]
    close(co_states, motion[1:], 1e-9)
    close(x[1:], spatial_forces(case.arm, motion, xi)[1:])
    for k in case.links:  # they solve (6.1), (6.3), (6.4) and (6.5): the jump of the co-state is along the joint
        close(x[k], F[k] @ x[k - 1] + Q[k] @ motion[k] + xi[k])
        after = F[k + 1].T @ co_states[k] if k < case.arm.n else np.zeros(6)
        close(co_states[k - 1] - after, C[k][0] * case.u_ddot[k], 1e-9)
        close((C[k] @ x[k]).item(), case.tau[k])
    u_ddot = lw.forward_dynamics(case.mech, case.q, at_rest, to_base(case.tau), case.wrenches)
    close(sweeps(case, case.tau)[1].u_ddot[1:], u_ddot[::-1])


@ARMS_AT_REST
@pytest.mark.seed("rodriguez1986", "Section 9", by="library")
@pytest.mark.seed("rodriguez1986", "9.5", by="library")
@pytest.mark.seed("rodriguez1986", "9.8", by="library")
@pytest.mark.seed("rodriguez1986", "9.9", by="library")
@pytest.mark.seed("rodriguez1986", "9.11", by="library")
def test_mechanics_and_kalman_filter_agree_in_every_quantity(which):
    """Printed (9.9) has H and H^T exchanged, which does not even fit together."""
    case = arm_at_rest(*which)
    s, out = sweeps(case, case.tau)
    F, xi, Q, C = model(case)
    filtered = kalman_filter(F, xi, Q, C, case.tau)
    close(s.z_minus[1:], filtered.x_pred[1:])
    close(s.P_minus[1:], filtered.P_pred[1:])
    close(s.P_plus[1:], filtered.P[1:])
    close(s.D[1:], filtered.S[1:])
    smoothed, S = rauch_tung_striebel(F, filtered)
    for k in case.links:
        H, P = C[k], s.P_minus[k]
        close((case.tau[k] - H @ filtered.x_pred[k]).item(), s.e_minus[k])  # (9.5)
        D_inverse = np.linalg.inv(H @ P @ H.T)
        close((P @ H.T @ D_inverse)[:, 0], filtered.gain[k])  # (9.8)
        close(P - P @ H.T @ D_inverse @ H @ P, filtered.P[k])  # (9.9)
        with pytest.raises(ValueError, match="mismatch"):
            P @ H @ D_inverse @ H.T @ P  # (9.9) as printed
        close(s.z_minus[k] + s.G[k] * s.e_minus[k], filtered.x[k])  # (9.11)
        close(s.z_minus[k] + P @ out.minus[k], smoothed[k])  # (9.14) with the mechanics' co-states
        close(s.z_plus[k] + s.P_plus[k] @ out.plus[k], smoothed[k])


@ARMS_AT_REST
@pytest.mark.seed("rodriguez1986", "9.4", by="library")
@pytest.mark.seed("rodriguez1986", "9.6", by="library")
@pytest.mark.seed("rodriguez1986", "9.10", by="library")
@pytest.mark.seed("rodriguez1986", "9.12", by="library")
@pytest.mark.seed("rodriguez1986", "9.13", by="library")
@pytest.mark.seed("rodriguez1986", "9.14", by="library")
@pytest.mark.seed("rodriguez1986", "9.15", by="library")
@pytest.mark.seed("rodriguez1986", "9.16", by="library")
@pytest.mark.seed("rodriguez1986", "9.17", by="library")
@pytest.mark.seed("rodriguez1986", "9.18", by="library")
@pytest.mark.seed("rodriguez1986", "9.20", by="library")
@pytest.mark.seed("rodriguez1986", "9.21", by="library")
def test_mechanics_gives_conditional_expectations(which):
    """z-, z+ and x are the means of the state given the measurements so far, up to here, and all; P-, P+ and S the
    covariances. (9.18) holds on both sides of a joint."""
    case = arm_at_rest(*which)
    arm, n = case.arm, case.arm.n
    s, _ = sweeps(case, case.tau)
    gaussian = JointGaussian(case, biases(case)[0])
    x_all, S_all = gaussian.given(n)
    Lambda_minus, Lambda_plus = co_state_covariances(case, s)
    lambda_plus = np.zeros(6)
    for k in range(n, 0, -1):
        before, P_before = gaussian.given(k - 1)
        close(s.z_minus[k], before[k - 1])  # (9.4)
        close(s.P_minus[k], P_before[block(k), block(k)])  # (9.6)
        upto, P_upto = gaussian.given(k)
        close(s.z_plus[k], upto[k - 1])  # (9.12)
        close(s.P_plus[k], P_upto[block(k), block(k)])  # (9.10)
        H = arm.H[k][0]
        lambda_minus = (I6 - np.outer(s.G[k], H)).T @ lambda_plus + H * s.e_plus[k]  # (9.16)
        for z, P, lam, Lambda in (
            (s.z_minus[k], s.P_minus[k], lambda_minus, Lambda_minus[k]),
            (s.z_plus[k], s.P_plus[k], lambda_plus, Lambda_plus[k]),
        ):
            close(z + P @ lam, x_all[k - 1])  # (9.13), (9.14)
            close(P - P @ Lambda @ P, S_all[block(k), block(k)])  # (9.17), (9.18)
        lambda_plus = arm.phi(k, k - 1).T @ lambda_minus  # (9.15)


def co_state_covariances(case: Case, s: SimpleNamespace) -> tuple[np.ndarray, np.ndarray]:
    """(9.20), (9.21): Lambda- and Lambda+."""
    arm, n = case.arm, case.arm.n
    minus, plus = rows(n, 6, 6), rows(n, 6, 6)
    plus[n] = 0.0
    for k in range(n, 0, -1):
        H = arm.H[k][0]
        rest = I6 - np.outer(s.G[k], H)
        minus[k] = rest.T @ plus[k] @ rest + np.outer(H, H) / s.D[k]
        plus[k - 1] = arm.phi(k, k - 1).T @ minus[k] @ arm.phi(k, k - 1)
    return minus, plus


@ARMS_AT_REST
@pytest.mark.seed("rodriguez1986", "9.1", by="library")
@pytest.mark.seed("rodriguez1986", "9.2", by="library")
@pytest.mark.seed("rodriguez1986", "9.3", by="library")
@pytest.mark.seed("rodriguez1986", "9.6", by="library")
@pytest.mark.seed("rodriguez1986", "9.7", by="library")
@pytest.mark.seed("rodriguez1986", "9.10", by="library")
@pytest.mark.seed("rodriguez1986", "9.17", by="library")
@pytest.mark.seed("rodriguez1986", "9.18", by="library")
@pytest.mark.seed("rodriguez1986", "9.19", by="library")
@pytest.mark.seed("rodriguez1986", "9.20", by="library")
@pytest.mark.seed("rodriguez1986", "9.21", by="library")
def test_expectations_over_an_ensemble(which):
    """Every E(...) of Section 9 as an average over arms that run the mechanics on measurements of their own.

    The members' w are mean plus and minus scaled columns of a square root of the covariance: their average and
    covariance are exact, not sampled, and so are those of all that is linear in w.
    """
    case = arm_at_rest(*which)
    arm, n = case.arm, case.arm.n
    xi = biases(case)[0]
    root = np.linalg.cholesky(arm.diagonal(arm.M)) * np.sqrt(6 * n)
    members = xi[1:].ravel() + np.hstack([root, -root]).T
    records = [run_member(case, member.reshape(n, 6)) for member in members]

    def average_square(name: str, k: int) -> np.ndarray:
        values = np.array([np.atleast_1d(record[name][k]) for record in records])
        close(values.mean(axis=0), np.zeros(values.shape[1]))  # nothing is biased
        return values.T @ values / len(values)

    s, _ = sweeps(case, case.tau)
    Lambda_minus, Lambda_plus = co_state_covariances(case, s)
    for k in case.links:
        close(average_square("x - z-", k), s.P_minus[k])  # (9.6)
        close(average_square("e-", k).item(), s.D[k])  # (9.7)
        close(average_square("x - z+", k), s.P_plus[k])  # (9.10)
        close(average_square("lambda-", k), Lambda_minus[k])  # (9.19) with (9.21)
        close(average_square("lambda+", k), Lambda_plus[k])  # (9.19) with (9.20)
        S = average_square("x - smoothed", k)  # (9.17)
        close(s.P_minus[k] - s.P_minus[k] @ Lambda_minus[k] @ s.P_minus[k], S)  # (9.18)
    # (9.3): with this mean and this covariance of w, and with no others, linkwise's torques and mass matrix are the
    # mean and covariance of what is measured.
    tau = np.array([record["tau"][1:] for record in records])
    at_rest, mass_matrix = np.zeros(n), reversed_both(lw.mass_matrix(case.mech, case.q))
    close(tau.mean(axis=0), lw.inverse_dynamics(case.mech, case.q, at_rest, at_rest, case.wrenches)[::-1])
    close(np.atleast_2d(np.cov(tau.T, bias=True)), mass_matrix)
    for mean, spread in ((np.zeros_like(xi), root), (xi, np.linalg.cholesky(arm.diagonal(arm.M + np.eye(6))))):
        others = mean[1:].ravel() + np.hstack([spread, -spread]).T
        found = np.array([run_member(case, other.reshape(n, 6))["tau"][1:] for other in others])
        covariance = np.atleast_2d(np.cov(found.T, bias=True))
        differ(np.hstack([found.mean(axis=0), covariance.ravel()]), np.hstack([tau.mean(axis=0), mass_matrix.ravel()]))


def run_member(case: Case, w: np.ndarray) -> dict[str, np.ndarray]:
    """One realization of (9.1) and (9.2), filtered and smoothed by the mechanics."""
    arm, x, tau = case.arm, rows(case.arm.n, 6), rows(case.arm.n)
    x[0] = 0.0
    for k in case.links:
        x[k] = arm.phi(k, k - 1) @ x[k - 1] + w[k - 1]  # (9.1)
        tau[k] = (arm.H[k] @ x[k]).item()  # (9.2)
    s, out = sweeps(case, tau)
    smoothed = s.z_minus + np.einsum("kij,kj->ki", s.P_minus, out.minus)
    return {
        "x - z-": x - s.z_minus, "x - z+": x - s.z_plus, "x - smoothed": x - smoothed,
        "e-": s.e_minus, "lambda-": out.minus, "lambda+": out.plus, "tau": tau,
    }  # fmt: skip


@pytest.mark.seed("rodriguez1986", "Section 9", by="library")
@pytest.mark.parametrize("axes", ["world", "link"])
def test_bias_accelerations_shift_the_mean_of_the_process(axes):
    """The arm in motion, which Section 9 leaves out: eta weights the states in the exponent of their density, which
    adds M(k) sum phi^T eta, the accelerations with the joints' own left out, to the mean of w(k)."""
    case = moving_arm(6, 1, axes)
    xi, eta = biases(case)
    propagated, _ = accelerations(case.arm, np.zeros(7), eta)
    mean_w = rows(6, 6)
    for k in case.links:
        mean_w[k] = xi[k] + case.arm.M[k] @ propagated[k]
    v, a = to_base(case.u_dot), to_base(case.u_ddot)
    motion = case.arm.from_links(lw.link_accelerations(case.mech, case.q, v, a))
    close(JointGaussian(case, mean_w).given(6)[0], spatial_forces(case.arm, motion, xi)[1:])
