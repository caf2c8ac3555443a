"""rodriguez1992, Sections VII and VIII: the four forward dynamics algorithms, loop by loop, and the mobile base.

Each runs on a fixed-base chain and on one with a mobile base: "the only change is in the dimensions of the operators".
Loops are written as printed, on the papers' own operators or linkwise's; every vector that a loop computes is compared
with the expression for it, compiled by linkwise, and the result with the algorithm of that name.
Biases belong to inertial (classical) accelerations; gravity is part of a at the base (see ``tip_to_base``).
"""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise import operators as op

from .library import LibraryChain, of
from .test_rodriguez1992 import riccati, stacked_psi
from .tip_to_base import Chain, close, differ, random_chain, rate_of_change, results

MOMENTS = op.joint_vector("T")
A, B, F, ZETA = (op.link_vector(name) for name in ("a", "b", "f", "zeta"))
FACTOR = op.I - op.H @ op.Psi @ op.G
BIAS_FREE = MOMENTS - op.H @ op.phi @ (op.M @ op.phi.T @ A + B + F)  # (47)


class Problem:
    """A chain under joint forces T and a tip force f(0), and the accelerations that the library finds for it."""

    def __init__(self, mobile_base: bool, seed: int = 5, kind: type[Chain] = Chain):
        rng = np.random.default_rng(seed)
        mech = random_chain(5, seed, mobile_base=mobile_base)
        q, v = lw.random_state(mech, rng)
        chain = self.chain = kind(mech, q, v)
        n = self.n = chain.n
        tau, self.f_0 = rng.normal(size=mech.nv) * 3.0, rng.normal(size=6)
        self.tau, self.T = tau, chain.split(chain.joints @ tau)
        found = lw.forward_dynamics(mech, q, v, tau, chain.wrenches(self.f_0))
        self.theta_ddot = chain.accelerations(found)
        # alpha as an inertial observer measures it; with gravity as an acceleration of the ground
        alpha = (chain.links @ lw.link_accelerations(mech, q, v, found).ravel()).reshape(-1, 6)
        for k in range(1, n + 1):
            alpha[k - 1] += [0.0, 0.0, 0.0, *(np.cross(chain.V[k][:3], chain.V[k][3:]) - mech.gravity)]
        self.alpha = alpha.ravel()
        J = lw.jacobian(mech, q, "tip", frame="world_aligned")
        J_dot = rate_of_change(lambda x: lw.jacobian(mech, x, "tip", frame="world_aligned"), mech, q, v)
        self.alpha_0 = J @ found + J_dot @ v - [0.0, 0.0, 0.0, *mech.gravity]

        self.lists = P, D, G = riccati(chain)
        self.psi = [
            None,
            *(chain.phi(k, k - 1) @ (np.eye(6) - G[k - 1] @ chain.H[k - 1]) for k in range(1, n + 1)),
            chain.phi(n + 1, n) @ (np.eye(6) - G[n] @ chain.H[n]),
        ]  # psi[k] is psi(k, k-1)
        self.D_inverse = [None, *(np.linalg.inv(d) for d in D[1:])]
        self.H, self.phi, self.M = chain.diagonal(chain.H), chain.stacked_phi, chain.diagonal(chain.M)
        self.P, self.D, self.G = chain.diagonal(P), chain.diagonal(D), chain.diagonal(G)
        self.Psi = stacked_psi(chain, G)
        self.a, self.b = chain.stack(chain.a), chain.stack(chain.b)
        self.I6, self.I = np.eye(6 * n), np.eye(mech.nv)

    def value(self, expression, zeta=None):
        """An expression in T, a, b, f = B f(0) and zeta, compiled by linkwise."""
        given = {"T": self.chain.stack(self.T), "a": self.a, "b": self.b, "f": self.chain.B @ self.f_0, "zeta": zeta}
        needed = {x.name for x in expression.walk() if isinstance(x, type(MOMENTS))}
        return of(self.chain, expression, **{name: given[name] for name in needed})

    def by_linkwise(self, method):
        """linkwise's accelerations by the algorithm of this name."""
        chain = self.chain
        wrenches = chain.wrenches(self.f_0)
        return chain.accelerations(lw.forward_dynamics(chain.mech, chain.q, chain.v, self.tau, wrenches, method))

    def smooth(self, nu):
        """The base-to-tip loop (52)-(54): lambda and theta_ddot."""
        chain, G = self.chain, self.lists[2]
        lam, theta_ddot = [None] * (self.n + 2), [np.zeros(1)] * (self.n + 1)
        lam[self.n + 1] = np.zeros(6)
        for k in range(self.n, 0, -1):
            lam[k] = self.psi[k + 1].T @ lam[k + 1] + chain.H[k].T @ nu[k]
            theta_ddot[k] = nu[k] - G[k].T @ chain.phi(k + 1, k).T @ lam[k + 1]
        return lam, theta_ddot

    def bias_free_moments(self):
        """(47), (55)."""
        zeta = self.M @ self.phi.T @ self.a + self.b + self.chain.B @ self.f_0
        return self.chain.stack(self.T) - self.H @ self.phi @ zeta

    def filter(self, T):
        """The tip-to-base loop (49)-(51): z, epsilon, nu."""
        chain, G = self.chain, self.lists[2]
        z, epsilon, nu = ([np.zeros(6)], [None], [None])  # (49): T'(0) = 0, G(0) = 0
        for k in range(1, self.n + 1):
            z.append(self.psi[k] @ z[k - 1] + chain.phi(k, k - 1) @ G[k - 1] @ T[k - 1])
            epsilon.append(T[k] - chain.H[k] @ z[k])
            nu.append(self.D_inverse[k] @ epsilon[k])
        return z, epsilon, nu


@pytest.fixture(
    scope="module",
    params=[(False, Chain), (True, Chain), (True, LibraryChain)],
    ids=["fixed base", "mobile base", "linkwise"],
)
def problem(request):
    mobile_base, kind = request.param
    return Problem(mobile_base, kind=kind)


@results("rodriguez1992", "Algorithm 1", "47", "48", "49", "50", "51", "52", "53", "54", by="library")
def test_algorithm_1_four_sweeps(problem):
    T_prime = problem.bias_free_moments()
    factor = problem.I - problem.H @ problem.Psi @ problem.G
    close(factor.T @ np.linalg.inv(problem.D) @ factor @ T_prime, problem.theta_ddot, 1e-9)  # (48)
    z, epsilon, nu = problem.filter(problem.chain.split(T_prime))
    close(problem.chain.stack(epsilon), factor @ T_prime)
    lam, theta_ddot = problem.smooth(nu)
    close(problem.chain.stack(theta_ddot), problem.theta_ddot, 1e-9)
    # "When the bias terms are zero, lambda(k) = alpha(k)": lambda is what the joint accelerations alone cause.
    close(problem.chain.stack(lam), problem.phi.T @ problem.H.T @ problem.theta_ddot, 1e-9)
    by_factor = op.D.inv @ FACTOR @ BIAS_FREE
    for expression, expected in (
        (BIAS_FREE, T_prime),  # (47)
        (FACTOR.T @ by_factor, problem.theta_ddot),  # (48)
        (op.Psi @ op.G @ BIAS_FREE, problem.chain.stack(z)),  # (49), (50)
        (FACTOR @ BIAS_FREE, problem.chain.stack(epsilon)),
        (by_factor, problem.chain.stack(nu)),  # (51)
        (op.psi.T @ op.H.T @ by_factor, problem.chain.stack(lam)),  # (52), (53)
        (by_factor - op.G.T @ op.E_phi.T @ op.psi.T @ op.H.T @ by_factor, problem.theta_ddot),  # (54)
    ):
        close(problem.value(expression), expected, 1e-9)
    close(problem.by_linkwise("bias_free"), problem.theta_ddot, 1e-9)
    # z(k) acts on link k because of the moments further out: joint 1's does nothing to z(1).
    close(z[1], np.zeros(6))


@results("rodriguez1992", "Algorithm 2", "55", "56", "57", "58", "59", by="library")
def test_algorithm_2_with_link_and_tip_accelerations(problem):
    chain, n = problem.chain, problem.n
    T_prime = problem.bias_free_moments()  # (55)
    nu = np.linalg.inv(problem.D) @ (problem.I - problem.H @ problem.Psi @ problem.G) @ T_prime
    passed = problem.I6 - problem.G @ problem.H
    alpha = passed.T @ problem.Psi.T @ problem.H.T @ nu + problem.H.T @ nu + problem.phi.T @ problem.a
    close(alpha, problem.alpha, 1e-9)  # (56)
    close(chain.B.T @ alpha + chain.a[0], problem.alpha_0, 1e-9)  # (57)

    G, nu = problem.lists[2], chain.split(nu)
    lam, zeta, alpha, theta_ddot = ([None] * (n + 2) for _ in range(4))
    lam[n + 1], zeta[n + 1] = np.zeros(6), np.zeros(6)  # (58)
    for k in range(n, 0, -1):
        lam[k] = problem.psi[k + 1].T @ lam[k + 1] + chain.H[k].T @ nu[k]
        theta_ddot[k] = nu[k] - G[k].T @ chain.phi(k + 1, k).T @ lam[k + 1]
        zeta[k] = chain.phi(k + 1, k).T @ zeta[k + 1] + chain.a[k]
        alpha[k] = lam[k] + zeta[k]
    close(chain.stack(theta_ddot), problem.theta_ddot, 1e-9)
    close(chain.stack(alpha), problem.alpha, 1e-9)
    close(chain.phi(1, 0).T @ alpha[1] + chain.a[0], problem.alpha_0, 1e-9)  # (59)

    by_factor = op.D.inv @ FACTOR @ BIAS_FREE
    passed_on = (op.I - op.G @ op.H).T @ op.Psi.T @ op.H.T @ by_factor
    close(problem.value(passed_on + op.H.T @ by_factor + op.phi.T @ A), problem.alpha, 1e-9)  # (56)
    close(problem.value(op.phi.T @ A), chain.stack(zeta))
    # linkwise's own algorithm has no tip force: (55) to (59) without it.
    found = lw.kinematics.forward_link_accelerations(chain.mech, chain.q, chain.v, problem.tau)
    free = lw.forward_dynamics(chain.mech, chain.q, chain.v, problem.tau)
    free_links = problem.phi.T @ (problem.H.T @ chain.accelerations(free) + problem.a)
    found = chain.links @ (found + 0.0).ravel() - np.tile([0.0, 0.0, 0.0, *chain.mech.gravity], n)
    close(found, free_links, 1e-9)


@results("rodriguez1992", "Algorithm 3", "60", "61", "62", "63", "64", "65", by="library")
def test_algorithm_3_three_sweeps(problem):
    """(60) has the tip force in zeta, so (63) must begin with z(0) = 0; as printed it is counted twice."""
    chain, G = problem.chain, problem.lists[2]
    zeta = problem.M @ problem.phi.T @ problem.a + problem.b + chain.B @ problem.f_0  # (60)
    T = chain.stack(problem.T)
    inward = problem.G @ T + (problem.I6 - problem.G @ problem.H) @ zeta
    epsilon = T - problem.H @ problem.Psi @ inward - problem.H @ zeta  # (61)
    factor = problem.I - problem.H @ problem.Psi @ problem.G
    close(factor.T @ np.linalg.inv(problem.D) @ epsilon, problem.theta_ddot, 1e-9)  # (62)

    def filtered(z_0, zeta):
        zeta, z, nu = chain.per_link(zeta), [z_0], [None]
        for k in range(1, problem.n + 1):
            outboard = problem.psi[k] @ (z[k - 1] + zeta[k - 1])
            z.append(outboard + chain.phi(k, k - 1) @ G[k - 1] @ problem.T[k - 1])  # (64)
            epsilon = problem.T[k] - chain.H[k] @ z[k] - chain.H[k] @ zeta[k]  # (65)
            nu.append(problem.D_inverse[k] @ epsilon)
        return chain.stack(problem.smooth(nu)[1])

    by_factor = MOMENTS - op.H @ op.Psi @ (op.G @ MOMENTS + (op.I - op.G @ op.H) @ ZETA) - op.H @ ZETA
    close(problem.value(op.M @ op.phi.T @ A + B + F), zeta)  # (60)
    close(problem.value(by_factor, zeta), epsilon)  # (61)
    close(problem.value(FACTOR.T @ op.D.inv @ by_factor, zeta), problem.theta_ddot, 1e-9)  # (62)
    close(problem.by_linkwise("biased"), problem.theta_ddot, 1e-9)  # (63) to (65)
    close(filtered(np.zeros(6), zeta), problem.theta_ddot, 1e-9)
    close(filtered(problem.f_0, zeta - chain.B @ problem.f_0), problem.theta_ddot, 1e-9)
    differ(filtered(problem.f_0, zeta), problem.theta_ddot)  # (60) and (63) as printed
    printed = problem.T[1] - chain.H[1] @ problem.f_0 - chain.H[1] - zeta[:6]  # (65) as printed is no joint force
    assert printed.shape != problem.T[1].shape


@results("rodriguez1992", "Section VII-D", "66", "67", "68", "69", "70", "71", "72", "73", by="library")
def test_section_vii_d_without_dalembert_forces(problem):
    chain, n = problem.chain, problem.n
    T, theta_dot = chain.stack(problem.T), chain.stack(chain.rates)
    close(problem.phi.T @ problem.H.T @ theta_dot, chain.stack(chain.V))  # (66), without the printed B*
    printed = chain.B.T @ problem.phi.T @ problem.H.T @ theta_dot
    assert printed.shape == (6,) and n > 1  # as printed it is the tip's velocity, not the links'

    psi, passed = of(chain, op.psi), problem.I6 - problem.G @ problem.H
    D_inverse, factor = np.linalg.inv(problem.D), problem.I - problem.H @ problem.Psi @ problem.G
    bracket = passed @ problem.P @ problem.a + problem.b + chain.B @ problem.f_0
    nu = D_inverse @ factor @ T - D_inverse @ problem.H @ psi @ bracket  # (67)
    last_term = D_inverse @ problem.H @ problem.P @ problem.a

    def accelerations(nu):  # (68)
        return factor.T @ nu - problem.G.T @ problem.Psi.T @ passed.T @ problem.a - problem.G.T @ problem.a

    close(accelerations(nu), problem.theta_ddot, 1e-9)
    differ(accelerations(nu + last_term), problem.theta_ddot)  # (67) as printed
    # The last term does belong to a bracket with P a in the place of (I - GH) P a.
    bracket = problem.P @ problem.a + problem.b + chain.B @ problem.f_0
    close(D_inverse @ factor @ T - D_inverse @ problem.H @ psi @ bracket + last_term, nu, 1e-9)

    close(of(chain, op.phi.T @ op.H.T @ MOMENTS, T=theta_dot), chain.stack(chain.V))  # (66)
    inside = (op.I - op.G @ op.H) @ op.P @ A + B + F
    by_factor = op.D.inv @ FACTOR @ MOMENTS - op.D.inv @ op.H @ op.psi @ inside
    close(problem.value(by_factor), nu, 1e-9)  # (67)
    outward = op.G.T @ op.Psi.T @ (op.I - op.G @ op.H).T @ A + op.G.T @ A
    close(problem.value(FACTOR.T @ by_factor - outward), problem.theta_ddot, 1e-9)  # (68)
    close(problem.by_linkwise("without_dalembert_forces"), problem.theta_ddot, 1e-9)  # (69) to (73)

    P, _, G = problem.lists
    a = [np.zeros(6), *chain.a[1:]]  # P(0) = 0: a(0) plays no part
    z, nu_list = [problem.f_0], [None]  # (69)
    for k in range(1, n + 1):
        z.append(
            problem.psi[k] @ (z[k - 1] + P[k - 1] @ a[k - 1])
            + chain.phi(k, k - 1) @ G[k - 1] @ problem.T[k - 1]
            + chain.b[k]
        )  # (70)
        nu_list.append(problem.D_inverse[k] @ (problem.T[k] - chain.H[k] @ z[k]))  # (71)
    close(chain.stack(nu_list), nu, 1e-9)
    seen = op.psi @ (op.E_phi @ op.G @ MOMENTS + op.E_psi @ op.P @ A + B + F)  # F is what z(0) brings to link 1
    close(problem.value(seen), chain.stack(z), 1e-9)  # (70)
    lam, theta_ddot = [None] * (n + 2), [None] * (n + 1)
    lam[n + 1] = np.zeros(6)
    for k in range(n, 0, -1):
        outward = problem.psi[k + 1].T @ lam[k + 1]
        lam[k] = outward + chain.H[k].T @ nu_list[k] + (np.eye(6) - G[k] @ chain.H[k]).T @ a[k]  # (72)
        theta_ddot[k] = nu_list[k] - G[k].T @ chain.phi(k + 1, k).T @ lam[k + 1] - G[k].T @ a[k]  # (73)
    close(chain.stack(theta_ddot), problem.theta_ddot, 1e-9)
    close(chain.stack(lam), problem.alpha, 1e-9)


# -- VIII. Mobile base --------------------------------------------------------------------------------


@results("rodriguez1992", "Section VIII", "74", "75", "76", "77", "78", "79", by="library")
@pytest.mark.parametrize("kind", [Chain, LibraryChain])
def test_mobile_base(kind):
    """A fictitious joint N+1 with H = I: base motion and base force become part of the augmented vectors."""
    problem = Problem(mobile_base=True, seed=8, kind=kind)
    chain, n = problem.chain, problem.n
    close(chain.H[n].T, np.eye(6))  # (74)
    base = lw.jacobian(chain.mech, chain.q, "base", frame="world_aligned")
    close(chain.rates[n], base @ chain.v)  # (75): with respect to an inertial reference
    close(chain.rates[n], chain.V[n])
    W_dot = problem.theta_ddot  # (76): joints 1 ... N, then the base
    close(W_dot[-6:] - [0.0, 0.0, 0.0, *chain.mech.gravity], problem.alpha[-6:], 1e-9)
    f = problem.phi @ (problem.M @ problem.alpha + problem.b + chain.B @ problem.f_0)
    close(problem.H[-6:] @ f, f[-6:])
    close(problem.T[n], f[-6:], 1e-9)  # (77)
    T = np.concatenate([problem.T[k] for k in range(1, n + 1)])  # (78)

    mass_matrix = problem.H @ problem.phi @ problem.M @ problem.phi.T @ problem.H.T
    close(mass_matrix, chain.joints @ lw.mass_matrix(chain.mech, chain.q) @ chain.joints.T)
    C = problem.H @ problem.phi @ (problem.M @ problem.phi.T @ problem.a + problem.b)
    J = chain.B.T @ problem.phi.T @ problem.H.T
    close(T, mass_matrix @ W_dot + C + J.T @ problem.f_0, 1e-9)  # (79)
    factor = problem.I - problem.H @ problem.Psi @ problem.G
    inverse = factor.T @ np.linalg.inv(problem.D) @ factor
    close(inverse @ (T - C - J.T @ problem.f_0), W_dot, 1e-9)
