"""The operators of jain1995 at one configuration: Algorithm 4.1 link by link, and everything stacked.

``Stacked`` is the paper's own recursion; ``library.Operators`` has the same names for linkwise's compiled operators,
and chains are tried with both. Vectors have components along the world's axes, as the paper's inertial derivatives
require. All of it runs on complex coordinates as well, so that a derivative is the imaginary part of one evaluation at
a tiny imaginary step.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import linkwise as lw

from .library import LibraryArm, LibraryChain, Operators
from .tip_to_base import TipToBase, random_chain, spatial_tilde


class Articulated:
    """Algorithm 4.1, (4.8), with psi(k+1, k) = + phi(k+1, k) tau_bar(k); lists are indexed by k."""

    def __init__(self, chain: TipToBase, sign_of_psi: float = 1.0):
        self.P, self.D, self.G, self.K = [None], [None], [np.zeros((6, 1))], [None]
        self.tau, self.tau_bar, self.psi = [None], [None], [None]
        self.P_plus = [np.zeros((6, 6))]
        for k in range(1, chain.n + 1):
            H = chain.H[k]
            self.P.append(chain.phi(k, k - 1) @ self.P_plus[k - 1] @ chain.phi(k, k - 1).T + chain.M[k])
            self.D.append(H @ self.P[k] @ H.T)
            self.G.append(self.P[k] @ H.T @ np.linalg.inv(self.D[k]))
            self.K.append(chain.phi(k + 1, k) @ self.G[k])
            self.tau.append(self.G[k] @ H)
            self.tau_bar.append(np.eye(6) - self.tau[k])
            self.P_plus.append(self.tau_bar[k] @ self.P[k])
            self.psi.append(sign_of_psi * chain.phi(k + 1, k) @ self.tau_bar[k])


class Stacked:
    """The operators of (4.6)-(4.10) as matrices, from the blocks of Algorithm 4.1; joints have one DoF each."""

    def __init__(self, chain: TipToBase, sign_of_psi: float = 1.0):
        self.parts = parts = Articulated(chain, sign_of_psi)
        size, nv = 6 * chain.n, chain.mech.nv
        self.H, self.M = chain.diagonal(chain.H), chain.diagonal(chain.M)
        self.P, self.P_plus = chain.diagonal(parts.P), chain.diagonal(parts.P_plus)
        self.D, self.G = chain.diagonal(parts.D), chain.diagonal(parts.G)
        self.tau, self.tau_bar = chain.diagonal(parts.tau), chain.diagonal(parts.tau_bar)
        self.E_phi, self.E_psi = np.zeros((2, size, size), self.P.dtype)
        self.K = np.zeros((size, nv), self.P.dtype)
        for k in range(1, chain.n):  # the first subdiagonal: rows of k+1, columns of k
            rows, columns = slice(6 * k, 6 * k + 6), slice(6 * k - 6, 6 * k)
            self.E_phi[rows, columns] = chain.phi(k + 1, k)
            self.E_psi[rows, columns] = parts.psi[k]
            self.K[rows, k - 1] = parts.K[k][:, 0]
        self.phi = chain.stacked_phi
        self.I, self.I6 = np.eye(nv), np.eye(size)
        self.phi_tilde = self.phi - self.I6
        self.psi = np.linalg.inv(self.I6 - self.E_psi)
        self.root_D = np.sqrt(self.D)
        self.m = (self.I + self.H @ self.phi @ self.K) @ self.root_D
        self.ell = np.linalg.inv(self.root_D) @ (self.I - self.H @ self.psi @ self.K)
        self.mass_matrix = self.H @ self.phi @ self.M @ self.phi.T @ self.H.T


def operators_of(chain: TipToBase) -> Stacked | Operators:
    """linkwise's of an arm that is made of linkwise's, the paper's of another."""
    return chain.operators if isinstance(chain, LibraryArm | LibraryChain) else Stacked(chain)


def mass_matrix(chain: TipToBase) -> np.ndarray:
    """The library's, in the paper's order."""
    return chain.joints @ lw.mass_matrix(chain.mech, chain.q) @ chain.joints.T


class Moving:
    """A chain of revolute joints at (theta, theta_dot), counted from the tip, and derivatives of its operators.

    arm, x       the links, and the stacked operators: linkwise's if ``library``, else the paper's own recursion
    theta_dot    (n,)            V       (6n,) spatial velocities (4.4)
    Omega, Omega_s, Omega_delta, V_tilde   (6n, 6n) block diagonal: Omega~(k), Omega~(k+1), Omega_delta~(k), V~(k)
    """

    def __init__(self, mech: lw.Mechanism, q, v, library: bool = False) -> None:
        self.mech, self.q, self.v, self.library = mech, q, v, library
        self.arm, self.x = self.at(q)
        self.n, self.theta_dot = self.arm.n, self.arm.joints @ v
        self.V = self.x.phi.T @ self.x.H.T @ self.theta_dot
        links = self.arm.per_link(self.V)
        omega = [spatial_tilde([*V[:3], 0.0, 0.0, 0.0]) for V in links]
        self.Omega, self.Omega_s = self.arm.diagonal(omega), self.arm.diagonal(omega[1:])
        self.Omega_delta = self.arm.diagonal([w - outer for w, outer in zip(omega, omega[1:], strict=False)])
        self.V_tilde = self.arm.diagonal([spatial_tilde(V) for V in links])

    def at(self, q) -> tuple[TipToBase, Stacked | Operators]:
        """Links and operators at another configuration."""
        arm = (LibraryArm if self.library else TipToBase)(self.mech, q)
        return arm, operators_of(arm)

    def along(self, quantity, direction) -> np.ndarray:
        """The derivative of quantity(arm, operators) in a direction (n,) of theta, exact to rounding."""
        step = 1e-30
        return np.imag(quantity(*self.at(self.q + 1j * step * (self.arm.joints.T @ direction)))) / step

    def dot(self, quantity) -> np.ndarray:
        """The inertial time derivative: components along the world's axes are differentiated along the motion."""
        return self.along(quantity, self.theta_dot)

    def by_joint(self, quantity) -> list[np.ndarray]:
        """The derivatives with respect to theta(i), i = 1 ... n, in a list that begins with None."""
        return [None, *(self.along(quantity, direction) for direction in np.eye(self.n))]

    def block(self, matrix, k: int) -> np.ndarray:
        """The (6, 6) block of link k on the diagonal of a (6n, 6n) matrix."""
        return matrix[6 * k - 6 : 6 * k, 6 * k - 6 : 6 * k]

    @property
    def lambda_dot(self) -> np.ndarray:
        """(6n, 6n), by differentiation: the rate of P(k) by the joints 1 ... k alone, as defined above (6.3)."""
        parts = self.by_joint(lambda arm, x: x.P)
        result = np.zeros_like(self.x.P)
        for i in range(1, self.n + 1):
            for k in range(i, self.n + 1):
                self.block(result, k)[:] += self.block(parts[i], k) * self.theta_dot[i - 1]
        return result


@cache
def moving_chain(n: int, seed: int, library: bool = False) -> Moving:
    """A random chain of n revolute joints in a random state; without gravity, which the paper leaves out."""
    mech = random_chain(n, seed).with_gravity((0.0, 0.0, 0.0))
    return Moving(mech, *lw.random_state(mech, np.random.default_rng(seed)), library)


#: Argument of tests: moving chains, with the paper's recursion and with linkwise's compiled operators.
moving_chains = pytest.mark.parametrize(
    "chain", [moving_chain(6, 1), moving_chain(3, 2), moving_chain(4, 7, True)], ids=["6", "3", "linkwise"]
)


class JointMatrices:
    """(6.10), (6.11), (A.1), (A.2): the block-diagonal operators made of H~(i); lists by i that begin with None."""

    def __init__(self, moving: Moving) -> None:
        n, arm = moving.n, moving.arm
        self.one = [None, *(spatial_tilde(arm.H[i][0]) for i in range(1, n + 1))]  # (6.10)
        at = lambda i, where: np.kron(np.diag([float(where(k)) for k in range(1, n + 1)]), self.one[i])  # noqa: E731
        joints = range(1, n + 1)
        self.s = [None, *(at(i, lambda k, i=i: k < i) for i in joints)]  # (A.1)
        self.delta = [None, *(at(i, lambda k, i=i: k == i) for i in joints)]  # (6.11)
        self.all = [None, *(at(i, lambda k, i=i: k <= i) for i in joints)]
