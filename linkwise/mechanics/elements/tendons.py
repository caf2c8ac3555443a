"""Springs, dampers, dry friction and limits along tendons that are linear in joints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...mechanism import Tendon
from ..scalar import Scalar, sqrt
from .actuators import along
from .at_joints import FRICTION_SPEED, positive, within
from .law import ForceLaw, Situation


@dataclass(frozen=True)
class TendonLaw(ForceLaw):
    """The force along a tendon of length l:

        -stiffness (l - nearest of rest) - damping dl/dt - friction dl/dt / sqrt(dl/dt^2 + speed^2)

    and beyond its limits that of stops (``Stop``), as at joints.
    """

    tendon: Tendon
    limit_stiffness: float
    limit_damping: float
    limit_width: float

    def act(self, at: Situation, ctrl: Sequence[Scalar] = (), activation: Sequence[Scalar] = ()) -> Sequence[Scalar]:
        tendon = self.tendon
        length, rate = along(at, tendon)
        force = -(tendon.damping * rate)
        if tendon.stiffness:
            for side, depth in _beyond(length, tendon.rest):
                force = force - side * (tendon.stiffness * depth)
        if tendon.friction:
            force = force - tendon.friction * rate / sqrt(rate * rate + FRICTION_SPEED**2)
        for side, depth in _beyond(length, tendon.limits):
            damped = within(depth, self.limit_width) * self.limit_damping * side * rate
            force = force - side * (self.limit_stiffness * positive(depth + damped))
        for joint, arm in tendon.joints:
            at.push_joint(joint, [force * arm])
        return ()

    def energy(self, at: Situation) -> Scalar:
        length, _ = along(at, self.tendon)
        total: Scalar = 0.0
        for stiffness, bounds in (
            (self.tendon.stiffness, self.tendon.rest),
            (self.limit_stiffness, self.tendon.limits),
        ):
            for _, depth in _beyond(length, bounds):
                total = total + 0.5 * stiffness * depth * depth
        return total


def _beyond(length: Scalar, bounds: tuple[float, float] | None) -> list[tuple[float, Scalar]]:
    """(side, depth) beyond each bound that is finite; between equal bounds one depth of either sign."""
    if bounds is None:
        return []
    low, high = bounds
    if low == high:
        return [(1.0, length - low)]
    found: list[tuple[float, Scalar]] = []
    for side, bound in ((-1.0, low), (1.0, high)):
        if abs(bound) != float("inf"):
            depth = side * (length - bound)
            found.append((side, positive(depth)))
    return found
