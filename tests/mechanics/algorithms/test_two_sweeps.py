"""Forward dynamics in two sweeps: the same accelerations as in three, and nothing swept out before."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.mechanics.algorithms.two_sweeps import Quadratic

MECHANISMS = [
    lw.mechanisms.puma560(),
    lw.mechanisms.chain(4),
    lw.mechanisms.humanoid().spanning_tree,
    *(lw.mechanisms.random_tree(5, seed, floating_base=seed % 2 == 1) for seed in range(8)),
]


@pytest.mark.quick_one_in(2)
@pytest.mark.seed("rodriguez1992", "Section VII-D", by="library")
@pytest.mark.parametrize("mech", MECHANISMS, ids=lambda mech: mech.name)
def test_accelerations_are_those_of_three_sweeps(mech):
    rng = np.random.default_rng(0)
    q, v = lw.random_state(mech, rng, (4,))
    tau, wrenches = rng.normal(size=(4, mech.nv)), rng.normal(size=(4, mech.n_links, 6))
    kernel = lw.compile("forward_dynamics", mech, target="numpy", method="two_sweeps")
    assert [direction for direction, _ in kernel.sweeps] == ["tip_to_base", "base_to_tip"]
    expected = np.linalg.solve(lw.mass_matrix(mech, q), (tau - lw.bias_force(mech, q, v))[..., None])[..., 0]
    np.testing.assert_allclose(kernel(q, v, tau), expected, rtol=0.0, atol=1e-9 * np.abs(expected).max())
    pushed = lw.compile("forward_dynamics", mech, ports="wrenches", target="numpy", method="two_sweeps")
    found = lw.forward_dynamics(mech, q, v, tau, wrenches, method="filter_and_smoother")
    np.testing.assert_allclose(pushed(q, v, tau, wrenches), found, rtol=0.0, atol=1e-10 * np.abs(found).max())


def test_the_plan_says_why_it_is_written_by_hand():
    plan = lw.compile("forward_dynamics", lw.mechanisms.chain(2), target="numpy", method="two_sweeps").plan()
    assert "functions of velocities that are not known yet" in plan


def test_what_is_refused():
    builder = lw.Builder()
    for name, parent in (("a", "ground"), ("b", "a")):
        builder.link(name, 1.0, (0.5, 0.1, 0.2), np.diag((0.1, 0.2, 0.3)))
        mimic = lw.Mimic("to_a", -0.5) if name == "b" else None
        builder.joint(f"to_{name}", lw.Revolute((0, 1, 1)), parent, name, mimic=mimic)
    with pytest.raises(lw.MechanismError, match="'two_sweeps' takes one joint at a time"):
        lw.compile("forward_dynamics", builder.build("coupled"), method="two_sweeps")
    with pytest.raises(ValueError, match="composite_bodies, two_sweeps, got 'one_sweep'"):
        lw.compile("forward_dynamics", lw.mechanisms.chain(2), method="one_sweep")


def test_quadratics_are_polynomials():
    x, y = Quadratic({(0,): 1.0}), Quadratic({(1,): 1.0})
    product = (2.0 * x - y + 3.0) * (1.0 - y)
    assert product.coefficients == {(): 3.0, (0,): 2.0, (1,): -4.0, (0, 1): -2.0, (1, 1): 1.0}
    assert (x - x).coefficients == {}
