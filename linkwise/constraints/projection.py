"""Loops that are nearly closed, closed by compiled elimination: the quick way of ``constraints.project``."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..compiler.store import float64_function
from ..dynamics.states import Float64Array
from ..mechanics.algorithms.closed_projection import RELIABLE
from ..mechanics.algorithms.decisions import fronts
from ..mechanism import Mechanism
from .loop_closure import LoopEquations
from .tolerances import LOOPS

NEAR = 0.1  # pivots relative to the largest: with less, near singular positions, SVDs tell better where a state belongs


def projected_by_elimination(
    equations: LoopEquations, q: np.ndarray, v: np.ndarray, tolerance: float, aim: float, rank: Any
) -> tuple[Float64Array, Float64Array] | None:
    """(q, v) moved the least that closes all loops and satisfies their velocity constraints; configurations with errors
    below ``aim`` stay as they are.

    None where the elimination cannot be relied on for some state or does not close loops to the tolerance, and where
    that takes a search: loops that are open by more than a milliradian, or a thousandth of their size, or that close to
    the rounding of the data only.
    """
    mech = equations.mech
    if not mech.loops or equations.blocks or not q.size or not v.size or not _is_generic(mech, rank):
        return None
    size = equations.open_by(q)
    if not (size < LOOPS.open_by_mistake).all():
        return None
    kernel, to = float64_function(mech, "closed_projection"), q
    if (size > aim).any():
        to = np.where((size > aim)[..., None], kernel(q, np.zeros(mech.nv))[0][..., : mech.nq], q)
    state, reliability = kernel(to, v)  # velocities are those before its last correction: now there is next to none
    if not (np.all(reliability > RELIABLE + NEAR**2) and np.all(equations.is_closed(to, tolerance))):
        return None
    return to, state[..., mech.nq :]


def _is_generic(mech: Mechanism, rank: Any) -> bool:
    """Whether no fewer constraints than those that are independent away from singular positions are to be kept."""
    if rank is None:
        return True
    pivots = fronts(mech).pivots
    return bool(np.all(np.asarray(rank) == pivots))
