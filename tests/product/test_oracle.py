"""The oracle of the product satisfies the laws it is made from, and every case is what its name says."""

import numpy as np
import pytest

import linkwise as lw

from .mechanisms import NAMES, case
from .oracle import Terms


@pytest.mark.parametrize("name", NAMES)
def test_states_keep_their_constraints(name):
    this = case(name)
    terms = Terms(this)
    rates = np.zeros(len(terms.bias))
    if name == "driven":
        rates = this.mech.constraints.drive_rates
    assert np.abs(terms.jacobian @ this.v - rates).max(initial=0.0) < 1e-9
    assert np.abs(this.v).max() > 1e-2
    assert terms.basis.shape[1] > 0
    assert this.tree == (len(terms.bias) == 0)


@pytest.mark.parametrize("name", NAMES)
def test_terms_agree_with_the_spanning_tree(name):
    this = case(name)
    terms, tree = Terms(this), this.mech.spanning_tree
    np.testing.assert_allclose(lw.mass_matrix(tree, this.q), terms.mass, atol=1e-11 * np.abs(terms.mass).max())
    scale = max(1.0, np.abs(terms.bias_force).max())
    np.testing.assert_allclose(lw.bias_force(tree, this.q, this.v), terms.bias_force, atol=1e-11 * scale)


@pytest.mark.parametrize("name", NAMES)
def test_constraint_forces_do_no_work_on_allowed_motions(name):
    this = case(name)
    terms = Terms(this)
    forces = terms.constraint_forces(this.tau)
    assert np.abs(terms.basis.T @ forces).max() < 1e-9 * max(1.0, np.abs(forces).max())
