"""Which solver answers for a state under constraints: the one place where this is decided.

1. Compiled elimination, cluster by cluster, or the sweep over links and multipliers where that costs less
   (``elimination_orders.fronts``: a cost model); multipliers by clusters where constraints hold or let go.
2. Near and in singular positions, in small clusters: compiled elimination by the rank that constraints have at the
   state (``Fronts.by_rank``).
3. One singular value decomposition (``decomposition``) for all that is left: large clusters in singular positions,
   loops that are open by mistake, constraints that are redundant but for the rounding of the data.

Kernels report a status of every state, which ``answers`` reads: the last results of those that have the port
"status" and of derivatives are "reliability", of the state as it is, and "consistency", of one that must also be
consistent with the constraints.  Results of other kernels are not numbers where these do not answer.  What is singular,
open or redundant is decided about dimensionless constraints (``sizes``, ``tolerances``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..compiler.runtime.explanations import KernelError
from ..compiler.store import float64_function, stored
from ..dynamics.states import Float64Array
from ..mechanics.algorithms.decisions import fronts
from ..mechanics.links.loop_elimination import RELIABLE
from ..mechanism import Mechanism, MechanismError, require_mechanism
from ..mechanism.clusters import clusters
from .infinitesimal import has_infinitesimal_motions
from .redundancy import redundancy

ACCELERATIONS = "closed_forward_dynamics"
MOTION = (ACCELERATIONS, ("ports", ("status",)))  # the request of ``forward_dynamics`` for all constraints
WELL_CONDITIONED = 0.01  # square of the least pivot relative to the largest: beyond, elimination loses few digits
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
UNDER_MASKS = ("closed_forward_dynamics_derivatives", ALL_DERIVATIVES)
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


class Inputs(NamedTuple):
    """What a kernel under constraints takes.

    arrays     (..., n): a state, and what acts on joints
    active     (..., len(mech.loops)): 1 of constraints that hold, else 0; None for all
    wrenches   (..., n_links, 6), or None
    """

    arrays: Sequence[Float64Array]
    active: Float64Array | None = None
    wrenches: Any = None

    @property
    def batch(self) -> tuple[int, ...]:
        """The batch shape that all broadcast to."""
        shapes = [x.shape[:-1] for x in self.arrays]
        shapes += [] if self.active is None else [self.active.shape[:-1]]
        shapes += [] if self.wrenches is None else [np.shape(self.wrenches)[:-2]]
        return np.broadcast_shapes(*shapes)

    @property
    def ports(self) -> tuple[tuple[str, ...], list[Any]]:
        """The names of the optional inputs that are given, and these."""
        if self.wrenches is None:
            return ((), []) if self.active is None else (("active",), [self.active])
        wrenches = np.asarray(self.wrenches, dtype=float)
        if self.active is None:
            return ("wrenches",), [wrenches]
        return ("active", "wrenches"), [self.active, wrenches]

    def of(self, states: np.ndarray) -> Inputs:
        """The inputs of the chosen ``states`` (batch,) of a batch."""

        def chosen(x: Any, axes: int) -> Any:
            return None if x is None else np.broadcast_to(x, (*states.shape, *np.shape(x)[-axes:]))[states]

        return Inputs([chosen(x, 1) for x in self.arrays], chosen(self.active, 1), chosen(self.wrenches, 2))


def answers(status: Any, least: float = 0.0) -> Any:
    """(...): whether a kernel answers for a state, by the status that it reports: a boolean, or an array of them.  With
    ``least``, the status must exceed what suffices by this much."""
    return status > RELIABLE + least


def solve(
    mech: Mechanism,
    name: str,
    inputs: Inputs,
    reference: Reference,
    options: tuple[tuple[str, Any], ...] = (),
    judged_by: str = "",
) -> Any:
    """What the kernel ``name`` gives, compiled with the options, without its status: an array, or a tuple of several.
    States that it does not answer for, and mechanisms that it does not serve, are left to ``reference(*arrays, active,
    wrenches)``, which gives the same.

    judged_by   "reliability" or "consistency", the status that decides; by default a result that is not a number does
    """
    if not serves(mech, name, inputs.active is None):
        return reference(*inputs.arrays, inputs.active, inputs.wrenches)
    ports, given = inputs.ports
    ports = (*ports, "status") if judged_by and name == ACCELERATIONS else ports
    request = (name, ("ports", ports), *options) if ports or options else name
    with np.errstate(invalid="ignore"):  # what is in doubt is no number
        result = float64_function(mech, request)(*inputs.arrays, *given)
    everything = results = [np.asarray(x) for x in several(result)]
    if judged_by:
        *results, reliability, consistency = everything
        status = reliability if judged_by == "reliability" else consistency
    elif not any(np.isnan(x).any() for x in results):
        return result
    else:
        axes = len(inputs.batch)
        unknown = [np.isnan(x).any(axis=tuple(range(axes, x.ndim))) for x in results]
        status = np.where(np.any(unknown, axis=0), 0.0, 2.0 * RELIABLE)
    poor = ~answers(status)
    if poor.any() and name == ACCELERATIONS and judged_by and has_small_clusters(mech):
        small = poor & (status >= 0.0)  # pivots are small; the others are open
        if small.any():
            by_rank = float64_function(mech, (name, ("ports", ports), ("singular", True)))
            complete(everything, small, lambda *x: by_rank(*(y for y in x if y is not None)), inputs)
            poor = ~answers(status)
    if poor.any():
        complete(results, poor, lambda *x: several(reference(*x)), inputs)
        if not judged_by:  # of a state that is not known
            numbers = [np.broadcast_to(np.isfinite(x).all(axis=-1), poor.shape) for x in inputs.arrays]
            for x in results:
                x[~np.all(numbers, axis=0)] = np.nan
    shown = tuple(x if x.ndim else x[()] for x in results)
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
    fine = answers(status if not getattr(status, "ndim", 0) else status.min(initial=np.inf))
    return tuple(results) if fine else None


def complete(
    results: Sequence[Float64Array],
    poor: np.ndarray,
    reference: Callable[..., Sequence[Float64Array]],
    inputs: Inputs,
) -> None:
    """Put what ``reference(*arrays, active, wrenches)`` gives for the ``poor`` states, (batch,), into the results of a
    kernel.  The inputs are those of all states."""
    there = inputs.of(poor)
    try:
        several_results = reference(*there.arrays, there.active, there.wrenches)
    except RefusedStates as error:
        raise error.among(poor) from None
    for result, values in zip(results, several_results, strict=True):
        result[poor] = values


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
    if name == ACCELERATIONS and all_hold:
        return not lacks_inertia(mech)
    if not mech.loops or redundancy(mech).blocks:
        return False
    if name in DERIVATIVES and not all_hold:  # where they are independent, which the kernel sees
        return name in UNDER_MASKS and not mech.constraints.is_nonholonomic and mech.nv**2 <= DERIVATIVES[name]
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
