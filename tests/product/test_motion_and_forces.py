"""What is solved for under constraints: accelerations, joint forces, reactions and their derivatives."""

import numpy as np
import pytest

import linkwise as lw
from linkwise.constraints.force_units import velocity_units

from .mechanisms import NAMES, Case, case
from .oracle import RANK, Terms, constraint_jacobian, differentiate, inverse_dynamics
from .product import Quantity, cells, check, given, terms


def _case(t: Terms) -> Case:
    return next(c for c in map(case, NAMES) if terms(c.name) is t)


def _accelerations(c: Case) -> np.ndarray:
    """Some that the constraints allow."""
    return terms(c.name).accelerations(c.tau)


def _load(t: Terms) -> np.ndarray:
    return t.mass @ t.accelerations(_case(t).tau) + t.bias_force


def _least(t: Terms, load: np.ndarray, units: np.ndarray | float = 1.0) -> np.ndarray:
    """tau with K* tau = K* load and the least sum of (units * tau)^2."""
    leverage = (np.ones(t.mech.nv) / units**2)[:, None] * t.basis
    return leverage @ np.linalg.solve(t.basis.T @ leverage, t.basis.T @ load)


# -- curves of states that keep the constraints ------------------------------------------------------------------


class Curve:
    """States q(s), v(s) from that of a case along a motion that its constraints allow."""

    def __init__(self, t: Terms):
        self.c, self.t = _case(t), t
        self.way = t.basis @ np.random.default_rng(1).normal(size=t.basis.shape[1])
        holds = np.ones(len(self.c.mech.loops), bool) if self.c.active is None else self.c.active
        self.places = [
            np.arange(t.mech.n_constraints)[t.mech.constraints.rows(loop.name)]
            for loop, on in zip(t.mech.loops, holds, strict=True)
            if on
        ]
        rows = np.concatenate(self.places) if self.places else np.zeros(0, int)
        self.of_positions = t.mech.constraints.holonomic_rows[rows].astype(bool) if len(rows) else np.zeros(0, bool)
        self.rows = rows[self.of_positions]

    def at(self, s: float) -> Terms:
        q = lw.integrate(self.t.mech, self.t.q, self.way, s)
        for _ in range(5 if len(self.rows) else 0):
            rows = constraint_jacobian(self.t.mech, q, self.t.active)[self.of_positions]
            error = lw.constraints.position_error(self.t.mech, q)[self.rows]
            q = lw.integrate(self.t.mech, q, -np.linalg.pinv(rows, rcond=RANK) @ error, 1.0)
        rows, rates = constraint_jacobian(self.t.mech, q, self.t.active), self.t.jacobian @ self.t.v
        back = np.linalg.pinv(rows, rcond=RANK) @ (rows @ self.t.v - rates) if len(rows) else 0.0
        return Terms(self.c, q, self.t.v - back)

    def slope(self, function) -> np.ndarray:
        return differentiate(lambda s: function(self.at(s)))


def _slope_of_accelerations(c: Case) -> tuple[np.ndarray, np.ndarray]:
    """Along the curve, and by joint forces."""
    curve = Curve(terms(c.name))
    by_q, by_v, by_tau = lw.forward_dynamics_derivatives(c.mech, c.q, c.v, c.tau, **given(c))
    return by_q @ _steps(curve) + by_v @ curve.slope(lambda t: t.v), by_tau


def _steps(curve: Curve) -> np.ndarray:
    return differentiate(lambda s: lw.difference(curve.c.mech, curve.c.q, curve.at(s).q))


def _slope_of_forces(c: Case) -> np.ndarray:
    curve, tau = Curve(terms(c.name)), c.tau
    by_q, by_v, by_a = lw.inverse_dynamics_derivatives(c.mech, c.q, c.v, _accelerations(c), **given(c))
    of_a = curve.slope(lambda t: t.accelerations(tau))
    return by_q @ _steps(curve) + by_v @ curve.slope(lambda t: t.v) + by_a @ of_a


QUANTITIES = [
    Quantity(
        "forward_dynamics",
        lambda c: lw.forward_dynamics(c.mech, c.q, c.v, c.tau, **given(c)),
        lambda t: t.accelerations(_case(t).tau),
        1e-8,
    ),
    Quantity(
        "inverse_dynamics",
        lambda c: lw.inverse_dynamics(c.mech, c.q, c.v, _accelerations(c), weights=np.ones(c.mech.nv), **given(c)),
        lambda t: _least(t, _load(t)),
        1e-7,
    ),
    Quantity(
        "inverse_dynamics_in_units_of_the_mechanism",
        lambda c: lw.inverse_dynamics(c.mech, c.q, c.v, _accelerations(c), **given(c)),
        lambda t: _least(t, _load(t), velocity_units(t.mech)) if t.mech.loops else _load(t),
        1e-7,
    ),
    Quantity(
        "static_forces",
        lambda c: lw.static_forces(c.mech, c.q, weights=np.ones(c.mech.nv), **given(c)),
        lambda t: _least(t, inverse_dynamics(t.mech, t.q, np.zeros(t.mech.nv), np.zeros(t.mech.nv))),
        1e-7,
    ),
    Quantity(
        "forward_dynamics_derivatives",
        _slope_of_accelerations,
        lambda t: (Curve(t).slope(lambda near: near.accelerations(_case(t).tau)), t.response),
        1e-5,
    ),
    Quantity(
        "inverse_dynamics_derivatives",
        _slope_of_forces,
        lambda t: Curve(t).slope(
            lambda near: _least(
                near, near.mass @ near.accelerations(_case(t).tau) + near.bias_force, velocity_units(t.mech)
            )
        ),
        1e-5,
    ),
]


@pytest.mark.filterwarnings("ignore::linkwise.MechanismWarning")
@cells(QUANTITIES)
def test_product(quantity, case_name):
    check(quantity, case(case_name))
