"""Loop constraints (spencer2004 2.1c-2.3, A.3.2): what must vanish, its Jacobian and its bias, in O(path) per loop.
Couplings are linear in the coordinates, and stand among the loops as they do in ``Mechanism.loops``.

Every loop is walked from its side A to its side B, inward to the first link that both sides share and out again, as if
A stood still.  The joint that closes the loop then judges the pose of B in A: ``Joint.closure`` is the complement of
its freedom, so no virtual links or coordinates remain (spencer2004, end of A.3.3).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...mechanism import Constraint, Coupling, Loop, snapped
from ..jet import jet, parts
from ..links.link import JointKinematics
from ..recursions.tree import Tree
from ..scalar import Matrix, Scalar, dot
from ..spatial import Matrix3, Motion, Transform, Vector3
from .configuration import moving
from .dynamics import bias_force, mass_matrix
from .kinematics import Pose, beyond

ROUND_OFF = 1e-15  # metres: what is smaller is noise of multiplying constant frames


@dataclass(frozen=True)
class Station:
    """A joint on the way from A to B: the link it moves, whether B moves with it (1) or against it (-1), and the pose
    of that link's internal frame in A."""

    link: int
    sense: float
    pose: Pose


@dataclass(frozen=True)
class Walk:
    """The way from side A to side B; ``end`` is the pose of B in A, both in the joint's canonical axes."""

    loop: Loop
    stations: tuple[Station, ...]
    end: Pose

    def closure(self) -> list[Scalar]:
        return self.loop.kind.closure(*self.end)

    def closure_rate(self, relative: Motion) -> list[Scalar]:
        """How the closure changes when B moves against A: ``relative`` is at B's origin, along A's axes."""
        rotation, position = self.end
        turning = (relative.angular.cross(column) for column in rotation.columns())
        rates = Matrix3(*turning).T
        moving = Matrix3(*(Vector3(*map(jet, *pair)) for pair in zip(rotation, rates, strict=True)))
        closure = self.loop.kind.closure(moving, Vector3(*map(jet, position, relative.linear)))
        return [parts(x)[1] for x in closure]

    def relative_motion(self, station: Station, motion: Motion) -> Motion:
        """Motion of B against A, at B's origin along A's axes, for a motion of the station's joint in link axes."""
        rotation, position = station.pose
        angular = rotation @ motion.angular
        linear = rotation @ motion.linear + angular.cross(self.end[1] - position)
        return Motion(angular, linear) * station.sense


@dataclass(frozen=True)
class Tie:
    """A coupling, and the coordinates of the joints that it ties together."""

    coupling: Coupling
    coordinates: tuple[Scalar, ...]

    def closure(self) -> list[Scalar]:
        return [dot((ratio for _, ratio in self.coupling.ratios), self.coordinates, -self.coupling.offset)]


def _way(
    tree: Tree, joint_kinematics: Sequence[JointKinematics], coordinates: Sequence[Sequence[Scalar]], loop: Constraint
) -> Walk | Tie:
    if isinstance(loop, Loop):
        return walk(tree, joint_kinematics, loop)
    return Tie(loop, tuple(coordinates[tree.mechanism.body_index(joint)][0] for joint, _ in loop.ratios))


def walk(tree: Tree, joint_kinematics: Sequence[JointKinematics], loop: Loop) -> Walk:
    """From A inward to the link that both sides share, then outward to B."""
    body_a, side_a = _side(tree, loop, loop.link_a, loop.pose_a)
    body_b, side_b = _side(tree, loop, loop.link_b, loop.pose_b)
    path_a, path_b = tree.mechanism.path(body_a), tree.mechanism.path(body_b)
    shared = sum(a == b for a, b in zip(path_a, path_b, strict=False))
    stations = []
    pose = _pose(side_a.inverse())
    for i in reversed(path_a[shared:]):
        stations.append(Station(i, -1.0, pose))
        pose = beyond(pose, joint_kinematics[i].transform.inverse())
    for i in path_b[shared:]:
        pose = beyond(pose, joint_kinematics[i].transform)
        stations.append(Station(i, 1.0, pose))
    return Walk(loop, tuple(stations), beyond(pose, side_b))


def _side(tree: Tree, loop: Loop, link: str, pose: tuple[np.ndarray, np.ndarray]) -> tuple[int, Transform]:
    """The body that carries one side of a loop, and the step from its internal frame to the joint's canonical axes.

    The constant frames on the way are multiplied out, and noise in them cleared, so that zeros stay zeros.
    """
    frame = tree.mechanism.frame(link)
    rotation, position = np.eye(3), np.zeros(3)
    if frame.body >= 0:
        user = tree.links[frame.body].user
        rotation, position = np.array(user.rotation(), dtype=float), np.array(user.position(), dtype=float)
    for turn, shift in ((frame.rotation, frame.position), pose, (np.array(loop.kind.alignment), np.zeros(3))):
        rotation, position = rotation @ turn, rotation @ shift + position
    rotation, position = snapped(rotation), np.where(np.abs(position) < ROUND_OFF, 0.0, position)
    return frame.body, Transform.from_pose(Matrix3.from_rows(rotation.tolist()), Vector3(*position.tolist()))


def _pose(transform: Transform) -> Pose:
    return transform.rotation(), transform.position()


def _ways(tree: Tree, q: Sequence[Scalar]) -> list[Walk | Tie]:
    joint_kinematics, coordinates = tree.joint_kinematics(q), tree.coordinates(q)
    return [_way(tree, joint_kinematics, coordinates, loop) for loop in tree.mechanism.loops]


def position_error(tree: Tree, q: Sequence[Scalar]) -> list[Scalar]:
    """(m,): g(q), the closures of all loops and couplings one after the other (2.1c)."""
    return [x for way in _ways(tree, q) for x in way.closure()]


def loop_alignments(tree: Tree, q: Sequence[Scalar]) -> list[Scalar]:
    """(number of loops,): ``Joint.loop_alignment`` of every loop, 1 of couplings."""
    return [way.loop.kind.loop_alignment(*way.end) if isinstance(way, Walk) else 1.0 for way in _ways(tree, q)]


def constraint_jacobian(tree: Tree, q: Sequence[Scalar]) -> Matrix:
    """(m, nv): G with dg/dt = G v (2.2).  Joints that carry both sides of a loop alike do not enter."""
    joint_kinematics = tree.joint_kinematics(q)
    rows: Matrix = []
    for loop in tree.mechanism.loops:
        columns = [[[0.0] * loop.n_constraints for _ in range(link.joint.nv)] for link in tree.links]
        if isinstance(loop, Coupling):
            for joint, ratio in loop.ratios:
                columns[tree.mechanism.body_index(joint)][0] = [ratio]
        else:
            way = walk(tree, joint_kinematics, loop)
            for station in way.stations:
                for k, motion in enumerate(joint_kinematics[station.link].motion):
                    columns[station.link][k] = way.closure_rate(way.relative_motion(station, motion))
        rows += (list(row) for row in zip(*(column for own in columns for column in own), strict=True))
    return tree.independent_columns(rows)


def constraint_bias(tree: Tree, q: Sequence[Scalar], v: Sequence[Scalar]) -> list[Scalar]:
    """(m,): dG/dt v, the second derivative of g along the motion with constant v, without forming dG/dt (2.3)."""
    return [parts(x)[2] for x in position_error(tree, moving(tree, q, v))]


def loop_motion_maps(tree: Tree, q: Sequence[Scalar]) -> Matrix:
    """(m, 6): rates of the closures per unit motion [omega; v] of side B against side A, in the frame ``pose_b``.
    Couplings have no sides, and zeros."""
    rows: Matrix = []
    for way in _ways(tree, q):
        if isinstance(way, Tie):
            rows.append([0.0] * 6)
            continue
        axes = way.end[0].times(Matrix3.from_rows(np.array(way.loop.kind.alignment).T.tolist())).columns()
        still = Vector3(0.0, 0.0, 0.0)
        units = [Motion(axis, still) for axis in axes] + [Motion(still, axis) for axis in axes]
        rows += (list(row) for row in zip(*(way.closure_rate(unit) for unit in units), strict=True))
    return rows


def constrained_terms(tree: Tree, q: Sequence[Scalar], v: Sequence[Scalar]) -> Matrix:
    """(nv + m, nv + 2): [M, h, 0; G, dG/dt v, g], all that the equations of motion (2.1-2.3) need, in one kernel."""
    upper = [[*row, h, 0.0] for row, h in zip(mass_matrix(tree, q), bias_force(tree, q, v), strict=True)]
    biases = zip(constraint_jacobian(tree, q), constraint_bias(tree, q, v), position_error(tree, q), strict=True)
    return upper + [[*row, bias, error] for row, bias, error in biases]
