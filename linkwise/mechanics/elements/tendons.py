"""Springs, dampers, dry friction and limits along tendons that are linear in joints."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...mechanism import Mechanism, Tendon
from ..scalar import Scalar
from .actuators import along, moment_arms
from .at_joints import FRICTION_SPEED, StopSpring, excess, friction_drag
from .law import ForceLaw, Situation


@dataclass(frozen=True)
class TendonLaw(ForceLaw):
    """The force along a tendon of length l:

        -stiffness (l - nearest of rest) - damping dl/dt - friction dl/dt / sqrt(dl/dt^2 + speed^2)

    with the ``speed`` of joints, by its arms; its friction is at most ``steepest`` dl/dt (``Friction``).  Beyond its
    limits that of stops (``Stop``), as at joints.
    """

    tendon: Tendon
    stop: StopSpring
    steepest: float = math.inf
    speed: float = FRICTION_SPEED

    def act(self, at: Situation, ctrl: Sequence[Scalar] = (), activation: Sequence[Scalar] = ()) -> Sequence[Scalar]:
        tendon = self.tendon
        length, rate = along(at, tendon)
        force, slope = -(tendon.damping * rate), tendon.damping
        if tendon.stiffness:
            force = force - tendon.stiffness * _beyond(length, tendon.rest)
        if tendon.friction:
            drag = friction_drag(tendon.friction, self.speed, rate, self.steepest)
            force, slope = force - drag * rate, slope + drag
        if tendon.limits:
            push, grown = self.stop.response(length, rate, _finite(tendon.limits), at.step)
            force, slope = force + push, slope + grown
        reach = sum(abs(arm) for _, arm in tendon.joints)
        for joint, arm in tendon.joints:
            at.push_joint(joint, [force * arm])
            at.resist_joint(joint, [slope * (abs(arm) * reach)])  # at least what couples its joints
        return ()

    def add_linear(self, mech: Mechanism, stiffness: np.ndarray, damping: np.ndarray) -> None:
        arms = moment_arms(mech, self.tendon.joints)
        stiffness += self.tendon.stiffness * np.outer(arms, arms)
        damping += self.tendon.damping * np.outer(arms, arms)

    def energy(self, at: Situation) -> Scalar:
        length, _ = along(at, self.tendon)
        stretch = _beyond(length, self.tendon.rest)
        total = 0.5 * self.tendon.stiffness * stretch * stretch
        return total + self.stop.energy(length, _finite(self.tendon.limits)) if self.tendon.limits else total


def _beyond(length: Scalar, bounds: tuple[float, float] | None) -> Scalar:
    """Excess of a length over its bounds; with equal bounds the difference."""
    if bounds is None:
        return 0.0
    return length - bounds[0] if bounds[0] == bounds[1] else excess(length, _finite(bounds))


def _finite(bounds: tuple[float, float]) -> tuple[float | None, float | None]:
    low, high = (None if math.isinf(bound) else bound for bound in bounds)
    return low, high
