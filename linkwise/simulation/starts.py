"""What motions start with: told where that is beyond limits that act, or where limits no longer do."""

from __future__ import annotations

import numpy as np

from ..compiler.store import stored
from ..dynamics.passive import Passive
from ..mechanics.elements.at_joints import Stop
from ..mechanics.elements.of_mechanism import LIMIT_DEPTH
from ..mechanics.joints.protocol import ANGLE
from ..mechanism import Limits, LimitWarning, Mechanism, warn_caller

GIVE = (
    20.0  # by how many times the depth that stops are made for they give way where robots fall and run: 0.2 rad, 2 cm
)
MOST_NAMES = 4


def warn_of_starts_beyond_limits(mech: Mechanism, q: np.ndarray) -> None:
    """One warning that names joints whose limits act and whose coordinates q (..., nq) are beyond them by more than
    stops give way, and than they are where the file itself starts: they push them back from the first moment on.  A
    mechanism tells of every joint once: motions made in many short rollouts go on where the one before has ended."""
    if not isinstance(q, np.ndarray):
        return  # on a GPU: looking at it would wait for what runs there
    beyond = []
    least = GIVE * min(LIMIT_DEPTH.values())
    inside = (q >= mech.q_lower - least) & (q <= mech.q_upper + least)
    if inside.all() and not mech.mimic_joints:  # the usual case, quickly
        return
    told = stored(mech, ("told to start beyond limits",), set)
    for joint in mech.acting.get("limits", ()):
        body, own = mech.bodies[mech.body_index(joint)], mech.place(joint).positions(q)
        limits = body.limits
        over = _beyond(limits, own)
        depths = [LIMIT_DEPTH.get(measure.of, LIMIT_DEPTH[ANGLE]) for measure in body.kind.position_measures]
        meant = np.maximum(_beyond(limits, mech.place(joint).positions(mech.initial)), 0.0)
        if joint not in told and (over > meant + GIVE * np.array(depths)).any():
            told.add(joint)
            state = np.unravel_index(int(np.argmax(over)), over.shape)
            at, bounds = own[state], (limits.lower[state[-1]], limits.upper[state[-1]])
            beyond.append(f"{joint!r} at {at:.4g}, outside {bounds[0]:.4g} .. {bounds[1]:.4g}")
    if beyond:
        more = f" and {len(beyond) - MOST_NAMES} more" if len(beyond) > MOST_NAMES else ""
        warn_caller(
            f"the motion of mechanism {mech.name!r} starts beyond limits that act, and is pushed back: "
            f"{', '.join(beyond[:MOST_NAMES])}{more}; np.clip(q, mech.q_lower, mech.q_upper) is within them",
            LimitWarning,
        )


def _beyond(limits: Limits, q: np.ndarray) -> np.ndarray:
    """By how much coordinates of a joint are beyond its limits, negative where they are within."""
    return np.maximum(np.asarray(limits.lower) - q, q - np.asarray(limits.upper))


def warn_of_limits_left_out(mech: Mechanism, passive: Passive | None) -> None:
    """One warning for a mechanism that names joints whose limits would act, and which ``passive`` has no stops for: it
    takes the place of limits too, which who only adds a spring may not mean.  An empty one says that nothing acts."""
    if passive is None or not passive.elements:
        return
    stopped = {element.joint for element in passive.elements if isinstance(element, Stop)}
    free = [repr(joint) for joint in mech.acting.get("limits", ()) if joint not in stopped]
    told: set[str] = stored(mech, ("told of limits left out",), set)
    if free and not told:
        told.update(free)
        more = f" and {len(free) - MOST_NAMES} more" if len(free) > MOST_NAMES else ""
        warn_caller(
            f"passive takes the place of limits too: those of {', '.join(free[:MOST_NAMES])}{more} of mechanism "
            f"{mech.name!r} do not act. lw.Passive.of(mech, limit_stiffness=...) has stops, mech.with_springs(...) and "
            "mech.with_damping(...) change joints and keep limits, mech.with_acting(limits=False) says that none act",
            LimitWarning,
        )
