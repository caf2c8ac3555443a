"""Redundant constraints: a property of a mechanism and the precision of its data, decided once.

Data with errors of size eps make redundant constraints look independent: loops close to about eps only, and G has
singular values of about eps where those of exact data are zero.  Two criteria separate them from independent
constraints: there is a gap between their singular values and the others; and without them the mechanism moves by finite
distances, along which loops stay closed, and these singular values small, up to such an eps.
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
from .loop_closure import Goal, LoopEquations, RoundedBlock, close_loops
from .second_order import blocked_motions
from .sizes import random_configurations, sizes
from .tolerances import LOOPS

TRIALS = (0.03, 0.1, 0.2, 0.3, 0.3, 0.5, 0.7, 1.0)  # dimensionless: sizes of random changes of a configuration
GUESSES = 24  # random configurations from which a mechanism is assembled, if its initial one is not assembled
STRIDE, STRIDES = 0.15, 3  # dimensionless length and number of test motions without the redundant constraints
LEAST_VOTES = 0.25  # of the least singular configurations: share that must have the gap of a rank
LEAST_SHARE = 0.5  # of the test motions: share that must succeed, as some end where the motion ends
SEARCHES = 4  # attempts to find a configuration in which all constraints are independent
FEW, CLOSING_STEPS = 12, 40  # guesses for each loop in one-by-one assembly, and steps of each
LOOKED_AT = 3  # number of configurations in which motions must be blocked to second order
AT_ONCE = 2e7  # entries of G of all loops that are evaluated at once
DOUBTFUL = 0.02  # singular values of locked mechanisms: smaller ones are reported


@dataclass(frozen=True)
class ClusterRedundancy:
    """The constraints of one cluster of loops; singular values are of dimensionless constraints, relative to the
    largest.

    loops         names; empty for links without loops
    constraints, coordinates   numbers of constraints and coordinates
    rank          of G away from singular positions: the number of independent constraints
    smallest      smallest nonzero singular value in the best-conditioned configuration examined
    largest       largest singular value that counts as zero, in any configuration
    closure       (metres and sines of angles): the error |g| of closed loops
    redundant     descriptions of the redundant constraints; axes are those of pose_a
    is_rounded    whether they are redundant up to the rounding of the data only
    infinitesimal number of motions that constraints allow to first order and block to second, at every position
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
    """Redundant constraints of a mechanism; make one with ``redundancy``.

    clusters    one entry for each of ``mechanism.clusters.clusters(mech)``
    assembled   whether a configuration was found with all loops closed up to rounding; otherwise ranks are bounds
    around      (nq,): an assembled configuration with these ranks if the initial one has lower ranks; else empty
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
        """The error |g| of closed loops (metres and sines of angles)."""
        return max((cluster.closure for cluster in self.clusters), default=0.0)

    @property
    def redundant(self) -> tuple[str, ...]:
        """Descriptions of the redundant constraints."""
        return tuple(words for cluster in self.clusters for words in cluster.redundant)

    @property
    def rounding(self) -> float:
        """Dimensionless bound of errors and singular values by rounding of the data."""
        return max((block.closure for block in self.blocks), default=0.0)

    @property
    def is_rounded(self) -> bool:
        """Whether some constraints are redundant up to the rounding of the data only."""
        return any(cluster.is_rounded for cluster in self.clusters)

    def __str__(self) -> str:
        return "\n".join(str(cluster) for cluster in self.clusters if cluster.loops) or "no loops"

    _repr_mimebundle_ = mimebundle


def redundancy(mech: Mechanism, q: ArrayLike | None = None) -> Redundancy:
    """Independent and redundant constraints of a mechanism, exactly or up to the rounding of its data.

    All functions of ``lw.constraints`` use it.  It is decided once, around ``mech.initial`` or a configuration
    assembled from random guesses, and stored with the mechanism.  With ``q`` it is decided again, around q.  A
    ``MechanismWarning`` names the constraints that are redundant up to rounding only.
    """
    if q is not None:
        (q,) = checked_arrays(mech, q=q)
        if q.ndim > 1 or not np.isfinite(q).all():
            raise MechanismError(f"redundancy of mechanism {mech.name!r} is decided around one configuration, finite")
        return _decide(mech, q)
    try:
        return mech._kernels[redundancy]
    except (KeyError, AttributeError):  # not decided yet, or no mechanism
        return stored(mech, redundancy, lambda: _decided_in_family(mech.constraints.structure))


def decide_around(mech: Mechanism, q: np.ndarray) -> None:
    """Decide redundancy around q (nq,) if it is undecided for want of an assembled configuration."""
    if not redundancy(mech).assembled and (decided := _warn_of_redundancy(mech, _decide(mech, q))).assembled:
        mech._kernels.pop(loop_equations, None)
        mech._kernels[redundancy] = decided


def loop_equations(mech: Mechanism) -> LoopEquations:
    """g and G of a mechanism without the rounding of its data."""
    return stored(mech, loop_equations, lambda: LoopEquations.of(mech, redundancy(mech).blocks))


def closable_error(mech: Mechanism, q: np.ndarray) -> np.ndarray:
    """(..., m): g without the rounding of the data: zero for closed loops."""
    if redundancy(mech).blocks:
        return loop_equations(mech).with_dimensions(q)[0]
    return float64_function(mech, "position_error")(q)


def closable_jacobian(mech: Mechanism, q: np.ndarray) -> np.ndarray:
    """(..., m, nv): G without the rank that rounding of the data adds."""
    return without_rounding(mech, float64_function(mech, "constraint_jacobian")(q))


def without_rounding(mech: Mechanism, jacobian: np.ndarray, of_constraints: np.ndarray | None = None) -> np.ndarray:
    """G (..., m, nv) without the rank that rounding of the data adds; or other columns ``of_constraints``, projected
    likewise."""
    if not redundancy(mech).blocks:
        return jacobian if of_constraints is None else of_constraints
    return loop_equations(mech).without_rounding(jacobian, of_constraints)


def second_order_terms(mech: Mechanism, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """(k, m): dimensionless dG/dt v of dimensionless velocities (k, nv) at q (nq,), without the terms of drives."""
    size, bias = sizes(mech), float64_function(mech, "constraint_bias")
    rates = v * size.columns
    return size.rows * (0.5 * (bias(q, rates) + bias(q, -rates)) - bias(q, np.zeros(mech.nv)))


def _decided_in_family(mech: Mechanism) -> Redundancy:
    """Redundancy decided once for all variants with the same poses, whatever their masses and gravity."""
    if "_family" not in mech.__dict__ or differs_in_poses(mech):
        return _warn_of_redundancy(mech, _decide(mech, mech.initial))
    known = mech._family.code
    return known.get(redundancy) or known.setdefault(redundancy, _warn_of_redundancy(mech, _decide(mech, mech.initial)))


def _warn_of_redundancy(mech: Mechanism, decided: Redundancy) -> Redundancy:
    """The decided redundancy; warns of unexpected findings."""
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
    for entry in doubtful:
        warn_caller(
            f"mechanism {mech.name!r} is locked: {entry}.  The weakest of its constraints has the singular value "
            f"{entry.smallest:.1e}: if it should move, its dimensions are not exact enough",
            MechanismWarning,
        )
    return decided


# -- how it is decided ----------------------------------------------------------------------------------


class _Evidence(NamedTuple):
    """G (k, m, n) of a cluster at configurations (k, nq), singular values (k, n) relative to the largest, descending,
    and errors (k,), all dimensionless."""

    q: np.ndarray
    jacobians: np.ndarray
    values: np.ndarray
    errors: np.ndarray

    @property
    def noise(self) -> np.ndarray:
        """(k, 1): bound of singular values by noise.  An error e of a loop that closes in a singular position only
        allows a displacement sqrt(e), and singular values of this size."""
        return np.maximum(LOOPS.rank, 10.0 * np.sqrt(np.minimum(self.errors, LOOPS.closed)))[:, None]

    def of(self, which: np.ndarray) -> _Evidence:
        """The evidence of the configurations ``which``, indices or a mask (k,)."""
        return _Evidence(*(x[which] for x in self))


class _Verdict(NamedTuple):
    """A rank, the configurations that support it, and the error of loops that are closed exactly."""

    rank: int
    seen: _Evidence
    exact: float

    @property
    def largest(self) -> float:
        """The largest singular value that counts as zero."""
        return float(self.seen.values[:, self.rank :].max(initial=0.0))

    @property
    def rounding(self) -> float:
        return max(float(self.seen.errors.max()), self.largest)

    @property
    def is_rounded(self) -> bool:
        redundant = self.seen.values[:, self.rank :]
        return bool(self.seen.errors.max() > self.exact or (redundant > self.seen.noise).any())


def _decide(mech: Mechanism, start: np.ndarray) -> Redundancy:
    parts = clusters(mech)
    if not mech.loops:
        return Redundancy(tuple(_record_without_loops(cluster) for cluster in parts), True)
    equations, rng = LoopEquations.of(mech), np.random.default_rng(0)
    q = _assemble_roughly(equations, np.asarray(start), rng)
    if q is None:
        return Redundancy(tuple(_bounded(mech, cluster) for cluster in parts), False)
    own_loops = {i: cluster for i, cluster in enumerate(parts) if cluster.loops}
    verdicts = {i: _obvious(equations, parts[i], seen) for i, seen in _evidence(equations, own_loops, q[None]).items()}
    doubtful = {i: parts[i] for i, verdict in verdicts.items() if verdict is None}
    other = _assemble_one_by_one(equations, doubtful, q)
    elsewhere = False
    for i, seen in _evidence(equations, doubtful, other[None]).items() if doubtful else ():
        verdicts[i] = _obvious(equations, parts[i], seen)
        if verdicts[i] is not None:
            q, elsewhere = np.where(equations.parts.is_of(parts[i]), other, q), True
    verdicts |= _weigh_ranks(equations, {i: parts[i] for i, verdict in verdicts.items() if verdict is None}, q, rng)
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
            _cluster_record(mech, cluster, decided[i]) if i in decided else _record_without_loops(cluster)
            for i, cluster in enumerate(parts)
        ),
        True,
        tuple(blocks),
        tuple(q.tolist()) if elsewhere else (),
    )


def _assemble_one_by_one(equations: LoopEquations, undecided: Mapping[int, Cluster], q: np.ndarray) -> np.ndarray:
    """(nq,): a configuration with all loops of these clusters closed and all constraints independent; q in clusters
    where none is found.  Loops are closed one after the other, each as far from singular as a few guesses allow.

    The initial configuration may be folded: its constraints are dependent there, and along a whole branch that is not
    the working one.
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
    """(nq,) and clusters: one attempt of one-by-one assembly.  Loops closed back to back are rejected: antiparallel
    joint axes make another linkage.  Clusters share no constraint and no coordinate, so that each call of a kernel
    serves all of them."""
    mech, structural = equations.mech, equations.sizes.structural
    left = {i: cluster for i, cluster in parts.items() if cluster.loops}
    closed = {i: np.zeros(0, dtype=int) for i in left}
    known = {i: np.zeros(mech.nv, dtype=bool) for i in left}
    guesses = np.repeat(np.asarray(q, dtype=float)[None], FEW, axis=0)
    for k in range(max((len(cluster.loops) for cluster in left.values()), default=0)):
        added: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        for i, member in left.items():
            if k < len(member.loops):
                loop = mech.loops[member.loops[k]]
                at, tied, new = mech.constraints.rows(loop.name), set(member.rows), np.zeros(mech.nv, dtype=bool)
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
        guesses, _ = _close_alone(equations, guesses, alone)  # other coordinates stay if possible
        together = {i: (closed[i], np.flatnonzero(known[i])) for i in added if len(closed[i])}
        guesses, smallest = _close_alone(equations, guesses, together)
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
    """The least singular value of surely independent constraints; smaller in ladders of many loops, whose lever arms
    grow."""
    return LOOPS.rough / max(1.0, loops / 3.0) ** 2


def _close_alone(
    equations: LoopEquations, q: np.ndarray, chosen: Mapping[int, tuple[np.ndarray, np.ndarray]]
) -> tuple[np.ndarray, dict[int, np.ndarray]]:
    """(k, nq): configurations with the constraints ``rows`` of each cluster closed by moving ``columns``; and for each
    cluster (k,) the least eigenvalue of G G* relative to the largest, 0 on failure."""
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
    """The verdict for loops that close exactly, without redundant constraints except those that no motion violates."""
    rank = min(int(equations.sizes.structural[list(cluster.rows)].sum()), len(cluster.coordinates))
    independent = rank == 0 or seen.values[0, rank - 1] > _clear(len(cluster.loops))
    return _Verdict(rank, seen, equations.exact) if seen.errors[0] <= equations.exact and independent else None


def _weigh_ranks(
    equations: LoopEquations, undecided: Mapping[int, Cluster], q: np.ndarray, rng: np.random.Generator
) -> dict[int, _Verdict | None]:
    """Verdicts by test motions from configurations around q, for one rank after the other."""
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
        strides = _follow_motions(moving, near, rng)  # (strides, configurations, nq)
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
                exact = seen_near[i].errors <= equations.exact  # configurations without a motion
                verdicts[i] = _Verdict(ranks[i], seen_near[i].of(exact), equations.exact) if exact.any() else None
    return verdicts


def _closed_with(equations: LoopEquations, seen: _Evidence, rank: int) -> np.ndarray:
    """(k,): whether configurations are closed exactly, with this rank."""
    return (
        (seen.errors <= equations.exact)
        & (seen.values[:, rank:] <= seen.noise).all(axis=-1)
        & _has_gap(seen.values, rank)
    )


def _is_infinitesimal(equations: LoopEquations, cluster: Cluster, rank: int, seen: _Evidence) -> bool:
    """Whether all closed configurations examined have this rank, and motions of the null space are blocked to second
    order beyond the rounding of the roughest data.  Test motions then open loops, though the constraints are no
    rounding."""
    exact = seen.errors <= equations.exact
    return (
        bool(exact[0])
        and bool((_closed_with(equations, seen, rank) == exact).all())
        and all(
            _blocked(equations.mech, cluster, seen.of(k == np.arange(len(exact))), rank)
            for k in np.flatnonzero(exact)[:LOOKED_AT]
        )
    )


def _blocked(mech: Mechanism, cluster: Cluster, seen: _Evidence, rank: int) -> int:
    """Number of motions blocked to second order in the single configuration of ``seen``."""
    rows, columns = np.array(cluster.rows), np.array(cluster.coordinates)

    def terms(v: np.ndarray) -> np.ndarray:
        all_v = np.zeros((len(v), mech.nv))
        all_v[:, columns] = v
        return second_order_terms(mech, seen.q[0], all_v)[:, rows]

    return round(float(np.trace(blocked_motions(seen.jacobians[0], terms, rank))))


def _block(cluster: Cluster, rank: int, closure: float = np.inf) -> RoundedBlock:
    return RoundedBlock(np.array(cluster.rows), np.array(cluster.coordinates), rank, closure)


def _assemble_roughly(equations: LoopEquations, start: np.ndarray, rng: np.random.Generator) -> np.ndarray | None:
    """(nq,): a configuration with loops closed as well as possible, from the start or random guesses; None on
    failure."""
    mech = equations.mech
    if np.linalg.norm(equations.error(start)) <= equations.exact and equations.are_aligned(start).all():
        return start
    q, parts = np.array(start, dtype=float), equations.parts
    is_open = np.ones(parts.count, dtype=bool)
    for guesses in (start[None], random_configurations(mech, rng, GUESSES), _arcs(mech, start, rng)):
        guesses = np.where(parts.spread_to_positions(is_open), guesses, q)
        there = close_loops(equations, guesses, Goal(200))
        errors = np.where(equations.are_aligned(there), parts.norms(equations.error(there)), np.inf)
        best = np.argmin(errors, axis=0)
        is_assembled = is_open & (errors.min(axis=0) <= LOOPS.rough)
        nearest = np.take_along_axis(there, parts.spread_to_positions(best)[None], axis=0)[0]
        q, is_open = np.where(parts.spread_to_positions(is_assembled), nearest, q), is_open & ~is_assembled
        if not is_open.any():
            return q
    return None


def _arcs(mech: Mechanism, start: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """(k, nq): configurations in which all joints move equally from the start, up to one turn in total.  Long chains
    form arcs, from which loops close; random joint motions would coil them."""
    turns = np.linspace(-2.0, 2.0, GUESSES)[:, None] * np.pi / max(1, mech.nv)
    changes = turns * (1.0 + 0.1 * rng.normal(size=(GUESSES, mech.nv)))
    return tree.integrate(mech, start, changes * sizes(mech).columns, 1.0)


def _configurations_around(
    equations: LoopEquations, q: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """(k, nq): nearly closed configurations, some away from q in case it is singular; and (k, parts): whether a part
    was moved from q."""
    mech, columns, parts = equations.mech, equations.sizes.columns, equations.parts
    changes = np.array(TRIALS)[:, None] * rng.normal(size=(len(TRIALS), mech.nv)) * columns
    guesses = tree.integrate(mech, q, changes, 1.0)
    # Loops that do not close exactly are taken after the first steps: later ones exploit rounding.
    rough, exact = 0.01 * LOOPS.rough, equations.exact
    roughly = close_loops(equations, guesses, Goal(50, rough, rough))
    exactly = close_loops(equations, roughly, Goal(50, exact))
    there = np.where(parts.spread_to_positions(parts.norms(equations.error(exactly)) <= exact), exactly, roughly)
    is_near = (parts.norms(equations.error(there)) <= LOOPS.rough) & equations.are_aligned(there)
    there, some = np.where(parts.spread_to_positions(is_near), there, q), is_near.any(axis=-1)
    return np.concatenate([q[None], there[some]]), np.concatenate(
        [np.ones((1, parts.count), dtype=bool), is_near[some]]
    )


def _evidence(equations: LoopEquations, parts: Mapping[int, Cluster], q: np.ndarray) -> dict[int, _Evidence]:
    """The evidence of configurations (k, nq) for each cluster; evaluated in chunks, since G of all loops is large."""
    some = max(1, int(AT_ONCE / max(1, equations.mech.n_constraints * equations.mech.nv)))
    errors: dict[int, list[np.ndarray]] = {i: [] for i in parts}
    jacobians: dict[int, list[np.ndarray]] = {i: [] for i in parts}
    for first in range(0, len(q), some):
        error, jacobian = equations.at(q[first : first + some])
        for i, cluster in parts.items():
            rows, columns = np.array(cluster.rows), np.array(cluster.coordinates)
            errors[i].append(np.linalg.norm(error[:, rows], axis=-1))
            jacobians[i].append(jacobian[:, rows[:, None], columns])
    return {i: _measure(q, np.concatenate(jacobians[i]), np.concatenate(errors[i])) for i in parts}


def _measure(q: np.ndarray, jacobians: np.ndarray, errors: np.ndarray) -> _Evidence:
    values = np.linalg.svd(jacobians, compute_uv=False)
    relative = np.divide(values, values[:, :1], out=np.zeros_like(values), where=values[:, :1] > 0.0)
    return _Evidence(q, jacobians, relative, errors)


def _candidates(seen: _Evidence) -> list[int]:
    """Candidate ranks, ascending: those with a gap between singular values in enough configurations, without singular
    positions; the last is full rank."""
    full = int((seen.values > seen.noise).sum(axis=-1).max())
    clear = (seen.values > LOOPS.rough).sum(axis=-1)
    votes = {k: _has_gap(seen.values, k)[clear >= k] for k in range(1, full)}
    return [k for k, share in votes.items() if len(share) and share.mean() >= LEAST_VOTES] + [full]


def _has_gap(values: np.ndarray, rank: int) -> np.ndarray:
    """(k,): whether the singular values (k, n) have a gap at a rank."""
    last, after = values[:, rank - 1], values[:, rank:].max(axis=-1, initial=0.0)
    return (last > LOOPS.rough) & (after <= LOOPS.rough) & (last > LOOPS.gap * after)


def _follow_motions(equations: LoopEquations, q: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """(strides, k, nq): configurations of test motions from q (k, nq) within the independent constraints."""
    mech, columns = equations.mech, equations.sizes.columns
    direction, reached = rng.normal(size=(len(q), mech.nv)), []
    for stride in range(STRIDES + 1):
        q = close_loops(equations, q, Goal(15))
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
    """(k,): whether loops are closed, and singular values beyond the rank small, up to rounding."""
    return (seen.errors <= LOOPS.rough) & (seen.values[:, rank:].max(axis=-1, initial=0.0) <= LOOPS.rough)


# -- descriptions ---------------------------------------------------------------------------------------


def _record_without_loops(cluster: Cluster) -> ClusterRedundancy:
    return ClusterRedundancy((), 0, len(cluster.coordinates), 0)


def _bounded(mech: Mechanism, cluster: Cluster) -> ClusterRedundancy:
    """The record of a cluster without an assembled configuration."""
    names = tuple(mech.loops[i].name for i in cluster.loops)
    m, n = len(cluster.rows), len(cluster.coordinates)
    return ClusterRedundancy(names, m, n, min(m, n), 0.0, 0.0, np.inf if names else 0.0)


def _cluster_record(mech: Mechanism, cluster: Cluster, verdict: _Verdict) -> ClusterRedundancy:
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
        _describe_redundant(mech, cluster, rank, seen.jacobians[best]),
        verdict.is_rounded,
        _infinitesimal(mech, cluster, verdict),
    )


def _infinitesimal(mech: Mechanism, cluster: Cluster, verdict: _Verdict) -> int:
    """The least number of motions blocked to second order in the configurations that support the verdict."""
    if verdict.is_rounded or verdict.rank == len(cluster.rows):
        return 0
    some = range(min(len(verdict.seen.q), LOOKED_AT))
    each = np.arange(len(verdict.seen.q))
    return min((_blocked(mech, cluster, verdict.seen.of(each == k), verdict.rank) for k in some), default=0)


def _describe_redundant(mech: Mechanism, cluster: Cluster, rank: int, jacobian: np.ndarray) -> tuple[str, ...]:
    """Descriptions of the redundant constraints, by the motions that they prevent; pivoting of ``jacobian`` (m, n), G
    of the cluster, selects the independent ones."""
    dependent = np.sort(pivoted_qr(jacobian.T).pivots[rank:])
    words = [word for number in cluster.loops for word in _describe_constraints(mech.loops[number])]
    return tuple(words[row] for row in dependent)


def _describe_constraints(loop: Constraint) -> list[str]:
    """Descriptions of the constraints of a loop or coupling."""
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
