"""Overdamped relaxation: the motion of a mechanism that is let go with much damping ends in a stable equilibrium.

    M dq/ds = unbalanced forces,     implicit steps  (K + M / h) dq = unbalanced forces

on the closed mechanism, K the exact stiffness.  No energy is needed: actuators, wrenches that rotate with their links
and friction have none.  Steps are as long as the forces that they lead to are foreseen by K, so that contacts are met
gently; where they are foreseen well, h grows and steps become those of Newton's method (pseudo-transient continuation,
Kelley and Keyes, SIAM Journal on Numerical Analysis 35, 1998).
"""

from __future__ import annotations

import numpy as np

from ..constraints.variations import State
from .balance import Balance, Search, balance, inertia, moved, stiffness

FIRST_STEP = 0.01  # in unit steps
LONGEST_STEP = 0.2
UNFORESEEN, FORESEEN = 0.5, 0.1  # of the forces: what a step may miss, and what lets the next be longer
COLLISION = 1.0  # the force to compare with: a step that misses more has run into something, on a saddle too
SLOWER, FASTER = 4.0, 3.0
SLOWEST = 1e14  # relative to the first: no step is short enough
WEAK = 1e-3  # of the force to compare with: what is less sets nothing in motion, at first
SETTLED = 1e-7  # of the force to compare with: Newton's method does the rest
UNSTABLE = 1e-9  # relative to the largest curvature
NO_INERTIA = 1e-9  # relative to the largest: what moves without inertia has this


def relaxed(at: State, search: Search, max_steps: int, leave_saddles: bool) -> Balance:
    """The end of the relaxation: an equilibrium, the state after ``max_steps``, or the last state near the start.

    leave_saddles   whether to go on from an equilibrium that is not stable, along its lowest curvature
    """
    here, rate, first = balance(at, search), 0.0, 0.0
    for _ in range(max_steps):
        if search.strayed(here.at):
            break
        dofs = here.dofs
        forces, curvature = dofs.T @ here.forces, dofs.T @ stiffness(here) @ dofs
        mass = _inertia(here, dofs)
        lowest, way = _lowest(curvature, mass)
        saddle = lowest < -UNSTABLE * np.abs(curvature).max(initial=0.0)
        if np.abs(here.forces[search.free]).max(initial=0.0) < SETTLED and not (saddle and leave_saddles):
            break
        if not first:
            first = rate = max(float(np.linalg.norm(forces)), WEAK) / (FIRST_STEP * np.trace(mass) / len(mass))
        if saddle and np.linalg.norm(forces) < SETTLED:
            step = FIRST_STEP * way / np.abs(way).max()
        else:
            rate = max(rate, -2.0 * lowest)  # downhill on saddles too
            step = -np.linalg.lstsq(curvature + rate * mass, forces, rcond=None)[0]
        largest = np.abs(dofs @ step).max(initial=0.0)
        there = moved(here, dofs @ step) if largest <= LONGEST_STEP else None
        if there is None:
            rate *= SLOWER
        else:
            ahead = balance(there, search)
            unbalanced, size = ahead.dofs.T @ ahead.forces, float(np.linalg.norm(forces))
            missed = abs(np.linalg.norm(unbalanced) - np.linalg.norm(forces + curvature @ step))
            if missed > UNFORESEEN * max(size, SETTLED) and (missed > COLLISION or not saddle):
                rate *= SLOWER
            else:
                here = ahead
                rate = rate / FASTER if missed < FORESEEN * size else rate
        if rate > SLOWEST * first:
            break
    return here


def _inertia(here: Balance, dofs: np.ndarray) -> np.ndarray:
    """(p, p): along the degrees of freedom."""
    matrix = dofs.T @ inertia(here) @ dofs
    return matrix + NO_INERTIA * (np.trace(matrix) or 1.0) * np.eye(len(matrix))


def _lowest(curvature: np.ndarray, inertia: np.ndarray) -> tuple[float, np.ndarray]:
    """The smallest curvature relative to the inertia, and its direction (p,)."""
    lower = np.linalg.inv(np.linalg.cholesky(inertia))
    values, vectors = np.linalg.eigh(lower @ (0.5 * (curvature + curvature.T)) @ lower.T)
    return float(values[0]), lower.T @ vectors[:, 0]
