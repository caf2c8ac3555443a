"""Friction of contacts in methods that cannot follow it: what it should hold slips, which is told."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..dynamics.compliant_contact import contact_points
from ..mechanism import Mechanism, MechanismWarning, warn_caller

INSIDE = 0.9  # of the most that friction can be: below it dry friction would hold
NOTED = 10.0  # slip speeds: the mean over the time inside the cone from which on slip is told


def rubs(mech: Mechanism) -> bool:
    """Whether friction of contacts acts."""
    return any(pair.law.friction > 0.0 and mech.acts("contact", pair.name) for pair in mech.contact_pairs)


def warn_of_slip(mech: Mechanism, method: str, t: np.ndarray, q: np.ndarray, v: np.ndarray) -> None:
    """One warning where contacts of an explicit motion (m,), (m, ..., nq), (m, ..., nv) slip although their friction is
    inside its cone, because it is no steeper than such methods can follow (``ContactLaw.damping``)."""
    if len(t) < 2 or not rubs(mech):
        return
    pairs = mech.contact_parts
    friction, damping, slow = (
        np.array([getattr(pair.law, name) for pair in pairs]) for name in ("friction", "damping", "slip_speed")
    )
    points = contact_points(mech, q, v)
    pressed = np.sum(points.force * points.normal, axis=-1)
    most = friction * pressed
    acts = np.array([mech.acts("contact", pair.name) for pair in pairs])
    with np.errstate(divide="ignore", invalid="ignore"):
        used = np.linalg.norm(points.force - pressed[..., None] * points.normal, axis=-1) / most
        holds = acts & (most > 0.0) & (used < INSIDE)
        slip = np.where(holds, used / np.sqrt(1.0 - used**2) * np.hypot(slow, most / damping), 0.0)
    weights = _weights(t).reshape(-1, *[1] * (slip.ndim - 1))
    distance, time = (np.sum(weights * x, axis=0) for x in (slip, holds))
    too_fast = distance > NOTED * slow * time
    if not too_fast.any():
        return
    at = np.unravel_index(int(np.argmax(np.where(too_fast, distance, 0.0))), distance.shape)
    pair = pairs[at[-1]]
    warn_caller(
        f"contact {pair.name!r} of mechanism {mech.name!r} slipped by {distance[at]:.2g} m in {time[at]:.2g} s, at up "
        f"to {slip.max(axis=0)[at]:.2g} m/s, although its friction is inside its cone: method "
        f"{method!r} takes contact explicitly, with friction of no more than {pair.law.damping:.3g} N s/m, and what it "
        "should hold creeps; implicit methods let it hold: method='radau' or 'semi_implicit'",
        MechanismWarning,
    )


def _weights(t: np.ndarray) -> Any:
    """(m,): of the trapezoidal rule."""
    steps = np.diff(t)
    return 0.5 * (np.append(steps, 0.0) + np.append(0.0, steps))
