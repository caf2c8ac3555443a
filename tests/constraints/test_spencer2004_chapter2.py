"""spencer2004, Chapter 2, equation by equation, on the five-bar: states x = (q, v), derivatives by differences."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.kinematics import Coordinates
from tests.seeds.tip_to_base import results

from .built_in import built, random_state

PLANAR = (0, 1)  # the rows of a revolute loop that a planar mechanism can violate: m = 2, full rank
MECH = built("five_bar")
Q, V = random_state("five_bar", 6)
X = np.concatenate([Q, V])
ROWS = np.array([[1.0, 0.3, 0.0, 0.0], [0.0, 0.0, 1.0, -0.4]])  # y_q = R_q (q - Q)


def seed(*ids, by):
    return results("spencer2004", *ids, by=by)


def g(q):
    return lw.constraints.position_error(MECH, q)[list(PLANAR)]


def jacobian(q):
    return lw.constraints.constraint_jacobian(MECH, q)[list(PLANAR)]


def h(x):
    """The invariants (2.7)."""
    return np.concatenate([g(x[:4]), jacobian(x[:4]) @ x[4:]])


def f(x):
    """The underlying ODE (2.6)."""
    return np.concatenate([x[4:], lw.forward_dynamics(MECH, x[:4], x[4:], np.zeros(4))])


def derivative(function, at, step=1e-5):
    """Central differences of fourth order."""
    columns = []
    for unit in np.eye(len(at)) * step:
        near, far = function(at + unit) - function(at - unit), function(at + 2 * unit) - function(at - 2 * unit)
        columns.append((8 * near - far) / (12 * step))
    return np.array(columns).T


CHART = lw.kinematics.local_parametrization(MECH, Q, ROWS)


def psi(y):
    """x = Psi(y) (2.11) for y = (y_q, dy_q/dt)."""
    q = CHART.configuration(y[:2], tolerance=1e-14)
    return np.concatenate([q, CHART.velocity(q, y[2:])])


def psi_inverse(x):
    return np.concatenate(CHART.independent_state(x[:4], x[4:]))


Y = psi_inverse(X)
BLOCK_ROWS = np.block([[ROWS, np.zeros((2, 4))], [np.zeros((2, 4)), ROWS]])


@seed("2.6", "2.7", "2.8", "2.9", "2.10", by="library")
def test_an_ode_with_invariants():
    """h vanishes on the manifold and along solutions; its derivative [G 0; dG/dt G] has full rank."""
    np.testing.assert_allclose(h(X), 0.0, atol=1e-11)
    invariants = derivative(h, X)
    assert np.linalg.matrix_rank(invariants, tol=1e-6) == 4
    np.testing.assert_allclose(invariants[:2], np.hstack([jacobian(Q), np.zeros((2, 4))]), atol=1e-9)
    np.testing.assert_allclose(invariants[2:, 4:], jacobian(Q), atol=1e-9)
    bias = lw.constraints.constraint_bias(MECH, Q, V)[list(PLANAR)]
    np.testing.assert_allclose(invariants[2:, :4] @ V, bias, atol=1e-8)
    np.testing.assert_allclose(invariants @ f(X), 0.0, atol=1e-8)  # along solutions h stays what it is
    motion = lw.simulate(
        MECH, Q, V, 0.3, method="dop853", settings=lw.motion.Settings(stabilization=None, rtol=1e-12, atol=1e-12)
    )
    assert max(np.abs(h(np.concatenate(state))).max() for state in zip(motion.q, motion.v, strict=True)) < 1e-9


@seed("2.12", "2.13", "2.19", "2.40", by="library")
def test_the_local_state_space_form():
    """DPsi spans the null space of H, has the blocks K, 0, dK/dt, K, and takes dy/dt to f."""
    slope = derivative(psi, Y)
    assert np.linalg.matrix_rank(slope, tol=1e-6) == 4
    np.testing.assert_allclose(derivative(h, X) @ slope, 0.0, atol=1e-7)
    basis = CHART.derivative(Q)
    np.testing.assert_allclose(slope[:4], np.hstack([basis, np.zeros((4, 2))]), atol=1e-8)
    np.testing.assert_allclose(slope[4:, 2:], basis, atol=1e-8)
    rate = np.linalg.pinv(slope) @ f(X)  # (2.13)
    np.testing.assert_allclose(slope @ rate, f(X), atol=1e-7)  # (2.12): overdetermined but solvable
    expected = np.concatenate([Y[2:], CHART.forward_dynamics(Q, V, np.zeros(4))])
    np.testing.assert_allclose(rate, expected, atol=1e-7)
    np.testing.assert_allclose(derivative(psi_inverse, X) @ f(X), expected, atol=1e-7)  # (2.15)


@seed("2.20", "2.23", "2.24", "2.26", "2.29", "2.31", by="library")
def test_a_nonlinear_change_of_coordinates():
    """R(x, y) = 0 with D2 R that is not a constant: c(q) = y + y^3 / 10, and its time derivative for the velocities."""

    def c(q):
        return np.array([np.sin(q[0]) + q[1], q[2] + 0.2 * q[3] ** 2])

    def residual(x, y):
        rows = derivative(c, x[:4])
        return np.concatenate([c(x[:4]) - y[:2] - y[:2] ** 3 / 10, rows @ x[4:] - (1 + 0.3 * y[:2] ** 2) * y[2:]])

    def phi(x, y):
        return np.concatenate([residual(x, y), h(x)])

    chart = lw.kinematics.local_parametrization(
        MECH,
        Q,
        Coordinates(c, lambda q: derivative(c, q), lambda q, v: derivative(lambda p: derivative(c, p) @ v, q) @ v),
    )

    def parametrization(y):
        q = chart.configuration(y[:2] + y[:2] ** 3 / 10, tolerance=1e-14)
        return np.concatenate([q, chart.velocity(q, (1 + 0.3 * y[:2] ** 2) * y[2:])])

    start = c(Q)
    roots = np.array(
        [float(np.real(r[np.abs(np.imag(r)) < 1e-9][0])) for r in (np.roots([0.1, 0, 1, -s]) for s in start)]
    )
    y = np.concatenate([roots, derivative(c, Q) @ V / (1 + 0.3 * roots**2)])
    np.testing.assert_allclose(phi(X, y), 0.0, atol=1e-8)
    np.testing.assert_allclose(parametrization(y), X, atol=1e-7)
    there = y + 0.01
    np.testing.assert_allclose(phi(parametrization(there), there), 0.0, atol=1e-8)  # (2.24)
    left, right = derivative(lambda x: residual(x, y), X, 1e-4), derivative(lambda s: residual(X, s), y, 1e-4)
    invariants = derivative(h, X)
    formula = np.linalg.solve(np.vstack([left, invariants]), np.vstack([-right, np.zeros((4, 4))]))  # (2.29)
    np.testing.assert_allclose(formula, derivative(parametrization, y, 1e-4), atol=1e-5)
    inverse_slope = -np.linalg.solve(right, left)
    other = np.linalg.solve(np.vstack([inverse_slope, invariants]), np.vstack([np.eye(4), np.zeros((4, 4))]))  # (2.31)
    np.testing.assert_allclose(other, formula, atol=1e-9)


@seed("2.32", "2.33", "2.34", "2.35", "2.36", "2.37", "2.38", "2.39", "Theorem 2.3.3.1.1", by="library")
def test_a_linear_change_of_coordinates():
    rng = np.random.default_rng(0)
    dependent = rng.normal(size=(4, 8))  # S, any that completes R
    both = np.linalg.inv(np.vstack([BLOCK_ROWS, dependent]))
    r_bar, s_bar = both[:, :4], both[:, 4:]
    np.testing.assert_allclose(BLOCK_ROWS @ (X - np.concatenate([Q, 0 * V])), Y, atol=1e-12)  # (2.33)

    def omega(y):
        return dependent @ (psi(y) - X)

    for y in (Y, Y + [0.02, -0.01, 0.1, 0.2]):
        np.testing.assert_allclose(r_bar @ (y - Y) + s_bar @ omega(y) + X, psi(y), atol=1e-10)  # (2.35, 2.36)
    invariants = derivative(h, X)
    slope_of_omega = -np.linalg.solve(invariants @ s_bar, invariants @ r_bar)
    np.testing.assert_allclose(invariants @ r_bar + invariants @ s_bar @ slope_of_omega, 0.0, atol=1e-9)  # (2.39)
    np.testing.assert_allclose(derivative(omega, Y), slope_of_omega, atol=1e-6)
    np.testing.assert_allclose(r_bar + s_bar @ slope_of_omega, derivative(psi, Y), atol=1e-6)  # (2.37, 2.38)


@seed("Theorem 2.3.1", by="library")
def test_tangent_vectors_in_the_proof_of_the_theorem():
    """D Psi is one to one: v2 = D Psi_2 (D Psi_1)^-1 v1 of any tangent vector; printed is (D Psi_2)^-1."""
    slope = derivative(psi, Y)
    first, second = slope[[0, 2, 4, 6]], slope[[1, 3, 5, 7]]
    assert min(np.abs(np.linalg.det(first)), np.abs(np.linalg.det(second))) > 1e-3
    v = f(X)  # which is tangent to the manifold
    v1, v2 = v[[0, 2, 4, 6]], v[[1, 3, 5, 7]]
    np.testing.assert_allclose(second @ np.linalg.solve(first, v1), v2, atol=1e-6 * np.abs(v).max())
    assert np.abs(second @ np.linalg.solve(second, v1) - v2).max() > 1e-2  # as printed


@seed("2.46", "2.47", "Generalized coordinate partitioning", by="library")
def test_partitioning_on_the_position_level():
    complete = np.vstack([ROWS, np.random.default_rng(1).normal(size=(2, 4))])
    r_bar, s_bar = np.hsplit(np.linalg.inv(complete), 2)
    constraint, bias = jacobian(Q), lw.constraints.constraint_bias(MECH, Q, V)[list(PLANAR)]
    basis = r_bar - s_bar @ np.linalg.solve(constraint @ s_bar, constraint @ r_bar)
    np.testing.assert_allclose(basis, CHART.derivative(Q), atol=1e-11)
    offset = -s_bar @ np.linalg.solve(constraint @ s_bar, bias)
    np.testing.assert_allclose(offset, CHART.offset(Q, V), atol=1e-10)
    # Unit vectors for R and S: coordinates themselves, chosen by pivoting.
    found = lw.constraints.null_space(MECH, Q, method="partitioning")
    units = [row for row in found if np.count_nonzero(row) == 1 and row.max() == 1.0]
    assert len(units) == 2


@seed("2.41", "2.43a", "Tangent space method", "Differentiable null space method", by="library")
def test_null_space_methods():
    """K* M dv/dt = K* F whatever K; and dK/dt of the differentiable method belongs to its K."""
    force = -lw.bias_force(MECH, Q, V)
    a = f(X)[4:]
    for method in ("svd", "partitioning", "tangent", "differentiable"):
        basis = lw.constraints.null_space(MECH, Q, method=method)
        np.testing.assert_allclose(basis.T @ (lw.mass_matrix(MECH, Q) @ a - force), 0.0, atol=1e-9)
    # Tangent space methods: the rows of R are a basis of the null space "so that (R* H*)* is always nonsingular", and
    # then K is that basis itself, with orthonormal columns.
    for state in range(5):
        q, _ = random_state("five_bar", state)
        basis = lw.constraints.null_space(MECH, q, method="tangent")
        np.testing.assert_allclose(basis.T @ basis, np.eye(2), atol=1e-12)
        np.testing.assert_allclose(jacobian(q) @ basis, 0.0, atol=1e-12)
        stacked = np.vstack([basis.T, jacobian(q)])
        smallest = min(1.0, np.linalg.svd(jacobian(q))[1][-1])
        assert np.linalg.svd(stacked)[1][-1] == pytest.approx(smallest, rel=1e-9)  # no worse than G is
        np.testing.assert_allclose(np.linalg.inv(stacked)[:, :2], basis, atol=1e-11)
        chart = lw.kinematics.local_parametrization(MECH, q, basis.T)
        np.testing.assert_allclose(chart.derivative(q), basis, atol=1e-11)
        np.testing.assert_allclose(chart.configuration([0.0, 0.0]), q, atol=1e-12)
    # With dK/dt = -Q1 R^-T dG/dt K, the null space along the motion is spanned by K + t dK/dt to first order.
    basis, step = lw.constraints.null_space(MECH, Q, method="differentiable"), 1e-5
    moving = (jacobian(lw.integrate(MECH, Q, V, step)) - jacobian(lw.integrate(MECH, Q, V, -step))) / (2 * step)
    q1, r = np.linalg.qr(jacobian(Q).T)
    slope = -q1 @ np.linalg.solve(r.T, moving @ basis)
    ahead = jacobian(lw.integrate(MECH, Q, V, 1e-4)) @ (basis + 1e-4 * slope)
    assert np.abs(ahead).max() < 1e-6
    np.testing.assert_allclose(slope.T @ basis + basis.T @ slope, 0.0, atol=1e-12)  # K stays orthonormal
    np.testing.assert_allclose(jacobian(Q) @ (slope @ (basis.T @ V)), -moving @ V, atol=1e-8)


@seed("2.48", "Section 2.4.1", by="library")
def test_the_parallel_four_bar_robot_has_a_constant_basis():
    mech = lw.mechanisms.parallel_four_bar_robot(1.0, 0.6)
    printed = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, -1.0], [-1.0, 1.0]])
    rng = np.random.default_rng(0)
    for q1, q2 in rng.uniform(-3.0, 3.0, (20, 2)):
        q = np.array([q1, q2, q1 - q2, q2 - q1 - np.pi])  # (2.48)
        np.testing.assert_allclose(lw.constraints.position_error(mech, q), 0.0, atol=1e-14)
        basis = lw.constraints.null_space(mech, q, independent=("joint1", "joint2"))
        np.testing.assert_allclose(basis, printed, atol=1e-9 / abs(np.sin(q1 - q2)))
        chart = lw.kinematics.local_parametrization(mech, q, ("joint1", "joint2"))
        moved = chart.configuration([0.1, -0.2])
        np.testing.assert_allclose(moved, q + printed @ [0.1, -0.2], atol=1e-10)
        # The general formula printed before it is simplified.
        s, (_, _, q3, q4), ratio = np.sin, q, 0.6 / 1.0
        general = [
            [-s(q1 - q2 - q3 - q4) / s(q4), -(s(q4) + ratio * s(q3 + q4)) / s(q4)],
            [
                (s(q1 - q2 - q3) + ratio * s(q1 - q2 - q3 - q4)) / (ratio * s(q4)),
                (s(q3) + ratio * s(q3 + q4)) / s(q4),
            ],
        ]
        np.testing.assert_allclose(np.array(general), printed[2:], atol=1e-9 / abs(s(q4)))


@seed("Globally independent coordinates", by="library")
def test_the_crank_angle_is_a_global_coordinate_of_a_slider_crank():
    """(2.28) holds all the way round for the crank, and fails at the dead centres for the slider."""
    mech = built("slider_crank")
    q = np.zeros(3)
    crank, slider = [], []
    for angle in np.arange(0.0, 2 * np.pi, np.pi / 16):
        q = lw.linkages.follow(mech, q, {"crank_joint": angle})
        constraint = lw.constraints.constraint_jacobian(mech, q)
        for values, place in ((crank, 0), (slider, 2)):
            values.append(np.linalg.svd(np.vstack([np.eye(3)[place], constraint]))[1][-1])
    assert min(crank) > 0.05 and min(slider) < 1e-9
