"""A tree of links that rotate in one plane, in axes that do not rotate with them.

With the angles of links relative to the base in place of joint angles, no vector has to be rotated from one link to the
next: changes of frame are translations, whose direction depends on the angle, like the direction of first moments of
mass.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import NamedTuple

from ..links.link import JointKinematics, Link
from ..scalar import Scalar
from ..spatial import Rotation, Transform, Translation, rotation_about
from ..spatial.factors import turn
from .sweep import base_to_tip
from .tree import Configuration, Tree


def rotates_in_a_plane(tree: Tree) -> bool:
    """Whether all joints are revolute about parallel axes."""

    def stays(i: int, link: Link) -> bool:
        only_translates = all(isinstance(factor, Translation) for factor in link.place.factors)
        return link.joint.only_rotates and (only_translates or not tree.neighbours.has_parent(i))

    return all(stays(i, link) for i, link in enumerate(tree.links))


class _Direction(NamedTuple):
    """Direction of a link relative to the base: the angle, and its rotation."""

    angle: Scalar
    rotation: Rotation


class FixedAxes(Configuration):
    """The tree at a configuration (``rotates_in_a_plane``) with all link frames parallel to the first link's frame at
    zero.
    """

    def __init__(self, tree: Tree, q: Sequence[Scalar]):
        super().__init__(tree, q)
        self._kinematics: dict[int, JointKinematics] = {}
        base_to_tip(tree.links, "angles against the base", self._place)
        self.joint_kinematics = [self._kinematics[i] for i in range(len(tree.links))]
        self.tree = tree.with_links(kinematics.link for kinematics in self.joint_kinematics)

    def _place(self, i: int, parent: _Direction | None) -> _Direction:
        link, (angle,) = self.tree.links[i], self.coordinates[i]
        if parent is None:  # the constant offset of a joint's angle is a constant rotation of the axes
            transform = link.place.then(Transform((turn(rotation_about(2, link.spin), link.quarter_turns),)))
        else:
            angle = angle + (link.spin + link.quarter_turns * (math.pi / 2)) + parent.angle
            transform = Transform((Translation(parent.rotation.vector_back(link.place.position())),))
        rotation = rotation_about(2, angle)
        seen = dataclasses.replace(
            link,
            place=transform,
            inertia=rotation.inertia_back(link.inertia),
            regrouped=rotation.inertia_back(link.regrouped),
            user=Transform((rotation, *link.user.factors)),
        )
        self._kinematics[i] = JointKinematics(seen, transform, link.joint.motion(self.coordinates[i]))
        return _Direction(angle, rotation)
