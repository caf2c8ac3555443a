"""Orders of elimination over links and multipliers: tried at sample configurations, the cheapest is taken.

A joint can be eliminated after the links beyond it, a constraint after joints that move in all of its directions.
Late elimination, at the link shared by all paths around the loop, is singular only where the mechanism is.  Early
elimination keeps ladders of loops narrow; an order is accepted by its pivots at the samples.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..dynamics.states import Float64Array
from ..mechanics.algorithms.closed_dynamics import angular_velocities
from ..mechanics.algorithms.loop_constraints import constraint_equations
from ..mechanics.links.constraint_units import ConstraintUnits
from ..mechanics.links.kinematics import AngularVelocity
from ..mechanics.links.loop_elimination import Front, SweepOrder, eliminate
from ..mechanics.recursions.closings import closings
from ..mechanics.recursions.cluster import ClusterDynamics, Load, articulate_cluster
from ..mechanics.recursions.constraint_sweep import ConstraintSweep
from ..mechanics.recursions.tree import Configuration, build_tree
from ..mechanics.samples import Samples, Tally, TooLong
from ..mechanism import Mechanism
from ..mechanism.clusters import Cluster

SAFE = 1e-4  # pivots of constraints, relative to the size of their block
LAST = 1e-10  # pivots of the constraints eliminated last, relative to the size of their block
SHARE = 0.5  # of the samples: share that must have such pivots, as some may be near singular positions
#: Whether the deepest or the last links are eliminated first; and the largest number of coordinates at a link before
#: constraints are eliminated early, None if unlimited.
CANDIDATES = ((True, 6), (True, 4), (True, None), (False, None))


def cheapest_order(
    mech: Mechanism, cluster: Cluster, q: Float64Array, rows: Sequence[int], units: ConstraintUnits
) -> tuple[SweepOrder, int] | None:
    """The safe order with the fewest operations for the constraints ``rows`` of a cluster at configurations q (k, nq),
    and its number of operations; None if no order is safe."""
    best: tuple[SweepOrder, int] | None = None
    for deepest, width in CANDIDATES:
        tally = Tally(np.inf if best is None else best[1] - 1)
        try:
            with np.errstate(all="ignore"):
                order = _Trial(mech, cluster, q, rows, units, tally).order(width, deepest)
        except (TooLong, ZeroDivisionError):
            continue
        if order is not None:
            best = order, tally.operations
    return best


def costs_more(
    mech: Mechanism, cluster: Cluster, fronts: tuple[Front, ...], units: ConstraintUnits, q: Float64Array, than: float
) -> bool:
    """Whether elimination of a cluster's coordinates needs more operations."""
    tally = Tally(than)
    try:
        at, spins, v = _state(mech, cluster, q, tally)
        dynamics = ClusterDynamics(at, cluster, spins, [Load()] * len(at.tree.links))
        rows = [row for k in cluster.loops for row in constraint_equations(at, at.way(k), v)[0]]
        motion = eliminate(dict(zip(cluster.rows, rows, strict=True)), cluster.coordinates, fronts, units)
        tau = dict.fromkeys(cluster.coordinates, _ones(tally, q))
        articulate_cluster(dynamics, motion, tau, at.tree.base_acceleration)[0].respond(at.tree.base_acceleration)
    except TooLong:
        return True
    return False


def _ones(tally: Tally, q: Float64Array) -> Samples:
    return tally.samples(np.ones((len(q), 1)))[0]


def _state(
    mech: Mechanism, cluster: Cluster, q: Float64Array, tally: Tally
) -> tuple[Configuration, list[AngularVelocity], list[Samples]]:
    """A cluster at configurations q (k, nq), and at some velocities."""
    tree = build_tree(mech)
    tree = tree.regrouped if cluster.parent < 0 else tree
    v = tally.samples(np.random.default_rng(1).uniform(-1.0, 1.0, (len(q), mech.nv)))
    at = Configuration(tree, tally.samples(q))
    return at, angular_velocities(at, v), v


class _Trial:
    """A trial elimination of a cluster at sample configurations."""

    def __init__(
        self,
        mech: Mechanism,
        cluster: Cluster,
        q: Float64Array,
        rows: Sequence[int],
        units: ConstraintUnits,
        tally: Tally,
    ):
        self.mech, self.cluster, self.units = mech, cluster, units
        at, spins, v = _state(mech, cluster, q, tally)
        dynamics = ClusterDynamics(at, cluster, spins, [Load()] * len(at.tree.links))
        closed = closings(at, cluster, spins, v)
        wanted = frozenset(rows)
        self.blocks = {c.loop: tuple(r for r in c.rows if r in wanted) for c in closed}
        self.shared = _shared(mech, cluster)
        tau = dict.fromkeys(cluster.coordinates, _ones(tally, q))
        self.sweep = ConstraintSweep(dynamics, closed, self.shared, rows, tau, at.tree.base_acceleration, units)
        self.around = {c.loop: set(mech.loops[c.loop].bodies_within(mech)) for c in closed}
        self.steps: list[int | tuple[int, ...]] = []

    def order(self, width: int | None, deepest: bool) -> SweepOrder | None:
        children = {i: 0 for i in self.cluster.bodies}
        for i in self.cluster.bodies:
            if self.mech.tree.parents[i] in children:
                children[self.mech.tree.parents[i]] += 1
        depth = {i: len(self.mech.tree.path(i)) for i in self.cluster.bodies} if deepest else {}
        ready = {i for i, count in children.items() if not count}
        pending = {k: rows for k, rows in self.blocks.items() if rows}
        carrying = {c: {i for i in self.cluster.bodies if c in self._coordinates(i)} for c in self.shared}
        while ready:
            i = max(ready, key=lambda i: (depth.get(i, 0), i))
            ready.remove(i)
            parent = self.mech.tree.parents[i]
            self.sweep.articulate(i)
            self.steps.append(i)
            if parent in children:
                children[parent] -= 1
                if not children[parent]:
                    ready.add(parent)
            for links in (*self.around.values(), *carrying.values()):
                links.discard(i)
            for c in [c for c, links in carrying.items() if not links]:
                del carrying[c]
                self._eliminate((-1 - c,))
            for k in [k for k in pending if not self.around[k]]:
                if self._is_regular(pending[k], SAFE):
                    self._eliminate(pending.pop(k))
            if width is not None and parent >= 0 and len(self.sweep.on[parent]) > width:
                for k in list(pending):
                    if any(r in self.sweep.on[parent] for r in pending[k]) and self._is_regular(pending[k], SAFE):
                        self._eliminate(pending.pop(k))
                        if len(self.sweep.on[parent]) <= width:
                            break
        while pending:
            regular = [k for k in pending if self._is_regular(pending[k], LAST)]
            if not regular:
                return None
            self._eliminate(pending.pop(regular[0]))
        self.sweep.motions(self.sweep.ground)
        return SweepOrder(tuple(self.steps), self.shared)

    def _coordinates(self, i: int) -> set[int]:
        columns = self.mech.v_index(self.mech.bodies[i].joint)
        return set(range(columns.start, columns.stop))

    def _eliminate(self, block: tuple[int, ...]) -> None:
        self.sweep.eliminate(block)
        self.steps.append(block)

    def _is_regular(self, block: tuple[int, ...], least: float) -> bool:
        """Whether the pivots of constraints are large enough, at all samples or, for the last ones, at half of them."""
        scale = np.array([self.units.row(r) for r in block])
        entries = [[self.sweep.couplings[y].get(z, 0.0) for z in block] for y in block]
        matrix = np.array(np.broadcast_arrays(*(_numbers(x) for row in entries for x in row)))
        matrix = -np.moveaxis(matrix.reshape(len(block), len(block), -1), -1, 0) * scale[:, None] * scale
        size = np.trace(matrix, axis1=1, axis2=2)
        if len(block) == 1:
            size = np.maximum(size, scale[0] ** 2 * _numbers(self.sweep.reach.get(block[0], 0.0)))
        if not np.isfinite(matrix).all(axis=(1, 2)).mean() >= SHARE:
            return False
        smallest = np.linalg.eigvalsh(np.where(np.isfinite(matrix), matrix, 0.0))[:, 0]
        return bool(np.mean((smallest > least * size) & (size > 0.0)) >= SHARE)


def _numbers(x: object) -> Float64Array:
    return np.atleast_1d(np.asarray(x.values if isinstance(x, Samples) else x, dtype=float))


def _shared(mech: Mechanism, cluster: Cluster) -> tuple[int, ...]:
    """Coordinates of joints that mimic joints or couplings share."""
    shared: set[int] = set()
    for i in cluster.bodies:
        body = mech.bodies[i]
        if body.mimic:
            columns = mech.v_index(body.joint)
            shared.update(range(columns.start, columns.stop))
    for number in cluster.loops:
        loop = mech.loops[number]
        if hasattr(loop, "ratios"):
            for joint, _ in loop.ratios:
                columns = mech.v_index(joint)
                shared.update(range(columns.start, columns.stop))
    return tuple(sorted(shared))
