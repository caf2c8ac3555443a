"""The recursions of rodriguez1986, line by line, and the arms they are tried on.

Convention of accelerations: body-fixed. lambda = [omega_dot; v_dot] with v_dot the derivative of the velocity's
components in link axes (Section 3), so that the inertial acceleration of a point is v_dot + omega x v. This is what
``lw.link_accelerations`` gives. The biases xi and eta below belong to this convention and to no other; gravity is an
external force at the mass centres. All arrays have row k for link or joint k, counted from the tip.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

import linkwise as lw
from tests.seeds.tip_to_base import TipToBase, random_arm, to_base, to_tip

U6 = np.eye(6)
CASES = pytest.mark.parametrize("case", [(6, 1, "world"), (6, 1, "link"), (5, 2, "world"), (1, 3, "world")], indirect=True)


@dataclass
class Case:
    """An arm in motion, with known accelerations and the forces that go with them, from the library."""

    mech: lw.Mechanism
    arm: TipToBase
    q: np.ndarray  # base to tip, as the library has it
    u_dot: np.ndarray
    u_ddot: np.ndarray
    T: np.ndarray  # external moments on the links
    f: np.ndarray  # external forces at the mass centres, gravity included
    wrenches: np.ndarray  # the same without gravity as the library wants them
    tau: np.ndarray

    @property
    def links(self) -> range:
        return range(1, self.arm.n + 1)


def moving_arm(n: int, seed: int, axes: str = "world", kinds: str = "R", at_rest: bool = False) -> Case:
    rng = np.random.default_rng(seed)
    mech = random_arm(n, seed, kinds)
    q, v = lw.random_state(mech, rng)
    v, a = v * (not at_rest), rng.normal(size=n)
    arm = TipToBase(mech, q, axes)
    T, f = rng.normal(size=(2, n + 1, 3))
    wrench = np.hstack([T + np.cross(arm.p, f), f])
    turn = arm.rotation.transpose(0, 2, 1) if axes == "world" else np.broadcast_to(np.eye(3), (n + 1, 3, 3))
    wrenches = to_base(np.einsum("kij,ksj->ksi", turn, wrench.reshape(n + 1, 2, 3)).reshape(n + 1, 6))
    gravity = np.stack([arm.gravity if axes == "world" else arm.rotation[k].T @ arm.gravity for k in range(n + 1)])
    tau = lw.inverse_dynamics(mech, q, v, a, wrenches)
    f = f + arm.mass[:, None] * gravity
    return Case(mech, arm, q, to_tip(v), to_tip(a), T, f, wrenches, to_tip(tau))


@pytest.fixture
def case(request) -> Case:
    return moving_arm(*request.param)


def close(actual, expected, tolerance: float = 1e-10) -> bool:
    """Equal up to ``tolerance`` relative to the largest element."""
    actual, expected = np.asarray(actual, dtype=float), np.asarray(expected, dtype=float)
    assert actual.shape == expected.shape
    return bool(np.abs(actual - expected).max() <= tolerance * max(1.0, np.abs(expected).max()))


def rows(n: int, *shape: int) -> np.ndarray:
    """NaN for joints 0..n."""
    return np.full((n + 1, *shape), np.nan)


# Sections 4 and 5 -----------------------------------------------------------------------------------------------------


def velocities(arm: TipToBase, u_dot) -> tuple[np.ndarray, np.ndarray]:
    """(5.1)-(5.3): V- and V+; V+ of joint k-1 is of link k (in the axes of link k-1 if axes are the links')."""
    minus, plus = rows(arm.n, 6), rows(arm.n, 6)
    plus[arm.n] = 0.0
    for k in range(arm.n, 0, -1):
        minus[k] = plus[k] + arm.H(k)[0] * u_dot[k]
        plus[k - 1] = arm.phi(k, k - 1).T @ minus[k]
    return minus, plus


def bias_forces(arm: TipToBase, V_minus, T, f) -> np.ndarray:
    """(4.4), with the mass centre's velocity in the force row."""
    xi = rows(arm.n, 6)
    for k in range(1, arm.n + 1):
        m, p, omega, v_joint = arm.mass[k], arm.p[k], V_minus[k, :3], V_minus[k, 3:]
        moment = np.cross(omega, arm.M(k)[:3, :3] @ omega) + m * np.cross(p, np.cross(omega, v_joint))
        v_centre = v_joint + np.cross(omega, p)
        xi[k] = np.concatenate([moment - T[k] - np.cross(p, f[k]), m * np.cross(omega, v_centre) - f[k]])
    return xi


def bias_accelerations(arm: TipToBase, V_plus, u_dot) -> np.ndarray:
    """(5.6)."""
    eta = rows(arm.n, 6)
    for k in range(1, arm.n + 1):
        h, omega, v = arm.axis(k), V_plus[k, :3], V_plus[k, 3:]
        eta[k] = np.concatenate([np.cross(omega, h * u_dot[k]), np.cross(v, h * u_dot[k])])
    return eta


def biases(case: Case) -> tuple[np.ndarray, np.ndarray]:
    """xi and eta of an arm in motion."""
    V_minus, V_plus = velocities(case.arm, case.u_dot)
    return bias_forces(case.arm, V_minus, case.T, case.f), bias_accelerations(case.arm, V_plus, case.u_dot)


def accelerations(arm: TipToBase, u_ddot, eta) -> tuple[np.ndarray, np.ndarray]:
    """(5.4), (5.5): lambda- and lambda+."""
    minus, plus = rows(arm.n, 6), rows(arm.n, 6)
    plus[arm.n] = 0.0
    for k in range(arm.n, 0, -1):
        minus[k] = plus[k] + arm.H(k)[0] * u_ddot[k] + eta[k]
        plus[k - 1] = arm.phi(k, k - 1).T @ minus[k]
    return minus, plus


def spatial_forces(arm: TipToBase, lambda_minus, xi) -> np.ndarray:
    """(4.1)-(4.3): x- = x+."""
    x = rows(arm.n, 6)
    x[0] = 0.0
    for k in range(1, arm.n + 1):
        x[k] = arm.phi(k, k - 1) @ x[k - 1] + arm.M(k) @ lambda_minus[k] + xi[k]
    return x


# Result 8.1 -----------------------------------------------------------------------------------------------------------


def inward_filter(arm: TipToBase, tau, xi, eta) -> SimpleNamespace:
    """(8.2)-(8.9), with H z in the innovations."""
    n = arm.n
    s = SimpleNamespace(
        z_minus=rows(n, 6), z_plus=rows(n, 6), P_minus=rows(n, 6, 6), P_plus=rows(n, 6, 6),
        D=rows(n), G=rows(n, 6), e_minus=rows(n), e_plus=rows(n),
    )  # fmt: skip
    s.z_plus[0], s.P_plus[0] = 0.0, 0.0
    for k in range(1, n + 1):
        phi, H = arm.phi(k, k - 1), arm.H(k)[0]
        s.z_minus[k] = phi @ s.z_plus[k - 1] + xi[k]
        s.P_minus[k] = phi @ s.P_plus[k - 1] @ phi.T + arm.M(k)
        s.D[k] = H @ s.P_minus[k] @ H
        s.G[k] = s.P_minus[k] @ H / s.D[k]
        s.e_minus[k] = tau[k] - H @ s.z_minus[k]
        s.P_plus[k] = s.P_minus[k] - np.outer(s.P_minus[k] @ H, H @ s.P_minus[k]) / s.D[k]
        s.z_plus[k] = s.z_minus[k] + s.G[k] * s.e_minus[k] + s.P_plus[k] @ eta[k]
        s.e_plus[k] = s.e_minus[k] / s.D[k]
    return s


def outward_smoother(arm: TipToBase, s: SimpleNamespace, eta) -> SimpleNamespace:
    """(8.10)-(8.13), with the first form of (8.13)."""
    n = arm.n
    out = SimpleNamespace(minus=rows(n, 6), plus=rows(n, 6), u_ddot=rows(n))
    out.plus[n] = 0.0
    for k in range(n, 0, -1):
        out.u_ddot[k] = s.e_plus[k] - s.G[k] @ (out.plus[k] + eta[k])
        out.minus[k] = out.plus[k] + eta[k] + arm.H(k)[0] * out.u_ddot[k]
        out.plus[k - 1] = arm.phi(k, k - 1).T @ out.minus[k]
    return out
