"""Which loop constraints follow from others: a property of a mechanism with the precision of its data, decided once.

Data with errors of size eps make redundant constraints look independent: loops close to about eps only, and G has
singular values of about eps where those of exact data are zero.  Two things tell them from constraints that take a
degree of freedom away: there is a gap between their singular values and the others, and the mechanism moves, as if they
were not there, by finite distances along which loops stay closed, and the singular values small, to such an eps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..compiler.store import float64_function, stored
from ..display import mimebundle
from ..dynamics import trees as tree
from ..dynamics.states import checked_arrays
from ..mechanics.joints import LoopKind
from ..mechanics.spatial import Matrix3, Vector3
from ..mechanism import Loop, Mechanism, MechanismError, MechanismWarning, warn_caller
from ..mechanism.clusters import Cluster, clusters
from ..mechanism.family import differs_in_poses
from ..mechanism.parts import Constraint
from .decomposition import decompose, pivoted_qr, times
from .loop_closure import Goal, LoopEquations, RoundedBlock, closed_by
from .second_order import blocked_motions
from .sizes import random_configurations, sizes
from .tolerances import LOOPS

TRIALS = (0.03, 0.1, 0.2, 0.3, 0.3, 0.5, 0.7, 1.0)  # dimensionless: sizes of random changes of a configuration
GUESSES = 24  # random configurations from which a mechanism is assembled that is not assembled where it starts
STRIDE, STRIDES = 0.15, 3  # dimensionless: how far the motion is followed that the others would leave
LEAST_VOTES = 0.25  # of the configurations that are no more singular have the gap that a rank goes by
LEAST_SHARE = 0.5  # of the strides must succeed: some end where the motion does
SEARCHES = 4  # for a configuration in which all constraints are independent, if need be
FEW, CLOSING_STEPS = 12, 40  # guesses for each loop that is closed after others, and steps of each
LOOKED_AT = 3  # configurations that must agree that motions are blocked to second order
AT_ONCE = 2e7  # numbers of G of all loops
DOUBTFUL = 0.02  # singular values of locked mechanisms below this make it worth a word


@dataclass(frozen=True)
class ClusterRedundancy:
    """The constraints of one cluster of loops; singular values are of dimensionless constraints, relative to the
    largest.

    loops         names; none for links that no loop ties
    constraints, coordinates   how many there are
    rank          of G, away from singular positions: the number of independent constraints
    smallest      singular value that counts, in the best-conditioned configuration that was looked at
    largest       singular value that does not, anywhere
    closure       (metres and sines of angles): the error |g| that closed loops have
    redundant     the constraints that follow from the others, in words; axes are those of pose_a
    is_rounded    whether they do so only to the rounding of the data
    infinitesimal number of motions that constraints allow to first order and block to second, wherever the mechanism is
    """

    loops: tuple[str, ...]
    constraints: int
    coordinates: int
    rank: int
    smallest: float = 1.0
    largest: float = 0.0
    closure: float = 0.0
    redundant: tuple[str, ...] = ()
    is_rounded: bool = False
    infinitesimal: int = 0

    @property
    def degrees_of_freedom(self) -> int:
        return self.coordinates - self.rank - self.infinitesimal

    def __str__(self) -> str:
        names = ", ".join(map(repr, self.loops))
        said = (
            f"loop{'s' * (len(self.loops) > 1)} {names}: {self.rank} of {self.constraints} constraints are "
            f"independent, {self.degrees_of_freedom} degree{'s' * (self.degrees_of_freedom != 1)} of freedom"
        )
        if self.infinitesimal:
            said += f"; {self.infinitesimal} more to first order, blocked to second"
        if self.is_rounded:
            said += (
                f"; {', '.join(self.redundant)} follow from the others only to the rounding of the data (loops close "
                f"to {self.closure:.1e}; singular values {self.largest:.1e} beside {self.smallest:.1e})"
            )
        return said


@dataclass(frozen=True)
class Redundancy:
    """The record of a mechanism; make one with ``redundancy``.

    clusters    one entry for each of ``mechanism.clusters.clusters(mech)``
    assembled   whether a configuration was found with all loops closed to what rounding explains; otherwise ranks are
                bounds
    around      (nq,): an assembled configuration with these ranks, where the mechanism starts in one with lower ranks;
                else empty
    """

    clusters: tuple[ClusterRedundancy, ...]
    assembled: bool
    blocks: tuple[RoundedBlock, ...] = ()
    around: tuple[float, ...] = ()

    @cached_property
    def cluster_ranks(self) -> tuple[int, ...]:
        """Independent constraints of each cluster."""
        return tuple(cluster.rank for cluster in self.clusters)

    @property
    def rank(self) -> int:
        """The number of independent constraints of all loops, away from singular positions."""
        return sum(self.cluster_ranks)

    @property
    def closure(self) -> float:
        """The error |g| that closed loops have (metres and sines of angles)."""
        return max((cluster.closure for cluster in self.clusters), default=0.0)

    @property
    def redundant(self) -> tuple[str, ...]:
        """The constraints that follow from others, in words."""
        return tuple(words for cluster in self.clusters for words in cluster.redundant)

    @property
    def rounding(self) -> float:
        """Dimensionless: what errors and singular values may be that come from the rounding of the data."""
        return max((block.closure for block in self.blocks), default=0.0)

    @property
    def is_rounded(self) -> bool:
        """Whether some follow from others only to the rounding of the data."""
        return any(cluster.is_rounded for cluster in self.clusters)

    def __str__(self) -> str:
        return "\n".join(str(one) for one in self.clusters if one.loops) or "no loops"

    _repr_mimebundle_ = mimebundle


def redundancy(mech: Mechanism, q: ArrayLike | None = None) -> Redundancy:
    """Which constraints of a closed mechanism are independent, which follow from others, exactly or to the rounding of
    its data; every function of ``closed`` goes by it.

    It is decided once and kept with the mechanism, in configurations around ``mech.initial``, or around ones found from
    random guesses if that cannot be assembled.  With ``q`` it is decided again, around q.  A ``MechanismWarning`` names
    the constraints that are redundant only to rounding.
    """
    if q is not None:
        (q,) = checked_arrays(mech, q=q)
        if q.ndim > 1 or not np.isfinite(q).all():
            raise MechanismError(f"redundancy of mechanism {mech.name!r} is decided around one configuration, finite")
        return _decided(mech, q)
    try:
        return mech._kernels[redundancy]
    except (KeyError, AttributeError):  # not decided yet, or no mechanism
        return stored(mech, redundancy, lambda: _decided_in_family(mech.constraints.structure))


def decide_around(mech: Mechanism, q: np.ndarray) -> None:
    """Decide around q (nq,) what could not be decided because no assembled configuration was found."""
    if not redundancy(mech).assembled and (decided := _told(mech, _decided(mech, q))).assembled:
        mech._kernels.pop(loop_equations, None)
        mech._kernels[redundancy] = decided


def loop_equations(mech: Mechanism) -> LoopEquations:
    """g and G of a mechanism as its data allow them to be met."""
    return stored(mech, loop_equations, lambda: LoopEquations.of(mech, redundancy(mech).blocks))


def closable_error(mech: Mechanism, q: np.ndarray) -> np.ndarray:
    """(..., m): g without what the rounding of the data adds to it: zero where loops are closed."""
    if redundancy(mech).blocks:
        return loop_equations(mech).with_dimensions(q)[0]
    return float64_function(mech, "position_error")(q)


def closable_jacobian(mech: Mechanism, q: np.ndarray) -> np.ndarray:
    """(..., m, nv): G without what the rounding of the data adds to its rank."""
    return without_rounding(mech, float64_function(mech, "constraint_jacobian")(q))


def without_rounding(mech: Mechanism, jacobian: np.ndarray, of_constraints: np.ndarray | None = None) -> np.ndarray:
    """G (..., m, nv) without what rounding of the data adds to its rank, or the same of other columns with one number
    per constraint."""
    if not redundancy(mech).blocks:
        return jacobian if of_constraints is None else of_constraints
    return loop_equations(mech).without_rounding(jacobian, of_constraints)


def second_order_terms(mech: Mechanism, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """(k, m): dG/dt v of dimensionless velocities (k, nv) at q (nq,), dimensionless, but for what drives add."""
    own, bias = sizes(mech), float64_function(mech, "constraint_bias")
    rates = v * own.columns
    return own.rows * (0.5 * (bias(q, rates) + bias(q, -rates)) - bias(q, np.zeros(mech.nv)))


def _decided_in_family(mech: Mechanism) -> Redundancy:
    """Decided once for all variants that differ in masses and gravity, not in poses."""
    if "_family" not in mech.__dict__ or differs_in_poses(mech):
        return _told(mech, _decided(mech, mech.initial))
    known = mech._family.code
    return known.get(redundancy) or known.setdefault(redundancy, _told(mech, _decided(mech, mech.initial)))


def _told(mech: Mechanism, decided: Redundancy) -> Redundancy:
    """The record; warns of what it says that one may not expect."""
    rounded = "; ".join(str(cluster) for cluster in decided.clusters if cluster.is_rounded)
    locked = (
        cluster
        for cluster in decided.clusters
        if decided.assembled and cluster.loops and not cluster.degrees_of_freedom
    )
    doubtful = [cluster for cluster in locked if cluster.rank and cluster.smallest < DOUBTFUL]
    if rounded:
        warn_caller(
            f"mechanism {mech.name!r} is overconstrained, and its numbers are rounded: {rounded}.  They are taken as "
            "redundant: constraints.redundancy(mech)",
            MechanismWarning,
        )
    for one in doubtful:
        warn_caller(
            f"mechanism {mech.name!r} is locked: {one}.  The weakest of its constraints has the singular value "
            f"{one.smallest:.1e}: if it should move, its dimensions are not exact enough",
            MechanismWarning,
        )
    return decided


# -- how it is decided ----------------------------------------------------------------------------------


class _Evidence(NamedTuple):
    """What configurations (k, nq) say of a cluster: its G (k, m, n), singular values (k, n) relative to the largest of
    each, descending, and errors (k,), all dimensionless."""

    q: np.ndarray
    jacobians: np.ndarray
    values: np.ndarray
    errors: np.ndarray

    @property
    def noise(self) -> np.ndarray:
        """(k, 1): the singular values that say nothing.  An error e of a loop that is closed at a singular position
        alone leaves a displacement of the size of its root, and with it singular values."""
        return np.maximum(LOOPS.rank, 10.0 * np.sqrt(np.minimum(self.errors, LOOPS.closed)))[:, None]

    def of(self, which: np.ndarray) -> _Evidence:
        """The evidence of the configurations ``which``, indices or a mask (k,)."""
        return _Evidence(*(x[which] for x in self))


class _Verdict(NamedTuple):
    """A rank, the configurations that speak for it, and the error of loops that are closed exactly."""

    rank: int
    seen: _Evidence
    exact: float

    @property
    def largest(self) -> float:
        """The largest singular value that does not count."""
        return float(self.seen.values[:, self.rank :].max(initial=0.0))

    @property
    def rounding(self) -> float:
        return max(float(self.seen.errors.max()), self.largest)

    @property
    def is_rounded(self) -> bool:
        redundant = self.seen.values[:, self.rank :]
        return bool(self.seen.errors.max() > self.exact or (redundant > self.seen.noise).any())


def _decided(mech: Mechanism, start: np.ndarray) -> Redundancy:
    parts = clusters(mech)
    if not mech.loops:
        return Redundancy(tuple(_without_loops(cluster) for cluster in parts), True)
    equations, rng = LoopEquations.of(mech), np.random.default_rng(0)
    q = _assembled_roughly(equations, np.asarray(start), rng)
    if q is None:
        return Redundancy(tuple(_bounded(mech, cluster) for cluster in parts), False)
    own_loops = {i: cluster for i, cluster in enumerate(parts) if cluster.loops}
    verdicts = {i: _obvious(equations, parts[i], seen) for i, seen in _evidence(equations, own_loops, q[None]).items()}
    doubtful = {i: parts[i] for i, verdict in verdicts.items() if verdict is None}
    other = _assembled_one_by_one(equations, doubtful, q)
    elsewhere = False
    for i, seen in _evidence(equations, doubtful, other[None]).items() if doubtful else ():
        verdicts[i] = _obvious(equations, parts[i], seen)
        if verdicts[i] is not None:
            q, elsewhere = np.where(equations.parts.is_of(parts[i]), other, q), True
    verdicts |= _weighed(equations, {i: parts[i] for i, verdict in verdicts.items() if verdict is None}, q, rng)
    decided = {i: verdict for i, verdict in verdicts.items() if verdict is not None}
    if len(decided) < len(own_loops):
        return Redundancy(tuple(_bounded(mech, cluster) for cluster in parts), False)
    blocks = [
        _block(parts[i], verdict.rank, LOOPS.more_rounding * verdict.rounding)
        for i, verdict in decided.items()
        if verdict.is_rounded
    ]
    return Redundancy(
        tuple(
            _said(mech, cluster, decided[i]) if i in decided else _without_loops(cluster)
            for i, cluster in enumerate(parts)
        ),
        True,
        tuple(blocks),
        tuple(q.tolist()) if elsewhere else (),
    )


def _assembled_one_by_one(equations: LoopEquations, undecided: Mapping[int, Cluster], q: np.ndarray) -> np.ndarray:
    """(nq,): a configuration with all loops of these clusters closed and all constraints independent, found by closing
    one loop after the other, each as far from singular as a few guesses come; q in clusters where that fails.

    Where the mechanism starts it may be folded: its constraints depend on each other there, and all around on a branch
    of configurations that it has besides those in which it works.
    """
    left = dict(undecided)
    for seed in range(SEARCHES):
        there, assembled = _search(equations, left, q, np.random.default_rng(seed))
        for i in assembled:
            q = np.where(equations.parts.is_of(left.pop(i)), there, q)
    return q


def _search(
    equations: LoopEquations, parts: Mapping[int, Cluster], q: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, tuple[int, ...]]:
    """(nq,) and clusters: one attempt.  Loops that close back to back do not count: the axes of their joints are
    antiparallel, which is another linkage, with freedoms of its own.  Clusters share no constraint and no coordinate,
    so that each call of a kernel serves them all: the work is that of the cluster with the most loops."""
    mech, structural = equations.mech, equations.sizes.structural
    left = {i: cluster for i, cluster in parts.items() if cluster.loops}
    closed = {i: np.zeros(0, dtype=int) for i in left}
    known = {i: np.zeros(mech.nv, dtype=bool) for i in left}
    guesses = np.repeat(np.asarray(q, dtype=float)[None], FEW, axis=0)
    for k in range(max((len(cluster.loops) for cluster in left.values()), default=0)):
        added: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        for i, one in left.items():
            if k < len(one.loops):
                loop = mech.loops[one.loops[k]]
                at, tied, new = mech.constraints.rows(loop.name), set(one.rows), np.zeros(mech.nv, dtype=bool)
                rows = np.array([r for r in range(at.start, at.stop) if r in tied and structural[r]], dtype=int)
                for body in loop.bodies_within(mech):
                    new[mech.v_index(mech.bodies[body].joint)] = True
                new &= ~known[i]
                added[i] = rows, new
                closed[i], known[i] = np.concatenate([closed[i], rows]), known[i] | new
        changed = np.any([new for _, new in added.values()], axis=0)
        changes = rng.uniform(-3.0, 3.0, (FEW, mech.nv)) * equations.sizes.columns * changed
        guesses = tree.integrate(mech, guesses, changes, 1.0)
        alone = {i: (rows, np.flatnonzero(new)) for i, (rows, new) in added.items() if new.any() and len(rows)}
        guesses, _ = _closed_alone(equations, guesses, alone)  # the others stay where they are, if they can
        together = {i: (closed[i], np.flatnonzero(known[i])) for i in added if len(closed[i])}
        guesses, smallest = _closed_alone(equations, guesses, together)
        aligned = equations.alignments(guesses) > 0.0
        for i in added:
            best = smallest.get(i, np.zeros(FEW)) * aligned[:, left[i].loops[: k + 1]].all(axis=-1)
            order = np.argsort(-best)
            good = order[: int(np.sum(best > _clear(len(left[i].loops)) ** 2))]
            if len(good):
                guesses = np.where(equations.parts.is_of(left[i]), guesses[np.resize(good, FEW)], guesses)
            else:
                del left[i]
    return guesses[0], tuple(left)


def _clear(loops: int) -> float:
    """The least singular value of constraints that are independent for sure: less in ladders of many loops, as the
    lever of one end over the other grows."""
    return LOOPS.rough / max(1.0, loops / 3.0) ** 2


def _closed_alone(
    equations: LoopEquations, q: np.ndarray, chosen: Mapping[int, tuple[np.ndarray, np.ndarray]]
) -> tuple[np.ndarray, dict[int, np.ndarray]]:
    """(k, nq): configurations with some constraints of each cluster closed by moving some coordinates, given as
    (rows, columns); and for each (k,) the least eigenvalue of G G* relative to the largest, 0 where they could not be
    closed."""
    if not chosen:
        return q, {}
    moving = dict(chosen)
    for _ in range(CLOSING_STEPS):
        errors, jacobians = equations.at(q)
        step = np.zeros((len(q), equations.mech.nv))
        for i, (rows, columns) in tuple(moving.items()):
            error, jacobian = errors[:, rows], jacobians[:, rows[:, None], columns]
            if np.mean(np.linalg.norm(error, axis=-1) <= 0.01 * LOOPS.closed) > 0.5:
                del moving[i]
                continue
            squares = jacobian @ np.swapaxes(jacobian, -1, -2)
            trace = np.trace(squares, axis1=-2, axis2=-1)
            damping = (1e-12 * trace + 1e-2 * (error**2).sum(axis=-1))[:, None, None] * np.eye(len(rows))
            change = -(np.swapaxes(jacobian, -1, -2) @ np.linalg.solve(squares + damping, error[..., None]))[..., 0]
            change *= np.minimum(1.0, 0.5 / np.maximum(np.abs(change).max(axis=-1, keepdims=True), 1e-300))
            step[:, columns] = change
        if not moving:
            break
        q = tree.integrate(equations.mech, q, step * equations.sizes.columns, 1.0)
    errors, jacobians = equations.at(q)
    least = {}
    for i, (rows, columns) in chosen.items():
        jacobian = jacobians[:, rows[:, None], columns]
        values = np.linalg.eigvalsh(jacobian @ np.swapaxes(jacobian, -1, -2))
        is_closed = np.linalg.norm(errors[:, rows], axis=-1) <= equations.exact
        least[i] = np.where(is_closed, np.maximum(values[:, 0], 0.0) / np.maximum(values[:, -1], 1e-300), 0.0)
    return q, least


def _obvious(equations: LoopEquations, cluster: Cluster, seen: _Evidence) -> _Verdict | None:
    """The verdict where loops close exactly, and no constraint but those which no motion violates is redundant."""
    rank = min(int(equations.sizes.structural[list(cluster.rows)].sum()), len(cluster.coordinates))
    independent = rank == 0 or seen.values[0, rank - 1] > _clear(len(cluster.loops))
    return _Verdict(rank, seen, equations.exact) if seen.errors[0] <= equations.exact and independent else None


def _weighed(
    equations: LoopEquations, undecided: Mapping[int, Cluster], q: np.ndarray, rng: np.random.Generator
) -> dict[int, _Verdict | None]:
    """Verdicts by following motions from configurations around q, with one rank after the other."""
    if not undecided:
        return {}
    near, is_near = _configurations_around(equations, q, rng)
    mine = {
        i: np.flatnonzero(is_near[:, equations.parts.columns[cluster.coordinates[0]]])
        for i, cluster in undecided.items()
    }
    seen_near = {i: seen.of(mine[i]) for i, seen in _evidence(equations, undecided, near).items()}
    candidates = {i: _candidates(seen) for i, seen in seen_near.items()}
    verdicts: dict[int, _Verdict | None] = {}
    while open_ones := {i: cluster for i, cluster in undecided.items() if i not in verdicts}:
        ranks = {i: candidates[i].pop(0) for i in open_ones}
        moving = LoopEquations(
            equations.mech, equations.sizes, tuple(_block(cluster, ranks[i]) for i, cluster in open_ones.items())
        )
        strides = _followed(moving, near, rng)  # (strides, configurations, nq)
        numbers = np.arange(len(strides) * len(near)).reshape(len(strides), -1)
        there, kept = (
            _evidence(system, open_ones, strides.reshape(-1, equations.mech.nq)) for system in (equations, moving)
        )
        for i in open_ones:
            if _is_infinitesimal(equations, open_ones[i], ranks[i], seen_near[i]):
                verdicts[i] = _Verdict(
                    ranks[i], seen_near[i].of(_closed_with(equations, seen_near[i], ranks[i])), equations.exact
                )
                continue
            started = mine[i][_has_gap(seen_near[i].values, ranks[i])]
            which = numbers[:, started if len(started) else mine[i]].ravel()
            seen = there[i].of(which)
            fine = _fine(seen, ranks[i]) & (kept[i].errors[which] <= equations.exact)
            if fine.mean() >= LEAST_SHARE:
                verdicts[i] = _Verdict(ranks[i], seen.of(fine), equations.exact)
            elif not candidates[i]:
                exact = seen_near[i].errors <= equations.exact  # configurations that no motion leads away from
                verdicts[i] = _Verdict(ranks[i], seen_near[i].of(exact), equations.exact) if exact.any() else None
    return verdicts


def _closed_with(whole: LoopEquations, seen: _Evidence, rank: int) -> np.ndarray:
    """(k,): configurations that are closed exactly, with this rank."""
    return (
        (seen.errors <= whole.exact) & (seen.values[:, rank:] <= seen.noise).all(axis=-1) & _has_gap(seen.values, rank)
    )


def _is_infinitesimal(whole: LoopEquations, cluster: Cluster, rank: int, seen: _Evidence) -> bool:
    """Whether the rank is that of all closed configurations which were looked at, and motions of the null space are
    blocked to second order, by more than the roughest data would explain: loops open then along the way, if the
    constraints that should not count are left out, and no rounding is to blame."""
    exact = seen.errors <= whole.exact
    return (
        bool(exact[0])
        and bool((_closed_with(whole, seen, rank) == exact).all())
        and all(
            _blocked(whole.mech, cluster, seen.of(k == np.arange(len(exact))), rank)
            for k in np.flatnonzero(exact)[:LOOKED_AT]
        )
    )


def _blocked(mech: Mechanism, cluster: Cluster, seen: _Evidence, rank: int) -> int:
    """How many motions are blocked to second order in the one configuration that was seen."""
    rows, columns = np.array(cluster.rows), np.array(cluster.coordinates)

    def terms(v: np.ndarray) -> np.ndarray:
        whole = np.zeros((len(v), mech.nv))
        whole[:, columns] = v
        return second_order_terms(mech, seen.q[0], whole)[:, rows]

    return round(float(np.trace(blocked_motions(seen.jacobians[0], terms, rank))))


def _block(cluster: Cluster, rank: int, closure: float = np.inf) -> RoundedBlock:
    return RoundedBlock(np.array(cluster.rows), np.array(cluster.coordinates), rank, closure)


def _assembled_roughly(equations: LoopEquations, start: np.ndarray, rng: np.random.Generator) -> np.ndarray | None:
    """(nq,): a configuration with loops closed as well as can be, from the start or else from random guesses."""
    mech = equations.mech
    if np.linalg.norm(equations.error(start)) <= equations.exact and equations.are_aligned(start).all():
        return start
    q, parts = np.array(start, dtype=float), equations.parts
    is_open = np.ones(parts.count, dtype=bool)
    for guesses in (start[None], random_configurations(mech, rng, GUESSES), _arcs(mech, start, rng)):
        guesses = np.where(parts.at_places(is_open), guesses, q)
        there = closed_by(equations, guesses, Goal(200))
        errors = np.where(equations.are_aligned(there), parts.norms(equations.error(there)), np.inf)
        best = np.argmin(errors, axis=0)
        is_assembled = is_open & (errors.min(axis=0) <= LOOPS.rough)
        nearest = np.take_along_axis(there, parts.at_places(best)[None], axis=0)[0]
        q, is_open = np.where(parts.at_places(is_assembled), nearest, q), is_open & ~is_assembled
        if not is_open.any():
            return q
    return None


def _arcs(mech: Mechanism, start: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """(k, nq): configurations in which all joints move alike from the start, by up to a turn altogether.  Long chains
    are near arcs, from which their loops close, and coils where joints move at random."""
    turns = np.linspace(-2.0, 2.0, GUESSES)[:, None] * np.pi / max(1, mech.nv)
    changes = turns * (1.0 + 0.1 * rng.normal(size=(GUESSES, mech.nv)))
    return tree.integrate(mech, start, changes * sizes(mech).columns, 1.0)


def _configurations_around(
    equations: LoopEquations, q: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """(k, nq): configurations nearly closed, some of them away from a singular position that q may be; and of which
    parts (k, parts) they are, the others being where they are in q."""
    mech, columns, parts = equations.mech, equations.sizes.columns, equations.parts
    changes = np.array(TRIALS)[:, None] * rng.normal(size=(len(TRIALS), mech.nv)) * columns
    guesses = tree.integrate(mech, q, changes, 1.0)
    # Where loops do not close exactly, as near as they come in the first steps: later ones make use of rounding.
    rough, exact = 0.01 * LOOPS.rough, equations.exact
    roughly = closed_by(equations, guesses, Goal(50, rough, rough))
    exactly = closed_by(equations, roughly, Goal(50, exact))
    there = np.where(parts.at_places(parts.norms(equations.error(exactly)) <= exact), exactly, roughly)
    is_near = (parts.norms(equations.error(there)) <= LOOPS.rough) & equations.are_aligned(there)
    there, some = np.where(parts.at_places(is_near), there, q), is_near.any(axis=-1)
    return np.concatenate([q[None], there[some]]), np.concatenate(
        [np.ones((1, parts.count), dtype=bool), is_near[some]]
    )


def _evidence(equations: LoopEquations, parts: Mapping[int, Cluster], q: np.ndarray) -> dict[int, _Evidence]:
    """What configurations (k, nq) say of each cluster.  G of all loops is large: a few configurations at a time."""
    some = max(1, int(AT_ONCE / max(1, equations.mech.n_constraints * equations.mech.nv)))
    errors: dict[int, list[np.ndarray]] = {i: [] for i in parts}
    jacobians: dict[int, list[np.ndarray]] = {i: [] for i in parts}
    for first in range(0, len(q), some):
        error, jacobian = equations.at(q[first : first + some])
        for i, cluster in parts.items():
            rows, columns = np.array(cluster.rows), np.array(cluster.coordinates)
            errors[i].append(np.linalg.norm(error[:, rows], axis=-1))
            jacobians[i].append(jacobian[:, rows[:, None], columns])
    return {i: _judged(q, np.concatenate(jacobians[i]), np.concatenate(errors[i])) for i in parts}


def _judged(q: np.ndarray, jacobians: np.ndarray, errors: np.ndarray) -> _Evidence:
    values = np.linalg.svd(jacobians, compute_uv=False)
    relative = np.divide(values, values[:, :1], out=np.zeros_like(values), where=values[:, :1] > 0.0)
    return _Evidence(q, jacobians, relative, errors)


def _candidates(seen: _Evidence) -> list[int]:
    """Ranks that gaps between singular values speak for, ascending: in enough of the configurations that do not have
    fewer clearly independent constraints, as singular positions do.  The last is that of constraints all of which
    count."""
    full = int((seen.values > seen.noise).sum(axis=-1).max())
    clear = (seen.values > LOOPS.rough).sum(axis=-1)
    votes = {k: _has_gap(seen.values, k)[clear >= k] for k in range(1, full)}
    return [k for k, share in votes.items() if len(share) and share.mean() >= LEAST_VOTES] + [full]


def _has_gap(values: np.ndarray, rank: int) -> np.ndarray:
    """(k,): whether the singular values (k, n) of a configuration speak for a rank."""
    last, after = values[:, rank - 1], values[:, rank:].max(axis=-1, initial=0.0)
    return (last > LOOPS.rough) & (after <= LOOPS.rough) & (last > LOOPS.gap * after)


def _followed(equations: LoopEquations, q: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """(strides, k, nq): where motions lead from q (k, nq) along which the constraints hold that count."""
    mech, columns = equations.mech, equations.sizes.columns
    direction, reached = rng.normal(size=(len(q), mech.nv)), []
    for stride in range(STRIDES + 1):
        q = closed_by(equations, q, Goal(15))
        reached.append(q)
        if stride < STRIDES:
            jacobian = equations.at(q)[1]
            for _ in range(2):  # a motion that keeps loops closed
                direction = direction - decompose(jacobian).solve(times(jacobian, direction))
            length = np.abs(direction).max(axis=-1, keepdims=True)
            direction = np.divide(direction, length, out=np.zeros_like(direction), where=length > LOOPS.rank)
            q = tree.integrate(mech, q, STRIDE * direction * columns, 1.0)
    return np.array(reached[1:])


def _fine(seen: _Evidence, rank: int) -> np.ndarray:
    """(k,): whether loops are closed, and what should not count is small, to what rounding explains."""
    return (seen.errors <= LOOPS.rough) & (seen.values[:, rank:].max(axis=-1, initial=0.0) <= LOOPS.rough)


# -- what is said ---------------------------------------------------------------------------------------


def _without_loops(cluster: Cluster) -> ClusterRedundancy:
    return ClusterRedundancy((), 0, len(cluster.coordinates), 0)


def _bounded(mech: Mechanism, cluster: Cluster) -> ClusterRedundancy:
    """What is known of a cluster without an assembled configuration."""
    names = tuple(mech.loops[i].name for i in cluster.loops)
    m, n = len(cluster.rows), len(cluster.coordinates)
    return ClusterRedundancy(names, m, n, min(m, n), 0.0, 0.0, np.inf if names else 0.0)


def _said(mech: Mechanism, cluster: Cluster, verdict: _Verdict) -> ClusterRedundancy:
    rank, seen = verdict.rank, verdict.seen
    best = int(np.argmax(seen.values[:, rank - 1])) if rank else 0
    error = float64_function(mech, "position_error")(seen.q)[:, list(cluster.rows)]
    return ClusterRedundancy(
        tuple(mech.loops[i].name for i in cluster.loops),
        len(cluster.rows),
        len(cluster.coordinates),
        rank,
        float(seen.values[best, rank - 1]) if rank else 1.0,
        verdict.largest,
        float(np.linalg.norm(error, axis=-1).max()),
        _named(mech, cluster, rank, seen.jacobians[best]),
        verdict.is_rounded,
        _infinitesimal(mech, cluster, verdict),
    )


def _infinitesimal(mech: Mechanism, cluster: Cluster, found: _Verdict) -> int:
    """The least number of motions that are blocked to second order in the configurations that speak for the verdict."""
    if found.is_rounded or found.rank == len(cluster.rows):
        return 0
    some = range(min(len(found.seen.q), LOOKED_AT))
    each = np.arange(len(found.seen.q))
    return min((_blocked(mech, cluster, found.seen.of(each == k), found.rank) for k in some), default=0)


def _named(mech: Mechanism, cluster: Cluster, rank: int, jacobian: np.ndarray) -> tuple[str, ...]:
    """The constraints that follow from those which pivoting finds to be independent, by what they keep from moving;
    ``jacobian`` (m, n) is G of the cluster."""
    dependent = np.sort(pivoted_qr(jacobian.T).pivots[rank:])
    words = [word for number in cluster.loops for word in _in_words(mech.loops[number])]
    return tuple(words[row] for row in dependent)


def _in_words(loop: Constraint) -> list[str]:
    """The constraints of a loop or coupling."""
    if isinstance(loop, Loop):
        return [f"{motion} of loop {loop.name!r}" for motion in _prevented(loop.kind)]
    return [f"coupling {loop.name!r}"]


@lru_cache(maxsize=64)
def _prevented(kind: LoopKind) -> tuple[str, ...]:
    """The motions that each constraint prevents where the two sides coincide, along the axes of pose_a."""
    axes, small = np.array(kind.alignment, dtype=float), 1e-6
    still = np.array(kind.closure(Matrix3.from_rows(np.eye(3).tolist()), Vector3(0.0, 0.0, 0.0)), dtype=float)
    rotated = [
        kind.closure(Matrix3.from_rows(_rotated(axis, small).tolist()), Vector3(0.0, 0.0, 0.0)) for axis in range(3)
    ]
    moved = [kind.closure(Matrix3.from_rows(np.eye(3).tolist()), Vector3(*(small * np.eye(3)[k]))) for k in range(3)]
    rates = (np.array([*rotated, *moved], dtype=float) - still).T / small  # by numbers of the closure, canonical axes
    sliding = kind.sliding(Matrix3.from_rows(np.eye(3).tolist()), Vector3(0.0, 0.0, 0.0))
    rates = np.array([*rates, *(row.flat() for row in sliding)], dtype=float)
    return tuple(_words(axes @ rate[:3], axes @ rate[3:]) for rate in rates)


def _rotated(axis: int, angle: float) -> np.ndarray:
    """A small rotation about a coordinate axis."""
    return np.eye(3) + angle * np.cross(np.eye(3), np.eye(3)[axis])


def _words(rotation: np.ndarray, translation: np.ndarray) -> str:
    rotates, moves = np.linalg.norm(rotation), np.linalg.norm(translation)
    motion, along = (
        ("translation along", translation / moves) if moves > 1e-3 else ("rotation about", rotation / rotates)
    )
    for name, axis in zip("xyz", np.eye(3), strict=True):
        if abs(along @ axis) > 1.0 - 1e-6:
            return f"{motion} {name}"
    return f"{motion} ({', '.join(f'{x:.3g}' for x in along.round(6) + 0.0)})"
