"""The largest value of a coordinate while several degrees of freedom are free: uphill among the configurations, along
the limits of joints where they are met."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property

import numpy as np

from ..constraints.named_coordinates import LimitSlack, NamedCoordinate
from .manifolds import TURN, Family
from .paths import DEAD_CENTRE, FULL_ROTATION, LARGEST_STEP, LIMIT, LONGEST, STUCK, TOO_LONG, beside, root

GENTLE = 0.3  # of the steepest slope on the way: the summit may be near
LEVEL = 1e-9  # the same: there is no slope
FLAT = 1e-5  # the same, per unit: no curvature
TOUCHING = 1e-9  # a limit that is met
LEAST_SLOPE = 1e-3  # a start may be level, and then nothing steeper is known
MOST_STEPS, NEWTON_STEPS = 3000, 8
SHORTEST_STEP = 1e-7
UPHILL = 0.2  # of what the slope promises: a step that gives less was too long
PROBE = 1e-4  # for the curvature at a summit
NEAR = 0.3  # how far off a summit is looked for


class Climb:
    """From q uphill, ``sense`` 1, or downhill, -1, by a dimensionless coordinate: configurations ``q``, each higher
    than the one before, their place ``arc`` along the way, the ``cause`` of the end, and the ``joint`` or joints whose
    limits are it."""

    def __init__(
        self,
        made: Family,
        measured: NamedCoordinate,
        q: np.ndarray,
        sense: float,
        slack: LimitSlack | None,
        turns: bool,
    ):
        self.made, self.measured, self.sense, self.slack = made, measured, sense, slack
        self.active: list[int] = []  # sides of limits along which it leads
        self.pushing: list[int] = []  # those of them that hold it back
        self.q, self.arc, self.cause, self.joint = [q], [0.0], "", ""
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
    def _family(self) -> Family:
        """Configurations with the limits that are met held where they are."""
        if not self.active or self.slack is None:
            return self.made
        limits = [self.slack.coordinate(side) for side in self.active]
        limited = replace(self.made, held=(*self.made.held, *limits), rank=len(self.made.columns))
        return replace(limited, rank=int(limited.decomposed(self.q[-1]).rank))

    @cached_property
    def _held(self) -> np.ndarray:
        return self.made.values(self.q[0])

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
        """(nv,): the steepest way up among the motions that are possible and do not go beyond a limit that is met: with
        reactions of the limits that push and never pull.  Those along which it leads are ``active`` from now on."""
        from scipy.optimize import nnls  # here: importing it takes longer than everything else together

        basis = self.made.basis(q)
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
        made, q, values = self._family, self.q[-1], self._values
        size = float(np.linalg.norm(slope))
        there, converged = beside(made, q, slope / size, step, values)
        if not converged or self._height(there) < self._height(q) + UPHILL * step * size:
            return False
        if self.slack is not None and np.any(self._other_slack(there) < 0.0):

            def room(x: float) -> float:
                return float(self._other_slack(beside(made, q, slope / size, x, values)[0]).min())

            if room(0.0) <= 0.0:
                return False
            step = root(room, step, (room(0.0), room(step)))
            there, _ = beside(made, q, slope / size, step, values)
        self.q.append(there)
        self.arc.append(self.arc[-1] + step)
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
        made, q, values = self._family, self.q[-1], self._values
        basis = made.basis(q)

        def there(y: np.ndarray) -> np.ndarray:
            return made.corrected(made.moved(q, basis @ y), values)[0]

        def slopes(y: np.ndarray) -> np.ndarray:
            state = there(y)
            near = made.basis(state)
            left, _, right = np.linalg.svd(near.T @ basis)  # turned like the basis at q
            return (near @ left @ right).T @ (self.sense * self.measured.rows(state))

        def curvature(y: np.ndarray) -> np.ndarray:
            changes = [slopes(y + unit) - slopes(y - unit) for unit in PROBE * np.eye(len(y))]
            return np.reshape(changes, (len(y), len(y))) / (2.0 * PROBE)

        y = np.zeros(made.dof)
        for _ in range(NEWTON_STEPS):
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
        self.arc.append(self.arc[-1] + float(np.linalg.norm(y)))
        self.q.append(summit)
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
                self.q.append(beyond)
                self.arc.append(self.arc[-1] + LARGEST_STEP)
                return True
        return False
