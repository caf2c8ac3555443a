"""The kernel that ``compile`` gives under constraints is the one that runs; and the precision of results."""

import numpy as np
import pytest

import linkwise as lw

from .built_in import STRETCHED

MECHANISMS = ("four_bar", "five_bar", "stewart_platform", "loader")


def moving(name: str, count: int = 5):
    mech, rng = getattr(lw.mechanisms, name)(), np.random.default_rng(3)
    q = np.tile(lw.constraints.assemble(mech, lw.integrate(mech, mech.initial, 0.1 * rng.normal(size=mech.nv), 1.0)), 1)
    q, v = lw.constraints.project(mech, q, rng.normal(size=(count, mech.nv)))
    return mech, q, v, rng.normal(size=(count, mech.nv))


@pytest.mark.parametrize("name", MECHANISMS)
def test_the_compiled_kernel_with_its_status_is_the_one_that_runs(name):
    mech, q, v, tau = moving(name)
    plain, kernel = lw.compile(lw.forward_dynamics, mech), lw.compile(lw.forward_dynamics, mech, ports="status")
    assert kernel.inputs == plain.inputs == ("q", "v", "tau") and plain.output_shapes == {"a": (mech.nv,)}
    assert kernel.output_shapes == {"a": (mech.nv,), "reliability": (), "consistency": ()}
    a, reliability, consistency = kernel(q, v, tau)
    assert (reliability > 1.0).all() and (consistency > 1.0).all()
    np.testing.assert_array_equal(lw.forward_dynamics(mech, q, v, tau), a)  # to the last digit
    np.testing.assert_array_equal([lw.forward_dynamics(mech, *state) for state in zip(q, v, tau, strict=True)], a)
    np.testing.assert_allclose(plain(q, v, tau), a, rtol=1e-11, atol=1e-11 * np.abs(a).max())
    assert sum(plain.op_counts.values()) <= sum(kernel.op_counts.values())
    apart = lw.constraints.project(mech, q, v)[0] + 0.02
    assert (kernel(apart, v, tau)[1] < 0.0).all()  # open by mistake


def test_the_status_says_where_pivots_are_small_and_velocities_open_loops():
    mech, v = lw.mechanisms.five_bar(), np.zeros(4)
    kernel = lw.compile(lw.forward_dynamics, mech, ports="status")
    assert 0.0 <= kernel(STRETCHED, v, v)[1] < 1.0
    mech, q, v, tau = moving("four_bar")
    kernel = lw.compile(lw.forward_dynamics, mech, ports="status")
    _, reliability, consistency = kernel(q, v + 1.0, tau)
    assert (reliability > 1.0).all() and (consistency < 0.0).all()


def test_under_a_mask_the_status_is_that_of_the_loops_that_hold():
    mech, q, v, tau = moving("loader")
    kernel = lw.compile(lw.forward_dynamics, mech, ports=("active", "status"))
    opened, none = q + 0.05, np.zeros(len(mech.loops))
    a, reliability, consistency = kernel(opened, v, tau, none)
    assert (reliability > 1.0).all() and (consistency > 1.0).all()
    np.testing.assert_allclose(a, lw.forward_dynamics(mech.spanning_tree, opened, v, tau), rtol=1e-9, atol=1e-9)
    assert (kernel(opened, v, tau, none + 1.0)[1] < 0.0).all()


def test_trees_have_no_status():
    with pytest.raises(ValueError, match="no optional input 'status'"):
        lw.compile(lw.forward_dynamics, lw.mechanisms.four_bar().spanning_tree, ports="status")


# -- precision ----------------------------------------------------------------------------------------------------


def results(mech: lw.Mechanism, q, v, tau):
    """All that is solved for under constraints, of states at rest where accelerations are given."""
    still = 0.0 * v
    yield "forward_dynamics", lw.forward_dynamics(mech, q, v, tau)
    yield "svd", lw.forward_dynamics(mech, q, v, tau, method="svd")
    yield "inverse_dynamics", lw.inverse_dynamics(mech, q, still, still)
    yield "static_forces", lw.static_forces(mech, q)
    yield "joint_wrenches", lw.joint_wrenches(mech, q, v, tau=tau)
    yield "springs", lw.forward_dynamics(mech, q, v, tau, forces="springs")
    yield "velocities", lw.formulations.momenta.velocities(mech, q, tau)
    yield "mass_matrix", lw.mass_matrix(mech, q)
    if mech.loops:
        yield "active", lw.forward_dynamics(mech, q, v, tau, active=np.ones(len(mech.loops), dtype=bool))


@pytest.mark.filterwarnings("ignore::linkwise.MechanismWarning")
@pytest.mark.parametrize("make", [lw.mechanisms.four_bar, lambda: lw.mechanisms.four_bar().spanning_tree])
def test_single_precision_in_single_precision_out(make):
    mech, (_, *state) = make(), moving("four_bar", 1)
    single = [x[0].astype(np.float32) for x in state]
    double = [x.astype(float) for x in single]
    pairs = zip(results(mech, *single), results(mech, *double), strict=True)
    for (name, value), (_, expected) in pairs:
        assert (value.dtype, expected.dtype) == (np.float32, np.float64), name
        np.testing.assert_allclose(value, expected, rtol=1e-4, atol=1e-4 * (1.0 + np.abs(expected).max()), err_msg=name)
    mixed = lw.forward_dynamics(mech, single[0], double[1], single[2])
    assert mixed.dtype == np.float64
