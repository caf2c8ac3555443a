"""Checks of initial states: beyond limits that act, deep inside of the ground, or where limits no longer act."""

from __future__ import annotations

import numpy as np

from ..compiler.store import stored
from ..dynamics.compliant_contact import contact_points
from ..dynamics.passive import Passive
from ..mechanics.elements.at_joints import Stop
from ..mechanics.elements.of_mechanism import LIMIT_DEPTH, limit_depths
from ..mechanism import Limits, LimitWarning, Mechanism, PenetrationWarning, warn_caller
from ..mechanism.scales import scales

# By how many times the depth that stops are made for they give way where robots fall and run: 0.2 rad, or 2
# percent of the mechanism's length.  Motions made in many short rollouts start there.
GIVE = 20.0
# By how much of the size of what touches shapes are inside of each other where robots fall and run, at most.
DEEP = 0.1
MOST_NAMES = 4


def warn_of_starts_beyond_limits(mech: Mechanism, q: np.ndarray) -> None:
    """One warning that names joints whose limits act and whose coordinates q (..., nq) are beyond them by more than
    stops give way: they push them back from the first moment on.  What the file says of a joint is meant: it may start
    there, beyond its limits or not.  Neutral coordinates that nobody has chosen are reported where stops would not let
    the joint be at rest."""
    if not isinstance(q, np.ndarray):
        return  # on a GPU: looking at it would wait for what runs there
    least = GIVE * min(LIMIT_DEPTH.values()) * scales(mech).of_q
    inside = (q >= mech.q_lower - least) & (q <= mech.q_upper + least)
    by_default = stored(mech, ("starts beyond limits by default",), lambda: _beyond_by_default(mech))
    if inside.all() and not mech.mimic_joints and not by_default:  # the usual case, quickly
        return
    beyond = []
    for joint in mech.acting.get("limits", ()):
        limits, own = mech.bodies[mech.body_index(joint)].limits, mech.place(joint).positions(q)
        over, depths = _beyond(limits, own), _depths(mech, joint)
        far = (over > GIVE * depths) & ~_meant(mech, joint, own, GIVE * depths)
        if joint in by_default:
            far |= (over > depths) & (own == mech.place(joint).positions(mech.initial))
        if far.any():
            state = np.unravel_index(int(np.argmax(np.where(far, over, -np.inf))), over.shape)
            at, bounds = own[state], (limits.lower[state[-1]], limits.upper[state[-1]])
            beyond.append(f"{joint!r} at {at:.4g}, outside {bounds[0]:.4g} .. {bounds[1]:.4g}")
    if beyond:
        more = f" and {len(beyond) - MOST_NAMES} more" if len(beyond) > MOST_NAMES else ""
        clipped = "mech.with_initial(np.clip(mech.initial, mech.q_lower, mech.q_upper)) starts so by default"
        always = f"; {clipped}" if by_default else ""
        warn_caller(
            f"the motion of mechanism {mech.name!r} starts beyond limits that act, and is pushed back: "
            f"{', '.join(beyond[:MOST_NAMES])}{more}; np.clip(q, mech.q_lower, mech.q_upper) is within them{always}",
            LimitWarning,
        )


def warn_of_starts_in_penetration(mech: Mechanism, q: np.ndarray) -> None:
    """Warn where shapes of contacts that act are deep inside of each other in initial configurations q (..., nq): the
    pairs, how deep they are, and what to do."""
    acting = {pair.name for pair in mech.contact_pairs if mech.acts("contact", pair.name)}
    if not isinstance(q, np.ndarray) or not q.size or not acting:
        return
    parts = mech.contact_parts
    with np.errstate(all="ignore"):  # of configurations that are no numbers
        gaps = contact_points(mech, q.astype(float, copy=False), np.zeros(mech.nv)).gap.reshape(-1, len(parts))
    margins = np.array([pair.law.margin for pair in parts])
    sizes = np.array([mech._contact_scales[pair.name][0] for pair in parts])
    depths = np.nan_to_num(np.max(margins - gaps, axis=0, initial=0.0))
    deepest: dict[str, float] = {}
    for pair, depth, size in zip(parts, depths.tolist(), sizes.tolist(), strict=True):
        if depth > DEEP * size and pair.name in acting:
            deepest[pair.name] = max(depth, deepest.get(pair.name, 0.0))
    if not deepest:
        return
    named = [f"{name!r} by {depth:.3g}" for name, depth in sorted(deepest.items(), key=lambda one: -one[1])]
    more = f" and {len(named) - MOST_NAMES} more" if len(named) > MOST_NAMES else ""
    moving = {pair.name for pair in mech.contact_pairs if min(_carriers(mech, pair.shapes)) >= 0}
    apart = "" if moving.isdisjoint(deepest) else "; mech.without_contact(shape) lets shapes of links overlap"
    warn_caller(
        f"the motion of mechanism {mech.name!r} starts with shapes inside of each other, and they are pushed apart: "
        f"{', '.join(named[:MOST_NAMES])}{more}; lw.place_on_ground(mech, q) lifts a free base until it just touches"
        f"{apart}",
        PenetrationWarning,
    )


def _carriers(mech: Mechanism, shapes: tuple[str, str]) -> list[int]:
    """The bodies that carry two shapes; -1 for the ground."""
    return [mech.shape(name).placed(mech)[0] for name in shapes]


def _beyond_by_default(mech: Mechanism) -> frozenset[str]:
    """Joints with limits that act, and that are beyond them in neutral, which is where they start: no file says where,
    and nobody else has."""
    found = []
    for joint in mech.acting.get("limits", ()):
        start = mech.place(joint).positions(mech.initial)
        over = _beyond(mech.bodies[mech.body_index(joint)].limits, start)
        if _leader(mech, joint) not in dict(mech.annotations.initial) and (over > _depths(mech, joint)).any():
            found.append(joint)
    return frozenset(found)


def _meant(mech: Mechanism, joint: str, own: np.ndarray, give: np.ndarray) -> np.ndarray:
    """Which coordinates of a joint are where the file, or a posture, puts it, as nearly as noise may leave them."""
    leader, known = _leader(mech, joint), mech.annotations
    places = [mech.initial] if leader in dict(known.initial) else []
    places += [mech.postures[name] for name, posture in known.postures if leader in dict(posture)]
    meant = np.zeros(own.shape, dtype=bool)
    for place in places:
        meant |= np.abs(own - mech.place(joint).positions(place)) <= give
    return meant


def _leader(mech: Mechanism, joint: str) -> str:
    """The joint that says where this one is: itself, or the one it mimics."""
    mimic = mech.bodies[mech.body_index(joint)].mimic
    return mimic.joint if mimic else joint


def _depths(mech: Mechanism, joint: str) -> np.ndarray:
    """How deep a joint is pressed into the stops of each of its coordinates, at most, by its motors."""
    return limit_depths(mech, mech.bodies[mech.body_index(joint)])


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
    if free:
        more = f" and {len(free) - MOST_NAMES} more" if len(free) > MOST_NAMES else ""
        warn_caller(
            f"passive takes the place of limits too: those of {', '.join(free[:MOST_NAMES])}{more} of mechanism "
            f"{mech.name!r} do not act. lw.Passive.of(mech, limit_stiffness=...) has stops, mech.with_springs(...) and "
            "mech.with_damping(...) change joints and keep limits, mech.with_acting(limits=False) says that none act",
            LimitWarning,
        )
