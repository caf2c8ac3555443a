"""The tree with every link frame at its mass centre, as in saha1999.

Operators on this tree are that paper's matrices, up to the change of axes between links: phi* is N_l (17), H* is N_d,
and M is block diagonal in each link (2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

from ..joints import Joint
from ..links.link import JointKinematics, Link
from ..scalar import Scalar, is_zero
from ..spatial import Motion, RigidInertia, Transform, Translation, Vector3
from ..spatial.three import ZERO
from .tree import Tree


@dataclass(frozen=True)
class ToMassCentre:
    """The step from the parent's original frame across a joint and on to the mass centre of the link it moves.

    It implements the part of the joint protocol that recursions use.
    """

    link: Link
    centre: Vector3
    span: None = None  # the motions have moments about the mass centre
    rotation_coordinate: None = None

    @property
    def nv(self) -> int:
        return self.link.joint.nv

    @property
    def shift(self) -> Transform:
        return _shift(self.centre)

    def transform(self, q: Sequence[Scalar]) -> Transform:
        return self.link.joint_kinematics(q).transform.then(self.shift)

    def original_joint(self, q: Sequence[Scalar], transform: Transform) -> JointKinematics:
        """The joint in its original frame, before the shift to the mass centre."""
        kinematics = self.link.joint_kinematics(q)
        return JointKinematics(self.link, transform.then(kinematics.transform), kinematics.motion)

    def motion(self, q: Sequence[Scalar]) -> tuple[Motion, ...]:
        """p_i of (13) and (15): [e; e x d] for a revolute joint, [0; e] for a prismatic one."""
        return tuple(map(self.shift.motion_into, self.link.joint.motion(q)))

    def motion_rate(self, q: Sequence[Scalar], v: Sequence[Scalar]) -> tuple[Motion, ...]:
        return tuple(map(self.shift.motion_into, self.link.joint.motion_rate(q, v)))


def shift_to_mass_centres(tree: Tree) -> Tree:
    """A copy of the tree with the origins of internal frames at the links' mass centres and unchanged axes."""
    centres = [_mass_centre(tree, i) for i in range(len(tree.links))]
    return replace(tree, links=tuple(_moved(link, i, centres) for i, link in enumerate(tree.links)))


def _mass_centre(tree: Tree, i: int) -> Vector3:
    """The mass centre in the link's internal frame; for a massless link, the point given in the mechanism."""
    link = tree.links[i]
    if is_zero(link.inertia.mass):
        return link.user.point_back(Vector3(*tree.mechanism.bodies[i].com.tolist()))
    return link.inertia.h * (1.0 / link.inertia.mass)


def _moved(link: Link, i: int, centres: Sequence[Vector3]) -> Link:
    inertia = RigidInertia(link.inertia.mass, ZERO, link.inertia.shifted(-centres[i]).moment)
    return Link(
        link.name,
        link.parent,
        cast(Joint, _shift_to_mass_centre(link, centres[i])),
        _shift(-centres[link.parent] if link.parent >= 0 else ZERO),
        0.0,
        0,
        inertia,
        inertia,  # nothing is regrouped: the paper's forces belong to the links themselves
        link.armature,
        _shift(-centres[i]).then(link.user),
    )


def _shift_to_mass_centre(link: Link, centre: Vector3) -> ToMassCentre:
    """A shift to the mass centre, taken before the joint if its axis passes nearest to the mass centre: a joint
    commutes with translations along its axis, which saves one number.
    """
    if not (link.joint.slides and link.place.is_constant):
        return ToMassCentre(link, centre)
    nearest = link.place.point_back(Vector3(0.0, 0.0, centre.z))
    rotations = (step for step in link.place.factors if not isinstance(step, Translation))
    return ToMassCentre(replace(link, place=Transform((Translation(nearest), *rotations))), centre._replace(z=0.0))


def _shift(by: Vector3) -> Transform:
    return Transform() if all(is_zero(x) for x in by) else Transform((Translation(by),))
