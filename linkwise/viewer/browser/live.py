"""A simulation that runs while it is looked at, with a hand that pulls.  No browser here."""

from __future__ import annotations

import numpy as np

import linkwise as lw

from .dragging import Hand

STEP = 1e-3  # seconds
STIFF = 2.0 * np.pi * 1.5  # rad/s: how fast the hand would swing the whole mechanism
LONGEST = 0.05  # seconds that a picture is late and the simulation still catches up


class Live:
    """A mechanism that moves by itself.

    q, v     its state
    pull     (hand, where it is wanted): a spring with a damper between the two; None for no hand
    failed   why it stopped, or nothing
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
        self._late = min(self._late + seconds, LONGEST)
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
        """(n_links, 6): what the hand does, in link frames."""
        pushes = np.zeros((self.mech.n_links, 6))
        if self.pull is None:
            return pushes
        hand, wanted = self.pull
        frame = self.mech.frame(hand.link)
        if frame.body < 0:
            return pushes
        pose = lw.link_poses(self.mech, self.q)[frame.body]
        point = frame.rotation @ hand.point + frame.position
        rate = lw.link_velocities(self.mech, self.q, self.v)[frame.body]
        damping = 2.0 * self.stiffness / STIFF
        local = pose[:3, :3].T @ (wanted - pose[:3, :3] @ point - pose[:3, 3])
        force = self.stiffness * local - damping * (rate[3:] + np.cross(rate[:3], point))
        pushes[frame.body] = np.concatenate([np.cross(point, force), force])
        return pushes
