"""Contact by default in other units and at other sizes: the same motion."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

import linkwise as lw
from tests.units import SYSTEMS, Units

OTHERS = (*SYSTEMS[1:], Units("m kg ms", time=1e3))


def body(shape: str, size: tuple[float, ...]) -> lw.Mechanism:
    builder = lw.Builder().link("body", 2.0, (0.01, 0.0, 0.02), inertia=(0.02, 0.015, 0.01))
    return builder.joint("free", lw.Floating(), "ground", "body").shape("skin", "body", shape, size).build()


def leg() -> lw.Mechanism:
    """A trunk on two slides with a leg of two links, a box beside it."""
    builder = lw.Builder().link("rail").link("trunk", 3.0, (0, 0, 0), (0.03,) * 3)
    builder.link("thigh", 0.6, (0, 0, -0.1), (0.002,) * 3).link("shin", 0.3, (0, 0, -0.1), (0.001,) * 3)
    builder.joint("x", lw.Prismatic((1, 0, 0)), "ground", "rail").joint("z", lw.Prismatic((0, 0, 1)), "rail", "trunk")
    builder.joint("hip", lw.Revolute((0, 1, 0)), "trunk", "thigh")
    builder.joint("knee", lw.Revolute((0, 1, 0)), "thigh", "shin", (0, 0, -0.2))
    mech = builder.shape("trunk", "trunk", "box", (0.1, 0.05, 0.05)).build()
    mech = mech.with_shape("foot", "shin", "sphere", 0.02, (0, 0, -0.2))
    mech = mech.with_shape("step", "ground", "box", (0.05, 0.2, 0.03), (0.1, 0, -0.4))
    return mech.metadata.with_initial({"z": 0.02, "hip": 0.3, "knee": -0.6})


def grounded(mech: lw.Mechanism, units: Units, height: float) -> lw.Mechanism:
    """In units, on a floor whose numbers are chosen there."""
    return units.mechanism(mech).with_ground(height * units.length, friction=0.7)


CASES = {
    "ball": (body("sphere", (0.1,)), 0.0, [1, 0, 0, 0, 0, 0, 0.12], [3.0, 2.0, 0.0, 0.4, 0.0, -0.5]),
    "box": (body("box", (0.1, 0.15, 0.05)), 0.0, [0.9, 0.3, 0.2, 0.1, 0, 0, 0.2], [1.0, 2.0, 0.0, 0.5, 0.0, -0.5]),
    "leg": (leg(), -0.4, None, [0.3, -0.2, 0.0, 0.0]),
}


def assert_same_rollouts(case: str, units: Units) -> None:
    mech, height, q, v = CASES[case]
    here = grounded(mech, SYSTEMS[0], height)
    if case == "leg":
        here = here.with_contact(("foot", "step"), ("trunk", "step"))
    there = grounded(mech, units, height)
    if case == "leg":
        there = there.with_contact(("foot", "step"), ("trunk", "step"))
    q = here.initial if q is None else np.array(q) / np.where(np.arange(7) < 4, np.linalg.norm(q[:4]), 1.0)
    for method, dt, steps in ((None, 2e-3, 150), ("rk4", 1e-3, 150)):
        path = lw.rollout(here, q, v, None, dt, steps, method)
        assert lw.contact.contact_points(here, *path).force.any()
        other = lw.rollout(there, units.q(mech, q), units.v(mech, v), None, dt * units.time, steps, method)
        for mine, theirs, back in zip(path, other, (units.q, units.v), strict=True):
            np.testing.assert_allclose(theirs / back(mech, np.ones(mine.shape[-1])), mine, rtol=0, atol=1e-9)


def test_a_rollout_is_the_same_in_micrometres_and_milliseconds():
    assert_same_rollouts("leg", SYSTEMS[2])


@pytest.mark.slow
@pytest.mark.parametrize("units", OTHERS, ids=str)
@pytest.mark.parametrize("case", CASES)
def test_rollouts_are_the_same_in_all_units(case, units):
    assert_same_rollouts(case, units)


@pytest.mark.slow
@pytest.mark.parametrize("units", OTHERS, ids=str)
def test_simulations_are_the_same_in_all_units(units):
    mech, height, q, v = CASES["ball"]
    ends = []
    for one in (SYSTEMS[0], units):
        scale = min(one.length, one.length / one.time, 1.0, 1.0 / one.time)  # of the smallest coordinate
        motion = lw.simulate(
            grounded(mech, one, height),
            one.q(mech, q),
            one.v(mech, v),
            0.1 * one.time,
            settings=lw.motion.Settings(rtol=1e-10, atol=1e-12 * scale),
        )
        ends.append(motion.q[-1] / one.q(mech, np.ones(7)))
    np.testing.assert_allclose(ends[1], ends[0], rtol=0, atol=1e-9)


@pytest.mark.parametrize("scale", [1e-6, 1e-3, 1e6])
def test_balls_of_all_sizes_fall_alike(scale):
    """Lengths by L, times by sqrt(L / g): a ball of 0.1 um falls as one of 0.1 m does."""
    paths = []
    for size in (1.0, scale):
        mech = lw.Builder().link("ball", size**3, inertia=(0.004 * size**5,) * 3)
        mech = (
            mech.joint("free", lw.Floating(), "ground", "ball").build().with_shape("skin", "ball", "sphere", 0.1 * size)
        )
        mech, time = mech.with_ground(), math.sqrt(size)
        q, v = lw.rollout(
            mech, [1, 0, 0, 0, 0, 0, 0.2 * size], [0, 5.0 / time, 0, 0.3 * size / time, 0, 0], None, 2e-3 * time, 300
        )
        paths.append(q[:, 4:] / size)
        assert -1e-3 < paths[-1][-1, 2] - 0.1 < 0.0 and paths[-1][150:, 2].max() < 0.102  # it does not rebound
    np.testing.assert_allclose(paths[1], paths[0], rtol=0, atol=1e-9)


def test_default_numbers_have_the_units_of_the_mechanism():
    mech = CASES["leg"][0]
    here = grounded(mech, SYSTEMS[0], -0.4)
    for units in OTHERS:
        for mine, theirs in zip(
            units.mechanism(here).contact_pairs, grounded(mech, units, -0.4).contact_pairs, strict=True
        ):
            for name in ("mass", "carried", "load", "step"):
                assert getattr(theirs, name) == pytest.approx(getattr(mine, name), rel=1e-9)
            assert dataclasses.astuple(theirs.law) == pytest.approx(dataclasses.astuple(mine.law), rel=1e-9)


@pytest.mark.parametrize("units", OTHERS, ids=str)
@pytest.mark.parametrize("of", ["step", "spring"])
def test_without_gravity_contacts_follow_the_step_or_a_spring(units, of):
    """A body that drifts against a wall; beside it a second one on a spring, or the step that is asked for."""
    mech = body("sphere", (0.1,)).with_gravity((0, 0, 0))
    if of == "spring":
        builder = lw.Builder().link("body", 2.0, (0.01, 0.0, 0.02), inertia=(0.02, 0.015, 0.01)).link("flap", 0.3)
        builder.joint("free", lw.Floating(), "ground", "body")
        builder.joint("hinge", lw.Prismatic((1, 0, 0)), "body", "flap", (0.0, 0.05, 0.0), stiffness=40.0)
        mech = builder.shape("skin", "body", "sphere", (0.1,)).build().with_gravity((0, 0, 0))
    q, v = lw.neutral(mech), np.zeros(mech.nv)
    q[6], v[5] = 0.101, -0.5
    paths = []
    for one in (SYSTEMS[0], units):
        step = 2e-3 * one.time if of == "step" else None
        there = one.mechanism(mech).with_ground(step=step)
        path = lw.rollout(there, one.q(mech, q), one.v(mech, v), None, 1e-3 * one.time, 100)
        assert lw.contact.contact_points(there, *path).force.any()
        paths.append([path[0] / one.q(mech, np.ones(mech.nq)), path[1] / one.v(mech, np.ones(mech.nv))])
    for mine, theirs in zip(*paths, strict=True):
        np.testing.assert_allclose(theirs, mine, rtol=0, atol=1e-9)


def test_without_gravity_and_step_contacts_have_numbers_too():
    mech = body("sphere", (0.1,)).with_gravity((0, 0, 0)).with_ground()
    q, v = lw.rollout(mech, [1, 0, 0, 0, 0, 0, 0.11], [0, 0, 0, 0, 0, -0.5], None, 1e-3, 300)
    assert -0.02 < v[-1, 5] < 0.25 and q[:, 6].min() > 0.08
    milliseconds = Units("m kg ms", time=1e3).mechanism(mech)  # only a step tells the length of a millisecond
    numbers = milliseconds.contact.without().with_contact(("skin", "floor"), step=1.0).contact_pairs[0].law
    assert numbers.stiffness == pytest.approx(mech.contact_pairs[0].law.stiffness * 1e-6)
