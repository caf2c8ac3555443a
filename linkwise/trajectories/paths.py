"""Paths on the configuration manifold of any joints: polynomials in the tangent space at each of their knots.

Between two knots the path is q(s) = integrate(q_k, x(s), 1) with a polynomial x.  Where v is not dq/ds (rotations that
are free), x' = D v and x'' = D a + b, with D and b of ``difference(q_k, q)`` (``difference_jacobian`` and
``difference_bias`` among the algorithms): so pieces meet with equal velocities and accelerations, for all joints.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import solve_banded

from ..compiler.store import float64_function
from ..dynamics.by_joint import configuration_by_joint
from ..dynamics.position_limits import beyond_limits
from ..dynamics.states import Float64Array, real_numbers
from ..dynamics.trees import difference, integrate
from ..mechanism import LimitWarning, Mechanism, MechanismError, require_mechanism, warn_caller
from ..mechanism.quaternions import with_unit_quaternions

LOOKS = 9  # places of a piece of a spline at which limits are looked at

#: Coefficients of the quintic x(h y), y from 0 to 1, by x', x'' at its ends (times h, h^2) and x(h); x(0) = 0.
HERMITE = np.linalg.inv(
    np.array(
        [
            [1.0, 0.0, 0.0, 0.0, 0.0],
            [0.0, 2.0, 0.0, 0.0, 0.0],
            [1.0, 1.0, 1.0, 1.0, 1.0],
            [1.0, 2.0, 3.0, 4.0, 5.0],
            [0.0, 2.0, 6.0, 12.0, 20.0],
        ]
    )
)


@dataclass(frozen=True, eq=False)
class Path:
    """A curve of configurations over the parameter s, twice differentiable.

    knots          (n + 1,): parameters at the ends of the pieces, growing
    q              (n, nq): configurations at the beginning of the pieces
    coefficients   (n, 5, nv): x(s) = sum over k of coefficients[k - 1] (s - knot)^k, k from 1 to 5
    """

    mechanism: Mechanism
    knots: Float64Array
    q: Float64Array
    coefficients: Float64Array

    @property
    def start(self) -> float:
        return float(self.knots[0])

    @property
    def end(self) -> float:
        return float(self.knots[-1])

    def __call__(self, s: ArrayLike) -> tuple[Float64Array, Float64Array, Float64Array]:
        """q (..., nq) and its first and second derivatives by s, along tangents (..., nv); constant beyond the path's
        ends.
        """
        at = np.clip(real_numbers("s", s), self.start, self.end)
        piece = np.clip(np.searchsorted(self.knots, at, side="right") - 1, 0, len(self.q) - 1)
        y = (at - self.knots[piece])[..., None]
        c = np.moveaxis(self.coefficients[piece], -2, 0)
        x = y * (c[0] + y * (c[1] + y * (c[2] + y * (c[3] + y * c[4]))))
        first = c[0] + y * (2.0 * c[1] + y * (3.0 * c[2] + y * (4.0 * c[3] + y * 5.0 * c[4])))
        second = 2.0 * c[1] + y * (6.0 * c[2] + y * (12.0 * c[3] + y * 20.0 * c[4]))
        start = self.q[piece]
        q = integrate(self.mechanism, start, x, 1.0)
        if self.mechanism.coordinates.rates_are_velocities:
            return q, first, second
        jacobian = float64_function(self.mechanism, "difference_jacobian")(start, q)
        v = np.linalg.solve(jacobian, first[..., None])[..., 0]
        bias = float64_function(self.mechanism, "difference_bias")(start, q, v)
        return q, v, np.linalg.solve(jacobian, (second - bias)[..., None])[..., 0]


def line(mech: Mechanism, q0: Any, q1: Any) -> Path:
    """The path from q0 to q1 with constant velocity while s goes from 0 to 1: straight for ordinary coordinates, the
    shortest rotation and a screw for joints that move freely.  Both are configurations (nq,), {joint: coordinates} or
    None for ``mech.initial``.  Joints that are not named are as in ``mech.initial`` for q0, and as in q0 for q1."""
    require_mechanism(mech)
    first = _configurations(mech, "q0", _configuration_of(mech, "q0", q0, mech.initial), 1)
    last = _configurations(mech, "q1", _configuration_of(mech, "q1", q1, first), 1)
    coefficients = np.zeros((1, 5, mech.nv))
    coefficients[0, 0] = difference(mech, first, last)
    _warn_beyond_limits(mech, np.array([first, last]))
    return Path(mech, np.array([0.0, 1.0]), first[None], coefficients)


def spline(
    mech: Mechanism,
    waypoints: Any,
    at: Any = None,
    velocities: Any = None,
    accelerations: Any = None,
) -> Path:
    """A twice differentiable path through configurations (n, nq), for any joints. A waypoint may be {joint:
    coordinates}; other joints keep the previous waypoint, initially ``mech.initial``.

    at              (n,): the parameter (or time) of each, growing; by default proportional to distances, from 0 to 1
    velocities      (2, nv): derivatives at both ends; or (n, nv): at every waypoint.  By default zero at the ends if
                    ``at`` are times; else of zero curvature at the ends (the natural spline)
    accelerations   (n, nv): second derivatives at every waypoint, together with all velocities

    By default it is the cubic spline of ordinary coordinates. For rotations the same equations are solved for tangent
    vectors; pieces are then of fifth degree, with equal derivatives at waypoints.
    """
    require_mechanism(mech)
    q = _configurations(mech, "waypoints", _all_by_joint(mech, waypoints), 2)
    if len(q) < 2:
        raise MechanismError(f"a spline goes through two waypoints or more, got {len(q)}")
    increments = difference(mech, q[:-1], q[1:])
    knots = _knots(increments, at)
    n = len(q)
    if velocities is None and at is not None:
        velocities = np.zeros((2, mech.nv))
    rates = None if velocities is None else real_numbers("velocities", velocities)
    if rates is not None and rates.shape not in ((2, mech.nv), (n, mech.nv)):
        raise MechanismError(
            f"velocities must have shape (2, {mech.nv}), at the ends, or ({n}, {mech.nv}), got {rates.shape}"
        )
    all_given = rates is not None and rates.shape == (n, mech.nv)
    v = rates if all_given and rates is not None else _spline_velocities(np.diff(knots), increments, rates)
    if accelerations is None:
        a = _spline_accelerations(np.diff(knots), increments, v)
    else:
        a = real_numbers("accelerations", accelerations)
        if a.shape != (n, mech.nv) or not all_given:
            raise MechanismError(
                f"accelerations ({n}, {mech.nv}) go with velocities ({n}, {mech.nv}) at every waypoint"
            )
    path = Path(mech, knots, q[:-1], _pieces(mech, q, np.diff(knots), increments, v, a))
    if any(
        np.isfinite([*body.limits.lower, *body.limits.upper]).any() for body in mech.bodies
    ):  # between waypoints too, where splines swing out
        within = np.linspace(0.0, 1.0, LOOKS)
        _warn_beyond_limits(mech, path((knots[:-1, None] + np.diff(knots)[:, None] * within).ravel())[0])
    return path


def _warn_beyond_limits(mech: Mechanism, q: np.ndarray) -> None:
    """One warning that names joints which configurations (n, nq) of a path take beyond their limits, and how far."""
    beyond = beyond_limits(mech, q)
    if beyond:
        warn_caller(
            f"the path of mechanism {mech.name!r} leaves joint limits: {beyond}; it is planned as asked: give other "
            "configurations, or other limits (mech.with_limits)",
            LimitWarning,
        )


def _knots(increments: np.ndarray, at: Any) -> np.ndarray:
    if at is None:
        lengths = np.linalg.norm(increments, axis=-1)
        if not (lengths > 0.0).all():
            k = int(np.argmin(lengths > 0.0))
            raise MechanismError(f"waypoints {k} and {k + 1} are equal: leave one out, or give the times with at=...")
        return np.concatenate([[0.0], np.cumsum(lengths) / lengths.sum()])
    knots = real_numbers("at", at)
    if knots.shape != (len(increments) + 1,) or not (np.diff(knots) > 0.0).all() or not np.isfinite(knots).all():
        raise MechanismError(f"at must be {len(increments) + 1} growing numbers, one for each waypoint, got {at!r}")
    return knots


def _spline_velocities(h: np.ndarray, increments: np.ndarray, ends: np.ndarray | None) -> np.ndarray:
    """(n, nv): velocities of a cubic spline with given end velocities, or zero curvature at its ends."""
    n = len(h) + 1
    slopes = increments / h[:, None]
    band = np.zeros((3, n))
    band[1, [0, -1]] = 1.0
    right = np.empty((n, increments.shape[-1]))
    if ends is None:
        band[1, [0, -1]], band[0, 1], band[2, -2] = 2.0, 1.0, 1.0
        right[0], right[-1] = 3.0 * slopes[0], 3.0 * slopes[-1]
    else:
        right[0], right[-1] = ends
    band[1, 1:-1] = 2.0 * (h[:-1] + h[1:])
    band[0, 2:], band[2, :-2] = h[:-1], h[1:]
    right[1:-1] = 3.0 * (h[1:, None] * slopes[:-1] + h[:-1, None] * slopes[1:])
    return solve_banded((1, 1), band, right)


def _spline_accelerations(h: np.ndarray, increments: np.ndarray, v: np.ndarray) -> np.ndarray:
    """(n, nv): accelerations of the cubic pieces with these velocities; at inner knots the mean of both sides."""
    slopes, steps = increments / h[:, None], h[:, None]
    first = (6.0 * slopes - 4.0 * v[:-1] - 2.0 * v[1:]) / steps
    last = (-6.0 * slopes + 2.0 * v[:-1] + 4.0 * v[1:]) / steps
    return np.concatenate([first[:1], 0.5 * (first[1:] + last[:-1]), last[-1:]])


def _pieces(
    mech: Mechanism, q: np.ndarray, h: np.ndarray, increments: np.ndarray, v: np.ndarray, a: np.ndarray
) -> np.ndarray:
    """(n - 1, 5, nv): coefficients of the quintic pieces with these velocities and accelerations at their ends."""
    v_end, a_end = v[1:], a[1:]
    if not mech.coordinates.rates_are_velocities:
        jacobian = float64_function(mech, "difference_jacobian")(q[:-1], q[1:])
        bias = float64_function(mech, "difference_bias")(q[:-1], q[1:], v_end)
        v_end = (jacobian @ v_end[..., None])[..., 0]
        a_end = (jacobian @ a_end[..., None])[..., 0] + bias
    step = h[:, None]
    ends = np.stack([step * v[:-1], step**2 * a[:-1], increments, step * v_end, step**2 * a_end], axis=1)
    powers = h[:, None, None] ** -np.arange(1.0, 6.0)[:, None]
    return (HERMITE @ ends) * powers


def _configuration_of(mech: Mechanism, name: str, value: Any, before: np.ndarray) -> Any:
    """A configuration by joint, with joints that are left out as in ``before``; None is the initial one."""
    if value is None:
        return mech.initial
    return configuration_by_joint(mech, name, value, before) if isinstance(value, Mapping) else value


def _all_by_joint(mech: Mechanism, waypoints: Any) -> Any:
    if not (
        isinstance(waypoints, Sequence)
        and any(waypoint is None or isinstance(waypoint, Mapping) for waypoint in waypoints)
    ):
        return waypoints
    configurations, before = [], mech.initial
    for k, waypoint in enumerate(waypoints):
        before = real_numbers(f"waypoint {k}", _configuration_of(mech, f"waypoint {k}", waypoint, before))
        configurations.append(before)
    return configurations


def _configurations(mech: Mechanism, name: str, value: Any, axes: int) -> Float64Array:
    require_mechanism(mech)
    q = real_numbers(name, value)
    if q.ndim != axes or q.shape[-1] != mech.nq:
        shape = f"({mech.nq},)" if axes == 1 else f"(n, {mech.nq})"
        raise MechanismError(f"{name} must be numbers of shape {shape} for mechanism {mech.name!r}, got {q.shape}")
    wrong = np.argwhere(~np.isfinite(q))
    if len(wrong):
        index = tuple(wrong[0].tolist())
        raise MechanismError(f"{name} must be finite, and has {q[index]} at [{', '.join(map(str, index))}]")
    return with_unit_quaternions(mech, name, q)
