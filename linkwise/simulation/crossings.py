"""Arcs in place of steps: how integrators take motions across singular positions, one state or some of a batch."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from .collocation import Arc
from .systems import JointVelocities, System

Arcs = dict[tuple[int, ...], list[Arc]]  # of states of a batch, by their place in it; of one state, with the place ()
Between = Callable[[float], np.ndarray]


class Crossings:
    """The arcs of the motions of a system; none where it has no singular positions that must be heeded."""

    def __init__(self, system: System):
        self._system = system if isinstance(system, JointVelocities) and system.singular is not None else None
        self._arcs: Arcs = {}

    @property
    def is_inside(self) -> bool:
        """Whether arcs were taken in the step planned last."""
        return bool(self._arcs)

    def next_arc(self, t: float, x: np.ndarray, rates: np.ndarray | None, step: float) -> tuple[Arc | None, float]:
        """What to do with one state instead of the next step, if it comes near a singular position, and the longest
        step to take otherwise.  ``rates`` are those of x, where they are known."""
        system = self._system
        if system is None or system.singular is None:
            return None, math.inf
        return system.singular.arc(system.member(x), t, x, system.rates(t, x) if rates is None else rates, step)

    def along(self, arc: Arc) -> Between:
        """One state on an arc."""
        assert self._system is not None
        return AlongArcs(self._system, {(): [arc]}, (arc.path.shape[1],))

    def plan(self, t: float, x: np.ndarray, t_new: float) -> bool:
        """Find the arcs that replace the step from (t, x) to ``t_new``; whether there are any."""
        system, found = self._system, {at: [arcs[-1]] for at, arcs in self._arcs.items() if arcs[-1].t > t}
        if system is None or system.singular is None:
            return False
        near = np.argwhere(system.singular.may_be_ahead(*system.state(x), t_new - t))
        for place in map(tuple, near.tolist()):
            motion, arcs = system.member(x, place), found.get(place, [])
            t_start, start = (arcs[-1].t, motion.settled(arcs[-1].between(arcs[-1].t))) if arcs else (t, x[place])
            policy, step = system.singular.of(place), t_new - t
            found[place] = arcs + policy.arcs(motion, t_start, start, t_new, step, inside=bool(arcs))
        self._arcs = {place: arcs for place, arcs in found.items() if arcs and arcs[-1].t >= t_new}
        return bool(self._arcs)

    def planned(self, shape: tuple[int, ...], others: Between) -> Between:
        """The states (of this shape) between the ends of the step planned last, on the manifold; ``others`` are those
        of the method."""
        assert self._system is not None
        return AlongArcs(self._system, self._arcs, shape, others)


class AlongArcs:
    """States between the ends of a step, on the manifold: by arcs, and by ``others`` those that have none."""

    def __init__(self, system: JointVelocities, arcs: Arcs, shape: tuple[int, ...], others: Between | None = None):
        self._system, self._arcs, self._shape, self._others = system, arcs, shape, others

    def __call__(self, time: float) -> np.ndarray:
        x, rest = np.zeros(self._shape), np.ones(self._shape[:-1], dtype=bool)
        for place, arcs in self._arcs.items():
            one = next(arc for arc in arcs if time <= arc.t).between(time)
            x[place], rest[place] = self._system.member(x, place).settled(one), False
        if self._others is not None and rest.any():
            x[rest] = self._system.corrected(self._others(time), rest)
        return x
