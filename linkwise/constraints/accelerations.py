"""Constrained forward dynamics (KKT): compiled elimination, and five formulations of the same equation of motion.

Spencer2004 2.4, 2.5, 2.43, 3.5; the formulation "svd" is the reference.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..compiler.registry import ArrayFunction, compile_instead, register
from ..compiler.runtime.explanations import KernelError
from ..compiler.store import float64_function, match_precision
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
from .formulations import METHODS, Basis, acceleration_basis
from .idle_motions import explain_idle_motions
from .infinitesimal import completed_bias, completed_rows, has_infinitesimal_motions, refuse_infinitesimal_motions
from .masks import loop_mask, map_over_masks, mask_constraints, mechanism_holding
from .named_coordinates import curvatures_of_inputs, is_beside_velocities, rates_of_inputs
from .redundancy import closable_error
from .sizes import sizes
from .solver import ACCELERATIONS, MOTION, Inputs, call_kernel, has_generic_rank, is_reliable, serves, solve
from .tolerances import LOOPS

_ARRAY, _FLOAT64 = np.ndarray, np.dtype("float64")
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
    """The terms of the equations of motion, from one kernel.  Constraints redundant up to rounding are projected out
    (``mask_constraints``), unless a ``tolerance`` is given; rows of loops that are not ``active`` are zero.  Raises for
    mechanisms with infinitesimal motions unless ``infinitesimal``."""
    n = mech.nv
    if not infinitesimal and mech.loops and has_infinitesimal_motions(mech):
        masks = np.ones((1, len(mech.loops))) if active is None else active.reshape(-1, active.shape[-1])
        for held in np.unique(masks, axis=0):  # a subset of loops has its own infinitesimal motions
            part = mech if held.all() else mechanism_holding(mech, held)
            if part.loops:
                refuse_infinitesimal_motions(part, "the motion under constraints")
    both = float64_function(mech, "constrained_terms")(q, v)
    upper, lower = both[..., :n, :], both[..., n:, :]
    lower = mask_constraints(mech, lower, active, tolerance)
    return Terms(upper[..., :n], upper[..., n], lower[..., :n], lower[..., n], lower[..., n + 1])


class Method(NamedTuple):
    """The solution method, with the options of ``linkwise.forward_dynamics``.  With ``baumgarte``, ``independent``,
    ``damping`` or a ``tolerance``, "elimination" is replaced by "svd"."""

    name: str = "elimination"
    baumgarte: tuple[float, float] | None = None
    independent: Any = None
    rank: Any = None
    tolerance: float | None = None
    damping: float | None = None

    @property
    def is_plain(self) -> bool:
        """Whether compiled elimination can be used, for any rank."""
        is_plain = self.baumgarte is self.independent is self.tolerance is self.damping is None
        return is_plain and self.name == "elimination"


ELIMINATION = Method()
SVD = Method("svd")


def forward_dynamics(
    mech: Mechanism,
    q: ByJoint,
    v: ByJoint | None = None,
    tau: ByJoint | None = None,
    method: str = "elimination",
    baumgarte: tuple[float, float] | None = None,
    wrenches: ArrayLike | None = None,
    active: ArrayLike | None = None,
    **settings: Any,
) -> Float64Array:
    """``linkwise.forward_dynamics`` under constraints; ``settings`` are further fields of ``Method``."""
    if (
        wrenches is active is baumgarte is None
        and not settings
        and method == "elimination"
        and serves(mech, ACCELERATIONS)
    ):
        results = call_kernel(mech, MOTION, q, v, tau)
        if results is not None:
            return results[0]
    how = Method(method, baumgarte, **settings)
    q, v, tau = checked_motion(mech, q, v, tau, wrenches)
    mask = loop_mask(mech, active, q=q, v=v, tau=tau)
    a = accelerations(mech, Inputs((q, v, tau), mask, wrenches), how)
    if how.baumgarte is None:
        warn_if_open(mech, closable_error(mech, q), mask)
        warn_if_opening(mech, q, v, mask)
    return a


register(forward_dynamics, ArrayFunction(ACCELERATIONS))


def forward_dynamics_of(mech: Mechanism, **options: Any) -> Callable[..., Float64Array]:
    """``forward_dynamics`` of one mechanism as a function of q, v, tau and wrenches, with a fast path for one state."""
    general: Callable[..., Float64Array] = functools.partial(match_precision(forward_dynamics), mech, **options)
    if options or not serves(mech, ACCELERATIONS):
        return general

    motion = float64_function(mech, MOTION)

    def function(q: Any, v: Any, tau: Any, wrenches: Any = None) -> Float64Array:
        if wrenches is None and type(q) is _ARRAY and q.ndim == 1 and q.dtype is _FLOAT64:  # the fast path
            try:
                a, _, consistency = motion(q, v, tau)
            except (KernelError, TypeError):
                pass  # arguments by joint, defaults, or errors: left to the general path
            else:
                if a.ndim == 1 and is_reliable(consistency):
                    return a
        return general(q, v, tau, wrenches=wrenches)

    return function


def accelerations(mech: Mechanism, inputs: Inputs, how: Method = ELIMINATION) -> Float64Array:
    """``forward_dynamics`` of checked float64 arrays; loops may be open, ``inputs.active`` comes from ``loop_mask``."""
    one_of("method", how.name, ALL_METHODS)
    if not mech.loops:
        q, v, tau = inputs.arrays
        return tree.forward_dynamics(mech, q, v, tau, inputs.wrenches)
    if how.damping is None and has_infinitesimal_motions(mech):
        return _decomposed_accelerations(mech, inputs, how)
    usual = how.is_plain and has_generic_rank(mech, how.rank, inputs.arrays[0].shape[:-1])
    if usual and how.rank is not None:
        how = how._replace(rank=fronts(mech).pivots)

    def reference(*kernel_inputs: Any) -> Float64Array:
        *state, active, wrenches = kernel_inputs
        return constrained_motion(mech, Inputs(state, active, wrenches), how)[1]

    if not usual or (inputs.active is not None and how.rank is not None):
        return reference(*inputs.arrays, inputs.active, inputs.wrenches)
    return solve(mech, ACCELERATIONS, inputs, reference, judged_by="reliability" if inputs.active is None else "")


def _decomposed_accelerations(mech: Mechanism, inputs: Inputs, how: Method) -> Float64Array:
    """``accelerations`` with infinitesimal motions.  These belong to all loops together: each mask of active loops is
    solved as a mechanism of its own."""
    if inputs.active is None or inputs.active.all():
        return constrained_motion(mech, inputs, how)[1]
    pushed = np.zeros((mech.n_links, 6)) if inputs.wrenches is None else np.asarray(inputs.wrenches)
    forces = pushed.reshape(*pushed.shape[:-2], -1)

    def held(mech: Mechanism, q: Any, v: Any, tau: Any, forces: Any) -> Float64Array:
        wrenches = forces.reshape(*forces.shape[:-1], mech.n_links, 6)
        return accelerations(mech, Inputs((q, v, tau), None, wrenches), how._replace(rank=None))

    return map_over_masks(held, mech, inputs.active, *inputs.arrays, forces)


def constrained_motion(
    mech: Mechanism, inputs: Inputs, how: Method = SVD, undetermined: bool = False
) -> tuple[Terms, Float64Array]:
    """The terms of the equations of motion and the accelerations, by NumPy's linear algebra; loops may be open.
    ``undetermined``: accept massless parts in balance, with the least accelerations."""
    q, v, tau = inputs.arrays
    method = "svd" if how.name == "elimination" else how.name
    at, rank = moving_terms(mech, q, v, how.tolerance, inputs.active, how.rank)
    if mech.loops and has_infinitesimal_motions(mech):
        method = "svd" if method == "lagrange" else method
    force, bias = tau - spanning_tree_bias(mech, at, q, v, inputs.wrenches), at.bias
    if how.baumgarte is not None:
        alpha, beta = _gains(how.baumgarte)
        rates = times(at.jacobian, v)
        rates[..., : mech.n_constraints] -= mech.constraints.drive_rates
        bias = bias + 2.0 * alpha * rates + beta**2 * at.error
    svd = decomposed_jacobian(mech, at.jacobian, how.tolerance, rank)
    if how.damping is not None:
        if not how.damping > 0.0:
            raise MechanismError(
                f"damping must be a positive fraction of the largest singular value, not {how.damping!r}"
            )
        bias = svd.softened(bias, how.damping)
    if method == "lagrange":
        if how.independent is not None:
            raise MechanismError("method='lagrange' has no independent coordinates: leave out method or independent")
        return at, _lagrange(mech, at, force, bias, svd.rank)
    basis = acceleration_basis(method, at.jacobian, bias, svd, independent_at(mech, q, how.independent))
    return at, null_space_accelerations(mech, at, force, basis, undetermined)


def moving_terms(
    mech: Mechanism,
    q: np.ndarray,
    v: np.ndarray,
    tolerance: float | None = None,
    active: Float64Array | None = None,
    rank: Any = None,
) -> tuple[Terms, Any]:
    """The ``terms`` with rows appended that block infinitesimal motions, and the rank of all rows, None if unknown."""
    at = terms(mech, q, v, tolerance, active, infinitesimal=True)
    if not mech.loops or not has_infinitesimal_motions(mech):
        return at, rank
    if mech.constraints.driven or not (active is None or active.all()):
        refuse_infinitesimal_motions(mech, "the motion under drives, or some of the loops,")
    jacobian, rank = completed_rows(mech, at.jacobian, q, rank)
    error = np.concatenate([at.error, np.zeros((*at.error.shape[:-1], mech.nv))], axis=-1)
    return at._replace(jacobian=jacobian, bias=completed_bias(mech, at.bias, q, v), error=error), rank


def null_space_accelerations(
    mech: Mechanism, at: Terms, force: np.ndarray, onto: Basis, undetermined: bool = False
) -> np.ndarray:
    """a = K (K* M K)^-1 K* (F - M k) + k (2.43b), with ``onto`` K and k.  Columns of zeros that pad K get ones on the
    diagonal of K* M K."""
    basis, offset = onto
    transposed = basis.swapaxes(-1, -2)
    projected = transposed @ at.mass
    reduced = projected @ basis
    if basis.ndim > 2:
        diagonal = reduced.reshape(*reduced.shape[:-2], mech.nv**2)[..., :: mech.nv + 1]  # a view
        diagonal += ~basis.any(axis=-2)
    driving = times(transposed, force) - times(projected, offset)
    if undetermined and not has_inertia(mech, reduced):
        return times(basis, _balanced_motion(mech, reduced, driving, force)) + offset
    require_inertia_of_motions(mech, reduced)
    return times(basis, solved(reduced, driving)) + offset


def least_norm_basis(mech: Mechanism, at: Terms, bias: np.ndarray, rank: Any = None) -> Basis:
    """K, orthonormal in dimensionless coordinates, and the least k with G k + ``bias`` = 0."""
    svd = decomposed_jacobian(mech, at.jacobian, rank=rank)
    return svd.null, -svd.solve(bias)


def response(mech: Mechanism, q: np.ndarray, active: Float64Array | None = None) -> Float64Array:
    """(..., nv, nv): K (K* M K)^-1 K*, accelerations per joint force under the ``active`` constraints, by singular
    values: also in singular positions."""
    at = terms(mech, q, np.zeros(mech.nv), active=active)
    each = Terms(*(x[..., None, :, :] if k in (0, 2) else x[..., None, :] for k, x in enumerate(at)))
    batch = each.bias.shape[:-2]
    onto = least_norm_basis(mech, each, np.zeros((*batch, mech.nv, mech.n_constraints)))
    return null_space_accelerations(mech, each, np.broadcast_to(np.eye(mech.nv), (*batch, mech.nv, mech.nv)), onto)


def has_inertia(mech: Mechanism, reduced: np.ndarray) -> bool:
    """Whether ``K* M K``, (..., p, p), is positive definite in every finite state.  It is, unless joints of the
    spanning tree can move without moving mass."""
    if not mech.parameters.singular_joints or not reduced.size:
        return True
    reduced = reduced[np.isfinite(reduced).all(axis=(-1, -2))]
    diagonal = np.einsum("...ii->...i", reduced)
    if not (diagonal > 0.0).all():
        return False
    scale = 1.0 / np.sqrt(diagonal)
    smallest = np.linalg.eigvalsh(reduced * scale[..., :, None] * scale[..., None, :])[..., 0]
    return bool((smallest > SINGULAR_TOLERANCE).all())


def require_inertia_of_motions(mech: Mechanism, reduced: np.ndarray, quantity: str = "forward_dynamics") -> None:
    """Raise if an allowed motion has no inertia; ``reduced`` is K* M K, (..., p, p)."""
    if not has_inertia(mech, reduced):
        raise inertia_error(mech, quantity)


def _balanced_motion(mech: Mechanism, inertia: np.ndarray, driving: np.ndarray, force: np.ndarray) -> np.ndarray:
    """(..., p): the least y with K* M K y = ``driving`` for singular K* M K.  It exists if no force drives a massless
    motion, and is unique up to motions without forces, so that reactions are unique."""
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


def _lagrange(mech: Mechanism, at: Terms, force: np.ndarray, bias: np.ndarray, rank: Any) -> np.ndarray:
    """Accelerations from multipliers (2.4, 2.5), in dimensionless coordinates and constraints.  With M = L L* and
    G L^-* = U S W*, G M^-1 G* is U S^2 U*: redundant constraints get the multipliers of least norm, without division by
    zero."""
    rows, columns = sizes(mech).rows, sizes(mech).columns
    mass, force, bias = columns[:, None] * at.mass * columns, columns * force, rows * bias
    known = np.isfinite(mass).all(axis=(-1, -2), keepdims=True)  # elsewhere the state is unknown, and so is the result
    try:
        root = np.linalg.cholesky(np.where(known, mass, np.eye(mech.nv)))
    except np.linalg.LinAlgError:
        raise MechanismError(
            f"Lagrange multipliers need a positive mass matrix of the spanning tree, but something in mechanism "
            f"{mech.name!r} moves without inertia: use method='svd'"
        ) from None
    jacobian = rows[:, None] * at.jacobian * columns
    weighted = np.swapaxes(np.linalg.solve(root, np.swapaxes(jacobian, -1, -2)), -1, -2)
    svd = decompose(weighted, np.finfo(float).eps, rank)  # masses that differ much do not drop a constraint
    drive = np.linalg.solve(root, force[..., None])[..., 0]
    kept = svd.solve(times(weighted, drive) + bias)  # L* times the acceleration that the multipliers take away
    return columns * np.linalg.solve(np.swapaxes(root, -1, -2), (drive - kept)[..., None])[..., 0]


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
        results = call_kernel(mech, "closed_null_space", q)
        if results is not None:
            return results[0]
    method = "svd" if method == "elimination" else method
    mask = loop_mask(mech, active, q=q)
    jacobian, rank = mask_constraints(mech, constraint_jacobian(mech, q), mask, tolerance), None
    if tolerance is None and mech.loops and has_infinitesimal_motions(mech):
        if mask is not None:
            return map_over_masks(functools.partial(null_space, method=method, independent=independent), mech, mask, q)
        jacobian, rank = completed_rows(mech, jacobian, q)
    svd = decomposed_jacobian(mech, jacobian, tolerance, rank)
    with explain_idle_motions(mech, q, independent):
        chosen = independent_at(mech, q, independent)
        basis, _ = acceleration_basis(method, jacobian, np.zeros(jacobian.shape[:-1]), svd, chosen)
    dofs = int(mech.nv - np.min(svd.rank, initial=mech.nv))
    if chosen is not None:  # also known without states
        dofs = chosen.shape[0] if chosen.ndim == 1 else chosen.shape[-2]
    if method == "svd" and independent is None and basis.ndim > 2:  # columns of K first, columns of zeros last
        order = np.argsort(~svd.is_free, axis=-1, kind="stable")
        basis = np.take_along_axis(basis, order[..., None, :], axis=-1)
    basis = basis[..., :dofs]
    promised = method != "partitioning" and independent is None
    return orthonormalized(basis) if promised and sizes(mech).has_lengths else basis


# -- shared -------------------------------------------------------------------------------------------


def spanning_tree_bias(
    mech: Mechanism, at: Terms, q: ArrayLike, v: ArrayLike, wrenches: ArrayLike | None
) -> Float64Array:
    """(..., nv): h, the joint forces of the spanning tree at zero acceleration, under external wrenches if any."""
    if wrenches is None:
        return at.bias_force
    return tree.inverse_dynamics(mech.spanning_tree, q, v, np.zeros(mech.nv), wrenches)


def independent_at(mech: Mechanism, q: Float64Array, independent: Any) -> np.ndarray | None:
    """Independent coordinates as indices of v, or as rows at q."""
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
    """Second derivatives of independent coordinates at constant v; zero for joints and rows."""
    if isinstance(independent, (str, list, tuple)) and any(
        isinstance(name, str) and is_beside_velocities(mech, name) for name in names_of(independent)
    ):
        return curvatures_of_inputs(mech, q, v, independent)
    if not isinstance(independent, (Coordinates, ImplicitCoordinates)):
        return 0.0
    return _per_state(independent.curvature, q, v, empty=(1,))


def _per_state(function: Callable[..., Any], *arrays: np.ndarray, empty: tuple[int, ...]) -> np.ndarray:
    """A function of one state evaluated for a batch; the core shape of an empty batch is ``empty``."""
    batch = np.broadcast_shapes(*(x.shape[:-1] for x in arrays))
    states = [np.broadcast_to(x, (*batch, x.shape[-1])) for x in arrays]
    results = [np.asarray(function(*(x[state] for x in states)), dtype=float) for state in np.ndindex(batch)]
    core = results[0].shape if results else empty
    return np.array(results).reshape(*batch, *core)
