"""One assembly mode of a closed mechanism over a grid of two of its coordinates."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ..constraints.decomposition import Decomposition, decompose
from ..constraints.named_coordinates import LimitSlack, NamedCoordinate
from ..mechanism import MechanismError
from .manifolds import Manifold, constraint_manifold

LARGEST_STEP = 0.5  # of a coordinate, from one configuration to the next
BENT = 0.05  # of a step: how much it may differ from the mean of the motions at both of its ends
ROUNDED = 1e-12  # dimensionless: what rounding may leave of a motion
ALIKE = 0.5  # cosine: planes of motions at both ends of a step include a smaller angle
AT_LIMIT = 1e-9  # dimensionless: what is nearer to a limit of a joint, or beyond, is stopped by it
SAME = 1e-6  # dimensionless: what is nearer is the same configuration
QUICK, CAREFUL, EXACT = 1.0 / 4.0, 1e-3, 1e-11  # of the way between neighbours: the smallest step towards the next one
UNNOTICED = 2e-3  # dimensionless: where careful steps that move the mechanism by less fail, it cannot go on
FIRST_STEP, DOUBLINGS = 0.02, 6  # along a curve towards the place where a coordinate turns back
Edge = tuple[int, int, int]  # axis, i, j: from node (i, j) to the next one along the axis
ROOT, ROOT_STEPS = 1e-13, 80  # of the interval of a root, and how often it is divided at most
NEIGHBOURS = ((0, 1), (0, -1), (1, 1), (1, -1))  # axis and sense


class Segments(NamedTuple):
    """Edges of a grid in parts, along each of which the mechanism moves only a little.

    edge     (n,): index of the edge
    shares   (n, 2): fractions of the edge at both ends of the part; 0 is the lower node, 1 the other
    q        (n, 2, nq): configurations at both ends
    """

    edge: np.ndarray
    shares: np.ndarray
    q: np.ndarray


class AssemblyModeGrid:
    """The configurations of an assembly mode at the nodes of a grid. Inside, the two coordinates are dimensionless like
    directions of motion, see ``Manifold``.

    units   (2,): of the two coordinates
    q       (n, nq): of the nodes that are reached
    node    (n, 2): indices of these nodes on the grid
    number  (n1, n2): index in q, -1 for nodes that are not reached
    bases   (n, nv, dof): null-space bases of the loops, with equal orientation everywhere (``oriented``)
    """

    def __init__(
        self,
        manifold: Manifold,
        pair: tuple[NamedCoordinate, NamedCoordinate],
        start: np.ndarray,
        first: np.ndarray,
        second: np.ndarray,
        slack: LimitSlack | None,
    ):
        self.manifold, self.slack, self.mech = manifold, slack, manifold.mech
        self.pair = (pair[0].dimensionless(manifold.units), pair[1].dimensionless(manifold.units))
        self.units = np.array([coordinate.unit(manifold.units) for coordinate in pair])
        self.lines = (first / self.units[0], second / self.units[1])
        self.unlocked = constraint_manifold(manifold.mech, start, ())
        self.pinned = replace(manifold, held=(*manifold.held, *self.pair), rank=manifold.rank + 2)
        self.held = manifold.values(start)
        self.number = np.full((len(first), len(second)), -1)
        self._tried: dict[tuple[int, int, int], float] = {}  # number of a node, axis, sense -> smallest step
        self._begin(start)
        self._spread()
        self._still = self._independent_rows(start)
        self.bases = self.oriented(self.q)

    # Reaching nodes ------------------------------------------------------------------------------------------------

    def _begin(self, start: np.ndarray) -> None:
        """Move from the start to the nearest node."""
        here = self.coordinates(start)
        node = np.array([[int(np.argmin(np.abs(line - x))) for line, x in zip(self.lines, here, strict=True)]])
        q, done = self._advance(start[None], here[None], self.node_coordinates(node), CAREFUL)
        if done[0] < 1.0:
            here = self.units * here
            raise MechanismError(
                f"no point of the grid is reached from q, where ({self.pair[0].name}, {self.pair[1].name}) = "
                f"({here[0]:.6g}, {here[1]:.6g}): choose bounds around it, and more points"
            )
        self.q, self.node, self.parent = q, node, np.zeros(1, dtype=int)
        self.number[tuple(node[0])] = 0

    def _spread(self) -> None:
        """Reach all reachable nodes, each from a neighbour; small steps are taken only where large ones fail."""
        smallest = QUICK
        while True:
            sources, axis, sense = self._frontier()
            exits = list(zip(sources.tolist(), axis.tolist(), sense.tolist(), strict=True))
            fresh = [k for k, way in enumerate(exits) if self._tried.get(way, 1.0) > smallest]
            self._tried.update(dict.fromkeys([exits[k] for k in fresh], smallest))
            if not fresh:
                if smallest == CAREFUL:
                    return
                smallest = CAREFUL
                continue
            before = len(self.q)
            self._reach(sources[fresh], axis[fresh], sense[fresh], smallest)
            if len(self.q) > before:
                smallest = QUICK

    def _frontier(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Reached nodes with an unreached neighbour: their numbers, and axis and sense of the neighbour."""
        border = []
        for axis, sense in NEIGHBOURS:
            there = self.node + sense * np.eye(2, dtype=int)[axis]
            inside = ((there >= 0) & (there < self.number.shape)).all(axis=-1)
            clipped = np.clip(there, 0, np.array(self.number.shape) - 1)
            sources = np.flatnonzero(inside & (self.number[clipped[:, 0], clipped[:, 1]] < 0))
            border.append(np.stack([sources, np.full(len(sources), axis), np.full(len(sources), sense)]))
        sources, axis, sense = np.concatenate(border, axis=1)
        return sources, axis, sense

    def _reach(self, sources: np.ndarray, axis: np.ndarray, sense: np.ndarray, smallest: float) -> None:
        goals = self.node[sources] + sense[:, None] * np.eye(2, dtype=int)[axis]
        _, once = np.unique(goals @ [self.number.shape[1], 1], return_index=True)
        for some in (once, np.setdiff1d(np.arange(len(goals)), once)):  # a node may be next to several
            some = some[self.number[goals[some, 0], goals[some, 1]] < 0]
            if not len(some):
                continue
            q, done = self._advance(
                self.q[sources[some]],
                self.node_coordinates(self.node[sources[some]]),
                self.node_coordinates(goals[some]),
                smallest,
            )
            new = np.flatnonzero(done >= 1.0)
            keys = goals[some][new]
            _, single = np.unique(keys @ [self.number.shape[1], 1], return_index=True)
            new, keys = new[single], keys[single]
            self.number[keys[:, 0], keys[:, 1]] = len(self.q) + np.arange(len(keys))
            self.q, self.node = np.concatenate([self.q, q[new]]), np.concatenate([self.node, keys])
            self.parent = np.concatenate([self.parent, sources[some][new]])

    def _advance(
        self,
        q: np.ndarray,
        start: np.ndarray,
        goal: np.ndarray,
        smallest: float,
        met: list[tuple[np.ndarray, np.ndarray, np.ndarray]] | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Continue from q (n, nq) in straight lines from the coordinates ``start`` (n, 2) to ``goal`` (n, 2). Returns
        the configurations reached and the completed fraction (n,). Intermediate points are appended to ``met``:
        index, fraction, configuration.
        """
        q, done, pace = q.copy(), np.zeros(len(q)), np.ones(len(q))
        moves = np.zeros(len(q))  # the size of the motion that was tried last
        while True:
            goes_on = (pace >= smallest) | ((moves > UNNOTICED) & (pace >= EXACT) & (smallest <= CAREFUL))
            active = np.flatnonzero((done < 1.0) & goes_on)
            if not len(active):
                return q, done
            ahead = np.minimum(done[active] + pace[active], 1.0)
            way = (goal - start)[active]
            there, ok, moves[active] = self._moved(
                q[active], way * (ahead - done[active])[:, None], start[active] + way * ahead[:, None]
            )
            q[active[ok]], done[active[ok]] = there[ok], ahead[ok]
            pace[active] = np.where(ok, 1.5, 0.5) * pace[active]
            if met is not None:
                met.append((active[ok], ahead[ok], there[ok]))

    def _moved(
        self, q: np.ndarray, change: np.ndarray, values: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Configurations with the coordinates at ``values``, ``change`` away from those of q, whether they are
        certainly in the same assembly mode, and the step sizes that the tangents at q predict.

        A step is taken where the trapezoidal rule integrates it: where the motions at both ends, which are known from
        the constraints there, add up to the way between.  It is short then, compared with the radius of curvature, and
        ends on the branch on which it began.  It stays on one side of the positions in which the coordinates turn back,
        too: some branches go straight through them.
        """
        here, there = self.pinned.decomposed(q), q.copy()
        motion = self._motion(here, change)
        size = np.abs(motion).max(axis=-1)
        ok = size <= LARGEST_STEP
        there[ok], ok[ok] = self.pinned.corrected(self.manifold.moved(q[ok], motion[ok]), self._targets(values[ok]))
        way, jacobian = self.manifold.difference(q[ok], there[ok]), self.pinned.jacobian(there[ok])
        mean = 0.5 * (motion[ok] + self._motion(decompose(jacobian, rank=self.pinned.rank), change[ok]))
        longest, bend = (np.abs(x).max(axis=-1) for x in (way, way - mean))
        keeps_side = self._same_signs(here.u[ok], here.v[ok], jacobian, q[ok], there[ok])
        ok[ok] = keeps_side & (bend <= BENT * longest + max(ROUNDED, self.manifold.sizes.noise))
        return there, ok if self.slack is None else ok & (self.slack(there) >= 0.0).all(axis=-1), size

    def _same_signs(
        self, u: np.ndarray, v: np.ndarray, jacobian: np.ndarray, q: np.ndarray, there: np.ndarray
    ) -> np.ndarray:
        """(n,): whether neighbours q and ``there`` are on the same side of turning points of the coordinates. u and v
        are singular vectors of all constraints at q; ``jacobian`` is evaluated at ``there``.

        The determinant of all constraints changes its sign at turning points. It also does where loops become dependent
        and the determinant of the loops changes its sign, without a turning point. Near such positions the free motions
        turn quickly, and steps are shorter.
        """
        here, behind, rank = self.unlocked.decomposed(q), self.unlocked.decomposed(there), self.unlocked.rank
        overlap = np.swapaxes(here.v[..., rank:], -1, -2) @ behind.v[..., rank:]
        is_alike = np.linalg.svd(overlap, compute_uv=False).min(axis=-1, initial=1.0) >= ALIKE
        of_all = _sign_changes(u, v, jacobian, self.pinned.rank)
        return is_alike & (of_all == _sign_changes(here.u, here.v, self.unlocked.jacobian(there), rank))

    def _motion(self, pinned: Decomposition, change: np.ndarray) -> np.ndarray:
        """(n, nv): first-order motions that change the two coordinates by ``change`` (n, 2), from decomposed
        constraints.
        """
        count = self.mech.n_constraints + len(self.manifold.held)
        wanted = np.concatenate([np.zeros((len(change), count)), change], axis=-1)
        motion = np.zeros((len(change), self.mech.nv))
        motion[:, self.pinned.columns] = pinned.solve(wanted)
        return motion

    def _targets(self, values: np.ndarray) -> np.ndarray:
        held = np.broadcast_to(self.held, (*values.shape[:-1], len(self.held)))
        return np.concatenate([held, values], axis=-1)

    def _independent_rows(self, start: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        """A function (..., nq) -> (..., dof, nv): rates of the two grid coordinates and of enough locked coordinates
        to determine all motions.
        """
        joints = np.eye(self.mech.nv)[~self.manifold.free]

        def rows(q: np.ndarray) -> np.ndarray:
            named = [measure.rows(q)[..., None, :] for measure in (*self.pair, *self.manifold.held)]
            return np.concatenate([*named, np.broadcast_to(joints, (*q.shape[:-1], *joints.shape))], axis=-2)

        left, kept = rows(start) @ self.unlocked.basis(start), [0, 1]
        while len(kept) < self.unlocked.dof:
            others = left @ (np.eye(self.unlocked.dof) - np.linalg.pinv(left[kept]) @ left[kept])
            kept.append(int(np.argmax(np.linalg.norm(others, axis=-1))))
        return lambda q: rows(q)[..., kept, :]

    # What it is asked ----------------------------------------------------------------------------------------------

    def coordinates(self, q: np.ndarray) -> np.ndarray:
        """(..., 2): the two coordinates, dimensionless."""
        return np.stack([measure.value(q) for measure in self.pair], axis=-1)

    def node_coordinates(self, node: np.ndarray) -> np.ndarray:
        """(n, 2): the coordinates of nodes (n, 2), dimensionless."""
        return np.stack([line[node[:, axis]] for axis, line in enumerate(self.lines)], axis=-1)

    def grid_values(self, values: np.ndarray) -> np.ndarray:
        """(n1, n2, ...): node values (n, ...) on the grid, NaN where the assembly mode does not reach."""
        grid = np.full((*self.number.shape, *values.shape[1:]), np.nan)
        grid[self.node[:, 0], self.node[:, 1]] = values
        return grid

    def oriented(self, q: np.ndarray) -> np.ndarray:
        """(..., nv, dof): a null-space basis of the loops, oriented by the two grid coordinates and the locked ones,
        which determine all motions inside the grid.
        """
        bases = self.unlocked.basis(q)
        bases[..., 0] *= np.where(np.linalg.det(self._still(q) @ bases) < 0.0, -1.0, 1.0)[..., None]
        return bases

    @cached_property
    def inner_edges(self) -> tuple[Segments, list[Edge]]:
        """Segments of the edges between two reached nodes, and these edges."""
        nodes, edges = [np.zeros((0, 2), dtype=int)], []
        for axis in (0, 1):
            pairs = (self.number[:-1], self.number[1:]) if axis == 0 else (self.number[:, :-1], self.number[:, 1:])
            both = np.argwhere((pairs[0] >= 0) & (pairs[1] >= 0))
            nodes.append(np.stack([side[both[:, 0], both[:, 1]] for side in pairs], axis=-1))
            edges += [(axis, int(i), int(j)) for i, j in both]
        segments = self._segments(*np.concatenate(nodes).T)
        joined = np.unique(segments.edge)
        renumbered = np.full(len(edges), -1)
        renumbered[joined] = np.arange(len(joined))
        return segments._replace(edge=renumbered[segments.edge]), [edges[k] for k in joined.tolist()]

    def _segments(self, low: np.ndarray, high: np.ndarray) -> Segments:
        """Segments of the edges between nodes low (n,) and high (n,), without edges along which the assembly mode
        changes.
        """
        start, goal = self.node_coordinates(self.node[low]), self.node_coordinates(self.node[high])
        met: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = [(np.arange(len(low)), np.zeros(len(low)), self.q[low])]
        there, done = self._advance(self.q[low], start, goal, CAREFUL, met)
        apart = np.abs(self.manifold.shortest(there, self.q[high])).max(axis=-1, initial=0.0)
        edge, share, q = (np.concatenate(part) for part in zip(*met, strict=True))
        order = np.lexsort((share, edge))
        order = order[((done >= 1.0) & (apart < SAME))[edge[order]]]
        edge, share, q = edge[order], share[order], q[order]
        within = np.flatnonzero(edge[:-1] == edge[1:])
        pairs = np.stack([within, within + 1], axis=-1)
        return Segments(edge[within], share[pairs], q[pairs])

    def edge_configurations(
        self, edges: list[Edge], segments: Segments
    ) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
        """A function of edge numbers (k,) and fractions (k,) that returns configurations on the edges; NaN for open
        loops.
        """
        way = self.manifold.shortest(segments.q[:, 0], segments.q[:, 1])
        axis, *lower = np.array(edges, dtype=int).reshape(-1, 3)[segments.edge].T
        lower_node = np.stack(lower, axis=-1)
        start, goal = self.node_coordinates(lower_node), self.node_coordinates(lower_node + np.eye(2, dtype=int)[axis])
        from_share, length = segments.shares[:, 0], np.diff(segments.shares, axis=-1)[:, 0]

        def at(share: np.ndarray, which: np.ndarray) -> np.ndarray:
            part = (share - from_share[which]) / length[which]
            guess = self.manifold.moved(segments.q[which, 0], way[which], part)
            targets = self._targets(start[which] + share[:, None] * (goal - start)[which])
            q, closed = self.pinned.corrected(guess, targets)
            return np.where(closed[:, None], q, np.nan)

        return at

    # Where it ends -------------------------------------------------------------------------------------------------

    def ends(self) -> tuple[list[Edge], np.ndarray, np.ndarray]:
        """Edges with only one reachable end, the last configurations (n, nq) on them, and whether a joint limit stops
        them (n,).
        """
        sources, axis, sense = self._frontier()
        nodes = self.node[sources]
        corners = np.minimum(nodes, nodes + sense[:, None] * np.eye(2, dtype=int)[axis])
        edges: list[Edge] = [(a, i, j) for a, (i, j) in zip(axis.tolist(), corners.tolist(), strict=True)]
        q, at_limit = np.zeros((len(sources), self.mech.nq)), np.zeros(len(sources), dtype=bool)
        for k in (0, 1):
            for way in (-1, 1):
                chosen = np.flatnonzero((axis == k) & (sense == way))
                if len(chosen):
                    q[chosen] = self._turning_back(sources[chosen], k, way)
        if self.slack is not None and len(sources):
            beyond = np.flatnonzero((self.slack(q) < AT_LIMIT).any(axis=-1))
            goals = self.node_coordinates(nodes[beyond] + sense[beyond, None] * np.eye(2, dtype=int)[axis[beyond]])
            q[beyond], _ = self._advance(self.q[sources[beyond]], self.node_coordinates(nodes[beyond]), goals, EXACT)
            at_limit[beyond] = True
        return edges, q, at_limit

    def _turning_back(self, sources: np.ndarray, axis: int, sense: int) -> np.ndarray:
        """(n, nq): configurations beyond nodes at which one coordinate, driven while the other is fixed, turns back."""
        moving, still = self.pair[axis], self.pair[1 - axis]
        line = replace(self.manifold, held=(*self.manifold.held, still), rank=self.manifold.rank + 1)
        goal = self.node_coordinates(self.node[sources] + sense * np.eye(2, dtype=int)[axis])
        start, _ = self._advance(self.q[sources], self.node_coordinates(self.node[sources]), goal, CAREFUL)
        values = line.values(start)

        tangent = line.basis(start)[..., 0]
        uphill = np.einsum("ni,ni->n", moving.rows(start), tangent) * sense
        tangent *= np.where(uphill < 0.0, -1.0, 1.0)[:, None]

        def at(x: np.ndarray, which: np.ndarray) -> np.ndarray:
            return line.corrected(line.moved(start[which], tangent[which], x), values[which])[0]

        def slope(x: np.ndarray, which: np.ndarray) -> np.ndarray:
            q = at(x, which)
            basis = line.basis(q)[..., 0]
            basis *= np.where(np.einsum("ni,ni->n", basis, tangent[which]) < 0.0, -1.0, 1.0)[:, None]
            return sense * np.einsum("ni,ni->n", moving.rows(q), basis)

        every = np.arange(len(start))
        low, high = np.zeros(len(start)), np.full(len(start), FIRST_STEP)
        at_low, at_high = slope(low, every), slope(high, every)
        for _ in range(DOUBLINGS):
            ahead = np.flatnonzero(at_high > 0.0)
            if not len(ahead):
                break
            low[ahead], at_low[ahead] = high[ahead], at_high[ahead]
            high[ahead] *= 2.0
            at_high[ahead] = slope(high[ahead], ahead)
        turns = np.flatnonzero(~(at_high > 0.0))
        q = start.copy()
        if len(turns):
            ends = (x[turns] for x in (low, high, at_low, at_high))
            q[turns] = at(bracketed_roots(lambda x, which: slope(x, turns[which]), *ends), turns)
        none = np.flatnonzero(at_high > 0.0)  # it touches the boundary, say: as far as it can be followed
        if len(none):
            q[none], _ = self._advance(
                self.q[sources[none]], self.node_coordinates(self.node[sources[none]]), goal[none], EXACT
            )
        return q


def _sign_changes(u: np.ndarray, v: np.ndarray, jacobian: np.ndarray, rank: int) -> np.ndarray:
    """(n,): whether a singular value changes its sign between matrices with singular vectors u (n, m, m), v (n, k, k)
    and nearby matrices (n, m, k) of rank ``rank``.
    """
    square = np.swapaxes(u[..., :rank], -1, -2) @ jacobian @ v[..., :rank]
    return np.asarray(np.linalg.det(square) <= 0.0)


# -- contours on a grid: points on edges, found by changes of sign, joined to chains ----------------------------


def joined(edges: Sequence[Edge]) -> list[tuple[list[int], bool]]:
    """Chains of indices into ``edges``, and whether each is closed; neighbours cross edges of one cell."""
    number = {edge: k for k, edge in enumerate(edges)}
    neighbours: dict[int, list[int]] = defaultdict(list)
    beside = (cell for axis, k, m in edges for cell in ((k, m), (k - axis, m - 1 + axis)))
    for i, j in dict.fromkeys(beside):
        around = ((0, i, j), (1, i, j), (0, i, j + 1), (1, i + 1, j))  # neighbours share a corner
        crossed = [number[edge] for edge in around if edge in number]
        for a, b in zip(crossed[::2], crossed[1::2], strict=False):
            neighbours[a].append(b)
            neighbours[b].append(a)
    return _chains(neighbours)


def _chains(neighbours: dict[int, list[int]]) -> list[tuple[list[int], bool]]:
    """Chains and closed curves through points that each have one or two neighbours. Open chains start at points with
    one.
    """
    seen: set[int] = set()
    chains = []
    for start in sorted(neighbours, key=lambda point: len(neighbours[point])):
        if start in seen:
            continue
        chain, here = [start], start
        seen.add(start)
        while ahead := [point for point in neighbours[here] if point not in seen]:
            here = ahead[0]
            seen.add(here)
            chain.append(here)
        chains.append((chain, len(chain) > 2 and start in neighbours[here]))
    return chains


def bracketed_roots(
    function: Callable[[np.ndarray, np.ndarray], np.ndarray],
    low: np.ndarray,
    high: np.ndarray,
    at_low: np.ndarray,
    at_high: np.ndarray,
) -> np.ndarray:
    """(n,): roots of functions with values of different sign at low (n,) and high (n,), by Chandrupatla's method.

    function   ``function(x, which)`` returns the values (k,) at x (k,) of the functions with the indices ``which`` (k,)
    """
    width = ROOT * np.abs(high - low)
    # The root is between a, the latest, and b; c is the one before.
    a, b, c = high.astype(float), low.astype(float), low.astype(float)
    fa, fb, fc = at_high.astype(float), at_low.astype(float), at_low.astype(float)
    share = np.full(len(a), 0.5)
    which = np.flatnonzero((fa != 0.0) & (fb != 0.0))
    for _ in range(ROOT_STEPS):
        if not len(which):
            break
        x = a[which] + share[which] * (b - a)[which]
        value = function(x, which)
        same = (value < 0.0) == (fa[which] < 0.0)
        c[which], fc[which] = np.where(same, a[which], b[which]), np.where(same, fa[which], fb[which])
        b[which], fb[which] = np.where(same, b[which], a[which]), np.where(same, fb[which], fa[which])
        a[which], fa[which] = x, value
        least = width[which] / np.maximum(np.abs(b - a)[which], np.finfo(float).tiny)
        share[which] = np.clip(_next_share(*(y[which] for y in (a, b, c, fa, fb, fc))), least, 1.0 - least)
        which = which[(least < 0.5) & (value != 0.0)]
    return np.where(np.abs(fa) < np.abs(fb), a, b)


def _next_share(
    a: np.ndarray, b: np.ndarray, c: np.ndarray, fa: np.ndarray, fb: np.ndarray, fc: np.ndarray
) -> np.ndarray:
    """Fraction from a to b of the next root estimate: inverse quadratic interpolation where safe, else bisection."""
    with np.errstate(divide="ignore", invalid="ignore"):
        xi, phi = (a - b) / (c - b), (fa - fb) / (fc - fb)
        curved = fa / (fb - fa) * fc / (fb - fc) + (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)
        safe = (phi**2 < xi) & ((1.0 - phi) ** 2 < 1.0 - xi) & np.isfinite(curved)
    return np.where(safe, curved, 0.5)
