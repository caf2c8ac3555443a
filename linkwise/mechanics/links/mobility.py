"""Mobilities: the response of a link to a force on it, as a symmetric 6x6 matrix from forces to motions."""

from __future__ import annotations

from ..scalar import Scalar
from ..spatial import ArticulatedInertia, Force, Motion, Transform
from .articulation import Articulation

Matrix6 = tuple[tuple[Scalar, ...], ...]

IMMOBILE: Matrix6 = ((0.0,) * 6,) * 6


def propagate_mobility(change: Transform, mobility: Matrix6) -> Matrix6:
    """X Y X*: with angular and linear parts exchanged, a mobility changes frames like an inertia backwards."""
    swapped = ArticulatedInertia.from_entries(lambda i, j: mobility[(i + 3) % 6][(j + 3) % 6])
    moved = change.inverse().inertia_back(swapped)
    return tuple(tuple(moved.entry((i + 3) % 6, (j + 3) % 6) for j in range(6)) for i in range(6))


def free_joint(joint: Articulation, mobility: Matrix6) -> Matrix6:
    """T Y T* + H* D^-1 H with T = I - H* G*: the mobility beyond a free joint."""
    motions = [h.flat() for h in joint.kinematics.motion]
    gains = [g.flat() for g in joint.gain]
    n = len(motions)
    seen = [[sum(mobility[i][k] * gains[m][k] for k in range(6)) for m in range(n)] for i in range(6)]  # Y G
    core = [[sum(gains[m][k] * seen[k][p] for k in range(6)) for p in range(n)] for m in range(n)]  # G* Y G
    for p in range(n):
        inverse_column = joint.factor.solve([1.0 if m == p else 0.0 for m in range(n)])
        for m in range(n):
            core[m][p] = core[m][p] + inverse_column[m]

    def entry(i: int, j: int) -> Scalar:
        value = mobility[i][j]
        for m in range(n):
            value = value - motions[m][i] * seen[j][m] - seen[i][m] * motions[m][j]
            for p in range(n):
                value = value + motions[m][i] * core[m][p] * motions[p][j]
        return value

    return symmetric(entry)


def symmetric(entry) -> Matrix6:
    """A 6x6 matrix from a function that gives its upper triangle."""
    upper = {(i, j): entry(i, j) for i in range(6) for j in range(i, 6)}
    return tuple(tuple(upper[min(i, j), max(i, j)] for j in range(6)) for i in range(6))


def respond(mobility: Matrix6, force: Force) -> Motion:
    """Y f."""
    f = force.flat()
    return Motion.of([sum(row[k] * f[k] for k in range(6)) for row in mobility])
