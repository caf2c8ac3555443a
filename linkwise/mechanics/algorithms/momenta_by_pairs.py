"""Joint momenta of links that rotate in one plane, pair by pair: for few links the fewest operations.

In velocities omega of links relative to the base, in place of joint velocities, the kinetic energy is

    1/2 sum_j J_j omega_j^2 + sum_(a before j) (r_aj . h_j) omega_a omega_j

J_j and h_j are second and first moments of mass of link j about its joint, with the mass of each outer subtree at the
next joint.  r_aj leads, in link a, to the next joint on the path to link j.  The momenta conjugate to omega are
differences of joint momenta.  Each pair adds (r_aj x h_j) omega_a omega_j to the rate of one of them and subtracts it
from the rate of the other.  A joint's momentum sums the rates of its subtree, so that pairs cancel for the first
joints.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..recursions.rolled import LinksOfClasses, NotRolled
from ..recursions.tree import Configuration, Tree
from ..scalar import Matrix, Scalar, dot
from ..spatial import Force, Vector3
from .momentum_flows import Flow, FromLastToFirst


class FlowByPairs(Flow):
    """Motion from p, for a tree that ``rotates_in_a_plane``. Velocities do not depend on the first joint angles, so
    that sines and cosines are computed during divisions.
    """

    def __init__(self, tree: Tree, q: Sequence[Scalar], p: Sequence[Scalar]):
        if isinstance(tree.links, LinksOfClasses):
            raise NotRolled("links that are no neighbours make pairs")
        self._links, self._given = tree.links, list(p)
        self._parents = [link.parent for link in tree.links]
        self._paired: list[list[int]] = [[] for _ in tree.links]  # the links that each forms pairs with
        self._across: list[list[Scalar]] = [[] for _ in tree.links]  # r x h of these pairs, for the rate of momentum
        self._seen: list[tuple[int, Vector3]] = []  # the first link on the path to each, and h in its axes
        self._solved = FromLastToFirst(self._mass_matrix(tree.coordinates(q)), self._differences())
        super().__init__(Configuration(tree, q))

    @property
    def velocities(self) -> list[Scalar]:
        spins = self._solved.velocities
        return [w - spins[a] if a >= 0 else w for w, a in zip(spins, self._parents, strict=True)]

    @property
    def variables(self) -> list[Scalar]:
        return self._given

    def total_rates(self, normalized: bool) -> list[Scalar]:
        """(nv,): nu or xi, independent of the combination of velocities that are eliminated later."""
        return self._solved.total_rates(normalized)

    def _driven(self, pushes: Sequence[Force]) -> list[list[Scalar]]:
        spins, weights = self._solved.velocities, [self._weight(*seen) for seen in self._seen]
        driving = list(weights)
        for j, _ in self._children_first():
            driving[j] = spins[j] * dot(self._across[j], (spins[a] for a in self._paired[j])) + driving[j]
        for j, a in self._children_first():
            driving[a], weights[a] = driving[a] + driving[j], weights[a] + weights[j]
        carried = [x if a >= 0 else w for x, w, a in zip(driving, weights, self._parents, strict=True)]
        motions = (kinematics.motion[0] for kinematics in self.at.joint_kinematics)
        return [[x + push.dot(h)] for x, push, h in zip(carried, pushes, motions, strict=True)]

    def _weight(self, first: int, h: Vector3) -> Scalar:
        """The moment of the weight of a link, with h in the axes of the ``first`` link on the path to it."""
        transform = self.at.joint_kinematics[first].transform
        axis = transform.vector_back(Vector3(0.0, 0.0, 1.0))
        return transform.vector_back(h).cross(self.tree.gravity).dot(axis)

    # -- the mass matrix of velocities against the base ------------------------------------------------------

    def _mass_matrix(self, coordinates: Sequence[Sequence[Scalar]]) -> Matrix:
        """Its elements, and other quantities that depend on the directions of first moments."""
        n, moments = len(self._parents), self._moments_about_joints()
        matrix = [[0.0] * n for _ in range(n)]
        for j, (first, second) in enumerate(moments):
            (rotor,) = self._links[j].armature
            matrix[j][j] = matrix[j][j] + second + rotor
            on, h = j, first
            while (a := self._parents[on]) >= 0:
                transform = self._links[on].joint_kinematics(coordinates[on]).transform
                r, h = transform.position(), transform.vector_back(h)
                matrix[a][j] = h.x * r.x + h.y * r.y
                self._pair(a, j, r.x * h.y - r.y * h.x)
                on = a
            self._seen.append((on, h))
            if (a := self._parents[j]) >= 0:  # a rotor rotates with the joint, not with the link
                matrix[a][a], matrix[a][j] = matrix[a][a] + rotor, matrix[a][j] - rotor
        return [[matrix[min(i, j)][max(i, j)] for j in range(n)] for i in range(n)]

    def _pair(self, a: int, j: int, across: Scalar) -> None:
        for near, far, sign in ((a, j, 1.0), (j, a, -1.0)):
            self._paired[near].append(far)
            self._across[near].append(across * sign)

    def _moments_about_joints(self) -> list[tuple[Vector3, Scalar]]:
        """h and J of every link."""
        inertias = [link.inertia for link in self._links]
        mass, first, second = (list(part) for part in zip(*((x.mass, x.h, x.moment.zz) for x in inertias), strict=True))
        for j, a in self._children_first():
            r = self._links[j].place.position()
            mass[a], first[a] = mass[a] + mass[j], first[a] + r * mass[j]
            second[a] = second[a] + (r.x * r.x + r.y * r.y) * mass[j]
        return list(zip(first, second, strict=True))

    def _differences(self) -> list[Scalar]:
        """The momenta conjugate to velocities relative to the base."""
        differences = list(self._given)
        for j, a in enumerate(self._parents):
            if a >= 0:
                differences[a] = differences[a] - self._given[j]
        return differences

    def _children_first(self) -> Iterator[tuple[int, int]]:
        """Pairs of a link and its parent, children first."""
        return ((j, a) for j, a in reversed(list(enumerate(self._parents))) if a >= 0)
