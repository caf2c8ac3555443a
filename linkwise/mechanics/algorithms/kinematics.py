"""Poses of links and frames in the world, and the motions that joints give to links."""

from __future__ import annotations

from collections.abc import Sequence

from ..links.link import JointKinematics
from ..recursions.sweep import base_to_tip
from ..recursions.tree import Configuration, Tree
from ..scalar import Scalar
from ..spatial import IDENTITY, Motion, Transform
from ..spatial.pose import Pose, beyond
from ..spatial.three import ZERO
from .algorithm import algorithm

POSES = "poses form a group, not a linear space: no operator gives them"


def internal_poses(tree: Tree, joint_kinematics: Sequence[JointKinematics]) -> list[Pose]:
    """Rotation and position of every link's internal frame in the world."""

    def step(i: int, parent: Pose | None) -> Pose:
        return beyond(parent or (IDENTITY, ZERO), joint_kinematics[i].transform)

    return base_to_tip(tree.links, "poses", step)


def homogeneous(pose: Pose) -> list[list[Scalar]]:
    """A pose as a 4x4 matrix."""
    rotation, position = pose
    return [[*row, p] for row, p in zip(rotation, position, strict=True)] + [[0.0, 0.0, 0.0, 1.0]]


@algorithm(("q",), "poses", reason=POSES, sweeps=True)
def link_poses(tree: Tree, q: Sequence[Scalar]) -> list[list[list[Scalar]]]:
    """(n_links, 4, 4): every link frame in the world."""
    poses = internal_poses(tree, tree.joint_kinematics(q))
    return [homogeneous(beyond(pose, link.user)) for pose, link in zip(poses, tree.links, strict=True)]


@algorithm(("q",), "pose", options=("link",), reason=POSES)
def frame_pose(tree: Tree, q: Sequence[Scalar], link: str) -> list[list[Scalar]]:
    """(4, 4): one named frame in the world."""
    return homogeneous(beyond((IDENTITY, ZERO), path_transform(Configuration(tree, q), link)))


def joint_motions(at: Configuration) -> list[dict[tuple[int, int], Motion]]:
    """For every link, the motions phi* H* by the joints on its path, by joint and degree of freedom, in its internal
    frame."""

    def step(i: int, parent: dict[tuple[int, int], Motion] | None) -> dict[tuple[int, int], Motion]:
        kinematics = at.joint_kinematics[i]
        propagated = {a: kinematics.transform.motion_into(y) for a, y in (parent or {}).items()}
        return propagated | {(i, k): h for k, h in enumerate(kinematics.motion)}

    return base_to_tip(at.tree.links, "motions of the links", step)


def path_transform(at: Configuration, name: str) -> Transform:
    """The transform from the world to a named frame."""
    body, last = at.to_frame(name)
    transform = Transform()
    for i in at.tree.mechanism.tree.path(body):
        transform = transform.then(at.joint_kinematics[i].transform)
    return transform.then(last)
