"""Warnings of paths that leave the limits of joints; they are planned as asked."""

from __future__ import annotations

import numpy as np

from ..dynamics.position_limits import beyond_limits
from ..mechanism import LimitWarning, Mechanism, warn_caller


def has_limits(mech: Mechanism) -> bool:
    """Whether any joint has a position limit."""
    return any(np.isfinite([*body.limits.lower, *body.limits.upper]).any() for body in mech.bodies)


def warn_beyond_limits(mech: Mechanism, q: np.ndarray) -> None:
    """One warning that names joints which configurations (n, nq) of a path take beyond their limits, and how far."""
    beyond = beyond_limits(mech, q)
    if beyond:
        warn_caller(
            f"the path of mechanism {mech.name!r} leaves joint limits: {beyond}; it is planned as asked: give other "
            "configurations, or other limits (mech.with_limits)",
            LimitWarning,
        )
