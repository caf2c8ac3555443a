"""Damping, dry friction, stops and servos that are stiff for the steps that are taken: implicit steps against closed
forms and dense matrices, explicit ones with laws that they can follow, and a warning where there are none."""

from __future__ import annotations

import math
import warnings
from contextlib import nullcontext

import numpy as np
import pytest

import linkwise as lw


def slider(mass: float = 2.0, **joint) -> lw.Mechanism:
    """A mass that slides along x, without gravity."""
    builder = lw.Builder().link("mass", mass).joint("slide", lw.Prismatic((1, 0, 0)), "ground", "mass", **joint)
    return builder.build("slider", (0, 0, 0))


def test_what_starts_beyond_limits_comes_back_as_fast_in_long_steps():
    """As the ankles of gymnasium's ant, which its file puts 0.5 rad beyond them, in steps of 10 ms."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.files.OmissionWarning)
        mech = lw.load("""<mujoco><option gravity="0 0 0"/><worldbody><body>
          <joint name="ankle" axis="0 1 0" range="30 70"/>
          <geom type="capsule" size="0.08" fromto="0 0 0 0.4 0 0"/></body></worldbody></mujoco>""")
    dt = np.array([1e-4, 1e-3, 1e-2])
    paths = [lw.rollout(mech, None, None, None, h, round(0.08 / h), "semi_implicit")[0][:, 0] for h in dt]
    sampled = np.array([path[:: round(0.01 / h)] for path, h in zip(paths, dt, strict=True)])
    assert sampled[0, -1] > 0.4
    np.testing.assert_allclose(sampled[1], sampled[0], atol=0.01)
    np.testing.assert_allclose(sampled[2], sampled[0], atol=0.06)


def test_semi_implicit_steps_solve_for_forces_of_joints_at_their_end():
    """(M + h B) a = tau - bias + f with B = diag(damping, secants of friction, gains of servos; at least what couples
    the joints of a tendon): assembled densely."""
    mech = lw.mechanisms.planar_arm(4)
    a, b, c, d = mech.joint_names
    mech = mech.parameters.with_damping({a: 40.0}).with_elements(
        lw.forces.Tendon("brake", ((b, 1.0),), friction=3.0),
        lw.forces.Actuator("servo", c, gear=(2.0,), gain=(9.0,), bias=(0.0, -9.0, -5.0), force_range=(-20.0, 20.0)),
        lw.forces.Actuator("cut off", d, gain=(1.0,), bias=(0.0, 0.0, -50.0), force_range=(-1.0, 1.0)),
        lw.forces.Tendon("belt", ((a, 1.0), (d, -0.5)), damping=8.0),
    )
    rng, h = np.random.default_rng(0), 2e-3
    q, v = (0.3 * x for x in lw.random_state(mech, rng))
    ctrl, belt = np.array([0.3, -0.2]), np.array([1.0, 0.0, 0.0, -0.5])
    secant = 3.0 / math.hypot(v[1], 0.01)
    servo = 9.0 * (ctrl[0] - 2.0 * q[2]) - 5.0 * 2.0 * v[2]
    cut_off = np.clip(ctrl[1] - 50.0 * v[3], -1.0, 1.0)
    assert abs(servo) < 20.0 and abs(cut_off) == 1.0
    forces = np.array([-40.0 * v[0], -secant * v[1], 2.0 * servo, cut_off]) - 8.0 * belt * (belt @ v)
    resistances = [40.0 + 8.0 * 1.5, secant, 4.0 * 5.0, 8.0 * 0.5 * 1.5]
    matrix = lw.mass_matrix(mech, q) + h * np.diag(resistances)
    expected = v + h * np.linalg.solve(matrix, forces - lw.bias_force(mech, q, v))
    _, found = lw.rollout(mech, q, v, None, h, 1, "semi_implicit", ctrl=ctrl, final_only=True)
    np.testing.assert_allclose(found, expected, atol=1e-11)
    _, back = lw.rollout(mech, q, v, None, -h, 1, "semi_implicit", ctrl=ctrl, final_only=True)
    explicit = np.linalg.solve(lw.mass_matrix(mech, q), forces - lw.bias_force(mech, q, v))
    np.testing.assert_allclose(back, v - h * explicit, atol=1e-11)  # back in time there is nothing to resist


def test_damping_of_any_size_is_stable_and_of_first_order_in_semi_implicit_steps():
    errors = []
    for h in (1e-3, 5e-4):
        _, v = lw.rollout(slider(damping=4.0), None, [1.0], None, h, round(0.5 / h), "semi_implicit", final_only=True)
        errors.append(v[0] - math.exp(-1.0))
    assert 0.0 < errors[1] < errors[0] < 1e-3 and errors[0] / errors[1] == pytest.approx(2.0, abs=0.01)
    _, v = lw.rollout(slider(damping=1e6), None, [1.0], [3.0], 0.01, 50, "semi_implicit")
    np.testing.assert_allclose(v[-1], 3.0 / 1e6)
    assert (np.diff(v[:, 0]) <= 0.0).all()


@pytest.mark.parametrize("method", ["semi_implicit", "rk4"])
def test_dry_friction_comes_to_rest_without_chatter(method):
    """A mass that friction stops within a step neither turns back nor goes on: it creeps at the speed at which friction
    balances the load.  Explicit steps of h follow a friction of up to 4/3 m / h per speed, rounded down to m over the
    usual step of 1 ms times a power of the root of two, here 2.5, and say that it should be steeper."""
    mech = slider(0.02, friction=1.0)
    told = pytest.warns(lw.MechanismWarning, match="'slide' .* moved too easily") if method == "rk4" else nullcontext()
    with told:
        _, v = lw.rollout(mech, None, [3.0], [0.6], 0.01, 1000, method)
    assert v.min() > 0.0 and (np.diff(v[:, 0]) < 1e-9).all()
    creeping = 0.6 / 2.5 if method == "rk4" else 0.01 * 0.6 / math.sqrt(1.0 - 0.6**2)
    assert v[-1, 0] == pytest.approx(creeping, rel=1e-3)


WRIST = """<robot name="wrist"><link name="base"/><link name="hand"><inertial><mass value="1.3"/>
    <inertia ixx="0.006" iyy="0.006" izz="0.006" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="turn" type="revolute"><parent link="base"/><child link="hand"/><axis xyz="0 0 1"/>
    <limit lower="-3" upper="3" effort="12" velocity="3"/><dynamics friction="0.3"/></joint></robot>"""


def test_a_controller_against_dry_friction_of_a_file():
    """Sliding at a tenth of a radian per second friction is that of the law in steps of 1 ms; held by it, a joint that
    creeps faster than it should is told of, and of what follows it."""
    wrist = lw.load(WRIST)
    control = lw.control.computed_torque(
        wrist, lambda t: (np.array([0.1 * t]), np.array([0.1]), np.zeros(1)), kp=200.0, kd=28.0
    )
    exact = lw.simulate(wrist, [0.0], None, 2.0, control=control, settings=lw.motion.Settings(tolerance=1e-9)).q[-1]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for method, dt in (("semi_implicit", 1e-3), ("rk4", 2e-4)):
            q, _ = lw.rollout(wrist, [0.0], None, None, dt, round(2.0 / dt), method, feedback=control)
            np.testing.assert_allclose(q[-1], exact, rtol=0.002)
        q, v = lw.rollout(wrist, [0.0], [5.0], [0.29], 1e-3, 60)  # slower, down to 2.3 rad/s: the law itself
        a = (0.29 - 0.3 * v / np.hypot(v, 0.01)) / 0.006
        np.testing.assert_allclose(np.diff(v, axis=0), 0.5e-3 * (a[1:] + a[:-1]), rtol=1e-6)
    with pytest.warns(
        lw.MechanismWarning, match=r"friction of joint 'turn' .* 'rk4' of 0.001 s .*'rk4' in steps of 0.0001 s"
    ):
        lw.rollout(wrist, [0.0], None, None, 1e-3, 2000, feedback=control)


def test_stops_hold_under_full_effort_and_at_usual_speeds():
    """Where nothing is said of its numbers, at steps up to 5 ms: pressed with the full effort of the joint it gives way
    by 0.01 rad at most; run into at some rad/s it holds within about as much, and returns less."""
    builder = lw.Builder().link("wrist", 0.1, inertia=(0.01, 0.01, 0.01))
    limits = lw.Limits(-1.0, 1.0, effort=30.0)
    builder.joint("turn", lw.Revolute((0, 0, 1)), "ground", "wrist", limits=limits)
    mech = builder.build("wrist", (0, 0, 0))
    for method, h in (("semi_implicit", 1e-3), ("semi_implicit", 5e-3), ("rk4", 5e-4)):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            pressed, at_rest = lw.rollout(mech, None, None, [30.0], h, round(1.0 / h), method)
            hit, after = lw.rollout(mech, None, [5.0], None, h, round(0.5 / h), method)
        assert 1.005 < pressed[-1, 0] < 1.0101 and abs(at_rest[-1, 0]) < 1e-3
        assert 1.0 < hit.max() < 1.011 and -5.0 < after.min() < 0.0
    # explicit steps that are longer find a softer stop, and are stable too
    pressed, at_rest = lw.rollout(mech, None, None, [30.0], 4e-3, 500)
    assert 1.0 < pressed[-1, 0] < 5.0 and abs(at_rest[-1, 0]) < 1e-3


def test_all_methods_bounce_from_a_stop_as_an_accurate_integration_does():
    mech = slider(limits=lw.Limits(-1.0, 0.1))
    exact = lw.simulate(mech, None, [1.0], 0.3, settings=lw.motion.Settings(rtol=1e-10, atol=1e-12), step=1e-3)
    assert np.diff(exact.energy).max() < 1e-9
    for method, errors in (("rk4", (0.07, 1e-5)), ("semi_implicit", (0.15, 0.016))):
        for h, error in zip((1e-3, 1e-4), errors, strict=True):  # 1 ms is half the time constant of the stop
            q, v = lw.rollout(mech, None, [1.0], None, h, round(0.3 / h), method)
            assert v[-1, 0] == pytest.approx(exact.v[-1, 0], abs=error)
            assert q.max() == pytest.approx(exact.q.max(), abs=5e-4)
            assert -1.0 < v[-1, 0] < 0.0


def test_stops_give_no_energy_to_what_hits_them_in_semi_implicit_steps():
    """M (v' - v) = h (f - bias): f gives at most what the kinetic energy grows by, less the work of the bias at v'.
    Arms within their limits, each joint at up to some ten rad/s, in steps up to ten times as long as the time constant
    of stops; joints that stops slow down the most end at their bounds."""
    mech = lw.mechanisms.planar_arm(4).with_gravity((0, 0, 0))
    mech = mech.with_limits(dict.fromkeys(mech.joint_names, lw.Limits(-1.0, 1.0)))
    rng = np.random.default_rng(0)
    q, v = rng.uniform(-1.0, 1.0, (2000, 4)), rng.normal(scale=30.0, size=(2000, 4))
    for h in (1e-3, 1e-2, 2e-2):
        after, found = lw.rollout(mech, q, v, None, h, 1, "semi_implicit", final_only=True)
        before = lw.kinetic_energy(mech, q, v)
        given = lw.kinetic_energy(mech, q, found) - before + h * np.sum(found * lw.bias_force(mech, q, v), axis=-1)
        assert (given <= 1e-9 * before).all() and (given < -1e-6 * before).mean() > 0.05
    slow = slider(limits=lw.Limits(-1.0, 1.0))
    after, _ = lw.rollout(slow, [0.9], [20.0], None, 1e-2, 1, "semi_implicit", final_only=True)
    assert after[0] == pytest.approx(1.0, abs=0.01)


def test_steps_that_are_too_long_for_dampers_and_servos_are_warned_of():
    damped = slider(damping=4000.0)  # a rate of 2000 per second, of which RK4 follows 2.785 per step
    with pytest.warns(lw.MechanismWarning, match=r"0.0015 s are too long for damping.*'rk4': take steps of 0.001 s"):
        lw.rollout(damped, None, [1.0], None, 1.5e-3, 1)
    servo = slider().with_elements(lw.forces.Actuator("servo", "slide", gain=(8e6,), bias=(0.0, -8e6, 0.0)))
    with pytest.warns(lw.MechanismWarning, match=r"too long for springs or servos.*'semi_implicit': take steps of"):
        lw.rollout(servo, None, [1.0], None, 1.5e-3, 1, "semi_implicit")  # 2000 rad/s, of which it follows 2 per step
    with pytest.warns(lw.MechanismWarning, match="too long for damping"):
        lw.simulate(damped, None, [1.0], 0.01, method="rk4", step=2e-3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lw.rollout(damped, None, [1.0], None, 1.3e-3, 1)
        lw.rollout(damped, None, [1.0], None, 0.1, 1, "semi_implicit")
        lw.rollout(servo, None, [1.0], None, 0.9e-3, 1, "semi_implicit")
        lw.simulate(damped, None, [1.0], 0.01)


def test_stops_hold_what_motors_press_against_them():
    """Of files that give motors and no effort limits."""
    mech = slider(0.01, limits=lw.Limits(-1.0, 0.1))
    driven = mech.with_elements(lw.forces.Actuator("motor", "slide", gear=(5.0,), ctrl_range=(-2.0, 1.0)))
    for one, deepest in ((mech, 0.01), (driven, 0.001)):
        q, _ = lw.rollout(one, None, None, [10.0], 1e-3, 1000, "semi_implicit", final_only=True)
        assert 0.1 * deepest < q[0] - 0.1 < deepest


def test_stops_of_semi_implicit_steps_in_single_precision():
    """Motion and gradients are those of double precision: at rest, at a bound, beyond it, before it, and all but still
    at a bound of zero."""
    mech = slider(limits=lw.Limits(0.0, 1.5))
    q0, v0 = np.array([[0.3, 0.0], [1.5, 0.0], [1.5001, 0.0], [1.499, 2.0], [0.0, -1e-30], [1e-30, 0.0]]).T[..., None]
    motion, gradient = [], []
    for kind in (np.float64, np.float32):
        q, v = lw.rollout(mech, q0.astype(kind), v0.astype(kind), None, kind(0.01), 5, "semi_implicit")
        one = np.ones(1, kind)
        found = lw.derivatives.rollout_vjp(
            mech, q, v, None, kind(0.01), 5, (one, one), "semi_implicit", wrt=("q0", "v0", "tau")
        )
        motion.append(np.concatenate([q, v], axis=1))
        gradient.append(np.concatenate([found["q0"], found["v0"], found["tau"][..., 0]], axis=1))
    assert motion[1].dtype == gradient[1].dtype == np.float32
    np.testing.assert_allclose(motion[1], motion[0], atol=1e-5)
    np.testing.assert_allclose(gradient[1], gradient[0], rtol=2e-3, atol=1e-3)
