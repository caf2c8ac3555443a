"""Payloads and motions from noisy measurements: right without noise, and honest about what they do not know."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import linkwise as lw
from linkwise.dynamics.estimation.payload import _Weighting, _WholeWeighting
from linkwise.estimation import Noise, encoder_motion, estimate_payload, smooth
from tests.dynamics.estimation.least_squares import Dense
from tests.physics.trees import close

TEN = ("m", "mx", "my", "mz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
NOISE = Noise(acceleration=0.05, torque=(0.3, 0.2, 0.1))


@pytest.fixture(scope="module")
def arm() -> lw.Mechanism:
    return lw.mechanisms.chain(3)


def measured(arm: lw.Mechanism, holding: lw.Mechanism, rng: np.random.Generator, states: int, noisy: bool = True):
    q, v = lw.random_state(arm, rng, (states,))
    a = 2.0 * rng.normal(size=v.shape)
    tau = lw.inverse_dynamics(holding, q, v, a)
    scale = 1.0 if noisy else 0.0
    return (
        q,
        v,
        a + scale * NOISE.of_accelerations(arm) * rng.normal(size=v.shape),
        tau + scale * NOISE.of_torques(arm) * rng.normal(size=v.shape),
    )


def test_payload_without_noise_is_exact(arm):
    link, rng = arm.link_names[-1], np.random.default_rng(0)
    point = arm.with_payload(link, 1.5, (0.02, -0.03, 0.2))
    found = estimate_payload(arm, *measured(arm, point, rng, 20, noisy=False), link, NOISE)
    close(found.mass, 1.5, 1e-8, core=0)
    close(found.com, (0.02, -0.03, 0.2), 1e-8)
    assert found.chi_square < 1e-9
    assert found.degrees_of_freedom == 56
    body = arm.with_payload(link, 1.5, (0.02, -0.03, 0.2), np.diag([0.01, 0.02, 0.015]))
    found = estimate_payload(arm, *measured(arm, body, rng, 20, noisy=False), link, NOISE, TEN)
    difference = lw.estimation.inertial_parameters(body) - lw.estimation.inertial_parameters(arm)
    close(found.parameters, difference[-10:], 1e-7)
    assert str(found).startswith(f"payload of {link!r}: 1.5 +-")


def test_noise_that_is_none_is_refused(arm):
    rng = np.random.default_rng(0)
    for wrong in (0.1, None, (0.1, 0.2)):
        with pytest.raises(TypeError, match=r"noise is a linkwise.estimation.Noise\(acceleration=..., torque=...\)"):
            estimate_payload(arm, *measured(arm, arm, rng, 4), arm.link_names[-1], wrong)


def test_payloads_that_no_body_has_are_reported(arm):
    """Products of inertia about the link's origin that are not named are zero, which those of the body here are not."""
    link, rng = arm.link_names[-1], np.random.default_rng(0)
    body = arm.with_payload(link, 1.5, (0.1, -0.2, 0.3), np.diag([0.01, 0.02, 0.015]))
    data = measured(arm, body, rng, 20, noisy=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        estimate_payload(arm, *data, link, NOISE, TEN)
        estimate_payload(arm, *data, link, NOISE)
        estimate_payload(arm, *measured(arm, arm, rng, 20), link, NOISE)  # no payload: a mass of either sign
    some = ("m", "mx", "my", "mz", "Ixx", "Iyy", "Izz")
    with pytest.warns(
        lw.files.InertiaWarning, match="no body has the estimated payload.*Ixy, Ixz, Iyz about the origin"
    ):
        estimate_payload(arm, *data, link, NOISE, some)
    with pytest.warns(lw.files.InertiaWarning, match="give more states"):
        estimate_payload(arm, *measured(arm, arm, rng, 20), link, NOISE, TEN)


def test_what_acts_is_accounted_for(arm):
    """Damping acts besides motors, and motors are not counted twice."""
    link, rng = arm.link_names[-1], np.random.default_rng(5)
    motor = lw.forces.Actuator("motor", arm.joint_names[0], gain=(3.0,), bias=(1.0, -2.0, -3.0))
    damped = arm.parameters.with_damping(dict.fromkeys(arm.joint_names, 1.5)).with_elements(motor)
    q, v, a, tau = measured(arm, arm.with_payload(link, 1.5, (0.02, -0.03, 0.2)), rng, 20, noisy=False)
    tau = tau + 1.5 * v
    found = estimate_payload(damped, q, v, a, tau, link, NOISE)
    close(np.array([found.mass, *found.com]), (1.5, 0.02, -0.03, 0.2), 1e-8)
    assert found.mechanism.forces.active == damped.forces.active
    light = arm.parameters.with_damping(dict.fromkeys(arm.joint_names, 1.0))
    other = estimate_payload(damped, q, v, a, tau - 0.5 * v, link, NOISE, passive=lw.forces.Passive.of(light))
    close(other.parameters, found.parameters, 1e-8)
    blind = estimate_payload(damped, q, v, a, tau, link, NOISE, passive=lw.forces.Passive())
    assert blind.chi_square > 1e3 > found.chi_square
    smoothed = smooth(found.mechanism, q, v, a, tau, NOISE)
    close(smoothed.tau, tau, 1e-8)
    close(smoothed.a, a, 1e-8)


def test_payload_of_a_welded_frame_is_told_in_that_frame(arm):
    link, rng = arm.link_names[-1], np.random.default_rng(6)
    frame = arm.with_frame("tool", link, lw.pose((0.1, -0.2, 0.3), rpy=(0.4, 0.5, -0.6)))
    for parameters, inertia in ((TEN[:4], None), (TEN, np.diag([0.01, 0.02, 0.015]))):
        holding = frame.with_payload("tool", 1.5, (0.02, -0.03, 0.2), inertia)
        found = estimate_payload(frame, *measured(arm, holding, rng, 20, noisy=False), "tool", NOISE, parameters)
        close(np.array([found.mass, *found.com]), (1.5, 0.02, -0.03, 0.2), 1e-7)
        close(lw.estimation.inertial_parameters(found.mechanism), lw.estimation.inertial_parameters(holding), 1e-7)
    with pytest.raises(ValueError, match=f"'tool' .* is welded to '{link}'"):
        smooth(frame, np.zeros(3), np.zeros(3), np.zeros(3), np.zeros(3), Noise(wrench={"tool": 1.0}))


def test_payloads_where_joints_mimic_others(arm):
    """As the filter weights without them; with them the truth is found, and ``kalman`` says what to lock."""
    link, rng = arm.link_names[-1], np.random.default_rng(7)
    noise = Noise(acceleration=0.05, torque={joint: 0.2 for joint in arm.joint_names[1:]}, wrench={link: 0.1})
    q, v, a, tau = measured(arm, arm.with_payload(link, 1.5, (0.02, -0.03, 0.2)), rng, 20)
    columns = rng.normal(size=(20, 3, 2))
    filtered, whole = (
        weighting.fitted(arm, q, v, a, tau, columns)
        for weighting in (_Weighting(arm, noise), _WholeWeighting(arm, noise, None))
    )
    close(whole.weighted, filtered.weighted, 1e-9, core=2)
    close(whole.residuals, filtered.residuals, 1e-9)
    close(whole.rates, filtered.rates, 1e-9)
    assert whole.surplus == filtered.surplus
    assert abs(whole.chi_square - filtered.chi_square) < 1e-9 * filtered.chi_square
    builder = lw.Builder()
    for body in arm.bodies:
        builder.link(body.link, body.mass, body.com, body.inertia)
        parent = arm.link_names[body.parent] if body.parent >= 0 else "ground"
        pose = (body.rotation, body.position)
        mimic = lw.Mimic(arm.joint_names[1], -0.5, 0.1) if body.link == link else None
        builder.joint(body.joint, body.kind, parent, body.link, pose, mimic=mimic)
    tied, noise = builder.build("tied"), Noise(acceleration=0.05, torque=0.2)
    q, v = lw.random_state(tied, rng, (20,))
    a = rng.normal(size=v.shape)
    tau = lw.inverse_dynamics(tied.with_payload(link, 1.5, (0.02, -0.03, 0.2)), q, v, a)
    found = estimate_payload(tied, q, v, a, tau, link, noise)
    close(np.array([found.mass, *found.com]), (1.5, 0.02, -0.03, 0.2), 1e-7)
    close(smooth(found.mechanism, q, v, a, tau, noise).a, a, 1e-8)
    with pytest.raises(lw.MechanismError, match=rf"mech.with_locked\({arm.joint_names[1]}=0\)"):
        lw.estimation.kalman(tied, q, v, tau)


@pytest.mark.slow
def test_payload_intervals_contain_the_truth(arm):
    """1,000 payloads, each from 20 states: 93 to 97 percent of the intervals of mass and centre contain the truth."""
    link, rng = arm.link_names[-1], np.random.default_rng(11)
    holding = arm.with_payload(link, 1.5, (0.02, -0.03, 0.2))
    truth = np.array([1.5, 0.02, -0.03, 0.2])
    misses = []
    for _ in range(1000):
        found = estimate_payload(arm, *measured(arm, holding, rng, 20), link, NOISE)
        misses.append((np.array([found.mass, *found.com]) - truth) / np.array([found.mass_std, *found.com_std]))
    inside = (np.abs(misses) < 1.959964).mean(axis=0)
    assert np.all((inside > 0.93) & (inside < 0.97))


def test_payload_is_generalized_least_squares(arm):
    """With the mechanism that holds what was found, the weighted normal equations hold, with dense covariances."""
    link, rng = arm.link_names[-1], np.random.default_rng(2)
    holding = arm.with_payload(link, 1.5, (0.02, -0.03, 0.2), np.diag([0.01, 0.02, 0.015]))
    q, v, a, tau = measured(arm, holding, rng, 8)
    found = estimate_payload(arm, q, v, a, tau, link, NOISE, TEN)
    information, gradient = np.zeros((10, 10)), np.zeros(10)
    for k in range(8):
        covariance = Dense.of(found.mechanism, q[k]).covariance(
            NOISE.of_accelerations(arm), NOISE.of_torques(arm), np.zeros((3, 6))
        )
        columns = lw.estimation.regressor(arm, q[k], v[k], found.a[k])[:, -10:]
        weighted = np.linalg.solve(covariance, columns)
        information += columns.T @ weighted
        gradient += weighted.T @ (tau[k] - lw.inverse_dynamics(found.mechanism, q[k], v[k], a[k]))
    close(found.covariance, np.linalg.inv(information), 1e-6, core=2)
    assert np.all(np.abs(np.linalg.solve(information, gradient)) < 1e-4 * np.sqrt(np.diag(found.covariance)))


def test_payloads_that_cannot_be_told_are_refused(arm):
    link, rng = arm.link_names[-1], np.random.default_rng(0)
    q, v, a, tau = measured(arm, arm, rng, 4)
    still = np.zeros_like(v)
    with pytest.raises(lw.MechanismError, match="do not tell .*Ixx.* apart"):
        estimate_payload(arm, q, still, still, tau, link, NOISE, TEN)
    with pytest.raises(lw.MechanismError, match="cannot tell 10 numbers"):
        estimate_payload(arm, q[0], v[0], a[0], tau[0], link, NOISE, TEN)
    with pytest.raises(lw.MechanismError, match="finite Noise.acceleration"):
        estimate_payload(arm, q, v, a, tau, link, Noise(acceleration=np.inf, torque=1.0))
    with pytest.raises(lw.MechanismError, match="begin with its mass"):
        estimate_payload(arm, q, v, a, tau, link, NOISE, ("mx", "my"))
    with pytest.raises(ValueError, match="unknown parameter of a payload 'mass'"):
        estimate_payload(arm, q, v, a, tau, link, NOISE, ("mass",))
    with pytest.raises(lw.MechanismError, match="has no link or frame 'hand'"):
        estimate_payload(arm, q, v, a, tau, "hand", NOISE)
    with pytest.raises(lw.MechanismError, match="fixed to the ground"):
        estimate_payload(arm, q, v, a, tau, "ground", NOISE)


# -- encoders -------------------------------------------------------------------------------------------


def driven(rng: np.random.Generator, t: np.ndarray, jerk: float, joints: int) -> np.ndarray:
    """(n, joints, 3): motions under white jerk, drawn step by step."""
    states = [rng.normal(size=(joints, 3))]
    for dt in np.diff(t):
        F = np.array([[1, dt, dt * dt / 2], [0, 1, dt], [0, 0, 1]])
        powers = np.array([[20, 8, 6], [8, 3, 2], [6, 2, 1]])
        Q = jerk**2 * dt ** (np.add.outer([2, 1, 0], [2, 1, 0]) + 1) / powers
        states.append(states[-1] @ F.T + rng.normal(size=(joints, 3)) @ np.linalg.cholesky(Q).T)
    return np.array(states)


def test_encoders_tell_velocities_and_accelerations():
    """The model's own motions, at uneven times: intervals contain the truth, the jerk is found, dense least squares
    agrees."""
    mech, rng = lw.mechanisms.planar_arm(20), np.random.default_rng(4)
    t = np.cumsum(rng.uniform(0.005, 0.015, 60))
    truth = driven(rng, t, 30.0, 20)
    q = truth[..., 0] + 1e-3 * rng.normal(size=(60, 20))
    found = encoder_motion(mech, t, q, 1e-3, 30.0)
    estimates = np.stack([found.q, found.v, found.a], -1)
    deviations = np.stack([found.q_std, found.v_std, found.a_std], -1)
    inside = np.abs(estimates - truth) < 1.959964 * deviations
    assert np.all(np.abs(inside.mean(axis=(0, 1)) - 0.95) < 0.02)
    tuned = encoder_motion(mech, t, q, 1e-3)
    assert 0.9 < np.median(tuned.jerk) / 30.0 < 1.1
    assert np.all(tuned.log_likelihood >= found.log_likelihood - 1e-9)
    # All states of one joint at once: each step's jump weighted with its covariance, each measurement with its noise.
    n = len(t)
    rows, values = [], []
    for k in range(n):
        row = np.zeros((1, 3 * n))
        row[0, 3 * k] = 1e3
        rows.append(row)
        values.append([1e3 * q[k, 0]])
    for k, dt in enumerate(np.diff(t)):
        F = np.array([[1, dt, dt * dt / 2], [0, 1, dt], [0, 0, 1]])
        powers = np.array([[20, 8, 6], [8, 3, 2], [6, 2, 1]])
        Q = 900.0 * dt ** (np.add.outer([2, 1, 0], [2, 1, 0]) + 1) / powers
        row = np.zeros((3, 3 * n))
        row[:, 3 * k : 3 * k + 3], row[:, 3 * k + 3 : 3 * k + 6] = -F, np.eye(3)
        rows.append(np.linalg.solve(np.linalg.cholesky(Q), row))
        values.append(np.zeros(3))
    A = np.vstack(rows)
    dense = np.linalg.lstsq(A, np.concatenate(values), rcond=None)[0].reshape(n, 3)
    variances = np.diag(np.linalg.inv(A.T @ A)).reshape(n, 3)
    assert np.all(np.abs(estimates[:, 0] - dense) < 1e-3 * np.sqrt(variances))
    close(deviations[:, 0], np.sqrt(variances), 1e-4)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"t": [0.0, 0.0, 1.0, 2.0]}, "rising times"),
        ({"q": np.zeros((3, 1))}, "one row per time"),
        ({"noise": 0.0}, "noise must be a positive number"),
        ({"jerk": -1.0}, "jerk must be a positive number"),
        ({"mech": lw.mechanisms.random_tree(1, 0, ["spherical"])}, "has a quaternion"),
    ],
)
def test_encoder_data_that_makes_no_sense_is_refused(change, says):
    given = {"mech": lw.mechanisms.planar_arm(1), "t": np.arange(4.0), "q": np.zeros((4, 1)), "noise": 1.0} | change
    with pytest.raises(lw.MechanismError, match=says):
        encoder_motion(**given)
