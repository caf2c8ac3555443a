"""The singular value decomposition of constraint Jacobians, its rank decided state by state (spencer2004 3.1-3.7)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

#: Singular values below this fraction of the largest count as zero: the constraint is redundant there.
RANK_TOLERANCE = 1e-8


@dataclass(frozen=True)
class Decomposition:
    """G = U S V* for a batch of states: u (..., m, m), s (..., min(m, n)), v (..., n, n).

    Ranks may differ from state to state; ``independent`` marks the singular values that count as not zero.
    """

    u: np.ndarray
    s: np.ndarray
    v: np.ndarray
    independent: np.ndarray

    @property
    def rank(self) -> np.ndarray:
        """(...): number of independent constraints."""
        return self.independent.sum(axis=-1)

    @property
    def _inverse_values(self) -> np.ndarray:
        return np.divide(1.0, self.s, out=np.zeros(self.s.shape), where=self.independent)

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
    def pseudo_inverse(self) -> np.ndarray:
        """(..., n, m): G^+, with 1/0 taken as 0 (3.4)."""
        k = self.s.shape[-1]
        return (self.v[..., :k] * self._inverse_values[..., None, :]) @ np.swapaxes(self.u[..., :k], -1, -2)

    def solve(self, x: np.ndarray) -> np.ndarray:
        """(..., n): G^+ x, the Moore-Penrose inverse with 1/0 taken as 0 (3.4)."""
        k = self.s.shape[-1]
        return times(self.v[..., :k], self._inverse_values * transposed_times(self.u[..., :k], x))

    def solve_transposed(self, x: np.ndarray) -> np.ndarray:
        """(..., m): (G^+)* x."""
        k = self.s.shape[-1]
        return times(self.u[..., :k], self._inverse_values * transposed_times(self.v[..., :k], x))

    def damped(self, x: np.ndarray, damping: np.ndarray) -> np.ndarray:
        """(..., n): V (S / (S^2 + damping)) U* x, a step of Levenberg and Marquardt; damping is (...)."""
        k = self.s.shape[-1]
        square = self.s**2 + damping[..., None]
        weights = np.divide(self.s, square, out=np.zeros_like(self.s), where=square > 0.0)
        return times(self.v[..., :k], weights * transposed_times(self.u[..., :k], x))


def decompose(jacobian: np.ndarray, tolerance: float = RANK_TOLERANCE, rank: Any = None) -> Decomposition:
    """The decomposition of (..., m, n) with singular values below ``tolerance`` times the largest taken as zero, and no
    more than ``rank`` of them kept.

    A matrix that is not finite has factors that are not, and the full rank, so that no freedoms are made of it.
    """
    if math.isfinite(np.add.reduce(jacobian, axis=None)):  # all are finite
        u, s, vt = np.linalg.svd(jacobian)
        independent = s > tolerance * s[..., :1]
    else:
        finite = np.isfinite(jacobian).all(axis=(-1, -2))
        u, s, vt = np.linalg.svd(np.where(finite[..., None, None], jacobian, 0.0))
        independent = s > tolerance * s[..., :1]
        u[~finite], s[~finite], vt[~finite], independent[~finite] = np.nan, np.nan, np.nan, True
    if rank is not None:
        independent &= np.arange(s.shape[-1]) < np.asarray(rank)[..., None]
    return Decomposition(u, s, np.swapaxes(vt, -1, -2), independent)


def times(matrix: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The matrix (..., m, n) times the vector (..., n)."""
    return matrix @ x if x.ndim == 1 else (matrix @ x[..., None])[..., 0]


def transposed_times(matrix: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The transpose of the matrix (..., m, n) times the vector (..., m)."""
    return x @ matrix if x.ndim == 1 else (x[..., None, :] @ matrix)[..., 0, :]
