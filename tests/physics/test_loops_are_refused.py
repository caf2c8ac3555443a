"""What would leave loops out refuses them and names what does not; terms of the equations of motion are the same."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw


def test_manipulability_of_a_closed_mechanism_counts_its_motions():
    mech = lw.mechanisms.four_bar()
    with pytest.raises(lw.MechanismError, match="moves with 1 degrees of freedom"):
        lw.kinematics.manipulability(mech, lw.neutral(mech), mech.link_names[0], rows=[3, 4])


def test_terms_are_those_of_the_tree_and_answers_those_of_the_loops():
    """M a + c = tau - G* lambda holds with the terms of the tree; what holds still is that of the loops alone."""
    mech = lw.mechanisms.five_bar()
    q = lw.constraints.assemble(mech, [2.1, 1.9, 1.5, 1.9])
    rest = np.zeros(mech.nv)
    rng = np.random.default_rng(0)
    v = lw.constraints.null_space(mech, q) @ rng.normal(size=2)
    tau = rng.normal(size=mech.nv)
    a = lw.forward_dynamics(mech, q, v, tau)
    forces = lw.mass_matrix(mech, q) @ a + lw.bias_force(mech, q, v) - tau
    jacobian = lw.constraints.constraint_jacobian(mech, q)
    np.testing.assert_allclose(forces, jacobian.T @ np.linalg.lstsq(jacobian.T, forces, rcond=None)[0], atol=1e-10)
    np.testing.assert_array_equal(lw.gravity_force(mech, q), lw.gravity_force(mech.spanning_tree, q))
    assert np.abs(lw.forward_dynamics(mech.spanning_tree, q, v, tau) - a).max() > 1.0
    held = lw.static_forces(mech, q, actuated=("joint1", "joint4"))
    np.testing.assert_array_equal(held, lw.inverse_dynamics(mech, q, rest, rest, actuated=("joint1", "joint4")))
    np.testing.assert_allclose(lw.forward_dynamics(mech, q, rest, held), 0.0, atol=1e-9)
    moved = lw.inverse_dynamics(mech, q, v, a)
    np.testing.assert_allclose(lw.forward_dynamics(mech, q, v, moved), a, atol=1e-9 * np.abs(a).max())
