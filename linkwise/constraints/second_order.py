"""Motions that constraints allow to first order and block to second.

Motions on the manifold satisfy G a + B(v, v) = 0, with B(v, v) = dG/dt v.  Combinations u of constraints with u* G = 0
(self-stresses) leave a condition on v alone, v* Q v = 0 with Q = u* B.  Where such a Q is positive semidefinite on the
null space of G, its range is blocked: no velocity has a component in it.  This is repeated on the remaining space until
no combination is semidefinite (Pellegrino and Calladine 1986; prestress stability of Connelly and Whiteley 1996).

Constraints and coordinates are dimensionless, at one configuration.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .decomposition import decompose
from .tolerances import LOOPS

CURVED = 1e-6  # smaller second-order terms are errors of rounding and closing
SEMIDEFINITE = 1e-6  # of the trace: tolerance of negative eigenvalues
RANGE = 1e-3  # of the largest eigenvalue: of semidefinite forms, smaller ones are zero
VELOCITIES = 3  # random velocities that test whether second-order terms vanish
CUTS = 60  # largest number of eigenvectors in the search for a semidefinite combination

#: B(v, v) (k, m) of velocities (k, nv).
SecondOrder = Callable[[np.ndarray], np.ndarray]


def blocked_motions(jacobian: np.ndarray, second_order: SecondOrder, rank: int | None = None) -> np.ndarray:
    """(nv, nv): the orthogonal projection onto the blocked motions, for G (m, nv) of rank at most ``rank``."""
    parts = decompose(jacobian, LOOPS.rank, rank)
    stresses, null = parts.u[:, parts.rank :], parts.v[:, parts.rank :]
    nothing = np.zeros((jacobian.shape[1],) * 2)
    if not stresses.shape[1] or not null.shape[1]:
        return nothing
    v = np.random.default_rng(0).normal(size=(VELOCITIES, null.shape[1])) @ null.T
    v /= np.linalg.norm(v, axis=-1, keepdims=True)
    if not np.abs(second_order(v) @ stresses).max() > CURVED:
        return nothing
    left = null
    while left.shape[1]:
        form = _semidefinite(_forms(second_order, left, stresses))
        if form is None:
            break
        values, vectors = np.linalg.eigh(form)
        left = left @ vectors[:, values <= RANGE * values[-1]]
    return null @ null.T - left @ left.T


def _forms(second_order: SecondOrder, motions: np.ndarray, stresses: np.ndarray) -> np.ndarray:
    """(k, p, p): independent combinations of the forms u* B of self-stresses (m, s), on motions (nv, p)."""
    p = motions.shape[1]
    i, j = np.triu_indices(p)
    sums, differences = motions.T[i] + motions.T[j], motions.T[i] - motions.T[j]
    forms = np.zeros((stresses.shape[1], p, p))
    forms[:, i, j] = 0.25 * ((second_order(sums) - second_order(differences)) @ stresses).T
    forms[:, j, i] = forms[:, i, j]
    _, weights, combined = np.linalg.svd(forms.reshape(len(forms), -1), full_matrices=False)
    return combined[weights > CURVED].reshape(-1, p, p)


def _semidefinite(forms: np.ndarray) -> np.ndarray | None:
    """(p, p): a positive semidefinite combination of forms (k, p, p) with trace 1, or None.  Cutting planes, x* Q x >=
    t for more and more eigenvectors x, maximize its least eigenvalue."""
    traces = np.einsum("kii->k", forms)
    if not (np.abs(traces) > SEMIDEFINITE).any():
        return None
    guess = np.einsum("k,kij->ij", traces, forms) / (traces @ traces)
    if _least(guess)[0] >= -SEMIDEFINITE:
        return guess
    if len(forms) == 1:
        return None
    from scipy.optimize import linprog  # imported late: rarely needed

    cuts = [*np.eye(forms.shape[1]), _least(guess)[1]]
    for _ in range(CUTS):
        values = np.einsum("ci,kij,cj->ck", np.array(cuts), forms, np.array(cuts))
        solution = linprog(
            np.append(np.zeros(len(forms)), -1.0),
            np.hstack([-values, np.ones((len(values), 1))]),
            np.zeros(len(values)),
            np.append(traces, 0.0)[None],
            [1.0],
            bounds=[(-1.0 / SEMIDEFINITE, 1.0 / SEMIDEFINITE)] * len(forms) + [(None, 1.0)],
        )
        if not solution.success or solution.x[-1] < -SEMIDEFINITE:
            return None
        combined = np.einsum("k,kij->ij", solution.x[:-1], forms)
        least, direction = _least(combined)
        if least >= -SEMIDEFINITE:
            return combined
        cuts.append(direction)
    return None


def _least(form: np.ndarray) -> tuple[float, np.ndarray]:
    """The least eigenvalue of a form, and its eigenvector."""
    values, vectors = np.linalg.eigh(form)
    return float(values[0]), vectors[:, 0]
