"""Gains of the filter without covariances: square roots A of P = A A* go from tip to base (rodriguez1986 Section 12).

Across a joint with H, a reflection combines the row A* H and the deviation r of the measurement into one number,
D^(1/2).  Applied to A it gives A+ with P+ = A+ A+*, and G = A (A* H) / D (Potter's form).  At a link, reflections
reduce the columns of all children and of its own inertia to six.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...mechanism import MechanismError
from ..recursions.sweep import tip_to_base
from ..recursions.tree import Configuration, Tree
from ..scalar import Matrix, Scalar, is_constant, is_zero, select, sqrt
from ..spatial import Force, RigidInertia, Vector3
from .algorithm import UNCONSTRAINED, algorithm

REASON = "covariances: a second recursion outward beside that of the co-states, which no operator names"

Root = list[Force]  # the columns of A


@algorithm(("q", "deviations"), "gains_and_variances", reason=REASON, requires=UNCONSTRAINED, sweeps=True)
def filter_gains(tree: Tree, q, deviations) -> Matrix:
    """(nv, 7): the gain of each degree of freedom in the link's frame, and its innovation variance."""
    require_independent_joints(tree)
    at, noises = Configuration(tree, q), tree.per_joint(deviations)

    def step(i: int, outer: list[Root]) -> tuple[list[list[Scalar]], Root]:
        root = triangular(
            [*square_root(tree.links[i].inertia), *(column for root_columns in outer for column in root_columns)]
        )
        gains, kinematics = [], at.joint_kinematics[i]
        for h, deviation in zip(kinematics.motion, noises[i], strict=True):
            gain, variance, root = update(root, [column.dot(h) for column in root], deviation)
            gains.append([*tree.links[i].user.force_into(gain).flat(), variance])
        return gains, [kinematics.transform.force_back(column) for column in root]

    rows, _ = tip_to_base(tree.links, "gains, by square roots", step)
    return [row for joint in rows for row in joint]


def require_independent_joints(tree: Tree) -> None:
    """Refuse joints that mimic others."""
    mech = tree.mechanism
    if mech.coordinates.mimic_joints:
        mimicked = dict.fromkeys(body.mimic.joint for body in mech.bodies if body.mimic)
        locked = ", ".join(f"{joint}={mech.initial[mech.q_index(joint)][0]:g}" for joint in mimicked)
        raise MechanismError(
            f"estimation takes one joint at a time, and in mechanism {mech.name!r} some mimic others "
            f"({', '.join(mech.coordinates.mimic_joints)}): lock the mimicked joints where they are, such as "
            f"mech.with_locked({locked}), or load the mechanism with its mimic joints free, linkwise.load(..., "
            "mimic=False)"
        )


def update(root: Root, row: Sequence[Scalar], deviation: Scalar) -> tuple[Force, Scalar, Root]:
    """Gain, innovation variance and the root beyond a degree of freedom with the row A* h."""
    variance = deviation * deviation
    weighted = None
    for column, x in zip(root, row, strict=True):
        variance = variance + x * x
        weighted = column * x if weighted is None else weighted + column * x
    assert weighted is not None
    length = sqrt(variance)
    gain = weighted * (1.0 / variance)
    scaled = weighted * (1.0 / (variance + length * deviation))
    return gain, variance, [column - scaled * x for column, x in zip(root, row, strict=True)]


def triangular(columns: Root) -> Root:
    """Six columns with the same A A*, by reflections."""
    rows = [list(row) for row in zip(*(column.flat() for column in columns), strict=True)]
    for i in range(6):
        if all(is_zero(x) for x in rows[i][i + 1 :]):
            continue
        square: Scalar = 0.0
        for x in rows[i][i:]:
            square = square + x * x
        length = sqrt(square)
        first = rows[i][i]
        if is_constant(first):
            length = length if first >= 0.0 else -length
        else:
            length = select(first < 0.0, -length, length)
        mirror = [first + length, *rows[i][i + 1 :]]
        half = length * mirror[0]  # half the square of the mirror's length
        inverse = 1.0 / half if is_constant(half) else 1.0 / select(half > 0.0, half, 1.0)
        for k in range(i, 6):
            part: Scalar = 0.0
            for x, y in zip(rows[k][i:], mirror, strict=True):
                part = part + x * y
            part = part * inverse
            rows[k][i:] = [x - part * y for x, y in zip(rows[k][i:], mirror, strict=True)]
        rows[i][i + 1 :] = [0.0] * (len(columns) - i - 1)
    return [Force.of(column) for column in list(zip(*rows, strict=True))[:6]]


def square_root(inertia: RigidInertia) -> Root:
    """Six columns of a square root of a spatial inertia: mass at its centre, and rotational inertia about it."""
    columns = []
    rotational = [[inertia.moment.entry(i, j) for j in range(3)] for i in range(3)]
    if not is_zero(inertia.mass):
        root = sqrt(inertia.mass)
        first = inertia.h * (1.0 / root)
        for axis in range(3):
            unit = Vector3(*(1.0 if k == axis else 0.0 for k in range(3)))
            columns.append(Force(first.cross(unit), unit * root))
        square = first.dot(first)
        for i in range(3):
            for j in range(3):
                rotational[i][j] = rotational[i][j] + first[i] * first[j] - (square if i == j else 0.0)
    return [*columns, *(Force(column, Vector3(0.0, 0.0, 0.0)) for column in cholesky(rotational))]


def cholesky(matrix: Matrix) -> list[Vector3]:
    """Columns of the lower factor of a positive semidefinite matrix; columns of pivots that vanish up to round-off are
    omitted."""
    columns = []
    scale = sum((abs(matrix[k][k]) for k in range(3) if is_constant(matrix[k][k])), 0.0)
    for k in range(3):
        pivot = matrix[k][k]
        if is_constant(pivot) and pivot <= 1e-14 * scale:
            continue
        root = sqrt(pivot)
        column = [0.0 if i < k else matrix[i][k] * (1.0 / root) for i in range(3)]
        matrix = [[matrix[i][j] - column[i] * column[j] for j in range(3)] for i in range(3)]
        columns.append(Vector3(*column))
    return columns
