"""Bases of the accelerations that keep the loops closed: a = K y + k with G K = 0 and G k = -dG/dt v (2.42-2.47).

For one state K is (nv, p), p the number of freedoms; for a batch (nv, nv) with columns of zeros to fill up, so that its
states may have different freedoms.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.linalg

from ..mechanism import MechanismError
from .decomposition import Decomposition


class Loops(NamedTuple):
    """One state's constraints: jacobian G (m, nv), bias (m,) = dG/dt v with stabilization, and the rank of G."""

    jacobian: np.ndarray
    bias: np.ndarray
    rank: int


Basis = tuple[np.ndarray, np.ndarray]  # K without its zero columns, k


def partitioning(loops: Loops) -> Basis:
    """Generalized coordinate partitioning (2.3.3.1 Remark 2): y are coordinates themselves, chosen by pivoting so that
    the dependent columns of G are well conditioned."""
    _, _, pivots = scipy.linalg.qr(loops.jacobian, mode="economic", pivoting=True)
    return chosen_coordinates(loops, np.setdiff1d(np.arange(loops.jacobian.shape[1]), pivots[: loops.rank]))


def chosen_coordinates(loops: Loops, free: np.ndarray) -> Basis:
    """K and k for the independent coordinates at the places ``free`` of v (2.46, 2.47)."""
    n = loops.jacobian.shape[1]
    dependent = np.setdiff1d(np.arange(n), free)
    block = loops.jacobian[:, dependent]
    if len(dependent) != loops.rank or (loops.rank and np.linalg.matrix_rank(block) < loops.rank):
        _refuse_choice(loops, len(free))
    solution = np.linalg.lstsq(block, np.column_stack([loops.jacobian[:, free], loops.bias]), rcond=None)[0]
    basis, offset = np.zeros((n, len(free))), np.zeros(n)
    basis[free, np.arange(len(free))] = 1.0
    basis[dependent], offset[dependent] = -solution[:, :-1], -solution[:, -1]
    return basis, offset


def tangent(loops: Loops) -> Basis:
    """Tangent space method (2.3.3): y = R q with rows R that span the null space of G, from a QR factorization."""
    q, _, _ = scipy.linalg.qr(loops.jacobian.T, pivoting=True)
    return chosen_rows(loops, q[:, loops.rank :].T)


def chosen_rows(loops: Loops, rows: np.ndarray) -> Basis:
    """Coordinates y with dy/dt = R v, R (p, nv): K = [R; G]^-1 [I; 0], k = -[R; G]^-1 [0; bias] (2.44, 2.45)."""
    stacked = np.vstack([rows, loops.jacobian])
    n = loops.jacobian.shape[1]
    u, values, vt = np.linalg.svd(stacked, full_matrices=False)
    regular = len(values) == n and (n == 0 or values[-1] > values[0] * max(stacked.shape) * np.finfo(float).eps)
    if len(rows) != n - loops.rank or not regular:
        _refuse_choice(loops, len(rows))
    inverse = (vt.T / values) @ u.T
    return inverse[:, : len(rows)], -(inverse[:, len(rows) :] @ loops.bias)


def differentiable(loops: Loops) -> Basis:
    """Differentiable null space method (2.4): G* = Q1 R, K = Q2, and dK/dt = -Q1 R^-T dG/dt K by differentiating the
    factorization; then k = dK/dt K* v takes dG/dt only as dG/dt v."""
    q, r, pivots = scipy.linalg.qr(loops.jacobian.T, pivoting=True)
    rank = loops.rank
    bias = loops.bias[pivots[:rank]]  # of constraints that are independent of each other
    return q[:, rank:], -(q[:, :rank] @ scipy.linalg.solve_triangular(r[:rank, :rank], bias, trans="T"))


METHODS: dict[str, Callable[[Loops], Basis]] = {
    "partitioning": partitioning,
    "tangent": tangent,
    "differentiable": differentiable,
}


def basis_by(method: str, jacobian, bias, svd: Decomposition, chosen: np.ndarray | None) -> Basis:
    """K and k (..., nv), see above.

    ``chosen``: independent coordinates as places in v (p,) or as rows (..., p, nv); they replace the method's own.
    """
    if method == "svd" and chosen is None:
        return svd.null, -svd.solve(bias)
    batch, n = bias.shape[:-1], jacobian.shape[-1]
    if not batch:
        return _basis(method, Loops(jacobian, bias, int(svd.rank)), chosen)
    bases, offsets = np.zeros((*batch, n, n)), np.zeros((*batch, n))
    jacobian = np.broadcast_to(jacobian, (*batch, *jacobian.shape[-2:]))
    ranks = np.broadcast_to(svd.rank, batch)
    rows = None if chosen is None or chosen.ndim == 1 else np.broadcast_to(chosen, (*batch, *chosen.shape[-2:]))
    for state in np.ndindex(batch):
        loops = Loops(jacobian[state], bias[state], int(ranks[state]))
        basis, offset = _basis(method, loops, chosen if rows is None else rows[state])
        bases[state][:, : basis.shape[1]], offsets[state] = basis, offset
    return bases, offsets


def _basis(method: str, loops: Loops, chosen: np.ndarray | None) -> Basis:
    """One state's basis, without padding."""
    if chosen is None:
        return METHODS[method](loops)
    return chosen_coordinates(loops, chosen) if chosen.ndim == 1 else chosen_rows(loops, chosen)


def _refuse_choice(loops: Loops, count: int) -> None:
    freedoms = loops.jacobian.shape[1] - loops.rank
    raise MechanismError(
        f"the chosen coordinates do not describe the motion here: there are {freedoms} freedoms, {count} coordinates "
        "were chosen"
        + ("" if count != freedoms else ", and the others do not follow from them")
        + " (2.28 is violated)"
    )
