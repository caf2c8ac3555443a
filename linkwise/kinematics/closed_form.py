"""Closed forms of inverse kinematics, compiled for an arm: all configurations of a pose, or that nearest to a guess."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..compiler.known_targets import load
from ..compiler.pipeline import trace_algorithm
from ..compiler.store import stored
from ..dynamics.states import Float64Array
from ..mechanics.algorithms.algorithm import Algorithm
from ..mechanics.algorithms.closed_form import BRANCHES, WHOLE, inverse_kinematics_branches, nearest_branch
from ..mechanics.algorithms.inverse_kinematics import CenterOfMassGoal
from ..mechanism import Mechanism
from .geometry import ClosedForm, closed_form
from .targets import Goals
from .wrapping import middle

REASON = "subproblems of the axes' geometry: no operator has angles between axes and places"


def nearest_branch_of(mech: Mechanism, goals: Goals) -> NearestBranch | None:
    """Closed-form solution of one full pose of one frame; None if the arm has none. Cached on the mechanism."""
    return stored(mech, ("nearest_branch", goals), lambda: _nearest_branch(mech, goals))


def _nearest_branch(mech: Mechanism, goals: Goals) -> NearestBranch | None:
    goal = goals[0]
    if len(goals) > 1 or isinstance(goal, CenterOfMassGoal):
        return None
    if goal.axis or not (goal.position > 0.0 and goal.rotation > 0.0):
        return None
    form = closed_form(mech, goal.frame)
    return None if form is None else NearestBranch(mech, form, goal.frame)


class NearestBranch:
    """The solution (n, nq) nearest to a guess for each pose (n, 4, 4), with its distance and angle errors (n, 2)."""

    def __init__(self, mech: Mechanism, form: ClosedForm, frame: str):
        first, last = form.places[0], form.places[-1]
        self._places, self._initial = list(form.places), mech.initial
        self._row = slice(first, last + 1) if self._places == list(range(first, last + 1)) else None
        self._rest = [k for k in range(mech.nq) if k not in form.places]
        fixed = tuple(mech.initial.tolist())
        options = {"geometry": form.geometry, "frame": frame, "indices": form.places, "fixed": fixed}
        self._kernel = _compiled(mech, nearest_branch, options)
        self._last: tuple[bytes, Any] = (b"", None)

    def __call__(
        self, target: np.ndarray, bounds: np.ndarray, guess: np.ndarray | None
    ) -> tuple[Float64Array, Float64Array]:
        """``bounds`` (2, nq); ``guess`` (n, nq), or None for the middle of the bounds."""
        numbers = (target, *self._limits_and_windows(bounds, guess))
        if not self._rest:
            return self._quietly(*numbers)
        q, distance = np.empty((len(target), len(self._initial))), np.empty((len(target), 2))
        others = self._initial[self._rest] if guess is None else guess[:, self._rest]
        q[:, self._rest] = np.clip(others, *bounds[:, self._rest])
        if self._row is not None:
            self._quietly(*numbers, out=(q[:, self._row], distance))
        else:
            q[:, self._places], distance = self._quietly(*numbers)
        return q, distance

    def _quietly(self, *arrays: np.ndarray, out: Any = None) -> Any:
        """Evaluate without floating-point warnings; the distance shows which poses are not reached."""
        with np.errstate(all="ignore"):
            return self._kernel(*arrays, out=out)

    def _limits_and_windows(self, bounds: np.ndarray, guess: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """Joint limits and angle windows. The last result is cached, because most calls repeat the same bounds."""
        key, (last, kept) = bounds.tobytes(), self._last
        if guess is None and key == last:
            return kept
        limits = bounds[:, self._places]
        near = middle(limits) if guess is None else np.clip(guess[..., self._places], *limits)
        limits_and_windows = limits, _windows(near, limits)
        if guess is None:
            self._last = key, limits_and_windows
        return limits_and_windows


def _windows(near: np.ndarray, limits: np.ndarray) -> np.ndarray:
    """(..., 3, 6): the guess, and the centres of the 2-pi windows that contain the nearest angles, for wider and for
    narrower limits.
    """
    lower, upper = limits
    wide = upper - lower > WHOLE
    halfway = middle(limits)
    centre = np.clip(near, np.where(wide, lower + np.pi, halfway), np.where(wide, upper - np.pi, halfway))
    turns = WHOLE * np.rint(centre / WHOLE)
    return np.stack([near, turns, centre - turns], axis=-2)


def all_branches(mech: Mechanism, form: ClosedForm, frame: str) -> Callable[..., Any]:
    """A function that returns all solutions (n, 8, 6) of poses (n, 4, 4), padded with NaN."""
    options = {"geometry": form.geometry}
    return stored(
        mech, ("inverse_kinematics_branches", frame), lambda: _compiled(mech, inverse_kinematics_branches, options)
    )


def _compiled(mech: Mechanism, recursion: Callable[..., Any], options: dict[str, Any]) -> Callable[..., Any]:
    nearest = recursion is nearest_branch
    algorithm = Algorithm(
        recursion.__name__,
        ("target", "limits", "windows") if nearest else ("target",),
        ("angles", "distance") if nearest else "branches",
        recursion,
        tuple(options),
        reason=REASON,
        sizes={
            "target": (4, 4),
            "limits": (2, 6),
            "windows": (3, 6),
            "angles": (6,),
            "distance": (2,),
            "branches": (BRANCHES, 6),
        },
    )
    program, _ = trace_algorithm(algorithm, mech, options=options)
    return load(program, "float64", "cpu")
