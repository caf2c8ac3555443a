"""Estimates with constraints as perfect measurements against dense constrained least squares, and honest intervals."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
import scipy.linalg

import linkwise as lw
from linkwise import operators as op
from linkwise.estimation import Noise

from .mechanisms import Case, case
from .oracle import RANK, Terms, null_space
from .product import Quantity, cells, check, given, terms


class Measured(NamedTuple):
    """Measurements of a case, and their standard deviations."""

    a: np.ndarray
    tau: np.ndarray
    links: np.ndarray
    of_a: np.ndarray
    of_tau: np.ndarray
    of_wrench: np.ndarray
    of_links: np.ndarray

    @property
    def noise(self) -> Noise:
        return Noise(self.of_a, self.of_tau, self.of_wrench, self.of_links)


def measured(c: Case, seed: int = 3, some_exact: bool = False) -> Measured:
    """With ``some_exact``, joint forces have no noise at some joints, and accelerations are not measured there."""
    n, links, rng = c.mech.nv, c.mech.n_links, np.random.default_rng(seed)
    of_a, of_tau = rng.uniform(0.1, 2.0, (2, n))
    of_wrench = rng.uniform(0.1, 2.0, (links, 6)) * (rng.random((links, 1)) < 0.6)
    of_links = np.where(rng.random((links, 6)) < 0.3, rng.uniform(0.1, 2.0, (links, 6)), np.inf)
    if some_exact:
        exact = rng.random(n) < 0.5
        of_a, of_tau = np.where(exact, np.inf, of_a), np.where(exact, 0.0, of_tau)
    a, tau, seen = rng.normal(size=n), rng.normal(size=n), rng.normal(size=(links, 6))
    return Measured(a, tau, seen, of_a, of_tau, of_wrench, of_links)


class Dense(NamedTuple):
    """Least squares over accelerations, wrenches and multipliers at once, by singular values: rows without noise are
    equations, the others are divided by it."""

    a: np.ndarray
    a_variances: np.ndarray
    tau: np.ndarray
    tau_variances: np.ndarray
    wrenches: np.ndarray
    wrench_covariances: np.ndarray
    chi_square: float
    surplus: int

    @classmethod
    def of(cls, t: Terms, m: Measured) -> Dense:
        n, count = t.mech.nv, len(t.jacobian)
        jacobian = op.dense(op.phi.T @ op.H.T @ op.S, t.mech, t.q)
        k = len(jacobian)
        a = np.where(np.isinf(m.of_a), 0.0, m.a)
        forces = np.hstack([t.mass, -jacobian.T, t.jacobian.T])
        nominal = t.mass @ a + t.bias_force
        rows = np.vstack(
            [
                forces,
                np.hstack([np.eye(n + k), np.zeros((n + k, count))]),
                np.hstack([jacobian, np.zeros((k, k + count))]),
                np.hstack([t.jacobian, np.zeros((count, k + count))]),
            ]
        )
        seen = m.links.ravel() - lw.link_accelerations(t.mech, t.q, t.v, a).ravel()
        values = np.concatenate([m.tau - nominal, np.zeros(n + k), seen, -(t.jacobian @ a + t.bias)])
        noise = np.concatenate([m.of_tau, m.of_a, m.of_wrench.ravel(), m.of_links.ravel(), np.zeros(count)])
        exact, known = noise == 0.0, (noise > 0.0) & np.isfinite(noise)
        basis = scipy.linalg.null_space(rows[exact], rcond=RANK)
        start = np.linalg.lstsq(rows[exact], values[exact], rcond=RANK)[0]
        left = rows[known] @ basis / noise[known, None]
        right = (values[known] - rows[known] @ start) / noise[known]
        u, s, vt = np.linalg.svd(left, full_matrices=False)
        tells = s > RANK * s[0]  # multipliers of redundant constraints are not unique, and no force depends on it
        root = basis @ vt[tells].T / s[tells]
        x, covariance = start + root @ (u[:, tells].T @ right), root @ root.T
        of_wrenches = covariance[n : n + k, n : n + k].reshape(t.mech.n_links, 6, t.mech.n_links, 6)
        link = np.arange(t.mech.n_links)
        left_over = right - u[:, tells] @ (u[:, tells].T @ right)
        return cls(
            a + x[:n],
            np.diag(covariance)[:n],
            nominal + forces @ x,
            np.diag(forces @ covariance @ forces.T),
            x[n : n + k].reshape(-1, 6),
            of_wrenches[link, :, link],
            float(left_over @ left_over),
            int(known.sum() - tells.sum()),
        )


def _bare(c: Case) -> lw.Mechanism:
    return c.mech.with_acting(False)


def _smooth(c: Case, m: Measured) -> lw.estimation.Estimate:
    return lw.estimation.smooth(_bare(c), c.q, c.v, m.a, m.tau, m.noise, link_accelerations=m.links, **given(c))


def _likelihood(c: Case, m: Measured, larger: float = 1.0) -> float:
    noise = Noise(larger * m.of_a, larger * m.of_tau, larger * m.of_wrench, larger * m.of_links)
    arrays = _bare(c), c.q, c.v, m.a, m.tau, noise
    return float(lw.estimation.log_likelihood(*arrays, link_accelerations=m.links, **given(c)))


def _results(c: Case, some_exact: bool) -> tuple[np.ndarray, ...]:
    e = _smooth(c, measured(c, 3, some_exact))
    return e.a, e.a_std**2, e.tau, e.tau_std**2, e.wrenches, e.wrench_covariances


def _expected(t: Terms, some_exact: bool) -> tuple[np.ndarray, ...]:
    return Dense.of(t, measured(t.case, 3, some_exact))[:6]


def _ratios(c: Case) -> np.ndarray:
    """Logarithms of the ratios of densities: of two measurements, and under noise three times as large."""
    first = _likelihood(c, measured(c))
    other = _likelihood(c, measured(c)._replace(a=measured(c, 4).a))
    return np.array([first - other, _likelihood(c, measured(c), 3.0) - first])


def _expected_ratios(t: Terms) -> np.ndarray:
    first = Dense.of(t, measured(t.case))
    other = Dense.of(t, measured(t.case)._replace(a=measured(t.case, 4).a))
    wider = 0.5 * (1.0 - 1.0 / 9.0) * first.chi_square - first.surplus * np.log(3.0)
    return np.array([0.5 * (other.chi_square - first.chi_square), wider])


def _filter(c: Case) -> np.ndarray:
    """Accelerations from forces without noise."""
    return lw.estimation.kalman(_bare(c), c.q, c.v, c.tau).accelerations


QUANTITIES = [
    Quantity("smooth", lambda c: _results(c, False), lambda t: _expected(t, False)),
    Quantity("smooth_with_exact_forces", lambda c: _results(c, True), lambda t: _expected(t, True)),
    Quantity("log_likelihood", _ratios, _expected_ratios),
    Quantity("kalman_filter", _filter, lambda t: t.accelerations(t.case.tau)),
]


@cells(QUANTITIES)
def test_product(quantity, case_name):
    check(quantity, case(case_name))


@pytest.mark.parametrize("name", ["one loop", pytest.param("masked feet", marks=pytest.mark.slow)])
def test_intervals(name):
    """Of 2,000 measurements of one motion: 95 of 100 intervals contain accelerations, forces and pushes."""
    c, t, rng = case(name), terms(name), np.random.default_rng(1)
    count, n, links = 2000, c.mech.nv, c.mech.n_links
    m = measured(c)
    pushes = m.of_wrench * rng.normal(size=(count, links, 6))
    jacobian = op.dense(op.phi.T @ op.H.T @ op.S, c.mech, c.q)
    a = np.array([t.accelerations(c.tau + jacobian.T @ push.ravel()) for push in pushes])
    sensed = np.where(
        np.isinf(m.of_links),
        0.0,
        lw.link_accelerations(c.mech, c.q, c.v, a)
        + np.where(np.isinf(m.of_links), 0.0, m.of_links) * rng.normal(size=(count, links, 6)),
    )
    a_seen, tau_seen = a + m.of_a * rng.normal(size=(count, n)), c.tau + m.of_tau * rng.normal(size=(count, n))
    e = lw.estimation.smooth(_bare(c), c.q, c.v, a_seen, tau_seen, m.noise, None, sensed, **given(c))
    moves = np.abs(t.basis).max(axis=1) > RANK
    pushed = np.broadcast_to(m.of_wrench > 0.0, pushes.shape)
    for misses in (
        ((e.a - a) / np.where(moves, e.a_std, 1.0))[:, moves],
        (e.tau - c.tau) / e.tau_std,
        ((e.wrenches - pushes) / np.where(pushed, e.wrench_std, 1.0))[pushed].reshape(count, -1),
    ):
        inside = (np.abs(misses) < 1.959964).mean(axis=0)
        assert np.all((inside > 0.93) & (inside < 0.97))


@pytest.mark.parametrize("name", ["ladder", "masked feet"])
def test_batches_are_states_one_by_one(name):
    c, rng = case(name), np.random.default_rng(2)
    m = measured(c)
    a, tau = rng.normal(size=(2, 3, c.mech.nv))
    masks = {} if c.active is None else {"active": np.array([c.active, ~c.active, np.ones_like(c.active)])}
    v = c.v if not masks else np.zeros(c.mech.nv)
    together = lw.estimation.smooth(_bare(c), c.q, v, a, tau, m.noise, None, m.links, **masks)
    for k in range(3):
        own = {key: mask[k] for key, mask in masks.items()}
        alone = lw.estimation.smooth(_bare(c), c.q, v, a[k], tau[k], m.noise, None, m.links, **own)
        for name_of, value in vars(alone).items():
            np.testing.assert_allclose(getattr(together, name_of)[k], value, rtol=0.0, atol=1e-9, err_msg=name_of)


def test_without_measured_forces_the_least_are_taken():
    """Accelerations alone are projected on what the constraints allow; forces are those of ``inverse_dynamics``."""
    c, t = case("one loop"), terms("one loop")
    a = np.random.default_rng(0).normal(size=c.mech.nv)
    e = lw.estimation.smooth(_bare(c), c.q, c.v, a, None, Noise(acceleration=0.5))
    basis = null_space(c.mech, t.jacobian)
    np.testing.assert_allclose(e.a, t.offset + basis @ basis.T @ (a - t.offset), atol=1e-10)
    np.testing.assert_allclose(e.tau, lw.inverse_dynamics(c.mech, c.q, c.v, e.a), atol=1e-9)
    assert np.isinf(e.tau_std).any()


def test_innovations_are_in_the_order_of_joints():
    """Those of the joint forces of a mechanism with mimic joints, by dense conditional distributions."""
    c, t = case("mimic"), terms("mimic")
    m = measured(c)._replace(of_wrench=np.zeros((c.mech.n_links, 6)))
    e = lw.estimation.smooth(_bare(c), c.q, c.v, m.a, m.tau, Noise(m.of_a, m.of_tau))
    covariance = t.mass @ np.diag(m.of_a**2) @ t.mass + np.diag(m.of_tau**2)
    misses = m.tau - t.mass @ m.a - t.bias_force
    for k in range(c.mech.nv):
        after = np.arange(k + 1, c.mech.nv)
        gain = np.linalg.solve(covariance[np.ix_(after, after)], covariance[after, k])
        np.testing.assert_allclose(e.innovations[k], misses[k] - gain @ misses[after], atol=1e-9)
        np.testing.assert_allclose(e.innovation_variances[k], covariance[k, k] - gain @ covariance[after, k], rtol=1e-9)


def test_what_is_refused():
    c = case("one loop")
    n = c.mech.nv
    with pytest.raises(lw.MechanismError, match="violate its constraints"):
        lw.estimation.smooth(c.mech, c.q, c.v, np.ones(n), np.zeros(n), Noise(acceleration=0.0, torque=1.0))
    with pytest.raises(lw.MechanismError, match="nothing tells its acceleration"):
        lw.estimation.smooth(c.mech, c.q, c.v, None, None, Noise(acceleration=np.inf))
    a = terms("one loop").accelerations(c.tau)
    with pytest.raises(lw.MechanismError, match="without noise"):
        lw.estimation.smooth(c.mech, c.q, c.v, a, c.tau, Noise(acceleration=0.0, torque=0.0))
    exact = lw.estimation.smooth(c.mech, c.q, c.v, a, c.tau, Noise(acceleration=0.0, torque=1.0))
    np.testing.assert_allclose(exact.a, a, atol=1e-9)


@pytest.mark.parametrize("states", [30])
def test_payload_of_a_delta_robot(states):
    """Motors measure torques and accelerations, all other joints have neither: mass and place of a payload."""
    robot, rng = lw.mechanisms.delta_robot(), np.random.default_rng(7)
    motors = [
        robot.v_index(name).start for name in robot.joint_names if robot.bodies[robot.body_index(name)].parent < 0
    ]
    q, v, a, tau = [], [], [], []
    holding = robot.with_payload(robot.link_names[-1], 0.4, (0.02, -0.01, 0.03))
    q0 = lw.constraints.assemble(robot, robot.initial)
    for _ in range(states):
        basis = lw.constraints.null_space(robot, q0)
        q_k = lw.constraints.assemble(robot, lw.integrate(robot, q0, basis @ rng.normal(size=basis.shape[1]), 0.2))
        basis = lw.constraints.null_space(robot, q_k)
        v_k = basis @ rng.normal(size=basis.shape[1])
        force = np.zeros(robot.nv)
        force[motors] = rng.normal(size=len(motors))
        q.append(q_k), v.append(v_k), tau.append(force), a.append(lw.forward_dynamics(holding, q_k, v_k, force))
    deviations = np.full(robot.nv, np.inf)
    deviations[motors] = 0.1
    of_tau = np.zeros(robot.nv)
    of_tau[motors] = 0.02
    noise = Noise(deviations, of_tau)
    arrays = [np.array(x) for x in (q, v, a, tau)]
    exact = lw.estimation.estimate_payload(robot, *arrays, robot.link_names[-1], noise, ("m", "mx", "my", "mz"))
    truth = np.array([0.4, 0.008, -0.004, 0.012])
    free = np.sqrt(np.diag(exact.covariance))
    assert np.all(np.abs(exact.parameters - truth) < 1e-5 * free)
