"""Messages about configurations beyond position limits, for planned paths and targets."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..mechanism import Body, Mechanism
from ..mechanism.scales import scales

MOST_NAMES = 4
ROUNDING = 1e-9  # rad, or of the mechanism's length


def beyond_limits(mech: Mechanism, q: np.ndarray, counts: Callable[[Body], bool] = lambda body: True) -> str:
    """Joints whose limits the configurations (n, nq) exceed, among those selected, and by how much; empty if none."""
    beyond = []
    for body in filter(counts, mech.bodies):
        coordinates, limits = mech.coordinates.place(body.joint).positions(q), body.limits
        over = np.maximum(np.asarray(limits.lower) - coordinates, coordinates - np.asarray(limits.upper))
        over = over / scales(mech).of_kind(body.kind, "q")
        if over.size and over.max() > ROUNDING:
            row, k = np.unravel_index(int(np.argmax(over)), over.shape)
            beyond.append(
                f"{body.joint!r} to {coordinates[row, k]:.4g}, outside {limits.lower[k]:.4g} .. {limits.upper[k]:.4g}"
            )
    more = f" and {len(beyond) - MOST_NAMES} more" if len(beyond) > MOST_NAMES else ""
    return ", ".join(beyond[:MOST_NAMES]) + more
