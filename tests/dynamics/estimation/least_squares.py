"""The oracle: weighted least squares over all unknowns at once, from dense matrices of the definitions.

The unknowns are joint accelerations a and wrenches w.  Mass matrix and Jacobians come from ``op.dense``, the
oracle of the operators, which shares nothing with the compiled recursions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

import linkwise as lw
from linkwise import operators as op


@dataclass
class Dense:
    """Measured deviations from the nominal motion, and their noise; infinite: not measured, zero: exact."""

    mass_matrix: np.ndarray
    jacobian: np.ndarray  # (6 n_links, nv), in link frames

    @classmethod
    def of(cls, mech: lw.Mechanism, q) -> Dense:
        """By the stacked operators."""
        jacobian = op.dense(op.phi.T @ op.H.T, mech, q)
        inertia = op.dense(op.M, mech, q)
        return cls(jacobian.T @ inertia @ jacobian + np.diag(lw.estimation.rotor_inertias(mech)), jacobian)

    def solve(self, residuals, of_a, of_tau, of_wrench, sensed=None, of_sensed=None):
        """Mean (nv + 6 n_links,) of (a, w), its covariance, the map to joint forces, least squares: rows with noise are
        divided by it, those without are equations, unknowns without spread are left out."""
        n = len(self.mass_matrix) + len(self.jacobian)
        forces = np.hstack([self.mass_matrix, -self.jacobian.T])
        rows, values, noise = [forces], [residuals], [of_tau]
        rows.append(np.eye(n))
        values.append(np.zeros(n))
        noise.append(np.concatenate([of_a, of_wrench.ravel()]))
        if sensed is not None:
            rows.append(np.hstack([self.jacobian, np.zeros((len(self.jacobian),) * 2)]))
            values.append(sensed.ravel())
            noise.append(of_sensed.ravel())
        A, b, s = np.vstack(rows), np.concatenate(values), np.concatenate(noise)
        exact, known = s == 0.0, (s > 0.0) & np.isfinite(s)
        basis = scipy.linalg.null_space(A[exact]) if exact.any() else np.eye(n)
        start = np.linalg.lstsq(A[exact], b[exact], rcond=None)[0] if exact.any() else np.zeros(n)
        left = A[known] @ basis / s[known, None]
        right = (b[known] - A[known] @ start) / s[known]
        u, d, vt = np.linalg.svd(left, full_matrices=False)
        root = basis @ vt.T / d
        return start + root @ (u.T @ right), root @ root.T, forces

    def covariance(self, of_a, of_tau, of_wrench) -> np.ndarray:
        """Of the residuals of joint forces."""
        forces = np.hstack([self.mass_matrix, -self.jacobian.T])
        prior = np.concatenate([of_a, of_wrench.ravel()]) ** 2
        return forces * prior @ forces.T + np.diag(of_tau**2)
