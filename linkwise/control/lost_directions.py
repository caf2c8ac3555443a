"""Near singular positions: which accelerations of a frame joints can bring about at all, whatever their inertia.

A matter of the Jacobian J alone, with all lengths in units of the arm: light wrists on heavy arms make J M^-1 J* badly
conditioned wherever they are, and lose no direction by that.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..dynamics.closed.sizes import lengths_among
from ..mechanics.links.factor import Factor
from ..mechanics.scalar import Matrix, Scalar, dot, select
from ..mechanism import Mechanism

SINGULAR = 1e-4  # of the trace of J J*: near singular positions its least eigenvalue is below
POSITIVE = 1e-2  # of that: by which J J* is positive for certain, round-off or not
ORDER = 3  # of the damping: directions that are not lost feel its third power alone


def without_lost(jacobian: Matrix, wanted: Sequence[Scalar]) -> list[Scalar]:
    """P times ``wanted``, accelerations of a frame without unit, of the ``jacobian`` without unit: themselves, but near
    singular positions, where the part along directions that are lost is left out.

    There J J* is damped, by d (Nakamura and Hanafusa, "Inverse kinematic solutions with singularity robustness for
    robot manipulator control", 1986), in an iteration (that of Tikhonov's regularization): P = 1 - (d (J J* + d)^-1)^3.
    So P x is in the range of J, the joint accelerations J* (J J*)^-1 P x are finite, and along directions that are
    not lost, where J J* is large beside d, P is the identity to about (d / J J*)^3.
    """
    gram = [[dot(one, other) for other in jacobian] for one in jacobian]
    floor = sum(gram[k][k] for k in range(len(gram))) * SINGULAR
    least = 1.0 / _trace_of_inverse(Factor.of(_raised(gram, POSITIVE * floor)))  # not above the least eigenvalue
    missing = select(least < floor, 1.0 - least / floor, 0.0)
    damping = floor * missing * missing
    damped = Factor.of(_raised(gram, damping))
    lost = list(wanted)
    for _ in range(ORDER):
        lost = [damping * x for x in damped.solve(lost)]
    return [x - y for x, y in zip(wanted, lost, strict=True)]


def length_of_arm(mech: Mechanism, frame: str) -> float:
    """How far a frame may be from the first joint on its way that rotates, as the distances between joints and their
    limits say; one where that is nowhere."""
    place = mech.frame(frame)
    way = [mech.bodies[index] for index in mech.path(place.body)]
    rotating = [k for k, body in enumerate(way) if not body.kind.only_slides]
    if not rotating:
        return 1.0
    beyond = way[rotating[0] + 1 :]
    distances = [*(body.position for body in beyond), place.position]
    bounds = np.where(lengths_among(mech, "q"), [mech.q_lower, mech.q_upper], 0.0)
    travels = [np.where(np.isfinite(at), at, 0.0) for at in (bounds[:, mech.q_index(body.joint)] for body in beyond)]
    length = sum(np.linalg.norm(x) for x in distances) + sum(np.abs(x).max(initial=0.0) for x in travels)
    return float(length) or 1.0


def units_of_rates(mech: Mechanism, length: float) -> list[float]:
    """(nv,): the length for lengths, 1 for angles; velocities are these times ones without unit."""
    return np.where(lengths_among(mech, "v"), length, 1.0).tolist()


def _raised(matrix: Matrix, by: Scalar) -> Matrix:
    """A matrix plus a multiple of the identity."""
    return [[x + by if i == j else x for j, x in enumerate(row)] for i, row in enumerate(matrix)]


def _trace_of_inverse(factor: Factor) -> Scalar:
    count = len(factor.pivots)
    columns = [factor.forward([1.0 if i == j else 0.0 for i in range(count)]) for j in range(count)]
    return sum(r * x * x for column in columns for r, x in zip(factor.reciprocal, column, strict=True))
