"""Controllers in total joint rates: their Lyapunov functions fall as they should, and they fail where they say."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from tests.physics.test_mimic import tied_and_free
from tests.physics.trees import rate

from .simulated import simulate

planar = lw.mechanisms.planar_arm  # unit links, with a frame at the tip


def states(mech: lw.Mechanism, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    return lw.random_state(mech, np.random.default_rng(seed))


@pytest.mark.seed("jain1995", "8.4", by="library")
@pytest.mark.seed("jain1995", "Control 8.1", by="library")
@pytest.mark.parametrize(
    "mech", [lw.mechanisms.puma560(), lw.mechanisms.random_tree(5, 8, floating_base=True)], ids=lambda mech: mech.name
)
def test_rate_feedback_takes_energy_at_the_rate_of_its_gain(mech):
    """With one gain c for all, d/dt nu* nu / 2 = -2 c nu* nu / 2: energy is exactly exponential whatever C does."""
    control = lw.formulations.diagonal.rate_feedback(mech, gain=1.5)
    q, v = states(mech)
    times = np.linspace(0.0, 1.0, 6)
    q, v = simulate(mech, q, v, times, "nu", control, 1e-10)
    energy = control.lyapunov(q, v)
    np.testing.assert_allclose(energy, lw.kinetic_energy(mech, q, v), rtol=1e-9)
    np.testing.assert_allclose(energy, energy[0] * np.exp(-3.0 * times), rtol=1e-7)


def lyapunov_slope(mech, control, q, v) -> float:
    """Along the motion, by differences."""
    a = lw.forward_dynamics(mech, q, v, control(0.0, q, v))
    return rate(lambda t: control.lyapunov(lw.integrate(mech, q, v, t), v + a * t), 1e-3)


@pytest.mark.parametrize("seed", range(3))
def test_lyapunov_functions_fall_as_told(seed):
    mech = lw.mechanisms.random_tree(7, seed, joints=("revolute", "prismatic", "spherical", "universal"))
    q, v = states(mech, seed)
    gains = np.random.default_rng(seed).uniform(0.5, 3.0, mech.nv)
    target = lw.frame_pose(mech, states(mech, seed + 10)[0], "link7")
    for control in (
        lw.formulations.diagonal.rate_feedback(mech, gains),
        lw.formulations.diagonal.end_effector_regulation(mech, "link7", target, gains, 20.0, 3.0),
    ):
        found = lyapunov_slope(mech, control, q, v)
        assert found < 0.0
        assert found == pytest.approx(control.lyapunov_rate(q, v), rel=1e-7)


def test_without_compensation_gravity_does_work():
    mech = lw.mechanisms.puma560()
    q, v = states(mech)
    control = lw.formulations.diagonal.rate_feedback(mech, 1.0, gravity=False)
    np.testing.assert_allclose(
        control(0.0, q, v) + lw.gravity_force(mech, q),
        lw.formulations.diagonal.rate_feedback(mech, 1.0)(0.0, q, v),
        atol=1e-11,
    )
    work = -lw.gravity_force(mech, q) @ v
    assert lyapunov_slope(mech, control, q, v) == pytest.approx(control.lyapunov_rate(q, v) + work, rel=1e-7)


@pytest.mark.seed("jain1995", "Control 8.2", by="library")
def test_pull_is_the_gradient_of_the_springs_in_total_rates():
    """tau = m epsilon of the springs is the force of their potential, -dU/dq."""
    mech = lw.mechanisms.random_tree(6, 3, floating_base=True)
    q, _ = states(mech)
    control = lw.formulations.diagonal.end_effector_regulation(
        mech, "link6", lw.frame_pose(mech, states(mech, 1)[0], "link6")
    )
    slope = [rate(lambda t, e=e: control.potential(lw.integrate(mech, q, e, t)), 1e-3) for e in np.eye(mech.nv)]
    np.testing.assert_allclose(lw.formulations.diagonal.torques(mech, q, control.pull(q)), -np.array(slope), atol=1e-8)


@pytest.mark.parametrize("variables", ["nu", "v"])
def test_six_joint_arm_reaches_its_pose(variables):
    mech = lw.mechanisms.puma560()
    goal = np.array([0.8, -1.0, 0.9, -0.3, 1.1, 0.5])
    control = lw.formulations.diagonal.end_effector_regulation(mech, "link6", lw.frame_pose(mech, goal, "link6"))
    start = np.array([0.3, -0.6, 0.5, 0.4, 0.7, -0.2])
    assert np.abs(control.error(start)).max() > 0.5
    q, v = simulate(mech, start, np.zeros(6), np.linspace(0.0, 8.0, 33), variables, control, 1e-9)
    assert np.all(np.diff(control.lyapunov(q, v)) < 0.0)
    assert np.abs(control.error(q[-1])).max() < 1e-6
    assert np.abs(v[-1]).max() < 1e-5


# -- where it fails -----------------------------------------------------------------------------------


def test_stretched_arm_stays_in_its_singularity():
    """The springs pull along the arm, where no joint can move it: zero torque, though the target is within reach."""
    mech = planar(2)
    goal = np.array([0.7, -1.4])
    control = lw.formulations.diagonal.end_effector_regulation(
        mech, "tip", lw.frame_pose(mech, goal, "tip"), orientation_gain=0.0
    )
    stretched = np.zeros(2)
    assert control.potential(stretched) > 1.0
    np.testing.assert_allclose(control.pull(stretched), 0.0, atol=1e-12)
    q, _ = simulate(mech, stretched + (1e-3, -1e-3), np.zeros(2), np.linspace(0.0, 10.0, 3), "nu", control, 1e-9)
    assert control.potential(q[-1]) < 1e-9  # a saddle: any disturbance leads on


def test_half_a_turn_is_a_balance():
    mech = planar(1)
    target = lw.frame_pose(mech, np.array([np.pi]), "tip")
    control = lw.formulations.diagonal.end_effector_regulation(mech, "tip", target, position_gain=0.0)
    assert control.potential(np.zeros(1)) > 1.0
    np.testing.assert_allclose(control.pull(np.zeros(1)), 0.0, atol=1e-12)


def test_wrong_elbow_is_a_local_minimum():
    """Two joints reach the target in one posture only; near the other, with the right position, springs balance."""
    mech = planar(2)
    target = lw.frame_pose(mech, np.array([0.4, 1.2]), "tip")
    control = lw.formulations.diagonal.end_effector_regulation(mech, "tip", target, orientation_gain=2.0)
    q, v = simulate(mech, np.array([1.6, -1.2]), np.zeros(2), np.linspace(0.0, 20.0, 3), "nu", control, 1e-10)
    assert np.abs(v[-1]).max() < 1e-6 and np.abs(control.pull(q[-1])).max() < 1e-5
    assert np.abs(control.error(q[-1])).max() > 0.5
    around = [control.potential(q[-1] + 0.05 * np.array([np.cos(a), np.sin(a)])) for a in np.linspace(0.0, 6.2, 12)]
    assert min(around) > control.potential(q[-1])


def test_target_out_of_reach():
    mech = planar(3)
    target = np.eye(4)
    target[:3, 3] = (5.0, 0.0, 0.0)
    control = lw.formulations.diagonal.end_effector_regulation(mech, "tip", target)
    q, _ = simulate(mech, np.array([0.5, 0.6, -0.3]), np.zeros(3), np.linspace(0.0, 10.0, 3), "nu", control, 1e-9)
    np.testing.assert_allclose(control.error(q[-1])[:3], (2.0, 0.0, 0.0), atol=1e-4)  # stretched towards it


def test_bad_input():
    mech = lw.mechanisms.puma560()
    for gain in (0.0, -1.0, [1.0, 2.0]):
        with pytest.raises(ValueError, match="gain must be a positive number or 6 of them"):
            lw.formulations.diagonal.rate_feedback(mech, gain)
    with pytest.raises(ValueError, match="must be a rotation matrix"):
        lw.formulations.diagonal.end_effector_regulation(mech, "link6", np.diag([1.0, 1.0, 2.0, 1.0]))
    with pytest.raises(ValueError, match="no joint moves it"):
        lw.formulations.diagonal.end_effector_regulation(mech, "ground", np.eye(4))
    with pytest.raises(ValueError, match="position_gain must not be negative"):
        lw.formulations.diagonal.end_effector_regulation(mech, "link6", np.eye(4), position_gain=-1.0)
    pair = lw.formulations.diagonal.end_effector_regulation(mech, "link6", (np.eye(3), (0.1, 0.2, 0.3)))
    np.testing.assert_array_equal(pair.target[:3, 3], (0.1, 0.2, 0.3))


def test_regulation_where_joints_mimic_others():
    """Working moments by elimination: along them the Lyapunov function falls as it does without mimic joints."""
    tied = tied_and_free(3)[0]
    rng = np.random.default_rng(0)
    q, v = lw.random_state(tied, rng)
    link = tied.link_names[-1]
    control = lw.formulations.diagonal.end_effector_regulation(tied, link, lw.frame_pose(tied, q + 0.1, link))
    step = 1e-6
    acceleration = lw.forward_dynamics(tied, q, v, control(0.0, q, v))
    ends = [control.lyapunov(q + h * v, v + h * acceleration) for h in (step, -step)]
    rate = (ends[0] - ends[1]) / (2 * step)
    np.testing.assert_allclose(rate, control.lyapunov_rate(q, v), rtol=1e-6)
