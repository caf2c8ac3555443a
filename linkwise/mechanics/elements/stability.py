"""Stability limit of explicit steps: the largest growth per step of small motions about the initial configuration,
with its springs, dampers and servos.

With M the mass matrix, K and B the stiffness and damping of all laws, a method makes of a small motion (u, w) one step
later the motion G (u, w); if G has an eigenvalue beyond the unit circle, motions grow that should not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...mechanism import Mechanism
from ..algorithms.integration import Method, Tableau
from .law import Acting
from .of_mechanism import mobility
from .steps import implicit_share

GROWTH = 1e-3  # of a motion in one step, beyond which steps are too long
SHORTER = 0.9  # by which steps are made shorter until they would do


@dataclass(frozen=True)
class SmallMotions:
    """M^-1, K and B of a mechanism where it starts; (nv, nv) each."""

    mobility: np.ndarray
    stiffness: np.ndarray
    damping: np.ndarray

    @classmethod
    def of(cls, mech: Mechanism, acting: Acting) -> SmallMotions:
        """The linear model without contact, which has a step limit of its own."""
        stiffness, damping = np.zeros((mech.nv, mech.nv)), np.zeros((mech.nv, mech.nv))
        for law in acting.laws:
            law.add_linear(mech, stiffness, damping)
        return cls(mobility(mech), stiffness, damping)

    def longest_step(self, method: Method, step: float) -> float:
        """``step``, shortened until no motion grows."""
        if not (self.stiffness.any() or self.damping.any()):
            return step
        while self.growth(method, step) > 1.0 + GROWTH:
            step *= SHORTER
        return step

    def growth(self, method: Method, h: float) -> float:
        """The largest eigenvalue of G."""
        n = len(self.mobility)
        by_u, by_w = -self.mobility @ self.stiffness, -self.mobility @ self.damping
        if isinstance(method, Tableau):
            matrix = np.block([[np.zeros((n, n)), np.eye(n)], [by_u, by_w]])
            step = method.advance(np.eye(2 * n), h, lambda _, x: matrix @ x)
        else:
            share = implicit_share(method)
            solve = np.linalg.inv(np.eye(n) + (share or 0.0) * h * self.mobility @ np.diag(self.damping.diagonal()))
            u, w = np.split(np.eye(2 * n), 2)
            step = np.vstack(
                method.advance(u, w, h, lambda _, u, w: solve @ (by_u @ u + by_w @ w), lambda u, w, h: (u + h * w, w))
            )
        return float(np.abs(np.linalg.eigvals(step)).max())
