"""The singular value decomposition of constraint Jacobians, its rank decided state by state (spencer2004 3.1-3.7)."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg.lapack import dgesdd, dgesv

from ...mechanism import MechanismError
from .tolerances import LOOPS

LARGE = 4096  # numbers of a matrix: a smaller one is decomposed sooner than looked at


class Decomposition(NamedTuple):
    """G = U S V* for one state or a batch: u (..., m, m), s (..., min(m, n)), v (..., n, n), and rank (...), the number
    of independent constraints, which may differ from state to state."""

    u: np.ndarray
    s: np.ndarray
    v: np.ndarray
    rank: Any

    @property
    def is_free(self) -> np.ndarray:
        """(..., n): which columns of V span the null space."""
        return np.arange(self.v.shape[-1]) >= self.rank[..., None]  # singular values descend

    @property
    def null(self) -> np.ndarray:
        """(n, p): an orthonormal basis of the null space (3.2); for a batch (..., n, n), where p may differ from state
        to state and columns that do not belong to the null space are zero."""
        return self.v[:, self.rank :] if self.v.ndim == 2 else self.v * self.is_free[..., None, :]

    @property
    def _independent(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """U, 1/S and V with G^+ = V 1/S U*: of the singular values that count; for a batch, of all, with 1/0 taken as 0
        (3.4)."""
        if self.s.ndim == 1:
            return self.u[:, : self.rank], 1.0 / self.s[: self.rank], self.v[:, : self.rank]
        k = self.s.shape[-1]
        counts = np.arange(k) < self.rank[..., None]
        inverse = np.divide(1.0, self.s, out=np.zeros(self.s.shape), where=counts)
        return self.u[..., :k], inverse, self.v[..., :k]

    @property
    def pseudo_inverse(self) -> np.ndarray:
        """(..., n, m): G^+, the Moore-Penrose inverse."""
        u, inverse, v = self._independent
        return (v * inverse[..., None, :]) @ np.swapaxes(u, -1, -2)

    def solve(self, x: np.ndarray) -> np.ndarray:
        """(..., n): G^+ x."""
        u, inverse, v = self._independent
        return times(v, inverse * transposed_times(u, x))

    def solve_transposed(self, x: np.ndarray) -> np.ndarray:
        """(..., m): (G^+)* x."""
        u, inverse, v = self._independent
        return times(u, inverse * transposed_times(v, x))

    def softened(self, x: np.ndarray, fraction: float) -> np.ndarray:
        """(..., m): what is left of x where G^+ is to be the damped least-squares inverse, G* (G G* + d^2)^-1 with d
        this fraction of the largest singular value: G^+ softened(x) = V (S / (S^2 + d^2)) U* x (spencer2004 3.3)."""
        square = self.s**2
        damping = np.maximum(fraction**2 * square[..., :1], np.finfo(float).tiny)
        u = self.u[..., : self.s.shape[-1]]
        return times(u, square / (square + damping) * transposed_times(u, x))

    def damped(self, x: np.ndarray, damping: np.ndarray) -> np.ndarray:
        """(..., n): V (S / (S^2 + damping)) U* x, a step of Levenberg and Marquardt; damping is (...)."""
        k = self.s.shape[-1]
        square = self.s**2 + damping[..., None]
        weights = np.divide(self.s, square, out=np.zeros_like(self.s), where=square > 0.0)
        return times(self.v[..., :k], weights * transposed_times(self.u[..., :k], x))


def decompose(jacobian: np.ndarray, tolerance: float = LOOPS.rank, rank: Any = None) -> Decomposition:
    """The decomposition of (..., m, n) with singular values below ``tolerance`` times the largest taken as zero, and no
    more than ``rank`` of them kept.

    A matrix that is not finite has factors that are not, and the full rank, so that no DoF are made of it.  Rows and
    columns that share no number with the others, as those of loops in separate clusters, are decomposed for themselves.
    """
    if math.isfinite(np.add.reduce(jacobian, axis=None)):  # all are finite
        u, s, vt = _svd(jacobian)
        counted = _counted(s > tolerance * s[..., :1])
    else:
        finite = np.isfinite(jacobian).all(axis=(-1, -2))
        u, s, vt = np.linalg.svd(np.where(finite[..., None, None], jacobian, 0.0))
        counted = np.where(finite, _counted(s > tolerance * s[..., :1]), s.shape[-1])
        u[~finite], s[~finite], vt[~finite] = np.nan, np.nan, np.nan
    if rank is not None:
        counted = _bounded(counted, rank)
    return Decomposition(u, s, vt.swapaxes(-1, -2), counted)


def _svd(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """U, S and V*.  One matrix goes to LAPACK without NumPy, whose way to the same routine costs more than a
    decomposition of this size."""
    if matrix.shape[-2] * matrix.shape[-1] > LARGE and len(blocks := _blocks(matrix)) > 1:
        return _svd_by_blocks(matrix, blocks)
    if matrix.ndim > 2 or not matrix.size:
        return np.linalg.svd(matrix)
    u, s, vt, failed = dgesdd(matrix)
    if failed:
        raise np.linalg.LinAlgError("SVD did not converge")
    return u, s, vt


def _blocks(matrix: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Rows and columns of (..., m, n) that share no number other than zero with other rows and columns; one of the two
    is empty for a row or column of zeros."""
    from scipy.sparse import bmat, csr_array  # here: most matrices are small, and importing it takes long
    from scipy.sparse.csgraph import connected_components

    m = matrix.shape[-2]
    is_there = csr_array((matrix != 0.0).any(axis=tuple(range(matrix.ndim - 2))))
    count, label = connected_components(bmat([[None, is_there], [is_there.T, None]]), directed=False)
    order, sizes = np.argsort(label, kind="stable"), np.bincount(label, minlength=count)
    members = np.split(order, np.cumsum(sizes)[:-1])
    return [(own[own < m], own[own >= m] - m) for own in members]


def _svd_by_blocks(
    matrix: np.ndarray, blocks: list[tuple[np.ndarray, np.ndarray]]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """U, S and V* of a matrix that is zero outside of blocks, which are decomposed in batches of one shape."""
    *batch, m, n = matrix.shape
    shapes: dict[tuple[int, int], list[tuple[np.ndarray, np.ndarray]]] = {}
    for rows, columns in blocks:
        shapes.setdefault((len(rows), len(columns)), []).append((rows, columns))
    rank = sum(min(shape) * len(alike) for shape, alike in shapes.items())  # all others are zero
    u, vt, s = np.zeros((*batch, m, m)), np.zeros((*batch, n, n)), np.zeros((*batch, min(m, n)))
    counted, left, right = 0, rank, rank  # numbers of singular vectors so far
    for (rows_each, columns_each), alike in shapes.items():
        rows, columns = (np.array(part).reshape(len(alike), -1) for part in zip(*alike, strict=True))
        own_u, own_s, own_vt = np.linalg.svd(matrix[..., rows[:, :, None], columns[:, None, :]])
        both, k = min(rows_each, columns_each), len(alike)
        of_values = counted + np.arange(k * both).reshape(k, both)
        own_left = left + np.arange(k * (rows_each - both)).reshape(k, -1)
        own_right = right + np.arange(k * (columns_each - both)).reshape(k, -1)
        s[..., of_values.ravel()] = own_s.reshape(*batch, of_values.size)
        u[..., rows[:, :, None], np.concatenate([of_values, own_left], axis=1)[:, None, :]] = own_u
        vt[..., np.concatenate([of_values, own_right], axis=1)[:, :, None], columns[:, None, :]] = own_vt
        counted, left, right = counted + of_values.size, left + own_left.size, right + own_right.size
    order = np.argsort(-s[..., :rank], axis=-1, kind="stable")
    s[..., :rank] = np.take_along_axis(s[..., :rank], order, axis=-1)
    u[..., :rank] = np.take_along_axis(u[..., :rank], order[..., None, :], axis=-1)
    vt[..., :rank, :] = np.take_along_axis(vt[..., :rank, :], order[..., :, None], axis=-2)
    return u, s, vt


def _counted(mask: np.ndarray) -> Any:
    """(...): how many of the last axis are true."""
    return np.intp(np.count_nonzero(mask)) if mask.ndim == 1 else mask.sum(axis=-1)


def _bounded(counted: Any, rank: Any) -> Any:
    """Ranks that are no larger than ``rank`` says, one number or one per matrix."""
    bound = np.asarray(rank)
    if bound.dtype.kind not in "iu" or np.any(bound < 0) or np.broadcast(counted, bound).shape != np.shape(counted):
        raise MechanismError(
            f"rank must be a number of constraints, 0 or more, or one for each of the states of shape "
            f"{np.shape(counted)}, not {rank!r}"
        )
    return np.minimum(counted, bound)


def solved(matrix: np.ndarray, x: np.ndarray) -> np.ndarray:
    """(..., n): the inverse of the matrix (..., n, n) times the vector (..., n); one of each as in ``_svd``."""
    if matrix.ndim + x.ndim > 3 or not matrix.size:
        return np.linalg.solve(matrix, x[..., None])[..., 0]
    _, _, y, failed = dgesv(matrix, x)
    if failed:
        raise np.linalg.LinAlgError("Singular matrix")
    return y


def times(matrix: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The matrix (..., m, n) times the vector (..., n)."""
    return matrix.dot(x) if matrix.ndim + x.ndim == 3 else (matrix @ x[..., None])[..., 0]


def transposed_times(matrix: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The transpose of the matrix (..., m, n) times the vector (..., m)."""
    return x.dot(matrix) if matrix.ndim + x.ndim == 3 else (x[..., None, :] @ matrix)[..., 0, :]
