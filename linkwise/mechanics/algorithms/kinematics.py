"""Poses, velocities, accelerations and Jacobians, in the user's link frames."""

from __future__ import annotations

from collections.abc import Sequence

from ..links.kinematics import (
    AngularVelocity,
    angular_velocity_base_to_tip,
    propagate_acceleration,
    velocity_base_to_tip,
)
from ..links.link import JointKinematics
from ..recursions.sweep import base_to_tip
from ..recursions.tree import Configuration, Tree
from ..scalar import Scalar
from ..spatial import IDENTITY, Matrix3, Motion, Transform, Translation, Vector3
from ..spatial.motion import NO_MOTION
from ..spatial.three import ZERO

Pose = tuple[Matrix3, Vector3]


def internal_poses(tree: Tree, joint_kinematics: Sequence[JointKinematics]) -> list[Pose]:
    """Rotation and position of every link's internal frame in the world."""

    def step(i: int, parent: Pose | None) -> Pose:
        return beyond(parent or (IDENTITY, ZERO), joint_kinematics[i].transform)

    return base_to_tip(tree.links, "poses", step)


def beyond(pose: Pose, transform: Transform) -> Pose:
    """The pose of the frame that ``transform`` leads to, step by step: shifts are along few axes, turns about one."""
    rotation, position = pose
    for factor in transform.factors:
        if isinstance(factor, Translation):
            position = rotation @ factor.shift + position
        else:
            rotation = Matrix3(*(factor.vector_into(row) for row in rotation))
    return rotation, position


def homogeneous(pose: Pose) -> list[list[Scalar]]:
    """A pose as a 4x4 matrix."""
    rotation, position = pose
    return [[*row, p] for row, p in zip(rotation, position, strict=True)] + [[0.0, 0.0, 0.0, 1.0]]


def link_poses(tree: Tree, q: Sequence[Scalar]) -> list[list[list[Scalar]]]:
    """(n_links, 4, 4): every link frame in the world."""
    poses = internal_poses(tree, tree.joint_kinematics(q))
    return [homogeneous(beyond(pose, link.user)) for pose, link in zip(poses, tree.links, strict=True)]


def frame_pose(tree: Tree, q: Sequence[Scalar], link: str) -> list[list[Scalar]]:
    """(4, 4): one named frame in the world."""
    return homogeneous(beyond((IDENTITY, ZERO), way_to(Configuration(tree, q), link)))


def velocities(tree: Tree, joint_kinematics: Sequence[JointKinematics], v: Sequence[Scalar]) -> list[Motion]:
    """V = phi* H* v, in internal frames."""
    rates = tree.velocities(v)

    def step(i: int, parent: Motion | None) -> Motion:
        return velocity_base_to_tip(joint_kinematics[i], parent or NO_MOTION, rates[i])

    return base_to_tip(tree.links, "velocities", step)


def link_velocities(tree: Tree, q: Sequence[Scalar], v: Sequence[Scalar]) -> list[tuple[Scalar, ...]]:
    """(n_links, 6): [omega; v] of every link frame, in its own axes at its origin."""
    moving = velocities(tree, tree.joint_kinematics(q), v)
    return [link.user.motion_into(m).flat() for link, m in zip(tree.links, moving, strict=True)]


def accelerations(
    at: Configuration, v: Sequence[Scalar], a: Sequence[Scalar], base: Motion
) -> list[tuple[AngularVelocity, Motion]]:
    """Angular velocity and acceleration of every link on a base that accelerates, in internal frames: alpha of
    phi* (H* a + bias), as an inertial observer sees it."""
    rates, joint_accelerations = at.tree.velocities(v), at.tree.velocities(a)

    def step(i: int, parent: tuple[AngularVelocity, Motion] | None) -> tuple[AngularVelocity, Motion]:
        kinematics = at.joint_kinematics[i]
        spin = angular_velocity_base_to_tip(
            kinematics, parent[0].omega if parent else ZERO, at.coordinates[i], rates[i]
        )
        propagated = propagate_acceleration(kinematics, spin, parent[1] if parent else base)
        return spin, propagated + kinematics.relative_motion(joint_accelerations[i])

    return base_to_tip(at.tree.links, "accelerations", step)


def link_accelerations(
    tree: Tree, q: Sequence[Scalar], v: Sequence[Scalar], a: Sequence[Scalar]
) -> list[tuple[Scalar, ...]]:
    """(n_links, 6): time derivative of the components of ``link_velocities`` (gravity does not enter)."""
    at = Configuration(tree, q)
    moving = velocities(tree, at.joint_kinematics, v)
    results = []
    for link, motion, (_, inertial) in zip(tree.links, moving, accelerations(at, v, a, NO_MOTION), strict=True):
        # Components' rate = inertial acceleration - omega x v; the difference is then a motion like any other.
        rate = Motion(inertial.angular, inertial.linear - motion.angular.cross(motion.linear))
        results.append(link.user.motion_into(rate).flat())
    return results


def joint_motions(at: Configuration) -> list[dict[tuple[int, int], Motion]]:
    """For every link the motions phi* H* that the joints on the way give it, by joint and freedom, in its internal
    frame."""

    def step(i: int, parent: dict[tuple[int, int], Motion] | None) -> dict[tuple[int, int], Motion]:
        kinematics = at.joint_kinematics[i]
        propagated = {a: kinematics.transform.motion_into(y) for a, y in (parent or {}).items()}
        return propagated | {(i, k): h for k, h in enumerate(kinematics.motion)}

    return base_to_tip(at.tree.links, "motions of the links", step)


def way_to(at: Configuration, name: str) -> Transform:
    """From the world to a named frame."""
    body, last = at.to_frame(name)
    whole = Transform()
    for i in at.tree.mechanism.path(body):
        whole = whole.then(at.joint_kinematics[i].transform)
    return whole.then(last)
