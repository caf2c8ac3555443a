"""Control and planning of mechanisms with constraints: computed torque, time-optimal motions."""

import numpy as np
import pytest

import linkwise as lw
from linkwise.constraints.force_units import velocity_units

from .mechanisms import NAMES, case
from .oracle import Terms, inverse_dynamics
from .product import Quantity, cells, check

MOVING = tuple(name for name in NAMES if name not in ("floating", "masked feet"))  # all joints have motors below


def _motors(case):
    return {} if case.tree else {"actuated": np.ones(case.mech.nv, dtype=bool)}


def _wanted(terms):
    """The allowed acceleration that is nearest, as kinetic energy measures it, to kp e + kd de/dt for e at rest."""
    error = np.linspace(-0.1, 0.1, terms.mech.nv)
    return terms.offset + terms.response @ terms.mass @ (100.0 * error - 20.0 * terms.v - terms.offset)


def _led_back(case):
    """Accelerations, by the dense equations, under the forces of the controller."""
    error = np.linspace(-0.1, 0.1, case.mech.nv)
    control = lw.control.computed_torque(case.mech, lw.integrate(case.mech, case.q, error, 1.0), **_motors(case))
    return Terms(case).accelerations(control(0.0, case.q, case.v))


def _gravity_held(case):
    """By a controller without gains."""
    control = lw.control.joint_feedback(case.mech, case.q, actuated=np.ones(case.mech.nv, dtype=bool))
    return control(0.0, case.q, np.zeros(case.mech.nv))


def _least_that_hold(terms):
    """tau with K* tau = K* load at rest, and the least sum of squares, a force counting as a torque."""
    load = inverse_dynamics(terms.mech, terms.q, np.zeros(terms.mech.nv), np.zeros(terms.mech.nv))
    units = velocity_units(terms.mech) if terms.mech.loops else np.ones(terms.mech.nv)
    leverage = terms.basis / units[:, None] ** 2
    return leverage @ np.linalg.solve(terms.basis.T @ leverage, terms.basis.T @ load)


def _symplectic(method):
    return lambda c: lw.simulate(
        c.mech, c.q, c.v, 0.1, method=method, step=0.01, settings=lw.motion.Settings(coordinates="momentum")
    ).q[-1]


def _fastest(case):
    way = lw.trajectories.line(case.mech, case.q, lw.integrate(case.mech, case.q, case.v, 1e-3))
    return lw.trajectories.time_optimal(way, effort=1e4, actuated=np.ones(case.mech.nv, dtype=bool)).duration


#: Those of the last three have no value under the constraints of their cases, by a law of the table.
QUANTITIES = [
    Quantity("computed_torque", _led_back, _wanted, 1e-7, MOVING),
    Quantity("gravity_held", _gravity_held, _least_that_hold, 1e-7, [n for n in NAMES if n != "masked feet"]),
    Quantity("symplectic_methods", _symplectic("stormer_verlet"), lambda t: None, cases=("rolling", "driven")),
    Quantity("canonical_momenta", _symplectic("symplectic_euler"), lambda t: None, cases=("rolling", "driven")),
    Quantity("time_optimal", _fastest, lambda t: None, cases=("driven",)),
]


@cells(QUANTITIES)
def test_product(quantity, case_name):
    check(quantity, case(case_name))


def test_motors_alone_push():
    mech = lw.mechanisms.five_bar()
    this = case("driven")
    control = lw.control.computed_torque(mech, this.q, actuated=mech.joint_names[:2])
    q = lw.constraints.assemble(mech, this.q + 0.05)
    tau = control(0.0, q, np.zeros(mech.nv))
    assert (tau[2:] == 0.0).all()
    K = lw.constraints.null_space(mech, q)
    wanted = 100.0 * lw.difference(mech, q, this.q)
    a = lw.forward_dynamics(mech, q, np.zeros(mech.nv), tau)
    np.testing.assert_allclose(K.T @ lw.mass_matrix(mech, q) @ (a - wanted), 0.0, atol=1e-8)
    path = lw.rollout(mech, q, np.zeros(mech.nv), None, 1e-3, 1500, feedback=control)
    np.testing.assert_allclose(path[0][-1], this.q, atol=1e-4)
    with pytest.raises(lw.MechanismError, match="2 degrees of freedom, and it has 1 motors"):
        lw.control.computed_torque(mech, this.q, actuated=mech.joint_names[:1])


@pytest.mark.parametrize("mech", [lw.mechanisms.four_bar(), lw.mechanisms.loader()], ids=lambda m: m.name)
def test_gravity_is_held_inside_rollouts(mech):
    """Compiled into steps, and asked in each step, where motors are fewer than joints."""
    q = lw.constraints.assemble(mech, mech.initial)
    control = lw.control.joint_feedback(mech, q, kp=20.0)  # damping would be implicit inside steps
    start = lw.constraints.assemble(mech, lw.integrate(mech, q, 0.05 * np.ones(mech.nv), 1.0))
    inside, _ = lw.rollout(mech, start, None, None, 1e-3, 20, "semi_implicit", feedback=control)
    state = start, np.zeros(mech.nv)
    for _ in range(20):
        state = lw.rollout(mech, *state, control(0.0, *state), 1e-3, 1, "semi_implicit", final_only=True)
        state = tuple(x[..., -1, :] if x.ndim > 1 else x for x in state)
    np.testing.assert_allclose(inside[-1], state[0], atol=1e-7)
    still, _ = lw.rollout(mech, q, None, None, 1e-3, 20, feedback=control)
    np.testing.assert_allclose(still[-1], q, atol=1e-8)


def _crank_path(mech, angles, count=60):
    crank = mech.joint_names[0]
    q, start = [], lw.constraints.assemble(mech, {crank: angles[0]})
    for angle in np.linspace(*angles, count):
        guess = start.copy()
        guess[mech.q_index(crank)] = angle
        start = lw.constraints.assemble(mech, guess, [crank])
        q.append(start)
    return lw.trajectories.spline(mech, np.array(q))


def test_fastest_motion_of_a_four_bar():
    """One degree of freedom: the motor is at its limit all the time, but where joint speeds are."""
    mech = lw.mechanisms.four_bar().with_gravity((0, -9.81, 0))
    path = _crank_path(mech, (0.6, 1.8))
    crank = mech.joint_names[0]
    motion = lw.trajectories.time_optimal(path, effort={crank: 60.0}, velocity=np.inf, actuated=[crank])
    t, q, v, a = motion.sample(301)
    tau = lw.inverse_dynamics(mech, q, None, None, actuated=[crank])
    jacobian, K = lw.constraints.constraint_jacobian(mech, q), lw.constraints.null_space(mech, q)
    assert np.abs(jacobian @ v[..., None]).max() < 1e-2
    load = lw.inverse_dynamics(mech.spanning_tree, q, v, a)
    motor = (np.swapaxes(K, -1, -2) @ load[..., None])[..., 0, 0] / K[:, 0, 0]
    inside = slice(5, -5)
    assert np.abs(motor).max() < 60.0 * 1.02
    assert np.mean(np.abs(motor[inside]) > 60.0 * 0.97) > 0.95
    assert np.isfinite(tau).all()
    slower = lw.trajectories.time_optimal(path, effort={crank: 50.0}, velocity=np.inf, actuated=[crank])
    assert slower.duration > motion.duration


def test_what_has_no_fastest_motion():
    this = case("driven")
    straight = lw.trajectories.line(this.mech, this.q, this.q + 0.01)
    with pytest.raises(lw.MechanismError, match="prescribes when"):
        lw.trajectories.time_optimal(straight, effort=1.0)
    mech = lw.mechanisms.five_bar()
    with pytest.raises(lw.MechanismError, match="leaves the constraints"):
        lw.trajectories.time_optimal(lw.trajectories.line(mech, this.q, this.q + 0.3), effort=1.0)
