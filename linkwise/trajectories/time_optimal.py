"""The fastest motion along a path within bounds of torques, velocities and accelerations.

With x = (ds/dt)^2 and u = d2s/dt2 all bounds at a point of the path are linear in (u, x): joint forces are

    tau = m u + b x + c,    c = ID(q, 0, 0),    m = ID(q, 0, q') - c,    b = ID(q, q', q'') - c

with inverse dynamics ID, which is compiled and evaluated for all points at once.  Between points u is constant:
x' = x + 2 u ds.  Backward from the end, the values of x from which the end can be reached are an interval at each
point, whose ends are two linear programs in two unknowns; forward from the start, the largest u that stays in these
intervals is the fastest (Pham and Pham, "A New Approach to Time-Optimal Path Parameterization Based on Reachability
Analysis", IEEE Transactions on Robotics 34, 2018).  Bounds are kept at both ends of every step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..constraints.decomposition import times
from ..constraints.equations import (
    constraint_bias,
    constraint_jacobian,
    counted_jacobian,
    decomposed_jacobian,
    opening_rates,
)
from ..constraints.redundancy import closable_error
from ..constraints.sizes import sizes
from ..constraints.tolerances import LOOPS
from ..dynamics.actuation import motors_of, shared_by_motors
from ..dynamics.by_joint import numbers_per_velocity
from ..dynamics.states import Float64Array
from ..dynamics.trees import inverse_dynamics
from ..mechanism import Mechanism, MechanismError
from .motions import Motion
from .paths import Path

FASTEST = 1e8  # of x, where nothing else bounds it, in units of the bounds
SLACK = 1e-9  # by which the unknowns of a linear program may miss a constraint, relative
DEPARTURE = 0.05  # of velocities: a path whose derivatives open constraints faster is not meant to keep them
PARALLEL = 1e-12  # sine of an angle between lines that have no common point


class InfeasiblePathError(MechanismError):
    """No motion along a path keeps within the bounds."""


@dataclass(frozen=True)
class _Bounds:
    """Bounds at every place: rows [a, b] and right sides h of a u + b x <= h, of length one or zero; and the largest x.
    Right sides and x are in units of ``unit``, the largest of all bounds."""

    rows: np.ndarray  # (points, n, 2)
    right: np.ndarray  # (points, n)
    largest: np.ndarray  # (points,)
    unit: float


def time_optimal(
    path: Path | Motion,
    effort: Any = None,
    velocity: Any = None,
    acceleration: Any = None,
    points: int = 400,
    actuated: Sequence[str] | np.ndarray | None = None,
) -> Motion:
    """The fastest motion along ``path`` (of a ``Motion``: along its path), from rest to rest.

    effort         bounds of joint forces, in both directions: one number, (nv,), {joint: number}; None: the effort
                   limits of the joints
    velocity       bounds of joint velocities likewise; None: the velocity limits of the joints
    acceleration   bounds of joint accelerations likewise; None: none
    points         steps along the path, in each of which d2s/dt2 is constant

    actuated       joints with a motor, or nv booleans; by default as in ``joint_feedback``

    Mechanisms with constraints need a path that keeps them, such as a spline through many closed configurations. Bounds
    of joint forces are then bounds of the motors; motors in excess of degrees of freedom share the load with the least
    forces, although other shares might allow faster motions.

    Joint forces are those of ``inverse_dynamics``: gravity and inertia, without other force elements. If they are
    bounded, every joint needs a motor: a floating base has none.
    """
    path = path.path if isinstance(path, Motion) else path
    if not isinstance(path, Path):
        raise TypeError(f"path must be a linkwise.trajectories.Path or Motion, got {path!r}")
    if not (isinstance(points, int) and points >= 2):
        raise ValueError(f"points must be a whole number from 2 on, got {points!r}")
    mech = path.mechanism

    def bounds(name: str, value: Any, otherwise: np.ndarray) -> Float64Array:
        return otherwise if value is None else numbers_per_velocity(mech, name, value, np.inf, positive=True)

    efforts = bounds("effort", effort, mech.limits.effort)
    motors: tuple[str, ...] = ()
    if mech.constraints.driven:
        raise MechanismError(
            f"time_optimal: a drive ({', '.join(map(repr, mech.constraints.driven))}) prescribes when mechanism "
            f"{mech.name!r} is where, so that no motion along a path is faster than another: plan for "
            "mech.constraints.without_drives()"
        )
    if np.isfinite(efforts).any():
        instead = "effort=np.inf plans within bounds of velocities and accelerations alone"
        motors = motors_of(mech, "time_optimal", actuated, instead).names
        efforts = np.where(np.isin(mech.coordinates.names("v"), motors), efforts, np.inf)
    velocities = bounds("velocity", velocity, mech.limits.velocity)
    accelerations = bounds("acceleration", acceleration, np.full(mech.nv, np.inf))
    if not np.isfinite(np.concatenate([efforts, velocities, accelerations])).any():
        raise MechanismError(
            "no joint has an effort or velocity limit: give effort=..., velocity=... or acceleration=..."
        )
    grid = np.linspace(path.start, path.end, points + 1)
    limits = _bounds(path, grid, efforts, velocities, accelerations, motors)
    lower, upper = _controllable(mech, grid, limits)
    x, u = _fastest(grid, limits, lower, upper)
    return _motion(path, grid, limits.unit * x, limits.unit * u)


def _bounds(
    path: Path,
    grid: np.ndarray,
    efforts: np.ndarray,
    velocities: np.ndarray,
    accelerations: np.ndarray,
    motors: tuple[str, ...] = (),
) -> _Bounds:
    mech = path.mechanism
    q, first, second = path(grid)
    still = np.zeros_like(first)
    first, second = _constrained_derivatives(mech, grid, q, first, second)

    def forces(v: np.ndarray, a: np.ndarray) -> np.ndarray:
        load = inverse_dynamics(mech.spanning_tree, q, v, a)
        return shared_by_motors(mech, q, load, motors) if motors else load

    weight = forces(still, still)
    _refuse_dead_centres(mech, grid, weight, motors)
    by_u = forces(still, first) - weight
    by_x = forces(first, second) - weight
    _refuse_weights(mech, grid, weight, efforts)
    limited, fast = np.isfinite(efforts), np.isfinite(accelerations)
    a = np.concatenate([by_u[:, limited], -by_u[:, limited], first[:, fast], -first[:, fast]], axis=-1)
    b = np.concatenate([by_x[:, limited], -by_x[:, limited], second[:, fast], -second[:, fast]], axis=-1)
    room = [efforts - weight, efforts + weight]
    right = np.concatenate([*(x[:, limited] for x in room), *[np.tile(accelerations[fast], (len(grid), 1))] * 2], -1)
    size = np.hypot(a, b)
    size = np.where(size > 0.0, size, 1.0)
    with np.errstate(divide="ignore"):
        largest = np.min((velocities / np.abs(first)) ** 2, axis=-1, initial=np.inf)
    right = right / size
    unit = (
        float(np.abs(right).max(initial=0.0)) or float(np.max(largest, where=np.isfinite(largest), initial=0.0)) or 1.0
    )
    return _Bounds(np.stack([a / size, b / size], axis=-1), right / unit, np.minimum(largest / unit, FASTEST), unit)


def _constrained_derivatives(
    mech: Mechanism, grid: np.ndarray, q: np.ndarray, first: np.ndarray, second: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """First and second derivatives of a path projected to the constraints, G q' = 0 and G q'' = -dG/dt q'. A spline
    through assembled configurations departs from them slightly.
    """
    jacobian = constraint_jacobian(mech, q)
    errors = np.abs(closable_error(mech, q) * sizes(mech).rows)
    opening, bound = opening_rates(mech, jacobian, first, first, DEPARTURE)
    left = (errors.max(axis=-1, initial=0.0) > LOOPS.open_by_mistake) | (opening > bound).any(axis=-1)
    if left.any():
        k = int(np.argmax(left))
        raise MechanismError(
            f"at s = {grid[k]:.4g} the path leaves the constraints of mechanism {mech.name!r}: give it more "
            "waypoints that keep them (linkwise.constraints.assemble, linkwise.constraints.project)"
        )
    svd = decomposed_jacobian(mech, counted_jacobian(mech, q))
    first = first - svd.solve(times(jacobian, first))
    return first, second - svd.solve(times(jacobian, second) + constraint_bias(mech, q, first))


def _refuse_dead_centres(mech: Mechanism, grid: np.ndarray, weight: np.ndarray, motors: tuple[str, ...]) -> None:
    unknown = np.isnan(weight).any(axis=-1)
    if unknown.any():
        k = int(np.argmax(unknown))
        raise InfeasiblePathError(
            f"at s = {grid[k]:.4g} of the path the motors of mechanism {mech.name!r} "
            f"({', '.join(map(repr, motors))}) cannot move it in all directions: actuate others, or plan another path"
        )


def _refuse_weights(mech: Mechanism, grid: np.ndarray, weight: np.ndarray, efforts: np.ndarray) -> None:
    heavy = np.abs(weight) > efforts
    if heavy.any():
        k, j = (int(i) for i in np.argwhere(heavy)[0])
        name = mech.coordinates.names("v")[j]
        raise InfeasiblePathError(
            f"at s = {grid[k]:.4g} of the path joint {name!r} needs {abs(weight[k, j]):.4g} to hold still, and its "
            f"effort limit is {efforts[j]:.4g}: raise it, or plan another path"
        )


def _controllable(mech: Mechanism, grid: np.ndarray, bounds: _Bounds) -> tuple[np.ndarray, np.ndarray]:
    """(points,) each: the least and the largest x from which the end can be reached at rest."""
    lower, upper = np.zeros(len(grid)), np.zeros(len(grid))
    for k in reversed(range(len(grid) - 1)):
        rows, right = _step_constraints(grid, bounds, k, lower[k + 1], upper[k + 1])
        interval = _range_of_x(rows, right)
        if interval is None:
            raise InfeasiblePathError(
                f"near s = {grid[k]:.4g} of the path of mechanism {mech.name!r} no motion keeps within bounds and "
                "comes to rest at its end: raise them, plan another path, or take more points"
            )
        lower[k], upper[k] = max(interval[0], 0.0), max(interval[1], 0.0)
    if lower[0] > SLACK:
        raise InfeasiblePathError(
            f"a motion of mechanism {mech.name!r} that starts at rest does not keep within bounds: raise them, or plan "
            "another path"
        )
    return lower, upper


def _step_constraints(
    grid: np.ndarray, bounds: _Bounds, k: int, least: float, most: float
) -> tuple[np.ndarray, np.ndarray]:
    """Rows and right sides of the constraints on a step from grid point k: bounds at both ends, and x' between
    ``least`` and ``most`` at the second.
    """
    twice = 2.0 * (grid[k + 1] - grid[k])
    ahead = bounds.rows[k + 1] @ np.array([[1.0, 0.0], [twice, 1.0]])
    step_rows = np.array([[0.0, -1.0], [0.0, 1.0], [-twice, -1.0], [twice, 1.0]])
    right = np.array([0.0, bounds.largest[k], -least, most])
    return np.concatenate([bounds.rows[k], ahead, step_rows]), np.concatenate(
        [bounds.right[k], bounds.right[k + 1], right]
    )


def _range_of_x(rows: np.ndarray, right: np.ndarray) -> tuple[float, float] | None:
    """The smallest and largest x of all (u, x) with rows (u, x) <= right, at intersections of two lines; None if
    infeasible.
    """
    used = np.abs(rows).sum(axis=-1) > 0.0
    if (right[~used] < 0.0).any():
        return None
    rows, right = rows[used], right[used]
    size = np.hypot(rows[:, 0], rows[:, 1])
    rows, right = rows / size[:, None], right / size
    i, j = np.triu_indices(len(rows), 1)
    cross = rows[i, 0] * rows[j, 1] - rows[i, 1] * rows[j, 0]
    meet = np.abs(cross) > PARALLEL
    i, j, cross = i[meet], j[meet], cross[meet]
    u = (right[i] * rows[j, 1] - right[j] * rows[i, 1]) / cross
    x = (rows[i, 0] * right[j] - rows[j, 0] * right[i]) / cross
    over = rows[:, :1] * u + rows[:, 1:] * x - right[:, None]
    inside = (over <= SLACK * (1.0 + np.abs(u) + np.abs(x))).all(axis=0)
    return (float(x[inside].min()), float(x[inside].max())) if inside.any() else None


def _fastest(grid: np.ndarray, bounds: _Bounds, lower: np.ndarray, upper: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """x (points,) and u (points - 1,) with the largest u that can still come to rest at the end."""
    x, u = np.zeros(len(grid)), np.zeros(len(grid) - 1)
    for k in range(len(u)):
        rows, right = _step_constraints(grid, bounds, k, lower[k + 1], upper[k + 1])
        left = right - rows[:, 1] * x[k]
        rising = rows[:, 0] > PARALLEL
        u[k] = np.min(left[rising] / rows[rising, 0])
        ahead = np.clip(x[k] + 2.0 * u[k] * (grid[k + 1] - grid[k]), lower[k + 1], upper[k + 1])
        x[k + 1] = ahead
        u[k] = (x[k + 1] - x[k]) / (2.0 * (grid[k + 1] - grid[k]))
    return x, u


def _motion(path: Path, grid: np.ndarray, x: np.ndarray, u: np.ndarray) -> Motion:
    speed = np.sqrt(x)
    together = speed[:-1] + speed[1:]
    if not (together > 0.0).all():
        k = int(np.argmin(together > 0.0))
        raise InfeasiblePathError(f"at s = {grid[k]:.4g} of the path the bounds allow no motion: raise them")
    times = np.concatenate([[0.0], np.cumsum(2.0 * np.diff(grid) / together)])
    return Motion(path, float(times[-1]), _InSteps(times, grid, speed, u))


@dataclass(frozen=True, eq=False)
class _InSteps:
    """A law of time whose d2s/dt2, u, is constant in every step; s, ds/dt are ``parameter``, ``speed`` at ``times``."""

    times: np.ndarray
    parameter: np.ndarray
    speed: np.ndarray
    u: np.ndarray

    def __call__(self, t: np.ndarray) -> tuple[Float64Array, Float64Array, Float64Array]:
        inside = np.where((t >= 0.0) & (t <= self.times[-1]), 1.0, 0.0)
        at = np.clip(t, 0.0, self.times[-1])
        k = np.clip(np.searchsorted(self.times, at, side="right") - 1, 0, len(self.u) - 1)
        since, u, speed = at - self.times[k], self.u[k], self.speed[k]
        return self.parameter[k] + since * (speed + 0.5 * u * since), inside * (speed + u * since), inside * u
