"""QR factorizations with column pivoting of many small matrices: they say which columns are independent."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dgeqp3, dorgqr


class Pivoted(NamedTuple):
    """A P = Q R for a batch of matrices A (..., m, n); the diagonal of R descends in size."""

    q: np.ndarray  # (..., m, m)
    r: np.ndarray  # (..., m, n)
    pivots: np.ndarray  # (..., n): column k of A P is column pivots[k] of A


def pivoted_qr(matrices: np.ndarray) -> Pivoted:
    """The factorizations by LAPACK, one matrix after the other: NumPy's QR of batches does not pivot, and SciPy's that
    does takes no batches (its own interface costs more than the factorization of a matrix this small)."""
    batch, (m, n) = matrices.shape[:-2], matrices.shape[-2:]
    count = min(m, n)
    q = np.broadcast_to(np.eye(m), (*batch, m, m)).copy()
    r, pivots = matrices.copy(), np.broadcast_to(np.arange(n), (*batch, n)).copy()
    for state in np.ndindex(batch) if count else ():
        packed, places, scales, _, _ = dgeqp3(matrices[state])
        r[state], pivots[state] = packed, places - 1
        q[state][:, :count] = packed[:, :count]  # reflections, below the diagonal
        q[state] = dorgqr(q[state], scales)[0]
    return Pivoted(q, np.triu(r), pivots)
