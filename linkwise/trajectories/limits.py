"""Paths that leave the limits of joints are planned as asked, and told."""

from __future__ import annotations

import numpy as np

from ..mechanism import LimitWarning, Mechanism, warn_caller

MOST_NAMES = 4
ROUNDING = 1e-9


def has_limits(mech: Mechanism) -> bool:
    """Whether a joint has a limit of position."""
    return any(np.isfinite([*body.limits.lower, *body.limits.upper]).any() for body in mech.bodies)


def warn_beyond_limits(mech: Mechanism, q: np.ndarray) -> None:
    """One warning that names joints which configurations (n, nq) of a path take beyond their limits, and how far."""
    beyond = []
    for body in mech.bodies:
        own, limits = mech.place(body.joint).positions(q), body.limits
        over = np.maximum(np.asarray(limits.lower) - own, own - np.asarray(limits.upper))
        if over.size and over.max() > ROUNDING:
            row, k = np.unravel_index(int(np.argmax(over)), over.shape)
            beyond.append(
                f"{body.joint!r} to {own[row, k]:.4g}, outside {limits.lower[k]:.4g} .. {limits.upper[k]:.4g}"
            )
    if beyond:
        more = f" and {len(beyond) - MOST_NAMES} more" if len(beyond) > MOST_NAMES else ""
        warn_caller(
            f"the path of mechanism {mech.name!r} leaves joint limits: {', '.join(beyond[:MOST_NAMES])}{more}; it is "
            "planned as asked: give other configurations, or other limits (mech.with_limits)",
            LimitWarning,
        )
