"""Continuation of configurations along curves of a constraint manifold, by predictor and corrector: motions of one
degree of freedom by arc length, and the largest value of a coordinate while several degrees of freedom are free."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from ..constraints.named_coordinates import LimitSlack, NamedCoordinate
from ..mechanism import Mechanism, MechanismError
from .manifolds import TURN, Manifold

LARGEST_STEP = 0.05  # along the curve; like all lengths here in the units of the mechanism, see ``Manifold``
SMALLEST_STEP = 1e-10
STRAIGHT = np.cos(0.15)  # between tangents of neighbours: beyond, the step may have reached another branch
LONGEST = 60.0  # of the curve, to either side
ROOT = 1e-14  # of a distance along the curve
BENT = 1e-9  # a change of tangents, of unit length, that is no rounding

#: Why a path, or the range of a coordinate on it, ends.
COMES_BACK, LIMIT, TOO_LONG, STUCK = "comes back", "joint limit", "search ended", "stuck"
DEAD_CENTRE, FULL_ROTATION, UNLIMITED = "dead centre", "full rotation", "unlimited"

# of the maximization of a coordinate
GENTLE = 0.3  # of the steepest slope on the way: the summit may be near
LEVEL = 1e-9  # the same: there is no slope
FLAT = 1e-5  # the same, per unit: no curvature
TOUCHING = 1e-9  # a limit that is met
LEAST_SLOPE = 1e-3  # a start may be level, and then nothing steeper is known
MOST_STEPS, SUMMIT_STEPS = 3000, 8
SHORTEST_STEP = 1e-7
UPHILL = 0.2  # of what the slope promises: a step that gives less was too long
PROBE = 1e-4  # for the curvature at a summit
NEAR = 0.3  # how far off a summit is looked for


@dataclass(frozen=True, eq=False)
class MotionPath:
    """The configurations of a mechanism that moves with one degree of freedom.

    q           (n, nq): in the order in which they are passed
    tangents    (n, nv): directions of motion, of unit length with lengths in units of the mechanism's size
    arc         (n,): length along the curve, in radians and these units; zero at the start
    is_closed   whether the motion comes back to where it began; then the last q is the first, but for whole turns
    causes      why the path ends at either side: "comes back", "joint limit", "search ended", "stuck"
    joints      the joints whose limits end it, "" elsewhere
    """

    q: np.ndarray
    tangents: np.ndarray
    arc: np.ndarray
    is_closed: bool
    causes: tuple[str, str]
    joints: tuple[str, str]
    family: Manifold = field(repr=False)
    values: np.ndarray = field(repr=False)  # of the held coordinates

    @property
    def mechanism(self) -> Mechanism:
        return self.family.mech

    @cached_property
    def is_straight(self) -> np.ndarray:
        """(2,): whether the curve is straight from its start to either end. Constraints are analytic in the
        coordinates, so a line that satisfies them over a long stretch satisfies them everywhere.
        """
        sides = (self.tangents[self.arc <= 0.0], self.tangents[self.arc >= 0.0])
        return np.array([np.ptp(side, axis=0).max(initial=0.0) <= BENT for side in sides])

    @cached_property
    def steps(self) -> np.ndarray:
        """(n - 1,): lengths of the steps between neighbours."""
        return np.diff(self.arc)

    def at(self, i: int, distance: float) -> tuple[np.ndarray, np.ndarray]:
        """Configuration and tangent at a distance behind the i-th configuration, not much more than a step."""
        q, _ = self.family.step_along(self.q[i], self.tangents[i], distance, self.values)
        return q, self.family.nearest_motion(q, self.tangents[i])

    def roots(self, function: Callable[[np.ndarray, np.ndarray, int], float]) -> list[tuple[int, float]]:
        """Steps and distances within them where function(q, tangent, i) changes its sign.

        The function is continuous on each step i; where the path is closed it has the same sign at both ends.
        """
        lengths = []
        for i, length in enumerate(self.steps):

            def along(x: float, i: int = i) -> float:
                return function(*self.at(i, x), i)

            ends = function(self.q[i], self.tangents[i], i), function(self.q[i + 1], self.tangents[i + 1], i)
            if self.is_closed and i == len(self.steps) - 1:  # rounding must not let a root at the start be lost
                ends = ends[0], function(self.q[0], self.tangents[0], i)
            if (ends[0] < 0.0) != (ends[1] < 0.0):
                lengths.append((i, root(along, float(length), ends)))
        return lengths


def root(function: Callable[[float], float], length: float, ends: tuple[float, float]) -> float:
    """The root of a function with opposite signs at the ends of [0, length], by Brent's method."""

    from scipy.optimize import brentq  # here: importing it takes longer than everything else together

    def pinned(x: float) -> float:  # what is known at the ends may differ by rounding from what is computed there
        return ends[0] if x == 0.0 else ends[1] if x == length else function(x)

    return float(brentq(pinned, 0.0, length, xtol=ROOT, rtol=4.0 * np.finfo(float).eps))


def motion_path(manifold: Manifold, q: np.ndarray, limits: bool, toward: np.ndarray | None = None) -> MotionPath:
    """The curve of a one-dimensional constraint manifold through q, in both directions or once around; ``toward``
    (nv,) selects the first direction.
    """
    manifold = dataclasses.replace(manifold, limited=limits)
    mech, values = manifold.mech, manifold.values(q)
    parts = manifold.decomposed(q)
    if parts.rank < manifold.rank:
        raise MechanismError(
            f"mechanism {mech.name!r} is in a singular position at q, where {len(manifold.columns) - parts.rank} "
            "motions are possible: branches of its motion meet there.  Start a little way along the one that is meant: "
            "move joints by about 0.1 rad, or a tenth of its size, in its direction and close the loops, "
            "q=constraints.assemble(mech, guess)"
        )
    tangent = manifold.basis(q)[:, 0]
    if toward is not None and tangent @ toward < 0.0:
        tangent = -tangent
    slack = LimitSlack(mech) if limits else None
    require_within(mech, slack, q)
    forward = _ArcLength(manifold, q, tangent, values, slack)
    if forward.cause == COMES_BACK:
        rows, tangents, arc = (np.array(x) for x in (forward.q, forward.tangents, forward.arc))
        return MotionPath(rows, tangents, arc, True, (COMES_BACK, COMES_BACK), ("", ""), manifold, values)
    back = _ArcLength(manifold, q, -tangent, values, slack)
    rows, arc, causes, joints = join(back, forward)
    tangents = np.array([*(-x for x in back.tangents[:0:-1]), *forward.tangents])
    return MotionPath(rows, tangents, arc, False, causes, joints, manifold, values)


def require_within(mech: Mechanism, slack: LimitSlack | None, q: np.ndarray) -> None:
    """Raise if the start is beyond the limits of a joint; without ``slack`` limits do not count."""
    if slack is not None and slack(q).min(initial=np.inf) < -1e-9:
        joint = slack.names[int(np.argmin(slack(q)))]
        raise MechanismError(f"joint {joint!r} of mechanism {mech.name!r} is beyond its limits at the start")


class Continuation:
    """Configurations along a curve, each reached from the one before by a step that certainly stays on the branch.

    q, arc         configurations, and the length of the curve up to each
    cause, joint   why the curve ends, and the joints whose limits end it
    """

    def __init__(self, manifold: Manifold, q: np.ndarray, slack: LimitSlack | None) -> None:
        self.manifold, self.slack = manifold, slack
        self.q, self.arc, self.cause, self.joint = [q], [0.0], "", ""

    def _add(self, q: np.ndarray, step: float) -> None:
        self.q.append(q)
        self.arc.append(self.arc[-1] + step)

    def _length_within(
        self,
        manifold: Manifold,
        tangent: np.ndarray,
        step: float,
        values: np.ndarray,
        room: Callable[[np.ndarray], np.ndarray],
    ) -> float:
        """The length of a step, at most ``step``, after which the first distance to a limit, ``room(q)``, vanishes."""

        def least(x: float) -> float:
            return float(room(manifold.step_along(self.q[-1], tangent, x, values)[0]).min())

        return root(least, step, (least(0.0), least(step))) if least(0.0) > 0.0 else 0.0


def join(back: Continuation, forward: Continuation) -> tuple[np.ndarray, np.ndarray, tuple[str, str], tuple[str, str]]:
    """q, arc, causes and joints of the path from the end of ``back`` to that of ``forward``, which start together."""
    arc = np.array([*(-x for x in back.arc[:0:-1]), *forward.arc])
    return np.array([*back.q[:0:-1], *forward.q]), arc, (back.cause, forward.cause), (back.joint, forward.joint)


class _ArcLength(Continuation):
    """Continuation along a one-dimensional manifold, until the curve comes back, meets a limit or becomes too long."""

    def __init__(
        self,
        manifold: Manifold,
        q: np.ndarray,
        tangent: np.ndarray,
        values: np.ndarray,
        slack: LimitSlack | None,
    ) -> None:
        super().__init__(manifold, q, slack)
        self.values, self.tangents = values, [tangent]
        step = 0.2 * LARGEST_STEP
        while not self.cause:
            if self._step(step):
                step = min(LARGEST_STEP, 1.5 * step)
                self.cause = self.cause or (TOO_LONG if self.arc[-1] > LONGEST else "")
            else:
                step *= 0.5
                self.cause = STUCK if step < SMALLEST_STEP else ""

    def _step(self, step: float) -> bool:
        """Add the next configuration, if it is certainly on the same branch."""
        manifold, q, tangent = self.manifold, self.q[-1], self.tangents[-1]
        there, converged = manifold.step_along(q, tangent, step, self.values)
        if not converged:
            return False
        ahead = manifold.nearest_motion(there, tangent)
        if ahead @ tangent < STRAIGHT:
            return False
        if self.slack is not None and np.any(self.slack(there) < 0.0):
            self._stop_at_limit(self.slack, step)
        elif self._passes_start(there, ahead, step):
            gap, start = self._gap_to_start(q), self.q[0]
            turns = np.where(manifold.periodic, manifold.difference(start, q) + gap, 0.0)
            self._add(manifold.moved(start, turns), self._distance_to_start())
            self.tangents.append(self.tangents[0])
            self.cause = COMES_BACK
        else:
            self._add(there, step)
            self.tangents.append(ahead)
        return True

    def _gap_to_start(self, q: np.ndarray) -> np.ndarray:
        """(nv,): from q to the start, without whole turns."""
        return -self.manifold.shortest(self.q[0], q)

    def _distance_to_start(self, iterations: int = 10) -> float:
        """Distance along the tangent from the last configuration to the start of a closed curve."""
        q, tangent, first = self.q[-1], self.tangents[-1], self.tangents[0]
        distance = float(self._gap_to_start(q) @ tangent)
        for _ in range(iterations):
            left = float(self._gap_to_start(self.manifold.step_along(q, tangent, distance, self.values)[0]) @ first)
            distance += left
            if abs(left) <= ROOT:
                break
        return distance

    def _passes_start(self, there: np.ndarray, ahead: np.ndarray, step: float) -> bool:
        first = self.tangents[0]
        before, behind = self._gap_to_start(self.q[-1]), self._gap_to_start(there)
        if len(self.q) < 3 or ahead @ first < STRAIGHT or before @ first <= 0.0 or behind @ first > 0.0:
            return False
        return bool(np.linalg.norm(before) <= 2.0 * step and np.linalg.norm(behind) <= 2.0 * step)

    def _stop_at_limit(self, slack: LimitSlack, step: float) -> None:
        """Append the configuration in which the first joint reaches its limit."""
        q, tangent = self.q[-1], self.tangents[-1]
        distance = self._length_within(self.manifold, tangent, step, self.values, slack)
        there, _ = self.manifold.step_along(q, tangent, distance, self.values)
        self.cause, self.joint = LIMIT, slack.names[int(np.argmin(slack(there)))]
        if distance > 0.0:
            self._add(there, distance)
            self.tangents.append(self.manifold.nearest_motion(there, tangent))


class Maximization(Continuation):
    """Steepest ascent of a dimensionless coordinate from q with ``sense`` 1, descent with -1. Each configuration is
    higher than the one before. Joint limits that are met are followed while they hold it back.
    """

    def __init__(
        self,
        manifold: Manifold,
        measured: NamedCoordinate,
        q: np.ndarray,
        sense: float,
        slack: LimitSlack | None,
        turns: bool,
    ):
        super().__init__(manifold, q, slack)
        self.measured, self.sense = measured, sense
        self.active: list[int] = []  # sides of limits along which it leads
        self.pushing: list[int] = []  # those of them that hold it back
        self.steepest = LEAST_SLOPE  # so far
        self._go(turns)

    def _go(self, turns: bool) -> None:
        step, first, gentle = LARGEST_STEP, self._height(self.q[0]), GENTLE
        while not self.cause:
            slope = self._slope(self.q[-1])
            size = float(np.linalg.norm(slope))
            self.steepest = max(self.steepest, size)
            if size <= gentle * self.steepest or step < SHORTEST_STEP:
                if self._end_at_summit():
                    step, gentle = LARGEST_STEP, GENTLE
                    continue
                gentle = 0.5 * size / self.steepest  # look again when it is half as steep
            if step < SHORTEST_STEP or size <= LEVEL * self.steepest:
                self.cause = STUCK
            elif self._step(slope, step):
                step = min(LARGEST_STEP, 1.5 * step)
            else:
                step *= 0.5
            self.measured = self.measured.centred(self.value)  # angles go on where they are known but for turns
            if turns and self._height(self.q[-1]) > first + TURN:
                self.cause = FULL_ROTATION
            elif self.arc[-1] > LONGEST or len(self.q) > MOST_STEPS:
                self.cause = TOO_LONG

    # Where it is ---------------------------------------------------------------------------------------------------

    @property
    def _family(self) -> Manifold:
        """The manifold with active limits held at their bounds."""
        if not self.active or self.slack is None:
            return self.manifold
        limits = [self.slack.coordinate(side) for side in self.active]
        limited = dataclasses.replace(
            self.manifold, held=(*self.manifold.held, *limits), rank=len(self.manifold.columns)
        )
        return dataclasses.replace(limited, rank=int(limited.decomposed(self.q[-1]).rank))

    @cached_property
    def _held(self) -> np.ndarray:
        return self.manifold.values(self.q[0])

    @property
    def _values(self) -> np.ndarray:
        bounds = [self.slack.bound(side) for side in self.active] if self.slack is not None else []
        return np.concatenate([self._held, bounds])

    @property
    def value(self) -> float:
        """Current value of the coordinate."""
        return float(self.measured.value(self.q[-1]))

    def _height(self, q: np.ndarray) -> float:
        return self.sense * float(self.measured.value(q))

    def _slope(self, q: np.ndarray) -> np.ndarray:
        """(nv,): steepest ascent among the motions that do not violate a limit; reactions of limits push and never
        pull. Updates ``active``, the limits that are followed.
        """
        from scipy.optimize import nnls  # here: importing it takes longer than everything else together

        basis = self.manifold.basis(q)
        uphill = basis.T @ (self.sense * self.measured.rows(q))
        self.active, self.pushing = [], []
        if self.slack is None:
            return basis @ uphill
        met = np.flatnonzero(self.slack(q) <= TOUCHING).tolist()
        if met:
            inward = np.array([self.slack.inward(side, q) for side in met]) @ basis
            reactions = nnls(inward.T, -uphill)[0]
            self.pushing = [side for side, push in zip(met, reactions, strict=True) if push > LEVEL]
            uphill = uphill + inward.T @ reactions
            self.active = [side for side, row in zip(met, inward, strict=True) if row @ uphill <= LEVEL]
        return basis @ uphill

    # How it goes on ------------------------------------------------------------------------------------------------

    def _step(self, slope: np.ndarray, step: float) -> bool:
        """One uphill step, or a shorter one to a limit; False if the coordinate does not increase as its slope
        predicts.
        """
        manifold, q, values = self._family, self.q[-1], self._values
        size = float(np.linalg.norm(slope))
        there, converged = manifold.step_along(q, slope / size, step, values)
        if not converged or self._height(there) < self._height(q) + UPHILL * step * size:
            return False
        if self.slack is not None and np.any(self._other_slack(there) < 0.0):
            step = self._length_within(manifold, slope / size, step, values, self._other_slack)
            if step == 0.0:
                return False
            there, _ = manifold.step_along(q, slope / size, step, values)
        self._add(there, step)
        return True

    def _other_slack(self, q: np.ndarray) -> np.ndarray:
        """Distances to the limits that are not active yet."""
        assert self.slack is not None
        room = self.slack(q)
        room[self.active] = np.inf
        return room

    # Where it ends -------------------------------------------------------------------------------------------------

    def _end_at_summit(self) -> bool:
        """Move to a nearby stationary point and stop if it is a maximum; otherwise leave limits and saddles that do
        not block.
        """
        manifold, q, values = self._family, self.q[-1], self._values
        basis = manifold.basis(q)

        def there(y: np.ndarray) -> np.ndarray:
            return manifold.corrected(manifold.moved(q, basis @ y), values)[0]

        def slopes(y: np.ndarray) -> np.ndarray:
            state = there(y)
            near = manifold.basis(state)
            left, _, right = np.linalg.svd(near.T @ basis)  # turned like the basis at q
            return (near @ left @ right).T @ (self.sense * self.measured.rows(state))

        def curvature(y: np.ndarray) -> np.ndarray:
            changes = [slopes(y + unit) - slopes(y - unit) for unit in PROBE * np.eye(len(y))]
            return np.reshape(changes, (len(y), len(y))) / (2.0 * PROBE)

        y = np.zeros(manifold.dof)
        for _ in range(SUMMIT_STEPS):
            rise = slopes(y)
            if np.abs(rise).max(initial=0.0) <= 1e-4 * LEVEL * self.steepest or np.abs(y).max() > NEAR:
                break
            # Directions in which nothing changes are left alone.
            y = y - np.linalg.pinv(curvature(y).T, rcond=FLAT) @ rise
        if np.abs(y).max(initial=0.0) > NEAR or np.abs(slopes(y)).max(initial=0.0) > LEVEL * self.steepest:
            return False
        summit = there(y)
        if self.slack is not None and self.slack(summit).min(initial=np.inf) < -LEVEL:
            return False
        if self._height(summit) < self._height(q) - LEVEL:
            return False
        gain, bent = self._height(summit) - self._height(q), curvature(y)
        if np.linalg.norm(self._slope(summit)) > LEVEL * self.steepest and gain <= LEVEL:
            return False  # it leads on along other limits
        self._add(summit, float(np.linalg.norm(y)))
        if np.linalg.norm(self._slope(summit)) <= LEVEL * self.steepest and not self._left_saddle(y, bent, there):
            self.cause = LIMIT if self.active else DEAD_CENTRE
            stopping = self.pushing or self.active  # others are met, and hold nothing back
            self.joint = "" if self.slack is None else ", ".join(sorted({self.slack.names[k] for k in stopping}))
        return True

    def _left_saddle(self, y: np.ndarray, curvature: np.ndarray, there: Callable[[np.ndarray], np.ndarray]) -> bool:
        """Leave a saddle along a direction in which the coordinate increases; False if there is none."""
        if not len(y):
            return False
        sizes, directions = np.linalg.eigh(curvature + curvature.T)
        if sizes[-1] <= FLAT * self.steepest:
            return False
        for sign in (1.0, -1.0):
            beyond = there(y + sign * LARGEST_STEP * directions[:, -1])
            inside = self.slack is None or self.slack(beyond).min(initial=np.inf) >= 0.0
            if inside and self._height(beyond) > self._height(self.q[-1]):
                self._add(beyond, LARGEST_STEP)
                return True
        return False
