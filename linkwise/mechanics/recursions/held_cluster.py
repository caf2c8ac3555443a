"""Clusters with active and inactive loops: multipliers in the metric of the mass matrix.

With M = R R*, W = R^-1 G* and Q a basis of the columns of W of active loops, the accelerations of a cluster and the
multipliers are

    M a + F* alpha + h = tau - G* lambda,  G a + bias = 0:   R* a = (1 - Q Q*) x + w,   W lambda = Q Q* x - w

with x = R^-1 (tau - h - F* alpha), alpha the acceleration of the parent link and w the shortest vector with W* w =
-bias; and the load of the cluster on its parent is

    P+ = C - F R^-* (1 - Q Q*) R^-1 F*,   z+ = f + F a  for alpha = 0.

Inactive loops do not enter Q, whatever the state: one code serves all masks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..links.factor import Factor
from ..links.loop_elimination import BIAS, Row
from ..links.orthogonalization import orthogonalized
from ..scalar import Scalar, dot, select
from ..spatial import ArticulatedInertia, Force, Motion, RigidInertia
from ..spatial.motion import NO_MOTION
from .cluster import ClusterDynamics

WITHOUT_INERTIA = (
    1e-12  # remainder of a diagonal entry of M, relative to the entry, below which a motion has no inertia
)
Split = tuple[list[Scalar], list[Scalar]]  # coefficients in Q, and the part orthogonal to it


class HeldMass:
    """M a + G* lambda = f, G a = rates under the active loops, for any f and rates.  Vectors over coordinates are
    ordered from the last coordinate to the first: M is factored in that order, which keeps the zeros of branches.

    mass     M by pairs of coordinates; absent entries are zero
    active   1 for each of ``rows`` that is active, otherwise 0
    units    of rows and of their multipliers, for least norms
    loops    W orthogonalized
    doubt    0 if the independent constraints are clear, otherwise 1 or more
    """

    def __init__(
        self,
        mass: Mapping[tuple[int, int], Scalar],
        coordinates: Sequence[int],
        rows: Sequence[Row],
        active: Sequence[Scalar],
        units: tuple[Sequence[float], Sequence[float]],
    ):
        self.coordinates, self.units = coordinates, units[1]
        self.factor = Factor.of([[mass.get((i, j), 0.0) for j in coordinates] for i in coordinates])
        doubt: Scalar = 0.0
        for pivot, c in zip(self.factor.pivots, coordinates, strict=True):
            doubt = doubt + select(pivot > mass[c, c] * WITHOUT_INERTIA, 0.0, 1.0)
        vectors = [self.factor.half_inverse([row.at(c) for c in coordinates]) for row in rows]
        self.loops = orthogonalized(vectors, active, units[0])
        self.doubt = doubt + self.loops.doubt

    def split(self, forces: Mapping[int, Scalar] | Sequence[Scalar]) -> Split:
        """R^-1 f, in Q and orthogonal to it."""
        return self.loops.split(self.factor.half_inverse([forces[c] for c in self.coordinates]))

    def accelerations(self, rest: Sequence[Scalar], kept: Sequence[Scalar]) -> dict[int, Scalar]:
        """a, from the part orthogonal to Q and from w in Q."""
        total = [a + b for a, b in zip(rest, self.loops.within(kept), strict=True)] if kept else rest
        return dict(zip(self.coordinates, self.factor.half_inverse_adjoint(total), strict=True))

    def multipliers(self, within: Sequence[Scalar], kept: Sequence[Scalar]) -> list[Scalar]:
        """lambda, dimensionless: of least norm where loops are redundant, zero for inactive loops."""
        wanted = [a - b for a, b in zip(within, kept, strict=True)]
        return self.loops.least_combination(wanted, self.units)

    def forces(self, within: Sequence[Scalar], kept: Sequence[Scalar]) -> dict[int, Scalar]:
        """-G* lambda = R (w - Q Q* x) on the coordinates, unique where multipliers are not."""
        missing = self.loops.within([b - a for a, b in zip(within, kept, strict=True)])
        return dict(zip(self.coordinates, self.factor.half(missing), strict=True))


@dataclass(frozen=True)
class HeldCluster:
    """A cluster after elimination.

    equations   of its accelerations and multipliers
    drive       x for a parent at rest
    kept        w, in Q
    gain        R^-1 F*, by columns
    """

    dynamics: ClusterDynamics
    equations: HeldMass
    drive: Split
    kept: list[Scalar]
    gain: list[Split]

    def respond(self, parent: Motion) -> tuple[dict[int, Scalar], dict[int, Motion]]:
        """Accelerations of the coordinates and of the links."""
        rates = self.accelerations(parent)
        return rates, self.dynamics.accelerations(parent, rates)

    def accelerations(self, parent: Motion) -> dict[int, Scalar]:
        """Accelerations of the coordinates."""
        return self.equations.accelerations(self._answer(parent, 1), self.kept)

    def multipliers(self, parent: Motion) -> list[Scalar]:
        """Multipliers, dimensionless."""
        return self.equations.multipliers(self._answer(parent, 0), self.kept)

    def constraint_forces(self, parent: Motion) -> dict[int, Scalar]:
        """-G* lambda on the coordinates."""
        return self.equations.forces(self._answer(parent, 0), self.kept) if self.kept else {}

    def _answer(self, parent: Motion, part: int) -> list[Scalar]:
        """Either part of x = R^-1 (tau - h - F* alpha)."""
        total = self.drive[part]
        if self.gain:
            for column, alpha in zip(self.gain, parent.flat(), strict=True):
                total = [a - b * alpha for a, b in zip(total, column[part], strict=True)]
        return total


def hold_cluster(
    dynamics: ClusterDynamics,
    rows: Sequence[Row],
    active: Sequence[Scalar],
    units: tuple[Sequence[float], Sequence[float]],
    tau: Mapping[int, Scalar],
    ground: Motion,
) -> tuple[HeldCluster, ArticulatedInertia | None, Force | None]:
    """Eliminate the joints of a cluster under the loop constraints ``rows``, which hold where ``active`` is 1.
    ``units`` are of constraints and of multipliers, ``ground`` is the acceleration of the ground.  Also returns the
    load on the parent, unless that is the ground."""
    coordinates = dynamics.cluster.coordinates[::-1]
    hangs_on_link = dynamics.cluster.parent >= 0
    felt, force = dynamics.forces(NO_MOTION if hangs_on_link else ground, dict.fromkeys(coordinates, 0.0))
    composites, composite = dynamics.composites()
    mass, on_parent = dynamics.mass_matrix(composites)
    equations = HeldMass(mass, coordinates, rows, active, units)
    drive = equations.split({c: tau[c] - felt[c] for c in coordinates})
    kept = equations.loops.with_products([-row.at(BIAS) for row in rows])
    gain: list[Split] = []
    if hangs_on_link:
        columns = zip(*(on_parent[c].flat() for c in coordinates), strict=True)
        gain = [equations.split(dict(zip(coordinates, column, strict=True))) for column in columns]
    held = HeldCluster(dynamics, equations, drive, kept, gain)
    if not hangs_on_link:
        return held, None, None
    assert composite is not None
    inertia = composite.articulated() if isinstance(composite, RigidInertia) else composite
    remaining = ArticulatedInertia.from_entries(lambda i, j: inertia.entry(i, j) - dot(gain[i][1], gain[j][1]))
    for c, rate in held.accelerations(NO_MOTION).items():
        force = force + on_parent[c] * rate
    return held, remaining, force
