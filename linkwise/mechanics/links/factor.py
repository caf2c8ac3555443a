"""Factors of symmetric positive matrices of scalars."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from ..scalar import Matrix, Scalar, dot, each, is_zero, select, sqrt

DEPENDENT = 1e-11  # remainder of a diagonal entry, relative to it, below which the row depends on previous rows
SINGULAR = 1e-13  # likewise, below which only round-off remains
ROUND_OFF = 1e-24  # diagonal entry, relative to the trace, below which its row counts as zero


@dataclass(frozen=True)
class Factor:
    """L d L* of a small symmetric positive matrix, with the reciprocals of d; ``scaled`` is L d below the diagonal."""

    lower: list[list[Scalar]]
    scaled: list[list[Scalar]]
    pivots: list[Scalar]
    reciprocal: list[Scalar]

    @staticmethod
    def of(matrix: Sequence[Sequence[Scalar]], semidefinite: bool = False) -> Factor:
        """Factorisation of a matrix. If it is only semidefinite, dependent rows get no pivot: ``solve`` returns zero
        for them and is exact for right sides in the range of the matrix.
        """
        n = len(matrix)
        trace = sum(matrix[i][i] for i in range(n)) if semidefinite else 0.0
        lower = [[0.0] * n for _ in range(n)]
        pivots: list[Scalar] = []
        reciprocal: list[Scalar] = []
        scaled: list[list[Scalar]] = [[0.0] * n for _ in range(n)]  # L d
        for j in range(n):
            pivot = matrix[j][j]
            for k in range(j):
                pivot = pivot - scaled[j][k] * lower[j][k]
            pivots.append(pivot)
            reciprocal.append(_reciprocal_or_zero(pivot, matrix[j][j], trace) if semidefinite else 1.0 / pivot)
            for i in range(j + 1, n):
                entry = matrix[i][j]
                for k in range(j):
                    entry = entry - scaled[i][k] * lower[j][k]
                scaled[i][j] = entry
                lower[i][j] = entry * reciprocal[j]
        return Factor(lower, scaled, pivots, reciprocal)

    def unknown_where_singular(self, diagonal: Sequence[Scalar], least: float = SINGULAR) -> Factor:
        """A copy whose inverse is NaN if a pivot is at most ``least`` times its diagonal entry, up to round-off. The
        last pivot is set to NaN, since every entry of the inverse depends on it; sqrt(-1) is NaN on every machine."""
        known: Scalar = 0.0
        smallest = sum(diagonal) * ROUND_OFF
        for pivot, entry in zip(self.pivots, diagonal, strict=True):
            known = select(entry * least + smallest < pivot, known, -1.0)
        return replace(self, reciprocal=[*self.reciprocal[:-1], self.reciprocal[-1] + sqrt(known)])

    def unit(self, x: Sequence[Scalar]) -> list[Scalar]:
        """L x."""
        return [dot(self.lower[i][:i], x[:i], x[i]) for i in range(len(x))]

    def unit_adjoint(self, x: Sequence[Scalar]) -> list[Scalar]:
        """L* x."""
        columns = list(zip(*self.lower, strict=True))
        return [dot(columns[i][i + 1 :], x[i + 1 :], x[i]) for i in range(len(x))]

    def forward(self, x: Sequence[Scalar]) -> list[Scalar]:
        """L^-1 x."""
        y = list(x)
        for i in range(len(y)):
            for k in range(i):
                y[i] = y[i] - self.lower[i][k] * y[k]
        return y

    def solve(self, x: Sequence[Scalar]) -> list[Scalar]:
        """The inverse matrix times x."""
        return self.backward([a * r for a, r in zip(self.forward(x), self.reciprocal, strict=True)])

    def backward(self, x: Sequence[Scalar]) -> list[Scalar]:
        """L^-* x."""
        y = list(x)
        for i in reversed(range(len(y))):
            for k in range(i + 1, len(y)):
                y[i] = y[i] - self.lower[k][i] * y[k]
        return y

    # Cholesky's factor L d^(1/2), which jain1995 (5.1) calls D^(1/2) ------------------------------------

    def half(self, x: Sequence[Scalar]) -> list[Scalar]:
        """L d^(1/2) x."""
        return self.unit([sqrt(p) * a for p, a in zip(self.pivots, x, strict=True)])

    def half_adjoint(self, x: Sequence[Scalar]) -> list[Scalar]:
        """d^(1/2) L* x."""
        return [sqrt(p) * a for p, a in zip(self.pivots, self.unit_adjoint(x), strict=True)]

    def half_inverse(self, x: Sequence[Scalar]) -> list[Scalar]:
        """d^(-1/2) L^-1 x."""
        return [sqrt(r) * a for r, a in zip(self.reciprocal, self.forward(x), strict=True)]

    def half_inverse_adjoint(self, x: Sequence[Scalar]) -> list[Scalar]:
        """L^-* d^(-1/2) x."""
        return self.backward([sqrt(r) * a for r, a in zip(self.reciprocal, x, strict=True)])


def _reciprocal_or_zero(pivot: Scalar, diagonal: Scalar, trace: Scalar) -> Scalar:
    """Reciprocal of a pivot; zero if only round-off is left of the diagonal entry."""
    if is_zero(pivot):
        return 0.0
    regular = pivot > diagonal * DEPENDENT + trace * ROUND_OFF
    return select(regular, 1.0 / select(regular, pivot, 1.0), 0.0)


class Elimination:
    """M^-1 = W* d^-1 W of a symmetric positive matrix, eliminated from the last coordinate to the first, for cases
    without the papers' factors.

    Mimic joints couple joints that are far apart in the tree, and the mass matrix may be regular only because of them:
    then the factors of the papers, which take one joint at a time, do not exist.  If the mass matrix is known anyway,
    as in derivatives, its inverse costs less than the factors.

    In this order W, like the factors of the papers, couples a coordinate only with those between it and the base, so
    that zeros of other branches cost nothing.  An entry of the inverse between two branches has as many terms as there
    are common ancestors.
    """

    def __init__(self, matrix: Sequence[Sequence[Scalar]], unknown_where_singular: bool = False):
        """Factor a matrix; if it is singular, the inverse is NaN."""
        self.factor = Factor.of([row[::-1] for row in matrix[::-1]])
        if unknown_where_singular:
            self.factor = self.factor.unknown_where_singular([row[i] for i, row in enumerate(matrix)][::-1])

    @cached_property
    def rows(self) -> Matrix:
        """W by rows up to the diagonal, last coordinate first."""
        n = len(self.factor.pivots)
        columns = [self.factor.forward([1.0 if i == j else 0.0 for i in range(n)]) for j in range(n)]
        return [[column[i] for column in columns[: i + 1]] for i in range(n)]

    def solve(self, x: Sequence[Scalar]) -> list[Scalar]:
        """M^-1 x, by substitution: W is not needed."""
        return self.factor.solve(list(x)[::-1])[::-1]

    def solve_each(self, columns: Sequence[list[Scalar]]) -> list[list[Scalar]]:
        """M^-1 times each column through W, which exploits the zeros of the columns."""
        return each(columns, self._solve_by_rows)

    def _solve_by_rows(self, x: Sequence[Scalar]) -> list[Scalar]:
        n, reversed_x = len(x), list(x)[::-1]
        halfway = [dot(row, reversed_x[: i + 1]) * self.factor.reciprocal[i] for i, row in enumerate(self.rows)]
        return [dot([self.rows[k][i] for k in range(i, n)], halfway[i:]) for i in reversed(range(n))]

    def inverse(self) -> Matrix:
        """M^-1, symmetric."""
        n, reciprocal = len(self.factor.pivots), self.factor.reciprocal
        if "rows" not in vars(self):
            lower = _inverse_of_factored(self.factor)
        else:  # W is known already
            lower = {}
            for i in range(n):
                column = [self.rows[k][i] * reciprocal[k] for k in range(i, n)]
                for j in range(i + 1):
                    lower[i, j] = dot(column, [self.rows[k][j] for k in range(i, n)])
        return [[lower[max(i, j), min(i, j)] for j in reversed(range(n))] for i in reversed(range(n))]


def _parents(lower: Matrix) -> list[int | None]:
    """The parent of each row in the elimination tree: the first later row that L couples with it, structurally."""
    n = len(lower)
    coupled = [{k for k in range(j + 1, n) if not is_zero(lower[k][j])} for j in range(n)]
    parents = []
    for rows in coupled:
        parent = min(rows, default=None)
        parents.append(parent)
        if parent is not None:
            coupled[parent] |= rows - {parent}
    return parents


def _inverse_of_factored(factor: Factor) -> dict[tuple[int, int], Scalar]:
    """The lower half of (L d L*)^-1, without the inverse of L (Takahashi, Fagan and Chin 1973).

    The inverse times L is L^-* d^-1, which is zero below the diagonal.  Entries of column j therefore follow from the
    columns of j's ancestors, those k > j that L couples with j.  For mass matrices these are the coordinates between j
    and the base: the response of joint j to a force elsewhere follows from their responses.  For a force beyond the
    nearest branching, it follows from the response of the trunk there, with as many terms.

    In this order columns are computed from base to tips, and each entry from the base on: the latest values are needed
    last.  Half as many values are alive as with an inversion of L first.
    """
    n, lower = len(factor.pivots), factor.lower
    parents = _parents(lower)
    branchings = {k for k, children in Counter(parents).items() if children > 1}
    ancestors: list[list[int]] = [[] for _ in range(n)]  # from the base on
    by_trunk: list[dict[int, Scalar]] = [{} for _ in range(n)]  # motion by that of each coordinate of the trunk
    inverse: dict[tuple[int, int], Scalar] = {}
    for j in reversed(range(n)):
        parent = parents[j]
        ancestors[j] = [] if parent is None else [*ancestors[parent], parent]
        branching = next((k for k in reversed(ancestors[j]) if k in branchings), n)
        trunk = [k for k in ancestors[j] if k >= branching]
        limb = ancestors[j][len(trunk) :]
        for b in trunk:
            by_trunk[j][b] = -lower[b][j]
            for k in limb:
                by_trunk[j][b] = by_trunk[j][b] - lower[k][j] * by_trunk[k][b]
        for i in reversed(range(j, n)):
            if trunk and i != j and i not in limb:
                inverse[i, j] = dot(by_trunk[j].values(), [inverse[max(i, b), min(i, b)] for b in trunk])
            else:
                inverse[i, j] = factor.reciprocal[j] if i == j else 0.0
                for k in ancestors[j]:
                    inverse[i, j] = inverse[i, j] - lower[k][j] * inverse[max(i, k), min(i, k)]
    return inverse
