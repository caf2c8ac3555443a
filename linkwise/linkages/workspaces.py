"""Workspaces: two coordinates of a closed mechanism on a grid, and the curves on which it is singular."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..constraints.decomposition import decompose
from ..constraints.named_coordinates import LimitSlack, NamedCoordinate, named_coordinate
from ..dynamics.states import real_numbers
from ..mechanism import Mechanism, MechanismError
from .assembly_modes import AssemblyModeGrid, Edge, Segments, bracketed_roots, joined
from .continuation import TOO_LONG, UNLIMITED
from .manifolds import Measure, closed_start, constraint_manifold, measures, require_dof, same_sense
from .ranges import search_range, warn_of_unknown_ends

BOUNDARY, LIMIT = "boundary", "limit"
MARGIN = 0.05  # of a range
ZERO = 1e-5  # of a measure at the ends of the interval: what is larger is a jump, not a zero
Signed = Callable[[np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True, eq=False)
class SingularCurve:
    """A curve in a workspace.

    kind        "boundary": an end of the two coordinates; "limit": a limit of a joint; "input", "output",
                "constraint": singular positions as in ``SingularPosition``
    points      (n, 2): the two coordinates
    q           (n, nq): the configurations
    is_closed   whether the last point is joined to the first
    """

    kind: str
    points: np.ndarray
    q: np.ndarray
    is_closed: bool

    def __repr__(self) -> str:
        return f"<SingularCurve {self.kind!r}: {len(self.points)} points{', closed' * self.is_closed}>"


@dataclass(frozen=True, eq=False)
class Workspace:
    """The region that two coordinates reach in one assembly mode, from ``workspace``.

    coordinates    their names
    first, second  (n1,), (n2,): their values on the grid
    q              (n1, n2, nq): the configurations, NaN where there is none
    measures       kind -> (n1, n2): a number that is zero in singular positions of that kind, and changes its sign at
                   their curves; exactly zero at points of the grid on a curve, NaN where there is no configuration
    curves         all curves on which the mechanism is singular, and the boundary
    """

    mechanism: Mechanism
    coordinates: tuple[str, str]
    first: np.ndarray
    second: np.ndarray
    q: np.ndarray
    measures: dict[str, np.ndarray]
    curves: tuple[SingularCurve, ...]

    def __repr__(self) -> str:
        kinds = sorted({curve.kind for curve in self.curves})
        curves = ", ".join(f"{len(self.curves_of(kind))} of kind {kind!r}" for kind in kinds) or "none"
        return (
            f"<Workspace of {', '.join(self.coordinates)} of {self.mechanism.name}: {int(self.is_reached.sum())} of "
            f"{self.is_reached.size} points of the grid are reached; curves: {curves}>"
        )

    @property
    def is_reached(self) -> np.ndarray:
        """(n1, n2): where the coordinates can be."""
        return np.isfinite(self.q).all(axis=-1)

    @property
    def area(self) -> float:
        """Area of the region; a grid cell counts by the fraction of its corners that are reached."""
        cell = (self.first[1] - self.first[0]) * (self.second[1] - self.second[0])
        there = self.is_reached.astype(float)
        corners = there[:-1, :-1] + there[1:, :-1] + there[:-1, 1:] + there[1:, 1:]
        return float(corners.sum() / 4.0 * cell)

    def curves_of(self, kind: str) -> tuple[SingularCurve, ...]:
        """The curves of one kind."""
        return tuple(curve for curve in self.curves if curve.kind == kind)


def workspace(
    mech: Mechanism,
    coordinates: Sequence[str],
    bounds: Any = None,
    q: Any = None,
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    hold: Sequence[str] = (),
    points: int | tuple[int, int] = 61,
    limits: bool = False,
) -> Workspace:
    """The region that two coordinates reach in the assembly mode of q, and its singular curves.

    The motion goes from each point of a grid to its neighbours, without a jump to another assembly mode; points that
    this does not reach are not part of the workspace. Curves are exact to 1e-9 where they cross lines of the grid, and
    are straight between.

    coordinates      two names as for ``range_of_motion``
    bounds           ((low, high), (low, high)): a rectangle of the coordinates; by default their ranges of motion, or a
                     turn without end
    q                (nq,): assembled; by default ``assemble`` from ``mech.initial``
    inputs, outputs  joints and coordinates for singular positions, as many as degrees of freedom each
    hold             joints and coordinates that stand still and leave two degrees of freedom
    points           of the grid, in both directions or in each
    limits           whether the limits of joints are ends too
    """
    if isinstance(coordinates, str) or len(coordinates) != 2:
        raise MechanismError(f"a workspace has two coordinates, not {coordinates!r}")
    named = [named_coordinate(mech, name) for name in coordinates]
    start = closed_start("workspace", mech, q, (inputs, outputs, hold))
    first_one, second_one = (coordinate.centred(float(coordinate.value(start))) for coordinate in named)
    pair = (first_one, second_one)
    manifold = constraint_manifold(mech, start, hold)
    require_dof("a workspace", manifold, start, hold, 2)
    if bounds is None:
        bounds = [_extent(mech, coordinate, start, hold, limits) for coordinate in pair]
    first, second = _grid_lines(bounds, points)
    grid = AssemblyModeGrid(manifold, pair, start, first, second, LimitSlack(mech) if limits else None)
    quality = measures(grid.unlocked, inputs, outputs)
    curves = [*boundary_curves(grid), *dependence_curves(grid)]
    for measure in quality:
        curves += sign_curves(grid, measure)
    fields = {str(measure.kind): grid.grid_values(measure(grid.q, grid.bases)) for measure in quality}
    fields["constraint"] = grid.grid_values(grid.unlocked.conditioning(grid.q))
    return Workspace(
        mech, (coordinates[0], coordinates[1]), first, second, grid.grid_values(grid.q), fields, tuple(curves)
    )


def _extent(
    mech: Mechanism, coordinate: NamedCoordinate, start: np.ndarray, hold: Sequence[str], limits: bool
) -> tuple[float, float]:
    """Range of a coordinate, with a margin so that the boundary is inside."""
    motion_range = search_range(mech, coordinate.name, start, hold, limits)
    if any(end.cause in (TOO_LONG, UNLIMITED) for end in motion_range.ends):
        raise MechanismError(f"{coordinate.name!r} of mechanism {mech.name!r} goes on and on: give bounds")
    warn_of_unknown_ends(motion_range)
    if not np.isfinite([motion_range.lower, motion_range.upper]).all():
        here = float(coordinate.value(start))
        return here - np.pi, here + np.pi
    margin = MARGIN * (motion_range.upper - motion_range.lower)
    return motion_range.lower - margin, motion_range.upper + margin


def _grid_lines(bounds: Any, points: int | tuple[int, int]) -> list[np.ndarray]:
    box = real_numbers("bounds", bounds)
    if box.shape != (2, 2) or not np.isfinite(box).all() or np.any(box[:, 0] >= box[:, 1]):
        raise MechanismError(f"bounds are ((low, high), (low, high)), finite and low < high, not {bounds!r}")
    counts = np.broadcast_to(points, (2,)).astype(int)
    if np.any(counts < 2):
        raise MechanismError(f"a grid has at least 2 points in each direction, not points = {points!r}")
    return [np.linspace(low, high, int(count)) for (low, high), count in zip(box, counts, strict=True)]


# -- curves -------------------------------------------------------------------------------------------


def _curves(grid: AssemblyModeGrid, kinds: np.ndarray, edges: Sequence[Edge], q: np.ndarray) -> list[SingularCurve]:
    """Points on edges of the grid, joined to curves of one kind each."""
    points = grid.units * grid.coordinates(q)
    curves = []
    for kind in dict.fromkeys(kinds.tolist()):
        edges_of_kind = np.flatnonzero(kinds == kind)
        for chain, is_closed in joined([edges[k] for k in edges_of_kind.tolist()]):
            curves.append(SingularCurve(kind, points[edges_of_kind[chain]], q[edges_of_kind[chain]], is_closed))
    return curves


def boundary_curves(grid: AssemblyModeGrid) -> list[SingularCurve]:
    """Boundary curves: between a reachable grid point and its neighbour a coordinate turns back."""
    edges, q, at_limit = grid.ends()
    return _curves(grid, np.where(at_limit, LIMIT, BOUNDARY), edges, q)


def sign_curves(grid: AssemblyModeGrid, measure: Measure) -> list[SingularCurve]:
    """Curves on which a measure changes its sign."""
    segments, edges = grid.inner_edges
    q, crossed = _crossings(grid, segments, edges, lambda q, which: measure(q, grid.oriented(q)))
    return _curves(grid, np.full(len(q), measure.kind), [edges[k] for k in crossed], q)


def dependence_curves(grid: AssemblyModeGrid) -> list[SingularCurve]:
    """Curves on which loop constraints become dependent: a singular value of G, with continuous singular vectors,
    changes its sign.
    """
    rank = grid.unlocked.rank
    if not rank:
        return []
    segments, edges = grid.inner_edges
    there = decompose(grid.unlocked.jacobian(segments.q[:, 0]))

    def signed(q: np.ndarray, which: np.ndarray) -> np.ndarray:
        here = decompose(grid.unlocked.jacobian(q))
        left = same_sense(there.u[which][..., :rank], here.u[..., :rank])
        return left * same_sense(there.v[which][..., :rank], here.v[..., :rank]) * here.s[..., rank - 1]

    q, crossed = _crossings(grid, segments, edges, signed)
    return _curves(grid, np.full(len(q), "constraint"), [edges[k] for k in crossed], q)


def _crossings(
    grid: AssemblyModeGrid, segments: Segments, edges: list[Edge], signed: Signed
) -> tuple[np.ndarray, np.ndarray]:
    """Configurations (k, nq) on grid edges where ``signed(q, segment)`` changes its sign, and the indices of those
    edges.
    """
    ends = np.array([signed(segments.q[:, side], np.arange(len(segments.edge))) for side in (0, 1)])
    crossed = np.flatnonzero((ends[0] < 0.0) != (ends[1] < 0.0))
    if not len(crossed):
        return np.zeros((0, grid.q.shape[1])), crossed
    between = grid.edge_configurations(edges, segments)
    shares = bracketed_roots(
        lambda share, which: signed(between(share, crossed[which]), crossed[which]),
        *segments.shares[crossed].T,
        *ends[:, crossed],
    )
    q = between(shares, crossed)
    is_root = np.abs(signed(q, crossed)) <= ZERO * np.abs(ends[:, crossed]).max(axis=0)
    edge, first, counts = np.unique(segments.edge[crossed[is_root]], return_index=True, return_counts=True)
    once = counts % 2 == 1  # twice is as good as not at all, as far as curves between edges are concerned
    return q[np.flatnonzero(is_root)[first[once]]], edge[once]
