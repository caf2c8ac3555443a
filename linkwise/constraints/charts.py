"""Local parametrizations of the constraint manifold and the local state-space form (spencer2004 2.2, 2.3).

A chart takes independent coordinates y to the one configuration Psi(y) nearby with closed loops.  All functions here
take one state at a time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..dynamics import trees as tree
from ..dynamics.states import ByJoint, Float64Array
from ..mechanism import Mechanism, MechanismError
from .accelerations import independent_at, spanning_tree_bias, terms
from .assembly import generic_rank
from .coordinates import FAILING, ChartError, Coordinates, ImplicitCoordinates, linear_coordinates
from .decomposition import Decomposition, decompose, orthonormalized, row_sizes
from .equations import decomposed_jacobian, one_state, require_holonomic, warn_if_open
from .formulations import Loops, row_basis
from .redundancy import closable_error, closable_jacobian
from .sizes import sizes
from .tolerances import LOOPS

WORST_CONDITION = 1e4  # of [D1 R; G]; beyond, another chart describes the motion better
SLOWEST = 0.9  # contraction rate of Newton's iteration above which it is not converging


@dataclass(frozen=True)
class LocalParametrization:
    """A chart around ``origin``; make one with ``local_parametrization``.

    Coordinates y of joints or rows are relative: y = R (q - origin), zero at the origin.  With the crank as the
    independent joint ``configuration([0.1])`` has it turned by 0.1 from its angle at the origin, not to 0.1.

    A known ``y`` may be passed with a configuration; otherwise it is searched for near its value at the origin.
    """

    mechanism: Mechanism
    origin: Float64Array
    coordinates: ImplicitCoordinates
    rank: int
    rows: Float64Array | None = None  # linear coordinates: y = rows (q - origin); None for others

    def independent_state(
        self, q: ArrayLike, v: ArrayLike, guess: ArrayLike | None = None
    ) -> tuple[Float64Array, Float64Array]:
        """(y, dy/dt) of a state: Psi^-1 (2.14, 2.26); y is the solution of R(q, y) = 0 near ``guess``."""
        q, v = self._state(q=q, v=v)
        y = self.coordinates.value(q, guess)
        return y, self.coordinates.rate(q, v, y)

    def configuration(
        self, y: ArrayLike, guess: ArrayLike | None = None, tolerance: float = LOOPS.closed, max_steps: int = 30
    ) -> Float64Array:
        """(nq,): Psi(y), by Newton's iteration on [R(q, y); g(q)] from ``guess``, by default the origin.

        y of joints and rows is relative to the origin.

        It stops when the distance to the solution, rho / (1 - rho) times the last step with the contraction rate rho
        estimated from the steps, is below ``tolerance`` (2.3.1), lengths in units of the loops' sizes, and raises
        ``ChartError`` if it does not contract.
        """
        (q,), y = self._state(q=self.origin if guess is None else guess), self.coordinates.given("y", y)
        first = rho = 0.0
        for j in range(max_steps):
            error = np.concatenate([self.coordinates.residual(q, y), closable_error(self._m, q)])
            change = -self._decomposed(q, y).solve(error)
            size = float(np.linalg.norm(change / sizes(self._m).columns))
            first = first or size
            if not np.isfinite(size) or size > 1e3:
                break
            q = tree.integrate(self._m, q, change, 1.0)
            if size == 0.0:
                return self._search_y(q, y, tolerance)
            rho = (size / first) ** (1.0 / (j + 1)) if j else 0.5
            if rho < 1.0 and rho / (1.0 - rho) * size <= tolerance:
                return self._search_y(q, y, tolerance)
            if j > 3 and rho > SLOWEST:
                break
        raise ChartError(
            f"y = {y} is out of reach of this chart of mechanism {self._m.name!r}: Newton's iteration does "
            f"not contract (rate {rho:.2g}); make a new chart nearer to it with recentred(q)"
        )

    def conditions(self, q: ArrayLike, y: ArrayLike | None = None) -> Float64Array:
        """(p + m, nv): [D1 R; G], regular where the coordinates describe the motion (2.22, 2.28), with dimensions."""
        (q,) = self._state(q=q)
        return np.vstack([self.coordinates.by_q(q, self._y(q, y)), closable_jacobian(self._m, q)])

    def condition(self, q: ArrayLike, y: ArrayLike | None = None) -> float:
        """Condition number of [D1 R; G], lengths in units of the loops' sizes and rows of R of unit size: infinite
        where the coordinates fail (2.28)."""
        (q,) = self._state(q=q)
        values = self._decomposed(q, y).s
        return float(values[0] / values[-1]) if values[-1] > 0.0 and len(values) == self._m.nv else float("inf")

    def derivative(self, q: ArrayLike, y: ArrayLike | None = None) -> Float64Array:
        """(nv, p): K, the derivative of Psi (2.29, 2.44)."""
        (q,) = self._state(q=q)
        return self._basis(q, closable_jacobian(self._m, q), np.zeros(self._m.n_constraints), self._y(q, y))[0]

    def velocity(self, q: ArrayLike, y_rate: ArrayLike, y: ArrayLike | None = None) -> Float64Array:
        """(nv,): v = K dy/dt (2.42a), plus k with G k = rates of the drives and R k = 0."""
        (q,) = self._state(q=q)
        basis, driven = self._basis(q, closable_jacobian(self._m, q), -self._m.constraints.drive_rates, self._y(q, y))
        return basis @ self.coordinates.given("y_rate", y_rate) + driven

    def offset(self, q: ArrayLike, v: ArrayLike, y: ArrayLike | None = None) -> Float64Array:
        """(nv,): dK/dt dy/dt, the acceleration while dy/dt is constant (2.42b).

        (2.45) has a zero for the second derivative of R, which vanishes for linear coordinates only.
        """
        q, v = self._state(q=q, v=v)
        at, y = terms(self._m, q, v), self._y(q, y)
        return self._accelerations(q, v, y, at.jacobian, at.bias)[1]

    def acceleration(
        self, q: ArrayLike, v: ArrayLike, y_acceleration: ArrayLike, y: ArrayLike | None = None
    ) -> Float64Array:
        """(nv,): a = K d2y/dt2 + dK/dt dy/dt (2.42b)."""
        q, v = self._state(q=q, v=v)
        at, y = terms(self._m, q, v), self._y(q, y)
        basis, offset = self._accelerations(q, v, y, at.jacobian, at.bias)
        return basis @ self.coordinates.given("y_acceleration", y_acceleration) + offset

    def forward_dynamics(
        self, q: ArrayLike, v: ArrayLike, tau: ArrayLike, wrenches: ArrayLike | None = None, y: ArrayLike | None = None
    ) -> Float64Array:
        """(p,): d2y/dt2, the local state-space form (2.16): K* M K d2y/dt2 = K* (F - M dK/dt dy/dt), before (2.43)."""
        q, v, tau = self._state(wrenches, q=q, v=v, tau=tau)
        at, y = terms(self._m, q, v), self._y(q, y)
        basis, offset = self._accelerations(q, v, y, at.jacobian, at.bias)
        force = tau - spanning_tree_bias(self._m, at, q, v, wrenches) - at.mass @ offset
        return np.linalg.solve(basis.T @ at.mass @ basis, basis.T @ force)

    def recentred(self, q: ArrayLike) -> LocalParametrization:
        """A chart of tangent-space coordinates around another assembled configuration."""
        return replace(local_parametrization(self._m, q), rank=self.rank)

    @property
    def _m(self) -> Mechanism:
        return self.mechanism

    def _state(self, wrenches: Any = None, **state: Any) -> list[np.ndarray]:
        return one_state("a chart", self._m, wrenches, **state)

    def _y(self, q: np.ndarray, y: ArrayLike | None) -> np.ndarray:
        return self.coordinates.value(q) if y is None else self.coordinates.given("y", y)

    def _basis(
        self, q: np.ndarray, jacobian: np.ndarray, bias: np.ndarray, y: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """K, and k with G k = -bias along which y accelerates by the curvature of R only."""
        rows, scale = self.coordinates.rows(q, y), sizes(self._m)
        loops = Loops(scale.dimensionless(jacobian), scale.rows * bias, self._m.nv - len(rows))
        try:
            return row_basis(loops, rows, scale.columns)
        except MechanismError as error:
            raise ChartError(str(error)) from None

    def _accelerations(
        self, q: np.ndarray, v: np.ndarray, y: np.ndarray, jacobian: np.ndarray, bias: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """K and dK/dt dy/dt, the latter with the second derivative of R."""
        basis, still = self._basis(q, jacobian, bias, y)
        return basis, still - basis @ self.coordinates.curvature(q, v, y)

    def _decomposed(self, q: np.ndarray, y: ArrayLike | None) -> Decomposition:
        """[D1 R; G] in dimensionless coordinates and constraints."""
        conditions, scale = self.conditions(q, y), sizes(self._m)
        return decompose(conditions, rows=self._units(conditions), columns=scale.columns)

    def _units(self, conditions: np.ndarray) -> np.ndarray:
        """(p + m,): factors that make the conditions dimensionless; coordinates are scaled by their largest
        derivative."""
        scale = sizes(self._m)
        count = len(conditions) - len(scale.rows)
        return np.concatenate([1.0 / row_sizes(conditions[:count] * scale.columns)[:, 0], scale.rows])

    def _search_y(self, q: np.ndarray, y: np.ndarray, tolerance: float) -> np.ndarray:
        residual = np.concatenate([self.coordinates.residual(q, y), closable_error(self._m, q)])
        error = np.linalg.norm(self._units(self.conditions(q, y)) * residual)
        if not error <= 1e3 * tolerance:
            raise ChartError(
                f"no configuration of mechanism {self._m.name!r} has these coordinates: {error:.3g} remain"
            )
        return q


def local_parametrization(mech: Mechanism, q: ByJoint, independent: Any = None) -> LocalParametrization:
    """A chart of the constraint manifold around the assembled configuration ``q``.

    independent   None: coordinates in the tangent space at q (3.1); joint names: their coordinates relative
                  to q (partitioning); rows (p, nv): y = R (q - origin) (2.32); ``Coordinates``: any functions
                  y = c(q); ``implicit_coordinates(...)``: any relation R(q, y) = 0 (2.25)

    Raises ``ChartError`` if they do not describe the motion at q (2.27, 2.28); warns of loops open by more than a
    thousandth of their size or 1 mrad.
    """
    q = one_state("local_parametrization", mech, q=q)[0].copy()
    require_holonomic("local_parametrization", mech)
    warn_if_open(mech, closable_error(mech, q))
    rank = int(generic_rank(mech, q))
    is_given = isinstance(independent, (Coordinates, ImplicitCoordinates))
    rows = None if is_given else _rows(mech, q, independent, rank)
    relation = _relation(q, independent if rows is None else linear_coordinates(mech, q, rows))
    chart = LocalParametrization(mech, q, relation, rank, rows)
    y = chart.coordinates.value(q)
    count, dofs, condition = len(y), mech.nv - rank, chart.condition(q, y)
    if count != dofs or condition > FAILING:
        rank_here = int(decomposed_jacobian(mech, closable_jacobian(mech, q)).rank)
        raise ChartError(
            f"these coordinates do not describe the motion of mechanism {mech.name!r} here: it has {dofs} degrees of "
            f"freedom to {count} coordinates, and [D1 R; G] has the condition number {condition:.3g} (2.28)"
            + (f"; the position is singular: G has the rank {rank_here}, not {rank}" if rank_here < rank else "")
        )
    return chart


def _rows(mech: Mechanism, q: np.ndarray, independent: Any, rank: int) -> np.ndarray:
    """(p, nv): R of linear coordinates, by default an orthonormal basis of the tangent space."""
    chosen = independent_at(mech, q, independent)
    if chosen is None:
        return orthonormalized(decomposed_jacobian(mech, closable_jacobian(mech, q), rank=rank).null).T
    return np.eye(mech.nv)[chosen] if chosen.ndim == 1 else chosen


def _relation(q: np.ndarray, coordinates: Coordinates | ImplicitCoordinates) -> ImplicitCoordinates:
    """Independent coordinates of either kind as a relation, with guesses at q."""
    if isinstance(coordinates, ImplicitCoordinates):
        return replace(coordinates, guess=coordinates.value(q))
    return coordinates.as_implicit(q)
