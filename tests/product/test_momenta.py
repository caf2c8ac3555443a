"""Joint momenta p = M v, the velocities that belong to them, and their motion with forces of the constraints."""

import numpy as np
import pytest

import linkwise as lw

from .mechanisms import NAMES, SINGULAR, case
from .oracle import Terms, differentiate, mass_matrix
from .product import Quantity, cells, check, given, terms


def _momenta(case):
    return lw.formulations.momenta.momenta(case.mech, case.q, case.v)


def _pushes(case):
    return np.random.default_rng(5).normal(size=(case.mech.n_links, 6))


def _mass_rate(terms):
    return differentiate(lambda s: mass_matrix(terms.mech, lw.integrate(terms.mech, terms.q, terms.v, s)))


def _momentum_rate(terms, wrenches=None):
    """M a + dM/dt v, a with wrenches by the virtual work of each on the Jacobian of its link."""
    tau = terms.case.tau
    if wrenches is not None:
        names = terms.mech.link_names
        tau = tau + sum(lw.jacobian(terms.mech, terms.q, n).T @ w for n, w in zip(names, wrenches, strict=True))
    return terms.mass @ terms.accelerations(tau) + _mass_rate(terms) @ terms.v


def _velocities(terms):
    """The v with G v = rates and K* (M v - p) = 0 for a p that no velocity has."""
    p = terms.case.tau
    offset = terms.v - terms.response @ (terms.mass @ terms.v)  # zero unless there are drives
    return terms.response @ p + offset


QUANTITIES = [
    Quantity("momenta", _momenta, lambda t: t.mass @ t.v),
    Quantity(
        "velocities", lambda c: lw.formulations.momenta.velocities(c.mech, c.q, _momenta(c), **given(c)), lambda t: t.v
    ),
    Quantity(
        "velocities_of_any", lambda c: lw.formulations.momenta.velocities(c.mech, c.q, c.tau, **given(c)), _velocities
    ),
    Quantity(
        "momentum_motion",
        lambda c: lw.formulations.momenta.motion(c.mech, c.q, _momenta(c), c.tau, **given(c)),
        lambda t: (_momentum_rate(t), t.v),
    ),
    Quantity(
        "momentum_motion_and_total_rates",
        lambda c: lw.formulations.momenta.motion_and_total_rates(c.mech, c.q, _momenta(c), c.tau),
        lambda t: (_momentum_rate(t), t.v, lw.formulations.diagonal.rates(t.mech, t.q, t.v)),
        cases=[name for name in NAMES if name != "masked feet"],
    ),
    Quantity(
        "momentum_motion_under_wrenches",
        lambda c: lw.formulations.momenta.forward_dynamics(c.mech, c.q, _momenta(c), c.tau, _pushes(c), **given(c)),
        lambda t: _momentum_rate(t, _pushes(t.case)),
    ),
]


@cells(QUANTITIES)
def test_product(quantity, case_name):
    check(quantity, case(case_name))


@pytest.mark.parametrize("name", NAMES[3::4])
def test_batches(name):
    this, rng = case(name), np.random.default_rng(0)
    q, p = np.broadcast_to(this.q, (2, 3, this.mech.nq)), rng.normal(size=(3, this.mech.nv))
    changes, v = lw.formulations.momenta.motion(this.mech, q, p, this.tau, **given(this))
    assert changes.shape == v.shape == (2, 3, this.mech.nv)
    for k in range(3):
        expected = lw.formulations.momenta.motion(this.mech, this.q, p[k], this.tau, **given(this))
        np.testing.assert_allclose((changes[1, k], v[0, k]), expected, atol=1e-12 * np.abs(expected).max())
    empty = lw.formulations.momenta.motion(this.mech, np.zeros((2, 0, this.mech.nq)), p[0], this.tau, **given(this))
    assert [x.shape for x in empty] == [(2, 0, this.mech.nv)] * 2


@pytest.mark.parametrize("name", ["overconstrained", "rolling", "driven", "masked feet"])
def test_states_that_are_left_to_singular_values(name, monkeypatch):
    from linkwise.constraints import solver

    this = case(name)
    monkeypatch.setattr(solver, "serves", lambda mech, name, all_hold=True: False)
    for quantity in QUANTITIES[2:4]:
        values, right = quantity.value(this), quantity.oracle(terms(name))
        pairs = zip(values, right, strict=True) if isinstance(right, tuple) else [(values, right)]
        for value, expected in pairs:
            np.testing.assert_allclose(value, expected, atol=1e-9 * max(1.0, np.abs(expected).max()))


def test_singular_positions():
    """A flattened parallelogram loses a constraint: velocities are those of the least momenta that are left over."""
    this = case(SINGULAR)
    right = Terms(this)
    v = lw.formulations.momenta.velocities(this.mech, this.q, this.tau)
    np.testing.assert_allclose(v, right.response @ this.tau, atol=1e-9)
    assert right.basis.shape[1] == 2
    changes, again = lw.formulations.momenta.motion(this.mech, this.q, this.tau, np.zeros(3))
    np.testing.assert_allclose(again, v, atol=1e-9)
    assert np.isfinite(changes).all()


def test_errors():
    this = case("one loop")
    with pytest.raises(lw.MechanismError, match=r"p has shape \(1,\)"):
        lw.formulations.momenta.velocities(this.mech, this.q, [1.0])
    with pytest.raises(lw.MechanismError, match="active has shape"):
        lw.formulations.momenta.velocities(this.mech, this.q, this.v, active=[True, False])
    with pytest.raises(lw.MechanismError, match="active has shape"):
        lw.formulations.momenta.motion(
            case("tree").mech, case("tree").q, case("tree").v, case("tree").tau, active=[True]
        )
    with pytest.warns(lw.MechanismWarning, match="is open by"):
        lw.formulations.momenta.velocities(this.mech, this.q + 0.3, this.v)
