"""Motions in joint momenta and total rates: the same as in joint velocities, under all that acts."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.mechanism import MechanismError
from tests.physics.test_mimic import tied_and_free
from tests.physics.trees import CASES, tree_of, trees_of
from tests.product.mechanisms import case
from tests.simulated import simulate

VARIABLES = ("momentum", "nu", "xi")


def check_simulation(mech: lw.Mechanism) -> None:
    q, v = lw.random_state(mech, np.random.default_rng(5))
    options = {"t_eval": [0.0, 0.05], "rtol": 1e-12, "atol": 1e-12}
    expected = simulate(mech, q, 0.3 * v, 0.05, **options)
    found = simulate(mech, q, 0.3 * v, 0.05, settings=lw.motion.Settings(coordinates="momentum"), **options)
    for name in ("q", "v", "a"):
        size = np.abs(getattr(expected, name)).max()
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=0, atol=1e-9 * max(1.0, size))


@trees_of([(2, 1, True), (3, 0, False)])
def test_same_trajectory(tree):
    check_simulation(tree().mech)


@pytest.mark.slow
@trees_of(CASES)
def test_same_trajectory_on_trees_of_all_joints(tree):
    check_simulation(tree().mech)


@pytest.fixture(scope="module")
def driven() -> lw.Mechanism:
    """An arm with all that acts: damping, springs of joints, an actuator with dynamics, rotors."""
    arm = lw.mechanisms.planar_arm(3)
    servo = lw.forces.Actuator(
        "servo", "joint2", gain=(8.0, 0.0, 0.0), bias=(0.0, -8.0, -0.6), dynamics="filter", time_constant=0.05
    )
    return (
        arm.parameters.with_damping({"joint1": 0.5, "joint3": 0.2})
        .parameters.with_armature({"joint1": 0.1})
        .with_elements(servo)
    )


def test_all_that_acts_acts_in_momenta(driven):
    q, v, ctrl = np.array([0.3, -0.4, 0.2]), np.array([0.5, 0.1, -0.7]), np.array([0.8])
    wrenches = np.zeros((3, 6))
    wrenches[2] = (0.0, 0.0, 0.1, 0.5, 0.2, 0.0)
    options = {"ctrl": ctrl, "activation": np.array([0.1]), "wrenches": wrenches}
    expected = simulate(
        driven, q, v, 0.3, [0.1, 0.2, -0.1], settings=lw.motion.Settings(rtol=1e-12, atol=1e-12), **options
    )
    for method in ("dop853", "rk4"):
        found = simulate(
            driven,
            q,
            v,
            0.3,
            [0.1, 0.2, -0.1],
            method,
            settings=lw.motion.Settings(coordinates="momentum", rtol=1e-12, atol=1e-12),
            **options,
        )
        np.testing.assert_allclose(found.q[-1], expected.q[-1], atol=1e-9)
        np.testing.assert_allclose(found.v[-1], expected.v[-1], atol=1e-8)
        np.testing.assert_allclose(found.activation[-1], expected.activation[-1], atol=1e-9)
    hold = {"target": np.zeros(3), "kp": 3.0, "kd": 0.1}
    more = {"feedback": hold, "return_activation": True, **options}
    both = [
        lw.rollout(driven, q, v, [0.1, 0.2, -0.1], 1e-3, 100, coordinates=coordinates, **more)
        for coordinates in ("joint", "momentum")
    ]
    for one, other in zip(*both, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-10)


def test_steps_that_hand_on_momenta():
    """More joints, under all that acts, with numbers of the mechanism that differ from state to state."""
    arm, rng = lw.mechanisms.planar_arm(9), np.random.default_rng(2)
    servo = lw.forces.Actuator("servo", "joint2", dynamics="filter", time_constant=0.05)
    arm = arm.parameters.with_damping({"joint1": 0.5, "joint9": 0.2}).with_elements(servo)
    q, v = lw.random_state(arm, rng, (3,))
    options = {
        "wrenches": rng.normal(size=(9, 6)),
        "feedback": {"target": np.zeros(9), "kp": 3.0, "kd": 0.1},
        "ctrl": [0.7],
        "activation": [0.1],
        "return_activation": True,
        "parameters": {"mass": arm.parameters.masses * rng.uniform(0.5, 2.0, (3, 9))},
        "target": "numpy",
    }
    both = [lw.rollout(arm, q, v, None, 1e-4, 4, coordinates=c, **options) for c in ("joint", "momentum")]
    for one, other in zip(*both, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-9)


def test_contact_acts_in_momenta():
    box = lw.Builder().link("box", 1.0, (0, 0, 0), (0.01, 0.01, 0.01)).joint("free", lw.Floating(), "ground", "box")
    mech = box.build("box").with_shape("ball", "box", "sphere", 0.1).with_ground(0.0).with_contact(step=1e-3)
    q, v = np.array([1.0, 0, 0, 0, 0, 0, 0.11]), np.array([0.5, 0, 0, 0.3, 0, -0.5])
    both = [
        lw.rollout(mech, q, v, None, 5e-4, 400, "rk4", coordinates=coordinates, final_only=True)
        for coordinates in ("joint", "momentum")
    ]
    assert both[0][0][6] < 0.12  # it has touched the ground
    np.testing.assert_allclose(both[1][0], both[0][0], atol=2e-5)


@pytest.mark.parametrize("coordinates", VARIABLES)
def test_rollouts_of_batches(coordinates):
    mech = tree_of(3, 2, True).mech
    rng = np.random.default_rng(3)
    q, v = lw.random_state(mech, rng, (3, 5))
    tau = rng.normal(size=(40, mech.nv))
    expected = lw.rollout(mech, q, v, tau, 1e-3, 40)
    found = lw.rollout(mech, q, v, tau, 1e-3, 40, coordinates=coordinates)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-8 * np.abs(other).max())
    last = lw.rollout(mech, q, v, tau, 1e-3, 40, coordinates=coordinates, final_only=True)
    tenth = lw.rollout(mech, q, v, tau, 1e-3, 40, coordinates=coordinates, every=10)
    for whole, end, few in zip(found, last, tenth, strict=True):
        np.testing.assert_allclose(whole[..., -1, :], end, rtol=1e-11, atol=1e-13)
        np.testing.assert_allclose(whole[..., ::10, :], few, rtol=1e-11, atol=1e-13)
    assert all(np.array_equal(path[..., 0, :], start) for path, start in zip(found, (q, v), strict=True))


def test_reference_parameters_and_single_precision():
    mech = lw.mechanisms.double_pendulum()
    rng = np.random.default_rng(3)
    q, v = lw.random_state(mech, rng, (9,))
    masses = {"mass": mech.parameters.masses * rng.uniform(0.5, 2.0, (9, mech.n_links))}
    options = {"parameters": masses, "coordinates": "momentum"}
    found = lw.rollout(mech, q, v, None, 1e-3, 20, **options)
    for more in ({}, {"every": 5}, {"final_only": True}):
        reference = lw.rollout(mech, q, v, None, 1e-3, 20, target="numpy", **options, **more)
        for one, other in zip(lw.rollout(mech, q, v, None, 1e-3, 20, **options, **more), reference, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(found[0], lw.rollout(mech, q, v, None, 1e-3, 20, parameters=masses)[0], atol=1e-9)
    single = lw.rollout(mech, *(x.astype(np.float32) for x in (q, v)), None, 1e-3, 20, coordinates="momentum")
    assert single[0].dtype == np.float32
    np.testing.assert_allclose(single[0], lw.rollout(mech, q, v, None, 1e-3, 20)[0], atol=1e-4)


def test_mimic_joints():
    mech, *_ = tied_and_free(3)
    q, v = lw.random_state(mech, np.random.default_rng(0))
    reference = {"target": "numpy", "final_only": True}
    expected = lw.rollout(mech, q, v, None, 1e-3, 3, **reference)
    for coordinates in ("momentum", "nu"):
        found = lw.rollout(mech, q, v, None, 1e-3, 3, coordinates=coordinates, **reference)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-7 * np.abs(other).max())


def test_gradients_of_rollouts_in_momenta():
    mech, steps = lw.mechanisms.double_pendulum(), 20
    q, v, tau = np.array([0.3, 0.5]), np.array([0.1, -0.4]), np.full((steps, 2), 0.2)
    weights = np.array([1.0, -2.0]), np.array([0.5, 0.3])
    by = [
        lw.derivatives.rollout_vjp(mech, *path, tau, 1e-2, steps, weights, coordinates=coordinates)
        for coordinates in ("joint", "momentum")
        for path in (lw.rollout(mech, q, v, tau, 1e-2, steps, coordinates=coordinates),)
    ]
    for name in ("q0", "v0", "tau"):
        np.testing.assert_allclose(by[1][name], by[0][name], atol=1e-6)


@pytest.mark.parametrize("method", ["symplectic_euler", "stormer_verlet", "implicit_midpoint"])
def test_symplectic_methods_with_and_without_compiled_steps(method):
    """A controller, called in every stage, takes the same steps."""
    mech = lw.mechanisms.double_pendulum()
    q, v = np.array([0.3, 0.5]), np.array([0.1, -0.4])
    ends = [
        lw.simulate(mech, q, v, 0.2, control, method, 1e-2, settings=lw.motion.Settings(coordinates="momentum")).q[-1]
        for control in (None, lambda t, q, v: np.zeros(2))
    ]
    np.testing.assert_allclose(*ends, atol=1e-12)
    np.testing.assert_allclose(
        lw.rollout(mech, q, v, None, 1e-2, 20, method, coordinates="momentum", final_only=True)[0], ends[0], atol=1e-12
    )


def test_resumed_motions_are_one_motion():
    mech = lw.mechanisms.double_pendulum()
    q, v = np.array([0.3, 0.5]), np.array([0.1, -0.4])
    whole, half = (
        lw.simulate(
            mech,
            q,
            v,
            duration,
            method="stormer_verlet",
            step=1e-2,
            settings=lw.motion.Settings(coordinates="momentum"),
        )
        for duration in (0.4, 0.2)
    )
    assert np.array_equal(half.resume(0.2).q[-1], whole.q[-1])


def test_what_is_refused():
    arm, four_bar, ball = lw.mechanisms.planar_arm(2), lw.mechanisms.four_bar(), tree_of(2, 1, True).mech
    with pytest.raises(MechanismError, match="has loops, and compiled steps in these coordinates do not keep them"):
        lw.rollout(four_bar, None, None, None, 1e-3, 1, coordinates="momentum")
    with pytest.raises(MechanismError, match="momenta that the loops of mechanism 'four_bar' tie together are none"):
        lw.simulate(
            four_bar,
            None,
            None,
            1.0,
            settings=lw.motion.Settings(coordinates="momentum"),
            method="stormer_verlet",
            step=1e-3,
        )
    with pytest.raises(MechanismError, match="nonholonomic constraints leave no such coordinates"):
        lw.simulate(
            lw.mechanisms.snakeboard(),
            None,
            None,
            1.0,
            settings=lw.motion.Settings(coordinates="momentum"),
            method="stormer_verlet",
            step=1e-3,
        )
    for call in (lw.rollout, lambda m, *rest, **more: simulate(m, *rest[:2], 1.0, **more)):
        with pytest.raises(ValueError, match="symplectic in canonical coordinates: give coordinates='momentum'"):
            call(arm, None, None, None, 1e-3, 1, method="stormer_verlet")
        with pytest.raises(MechanismError, match="axes that rotate with it: take method='rk4'"):
            call(ball, None, None, None, 1e-3, 1, method="implicit_midpoint", coordinates="momentum")
        with pytest.raises(ValueError, match="did you mean 'momentum'"):
            call(arm, None, None, None, 1e-3, 1, coordinates="momenta")
    q, v = np.zeros(3), np.array([0.3, -0.2, 0.5])
    np.testing.assert_allclose(
        lw.formulations.momenta.momenta(four_bar, q, v), lw.mass_matrix(four_bar, q) @ v, rtol=1e-12
    )


@pytest.mark.parametrize("coordinates", ["momentum", "nu", "xi"])
@pytest.mark.parametrize("name", ["one loop", "rolling", "five_bar"])
def test_motions_with_constraints(name, coordinates):
    """The same as in joint velocities, with constraints kept; adaptive and fixed steps, springs, forces."""
    if name == "five_bar":
        mech = lw.mechanisms.five_bar()
        q, v = lw.constraints.assemble(mech, {mech.joint_names[0]: 1.9}), np.zeros(mech.nv)
    else:
        this = case(name)
        mech, q, v = this.mech, this.q, 0.3 * this.v
    settings = {"rtol": 1e-9, "control": lambda t, q, v: -0.3 * v + np.sin(3.0 * t)}
    plain = simulate(mech, q, v, 0.15, **settings)
    other = simulate(mech, q, v, 0.15, settings=lw.motion.Settings(coordinates=coordinates), **settings)
    fixed = lw.simulate(
        mech,
        q,
        v,
        0.15,
        settings=lw.motion.Settings(coordinates=coordinates),
        method="rk4",
        step=2.5e-3,
        control=settings["control"],
    )
    for path in (other, fixed):
        np.testing.assert_allclose(lw.difference(mech, path.q[-1], plain.q[-1]), 0.0, atol=1e-6)
        np.testing.assert_allclose(path.v[-1], plain.v[-1], atol=1e-5)
        assert np.abs(lw.constraints.constraint_jacobian(mech, path.q[-1]) @ path.v[-1]).max() < 1e-8
