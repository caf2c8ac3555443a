"""Local parametrizations of the constraint manifold and the local state-space form (spencer2004 2.2, 2.3).

A chart takes independent coordinates y to the one configuration Psi(y) nearby with closed loops.  All functions here
take one state at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from .. import tree_dynamics as tree
from ..mechanism import Mechanism, MechanismError
from ..tree_dynamics import _function
from .assembly import CLOSED, generic_rank
from .constraints import constraint_bias, constraint_jacobian, position_error
from .decomposition import decompose
from .dynamics import _chosen, forward_dynamics
from .formulations import Loops, chosen_rows
from .motion import Control, Motion

WORST_CONDITION = 1e4  # of [D1 R; G]; beyond, another chart describes the motion better
SLOWEST = 0.9  # contraction rate of Newton's iteration above which it is not converging


class ChartError(MechanismError):
    """Coordinates that do not describe the motion here (2.27, 2.28 violated) or a point out of the chart's reach."""


class Coordinates(NamedTuple):
    """Independent coordinates y = c(q), linear or not: R(q, y) = c(q) - y (2.25).

    value(q)      (p,): c(q)
    rows(q)       (p, nv): D1 R, with dy/dt = rows v
    bias(q, v)    (p,): second derivative of y while v is constant
    """

    value: Callable[[np.ndarray], np.ndarray]
    rows: Callable[[np.ndarray], np.ndarray]
    bias: Callable[[np.ndarray, np.ndarray], np.ndarray]


def linear_coordinates(mech: Mechanism, origin: np.ndarray, rows: np.ndarray) -> Coordinates:
    """y = R (q - origin), the difference taken on the configuration manifold (2.32, 2.33)."""
    jacobian = _function(mech, "difference_jacobian", None)
    bias = _function(mech, "difference_bias", None)
    return Coordinates(
        lambda q: rows @ tree.difference(mech, origin, q),
        lambda q: rows @ jacobian(origin, q),
        lambda q, v: rows @ bias(origin, q, v),
    )


@dataclass(frozen=True)
class LocalParametrization:
    """A chart around ``origin``; make one with ``local_parametrization``."""

    mechanism: Mechanism
    origin: np.ndarray
    coordinates: Coordinates
    rank: int

    def independent_state(self, q, v) -> tuple[np.ndarray, np.ndarray]:
        """(y, dy/dt) of a state: Psi^-1 (2.14)."""
        q = np.asarray(q, dtype=float)
        return self.coordinates.value(q), self.coordinates.rows(q) @ np.asarray(v, dtype=float)

    def configuration(self, y, guess=None, tolerance: float = CLOSED, max_steps: int = 30) -> np.ndarray:
        """(nq,): Psi(y), by Newton's iteration from ``guess`` (the origin if none is given).

        It stops when the distance to the solution, rho / (1 - rho) times the last step with the contraction rate rho
        estimated from the steps, is below ``tolerance`` (2.3.1), and raises ``ChartError`` where it does not contract.
        """
        q = self.origin if guess is None else np.asarray(guess, dtype=float)
        first = rho = 0.0
        for j in range(max_steps):
            error = np.concatenate([self.coordinates.value(q) - np.asarray(y, dtype=float), position_error(self._m, q)])
            change = -decompose(self.conditions(q)).solve(error)
            size = float(np.linalg.norm(change))
            first = first or size
            if not np.isfinite(size) or size > 1e3:
                break
            q = tree.integrate(self._m, q, change, 1.0)
            if size == 0.0:
                return self._found(q, tolerance)
            rho = (size / first) ** (1.0 / (j + 1)) if j else 0.5
            if rho < 1.0 and rho / (1.0 - rho) * size <= tolerance:
                return self._found(q, tolerance)
            if j > 3 and rho > SLOWEST:
                break
        raise ChartError(
            f"y = {np.asarray(y)} is out of reach of this chart of mechanism {self._m.name!r}: Newton's iteration does "
            f"not contract (rate {rho:.2g}); make a new chart nearer to it with recentred(q)"
        )

    def conditions(self, q) -> np.ndarray:
        """(p + m, nv): [D1 R; G], regular where the coordinates describe the motion (2.22, 2.28)."""
        return np.vstack([self.coordinates.rows(np.asarray(q, dtype=float)), constraint_jacobian(self._m, q)])

    def condition(self, q) -> float:
        """Condition number of [D1 R; G]: infinite where the coordinates fail (2.28)."""
        values = np.linalg.svd(self.conditions(q), compute_uv=False)
        return float(values[0] / values[-1]) if values[-1] > 0.0 and len(values) == self._m.nv else float("inf")

    def derivative(self, q) -> np.ndarray:
        """(nv, p): K, the derivative of Psi (2.44)."""
        return self._basis(q, np.zeros(self._m.n_constraints))[0]

    def velocity(self, q, y_rate) -> np.ndarray:
        """(nv,): v = K dy/dt (2.42a)."""
        return self.derivative(q) @ np.asarray(y_rate, dtype=float)

    def acceleration(self, q, v, y_acceleration) -> np.ndarray:
        """(nv,): a = K d2y/dt2 + k (2.42b)."""
        basis, offset = self._basis(q, constraint_bias(self._m, q, v))
        return basis @ (np.asarray(y_acceleration, dtype=float) - self.coordinates.bias(q, v)) + offset

    def forward_dynamics(self, q, v, tau) -> np.ndarray:
        """(p,): d2y/dt2, the local state-space form (2.15, 2.16)."""
        a = forward_dynamics(self._m, q, v, tau, rank=self.rank)
        return self.coordinates.rows(q) @ a + self.coordinates.bias(q, v)

    def recentred(self, q) -> LocalParametrization:
        """A chart of tangent-space coordinates around another assembled configuration."""
        return replace(local_parametrization(self._m, q), rank=self.rank)

    @property
    def _m(self) -> Mechanism:
        return self.mechanism

    def _basis(self, q, bias) -> tuple[np.ndarray, np.ndarray]:
        jacobian = constraint_jacobian(self._m, q)
        rows = self.coordinates.rows(np.asarray(q, dtype=float))
        try:
            return chosen_rows(Loops(jacobian, bias, self._m.nv - len(rows)), rows)
        except MechanismError as error:
            raise ChartError(str(error)) from None

    def _found(self, q: np.ndarray, tolerance: float) -> np.ndarray:
        error = np.linalg.norm(position_error(self._m, q))
        if not error <= 1e3 * tolerance:
            raise ChartError(
                f"no configuration of mechanism {self._m.name!r} has these coordinates: {error:.3g} remain"
            )
        return q


def local_parametrization(mech: Mechanism, q, independent: Any = None) -> LocalParametrization:
    """A chart of the constraint manifold around the assembled configuration ``q``.

    independent   None: coordinates in the tangent space at q (3.1); joint names: their coordinates (partitioning);
                  rows (p, nv): y = R (q - origin) (2.32); or ``Coordinates``: any functions of q (2.25)

    ``ChartError`` if they do not describe the motion at q (2.28).
    """
    q = np.array(q, dtype=float)
    rank = generic_rank(mech, q)
    if isinstance(independent, Coordinates):
        coordinates = independent
    else:
        chosen = _chosen(mech, independent)
        if chosen is None:
            svd = decompose(constraint_jacobian(mech, q), rank=rank)
            rows = svd.v[:, svd.is_free].T
        else:
            rows = np.eye(mech.nv)[chosen] if chosen.ndim == 1 else chosen
        coordinates = linear_coordinates(mech, q, rows)
    chart = LocalParametrization(mech, q, coordinates, rank)
    count, freedoms = len(coordinates.rows(q)), mech.nv - rank
    if count != freedoms or chart.condition(q) > 1e12:
        raise ChartError(
            f"these coordinates do not describe the motion of mechanism {mech.name!r} here: it has {freedoms} freedoms "
            f"to {count} coordinates, and [D1 R; G] has the condition number {chart.condition(q):.3g} (2.28)"
        )
    return chart


def simulate_in_charts(
    mech: Mechanism,
    q0,
    v0,
    duration: float,
    control: Control | None = None,
    step: float = 1e-3,
    independent: Any = None,
    worst_condition: float = WORST_CONDITION,
) -> tuple[Motion, int]:
    """The motion in independent coordinates, and the number of changes of chart: the local state-space form (2.16)
    integrated by the classical Runge-Kutta method, every state on the manifold by Psi (2.17).

    Starts with the chart of ``independent`` and goes over to tangent-space coordinates where its condition number
    exceeds ``worst_condition``.  Singular positions, where no chart exists, are for ``simulate``.
    """
    q, v = np.asarray(q0, dtype=float), np.asarray(v0, dtype=float)
    chart, changes = local_parametrization(mech, q, independent), 0
    v = chart.velocity(q, chart.coordinates.rows(q) @ v)
    count = round(duration / step)
    h, times, states = duration / count, np.linspace(0.0, duration, count + 1), [(q, v)]

    def at(y: np.ndarray, y_rate: np.ndarray, guess: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        reached = chart.configuration(y, guess)
        return reached, chart.velocity(reached, y_rate)

    def acceleration(t: float, y: np.ndarray, y_rate: np.ndarray, guess: np.ndarray) -> np.ndarray:
        there = at(y, y_rate, guess)
        tau = np.zeros(mech.nv) if control is None else np.asarray(control(t, *there), dtype=float)
        return chart.forward_dynamics(*there, tau)

    for t in times[:-1]:
        if chart.condition(q) > worst_condition:
            chart, changes = chart.recentred(q), changes + 1
        y, r = chart.independent_state(q, v)
        a1 = acceleration(t, y, r, q)
        a2 = acceleration(t + h / 2, y + h / 2 * r, r + h / 2 * a1, q)
        a3 = acceleration(t + h / 2, y + h / 2 * r + h * h / 4 * a1, r + h / 2 * a2, q)
        a4 = acceleration(t + h, y + h * r + h * h / 2 * a2, r + h * a3, q)
        q, v = at(y + h * r + h * h / 6 * (a1 + a2 + a3), r + h / 6 * (a1 + 2 * a2 + 2 * a3 + a4), q)
        states.append((q, v))
    return Motion(mech, times, *(np.array(x) for x in zip(*states, strict=True))), changes
