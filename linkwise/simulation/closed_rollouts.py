"""Rollouts of closed mechanisms: how they start, and what is done about steps that compiled code cannot be relied on
for.

Compiled steps eliminate loops by pivots that may be too small for some states, close loops by a fixed number of
iterations, and may be too long to resolve the motion near singular positions.  Every trajectory therefore counts its
steps up to the first that cannot be relied on, and up to the first that does not resolve the motion.  Trajectories with
such a step are followed again, one step after the other: near singular positions by the arcs that ``simulate`` takes
too, elsewhere by the compiled step or, where that cannot be relied on, by singular value decompositions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..compiler.pipeline import compile
from ..compiler.store import kernel_function, stored
from ..dynamics import closed
from ..dynamics import trees as tree
from ..dynamics.closed.constraints import loop_of
from ..dynamics.closed.structure import fronts
from ..dynamics.resolved import Resolved
from ..mechanics.algorithms.closed_projection import RELIABLE
from ..mechanics.algorithms.integration import METHODS, Tableau
from ..mechanics.elements.law import Acting
from ..mechanics.scalar import Scalar, select
from ..mechanism import Mechanism, MechanismError, MechanismWarning, warn_caller
from .rollout_passages import Passages
from .run import warn_of_inconsistent_velocities
from .steps import ACTIVATION, OneStep, drifted, kick_bias

Records = Sequence[np.ndarray]
TRUSTED = "trusted"
RESOLVED = 3.0  # steps to a singular position: with fewer, energies are off by a millionth and more
WATCHED = 12.0  # the same: with more, arcs keep energies no better than steps do
SETTLED = {"float64": 1e-6, "float32": 1e-3}  # rad, m: the last correction of positions


def counting(step: Callable[..., Any]) -> Callable[..., list[Scalar]]:
    """The closed step with one more input, which comes back at the end of the state: ``trusted``, how many steps were
    made that can be relied on, and how many that resolve the motion.  With the first that does not each of them ends,
    and is -1 minus the number."""

    def counted(*given: Any, **options: Any) -> list[Scalar]:
        *others, trusted = given
        state, reliability, steps = step(*others, **options)
        ends = (select(RELIABLE < reliability, 0.0, 1.0), select(steps < RESOLVED**2, 1.0, 0.0))
        state = list(state)
        for count, end in zip(trusted, ends, strict=True):
            state.append(select(count < 0.0, count, select(0.5 < end, -1.0 - count, count + 1.0)))
        return state

    return counted


# -- how they start -----------------------------------------------------------------------------------


def onto_loops(
    mech: Mechanism, q: np.ndarray, v: np.ndarray, parameters: Mapping[str, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """The initial states with their loops closed to round-off, and velocities that keep them so.  Loops that are open
    by more than a millimetre or a milliradian are refused."""
    poses = {name: np.asarray(x, float) for name, x in parameters.items() if name.rpartition(".")[2] == "pose"}
    start, given = np.asarray(q, float), np.asarray(v, float)
    error = _function(mech, "position_error", tuple(poses))(start, *poses.values())
    _refuse_open(mech, start, error)
    found, reliability = _function(mech, "closed_projection", tuple(poses))(start, given, *poses.values())
    batch = found.shape[:-1]
    start, given = (np.broadcast_to(x, (*batch, x.shape[-1])) for x in (start, given))
    is_open = np.broadcast_to((np.abs(error).max(axis=-1, initial=0.0) > closed.LOOPS.closed)[..., None], (*batch, 1))
    to = np.where(is_open, found[..., : mech.nq], start), np.array(found[..., mech.nq :])
    known = finite_states(batch, start, given)
    poor = ~(reliability > RELIABLE) & known
    if poor.any() and not poses:
        to[0][poor], to[1][poor] = closed.project(mech, start[poor], given[poor], rank=_rank(mech))
    warn_of_inconsistent_velocities(mech, (to[0][known], to[1][known]), given[known])
    return to[0].astype(q.dtype), to[1].astype(v.dtype)


def _function(mech: Mechanism, algorithm: str, parameters: tuple[str, ...]) -> Callable[..., np.ndarray]:
    """In double precision, of mechanisms with these numbers as further inputs."""
    if not parameters:
        return kernel_function(mech, algorithm, None)
    return stored(mech, (algorithm, parameters), lambda: compile(algorithm, mech, parameters=parameters))


def _refuse_open(mech: Mechanism, q: np.ndarray, error: np.ndarray) -> None:
    gaps = np.abs(error)
    if not (gaps > closed.LOOPS.open_by_mistake).any():
        return
    *state, row = np.unravel_index(np.nanargmax(gaps), gaps.shape)
    index, gap = tuple(map(int, state)), float(np.nanmax(gaps))
    whose, loop = f" in state {index}" if index else "", loop_of(mech, int(row))
    raise closed.AssemblyError(
        f"rollout: loop {loop!r} of mechanism {mech.name!r} is open by {gap:.3g} (metres or radians){whose}: close it "
        "first, q0 = closed.assemble(mech, q0)",
        loop,
        gap,
        np.broadcast_to(q, (*gaps.shape[:-1], mech.nq))[index],
    )


def _rank(mech: Mechanism) -> int:
    """How many constraints are independent away from singular positions."""
    return sum(front.pivots for own in fronts(mech) for front in own)


# -- what cannot be relied on -------------------------------------------------------------------------


def look_after(
    mech: Mechanism,
    method: str,
    acting: Acting,
    given: Mapping[str, np.ndarray],
    varied: bool,
    trusted: np.ndarray,
    records: Records,
) -> None:
    """Follow the trajectories again that cannot be relied on, and warn of what remains.

    given      inputs of the rollout with all batch axes; those of every step (..., steps, ...)
    varied     whether numbers of the mechanism differ from state to state
    trusted    (..., 2): what ``counting`` ended with
    records    q and v, (..., records, n): where trajectories are kept, the initial states not among them
    """
    ended, unresolved = (np.array(np.maximum(-1 - trusted[..., k].astype(int), -1)) for k in range(2))
    ended = np.where(finite_states(ended.shape, given["q"], given["v"]), ended, -1)
    lost = np.full(ended.shape, -1)
    again = (ended >= 0) | ((unresolved >= 0) & (given["dt"] > 0.0))
    if again.any() and not varied:
        followed = Followed(mech, method, acting, {name: x[again] for name, x in given.items()})
        followed.write(records, again)
        followed.passages.told.warn(mech, np.argwhere(again))
        unresolved[again], lost[again] = followed.unresolved, followed.lost
    dt, name = given["dt"], mech.name
    if varied:
        advice = "take other states or smaller steps, or edits of the mechanism instead of parameters"
        warn_first(
            ended, dt, f"compiled steps of mechanism {name!r} cannot be relied on near singular positions", advice
        )
    warn_first(lost, dt, f"the loops of mechanism {name!r} cannot be kept closed", "take smaller steps")
    advice = "energies may change there; take smaller steps, or lw.simulate for these states"
    warn_first(unresolved, dt, f"steps do not resolve the motion of mechanism {name!r} near singular positions", advice)


# -- step by step -------------------------------------------------------------------------------------


@dataclass
class Followed:
    """Some trajectories followed again, each step by arcs near singular positions, else by the compiled one or, where
    that cannot be relied on, by singular value decompositions.

    given       inputs of the rollout for these trajectories, (n, ...), those of every step (n, steps, ...)
    unresolved  (n,): after how many steps the motion was not resolved first, or -1
    lost        (n,): after how many steps loops could not be closed any more, or -1; the states are NaN then
    """

    mech: Mechanism
    method: str
    acting: Acting
    given: Mapping[str, np.ndarray]
    unresolved: np.ndarray = field(init=False)
    lost: np.ndarray = field(init=False)
    passages: Passages = field(init=False)

    def __post_init__(self) -> None:
        self.passages = Passages(self.mech, self.acting, self.given)
        self.unresolved, self.lost = (np.full(len(self.given["q"]), -1) for _ in range(2))

    def write(self, records: Records, where: np.ndarray) -> None:
        """The trajectories to the places ``where`` (...) of records."""
        steps = self.given["tau"].shape[-2]
        every = steps // records[0].shape[-2]
        kept = [states for k, states in enumerate(self.states(steps), 1) if k % every == 0]
        for record, own in zip(records, zip(*kept, strict=True), strict=True):
            record[where] = np.stack(own, axis=-2)

    def states(self, steps: int) -> Iterator[tuple[np.ndarray, ...]]:
        """(q, v), and the activations if there are any, after every step."""
        more = tuple(name for name in ("wrenches", "ctrl", ACTIVATION) if name in self.given)
        ends = np.cumsum([self.mech.nq, self.mech.nv])
        now = [self.given[name].astype(float) for name in ("q", "v", *([ACTIVATION] if ACTIVATION in more else []))]
        dt, kernel = (
            self.given["dt"].astype(float),
            kernel_function(self.mech, OneStep(self.method, self.acting, more), None),
        )
        for k in range(steps):
            q, v, *activation = now
            forces = self._forces(q, v, k)
            others = {name: self.given[name][:, k].astype(float) for name in more if name != ACTIVATION}
            if activation:
                others[ACTIVATION] = activation[0]
            state, reliability, ahead = kernel(q, v, forces, dt, *others.values())
            there = np.split(state, ends, axis=-1)[: len(now)]
            known = finite_states(dt.shape, q, v, forces, *others.values())
            past = self._past_singular_positions(k, now, known & (ahead < WATCHED**2), there)
            poor = ~(reliability > RELIABLE) & known & ~past
            self.unresolved[(self.unresolved < 0) & (ahead < RESOLVED**2) & ~past] = k
            if poor.any():
                again = self._by_decomposition(
                    k,
                    np.flatnonzero(poor),
                    q[poor],
                    v[poor],
                    dt[poor],
                    forces[poor],
                    {n: x[poor] for n, x in others.items()},
                )
                for one, own in zip(there, again, strict=True):
                    one[poor] = own
            now = there
            yield tuple(now)

    def _past_singular_positions(
        self, k: int, now: Sequence[np.ndarray], near: np.ndarray, there: Sequence[np.ndarray]
    ) -> np.ndarray:
        """(n,): which trajectories take an arc in step k, of those that are near a singular position or on an arc
        already; where it leads is written to ``there``."""
        past = np.zeros(len(near), bool)
        for i in np.flatnonzero(self.given["dt"] > 0.0).tolist():  # arcs lead forward in time
            if near[i] or self.passages.is_inside(i):
                reached = self.passages.reached(i, k, [part[i] for part in now])
                if reached is not None:
                    past[i] = True
                    for part, own in zip(there, reached, strict=True):
                        part[i] = own
        return past

    def _forces(self, q: np.ndarray, v: np.ndarray, k: int) -> np.ndarray:
        """Joint forces of a step that are constant during it."""
        tau = self.given["tau"][:, k].astype(float)
        if "target" not in self.given:
            return tau
        way = tree.difference(self.mech, q, self.given["target"][:, k].astype(float))
        return tau + self.given["kp"] * way - self.given["kd"] * v

    def _by_decomposition(
        self,
        k: int,
        which: np.ndarray,
        q: np.ndarray,
        v: np.ndarray,
        dt: np.ndarray,
        tau: np.ndarray,
        others: Mapping[str, np.ndarray],
    ) -> tuple[np.ndarray, ...]:
        """The states after a step of some; NaN where loops cannot be closed."""
        try:
            return decomposed_step(self.mech, self.method, self.acting, q, v, dt[:, None], tau, **others)
        except MechanismError:
            if len(which) == 1:
                self.lost[which] = np.where(self.lost[which] < 0, k, self.lost[which])
                lost = [q, v, *([others[ACTIVATION]] if ACTIVATION in others else [])]
                return tuple(np.full_like(x, np.nan) for x in lost)
        alone = [
            self._by_decomposition(k, which[i], q[i], v[i], dt[i], tau[i], {name: x[i] for name, x in others.items()})
            for i in (slice(i, i + 1) for i in range(len(which)))
        ]
        return tuple(np.concatenate(parts) for parts in zip(*alone, strict=True))


def decomposed_step(
    mech: Mechanism,
    name: str,
    acting: Acting,
    q: np.ndarray,
    v: np.ndarray,
    h: np.ndarray,
    tau: np.ndarray,
    wrenches: Any = None,
    ctrl: Any = None,
    activation: Any = None,
) -> tuple[np.ndarray, ...]:
    """One step of a method and the projection after it, by NumPy: (q, v), and the activations if there are any."""
    method, rank, elements = METHODS[name], _rank(mech), Resolved(mech, acting)
    nq, n, more = mech.nq, mech.nv, [] if activation is None else [activation]

    def changes(q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Of v and activations, one behind the other."""
        forces, rates = elements.forces_and_rates(q, v[:, :n], ctrl, v[:, n:] if more else None)
        a = closed.accelerations(mech, q, v[:, :n], tau + forces, wrenches=wrenches, rank=rank)
        return np.concatenate([a, rates], axis=-1)

    def rates(_: float, x: np.ndarray) -> np.ndarray:
        q, v = x[:, :nq], x[:, nq:]
        return np.concatenate([tree.coordinate_rates(mech, q, v[:, :n]), changes(q, v)], axis=-1)

    if isinstance(method, Tableau):
        x = method.advance(np.concatenate([q, v, *more], axis=-1), h, rates)
        q, v = x[:, :nq], x[:, nq:]
    else:

        def kicks(_: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
            found = changes(q, v)
            found[:, :n] += kick_bias(mech, q, v[:, :n])
            return found

        def moved(q: np.ndarray, v: np.ndarray, h: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            q, rates = drifted(mech, q, v[:, :n], h[:, 0])
            return q, np.concatenate([rates, v[:, n:]], axis=-1)

        q, v = method.advance(q, np.concatenate([v, *more], axis=-1), h, kicks, moved)
    closed_q, closed_v = closed.project(mech, q, v[:, :n], rank=rank)
    return (closed_q, closed_v, v[:, n:])[: 2 + len(more)]


def finite_states(batch: tuple[int, ...], *arrays: np.ndarray) -> np.ndarray:
    """(...): whether all numbers of a state are."""
    return np.logical_and.reduce([np.isfinite(x).all(axis=tuple(range(len(batch), x.ndim))) for x in arrays])


# -- what is said about it ----------------------------------------------------------------------------


def warn_first(ended: np.ndarray, dt: np.ndarray, what: str, advice: str) -> None:
    """Warn of the first state of a batch of which something became true: ``ended`` (...) says after how many steps,
    -1 where it never did."""
    if not (ended >= 0).any():
        return
    times = np.where(ended >= 0, ended * np.abs(dt), np.inf)
    state = tuple(map(int, np.unravel_index(np.argmin(times), times.shape)))
    whose = f"in state {state}, " if state else ""
    others = f" ({int((ended >= 0).sum())} of {times.size} states)" if state else ""
    time = float((ended * dt)[state])
    warn_caller(f"rollout: {what}, first {whose}at t = {time:.6g} s{others}: {advice}", MechanismWarning)
