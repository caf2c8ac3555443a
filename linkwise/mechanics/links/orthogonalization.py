"""Orthogonalization of vectors in order, without linearly dependent ones: V = U T.

The modified Gram-Schmidt process works on the vectors themselves, not on their products with each other, so the
condition of the vectors is not squared.  Vectors are omitted by their numbers, for every state of a batch anew; the
code has no branches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from ..scalar import Matrix, Scalar, dot, is_zero, select
from .constraint_units import most_common, scaled

DEPENDENT = 1e-10  # relative to the largest vector: smaller remainders are implied by the others, up to round-off
SUFFICIENT = 1e-5  # larger remainders are independent without doubt


@dataclass(frozen=True)
class Orthogonal:
    """V = U T of vectors, the columns of V.

    parts         remainder of each vector after previous ones: the columns of U, orthogonal to each other
    reciprocal    1 / |part|^2; 0 for dependent or inactive vectors, which have no effect
    coefficients  T by rows, above the diagonal, which is 1 for independent vectors
    doubt         0 if dependence is clear for all vectors, otherwise 1 or more
    """

    parts: Matrix
    reciprocal: list[Scalar]
    coefficients: Matrix
    doubt: Scalar

    def split(self, x: Sequence[Scalar]) -> tuple[list[Scalar], list[Scalar]]:
        """Coefficients y and the rest of x = U y + rest, orthogonal to U."""
        rest, components = list(x), []
        for part, reciprocal in zip(self.parts, self.reciprocal, strict=True):
            components.append(dot(part, rest) * reciprocal)
            rest = _minus(rest, components[-1], part)
        return components, rest

    def within(self, y: Sequence[Scalar]) -> list[Scalar]:
        """U y."""
        return [dot(row, y) for row in zip(*self.parts, strict=True)]

    def with_products(self, products: Sequence[Scalar]) -> list[Scalar]:
        """y such that U y is the shortest vector with these products with V: T* |U|^2 y = products."""
        scaled: list[Scalar] = []
        for j, product in enumerate(products):
            scaled.append(product - dot([row[j] for row in self.coefficients[:j]], scaled))
        return [x * r for x, r in zip(scaled, self.reciprocal, strict=True)]

    def least_combination(self, y: Sequence[Scalar], units: Sequence[float] | None = None) -> list[Scalar]:
        """The x with V x = U y for which x over ``units`` is shortest: in the row space of T, whose rows are
        orthogonalized from the last to the first, which keeps their zeros."""
        order = range(len(self.parts))[::-1]
        weights = _relative_weights([1.0] * len(order) if units is None else units)
        rows = [
            [
                *[0.0] * k,
                select(0.0 < self.reciprocal[k], 1.0, 0.0),
                *(scaled(x, weights[j] / weights[k]) for j, x in enumerate(self.coefficients[k][k + 1 :], start=k + 1)),
            ]
            for k in order
        ]
        turned = orthogonalized(rows)
        combination = turned.within(turned.with_products([scaled(y[k], 1.0 / weights[k]) for k in order]))
        return [scaled(x, weight) for x, weight in zip(combination, weights, strict=True)]


def orthogonalized(
    vectors: Sequence[Sequence[Scalar]],
    active: Sequence[Scalar] | None = None,
    weights: Sequence[float] | None = None,
) -> Orthogonal:
    """Orthogonalise vectors in order; only those with ``active`` equal to 1 count. Dependence is decided on the
    vectors times ``weights``.
    """
    active = [1.0] * len(vectors) if active is None else active
    weights = _relative_weights([1.0] * len(vectors) if weights is None else weights)
    squares = [scaled(dot(x, x) * on, w * w) for x, on, w in zip(vectors, active, weights, strict=True)]
    largest: Scalar = reduce(lambda a, b: select(a < b, b, a), squares, 0.0)
    parts: Matrix = []
    nonzeros: list[set[int]] = []  # number of components of each part that are not structurally zero
    reciprocal: list[Scalar] = []
    coefficients: Matrix = [[0.0] * len(vectors) for _ in vectors]
    doubt: Scalar = 0.0
    for j, vector in enumerate(vectors):
        rest, nonzero = list(vector), {i for i, x in enumerate(vector) if not is_zero(x)}
        for k, part in enumerate(parts):
            if nonzeros[k].isdisjoint(nonzero):  # loops without a common joint
                continue
            coefficients[k][j] = dot(part, rest) * reciprocal[k] * active[j]
            rest = _minus(rest, coefficients[k][j], part)
            nonzero |= nonzeros[k]
        left = dot(rest, rest)
        weighed = scaled(left, weights[j] ** 2)
        counts = largest * DEPENDENT**2 < weighed * active[j]
        reciprocal.append(0.0 if is_zero(left) else select(counts, 1.0 / select(counts, left, 1.0), 0.0))
        doubt = doubt + select(counts, select(weighed < largest * SUFFICIENT**2, 1.0, 0.0), 0.0)
        parts.append(rest)
        nonzeros.append({i for i, x in enumerate(rest) if not is_zero(x)})
    return Orthogonal(parts, reciprocal, coefficients, doubt)


def _relative_weights(weights: Sequence[float]) -> list[float]:
    """Weights relative to the most common one, so that few numbers are multiplied."""
    usual = most_common(weights)
    return [weight / usual for weight in weights]


def _minus(x: Sequence[Scalar], factor: Scalar, y: Sequence[Scalar]) -> list[Scalar]:
    return [a if is_zero(b) else a - factor * b for a, b in zip(x, y, strict=True)]
