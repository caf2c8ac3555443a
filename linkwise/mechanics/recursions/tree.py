"""The tree of links in internal frames: a mechanism's numbers, each a constant or a traced parameter; and the tree at
one configuration."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np

from ...mechanism import Mechanism
from ...mechanism.drives import Instant
from ...mechanism.elements import NUMBERS_THAT_ACT
from ..links.articulation import Articulation, articulate
from ..links.link import JointKinematics, Link
from ..links.mobility import IMMOBILE, Matrix6, free_joint, propagate_mobility, respond
from ..scalar import Scalar, is_constant, transposed
from ..spatial import (
    ArticulatedInertia,
    Matrix3,
    Motion,
    RigidInertia,
    Symmetric3,
    Transform,
    Translation,
    Vector3,
    orientation,
)
from ..spatial.three import ZERO
from .frames import FrameChoice, Placement, canonical_steps, chosen_and_placed
from .loops import LENGTH, SIDES, Tie, Walk, constraint_path, label_loop
from .neighbours import Neighbours, TreeNeighbours
from .pairs import DenseMatrixOfDofs, Inwards, InwardsOnTree, MatrixOfDofs, OfColumns
from .rolled import LinksOfClasses, RolledMatrixOfDofs

Parameters = Mapping[
    tuple[str, int], Any
]  # ("mass", body) -> traced value in the shape of the constant; body -1: world


@dataclass(frozen=True)
class Tree:
    """Links parents first, gravity in the ground frame, indices of each link's coordinates, and prescribed motions."""

    mechanism: Mechanism
    links: tuple[Link, ...]
    gravity: Vector3
    drives: Mapping[str, Sequence[Scalar]] = field(default_factory=dict, kw_only=True)
    #: Sides of loops that are inputs, ("pose_a", loop) and ("pose_b", loop), as poses (4, 4); and lengths of distances,
    #: ("length", loop).
    sides: Parameters = field(default_factory=dict, kw_only=True)
    #: Parameters of force elements that are inputs: ("damping", body), ("contact_friction", pair).
    numbers_that_act: Parameters = field(default_factory=dict, kw_only=True)

    @property
    def original(self) -> Mechanism:
        """The full mechanism, of which ``mechanism`` may be a part with one body per class."""
        return self.mechanism

    def coordinates(self, q: Sequence[Scalar]) -> list[list[Scalar]]:
        """Coordinates of each joint; a mimic joint has its leader's, scaled and offset."""
        parts = []
        for body in self.mechanism.bodies:
            part = list(q[self.mechanism.q_index(body.joint)])
            parts.append([part[0] * body.mimic.ratio + body.mimic.offset] if body.mimic else part)
        return parts

    def velocities(self, v: Sequence[Scalar]) -> list[list[Scalar]]:
        """Each joint's part of a tangent vector (velocity or acceleration)."""
        return [self.joint_velocities(i, v) for i in range(len(self.links))]

    def joint_velocities(self, i: int, v: Sequence[Scalar]) -> list[Scalar]:
        """Velocities of the joint of link i."""
        body = self.mechanism.bodies[i]
        part = list(v[self.mechanism.v_index(body.joint)])
        return [part[0] * body.mimic.ratio] if body.mimic else part

    def collect(self, parts: Sequence[Sequence[Scalar]]) -> list[Scalar]:
        """Forces of all joints as a vector over independent coordinates: a mimic joint's force acts on its leader."""
        total: list[Scalar] = [0.0] * self.mechanism.nv
        for body, part in zip(self.mechanism.bodies, parts, strict=True):
            start = self.mechanism.v_index(body.joint).start
            ratio = body.mimic.ratio if body.mimic else 1.0
            for k, value in enumerate(part):
                total[start + k] = total[start + k] + value * ratio
        return total

    def per_joint(self, flat: Sequence[Scalar]) -> list[list[Scalar]]:
        """A flat vector over all joints, mimic joints included, split by joint."""
        numbers = iter(flat)
        return [[next(numbers) for _ in range(link.joint.nv)] for link in self.links]

    def independent_columns(self, matrix: Sequence[Sequence[Scalar]]) -> list[list[Scalar]]:
        """A matrix over all joints (columns) reduced to the independent coordinates: X S."""
        return [self.collect(self.per_joint(row)) for row in matrix]

    def independent_rows(self, matrix: Sequence[Sequence[Scalar]]) -> list[list[Scalar]]:
        """S* X."""
        return transposed(self.independent_columns(transposed(matrix)))

    def independent_block(self, matrix: Sequence[Sequence[Scalar]]) -> list[list[Scalar]]:
        """S* X S."""
        return self.independent_rows(self.independent_columns(matrix))

    def joint_kinematics(self, q: Sequence[Scalar]) -> list[JointKinematics]:
        """Every joint at its coordinates."""
        return [link.joint_kinematics(part) for link, part in zip(self.links, self.coordinates(q), strict=True)]

    @cached_property
    def neighbours(self) -> Neighbours:
        """Exchange of values between the tree's links."""
        return TreeNeighbours(self.mechanism.tree.parents, self.mechanism.tree.children)

    def inwards(self) -> Inwards:
        """The inward propagation of values for each degree of freedom."""
        return InwardsOnTree(self.mechanism.tree.parents)

    def matrix_of_dofs(self) -> MatrixOfDofs:
        """A matrix of zeros, to be filled."""
        return DenseMatrixOfDofs(self.dof_starts, self.dofs)

    def reduce_to_coordinates(self, matrix: MatrixOfDofs) -> Any:
        """A filled matrix, reduced to the independent coordinates."""
        assert isinstance(matrix, DenseMatrixOfDofs)
        return self.independent_block(matrix.rows)

    def each_column(self, matrices: Sequence[Any], function: OfColumns) -> list[Any]:
        """Matrices over the joints, with columns ``function`` of the columns of others; None: of the identity."""
        identity = [[1.0 if r == c else 0.0 for c in range(self.dofs)] for r in range(self.dofs)]
        columns = zip(*(transposed(identity if matrix is None else matrix) for matrix in matrices), strict=True)
        results = [function([list(column) for column in of_all]) for of_all in columns]
        flat = [[[x for part in values for x in part] for values in of_one] for of_one in results]
        return [transposed([of_one[k] for of_one in flat]) for k in range(len(matrices))]

    @cached_property
    def dof_starts(self) -> tuple[int, ...]:
        """Index at which each joint's degrees of freedom begin in a vector over all joints, mimic joints included."""
        return (0, *accumulate(link.joint.nv for link in self.links))[:-1]

    @property
    def dofs(self) -> int:
        """Length of a vector over all joints, mimic joints included."""
        return sum(link.joint.nv for link in self.links)

    @property
    def base_acceleration(self) -> Motion:
        """Acceleration of the ground upwards, in place of gravity downwards."""
        return Motion(ZERO, -self.gravity)

    @cached_property
    def regrouped(self) -> Tree:
        """The tree with inertia regrouped to parents for fewer operations; mass matrix, D and G do not change."""
        return self.with_links(link.with_inertias(link.regrouped, link.regrouped) for link in self.links)

    def with_links(self, links: Iterable[Link]) -> Tree:
        """A copy of the tree with other links."""
        return dataclasses.replace(self, links=tuple(links))


@dataclass(frozen=True)
class RolledTree(Tree):
    """One link for each class of links of the ``full`` mechanism; ``mechanism`` has a body for each."""

    links: LinksOfClasses
    full: Mechanism

    @property
    def original(self) -> Mechanism:
        return self.full

    @property
    def neighbours(self) -> Neighbours:
        return self.links.rolling

    def inwards(self) -> Inwards:
        return self.links.rolling.inwards()

    def matrix_of_dofs(self) -> MatrixOfDofs:
        return RolledMatrixOfDofs()

    def reduce_to_coordinates(self, matrix: MatrixOfDofs) -> Any:
        return matrix

    def each_column(self, matrices: Sequence[Any], function: OfColumns) -> list[Any]:
        return self.links.rolling.each_column(matrices, [link.joint.nv for link in self.links], function)

    def with_links(self, links: Iterable[Link]) -> RolledTree:
        return dataclasses.replace(self, links=LinksOfClasses.of(links, self.links.rolling))


class Configuration:
    """A tree at one configuration: quantities independent of vectors, each computed once."""

    def __init__(self, tree: Tree, q: Sequence[Scalar]):
        self.tree = tree
        self.coordinates = tree.coordinates(q)
        self.joint_kinematics: Sequence[JointKinematics] = self._all_joints()
        self.neighbours = tree.neighbours
        self._inertias: dict[int, ArticulatedInertia] = {}
        self._joints: dict[int, Articulation] = {}
        self._composites: dict[tuple[int, bool], RigidInertia] = {}
        self._mobilities: dict[int, Matrix6] = {}
        self._responses: dict[int, list[Motion]] = {}
        self._ways: dict[int, Walk | Tie] = {}

    def _all_joints(self) -> Sequence[JointKinematics]:
        return [self._joint(i) for i in range(len(self.tree.links))]

    def _joint(self, i: int) -> JointKinematics:
        return self.tree.links[i].joint_kinematics(self.coordinates[i])

    def articulated(self, i: int) -> ArticulatedInertia:
        """P of link i (jain1995 4.8)."""
        if i not in self._inertias:
            inertia, key = self.tree.links[i].inertia.articulated(), (self, "P+")
            self._inertias[i] = self.neighbours.from_children(i, key, self._remaining_behind, inertia)
        return self._inertias[i]

    def _remaining_behind(self, i: int) -> ArticulatedInertia:
        """P+ of link i, moved to its parent."""
        return self.joint_kinematics[i].transform.inertia_back(self.articulation(i).remaining)

    def articulation(self, i: int) -> Articulation:
        """D, G and P+ of link i (jain1995 4.8)."""
        if i not in self._joints:
            self._joints[i] = articulate(self.joint_kinematics[i], self.articulated(i))
        return self._joints[i]

    def composite(self, i: int, regrouped: bool = False) -> RigidInertia:
        """Inertia of link i with its subtree, joints frozen (rodriguez1992 28)."""
        if (i, regrouped) not in self._composites:
            link = self.tree.links[i]
            inertia = link.regrouped if regrouped else link.inertia

            def behind(c: int) -> RigidInertia:
                return self.joint_kinematics[c].transform.inertia_back(self.composite(c, regrouped))

            key = (self, "C", regrouped)
            self._composites[i, regrouped] = self.neighbours.from_children(i, key, behind, inertia)
        return self._composites[i, regrouped]

    def mobility(self, i: int) -> Matrix6:
        """Response of link i to a force on it (rodriguez1986 Section 10)."""
        if i not in self._mobilities:
            propagated = propagate_mobility(self.joint_kinematics[i].transform, self._parent_mobility(i))
            self._mobilities[i] = free_joint(self.articulation(i), propagated)
        return self._mobilities[i]

    def _parent_mobility(self, i: int) -> Matrix6:
        return self.neighbours.from_parent(i, (self, "Y"), self.mobility) or IMMOBILE

    def response_to_gain(self, i: int) -> list[Motion]:
        """Y_parent K_i: how the parent of link i responds to the columns of K (rodriguez1986 Section 10)."""
        if i not in self._responses:
            back, mobility = self.joint_kinematics[i].transform.force_back, self._parent_mobility(i)
            self._responses[i] = [respond(mobility, back(g)) for g in self.articulation(i).gain]
        return self._responses[i]

    @cached_property
    def ways(self) -> list[Walk | Tie]:
        """The paths around the loops, and the couplings."""
        return [self.way(k) for k in range(len(self.tree.mechanism.loops))]

    def way(self, k: int) -> Walk | Tie:
        """The path around a loop, or the coupling."""
        if k not in self._ways:
            loop = self.tree.mechanism.loops[k]
            with label_loop(loop):
                self._ways[k] = constraint_path(self, loop)
        return self._ways[k]

    def to_frame(self, name: str) -> tuple[int, Transform]:
        """The link that carries a named frame, and the transform from its internal frame."""
        frame = self.tree.mechanism.frame(name)
        fixed = Transform.from_pose(Matrix3.from_rows(frame.rotation.tolist()), Vector3(*frame.position.tolist()))
        return frame.body, fixed if frame.body < 0 else self.tree.links[frame.body].user.then(fixed)


class LazyConfiguration(Configuration):
    """A configuration whose joint kinematics are computed when a sweep first needs them, so that sines and cosines of
    the next joint overlap with divisions of the last.
    """

    def _all_joints(self) -> Sequence[JointKinematics]:
        return _LazyValues(len(self.tree.links), self._joint)


class _LazyValues(Sequence[Any]):
    """``count`` values, each made on first use."""

    def __init__(self, count: int, make: Callable[[int], Any]):
        self._made: list[Any] = [None] * count
        self._make = make

    def __len__(self) -> int:
        return len(self._made)

    def __getitem__(self, i: Any) -> Any:
        if self._made[i] is None:
            self._made[i] = self._make(i)
        return self._made[i]


def build_tree(mechanism: Mechanism, parameters: Parameters | None = None, at_user_origins: bool = False) -> Tree:
    """The tree of a mechanism.  Numbers named in ``parameters`` replace the mechanism's own.

    ``at_user_origins`` keeps every link's internal frame at the user's origin, for results that depend on it.
    """
    known = parameters or {}
    bodies = range(len(mechanism.bodies))
    held = {i for i in bodies if at_user_origins or ("pose", i) in known}
    held |= {mechanism.tree.parents[i] for i in held}
    steps = canonical_steps(mechanism)
    choices, placements = chosen_and_placed(mechanism, set(bodies) - held, steps)
    links = _regroup([_link(mechanism, i, choices, placements[i], known) for i in bodies])
    gravity = _vector(known.get(("gravity", -1), mechanism.gravity))
    acting = {key: value for key, value in known.items() if key[0] in NUMBERS_THAT_ACT}
    sides = {key: value for key, value in known.items() if key[0] in (*SIDES, LENGTH)}
    return Tree(mechanism, links, gravity, drives=_drives(mechanism, known), sides=sides, numbers_that_act=acting)


def _drives(mechanism: Mechanism, parameters: Parameters) -> dict[str, Sequence[Scalar]]:
    """Positions, velocities and accelerations that drives prescribe, by loop; empty without a known time."""
    known: dict[str, Sequence[Scalar]] = {}
    for k, loop in enumerate(mechanism.loops):
        if ("drive", k) in parameters:
            known[loop.name] = list(parameters["drive", k])
        elif isinstance(loop.drive, Instant):
            known[loop.name] = list(loop.drive)
    return known


def _regroup(links: list[Link]) -> tuple[Link, ...]:
    """Move inertia inwards from tip to base if all numbers are constants; inertia at the ground affects no joint."""
    inertias = [link.inertia for link in links]
    constant = [all(map(is_constant, inertia.numbers)) for inertia in inertias]
    for i in reversed(range(len(links))):
        parent, transform = links[i].parent, links[i].place
        if not constant[i] or (parent >= 0 and not (constant[parent] and transform.is_constant)):
            continue
        handed = links[i].joint.regroupable(inertias[i])
        inertias[i] = inertias[i] - handed
        if parent >= 0:
            inertias[parent] = inertias[parent] + transform.inertia_back(handed)
    return tuple(link.with_inertias(link.inertia, inertia) for link, inertia in zip(links, inertias, strict=True))


def _link(mechanism: Mechanism, i: int, choices: list[FrameChoice], placement: Placement, known: Parameters) -> Link:
    body = mechanism.bodies[i]
    spin, quarter_turns = 0.0, 0
    if ("pose", i) in known:
        step = _traced_place(mechanism, i, choices, np.asarray(known["pose", i]))
    else:
        step = Transform(
            (
                *_shift(placement.first_shift),
                *orientation(_matrix(placement.rotation)),
                *_shift(placement.second_shift),
            )
        )
        spin, quarter_turns = placement.spin, placement.quarter_turns
    user = _internal_to_user(mechanism, i, choices[i])
    inertia = RigidInertia.about_com(
        _scalar(known.get(("mass", i), body.mass)),
        _vector(known.get(("com", i), body.com)),
        Symmetric3.from_rows(np.asarray(known.get(("inertia", i), body.inertia)).tolist()),
    )
    internal = _remove_noise(user.inertia_back(inertia))
    armature = tuple(np.atleast_1d(known.get(("armature", i), body.armature)).tolist())
    return Link(body.link, body.parent, body.kind, step, spin, quarter_turns, internal, internal, armature, user)


def _remove_noise(inertia: RigidInertia) -> RigidInertia:
    """Constants that are only rounding errors of a change of frame become exact zeros."""

    def clean(numbers: Sequence[Scalar]) -> list[Scalar]:
        noise = 1e-14 * max((abs(x) for x in numbers if is_constant(x)), default=0.0)
        return [0.0 if is_constant(x) and -noise < x < noise else x for x in numbers]

    return RigidInertia(inertia.mass, Vector3(*clean(inertia.h)), Symmetric3(*clean(inertia.moment)))


def _internal_to_user(mechanism: Mechanism, i: int, choice: FrameChoice) -> Transform:
    """From the internal frame to the user's link frame: undo C Tz(slide) Rz(turn)."""
    turn, slide = choice.matrices()
    alignment = np.array(mechanism.bodies[i].kind.alignment)
    return Transform((*_shift(-(turn.T @ slide)), *orientation(_matrix((alignment @ turn).T))))


def _traced_place(mechanism: Mechanism, i: int, choices: list[FrameChoice], pose: np.ndarray) -> Transform:
    """The placement of a joint whose pose is an input: the user's frames are kept on both sides."""
    body = mechanism.bodies[i]
    steps = Transform()
    if body.parent >= 0:
        steps = _internal_to_user(mechanism, body.parent, choices[body.parent])
    steps = steps.then(Transform.from_pose(_matrix(pose[:3, :3]), _vector(pose[:3, 3])))
    return steps.then(Transform(orientation(_matrix(np.array(body.kind.alignment)))))


def _shift(values: np.ndarray) -> tuple[Translation, ...]:
    x, y, z = values.tolist()
    return (Translation(Vector3(x, y, z)),) if x or y or z else ()


def _scalar(value: Any) -> Scalar:
    return value.item() if isinstance(value, (np.ndarray, np.generic)) else value


def _vector(values: Any) -> Vector3:
    return Vector3(*np.asarray(values).tolist())


def _matrix(values: np.ndarray) -> Matrix3:
    return Matrix3.from_rows(values.tolist())
