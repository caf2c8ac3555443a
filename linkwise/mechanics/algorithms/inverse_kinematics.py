"""One iteration of inverse kinematics: residuals of goals and loops, their Jacobian, a damped step within limits.

The iteration is that of Levenberg and Marquardt with the damping of Sugihara ("Solvability-Unconcerned Inverse
Kinematics by the Levenberg-Marquardt Method", IEEE Transactions on Robotics 27, 2011): with residuals e and Jacobian J

    u = u0 + J* (J J* + lambda)^-1 (e - J u0),        lambda = mu |e|^2 / 2

which needs no line search, and converges quadratically as lambda vanishes with e.  After an increase of |e|, mu is
raised for later steps, so that the iteration also converges for targets out of reach.  u0 leads to a preferred posture;
eventually only its part in the null space of J remains.  Coordinates at a limit towards which the gradient J* e pushes
them are held there (the projection of Bertsekas, "Projected Newton methods", SIAM Journal on Control and Optimization
20, 1982).

All quantities are dimensionless: positions and sliding joints are in units of the mechanism's length, which counts as
much as a radian.

Rotations are measured by their rotation vectors: J* e is the gradient of |e|^2 / 2 exactly, and u leads along the
geodesic to the target where J has full rank.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from ...mechanism import Mechanism
from ...mechanism.scales import Scales, constraint_lengths, scales
from ..links.factor import Factor
from ..links.loop_elimination import BIAS
from ..recursions.tree import Configuration, Tree
from ..scalar import Matrix, Scalar, atan2, dot, is_zero, select, sqrt
from ..spatial import IDENTITY, ZERO, Matrix3, Vector3
from ..spatial import quaternion as quat
from ..spatial.pose import beyond
from .centroidal import center_of_mass_jacobian
from .configuration import difference, integrate
from .energy import center_of_mass
from .jacobians import observe
from .kinematics import path_transform
from .loop_constraints import closures

FLOOR = 1e-12  # of the trace of J J*: the least damping, far above its round-off, too small to slow down convergence
RAISE = 4.0  # factor of damping after an increase of the cost
NOISE = 1e-7  # of the cost, errors of 4e-4: a smaller increase leaves damping unchanged
PROGRESS = 6  # length of the progress vector
TARGETS_FIRST, FARTHEST = 1e3, 0.5  # of the posture: half its pull at a cost of 1e-3; radians and lengths in a step


@dataclass(frozen=True)
class Goal:
    """Target of one frame: weights of its position and of its rotation or direction; zero for an absent part.

    axis   of the frame, a unit vector along its own axes, to be aligned with a direction; None for rotations
    """

    frame: str
    position: float = 1.0
    rotation: float = 1.0
    axis: tuple[float, float, float] | None = None

    @property
    def size(self) -> int:
        """Length of the target: a position, then a rotation matrix by rows or a direction, in the world."""
        return 3 * (self.position > 0.0) + (self.rotation > 0.0) * (9 if self.axis is None else 3)


@dataclass(frozen=True)
class CenterOfMassGoal:
    """Goal of the centre of mass: coordinates along ``axes`` of the world (0, 1, 2: x, y, z), and a weight."""

    axes: tuple[int, ...] = (0, 1, 2)
    weight: float = 1.0

    @property
    def size(self) -> int:
        """Length of the target: one coordinate per axis."""
        return len(self.axes)


@dataclass(frozen=True)
class Residuals:
    """Rows of the weighted Jacobian (nv numbers each) and weighted residuals, dimensionless; and squares of distances
    and angles, unweighted."""

    units: Scales
    rows: Matrix = field(default_factory=list)
    errors: list[Scalar] = field(default_factory=list)
    distances: list[Scalar] = field(default_factory=list)
    angles: list[Scalar] = field(default_factory=list)

    def add(self, weight: float, rows: Sequence[Sequence[Scalar]], errors: Sequence[Scalar], lengths: bool) -> None:
        """Add residuals: ``lengths``, or angles."""
        weight = weight / self.units.length if lengths else weight
        of_v = self.units.of_v.tolist()
        self.rows.extend([weight * unit * x for x, unit in zip(row, of_v, strict=True)] for row in rows)
        self.errors.extend(weight * x for x in errors)
        (self.distances if lengths else self.angles).append(dot(errors, errors))


def residuals(
    tree: Tree, q: Sequence[Scalar], goals: Sequence[Goal | CenterOfMassGoal], target: Sequence[Scalar]
) -> Residuals:
    """Residuals of all goals, one after the other, and of the loops; ``target`` concatenates the numbers of all
    goals."""
    residuals_of_targets, numbers = Residuals(scales(tree.mechanism)), iter(target)
    for goal in goals:
        if isinstance(goal, CenterOfMassGoal):
            _add_center_of_mass(residuals_of_targets, tree, q, goal, numbers)
        else:
            _add_frame(residuals_of_targets, tree, q, goal, numbers)
    there = Configuration(tree, q)
    asked = [row for path in there.ways for row in closures(there, path)]
    for row, is_length in zip(asked, constraint_lengths(tree.mechanism).tolist(), strict=True):
        numbers_of_row = [row.numbers.get(k, 0.0) for k in range(tree.mechanism.nv)]
        residuals_of_targets.add(1.0, [numbers_of_row], [-row.numbers[BIAS]], is_length)
    return residuals_of_targets


def _add_frame(residuals: Residuals, tree: Tree, q: Sequence[Scalar], goal: Goal, numbers: Iterator[Scalar]) -> None:
    def three() -> Vector3:
        return Vector3(next(numbers), next(numbers), next(numbers))

    observer = observe(tree, q, goal.frame, "world_aligned")
    jacobian = observer.matrix(observer.columns())
    rotation, position = beyond((IDENTITY, ZERO), path_transform(observer.at, goal.frame))
    if goal.position > 0.0:
        residuals.add(goal.position, jacobian[3:], three() - position, True)
    if goal.rotation > 0.0 and goal.axis is None:
        wanted = Matrix3(three(), three(), three())
        turn = quat.logarithm(quat.from_matrix(wanted.times(rotation.T)))
        residuals.add(goal.rotation, jacobian[:3], turn, False)
    elif goal.rotation > 0.0 and goal.axis is not None:
        across = [rotation @ Vector3(*column) for column in _normals(goal.axis)]
        rows = [[direction.dot(Vector3(*column)) for column in zip(*jacobian[:3], strict=True)] for direction in across]
        turn = _way_of_axis(rotation @ Vector3(*goal.axis), three(), across)
        residuals.add(goal.rotation, rows, [direction.dot(turn) for direction in across], False)


def _add_center_of_mass(
    residuals: Residuals, tree: Tree, q: Sequence[Scalar], goal: CenterOfMassGoal, numbers: Iterator[Scalar]
) -> None:
    center, jacobian = center_of_mass(tree, q), center_of_mass_jacobian(tree, q)
    residuals.add(goal.weight, [jacobian[k] for k in goal.axes], [next(numbers) - center[k] for k in goal.axes], True)


def _normals(axis: Sequence[float]) -> list[list[float]]:
    """Two unit vectors across an axis and each other."""
    first = np.eye(3)[int(np.argmin(np.abs(axis)))]
    second = np.cross(axis, first)
    second /= np.linalg.norm(second)
    return [np.cross(second, axis).tolist(), second.tolist()]


def _way_of_axis(axis: Vector3, wanted: Vector3, across: Sequence[Vector3]) -> Vector3:
    """The shortest rotation vector that takes a unit vector to another; for opposite vectors half a turn about one of
    ``across``."""
    turn, cosine = axis.cross(wanted), axis.dot(wanted)
    square = turn.dot(turn)
    tiny = square < 1e-24
    sine = sqrt(select(tiny, 2.0, square))
    ratio = select(tiny, 1.0, atan2(sine, cosine) / sine)
    back = select(tiny, select(cosine < 0.0, np.pi, 0.0), 0.0)
    return turn * ratio + across[0] * back


def limited_coordinates(mech: Mechanism) -> dict[int, int]:
    """Velocity index -> position index of coordinates with limits: those whose rate is an entry of v."""
    indices: dict[int, int] = {}
    for body in mech.bodies:
        if not body.mimic and body.kind.rates_are_velocities:
            q, v = mech.q_index(body.joint), mech.v_index(body.joint)
            indices.update(zip(range(mech.nv)[v], range(mech.nq)[q], strict=True))
    return indices


def inverse_kinematics_step(
    tree: Tree,
    q: Sequence[Scalar],
    progress: Sequence[Scalar],
    target: Sequence[Scalar],
    limits: Matrix,
    posture: Sequence[Scalar],
    settings: Sequence[Scalar],
    run: Scalar,
    *,
    goals: tuple[Goal | CenterOfMassGoal, ...],
    limited: tuple[int, ...],
    redundant: bool,
) -> tuple[list[Scalar], list[Scalar]]:
    """q after one iteration, and its progress: [distance, iterations, unrest, cost, boost, angle].

    ``distance`` and ``angle`` are the largest residuals at the given q, unweighted; ``iterations`` counts; ``unrest``
    is the length of a step due to the posture alone; ``cost`` is |e|^2 / 2; ``boost`` is the factor of mu.  Start with
    zeros.

    limits     (2, nv): lower and upper, of the coordinates that are ``limited``
    settings   [tolerance of distances, mu, longest step, tolerance of unrest, tolerance of angles]
    redundant  whether a posture is preferred
    run        unused: programs over time have an input per run
    """
    tolerance, mu, longest, calm, tolerance_of_angles = settings
    misses = residuals(tree, q, goals, target)
    mech = tree.mechanism
    positions = limited_coordinates(mech)
    cost = 0.5 * dot(misses.errors, misses.errors)
    boost = _boost(cost, progress[3], progress[4])
    units = misses.units.of_v.tolist()
    step0 = [0.0] * mech.nv
    if redundant:
        pull = difference(tree, q, posture)
        step0 = _pulled([x * (1.0 / unit) for x, unit in zip(pull, units, strict=True)], cost, boost)
    pushes = {k: dot((row[k] for row in misses.rows), misses.errors) for k in limited}
    free = _free([1.0] * mech.nv, pushes, positions, q, limits)
    step = _step(misses, free, step0, mu * boost * cost)
    if redundant:  # coordinates free of targets also stay if the posture step would take them beyond limits
        free = _free(free, {k: step[k] for k in limited}, positions, q, limits)
        step = _step(misses, free, step0, mu * boost * cost)
    length = sqrt(dot(step, step))
    shorter = select(longest < length, longest / select(longest < length, length, 2.0), 1.0)
    distance, angle = (_largest(squares) for squares in (misses.distances, misses.angles))
    unrest = length * boost if redundant else 0.0
    done = select(tolerance < distance, 0.0, select(tolerance_of_angles < angle, 0.0, 1.0))
    done = done * select(calm < unrest, 0.0, 1.0) if redundant else done
    moving = 1.0 - done
    moved = integrate(tree, q, [unit * x for unit, x in zip(units, step, strict=True)], shorter * moving)
    for k in limited:
        at = positions[k]
        lower, upper = limits[0][k], limits[1][k]
        moved[at] = select(moved[at] < lower, lower, select(upper < moved[at], upper, moved[at]))
    q_next = [select(done > 0.5, old, new) for old, new in zip(q, moved, strict=True)]
    return q_next, [distance, progress[1] + moving, unrest, cost, boost, angle]


def _largest(squares: Sequence[Scalar]) -> Scalar:
    """The root of the largest square; zero without squares."""
    if not squares:
        return 0.0
    largest = squares[0]
    for square in squares[1:]:
        largest = select(largest < square, square, largest)
    return sqrt(largest)


def _pulled(step: Sequence[Scalar], cost: Scalar, boost: Scalar) -> list[Scalar]:
    """The part of the posture step to take: small far from the targets, bounded by the range of the linear model, and
    smaller after steps that repeatedly increased the target error through curvature.
    """
    length = sqrt(dot(step, step) + 1e-30)
    share = 1.0 / (boost * (1.0 + TARGETS_FIRST * cost))
    share = share * select(FARTHEST < length, FARTHEST / select(FARTHEST < length, length, 2.0), 1.0)
    return [x * share for x in step]


def _boost(cost: Scalar, cost_before: Scalar, before: Scalar) -> Scalar:
    """Factor of mu: larger after an increase of the cost, smaller after a decrease."""
    less = select(before < 2.0, 1.0, 0.5 * before)
    return select(cost_before > 0.0, select(cost_before + NOISE < cost, RAISE * before, less), 1.0)


def _free(
    free: Sequence[Scalar], pushes: dict[int, Scalar], positions: dict[int, int], q: Sequence[Scalar], limits: Matrix
) -> list[Scalar]:
    """(nv,): 0 for coordinates at a limit and pushed beyond it, unchanged for others."""
    share = list(free)
    for k, push in pushes.items():
        if is_zero(push):
            continue
        x, lower, upper = q[positions[k]], limits[0][k], limits[1][k]
        down = select(lower < x, free[k], select(push < 0.0, 0.0, free[k]))
        share[k] = select(x < upper, down, select(push > 0.0, 0.0, free[k]))
    return share


def _step(misses: Residuals, free: Sequence[Scalar], step0: Sequence[Scalar], damping: Scalar) -> list[Scalar]:
    """u0 + J* (J J* + lambda)^-1 (e - J u0) over the free coordinates, by the smaller of J J* and J* J."""
    rows = [[x * f for x, f in zip(row, free, strict=True)] for row in misses.rows]
    step0 = [x * f for x, f in zip(step0, free, strict=True)]
    errors = misses.errors
    m, n = len(rows), len(rows[0])
    missing = [e - dot(row, step0) for e, row in zip(errors, rows, strict=True)]
    columns = [list(column) for column in zip(*rows, strict=True)]
    sides = rows if m <= n else columns
    matrix = [[dot(a, b) for b in sides[: i + 1]] for i, a in enumerate(sides)]
    trace = sum(row[-1] for row in matrix)
    shift = damping + trace * FLOOR
    full = [[matrix[max(i, j)][min(i, j)] for j in range(len(sides))] for i in range(len(sides))]
    for i in range(len(sides)):
        full[i][i] = full[i][i] + shift
    factor = Factor.of(full)
    if m <= n:
        multipliers = factor.solve(missing)
        return [u + dot(column, multipliers) for u, column in zip(step0, columns, strict=True)]
    solved = factor.solve([dot(column, missing) for column in columns])
    return [u + x for u, x in zip(step0, solved, strict=True)]
