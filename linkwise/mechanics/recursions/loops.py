"""Loops and couplings of a tree at one configuration: derivatives of closure errors by motions of links.

Every loop is walked from its side A to its side B, inward to their common link and out again, relative to A.  The joint
that closes the loop then evaluates the pose of B in A: ``Joint.closure`` is the complement of its motions, so no
virtual links or coordinates remain (spencer2004, end of A.3.3).  Couplings are functions of a few coordinates, mostly
linear ones, in the order of ``Mechanism.loops``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...mechanism import Constraint, Coupling, Loop, MechanismError, snapped
from ...mechanism.family import with_numbers
from ..jet import jet, parts
from ..links.link import JointKinematics, combine
from ..scalar import Scalar, dot, is_zero
from ..spatial import Force, Matrix3, Motion, Transform, Vector3
from ..spatial.motion import NO_MOTION
from ..spatial.pose import Pose, beyond
from .sweep_log import within

if TYPE_CHECKING:
    from .tree import Configuration, Tree

ByJoint = Sequence[Sequence[Scalar]]  # numbers of every joint of the tree
SIDES = ("pose_a", "pose_b")  # fields of ``Loop``
LENGTH = "length"  # length of a distance between two links
AROUND_THE_LOOPS = "around the loops"  # labels of emitted code
ROUND_OFF = 1e-15  # relative to the distances between constant frames: smaller values are noise of multiplying these


class Aim(NamedTuple):
    """Targets that a drive sets for each number of a closure: value, rate and second rate."""

    position: Scalar = 0.0
    velocity: Scalar = 0.0
    acceleration: Scalar = 0.0


def loop_aim(loop: Constraint, asked: Sequence[Scalar] | None) -> Aim:
    """The aim of a loop; raises if a drive is a function of an unknown time."""
    if loop.drive is None:
        return Aim()
    if asked is None:
        raise MechanismError(
            f"{loop.name!r} follows a function of time: ask about a moment, with mech.constraints.at_time(t) in place "
            "of mech, or compile with parameters=('drive',); lw.simulate and lw.rollout follow it, and "
            "mech.constraints.without_drives() is free of it"
        )
    return Aim(*asked)


@dataclass(frozen=True)
class Station:
    """A link on the path from A to B: the sign of its motion in the motion of B relative to A (1 or -1), and the pose
    of its internal frame in A."""

    link: int
    sense: float
    pose: Pose


@dataclass(frozen=True)
class Walk:
    """The path from side A to side B.

    rows       of the loop among all constraints
    stations   the joints on the path, as the links that they move
    sides      the links that carry A and B, without the ground; empty if one link carries both
    end        the pose of B in A, both in the joint's canonical axes
    asked      prescribed closure of a drive: value, rate and second rate
    """

    loop: Loop
    rows: slice
    stations: tuple[Station, ...]
    sides: tuple[Station, ...]
    end: Pose
    asked: Sequence[Scalar] | None

    @property
    def aim(self) -> Aim:
        return loop_aim(self.loop, self.asked)

    def closure(self) -> list[Scalar]:
        """The numbers that must vanish; zeros for velocity constraints."""
        errors = [x - self.aim.position for x in self.loop.kind.closure(*self.end)]
        return [*errors, *[0.0] * (self.loop.n_constraints - len(errors))]

    @cached_property
    def gradient(self) -> list[Force]:
        """Derivatives of the closure per unit motion of B relative to A, at B's origin along A's axes: one row each."""
        units = [[1.0 if i == k else 0.0 for i in range(6)] for k in range(6)]
        columns = [
            [parts(x)[1] for x in self.loop.kind.closure(*self._moving(Motion.of(unit), None))] for unit in units
        ]
        return [*(Force.of(row) for row in zip(*columns, strict=True)), *self.loop.kind.sliding(*self.end)]

    def closure_rate(self, relative: Motion) -> list[Scalar]:
        """The rate of the closure for a motion of B relative to A."""
        return [row.dot(relative) for row in self.gradient]

    def relative_motion(self, station: Station, motion: Motion) -> Motion:
        """Motion of B relative to A, at B's origin along A's axes, for a motion of the station's link in link axes."""
        rotation, position = station.pose
        angular = rotation @ motion.angular
        linear = rotation @ motion.linear + angular.cross(self.end[1] - position)
        return Motion(angular, linear) * station.sense

    def velocity(self, at: Configuration, rates: ByJoint) -> list[Scalar]:
        """G v, for velocities by joint."""
        relative = NO_MOTION
        for station in self.stations:
            motion = at.joint_kinematics[station.link].relative_motion(rates[station.link])
            relative = relative + self.relative_motion(station, motion)
        return self.closure_rate(relative)

    def acceleration(self, at: Configuration, rates: ByJoint, accelerations: ByJoint | None = None) -> list[Scalar]:
        """G a + dG/dt v, for velocities and accelerations by joint; dG/dt v without accelerations.

        Each joint's motion is transported by the previous ones on the path, and has a rate of its own if H depends on
        coordinates.
        """
        velocity, change_rate = NO_MOTION, NO_MOTION
        for station in self.stations:
            joint, joint_rates = at.joint_kinematics[station.link], rates[station.link]
            moved = self.relative_motion(station, joint.relative_motion(joint_rates))
            change = combine(joint.link.joint.motion_rate(at.coordinates[station.link], joint_rates), joint_rates)
            if accelerations is not None:
                change = change + joint.relative_motion(accelerations[station.link])
            change_rate = change_rate + velocity.cross(moved) + self.relative_motion(station, change)
            velocity = velocity + moved
        swinging = velocity.angular.cross(
            velocity.linear
        )  # of B's origin, where spatial accelerations do not follow it
        return self.curvature(velocity, Motion(change_rate.angular, change_rate.linear + swinging))

    @property
    def alignment(self) -> Scalar:
        """``Joint.loop_alignment``: 1 if both sides coincide, -1 if they are back to back."""
        return self.loop.kind.loop_alignment(*self.end)

    def motion_maps(self) -> list[list[Scalar]]:
        """Rates of the closure per unit motion [omega; v] of side B relative to side A, in the frame ``pose_b``."""
        axes = self.end[0].times(Matrix3.from_rows(np.array(self.loop.kind.alignment).T.tolist())).columns()
        still = Vector3(0.0, 0.0, 0.0)
        units = [Motion(axis, still) for axis in axes] + [Motion(still, axis) for axis in axes]
        return [list(row) for row in zip(*(self.closure_rate(unit) for unit in units), strict=True)]

    def links(self, by_joints: bool) -> tuple[int, ...]:
        """Links whose joints are on the path, or links that carry the sides."""
        return tuple(station.link for station in self._stations(by_joints))

    def rates(self, motions: Mapping[int, Motion], by_joints: bool) -> list[Scalar] | None:
        """Rates of the closure for ``motions`` by links: added by joints if ``by_joints``, otherwise motions of the
        links; None if nothing moves."""
        moving = [s for s in self._stations(by_joints) if s.link in motions]
        if not moving:
            return None
        relative = self.relative_motion(moving[0], motions[moving[0].link])
        for station in moving[1:]:
            relative = relative + self.relative_motion(station, motions[station.link])
        return self.closure_rate(relative)

    def force_on(self, i: int, multipliers: Sequence[Scalar], by_joints: bool) -> Force | None:
        """The adjoint of ``rates``, at link i; None for an exact zero."""
        if all(map(is_zero, multipliers)):
            return None
        for station in (s for s in self._stations(by_joints) if s.link == i):
            columns = zip(*(row.flat() for row in self.gradient), strict=True)
            return self.force_on_link(station, Force.of([dot(column, multipliers) for column in columns]))
        return None

    def _stations(self, by_joints: bool) -> tuple[Station, ...]:
        return self.stations if by_joints else self.sides

    def force_on_link(self, station: Station, force: Force) -> Force:
        """The adjoint of ``relative_motion``: a force between A and B, at B's origin along A's axes, as a force on the
        station's link."""
        rotation, position = station.pose
        moment = force.moment + (self.end[1] - position).cross(force.force)
        return Force(rotation.T @ moment, rotation.T @ force.force) * station.sense

    def curvature(self, relative: Motion, rate: Motion) -> list[Scalar]:
        """Second derivative of the closure, and first derivative of velocity constraints, for a velocity ``relative``
        of B relative to A whose components along A's axes change at ``rate``."""
        moving = self._moving(relative, rate)
        sliding = zip(self.loop.kind.sliding(*self.end), self.loop.kind.sliding(*moving), strict=True)
        return [
            *(parts(x)[2] for x in self.loop.kind.closure(*moving)),
            *(
                row.dot(rate) + Force.of([parts(x)[1] for x in turning.flat()]).dot(relative)
                for row, turning in sliding
            ),
        ]

    def _moving(self, relative: Motion, rate: Motion | None) -> Pose:
        """The pose of B in A as jets along a motion of B relative to A; without a rate, of first order."""
        rotation, position = self.end
        spin, columns = relative.angular, rotation.columns()
        rotated = [Matrix3(*(spin.cross(column) for column in columns)).T]
        moved = [relative.linear]
        if rate is not None:
            rotated.append(Matrix3(*(rate.angular.cross(c) + spin.cross(spin.cross(c)) for c in columns)).T)
            moved.append(rate.linear)
        rows = (Vector3(*map(jet, *same)) for same in zip(rotation, *rotated, strict=True))
        return Matrix3(*rows), Vector3(*map(jet, position, *moved))


@dataclass(frozen=True)
class Tie:
    """A coupling of joints: the sum of ratio times coordinate less the offset must vanish.

    rows          of the coupling among all constraints
    bodies        the coupled links, with their ratios
    coordinates   of these joints
    joints        every joint of the tree
    asked         prescribed sum of a drive: value, rate and second rate
    """

    loop: Coupling
    rows: slice
    bodies: tuple[tuple[int, float], ...]
    coordinates: tuple[Scalar, ...]
    joints: Sequence[JointKinematics]
    asked: Sequence[Scalar] | None

    @property
    def aim(self) -> Aim:
        return loop_aim(self.loop, self.asked)

    def closure(self) -> list[Scalar]:
        if not self.loop.keeps_position:
            return [0.0]
        if self.loop.relation is not None:
            return [self.loop.value_at(self.coordinates) - self.loop.offset - self.aim.position]
        return [dot((ratio for _, ratio in self.bodies), self.coordinates, -self.loop.offset) - self.aim.position]

    def velocity(self, at: Configuration, rates: ByJoint) -> list[Scalar]:
        """G v, for velocities by joint."""
        return [dot((ratio for _, ratio in self.bodies), [rates[i][0] for i, _ in self.bodies])]

    def acceleration(self, at: Configuration, rates: ByJoint, accelerations: ByJoint | None = None) -> list[Scalar]:
        """G a + dG/dt v, for velocities and accelerations by joint; dG/dt v without accelerations."""
        turning = self.turning([rates[i][0] for i, _ in self.bodies])
        return [turning if accelerations is None else self.velocity(at, accelerations)[0] + turning]

    @property
    def alignment(self) -> Scalar:
        """1, as a coupling has no sides."""
        return 1.0

    def motion_maps(self) -> list[list[Scalar]]:
        """Zeros, as a coupling has no sides."""
        return [[0.0] * 6]

    def links(self, by_joints: bool) -> tuple[int, ...]:
        """The coupled links; with their parents unless motions are ``by_joints``."""
        tied = [i for i, _ in self.bodies]
        parents = [self._parent(i) for i in tied if not by_joints and self._parent(i) >= 0]
        return tuple(dict.fromkeys([*tied, *parents]))

    def rates(self, motions: Mapping[int, Motion], by_joints: bool) -> list[Scalar] | None:
        """Rates of the coupling for ``motions`` by links: added by joints if ``by_joints``, otherwise motions of the
        links; None if nothing moves."""
        terms = []
        for i, ratio in self.bodies:
            parent = -1 if by_joints else self._parent(i)
            if i in motions:
                terms.append(self._axis(i).dot(motions[i]) * ratio)
            if parent in motions:
                terms.append(self._axis(i).dot(self.joints[i].transform.motion_into(motions[parent])) * -ratio)
        return [sum(terms[1:], terms[0])] if terms else None

    def force_on(self, i: int, multipliers: Sequence[Scalar], by_joints: bool) -> Force | None:
        """The adjoint of ``rates``, at link i; None for an exact zero."""
        (multiplier,) = multipliers
        total = None
        for k, ratio in self.bodies if not is_zero(multiplier) else ():
            if k == i or (self._parent(k) == i and not by_joints):
                force = self._axis(k) * (multiplier * ratio)
                force = force if k == i else self.joints[k].transform.force_back(force) * -1.0
                total = force if total is None else total + force
        return total

    def curvature(self, biases: Mapping[int, Motion], velocities: Mapping[int, Motion]) -> list[Scalar]:
        """Second derivative for link ``velocities`` without accelerations: joint accelerations then cancel the bias
        accelerations of ``biases``."""
        taken_back = sum((self._axis(i).dot(biases[i]) * ratio for i, ratio in self.bodies), 0.0)
        return [self.turning([self._joint_rate(i, velocities) for i, _ in self.bodies]) - taken_back]

    def turning(self, rates: Sequence[Scalar]) -> Scalar:
        """dG/dt v, for the rates of its joints: zero except for ratios that depend on coordinates."""
        if not self.loop.ratios_change:
            return 0.0
        moved = [jet(x, rate) for x, rate in zip(self.coordinates, rates, strict=True)]
        if self.loop.relation is not None:
            return parts(self.loop.value_at(moved))[2]
        moving = self.loop.ratios_at(moved)
        return dot([parts(ratio)[1] for ratio in moving], rates)

    def _joint_rate(self, i: int, velocities: Mapping[int, Motion]) -> Scalar:
        """The rate of the joint of link i, from the velocities of links."""
        rate = self._axis(i).dot(velocities[i]) if i in velocities else 0.0
        parent = self._parent(i)
        if parent in velocities:
            rate = rate - self._axis(i).dot(self.joints[i].transform.motion_into(velocities[parent]))
        return rate

    def _parent(self, i: int) -> int:
        return self.joints[i].link.parent

    def _axis(self, i: int) -> Force:
        """The covector along H* whose product with the joint's motion is its rate."""
        (motion,) = self.joints[i].motion
        size = motion.angular.dot(motion.angular) + motion.linear.dot(motion.linear)
        return Force(motion.angular, motion.linear) * (1.0 / size)


def label_loop(loop: Constraint) -> AbstractContextManager[None]:
    """Label code of a loop or coupling."""
    return within(f"{AROUND_THE_LOOPS}: {loop.name}")


def constraint_path(at: Configuration, loop: Constraint) -> Walk | Tie:
    """The walk of one loop, or the tie of one coupling."""
    tree = at.tree
    if isinstance(loop, Loop):
        return walk(tree, at.joint_kinematics, loop)
    links = [tree.mechanism.body_index(joint) for joint, _ in loop.ratios]
    joint_coordinates = tuple(at.coordinates[i][0] for i in links)
    bodies = tuple(zip(links, loop.ratios_at(joint_coordinates), strict=True))
    rows, asked = tree.mechanism.constraints.rows(loop.name), tree.drives.get(loop.name)
    return Tie(loop, rows, bodies, joint_coordinates, at.joint_kinematics, asked)


def walk(tree: Tree, joint_kinematics: Sequence[JointKinematics], loop: Loop) -> Walk:
    """The path from A inward to the common link, then outward to B."""
    body_a, side_a = loop_side(tree, loop, loop.link_a, "pose_a")
    body_b, side_b = loop_side(tree, loop, loop.link_b, "pose_b")
    number = tree.mechanism.constraints.index(loop.name)
    loop = with_length(tree, number, loop)
    path_a, path_b = tree.mechanism.tree.path(body_a), tree.mechanism.tree.path(body_b)
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
    rows = tree.mechanism.constraints.rows(loop.name)
    return Walk(loop, rows, tuple(stations), moving, beyond(pose, side_b), tree.drives.get(loop.name))


def with_length(tree: Tree, number: int, loop: Loop) -> Loop:
    """The loop, with the length of a distance replaced if it is an input."""
    if (LENGTH, number) not in tree.sides:
        return loop
    length = np.asarray(tree.sides[LENGTH, number]).item()
    return with_numbers(loop, kind=with_numbers(loop.kind, length=length))


def loop_side(tree: Tree, loop: Loop, link: str, side: str) -> tuple[int, Transform]:
    """The body that carries one side of a loop, and the step from its internal frame to the joint's canonical axes.

    Constant frames on this path are multiplied, and their noise cleared, so that zeros stay zeros.
    """
    frame, number = tree.mechanism.frame(link), tree.mechanism.constraints.index(loop.name)
    frames = [(frame.rotation, frame.position)]
    if frame.body >= 0:
        user = tree.links[frame.body].user
        frames.insert(0, (np.array(user.rotation(), dtype=float), np.array(user.position(), dtype=float)))
    axes = (np.array(loop.kind.alignment), np.zeros(3))
    if (side, number) not in tree.sides:
        return frame.body, _multiplied([*frames, getattr(loop, side), axes])
    pose = np.asarray(tree.sides[side, number])
    to_side = Transform.from_pose(Matrix3.from_rows(pose[:3, :3].tolist()), Vector3(*pose[:3, 3].tolist()))
    return frame.body, _multiplied(frames).then(to_side).then(_multiplied([axes]))


def _multiplied(frames: Sequence[tuple[np.ndarray, np.ndarray]]) -> Transform:
    """The product of constant frames, each given in the previous one."""
    rotation, position, length = np.eye(3), np.zeros(3), 0.0
    for axes, origin in frames:
        rotation, position = rotation @ axes, rotation @ origin + position
        length += float(np.linalg.norm(origin))
    rotation, position = snapped(rotation), np.where(np.abs(position) < ROUND_OFF * length, 0.0, position)
    return Transform.from_pose(Matrix3.from_rows(rotation.tolist()), Vector3(*position.tolist()))


def _pose(transform: Transform) -> Pose:
    return transform.rotation(), transform.position()
