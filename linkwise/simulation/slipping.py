"""Friction of contacts in methods that cannot follow it: what it should hold slips, which is told."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..dynamics.compliant_contact import contact_points
from ..mechanism import ContactPair, Mechanism, MechanismWarning, warn_caller

INSIDE = 0.9  # of the most that friction can be: below it dry friction would hold
NOTED = 10.0  # slip speeds: the mean over the time inside the cone from which on slip is told
MOST_COPIES, MOST_RECORDS = 8, 64  # of a rollout that are looked at
LONG_ENOUGH = 0.4  # sqrt(L / g) inside the cone from which on rollouts are judged


def rubs(mech: Mechanism) -> bool:
    """Whether friction of contacts acts."""
    return any(pair.law.friction > 0.0 and mech.acts("contact", pair.name) for pair in mech.contact_pairs)


def slips(mech: Mechanism, step: float | None, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(..., n): how fast contacts slide in states of an explicit motion in which their friction is inside its cone,
    because it is no steeper than such methods can follow (``ContactLaw.damping``); and where it is inside."""
    pairs = _contact_parts(mech, step)
    friction, damping, slow = (
        np.array([getattr(pair.law, name) for pair in pairs]) for name in ("friction", "damping", "slip_speed")
    )
    acts = np.array([mech.acts("contact", pair.name) for pair in pairs])
    with np.errstate(all="ignore"):  # motions that are no numbers any more slip nowhere: who asked for them sees it
        points = contact_points(mech, q, v, explicit=step or True)
        pressed = np.sum(points.force * points.normal, axis=-1)
        most = friction * pressed
        used = np.linalg.norm(points.force - pressed[..., None] * points.normal, axis=-1) / most
        inside = acts & (most > 0.0) & (used < INSIDE)
        return np.where(inside, used / np.sqrt(1.0 - used**2) * np.hypot(slow, most / damping), 0.0), inside


def _contact_parts(mech: Mechanism, step: float | None) -> tuple[ContactPair, ...]:
    """Elementary contacts as explicit steps of a length take them; None for steps that become shorter by themselves."""
    return tuple(pair.softened(step) if step else pair for pair in mech.contact_parts)


def warn_of_slip(mech: Mechanism, method: str, step: float | None, t: np.ndarray, q: np.ndarray, v: np.ndarray) -> None:
    """One warning where contacts of an explicit motion (m,), (m, ..., nq), (m, ..., nv) slip that should hold;
    ``step``: the length of steps that do not become shorter by themselves."""
    if len(t) < 2 or not rubs(mech):
        return
    slip, inside = slips(mech, step, q, v)
    slow = np.array([pair.law.slip_speed for pair in mech.contact_parts])
    weights = _weights(t).reshape(-1, *[1] * (slip.ndim - 1))
    distance, time = (np.sum(weights * x, axis=0) for x in (slip, inside))
    too_fast = distance > NOTED * slow * time
    if not too_fast.any():
        return
    at = np.unravel_index(int(np.argmax(np.where(too_fast, distance, 0.0))), distance.shape)
    how = f"slipped by {distance[at]:.2g} m in {time[at]:.2g} s, at up to {slip.max(axis=0)[at]:.2g} m/s"
    _tell(mech, method, _contact_parts(mech, step)[at[-1]], how)


def _tell(mech: Mechanism, method: str, pair: ContactPair, how: str) -> None:
    warn_caller(
        f"contact {pair.name!r} of mechanism {mech.name!r} {how}, although its friction is inside its cone: method "
        f"{method!r} takes contact explicitly, with friction of no more than {pair.law.damping:.3g} N s/m, and what it "
        "should hold creeps; implicit methods let it hold: method='semi_implicit', or 'radau' of lw.simulate",
        MechanismWarning,
    )


def warn_of_slip_in_rollout(
    mech: Mechanism, method: str, step: float, lasting: np.ndarray, q: np.ndarray, v: np.ndarray
) -> None:
    """Warn where contacts slip in an explicit rollout (..., records, nq), (..., records, nv) of steps of this length
    that takes ``lasting`` (...): on average over some of its copies and records, and over the time inside the cone,
    where that is long enough to be no transient.  Short rollouts are not judged."""
    if not rubs(mech):
        return
    pairs = _contact_parts(mech, step)
    units = np.array([mech._contact_scales[pair.name][1] for pair in pairs])
    copies = _some(q[..., 0, 0].size, MOST_COPIES)
    durations = np.abs(np.broadcast_to(lasting, q.shape[:-2])).reshape(-1)[copies]
    if not durations.sum() > LONG_ENOUGH * units.min(initial=np.inf):
        return
    times = _some(q.shape[-2], MOST_RECORDS)
    slip, inside = slips(mech, step, *(x.reshape(-1, *x.shape[-2:])[copies][:, times] for x in (q, v)))
    weights = durations[:, None, None] / len(times)
    distance, time = (np.sum(weights * x, axis=(0, 1)) for x in (slip, inside))
    slow = np.array([pair.law.slip_speed for pair in pairs])
    too_fast = (time > LONG_ENOUGH * units) & (distance > NOTED * slow * time)
    if too_fast.any():
        worst = int(np.argmax(np.where(too_fast, distance, 0.0)))
        mean, fastest = distance[worst] / time[worst], slip[..., worst].max()
        _tell(mech, method, pairs[worst], f"slipped at {mean:.2g} m/s, up to {fastest:.2g} m/s")


def _some(n: int, most: int) -> np.ndarray:
    """Up to ``most`` of n places, evenly spaced, the last among them."""
    return np.linspace(n - 1, 0, min(n, most)).astype(int)


def _weights(t: np.ndarray) -> Any:
    """(m,): of the trapezoidal rule."""
    steps = np.diff(t)
    return 0.5 * (np.append(steps, 0.0) + np.append(0.0, steps))
