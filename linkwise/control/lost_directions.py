"""Near singular positions: the accelerations of a frame that joints can produce at all, whatever their inertia.

A matter of the Jacobian J alone, with all lengths in units of the arm: light wrists on heavy arms make J M^-1 J* badly
conditioned wherever they are, and lose no direction by that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..mechanics.links.factor import Factor
from ..mechanics.scalar import Matrix, Scalar, dot, select
from ..mechanism import Mechanism
from ..mechanism.scales import lengths_among, scales

SINGULAR = 1e-4  # of the trace of J J*: near singular positions its least eigenvalue is below
POSITIVE = 1e-2  # of that: by which J J* is positive for certain, round-off or not
ORDER = 3  # of the damping: directions that are not lost feel its third power alone


@dataclass(frozen=True)
class Lost:
    """Directions of motion that a frame has lost near a singular position, as the symmetric matrix 1 - P; P x is the
    achievable part of an acceleration x. ``damping`` is the trace that was added to J J*. Both are zero elsewhere.
    """

    share: Matrix
    damping: Scalar

    @staticmethod
    def of(jacobian: Matrix) -> Lost:
        """Lost directions of a dimensionless ``jacobian`` J.

        Near singular positions J J* is damped, by d (Nakamura and Hanafusa, "Inverse kinematic solutions with
        singularity robustness for robot manipulator control", 1986), in an iteration (that of Tikhonov's
        regularization): 1 - P = (d (J J* + d)^-1)^3.  So P changes smoothly; it is zero along directions that are lost
        altogether, and the identity to about (d / J J*)^3 along those where J J* is large beside d.
        """
        gram = [[dot(row, other) for other in jacobian] for row in jacobian]
        floor = _trace(gram) * SINGULAR
        least = 1.0 / _trace_of_inverse(Factor.of(_raised(gram, POSITIVE * floor)))  # not above the least eigenvalue
        missing = select(least < floor, 1.0 - least / floor, 0.0)
        damping = floor * missing * missing
        damped = Factor.of(_raised(gram, damping))
        columns: Matrix = [[1.0 if i == j else 0.0 for i in range(len(gram))] for j in range(len(gram))]
        for _ in range(ORDER):
            columns = [[damping * x for x in damped.solve(column)] for column in columns]
        return Lost(columns, SINGULAR * missing * missing)

    def left_of(self, x: Sequence[Scalar]) -> list[Scalar]:
        """P x."""
        return [component - dot(row, x) for component, row in zip(x, self.share, strict=True)]

    def factor(self, mobility: Matrix) -> Factor:
        """Factor a mobility P J M^-1 J* P plus c (1 - P)^4, which has an inverse at singular positions too.

        c is as large as the mobility, times the damping: light wrists make that large, so it is of a power that is
        nothing along directions that are not lost.
        """
        squared = [[dot(row, other) for other in self.share] for row in self.share]
        size = self.damping * _trace(mobility)
        return Factor.of(
            [
                [x + size * dot(squared_row, other) for x, other in zip(row, squared, strict=True)]
                for row, squared_row in zip(mobility, squared, strict=True)
            ]
        )


def length_of_arm(mech: Mechanism, frame: str) -> float:
    """Largest possible distance of a frame from the first rotating joint on its path, from link lengths and limits;
    the mechanism's length if no joint rotates.
    """
    location = mech.frame(frame)
    way = [mech.bodies[index] for index in mech.tree.path(location.body)]
    rotating = [k for k, body in enumerate(way) if not body.kind.only_slides]
    if not rotating:
        return scales(mech).length
    beyond = way[rotating[0] + 1 :]
    distances = [*(body.position for body in beyond), location.position]
    bounds = np.where(lengths_among(mech, "q"), [mech.limits.lower, mech.limits.upper], 0.0)
    travels = [np.where(np.isfinite(at), at, 0.0) for at in (bounds[:, mech.q_index(body.joint)] for body in beyond)]
    length = sum(np.linalg.norm(x) for x in distances) + sum(np.abs(x).max(initial=0.0) for x in travels)
    return float(length) or scales(mech).length


def units_of_rates(mech: Mechanism, length: float) -> list[float]:
    """(nv,): the length for lengths, 1 for angles; velocities are these times ones without unit."""
    return np.where(lengths_among(mech, "v"), length, 1.0).tolist()


def _trace(matrix: Matrix) -> Scalar:
    return sum(row[k] for k, row in enumerate(matrix))


def _raised(matrix: Matrix, by: Scalar) -> Matrix:
    """A matrix plus a multiple of the identity."""
    return [[x + by if i == j else x for j, x in enumerate(row)] for i, row in enumerate(matrix)]


def _trace_of_inverse(factor: Factor) -> Scalar:
    count = len(factor.pivots)
    columns = [factor.forward([1.0 if i == j else 0.0 for i in range(count)]) for j in range(count)]
    return sum(r * x * x for column in columns for r, x in zip(factor.reciprocal, column, strict=True))
