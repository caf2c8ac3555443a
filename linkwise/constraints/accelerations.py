"""Dynamics of closed mechanisms: compiled elimination of the loops, and five formulations of the same equation of
motion (spencer2004 2.4, 2.5, 2.43, 3.5), of which "svd" is the reference."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..compiler.registry import ArrayFunction, compile_instead, register
from ..compiler.runtime.explanations import KernelError
from ..compiler.store import float64_function
from ..dynamics import trees as tree
from ..dynamics.states import ByJoint, Float64Array, checked_arrays, checked_motion, real_numbers
from ..mechanism import Mechanism, MechanismError, one_of
from ..mechanism.checks import names_of
from ..mechanism.resistance import SINGULAR_TOLERANCE, inertia_error
from ..mechanism.scales import scales
from .coordinates import Coordinates, ImplicitCoordinates
from .decomposition import decompose, orthonormalized, solved, times
from .elimination_orders import fronts
from .equations import constraint_jacobian, decomposed_jacobian, warn_if_open, warn_if_opening
from .formulations import METHODS, basis_by
from .idle_motions import told_of_idle_motions
from .infinitesimal import completed_bias, completed_rows, has_infinitesimal_motions, refuse_infinitesimal_motions
from .masks import batch_of, for_each_mask, loop_mask, mechanism_holding, that_count
from .named_coordinates import curvatures_of_inputs, is_beside_velocities, rates_of_inputs
from .redundancy import closable_error
from .sizes import sizes
from .solver import MOTION, RELIABLE, answer, has_generic_rank, serves, solve
from .tolerances import LOOPS

ALL_METHODS = ("elimination", "svd", "lagrange", *METHODS)


class Terms(NamedTuple):
    """M a + h = tau - G* lambda and G a + bias = 0; error is g.  Batches in front."""

    mass: Float64Array
    bias_force: Float64Array
    jacobian: Float64Array
    bias: Float64Array
    error: Float64Array


def terms(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    tolerance: float | None = None,
    active: Float64Array | None = None,
    infinitesimal: bool = False,
) -> Terms:
    """All that the equations of motion need, from one kernel; constraints are without what the rounding of the data
    adds to them (``redundancy``), but where a tolerance of one's own decides what counts, and zero for loops that are
    not active (``loop_mask``).  Mechanisms with infinitesimal motions are refused unless the caller looks after
    them."""
    n = mech.nv
    if not infinitesimal and mech.loops and has_infinitesimal_motions(mech):
        masks = np.ones((1, len(mech.loops))) if active is None else active.reshape(-1, active.shape[-1])
        for held in np.unique(masks, axis=0):  # those of all loops together may be motions of some of them
            part = mech if held.all() else mechanism_holding(mech, held)
            if part.loops:
                refuse_infinitesimal_motions(part, "the motion under constraints")
    both = float64_function(mech, "constrained_terms")(q, v)
    upper, lower = both[..., :n, :], both[..., n:, :]
    lower = that_count(mech, lower, active, tolerance)
    return Terms(upper[..., :n], upper[..., n], lower[..., :n], lower[..., n], lower[..., n + 1])


def forward_dynamics(
    mech: Mechanism,
    q: ByJoint,
    v: ByJoint | None = None,
    tau: ByJoint | None = None,
    method: str = "elimination",
    baumgarte: tuple[float, float] | None = None,
    wrenches: ArrayLike | None = None,
    independent: Any = None,
    rank: Any = None,
    tolerance: float | None = None,
    active: ArrayLike | None = None,
    damping: float | None = None,
) -> Float64Array:
    """(nv,): accelerations under joint forces ``tau`` and external ``wrenches`` (n_links, 6), all loops kept closed, or
    those that are ``active``; from rest, and without forces, where none are given.

    method        "elimination" (compiled: loops are eliminated cluster by cluster, in O(N), in singular positions by
                  the rank that constraints have there; large clusters that are singular or nearly so are left to
                  "svd"), "svd" (3.5; the reference, does not fail at singular positions), "lagrange" (2.4, 2.5),
                  "partitioning", "tangent", "differentiable" (2.43 with different K); they agree away from singular
                  positions
    baumgarte     (alpha, beta): loops are pulled closed, g'' + 2 alpha g' + beta^2 g = 0 (3.8, 3.9)
    independent   own coordinates for the null space: names of joints and coordinates ("platform.x"), rows (p, nv) with
                  dy/dt = rows v, ``Coordinates`` or ``implicit_coordinates(...)`` (2.25-2.31)
    rank          (...): no more than this many constraints are independent: for states with loops not exactly closed
    tolerance     singular values of G below this fraction of the largest count as zero, 1e-8 if none is given; then
                  constraints that are redundant but for the rounding of the data (``redundancy``) do not count
    active        (..., len(mech.loops)) booleans: loops that hold, state by state; the others let go, as contacts do;
                  one kernel serves all
    damping       softens constraints (3.3): the damped least-squares inverse of G, with this fraction of its largest
                  singular value, in place of the pseudo-inverse; accelerations stay bounded, and do not keep loops
                  closed near singular positions

    With ``baumgarte``, ``independent``, ``damping`` or another ``tolerance`` the elimination has no part: "svd" is
    taken.
    Where loops are open by more than a thousandth of their size or 1 mrad and ``baumgarte`` does not close them, a
    ``MechanismWarning`` says so: the accelerations keep them as open as they are.  So does one where velocities open
    them: velocities by joint, {"crank": 10.0}, are completed to such that do not.
    """
    plain = wrenches is baumgarte is independent is rank is tolerance is active is damping is None
    if plain and method == "elimination" and serves(mech, MOTION):
        found = answer(mech, MOTION, q, v, tau)
        if found is not None:
            return found[0]
    return _of_any_state(mech, q, v, tau, method, baumgarte, wrenches, independent, rank, tolerance, active, damping)


register(forward_dynamics, ArrayFunction("closed_forward_dynamics"))


def forward_dynamics_of(mech: Mechanism, **options: Any) -> Callable[..., Float64Array]:
    """``forward_dynamics`` of one mechanism as a function of q, v, tau and wrenches, short for single states."""
    if options or not serves(mech, MOTION):
        return functools.partial(forward_dynamics, mech, **options)

    motion = float64_function(mech, MOTION)

    def function(q: Any, v: Any, tau: Any, wrenches: Any = None) -> Float64Array:
        if wrenches is None and type(q) is np.ndarray and q.ndim == 1:  # by far the most calls, and short
            try:
                a, _, consistency = motion(q, v, tau)
            except (KernelError, TypeError):
                pass  # by joint, at rest, or faults, which are named below
            else:
                if a.ndim == 1 and consistency > RELIABLE:
                    return a
        found = None if wrenches is not None else answer(mech, MOTION, q, v, tau)
        return _of_any_state(mech, q, v, tau, wrenches=wrenches) if found is None else found[0]

    return function


def _of_any_state(
    mech: Mechanism,
    q: Any,
    v: Any,
    tau: Any,
    method: str = "elimination",
    baumgarte: tuple[float, float] | None = None,
    wrenches: ArrayLike | None = None,
    independent: Any = None,
    rank: Any = None,
    tolerance: float | None = None,
    active: ArrayLike | None = None,
    damping: float | None = None,
) -> Float64Array:
    """``forward_dynamics``, with warnings of states that are not consistent."""
    q, v, tau = checked_motion(mech, q, v, tau, wrenches)
    mask = loop_mask(mech, active, q=q, v=v, tau=tau)
    a = accelerations(mech, q, v, tau, method, baumgarte, wrenches, independent, rank, tolerance, mask, damping)
    if baumgarte is None:
        warn_if_open(mech, closable_error(mech, q), mask)
        warn_if_opening(mech, q, v, mask)
    return a


def accelerations(
    mech: Mechanism,
    q: np.ndarray,
    v: np.ndarray,
    tau: np.ndarray,
    method: str = "elimination",
    baumgarte: tuple[float, float] | None = None,
    wrenches: ArrayLike | None = None,
    independent: Any = None,
    rank: Any = None,
    tolerance: float | None = None,
    active: Float64Array | None = None,
    damping: float | None = None,
) -> Float64Array:
    """``forward_dynamics`` of float64 arrays, for loops that may be open; ``active`` as from ``loop_mask``."""
    one_of("method", method, ALL_METHODS)
    if not mech.loops:
        return tree.forward_dynamics(mech, q, v, tau, wrenches)
    plain = baumgarte is independent is tolerance is damping is None
    usual = method == "elimination" and plain and has_generic_rank(mech, rank, q.shape[:-1])
    highest = fronts(mech).pivots if usual and rank is not None else rank

    def reference(q: Any, v: Any, tau: Any, active: Any, wrenches: Any) -> Float64Array:
        options = (method, baumgarte, wrenches, independent, highest, tolerance, active, damping)
        return motion_under(mech, q, v, tau, *options)[1]

    if damping is None and has_infinitesimal_motions(mech):
        return _by_decomposition(mech, q, v, tau, method, (baumgarte, wrenches, independent, rank, tolerance), active)
    if not usual or (active is not None and rank is not None):
        return reference(q, v, tau, active, wrenches)
    if active is not None:
        return solve(mech, "closed_forward_dynamics", (q, v, tau), reference, active, wrenches)
    return solve(mech, MOTION, (q, v, tau), reference, None, wrenches, statuses=2)


def _by_decomposition(
    mech: Mechanism,
    q: np.ndarray,
    v: np.ndarray,
    tau: np.ndarray,
    method: str,
    given: tuple[Any, ...],
    active: Float64Array | None,
) -> Float64Array:
    """``accelerations`` of mechanisms with infinitesimal motions, which are those of all loops together: other
    combinations that hold are mechanisms of their own."""
    if active is None or active.all():
        return motion_under(mech, q, v, tau, method, *given)[1]
    baumgarte, wrenches, independent, _, tolerance = given
    pushed = np.zeros((mech.n_links, 6)) if wrenches is None else np.asarray(wrenches)
    batch = batch_of([q, v, tau], active, pushed)
    forces, result = pushed.reshape(*pushed.shape[:-2], -1), np.empty((*batch, mech.nv))

    def held(mech: Mechanism, q: Any, v: Any, tau: Any, forces: Any) -> Float64Array:
        wrenches = forces.reshape(*forces.shape[:-1], mech.n_links, 6)
        return accelerations(mech, q, v, tau, method, baumgarte, wrenches, independent, None, tolerance)

    for states, found in for_each_mask(held, mech, active, q, v, tau, forces):
        result[states] = found
    return result


def motion_under(
    mech: Mechanism,
    q: np.ndarray,
    v: np.ndarray,
    tau: np.ndarray,
    method: str = "svd",
    baumgarte: tuple[float, float] | None = None,
    wrenches: ArrayLike | None = None,
    independent: Any = None,
    rank: Any = None,
    tolerance: float | None = None,
    active: Float64Array | None = None,
    damping: float | None = None,
    undetermined: bool = False,
) -> tuple[Terms, Float64Array]:
    """The terms of the equations of motion, and their solution by NumPy's linear algebra, for loops that may be open;
    with ``undetermined``, the least where something without inertia is in balance."""
    method = "svd" if method == "elimination" else method
    at, rank = moving_terms(mech, q, v, tolerance, active, rank)
    if mech.loops and has_infinitesimal_motions(mech):
        method = "svd" if method == "lagrange" else method
    tolerance = LOOPS.rank if tolerance is None else tolerance
    force = tau - bias_under(mech, at, q, v, wrenches)
    bias = at.bias
    if baumgarte is not None:
        alpha, beta = _gains(baumgarte)
        rates = times(at.jacobian, v)
        rates[..., : mech.n_constraints] -= mech.constraints.drive_rates
        bias = bias + 2.0 * alpha * rates + beta**2 * at.error
    if damping is not None:
        if not damping > 0.0:
            raise MechanismError(f"damping must be a positive fraction of the largest singular value, not {damping!r}")
        bias = decomposed_jacobian(mech, at.jacobian, tolerance, rank).softened(bias, damping)
    if method == "lagrange":
        if independent is not None:
            raise MechanismError("method='lagrange' has no independent coordinates: leave out method or independent")
        return at, _lagrange(mech, at, force, bias, tolerance, rank)[0]
    chosen = independent_at(mech, q, independent)
    return at, null_space_accelerations(mech, at, force, bias, method, chosen, tolerance, rank, undetermined)


def moving_terms(
    mech: Mechanism,
    q: np.ndarray,
    v: np.ndarray,
    tolerance: float | None = None,
    active: Float64Array | None = None,
    rank: Any = None,
) -> tuple[Terms, Any]:
    """The ``terms`` with rows behind the constraints that keep infinitesimal motions from moving, where there are some,
    and the rank of all rows, None if it is not known before."""
    at = terms(mech, q, v, tolerance, active, infinitesimal=True)
    if not mech.loops or not has_infinitesimal_motions(mech):
        return at, rank
    if mech.constraints.driven or not (active is None or active.all()):
        refuse_infinitesimal_motions(mech, "the motion under drives, or some of the loops,")
    jacobian, rank = completed_rows(mech, at.jacobian, q, rank)
    error = np.concatenate([at.error, np.zeros((*at.error.shape[:-1], mech.nv))], axis=-1)
    return at._replace(jacobian=jacobian, bias=completed_bias(mech, at.bias, q, v), error=error), rank


def null_space_accelerations(
    mech: Mechanism,
    at: Terms,
    force: np.ndarray,
    bias: np.ndarray,
    method: str = "svd",
    chosen: np.ndarray | None = None,
    tolerance: float = LOOPS.rank,
    rank: Any = None,
    undetermined: bool = False,
) -> np.ndarray:
    """a = K (K* M K)^-1 K* (F - M k) + k (2.43b).  Where K is filled up with zeros, ones on the diagonal of K* M K keep
    them out of it."""
    svd = decomposed_jacobian(mech, at.jacobian, tolerance, rank)
    basis, offset = basis_by(method, at.jacobian, bias, svd, chosen)
    transposed = basis.swapaxes(-1, -2)
    projected = transposed @ at.mass
    reduced = projected @ basis
    if basis.ndim > 2:
        diagonal = reduced.reshape(*reduced.shape[:-2], mech.nv**2)[..., :: mech.nv + 1]  # a view
        diagonal += ~basis.any(axis=-2)
    driving = times(transposed, force) - times(projected, offset)
    if undetermined and not has_inertia(mech, reduced):
        return times(basis, _in_balance(mech, reduced, driving, force)) + offset
    require_inertia_of_motions(mech, reduced)
    return times(basis, solved(reduced, driving)) + offset


def response(mech: Mechanism, q: np.ndarray, active: Float64Array | None = None) -> Float64Array:
    """(..., nv, nv): K (K* M K)^-1 K*, accelerations per joint force under the constraints that are ``active``; of any
    position, by singular values."""
    at = terms(mech, q, np.zeros(mech.nv), active=active)
    each = Terms(*(x[..., None, :, :] if k in (0, 2) else x[..., None, :] for k, x in enumerate(at)))
    batch = each.bias.shape[:-2]
    bias = np.zeros((*batch, mech.nv, mech.n_constraints))
    return null_space_accelerations(mech, each, np.broadcast_to(np.eye(mech.nv), (*batch, mech.nv, mech.nv)), bias)


def has_inertia(mech: Mechanism, reduced: np.ndarray) -> bool:
    """Whether ``K* M K``, (..., p, p), is positive in every state that is known.  It is, unless joints of the spanning
    tree can move without moving mass."""
    if not mech.parameters.singular_joints or not reduced.size:
        return True
    reduced = reduced[np.isfinite(reduced).all(axis=(-1, -2))]
    diagonal = np.einsum("...ii->...i", reduced)
    if not (diagonal > 0.0).all():
        return False
    scale = 1.0 / np.sqrt(diagonal)
    smallest = np.linalg.eigvalsh(reduced * scale[..., :, None] * scale[..., None, :])[..., 0]
    return bool((smallest > SINGULAR_TOLERANCE).all())


def require_inertia_of_motions(mech: Mechanism, reduced: np.ndarray, what: str = "forward_dynamics") -> None:
    """Refuse states in which a motion that the loops allow has no inertia; ``reduced`` is K* M K, (..., p, p)."""
    if not has_inertia(mech, reduced):
        raise inertia_error(mech, what)


def _in_balance(mech: Mechanism, inertia: np.ndarray, driving: np.ndarray, force: np.ndarray) -> np.ndarray:
    """(..., p): the least y with K* M K y = ``driving``, where K* M K is singular.  It is unique but for motions that
    need no forces, so that reactions are; there is one if nothing drives what has no inertia."""
    svd = decompose(inertia, SINGULAR_TOLERANCE)
    y = svd.solve(driving)
    left = np.abs(times(inertia, y) - driving).max(axis=-1, initial=0.0)
    most = np.abs(sizes(mech).columns * force).max(axis=-1, initial=0.0) + scales(mech).moment
    if np.any(left > LOOPS.acceleration * most):
        raise MechanismError(
            f"{left.max():.3g} of the forces on mechanism {mech.name!r} drives something that has no inertia: give it "
            "mass and inertia, or the forces that hold it still (static_forces)"
        )
    return y


def _lagrange(
    mech: Mechanism, at: Terms, force: np.ndarray, bias: np.ndarray, tolerance: float, rank: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Accelerations and multipliers (2.4, 2.5), in dimensionless coordinates and constraints.  With M = L L* and
    G L^-* = U S W*, G M^-1 G* is U S^2 U*: constraints that others imply get the multipliers of least norm instead of a
    division by zero."""
    svd = decomposed_jacobian(mech, at.jacobian, tolerance, rank)
    rows, columns = sizes(mech).rows, sizes(mech).columns
    mass, force, bias = columns[:, None] * at.mass * columns, columns * force, rows * bias
    known = np.isfinite(mass).all(axis=(-1, -2), keepdims=True)  # elsewhere G is unknown, and so is what follows
    try:
        root = np.linalg.cholesky(np.where(known, mass, np.eye(mech.nv)))
    except np.linalg.LinAlgError:
        raise MechanismError(
            f"Lagrange multipliers need a positive mass matrix of the spanning tree, but something in mechanism "
            f"{mech.name!r} moves without inertia: use method='svd'"
        ) from None
    jacobian = rows[:, None] * at.jacobian * columns
    weighted = np.swapaxes(np.linalg.solve(root, np.swapaxes(jacobian, -1, -2)), -1, -2)
    svd = decompose(weighted, np.finfo(float).eps, svd.rank)  # masses that differ much do not drop a constraint
    drive = np.linalg.solve(root, force[..., None])[..., 0]
    kept = svd.solve(times(weighted, drive) + bias)  # L* times the acceleration that the multipliers take away
    multipliers = svd.solve_transposed(kept)
    accelerations = np.linalg.solve(np.swapaxes(root, -1, -2), (drive - kept)[..., None])[..., 0]
    return columns * accelerations, rows * multipliers


@compile_instead("'closed_null_space', K by elimination, which also says how far it can be relied on")
def null_space(
    mech: Mechanism,
    q: ByJoint,
    method: str = "svd",
    independent: Any = None,
    tolerance: float | None = None,
    active: ArrayLike | None = None,
) -> Float64Array:
    """(nv, p): K with G K = 0: its columns span the velocities that keep loops closed; p = degrees of freedom.

    Columns are orthonormal for "svd", "tangent", "differentiable" and "elimination" (compiled; states that are singular
    or nearly so are left to "svd").  For "partitioning" they are velocities per unit of coordinates that pivoting
    chooses, with ``independent`` (as for ``forward_dynamics``) per unit of those coordinates (2.44).  In a batch p is
    the largest of all states; unused columns are zero.  Only ``active`` (..., len(mech.loops)) loops count.
    """
    one_of("method", method, ("svd", "elimination", *METHODS))
    (q,) = checked_arrays(mech, q=q)
    if method == "elimination" and independent is tolerance is active is None and serves(mech, "closed_null_space"):
        found = answer(mech, "closed_null_space", q)
        if found is not None:
            return found[0]
    method = "svd" if method == "elimination" else method
    mask = loop_mask(mech, active, q=q)
    jacobian, rank = that_count(mech, constraint_jacobian(mech, q), mask, tolerance), None
    if tolerance is None and mech.loops and has_infinitesimal_motions(mech):
        if mask is not None:
            return _null_spaces(mech, mask, q, method, independent)
        jacobian, rank = completed_rows(mech, jacobian, q)
    svd = decomposed_jacobian(mech, jacobian, tolerance, rank)
    with told_of_idle_motions(mech, q, independent):
        chosen = independent_at(mech, q, independent)
        basis, _ = basis_by(method, jacobian, np.zeros(jacobian.shape[:-1]), svd, chosen)
    dofs = int(mech.nv - np.min(svd.rank, initial=mech.nv))
    if chosen is not None:  # as many, also without states
        dofs = chosen.shape[0] if chosen.ndim == 1 else chosen.shape[-2]
    if method == "svd" and independent is None and basis.ndim > 2:  # its columns stand where the singular values vanish
        order = np.argsort(~svd.is_free, axis=-1, kind="stable")
        basis = np.take_along_axis(basis, order[..., None, :], axis=-1)
    basis = basis[..., :dofs]
    promised = method != "partitioning" and independent is None
    return orthonormalized(basis) if promised and sizes(mech).has_lengths else basis


def _null_spaces(mech: Mechanism, mask: Float64Array, q: Float64Array, method: str, independent: Any) -> Float64Array:
    """``null_space`` of the mechanisms of the loops that hold."""
    found = for_each_mask(functools.partial(null_space, method=method, independent=independent), mech, mask, q)
    batch, largest = np.shape(found[0][0]), max((basis.shape[-1] for _, basis in found), default=0)
    result = np.zeros((*batch, mech.nv, largest))
    for states, basis in found:
        result[states, :, : basis.shape[-1]] = basis
    return result


# -- shared -------------------------------------------------------------------------------------------


def bias_under(mech: Mechanism, at: Terms, q: ArrayLike, v: ArrayLike, wrenches: ArrayLike | None) -> Float64Array:
    """(..., nv): h, the joint forces of the spanning tree without accelerations, under external wrenches or none."""
    if wrenches is None:
        return at.bias_force
    return tree.inverse_dynamics(mech.spanning_tree, q, v, np.zeros(mech.nv), wrenches)


def independent_at(mech: Mechanism, q: Float64Array, independent: Any) -> np.ndarray | None:
    """Independent coordinates as places in v, or as rows at q."""
    if independent is None:
        return None
    if isinstance(independent, (Coordinates, ImplicitCoordinates)):
        return _per_state(independent.rows, q, empty=(0, mech.nv))
    if isinstance(independent, str) or not len(independent) or isinstance(independent[0], str):
        rows = rates_of_inputs(mech, q, independent, "independent")
        if any(is_beside_velocities(mech, name) for name in names_of(independent)):
            return rows
        return np.nonzero(rows)[1] if np.isin(rows, (0.0, 1.0)).all() and rows.any(axis=1).all() else rows
    rows = real_numbers("independent", independent)
    if rows.ndim < 2 or rows.shape[-1] != mech.nv:
        raise MechanismError(f"independent must be joint names or rows (p, {mech.nv}), got shape {rows.shape}")
    return rows


def _gains(baumgarte: Any) -> tuple[float, float]:
    try:
        alpha, beta = (float(x) for x in baumgarte)
    except (TypeError, ValueError):
        raise MechanismError(f"baumgarte must be two numbers (alpha, beta), not {baumgarte!r}") from None
    return alpha, beta


def curvature_of(mech: Mechanism, q: np.ndarray, v: np.ndarray, independent: Any) -> np.ndarray | float:
    """Second derivatives of independent coordinates while v is constant; joints and rows have none."""
    if isinstance(independent, (str, list, tuple)) and any(
        isinstance(name, str) and is_beside_velocities(mech, name) for name in names_of(independent)
    ):
        return curvatures_of_inputs(mech, q, v, independent)
    if not isinstance(independent, (Coordinates, ImplicitCoordinates)):
        return 0.0
    return _per_state(independent.curvature, q, v, empty=(1,))


def _per_state(function: Callable[..., Any], *arrays: np.ndarray, empty: tuple[int, ...]) -> np.ndarray:
    """Results of a function of one state for a batch of states; of the core shape ``empty`` if there are none."""
    batch = np.broadcast_shapes(*(x.shape[:-1] for x in arrays))
    given = [np.broadcast_to(x, (*batch, x.shape[-1])) for x in arrays]
    results = [np.asarray(function(*(x[state] for x in given)), dtype=float) for state in np.ndindex(batch)]
    core = results[0].shape if results else empty
    return np.array(results).reshape(*batch, *core)
