"""Motions over time: one or several of the same mechanism, played, scrubbed and repeated.  No browser here."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

import linkwise as lw

from ..configurations import Motion, mechanism_of, motions_of
from ..modes import excursion

MOST = 36  # motions beside each other
CYCLE = 2.0  # seconds, that a mode is shown to take
PER_CYCLE = 48  # configurations of a mode
SAMPLES = 400  # of paths of points


@dataclass(frozen=True)
class Clip:
    """Motions that are played together.

    motions     of one mechanism, with times of their own; each stands still before it begins and after it has ended
    source      their trajectory, which has forces; None for configurations
    """

    motions: tuple[Motion, ...]
    source: Any = None

    @property
    def label(self) -> str:
        """Label of the numbers from ``start`` to ``end``."""
        return "t (s)" if all(motion.timed for motion in self.motions) else "along the path"

    @property
    def start(self) -> float:
        return float(min(motion.t[0] for motion in self.motions))

    @property
    def end(self) -> float:
        return float(max(motion.t[-1] for motion in self.motions))

    @property
    def duration(self) -> float:
        return self.end - self.start

    def at(self, t: float) -> np.ndarray:
        """(n, nq): all configurations at a time."""
        return np.array([motion.at(np.array([_clamp_time(motion, t)]))[0] for motion in self.motions])

    def velocities(self, t: float) -> np.ndarray:
        """(n, nv): all velocities at a time."""
        return np.array([motion.velocity(_clamp_time(motion, t)) for motion in self.motions])

    def path(self, link: str, point: np.ndarray, which: int = 0) -> np.ndarray:
        """(k, 3): path of a point of a link in one of the motions."""
        motion = self.motions[which]
        times = np.linspace(motion.t[0], motion.t[-1], SAMPLES) if len(motion.t) > 1 else motion.t
        poses = lw.frame_pose(motion.mech, motion.at(times), link)
        return poses[:, :3, :3] @ point + poses[:, :3, 3]

    def moments(self, count: int) -> np.ndarray:
        """(n, nq): configurations of all motions, each at ``count`` times."""
        return np.concatenate([motion.at(np.linspace(motion.t[0], motion.t[-1], count)) for motion in self.motions])

    @cached_property
    def forces(self) -> dict[str, np.ndarray]:
        """(m, n_links, 6) each, [moment; force] at the links' origins in link axes: "reactions" that joints exert on
        links, "wrenches" from outside.  Empty for configurations."""
        if self.source is None or len(self.motions) != 1:
            return {}
        forces = {"reactions": np.asarray(self.source.joint_wrenches)}
        if self.source.wrenches is not None:
            forces["wrenches"] = np.asarray(self.source.wrenches)
        return forces

    def sample(self, t: float) -> int:
        """The last sample that is not later."""
        times = self.motions[0].t
        return int(np.clip(np.searchsorted(times, t, side="right") - 1, 0, len(times) - 1))


def _clamp_time(motion: Motion, t: float) -> float:
    return float(np.clip(t, motion.t[0], motion.t[-1]))


def clip_of(motion: Any, q: Any = None, t: Any = None) -> Clip:
    """The clip of a trajectory (a batch too), of several trajectories, or of configurations of a mechanism.

    q of a mechanism is (m, nq), or (..., m, nq) as ``lw.rollout`` gives it, with the times t (m,) of its rows.
    """
    if not isinstance(motion, (lw.Mechanism, list, tuple)):
        mechanism_of(motion)
    # Those that there is room for, evenly chosen.
    motions, _ = motions_of(motion, q, t, lambda n: np.linspace(0, n - 1, min(n, MOST)).astype(int).tolist())
    alone = not isinstance(motion, (lw.Mechanism, list, tuple, lw.linkages.RangeOfMotion)) and np.ndim(motion.q) <= 2
    return Clip(tuple(motions), motion if alone else None)


def clip_of_mode(model: Any, number: int) -> Clip:
    """A mode of a linear model as a motion: one cycle, at a pace that can be seen, loops closed."""
    q = excursion(model, number, np.linspace(0.0, 2.0 * np.pi, PER_CYCLE + 1))
    return Clip((Motion(model.mechanism, np.linspace(0.0, CYCLE, PER_CYCLE + 1), q),))


class Player:
    """The clock of a clip."""

    def __init__(self, clip: Clip) -> None:
        self.clip = clip
        self.time = clip.start
        self.playing = False
        self.repeats = True
        self.speed = 1.0

    def advance(self, seconds: float) -> bool:
        """Advance by real time; returns whether the picture changes."""
        if not self.playing or self.clip.duration <= 0.0:
            return False
        self.time += self.speed * seconds
        past = self.time - self.clip.start
        if 0.0 <= past <= self.clip.duration:
            return True
        if self.repeats:
            self.time = self.clip.start + past % self.clip.duration
        else:
            self.time = float(np.clip(self.time, self.clip.start, self.clip.end))
            self.playing = False
        return True

    def seek(self, t: float) -> None:
        """Go to a time of the clip."""
        self.time = float(np.clip(t, self.clip.start, self.clip.end))

    def play(self) -> None:
        """Go on; start again at the end."""
        if self.time >= self.clip.end:
            self.time = self.clip.start
        self.playing = True
