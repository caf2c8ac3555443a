"""jain1995, Sections 1, 3, 4 and 5: the factors of the mass matrix and the diagonalized variables.

Formulas and loops are written as printed, link 1 at the tip, vectors along the world's axes and biases of inertial
accelerations (see ``tip_to_base``).  Where the print is wrong, the test shows that it fails and what holds instead.
"""

from __future__ import annotations

import dataclasses
from functools import reduce

import numpy as np
import pytest
from scipy.linalg import sqrtm

import linkwise as lw
from linkwise import operators as op
from linkwise.mechanics.spatial import Motion

from .jain1995 import Articulated, Stacked, mass_matrix, operators_of
from .library import LibraryChain, compiled, of
from .tip_to_base import Chain, close, differ, random_chain, rate_of_change, results, spatial_tilde, tilde

n = 6
NO_GRAVITY = (0.0, 0.0, 0.0)


def without_armature(mech):
    """The papers' mechanisms have no rotor inertias."""
    bodies = (dataclasses.replace(body, armature=(0.0,) * body.nv) for body in mech.bodies)
    return dataclasses.replace(mech, bodies=tuple(bodies))


TREES = [without_armature(lw.mechanisms.random_tree(8, seed, floating_base=seed % 2 == 1)) for seed in (6, 7)]
every_tree = pytest.mark.parametrize("mech", TREES, ids=lambda mech: mech.name)


@pytest.fixture(params=[(Chain, 3), (Chain, 4), (LibraryChain, 4)], ids=["3", "4", "linkwise"])
def chain(request):
    kind, seed = request.param
    mech = random_chain(n, seed)
    return kind(mech, *lw.random_state(mech, np.random.default_rng(seed)))


@pytest.fixture
def rng():
    return np.random.default_rng(95)


def factor_at(mech, v):
    """q -> m(theta) in the papers' order."""
    return lambda q: Stacked(Chain(mech, q, v)).m


# -- 1. The factors diagonalize Lagrange's equations --------------------------------------------------


@results("jain1995", "1.1", "1.2", "1.3", "1.4", by="library")
def test_total_joint_rates_and_working_moments(chain, rng):
    x = operators_of(chain)
    theta_dot, T = chain.stack(chain.rates), rng.normal(size=n)
    factor = x.I + x.H @ x.phi @ x.K
    close(factor @ x.D @ factor.T, mass_matrix(chain))  # (1.1)
    nu = x.root_D @ factor.T @ theta_dot  # (1.3)
    close(0.5 * nu @ nu, lw.kinetic_energy(chain.mech, chain.q, chain.v))  # (1.2)
    epsilon = np.linalg.inv(x.root_D) @ (x.I - x.H @ x.psi @ x.K) @ T  # (1.4)
    close(epsilon, np.linalg.solve(x.m, T))
    close(nu @ epsilon, theta_dot @ T)  # the working moments do all the work
    close((x.I - x.H @ x.psi @ x.K).T @ np.linalg.inv(x.root_D) @ nu, theta_dot)


@results("jain1995", "1.1", "1.2", "1.3", "1.4", by="library")
@every_tree
def test_rates_and_moments_of_trees(mech, rng):
    """Joints with several degrees of freedom: D is block diagonal and D^(1/2) its symmetric root."""
    q, v = lw.random_state(mech, rng)
    T = rng.normal(size=mech.nv)
    H, phi, psi, K, D = (compiled(x, mech, q) for x in (op.H, op.phi, op.psi, op.K, op.D))
    root_D, unit = sqrtm(D).real, np.eye(mech.nv)
    factor = unit + H @ phi @ K
    close(factor @ D @ factor.T, lw.mass_matrix(mech, q))
    nu = root_D @ factor.T @ v
    close(0.5 * nu @ nu, lw.kinetic_energy(mech, q, v))
    epsilon = np.linalg.inv(root_D) @ (unit - H @ psi @ K) @ T
    close(factor @ root_D @ epsilon, T)
    close(nu @ epsilon, v @ T)


# -- 2, 3. Lagrange's equations and their diagonal form -----------------------------------------------


def quadratic_sensitivity(chain):
    """col{theta_dot* M_theta_i theta_dot}, the mass matrix differentiated numerically."""
    at = lambda direction: rate_of_change(  # noqa: E731 - one use, one line
        lambda q: lw.mass_matrix(chain.mech, q), chain.mech, chain.q, direction
    )
    return chain.joints @ [chain.v @ at(direction) @ chain.v for direction in np.eye(chain.mech.nv)]


@results("jain1995", "2.1", by="library")
def test_lagrangian_equations_of_motion(chain, rng):
    """C = M_dot theta_dot - 1/2 theta_dot* M_theta theta_dot; the print has lost the dot of the first M."""
    mech, q, v = chain.mech.with_gravity(NO_GRAVITY), chain.q, chain.v
    theta_dot, accelerations = chain.joints @ v, rng.normal(size=n)
    M_dot = chain.joints @ rate_of_change(lambda x: lw.mass_matrix(mech, x), mech, q, v) @ chain.joints.T
    half = 0.5 * quadratic_sensitivity(chain)
    T = chain.joints @ lw.inverse_dynamics(mech, q, v, accelerations)
    inertial = mass_matrix(chain) @ chain.joints @ accelerations
    close(inertial + M_dot @ theta_dot - half, T, 1e-9)
    differ(inertial + mass_matrix(chain) @ theta_dot - half, T)


@results("jain1995", "Lemma 3.1", "3.1", "3.2", by="library")
def test_diagonal_equations_of_motion(chain, rng):
    """nu_dot + C(theta, nu) = epsilon with C = l (m_dot nu - 1/2 theta_dot* M_theta theta_dot), theta_dot = l* nu."""
    mech, q, v = chain.mech.with_gravity(NO_GRAVITY), chain.q, chain.v
    x, T, theta_dot = operators_of(chain), rng.normal(size=n), chain.joints @ v
    theta_ddot = chain.joints @ lw.forward_dynamics(mech, q, v, chain.joints.T @ T)
    m_dot = rate_of_change(factor_at(mech, v), mech, q, v)
    nu = x.m.T @ theta_dot
    nu_dot = m_dot.T @ theta_dot + x.m.T @ theta_ddot
    half = 0.5 * quadratic_sensitivity(chain)
    coriolis = x.ell @ (m_dot @ nu - half)
    close(nu_dot + coriolis, x.ell @ T, 1e-9)
    differ(nu_dot + x.ell @ m_dot @ nu - half, x.ell @ T)  # (3.2) as printed
    close(nu @ coriolis, 0.0, 1e-9)  # "the Coriolis term does no mechanical work"
    close(x.ell.T @ nu, theta_dot)
    differ(x.ell @ nu, theta_dot)  # the kinematic equation as printed
    differ(x.m @ theta_dot, nu)  # nu = m theta_dot, as printed below Assumption 3.1


# -- 4. Operator factorization ------------------------------------------------------------------------


@results("jain1995", "Identity 4.1", "4.1a", "4.1b", "4.1c", "4.1d", "4.2", by="library")
def test_identity_4_1(chain):
    x, expected = operators_of(chain), mass_matrix(chain)
    factor, inverse_factor = x.I + x.H @ x.phi @ x.K, x.I - x.H @ x.psi @ x.K
    close(x.H @ x.phi @ x.M @ x.phi.T @ x.H.T, expected)
    with pytest.raises(ValueError, match="mismatch"):  # (4.2) without the last star is not even conformable
        _ = x.H @ x.phi @ x.M @ x.phi.T @ x.H
    close(factor @ x.D @ factor.T, expected)
    close(factor, np.tril(factor))
    assert np.diag(x.D).min() > 0.0 and not (x.D - np.diag(np.diag(x.D))).any()
    close(np.linalg.inv(factor), inverse_factor)
    close(inverse_factor.T @ np.linalg.inv(x.D) @ inverse_factor, np.linalg.inv(expected), 1e-9)


@results("jain1995", "Identity 4.1", "4.1a", "4.1b", "4.1c", "4.1d", by="library")
@every_tree
def test_identity_4_1_holds_for_trees(mech, rng):
    q, _ = lw.random_state(mech, rng)
    H, phi, psi, K, D, M = (compiled(x, mech, q) for x in (op.H, op.phi, op.psi, op.K, op.D, op.M))
    factor, inverse_factor = np.eye(mech.nv) + H @ phi @ K, np.eye(mech.nv) - H @ psi @ K
    close(H @ phi @ M @ phi.T @ H.T, lw.mass_matrix(mech, q))
    close(factor @ D @ factor.T, lw.mass_matrix(mech, q))
    close(factor @ inverse_factor, np.eye(mech.nv))
    close(inverse_factor.T @ np.linalg.inv(D) @ inverse_factor, lw.mass_matrix_inverse(mech, q), 1e-9)


@results("jain1995", "4.3", by="library")
def test_recursive_newton_euler_equations(chain, rng):
    """alpha(k) has H* theta_ddot(k); printed is H* theta_dot(k), as in the line of V(k) above it."""
    accelerations = rng.normal(size=n)
    expected = chain.joints @ lw.inverse_dynamics(chain.mech, chain.q, chain.v, accelerations)

    def newton_euler(own):
        V, alpha, f, T = ([None] * (n + 2) for _ in range(4))
        V[n + 1] = alpha[n + 1] = np.zeros(6)
        for k in range(n, 0, -1):
            V[k] = chain.phi(k + 1, k).T @ V[k + 1] + chain.H[k].T @ chain.rates[k]
            alpha[k] = chain.phi(k + 1, k).T @ alpha[k + 1] + chain.H[k].T @ own[k] + chain.bias_acceleration(k, V)
        f[0] = np.zeros(6)
        for k in range(1, n + 1):
            f[k] = chain.phi(k, k - 1) @ f[k - 1] + chain.M[k] @ alpha[k] + chain.bias_force(k, V)
            T[k] = chain.H[k] @ f[k]
        return chain.stack(V), chain.stack(T)

    V, T = newton_euler(chain.split(chain.joints @ accelerations))
    close(V, chain.links @ lw.link_velocities(chain.mech, chain.q, chain.v).ravel())
    close(T, expected)
    differ(newton_euler(chain.rates)[1], expected)  # as printed


@results("jain1995", "4.4", "4.5", by="library")
def test_equations_of_motion_in_operators(chain, rng):
    x, accelerations = operators_of(chain), rng.normal(size=n)
    theta_ddot, a, b = chain.joints @ accelerations, chain.stack(chain.a), chain.stack(chain.b)
    T = chain.joints @ lw.inverse_dynamics(chain.mech, chain.q, chain.v, accelerations)
    close(x.phi.T @ x.H.T @ chain.stack(chain.rates), chain.stack(chain.V))
    alpha = x.phi.T @ (x.H.T @ theta_ddot + a)
    f = x.phi @ (x.M @ alpha + b)
    close(x.H @ f, T)
    coriolis = x.H @ x.phi @ (x.M @ x.phi.T @ a + b)
    close(coriolis, chain.joints @ lw.bias_force(chain.mech, chain.q, chain.v))
    close(mass_matrix(chain) @ theta_ddot + coriolis, T)
    differ(x.H @ x.phi @ x.M @ x.phi @ x.H.T, mass_matrix(chain))  # below (4.5), the second phi without its star
    minus = x.phi.T @ (x.H.T @ theta_ddot - a)  # (4.4) as printed
    differ(x.H @ x.phi @ (x.M @ minus + b), T)


@results("jain1995", "4.6", "4.7", by="library")
def test_rigid_propagation_operators(chain):
    x = operators_of(chain)
    close(np.linalg.inv(x.I6 - x.E_phi), x.phi)
    for i in range(1, n + 1):
        for j in range(1, i):
            steps = (chain.phi(k, k - 1) for k in range(i, j, -1))
            close(x.phi[6 * i - 6 : 6 * i, 6 * j - 6 : 6 * j], reduce(np.matmul, steps))
    close(x.phi, of(chain, op.phi))
    close(x.E_phi, of(chain, op.E_phi))


@results("jain1995", "Algorithm 4.1", "4.8", "4.9", "4.10", by="library")
def test_riccati_equation(chain):
    x = operators_of(chain)
    names = ("P", "P_plus", "D", "G", "K", "tau", "tau_bar", "E_psi", "psi")
    for name in names:
        close(getattr(x, name), of(chain, getattr(op, name)))
    close(x.P - x.E_psi @ x.P @ x.E_psi.T, x.M)  # (4.9)
    close(x.P - x.E_phi @ x.P_plus @ x.E_phi.T, x.M)
    differ(x.I6 - x.E_phi @ x.P @ x.E_phi.T, x.M)  # as printed
    close(x.D, x.H @ x.P @ x.H.T)  # (4.10)
    close(x.G, x.P @ x.H.T @ np.linalg.inv(x.D))
    close(x.K, x.E_phi @ x.G)
    close(x.tau_bar, x.I6 - x.G @ x.H)
    close(x.E_psi, x.E_phi @ x.tau_bar)
    # With the printed minus, psi is another operator and (4.1c) fails.
    printed = Stacked(chain, sign_of_psi=-1.0)
    differ(printed.E_psi, printed.E_phi @ printed.tau_bar)
    differ((x.I + x.H @ x.phi @ x.K) @ (x.I - x.H @ printed.psi @ x.K), x.I)


@results("jain1995", "Algorithm 4.1", "4.8", by="library")
def test_articulated_inertia_is_felt_at_the_base(rng):
    """P of a link that is held is what resists a push there: of a free base, its operational inertia."""
    mech = random_chain(4, 12, mobile_base=True)
    q, v = lw.random_state(mech, rng)
    chain = Chain(mech, q, v)
    rot = np.kron(np.eye(2), lw.link_poses(mech, q)[0][:3, :3])
    close(Articulated(chain).P[chain.n], rot @ lw.control.operational_inertia(mech, q, "base") @ rot.T)


# -- 5. Total joint rates and working moments ---------------------------------------------------------


@results("jain1995", "5.1", "5.2", by="library")
def test_square_roots_of_the_mass_matrix(chain):
    x = operators_of(chain)
    m = (x.I + x.H @ x.phi @ x.K) @ x.root_D
    ell = np.linalg.inv(x.root_D) @ (x.I - x.H @ x.psi @ x.K)
    close(m @ ell, x.I)
    close(m @ m.T, mass_matrix(chain))
    close(ell.T @ ell, chain.joints @ lw.mass_matrix_inverse(chain.mech, chain.q) @ chain.joints.T, 1e-9)


@results("jain1995", "Table 1", "5.3", by="library")
def test_table_1(chain):
    """Left column with plus G* V+, as (1.3) says; and the physical meaning, D^(-1/2) nu = theta_dot + delta."""
    x, parts, theta_dot = operators_of(chain), operators_of(chain).parts, chain.rates
    root = [None, *(np.sqrt(d) for d in parts.D[1:])]

    def rates(sign):
        V, nu = [None] * (n + 2), [None] * (n + 1)
        V[n + 1] = np.zeros(6)
        for k in range(n, 0, -1):
            V_plus = chain.phi(k + 1, k).T @ V[k + 1]
            nu[k] = root[k] @ (theta_dot[k] + sign * parts.G[k].T @ V_plus)
            V[k] = V_plus + chain.H[k].T @ theta_dot[k]
        return nu

    nu = rates(+1.0)
    close(chain.stack(nu), chain.joints @ lw.formulations.diagonal.rates(chain.mech, chain.q, chain.v))
    close(chain.stack(nu), x.m.T @ chain.stack(theta_dot))
    differ(chain.stack(rates(-1.0)), x.m.T @ chain.stack(theta_dot))  # as printed

    V, recovered = [None] * (n + 2), [None] * (n + 1)
    V[n + 1] = np.zeros(6)
    for k in range(n, 0, -1):  # right column
        V_plus = chain.phi(k + 1, k).T @ V[k + 1]
        recovered[k] = np.linalg.inv(root[k]) @ nu[k] - parts.G[k].T @ V_plus
        V[k] = V_plus + chain.H[k].T @ recovered[k]
        delta = parts.G[k].T @ V_plus
        close(np.linalg.inv(root[k]) @ nu[k], theta_dot[k] + delta)  # (5.3)
        differ(root[k] @ nu[k], theta_dot[k] + delta)  # as printed
    close(chain.stack(recovered), chain.stack(theta_dot))
    rate = lw.formulations.diagonal.velocities(chain.mech, chain.q, chain.joints.T @ chain.stack(nu))
    close(chain.joints @ rate, chain.stack(theta_dot))
    xi = chain.joints @ lw.formulations.diagonal.rates(chain.mech, chain.q, chain.v, normalized=False)
    close(chain.stack([None, *(np.linalg.inv(root[k]) @ nu[k] for k in range(1, n + 1))]), xi)
    close(chain.stack(V), chain.stack(chain.V))
    close(np.linalg.inv(root[n]) @ nu[n], theta_dot[n])  # the parent of link n is at rest: delta is zero


@results("jain1995", "Table 2", "5.4", by="library")
def test_table_2(chain, rng):
    """Both columns with z+ = z + G D^(1/2) epsilon, and T = D^(1/2) epsilon + H z."""
    x, parts = operators_of(chain), operators_of(chain).parts
    T = chain.split(rng.normal(size=n))
    root = [None, *(np.sqrt(d) for d in parts.D[1:])]

    def working_moments(T, weight):
        z_plus, z, epsilon = [np.zeros(6)], [None], [None]
        for k in range(1, n + 1):
            z.append(chain.phi(k, k - 1) @ z_plus[k - 1])
            epsilon.append(np.linalg.inv(root[k]) @ (T[k] - chain.H[k] @ z[k]))
            z_plus.append(z[k] + parts.G[k] @ weight[k] @ epsilon[k])
        return z, epsilon

    z, epsilon = working_moments(T, root)
    close(chain.stack(epsilon), x.ell @ chain.stack(T))
    into = lambda vector: chain.joints.T @ chain.stack(vector)  # noqa: E731
    close(chain.stack(epsilon), chain.joints @ lw.formulations.diagonal.forces(chain.mech, chain.q, into(T)))
    close(chain.stack(T), chain.joints @ lw.formulations.diagonal.torques(chain.mech, chain.q, into(epsilon)))
    printed = [np.eye(1)] * (n + 1)
    differ(chain.stack(working_moments(T, printed)[1]), x.ell @ chain.stack(T))

    def applied_moments(weight):
        z_plus, T = [np.zeros(6)], [None]
        for k in range(1, n + 1):
            z = chain.phi(k, k - 1) @ z_plus[k - 1]
            T.append(root[k] @ epsilon[k] + chain.H[k] @ z)
            z_plus.append(z + parts.G[k] @ weight[k] @ epsilon[k])
        return chain.stack(T)

    close(applied_moments(root), chain.stack(T))
    differ(applied_moments(printed), chain.stack(T))
    for k in range(1, n + 1):
        close(root[k] @ epsilon[k] + chain.H[k] @ z[k], T[k])  # (5.4)
    differ(root[n] @ epsilon[n] - chain.H[n] @ z[n], T[n])  # as printed
    # H z compensates for the outboard moments alone: changing the others leaves epsilon(1) ... epsilon(k) as they are.
    changed = [*T[: n // 2 + 1], *(t + 1.0 for t in T[n // 2 + 1 :])]
    close(working_moments(changed, root)[1][1 : n // 2 + 1], epsilon[1 : n // 2 + 1])


@results("jain1995", "5.5", "5.6", by="library")
def test_cross_products_of_spatial_vectors(rng):
    """Antisymmetric, a Lie bracket; its matrix is skew only if the lower half of the vector is zero."""
    X, Y, Z = rng.normal(size=(3, 6))
    (a, b), (c, d) = X.reshape(2, 3), Y.reshape(2, 3)
    matrix = np.block([[tilde(a), np.zeros((3, 3))], [tilde(b), tilde(a)]])
    close(matrix @ Y, [*np.cross(a, c), *(np.cross(b, c) + np.cross(a, d))])
    close(matrix @ Y, Motion.of(list(X)).cross(Motion.of(list(Y))).flat())  # linkwise's
    cross = lambda x, y: spatial_tilde(x) @ y  # noqa: E731
    close(cross(X, Y), -cross(Y, X))
    close(cross(X, cross(Y, Z)) + cross(Y, cross(Z, X)) + cross(Z, cross(X, Y)), np.zeros(6))
    differ(cross(X, cross(Z, Y)), -cross(Z, cross(X, Y)))  # an identity printed below (5.5)
    close(cross(X, cross(Z, Y)), cross(Z, cross(X, Y)) + cross(cross(X, Z), Y))  # what Jacobi's identity gives
    differ(matrix, -matrix.T)
    pure_rotation = spatial_tilde([*a, 0.0, 0.0, 0.0])
    close(pure_rotation, -pure_rotation.T)
    # The bracket is that of the transformations phi: d/dt phi*(l t) X is the bracket of X with a translation.
    translation = spatial_tilde([0.0, 0.0, 0.0, *b])
    phi = np.block([[np.eye(3), tilde(b)], [np.zeros((3, 3)), np.eye(3)]])
    close(phi.T @ X - X, -translation @ X)

    stacked = np.concatenate([X, Y])  # (5.6)
    block = np.block([[spatial_tilde(X), np.zeros((6, 6))], [np.zeros((6, 6)), spatial_tilde(Y)]])
    close(block @ np.concatenate([Z, Z]), np.concatenate([cross(part, Z) for part in stacked.reshape(2, 6)]))
