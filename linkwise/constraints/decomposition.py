"""The singular value decomposition of constraint Jacobians, with a rank for every state (spencer2004 3.1-3.7)."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg.lapack import dgeqp3, dgesdd, dgesv, dorgqr

from ..mechanism import MechanismError
from .tolerances import LOOPS

DECOMPOSED = 32  # rows: damped steps of larger matrices are solved without decomposition
ROUND_OFF = 1e-15  # of the trace of A A*
LARGE = 4096  # entries: smaller matrices are decomposed without a search for blocks


class Decomposition(NamedTuple):
    """The singular values of a matrix A, one or a batch, of dimensionless rows and columns: R A C = U S V* with
    diagonal R and C.

    u      (..., m, m)
    s      (..., min(m, n))
    v      (..., n, n)
    rank   (...): the number of independent rows, which may differ from state to state
    rows, columns   (m,), (n,): the diagonals of R and C; None for ones

    Methods take and return numbers with the dimensions of A.  Least norms and least squares are of dimensionless
    numbers, C^-1 x and R b, so that they do not depend on units.
    """

    u: np.ndarray
    s: np.ndarray
    v: np.ndarray
    rank: Any
    rows: np.ndarray | None = None
    columns: np.ndarray | None = None

    @property
    def is_free(self) -> np.ndarray:
        """(..., n): which columns of V span the null space."""
        return np.arange(self.v.shape[-1]) >= self.rank[..., None]  # singular values descend

    @property
    def null(self) -> np.ndarray:
        """(n, p): a basis of the null space (3.2), orthonormal in dimensionless coordinates; for a batch (..., n, n),
        where p may differ from state to state and columns that do not belong to the null space are zero."""
        return self._with_dimensions(self._null)

    @property
    def null_rows(self) -> np.ndarray:
        """(..., p, n): coordinates in ``null``: null @ null_rows @ x is the vector of the null space nearest to x, by
        dimensionless distances."""
        across = np.swapaxes(self._null, -1, -2)
        return across if self.columns is None else across / self.columns

    def conditioning(self, rank: Any) -> np.ndarray:
        """(...): the smallest of the first ``rank`` (...) singular values relative to the largest; 1 for rank 0."""
        ranks = np.broadcast_to(np.asarray(rank), self.s.shape[:-1])
        largest = self.s.max(axis=-1, initial=0.0)
        by_rank = np.concatenate([largest[..., None], self.s], axis=-1)
        last = np.take_along_axis(by_rank, ranks[..., None], axis=-1)[..., 0]
        return np.divide(last, largest, out=np.where(ranks == 0, 1.0, 0.0), where=largest > 0.0)

    def null_of(self, count: int) -> np.ndarray:
        """(..., n, count): ``null`` of states whose null spaces all have this dimension."""
        return self._with_dimensions(self.v[..., self.v.shape[-1] - count :])

    @property
    def _null(self) -> np.ndarray:
        return self.v[:, self.rank :] if self.v.ndim == 2 else self.v * self.is_free[..., None, :]

    def _with_dimensions(self, motions: np.ndarray) -> np.ndarray:
        return motions if self.columns is None else self.columns[:, None] * motions

    @property
    def _independent(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """U, 1/S and V with (R A C)^+ = V 1/S U*, for nonzero singular values; in a batch for all, with 1/0 = 0
        (3.4)."""
        if self.s.ndim == 1:
            return self.u[:, : self.rank], 1.0 / self.s[: self.rank], self.v[:, : self.rank]
        k = self.s.shape[-1]
        counts = np.arange(k) < self.rank[..., None]
        inverse = np.divide(1.0, self.s, out=np.zeros(self.s.shape), where=counts)
        return self.u[..., :k], inverse, self.v[..., :k]

    @property
    def pseudo_inverse(self) -> np.ndarray:
        """(..., n, m): C (R A C)^+ R, the dimensionless Moore-Penrose inverse."""
        u, inverse, v = self._independent
        inverse = self._with_dimensions((v * inverse[..., None, :]) @ np.swapaxes(u, -1, -2))
        return inverse if self.rows is None else inverse * self.rows

    def solve(self, x: np.ndarray) -> np.ndarray:
        """(..., n): A^+ x."""
        u, inverse, v = self._independent
        return _scaled(times(v, inverse * transposed_times(u, _scaled(x, self.rows))), self.columns)

    def solve_transposed(self, x: np.ndarray) -> np.ndarray:
        """(..., m): (A^+)* x."""
        u, inverse, v = self._independent
        return _scaled(times(u, inverse * transposed_times(v, _scaled(x, self.columns))), self.rows)

    def nearest(self, x: np.ndarray) -> np.ndarray:
        """(..., n): the vector of the null space nearest to x."""
        return times(self.null, times(self.null_rows, x))

    def softened(self, x: np.ndarray, fraction: float) -> np.ndarray:
        """(..., m): x filtered for the damped least-squares inverse (spencer2004 3.3): A^+ softened(x) =
        A* (A A* + d^2)^-1 x = V (S / (S^2 + d^2)) U* x, with d this fraction of the largest singular value."""
        square = self.s**2
        damping = np.maximum(fraction**2 * square[..., :1], np.finfo(float).tiny)
        u = self.u[..., : self.s.shape[-1]]
        left = times(u, square / (square + damping) * transposed_times(u, _scaled(x, self.rows)))
        return left if self.rows is None else left / self.rows


def damped_solve(matrix: np.ndarray, x: np.ndarray, damping: np.ndarray) -> np.ndarray:
    """(..., n): A* (A A* + damping)^-1 x of a matrix A (..., m, n), a step of Levenberg and Marquardt; damping is
    (...).

    By singular values, V (S / (S^2 + damping)) U* x, which separate redundant rows from small ones.  Matrices of many
    rows, expensive to decompose, use A A* itself, with rounding added to the damping.
    """
    if matrix.shape[-2] > DECOMPOSED:
        across = np.swapaxes(matrix, -1, -2)
        squares = matrix @ across
        damping = damping + ROUND_OFF * np.trace(squares, axis1=-2, axis2=-1)
        squares += damping[..., None, None] * np.eye(squares.shape[-1])
        known = (damping > 0.0) & np.isfinite(squares).all(axis=(-1, -2))
        squares[~known] = np.eye(squares.shape[-1])
        return times(across, np.where(known[..., None], solved(squares, x), 0.0))
    u, s, vt = np.linalg.svd(matrix, full_matrices=False)
    square = s**2 + damping[..., None]
    weights = np.divide(s, square, out=np.zeros_like(s), where=square > 0.0)
    return transposed_times(vt, weights * transposed_times(u, x))


def decompose(
    matrix: np.ndarray,
    tolerance: float = LOOPS.rank,
    rank: Any = None,
    rows: np.ndarray | None = None,
    columns: np.ndarray | None = None,
) -> Decomposition:
    """The decomposition of (..., m, n), with singular values below ``tolerance`` times the largest taken as zero, and
    at most ``rank`` of them kept.  ``rows`` (m,) and ``columns`` (n,) make the matrix dimensionless;
    ``equations.decomposed_jacobian`` supplies them for constraint Jacobians.

    A matrix that is not finite has NaN factors and full rank, so that it adds no DoF.  Blocks that share no row or
    column, such as loops in separate clusters, are decomposed separately.
    """
    if rows is not None:
        matrix = rows[:, None] * matrix
    if columns is not None:
        matrix = matrix * columns
    if math.isfinite(np.add.reduce(matrix, axis=None)):  # all are finite
        u, s, vt = _svd(matrix)
        counted = _counted(s > tolerance * s[..., :1])
    else:
        finite = np.isfinite(matrix).all(axis=(-1, -2))
        u, s, vt = np.linalg.svd(np.where(finite[..., None, None], matrix, 0.0))
        counted = np.where(finite, _counted(s > tolerance * s[..., :1]), s.shape[-1])
        u[~finite], s[~finite], vt[~finite] = np.nan, np.nan, np.nan
    if rank is not None:
        counted = _bounded(counted, rank)
    return Decomposition(u, s, vt.swapaxes(-1, -2), counted, rows, columns)


def orthonormalized(basis: np.ndarray) -> np.ndarray:
    """(..., n, p): orthonormal columns with the span of ``basis``, the first along its first; columns of zeros stay.

    Columns are divided by triangular factors from the right, twice: once is accurate up to their condition.  Every row
    keeps its own precision, however different the sizes of rows are.
    """
    is_zero = ~basis.any(axis=-2)
    order = np.argsort(is_zero, axis=-1, kind="stable")[..., None, :]  # columns of zeros last
    vectors = np.take_along_axis(basis, order, axis=-1)
    finite = np.isfinite(vectors).all(axis=(-1, -2), keepdims=True)
    vectors = np.where(finite, vectors, np.eye(*basis.shape[-2:]))
    for _ in range(2):
        size = np.linalg.norm(vectors, axis=-2, keepdims=True)
        vectors = vectors / np.where(size > 0.0, size, 1.0)
        upper = np.linalg.qr(vectors, mode="r") + np.eye(vectors.shape[-1]) * (size == 0.0)
        upper = np.sign(np.einsum("...ii->...i", upper))[..., None] * upper  # signs as in Gram-Schmidt
        vectors = vectors @ np.linalg.inv(upper)
    return np.take_along_axis(np.where(finite, vectors, np.nan), np.argsort(order, axis=-1), axis=-1)


def row_sizes(rows: np.ndarray) -> np.ndarray:
    """(..., p, 1): the largest entry of every row of (..., p, n); 1 for rows of zeros."""
    size = np.abs(rows).max(axis=-1, initial=0.0, keepdims=True)
    return np.where(size > 0.0, size, 1.0)


def _scaled(x: np.ndarray, by: np.ndarray | None) -> np.ndarray:
    return x if by is None else by * x


def _svd(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """U, S and V*.  A single matrix is passed to LAPACK directly: NumPy's overhead exceeds a decomposition of this
    size."""
    if matrix.shape[-2] * matrix.shape[-1] > LARGE and len(blocks := _blocks(matrix)) > 1:
        return _svd_by_blocks(matrix, blocks)
    if matrix.ndim > 2 or not matrix.size:
        return np.linalg.svd(matrix)
    u, s, vt, failed = dgesdd(matrix)
    if failed:
        raise np.linalg.LinAlgError("SVD did not converge")
    return u, s, vt


def _blocks(matrix: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Rows and columns of the independent blocks of (..., m, n); one of them is empty for a row or column of zeros."""
    from scipy.sparse import bmat, csr_array  # imported late: most matrices are small, and the import is slow
    from scipy.sparse.csgraph import connected_components

    m = matrix.shape[-2]
    is_there = csr_array((matrix != 0.0).any(axis=tuple(range(matrix.ndim - 2))))
    count, label = connected_components(bmat([[None, is_there], [is_there.T, None]]), directed=False)
    order, sizes = np.argsort(label, kind="stable"), np.bincount(label, minlength=count)
    members = np.split(order, np.cumsum(sizes)[:-1])
    return [(indices[indices < m], indices[indices >= m] - m) for indices in members]


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
    """(...): number of true entries along the last axis."""
    return np.intp(np.count_nonzero(mask)) if mask.ndim == 1 else mask.sum(axis=-1)


def _bounded(counted: Any, rank: Any) -> Any:
    """Ranks bounded by ``rank``, one number or one per matrix."""
    bound = np.asarray(rank)
    if bound.dtype.kind not in "iu" or np.any(bound < 0) or np.broadcast(counted, bound).shape != np.shape(counted):
        raise MechanismError(
            f"rank must be a number of constraints, 0 or more, or one for each of the states of shape "
            f"{np.shape(counted)}, not {rank!r}"
        )
    return np.minimum(counted, bound)


def solved(matrix: np.ndarray, x: np.ndarray) -> np.ndarray:
    """(..., n): the inverse of the matrix (..., n, n) times the vector (..., n); a single matrix by LAPACK directly."""
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


# -- pivoting ------------------------------------------------------------------------------------------------------


class Pivoted(NamedTuple):
    """A P = Q R for a batch of matrices A (..., m, n); the diagonal of R descends in size."""

    q: np.ndarray  # (..., m, m)
    r: np.ndarray  # (..., m, n)
    pivots: np.ndarray  # (..., n): column k of A P is column pivots[k] of A


def pivoted_qr(matrices: np.ndarray) -> Pivoted:
    """Pivoted QR factorizations by LAPACK, one matrix after the other: NumPy's batched QR does not pivot, and SciPy's
    overhead exceeds the factorization of a matrix this small."""
    batch, (m, n) = matrices.shape[:-2], matrices.shape[-2:]
    count = min(m, n)
    q = np.broadcast_to(np.eye(m), (*batch, m, m)).copy()
    r, pivots = matrices.copy(), np.broadcast_to(np.arange(n), (*batch, n)).copy()
    for state in np.ndindex(batch) if count else ():
        packed, pivoted, scales, _, _ = dgeqp3(matrices[state])
        r[state], pivots[state] = packed, pivoted - 1
        q[state][:, :count] = packed[:, :count]  # reflections, below the diagonal
        q[state] = dorgqr(q[state], scales)[0]
    return Pivoted(q, np.triu(r), pivots)
