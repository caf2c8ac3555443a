"""The inverse of the mass matrix through its factors, M^-1 = (I - H psi K)* D^-1 (I - H psi K).

rodriguez1992 (46), jain1995 (5.7).  ``solve`` applies it to a joint vector in two sweeps once the
Riccati sweep has run.  Followers of mimic joints are tied to their leaders by a few extra solves.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..links.articulation import Articulation, Factor, articulate
from ..links.link import Crossing
from ..recursions.sweep import base_to_tip, tip_to_base
from ..recursions.tree import Tree
from ..scalar import Scalar, is_zero
from ..spatial import ArticulatedInertia, Force, Motion
from ..spatial.motion import NO_FORCE, NO_MOTION

JointVector = list[list[Scalar]]  # one list per joint, followers included


def articulations(tree: Tree, crossings: Sequence[Crossing]) -> list[Articulation]:
    """The Riccati sweep: P, D, G of every link."""

    def step(i: int, outer: list[ArticulatedInertia]) -> tuple[Articulation, ArticulatedInertia]:
        inertia = tree.links[i].inertia.articulated()
        for message in outer:
            inertia = inertia + message
        joint = articulate(crossings[i], inertia)
        return joint, crossings[i].transform.inertia_back(joint.remaining)  # type: ignore[return-value]

    return tip_to_base(tree.links, "articulated inertias", step)[0]


def solve(tree: Tree, joints: Sequence[Articulation], tau: JointVector, last: int | None = None) -> JointVector:
    """M^-1 tau for joints that do not follow each other; results beyond link ``last`` are not wanted."""

    def filter_step(i: int, outer: list[Force]) -> tuple[list[Scalar], Force]:
        force = NO_FORCE
        for message in outer:
            force = force + message
        innovation = joints[i].innovation(tau[i], force)
        if all(is_zero(x) for x in (*innovation, *force.flat())):
            return innovation, NO_FORCE
        return innovation, joints[i].crossing.transform.force_back(joints[i].absorb(force, innovation))

    innovations, _ = tip_to_base(tree.links, "innovations", filter_step)
    links = tree.links if last is None else tree.links[: last + 1]

    def smooth_step(i: int, parent: tuple[Motion, list[Scalar]] | None) -> tuple[Motion, list[Scalar]]:
        carried = joints[i].crossing.transform.motion_into(parent[0] if parent else NO_MOTION)
        own = joints[i].joint_acceleration(innovations[i], carried)
        return carried + joints[i].crossing.relative_motion(own), own

    return [own for _, own in base_to_tip(links, "accelerations", smooth_step)]


class Followers:
    """The ties of mimic joints: A a = 0 with one row (a_follower - ratio a_leader) per follower."""

    def __init__(self, tree: Tree, joints: Sequence[Articulation]):
        bodies = tree.mechanism.bodies
        self.ties = [(i, tree.mechanism.body_index(b.mimic.joint), b.mimic.ratio) for i, b in enumerate(bodies) if b.mimic]
        self.responses = [solve(tree, joints, self._pull(tree, tie)) for tie in self.ties]
        gram = [[self._slip(response, tie) for response in self.responses] for tie in self.ties]
        self.factor = Factor.of(gram)

    @staticmethod
    def _pull(tree: Tree, tie: tuple[int, int, float]) -> JointVector:
        follower, leader, ratio = tie
        tau: JointVector = [[0.0] * link.joint.nv for link in tree.links]
        tau[follower][0], tau[leader][0] = 1.0, -ratio
        return tau

    @staticmethod
    def _slip(a: JointVector, tie: tuple[int, int, float]) -> Scalar:
        follower, leader, ratio = tie
        return a[follower][0] - a[leader][0] * ratio

    def tie(self, a: JointVector) -> JointVector:
        """The accelerations once the ties act: a - M^-1 A* (A M^-1 A*)^-1 A a."""
        forces = self.factor.solve([self._slip(a, tie) for tie in self.ties])
        for response, force in zip(self.responses, forces, strict=True):
            a = [[x - r * force for x, r in zip(p, s, strict=True)] for p, s in zip(a, response, strict=True)]
        return a


def on_leaders(tree: Tree, tau: Sequence[Scalar]) -> JointVector:
    """Joint forces over the independent coordinates as forces of all joints: followers get none."""
    mechanism = tree.mechanism
    return [[0.0] if b.mimic else list(tau[mechanism.v_index(b.joint)]) for b in mechanism.bodies]


def of_leaders(tree: Tree, a: JointVector) -> list[Scalar]:
    """The independent coordinates' part of the accelerations of all joints."""
    return [x for body, part in zip(tree.mechanism.bodies, a, strict=True) if not body.mimic for x in part]


def mass_matrix_inverse(tree: Tree, q: Sequence[Scalar]) -> list[list[Scalar]]:
    """(nv, nv), symmetric: each column down to its own row, the rest by symmetry."""
    joints, mechanism = articulations(tree, tree.cross(q)), tree.mechanism
    followers = Followers(tree, joints) if any(b.mimic for b in mechanism.bodies) else None
    result: list[list[Scalar]] = [[0.0] * mechanism.nv for _ in range(mechanism.nv)]
    for i, body in enumerate(mechanism.bodies):
        for k in range(body.nv):
            column = mechanism.v_index(body.joint).start + k
            unit = [1.0 if j == column else 0.0 for j in range(mechanism.nv)]
            response = solve(tree, joints, on_leaders(tree, unit), last=None if followers else i)
            values = of_leaders(tree, followers.tie(response)) if followers else [x for part in response for x in part]
            for row in range(column + 1):
                result[row][column] = result[column][row] = values[row]
    return result
