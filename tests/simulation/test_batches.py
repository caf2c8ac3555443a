"""Batches of closed mechanisms whose states differ in rank, and batches without states."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.mechanism import MechanismError
from tests.simulated import simulate


def on_a_line() -> lw.Mechanism:
    """A telescope on two hinges, whose end, on a ball joint, slides on a line through the hinges.

    Where the telescope has length zero the hinges are free (three degrees of freedom, two constraints of four are one);
    where it lies along the line it may lengthen (two degrees of freedom).
    """
    builder = lw.Builder("on_a_line")
    for name in ("first", "second", "telescope", "end"):
        builder.link(name, 1.0, (0.1, 0.0, 0.0), (0.1, 0.2, 0.2))
    builder.joint("yaw", lw.Revolute((0.0, 0.0, 1.0)), "ground", "first")
    builder.joint("pitch", lw.Revolute((0.0, 1.0, 0.0)), "first", "second")
    builder.joint("length", lw.Prismatic((1.0, 0.0, 0.0)), "second", "telescope")
    builder.joint("ball", lw.Spherical(), "telescope", "end")
    builder.loop("line", lw.Cylindrical((1.0, 0.0, 0.0)), "ground", None, "end", None)
    return builder.build()


def two_states(mech: lw.Mechanism) -> tuple[np.ndarray, np.ndarray]:
    free = lw.constraints.assemble(mech, [0.7, 0.5, 0.0, 1.0, 0.0, 0.0, 0.0], hold=("yaw", "pitch", "length"))
    along = np.array([0.0, 0.0, 0.5, 1.0, 0.0, 0.0, 0.0])
    q = np.stack([free, along])
    rng = np.random.default_rng(0)
    v = np.stack([lw.constraints.project(mech, one, rng.normal(size=mech.nv))[1] for one in q])
    return q, v


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
@pytest.mark.parametrize("stabilization", ["projection", "baumgarte"])
def test_every_state_has_its_own_rank(order, stabilization):
    mech = on_a_line()
    q, v = (x[list(order)] for x in two_states(mech))
    np.testing.assert_array_equal(lw.constraints.generic_rank(mech, q), np.array([3, 4])[list(order)])
    options = {"method": "rk4", "step": 5e-3, "stabilization": stabilization}
    both = simulate(mech, q, v, 0.1, **options)
    assert both.constraint_error.max() < 1e-6
    for i in range(2):
        alone = simulate(mech, q[i], v[i], 0.1, **options)
        np.testing.assert_allclose(both.q[:, i], alone.q, atol=1e-9)
        np.testing.assert_allclose(both.loop_condition[:, i], alone.loop_condition, rtol=1e-6)
        np.testing.assert_allclose(both.member(i).resume(0.05).q, alone.resume(0.05).q, atol=1e-9)


@pytest.mark.quick_one_in(3)
@pytest.mark.parametrize("shape", [(0,), (2, 0), (0, 3)])
@pytest.mark.parametrize("method", ["rk4", "semi_implicit"])
@pytest.mark.parametrize(
    ("name", "options"),
    [
        (name, options)
        for name in ("double_pendulum", "four_bar", "floating")
        for options in ({}, {"control": 1.0}, {"keep_energy": True}, {"t_eval": 0.01}, {"wrenches": 1.0})
    ]
    + [(name, {"coordinates": "nu"}) for name in ("double_pendulum", "floating")],  # loops have no such coordinates
    ids=str,
)
def test_batches_without_states(name, options, method, shape):
    floating = lw.mechanisms.random_tree(3, 3, floating_base=True)
    mech = floating if name == "floating" else getattr(lw.mechanisms, name)()
    given = dict(options)
    if "control" in given:
        given["control"] = lambda t, q, v: -v
    if "wrenches" in given:
        given["wrenches"] = np.ones((mech.n_links, 6))
    q, v = np.zeros((*shape, mech.nq)), np.zeros((*shape, mech.nv))
    found = simulate(mech, q, v, 0.02, method=method, step=5e-3, **given)
    samples = 3 if "t_eval" in given else 5
    assert found.q.shape == (samples, *shape, mech.nq) and found.v.shape == (samples, *shape, mech.nv)
    assert found.a.shape == found.tau.shape == found.v.shape
    assert found.energy.shape == found.loop_condition.shape == found.constraint_error.shape == (samples, *shape)
    if "control" not in given:
        assert found.resume(0.01).q.shape[1:] == (*shape, mech.nq)


def test_batches_with_adaptive_methods_are_told_what_works():
    """The advice is followed: the same call with the method that the message names."""
    mech, states = lw.mechanisms.planar_arm(2), np.zeros((3, 2))
    with pytest.raises(MechanismError, match="chooses its steps for one state at a time.*methods rk4") as refused:
        lw.simulate(mech, states, states, 0.01)
    assert "coordinates" not in str(refused.value)
    assert lw.simulate(mech, states, states, 0.01, method="rk4").q.shape[1:] == (3, 2)
    with pytest.raises(MechanismError, match="use coordinates='joint' with one of the methods rk4"):
        lw.simulate(mech, states, states, 0.01, method="rk4", settings=lw.motion.Settings(coordinates="independent"))
