"""rodriguez1992, Sections II to VI: kinematics, Newton-Euler recursion, and the two factorizations of the mass matrix.

Formulas and loops are written as printed, link 1 at the tip, vectors along the world's axes (see ``tip_to_base``). They
are tried on the papers' own phi, H, M, a and b, and on those that linkwise compiles.
"""

from __future__ import annotations

from functools import reduce

import numpy as np
import pytest

import linkwise as lw
from linkwise import operators as op

from .library import LibraryChain, compiled, of
from .tip_to_base import Chain, close, differ, random_chain, rate_of_change, results, tilde

N = 6
TREES = [lw.mechanisms.random_tree(8, seed, floating_base=seed % 2 == 1) for seed in (3, 4, 5)]
every_tree = pytest.mark.parametrize("mech", TREES, ids=lambda mech: mech.name)


@pytest.fixture(params=[(Chain, 1), (Chain, 2), (LibraryChain, 2)], ids=["1", "2", "linkwise"])
def chain(request):
    kind, seed = request.param
    mech = random_chain(N, seed)
    return kind(mech, *lw.random_state(mech, np.random.default_rng(seed)))


@pytest.fixture
def rng():
    return np.random.default_rng(92)


# -- II. State space model ----------------------------------------------------------------------------


@results("rodriguez1992", "1", "2", by="library")
def test_spatial_velocity_and_inertia(chain):
    """M(k) V(k) is the momentum of link k, its angular part about O(k); half V* M V is the energy."""
    energy = 0.0
    for k in range(1, N + 1):
        omega, v = chain.V[k][:3], chain.V[k][3:]
        m, p = chain.mass[k], chain.p[k]
        M = np.block([[chain.inertia[k] - m * tilde(p) @ tilde(p), m * tilde(p)], [-m * tilde(p), m * np.eye(3)]])
        linear = m * (v + np.cross(omega, p))
        close(M @ chain.V[k], [*(chain.inertia[k] @ omega + np.cross(p, linear)), *linear])
        close(chain.M[k], M)
        energy += 0.5 * chain.V[k] @ M @ chain.V[k]
    close(energy, lw.kinetic_energy(chain.mech, chain.q, chain.v))


@results("rodriguez1992", "3", "4", "5", by="library")
def test_state_transition_matrix(chain, rng):
    """phi(i, j) moves a force from j to i, phi* a velocity of one body from i to j; and it is a transition matrix."""
    N_j, F_j, omega, v = rng.normal(size=(4, 3))
    for i in range(N + 1):
        for j in range(N + 1):
            phi = np.block([[np.eye(3), tilde(chain.l(i, j))], [np.zeros((3, 3)), np.eye(3)]])
            close(chain.phi(i, j), phi)
            close(phi @ [*N_j, *F_j], [*(N_j + np.cross(chain.l(i, j), F_j)), *F_j])
            close(phi.T @ [*omega, *v], [*omega, *(v + np.cross(omega, chain.l(i, j)))])
            close(np.linalg.inv(chain.phi(i, j)), chain.phi(j, i))
            for k in range(N + 1):
                close(chain.phi(i, k) @ chain.phi(k, j), chain.phi(i, j))
            if i > j:  # (5): a product, where commas are printed
                close(reduce(np.matmul, (chain.phi(m, m - 1) for m in range(i, j, -1))), chain.phi(i, j))
        close(chain.phi(i, i), np.eye(6))


# -- III. Recursive Newton-Euler equations ------------------------------------------------------------


def newton_euler(chain, accelerations, f_ext):
    """(6)-(12) link by link: lists V, alpha, f and T that begin with number 0; gravity is in a(N)."""
    theta_dot, theta_ddot = chain.rates, chain.split(chain.joints @ accelerations)
    V, alpha, f, T = ([None] * (N + 2) for _ in range(4))
    H = [None, *(np.concatenate([chain.h[k], np.zeros(3)])[None] for k in range(1, N + 1))]  # (13)
    V[N + 1] = np.zeros(6)
    alpha[N + 1] = np.zeros(6)  # (6)
    for k in range(N, 0, -1):
        V[k] = chain.phi(k + 1, k).T @ V[k + 1] + H[k].T @ theta_dot[k]
        alpha[k] = chain.phi(k + 1, k).T @ alpha[k + 1] + H[k].T @ theta_ddot[k] + chain.bias_acceleration(k, V)
    V[0] = chain.phi(1, 0).T @ V[1]
    alpha[0] = chain.phi(1, 0).T @ alpha[1] + chain.bias_acceleration(0, V)  # (9)
    f[0] = f_ext  # (10)
    for k in range(1, N + 1):
        f[k] = chain.phi(k, k - 1) @ f[k - 1] + chain.M[k] @ alpha[k] + chain.bias_force(k, V)
        T[k] = H[k] @ f[k]
    return V, alpha, f, T


@results("rodriguez1992", "1", "6", "7", "8", "9", "10", "11", "12", "13", by="library")
def test_recursive_newton_euler_equations(chain, rng):
    """The two loops against the library's inverse dynamics, velocities and accelerations."""
    accelerations, f_ext = rng.normal(size=N), rng.normal(size=6)
    V, alpha, f, T = newton_euler(chain, accelerations, f_ext)
    mech, q, v = chain.mech, chain.q, chain.v
    close(chain.stack(V), chain.links @ lw.link_velocities(mech, q, v).ravel())
    close(chain.stack(T), chain.joints @ lw.inverse_dynamics(mech, q, v, accelerations, chain.wrenches(f_ext)))
    # alpha: what an inertial observer measures, less gravity; the library's are rates of body-fixed components.
    measured = np.array(alpha[1 : N + 1]) + [0.0, 0.0, 0.0, *mech.gravity]
    library = (chain.links @ lw.link_accelerations(mech, q, v, accelerations).ravel()).reshape(-1, 6)
    for k in range(1, N + 1):
        library[k - 1, 3:] += np.cross(V[k][:3], V[k][3:])
    close(measured, library)
    # The tip: V(0) and the change of J along the motion.
    J = lw.jacobian(mech, q, "tip", frame="world_aligned")
    J_dot = rate_of_change(lambda x: lw.jacobian(mech, x, "tip", frame="world_aligned"), mech, q, v)
    close(V[0], J @ v)
    close(alpha[0] + [0.0, 0.0, 0.0, *mech.gravity], J @ accelerations + J_dot @ v, 1e-9)


# -- IV. Spatial vectors and operators ----------------------------------------------------------------


@results("rodriguez1992", "14", "15", "16", by="library")
def test_composite_vectors(chain, rng):
    """The scan runs (15) and (16) together. What linkwise's operators give for all links at once has in its place k
    what the recursions give for link k alone: V, theta, T, a, alpha, f and b, and none of them in another order."""
    accelerations, f_ext = rng.normal(size=N), rng.normal(size=6)
    V, alpha, f, T = newton_euler(chain, accelerations, f_ext)
    theta_dot = chain.joints @ chain.v
    v, a = op.joint_vector("v"), op.joint_vector("a")
    bias, force = op.bias_acceleration(v) + op.gravity(), op.bias_force(v)
    given = {"v": theta_dot, "a": chain.joints @ accelerations, "f": chain.B @ f_ext}
    motion = op.phi.T @ (op.H.T @ a + bias)
    wrench = op.phi @ (op.M @ motion + force + op.link_vector("f"))
    whole = {
        "V": (op.phi.T @ op.H.T @ v, V),
        "a": (bias, [chain.bias_acceleration(k, V) for k in range(N + 1)]),
        "alpha": (motion, alpha),
        "f": (wrench, f),
        "b": (force, [None, *(chain.bias_force(k, V) for k in range(1, N + 1))]),
    }
    for name, (expression, links) in whole.items():
        needed = {x.name for x in expression.walk() if isinstance(x, type(v))}
        found = of(chain, expression, **{key: given[key] for key in needed}).reshape(N, 6)
        for k in range(1, N + 1):
            close(found[k - 1], links[k])
        differ(found[::-1], np.array(links[1 : N + 1]))
        assert name
    library = chain.joints @ lw.inverse_dynamics(chain.mech, chain.q, chain.v, accelerations, chain.wrenches(f_ext))
    for k, joint in enumerate(reversed(chain.mech.joint_names), start=1):  # theta(k) and T(k) are of joint k
        here = chain.mech.v_index(joint)
        close(theta_dot[k - 1], chain.v[here][0])
        close(library[k - 1], T[k][0])


@results("rodriguez1992", "17", "18", "19", "20", "21", by="library")
def test_operators_and_the_jacobian(chain):
    """phi, H, B and J = B* phi* H*."""
    V = np.concatenate([chain.V[k] for k in range(1, N + 1)])
    theta_dot = np.concatenate([chain.rates[k] for k in range(1, N + 1)])
    phi = np.zeros((6 * N, 6 * N))
    for i in range(1, N + 1):
        for j in range(1, i + 1):
            phi[6 * i - 6 : 6 * i, 6 * j - 6 : 6 * j] = chain.phi(i, j)
    H = np.zeros((N, 6 * N))
    for k in range(1, N + 1):
        H[k - 1, 6 * k - 6 : 6 * k - 3] = chain.h[k]
    B = np.concatenate([chain.phi(1, 0).T, np.zeros((6, 6 * (N - 1)))], axis=1).T
    close(phi, of(chain, op.phi))
    close(H, of(chain, op.H))
    close(B, chain.links @ compiled(op.B("tip"), chain.mech, chain.q) @ tip_axes(chain).T)

    for k in range(1, N + 1):  # (21), first line
        terms = (chain.phi(i, k).T @ chain.H[i].T @ chain.rates[i] for i in range(k, N + 1))
        close(sum(terms), chain.V[k])
    close(phi.T @ H.T @ theta_dot, V)
    J = B.T @ phi.T @ H.T
    close(J @ chain.joints, lw.jacobian(chain.mech, chain.q, "tip", frame="world_aligned"))
    V_0 = lw.jacobian(chain.mech, chain.q, "tip", frame="world_aligned") @ chain.v
    close(J @ theta_dot, V_0)


def tip_axes(chain):
    """Force at the tip frame in its own axes -> in the world's."""
    return np.kron(np.eye(2), lw.frame_pose(chain.mech, chain.q, "tip")[:3, :3])


# -- V. Newton-Euler factorization --------------------------------------------------------------------


@results("rodriguez1992", "22", by="library")
def test_newton_euler_factorization(chain):
    H, phi, M = chain.diagonal(chain.H), chain.stacked_phi, chain.diagonal(chain.M)
    close(H @ phi @ M @ phi.T @ H.T, chain.joints @ lw.mass_matrix(chain.mech, chain.q) @ chain.joints.T)


@results("rodriguez1992", "23", "24", "25", "26", "27", by="library")
def test_equations_of_motion_with_and_without_bias(chain, rng):
    H, phi, M, B = chain.diagonal(chain.H), chain.stacked_phi, chain.diagonal(chain.M), chain.B
    a, b = chain.stack(chain.a), chain.stack(chain.b)
    mech, q, v = chain.mech, chain.q, chain.v
    accelerations, f_0 = rng.normal(size=N), rng.normal(size=6)
    theta_ddot = chain.joints @ accelerations
    expected = chain.joints @ lw.inverse_dynamics(mech, q, v, accelerations, chain.wrenches(f_0))
    mass_matrix = H @ phi @ M @ phi.T @ H.T

    alpha = phi.T @ H.T @ theta_ddot + phi.T @ a
    f = phi @ (M @ alpha + b + B @ f_0)
    close(H @ f, expected)  # (24)
    close(H @ phi @ (M @ alpha + b + B @ f_0), expected)  # (25)
    C, J = H @ phi @ (M @ phi.T @ a + b), B.T @ phi.T @ H.T
    close(C, chain.joints @ lw.bias_force(mech, q, v))
    close(mass_matrix @ theta_ddot + C + J.T @ f_0, expected)  # (23)
    T_hat = H @ phi @ (M @ phi.T @ a + b + B @ f_0)
    close(T_hat, C + J.T @ f_0)  # (27)
    close(T_hat, chain.joints @ lw.inverse_dynamics(mech, q, v, np.zeros(N), chain.wrenches(f_0)))
    close(mass_matrix @ theta_ddot, expected - T_hat)  # (26)
    # Below (23): J_dot theta_dot = B* phi* a + a(0), without gravity.
    a[-6:] += [0.0, 0.0, 0.0, *mech.gravity]
    J_dot = rate_of_change(lambda x: lw.jacobian(mech, x, "tip", frame="world_aligned"), mech, q, v)
    close(B.T @ phi.T @ a + chain.a[0], J_dot @ v, 1e-9)


@results("rodriguez1992", "Identity 1", "28", "29", by="library")
def test_identity_1_composite_bodies(chain):
    phi, M = chain.stacked_phi, chain.diagonal(chain.M)
    Phi = phi - np.eye(6 * N)
    r = [np.zeros((6, 6))]
    for k in range(1, N + 1):
        r.append(sum(chain.phi(k, i) @ chain.M[i] @ chain.phi(k, i).T for i in range(1, k + 1)))
        close(r[k][3:, 3:], sum(chain.mass[1 : k + 1]) * np.eye(3))  # the mass of the composite body
    r = chain.diagonal(r)
    close(phi @ M @ phi.T, r + Phi @ r + r @ Phi.T)
    close(of(chain, op.phi @ op.M @ op.phi.T), r + Phi @ r + r @ Phi.T)


@results("rodriguez1992", "Identity 1", "28", by="library")
@every_tree
def test_identity_1_holds_for_trees(mech):
    """Blocks of links on different branches vanish on both sides."""
    q, _ = lw.random_state(mech, np.random.default_rng(0))
    Phi, both = compiled(op.Phi, mech, q), compiled(op.phi @ op.M @ op.phi.T, mech, q)
    r = both * np.kron(np.eye(mech.n_links), np.ones((6, 6)))
    close(both, r + Phi @ r + r @ Phi.T)


@results("rodriguez1992", "30", "31", "32", "33", by="library")
def test_recursive_mass_matrix_evaluation(chain):
    m = np.zeros((N + 1, N + 1))
    r, x = [np.zeros((6, 6))] * (N + 1), [None] * (N + 1)  # (30)
    for k in range(1, N + 1):
        r[k] = chain.phi(k, k - 1) @ r[k - 1] @ chain.phi(k, k - 1).T + chain.M[k]
        m[k, k] = (chain.H[k] @ r[k] @ chain.H[k].T).item()
        x[k] = r[k] @ chain.H[k].T
        for i in range(k + 1, N + 1):
            x[i] = chain.phi(i, i - 1) @ x[i - 1]
            m[i, k] = (chain.H[i] @ x[i]).item()
    expected = chain.joints @ lw.mass_matrix(chain.mech, chain.q) @ chain.joints.T
    close(m[1:, 1:], np.tril(expected))


# -- VI. Innovations factorization --------------------------------------------------------------------


def riccati(chain):
    """(34)-(36) with (39); lists indexed by k."""
    P, D, G = [np.zeros((6, 6))], [None], [np.zeros((6, 1))]
    for k in range(1, chain.n + 1):
        psi = chain.phi(k, k - 1) @ (np.eye(6) - G[k - 1] @ chain.H[k - 1])
        P.append(psi @ P[k - 1] @ psi.T + chain.M[k])
        D.append(chain.H[k] @ P[k] @ chain.H[k].T)
        G.append(P[k] @ chain.H[k].T @ np.linalg.inv(D[k]))
    return P, D, G


def psi_element(chain, G):
    """psi(i, j) of (38)-(40)."""

    def psi(i, j):
        steps = (chain.phi(k, k - 1) @ (np.eye(6) - G[k - 1] @ chain.H[k - 1]) for k in range(i, j, -1))
        return reduce(np.matmul, steps, np.eye(6))

    return psi


def stacked_psi(chain, G):
    """Psi of (41): psi(i, j+1) phi(j+1, j) below the diagonal."""
    psi = psi_element(chain, G)
    return chain.blocks(lambda i, j: psi(i, j + 1) @ chain.phi(j + 1, j) if i > j else np.zeros((6, 6)))


@results("rodriguez1992", "34", "35", "36", "37", by="library")
def test_riccati_equation(chain):
    """P(k) is symmetric, positive, the articulated inertia of the dense operators: and D(k) is never zero."""
    P, D, G = riccati(chain)
    for k in range(1, N + 1):
        close(P[k], P[k].T)
        assert np.linalg.eigvalsh(P[k]).min() > 0.0 and D[k] > 0.0
    close(chain.diagonal(P), of(chain, op.P))
    close(chain.diagonal(D), of(chain, op.D))
    close(chain.diagonal(G), of(chain, op.G))
    close(chain.diagonal(G), chain.diagonal(P) @ chain.diagonal(chain.H).T @ np.linalg.inv(chain.diagonal(D)))
    # At the tip it is that of link 1 alone; further in, a freely swinging outboard chain weighs less than a frozen one.
    close(P[1], chain.M[1])
    frozen = sum(chain.phi(N, i) @ chain.M[i] @ chain.phi(N, i).T for i in range(1, N + 1))
    assert np.linalg.eigvalsh(frozen - P[N]).min() > -1e-12


@results("rodriguez1992", "38", "39", "40", "41", by="library")
def test_kalman_filter_transition_operator(chain):
    """psi(i, j) and Psi as printed; Psi is psi E_phi of jain1995."""
    P, D, G = riccati(chain)
    psi = psi_element(chain, G)
    articulated = of(chain, op.psi)
    for i in range(1, N + 1):
        close(psi(i, i), np.eye(6))
        for j in range(1, i + 1):
            close(psi(i, j), articulated[6 * i - 6 : 6 * i, 6 * j - 6 : 6 * j])
            for k in range(j, i + 1):
                close(psi(i, k) @ psi(k, j), psi(i, j))
    Psi = stacked_psi(chain, G)
    close(Psi, of(chain, op.Psi))
    # "The operator psi when post-multiplied by (I - GH)": Psi (I - GH) is psi without its diagonal.
    close(Psi @ (np.eye(6 * N) - chain.diagonal(G) @ chain.diagonal(chain.H)), articulated - np.eye(6 * N))


@results("rodriguez1992", "Identity 2", "42", by="library")
def test_identity_2(chain):
    """With the two intermediate results of its proof: r = P + q, and q's own Identity 1."""
    P, D, G = riccati(chain)
    phi, M, H = chain.stacked_phi, chain.diagonal(chain.M), chain.diagonal(chain.H)
    Phi = phi - np.eye(6 * N)
    q = [None]
    for k in range(1, N + 1):
        terms = [chain.phi(k, i) @ G[i] @ D[i] @ G[i].T @ chain.phi(k, i).T for i in range(1, k)]
        q.append(sum(terms, np.zeros((6, 6))))
        r = sum(chain.phi(k, i) @ chain.M[i] @ chain.phi(k, i).T for i in range(1, k + 1))
        close(r, P[k] + q[k])
        passed = np.eye(6) - G[k] @ chain.H[k]
        close(passed @ P[k] @ passed.T, passed @ P[k])
    P, D, q = chain.diagonal(P), chain.diagonal(D), chain.diagonal(q)
    last = Phi @ P @ H.T @ np.linalg.inv(D) @ H @ P @ Phi.T
    close(last, q + Phi @ q + q @ Phi.T)
    close(phi @ M @ phi.T, P + Phi @ P + P @ Phi.T + last)


@results("rodriguez1992", "Identity 3", "43", "Identity 4", "44", "Identity 5", "45", "Identity 6", "46", by="library")
def test_identities_3_to_6(chain):
    P, D, G = riccati(chain)
    H, Phi, Psi = chain.diagonal(chain.H), chain.stacked_phi - np.eye(6 * N), stacked_psi(chain, G)
    D, G, unit = chain.diagonal(D), chain.diagonal(G), np.eye(N)
    expected = chain.joints @ lw.mass_matrix(chain.mech, chain.q) @ chain.joints.T
    factor, inverse_factor = unit + H @ Phi @ G, unit - H @ Psi @ G
    close(factor @ D @ factor.T, expected)
    close(factor, np.tril(factor))
    close(D, np.diag(np.diag(D)))
    close((np.eye(6 * N) - Psi @ G @ H) @ Phi, Psi)
    close(np.linalg.inv(factor), inverse_factor)
    close(inverse_factor.T @ np.linalg.inv(D) @ inverse_factor, np.linalg.inv(expected), 1e-9)
    # Section I-B prints the factorization with Psi in the place of Phi, Section X-B with jain1995's K for G.
    K = of(chain, op.E_phi) @ G
    for wrong in (unit + H @ Psi @ G, unit + H @ Phi @ K):
        differ(wrong @ D @ wrong.T, expected)


@pytest.mark.slow_cases("random_tree_8_4")
@results("rodriguez1992", "Identity 2", "Identity 3", "Identity 4", "Identity 5", "Identity 6", by="library")
@every_tree
def test_identities_2_to_6_hold_for_trees(mech):
    """Any joints, branches and rotor inertias: D = H P H* + R, and R is added to the mass matrix."""
    q, _ = lw.random_state(mech, np.random.default_rng(1))
    value = lambda expression: compiled(expression, mech, q)  # noqa: E731
    assert value(op.R).any()
    Phi, Psi, P, H, G, D = op.Phi, op.Psi, op.P, op.H, op.G, op.D
    last = Phi @ P @ H.T @ D.inv @ H @ P @ Phi.T
    close(value(op.phi @ op.M @ op.phi.T), value(P + Phi @ P + P @ Phi.T + last))
    factor, inverse_factor = op.I + H @ Phi @ G, op.I - H @ Psi @ G
    close(value(factor @ D @ factor.T), lw.mass_matrix(mech, q))
    close(value((op.I - Psi @ G @ H) @ Phi), value(Psi))
    close(value(factor) @ value(inverse_factor), np.eye(mech.nv))
    close(value(inverse_factor.T @ D.inv @ inverse_factor), lw.mass_matrix_inverse(mech, q), 1e-9)
