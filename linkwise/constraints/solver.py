"""Which solver answers for a state under constraints: the one place where this is decided.

1. Compiled elimination, cluster by cluster, or the sweep over links and multipliers where that costs less
   (``elimination_orders.fronts``: a cost model).  Its status is above ``RELIABLE`` where it answers.
2. Near and in singular positions, in small clusters: compiled elimination by the rank that constraints have at the
   state (``Fronts.by_rank``).
3. One singular value decomposition (``decomposition``) for all that is left: large clusters in singular positions,
   loops that are open by mistake, constraints that are redundant but for the rounding of the data.

What is singular, open or redundant is decided about dimensionless constraints (``sizes``, ``tolerances``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..compiler.store import WRENCHES, float64_function, stored
from ..dynamics.states import Float64Array
from ..mechanics.links.loop_elimination import RELIABLE
from ..mechanism import Mechanism, MechanismError
from ..mechanism.clusters import clusters
from .elimination_orders import fronts
from .infinitesimal import has_infinitesimal_motions
from .masks import batch_of
from .redundancy import redundancy

#: Kernels that sweep over links and multipliers where that costs less.
SWEPT = ("closed_multipliers", "closed_constraint_forces", "closed_loop_reactions", "closed_joint_wrenches")
MOST_COORDINATES = 40  # of a cluster: larger ones would take long to compile, as kernels have no loops

Reference = Callable[..., Float64Array]


class RefusedStates(MechanismError):
    """An error of some ``states`` of a batch, where these are true; the first of them is named between two halves of a
    sentence."""

    def __init__(self, before: str, states: np.ndarray, after: str) -> None:
        count = int(np.count_nonzero(states))
        where = f" in state {tuple(map(int, np.argwhere(states)[0]))}" if np.ndim(states) else ""
        super().__init__(before + where + (f" and {count - 1} more" if count > 1 else "") + after)
        self.before, self.states, self.after = before, states, after

    def among(self, chosen: np.ndarray) -> RefusedStates:
        """The same error where these are the ``chosen`` ones of a larger batch."""
        states = np.zeros(np.shape(chosen), dtype=bool)
        states[chosen] = self.states
        return RefusedStates(self.before, states, self.after)


def completed(
    results: Sequence[Float64Array],
    poor: np.ndarray,
    reference: Callable[..., Sequence[Float64Array]],
    *arrays: Any,
    wrenches: Any = None,
) -> None:
    """Put what ``reference(*arrays, wrenches)`` gives for the ``poor`` states, (batch,), into the results of a kernel.
    Arrays (..., n) and wrenches (..., n_links, 6) are those of all states; None stays None."""

    def chosen(x: Any, axes: int) -> Float64Array | None:
        return None if x is None else np.broadcast_to(x, (*poor.shape, *np.shape(x)[-axes:]))[poor]

    try:
        answers = reference(*(chosen(x, 1) for x in arrays), chosen(wrenches, 2))
    except RefusedStates as error:
        raise error.among(poor) from None
    for result, answer in zip(results, answers, strict=True):
        result[poor] = answer


# -- accelerations ----------------------------------------------------------------------------------------------------


def eliminated(
    mech: Mechanism, q: Any, v: Any, tau: Any, wrenches: ArrayLike | None = None
) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Accelerations by compiled elimination, their status, and that of states whose velocities keep loops closed: above
    ``RELIABLE`` where accelerations count, negative where loops are open by mistake, or opening."""
    given = (q, v, tau) if wrenches is None else (q, v, tau, wrenches)
    ports = () if wrenches is None else (WRENCHES,)
    request = ("closed_motion", *ports) if ports else "closed_motion"
    a, status, consistency = float64_function(mech, request)(*given)
    poor = (status >= 0.0) & (status <= RELIABLE)  # pivots are small
    if not poor.any() or not has_small_clusters(mech):
        return a, status, consistency
    by_rank = float64_function(mech, ("closed_motion", *ports, ("singular", True)))
    if a.ndim == 1:
        return by_rank(*given)

    def exact(q: Any, v: Any, tau: Any, wrenches: Any) -> tuple[Float64Array, ...]:
        return by_rank(q, v, tau) if wrenches is None else by_rank(q, v, tau, wrenches)

    completed((a, status, consistency), poor, exact, q, v, tau, wrenches=wrenches)
    return a, status, consistency


def has_small_clusters(mech: Mechanism) -> bool:
    """Whether some of the clusters are eliminated by rank in singular positions."""
    return stored(mech, has_small_clusters, lambda: _has_small_clusters(mech))


def _has_small_clusters(mech: Mechanism) -> bool:
    return fronts(mech).by_rank([cluster.coordinates for cluster in clusters(mech)]) is not None


# -- everything else that kernels give --------------------------------------------------------------------------------


def by_kernel(
    mech: Mechanism,
    name: str,
    arrays: Sequence[Float64Array],
    reference: Reference,
    active: Float64Array | None = None,
    wrenches: Any = None,
    options: tuple[tuple[str, Any], ...] = (),
) -> Float64Array:
    """What the kernel "closed_``name``" gives, compiled with the options; states that are in doubt there, and
    mechanisms that no kernel is made for, are left to ``reference(*arrays, active, wrenches)``."""
    (result,) = all_by_kernel(
        mech, f"closed_{name}", arrays, lambda *given: (reference(*given),), active, wrenches, options
    )
    return result


def all_by_kernel(
    mech: Mechanism,
    name: str,
    arrays: Sequence[Float64Array],
    reference: Callable[..., tuple[Float64Array, ...]],
    active: Float64Array | None = None,
    wrenches: Any = None,
    options: tuple[tuple[str, Any], ...] = (),
) -> tuple[Float64Array, ...]:
    """All results of the kernel ``name``; states of which one is not a number are left to ``reference``."""
    if not has_kernels(mech, active is None and name in SWEPT):
        return reference(*arrays, active, wrenches)
    more = [] if active is None else [active]
    if wrenches is not None:
        more.append(np.asarray(wrenches, dtype=float))
    ports = tuple(port for port, x in (("active", active), ("wrenches", wrenches)) if x is not None)
    request = (name, ("ports", ports), *options) if ports or options else name
    function = float64_function(mech, request)
    with np.errstate(invalid="ignore"):  # what is in doubt is no number
        result = function(*arrays, *more)
    results = tuple(map(np.asarray, result if isinstance(result, tuple) else (result,)))
    if any(np.isnan(one).any() for one in results):
        batch = batch_of(arrays, active, wrenches)
        states = [np.isnan(one).any(axis=tuple(range(len(batch), one.ndim))) for one in results]
        numbers = np.all([np.broadcast_to(np.isfinite(x).all(axis=-1), batch) for x in arrays], axis=0)
        completed(results, np.any(states, axis=0), reference, *arrays, active, wrenches=wrenches)
        for one in results:
            one[~numbers] = np.nan
    return tuple(one if one.ndim else one[()] for one in results)


def has_kernels(mech: Mechanism, swept: bool = False) -> bool:
    """Whether kernels of loops that hold or let go serve a mechanism: all that moves has inertia without the loops, its
    data are exact enough, and no cluster is very large, but for those that are ``swept`` where all loops hold."""
    try:
        return mech._kernels[has_kernels, swept]
    except KeyError:
        return stored(mech, (has_kernels, swept), lambda: _has_kernels(mech, swept))


def _has_kernels(mech: Mechanism, swept: bool) -> bool:
    if not mech.loops or mech.parameters.singular_joints or redundancy(mech).blocks or has_infinitesimal_motions(mech):
        return False
    large = [k for k, cluster in enumerate(clusters(mech)) if len(cluster.coordinates) > MOST_COORDINATES]
    return not large or (swept and all(fronts(mech).sweep(k) is not None for k in large))
