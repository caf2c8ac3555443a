"""The singular value decomposition of constraint Jacobians, its rank decided state by state (spencer2004 3.1-3.7)."""

from __future__ import annotations

from dataclasses import dataclass

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
        return _times(self.v[..., :k], self._inverse_values * _transposed_times(self.u[..., :k], x))

    def solve_transposed(self, x: np.ndarray) -> np.ndarray:
        """(..., m): (G^+)* x."""
        k = self.s.shape[-1]
        return _times(self.u[..., :k], self._inverse_values * _transposed_times(self.v[..., :k], x))

    def damped(self, x: np.ndarray, damping: np.ndarray) -> np.ndarray:
        """(..., n): V (S / (S^2 + damping)) U* x, a step of Levenberg and Marquardt; damping is (...)."""
        k = self.s.shape[-1]
        square = self.s**2 + damping[..., None]
        weights = np.divide(self.s, square, out=np.zeros_like(self.s), where=square > 0.0)
        return _times(self.v[..., :k], weights * _transposed_times(self.u[..., :k], x))


def decompose(jacobian: np.ndarray, tolerance: float = RANK_TOLERANCE, rank: int | None = None) -> Decomposition:
    """The decomposition of (..., m, n) with singular values below ``tolerance`` times the largest taken as zero, and no
    more than ``rank`` of them kept."""
    try:
        u, s, vt = np.linalg.svd(jacobian)
    except np.linalg.LinAlgError:
        raise ValueError("constraints have no decomposition here: q, v and tau must be finite") from None
    independent = s > tolerance * s[..., :1]
    if rank is not None:
        independent &= np.arange(s.shape[-1]) < rank
    return Decomposition(u, s, np.swapaxes(vt, -1, -2), independent)


def _times(matrix: np.ndarray, x: np.ndarray) -> np.ndarray:
    return (matrix @ x[..., None])[..., 0]


def _transposed_times(matrix: np.ndarray, x: np.ndarray) -> np.ndarray:
    return (x[..., None, :] @ matrix)[..., 0, :]
