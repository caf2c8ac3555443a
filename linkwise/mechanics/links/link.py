"""Parameters of one link in its internal frame, and the kinematics of its joint at given coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from ..joints import Joint
from ..scalar import Scalar, is_zero
from ..spatial import Force, Motion, RigidInertia, Transform, turn
from ..spatial.factors import Rotation

Six = TypeVar("Six", Motion, Force)


@dataclass(frozen=True)
class Link:
    """A link in its internal frame, which the library chooses; ``user`` transforms to the user's link frame.

    Every number is a constant or a traced parameter.
    """

    name: str
    parent: int
    joint: Joint
    place: Transform  # parent link's internal frame -> parent side of the joint
    spin: Scalar  # constant added to the joint's spin coordinate ...
    quarter_turns: int  # ... followed by this many exact quarter-turns
    inertia: RigidInertia
    regrouped: RigidInertia  # with inertia regrouped to the parent, for forces projected onto joints only
    armature: tuple[Scalar, ...]
    user: Transform

    def with_inertias(self, inertia: RigidInertia, regrouped: RigidInertia) -> Link:
        """A copy of the link with another inertia; fast, for long chains."""
        return Link(
            self.name,
            self.parent,
            self.joint,
            self.place,
            self.spin,
            self.quarter_turns,
            inertia,
            regrouped,
            self.armature,
            self.user,
        )

    def joint_kinematics(self, q: Sequence[Scalar]) -> JointKinematics:
        """The joint at coordinates ``q``."""
        transform, angle = self.joint.transform(q), self.joint.rotation_coordinate
        if angle is not None and not (is_zero(self.spin) and self.quarter_turns == 0):
            shifted = list(q)
            shifted[angle] = q[angle] + self.spin
            *before, last = self.joint.transform(shifted).factors
            assert isinstance(last, Rotation)
            transform = Transform((*before, turn(last, self.quarter_turns)))
        return JointKinematics(self, self.place.then(transform), self.joint.motion(q))


@dataclass(frozen=True)
class JointKinematics:
    """A joint at one configuration: the change of frame from parent link to this link, and the columns of H*."""

    link: Link
    transform: Transform
    motion: tuple[Motion, ...]

    def relative_motion(self, v: Sequence[Scalar]) -> Motion:
        """H* v."""
        return combine(self.motion, v)


def combine(columns: Sequence[Six], weights: Sequence[Scalar]) -> Six:
    """The weighted sum of motions, or of forces."""
    total = columns[0] * weights[0]
    for column, weight in zip(columns[1:], weights[1:], strict=True):
        total = total + column * weight
    return total
