"""The choice of the solver for a state under constraints, decided here alone.

1. Compiled elimination, cluster by cluster, or the sweep over links and multipliers where that costs less
   (``elimination_orders.fronts``: a cost model); multipliers by clusters under masks of active constraints.
2. Near and in singular positions, in small clusters: compiled elimination by the rank that constraints have at the
   state (``Fronts.by_rank``).
3. One singular value decomposition (``decomposition``) for the rest: large clusters in singular positions, loops open
   by mistake, constraints redundant up to the rounding of the data.

Kernels report a status of every state, which ``is_reliable`` reads: the last results of those that have the port
"status" and of derivatives are "reliability", of the state as it is, and "consistency", of one that must also be
consistent with the constraints.  Other kernels return NaN where they are unreliable.  Singular, open and redundant are
decided for dimensionless constraints (``sizes``, ``tolerances``).
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
WELL_CONDITIONED = 0.01  # square of the least pivot relative to the largest: above, elimination loses few digits
#: Kernels that sweep over links and multipliers where that costs less.
SWEPT = ("closed_multipliers", "closed_constraint_forces", "closed_loop_reactions", "closed_joint_wrenches")
ALL_DERIVATIVES = "closed_motion_derivatives"  # of independent constraints
LARGE = 1000  # entries of K: straight-line derivative code of larger ones takes too long to compile
#: Kernels of derivatives, and the largest number of entries of K that they serve.
DERIVATIVES = {
    "closed_forward_dynamics_derivatives": LARGE,
    "closed_rate_jacobian": LARGE,
    ALL_DERIVATIVES: 300,
}
UNDER_MASKS = ("closed_forward_dynamics_derivatives", ALL_DERIVATIVES)
MOST_COORDINATES = 40  # of a cluster: larger ones would take long to compile, as kernels have no loops

Reference = Callable[..., Any]


class RefusedStates(MechanismError):
    """An error of the ``states`` (mask) of a batch; the first one is named between two halves of a sentence."""

    def __init__(self, before: str, states: np.ndarray, after: str) -> None:
        count = int(np.count_nonzero(states))
        where = f" in state {tuple(map(int, np.argwhere(states)[0]))}" if np.ndim(states) else ""
        super().__init__(before + where + (f" and {count - 1} more" if count > 1 else "") + after)
        self.before, self.states, self.after = before, states, after

    def among(self, chosen: np.ndarray) -> RefusedStates:
        """The error for a larger batch, of which these states are the ``chosen`` ones."""
        states = np.zeros(np.shape(chosen), dtype=bool)
        states[chosen] = self.states
        return RefusedStates(self.before, states, self.after)


class Inputs(NamedTuple):
    """Inputs of a kernel under constraints.

    arrays     (..., n): a state, and joint forces or accelerations
    active     (..., len(mech.loops)): 1 for active constraints, else 0; None for all active
    wrenches   (..., n_links, 6), or None
    """

    arrays: Sequence[Float64Array]
    active: Float64Array | None = None
    wrenches: Any = None

    @property
    def batch(self) -> tuple[int, ...]:
        """The common batch shape of all inputs."""
        shapes = [x.shape[:-1] for x in self.arrays]
        shapes += [] if self.active is None else [self.active.shape[:-1]]
        shapes += [] if self.wrenches is None else [np.shape(self.wrenches)[:-2]]
        return np.broadcast_shapes(*shapes)

    @property
    def ports(self) -> tuple[tuple[str, ...], list[Any]]:
        """Names and values of the optional inputs that are present."""
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


def is_reliable(status: Any, least: float = 0.0) -> Any:
    """(...): whether the result of a kernel is reliable, from its status; ``least`` is a margin on the status."""
    return status > RELIABLE + least


def solve(
    mech: Mechanism,
    name: str,
    inputs: Inputs,
    reference: Reference,
    options: tuple[tuple[str, Any], ...] = (),
    judged_by: str = "",
) -> Any:
    """The results of the kernel ``name``, compiled with the options, without its status: an array or a tuple.

    ``reference(*arrays, active, wrenches)`` replaces it for unreliable states and mechanisms that it does not serve.

    judged_by   "reliability" or "consistency", the deciding status; by default NaN marks unreliable states
    """
    if not serves(mech, name, inputs.active is None):
        return reference(*inputs.arrays, inputs.active, inputs.wrenches)
    ports, optional = inputs.ports
    ports = (*ports, "status") if judged_by and name == ACCELERATIONS else ports
    request = (name, ("ports", ports), *options) if ports or options else name
    with np.errstate(invalid="ignore"):  # unreliable results may be NaN
        result = float64_function(mech, request)(*inputs.arrays, *optional)
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
    poor = ~is_reliable(status)
    if poor.any() and name == ACCELERATIONS and judged_by and has_small_clusters(mech):
        small = poor & (status >= 0.0)  # small pivots; other states have open loops
        if small.any():
            by_rank = float64_function(mech, (name, ("ports", ports), ("singular", True)))
            complete(everything, small, lambda *x: by_rank(*(y for y in x if y is not None)), inputs)
            poor = ~is_reliable(status)
    if poor.any():
        complete(results, poor, lambda *x: several(reference(*x)), inputs)
        if not judged_by:  # NaN by an unknown state
            numbers = [np.broadcast_to(np.isfinite(x).all(axis=-1), poor.shape) for x in inputs.arrays]
            for x in results:
                x[~np.all(numbers, axis=0)] = np.nan
    shown = tuple(x if x.ndim else x[()] for x in results)
    return shown if len(shown) > 1 else shown[0]


def several(result: Any) -> tuple[Float64Array, ...]:
    """One or several results as a tuple."""
    return result if isinstance(result, tuple) else (result,)


def call_kernel(mech: Mechanism, request: Any, *arguments: Any) -> tuple[Float64Array, ...] | None:
    """The results of a kernel without its statuses, with little overhead in Python.  None if some state is unreliable
    or inconsistent with the constraints, and for arguments by joint or by default."""
    try:
        *results, status = float64_function(mech, request)(*arguments)
    except (KernelError, TypeError):
        if not any(x is None or isinstance(x, Mapping) for x in arguments):
            raise
        return None
    fine = is_reliable(status if not getattr(status, "ndim", 0) else status.min(initial=np.inf))
    return tuple(results) if fine else None


def complete(
    results: Sequence[Float64Array],
    poor: np.ndarray,
    reference: Callable[..., Sequence[Float64Array]],
    inputs: Inputs,
) -> None:
    """Overwrite the results of a kernel for ``poor`` states (batch,) by ``reference(*arrays, active, wrenches)``.
    ``inputs`` are those of all states."""
    there = inputs.of(poor)
    try:
        several_results = reference(*there.arrays, there.active, there.wrenches)
    except RefusedStates as error:
        raise error.among(poor) from None
    for result, values in zip(results, several_results, strict=True):
        result[poor] = values


# -- which mechanisms kernels serve -----------------------------------------------------------------------------------


def serves(mech: Mechanism, name: str, all_hold: bool = True) -> bool:
    """Whether a kernel serves a mechanism, with all constraints active (``all_hold``) or under masks."""
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
    if name in DERIVATIVES and not all_hold:  # the kernel checks their independence
        return name in UNDER_MASKS and not mech.constraints.is_nonholonomic and mech.nv**2 <= DERIVATIVES[name]
    if name in DERIVATIVES:
        independent = name != ALL_DERIVATIVES or fronts(mech).pivots == mech.n_constraints
        return independent and 0 < compiled_dofs(mech) * mech.nv <= DERIVATIVES[name]
    if name == "closed_null_space":
        return True
    if mech.parameters.singular_joints:  # the spanning tree has massless motions
        return False
    large = [k for k, cluster in enumerate(clusters(mech)) if len(cluster.coordinates) > MOST_COORDINATES]
    return not large or (all_hold and name in SWEPT and all(fronts(mech).sweep(k) is not None for k in large))


def compiled_dofs(mech: Mechanism) -> int:
    """Degrees of freedom if elimination serves derivatives, else 0: without loops or degrees of freedom, with rounded
    or nonholonomic constraints, or if the code would be too long."""
    return stored(mech.constraints.structure, compiled_dofs, lambda: _compiled_dofs(mech))


def _compiled_dofs(mech: Mechanism) -> int:
    exact = mech.loops and not redundancy(mech).blocks and not has_infinitesimal_motions(mech)
    if not exact or mech.constraints.is_nonholonomic:
        return 0
    dofs = mech.nv - fronts(mech).pivots
    return dofs if dofs * mech.nv <= LARGE else 0


def lacks_inertia(mech: Mechanism) -> bool:
    """Whether an allowed motion may have no inertia: elimination would divide by zero."""
    require_mechanism(mech)
    return bool(mech.parameters.singular_joints) and not mech._loops_resist


def has_generic_rank(mech: Mechanism, rank: Any, batch: tuple[int, ...]) -> bool:
    """Whether ``rank`` is the number of independent constraints away from singular positions."""
    return rank is None or (np.shape(rank) in ((), batch) and bool(np.all(np.asarray(rank) == fronts(mech).pivots)))


def has_small_clusters(mech: Mechanism) -> bool:
    """Whether some clusters are small enough for elimination by rank in singular positions."""
    coordinates = [cluster.coordinates for cluster in clusters(mech)]
    return stored(mech, has_small_clusters, lambda: fronts(mech).by_rank(coordinates) is not None)
