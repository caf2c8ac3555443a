"""Closed forms of inverse kinematics, compiled for an arm: all configurations of a pose, or that nearest to a guess."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..compiler.known_targets import load
from ..compiler.pipeline import trace_algorithm
from ..compiler.store import stored
from ..dynamics.states import Float64Array
from ..mechanics.algorithms.algorithm import Algorithm
from ..mechanics.algorithms.closed_form import (
    BRANCHES,
    SOLUTIONS,
    WHOLE,
    ArmGeometry,
    Property,
    branches,
    inverse_kinematics_branches,
    nearest_branch,
)
from ..mechanics.algorithms.inverse_kinematics import CenterOfMassGoal
from ..mechanism import Mechanism
from ..mechanism.parts import Body
from .se3 import pose as placed
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
        first, last = form.indices[0], form.indices[-1]
        self._indices, self._initial = list(form.indices), mech.initial
        self._row = slice(first, last + 1) if self._indices == list(range(first, last + 1)) else None
        self._rest = [k for k in range(mech.nq) if k not in form.indices]
        fixed = tuple(mech.initial.tolist())
        options = {"geometry": form.geometry, "frame": frame, "indices": form.indices, "fixed": fixed}
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
            q[:, self._indices], distance = self._quietly(*numbers)
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
        limits = bounds[:, self._indices]
        near = middle(limits) if guess is None else np.clip(guess[..., self._indices], *limits)
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


# -- which arms have closed forms: classification of the axes of six revolute joints ---------------------
#
# Axes that are parallel, or meet, up to small deviations (of a calibrated arm) are treated as exactly so; the deviation
# is returned, and iterations correct it.


EXACT, NEARLY = 2e-11, 0.02  # radians, or of the arm's size: what nobody sees, and what iterations can cover
SAME = 1e-9  # deviations below do not decide between kinds
LOOSE = 10.0  # what squares of sines may be off by per deviation
APART = 0.02  # radians between axes that must not be parallel for a point to be where they meet
ROUND = 1e-10  # components of axes that are zero or one, parts of the arm's size that are zero: files have pi/2 to
# ten digits


@dataclass(frozen=True)
class ClosedForm:
    """Geometry of an arm that has closed-form inverse kinematics, its deviation from the ideal geometry, and the
    positions of its joints in q.
    """

    geometry: ArmGeometry
    deviation: float
    indices: tuple[int, ...]

    @property
    def exact(self) -> bool:
        return self.deviation <= EXACT


def closed_form(mech: Mechanism, frame: str) -> ClosedForm | None:
    """The closed form of the arm that carries a frame; None if it has none.  Kept with the mechanism."""
    return stored(mech, ("closed_form", frame), lambda: _classified(mech, frame))


def why_not(mech: Mechanism, frame: str) -> str:
    """The reason why an arm has no closed form."""
    carrying = [mech.bodies[i] for i in mech.tree.path(mech.frame(frame).body)]
    return _other_joints(mech, carrying) or (
        "neither do three neighbouring axes at an end meet with two others that meet or are parallel, nor are three "
        "neighbouring axes parallel with two others that meet or are parallel"
    )


def _other_joints(mech: Mechanism, carrying: list[Body]) -> str:
    """Why these are not the joints of an arm with a closed form; empty if they are."""
    if mech.loops:
        return "the mechanism has loops"
    for body in carrying:
        if not body.kind.hinge:
            return f"joint {body.joint!r} is not revolute"
    names = {body.joint for body in carrying}
    if any(body.mimic and (body.joint in names or body.mimic.joint in names) for body in mech.bodies):
        return "joints that carry the frame mimic others, or others them"
    return f"{len(carrying)} joints carry the frame, not six" if len(carrying) != 6 else ""


def _classified(mech: Mechanism, frame: str) -> ClosedForm | None:
    carrying = mech.tree.path(mech.frame(frame).body)
    bodies = [mech.bodies[i] for i in carrying]
    if _other_joints(mech, bodies):
        return None
    pose, axes, points = np.eye(4), [], []
    for body in bodies:
        pose = pose @ placed(body.rotation, body.position)
        axes.append(pose[:3, :3] @ np.asarray(body.kind.hinge))
        points.append(pose[:3, 3])
    hand = mech.frame(frame)
    unit = np.array(axes) / np.linalg.norm(axes, axis=1, keepdims=True)
    arm = _Arm(unit, np.array(points), pose @ placed(hand.rotation, hand.position))
    indices = tuple(mech.q_index(body.joint).start for body in bodies)
    candidates = [
        (deviation, kind, backwards)
        for kind in SOLUTIONS
        for backwards in (False, True)
        if (deviation := arm.deviation(SOLUTIONS[kind], backwards)) <= NEARLY
    ]
    for deviation, kind, backwards in sorted(candidates, key=lambda candidate: max(candidate[0], SAME)):
        geometry = arm.geometry(kind, backwards)
        if _is_solved(geometry):
            deviation = max(deviation, arm.rounding(geometry))
            slack = max(geometry.slack, LOOSE * deviation)
            return ClosedForm(replace(geometry, slack=slack), deviation, indices)
    return None


class _Arm:
    """Joint axes (6, 3), points on them (6, 3), and the pose of the hand, all at zero."""

    def __init__(self, axes: np.ndarray, points: np.ndarray, hand: np.ndarray):
        self.axes, self.points, self.hand = axes, points, hand
        self.size = float(np.linalg.norm(np.diff([*points, hand[:3, 3]], axis=0), axis=1).sum()) or 1.0

    def deviation(self, wanted: Property, backwards: bool) -> float:
        """The largest angle between nominally parallel axes, and distance from points in which axes nominally meet."""
        off = [0.0]
        for group in wanted.parallel:
            first, *others = self.axes[_joints(group, backwards)]
            off += [float(np.linalg.norm(np.cross(first, other))) for other in others]
        for group in (wanted.meet, wanted.touching):
            if group:
                off.append(self._meeting(_joints(group, backwards))[1] / self.size)
        return max(off)

    def geometry(self, kind: str, backwards: bool) -> ArmGeometry:
        """The geometry with axes exactly parallel and meeting, in axes along the first and across it."""
        wanted = SOLUTIONS[kind]
        axes, points, signs = self.axes.copy(), self.points.copy(), np.ones(6)
        for group in wanted.parallel:
            joints = _joints(group, backwards)
            signs[joints] = np.sign(axes[joints] @ axes[joints[0]])
            mean = (signs[joints, None] * axes[joints]).sum(axis=0)
            axes[joints] = mean / np.linalg.norm(mean)
        centre = points[0]
        if wanted.meet:
            joints = _joints(wanted.meet, backwards)
            points[joints] = centre = self._meeting(joints)[0]
        if wanted.touching:
            joints = _joints(wanted.touching, backwards)
            points[joints] = self._meeting(joints)[0]
        base = _base(axes)
        hand = np.linalg.inv(self.hand)
        unit = 2.0 ** round(math.log2(self.size))
        return ArmGeometry(
            kind,
            backwards,
            _row_tuples(_unit_entries(axes @ base.T)),
            tuple(signs.tolist()),
            _row_tuples(self._remove_noise(points @ base.T) / unit),
            _row_tuples(self._remove_noise((base @ centre)[None]) / unit)[0],
            _row_tuples(base),
            _row_tuples(_unit_entries(hand[:3, :3] @ base.T)),
            _row_tuples(self._remove_noise(hand[None, :3, 3]) / unit)[0],
            size=unit,
        )

    def _remove_noise(self, positions: np.ndarray) -> np.ndarray:
        return np.where(np.abs(positions) < ROUND * self.size, 0.0, positions)

    def rounding(self, geometry: ArmGeometry) -> float:
        """The rounding of axes and of the hand's pose, both of unit lengths."""
        base = np.array(geometry.base)
        hand = np.linalg.inv(self.hand)[:3, :3] @ base.T - np.array(geometry.hand_rotation)
        axes = self.axes @ base.T - np.array(geometry.signs)[:, None] * np.array(geometry.axes)
        return float(max(np.abs(hand).max(), np.abs(axes).max()))

    def _meeting(self, joints: list[int]) -> tuple[np.ndarray, float]:
        """The least-squares intersection point of some axes and its largest distance to them; infinite if consecutive
        axes are parallel.
        """
        axes, points = self.axes[joints], self.points[joints]
        if (np.linalg.norm(np.cross(axes[:-1], axes[1:]), axis=1) < APART).any():
            return points[0], np.inf
        across = np.eye(3) - axes[:, :, None] * axes[:, None, :]
        point = np.linalg.solve(across.sum(axis=0), np.einsum("kij,kj->i", across, points))
        return point, float(np.linalg.norm(np.einsum("kij,kj->ki", across, point - points), axis=1).max())


def _joints(group: tuple[int, ...], backwards: bool) -> list[int]:
    return [5 - k for k in group] if backwards else list(group)


def _base(axes: np.ndarray) -> np.ndarray:
    """(3, 3), rows: z along the first axis, y along the part of the next non-parallel axis that is normal to z."""
    first = axes[0]
    other = next((axis for axis in axes[1:] if np.linalg.norm(np.cross(first, axis)) > APART), None)
    if other is None:  # all are parallel; no closed form will do
        return np.eye(3)
    y = other - first * (first @ other)
    y /= np.linalg.norm(y)
    return _unit_entries(np.array([np.cross(y, first), y, first]))


def _unit_entries(x: np.ndarray) -> np.ndarray:
    """Entries of unit vectors with zeros and ones made exact."""
    near = np.round(x)
    return np.where(np.abs(x - near) < ROUND, near, x)


def _row_tuples(x: np.ndarray) -> tuple[tuple[float, float, float], ...]:
    return tuple((float(a), float(b), float(c)) for a, b, c in x)


def _is_solved(geometry: ArmGeometry) -> bool:
    """Whether the closed form reproduces known configurations of this geometry; false for degenerate axes."""
    rng = np.random.default_rng(0)
    for _ in range(3):
        q = rng.uniform(-3.0, 3.0, 6)
        try:
            solutions = branches(geometry, _reached(geometry, q))
        except ZeroDivisionError:
            return False
        off = np.array([branch.angles for branch in solutions]) - q
        exists = np.array([branch.room for branch in solutions]) > -geometry.slack
        if not (exists & (np.abs(off - 2 * np.pi * np.rint(off / (2 * np.pi))).max(axis=1) < 1e-5)).any():
            return False
    return True


def _reached(geometry: ArmGeometry, q: np.ndarray) -> list[list[float]]:
    """The pose (4, 4) of the hand, by the motions of one joint after the other."""
    base, hand = np.array(geometry.base), np.eye(4)
    hand[:3, :3], hand[:3, 3] = geometry.hand_rotation, geometry.hand_position
    pose = np.linalg.inv(hand)
    for axis, point, angle in zip(geometry.axes[::-1], geometry.points[::-1], (q * geometry.signs)[::-1], strict=True):
        h, p = np.array(axis), np.array(point)
        cross = np.cross(h, np.eye(3)).T
        turn = np.eye(3) + np.sin(angle) * cross + (1 - np.cos(angle)) * cross @ cross
        motion = np.eye(4)
        motion[:3, :3], motion[:3, 3] = turn, p - turn @ p
        pose = motion @ pose
    pose[:3] = base.T @ pose[:3]
    pose[:3, 3] *= geometry.size
    return pose.tolist()
