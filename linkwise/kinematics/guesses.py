"""Initial guesses: random configurations drawn once, from which the nearest to each target are taken.

Distances are those of the numbers of targets: positions, rotation matrices, directions.  A product of matrices compares
all targets of a batch with a block of configurations; each attempt takes another block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..compiler.store import stored
from ..dynamics.trees import random_state
from ..mechanics.algorithms.inverse_kinematics import CenterOfMassGoal, Goal
from ..mechanism import Mechanism
from ..mechanism.scales import scales
from .targets import Goals, numbers_at

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
    return stored(mech, key, lambda: _drawn(mech, goals, limits, seed))


def _drawn(mech: Mechanism, goals: Goals, limits: np.ndarray, seed: int) -> Guesses:
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
    """(count, nq): uniform within ``limits`` where they are finite, within a few lengths of the mechanism where sliding
    joints have none; floating joints as in ``base`` (..., nq)."""
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
