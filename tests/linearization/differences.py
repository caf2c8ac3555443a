"""Linear models by central differences of closed forward dynamics on the constraint manifold: the oracle."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import linkwise as lw

WEIGHTS = (4 / 5, -1 / 5, 4 / 105, -1 / 280)  # central differences of order eight


def slope(function: Callable[[float], np.ndarray], step: float) -> np.ndarray:
    """d/ds of a function at zero."""
    return sum(w * (function(k * step) - function(-k * step)) for k, w in enumerate(WEIGHTS, 1)) / step


class Neighbourhood:
    """States of a mechanism near (q, v) by their independent coordinates: y = R difference(q, there), z = R v.

    Independent of the linearization: configurations by Newton's iteration of a chart (or, for trees, by ``integrate``),
    velocities by solving [R; G] v = [z; 0], accelerations by ``forward_dynamics`` or ``forward_dynamics``.
    """

    def __init__(self, mech, q, v, tau, rows, passive=None, wrenches=None):
        self.mech, self.q, self.v, self.tau, self.rows = mech, q, v, tau, np.asarray(rows, dtype=float)
        self.passive, self.wrenches = passive, wrenches
        self.chart = lw.kinematics.local_parametrization(mech, q, self.rows) if mech.loops else None
        self.jacobian = lw.compile("difference_jacobian", mech)

    def state(self, y, z):
        """(q, v) of all joints."""
        if self.chart is None:
            steps = np.linalg.solve(self.rows, np.stack([y, z], axis=1))
            return lw.integrate(self.mech, self.q, steps[:, 0], 1.0), steps[:, 1]
        q = self.chart.configuration(y, tolerance=1e-14)
        stacked = np.vstack([self.rows, lw.constraints.constraint_jacobian(self.mech, q)])
        right = np.concatenate([z, np.zeros(self.mech.n_constraints)])
        return q, np.linalg.lstsq(stacked, right, rcond=None)[0]

    def rates(self, q, v, tau) -> np.ndarray:
        """(2 nv,): rate of the step from the origin, and acceleration."""
        if self.passive is not None:
            tau = tau + self.passive.forces(self.mech, q, v)
        if self.mech.loops:
            a = lw.forward_dynamics(self.mech, q, v, tau, wrenches=self.wrenches, tolerance=1e-6)
        else:
            a = lw.forward_dynamics(self.mech, q, v, tau, *(() if self.wrenches is None else (self.wrenches,)))
        return np.concatenate([self.jacobian(self.q, q) @ v, a])

    def own(self, x: np.ndarray) -> np.ndarray:
        """(2 p,): R of both halves."""
        n = self.mech.nv
        return np.concatenate([self.rows @ x[:n], self.rows @ x[n:]])

    def model(self, step: float = 2e-3) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """A, B, drift."""
        p = len(self.rows)
        origin = np.concatenate([np.zeros(p), self.rows @ self.v])

        def rate(x, tau):
            return self.own(self.rates(*self.state(x[:p], x[p:]), tau))

        a = [slope(lambda s, e=e: rate(origin + s * e, self.tau), step) for e in np.eye(2 * p)]
        b = [slope(lambda s, e=e: rate(origin, self.tau + s * e), 1.0) for e in np.eye(self.mech.nv)]
        return np.stack(a, axis=1), np.stack(b, axis=1), rate(origin, self.tau)


def close(found, expected, tolerance: float) -> None:
    """Equal within ``tolerance`` times the largest number expected."""
    assert found.shape == expected.shape
    worst = np.abs(found - expected).max(initial=0.0) / max(1.0, np.abs(expected).max(initial=0.0))
    assert worst <= tolerance, f"relative error {worst:.2e} is above {tolerance:.0e}"


def matched(found, expected, tolerance: float) -> None:
    """The same numbers in any order, within ``tolerance`` times the largest."""
    found, expected = np.asarray(found, dtype=complex), np.asarray(expected, dtype=complex)
    assert found.shape == expected.shape
    size = max(1.0, np.abs(expected).max(initial=0.0))
    left = list(found)
    for value in expected:
        nearest = min(range(len(left)), key=lambda i: abs(left[i] - value))
        distance = abs(left.pop(nearest) - value) / size
        assert distance <= tolerance, f"nothing within {tolerance:.0e} of {value}, only within {distance:.1e}"
