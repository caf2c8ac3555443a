"""Rollouts and closed mechanisms in JAX, and two small trainings."""

import numpy as np
import pytest

import linkwise as lw

jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402
from jax.test_util import check_grads  # noqa: E402

import linkwise.jax as lwj  # noqa: E402

ARM = lw.mechanisms.planar_arm(2)
FOUR_BAR = lw.mechanisms.four_bar()


def test_rollouts():
    rng = np.random.default_rng(0)
    q, v, tau = rng.normal(size=(3, 3, 2))
    forces = rng.normal(size=(3, 4, 2))
    feedback = {"target": np.zeros(2), "kp": 20.0, "kd": np.array([2.0, 1.0])}
    expected = lw.rollout(ARM, q, v, forces, 0.01, 4, feedback=feedback)
    mapped = jax.vmap(lambda x, y, z: lwj.rollout(ARM, x, y, z, 0.01, 4, feedback=feedback))
    for found in (lwj.rollout(ARM, q, v, forces, 0.01, 4, feedback=feedback), mapped(q, v, forces)):
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-13, atol=1e-13)
    held = lwj.rollout(ARM, q, None, tau[:, None], 0.01, 2)
    np.testing.assert_allclose(held[0], lw.rollout(ARM, q, None, tau[:, None], 0.01, 2)[0], rtol=1e-13, atol=1e-13)
    assert lwj.rollout(ARM, q, None, None, 0.01, 0)[0].shape == (3, 1, 2)
    single = lwj.rollout(ARM, jnp.asarray(q, jnp.float32), None, None, 0.01, 2)[0]  # what is left out is so, too
    assert single.dtype == jnp.float32
    np.testing.assert_allclose(single, lw.rollout(ARM, q, None, None, 0.01, 2)[0], rtol=1e-4, atol=1e-6)


def test_numbers_by_joint_and_by_actuator():
    """As in ``linkwise.rollout``; the other arrays decide on the precision."""
    first, second = ARM.joint_names
    servoed = ARM.with_elements(lw.forces.Actuator("motor", second, gain=(2.0,)))
    named = {"feedback": {"target": {first: 0.5}, "kp": {second: 20.0}, "kd": 1.0}, "ctrl": {"motor": 0.3}}
    start = {first: 0.3, second: -0.2}, {second: 1.0}
    expected = lw.rollout(servoed, *start, None, 0.01, 4, **named)
    for one, other in zip(lwj.rollout(servoed, *start, None, 0.01, 4, **named), expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-13, atol=1e-13)
    single = lwj.rollout(servoed, jnp.zeros(2, jnp.float32), start[1], None, 0.01, 4, **named)
    assert single[0].dtype == jnp.float32
    forced = lwj.rollout(ARM, *start, {second: 1.5}, 0.01, 4)[0]
    np.testing.assert_allclose(forced, lw.rollout(ARM, *start, [0.0, 1.5], 0.01, 4)[0], rtol=1e-13, atol=1e-13)
    closed = lwj.rollout(FOUR_BAR, {FOUR_BAR.joint_names[0]: 0.4}, None, None, 0.001, 2)[0]
    expected_closed = lw.rollout(FOUR_BAR, {FOUR_BAR.joint_names[0]: 0.4}, None, None, 0.001, 2)[0]
    np.testing.assert_allclose(closed, expected_closed, rtol=1e-9, atol=1e-9)
    with pytest.raises(TypeError, match=r"q has numbers by name that JAX traces.*mech\.q_index"):
        jax.grad(lambda x: lwj.rollout(ARM, {first: x}, None, None, 0.01, 2)[0].sum())(0.3)
    with pytest.raises(lw.MechanismError, match="no moving joint 'elbow'"):
        lwj.rollout(ARM, {"elbow": 0.3}, None, None, 0.01, 2)


def test_drives_and_forces_are_those_of_rollouts():
    builder = lw.Builder().link("cart", 2.0, inertia=(0.1, 0.1, 0.1)).link("bob", 1.0, (0, 0, -0.5), (0.01, 0.01, 0.01))
    builder.joint("slide", lw.Prismatic((1, 0, 0)), "ground", "cart")
    builder.joint("pin", lw.Revolute((0, 1, 0)), "cart", "bob", damping=0.3)
    mech = builder.drive("shaker", "slide", lambda t: 0.2 * np.sin(3.0 * t)).build("shaken")
    whole = lw.rollout(mech, None, None, None, 0.01, 8)
    values = lw.motion.drive_values(mech, 0.01, 4, start=0.04)
    middle = whole[0][4], whole[1][4]
    for forces in ("all", "none"):
        expected = lw.rollout(mech, *middle, None, 0.01, 4, drive=values, forces=forces)
        found = lwj.rollout(mech, *middle, None, 0.01, 4, drive=values, forces=forces)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(lwj.rollout(mech, *middle, None, 0.01, 4, drive=values)[0], whole[0][4:], atol=1e-9)
    single = lwj.rollout(mech, *(jnp.asarray(x, jnp.float32) for x in middle), None, 0.01, 4, drive=values)[0]
    assert single.dtype == jnp.float32
    gradient = jax.grad(lambda x: lwj.rollout(mech, *middle, None, 0.01, 4, drive=x)[0][-1, 1])(jnp.asarray(values))
    path = lw.rollout(mech, *middle, None, 0.01, 4, drive=values)
    ends = np.array([0.0, 1.0]), np.zeros(2)
    wanted = lw.derivatives.rollout_vjp(mech, *path, None, 0.01, 4, ends, wrt="drive", drive=values)["drive"]
    np.testing.assert_allclose(gradient, wanted, rtol=1e-8, atol=1e-10)
    with pytest.raises(lw.KernelError, match="nothing takes drive"):
        lwj.rollout(ARM, None, None, None, 0.01, 4, drive=values)


def test_derivatives_of_rollouts():
    q, v, tau = np.random.default_rng(0).normal(size=(3, 2))
    check_grads(lambda *x: lwj.rollout(ARM, *x, 0.01, 4), (q, v, tau), 1, ["rev"])
    path, speeds = lw.rollout(ARM, q, v, tau, 0.01, 4)
    expected = lw.derivatives.rollout_vjp(ARM, path, speeds, tau, 0.01, 4, (np.ones(2), None), wrt=("q0", "v0", "tau"))
    found = jax.grad(lambda *x: lwj.rollout(ARM, *x, 0.01, 4)[0][-1].sum(), (0, 1, 2))(q, v, tau)
    for one, other in zip(found, (expected["q0"], expected["v0"], expected["tau"].sum(-2)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10)


@pytest.mark.slow
def test_derivatives_of_derivatives_of_rollouts():
    q, v, tau = np.random.default_rng(0).normal(size=(3, 2))
    check_grads(lambda *x: lwj.rollout(ARM, *x, 0.01, 3), (q, v, tau), 2)


@pytest.mark.slow
def test_states_that_are_kept():
    """Those between are computed again, for the same gradients."""
    q, v = np.random.default_rng(0).normal(size=(2, 2))
    forces = np.random.default_rng(1).normal(size=(6, 2))

    def end(x, **options):
        return lwj.rollout(ARM, q, v, x, 0.01, 6, **options)

    np.testing.assert_array_equal(end(forces, every=3)[0], end(forces)[0][::3])
    np.testing.assert_array_equal(end(forces, final_only=True)[1], end(forces)[1][-1])
    whole, part = (
        jax.grad(lambda x, options=options: end(x, **options)[0][-1].sum())(forces) for options in ({}, {"every": 3})
    )
    np.testing.assert_allclose(part, whole, rtol=1e-12)
    with pytest.raises(ValueError, match="every must divide the number of steps"):
        end(forces, every=4)


@pytest.mark.slow
def test_numbers_of_what_acts_are_parameters():
    arm = lw.mechanisms.cart_pole()
    q, parameters = np.array([0.1, 0.2]), {"damping": np.array([0.5, 0.1])}
    expected = lw.rollout(arm, q, None, None, 0.01, 3, parameters=parameters)[0]
    np.testing.assert_allclose(lwj.rollout(arm, q, None, None, 0.01, 3, parameters=parameters)[0], expected, rtol=1e-12)
    check_grads(lambda x: lwj.rollout(arm, q, None, None, 0.01, 3, parameters={"damping": x})[0], (np.ones(2),), 1)


@pytest.mark.slow
def test_actuators_with_states_of_their_own():
    arm = ARM.with_elements(lw.forces.Actuator("motor", "joint1", dynamics="filter", time_constant=0.1))
    q, w, ctrl = np.array([0.1, 0.2]), np.array([0.5]), np.array([2.0])
    given = {"ctrl": ctrl, "activation": w, "return_activation": True}
    found, expected = (library.rollout(arm, q, None, None, 0.01, 4, **given) for library in (lwj, lw))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)
    check_grads(lambda x, y: lwj.rollout(arm, q, None, None, 0.01, 4, ctrl=x, activation=y), (ctrl, w), 1)
    assert lwj.rollout(ARM, q, None, None, 0.01, 4, return_activation=True)[2].shape == (5, 0)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["rk4", "semi_implicit"])
def test_rollouts_with_contact(method):
    build = lw.Builder("ball")
    build.link("ball", 1.0, (0, 0, 0), (0.004, 0.004, 0.004)).joint("free", lw.Floating(), "ground", "ball")
    ball = build.build().with_shape("skin", "ball", "sphere", 0.1).with_ground(0.0)
    q, v = lw.neutral(ball), np.array([0.0, 0.0, 0.0, 1.0, 0.0, 0.0])
    q[6] = 0.0999  # it touches
    found, expected = (library.rollout(ball, q, v, None, 1e-3, 5, method) for library in (lwj, lw))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)
    free = lw.rollout(ball.with_acting(False), q, v, None, 1e-3, 5, method)
    assert np.abs(free[1] - expected[1]).max() > 1e-3  # what acts does something
    check_grads(lambda x: lwj.rollout(ball, q, x, None, 1e-3, 5, method), (v,), 1, ["rev"], rtol=1e-3)


@pytest.mark.slow
def test_rollouts_of_a_floating_tree():
    tree = lw.mechanisms.random_tree(3, 5, ["spherical", "prismatic"], floating_base=True)
    q, v = lw.random_state(tree, np.random.default_rng(0))
    for one, other in zip(lwj.rollout(tree, q, v, None, 0.01, 3), lw.rollout(tree, q, v, None, 0.01, 3), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)
    check_grads(lambda *x: lwj.rollout(tree, *x, None, 0.01, 3), (q, v), 1, rtol=1e-4)


def test_closed_mechanisms():
    q, v = FOUR_BAR.initial, np.zeros(3)
    tau = np.array([1.0, 0.3, -0.2])
    function = lwj.closed.forward_dynamics
    np.testing.assert_allclose(function(FOUR_BAR, q, v, tau), lw.forward_dynamics(FOUR_BAR, q, v, tau), rtol=1e-12)
    check_grads(lambda *x: function(FOUR_BAR, *x), (q, v, tau), 1, ["rev"], rtol=1e-4)
    a, reliability, _ = lwj.closed_motion(FOUR_BAR, q, v, tau)
    np.testing.assert_array_equal(a, function(FOUR_BAR, q, v, tau))
    assert reliability > 1.0


def test_closed_rollouts():
    tau = np.array([1.0, 0.3, -0.2])
    expected = lw.rollout(FOUR_BAR, None, None, tau, 0.01, 3)
    for one, other in zip(lwj.rollout(FOUR_BAR, None, None, tau, 0.01, 3), expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


@pytest.mark.slow
def test_derivatives_of_closed_rollouts():
    tau = np.array([1.0, 0.3, -0.2])
    check_grads(lambda x: lwj.rollout(FOUR_BAR, None, None, x, 0.01, 3), (tau,), 1)


def test_closed_rollouts_are_not_a_number_where_steps_cannot_be_relied_on():
    q = np.array([0.0, np.pi, np.pi])  # open by far: no step closes it
    path = lwj.rollout(FOUR_BAR, q, None, None, 0.01, 2)[0]
    assert np.isfinite(path[0]).all() and np.isnan(path[1:]).all()


def test_what_rollouts_refuse():
    q = jnp.zeros(2)
    with pytest.raises(lw.KernelError, match=r"tau has shape \(3, 2\), expected \(2,\), \(5, 2\)"):
        lwj.rollout(ARM, q, None, jnp.zeros((3, 2)), 0.1, 5)
    with pytest.raises(lw.KernelError, match="dt is missing"):
        lwj.rollout(ARM, q, None, None, None, 5)
    with pytest.raises(TypeError, match="steps must be an integer that is known when JAX traces"):
        jax.jit(lambda n: lwj.rollout(ARM, q, None, None, 0.1, n))(3)
    with pytest.raises(ValueError, match="at least 0"):
        lwj.rollout(ARM, q, None, None, 0.1, -1)
    with pytest.raises(lw.KernelError, match="nothing takes ctrl"):
        lwj.rollout(ARM, q, None, None, 0.1, 5, ctrl=q)
    with pytest.raises(lw.KernelError, match=r"do not broadcast: q \(3,\), v \(2,\)"):
        lwj.rollout(ARM, jnp.zeros((3, 2)), jnp.zeros((2, 2)), None, 0.1, 5)
    with pytest.raises(ValueError, match="needs a target"):
        lwj.rollout(ARM, q, None, None, 0.1, 5, feedback={"kp": 1.0})
    with pytest.raises(TypeError, match="feedback is a dictionary"):
        lwj.rollout(ARM, q, None, None, 0.1, 5, feedback=lw.control.computed_torque(ARM, np.zeros(2)))
    with pytest.raises(TypeError, match="tau and ctrl must be arrays"):
        lwj.rollout(ARM, q, None, lambda t, q, v: q, 0.1, 5)


def trained(loss, start, rates):
    """Adam, one rate for each step; the last numbers, and the losses on the way."""

    def step(state, now):
        x, mean, square = state
        rate, k = now
        value, slope = jax.value_and_grad(loss)(x)
        mean, square = 0.9 * mean + 0.1 * slope, 0.999 * square + 0.001 * slope**2
        x = x - rate * (mean / (1 - 0.9**k)) / (jnp.sqrt(square / (1 - 0.999**k)) + 1e-12)
        return (x, mean, square), value

    counts = jnp.arange(1.0, len(rates) + 1.0)
    run = jax.jit(lambda x: jax.lax.scan(step, (x, 0 * x, 0 * x), (jnp.asarray(rates), counts)))
    (x, _, _), losses = run(start)
    return x, losses


@pytest.mark.slow
def test_a_payload_is_identified_by_training():
    arm = lw.mechanisms.puma560()
    link = arm.link_names[-1]
    rng = np.random.default_rng(0)
    q, v = lw.random_state(arm, rng, (60,))
    a = rng.normal(size=v.shape)
    loaded = arm.with_payload(link, 2.0, (0.02, -0.03, 0.1), np.diag([0.02, 0.03, 0.01]))
    measured = lw.inverse_dynamics(loaded, q, v, a)
    inertias = lwj.Inertias(arm, [link])

    def loss(numbers):
        return ((lwj.inverse_dynamics(arm, q, v, a, parameters=inertias(numbers)) - measured) ** 2).mean()

    numbers, _ = trained(loss, inertias.numbers, 0.025 * (1.0 + np.cos(np.linspace(0.0, np.pi, 800))))
    found, body = inertias(numbers), loaded.bodies[-1]
    assert found[f"{link}.mass"] == pytest.approx(body.mass, rel=1e-3)
    np.testing.assert_allclose(found[f"{link}.com"], body.com, atol=1e-3)


def test_a_controller_is_tuned_through_rollouts():
    """Gains that bring a pendulum to rest within 200 steps."""
    target, start = np.array([0.3, -0.2]), np.array([1.0, 0.5])

    def loss(logs):
        kp, kd = jnp.exp(logs)
        feedback = {"target": target, "kp": kp * np.ones(2), "kd": kd * np.ones(2)}
        path, speeds = lwj.rollout(ARM, start, None, None, 0.01, 200, feedback=feedback)
        return ((path[100:] - target) ** 2).mean() + 0.01 * (speeds[100:] ** 2).mean()

    _, losses = trained(loss, jnp.array([2.0, 0.0]), np.full(25, 0.2))
    assert losses[-1] < 0.2 * losses[0]


def test_numbers_that_are_known_are_checked():
    body = lw.Builder().link("one", 1.0, inertia=(0.01, 0.01, 0.01)).joint("base", lw.Floating(), "ground", "one")
    mech = body.build("ball").with_shape("ball", "one", "sphere", 0.1).with_ground()
    rest = jnp.zeros(6)
    for real in (2.0, 0.0):
        with pytest.raises(lw.MechanismError, match="quaternion of joint .base. in q0"):
            lwj.rollout(mech, jnp.array([real, 0, 0, 0, 0, 0, 1.0]), rest, None, 0.001, 2)
    with pytest.raises(lw.MechanismError, match="contact_friction.* not negative"):
        lwj.rollout(mech, mech.initial, rest, None, 0.001, 2, parameters={"contact_friction": -1.0})
