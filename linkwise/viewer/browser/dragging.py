"""A point of a link pulled to where it is wanted: the mechanism follows as far as it can, its loops closed.

Gauss-Newton steps along the motions that loops allow, damped where they are nearly singular, each followed by a
projection onto the loops; joints at their limits stand still.  From one picture to the next the configuration moves
continuously: what cannot be reached is approached, and never jumped to.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial.transform import Rotation

import linkwise as lw

ROUNDS = 6  # steps of a call at most: the next picture goes on
LONGEST = 0.15  # of a step: of the mechanism's size, and radians
DAMPING = 0.02  # in units of the mechanism's size
CLOSE = 1e-7  # of the mechanism's size: reached
HALVINGS = 5  # of a step that leads away, or off the branch


@dataclass(frozen=True)
class Reached:
    """q, and how far the point (m) and the link's orientation (rad) are from where they are wanted."""

    q: np.ndarray
    distance: float
    angle: float = 0.0


@dataclass(frozen=True)
class Hand:
    """What holds a mechanism: a point (3,) of a link, in the link's frame."""

    link: str
    point: np.ndarray

    def position(self, mech: lw.Mechanism, q: np.ndarray) -> np.ndarray:
        """(3,): the point in the world."""
        pose = lw.frame_pose(mech, q, self.link)
        return pose[:3, :3] @ self.point + pose[:3, 3]


def dragged(
    mech: lw.Mechanism,
    q: np.ndarray,
    hand: Hand,
    position: np.ndarray,
    rotation: np.ndarray | None = None,
    size: float = 1.0,
) -> Reached:
    """The configuration near q, its loops closed, in which the hand is as near as it gets to ``position`` (3,).

    rotation   (3, 3): the orientation that is wanted of the link too; None leaves it free
    size       of the mechanism, in metres: what is far and what is near
    """
    goal = _Goal(mech, hand, np.asarray(position, dtype=float), rotation, size)
    error = goal.error(q)
    for _ in range(ROUNDS):
        cost = float(error @ error)
        if np.sqrt(cost) <= CLOSE * size:
            break
        step = _step(mech, q, goal.jacobian(q), error * min(1.0, LONGEST * size / np.sqrt(cost)), size)
        moved = _best_along(mech, q, step, goal, cost)
        if moved is None:
            break
        q, error = moved
    position_error, angle = goal.split(goal.error(q))
    return Reached(q, float(np.linalg.norm(position_error)), float(np.linalg.norm(angle)))


class _Goal:
    """Where the hand is wanted: errors in metres, angles times the size of the mechanism."""

    def __init__(
        self, mech: lw.Mechanism, hand: Hand, position: np.ndarray, rotation: np.ndarray | None, size: float
    ) -> None:
        self._mech, self._hand, self._position, self._rotation, self._size = mech, hand, position, rotation, size

    def error(self, q: np.ndarray) -> np.ndarray:
        """(3,) or (6,): what is missing."""
        pose = lw.frame_pose(self._mech, q, self._hand.link)
        missing = self._position - pose[:3, :3] @ self._hand.point - pose[:3, 3]
        if self._rotation is None:
            return missing
        angle = Rotation.from_matrix(self._rotation @ pose[:3, :3].T).as_rotvec()
        return np.concatenate([missing, self._size * angle])

    def split(self, error: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Metres, radians."""
        return error[:3], error[3:] / self._size

    def jacobian(self, q: np.ndarray) -> np.ndarray:
        """(3, nv) or (6, nv): how the hand moves."""
        whole_jacobian = lw.jacobian(self._mech, q, self._hand.link, frame="world_aligned")
        arm = lw.frame_pose(self._mech, q, self._hand.link)[:3, :3] @ self._hand.point
        linear = whole_jacobian[3:] + np.cross(whole_jacobian[:3], arm, axis=0)
        return linear if self._rotation is None else np.concatenate([linear, self._size * whole_jacobian[:3]])


def _step(mech: lw.Mechanism, q: np.ndarray, jacobian: np.ndarray, error: np.ndarray, size: float) -> np.ndarray:
    """(nv,): the damped step along what loops and limits allow."""
    basis = lw.constraints.null_space(mech, q)
    damping = size * min(DAMPING, 0.1 * float(np.linalg.norm(error)) / size)  # none where the goal is reached
    for _ in range(mech.nv):
        along = jacobian @ basis
        damped = along @ along.T + (damping + 1e-7 * size) ** 2 * np.eye(len(error))
        step = basis @ (along.T @ np.linalg.solve(damped, error))
        stuck = _at_limits(mech, q, step)
        if not stuck.any() or not basis.shape[1]:
            return step
        # Without the motions of joints that are at their limits and would leave them.
        _, sizes, rows = np.linalg.svd(basis[stuck])
        basis = basis @ rows[int((sizes > 1e-9).sum()) :].T
    return np.zeros(mech.nv)


def _at_limits(mech: lw.Mechanism, q: np.ndarray, step: np.ndarray) -> np.ndarray:
    """(nv,) of bool: velocities of joints that are at a limit and would leave it."""
    stuck = np.zeros(mech.nv, dtype=bool)
    for joint, at, columns in _limited(mech):
        low, high = mech.limits.lower[at], mech.limits.upper[at]
        if not mech.bodies[mech.body_index(joint)].kind.rates_are_velocities:
            continue
        stuck[columns] = ((q[at] <= low + 1e-9) & (step[columns] < 0.0)) | (
            (q[at] >= high - 1e-9) & (step[columns] > 0.0)
        )
    return stuck


def _limited(mech: lw.Mechanism) -> list[tuple[str, slice, slice]]:
    movable = (body.joint for body in mech.bodies if not body.mimic)
    return [(joint, mech.q_index(joint), mech.v_index(joint)) for joint in movable]


def _best_along(
    mech: lw.Mechanism, q: np.ndarray, step: np.ndarray, goal: _Goal, cost: float
) -> tuple[np.ndarray, np.ndarray] | None:
    """(q, error) after the step, or after a part of it that leads nearer; None where there is none."""
    step = step * min(1.0, 4.0 * LONGEST / max(float(np.abs(step).max()), 1e-300))
    for _ in range(HALVINGS):
        there = closed(mech, within_limits(mech, lw.integrate(mech, q, step, 1.0)))
        if there is not None:
            error = goal.error(there)
            if float(error @ error) < cost * (1.0 - 1e-6):
                return there, error
        step = 0.5 * step
    return None


def within_limits(mech: lw.Mechanism, q: np.ndarray) -> np.ndarray:
    """q with the coordinates of joints at their limits that would be beyond."""
    return np.clip(q, mech.limits.lower, mech.limits.upper)


def closed(mech: lw.Mechanism, q: np.ndarray) -> np.ndarray | None:
    """q with its loops closed, on the branch that it is on; None where that is too far away."""
    try:
        return lw.constraints.project(mech, q, np.zeros(mech.nv), largest=0.5)[0]
    except lw.constraints.AssemblyError:
        return None
