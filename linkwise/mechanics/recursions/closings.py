"""Constraints as equations between the two links that they join, in accelerations of these links alone.

Poses and velocities of a cluster's links are computed once, relative to the link that carries it.  The cost of a loop's
equation is then independent of the length of the loop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...mechanism import Loop
from ...mechanism.clusters import Cluster
from ..links.kinematics import AngularVelocity, bias_of_shift, velocity_base_to_tip
from ..scalar import Scalar, dot
from ..spatial import Force, Motion
from ..spatial.motion import NO_MOTION
from ..spatial.pose import Pose, beyond
from ..spatial.three import IDENTITY, ZERO
from .loops import Station, Tie, Walk, constraint_path, loop_side, with_length
from .tree import Configuration


@dataclass(frozen=True)
class Closing:
    """One loop or coupling: the sum over links of force . acceleration, plus the sum over joints of ratio times
    acceleration, plus bias, is zero; row by row.

    loop     index among the constraints of the mechanism
    rows     among all constraints
    on       by link (including the cluster's parent, -1 for the ground): a force per row, in its internal frame
    joints   (link, ratio): joints with one coordinate, for a coupling
    bias     by row, with accelerations of links for an inertial observer
    errors   by row: closure error and its rate
    rates    by row, less the prescribed rate of a drive
    aims     by row: the prescribed rate of a drive
    """

    loop: int
    rows: tuple[int, ...]
    on: Mapping[int, list[Force]]
    joints: tuple[tuple[int, Scalar], ...]
    bias: list[Scalar]
    errors: list[Scalar]
    rates: list[Scalar]
    aims: list[Scalar]


def closings(
    at: Configuration,
    cluster: Cluster,
    spins: Sequence[AngularVelocity],
    v: Sequence[Scalar],
) -> list[Closing]:
    """The constraint equations of a cluster."""
    around = _RelativeLinks(at, cluster, spins, v)
    return [around.closing(number) for number in cluster.loops]


class _RelativeLinks:
    """Poses (6 numbers each) and velocities of the links of a cluster relative to the link that carries it."""

    def __init__(
        self, at: Configuration, cluster: Cluster, spins: Sequence[AngularVelocity], v: Sequence[Scalar]
    ) -> None:
        self.at, self.spins = at, spins
        self.velocities_of_joints = at.tree.velocities(v)
        self.poses: dict[int, Pose] = {cluster.parent: (IDENTITY, ZERO)}
        self.velocities: dict[int, Motion] = {cluster.parent: NO_MOTION}
        mech = at.tree.mechanism
        needed: set[int] = set()
        for number in cluster.loops:
            for link in mech.loops[number].links:
                needed.update(mech.tree.path(mech.frame(link).body))
        for i in cluster.bodies:
            if i in needed:
                kinematics, parent = at.joint_kinematics[i], mech.tree.parents[i]
                self.poses[i] = beyond(self.poses[parent], kinematics.transform)
                self.velocities[i] = velocity_base_to_tip(
                    kinematics, self.velocities[parent], self.velocities_of_joints[i]
                )

    def closing(self, number: int) -> Closing:
        loop = self.at.tree.mechanism.loops[number]
        rows = self.at.tree.mechanism.constraints.rows(loop.name)
        numbers = tuple(range(rows.start, rows.stop))
        if not isinstance(loop, Loop):
            path = constraint_path(self.at, loop)
            assert isinstance(path, Tie)
            rates = [self.velocities_of_joints[i][0] for i, _ in path.bodies]
            aim = path.aim
            rate = dot((ratio for _, ratio in path.bodies), rates) - aim.velocity
            bias = path.turning(rates) - aim.acceleration
            return Closing(number, numbers, {}, path.bodies, [bias], path.closure(), [rate], [aim.velocity])
        return self._link_closing(number, numbers, loop)

    def _link_closing(self, number: int, numbers: tuple[int, ...], loop: Loop) -> Closing:
        tree = self.at.tree
        (a, side_a), (b, side_b) = (loop_side(tree, loop, link, pose) for link, pose in _sides(loop))
        world_a, world_b = (beyond(self.poses[i], side) for i, side in ((a, side_a), (b, side_b)))
        inverse = world_a[0].T
        end = inverse.times(world_b[0]), inverse @ (world_b[1] - world_a[1])
        # Each link's internal frame, in the axes of side A.
        from_a = _inverted((side_a.rotation(), side_a.position()))
        rotation = inverse.times(self.poses[b][0])
        to_b = rotation, inverse @ (self.poses[b][1] - world_a[1])
        sides = (Station(a, -1.0, from_a), Station(b, 1.0, to_b)) if a != b else ()
        where = tree.mechanism.constraints.rows(loop.name)
        walk = Walk(with_length(tree, number, loop), where, (), sides, end, tree.drives.get(loop.name))
        velocity = NO_MOTION
        for station in sides:
            velocity = velocity + walk.relative_motion(station, self.velocities[station.link])
        aim = walk.aim
        rates = [x - aim.velocity for x in walk.closure_rate(velocity)]
        bias = [x - aim.acceleration for x in walk.curvature(velocity, self._swinging(walk, velocity))]
        on: dict[int, list[Force]] = {}
        for station in sides:
            on[station.link] = [walk.force_on_link(station, row) for row in walk.gradient]
        return Closing(number, numbers, on, (), bias, walk.closure(), rates, [aim.velocity] * len(numbers))

    def _swinging(self, walk: Walk, velocity: Motion) -> Motion:
        """The rate of the relative velocity along A's axes, for zero accelerations of the links."""
        total = NO_MOTION
        turning = ZERO  # of A, along its own axes
        for station in walk.sides:
            if station.link < 0:
                continue
            rotation, position = station.pose
            arm = rotation.T @ (walk.end[1] - position)  # to B's origin, in link axes
            swing = rotation @ bias_of_shift(self.spins[station.link].omega, arm).linear
            total = Motion(ZERO, total.linear + swing * station.sense)
            if station.sense < 0.0:
                turning = rotation @ self.spins[station.link].omega
        carried = turning.cross(velocity.linear)
        return Motion(turning.cross(velocity.angular) * -1.0, total.linear - (carried + carried))


def _sides(loop: Loop) -> tuple[tuple[str, str], tuple[str, str]]:
    return (loop.link_a, "pose_a"), (loop.link_b, "pose_b")


def _inverted(pose: Pose) -> Pose:
    rotation, position = pose
    return rotation.T, -(rotation.T @ position)
