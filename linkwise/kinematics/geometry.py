"""Which arms have closed-form inverse kinematics: classification of the axes of six revolute joints.

Axes that are parallel, or meet, but for small deviations (of a calibrated arm) are taken as if they were; the deviation
is returned, and iterations correct it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ..compiler.store import stored
from ..mechanics.algorithms.closed_form import SOLUTIONS, ArmGeometry, Property, branches
from ..mechanism import Mechanism
from ..mechanism.parts import Body
from .se3 import pose as placed

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
    places: tuple[int, ...]

    @property
    def exact(self) -> bool:
        return self.deviation <= EXACT


def closed_form(mech: Mechanism, frame: str) -> ClosedForm | None:
    """The closed form of the arm that carries a frame; None if it has none.  Kept with the mechanism."""
    return stored(mech, ("closed_form", frame), lambda: _found(mech, frame))


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


def _found(mech: Mechanism, frame: str) -> ClosedForm | None:
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
        """The largest angle between axes that are to be parallel, and distance from points where they are to meet."""
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
            _rows(_unit_entries(axes @ base.T)),
            tuple(signs.tolist()),
            _rows(self._remove_noise(points @ base.T) / unit),
            _rows(self._remove_noise((base @ centre)[None]) / unit)[0],
            _rows(base),
            _rows(_unit_entries(hand[:3, :3] @ base.T)),
            _rows(self._remove_noise(hand[None, :3, 3]) / unit)[0],
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
    """(3, 3), rows: z along the first axis, y along the next that is not parallel to it, as far as it is across."""
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


def _rows(x: np.ndarray) -> tuple[tuple[float, float, float], ...]:
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
