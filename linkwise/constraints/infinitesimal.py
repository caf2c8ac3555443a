"""Infinitesimal motions: allowed by constraints to first order, blocked to second, at every position.

A two-link arm pinned at full reach has G v = 0 for the motion of its elbow across the line, and cannot make it: the
distance of the ends would shrink with the square of the motion.  ``redundancy`` counts such motions.
The constraints of such mechanisms are completed by rows P, the projection onto the blocked motions (``second_order``):
P v = 0 and P a + dP/dt v = 0.  No reaction of rigid links balances forces along these motions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..compiler.store import float64_function
from ..dynamics import trees as tree
from ..dynamics.states import Float64Array
from ..mechanism import Mechanism, MechanismError
from .decomposition import decompose
from .redundancy import redundancy, second_order_terms
from .second_order import blocked_motions
from .sizes import sizes
from .tolerances import LOOPS

STEP = 1e-4  # dimensionless: step along a motion for rates of projections


def has_infinitesimal_motions(mech: Mechanism) -> bool:
    """Whether constraints block motions to second order that they allow to first, at every position."""
    try:
        return mech._kernels[has_infinitesimal_motions]
    except KeyError:
        has_some = any(cluster.infinitesimal for cluster in redundancy(mech).clusters)
        return mech._kernels.setdefault(has_infinitesimal_motions, has_some)


def refuse_infinitesimal_motions(mech: Mechanism, task: str) -> None:
    """Raise for a quantity that would take infinitesimal motions for finite ones."""
    if not has_infinitesimal_motions(mech):
        return
    known = redundancy(mech)
    loops = ", ".join(repr(name) for cluster in known.clusters if cluster.infinitesimal for name in cluster.loops)
    listed = "; ".join(known.redundant[:4]) + (f" and {len(known.redundant) - 4} more" if known.redundant[4:] else "")
    raise MechanismError(
        f"mechanism {mech.name!r} has no answer to {task}: loops {loops} allow motions to first order that they block "
        "to second, as an arm pinned at full reach moves across its line, and the reactions of rigid links to forces "
        f"along these have no bound; leave out what follows from other constraints ({listed}), by loops that leave it "
        "free, or take another posture"
    )


def projection_onto_blocked(mech: Mechanism, q: np.ndarray) -> np.ndarray:
    """(nv, nv): the orthogonal projection onto the infinitesimal motions at q (nq,), dimensionless."""
    jacobian = float64_function(mech, "constraint_jacobian")(q)
    second_order = partial(second_order_terms, mech, q)
    return blocked_motions(sizes(mech).dimensionless(jacobian), second_order, redundancy(mech).rank)


def completed_rows(
    mech: Mechanism, jacobian: Float64Array, q: np.ndarray, rank: Any = None
) -> tuple[Float64Array, Any]:
    """[G; P] (..., m + nv, nv) and its rank (...); the rank of G is bounded by ``rank``."""
    projection = _map_states(mech, projection_onto_blocked, (mech.nv, mech.nv), q)
    batch = np.broadcast_shapes(jacobian.shape[:-2], projection.shape[:-2])
    known = np.isfinite(projection).all(axis=(-1, -2))
    blocked = np.rint(np.where(known, np.trace(projection, axis1=-2, axis2=-1), 0.0)).astype(int)
    bound = np.where(known, np.broadcast_to(redundancy(mech).rank if rank is None else rank, batch) + blocked, mech.nv)
    parts = jacobian, projection / sizes(mech).columns
    rows = np.concatenate([np.broadcast_to(x, (*batch, *x.shape[-2:])) for x in parts], axis=-2)
    return rows, bound if batch else int(bound)


def completed_bias(mech: Mechanism, bias: Float64Array, q: np.ndarray, v: np.ndarray) -> Float64Array:
    """(..., m + nv): dG/dt v and dP/dt v."""
    parts = bias, _map_states(mech, _rate_of_projection, (mech.nv,), q, v)
    batch = np.broadcast_shapes(*(x.shape[:-1] for x in parts))
    return np.concatenate([np.broadcast_to(x, (*batch, x.shape[-1])) for x in parts], axis=-1)


def _rate_of_projection(mech: Mechanism, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """(nv,): dP/dt v, dimensionless per second, by a difference along the motion."""
    size = sizes(mech)
    speed = float(np.abs(v / size.columns).max(initial=0.0))
    if not speed:
        return np.zeros(mech.nv)
    jacobian, bias = float64_function(mech, "constraint_jacobian")(q), float64_function(mech, "constraint_bias")(q, v)
    bend = -decompose(jacobian, LOOPS.rank, redundancy(mech).rank, size.rows, size.columns).solve(bias)
    times = np.array([-1.0, 1.0])[:, None] * STEP / speed
    before, after = (
        projection_onto_blocked(mech, x) for x in tree.integrate(mech, q, times * v + 0.5 * times**2 * bend, 1.0)
    )
    return (after - before) @ (v / size.columns) * (0.5 * speed / STEP)


def _map_states(
    mech: Mechanism, function: Callable[..., np.ndarray], core: tuple[int, ...], *arrays: np.ndarray
) -> np.ndarray:
    """A function of one state evaluated for a batch; NaN for states that are not finite."""
    batch = np.broadcast_shapes(*(x.shape[:-1] for x in arrays))
    states: Sequence[np.ndarray] = [np.broadcast_to(x, (*batch, x.shape[-1])) for x in arrays]
    results = np.full((*batch, *core), np.nan)
    for state in np.ndindex(batch):
        values = [x[state] for x in states]
        if all(np.isfinite(x).all() for x in values):
            results[state] = function(mech, *values)
    return results
