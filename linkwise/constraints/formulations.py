"""Bases of the accelerations that keep loops closed: a = K y + k with G K = 0 and G k = -dG/dt v (2.42-2.47).

All formulations work in dimensionless coordinates, lengths in units of the loops' sizes (``sizes.py``): pivots and
least norms do not depend on units.  For one state K is (nv, p), p the number of degrees of freedom; for a batch (nv,
nv), padded with columns of zeros, because states may differ in p.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..mechanism import MechanismError
from .decomposition import Decomposition, decompose, pivoted_qr, row_sizes, times


class UnsuitableCoordinates(MechanismError):
    """Chosen coordinates do not describe the motion: ``count`` of them, for ``dofs`` degrees of freedom."""

    def __init__(self, message: str, dofs: int, count: int):
        super().__init__(message)
        self.dofs, self.count = dofs, count


class Loops(NamedTuple):
    """Dimensionless constraints of one state, or of states with the same rank of G: jacobian G (..., m, nv), bias
    (..., m) = dG/dt v with stabilization."""

    jacobian: np.ndarray
    bias: np.ndarray
    rank: int


Basis = tuple[np.ndarray, np.ndarray]  # K without columns of zeros, k


def well_chosen(loops: Loops) -> np.ndarray:
    """(..., p): indices of v of the independent coordinates of coordinate partitioning (2.3.3.1 Remark 2), chosen by
    pivoting so that the dependent columns of G are well conditioned."""
    return np.sort(pivoted_qr(loops.jacobian).pivots[..., loops.rank :])


def chosen_coordinates(loops: Loops, free: np.ndarray) -> Basis:
    """K and k for the independent coordinates with indices ``free`` (..., p) of v, in any order (2.46, 2.47)."""
    *batch, _, n = loops.jacobian.shape
    p = free.shape[-1]
    chosen = np.eye(n)[np.broadcast_to(free, (*batch, p))]  # (..., p, nv): rows that pick the coordinates
    taken = chosen.any(axis=-2)
    dependent = np.argsort(taken, axis=-1, kind="stable")[..., : n - p]
    block = np.take_along_axis(loops.jacobian, dependent[..., None, :], axis=-1)
    inverse = decompose(block, max(block.shape[-2:]) * np.finfo(float).eps)
    if n - p != loops.rank or np.any(taken.sum(axis=-1) != p) or np.any(inverse.rank < loops.rank):
        _refuse_choice(loops, p)
    spread = np.swapaxes(np.eye(n)[dependent], -1, -2) @ inverse.pseudo_inverse  # (..., nv, m): to their indices of v
    across = np.swapaxes(chosen, -1, -2)
    return across - spread @ (loops.jacobian @ across), -times(spread, loops.bias)


def tangent(loops: Loops) -> Basis:
    """Tangent space method (2.3.3): y = R q with rows R that span the null space of G, from a QR factorization."""
    q = pivoted_qr(np.swapaxes(loops.jacobian, -1, -2)).q
    return chosen_rows(loops, np.swapaxes(q[..., loops.rank :], -1, -2))


def chosen_rows(loops: Loops, rows: np.ndarray) -> Basis:
    """Coordinates y with dy/dt = R v, R (..., p, nv): K = [R; G]^-1 [I; 0], k = -[R; G]^-1 [0; bias] (2.44, 2.45)."""
    *batch, _, n = loops.jacobian.shape
    p = rows.shape[-2]
    stacked = np.concatenate([np.broadcast_to(rows, (*batch, p, n)), loops.jacobian], axis=-2)
    inverse = decompose(stacked, max(stacked.shape[-2:]) * np.finfo(float).eps)
    if p != n - loops.rank or np.any(inverse.rank < n):
        _refuse_choice(loops, p)
    both = inverse.pseudo_inverse
    return both[..., :p], -times(both[..., p:], loops.bias)


def row_basis(loops: Loops, rows: np.ndarray, columns: np.ndarray | None) -> Basis:
    """K and k with dimensions for coordinates dy/dt = R v of the user, R (..., p, nv); ``columns`` make v
    dimensionless. Rows are scaled to the size of those of G, so that y may have any units."""
    scaled = rows if columns is None else rows * columns
    size = row_sizes(scaled)
    basis, offset = chosen_rows(loops, scaled / size)
    return _with_dimensions(basis / np.swapaxes(size, -1, -2), offset, columns)


def differentiable(loops: Loops) -> Basis:
    """Differentiable null space method (2.4): G* = Q1 R, K = Q2, and dK/dt = -Q1 R^-T dG/dt K by differentiating the
    factorization; then k = dK/dt K* v depends on dG/dt only through dG/dt v."""
    q, r, pivots = pivoted_qr(np.swapaxes(loops.jacobian, -1, -2))
    rank = loops.rank
    bias = np.take_along_axis(loops.bias, pivots[..., :rank], axis=-1)  # of constraints independent of each other
    solved = np.linalg.solve(np.swapaxes(r[..., :rank, :rank], -1, -2), bias[..., None])[..., 0]
    return q[..., rank:], -times(q[..., :rank], solved)


METHODS: dict[str, Callable[[Loops], Basis] | None] = {
    "partitioning": None,  # joint coordinates, treated like a choice of the user
    "tangent": tangent,
    "differentiable": differentiable,
}


def acceleration_basis(
    method: str, jacobian: np.ndarray, bias: np.ndarray, svd: Decomposition, chosen: np.ndarray | None
) -> Basis:
    """K and k (..., nv) of constraints with dimensions; NaN where G is not finite.

    ``svd``: the decomposition of the Jacobian, with the units that make it dimensionless.
    ``chosen``: independent coordinates as indices of v (p,) or rows (..., p, nv), in place of the method's own.
    """
    if method == "svd" and chosen is None:
        return svd.null, -svd.solve(bias)
    batch, n, columns = bias.shape[:-1], jacobian.shape[-1], svd.columns
    if svd.rows is not None:
        jacobian, bias = svd.rows[:, None] * jacobian, svd.rows * bias
    jacobian = jacobian if columns is None else jacobian * columns
    jacobian = np.broadcast_to(jacobian, (*batch, *jacobian.shape[-2:]))
    ranks = np.broadcast_to(svd.rank, batch)
    finite = np.isfinite(jacobian).all(axis=(-1, -2))
    if not batch and finite:
        return _basis(method, Loops(jacobian, bias, int(ranks)), chosen, columns)
    bases = np.where(finite[..., None, None], np.zeros((n, n)), np.nan)
    offsets = np.where(finite[..., None], np.zeros(n), np.nan)
    if not batch:
        return bases[:, int(ranks) :], offsets
    rows = None if chosen is None or chosen.ndim == 1 else np.broadcast_to(chosen, (*batch, *chosen.shape[-2:]))
    for rank in np.unique(ranks[finite]):  # states of one rank at a time: all have K of one shape
        states = finite & (ranks == rank)
        loops = Loops(jacobian[states], bias[states], int(rank))
        basis, offsets[states] = _basis(method, loops, chosen if rows is None else rows[states], columns)
        bases[states, :, : basis.shape[-1]] = basis
    return bases, offsets


def _basis(method: str, loops: Loops, chosen: np.ndarray | None, columns: np.ndarray | None) -> Basis:
    """K without columns of zeros, and k, with dimensions, for states of the same rank."""
    if chosen is not None and chosen.ndim > 1:
        return row_basis(loops, chosen, columns)
    formulation = METHODS[method] if chosen is None else None
    if formulation is not None:
        return _with_dimensions(*formulation(loops), columns)
    free = well_chosen(loops) if chosen is None else chosen
    basis, offset = chosen_coordinates(loops, free)
    return _with_dimensions(basis if columns is None else basis / columns[free][..., None, :], offset, columns)


def _with_dimensions(basis: np.ndarray, offset: np.ndarray, columns: np.ndarray | None) -> Basis:
    return (basis, offset) if columns is None else (columns[:, None] * basis, columns * offset)


def _refuse_choice(loops: Loops, count: int) -> None:
    dofs = loops.jacobian.shape[-1] - loops.rank
    raise UnsuitableCoordinates(
        f"the chosen coordinates do not describe the motion here: there are {dofs} degrees of freedom, {count} "
        "coordinates were chosen"
        + ("" if count != dofs else ", and the others do not follow from them")
        + " (2.28 is violated)",
        dofs,
        count,
    )
