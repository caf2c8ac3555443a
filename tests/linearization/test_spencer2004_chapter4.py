"""spencer2004, Chapter 4 and Appendix B: the formulas as printed (and corrected), against ``linearize``."""

from __future__ import annotations

import warnings
from functools import cached_property

import numpy as np
import pytest

import linkwise as lw
from linkwise.control import rate_jacobian

from ..constraints.built_in import built, random_state
from ..constraints.test_spencer2004_appendix_a import virtual_loop
from ..constraints.test_spencer2004_chapter2 import seed
from .differences import Neighbourhood, close, matched, slope

PISTONS = ("lift_piston_joint", "tilt_piston_joint")
CORNERS = ("boom_joint", "bucket_joint")  # frames 1 and 7 of Fig. 4.2


class LocalForm:
    """Section 4.2 with the K of (4.11): a chain of seven joints closed by an eighth, its angle a virtual coordinate.

    Everything is dense and made of body-fixed Jacobians J and their derivatives; q^ = (q, q_v), G^ = A J.
    """

    def __init__(self):
        kind = lw.Revolute((0.3, -1.0, 0.4))
        self.mech, self.q, self.extended, self.q_hat, to_link7 = virtual_loop(kind)
        self.back = np.linalg.inv(to_link7)
        self.tree, self.n = self.mech.spanning_tree, self.mech.nv
        rng = np.random.default_rng(3)
        self.rows = np.eye(self.n)[[1, 4]] + 0.2 * rng.normal(size=(2, self.n))
        self.p = 2
        self.tau = rng.normal(size=self.n)
        self.y_v = np.array([0.7, -0.4])
        self.v_hat = self.k_hat @ self.y_v
        self.v = self.v_hat[: self.n]

    def _relative(self, function, *arrays):
        """A J, or A times a derivative of J: the virtual frame against the one on link 7."""
        virtual, last = (function(self.extended, *arrays, link) for link in ("virtual", "link7"))
        return virtual - np.tensordot(self.back, last, axes=1)

    @cached_property
    def inverse(self) -> np.ndarray:
        """[R; A J]^-1."""
        rows = np.hstack([self.rows, np.zeros((self.p, len(self.q_hat) - self.n))])
        return np.linalg.inv(np.vstack([rows, self._relative(lw.jacobian, self.q_hat)]))

    @property
    def k_hat(self) -> np.ndarray:
        return self.inverse[:, : self.p]

    def _closing(self, constraints: np.ndarray) -> np.ndarray:
        """-[R; A J]^-1 [0; x]."""
        return -self.inverse[:, self.p :] @ constraints

    @cached_property
    def k_hat_rate(self) -> np.ndarray:
        return self._closing(self._relative(lw.derivatives.jacobian_rate, self.q_hat, self.v_hat) @ self.k_hat)

    def k_hat_second_rate(self, acceleration: np.ndarray) -> np.ndarray:
        second = self._relative(lw.derivatives.jacobian_second_rate, self.q_hat, self.v_hat, acceleration)
        rate = self._relative(lw.derivatives.jacobian_rate, self.q_hat, self.v_hat)
        return self._closing(second @ self.k_hat) + 2.0 * self._closing(rate @ self.k_hat_rate)

    @cached_property
    def k_derivatives(self) -> np.ndarray:
        """(n, p, p): dK/dy_qi = sum over j of dK/dq_j K_ji."""
        along_q = self._relative(lw.derivatives.jacobian_derivatives, self.q_hat)  # (6, n^, n^)
        along_y = np.einsum("rkj,ji,kl->rli", along_q, self.k_hat, self.k_hat)
        return np.stack([self._closing(along_y[:, :, i])[: self.n] for i in range(self.p)], axis=-1)

    @property
    def k(self) -> np.ndarray:
        return self.k_hat[: self.n]

    def newton_euler(self, a) -> np.ndarray:
        return lw.inverse_dynamics(self.tree, self.q, self.v, a)

    @cached_property
    def reduced(self) -> np.ndarray:
        """K* M K, column by column from the Newton-Euler function."""
        zero = self.newton_euler(np.zeros(self.n))
        return np.stack([self.k.T @ (self.newton_euler(column) - zero) for column in self.k.T], axis=1)

    @cached_property
    def y_acceleration(self) -> np.ndarray:
        """(4.10b) with joint forces, which is (B.4)."""
        bias = self.newton_euler(self.k_hat_rate[: self.n] @ self.y_v)
        return np.linalg.solve(self.reduced, self.k.T @ (self.tau - bias))

    def a21_and_a22(self) -> tuple[np.ndarray, np.ndarray]:
        """Section 4.2, with tau_NE - tau in place of tau_NE (Appendix B)."""
        whole = self.k_hat @ self.y_acceleration + self.k_hat_rate @ self.y_v
        a = whole[: self.n]
        by_q, by_v, mass = lw.inverse_dynamics_derivatives(self.tree, self.q, self.v, a)
        rate, second = self.k_hat_rate[: self.n], self.k_hat_second_rate(whole)[: self.n]
        lacking = self.newton_euler(a) - self.tau
        bent = np.einsum("jpi,j->pi", self.k_derivatives, lacking)
        a21 = bent + self.k.T @ (by_q @ self.k + by_v @ rate + mass @ second)
        a22 = self.k.T @ (by_v @ self.k + 2.0 * mass @ rate)
        return -np.linalg.solve(self.reduced, a21), -np.linalg.solve(self.reduced, a22)


@pytest.fixture(scope="module")
def form() -> LocalForm:
    return LocalForm()


@seed("4.8a", "4.8b", "4.9", "4.10a", "4.10b", "4.11", "B.1", "B.2", "B.3", "B.4", "B.5", "Section 4.4", by="library")
def test_the_linearized_local_state_space_form(form):
    model = lw.linearize(form.mech, form.q, form.v, form.tau, independent=form.rows)
    np.testing.assert_allclose(model.tangent[: form.n, :2], form.k, atol=1e-11)  # (4.11)
    np.testing.assert_allclose(model.tangent[form.n :, :2], form.k_hat_rate[: form.n], atol=1e-10)
    close(model.drift, np.concatenate([form.y_v, form.y_acceleration]), 1e-10)  # (4.8), (4.10), (B.2)
    a21, a22 = form.a21_and_a22()
    close(model.A[2:, :2], a21, 1e-9)
    close(model.A[2:, 2:], a22, 1e-9)
    np.testing.assert_array_equal(model.A[:2], np.eye(4)[2:])
    close(model.B[2:], np.linalg.solve(form.reduced, form.k.T), 1e-9)

    # (4.9), and (B.1) at the accelerations of (B.2): (B.3).
    mass, zero = lw.mass_matrix(form.mech, form.q), form.newton_euler(np.zeros(form.n))
    a = np.arange(form.n) - 2.0
    np.testing.assert_allclose(form.newton_euler(a), mass @ a + zero, atol=1e-9)
    close(form.reduced, form.k.T @ mass @ form.k, 1e-11)
    bias = mass @ form.k_hat_rate[: form.n] @ form.y_v + zero
    left_over = form.reduced @ form.y_acceleration + form.k.T @ (bias - form.tau)
    np.testing.assert_allclose(left_over, 0.0, atol=1e-9 * np.abs(bias).max())

    # (B.5) as printed, without K*: n rows for the p of (K* M K)^-1.
    a = form.k @ form.y_acceleration + form.k_hat_rate[: form.n] @ form.y_v
    _, by_v, mass = lw.inverse_dynamics_derivatives(form.tree, form.q, form.v, a)
    inside = by_v @ form.k + 2.0 * mass @ form.k_hat_rate[: form.n]
    close(-np.linalg.inv(form.reduced) @ form.k.T @ inside, a22, 1e-11)
    with pytest.raises(ValueError, match="mismatch"):
        -np.linalg.inv(form.reduced) @ inside


@seed("Section 4.4", "B.5", by="library")
def test_derivatives_of_k_against_differences(form):
    """dK/dy, dK/dt and d2K/dt2 along motions of the mechanism, and d(dK/dt y_v)/dy_v = 2 dK/dt."""
    near = Neighbourhood(form.mech, form.q, form.v, form.tau, form.rows)

    def k_at(q):
        stacked = np.vstack([form.rows, lw.constraints.constraint_jacobian(form.mech, q)])
        return np.linalg.pinv(stacked)[:, :2]

    def along(y_rate, y_acceleration=0.0):
        """K on a path through the position."""
        return lambda t: k_at(near.chart.configuration(y_rate * t + y_acceleration * (t * t / 2.0), tolerance=1e-14))

    for i, unit in enumerate(np.eye(2)):
        close(form.k_derivatives[:, :, i], slope(along(unit), 2e-3), 1e-8)
    close(form.k_hat_rate[: form.n], slope(along(form.y_v), 2e-3), 1e-8)
    with pytest.raises(ValueError, match="mismatch"):
        form._relative(
            lw.derivatives.jacobian_rate, form.q_hat, form.v_hat
        ) @ form.k  # K as printed, without the virtual rows
    whole = form.k_hat @ form.y_acceleration + form.k_hat_rate @ form.y_v
    path, step = along(form.y_v, form.y_acceleration), 3e-3
    weights = ((1, 1.5), (2, -0.15), (3, 1 / 90))
    second = sum(w * (path(k * step) + path(-k * step) - 2.0 * path(0.0)) for k, w in weights) / step**2
    close(form.k_hat_second_rate(whole)[: form.n], second, 1e-6)
    twice = [slope(lambda s, e=e: k_bias(form, form.y_v + s * e), 0.5) for e in np.eye(2)]
    close(np.stack(twice, axis=1), 2.0 * form.k_hat_rate[: form.n], 1e-8)


def k_bias(form: LocalForm, y_v: np.ndarray) -> np.ndarray:
    """dK/dt y_v at other velocities: the acceleration with y_v constant."""
    v = form.k @ y_v
    stacked = np.vstack([form.rows, lw.constraints.constraint_jacobian(form.mech, form.q)])
    right = np.concatenate([np.zeros(2), -lw.constraints.constraint_bias(form.mech, form.q, v)])
    return np.linalg.lstsq(stacked, right, rcond=None)[0]


class Underlying:
    """f and h of Section 4.1 for the five-bar, defined near the manifold too: the SVD formulation of (2.6)."""

    def __init__(self, q, v, tau):
        self.mech, self.tau, self.x = built("five_bar"), tau, np.concatenate([q, v])
        self.rank = 2

    def f(self, x) -> np.ndarray:
        q, v = np.split(x, 2)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", lw.MechanismWarning)  # loops are opened on purpose
            return np.concatenate([v, lw.forward_dynamics(self.mech, q, v, self.tau, rank=self.rank)])

    def h(self, x) -> np.ndarray:
        q, v = np.split(x, 2)
        error, jacobian = lw.constraints.position_error(self.mech, q), lw.constraints.constraint_jacobian(self.mech, q)
        return np.concatenate([error, jacobian @ v])

    def jacobian(self, function) -> np.ndarray:
        return np.stack([slope(lambda s, e=e: function(self.x + s * e), 1e-3) for e in np.eye(len(self.x))], axis=1)


@seed("4.1", "4.2", "4.3", "4.4", "4.5", by="library")
def test_the_linearized_underlying_ode():
    mech = built("five_bar")
    q, v = random_state("five_bar", 3)
    tau = np.array([1.0, -2.0, 0.5, 3.0])
    ode = Underlying(q, v, tau)
    slopes, invariants = ode.jacobian(ode.f), ode.jacobian(ode.h)
    np.testing.assert_allclose(invariants @ ode.f(ode.x), 0.0, atol=1e-8)  # (4.5)
    assert np.linalg.matrix_rank(invariants, tol=1e-8) == 4  # M = 4 of N = 8, redundant rows left aside
    for projection, chosen in (("orthogonal", ("joint1", "joint2")), ("independent", ("joint1", "joint2"))):
        model = lw.linearize(mech, q, v, tau, chosen, form="underlying", projection=projection)
        if projection == "orthogonal":
            p = np.eye(8) - np.linalg.pinv(invariants, rcond=1e-8) @ invariants
        else:
            own = lw.linearize(mech, q, v, tau, chosen)
            p = own.tangent @ np.kron(np.eye(2), own.rows)  # dPsi/dy R of (4.3)
        np.testing.assert_allclose(invariants @ p, 0.0, atol=1e-8)
        np.testing.assert_allclose(p @ p, p, atol=1e-8)
        assert np.linalg.matrix_rank(p, tol=1e-8) == 4
        close(model.A, slopes @ p, 1e-8)  # (4.3), (4.4)
        close(model.drift, ode.f(ode.x), 1e-11)
        assert np.sum(np.abs(model.eigenvalues()) < 1e-6) == 4
        assert np.abs(slopes - model.A).max() > 1e-2  # how not to do it: the Jacobian of f ignores the constraints

    # (4.2) is right to first order on the manifold: halving the distance quarters the error.
    near = Neighbourhood(mech, q, v, tau, lw.linearize(mech, q, v, tau, ("joint1", "joint2")).rows)
    errors = []
    for size in (1e-3, 5e-4):
        there = np.concatenate(near.state(size * np.array([1.0, -2.0]), near.rows @ v + size * np.array([2.0, 1.0])))
        errors.append(np.abs(ode.f(there) - model.drift - model.A @ (there - ode.x)).max())
    assert 3.5 < errors[0] / errors[1] < 4.5
    along = lw.linearize(mech, q, v, tau).tangent  # projections differ beside the manifold only
    close(rate_jacobian(mech, q, v, tau) @ along, lw.linearize(mech, q, v, tau, form="underlying").A @ along, 1e-10)


def representations(name: str, q, v, tau, passive=None):
    """Local forms in different coordinates."""
    mech, rng = built(name), np.random.default_rng(7)
    free = lw.constraints.degrees_of_freedom(mech, q)
    choices = [None, "null_space", rng.normal(size=(free, mech.nv)), lw.constraints.null_space(mech, q).T * 3.0]
    if name == "loader":
        choices += [PISTONS, CORNERS]
    return [lw.linearize(mech, q, v, tau, choice, passive=passive) for choice in choices]


def equilibrium(name: str):
    """An equilibrium held by forces of all joints, and by springs."""
    mech = built(name)
    q = random_state(name, 4)[0]
    passive = lw.forces.Passive.springs(
        {mech.joint_names[0]: 50.0, mech.joint_names[-1]: 20.0}
    ) + lw.forces.Passive.dampers({mech.joint_names[1]: 3.0})
    return q, lw.find_equilibrium(mech, q, solve_for="tau", passive=passive).tau, passive


@seed("Theorem 4.1.1", "Theorem 4.1.2", "4.7", by="library")
@pytest.mark.parametrize("name", ["five_bar", "loader", "slider_crank", "n_four_bar", "bricard"])
def test_eigenvalues_at_an_equilibrium(name):
    mech = built(name)
    q, tau, passive = equilibrium(name)
    v = np.zeros(mech.nv)
    local = representations(name, q, v, tau, passive)
    assert all(model.is_equilibrium for model in local)
    expected = local[0].eigenvalues()
    for model in local[1:]:
        matched(model.eigenvalues(), expected, 1e-8)
    extra = 2 * mech.nv - len(expected)
    for projection, choice in (("orthogonal", None), ("independent", None), ("independent", local[2].rows)):
        model = lw.linearize(mech, q, v, tau, choice, passive=passive, form="underlying", projection=projection)
        matched(model.eigenvalues(), np.concatenate([expected, np.zeros(extra)]), 1e-7)
        assert np.linalg.matrix_rank(model.A, tol=1e-9 * np.abs(model.A).max()) <= len(expected)
    # (4.7): A = dPsi/dy A^ R.
    own = local[2]
    lifted = own.tangent @ own.A @ np.kron(np.eye(2), own.rows)
    close(lifted, model.A, 1e-9)


@seed("4.6", by="library")
def test_the_underlying_and_the_local_form_away_from_equilibria():
    """A = dPsi/dy A^ R + d(dPsi/dy)/dt R, the rate of dPsi/dy by differences along the motion."""
    mech = built("five_bar")
    q, v = random_state("five_bar", 3)
    tau, rows = np.array([1.0, -2.0, 0.5, 3.0]), np.eye(4)[[0, 1]]
    local = lw.linearize(mech, q, v, tau, rows)
    whole = lw.linearize(mech, q, v, tau, rows, form="underlying", projection="independent")
    near = Neighbourhood(mech, q, v, tau, rows)
    start = np.concatenate([np.zeros(2), rows @ v])

    def tangent(t):  # along the line of the rates: enough for a first derivative
        y, z = np.split(start + t * local.drift, 2)
        return lw.linearize(mech, *near.state(y, z), tau, rows).tangent

    both = np.kron(np.eye(2), rows)
    close(whole.A, local.tangent @ local.A @ both + slope(tangent, 2e-3) @ both, 1e-8)


@seed("Section 4.5", by="library")
def test_the_loader_in_two_choices_of_coordinates():
    """Released at rest without forces of the cylinders it is no equilibrium: the eigenvalues depend on the choice."""
    mech = built("loader")
    assert (mech.n_links, len(mech.loops), lw.constraints.degrees_of_freedom(mech, lw.neutral(mech))) == (8, 3, 2)
    q, still = lw.neutral(mech), np.zeros(8)
    models = [lw.linearize(mech, q, still, None, choice) for choice in (CORNERS, PISTONS)]
    for model, choice in zip(models, (CORNERS, PISTONS), strict=True):
        assert model.independent == choice and not model.is_equilibrium
        np.testing.assert_allclose(model.A[2:, 2:], 0.0, atol=1e-12)  # as printed: no damping, no velocity
        a, b, drift = Neighbourhood(mech, q, still, still, model.rows).model()
        close(model.A, a, 1e-9)
        close(model.B, b, 1e-9)
        close(model.drift, drift, 1e-11)
    values = [np.sort(np.abs(model.eigenvalues())) for model in models]
    assert np.abs(values[0] - values[1]).max() > 1e-2 * values[0].max()
    held = lw.find_equilibrium(mech, q, solve_for="tau", actuated=PISTONS)
    at_rest = [lw.linearize(mech, q, still, held.tau, choice) for choice in (CORNERS, PISTONS)]
    assert all(model.is_equilibrium for model in at_rest)
    matched(at_rest[0].eigenvalues(), at_rest[1].eigenvalues(), 1e-8)


@seed("Section 4.5", by="model")
def test_printed_eigenvalues_belong_to_the_printed_matrices():
    """A has no damping, so that with every eigenvalue its negative is one: the second pair is 0.37624 +- 1.5642i."""
    for block, pair in (
        ([[-2.3763, -0.38157], [7.853, -1.9778]], 0.54643 + 1.5734j),
        ([[-1.9649, 2.5565], [-0.58728, -2.6457]], 0.37624 + 1.5642j),
    ):
        a = np.block([[np.zeros((2, 2)), np.eye(2)], [np.array(block), np.zeros((2, 2))]])
        matched(np.linalg.eigvals(a), np.array([pair, pair.conjugate(), -pair, -pair.conjugate()]), 1e-4)
