"""Dragging: a hand pulls a point of a link to a target, in place or in a running simulation.  No browser here.

The mechanism follows as far as it can, its loops closed: by Gauss-Newton steps along the motions that loops allow,
damped where these are nearly singular, each followed by a projection onto the loops.  Joints at their limits stand
still.  The configuration changes continuously from picture to picture: an unreachable target is approached without
jumps.
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
    """q, and the distances of the point (m) and the link's orientation (rad) from their targets."""

    q: np.ndarray
    distance: float
    angle: float = 0.0


@dataclass(frozen=True)
class Hand:
    """A point (3,) of a link, in the link's frame, at which a mechanism is held."""

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
    """The configuration near q, its loops closed, that brings the hand closest to ``position`` (3,).

    rotation   (3, 3): target orientation of the link; None leaves it free
    size       of the mechanism, in metres, to which distances are compared
    """
    goal = _Goal(mech, hand, np.asarray(position, dtype=float), rotation, size)
    error = goal.error(q)
    for _ in range(ROUNDS):
        cost = float(error @ error)
        if np.sqrt(cost) <= CLOSE * size:
            break
        step = _step(mech, q, goal.jacobian(q), error * min(1.0, LONGEST * size / np.sqrt(cost)), size)
        moved = _search_line(mech, q, step, goal, cost)
        if moved is None:
            break
        q, error = moved
    error = goal.error(q)
    return Reached(q, float(np.linalg.norm(error[:3])), float(np.linalg.norm(error[3:] / size)))


class _Goal:
    """The target of the hand.  Errors are in metres, angles times the size of the mechanism."""

    def __init__(
        self, mech: lw.Mechanism, hand: Hand, position: np.ndarray, rotation: np.ndarray | None, size: float
    ) -> None:
        self._mech, self._hand, self._position, self._rotation, self._size = mech, hand, position, rotation, size

    def error(self, q: np.ndarray) -> np.ndarray:
        """(3,) or (6,): from the hand to the target."""
        pose = lw.frame_pose(self._mech, q, self._hand.link)
        offset = self._position - pose[:3, :3] @ self._hand.point - pose[:3, 3]
        if self._rotation is None:
            return offset
        angle = Rotation.from_matrix(self._rotation @ pose[:3, :3].T).as_rotvec()
        return np.concatenate([offset, self._size * angle])

    def jacobian(self, q: np.ndarray) -> np.ndarray:
        """(3, nv) or (6, nv): rates of the hand by joint velocities."""
        jacobian = lw.jacobian(self._mech, q, self._hand.link, frame="world_aligned")
        arm = lw.frame_pose(self._mech, q, self._hand.link)[:3, :3] @ self._hand.point
        linear = jacobian[3:] + np.cross(jacobian[:3], arm, axis=0)
        return linear if self._rotation is None else np.concatenate([linear, self._size * jacobian[:3]])


def _step(mech: lw.Mechanism, q: np.ndarray, jacobian: np.ndarray, error: np.ndarray, size: float) -> np.ndarray:
    """(nv,): the damped step along the motions that loops and limits allow."""
    basis = lw.constraints.null_space(mech, q)
    damping = size * min(DAMPING, 0.1 * float(np.linalg.norm(error)) / size)  # none where the goal is reached
    for _ in range(mech.nv):
        along = jacobian @ basis
        damped = along @ along.T + (damping + 1e-7 * size) ** 2 * np.eye(len(error))
        step = basis @ (along.T @ np.linalg.solve(damped, error))
        stuck = np.zeros(mech.nv, dtype=bool)  # velocities of joints that would leave their limits
        for body in mech.bodies:
            if not body.mimic and body.kind.rates_are_velocities:
                at, columns = mech.q_index(body.joint), mech.v_index(body.joint)
                below, above = q[at] <= mech.limits.lower[at] + 1e-9, q[at] >= mech.limits.upper[at] - 1e-9
                stuck[columns] = (below & (step[columns] < 0.0)) | (above & (step[columns] > 0.0))
        if not stuck.any() or not basis.shape[1]:
            return step
        # Without the motions of joints that are at their limits and would leave them.
        _, sizes, rows = np.linalg.svd(basis[stuck])
        basis = basis @ rows[int((sizes > 1e-9).sum()) :].T
    return np.zeros(mech.nv)


def _search_line(
    mech: lw.Mechanism, q: np.ndarray, step: np.ndarray, goal: _Goal, cost: float
) -> tuple[np.ndarray, np.ndarray] | None:
    """(q, error) after the step, or after a part of it that reduces the error; None if none does."""
    step = step * min(1.0, 4.0 * LONGEST / max(float(np.abs(step).max()), 1e-300))
    for _ in range(HALVINGS):
        there = closed(mech, clip_to_limits(mech, lw.integrate(mech, q, step, 1.0)))
        if there is not None:
            error = goal.error(there)
            if float(error @ error) < cost * (1.0 - 1e-6):
                return there, error
        step = 0.5 * step
    return None


def clip_to_limits(mech: lw.Mechanism, q: np.ndarray) -> np.ndarray:
    """q with coordinates beyond their limits set to these."""
    return np.clip(q, mech.limits.lower, mech.limits.upper)


def closed(mech: lw.Mechanism, q: np.ndarray) -> np.ndarray | None:
    """q with its loops closed, on its own branch; None if that is too far away."""
    try:
        return lw.constraints.project(mech, q, np.zeros(mech.nv), largest=0.5)[0]
    except lw.constraints.AssemblyError:
        return None


STEP = 1e-3  # seconds
STIFF = 2.0 * np.pi * 1.5  # rad/s: how fast the hand would swing the whole mechanism
LATEST = 0.05  # seconds that a picture is late and the simulation still catches up


class Live:
    """A running simulation.

    q, v     its state
    pull     (hand, target): a spring with a damper between the two; None without a hand
    failed   cause of the end, or ""
    """

    def __init__(self, mech: lw.Mechanism, q: np.ndarray, v: np.ndarray | None = None, step: float | None = None):
        self.mech, self.q, self.v = mech, np.array(q), np.zeros(mech.nv) if v is None else np.array(v)
        self.step = min(step or mech.metadata.timestep or STEP, STEP)
        self.pull: tuple[Hand, np.ndarray] | None = None
        self.failed = ""
        self.time = 0.0
        self.stiffness = max(float(mech.parameters.masses.sum()), 1e-3) * STIFF**2
        self._late = 0.0

    def advance(self, seconds: float) -> None:
        """Let real time pass."""
        self._late = min(self._late + seconds, LATEST)
        steps = int(self._late / self.step)
        if not steps or self.failed:
            return
        self._late -= steps * self.step
        try:
            q, v = lw.rollout(
                self.mech,
                self.q,
                self.v,
                None,
                self.step,
                steps,
                wrenches=self.wrenches(),
                final_only=True,
            )
        except lw.MechanismError as error:
            self.failed = str(error)
            return
        if not (np.isfinite(q).all() and np.isfinite(v).all()):
            self.failed = "the simulation broke down here: pull more gently, or let it go"
            return
        self.q, self.v, self.time = q, v, self.time + steps * self.step

    def wrenches(self) -> np.ndarray:
        """(n_links, 6): wrenches of the hand, in link frames."""
        pushes = np.zeros((self.mech.n_links, 6))
        if self.pull is None:
            return pushes
        hand, target = self.pull
        frame = self.mech.frame(hand.link)
        if frame.body < 0:
            return pushes
        pose = lw.link_poses(self.mech, self.q)[frame.body]
        point = frame.rotation @ hand.point + frame.position
        rate = lw.link_velocities(self.mech, self.q, self.v)[frame.body]
        damping = 2.0 * self.stiffness / STIFF
        local = pose[:3, :3].T @ (target - pose[:3, :3] @ point - pose[:3, 3])
        force = self.stiffness * local - damping * (rate[3:] + np.cross(rate[:3], point))
        pushes[frame.body] = np.concatenate([np.cross(point, force), force])
        return pushes
