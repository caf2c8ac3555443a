"""``forces`` names the force elements that act, with one meaning in dynamics and motion."""

from dataclasses import replace

import numpy as np
import pytest

import linkwise as lw
from tests.simulated import simulate


@pytest.fixture(scope="module")
def arm():
    mech = lw.mechanisms.planar_arm(2)
    numbers = ({"stiffness": (3.0,), "damping": (0.4,)}, {"damping": (0.2,)})
    bodies = tuple(replace(body, **more) for body, more in zip(mech.bodies, numbers, strict=True))
    return replace(mech, bodies=bodies).with_elements(lw.forces.Actuator("motor", mech.joint_names[1]))


STATE = np.array([0.3, -0.5]), np.array([0.7, -1.1])
TAU = np.array([0.2, -0.1])
KINDS = {
    "none": (0.0, 0.0, 0.0),
    "springs": (1.0, 0.0, 0.0),
    "damping": (0.0, 1.0, 0.0),
    ("springs", "damping"): (1.0, 1.0, 0.0),
    "actuators": (0.0, 0.0, 1.0),
    "all": (1.0, 1.0, 1.0),
}


def exerted(which):
    springs, damping, actuators = which
    (q, v), ctrl = STATE, 0.9
    return springs * np.array([-3.0 * q[0], 0]) - damping * np.array([0.4, 0.2]) * v + actuators * np.array([0, ctrl])


def given(forces):
    return {"forces": forces, **({"ctrl": [0.9]} if forces in ("actuators", "all") else {})}


@pytest.mark.parametrize("forces", KINDS, ids=str)
def test_joint_forces_and_dynamics(arm, forces):
    expected = exerted(KINDS[forces])
    np.testing.assert_allclose(lw.forces.joint_forces(arm, *STATE, **given(forces)), expected, atol=1e-14)
    a = lw.forward_dynamics(arm, *STATE, TAU, **given(forces))
    np.testing.assert_allclose(a, lw.forward_dynamics(arm, *STATE, TAU + expected), atol=1e-12)
    np.testing.assert_allclose(lw.inverse_dynamics(arm, *STATE, a, **given(forces)), TAU, atol=1e-12)


@pytest.mark.parametrize("forces", KINDS, ids=str)
def test_derivatives_are_those_of_the_dynamics(arm, forces):
    q, v = STATE
    by_q, by_v, by_tau = lw.forward_dynamics_derivatives(arm, q, v, TAU, **given(forces))
    of_forces = lw.inverse_dynamics_derivatives(arm, q, v, [0.4, -0.3], **given(forces))

    def slope(function, at):
        step = 1e-6
        return np.array([(function(at + step * e) - function(at - step * e)) / (2 * step) for e in np.eye(2)]).T

    options = given(forces)
    near = slope(lambda x: lw.forward_dynamics(arm, x, v, TAU, **options), q)
    np.testing.assert_allclose(by_q, near, atol=1e-6)
    near = slope(lambda x: lw.forward_dynamics(arm, q, x, TAU, **options), v)
    np.testing.assert_allclose(by_v, near, atol=1e-6)
    np.testing.assert_allclose(by_tau, lw.mass_matrix_inverse(arm, q), atol=1e-12)
    near = slope(lambda x: lw.inverse_dynamics(arm, x, v, [0.4, -0.3], **options), q)
    np.testing.assert_allclose(of_forces[0], near, atol=1e-6)
    near = slope(lambda x: lw.inverse_dynamics(arm, q, x, [0.4, -0.3], **options), v)
    np.testing.assert_allclose(of_forces[1], near, atol=1e-6)


@pytest.mark.parametrize("forces", KINDS, ids=str)
def test_motion_in_time_agrees_with_the_dynamics(arm, forces):
    options = given(forces)
    acceleration = lw.forward_dynamics(arm, *STATE, TAU, **options)
    motion = simulate(arm, *STATE, 1e-3, TAU, **options)
    np.testing.assert_allclose(motion.a[0], acceleration, atol=1e-9)
    q, v = lw.rollout(arm, *STATE, TAU, 1e-3, 1, method="rk4", **options)
    np.testing.assert_allclose(q[-1], motion.q[-1], atol=1e-10)
    np.testing.assert_allclose(v[-1], motion.v[-1], atol=1e-9)
    model = lw.linearize(arm, *STATE, TAU, **options)
    np.testing.assert_allclose(model.acceleration, acceleration, atol=1e-10)


def test_force_elements_of_a_passive(arm):
    springs = lw.forces.Passive.springs({arm.joint_names[1]: 5.0})
    expected = exerted((0.0, 0.0, 1.0)) - np.array([0.0, 5.0 * STATE[0][1]])
    chosen = ("actuators", springs)
    np.testing.assert_allclose(lw.forces.joint_forces(arm, *STATE, forces=chosen, ctrl=[0.9]), expected, atol=1e-14)
    motion = lw.simulate(arm, *STATE, 1e-3, TAU, forces=chosen, ctrl=[0.9])
    np.testing.assert_allclose(motion.a[0], lw.forward_dynamics(arm, *STATE, TAU + expected), atol=1e-9)


def test_what_is_switched_off_stays_so(arm):
    quiet = arm.with_acting(damping=False)
    np.testing.assert_array_equal(lw.forces.joint_forces(quiet, *STATE, forces="damping"), 0.0)
    np.testing.assert_allclose(lw.forces.joint_forces(quiet, *STATE, ctrl=[0.9]), exerted((1.0, 0.0, 1.0)), atol=1e-14)


@pytest.mark.parametrize(
    ("forces", "error", "words"),
    [
        ("spring", ValueError, "unknown kind of force elements 'spring': did you mean 'springs'"),
        (3, TypeError, 'forces is "none", "all", a kind of force elements'),
        (("springs", lw.forces.Passive()), lw.MechanismError, r"linkwise.forces.Passive.of\(mech\) \+ yours"),
    ],
)
def test_unknown_forces_are_refused(arm, forces, error, words):
    with pytest.raises(error, match=words):
        lw.forward_dynamics(arm, *STATE, TAU, forces=forces)
    with pytest.raises(error, match=words):
        lw.simulate(arm, *STATE, 1e-3, TAU, forces=forces)


def test_control_inputs_need_actuators_that_act(arm):
    with pytest.raises(lw.MechanismError, match="no actuator"):
        lw.forward_dynamics(arm, *STATE, TAU, ctrl=[0.9])
