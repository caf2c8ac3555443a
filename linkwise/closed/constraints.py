"""Loop constraints of a mechanism: error, Jacobian, bias, freedoms (spencer2004 2.1c-2.3)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..mechanism import Mechanism, MechanismError
from ..tree_dynamics import _function
from .decomposition import RANK_TOLERANCE, Decomposition, decompose


def position_error(mech: Mechanism, q):
    """(m,): g(q), zero where all loops are closed; metres and sines of angles, 6 - freedoms numbers per loop.

    ``mech.constraint_index(loop)`` says which belong to a loop, and docs/closed.md what they mean.
    """
    return _function(mech, "position_error", q)(q)


def constraint_jacobian(mech: Mechanism, q):
    """(m, nv): G with dg/dt = G v (2.2)."""
    return _function(mech, "constraint_jacobian", q)(q)


def constraint_bias(mech: Mechanism, q, v):
    """(m,): dG/dt v; loops stay closed while ``G a + constraint_bias`` is zero (2.3)."""
    return _function(mech, "constraint_bias", q)(q, v)


def degrees_of_freedom(mech: Mechanism, q, tolerance: float = RANK_TOLERANCE):
    """nv minus the rank of G at q: an integer, or an array of them for a batch.

    A singular value counts as zero below ``tolerance`` times the largest.  q must be assembled: where loops are open,
    redundant constraints look independent.
    """
    freedoms = mech.nv - decomposed(mech, q, tolerance).rank
    return int(freedoms) if np.ndim(freedoms) == 0 else freedoms


def decomposed(mech: Mechanism, q, tolerance: float = RANK_TOLERANCE, rank: int | None = None) -> Decomposition:
    """The singular value decomposition of G at q."""
    return decompose(constraint_jacobian(mech, np.asarray(q, dtype=float)), tolerance, rank)


def velocity_indices(mech: Mechanism, joints: Sequence[str], what: str) -> np.ndarray:
    """Places in v of the named joints."""
    if isinstance(joints, str):
        raise MechanismError(f"{what} must be a sequence of joint names, not the string {joints!r}")
    return np.array([i for name in joints for i in range(mech.nv)[mech.v_index(name)]], dtype=int)
