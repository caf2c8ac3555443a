"""Biases behind an inverse at one link: the operational-space bias, which no paper of the library lists."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise import operators as op

MECHANISMS = {
    "puma": lw.mechanisms.puma560(),
    "chain": lw.mechanisms.chain(8),
    "tree": lw.mechanisms.random_tree(5, 4, floating_base=True),
}


@pytest.mark.parametrize("name", MECHANISMS)
def test_operational_space_bias(name):
    """Lambda (J M^-1 h - dJ/dt v), with the inertial acceleration dJ/dt v + [0; omega x v] of the link's origin."""
    mech = MECHANISMS[name]
    link = mech.link_names[-1]
    at, v = op.B(link), op.joint_vector("v")
    inertia = (at.T @ op.psi.T @ op.H.T @ op.D.inv @ op.H @ op.psi @ at).inv
    propagated = at.T @ op.phi.T @ op.bias_acceleration(v)
    jacobian = at.T @ op.phi.T @ op.H.T
    bias = op.H @ op.phi @ (op.M @ op.phi.T @ op.bias_acceleration(v) + op.bias_force(v))
    expression = inertia @ (jacobian @ (op.H @ op.phi @ op.M @ op.phi.T @ op.H.T + op.R).inv @ bias - propagated)
    q, rates = lw.random_state(mech, np.random.default_rng(0), (4,))
    found = lw.compile(expression, mech, target="numpy")(q, rates)
    J = lw.jacobian(mech, q, link)
    V = (J @ rates[..., None])[..., 0]
    acceleration = (lw.derivatives.jacobian_rate(mech, q, rates, link) @ rates[..., None])[..., 0]
    acceleration[..., 3:] += np.cross(V[..., :3], V[..., 3:])
    h = lw.bias_force(mech, q, rates) - lw.gravity_force(mech, q)
    response = (J @ np.linalg.solve(lw.mass_matrix(mech, q), h[..., None]))[..., 0]
    expected = (lw.control.operational_inertia(mech, q, link) @ (response - acceleration)[..., None])[..., 0]
    assert np.allclose(found, expected, rtol=1e-9, atol=1e-9 * np.max(np.abs(expected)))
