"""The controller everyone begins with: springs and dampers in the joints, gravity held; and what motors can do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..dynamics.trees import difference
from ..mechanism import Mechanism, require_mechanism
from .actuation import actuated_coordinates, gravity_held


@dataclass(frozen=True, eq=False)
class JointFeedback:
    """tau = kp (target - q) - kd v, and gravity, at the actuated joints: a controller ``control(t, q, v) -> tau``.

    The way from q to the target is that of ``difference``: along tangent directions, the short way round for joints
    that rotate freely.  ``actuated`` (nv,) says which coordinates have a force, ``actuated_joints`` names their joints.
    """

    mech: Mechanism
    target: np.ndarray
    kp: np.ndarray
    kd: np.ndarray
    gravity: bool
    actuated: np.ndarray

    def __call__(self, t: float, q: Any, v: Any) -> np.ndarray:
        tau = self.kp * difference(self.mech, q, self.target) - self.kd * v
        return tau + gravity_held(self.mech, q, self.actuated) if self.gravity else tau

    @property
    def actuated_joints(self) -> tuple[str, ...]:
        """The joints that this controller drives."""
        independent = (body.joint for body in self.mech.bodies if not body.mimic)
        return tuple(joint for joint in independent if self.actuated[self.mech.v_index(joint)].any())


def joint_feedback(
    mech: Mechanism,
    target: Any,
    kp: Any = 0.0,
    kd: Any = 0.0,
    gravity: bool = True,
    actuated: Sequence[str] | np.ndarray | None = None,
) -> JointFeedback:
    """Proportional and derivative control of the actuated joints towards the configuration ``target`` (nq,).

    kp, kd     stiffness and damping: one number, or one for each of the nv coordinates; not negative; those of joints
               without motor are not used
    gravity    add the joint forces that hold the mechanism against gravity where it is: through the actuated joints
               alone, also where loops close.  What has no motor and is in no loop (a floating base) is taken as held by
               something else
    actuated   joints with a motor: their names, or nv booleans.  None: ``mech.actuated_joints``, as its file or
               ``mech.with_actuated`` says; where nothing is said, all but floating joints and, where there are
               loops, those that determine the others at ``target``, as many as there are degrees of freedom: joints
               with an effort limit first, then sliding joints between moving links (cylinders, struts), then joints of
               one degree of freedom, then others, each from the ground outwards.  ``control.actuated_joints`` names
               them
    """
    require_mechanism(mech)
    target = np.asarray(target, dtype=float)
    if target.shape != (mech.nq,) or not np.isfinite(target).all():
        raise ValueError(f"target must be {mech.nq} finite numbers, one configuration of {mech.name!r}, got {target!r}")
    driven = actuated_coordinates(mech, target, actuated)
    gains = []
    for name, gain in (("kp", kp), ("kd", kd)):
        values = np.asarray(gain, dtype=float)
        if values.shape not in ((), (mech.nv,)) or not np.all(values >= 0.0) or not np.isfinite(values).all():
            raise ValueError(f"{name} must be a number or {mech.nv} of them, finite and not negative, got {gain!r}")
        gains.append(np.where(driven, values, 0.0))
    return JointFeedback(mech, target, gains[0], gains[1], gravity, driven)


@dataclass(frozen=True, eq=False)
class Saturated:
    """A controller ``control(t, q, v) -> tau`` whose forces go no further than ``limit`` (nv,) in either direction."""

    control: Callable[..., Any]
    limit: np.ndarray

    def __call__(self, t: float, q: Any, v: Any) -> np.ndarray:
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
