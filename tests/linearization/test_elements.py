"""Linear models of mechanisms on which elements act: against differences of accelerations and of rates of activations,
and against motions."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw


def driven_arm() -> lw.Mechanism:
    """Springs, damping, friction, limits that push, a servo, a filter, an integrator and a tendon."""
    mech = lw.mechanisms.planar_arm(3)
    first, second, third = mech.joint_names
    mech = mech.parameters.with_damping({first: 0.4}).with_limits(
        {second: lw.Limits(-3.0, 0.2, stiffness=30.0, damping=0.3)}
    )
    return mech.with_elements(
        lw.forces.Actuator("servo", second, gain=(9.0,), bias=(0.0, -9.0, -1.0), ctrl_range=(-1.0, 1.0)),
        lw.forces.Actuator("slow", first, gear=(3.0,), dynamics="filter", time_constant=0.2, gain=(1.0, 0.2, 0.1)),
        lw.forces.Tendon(
            "belt", ((first, 1.0), (third, -0.5)), stiffness=5.0, damping=0.3, rest=(-0.2, 0.1), friction=0.1
        ),
        lw.forces.Actuator("pull", "belt", "tendon", gear=(2.0,), dynamics="integrator", activation_range=(-1.0, 1.0)),
    )


def driven_tree() -> lw.Mechanism:
    """A floating base with a ball: forces along the axes of the child, of the parent and of a frame."""
    mech = lw.mechanisms.random_tree(3, 21, joints=("spherical", "revolute"), floating_base=True)
    base, ball = mech.joint_names[0], next(b.joint for b in mech.bodies if isinstance(b.kind, lw.Spherical))
    mech = mech.with_frame("tip", mech.link_names[-1], (np.eye(3), (0.1, 0.2, 0.3)))
    return mech.with_elements(
        lw.forces.Actuator("wheel", ball, gear=(1.0, 2.0, 0.5), gain=(2.0, 0.3, 0.1), bias=(0.1, -0.4, -0.2)),
        lw.forces.Actuator("spin", ball, "jointinparent", gear=(0.3, -0.2, 1.0), gain=(1.0, 0.0, 0.2)),
        lw.forces.Actuator("jets", base, gear=(1.0, 0.5, -0.4, 0.2, 0.1, 0.3)),
        lw.forces.Actuator("thrust", "tip", "site", gear=(0.0, 0.0, 1.0, 0.1, 0.0, 0.2), bias=(0.3, 0.0, -0.5)),
        lw.forces.GravityCompensation(mech.link_names[-1], 0.4, (0.1, 0.0, 0.2)),
    )


def central(function, h: float = 1e-4):
    return (8.0 * (function(h) - function(-h)) - (function(2 * h) - function(-2 * h))) / (12.0 * h)


@pytest.mark.parametrize("make", [driven_arm, driven_tree])
def test_models_against_differences(make):
    mech, rng = make(), np.random.default_rng(3)
    n, m, w = mech.nv, mech.n_ctrl, mech.forces.n_activation
    q, v = lw.random_state(mech, rng)
    if make is driven_arm:
        q = np.array([0.4, 0.5, -0.6])  # beyond the limit and the rest of the tendon, away from kinks
    tau, u, x = rng.normal(size=n), 0.5 * rng.normal(size=m), 0.3 * rng.normal(size=w)
    model = lw.linearize(mech, q, v, tau, ctrl=u, activation=x if w else None)
    assert model.input_names == mech.forces.actuator_names and len(model.state_names) == 2 * n + w

    def rates(q=q, v=v, tau=tau, u=u, x=x):
        given = {"ctrl": u, "activation": x if w else None}
        return np.concatenate(
            [
                lw.forward_dynamics(mech, q, v, tau, **given, forces="all"),
                lw.forces.activation_rates(mech, q, v, **given),
            ]
        )

    scale = np.abs(model.A).max()

    def agrees(found, expected):
        np.testing.assert_allclose(found, expected, atol=1e-7 * scale)

    lower = np.r_[n : 2 * n + w]
    for k, e in enumerate(np.eye(n)):
        agrees(model.A[lower, k], central(lambda s, e=e: rates(q=lw.integrate(mech, q, e, s))))
        agrees(model.A[lower, n + k], central(lambda s, e=e: rates(v=v + s * e)))
    for k, e in enumerate(np.eye(w)):
        agrees(model.A[lower, 2 * n + k], central(lambda s, e=e: rates(x=x + s * e)))
    for k, e in enumerate(np.eye(m)):
        agrees(model.B[lower, k], central(lambda s, e=e: rates(u=u + s * e)))
    np.testing.assert_allclose(model.drift[lower], rates(), atol=1e-10 * max(1.0, np.abs(model.drift).max()))
    by_force = lw.linearize(mech, q, v, tau, ctrl=u, activation=x if w else None, inputs=mech.joint_names[1:2])
    at = range(n)[mech.v_index(mech.joint_names[1])]
    for column, k in enumerate(at):
        agrees(by_force.B[lower, column], central(lambda s, k=k: rates(tau=tau + s * np.eye(n)[k])))
    both = lw.linearize(mech, q, v, tau, ctrl=u, activation=x if w else None, inputs=(mech.joint_names[1], "ctrl")[:1])
    np.testing.assert_array_equal(both.B, by_force.B)


def test_models_of_loops():
    mech = lw.mechanisms.five_bar()
    first, second, *_ = mech.joint_names
    servo = lw.forces.Actuator(
        "servo", second, gain=(9.0,), bias=(0.0, -9.0, -1.0), dynamics="filter", time_constant=0.1
    )
    mech = mech.parameters.with_damping({first: 2.0}).with_elements(servo)
    q = lw.constraints.assemble(mech, [2.2, 1.8, 1.5, 1.9])
    model = lw.linearize(mech, q, ctrl=[0.4], activation=[0.1])
    size = 1e-4
    x = size * np.array([0.3, -0.2, 0.5, 0.4, 0.6])
    start, speed = model.joint_motion(x)
    start, speed = lw.constraints.project(mech, start, speed)
    step = 1e-3
    both = [
        lw.simulate(mech, *state, step, ctrl=[0.4], activation=w, settings=lw.motion.Settings(rtol=1e-12, atol=1e-13))
        for state, w in (((start, speed), [0.1 + x[4]]), ((q, np.zeros(4)), [0.1]))
    ]
    away, own = (np.concatenate([m.q[-1], m.v[-1], m.activation[-1]]) for m in both)
    found = model.state_at(away[:4], away[4:8]) - model.state_at(own[:4], own[4:8])
    found[-1] = away[-1] - own[-1]
    discrete = model.discretize(step)
    np.testing.assert_allclose(found, discrete.A @ x, atol=3e-3 * size)


def test_names_of_inputs_joints_and_actuators_together():
    mech = driven_arm()
    model = lw.linearize(mech, inputs=("joint1", "servo"))
    assert model.input_names == ("joint1", "servo") and model.B.shape == (8, 2)
    assert model.state_names[-2:] == ("slow.activation", "pull.activation")
    assert lw.linearize(mech, inputs="ctrl").input_names == mech.forces.actuator_names
    assert lw.linearize(mech).input_names == mech.joint_names
    assert len(model.modes().eigenvalues) and "slow.activation" in model.table()
    with pytest.raises(lw.MechanismError, match="ctrl must be 3 finite numbers, for the actuators servo, slow, pull"):
        lw.linearize(mech, ctrl=[1.0])
    with pytest.raises(lw.MechanismError, match="no actuator of mechanism .* acts"):
        lw.linearize(mech.with_acting(False), ctrl=[1.0])


def test_equilibria_under_control_inputs():
    """A servo holds against gravity where its force and the weight balance."""
    mech = lw.mechanisms.planar_arm(1)
    (joint,) = mech.joint_names
    mech = mech.with_elements(lw.forces.Actuator("servo", joint, gain=(50.0,), bias=(0.0, -50.0)))
    found = lw.find_equilibrium(mech, [0.3], ctrl=[0.5])
    (q,) = found.q
    np.testing.assert_allclose(50.0 * (0.5 - q), lw.gravity_force(mech, found.q), atol=1e-7)
    model = lw.linearize(mech, found.q, ctrl=[0.5])
    assert model.is_equilibrium
    below = lw.find_equilibrium(mech, [0.3], ctrl=[0.5], stable=True)
    assert below.stable
    np.testing.assert_allclose(below.q, found.q, atol=1e-8)


def test_of_several_equilibria_under_a_servo_the_stable_one():
    """A weak servo asks for the top: upright is an equilibrium, and falls over; a stable one is on either side."""
    mech = lw.mechanisms.planar_arm(1)
    (joint,) = mech.joint_names
    top = np.pi / 2
    weight = float(lw.gravity_force(mech, [0.0])[0])
    gain = 0.5 * weight
    mech = mech.with_elements(lw.forces.Actuator("servo", joint, gain=(gain,), bias=(0.0, -gain)))
    upright = lw.find_equilibrium(mech, [top], ctrl=[top])
    assert upright.stable is False and upright.distance < 1e-8
    fallen = lw.find_equilibrium(mech, [top], ctrl=[top], stable=True)
    # gain x = weight sin x, of which 0 is one solution
    x = abs(fallen.q[0] - top)
    assert fallen.stable and 1.0 < x < np.pi and gain * x == pytest.approx(weight * np.sin(x), rel=1e-9)
    assert fallen.distance == pytest.approx(x)


def test_one_sided_slopes_at_kinks():
    """Where a stop is just touched, a control input at its bound or a tendon at the end of its slack: slopes of the
    side on which nothing changes."""
    mech = lw.mechanisms.planar_arm(1)
    (joint,) = mech.joint_names
    stop = mech.with_limits({joint: lw.Limits(-1.0, 0.5, stiffness=100.0)})
    assert not lw.derivatives.joint_force_derivatives(stop, [0.5], [0.0]).by_q.any()
    assert lw.derivatives.joint_force_derivatives(stop, [0.5 + 1e-9], [0.0]).by_q[0, 0] == -100.0
    motor = mech.with_elements(lw.forces.Actuator("m", joint, ctrl_range=(-1.0, 1.0)))
    assert lw.derivatives.joint_force_derivatives(motor, [0.0], [0.0], ctrl=[1.0]).by_ctrl[0, 0] == 0.0
    assert lw.derivatives.joint_force_derivatives(motor, [0.0], [0.0], ctrl=[1.0 - 1e-9]).by_ctrl[0, 0] == 1.0
    slack = mech.with_elements(lw.forces.Tendon("t", ((joint, 1.0),), stiffness=7.0, rest=(-0.1, 0.1)))
    assert not lw.derivatives.joint_force_derivatives(slack, [0.1], [0.0]).by_q.any()
    assert lw.derivatives.joint_force_derivatives(slack, [0.1 + 1e-9], [0.0]).by_q[0, 0] == -7.0
