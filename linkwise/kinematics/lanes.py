"""Iterations under way in a search for configurations: of which target, from where, how far they have come."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..mechanics.algorithms.inverse_kinematics import PROGRESS

NEAR = 0.1  # radians, or of the mechanism's length: what is nearer after a chunk is likely to converge
FALLING, PATIENT_FALLING = 0.7, 0.999  # of the error before a chunk: what has fallen less is stuck, in most cases
NEW = np.array([np.inf, 0.0, FALLING, NEAR])  # error, steps, and the bounds of the error, of an attempt


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
        """These may take long."""
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
