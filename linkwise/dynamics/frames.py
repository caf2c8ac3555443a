"""Velocities, accelerations and operational inertias of a link or welded frame.

``frame`` selects the axes and the reference point: "link", in its own axes at its origin; "world", in world axes at the
world's origin; "world_aligned", in world axes at its own origin (Pinocchio: LOCAL, WORLD, LOCAL_WORLD_ALIGNED).
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..compiler.registry import ArrayFunction, register
from ..compiler.runtime.arrays import all_plain
from ..compiler.store import either, kernel_function, match_precision, of_algorithm
from ..constraints.accelerations import null_space, response
from ..constraints.decomposition import times, transposed_times
from ..constraints.elimination_orders import fronts
from ..constraints.masks import loop_mask, row_mask
from ..constraints.solver import Inputs, solve
from ..mechanics.algorithms.dexterity import HELD_STILL
from ..mechanism import Mechanism, MechanismError, one_of, require_mechanism
from ..mechanism.checks import names_of
from .states import Float64Array, checked_arrays, real_numbers
from .trees import frame_pose, jacobian, mass_matrix_inverse

ROWS = {"angular": (0, 1, 2), "linear": (3, 4, 5)}


@of_algorithm("frame_velocity")
def frame_velocity(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    link: str | None = None,
    frame: str = "link",
    *,
    name: str | None = None,
) -> Float64Array:
    """(6,): [omega; v] of a link or welded frame, ``jacobian(mech, q, link, frame) @ v`` without the Jacobian
    (``name`` is another word for ``link``)."""
    link = either("frame_velocity", link, name)
    return kernel_function(mech, ("frame_velocity", ("link", link), ("frame", frame)))(q, v)


@of_algorithm("frame_acceleration")
def frame_acceleration(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    link: str | None = None,
    frame: str = "link",
    classical: bool = False,
    *,
    name: str | None = None,
) -> Float64Array:
    """(6,): acceleration of a link or welded frame; gravity does not enter (``name`` is another word for ``link``).

    Spatial acceleration: the time derivative of the components of ``frame_velocity`` in "link" and in "world"; in
    "world_aligned" that of "link", rotated.  ``classical=True`` adds omega x v to the linear part: the acceleration of
    the frame's origin that an accelerometer would measure without gravity (in "world": of the point at the world's).
    """
    link = either("frame_acceleration", link, name)
    return kernel_function(mech, ("frame_acceleration", ("link", link), ("frame", frame), ("classical", classical)))(
        q, v, a
    )


@of_algorithm("jacobian_rate_times_velocity")
def jacobian_rate_times_velocity(
    mech: Mechanism, q: ArrayLike, v: ArrayLike, link: str, frame: str = "link"
) -> Float64Array:
    """(6,): dJ/dt v, equal to ``jacobian_rate(mech, q, v, link, frame) @ v``, without forming dJ/dt.

    J a + dJ/dt v is the rate of the components of J v: the spatial ``frame_acceleration`` in "link" and "world", the
    classical one in "world_aligned".
    """
    return kernel_function(mech, ("jacobian_rate_times_velocity", ("link", link), ("frame", frame)))(q, v)


@match_precision
def operational_inertia(
    mech: Mechanism, q: ArrayLike, link: str, frame: str = "link", active: ArrayLike | None = None
) -> Float64Array:
    """(6, 6): the inverse of J M^-1 J* with J = ``jacobian(mech, q, link, frame)``: the wrench per acceleration of a
    link or welded frame; six degrees of freedom must move it.  Under ``active`` constraints, the inverse of
    J K (K* M K)^-1 K* J*.

    NaN in singular positions, where motions in some direction need infinite forces (NumPy warns of an invalid value).
    ``effective_inertia`` along a direction, and J M^-1 J* itself (``delassus_matrix``), exist there too.
    """
    options = (("link", link), ("frame", frame))
    if not _has_constraints(mech):
        loop_mask(mech, active)
        return kernel_function(mech, ("operational_inertia", *options))(q)
    (q,) = checked_arrays(mech, q=q)
    mask = loop_mask(mech, active, q=q)
    dofs = mech.nv - fronts(mech).pivots
    if mask is None and dofs < 6:
        raise MechanismError(
            f"constraints leave mechanism {mech.name!r} with {dofs} degrees of freedom: J K (K* M K)^-1 K* J* of link "
            f"{link!r} has no inverse, for which 6 are needed (effective_inertia along a direction and delassus_matrix "
            "do without)"
        )

    def reference(q: Float64Array, active: Float64Array | None, _: Any) -> Float64Array:
        moved = jacobian(mech, q, link, frame)
        constrained, free = (
            _mobility(moved, inverse) for inverse in (response(mech, q, active), mass_matrix_inverse(tree, q))
        )
        units = 1.0 / np.sqrt(np.einsum("...ii->...i", free))
        known = np.isfinite(constrained).all(axis=(-2, -1)) & np.isfinite(units).all(axis=-1)
        scaled = constrained * units[..., None] * units[..., None, :]
        values, axes = np.linalg.eigh(np.where(known[..., None, None], scaled, np.nan_to_num(0.0 * scaled)))
        values = np.where(values > HELD_STILL, values, np.nan)
        constrained = (axes / values[..., None, :]) @ np.swapaxes(axes, -1, -2)
        return constrained * units[..., None] * units[..., None, :]

    tree = mech.spanning_tree
    return solve(mech, "operational_inertia", Inputs((q,), mask), reference, options)


@match_precision
def effective_inertia(
    mech: Mechanism,
    q: ArrayLike,
    direction: ArrayLike,
    link: str,
    frame: str = "link",
    active: ArrayLike | None = None,
) -> Float64Array:
    """Scalar per state: 1 / (d* J M^-1 J* d), force per acceleration along a direction (a mass for a linear unit
    direction, an inertia for an angular one); infinite in immobile directions.  Under ``active`` constraints,
    K (K* M K)^-1 K* replaces M^-1.

    direction   (3,): of a force at the frame's origin; or (6,): [moment; force]; in the axes and at the reference
                point of ``frame``
    """
    (plain,) = all_plain((direction,))
    six = np.asarray(plain)
    if six.shape[-1:] not in ((3,), (6,)):
        raise ValueError(f"direction must have shape (..., 3) or (..., 6), got {six.shape}")
    if six.shape[-1] == 3:
        six = np.concatenate([np.zeros_like(six), six], axis=-1)
    options = (("link", link), ("frame", frame))
    if not _has_constraints(mech):
        loop_mask(mech, active)
        return kernel_function(mech, ("effective_inertia", *options))(q, six)
    (q,) = checked_arrays(mech, q=q)
    mask, six = loop_mask(mech, active, q=q), real_numbers("direction", six)

    def reference(q: Float64Array, six: Float64Array, active: Float64Array | None, _: Any) -> Float64Array:
        forces = transposed_times(jacobian(mech, q, link, frame), six)
        both = (response(mech, q, active), mass_matrix_inverse(mech.spanning_tree, q))
        constrained, free = (np.sum(forces * times(inverse, forces), axis=-1) for inverse in both)
        with np.errstate(divide="ignore"):
            return np.asarray(1.0 / np.where(constrained < HELD_STILL * free, 0.0, constrained))

    with np.errstate(divide="ignore"):
        return solve(mech, "effective_inertia", Inputs((q, six), mask), reference, options)


@match_precision
def manipulability(
    mech: Mechanism,
    q: ArrayLike,
    link: str,
    rows: str | Sequence[int] | None = None,
    frame: str = "link",
    active: ArrayLike | None = None,
) -> Float64Array:
    """Scalar per state: sqrt(det(J J*)) of a link or welded frame, zero in singular positions.  Under
    ``active`` constraints J K replaces J, with K* K = 1: allowed motions with v* v = 1.

    rows   of the Jacobian: "angular", "linear", or numbers such as (3, 4, 2) for x, y and the angle about z; all six by
           default
    """
    chosen = _rows(rows)
    options = (("link", link), ("rows", chosen), ("frame", frame))
    if not _has_constraints(mech):
        loop_mask(mech, active)
        return kernel_function(mech, ("manipulability", *options))(q)
    (q,) = checked_arrays(mech, q=q)

    def reference(q: Float64Array, active: Float64Array | None, _: Any) -> Float64Array:
        holds = None if active is None else active > 0.0
        allowed = jacobian(mech, q, link, frame)[..., chosen, :] @ null_space(mech, q, active=holds)
        values = np.linalg.svd(allowed, compute_uv=False)
        return np.asarray(np.prod(values, axis=-1) * (values.shape[-1] == len(chosen)))

    return solve(mech, "manipulability", Inputs((q,), loop_mask(mech, active, q=q)), reference, options)


@match_precision
def delassus_matrix(
    mech: Mechanism,
    q: ArrayLike,
    frames: Sequence[str] | None = None,
    active: ArrayLike | None = None,
    frame: str = "link",
) -> Float64Array:
    """The Delassus matrix: accelerations of constraints, contacts or frames per force on each of them.

    Without ``frames`` (m, m): G M^-1 G*, second derivatives of the constraints per unit of the multipliers, rows and
    columns of inactive constraints are zero.  M a + h = tau - G* lambda and G a = -bias give the multipliers
    that hold the constraints, G M^-1 G* lambda = G M^-1 (tau - h) + bias.

    frames   links or welded frames, such as those in contact: (6 k, 6 k), J M^-1 J* with the Jacobians of all of them
             one below the other; accelerations of each per unit of wrenches [moment; force] on each.  Under ``active``
             constraints, J K (K* M K)^-1 K* J*
    frame    axes and reference points: "link", "world" or "world_aligned"
    """
    (plain,) = checked_arrays(mech, q=q)
    mask = loop_mask(mech, active, q=plain)
    if frames is None:
        matrix = kernel_function(mech, "delassus_matrix")(q)
        if mask is None:
            return matrix
        holds = row_mask(mech, mask)
        return matrix * holds[..., None] * holds[..., None, :]
    options = (("frames", tuple(names_of(frames))), ("frame", frame))
    if not mech.loops:
        return kernel_function(mech, ("frame_mobilities", *options))(q)

    def reference(q: Float64Array, active: Float64Array | None, _: Any) -> Float64Array:
        moved = np.concatenate([jacobian(mech, q, name, frame) for name in names_of(frames)], axis=-2)
        return _mobility(moved, response(mech, q, active))

    return solve(mech, "frame_mobilities", Inputs((plain,), mask), reference, options)


def _mobility(moved: Float64Array, inverse: Float64Array) -> Float64Array:
    return moved @ inverse @ np.swapaxes(moved, -1, -2)


def _has_constraints(mech: Mechanism) -> bool:
    require_mechanism(mech)
    return bool(mech.loops)


def _rows(rows: Any) -> tuple[int, ...]:
    if rows is None:
        return tuple(range(6))
    try:
        chosen = ROWS[rows] if isinstance(rows, str) else tuple(operator.index(row) for row in rows)
    except (KeyError, TypeError):
        chosen = ()
    if not chosen or not set(chosen) <= set(range(6)) or len(set(chosen)) < len(chosen):
        raise ValueError(f"rows must be 'angular', 'linear' or different numbers from 0 to 5, got {rows!r}")
    return chosen


register(operational_inertia, ArrayFunction("operational_inertia"))
register(effective_inertia, ArrayFunction("effective_inertia"))
register(manipulability, ArrayFunction("manipulability"))
register(delassus_matrix, ArrayFunction("delassus_matrix"))


def wrenches_at(
    mech: Mechanism, pushes: Mapping[str, ArrayLike], q: ArrayLike | None = None, frame: str = "link"
) -> Float64Array:
    """(n_links, 6): wrenches on links as all functions take them, from ``pushes`` {link or frame: [moment; force]} at
    the origins of those.  A push on a frame acts on its link, ``mech.frame(name).link``.  At a pin of a linkage name
    the link, "rod.B" or "piston.B": the load of the pin depends on it.

    frame   the axes of the pushes: "link", those of the link or frame itself, or "world_aligned", those of the world,
            which needs q

    Batches broadcast: q (..., nq) and pushes (..., 6) give (..., n_links, 6).
    """
    if not isinstance(pushes, Mapping):
        raise TypeError(
            "wrenches_at takes {link or frame: [moment; force]} behind the mechanism, then q: not a "
            f"{type(pushes).__name__}"
        )
    one_of("frame", frame, ("link", "world_aligned"))
    if frame == "world_aligned" and q is None:
        raise MechanismError("wrenches_at: axes of the world need q, which says how the links are turned")
    wrenches: dict[int, list[Float64Array]] = {}
    for name, components in pushes.items():
        entry, push = mech.frame(name), real_numbers(f"the push on {name!r}", components)
        if push.shape[-1:] != (6,):
            raise MechanismError(f"wrenches_at: a push is [moment; force], (..., 6), and that on {name!r} {push.shape}")
        if entry.body < 0:
            others = [
                candidate for candidate, at in mech.frames.items() if at.body >= 0 and candidate.endswith(f".{name}")
            ]
            told = f": name a moving link that has this point, {', '.join(map(repr, others))}" if others else ""
            raise MechanismError(f"wrenches_at: {name!r} is fixed to the ground, which takes any push{told}")
        turn = entry.rotation
        if frame == "world_aligned" and q is not None:
            turn = turn @ np.swapaxes(frame_pose(mech, q, name)[..., :3, :3], -1, -2)
        moment, force = ((turn @ part[..., None])[..., 0] for part in (push[..., :3], push[..., 3:]))
        wrench = np.concatenate([moment + np.cross(entry.position, force), force], axis=-1)
        wrenches.setdefault(entry.body, []).append(wrench)
    batch = np.broadcast_shapes(*(array.shape[:-1] for many in wrenches.values() for array in many))
    total = np.zeros((*batch, mech.n_links, 6))
    for body, many in wrenches.items():
        total[..., body, :] = sum(many)
    return total
