"""Whole turns of revolute joints: choose among the equivalent angles within limits."""

from __future__ import annotations

import numpy as np

from ..dynamics.states import Float64Array
from ..mechanism import Mechanism
from ..mechanism.parts import Coupling

WHOLE = 2.0 * np.pi


def wrapped(mech: Mechanism, q: Float64Array, bounds: np.ndarray, preferred: np.ndarray | None) -> Float64Array:
    """(n, nq): q with revolute joints shifted by whole turns, as near as possible to ``preferred`` (n, nq) within
    ``bounds`` (2, nq). None prefers the ``middle`` of the bounds.
    """
    at = _revolute_coordinates(mech)
    angles, (lower, upper) = q[:, at], bounds[:, at]
    if preferred is None:
        wanted = middle(bounds[:, at])
    else:
        wanted = preferred[:, at]
    least, most = np.ceil((lower - angles) / WHOLE), np.floor((upper - angles) / WHOLE)
    rotations = np.clip(np.rint((wanted - angles) / WHOLE), least, most)
    moved = q.copy()
    moved[:, at] = np.where(rotations == 0.0, angles, np.clip(angles + WHOLE * rotations, lower, upper))
    return moved


def middle(bounds: np.ndarray) -> np.ndarray:
    """(n,): centres of bounds (2, n); without finite bounds zero, clipped to the bounds."""
    bounded = np.isfinite(bounds).all(axis=0)
    return np.clip(0.5 * np.where(bounded, bounds, 0.0).sum(axis=0), *bounds)


def _revolute_coordinates(mech: Mechanism) -> list[int]:
    """Indices in q of revolute joints whose whole turns affect no other joint and no coupling."""
    felt = {body.mimic.joint for body in mech.bodies if body.mimic}
    felt |= {joint for loop in mech.loops if isinstance(loop, Coupling) for joint, _ in loop.ratios}
    hinged = [body for body in mech.bodies if body.kind.hinge and not body.mimic]
    return [mech.q_index(body.joint).start for body in hinged if body.joint not in felt]
