"""Jacobians of one frame and how they change (spencer2004 Section 4.4.1), for all joints.

An observer stands at the world's origin ("world"), moves with the frame ("link"), or moves with the frame's origin and
does not turn ("world_aligned").  For this observer the column of a degree of freedom is the motion J = X h.  X is the
pose of the link that the joint moves, h a column of H*, constant in that link for most joints.  With W the motion of
that link relative to the observer,

    dJ/dt  = W x J + X dh/dt,
    d2J/dt2 = dW/dt x J + W x (dJ/dt + X dh/dt) + X d2h/dt2.

For an observer at rest W is the sum of J v over the joints up to the link; for one that moves with the frame it is
minus the sum over the joints further out.  spencer2004 has these sums inside recursions over the columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..jet import jet, parts
from ..links.link import combine
from ..recursions.sweep import base_to_tip, tip_to_base
from ..recursions.tree import Configuration, Tree
from ..scalar import Matrix, Scalar
from ..spatial import IDENTITY, ZERO, Motion, Vector3
from ..spatial.motion import NO_MOTION
from ..spatial.pose import Pose, beyond
from . import expressions as ex
from .algorithm import algorithm

OBSERVERS = "operators see each link in its own frame; observers elsewhere need poses"

Columns = dict[int, list[Motion]]  # of the links on the path to the frame, one per degree of freedom of their joint
FRAMES = ("link", "world", "world_aligned")
#: Synonyms: Pinocchio's ReferenceFrame, the space and body frames of textbooks.
OTHER_FRAMES = {
    "local": "link",
    "body": "link",
    "world": "world",
    "space": "world",
    "local_world_aligned": "world_aligned",
    "mixed": "world_aligned",
}


@algorithm(
    ("q",),
    options=("link", "frame"),
    expression=lambda mech, link, frame="link": ex.jacobian(mech, link) if frame == "link" else None,
    reason=OBSERVERS,
)
def jacobian(tree: Tree, q: Sequence[Scalar], link: str, frame: str = "link") -> Matrix:
    """(6, nv): [omega; v] of a frame per unit of v.

    ``frame`` "world": in world axes at the world's origin; "world_aligned": in world axes at the frame's origin.
    """
    observer = observe(tree, q, link, frame)
    return observer.matrix(observer.columns())


@algorithm(("q", "v"), options=("link", "frame"), reason=OBSERVERS)
def jacobian_rate(tree: Tree, q: Sequence[Scalar], v: Sequence[Scalar], link: str, frame: str = "link") -> Matrix:
    """(6, nv): dJ/dt while the mechanism moves with v."""
    observer = observe(tree, q, link, frame)
    columns, rates = observer.columns(), tree.velocities(v)
    relative = observer.relative({i: combine(columns[i], rates[i]) for i in columns})
    return observer.matrix(_propagated(relative, columns, observer.own_rates(rates)))


@algorithm(("q", "v", "a"), options=("link", "frame"), reason=OBSERVERS)
def jacobian_second_rate(
    tree: Tree, q: Sequence[Scalar], v: Sequence[Scalar], a: Sequence[Scalar], link: str, frame: str = "link"
) -> Matrix:
    """(6, nv): d2J/dt2 while the mechanism moves with v and v changes by a."""
    observer = observe(tree, q, link, frame)
    columns, rates, accelerations = observer.columns(), tree.velocities(v), tree.velocities(a)
    own_rates, own_second = observer.own_rates(rates), observer.own_second_rates(rates, accelerations)
    relative = observer.relative({i: combine(columns[i], rates[i]) for i in columns})
    first = _propagated(relative, columns, own_rates)
    relative_rate = observer.relative(
        {i: combine(columns[i], accelerations[i]) + combine(first[i], rates[i]) for i in columns}
    )
    own_rate = _propagated(relative, own_rates, own_second)
    second = {i: [relative[i].cross(x) + y for x, y in zip(first[i], own_rate[i], strict=True)] for i in first}
    return observer.matrix(_propagated(relative_rate, columns, second))


@algorithm(("q",), options=("link", "frame"), reason=OBSERVERS)
def jacobian_derivatives(tree: Tree, q: Sequence[Scalar], link: str, frame: str = "link") -> list[Matrix]:
    """(6, nv, nv): [:, j, k] is the change of column j along tangent direction k."""
    observer = observe(tree, q, link, frame)
    columns = observer.columns()
    slices = []
    sizes = [len(kinematics.motion) for kinematics in observer.at.joint_kinematics]
    for moved, size in enumerate(sizes):
        for k in range(size):
            if moved not in columns:
                slices.append(observer.matrix({}))
                continue
            rates = [[1.0 if (i, m) == (moved, k) else 0.0 for m in range(n)] for i, n in enumerate(sizes)]
            relative = observer.relative({moved: columns[moved][k]})
            slices.append(observer.matrix(_propagated(relative, columns, observer.own_rates(rates))))
    cells = [[[matrix[r][j] for matrix in slices] for j in range(tree.mechanism.nv)] for r in range(6)]
    return [[tree.collect(tree.per_joint(along)) for along in row] for row in cells]


def _propagated(relative: dict[int, Motion], columns: Columns, own_rates: Columns) -> Columns:
    """W x J plus the columns' own rates."""
    return {i: [relative[i].cross(x) + y for x, y in zip(columns[i], own_rates[i], strict=True)] for i in columns}


@dataclass(frozen=True)
class Observer:
    """An observer of the columns, and the poses of the links on the path to the frame relative to it, inner ones
    first."""

    at: Configuration
    frame: str
    poses: dict[int, Pose]
    place: Vector3  # point at which velocities are taken

    def motion(self, i: int, m: Motion) -> Motion:
        """A motion in link i's internal frame, in the observer's axes."""
        rotation, position = self.poses[i]
        angular = rotation @ m.angular
        return Motion(angular, rotation @ m.linear + angular.cross(self.place - position))

    def columns(self) -> Columns:
        return {i: [self.motion(i, h) for h in self.at.joint_kinematics[i].motion] for i in self.poses}

    def own_rates(self, rates: Sequence[Sequence[Scalar]]) -> Columns:
        """X dh/dt of joints that move with these rates."""
        at = self.at
        return {
            i: [self.motion(i, dh) for dh in at.joint_kinematics[i].link.joint.motion_rate(at.coordinates[i], rates[i])]
            for i in self.poses
        }

    def own_second_rates(self, rates: Sequence[Sequence[Scalar]], accelerations: Sequence[Sequence[Scalar]]) -> Columns:
        """X d2h/dt2 for joints with changing rates: second derivatives of h along the motion."""
        seen: Columns = {}
        for i in self.poses:
            joint, q = self.at.joint_kinematics[i].link.joint, self.at.coordinates[i]
            along = [jet(x, slope) for x, slope in zip(q, joint.q_rate(q, rates[i]), strict=True)]
            turning = joint.motion_rate(along, [jet(*pair) for pair in zip(rates[i], accelerations[i], strict=True)])
            seen[i] = [self.motion(i, Motion.of([parts(x)[1] for x in dh.flat()])) for dh in turning]
        return seen

    def relative(self, added: Mapping[int, Motion]) -> dict[int, Motion]:
        """W of every link on the path from motions ``added`` by its joints: summed from the world outward for an
        observer at rest, from the frame inward for a moving one."""
        outward, inward = {}, {}
        total = NO_MOTION
        for i in self.poses:
            outward[i] = total = total + added.get(i, NO_MOTION)
        total = NO_MOTION
        for i in reversed(self.poses):
            inward[i] = total
            total = total - added.get(i, NO_MOTION)
        turns = inward if self.frame == "link" else outward
        shifts = outward if self.frame == "world" else inward
        return {i: Motion(turns[i].angular, shifts[i].linear) for i in self.poses}

    def matrix(self, columns: Columns) -> Matrix:
        """(6, nv) from the columns of joints on the path. Other columns are zero; columns of mimic joints are added to
        those of their leaders.
        """
        flat = [
            column.flat()
            for i, kinematics in enumerate(self.at.joint_kinematics)
            for column in columns.get(i, [NO_MOTION] * len(kinematics.motion))
        ]
        return self.at.tree.independent_columns([[column[r] for column in flat] for r in range(6)])


def require_frame(frame: str) -> None:
    """Raise unless an observer of this name exists."""
    if frame not in FRAMES:
        meant = OTHER_FRAMES.get(str(frame).lower().rpartition(".")[2])
        hint = f": did you mean {meant!r}?" if meant else ""
        raise ValueError(f"frame must be 'link', 'world' or 'world_aligned', got {frame!r}{hint}")


def observe(tree: Tree, q: Sequence[Scalar], link: str, frame: str) -> Observer:
    """The poses of the links on the path to a frame: from the world outward, or from the frame inward."""
    require_frame(frame)
    at = Configuration(tree, q)
    body, last = at.to_frame(link)
    path = tree.mechanism.tree.path(body)
    if frame == "link":
        return Observer(at, frame, _inward(at, path, beyond((IDENTITY, ZERO), last.inverse())), ZERO)
    poses = _outward(at, path)
    return Observer(at, frame, poses, beyond(poses[body], last)[1] if path and frame == "world_aligned" else ZERO)


def _outward(at: Configuration, path: Sequence[int]) -> dict[int, Pose]:
    def step(i: int, parent: Pose | None) -> Pose | None:
        return beyond(parent or (IDENTITY, ZERO), at.joint_kinematics[i].transform) if i in path else None

    poses = base_to_tip(at.tree.links, "poses", step)
    return {i: pose for i, pose in enumerate(poses) if pose is not None}


def _inward(at: Configuration, path: Sequence[int], pose_of_last: Pose) -> dict[int, Pose]:
    def step(i: int, outer: list[Pose | None]) -> tuple[Pose | None, Pose | None]:
        pose = pose_of_last if i == path[-1] else next((x for x in outer if x is not None), None)
        return pose, pose and beyond(pose, at.joint_kinematics[i].transform.inverse())

    poses, _ = tip_to_base(at.tree.links if path else (), "poses", step)
    return {i: pose for i, pose in enumerate(poses) if pose is not None}
