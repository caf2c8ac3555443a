"""Rollouts of closed mechanisms against ``simulate`` by singular value decompositions, step by step."""

from __future__ import annotations

import dataclasses
import warnings

import numpy as np
import pytest

import linkwise as lw
from linkwise.compiler.runtime import threads
from linkwise.constraints import assembly
from linkwise.mechanics.algorithms import integration
from linkwise.mechanics.algorithms.catalogue import ALGORITHMS, register_integrator
from linkwise.motion import constrained
from linkwise.motion import step as motion_step
from tests.constraints.built_in import STRETCHED, SYMMETRIC, built, random_state
from tests.oracle.random_closed import case
from tests.simulated import simulate

DT, STEPS = 1e-3, 20


def geared_five_bar() -> lw.Mechanism:
    """A coupling between two joints of the loop, which leaves one degree of freedom."""
    offset = SYMMETRIC[0] + 0.7 * SYMMETRIC[3]
    return lw.mechanisms.five_bar().with_loops(lw.constraints.Coupling("gear", {"joint1": 1.0, "joint4": 0.7}, offset))


def drawn(seed: int, floating: bool, mimics: bool) -> lw.Mechanism:
    """A random closed mechanism, its loops of several kinds of joints."""
    mech = case("general", seed).mech
    within = {i for loop in mech.loops for i in loop.bodies_within(mech)}
    assert any(isinstance(body.kind, lw.Floating) for body in mech.bodies) == floating
    assert any(mech.bodies[i].mimic for i in within) == mimics
    return mech


MECHANISMS = {
    "four_bar": lambda: built("four_bar"),
    "five_bar": lambda: built("five_bar"),
    "loader": lambda: built("loader"),
    "delta_robot": lambda: built("delta_robot"),
    "branches on a floating base": lambda: lw.mechanisms.four_bar_branches(2, 1),
    "coupling in a loop": geared_five_bar,
    "mimic joint in a loop": lambda: drawn(13, False, True),
}


def states(name: str, count: int = 3):
    """Closed states away from singular positions, with joint forces of every step."""
    rng = np.random.default_rng(5)
    mech = MECHANISMS[name]()
    if name in ("four_bar", "five_bar", "loader", "delta_robot"):
        q, v = (np.array(x) for x in zip(*(random_state(name, seed) for seed in range(count)), strict=True))
    else:
        start = SYMMETRIC if name == "coupling in a loop" else mech.initial
        if name == "mimic joint in a loop":
            start = case("general", 13).states[0].q
        q = np.tile(lw.constraints.assemble(mech, start), (count, 1))
        q, v = lw.constraints.project(mech, q, 0.5 * rng.normal(size=(count, mech.nv)))
    return mech, q, v, rng.normal(size=(count, STEPS, mech.nv))


@pytest.fixture
def by_decompositions(monkeypatch):
    """``simulate`` without any elimination of loops."""
    monkeypatch.setattr(assembly, "project_by_elimination", lambda *given: None)

    def follow(mech, q, v, tau, method="rk4", step=DT, **options):
        return simulate(
            mech,
            q,
            v,
            step * len(tau),
            control=tau,
            method=method,
            step=step,
            settings=lw.motion.Settings(formulation="svd"),
            **options,
        )

    return follow


def same(found, expected, tolerance: float = 1e-9) -> None:
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=tolerance * max(1.0, np.abs(other).max(initial=0.0)))


@pytest.fixture
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


# -- against simulate -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MECHANISMS)
def test_every_step_is_that_of_simulate(name, by_decompositions, quiet):
    mech, q, v, tau = states(name)
    found = lw.rollout(mech, q, v, tau, DT, STEPS)
    assert found[0].shape == (3, STEPS + 1, mech.nq) and found[1].shape == (3, STEPS + 1, mech.nv)
    for i in range(3):
        expected = by_decompositions(mech, q[i], v[i], tau[i])
        same((found[0][i], found[1][i]), (expected.q, expected.v), 1e-10)
        assert np.abs(expected.q[-1] - q[i]).max() > 1e-4
    assert np.abs(lw.constraints.position_error(mech, found[0])).max() < 1e-13
    opening = lw.constraints.constraint_jacobian(mech, found[0]) @ found[1][..., None]
    assert np.abs(opening).max() < 1e-11 * np.abs(found[1]).max()


@pytest.mark.parametrize("name", ["five_bar", "loader"])
def test_the_method_of_first_order(name, by_decompositions, quiet):
    mech, q, v, tau = states(name)
    found = lw.rollout(mech, q, v, tau, DT, STEPS, "semi_implicit")
    for i in range(3):
        expected = by_decompositions(mech, q[i], v[i], tau[i], "semi_implicit")
        same((found[0][i], found[1][i]), (expected.q, expected.v), 1e-10)
    assert np.abs(lw.constraints.position_error(mech, found[0])).max() < 1e-13


def test_a_method_of_the_user(by_decompositions):
    before = [dict(table) for table in (integration.METHODS, ALGORITHMS)]
    try:
        register_integrator("heun", integration.Tableau(stages=((), (1.0,)), weights=(0.5, 0.5)))
        mech, q, v, tau = states("five_bar", 1)
        found = lw.rollout(mech, q[0], v[0], tau[0], DT, STEPS, "heun")
        expected = by_decompositions(mech, q[0], v[0], tau[0], "heun")
        same(found, (expected.q, expected.v), 1e-10)
    finally:
        for table, old in zip((integration.METHODS, ALGORITHMS), before, strict=True):
            table.clear()
            table.update(old)


def test_energy_and_gaps_over_a_second(by_decompositions, quiet):
    """As good as those of ``simulate`` with the same steps, short or long."""
    mech, q, v, _ = states("five_bar")
    for step, steps, most in ((1e-3, 500, 1e-9), (1e-2, 50, 1e-4)):
        found = lw.rollout(mech, q[0], v[0], None, step, steps)
        energy = lw.kinetic_energy(mech, *found) + lw.potential_energy(mech, found[0])
        expected = by_decompositions(mech, q[0], v[0], np.zeros((steps, 4)), step=step)
        assert np.ptp(energy) < 1.01 * np.ptp(expected.energy) + 1e-9 and np.ptp(energy) < most
        same(found, (expected.q, expected.v), 1e-9)
        assert np.abs(lw.constraints.position_error(mech, found[0])).max() < 1e-14


# -- what trees can -------------------------------------------------------------------------------------


def stepwise(mech, q, v, tau, pushes=None, feedback=None):
    """The last state, by calls of the compiled step one after the other."""
    kernel = lw.compile("closed_rk4_step", mech, ports=() if pushes is None else "wrenches")
    for k in range(tau.shape[-2]):
        forces = tau[..., k, :]
        if feedback is not None:
            forces = forces + feedback["kp"] * (feedback["target"] - q) - feedback["kd"] * v
        state, reliability, _ = kernel(q, v, forces, DT, *(() if pushes is None else (pushes[..., k, :, :],)))
        assert np.all(reliability > 1.0)
        q, v = state[..., : mech.nq], state[..., mech.nq :]
    return q, v


def test_wrenches_feedback_and_records(quiet):
    mech, q, v, tau = states("five_bar", 4)
    pushes = np.random.default_rng(1).normal(size=(4, STEPS, mech.n_links, 6))
    feedback = {"target": SYMMETRIC, "kp": np.full(4, 30.0), "kd": np.full(4, 2.0)}
    expected = stepwise(mech, q, v, tau, pushes, feedback)
    whole = lw.rollout(mech, q, v, tau, DT, STEPS, wrenches=pushes, feedback=feedback)
    same([x[:, -1] for x in whole], expected, 1e-13)
    same(lw.rollout(mech, q, v, tau, DT, STEPS, wrenches=pushes, feedback=feedback, final_only=True), expected, 1e-13)
    some = lw.rollout(mech, q, v, tau, DT, STEPS, wrenches=pushes, feedback=feedback, every=5)
    same(some, [x[:, ::5] for x in whole], 0.0)
    same(whole, lw.rollout(mech, q, v, tau, DT, STEPS, wrenches=pushes, feedback=feedback, target="numpy"), 1e-12)
    state = q.copy(), v.copy()
    lw.rollout(mech, *state, tau, DT, STEPS, wrenches=pushes, feedback=feedback, final_only=True, out=state)
    same(state, expected, 1e-13)


def test_batches_broadcast_and_steps_differ(quiet):
    mech, q, v, tau = states("four_bar", 2)
    found = lw.rollout(mech, q[:, None], v[:, None], tau[0], np.array([1e-3, 2e-3, -1e-3]), STEPS)
    assert found[0].shape == (2, 3, STEPS + 1, mech.nq)
    for i in range(2):
        for k, dt in enumerate((1e-3, 2e-3, -1e-3)):
            same([x[i, k] for x in found], lw.rollout(mech, q[i], v[i], tau[0], dt, STEPS), 1e-13)
    back = lw.rollout(mech, *(x[0, 0, -1] for x in found), tau[0, ::-1], -1e-3, STEPS, final_only=True)
    same(back, (q[0], v[0]), 1e-9)


def test_single_precision(quiet):
    mech, q, v, tau = states("loader")
    found = lw.rollout(mech, *(x.astype(np.float32) for x in (q, v, tau)), DT, STEPS)
    assert found[0].dtype == found[1].dtype == np.float32
    same(found, lw.rollout(mech, q, v, tau, DT, STEPS), 1e-4)
    assert np.abs(lw.constraints.position_error(mech, found[0].astype(float))).max() < 1e-5


def test_numbers_of_the_mechanism_as_inputs(quiet):
    mech, q, v, tau = states("five_bar")
    masses = mech.parameters.masses * np.array([[1.0], [1.5], [0.8]])
    found = lw.rollout(mech, q, v, tau, DT, STEPS, parameters={"mass": masses, "gravity": (0.0, -1.62, 0.0)})
    for i, own in enumerate(masses.tolist()):
        bodies = [dataclasses.replace(body, mass=mass) for body, mass in zip(mech.bodies, own, strict=True)]
        variant = dataclasses.replace(mech, bodies=tuple(bodies)).with_gravity((0.0, -1.62, 0.0))
        same([x[i] for x in found], lw.rollout(variant, q[i], v[i], tau[i], DT, STEPS), 1e-12)


def test_variants_share_code(quiet):
    mech, q, v, tau = states("four_bar", 1)
    for heavier in (0.1, 0.2, 0.3):
        variant = mech.with_payload("coupler", heavier)
        found = lw.rollout(variant, q[0], v[0], tau[0], DT, STEPS, final_only=True)
        same(found, stepwise(variant, q[0], v[0], tau[0]), 1e-12)


def test_threads_give_the_same_bits(quiet):
    mech, q, v, _ = states("four_bar", 2)
    before, results = threads._num_threads, []
    q, v = np.repeat(q, 2000, axis=0), np.repeat(v, 2000, axis=0) * np.linspace(0.5, 1.0, 4000)[:, None]
    try:
        for count in (1, 4):
            lw.codegen.set_num_threads(count)
            results.append(lw.rollout(mech, q, v, None, DT, 20, final_only=True))
    finally:
        threads._num_threads = before
        threads._drop_pool()
    same(*results, 0.0)


def test_nothing_to_do(quiet):
    mech, q, v, _ = states("four_bar", 2)
    same(lw.rollout(mech, q, v, None, DT, 0), (q[:, None], v[:, None]), 1e-15)
    assert lw.rollout(mech, q[:0], v[:0], None, DT, 3)[0].shape == (0, 4, mech.nq)


# -- how they start -------------------------------------------------------------------------------------


def test_small_gaps_are_closed_at_the_start(quiet):
    mech, q, v, _ = states("five_bar")
    off = q + 1e-7
    found = lw.rollout(mech, off, v, None, DT, 2)
    same((found[0][:, 0], found[1][:, 0]), lw.constraints.project(mech, off, v), 1e-12)
    assert np.array_equal(lw.rollout(mech, q, v, None, DT, 2)[0][:, 0], q)  # what is closed stays as it is


def test_open_loops_are_refused():
    mech, q, v, _ = states("five_bar")
    q[1, 2] += 0.1
    with pytest.raises(
        lw.constraints.AssemblyError, match=r"loop 'support' .* in state \(1,\): .*constraints.assemble"
    ) as caught:
        lw.rollout(mech, q, v, None, DT, 2)
    assert caught.value.loop == "support"
    with pytest.raises(lw.constraints.AssemblyError, match=r"is open by .* \(metres or radians\): close it"):
        lw.rollout(mech, mech.initial, None, None, DT, 2)


def test_velocities_that_loops_do_not_allow():
    mech, q, _, _ = states("five_bar")
    with pytest.warns(lw.MechanismWarning, match="v0 violates the constraints of loop 'support'"):
        found = lw.rollout(mech, q[0], [1.0, 0.0, 0.0, 0.0], None, DT, 2)
    same([found[1][0]], [lw.constraints.project(mech, q[0], [1.0, 0.0, 0.0, 0.0])[1]], 1e-12)


def test_not_a_number_stays_in_its_state(quiet):
    mech, q, v, tau = states("four_bar")
    clean = lw.rollout(mech, q, v, tau, DT, STEPS)
    q[0, 0], tau[1, 7, 0] = np.nan, np.nan
    found = lw.rollout(mech, q, v, tau, DT, STEPS)
    same([x[2] for x in found], [x[2] for x in clean], 0.0)
    same([x[1, :8] for x in found], [x[1, :8] for x in clean], 0.0)
    assert np.isnan(found[0][0]).any() and np.isnan(found[0][1, 9:]).any()


# -- steps that compiled code cannot be relied on for ---------------------------------------------------


@pytest.mark.parametrize("method", ["rk4", "semi_implicit"])
def test_elements_act_in_steps_by_decompositions_too(method, monkeypatch):
    def driven():
        mech = lw.mechanisms.five_bar()
        first, second, *_ = mech.joint_names
        servo = lw.forces.Actuator(
            "servo", second, gain=(9.0,), bias=(0.0, -9.0, -1.0), dynamics="filter", time_constant=0.1
        )
        return mech.parameters.with_damping({first: 2.0}).with_elements(servo)

    _, q, v, _ = states("five_bar")
    options = {"ctrl": [1.0], "activation": [0.3], "return_activation": True}
    expected = lw.rollout(driven(), q, v, None, 1e-3, STEPS, method, **options)
    assert np.abs(expected[2][:, -1] - (1.0 - 0.7 * np.exp(-STEPS * 1e-3 / 0.1))).max() < 1e-3
    bare = lw.rollout(driven().with_acting(False), q, v, None, 1e-3, STEPS, method)
    assert np.abs(bare[1] - expected[1]).max() > 1e-3
    monkeypatch.setattr(motion_step, "RELIABLE", 1e9)  # no compiled step is good enough
    # Compiled steps of "semi_implicit" take damping implicitly, those by decompositions explicitly.
    near = {"rk4": 1e-11, "semi_implicit": 1e-3}[method]
    same(lw.rollout(driven(), q, v, None, 1e-3, STEPS, method, **options), expected, near)
    monkeypatch.undo()
    motion = lw.simulate(driven(), q[0], v[0], STEPS * 1e-3, method=method, step=1e-3, ctrl=[1.0], activation=[0.3])
    same((motion.q, motion.v, motion.activation), [x[0] for x in expected], 1e-9)


@pytest.mark.parametrize("method", ["rk4", "semi_implicit"])
def test_steps_by_decompositions_are_the_same(method, monkeypatch):
    options = {"feedback": {"target": SYMMETRIC, "kp": np.full(4, 30.0), "kd": np.full(4, 2.0)}}
    _, q, v, tau = states("five_bar")
    pushes = np.random.default_rng(1).normal(size=(3, STEPS, 4, 6))
    steps = np.array([1e-3, 5e-4, 2e-3])
    expected = lw.rollout(built("five_bar"), q, v, tau, steps, STEPS, method, wrenches=pushes, **options)
    monkeypatch.setattr(motion_step, "RELIABLE", 1e9)  # no compiled step is good enough
    made = []
    plain = constrained.SlowPath._reached

    def counted(self, which, *given):
        made.append(len(which))
        return plain(self, which, *given)

    monkeypatch.setattr(constrained.SlowPath, "_reached", counted)
    mech = lw.mechanisms.five_bar()  # with no compiled code yet
    found = lw.rollout(mech, q, v, tau, steps, STEPS, method, wrenches=pushes, **options)
    assert sum(made) == 3 * STEPS
    same(found, expected, 1e-11)
    some = lw.rollout(mech, q, v, tau, steps, STEPS, method, wrenches=pushes, every=5, **options)
    same(some, [x[:, ::5] for x in expected], 1e-11)
    last = lw.rollout(mech, q[0], v[0], tau[0], steps[0], STEPS, method, wrenches=pushes[0], final_only=True, **options)
    same(last, [x[0, -1] for x in expected], 1e-11)


def swinging() -> tuple[lw.Mechanism, np.ndarray, np.ndarray]:
    """Parallel cranks that fall through the horizontal, where they are singular, before 0.5 s."""
    mech, (q, v) = built("n_four_bar"), random_state("n_four_bar", 0)
    return mech, q, 3.0 * v / np.abs(v).max()


def test_through_singular_positions(by_decompositions):
    mech, q, v = swinging()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.MechanismWarning)
        expected = by_decompositions(mech, q, v, np.zeros((500, mech.nv)))
    with warnings.catch_warnings():
        warnings.simplefilter("error", lw.MechanismWarning)
        found = lw.rollout(mech, q[None], v[None], None, DT, 500)
    cranks = found[0][0, :, :3]
    np.testing.assert_allclose(cranks, cranks[:, :1] * np.ones(3), atol=1e-8)  # parallel, on their branch
    assert cranks[-1, 0] > 1.7
    energy = lw.kinetic_energy(mech, *found) + lw.potential_energy(mech, found[0])
    assert np.ptp(energy) < 1e-6 and np.ptp(expected.energy) < 1e-6
    assert np.abs(lw.constraints.position_error(mech, found[0])).max() < 1e-12
    assert np.abs(found[0][0] - expected.q).max() < 1e-6


def test_elements_and_wrenches_act_along_arcs():
    mech, q, v = swinging()
    mech = mech.with_elements(
        lw.forces.Actuator("motor", "post0_joint", gear=(2.0,), dynamics="filter", time_constant=0.05)
    )
    pushes, dampers = (
        np.random.default_rng(0).normal(size=(mech.n_links, 6)),
        lw.forces.Passive.dampers({"post1_joint": 0.3}),
    )
    options = {"wrenches": pushes, "passive": dampers, "ctrl": np.array([0.7])}
    with warnings.catch_warnings():
        warnings.simplefilter("error", lw.MechanismWarning)
        found = lw.rollout(mech, q, v, None, DT, 500, return_activation=True, **options)
        expected = simulate(mech, q, v, 500 * DT, method="rk4", step=DT, **options)
    assert found[0][-1, 0] > 1.7  # beyond the singular position
    same(found[:2], (expected.q, expected.v), 1e-6)
    assert found[2].shape == (501, 1)
    np.testing.assert_allclose(found[2][-1], 0.7 * (1.0 - np.exp(-500 * DT / 0.05)), rtol=1e-6)


def test_a_start_in_a_singular_position():
    mech = built("five_bar")
    q, v = STRETCHED[None], np.zeros((1, 4))
    with pytest.warns(lw.MechanismWarning, match=r"at t = 0 s in state \(0,\), .* is at rest in a singular position"):
        found = lw.rollout(mech, q, v, np.array([[[0.3, 0.0, 0.0, 0.0]]]), DT, 5)
    assert np.isfinite(found[0]).all() and np.abs(lw.constraints.position_error(mech, found[0])).max() < 1e-11


def test_long_steps_are_divided_near_singular_positions(quiet):
    """Motions of several radians per step, in which little is far from one."""
    mech, q, v, _ = states("five_bar")
    found = lw.rollout(mech, q, 30.0 * v, None, np.array([1e-5, 0.05, 1e-5]), 20)
    exact = lw.simulate(
        mech,
        q[1],
        30.0 * v[1],
        1.0,
        t_eval=np.linspace(0.0, 1.0, 21),
        settings=lw.motion.Settings(rtol=1e-10, atol=1e-10),
    )
    np.testing.assert_allclose(found[0][1], exact.q, atol=1e-5)
    assert np.abs(lw.constraints.position_error(mech, found[0])).max() < 1e-12
    kept = lw.rollout(mech, q[1], 30.0 * v[1], None, 0.05, 20, every=4)
    same(kept, [x[1, ::4] for x in found], 1e-12)


def test_states_and_times_are_named_where_there_are_no_arcs():
    """Backwards in time."""
    mech, q, v = swinging()
    with pytest.warns(lw.MechanismWarning) as caught:
        found = lw.rollout(mech, np.array([q, q]), np.array([0.1 * v, -v]), None, np.array([-1e-5, -DT]), 450)
    message = " ".join(str(one.message) for one in caught)
    assert "in state (1,), at t = -0." in message and "(1 of 2 states)" in message and "take smaller steps" in message
    assert np.isfinite(found[0]).all() and np.abs(lw.constraints.position_error(mech, found[0])).max() < 1e-11


def test_many_motions_beside_and_through_singular_positions(monkeypatch):
    """Energies are kept, each is what it is alone, and after a singular position compiled steps take over."""
    mech = built("five_bar")
    start = lw.constraints.assemble(mech, SYMMETRIC)
    basis = lw.constraints.null_space(mech, start)
    v = np.random.default_rng(3).normal(size=(40, 2)) @ basis.T * 2.0
    v[0] = 0.0  # the symmetric motion goes through, at 0.65 s
    counted = []
    plain = constrained.SlowPath._step
    monkeypatch.setattr(
        constrained.SlowPath,
        "_step",
        lambda self, which, *given: counted.append(which) or plain(self, which, *given),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.MechanismWarning)
        found = lw.rollout(mech, start, v, None, DT, 800)
        through = np.unique(np.concatenate(counted))
        alone = [lw.rollout(mech, start, one, None, DT, 800, every=10) for one in v[:4]]
    assert 0 < len(through) <= 3 and sum(map(len, counted)) < 200  # of 32,000 steps
    energy = lw.kinetic_energy(mech, *found) + lw.potential_energy(mech, found[0])
    assert np.ptp(energy, axis=1).max() < 1e-6 * np.abs(energy).max()
    assert np.abs(lw.constraints.position_error(mech, found[0])).max() < 1e-12
    np.testing.assert_allclose(found[0][0, :, 1], found[0][0, :, 3], atol=1e-8)  # symmetric beyond
    for k, one in enumerate(alone):
        same(one, [x[k, ::10] for x in found], 1e-9)


def test_loops_that_cannot_be_kept_closed_end_a_trajectory():
    mech, q, v, _ = states("five_bar")
    with pytest.warns(
        lw.MechanismWarning, match=r"cannot be kept closed, first in state \(1,\), at t = 0.001 s \(1 of 3"
    ):
        found = lw.rollout(mech, q, v, np.array([[[0.0] * 4], [[1e7, 0.0, 0.0, 0.0]], [[0.0] * 4]]), DT, 5)
    assert np.isnan(found[0][1, 2:]).all() and np.isfinite(found[0][::2]).all()


def test_with_other_numbers_it_is_said_what_cannot_be_relied_on():
    mech, q, v = swinging()
    heavier = {"mass": mech.parameters.masses * 1.1}
    with pytest.warns(
        lw.MechanismWarning, match="compiled steps .* cannot be relied on near singular positions, first at"
    ):
        lw.rollout(mech, q, v, None, DT, 500, parameters=heavier, final_only=True)


# -- the projection -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MECHANISMS)
def test_projection_is_that_by_decompositions(name, by_decompositions):
    mech, q, v, _ = states(name)
    rng = np.random.default_rng(2)
    off = lw.integrate(mech, q, 1e-6 * rng.normal(size=v.shape), 1.0), v + 0.01 * rng.normal(size=v.shape)
    expected = lw.constraints.project(mech, *off)
    state, reliability = lw.compile("closed_projection", mech)(*off)
    assert np.all(reliability > 1.0)
    same((state[..., : mech.nq], state[..., mech.nq :]), expected, 1e-10)


def test_project_takes_the_quick_way_where_it_can(monkeypatch):
    mech, q, v, _ = states("five_bar")
    asked = []
    quick = assembly.project_by_elimination
    monkeypatch.setattr(assembly, "project_by_elimination", lambda *x: asked.append(quick(*x)) or asked[-1])
    near = lw.constraints.project(mech, q + 1e-6, v)
    assert asked[-1] is not None
    assert np.abs(lw.constraints.position_error(mech, near[0])).max() < 1e-14
    far = lw.constraints.project(mech, q + 5e-3, v)
    assert asked[-1] is None and np.abs(lw.constraints.position_error(mech, far[0])).max() < 1e-12
    same([lw.constraints.project(mech, q, v)[0]], [q], 1e-14)
    assert asked[-1] is not None
    lw.constraints.project(mech, STRETCHED, np.zeros(4))
    assert asked[-1] is None  # singular
    lw.constraints.project(mech, q, v, rank=1)
    assert asked[-1] is None


def parallelogram():
    points = {"A": (0.0, 0.0), "B": (0.1, 0.28), "C": (0.9, 0.28), "D": (0.8, 0.0)}
    links = {"ground": "AD", "crank": "AB", "coupler": "BC", "rocker": "DC"}
    return lw.Builder().linkage(points, links, density=1.0).build("parallelogram", gravity=(0.0, -9.81, 0.0))


def test_steps_that_resolve_the_motion_beside_a_singular_position_are_not_warned_of():
    mech = parallelogram()
    q = lw.neutral(mech)
    v = 14.0 * lw.constraints.null_space(mech, q, independent="A")[:, 0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found_q, found_v = lw.rollout(mech, q, v, None, 1e-3, 300)
    energy = lw.kinetic_energy(mech, found_q, found_v) + lw.potential_energy(mech, found_q)
    assert np.ptp(energy) < 1e-9 * energy[0]
    np.testing.assert_allclose(found_q[:, 0], found_q[:, 1], atol=1e-12)
    assert found_q[-1, 0] > np.pi  # through the flat position
    with pytest.warns(lw.MechanismWarning, match="do not resolve the motion"):
        coarse_q, coarse_v = lw.rollout(mech, q, v, None, 1e-2, 30, method="semi_implicit")
    energy = lw.kinetic_energy(mech, coarse_q, coarse_v) + lw.potential_energy(mech, coarse_q)
    assert np.ptp(energy) > 1e-6 * energy[0]


def test_wrenches_that_vary_act_in_every_step():
    """Constant joint forces and a wrench on one link, beside the same rolled out with the wrench as joint forces."""
    mech = lw.mechanisms.five_bar()
    q0 = lw.constraints.assemble(mech, mech.initial)
    v0, tau = np.zeros(mech.nv), np.zeros(mech.nv)
    wrenches = np.zeros((mech.n_links, 6))
    wrenches[0, 2] = 0.3  # about the axis of the first joint: a torque there
    found = lw.rollout(mech, q0, v0, tau, 1e-3, 20, wrenches=wrenches)
    expected = lw.rollout(mech, q0, v0, tau + 0.3 * (np.arange(mech.nv) == 0), 1e-3, 20)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)
