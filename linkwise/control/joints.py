"""The controller everyone begins with: springs and dampers in the joints, gravity held; and what motors can do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..dynamics.trees import difference, gravity_force
from ..mechanism import Mechanism, require_mechanism


@dataclass(frozen=True, eq=False)
class JointFeedback:
    """tau = kp (target - q) - kd v, and gravity: a controller ``control(t, q, v) -> tau``.

    The way from q to the target is that of ``difference``: along tangent directions, the short way round for joints
    that turn freely.
    """

    mech: Mechanism
    target: np.ndarray
    kp: np.ndarray
    kd: np.ndarray
    gravity: bool

    def __call__(self, t, q, v):
        tau = self.kp * difference(self.mech, q, self.target) - self.kd * v
        return tau + gravity_force(self.mech, q) if self.gravity else tau


def joint_feedback(mech: Mechanism, target, kp: Any = 0.0, kd: Any = 0.0, gravity: bool = True) -> JointFeedback:
    """Proportional and derivative control of every joint towards the configuration ``target`` (nq,).

    kp, kd    stiffness and damping: one number, or one for each of the nv coordinates; not negative
    gravity   add the joint forces that hold the mechanism against gravity where it is
    """
    require_mechanism(mech)
    target = np.asarray(target, dtype=float)
    if target.shape != (mech.nq,) or not np.isfinite(target).all():
        raise ValueError(f"target must be {mech.nq} finite numbers, one configuration of {mech.name!r}, got {target!r}")
    gains = []
    for name, gain in (("kp", kp), ("kd", kd)):
        values = np.asarray(gain, dtype=float)
        if values.shape not in ((), (mech.nv,)) or not np.all(values >= 0.0) or not np.isfinite(values).all():
            raise ValueError(f"{name} must be a number or {mech.nv} of them, finite and not negative, got {gain!r}")
        gains.append(np.broadcast_to(values, (mech.nv,)))
    return JointFeedback(mech, target, gains[0], gains[1], gravity)


@dataclass(frozen=True, eq=False)
class Saturated:
    """A controller ``control(t, q, v) -> tau`` whose forces go no further than ``limit`` (nv,) in either direction."""

    control: Callable[..., Any]
    limit: np.ndarray

    def __call__(self, t, q, v):
        return np.clip(self.control(t, q, v), -self.limit, self.limit)


def saturated(mech: Mechanism, control: Callable[..., Any], limit: Any = None) -> Saturated:
    """``control`` with its joint forces cut off at what the motors can do.

    limit   the largest force: one number, one for each of the nv coordinates, or None for the effort limits of the
            mechanism's own joints, as its file gives them; joints without one are not limited
    """
    require_mechanism(mech)
    if not callable(control):
        raise TypeError(f"control must be a function of (t, q, v), not {control!r}; cut an array off with np.clip")
    if limit is None:
        limit = mech.effort_limit
    values = np.asarray(limit, dtype=float)
    if values.shape not in ((), (mech.nv,)) or not np.all(values >= 0.0):
        raise ValueError(f"limit must be a number or {mech.nv} of them, not negative, got {limit!r}")
    return Saturated(control, np.broadcast_to(values, (mech.nv,)))
