"""The matrices of saha1999 (1)-(17) for any tree, at the mass centres in world axes, from poses and dense operators."""

from __future__ import annotations

import numpy as np
from scipy.linalg import block_diag

import linkwise as lw
from linkwise import operators as op


def to_mass_centres(mech: lw.Mechanism, q: np.ndarray) -> np.ndarray:
    """(6 n, 6 n): link velocities at the links' origins in link axes -> twists at the mass centres in world axes."""
    blocks = []
    for body, pose in zip(mech.bodies, lw.link_poses(mech, q), strict=True):
        turn = np.kron(np.eye(2), pose[:3, :3])
        shift = np.eye(6)
        shift[3:, :3] = -tilde(body.com)
        blocks.append(turn @ shift)
    return block_diag(*blocks)


def complement(mech: lw.Mechanism, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """N_l and N_d from phi* and H*."""
    centre = to_mass_centres(mech, q)
    return centre @ op.dense(op.phi.T, mech, q) @ np.linalg.inv(centre), centre @ op.dense(op.H.T, mech, q)


def generalized_mass(mech: lw.Mechanism, q: np.ndarray) -> np.ndarray:
    """M of (4), block diagonal within the links too."""
    turns = lw.link_poses(mech, q)[:, :3, :3]
    blocks = [(turn @ b.inertia @ turn.T, b.mass * np.eye(3)) for b, turn in zip(mech.bodies, turns, strict=True)]
    return block_diag(*(part for pair in blocks for part in pair))


def mass_rate(mech: lw.Mechanism, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """dM/dt of (8) and (10)."""
    turns, velocities = lw.link_poses(mech, q)[:, :3, :3], lw.link_velocities(mech, q, v)
    blocks = []
    for body, turn, velocity in zip(mech.bodies, turns, velocities, strict=True):
        blocks += [tilde(turn @ velocity[:3]) @ turn @ body.inertia @ turn.T, np.zeros((3, 3))]
    return block_diag(*blocks)


def tilde(x) -> np.ndarray:
    """x cross 1 of (2)."""
    return np.array([[0.0, -x[2], x[1]], [x[2], 0.0, -x[0]], [-x[1], x[0], 0.0]])


def rate_of_change(function, mech: lw.Mechanism, q: np.ndarray, v: np.ndarray, step: float = 2e-3):
    """d/dt of function(q(t)) along q_dot = N(q) v, from six points (error of order step^6)."""
    at = {i: function(lw.integrate(mech, q, v, i * step)) for i in (-3, -2, -1, 1, 2, 3)}
    return (45 * (at[1] - at[-1]) - 9 * (at[2] - at[-2]) + (at[3] - at[-3])) / (60 * step)
