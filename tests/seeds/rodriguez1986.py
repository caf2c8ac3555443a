"""The recursions of rodriguez1986, line by line, and the arms they are tried on.

Of an arm that is made of linkwise's operators (``library.LibraryArm``), every quantity of the recursions is computed by
linkwise as well: by the operator expression for it, compiled.

Convention of accelerations: body-fixed. lambda = [omega_dot; v_dot] with v_dot the derivative of the velocity's
components in link axes (Section 3), so that the inertial acceleration of a point is v_dot + omega x v. This is what
``lw.link_accelerations`` gives. The biases xi and eta below belong to this convention and to no other; gravity is an
external force at the mass centres. All arrays have row k for link or joint k, counted from the tip.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest

import linkwise as lw
from linkwise import operators as op
from tests.seeds.library import LibraryArm, of
from tests.seeds.tip_to_base import TipToBase, random_chain, to_base, to_tip

#: Arguments of ``moving_arm``: revolute joints, as in the paper.
LIBRARY = [(5, 2, axes, "R", False, True) for axes in ("world", "link")]  # made of linkwise's operators
ARMS = pytest.mark.parametrize(
    "which", [(6, 1, "world"), (6, 1, "link"), (5, 2, "world"), (1, 3, "world"), *LIBRARY], ids=str
)


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

    def at(self, t: float) -> Case:
        """The same arm after the time t under its constant joint accelerations; forces are left as they are."""
        q = self.q + to_base(self.u_dot) * t + to_base(self.u_ddot) * t**2 / 2.0
        arm = type(self.arm)(self.mech, q, self.arm.axes)
        return replace(self, arm=arm, q=q, u_dot=self.u_dot + self.u_ddot * t)


@cache
def moving_arm(
    n: int, seed: int, axes: str = "world", kinds: str = "R", at_rest: bool = False, library: bool = False
) -> Case:
    rng = np.random.default_rng(seed)
    mech = random_chain(n, seed, kinds)
    q, v = lw.random_state(mech, rng)
    v, a = v * (not at_rest), rng.normal(size=n)
    arm = (LibraryArm if library else TipToBase)(mech, q, axes)
    T, f = rng.normal(size=(2, n + 1, 3))
    wrench = np.hstack([T + np.cross(arm.p, f), f])
    rot = arm.rotation[: n + 1].transpose(0, 2, 1) if axes == "world" else np.broadcast_to(np.eye(3), (n + 1, 3, 3))
    wrenches = to_base(np.einsum("kij,ksj->ksi", rot, wrench.reshape(n + 1, 2, 3)).reshape(n + 1, 6))
    gravity = np.stack([arm.gravity if axes == "world" else arm.rotation[k].T @ arm.gravity for k in range(n + 1)])
    tau = lw.inverse_dynamics(mech, q, v, a, wrenches)
    f = f + arm.mass[:, None] * gravity
    return Case(mech, arm, q, to_tip(v), to_tip(a), T, f, wrenches, to_tip(tau))


def rows(n: int, *shape: int) -> np.ndarray:
    """NaN for joints 0..n."""
    return np.full((n + 1, *shape), np.nan)


RATES, MOMENTS, RESIDUALS = (op.joint_vector(name) for name in ("u", "T", "e"))
XI, ETA, MOTION = (op.link_vector(name) for name in ("xi", "eta", "motion"))


def by_link(arm: LibraryArm, expression: op.Expression, **vectors) -> np.ndarray:
    """(n+1, 6): an expression compiled by linkwise, of vectors whose row k is of joint or link k."""
    found = of(arm, expression, **{name: x[1:].ravel() for name, x in vectors.items()})
    return np.concatenate([rows(0, 6), found.reshape(-1, 6)])


def by_joint(arm: LibraryArm, expression: op.Expression, **vectors) -> np.ndarray:
    """(n+1,): the same, of an expression in joint space."""
    return np.concatenate([rows(0), of(arm, expression, **{k: x[1:].ravel() for k, x in vectors.items()})])


def across_links(arm: TipToBase, minus: np.ndarray) -> np.ndarray:
    """V+ of V-, lambda+ of lambda-: (5.3), (5.5), with the base at rest."""
    plus = rows(arm.n, 6)
    plus[arm.n] = 0.0
    for k in range(1, arm.n + 1):
        plus[k - 1] = arm.phi(k, k - 1).T @ minus[k]
    return plus


# Sections 4 and 5 -----------------------------------------------------------------------------------------------------


def velocities(arm: TipToBase, u_dot) -> tuple[np.ndarray, np.ndarray]:
    """(5.1)-(5.3): V- and V+; V+ of joint k-1 is of link k (in the axes of link k-1 if axes are the links')."""
    if isinstance(arm, LibraryArm):
        minus = by_link(arm, op.phi.T @ op.H.T @ RATES, u=u_dot)
        return minus, across_links(arm, minus)
    minus, plus = rows(arm.n, 6), rows(arm.n, 6)
    plus[arm.n] = 0.0
    for k in range(arm.n, 0, -1):
        minus[k] = plus[k] + arm.H[k][0] * u_dot[k]
        plus[k - 1] = arm.phi(k, k - 1).T @ minus[k]
    return minus, plus


def bias_forces(arm: TipToBase, V_minus, T, f) -> np.ndarray:
    """(4.4), with the mass centre's velocity in the force row."""
    xi = rows(arm.n, 6)
    for k in range(1, arm.n + 1):
        m, p, omega, v_joint = arm.mass[k], arm.p[k], V_minus[k, :3], V_minus[k, 3:]
        moment = np.cross(omega, arm.M[k][:3, :3] @ omega) + m * np.cross(p, np.cross(omega, v_joint))
        v_centre = v_joint + np.cross(omega, p)
        xi[k] = np.concatenate([moment - T[k] - np.cross(p, f[k]), m * np.cross(omega, v_centre) - f[k]])
    return xi


def bias_accelerations(arm: TipToBase, V_plus, u_dot) -> np.ndarray:
    """(5.6)."""
    eta = rows(arm.n, 6)
    for k in range(1, arm.n + 1):
        h, omega, v = arm.h[k], V_plus[k, :3], V_plus[k, 3:]
        eta[k] = np.concatenate([np.cross(omega, h * u_dot[k]), np.cross(v, h * u_dot[k])])
    return eta


def biases(case: Case) -> tuple[np.ndarray, np.ndarray]:
    """xi and eta of an arm in motion."""
    V_minus, V_plus = velocities(case.arm, case.u_dot)
    return bias_forces(case.arm, V_minus, case.T, case.f), bias_accelerations(case.arm, V_plus, case.u_dot)


def accelerations(arm: TipToBase, u_ddot, eta) -> tuple[np.ndarray, np.ndarray]:
    """(5.4), (5.5): lambda- and lambda+."""
    if isinstance(arm, LibraryArm):
        minus = by_link(arm, op.phi.T @ (op.H.T @ RATES + ETA), u=u_ddot, eta=eta)
        return minus, across_links(arm, minus)
    minus, plus = rows(arm.n, 6), rows(arm.n, 6)
    plus[arm.n] = 0.0
    for k in range(arm.n, 0, -1):
        minus[k] = plus[k] + arm.H[k][0] * u_ddot[k] + eta[k]
        plus[k - 1] = arm.phi(k, k - 1).T @ minus[k]
    return minus, plus


def spatial_forces(arm: TipToBase, lambda_minus, xi) -> np.ndarray:
    """(4.1)-(4.3): x- = x+."""
    if isinstance(arm, LibraryArm):
        x = by_link(arm, op.phi @ (op.M @ MOTION + XI), motion=lambda_minus, xi=xi)
        x[0] = 0.0
        return x
    x = rows(arm.n, 6)
    x[0] = 0.0
    for k in range(1, arm.n + 1):
        x[k] = arm.phi(k, k - 1) @ x[k - 1] + arm.M[k] @ lambda_minus[k] + xi[k]
    return x


# Result 8.1 -----------------------------------------------------------------------------------------------------------


def inward_filter(arm: TipToBase, tau, xi, eta) -> SimpleNamespace:
    """(8.2)-(8.9), with H z in the innovations."""
    if isinstance(arm, LibraryArm):
        return _compiled_filter(arm, tau, xi, eta)
    n = arm.n
    s = SimpleNamespace(
        z_minus=rows(n, 6), z_plus=rows(n, 6), P_minus=rows(n, 6, 6), P_plus=rows(n, 6, 6),
        D=rows(n), G=rows(n, 6), e_minus=rows(n), e_plus=rows(n),
    )  # fmt: skip
    s.z_plus[0], s.P_plus[0] = 0.0, 0.0
    for k in range(1, n + 1):
        phi, H = arm.phi(k, k - 1), arm.H[k][0]
        s.z_minus[k] = phi @ s.z_plus[k - 1] + xi[k]
        s.P_minus[k] = phi @ s.P_plus[k - 1] @ phi.T + arm.M[k]
        s.D[k] = H @ s.P_minus[k] @ H
        s.G[k] = s.P_minus[k] @ H / s.D[k]
        s.e_minus[k] = tau[k] - H @ s.z_minus[k]
        s.P_plus[k] = s.P_minus[k] - np.outer(s.P_minus[k] @ H, H @ s.P_minus[k]) / s.D[k]
        s.z_plus[k] = s.z_minus[k] + s.G[k] * s.e_minus[k] + s.P_plus[k] @ eta[k]
        s.e_plus[k] = s.e_minus[k] / s.D[k]
    return s


def _compiled_filter(arm: LibraryArm, tau, xi, eta) -> SimpleNamespace:
    """The same by linkwise: z- = psi (xi + E_phi (G T + P+ eta)), as the recursion (8.3), (8.7) sums up to."""
    z = op.psi @ (XI + op.E_phi @ (op.G @ MOMENTS + op.P_plus @ ETA))
    given, parts = {"T": tau, "xi": xi, "eta": eta}, arm.operators.parts
    s = SimpleNamespace(
        z_minus=by_link(arm, z, **given),
        z_plus=by_link(arm, z + op.G @ (MOMENTS - op.H @ z) + op.P_plus @ ETA, **given),
        e_minus=by_joint(arm, MOMENTS - op.H @ z, **given),
        e_plus=by_joint(arm, op.D.inv @ (MOMENTS - op.H @ z), **given),
        P_minus=np.array([np.full((6, 6), np.nan), *parts.P[1:]]),
        P_plus=np.array(parts.P_plus),
        D=np.array([np.nan, *(d.item() for d in parts.D[1:])]),
        G=np.array([np.full(6, np.nan), *(g[:, 0] for g in parts.G[1:])]),
    )
    s.z_plus[0] = 0.0
    return s


def outward_smoother(arm: TipToBase, s: SimpleNamespace, eta) -> SimpleNamespace:
    """(8.10)-(8.13), with the first form of (8.13); by linkwise it is psi* (tau_bar* eta + H* e+)."""
    if isinstance(arm, LibraryArm):
        motion, given = op.psi.T @ (op.tau_bar.T @ ETA + op.H.T @ RESIDUALS), {"e": s.e_plus, "eta": eta}
        minus = by_link(arm, motion, **given)
        u_ddot = by_joint(arm, RESIDUALS - op.G.T @ (op.E_phi.T @ motion + ETA), **given)
        return SimpleNamespace(minus=minus, plus=across_links(arm, minus), u_ddot=u_ddot)
    n = arm.n
    out = SimpleNamespace(minus=rows(n, 6), plus=rows(n, 6), u_ddot=rows(n))
    out.plus[n] = 0.0
    for k in range(n, 0, -1):
        out.u_ddot[k] = s.e_plus[k] - s.G[k] @ (out.plus[k] + eta[k])
        out.minus[k] = out.plus[k] + eta[k] + arm.H[k][0] * out.u_ddot[k]
        out.plus[k - 1] = arm.phi(k, k - 1).T @ out.minus[k]
    return out


def force_at_held_base(case: Case, k: int, xi, eta) -> np.ndarray:
    """The spatial force at joint k when link k+1 is held: dense solution for links 1..k."""
    arm, cut = case.arm, slice(0, 6 * k)
    phi, M, H = arm.stacked_phi[cut, cut], arm.diagonal(arm.M)[cut, cut], arm.diagonal(arm.H)[:k, cut]
    drift = phi @ (M @ phi.T @ eta[1 : k + 1].ravel() + xi[1 : k + 1].ravel())
    u_ddot = np.linalg.solve(H @ phi @ M @ phi.T @ H.T, case.tau[1 : k + 1] - H @ drift)
    return (phi @ M @ phi.T @ H.T @ u_ddot + drift)[6 * k - 6 :]


# Section 10 -----------------------------------------------------------------------------------------------------------


def scale(number) -> np.ndarray:
    """A number, traced or not, that multiplies arrays element by element."""
    return np.asarray(number)


class ClosedForm:
    """The closed form (10.1)-(10.3) from phi(k, k-1), H(k) and M(k), k = 1..N, with no sweep over the joint moments.

    Nothing but additions, multiplications and one division per joint is used, on numbers or on traced scalars.
    """

    def __init__(self, phi, H, M) -> None:
        self.N = N = len(H) - 1
        self.phi, self.H = phi, H
        self.P_plus, self.G, self.D_inverse = [None] * (N + 1), [None] * (N + 1), [None] * (N + 1)
        for k in range(1, N + 1):
            P = M[k] if k == 1 else phi[k] @ self.P_plus[k - 1] @ phi[k].T + M[k]  # (8.4)
            row = H[k] @ P
            self.D_inverse[k] = scale(1.0 / (row @ H[k]))  # (8.5)
            self.G[k] = row * self.D_inverse[k]
            self.P_plus[k] = P - np.outer(self.G[k], row)  # (8.9)
        self.Lambda_plus, self.Lambda_minus = [None] * (N + 1), [None] * (N + 1)
        self.c, self.d = [None] * (N + 1), [None] * (N + 1)
        for k in range(N, 0, -1):
            above = phi[k + 1].T @ self.Lambda_minus[k + 1] @ phi[k + 1] if k < N else np.zeros((6, 6))  # (10.30)
            rest = self.rest(k)
            self.Lambda_plus[k] = above
            self.Lambda_minus[k] = rest.T @ above @ rest + np.outer(H[k], H[k]) * self.D_inverse[k]  # (10.31)
            self.c[k] = scale(self.D_inverse[k] + scale(self.G[k] @ above @ self.G[k]))  # (10.3)
            self.d[k] = self.G[k] @ above - self.c[k] * H[k]

    @classmethod
    def of(cls, arm: TipToBase) -> ClosedForm:
        links = range(1, arm.n + 1)
        if isinstance(arm, LibraryArm):
            return CompiledForm(arm)
        return cls(
            [None, *(arm.phi(k, k - 1) for k in links)],
            [None, *(arm.H[k][0] for k in links)],
            [None, *arm.M[1:]],
        )

    def rest(self, k: int) -> np.ndarray:
        """I - G(k) H(k)."""
        return np.eye(6) - np.outer(self.G[k], self.H[k])

    def psi(self, k: int, i: int) -> np.ndarray:
        """psi(k-, i+), k > i: the bracket of (10.6) from right to left."""
        product = self.phi[i + 1]
        for j in range(i + 1, k):
            product = self.phi[j + 1] @ self.rest(j) @ product
        return product

    def psi_minus_minus(self, k: int, i: int) -> np.ndarray:
        """psi(k-, i-), as below (10.3)."""
        return self.psi(k, i) @ self.rest(i) if k > i else np.eye(6)

    def psi_plus_plus(self, k: int, i: int) -> np.ndarray:
        """psi(k+, i+), as below (10.3)."""
        return self.rest(k) @ self.psi(k, i) if k > i else np.eye(6)

    def inverse(self) -> np.ndarray:
        """(N, N): the coefficients of tau in alpha1 of (10.2)."""
        links = range(1, self.N + 1)
        return np.array([[self._element(k, i) for i in links] for k in links])

    def _element(self, k: int, i: int):
        if i == k:
            return self.c[k].item()
        return self.d[k] @ self.psi(k, i) @ self.G[i] if i < k else self.G[k] @ self.psi(i, k).T @ self.d[i]

    def split(self, tau, xi, eta) -> np.ndarray:
        """(3, N): alpha1, alpha2 and alpha3 of (10.2), with Lambda- in alpha2."""
        N, G, d, psi, P, I = self.N, self.G, self.d, self.psi, self.P_plus, np.eye(6)  # noqa: E741
        tau, split = [scale(moment) for moment in tau], []
        for k in range(1, N + 1):
            outer, inner = range(1, k), range(k + 1, N + 1)
            tau_outer = sum((psi(k, i) @ G[i] * tau[i] for i in outer), np.zeros(6))
            tau_inner = sum((psi(i, k).T @ d[i] * tau[i] for i in inner), np.zeros(6))
            xi_outer = sum((self.psi_minus_minus(k, i) @ xi[i] for i in outer), np.zeros(6))
            xi_inner = sum((psi(i, k).T @ self.Lambda_minus[i] @ xi[i] for i in inner), np.zeros(6))
            eta_outer = sum((psi(k, i) @ P[i] @ eta[i] for i in outer), np.zeros(6))
            eta_inner = sum(
                (self.psi_plus_plus(i, k).T @ (self.Lambda_plus[i] @ P[i] - I) @ eta[i] for i in inner), np.zeros(6)
            )
            split.append(
                [
                    scale(self.c[k] * tau[k]).item() + d[k] @ tau_outer + G[k] @ tau_inner,
                    d[k] @ xi[k] + d[k] @ xi_outer + G[k] @ xi_inner,
                    G[k] @ (self.Lambda_plus[k] @ P[k] - I) @ eta[k] + d[k] @ eta_outer + G[k] @ eta_inner,
                ]
            )
        return np.array(split).T


class CompiledForm(ClosedForm):
    """The same with linkwise's P+, G, D^-1, Lambda and psi, each the value of a compiled expression."""

    def __init__(self, arm: LibraryArm) -> None:
        operators, self.N, self.arm = arm.operators, arm.n, arm
        links = range(1, arm.n + 1)
        self.phi, self.H = [None, *(arm.phi(k, k - 1) for k in links)], [None, *(arm.H[k][0] for k in links)]
        self.P_plus, self.G = operators.parts.P_plus, [None, *(G[:, 0] for G in operators.parts.G[1:])]
        self.D_inverse = [None, *(scale(d) for d in np.diag(of(arm, op.D.inv)))]
        self._psi, self._Psi = operators.psi, operators.Psi
        after = of(arm, op.psi.T @ op.H.T @ op.D.inv @ op.H @ op.psi)  # (10.29): blocks on the diagonal are Lambda-
        before = of(arm, op.Psi.T @ op.H.T @ op.D.inv @ op.H @ op.Psi)  # and Lambda+
        self.Lambda_minus, self.Lambda_plus = ([None, *(self._block(x, k, k) for k in links)] for x in (after, before))
        inverse = of(arm, (op.H @ op.phi @ op.M @ op.phi.T @ op.H.T).inv)
        self.c = [None, *(scale(x) for x in np.diag(inverse))]
        self.d = [None, *(self.G[k] @ self.Lambda_plus[k] - self.c[k] * self.H[k] for k in links)]  # (10.3)

    @staticmethod
    def _block(matrix, k: int, i: int) -> np.ndarray:
        return matrix[6 * k - 6 : 6 * k, 6 * i - 6 : 6 * i]

    def psi(self, k: int, i: int) -> np.ndarray:
        return self._block(self._Psi, k, i)

    def psi_minus_minus(self, k: int, i: int) -> np.ndarray:
        return self._block(self._psi, k, i)
