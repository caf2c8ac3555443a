"""Friction that holds in simulations, and what is said where a method cannot follow it."""

from __future__ import annotations

import dataclasses
import math
import warnings

import numpy as np
import pytest

import linkwise as lw

SLOPE, FRICTION = 0.2, 0.5


@pytest.fixture(scope="module")
def puck() -> lw.Mechanism:
    """2 kg on a slope, along which it moves without rotating, pressed in by its weight."""
    builder = lw.Builder().link("carriage").link("puck", 2.0)
    builder.joint("z", lw.Prismatic((0, 0, 1)), "ground", "carriage")
    builder.joint("x", lw.Prismatic((1, 0, 0)), "carriage", "puck").shape("skin", "puck", "sphere", 0.1)
    return builder.build("puck", (9.81 * math.sin(SLOPE), 0.0, -9.81 * math.cos(SLOPE))).with_ground(friction=FRICTION)


def slip(puck: lw.Mechanism, damping: float) -> float:
    """The speed at which mu f w / sqrt(w^2 + s^2 + (mu f / c)^2) holds the weight along the slope."""
    law, most = puck.contact_pairs[0].law, FRICTION * 2.0 * 9.81 * math.cos(SLOPE)
    used = math.tan(SLOPE) / FRICTION
    return used / math.sqrt(1.0 - used**2) * math.hypot(law.slip_speed, most / damping)


def resting(puck: lw.Mechanism) -> list[float]:
    law = puck.contact_pairs[0].law
    return [0.1 - 2.0 * 9.81 * math.cos(SLOPE) / law.stiffness - 0.5 * law.smoothing, 0.0]


@pytest.mark.parametrize("method", [None, "lsoda", "bdf", "semi_implicit"])
def test_what_is_inside_the_cone_is_held_to_the_slip_speed(puck, method):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        motion = lw.simulate(puck, resting(puck), None, 0.5, method=method)
    assert motion.settings.method == (method or "radau")
    assert slip(puck, math.inf) < 1e-3
    assert motion.v[-1, 1] == pytest.approx(slip(puck, math.inf), rel=1e-3)
    if method == "semi_implicit":
        return  # its accelerations are those of forces at the start of steps
    np.testing.assert_allclose(motion.a[-1], 0.0, atol=1e-3)
    # What the joints transmit is the weight: contact is among what acted, as it acted.
    wrench = motion.joint_wrenches[-1, 0]
    np.testing.assert_allclose(wrench[3:], 0.0, atol=0.01)


@pytest.mark.parametrize("method", ["dop853", "rk4"])
def test_explicit_methods_say_what_slips_and_how_fast(puck, method):
    """With a bound as that of a light foot that a heavy robot presses down."""
    puck = puck.with_contact(damping=100.0)
    expected = slip(puck, 100.0)
    with pytest.warns(
        lw.MechanismWarning, match=rf"'skin/floor'.*slipped by .* m/s.*inside its cone.*{method}.*semi_implicit.*radau"
    ):
        motion = lw.simulate(puck, resting(puck), None, 0.5, method=method)
    assert motion.v[-1, 1] == pytest.approx(expected, rel=1e-3) and expected > 0.04
    with warnings.catch_warnings():  # beyond the cone it slides, whatever the method
        warnings.simplefilter("error")
        slippery = puck.with_contact(friction=0.1)
        lw.simulate(slippery, resting(puck), [0.0, 0.5], 0.2, method=method)
        lw.simulate(slippery.with_acting(contact=False), resting(puck), None, 0.01, method=method)


def test_explicit_rollouts_say_what_slips(puck):
    """Each that is long enough to tell creep from a transient, whatever was called before."""
    puck = puck.with_contact(damping=100.0)
    q = np.tile(resting(puck), (3, 1))
    for _ in range(2):
        with pytest.warns(lw.MechanismWarning) as warned:
            _, v = lw.rollout(puck, q, None, None, 1e-3, 500, "rk4", final_only=True)
        assert v[:, 1] == pytest.approx(slip(puck, 100.0), rel=1e-3)
        (message,) = (str(one.message) for one in warned)
        assert "'skin/floor'" in message and "'rk4' takes contact explicitly" in message and "semi_implicit" in message
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lw.rollout(puck, q, None, None, 1e-3, 5, "rk4")
        lw.rollout(puck.with_contact(friction=0.1), q, [0.0, 0.5], None, 1e-3, 500, "rk4")  # beyond the cone it slides
        lw.rollout(puck, resting(puck), None, None, 1e-3, 500, "semi_implicit")


def test_forces_on_what_rests_on_a_slope_balance_its_weight(puck):
    weight = 2.0 * np.array(puck.gravity)
    q, v = lw.rollout(puck, resting(puck), None, None, 1e-3, 2000, "semi_implicit", final_only=True)
    np.testing.assert_allclose(lw.contact.contact_points(puck, q, v).force, [-weight], rtol=1e-4, atol=1e-9)
    np.testing.assert_allclose(lw.forward_dynamics(puck, q, v, forces="all"), 0.0, atol=1e-3)
    np.testing.assert_allclose(lw.contact.contact_wrenches(puck, q, v)[1, 3:], -weight, rtol=1e-4, atol=1e-9)
    with pytest.warns(lw.MechanismWarning, match="slipped"):
        bounded = puck.with_contact(damping=100.0)
        q, v = lw.rollout(bounded, resting(puck), None, None, 1e-3, 500, "rk4", final_only=True)
    np.testing.assert_allclose(
        lw.contact.contact_points(bounded, q, v, explicit=True).force, [-weight], rtol=1e-3, atol=1e-9
    )


def test_methods_without_friction_are_as_ever(puck):
    assert lw.simulate(puck.with_contact(friction=0.0), resting(puck), None, 0.01).settings.method == "dop853"
    assert lw.simulate(puck.with_acting(contact=False), resting(puck), None, 0.01).settings.method == "dop853"
    motion = lw.simulate(puck, resting(puck), None, 0.01)
    assert motion.resume(0.01).settings.method == "radau"


@pytest.mark.slow
def test_a_robot_that_stands_stands_in_simulations_as_in_implicit_rollouts():
    """Feet that are spread push outwards: bounded friction lets them slide away."""
    robot = lw.mechanisms.quadruped(held=())
    for leg in ("front_left", "front_right", "rear_left", "rear_right"):
        robot = robot.with_shape(f"{leg}_foot", f"{leg}_toe", "sphere", 0.02)
    robot = robot.with_ground(-0.02, friction=0.8)
    legs = robot.joint_names[1:]
    hold = lw.control.joint_feedback(
        robot, lw.neutral(robot), kp=dict.fromkeys(legs, 150.0), kd=dict.fromkeys(legs, 4.0), gravity=False
    )
    rolled, _ = lw.rollout(robot, None, None, None, 1e-3, 1000, "semi_implicit", feedback=hold)
    motion = lw.simulate(robot, None, None, 1.0, control=hold, settings=lw.motion.Settings(rtol=1e-6, atol=1e-6))
    ends = [lw.frame_pose(robot, q, "front_left_toe")[:2, 3] for q in (rolled[0], rolled[-1], motion.q[-1])]
    assert np.linalg.norm(ends[2] - ends[0]) < 2e-3
    np.testing.assert_allclose(ends[2], ends[1], atol=1e-4)


@pytest.mark.parametrize("shape", [(), (3, 1)])
def test_motions_that_are_no_numbers_warn_of_nothing_that_nobody_called(puck, shape):
    tau = np.zeros((*shape, 2))
    tau[..., 0] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for mech in (puck, dataclasses.replace(puck, bodies=tuple(_with_dry_friction(puck)))):
            for method in ("rk4", "semi_implicit"):
                q, _ = lw.rollout(mech, resting(puck), None, tau, 1e-3, 3, method)
                assert np.isnan(q[..., -1, :]).any()


def _with_dry_friction(mech: lw.Mechanism):
    return (dataclasses.replace(body, friction=(0.1,)) for body in mech.bodies)
