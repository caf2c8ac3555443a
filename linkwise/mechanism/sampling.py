"""Random states brought within the limits of the joints."""

from __future__ import annotations

import numpy as np

from linkwise.mechanics.joints import QUATERNION
from linkwise.mechanism.checks import MechanismError
from linkwise.mechanism.model import Mechanism


def redraw_within_limits(
    mech: Mechanism, rng: np.random.Generator, q: np.ndarray, v: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(q, v) within all position and velocity limits, including those of mimic joints: redrawn uniformly in finite
    ranges, and mirrored at one-sided limits.
    """
    lower, upper, fastest = common_limits(mech)
    mimicked = {body.mimic.joint for body in mech.bodies if body.mimic}
    for name, a, b, unit in zip(mech.coordinates.names("q"), lower, upper, mech.coordinates.measures("q"), strict=True):
        if a > b:
            whose = f"{name!r} and of what mimics it" if name in mimicked else repr(name)
            raise MechanismError(f"no state is within the limits of {whose}: {a:g} exceeds {b:g}; see mech.with_limits")
        if unit == QUATERNION and (np.isfinite(a) or np.isfinite(b)):
            raise MechanismError(f"{name!r} has limits, but is a number of a quaternion: see mech.with_limits")
    bounded = np.isfinite(lower) & np.isfinite(upper)
    q = np.where(q < lower, 2.0 * np.where(np.isfinite(lower), lower, 0.0) - q, q)
    q = np.where(q > upper, 2.0 * np.where(np.isfinite(upper), upper, 0.0) - q, q)
    q[..., bounded] = rng.uniform(lower[bounded], upper[bounded], q[..., bounded].shape)
    limited = np.isfinite(fastest)
    v[..., limited] = rng.uniform(-1.0, 1.0, v[..., limited].shape) * fastest[limited]
    return q, v


def common_limits(mech: Mechanism) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(nq,), (nq,), (nv,): lower, upper and velocity limits that keep mimic joints within their own limits too."""
    lower, upper, fastest = mech.limits.lower.copy(), mech.limits.upper.copy(), mech.limits.velocity.copy()
    for body in mech.bodies:
        if body.mimic is None:
            continue
        entry, bounds = mech.coordinates.place(body.joint), (body.limits.lower[0], body.limits.upper[0])
        if entry.ratio == 0.0:
            if not bounds[0] <= entry.offset <= bounds[1]:
                raise MechanismError(
                    f"no state is within the limits of {body.joint!r}: it stays at {entry.offset:g}, and may go from "
                    f"{bounds[0]:g} to {bounds[1]:g}; see mech.with_limits"
                )
            continue
        low, high = sorted(map(float, entry.q_at(bounds)))
        at, rate = entry.q_index, entry.v_index
        lower[at], upper[at] = np.maximum(lower[at], low), np.minimum(upper[at], high)
        fastest[rate] = np.minimum(fastest[rate], body.limits.velocity[0] / abs(entry.ratio))
    return lower, upper, fastest
