"""Dense linear algebra in extended precision (64 bits of mantissa on x86), which LAPACK does not have."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

Real = np.longdouble
SINGULAR = 1e-10  # a pivot of a positive matrix with a unit diagonal


def extended(values) -> np.ndarray:
    return np.asarray(values, dtype=Real)


class RowSpace(NamedTuple):
    """C[order[:rank]]* = across lower*, the rows of C that say something new, most first; along spans what they leave
    free."""

    across: np.ndarray  # (n, rank), orthonormal
    along: np.ndarray  # (n, n - rank), orthonormal
    lower: np.ndarray  # (rank, rank), triangular
    order: np.ndarray
    sizes: np.ndarray  # of all the rows when their turn came: what is left of each after those before it


def row_space(matrix: np.ndarray, tolerance: float) -> RowSpace:
    """Householder reflections of the rows, the largest remainder first; rows whose remainder is below ``tolerance`` of
    the largest follow from the others."""
    work, order = extended(matrix).T.copy(), np.arange(len(matrix))
    n, m = work.shape
    reflectors: list[np.ndarray] = []
    sizes = np.zeros(m)
    rank = 0
    for k in range(min(n, m)):
        left = np.sqrt((work[k:, k:] ** 2).sum(axis=0))
        pivot = k + int(np.argmax(left))
        sizes[k] = left.max()
        if sizes[k] <= tolerance * sizes[0]:
            break
        work[:, [k, pivot]], order[[k, pivot]] = work[:, [pivot, k]], order[[pivot, k]]
        reflector = work[k:, k].copy()
        reflector[0] += np.copysign(np.sqrt(reflector @ reflector), reflector[0])
        reflector /= np.sqrt(reflector @ reflector)
        work[k:, k:] -= 2 * np.outer(reflector, reflector @ work[k:, k:])
        reflectors.append(reflector)
        rank = k + 1
    basis = np.eye(n, dtype=Real)
    for k in reversed(range(rank)):
        basis[k:] -= 2 * np.outer(reflectors[k], reflectors[k] @ basis[k:])
    return RowSpace(basis[:, :rank], basis[:, rank:], work[:rank, :rank].T, order, sizes)


def solve_lower(lower: np.ndarray, right: np.ndarray) -> np.ndarray:
    x = extended(right).copy()
    for k in range(len(x)):
        x[k] = (x[k] - lower[k, :k] @ x[:k]) / lower[k, k]
    return x


def solve_positive(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    """By Cholesky's factors, rows and columns scaled to a unit diagonal."""
    scale = 1 / np.sqrt(np.diag(matrix))
    lower = matrix * np.outer(scale, scale)
    for k in range(len(lower)):
        if not lower[k, k] > SINGULAR:
            raise ArithmeticError("the matrix is singular: something moves without inertia")
        lower[k:, k] /= np.sqrt(lower[k, k])
        lower[k + 1 :, k + 1 :] -= np.outer(lower[k + 1 :, k], lower[k + 1 :, k])
        lower[k, k + 1 :] = 0
    half = solve_lower(lower, scale * right)
    return scale * solve_lower(lower.T[::-1, ::-1], half[::-1])[::-1]
