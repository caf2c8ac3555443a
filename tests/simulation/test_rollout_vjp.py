"""Gradients through rollouts: against differences of eighth order of the rollouts themselves, and against products of
the derivatives of single steps."""

from __future__ import annotations

import re

import numpy as np
import pytest

import linkwise as lw
from linkwise.compiler.runtime.explanations import KernelError
from linkwise.mechanism.library import EVERY_KIND
from tests.physics.test_mimic import tied_and_free

ARM = lw.mechanisms.puma560()
TREE = lw.mechanisms.random_tree(3, 21, joints=("spherical", "revolute"), floating_base=True)
DT = 2e-3
EIGHTH_ORDER = {1: 4 / 5, 2: -1 / 5, 3: 4 / 105, 4: -1 / 280}


def slope(function, h: float = 0.02):
    """d/ds function(s) at 0."""
    return sum(c * (function(k * h) - function(-k * h)) for k, c in EIGHTH_ORDER.items()) / h


def energy(mech, q, v):
    return lw.kinetic_energy(mech, q, v) + lw.potential_energy(mech, q)


def energy_gradient(mech, q, v):
    kinetic, potential = (lw.compile(f"{kind}_energy", mech) for kind in ("kinetic", "potential"))
    return lw.jacobian_of(kinetic, "q")(q, v) + lw.jacobian_of(potential, "q")(q), lw.jacobian_of(kinetic, "v")(q, v)


def along(gradient, direction, batch: int):
    """The gradient times a direction, over all axes but those of the batch."""
    return (gradient * direction).reshape(*direction.shape[:batch], -1).sum(-1)


def agree(found, expected, tolerance: float = 1e-9) -> None:
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * max(1.0, np.abs(expected).max()))


@pytest.mark.parametrize("method", ("rk4", "semi_implicit"))
@pytest.mark.parametrize("mech", (ARM, TREE), ids=lambda mech: mech.name)
def test_final_energy_after_a_hundred_steps(mech, method):
    rng, steps = np.random.default_rng(1), 100
    q0, v0 = lw.random_state(mech, rng, (3,))
    tau = rng.normal(size=(3, steps, mech.nv))
    q, v = lw.rollout(mech, q0, v0, tau, DT, steps, method)
    found = lw.derivatives.rollout_vjp(mech, q, v, tau, DT, steps, energy_gradient(mech, q[:, -1], v[:, -1]), method)
    assert {name: x.shape for name, x in found.items()} == {
        "q0": (3, mech.nv),
        "v0": (3, mech.nv),
        "tau": (3, steps, mech.nv),
    }

    def final(q0=q0, v0=v0, tau=tau):
        return energy(mech, *lw.rollout(mech, q0, v0, tau, DT, steps, method, final_only=True))

    by_state, by_force = rng.normal(size=v0.shape), rng.normal(size=tau.shape)
    agree(along(found["q0"], by_state, 1), slope(lambda s: final(q0=lw.integrate(mech, q0, by_state, s))))
    agree(along(found["v0"], by_state, 1), slope(lambda s: final(v0=v0 + s * by_state)))
    agree(along(found["tau"], by_force, 1), slope(lambda s: final(tau=tau + s * by_force)))


@pytest.mark.slow_cases("[0]", "[1]")
@pytest.mark.parametrize("seed", range(3))
def test_against_products_of_derivatives_of_steps(seed):
    mech = lw.mechanisms.random_tree(3, seed, joints=EVERY_KIND, floating_base=seed == 1)
    rng, steps, n = np.random.default_rng(seed), 4, mech.nv
    q0, v0 = lw.random_state(mech, rng, (2,))
    tau, wrenches = rng.normal(size=(2, steps, n)), rng.normal(size=(2, steps, mech.n_links, 6))
    q, v = lw.rollout(mech, q0, v0, tau, DT, steps, wrenches=wrenches)
    weights = rng.normal(size=(2, 2, steps + 1, n))  # on every state
    found = lw.derivatives.rollout_vjp(
        mech, q, v, tau, DT, steps, tuple(weights), wrenches=wrenches, wrt=("q0", "v0", "tau", "wrenches")
    )
    kernel = lw.compile("rk4_step", mech, ports="wrenches", target="numpy")
    step = lw.jacobian_of(kernel, ("q", "v", "tau", "wrenches"), tangent_result=True)
    costate = np.concatenate(weights[:, :, -1], axis=-1)
    for k in reversed(range(steps)):
        product = (costate[:, None] @ step(q[:, k], v[:, k], tau[:, k], DT, wrenches[:, k]))[:, 0]
        agree(found["tau"][:, k], product[:, 2 * n : 3 * n], 1e-12)
        agree(found["wrenches"][:, k].reshape(2, -1), product[:, 3 * n :], 1e-12)
        costate = product[:, : 2 * n] + np.concatenate(weights[:, :, k], axis=-1)
    agree(np.concatenate([found["q0"], found["v0"]], axis=-1), costate, 1e-12)


def test_elements_and_control_inputs():
    """Damping, friction, limits beyond which the motion is all the time, and actuators; checkpoints too."""
    mech, rng, steps = lw.mechanisms.planar_arm(3), np.random.default_rng(3), 20
    first, second, third = mech.joint_names
    mech = mech.parameters.with_damping({first: 0.4}).with_limits(
        {second: lw.Limits(-3.0, -2.0, stiffness=30.0, damping=0.1)}
    )
    mech = mech.with_elements(
        lw.forces.Actuator("servo", second, gain=(9.0,), bias=(0.0, -9.0, -1.0)),
        lw.forces.Tendon("belt", ((first, 1.0), (third, -0.5)), stiffness=5.0, damping=0.3),
        lw.forces.Actuator("pull", "belt", "tendon", gear=(2.0,), gain=(1.0, 0.3, 0.1)),
    )
    q0, v0 = np.array([0.3, 0.5, -0.4]) + 0.1 * rng.normal(size=(2, 3)), rng.normal(size=(2, 3))
    ctrl, direction = rng.normal(size=(2, steps, 2)), rng.normal(size=(2, steps, 2))

    def final(q0=q0, ctrl=ctrl):
        return energy(mech, *lw.rollout(mech, q0, v0, None, DT, steps, ctrl=ctrl, final_only=True))

    for every in (1, 5):
        q, v = lw.rollout(mech, q0, v0, None, DT, steps, ctrl=ctrl, every=every)
        weight = energy_gradient(mech, q[:, -1], v[:, -1])
        found = lw.derivatives.rollout_vjp(mech, q, v, None, DT, steps, weight, ctrl=ctrl)
        agree(along(found["ctrl"], direction, 1), slope(lambda s: final(ctrl=ctrl + s * direction)))
        agree(along(found["q0"], v0, 1), slope(lambda s: final(q0=q0 + s * v0)))


@pytest.mark.parametrize("method", ["rk4", "semi_implicit"])
def test_activations(method):
    """Of actuators with states of their own: gradients by their initial states, and of functions of their last ones."""
    mech, rng, steps = lw.mechanisms.planar_arm(2), np.random.default_rng(4), 12
    first, second = mech.joint_names
    mech = mech.parameters.with_damping({first: 3.0}).with_elements(
        lw.forces.Actuator("slow", first, gear=(5.0,), dynamics="filter", time_constant=0.05),
        lw.forces.Actuator("direct", second, gain=(2.0,), bias=(0.0, -1.0, -0.3)),
        lw.forces.Actuator("sum", second, gear=(2.0,), dynamics="integrator", activation_range=(-9.0, 9.0)),
    )
    q0, v0, w0 = rng.normal(size=(2, 2)), rng.normal(size=(2, 2)), rng.normal(size=(2, 2))
    ctrl, weights = rng.normal(size=(2, steps, 3)), rng.normal(size=(3, 2, 2))
    directions = {
        "q0": rng.normal(size=(2, 2)),
        "activation": rng.normal(size=(2, 2)),
        "ctrl": rng.normal(size=ctrl.shape),
    }

    def final(q0=q0, activation=w0, ctrl=ctrl):
        found = lw.rollout(
            mech, q0, v0, None, DT, steps, method, ctrl=ctrl, activation=activation, return_activation=True
        )
        return sum(np.sum(w * x[:, -1], axis=-1) for w, x in zip(weights, found, strict=True))

    values = {"q0": q0, "activation": w0, "ctrl": ctrl}
    for every in (1, 4):
        options = {"ctrl": ctrl, "activation": w0, "return_activation": True, "every": every}
        q, v, w = lw.rollout(mech, q0, v0, None, DT, steps, method, **options)
        found = lw.derivatives.rollout_vjp(mech, q, v, None, DT, steps, tuple(weights), method, ctrl=ctrl, activation=w)
        for name, direction in directions.items():
            expected = slope(lambda s, n=name, d=direction: final(**{n: values[n] + s * d}))
            agree(along(found[name], direction, 1), expected)
    with pytest.raises(lw.MechanismError, match="slow, sum of .* give rollout_vjp the activation"):
        lw.derivatives.rollout_vjp(mech, q, v, None, DT, steps, tuple(weights), method, ctrl=ctrl)


def test_parameters_gains_targets_and_the_length_of_steps():
    mech, rng, steps = TREE, np.random.default_rng(4), 12
    q0, v0 = lw.random_state(mech, rng, (2,))
    target = lw.integrate(mech, q0[:, None], rng.normal(size=(2, steps, mech.nv)) * 0.2, 1.0)  # not half a turn away
    masses, dt = mech.parameters.masses * rng.uniform(0.9, 1.1, (2, mech.n_links)), np.array([0.002, 0.003])
    gains = {"kp": rng.uniform(1.0, 2.0, (2, mech.nv)), "kd": rng.uniform(0.1, 0.2, (2, mech.nv))}
    inertia = mech.parameters.inertias[-1] * np.ones((2, 1, 1))
    last = f"{mech.link_names[-1]}.inertia"

    def run(target=target, masses=masses, dt=dt, kp=gains["kp"], kd=gains["kd"], inertia=inertia, **more):
        feedback, parameters = {"target": target, "kp": kp, "kd": kd}, {"mass": masses, last: inertia}
        return lw.rollout(mech, q0, v0, None, dt, steps, feedback=feedback, parameters=parameters, **more)

    def final(**changed):
        return energy(mech, *run(**changed, final_only=True))

    q, v = run()
    found = lw.derivatives.rollout_vjp(
        mech, q, v, None, dt, steps, energy_gradient(mech, q[:, -1], v[:, -1]),
        wrt=("target", "kp", "kd", "dt", "mass", last),
        feedback={"target": target, **gains}, parameters={"mass": masses, last: inertia},
    )  # fmt: skip
    step, gain, mass = (rng.normal(size=shape) for shape in ((2, steps, mech.nv), (2, mech.nv), masses.shape))
    spin = mech.parameters.inertias[-1] * 0.1 * np.ones((2, 1, 1))
    agree(along(found["target"], step, 1), slope(lambda s: final(target=lw.integrate(mech, target, step, s))))
    agree(along(found["kp"], gain, 1), slope(lambda s: final(kp=gains["kp"] + s * gain)))
    agree(along(found["kd"], gain, 1), slope(lambda s: final(kd=gains["kd"] + s * gain)))
    agree(along(found["mass"], mass, 1), slope(lambda s: final(masses=masses + 0.1 * s * mass)) * 10.0)
    agree(along(found[last], spin, 1), slope(lambda s: final(inertia=inertia + s * spin)))
    agree(found["dt"] * 0.002, slope(lambda s: final(dt=dt + s * 0.002)))


def test_checkpoints_and_all_states_give_the_same():
    mech, rng, steps = TREE, np.random.default_rng(5), 30
    q0, v0 = lw.random_state(mech, rng, (4,))
    tau, weights = rng.normal(size=(steps, mech.nv)), rng.normal(size=(2, 4, 6, mech.nv))
    drive = {"feedback": {"target": mech.initial, "kp": 3.0, "kd": 0.3}, "parameters": {"mass": mech.parameters.masses}}
    spread = np.zeros((2, 4, steps + 1, mech.nv))
    spread[:, :, ::6] = weights
    kept = lw.rollout(mech, q0, v0, tau, DT, steps, every=6, **drive)
    whole = lw.rollout(mech, q0, v0, tau, DT, steps, **drive)
    found = lw.derivatives.rollout_vjp(mech, *kept, tau, DT, steps, tuple(weights), **drive)
    expected = lw.derivatives.rollout_vjp(mech, *whole, tau, DT, steps, tuple(spread), **drive)
    assert found.keys() == expected.keys() == {"q0", "v0", "tau", "mass"}
    for name in found:
        agree(found[name], expected[name], 1e-12)


def test_cotangents_of_as_many_motions_as_states_are_kept():
    """They are those of the last states, one for each motion."""
    mech = lw.mechanisms.planar_arm(2)
    rng = np.random.default_rng(0)
    q0, v0, w_q, w_v = rng.normal(size=(4, 3, 2))
    q, v = lw.rollout(mech, q0, v0, None, DT, 2)
    found = lw.derivatives.rollout_vjp(mech, q, v, None, DT, 2, (w_q, w_v))
    for k in range(3):
        alone = lw.derivatives.rollout_vjp(mech, q[k], v[k], None, DT, 2, (w_q[k], w_v[k]))
        for name in ("q0", "v0", "tau"):
            agree(found[name][k], alone[name])


def test_mimic_joints_float32_and_the_reference():
    mech, *_ = tied_and_free(0)
    rng, steps = np.random.default_rng(6), 5
    q0, v0 = lw.random_state(mech, rng, (3,))
    q, v = lw.rollout(mech, q0, v0, None, DT, steps)
    w = rng.normal(size=(2, 3, mech.nv))
    found = lw.derivatives.rollout_vjp(mech, q, v, None, DT, steps, tuple(w))
    reference = lw.derivatives.rollout_vjp(mech, q, v, None, DT, steps, tuple(w), target="numpy")
    single = lw.derivatives.rollout_vjp(mech, q.astype("f4"), v.astype("f4"), None, DT, steps, tuple(w.astype("f4")))
    for name in found:
        agree(found[name], reference[name], 1e-12)
        assert single[name].dtype == np.float32
        agree(single[name], found[name], 1e-4)
    by_v = slope(lambda s: lw.rollout(mech, q0, v0 + s * w[1], None, DT, steps, final_only=True)[1])
    only_v = lw.derivatives.rollout_vjp(mech, q, v, None, DT, steps, (None, w[0]), wrt="v0")
    agree(along(only_v["v0"], w[1], 1), along(by_v, w[0], 1))


def test_no_steps_and_one_state():
    q, v = lw.random_state(ARM, np.random.default_rng(0))
    w = np.arange(6.0), np.ones(6)
    found = lw.derivatives.rollout_vjp(ARM, q[None], v[None], None, DT, 0, w)
    assert found["tau"].shape == (0, 6)
    np.testing.assert_array_equal(found["q0"], w[0])
    np.testing.assert_array_equal(found["v0"], w[1])


def test_what_is_refused():
    q, v = lw.rollout(ARM, np.zeros(6), np.zeros(6), None, DT, 4)
    w = np.ones(6), np.ones(6)
    loop = lw.mechanisms.five_bar()
    with pytest.raises(lw.MechanismError, match="has loops, and compiled steps in these coordinates do not keep them"):
        kept = np.zeros((2, loop.nq)), np.zeros((2, loop.nv))
        lw.derivatives.rollout_vjp(loop, *kept, None, DT, 1, w, coordinates="momentum")
    for given, steps, message in (
        ((q[0], v[0]), 4, "q must be what rollout returned"),
        ((q[:3], v), 4, "q has 3 states and v 5"),
        ((q[:4], v[:4]), 4, "4 states are no checkpoints of 4 steps"),
        ((q[-1:], v[-1:]), 4, "final_only keeps too few"),
    ):
        with pytest.raises(KernelError, match=re.escape(message)):
            lw.derivatives.rollout_vjp(ARM, *given, None, DT, steps, w)
    with pytest.raises(KernelError, match=re.escape("the cotangent of v has shape (5,)")):
        lw.derivatives.rollout_vjp(ARM, q, v, None, DT, 4, (w[0], np.ones(5)))
    with pytest.raises(ValueError, match="differentiate by"):
        lw.derivatives.rollout_vjp(ARM, q, v, None, DT, 4, w, wrt="kp")
