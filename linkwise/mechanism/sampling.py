"""Random states brought within the limits of the joints."""

from __future__ import annotations

import numpy as np

from linkwise.mechanics.joints import QUATERNION
from linkwise.mechanism.checks import MechanismError
from linkwise.mechanism.model import Mechanism


def within_range_of(
    mech: Mechanism, rng: np.random.Generator, q: np.ndarray, v: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(q, v) within the limits of position and velocity: drawn again, uniformly, where a range is finite, and mirrored
    at a limit that stands alone.  Joints that mimic others go where these take them."""
    lower, upper = mech.q_lower, mech.q_upper
    _refuse_strange_limits(mech, lower, upper)
    bounded = np.isfinite(lower) & np.isfinite(upper)
    q = np.where(q < lower, 2.0 * np.where(np.isfinite(lower), lower, 0.0) - q, q)
    q = np.where(q > upper, 2.0 * np.where(np.isfinite(upper), upper, 0.0) - q, q)
    q[..., bounded] = rng.uniform(lower[bounded], upper[bounded], q[..., bounded].shape)
    limited = np.isfinite(mech.v_limit)
    v[..., limited] = rng.uniform(-1.0, 1.0, v[..., limited].shape) * mech.v_limit[limited]
    return q, v


def _refuse_strange_limits(mech: Mechanism, lower: np.ndarray, upper: np.ndarray) -> None:
    measures = [measure.of for body in mech.bodies if not body.mimic for measure in body.kind.measures("q")]
    for name, a, b, of in zip(mech.coordinate_names("q"), lower, upper, measures, strict=True):
        if a > b:
            raise MechanismError(
                f"no state is within the limits of {name!r}: {a:g} exceeds {b:g}; see mech.with_limits"
            )
        if of == QUATERNION and (np.isfinite(a) or np.isfinite(b)):
            raise MechanismError(f"{name!r} has limits, but is a number of a quaternion: see mech.with_limits")
