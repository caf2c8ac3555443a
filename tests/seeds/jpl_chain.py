"""A serial chain in the terms of rodriguez1992 and jain1995: links 1 ... n counted from the tip to the base.

Both papers write coordinate-free vectors; here all of them have components along the world's axes, so that phi(i, j)
is a pure shift, as printed.  Accelerations are classical: [omega dot; acceleration of O(k)] as an inertial observer
measures them.  The biases, which rodriguez1992 leaves to a reference, are then

    a(k) = [omega(k+1) x h(k) theta_dot(k);  omega(k+1) x (omega(k+1) x l(k+1, k))]
    b(k) = [omega(k) x I(k) omega(k);  m(k) omega(k) x (omega(k) x p(k))]

Gravity, absent from the papers' equations, is an upward acceleration of the ground and part of a(n).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest
from scipy.linalg import block_diag

import linkwise as lw


def results(paper: str, *ids: str):
    """Mark a test as checking these entries of the ledger."""

    def mark(test):
        for id in ids:
            test = pytest.mark.seed(paper, id)(test)
        return test

    return mark


def tilde(x):
    """x~ with x~ y = x cross y."""
    return np.array([[0.0, -x[2], x[1]], [x[2], 0.0, -x[0]], [-x[1], x[0], 0.0]])


def spatial_tilde(x):
    """jain1995 (5.5)."""
    return np.block([[tilde(x[:3]), np.zeros((3, 3))], [tilde(x[3:]), tilde(x[:3])]])


def close(actual, expected, tolerance=1e-10):
    """Equal to ``tolerance``, relative to the largest number (or to one)."""
    expected = np.asarray(expected)
    np.testing.assert_allclose(actual, expected, rtol=0.0, atol=tolerance * max(1.0, np.abs(expected).max(initial=0.0)))


def differ(actual, expected):
    """Different by more than any rounding."""
    assert np.abs(np.asarray(actual) - np.asarray(expected)).max() > 1e-3


@lru_cache  # with a mechanism, its compiled kernels are kept
def random_chain(n: int, seed: int, mobile_base: bool = False) -> lw.Mechanism:
    """``n`` revolute joints of general geometry, a frame "tip" at the end; optionally on a floating base link."""
    rng = np.random.default_rng(seed)
    builder, parent = lw.Builder(), "ground"

    def link(name):
        extents = rng.uniform(0.05, 0.3, 3)
        axes = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        inertia = (axes * (extents**2).sum() - axes * extents**2) @ axes.T
        builder.link(name, rng.uniform(0.5, 3.0), rng.uniform(-0.3, 0.3, 3), inertia)

    def pose():
        turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        return turn * np.linalg.det(turn), rng.uniform(-0.4, 0.4, 3)

    if mobile_base:
        link("base")
        builder.joint("free", lw.Floating(), "ground", "base", pose())
        parent = "base"
    for i in range(n):
        link(f"link{i}")
        builder.joint(f"joint{i}", lw.Revolute(rng.normal(size=3)), parent, f"link{i}", pose())
        parent = f"link{i}"
    builder.link("tip").joint("tip_joint", lw.Fixed(), parent, "tip", pose())
    return builder.build(f"chain_{n}_{seed}", rng.normal(size=3) * 5.0)


class Chain:
    """The quantities of the nomenclature in one state.  Lists are indexed by the papers' k; entry 0 belongs to the tip.

    O, h, p, m, I, H, M   points, axes, mass centres from O(k), masses, inertias about O(k), H(k), M(k)
    rates                 joint rates theta_dot(k)
    V, a, b               link velocities (from the library), bias accelerations and forces
    joints, links         matrices that bring library vectors, (nv,) and (6 n_links,), into the papers' order and axes
    """

    def __init__(self, mech: lw.Mechanism, q, v) -> None:
        self.mech, self.q, self.v = mech, q, v
        n = self.n = mech.n_links
        poses = lw.link_poses(mech, q)
        body = [None, *reversed(mech.bodies)]
        turn = [None, *(pose[:3, :3] for pose in reversed(poses))]
        self.O = [lw.frame_pose(mech, q, "tip")[:3, 3], *(pose[:3, 3] for pose in reversed(poses)), np.zeros(3)]
        self.m = [0.0, *(b.mass for b in body[1:])]
        self.p = [np.zeros(3), *(turn[k] @ body[k].com for k in range(1, n + 1))]
        self.I_c = [np.zeros((3, 3)), *(turn[k] @ body[k].inertia @ turn[k].T for k in range(1, n + 1))]
        self.I = [i - m * tilde(p) @ tilde(p) for i, m, p in zip(self.I_c, self.m, self.p, strict=True)]
        self.M = [
            np.block([[i, m * tilde(p)], [-m * tilde(p), m * np.eye(3)]])
            for i, m, p in zip(self.I, self.m, self.p, strict=True)
        ]
        self.h = [None] * (n + 1)
        self.H = [np.zeros((1, 6))]
        for k in range(1, n + 1):
            if isinstance(body[k].kind, lw.Revolute):
                self.h[k] = turn[k] @ body[k].kind.axis
                self.H.append(np.array([[*self.h[k], 0.0, 0.0, 0.0]]))
            else:  # the mobile base, rodriguez1992 (74)
                self.H.append(np.eye(6))
        self.sizes = [len(h) for h in self.H[1:]]
        per_joint = [np.eye(1) if size == 1 else np.kron(np.eye(2), turn[k + 1]) for k, size in enumerate(self.sizes)]
        order = np.concatenate([np.arange(mech.nv)[mech.v_index(b.joint)] for b in body[1:]])
        self.joints = block_diag(*per_joint) @ np.eye(mech.nv)[order]
        self.links = block_diag(*(np.kron(np.eye(2), turn[k]) for k in range(1, n + 1))) @ np.kron(
            np.eye(n)[::-1], np.eye(6)
        )
        self.rates = self.split(self.joints @ v)
        self.V = self.per_link(self.links @ lw.link_velocities(mech, q, v).ravel())
        self.a = [self.bias_acceleration(k, self.V) for k in range(n + 1)]
        self.b = [self.bias_force(k, self.V) for k in range(n + 1)]

    # One link ----------------------------------------------------------------------------------------

    def l(self, i: int, j: int):  # noqa: E743 - the papers' name
        """The vector from O(i) to O(j)."""
        return self.O[j] - self.O[i]

    def phi(self, i: int, j: int):
        """rodriguez1992 (3)."""
        return np.block([[np.eye(3), tilde(self.l(i, j))], [np.zeros((3, 3)), np.eye(3)]])

    def bias_acceleration(self, k: int, V):
        """a(k) = a[V(k+1), V(k)], as above."""
        if k == self.n:
            return np.array([0.0, 0.0, 0.0, *(-self.mech.gravity)])
        omega = V[k + 1][:3]
        turning = np.cross(omega, self.h[k] * self.rates[k]) if k else np.zeros(3)
        return np.concatenate([turning, np.cross(omega, np.cross(omega, self.l(k + 1, k)))])

    def bias_force(self, k: int, V):
        """b(k) = b[V(k)], as above."""
        omega = V[k][:3]
        moment = np.cross(omega, self.I[k] @ omega)
        return np.concatenate([moment, self.m[k] * np.cross(omega, np.cross(omega, self.p[k]))])

    # All links ---------------------------------------------------------------------------------------

    def stack(self, items):
        """col[x(1), ..., x(n)] of a list that begins with x(0)."""
        return np.concatenate(items[1 : self.n + 1])

    def diagonal(self, items):
        """diag[x(1), ..., x(n)] of a list that begins with x(0)."""
        return block_diag(*items[1 : self.n + 1])

    def split(self, joint_vector):
        """A stacked joint vector as a list that begins with x(0) = 0."""
        return [np.zeros(1), *np.split(joint_vector, np.cumsum(self.sizes)[:-1])]

    def per_link(self, link_vector):
        """A stacked link vector as a list: x(0) = 0 in front, x(n+1) = 0 behind."""
        return [np.zeros(6), *link_vector.reshape(-1, 6), np.zeros(6)]

    def blocks(self, element):
        """The block matrix of element(i, j), i, j = 1 ... n."""
        return np.block([[element(i, j) for j in range(1, self.n + 1)] for i in range(1, self.n + 1)])

    @property
    def stacked_phi(self):
        """rodriguez1992 (17), jain1995 (4.6)."""
        return self.blocks(lambda i, j: self.phi(i, j) if i >= j else np.zeros((6, 6)))

    @property
    def B(self):
        """rodriguez1992 (18): B* = [phi*(1,0), 0, ..., 0]."""
        return np.concatenate([self.phi(1, 0), np.zeros((6 * (self.n - 1), 6))])

    # The library's side ------------------------------------------------------------------------------

    def dense(self, expression):
        """A dense operator of the library between link or joint spaces, in the papers' order and axes."""
        matrix = lw.operators.dense(expression, self.mech, self.q)
        change = {self.mech.nv: self.joints, 6 * self.n: self.links}
        return change[matrix.shape[0]] @ matrix @ change[matrix.shape[1]].T

    def wrenches(self, tip_force):
        """Wrenches on the links, (n_links, 6), when the tip exerts ``tip_force`` on its environment."""
        return (self.links.T @ -(self.B @ tip_force)).reshape(-1, 6)

    def accelerations(self, a):
        """Library joint accelerations as the papers': a mobile base's are those an inertial observer measures."""
        result = self.split(self.joints @ a)
        if self.sizes[-1] == 6:
            omega, velocity = self.rates[-1][:3], self.rates[-1][3:]
            result[-1] = result[-1] + np.concatenate([np.zeros(3), np.cross(omega, velocity)])
        return np.concatenate(result[1:])


def rate_of_change(function, mech, q, v, step=2e-3):
    """d/dt of function(q(t)) along q_dot = N(q) v, from six points (error of order step^6)."""
    at = {i: function(lw.integrate(mech, q, v, i * step)) for i in (-3, -2, -1, 1, 2, 3)}
    return (45 * (at[1] - at[-1]) - 9 * (at[2] - at[-2]) + (at[3] - at[-3])) / (60 * step)
