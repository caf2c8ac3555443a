"""Diagonalized dynamics with mimic joints: factors of the mass matrix by elimination.

The factors of jain1995 take one joint at a time, which is impossible for coupled coordinates.  Elimination from the
last coordinate to the first gives factors of the same form, m = U d^(1/2) with U unit triangular.  For trees without
mimic joints of one degree of freedom each these are the paper's.  With m^-1 dM/dt m^-* = F + F*, F triangular,

    dm/dt = m F,    dnu/dt = m^-1 (tau - h) + F* nu    for M dv/dt + h = tau, nu = m* v
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..links.factor import Factor
from ..links.inertia_rates import half_rate
from ..operators.plan import apply
from ..recursions.tree import Tree
from ..scalar import Matrix, Scalar, dot, sqrt
from . import expressions as ex
from .dynamics import mass_matrix
from .inertia_derivatives import mass_matrix_derivatives

Vector = Sequence[Scalar]


class Factors:
    """m of the mass matrix, or U without normalization, in the order of the coordinates."""

    def __init__(self, matrix: Matrix, normalized: bool):
        self.factor = Factor.of([row[::-1] for row in matrix[::-1]])
        self.normalized = normalized

    def _reversed(self, function: Callable[[Vector], list[Scalar]], x: Vector) -> list[Scalar]:
        return function(list(x)[::-1])[::-1]

    def times(self, x: Vector) -> list[Scalar]:
        """m x."""
        return self._reversed(self.factor.half if self.normalized else self.factor.unit, x)

    def adjoint(self, x: Vector) -> list[Scalar]:
        """m* x."""
        return self._reversed(self.factor.half_adjoint if self.normalized else self.factor.unit_adjoint, x)

    def solve(self, x: Vector) -> list[Scalar]:
        """m^-1 x."""
        return self._reversed(self.factor.half_inverse if self.normalized else self.factor.forward, x)

    def solve_adjoint(self, x: Vector) -> list[Scalar]:
        """m^-* x."""
        return self._reversed(self.factor.half_inverse_adjoint if self.normalized else self.factor.backward, x)

    @property
    def pivots(self) -> list[Scalar]:
        """d."""
        return self.factor.pivots[::-1]

    def rate(self, mass_rate: Matrix) -> Matrix:
        """F with dm/dt = m F, or dU/dt = U F, for a rate of the mass matrix."""
        lower = half_rate(self.factor, [row[::-1] for row in mass_rate[::-1]])
        n = len(lower)
        result: Matrix = [[0.0] * n for _ in range(n)]
        for i, row in enumerate(lower):
            for j, entry in enumerate(row):
                if not self.normalized:
                    pivots, reciprocal = self.factor.pivots, self.factor.reciprocal
                    entry = 0.0 if i == j else entry * sqrt(pivots[i] * reciprocal[j])
                result[n - 1 - i][n - 1 - j] = entry
        return result


def _factors(tree: Tree, q: Vector, normalized: bool) -> Factors:
    return Factors(mass_matrix(tree, q), normalized)


def rates(tree: Tree, q: Vector, v: Vector, normalized: bool = True) -> list[Scalar]:
    """(nv,): nu = m* v, or xi."""
    return _factors(tree, q, normalized).adjoint(v)


def velocities(tree: Tree, q: Vector, nu: Vector, normalized: bool = True) -> list[Scalar]:
    """(nv,): v = m^-* nu."""
    return _factors(tree, q, normalized).solve_adjoint(nu)


def forces(tree: Tree, q: Vector, tau: Vector, normalized: bool = True) -> list[Scalar]:
    """(nv,): epsilon = m^-1 tau, or kappa."""
    return _factors(tree, q, normalized).solve(tau)


def forces_of_all(tree: Tree, q: Vector, tau: Vector, wrenches: Any, normalized: bool = True) -> list[Scalar]:
    """(nv,): epsilon of joint forces, gravity and wrenches on the links together."""
    return forces(tree, q, apply(ex.COORDINATE_FORCES, tree, q, tau=tau, wrenches=wrenches), normalized)


def torques(tree: Tree, q: Vector, eps: Vector, normalized: bool = True) -> list[Scalar]:
    """(nv,): tau = m epsilon."""
    return _factors(tree, q, normalized).times(eps)


def factor(tree: Tree, q: Vector, normalized: bool = True) -> Matrix:
    """(nv, nv): m, or U."""
    return apply_columnwise(_factors(tree, q, normalized).times, tree.mechanism.nv)


def factor_inverse(tree: Tree, q: Vector, normalized: bool = True) -> Matrix:
    """(nv, nv): m^-1, or U^-1."""
    return apply_columnwise(_factors(tree, q, normalized).solve, tree.mechanism.nv)


def factor_derivatives(tree: Tree, q: Vector, normalized: bool = True) -> list[Matrix]:
    """(nv, nv, nv): [i, j, k] is dm_ij along tangent direction k."""
    cube, factors, n = mass_matrix_derivatives(tree, q), _factors(tree, q, normalized), range(tree.mechanism.nv)
    along = [_factor_rate(factors, [[row[k] for row in matrix] for matrix in cube]) for k in n]
    return [[[along[k][i][j] for k in n] for j in n] for i in n]


def factor_rate(tree: Tree, q: Vector, v: Vector, normalized: bool = True) -> Matrix:
    """(nv, nv): dm/dt along the velocities v."""
    return _factor_rate(_factors(tree, q, normalized), _mass_rate(tree, q, v))


def motion(tree: Tree, q: Vector, nu: Vector, tau: Vector, wrenches: Any = None, normalized: bool = True) -> Matrix:
    """(2, nv): dnu/dt and v."""
    factors = _factors(tree, q, normalized)
    v = factors.solve_adjoint(nu)
    forces = ex.bias_free_moments(ex.forces_on_links(wrenches is not None))
    applied = apply(forces, tree, q, v=v, tau=tau, wrenches=wrenches)
    return [_accelerations(tree, q, v, nu, factors, applied), v]


def coriolis(tree: Tree, q: Vector, nu: Vector, normalized: bool = True) -> list[Scalar]:
    """(nv,): C(q, nu), or C(q, xi) with d dxi/dt + C = kappa."""
    factors = _factors(tree, q, normalized)
    v = factors.solve_adjoint(nu)
    forces = [-x for x in apply(ex.VELOCITY_FORCE, tree, q, v=v)]
    change = _accelerations(tree, q, v, nu, factors, forces)
    return [-x if normalized else -x * d for x, d in zip(change, factors.pivots, strict=True)]


def _accelerations(tree: Tree, q: Vector, v: Vector, nu: Vector, factors: Factors, applied: Vector) -> list[Scalar]:
    """dnu/dt = m^-1 f + F* nu, or dxi/dt = d^-1 U^-1 f + F* xi, under the applied forces f."""
    rate = factors.rate(_mass_rate(tree, q, v))
    driven = factors.solve(applied)
    if not factors.normalized:
        driven = [x * (1.0 / d) for x, d in zip(driven, factors.pivots, strict=True)]
    turned = [dot([row[k] for row in rate], nu) for k in range(len(driven))]
    return [x + y for x, y in zip(driven, turned, strict=True)]


def _mass_rate(tree: Tree, q: Vector, v: Vector) -> Matrix:
    return [[dot(along, v) for along in row] for row in mass_matrix_derivatives(tree, q)]


def _factor_rate(factors: Factors, mass_rate: Matrix) -> Matrix:
    columns = [factors.times(column) for column in zip(*factors.rate(mass_rate), strict=True)]
    return [list(row) for row in zip(*columns, strict=True)]


def apply_columnwise(function: Callable[[Vector], list[Scalar]], n: int) -> Matrix:
    columns = [function([1.0 if i == j else 0.0 for i in range(n)]) for j in range(n)]
    return [list(row) for row in zip(*columns, strict=True)]


#: By the names of ``linkwise.formulations.diagonal``.
