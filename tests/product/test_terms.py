"""Terms of the equations of motion M a + h = tau + G* lambda: of the spanning tree, never projected."""

import numpy as np

import linkwise as lw

from .mechanisms import case
from .product import Quantity, cells, check


def _at_rest(terms):
    from .oracle import inverse_dynamics

    zero = np.zeros(terms.mech.nv)
    return inverse_dynamics(terms.mech, terms.q, zero, zero)


QUANTITIES = [
    Quantity("mass_matrix", lambda c: lw.mass_matrix(c.mech, c.q), lambda t: t.mass),
    Quantity("bias_force", lambda c: lw.bias_force(c.mech, c.q, c.v), lambda t: t.bias_force),
    Quantity("gravity_force", lambda c: lw.gravity_force(c.mech, c.q), _at_rest),
    Quantity(
        "coriolis_matrix_times_velocity",
        lambda c: lw.coriolis_matrix(c.mech, c.q, c.v) @ c.v,
        lambda t: t.bias_force - _at_rest(t),
    ),
    Quantity(
        "kinetic_energy", lambda c: lw.kinetic_energy(c.mech, c.q, c.v), lambda t: 0.5 * (t.v @ t.mass @ t.v), 1e-10
    ),
    Quantity("mass_matrix_inverse", lambda c: lw.mass_matrix_inverse(c.mech, c.q), lambda t: np.linalg.inv(t.mass)),
]


@cells(QUANTITIES)
def test_product(quantity, case_name):
    check(quantity, case(case_name))
