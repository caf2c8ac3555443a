"""Inverse kinematics of many targets at once: compiled iterations, and a driver that regroups unsolved states.

A kernel runs several iterations (``mechanics/algorithms/inverse_kinematics.py``) of a batch of states without
returning. States that have not converged are gathered into a smaller batch. They go on while their error decreases, and
restart from another guess otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..compiler.known_targets import load
from ..compiler.passes.scan import scan
from ..compiler.pipeline import trace_algorithm
from ..compiler.store import float64_function, stored
from ..display import mimebundle
from ..dynamics.by_joint import configuration_by_joint
from ..dynamics.states import Float64Array, common_batch, real_numbers
from ..dynamics.trees import random_state
from ..mechanics.algorithms.algorithm import Algorithm
from ..mechanics.algorithms.inverse_kinematics import (
    PROGRESS,
    CenterOfMassGoal,
    Goal,
    inverse_kinematics_step,
    limited_coordinates,
)
from ..mechanism import Mechanism, MechanismError, require_mechanism
from ..mechanism.quaternions import with_unit_quaternions
from ..mechanism.sampling import common_limits
from ..mechanism.scales import scales
from .closed_form import all_branches, closed_form, nearest_branch_of, why_not
from .targets import (
    Goals,
    goals_and_numbers,
    goals_and_poses,
    numbers_at,
    pack_poses,
    plain_poses,
    require_targets,
    tolerances,
    unpack_poses,
)
from .wrapping import WHOLE, wrapped

DAMPING = 0.03  # mu: most of what it is between 0.01 and 0.1 is equal; see benchmarks/inverse_kinematics.py
LONGEST = 2.0  # of a step, in radians and lengths over all joints: what linear models are good for at most
CHUNK, LONG_CHUNK = 8, 14  # iterations until states are looked at: what most need from a near guess, or from any
LANES, COPIES = 256, 24  # states that are worth a call: fewer are tried from up to so many guesses at once
NEAREST = 4  # attempts from the nearest guess; those that are left then start anywhere
PATIENT = 40  # attempts after which states may take long, as they may from a start that the caller gives
TOLERANCE_OF_LOOPS = 1e-11  # what the functions of closed mechanisms ask for
LAST = 40  # iterations of an attempt in which no posture pulls any more
CALM = 1e-7  # radians and lengths: a step of the posture alone that is shorter changes nothing
REFINED = 1e-10  # of angles, and of the mechanism's length: of iterations from formulas that are nearly right
NEAR = 0.1  # radians, or of the mechanism's length: what is nearer after a chunk is likely to converge
FALLING, PATIENT_FALLING = 0.7, 0.999  # of the error before a chunk: what has fallen less is stuck, in most cases
NEW = np.array([np.inf, 0.0, FALLING, NEAR])  # error, steps, and the bounds of the error, of an attempt
REASON = "a residual, its Jacobian and a damped step: no operator has rotations that are measured by their angles"


@dataclass(frozen=True, eq=False)
class InverseKinematics:
    """Configurations that reach targets, as far as they were found.

    q            (..., nq): of states that have not converged the nearest that was met
    converged    (...,) of bool: whether all targets are reached within the tolerance (and loops closed)
    error        (...,): the largest distance (m) of a position, or angle (rad) of a rotation or direction, to its
                 target; of loops what ``constraints.position_error`` has
    iterations   (...,) of int: of the attempt that led to q
    attempts     (...,) of int: guesses that were tried
    tolerance    of distances and angles; None for 1e-8 of the mechanism's length, and 1e-8 rad
    """

    mechanism: Mechanism
    q: Float64Array
    converged: np.ndarray
    error: Float64Array
    iterations: np.ndarray
    attempts: np.ndarray
    tolerance: float | None

    def require(self) -> Float64Array:
        """``q``, or an ``InverseKinematicsError`` with the number of targets that were not reached and the largest
        distance."""
        if not self.converged.all():
            raise InverseKinematicsError(self)
        return self.q

    def __str__(self) -> str:
        count = self.converged.size
        solved = f"{int(self.converged.sum())} of {count} solved" if count > 1 else "solved" if count else "no targets"
        if count == 1 and not self.converged.all():
            solved = "not solved"
        most = float(self.error.max(initial=0.0))
        return f"inverse kinematics of {self.mechanism.name}: {solved}, largest error {most:.1e} (m, rad)"

    def __repr__(self) -> str:
        return f"<{self}>"

    _repr_mimebundle_ = mimebundle


class InverseKinematicsError(MechanismError):
    """Targets were not reached."""

    def __init__(self, result: InverseKinematics):
        self.result = result
        missed = ~result.converged
        within = [f"{x:.3g}" for x in tolerances(result.mechanism, result.tolerance)]
        super().__init__(
            f"{int(missed.sum())} of {missed.size} targets of mechanism {result.mechanism.name!r} were not reached "
            f"within {' m, '.join(within)} rad: the nearest configurations miss them by "
            f"{float(result.error[missed].min()):.3g} to {float(result.error[missed].max()):.3g} (m, rad).  They may "
            "be out of reach, or only within limits=False; more attempts=... may find what few guesses lead to"
        )


def inverse_kinematics(
    mech: Mechanism,
    targets: Mapping[str, Any],
    q0: Any = None,
    *,
    center_of_mass: Any = None,
    posture: Any = None,
    limits: Any = True,
    tolerance: float | None = None,
    attempts: int = 100,
    iterations: int = 200,
    seed: int = 0,
) -> InverseKinematics:
    """Configurations in which frames reach ``targets``: many at once, compiled, by damped least squares.

    targets      {frame: target}, for all frames together: poses (..., 4, 4) or (rotation, position), positions (..., 3)
                 or ``linkwise.kinematics.FrameTarget`` (rotations, directions, weights), in the world; batches
                 broadcast
    q0           (..., nq) or {joint: ...}: start of the iterations; None for guesses of the library.  Where these fail,
                 guesses follow; a floating base starts at its pose in q0
    center_of_mass   (..., 3), or ``linkwise.kinematics.CenterOfMassTarget`` (some axes alone, a weight): position of
                 the centre of mass of all moving links in the world, beside the targets of frames, which may then
                 be {}
    posture      (..., nq) or {joint: ...}: the preferred configuration, as far as targets leave a choice, and the start
                 of the iterations without q0.  Targets that are not reached with it are tried without
    limits       True: limits of the joints (``mech.limits.lower``, ``mech.limits.upper``), mimic joints included;
                 False: none; or (lower, upper), each (nq,)
    tolerance    of every position (m), rotation and direction (rad); None: 1e-8 rad, and 1e-8 of the length of the
                 mechanism's longest offset
    attempts     number of guesses for each target; 1: q0 alone
    iterations   of an attempt at most
    seed         of the guesses: equal calls have equal results

    Revolute joints whose limits allow several whole rotations take the one nearest to the posture, else to q0, else to
    the middle of their limits. Loops are closed in the result. Targets out of reach end at a least-squares compromise
    and are not ``converged``; ``result.require()`` raises an error for them.
    """
    require_mechanism(mech)
    require_targets(mech, targets)
    _check_counts(tolerance, attempts, iterations)
    guesses = {"q0": _configuration(mech, "q0", q0), "posture": _configuration(mech, "posture", posture)}
    bounds = limits_of_coordinates(mech, limits)
    quickly = _solve_in_closed_form(mech, targets, guesses, bounds, tolerance) if center_of_mass is None else None
    if quickly is not None:
        return quickly
    goals, numbers = goals_and_numbers(mech, targets, center_of_mass)
    start = guesses["q0"] if guesses["q0"] is not None else guesses["posture"]
    batches = {"targets": numbers.shape[:-1]}
    batches |= {name: x.shape[:-1] for name, x in guesses.items() if x is not None}
    batch = common_batch(batches)

    def flat(x: np.ndarray) -> np.ndarray:
        return np.broadcast_to(x, batch + x.shape[-1:]).reshape(-1, x.shape[-1])

    q0, posture, first = (None if x is None else flat(x) for x in (guesses["q0"], guesses["posture"], start))
    preferred = q0 if posture is None else posture
    search = _Search(mech, goals, flat(numbers), posture, bounds, tolerance, iterations, seed)
    nearest = nearest_branch_of(mech, goals)
    if nearest is not None:
        first = search.start_from(*nearest(unpack_poses(search.target), bounds, preferred))
    if not search.reached.all():
        search.run(first, attempts)
        if first is not None and posture is not None and not search.reached.all():
            search.run_without_posture(first, attempts)
        search.wrap(preferred)
    return search.result(batch)


def _solve_in_closed_form(
    mech: Mechanism, targets: Any, guesses: dict[str, Float64Array | None], bounds: np.ndarray, tolerance: float | None
) -> InverseKinematics | None:
    """The closed-form solution; None unless only an array of poses is given and all of them have a solution. Invalid
    pose matrices have none.
    """
    alone = plain_poses(targets)
    nearest = None if alone is None else nearest_branch_of(mech, (Goal(alone[0]),))
    if alone is None or nearest is None:
        return None
    guess = guesses["q0"] if guesses["posture"] is None else guesses["posture"]
    poses, batch = alone[1], alone[1].shape[:-2]
    if guess is not None:
        if any(x is not None and x.shape[:-1] not in ((), batch) for x in guesses.values()):
            return None
        guess = np.broadcast_to(guess, (*batch, mech.nq)).reshape(-1, mech.nq)
    q, error = nearest(poses.reshape(-1, 4, 4), bounds, guess)
    reached: np.ndarray = np.all(error <= tolerances(mech, tolerance), axis=-1)
    if not reached.all():
        return None
    none, once = np.zeros(batch, dtype=int), np.ones(batch, dtype=int)
    shape = (*batch, mech.nq)
    solution = q.reshape(shape), reached.reshape(batch), error.max(axis=-1).reshape(batch)
    return InverseKinematics(mech, *solution, none, once, tolerance)


def refined(
    mech: Mechanism, goals: Goals, target: np.ndarray, q: np.ndarray, steps: int
) -> tuple[Float64Array, Float64Array]:
    """Configurations (n, nq) near solutions of targets (n, ...) after some iterations without limits, and the
    dimensionless errors before the last.
    """
    unlimited = np.array([[-np.inf], [np.inf]]) * np.ones(mech.nq)
    search = _Search(mech, goals, target, None, unlimited, None, steps, 0)
    search.aim = REFINED * search.units
    improved, progress = search._iterate(np.arange(len(q)), q, np.zeros((len(q), PROGRESS)), steps)
    return improved, search._dimensionless(progress)


def _check_counts(tolerance: Any, attempts: Any, iterations: Any) -> None:
    if tolerance is not None and not (isinstance(tolerance, (int, float)) and 0.0 < tolerance < np.inf):
        raise ValueError(f"tolerance must be a positive number (m, rad) or None, got {tolerance!r}")
    for name, count in (("attempts", attempts), ("iterations", iterations)):
        if not (isinstance(count, (int, np.integer)) and count >= 1):
            raise ValueError(f"{name} must be a whole number from 1 on, got {count!r}")


def _configuration(mech: Mechanism, name: str, value: Any) -> Float64Array | None:
    if value is None:
        return None
    q = configuration_by_joint(mech, name, value) if isinstance(value, Mapping) else real_numbers(name, value)
    if q.shape[-1:] != (mech.nq,):
        raise MechanismError(f"{name} must be numbers of shape (..., {mech.nq}) for {mech.name!r}, got {q.shape}")
    if not np.isfinite(q).all():
        raise MechanismError(f"{name} must be finite, and has {q[~np.isfinite(q)][0]}")
    return with_unit_quaternions(mech, name, q)


def limits_of_coordinates(mech: Mechanism, limits: Any) -> np.ndarray:
    """(2, nq): lower and upper."""
    if limits is True:
        bounds = np.array(common_limits(mech)[:2])
    elif limits is False:
        bounds = np.array([[-np.inf], [np.inf]]) * np.ones(mech.nq)
    else:
        try:
            lower, upper = (real_numbers("limits", x) for x in limits)
            bounds = np.array([np.broadcast_to(x, (mech.nq,)) for x in (lower, upper)])
        except (TypeError, ValueError):
            raise MechanismError(
                f"limits must be True, False or (lower, upper), each of {mech.nq} numbers, got {limits!r}"
            ) from None
    if not (bounds[0] <= bounds[1]).all():
        k = int(np.argmin(bounds[0] <= bounds[1]))
        raise MechanismError(
            f"no configuration is within the limits of {mech.coordinates.names('q')[k]!r}: {bounds[:, k]}"
        )
    return bounds


def _kernel(mech: Mechanism, goals: Goals, limited: tuple[int, ...], redundant: bool) -> Callable[..., None]:
    """Iterations of a batch, kept with the mechanism."""

    def make() -> Callable[..., None]:
        sizes = {
            "progress": (PROGRESS,),
            "progress_next": (PROGRESS,),
            "target": (sum(goal.size for goal in goals),),
            "limits": (2, mech.nv),
            "posture": (mech.nq,),
            "settings": (5,),
            "run": (),
        }
        algorithm = Algorithm(
            "inverse_kinematics_step",
            ("q", "progress", "target", "limits", "posture", "settings", "run"),
            ("q_next", "progress_next"),
            inverse_kinematics_step,
            ("goals", "limited", "redundant"),
            reason=REASON,
            sizes=sizes,
        )
        options = {"goals": goals, "limited": limited, "redundant": redundant}
        program, _ = trace_algorithm(algorithm, mech, options=options)
        iterated = scan(program, {"q_next": "q", "progress_next": "progress"}, ("run",))
        return load(iterated, "float64", "cpu")

    return stored(mech, ("inverse_kinematics", goals, limited, redundant), make)


class Lanes:
    """Running iterations: target index, state and progress. ``notes`` (n, 4) has the error, the number of steps, the
    required decrease per chunk, and the bound to reach.
    """

    def __init__(self, at: np.ndarray, q: np.ndarray, progress: np.ndarray | None = None, notes: Any = None):
        self.at, self.q = at, q
        self.progress = np.zeros((len(at), PROGRESS)) if progress is None else progress
        self.notes = np.tile(NEW, (len(at), 1)) if notes is None else notes
        self.error, self.steps, self.falling, self.near = self.notes.T

    def start_again(self, rows: np.ndarray, q: np.ndarray) -> None:
        self.q[rows], self.progress[rows], self.notes[rows] = q, 0.0, NEW

    def be_patient(self, rows: np.ndarray) -> None:
        """Allow many iterations for these lanes."""
        self.falling[rows], self.near[rows] = PATIENT_FALLING, np.inf

    def where(self, mask: np.ndarray) -> Lanes:
        rows = np.flatnonzero(mask)
        return Lanes(self.at[rows], self.q[rows], self.progress[rows], self.notes[rows])

    def and_(self, others: Lanes) -> Lanes:
        pairs = zip(self._arrays, others._arrays, strict=True)
        return Lanes(*(np.concatenate(pair) for pair in pairs))

    @property
    def _arrays(self) -> tuple[np.ndarray, ...]:
        return self.at, self.q, self.progress, self.notes


class _Search:
    """Targets (n, ...), and the nearest configurations so far."""

    def __init__(
        self,
        mech: Mechanism,
        goals: Goals,
        target: np.ndarray,
        posture: np.ndarray | None,
        bounds: np.ndarray,
        tolerance: float | None,
        iterations: int,
        seed: int,
    ):
        self.mech, self.goals, self.target, self.posture, self.bounds = mech, goals, target, posture, bounds
        self.tolerance, self.iterations, self.seed = tolerance, iterations, seed
        self.units = np.array([scales(mech).length, 1.0])  # of distances and angles
        closed = [TOLERANCE_OF_LOOPS * self.units for _ in mech.loops]
        self.aim = np.min([tolerances(mech, tolerance), *closed], axis=0)
        n = len(target)
        self.q = np.zeros((n, mech.nq))
        self.errors, self.taken, self.attempts = np.full((n, 2), np.inf), np.zeros(n, dtype=int), np.ones(n, dtype=int)
        self.reached = np.zeros(n, dtype=bool)
        self._blocks = 0

    def start_from(self, q: np.ndarray, error: np.ndarray) -> np.ndarray:
        """Accept configurations that reach their targets, or nearly so; returns starts of the iterations for others."""
        self.q, self.errors = q, error
        self.reached = np.all(error <= tolerances(self.mech, self.tolerance), axis=-1)
        return q if self.reached.all() else q.copy()

    @property
    def error(self) -> np.ndarray:
        """(n,): the larger of distance and angle, dimensionless."""
        return (self.errors / self.units).max(axis=-1)

    def _dimensionless(self, progress: np.ndarray) -> np.ndarray:
        """(n,): the larger of the distance and the angle of a progress, dimensionless."""
        return (_errors(progress) / self.units).max(axis=-1)

    def run(self, start: np.ndarray | None, attempts: int) -> None:
        """Attempts from ``start`` (n, nq), then from guesses, until all targets are reached or all attempts are
        made.
        """
        at = np.flatnonzero(~self.reached)
        lanes = Lanes(at, self._guess(at, start) if start is None else np.clip(start[at], *self.bounds))
        if start is not None:
            lanes.be_patient(np.arange(len(at)))
        while len(lanes.at):
            chunk = CHUNK if self._blocks < NEAREST else LONG_CHUNK
            lanes.steps += chunk
            before = lanes.error.copy()
            lanes.q, lanes.progress = self._iterate(lanes.at, lanes.q, lanes.progress, chunk, lanes.steps)
            lanes.error[:] = self._error_of_alignment(lanes.q, self._dimensionless(lanes.progress))
            hopeless = lanes.error > np.minimum(lanes.falling * before, lanes.near)
            if self.posture is not None:  # on the way to it, errors rise and fall
                hopeless &= lanes.error > NEAR
            hopeless |= lanes.steps >= self.iterations
            going = self._keep(lanes, hopeless)
            again = hopeless & going & (self.attempts[lanes.at] < attempts)
            self._start_again(lanes, again, start)
            lanes = self._widened(lanes.where(going & (again | ~hopeless)), start, attempts)
        self._measure()

    def run_without_posture(self, start: np.ndarray, attempts: int) -> None:
        """Retry unreached targets without the posture, so that a posture never costs a solution."""
        left = np.flatnonzero(~self.reached)
        alone = self._restarted(left, None)
        alone.run(start[left], attempts)
        self.attempts[left] += alone.attempts
        nearer = alone.error < self.error[left]
        better = left[nearer]
        self.q[better], self.errors[better], self.taken[better] = (
            alone.q[nearer],
            alone.errors[nearer],
            alone.taken[nearer],
        )
        self.reached[left] = alone.reached

    def _restarted(self, rows: np.ndarray, posture: np.ndarray | None) -> _Search:
        """A new search for some of the targets, with another posture."""
        numbers = self.bounds, self.tolerance, self.iterations, self.seed
        return _Search(self.mech, self.goals, self.target[rows], posture, *numbers)

    def wrap(self, preferred: np.ndarray | None) -> None:
        """Shift revolute joints by whole turns towards ``preferred``; a posture is then approached once more."""
        before, self.q = self.q, wrapped(self.mech, self.q, self.bounds, preferred)
        moved = np.flatnonzero((before != self.q).any(axis=1) & self.reached)
        if self.posture is None or not len(moved):
            return
        again = self._restarted(moved, self.posture[moved])
        again.run(self.q[moved], 1)
        rows = moved[again.reached]
        self.q[rows], self.errors[rows] = again.q[again.reached], again.errors[again.reached]

    def _iterate(
        self, at: np.ndarray, q: np.ndarray, progress: np.ndarray, steps: int, made: np.ndarray | float = 0.0
    ) -> tuple[np.ndarray, np.ndarray]:
        """q and progress of the targets ``at`` after some iterations, of which ``made`` are done in all. The last
        iterations drop the posture objective, so that they converge to the targets.
        """
        moved, news = np.empty((len(at), 1, self.mech.nq)), np.empty((len(at), 1, PROGRESS))
        posture = q[:1]
        if self.posture is not None:
            late = np.broadcast_to(made, len(at)) > self.iterations - LAST
            posture = np.where(late[:, None], q, self.posture[at])
        run = np.zeros((1, steps))
        with np.errstate(all="ignore"):
            kernel, limits = self._iteration
            settings = np.array([self.aim[0], DAMPING, LONGEST, CALM, self.aim[1]])
            kernel(q, progress, self.target[at], limits, posture, settings, run, out=(moved, news))
        return moved[:, 0], news[:, 0]

    def _keep(self, lanes: Lanes, hopeless: np.ndarray) -> np.ndarray:
        """Store lanes that converged or improved on earlier tries; returns which targets remain unreached."""
        resting = (_errors(lanes.progress) <= self.aim).all(axis=-1) & np.isfinite(lanes.error)
        if self.posture is not None:
            hopeless &= ~resting
            resting &= (lanes.progress[:, 2] <= CALM) | (lanes.steps >= self.iterations)
        ended = np.flatnonzero((resting | hopeless) & ~self.reached[lanes.at])
        ended = ended[lanes.error[ended] < self.error[lanes.at[ended]]]
        if len(ended) <= LANES:  # of several lanes of one target the best must be the last
            ended = ended[np.argsort(-lanes.error[ended])]
        rows = lanes.at[ended]
        errors = np.where(np.isfinite(lanes.error[ended, None]), _errors(lanes.progress[ended]), np.inf)
        self.q[rows], self.errors[rows], self.taken[rows] = lanes.q[ended], errors, lanes.progress[ended, 1]
        self.reached[lanes.at[resting]] = True
        return ~self.reached[lanes.at]

    def _start_again(self, lanes: Lanes, which: np.ndarray, start: np.ndarray | None) -> None:
        """Another guess for these lanes."""
        rows = np.flatnonzero(which)
        if not len(rows):
            return
        at = lanes.at[rows]
        self.attempts += np.bincount(at, minlength=len(self.attempts))
        lanes.start_again(rows, self._guess(at, start))
        if self.attempts[at[0]] > PATIENT:
            lanes.be_patient(rows[self.attempts[at] > PATIENT])

    def _widened(self, lanes: Lanes, start: np.ndarray | None, attempts: int) -> Lanes:
        """These lanes; if few are left, further lanes of their targets from other guesses."""
        if 2 * len(lanes.at) > LANES or attempts == 1:
            return lanes
        few = np.unique(lanes.at)
        if start is not None:  # what the caller started has the first word
            few = few[self.attempts[few] > 1]
        copies = (min(COPIES * len(few), LANES) - len(lanes.at)) // max(len(few), 1)
        if copies < 1:
            return lanes
        more = Lanes(np.tile(few, copies), np.zeros((copies * len(few), self.mech.nq)))
        self._start_again(more, self.attempts[more.at] < attempts, start)
        more = more.where(self.attempts[more.at] < attempts)
        return lanes.and_(more)

    def _guess(self, at: np.ndarray, start: np.ndarray | None) -> np.ndarray:
        """(len(at), nq): the nearest of some random configurations; any of them once several such guesses have
        failed.
        """
        if start is not None or self.mech.loops:
            base = self.mech.initial if start is None else start[at]
            return random_configurations(self.mech, self.bounds, self._rng, len(at), base)
        drawn = self._guesses
        if self._blocks < NEAREST:  # the first of all targets, or the second of those that are left
            self._blocks += 1
            return drawn.nearest(self.target[at], self._blocks)
        return drawn.any(len(at), self._rng)

    @cached_property
    def _iteration(self) -> tuple[Callable[..., None], np.ndarray]:
        """The kernel, and the limits that it takes."""
        limits, limited = _limits_of_rates(self.mech, self.bounds)
        return _kernel(self.mech, self.goals, limited, self.posture is not None), limits

    @cached_property
    def _rng(self) -> np.random.Generator:
        return np.random.default_rng(self.seed)

    @cached_property
    def _guesses(self) -> Guesses:
        return guesses(self.mech, self.goals, self.bounds, self.seed)

    def _error_of_alignment(self, q: np.ndarray, error: np.ndarray) -> np.ndarray:
        """The error; infinite where loops are closed as mirror images, back to back."""
        aligned = float64_function(self.mech, "loop_alignments")(q) > 0.0
        return np.where(aligned.all(axis=-1), error, np.inf)

    def _measure(self) -> None:
        """Recompute the errors of lanes that have not converged: the stored ones are from before their last step."""
        missed = np.flatnonzero(~self.reached & np.isfinite(self.error))
        if len(missed):
            news = self._iterate(missed, self.q[missed], np.zeros((len(missed), PROGRESS)), 1)[1]
            self.errors[missed] = _errors(news)

    def result(self, batch: tuple[int, ...]) -> InverseKinematics:
        converged = (self.errors <= tolerances(self.mech, self.tolerance)).all(axis=-1)
        return InverseKinematics(
            self.mech,
            self.q.reshape(*batch, self.mech.nq),
            converged.reshape(batch),
            self.errors.max(axis=-1).reshape(batch),
            self.taken.reshape(batch),
            self.attempts.reshape(batch),
            self.tolerance,
        )


def _errors(progress: np.ndarray) -> np.ndarray:
    """(n, 2): distances and angles."""
    return progress[:, [0, 5]]


def _limits_of_rates(mech: Mechanism, bounds: np.ndarray) -> tuple[np.ndarray, tuple[int, ...]]:
    """(2, nv): limits of the coordinates whose rates are entries of v, and the indices of those with a finite limit."""
    limits = np.zeros((2, mech.nv))
    coordinates = limited_coordinates(mech)
    for k, at in coordinates.items():
        limits[:, k] = bounds[:, at]
    finite = np.isfinite(bounds).any(axis=0)
    return limits, tuple(k for k, at in coordinates.items() if finite[at])


# -- guesses: random configurations drawn once, from which the nearest to each target are taken ----------


BLOCK, BLOCKS = 256, 32
LENGTHS_PER_ROTATION = 0.4  # what differences of axes count in lengths of the mechanism; arms reach about two


@dataclass(frozen=True)
class Guesses:
    """Random configurations (BLOCKS, BLOCK, nq) and the frame poses they reach, in float32: they only rank guesses."""

    q: np.ndarray
    reached: np.ndarray  # (BLOCKS, n + 1, BLOCK): scaled numbers, and half their squares
    scale: np.ndarray

    def any(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """(count, nq): a random selection."""
        return self.q.reshape(BLOCKS * BLOCK, -1)[rng.integers(BLOCKS * BLOCK, size=count)]

    def nearest(self, target: np.ndarray, block: int) -> np.ndarray:
        """(states, nq): for each target (states, n) the configuration of a block that comes nearest."""
        block %= BLOCKS
        scaled = np.empty((len(target), target.shape[-1] + 1), np.float32)
        np.multiply(target, self.scale, out=scaled[:, :-1], casting="unsafe")
        scaled[:, -1] = -1.0
        return self.q[block][(scaled @ self.reached[block]).argmax(axis=-1)]


def guesses(mech: Mechanism, goals: Goals, limits: np.ndarray, seed: int) -> Guesses:
    """Drawn within ``limits`` (2, nq), kept with the mechanism."""
    key = ("inverse_kinematics_guesses", goals, limits.tobytes(), seed)
    return stored(mech, key, lambda: _drawn_guesses(mech, goals, limits, seed))


def _drawn_guesses(mech: Mechanism, goals: Goals, limits: np.ndarray, seed: int) -> Guesses:
    q = random_configurations(mech, limits, np.random.default_rng(seed), BLOCKS * BLOCK, mech.initial)
    scale = np.concatenate([_scale(goal, scales(mech).length) for goal in goals])
    reached = (numbers_at(mech, goals, q) * scale).astype(np.float32).reshape(BLOCKS, BLOCK, -1)
    with_squares = np.concatenate([reached, 0.5 * np.sum(reached**2, axis=-1, keepdims=True)], axis=-1)
    return Guesses(q.reshape(BLOCKS, BLOCK, -1), np.ascontiguousarray(with_squares.swapaxes(-1, -2)), scale)


def _scale(goal: Goal | CenterOfMassGoal, length: float) -> np.ndarray:
    if isinstance(goal, CenterOfMassGoal):
        return np.full(goal.size, 1.0 / length)
    positions = [1.0 / length] * 3 if goal.position > 0.0 else []
    return np.array(positions + [LENGTHS_PER_ROTATION] * (goal.size - len(positions)))


def random_configurations(
    mech: Mechanism, limits: np.ndarray, rng: np.random.Generator, count: int, base: np.ndarray
) -> np.ndarray:
    """(count, nq): uniform within finite ``limits``, within a few lengths of the mechanism for sliding joints without
    limits; floating joints as in ``base`` (..., nq).
    """
    q = random_state(mech, rng, (count,))[0] * scales(mech).of_q
    lower, upper = limits
    bounded = np.isfinite(lower) & np.isfinite(upper)
    q[:, bounded] = rng.uniform(lower[bounded], upper[bounded], (count, int(bounded.sum())))
    q = np.clip(q, lower, upper)
    for at in floating(mech):
        q[:, at] = base[..., at]
    return q


def floating(mech: Mechanism) -> Sequence[slice]:
    """The coordinates of floating joints in q."""
    return [mech.q_index(body.joint) for body in mech.bodies if body.kind.is_free]


# -- all configurations of arms that have formulas -------------------------------------------------------


ITERATIONS = 6  # where axes are not quite as formulas take them
ROUND_OFF = 1e-12  # of whole rotations


def inverse_kinematics_branches(mech: Mechanism, targets: Mapping[str, Any], *, limits: Any = False) -> Float64Array:
    """(..., 8, nq): all configurations in which a frame reaches a pose; rows beyond their number are NaN.

    targets   {frame: pose}: one frame that six revolute joints carry, and poses (..., 4, 4) or a
              ``linkwise.kinematics.FrameTarget`` with position and rotation, in the world
    limits    False, unlike ``inverse_kinematics``: angles are between -pi and pi, without limits of joints; True:
              limits of the joints, or (lower, upper), each (nq,): angles by whole rotations nearest to the middle of
              the limits, NaN for configurations beyond the limits

    Closed forms exist for arms with spherical wrists (three axes at an end meet, and two others meet or are parallel)
    and for UR arms (three neighbouring axes are parallel, and two others are parallel or meet); a ``MechanismError``
    names the obstacle for other arms. Axes may deviate by up to 0.02 radians and 2 percent of the arm's length:
    iterations then start from the closed form. The eight rows stand for three choices (shoulder, elbow, wrist) and keep
    their order along a path; coinciding configurations are both listed; angles that a singular pose leaves open are
    zero. Joints other than the six stay at ``mech.initial``.
    """
    require_mechanism(mech)
    goals, poses = goals_and_poses(mech, targets)
    if poses is None:
        raise MechanismError("branches are those of one pose of one frame; linkwise.inverse_kinematics takes more")
    frame = goals[0].frame
    form = closed_form(mech, frame)
    if form is None:
        raise MechanismError(
            f"there are no formulas for the pose of {frame!r} of mechanism {mech.name!r}: {why_not(mech, frame)}; "
            "linkwise.inverse_kinematics finds one configuration by iterations"
        )
    with np.errstate(all="ignore"):
        q = all_branches(mech, form, frame)(poses)
    if form.exact and limits is False and form.indices == tuple(range(mech.nq)):
        return q
    there = np.isfinite(q[..., 0])
    if form.indices != tuple(range(mech.nq)):
        angles, q = q, np.tile(mech.initial, (*there.shape, 1))
        q[..., form.indices] = angles
    if not form.exact:
        poses = np.broadcast_to(poses[..., None, :, :], (*there.shape, 4, 4))
        q[there], error = refined(mech, goals, pack_poses(poses[there]), q[there], ITERATIONS)
        there[there] = error <= REFINED
    if limits is not False:
        bounds = limits_of_coordinates(mech, limits)
        moved = wrapped(mech, q.reshape(-1, mech.nq), bounds, None).reshape(q.shape)
        rotations = ((moved - q) / WHOLE)[..., form.indices]  # whole ones, where these lead into the limits
        there &= (np.abs(rotations - np.rint(rotations)) < ROUND_OFF).all(axis=-1)
        there &= ((moved >= bounds[0]) & (moved <= bounds[1]))[..., form.indices].all(axis=-1)
        q = moved
    q[~there] = np.nan
    return q
