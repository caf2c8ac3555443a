"""Estimates against dense weighted least squares, on trees of all joints; likelihoods; error bars that are honest."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.dynamics.estimation.noise import certainty_and_spread
from linkwise.estimation import Noise
from tests.dynamics.estimation.least_squares import Dense
from tests.physics.trees import CASES, close, tree_of

SMALL = [(3, 0, True), (3, 1, False), (5, 0, False), (5, 1, True)]
TREES = pytest.mark.parametrize(
    "case", [*SMALL, *(pytest.param(c, marks=pytest.mark.slow) for c in CASES if c not in SMALL)], ids=str
)


def draw(mech: lw.Mechanism, rng: np.random.Generator, some_exact: bool) -> tuple[np.ndarray, ...]:
    """Noise of accelerations, forces, wrenches, link accelerations.  With ``some_exact`` each joint has one of: unknown
    acceleration under an exact force, an exact acceleration, a force that is not measured."""
    of_a, of_tau = rng.uniform(0.1, 2.0, (2, mech.nv))
    of_wrench = rng.uniform(0.1, 2.0, (mech.n_links, 6)) * (rng.random((mech.n_links, 1)) < 0.6)
    of_sensed = np.where(rng.random((mech.n_links, 6)) < 0.3, rng.uniform(0.1, 2.0, (mech.n_links, 6)), np.inf)
    if some_exact:
        which = rng.integers(0, 4, mech.nv)
        of_a = np.where(which == 0, np.inf, np.where(which == 1, 0.0, of_a))
        of_tau = np.where(which == 0, 0.0, np.where(which == 2, np.inf, of_tau))
    return of_a, of_tau, of_wrench, of_sensed


@TREES
def test_estimate_is_weighted_least_squares(case):
    """Means and covariances of accelerations, forces and wrenches; noise of all kinds, finite, zero and infinite."""
    model = tree_of(*case)
    mech, rng = model.mech, np.random.default_rng(case[1])
    (q, *_), nv = model.states(1), mech.nv
    dense = Dense.of(mech, q[0])
    for some_exact in (False, True):
        of_a, of_tau, of_wrench, of_sensed = draw(mech, rng, some_exact)
        e, sensed = rng.normal(size=nv), rng.normal(size=(mech.n_links, 6))
        mean, covariance, forces = dense.solve(e, of_a, of_tau, of_wrench, sensed, of_sensed)
        noises = certainty_and_spread(of_a), certainty_and_spread(of_tau)
        residuals, weights = np.where(np.isinf(of_tau), 0.0, e), 1.0 / of_sensed**2
        joints, wrenches, spread, _ = model.estimate_with_sensors(
            q[0], residuals, *noises, of_wrench**2, np.where(np.isinf(of_sensed), 0.0, sensed), weights
        )
        close(joints[:, 0], mean[:nv], 1e-9)
        close(joints[:, 1], np.diag(covariance)[:nv], 1e-9)
        close(joints[:, 2], forces @ mean, 1e-9)
        close(joints[:, 3], np.diag(forces @ covariance @ forces.T), 1e-9)
        close(wrenches.ravel(), mean[nv:], 1e-9)
        for i in range(mech.n_links):
            block = slice(nv + 6 * i, nv + 6 * i + 6)
            close(spread[i], covariance[block, block], 1e-9, core=2)


@TREES
def test_likelihood_and_weights_are_those_of_the_dense_covariance(case):
    model = tree_of(*case)
    mech, rng = model.mech, np.random.default_rng(case[1])
    q = model.states(1)[0][0]
    of_a, of_tau, of_wrench, _ = draw(mech, rng, False)
    e = rng.normal(size=mech.nv)
    covariance = Dense.of(mech, q).covariance(of_a, of_tau, of_wrench)
    arrays = (q, e, certainty_and_spread(of_a), certainty_and_spread(of_tau), of_wrench**2)
    weighted = np.linalg.solve(covariance, e)
    close(model.weighted_residuals(*arrays), weighted, 1e-9)
    _, determinants, _, quadratic = model.estimation_innovations(*arrays).T
    variances = determinants / (arrays[2][:, 0] * arrays[3][:, 0])
    close(quadratic.sum(), e @ weighted, 1e-9, core=0)
    close(np.log(variances).sum(), np.linalg.slogdet(covariance)[1], 1e-9, core=0)


def test_likelihood_of_everything_that_is_measured():
    """Joint forces and link accelerations as one Gaussian vector, by its dense covariance."""
    mech, rng = lw.mechanisms.planar_arm(3), np.random.default_rng(6)
    q, v, a, tau = (rng.normal(size=3) for _ in range(4))
    of_a, of_tau, of_wrench, _ = draw(mech, rng, False)
    of_sensed = np.where(rng.random((3, 6)) < 0.4, rng.uniform(0.5, 2.0, (3, 6)), np.inf)
    sensed = rng.normal(size=(3, 6))
    noise = Noise(of_a, of_tau, of_wrench, of_sensed)
    found = lw.estimation.log_likelihood(mech, q, v, a, tau, noise, None, sensed)
    dense, known = Dense.of(mech, q), np.isfinite(of_sensed.ravel())
    map_of_unknowns = np.vstack(
        [
            np.hstack([dense.mass_matrix, -dense.jacobian.T]),
            np.hstack([dense.jacobian, np.zeros((18, 18))])[known],
        ]
    )
    prior, own = np.concatenate([of_a, of_wrench.ravel()]) ** 2, np.concatenate([of_tau, of_sensed.ravel()[known]]) ** 2
    covariance = map_of_unknowns * prior @ map_of_unknowns.T + np.diag(own)
    residual = np.concatenate(
        [tau - lw.inverse_dynamics(mech, q, v, a), (sensed - lw.link_accelerations(mech, q, v, a)).ravel()[known]]
    )
    squares = residual @ np.linalg.solve(covariance, residual)
    close(found, -0.5 * (squares + np.linalg.slogdet(2.0 * np.pi * covariance)[1]), 1e-9, core=0)


def test_loops_over_links_give_the_same():
    """Long chains have loops: what is compiled once per kind of link against straight-line code."""
    mech, rng = lw.mechanisms.planar_arm(12), np.random.default_rng(0)
    looped, straight = (lw.compile("estimate", mech, target="numpy", loops=loops) for loops in (True, False))
    arrays = [rng.uniform(0.2, 1.0, shape) for shape in straight.input_shapes.values()]
    for found, expected in zip(looped(*arrays), straight(*arrays), strict=True):
        close(found, expected, 1e-12, expected.ndim)
    counts = [
        sum(lw.compile("estimate", lw.mechanisms.planar_arm(n), target="numpy").op_counts.values()) for n in (4, 8, 12)
    ]
    assert counts[2] - counts[1] == counts[1] - counts[0]  # so much for each link


@pytest.mark.slow
def test_intervals_on_a_tree_of_all_joints():
    """1,000 cases on a floating base with joints of all kinds: accelerations of the base are not measured, its six
    forces are zero, and every link may be pushed."""
    mech, rng = lw.mechanisms.random_tree(5, 12, floating_base=True), np.random.default_rng(8)
    of_a, of_tau = np.full(mech.nv, 0.3), np.full(mech.nv, 0.2)
    of_a[:6], of_tau[:6] = np.inf, 0.0
    noise = Noise(of_a, of_tau, np.full((mech.n_links, 6), 0.5))
    q, v = lw.random_state(mech, rng, (1000,))
    a = rng.normal(size=v.shape)
    push = 0.5 * rng.normal(size=(1000, mech.n_links, 6))
    a[:, :6] = 0.0  # the base accelerates as its forces, which are none, let it
    bias = lw.inverse_dynamics(mech, q, v, a, push)[:, :6]
    a[:, :6] = -np.linalg.solve(lw.mass_matrix(mech, q)[:, :6, :6], bias[..., None])[..., 0]
    tau = lw.inverse_dynamics(mech, q, v, a, push)
    measured = a + np.where(np.isinf(of_a), 0.0, of_a) * rng.normal(size=a.shape)
    found = lw.estimation.smooth(mech, q, v, measured, tau + of_tau * rng.normal(size=a.shape), noise)
    for value, deviation, truth in (
        (found.a, found.a_std, a),
        (found.tau[:, 6:], found.tau_std[:, 6:], tau[:, 6:]),
        (found.wrenches, found.wrench_std, push),
    ):
        inside = (np.abs(value - truth) < 1.959964 * deviation).reshape(1000, -1)
        assert 0.93 < inside.mean() < 0.97
        assert np.all((inside.mean(axis=0) > 0.925) & (inside.mean(axis=0) < 0.975))


# -- the public functions -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def arm() -> lw.Mechanism:
    return lw.mechanisms.planar_arm(3).with_payload("link3", 0.5, (0.4, 0.1, 0.0))


NOISE = Noise(
    acceleration=0.3, torque={"joint1": 0.5, "joint2": 0.2, "joint3": 0.1}, wrench={"link3": (0, 0, 1, 5, 5, 0)}
)


def simulated(mech: lw.Mechanism, noise: Noise, rng: np.random.Generator, count: int) -> tuple[np.ndarray, ...]:
    """True (q, v, a, wrenches, tau), and what is measured of a and tau."""
    q, v = lw.random_state(mech, rng, (count,))
    a = rng.normal(size=v.shape)
    wrenches = noise.of_wrenches(mech) * rng.normal(size=(count, mech.n_links, 6))
    tau = lw.inverse_dynamics(mech, q, v, a, wrenches)
    measured_a = a + noise.of_accelerations(mech) * rng.normal(size=a.shape)
    return q, v, a, wrenches, tau, measured_a, tau + noise.of_torques(mech) * rng.normal(size=a.shape)


def test_intervals_contain_the_truth_as_often_as_they_say(arm):
    """1,000 simulated cases: of each kind of quantity 93 to 97 percent within 1.96 standard deviations."""
    q, v, a, wrenches, tau, measured_a, measured_tau = simulated(arm, NOISE, np.random.default_rng(7), 1000)
    found = lw.estimation.smooth(arm, q, v, measured_a, measured_tau, NOISE)
    acting = np.array([2, 3, 4])  # components of the wrench on link3 that can differ from zero
    for value, deviation, truth in (
        (found.a, found.a_std, a),
        (found.tau, found.tau_std, tau),
        (found.wrenches[:, 2, acting], found.wrench_std[:, 2, acting], wrenches[:, 2, acting]),
    ):
        inside = np.abs(value - truth) < 1.959964 * deviation
        assert 0.93 <= inside.mean() <= 0.97
        assert np.all((inside.mean(axis=0) > 0.93) & (inside.mean(axis=0) < 0.97))
    assert np.all(found.tau_std < NOISE.of_torques(arm)), "smoothing gains nothing"
    assert np.all(found.a_std < NOISE.of_accelerations(arm))
    # Innovations are white: each as large as it says, none told by another.
    white = found.innovations / np.sqrt(found.innovation_variances)
    assert np.abs(white.T @ white / 1000 - np.eye(3)).max() < 0.12


def test_batches_and_single_states_agree(arm):
    q, v, _, _, _, a, tau = simulated(arm, NOISE, np.random.default_rng(1), 6)
    whole = lw.estimation.smooth(
        arm, q.reshape(2, 3, -1), v.reshape(2, 3, -1), a.reshape(2, 3, -1), tau.reshape(2, 3, -1), NOISE
    )
    one = lw.estimation.smooth(arm, q[4], v[4], a[4], tau[4], NOISE)
    for name in ("a", "a_std", "tau", "tau_std", "wrenches", "wrench_covariances", "innovations", "log_likelihood"):
        close(getattr(whole, name)[1, 1], getattr(one, name), 1e-12, core=getattr(one, name).ndim)
    likelihood = lw.estimation.log_likelihood(arm, q, v, a, tau, NOISE)
    close(likelihood.reshape(2, 3), whole.log_likelihood, 1e-12)


def test_likelihood_is_the_density_of_the_residuals(arm):
    q, v, _, _, _, a, tau = simulated(arm, NOISE, np.random.default_rng(2), 1)
    covariance = Dense.of(arm, q[0]).covariance(
        NOISE.of_accelerations(arm), NOISE.of_torques(arm), NOISE.of_wrenches(arm)
    )
    residual = tau[0] - lw.inverse_dynamics(arm, q[0], v[0], a[0])
    expected = -0.5 * (residual @ np.linalg.solve(covariance, residual) + np.linalg.slogdet(2 * np.pi * covariance)[1])
    close(lw.estimation.log_likelihood(arm, q, v, a, tau, NOISE)[0], expected, 1e-10, core=0)


def test_without_noise_it_is_forward_or_inverse_dynamics(arm):
    q, v, a, _, _, _, _ = simulated(arm, NOISE, np.random.default_rng(3), 4)
    tau = lw.inverse_dynamics(arm, q, v, a)
    forward = lw.estimation.smooth(arm, q, v, None, tau, Noise(acceleration=np.inf, torque=0.0))
    close(forward.a, lw.forward_dynamics(arm, q, v, tau), 1e-11)
    assert not forward.a_std.any()
    assert np.isnan(forward.innovations).all()
    inverse = lw.estimation.smooth(arm, q, v, a, None, Noise())
    close(inverse.tau, tau, 1e-12)
    assert not inverse.tau_std.any()
    held = lw.estimation.smooth(arm, q, v, a, tau + 1.0, Noise(torque=1.0), np.zeros((arm.n_links, 6)))
    close(held.tau, tau, 1e-12)  # exact accelerations overrule torques


def test_expected_wrenches_and_sensors_enter(arm):
    """A floating base of which nothing but a sensor tells the acceleration."""
    base = lw.Builder().link("hull", 3.0, (0.1, 0, 0), (0.2, 0.3, 0.4)).link("arm", 1.0, (0, 0, 0.2), (0.1, 0.1, 0.01))
    base.joint("free", lw.Floating(), "ground", "hull").joint("shoulder", lw.Revolute((0, 1, 0)), "hull", "arm")
    mech, rng = base.build("boat"), np.random.default_rng(5)
    q, v = lw.random_state(mech, rng)
    a = rng.normal(size=mech.nv)
    push = rng.normal(size=(2, 6))
    tau = lw.inverse_dynamics(mech, q, v, a, push)
    of_sensor = {"hull": 1e-3, "arm": (np.inf, np.inf, np.inf, 0.1, 0.1, 0.1)}
    noise = Noise(acceleration={"shoulder": 0.01}, torque=np.full(7, 0.1), link_acceleration=of_sensor)
    sensed = lw.link_accelerations(mech, q, v, a)
    exact = lw.estimation.smooth(mech, q, v, np.where(np.arange(7) < 6, np.nan, a), tau, noise, push, sensed)
    close(exact.a, a, 1e-9)
    close(exact.tau, tau, 1e-9)
    noisy = sensed + 0.01 * rng.normal(size=(2, 6))
    found = lw.estimation.smooth(mech, q, v, a, tau, noise, push, noisy)
    mean, covariance, forces = Dense.of(mech, q).solve(
        np.zeros(7),
        noise.of_accelerations(mech),
        noise.of_torques(mech),
        np.zeros((2, 6)),
        noisy - sensed,
        noise.of_link_accelerations(mech),
    )
    close(found.a - a, mean[:7], 1e-8)
    close(found.a_std**2, np.diag(covariance)[:7], 1e-9)
    close(found.tau - tau, forces @ mean, 1e-8)
    unlikely = lw.estimation.log_likelihood(mech, q, v, a, tau, noise, push, noisy + 1.0)
    assert unlikely < found.log_likelihood
    close(lw.estimation.log_likelihood(mech, q, v, a, tau, noise, push, noisy), found.log_likelihood, 1e-12, core=0)


# -- what is refused ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("noise", "says"),
    [
        ({"acceleration": -1.0}, "Noise.acceleration has entries that are no standard deviations"),
        ({"acceleration": [1.0, 2.0]}, r"Noise.acceleration has shape \(2,\)"),
        ({"torque": {"elbow": 1.0}}, "elbow"),
        ({"wrench": {"tip": 1.0}}, "moving link"),
        ({"wrench": {"link1": (1, 2)}}, "a number or six"),
        ({"wrench": {"link1": np.inf}}, "must be finite"),
        ({"wrench": np.ones(6)}, "expected a dictionary from link"),
        ({"link_acceleration": {"link1": 0.0}}, "must be positive"),
        ({"acceleration": np.inf, "torque": np.inf}, "joint 'joint3'.*nothing tells its acceleration"),
        ({"acceleration": 0.0, "torque": 0.0}, "both are measured without noise"),
        ({"acceleration": 0.1, "torque": 0.1, "link_acceleration": {"link1": 1.0}}, "give both, or neither"),
    ],
)
def test_noise_that_makes_no_sense_is_refused(arm, noise, says):
    q, v, _, _, _, a, tau = simulated(arm, NOISE, np.random.default_rng(0), 1)
    with pytest.raises(ValueError, match=says):
        lw.estimation.smooth(arm, q[0], v[0], a[0], tau[0], Noise(**noise))


def test_measurements_that_make_no_sense_are_refused(arm):
    q, v = lw.random_state(arm, np.random.default_rng(0))
    with pytest.raises(lw.MechanismError, match="tau is missing"):
        lw.estimation.smooth(arm, q, v, v, None, Noise(torque=1.0))
    with pytest.raises(lw.MechanismError, match="a has entries that are not finite"):
        lw.estimation.smooth(arm, q, v, v * np.nan, v, Noise(torque=1.0))
    with pytest.raises(lw.MechanismError, match=r"tau has shape \(2,\)"):
        lw.estimation.smooth(arm, q, v, v, v[:2], Noise(torque=1.0))
    with pytest.raises(TypeError, match=r"linkwise\.estimation\.Noise"):
        lw.estimation.smooth(arm, q, v, v, v, 0.1)
    with pytest.raises(lw.MechanismError, match="spanning_tree"):
        loop = lw.mechanisms.four_bar()
        lw.estimation.kalman(loop, lw.neutral(loop), np.zeros(3), np.zeros(3))
