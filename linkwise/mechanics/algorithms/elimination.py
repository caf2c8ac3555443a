"""The inverse of a mass matrix that is given as a matrix, where the papers' factors do not serve.

Followers (mimic joints) couple joints that are far apart in the tree, and a mechanism may be regular only because of
them: the factors of the papers, which take one joint at a time, do not exist then.  And where the mass matrix is at
hand anyway, as in derivatives, its inverse costs less than the factors.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from ..links.articulation import Factor
from ..scalar import Scalar, dot

Matrix = list[list[Scalar]]


class Elimination:
    """M^-1 = W* d^-1 W of a symmetric positive matrix, eliminated from the last coordinate to the first.

    In this order W, like the factors of the papers, couples a coordinate of a tree only with those between it and the
    base, so what other branches do not feel costs nothing there.
    """

    def __init__(self, matrix: Sequence[Sequence[Scalar]]):
        self.factor = Factor.of([row[::-1] for row in matrix[::-1]])

    @cached_property
    def rows(self) -> Matrix:
        """W by rows up to the diagonal, last coordinate first."""
        n = len(self.factor.pivots)
        columns = [self.factor.forward([1.0 if i == j else 0.0 for i in range(n)]) for j in range(n)]
        return [[column[i] for column in columns[: i + 1]] for i in range(n)]

    def solve(self, x: Sequence[Scalar]) -> list[Scalar]:
        """M^-1 x, by substitution: W is not needed."""
        return self.factor.solve(list(x)[::-1])[::-1]

    def solve_columns(self, matrix: Matrix) -> Matrix:
        """M^-1 times a matrix, through W, which meets the zeros of each column before any of them is filled."""
        columns = [self._through_rows(column) for column in zip(*matrix, strict=True)]
        return [list(row) for row in zip(*columns, strict=True)]

    def _through_rows(self, x: Sequence[Scalar]) -> list[Scalar]:
        n, given = len(x), list(x)[::-1]
        halfway = [dot(row, given[: i + 1]) * self.factor.reciprocal[i] for i, row in enumerate(self.rows)]
        return [dot([self.rows[k][i] for k in range(i, n)], halfway[i:]) for i in reversed(range(n))]

    def inverse(self) -> Matrix:
        """M^-1, symmetric."""
        n, lower = len(self.rows), {}
        for i in range(n):
            weighted = [self.rows[k][i] * self.factor.reciprocal[k] for k in range(i, n)]
            for j in range(i + 1):
                lower[i, j] = dot(weighted, [self.rows[k][j] for k in range(i, n)])
        return [[lower[max(i, j), min(i, j)] for j in reversed(range(n))] for i in reversed(range(n))]
