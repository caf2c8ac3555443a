"""Rollouts called again with arrays of the same shapes: what was decided once is kept, and nothing else changes."""

from __future__ import annotations

import dataclasses
import gc
import weakref

import numpy as np
import pytest

import linkwise as lw
from linkwise.motion import rollout

STEPS, DT = 6, 0.01
TREE = lw.mechanisms.random_tree(3, 21, joints=("spherical", "revolute"), floating_base=True)
TIMED = dataclasses.replace(TREE, annotations=dataclasses.replace(TREE.annotations, timestep=DT))
MUSCLES = (
    lw.mechanisms.planar_arm(2)
    .with_elements(
        lw.forces.Actuator("motor", "joint1", gear=(2.0,)), lw.forces.Actuator("slow", "joint2", dynamics="filter")
    )
    .parameters.with_damping({"joint1": 0.1})
)


def fresh(mech: lw.Mechanism) -> lw.Mechanism:
    """The same mechanism, which has not been asked anything yet."""
    return dataclasses.replace(mech)


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


def states(mech: lw.Mechanism, batch: tuple[int, ...] = (), seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    return lw.random_state(mech, np.random.default_rng(seed), batch)


@pytest.fixture
def decided(monkeypatch):
    """Counts the calls that went the whole way."""
    calls = []
    whole = rollout.planned
    monkeypatch.setattr(rollout, "planned", lambda *given: calls.append(1) or whole(*given))
    return calls


POSTURES, GAINS = states(TREE, (STEPS,), 5)[0], numbers(3, 1 + TREE.nv, seed=6)
CALLS = {
    "one state": (TREE, (), {}, lambda n: None),
    "forces": (TREE, (), {}, lambda n: numbers(n)),
    "forces of every step": (TREE, (), {}, lambda n: numbers(STEPS, n)),
    "forces of every state": (TREE, (5,), {}, lambda n: numbers(5, 1, n)),
    "forces of all": (TREE, (2, 5), {}, lambda n: numbers(2, 5, STEPS, n)),
    "forces that lie apart": (TREE, (), {}, lambda n: numbers(2 * n)[::2]),
    "forces in columns": (TREE, (5,), {}, lambda n: numbers(1, n, 5).T.transpose(0, 2, 1)),
    "some records": (TREE, (5,), {"every": 3}, lambda n: numbers(n)),
    "the last state": (TREE, (5,), {"final_only": True}, lambda n: numbers(STEPS, n)),
    "semi-implicit": (TREE, (), {"method": "semi_implicit", "target": "cpu"}, lambda n: None),
    "total rates": (TREE, (3,), {"coordinates": "nu"}, lambda n: None),
    "the reference": (TREE, (), {"target": "numpy"}, lambda n: None),
    "wrenches": (TREE, (5,), {"wrenches": numbers(STEPS, TREE.n_links, 6)}, lambda n: None),
    "actuators": (MUSCLES, (3,), {"ctrl": numbers(2)}, lambda n: None),
    "activations": (MUSCLES, (), {"activation": np.ones(1), "return_activation": True}, lambda n: None),
    "feedback by numbers": (TREE, (), {"feedback": {"target": POSTURES[0], "kp": 3, "kd": 0.1}}, lambda n: None),
    "damping": (TREE, (2,), {"feedback": {"kd": 0.1}}, lambda n: numbers(n)),
    "feedback by arrays": (
        TREE,
        (3,),
        {"feedback": {"target": 1.00001 * POSTURES, "kp": GAINS[:, 1:], "kd": GAINS[0, 1:]}, "every": 2},
        lambda n: None,
    ),
    "feedback of states": (
        TREE,
        (),
        {"feedback": {"target": POSTURES[0], "gain": numbers(TREE.nv, 2 * TREE.nv)}},
        lambda n: None,
    ),
    "a time step of the mechanism's": (TIMED, (), {"dt": None}, lambda n: None),
}


@pytest.mark.parametrize("which", CALLS)
def test_results_are_those_of_a_first_call(which, decided):
    mech, batch, options, forces = CALLS[which]
    known, tau, options = fresh(mech), forces(mech.nv), {"dt": DT, **options}
    for seed in range(3):  # the numbers differ, and what was kept is of none of them
        q, v = states(mech, batch, seed)
        tau = None if tau is None else tau + seed
        before = [x.copy() for x in (q, v)]
        found = lw.rollout(known, q, v, tau, steps=STEPS, **options)
        assert len(decided) == 1 + seed
        expected = lw.rollout(fresh(mech), q, v, tau, steps=STEPS, **options)
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)
        for one, other in zip(before, (q, v), strict=True):
            np.testing.assert_array_equal(one, other)


def test_other_arguments_are_decided_anew(decided):
    mech = fresh(TREE)
    q, v = states(mech)
    asked = [
        lambda: lw.rollout(mech, q, v, None, DT, STEPS),
        lambda: lw.rollout(mech, q, v, None, DT, STEPS + 1),
        lambda: lw.rollout(mech, q, v, None, 2 * DT, STEPS),
        lambda: lw.rollout(mech, q, v, None, DT, STEPS, "semi_implicit"),
        lambda: lw.rollout(mech, q, v, None, DT, STEPS, every=2),
        lambda: lw.rollout(mech, q, v, None, DT, STEPS, final_only=True),
        lambda: lw.rollout(mech, q, None, None, DT, STEPS),
        lambda: lw.rollout(mech, q[None], v, None, DT, STEPS),
    ]
    first = [ask() for ask in asked]
    assert len(decided) == len(asked)
    for ask, expected in zip(asked, first, strict=True):
        for one, other in zip(ask(), expected, strict=True):
            np.testing.assert_array_equal(one, other)
    assert len(decided) == len(asked)


def test_other_types_go_the_whole_way(decided):
    mech = fresh(TREE)
    q, v = states(mech)
    expected = lw.rollout(mech, q, v, None, DT, STEPS)
    asked = [
        lambda: lw.rollout(mech, q.tolist(), v, None, DT, STEPS),
        lambda: lw.rollout(mech, q, v, None, np.float64(DT), STEPS),
        lambda: lw.rollout(mech, q, v, None, DT, np.int64(STEPS)),
        lambda: lw.rollout(mech, q.astype(">f8"), v, None, DT, STEPS),
        lambda: lw.rollout(mech, q, v, None, DT, STEPS, parameters={}),
        lambda: lw.rollout(mech, q, v, None, DT, STEPS, feedback={"kd": np.array(0.0)}),
        lambda: lw.rollout(mech, q, v, None, DT, STEPS, passive=lw.forces.Passive()),
    ]
    for number, ask in enumerate(asked, 2):
        for one, other in zip(ask(), expected, strict=True):
            np.testing.assert_array_equal(one, other)
        assert len(decided) == number


def test_each_precision_keeps_its_own(decided):
    mech = fresh(TREE)
    double = states(mech)
    single, mixed = [x.astype(np.float32) for x in double], (double[0], double[1].astype(np.float32))
    for number in range(1, 4):
        dtypes = [lw.rollout(mech, *state, None, DT, STEPS)[0].dtype for state in (double, single, mixed)]
        assert dtypes == [np.float64, np.float32, np.float64]
        assert len(decided) == 2 + number  # those of several precisions are decided every time
    reached = [lw.rollout(of, *single, None, DT, STEPS, feedback={"kd": 1}) for of in (mech, mech, fresh(mech))]
    for one, again, other in zip(*reached, strict=True):
        np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(again, other)


def with_feedback(mech, q, v, **feedback):
    return lw.rollout(mech, q, v, None, DT, STEPS, feedback=feedback)


REFUSED = {
    "part": lambda mech, q, v: with_feedback(mech, q, v, target=q, kq=1.0),
    "aim": lambda mech, q, v: with_feedback(mech, q, v, target=q[:-1], kp=1.0),
    "aim of wrong length": lambda mech, q, v: with_feedback(mech, q, v, target=2.0 * q, kp=1.0),
    "gain": lambda mech, q, v: with_feedback(mech, q, v, target=q, kp=v[:-1]),
    "a truth for a gain": lambda mech, q, v: with_feedback(mech, q, v, target=q, gain=True),
    "gain that is none": lambda mech, q, v: with_feedback(mech, q, v, target=q, kp=1.0, kd=None),
    "aim that is none": lambda mech, q, v: with_feedback(mech, q, v, target=None),
    "nothing but a gain that is none": lambda mech, q, v: with_feedback(mech, q, v, kd=None),
    "no aim": lambda mech, q, v: with_feedback(mech, q, v, kp=1.0),
    "q0": lambda mech, q, v: lw.rollout(mech, q[:-1], v, None, DT, STEPS),
    "quaternion": lambda mech, q, v: lw.rollout(mech, 2.0 * q, v, None, DT, STEPS),
    "tau": lambda mech, q, v: lw.rollout(mech, q, v, np.zeros((STEPS + 1, mech.nv)), DT, STEPS),
    "dt": lambda mech, q, v: lw.rollout(mech, q, v, None, float("nan"), STEPS),
    "truth": lambda mech, q, v: lw.rollout(mech, q, v, None, DT, True),
    "half": lambda mech, q, v: lw.rollout(mech, q, v, None, DT, float(STEPS)),
    "negative": lambda mech, q, v: lw.rollout(mech, q, v, None, DT, -STEPS),
    "every": lambda mech, q, v: lw.rollout(mech, q, v, None, DT, STEPS, every=True),
    "method": lambda mech, q, v: lw.rollout(mech, q, v, None, DT, STEPS, "rk5"),
    "list": lambda mech, q, v: lw.rollout(mech, q, v, None, DT, STEPS, ["rk4"]),
    "target": lambda mech, q, v: lw.rollout(mech, q, v, None, DT, STEPS, target="metal"),
    "coordinates": lambda mech, q, v: lw.rollout(mech, q, v, None, DT, STEPS, coordinates="joints"),
    "option": lambda mech, q, v: lw.rollout(mech, q, v, None, DT, STEPS, forces=1.0),
    "complex": lambda mech, q, v: lw.rollout(mech, q + 0j, v, None, DT, STEPS),
    "out": lambda mech, q, v: lw.rollout(mech, q, v, None, DT, STEPS, out=(q, v)),
    "one out": lambda mech, q, v: lw.rollout(mech, q, v, None, DT, STEPS, out=np.empty((STEPS + 1, mech.nq))),
    "ctrl": lambda mech, q, v: lw.rollout(mech, q, v, None, DT, STEPS, ctrl=np.zeros(2)),
    "no mechanism": lambda mech, q, v: lw.rollout(mech.name, q, v, None, DT, STEPS),
}


@pytest.mark.parametrize("which", REFUSED)
def test_refusals_are_those_of_a_first_call(which):
    q, v = states(TREE)
    known = fresh(TREE)
    for steps in (1, STEPS):
        lw.rollout(known, q, v, None, DT, steps)
        lw.rollout(known, q, v, np.zeros((steps, known.nv)), DT, steps)
    with_feedback(known, q, v, target=q, kp=1.0)
    with_feedback(known, q, v, target=q, kp=v)
    with pytest.raises(Exception) as first:  # noqa: B017, PT011 (whatever it is)
        REFUSED[which](fresh(TREE), q, v)
    with pytest.raises(Exception) as later:  # noqa: B017, PT011
        REFUSED[which](known, q, v)
    assert type(later.value) is type(first.value) and str(later.value) == str(first.value)


def test_quaternions_that_are_nearly_of_unit_length_are_made_so():
    q, v = states(TREE)
    known = fresh(TREE)
    expected = lw.rollout(known, q, v, None, DT, STEPS)
    longer = q.copy()
    longer[:4] *= 1.0001
    found = lw.rollout(known, longer, v, None, DT, STEPS)
    np.testing.assert_allclose(found[0], expected[0], rtol=0, atol=1e-12)
    assert longer[0] == q[0] * 1.0001


def test_warnings_are_those_of_a_first_call():
    """Motions that are lost, steps that are too long: told in every call; starts beyond limits: of every joint once."""
    arm = lw.mechanisms.planar_arm(2).parameters.with_damping({"joint1": 1e5}).with_gravity((0, 0, 0))
    speeds = np.array([1.0, 0.0])
    for _ in range(3):
        with pytest.warns(lw.MechanismWarning) as told:
            lw.rollout(arm, None, speeds, None, DT, 200)
        assert {"too long for damping", "grew beyond all"} == {
            words for one in told for words in ("too long for damping", "grew beyond all") if words in str(one.message)
        }
    limited = lw.mechanisms.planar_arm(2).with_limits({"joint1": lw.Limits((-1.0,), (1.0,))})
    lw.rollout(limited, np.zeros(2), np.zeros(2), None, DT, 2)
    with pytest.warns(lw.motion.LimitWarning, match="'joint1' at 2"):
        lw.rollout(limited, np.array([2.0, 0.0]), np.zeros(2), None, DT, 2)


def test_not_a_number_gives_no_number(recwarn):
    q, v = states(TREE, (3,))
    known = fresh(TREE)
    for bad in (v, np.where(np.arange(3)[:, None] == 1, np.nan, v)):
        found = lw.rollout(known, q, bad, None, DT, STEPS)
        np.testing.assert_array_equal(np.isnan(found[1][:, -1]).all(-1), np.isnan(bad).all(-1))
    assert not recwarn.list


def test_given_memory_is_written_to_also_where_inputs_lie(decided):
    mech = fresh(TREE)
    q, v = states(mech)
    tau = numbers(STEPS, mech.nv)
    expected = lw.rollout(mech, q, v, tau, DT, STEPS)
    for _ in range(2):
        out = np.zeros((STEPS + 1, mech.nq)), np.zeros((STEPS + 1, mech.nv))
        out[0][-1], out[1][:STEPS] = q, tau
        found = lw.rollout(mech, out[0][-1], v, out[1][:STEPS], DT, STEPS, out=out)
        assert all(one is other for one, other in zip(found, out, strict=True))
        np.testing.assert_array_equal(found[0], expected[0])
        np.testing.assert_array_equal(found[1], expected[1])
    assert len(decided) == 1
    out[0][-1], out[1][:STEPS] = q, tau
    for one, other in zip(
        lw.rollout(fresh(mech), out[0][-1], v, out[1][:STEPS], DT, STEPS, out=out), expected, strict=True
    ):
        np.testing.assert_array_equal(one, other)


def test_arrays_of_callers_are_not_held(decided):
    mech = fresh(TREE)
    given = [*states(mech, (2,)), numbers(2, 1, mech.nv)]
    found = lw.rollout(mech, *given, DT, STEPS)
    alive = [weakref.ref(x) for x in (*given, *found)]
    del given, found
    gc.collect()
    assert not any(one() is not None for one in alive)
    lw.rollout(mech, *states(mech, (2,)), numbers(2, 1, mech.nv), DT, STEPS)
    assert len(decided) == 1


def test_a_mechanism_keeps_a_limited_number():
    mech = lw.mechanisms.planar_arm(1)
    q, v = states(mech)
    for k in range(2 * rollout.MOST):
        lw.rollout(mech, q, v, None, DT, 1 + k)
        assert len(mech._kernels[rollout.PLANS]) <= rollout.MOST


def test_variants_keep_their_own():
    arm = lw.mechanisms.planar_arm(2)
    q, v = states(arm)
    variants = [arm.with_payload(arm.link_names[-1], mass) for mass in (0.0, 0.5, 1.0, 1.5)]
    first = [lw.rollout(one, q, v, None, DT, STEPS)[0] for one in variants]
    again = [lw.rollout(one, q, v, None, DT, STEPS)[0] for one in variants]
    np.testing.assert_array_equal(again, first)
    assert np.ptp([path[-1, 0] for path in first]) > 0.0


def test_closed_mechanisms_and_momenta_go_the_whole_way(decided):
    linkage = lw.mechanisms.four_bar()
    arm = lw.mechanisms.planar_arm(2)
    for number in (1, 2):
        lw.rollout(linkage, None, None, None, DT, 2)
        lw.rollout(arm, *states(arm), None, DT, 2, coordinates="momentum")
        assert len(decided) == 2 * number


BALL = """<mujoco><worldbody><geom type="plane" size="1 1 1"/><body pos="0 0 1"><freejoint/>
<geom type="sphere" size=".1" mass="1"/></body></worldbody></mujoco>"""
FILTERED = """<mujoco><worldbody><body><joint name="h" axis="0 1 0" frictionloss=".1"/>
<geom type="sphere" size=".1" pos=".3 0 0" mass="1"/></body></worldbody><actuator>
<general joint="h" dyntype="filter" dynprm=".1" gainprm="2"/></actuator></mujoco>"""


@pytest.mark.parametrize("text", [BALL, FILTERED], ids=["contact", "dry friction"])
@pytest.mark.parametrize("method", ["rk4", "semi_implicit"])
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_empty_batches_of_what_touches_and_rubs(text, method):
    mech = lw.load(text)
    q, v = lw.random_state(mech, np.random.default_rng(0), (2, 0, 3))
    for _ in range(2):
        found = lw.rollout(mech, q, v, None, 0.05, STEPS, method)
        assert [x.shape for x in found] == [(2, 0, 3, STEPS + 1, mech.nq), (2, 0, 3, STEPS + 1, mech.nv)]


def test_places_for_activations_are_asked_for():
    mech = lw.load(FILTERED)
    found = lw.rollout(mech, np.zeros(1), np.zeros(1), None, 1e-3, STEPS, return_activation=True)
    with pytest.raises(ValueError, match="three writable arrays.*the last for activations"):
        lw.rollout(mech, np.zeros(1), np.zeros(1), None, 1e-3, STEPS, out=found[:2])
    lw.rollout(mech, np.zeros(1), np.zeros(1), None, 1e-3, STEPS, out=found)
