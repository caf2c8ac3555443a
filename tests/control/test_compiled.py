"""Controllers that are compiled: what they make of a mechanism by forward dynamics, in simulations and in rollouts."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from scipy.linalg import solve_continuous_are

import linkwise as lw
from linkwise import trajectories as tr

KINDS = ("revolute", "prismatic", "spherical", "universal", "helical", "cylindrical", "planar")


@pytest.fixture(scope="module")
def puma() -> lw.Mechanism:
    return lw.mechanisms.puma560()


@pytest.fixture(scope="module")
def motion(puma) -> tr.Motion:
    return tr.point_to_point(puma, np.zeros(6), [1.0, -0.5, 0.3, 0.2, 0.4, 0.1], 0.4)


# -- joint feedback -------------------------------------------------------------------------------------------


def test_joint_feedback_inside_rollouts(puma):
    start = np.full(6, 0.1)
    control = lw.control.joint_feedback(puma, {"joint2": -0.4}, kp=400.0, kd=40.0)
    run = lw.simulate(puma, start, np.zeros(6), 0.1, control=control, method="rk4", step=1e-3)
    q, v = lw.rollout(puma, np.stack([start, 2 * start]), None, None, 1e-3, 100, feedback=control)
    np.testing.assert_allclose(q[0], run.q, atol=1e-12)
    by_hand = 400.0 * (control.target - q[1, 7]) - 40.0 * v[1, 7] + lw.gravity_force(puma, q[1, 7])
    np.testing.assert_allclose(control(0.0, q[1, 7], v[1, 7]), by_hand, atol=1e-10)
    bounded = lw.control.saturated(puma, control, 50.0)
    run = lw.simulate(puma, start, np.zeros(6), 0.05, control=bounded, method="rk4", step=1e-3)
    q, _ = lw.rollout(puma, start, None, None, 1e-3, 50, feedback=bounded)
    np.testing.assert_allclose(q, run.q, atol=1e-12)


def test_stiff_damping_of_joint_feedback_is_implicit(puma):
    """kd dt is a hundred times the inertia of the wrist; steps far shorter lead to the same end."""
    bounds = {**dict.fromkeys(puma.joint_names[:3], 500.0), **dict.fromkeys(puma.joint_names[3:], 50.0)}
    control = lw.control.joint_feedback(puma, np.full(6, 0.3), kp=200.0, kd=30.0)
    for one in (control, lw.control.saturated(puma, control, bounds)):
        q, v = lw.rollout(puma, None, None, None, 2e-3, 500, "semi_implicit", feedback=one)
        finer, _ = lw.rollout(puma, None, None, None, 1e-4, 10_000, "semi_implicit", feedback=one, every=20)
        assert np.abs(v[-1]).max() < 1.0
        np.testing.assert_allclose(q, finer, atol=0.01)


def test_joint_feedback_of_a_floating_base_leaves_the_base_alone():
    mech = lw.mechanisms.random_tree(4, 3, ("revolute", "spherical"), floating_base=True)
    q, v = lw.random_state(mech, np.random.default_rng(0), (5,))
    control = lw.control.joint_feedback(mech, mech.initial, kp=3.0, kd=0.5)
    tau = control(0.0, q, v)
    expected = 3.0 * lw.difference(mech, q, mech.initial) - 0.5 * v + lw.gravity_force(mech, q)
    np.testing.assert_allclose(tau[:, 6:], expected[:, 6:], atol=1e-10)
    assert not tau[:, :6].any()


def test_controllers_keep_single_precision(puma, motion):
    start = np.full((2, 6), 0.1, np.float32)
    for control in (
        lw.control.joint_feedback(puma, np.zeros(6), kp=400.0, kd=40.0),
        lw.control.computed_torque(puma, motion),
    ):
        q, _ = lw.rollout(puma, start, None, None, 1e-3, 20, feedback=control)
        assert q.dtype == np.float32
        double, _ = lw.rollout(puma, start.astype(float), None, None, 1e-3, 20, feedback=control)
        assert double.dtype == np.float64
        np.testing.assert_allclose(q, double, atol=1e-4)


# -- computed torque ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.slow)])
def test_computed_torque_makes_accelerations_what_they_should_be(seed):
    mech = lw.mechanisms.random_tree(5, seed, KINDS)
    rng = np.random.default_rng(seed)
    (q, v), (wanted, rates) = lw.random_state(mech, rng, (6,)), lw.random_state(mech, rng)
    kp, kd, accelerations = rng.uniform(1.0, 2.0, (2, mech.nv)).tolist() + [rng.normal(size=mech.nv)]
    control = lw.control.computed_torque(mech, lambda t: (wanted, rates, accelerations), kp, kd)
    found = lw.forward_dynamics(mech, q, v, control(0.0, q, v))
    np.testing.assert_allclose(found, accelerations + kd * (rates - v) + kp * lw.difference(mech, q, wanted), atol=1e-8)


def test_errors_decay_as_planned_in_simulations_and_rollouts(puma, motion):
    control = lw.control.computed_torque(puma, motion, kp=100.0, kd=20.0)
    start = np.full(6, 0.1)
    run = lw.simulate(puma, start, np.zeros(6), 0.3, control=control, method="rk4", step=1e-3)
    expected = 0.1 * (1.0 + 10.0 * run.t) * np.exp(-10.0 * run.t)
    np.testing.assert_allclose(run.q - motion(run.t)[0], np.tile(expected[:, None], 6), atol=1e-9)
    q, _ = lw.rollout(puma, start, None, None, 1e-3, 300, feedback=control)
    np.testing.assert_allclose(q[-1], run.q[-1], atol=1e-5)  # references are held during steps
    still = lw.control.computed_torque(puma, {"joint2": -0.4}, kp=100.0, kd=20.0)
    held = lw.control.saturated(puma, still, 40.0)
    q, _ = lw.rollout(puma, start, None, None, 1e-3, 50, feedback=held)
    again = lw.simulate(puma, start, np.zeros(6), 0.05, control=held, method="rk4", step=1e-3)
    np.testing.assert_allclose(q[-1], again.q[-1], atol=1e-12)
    np.testing.assert_allclose(held(0.0, start, np.zeros(6)), np.clip(still(0.0, start, np.zeros(6)), -40.0, 40.0))


def test_controllers_compute_with_their_own_model_in_rollouts_too():
    """Of an arm that carries more than its controllers know of, ``simulate`` being what rollouts are compared with."""
    arm = lw.mechanisms.planar_arm(3).with_gravity((0.0, -9.81, 0.0))
    loaded = arm.with_payload("tip", 0.5, (0.0, 0.0, 0.05))
    start = np.array([0.3, 0.2, -0.4])
    controls = (
        lw.control.saturated(arm, lw.control.computed_torque(arm, start), 1e3),
        lw.control.operational_space_control(arm, "tip", np.array([1.5, 1.0, 0.0])),
        lw.control.decoupled_tracking(arm, start),
    )
    for control in controls:
        q, _ = lw.rollout(loaded, start, None, None, 2e-3, 50, feedback=control)
        run = lw.simulate(loaded, start, np.zeros(3), 0.1, control=control, method="rk4", step=2e-3)
        same = lw.simulate(arm, start, np.zeros(3), 0.1, control=control, method="rk4", step=2e-3)
        np.testing.assert_allclose(q[-1], run.q[-1], atol=1e-12)
        assert np.abs(run.q[-1] - same.q[-1]).max() > 1e-3
    body = loaded.bodies[-1]  # the same numbers by parameters, of the first of two states
    numbers = {"mass": body.mass, "com": body.com, "inertia": body.inertia}
    of_arm = {name: np.asarray(getattr(arm.bodies[-1], name)) for name in numbers}
    parameters = {f"{body.link}.{name}": np.array([x, of_arm[name]]) for name, x in numbers.items()}
    q, _ = lw.rollout(arm, start, None, None, 2e-3, 50, feedback=controls[-1], parameters=parameters)
    np.testing.assert_allclose(q[:, -1], [run.q[-1], same.q[-1]], atol=1e-12)


# -- linear-quadratic regulators ------------------------------------------------------------------------------


def upright() -> lw.control.StateSpace:
    builder = lw.Builder()
    builder.link("cart", 1.0, inertia=(0.01, 0.01, 0.01)).joint("slide", lw.Prismatic((1, 0, 0)), "ground", "cart")
    builder.link("pole", 0.3, (0.0, 0.0, 0.5), (0.025, 0.025, 0.0001))
    mech = builder.joint("hinge", lw.Revolute((0, 1, 0)), "cart", "pole").build("cart_pole")
    return lw.linearize(mech, [0.0, 0.0], inputs=("slide",))


def test_a_pole_is_balanced_at_the_least_cost():
    model = upright()
    control = lw.control.lqr(model, [1.0, 2.0, 1.0, 1.0], 0.1)
    expected = solve_continuous_are(model.A, model.B, np.diag([1.0, 2.0, 1.0, 1.0]), np.diag([0.1]))
    np.testing.assert_allclose(control.cost, expected)
    assert control.eigenvalues().real.max() < 0.0 < model.eigenvalues().real.max()
    x = 1e-4 * np.array([1.0, -2.0, 0.5, 1.0])
    run = lw.simulate(model.mechanism, *model.joint_motion(x), 15.0, control=control, t_eval=0.002)
    states = model.state_at(run.q, run.v)
    forces = np.array([control(0.0, q, v)[0] for q, v in zip(run.q, run.v, strict=True)])
    spent = np.sum(states**2 * [1.0, 2.0, 1.0, 1.0], axis=-1) + 0.1 * forces**2
    assert np.trapezoid(spent, run.t) == pytest.approx(x @ expected @ x, rel=1e-3)
    q, v = lw.rollout(model.mechanism, [0.0, 0.3], None, None, 1e-2, 1500, feedback=control, final_only=True)
    np.testing.assert_allclose([q, v], 0.0, atol=1e-3)


@pytest.mark.slow
def test_a_mechanism_with_a_loop_is_held_by_one_motor():
    mech = lw.mechanisms.four_bar()
    q = lw.constraints.assemble(mech, {"crank_joint": 0.9})
    held = lw.find_equilibrium(mech, q, solve_for="tau", actuated=("crank_joint",))
    model = lw.linearize(mech, held.q, None, held.tau, independent=("crank_joint",), inputs=("crank_joint",))
    control = lw.control.lqr(model, [1e4, 1.0], 0.01)
    start = lw.linkages.follow(mech, held.q, {"crank_joint": float(held.q[0]) + 0.1})
    run = lw.simulate(mech, start, np.zeros(mech.nv), 3.0, control=control)
    np.testing.assert_allclose(run.q[-1], held.q, atol=1e-3)
    q, _ = lw.rollout(mech, start, None, None, 5e-3, 600, feedback=control, final_only=True)
    np.testing.assert_allclose(q, run.q[-1], atol=1e-6)


# -- decoupled tracking ---------------------------------------------------------------------------------------


def rate_of_lyapunov(control, mech, t, q, v, tau) -> float:
    """By central differences along the motion under these forces."""
    h, a = 1e-5, lw.forward_dynamics(mech, q, v, tau)

    def at(step):
        return control.lyapunov(t + step, lw.integrate(mech, q, v + 0.5 * step * a, step), v + step * a)

    return float(at(h) - at(-h)) / (2 * h)


@pytest.mark.seed("jain1995", "Control 8.1", by="library")
def test_total_rates_of_the_error_decay_on_their_own(puma, motion):
    control = lw.control.decoupled_tracking(puma, motion, 10.0, 5.0, limit=np.inf)
    run = lw.simulate(puma, np.full(6, 0.3), np.zeros(6), 0.3, control=control, method="rk4", step=1e-3)
    energy = np.array([control.lyapunov(t, q, v) for t, q, v in zip(run.t, run.q, run.v, strict=True)])
    np.testing.assert_allclose(energy, energy[0] * np.exp(-20.0 * run.t), rtol=1e-6)
    rest = lw.control.decoupled_tracking(puma, np.zeros(6), 2.0, 0.0, limit=np.inf)  # Lambda = 0: Control 8.1
    printed = lw.formulations.diagonal.rate_feedback(puma, 2.0)
    rng = np.random.default_rng(0)
    q, v = lw.random_state(puma, rng)
    np.testing.assert_allclose(rest(0.0, q, v), printed(0.0, q, v), atol=1e-9)
    np.testing.assert_allclose(
        rate_of_lyapunov(control, puma, 0.1, q, v, control(0.1, q, v)), control.lyapunov_rate(0.1, q, v), rtol=1e-5
    )


def test_bounded_forces_keep_the_lyapunov_function_falling():
    """Made smaller as a whole the feedback still takes energy out; each joint cut off on its own it may not."""
    arm = lw.mechanisms.planar_arm(3).with_gravity((0.0, 0.0, 0.0))
    limit = np.array([20.0, 200.0, 200.0])
    control = lw.control.decoupled_tracking(arm, np.zeros(3), 20.0, 0.2, limit)
    free = lw.control.decoupled_tracking(arm, np.zeros(3), 20.0, 0.2, np.inf)
    rng = np.random.default_rng(3)
    bounded, cut = [], []
    for _ in range(30):
        q, v = rng.uniform(-1.5, 1.5, 3), rng.uniform(-1.0, 1.0, 3)
        tau = control(0.0, q, v)
        assert (np.abs(tau) <= limit + 1e-9).all()
        if np.abs(free(0.0, q, v) - tau).max() > 1.0:  # a bound is reached
            bounded.append(rate_of_lyapunov(control, arm, 0.0, q, v, tau))
            cut.append(rate_of_lyapunov(control, arm, 0.0, q, v, np.clip(free(0.0, q, v), -limit, limit)))
    assert len(bounded) > 5 and max(bounded) < 1e-6 < max(cut)
    q, v = lw.rollout(arm, [0.5, -0.4, 0.6], None, None, 2e-3, 15000, feedback=control, final_only=True)
    np.testing.assert_allclose(q, 0.0, atol=1e-2)


# -- what users see -------------------------------------------------------------------------------------------


def test_controllers_say_what_they_are_in_a_line(puma):
    torque = lw.control.computed_torque(puma, np.zeros(6), kp=[1.0, 2.0, 3.0, 4.0, 5.0, 60.5], kd=20.0)
    assert repr(torque) == "<controller of 'puma560': computed torque, kp 1 to 60.5, kd 20>"
    shown = {
        "computed torque, kp 1 to 60.5, kd 20, forces up to 40": lw.control.saturated(puma, torque, 40.0),
        "operational space control of 'link6', kp 100, kd 20": lw.control.operational_space_control(
            puma, "link6", np.ones(3)
        ),
        "decoupled tracking, rate gain 10, position gain 5>": lw.control.decoupled_tracking(puma, np.zeros(6)),
        "linear-quadratic regulator, gains ": lw.control.lqr(upright()),
        "joint feedback, kp 3, kd 0, gravity held": lw.control.joint_feedback(puma, np.zeros(6), 3.0),
        "gravity held, forces up to 2>": lw.control.saturated(puma, lw.control.joint_feedback(puma, np.zeros(6)), 2.0),
        "kd 20>, held for 0.01 s>": lw.motion.held(torque, 0.01),
        "rate feedback, gain 2": lw.formulations.diagonal.rate_feedback(puma, 2.0),
    }
    for expected, control in shown.items():
        assert expected in repr(control) and len(repr(control)) < 140 and repr(control).count("\n") == 0


# -- what cannot be done --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: lw.control.computed_torque(lw.mechanisms.four_bar(), np.zeros(3), actuated=[]), "and it has 0 motors"),
        (lambda: lw.control.decoupled_tracking(lw.mechanisms.four_bar(), np.zeros(3)), "would ignore the loops"),
        (
            lambda: lw.control.computed_torque(lw.mechanisms.random_tree(2, 0, floating_base=True), None),
            "needs a motor at",
        ),
        (lambda: lw.control.computed_torque(lw.mechanisms.chain(2), [0.0]), r"a reference is a configuration \(2,\)"),
        (lambda: lw.control.computed_torque(lw.mechanisms.chain(2), [0.0, 0.0], kp=-1.0), "kp must be"),
        (
            lambda: lw.control.decoupled_tracking(lw.mechanisms.chain(2), [0.0, 0.0], limit=0.0),
            "limit must be a positive",
        ),
        (
            lambda: lw.control.operational_space_control(lw.mechanisms.chain(2), "ground", np.zeros(3)),
            "fixed to the ground",
        ),
        (
            lambda: lw.control.operational_space_control(
                lw.mechanisms.chain(2), "link2", lw.kinematics.FrameTarget(np.zeros(3))
            ),
            "a function of t that gives one, not FrameTarget.*for lw.inverse_kinematics",
        ),
        (
            lambda: lw.control.operational_space_control(lw.mechanisms.chain(2), "link2", np.zeros(2)),
            "a pose .4, 4. or a pos",
        ),
        (
            lambda: lw.control.operational_space_control(lw.mechanisms.chain(2), "link2", np.zeros(3), kp=-1.0),
            "kp must be",
        ),
        (
            lambda: lw.control.operational_space_control(lw.mechanisms.chain(2), "link2", np.zeros(3), np.ones(6)),
            "3 of them",
        ),
        (lambda: lw.control.lqr(upright(), [1.0, 2.0]), r"Q must be a number, 4 of them"),
        (lambda: lw.control.lqr(upright(), 1.0, 0.0), "R must be positive"),
        (lambda: lw.control.lqr(upright().A), "lqr takes a linear model"),
        (
            lambda: lw.control.lqr(lw.linearize(lw.mechanisms.planar_arm(2), [0.3, 0.2])),
            "the model is of no equilibrium",
        ),
        (
            lambda: lw.control.lqr(
                lw.linearize(lw.mechanisms.cart_pole().with_gravity((0, 0, 0)), [0, 0], inputs=("hinge",))
            ),
            "do not reach a motion",
        ),
        (
            lambda: lw.rollout(
                lw.mechanisms.chain(3), None, None, None, 1e-2, 2,
                feedback=lw.control.computed_torque(lw.mechanisms.chain(2), [0.0, 0.0]),
            ),
            "the controller is one of 'chain_2'",
        ),
        (
            lambda: lw.rollout(
                lw.mechanisms.four_bar(), None, None, None, 1e-2, 2,
                feedback=lambda t, q, v: 0.0 * v,
            ),
            r"not function: give tau=lw.motion.held\(control, period\)",
        ),
        (
            lambda: lw.rollout(
                lw.mechanisms.chain(2), None, None,
                lw.control.joint_feedback(lw.mechanisms.chain(2), [0.0, 0.0]), 1e-2, 2
            ),
            r"tau must be an array, .* feedback=control .* tau=lw.motion.held\(control, period\)",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_said(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()


class Swinging:
    """A target that moves, of a class that can be imported."""

    def __call__(self, t: float) -> np.ndarray:
        return np.array([0.4 + 0.1 * np.sin(t), 0.2, 0.3])


def test_controllers_survive_pickling_and_copies_used_or_not(puma, motion):
    q, v = np.full(6, 0.1), np.full(6, -0.2)
    for make in (
        lambda: lw.control.joint_feedback(puma, np.zeros(6), 10.0, 1.0),
        lambda: lw.control.computed_torque(puma, motion),
        lambda: lw.control.decoupled_tracking(puma, motion),
        lambda: lw.control.operational_space_control(puma, "link6", Swinging()),
        lambda: lw.control.saturated(puma, lw.control.computed_torque(puma, motion), 20.0),
        lambda: lw.motion.held(lw.control.computed_torque(puma, motion), 0.01),
        lambda: lw.control.lqr(lw.linearize(puma, np.zeros(6), None, lw.gravity_force(puma, np.zeros(6)))),
    ):
        control = make()
        unused = pickle.dumps(control)
        expected = control(0.2, q, v)
        for again in (pickle.loads(unused), pickle.loads(pickle.dumps(control)), copy.deepcopy(control)):
            np.testing.assert_allclose(again(0.2, q, v), expected, rtol=1e-12, atol=1e-12)
