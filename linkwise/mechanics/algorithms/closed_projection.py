"""Projection onto the constraints: the smallest change of positions and velocities that closes the loops (spencer2004
3.10, 3.11), by the elimination of constrained dynamics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...mechanism.clusters import clusters
from ..links.constraint_units import ConstraintUnits, scaled
from ..links.factor import Factor
from ..links.loop_elimination import BIAS, RELIABLE, Fronts, Row, Solution, eliminate
from ..recursions.least_changes import LeastChanges
from ..recursions.tree import Configuration, Tree
from ..scalar import Scalar, dot, select
from .algorithm import algorithm
from .closed_dynamics import CLUSTERS
from .configuration import integrate
from .contact_dynamics import made_orthogonal
from .loop_constraints import closures, driven_rates

PASSES = 2
SETTLED = 1e-6  # rad, sizes of loops: after a larger last correction, loops are open by its square, more than round-off
BOUNDED = 1e36  # squares of velocities: larger ones overflow soon, in single precision at once

Part = dict[int, Scalar]  # from a vector over all coordinates to a cluster's part


@dataclass(frozen=True)
class Projected:
    """A projected state and its reliability.

    firmness   positive if pivots are large enough
    closing    positive if nothing is left open
    extremes   of the pivots, see ``Solution``
    """

    q: list[Scalar]
    v: list[Scalar]
    firmness: list[Scalar]
    closing: list[Scalar]
    extremes: list[tuple[Scalar, Scalar]]

    @property
    def margins(self) -> list[Scalar]:
        """All positive if reliable."""
        return [*self.firmness, *self.closing]

    @property
    def conditioning(self) -> Scalar:
        """The square of the smallest pivot relative to the largest, small near singular positions."""
        ratio: Scalar = 1.0
        for smallest, largest in self.extremes:
            ratio = select(smallest < ratio * largest, smallest / largest, ratio)
        return ratio


@algorithm(
    ("q", "v"),
    ("state", "reliability"),
    options=("fronts", "settled"),
    reason=CLUSTERS,
)
def closed_projection(tree: Tree, q, v, *, fronts: Fronts, settled: float = SETTLED) -> tuple[list[Scalar], Scalar]:
    """(nq + nv,) and (): q with loops closed and v consistent with them, both changed the least, lengths in units of
    the loops' sizes.  The reliability is above 1 if reliable; it is computed from the square of the smallest pivot
    relative to the largest, which is small near singular positions."""
    projected = project(tree, q, v, fronts, settled, PASSES)
    return [*projected.q, *projected.v], zero_unless_positive(projected.margins, RELIABLE + projected.conditioning)


@algorithm(
    ("q",),
    ("q_next", "reliability"),
    options=("fronts",),
    reason=CLUSTERS,
)
def closed_assembly_iteration(tree: Tree, q, *, fronts: Fronts) -> tuple[list[Scalar], Scalar]:
    """(nq,) and (): one Gauss-Newton iteration towards closed loops, by the shortest step that closes them to first
    order; and its reliability, as of ``closed_projection``."""
    projected = project(tree, q, [0.0] * tree.mechanism.nv, fronts, SETTLED, passes=1)
    return projected.q, zero_unless_positive(projected.firmness, RELIABLE + projected.conditioning)


def project(
    tree: Tree,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    fronts: Fronts,
    settled: float,
    passes: int,
    nearby: Sequence[Row] | None = None,
) -> Projected:
    """The state with loops closed by the smallest change.

    Every pass linearizes them: G u + g = 0 has the solutions K y + k, and q moves along the shortest solution: k less
    its part along K.  Passes converge quadratically, so velocities are projected at the configuration before the last,
    tiny correction, whose size shows errors of previous passes.  The first pass takes G from ``nearby``, where it is
    eliminated already.
    """
    firmness: list[Scalar] = []
    closing: list[Scalar] = []
    extremes: list[tuple[Scalar, Scalar]] = []
    size, units = (0.0, 1.0), fronts.units
    consistent = list(v)
    for number in range(passes):
        at, last = Configuration(tree, q), number == passes - 1
        change: list[Scalar] = [0.0] * tree.mechanism.nv
        for k, (cluster, cluster_fronts) in enumerate(zip(clusters(tree.mechanism), fronts.clusters, strict=True)):
            order = fronts.sweep(k)
            if order is not None:
                swept = LeastChanges(at, cluster, v, order, units)
                for c, x in swept.closing().items():
                    change[c] = x
                if last:
                    for c, x in swept.slowing().items():
                        consistent[c] = v[c] + x
                    firmness.append(swept.margin)
                    extremes += swept.extremes
                continue
            if not cluster_fronts:
                continue
            rows: dict[int, Row] = {}
            rates: dict[int, Scalar] = {}
            for path in map(at.way, cluster.loops):
                indices = range(path.rows.start, path.rows.stop)
                known = None if nearby is None or number else [nearby[r] for r in indices]
                rows.update(zip(indices, closures(at, path, known), strict=True))
                rates.update(dict.fromkeys(indices, path.aim.velocity))
            motion = eliminate(rows, cluster.coordinates, cluster_fronts, units)
            along, offset = _Tangent(motion), motion.plain_offset
            shortest = {c: offset[c] - x for c, x in along.part(offset).items()}
            for c, x in motion.gauge.coordinates(shortest).items():
                change[c] = x
            if last:
                driven = motion.closing({r: rates[r] for r in motion.rows})
                free = motion.gauge.dimensionless({c: v[c] - driven[c] for c in cluster.coordinates})
                for c, x in motion.gauge.coordinates(along.part(free)).items():
                    consistent[c] = x + driven[c]
                firmness.append(motion.margin)
                closing.append(motion.remaining)
                extremes += motion.extremes
        size = units.square_of_velocities(dict(enumerate(change)))
        q = integrate(tree, q, change, 1.0)
    speed, of_velocities = units.square_of_velocities(dict(enumerate(consistent)))
    closing += [(settled * size[1]) ** 2 - size[0], BOUNDED * of_velocities**2 - speed]
    return Projected(list(q), consistent, firmness, closing, extremes)


def project_active(
    tree: Tree,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    active: Sequence[Scalar],
    units: ConstraintUnits,
    limits: tuple[float, int],
) -> Projected:
    """The state with active loops closed by the smallest change, as by ``project``; a loop is active if its number in
    ``active`` is 1. ``limits``: largest last correction, dimensionless, and number of passes."""
    if not tree.mechanism.loops:
        return Projected(list(q), list(v), [], [], [])
    settled, passes = limits
    columns = [units.column(c) for c in range(tree.mechanism.nv)]
    size: tuple[Scalar, float] = (0.0, 1.0)
    consistent, firmness = list(v), []
    for number in range(passes):
        at = Configuration(tree, q)
        rows = [row for path in at.ways for row in closures(at, path)]
        loops = made_orthogonal(tree, rows, active, units, columns)[2]
        if number == passes - 1:
            aims = loops.within(loops.with_products(driven_rates(at)))
            free = loops.split([scaled(x, 1.0 / unit) for x, unit in zip(v, columns, strict=True)])[1]
            consistent = [scaled(x + y, unit) for x, y, unit in zip(free, aims, columns, strict=True)]
            firmness.append(1.0 - loops.doubt)
        shortest = loops.within(loops.with_products([-row.at(BIAS) for row in rows]))
        change = [scaled(x, unit) for x, unit in zip(shortest, columns, strict=True)]
        size = units.square_of_velocities(dict(enumerate(change)))
        q = integrate(tree, q, change, 1.0)
    speed, of_velocities = units.square_of_velocities(dict(enumerate(consistent)))
    closing = [(settled * size[1]) ** 2 - size[0], BOUNDED * of_velocities**2 - speed]
    return Projected(list(q), consistent, firmness, closing, [])


def zero_unless_positive(margins: Sequence[Scalar], value: Scalar) -> Scalar:
    """The value if all margins are positive numbers, else 0."""
    for margin in margins:
        value = select(margin > 0.0, value, 0.0)
    return value


class _Tangent:
    """The velocities K y that the loops of a cluster allow, in dimensionless coordinates: K (K* K)^-1 K* is the
    projection onto them."""

    def __init__(self, motion: Solution):
        basis = motion.plain_basis
        self._columns: list[Part] = [
            dict(zip(basis, column, strict=True)) for column in zip(*basis.values(), strict=True)
        ]
        gram = [[_dot(a, b) for b in self._columns] for a in self._columns]
        for k, indicator in enumerate(motion.indicators, start=motion.free):
            gram[k][k] = gram[k][k] + (1.0 - indicator)  # a column of zeros
        self._factor = Factor.of(gram)

    def part(self, vector: Mapping[int, Scalar]) -> Part:
        """The component of a vector over the cluster's coordinates along these velocities."""
        y = self._factor.solve([_dot(column, vector) for column in self._columns])
        return {c: dot([column[c] for column in self._columns], y) for c in vector}


def _dot(a: Mapping[int, Scalar], b: Mapping[int, Scalar]) -> Scalar:
    return dot(a.values(), (b[c] for c in a))
