"""Loops and couplings of a tree at one configuration: how motions of links change what must vanish.

Every loop is walked from its side A to its side B, inward to the first link that both sides share and out again, as if
A stood still.  The joint that closes the loop then judges the pose of B in A: ``Joint.closure`` is the complement of
what it allows, so no virtual links or coordinates remain (spencer2004, end of A.3.3).  Couplings are linear in the
coordinates, and stand among the loops as they do in ``Mechanism.loops``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ...mechanism import Constraint, Coupling, Loop, snapped
from ..jet import jet, parts
from ..links.link import JointKinematics
from ..scalar import Scalar, dot, is_zero
from ..spatial import Force, Matrix3, Motion, Transform, Vector3
from ..spatial.pose import Pose, beyond
from .sweep_log import within

if TYPE_CHECKING:
    from .tree import Tree

AROUND_THE_LOOPS = "around the loops"  # what emitted code is labelled with
ROUND_OFF = 1e-15  # metres: what is smaller is noise of multiplying constant frames


@dataclass(frozen=True)
class Station:
    """A link on the way from A to B: whether its motion moves B against A (1) or A against B (-1), and the pose of its
    internal frame in A."""

    link: int
    sense: float
    pose: Pose


@dataclass(frozen=True)
class Walk:
    """The way from side A to side B.

    rows       of the loop among all constraints
    stations   the joints on the way, as the links that they move
    sides      the links that carry A and B; none that is the ground, and none where one link carries both
    end        the pose of B in A, both in the joint's canonical axes
    """

    loop: Loop
    rows: slice
    stations: tuple[Station, ...]
    sides: tuple[Station, ...]
    end: Pose

    def closure(self) -> list[Scalar]:
        return self.loop.kind.closure(*self.end)

    @cached_property
    def gradient(self) -> list[Force]:
        """How the closure changes per unit motion of B against A, at B's origin along A's axes: one row each."""
        units = [[1.0 if i == k else 0.0 for i in range(6)] for k in range(6)]
        columns = [[parts(x)[1] for x in self._moving_closure(Motion.of(unit), None)] for unit in units]
        return [Force.of(row) for row in zip(*columns, strict=True)]

    def closure_rate(self, relative: Motion) -> list[Scalar]:
        """How the closure changes when B moves against A."""
        return [row.dot(relative) for row in self.gradient]

    def relative_motion(self, station: Station, motion: Motion) -> Motion:
        """Motion of B against A, at B's origin along A's axes, for a motion of the station's link in link axes."""
        rotation, position = station.pose
        angular = rotation @ motion.angular
        linear = rotation @ motion.linear + angular.cross(self.end[1] - position)
        return Motion(angular, linear) * station.sense

    def links(self, by_joints: bool) -> tuple[int, ...]:
        """Those whose joints are on the way, or those that carry the sides."""
        return tuple(station.link for station in self._stations(by_joints))

    def rates(self, motions: Mapping[int, Motion], by_joints: bool) -> list[Scalar] | None:
        """How the closure changes with ``motions``, by links: those that joints add to them, or their own; None where
        nothing moves."""
        moving = [s for s in self._stations(by_joints) if s.link in motions]
        if not moving:
            return None
        relative = self.relative_motion(moving[0], motions[moving[0].link])
        for station in moving[1:]:
            relative = relative + self.relative_motion(station, motions[station.link])
        return self.closure_rate(relative)

    def force_on(self, i: int, multipliers: Sequence[Scalar], by_joints: bool) -> Force | None:
        """The adjoint of ``rates``, at link i; None where it is an exact zero."""
        if all(map(is_zero, multipliers)):
            return None
        for station in (s for s in self._stations(by_joints) if s.link == i):
            columns = zip(*(row.flat() for row in self.gradient), strict=True)
            return self._force_on_link(station, Force.of([dot(column, multipliers) for column in columns]))
        return None

    def _stations(self, by_joints: bool) -> tuple[Station, ...]:
        return self.stations if by_joints else self.sides

    def _force_on_link(self, station: Station, force: Force) -> Force:
        """The adjoint of ``relative_motion``: a force between A and B, at B's origin along A's axes, as the station's
        link feels it."""
        rotation, position = station.pose
        moment = force.moment + (self.end[1] - position).cross(force.force)
        return Force(rotation.T @ moment, rotation.T @ force.force) * station.sense

    def curvature(self, relative: Motion, rate: Motion) -> list[Scalar]:
        """Second derivative of the closure while B moves against A with velocity ``relative`` and the components of
        that velocity, along A's axes, change at ``rate``."""
        return [parts(x)[2] for x in self._moving_closure(relative, rate)]

    def _moving_closure(self, relative: Motion, rate: Motion | None) -> list[Scalar]:
        """The closure as jets along a motion of B against A; without a rate, of first order."""
        rotation, position = self.end
        spin, columns = relative.angular, rotation.columns()
        rotated = [Matrix3(*(spin.cross(column) for column in columns)).T]
        moved = [relative.linear]
        if rate is not None:
            rotated.append(Matrix3(*(rate.angular.cross(c) + spin.cross(spin.cross(c)) for c in columns)).T)
            moved.append(rate.linear)
        rows = (Vector3(*map(jet, *same)) for same in zip(rotation, *rotated, strict=True))
        return self.loop.kind.closure(Matrix3(*rows), Vector3(*map(jet, position, *moved)))


@dataclass(frozen=True)
class Tie:
    """A coupling of joints: the sum of ratio times coordinate less the offset must vanish.

    rows          of the coupling among all constraints
    bodies        the links whose joints it ties together, with their ratios
    coordinates   of these joints
    joints        every joint of the tree
    """

    loop: Coupling
    rows: slice
    bodies: tuple[tuple[int, float], ...]
    coordinates: tuple[Scalar, ...]
    joints: Sequence[JointKinematics]

    def closure(self) -> list[Scalar]:
        return [dot((ratio for _, ratio in self.bodies), self.coordinates, -self.loop.offset)]

    def links(self, by_joints: bool) -> tuple[int, ...]:
        """The tied ones; with their parents where links move by themselves."""
        tied = [i for i, _ in self.bodies]
        parents = [self._parent(i) for i in tied if not by_joints and self._parent(i) >= 0]
        return tuple(dict.fromkeys([*tied, *parents]))

    def rates(self, motions: Mapping[int, Motion], by_joints: bool) -> list[Scalar] | None:
        """How the coupling changes with ``motions``, by links: what joints add to them, or their own; None where
        nothing moves."""
        terms = []
        for i, ratio in self.bodies:
            parent = -1 if by_joints else self._parent(i)
            if i in motions:
                terms.append(self._axis(i).dot(motions[i]) * ratio)
            if parent in motions:
                terms.append(self._axis(i).dot(self.joints[i].transform.motion_into(motions[parent])) * -ratio)
        return [sum(terms[1:], terms[0])] if terms else None

    def force_on(self, i: int, multipliers: Sequence[Scalar], by_joints: bool) -> Force | None:
        """The adjoint of ``rates``, at link i; None where it is an exact zero."""
        (multiplier,) = multipliers
        total = None
        for k, ratio in self.bodies if not is_zero(multiplier) else ():
            if k == i or (self._parent(k) == i and not by_joints):
                force = self._axis(k) * (multiplier * ratio)
                force = force if k == i else self.joints[k].transform.force_back(force) * -1.0
                total = force if total is None else total + force
        return total

    def curvature(self, biases: Mapping[int, Motion]) -> list[Scalar]:
        """Second derivative while the links have no accelerations: their joints then take back the bias accelerations
        of ``biases``."""
        return [-sum((self._axis(i).dot(biases[i]) * ratio for i, ratio in self.bodies), 0.0)]

    def _parent(self, i: int) -> int:
        return self.joints[i].link.parent

    def _axis(self, i: int) -> Force:
        """What picks the joint's rate out of the motion that it adds: one along H*."""
        (own,) = self.joints[i].motion
        size = own.angular.dot(own.angular) + own.linear.dot(own.linear)
        return Force(own.angular, own.linear) * (1.0 / size)


def ways(
    tree: Tree, joint_kinematics: Sequence[JointKinematics], coordinates: Sequence[Sequence[Scalar]]
) -> list[Walk | Tie]:
    """Of every loop and coupling, at the configuration of the joints."""
    found = []
    for loop in tree.mechanism.loops:
        with around(loop):
            found.append(_way(tree, joint_kinematics, coordinates, loop))
    return found


def around(loop: Constraint) -> AbstractContextManager[None]:
    """Labels what is computed for a loop or coupling."""
    return within(f"{AROUND_THE_LOOPS}: {loop.name}")


def _way(
    tree: Tree, joint_kinematics: Sequence[JointKinematics], coordinates: Sequence[Sequence[Scalar]], loop: Constraint
) -> Walk | Tie:
    if isinstance(loop, Loop):
        return walk(tree, joint_kinematics, loop)
    bodies = tuple((tree.mechanism.body_index(joint), ratio) for joint, ratio in loop.ratios)
    rows = tree.mechanism.constraint_index(loop.name)
    return Tie(loop, rows, bodies, tuple(coordinates[i][0] for i, _ in bodies), joint_kinematics)


def walk(tree: Tree, joint_kinematics: Sequence[JointKinematics], loop: Loop) -> Walk:
    """From A inward to the link that both sides share, then outward to B."""
    body_a, side_a = _side(tree, loop, loop.link_a, loop.pose_a)
    body_b, side_b = _side(tree, loop, loop.link_b, loop.pose_b)
    path_a, path_b = tree.mechanism.path(body_a), tree.mechanism.path(body_b)
    shared = sum(a == b for a, b in zip(path_a, path_b, strict=False))
    stations = []
    from_a = pose = _pose(side_a.inverse())
    for i in reversed(path_a[shared:]):
        stations.append(Station(i, -1.0, pose))
        pose = beyond(pose, joint_kinematics[i].transform.inverse())
    for i in path_b[shared:]:
        pose = beyond(pose, joint_kinematics[i].transform)
        stations.append(Station(i, 1.0, pose))
    sides = (Station(body_a, -1.0, from_a), Station(body_b, 1.0, pose)) if body_a != body_b else ()
    moving = tuple(side for side in sides if side.link >= 0)
    return Walk(loop, tree.mechanism.constraint_index(loop.name), tuple(stations), moving, beyond(pose, side_b))


def _side(tree: Tree, loop: Loop, link: str, pose: tuple[np.ndarray, np.ndarray]) -> tuple[int, Transform]:
    """The body that carries one side of a loop, and the step from its internal frame to the joint's canonical axes.

    The constant frames on the way are multiplied out, and noise in them cleared, so that zeros stay zeros.
    """
    frame = tree.mechanism.frame(link)
    rotation, position = np.eye(3), np.zeros(3)
    if frame.body >= 0:
        user = tree.links[frame.body].user
        rotation, position = np.array(user.rotation(), dtype=float), np.array(user.position(), dtype=float)
    for axes, origin in ((frame.rotation, frame.position), pose, (np.array(loop.kind.alignment), np.zeros(3))):
        rotation, position = rotation @ axes, rotation @ origin + position
    rotation, position = snapped(rotation), np.where(np.abs(position) < ROUND_OFF, 0.0, position)
    return frame.body, Transform.from_pose(Matrix3.from_rows(rotation.tolist()), Vector3(*position.tolist()))


def _pose(transform: Transform) -> Pose:
    return transform.rotation(), transform.position()
