"""Clusters in the sweeps of forward dynamics: composite bodies inside a cluster, articulated bodies between them.

A cluster of links coupled by loops or mimic joints acts on its parent like a single link.  Links are replaced by the
articulated inertias of outer clusters on them.  The mass matrix M and the forces F of its columns on the parent come
from composite bodies, a = K y + k are the allowed accelerations, and then

    D = K* M K,   P+ = C - (F K) D^-1 (F K)*,   z+ = f + (F K) D^-1 eps

with C the composite inertia and f the force of the motion k (local constraint embedding).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...mechanism.clusters import Cluster
from ..links.factor import Factor
from ..links.forces import inertial_force
from ..links.kinematics import AngularVelocity, propagate_acceleration
from ..links.link import JointKinematics
from ..links.loop_elimination import Solution
from ..scalar import Matrix, Scalar, dot, is_zero
from ..spatial import ArticulatedInertia, Force, Motion, RigidInertia
from ..spatial.motion import NO_FORCE, NO_MOTION
from .tree import Configuration

Inertia = RigidInertia | ArticulatedInertia
Column = tuple[int, int]  # link and degree of freedom of its joint


@dataclass(frozen=True)
class Load:
    """Load of outer clusters on a link: articulated inertia, and force, which includes external wrenches."""

    inertia: ArticulatedInertia | None = None
    force: Force | None = None

    def with_part(self, inertia: ArticulatedInertia, force: Force) -> Load:
        return Load(
            inertia if self.inertia is None else self.inertia + inertia,
            force if self.force is None else self.force + force,
        )


class ClusterDynamics:
    """One cluster at one state, with the loads on its links."""

    def __init__(self, at: Configuration, cluster: Cluster, spins: Sequence[AngularVelocity], loads: Sequence[Load]):
        self.at, self.cluster, self.spins, self.loads = at, cluster, spins, loads
        self.links = at.tree.links
        self.inside = frozenset(cluster.bodies)
        self.columns: list[Column] = [(i, k) for i in cluster.bodies for k in range(self.links[i].joint.nv)]

    # -- places -----------------------------------------------------------------------------------------

    def kinematics(self, i: int) -> JointKinematics:
        return self.at.joint_kinematics[i]

    def coordinate(self, column: Column) -> tuple[int, Scalar]:
        """The index in v of a joint's degree of freedom, and the ratio to this coordinate."""
        body = self.at.tree.mechanism.bodies[column[0]]
        return self.at.tree.mechanism.v_index(body.joint).start + column[1], body.mimic.ratio if body.mimic else 1.0

    def joint_values(self, coordinates: Mapping[int, Scalar]) -> dict[int, list[Scalar]]:
        """Values of the joints of the cluster's links, from a vector over coordinates."""
        values: dict[int, list[Scalar]] = {i: [] for i in self.cluster.bodies}
        for column in self.columns:
            coordinate, ratio = self.coordinate(column)
            values[column[0]].append(coordinates[coordinate] * ratio)
        return values

    # -- composite bodies -------------------------------------------------------------------------------

    def composites(self) -> tuple[dict[int, Inertia], Inertia | None]:
        """Composite inertia of every link with locked joints beyond it, and of the whole cluster at its parent."""
        sums: dict[int, Inertia] = {}
        for i in self.cluster.bodies:
            load = self.loads[i].inertia
            sums[i] = self.links[i].inertia if load is None else self.links[i].inertia.articulated() + load
        total: Inertia | None = None
        for i in reversed(self.cluster.bodies):
            parent = self.links[i].parent
            if parent in self.inside:
                sums[parent] = _sum(sums[parent], self._inertia_at_parent(i, sums[i]))
            elif parent >= 0:
                moved = self._inertia_at_parent(i, sums[i])
                total = moved if total is None else _sum(total, moved)
        return sums, total

    def _inertia_at_parent(self, i: int, inertia: Inertia) -> Inertia:
        """An inertia at link i, in its parent's frame."""
        transform = self.kinematics(i).transform
        if isinstance(inertia, RigidInertia):
            return transform.inertia_back(inertia)
        return transform.inertia_back(inertia)

    def mass_matrix(self, composites: Mapping[int, Inertia]) -> tuple[dict[tuple[int, int], Scalar], dict[int, Force]]:
        """M over coordinates, both triangles; and by coordinate the force on the parent link."""
        mass: dict[tuple[int, int], Scalar] = {}
        on_parent: dict[int, Force] = {}

        def add(a: Column, b: Column, value: Scalar) -> None:
            (p, r), (s, t) = self.coordinate(a), self.coordinate(b)
            for entry in ((p, s), (s, p)) if a != b else ((p, s),):
                mass[entry] = mass.get(entry, 0.0) + value * (r * t)

        for column in self.columns:
            i, k = column
            force = composites[i] @ self.kinematics(i).motion[k]
            for m in range(k + 1):
                inertia = force.dot(self.kinematics(i).motion[m])
                add((i, m), column, inertia + self.links[i].armature[k] if m == k else inertia)
            j = i
            while self.links[j].parent in self.inside:
                force, j = self.kinematics(j).transform.force_back(force), self.links[j].parent
                for m, motion in enumerate(self.kinematics(j).motion):
                    add((j, m), column, force.dot(motion))
            if self.cluster.parent >= 0:
                coordinate, ratio = self.coordinate(column)
                moved = self.kinematics(j).transform.force_back(force) * ratio
                on_parent[coordinate] = on_parent[coordinate] + moved if coordinate in on_parent else moved
        return mass, on_parent

    # -- motion along k ---------------------------------------------------------------------------------

    def accelerations(self, parent: Motion, rates: Mapping[int, Scalar]) -> dict[int, Motion]:
        """Accelerations of the links, from the accelerations of the parent and of the coordinates."""
        motions: dict[int, Motion] = {}
        joint_rates = self.joint_values(rates)
        for i in self.cluster.bodies:
            before = motions.get(self.links[i].parent, parent)
            behind = propagate_acceleration(self.kinematics(i), self.spins[i], before)
            motions[i] = behind + self.kinematics(i).relative_motion(joint_rates[i])
        return motions

    def forces(self, parent: Motion, rates: Mapping[int, Scalar]) -> tuple[dict[int, Scalar], Force]:
        """Inverse dynamics of the cluster: forces on coordinates, and the force on the parent link."""
        accelerations, joint_rates = self.accelerations(parent, rates), self.joint_values(rates)
        total = {i: self._force_on(i, accelerations[i]) for i in self.cluster.bodies}
        joint_forces: dict[int, Scalar] = dict.fromkeys(self.cluster.coordinates, 0.0)
        on_parent = NO_FORCE
        for i in reversed(self.cluster.bodies):
            for k, motion in enumerate(self.kinematics(i).motion):
                coordinate, ratio = self.coordinate((i, k))
                felt = total[i].dot(motion) + self.links[i].armature[k] * joint_rates[i][k]
                joint_forces[coordinate] = joint_forces[coordinate] + felt * ratio
            if self.links[i].parent in self.inside:
                total[self.links[i].parent] += self.kinematics(i).transform.force_back(total[i])
            elif self.cluster.parent >= 0:
                on_parent = on_parent + self.kinematics(i).transform.force_back(total[i])
        return joint_forces, on_parent

    def _force_on(self, i: int, acceleration: Motion) -> Force:
        """Inertial force of a link with its load."""
        force = inertial_force(self.links[i].inertia, self.spins[i].omega, acceleration)
        load = self.loads[i]
        if load.inertia is not None:
            force = force + load.inertia @ acceleration
        return force if load.force is None else force + load.force


def _sum(a: Inertia, b: Inertia) -> Inertia:
    if isinstance(a, RigidInertia) and isinstance(b, RigidInertia):
        return a + b
    return (a.articulated() if isinstance(a, RigidInertia) else a) + (
        b.articulated() if isinstance(b, RigidInertia) else b
    )


@dataclass(frozen=True)
class ClusterArticulation:
    """A cluster after elimination: its load on the parent, and its response to the parent's acceleration."""

    dynamics: ClusterDynamics
    motion: Solution
    factor: Factor
    rates: list[Scalar]  # y for a parent at rest
    gain: list[Force]  # F K by columns

    def respond(self, parent: Motion) -> tuple[dict[int, Scalar], dict[int, Motion]]:
        """Accelerations of the coordinates and of the links."""
        rates = self.accelerations(parent)
        return rates, self.dynamics.accelerations(parent, rates)

    def accelerations(self, parent: Motion) -> dict[int, Scalar]:
        """Accelerations of the coordinates: a = K y + k."""
        y = self.rates
        if self.dynamics.cluster.parent >= 0:
            answer = self.factor.solve([force.dot(parent) for force in self.gain])
            y = [a - b for a, b in zip(y, answer, strict=True)]
        return {c: dot(self.motion.basis[c], y, self.motion.offset[c]) for c in self.dynamics.cluster.coordinates}


def articulate_cluster(
    dynamics: ClusterDynamics, motion: Solution, tau: Mapping[int, Scalar], ground: Motion
) -> tuple[ClusterArticulation, ArticulatedInertia | None, Force | None]:
    """Eliminate the joints of a cluster; ``ground`` is the acceleration of the ground. Also returns the load on the
    parent, unless that is the ground."""
    at_rest = NO_MOTION if dynamics.cluster.parent >= 0 else ground
    felt, force = dynamics.forces(at_rest, motion.offset)
    composites, composite = dynamics.composites()
    mass, on_parent = dynamics.mass_matrix(composites)
    columns = [dict(zip(motion.basis, column, strict=True)) for column in zip(*motion.basis.values(), strict=True)]
    moved = [_times(mass, column) for column in columns]
    reduced: Matrix = [[0.0] * len(columns) for _ in columns]
    for i, column in enumerate(columns):
        for j in range(i + 1):
            reduced[i][j] = reduced[j][i] = _dot(column, moved[j])
    for k, indicator in enumerate(motion.indicators, start=motion.free):
        reduced[k][k] = reduced[k][k] + (1.0 - indicator)
    factor = Factor.of(reduced)
    innovation = [sum((x * (tau[c] - felt[c]) for c, x in column.items() if not is_zero(x)), 0.0) for column in columns]
    rates = factor.solve(innovation)
    gain: list[Force] = []
    if dynamics.cluster.parent < 0:
        return ClusterArticulation(dynamics, motion, factor, rates, gain), None, None
    for column in columns:
        parts = [on_parent[c] * x for c, x in column.items() if not is_zero(x)]
        gain.append(sum(parts[1:], parts[0]) if parts else NO_FORCE)
    for g, y in zip(gain, rates, strict=True):
        force = force + g * y
    assert composite is not None
    inertia = composite.articulated() if isinstance(composite, RigidInertia) else composite
    rows = [factor.forward([g.flat()[k] for g in gain]) for k in range(6)]
    scaled = [[x * r for x, r in zip(row, factor.reciprocal, strict=True)] for row in rows]
    remaining = ArticulatedInertia.from_entries(lambda i, j: inertia.entry(i, j) - dot(rows[i], scaled[j]))
    return ClusterArticulation(dynamics, motion, factor, rates, gain), remaining, force


def _times(matrix: Mapping[tuple[int, int], Scalar], column: Mapping[int, Scalar]) -> dict[int, Scalar]:
    """A matrix over coordinates times a vector over coordinates."""
    rows = dict.fromkeys(i for i, _ in matrix)
    return {
        i: sum((matrix[i, j] * x for j, x in column.items() if not is_zero(x) and (i, j) in matrix), 0.0) for i in rows
    }


def _dot(a: Mapping[int, Scalar], b: Mapping[int, Scalar]) -> Scalar:
    return sum((x * b[c] for c, x in a.items() if not is_zero(x) and not is_zero(b[c])), 0.0)
