"""rodriguez1986, Sections 6 and 7: the two-point boundary-value problem, and inverse dynamics from it.

Accelerations are body-fixed and gravity is an external force, as in ``tests/seeds/rodriguez1986.py``.
"""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise import operators as op
from tests.seeds.library import of
from tests.seeds.rodriguez1986 import ARMS, Case, accelerations, biases, moving_arm, rows, spatial_forces
from tests.seeds.tip_to_base import close, differ, reversed_both, to_base, to_tip


class TwoPointProblem:
    """(6.1)-(6.6) as one dense linear system in x-, x+, lambda-, lambda+, u_ddot and tau of all joints."""

    def __init__(self, case: Case) -> None:
        arm, n = case.arm, case.arm.n
        sizes = {"x-": 6, "x+": 6, "lambda-": 6, "lambda+": 6, "u_ddot": 1, "tau": 1}
        starts = dict(zip(sizes, np.cumsum([0, *sizes.values()]) * (n + 1), strict=False))
        self._place = {name: (starts[name], size) for name, size in sizes.items()}
        self._width = sum(sizes.values()) * (n + 1)
        self._rows: list[np.ndarray] = []
        self._right: list[np.ndarray] = []
        xi, eta = biases(case)
        self.demand({("x+", 0): np.eye(6)}, np.zeros(6))  # (6.6)
        self.demand({("lambda+", n): np.eye(6)}, np.zeros(6))
        for k in case.links:
            phi, M, H, U = arm.phi(k, k - 1), arm.M[k], arm.H[k], np.eye(6)
            self.demand({("x-", k): U, ("x+", k - 1): -phi, ("lambda-", k): -M}, xi[k])  # (6.1)
            self.demand({("x+", k): U, ("x-", k): -U}, np.zeros(6))  # (6.2)
            self.demand({("lambda+", k - 1): U, ("lambda-", k): -phi.T}, np.zeros(6))  # (6.3)
            self.demand({("lambda-", k): U, ("lambda+", k): -U, ("u_ddot", k): -H.T}, eta[k])  # (6.4)
            self.demand({("tau", k): np.eye(1), ("x+", k): -H}, np.zeros(1))  # (6.5)

    def _columns(self, name: str, k: int) -> slice:
        start, size = self._place[name]
        return slice(start + size * k, start + size * (k + 1))

    def demand(self, blocks: dict[tuple[str, int], np.ndarray], right: np.ndarray) -> None:
        row = np.zeros((len(right), self._width))
        for key, block in blocks.items():
            row[:, self._columns(*key)] = block
        self._rows.append(row)
        self._right.append(right)

    def solved(self, given: str, values: np.ndarray) -> dict[str, np.ndarray]:
        """All unknowns when ``given`` ("tau" or "u_ddot") is known; what has no equation (joint 0) stays out."""
        for k in range(1, len(values)):
            self.demand({(given, k): np.eye(1)}, values[k : k + 1])
        matrix, right = np.vstack(self._rows), np.concatenate(self._right)
        used = np.abs(matrix).sum(axis=0) > 0.0
        assert used.sum() == len(right)  # as many equations as unknowns
        solution = np.full(self._width, np.nan)
        solution[used] = np.linalg.solve(matrix[:, used], right)
        return {name: solution[a : a + size * len(values)].reshape(-1, size) for name, (a, size) in self._place.items()}


@ARMS
@pytest.mark.seed("rodriguez1986", "6.1", by="library")
@pytest.mark.seed("rodriguez1986", "6.2", by="library")
@pytest.mark.seed("rodriguez1986", "6.3", by="library")
@pytest.mark.seed("rodriguez1986", "6.4", by="library")
@pytest.mark.seed("rodriguez1986", "6.5", by="library")
@pytest.mark.seed("rodriguez1986", "6.6", by="library")
def test_two_point_problem_has_both_dynamics_in_it(which):
    case = moving_arm(*which)
    v = to_base(case.u_dot)
    forward = TwoPointProblem(case).solved("tau", case.tau)
    expected = to_tip(lw.forward_dynamics(case.mech, case.q, v, to_base(case.tau), case.wrenches))
    close(forward["u_ddot"][1:, 0], expected[1:], 1e-9)
    inverse = TwoPointProblem(case).solved("u_ddot", case.u_ddot)
    close(inverse["tau"][1:, 0], case.tau[1:])
    motion = lw.link_accelerations(case.mech, case.q, v, to_base(case.u_ddot))
    for solution, tolerance in ((forward, 1e-9), (inverse, 1e-10)):
        close(solution["lambda-"][1:], case.arm.from_links(motion)[1:], tolerance)


def test_inverse_dynamics_in_two_stages():
    """Accelerations outward, forces inward (text of Section 7), in world axes and in link axes."""
    for axes in ("world", "link"):
        case = moving_arm(6, 1, axes)
        xi, eta = biases(case)
        x = spatial_forces(case.arm, accelerations(case.arm, case.u_ddot, eta)[0], xi)
        tau = [(case.arm.H[k] @ x[k]).item() for k in case.links]
        close(tau, case.tau[1:])


# Section 7 ------------------------------------------------------------------------------------------------------------


def composite(case: Case, k: int, i: int) -> np.ndarray:
    """r(k, i) of (7.7)."""
    phi, M = case.arm.phi, case.arm.M
    return sum(phi(k, j) @ M[j] @ phi(i, j).T for j in range(1, min(i, k) + 1))


@ARMS
@pytest.mark.seed("rodriguez1986", "7.2", by="library")
@pytest.mark.seed("rodriguez1986", "7.3", by="library")
@pytest.mark.seed("rodriguez1986", "7.4", by="library")
@pytest.mark.seed("rodriguez1986", "7.6", by="library")
@pytest.mark.seed("rodriguez1986", "7.7", by="library")
def test_sums_solve_the_recursions(which):
    """Accelerations and forces against linkwise's."""
    case = moving_arm(*which)
    arm, N, phi = case.arm, case.arm.n, case.arm.phi
    xi, eta = biases(case)
    driven = rows(N, 6)
    for i in case.links:
        driven[i] = arm.H[i][0] * case.u_ddot[i] + eta[i]
    motion = lw.link_accelerations(case.mech, case.q, to_base(case.u_dot), to_base(case.u_ddot))
    lam = rows(N, 6)
    for j in case.links:
        lam[j] = sum(phi(i, j).T @ driven[i] for i in range(j, N + 1))  # (7.2)
    close(lam[1:], case.arm.from_links(motion)[1:])
    v, a = to_base(case.u_dot), to_base(case.u_ddot)
    expected = arm.from_links(lw.joint_wrenches(case.mech, case.q, v, a, case.wrenches))
    close(spatial_forces(arm, lam, xi)[1:], expected[1:])
    for k in case.links:
        inner = range(1, k + 1)
        close(sum(phi(k, j) @ (arm.M[j] @ lam[j] + xi[j]) for j in inner), expected[k])  # (7.3)
        from_biases = sum(phi(k, j) @ xi[j] for j in inner)
        double = sum(phi(k, j) @ arm.M[j] @ phi(i, j).T @ driven[i] for j in inner for i in range(j, N + 1))
        close(double + from_biases, expected[k])  # (7.4)
        close(sum(composite(case, k, i) @ driven[i] for i in case.links) + from_biases, expected[k])  # (7.6)


@pytest.mark.seed("rodriguez1986", "7.5", by="model")
def test_order_of_a_double_sum():
    """The index sets of both sides are the same pairs, each once (Fig. 7.1)."""
    for N in range(1, 7):
        for k in range(1, N + 1):
            left = [(i, j) for j in range(1, k + 1) for i in range(j, N + 1)]
            right = [(i, j) for i in range(1, N + 1) for j in range(1, min(i, k) + 1)]
            assert sorted(left) == sorted(right) and len(set(left)) == len(left)


@ARMS
@pytest.mark.seed("rodriguez1986", "7.7", by="library")
@pytest.mark.seed("rodriguez1986", "7.8", by="library")
@pytest.mark.seed("rodriguez1986", "7.9", by="library")
def test_composite_inertias_are_covariances(which):
    """r(k, i) is block (k, i) of phi M phi^T: the covariance of the states of x(k) = phi x(k-1) + w(k), w ~ (0, M).

    Both columns of the table below (7.7), and the recursion for r(k, k).
    """
    case = moving_arm(*which)
    arm, phi = case.arm, case.arm.phi
    stacked = arm.stacked_phi
    covariance = stacked @ arm.diagonal(arm.M) @ stacked.T
    close(of(arm, op.phi @ op.M @ op.phi.T), covariance)
    for k in case.links:
        for i in case.links:
            block = covariance[6 * k - 6 : 6 * k, 6 * i - 6 : 6 * i]
            close(composite(case, k, i), block)  # (7.7)
            table = phi(k, i) @ composite(case, i, i) if i <= k else composite(case, k, k) @ phi(i, k).T
            close(table, block)
    r = arm.M[1]
    for k in case.links:
        close(sum(phi(k, j) @ arm.M[j] @ phi(k, j).T for j in range(1, k + 1)), r)  # (7.8)
        if k < arm.n:
            r = phi(k + 1, k) @ r @ phi(k + 1, k).T + arm.M[k + 1]  # (7.9)


@ARMS
@pytest.mark.seed("rodriguez1986", "7.1", by="library")
@pytest.mark.seed("rodriguez1986", "7.10", by="library")
@pytest.mark.seed("rodriguez1986", "7.11", by="library")
def test_inertia_matrix_and_bias_of_the_equations_of_motion(which):
    """M and V against linkwise. V depends on the joint velocities; printed (7.1) has V(u, u_ddot), and printed (7.10)
    loses the dots of u_ddot."""
    case = moving_arm(*which)
    arm, N = case.arm, case.arm.n
    xi, eta = biases(case)
    m, V = np.empty((N, N)), np.empty(N)
    for k in case.links:
        H = arm.H[k]
        for i in case.links:
            m[k - 1, i - 1] = (H @ composite(case, k, i) @ arm.H[i].T).item()
        V[k - 1] = sum(H @ composite(case, k, i) @ eta[i] for i in case.links).item()
        V[k - 1] += sum(H @ arm.phi(k, i) @ xi[i] for i in range(1, k + 1)).item()
    close(m, reversed_both(lw.mass_matrix(case.mech, case.q)))
    v, at_rest = to_base(case.u_dot), np.zeros(N)
    close(V, lw.inverse_dynamics(case.mech, case.q, v, at_rest, case.wrenches)[::-1])
    if N > 1:
        wrong_rates = lw.inverse_dynamics(case.mech, case.q, to_base(case.u_ddot), at_rest, case.wrenches)
        differ(V, wrong_rates[::-1])  # (7.1) as printed
    for k in case.links:  # (7.10)
        close(sum(m[k - 1, i - 1] * case.u_ddot[i] for i in case.links) + V[k - 1], case.tau[k])
    close(m @ case.u_ddot[1:] + V, case.tau[1:])  # (7.1)
    differ(m @ case.q[::-1] + V, case.tau[1:])  # (7.10) as printed
