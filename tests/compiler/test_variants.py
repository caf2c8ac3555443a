"""Variants that differ in numbers share compiled code: the same results as code of their own, few compilations, and
nothing that stays when they are gone."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import linkwise as lw
from linkwise.compiler.store import float64_function
from linkwise.mechanism import MechanismError
from linkwise.motion import rollout

TOLERANCE = 1e-12


def alone(mech: lw.Mechanism) -> lw.Mechanism:
    """The same mechanism without a family: what it computes has its numbers folded in."""
    return copy.deepcopy(mech)


def payload(mech: lw.Mechanism, rng: np.random.Generator) -> lw.Mechanism:
    return mech.with_payload(rng.choice(mech.link_names), rng.uniform(0.1, 3.0), rng.normal(size=3), (0.02, 0.03, 0.04))


def gravity(mech: lw.Mechanism, rng: np.random.Generator) -> lw.Mechanism:
    return mech.with_gravity(rng.normal(size=3))


def armature(mech: lw.Mechanism, rng: np.random.Generator) -> lw.Mechanism:
    return mech.parameters.with_armature({rng.choice(mech.joint_names): rng.uniform(0.1, 0.5)})


def inertial_parameters(mech: lw.Mechanism, rng: np.random.Generator) -> lw.Mechanism:
    loaded = mech
    for link in mech.link_names:
        loaded = loaded.with_payload(link, rng.uniform(0.1, 1.0), 0.1 * rng.normal(size=3), (0.02, 0.03, 0.04))
    return mech.parameters.with_inertial(lw.estimation.inertial_parameters(loaded))


def several(mech: lw.Mechanism, rng: np.random.Generator) -> lw.Mechanism:
    return armature(gravity(payload(payload(mech, rng), rng), rng), rng)


EDITS = (payload, gravity, armature, inertial_parameters, several)


def assert_same(actual, expected):
    for one, other in zip(np.atleast_1d(actual), np.atleast_1d(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=TOLERANCE, atol=TOLERANCE * max(1.0, np.abs(expected).max()))


@pytest.mark.parametrize("edit", EDITS)
def test_shared_code_computes_what_own_code_does(edit, compiled):
    mech = lw.mechanisms.random_tree(4, seed=3)
    rng = np.random.default_rng(5)
    q, v = lw.random_state(mech, rng, 3)
    x = rng.normal(size=(2, 1, mech.nv))
    variants = [edit(mech, rng) for _ in range(12)]
    for variant in variants:
        lw.forward_dynamics(variant, q, v, x)
    for variant in variants[-3:]:
        own = alone(variant)
        assert variant == own and hash(variant) == hash(own)
        assert_same(lw.forward_dynamics(variant, q, v, x), lw.forward_dynamics(own, q, v, x))
    assert len(compiled) < len(variants) + 3  # those alone are the last three


@pytest.mark.parametrize(
    "function",
    [
        lw.inverse_dynamics,
        lw.forward_dynamics_derivatives,
        lw.inverse_dynamics_derivatives,
        lw.formulations.denoc.forward_dynamics,
    ],
)
def test_functions_of_three_vectors(function):
    mech = lw.mechanisms.puma560()
    rng = np.random.default_rng(1)
    state = [rng.normal(size=(4, mech.nv)) for _ in range(3)]
    for mass in (1.0, 2.0, 3.0):
        variant = mech.with_payload("link6", mass, (0.0, 0.1, 0.2)).parameters.with_armature(joint1=mass)
        result, expected = function(variant, *state), function(alone(variant), *state)
        for one, other in zip(*((x if isinstance(x, tuple) else (x,)) for x in (result, expected)), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-11, atol=TOLERANCE * np.abs(other).max())


def test_a_thousand_variants_compile_two_kernels(compiled):
    mech = lw.mechanisms.planar_arm(2)
    q = np.array([0.3, -0.4])
    for i in range(1000):
        variant = mech.with_payload("link2", 0.1 + 0.01 * i, (0.1, 0.001 * i, 0.2))
        lw.forward_dynamics(variant, q, q, q)
    assert len(compiled) == 2  # the first alone, all others together


@pytest.mark.parametrize("edit", EDITS)
def test_edits_of_every_kind_compile_a_few_kernels(edit, compiled):
    mech = lw.mechanisms.planar_arm(2)
    rng = np.random.default_rng(0)
    q = np.array([0.3, -0.4])
    for _ in range(100):
        lw.forward_dynamics(edit(mech, rng), q, q, q)
    assert len(compiled) <= 6


def test_edits_that_code_does_not_look_at_compile_once(compiled):
    mech = lw.mechanisms.planar_arm(2)
    q = np.array([0.3, -0.4])
    for i in range(20):
        damped = mech.parameters.with_damping(joint1=0.1 * i).with_limits(joint2=lw.Limits(-1.0 - i, 1.0))
        lw.forward_dynamics(
            damped.metadata.with_postures({"up": q}).metadata.with_actuated("joint1").metadata.with_groups({}), q, q, q
        )
    assert len(compiled) == 1


def test_payloads_on_further_links_widen_the_shared_code(compiled):
    mech = lw.mechanisms.planar_arm(3)
    q = np.array([0.3, -0.4, 0.5])
    rng = np.random.default_rng(0)
    variants = [
        mech.with_payload(link, rng.uniform(1, 2), (0.1, 0.2, 0.3)) for _ in range(10) for link in mech.link_names
    ]
    results = [lw.forward_dynamics(variant, q, q, q) for variant in variants]
    assert len(compiled) <= 6  # as rods, links have no moment about their axes: two for each
    for variant, result in list(zip(variants, results, strict=True))[::4]:
        assert_same(result, lw.forward_dynamics(alone(variant), q, q, q))


def test_nothing_stays_when_variants_are_gone():
    mech = lw.mechanisms.planar_arm(2)
    q = np.array([0.3, -0.4])

    def run(mech: lw.Mechanism, count: int) -> list[weakref.ref]:
        gone = []
        for i in range(count):
            variant = mech.with_payload("link2", 1.0 + i, (0.1, 0.2, 0.3))
            for dtype in (np.float64, np.float32):
                state = q.astype(dtype)
                lw.forward_dynamics(variant, state, state, state)
            gone.append(weakref.ref(variant))
        return gone

    run(mech, 10)
    gc.collect()
    before = len(gc.get_objects())
    references = run(mech, 300)
    gc.collect()
    assert all(reference() is None for reference in references)
    del references
    assert len(gc.get_objects()) - before < 50
    family = weakref.ref(mech._family)
    del mech
    gc.collect()
    assert family() is None


def test_variants_outlive_the_mechanism_they_come_from():
    mech = lw.mechanisms.planar_arm(2)
    variants = [mech.with_payload("link2", mass, (0.1, 0.2, 0.3)) for mass in (1.0, 2.0, 3.0)]
    alive = weakref.ref(mech)
    del mech
    gc.collect()
    assert alive() is None
    q = np.array([0.3, -0.4])
    for variant in variants:
        assert_same(lw.forward_dynamics(variant, q, q, q), lw.forward_dynamics(alone(variant), q, q, q))


def sharing(mech: lw.Mechanism, *masses: float) -> lw.Mechanism:
    """A variant whose forward dynamics is shared code."""
    state = lw.neutral(mech), np.zeros(mech.nv), np.zeros(mech.nv)
    for mass in (1.0, 2.0, 3.0):
        variant = mech.with_payload(mech.link_names[-1], mass, (0.1, 0.2, 0.3))
        lw.forward_dynamics(variant, *state)
    return variant


def test_precision_outputs_and_other_arrays():
    torch = pytest.importorskip("torch")
    variant = sharing(lw.mechanisms.planar_arm(2))
    q = np.random.default_rng(0).normal(size=(5, 2)).astype(np.float32)
    for _ in range(2):
        single = lw.forward_dynamics(variant, q, q, q)
        own = lw.forward_dynamics(alone(variant), q, q, q)
        assert single.dtype == np.float32
        np.testing.assert_allclose(single, own, rtol=1e-4)
        variant = variant.with_payload("link1", 1.0, (0.1, 0.2, 0.3))
    given = np.asarray(lw.forward_dynamics(variant, *[torch.tensor(q.astype(float))] * 3))
    double = lw.forward_dynamics(alone(variant), *[q.astype(float)] * 3)
    assert_same(given, double)
    out = np.empty((5, 2))
    returned = float64_function(variant, "forward_dynamics")(*[q.astype(float)] * 3, out=out)
    assert returned is out
    assert_same(out, double)


@pytest.mark.parametrize(
    "arrays",
    [
        (np.zeros(2), np.zeros(2)),
        (np.zeros(2), np.zeros(2), np.zeros(2), np.zeros(2)),
        (np.zeros(3), np.zeros(2), np.zeros(2)),
        (np.zeros((4, 2)), np.zeros((5, 2)), np.zeros(2)),
        (np.zeros(2, complex), np.zeros(2), np.zeros(2)),
        (np.zeros(2), "text", np.zeros(2)),
    ],
)
def test_complaints_are_those_of_own_code(arrays):
    """They do not speak of numbers that the caller did not give."""
    variant = sharing(lw.mechanisms.planar_arm(2))
    messages = []
    for mech in (variant, alone(variant)):
        with pytest.raises(lw.KernelError) as raised:
            float64_function(mech, "forward_dynamics")(*arrays)
        messages.append(str(raised.value))
    assert messages[0] == messages[1]


def test_variants_without_inertia_are_refused_like_others():
    builder = lw.Builder("arm")
    builder.link("rod", mass=1.0, com=(0.1, 0.0, 0.0))
    builder.joint("shoulder", lw.Revolute((0, 0, 1)), "ground", "rod")
    mech = builder.build()
    still = np.zeros(1)
    for mass in (1.0, 2.0, 3.0):
        lw.forward_dynamics(
            mech.parameters.with_inertial([mass, mass, 0, 0, 0, 0, mass, 0, 0, mass]), still, still, still
        )
    for parameters in ([2.0, 0, 0, 0, 0, 0, 0, 0, 0, 0], np.zeros(10), [2.0, 1e-9, 0, 0, 0, 0, 5e-19, 0, 0, 5e-19]):
        variant = mech.parameters.with_inertial(parameters)
        own = alone(variant)
        if own.parameters.singular_joints:
            for one in (variant, own):
                with pytest.raises(MechanismError, match="forward_dynamics needs a positive mass matrix"):
                    lw.forward_dynamics(one, still, still, still)
        assert variant.parameters.singular_joints == own.parameters.singular_joints
        assert_same(lw.formulations.denoc.inverse_dynamics(variant, still, still, still), 0.0)


def test_a_body_may_lose_its_mass():
    """Where mechanics looks at zeros, code of its own is compiled: the centre of a body without mass."""
    mech = lw.mechanisms.planar_arm(3)
    rng = np.random.default_rng(0)
    q, v, a = rng.normal(size=(3, 3))
    parameters = lw.estimation.inertial_parameters(mech)
    for scale in (1.0, 2.0, 3.0, 0.0, 0.0, 4.0):
        changed = parameters.copy()
        changed[10:20] *= scale
        variant = mech.parameters.with_inertial(changed)
        for function in (
            lw.inverse_dynamics,
            lw.formulations.denoc.inverse_dynamics,
            lw.forward_dynamics,
            lw.formulations.denoc.forward_dynamics,
        ):
            assert_same(function(variant, q, v, a), function(alone(variant), q, v, a))


def test_refusals_of_zeros_are_not_lost():
    """What compiling refuses because numbers are zero is refused for the second variant too."""
    builder = lw.Builder("arm")
    builder.link("rod", mass=1.0, com=(1.0, 0.0, 0.0), inertia=(0.1, 0.1, 0.1))
    builder.joint("shoulder", lw.Revolute((0, 0, 1)), "ground", "rod")
    mech = builder.build()

    def request(mech, dtype, parameters):
        return lw.compile(lw.operators.M.inv, mech, dtype, parameters=parameters)

    def call(mass: float, moment: float) -> np.ndarray:
        variant = mech.parameters.with_inertial([mass, 0, 0, 0, moment, 0, moment, 0, 0, moment])
        return float64_function(variant, request)(np.zeros(1))

    for mass in (1.0, 2.0, 4.0):
        np.testing.assert_allclose(call(mass, 2.0), np.diag([0.5] * 3 + [1.0 / mass] * 3))
        with pytest.raises(MechanismError, match="divides by zero at every configuration"):
            call(mass, 0.0)


def test_closed_mechanisms(compiled):
    mech = lw.mechanisms.four_bar()
    q = lw.constraints.assemble(mech, lw.neutral(mech))
    v = lw.constraints.project(mech, q, np.ones(mech.nv))[1]
    tau = np.zeros(mech.nv)
    link = mech.link_names[-1]

    def results(variant):
        model = lw.linearize(variant, q, v, tau)
        return lw.forward_dynamics(variant, q, v, tau), model.A, lw.bias_force(variant.spanning_tree, q, v)

    counts = []
    for mass in (1.0, 2.0, 3.0, 4.0, 5.0):
        compiled.clear()
        variant = mech.with_payload(link, mass, (0.1, 0.2, 0.0), (0.02, 0.03, 0.04))
        found = results(variant)
        counts.append(len(compiled))
        for one, expected in zip(found, results(alone(variant)), strict=True):
            np.testing.assert_allclose(one, expected, rtol=1e-9, atol=1e-9)
    assert counts[0] > 0 and counts[2:] == [0, 0, 0]


def test_mimic_joints():
    builder = lw.Builder("gripper")
    for name, parent, mimic in (
        ("arm", "ground", None),
        ("left", "arm", None),
        ("right", "arm", lw.Mimic("left", -1.0)),
    ):
        builder.link(name, mass=1.0, com=(0.1, 0.2, 0.3), inertia=(0.02, 0.03, 0.04))
        builder.joint(name, lw.Revolute((0.0, 0.6, 0.8)), parent, name, pose=(0.1, 0.0, 0.0), mimic=mimic)
    mech = builder.build()
    q, v, tau = np.random.default_rng(0).normal(size=(3, mech.nv))
    for mass in (1.0, 2.0, 3.0):
        variant = mech.with_payload("right", mass, (0.1, 0.0, 0.3))
        assert_same(lw.forward_dynamics(variant, q, v, tau), lw.forward_dynamics(alone(variant), q, v, tau))


def test_edits_of_structure_start_a_family_of_their_own():
    mech = lw.mechanisms.planar_arm(3)
    variant = mech.with_payload("link3", 1.0)
    assert (
        variant._family is mech._family is variant.with_gravity((0, 0, 1)).parameters.with_damping(joint1=1.0)._family
    )
    for other in (
        variant.with_locked(joint1=0.3),
        pickle.loads(pickle.dumps(variant)),
    ):
        assert other._family is not mech._family
        assert not other._changed
    assert pickle.loads(pickle.dumps(variant)) == variant


def test_frames_do_not_part_variants(compiled):
    """Dynamics does not look at them; what does looks at the variant's own, and stays nowhere."""
    mech = lw.mechanisms.planar_arm(3)
    q, v = np.array([0.3, -0.4, 0.5]), np.zeros(3)
    mech.with_gravity((0.0, 0.0, 0.0))  # a family from now on
    kept = 0
    for i in range(20):
        height = 0.1 * (i + 1)
        variant = mech.with_frame("tool", "link3", (0.0, 0.0, height))
        lw.forward_dynamics(variant, q, v, v)
        lw.frame_pose(variant, q, "link3")
        if i < 3:
            expected = lw.frame_pose(variant, q, "link3") @ [0.0, 0.0, height, 1.0]
            assert_same(lw.frame_pose(variant, q, "tool")[:, 3], expected)
            assert_same(
                lw.jacobian(variant.with_payload("tool", 1.0), q, "tool"), lw.jacobian(alone(variant), q, "tool")
            )
            kept = len(mech._family.code)
    assert len(mech._family.code) == kept
    assert compiled.count("forward_dynamics") == compiled.count("frame_pose") - 3 == 1


def test_frames_of_one_name_on_other_links():
    mech = lw.mechanisms.planar_arm(3).with_gravity((0.0, 0.0, 0.0))
    q = np.array([0.3, -0.4, 0.5])
    for link in mech.link_names:
        variant = mech.with_frame("tool", link, (0.1, 0.0, 0.0))
        assert_same(lw.jacobian(variant, q, "tool"), lw.jacobian(alone(variant), q, "tool"))


@pytest.mark.parametrize("options", [{}, {"feedback": {"target": [0.1, 0.2], "kp": 3.0}}, {"method": "semi_implicit"}])
def test_rollouts_of_variants_share_their_loop(options, monkeypatch):
    compiled = []
    load = rollout.load
    monkeypatch.setattr(rollout, "load", lambda *given: compiled.append(given) or load(*given))
    mech = lw.mechanisms.planar_arm(2)
    rng = np.random.default_rng(0)
    q, v = lw.random_state(mech, rng, (5,))
    variants = [mech.with_payload("link2", 0.5 + i, (0.1, 0.2, 0.3)).with_gravity((i, 0, -9.81)) for i in range(30)]
    results = [lw.rollout(variant, q, v, None, 0.01, 20, **options) for variant in variants]
    assert len(compiled) <= 3
    for variant, result in list(zip(variants, results, strict=True))[::9]:
        for one, other in zip(result, lw.rollout(alone(variant), q, v, None, 0.01, 20, **options), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


def test_parameters_of_a_rollout_are_those_that_are_given():
    """Also where variants differ in them."""
    mech = lw.mechanisms.planar_arm(2)
    q, v = lw.random_state(mech, np.random.default_rng(0), (4,))
    masses = np.array([1.0, 2.0, 3.0, 4.0])
    for mass in (1.0, 2.0, 3.0):
        variant = mech.with_payload("link2", mass, (0.1, 0.2, 0.3))
        given = {"link2.mass": masses}
        result, expected = (lw.rollout(m, q, v, None, 0.01, 10, parameters=given) for m in (variant, alone(variant)))
        np.testing.assert_allclose(result[0], expected[0], rtol=1e-9, atol=1e-9)
    float32 = lw.rollout(variant, q.astype("f"), v.astype("f"), None, 0.01, 10)
    assert float32[0].dtype == np.float32
    np.testing.assert_allclose(float32[0], lw.rollout(alone(variant), q, v, None, 0.01, 10)[0], rtol=1e-3, atol=1e-3)


def test_struts_of_variants_are_compiled_once(compiled):
    mech = lw.mechanisms.planar_arm(2)
    spring = lw.forces.Passive.spring_between(
        "ground", (0, 1, 0), "link2", (0.1, 0, 0), stiffness=10.0, free_length=0.2
    )
    q, v = np.array([0.3, -0.4]), np.array([1.0, 2.0])
    for i in range(20):
        variant = mech.with_payload("link2", 0.5 + i, (0.1, 0.2, 0.3))
        forces, energy = spring.forces(variant, q, v), spring.energy(variant, q)
        assert_same(energy, spring.energy(mech, q))
        if i == 10:
            assert_same(forces, spring.forces(alone(variant), q, v))
            compiled.clear()
    assert not compiled


def test_threads_ask_for_variants_at_once(compiled):
    mech = lw.mechanisms.planar_arm(2)
    q = np.array([0.3, -0.4])

    def ask(mass: float) -> np.ndarray:
        return lw.forward_dynamics(mech.with_payload("link2", mass, (0.1, 0.2, 0.3)), q, q, q)

    masses = np.linspace(1.0, 2.0, 40)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(ask, masses))
    assert len(compiled) <= 3
    for mass, result in list(zip(masses, found, strict=True))[::13]:
        assert_same(result, lw.forward_dynamics(alone(mech.with_payload("link2", mass, (0.1, 0.2, 0.3))), q, q, q))
