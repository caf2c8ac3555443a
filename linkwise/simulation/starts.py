"""Where motions start: told where that is beyond limits that act."""

from __future__ import annotations

import numpy as np

from ..mechanism import LimitWarning, Mechanism, warn_caller

BEYOND = 1e-6  # rad or m: what is less beyond a limit is rounding
MOST_NAMES = 4


def warn_of_starts_beyond_limits(mech: Mechanism, q: np.ndarray) -> None:
    """One warning that names joints whose limits act and whose coordinates q (..., nq) are beyond them: stops push
    them back from the first moment on."""
    if not isinstance(q, np.ndarray):
        return  # on a GPU: looking at it would wait for what runs there
    beyond = []
    inside = (q >= mech.q_lower - BEYOND) & (q <= mech.q_upper + BEYOND)
    if inside.all() and not mech.mimic_joints:  # the usual case, quickly
        return
    for joint in mech.acting.get("limits", ()):
        limits, own = mech.bodies[mech.body_index(joint)].limits, mech.place(joint).positions(q)
        over = np.maximum(np.asarray(limits.lower) - own, own - np.asarray(limits.upper))
        if over.size and over.max() > BEYOND:
            state = np.unravel_index(int(np.argmax(over)), over.shape)
            at, bounds = own[state], (limits.lower[state[-1]], limits.upper[state[-1]])
            beyond.append(f"{joint!r} at {at:.4g}, outside {bounds[0]:.4g} .. {bounds[1]:.4g}")
    if beyond:
        more = f" and {len(beyond) - MOST_NAMES} more" if len(beyond) > MOST_NAMES else ""
        warn_caller(
            f"the motion of mechanism {mech.name!r} starts beyond limits that act, and is pushed back: "
            f"{', '.join(beyond[:MOST_NAMES])}{more}; mech.with_acting(limits=False) switches limits off",
            LimitWarning,
        )
