"""A serial arm in the terms of saha1999: bodies 1 ... n counted from the base, all vectors along the world's axes.

Geometry, velocities and accelerations come from poses of the library and from differences along a motion; what the
paper derives from them is written out here or in the tests.  Entry 0 of lists is not used, as in the paper.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy.linalg import block_diag

import linkwise as lw
from tests.dynamics.denoc.mass_centres import tilde


@lru_cache
def random_arm(kinds: str, seed: int) -> lw.Mechanism:
    """One revolute ("R") or prismatic ("P") joint per letter, of general geometry and mass distribution."""
    rng = np.random.default_rng(seed)
    builder, parent = lw.Builder(), "ground"
    for i, letter in enumerate(kinds, 1):
        extents, axes = rng.uniform(0.05, 0.3, 3), np.linalg.qr(rng.normal(size=(3, 3)))[0]
        mass = rng.uniform(0.5, 3.0)
        inertia = mass * (axes * ((extents**2).sum() - extents**2)) @ axes.T
        builder.link(f"link{i}", mass, rng.uniform(-0.3, 0.3, 3), inertia)
        rot = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        pose = (rot * np.linalg.det(rot), rng.uniform(-0.4, 0.4, 3))
        kind = {"R": lw.Revolute, "P": lw.Prismatic}[letter](rng.normal(size=3))
        builder.joint(f"joint{i}", kind, parent, f"link{i}", pose)
        parent = f"link{i}"
    return builder.build(f"arm_{kinds}_{seed}", rng.normal(size=3) * 5.0)


class Arm:
    """The quantities of Sections 2 and 3 in one state; theta_dot and theta_ddot are the joint rates and accelerations.

    O, C, e, d, r        joint points, mass centres, axes, O_i to C_i, C_i to O_(i+1)
    I_c, m, p            inertia tensors, masses, joint-rate propagation vectors (13), (15)
    omega, v, t, t_dot   velocities and twists of the bodies and their rates, from differences along the motion
    """

    def __init__(self, mech: lw.Mechanism, theta, theta_dot, theta_ddot) -> None:
        self.mech, self.n = mech, mech.n_links
        self.theta, self.theta_dot, self.theta_ddot = theta, theta_dot, theta_ddot
        poses, bodies = lw.link_poses(mech, theta), mech.bodies
        rot = [None, *poses[:, :3, :3]]
        self.revolute = [None, *(isinstance(body.kind, lw.Revolute) for body in bodies)]
        self.O = [None, *poses[:, :3, 3], poses[-1, :3, 3]]
        self.e = [None, *(rot[i] @ bodies[i - 1].kind.axis for i in self.numbers)]
        self.C = [None, *(self.O[i] + rot[i] @ bodies[i - 1].com for i in self.numbers)]
        self.d = [None, *(self.C[i] - self.O[i] for i in self.numbers)]
        self.r = [None, *(self.O[i + 1] - self.C[i] for i in self.numbers)]
        self.I_c = [None, *(rot[i] @ bodies[i - 1].inertia @ rot[i].T for i in self.numbers)]
        self.m = [None, *mech.parameters.masses]
        self.p = [None, *(self.joint_rate_propagation(i) for i in self.numbers)]
        self.t = [None, *self.twists(0.0)]
        self.t_dot = [None, *_rate(self.twists)]
        self.omega, self.v = ([None, *(t[part] for t in self.t[1:])] for part in (slice(3), slice(3, 6)))

    @property
    def numbers(self):
        return range(1, self.n + 1)

    # Along the motion theta + t theta_dot + t^2/2 theta_ddot -----------------------------------------

    def at(self, time: float):
        """Joint coordinates and rates."""
        return (
            self.theta + time * self.theta_dot + 0.5 * time**2 * self.theta_ddot,
            self.theta_dot + time * self.theta_ddot,
        )

    def twists(self, time: float) -> np.ndarray:
        """(n, 6), from the library's link velocities."""
        theta, theta_dot = self.at(time)
        rots, velocities = lw.link_poses(self.mech, theta)[:, :3, :3], lw.link_velocities(self.mech, theta, theta_dot)
        com = np.array([body.com for body in self.mech.bodies])
        linear = velocities[:, 3:] + np.cross(velocities[:, :3], com)
        return np.concatenate([rots @ velocities[:, :3, None], rots @ linear[:, :, None]], axis=1)[:, :, 0]

    def rate(self, quantity):
        """d/dt along the motion of ``quantity(arm)``."""
        return _rate(lambda time: np.asarray(quantity(type(self)(self.mech, *self.at(time), self.theta_ddot))))

    # Sections 2 and 3 --------------------------------------------------------------------------------

    def joint_rate_propagation(self, i: int):
        """p_i of (13) and (15)."""
        e = self.e[i]
        return np.concatenate([e, np.cross(e, self.d[i])] if self.revolute[i] else [np.zeros(3), e])

    def c(self, i: int, j: int):
        """c_ij: for neighbours -d_i - r_j, here from C_i to C_j in general."""
        return self.C[j] - self.C[i]

    def B(self, i: int, j: int):
        """(13)."""
        return np.block([[np.eye(3), np.zeros((3, 3))], [tilde(self.c(i, j)), np.eye(3)]])

    def B_dot(self, i: int, j: int):
        """Its rate: C_i and C_j move."""
        return np.block([[np.zeros((3, 6))], [tilde(self.v[j] - self.v[i]), np.zeros((3, 3))]])

    def Omega(self, i: int):
        """(2)."""
        return np.kron(np.eye(2), tilde(self.omega[i]))

    def M(self, i: int):
        """(2)."""
        return block_diag(self.I_c[i], self.m[i] * np.eye(3))

    def M_dot(self, i: int):
        """(8), which is the rate of M_i up to a term that vanishes on t_i."""
        return block_diag(tilde(self.omega[i]) @ self.I_c[i], np.zeros((3, 3)))

    def weight(self, i: int):
        """Gravity as a wrench on body i."""
        return np.concatenate([np.zeros(3), self.m[i] * self.mech.gravity])

    # All bodies --------------------------------------------------------------------------------------

    def stack(self, items):
        """[x_1^T, ..., x_n^T]^T."""
        return np.concatenate(items[1:])

    def diagonal(self, block):
        """diag[block(1), ..., block(n)]."""
        return block_diag(*(block(i) for i in self.numbers))

    def blocks(self, element):
        """The block matrix of element(i, j)."""
        return np.block([[element(i, j) for j in self.numbers] for i in self.numbers])

    @property
    def N_l(self):
        """(17)."""
        return self.blocks(lambda i, j: self.B(i, j) if i >= j else np.zeros((6, 6)))

    @property
    def N_d(self):
        """(17)."""
        return block_diag(*(self.p[i][:, None] for i in self.numbers))

    @property
    def composite(self):
        """M~_i of (23a)."""
        return [
            None,
            *(sum(self.B(k, i).T @ self.M(k) @ self.B(k, i) for k in range(i, self.n + 1)) for i in self.numbers),
        ]

    @property
    def GIM(self):
        """The generalized inertia matrix, as the library has it."""
        return lw.mass_matrix(self.mech, self.theta)

    @property
    def tau(self):
        """Joint torques and forces of the motion, as the library has them."""
        return lw.inverse_dynamics(self.mech, self.theta, self.theta_dot, self.theta_ddot)


class CompiledArm(Arm):
    """The same with the N_l and N_d that linkwise computes, and B_ij and p_i taken from them."""

    def __init__(self, mech: lw.Mechanism, theta, theta_dot, theta_ddot) -> None:
        self._N_l, self._N_d = lw.formulations.denoc.matrices(mech, theta)
        super().__init__(mech, theta, theta_dot, theta_ddot)

    def joint_rate_propagation(self, i: int):
        return self._N_d[6 * i - 6 : 6 * i, i - 1]

    def B(self, i: int, j: int):
        if i < j:
            return np.linalg.inv(self.B(j, i))
        return self._N_l[6 * i - 6 : 6 * i, 6 * j - 6 : 6 * j]

    @property
    def N_l(self):
        return self._N_l

    @property
    def N_d(self):
        return self._N_d


def _rate(function, step: float = 2e-3):
    """d/dt at 0 from six points (error of order step^6)."""
    at = {k: function(k * step) for k in (-3, -2, -1, 1, 2, 3)}
    return (45 * (at[1] - at[-1]) - 9 * (at[2] - at[-2]) + (at[3] - at[-3])) / (60 * step)
