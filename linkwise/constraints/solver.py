"""Which solver answers for a state under constraints: the one place where this is decided.

1. Compiled elimination, cluster by cluster, or the sweep over links and multipliers where that costs less
   (``elimination_orders.fronts``: a cost model); multipliers by clusters where constraints hold or let go.
2. Near and in singular positions, in small clusters: compiled elimination by the rank that constraints have at the
   state (``Fronts.by_rank``).
3. One singular value decomposition (``decomposition``) for all that is left: large clusters in singular positions,
   loops that are open by mistake, constraints that are redundant but for the rounding of the data.

Kernels say of every state whether they answer for it.  Their last results are numbers above ``RELIABLE`` where they do:
of the state as it is ("reliability"), and of one that must also be consistent with the constraints ("consistency").
Kernels without such numbers, which users compile too, give what is not a number.  What is singular, open or redundant
is decided about dimensionless constraints (``sizes``, ``tolerances``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..compiler.runtime.explanations import KernelError
from ..compiler.store import float64_function, stored
from ..dynamics.states import Float64Array
from ..mechanics.algorithms.decisions import fronts
from ..mechanics.links.loop_elimination import RELIABLE
from ..mechanism import Mechanism, MechanismError, require_mechanism
from ..mechanism.clusters import clusters
from .infinitesimal import has_infinitesimal_motions
from .masks import batch_of
from .redundancy import redundancy

MOTION = "closed_motion"
#: Kernels that sweep over links and multipliers where that costs less.
SWEPT = ("closed_multipliers", "closed_constraint_forces", "closed_loop_reactions", "closed_joint_wrenches")
ALL_DERIVATIVES = "closed_motion_derivatives"  # of independent constraints
LARGE = 1000  # numbers of K: straight-line code of derivatives of more takes too long to compile
#: Kernels of derivatives, and how many numbers of K they serve.
DERIVATIVES = {
    "closed_forward_dynamics_derivatives": LARGE,
    "closed_rate_jacobian": LARGE,
    ALL_DERIVATIVES: 300,
}
MOST_COORDINATES = 40  # of a cluster: larger ones would take long to compile, as kernels have no loops

Reference = Callable[..., Any]


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


def solve(
    mech: Mechanism,
    name: str,
    arrays: Sequence[Float64Array],
    reference: Reference,
    active: Float64Array | None = None,
    wrenches: Any = None,
    options: tuple[tuple[str, Any], ...] = (),
    statuses: int = 0,
    consistent: bool = False,
) -> Any:
    """What the kernel ``name`` gives, compiled with the options, without its statuses: an array, or a tuple of several.
    States that it does not answer for, and mechanisms that it does not serve, are left to ``reference(*arrays, active,
    wrenches)``, which gives the same.

    statuses     how many of the last results are statuses
    consistent   whether states must be consistent with the constraints
    """
    if not serves(mech, name, active is None):
        return reference(*arrays, active, wrenches)
    given = list(arrays) if active is None else [*arrays, active]
    if wrenches is not None:
        given.append(np.asarray(wrenches, dtype=float))
    ports = tuple(port for port, x in (("active", active), ("wrenches", wrenches)) if x is not None)
    request = (name, ("ports", ports), *options) if ports or options else name
    if statuses:
        results = [np.asarray(one) for one in float64_function(mech, request)(*given)]
        found, status = results[:-statuses], results[-1 if consistent else -statuses]
    else:
        with np.errstate(invalid="ignore"):  # what is in doubt is no number
            result = float64_function(mech, request)(*given)
        found = [np.asarray(one) for one in (result if isinstance(result, tuple) else (result,))]
        if not any(np.isnan(one).any() for one in found):
            return result
        axes = len(batch_of(arrays, active, wrenches))
        unknown = [np.isnan(one).any(axis=tuple(range(axes, one.ndim))) for one in found]
        status = np.where(np.any(unknown, axis=0), 0.0, 2.0 * RELIABLE)
    poor = ~(status > RELIABLE)
    if poor.any() and name == MOTION and has_small_clusters(mech):
        small = poor & (status >= 0.0)  # pivots are small; the others are open
        if small.any():
            by_rank = float64_function(mech, (name, ("ports", ports), ("singular", True)))
            exact = (lambda *x: by_rank(*x[:-1])) if wrenches is None else by_rank
            completed(results, small, exact, *arrays, wrenches=wrenches)
            poor = ~(status > RELIABLE)
    if poor.any():
        completed(found, poor, lambda *x: several(reference(*x)), *arrays, active, wrenches=wrenches)
        if not statuses:  # of a state that is not known
            numbers = [np.broadcast_to(np.isfinite(x).all(axis=-1), poor.shape) for x in arrays]
            for one in found:
                one[~np.all(numbers, axis=0)] = np.nan
    shown = tuple(one if one.ndim else one[()] for one in found)
    return shown if len(shown) > 1 else shown[0]


def several(result: Any) -> tuple[Float64Array, ...]:
    """A result, or several, as a tuple."""
    return result if isinstance(result, tuple) else (result,)


def answer(mech: Mechanism, request: Any, *given: Any) -> tuple[Float64Array, ...] | None:
    """All results of a kernel but its statuses, by the least of Python, where it answers for every state and all are
    consistent with the constraints; None elsewhere, and where states are given by joint or left out."""
    try:
        *results, status = float64_function(mech, request)(*given)
    except (KernelError, TypeError):
        if not any(x is None or isinstance(x, Mapping) for x in given):
            raise
        return None
    fine = status > RELIABLE if not getattr(status, "ndim", 0) else status.min(initial=np.inf) > RELIABLE
    return tuple(results) if fine else None


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
    for result, own in zip(results, answers, strict=True):
        result[poor] = own


# -- which mechanisms kernels serve -----------------------------------------------------------------------------------


def serves(mech: Mechanism, name: str, all_hold: bool = True) -> bool:
    """Whether a kernel serves a mechanism: with all of its constraints, or with those that hold at a state."""
    try:
        return mech._kernels[serves, name, all_hold]
    except (KeyError, AttributeError):
        return stored(mech, (serves, name, all_hold), lambda: _serves(mech, name, all_hold))


def _serves(mech: Mechanism, name: str, all_hold: bool) -> bool:
    if mech.loops and has_infinitesimal_motions(mech):
        return False
    if name == MOTION:
        return not lacks_inertia(mech)
    if not mech.loops or redundancy(mech).blocks:
        return False
    if name in DERIVATIVES and not all_hold:  # where they are independent, which the kernel sees
        return not mech.constraints.is_nonholonomic and mech.nv**2 <= DERIVATIVES[name]
    if name in DERIVATIVES:
        independent = name != ALL_DERIVATIVES or fronts(mech).pivots == mech.n_constraints
        return independent and 0 < compiled_dofs(mech) * mech.nv <= DERIVATIVES[name]
    if name == "closed_null_space":
        return True
    if mech.parameters.singular_joints:  # something has no inertia without the loops
        return False
    large = [k for k, cluster in enumerate(clusters(mech)) if len(cluster.coordinates) > MOST_COORDINATES]
    return not large or (all_hold and name in SWEPT and all(fronts(mech).sweep(k) is not None for k in large))


def compiled_dofs(mech: Mechanism) -> int:
    """Degrees of freedom that the elimination leaves where it serves derivatives, else 0: without loops or degrees of
    freedom, where constraints are rounded or on velocities alone, or where code would be too long."""
    return stored(mech.constraints.structure, compiled_dofs, lambda: _compiled_dofs(mech))


def _compiled_dofs(mech: Mechanism) -> int:
    exact = mech.loops and not redundancy(mech).blocks and not has_infinitesimal_motions(mech)
    if not exact or mech.constraints.is_nonholonomic:
        return 0
    dofs = mech.nv - fronts(mech).pivots
    return dofs if dofs * mech.nv <= LARGE else 0


def lacks_inertia(mech: Mechanism) -> bool:
    """Whether something may move without inertia though loops are closed: the elimination would divide by zero."""
    require_mechanism(mech)
    return bool(mech.parameters.singular_joints) and not mech._loops_resist


def has_generic_rank(mech: Mechanism, rank: Any, batch: tuple[int, ...]) -> bool:
    """Whether ``rank`` asks for as many independent constraints as there are away from singular positions."""
    return rank is None or (np.shape(rank) in ((), batch) and bool(np.all(np.asarray(rank) == fronts(mech).pivots)))


def has_small_clusters(mech: Mechanism) -> bool:
    """Whether some of the clusters are eliminated by rank in singular positions."""
    coordinates = [cluster.coordinates for cluster in clusters(mech)]
    return stored(mech, has_small_clusters, lambda: fronts(mech).by_rank(coordinates) is not None)
