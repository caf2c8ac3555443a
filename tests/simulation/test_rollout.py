"""Rollouts: the compiled loop over time against single steps, an independent integrator and the laws of mechanics."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.compiler.runtime import threads
from linkwise.mechanism.library import EVERY_KIND
from tests.mechanics.algorithms.test_integration import exact, quaternions
from tests.physics.test_mimic import tied_and_free
from tests.physics.test_motion import _without_rotors as without_rotors

METHODS = ("rk4", "semi_implicit")
every_method = pytest.mark.parametrize("method", METHODS)
ARM = lw.mechanisms.puma560()
TREE = lw.mechanisms.random_tree(3, 21, joints=("spherical", "revolute"), floating_base=True)


def stepwise(mech, q, v, tau, dt, steps, method="rk4", **options):
    """The same by calling the kernel of one step; ``tau`` is (..., steps, nv)."""
    kernel = lw.compile(f"{method}_step", mech, **options)
    states = [np.concatenate([q, v], axis=-1)]
    for k in range(steps):
        states.append(kernel(states[-1][..., : mech.nq], states[-1][..., mech.nq :], tau[..., k, :], dt))
    path = np.stack(states, axis=-2)
    return path[..., : mech.nq], path[..., mech.nq :]


def draw(mech: lw.Mechanism, shape=(5,), steps: int = 6, seed: int = 0):
    rng = np.random.default_rng(seed)
    q, v = lw.random_state(mech, rng, shape)
    return q, v, rng.normal(size=(*shape, steps, mech.nv))


def same(found, expected, tolerance: float = 1e-12) -> None:
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=tolerance * max(1.0, np.abs(other).max(initial=0.0)))


# -- against other ways to the same motion --------------------------------------------------------------


@every_method
@pytest.mark.parametrize("seed", range(3))
def test_against_single_steps(seed, method):
    mech = lw.mechanisms.random_tree(2 + seed, seed, joints=EVERY_KIND, floating_base=seed == 2)
    q, v, tau = draw(mech, (3, 5))
    found = lw.rollout(mech, q, v, tau, 0.01, 6, method)
    assert found[0].shape == (3, 5, 7, mech.nq) and found[1].shape == (3, 5, 7, mech.nv)
    same(found, stepwise(mech, q, v, tau, 0.01, 6, method), 1e-13)
    same(found, lw.rollout(mech, q, v, tau, 0.01, 6, method, target="numpy"))


@pytest.mark.parametrize("seed", range(2))
def test_against_an_independent_integrator(seed):
    """Pinocchio's dynamics and SciPy's DOP853, joint forces constant in each of the long steps of the oracle."""
    mech = lw.mechanisms.random_tree(4, 50 + seed, joints=EVERY_KIND, floating_base=seed == 1)
    q, v, tau = draw(mech, (), 3, seed)
    fine = 20  # our steps for one of theirs
    found_q, found_v = lw.rollout(mech, q, v, np.repeat(tau, fine, axis=0), 0.04 / fine, 3 * fine, every=fine)
    for k in range(3):
        state = exact(mech, q, v, tau[k], 0.04)
        q, v = state[: mech.nq], state[mech.nq :]
        np.testing.assert_allclose(found_q[k + 1], q, rtol=1e-7, atol=1e-7)
        np.testing.assert_allclose(found_v[k + 1], v, rtol=1e-7, atol=1e-7 * max(1.0, np.abs(v).max()))


def test_mimic_joints():
    tied, *_ = tied_and_free(1)
    q, v, tau = draw(tied)
    same(lw.rollout(tied, q, v, tau, 1e-3, 6), stepwise(tied, q, v, tau, 1e-3, 6), 1e-13)


def test_wrenches_and_their_shapes():
    mech = lw.mechanisms.random_tree(3, 7, joints=("revolute", "spherical"))
    q, v, tau = draw(mech, (4,), 3)
    pushes = np.random.default_rng(1).normal(size=(4, 3, mech.n_links, 6))
    kernel = lw.compile("rk4_step", mech, ports="wrenches")

    def expected(pushes):
        state = np.concatenate([q, v], axis=-1)
        for k in range(3):
            state = kernel(state[:, : mech.nq], state[:, mech.nq :], tau[:, k], 0.01, pushes[:, k])
        return state[:, : mech.nq], state[:, mech.nq :]

    for given in (pushes, pushes[0], pushes[0, 0], pushes[:, :1]):
        full = np.broadcast_to(given, pushes.shape) if given.ndim != 4 or given.shape[1] != 1 else pushes[:, [0, 0, 0]]
        same(lw.rollout(mech, q, v, tau, 0.01, 3, wrenches=given, final_only=True), expected(full), 1e-13)


def test_parameters_differ_from_state_to_state():
    """A rollout with other masses is that of the mechanism with these masses."""
    q, v, tau = draw(ARM, (3,), 4)
    masses = ARM.parameters.masses * np.array([[1.0], [1.3], [0.7]])
    gravity = np.array([0.0, 0.0, -1.62])
    found = lw.rollout(ARM, q, v, tau, 0.01, 4, parameters={"mass": masses, "gravity": gravity})
    kernel = lw.compile("rk4_step", ARM, parameters=("mass", "gravity"))
    state = np.concatenate([q, v], axis=-1)
    for k in range(4):
        state = kernel(state[:, :6], state[:, 6:], tau[:, k], 0.01, masses, gravity)
        same((found[0][:, k + 1], found[1][:, k + 1]), (state[:, :6], state[:, 6:]), 1e-13)
    own = lw.rollout(ARM.with_gravity(gravity), q[0], v[0], tau[0], 0.01, 4)
    same((found[0][0], found[1][0]), own, 1e-11)


def test_links_without_mass_may_stay_so():
    """The first link of this arm has a moment of inertia alone: randomized by factors it is still no mass."""
    assert ARM.parameters.masses[0] == 0.0
    q, v, _ = draw(ARM, (2,))
    heavier = {"mass": ARM.parameters.masses * np.array([[1.0], [1.5]]), "inertia": ARM.parameters.inertias}
    found = lw.rollout(ARM, q, v, None, 0.01, 2, parameters=heavier, final_only=True)
    same([x[0] for x in found], lw.rollout(ARM, q[0], v[0], None, 0.01, 2, final_only=True), 1e-12)


@every_method
def test_feedback_is_that_of_the_start_of_each_step(method):
    mech = lw.mechanisms.random_tree(2, 3, joints=("spherical", "revolute"))
    steps, rng = 5, np.random.default_rng(3)
    q, v, tau = draw(mech, (4,), steps)
    targets, _ = lw.random_state(mech, rng, (4, steps))
    kp, kd = rng.uniform(1.0, 9.0, mech.nv), rng.uniform(0.0, 1.0, (4, mech.nv))
    kernel = lw.compile(f"{method}_step", mech)

    def expected(targets, kp, kd):
        state = np.concatenate([q, v], axis=-1)
        for k in range(steps):
            here, speed = state[:, : mech.nq], state[:, mech.nq :]
            forces = tau[:, k] + kp * lw.difference(mech, here, targets[:, k]) - kd * speed
            state = kernel(here, speed, forces, 0.01)
        return state[:, : mech.nq], state[:, mech.nq :]

    for target in ("cpu", "numpy"):
        options = {"feedback": {"target": targets, "kp": kp, "kd": kd}, "final_only": True, "target": target}
        same(lw.rollout(mech, q, v, tau, 0.01, steps, method, **options), expected(targets, kp, kd), 1e-13)
    one = np.broadcast_to(targets[0, 0], targets.shape)
    options = {"feedback": {"target": targets[0, 0], "kp": 0.3}, "final_only": True}
    same(lw.rollout(mech, q, v, tau, 0.01, steps, method, **options), expected(one, 0.3, 0.0), 1e-13)
    options = {"feedback": {"kd": 0.1}, "final_only": True}
    same(lw.rollout(mech, q, v, tau, 0.01, steps, method, **options), expected(one, 0.0, 0.1), 1e-13)
    if method == "semi_implicit":
        single = [x.astype(np.float32) for x in (q, v, tau)]
        assert lw.rollout(mech, *single, 0.01, steps, method, **options)[0].dtype == np.float32


def test_damping_of_the_mechanism_acts_within_steps_and_as_feedback_once_per_step():
    """Of fourth order as elements, of first order as feedback, which is constant during a step."""
    arm = lw.mechanisms.planar_arm(2)
    arm = arm.parameters.with_damping({joint: 0.5 for joint in arm.joint_names})
    exact = lw.simulate(
        arm,
        [0.3, 0.2],
        None,
        0.5,
        passive=lw.forces.Passive.of(arm),
        settings=lw.motion.Settings(rtol=1e-12, atol=1e-12),
    ).q[-1]

    def error(mech, steps, **options):
        end, _ = lw.rollout(mech, [0.3, 0.2], None, None, 0.5 / steps, steps, final_only=True, **options)
        return np.abs(end - exact).max()

    feedback = {"feedback": {"kd": arm.parameters.damping}}
    bare = arm.with_acting(False)
    assert error(bare, 200, **feedback) / error(bare, 400, **feedback) == pytest.approx(2.0, abs=0.1)
    assert error(arm, 20) / error(arm, 40) == pytest.approx(16.0, rel=0.15)
    np.testing.assert_array_equal(error(arm, 10), error(bare, 10, passive=lw.forces.Passive.of(arm)))


def test_feedback_with_wrenches_and_parameters():
    arm = lw.mechanisms.planar_arm(2)
    q, v, tau = draw(arm, (2,), 3)
    pushes = np.random.default_rng(1).normal(size=(3, 2, 6))
    target = np.full(2, 0.2)
    options = {"wrenches": pushes, "parameters": {"mass": 1.5 * arm.parameters.masses}, "final_only": True}
    found = lw.rollout(arm, q, v, tau, 0.01, 3, feedback={"target": target, "kp": 2.0, "kd": 0.5}, **options)
    for k in range(3):
        forces = (tau[:, k] + 2.0 * (target - q) - 0.5 * v)[:, None]
        q, v = lw.rollout(arm, q, v, forces, 0.01, 1, **options | {"wrenches": pushes[k]})
    same(found, (q, v), 1e-12)


# -- shapes, precision, memory --------------------------------------------------------------------------


def test_shapes_of_joint_forces_and_broadcasting():
    steps = 4
    q, v, tau = draw(TREE, (3,), steps)
    nothing = np.zeros((3, steps, TREE.nv))
    cases = {
        "none": (None, nothing),
        "constant": (tau[0, 0], nothing + tau[0, 0]),
        "in every step": (tau[0], nothing + tau[0]),
        "of every state": (tau, tau),
        "of every state, constant": (tau[:, :1], nothing + tau[:, :1]),
        "a list": (tau[0, 0].tolist(), nothing + tau[0, 0]),
    }
    for given, full in cases.values():
        same(lw.rollout(TREE, q, v, given, 0.01, steps), stepwise(TREE, q, v, full, 0.01, steps), 1e-13)
    # one state, many forces; a batch of times for each state; what differs broadcasts
    found = lw.rollout(TREE, q[0], v[0], tau[:, None], np.array([0.01, 0.02]), steps)
    assert found[0].shape == (3, 2, steps + 1, TREE.nq)
    for i in range(3):
        for j, dt in enumerate((0.01, 0.02)):
            alone = lw.rollout(TREE, q[0], v[0], tau[i], dt, steps)
            same((found[0][i, j], found[1][i, j]), alone, 1e-14)
    found = lw.rollout(TREE, q[0], v[0], None, 0.01, steps)
    assert found[0].shape == (steps + 1, TREE.nq) and found[1].shape == (steps + 1, TREE.nv)


def test_keeping_some_states_only():
    q, v, tau = draw(TREE, (2, 3), 12)
    whole = lw.rollout(TREE, q, v, tau, 0.01, 12)
    for every in (1, 2, 3, 4, 6, 12):
        found = lw.rollout(TREE, q, v, tau, 0.01, 12, every=every)
        for some, all_ in zip(found, whole, strict=True):
            np.testing.assert_array_equal(some, all_[:, :, ::every])
    for target in ("cpu", "numpy"):
        last = lw.rollout(TREE, q, v, tau, 0.01, 12, final_only=True, target=target)
        same(last, [x[:, :, -1] for x in whole])
        assert last[0].shape == (2, 3, TREE.nq)


@every_method
def test_zero_steps_empty_batches_and_nothing_that_moves(method):
    q, v, tau = draw(TREE, (2,), 3)
    for target in ("cpu", "numpy"):
        found = lw.rollout(TREE, q, v, np.zeros((0, TREE.nv)), 0.1, 0, method, target=target)
        np.testing.assert_array_equal(found[0], q[:, None])
        np.testing.assert_array_equal(found[1], v[:, None])
        last = lw.rollout(TREE, q, v, None, 0.1, 0, method, final_only=True, target=target)
        np.testing.assert_array_equal(last[0], q)
        empty = lw.rollout(TREE, q[:0], v[:0], tau[:0], 0.1, 3, method, target=target)
        assert empty[0].shape == (0, 4, TREE.nq) and empty[1].shape == (0, 4, TREE.nv)
    still = lw.Builder().link("pole", 1.0).joint("weld", lw.Fixed(), "ground", "pole").build("still")
    assert lw.rollout(still, np.zeros((5, 0)), np.zeros((5, 0)), None, 0.1, 3, method)[0].shape == (5, 4, 0)


def test_single_precision_is_kept():
    q, v, tau = (x.astype(np.float32) for x in draw(TREE, (4,), 10))
    found = lw.rollout(TREE, q, v, tau, 0.01, 10)
    assert found[0].dtype == found[1].dtype == np.float32
    same(found, lw.rollout(TREE, q.astype(float), v.astype(float), tau.astype(float), 0.01, 10), 1e-4)
    assert lw.rollout(TREE, q, v, None, 0.01, 10)[0].dtype == np.float32
    assert lw.rollout(TREE, q, v.astype(float), tau, 0.01, 10)[0].dtype == np.float64


def test_out_and_strides():
    q, v, tau = draw(TREE, (4,), 6)
    expected = lw.rollout(TREE, q, v, tau, 0.01, 6)
    out = (np.full((7, TREE.nq, 4), np.nan).transpose(2, 0, 1), np.full((4, 14, TREE.nv), np.nan)[:, ::2])
    found = lw.rollout(TREE, q, v, tau, 0.01, 6, out=out)
    assert found[0] is out[0] and found[1] is out[1]
    same(found, expected, 0.0)
    reversed_time = np.asfortranarray(tau[:, ::-1])[:, ::-1]
    same(lw.rollout(TREE, q, v, reversed_time, 0.01, 6), expected, 0.0)
    state = q.copy(), v.copy()  # in place
    lw.rollout(TREE, *state, tau, 0.01, 6, final_only=True, out=state)
    same(state, [x[:, -1] for x in expected], 0.0)
    np.testing.assert_array_equal(expected[0][:, 0], q)  # the arguments are as they were


def test_threads_give_the_same_bits():
    before = threads._num_threads
    q, v, tau = draw(TREE, (5003,), 40)
    try:
        results = []
        for count in (1, 4):
            lw.codegen.set_num_threads(count)
            results.append(lw.rollout(TREE, q, v, tau, 1e-3, 40, every=10))
    finally:
        threads._num_threads = before
        threads._drop_pool()
    for one, four in zip(*results, strict=True):
        np.testing.assert_array_equal(one, four)


def test_not_a_number_stays_in_its_state():
    q, v, tau = draw(TREE, (19,), 5)
    clean = lw.rollout(TREE, q, v, tau, 0.01, 5)
    q[3, 0], v[8, 2], tau[11, 3, 1] = np.nan, np.nan, np.nan
    with np.errstate(invalid="ignore"):
        found = lw.rollout(TREE, q, v, tau, 0.01, 5)
    touched = np.isnan(found[1]).any(axis=(1, 2))
    assert list(np.flatnonzero(touched)) == [3, 8, 11]
    for one, other in zip(found, clean, strict=True):
        np.testing.assert_array_equal(one[~touched], other[~touched])
    assert not np.isnan(found[1][11, :4]).any() and np.isnan(found[1][11, 4:]).any()  # and in its time


# -- laws of mechanics ----------------------------------------------------------------------------------


@every_method
def test_quaternions_stay_unit_over_a_million_steps(method):
    """One state, a million steps one after the other in the compiled loop: a free top that turns all the time."""
    mech = lw.mechanisms.random_tree(1, 3, joints=("spherical",)).with_gravity((0.0, 0.0, 0.0))
    q, v = lw.random_state(mech, np.random.default_rng(0))
    found_q, found_v = lw.rollout(mech, 1.0005 * q, 5.0 * v, None, 1e-3, 1_000_000, method, every=1000)
    assert np.abs(np.linalg.norm(found_q[1:], axis=-1) - 1.0).max() < 1e-12
    assert np.abs(np.diff(found_q, axis=0)).max() > 0.1 and np.isfinite(found_v).all()
    if method == "rk4":  # the energy of a free top
        energy = lw.kinetic_energy(mech, found_q, found_v)
        assert np.ptp(energy) < 1e-6 * energy[0]


def test_quaternions_of_a_tree_stay_unit():
    q, v, tau = draw(TREE, (64,), 1)
    found_q, _ = lw.rollout(TREE, q, v, 0.1 * tau, 1e-3, 2000, every=100)
    for at in quaternions(TREE):
        assert np.abs(np.linalg.norm(found_q[..., at], axis=-1) - 1.0).max() < 1e-14


def test_energy_of_a_pendulum():
    """Its mass matrix is constant: the semi-implicit method is symplectic then, and makes an error of the energy that
    swings and does not grow; that of fourth order makes hardly any."""
    mech = lw.mechanisms.planar_arm(1)
    q, v, dt, steps = np.array([0.3]), np.array([0.0]), 1e-3, 400_000

    def error(method):
        path = lw.rollout(mech, q, v, None, dt, steps, method, every=10)
        energy = lw.kinetic_energy(mech, *path) + lw.potential_energy(mech, path[0])
        scale = np.ptp(lw.potential_energy(mech, path[0]))
        return np.abs(energy - energy[0]).reshape(-1)[1:].reshape(10, -1).max(axis=1) / scale

    swinging = error("semi_implicit")
    assert 1e-5 < swinging[0] < 1e-2
    assert swinging.max() < 1.01 * swinging[0]
    assert error("rk4").max() < 1e-8


def test_energy_of_a_double_pendulum():
    """Its mass matrix is not constant: the semi-implicit method loses energy, in proportion to the step."""
    mech = lw.mechanisms.planar_arm(2)

    def lost(dt):
        path = lw.rollout(mech, [0.3, 0.3], [0.0, 0.0], None, dt, round(2.0 / dt), "semi_implicit", final_only=True)
        return (
            lw.kinetic_energy(mech, *path) + lw.potential_energy(mech, path[0]) - lw.potential_energy(mech, [0.3, 0.3])
        )

    assert lost(1e-4) / lost(5e-5) == pytest.approx(2.0, rel=0.05)


def test_momentum_of_a_free_flight_and_time_reversal():
    mech = lw.mechanisms.random_tree(3, 5, joints=("revolute", "spherical"), floating_base=True)
    mech = without_rotors(mech).with_gravity((0.0, 0.0, 0.0))  # a rotor's momentum is not that of a link
    q, v, _ = draw(mech, (6,))
    path = lw.rollout(mech, q, 0.3 * v, None, 2e-3, 250)
    momentum = lw.momentum(mech, *path)
    assert np.ptp(momentum, axis=1).max() < 1e-8 * np.abs(momentum).max()
    back = lw.rollout(mech, path[0][:, -1], path[1][:, -1], None, -2e-3, 250, final_only=True)
    assert np.abs(lw.difference(mech, q, back[0])).max() < 1e-8
    assert np.abs(back[1] - 0.3 * v).max() < 1e-8
