"""Singular positions of closed mechanisms along a motion: where loops, inputs or outputs stop determining it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np

from ..constraints.decomposition import decompose
from ..constraints.named_coordinates import velocity_map
from ..mechanism import Mechanism, MechanismWarning, warn_caller
from .continuation import STUCK, TOO_LONG, MotionPath, motion_path
from .manifolds import (
    Kind,
    Manifold,
    Measure,
    closed_start,
    constraint_manifold,
    measures,
    require_dof,
    same_sense,
)
from .workspaces import SingularCurve, workspace

SINGULAR = 1e-6  # smallest singular value of G, relative to the largest: less is zero but for what rounding leaves
ROUGHLY_SINGULAR = 1e-4
REACH = 0.04  # along the curve: on both sides of a position where loops depend on each other, whence it is interpolated
NODES = REACH * np.cos(np.pi * (np.arange(10) + 0.5) / 10)  # Chebyshev's, none of them close to the middle


@dataclass(frozen=True, eq=False, repr=False)
class SingularPosition:
    """A configuration in which a mechanism is singular.

    kind      "input": it moves though the inputs stand still, a dead centre for them (singularity of the second kind,
              "parallel"); "output": inputs move though the outputs stand still (first kind, "serial"); "constraint":
              constraints of the loops depend on each other, more motions are possible than elsewhere
    q         (nq,): the configuration
    arc       where it is on the path of the motion, see ``MotionPath``
    motions   (nv, k), orthonormal: what can move there while it cannot elsewhere; of "constraint", all motions
    """

    kind: Kind
    q: np.ndarray
    arc: float
    motions: np.ndarray

    def __repr__(self) -> str:
        q = np.array2string(self.q, precision=6, suppress_small=True, threshold=12)
        return f"<SingularPosition {self.kind!r} at q = {q}>"


@overload
def singular_positions(
    mech: Mechanism,
    inputs: Sequence[str],
    q: Any = ...,
    outputs: Sequence[str] = ...,
    hold: Sequence[str] = ...,
    limits: bool = ...,
) -> tuple[SingularPosition, ...]: ...


@overload
def singular_positions(
    mech: Mechanism,
    inputs: Sequence[str],
    q: Any = ...,
    outputs: Sequence[str] = ...,
    hold: Sequence[str] = ...,
    limits: bool = ...,
    *,
    over: Sequence[str],
    bounds: Any = ...,
    points: int | tuple[int, int] = ...,
) -> tuple[SingularCurve, ...]: ...


def singular_positions(
    mech: Mechanism,
    inputs: Sequence[str],
    q: Any = None,
    outputs: Sequence[str] = (),
    hold: Sequence[str] = (),
    limits: bool = False,
    *,
    over: Sequence[str] = (),
    bounds: Any = None,
    points: int | tuple[int, int] = 61,
) -> tuple[SingularPosition, ...] | tuple[SingularCurve, ...]:
    """All singular positions along the motion with one degree of freedom through q, in the order of the motion; or,
    over two coordinates, the curves of singular positions.

    inputs    joints and coordinates (named as for ``range_of_motion``) that drive the mechanism, as many as it has
              degrees of freedom; coordinates of ``hold`` count as well, here and in ``outputs``
    outputs   joints and coordinates that are driven, as many; without them singular positions of outputs are left out
    hold      joints and coordinates that stand still and leave one degree of freedom, or two for ``over``
    limits    whether the motion ends at the limits of joints
    over, bounds, points   two coordinates, their rectangle, and the grid, see ``workspace``

    Positions are exact to 1e-9; where constraints of loops depend on each other, or several inputs or outputs are
    singular at once, to 1e-8; lengths in units of the mechanism's size.  A ``MechanismWarning`` names ends where the
    motion was not followed further, so that positions may be missing.
    """
    if len(over):
        return workspace(mech, over, bounds, q, inputs, outputs, hold, points, limits).curves
    start = closed_start("singular_positions", mech, q, (inputs, outputs, hold))
    manifold = constraint_manifold(mech, start, hold)
    require_dof("singular_positions", manifold, start, hold, 1, " or look over two coordinates (over=..., bounds=...)")
    toward = velocity_map(mech, inputs, "inputs")[1](start)[0] if len(inputs) else None
    path = motion_path(manifold, start, limits, toward)
    positions = tuple(_find_positions(path, inputs, outputs, hold))
    _warn_of_unknown_parts(path)
    return positions


def _warn_of_unknown_parts(path: MotionPath) -> None:
    """Warn if the motion was not followed to its end, unless the path is a straight line."""
    ends = zip(path.causes, path.is_straight, strict=True)
    if any(cause == STUCK or (cause == TOO_LONG and not straight) for cause, straight in ends):
        warn_caller(
            f"the motion of mechanism {path.mechanism.name!r} was not followed to its end "
            f"({' and '.join(path.causes)}): there may be more singular positions beyond; limits=True "
            "ends it at the limits of joints",
            MechanismWarning,
        )


def _find_positions(
    path: MotionPath, inputs: Sequence[str], outputs: Sequence[str], hold: Sequence[str]
) -> list[SingularPosition]:
    """All singular positions of a motion, in order along the path."""
    manifold = constraint_manifold(path.mechanism, path.q[0], ())
    positions = _dependent_loops(path, manifold)
    bases = manifold.basis(path.q)
    senses = np.cumprod([1.0, *same_sense(bases[:-1], bases[1:])])
    bases[..., 0] *= senses[:, None]
    for measure in measures(manifold, inputs, outputs, hold):
        positions += _zeros(path, manifold, measure, bases)
    return sorted(positions, key=lambda position: position.arc)


def _zeros(path: MotionPath, manifold: Manifold, measure: Measure, bases: np.ndarray) -> list[SingularPosition]:
    """Singular positions where the measure changes its sign or touches zero."""

    def signed(q: np.ndarray, tangent: np.ndarray, i: int) -> float:
        basis = manifold.basis(q)
        return float(measure(q, basis) * same_sense(bases[i], basis))

    roots = path.roots(signed)
    sizes = np.abs(measure(path.q, bases))
    for k in _local_minima(path, sizes):
        window = [path.arc[k] - _step(path, k - 1), path.arc[k] + _step(path, k)]
        rounds = (-path.arc[-1], 0.0, path.arc[-1]) if path.is_closed else (0.0,)
        if not any(window[0] <= path.arc[i] + x + turn <= window[1] for i, x in roots for turn in rounds):
            distance, least = _least(path, k, lambda q, k=k: abs(signed(q, q, k)))  # type: ignore[misc]
            if least < SINGULAR * float(np.median(sizes)):
                roots.append((k, distance))
    positions = []
    for i, distance in roots:
        q = path.at(i, distance)[0]
        motions = _motions(manifold, np.concatenate([manifold.jacobian(q), measure.rows(q)]))
        positions.append(SingularPosition(measure.kind, q, float(path.arc[i] + distance), motions))
    return positions


def _motions(manifold: Manifold, rows: np.ndarray) -> np.ndarray:
    """(nv, k), orthonormal: motions for which the dimensionless rates ``rows`` times velocities vanish; at least
    one.
    """
    parts = decompose(rows, SINGULAR)
    null = parts.v[:, min(int(parts.rank), rows.shape[1] - 1) :]
    return np.linalg.qr(manifold.units.velocities[:, None] * null)[0]


def _step(path: MotionPath, i: int) -> float:
    """Length of the step behind the i-th configuration; closed paths continue across the start."""
    count = len(path.steps)
    return float(path.steps[i % count]) if path.is_closed or 0 <= i < count else 0.0


def _local_minima(path: MotionPath, sizes: np.ndarray) -> list[int]:
    """Configurations of a path at which a number is smaller than at both neighbours."""
    before, after = np.concatenate([[np.inf], sizes[:-1]]), np.concatenate([sizes[1:], [np.inf]])
    if path.is_closed:  # the last is the first once more
        before[0], after[-1] = sizes[-2], -np.inf
    # Beside a zero a number cannot be more than half of the largest; one that only rounding changes has no minima.
    return np.flatnonzero((sizes <= before) & (sizes < after) & (sizes < 0.5 * sizes.max())).tolist()


def _least(path: MotionPath, k: int, size: Callable[[np.ndarray], float]) -> tuple[float, float]:
    """The smallest value of ``size`` within a step to either side of the k-th configuration: its distance, and the
    value.
    """
    from scipy.optimize import minimize_scalar  # here: importing it takes longer than everything else together

    least = minimize_scalar(
        lambda x: size(path.at(k, x)[0]),
        bounds=(-_step(path, k - 1), _step(path, k)),
        method="bounded",
        options={"xatol": 1e-12},
    )
    return float(least.x), float(least.fun)


# -- loops that depend on each other ------------------------------------------------------------------


def _dependent_loops(path: MotionPath, manifold: Manifold) -> list[SingularPosition]:
    """Positions where constraints become dependent: minima of their conditioning that reach zero."""
    positions: list[SingularPosition] = []
    if not manifold.rank:
        return positions
    for k in _local_minima(path, manifold.conditioning(path.q)):
        distance, q = _zero_beside(path, manifold, k)
        if manifold.conditioning(q) < SINGULAR:
            motions = _motions(manifold, manifold.jacobian(q))
            positions.append(SingularPosition("constraint", q, float(path.arc[k] + distance), motions))
    return positions


def _zero_beside(path: MotionPath, manifold: Manifold, k: int) -> tuple[float, np.ndarray]:
    """The distance from the k-th configuration of a path, and the configuration, at which constraints become dependent,
    if any.

    At the distance x from it rounding errors of positions are 1e-16 / x, so that it can be approached to 1e-8 only. It
    is interpolated between positions on both sides that are exact to rounding; the smallest singular value there, with
    its sign changed in the middle, is smooth.
    """

    def size(q: np.ndarray) -> float:
        return float(manifold.conditioning(q))

    middle, least = _least(path, k, size)
    if least > ROUGHLY_SINGULAR:
        return middle, path.at(k, middle)[0]
    nearby = [path.at(k, middle + x)[0] for x in NODES]
    signed = [np.copysign(size(q), x) for x, q in zip(NODES, nearby, strict=True)]
    offset = _root_of(_fit(np.array(signed)))
    moved = np.array([manifold.difference(path.q[k], q) for q in nearby])
    change = np.array([_fit(column)(offset) for column in moved.T])
    return middle + offset, manifold.moved(path.q[k], change)


def _fit(values: np.ndarray) -> Any:
    """The polynomial with these values at the nodes."""
    return np.polynomial.Chebyshev.fit(NODES, values, len(NODES) - 1)


def _root_of(polynomial: Any, iterations: int = 10) -> float:
    """The root next to zero, by Newton's iteration."""
    slope, x = polynomial.deriv(), 0.0
    for _ in range(iterations):
        x -= float(polynomial(x) / slope(x))
    return x
